#include "spawn_client.h"

#include "base/clock.h"
#include "base/fd.h"
#include "spawn_msg.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CLOSE_WAIT_US (UINT64_C(4) * 1000 * 1000)     /* longer than the spawner waits for its runs */

struct spawn {
        struct spawn *next;
        uint64_t id;
        rv_spawn_cb cb;
        void *arg;
        bool is_over;           /* ENDED or FAILED was told: of what may come only REMOVED is */
};

/* What may come, with what its first bytes need to lie at. */
union message {
        struct rv_spawn_report report;
        char answer[RV_SPAWN_ANSWER_MAX];
};

struct rv_spawn_client {
        const struct rv_host *host;
        int fd;
        pid_t pid;
        uint64_t n_started;
        struct rv_host_watch *watch;
        struct spawn *spawns;
        size_t answer_bytes;    /* 0: none is awaited */
        void (*answer_cb)(void *arg, const void *answer);
        void *answer_arg;
        rv_spawn_gate_cb gate_cb;
        void *gate_arg;
};

static struct spawn *find(struct rv_spawn_client *client, uint64_t id)
{
        for (struct spawn *s = client->spawns; s; s = s->next)
                if (s->id == id)
                        return s;
        return NULL;
}

static void drop(struct rv_spawn_client *client, struct spawn *spawn)
{
        for (struct spawn **p = &client->spawns; *p; p = &(*p)->next)
                if (*p == spawn) {
                        *p = spawn->next;
                        free(spawn);
                        return;
                }
}

static void disconnect(struct rv_spawn_client *client)
{
        client->host->watch_remove(client->host->ctx, client->watch);
        client->watch = NULL;
        client->fd = rv_close(client->fd);
}

static void answer(struct rv_spawn_client *client, const void *text)
{
        void (*cb)(void *arg, const void *answer) = client->answer_cb;

        if (!client->answer_bytes)
                return;
        client->answer_bytes = 0;
        cb(client->answer_arg, text);
}

/* The spawner is gone: everyone is told, once. */
static void lose(struct rv_spawn_client *client)
{
        struct rv_spawn_event event = { .struct_size = sizeof(event), .kind = RV_SPAWN_LOST, .result_fd = -1 };

        disconnect(client);
        answer(client, NULL);
        snprintf(event.fault_text, sizeof(event.fault_text), "the spawner ended unexpectedly");
        while (client->spawns) {
                struct spawn spawn = *client->spawns;

                drop(client, client->spawns);
                spawn.cb(spawn.arg, &event);
        }
}

/* The descriptors of one message. */
struct fds {
        int items[RV_SPAWN_REPORT_FDS_MAX];
        size_t n;
};

static void close_all(struct fds *fds)
{
        while (fds->n)
                rv_close(fds->items[--fds->n]);
}

static int take_first(struct fds *fds)
{
        return fds->n ? fds->items[--fds->n] : -1;
}

/* What is about the gate, not about a run. */
static bool take_gate_report(struct rv_spawn_client *client, const struct rv_spawn_report *report, struct fds *fds)
{
        bool is_start = report->event.kind == RV_SPAWN_GATE && fds->n == 1;

        if (report->id || (!is_start && report->event.kind != RV_SPAWN_GATE_LOST))
                return false;
        if (client->gate_cb)
                client->gate_cb(client->gate_arg, is_start ? take_first(fds) : -1, report->event.fault_text);
        return true;
}

static void take_fds(struct rv_spawn_event *event, struct fds *fds)
{
        struct rv_network_sockets *net = &event->network;

        event->result_fd = -1;
        if (event->kind == RV_SPAWN_HELD && net->n_fds == fds->n) {
                memcpy(net->fds, fds->items, sizeof(int) * fds->n);
                fds->n = 0;
        } else {
                net->n_fds = 0;
        }
        if (event->kind == RV_SPAWN_ENDED && fds->n == 1)
                event->result_fd = take_first(fds);
}

static void close_fds_of(struct rv_spawn_event *event)
{
        rv_close(event->result_fd);
        for (uint32_t i = 0; i < event->network.n_fds; i++)
                rv_close(event->network.fds[i]);
}

