/* The words of `reeve run`: what request they make, what is refused, how the program and its language are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Before cmocka.h, which has a macro of the name of a function there. */
#include "reeve.h"

#include <cmocka.h>

#include "base/fd.h"
#include "request/bounds.h"
#include "run_options.h"
#include "test_base_tmp.h"

/* In place of the command line's own, which prints: the last complaint. */
static char complaint[512];

int usage_error(const char *verb, const char *fmt, ...)
{
        va_list ap;

        assert_string_equal(verb, "run");
        va_start(ap, fmt);
        vsnprintf(complaint, sizeof(complaint), fmt, ap);
        va_end(ap);
        return EXIT_USAGE;
}

void say(const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(complaint, sizeof(complaint), fmt, ap);
        va_end(ap);
}

#define WORDS_MAX 24

/* Words without blanks in them, "~" standing for one. */
static int parse(const char *words, struct run_options *o)
{
        static char copy[512];
        char *argv[WORDS_MAX + 1] = { "run" }, *save = NULL;
        int argc = 1;

        snprintf(copy, sizeof(copy), "%s", words);
        for (char *p = strtok_r(copy, " ", &save); p && argc < WORDS_MAX; p = strtok_r(NULL, " ", &save)) {
                for (char *q = p; *q; q++)
                        *q = *q == '~' ? ' ' : *q;
                argv[argc++] = p;
        }
        complaint[0] = 0;
        return run_options_parse(argc, argv, o);
}

static const struct {
        const char *words;
        const char *request;        /* as JSON with sorted keys */
} requests[] = {
        { "a.py", "{}" },
        { "--timeout 5 a.py", "{\"timeout_s\":5}" },
        { "--timeout=5 --memory=256 a.py", "{\"memory_mib\":256,\"timeout_s\":5}" },
        { "--timeout -1 a.py", "{\"timeout_s\":-1}" },      /* out of range: the request's fault, told with the others */
        { "--timeout 99999999999 a.py", "{\"timeout_s\":99999999999}" },
        { "--package a>=1 --package b==2 a.py", "{\"packages\":[\"a>=1\",\"b==2\"]}" },
        { "--network any a.py", "{\"network\":{\"mode\":\"any\"}}" },
        { "--domain a.example a.py", "{\"network\":{\"domains\":[\"a.example\"],\"mode\":\"domains\"}}" },
        { "--domain a.example --domain b.example a.py", "{\"network\":{\"domains\":[\"a.example\",\"b.example\"],\"mode\":\"domains\"}}" },
        { "--network domains --domain a.example a.py", "{\"network\":{\"domains\":[\"a.example\"],\"mode\":\"domains\"}}" },
        { "--network none --domain a.example a.py", "{\"network\":{\"domains\":[\"a.example\"],\"mode\":\"none\"}}" },
        { "--domain a.example --network any a.py", "{\"network\":{\"domains\":[\"a.example\"],\"mode\":\"any\"}}" },
        { "--env A=1 a.py", "{\"env\":{\"A\":\"1\"}}" },
        { "--env A=1=2~3 --env B= a.py", "{\"env\":{\"A\":\"1=2 3\",\"B\":\"\"}}" },
        { "--env =x a.py", "{\"env\":{\"\":\"x\"}}" },      /* a name out of bounds: the request's fault */
        { "--env TEST_OPTIONS_SET a.py", "{\"env\":{\"TEST_OPTIONS_SET\":\"from outside\"}}" },
        { "--key k~1 a.py", "{\"idempotency_key\":\"k 1\"}" },
        { "--raw --json --tenant t --backend b --config c --outcome o --language python --stdin s -", "{}" },
        { "-- --odd-name.py", "{}" },
};

