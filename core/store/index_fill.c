#include "store/index_private.h"

#include "audit/record_scan.h"

#include <stdio.h>
#include <string.h>

#define BATCH_BYTES ((uint64_t)32 << 20)      /* of the log, a transaction: others may write in between */

/* The members of a record that the index has to do with. */
enum {
        CODE,
        DECISION_ID,
        KEY,
        KIND,
        OUTCOME_SHA256,
        REFUSED,
        RUN_ID,
        SEQ,
        STARTED,
        STATUS,
        TENANT,
        TIME_US,
        VERDICT,
        N_MEMBERS
};
static const struct rv_record_member all_members[N_MEMBERS] = {
        [CODE] = RV_RECORD_MEMBER("code"),
        [DECISION_ID] = RV_RECORD_MEMBER("decision_id"),
        [KEY] = RV_RECORD_MEMBER("key"),
        [KIND] = RV_RECORD_MEMBER("kind"),
        [OUTCOME_SHA256] = RV_RECORD_MEMBER("outcome_sha256"),
        [REFUSED] = RV_RECORD_MEMBER("refused"),
        [RUN_ID] = RV_RECORD_MEMBER("run_id"),
        [SEQ] = RV_RECORD_MEMBER("seq"),
        [STARTED] = RV_RECORD_MEMBER("started"),
        [STATUS] = RV_RECORD_MEMBER("status"),
        [TENANT] = RV_RECORD_MEMBER("tenant"),
        [TIME_US] = RV_RECORD_MEMBER("time_us"),
        [VERDICT] = RV_RECORD_MEMBER("verdict"),
};

static int bind_text(sqlite3_stmt *s, int at, const struct rv_record_text *text)
{
        return sqlite3_bind_text(s, at, text->text ? text->text : "", (int)text->n, SQLITE_STATIC);
}

static struct rv__index_recent *recent_of(struct rv_index *x, const uint8_t id[RV__INDEX_ID_BYTES])
{
        uint32_t hash;

        memcpy(&hash, id, sizeof(hash));
        return &x->recent[hash % RV__INDEX_RECENT];
}

/* ---- A decision ---- */

/* Does this decision take a key, and with what? Old records without a fingerprint take none. */
static bool read_key(const struct rv_record_member members[N_MEMBERS], uint8_t key[RV_SHA256_SIZE],
        uint8_t fingerprint[RV_SHA256_SIZE])
{
        struct rv_record_member in_verdict[] = { RV_RECORD_MEMBER("effect") };
        struct rv_record_member in_key[] = { RV_RECORD_MEMBER("fingerprint"), RV_RECORD_MEMBER("hmac_sha256") };
        struct rv_record_text effect, text[2];

        if (!members[KEY].value || members[REFUSED].value || !members[VERDICT].value)
                return false;
        rv_record_members(members[VERDICT].value, members[VERDICT].n, in_verdict, 1);
        effect = rv_record_string(&in_verdict[0]);
        if (!rv_record_text_is(&effect, "allow"))
                return false;
        rv_record_members(members[KEY].value, members[KEY].n, in_key, 2);
        text[0] = rv_record_string(&in_key[0]);
        text[1] = rv_record_string(&in_key[1]);
        return rv_record_hex(&text[0], RV_SHA256_SIZE, fingerprint) && rv_record_hex(&text[1], RV_SHA256_SIZE, key);
}

static int put_run(struct rv_index *x, const struct rv_record_member members[N_MEMBERS],
        const struct rv__index_place *place, const uint8_t id[RV__INDEX_ID_BYTES], uint64_t seq, struct rv_error *err)
{
        struct rv_record_text run_text = rv_record_string(&members[RUN_ID]),
                              tenant = rv_record_string(&members[TENANT]);
        sqlite3_stmt *s = rv__index_statement(x, RV__INDEX_PUT_RUN);
        uint8_t run_id[RV__INDEX_ID_BYTES] = { 0 };
        uint64_t time_us = 0;

        (void)rv_record_hex(&run_text, sizeof(run_id), run_id);
        (void)rv_record_number(&members[TIME_US], &time_us);
        sqlite3_bind_int64(s, 1, (sqlite3_int64)seq);
        sqlite3_bind_blob(s, 2, id, RV__INDEX_ID_BYTES, SQLITE_STATIC);
        sqlite3_bind_blob(s, 3, run_id, sizeof(run_id), SQLITE_STATIC);
        bind_text(s, 4, &tenant);
        sqlite3_bind_int64(s, 5, (sqlite3_int64)time_us);
        sqlite3_bind_int64(s, 6, (sqlite3_int64)place->segment);
        sqlite3_bind_int64(s, 7, (sqlite3_int64)place->offset);
        sqlite3_bind_int64(s, 8, (sqlite3_int64)place->n);
        return rv__index_run(x, RV__INDEX_PUT_RUN, err);
}

