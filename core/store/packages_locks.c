#include "store/packages_private.h"

#include "base/canonical.h"
#include "base/fd.h"
#include "package/lock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCHEMA "reeve.held/1"
#define NAME_SIZE (RV_STORE_DIGITS + sizeof(".json"))

static int make_name(const char *key, char ret[NAME_SIZE], struct rv_error *err)
{
        if (!rv__store_is_digest(key))
                return rv_error_set(err, rv_raise(-EINVAL), "\"%.80s\" is no key of a lock: it needs 64 digits of lower-case hexadecimal", key);
        snprintf(ret, NAME_SIZE, "%s.json", key);
        return 0;
}

/* What a file in locks/ holds: {"lock":…,"resolved_us":…,"schema":…,"sha256":…}, the last being the lock's digest as it lies. */
struct held {
        json_t *lock;
        struct rv_span lock_text;
        uint64_t resolved_us;
        struct rv_span sha256;
        unsigned n_members;
};

static int take_member(struct rv_canonical_object *o, struct rv_span name, struct held *held)
{
        struct rv_span value;
        int64_t us;
        int r;

        if (rv_span_is(name, "lock"))
                r = rv_canonical_take(o, RV_LOCK_DEPTH_MAX, NULL, &held->lock, &held->lock_text);
        else
                r = rv_canonical_skip(o, &value);
        if (r < 0)
                return r;
        held->n_members++;
        if (rv_span_is(name, "lock"))
                return 0;
        if (rv_span_is(name, "resolved_us")) {
                us = rv_span_integer(value);
                held->resolved_us = (uint64_t)us;
                return us < 0 ? -EINVAL : 0;
        }
        if (rv_span_is(name, "sha256"))
                held->sha256 = rv_span_string(value);
        else if (!rv_span_is(name, "schema") || !rv_span_is(rv_span_string(value), SCHEMA))
                return -EINVAL;
        return 0;
}

/* Return: 0; -EINVAL it is not what was written; -ENOMEM */
static int parse(const char *text, size_t n, struct held *held, struct rv_error *err)
{
        struct rv_canonical_object o;
        char hex[RV_SHA256_HEX_SIZE];
        struct rv_span name;
        int r;

        rv_canonical_open(&o, text, n && text[n - 1] == '\n' ? n - 1 : n);
        while ((r = rv_canonical_next(&o, &name)) > 0) {
                r = take_member(&o, name, held);
                if (r < 0)
                        break;
        }
        if (r == -ENOMEM)
                return rv_trace(r);
        if (r < 0 || held->n_members != 4 || !held->lock || !held->sha256.text)
                return rv_error_set(err, -EINVAL, "it is cut, or was changed");
        rv_sha256_hex(held->lock_text.text, held->lock_text.n, hex);
        if (!rv_span_is(held->sha256, hex))
                return rv_error_set(err, -EINVAL, "the lock in it is not the one that was kept");
        return rv_trace(rv_lock_check(held->lock, err));
}

int rv_store_lock_find(struct rv_store *store, const char *key, json_t **ret, uint64_t *ret_us, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_error why = { 0 };
        struct held held = { 0 };
        char name[NAME_SIZE];
        int r = make_name(key, name, err);

        if (r < 0)
                return r;
        r = rv_read_file_at(store->locks_fd, name, RV_STORE_HELD_MAX, &text);
        if (r == -ENOENT)
                return RV_STORE_E_ABSENT;
        if (r < 0 && r != -ENOMEM)
                rv_error_set(&why, r, "%s", strerror(-r));
        if (r == 0)
                r = parse(text.data ? text.data : "", text.size, &held, &why);
        if (r < 0) {
                json_decref(held.lock);
                if (r == -ENOMEM)
                        return rv_error_set(err, rv_trace(r), "out of memory");
                return rv_error_set(err, RV_STORE_E_ABSENT, "%s/locks/%s is not used: %s; the packages are resolved anew", store->path, name, why.message);
        }
        (void)utimensat(store->locks_fd, name, NULL, AT_SYMLINK_NOFOLLOW);
        *ret = held.lock;
        *ret_us = held.resolved_us;
        return 0;
}

static int write_held(const json_t *lock, uint64_t resolved_us, struct rv_buf *out)
{
        char hex[RV_SHA256_HEX_SIZE];
        size_t start;
        int r;

        rv_buf_puts(out, "{\"lock\":");
        start = out->size;
        r = rv_json_canonical(lock, out);
        if (r < 0)
                return rv_trace(r);
        rv_sha256_hex(out->data + start, out->size - start, hex);
        rv_buf_printf(out, ",\"resolved_us\":%llu,\"schema\":\"" SCHEMA "\",\"sha256\":\"%s\"}\n", (unsigned long long)resolved_us, hex);
        return rv_trace(rv_buf_error(out));
}

/* Under a name that no other thread has, and then its own. */
static int put(struct rv_store *store, const char *name, const struct rv_buf *text)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        char unique[RV_STORE_ARTIFACT_SIZE], temporary[RV_STORE_ARTIFACT_SIZE + 1];
        int r;

        rv_store_artifact_name(store, unique);
        snprintf(temporary, sizeof(temporary), ".%s", unique);
        fd = openat(store->locks_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return rv_raise(-errno);
        r = rv_write_all(fd, text->data, text->size);
        if (r == 0 && (fdatasync(fd) < 0 || renameat(store->locks_fd, temporary, store->locks_fd, name) < 0))
                r = rv_raise(-errno);
        if (r < 0)
                unlinkat(store->locks_fd, temporary, 0);
        /* The file's name has to survive a crash as well as its bytes. */
        return r == 0 && fsync(store->locks_fd) < 0 ? rv_raise(-errno) : r;
}

int rv_store_lock_keep(
        struct rv_store *store, const char *key, const json_t *lock, uint64_t resolved_us, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        char name[NAME_SIZE];
        int r = make_name(key, name, err);

        if (r == 0)
                r = rv_lock_check(lock, err);
        if (r < 0)
                return rv_trace(r);
        r = write_held(lock, resolved_us, &text);
        if (r == 0)
                r = put(store, name, &text);
        return r < 0 ? rv_error_set(err, rv_trace(r), "cannot keep the lock in %s/locks: %s", store->path, strerror(-r)) : 0;
}

void rv_store_lock_drop(struct rv_store *store, const char *key)
{
        char name[NAME_SIZE];

        if (make_name(key, name, NULL) == 0)
                (void)unlinkat(store->locks_fd, name, 0);
}
