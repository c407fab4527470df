#include "audit/live.h"

#include "audit/live_private.h"
#include "audit/redact.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define TRIES 4

static int make_file(struct rv_log *log, const char *name)
{
        int fd = openat(log->audit_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);

        if (fd >= 0 || errno != ENOENT)
                return fd;
        if (mkdirat(log->audit_fd, RV_LIVE_DIRECTORY, 0700) < 0 && errno != EEXIST)
                return -1;
        return openat(log->audit_fd, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

/* A place before which none of our records can be: an incomplete last line, at most one record, may be cut off. */
static int write_place(struct rv_log *log, int fd, const char *name, struct rv_error *err)
{
        char text[64];
        struct stat st;
        uint64_t offset;
        int r, n;

        r = rv_log_open_segment(log, err);
        if (r < 0)
                return rv_trace(r);
        if (r > 0 && fstat(log->segment_fd, &st) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), log->segment, "cannot look at the file");
        offset = r > 0 ? (uint64_t)st.st_size : 0;
        offset -= RV_MIN(offset, (uint64_t)RV_LOG_RECORD_BYTES_MAX);
        n = snprintf(text, sizeof(text), "%s %llu\n", r > 0 ? log->segment : "-", (unsigned long long)offset);
        r = rv_write_all(fd, text, (size_t)n);
        if (r < 0)
                return rv_log_fail(log, err, r, name, "cannot write");
        log->live_bytes = (size_t)n;
        return 0;
}

/*
 * Between making and locking, a reeve that starts may take the file for a dead one's. It is left to that one, and
 * the next try has another name.
 */
static int make_locked(struct rv_log *log, char name[RV_LIVE_NAME_SIZE], struct rv_error *err)
{
        struct stat st;
        int fd, r;

        for (int i = 0; i < TRIES; i++) {
                snprintf(name, RV_LIVE_NAME_SIZE, RV_LIVE_DIRECTORY "/%s", log->instance);
                fd = make_file(log, name);
                if (fd < 0)
                        return rv_log_fail(log, err, rv_raise(-errno), name, "cannot make the file");
                if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink == 1)
                        return fd;
                (void)unlinkat(log->audit_fd, name, 0);
                rv_close(fd);
                r = rv_log_make_instance(log, err);
                if (r < 0)
                        return rv_trace(r);
        }
        return rv_log_fail(log, err, rv_raise(-EBUSY), name, "cannot lock the file");
}

int rv_log_enlist(struct rv_log *log, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        char name[RV_LIVE_NAME_SIZE];
        int r;

        fd = make_locked(log, name, err);
        if (fd < 0)
                return rv_trace(fd);
        /* Who erases the secret (erase.h) does so under the lock, having seen no writer. */
        r = rv_log_lock(log, err);
        if (r == 0) {
                r = rv_log_renew_secret(log, err);
                rv_log_unlock(log);
        }
        if (r == 0)
                r = write_place(log, fd, name, err);
        if (r < 0) {
                (void)unlinkat(log->audit_fd, name, 0);
                return rv_trace(r);
        }
        log->live_fd = rv_take_fd(&fd);
        return 0;
}

void rv_log_owe(struct rv_log *log)
{
        log->n_owed++;
}

void rv_log_settle(struct rv_log *log)
{
        if (rv_check(log->n_owed > 0))
                log->n_owed--;
}

int rv_log_leave(struct rv_log *log, const json_t *body)
{
        _cleanup_(rv_json_unrefp) json_t *copy = json_copy((json_t *)body);
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };
        int r;

        if (log->live_fd < 0)
                return rv_raise(-ENOENT);
        r = copy ? rv_log_redact(log, copy) : rv_raise(-ENOMEM);
        if (r == 0)
                r = rv_json_canonical(copy, &line);
        if (r == 0)
                r = rv_buf_putc(&line, '\n');
        if (r < 0)
                return rv_trace(r);
        if (log->live_bytes + line.size > RV_LIVE_BYTES_MAX)
                return rv_raise(-ENOSPC);
        r = rv_write_all(log->live_fd, line.data, line.size);
        if (r == 0)
                log->live_bytes += line.size;
        return rv_trace(r);
}

void rv_log_delist(struct rv_log *log)
{
        char name[RV_LIVE_NAME_SIZE];

        if (log->live_fd < 0)
                return;
        if (log->n_owed == 0) {
                snprintf(name, sizeof(name), RV_LIVE_DIRECTORY "/%s", log->instance);
                (void)unlinkat(log->audit_fd, name, 0);
        }
        log->live_fd = rv_close(log->live_fd);
}
