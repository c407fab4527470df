#include "store/index_private.h"

#include <stdio.h>
#include <string.h>

/* ---- Rows and sums ---- */

static uint64_t digest_row(const struct rv__index_taken *row)
{
        uint8_t digest[RV_SHA256_SIZE];
        uint64_t ended[2] = { row->is_done, row->ended_us }, ret;
        struct rv_sha256 h;

        rv_sha256_init(&h);
        rv_sha256_update(&h, row->key, sizeof(row->key));
        rv_sha256_update(&h, row->fingerprint, sizeof(row->fingerprint));
        rv_sha256_update(&h, row->decision_id, sizeof(row->decision_id));
        rv_sha256_update(&h, ended, sizeof(ended));
        rv_sha256_update(&h, row->outcome_sha256, sizeof(row->outcome_sha256));
        rv_sha256_final(&h, digest);
        memcpy(&ret, digest, sizeof(ret));
        return ret;
}

static bool read_row(sqlite3_stmt *s, struct rv__index_taken *ret)
{
        *ret = (struct rv__index_taken){ .is_done = sqlite3_column_type(s, 3) != SQLITE_NULL };
        return rv__index_blob(s, 0, sizeof(ret->key), ret->key) &&
                rv__index_blob(s, 1, sizeof(ret->fingerprint), ret->fingerprint) &&
                rv__index_blob(s, 2, sizeof(ret->decision_id), ret->decision_id) &&
                (!ret->is_done ||
                        (rv__index_number(s, 3, &ret->ended_us) &&
                                rv__index_blob(s, 4, sizeof(ret->outcome_sha256), ret->outcome_sha256)));
}

int rv__index_keys_get(struct rv_index *x, const uint8_t key[RV_SHA256_SIZE], struct rv__index_taken *ret,
        bool *ret_broken, struct rv_error *err)
{
        sqlite3_stmt *s = rv__index_statement(x, RV__INDEX_GET_KEY);
        int rc, r = 0;

        *ret_broken = false;
        sqlite3_bind_blob(s, 1, key, RV_SHA256_SIZE, SQLITE_STATIC);
        rc = s ? sqlite3_step(s) : sqlite3_extended_errcode(x->db);
        if (rc == SQLITE_ROW) {
                r = 1;
                *ret_broken = !read_row(s, ret);
        } else if (rc != SQLITE_DONE) {
                r = rv__index_db_error(x, rc, err);
                *ret_broken = r > 0;
        }
        if (s)
                sqlite3_reset(s);
        return *ret_broken ? 0 : r;
}

static int forget(struct rv_index *x, const uint8_t key[RV_SHA256_SIZE], struct rv_error *err)
{
        struct rv__index_taken old;
        bool is_broken;
        int r;

        r = rv__index_keys_get(x, key, &old, &is_broken, err);
        if (r > 0)
                x->cursor.sums[key[0]] -= digest_row(&old);
        return is_broken ? RV__INDEX_E_BROKEN : r < 0 ? rv_trace(r) : 0;
}

int rv__index_keys_put(struct rv_index *x, const struct rv__index_taken *row, struct rv_error *err)
{
        sqlite3_stmt *s = rv__index_statement(x, RV__INDEX_PUT_KEY);
        int r;

        r = forget(x, row->key, err);
        if (r != 0)
                return r;
        sqlite3_bind_blob(s, 1, row->key, sizeof(row->key), SQLITE_STATIC);
        sqlite3_bind_blob(s, 2, row->fingerprint, sizeof(row->fingerprint), SQLITE_STATIC);
        sqlite3_bind_blob(s, 3, row->decision_id, sizeof(row->decision_id), SQLITE_STATIC);
        sqlite3_bind_null(s, 4);
        sqlite3_bind_null(s, 5);
        if (row->is_done) {
                sqlite3_bind_int64(s, 4, (sqlite3_int64)row->ended_us);
                sqlite3_bind_blob(s, 5, row->outcome_sha256, sizeof(row->outcome_sha256), SQLITE_STATIC);
        }
        r = rv__index_run(x, RV__INDEX_PUT_KEY, err);
        if (r == 0)
                x->cursor.sums[row->key[0]] += digest_row(row);
        return r;
}

