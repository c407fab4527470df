#include "package/lock.h"

#include <string.h>

/* ---- As text ---- */

int rv_lock_read(const char *text, size_t n, json_t **ret, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *lock = NULL;
        struct rv_error why = { 0 };
        int r;

        if (n > RV_LOCK_BYTES_MAX)
                return rv_error_set(err, rv_raise(-EFBIG), "lock: it has more than %zu MiB, which no lock has; make it anew with `reeve package lock`", RV_LOCK_BYTES_MAX >> 20);
        r = rv_json_read(text, n, RV_LOCK_DEPTH_MAX, &lock, &why);
        /* Only where: what stands there is shown by nobody. */
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "lock: it cannot be read as JSON (%.*s); make it anew with `reeve package lock`", (int)strcspn(why.message, ":"), why.message);
        r = rv_lock_check(lock, err);
        if (r < 0)
                return rv_trace(r);
        *ret = rv_take(&lock);
        return 0;
}

int rv_lock_write(const json_t *lock, struct rv_buf *out)
{
        int r = rv_json_canonical(lock, out);

        return r < 0 ? rv_trace(r) : rv_trace(rv_buf_putc(out, '\n'));
}

/* ---- Its parts ---- */

static json_t *with_members(const json_t *package, const char *const *names, size_t n)
{
        _cleanup_(rv_json_unrefp) json_t *part = json_object();

        for (size_t i = 0; part && i < n; i++) {
                json_t *value = json_object_get(package, names[i]);

                if (value && json_object_set(part, names[i], value) < 0)
                        return NULL;
        }
        return rv_take(&part);
}

static json_t *list_with(const json_t *lock, const char *const *names, size_t n)
{
        _cleanup_(rv_json_unrefp) json_t *list = json_array();
        const json_t *package;
        size_t i;

        json_array_foreach(json_object_get(lock, "packages"), i, package)
                if (!list || json_array_append_new(list, with_members(package, names, n)) < 0)
                        return NULL;
        return rv_take(&list);
}

int rv_lock_digest(const json_t *lock, char ret_hex[RV_SHA256_HEX_SIZE])
{
        static const char *const names[] = { "name", "version", "hash", "file", "at" };
        _cleanup_(rv_json_unrefp) json_t *list = list_with(lock, names, RV_N_ELEMENTS(names)), *installed = NULL;

        if (list)
                installed = json_pack("{s:O, s:O, s:O}", "language", json_object_get(lock, "language"), "runtime", json_object_get(lock, "runtime"), "packages", list);
        return installed ? rv_trace(rv_json_canonical_sha256(installed, ret_hex)) : rv_raise(-ENOMEM);
}

json_t *rv_lock_public(const json_t *lock)
{
        static const char *const names[] = { "name", "version", "hash", "kind", "size_bytes", "published_at", "license", "direct",
                "requested", "extras", "yanked", "install_script", "registry_hash", "path" };

        return list_with(lock, names, RV_N_ELEMENTS(names));
}
