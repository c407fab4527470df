#include "run.h"

#include "base/fd.h"
#include "base/json.h"
#include "conn.h"
#include "control.h"
#include "dns.h"
#include "listen.h"
#include "resolve.h"

#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>

#define TURN_EVENTS 2          /* that a run has before the next run's turn */
#define TURN_PIECES 2          /* of what is due, likewise */

static void on_ready(uv_poll_t *poll, int status, int events)
{
        struct run *run = poll->data;
        struct epoll_event e;

        for (int i = 0; i < TURN_EVENTS; i++) {
                struct watch *watch;

                if (epoll_wait(run->epoll_fd, &e, 1, 0) != 1)
                        break;
                watch = e.data.ptr;
                watch->ready(watch, e.events);
        }
        run_reap(run);
        if (run_is_over(run))
                control_report(run);
}

static void do_what_is_due(struct run *run)
{
        uint64_t now = gate_now(run->gate);

        run->pieces_left = TURN_PIECES;
        resolve_on_time(run);
        listen_on_time(run, now);
        if (!run->drain_ms)
                dns_on_time(run, now);
        else if (run->drain_ms > now)
                run_wake_at(run, run->drain_ms);
        conn_on_time(run, now);
        run_reap(run);
}

static void on_time(uv_timer_t *timer)
{
        struct run *run = timer->data;

        run->wake_ms = 0;
        do_what_is_due(run);
        if (run_is_over(run))
                control_report(run);
}

static void on_idle(uv_idle_t *idle)
{
        struct run *run = idle->data;

        (void)uv_idle_stop(idle);
        do_what_is_due(run);
        if (run_is_over(run))
                control_report(run);
}

void run_go_on(struct run *run)
{
        (void)uv_idle_start(&run->idle, on_idle);
}

bool run_take_turn(struct run *run)
{
        if (run->pieces_left == 0) {
                run_go_on(run);
                return false;
        }
        run->pieces_left--;
        return true;
}

void run_wake_at(struct run *run, uint64_t ms)
{
        uint64_t now = gate_now(run->gate);

        if (run->wake_ms && run->wake_ms <= ms)
                return;
        run->wake_ms = RV_MAX(ms, now + 1);
        (void)uv_timer_start(&run->timer, on_time, run->wake_ms - now, 0);
}

void run_reap(struct run *run)
{
        link_each(l, &run->dead_conns)
                conn_free(container_of(l, struct conn, link));
        link_init(&run->dead_conns);
        dns_reap(run);
}

struct run *run_find(struct gate *gate, uint64_t id)
{
        link_each(l, &gate->runs)
        {
                struct run *run = container_of(l, struct run, link);

                if (run->id == id)
                        return run;
        }
        return NULL;
}

static int get_option(int fd, int level, int name)
{
        socklen_t n = sizeof(int);
        int value = 0;

        return getsockopt(fd, level, name, &value, &n) < 0 ? -1 : value;
}

/* Which of a run's sockets is it? NULL for none of them. */
static struct watch *place_of(struct run *run, int fd)
{
        struct sockaddr_storage local = { 0 };
        socklen_t n = sizeof(local);
        struct rv_address address;
        uint16_t port = 0;

        if (getsockname(fd, (struct sockaddr *)&local, &n) < 0 ||
                rv_address_from_sockaddr((struct sockaddr *)&local, n, &address, &port) < 0)
                return NULL;
        switch (get_option(fd, SOL_SOCKET, SO_TYPE)) {
        case SOCK_STREAM:
                if (get_option(fd, SOL_SOCKET, SO_ACCEPTCONN) != 1)
                        return NULL;
                return port == DNS_PORT ? &run->dns_tcp : port == run->rules->listen_port ? &run->listener : NULL;
        case SOCK_DGRAM:
                if (port != DNS_PORT)
                        return NULL;
                return local.ss_family == AF_INET ? &run->dns_udp4 : &run->dns_udp6;
        default:
                return NULL;
        }
}

static int take_sockets(struct run *run, const int *sockets, size_t n_sockets, struct rv_error *err)
{
        int r = 0;

        for (size_t i = 0; i < n_sockets; i++) {
                struct watch *place = place_of(run, sockets[i]);

                if (!place || place->fd >= 0) {
                        rv_close(sockets[i]);
                        r = rv_error_set(err, rv_raise(-EINVAL), "descriptor %zu is none of a run's sockets, or one of them twice", i + 1);
                        continue;
                }
                place->fd = sockets[i];
        }
        if (r == 0 && (run->listener.fd < 0 || run->dns_udp4.fd < 0 || run->dns_tcp.fd < 0))
                r = rv_error_set(err, rv_raise(-EINVAL), "a socket of the run is missing");
        return r;
}

static void on_closed(uv_handle_t *handle)
{
        struct run *run = handle->data;

        if (--run->n_handles == 0)
                free(run);
}

