/*
 * The loop's end of the channel to the gate: what it asks, what it takes for an answer, and what becomes of runs when
 * the gate ends, does not answer, or says what is no answer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "egress/gate_client.h"
#include "loop/loop.h"
#include "test_gate_fake.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RULES "{\"mode\":\"any\"}"
#define END_MS 5000

struct bench {
        struct rv_loop loop;
        struct rv_gate_client *client;
        struct fake_gate gate;
        struct rv_host_timer *end;
        char heard[512];                 /* each event: "served", "refused: text", "lost: text", "report N+N" */
        const char *logged;
        uint64_t id;
        unsigned n_expected;             /* events after which the loop ends */
        bool removes_when_served, hangs_up_at_last;
};

static void on_late(void *arg)
{
        rv_loop_stop(&((struct bench *)arg)->loop);
}

static void on_log(void *ctx, enum rv_log_level level, const char *text)
{
        struct rv_loop *loop = ctx;
        struct bench *b = (struct bench *)loop;

        (void)level;
        b->logged = text[0] ? "something" : NULL;
}

static int bench_make(void **state)
{
        struct bench *b = calloc(1, sizeof(*b));
        int fd;

        assert_int_equal(rv_loop_init(&b->loop), 0);
        b->loop.host.log = on_log;
        assert_int_equal(rv_gate_client_new(&b->loop.host, &b->client), 0);
        fake_gate_open(&b->gate, &b->loop.host, &fd);
        rv_gate_client_serve(b->client, fd);
        *state = b;
        return 0;
}

static int bench_remove(void **state)
{
        struct bench *b = *state;

        rv_gate_client_free(b->client);
        fake_gate_close(&b->gate);
        rv_loop_fini(&b->loop);
        free(b);
        return 0;
}

static void hear(struct bench *b, const char *what, const char *more)
{
        size_t n = strlen(b->heard);

        snprintf(b->heard + n, sizeof(b->heard) - n, "%s%s%s", n ? ", " : "", what, more);
        if (b->n_expected && --b->n_expected == 0)
                rv_loop_stop(&b->loop);
}

static void on_event(void *arg, const struct rv_gate_event *event)
{
        struct bench *b = arg;
        char text[64];

        switch (event->kind) {
        case RV_GATE_EVENT_SERVED:
                if (b->removes_when_served)
                        rv_gate_client_remove(b->client, b->id, 100);
                hear(b, "served", "");
                break;
        case RV_GATE_EVENT_REFUSED:
                hear(b, "refused: ", event->text);
                break;
        case RV_GATE_EVENT_LOST:
                hear(b, "lost: ", event->text);
                break;
        case RV_GATE_EVENT_REPORT:
                snprintf(text, sizeof(text), "%zu+%llu %zu+%llu", json_array_size(event->evidence->contacts),
                        (unsigned long long)event->evidence->n_more_contacts, json_array_size(event->evidence->denials),
                        (unsigned long long)event->evidence->n_more_denials);
                if (b->hangs_up_at_last)
                        rv_gate_client_hang_up(b->client);
                hear(b, "report ", text);
                break;
        }
}

static void add(struct bench *b)
{
        const int fds[4] = { STDIN_FILENO, STDIN_FILENO, STDIN_FILENO, STDIN_FILENO };

        assert_int_equal(rv_gate_client_add(b->client, RULES, strlen(RULES), fds, 4, on_event, b, &b->id), 0);
}

/* Until so many events came, or the end of patience. */
static void run_until(struct bench *b, unsigned n_events)
{
        b->n_expected = n_events;
        assert_int_equal(b->loop.host.timer_start(b->loop.host.ctx, END_MS, on_late, b, &b->end), 0);
        rv_loop_run(&b->loop);
        b->loop.host.timer_stop(b->loop.host.ctx, b->end);
}

static void expect_heard(const struct bench *b, const char *name, const char *expected)
{
        if (strcmp(b->heard, expected) != 0)
                fail_msg("%s: heard \"%s\", not \"%s\"", name, b->heard, expected);
}

