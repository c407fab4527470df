#include "audit/log_private.h"

#include "audit/log_kinds.h"
#include "audit/redact.h"
#include "base/clock.h"
#include "base/utf8.h"

#include <string.h>
#include <unistd.h>

bool rv_log_kind_is_known(const char *kind)
{
#define KIND(name, text) name,
        static const char *const kinds[] = { RV_LOG_KINDS(KIND) };
#undef KIND

        for (size_t i = 0; i < RV_N_ELEMENTS(kinds); i++)
                if (strcmp(kinds[i], kind) == 0)
                        return true;
        return false;
}

/* What the writer alone can know; a body that brings one of them would forge it. */
static const char *const own_members[] = { "seq", "prev", "kind", "log_id", "time_us", "instance", "build" };

static int check_body(const char *kind, const json_t *body, struct rv_error *err)
{
        if (!rv_log_kind_is_known(kind))
                return rv_error_set(err, rv_raise(-EINVAL), "\"%s\" is no kind of audit record", kind);
        if (!json_is_object(body))
                return rv_error_set(err, rv_raise(-EINVAL), "the body of a %s record is no object", kind);
        if (rv_json_is_deeper(body, RV_LOG_DEPTH_MAX))
                return rv_error_set(err, rv_raise(-EINVAL), "the body of a %s record is nested deeper than %u", kind, RV_LOG_DEPTH_MAX);
        for (size_t i = 0; i < RV_N_ELEMENTS(own_members); i++)
                if (json_object_get(body, own_members[i]))
                        return rv_error_set(err, rv_raise(-EINVAL), "the body of a %s record holds \"%s\", which the log adds", kind,
                                            own_members[i]);
        return 0;
}

static int render(struct rv_log *log, const char *kind, json_t *body, struct rv_buf *out, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *record = json_copy(body);
        int r = record ? rv_log_redact(log, record) : -ENOMEM;

        if (r < 0)
                return rv_error_set(err, rv_trace(r), "out of memory for a %s record", kind);
        if (json_object_set_new(record, "seq", json_integer((json_int_t)log->next_seq)) < 0 ||
            json_object_set_new(record, "prev", json_string(log->prev)) < 0 ||
            json_object_set_new(record, "kind", json_string(kind)) < 0 ||
            json_object_set_new(record, "log_id", json_string(log->id)) < 0 ||
            json_object_set_new(record, "time_us", json_integer((json_int_t)rv_now_us())) < 0 ||
            json_object_set_new(record, "instance", json_string(log->instance)) < 0 ||
            json_object_set_new(record, "build", json_string(RV_BUILD)) < 0)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for a %s record", kind);
        r = rv_json_canonical(record, out);
        if (r == -EDOM)
                return rv_error_set(err, r, "a %s record holds a number that is no integer within 2^53 - 1", kind);
        if (r == 0)
                r = rv_buf_putc(out, '\n');
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "out of memory for a %s record", kind);
        /* A line that no reader takes would end the log for good. */
        if (!rv_utf8_check(out->data, out->size, NULL))
                return rv_error_set(err, rv_raise(-EILSEQ), "a %s record holds a text that is no UTF-8", kind);
        if (out->size > RV_LOG_RECORD_BYTES_MAX)
                return rv_error_set(err, rv_raise(-EMSGSIZE), "a %s record of %zu bytes; at most %zu are allowed", kind, out->size,
                                    RV_LOG_RECORD_BYTES_MAX);
        return 0;
}

/* One write() of the line. What a full disk took of it is cut off again, so that no reader meets it. */
static int put_line(struct rv_log *log, const struct rv_buf *line, struct rv_error *err)
{
        int r = rv_write_all(log->segment_fd, line->data, line->size);

        if (r == 0)
                return 0;
        /* If even that fails, the next writer finds an incomplete line, as after a crash. */
        if (ftruncate(log->segment_fd, (off_t)log->tail_end) < 0)
                rv_raise(-errno);
        log->is_tail_known = false;
        return rv_log_fail(log, err, r, log->segment, "cannot write a record");
}

