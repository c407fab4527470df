#include "conn.h"

#include <string.h>
#include <sys/socket.h>

static bool is_any(const struct conn *conn)
{
        return conn->run->rules->names.mode == RV_NETWORK_ANY;
}

/* In mode `any` names do not matter, unless the operator denies some. */
static bool has_nothing_to_judge(const struct conn *conn)
{
        return is_any(conn) && conn->run->rules->names.n_denied == 0;
}

/* A name that the client gave itself, by SNI or Host. */
static enum rv_denial judge_given(const struct conn *conn, const struct rv_hostname *host)
{
        enum rv_denial denial = rv_names_judge(&conn->run->rules->names, host, conn->port);

        return is_any(conn) && denial != RV_DENIAL_CONFIGURED ? RV_DENIAL_NONE : denial;
}

/* What was held is judged now, and goes out. */
static void release_held(struct conn *conn)
{
        size_t n = conn->held.size;

        if (rv_buf_append(&conn->up.out, conn->held.data, n) < 0) {
                conn_end(conn, true);
                return;
        }
        rv_buf_fini(&conn->held);
        dial_count(conn, n, 0);
}

void look_pass(struct conn *conn, const char *protocol)
{
        conn->protocol = protocol;
        conn->look = LOOK_NOTHING;
        conn_set_due(conn, DUE_LOOK, 0);
        rv_hello_fini(&conn->hello);
        rv_http1_fini(&conn->http);
        release_held(conn);
        if (conn->state != CONN_OPEN)
                return;
        dial_note(conn, false);
        dial_start(conn);
}

/* ---- TLS ---- */

static void judge_hello(struct conn *conn)
{
        const struct rv_hello *hello = &conn->hello;
        char shown[RV_NAME_TEXT_SIZE] = "";
        struct rv_hostname host;
        enum rv_denial denial = RV_DENIAL_NONE;

        switch (hello->event) {
        case RV_HELLO_MORE:
                return;
        case RV_HELLO_NAMED:
                rv_name_print(hello->name, hello->n_name, shown);
                rv_hostname_parse(hello->name, hello->n_name, RV_HOSTNAME_BARE, &host);
                denial = judge_given(conn, &host);
                break;
        case RV_HELLO_NO_NAME:
        case RV_HELLO_REFUSED:
                denial = is_any(conn) ? RV_DENIAL_NONE : hello->denial;
                break;
        case RV_HELLO_NOT_TLS:
                denial = is_any(conn) ? RV_DENIAL_NONE : RV_DENIAL_TLS_MALFORMED;
                break;
        }
        if (denial)
                deny(conn, denial, *shown ? shown : NULL, NULL);
        else
                look_pass(conn, "tls");
}

static void feed_hello(struct conn *conn, const char *data, size_t n)
{
        if (rv_hello_feed(&conn->hello, data, n) < 0)
                conn_end(conn, true);
        else
                judge_hello(conn);
}

/* ---- HTTP ---- */

/* A request's head is whole. Returns whether it may go out. */
static bool judge_head(struct conn *conn)
{
        const struct rv_http1 *http = &conn->http;
        char shown[RV_NAME_TEXT_SIZE];
        enum rv_denial denial = judge_given(conn, &http->host);

        if (!denial)
                return true;
        rv_name_print(http->host_text, http->n_host_text, shown);
        deny(conn, denial, shown, NULL);
        return false;
}

static void send_on(struct conn *conn, const void *data, size_t n)
{
        if (rv_buf_append(&conn->up.out, data, n) < 0)
                conn_end(conn, true);
        else
                dial_count(conn, n, 0);
}

/* The parser refuses it. Where only names that the operator denies matter, what cannot be read passes. */
static void refuse_request(struct conn *conn, enum rv_denial denial, const char *rest, size_t n)
{
        if (!is_any(conn)) {
                deny(conn, denial, NULL, NULL);
                return;
        }
        if (rv_buf_append(&conn->held, rest, n) < 0)
                conn_end(conn, true);
        else
                look_pass(conn, "http");
}

static void feed_http(struct conn *conn, const char *data, size_t n)
{
        while (n && conn->state == CONN_OPEN && conn->look == LOOK_HTTP) {
                size_t taken = 0;

                switch (rv_http1_feed(&conn->http, data, n, &taken)) {
                case RV_HTTP1_MORE:
                        if (is_any(conn) && rv_buf_append(&conn->held, data, taken) < 0)
                                conn_end(conn, true);
                        break;
                case RV_HTTP1_HEAD:
                        if (!judge_head(conn))
                                return;
                        conn->held.size = 0;
                        conn_set_due(conn, DUE_LOOK, 0);
                        conn->is_unanswered = true;
                        send_on(conn, conn->http.head.data, conn->http.head.size);
                        if (conn->state == CONN_OPEN)
                                dial_start(conn);
                        break;
                case RV_HTTP1_BODY:
                        send_on(conn, data, taken);
                        break;
                case RV_HTTP1_REFUSED:
                        refuse_request(conn, conn->http.denial, data, n);
                        return;
                default:
                        conn_end(conn, true);
                        return;
                }
                data += taken;
                n -= taken;
        }
}

