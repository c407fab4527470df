#include "run/classify.h"

#include "base/text.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* What the table looks at: each fact is one bit, derived from the evidence once. */
enum fact {
        MEMORY_LIMIT = 1 << 0,      /* killed for want of memory, and the run's own limit was reached */
        HOST_MEMORY = 1 << 1,       /* the same, but the limit was another's */
        EXIT_ZERO = 1 << 2,         /* the program's own end, as PID 1 reaped it */
        EXIT_NONZERO = 1 << 3,
        SIGNAL = 1 << 4,
        BY_SIGKILL = 1 << 5,
        KILLED = 1 << 6,            /* the backend's kill was sent, and it died of it */
        NOT_STARTED = 1 << 7,
        STOP_TIMEOUT = 1 << 8,
        STOP_CANCELLED = 1 << 9,
        STOP_SHUTDOWN = 1 << 10,
        STOP_OUTPUT = 1 << 11,
        FAULT = 1 << 12,            /* the backend says that something went wrong */
        NO_RUNTIME = 1 << 13,
        SETUP_FAILED = 1 << 14,
        MISSING = 1 << 15,          /* the host cannot enforce what the plan asks */
        CONTRADICTION = 1 << 16,    /* an end without a start */
        STOP_GATE = 1 << 17,
        GATE_REFUSAL = 1 << 18,
};

struct judgement {
        const struct rv_evidence *e;
        const struct rv_observation *o;      /* never NULL */
        uint32_t facts;
        struct rv_classification *c;
};

static void RV_PRINTF(2, 3) say(struct judgement *j, const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(j->c->message, sizeof(j->c->message), fmt, ap);
        va_end(ap);
}

static void describe_ok(struct judgement *j)
{
        say(j, "exited with code 0");
}

static void describe_exit(struct judgement *j)
{
        say(j, "exited with code %d", WEXITSTATUS(j->o->wait_status));
}

static void describe_signal(struct judgement *j)
{
        char name[RV_SIGNAL_NAME_SIZE];

        rv_signal_name(WTERMSIG(j->o->wait_status), name);
        say(j, "killed by signal %s%s", name, j->facts & BY_SIGKILL ? ", which reeve did not send" : "");
}

static void describe_memory(struct judgement *j)
{
        j->c->detail.limit_mib = j->e->memory_mib;
        say(j, "stopped at its memory limit of %u MiB", j->e->memory_mib);
}

/* "30" or "0.25", in seconds. */
static const char *seconds(uint32_t ms, char ret[16])
{
        if (ms % 1000 == 0)
                snprintf(ret, 16, "%u", ms / 1000);
        else
                snprintf(ret, 16, "%u.%03u", ms / 1000, ms % 1000);
        return ret;
}

static void describe_timeout(struct judgement *j)
{
        uint32_t limit_ms = j->e->stop_limit_ms ? j->e->stop_limit_ms : j->e->timeout_s * 1000;
        char text[16];

        /* A program that was not executed cannot have spent the run's own time. */
        j->c->phase = j->facts & NOT_STARTED && j->e->stop_phase > RV_PHASE_START ? RV_PHASE_START : j->e->stop_phase;
        j->c->detail.limit_ms = limit_ms;
        if (j->c->phase == RV_PHASE_RUN)
                say(j, "stopped after %s s", seconds(limit_ms, text));
        else
                say(j, "%s took longer than %s s", rv_phase_name(j->c->phase), seconds(limit_ms, text));
}

static void describe_output(struct judgement *j)
{
        bool is_stderr = j->e->stop_stream == RV_STREAM_STDERR;

        j->c->detail.limit_bytes = j->e->output_ceiling_bytes;
        j->c->detail.stream = is_stderr ? "stderr" : "stdout";
        say(j, "stopped after writing %llu MiB to standard %s", (unsigned long long)(j->e->output_ceiling_bytes >> 20),
                is_stderr ? "error" : "output");
}

