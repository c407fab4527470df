/* A program's output passed on live: slow readers, readers that go away, terminals and their control characters. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/fd.h"
#include "loop/loop.h"
#include "stream.h"

#define MIB ((size_t)1 << 20)

static int guard(void **state)
{
        alarm(30);      /* what blocks for ever is killed */
        return 0;
}

static void make_pipe(int fds[2])
{
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
}

/* Bytes that tell where they are from. */
static void fill(char *data, size_t n, size_t at)
{
        for (size_t i = 0; i < n; i++)
                data[i] = (char)('a' + (at + i) * 7 % 26 + (at + i) / 1000 % 2 * -32);
}

/* A reader in a process of its own; its exit status is 0 if it read @n of those bytes and then the end. */
static pid_t read_elsewhere(int fds[2], size_t n, int delay_ms)
{
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                const struct timespec delay = { .tv_sec = delay_ms / 1000, .tv_nsec = delay_ms % 1000 * 1000000 };
                static char data[65536], expected[65536];
                size_t at = 0;
                ssize_t got;

                close(fds[1]);
                nanosleep(&delay, NULL);
                while ((got = read(fds[0], data, sizeof(data))) > 0) {
                        fill(expected, (size_t)got, at);
                        if (memcmp(data, expected, (size_t)got) != 0)
                                _exit(2);
                        at += (size_t)got;
                }
                _exit(at == n ? 0 : 1);
        }
        close(fds[0]);
        return pid;
}

static void expect_read(pid_t pid, int fd)
{
        int status;

        close(fd);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        if (status != 0)
                fail_msg("the reader read %s", WEXITSTATUS(status) == 1 ? "another number of bytes" : "other bytes");
}

static void put_filled(struct stream *s, size_t n, size_t piece)
{
        static char data[MIB];

        for (size_t at = 0; at < n; at += piece) {
                fill(data, RV_MIN(piece, n - at), at);
                stream_put(s, data, RV_MIN(piece, n - at));
        }
}

static void nobody_reads_and_put_returns(void **state)
{
        uint64_t start_us = rv_boot_us();
        struct stream s;
        int fds[2];
        pid_t pid;

        make_pipe(fds);
        stream_init(&s, NULL, fds[1], false);
        put_filled(&s, 3 * MIB, 65536);
        assert_true(rv_boot_us() - start_us < 2000000);
        assert_true(s.waiting.size - s.n_written > 2 * MIB);
        pid = read_elsewhere(fds, 3 * MIB, 50);
        stream_finish(&s);
        expect_read(pid, fds[1]);
}

static void count_flow(void *arg, bool is_flowing)
{
        unsigned *calls = arg;

        calls[is_flowing]++;
}

static void too_much_asks_the_program_to_wait(void **state)
{
        static char data[65536];
        unsigned calls[2] = { 0, 0 };
        struct stream s;
        size_t n = 0;
        int fds[2];
        pid_t pid;

        make_pipe(fds);
        stream_init(&s, NULL, fds[1], false);
        s.flow = count_flow;
        s.flow_arg = calls;
        while (calls[false] == 0 && n < 64 * MIB) {
                fill(data, sizeof(data), n);
                stream_put(&s, data, sizeof(data));
                n += sizeof(data);
        }
        /* Told once, as soon as a bounded amount waits, and not again for what was under way. */
        assert_in_range(s.waiting.size - s.n_written, STREAM_WAITING_MAX, STREAM_WAITING_MAX + 2 * sizeof(data));
        fill(data, sizeof(data), n);
        stream_put(&s, data, sizeof(data));
        n += sizeof(data);
        assert_int_equal(calls[false], 1);
        assert_int_equal(calls[true], 0);

        pid = read_elsewhere(fds, n + 2000, 50);
        for (size_t end = n + 2000; n < end; n++) {
                fill(data, 1, n);
                stream_put(&s, data, 1);
                usleep(1000);
        }
        assert_int_equal(calls[true], 1);
        assert_int_equal(stream_finish(&s), 0);
        expect_read(pid, fds[1]);
}

