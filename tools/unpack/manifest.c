#include "manifest.h"

#include "base/buf.h"
#include "base/json.h"
#include "identity.h"
#include "metadata.h"

#include <string.h>

#define DEPTH_MAX 64u
#define BINS_MAX 1000u

/* ---- Licence ---- */

static const char *license_text(const json_t *value)
{
        return json_is_string(value) ? json_string_value(value) : rv_json_get_string(value, "type", "");
}

/* A text; {"type"}; or the old list of either, joined. */
static int read_license(struct npm *p)
{
        const json_t *value = json_object_get(p->manifest, "license"), *list = json_object_get(p->manifest, "licenses");
        _cleanup_(rv_buf_fini) struct rv_buf all = { 0 };
        json_t *one;
        size_t i;

        if (json_is_array(value))
                list = value;
        if (json_is_array(list)) {
                json_array_foreach((json_t *)list, i, one)
                        if (*license_text(one))
                                rv_buf_printf(&all, "%s%s", all.size ? ", " : "", license_text(one));
        } else {
                value = value ? value : list;
                rv_buf_puts(&all, license_text(value));
        }
        if (rv_buf_error(&all) < 0)
                return rv_raise(-ENOMEM);
        metadata_license(all.data ? all.data : "", all.size, p->license);
        return 0;
}

/* ---- Scripts that an installer would run ---- */

static bool has_install_script(const struct npm *p)
{
        static const char *const names[] = { "preinstall", "install", "postinstall" };
        const json_t *scripts = json_object_get(p->manifest, "scripts");

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++)
                if (*rv_json_get_string(scripts, names[i], ""))
                        return true;
        return name_find(&p->names, "binding.gyp", strlen("binding.gyp")) != NULL;
}

/* ---- Commands ---- */

/* As npm makes them safe: what stands behind the last slash, backslash or colon. */
static const char *bin_name(const char *key)
{
        const char *name = key;

        for (const char *c = key; *c; c++)
                if (*c == '/' || *c == '\\' || *c == ':')
                        name = c + 1;
        return name;
}

/* Resolved below the package as if that were the root, so that nothing leads out of it. */
static bool bin_target(const char *text, char *ret, size_t size)
{
        size_t at = 0, n = strlen(text);

        if (n >= size)
                return false;
        for (size_t i = 0, part; i <= n; i += part + 1) {
                part = strcspn(text + i, "/\\");
                if (part == 0 || (part == 1 && text[i] == '.'))
                        continue;
                if (part == 2 && text[i] == '.' && text[i + 1] == '.') {
                        while (at > 0 && ret[--at] != '/')
                                ;
                        continue;
                }
                if (at)
                        ret[at++] = '/';
                memcpy(ret + at, text + i, part);
                at += part;
        }
        ret[at] = 0;
        return at > 0;
}

/* What cannot be a command, or leads to no file, is left out, as npm leaves it out. */
static int add_bin(struct npm *p, const char *name, const char *target)
{
        char path[NAME_BYTES_MAX + 1];
        const struct name_entry *e;
        struct fault unused;

        if (json_object_size(p->bin) >= BINS_MAX || !bin_target(target, path, sizeof(path)))
                return 0;
        e = name_find(&p->names, path, strlen(path));
        if (!e || e->kind != NAME_FILE || strchr(name, '/') || name_check(name, strlen(name), &unused))
                return 0;
        return json_object_set_new(p->bin, name, json_string(path)) < 0 ? rv_raise(-ENOMEM) : 0;
}

/* Every file below the directory that `directories.bin` names, but for hidden ones. */
static int add_directory(struct npm *p, const char *text)
{
        char directory[NAME_BYTES_MAX + 1];
        int r = 0;

        if (!bin_target(text, directory, sizeof(directory)))
                return 0;
        for (size_t i = 0; i < p->names.n && r == 0; i++) {
                const struct name_entry *e = &p->names.entries[i];
                size_t n = strlen(directory);

                if (e->kind == NAME_FILE && e->size > n && memcmp(e->name, directory, n) == 0 && e->name[n] == '/' &&
                        bin_name(e->name)[0] != '.')
                        r = add_bin(p, bin_name(e->name), e->name);
        }
        return r;
}

