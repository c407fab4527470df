/*
 * Classification: the named situations against a golden table, then every combination of evidence against
 * what must hold of any outcome, stated without looking at how rv_classify() decides.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "run/classify.h"

#define EXITED(code) ((code) << 8)
#define KILLED_BY(number) (number)
#define NO_WAIT (-1)

struct situation {
        const char *name;
        bool has_network;
        enum rv_stop stop;
        enum rv_phase stop_phase;
        uint32_t stop_limit_ms;
        uint32_t started, was_stopped, n_oom_kills, is_limit, fault;
        int wait_status;   /* NO_WAIT: PID 1 did not report */
        int fault_errno;
        bool is_gate_refusal, was_released, was_seen_started, has_no_observation;
        int start_error;
};

struct verdict {
        enum rv_status status;
        enum rv_code code;
        enum rv_phase phase;
        enum rv_started started;
        bool is_retryable, is_repeat_safe;
        const char *message, *cause;   /* NULL: not looked at; none */
        int exit_code, exit_signal;    /* -1, 0: none */
};

static void judge(const struct situation *s, struct rv_classification *ret)
{
        struct rv_observation o = {
                .struct_size = sizeof(o),
                .started = s->started,
                .was_stopped = s->was_stopped,
                .n_oom_kills = s->n_oom_kills,
                .is_memory_limit_reached = s->is_limit,
                .fault = s->fault,
                .fault_errno = s->fault_errno,
                .has_wait_status = s->wait_status != NO_WAIT,
                .wait_status = s->wait_status == NO_WAIT ? 0 : s->wait_status,
                .result_fd = -1,
        };
        struct rv_evidence e = {
                .has_network = s->has_network,
                .timeout_s = 30,
                .memory_mib = 512,
                .stop = s->stop,
                .stop_phase = s->stop_phase,
                .stop_limit_ms = s->stop_limit_ms,
                .output_ceiling_bytes = 64 << 20,
                .is_gate_refusal = s->is_gate_refusal,
                .gate_text = "the gate was ended by signal 9",
                .was_released = s->was_released,
                .was_seen_started = s->was_seen_started,
                .interpreter_path = "/usr/bin/python3",
                .observation = s->has_no_observation ? NULL : &o,
                .start_error = s->start_error,
        };

        if (s->fault)
                snprintf(o.fault_step, sizeof(o.fault_step), "mount proc");
        assert_int_equal(rv_classify(&e, ret), 0);
}

#define S(x) RV_STATUS_##x
#define C(x) RV_CODE_##x
#define P(x) RV_PHASE_##x
#define YES RV_STARTED_YES
#define NO RV_STARTED_NO
#define MAYBE RV_STARTED_UNKNOWN
#define NET .has_network = true
#define DIED .wait_status = NO_WAIT
#define STOP(x) .stop = RV_STOP_##x, .stop_phase = P(RUN)