static void describe_cancelled(struct judgement *j)
{
        j->c->phase = j->e->stop_phase;
        say(j, j->facts & NOT_STARTED ? "cancelled before it started" : "cancelled");
}

static void describe_shutdown(struct judgement *j)
{
        j->c->phase = j->e->stop_phase;
        say(j, j->facts & NOT_STARTED ? "reeve was shut down before the program started"
                                      : "stopped because reeve was shut down");
}

static void describe_gate(struct judgement *j)
{
        j->c->phase = j->e->stop_phase;
        j->c->detail.cause = RV_CAUSE_GATE;
        say(j, "what serves the run's network was lost: %.*s", (int)sizeof(j->e->gate_text) - 64, j->e->gate_text);
}

static void describe_gate_refusal(struct judgement *j)
{
        rv_text_copy(j->c->detail.step, sizeof(j->c->detail.step), "serve the network");
        say(j, "the run's network cannot be served: %.*s", (int)sizeof(j->e->gate_text) - 64, j->e->gate_text);
}

/* The backend's own words where it has some, else ours; and the step and errno for both. */
static void describe_fault(struct judgement *j, const char *otherwise)
{
        const struct rv_observation *o = j->o;

        snprintf(j->c->detail.step, sizeof(j->c->detail.step), "%.*s", (int)sizeof(o->fault_step) - 1, o->fault_step);
        if (o->fault_errno > 0)
                j->c->detail.error = strerrorname_np(o->fault_errno);
        if (o->fault_text[0])
                say(j, "%.*s", (int)sizeof(o->fault_text) - 1, o->fault_text);
        else if (o->fault_step[0] && o->fault_errno > 0)
                say(j, "%s: %s: %s", otherwise, j->c->detail.step, strerrordesc_np(o->fault_errno));
        else if (o->fault_step[0])
                say(j, "%s: %s", otherwise, j->c->detail.step);
        else
                say(j, "%s", otherwise);
}

static void describe_runtime(struct judgement *j)
{
        const char *path = j->e->interpreter_path;
        char text[RV_REASON_SIZE];

        snprintf(j->c->detail.path, sizeof(j->c->detail.path), "%s", path ? path : "");
        snprintf(text, sizeof(text), "the interpreter %s cannot be started", path ? path : "of this runtime");
        describe_fault(j, text);
}

static void describe_failed(struct judgement *j)
{
        describe_fault(j, "the isolation could not be set up");
}

/* Found out by trying; told like what the plan is refused for when it is known before. */
static void describe_missing(struct judgement *j)
{
        describe_fault(j, "this host cannot enforce what the plan asks");
        memcpy(j->c->detail.missing, j->c->detail.step, sizeof(j->c->detail.missing));
        j->c->detail.step[0] = 0;
        j->c->phase = RV_PHASE_PLAN;
}

static void describe_host_memory(struct judgement *j)
{
        j->c->detail.cause = RV_CAUSE_HOST_MEMORY;
        describe_fault(j, "the host, or a limit around this run, ran out of memory; the run's own limit was not reached");
}

static void describe_watcher(struct judgement *j)
{
        j->c->detail.cause = RV_CAUSE_WATCHER;
        describe_fault(j, "what watched the run was lost");
}

static void describe_contradiction(struct judgement *j)
{
        j->c->detail.cause = RV_CAUSE_CONTRADICTION;
        say(j, "the backend reported the end of a program that it says was not started");
}

static void describe_unasked(struct judgement *j)
{
        j->c->detail.cause = RV_CAUSE_UNASKED_STOP;
        say(j, "the backend stopped the run without a known reason");
}

static void describe_early_end(struct judgement *j)
{
        j->c->detail.cause = RV_CAUSE_NO_REPORT;
        say(j, "the first process of the run ended before the program was started");
}

static void describe_no_report(struct judgement *j)
{
        j->c->detail.cause = RV_CAUSE_NO_REPORT;
        say(j, "the end of the run was not reported");
}