/* By the database, and then by the log: 1; 0 there is no such decision; RV__INDEX_E_BROKEN is *@ret_broken, 0 then. */
static int find_decision(struct rv_index *x, const uint8_t id[RV__INDEX_ID_BYTES], struct rv__index_recent *ret,
        bool *ret_broken, struct rv_error *err)
{
        struct rv_record_member members[N_MEMBERS];
        sqlite3_stmt *s = rv__index_statement(x, RV__INDEX_GET_RUN);
        char segment[RV_LOG_SEGMENT_NAME_SIZE];
        struct rv__index_place place = { 0 };
        uint8_t found[RV__INDEX_ID_BYTES], fingerprint[RV_SHA256_SIZE];
        struct rv_record_text text;
        uint64_t n = 0;
        int rc, r;

        *ret = (struct rv__index_recent){ .is_used = true };
        sqlite3_bind_blob(s, 1, id, RV__INDEX_ID_BYTES, SQLITE_STATIC);
        rc = s ? sqlite3_step(s) : sqlite3_extended_errcode(x->db);
        *ret_broken = rc == SQLITE_ROW && !(rv__index_number(s, 0, &ret->seq) && rv__index_number(s, 1, &place.segment) &&
                                            rv__index_number(s, 2, &place.offset) && rv__index_number(s, 3, &n));
        if (s)
                sqlite3_reset(s);
        if (rc == SQLITE_DONE || *ret_broken)
                return 0;
        if (rc != SQLITE_ROW) {
                r = rv__index_db_error(x, rc, err);
                *ret_broken = r > 0;
                return r < 0 ? r : 0;
        }
        rv_log_segment_name(place.segment, segment);
        r = rv_log_read_line(x->log, segment, place.offset, n, &x->line, err);
        if (r < 0)
                return rv_trace(r);
        memcpy(members, all_members, sizeof(members));
        rv_record_members(x->line.data, x->line.size, members, N_MEMBERS);
        text = rv_record_string(&members[DECISION_ID]);
        *ret_broken = r == 0 || !rv_record_hex(&text, sizeof(found), found) || memcmp(found, id, sizeof(found)) != 0;
        memcpy(ret->id, id, sizeof(found));
        ret->has_key = !*ret_broken && read_key(members, ret->key, fingerprint);
        return !*ret_broken;
}

static int take_decision(struct rv_index *x, const struct rv_record_member members[N_MEMBERS],
        const struct rv__index_place *place, const uint8_t id[RV__INDEX_ID_BYTES], struct rv_error *err)
{
        struct rv__index_recent *recent = recent_of(x, id);
        struct rv__index_taken row = { 0 };
        bool is_broken = false;
        uint64_t seq;
        int r;

        if (!rv_record_number(&members[SEQ], &seq))
                return 0;
        r = put_run(x, members, place, id, seq, err);
        if (r != 0)
                return r;
        /*
         * A run stands where its first record does; the second, of stage `resolved`, changes nothing of what it has taken.
         * That one need not be read by whoever read the first.
         */
        if (recent->is_used && memcmp(recent->id, id, RV__INDEX_ID_BYTES) == 0)
                return 0;
        if (sqlite3_changes(x->db) == 0) {
                r = find_decision(x, id, recent, &is_broken, err);
                recent->is_used = r > 0;
                return is_broken ? RV__INDEX_E_BROKEN : r < 0 ? rv_trace(r) : 0;
        }
        *recent = (struct rv__index_recent){ .is_used = true, .seq = seq };
        memcpy(recent->id, id, RV__INDEX_ID_BYTES);
        recent->has_key = read_key(members, row.key, row.fingerprint);
        if (!recent->has_key)
                return 0;
        memcpy(recent->key, row.key, sizeof(row.key));
        memcpy(row.decision_id, id, RV__INDEX_ID_BYTES);
        return rv__index_keys_put(x, &row, err);
}

/* ---- An outcome ---- */

