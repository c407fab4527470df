#include "store/outcomes.h"

#include "audit/log_private.h"
#include "base/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STAMP ".pruned"
#define PATH_SIZE (sizeof(RV_OUTCOMES_DIRECTORY) + RV_LOG_ID_SIZE)

static int fail_on(const struct rv_log *log, struct rv_error *err, int r, const char *name, const char *what)
{
        return rv_error_set(err, r, "%s/%s: %s: %s", log->state_dir, name, what, strerror(-r));
}

static bool is_id(const char *name)
{
        return strspn(name, "0123456789abcdef") == RV_LOG_ID_SIZE - 1 && name[RV_LOG_ID_SIZE - 1] == 0;
}

static int make_path(const struct rv_log *log, const char *decision_id, char ret[PATH_SIZE], struct rv_error *err)
{
        if (!is_id(decision_id))
                return rv_error_set(err, rv_raise(-EINVAL), "%s: an outcome of a decision without an id", log->state_dir);
        snprintf(ret, PATH_SIZE, RV_OUTCOMES_DIRECTORY "/%s", decision_id);
        return 0;
}

/* The file's name has to survive a crash as well as its bytes. */
static int sync_directory(struct rv_log *log, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = openat(log->state_fd, RV_OUTCOMES_DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        if (fd < 0 || fsync(fd) < 0)
                return fail_on(log, err, rv_raise(-errno), RV_OUTCOMES_DIRECTORY, "cannot sync the directory");
        return 0;
}

int rv_outcomes_put(struct rv_log *log, const char *decision_id, const void *data, size_t n, struct rv_error *err)
{
        char path[PATH_SIZE];
        int r;

        r = make_path(log, decision_id, path, err);
        if (r < 0)
                return rv_trace(r);
        if (n > RV_OUTCOMES_BYTES_MAX)
                return fail_on(log, err, rv_raise(-EFBIG), path, "cannot keep the outcome");
        if (mkdirat(log->state_fd, RV_OUTCOMES_DIRECTORY, 0700) < 0 && errno != EEXIST)
                return fail_on(log, err, rv_raise(-errno), RV_OUTCOMES_DIRECTORY, "cannot make the directory");
        r = rv_write_file_at(log->state_fd, path, data, n, 0600, true);
        if (r < 0)
                return fail_on(log, err, rv_trace(r), path, "cannot keep the outcome");
        return rv_trace(sync_directory(log, err));
}

int rv_outcomes_get(
        struct rv_log *log, const char *decision_id, const char *sha256, struct rv_buf *out, struct rv_error *err)
{
        char path[PATH_SIZE], own[RV_SHA256_HEX_SIZE];
        size_t start = out->size;
        int r;

        r = make_path(log, decision_id, path, err);
        if (r < 0)
                return rv_trace(r);
        r = rv_read_file_at(log->state_fd, path, RV_OUTCOMES_BYTES_MAX, out);
        if (r == -EFBIG || r == -ELOOP || r == -EINVAL)
                r = -EBADMSG;
        if (r == 0) {
                rv_sha256_hex(out->data ? out->data + start : "", out->size - start, own);
                if (strcmp(own, sha256) != 0)
                        r = -EBADMSG;
        }
        if (r == 0)
                return 0;
        out->size = start;
        return fail_on(log, err, rv_raise(r), path,
                       r == -EBADMSG  ? "these are not the bytes that the log has the digest of"
                       : r == -ENOENT ? "the outcome is not there any more"
                                      : "cannot read the outcome");
}

static uint64_t age_us(const struct stat *st)
{
        uint64_t now = rv_clock_us(CLOCK_REALTIME),
                 then = (uint64_t)st->st_mtim.tv_sec * 1000000 + (uint64_t)st->st_mtim.tv_nsec / 1000;

        return now > then ? now - then : 0;
}

/* Whether it is time, and if so the hour begins anew. */
static bool is_due(int fd)
{
        struct stat st;

        if (fstatat(fd, STAMP, &st, AT_SYMLINK_NOFOLLOW) == 0) {
                if (age_us(&st) < RV_OUTCOMES_PRUNE_EVERY_US)
                        return false;
                return utimensat(fd, STAMP, NULL, AT_SYMLINK_NOFOLLOW) == 0;
        }
        return errno == ENOENT && mknodat(fd, STAMP, S_IFREG | 0600, 0) == 0;
}

int rv_outcomes_prune(struct rv_log *log)
{
        int n_removed = 0, fd = openat(log->state_fd, RV_OUTCOMES_DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        const struct dirent *e;
        struct stat st;
        DIR *d;

        if (fd < 0)
                return errno == ENOENT ? 0 : rv_raise(-errno);
        d = is_due(fd) ? fdopendir(fd) : NULL;
        if (!d) {
                rv_close(fd);
                return 0;
        }
        while ((e = readdir(d))) {
                uint64_t most = is_id(e->d_name) ? RV_OUTCOMES_PRUNE_US : RV_OUTCOMES_PRUNE_EVERY_US;

                if (e->d_name[0] == '.' || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 || age_us(&st) < most)
                        continue;
                n_removed += unlinkat(fd, e->d_name, 0) == 0;
        }
        closedir(d);
        return n_removed;
}