static int write_record(struct rv_log *log, const char *kind, json_t *body, struct rv_log_spot *ret,
        struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };
        struct rv_log_spot spot = { .seq = log->next_seq, .offset = log->tail_end };
        int r;

        r = render(log, kind, body, &line, err);
        if (r == 0)
                r = put_line(log, &line, err);
        if (r < 0)
                return rv_trace(r);
        spot.n = line.size - 1;
        rv_sha256_hex(line.data, spot.n, spot.sha256);
        memcpy(log->prev, spot.sha256, sizeof(log->prev));
        log->next_seq++;
        log->tail_end += line.size;
        log->is_dirty = true;
        log->own_end = log->next_seq;
        rv_commit_appended(log);
        *ret = spot;
        return 0;
}

static int note_cut(struct rv_log *log, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *body = NULL;
        struct rv_log_spot spot;
        int r;

        body = json_pack("{s:s, s:I}", "cause", "incomplete_line", "cut_bytes", (json_int_t)log->cut_bytes);
        if (!body)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for a gap record");
        r = write_record(log, "gap", body, &spot, err);
        if (r == 0)
                log->cut_bytes = 0;
        return rv_trace(r);
}

int rv_log_append_locked(struct rv_log *log, const char *kind, json_t *body, struct rv_log_spot *ret,
        struct rv_error *err)
{
        int r;

        r = check_body(kind, body, err);
        if (r == 0)
                r = rv_log_read_tail(log, err);
        if (r == 0 && log->tail_end >= log->segment_max)
                r = rv_log_rotate(log, err);
        if (r == 0 && log->cut_bytes)
                r = note_cut(log, err);
        if (r < 0)
                return rv_trace(r);
        return rv_trace(write_record(log, kind, body, ret, err));
}

int rv_log_append_if(struct rv_log *log, const char *kind, json_t *body, rv_log_check_fn check, void *ctx,
        uint64_t *ret_seq, struct rv_error *err)
{
        _cleanup_(rv_log_unlockp) struct rv_log *locked = NULL;
        struct rv_log_spot spot;
        int r;

        r = rv_log_lock(log, err);
        if (r < 0)
                return rv_trace(r);
        locked = log;
        if (check) {
                r = rv_log_read_tail(log, err);
                if (r == 0)
                        r = check(ctx, log, err);
                if (r != 0)
                        return r < 0 ? rv_trace(r) : r;
        }
        r = rv_log_append_locked(log, kind, body, &spot, err);
        if (r < 0)
                return rv_trace(r);
        if (ret_seq)
                *ret_seq = spot.seq;
        return 0;
}

int rv_log_append(struct rv_log *log, const char *kind, json_t *body, uint64_t *ret_seq, struct rv_error *err)
{
        return rv_trace(rv_log_append_if(log, kind, body, NULL, NULL, ret_seq, err));
}

uint64_t rv_log_n_durable(const struct rv_log *log)
{
        return log->n_durable;
}

int rv_log_sync_all(struct rv_log *log, struct rv_error *err)
{
        int r;

        r = rv_log_lock(log, err);
        if (r < 0)
                return rv_trace(r);
        r = rv_log_read_tail(log, err);
        rv_log_unlock(log);
        if (r < 0)
                return rv_trace(r);
        log->own_end = log->next_seq;
        log->is_dirty = true;
        return rv_trace(rv_log_sync(log, err));
}

int rv_log_append_synced(struct rv_log *log, const char *kind, json_t *body, uint64_t *ret_seq, struct rv_error *err)
{
        uint64_t seq = 0;
        int r;

        r = rv_log_append(log, kind, body, &seq, err);
        if (r == 0)
                r = rv_log_sync(log, err);
        if (r < 0)
                return rv_trace(r);
        if (ret_seq)
                *ret_seq = seq;
        return 0;
}