static void take_report(struct rv_spawn_client *client, struct rv_spawn_report *report, struct fds *fds)
{
        struct spawn *spawn;

        report->event.fault_step[sizeof(report->event.fault_step) - 1] = 0;
        report->event.fault_text[sizeof(report->event.fault_text) - 1] = 0;
        report->event.result_note[sizeof(report->event.result_note) - 1] = 0;
        if (take_gate_report(client, report, fds))
                return;
        take_fds(&report->event, fds);
        spawn = find(client, report->id);
        if (!spawn || (spawn->is_over && report->event.kind != RV_SPAWN_REMOVED)) {
                close_fds_of(&report->event);
                return;
        }
        if (report->event.kind == RV_SPAWN_FAILED || report->event.kind == RV_SPAWN_ENDED)
                spawn->is_over = true;
        if (report->event.kind == RV_SPAWN_REMOVED || report->event.kind == RV_SPAWN_LAYER) {
                rv_spawn_cb cb = spawn->cb;
                void *cb_arg = spawn->arg;

                drop(client, spawn);
                cb(cb_arg, &report->event);
        } else {
                spawn->cb(spawn->arg, &report->event);
        }
}

static void on_channel(void *arg, uint32_t events)
{
        struct rv_spawn_client *client = arg;
        union message m;
        struct fds fds;
        ssize_t n;

        (void)events;
        n = rv_receive_with_fds(client->fd, &m, sizeof(m), MSG_DONTWAIT, fds.items, RV_N_ELEMENTS(fds.items), &fds.n);
        if (n == -EAGAIN || n == -EINTR)
                return;
        if (n == (ssize_t)sizeof(m.report)) {
                take_report(client, &m.report, &fds);
                close_all(&fds);
                return;
        }
        close_all(&fds);
        if (n > 0 && (size_t)n == client->answer_bytes)
                answer(client, &m);
        else
                lose(client);
}

int rv_spawn_client_new(const struct rv_host *host, int take_fd, pid_t pid, struct rv_spawn_client **ret)
{
        struct rv_spawn_client *client = calloc(1, sizeof(*client));
        int r;

        if (!client)
                return rv_raise(-ENOMEM);
        *client = (struct rv_spawn_client){ .host = host, .fd = take_fd, .pid = pid };
        r = host->watch_add(host->ctx, take_fd, RV_WATCH_READ, on_channel, client, &client->watch);
        if (r < 0) {
                free(client);
                return rv_trace(r);
        }
        *ret = client;
        return 0;
}

void rv_spawn_client_on_gate(struct rv_spawn_client *client, rv_spawn_gate_cb cb, void *arg)
{
        client->gate_cb = cb;
        client->gate_arg = arg;
}

static void fill_request(const struct rv_plan *plan, uint64_t id, struct rv_spawn_request *q)
{
        *q = (struct rv_spawn_request){
                .kind = RV_SPAWN_REQUEST_START, .language = plan->language, .network = plan->network,
                .memory_mib = plan->memory_mib, .pids = plan->pids, .cpus_milli = plan->cpus_milli, .id = id,
        };
        q->timeout_s = plan->timeout_s;
        q->is_resolver = plan->is_resolver;
        snprintf(q->layer, sizeof(q->layer), "%s", plan->layer ? plan->layer : "");
        memcpy(q->run_id, plan->run_id, sizeof(q->run_id));
        snprintf(q->runtime, sizeof(q->runtime), "%s", plan->runtime);
        snprintf(q->tenant, sizeof(q->tenant), "%s", plan->tenant);
}

int rv_spawn_client_start(
        struct rv_spawn_client *client, const struct rv_spawn_spec *spec, rv_spawn_cb cb, void *arg, uint64_t *ret_id)
{
        int fds[RV_SPAWN_FD_MAX_] = { spec->control_fd, spec->payload_fd, spec->stdin_fd, spec->stdout_fd,
                spec->stderr_fd };
        struct rv_spawn_request q;
        struct spawn *spawn;
        int r;

