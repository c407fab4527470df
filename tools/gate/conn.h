/*
 * conn.h - one connection of a run
 *
 *     listen.c accepts -> conn_new: its destination is judged -> first bytes: which protocol, which name -> dial.c
 *     -> both ways (relay.c), HTTP request by request -> conn_end
 *
 * The destination is the name that the client's synthetic address was given for, else the address itself; SNI and
 * every Host have to be allowed besides, and do not change where it goes. Nothing is dialled before the name is judged,
 * and no byte of the client's goes out before it is. On ports 80 and 443 the client speaks first. On others the
 * destination is dialled, by its own name, when the client has been silent for a moment, and whoever speaks first
 * decides: bytes of the server mean that nothing is looked at.
 *
 * A refusal is answered by HTTP where the client speaks it, which may have to be found out first (CONN_REFUSED), else
 * by a reset. A connection ends by conn_end(), anywhere: it is then dead, and released by run_reap(). One thread.
 */
#pragma once

#include "egress/classify.h"
#include "egress/clienthello.h"
#include "egress/http1.h"
#include "flow.h"
#include "resolve.h"
#include "run.h"

#define CONN_SILENT_MS 10          /* then the server may be one that speaks first */
#define CONN_HELLO_MS 10000        /* for all of a ClientHello, or the head of the first request */
#define CONN_REFUSED_MS 20         /* to find out whether a refused client speaks HTTP */
#define CONN_LATE_MS 30            /* for the answer to a request before the one that is refused */
#define CONN_LINGER_MS 1000        /* for a refused client to read the answer */
#define CONN_RESOLVE_MS 5000
#define CONN_TAKEN_MS 5            /* until it is asked again whether a server has taken the last of a run that ended */
#define CONN_ADDRESSES_MAX 16      /* of a name, that are tried */

enum conn_look {
        LOOK_FIRST,                /* which protocol? `held` has what came */
        LOOK_HELLO,                /* TLS: the ClientHello is not whole */
        LOOK_HTTP,                 /* every request is judged */
        LOOK_NOTHING,              /* bytes pass as they come */
};

enum conn_server { SERVER_NONE, SERVER_RESOLVING, SERVER_DIALLING, SERVER_ASKING /* a proxy */, SERVER_UP };

enum conn_state {
        CONN_OPEN,
        CONN_REFUSED,              /* waits for first bytes, which decide how it is told */
        CONN_LATE,                 /* refused; earlier requests are being answered */
        CONN_ANSWERED,             /* refused; it may read why */
        CONN_DEAD,
};

enum conn_due { DUE_LOOK, DUE_SERVER, DUE_IDLE, DUE_TAKEN, DUE_MAX_ };

struct conn {
        struct run *run;
        struct link link;
        struct watch client, server;
        struct flow up, down;
        enum conn_look look;
        enum conn_server server_state;
        enum conn_state state;
        enum rv_denial denial;                 /* from CONN_REFUSED on */
        char refused_name[RV_NAME_TEXT_SIZE], refused_address[RV_ADDRESS_TEXT_SIZE];
        bool is_refusal_noted;
        bool is_over_limit;                    /* refused for `limits.connections`: it counts as refused, not as open */

        struct rv_hostname target;             /* where it goes: DOMAIN, or LITERAL with `address` */
        const char *name;                      /* the map's own copy of target's name; NULL: LITERAL */
        uint16_t port;
        const char *protocol;                  /* "tls", "http", "tcp"; NULL: not known */

        struct rv_buf held;                    /* client's bytes that are not judged */
        struct rv_hello hello;
        struct rv_http1 http;
        bool is_unanswered;                    /* HTTP: no byte of the server's since the last request went out */
        bool is_reset;                         /* the server's end was a reset */
        bool is_drained;                       /* it knows that its client is dead: conn_on_time() */

        struct query query;
        struct rv_address addresses[CONN_ADDRESSES_MAX];
        size_t n_addresses, n_tried;
        bool is_by_proxy;
        struct rv_contact *contact;
        bool is_contact_noted;
        uint64_t bytes_out, bytes_in;          /* before the contact is noted */

        uint64_t due_ms[DUE_MAX_];             /* 0: not */
        uint64_t last_ms;                      /* of a byte */
};

