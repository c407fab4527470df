#include "output.h"

#include <limits.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

struct output_answer {
        struct output_answer *next;
        struct rv_buf line, body;
        size_t n_written;
};

void output_init(struct output *o)
{
        *o = (struct output){ .end = &o->first };
}

/* A message may quote what a server said. */
static json_t *plain(const char *text)
{
        _cleanup_(rv_freep) char *copy = strdup(text);

        for (char *p = copy; p && *p; p++)
                if ((unsigned char)*p < 0x20 || (unsigned char)*p >= 0x7f)
                        *p = '?';
        return copy ? json_string(copy) : NULL;
}

static int put(struct output *o, const json_t *line, struct rv_buf *take_body)
{
        struct output_answer *a = calloc(1, sizeof(*a));
        char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;

        if (!a || !text || rv_buf_puts(&a->line, text) < 0 || rv_buf_putc(&a->line, '\n') < 0) {
                if (a)
                        rv_buf_fini(&a->line);
                free(a);
                free(text);
                return rv_raise(-ENOMEM);
        }
        free(text);
        if (take_body) {
                a->body = *take_body;
                *take_body = (struct rv_buf){ 0 };
                o->held_bytes += a->body.size;
        }
        *o->end = a;
        o->end = &a->next;
        o->n_held++;
        return 0;
}

int output_error(struct output *o, const char *id, enum rv_fetch_code code, const char *message)
{
        _cleanup_(rv_json_unrefp) json_t *line =
                json_pack("{s:s, s:{s:s, s:o}}", "id", id, "error", "code", rv_fetch_code_name(code), "message", plain(message));

        return rv_trace(put(o, line, NULL));
}

int output_transfer(struct output *o, struct transfer *t)
{
        _cleanup_(rv_json_unrefp) json_t *line = NULL;

        if (t->code != RV_FETCH_OK)
                return rv_trace(output_error(o, t->q.id, t->code, t->why.message));
        line = json_pack("{s:s, s:I, s:O, s:I}", "id", t->q.id, "status", (json_int_t)t->status, "headers", t->got_headers, "bytes",
                         (json_int_t)t->body.size);
        if (line && t->q.file && json_object_set_new(line, "file_bytes", json_integer((json_int_t)t->file_bytes)) < 0)
                return rv_raise(-ENOMEM);
        return rv_trace(put(o, line, &t->body));
}

/* A pipe that is ready takes PIPE_BUF bytes without blocking, whoever else writes to it. */
static int write_some(struct output_answer *a)
{
        bool is_body = a->n_written >= a->line.size;
        const struct rv_buf *b = is_body ? &a->body : &a->line;
        size_t at = is_body ? a->n_written - a->line.size : a->n_written;
        ssize_t n = write(STDOUT_FILENO, b->data + at, RV_MIN(b->size - at, (size_t)PIPE_BUF));

        if (n < 0)
                return errno == EINTR || errno == EAGAIN ? 0 : rv_raise(-errno);
        a->n_written += (size_t)n;
        return 0;
}

static void drop_first(struct output *o)
{
        struct output_answer *a = o->first;

        o->first = a->next;
        if (!o->first)
                o->end = &o->first;
        o->held_bytes -= a->body.size;
        o->n_held--;
        rv_buf_fini(&a->line);
        rv_buf_fini(&a->body);
        free(a);
}

int output_write(struct output *o)
{
        while (o->first) {
                struct pollfd fd = { STDOUT_FILENO, POLLOUT, 0 };
                struct output_answer *a = o->first;
                int r = poll(&fd, 1, 0);

                if (r == 0 || (r < 0 && errno == EINTR))
                        return 0;
                r = r < 0 ? rv_raise(-errno) : write_some(a);
                if (r < 0)
                        return rv_trace(r);
                if (a->n_written == a->line.size + a->body.size)
                        drop_first(o);
        }
        return 0;
}

void output_fini(struct output *o)
{
        while (o->first)
                drop_first(o);
}