static void pieces_of_all_sizes(void **state)
{
        static const size_t pieces[] = { 1, 4095, 4096, 4097, 65536, MIB };

        for (size_t i = 0; i < RV_N_ELEMENTS(pieces); i++) {
                size_t n = pieces[i] == 1 ? 10000 : 2 * MIB + 17;
                struct stream s;
                int fds[2];
                pid_t pid;

                make_pipe(fds);
                pid = read_elsewhere(fds, n, 0);
                stream_init(&s, NULL, fds[1], false);
                put_filled(&s, n, pieces[i]);
                stream_finish(&s);
                expect_read(pid, fds[1]);
        }
}

/* Whoever shares the description may have made it non-blocking; nothing is lost by that. */
static void a_description_that_does_not_block(void **state)
{
        struct stream s;
        int fds[2];
        pid_t pid;

        make_pipe(fds);
        assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
        pid = read_elsewhere(fds, 6 * MIB, 100);
        stream_init(&s, NULL, fds[1], false);
        put_filled(&s, 6 * MIB, 65536);
        stream_finish(&s);
        expect_read(pid, fds[1]);
}

static void nobody_reads_any_more(void **state)
{
        struct stream s;
        int fds[2];

        make_pipe(fds);
        stream_init(&s, NULL, fds[1], false);
        put_filled(&s, MIB, 65536);             /* some of it waits */
        close(fds[0]);
        for (int i = 0; i < 200; i++)
                put_filled(&s, MIB, MIB);
        assert_true(s.error);
        assert_true(s.waiting.capacity < 8 * MIB);
        stream_finish(&s);
        close(fds[1]);
        /* Nobody from the start. */
        make_pipe(fds);
        close(fds[0]);
        stream_init(&s, NULL, fds[1], false);
        stream_put(&s, "x", 1);
        assert_true(s.error);
        stream_finish(&s);
        close(fds[1]);
}

static void a_closed_descriptor(void **state)
{
        struct stream s;

        stream_init(&s, NULL, 999, false);
        stream_put(&s, "x", 1);
        stream_put(&s, "y", 1);
        assert_int_equal(stream_finish(&s), -EBADF);
}

static void nothing_is_nothing(void **state)
{
        struct stream s;
        int fds[2];
        char c;

        make_pipe(fds);
        stream_init(&s, NULL, fds[1], false);
        stream_put(&s, "", 0);
        stream_finish(&s);
        close(fds[1]);
        assert_int_equal(read(fds[0], &c, 1), 0);
        close(fds[0]);
}

/* ---- With a loop: what waits goes out although nothing more is put ---- */

struct late {
        struct rv_loop *loop;
        int fd;
        size_t n_read, n_wanted;
};

static void on_readable(void *arg, uint32_t events)
{
        static char data[65536];
        struct late *l = arg;
        ssize_t n = read(l->fd, data, sizeof(data));

        if (n > 0)
                l->n_read += (size_t)n;
        if (n <= 0 || l->n_read == l->n_wanted)
                rv_loop_stop(l->loop);
}

static void what_waits_goes_out_by_itself(void **state)
{
        struct rv_host_watch *watch;
        struct rv_loop loop;
        struct stream s;
        struct late l;
        int fds[2];

        make_pipe(fds);
        assert_int_equal(rv_loop_init(&loop), 0);
        stream_init(&s, &loop.host, fds[1], false);
        put_filled(&s, MIB, MIB);
        assert_true(s.waiting.size > s.n_written);
        l = (struct late){ .loop = &loop, .fd = fds[0], .n_wanted = MIB };
        assert_int_equal(loop.host.watch_add(loop.host.ctx, fds[0], RV_WATCH_READ, on_readable, &l, &watch), 0);
        rv_loop_run(&loop);
        assert_int_equal(l.n_read, MIB);
        loop.host.watch_remove(loop.host.ctx, watch);
        stream_finish(&s);
        rv_loop_fini(&loop);
        close(fds[0]);
        close(fds[1]);
}

/* ---- Terminals ---- */

struct terminal {
        int master, slave;
};

