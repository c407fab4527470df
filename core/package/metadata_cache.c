#include "package/metadata_cache.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "package/registry_credentials.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_BYTES_MAX ((size_t)128 << 20)
#define DEPTH 8u
#define FORM "1"                     /* changes with the form of a page */

/* All that makes two registries the same is in the name, so that a tenant's private page is no other's. */
static void name_file(const struct rv_metadata_source *src, const char *name, char ret[RV_SHA256_HEX_SIZE])
{
        char registry[RV_SHA256_HEX_SIZE];
        struct rv_sha256 h;
        uint8_t digest[RV_SHA256_SIZE];

        rv_registry_fingerprint(src->registry, registry);
        rv_sha256_init(&h);
        rv_sha256_update(&h, FORM, sizeof(FORM));
        rv_sha256_update(&h, registry, sizeof(registry));
        rv_sha256_update(&h, name, strlen(name));
        rv_sha256_final(&h, digest);
        rv_hex(digest, sizeof(digest), ret);
}

static bool is_young(int dir_fd, const char *file, uint64_t ttl_ms)
{
        struct stat st;
        int64_t age_s;

        if (ttl_ms == 0 || fstatat(dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return false;
        age_s = (int64_t)(rv_now_us() / 1000000) - st.st_mtim.tv_sec;
        return age_s >= -1 && (uint64_t)RV_MAX(age_s, (int64_t)0) * 1000 < ttl_ms;
}

json_t *rv_metadata_cache_get(const struct rv_metadata_source *src, const char *name)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        char file[RV_SHA256_HEX_SIZE], digest[RV_SHA256_HEX_SIZE];
        const char *json;
        json_t *page;

        if (src->cache_dir_fd < 0 || src->cache_ttl_ms == 0)
                return NULL;
        name_file(src, name, file);
        if (!is_young(src->cache_dir_fd, file, src->cache_ttl_ms) ||
                rv_read_file_at(src->cache_dir_fd, file, PAGE_BYTES_MAX, &text) < 0 || text.size < 66 ||
                text.data[64] != '\n')
                return NULL;
        json = text.data + 65;
        rv_sha256_hex(json, text.size - 65, digest);
        if (memcmp(text.data, digest, 64) != 0 || rv_json_read(json, text.size - 65, DEPTH, &page, NULL) < 0)
                return NULL;
        if (strcmp(rv_json_get_string(page, "name", ""), name) != 0 || !json_is_object(json_object_get(page, "versions"))) {
                json_decref(page);
                return NULL;
        }
        return page;
}

void rv_metadata_cache_put(const struct rv_metadata_source *src, const char *name, const json_t *page)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        char file[RV_SHA256_HEX_SIZE], digest[RV_SHA256_HEX_SIZE];
        char *json;

        if (src->cache_dir_fd < 0)
                return;
        json = json_dumps(page, JSON_COMPACT);
        if (!json)
                return;
        rv_sha256_hex(json, strlen(json), digest);
        rv_buf_printf(&text, "%s\n", digest);
        rv_buf_puts(&text, json);
        free(json);
        name_file(src, name, file);
        if (rv_buf_error(&text) == 0 && text.size <= PAGE_BYTES_MAX)
                (void)rv_write_file_at(src->cache_dir_fd, file, text.data, text.size, 0600, false);
}

/* ---- Bounds ---- */

struct kept {
        char name[NAME_MAX + 1];
        struct timespec at;
        uint64_t bytes;
};

static int compare_age(const void *pa, const void *pb)
{
        const struct kept *a = pa, *b = pb;

        if (a->at.tv_sec != b->at.tv_sec)
                return a->at.tv_sec < b->at.tv_sec ? -1 : 1;
        if (a->at.tv_nsec != b->at.tv_nsec)
                return a->at.tv_nsec < b->at.tv_nsec ? -1 : 1;
        return strcmp(a->name, b->name);
}

static size_t list(int dir_fd, struct kept **ret)
{
        int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *entry;
        size_t n = 0, capacity = 0;

        if (!dir) {
                rv_close(fd);
                return 0;
        }
        while ((entry = readdir(dir)) != NULL) {
                struct stat st;

                if (*entry->d_name == '.' || fstatat(dir_fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
                        !S_ISREG(st.st_mode))
                        continue;
                if (n == capacity) {
                        struct kept *more = reallocarray(*ret, capacity + 256, sizeof(**ret));

                        if (!more)
                                break;
                        *ret = more;
                        capacity += 256;
                }
                snprintf((*ret)[n].name, sizeof((*ret)[n].name), "%s", entry->d_name);
                (*ret)[n].at = st.st_mtim;
                (*ret)[n++].bytes = (uint64_t)st.st_size;
        }
        closedir(dir);
        return n;
}

size_t rv_metadata_cache_prune(int dir_fd, size_t max_files, uint64_t max_bytes)
{
        _cleanup_(rv_freep) struct kept *kept = NULL;
        size_t n = list(dir_fd, &kept), n_removed = 0;
        uint64_t bytes = 0;

        if (n == 0)
                return 0;
        qsort(kept, n, sizeof(*kept), compare_age);
        for (size_t i = 0; i < n; i++)
                bytes += kept[i].bytes;
        for (size_t i = 0; i < n && (n - i > max_files || bytes > max_bytes); i++) {
                bytes -= kept[i].bytes;
                n_removed += unlinkat(dir_fd, kept[i].name, 0) == 0;
        }
        return n_removed;
}
