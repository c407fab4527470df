#include "resolve.h"

#include "base/text.h"

#include "request/domain.h"
#include "run.h"

#include <netdb.h>
#include <string.h>

#define KEPT_MS_MAX 30000u
#define KEPT_MAX 128
#define TRY_MS 1500
#define TRIES 3
#define TICK_MS 250            /* how often time that has passed is noticed, while there are questions */

struct answer {
        struct run *run;               /* NULL: it ended before the answer came */
        struct gate *gate;
        struct link link;
        struct link queries;           /* that wait for it */
        enum { ANSWER_QUEUED, ANSWER_ASKING, ANSWER_ASKED, ANSWER_KNOWN } state;
        uint64_t expires_ms;
        size_t n;
        struct rv_address addresses[RESOLVE_ADDRESSES_MAX];
        char name[RV_DOMAIN_SIZE];
};

/* ---- c-ares on the loop ---- */

struct socket_poll {
        uv_poll_t poll;
        struct gate *gate;
        struct link link;
        ares_socket_t fd;
};

static struct link socket_polls = { &socket_polls, &socket_polls };

static void on_socket(uv_poll_t *poll, int status, int events)
{
        struct socket_poll *s = poll->data;
        bool is_bad = status < 0;

        ares_process_fd(s->gate->resolver, is_bad || events & UV_READABLE ? s->fd : ARES_SOCKET_BAD,
                        is_bad || events & UV_WRITABLE ? s->fd : ARES_SOCKET_BAD);
}

static void free_poll(uv_handle_t *handle)
{
        free(handle->data);
}

/* What c-ares waits for with a socket of its own, which it closes after it has said so. */
static void on_state(void *data, ares_socket_t fd, int is_readable, int is_writable)
{
        struct gate *gate = data;
        struct socket_poll *s = NULL;

        link_each(l, &socket_polls)
                if (container_of(l, struct socket_poll, link)->fd == fd)
                        s = container_of(l, struct socket_poll, link);
        if (!is_readable && !is_writable) {
                if (!s)
                        return;
                link_remove(&s->link);
                uv_close((uv_handle_t *)&s->poll, free_poll);
                return;
        }
        if (!s) {
                s = calloc(1, sizeof(*s));
                if (!s || uv_poll_init(&gate->loop, &s->poll, fd) < 0) {
                        free(s);         /* the question then runs into its time-out */
                        return;
                }
                s->poll.data = s;
                s->gate = gate;
                s->fd = fd;
                link_append(&socket_polls, &s->link);
        }
        (void)uv_poll_start(&s->poll, (is_readable ? UV_READABLE : 0) | (is_writable ? UV_WRITABLE : 0), on_socket);
}

