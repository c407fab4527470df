#include "audit/verify_private.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SEQ_MAX UINT64_C(9007199254740991)         /* as any number in a record */
#define LOOK_AGAIN_US 100                          /* a writer takes some 50 us from cutting a line off to the next one */

static const char no_hash[] = "0000000000000000000000000000000000000000000000000000000000000000";

const char *rv_verify_what_name(enum rv_verify_what what)
{
        static const char *const names[_RV_VERIFY_WHAT_MAX] = {
                [RV_VERIFY_FORM] = "form",
                [RV_VERIFY_LOG_ID] = "log_id",
                [RV_VERIFY_SEQ] = "seq",
                [RV_VERIFY_PREV] = "prev",
                [RV_VERIFY_SEGMENT] = "segment",
                [RV_VERIFY_CHECKPOINT] = "checkpoint",
                [RV_VERIFY_KEY] = "key",
                [RV_VERIFY_ROOT] = "root",
                [RV_VERIFY_EXPECT] = "expect",
                [RV_VERIFY_UNSEALED] = "unsealed",
                [RV_VERIFY_EMPTY] = "empty",
        };

        return names[what];
}

static int tell(struct rv_verify *v, const struct rv_verify_fault *fault)
{
        if (v->out->n_faults++ == 0)
                v->out->fault = *fault;
        if (v->in->on_fault)
                v->in->on_fault(v->in->ctx, fault);
        return v->in->is_all ? 0 : RV_VERIFY_E_FAULT;
}

int rv__verify_fault(struct rv_verify *v, enum rv_verify_what what, const struct rv_verify_place *place,
        const char *fmt, ...)
{
        struct rv_verify_fault fault = { .what = what, .offset = place->offset, .seq = place->seq };
        va_list ap;

        rv_log_segment_name(place->segment, fault.segment);
        va_start(ap, fmt);
        vsnprintf(fault.text, sizeof(fault.text), fmt, ap);
        va_end(ap);
        return tell(v, &fault);
}

static int fail(struct rv_verify *v, int r, const char *name)
{
        return rv_error_set(v->err, r, "cannot read %s%s%s: %s", v->in->path, *name ? "/" : "", name, strerror(-r));
}

/* The segment that follows the one that is named: 1, @name being that, 0, -errno. What no number can have comes last. */
static int find_segment(struct rv_verify *v, char name[RV_LOG_SEGMENT_NAME_SIZE])
{
        int r = rv_lines_find(&v->lines, name, name, v->err);

        return r > 0 ? rv_log_segment_first(name) <= SEQ_MAX : rv_trace(r);
}

/* ---- The lines ---- */

/* What the walk knows of one line. */
struct judgement {
        int what;                                  /* -1: it is as it should be */
        const char *why;                           /* of RV_VERIFY_FORM */
        struct rv_record_form form;                /* of all others */
};

static bool is_text(const struct rv_record_text *t, const char *text, size_t n)
{
        return t->n == n && memcmp(t->text, text, n) == 0;
}

static void judge(const struct rv_verify *v, const char *line, size_t n, struct judgement *ret)
{
        ret->what = -1;
        ret->why = rv_record_form(line, n, &ret->form);
        if (ret->why)
                ret->what = RV_VERIFY_FORM;
        else if (v->has_log_id && !is_text(&ret->form.log_id, v->out->log_id, RV_LOG_ID_SIZE - 1))
                ret->what = RV_VERIFY_LOG_ID;
        else if (ret->form.seq != v->next_seq)
                ret->what = RV_VERIFY_SEQ;
        else if (v->is_hash_known && !is_text(&ret->form.prev, v->hash, RV_SHA256_HEX_SIZE - 1))
                ret->what = RV_VERIFY_PREV;
}

/*
 * Record k's hash is not record k+1's prev: one of the two was changed. If k+1 is as record k+2 says, it was k; if not,
 * k+1. Behind a signature that covers k, it was k+1. At the end of the log it may have been either; k is told.
 * @form is of k+2, or NULL.
 */
