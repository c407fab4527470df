#include "conn.h"

#include "base/text.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#define ANSWER_MAX 4096

void deny_note(struct conn *conn)
{
        const struct rv_evidence_key key = { .name = conn->refused_name,
                                             .address = conn->refused_address,
                                             .port = conn->port,
                                             .protocol = conn->protocol ? conn->protocol : "tcp" };

        if (conn->is_refusal_noted || !conn->denial)
                return;
        conn->is_refusal_noted = true;
        rv_evidence_deny(conn->run->evidence, &key, conn->denial);
}

static void drop_server(struct conn *conn)
{
        dial_note(conn, true);
        resolve_cancel(&conn->query);
        watch_close(&conn->server);
        conn->server_state = SERVER_NONE;
        conn_set_due(conn, DUE_SERVER, 0);
}

static void reset(struct conn *conn)
{
        deny_note(conn);
        conn_end(conn, true);
}

static const char *reason_phrase(unsigned status)
{
        return status == 417 ? "Expectation Failed" : status == 502 ? "Bad Gateway" : "Forbidden";
}

void deny_answer(struct conn *conn)
{
        unsigned status = rv_http1_status(conn->denial);
        const char *what = *conn->refused_name ? conn->refused_name : *conn->refused_address ? conn->refused_address : "this";
        /* curl sends again what was answered by 417 only if the answer does not say that the connection ends, as it does. */
        const char *says_close = status == 417 ? "" : "Connection: close\r\n";
        char body[ANSWER_MAX / 2], answer[ANSWER_MAX];
        int n;

        deny_note(conn);
        drop_server(conn);
        conn->state = CONN_ANSWERED;
        snprintf(body, sizeof(body), "reeve: refused by rule %s: %s, port %u: %s\n", rv_denial_word(conn->denial), what, conn->port,
                 rv_denial_text(conn->denial));
        n = snprintf(answer, sizeof(answer),
                     "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\nX-Reeve-Rule: %s\r\n"
                     "%s\r\n%s", status, reason_phrase(status), strlen(body), rv_denial_word(conn->denial), says_close, body);
        if (send(conn->client.fd, answer, (size_t)n, MSG_NOSIGNAL) != n || shutdown(conn->client.fd, SHUT_WR) < 0) {
                conn_end(conn, true);
                return;
        }
        /* Closed with bytes of its own unread it would be reset, and might not see the answer. */
        conn_set_due(conn, DUE_IDLE, 0);
        conn_set_due(conn, DUE_LOOK, CONN_LINGER_MS);
        if (watch_set(&conn->client, EPOLLIN) < 0)
                conn_end(conn, true);
}

/* Does it speak HTTP/1, and is it an answer that it waits for next? */
static bool can_be_answered(const struct conn *conn)
{
        if (!conn->protocol || strcmp(conn->protocol, "http") != 0 || conn->denial == RV_DENIAL_HTTP2)
                return false;
        return conn->look == LOOK_HTTP ? flow_is_empty(&conn->down) : conn->down.n_bytes == 0;
}

void deny(struct conn *conn, enum rv_denial denial, const char *name, const struct rv_address *address)
{
        bool is_literal = conn->target.kind == RV_HOSTNAME_LITERAL;

        conn->denial = denial;
        rv_text_copy(conn->refused_name, sizeof(conn->refused_name), name ? name : is_literal ? "" : conn->target.name);
        if (address || is_literal)
                rv_address_print(address ? address : &conn->target.address, conn->refused_address);
        if (conn->state == CONN_LATE) {
                /* What was refused first is noted. This is the request before it, which finds no destination. */
                conn->is_refusal_noted = false;
                deny_answer(conn);
                return;
        }
        if (conn->look == LOOK_HTTP && conn->is_unanswered) {
                deny_note(conn);
                if (conn->run->drain_ms && conn->server_state != SERVER_NONE) {
                        conn->up.is_eof = true;
                        return;
                }
                conn->state = CONN_LATE;
                conn_set_due(conn, DUE_LOOK, CONN_LATE_MS);
                return;
        }
        if (can_be_answered(conn)) {
                deny_answer(conn);
                return;
        }
        if (conn->look != LOOK_FIRST) {
                reset(conn);
                return;
        }
        drop_server(conn);
        conn->state = CONN_REFUSED;
        conn_set_due(conn, DUE_LOOK, CONN_REFUSED_MS);
        if (watch_set(&conn->client, EPOLLIN) < 0)
                conn_end(conn, true);
        else
                deny_read(conn);
}

static void tell(struct conn *conn, bool is_last)
{
        enum rv_protocol protocol = rv_protocol_classify(conn->held.data, conn->held.size, is_last);

        if (protocol == RV_PROTOCOL_MORE)
                return;
        if (protocol == RV_PROTOCOL_HTTP || protocol == RV_PROTOCOL_PRI)
                conn->protocol = "http";
        else if (protocol == RV_PROTOCOL_TLS || protocol == RV_PROTOCOL_SSLV2)
                conn->protocol = "tls";
        if (protocol == RV_PROTOCOL_HTTP)
                deny_answer(conn);
        else
                reset(conn);
}

void deny_read(struct conn *conn)
{
        ssize_t n = recv(conn->client.fd, conn->run->gate->chunk, GATE_CHUNK_BYTES, 0);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        if (conn->state == CONN_ANSWERED) {
                if (n <= 0)
                        conn_end(conn, false);
                return;
        }
        if (n < 0 || (n > 0 && rv_buf_append(&conn->held, conn->run->gate->chunk, (size_t)n) < 0))
                reset(conn);
        else
                tell(conn, n == 0);
}

void deny_on_time(struct conn *conn)
{
        if (conn->state == CONN_REFUSED)
                tell(conn, true);
        else if (conn->state == CONN_LATE && flow_is_empty(&conn->down))
                deny_answer(conn);
        else
                conn_end(conn, conn->state != CONN_ANSWERED);
}
