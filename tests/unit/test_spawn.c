/*
 * The spawner by its channel: what a run may ask, how runs end, who dies with whom. Needs root.
 */
#include "test_spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <signal.h>
#include <sys/wait.h>

#define SLEEP "import time\nprint('up', flush=True)\ntime.sleep(60)\n"

static void expect_removed(const struct child *c, uint64_t id)
{
        struct rv_spawn_report report;

        expect_event(c, "the end", RV_SPAWN_REMOVED, &report);
        assert_int_equal(report.id, id);
        assert_int_equal(report.event.fault_errno, 0);
}

static void read_text(int fd, char *ret, size_t size)
{
        ssize_t n, at = 0;

        while ((size_t)at < size - 1 && (n = read(fd, ret + at, size - 1 - (size_t)at)) > 0)
                at += n;
        ret[at] = 0;
}

static void a_whole_run(void **state)
{
        struct rv_spawn_report report;
        struct rv_init_report m;
        char text[64];
        struct child c;
        struct ends e;

        spawner_begin(state, "", &c);
        start_run(&c, 7, "import os, sys\nprint(sys.stdin.read())\nopen(os.environ['REEVE_RESULT'], 'w').write('[1]')\nsys.exit(3)\n", &e);
        assert_int_equal(write(e.in, "hello", 5), 5);
        e.in = rv_close(e.in);
        assert_int_equal(read_report(&e, &m), 1);
        assert_int_equal(m.kind, RV_INIT_EXITED);
        assert_true(WIFEXITED(m.wait_status));
        assert_int_equal(WEXITSTATUS(m.wait_status), 3);
        assert_true(m.end_us > m.start_us);
        expect_event(&c, "the end", RV_SPAWN_ENDED, &report);
        assert_int_equal(report.id, 7);
        assert_int_equal(report.event.was_stopped, 0);
        assert_int_equal(report.event.n_oom_kills, 0);
        assert_true(report.event.peak_memory_bytes > 1 << 20);
        assert_true(report.event.cpu_us > 0);
        assert_true(report.event.result_fd >= 0);
        read_text(report.event.result_fd, text, sizeof(text));
        assert_string_equal(text, "[1]");
        close(report.event.result_fd);
        read_text(e.out, text, sizeof(text));
        assert_string_equal(text, "hello\n");
        expect_removed(&c, 7);
        assert_int_equal(read_report(&e, &m), 0);
        ends_close(&e);
        spawner_end(&c, "a whole run");
}

static void stopped(void **state)
{
        const struct rv_spawn_request stop = { .kind = RV_SPAWN_REQUEST_STOP, .id = 5 },
                                      other = { .kind = RV_SPAWN_REQUEST_STOP, .id = 6 };
        struct rv_spawn_report report;
        struct rv_init_report m;
        struct child c;
        struct ends e;

        spawner_begin(state, "", &c);
        assert_int_equal(send_raw(c.fd, &stop, sizeof(stop), NULL, 0), 0);      /* nobody yet: harmless */
        start_run(&c, 5, SLEEP, &e);
        assert_int_equal(send_raw(c.fd, &other, sizeof(other), NULL, 0), 0);
        assert_true(is_alive(c.init_pid));
        assert_int_equal(send_raw(c.fd, &stop, sizeof(stop), NULL, 0), 0);
        expect_event(&c, "stopped", RV_SPAWN_ENDED, &report);
        assert_int_equal(report.event.was_stopped, 1);
        assert_int_equal(report.event.is_memory_stop, 0);
        assert_int_equal(read_report(&e, &m), 0);
        expect_removed(&c, 5);
        assert_int_equal(send_raw(c.fd, &stop, sizeof(stop), NULL, 0), 0);      /* over: harmless */
        ends_close(&e);
        spawner_end(&c, "stopped");
}

