#include "egress/gate_client.h"

#include "base/fd.h"
#include "base/text.h"
#include "egress/gate_msg.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define WHY_MS 200      /* how long the spawner's word on why the gate ended is waited for */
#define NO_ANSWER "the gate does not answer"

struct served {
        struct served *next;
        struct rv_gate_client *client;
        uint64_t id;
        rv_gate_cb cb;
        void *arg;
        bool is_answered;            /* ADD was */
        bool is_removing;
        struct rv_host_timer *timer; /* of the report */
};

struct rv_gate_client {
        const struct rv_host *host;
        int fd;
        struct rv_host_watch *watch;
        struct rv_host_timer *why;   /* the channel is closed, and nobody was told so far */
        struct served *runs;
        uint64_t n_added;
        bool is_hung_up;             /* its end is no news */
        char lost_text[RV_REASON_SIZE];
};

/* ---- Runs ---- */

static struct served *find(struct rv_gate_client *client, uint64_t id)
{
        for (struct served *s = client->runs; s; s = s->next)
                if (s->id == id)
                        return s;
        return NULL;
}

static void unlink_served(struct rv_gate_client *client, struct served *served)
{
        for (struct served **p = &client->runs; *p; p = &(*p)->next)
                if (*p == served) {
                        *p = served->next;
                        break;
                }
        client->host->timer_stop(client->host->ctx, served->timer);
        free(served);
}

/* Its last event. It may add another run, or free what @arg points at. */
static void tell_last(struct served *served, const struct rv_gate_event *event)
{
        rv_gate_cb cb = served->cb;
        void *arg = served->arg;

        unlink_served(served->client, served);
        cb(arg, event);
}

/* ---- The end of a gate ---- */

static void disconnect(struct rv_gate_client *client)
{
        client->host->watch_remove(client->host->ctx, client->watch);
        client->watch = NULL;
        client->fd = rv_close(client->fd);
}

static void lose_all(struct rv_gate_client *client, const char *text)
{
        const struct rv_gate_event event = { .kind = RV_GATE_EVENT_LOST, .text = text };
        uint64_t last = client->n_added;

        client->host->timer_stop(client->host->ctx, client->why);
        client->why = NULL;
        rv_text_copy(client->lost_text, sizeof(client->lost_text), text);
        disconnect(client);
        /* Newest first, and what a callback adds is of a later gate. */
        for (struct served *s = client->runs; s;) {
                if (s->id > last) {
                        s = s->next;
                        continue;
                }
                tell_last(s, &event);
                s = client->runs;
        }
}

static void on_no_word(void *arg)
{
        lose_all(arg, "the gate ended unexpectedly");
}

static void on_end(struct rv_gate_client *client)
{
        disconnect(client);
        if (client->why)
                return;
        if (client->host->timer_start(client->host->ctx, WHY_MS, on_no_word, client, &client->why) < 0)
                on_no_word(client);
}

void rv_gate_client_lose(struct rv_gate_client *client, const char *text)
{
        if (client->is_hung_up)
                return;
        if (client->fd < 0 && !client->why)
                client->host->log(client->host->ctx, RV_LOG_WARNING, text);
        else
                lose_all(client, text);
}

/* ---- What it says ---- */

/* One line of printable ASCII, whatever a gate wrote. */
static void make_line(char *text)
{
        for (char *c = text; *c; c++)
                if (*c < 0x20 || *c > 0x7e)
                        *c = '?';
}

static int read_evidence(int fd, struct rv_network_evidence *ret, struct rv_error *err)
{
        _cleanup_(rv_freep) char *text = NULL;
        struct stat st;
        ssize_t n;

        if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return rv_error_set(err, rv_raise(-EINVAL), "it is no file");
        if (st.st_size > (off_t)RV_NETWORK_EVIDENCE_BYTES_MAX)
                return rv_error_set(err, rv_raise(-EINVAL), "it is too long");
        text = malloc((size_t)st.st_size + 1);
        if (!text)
                return rv_error_set(err, rv_raise(-ENOMEM), "no memory");
        n = pread(fd, text, (size_t)st.st_size, 0);
        if (n < 0)
                return rv_error_set(err, rv_raise(-errno), "it cannot be read: %s", strerror(errno));
        return rv_trace(rv_network_evidence_read(text, (size_t)n, ret, err));
}

