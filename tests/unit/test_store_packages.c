/*
 * The store of packages: locks are found as they were kept or not at all, one builds and many use a layer, what dead
 * processes held is free, and what goes is old or too much and used by nobody.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/remove.h"
#include "package/lock.h"
#include "store/packages_list.h"
#include "test_base_tmp.h"
#include "test_package_lock.h"

#define KEY "00000000000000000000000000000000000000000000000000000000000000aa"
#define A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define DAY_US (UINT64_C(86400) * 1000000)

static struct rv_store *open_store(void **state)
{
        _cleanup_(rv_closep) int fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct rv_store *store = NULL;
        struct rv_error err = { 0 };

        if (rv_store_open(fd, *state, geteuid(), &store, &err) < 0)
                fail_msg("%s", err.message);
        return store;
}

static json_t *make_lock(void)
{
        json_t *lock = NULL;

        assert_int_equal(rv_lock_read(lock_python, strlen(lock_python), &lock, NULL), 0);
        return lock;
}

static bool is_there(void **state, const char *path)
{
        return access(tmp_path(state, path), F_OK) == 0;
}

static void put(void **state, const char *path, const char *text)
{
        assert_int_equal(rv_write_file(tmp_path(state, path), text, strlen(text), 0644, false), 0);
}

/* ---- Locks ---- */

static void kept_and_found(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        _cleanup_(rv_json_unrefp) json_t *lock = make_lock(), *found = NULL, *other = NULL;
        struct rv_error err = { 0 };
        uint64_t us = 0;

        assert_int_equal(rv_store_lock_find(store, KEY, &found, &us, &err), RV_STORE_E_ABSENT);
        assert_string_equal(err.message, "");
        assert_int_equal(rv_store_lock_keep(store, KEY, lock, 1700000000000001, &err), 0);
        assert_int_equal(rv_store_lock_find(store, KEY, &found, &us, &err), 0);
        assert_true(json_equal(lock, found));
        assert_int_equal(us, 1700000000000001);
        assert_int_equal(rv_store_lock_keep(store, KEY, lock, 5, &err), 0);
        assert_int_equal(rv_store_lock_find(store, KEY, &other, &us, &err), 0);
        assert_int_equal(us, 5);
        assert_int_equal(rv_store_lock_find(store, "../x", &found, &us, &err), -EINVAL);
        assert_int_equal(rv_store_lock_keep(store, "AA", lock, 5, NULL), -EINVAL);
        json_object_del(lock, "runtime");
        assert_int_equal(rv_store_lock_keep(store, KEY, lock, 5, NULL), -EINVAL);
}

/* Every cut, and every bit that was turned over, is told, and it is as if there were none. */
static void changed_on_the_disk(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        _cleanup_(rv_json_unrefp) json_t *lock = make_lock();
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        const char *path = "packages/locks/" KEY ".json";
        json_t *found = (void *)1;
        uint64_t us = 7;
        size_t n_taken = 0;

        assert_int_equal(rv_store_lock_keep(store, KEY, lock, 1, NULL), 0);
        assert_int_equal(rv_read_file_at(AT_FDCWD, tmp_path(state, path), 1 << 20, &text), 0);
        for (size_t i = 0; i < text.size; i += 7) {
                struct rv_error err = { 0 };

                assert_int_equal(rv_write_file(tmp_path(state, path), text.data, i, 0600, false), 0);
                if (i + 1 == text.size)
                        continue;        /* only the newline is cut */
                assert_int_equal(rv_store_lock_find(store, KEY, &found, &us, &err), RV_STORE_E_ABSENT);
                assert_non_null(strstr(err.message, "the packages are resolved anew"));
        }
        for (size_t i = 0; i < text.size; i++) {
                struct rv_error err = { 0 };
                int r;

                text.data[i] ^= 1;
                assert_int_equal(rv_write_file(tmp_path(state, path), text.data, text.size, 0600, false), 0);
                text.data[i] ^= 1;
                r = rv_store_lock_find(store, KEY, &found, &us, &err);
                assert_true(r == 0 || (r == RV_STORE_E_ABSENT && err.message[0]));
                if (r == 0) {
                        n_taken++;       /* a digit of the time */
                        json_decref(found);
                }
                found = (void *)1;
        }
        assert_in_range(n_taken, 0, 1);
        assert_int_equal(unlink(tmp_path(state, path)), 0);
        assert_int_equal(symlink("/etc/passwd", tmp_path(state, path)), 0);
        assert_int_equal(rv_store_lock_find(store, KEY, &found, &us, NULL), RV_STORE_E_ABSENT);
        assert_int_equal(unlink(tmp_path(state, path)), 0);
        assert_int_equal(mkfifo(tmp_path(state, path), 0600), 0);
        assert_int_equal(rv_store_lock_find(store, KEY, &found, &us, NULL), RV_STORE_E_ABSENT);
}

