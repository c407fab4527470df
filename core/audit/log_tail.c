#include "audit/log_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_READ_BYTES ((uint64_t)4096)
#define SEQ_MAX ((json_int_t)1 << 52)   /* half of what a record's numbers may be: the other half is never used up */

static const char no_prev[] = "0000000000000000000000000000000000000000000000000000000000000000";

/* Of the directory: it changes when a segment is made or moved away, and hardly otherwise. */
static void note_listing(struct rv_log *log)
{
        struct stat st;

        if (fstat(log->audit_fd, &st) == 0)
                log->listed_at = st.st_mtim;
}

int rv_log_open_segment(struct rv_log *log, struct rv_error *err)
{
        int r;

        if (log->segment_fd >= 0)
                return 1;
        note_listing(log);
        r = rv_segments_newest(log->audit_fd, log->audit_path, NULL, log->segment, err);
        if (r <= 0)
                return rv_trace(r);
        log->segment_first = rv_log_segment_first(log->segment);
        log->segment_fd = openat(log->audit_fd, log->segment, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
        if (log->segment_fd < 0)
                return rv_log_fail(log, err, rv_raise(-errno), log->segment, "cannot open for writing");
        log->is_tail_known = false;
        return 1;
}

/* Makes the segment that begins with record @seq and opens it. */
static int make_segment(struct rv_log *log, uint64_t seq, struct rv_error *err)
{
        char name[RV_LOG_SEGMENT_NAME_SIZE];
        int fd;

        rv_log_segment_name(seq, name);
        fd = openat(log->audit_fd, name, O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
                return rv_log_fail(log, err, rv_raise(-errno), name, "cannot make the file");
        note_listing(log);
        rv_close(log->segment_fd);
        log->segment_fd = fd;
        memcpy(log->segment, name, sizeof(name));
        log->segment_first = seq;
        log->is_tail_known = false;
        return 0;
}

/* A segment whose end is read. */
struct part {
        const char *name;
        int fd;
        uint64_t size;
};

/* What its end looks like. */
struct end {
        struct rv_buf buf;
        const char *line;         /* the last complete one, in buf; NULL: there is none */
        size_t n_line, n_rest;    /* n_rest: bytes after it */
};

static void end_fini(struct end *end)
{
        rv_buf_fini(&end->buf);
}

/* pread() of bytes that are there. */
static int read_part(
        struct rv_log *log, const struct part *part, uint64_t offset, size_t n, char *ret, struct rv_error *err)
{
        while (n) {
                ssize_t done = pread(part->fd, ret, n, (off_t)offset);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done <= 0)
                        return rv_log_fail(log, err, rv_raise(done < 0 ? -errno : -EIO), part->name, "cannot read");
                ret += done;
                offset += (uint64_t)done;
                n -= (size_t)done;
        }
        return 0;
}

/* Reads the end of the file far enough back to hold the last complete line and what follows it. */
static int read_end(struct rv_log *log, const struct part *part, struct end *ret, struct rv_error *err)
{
        uint64_t want = RV_MIN(FIRST_READ_BYTES, part->size),
                 most = RV_MIN(2 * (uint64_t)RV_LOG_RECORD_BYTES_MAX, part->size);
        struct rv_buf *buf = &ret->buf;
        const char *end, *before;
        int r;

        for (;;) {
                buf->size = 0;
                r = rv_buf_reserve(buf, (size_t)want);
                if (r < 0)
                        return rv_log_fail(log, err, r, part->name, "cannot read the last record");
                r = read_part(log, part, part->size - want, (size_t)want, buf->data, err);
                if (r < 0)
                        return rv_trace(r);
                buf->size = (size_t)want;
                end = memrchr(buf->data, '\n', buf->size);
                before = end ? memrchr(buf->data, '\n', (size_t)(end - buf->data)) : NULL;
                if (before || want == most)
                        break;
                want = RV_MIN(want * 16, most);
        }
        if ((!end || !before) && want < part->size)
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/audit/%s: the last line is longer than any record; this file is damaged, keep it and move audit/ away to begin a new log",
                                    log->state_dir, part->name);
        ret->line = end ? (before ? before + 1 : buf->data) : NULL;
        ret->n_line = end ? (size_t)(end - ret->line) : 0;
        ret->n_rest = end ? buf->size - (size_t)(end + 1 - buf->data) : buf->size;
        return 0;
}