/* Without its connections. */
static void run_free(struct run *run)
{
        listen_close(run);
        dns_close(run);
        rv_gate_rules_free(run->rules);
        rv_synth_free(run->synth);
        rv_evidence_free(run->evidence);
        if (run->n_handles > 0) {
                uv_close((uv_handle_t *)&run->timer, on_closed);
                uv_close((uv_handle_t *)&run->idle, on_closed);
        }
        if (run->n_handles > 2)
                uv_close((uv_handle_t *)&run->poll, on_closed);
        rv_close(run->epoll_fd);
        if (run->n_handles == 0)
                free(run);
}

static struct run *run_new(struct gate *gate, uint64_t id, struct rv_gate_rules *rules)
{
        struct run *run = calloc(1, sizeof(*run));

        if (!run)
                return NULL;
        run->gate = gate;
        run->id = id;
        run->rules = rules;
        run->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        watch_init(&run->listener, run->epoll_fd, -EBADF, listen_ready);
        watch_init(&run->dns_udp4, run->epoll_fd, -EBADF, dns_ready);
        watch_init(&run->dns_udp6, run->epoll_fd, -EBADF, dns_ready);
        watch_init(&run->dns_tcp, run->epoll_fd, -EBADF, dns_accept);
        run->dns_udp4.owner = run->dns_udp6.owner = run;
        link_init(&run->link);
        link_init(&run->waiting);
        link_init(&run->conns);
        link_init(&run->dead_conns);
        link_init(&run->dns_streams);
        link_init(&run->dead_dns_streams);
        link_init(&run->answers);
        bucket_init(&run->connection_bucket, rules->limits.connections_per_s, gate_now(gate));
        bucket_init(&run->dns_bucket, rules->limits.dns_per_s, gate_now(gate));
        return run;
}

static int run_start(struct run *run)
{
        uint64_t seed;
        int r;

        if (run->epoll_fd < 0)
                return rv_raise(-EMFILE);
        if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
                return rv_raise(-EIO);
        r = rv_synth_new(seed, &run->synth);
        if (r == 0)
                r = rv_evidence_new(&run->evidence);
        if (r < 0)
                return rv_trace(r);
        rv_synth_limit(run->synth, run->rules->limits.names);
        (void)uv_timer_init(&run->gate->loop, &run->timer);
        (void)uv_idle_init(&run->gate->loop, &run->idle);
        run->timer.data = run->idle.data = run;
        run->n_handles = 2;
        r = uv_poll_init(&run->gate->loop, &run->poll, run->epoll_fd);
        if (r < 0)
                return rv_raise(r);
        run->poll.data = run;
        run->n_handles = 3;
        r = uv_poll_start(&run->poll, UV_READABLE, on_ready);
        struct watch *const sockets[] = { &run->listener, &run->dns_udp4, &run->dns_tcp, &run->dns_udp6 };

        for (size_t i = 0; i < RV_N_ELEMENTS(sockets) && r == 0; i++)
                if (sockets[i]->fd >= 0)
                        r = watch_set(sockets[i], EPOLLIN);
        return rv_trace(r);
}

int run_add(struct gate *gate, uint64_t id, struct rv_gate_rules *rules, const int *sockets, size_t n_sockets,
        struct rv_error *err)
{
        struct run *run = run_new(gate, id, rules);
        int r;

        if (!run) {
                rv_gate_rules_free(rules);
                for (size_t i = 0; i < n_sockets; i++)
                        rv_close(sockets[i]);
                return rv_error_set(err, rv_raise(-ENOMEM), "no memory");
        }
        r = take_sockets(run, sockets, n_sockets, err);
        if (r == 0)
                r = run_start(run);
        if (r < 0) {
                run_free(run);
                return rv_error_set(err, rv_trace(r), "the run cannot be served: error %d", -r);
        }
        link_append(&gate->runs, &run->link);
        gate->n_runs++;
        return 0;
}

void run_drain(struct run *run, uint64_t ms)
{
        run->drain_ms = gate_now(run->gate) + RV_MAX(ms, (uint64_t)1);
        dns_close(run);
        do_what_is_due(run);
}

bool run_is_over(const struct run *run)
{
        return run->drain_ms && run->listener.fd < 0 && link_is_alone(&run->conns) && link_is_alone(&run->waiting);
}

int run_remove(struct run *run, struct rv_buf *report)
{
        int r;

        link_each(l, &run->conns)
        {
                struct conn *conn = container_of(l, struct conn, link);

                conn_end(conn, !conn->up.is_shut || !run->drain_ms);
        }
        dns_close(run);
        resolve_close(run);
        run_reap(run);
        r = report ? rv_evidence_write(run->evidence, report) : 0;
        link_remove(&run->link);
        run->gate->n_runs--;
        run_free(run);
        return rv_trace(r);
}