/** conn_new() - a client was accepted; @refused for this reason, if for one. Context: the loop. Ownership: takes @fd. Return: none; without memory the client sees a reset */
void conn_new(struct run *run, int fd, enum rv_denial refused);
/** conn_end() - it is over; @is_reset: both peers see a reset, else the end of what was sent. Context: the loop. Ownership: memory stays until run_reap(). Return: none */
void conn_end(struct conn *conn, bool is_reset);
/** conn_free() - Context: run_reap(). Ownership: takes a dead one. Return: none */
void conn_free(struct conn *conn);
/** conn_on_time() - whatever is due; in a run that drains, what the client had sent goes out, then it ends. Context: a turn. Ownership: may end some. Return: none */
void conn_on_time(struct run *run, uint64_t now_ms);
/** conn_set_due() - @after_ms from now; 0: never. Context: the loop. Ownership: none. Return: none */
void conn_set_due(struct conn *conn, enum conn_due what, uint64_t after_ms);
/** conn_touch() - a byte passed. Context: the loop. Ownership: none. Return: none */
void conn_touch(struct conn *conn);
/** conn_is_web() - a port where the client has to speak first, TLS or HTTP. Context: any. Ownership: none. Return: as named */
static inline bool conn_is_web(const struct conn *conn)
{
        return conn->port == 80 || conn->port == 443;
}
/** conn_step() - go on in both directions, and wait for the rest. Context: the loop. Ownership: may end it. Return: none */
void conn_step(struct conn *conn);
/** conn_server_ready() - the same, with what there is at the server's end. Context: the loop. Ownership: may end it. Return: none */
void conn_server_ready(struct conn *conn, uint32_t events);

/* ---- look.c ---- */
/** look_read() - read of the client once and judge. Context: `up` is empty, look is not LOOK_NOTHING. Ownership: may end it. Return: was there something? */
bool look_read(struct conn *conn);
/** look_on_time() - the time for first bytes or a hello is over. Context: the loop. Ownership: may end it. Return: none */
void look_on_time(struct conn *conn);
/** look_pass() - nothing is looked at from here on; @protocol static text. Context: the loop. Ownership: may end it. Return: none */
void look_pass(struct conn *conn, const char *protocol);

/* ---- dial.c ---- */
/** dial_start() - unless it is under way, dial the destination. Context: the name is judged. Ownership: may end it. Return: none */
void dial_start(struct conn *conn);
/** dial_on_time() - what was waited for did not come. Context: the loop. Ownership: may end it. Return: none */
void dial_on_time(struct conn *conn);
/** dial_judge() - may it go to this address? @is_named: the operator named the host. Context: any. Ownership: borrows. Return: why not */
enum rv_denial dial_judge(const struct conn *conn, const struct rv_address *address, bool is_named);
/** dial_note() - put the contact into the evidence, if there is one and it is known what it is, or @is_over. Context: the loop. Ownership: none. Return: none */
void dial_note(struct conn *conn, bool is_over);
/** dial_count() - bytes that passed. Context: the loop. Ownership: may end it (limits.bytes). Return: none */
void dial_count(struct conn *conn, uint64_t out, uint64_t in);

/* ---- deny.c ---- */
/**
 * deny() - it is refused: say so to the client and in the evidence
 * @name:    what was refused, fit to be shown; NULL: the target
 * @address: that was dialled, or would have been; NULL: the target's if that is one
 *
 * Context:   the loop
 * Ownership: may end it
 * Return:    none
 */
void deny(struct conn *conn, enum rv_denial denial, const char *name, const struct rv_address *address);
/** deny_note() - put the refusal into the evidence, once. Context: the loop. Ownership: none. Return: none */
void deny_note(struct conn *conn);
/** deny_answer() - tell an HTTP client now. Context: `denial` is set. Ownership: may end it. Return: none */
void deny_answer(struct conn *conn);
/** deny_read() - first bytes of a client that is refused, or what it sends after. Context: the loop. Ownership: may end it. Return: none */
void deny_read(struct conn *conn);
/** deny_on_time() - it was waited long enough. Context: the loop. Ownership: may end it. Return: none */
void deny_on_time(struct conn *conn);
