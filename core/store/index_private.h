/*
 * index_private.h - what the files of the index share
 *
 * index.c opens, locks and repairs; index_db.c is all that is SQLite's own; index_fill.c reads the log in; index_keys.c
 * keeps the table of keys and answers. Functions return RV__INDEX_E_BROKEN for whatever only a new index can cure. Thread:
 * that of the log.
 */
#pragma once

#include "audit/lines.h"
#include "audit/log_private.h"
#include "store/index.h"

#include <sqlite3.h>

#define RV__INDEX_E_BROKEN 2
#define RV__INDEX_E_BEHIND 3              /* more to be read than was allowed */

#define RV__INDEX_ID_BYTES 16             /* of a decision's or run's id */
#define RV__INDEX_BUCKETS 256             /* parts of the table of keys, by a key's first byte */
#define RV__INDEX_RECENT 16384            /* decisions remembered while the log is read; a power of two */

/* A place in the log. */
struct rv__index_place {
        uint64_t segment, offset;         /* the segment by its first seq */
        size_t n;                         /* without the newline */
};

/* How far the log has been read, and what `keys` must add up to. */
struct rv__index_cursor {
        bool has_line;                    /* false: nothing was read so far */
        struct rv__index_place line;      /* the last one that was read */
        uint8_t line_sha256[RV_SHA256_SIZE];
        uint64_t sums[RV__INDEX_BUCKETS];
};

/* A row of `keys`. */
struct rv__index_taken {
        uint8_t key[RV_SHA256_SIZE], fingerprint[RV_SHA256_SIZE], decision_id[RV__INDEX_ID_BYTES];
        bool is_done;
        uint64_t ended_us;
        uint8_t outcome_sha256[RV_SHA256_SIZE];
};

/* A decision that was read a moment ago, so that its outcome is matched without asking the database. */
struct rv__index_recent {
        uint8_t id[RV__INDEX_ID_BYTES];
        bool is_used, has_key;
        uint64_t seq;
        uint8_t key[RV_SHA256_SIZE];
};

enum rv__index_statement {
        RV__INDEX_BEGIN,
        RV__INDEX_BEGIN_WRITE,
        RV__INDEX_COMMIT,
        RV__INDEX_ROLLBACK,
        RV__INDEX_GET_CURSOR,
        RV__INDEX_PUT_CURSOR,
        RV__INDEX_PUT_RUN,
        RV__INDEX_GET_RUN,
        RV__INDEX_END_RUN,
        RV__INDEX_GET_KEYS,
        RV__INDEX_GET_KEY,
        RV__INDEX_PUT_KEY,
        RV__INDEX_DROP_KEY,
        RV__INDEX_STATEMENTS,
};

struct rv_index {
        struct rv_log *log;
        int lock_fd;                      /* -EBADF: nothing is open */
        unsigned wait_ms;                 /* for other processes that use it */
        sqlite3 *db;
        sqlite3_stmt *statements[RV__INDEX_STATEMENTS];
        unsigned n_made;
        struct rv__index_cursor cursor;
        struct rv__index_recent *recent;  /* while the log is read */
        struct rv_buf line;
};

/* ---- index_db.c ---- */

/**
 * rv__index_db_open() - open the database, and make its tables if it has none
 *
 * Context:   may block; the lock is held
 * Ownership: release with rv__index_db_close(), also after a failure
 * Return:    0; RV__INDEX_E_BROKEN; -errno
 */
int rv__index_db_open(struct rv_index *x, struct rv_error *err);
/** rv__index_db_close() - Context: may block. Ownership: takes the connection. Return: none */
void rv__index_db_close(struct rv_index *x);
/** rv__index_db_remove() - the files of the database. Context: may block; the lock is held exclusively. Ownership: none. Return: 0 or -errno */
int rv__index_db_remove(struct rv_index *x, struct rv_error *err);
/** rv__index_fail() - set "STATE/index.sqlite: WHAT: the error's text; do this". Context: any. Ownership: borrows. Return: @r */
int rv__index_fail(const struct rv_index *x, struct rv_error *err, int r, const char *what);
/** rv__index_db_error() - what an answer of SQLite's means. Context: after the call. Ownership: borrows. Return: RV__INDEX_E_BROKEN or -errno with @err set */
int rv__index_db_error(struct rv_index *x, int rc, struct rv_error *err);
/** rv__index_statement() - a statement, ready for values. Context: any. Ownership: borrowed from @x. Return: it */
sqlite3_stmt *rv__index_statement(struct rv_index *x, enum rv__index_statement which);
/** rv__index_run() - run a statement that gives no row, and reset it. Context: may block. Ownership: borrows. Return: 0; as rv__index_db_error() */
int rv__index_run(struct rv_index *x, enum rv__index_statement which, struct rv_error *err);
/** rv__index_blob() - a column that must be a blob of @n bytes. Context: on a row. Ownership: copies to @ret. Return: whether it is one */
bool rv__index_blob(sqlite3_stmt *s, int column, size_t n, void *ret);
/** rv__index_number() - a column that must be a whole number from 0 on. Context: on a row. Ownership: none. Return: whether it is one */
bool rv__index_number(sqlite3_stmt *s, int column, uint64_t *ret);
/** rv__index_cursor_get() - read the cursor; x->cursor is it. Context: in a transaction. Ownership: none. Return: 0; RV__INDEX_E_BROKEN; -errno */
int rv__index_cursor_get(struct rv_index *x, struct rv_error *err);
/** rv__index_cursor_put() - write it. Context: in a transaction that writes. Ownership: none. Return: as above */
int rv__index_cursor_put(struct rv_index *x, struct rv_error *err);

/* ---- index_fill.c ---- */


/**
 * rv__index_fill() - read in what was written to the log since
 * @max_bytes: most of it to be read
 *
 * Context:   may block
 * Ownership: borrows
 * Return:    0; RV__INDEX_E_BROKEN; RV__INDEX_E_BEHIND; -errno
 */
int rv__index_fill(struct rv_index *x, uint64_t max_bytes, struct rv_error *err);

/* ---- index_keys.c ---- */

/** rv__index_keys_get() - the row of a key. Context: in a transaction. Ownership: none. Return: 1; 0 there is none; RV__INDEX_E_BROKEN is told by *@ret_broken, 0 then; -errno */
int rv__index_keys_get(struct rv_index *x, const uint8_t key[RV_SHA256_SIZE], struct rv__index_taken *ret,
        bool *ret_broken, struct rv_error *err);
/** rv__index_keys_put() - add or replace the row of a key, and count it into the sums. Context: in a transaction that writes. Ownership: copies. Return: 0; RV__INDEX_E_BROKEN; -errno */
int rv__index_keys_put(struct rv_index *x, const struct rv__index_taken *row, struct rv_error *err);
/** rv__index_keys_drop() - the key is free. Context: in a transaction that writes. Ownership: borrows. Return: as above */
int rv__index_keys_drop(struct rv_index *x, const struct rv__index_taken *row, struct rv_error *err);

/**
 * rv__index_look_up() - who has a key, checked against the sums and the log
 *
 * Context:   may block; after rv__index_fill()
 * Ownership: the caller's memory; @ret untouched on failure
 * Return:    0; RV__INDEX_E_BROKEN; RV__INDEX_E_BEHIND the log went on; -errno
 */
int rv__index_look_up(
        struct rv_index *x, const uint8_t key[RV_SHA256_SIZE], struct rv_index_key *ret, struct rv_error *err);
