#include "conn.h"

#include "base/fd.h"
#include "base/text.h"
#include "netns.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

void conn_set_due(struct conn *conn, enum conn_due what, uint64_t after_ms)
{
        conn->due_ms[what] = after_ms ? gate_now(conn->run->gate) + after_ms : 0;
        if (after_ms)
                run_wake_at(conn->run, conn->due_ms[what]);
}

void conn_end(struct conn *conn, bool is_reset)
{
        if (conn->state == CONN_DEAD)
                return;
        dial_note(conn, true);
        if (conn->state == CONN_REFUSED)
                deny_note(conn);
        if (is_reset) {
                watch_reset(&conn->client);
                watch_reset(&conn->server);
        }
        watch_close(&conn->client);
        watch_close(&conn->server);
        resolve_cancel(&conn->query);
        conn->state = CONN_DEAD;
        *(conn->is_over_limit ? &conn->run->n_refused : &conn->run->n_conns) -= 1;
        link_remove(&conn->link);
        link_append(&conn->run->dead_conns, &conn->link);
        if (conn->run->n_waiting || !conn->run->listener.waits_for)
                run_wake_at(conn->run, gate_now(conn->run->gate));
}

void conn_free(struct conn *conn)
{
        flow_fini(&conn->up);
        flow_fini(&conn->down);
        rv_buf_fini(&conn->held);
        rv_hello_fini(&conn->hello);
        rv_http1_fini(&conn->http);
        free(conn);
}

void conn_touch(struct conn *conn)
{
        conn->last_ms = gate_now(conn->run->gate);
        if (!conn->due_ms[DUE_IDLE])
                conn_set_due(conn, DUE_IDLE, conn->run->rules->limits.idle_ms);
}

/* Is this a server that may speak before its client? Then nothing is to be looked at. */
static bool may_speak_first(const struct conn *conn)
{
        return conn->look == LOOK_FIRST && conn->held.size == 0 && !conn_is_web(conn) && conn->state == CONN_OPEN;
}

static bool may_read_server(const struct conn *conn)
{
        if (conn->server_state != SERVER_UP || conn->down.is_eof)
                return false;
        return conn->run->drain_ms || conn->look == LOOK_HTTP || conn->look == LOOK_NOTHING || may_speak_first(conn);
}

static bool may_read_client(const struct conn *conn)
{
        if (conn->up.is_eof || conn->up.is_broken || conn->state != CONN_OPEN)
                return false;
        return conn->look != LOOK_NOTHING || conn->server_state == SERVER_UP;
}

static bool is_moving(const struct conn *conn)
{
        return conn->state == CONN_OPEN || conn->state == CONN_LATE;
}

/* Returns whether nothing is kept any more. */
static bool flush_up(struct conn *conn)
{
        if (conn->server_state != SERVER_UP)
                return false;
        (void)flow_flush(&conn->up, conn->server.fd);
        conn_touch(conn);
        return flow_is_empty(&conn->up);
}

/* One read each way, however much more there is: others wait for their turn. */
static void pump_up(struct conn *conn)
{
        int64_t n;

        if (!flow_is_empty(&conn->up) && !flush_up(conn))
                return;
        if (!may_read_client(conn))
                return;
        if (conn->look != LOOK_NOTHING) {
                if (look_read(conn) && is_moving(conn) && !flow_is_empty(&conn->up))
                        (void)flush_up(conn);
                return;
        }
        n = flow_pull(&conn->up, conn->client.fd, conn->server.fd, conn->run->gate->chunk);
        if (n == -EAGAIN)
                return;
        if (n < 0 && !conn->run->drain_ms) {
                conn_end(conn, true);
                return;
        }
        conn->up.is_eof = n <= 0;
        conn_touch(conn);
        dial_count(conn, (uint64_t)RV_MAX(n, (int64_t)0), 0);
}

