/* The fake backend on a host made by hand: the order of its calls, what waits for go(), how it stops and releases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake/fake.h"

/* A host whose time stands still until a test lets it pass: at most one timer is ever asked for. */
struct rv_host_timer {
        uint64_t ms;
        void (*cb)(void *arg);
        void *arg;
        bool is_set;
};

static struct rv_host_timer the_timer;
static bool has_no_timers;
static char told[1024];
static void *fake_state, *handle;
static bool stop_in_output, release_in_observe;

static void tell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void tell(const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(told + strlen(told), sizeof(told) - strlen(told), fmt, ap);
        va_end(ap);
}

static int timer_start(void *ctx, uint64_t ms, void (*cb)(void *arg), void *arg, struct rv_host_timer **ret)
{
        if (has_no_timers)
                return -12;
        assert_false(the_timer.is_set);
        the_timer = (struct rv_host_timer){ ms, cb, arg, true };
        *ret = &the_timer;
        return 0;
}

static void timer_stop(void *ctx, struct rv_host_timer *timer)
{
        if (timer)
                timer->is_set = false;
}

static void on_output(void *ctx, struct rv_run *run, enum rv_stream stream, const void *data, size_t n)
{
        tell("output %d %.*s; ", stream, (int)n, (const char *)data);
        if (stop_in_output)
                rv_fake_backend.stop(fake_state, handle, RV_STOP_CANCELLED);
}

static void on_held(void *ctx, struct rv_run *run)
{
        tell("held; ");
}

static void on_started(void *ctx, struct rv_run *run, uint64_t boot_us)
{
        assert_true(boot_us > 0);
        tell("started; ");
}

static void on_ended(void *ctx, struct rv_run *run)
{
        tell("ended; ");
}

static void on_observe(void *ctx, struct rv_run *run, const struct rv_observation *o)
{
        char text[64] = "";

        assert_int_equal(o->struct_size, sizeof(*o));
        if (o->result_fd >= 0) {
                assert_true(pread(o->result_fd, text, sizeof(text) - 1, 0) >= 0);
                close(o->result_fd);
        }
        tell("observe %d%s; ", o->wait_status, text);
        if (release_in_observe)
                rv_fake_backend.release(fake_state, handle);
}

static void on_released(void *ctx, struct rv_run *run, int is_clean)
{
        tell("released %d; ", is_clean);
}

static const struct rv_host host = {
        .struct_size = sizeof(host),
        .timer_start = timer_start,
        .timer_stop = timer_stop,
        .output = on_output,
        .held = on_held,
        .started = on_started,
        .ended = on_ended,
        .observe = on_observe,
        .released = on_released,
};

static int set_up(void **state)
{
        has_no_timers = stop_in_output = release_in_observe = false;
        the_timer.is_set = false;
        told[0] = 0;
        return rv_fake_backend.configure(&host, &fake_state);
}

static int tear_down(void **state)
{
        assert_false(the_timer.is_set);
        rv_fake_backend.fini(fake_state);
        return 0;
}

static const struct rv_plan plan = { .struct_size = sizeof(plan) };

static void begin(const struct rv_fake_script *script)
{
        rv_fake_play(fake_state, script);
        assert_int_equal(rv_fake_backend.start(fake_state, &plan, NULL, &handle), 0);
}

/* Lets the time of the one timer pass; the milliseconds it was asked for. */
static int pass(void)
{
        struct rv_host_timer timer = the_timer;

        if (!timer.is_set)
                return -1;
        the_timer.is_set = false;
        timer.cb(timer.arg);
        return (int)timer.ms;
}

static const struct rv_observation zero = { .started = RV_STARTED_YES, .has_wait_status = 1 };
static const struct rv_observation nine = { .started = RV_STARTED_YES, .has_wait_status = 1, .wait_status = 9 };