int rv__index_keys_drop(struct rv_index *x, const struct rv__index_taken *row, struct rv_error *err)
{
        sqlite3_stmt *s = rv__index_statement(x, RV__INDEX_DROP_KEY);
        int r;

        r = forget(x, row->key, err);
        if (r != 0)
                return r;
        sqlite3_bind_blob(s, 1, row->key, sizeof(row->key), SQLITE_STATIC);
        return rv__index_run(x, RV__INDEX_DROP_KEY, err);
}

/* ---- Answers ---- */

/*
 * The key's row, out of all that begin with the same byte: only together they show that none is missing. 1; 0 it
 * has none; RV__INDEX_E_BROKEN; -errno.
 */
static int read_bucket(
        struct rv_index *x, const uint8_t key[RV_SHA256_SIZE], struct rv__index_taken *ret, struct rv_error *err)
{
        sqlite3_stmt *s = rv__index_statement(x, RV__INDEX_GET_KEYS);
        uint8_t first[RV_SHA256_SIZE] = { key[0] }, last[RV_SHA256_SIZE];
        bool is_found = false;
        uint64_t sum = 0;
        int rc;

        memset(last, 0xff, sizeof(last));
        last[0] = key[0];
        sqlite3_bind_blob(s, 1, first, sizeof(first), SQLITE_STATIC);
        sqlite3_bind_blob(s, 2, last, sizeof(last), SQLITE_STATIC);
        while ((rc = s ? sqlite3_step(s) : sqlite3_extended_errcode(x->db)) == SQLITE_ROW) {
                struct rv__index_taken row;

                if (!read_row(s, &row))
                        break;
                sum += digest_row(&row);
                if (memcmp(row.key, key, sizeof(row.key)) == 0) {
                        *ret = row;
                        is_found = true;
                }
        }
        if (s)
                sqlite3_reset(s);
        if (rc == SQLITE_ROW)
                return RV__INDEX_E_BROKEN;
        if (rc != SQLITE_DONE)
                return rv__index_db_error(x, rc, err);
        return sum == x->cursor.sums[key[0]] ? is_found : RV__INDEX_E_BROKEN;
}

/* Where the records of a run stand. 0; RV__INDEX_E_BROKEN; -errno. */
static int find_places(
        struct rv_index *x, const struct rv__index_taken *row, struct rv__index_place ret[2], struct rv_error *err)
{
        sqlite3_stmt *s = rv__index_statement(x, RV__INDEX_GET_RUN);
        uint64_t n[2] = { 0 };
        bool is_whole;
        int rc;

        sqlite3_bind_blob(s, 1, row->decision_id, sizeof(row->decision_id), SQLITE_STATIC);
        rc = s ? sqlite3_step(s) : sqlite3_extended_errcode(x->db);
        is_whole = rc == SQLITE_ROW && rv__index_number(s, 1, &ret[0].segment) &&
                rv__index_number(s, 2, &ret[0].offset) && rv__index_number(s, 3, &n[0]) &&
                (!row->is_done ||
                        (rv__index_number(s, 4, &ret[1].segment) && rv__index_number(s, 5, &ret[1].offset) &&
                                rv__index_number(s, 6, &n[1])));
        if (s)
                sqlite3_reset(s);
        ret[0].n = n[0];
        ret[1].n = n[1];
        if (rc != SQLITE_ROW && rc != SQLITE_DONE)
                return rv__index_db_error(x, rc, err);
        return is_whole ? 0 : RV__INDEX_E_BROKEN;
}