/* Nobody is there for it. It is read all the same: a server that cannot write may read no more. */
static void drop_down(struct conn *conn)
{
        ssize_t n;

        if (!may_read_server(conn))
                return;
        n = recv(conn->server.fd, conn->run->gate->chunk, GATE_CHUNK_BYTES, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (n < 0)
                conn_end(conn, true);
        conn->down.is_eof = n <= 0;
}

static bool flush_down(struct conn *conn)
{
        if (flow_flush(&conn->down, conn->client.fd) < 0) {
                conn_end(conn, true);
                return false;
        }
        conn_touch(conn);
        return flow_is_empty(&conn->down);
}

static void pump_down(struct conn *conn)
{
        int64_t n;

        if (conn->run->drain_ms) {
                drop_down(conn);
                return;
        }
        if (!flow_is_empty(&conn->down) && !flush_down(conn))
                return;
        if (!may_read_server(conn))
                return;
        n = flow_pull(&conn->down, conn->server.fd, conn->client.fd, conn->run->gate->chunk);
        if (n == -EAGAIN)
                return;
        if (conn->down.is_broken) {
                conn_end(conn, true);
                return;
        }
        conn->down.is_eof = n <= 0;
        conn->is_reset = n < 0;
        conn_touch(conn);
        if (n <= 0)
                return;
        conn->is_unanswered = false;
        if (may_speak_first(conn))
                look_pass(conn, "tcp");
        dial_count(conn, 0, (uint64_t)n);
}

/* Does the server's machine have all of it, the end too? Closed before, a byte that it sends would cut off the rest. */
static bool is_taken(const struct conn *conn)
{
        struct tcp_info info = { 0 };
        socklen_t n = sizeof(info);

        if (getsockopt(conn->server.fd, IPPROTO_TCP, TCP_INFO, &info, &n) < 0)
                return true;
        return info.tcpi_state != TCP_FIN_WAIT1 && info.tcpi_state != TCP_CLOSING && info.tcpi_state != TCP_LAST_ACK;
}

static void end_drained(struct conn *conn)
{
        if (conn->up.is_broken || (conn->up.is_shut && is_taken(conn)))
                conn_end(conn, conn->up.is_broken);
        else if (conn->up.is_shut)
                conn_set_due(conn, DUE_TAKEN, CONN_TAKEN_MS);
}

/* What has ended on one side ends on the other when all before it is there. */
static void pass_ends(struct conn *conn)
{
        if (conn->up.is_broken ||
                (conn->up.is_eof && flow_is_empty(&conn->up) && conn->server_state == SERVER_UP && !conn->up.is_shut)) {
                if (!conn->up.is_broken)
                        (void)shutdown(conn->server.fd, SHUT_WR);
                conn->up.is_shut = true;
        }
        if (conn->run->drain_ms) {
                end_drained(conn);
                return;
        }
        if (conn->down.is_eof && flow_is_empty(&conn->down)) {
                if (conn->state == CONN_LATE) {
                        deny_answer(conn);
                        return;
                }
                if (conn->is_reset) {
                        conn_end(conn, true);
                        return;
                }
                if (!conn->down.is_shut)
                        (void)shutdown(conn->client.fd, SHUT_WR);
                conn->down.is_shut = true;
        }
        if (conn->up.is_shut && conn->down.is_shut)
                conn_end(conn, conn->up.is_broken);
}

static void wait_for_more(struct conn *conn)
{
        uint32_t client = 0, server = 0;
        int r;

        if (may_read_client(conn) && flow_is_empty(&conn->up))
                client |= EPOLLIN;
        if (!flow_is_empty(&conn->down))
                client |= EPOLLOUT;
        if (may_read_server(conn) && flow_is_empty(&conn->down))
                server |= EPOLLIN;
        if (conn->server_state == SERVER_UP && !flow_is_empty(&conn->up))
                server |= EPOLLOUT;
        r = watch_set(&conn->client, client);
        if (r == 0 && conn->server_state == SERVER_UP)
                r = watch_set(&conn->server, server);
        if (r < 0)
                conn_end(conn, true);
}

static void step(struct conn *conn, bool is_up, bool is_down)
{
        if (is_up && is_moving(conn))
                pump_up(conn);
        if (is_down && is_moving(conn))
                pump_down(conn);
        if (is_moving(conn))
                pass_ends(conn);
        if (is_moving(conn))
                wait_for_more(conn);
}

void conn_step(struct conn *conn)
{
        step(conn, true, true);
}

void conn_server_ready(struct conn *conn, uint32_t events)
{
        step(conn, events & (EPOLLOUT | EPOLLERR | EPOLLHUP), events & (EPOLLIN | EPOLLERR | EPOLLHUP));
}

static void client_ready(struct watch *watch, uint32_t events)
{
        struct conn *conn = container_of(watch, struct conn, client);

        if (is_moving(conn))
                step(conn, events & (EPOLLIN | EPOLLERR | EPOLLHUP), events & (EPOLLOUT | EPOLLERR | EPOLLHUP));
        else
                deny_read(conn);
}

/* ---- Its destination ---- */

static bool get_target(struct conn *conn, const struct rv_address *to)
{
        const struct run *run = conn->run;

        conn->name = rv_synth_find(run->synth, to);
        if (conn->name) {
                conn->target.kind = RV_HOSTNAME_DOMAIN;
                rv_text_copy(conn->target.name, sizeof(conn->target.name), conn->name);
                return true;
        }
        conn->target.kind = RV_HOSTNAME_LITERAL;
        conn->target.has_address = true;
        conn->target.address = *to;
        rv_address_print(to, conn->target.name);
        return run->rules->names.mode == RV_NETWORK_ANY || !rv_synth_holds(to);
}

static enum rv_denial judge_target(const struct conn *conn, bool is_own_port, bool is_known)
{
        const struct run *run = conn->run;
        const struct rv_gate_rules *rules = run->rules;
        enum rv_denial denial;

        if (is_own_port || conn->port == rules->listen_port)
                return RV_DENIAL_GATE_PORT;
        if (rules->limits.bytes && run->bytes >= rules->limits.bytes)
                return RV_DENIAL_BYTE_LIMIT;
        if (!is_known)
                return RV_DENIAL_UNNAMED;
        denial = rv_names_judge(&rules->names, &conn->target, conn->port);
        if (denial || conn->target.kind == RV_HOSTNAME_DOMAIN)
                return denial == RV_DENIAL_LITERAL ? RV_DENIAL_UNNAMED : denial;
        return dial_judge(conn, &conn->target.address, rv_gate_rules_is_registry(rules, conn->target.name, conn->port));
}

void conn_new(struct run *run, int fd, enum rv_denial refused)
{
        union rv_netns_address to = { 0 };
        struct rv_address address = { 0 };
        struct conn *conn = calloc(1, sizeof(*conn));
        enum rv_denial denial;
        const int one = 1;
        int own_port;

        own_port = rv_netns_destination(fd, run->rules->is_redirect ? RV_NETNS_REDIRECT : RV_NETNS_TPROXY, &to);
        if (!conn || own_port < 0) {
                struct watch client;

                watch_init(&client, run->epoll_fd, fd, NULL);
                watch_reset(&client);
                free(conn);
                return;
        }
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        conn->run = run;
        watch_init(&conn->client, run->epoll_fd, fd, client_ready);
        watch_init(&conn->server, run->epoll_fd, -EBADF, NULL);
        flow_init(&conn->up);
        flow_init(&conn->down);
        query_init(&conn->query);
        conn->is_over_limit = refused == RV_DENIAL_CONNECTION_LIMIT;
        *(conn->is_over_limit ? &run->n_refused : &run->n_conns) += 1;
        link_append(&run->conns, &conn->link);
        (void)rv_address_from_sockaddr(&to.any, sizeof(to), &address, &conn->port);
        denial = judge_target(conn, own_port > 0, get_target(conn, &address));
        denial = refused ? refused : denial;
        if (denial) {
                deny(conn, denial, NULL, NULL);
                return;
        }
        conn_touch(conn);
        if (!conn_is_web(conn))
                conn_set_due(conn, DUE_LOOK, CONN_SILENT_MS);
        conn_step(conn);
}

static void idle_on_time(struct conn *conn, uint64_t now)
{
        uint64_t idle = now - conn->last_ms, most = conn->run->rules->limits.idle_ms;

        if (idle >= most)
                conn_end(conn, true);
        else
                conn_set_due(conn, DUE_IDLE, most - idle);
}

/* Its client is dead: what it had sent goes out, then it ends. */
static void drain(struct conn *conn)
{
        conn->is_drained = true;
        if (conn->state == CONN_REFUSED || conn->state == CONN_ANSWERED) {
                conn_end(conn, conn->state == CONN_REFUSED);
                return;
        }
        /* What was sent before the request that is refused still goes out. */
        conn->up.is_eof = conn->up.is_eof || conn->state == CONN_LATE;
        if (conn->state == CONN_LATE)
                conn->state = CONN_OPEN;
        flow_fini(&conn->down);
        flow_init(&conn->down);
        conn_step(conn);
}

static bool is_due(const struct conn *conn, uint64_t now)
{
        if (conn->run->drain_ms && (!conn->is_drained || now >= conn->run->drain_ms))
                return true;
        for (int i = 0; i < DUE_MAX_; i++)
                if (conn->due_ms[i] && conn->due_ms[i] <= now)
                        return true;
        return false;
}

static void do_what_is_due(struct conn *conn, uint64_t now)
{
        if (conn->run->drain_ms && now >= conn->run->drain_ms) {
                conn_end(conn, !conn->up.is_shut);
                return;
        }
        if (conn->run->drain_ms && !conn->is_drained)
                drain(conn);
        for (int i = 0; i < DUE_MAX_ && conn->state != CONN_DEAD; i++) {
                if (!conn->due_ms[i] || conn->due_ms[i] > now)
                        continue;
                conn->due_ms[i] = 0;
                if (i == DUE_IDLE)
                        idle_on_time(conn, now);
                else if (i == DUE_SERVER)
                        dial_on_time(conn);
                else if (i == DUE_TAKEN)
                        conn_step(conn);
                else if (conn->state == CONN_OPEN)
                        look_on_time(conn);
                else
                        deny_on_time(conn);
        }
}

void conn_on_time(struct run *run, uint64_t now)
{
        link_each(l, &run->conns)
        {
                struct conn *conn = container_of(l, struct conn, link);

                if (is_due(conn, now)) {
                        if (!run_take_turn(run)) {
                                /* The next turn begins with it. */
                                link_remove(&run->conns);
                                link_append(l, &run->conns);
                                return;
                        }
                        do_what_is_due(conn, now);
                }
                for (int i = 0; i < DUE_MAX_ && conn->state != CONN_DEAD; i++)
                        if (conn->due_ms[i])
                                run_wake_at(run, conn->due_ms[i]);
        }
}