static const struct golden {
        struct situation s;
        struct verdict v;
} golden[] = {
        { { "exit 0", .started = YES }, { S(COMPLETED), C(OK), P(RUN), YES, false, true, "exited with code 0", NULL, 0, 0 } },
        { { "exit 0, network", NET, .started = YES }, { S(COMPLETED), C(OK), P(RUN), YES, false, false, NULL, NULL, 0, 0 } },
        { { "exit 3", .started = YES, .wait_status = EXITED(3) }, { S(FAILED), C(EXIT_NONZERO), P(RUN), YES, false, true, "exited with code 3", NULL, 3, 0 } },
        { { "exit 3, network", NET, .started = YES, .wait_status = EXITED(3) }, { S(FAILED), C(EXIT_NONZERO), P(RUN), YES, false, false, NULL, NULL, 3, 0 } },
        { { "exit 137 is an exit code", .started = YES, .wait_status = EXITED(137) }, { S(FAILED), C(EXIT_NONZERO), P(RUN), YES, false, true, "exited with code 137", NULL, 137, 0 } },
        { { "abort", .started = YES, .wait_status = KILLED_BY(SIGABRT) }, { S(FAILED), C(SIGNAL), P(RUN), YES, false, true, "killed by signal ABRT", NULL, -1, SIGABRT } },
        { { "abort with core flag", .started = YES, .wait_status = KILLED_BY(SIGABRT) | 0x80 }, { S(FAILED), C(SIGNAL), P(RUN), YES, false, true, "killed by signal ABRT", NULL, -1, SIGABRT } },
        { { "own SIGKILL", .started = YES, .wait_status = KILLED_BY(SIGKILL) }, { S(FAILED), C(SIGNAL), P(RUN), YES, false, true, "killed by signal KILL, which reeve did not send", NULL, -1, SIGKILL } },
        { { "SIGKILL, network", NET, .started = YES, .wait_status = KILLED_BY(SIGKILL) }, { S(OUTCOME_UNKNOWN), C(SIGNAL), P(RUN), YES, false, false, NULL, NULL, -1, SIGKILL } },
        { { "SIGSEGV, network", NET, .started = YES, .wait_status = KILLED_BY(SIGSEGV) }, { S(FAILED), C(SIGNAL), P(RUN), YES, false, false, NULL, NULL, -1, SIGSEGV } },

        { { "timeout", STOP(TIMEOUT), .started = YES, .was_stopped = 1, DIED }, { S(FAILED), C(TIMEOUT), P(RUN), YES, false, true, "stopped after 30 s", NULL, -1, SIGKILL } },
        { { "timeout, reaped by PID 1", STOP(TIMEOUT), .started = YES, .was_stopped = 1, .wait_status = KILLED_BY(SIGKILL) }, { S(FAILED), C(TIMEOUT), P(RUN), YES, false, true, NULL, NULL, -1, SIGKILL } },
        { { "timeout, network", NET, STOP(TIMEOUT), .started = YES, .was_stopped = 1, DIED }, { S(OUTCOME_UNKNOWN), C(TIMEOUT), P(RUN), YES, false, false, NULL, NULL, -1, SIGKILL } },
        { { "timeout, may have started, network", NET, STOP(TIMEOUT), .started = MAYBE, .was_stopped = 1, DIED }, { S(OUTCOME_UNKNOWN), C(TIMEOUT), P(RUN), MAYBE, false, false, NULL, NULL, -1, SIGKILL } },
        { { "ended just before the timeout", STOP(TIMEOUT), .started = YES }, { S(COMPLETED), C(OK), P(RUN), YES, false, true, NULL, NULL, 0, 0 } },
        { { "ended while the kill was on its way", STOP(TIMEOUT), .started = YES, .was_stopped = 1, .wait_status = EXITED(4) }, { S(FAILED), C(EXIT_NONZERO), P(RUN), YES, false, true, NULL, NULL, 4, 0 } },
        { { "crashed while the kill was on its way", STOP(TIMEOUT), .started = YES, .was_stopped = 1, .wait_status = KILLED_BY(SIGSEGV) }, { S(FAILED), C(SIGNAL), P(RUN), YES, false, true, NULL, NULL, -1, SIGSEGV } },
        { { "killed itself before the timeout's kill", STOP(TIMEOUT), .started = YES, .wait_status = KILLED_BY(SIGKILL) }, { S(FAILED), C(SIGNAL), P(RUN), YES, false, true, NULL, NULL, -1, SIGKILL } },
        { { "start budget", .stop = RV_STOP_TIMEOUT, .stop_phase = P(START), .stop_limit_ms = 10000, .started = NO, .was_stopped = 1, DIED }, { S(FAILED), C(TIMEOUT), P(START), NO, true, true, "start took longer than 10 s", NULL, -1, 0 } },
        { { "start budget, network", NET, .stop = RV_STOP_TIMEOUT, .stop_phase = P(START), .stop_limit_ms = 10000, .started = NO, DIED }, { S(FAILED), C(TIMEOUT), P(START), NO, true, true, NULL, NULL, -1, 0 } },
        { { "start budget, started meanwhile, network", NET, .stop = RV_STOP_TIMEOUT, .stop_phase = P(START), .stop_limit_ms = 10000, .started = YES, .was_stopped = 1, DIED }, { S(OUTCOME_UNKNOWN), C(TIMEOUT), P(START), YES, true, false, NULL, NULL, -1, SIGKILL } },
        { { "decide budget, no backend asked", .stop = RV_STOP_TIMEOUT, .stop_phase = P(DECIDE), .stop_limit_ms = 250, .has_no_observation = true }, { S(FAILED), C(TIMEOUT), P(DECIDE), NO, true, true, "decide took longer than 0.250 s", NULL, -1, 0 } },
        { { "queue budget", NET, .stop = RV_STOP_TIMEOUT, .stop_phase = P(QUEUE), .stop_limit_ms = 60000, .has_no_observation = true }, { S(FAILED), C(TIMEOUT), P(QUEUE), NO, true, true, "queue took longer than 60 s", NULL, -1, 0 } },

        { { "cancelled", STOP(CANCELLED), .started = YES, .was_stopped = 1, DIED }, { S(FAILED), C(CANCELLED), P(RUN), YES, false, true, "cancelled", NULL, -1, SIGKILL } },
        { { "cancelled, network", NET, STOP(CANCELLED), .started = YES, .was_stopped = 1, DIED }, { S(OUTCOME_UNKNOWN), C(CANCELLED), P(RUN), YES, false, false, NULL, NULL, -1, SIGKILL } },
        { { "cancelled while held", .stop = RV_STOP_CANCELLED, .stop_phase = P(START), .started = NO, .was_stopped = 1, DIED }, { S(FAILED), C(CANCELLED), P(START), NO, false, true, "cancelled before it started", NULL, -1, 0 } },
        { { "cancelled while held, network", NET, .stop = RV_STOP_CANCELLED, .stop_phase = P(START), .started = NO, DIED }, { S(FAILED), C(CANCELLED), P(START), NO, false, true, NULL, NULL, -1, 0 } },
        { { "cancelled in the queue", .stop = RV_STOP_CANCELLED, .stop_phase = P(QUEUE), .has_no_observation = true }, { S(FAILED), C(CANCELLED), P(QUEUE), NO, false, true, NULL, NULL, -1, 0 } },
        { { "finished before the cancel", STOP(CANCELLED), .started = YES }, { S(COMPLETED), C(OK), P(RUN), YES, false, true, NULL, NULL, 0, 0 } },
        { { "set-up failed, then cancelled", .stop = RV_STOP_CANCELLED, .stop_phase = P(START), .started = NO, .fault = RV_BACKEND_FAULT_SETUP, .fault_errno = EPERM, DIED }, { S(FAILED), C(BACKEND_FAILED), P(START), NO, false, true, NULL, NULL, -1, 0 } },
        { { "shutdown", STOP(SHUTDOWN), .started = YES, .was_stopped = 1, DIED }, { S(FAILED), C(SHUTDOWN), P(RUN), YES, true, true, "stopped because reeve was shut down", NULL, -1, SIGKILL } },
        { { "shutdown, network", NET, STOP(SHUTDOWN), .started = YES, .was_stopped = 1, DIED }, { S(OUTCOME_UNKNOWN), C(SHUTDOWN), P(RUN), YES, true, false, NULL, NULL, -1, SIGKILL } },
        { { "shutdown before the start", .stop = RV_STOP_SHUTDOWN, .stop_phase = P(START), .started = NO, DIED }, { S(FAILED), C(SHUTDOWN), P(START), NO, true, true, NULL, NULL, -1, 0 } },
        { { "gate lost", STOP(GATE), .started = YES, .was_stopped = 1, DIED }, { S(FAILED), C(BACKEND_LOST), P(RUN), YES, false, true, "what serves the run's network was lost: the gate was ended by signal 9", RV_CAUSE_GATE, -1, SIGKILL } },
        { { "gate lost, network", NET, STOP(GATE), .started = YES, .was_stopped = 1, DIED }, { S(OUTCOME_UNKNOWN), C(BACKEND_LOST), P(RUN), YES, false, false, NULL, RV_CAUSE_GATE, -1, SIGKILL } },
        { { "gate lost when the program had ended, network", NET, STOP(GATE), .started = YES }, { S(COMPLETED), C(OK), P(RUN), YES, false, false, NULL, NULL, 0, 0 } },
        { { "gate lost before the start, network", NET, .stop = RV_STOP_GATE, .stop_phase = P(START), .started = NO, .was_stopped = 1, DIED }, { S(FAILED), C(BACKEND_LOST), P(START), NO, true, true, NULL, RV_CAUSE_GATE, -1, 0 } },
        { { "gate refuses, network", NET, .stop = RV_STOP_GATE, .stop_phase = P(START), .is_gate_refusal = true, .started = NO, .was_stopped = 1, DIED }, { S(FAILED), C(BACKEND_FAILED), P(START), NO, false, true, "the run's network cannot be served: the gate was ended by signal 9", NULL, -1, 0 } },
        { { "flood", STOP(OUTPUT_LIMIT), .started = YES, .was_stopped = 1, DIED }, { S(FAILED), C(OUTPUT_LIMIT), P(RUN), YES, false, true, "stopped after writing 64 MiB to standard output", NULL, -1, SIGKILL } },
        { { "flood, network", NET, STOP(OUTPUT_LIMIT), .started = YES, .was_stopped = 1, DIED }, { S(OUTCOME_UNKNOWN), C(OUTPUT_LIMIT), P(RUN), YES, false, false, NULL, NULL, -1, SIGKILL } },
        { { "flood that ended by itself", STOP(OUTPUT_LIMIT), .started = YES }, { S(COMPLETED), C(OK), P(RUN), YES, false, true, NULL, NULL, 0, 0 } },
        { { "output of a program said not to have started, network", NET, STOP(OUTPUT_LIMIT), .started = NO, .was_stopped = 1, DIED }, { S(OUTCOME_UNKNOWN), C(OUTPUT_LIMIT), P(RUN), MAYBE, false, false, NULL, NULL, -1, SIGKILL } },

        { { "memory limit, whole group killed", .started = YES, .n_oom_kills = 1, .is_limit = 1, DIED }, { S(FAILED), C(MEMORY_LIMIT), P(RUN), YES, false, true, "stopped at its memory limit of 512 MiB", NULL, -1, SIGKILL } },
        { { "memory limit, program killed", .started = YES, .n_oom_kills = 1, .is_limit = 1, .wait_status = KILLED_BY(SIGKILL) }, { S(FAILED), C(MEMORY_LIMIT), P(RUN), YES, false, true, NULL, NULL, -1, SIGKILL } },
        { { "memory limit, a child was killed and the parent exits 0", .started = YES, .n_oom_kills = 1, .is_limit = 1 }, { S(FAILED), C(MEMORY_LIMIT), P(RUN), YES, false, true, NULL, NULL, 0, 0 } },
        { { "memory limit, stopped by the backend", STOP(MEMORY_LIMIT), .started = YES, .n_oom_kills = 1, .is_limit = 1, .was_stopped = 1, DIED }, { S(FAILED), C(MEMORY_LIMIT), P(RUN), YES, false, true, NULL, NULL, -1, SIGKILL } },
        { { "memory limit, then the time limit", STOP(TIMEOUT), .started = YES, .n_oom_kills = 1, .is_limit = 1, .was_stopped = 1, DIED }, { S(FAILED), C(MEMORY_LIMIT), P(RUN), YES, false, true, NULL, NULL, -1, SIGKILL } },
        { { "memory limit, network", NET, .started = YES, .n_oom_kills = 1, .is_limit = 1 }, { S(OUTCOME_UNKNOWN), C(MEMORY_LIMIT), P(RUN), YES, false, false, NULL, NULL, 0, 0 } },
        { { "limit reached without a kill", .started = YES, .is_limit = 1, .wait_status = EXITED(1) }, { S(FAILED), C(EXIT_NONZERO), P(RUN), YES, false, true, NULL, NULL, 1, 0 } },
        { { "host out of memory, program killed", .started = YES, .n_oom_kills = 1, .wait_status = KILLED_BY(SIGKILL) }, { S(FAILED), C(BACKEND_LOST), P(RUN), YES, true, true, NULL, RV_CAUSE_HOST_MEMORY, -1, SIGKILL } },
        { { "host out of memory, all killed", .started = YES, .n_oom_kills = 1, DIED }, { S(FAILED), C(BACKEND_LOST), P(RUN), YES, true, true, NULL, RV_CAUSE_HOST_MEMORY, -1, 0 } },
        { { "host out of memory, network", NET, .started = YES, .fault = RV_BACKEND_FAULT_HOST_MEMORY, DIED }, { S(OUTCOME_UNKNOWN), C(BACKEND_LOST), P(RUN), YES, true, false, NULL, RV_CAUSE_HOST_MEMORY, -1, 0 } },
        { { "host out of memory before the start", NET, .started = NO, .fault = RV_BACKEND_FAULT_HOST_MEMORY, DIED }, { S(FAILED), C(BACKEND_LOST), P(START), NO, true, true, NULL, RV_CAUSE_HOST_MEMORY, -1, 0 } },
        { { "host out of memory, the rest killed by the backend", STOP(MEMORY_LIMIT), .started = YES, .n_oom_kills = 1, .was_stopped = 1, DIED }, { S(FAILED), C(BACKEND_LOST), P(RUN), YES, true, true, NULL, RV_CAUSE_HOST_MEMORY, -1, SIGKILL } },
        { { "shutdown before the start, host short of memory", .stop = RV_STOP_SHUTDOWN, .stop_phase = P(START), .started = NO, .n_oom_kills = 1, DIED }, { S(FAILED), C(SHUTDOWN), P(START), NO, true, true, NULL, NULL, -1, 0 } },
        { { "host killed a child, program exits 0", .started = YES, .n_oom_kills = 1 }, { S(COMPLETED), C(OK), P(RUN), YES, false, true, NULL, NULL, 0, 0 } },

        { { "no interpreter", NET, .started = NO, .fault = RV_BACKEND_FAULT_RUNTIME, .fault_errno = ENOENT, DIED }, { S(FAILED), C(RUNTIME_UNAVAILABLE), P(START), NO, false, true, "the interpreter /usr/bin/python3 cannot be started: mount proc: No such file or directory", NULL, -1, 0 } },
        { { "no interpreter, its child reaped", .started = NO, .fault = RV_BACKEND_FAULT_RUNTIME, .fault_errno = ENOENT, .wait_status = EXITED(127) }, { S(FAILED), C(RUNTIME_UNAVAILABLE), P(START), NO, false, true, NULL, NULL, -1, 0 } },
        { { "set-up failed", .started = NO, .fault = RV_BACKEND_FAULT_SETUP, .fault_errno = EPERM, DIED }, { S(FAILED), C(BACKEND_FAILED), P(START), NO, false, true, "the isolation could not be set up: mount proc: Operation not permitted", NULL, -1, 0 } },
        { { "missing capability", NET, .started = NO, .fault = RV_BACKEND_FAULT_CAPABILITY, .fault_errno = EACCES, DIED }, { S(BLOCKED), C(BACKEND_DENIED), P(PLAN), NO, false, true, "this host cannot enforce what the plan asks: mount proc: Permission denied", NULL, -1, 0 } },
        { { "missing capability after the start, network", NET, .started = YES, .fault = RV_BACKEND_FAULT_CAPABILITY, DIED }, { S(OUTCOME_UNKNOWN), C(BACKEND_LOST), P(RUN), YES, false, false, NULL, RV_CAUSE_WATCHER, -1, 0 } },
        { { "set-up failed for now", .started = NO, .fault = RV_BACKEND_FAULT_SETUP, .fault_errno = ENOSPC, DIED }, { S(FAILED), C(BACKEND_FAILED), P(START), NO, true, true, NULL, NULL, -1, 0 } },
        { { "start() refused by a dead spawner", .has_no_observation = true, .start_error = -EPIPE }, { S(FAILED), C(BACKEND_LOST), P(START), NO, true, true, "what watched the run was lost: start: Broken pipe", RV_CAUSE_WATCHER, -1, 0 } },
        { { "start() refused", .has_no_observation = true, .start_error = -EMFILE }, { S(FAILED), C(BACKEND_FAILED), P(START), NO, true, true, "the isolation could not be set up: start: Too many open files", NULL, -1, 0 } },
        { { "never started, no reason", NET, .started = NO, DIED }, { S(FAILED), C(BACKEND_LOST), P(START), NO, true, true, "the first process of the run ended before the program was started", RV_CAUSE_NO_REPORT, -1, 0 } },
        { { "lost before the start", NET, .started = NO, .fault = RV_BACKEND_FAULT_LOST, DIED }, { S(FAILED), C(BACKEND_LOST), P(START), NO, true, true, NULL, RV_CAUSE_WATCHER, -1, 0 } },
        { { "lost", .started = YES, .fault = RV_BACKEND_FAULT_LOST, DIED }, { S(FAILED), C(BACKEND_LOST), P(RUN), YES, false, true, NULL, RV_CAUSE_WATCHER, -1, 0 } },
        { { "lost, network", NET, .started = MAYBE, .fault = RV_BACKEND_FAULT_LOST, DIED }, { S(OUTCOME_UNKNOWN), C(BACKEND_LOST), P(RUN), MAYBE, false, false, NULL, RV_CAUSE_WATCHER, -1, 0 } },
        { { "lost after the end was told", .started = YES, .fault = RV_BACKEND_FAULT_LOST }, { S(COMPLETED), C(OK), P(RUN), YES, false, true, NULL, NULL, 0, 0 } },
        { { "a fault of an unknown kind", .started = YES, .fault = 99, DIED }, { S(FAILED), C(BACKEND_LOST), P(RUN), YES, false, true, NULL, RV_CAUSE_WATCHER, -1, 0 } },
        { { "set-up failed after the start, network", NET, .started = YES, .fault = RV_BACKEND_FAULT_SETUP, DIED }, { S(OUTCOME_UNKNOWN), C(BACKEND_LOST), P(RUN), YES, false, false, NULL, RV_CAUSE_WATCHER, -1, 0 } },
        { { "no end told", .started = YES, DIED }, { S(FAILED), C(BACKEND_LOST), P(RUN), YES, false, true, NULL, RV_CAUSE_NO_REPORT, -1, 0 } },
        { { "no observation after go", NET, .has_no_observation = true, .was_released = true }, { S(OUTCOME_UNKNOWN), C(BACKEND_LOST), P(RUN), MAYBE, false, false, NULL, RV_CAUSE_NO_REPORT, -1, 0 } },
        { { "no observation after the start", .has_no_observation = true, .was_released = true, .was_seen_started = true, STOP(TIMEOUT) }, { S(FAILED), C(BACKEND_LOST), P(RUN), YES, false, true, NULL, RV_CAUSE_NO_REPORT, -1, 0 } },
        { { "killed for no reason", .started = YES, .was_stopped = 1, DIED }, { S(FAILED), C(BACKEND_LOST), P(RUN), YES, false, true, NULL, RV_CAUSE_UNASKED_STOP, -1, SIGKILL } },
        { { "killed for memory that no counter shows, network", NET, STOP(MEMORY_LIMIT), .started = YES, .was_stopped = 1, DIED }, { S(OUTCOME_UNKNOWN), C(BACKEND_LOST), P(RUN), YES, false, false, NULL, RV_CAUSE_UNASKED_STOP, -1, SIGKILL } },
        { { "an end without a start, network", NET, .started = NO }, { S(OUTCOME_UNKNOWN), C(BACKEND_LOST), P(RUN), MAYBE, false, false, NULL, RV_CAUSE_CONTRADICTION, -1, 0 } },
        { { "a wait status of a stopped process", .started = YES, .wait_status = 0x137f }, { S(FAILED), C(BACKEND_LOST), P(RUN), YES, false, true, NULL, RV_CAUSE_CONTRADICTION, -1, 0 } },
        { { "not sure of the start, but reaped", NET, .started = MAYBE, .wait_status = EXITED(0) }, { S(COMPLETED), C(OK), P(RUN), YES, false, false, NULL, NULL, 0, 0 } },
        { { "a started of no meaning, network", NET, .started = 77, DIED }, { S(OUTCOME_UNKNOWN), C(BACKEND_LOST), P(RUN), MAYBE, false, false, NULL, RV_CAUSE_NO_REPORT, -1, 0 } },
        { { "seen to start, said not to have, network", NET, .started = NO, .was_seen_started = true, DIED }, { S(OUTCOME_UNKNOWN), C(BACKEND_LOST), P(RUN), MAYBE, false, false, NULL, RV_CAUSE_NO_REPORT, -1, 0 } },
};

