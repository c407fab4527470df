/* The words of the outcome model: names, signals, refusals, and the exit status of `reeve run`. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/reason.h"

static void signal_names(void **state)
{
        static const struct {
                int number;
                const char *name;
        } rows[] = {
                { SIGHUP, "HUP" }, { SIGINT, "INT" }, { SIGABRT, "ABRT" }, { SIGKILL, "KILL" }, { SIGSEGV, "SEGV" },
                { SIGPIPE, "PIPE" }, { SIGTERM, "TERM" }, { SIGCHLD, "CHLD" }, { SIGSYS, "SYS" }, { 32, "32" }, { 33, "33" },
                { 34, "RTMIN" }, { 37, "RTMIN+3" }, { 64, "RTMIN+30" }, { 0, "0" }, { 65, "65" }, { 127, "127" }, { -1, "-1" },
        };
        char name[RV_SIGNAL_NAME_SIZE];

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                rv_signal_name(rows[i].number, name);
                if (strcmp(name, rows[i].name) != 0)
                        fail_msg("signal %d is %s, not %s", rows[i].number, name, rows[i].name);
        }
}

/* The C library knows the kernel's numbers too: the two lists must agree. */
static void signal_names_agree_with_libc(void **state)
{
        char name[RV_SIGNAL_NAME_SIZE];

        for (int i = 1; i < 32; i++) {
                const char *libc_name = sigabbrev_np(i);

                rv_signal_name(i, name);
                if (libc_name && strcmp(name, strcmp(libc_name, "POLL") == 0 ? "IO" : libc_name) != 0)
                        fail_msg("signal %d is %s, the C library says %s", i, name, libc_name);
        }
}

static void codes_parse_back(void **state)
{
        enum rv_code code = RV_CODE_MAX_;

        for (unsigned i = 0; i < RV_CODE_MAX_; i++) {
                assert_int_equal(rv_code_parse(rv_code_name((enum rv_code)i), &code), 0);
                assert_int_equal(code, i);
        }
        code = RV_CODE_SIGNAL;
        assert_int_equal(rv_code_parse("no_such_code", &code), -ENOENT);
        assert_int_equal(code, RV_CODE_SIGNAL);   /* untouched on failure */
}

static void refusals(void **state)
{
        static const struct {
                enum rv_code code;
                enum rv_status status;
        } rows[] = {
                { RV_CODE_PACKAGE_DENIED, RV_STATUS_BLOCKED }, { RV_CODE_NETWORK_DENIED, RV_STATUS_BLOCKED },
                { RV_CODE_IDEMPOTENCY_REQUIRED, RV_STATUS_BLOCKED }, { RV_CODE_LIMIT_DENIED, RV_STATUS_BLOCKED },
                { RV_CODE_BACKEND_DENIED, RV_STATUS_BLOCKED }, { RV_CODE_POLICY_ERROR, RV_STATUS_BLOCKED },
                { RV_CODE_PACKAGE_UNAVAILABLE, RV_STATUS_FAILED }, { RV_CODE_PACKAGE_INSTALL_FAILED, RV_STATUS_FAILED },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_classification c;

                rv_classification_refuse(rows[i].code, RV_PHASE_DECIDE, "known malicious", &c);
                if (c.status != rows[i].status || c.started != RV_STARTED_NO || !c.is_repeat_safe || c.is_retryable ||
                        c.has_exit_code || c.exit_signal || c.phase != RV_PHASE_DECIDE ||
                        strcmp(c.message, "known malicious") != 0)
                        fail_msg("%s is refused wrongly", rv_code_name(rows[i].code));
        }
}

static void refusal_cuts_a_long_message(void **state)
{
        struct rv_classification c;
        char text[2000];

        memset(text, 'm', sizeof(text) - 1);
        text[sizeof(text) - 1] = 0;
        rv_classification_refuse(RV_CODE_POLICY_ERROR, RV_PHASE_DECIDE, text, &c);
        assert_int_equal(strlen(c.message), sizeof(c.message) - 1);
}