static void *keep_many(void *arg)
{
        _cleanup_(rv_json_unrefp) json_t *lock = make_lock();

        for (int i = 0; i < 50; i++)
                if (rv_store_lock_keep(arg, KEY, lock, 9, NULL) != 0)
                        return NULL;
        return arg;
}

static void kept_at_once(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        pthread_t threads[4];
        void *ret;

        for (size_t i = 0; i < 4; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, keep_many, store), 0);
        for (int i = 0; i < 200; i++) {
                _cleanup_(rv_json_unrefp) json_t *found = NULL;
                struct rv_error err = { 0 };
                uint64_t us;

                (void)rv_store_lock_find(store, KEY, &found, &us, &err);
                assert_string_equal(err.message, "");
        }
        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(pthread_join(threads[i], &ret), 0);
                assert_ptr_equal(ret, store);
        }
}

/* The median, as a machine does other things too. */
static int compare_u64(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

static void found_among_many(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        _cleanup_(rv_json_unrefp) json_t *lock = make_lock();
        uint64_t took_us[101];
        char name[160];

        assert_int_equal(rv_store_lock_keep(store, KEY, lock, 1, NULL), 0);
        for (unsigned i = 0; i < 1000; i++) {
                snprintf(name, sizeof(name), "packages/locks/%064x.json", i + 1000);
                assert_int_equal(link(tmp_path(state, "packages/locks/" KEY ".json"), tmp_path(state, name)), 0);
        }
        for (size_t i = 0; i < RV_N_ELEMENTS(took_us); i++) {
                _cleanup_(rv_json_unrefp) json_t *found = NULL;
                uint64_t us, began = rv_clock_us(CLOCK_MONOTONIC);

                snprintf(name, sizeof(name), "%064x", (unsigned)i * 9 + 1000);
                assert_int_equal(rv_store_lock_find(store, name, &found, &us, NULL), 0);
                took_us[i] = rv_clock_us(CLOCK_MONOTONIC) - began;
        }
        qsort(took_us, RV_N_ELEMENTS(took_us), sizeof(took_us[0]), compare_u64);
        print_message("median %llu us\n", (unsigned long long)took_us[50]);
        assert_in_range(took_us[50], 0, 999);
}

/* ---- Claims and uses ---- */

static void claimed_once(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state), *other = open_store(state);
        int fd, second;

        assert_int_equal(rv_store_claim(store, A, &fd, NULL), 0);
        assert_int_equal(rv_store_claim(store, A, &second, NULL), RV_STORE_E_TAKEN);
        assert_int_equal(rv_store_claim(other, A, &second, NULL), RV_STORE_E_TAKEN);
        assert_int_equal(rv_store_claim(other, B, &second, NULL), 0);
        assert_int_equal(rv_store_claim_end(other, B, second), -EBADF);
        assert_false(is_there(state, "packages/claims/" B));
        (void)rv_store_sweep(other);
        assert_true(is_there(state, "packages/claims/" A));
        (void)rv_store_claim_end(store, A, fd);
        assert_int_equal(rv_store_claim(other, A, &second, NULL), 0);
        (void)rv_store_claim_end(other, A, second);
        assert_int_equal(rv_store_claim(store, "../a", &fd, NULL), -EINVAL);
}

/* Of many that claim and let go, one at a time has it, whatever is removed in between. */
static _Atomic int n_holders, n_claims;
static void *claim_many(void *arg)
{
        for (int i = 0; i < 100; i++) {
                int fd;

                if (rv_store_claim_wait(arg, A, NULL, rv_clock_us(CLOCK_MONOTONIC) + 30000000, &fd, NULL) != 0)
                        return NULL;
                if (atomic_fetch_add(&n_holders, 1) != 0)
                        return NULL;
                n_claims++;
                atomic_fetch_sub(&n_holders, 1);
                rv_store_claim_end(arg, A, fd);
        }
        return arg;
}