static void a_run(void **state)
{
        struct bench *b = *state;

        b->removes_when_served = true;
        add(b);
        run_until(b, 2);
        expect_heard(b, "a run", "served, report 1+0 1+4");
        assert_string_equal(b->gate.rules, RULES);
        assert_int_equal(b->gate.seals, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
        assert_int_equal(b->gate.n_fds, 5);
        assert_int_equal(b->gate.n_adds, 1);
        assert_int_equal(b->gate.n_removes, 1);
}

static const struct {
        const char *name;
        enum fake_gate_mood at_add, at_remove;
        const char *report;
        const char *heard;
} ends[] = {
        { "refused", FAKE_GATE_REFUSES, FAKE_GATE_GOOD, NULL, "refused: it does not like?the rules" },
        { "gone in place of READY", FAKE_GATE_HANGS_UP, FAKE_GATE_GOOD, NULL, "lost: the gate ended unexpectedly" },
        { "no answer at all, to ADD", FAKE_GATE_TALKS, FAKE_GATE_GOOD, NULL, "lost: the gate said something that is no answer" },
        { "REMOVE is refused", FAKE_GATE_GOOD, FAKE_GATE_REFUSES, NULL, "served, lost: it does not like?the rules" },
        { "gone in place of REPORT", FAKE_GATE_GOOD, FAKE_GATE_HANGS_UP, NULL, "served, lost: the gate ended unexpectedly" },
        { "no answer at all, to REMOVE", FAKE_GATE_GOOD, FAKE_GATE_TALKS, NULL, "served, lost: the gate said something that is no answer" },
        { "no report in time", FAKE_GATE_GOOD, FAKE_GATE_MUTE, NULL, "served, lost: the gate does not answer" },
        { "an empty report", FAKE_GATE_GOOD, FAKE_GATE_GOOD, "{\"contacts\":[],\"denials\":[],\"more_contacts\":0,\"more_denials\":0}", "served, report 0+0 0+0" },
        { "a report of another kind", FAKE_GATE_GOOD, FAKE_GATE_GOOD, "[]", "served, lost: the gate's report cannot be used: evidence: has other members than it has to have" },
};

static void every_end(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(ends); i++) {
                struct bench *b;

                bench_make(state);
                b = *state;
                b->removes_when_served = true;
                b->gate.at_add = ends[i].at_add;
                b->gate.at_remove = ends[i].at_remove;
                b->gate.report = ends[i].report;
                add(b);
                run_until(b, strncmp(ends[i].heard, "served", 6) == 0 ? 2 : 1);
                expect_heard(b, ends[i].name, ends[i].heard);
                bench_remove(state);
        }
}

/* What a gate that was taken over could say, without being asked. */
static const struct {
        const char *name;
        uint32_t kind;
        uint64_t id;                     /* 1 is the run's */
        bool is_served, has_fd;
        const char *heard;
} said[] = {
        { "READY twice", RV_GATE_READY, 1, true, false, "lost: the gate said something that is no answer" },
        { "REPORT before REMOVE", RV_GATE_REPORT, 1, true, true, "lost: the gate said something that is no answer" },
        { "REPORT before READY", RV_GATE_REPORT, 1, false, true, "lost: the gate said something that is no answer" },
        { "the loop's own kind", RV_GATE_ADD, 1, true, false, "lost: the gate said something that is no answer" },
        { "a kind that is none", 6, 1, true, false, "lost: the gate said something that is no answer" },
        { "no kind", 0, 1, true, false, "lost: the gate said something that is no answer" },
        { "a run of the future", RV_GATE_READY, 2, true, false, "lost: the gate said something that is no answer" },
        { "no run", RV_GATE_READY, 0, true, false, "lost: the gate said something that is no answer" },
        { "served no more", RV_GATE_REFUSED, 1, true, false, "refused: no reason was given" },
};