static void stopped_while_held(void **state)
{
        const struct rv_spawn_request stop = { .kind = RV_SPAWN_REQUEST_STOP, .id = 1 };
        struct rv_spawn_request q = good_request(1);
        struct rv_spawn_report report;
        struct rv_init_report m;
        struct child c;
        struct ends e;

        spawner_begin(state, "", &c);
        ends_open("print(1)", &e);
        give(&c, &q, &e);
        expect_event(&c, "held", RV_SPAWN_HELD, &report);
        assert_int_equal(send_raw(c.fd, &stop, sizeof(stop), NULL, 0), 0);
        expect_event(&c, "stopped while held", RV_SPAWN_ENDED, &report);
        assert_int_equal(report.event.was_stopped, 1);
        expect_removed(&c, 1);
        assert_int_equal(read_report(&e, &m), 0);
        ends_close(&e);
        spawner_end(&c, "stopped while held");
}

/* The loop's end of the control channel is gone before it said go: the program is never executed. */
static void nobody_says_go(void **state)
{
        struct rv_spawn_request q = good_request(1);
        struct rv_spawn_report report;
        char text[64];
        struct child c;
        struct ends e;

        spawner_begin(state, "", &c);
        ends_open("print('I ran')", &e);
        give(&c, &q, &e);
        expect_event(&c, "held", RV_SPAWN_HELD, &report);
        e.control = rv_close(e.control);
        expect_event(&c, "nobody says go", RV_SPAWN_ENDED, &report);
        assert_int_equal(report.event.was_stopped, 0);
        read_text(e.out, text, sizeof(text));
        assert_string_equal(text, "");
        expect_removed(&c, 1);
        ends_close(&e);
        spawner_end(&c, "nobody says go");
}

static void pid_1_is_killed(void **state)
{
        struct rv_spawn_report report;
        struct rv_init_report m;
        struct child c;
        struct ends e;
        char text[64];

        spawner_begin(state, "", &c);
        start_run(&c, 9, SLEEP, &e);
        assert_true(c.init_pid > 1);
        assert_int_equal(kill(c.init_pid, SIGKILL), 0);
        expect_event(&c, "PID 1 was killed", RV_SPAWN_ENDED, &report);
        assert_int_equal(report.event.was_stopped, 0);
        assert_int_equal(report.event.n_oom_kills, 0);
        assert_int_equal(read_report(&e, &m), 0);       /* no wait status: nobody reaped the program */
        read_text(e.out, text, sizeof(text));           /* ends: the program went with it */
        expect_removed(&c, 9);
        ends_close(&e);
        spawner_end(&c, "PID 1 was killed");
}

static void the_loop_goes_away(void **state)
{
        struct child c;
        struct ends e;
        char text[64];

        spawner_begin(state, "", &c);
        start_run(&c, 1, SLEEP, &e);
        assert_true(is_alive(c.init_pid));
        spawner_end(&c, "the loop goes away");          /* closes the channel while it runs */
        assert_false(is_alive(c.init_pid));
        read_text(e.out, text, sizeof(text));
        ends_close(&e);
}

static void the_loop_goes_away_at_once(void **state)
{
        struct child c;

        for (int i = 0; i < 5; i++) {
                spawner_begin(state, "", &c);
                spawner_end(&c, "the loop goes away at once");
        }
}

static void the_loop_goes_away_while_held(void **state)
{
        struct rv_spawn_request q = good_request(1);
        struct rv_spawn_report report;
        struct child c;
        struct ends e;

        spawner_begin(state, "", &c);
        ends_open(SLEEP, &e);
        give(&c, &q, &e);
        expect_event(&c, "held", RV_SPAWN_HELD, &report);
        spawner_end(&c, "the loop goes away while held");
        ends_close(&e);
}

/* With the spawner its runs die; what it leaves of cgroups goes with the next one. */
static void the_spawner_is_killed(void **state)
{
        struct rv_spawn_report report;
        struct child c, next;
        struct ends e;
        char text[64];

        spawner_begin(state, "", &c);
        start_run(&c, 1, SLEEP, &e);
        assert_true(is_alive(c.init_pid));
        assert_int_equal(kill(c.pid, SIGKILL), 0);
        assert_int_equal(waitpid(c.pid, NULL, 0), c.pid);
        assert_true(await_death(c.init_pid));
        assert_int_equal(receive(&c, &report), 0);
        read_text(e.out, text, sizeof(text));
        ends_close(&e);
        close(c.fd);
        spawner_begin(state, "", &next);
        start_run(&next, 1, "print(1)", &e);
        expect_event(&next, "the end", RV_SPAWN_ENDED, &report);
        expect_removed(&next, 1);
        ends_close(&e);
        spawner_end(&next, "the next spawner");
        if (count_cgroups(c.pid))
                fail_msg("%u cgroups of a dead spawner are left", count_cgroups(c.pid));
}

