#include "package/metadata_private.h"

#include "package/wheel_tags.h"
#include "policy/constraint.h"

#include <string.h>

/* What can be asked of a page. */

static enum rv_version_order order_of(const json_t *page)
{
        return rv_version_order_for(rv_json_get_string(page, "language", ""));
}

json_t *rv_metadata_version(const json_t *page, const char *version)
{
        const json_t *versions = json_object_get(page, "versions");
        char name[RV_VERSION_SIZE_MAX + 16];
        struct rv_version wanted, v;
        const char *other;
        json_t *entry;

        entry = json_object_get(versions, version);
        if (entry || rv_version_parse(order_of(page), version, strlen(version), &wanted) < 0)
                return entry;
        entry = rv_version_write(&wanted, name, sizeof(name)) < 0 ? NULL : json_object_get(versions, name);
        if (entry || wanted.order == RV_VERSION_SEMVER)
                return entry;
        /* 1.0 and 1.0.0 are one version. */
        json_object_foreach((json_t *)versions, other, entry)
                if (rv_version_parse(wanted.order, other, strlen(other), &v) == 0 &&
                        rv_version_compare(&v, &wanted) == 0)
                        return entry;
        return NULL;
}

json_t *rv_metadata_file(const json_t *page, const char *version, const char *file)
{
        json_t *entry;
        size_t i;

        json_array_foreach(json_object_get(rv_metadata_version(page, version), "files"), i, entry)
                if (strcmp(rv_json_get_string(entry, "file", ""), file) == 0)
                        return entry;
        return NULL;
}

struct item {
        struct rv_version v;
        const char *text;
};

static int compare_items(const void *pa, const void *pb)
{
        const struct item *a = pa, *b = pb;
        int r = rv_version_compare(&a->v, &b->v);

        return r ? r : strcmp(a->text, b->text);
}

int rv_metadata_versions(const json_t *page, const char ***ret, size_t *ret_n)
{
        json_t *versions = json_object_get(page, "versions"), *entry;
        size_t n = 0, n_all = json_object_size(versions);
        _cleanup_(rv_freep) struct item *items = calloc(n_all + 1, sizeof(*items));
        const char *name, **texts;

        if (!items)
                return rv_raise(-ENOMEM);
        json_object_foreach(versions, name, entry)
                if (rv_version_parse(order_of(page), name, strlen(name), &items[n].v) == 0)
                        items[n++].text = name;
        qsort(items, n, sizeof(*items), compare_items);
        texts = calloc(n + 1, sizeof(*texts));
        if (!texts)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < n; i++)
                texts[i] = items[i].text;
        *ret = texts;
        *ret_n = n;
        return 0;
}

static bool is_younger(const json_t *entry, int64_t cutoff_s)
{
        const json_t *at = json_object_get(entry, "published_at");

        return !json_is_integer(at) || json_integer_value(at) > cutoff_s;
}

static bool has_unfit(const json_t *page, const json_t *version, const char *tag, int64_t cutoff_s, bool needs_hash)
{
        const json_t *files = json_object_get(version, "files");
        json_t *file;
        size_t i;

        if (!files)
                return cutoff_s >= 0 && is_younger(version, cutoff_s);
        json_array_foreach(files, i, file) {
                struct rv_index_file parts;

                if (tag && (!rv_index_file_parse(rv_json_get_string(file, "file", ""), rv_json_get_string(page, "name", ""), &parts) ||
                            parts.kind != RV_INDEX_WHEEL || rv_wheel_fit(&parts, tag) != RV_WHEEL_FITS))
                        continue;
                if ((cutoff_s >= 0 && is_younger(file, cutoff_s)) || (needs_hash && !json_object_get(file, "sha256")))
                        return true;
        }
        return false;
}

int rv_metadata_unfit(const json_t *page, const char *tag, int64_t cutoff_s, bool needs_hash, json_t **ret_versions)
{
        _cleanup_(rv_json_unrefp) json_t *list = json_array();
        _cleanup_(rv_freep) const char **versions = NULL;
        size_t n;
        int r;

        r = list ? rv_metadata_versions(page, &versions, &n) : rv_raise(-ENOMEM);
        if (r < 0)
                return rv_trace(r);
        for (size_t i = 0; i < n; i++)
                if (has_unfit(page, json_object_get(json_object_get(page, "versions"), versions[i]), tag, cutoff_s, needs_hash) &&
                    json_array_append_new(list, json_string(versions[i])) < 0)
                        return rv_raise(-ENOMEM);
        *ret_versions = rv_take(&list);
        return 0;
}