/* 0 and a new reference; RV__INDEX_E_BROKEN; -errno. */
static int read_record(struct rv_index *x, const struct rv__index_place *place, const char *kind,
        const char *decision_id, json_t **ret, struct rv_error *err)
{
        char segment[RV_LOG_SEGMENT_NAME_SIZE];
        json_t *record;
        int r;

        rv_log_segment_name(place->segment, segment);
        r = rv_log_read_line(x->log, segment, place->offset, place->n, &x->line, err);
        if (r <= 0)
                return r < 0 ? rv_trace(r) : RV__INDEX_E_BROKEN;
        record = rv_log_parse(x->line.data, x->line.size);
        if (strcmp(rv_json_get_string(record, "kind", ""), kind) != 0 || strcmp(rv_json_get_string(record, "decision_id", ""), decision_id) != 0) {
                json_decref(record);
                return RV__INDEX_E_BROKEN;
        }
        *ret = record;
        return 0;
}

static bool take_text(const json_t *record, const char *name, char *ret, size_t size)
{
        return (size_t)snprintf(ret, size, "%s", rv_json_get_string(record, name, "")) < size;
}

static uint64_t time_of(const json_t *record)
{
        return (uint64_t)json_integer_value(json_object_get(record, "time_us"));
}

/* What the row says, as far as the records that it stands for say the same. */
static int believe(
        struct rv_index *x, const struct rv__index_taken *row, struct rv_index_key *ret, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *decision = NULL, *outcome = NULL;
        struct rv__index_place places[2] = { 0 };
        char key[RV_SHA256_HEX_SIZE], sha256[RV_SHA256_HEX_SIZE];
        const json_t *own_key;
        int r;

        rv_hex(row->decision_id, sizeof(row->decision_id), ret->decision_id);
        rv_hex(row->fingerprint, sizeof(row->fingerprint), ret->fingerprint);
        rv_hex(row->key, sizeof(row->key), key);
        rv_hex(row->outcome_sha256, sizeof(row->outcome_sha256), sha256);
        r = find_places(x, row, places, err);
        if (r == 0)
                r = read_record(x, &places[0], "decision", ret->decision_id, &decision, err);
        if (r == 0 && row->is_done)
                r = read_record(x, &places[1], "outcome", ret->decision_id, &outcome, err);
        if (r != 0)
                return r;
        own_key = json_object_get(decision, "key");
        ret->state = row->is_done ? RV_INDEX_DONE : RV_INDEX_OPEN;
        ret->decided_us = time_of(decision);
        ret->ended_us = time_of(outcome);
        if (strcmp(rv_json_get_string(own_key, "hmac_sha256", ""), key) != 0 || strcmp(rv_json_get_string(own_key, "fingerprint", ""), ret->fingerprint) != 0 ||
            !take_text(decision, "run_id", ret->run_id, sizeof(ret->run_id)))
                return RV__INDEX_E_BROKEN;
        if (row->is_done && (ret->ended_us != row->ended_us || !take_text(outcome, "outcome_sha256", ret->outcome_sha256, sizeof(ret->outcome_sha256)) ||
                             strcmp(ret->outcome_sha256, sha256) != 0 || !take_text(outcome, "status", ret->status, sizeof(ret->status)) ||
                             !take_text(outcome, "code", ret->code, sizeof(ret->code))))
                return RV__INDEX_E_BROKEN;
        return 0;
}

int rv__index_look_up(
        struct rv_index *x, const uint8_t key[RV_SHA256_SIZE], struct rv_index_key *ret, struct rv_error *err)
{
        struct rv_index_key answer = { .state = RV_INDEX_FREE };
        struct rv__index_taken row;
        int r;

        /* The cursor and the rows are those of one moment. */
        r = rv__index_run(x, RV__INDEX_BEGIN, err);
        if (r != 0)
                return r;
        r = rv__index_cursor_get(x, err);
        if (r == 0)
                r = read_bucket(x, key, &row, err);
        (void)sqlite3_exec(x->db, "COMMIT", NULL, NULL, NULL);
        if (r == 1)
                r = believe(x, &row, &answer, err);
        if (r == 0)
                *ret = answer;
        return r;
}