static void requests_that_options_make(void **state)
{
        setenv("TEST_OPTIONS_SET", "from outside", 1);
        for (size_t i = 0; i < RV_N_ELEMENTS(requests); i++) {
                _cleanup_(rv_freep) char *text = NULL;
                struct run_options o;

                if (parse(requests[i].words, &o) != 0)
                        fail_msg("%s: %s", requests[i].words, complaint);
                text = json_dumps(o.value, JSON_COMPACT | JSON_SORT_KEYS);
                if (strcmp(text, requests[i].request) != 0)
                        fail_msg("%s: %s, not %s", requests[i].words, text, requests[i].request);
                run_options_fini(&o);
        }
}

static void the_other_options(void **state)
{
        struct run_options o;

        assert_int_equal(parse("--raw --json --tenant t --backend b --config c --outcome o --language python --stdin s f.js", &o), 0);
        assert_true(o.is_raw);
        assert_true(o.is_json);
        assert_false(o.wants_help);
        assert_string_equal(o.tenant, "t");
        assert_string_equal(o.backend, "b");
        assert_string_equal(o.config, "c");
        assert_string_equal(o.outcome, "o");
        assert_string_equal(o.language, "python");
        assert_string_equal(o.stdin_file, "s");
        assert_string_equal(o.file, "f.js");
        assert_null(o.request);
        run_options_fini(&o);
        assert_int_equal(parse("--json --tenant t --backend b --config c --outcome o --request r", &o), 0);
        assert_string_equal(o.request, "r");
        assert_null(o.file);
        run_options_fini(&o);
        assert_int_equal(parse("--help", &o), 0);
        assert_true(o.wants_help);
        run_options_fini(&o);
        assert_int_equal(parse("-h a b c", &o), 0);
        assert_true(o.wants_help);
        run_options_fini(&o);
}

static const struct {
        const char *words;
        const char *complaint;      /* part of it; "" where getopt says it */
} refused[] = {
        { "--env A=1 --env A=2 a.py", "--env A is given twice" },
        { "", "name the program" },
        { "--json", "name the program" },
        { "a.py b.py", "b.py is one word too many" },
        { "a.py --timeout 5", "--timeout is one word too many (options stand before FILE)" },
        { "--timeout x a.py", "--timeout wants a whole number, not \"x\"" },
        { "--timeout 5s a.py", "\"5s\"" },
        { "--timeout 30.0 a.py", "\"30.0\"" },
        { "--timeout= a.py", "--timeout" },
        { "--wait -1 a.py", "--wait wants a whole number of seconds from 0 to 3600, not \"-1\"" },
        { "--wait 3601 a.py", "\"3601\"" },
        { "--wait 5s a.py", "\"5s\"" },
        { "--wait= a.py", "--wait" },
        { "--memory 0x80 a.py", "--memory" },
        { "--memory 99999999999999999999 a.py", "--memory" },
        { "--env TEST_OPTIONS_UNSET a.py", "TEST_OPTIONS_UNSET: there is no such variable" },
        { "--env \xff=1 a.py", "not UTF-8" },
        { "--request r a.py", "--request holds the whole request" },
        { "--request r --timeout 5", "--request" },
        { "--request r --language python", "--request" },
        { "--request r --stdin -", "--request" },
        { "--request r --env A=1", "--request" },
        { "--stdin - -", "not both" },
        { "--no-such-option a.py", "" },
        { "--timeout", "" },
        { "--json=yes a.py", "" },
        { "-x a.py", "" },
};

static void what_is_refused(void **state)
{
        int err = dup(STDERR_FILENO), null = open("/dev/null", O_WRONLY);

        unsetenv("TEST_OPTIONS_UNSET");
        for (size_t i = 0; i < RV_N_ELEMENTS(refused); i++) {
                struct run_options o;
                int r;

                dup2(null, STDERR_FILENO);      /* getopt prints */
                r = parse(refused[i].words, &o);
                dup2(err, STDERR_FILENO);
                if (r != EXIT_USAGE)
                        fail_msg("%s: %d, not %d", refused[i].words, r, EXIT_USAGE);
                if (!strstr(complaint, refused[i].complaint))
                        fail_msg("%s: \"%s\" does not say \"%s\"", refused[i].words, complaint, refused[i].complaint);
                run_options_fini(&o);
        }
        close(err);
        close(null);
}

