/*
 * test_pipeline.h - whole runs over the fake backend: a real loop, a real log, real bundles
 *
 * A `struct bench` is one reeve in a directory of its own, without a process of its own: made before a test,
 * removed after it. perform() puts one request through it and checks what holds for every run: one answer, one release,
 * no call that the backend's interface forbids, and records in the log that fit the answer. What it returns
 * is a static view of the last run.
 *
 * For cmocka's set-up and tear-down: the state is the bench. One thread.
 */
#pragma once

#include "test_audit_common.h"

#include "fake/fake.h"
#include "loop/loop.h"
#include "policy/bundle.h"
#include "run/run.h"
#include "test_gate_fake.h"

#include <signal.h>
#include <sys/resource.h>

#define SOURCE_TEXT "print('the source is SOURCE-SECRET')"
#define PLAIN "{\"language\":\"python\",\"source\":\"" SOURCE_TEXT "\"}"
#define PLAIN_WITH(more) "{\"language\":\"python\",\"source\":\"" SOURCE_TEXT "\"," more "}"

struct case_ {
        const char *name;
        const char *request;            /* PLAIN if NULL */
        const char *tenant, *backend;   /* `local`; the tenant's */
        const struct rv_bundle *bundle; /* the bench's if NULL */
        const char *bundle_error;       /* there is none, for this reason */
        const char *principal;          /* alice if NULL */
        bool has_wait;
        uint32_t wait_s;
        bool has_company;               /* records of another run may stand between those of this one */
        const struct rv_bundle *shadow;
        const char *shadow_error;
        uint64_t start_ms;              /* budget of the start; 0: more than any test takes, on a busy machine too */
        unsigned n_decisions;           /* records; 0: one */
        unsigned n_store_syncs;         /* beside the log's, before the program is let go */
        const json_t *lock;             /* a lock that is to be used */
        struct rv_fake_script script;   /* and, by its `next`, up to three more */
};

struct bench {
        char *dir;
        void *tmp;                      /* the same, as the helpers of test_audit_common.h want it */
        struct rv_config *config;
        struct rv_bundle *bundle;
        struct rv_loop loop;
        struct rv_core core;
        void *backend_state;
        struct fake_gate gate;          /* of runs with network */

        const struct case_ *now;
        struct rv_run *run;
        unsigned n_answers, n_releases;
        bool is_in_loop;                /* rv_loop_run() is on the stack */
        bool is_free_in_released;       /* free the run inside the callback, as the service does */
        size_t n_records_before;
        struct rv_buf live[2];
        json_t *outcome, *problem;      /* one of them, from the answer */
        char outcome_sha256[RV_SHA256_HEX_SIZE];
        char run_id[64];                /* "" without an outcome */
        int exit_status;
        json_t *records;                /* what this run added to the log */
        struct rv_fake_calls calls;
        unsigned n_syncs_at_go;         /* of the log, since the run began */
        unsigned n_runs_at_go;          /* how often it was let go with the run itself, not with a job */
        bool is_decided_at_go;          /* a decision stood in the log when the backend was let go */
};

/* Counted, and made to fail where a test says so: the test is linked with --wrap=fdatasync. */
extern unsigned n_syncs, fail_sync_at;

int bench_make(void **state);
int bench_remove(void **state);
#define ON_BENCH(f) cmocka_unit_test_setup_teardown(f, bench_make, bench_remove)

/** perform() - one request, to its end. Context: a test. Ownership: what the bench holds of it lives until the next. Return: none */
void perform(struct bench *b, const struct case_ *c);
/** at_once() - the same case with every step, stop and release at once. Context: a test. Ownership: static. Return: it */
const struct case_ *at_once(const struct case_ *c);
/** load_bundle() - a bundle of one policy.lua. Context: a test. Ownership: to the caller. Return: it */
struct rv_bundle *load_bundle(struct bench *b, const char *name, const char *policy);
/** reason_of() - a member of the last outcome's `reason`. Context: a test. Ownership: borrowed. Return: the text */
const char *reason_of(const struct bench *b, const char *name);
/** detail_of() - the last outcome's reason.detail. Context: a test. Ownership: borrowed. Return: it, or NULL */
json_t *detail_of(const struct bench *b);
/** expect_text() - fail with the case's name unless both are the same. Context: a test. Ownership: borrows. Return: none */
void expect_text(const struct bench *b, const char *what, const char *seen, const char *expected);
/** expect_number() - the same for integers. Context: a test. Ownership: borrows. Return: none */
void expect_number(const struct bench *b, const char *what, long long seen, long long expected);
/** expect_kinds() - the kinds of the records of the last run, "decision outcome". Context: a test. Ownership: borrows. Return: none */
void expect_kinds(const struct bench *b, const char *expected);
/** expect_no_secret() - none of the texts of a request, as a log must not show them, is in the log's bytes. Context: a test. Ownership: borrows. Return: none */
void expect_no_secret(struct bench *b, const char *secret);
