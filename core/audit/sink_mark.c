#include "audit/sink_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MARK_FILE "sent"
#define MARK_BYTES_MAX ((size_t)256)

static int parse(const char *text, struct rv_sink_mark *ret)
{
        unsigned long long offset, n, seq;
        char segment[RV_LOG_SEGMENT_NAME_SIZE], sha256[RV_SHA256_HEX_SIZE];
        int end = 0;

        if (sscanf(text, "%26s %20llu %7llu %20llu %64s%n", segment, &offset, &n, &seq, sha256, &end) != 5 || strcmp(text + end, "\n") != 0)
                return -EBADMSG;
        if (!rv_log_is_segment(segment) || strlen(sha256) != RV_SHA256_HEX_SIZE - 1 || offset > INT64_MAX / 2)
                return -EBADMSG;
        *ret = (struct rv_sink_mark){ .offset = offset, .seq = seq, .n = (size_t)n };
        memcpy(ret->segment, segment, sizeof(segment));
        memcpy(ret->sha256, sha256, sizeof(sha256));
        return 0;
}

int rv__sink_mark_read(struct rv_log *log, struct rv_sink_mark *ret, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };
        char sha256[RV_SHA256_HEX_SIZE];
        struct rv_sink_mark mark;
        int r;

        *ret = (struct rv_sink_mark){ 0 };
        r = rv_read_file_at(log->audit_fd, MARK_FILE, MARK_BYTES_MAX, &text);
        if (r == -ENOENT || r == -EFBIG)
                return 0;
        if (r < 0)
                return rv_log_fail(log, err, r, MARK_FILE, "cannot read");
        if (parse(text.data, &mark) < 0)
                return 0;
        r = rv_log_read_line(log, mark.segment, mark.offset, mark.n, &line, err);
        if (r <= 0)
                return rv_trace(r);
        rv_sha256_hex(line.data, mark.n, sha256);
        if (strcmp(sha256, mark.sha256) != 0)
                return 0;
        *ret = mark;
        return 1;
}

int rv__sink_mark_write(struct rv_log *log, const char *segment, uint64_t offset, size_t n, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };
        _cleanup_(rv_json_unrefp) json_t *record = NULL;
        char sha256[RV_SHA256_HEX_SIZE], text[MARK_BYTES_MAX];
        int r;

        r = rv_log_read_line(log, segment, offset, n, &line, err);
        if (r <= 0)
                return r < 0 ? rv_trace(r) : rv_log_fail(log, err, rv_raise(-ESTALE), segment, "cannot read what was sent");
        record = rv_log_parse(line.data, n);
        if (!json_is_integer(json_object_get(record, "seq")))
                return rv_error_set(err, rv_raise(-EBADMSG), "%s/audit/%s: the line at byte %llu is no record; this file is damaged, `reeve audit verify` tells more",
                                    log->state_dir, segment, (unsigned long long)offset);
        rv_sha256_hex(line.data, n, sha256);
        snprintf(text, sizeof(text), "%s %llu %zu %lld %s\n", segment, (unsigned long long)offset, n,
                 (long long)json_integer_value(json_object_get(record, "seq")), sha256);
        r = rv_write_file_at(log->audit_fd, MARK_FILE, text, strlen(text), 0600, true);
        return r < 0 ? rv_log_fail(log, err, r, MARK_FILE, "cannot write") : 0;
}

/* 0; -errno. */
static int add_size(struct rv_log *log, const char *segment, uint64_t skip, uint64_t *sum, struct rv_error *err)
{
        struct stat st;

        if (fstatat(log->audit_fd, segment, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return rv_log_fail(log, err, rv_raise(-errno), segment, "cannot look at the file");
        *sum += (uint64_t)st.st_size - RV_MIN(skip, (uint64_t)st.st_size);
        return 0;
}

int rv__sink_lag_after(struct rv_log *log, const struct rv_sink_mark *mark, uint64_t *ret, struct rv_error *err)
{
        _cleanup_(rv_segments_fini) struct rv_segments later = { 0 };
        uint64_t sum = 0;
        int r = 0;

        if (*mark->segment)
                r = add_size(log, mark->segment, mark->offset + mark->n + 1, &sum, err);
        if (r == 0)
                r = rv_segments_list(log->audit_fd, log->audit_path, mark->segment, &later, err);
        for (size_t i = 0; r == 0 && i < later.n; i++)
                r = add_size(log, later.all[i].name, 0, &sum, err);
        if (r < 0)
                return rv_trace(r);
        *ret = sum;
        return 0;
}

int rv_sink_lag(struct rv_log *log, uint64_t *ret_bytes, struct rv_error *err)
{
        struct rv_sink_mark mark;
        int r;

        r = rv__sink_mark_read(log, &mark, err);
        if (r >= 0)
                r = rv__sink_lag_after(log, &mark, ret_bytes, err);
        return rv_trace(r);
}
