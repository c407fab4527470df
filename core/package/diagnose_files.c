#include "package/diagnose_private.h"

#include "base/fd.h"
#include "base/hash.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/* pip reads files while it resolves, and gives up on one that is not what the index says: is that so? */

#define FILE_BYTES_MAX ((size_t)256 << 20)

static int compare(int dir_fd, const char *name, const char *told, bool *ret_is_same)
{
        _cleanup_(rv_closep) int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
        char hex[RV_SHA256_HEX_SIZE];
        int r = fd < 0 ? rv_raise(-errno) : rv_sha256_fd(fd, hex);

        if (r < 0)
                return rv_trace(r);
        *ret_is_same = strcmp(hex, told) == 0;
        return 0;
}

int rv__diagnose_files(const struct rv_package_trouble *t, const struct rv__probe *probes, size_t n,
        struct rv__finding *f, struct rv_error *err)
{
        struct rv_fetch_item items[RV__PROBES_MAX] = { 0 };
        char names[RV__PROBES_MAX][24];
        _cleanup_(rv_arena_fini) struct rv_arena arena = { 0 };
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
                snprintf(names[i], sizeof(names[i]), "d%zu", i);
                items[i].q = (struct rv_fetch_request){ .method = "GET" };
                items[i].file = names[i];
                r = rv_metadata_request(t->source, probes[i].page, probes[i].url, &arena, &items[i].q);
                items[i].q.max_bytes = FILE_BYTES_MAX;
        }
        if (r)
                return r < 0 ? rv_trace(r) : 0;
        r = rv_fetch_many(t->source->helper_fd, items, n, t->dir_fd, t->source->stop, t->source->deadline_us, err);
        for (size_t i = 0; i < n; i++) {
                bool is_same = true;

                if (r == 0 && items[i].answer.status == 200 && probes[i].sha256 &&
                        compare(t->dir_fd, names[i], probes[i].sha256, &is_same) == 0 && !is_same) {
                        rv__find(f, RV_PACKAGE_CAUSE_CONFLICT, probes[i].package,
                                 "%.80s: the file %.120s is not the one that the registry names by its hash; somebody has changed it, or the registry is damaged",
                                 probes[i].package, probes[i].file);
                        f->is_hash = true;
                }
                (void)unlinkat(t->dir_fd, names[i], 0);
                rv_metadata_request_wipe(&items[i].q);
                rv_fetch_answer_fini(&items[i].answer);
        }
        return rv_trace(r);
}
