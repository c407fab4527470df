#include "package/diagnose_private.h"

#include "base/fd.h"
#include "base/hash.h"
#include "package/acquire.h"
#include "package/unpack.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/*
 * Tools read files while they resolve, and give up on one that is not what the index says, or that they cannot read: is
 * that so? What is in them is told by reeve-unpack.
 */

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

static void take_hash(
        const struct rv_package_trouble *t, const struct rv__probe *p, const char *name, struct rv__finding *f)
{
        bool is_same = true;

        if (!p->sha256 || compare(t->dir_fd, name, p->sha256, &is_same) < 0 || is_same)
                return;
        rv__find(f, RV_PACKAGE_CAUSE_CONFLICT, p->package,
                 "%.80s: the file %.120s is not the one that the registry names by its hash; somebody has changed it, or the registry is damaged", p->package, p->file);
        f->install_cause = "hash_mismatch";
}

static bool is_wheel(const char *file)
{
        size_t n = strlen(file);

        return n > 4 && strcmp(file + n - 4, ".whl") == 0;
}

/* The first that is not fit to be installed. */
static int read_files(const struct rv_package_trouble *t, const struct rv__probe *const *probes,
        const char *const *names, size_t n, struct rv__finding *f, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *job = NULL, *result = NULL;
        json_t *list = json_array(), *found;
        size_t i;
        int r;

        for (i = 0; i < n; i++)
                json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "file", names[i], "name", probes[i]->package, "version", probes[i]->version, "file_name", probes[i]->file));
        job = json_pack("{s:s, s:o}", "language", rv_language_name(t->source->registry->language), "artifacts", list);
        if (!job || json_array_size(list) != n)
                return rv_raise(-ENOMEM);
        r = rv_unpack_scan(t->unpack_fd, t->dir_fd, job, t->source->stop, t->source->deadline_us, &result, err);
        if (r < 0)
                return rv_trace(r);
        json_array_foreach(json_object_get(result, "artifacts"), i, found) {
                const json_t *fault = json_object_get(found, "fault");
                struct rv_package_failure failure = { 0 };
                json_t *package;

                if (f->cause != RV_PACKAGE_CAUSE_NONE || !json_is_object(fault) || i >= n)
                        continue;
                package = json_pack("{s:s, s:s}", "name", probes[i]->package, "version", probes[i]->version);
                (void)rv_acquire_fault(fault, package, &failure);
                json_decref(package);
                rv__find(f, RV_PACKAGE_CAUSE_CONFLICT, probes[i]->package, "%s", failure.message);
                f->install_cause = failure.cause;
        }
        return 0;
}

static int look_at_files(const struct rv_package_trouble *t, const struct rv__probe *probes,
        const struct rv_fetch_item *items, size_t n, struct rv__finding *f, struct rv_error *err)
{
        const struct rv__probe *there[RV__PROBES_MAX];
        const char *names[RV__PROBES_MAX];
        size_t n_there = 0;

        for (size_t i = 0; i < n; i++) {
                if (items[i].answer.code != RV_FETCH_OK || items[i].answer.status != 200) {
                        rv__diagnose_answer(&probes[i], &items[i], f);
                        continue;
                }
                take_hash(t, &probes[i], items[i].file, f);
                if (!is_wheel(probes[i].file))
                        continue;       /* nobody reads it here, and it is not what would be installed */
                there[n_there] = &probes[i];
                names[n_there++] = items[i].file;
        }
        if (f->cause != RV_PACKAGE_CAUSE_NONE || t->unpack_fd <= 0 || n_there == 0)
                return 0;
        return rv_trace(read_files(t, there, names, n_there, f, err));
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
        r = rv_metadata_fetch(t->source, items, n, t->dir_fd, err);
        if (r == 0)
                r = look_at_files(t, probes, items, n, f, err);
        for (size_t i = 0; i < n; i++) {
                (void)unlinkat(t->dir_fd, names[i], 0);
                rv_metadata_request_wipe(&items[i].q);
                rv_fetch_answer_fini(&items[i].answer);
        }
        return rv_trace(r);
}
