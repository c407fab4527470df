#include "audit/sink_private.h"

#include "audit/lines.h"
#include "audit/record_scan.h"
#include "base/clock.h"
#include "base/test_point.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#define LOCK_FILE "sending"              /* holds why the last delivery failed */
#define SCAN_BYTES_MAX ((uint64_t)16 << 20)   /* of records that nobody wants, before the mark is moved past them */
#define ROUNDS 2u
#define SLOW_US 1000000u                 /* a failure that took less is no burden */
#define REST_BYTES_MAX 64u
#define REST_MAX_US ((uint64_t)300 * 1000 * 1000)

/* ---- Open and close ---- */

/* An address without what may be secret in it: the scheme, the host, the path. */
static char *name_of(const char *to)
{
        const char *rest, *at;
        char *name;
        size_t n;

        if (strncmp(to, "file:", 5) == 0)
                return strdup(to);
        if (strncmp(to, "command:", 8) == 0)
                return strndup(to, strcspn(to, " "));   /* its words may hold anything */
        rest = to + 8;
        n = strcspn(rest, "/?#");
        at = memrchr(rest, '@', n);
        rest = at ? at + 1 : rest;
        return asprintf(&name, "https://%.*s", (int)strcspn(rest, "?#"), rest) < 0 ? NULL : name;
}

int rv_sink_open(const struct rv_config_sink *config, struct rv_sink **ret, struct rv_error *err)
{
        _cleanup_(rv_sink_closep) struct rv_sink *sink = calloc(1, sizeof(*sink));

        if (sink) {
                sink->config = config;
                sink->file_fd = sink->helper_fd = -EBADF;
                sink->kind = strncmp(config->to, "file:", 5) == 0 ? RV_SINK_FILE : strncmp(config->to, "command:", 8) == 0 ? RV_SINK_COMMAND : RV_SINK_HTTPS;
                sink->name = name_of(config->to);
        }
        if (!sink || !sink->name)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for the audit log's second place");
        (void)rv__sink_open_place(sink, &sink->trouble);
        *ret = rv_take(&sink);
        return 0;
}

void rv_sink_close(struct rv_sink *sink)
{
        if (!sink)
                return;
        rv_close(sink->file_fd);
        rv_close(sink->helper_fd);
        if (sink->text.data)
                explicit_bzero(sink->text.data, sink->text.size);
        rv_buf_fini(&sink->text);
        free(sink->words);
        free(sink->name);
        free(sink);
}

const char *rv_sink_name(const struct rv_sink *sink)
{
        return sink->name;
}

/* ---- One pass over what is not sent ---- */

struct pass {
        struct rv_sink *sink;
        struct rv_log *log;
        uint64_t deadline_us;
        struct rv_sink_progress *progress;
        struct rv_error *err;
        struct rv_buf batch;
        uint64_t n_batch_records;
        /* The line read last, wanted or not: where the mark goes when the batch is acknowledged. */
        char segment[RV_LOG_SEGMENT_NAME_SIZE];
        uint64_t offset;
        size_t n;
        uint64_t n_scanned;              /* bytes since the mark was moved */
};

static uint64_t batch_deadline(const struct pass *p)
{
        return RV_MIN(p->deadline_us, rv_boot_us() + p->sink->config->timeout_ms * 1000);
}

/* What was read so far is acknowledged, or was not wanted: it need not be read again. */
static int flush(struct pass *p)
{
        int r = 0;

        if (!p->n_scanned)
                return 0;
        if (p->batch.size)
                r = rv__sink_deliver(p->sink, p->batch.data, p->batch.size, batch_deadline(p), p->err);
        if (r < 0)
                return rv_trace(r);
        rv_test_point("sink-sent");
        r = rv__sink_mark_write(p->log, p->segment, p->offset, p->n, p->err);
        if (r < 0)
                return rv_trace(r);
        p->progress->n_records += p->n_batch_records;
        p->progress->n_bytes += p->batch.size;
        p->batch.size = 0;
        p->n_batch_records = p->n_scanned = 0;
        return 0;
}

static bool is_wanted(const struct pass *p, const char *line, size_t n)
{
        struct rv_record_head head;

        if (p->sink->config->has_records)
                return true;
        rv_record_scan(line, n, &head);
        return rv_record_text_is(&head.kind, "checkpoint");
}

static int take_line(struct pass *p, const struct rv_lines *reader, const char *line, size_t n)
{
        bool wanted = is_wanted(p, line, n);
        int r = 0;

        if (wanted && p->batch.size && p->batch.size + n + 1 > RV_SINK_BATCH_BYTES)
                r = flush(p);
        if (r == 0 && wanted && (rv_buf_append(&p->batch, line, n) < 0 || rv_buf_putc(&p->batch, '\n') < 0))
                r = rv_error_set(p->err, rv_raise(-ENOMEM), "out of memory for a batch of records");
        if (r < 0)
                return rv_trace(r);
        memcpy(p->segment, reader->segment, sizeof(p->segment));
        p->offset = reader->offset;
        p->n = n;
        p->n_scanned += n + 1;
        p->n_batch_records += wanted;
        if (p->batch.size >= RV_SINK_BATCH_BYTES || p->n_scanned >= SCAN_BYTES_MAX)
                r = flush(p);
        return rv_trace(r);
}

