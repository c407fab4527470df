#include "serve.h"

#include "output.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CHUNK_BYTES ((size_t)64 << 10)
#define HELD_BYTES_MAX ((size_t)96 << 20)   /* of answers under way and to be written, but for one alone */
#define HELD_ANSWERS_MAX 256u               /* to be written, before more requests are read */
#define WAIT_MS 60000

struct server {
        CURLM *multi;
        int dir_fd;                      /* for files, or negative */
        struct transfer *active[RV_FETCH_PARALLEL];
        unsigned n_active;
        size_t n_promised;               /* max_bytes of those */
        struct output out;
        /* What came and is not taken: complete lines, the beginning of one, or of a body. */
        struct rv_buf in;
        size_t in_start;
        bool is_at_end;
        struct fetch_request next;       /* has_next: its line is read; when its body is whole too, it waits for room */
        bool has_next, is_refused;       /* refused: it is answered already, its body is passed over */
        size_t n_body_left;
};

/* ---- In ---- */

static size_t n_in(const struct server *s)
{
        return s->in.size - s->in_start;
}

static int read_more(struct server *s)
{
        ssize_t n;

        if (s->in_start) {
                memmove(s->in.data, s->in.data + s->in_start, n_in(s));
                s->in.size -= s->in_start;
                s->in_start = 0;
        }
        if (rv_buf_reserve(&s->in, CHUNK_BYTES) < 0)
                return rv_raise(-ENOMEM);
        n = read(STDIN_FILENO, s->in.data + s->in.size, CHUNK_BYTES);
        if (n < 0)
                return errno == EINTR || errno == EAGAIN ? 0 : rv_raise(-errno);
        s->in.size += (size_t)n;
        s->is_at_end = n == 0;
        return 0;
}

static bool is_active(const struct server *s, const char *id)
{
        for (unsigned i = 0; i < s->n_active; i++)
                if (strcmp(s->active[i]->q.id, id) == 0)
                        return true;
        return false;
}

static int refuse(struct server *s, const char *why)
{
        s->is_refused = true;
        return rv_trace(output_error(&s->out, s->next.id, RV_FETCH_USAGE, why));
}

/* 1 a line was taken; 0 there is none so far; -errno. */
static int take_line(struct server *s)
{
        const char *line = s->in.data ? s->in.data + s->in_start : "";
        const char *end = n_in(s) ? memchr(line, '\n', n_in(s)) : NULL;
        struct rv_error err = { 0 };
        int r;

        if (!end && n_in(s) <= RV_FETCH_LINE_BYTES_MAX)
                return 0;
        r = fetch_request_read(line, end ? (size_t)(end - line) : n_in(s), &s->next, &err);
        if (r == -EPROTO)
                fprintf(stderr, "reeve-fetch: %s\n", err.message);
        if (r < 0)
                return rv_trace(r);
        s->in_start += (size_t)(end - line) + 1;
        s->has_next = true;
        s->is_refused = false;
        s->n_body_left = s->next.body_bytes;
        if (r == FETCH_E_USAGE)
                r = refuse(s, err.message);
        else if (is_active(s, s->next.id))
                r = refuse(s, "a request with this id is under way");
        return r < 0 ? rv_trace(r) : 1;
}

static int take_body(struct server *s)
{
        size_t n = RV_MIN(s->n_body_left, n_in(s));

        if (n && !s->is_refused && rv_buf_append(&s->next.body, s->in.data + s->in_start, n) < 0)
                return rv_raise(-ENOMEM);
        s->in_start += n;
        s->n_body_left -= n;
        return 0;
}

static void drop_next(struct server *s)
{
        fetch_request_fini(&s->next);
        s->has_next = false;
}

/* A file's bytes are not kept. */
static size_t promised(const struct fetch_request *q)
{
        return q->file ? 0 : q->max_bytes;
}

static bool has_room(const struct server *s)
{
        size_t held = s->n_promised + s->out.held_bytes;

        return s->n_active < RV_FETCH_PARALLEL && (held == 0 || held + promised(&s->next) <= HELD_BYTES_MAX);
}

/* May the next request be begun, or read? */
static bool may_go_on(const struct server *s)
{
        return s->has_next ? has_room(s) : s->out.n_held < HELD_ANSWERS_MAX;
}

static int begin_next(struct server *s)
{
        struct transfer *t;
        struct rv_error err = { 0 };
        int r;

        r = transfer_new(&s->next, s->dir_fd, &t, &err);
        if (r == 0) {
                s->active[s->n_active++] = t;
                s->n_promised += promised(&t->q);
                r = transfer_add(t, s->multi);
        } else if (r == FETCH_E_USAGE)
                r = output_error(&s->out, s->next.id, RV_FETCH_USAGE, err.message);
        drop_next(s);
        return rv_trace(r);
}