static int end_key(struct rv_index *x, const struct rv_record_member members[N_MEMBERS],
        const struct rv__index_recent *decision, struct rv_error *err)
{
        struct rv_record_text started = rv_record_string(&members[STARTED]),
                              sha256 = rv_record_string(&members[OUTCOME_SHA256]);
        struct rv__index_taken row;
        bool is_broken;
        int r;

        r = rv__index_keys_get(x, decision->key, &row, &is_broken, err);
        if (r < 0 || is_broken)
                return is_broken ? RV__INDEX_E_BROKEN : rv_trace(r);
        /* Free again, or another's by now: nothing that this outcome could change. */
        if (r == 0 || memcmp(row.decision_id, decision->id, sizeof(row.decision_id)) != 0)
                return 0;
        if (rv_record_text_is(&started, "no"))
                return rv__index_keys_drop(x, &row, err);
        row.is_done = true;
        if (!rv_record_number(&members[TIME_US], &row.ended_us) ||
                !rv_record_hex(&sha256, RV_SHA256_SIZE, row.outcome_sha256))
                memset(row.outcome_sha256, 0, sizeof(row.outcome_sha256));
        return rv__index_keys_put(x, &row, err);
}

static int take_outcome(struct rv_index *x, const struct rv_record_member members[N_MEMBERS],
        const struct rv__index_place *place, const uint8_t id[RV__INDEX_ID_BYTES], struct rv_error *err)
{
        struct rv_record_text status = rv_record_string(&members[STATUS]), code = rv_record_string(&members[CODE]);
        struct rv_record_text started = rv_record_string(&members[STARTED]);
        struct rv__index_recent decision = *recent_of(x, id);
        bool is_broken = false;
        sqlite3_stmt *s;
        int r;

        if (!decision.is_used || memcmp(decision.id, id, RV__INDEX_ID_BYTES) != 0) {
                r = find_decision(x, id, &decision, &is_broken, err);
                if (r < 0)
                        return rv_trace(r);
                /* The log may have lost its beginning. If it was the index, the key's row will show it: it has no run. */
                if (r == 0)
                        return is_broken ? RV__INDEX_E_BROKEN : 0;
        }
        s = rv__index_statement(x, RV__INDEX_END_RUN);
        sqlite3_bind_int64(s, 1, (sqlite3_int64)decision.seq);
        sqlite3_bind_int64(s, 2, (sqlite3_int64)place->segment);
        sqlite3_bind_int64(s, 3, (sqlite3_int64)place->offset);
        sqlite3_bind_int64(s, 4, (sqlite3_int64)place->n);
        bind_text(s, 5, &status);
        bind_text(s, 6, &code);
        bind_text(s, 7, &started);
        r = rv__index_run(x, RV__INDEX_END_RUN, err);
        return r != 0 || !decision.has_key ? r : end_key(x, members, &decision, err);
}

/* ---- The log ---- */

static int take_line(
        struct rv_index *x, const char *line, size_t n, const struct rv__index_place *place, struct rv_error *err)
{
        struct rv_record_member members[N_MEMBERS];
        struct rv_record_text kind, id_text;
        uint8_t id[RV__INDEX_ID_BYTES];

        memcpy(members, all_members, sizeof(members));
        rv_record_members(line, n, members, N_MEMBERS);
        kind = rv_record_string(&members[KIND]);
        id_text = rv_record_string(&members[DECISION_ID]);
        if (!rv_record_hex(&id_text, sizeof(id), id))
                return 0;
        if (rv_record_text_is(&kind, "decision"))
                return take_decision(x, members, place, id, err);
        if (rv_record_text_is(&kind, "outcome"))
                return take_outcome(x, members, place, id, err);
        return 0;
}

static int read_lines(
        struct rv_index *x, struct rv_lines *reader, uint64_t most, uint64_t *ret_bytes, struct rv_error *err)
{
        struct rv__index_cursor *c = &x->cursor;
        const char *line;
        size_t n;
        int r;

        while (*ret_bytes < most) {
                r = rv_lines_next(reader, &line, &n, err);
                if (r <= 0)
                        return rv_trace(r);
                c->has_line = true;
                c->line = (struct rv__index_place){ rv_log_segment_first(reader->segment), reader->offset, n };
                *ret_bytes += n + 1;
                r = take_line(x, line, n, &c->line, err);
                if (r != 0)
                        return r;
        }
        return 1;
}

/* The line before the cursor, as it stands in the log. 0; RV__INDEX_E_BROKEN; -errno. */
static int digest_last(struct rv_index *x, uint8_t ret[RV_SHA256_SIZE], struct rv_error *err)
{
        const struct rv__index_place *place = &x->cursor.line;
        char segment[RV_LOG_SEGMENT_NAME_SIZE];
        int r;

        rv_log_segment_name(place->segment, segment);
        r = rv_log_read_line(x->log, segment, place->offset, place->n, &x->line, err);
        if (r <= 0)
                return r < 0 ? rv_trace(r) : RV__INDEX_E_BROKEN;
        rv_sha256(x->line.data, x->line.size, ret);
        return 0;
}