json_t *rv_log_parse(const char *line, size_t n)
{
        /* jansson reads over a NUL that follows a number or a literal. */
        if (n && memchr(line, 0, n))
                return NULL;
        return json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
}

/* The record that the next one follows. */
static int take_line(struct rv_log *log, const char *segment, const struct end *end, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *record = rv_log_parse(end->line, end->n_line);
        const json_t *seq = json_object_get(record, "seq");
        const char *fault = NULL;

        if (!json_is_object(record))
                fault = "it is no JSON object";
        else if (!json_is_integer(seq) || json_integer_value(seq) < 0)
                fault = "it has no seq";
        else if (json_integer_value(seq) > SEQ_MAX)
                fault = "its seq is one that no log comes to";
        else if (strlen(rv_json_get_string(record, "prev", "")) != 64)
                fault = "it has no prev";
        else if (!*rv_json_get_string(record, "kind", ""))
                fault = "it has no kind";
        else if (strcmp(rv_json_get_string(record, "log_id", ""), log->id) != 0)
                fault = "its log_id is not the one in audit/id";
        if (fault)
                return rv_error_set(err, rv_raise(-EBADMSG),
                                    "%s/audit/%s: the last line is no record of this log (%s), so nothing is appended to it; restore the file from a copy, or move audit/ away to begin a new log",
                                    log->state_dir, segment, fault);
        log->next_seq = (uint64_t)json_integer_value(seq) + 1;
        rv_sha256_hex(end->line, end->n_line, log->prev);
        return 0;
}

/* The newest segment holds no record: the one before says what comes next. */
static int take_before(struct rv_log *log, struct rv_error *err)
{
        _cleanup_(end_fini) struct end end = { 0 };
        _cleanup_(rv_closep) int fd = -EBADF;
        char name[RV_LOG_SEGMENT_NAME_SIZE];
        struct part part = { .name = name };
        struct stat st;
        int r;

        r = rv_segments_newest(log->audit_fd, log->audit_path, log->segment, name, err);
        if (r < 0)
                return rv_trace(r);
        if (r == 0)
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/audit/%s: has no record to continue, and the segment before it is not there; put that back, or move audit/ away to begin a new log",
                                    log->state_dir, log->segment);
        part.fd = fd = openat(log->audit_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (fd < 0 || fstat(fd, &st) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), name, "cannot read");
        part.size = (uint64_t)st.st_size;
        if (part.size)
                r = read_end(log, &part, &end, err);
        if (r >= 0 && end.line)
                r = take_line(log, name, &end, err);
        if (r < 0)
                return rv_trace(r);
        if (!end.line || end.n_rest || log->next_seq != log->segment_first)
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/audit/%s: does not end with the record before the first of %s, so nothing is appended; restore the file from a copy, or move audit/ away to begin a new log",
                                    log->state_dir, name, log->segment);
        return 0;
}

/* A segment without a record. */
static int begin_segment(struct rv_log *log, struct rv_error *err)
{
        /* Whoever made the file may have died before this. */
        if (fsync(log->audit_fd) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), "", "cannot sync the directory");
        if (log->segment_first)
                return rv_trace(take_before(log, err));
        log->next_seq = 0;
        memcpy(log->prev, no_prev, sizeof(no_prev));
        return 0;
}

/* Ours is not the newest one any more. What others synced before they began another is ours to have synced, too. */
static int leave_segment(struct rv_log *log, struct rv_error *err)
{
        if (log->is_dirty && fdatasync(log->segment_fd) < 0) {
                log->broken = rv_raise(-errno);
                rv_commit_failed(log);
                return rv_log_fail(log, err, log->broken, log->segment, "cannot sync the log");
        }
        log->is_dirty = false;
        log->segment_fd = rv_close(log->segment_fd);
        return 0;
}

/* Something may have changed among the segments since the newest one was looked for: it is looked for again. */
static int look_again(struct rv_log *log, const struct stat *ours, const struct stat *dir, struct rv_error *err)
{
        char name[RV_LOG_SEGMENT_NAME_SIZE];
        struct stat newest;
        int r, order;

        r = rv_segments_newest(log->audit_fd, log->audit_path, NULL, name, err);
        if (r < 0)
                return rv_trace(r);
        order = r ? strcmp(name, log->segment) : -1;
        if (order > 0)
                return rv_trace(leave_segment(log, err));
        if (order < 0 || !ours->st_nlink)
                return rv_log_fail(log, err, rv_raise(-ESTALE), log->segment, "the file was removed while in use");
        if (fstatat(log->audit_fd, name, &newest, AT_SYMLINK_NOFOLLOW) < 0 || newest.st_ino != ours->st_ino)
                return rv_log_fail(log, err, rv_raise(-ESTALE), log->segment, "the file was replaced while in use");
        log->listed_at = dir->st_mtim;
        return 0;
}