static bool same_text(const char *a, const char *b)
{
        return a && b ? strcmp(a, b) == 0 : a == b;
}

static void named_situations(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(golden); i++) {
                const struct verdict *v = &golden[i].v;
                struct rv_classification c;

                judge(&golden[i].s, &c);
                if (c.status != v->status || c.code != v->code || c.phase != v->phase || c.started != v->started ||
                        c.is_retryable != v->is_retryable || c.is_repeat_safe != v->is_repeat_safe ||
                        (v->message && strcmp(c.message, v->message) != 0) || !same_text(c.detail.cause, v->cause) ||
                        (c.has_exit_code ? c.exit_code : -1) != v->exit_code || c.exit_signal != v->exit_signal)
                        fail_msg(
                                "%s: row %s: %s, %s, phase %s, started %s, retryable %d, repeat_safe %d, \"%s\", cause %s, exit %d signal %d",
                                golden[i].s.name, c.row, rv_status_name(c.status), rv_code_name(c.code),
                                rv_phase_name(c.phase), rv_started_name(c.started), c.is_retryable, c.is_repeat_safe,
                                c.message, c.detail.cause ? c.detail.cause : "-", c.has_exit_code ? c.exit_code : -1,
                                c.exit_signal);
        }
}

static void details(void **state)
{
        struct situation timeout = { "timeout", STOP(TIMEOUT), .started = YES, .was_stopped = 1, DIED };
        struct situation memory = { "memory", .started = YES, .n_oom_kills = 1, .is_limit = 1, DIED };
        struct situation flood = { "flood", STOP(OUTPUT_LIMIT), .started = YES, .was_stopped = 1, DIED };
        struct situation runtime = { "runtime", .started = NO, .fault = RV_BACKEND_FAULT_RUNTIME, .fault_errno = ENOENT, DIED };
        struct situation missing = { "missing", .started = NO, .fault = RV_BACKEND_FAULT_CAPABILITY, DIED };
        struct rv_classification c;

        judge(&timeout, &c);
        assert_int_equal(c.detail.limit_ms, 30000);
        judge(&memory, &c);
        assert_int_equal(c.detail.limit_mib, 512);
        judge(&flood, &c);
        assert_int_equal(c.detail.limit_bytes, 64 << 20);
        assert_string_equal(c.detail.stream, "stdout");
        judge(&runtime, &c);
        assert_string_equal(c.detail.path, "/usr/bin/python3");
        assert_string_equal(c.detail.step, "mount proc");
        assert_string_equal(c.detail.error, "ENOENT");
        judge(&missing, &c);
        assert_string_equal(c.detail.missing, "mount proc");
        assert_string_equal(c.detail.step, "");
}