static void claimed_by_many(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        pthread_t threads[4];
        void *ret;

        for (size_t i = 0; i < 4; i++)
                assert_int_equal(pthread_create(&threads[i], NULL, claim_many, store), 0);
        for (size_t i = 0; i < 4; i++) {
                assert_int_equal(pthread_join(threads[i], &ret), 0);
                assert_ptr_equal(ret, store);
        }
        assert_int_equal(n_claims, 400);
}

static void claim_not_waited_for(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        _Atomic bool stop = true;
        int fd, second;

        assert_int_equal(rv_store_claim(store, A, &fd, NULL), 0);
        assert_int_equal(rv_store_claim_wait(store, A, NULL, rv_clock_us(CLOCK_MONOTONIC) + 5000, &second, NULL),
                RV_STORE_E_TAKEN);
        assert_int_equal(rv_store_claim_wait(store, A, &stop, UINT64_MAX, &second, NULL), -ECANCELED);
        (void)rv_store_claim_end(store, A, fd);
}

static pid_t start_holder(void **state)
{
        int ready[2];
        pid_t pid;
        char c;

        assert_int_equal(pipe(ready), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                struct rv_store *store = open_store(state);
                char name[RV_STORE_ARTIFACT_SIZE];
                int claim, use, dir;

                if (rv_store_claim(store, A, &claim, NULL) || rv_store_layer_use(store, B, &use, NULL) ||
                        rv_store_artifacts(store, &dir, NULL))
                        _exit(1);
                rv_store_artifact_name(store, name);
                if (mkdirat(dir, name, 0700) < 0)
                        _exit(1);
                (void)!write(ready[1], "r", 1);
                for (;;)
                        pause();
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &c, 1), 1);
        close(ready[0]);
        return pid;
}

static void killed(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        pid_t pid = start_holder(state);
        int fd, status;

        assert_int_equal(rv_store_sweep(store), 0);
        assert_int_equal(rv_store_claim(store, A, &fd, NULL), RV_STORE_E_TAKEN);
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        assert_int_equal(rv_store_claim(store, A, &fd, NULL), 0);
        (void)rv_store_claim_end(store, A, fd);
        assert_int_equal(rv_store_sweep(store), 2);
        assert_false(is_there(state, "packages/used/" B));
        assert_int_equal(rmdir(tmp_path(state, "packages/artifacts")), 0);
}

static void artifacts(void **state)
{
        struct rv_store *store = open_store(state);
        char a[RV_STORE_ARTIFACT_SIZE], b[RV_STORE_ARTIFACT_SIZE];
        int fd, again;

        assert_int_equal(rv_store_artifacts(store, &fd, NULL), 0);
        assert_int_equal(rv_store_artifacts(store, &again, NULL), 0);
        assert_int_equal(fd, again);
        rv_store_artifact_name(store, a);
        rv_store_artifact_name(store, b);
        assert_string_not_equal(a, b);
        assert_int_equal(rv_write_file_at(fd, a, "x", 1, 0600, false), 0);
        rv_store_close(store);
        assert_int_equal(rmdir(tmp_path(state, "packages/artifacts")), 0);
}

/* ---- What goes ---- */

static void make_layer(void **state, const char *digest, uint64_t used_us)
{
        char path[160], use[160];
        struct timespec t[2] = { { .tv_sec = (time_t)(used_us / 1000000) }, { .tv_sec = (time_t)(used_us / 1000000) } };

        snprintf(path, sizeof(path), "packages/layers/%s", digest);
        (void)mkdir(tmp_path(state, "packages/layers"), 0755);
        assert_int_equal(mkdir(tmp_path(state, path), 0755), 0);
        snprintf(path, sizeof(path), "packages/layers/%s/lock.json", digest);
        put(state, path, lock_python);
        snprintf(path, sizeof(path), "packages/layers/%s/tree", digest);
        assert_int_equal(mkdir(tmp_path(state, path), 0755), 0);
        snprintf(path, sizeof(path), "packages/layers/%s/tree/data", digest);
        assert_int_equal(rv_write_file(tmp_path(state, path), (char[100000]){ 1 }, 100000, 0644, false), 0);
        snprintf(use, sizeof(use), "packages/used/%s", digest);
        put(state, use, "");
        assert_int_equal(utimensat(AT_FDCWD, tmp_path(state, use), t, 0), 0);
}