static void what_is_no_answer(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(said); i++) {
                const struct rv_gate_message m = { .kind = said[i].kind, .id = said[i].id };
                struct bench *b;

                bench_make(state);
                b = *state;
                b->gate.at_add = said[i].is_served ? FAKE_GATE_GOOD : FAKE_GATE_MUTE;
                add(b);
                if (said[i].is_served)
                        run_until(b, 1);
                b->heard[0] = 0;
                fake_gate_send(&b->gate, &m, sizeof(m), said[i].has_fd ? STDIN_FILENO : -1);
                run_until(b, 1);
                expect_heard(b, said[i].name, said[i].heard);
                bench_remove(state);
        }
}

/* What holds the report is looked at before it is read. */
static void a_report_that_is_no_file(void **state)
{
        struct bench *b = *state;
        struct rv_gate_message m = { .kind = RV_GATE_REPORT, .id = 1 };
        int pipe_fds[2];

        assert_int_equal(pipe(pipe_fds), 0);
        b->gate.at_remove = FAKE_GATE_MUTE;
        add(b);
        run_until(b, 1);
        rv_gate_client_remove(b->client, b->id, END_MS);
        fake_gate_send(&b->gate, &m, sizeof(m), pipe_fds[0]);
        run_until(b, 1);
        expect_heard(b, "a pipe", "served, lost: the gate's report cannot be used: it is no file");
        add(b);
        run_until(b, 1);
        rv_gate_client_remove(b->client, b->id, END_MS);
        m.id = 2;
        fake_gate_send(&b->gate, &m, sizeof(m), -1);
        run_until(b, 1);
        assert_non_null(strstr(b->heard, "served, lost: the gate's report cannot be used: it is no file, served, lost: the gate's report cannot be used: it is no file"));
        close(pipe_fds[0]);
        close(pipe_fds[1]);
}

static void the_spawner_knows_why(void **state)
{
        struct bench *b = *state;

        add(b);
        run_until(b, 1);
        fake_gate_close(&b->gate);
        /* Which of the two is seen first is chance. */
        rv_gate_client_lose(b->client, "the gate was ended by signal 9");
        expect_heard(b, "told", "served, lost: the gate was ended by signal 9");
        assert_string_equal(rv_gate_client_lost_text(b->client), "the gate was ended by signal 9");
        assert_null(b->logged);
        rv_gate_client_lose(b->client, "and again");
        assert_string_equal(b->logged, "something");
}

static void nobody_there(void **state)
{
        struct bench *b = *state;
        uint64_t id = 77;
        int fd;

        fake_gate_close(&b->gate);
        rv_gate_client_lose(b->client, "the gate ended with status 1");
        assert_int_equal(rv_gate_client_add(b->client, RULES, strlen(RULES), NULL, 0, on_event, b, &id), -EPIPE);
        assert_int_equal(id, 77);
        fake_gate_open(&b->gate, &b->loop.host, &fd);
        rv_gate_client_serve(b->client, fd);
        assert_string_equal(rv_gate_client_lost_text(b->client), "");
        b->removes_when_served = true;
        add(b);
        run_until(b, 2);
        expect_heard(b, "the next gate", "served, report 1+0 1+4");
}

/* Whoever asks between the gate's end and the word on it is told why, as if it had asked before. */
static void asked_when_it_has_just_ended(void **state)
{
        struct bench *b = *state;
        struct rv_host_timer *soon;

        fake_gate_close(&b->gate);
        add(b);
        assert_int_equal(b->loop.host.timer_start(b->loop.host.ctx, 50, on_late, b, &soon), 0);
        rv_loop_run(&b->loop);
        b->loop.host.timer_stop(b->loop.host.ctx, soon);
        add(b);
        expect_heard(b, "before the word", "");
        rv_gate_client_lose(b->client, "the gate cannot be executed");
        expect_heard(b, "told", "lost: the gate cannot be executed, lost: the gate cannot be executed");
        assert_int_equal(rv_gate_client_add(b->client, RULES, strlen(RULES), NULL, 0, on_event, b, &b->id), -EPIPE);
}