static int read_bin(struct npm *p, const char *package)
{
        const json_t *bin = json_object_get(p->manifest, "bin"), *directories = json_object_get(p->manifest, "directories");
        const char *key;
        json_t *value;
        int r = 0;

        p->bin = json_object();
        if (!p->bin)
                return rv_raise(-ENOMEM);
        if (json_is_string(bin))
                return rv_trace(add_bin(p, bin_name(package), json_string_value(bin)));
        json_object_foreach((json_t *)bin, key, value)
                if (r == 0 && json_is_string(value))
                        r = add_bin(p, bin_name(key), json_string_value(value));
        if (r == 0 && !bin)
                r = add_directory(p, rv_json_get_string(directories, "bin", ""));
        return r < 0 ? rv_trace(r) : 0;
}

/* ---- All of it ---- */

static int parse(const char *text, size_t n, json_t **ret, struct fault *f)
{
        char quote[FAULT_QUOTE_SIZE];
        json_error_t e;

        if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
                text += 3;
                n -= 3;
        }
        *ret = json_loadb(text, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &e);
        if (!*ret && json_error_code(&e) == json_error_out_of_memory)
                return rv_raise(-ENOMEM);
        if (!*ret)
                return fault_set(f, UNPACK_UNSAFE, "it is not an npm package: package.json is no JSON: %s", fault_quote(e.text, strlen(e.text), quote));
        if (!json_is_object(*ret) || rv_json_is_deeper(*ret, DEPTH_MAX))
                return fault_set(f, UNPACK_UNSAFE, "it is not an npm package: package.json is no object, or nested too deep");
        return 0;
}

static int judge_names(const struct npm *p, const struct npm_want *want, struct fault *f)
{
        const char *name = rv_json_get_string(p->manifest, "name", ""), *version = rv_json_get_string(p->manifest, "version", "");
        char quote[FAULT_QUOTE_SIZE], other[FAULT_QUOTE_SIZE];

        if (strcmp(name, want->name) != 0)
                return fault_set(f, UNPACK_MISNAMED, "it says that it is %s, and %s was asked for",
                        fault_quote(name, strlen(name), quote), fault_quote(want->name, strlen(want->name), other));
        if (!identity_npm_version(version, want->version))
                return fault_set(f, UNPACK_MISNAMED, "it says that it is version %s, and %s was asked for",
                        fault_quote(version, strlen(version), quote),
                        fault_quote(want->version, strlen(want->version), other));
        return 0;
}

/* Packages within a package have no integrity of their own, and any name. */
static int judge_bundles(const struct npm *p, struct fault *f)
{
        static const char *const names[] = { "bundleDependencies", "bundledDependencies" };

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++) {
                const json_t *v = json_object_get(p->manifest, names[i]);

                if (json_is_true(v) || json_array_size(v) || json_object_size(v))
                        return fault_set(f, UNPACK_UNSAFE, "it bundles other packages (%s in package.json), which nobody could judge", names[i]);
        }
        if (name_find(&p->names, "node_modules", strlen("node_modules")))
                return fault_set(f, UNPACK_UNSAFE, "it bundles other packages (a directory node_modules), which nobody could judge");
        return 0;
}

int manifest_read(const char *text, size_t n, const struct npm_want *want, struct npm *p, struct fault *f)
{
        int r = parse(text, n, &p->manifest, f);

        if (r == 0)
                r = judge_names(p, want, f);
        if (r == 0)
                r = judge_bundles(p, f);
        if (r == 0)
                r = read_license(p);
        if (r == 0)
                r = read_bin(p, want->name);
        if (r)
                return r < 0 ? rv_trace(r) : r;
        p->has_install_script = has_install_script(p);
        return 0;
}