/* All that what was read and the room there is allow. Sets is_waiting: more has to be read for the next. */
static int take_requests(struct server *s, bool *ret_is_waiting)
{
        int r;

        for (;;) {
                *ret_is_waiting = s->has_next || may_go_on(s);
                if (!*ret_is_waiting)
                        return 0;
                if (!s->has_next) {
                        r = take_line(s);
                        if (r <= 0)
                                return rv_trace(r);
                }
                r = take_body(s);
                if (r < 0 || s->n_body_left)
                        return rv_trace(r);
                *ret_is_waiting = false;
                if (s->is_refused) {
                        drop_next(s);
                        continue;
                }
                if (!has_room(s))
                        return 0;
                r = begin_next(s);
                if (r < 0)
                        return rv_trace(r);
        }
}

/* ---- Transfers ---- */

static int conclude(struct server *s, struct transfer *t, CURLcode result)
{
        int r;

        if (transfer_conclude(t, s->multi, result))
                return 0;
        for (unsigned i = 0; i < s->n_active; i++)
                if (s->active[i] == t)
                        s->active[i] = s->active[--s->n_active];
        s->n_promised -= promised(&t->q);
        r = output_transfer(&s->out, t);
        transfer_free(t);
        return rv_trace(r);
}

static int advance(struct server *s)
{
        const CURLMsg *m;
        int n, r = 0;

        if (curl_multi_perform(s->multi, &n) != CURLM_OK)
                return rv_raise(-ENOMEM);
        while (r == 0 && (m = curl_multi_info_read(s->multi, &n))) {
                struct transfer *t;

                if (m->msg != CURLMSG_DONE)
                        continue;
                curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
                r = conclude(s, t, m->data.result);
        }
        return rv_trace(r);
}

/* ---- The loop ---- */

static int wait(struct server *s, bool wants_input)
{
        struct curl_waitfd fds[2];
        unsigned n = 0, input = 0;

        if (wants_input) {
                fds[n++] = (struct curl_waitfd){ .fd = STDIN_FILENO, .events = CURL_WAIT_POLLIN };
                input = n;
        }
        if (s->out.first)
                fds[n++] = (struct curl_waitfd){ .fd = STDOUT_FILENO, .events = CURL_WAIT_POLLOUT };
        if (curl_multi_poll(s->multi, fds, n, WAIT_MS, NULL) != CURLM_OK)
                return rv_raise(-EIO);
        return input && fds[input - 1].revents ? rv_trace(read_more(s)) : 0;
}

static int loop(struct server *s)
{
        bool is_waiting = true;
        int r;

        for (;;) {
                r = take_requests(s, &is_waiting);
                if (r == 0)
                        r = advance(s);
                if (r == 0)
                        r = output_write(&s->out);
                if (r < 0)
                        return rv_trace(r);
                if (s->is_at_end && is_waiting && s->n_active == 0 && !s->out.first)
                        break;
                /* A transfer that ended, or an answer that was written, made room: look again before waiting. */
                if (!is_waiting && may_go_on(s))
                        continue;
                r = wait(s, is_waiting && !s->is_at_end);
                if (r < 0)
                        return rv_trace(r);
        }
        if (n_in(s) == 0 && !s->has_next)
                return 0;
        fprintf(stderr, "reeve-fetch: the input ends within a request\n");
        return rv_raise(-EPROTO);
}

int serve(int dir_fd)
{
        struct server s = { .multi = curl_multi_init(), .dir_fd = dir_fd };
        int r;

        output_init(&s.out);
        r = s.multi ? 0 : rv_raise(-ENOMEM);
        if (r == 0) {
                curl_multi_setopt(s.multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, (long)RV_FETCH_PARALLEL);
                curl_multi_setopt(s.multi, CURLMOPT_MAXCONNECTS, (long)RV_FETCH_PARALLEL);
                r = loop(&s);
        }
        while (s.n_active) {
                curl_multi_remove_handle(s.multi, s.active[--s.n_active]->easy);
                transfer_free(s.active[s.n_active]);
        }
        curl_multi_cleanup(s.multi);
        fetch_request_fini(&s.next);
        output_fini(&s.out);
        rv_buf_fini(&s.in);
        if (r < 0 && r != -EPROTO && r != -EPIPE)
                fprintf(stderr, "reeve-fetch: %s\n", strerror(-r));
        return r == -EPROTO ? 2 : r < 0 ? 1 : 0;
}