/* The newest segment, made if there is none, and its size. */
static int open_and_measure(struct rv_log *log, uint64_t *ret_size, struct rv_error *err)
{
        struct stat st, dir;
        int r;

        if (log->segment_fd >= 0) {
                if (fstat(log->audit_fd, &dir) < 0 || fstat(log->segment_fd, &st) < 0)
                        return rv_log_fail(log, err, rv_raise(-errno), log->segment, "cannot look at the file");
                *ret_size = (uint64_t)st.st_size;
                if (st.st_nlink && dir.st_mtim.tv_sec == log->listed_at.tv_sec &&
                        dir.st_mtim.tv_nsec == log->listed_at.tv_nsec)
                        return 0;
                r = look_again(log, &st, &dir, err);
                if (r < 0 || log->segment_fd >= 0)
                        return rv_trace(r);
        }
        r = rv_log_open_segment(log, err);
        if (r == 0)
                r = make_segment(log, 0, err);
        if (r < 0)
                return rv_trace(r);
        if (fstat(log->segment_fd, &st) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), log->segment, "cannot look at the file");
        *ret_size = (uint64_t)st.st_size;
        return 0;
}

/* Two changes of the directory within one tick of its clock look like one; but the next segment has this name. */
static bool is_newest(struct rv_log *log)
{
        char name[RV_LOG_SEGMENT_NAME_SIZE];

        if (log->next_seq <= log->segment_first)
                return true;
        rv_log_segment_name(log->next_seq, name);
        return faccessat(log->audit_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0;
}

/* The tail of the segment that is open, which has @size bytes. 1 if another segment follows it. */
static int read_segment_tail(struct rv_log *log, uint64_t size, struct rv_error *err)
{
        const struct part part = { .name = log->segment, .fd = log->segment_fd, .size = size };
        _cleanup_(end_fini) struct end end = { 0 };
        int r = 0;

        if (log->is_tail_known && size == log->tail_end)
                return is_newest(log) ? 0 : 1;
        log->is_tail_known = false;
        if (size)
                r = read_end(log, &part, &end, err);
        if (r == 0)
                r = end.line ? take_line(log, log->segment, &end, err) : begin_segment(log, err);
        if (r < 0)
                return rv_trace(r);
        if (end.line && log->next_seq <= log->segment_first)
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/audit/%s: the last line is older than the file's name says, so nothing is appended to it; restore the file from a copy, or move audit/ away to begin a new log",
                                    log->state_dir, log->segment);
        if (!is_newest(log))
                return 1;
        if (end.n_rest && ftruncate(log->segment_fd, (off_t)(size - end.n_rest)) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), log->segment, "cannot cut off an incomplete last line");
        log->cut_bytes += end.n_rest;
        log->tail_end = size - end.n_rest;
        log->is_tail_known = true;
        rv_commit_follow(log);
        return 0;
}

int rv_log_read_tail(struct rv_log *log, struct rv_error *err)
{
        uint64_t size = 0;
        int r;

        do {
                r = open_and_measure(log, &size, err);
                if (r == 0)
                        r = read_segment_tail(log, size, err);
                if (r == 1)
                        r = leave_segment(log, err) < 0 ? log->broken : 1;
        } while (r == 1);
        return rv_trace(r);
}

int rv_log_rotate(struct rv_log *log, struct rv_error *err)
{
        int r;

        if (fdatasync(log->segment_fd) < 0) {
                log->broken = rv_raise(-errno);
                rv_commit_failed(log);
                return rv_log_fail(log, err, log->broken, log->segment, "cannot sync the log");
        }
        log->is_dirty = false;
        rv_commit_synced(log, log->next_seq);
        r = make_segment(log, log->next_seq, err);
        if (r < 0)
                return rv_trace(r);
        if (fsync(log->audit_fd) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), log->segment, "cannot sync its directory");
        log->tail_end = 0;
        log->is_tail_known = true;
        rv_commit_follow(log);
        return 0;
}
