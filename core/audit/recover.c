#include "audit/recover.h"

#include "audit/lines.h"
#include "audit/live_private.h"
#include "audit/open_set.h"
#include "audit/record_scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#define BOOT_FILE "boot"
#define BOOT_ID_FILE "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_BYTES_MAX 64

struct recovery {
        struct rv_log *log;
        rv_log_conclude_fn conclude;
        void *ctx;
        struct rv_error *err;
        bool is_locked;
        int n_concluded;
};

/* Whose decisions are looked for. */
struct scan {
        struct rv_open_set open;
        const char *instance;                     /* of this one only, or NULL: of all but */
        char (*living)[RV_LOG_ID_SIZE];           /* these, */
        size_t n_living;
        char end_segment[RV_LOG_SEGMENT_NAME_SIZE];   /* and only decisions before this place */
        uint64_t end_offset;
};

static void scan_fini(struct scan *scan)
{
        rv_open_set_fini(&scan->open);
        free(scan->living);
}

/* 1; 0 if another process recovers; -errno. */
static int lock_once(struct recovery *rec)
{
        if (rec->is_locked)
                return 1;
        if (flock(rec->log->audit_fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? 0 : rv_log_fail(rec->log, rec->err, rv_raise(-errno), "", "cannot lock the directory");
        rec->is_locked = true;
        return 1;
}

/* ---- Reading the log ---- */

static bool is_wanted(const struct scan *scan, const struct rv_lines *reader,
        const struct rv_record_text *instance)
{
        int order;

        if (scan->instance)
                return rv_record_text_is(instance, scan->instance);
        order = strcmp(reader->segment, scan->end_segment);
        if (order > 0 || (order == 0 && reader->offset >= scan->end_offset))
                return false;
        for (size_t i = 0; i < scan->n_living; i++)
                if (rv_record_text_is(instance, scan->living[i]))
                        return false;
        return true;
}

static int look_at(struct scan *scan, const struct rv_lines *reader, const char *line, size_t n)
{
        struct rv_open_place place = { .offset = reader->offset, .n = n };
        uint8_t id[RV_DECISION_ID_BYTES];
        struct rv_record_head head;

        rv_record_scan(line, n, &head);
        if (!rv_record_hex(&head.decision_id, sizeof(id), id))
                return 0;
        if (rv_record_text_is(&head.kind, "outcome")) {
                rv_open_set_remove(&scan->open, id);
                return 0;
        }
        if (!rv_record_text_is(&head.kind, "decision") || !is_wanted(scan, reader, &head.instance))
                return 0;
        memcpy(place.segment, reader->segment, sizeof(place.segment));
        return rv_open_set_put(&scan->open, id, &place);
}

static int read_log(struct recovery *rec, struct scan *scan, const char *segment, uint64_t offset)
{
        struct rv_lines reader;
        const char *line;
        size_t n;
        int r;

        r = rv_lines_begin_at(&reader, rec->log->audit_fd, rec->log->audit_path, segment, offset, rec->err);
        while (r == 0 && (r = rv_lines_next(&reader, &line, &n, rec->err)) > 0) {
                r = look_at(scan, &reader, line, n);
                if (r < 0)
                        rv_log_fail(rec->log, rec->err, r, reader.segment, "cannot gather decisions");
        }
        rv_lines_close(&reader);
        return rv_trace(r);
}

/* ---- Concluding ---- */

static int read_record(struct recovery *rec, const struct rv_open_place *at, json_t **ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };
        int r = rv_log_read_line(rec->log, at->segment, at->offset, at->n, &line, rec->err);

        if (r <= 0)
                return r < 0 ? rv_trace(r) : rv_log_fail(rec->log, rec->err, rv_raise(-EIO), at->segment, "cannot read a decision again");
        *ret = rv_log_parse(line.data, line.size);
        return json_is_object(*ret) ? 1 : 0;
}

static json_t *find_left(const struct rv_dead *dead, const json_t *decision)
{
        const char *id = rv_json_get_string(decision, "decision_id", "");
        json_t *body;
        size_t i;

        if (dead)
                json_array_foreach(dead->left, i, body)
                        if (strcmp(rv_json_get_string(body, "decision_id", ""), id) == 0)
                                return body;
        return NULL;
}

/* 1: concluded; 0: what stands there is no record. */
static int conclude_one(struct recovery *rec, const struct rv_open_decision *open, const struct rv_dead *dead)
{
        _cleanup_(rv_json_unrefp) json_t *first = NULL, *last = NULL;
        int r = read_record(rec, &open->last, &last);

        if (r > 0 && (open->first.offset != open->last.offset || strcmp(open->first.segment, open->last.segment) != 0))
                r = read_record(rec, &open->first, &first);
        if (r > 0)
                r = rec->conclude(rec->ctx, rec->log, first ? first : last, last, find_left(dead, last), rec->err);
        return r < 0 ? rv_trace(r) : last != NULL;
}

static int conclude_all(struct recovery *rec, struct scan *scan, const struct rv_dead *dead)
{
        size_t n = rv_open_set_sort(&scan->open);

        for (size_t i = 0; i < n; i++) {
                int r = conclude_one(rec, &scan->open.slots[i], dead);

                if (r < 0)
                        return rv_trace(r);
                rec->n_concluded += r;
        }
        return 0;
}

/* ---- Dead writers ---- */

static int recover_dead(struct recovery *rec, const struct rv_dead *dead)
{
        _cleanup_(scan_fini) struct scan scan = { .instance = dead->instance };
        int r = 0;

        if (dead->may_have_records)
                r = read_log(rec, &scan, dead->segment, dead->offset);
        if (r == 0)
                r = conclude_all(rec, &scan, dead);
        if (r == 0)
                r = rv_log_sync(rec->log, rec->err);
        if (r == 0)
                r = rv_dead_remove(rec->log, dead, rec->err);
        return rv_trace(r);
}

static void closedirp(DIR **d)
{
        if (*d)
                closedir(*d);
}

/* 1; 0 if there is no such directory; -errno. */
static int open_live(struct recovery *rec, DIR **ret)
{
        int fd = openat(rec->log->audit_fd, RV_LIVE_DIRECTORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

        *ret = fd >= 0 ? fdopendir(fd) : NULL;
        if (*ret)
                return 1;
        if (fd < 0 && errno == ENOENT)
                return 0;
        rv_close(fd);
        return rv_log_fail(rec->log, rec->err, rv_raise(-errno), RV_LIVE_DIRECTORY, "cannot read the directory");
}

static int recover_all_dead(struct recovery *rec)
{
        _cleanup_(closedirp) DIR *dir = NULL;
        struct dirent *e;
        int r;

        r = open_live(rec, &dir);
        if (r <= 0)
                return rv_trace(r);
        while ((e = readdir(dir))) {
                struct rv_dead dead;

                if (e->d_name[0] == '.' || strcmp(e->d_name, rec->log->instance) == 0)
                        continue;
                r = rv_dead_take(rec->log, e->d_name, &dead, rec->err);
                if (r < 0)
                        return rv_trace(r);
                if (r == 0)
                        continue;
                r = lock_once(rec);
                if (r > 0)
                        r = recover_dead(rec, &dead);
                else if (r == 0)
                        r = 1;
                rv_dead_release(&dead);
                if (r != 0)
                        return r < 0 ? rv_trace(r) : 0;
        }
        return 0;
}

/* ---- After a crash of the machine ---- */

/* 1 if the machine was started anew since the log was last recovered, or that is not known. */
static int has_rebooted(struct recovery *rec, struct rv_buf *boot_id)
{
        _cleanup_(rv_buf_fini) struct rv_buf last = { 0 };
        int r;

        r = rv_read_file_at(AT_FDCWD, BOOT_ID_FILE, BOOT_ID_BYTES_MAX, boot_id);
        if (r < 0)
                boot_id->size = 0;
        r = rv_read_file_at(rec->log->audit_fd, BOOT_FILE, BOOT_ID_BYTES_MAX, &last);
        if (r < 0 && r != -ENOENT && r != -EFBIG)
                return rv_log_fail(rec->log, rec->err, r, BOOT_FILE, "cannot read");
        if (!boot_id->size || r < 0 || last.size != boot_id->size)
                return 1;
        return memcmp(last.data, boot_id->data, last.size) != 0;
}

static int list_living(struct recovery *rec, struct scan *scan)
{
        _cleanup_(closedirp) DIR *dir = NULL;
        struct dirent *e;
        int r;

        r = open_live(rec, &dir);
        while (r > 0 && (e = readdir(dir))) {
                void *more;

                if (strlen(e->d_name) != RV_LOG_ID_SIZE - 1)
                        continue;
                more = reallocarray(scan->living, scan->n_living + 1, sizeof(*scan->living));
                if (!more)
                        return rv_log_fail(rec->log, rec->err, rv_raise(-ENOMEM), RV_LIVE_DIRECTORY, "cannot list");
                scan->living = more;
                memcpy(scan->living[scan->n_living++], e->d_name, RV_LOG_ID_SIZE);
        }
        return r < 0 ? rv_trace(r) : 0;
}

/*
 * The order matters. Whoever wrote a decision before `end` and is not in the list, made after, has ended by then,
 * and its outcome, if it has one, stands in the log before the reading begins. Who is in the list and dies
 * meanwhile leaves its file to the next start.
 */
static int recover_whole(struct recovery *rec)
{
        _cleanup_(scan_fini) struct scan scan = { 0 };
        struct stat st;
        int r;

        r = rv_log_open_segment(rec->log, rec->err);
        if (r <= 0)
                return rv_trace(r);
        if (fstat(rec->log->segment_fd, &st) < 0)
                return rv_log_fail(rec->log, rec->err, rv_raise(-errno), rec->log->segment, "cannot look at the file");
        memcpy(scan.end_segment, rec->log->segment, sizeof(scan.end_segment));
        scan.end_offset = (uint64_t)st.st_size;
        r = list_living(rec, &scan);
        if (r == 0)
                r = read_log(rec, &scan, "", 0);
        if (r == 0)
                r = conclude_all(rec, &scan, NULL);
        if (r == 0)
                r = rv_log_sync(rec->log, rec->err);
        return rv_trace(r);
}

static int recover_after_boot(struct recovery *rec)
{
        _cleanup_(rv_buf_fini) struct rv_buf boot_id = { 0 };
        int r;

        r = has_rebooted(rec, &boot_id);
        if (r > 0)
                r = lock_once(rec);
        if (r <= 0)
                return rv_trace(r);
        boot_id.size = 0;
        r = has_rebooted(rec, &boot_id);        /* another may have been here before the lock */
        if (r <= 0)
                return rv_trace(r);
        r = recover_whole(rec);
        if (r == 0 && boot_id.size) {
                r = rv_write_file_at(rec->log->audit_fd, BOOT_FILE, boot_id.data, boot_id.size, 0600, true);
                if (r < 0)
                        return rv_log_fail(rec->log, rec->err, r, BOOT_FILE, "cannot write");
        }
        return rv_trace(r);
}

int rv_log_recover(struct rv_log *log, rv_log_conclude_fn conclude, void *ctx, struct rv_error *err)
{
        struct recovery rec = { .log = log, .conclude = conclude, .ctx = ctx, .err = err };
        int r;

        r = recover_all_dead(&rec);
        if (r == 0)
                r = recover_after_boot(&rec);
        if (rec.is_locked)
                flock(log->audit_fd, LOCK_UN);
        return r < 0 ? rv_trace(r) : rec.n_concluded;
}
