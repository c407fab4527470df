/* Programs run to their end: what they read and say, and when they do not end. */
#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int run_shell(struct rv_child *c, const char *script, struct rv_error *err)
{
        const char *const argv[] = { "/bin/sh", "-c", script, NULL };

        c->exe_fd = -EBADF;
        c->argv = argv;
        c->deadline_us = c->deadline_us ? c->deadline_us : rv_boot_us() + 10000000;
        return rv_child_run(c, err);
}

static void goes_through(void **state)
{
        size_t n = (size_t)3 << 20;
        char *much = malloc(n);
        struct iovec in[] = { { "a", 1 }, { "", 0 }, { much, n } };
        struct rv_child c = { .in = in, .n_in = 3, .out_max = n + 1, .err_max = 4 };

        (void)state;
        memset(much, 'x', n);
        assert_int_equal(run_shell(&c, "cat; echo complaint >&2; exit 7", NULL), 0);
        assert_int_equal(WEXITSTATUS(c.status), 7);
        assert_int_equal(c.out.size, n + 1);
        assert_int_equal(c.out.data[0], 'a');
        assert_memory_equal(c.out.data + 1, much, n);
        assert_int_equal(c.err.size, 4);
        assert_memory_equal(c.err.data, "comp", 4);
        assert_int_equal(c.n_unread, 0);
        rv_child_fini(&c);
        free(much);
}

static void too_much(void **state)
{
        struct rv_child c = { .out_max = 1000 };
        struct rv_error err = { 0 };

        (void)state;
        assert_int_equal(run_shell(&c, "yes", &err), -EFBIG);
        assert_non_null(strstr(err.message, "1000 bytes"));
        rv_child_fini(&c);
}

static void too_long(void **state)
{
        struct rv_child c = { .out_max = 1000, .deadline_us = rv_boot_us() + 200000 };
        uint64_t before = rv_boot_us();

        (void)state;
        assert_int_equal(run_shell(&c, "trap '' TERM INT HUP; while :; do sleep 1; done", NULL), -ETIMEDOUT);
        assert_true(rv_boot_us() - before < 2000000);
        rv_child_fini(&c);
}

/* The whole group is gone, not the shell alone. */
static void group_ends_too(void **state)
{
        struct rv_child c = { .out_max = 1000, .err_max = 100, .deadline_us = rv_boot_us() + 300000 };
        long pid;

        (void)state;
        assert_int_equal(run_shell(&c, "sleep 77 & echo $!; wait", NULL), -ETIMEDOUT);
        pid = strtol(c.out.data, NULL, 10);
        assert_true(pid > 1);
        for (int i = 0; i < 100 && kill((pid_t)pid, 0) == 0; i++)
                usleep(10000);
        /* Nobody may have reaped it, where there is no init: then it is a zombie. */
        if (kill((pid_t)pid, 0) == 0) {
                char path[64];
                struct rv_buf b = { 0 };

                snprintf(path, sizeof(path), "/proc/%ld/cmdline", pid);
                assert_int_equal(rv_read_file_at(AT_FDCWD, path, 100, &b), 0);
                assert_int_equal(b.size, 0);
                rv_buf_fini(&b);
        }
        rv_child_fini(&c);
}

static void not_waited_for(void **state)
{
        struct rv_child c = { .out_max = 1000, .err_max = 1000 };
        uint64_t before = rv_boot_us();

        (void)state;
        assert_int_equal(run_shell(&c, "echo said; sleep 5 & exit 0", NULL), 0);
        assert_true(rv_boot_us() - before < 2000000);
        assert_int_equal(c.out.size, 5);
        rv_child_fini(&c);
}

static void unread_is_told(void **state)
{
        char bytes[100000] = { 0 };
        struct iovec in = { bytes, sizeof(bytes) };
        struct rv_child c = { .in = &in, .n_in = 1 };

        (void)state;
        assert_int_equal(run_shell(&c, "head -c 1000 >/dev/null", NULL), 0);
        assert_true(c.n_unread > 30000 && c.n_unread < 100000);
        rv_child_fini(&c);
        in.iov_len = 10;
        assert_int_equal(run_shell(&c, "exit 0", NULL), 0);
        assert_int_equal(c.n_unread, 10);
        rv_child_fini(&c);
}

static void cannot_start(void **state)
{
        static const char *const argv[] = { "/no/such/program", NULL }, *const directory[] = { "/", NULL };
        struct rv_child c = { .exe_fd = -EBADF, .argv = argv, .deadline_us = rv_boot_us() + 5000000 };
        struct rv_error err = { 0 };

        (void)state;
        assert_int_equal(rv_child_run(&c, &err), -ENOENT);
        assert_string_equal(err.message, "cannot run /no/such/program: No such file or directory");
        rv_child_fini(&c);
        c.argv = directory;
        assert_int_equal(rv_child_run(&c, NULL), -EACCES);
        rv_child_fini(&c);
}