        if (client->fd < 0)
                return rv_raise(-EPIPE);
        if (strlen(spec->plan->runtime) >= sizeof(q.runtime) || strlen(spec->plan->tenant) >= sizeof(q.tenant))
                return rv_raise(-ENAMETOOLONG);
        spawn = calloc(1, sizeof(*spawn));
        if (!spawn)
                return rv_raise(-ENOMEM);
        *spawn = (struct spawn){ .next = client->spawns, .id = ++client->n_started, .cb = cb, .arg = arg };
        fill_request(spec->plan, spawn->id, &q);
        r = rv_send_with_fds(client->fd, &q, sizeof(q), fds, RV_N_ELEMENTS(fds));
        if (r < 0) {
                free(spawn);
                return rv_raise(r);
        }
        client->spawns = spawn;
        *ret_id = spawn->id;
        return 0;
}

int rv_spawn_client_layer(
        struct rv_spawn_client *client, const struct rv_spawn_layer *layer, rv_spawn_cb cb, void *arg, uint64_t *ret_id)
{
        int fds[RV_SPAWN_LAYER_FD_MAX_] = { layer->job_fd, layer->result_fd, layer->artifacts_fd, layer->lock_fd };
        struct rv_spawn_request q = { .kind = layer->kind };
        struct spawn *spawn;
        int r;

        if (client->fd < 0)
                return rv_raise(-EPIPE);
        spawn = calloc(1, sizeof(*spawn));
        if (!spawn)
                return rv_raise(-ENOMEM);
        *spawn = (struct spawn){ .next = client->spawns, .id = ++client->n_started, .cb = cb, .arg = arg };
        q.id = spawn->id;
        snprintf(q.run_id, sizeof(q.run_id), "%s", layer->run_id);
        snprintf(q.layer, sizeof(q.layer), "%s", layer->digest);
        r = rv_send_with_fds(
                client->fd, &q, sizeof(q), fds, RV_N_ELEMENTS(fds));
        if (r < 0) {
                free(spawn);
                return rv_raise(r);
        }
        client->spawns = spawn;
        *ret_id = spawn->id;
        return 0;
}

void rv_spawn_client_stop(struct rv_spawn_client *client, uint64_t id)
{
        struct rv_spawn_request q = { .kind = RV_SPAWN_REQUEST_STOP, .id = id };

        if (client->fd >= 0)
                (void)!send(client->fd, &q, sizeof(q), MSG_NOSIGNAL);
}

int rv_spawn_client_ask(struct rv_spawn_client *client, const void *message, size_t n, size_t answer_bytes,
        void (*cb)(void *arg, const void *answer), void *arg)
{
        int r;

        if (client->fd < 0)
                return rv_raise(-EPIPE);
        if (client->answer_bytes)
                return rv_raise(-EBUSY);
        rv_check(answer_bytes <= sizeof(union message) && answer_bytes != sizeof(struct rv_spawn_report));
        r = rv_send_with_fds(client->fd, message, n, NULL, 0);
        if (r < 0)
                return rv_raise(r);
        client->answer_bytes = answer_bytes;
        client->answer_cb = cb;
        client->answer_arg = arg;
        return 0;
}

/* It removes what it made. Where it cannot, it gives up by itself; should it be stuck, nobody waits for ever. */
static void await_end(const struct rv_spawn_client *client)
{
        _cleanup_(rv_closep) int fd = (int)syscall(SYS_pidfd_open, client->pid, 0);
        struct pollfd poller = { .fd = fd, .events = POLLIN };
        uint64_t give_up_us = rv_boot_us() + CLOSE_WAIT_US;
        int n = 0;

        while (fd >= 0 && n <= 0 && rv_boot_us() < give_up_us)
                n = poll(&poller, 1, (int)((give_up_us - rv_boot_us()) / 1000) + 1);
        if (fd >= 0 && n <= 0) {
                client->host->log(client->host->ctx, RV_LOG_WARNING, "the spawner does not end; what it left is removed at the next start");
                return;
        }
        while (waitpid(client->pid, NULL, 0) < 0 && errno == EINTR)
                ;
}

void rv_spawn_client_hang_up(struct rv_spawn_client *client)
{
        disconnect(client);
}

void rv_spawn_client_close(struct rv_spawn_client *client)
{
        if (!client)
                return;
        disconnect(client);
        await_end(client);
        lose(client);           /* those that were given up are told, and free what they hold */
        free(client);
}