static void on_tick(uv_timer_t *timer)
{
        struct gate *gate = timer->data;

        ares_process_fd(gate->resolver, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
        if (gate->n_queries == 0)
                (void)uv_timer_stop(timer);
}

int resolve_open(struct gate *gate)
{
        char dns_only[] = "b";
        struct ares_options options = { .flags = ARES_FLAG_NOSEARCH | ARES_FLAG_NOALIASES,
                                        .timeout = TRY_MS,
                                        .tries = TRIES,
                                        .lookups = dns_only,
                                        .domains = NULL,
                                        .ndomains = 0,
                                        .sock_state_cb = on_state,
                                        .sock_state_cb_data = gate };

        if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
                return rv_raise(-EIO);
        if (ares_init_options(&gate->resolver, &options,
                    ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS | ARES_OPT_DOMAINS |
                            ARES_OPT_SOCK_STATE_CB) != ARES_SUCCESS)
                return rv_raise(-EIO);
        return 0;
}

int resolve_init(struct gate *gate)
{
        gate->resolver_timer.data = gate;
        return rv_trace(uv_timer_init(&gate->loop, &gate->resolver_timer));
}

void resolve_fini(struct gate *gate)
{
        ares_destroy(gate->resolver);
        ares_library_cleanup();
        uv_close((uv_handle_t *)&gate->resolver_timer, NULL);
}

/* ---- Answers of a run ---- */

void query_init(struct query *query)
{
        link_init(&query->link);
}

void resolve_cancel(struct query *query)
{
        link_remove(&query->link);
}

static void drop_answer(struct answer *answer)
{
        link_remove(&answer->link);
        answer->run->n_answers--;
        free(answer);
}

/* 0 addresses stand for none, too many, and an error. */
static void take_addrinfo(struct answer *answer, const struct ares_addrinfo *info)
{
        uint64_t ttl_ms = KEPT_MS_MAX;

        for (const struct ares_addrinfo_node *node = info ? info->nodes : NULL; node; node = node->ai_next) {
                if (answer->n == RESOLVE_ADDRESSES_MAX ||
                        rv_address_from_sockaddr(node->ai_addr, node->ai_addrlen, &answer->addresses[answer->n], NULL) <
                                0) {
                        answer->n = 0;
                        break;
                }
                answer->n++;
                ttl_ms = RV_MIN(ttl_ms, (uint64_t)RV_MAX(node->ai_ttl, 0) * 1000u);
        }
        answer->expires_ms = gate_now(answer->gate) + ttl_ms;
}

void resolve_on_time(struct run *run)
{
        link_each(l, &run->answers)
        {
                struct answer *answer = container_of(l, struct answer, link);

                if (answer->state != ANSWER_KNOWN)
                        continue;
                while (!link_is_alone(&answer->queries)) {
                        struct query *query = container_of(answer->queries.next, struct query, link);

                        if (!run_take_turn(run))
                                return;
                        link_remove(&query->link);
                        query->done(query, answer->addresses, answer->n);
                }
                if (answer->n == 0)
                        drop_answer(answer);
        }
}

static void ask(struct answer *answer);

static void ask_next(struct run *run)
{
        link_each(l, &run->answers)
        {
                struct answer *answer = container_of(l, struct answer, link);

                if (run->n_asked >= RESOLVE_ASKED_MAX)
                        return;
                if (answer->state != ANSWER_QUEUED)
                        continue;
                ask(answer);
                if (answer->state == ANSWER_KNOWN)
                        run_go_on(run);         /* answered at once: others may wait for it */
        }
}

static void on_answer(void *data, int status, int timeouts, struct ares_addrinfo *info)
{
        struct answer *answer = data;
        struct run *run = answer->run;
        bool is_at_once = answer->state == ANSWER_ASKING;

        answer->gate->n_queries--;
        if (!run) {
                ares_freeaddrinfo(info);
                free(answer);
                return;
        }
        run->n_asked--;
        take_addrinfo(answer, status == ARES_SUCCESS ? info : NULL);
        ares_freeaddrinfo(info);
        answer->state = ANSWER_KNOWN;
        if (is_at_once)
                return;
        run_go_on(run);
        ask_next(run);
}

static void ask(struct answer *answer)
{
        const struct ares_addrinfo_hints hints = { .ai_family = AF_UNSPEC, .ai_flags = ARES_AI_NOSORT };
        struct gate *gate = answer->gate;

        answer->run->n_asked++;
        gate->n_queries++;
        answer->state = ANSWER_ASKING;
        ares_getaddrinfo(gate->resolver, answer->name, NULL, &hints, on_answer, answer);
        if (answer->state == ANSWER_ASKING)
                answer->state = ANSWER_ASKED;
        if (!uv_is_active((uv_handle_t *)&gate->resolver_timer))
                (void)uv_timer_start(&gate->resolver_timer, on_tick, TICK_MS, TICK_MS);
}

/* An answer that is known and holds, or is on its way. Those that are too old go. */
static struct answer *find(struct run *run, const char *name)
{
        uint64_t now = gate_now(run->gate);
        struct answer *found = NULL;

        link_each(l, &run->answers)
        {
                struct answer *answer = container_of(l, struct answer, link);

                bool is_old = answer->state == ANSWER_KNOWN && (answer->expires_ms <= now || run->n_answers > KEPT_MAX);

                if (!is_old && strcmp(answer->name, name) == 0)
                        found = answer;
                else if (is_old && link_is_alone(&answer->queries))
                        drop_answer(answer);
        }
        return found;
}

int resolve_start(struct run *run, const char *name, struct query *query,
        void (*done)(struct query *query, const struct rv_address *addresses, size_t n),
        const struct rv_address **ret_addresses, size_t *ret_n)
{
        struct answer *answer = find(run, name);

        if (!answer) {
                answer = calloc(1, sizeof(*answer));
                if (!answer)
                        return rv_raise(-ENOMEM);
                answer->run = run;
                answer->gate = run->gate;
                link_init(&answer->queries);
                rv_text_copy(answer->name, sizeof(answer->name), name);
                link_append(&run->answers, &answer->link);
                run->n_answers++;
                if (run->n_asked < RESOLVE_ASKED_MAX)
                        ask(answer);
        }
        if (answer->state == ANSWER_KNOWN) {
                *ret_addresses = answer->addresses;
                *ret_n = answer->n;
                return 0;
        }
        query->done = done;
        link_append(&answer->queries, &query->link);
        return RESOLVE_E_LATER;
}

void resolve_close(struct run *run)
{
        link_each(l, &run->answers)
        {
                struct answer *answer = container_of(l, struct answer, link);

                if (answer->state != ANSWER_ASKED) {
                        drop_answer(answer);
                        continue;
                }
                link_remove(&answer->link);
                answer->run = NULL;
        }
}