/* ---- Files ---- */

static const struct {
        const char *name, *text, *language;     /* NULL: cannot be told */
} programs[] = {
        { "a.py", "x", "python" },
        { "a.js", "x", "javascript" },
        { "a.cjs", "x", "javascript" },
        { "a.mjs", "x", "javascript" },
        { "b.py", "#!/usr/bin/node\n", "python" },
        { "plain", "#!/usr/bin/env python3\nx", "python" },
        { "plain2", "#!/usr/bin/python3 -u", "python" },
        { "plain3", "#! /usr/bin/env node\n", "javascript" },
        { "b.txt", "#!/usr/bin/node\n", "javascript" },
        { "sh", "#!/bin/sh\n# python\n", NULL },
        { "none", "print(1)", NULL },
        { "empty", "", NULL },
        { "hash", "#!", NULL },
        { "py", "x", NULL },
        { "A.PY", "x", NULL },
        { "dir.js/prog", "x", NULL },
};

static void languages(void **state)
{
        assert_int_equal(rv_mkdir_p(tmp_path(state, "dir.js"), 0700), 0);
        for (size_t i = 0; i < RV_N_ELEMENTS(programs); i++) {
                _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
                const char *path = tmp_path(state, programs[i].name);
                char *argv[] = { "run", (char *)path, NULL };
                struct run_options o;
                int r;

                assert_int_equal(rv_write_file(path, programs[i].text, strlen(programs[i].text), 0600, false), 0);
                assert_int_equal(run_options_parse(2, argv, &o), 0);
                r = run_options_read(&o, &text);
                if (r != (programs[i].language ? 0 : EXIT_USAGE))
                        fail_msg("%s: %d", programs[i].name, r);
                if (r == 0 && strcmp(rv_json_get_string(o.value, "language", ""), programs[i].language) != 0)
                        fail_msg("%s: %s", programs[i].name, rv_json_get_string(o.value, "language", ""));
                if (r == 0)
                        assert_string_equal(rv_json_get_string(o.value, "source", ""), programs[i].text);
                assert_int_equal(text.size, 0);
                run_options_fini(&o);
        }
}

static void language_is_asked_for(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        const char *path = tmp_path(state, "a.py");
        char *argv[] = { "run", "--language", "javascript", (char *)path, NULL };
        struct run_options o;

        assert_int_equal(rv_write_file(path, "a\0b\xff", 4, 0600, false), 0);
        assert_int_equal(run_options_parse(4, argv, &o), 0);
        assert_int_equal(run_options_read(&o, &text), 0);
        assert_string_equal(rv_json_get_string(o.value, "language", ""), "javascript");
        /* Every byte of the file: what is wrong with them is the request's business. */
        assert_int_equal(json_string_length(json_object_get(o.value, "source")), 4);
        assert_memory_equal(json_string_value(json_object_get(o.value, "source")), "a\0b\xff", 4);
        assert_null(json_object_get(o.value, "stdin"));
        run_options_fini(&o);
}

static void standard_input_is_read(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        const char *program = tmp_path(state, "a.py"), *input = tmp_path(state, "input"), *request = tmp_path(state, "request");
        char *with_stdin[] = { "run", "--stdin", (char *)input, (char *)program, NULL };
        char *with_request[] = { "run", "--request", (char *)request, NULL };
        char *from_stdin[] = { "run", "--language", "python", "-", NULL };
        int saved = dup(STDIN_FILENO), fd;
        struct run_options o;

        assert_int_equal(rv_write_file(program, "p", 1, 0600, false), 0);
        assert_int_equal(rv_write_file(input, "in\0put", 6, 0600, false), 0);
        assert_int_equal(rv_write_file(request, "{\"a\":1}", 7, 0600, false), 0);
        assert_int_equal(run_options_parse(4, with_stdin, &o), 0);
        assert_int_equal(run_options_read(&o, &text), 0);
        assert_int_equal(json_string_length(json_object_get(o.value, "stdin")), 6);
        run_options_fini(&o);

        assert_int_equal(run_options_parse(3, with_request, &o), 0);
        assert_int_equal(run_options_read(&o, &text), 0);
        assert_string_equal(text.data, "{\"a\":1}");
        run_options_fini(&o);

        fd = open(program, O_RDONLY);
        dup2(fd, STDIN_FILENO);
        close(fd);
        assert_int_equal(run_options_parse(4, from_stdin, &o), 0);
        assert_int_equal(run_options_read(&o, &text), 0);
        assert_string_equal(rv_json_get_string(o.value, "source", ""), "p");
        run_options_fini(&o);
        dup2(saved, STDIN_FILENO);
        close(saved);
}