static void steps_in_their_time(void **state)
{
        static const struct rv_fake_step steps[] = {
                { .kind = RV_FAKE_HELD, .after_ms = 5 }, { .kind = RV_FAKE_STARTED, .after_ms = 7 },
                { .kind = RV_FAKE_OUTPUT, .stream = RV_STREAM_STDERR, .data = "ab", .n_bytes = 2, .n_times = 2, .after_ms = RV_FAKE_AT_ONCE },
                { .kind = RV_FAKE_ENDED, .after_ms = 9 }, { .kind = RV_FAKE_OBSERVE, .seen = &zero, .result = " {}", .after_ms = 0 },
        };
        const struct rv_fake_script script = { .steps = steps, .n_steps = 5, .release_ms = 11 };

        begin(&script);
        assert_string_equal(told, "");
        assert_int_equal(pass(), 5);
        assert_string_equal(told, "held; ");
        assert_false(the_timer.is_set);                 /* waits for go() */
        rv_fake_backend.go(fake_state, handle);
        assert_string_equal(told, "held; ");
        assert_int_equal(pass(), 7);
        assert_string_equal(told, "held; started; output 1 ab; output 1 ab; ");
        assert_int_equal(pass(), 9);
        assert_int_equal(pass(), 0);
        assert_string_equal(strstr(told, "ended"), "ended; observe 0 {}; ");
        rv_fake_backend.release(fake_state, handle);
        assert_null(strstr(told, "released"));
        assert_int_equal(pass(), 11);
        assert_non_null(strstr(told, "released 1; "));
        assert_null(rv_fake_calls(fake_state)->broken_rule);
        assert_int_equal(rv_fake_calls(fake_state)->n_goes, 1);
}

static void all_at_once(void **state)
{
        static const struct rv_fake_step steps[] = {
                { .kind = RV_FAKE_HELD, .after_ms = RV_FAKE_AT_ONCE },
                { .kind = RV_FAKE_STARTED, .after_ms = RV_FAKE_AT_ONCE },
                { .kind = RV_FAKE_OBSERVE, .seen = &nine, .after_ms = RV_FAKE_AT_ONCE },
        };
        const struct rv_fake_script script = {
                .steps = steps, .n_steps = 3, .release_ms = RV_FAKE_AT_ONCE, .is_unclean = 1
        };

        begin(&script);
        assert_string_equal(told, "held; ");
        release_in_observe = true;
        rv_fake_backend.go(fake_state, handle);
        assert_string_equal(told, "held; started; observe 9; released 0; ");
}

static void without_timers_it_is_at_once(void **state)
{
        static const struct rv_fake_step steps[] = { { .kind = RV_FAKE_HELD, .after_ms = 5 },
                { .kind = RV_FAKE_OBSERVE, .seen = &nine, .after_ms = 5 } };
        const struct rv_fake_script script = { .steps = steps, .n_steps = 2 };

        has_no_timers = true;
        begin(&script);
        assert_string_equal(told, "held; observe 9; ");
        rv_fake_backend.release(fake_state, handle);
        assert_string_equal(told, "held; observe 9; released 1; ");
}

static void stop_is_answered_once(void **state)
{
        static const struct rv_fake_step steps[] = { { .kind = RV_FAKE_HELD, .after_ms = 5 },
                { .kind = RV_FAKE_OBSERVE, .seen = &zero } };
        const struct rv_fake_script script = {
                .steps = steps, .n_steps = 2, .on_stop = &nine, .stop_ms = 3, .release_ms = RV_FAKE_AT_ONCE
        };

        begin(&script);
        rv_fake_backend.stop(fake_state, handle, RV_STOP_TIMEOUT);
        rv_fake_backend.stop(fake_state, handle, RV_STOP_SHUTDOWN);
        assert_int_equal(pass(), 3);
        assert_string_equal(told, "observe 9; ");
        assert_int_equal(rv_fake_calls(fake_state)->why, RV_STOP_TIMEOUT);
        assert_int_equal(rv_fake_calls(fake_state)->n_stops, 2);
        rv_fake_backend.release(fake_state, handle);
        assert_null(rv_fake_calls(fake_state)->broken_rule);
}

static void stop_is_ignored(void **state)
{
        static const struct rv_fake_step steps[] = { { .kind = RV_FAKE_OBSERVE, .seen = &zero, .after_ms = 4 } };
        const struct rv_fake_script script = { .steps = steps, .n_steps = 1, .release_ms = RV_FAKE_AT_ONCE };

        begin(&script);
        rv_fake_backend.stop(fake_state, handle, RV_STOP_CANCELLED);
        assert_int_equal(pass(), 4);
        assert_string_equal(told, "observe 0; ");
        rv_fake_backend.release(fake_state, handle);
}