static void several_at_once(void **state)
{
        enum { N = 4 };
        struct rv_spawn_report report;
        struct ends e[N];
        unsigned ended = 0, removed = 0;
        struct child c;

        spawner_begin(state, "", &c);
        for (uint64_t i = 0; i < N; i++) {
                struct rv_spawn_request q = good_request(i);

                ends_open("print('x')", &e[i]);
                give(&c, &q, &e[i]);
        }
        for (unsigned i = 0; i < 3 * N; i++) {
                char go = RV_INIT_GO;

                assert_int_equal(receive(&c, &report), 1);
                assert_in_range(report.id, 0, N - 1);
                if (report.event.kind == RV_SPAWN_HELD)
                        assert_int_equal(send(e[report.id].control, &go, 1, 0), 1);
                ended += report.event.kind == RV_SPAWN_ENDED;
                removed += report.event.kind == RV_SPAWN_REMOVED;
        }
        assert_int_equal(ended, N);
        assert_int_equal(removed, N);
        for (unsigned i = 0; i < N; i++) {
                char text[8];

                read_text(e[i].out, text, sizeof(text));
                assert_string_equal(text, "x\n");
                ends_close(&e[i]);
        }
        spawner_end(&c, "several at once");
}

/* ---- What the host lacks ---- */

static const struct {
        const char *name, *config;
        enum rv_backend_fault fault;
        const char *text;
} lacking[] = {
        { "no interpreter", "runtimes: {host: {python: /nowhere/python3}}\n", RV_BACKEND_FAULT_RUNTIME, "/nowhere/python3" },
        { "no cgroup", "cgroup: /reeve-test-nowhere\n", RV_BACKEND_FAULT_CAPABILITY, "reeve-test-nowhere" },
        { "no free user id", "uid_range: 4000000000-4000000003\n", RV_BACKEND_FAULT_SETUP, "no free pair" },
        { "no root", "runtimes: {host: {expose: [/nowhere/at/all]}}\n", RV_BACKEND_FAULT_SETUP, "/nowhere/at/all" },
};

static void what_is_missing_is_named(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(lacking); i++) {
                struct rv_spawn_request q = good_request(1), second = good_request(2);
                struct rv_spawn_report report;
                struct child c;
                struct ends e, f;

                spawner_begin(state, lacking[i].config, &c);
                ends_open("print(1)", &e);
                ends_open("print(1)", &f);
                if (!strcmp(lacking[i].text, "no free pair")) {
                        give(&c, &second, &f);          /* takes the only pair */
                        expect_event(&c, lacking[i].name, RV_SPAWN_HELD, &report);
                }
                give(&c, &q, &e);
                do
                        assert_int_equal(receive(&c, &report), 1);
                while (report.event.kind == RV_SPAWN_HELD);
                if (report.event.kind != RV_SPAWN_FAILED || report.event.fault != (uint32_t)lacking[i].fault ||
                    !strstr(report.event.fault_text, lacking[i].text))
                        fail_msg("%s: event %u, fault %u: %s", lacking[i].name, report.event.kind, report.event.fault, report.event.fault_text);
                expect_removed(&c, 1);
                ends_close(&e);
                ends_close(&f);
                spawner_end(&c, lacking[i].name);
        }
}

#define IN_TMP(f) cmocka_unit_test_setup_teardown(f, tmp_make, tmp_remove)

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_TMP(a_whole_run),
                IN_TMP(stopped),
                IN_TMP(stopped_while_held),
                IN_TMP(nobody_says_go),
                IN_TMP(pid_1_is_killed),
                IN_TMP(the_loop_goes_away),
                IN_TMP(the_loop_goes_away_at_once),
                IN_TMP(the_loop_goes_away_while_held),
                IN_TMP(the_spawner_is_killed),
                IN_TMP(several_at_once),
                IN_TMP(what_is_missing_is_named),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