/* A plugin's texts fill their fields to the last byte, without a NUL. */
static void texts_without_end(void **state)
{
        struct rv_observation o = { .struct_size = sizeof(o),
                .started = NO,
                .fault = RV_BACKEND_FAULT_SETUP,
                .fault_errno = 9999,
                .result_fd = -1 };
        struct rv_evidence e = { .observation = &o };
        struct rv_classification c;

        memset(o.fault_step, 's', sizeof(o.fault_step));
        memset(o.fault_text, 't', sizeof(o.fault_text));
        assert_int_equal(rv_classify(&e, &c), 0);
        assert_int_equal(strlen(c.detail.step), sizeof(o.fault_step) - 1);
        assert_int_equal(strlen(c.message), sizeof(o.fault_text) - 1);
        assert_null(c.detail.error);
}

static void bad_evidence_is_refused(void **state)
{
        struct rv_evidence stop = { .stop = (enum rv_stop)77 }, phase = { .stop_phase = RV_PHASE_MAX_ };
        struct rv_classification c = { .exit_code = 99 };

        assert_int_equal(rv_classify(&stop, &c), -EINVAL);
        assert_int_equal(rv_classify(&phase, &c), -EINVAL);
        assert_int_equal(c.exit_code, 99);   /* untouched on failure */
}