/*
 * Tried in order; the first row of which all of `all` and none of `none` hold. UNCERTAIN: with network access
 * and a possible start the outcome is unknown.
 */
#define UNCERTAIN true
static const struct row {
        const char *name;
        uint32_t all, none;
        enum rv_code code;
        bool is_uncertain;
        void (*describe)(struct judgement *j);
} table[] = {
        /* A counter of the kernel: it holds whatever the program, or a surviving parent, made of it. */
        { "own-memory-limit", MEMORY_LIMIT, 0, RV_CODE_MEMORY_LIMIT, UNCERTAIN, describe_memory },
        { "exit-zero", EXIT_ZERO, 0, RV_CODE_OK, false, describe_ok },
        { "killed-timeout", KILLED | STOP_TIMEOUT, 0, RV_CODE_TIMEOUT, UNCERTAIN, describe_timeout },
        { "killed-cancelled", KILLED | STOP_CANCELLED, 0, RV_CODE_CANCELLED, UNCERTAIN, describe_cancelled },
        { "killed-shutdown", KILLED | STOP_SHUTDOWN, 0, RV_CODE_SHUTDOWN, UNCERTAIN, describe_shutdown },
        { "killed-gate", KILLED | STOP_GATE, NOT_STARTED, RV_CODE_BACKEND_LOST, UNCERTAIN, describe_gate },
        { "killed-output", KILLED | STOP_OUTPUT, 0, RV_CODE_OUTPUT_LIMIT, UNCERTAIN, describe_output },
        /* Nothing was executed that a kill could have ended: that the core gave up is the cause. */
        { "held-timeout", NOT_STARTED | STOP_TIMEOUT, FAULT, RV_CODE_TIMEOUT, false, describe_timeout },
        { "held-cancelled", NOT_STARTED | STOP_CANCELLED, FAULT, RV_CODE_CANCELLED, false, describe_cancelled },
        { "held-shutdown", NOT_STARTED | STOP_SHUTDOWN, FAULT, RV_CODE_SHUTDOWN, false, describe_shutdown },
        { "held-gate-refused", NOT_STARTED | STOP_GATE | GATE_REFUSAL, FAULT, RV_CODE_BACKEND_FAILED, false, describe_gate_refusal },
        { "held-gate-lost", NOT_STARTED | STOP_GATE, FAULT, RV_CODE_BACKEND_LOST, false, describe_gate },
        { "host-memory", HOST_MEMORY, 0, RV_CODE_BACKEND_LOST, UNCERTAIN, describe_host_memory },
        { "killed-unasked", KILLED, NOT_STARTED, RV_CODE_BACKEND_LOST, UNCERTAIN, describe_unasked },
        { "exit-nonzero", EXIT_NONZERO, 0, RV_CODE_EXIT_NONZERO, false, describe_exit },
        /* Not sent by reeve and no counter tells of it: someone on the host, or the program itself. */
        { "sigkill", SIGNAL | BY_SIGKILL, 0, RV_CODE_SIGNAL, UNCERTAIN, describe_signal },
        { "signal", SIGNAL, 0, RV_CODE_SIGNAL, false, describe_signal },
        { "contradiction", CONTRADICTION, 0, RV_CODE_BACKEND_LOST, UNCERTAIN, describe_contradiction },
        { "missing-capability", NOT_STARTED | MISSING, 0, RV_CODE_BACKEND_DENIED, false, describe_missing },
        { "no-runtime", NOT_STARTED | NO_RUNTIME, 0, RV_CODE_RUNTIME_UNAVAILABLE, false, describe_runtime },
        { "setup-failed", NOT_STARTED | SETUP_FAILED, 0, RV_CODE_BACKEND_FAILED, false, describe_failed },
        { "lost-by-fault", FAULT, 0, RV_CODE_BACKEND_LOST, UNCERTAIN, describe_watcher },
        { "lost-before-start", NOT_STARTED, 0, RV_CODE_BACKEND_LOST, false, describe_early_end },
        { "no-report", 0, 0, RV_CODE_BACKEND_LOST, UNCERTAIN, describe_no_report },
};