/* Whatever numbers they have here, and with one left out; nothing else of this process is there. */
static void descriptors_are_handed_on(void **state)
{
        static const char *const script = "for i in 3 4 5 6 7 8 9; do [ -e /proc/self/fd/$i ] && readlink /proc/$$/fd/$i || echo none; done 2>/dev/null";
        int null = open("/dev/null", O_RDONLY | O_CLOEXEC), zero = open("/dev/zero", O_RDONLY | O_CLOEXEC), root = open("/", O_PATH | O_CLOEXEC);
        const int orders[][4] = { { null, zero, -EBADF, root }, { zero, null, root, zero },
                { root, root, null, null } };
        static const char *const said[] = { "/dev/null\n/dev/zero\nnone\n/\nnone\n", "/dev/zero\n/dev/null\n/\n/dev/zero\nnone\n", "/\n/\n/dev/null\n/dev/null\nnone\n" };
        struct rv_child c = { .out_max = 1000, .n_fds = 4 };
        struct rv_error err = { 0 };
        int shell;

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(orders); i++) {
                c.fds = orders[i];
                assert_int_equal(run_shell(&c, script, NULL), 0);
                if (!c.out.data || strncmp(c.out.data, said[i], strlen(said[i])) != 0)
                        fail_msg("%zu: %s", i, c.out.data ? c.out.data : "nothing");
                rv_child_fini(&c);
        }
        /* The program's own descriptor has a number that another is to get. */
        shell = open("/bin/cat", O_PATH | O_CLOEXEC);
        c.exe_fd = shell;
        c.argv = (const char *const[]){ "cat", "/proc/self/comm", NULL };
        c.deadline_us = rv_boot_us() + 5000000;
        assert_int_equal(rv_child_run(&c, &err), 0);
        assert_int_equal(c.status, 0);
        rv_child_fini(&c);
        c.n_fds = RV_CHILD_FDS_MAX + 1;
        assert_int_equal(rv_child_run(&c, &err), -EINVAL);
        assert_non_null(strstr(err.message, "9 descriptors"));
        close(null);
        close(root);
        close(zero);
        close(shell);
}

/* An exec that fails is told of, also where descriptors are handed on. */
static void cannot_start_with_descriptors(void **state)
{
        static const char *const argv[] = { "/no/such/program", NULL };
        const int fds[] = { 0, 1, 2 };
        struct rv_child c = {
                .exe_fd = -EBADF, .argv = argv, .fds = fds, .n_fds = 3, .deadline_us = rv_boot_us() + 5000000
        };

        (void)state;
        assert_int_equal(rv_child_run(&c, NULL), -ENOENT);
        rv_child_fini(&c);
}

static void by_descriptor(void **state)
{
        static const char *const argv[] = { "anything", NULL };
        struct rv_child c = { .exe_fd = open("/bin/pwd", O_PATH | O_CLOEXEC), .argv = argv, .out_max = 100, .deadline_us = rv_boot_us() + 5000000 };

        (void)state;
        assert_int_equal(rv_child_run(&c, NULL), 0);
        assert_memory_equal(c.out.data, "/\n", 2);
        rv_child_fini(&c);
        close(c.exe_fd);
}

static void signals_are_at_their_defaults(void **state)
{
        struct rv_child c = { .out_max = 4096 };
        struct sigaction old;

        (void)state;
        sigaction(SIGPIPE, NULL, &old);
        signal(SIGPIPE, SIG_IGN);
        assert_int_equal(run_shell(&c, "grep -E 'SigIgn|SigBlk|NoNewPrivs' /proc/self/status", NULL), 0);
        sigaction(SIGPIPE, &old, NULL);
        assert_non_null(strstr(c.out.data, "SigIgn:\t0000000000000000"));
        assert_non_null(strstr(c.out.data, "SigBlk:\t0000000000000000"));
        assert_non_null(strstr(c.out.data, "NoNewPrivs:\t1"));
        rv_child_fini(&c);
}

static void end_in_words(void **state)
{
        struct rv_child c = { .err_max = 1000 };
        char text[64], small[12];

        (void)state;
        assert_int_equal(run_shell(&c, "printf 'bad \\033[31m\\377\\nmore' >&2; exit 3", NULL), 0);
        assert_string_equal(rv_child_end_text(&c, text, sizeof(text)), "ended with status 3: bad ?[31m?");
        assert_string_equal(rv_child_end_text(&c, small, sizeof(small)), "ended with ");
        rv_child_fini(&c);
        assert_int_equal(run_shell(&c, "kill -9 $$", NULL), 0);
        assert_string_equal(rv_child_end_text(&c, text, sizeof(text)), "was ended by signal 9");
        rv_child_fini(&c);
}

