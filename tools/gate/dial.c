#include "conn.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define NEXT_ADDRESS_MS 2000      /* while there is another one to try */
#define LAST_ADDRESS_MS 10000
#define PROXY_MS 10000
#define PROXY_HEAD_MAX 8192

static void count_contact(struct conn *conn, uint64_t connections)
{
        char address[RV_ADDRESS_TEXT_SIZE] = "";
        const struct rv_evidence_key key = { .name = conn->name ? conn->name : "",
                                             .address = address,
                                             .port = conn->port,
                                             .protocol = conn->protocol ? conn->protocol : "tcp" };

        rv_address_print(&conn->addresses[conn->n_tried - 1], address);
        conn->contact = rv_evidence_contact(conn->run->evidence, &key);
        if (conn->contact)
                conn->contact->connections += connections;
}

void dial_note(struct conn *conn, bool is_over)
{
        if (conn->is_contact_noted || conn->server_state != SERVER_UP || (!conn->protocol && !is_over))
                return;
        conn->is_contact_noted = true;
        count_contact(conn, 1);
        if (!conn->contact)
                return;
        conn->contact->bytes_out += conn->bytes_out;
        conn->contact->bytes_in += conn->bytes_in;
}

void dial_count(struct conn *conn, uint64_t out, uint64_t in)
{
        struct run *run = conn->run;
        uint64_t most = run->rules->limits.bytes;

        run->bytes += out + in;
        if (conn->contact) {
                conn->contact->bytes_out += out;
                conn->contact->bytes_in += in;
        } else {
                conn->bytes_out += out;
                conn->bytes_in += in;
        }
        if (most && run->bytes > most && conn->state == CONN_OPEN) {
                /* In the middle of something: an answer of ours would be taken for a part of it. */
                conn->look = LOOK_NOTHING;
                deny(conn, RV_DENIAL_BYTE_LIMIT, NULL, NULL);
        }
}

static void be_up(struct conn *conn)
{
        conn->server_state = SERVER_UP;
        conn_set_due(conn, DUE_SERVER, 0);
        dial_note(conn, false);
        conn_touch(conn);
        conn_step(conn);
}

/* ---- Through a proxy ---- */

/* It was dialled, and nothing came of it. */
static void fail_proxy(struct conn *conn)
{
        count_contact(conn, 0);
        conn->contact = NULL;
        conn_end(conn, true);
}

static void ask_proxy(struct conn *conn)
{
        char request[2 * RV_DOMAIN_SIZE + 128];
        bool is_v6 = conn->target.kind == RV_HOSTNAME_LITERAL && conn->target.address.is_v6;
        const char *open = is_v6 ? "[" : "", *close = is_v6 ? "]" : "", *name = conn->target.name;
        int n;

        n = snprintf(request, sizeof(request), "CONNECT %s%s%s:%u HTTP/1.1\r\nHost: %s%s%s:%u\r\n\r\n", open, name, close, conn->port, open, name,
                     close, conn->port);
        conn->server_state = SERVER_ASKING;
        conn_set_due(conn, DUE_SERVER, PROXY_MS);
        if (send(conn->server.fd, request, (size_t)n, MSG_NOSIGNAL) != n || watch_set(&conn->server, EPOLLIN) < 0)
                fail_proxy(conn);
}

static bool has_sent_all(int fd)
{
        struct tcp_info info = { 0 };
        socklen_t n = sizeof(info);

        return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &n) < 0 || info.tcpi_state != TCP_ESTABLISHED;
}

/* The head of the answer is taken to its last byte: what follows may be the server's own. */
static void read_proxy(struct conn *conn)
{
        char *head = conn->run->gate->chunk, *end;
        ssize_t n = recv(conn->server.fd, head, PROXY_HEAD_MAX, MSG_PEEK);
        bool is_cut = n > 0 && has_sent_all(conn->server.fd);
        size_t size;

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        end = n > 0 ? memmem(head, (size_t)n, "\r\n\r\n", 4) : NULL;
        /* The end of what it sends is an event without end, whatever the mark. */
        if (!end && n > 0 && n < PROXY_HEAD_MAX && !is_cut) {
                /* Level-triggered, and nothing is taken: wait for another byte by the low-water mark. */
                int want = (int)n + 1;

                (void)setsockopt(conn->server.fd, SOL_SOCKET, SO_RCVLOWAT, &want, sizeof(want));
                return;
        }
        if (!end || n < 13 || memcmp(head, "HTTP/1.", 7) != 0 || memcmp(head + 8, " 2", 2) != 0) {
                fail_proxy(conn);
                return;
        }
        size = (size_t)(end + 4 - head);
        (void)setsockopt(conn->server.fd, SOL_SOCKET, SO_RCVLOWAT, &(int){ 1 }, sizeof(int));
        if (recv(conn->server.fd, head, size, 0) != (ssize_t)size)
                fail_proxy(conn);
        else
                be_up(conn);
}

/* ---- Addresses, one after another ---- */

static void dial_next(struct conn *conn);

static void fail_address(struct conn *conn)
{
        count_contact(conn, 0);
        conn->contact = NULL;
        watch_close(&conn->server);
        dial_next(conn);
}

static void connected(struct conn *conn)
{
        if (conn->is_by_proxy)
                ask_proxy(conn);
        else
                be_up(conn);
}

static void server_ready(struct watch *watch, uint32_t events)
{
        struct conn *conn = container_of(watch, struct conn, server);
        socklen_t n = sizeof(int);
        int error = 0;

        switch (conn->server_state) {
        case SERVER_DIALLING:
                if (getsockopt(watch->fd, SOL_SOCKET, SO_ERROR, &error, &n) < 0 || error)
                        fail_address(conn);
                else
                        connected(conn);
                return;
        case SERVER_ASKING:
                read_proxy(conn);
                return;
        default:
                conn_server_ready(conn, events);
        }
}