/* From the mark to what was the end of the log at the beginning. */
static int read_on(struct pass *p, struct rv_lines *reader, uint64_t n_left)
{
        const char *line;
        unsigned n_lines = 0;
        size_t n;
        int r = 0;

        while (n_left && r == 0) {
                /* Looking at the clock for each line would cost as much as reading it. */
                if (n_lines++ % 64 == 0 && rv_boot_us() >= p->deadline_us)
                        return rv_error_set(p->err, rv_raise(-ETIMEDOUT), "%s: the time for delivery is over", p->sink->name);
                r = rv_lines_next(reader, &line, &n, p->err);
                if (r <= 0)
                        break;
                n_left -= RV_MIN(n_left, (uint64_t)n + 1);
                r = take_line(p, reader, line, n);
        }
        return r < 0 ? rv_trace(r) : rv_trace(flush(p));
}

static int send_locked(struct pass *p)
{
        struct rv_lines reader;
        struct rv_sink_mark mark;
        uint64_t lag = 0;
        int r;

        r = rv__sink_mark_read(p->log, &mark, p->err);
        if (r >= 0)
                r = rv__sink_lag_after(p->log, &mark, &lag, p->err);
        if (r < 0 || lag == 0)
                return rv_trace(r);
        r = rv_lines_begin_at(&reader, p->log->audit_fd, p->log->audit_path, mark.segment,
                *mark.segment ? mark.offset + mark.n + 1 : 0, p->err);
        if (r == 0)
                r = read_on(p, &reader, lag);
        rv_lines_close(&reader);
        return rv_trace(r);
}

/* ---- Who sends ---- */

/* For how long a sink is left alone that let an attempt wait for nothing. */
static uint64_t rest_after(uint64_t took_us)
{
        return took_us < SLOW_US ? 0 : RV_MIN(took_us * RV_SINK_REST_FACTOR, REST_MAX_US);
}

/* Why it failed, and on a second line when that was and how long the sink is left alone. */
static void note_end(int lock_fd, const struct rv_error *why, uint64_t rest_us)
{
        char text[RV_ERROR_MESSAGE_MAX + REST_BYTES_MAX];
        int n = snprintf(text, sizeof(text), "%s\n%llu %llu\n", why->message, (unsigned long long)rv_boot_us(), (unsigned long long)rest_us);

        /* What cannot be noted for doctor is told by who finds it out himself. */
        if (ftruncate(lock_fd, 0) < 0 || (why->code && pwrite(lock_fd, text, (size_t)n, 0) < 0))
                rv_raise(-errno);
}

/* 1 another process has the lock. */
static int send_once(struct rv_sink *sink, struct rv_log *log, uint64_t deadline_us, struct rv_sink_progress *progress,
        struct rv_error *err)
{
        _cleanup_(rv_closep) int lock_fd = openat(
                log->audit_fd, LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        struct rv_error why = { 0 };
        struct pass p = { .sink = sink, .log = log, .deadline_us = deadline_us, .progress = progress, .err = &why };
        uint64_t begun_us = rv_boot_us(), n_before = progress->n_bytes;
        int r;

        if (lock_fd < 0)
                return rv_log_fail(log, err, rv_raise(-errno), LOCK_FILE, "cannot open for writing");
        if (flock(lock_fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? RV_SINK_E_BUSY : rv_log_fail(log, err, rv_raise(-errno), LOCK_FILE, "cannot lock");
        r = send_locked(&p);
        rv_buf_fini(&p.batch);
        note_end(lock_fd, &why, progress->n_bytes == n_before ? rest_after(rv_boot_us() - begun_us) : 0);
        return r < 0 ? rv_error_set(err, rv_trace(r), "%s", why.message) : 0;
}

int rv_sink_send(struct rv_sink *sink, struct rv_log *log, uint64_t deadline_us, struct rv_sink_progress *progress,
        struct rv_error *err)
{
        uint64_t lag = 0;
        int r;

        /* Who wrote while another was sending may have come too late for that one: so it looks once more, without the lock. */
        for (unsigned i = 0; i < ROUNDS; i++) {
                r = rv_sink_lag(log, &lag, err);
                if (r < 0 || lag == 0)
                        return rv_trace(r);
                r = send_once(sink, log, deadline_us, progress, err);
                if (r != 0)
                        return r < 0 ? rv_trace(r) : r;
        }
        return 0;
}

static int read_note(struct rv_log *log, struct rv_buf *out)
{
        int r = rv_read_file_at(log->audit_fd, LOCK_FILE, RV_ERROR_MESSAGE_MAX + REST_BYTES_MAX, out);

        return r == -ENOENT ? 0 : rv_trace(r);
}

int rv_sink_last_error(struct rv_log *log, char *ret, size_t size)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        int r;

        r = read_note(log, &text);
        if (r < 0)
                return rv_trace(r);
        snprintf(ret, size, "%.*s", text.size ? (int)strcspn(text.data, "\n") : 0, text.size ? text.data : "");
        return 0;
}

uint64_t rv_sink_rest_us(struct rv_log *log)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        unsigned long long since_us, rest_us;
        uint64_t now_us = rv_boot_us();
        const char *line;

        if (read_note(log, &text) < 0 || !text.size)
                return 0;
        line = strchr(text.data, '\n');
        if (!line || sscanf(line + 1, "%20llu %20llu", &since_us, &rest_us) != 2)
                return 0;
        /* A clock that is behind began anew with the machine. */
        if (now_us < since_us || rest_us > REST_MAX_US || now_us - since_us >= rest_us)
                return 0;
        return rest_us - (now_us - since_us);
}