static void exit_status(void **state)
{
        static const struct {
                const char *name;
                enum rv_status status;
                enum rv_code code;
                enum rv_started started;
                int exit_code, exit_signal, want;   /* exit_code -1: none */
        } rows[] = {
#define S(x) RV_STATUS_##x
#define C(x) RV_CODE_##x
#define YES RV_STARTED_YES
#define NO RV_STARTED_NO
#define MAYBE RV_STARTED_UNKNOWN
                { "completed", S(COMPLETED), C(OK), YES, 0, 0, 0 },
                { "own code", S(FAILED), C(EXIT_NONZERO), YES, 3, 0, 3 },
                { "own code 137 stays", S(FAILED), C(EXIT_NONZERO), YES, 137, 0, 137 },
                { "own code 255", S(FAILED), C(EXIT_NONZERO), YES, 255, 0, 255 },
                { "segv", S(FAILED), C(SIGNAL), YES, -1, SIGSEGV, 139 },
                { "kill", S(FAILED), C(SIGNAL), YES, -1, SIGKILL, 137 },
                { "timeout", S(FAILED), C(TIMEOUT), YES, -1, SIGKILL, 124 },
                { "timeout, may have started", S(FAILED), C(TIMEOUT), MAYBE, -1, 0, 124 },
                { "timeout of the start", S(FAILED), C(TIMEOUT), NO, -1, 0, 125 },
                { "memory", S(FAILED), C(MEMORY_LIMIT), YES, -1, SIGKILL, 137 },
                { "memory with exit 0", S(FAILED), C(MEMORY_LIMIT), YES, 0, 0, 137 },
                { "memory before the start", S(FAILED), C(MEMORY_LIMIT), NO, -1, 0, 125 },
                { "output", S(FAILED), C(OUTPUT_LIMIT), YES, -1, SIGKILL, 123 },
                { "cancelled", S(FAILED), C(CANCELLED), YES, -1, SIGKILL, 130 },
                { "cancelled before the start", S(FAILED), C(CANCELLED), NO, -1, 0, 130 },
                { "shutdown", S(FAILED), C(SHUTDOWN), YES, -1, SIGKILL, 143 },
                { "shutdown before the start", S(FAILED), C(SHUTDOWN), NO, -1, 0, 143 },
                { "backend lost", S(FAILED), C(BACKEND_LOST), YES, -1, 0, 125 },
                { "backend lost with a code", S(FAILED), C(BACKEND_LOST), YES, 3, 0, 125 },
                { "backend failed", S(FAILED), C(BACKEND_FAILED), NO, -1, 0, 125 },
                { "no runtime", S(FAILED), C(RUNTIME_UNAVAILABLE), NO, -1, 0, 125 },
                { "no package", S(FAILED), C(PACKAGE_UNAVAILABLE), NO, -1, 0, 125 },
                { "no install", S(FAILED), C(PACKAGE_INSTALL_FAILED), NO, -1, 0, 125 },
                { "blocked", S(BLOCKED), C(NETWORK_DENIED), NO, -1, 0, 126 },
                { "policy error", S(BLOCKED), C(POLICY_ERROR), NO, -1, 0, 126 },
                { "unknown after a timeout", S(OUTCOME_UNKNOWN), C(TIMEOUT), YES, -1, SIGKILL, 120 },
                { "unknown after a cancel", S(OUTCOME_UNKNOWN), C(CANCELLED), YES, -1, SIGKILL, 120 },
                { "unknown after a shutdown", S(OUTCOME_UNKNOWN), C(SHUTDOWN), MAYBE, -1, 0, 120 },
                { "unknown after a loss", S(OUTCOME_UNKNOWN), C(BACKEND_LOST), MAYBE, -1, 0, 120 },
                { "unknown after a kill", S(OUTCOME_UNKNOWN), C(SIGNAL), YES, -1, SIGKILL, 120 },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_classification c = {
                        .status = rows[i].status, .code = rows[i].code, .started = rows[i].started,
                        .has_exit_code = rows[i].exit_code >= 0, .exit_code = (uint8_t)RV_MAX(rows[i].exit_code, 0),
                        .exit_signal = (uint8_t)rows[i].exit_signal,
                };
                int got = rv_outcome_exit_status(&c);

                if (got != rows[i].want)
                        fail_msg("%s: exit status %d, not %d", rows[i].name, got, rows[i].want);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(signal_names),
                cmocka_unit_test(signal_names_agree_with_libc),
                cmocka_unit_test(codes_parse_back),
                cmocka_unit_test(refusals),
                cmocka_unit_test(refusal_cuts_a_long_message),
                cmocka_unit_test(exit_status),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