static void take_report(struct served *served, int fd)
{
        struct rv_network_evidence evidence = { 0 };
        struct rv_gate_event event = { .kind = RV_GATE_EVENT_REPORT, .evidence = &evidence };
        struct rv_error err = { 0 };
        char text[RV_REASON_SIZE];

        if (read_evidence(fd, &evidence, &err) < 0) {
                snprintf(text, sizeof(text), "the gate's report cannot be used: %.400s", err.message);
                make_line(text);
                event = (struct rv_gate_event){ .kind = RV_GATE_EVENT_LOST, .text = text };
        }
        tell_last(served, &event);
        rv_network_evidence_fini(&evidence);
}

/* An answer to one that is forgotten, or was given up, is nobody's. False: it is no answer to what was asked. */
static bool take_answer(struct rv_gate_client *client, struct rv_gate_message *m, int fd)
{
        struct served *served = find(client, m->id);
        struct rv_gate_event event = { .text = m->text };

        m->text[sizeof(m->text) - 1] = 0;
        make_line(m->text);
        if (!m->text[0])
                rv_text_copy(m->text, sizeof(m->text), "no reason was given");
        if (m->kind < RV_GATE_READY || m->kind > RV_GATE_REPORT || m->id == 0 || m->id > client->n_added)
                return false;
        if (!served)
                return true;
        if ((m->kind == RV_GATE_READY && served->is_answered) ||
                (m->kind == RV_GATE_REPORT && !(served->is_answered && served->is_removing)))
                return false;
        if (m->kind == RV_GATE_REPORT) {
                take_report(served, fd);
                return true;
        }
        if (!served->is_answered && served->is_removing) {
                served->is_answered = true;
                return true;
        }
        served->is_answered = true;
        event.kind = m->kind == RV_GATE_READY ? RV_GATE_EVENT_SERVED
                : served->is_removing         ? RV_GATE_EVENT_LOST
                                              : RV_GATE_EVENT_REFUSED;
        if (event.kind == RV_GATE_EVENT_SERVED)
                served->cb(served->arg, &event);
        else
                tell_last(served, &event);
        return true;
}

/* One message. False: there is none for now, or ever. */
static bool take_message(struct rv_gate_client *client)
{
        struct rv_gate_message m;
        int fd = -EBADF;
        size_t n_fds;
        ssize_t n;

        n = rv_receive_with_fds(client->fd, &m, sizeof(m), MSG_DONTWAIT, &fd, 1, &n_fds);
        /* ECONNRESET, once: it died before it read what was sent to it. What it had said still comes. */
        if (n == -EINTR || n == -ECONNRESET)
                return true;
        if (n == -EAGAIN)
                return false;
        if (n <= 0 && n != -EBADMSG)
                on_end(client);
        else if (n != (ssize_t)sizeof(m) || !take_answer(client, &m, fd))
                lose_all(client, "the gate said something that is no answer");
        rv_close(fd);
        return client->fd >= 0;
}

/* All that is there: a watch ends with the first error of its descriptor. */
static void on_channel(void *arg, uint32_t events)
{
        struct rv_gate_client *client = arg;

        (void)events;
        while (take_message(client))
                ;
}

/* ---- What it is told ---- */

int rv_gate_client_new(const struct rv_host *host, struct rv_gate_client **ret)
{
        struct rv_gate_client *client = calloc(1, sizeof(*client));

        if (!client)
                return rv_raise(-ENOMEM);
        client->host = host;
        client->fd = -EBADF;
        *ret = client;
        return 0;
}

void rv_gate_client_hang_up(struct rv_gate_client *client)
{
        disconnect(client);
        client->is_hung_up = true;
}

void rv_gate_client_free(struct rv_gate_client *client)
{
        if (!client)
                return;
        while (client->runs)
                unlink_served(client, client->runs);
        client->host->timer_stop(client->host->ctx, client->why);
        disconnect(client);
        free(client);
}