size_t rv_classify_n_rows(void)
{
        return RV_N_ELEMENTS(table);
}

const char *rv_classify_row_name(size_t i)
{
        rv_require(i < RV_N_ELEMENTS(table));
        return table[i].name;
}

/*
 * Was the interpreter executed? What the backend says, unless other evidence speaks against it: then
 * "unknown", which is never safe to repeat. Only a program that was executed can be reaped or write.
 */
static enum rv_started judge_started(const struct rv_evidence *e, const struct rv_observation *o)
{
        bool has_trace = e->was_seen_started || e->stop == RV_STOP_OUTPUT_LIMIT;

        if (!e->observation)
                return e->was_seen_started ? RV_STARTED_YES : e->was_released ? RV_STARTED_UNKNOWN : RV_STARTED_NO;
        switch (o->started) {
        case RV_STARTED_YES:
                return RV_STARTED_YES;
        case RV_STARTED_NO:
                return has_trace || (o->has_wait_status && o->fault == RV_BACKEND_FAULT_NONE) ? RV_STARTED_UNKNOWN
                                                                                      : RV_STARTED_NO;
        default:
                return o->has_wait_status || e->was_seen_started ? RV_STARTED_YES : RV_STARTED_UNKNOWN;
        }
}

static bool is_by_sigkill(int wait_status)
{
        return WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGKILL;
}

/* The program's own end, if PID 1 reaped one that was executed. */
static uint32_t facts_of_end(const struct rv_observation *o, enum rv_started started)
{
        if (!o->has_wait_status || started == RV_STARTED_NO)
                return 0;
        if (o->started == RV_STARTED_NO)
                return CONTRADICTION;
        if (WIFEXITED(o->wait_status))
                return WEXITSTATUS(o->wait_status) == 0 ? EXIT_ZERO : EXIT_NONZERO;
        if (WIFSIGNALED(o->wait_status))
                return SIGNAL | (is_by_sigkill(o->wait_status) ? BY_SIGKILL : 0);
        return CONTRADICTION;
}

static uint32_t facts_of_fault(uint32_t fault)
{
        switch (fault) {
        case RV_BACKEND_FAULT_NONE: return 0;
        case RV_BACKEND_FAULT_RUNTIME: return FAULT | NO_RUNTIME;
        case RV_BACKEND_FAULT_SETUP: return FAULT | SETUP_FAILED;
        case RV_BACKEND_FAULT_HOST_MEMORY: return FAULT | HOST_MEMORY;
        case RV_BACKEND_FAULT_CAPABILITY: return FAULT | MISSING;
        default: return FAULT;
        }
}

static uint32_t facts_of_stop(enum rv_stop stop)
{
        switch (stop) {
        case RV_STOP_TIMEOUT: return STOP_TIMEOUT;
        case RV_STOP_CANCELLED: return STOP_CANCELLED;
        case RV_STOP_SHUTDOWN: return STOP_SHUTDOWN;
        case RV_STOP_OUTPUT_LIMIT: return STOP_OUTPUT;
        case RV_STOP_GATE: return STOP_GATE;
        default: return 0;   /* RV_STOP_MEMORY_LIMIT is believed only with the kernel's counters */
        }
}

static uint32_t collect_facts(const struct rv_evidence *e, const struct rv_observation *o, enum rv_started started)
{
        uint32_t facts = facts_of_end(o, started) | facts_of_fault(o->fault) | facts_of_stop(e->stop);

        if (started == RV_STARTED_NO)
                facts |= NOT_STARTED;
        if (e->is_gate_refusal)
                facts |= GATE_REFUSAL;
        if (o->n_oom_kills)
                facts |= o->is_memory_limit_reached ? MEMORY_LIMIT : HOST_MEMORY;
        /* A kill that took PID 1 along leaves no wait status; an end of another kind came before the kill. */
        if (o->was_stopped && (!o->has_wait_status || is_by_sigkill(o->wait_status)))
                facts |= KILLED;
        return facts;
}

