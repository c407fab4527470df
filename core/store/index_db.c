#include "store/index_private.h"

#include "base/clock.h"
#include "store/index_schema.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define FILE_NAME "index.sqlite"
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES_MAX 64
#define PAUSE_US 1000
#define MAPPED_PAGE_BYTES 4096u
#define ROOM_BYTES (512u << 10)          /* for -shm, and what a few records add to -wal meanwhile */

int rv__index_fail(const struct rv_index *x, struct rv_error *err, int r, const char *what)
{
        return rv_error_set(err, r, "%s/" FILE_NAME ": %s: %s; it is only an index over the log: where it stays in the way, remove it while no reeve runs",
                            x->log->state_dir, what, strerror(-r));
}

int rv__index_db_error(struct rv_index *x, int rc, struct rv_error *err)
{
        int e = x->db ? sqlite3_system_errno(x->db) : 0;

        if (rc == SQLITE_IOERR_SHORT_READ || rc == SQLITE_IOERR_CORRUPTFS)
                return RV__INDEX_E_BROKEN;
        switch (rc & 0xff) {
        case SQLITE_NOMEM:
                return rv__index_fail(x, err, rv_raise(-ENOMEM), "cannot be used");
        case SQLITE_BUSY:
        case SQLITE_PROTOCOL:
                return rv__index_fail(x, err, rv_raise(-ETIMEDOUT), "another reeve keeps it");
        case SQLITE_FULL:
                return rv__index_fail(x, err, rv_raise(-ENOSPC), "cannot be written");
        case SQLITE_READONLY:
                return rv__index_fail(x, err, rv_raise(-EROFS), "cannot be written");
        case SQLITE_IOERR:
        case SQLITE_CANTOPEN:
        case SQLITE_PERM:
                return rv__index_fail(x, err, rv_raise(e ? -e : -EIO), "cannot be used");
        default:
                return RV__INDEX_E_BROKEN;
        }
}

/*
 * The state directory is known by a descriptor; by its path the loop's user may not reach it. SQLite would look
 * through the link in /proc and use that path.
 */