static void files_that_cannot_be_read(void **state)
{
        const char *const paths[] = { tmp_path(state, "nowhere.py"), *state };

        for (size_t i = 0; i < RV_N_ELEMENTS(paths); i++) {
                _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
                char *argv[] = { "run", "--language", "python", (char *)paths[i], NULL };
                struct run_options o;

                complaint[0] = 0;
                assert_int_equal(run_options_parse(4, argv, &o), 0);
                assert_int_equal(run_options_read(&o, &text), EXIT_USAGE);
                assert_non_null(strstr(complaint, paths[i]));
                run_options_fini(&o);
        }
}

/* It is for the judge of requests to refuse it, and to have that recorded. */
static void a_file_that_is_too_large_becomes_a_fault(void **state)
{
        const char *large = tmp_path(state, "large.py");
        char *as_program[] = { "run", "--language", "python", (char *)large, NULL };
        char *as_request[] = { "run", "--request", (char *)large, NULL };
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct run_options o;
        int fd = open(large, O_WRONLY | O_CREAT, 0600);

        assert_int_equal(ftruncate(fd, RV_BOUND_MAX(document) + 12345), 0);
        close(fd);
        assert_int_equal(run_options_parse(3, as_request, &o), 0);
        assert_int_equal(run_options_read(&o, &text), 0);
        assert_int_equal(text.size, RV_BOUND_MAX(document) + 1);
        run_options_fini(&o);
        assert_int_equal(run_options_parse(4, as_program, &o), 0);
        assert_int_equal(run_options_read(&o, &text), 0);
        assert_int_equal(json_string_length(json_object_get(o.value, "source")), RV_BOUND_MAX(document) + 1);
        run_options_fini(&o);
}

/* Every option has its line in --help, and no other is there. */
static void help_names_every_option(void **state)
{
        static const char *const names[] = { "--language", "--timeout", "--memory", "--package", "--network", "--domain", "--env", "--key", "--stdin",
                                             "--request", "--tenant", "--backend", "--config", "--json", "--outcome", "--raw" };
        const char *path = tmp_path(state, "help");
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        int out, fd;

        fflush(stdout);
        out = dup(STDOUT_FILENO);
        fd = open(path, O_WRONLY | O_CREAT, 0600);
        dup2(fd, STDOUT_FILENO);
        run_options_help();
        fflush(stdout);
        dup2(out, STDOUT_FILENO);
        close(out);
        close(fd);
        assert_int_equal(rv_read_file_at(AT_FDCWD, path, 1 << 20, &text), 0);
        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++) {
                char line[64];

                snprintf(line, sizeof(line), "\n  %s", names[i]);
                if (!strstr(text.data, line))
                        fail_msg("%s has no line", names[i]);
        }
        assert_non_null(strstr(text.data, "timeout_s"));
        assert_non_null(strstr(text.data, "Exit status"));
}

#define IN_TMP(f) cmocka_unit_test_setup_teardown(f, tmp_make, tmp_remove)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(requests_that_options_make),
                cmocka_unit_test(the_other_options),
                cmocka_unit_test(what_is_refused),
                IN_TMP(languages),
                IN_TMP(language_is_asked_for),
                IN_TMP(standard_input_is_read),
                IN_TMP(files_that_cannot_be_read),
                IN_TMP(a_file_that_is_too_large_becomes_a_fault),
                IN_TMP(help_names_every_option),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