static bool is_transient(int error)
{
        static const int transient[] = { EAGAIN, EBUSY, EINTR, EMFILE, ENFILE, ENOMEM, ENOSPC, ETIMEDOUT };

        for (size_t i = 0; i < RV_N_ELEMENTS(transient); i++)
                if (transient[i] == error)
                        return true;
        return false;
}

/* May the same request succeed later, as it is? (Whether a repeat is *safe* is another question.) */
static bool judge_retryable(const struct judgement *j)
{
        switch (j->c->code) {
        case RV_CODE_TIMEOUT: return j->c->phase != RV_PHASE_RUN;
        case RV_CODE_SHUTDOWN: return true;
        case RV_CODE_BACKEND_LOST: return j->facts & (NOT_STARTED | HOST_MEMORY);
        case RV_CODE_BACKEND_FAILED: return is_transient(j->o->fault_errno);
        default: return false;
        }
}

static void fill_exit(struct judgement *j)
{
        if (j->facts & (EXIT_ZERO | EXIT_NONZERO)) {
                j->c->has_exit_code = true;
                j->c->exit_code = (uint8_t)WEXITSTATUS(j->o->wait_status);
        } else if (j->facts & SIGNAL) {
                j->c->exit_signal = (uint8_t)WTERMSIG(j->o->wait_status);
        } else if (j->facts & (KILLED | MEMORY_LIMIT) && !(j->facts & NOT_STARTED)) {
                j->c->exit_signal = SIGKILL;   /* PID 1 went with it and could not say so */
        }
}

/* What the table reads where no backend gave an observation. */
static void fill_missing(const struct rv_evidence *e, struct rv_observation *ret)
{
        *ret = (struct rv_observation){ .struct_size = sizeof(*ret), .result_fd = -1 };
        if (e->start_error) {
                /* Its end of the channel closed: it died, whichever of the two is noticed first. */
                ret->fault = e->start_error == -EPIPE || e->start_error == -ECONNRESET ? RV_BACKEND_FAULT_LOST
                                                                                       : RV_BACKEND_FAULT_SETUP;
                ret->fault_errno = e->start_error < 0 ? -e->start_error : e->start_error;
                snprintf(ret->fault_step, sizeof(ret->fault_step), "%s", e->start_step ? e->start_step : "start");
        }
}

int rv_classify(const struct rv_evidence *e, struct rv_classification *ret)
{
        struct rv_observation missing;
        struct judgement j = { .e = e, .o = e->observation, .c = ret };
        const struct row *row = table;

        if ((unsigned)e->stop > RV_STOP_GATE || (unsigned)e->stop_phase >= RV_PHASE_MAX_)
                return rv_raise(-EINVAL);
        if (!j.o) {
                fill_missing(e, &missing);
                j.o = &missing;
        }
        *ret = (struct rv_classification){ .started = judge_started(e, j.o) };
        j.facts = collect_facts(e, j.o, ret->started);
        while ((j.facts & row->all) != row->all || j.facts & row->none)
                row++;
        ret->row = row->name;
        ret->code = row->code;
        ret->phase = j.facts & NOT_STARTED ? RV_PHASE_START : RV_PHASE_RUN;
        row->describe(&j);
        if (row->is_uncertain && e->has_network && ret->started != RV_STARTED_NO)
                ret->status = RV_STATUS_OUTCOME_UNKNOWN;
        else
                ret->status = rv_code_status(row->code);
        ret->is_repeat_safe = !e->has_network || ret->started == RV_STARTED_NO;
        ret->is_retryable = judge_retryable(&j);
        fill_exit(&j);
        return 0;
}
