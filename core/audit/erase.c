#include "audit/erase.h"

#include "audit/live_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define OLD_BYTES_MAX 4096

static void closedirp(DIR **d)
{
        if (*d)
                closedir(*d);
}

/* Locked: a writer that enlists from now on looks whether its secret is still the one, and waits for us to do so. */
static int check_no_writer(struct rv_log *log, struct rv_error *err)
{
        _cleanup_(closedirp) DIR *dir = NULL;
        struct dirent *e;
        int fd;

        fd = openat(log->audit_fd, RV_LIVE_DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        dir = fd >= 0 ? fdopendir(fd) : NULL;
        if (fd < 0 && errno == ENOENT)
                return 0;
        if (!dir) {
                int r = rv_raise(-errno);

                rv_close(fd);
                return rv_log_fail(log, err, r, RV_LIVE_DIRECTORY, "cannot read the directory");
        }
        while ((e = readdir(dir))) {
                _cleanup_(rv_closep) int live_fd = -EBADF;

                if (e->d_name[0] == '.')
                        continue;
                live_fd = openat(fd, e->d_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
                if (live_fd >= 0 && flock(live_fd, LOCK_EX | LOCK_NB) < 0)
                        return rv_error_set(err, rv_raise(-EBUSY), "%s/audit: a reeve that writes to this log is running (audit/live/%.40s); stop it, or wait for it to end",
                                            log->state_dir, e->d_name);
        }
        return 0;
}

/* Its file has no name any more. */
static void overwrite(int old_fd)
{
        char noise[OLD_BYTES_MAX];
        struct stat st;
        size_t n;

        if (fstat(old_fd, &st) < 0 || !S_ISREG(st.st_mode))
                return;
        n = RV_MIN((size_t)st.st_size, sizeof(noise));
        memset(noise, 'x', n);
        if (pwrite(old_fd, noise, n, 0) == (ssize_t)n)
                (void)fdatasync(old_fd);
}

static int append_gap(struct rv_log *log, uint64_t *ret_seq, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s}", "cause", "secret_erased");
        struct rv_log_spot spot;
        int r;

        if (!body)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for a gap record");
        r = rv_log_append_locked(log, "gap", body, &spot, err);
        if (r == 0)
                r = rv_log_sync(log, err);
        if (r < 0)
                return rv_trace(r);
        *ret_seq = spot.seq;
        return 0;
}

static int erase_locked(struct rv_log *log, uint64_t *ret_seq, struct rv_error *err)
{
        _cleanup_(rv_closep) int old_fd = -EBADF;
        int r;

        r = check_no_writer(log, err);
        /* If no record could follow, nothing is erased. */
        if (r == 0)
                r = rv_log_read_tail(log, err);
        if (r < 0)
                return rv_trace(r);
        old_fd = openat(log->state_fd, RV_LOG_SECRET_NAME, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        r = rv_log_make_secret(log, err);
        if (r < 0)
                return rv_trace(r);
        if (old_fd >= 0)
                overwrite(old_fd);
        r = append_gap(log, ret_seq, err);
        if (r < 0)
                rv_error_prefix(err, "the old secret is erased, but the record that says so could not be written");
        return rv_trace(r);
}

int rv_log_erase_secret(int state_fd, const char *state_dir, uint64_t *ret_seq, struct rv_error *err)
{
        _cleanup_(rv_log_closep) struct rv_log *log = NULL;
        int r;

        r = rv_log_open_without_secret(state_fd, state_dir, &log, err);
        if (r == 0)
                r = rv_log_lock(log, err);
        if (r < 0)
                return rv_trace(r);
        r = erase_locked(log, ret_seq, err);
        rv_log_unlock(log);
        return rv_trace(r);
}