/* Whichever numbers they have here: 3 may be the descriptor itself, the program, or one that starting it needs. */
static void third_descriptor(void **state)
{
        static const char *const argv[] = { "sh", "-c", "cat <&3 && ls -l /proc/self/fd | wc -l", NULL }, *const envp[] = { "PATH=/usr/bin:/bin", NULL };
        int program = open("/bin/sh", O_PATH | O_CLOEXEC), high_program = fcntl(program, F_DUPFD_CLOEXEC, 100), file = memfd_create("x", MFD_CLOEXEC),
            high_file = fcntl(file, F_DUPFD_CLOEXEC, 100), had = fcntl(3, F_DUPFD_CLOEXEC, 200);
        const int rows[][2] = { { high_program, high_file }, { 3, high_file }, { high_program, 3 } };

        (void)state;
        assert_int_equal(write(file, "third\n", 6), 6);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_child c = { .exe_fd = rows[i][0],
                        .argv = argv,
                        .envp = envp,
                        .fds = &rows[i][1],
                        .n_fds = 1,
                        .out_max = 1000,
                        .deadline_us = rv_boot_us() + 5000000 };

                assert_int_equal(lseek(file, 0, SEEK_SET), 0);
                if (i == 0)
                        close(3);
                else
                        assert_int_equal(dup3(i == 1 ? high_program : high_file, 3, O_CLOEXEC), 3);
                assert_int_equal(rv_child_run(&c, NULL), 0);
                /* 0 to 3, the one that ls reads the directory by, and the line of the total. */
                assert_string_equal(c.out.data, "third\n6\n");
                rv_child_fini(&c);
        }
        assert_int_equal(dup3(had, 3, O_CLOEXEC), 3);
        for (int fd = 100; fd < 256; fd++)
                close(fd);
        if (program != 3)
                close(program);
        if (file != 3)
                close(file);
}

static void *stop_soon(void *arg)
{
        usleep(150000);
        atomic_store((_Atomic bool *)arg, true);
        return NULL;
}

static void stopped(void **state)
{
        _Atomic bool stop = false;
        struct rv_child c = { .out_max = 1000, .stop = &stop };
        uint64_t began = rv_boot_us();
        struct rv_error err = { 0 };
        pthread_t thread;

        (void)state;
        assert_int_equal(run_shell(&c, "exit 0", NULL), 0);
        rv_child_fini(&c);
        c.deadline_us = 0;
        assert_int_equal(pthread_create(&thread, NULL, stop_soon, &stop), 0);
        assert_int_equal(run_shell(&c, "sleep 30", &err), -ECANCELED);
        assert_in_range(rv_boot_us() - began, 150000, 1000000);
        assert_non_null(strstr(err.message, "as was asked for"));
        pthread_join(thread, NULL);
        rv_child_fini(&c);
}

/* Takes whole lines, and fails at one that says so. */
static int take_lines(void *arg, struct rv_buf *out)
{
        size_t *n = arg;
        char *end;

        while ((end = out->size ? memchr(out->data, '\n', out->size) : NULL) != NULL) {
                if (strncmp(out->data, "stop", 4) == 0)
                        return -EPROTO;
                ++*n;
                out->size -= (size_t)(end + 1 - out->data);
                memmove(out->data, end + 1, out->size);
        }
        return 0;
}

static void taken_as_it_comes(void **state)
{
        size_t n = 0;
        struct rv_child c = { .out_max = 100000, .on_out = take_lines, .arg = &n };

        (void)state;
        assert_int_equal(run_shell(&c, "seq 1 200000; printf rest", NULL), 0);
        assert_int_equal(n, 200000);
        assert_int_equal(c.out.size, 4);
        assert_memory_equal(c.out.data, "rest", 4);
        rv_child_fini(&c);
        assert_int_equal(run_shell(&c, "echo stop; sleep 30", NULL), -EPROTO);
        rv_child_fini(&c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(goes_through),
                cmocka_unit_test(too_much),
                cmocka_unit_test(too_long),
                cmocka_unit_test(group_ends_too),
                cmocka_unit_test(not_waited_for),
                cmocka_unit_test(unread_is_told),
                cmocka_unit_test(cannot_start),
                cmocka_unit_test(by_descriptor),
                cmocka_unit_test(descriptors_are_handed_on),
                cmocka_unit_test(cannot_start_with_descriptors),
                cmocka_unit_test(signals_are_at_their_defaults),
                cmocka_unit_test(end_in_words),
                cmocka_unit_test(third_descriptor),
                cmocka_unit_test(stopped),
                cmocka_unit_test(taken_as_it_comes),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
