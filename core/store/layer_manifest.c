#include "store/layer_manifest.h"

#include <string.h>

#define DEPTH_MAX 4

/* From tree/, without empty, "." and ".." parts. */
static bool is_path(const char *path)
{
        size_t n = strlen(path);

        if (n == 0 || n > RV_MANIFEST_PATH_MAX)
                return false;
        for (const char *part = path;;) {
                size_t size = strcspn(part, "/");

                if (size == 0 || (size == 1 && part[0] == '.') || (size == 2 && part[0] == '.' && part[1] == '.'))
                        return false;
                if (!part[size])
                        return true;
                part += size + 1;
        }
}

static bool is_hex(const char *text)
{
        return strlen(text) == RV_SHA256_HEX_SIZE - 1 && strspn(text, "0123456789abcdef") == RV_SHA256_HEX_SIZE - 1;
}

static int type_of(const char *text)
{
        static const char *const names[] = { [RV_MANIFEST_FILE] = "file", [RV_MANIFEST_LINK] = "link", [RV_MANIFEST_DIRECTORY] = "directory" };

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++)
                if (!strcmp(text, names[i]))
                        return (int)i;
        return -1;
}

/* Return: what is wrong with it, or NULL. */
static const char *take_entry(const json_t *value, struct rv_manifest_entry *e)
{
        const json_t *mode = json_object_get(value, "mode"), *size = json_object_get(value, "size");
        int type = type_of(rv_json_get_string(value, "type", ""));

        e->path = rv_json_get_string(value, "path", "");
        e->target = rv_json_get_string(value, "target", NULL);
        e->sha256 = rv_json_get_string(value, "sha256", NULL);
        if (!is_path(e->path))
                return "its path is none that leads from tree/";
        if (type < 0)
                return "its type is neither file, link nor directory";
        if (!json_is_integer(mode) || json_integer_value(mode) < 0 || json_integer_value(mode) > 0777)
                return "its mode is none";
        if (!json_is_integer(size) || json_integer_value(size) < 0)
                return "its size is none";
        if (type == RV_MANIFEST_FILE && (!e->sha256 || !is_hex(e->sha256)))
                return "its sha256 is none";
        if (type == RV_MANIFEST_LINK && !e->target)
                return "it has no target";
        e->type = (enum rv_manifest_type)type;
        e->mode = (uint32_t)json_integer_value(mode);
        e->size = (uint64_t)json_integer_value(size);
        return NULL;
}

static int take_entries(const json_t *list, struct rv_manifest *m, struct rv_error *err)
{
        m->entries = calloc(json_array_size(list) + 1, sizeof(*m->entries));
        if (!m->entries)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        for (size_t i = 0; i < json_array_size(list); i++) {
                const char *fault = take_entry(json_array_get(list, i), &m->entries[i]);

                if (!fault && i && strcmp(m->entries[i - 1].path, m->entries[i].path) >= 0)
                        fault = "it does not stand in order";
                if (fault)
                        return rv_error_set(err, -EINVAL, "/entries/%zu: %s", i, fault);
                m->n++;
        }
        return 0;
}

int rv_manifest_read(const char *text, size_t n, struct rv_manifest *ret, struct rv_error *err)
{
        struct rv_manifest m = { 0 };
        struct rv_error why = { 0 };
        int r = n > RV_MANIFEST_BYTES_MAX ? rv_error_set(err, -EINVAL, "it is larger than any manifest") : 0;

        if (r == 0)
                r = rv_json_read(text, n, DEPTH_MAX, &m.document, &why);
        /* Only where: what stands there is shown by nobody. */
        if (why.message[0])
                rv_error_set(err, r, "it is no JSON (%.*s)", (int)strcspn(why.message, ":"), why.message);
        if (r == 0 && (strcmp(rv_json_get_string(m.document, "schema", ""), RV_MANIFEST_SCHEMA) || !json_is_array(json_object_get(m.document, "entries"))))
                r = rv_error_set(err, -EINVAL, "it is no " RV_MANIFEST_SCHEMA);
        if (r == 0)
                r = take_entries(json_object_get(m.document, "entries"), &m, err);
        if (r == 0) {
                *ret = m;
                return 0;
        }
        rv_manifest_fini(&m);
        return r == -ENOMEM ? rv_trace(r) : -EINVAL;
}

void rv_manifest_fini(struct rv_manifest *m)
{
        json_decref(m->document);
        free(m->entries);
        *m = (struct rv_manifest){ 0 };
}

static int compare(const void *key, const void *entry)
{
        return strcmp(key, ((const struct rv_manifest_entry *)entry)->path);
}

struct rv_manifest_entry *rv_manifest_find(const struct rv_manifest *m, const char *path)
{
        return m->n ? bsearch(path, m->entries, m->n, sizeof(*m->entries), compare) : NULL;
}