static int take_path_as_it_is(sqlite3_vfs *vfs, const char *path, int size, char *ret)
{
        int n = snprintf(ret, (size_t)size, "%s", path);

        (void)vfs;
        return n < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

static const char *files_by_descriptor(void)
{
        static sqlite3_vfs vfs;
        const sqlite3_vfs *system_vfs = vfs.zName ? NULL : sqlite3_vfs_find(NULL);

        if (system_vfs) {
                vfs = *system_vfs;
                vfs.zName = "reeve";
                vfs.xFullPathname = take_path_as_it_is;
                sqlite3_vfs_register(&vfs, 0);
        }
        return vfs.zName;
}

/* SQLite would make the file for others to read. */
static int make_file(struct rv_index *x, struct rv_error *err)
{
        int fd = openat(x->log->state_fd, FILE_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

        if (fd < 0)
                return errno == ELOOP ? RV__INDEX_E_BROKEN : rv__index_fail(x, err, rv_raise(-errno), "cannot be opened");
        rv_close(fd);
        return 0;
}

static int execute(struct rv_index *x, const char *sql, struct rv_error *err)
{
        int rc = sqlite3_exec(x->db, sql, NULL, NULL, NULL);

        return rc == SQLITE_OK ? 0 : rv__index_db_error(x, rc, err);
}

/*
 * In this order: not even the making is synced. Where others make the same file at the same time, SQLite does not wait
 * as it does elsewhere: it has begun to read when it finds that it is to write.
 */
static int set_up(struct rv_index *x, struct rv_error *err)
{
        static const char sql[] =
                "PRAGMA synchronous=OFF; PRAGMA page_size=16384; PRAGMA journal_mode=WAL; PRAGMA secure_delete=OFF; PRAGMA trusted_schema=OFF;"
                "PRAGMA cell_size_check=ON; PRAGMA cache_size=-32768; PRAGMA wal_autocheckpoint=4000; PRAGMA temp_store=MEMORY";
        uint64_t give_up_us = rv_boot_us() + x->wait_ms * UINT64_C(1000);
        int rc;

        while (((rc = sqlite3_exec(x->db, sql, NULL, NULL, NULL)) & 0xff) == SQLITE_BUSY && rv_boot_us() < give_up_us)
                usleep(PAUSE_US);
        return rc == SQLITE_OK ? 0 : rv__index_db_error(x, rc, err);
}

/*
 * SQLite sees to it that each page of -shm, which it maps, has a block on the disk. Where a block is smaller than a page
 * (ext4 below 512 MiB) there is none for the rest of it, and to write there while the disk is full ends the process.
 */
static int check_room(struct rv_index *x, struct rv_error *err)
{
        struct statvfs fs;

        if (fstatvfs(x->log->state_fd, &fs) < 0 || fs.f_frsize >= MAPPED_PAGE_BYTES ||
                (uint64_t)fs.f_bavail * fs.f_frsize >= ROOM_BYTES)
                return 0;
        return rv__index_fail(x, err, rv_raise(-ENOSPC), "cannot be used");
}

static int connect_to(struct rv_index *x, struct rv_error *err)
{
        const char *vfs = files_by_descriptor();
        char path[64];
        int rc;

        rc = check_room(x, err);
        if (rc < 0)
                return rc;
        snprintf(path, sizeof(path), "/proc/self/fd/%d/" FILE_NAME, x->log->state_fd);
        rc = vfs ? sqlite3_open_v2(path, &x->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, vfs) : SQLITE_NOMEM;
        if (rc != SQLITE_OK)
                return rv__index_db_error(x, rc, err);
        sqlite3_extended_result_codes(x->db, 1);
        sqlite3_busy_timeout(x->db, (int)x->wait_ms);
        sqlite3_db_config(x->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        return set_up(x, err);
}

static int get_version(struct rv_index *x, int *ret, struct rv_error *err)
{
        sqlite3_stmt *s = NULL;
        int rc = sqlite3_prepare_v2(x->db, "PRAGMA user_version", -1, &s, NULL);

        if (rc == SQLITE_OK)
                rc = sqlite3_step(s);
        if (rc == SQLITE_ROW)
                *ret = sqlite3_column_int(s, 0);
        sqlite3_finalize(s);
        return rc == SQLITE_ROW ? 0 : rv__index_db_error(x, rc, err);
}

/* Another process may do the same: whoever comes second finds the tables. */
static int make_tables(struct rv_index *x, struct rv_error *err)
{
        int version = 0, r;

        r = get_version(x, &version, err);
        if (r != 0 || version == RV__INDEX_VERSION)
                return r;
        r = execute(x, "BEGIN IMMEDIATE", err);
        if (r == 0)
                r = get_version(x, &version, err);
        if (r != 0)
                return r;
        if (version == RV__INDEX_VERSION)
                return execute(x, "ROLLBACK", err);
        if (version != 0)
                return RV__INDEX_E_BROKEN;      /* the connection is closed, and the transaction with it */
        r = execute(x, RV__INDEX_SCHEMA "PRAGMA user_version=" RV_STR(RV__INDEX_VERSION) ";", err);
        if (r == 0)
                r = rv__index_cursor_put(x, err);
        if (r == 0)
                r = execute(x, "COMMIT", err);
        if (r == 0)
                x->n_made++;
        return r;
}

int rv__index_db_open(struct rv_index *x, struct rv_error *err)
{
        int r;

        x->cursor = (struct rv__index_cursor){ 0 };
        r = make_file(x, err);
        if (r == 0)
                r = connect_to(x, err);
        if (r == 0)
                r = make_tables(x, err);
        return r;
}

void rv__index_db_close(struct rv_index *x)
{
        for (size_t i = 0; i < RV__INDEX_STATEMENTS; i++) {
                sqlite3_finalize(x->statements[i]);
                x->statements[i] = NULL;
        }
        sqlite3_close(x->db);
        x->db = NULL;
}

int rv__index_db_remove(struct rv_index *x, struct rv_error *err)
{
        static const char *const names[] = { FILE_NAME "-wal", FILE_NAME "-shm", FILE_NAME "-journal", FILE_NAME };

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++)
                if (unlinkat(x->log->state_fd, names[i], 0) < 0 && errno != ENOENT)
                        return rv__index_fail(x, err, rv_raise(-errno), "cannot be removed, although it is broken");
        return 0;
}

/* ---- Statements ---- */

static const char *const texts[RV__INDEX_STATEMENTS] = {
        [RV__INDEX_BEGIN] = "BEGIN",
        [RV__INDEX_BEGIN_WRITE] = "BEGIN IMMEDIATE",
        [RV__INDEX_COMMIT] = "COMMIT",
        [RV__INDEX_ROLLBACK] = "ROLLBACK",
        [RV__INDEX_GET_CURSOR] = "SELECT log_id, boot_id, has_line, segment, offset, length, line_sha256, sums FROM cursor WHERE id = 1",
        [RV__INDEX_PUT_CURSOR] = "INSERT OR REPLACE INTO cursor (id, log_id, boot_id, has_line, segment, offset, length, line_sha256, sums)"
                                 " VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        [RV__INDEX_PUT_RUN] = "INSERT INTO runs (seq, decision_id, run_id, tenant, time_us, segment, offset, length) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
                              " ON CONFLICT (decision_id) DO NOTHING",
        [RV__INDEX_GET_RUN] = "SELECT seq, segment, offset, length, outcome_segment, outcome_offset, outcome_length FROM runs WHERE decision_id = ?1",
        [RV__INDEX_END_RUN] = "UPDATE runs SET outcome_segment = ?2, outcome_offset = ?3, outcome_length = ?4, status = ?5, code = ?6, started = ?7 WHERE seq = ?1",
        [RV__INDEX_GET_KEYS] = "SELECT key, fingerprint, decision_id, ended_us, outcome_sha256 FROM keys WHERE key >= ?1 AND key <= ?2",
        [RV__INDEX_GET_KEY] = "SELECT key, fingerprint, decision_id, ended_us, outcome_sha256 FROM keys WHERE key = ?1",
        [RV__INDEX_PUT_KEY] = "INSERT OR REPLACE INTO keys (key, fingerprint, decision_id, ended_us, outcome_sha256) VALUES (?1, ?2, ?3, ?4, ?5)",
        [RV__INDEX_DROP_KEY] = "DELETE FROM keys WHERE key = ?1",
};

/* NULL if it cannot be prepared: then stepping and binding tell SQLITE_MISUSE, and rv__index_run() asks why. */
sqlite3_stmt *rv__index_statement(struct rv_index *x, enum rv__index_statement which)
{
        if (!x->statements[which])
                (void)sqlite3_prepare_v3(
                        x->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, &x->statements[which], NULL);
        return x->statements[which];
}

int rv__index_run(struct rv_index *x, enum rv__index_statement which, struct rv_error *err)
{
        sqlite3_stmt *s = rv__index_statement(x, which);
        int rc = s ? sqlite3_step(s) : sqlite3_extended_errcode(x->db);

        if (s)
                sqlite3_reset(s);
        return rc == SQLITE_DONE ? 0 : rv__index_db_error(x, rc, err);
}

bool rv__index_blob(sqlite3_stmt *s, int column, size_t n, void *ret)
{
        if (sqlite3_column_type(s, column) != SQLITE_BLOB || (size_t)sqlite3_column_bytes(s, column) != n)
                return false;
        memcpy(ret, sqlite3_column_blob(s, column), n);
        return true;
}

bool rv__index_number(sqlite3_stmt *s, int column, uint64_t *ret)
{
        sqlite3_int64 value;

        if (sqlite3_column_type(s, column) != SQLITE_INTEGER)
                return false;
        value = sqlite3_column_int64(s, column);
        if (value < 0)
                return false;
        *ret = (uint64_t)value;
        return true;
}

/* ---- The cursor: its place is checked against the log, its sums against the rows of keys ---- */

/* The machine's boot; "" where it cannot be told: then only an index that this object made itself is taken. */
static void get_boot_id(struct rv_buf *ret)
{
        if (rv_read_file_at(AT_FDCWD, BOOT_ID_FILE, BOOT_ID_BYTES_MAX, ret) < 0)
                ret->size = 0;
        if (ret->size && ret->data[ret->size - 1] == '\n')
                ret->data[--ret->size] = 0;
}

static bool is_text(sqlite3_stmt *s, int column, const char *text)
{
        const char *value = (const char *)sqlite3_column_text(s, column);

        return value && strcmp(value, text) == 0;
}

static bool take_cursor(struct rv_index *x, sqlite3_stmt *s, const struct rv_buf *boot_id)
{
        struct rv__index_cursor *c = &x->cursor;
        uint64_t has_line, n;

        if ((!boot_id->size && !x->n_made) || !is_text(s, 0, x->log->id) ||
                !is_text(s, 1, boot_id->size ? boot_id->data : "") || !rv__index_number(s, 2, &has_line) ||
                !rv__index_number(s, 3, &c->line.segment) || !rv__index_number(s, 4, &c->line.offset) ||
                !rv__index_number(s, 5, &n) || !rv__index_blob(s, 6, sizeof(c->line_sha256), c->line_sha256) ||
                !rv__index_blob(s, 7, sizeof(c->sums), c->sums))
                return false;
        c->has_line = has_line;
        c->line.n = n;
        return true;
}

int rv__index_cursor_get(struct rv_index *x, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf boot_id = { 0 };
        sqlite3_stmt *s = rv__index_statement(x, RV__INDEX_GET_CURSOR);
        int rc, r;

        get_boot_id(&boot_id);
        rc = s ? sqlite3_step(s) : sqlite3_extended_errcode(x->db);
        if (rc == SQLITE_ROW)
                r = take_cursor(x, s, &boot_id) ? 0 : RV__INDEX_E_BROKEN;
        else
                r = rc == SQLITE_DONE ? RV__INDEX_E_BROKEN : rv__index_db_error(x, rc, err);
        if (s)
                sqlite3_reset(s);
        return r;
}

int rv__index_cursor_put(struct rv_index *x, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf boot_id = { 0 };
        sqlite3_stmt *s = rv__index_statement(x, RV__INDEX_PUT_CURSOR);
        const struct rv__index_cursor *c = &x->cursor;

        get_boot_id(&boot_id);
        sqlite3_bind_text(s, 1, x->log->id, -1, SQLITE_STATIC);
        sqlite3_bind_text(s, 2, boot_id.size ? boot_id.data : "", -1, SQLITE_STATIC);
        sqlite3_bind_int(s, 3, c->has_line);
        sqlite3_bind_int64(s, 4, (sqlite3_int64)c->line.segment);
        sqlite3_bind_int64(s, 5, (sqlite3_int64)c->line.offset);
        sqlite3_bind_int64(s, 6, (sqlite3_int64)c->line.n);
        sqlite3_bind_blob(s, 7, c->line_sha256, sizeof(c->line_sha256), SQLITE_STATIC);
        sqlite3_bind_blob(s, 8, c->sums, sizeof(c->sums), SQLITE_STATIC);
        return rv__index_run(x, RV__INDEX_PUT_CURSOR, err);
}