static void open_terminal(struct terminal *t)
{
        struct termios raw = { 0 };

        cfmakeraw(&raw);        /* no CR before LF, so that bytes can be compared */
        assert_int_equal(openpty(&t->master, &t->slave, NULL, &raw, NULL), 0);
}

static void read_terminal(const struct terminal *t, char *ret, size_t size)
{
        struct pollfd p = { .fd = t->master, .events = POLLIN };
        size_t at = 0;

        while (at < size - 1 && poll(&p, 1, 100) == 1) {
                ssize_t n = read(t->master, ret + at, size - 1 - at);

                if (n <= 0)
                        break;
                at += (size_t)n;
        }
        ret[at] = 0;
}

static const struct {
        const char *name, *pieces[3], *shown, *raw;
} terminals[] = {
        { "plain", { "hello\n" }, "hello\n", "hello\n" },
        { "escape", { "\033[31mred" }, "^[[31mred", "\033[31mred" },
        { "an escape in two pieces", { "a\033", "[2J" }, "a^[[2J", "a\033[2J" },
        { "tab, return, bell, delete", { "\t\r\a\177" }, "\t^M^G^?", "\t\r\a\177" },
        { "a character in two pieces", { "\xc3", "\xa4" }, "\xc3\xa4", "\xc3\xa4" },
        { "a C1 control", { "\xc2\x9b" "31m" }, "<9B>31m", "\xc2\x9b" "31m" },
        { "a character that never ends", { "x\xe2\x82" }, "x\xef\xbf\xbd", "x\xe2\x82" },
        { "ill-formed", { "\xff" }, "\xef\xbf\xbd", "\xff" },
};

static void control_characters(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(terminals); i++)
                for (int is_raw = 0; is_raw < 2; is_raw++) {
                        const char *expected = is_raw ? terminals[i].raw : terminals[i].shown;
                        struct terminal t;
                        struct stream s;
                        char text[256];

                        open_terminal(&t);
                        stream_init(&s, NULL, t.slave, is_raw);
                        for (size_t j = 0; j < 3 && terminals[i].pieces[j]; j++)
                                stream_put(&s, terminals[i].pieces[j], strlen(terminals[i].pieces[j]));
                        stream_finish(&s);
                        read_terminal(&t, text, sizeof(text));
                        if (strcmp(text, expected) != 0)
                                fail_msg("%s%s: \"%s\"", terminals[i].name, is_raw ? ", raw" : "", text);
                        close(t.master);
                        close(t.slave);
                }
}

/* A file or a pipe gets the program's bytes, whatever they are. */
static void only_terminals_are_filtered(void **state)
{
        struct stream s;
        char text[16] = "";
        int fds[2];

        make_pipe(fds);
        stream_init(&s, NULL, fds[1], false);
        stream_put(&s, "\033[1m\xff", 5);
        stream_finish(&s);
        assert_int_equal(read(fds[0], text, sizeof(text)), 5);
        assert_string_equal(text, "\033[1m\xff");
        close(fds[0]);
        close(fds[1]);
}

static void a_terminal_that_stands_still(void **state)
{
        uint64_t start_us = rv_boot_us();
        struct terminal t;
        struct stream s;
        pid_t pid;

        open_terminal(&t);
        stream_init(&s, NULL, t.slave, false);
        put_filled(&s, MIB, 65536);
        assert_true(rv_boot_us() - start_us < 2000000);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                static char data[65536];
                size_t at = 0;

                close(t.slave);
                while (at < MIB) {
                        ssize_t n = read(t.master, data, sizeof(data));

                        if (n <= 0)
                                _exit(1);
                        at += (size_t)n;
                }
                _exit(0);
        }
        stream_finish(&s);
        expect_read(pid, t.slave);
        close(t.master);
}

