#include "run/reason.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define EXIT_BLOCKED 126
#define EXIT_OUTCOME_UNKNOWN 120
#define EXIT_NOT_RUN 125

static const char *const status_names[] = {
#define X(name, text) text,
        RV_STATUSES(X)
#undef X
};

static const struct {
        const char *name;
        enum rv_status status;
        int exit_status;
} codes[] = {
#define X(name, text, status, exit_status) { text, RV_STATUS_##status, exit_status },
        RV_CODES(X)
#undef X
};

static const char *const phase_names[] = {
#define X(name, text) text,
        RV_PHASES(X)
#undef X
};

const char *rv_status_name(enum rv_status status)
{
        rv_require((unsigned)status < RV_STATUS_MAX_);
        return status_names[status];
}

const char *rv_code_name(enum rv_code code)
{
        rv_require((unsigned)code < RV_CODE_MAX_);
        return codes[code].name;
}

enum rv_status rv_code_status(enum rv_code code)
{
        rv_require((unsigned)code < RV_CODE_MAX_);
        return codes[code].status;
}

const char *rv_phase_name(enum rv_phase phase)
{
        rv_require((unsigned)phase < RV_PHASE_MAX_);
        return phase_names[phase];
}

const char *rv_started_name(enum rv_started started)
{
        switch (started) {
        case RV_STARTED_NO: return "no";
        case RV_STARTED_YES: return "yes";
        case RV_STARTED_UNKNOWN: break;
        }
        return "unknown";
}

int rv_code_parse(const char *name, enum rv_code *ret)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(codes); i++)
                if (strcmp(codes[i].name, name) == 0) {
                        *ret = (enum rv_code)i;
                        return 0;
                }
        return rv_raise(-ENOENT);
}

void rv_signal_name(int number, char ret[RV_SIGNAL_NAME_SIZE])
{
#define S(name) [SIG##name] = #name
        static const char *const names[] = {
                S(HUP), S(INT), S(QUIT), S(ILL), S(TRAP), S(ABRT), S(BUS), S(FPE), S(KILL), S(USR1), S(SEGV),
                S(USR2), S(PIPE), S(ALRM), S(TERM), S(STKFLT), S(CHLD), S(CONT), S(STOP), S(TSTP), S(TTIN),
                S(TTOU), S(URG), S(XCPU), S(XFSZ), S(VTALRM), S(PROF), S(WINCH), S(IO), S(PWR), S(SYS),
        };
#undef S

        /* The kernel's real-time signals begin at 32; the C library keeps the first two for its threads. */
        if (number > 0 && (size_t)number < RV_N_ELEMENTS(names) && names[number])
                snprintf(ret, RV_SIGNAL_NAME_SIZE, "%s", names[number]);
        else if (number == SIGRTMIN)
                snprintf(ret, RV_SIGNAL_NAME_SIZE, "RTMIN");
        else if (number > SIGRTMIN && number <= SIGRTMAX)
                snprintf(ret, RV_SIGNAL_NAME_SIZE, "RTMIN+%d", number - SIGRTMIN);
        else
                snprintf(ret, RV_SIGNAL_NAME_SIZE, "%d", number);
}

void rv_classification_refuse(enum rv_code code, enum rv_phase phase, const char *message,
        struct rv_classification *ret)
{
        *ret = (struct rv_classification){
                .status = rv_code_status(code),
                .code = code,
                .phase = phase,
                .started = RV_STARTED_NO,
                .is_repeat_safe = true,
                .row = "refused",
        };
        snprintf(ret->message, sizeof(ret->message), "%s", message);
}

int rv_outcome_exit_status(const struct rv_classification *c)
{
        int status;

        if (c->status == RV_STATUS_BLOCKED)
                return EXIT_BLOCKED;
        if (c->status == RV_STATUS_OUTCOME_UNKNOWN)
                return EXIT_OUTCOME_UNKNOWN;
        rv_require((unsigned)c->code < RV_CODE_MAX_);
        status = codes[c->code].exit_status;
        if (c->code == RV_CODE_CANCELLED || c->code == RV_CODE_SHUTDOWN)
                return status;
        if (c->started == RV_STARTED_NO)
                return EXIT_NOT_RUN;
        if (status != RV_EXIT_OWN)
                return status;
        return c->has_exit_code ? c->exit_code : 128 + c->exit_signal;
}
