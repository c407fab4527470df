/*
 * fake.h - a backend that starts nothing and plays a script: for tests of what stands above a backend
 *
 * A *script* says what the backend does with a run: a list of steps (held, started, output, ended, observe),
 * each after a time, and how it answers stop() and release(). Nothing is random and nothing but the host's
 * timers is used, so the same script always gives the same calls in the same order. A step may come *at
 * once*: inside the very call that made it possible (start(), go(), the step before), since a backend may do
 * so. It is built with the tests only and is never linked into reeve.
 *
 *   configure -> (rv_fake_play -> start … released)* -> fini
 *
 * The backend also watches its caller: a call that reeve/backend.h forbids is kept in `broken_rule`.
 * Loop thread only. Scripts, and all they point at, are borrowed until the run is released.
 */
#ifndef REEVE_BACKENDS_FAKE_H
#define REEVE_BACKENDS_FAKE_H

#include <reeve/backend.h>

#define RV_FAKE_AT_ONCE (-1)

enum rv_fake_kind {
        RV_FAKE_HELD,           /* host->held() */
        RV_FAKE_STARTED,        /* host->started(): waits for go(), and with it all steps below it */
        RV_FAKE_OUTPUT,         /* host->output() of `data`, `n_times` over (0 is once) */
        RV_FAKE_ENDED,          /* host->ended() */
        RV_FAKE_OBSERVE,        /* host->observe() of `seen`: the last step */
        RV_FAKE_CALL,           /* `call` of the script, for a test that does something at this point */
};

struct rv_fake_step {
        enum rv_fake_kind kind;
        int32_t after_ms;       /* after the step before, or the call that made it possible; or RV_FAKE_AT_ONCE */
        enum rv_stream stream;
        const void *data;
        size_t n_bytes;
        uint32_t n_times;
        const struct rv_observation *seen;   /* struct_size and result_fd are filled in */
        const char *result;                  /* with `seen`: the text of the result file, or NULL: none */
};

enum rv_fake_call { RV_FAKE_START, RV_FAKE_GO, RV_FAKE_STOP, RV_FAKE_RELEASE, RV_FAKE_STEP };

struct rv_fake_script {
        const struct rv_fake_step *steps;
        size_t n_steps;                      /* when they are over without an observation, stop() is waited for */
        int start_error;                     /* errno: start() fails with it and begins nothing */
        const struct rv_observation *on_stop;/* what the first stop() ends in; NULL: stop() is ignored */
        const char *on_stop_result;
        int32_t stop_ms;                     /* how long that takes, or RV_FAKE_AT_ONCE */
        int32_t release_ms;                  /* from release() to host->released(), or RV_FAKE_AT_ONCE */
        int has_no_network;                  /* a run with network gets no sockets; else some within start() */
        int is_unclean;                      /* released() says that something is left */
        const struct rv_manifest *manifest;  /* what can() tells; NULL: everything is enforced */
        const struct rv_fake_script *next;   /* of what is started after this: a run with packages has jobs; NULL: this again */

        /* Told of each call to the backend before it is acted on, and of RV_FAKE_CALL as RV_FAKE_STEP; or NULL. */
        void (*call)(void *ctx, enum rv_fake_call call, const struct rv_plan *plan);
        void *ctx;
};

struct rv_fake_calls {
        unsigned n_starts, n_goes, n_stops, n_releases;
        enum rv_stop why;                    /* of the first stop() */
        const char *broken_rule;             /* static; NULL: none */
};

extern const struct rv_backend rv_fake_backend;

/** rv_fake_play() - the script, and those that follow it, of what is started from now on. Context: loop thread. Ownership: borrows @script. Return: none */
void rv_fake_play(void *state, const struct rv_fake_script *script);
/** rv_fake_calls() - what the backend was asked since rv_fake_play(). Context: loop thread. Ownership: borrowed from @state. Return: the counts */
const struct rv_fake_calls *rv_fake_calls(const void *state);

#endif