static int remove_layer(void *ctx, const char *digest, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = open(ctx, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                                 layers = openat(fd, "packages/layers", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        (void)err;
        return rv_remove_tree_at(layers, digest);
}

static int cannot_remove(void *ctx, const char *digest, struct rv_error *err)
{
        (void)ctx;
        return rv_error_set(err, -EPERM, "no right to remove %.4s", digest);
}

static void listed(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        _cleanup_(rv_store_list_fini) struct rv_store_list list = { 0 };
        _cleanup_(rv_json_unrefp) json_t *lock = make_lock();
        int fd;

        assert_int_equal(rv_store_list(store, &list, NULL), 0);
        assert_int_equal(list.n_layers + list.n_locks, 0);
        rv_store_list_fini(&list);
        make_layer(state, B, 5000000);
        make_layer(state, A, 7000000);
        make_layer(state, C, 1000000);
        assert_int_equal(mkdir(tmp_path(state, "packages/layers/other"), 0755), 0);
        assert_int_equal(rv_store_lock_keep(store, KEY, lock, 1, NULL), 0);
        assert_int_equal(rv_store_layer_use(store, C, &fd, NULL), 0);
        assert_int_equal(rv_store_list(store, &list, NULL), 0);
        assert_int_equal(list.n_layers, 3);
        assert_string_equal(list.layers[0].digest, B);
        assert_string_equal(list.layers[1].digest, A);
        assert_string_equal(list.layers[2].digest, C);
        assert_true(list.layers[2].is_in_use && !list.layers[0].is_in_use);
        assert_int_equal(list.layers[0].last_use_us, 5000000);
        assert_int_equal(list.layers[0].n_packages, 2);
        assert_string_equal(list.layers[0].language, "python");
        assert_string_equal(list.layers[0].runtime, "cp311-linux_x86_64");
        assert_in_range(list.layers[0].bytes, 100000, 150000);
        assert_int_equal(list.n_locks, 1);
        assert_string_equal(list.locks[0].key, KEY);
        rv_close(fd);
}

static const struct {
        const char *name, *gone;         /* digests' first letters, in their order */
        uint64_t older_days, max_layers; /* 0: none */
        char in_use;
        bool is_dry;
        size_t n_in_use, n_locks;
} prune_rows[] = {
        { "nothing is asked for", "", 0, 0, 0, false, 0, 0 },
        { "of an age", "ab", 4, 0, 0, false, 0, 1 },
        { "younger than that", "", 20, 0, 0, false, 0, 0 },
        { "too much by one", "a", 0, 2, 0, false, 0, 0 },
        { "too much by two", "ab", 0, 1, 0, false, 0, 0 },
        { "age and size", "abc", 9, 0, 0, false, 0, 0 },
        { "the oldest is used", "b", 0, 2, 'a', false, 0, 0 },
        { "an old one is used", "b", 4, 0, 'a', false, 0, 1 },
        { "only told", "ab", 4, 0, 0, true, 0, 1 },
};

static void tell(void *ctx, const struct rv_store_layer *layer, const char *why)
{
        (void)ctx;
        (void)layer;
        assert_true(!strcmp(why, "age") || !strcmp(why, "size"));
}

/* a is 10 days old, b 5, c 1; a lock 6. */
static void prune_row(void **state, size_t row)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        _cleanup_(rv_store_list_fini) struct rv_store_list list = { 0 };
        _cleanup_(rv_json_unrefp) json_t *lock = make_lock();
        uint64_t now = 1700000000 * UINT64_C(1000000), one;
        struct timespec t[2] = { { .tv_sec = (time_t)((now - 6 * DAY_US) / 1000000) },
                { .tv_sec = (time_t)((now - 6 * DAY_US) / 1000000) } };
        struct rv_store_prune p = { .now_us = now,
                .older_us = prune_rows[row].older_days * DAY_US,
                .max_bytes = UINT64_MAX,
                .is_dry = prune_rows[row].is_dry,
                .remove = remove_layer,
                .tell = tell,
                .ctx = *state };
        struct rv_store_pruned pruned;
        struct rv_error err = { 0 };
        int use = -EBADF;

        make_layer(state, A, now - 10 * DAY_US);
        make_layer(state, B, now - 5 * DAY_US);
        make_layer(state, C, now - 1 * DAY_US);
        assert_int_equal(rv_store_lock_keep(store, KEY, lock, 1, NULL), 0);
        assert_int_equal(utimensat(AT_FDCWD, tmp_path(state, "packages/locks/" KEY ".json"), t, 0), 0);
        assert_int_equal(rv_store_list(store, &list, NULL), 0);
        one = list.layers_bytes / 3;
        if (prune_rows[row].max_layers)
                p.max_bytes = one * prune_rows[row].max_layers;
        if (!strcmp(prune_rows[row].gone, "abc"))
                p.max_bytes = 0;
        if (prune_rows[row].in_use) {
                assert_int_equal(rv_store_layer_use(store, A, &use, NULL), 0);
                assert_int_equal(utimensat(AT_FDCWD, tmp_path(state, "packages/used/" A), (struct timespec[2]){ { .tv_sec = 1 }, { .tv_sec = 1 } }, 0), 0);
        }
        if (rv_store_prune(store, &p, &pruned, &err) < 0)
                fail_msg("%s: %s", prune_rows[row].name, err.message);
        for (const char *d = "abc"; *d; d++) {
                char path[160] = "packages/layers/";

                memset(path + 16, *d, 64);
                path[80] = 0;
                assert_int_equal(is_there(state, path), prune_rows[row].is_dry || !strchr(prune_rows[row].gone, *d));
        }
        assert_int_equal(pruned.n_layers, strlen(prune_rows[row].gone));
        assert_int_equal(pruned.n_in_use, prune_rows[row].in_use != 0);
        assert_int_equal(pruned.bytes, pruned.n_layers * one);
        assert_int_equal(pruned.left_bytes, (3 - pruned.n_layers) * one);
        assert_int_equal(pruned.n_locks, prune_rows[row].n_locks);
        assert_int_equal(is_there(state, "packages/locks/" KEY ".json"), prune_rows[row].is_dry || !pruned.n_locks);
        rv_close(use);
}

static void pruned(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(prune_rows); i++) {
                void *own = NULL;

                print_message("%s\n", prune_rows[i].name);
                assert_int_equal(tmp_make(&own), 0);
                prune_row(&own, i);
                tmp_remove(&own);
        }
        (void)state;
}