static int settle_doubt(struct rv_verify *v, const struct rv_record_form *form)
{
        bool is_witness = v->is_cleared || (form && !is_text(&form->prev, v->hash, RV_SHA256_HEX_SIZE - 1));

        if (!v->is_doubted)
                return 0;
        v->is_doubted = false;
        v->is_tree_off = true;
        if (is_witness)
                v->is_hash_known = false;
        return is_witness ? rv__verify_fault(v, RV_VERIFY_PREV, &v->witness,
                                    "the record was changed: its `prev` is not the hash of the record before it")
                          : rv__verify_fault(v, RV_VERIFY_PREV, &v->suspect,
                                    "the record was changed: its hash is not the `prev` of the record behind it");
}

static int begin_doubt(struct rv_verify *v, const char *line, size_t n, const struct rv_record_form *form)
{
        int r;

        if (v->next_seq == 0)
                return rv__verify_fault(v, RV_VERIFY_PREV, &v->here, "the first record's `prev` is not 64 zeros");
        v->is_doubted = true;
        v->is_cleared = false;
        v->suspect = v->before;
        v->witness = v->here;
        if (v->is_tree_off || !rv_record_text_is(&form->kind, "checkpoint"))
                return 0;
        r = rv__verify_clears(v, line, n);
        v->is_cleared = r > 0;
        return r < 0 ? rv_trace(r) : 0;
}

static int tell_seq(struct rv_verify *v, uint64_t found)
{
        v->is_tree_off = true;
        if (found == v->next_seq + 1)
                return rv__verify_fault(v, RV_VERIFY_SEQ, &v->here, "record %" PRIu64 " is missing: record %" PRIu64 " stands in its place", v->next_seq, found);
        if (found > v->next_seq)
                return rv__verify_fault(v, RV_VERIFY_SEQ, &v->here, "records %" PRIu64 " to %" PRIu64 " are missing: record %" PRIu64 " stands in their place", v->next_seq, found - 1, found);
        return rv__verify_fault(v, RV_VERIFY_SEQ, &v->here, "record %" PRIu64 " stands where record %" PRIu64 " should be", found, v->next_seq);
}

/* A line in its place, or one that the walk goes on behind. */
static int accept(struct rv_verify *v, const char *line, size_t n, const struct judgement *j)
{
        v->before = v->here;
        v->out->n_bytes += n + 1;
        v->next_seq++;
        v->is_hash_known = j->what != RV_VERIFY_FORM;
        if (!v->is_hash_known)
                return 0;
        rv_sha256_hex(line, n, v->hash);
        v->next_seq = j->form.seq + 1;
        if (v->is_doubted || !rv_record_text_is(&j->form.kind, "checkpoint"))
                return 0;
        return rv_trace(rv__verify_checkpoint(v, line, n, &j->form));
}

static int tell_line(struct rv_verify *v, const char *line, size_t n, const struct judgement *j)
{
        switch (j->what) {
        case RV_VERIFY_FORM:
                v->is_tree_off = true;
                return rv__verify_fault(v, RV_VERIFY_FORM, &v->here, "the line %s", j->why);
        case RV_VERIFY_LOG_ID:
                v->is_tree_off = true;
                return rv__verify_fault(v, RV_VERIFY_LOG_ID, &v->here, "the record is one of the log %.*s, this log is %s", (int)j->form.log_id.n, j->form.log_id.text, v->out->log_id);
        case RV_VERIFY_SEQ:
                return tell_seq(v, j->form.seq);
        case RV_VERIFY_PREV:
                return rv_trace(begin_doubt(v, line, n, &j->form));
        default:
                return 0;
        }
}

/* On a live log bytes may be read while a writer cuts off an incomplete line and puts another there. */
static bool has_to_look_again(struct rv_verify *v)
{
        if (v->looked_again_segment == v->segment && v->looked_again_offset == v->lines.offset + 1)
                return false;
        v->looked_again_segment = v->segment;
        v->looked_again_offset = v->lines.offset + 1;
        usleep(LOOK_AGAIN_US);
        rv_lines_again(&v->lines);
        return true;
}