void rv_gate_client_serve(struct rv_gate_client *client, int take_fd)
{
        if (client->fd >= 0 || client->why)
                lose_all(client, "another gate was started");
        client->lost_text[0] = 0;
        client->fd = take_fd;
        if (fcntl(take_fd, F_SETFL, O_NONBLOCK) < 0 ||
            client->host->watch_add(client->host->ctx, take_fd, RV_WATCH_READ, on_channel, client, &client->watch) < 0)
                client->fd = rv_close(client->fd);
}

const char *rv_gate_client_lost_text(const struct rv_gate_client *client)
{
        return client->lost_text;
}

/* Sealed: what was checked once is what is read. */
static int make_memfd(const char *data, size_t n, int *ret)
{
        _cleanup_(rv_closep) int fd = memfd_create("reeve-gate-rules", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        int r;

        if (fd < 0)
                return rv_raise(-errno);
        r = rv_write_all(fd, data, n);
        if (r < 0)
                return rv_trace(r);
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
                return rv_raise(-errno);
        *ret = rv_take_fd(&fd);
        return 0;
}

int rv_gate_client_add(struct rv_gate_client *client, const char *rules, size_t n, const int *fds, size_t n_fds,
        rv_gate_cb cb, void *arg, uint64_t *ret_id)
{
        struct rv_gate_message m = { .kind = RV_GATE_ADD };
        _cleanup_(rv_closep) int memfd = -EBADF;
        int all[RV_GATE_FDS_MAX], r;
        struct served *served;

        if (client->fd < 0 && !client->why)
                return rv_raise(-EPIPE);
        if (n_fds >= RV_GATE_FDS_MAX || n > RV_GATE_RULES_BYTES_MAX)
                return rv_raise(-E2BIG);
        r = make_memfd(rules, n, &memfd);
        if (r < 0)
                return rv_trace(r);
        served = calloc(1, sizeof(*served));
        if (!served)
                return rv_raise(-ENOMEM);
        all[0] = memfd;
        if (n_fds)
                memcpy(all + 1, fds, sizeof(*fds) * n_fds);
        m.id = client->n_added + 1;
        r = client->fd < 0 ? -EPIPE : rv_send_with_fds(client->fd, &m, sizeof(m), all, n_fds + 1);
        /* It has just ended: why is about to be told, and then this run is told too. */
        if (r < 0 && r != -EPIPE) {
                free(served);
                return rv_trace(r);
        }
        *served = (struct served){ .next = client->runs, .client = client, .id = ++client->n_added, .cb = cb, .arg = arg };
        client->runs = served;
        *ret_id = served->id;
        return 0;
}

static int send_remove(const struct rv_gate_client *client, uint64_t id, uint64_t drain_ms)
{
        struct rv_gate_message m = {
                .kind = RV_GATE_REMOVE, .drain_ms = (uint32_t)RV_MIN(drain_ms, (uint64_t)RV_GATE_DRAIN_MS), .id = id
        };

        return client->fd < 0 ? -EPIPE : rv_send_with_fds(client->fd, &m, sizeof(m), NULL, 0);
}

static void on_no_report(void *arg)
{
        const struct rv_gate_event event = { .kind = RV_GATE_EVENT_LOST, .text = NO_ANSWER };
        struct served *served = arg;

        if (!served->client->why)       /* else the gate is gone, and why is about to be told */
                tell_last(served, &event);
}

void rv_gate_client_remove(struct rv_gate_client *client, uint64_t id, uint64_t ms)
{
        const struct rv_host *host = client->host;
        struct served *served = find(client, id);

        if (!served || served->is_removing)
                return;
        served->is_removing = true;
        /* One that is gone is told of by lose_all(), which comes. */
        if (client->why)
                return;
        if (send_remove(client, id, ms / 2) < 0 ||
                host->timer_start(host->ctx, ms, on_no_report, served, &served->timer) < 0)
                on_no_report(served);
}

void rv_gate_client_forget(struct rv_gate_client *client, uint64_t id)
{
        struct served *served = find(client, id);

        if (!served)
                return;
        if (!served->is_removing)
                (void)send_remove(client, id, 0);
        unlink_served(client, served);
}
