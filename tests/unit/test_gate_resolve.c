/*
 * The gate's questions to the resolver, whose library is made up here: it answers whenever it likes, in the middle of
 * another question too.
 */
#include "resolve.h"
#include "run.h"

#include "test_privilege.h"

#include <netinet/in.h>

#define NAMES 40

static struct {
        ares_addrinfo_callback done;
        void *arg;
} asked[NAMES];
static size_t n_asked, n_turns;
static bool is_answered_at_once, is_everything_ended;
static struct gate gate;
static struct run run;

static void answer_one(size_t i, bool is_found)
{
        struct ares_addrinfo *info = NULL;
        ares_addrinfo_callback done = asked[i].done;

        if (is_found) {
                static struct sockaddr_in to = { .sin_family = AF_INET };

                info = calloc(1, sizeof(*info));
                info->nodes = calloc(1, sizeof(*info->nodes));
                *info->nodes = (struct ares_addrinfo_node){ .ai_ttl = 60, .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&to, .ai_addrlen = sizeof(to) };
        }
        asked[i].done = NULL;
        done(asked[i].arg, is_found ? ARES_SUCCESS : ARES_ECONNREFUSED, 0, info);
}

void ares_getaddrinfo(ares_channel channel, const char *node, const char *service,
        const struct ares_addrinfo_hints *hints, ares_addrinfo_callback done, void *arg)
{
        (void)channel, (void)node, (void)service, (void)hints;
        asked[n_asked].done = done;
        asked[n_asked++].arg = arg;
        if (is_answered_at_once)
                answer_one(n_asked - 1, true);
        for (size_t i = 0; i < n_asked && is_everything_ended; i++)
                if (asked[i].done)
                        answer_one(i, false);
}

void ares_freeaddrinfo(struct ares_addrinfo *info)
{
        if (info)
                free(info->nodes);
        free(info);
}

int ares_library_init(int flags)
{
        return flags ? ARES_SUCCESS : ARES_ENOTINITIALIZED;
}

void ares_library_cleanup(void)
{
}

/* Versions differ in whether the options are const. */
int made_up_init(void) __asm__("ares_init_options");

int made_up_init(void)
{
        return ARES_SUCCESS;
}

void ares_destroy(ares_channel channel)
{
        (void)channel;
}

void ares_process_fd(ares_channel channel, ares_socket_t in, ares_socket_t out)
{
        (void)channel, (void)in, (void)out;
}

void run_go_on(struct run *r)
{
        assert_ptr_equal(r, &run);
        n_turns++;
}

bool run_take_turn(struct run *r)
{
        assert_ptr_equal(r, &run);
        return true;
}

/* Who asks, and what it was told. */
static struct client {
        struct query query;
        size_t n_told, n_addresses;
} clients[NAMES];

static void told(struct query *query, const struct rv_address *addresses, size_t n)
{
        struct client *c = container_of(query, struct client, query);

        (void)addresses;
        c->n_told++;
        c->n_addresses = n;
}

static int setup(void **state)
{
        (void)state;
        memset(&gate, 0, sizeof(gate));
        memset(&run, 0, sizeof(run));
        memset(clients, 0, sizeof(clients));
        n_asked = n_turns = 0;
        is_answered_at_once = is_everything_ended = false;
        run.gate = &gate;
        link_init(&run.answers);
        for (size_t i = 0; i < NAMES; i++)
                query_init(&clients[i].query);
        return uv_loop_init(&gate.loop) == 0 && resolve_init(&gate) == 0 ? 0 : -1;
}

static int teardown(void **state)
{
        (void)state;
        resolve_close(&run);
        assert_int_equal(run.n_answers, 0);
        uv_close((uv_handle_t *)&gate.resolver_timer, NULL);
        (void)uv_run(&gate.loop, UV_RUN_DEFAULT);
        return uv_loop_close(&gate.loop);
}

static int ask_for(size_t i, size_t *ret_n)
{
        const struct rv_address *addresses;
        char name[32];

        snprintf(name, sizeof(name), "n%zu.example", i);
        return resolve_start(&run, name, &clients[i].query, told, &addresses, ret_n);
}

static void an_answer_later(void **state)
{
        size_t n = 77;

        (void)state;
        assert_int_equal(ask_for(0, &n), RESOLVE_E_LATER);
        assert_int_equal(clients[0].n_told, 0);
        answer_one(0, true);
        assert_int_equal(clients[0].n_told, 0);
        assert_true(n_turns > 0);
        resolve_on_time(&run);
        assert_int_equal(clients[0].n_told, 1);
        assert_int_equal(clients[0].n_addresses, 1);
        assert_int_equal(ask_for(0, &n), 0);
        assert_int_equal(n, 1);
        assert_int_equal(n_asked, 1);
}

static void an_answer_at_once(void **state)
{
        size_t n = 77;

        (void)state;
        is_answered_at_once = true;
        assert_int_equal(ask_for(0, &n), 0);
        assert_int_equal(n, 1);
        resolve_on_time(&run);
        assert_int_equal(clients[0].n_told, 0);
}

/* Whoever asks goes through a list of connections: that another one of them ends meanwhile must not be. */
static void the_end_of_others(void **state)
{
        size_t n = 77;

        (void)state;
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(ask_for(i, &n), RESOLVE_E_LATER);
        is_everything_ended = true;
        assert_int_equal(ask_for(3, &n), 0);
        assert_int_equal(n, 0);
        for (size_t i = 0; i < 3; i++)
                assert_int_equal(clients[i].n_told, 0);
        assert_true(n_turns > 0);
        resolve_cancel(&clients[1].query);
        resolve_on_time(&run);
        for (size_t i = 0; i < 4; i++)
                assert_int_equal(clients[i].n_told, i == 0 || i == 2);
        /* A failure is not kept. */
        assert_int_equal(run.n_answers, 0);
        assert_int_equal(run.n_asked, 0);
        assert_int_equal(gate.n_queries, 0);
}

/* Those that were not asked yet, as too many were, come next. */
static void the_end_of_more_than_are_asked(void **state)
{
        size_t n = 77;

        (void)state;
        for (size_t i = 0; i < NAMES; i++)
                assert_int_equal(ask_for(i, &n), RESOLVE_E_LATER);
        assert_int_equal(n_asked, RESOLVE_ASKED_MAX);
        is_everything_ended = true;
        answer_one(0, false);
        for (int i = 0; i < 3; i++)
                resolve_on_time(&run);
        for (size_t i = 0; i < NAMES; i++)
                assert_int_equal(clients[i].n_told, 1);
        assert_int_equal(n_asked, NAMES);
        assert_int_equal(run.n_answers, 0);
        assert_int_equal(run.n_asked, 0);
}

#define WITH_RUN(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
        const struct CMUnitTest tests[] = {
                WITH_RUN(an_answer_later),
                WITH_RUN(an_answer_at_once),
                WITH_RUN(the_end_of_others),
                WITH_RUN(the_end_of_more_than_are_asked),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