static int take_line(struct rv_verify *v, const char *line, size_t n)
{
        struct judgement j;
        int r;

        v->here = (struct rv_verify_place){ v->segment, v->lines.offset, v->next_seq };
        judge(v, line, n, &j);
        if (j.what >= 0 && has_to_look_again(v))
                return 0;
        if (!v->has_log_id && j.what != RV_VERIFY_FORM) {
                memcpy(v->out->log_id, j.form.log_id.text, RV_LOG_ID_SIZE - 1);
                v->has_log_id = true;
        }
        if (v->is_doubted) {
                r = settle_doubt(v, j.what == RV_VERIFY_FORM ? NULL : &j.form);
                if (r != 0)
                        return rv_trace(r);
                /* That the hash does not fit was told just now. */
                if (j.what == RV_VERIFY_PREV && !v->is_hash_known)
                        j.what = -1;
        }
        r = tell_line(v, line, n, &j);
        return r != 0 ? rv_trace(r) : rv_trace(accept(v, line, n, &j));
}

/* ---- The walk ---- */

static int tell_form(struct rv_verify *v, const struct rv_verify_place *place, const char *text)
{
        int r = settle_doubt(v, NULL);

        v->is_tree_off = true;
        return r != 0 ? r : rv__verify_fault(v, RV_VERIFY_FORM, place, "%s", text);
}

static int walk_segment(struct rv_verify *v)
{
        char newer[RV_LOG_SEGMENT_NAME_SIZE];
        bool is_older = false;
        const char *line;
        size_t n;
        int r;

        for (;;) {
                r = rv_lines_in_segment(&v->lines, &line, &n, v->err);
                v->here = (struct rv_verify_place){ v->segment, v->lines.offset, v->next_seq };
                if (r == 1)
                        r = take_line(v, line, n);
                else if (r == RV_LINES_E_LONG && has_to_look_again(v))
                        r = 0;
                else if (r == RV_LINES_E_LONG)
                        return tell_form(v, &v->here, "the line is longer than any record");
                else if (r == 0 && is_older)
                        break;
                else if (r == 0) {
                        /* Lines that came before there was a newer one are still to be read. */
                        rv_log_segment_name(v->segment, newer);
                        r = find_segment(v, newer);
                        if (r == 0)
                                break;
                        is_older = true;
                        r = RV_MIN(r, 0);
                }
                if (r != 0)
                        return rv_trace(r);
        }
        v->here = (struct rv_verify_place){ v->segment, v->lines.next_offset, v->next_seq };
        if (is_older && v->lines.rest)
                return tell_form(v, &v->here, "the last line has no end, though there is a newer segment");
        v->out->incomplete_bytes = is_older ? 0 : v->lines.rest;
        return 0;
}

/* What to do with a segment. */
enum { READ, PASS_OVER, STOP };

static int check_number(struct rv_verify *v, uint64_t number)
{
        struct rv_verify_place place = { number, 0, number };
        int r;

        if (number == v->next_seq)
                return READ;
        r = settle_doubt(v, NULL);
        if (r != 0)
                return STOP;
        v->is_tree_off = true;
        if (number < v->next_seq)
                return rv__verify_fault(v, RV_VERIFY_SEGMENT, &place, "no segment can begin with record %" PRIu64 ": the one before it goes up to record %" PRIu64, number, v->next_seq - 1) ? STOP : PASS_OVER;
        place.segment = place.seq = v->next_seq;
        r = rv__verify_fault(v, RV_VERIFY_SEGMENT, &place, "the segment is missing, or the end of the one before it: records %" PRIu64 " to %" PRIu64 " are not there", v->next_seq, number - 1);
        v->next_seq = number;
        v->is_hash_known = false;
        return r ? STOP : READ;
}

static int open_segment(struct rv_verify *v, const char *name, uint64_t number)
{
        struct rv_verify_place place = { number, 0, number };
        struct rv_error err = { 0 };
        int r = rv_lines_go(&v->lines, name, 0, &err);

        v->segment = number;
        if (r == -ELOOP || r == -EINVAL) {
                v->is_tree_off = true;
                return rv__verify_fault(v, RV_VERIFY_SEGMENT, &place, "it is no regular file") ? STOP : PASS_OVER;
        }
        if (r < 0)
                return rv_error_set(v->err, r, "%s", err.message);
        return r == 0 ? fail(v, rv_raise(-ENOENT), name) : READ;
}