static int dial_address(struct conn *conn, const struct rv_address *address)
{
        struct sockaddr_storage to;
        uint16_t port = conn->is_by_proxy ? conn->run->rules->proxy_port : conn->port;
        socklen_t size = rv_address_to_sockaddr(address, port, &to);
        int fd = socket(to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        const int one = 1;

        if (fd < 0)
                return -errno;
        watch_init(&conn->server, conn->run->epoll_fd, fd, server_ready);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        if (connect(fd, (struct sockaddr *)&to, size) < 0 && errno != EINPROGRESS)
                return -errno;
        return watch_set(&conn->server, EPOLLOUT);
}

static void dial_next(struct conn *conn)
{
        while (conn->n_tried < conn->n_addresses) {
                const struct rv_address *address = &conn->addresses[conn->n_tried++];

                if (dial_address(conn, address) == 0) {
                        conn->server_state = SERVER_DIALLING;
                        conn_set_due(conn, DUE_SERVER,
                                conn->n_tried < conn->n_addresses ? NEXT_ADDRESS_MS : LAST_ADDRESS_MS);
                        return;
                }
                count_contact(conn, 0);
                conn->contact = NULL;
                watch_close(&conn->server);
        }
        conn_end(conn, true);
}

/* ---- Which addresses ---- */

enum rv_denial dial_judge(const struct conn *conn, const struct rv_address *address, bool is_named)
{
        const struct run *run = conn->run;
        uint16_t port = conn->is_by_proxy ? run->rules->proxy_port : conn->port;
        const struct rv_exemption exempt = { .address = *address, .port = port };
        const struct rv_address_rules rules = { .denied = run->rules->denied,
                                                .n_denied = run->rules->n_denied,
                                                .exempt = &exempt,
                                                .n_exempt = is_named,
                                                .own = run->gate->own,
                                                .n_own = run->gate->n_own };

        return rv_address_judge(&rules, address, port);
}

/* All of them are judged; one that is refused is enough. */
static void take_addresses(struct conn *conn, const struct rv_address *addresses, size_t n, bool is_named)
{
        for (size_t i = 0; i < n; i++) {
                enum rv_denial denial = dial_judge(conn, &addresses[i], is_named);

                if (denial) {
                        deny(conn, denial, NULL, &addresses[i]);
                        return;
                }
        }
        /* A network without IPv6 that does not say so is common, one without IPv4 fails at once: IPv4 first. */
        for (int is_v6 = 0; is_v6 < 2; is_v6++)
                for (size_t i = 0; i < n && conn->n_addresses < CONN_ADDRESSES_MAX; i++)
                        if (addresses[i].is_v6 == (is_v6 == 1))
                                conn->addresses[conn->n_addresses++] = addresses[i];
        dial_next(conn);
}

static void take_resolved(struct conn *conn, const struct rv_address *addresses, size_t n)
{
        bool is_named = conn->is_by_proxy || rv_gate_rules_is_registry(conn->run->rules, conn->target.name, conn->port);

        conn_set_due(conn, DUE_SERVER, 0);
        conn->server_state = SERVER_NONE;
        if (n == 0)
                deny(conn, RV_DENIAL_UNRESOLVED, NULL, NULL);
        else
                take_addresses(conn, addresses, n, is_named);
}

static void on_resolved(struct query *query, const struct rv_address *addresses, size_t n)
{
        struct conn *conn = container_of(query, struct conn, query);

        take_resolved(conn, addresses, n);
        conn_step(conn);
}

/* What needs no question: what the operator says, and addresses. NULL: it has to be asked. */
static const struct rv_address *find_fixed(const struct conn *conn, const char *name, struct rv_address *literal)
{
        const struct rv_address *fixed = name ? rv_gate_rules_resolve(conn->run->rules, name) : NULL;

        if (fixed)
                return fixed;
        if (!name)
                return &conn->target.address;
        return rv_address_parse(name, strlen(name), literal) == 0 ? literal : NULL;
}

void dial_start(struct conn *conn)
{
        const struct rv_gate_rules *rules = conn->run->rules;
        const struct rv_address *addresses;
        const char *name = conn->name;
        struct rv_address literal;
        bool is_named;
        size_t n;
        int r;

        if (conn->server_state != SERVER_NONE || conn->state != CONN_OPEN || conn->n_tried)
                return;
        is_named = name && rv_gate_rules_resolve(rules, name);
        conn->is_by_proxy = rules->proxy_host && !is_named;
        if (conn->is_by_proxy)
                name = rules->proxy_host;
        is_named = is_named || conn->is_by_proxy || rv_gate_rules_is_registry(rules, conn->target.name, conn->port);
        addresses = find_fixed(conn, name, &literal);
        if (addresses) {
                take_addresses(conn, addresses, 1, is_named);
                return;
        }
        conn->server_state = SERVER_RESOLVING;
        conn_set_due(conn, DUE_SERVER, CONN_RESOLVE_MS);
        r = resolve_start(conn->run, name, &conn->query, on_resolved, &addresses, &n);
        if (r != RESOLVE_E_LATER)
                take_resolved(conn, addresses, r < 0 ? 0 : n);
}

void dial_on_time(struct conn *conn)
{
        switch (conn->server_state) {
        case SERVER_RESOLVING:
                resolve_cancel(&conn->query);
                conn->server_state = SERVER_NONE;
                deny(conn, RV_DENIAL_UNRESOLVED, NULL, NULL);
                return;
        case SERVER_DIALLING:
                fail_address(conn);
                return;
        case SERVER_ASKING:
                fail_proxy(conn);
                return;
        default:
                return;
        }
}