/* ---- every combination ---- */

#define HOLDS(expr)                                                                                            \
        do {                                                                                                   \
                if (!(expr))                                                                                   \
                        broken(s, c, #expr);                                                                   \
        } while (0)

static void broken(const struct situation *s, const struct rv_classification *c, const char *what)
{
        fail_msg(
                "not so: %s. network %d stop %d in %s started %u wait %d was_stopped %u oom %u limit %u fault %u seen %d observation %d: "
                "row %s: %s %s phase %s started %s repeat_safe %d",
                what, s->has_network, s->stop, rv_phase_name(s->stop_phase), s->started, s->wait_status, s->was_stopped,
                s->n_oom_kills, s->is_limit, s->fault, s->was_seen_started, !s->has_no_observation, c->row,
                rv_status_name(c->status), rv_code_name(c->code), rv_phase_name(c->phase), rv_started_name(c->started),
                c->is_repeat_safe);
}

static enum rv_stop stop_of(enum rv_code code)
{
        switch (code) {
        case RV_CODE_TIMEOUT: return RV_STOP_TIMEOUT;
        case RV_CODE_CANCELLED: return RV_STOP_CANCELLED;
        case RV_CODE_SHUTDOWN: return RV_STOP_SHUTDOWN;
        case RV_CODE_OUTPUT_LIMIT: return RV_STOP_OUTPUT_LIMIT;
        default: return RV_STOP_NONE;
        }
}

static bool may_be_unknown(enum rv_code code, const struct rv_classification *c)
{
        return stop_of(code) || code == RV_CODE_MEMORY_LIMIT || code == RV_CODE_BACKEND_LOST ||
                (code == RV_CODE_SIGNAL && c->exit_signal == SIGKILL);
}

/* What section 6 of the contract says of any outcome. */
static void check_status(const struct situation *s, const struct rv_classification *c)
{
        bool may_have_acted = s->has_network && c->started != NO;
        bool has_own_end = !s->has_no_observation && s->wait_status != NO_WAIT && c->started == YES;

        HOLDS(c->status < RV_STATUS_MAX_ &&
                (c->code <= RV_CODE_RUNTIME_UNAVAILABLE || c->code == RV_CODE_BACKEND_DENIED));
        HOLDS((c->status == RV_STATUS_BLOCKED) == (c->code == RV_CODE_BACKEND_DENIED));
        HOLDS(c->status != RV_STATUS_BLOCKED ||
                (c->started == NO && s->fault == RV_BACKEND_FAULT_CAPABILITY && c->phase == RV_PHASE_PLAN));
        HOLDS(c->message[0] && c->row && c->phase < RV_PHASE_MAX_);
        HOLDS((c->status == RV_STATUS_COMPLETED) == (c->code == RV_CODE_OK));
        HOLDS((c->code == RV_CODE_OK) ==
                (has_own_end && s->wait_status == EXITED(0) && !(s->n_oom_kills && s->is_limit)));
        HOLDS((c->status == RV_STATUS_OUTCOME_UNKNOWN) == (may_have_acted && may_be_unknown(c->code, c)));
        HOLDS(c->is_repeat_safe == !may_have_acted);
        HOLDS(c->code != RV_CODE_EXIT_NONZERO || (has_own_end && c->has_exit_code && c->exit_code != 0));
        HOLDS(c->code != RV_CODE_SIGNAL || (has_own_end && c->exit_signal != 0));
        HOLDS(!(c->has_exit_code && c->exit_signal));
        HOLDS(c->started != NO || (!c->has_exit_code && !c->exit_signal));
}

static void check_cause(const struct situation *s, const struct rv_classification *c)
{
        bool is_dead_by_kill = s->was_stopped && !s->has_no_observation &&
                (s->wait_status == NO_WAIT || s->wait_status == KILLED_BY(SIGKILL));

        if (stop_of(c->code)) {
                HOLDS(s->stop == stop_of(c->code));
                HOLDS(is_dead_by_kill || c->started == NO);
        }
        HOLDS(c->code != RV_CODE_OUTPUT_LIMIT || is_dead_by_kill);
        HOLDS(c->code != RV_CODE_TIMEOUT || c->phase == s->stop_phase ||
                (c->started == NO && c->phase == RV_PHASE_START));
        HOLDS((c->code == RV_CODE_MEMORY_LIMIT) == (!s->has_no_observation && s->n_oom_kills && s->is_limit));
        HOLDS(c->code != RV_CODE_RUNTIME_UNAVAILABLE || (c->started == NO && s->fault == RV_BACKEND_FAULT_RUNTIME));
        HOLDS(c->code != RV_CODE_BACKEND_FAILED || c->started == NO);
        HOLDS((c->code == RV_CODE_BACKEND_LOST) == (c->detail.cause != NULL));
        if (c->detail.cause && strcmp(c->detail.cause, RV_CAUSE_GATE) == 0)
                HOLDS(s->stop == RV_STOP_GATE && (is_dead_by_kill || c->started == NO) &&
                        c->is_retryable ==
                                (c->started == NO || s->n_oom_kills || s->fault == RV_BACKEND_FAULT_HOST_MEMORY));
        if (c->detail.cause && strcmp(c->detail.cause, RV_CAUSE_HOST_MEMORY) == 0)
                HOLDS(c->is_retryable && (s->fault == RV_BACKEND_FAULT_HOST_MEMORY || s->n_oom_kills));
        /* Never claimed as not started against any sign that it was. */
        if (c->started == NO)
                HOLDS(!s->was_seen_started && (s->has_no_observation ? !s->was_released : s->started == NO));
}

/* What a backend cannot know must not change what it saw. */
static void check_twice(const struct situation *s, const struct rv_classification *c)
{
        struct rv_classification again;
        struct situation other = *s;

        judge(s, &again);
        HOLDS(again.status == c->status && again.code == c->code && again.started == c->started && again.row == c->row);
        HOLDS(strcmp(again.message, c->message) == 0 && again.is_repeat_safe == c->is_repeat_safe);
        other.has_network = !s->has_network;
        judge(&other, &again);
        HOLDS(again.code == c->code && again.phase == c->phase && again.started == c->started &&
                again.is_retryable == c->is_retryable);
        HOLDS(rv_outcome_exit_status(c) >= 0 && rv_outcome_exit_status(c) <= 255);
        HOLDS((rv_outcome_exit_status(c) == 0) == (c->status == RV_STATUS_COMPLETED));
}

#define N_WAITS 5
#define N_STARTED 3
#define N_STOPS 7
#define N_FAULTS 6

static size_t take_digit(size_t *n, size_t base)
{
        size_t digit = *n % base;

        *n /= base;
        return digit;
}

static bool make_situation(size_t n, struct situation *ret)
{
        static const int waits[N_WAITS] = { NO_WAIT, EXITED(0), EXITED(3), KILLED_BY(SIGKILL), KILLED_BY(SIGSEGV) };

        *ret = (struct situation){
                .has_network = take_digit(&n, 2),
                .started = (uint32_t)take_digit(&n, N_STARTED),
                .stop = (enum rv_stop)take_digit(&n, N_STOPS),
                .stop_phase = take_digit(&n, 2) ? RV_PHASE_RUN : RV_PHASE_START,
                .wait_status = waits[take_digit(&n, N_WAITS)],
                .was_stopped = (uint32_t)take_digit(&n, 2),
                .n_oom_kills = (uint32_t)take_digit(&n, 2),
                .is_limit = (uint32_t)take_digit(&n, 2),
                .fault = (uint32_t)take_digit(&n, N_FAULTS),
                .is_gate_refusal = take_digit(&n, 2),
                .was_released = take_digit(&n, 2),
                .was_seen_started = take_digit(&n, 2),
                .has_no_observation = take_digit(&n, 2),
        };
        return n == 0;
}

static void every_combination(void **state)
{
        bool was_row_reached[64] = { false };
        struct situation s;
        size_t n = 0;

        assert_true(rv_classify_n_rows() <= RV_N_ELEMENTS(was_row_reached));
        for (; make_situation(n, &s); n++) {
                struct rv_classification c;

                judge(&s, &c);
                check_status(&s, &c);
                check_cause(&s, &c);
                check_twice(&s, &c);
                for (size_t i = 0; i < rv_classify_n_rows(); i++)
                        if (strcmp(rv_classify_row_name(i), c.row) == 0)
                                was_row_reached[i] = true;
        }
        assert_int_equal(n, 2 * N_STARTED * N_STOPS * 2 * N_WAITS * 2 * 2 * 2 * N_FAULTS * 2 * 2 * 2 * 2);
        for (size_t i = 0; i < rv_classify_n_rows(); i++)
                if (!was_row_reached[i])
                        fail_msg("no evidence reaches row %s", rv_classify_row_name(i));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(named_situations), cmocka_unit_test(details), cmocka_unit_test(texts_without_end),
                cmocka_unit_test(bad_evidence_is_refused), cmocka_unit_test(every_combination),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