static int walk(struct rv_verify *v)
{
        char name[RV_LOG_SEGMENT_NAME_SIZE] = "";
        uint64_t number;
        int r;

        for (;;) {
                r = find_segment(v, name);
                if (r <= 0)
                        break;
                number = rv_log_segment_first(name);
                r = check_number(v, number);
                if (r == READ)
                        r = open_segment(v, name, number);
                if (r == PASS_OVER)
                        continue;
                if (r == STOP)
                        return RV_VERIFY_E_FAULT;
                if (r == READ) {
                        v->out->n_segments++;
                        r = walk_segment(v);
                }
                if (r != 0)
                        return rv_trace(r);
        }
        return r < 0 ? rv_trace(r) : rv_trace(settle_doubt(v, NULL));
}

/* ---- All of it ---- */

/* Whose log is it? The file beside the segments says, else the keys; else the first record does. */
static int find_log_id(struct rv_verify *v)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_verify_place place = { 0 };
        int r = rv_read_file_at(v->in->audit_fd, "id", 64, &text);

        if (r == -ENOENT && v->in->n_keys) {
                rv_buf_puts(&text, v->in->keys[0].log_id);
                rv_buf_putc(&text, '\n');
                r = rv_buf_error(&text);
        } else if (r == -ENOENT) {
                return 0;
        }
        if (r < 0 && r != -EFBIG && r != -ELOOP && r != -EINVAL)
                return fail(v, r, "id");
        if (r < 0 || text.size != RV_LOG_ID_SIZE || text.data[RV_LOG_ID_SIZE - 1] != '\n' ||
                strspn(text.data, "0123456789abcdef") != RV_LOG_ID_SIZE - 1)
                return rv__verify_fault(v, RV_VERIFY_LOG_ID, &place, "the file id beside the segments does not hold a log's id");
        memcpy(v->out->log_id, text.data, RV_LOG_ID_SIZE - 1);
        v->has_log_id = true;
        for (size_t i = 0; i < v->in->n_keys; i++)
                if (strcmp(v->in->keys[i].log_id, v->out->log_id) != 0) {
                        r = rv__verify_fault(v, RV_VERIFY_KEY, &place, "the key is one of the log %s, this log is %s", v->in->keys[i].log_id, v->out->log_id);
                        if (r != 0)
                                return r;
                }
        return 0;
}

/* A file that looks like a segment and is none, the first by its name. */
static int check_odd_name(struct rv_verify *v)
{
        struct rv_verify_fault fault = { .what = RV_VERIFY_SEGMENT, .seq = v->next_seq };
        const struct rv_segments *listed = &v->lines.listed;
        char last[RV_LOG_SEGMENT_NAME_SIZE];
        const struct rv_segment *above;
        const char *odd = listed->odd_name;

        rv_log_segment_name(SEQ_MAX, last);
        above = rv_segments_after(listed, last);
        if (above && (!*odd || strcmp(above->name, odd) < 0))
                odd = above->name;
        if (!*odd)
                return 0;
        snprintf(fault.segment, sizeof(fault.segment), "%s", odd);
        snprintf(fault.text, sizeof(fault.text), "the name is none that a segment can have");
        return tell(v, &fault);
}

int rv_verify_log(const struct rv_verify_input *input, struct rv_verify_result *ret, struct rv_error *err)
{
        _cleanup_(rv_freep) struct rv_verify *v = calloc(1, sizeof(*v));
        struct rv_verify_place beginning = { 0 };
        int r;

        *ret = (struct rv_verify_result){ 0 };
        if (!v)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
        *v = (struct rv_verify){ .in = input, .out = ret, .err = err, .is_hash_known = true };
        memcpy(v->hash, no_hash, sizeof(no_hash));
        rv_lines_begin(&v->lines, input->audit_fd, input->path);
        r = rv__verify_seal_begin(v);
        if (r == 0)
                r = find_log_id(v);
        if (r == 0)
                r = walk(v);
        ret->n_records = v->next_seq;
        if (r == 0 && v->next_seq == 0)
                r = rv__verify_fault(v, RV_VERIFY_EMPTY, &beginning, "there is no record");
        if (r == 0)
                r = rv__verify_seal_end(v);
        if (r == 0)
                r = check_odd_name(v);
        rv__verify_seal_fini(v);
        rv_lines_close(&v->lines);
        if (r < 0)
                return rv_trace(r);
        return ret->n_faults ? RV_VERIFY_E_FAULT : 0;
}