/* Ctrl-S, and a screen's worth of room left: what is said to be ready takes less than a whole write. */
static void a_terminal_that_was_stopped(void **state)
{
        uint64_t start_us = rv_boot_us();
        struct terminal t;
        struct stream s;

        open_terminal(&t);
        stream_init(&s, NULL, t.slave, false);
        assert_int_equal(tcflow(t.slave, TCOOFF), 0);
        put_filled(&s, 100000, 1000);
        assert_true(rv_boot_us() - start_us < 2000000);
        close(t.master);        /* it is gone: nothing waits any more */
        stream_finish(&s);
        close(t.slave);
}

/* Somebody else's terminal cannot be opened once more: what it says to be ready blocks, and is interrupted. */
static void a_terminal_that_cannot_be_reopened(void **state)
{
        static const char line[] = "0123456789\n";
        uint64_t start_us = rv_boot_us();
        struct termios cooked;
        struct terminal t;
        struct stream s;

        open_terminal(&t);
        assert_int_equal(tcgetattr(t.slave, &cooked), 0);
        cooked.c_oflag |= OPOST | ONLCR;
        assert_int_equal(tcsetattr(t.slave, TCSANOW, &cooked), 0);
        stream_init(&s, NULL, t.slave, false);
        assert_true(s.own_fd >= 0);
        close(s.own_fd);
        s.own_fd = -EBADF;
        s.fd = t.slave;
        stream_interrupt(&s);
        for (int i = 0; i < 10000; i++)
                stream_put(&s, line, sizeof(line) - 1);
        assert_true(rv_boot_us() - start_us < 25000000);
        assert_true(s.waiting.size > s.n_written);
        close(t.master);
        stream_finish(&s);
        close(t.slave);
}

static bool asked_three_times(void *arg, bool has_moved)
{
        unsigned *n_asked = arg;

        return ++*n_asked < 3;
}

/* One reader stands still; the other gets all the same what is its. */
static void what_is_given_up_is_told(void **state)
{
        unsigned n_asked = 0;
        struct stream s, other, *both[] = { &s, &other };
        int fds[2], other_fds[2];
        char text[8] = "";

        make_pipe(fds);
        make_pipe(other_fds);
        stream_init(&s, NULL, fds[1], false);
        stream_init(&other, NULL, other_fds[1], false);
        put_filled(&s, MIB, MIB);
        assert_int_equal(rv_buf_append(&other.waiting, "other", 5), 0);
        stream_wait(both, 2, asked_three_times, &n_asked);
        assert_int_equal(n_asked, 3);
        assert_int_equal(stream_finish(&s), -ECANCELED);
        assert_int_equal(stream_finish(&other), 0);
        assert_int_equal(read(other_fds[0], text, sizeof(text)), 5);
        assert_string_equal(text, "other");
        for (int i = 0; i < 2; i++) {
                close(fds[i]);
                close(other_fds[i]);
        }
}

static void no_memory_is_told(void **state)
{
        for (int is_filtered = 0; is_filtered < 2; is_filtered++) {
                struct stream s;
                int fds[2];

                make_pipe(fds);
                stream_init(&s, NULL, fds[1], false);
                s.is_filtered = is_filtered;
                s.waiting.is_failed = true;
                stream_put(&s, "x", 1);
                assert_int_equal(stream_finish(&s), -ENOMEM);
                close(fds[0]);
                close(fds[1]);
        }
}

#define GUARDED(f) cmocka_unit_test_setup(f, guard)

int main(void)
{
        const struct CMUnitTest tests[] = {
                GUARDED(nobody_reads_and_put_returns),
                GUARDED(too_much_asks_the_program_to_wait),
                GUARDED(pieces_of_all_sizes),
                GUARDED(a_description_that_does_not_block),
                GUARDED(nobody_reads_any_more),
                GUARDED(a_closed_descriptor),
                GUARDED(nothing_is_nothing),
                GUARDED(what_waits_goes_out_by_itself),
                GUARDED(control_characters),
                GUARDED(only_terminals_are_filtered),
                GUARDED(a_terminal_that_stands_still),
                GUARDED(a_terminal_that_was_stopped),
                GUARDED(a_terminal_that_cannot_be_reopened),
                GUARDED(what_is_given_up_is_told),
                GUARDED(no_memory_is_told),
        };

        signal(SIGPIPE, SIG_IGN);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
