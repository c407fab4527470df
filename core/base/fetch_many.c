#include "base/fetch_private.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)64 << 10)      /* may have come behind an answer already */
#define HEAD_DEPTH_MAX 4u

struct many {
        struct rv_fetch_item *items;
        size_t n;
        bool *is_answered;
        size_t n_answered;
        char **lines;
        struct iovec *in;
        int dir_fd;
        /* The answer that is coming in: known once its line is. */
        size_t n_wanted;             /* bytes of all of it; 0: the line is not whole */
        size_t at;                   /* which item's */
        uint64_t file_bytes;
        struct rv_error *err;
};

/* ---- What is asked ---- */

static int judge_files(const struct many *m)
{
        struct stat st;

        for (size_t i = 0; i < m->n; i++) {
                const char *file = m->items[i].file;

                if (!file)
                        continue;
                if (m->dir_fd < 0)
                        return rv_error_set(m->err, rv_raise(-EINVAL), "there is no directory for the file %s", file);
                for (size_t k = 0; k < i; k++)
                        if (m->items[k].file && strcmp(m->items[k].file, file) == 0)
                                return rv_error_set(m->err, rv_raise(-EINVAL), "two requests would make the file %s", file);
                if (fstatat(m->dir_fd, file, &st, AT_SYMLINK_NOFOLLOW) == 0)
                        return rv_error_set(m->err, rv_raise(-EEXIST), "the file %s is there already", file);
        }
        return 0;
}

static int write_lines(struct many *m, uint64_t deadline_us)
{
        uint64_t now = rv_boot_us(), left_ms = deadline_us > now ? (deadline_us - now) / 1000 : 0;

        for (size_t i = 0; i < m->n; i++) {
                struct rv_fetch_request q = m->items[i].q;
                char id[24];
                int r;

                snprintf(id, sizeof(id), "%zu", i);
                q.timeout_ms = RV_MIN(q.timeout_ms, left_ms);
                r = rv__fetch_write_line(&q, id, m->items[i].file, &m->lines[i]);
                if (r < 0)
                        return rv_error_set(m->err, rv_trace(r), "cannot ask the helper " RV__FETCH_HELPER ": %s",
                                r == -EINVAL ? "a text is no UTF-8" : strerror(-r));
                m->in[3 * i] = (struct iovec){ m->lines[i], strlen(m->lines[i]) };
                m->in[3 * i + 1] = (struct iovec){ (char *)"\n", 1 };
                m->in[3 * i + 2] = (struct iovec){ (void *)q.body, q.body_bytes };
        }
        return 0;
}

/* ---- What is answered ---- */

static size_t max_body(const struct rv_fetch_item *item)
{
        if (item->file)
                return 0;
        return item->q.max_bytes ? item->q.max_bytes : RV_FETCH_MAX_BYTES_DEFAULT;
}

static bool is_success(const struct rv_fetch_answer *a)
{
        return a->code == RV_FETCH_OK && a->status >= 200 && a->status < 300;
}

/* The line says whose answer it is and how long. */
static int read_head(struct many *m, const struct rv_buf *out, const char *end)
{
        _cleanup_(rv_json_unrefp) json_t *line = NULL;
        size_t n_line = (size_t)(end - out->data) + 1, at;
        const json_t *bytes, *file_bytes;
        json_int_t n_body;
        char *id_end;
        const char *id;

        if (rv_json_read(out->data, n_line - 1, HEAD_DEPTH_MAX, &line, NULL) < 0 || !json_is_object(line))
                return rv__fetch_fault(m->err, "is no JSON object");
        id = rv_json_get_string(line, "id", "");
        at = (size_t)strtoul(id, &id_end, 10);
        if (*id < '0' || *id > '9' || *id_end || at >= m->n || m->is_answered[at])
                return rv__fetch_fault(m->err, "is none to what it was asked");
        bytes = json_object_get(line, "bytes");
        n_body = json_is_integer(bytes) ? json_integer_value(bytes) : 0;
        if (n_body < 0 || (uint64_t)n_body > max_body(&m->items[at]))
                return rv__fetch_fault(m->err, "is longer or shorter than it says");
        file_bytes = json_object_get(line, "file_bytes");
        m->file_bytes = json_is_integer(file_bytes) ? (uint64_t)json_integer_value(file_bytes) : 0;
        m->at = at;
        m->n_wanted = n_line + (size_t)n_body;
        return 0;
}