static void not_removed(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        struct rv_store_prune p = { .now_us = DAY_US * 100, .max_bytes = 0, .remove = cannot_remove };
        struct rv_store_pruned pruned;
        struct rv_error err = { 0 };

        make_layer(state, A, 1);
        assert_int_equal(rv_store_prune(store, &p, &pruned, &err), -EPERM);
        assert_string_equal(err.message, "no right to remove aaaa");
        assert_int_equal(pruned.n_layers, 0);
        assert_true(is_there(state, "packages/used/" A));
}

static void owner_of_layers(void **state)
{
        _cleanup_(rv_store_closep) struct rv_store *store = open_store(state);
        struct rv_store_list list;
        struct rv_error err = { 0 };

        assert_false(rv_store_layer_is_there(store, A));
        make_layer(state, A, 1);
        assert_true(rv_store_layer_is_there(store, A));
        assert_false(rv_store_layer_is_there(store, B));
        assert_false(rv_store_layer_is_there(store, "../locks"));
        assert_int_equal(symlink(A, tmp_path(state, "packages/layers/" B)), 0);
        assert_false(rv_store_layer_is_there(store, B));
        assert_int_equal(chmod(tmp_path(state, "packages/layers/" A), 0775), 0);
        assert_false(rv_store_layer_is_there(store, A));
        assert_int_equal(chmod(tmp_path(state, "packages/layers"), 0777), 0);
        assert_int_equal(rv_store_list(store, &list, &err), -EPERM);
        assert_non_null(strstr(err.message, "layers/ is not the right user's"));
}

#define TMP(name) cmocka_unit_test_setup_teardown(name, tmp_make, tmp_remove)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(kept_and_found),
                TMP(changed_on_the_disk),
                TMP(kept_at_once),
                TMP(found_among_many),
                TMP(claimed_once),
                TMP(claimed_by_many),
                TMP(claim_not_waited_for),
                TMP(killed),
                TMP(artifacts),
                TMP(listed),
                TMP(pruned),
                TMP(not_removed),
                TMP(owner_of_layers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