static void forgotten(void **state)
{
        struct bench *b = *state;

        add(b);
        rv_gate_client_forget(b->client, b->id);
        rv_gate_client_forget(b->client, b->id);
        add(b);
        run_until(b, 1);
        expect_heard(b, "one forgotten, one not", "served");
        assert_int_equal(b->gate.n_adds, 2);
        assert_int_equal(b->gate.n_removes, 1);
}

/* What is waited for is longer than what the gate may take. */
static void how_long_a_run_drains(void **state)
{
        static const struct {
                uint64_t ms;
                uint32_t drain_ms;
        } rows[] = { { UINT64_MAX, 1000 }, { 2001, 1000 }, { 2000, 1000 }, { 800, 400 } };
        struct bench *b = *state;

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                b->gate.drain_ms = 7;
                add(b);
                run_until(b, 1);
                rv_gate_client_remove(b->client, b->id, rows[i].ms);
                run_until(b, 1);
                assert_int_equal(b->gate.drain_ms, rows[i].drain_ms);
        }
        add(b);
        run_until(b, 1);
        b->gate.drain_ms = 7;
        rv_gate_client_forget(b->client, b->id);
        add(b);
        run_until(b, 1);
        assert_int_equal(b->gate.drain_ms, 0);
}

static void removed_before_it_was_served(void **state)
{
        struct bench *b = *state;

        add(b);
        rv_gate_client_remove(b->client, b->id, END_MS);
        rv_gate_client_remove(b->client, b->id, END_MS);
        run_until(b, 1);
        expect_heard(b, "READY is nobody's", "report 1+0 1+4");
        b->heard[0] = 0;
        b->gate.at_add = b->gate.at_remove = FAKE_GATE_REFUSES;
        add(b);
        rv_gate_client_remove(b->client, b->id, END_MS);
        run_until(b, 1);
        expect_heard(b, "both refused", "lost: it does not like?the rules");
        assert_int_equal(b->gate.n_removes, 2);
}

/* From the very callback that brings the last word. */
static void hung_up(void **state)
{
        struct bench *b = *state;

        b->removes_when_served = b->hangs_up_at_last = true;
        add(b);
        run_until(b, 2);
        expect_heard(b, "hung up", "served, report 1+0 1+4");
        rv_gate_client_lose(b->client, "the gate ended with status 0");
        assert_null(b->logged);
        for (int i = 0; i < 100 && b->gate.fd >= 0; i++)
                rv_loop_run(&b->loop);
        assert_true(b->gate.fd < 0);
}

static void too_much(void **state)
{
        struct bench *b = *state;
        const int fds[5] = { STDIN_FILENO, STDIN_FILENO, STDIN_FILENO, STDIN_FILENO, STDIN_FILENO };
        uint64_t id = 77;

        assert_int_equal(rv_gate_client_add(b->client, RULES, strlen(RULES), fds, 5, on_event, b, &id), -E2BIG);
        assert_int_equal(
                rv_gate_client_add(b->client, RULES, RV_GATE_RULES_BYTES_MAX + 1, fds, 4, on_event, b, &id), -E2BIG);
        assert_int_equal(id, 77);
}

#define ON_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_make, bench_remove)

int main(void)
{
        const struct CMUnitTest tests[] = {
                ON_BENCH(a_run),
                cmocka_unit_test(every_end),
                cmocka_unit_test(what_is_no_answer),
                ON_BENCH(a_report_that_is_no_file),
                ON_BENCH(the_spawner_knows_why),
                ON_BENCH(nobody_there),
                ON_BENCH(asked_when_it_has_just_ended),
                ON_BENCH(forgotten),
                ON_BENCH(how_long_a_run_drains),
                ON_BENCH(removed_before_it_was_served),
                ON_BENCH(hung_up), ON_BENCH(too_much),
        };

        alarm(50);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