/* ---- First bytes ---- */

static void begin_hello(struct conn *conn)
{
        conn->protocol = "tls";
        conn->look = LOOK_HELLO;
        conn_set_due(conn, DUE_LOOK, CONN_HELLO_MS);
        feed_hello(conn, conn->held.data, conn->held.size);
}

static void begin_http(struct conn *conn)
{
        struct rv_buf first = conn->held;

        conn->held = (struct rv_buf){ 0 };
        conn->protocol = "http";
        conn->look = LOOK_HTTP;
        conn_set_due(conn, DUE_LOOK, CONN_HELLO_MS);
        dial_note(conn, false);
        feed_http(conn, first.data, first.size);
        rv_buf_fini(&first);
}

/* Refused whatever it says; it is no HTTP/1 client that would read an answer. */
static void refuse_protocol(struct conn *conn, enum rv_denial denial, const char *protocol)
{
        conn->protocol = protocol;
        conn->look = LOOK_NOTHING;
        deny(conn, denial, NULL, NULL);
}

static void decide(struct conn *conn, enum rv_protocol protocol)
{
        switch (protocol) {
        case RV_PROTOCOL_MORE:
                return;
        case RV_PROTOCOL_TLS:
                if (has_nothing_to_judge(conn))
                        look_pass(conn, "tls");
                else
                        begin_hello(conn);
                return;
        case RV_PROTOCOL_HTTP:
                if (has_nothing_to_judge(conn))
                        look_pass(conn, "http");
                else
                        begin_http(conn);
                return;
        case RV_PROTOCOL_PRI:
                refuse_protocol(conn, RV_DENIAL_HTTP2, "http");
                return;
        case RV_PROTOCOL_SSLV2:
                if (conn_is_web(conn) || !is_any(conn))
                        refuse_protocol(conn, RV_DENIAL_SSLV2, "tls");
                else
                        look_pass(conn, "tcp");
                return;
        case RV_PROTOCOL_SILENT:
        case RV_PROTOCOL_OTHER:
                if (conn_is_web(conn))
                        refuse_protocol(conn, RV_DENIAL_PROTOCOL, "tcp");
                else
                        look_pass(conn, "tcp");
                return;
        }
}

static void feed_first(struct conn *conn, const char *data, size_t n)
{
        bool is_first = conn->held.size == 0;
        enum rv_protocol protocol;

        if (rv_buf_append(&conn->held, data, n) < 0) {
                conn_end(conn, true);
                return;
        }
        protocol = rv_protocol_classify(conn->held.data, conn->held.size, false);
        if (protocol == RV_PROTOCOL_MORE && is_first)
                conn_set_due(conn, DUE_LOOK, RV_CLASSIFY_MS);
        decide(conn, protocol);
}

/* The client sends no more. */
static void end_look(struct conn *conn)
{
        conn->up.is_eof = true;
        if (conn->look == LOOK_FIRST && (conn->held.size || !conn_is_web(conn)))
                decide(conn, rv_protocol_classify(conn->held.data, conn->held.size, true));
        /* It had nothing to say, or left in the middle of it. */
        if (conn->state == CONN_OPEN && conn->look != LOOK_NOTHING && conn->server_state == SERVER_NONE)
                conn_end(conn, false);
}

bool look_read(struct conn *conn)
{
        char *chunk = conn->run->gate->chunk;
        ssize_t n = recv(conn->client.fd, chunk, GATE_CHUNK_BYTES, 0);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return false;
        if (n < 0 && !conn->run->drain_ms) {
                conn_end(conn, true);
                return false;
        }
        conn_touch(conn);
        if (n <= 0)
                end_look(conn);
        else if (conn->look == LOOK_FIRST)
                feed_first(conn, chunk, (size_t)n);
        else if (conn->look == LOOK_HTTP)
                feed_http(conn, chunk, (size_t)n);
        else if (rv_buf_append(&conn->held, chunk, (size_t)n) < 0)
                conn_end(conn, true);
        else
                feed_hello(conn, chunk, (size_t)n);
        return conn->state == CONN_OPEN;
}

void look_on_time(struct conn *conn)
{
        if (conn->look == LOOK_FIRST && conn->held.size == 0)
                dial_start(conn);
        else if (conn->look == LOOK_FIRST)
                decide(conn, rv_protocol_classify(conn->held.data, conn->held.size, true));
        else if (conn->look == LOOK_HELLO && is_any(conn))
                look_pass(conn, "tls");
        else if (conn->look == LOOK_HELLO)
                deny(conn, RV_DENIAL_TLS_MALFORMED, NULL, NULL);
        else if (conn->look == LOOK_HTTP && conn->http.n_requests == 0)
                refuse_request(conn, RV_DENIAL_HTTP_MALFORMED, NULL, 0);
        conn_step(conn);
}