/* Is it still where it was? */
static int check_cursor(struct rv_index *x, struct rv_error *err)
{
        uint8_t sha256[RV_SHA256_SIZE];
        int r;

        r = x->cursor.has_line ? digest_last(x, sha256, err) : 0;
        if (r != 0 || !x->cursor.has_line)
                return r;
        return memcmp(sha256, x->cursor.line_sha256, sizeof(sha256)) == 0 ? 0 : RV__INDEX_E_BROKEN;
}

/* One transaction. 0 all was read; 1 there is more; RV__INDEX_E_BROKEN; -errno. */
static int fill_batch(struct rv_index *x, uint64_t most, uint64_t *ret_bytes, struct rv_error *err)
{
        char segment[RV_LOG_SEGMENT_NAME_SIZE] = "";
        struct rv_lines reader;
        const struct rv__index_cursor *c = &x->cursor;
        int r, has_more;

        r = rv__index_cursor_get(x, err);
        if (r == 0)
                r = check_cursor(x, err);
        if (r != 0)
                return r;
        if (c->has_line)
                rv_log_segment_name(c->line.segment, segment);
        r = rv_lines_begin_at(&reader, x->log->audit_fd, x->log->audit_path, segment,
                c->has_line ? c->line.offset + c->line.n + 1 : 0, err);
        has_more = r == 0 ? read_lines(x, &reader, most, ret_bytes, err) : r;
        rv_lines_close(&reader);
        if (has_more < 0 || has_more > 1)
                return has_more;
        if (!*ret_bytes)
                return has_more;
        r = digest_last(x, x->cursor.line_sha256, err);
        if (r == 0)
                r = rv__index_cursor_put(x, err);
        return r != 0 ? r : has_more;
}

static int fill_in_transaction(struct rv_index *x, uint64_t most, uint64_t *ret_bytes, struct rv_error *err)
{
        int has_more, r;

        r = rv__index_run(x, RV__INDEX_BEGIN_WRITE, err);
        if (r != 0)
                return r;
        has_more = fill_batch(x, most, ret_bytes, err);
        if (has_more == 0 || has_more == 1) {
                r = rv__index_run(x, *ret_bytes ? RV__INDEX_COMMIT : RV__INDEX_ROLLBACK, err);
                if (r == 0)
                        return has_more;
        } else
                r = has_more;
        (void)sqlite3_exec(x->db, "ROLLBACK", NULL, NULL, NULL);
        return r;
}

/* 1 if nothing was written since; 0; RV__INDEX_E_BROKEN is told when it is tried to read on. */
static int is_up_to_date(struct rv_index *x, struct rv_error *err)
{
        char segment[RV_LOG_SEGMENT_NAME_SIZE], own[RV_LOG_SEGMENT_NAME_SIZE];
        const struct rv__index_cursor *c = &x->cursor;
        uint64_t size = 0;
        int r;

        r = rv_log_end(x->log, segment, &size, err);
        if (r < 0)
                return rv_trace(r);
        if (rv__index_cursor_get(x, NULL) != 0)
                return 0;
        if (r == 0 || !c->has_line)
                return r == 0 && !c->has_line;
        rv_log_segment_name(c->line.segment, own);
        return strcmp(own, segment) == 0 && c->line.offset + c->line.n + 1 == size && check_cursor(x, NULL) == 0;
}

int rv__index_fill(struct rv_index *x, uint64_t max_bytes, struct rv_error *err)
{
        uint64_t all_bytes = 0;
        int r;

        r = is_up_to_date(x, err);
        if (r != 0)
                return r < 0 ? rv_trace(r) : 0;
        x->recent = calloc(RV__INDEX_RECENT, sizeof(*x->recent));
        if (!x->recent)
                return rv__index_fail(x, err, rv_raise(-ENOMEM), "cannot be filled");
        do {
                uint64_t bytes = 0;

                r = fill_in_transaction(x, RV_MIN(BATCH_BYTES, max_bytes - all_bytes), &bytes, err);
                all_bytes += bytes;
        } while (r == 1 && all_bytes < max_bytes);
        free(x->recent);
        x->recent = NULL;
        return r == 1 ? RV__INDEX_E_BEHIND : r;
}
