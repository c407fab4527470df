/*
 * What it takes to find a held lock among N.
 *
 *     store_locks [N]    (default 100000)
 *
 * The locks lie where TMPDIR says, each with ten packages, and are asked for in an order that looks random.
 */
#include "base/clock.h"
#include "package/lock.h"
#include "store/packages.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_PACKAGES 10
#define N_LOOKUPS 2000

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void)st;
        (void)flag;
        (void)ftw;
        return remove(path);
}

static json_t *make_lock(void)
{
        json_t *packages = json_array();

        for (int i = 0; i < N_PACKAGES; i++) {
                char name[16];

                snprintf(name, sizeof(name), "package-%d", i);
                json_array_append_new(packages,
                        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:s, s:b, s:s, s:[], s:b, s:b, s:b, s:[s]}", "name", name, "version", "1.0.0",
                                  "file", "package-1.0.0-py3-none-any.whl", "hash", "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
                                  "url", "https://registry.example/packages/ab/cd/package-1.0.0-py3-none-any.whl", "kind", "wheel", "size_bytes", 100000,
                                  "published_at", 1700000000, "license", "MIT", "direct", 1, "requested", "package>=1", "extras", "yanked", 0,
                                  "install_script", 0, "registry_hash", 1, "path", name));
        }
        return json_pack("{s:s, s:s, s:{s:s, s:s, s:s}, s:o}", "schema", RV_LOCK_SCHEMA, "language", "python", "runtime", "tag", "cp311-linux_x86_64",
                         "version", "3.11", "interpreter", "/usr/bin/python3", "packages", packages);
}

static void fail(const char *what, const char *why)
{
        fprintf(stderr, "%s: %s\n", what, why);
        exit(1);
}

/* One is kept as it should be, the others are copies of its file. */
static void fill(struct rv_store *store, const char *dir, unsigned n)
{
        _cleanup_(rv_json_unrefp) json_t *lock = make_lock();
        char key[65], path[256], text[16384];
        struct rv_error err = { 0 };
        ssize_t size;
        int fd;

        snprintf(key, sizeof(key), "%064x", 0u);
        if (rv_store_lock_keep(store, key, lock, 1, &err) < 0)
                fail("keep", err.message);
        snprintf(path, sizeof(path), "%s/packages/locks/%s.json", dir, key);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        size = read(fd, text, sizeof(text));
        close(fd);
        for (unsigned i = 1; i < n; i++) {
                snprintf(path, sizeof(path), "%s/packages/locks/%064x.json", dir, i);
                fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
                if (fd < 0 || write(fd, text, (size_t)size) != size)
                        fail(path, "cannot be written");
                close(fd);
        }
}

static int compare(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

        return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
        unsigned n = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 100000;
        static uint64_t took_us[N_LOOKUPS];
        const char *place = getenv("TMPDIR");
        struct rv_store *store = NULL;
        struct rv_error err = { 0 };
        char dir[128];
        int fd;

        snprintf(dir, sizeof(dir), "%s/store-locks-XXXXXX", place ? place : "/tmp");
        if (n == 0 || !mkdtemp(dir))
                fail(dir, "cannot be made");
        fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (rv_store_open(fd, dir, geteuid(), &store, &err) < 0)
                fail("open", err.message);
        fill(store, dir, n);
        for (unsigned i = 0; i < N_LOOKUPS; i++) {
                uint64_t began = rv_clock_us(CLOCK_MONOTONIC), us;
                json_t *lock = NULL;
                char key[65];

                snprintf(key, sizeof(key), "%064x", (unsigned)(i * UINT64_C(2654435761) % n));
                if (rv_store_lock_find(store, key, &lock, &us, &err) != 0)
                        fail(key, "was not found");
                took_us[i] = rv_clock_us(CLOCK_MONOTONIC) - began;
                json_decref(lock);
        }
        qsort(took_us, N_LOOKUPS, sizeof(took_us[0]), compare);
        printf("%u locks of %d packages: found in %" PRIu64 " us (median), %" PRIu64 " us (99 of 100)\n", n, N_PACKAGES, took_us[N_LOOKUPS / 2], took_us[N_LOOKUPS * 99 / 100]);
        rv_store_close(store);
        close(fd);
        return nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0 ? 0 : 1;
}
