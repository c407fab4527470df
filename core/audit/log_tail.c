#include "audit/log_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_READ_BYTES ((uint64_t)4096)
#define SEQ_MAX ((json_int_t)1 << 52)   /* half of what a record's numbers may be: the other half is never used up */

static const char no_prev[] = "0000000000000000000000000000000000000000000000000000000000000000";

int rv_log_open_segment(struct rv_log *log, struct rv_error *err)
{
        int r;

        if (log->segment_fd >= 0)
                return 1;
        r = rv_log_segment_before(log, NULL, log->segment, err);
        if (r <= 0)
                return rv_trace(r);
        log->segment_fd = openat(log->audit_fd, log->segment, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
        if (log->segment_fd < 0)
                return rv_log_fail(log, err, rv_raise(-errno), log->segment, "cannot open for writing");
        return 1;
}

static int make_segment(struct rv_log *log, struct rv_error *err)
{
        snprintf(log->segment, sizeof(log->segment), "%020d.jsonl", 0);
        log->segment_fd = openat(log->audit_fd, log->segment,
                O_RDWR | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (log->segment_fd < 0)
                return rv_log_fail(log, err, rv_raise(-errno), log->segment, "cannot make the file");
        return 0;
}

/* pread() of a part that is there. */
static int read_part(struct rv_log *log, uint64_t offset, size_t n, char *ret, struct rv_error *err)
{
        while (n) {
                ssize_t done = pread(log->segment_fd, ret, n, (off_t)offset);

                if (done < 0 && errno == EINTR)
                        continue;
                if (done <= 0)
                        return rv_log_fail(log, err, rv_raise(done < 0 ? -errno : -EIO), log->segment, "cannot read");
                ret += done;
                offset += (uint64_t)done;
                n -= (size_t)done;
        }
        return 0;
}

/*
 * Reads the end of the file far enough back to hold the last complete line and what follows it.
 * *ret_n_rest: bytes after the last newline; *ret_line: the line before that newline, or NULL if there
 * is no newline in the file.
 */
static int read_end(struct rv_log *log, uint64_t size, struct rv_buf *buf, const char **ret_line, size_t *ret_n_line,
                    size_t *ret_n_rest, struct rv_error *err)
{
        uint64_t want = RV_MIN(FIRST_READ_BYTES, size), most = RV_MIN(2 * (uint64_t)RV_LOG_RECORD_BYTES_MAX, size);
        const char *end, *before;
        int r;

        for (;;) {
                buf->size = 0;
                r = rv_buf_reserve(buf, (size_t)want);
                if (r < 0)
                        return rv_log_fail(log, err, r, log->segment, "cannot read the last record");
                r = read_part(log, size - want, (size_t)want, buf->data, err);
                if (r < 0)
                        return rv_trace(r);
                buf->size = (size_t)want;
                end = memrchr(buf->data, '\n', buf->size);
                before = end ? memrchr(buf->data, '\n', (size_t)(end - buf->data)) : NULL;
                if (before || want == most)
                        break;
                want = RV_MIN(want * 16, most);
        }
        if ((!end || !before) && want < size)
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/audit/%s: the last line is longer than any record; this file is damaged, keep it and move audit/ away to begin a new log",
                                    log->state_dir, log->segment);
        *ret_line = end ? (before ? before + 1 : buf->data) : NULL;
        *ret_n_line = end ? (size_t)(end - *ret_line) : 0;
        *ret_n_rest = end ? buf->size - (size_t)(end + 1 - buf->data) : buf->size;
        return 0;
}

json_t *rv_log_parse(const char *line, size_t n)
{
        /* jansson reads over a NUL that follows a number or a literal. */
        if (n && memchr(line, 0, n))
                return NULL;
        return json_loadb(line, n, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
}

static int take_line(struct rv_log *log, const char *line, size_t n, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *record = rv_log_parse(line, n);
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
                                    log->state_dir, log->segment, fault);
        log->next_seq = (uint64_t)json_integer_value(seq) + 1;
        rv_sha256_hex(line, n, log->prev);
        return 0;
}

/* The newest segment, made if there is none, and its size. */
static int open_and_measure(struct rv_log *log, uint64_t *ret_size, struct rv_error *err)
{
        struct stat st;
        int r;

        r = rv_log_open_segment(log, err);
        if (r == 0)
                r = make_segment(log, err);
        if (r < 0)
                return rv_trace(r);
        if (fstat(log->segment_fd, &st) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), log->segment, "cannot look at the file");
        if (st.st_nlink == 0)
                return rv_log_fail(log, err, rv_raise(-ESTALE), log->segment, "the file was removed while in use");
        *ret_size = (uint64_t)st.st_size;
        return 0;
}

/* A segment without a record. */
static int begin_log(struct rv_log *log, struct rv_error *err)
{
        if (strspn(log->segment, "0") < 20)
                return rv_log_fail(log, err, rv_raise(-EBADMSG), log->segment, "the segment has no record to continue");
        /* Whoever made the file may have died before this. */
        if (fsync(log->audit_fd) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), "", "cannot sync the directory");
        log->next_seq = 0;
        memcpy(log->prev, no_prev, sizeof(no_prev));
        return 0;
}

int rv_log_read_tail(struct rv_log *log, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf buf = { 0 };
        const char *line = NULL;
        size_t n_line = 0, n_rest = 0;
        uint64_t size = 0;
        int r;

        r = open_and_measure(log, &size, err);
        if (r < 0)
                return rv_trace(r);
        if (log->is_tail_known && size == log->tail_end)
                return 0;
        log->is_tail_known = false;
        if (size)
                r = read_end(log, size, &buf, &line, &n_line, &n_rest, err);
        if (r == 0)
                r = line ? take_line(log, line, n_line, err) : begin_log(log, err);
        if (r < 0)
                return rv_trace(r);
        if (n_rest && ftruncate(log->segment_fd, (off_t)(size - n_rest)) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), log->segment, "cannot cut off an incomplete last line");
        log->cut_bytes += n_rest;
        log->tail_end = size - n_rest;
        log->is_tail_known = true;
        return 0;
}