/* What the helper says of the file has to be so. */
static int look_at_file(struct many *m, struct rv_fetch_item *item)
{
        struct stat st;

        if (!item->file || !is_success(&item->answer))
                return 0;
        if (fstatat(m->dir_fd, item->file, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
                (uint64_t)st.st_size != m->file_bytes)
                return rv__fetch_fault(m->err, "names a file that is not as it says");
        item->file_bytes = m->file_bytes;
        return 0;
}

static int take_answer(struct many *m, struct rv_buf *out)
{
        struct rv_fetch_item *item = &m->items[m->at];
        char id[24];
        int r;

        snprintf(id, sizeof(id), "%zu", m->at);
        r = rv_fetch_answer_read(out->data, m->n_wanted, id, max_body(item), &item->answer, m->err);
        if (r < 0)
                return rv_trace(r);
        m->is_answered[m->at] = true;
        m->n_answered++;
        r = look_at_file(m, item);
        out->size -= m->n_wanted;
        memmove(out->data, out->data + m->n_wanted, out->size);
        m->n_wanted = 0;
        return rv_trace(r);
}

static int on_out(void *arg, struct rv_buf *out)
{
        struct many *m = arg;

        for (;;) {
                const char *end;
                int r = 0;

                if (!m->n_wanted) {
                        end = out->size ? memchr(out->data, '\n', RV_MIN(out->size, RV_FETCH_ANSWER_BYTES_MAX)) : NULL;
                        if (!end)
                                return out->size < RV_FETCH_ANSWER_BYTES_MAX ? 0 : rv__fetch_fault(m->err, "is no line");
                        r = read_head(m, out, end);
                }
                if (r == 0 && out->size < m->n_wanted)
                        return 0;
                if (r == 0)
                        r = take_answer(m, out);
                if (r < 0)
                        return rv_trace(r);
        }
}

/* ---- All of it ---- */

static void give_up(struct many *m)
{
        for (size_t i = 0; i < m->n; i++)
                if (!m->is_answered[i]) {
                        m->items[i].answer.code = RV_FETCH_TIMEOUT;
                        rv_text_copy(m->items[i].answer.message, sizeof(m->items[i].answer.message), "there was no time for it");
                }
}

/* Of what failed there may be a part. None was there before: judge_files(). */
static void remove_files(struct many *m, bool is_all)
{
        for (size_t i = 0; i < m->n; i++) {
                const struct rv_fetch_item *item = &m->items[i];

                if (item->file && (is_all || !is_success(&item->answer)))
                        (void)unlinkat(m->dir_fd, item->file, 0);
        }
}

static void empty_items(struct many *m)
{
        for (size_t i = 0; i < m->n; i++) {
                rv_fetch_answer_fini(&m->items[i].answer);
                m->items[i].answer = (struct rv_fetch_answer){ 0 };
                m->items[i].file_bytes = 0;
        }
}

static int run_helper(struct many *m, int helper_fd, const _Atomic bool *stop, uint64_t deadline_us)
{
        static const char *const with_files[] = { RV__FETCH_HELPER, "--files", NULL }, *const without[] = { RV__FETCH_HELPER, NULL };
        _cleanup_(rv_child_fini) struct rv_child child = { .exe_fd = helper_fd,
                .argv = m->dir_fd >= 0 ? with_files : without,
                .fds = &m->dir_fd,
                .n_fds = m->dir_fd >= 0,
                .in = m->in,
                .n_in = (unsigned)(3 * m->n),
                .err_max = RV__FETCH_COMPLAINT_BYTES_MAX,
                .deadline_us = deadline_us,
                .stop = stop,
                .on_out = on_out,
                .arg = m };
        char end[512];
        size_t most = 0;
        int r;

        for (size_t i = 0; i < m->n; i++)
                most = RV_MAX(most, max_body(&m->items[i]));
        child.out_max = RV_FETCH_ANSWER_BYTES_MAX + most + CHUNK_BYTES;
        r = rv_child_run(&child, m->err);
        if (r == -ETIMEDOUT) {
                give_up(m);
                return 0;
        }
        if (r < 0)
                return rv_trace(r);
        if (child.status != 0)
                return rv_error_set(m->err, rv_raise(-EPROTO), "the helper " RV__FETCH_HELPER " %s", rv_child_end_text(&child, end, sizeof(end)));
        return m->n_answered == m->n && !child.out.size ? 0 : rv__fetch_fault(m->err, "is not whole");
}

static void many_fini(struct many *m)
{
        for (size_t i = 0; m->lines && i < m->n; i++) {
                if (m->lines[i])
                        explicit_bzero(m->lines[i], strlen(m->lines[i]));      /* it may hold credentials */
                free(m->lines[i]);
        }
        free(m->lines);
        free(m->in);
        free(m->is_answered);
}

int rv_fetch_many(int helper_fd, struct rv_fetch_item *items, size_t n, int dir_fd, const _Atomic bool *stop,
        uint64_t deadline_us, struct rv_error *err)
{
        struct rv_error own = { 0 };
        _cleanup_(many_fini) struct many m = { .items = items, .n = n, .dir_fd = dir_fd, .err = err ? err : &own };
        int r;

        if (n == 0)
                return 0;
        r = judge_files(&m);
        if (r < 0)
                return rv_trace(r);
        m.lines = calloc(n, sizeof(*m.lines));
        m.in = calloc(3 * n, sizeof(*m.in));
        m.is_answered = calloc(n, sizeof(*m.is_answered));
        if (!m.lines || !m.in || !m.is_answered)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for %zu requests", n);
        r = write_lines(&m, deadline_us);
        if (r < 0)
                return rv_trace(r);
        r = run_helper(&m, helper_fd, stop, deadline_us);
        remove_files(&m, r < 0);
        if (r < 0)
                empty_items(&m);
        return rv_trace(r);
}
