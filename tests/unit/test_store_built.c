/* Wheels that were built: kept under their hash, all of one or nothing, and for as long as a lock names them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>

#include "base/fd.h"
#include "base/hash.h"
#include "package/lock.h"
#include "store/packages_list.h"
#include "test_base_tmp.h"
#include "test_package_lock.h"

#define KEY "00000000000000000000000000000000000000000000000000000000000000aa"
#define NO_SUCH "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define DAY_US (UINT64_C(86400) * 1000000)

static struct rv_store *open_store(void **state)
{
        _cleanup_(rv_closep) int fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct rv_store *store = NULL;

        assert_int_equal(rv_store_open(fd, *state, geteuid(), &store, NULL), 0);
        return store;
}

static void kept_by_its_hash(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        char sha256[RV_SHA256_HEX_SIZE], expected[RV_SHA256_HEX_SIZE], name[RV_SHA256_HEX_SIZE + 8];
        struct rv_error err = { 0 };

        rv_sha256_hex("wheel", 5, expected);
        assert_false(rv_store_built_is_there(store, expected));
        assert_int_equal(rv_store_built_keep(store, "wheel", 5, sha256, &err), 0);
        assert_string_equal(sha256, expected);
        assert_true(rv_store_built_is_there(store, sha256));
        assert_int_equal(rv_store_built_keep(store, "wheel", 5, sha256, &err), 0);
        snprintf(name, sizeof(name), "%s.whl", sha256);
        assert_int_equal(rv_read_file_at(rv_store_built_fd(store), name, 100, &text), 0);
        assert_string_equal(text.data, "wheel");
}

static void what_is_no_hash_is_not_there(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);

        assert_false(rv_store_built_is_there(store, ""));
        assert_false(rv_store_built_is_there(store, "../locks/x"));
        assert_false(rv_store_built_is_there(store, NO_SUCH));
}

/* Sets a wheel's time, so that it is old enough to go. */
static void make_old(void **state, const char *sha256)
{
        char path[200];

        snprintf(path, sizeof(path), "packages/built/%s.whl", sha256);
        assert_int_equal(
                utimensat(AT_FDCWD, tmp_path(state, path), (struct timespec[2]){ { .tv_sec = 1 }, { .tv_sec = 1 } }, 0),
                0);
}

static int cannot_remove(void *ctx, const char *digest, struct rv_error *err)
{
        (void)ctx;
        (void)digest;
        return rv_error_set(err, -EPERM, "there is no layer");
}

static void prune(struct rv_store *store, uint64_t older_us, bool is_dry)
{
        struct rv_store_prune p = { .now_us = (uint64_t)time(NULL) * 1000000 + DAY_US,
                .older_us = older_us,
                .max_bytes = UINT64_MAX,
                .is_dry = is_dry,
                .remove = cannot_remove };
        struct rv_store_pruned pruned;

        assert_int_equal(rv_store_prune(store, &p, &pruned, NULL), 0);
}

static void goes_with_its_lock(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        _cleanup_(rv_json_unrefp) json_t *lock = NULL;
        char named[RV_SHA256_HEX_SIZE], unnamed[RV_SHA256_HEX_SIZE], fresh[RV_SHA256_HEX_SIZE];
        json_t *package;

        assert_int_equal(rv_store_built_keep(store, "named", 5, named, NULL), 0);
        assert_int_equal(rv_store_built_keep(store, "unnamed", 7, unnamed, NULL), 0);
        assert_int_equal(rv_store_built_keep(store, "fresh", 5, fresh, NULL), 0);
        assert_int_equal(rv_lock_read(lock_python, strlen(lock_python), &lock, NULL), 0);
        package = json_array_get(json_object_get(lock, "packages"), 0);
        json_object_set_new(package, "kind", json_string("built"));
        json_object_set_new(package, "url", json_string(""));
        json_object_set_new(package, "hash", json_sprintf("sha256:%s", named));
        assert_int_equal(rv_store_lock_keep(store, KEY, lock, 1, NULL), 0);
        make_old(state, named);
        make_old(state, unnamed);

        prune(store, 0, true);
        assert_true(rv_store_built_is_there(store, unnamed));
        prune(store, 0, false);
        assert_true(rv_store_built_is_there(store, named));
        assert_false(rv_store_built_is_there(store, unnamed));
        assert_true(rv_store_built_is_there(store, fresh));
        prune(store, DAY_US / 2, false);
        assert_false(rv_store_built_is_there(store, named));
}

#define TMP(name) cmocka_unit_test_setup_teardown(name, tmp_make, tmp_remove)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(kept_by_its_hash),
                TMP(what_is_no_hash_is_not_there),
                TMP(goes_with_its_lock),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