/* stop(), observe() and release(), one inside the other, below output(). */
static void nested(void **state)
{
        static const struct rv_fake_step steps[] = {
                { .kind = RV_FAKE_OUTPUT, .data = "x", .n_bytes = 1, .n_times = 3 }, { .kind = RV_FAKE_OBSERVE, .seen = &zero },
        };
        const struct rv_fake_script script = { .steps = steps,
                .n_steps = 2,
                .on_stop = &nine,
                .stop_ms = RV_FAKE_AT_ONCE,
                .release_ms = RV_FAKE_AT_ONCE };

        begin(&script);
        stop_in_output = release_in_observe = true;
        assert_int_equal(pass(), 0);
        assert_string_equal(told, "output 0 x; observe 9; released 1; ");
}

static void start_fails(void **state)
{
        const struct rv_fake_script script = { .start_error = 24 };

        handle = &the_timer;
        rv_fake_play(fake_state, &script);
        assert_int_equal(rv_fake_backend.start(fake_state, &plan, NULL, &handle), -24);
        assert_ptr_equal(handle, &the_timer);
        assert_string_equal(told, "");
}

/* ---- Callers that break the rules are found out ---- */

static void broken_rules(void **state)
{
        static const struct rv_fake_step steps[] = {
                { .kind = RV_FAKE_OBSERVE, .seen = &zero, .after_ms = RV_FAKE_AT_ONCE }
        };
        const struct rv_fake_script over = { .steps = steps, .n_steps = 1, .release_ms = RV_FAKE_AT_ONCE };
        const struct rv_fake_script waiting = {
                .on_stop = &nine, .stop_ms = RV_FAKE_AT_ONCE, .release_ms = RV_FAKE_AT_ONCE
        };
        const struct rv_fake_script dying = { .on_stop = &nine, .release_ms = RV_FAKE_AT_ONCE };

        begin(&over);
        rv_fake_backend.go(fake_state, handle);
        assert_string_equal(rv_fake_calls(fake_state)->broken_rule, "go() after observe()");
        rv_fake_backend.release(fake_state, handle);
        begin(&over);
        rv_fake_backend.stop(fake_state, handle, RV_STOP_CANCELLED);
        assert_string_equal(rv_fake_calls(fake_state)->broken_rule, "stop() after observe()");
        rv_fake_backend.release(fake_state, handle);
        begin(&waiting);
        rv_fake_backend.go(fake_state, handle);
        rv_fake_backend.go(fake_state, handle);
        assert_string_equal(rv_fake_calls(fake_state)->broken_rule, "go() twice");
        rv_fake_backend.stop(fake_state, handle, RV_STOP_CANCELLED);
        rv_fake_backend.release(fake_state, handle);
        begin(&dying);
        rv_fake_backend.stop(fake_state, handle, RV_STOP_CANCELLED);
        rv_fake_backend.go(fake_state, handle);
        assert_string_equal(rv_fake_calls(fake_state)->broken_rule, "go() after stop()");
        assert_int_equal(pass(), 0);
        rv_fake_backend.release(fake_state, handle);
        begin(&waiting);
        rv_fake_backend.release(fake_state, handle);
        assert_string_equal(rv_fake_calls(fake_state)->broken_rule, "release() before observe()");
}

static void manifest(void **state)
{
        const struct rv_manifest own = { .struct_size = sizeof(own), .isolation = "vm-kvm" };
        const struct rv_fake_script plain = { 0 }, special = { .manifest = &own };
        struct rv_manifest m;

        rv_fake_play(fake_state, &plain);
        rv_fake_backend.can(fake_state, &m);
        assert_int_equal(m.is_usable, 1);
        for (int i = 0; i < RV_CAPABILITY_MAX_; i++)
                assert_int_equal(m.capabilities[i].grade, RV_GRADE_ENFORCED);
        rv_fake_play(fake_state, &special);
        rv_fake_backend.can(fake_state, &m);
        assert_memory_equal(&m, &own, sizeof(m));
}

#define ON_FAKE(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
        const struct CMUnitTest tests[] = {
                ON_FAKE(steps_in_their_time),
                ON_FAKE(all_at_once),
                ON_FAKE(without_timers_it_is_at_once),
                ON_FAKE(stop_is_answered_once),
                ON_FAKE(stop_is_ignored),
                ON_FAKE(nested),
                ON_FAKE(start_fails),
                ON_FAKE(broken_rules),
                ON_FAKE(manifest),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
