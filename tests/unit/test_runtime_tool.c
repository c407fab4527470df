/* Programs that `reeve runtime build` follows: what they say, how they end, and that a signal ends them. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/clock.h"
#include "runtime_tool.h"

static const char *const env[] = { "PATH=/usr/bin:/bin", "X=from the environment", NULL };

static void on_line(void *ctx, const char *text)
{
        rv_buf_printf(ctx, "<%s>", text);
}

static int run(const char *script, struct tool *t, struct rv_buf *said, struct rv_error *err)
{
        static const char *argv[] = { "/bin/sh", "-c", NULL, NULL };

        argv[2] = script;
        *t = (struct tool){ .argv = argv, .envp = env, .line = on_line, .ctx = said };
        return tool_run(t, err);
}

static const struct {
        const char *name, *script;
        int result;
        const char *said, *message;
} rows[] = {
        { "nothing", "", 0, "", NULL },
        { "both streams", "echo a; sleep 0.1; echo b >&2", 0, "<a><b>", NULL },
        { "its environment alone", "echo $X; echo $HOME", 0, "<from the environment>", NULL },
        { "no input", "cat", 0, "", NULL },
        { "own progress is no line", "printf '10%%\\r50%%\\rdone\\n'", 0, "<done>", NULL },
        { "a status", "echo E; exit 7", -ECHILD, "<E>", "/bin/sh ended with status 7" },
        { "a signal", "kill -KILL $$", -ECHILD, "", "/bin/sh was killed by signal 9" },
        { "what it leaves behind holds nothing up", "sleep 60 & echo x", 0, "<x>", NULL },
};

static void how_it_ends(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_buf_fini) struct rv_buf said = { 0 };
                struct rv_error err = { 0 };
                uint64_t begun_us = rv_boot_us();
                struct tool t;

                if (run(rows[i].script, &t, &said, &err) != rows[i].result)
                        fail_msg("%s: %s", rows[i].name, err.message);
                if (strcmp(said.data ? said.data : "", rows[i].said) != 0)
                        fail_msg("%s: said %s", rows[i].name, said.data ? said.data : "");
                if (rows[i].message && strcmp(err.message, rows[i].message) != 0)
                        fail_msg("%s: %s", rows[i].name, err.message);
                if (rv_boot_us() - begun_us > 20000000)
                        fail_msg("%s: took too long", rows[i].name);
        }
}

static void the_last_is_kept(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf said = { 0 };
        struct tool t;

        (void)state;
        assert_int_equal(run("i=0; while [ $i -lt 1000 ]; do echo line $i; i=$((i+1)); done", &t, &said, NULL), 0);
        assert_true(strlen(t.tail) < sizeof(t.tail));
        assert_true(strlen(t.tail) > sizeof(t.tail) - 32);
        assert_non_null(strstr(t.tail, "line 999\n"));
        assert_int_equal(strncmp(t.tail, "line ", 5), 0);
}

static void not_there(void **state)
{
        static const char *const argv[] = { "/nonexistent/program", NULL };
        struct tool t = { .argv = argv, .envp = env };
        struct rv_error err = { 0 };
        char path[TOOL_PATH_SIZE];

        (void)state;
        assert_int_equal(tool_run(&t, &err), -ECHILD);
        assert_non_null(strstr(err.message, "status 127"));
        memset(&err, 0, sizeof(err));
        assert_int_equal(tool_find("no-such-program", "the-package", path, &err), -ENOENT);
        assert_string_equal(err.message, "no-such-program is missing, which this needs; install it: apt-get install the-package");
        assert_int_equal(tool_find("sh", "dash", path, NULL), 0);
}

/* In a process of its own, as a signal stays. */
static void a_signal_ends_it(void **state)
{
        static const struct {
                const char *name, *script;
                int number;
        } told[] = { { "INT", "sleep 60", SIGINT }, { "TERM", "sleep 60", SIGTERM },
                { "cleans up", "trap 'echo cleaned; exit 1' TERM; sleep 60 & wait", SIGHUP } };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(told); i++) {
                uint64_t begun_us = rv_boot_us();
                pid_t pid = fork();
                int status;

                if (pid == 0) {
                        _cleanup_(rv_buf_fini) struct rv_buf said = { 0 };
                        struct rv_error err = { 0 };
                        struct tool t;
                        int r;

                        if (tool_signals() < 0)
                                _exit(9);
                        r = run(told[i].script, &t, &said, &err);
                        if (told[i].number == SIGHUP && (!said.data || !strstr(said.data, "cleaned")))
                                _exit(8);
                        _exit(r == -EINTR && tool_was_told() == told[i].number && tool_run(&t, NULL) == -EINTR ? 0 : 7);
                }
                usleep(300000);
                kill(pid, told[i].number);
                assert_int_equal(waitpid(pid, &status, 0), pid);
                if (!WIFEXITED(status) || WEXITSTATUS(status))
                        fail_msg("%s: status %x", told[i].name, (unsigned)status);
                if (rv_boot_us() - begun_us > 15000000)
                        fail_msg("%s: took too long", told[i].name);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(how_it_ends),
                cmocka_unit_test(the_last_is_kept),
                cmocka_unit_test(not_there),
                cmocka_unit_test(a_signal_ends_it),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
