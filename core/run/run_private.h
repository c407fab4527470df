/*
 * run_private.h - a run's state, shared by the files of the pipeline's phases and by nobody else
 */
#pragma once

#include "audit/log_private.h"
#include "package/registry_tools.h"
#include "request/request.h"
#include "run/classify.h"
#include "run/outcome_read.h"
#include "run/packages.h"
#include "run/run.h"
#include "store/index.h"

enum rv_step {
        RV_STEP_WAIT,        /* something will call rv_run_go_on() */
        RV_STEP_NEXT,        /* the phase after this one */
        RV_STEP_CLASSIFY,    /* it goes no further: what is known makes the outcome */
        RV_STEP_ANSWER,      /* there is a problem instead of an outcome, or an outcome of before */
        RV_STEP_AGAIN,       /* back to who has the idempotency key */
        RV_STEP_RESOLVE,     /* back to looking for packages, with what policy demands of them */
        RV_STEP_END,
};

/* In the order of the design; the queue, of the service, joins in it. */
enum rv_run_phase {
        RV_RUN_VALIDATE,
        RV_RUN_IDEMPOTENCY,
        RV_RUN_DECIDE,
        RV_RUN_RESOLVE,
        RV_RUN_DECIDE_RESOLVED,
        RV_RUN_PREPARE,
        RV_RUN_PLAN,
        RV_RUN_START,
        RV_RUN_RUN,
        RV_RUN_COLLECT,
        RV_RUN_CLASSIFY,
        RV_RUN_RECORD,
        RV_RUN_ANSWER,
        RV_RUN_TEARDOWN,
        RV_RUN_COMPILE,
        RV_RUN_PHASES,
};

/* The request's idempotency key: see idempotency.c. */
struct rv_run_key {
        char hmac[RV_SHA256_HEX_SIZE];          /* "": not made yet */
        char fingerprint[RV_SHA256_HEX_SIZE];   /* its HMAC */
        struct rv_index *index;
        bool is_waiting, is_polling;            /* since when it waits is known; for its timer, now */
        uint64_t wait_until_us, recover_at_us;  /* CLOCK_BOOTTIME */
        enum rv_stop stop;                      /* told to end while it waited */
        char end_segment[RV_LOG_SEGMENT_NAME_SIZE];   /* the log's end when it was looked last */
        uint64_t end_size;
};

/* What serves the run's network: see network.c. */
struct rv_run_network {
        uint64_t gate_id;            /* 0: the gate does not know the run, or any more */
        bool is_served, has_failed;
        bool is_over;                /* the gate has had its last word */
        bool is_evidence_lost;       /* and it was none on what the run reached */
        struct rv_network_evidence evidence;
};

/* Where a job's standard output goes. */
struct rv_job_sink {
        int (*put)(void *ctx, const void *data, size_t n);      /* negative: no more of it */
        void *ctx;
        bool is_full;
};

/* A program of reeve's own: see job.c. All is borrowed until it is over, but for `input`. */
struct rv_job_spec {
        enum rv_language language;
        enum rv_network_mode network_mode;
        const char *source;
        size_t source_bytes;
        const char *input;
        size_t input_bytes;
        const struct rv_plan_env *env;
        size_t n_env;
        const char *ca;
        size_t ca_bytes;
        const char *layer;
        uint32_t timeout_s, memory_mib;
        struct rv_job_sink sink;
};

struct rv_run {
        struct rv_core *core;
        struct rv_run *parent;       /* of a job: whose it is */
        struct rv_run *job;          /* under way, or over and not looked at */
        struct rv_job_sink job_sink;
        bool is_job_over;
        struct rv_run_input input;
        const struct rv_config_tenant *tenant;
        char run_id[RV_RUN_ID_SIZE], decision_id[RV_RUN_ID_SIZE];
        bool has_decision_id;        /* a decision stands in the log, or was made */
        bool is_owed;                /* a decision stands in the log, and no outcome */

        enum rv_run_phase phase;
        bool is_advancing;           /* in rv_run_go_on(): a callback that comes meanwhile is seen by its loop */
        bool wants_advance;
        uint64_t phase_start_ns;

        struct rv_run_key key;
        struct rv_outcome_kept *kept;   /* what `outcome` is given again from */

        struct rv_request *request;
        struct rv_problem *problem;
        json_t *facts, *verdict;     /* of the stage that was judged last */
        json_t *granted;             /* the verdict on what was requested: beside packages it stands */
        json_t *shadow;              /* as it stands in the record, or NULL */
        json_t *detail;              /* reason.detail where policy or the plan refused */

        struct rv_plan plan;
        struct rv_plan_env *plan_env;
        struct rv_registry_tools tools;      /* what the plan's package manager goes by */
        const struct rv_backend *backend;
        void *backend_state, *handle;
        struct rv_manifest manifest;

        uint64_t start_begun_us;
        struct rv_host_timer *timer; /* of the phase's budget */
        struct rv_capture out, err;
        struct rv_observation seen;
        struct rv_run_network network;
        struct rv_run_packages packages;
        bool is_decision_durable;
        bool has_seen, is_held, is_started, is_timed, is_ended, is_answered, is_releasing, is_released;
        struct rv_evidence evidence;
        bool is_refused;             /* `outcome.reason` was made by rv_classification_refuse() */
        struct rv_result result;
        struct rv_outcome outcome;
};

/* The phases. Context: loop thread. Ownership: borrow. Return: what comes next. */
enum rv_step rv__run_validate(struct rv_run *run);
enum rv_step rv__run_idempotency(struct rv_run *run);
enum rv_step rv__run_decide(struct rv_run *run);
enum rv_step rv__run_resolve(struct rv_run *run);
enum rv_step rv__run_decide_resolved(struct rv_run *run);
enum rv_step rv__run_prepare(struct rv_run *run);
enum rv_step rv__run_plan(struct rv_run *run);
enum rv_step rv__run_start(struct rv_run *run);
enum rv_step rv__run_run(struct rv_run *run);
enum rv_step rv__run_collect(struct rv_run *run);
enum rv_step rv__run_classify(struct rv_run *run);
enum rv_step rv__run_record(struct rv_run *run);
enum rv_step rv__run_answer(struct rv_run *run);
enum rv_step rv__run_teardown(struct rv_run *run);
enum rv_step rv__run_compile(struct rv_run *run);

/** rv__job_start() - begin a job; it is `job`, and when it is over the run is moved on. Context: loop thread; the run's backend is known, and it has no job. Ownership: see struct rv_job_spec. Return: 0 or -ENOMEM */
int rv__job_start(struct rv_run *run, const struct rv_job_spec *spec);
/** rv__job_fault() - why a job that is over did not end well, for people. Context: loop thread. Ownership: the caller's memory. Return: @ret, or NULL: it ended with status 0 */
const char *rv__job_fault(const struct rv_run *run, char ret[RV_REASON_SIZE]);
/** rv__job_free() - forget the job. Context: it is over. Ownership: takes it. Return: none */
void rv__job_free(struct rv_run *run);

/** rv__run_go_on() - move a waiting run on, from a callback. Context: loop thread. Ownership: borrows. Return: none */
void rv__run_go_on(struct rv_run *run);
/** rv__run_refuse() - turn the run away before any backend: @take_detail becomes reason.detail. Context: loop thread. Ownership: takes @take_detail, may be NULL. Return: RV_STEP_CLASSIFY */
enum rv_step rv__run_refuse(
        struct rv_run *run, enum rv_code code, enum rv_phase phase, const char *message, json_t *take_detail);
/** rv__run_refuse_by_policy() - the same, by the verdict that was made last. Context: loop thread. Ownership: borrows. Return: RV_STEP_CLASSIFY */
enum rv_step rv__run_refuse_by_policy(struct rv_run *run);
/** rv__run_fail() - reeve itself cannot go on: a problem with @status and @detail instead of an outcome. Context: loop thread. Ownership: borrows. Return: RV_STEP_ANSWER */
enum rv_step rv__run_fail(struct rv_run *run, int status, const char *title, const char *detail);
/** rv__run_end() - have the backend end the run; the first reason stays. Context: loop thread. Ownership: borrows. Return: none */
void rv__run_end(struct rv_run *run, enum rv_stop why, enum rv_phase phase, uint64_t budget_ms);
/** rv__run_release() - let the program go, if all that holds it back is done. Context: loop thread. Ownership: borrows. Return: none */
void rv__run_release(struct rv_run *run);

/** rv__run_on_network() - host service network. Context: loop thread. Ownership: takes the sockets. Return: none */
void rv__run_on_network(void *ctx, struct rv_run *run, const struct rv_network_sockets *sockets);
/** rv__run_is_network_ready() - may the program be released, as far as its network goes? Context: loop thread. Ownership: borrows. Return: as named */
bool rv__run_is_network_ready(const struct rv_run *run);
/** rv__run_stop_unserved() - end a run whose network cannot be served, also if that was told while the backend began it. Context: loop thread. Ownership: borrows. Return: none */
void rv__run_stop_unserved(struct rv_run *run);
/** rv__run_end_network() - nothing of the run is left: have the gate tell what it reached. Context: loop thread, the run was observed. Ownership: borrows. Return: is there nothing to wait for (any more)? */
bool rv__run_end_network(struct rv_run *run);
/** rv__run_forget_gate() - the gate has nothing more to say of it. Context: loop thread. Ownership: borrows. Return: none */
void rv__run_forget_gate(struct rv_run *run);
/** rv__run_network_fini() - release; the gate is told, if it knows the run. Context: loop thread. Ownership: takes it. Return: none */
void rv__run_network_fini(struct rv_run *run);

/** rv__run_find_backend() - the backend that the verdict names becomes the run's, if there is one. Context: loop thread, decided. Ownership: borrows. Return: its name */
const char *rv__run_find_backend(struct rv_run *run);
/** rv__run_check_backend() - turn the run away if there is no backend of that name, or it cannot be used here; `manifest` says what it can. Context: loop thread. Ownership: borrows. Return: RV_STEP_NEXT or RV_STEP_CLASSIFY */
enum rv_step rv__run_check_backend(struct rv_run *run, const char *name);
/** rv__run_no_registry() - that none is known for the request's language, for people. Context: any. Ownership: static. Return: the text */
const char *rv__run_no_registry(const struct rv_run *run);

/** rv__run_set_timer() - call @cb with the run after @ms; replaces the timer before. Context: loop thread. Ownership: none. Return: 0 or -errno */
int rv__run_set_timer(struct rv_run *run, uint64_t ms, void (*cb)(void *run));
/** rv__run_clear_timer() - Context: loop thread. Ownership: none. Return: none */
void rv__run_clear_timer(struct rv_run *run);

/** rv__run_bound_facts() - facts of more than 1 MiB are not judged: a denial, and facts that say how much they were. Context: loop thread. Ownership: borrows. Return: 0 they are not; 1 they were, and there is a verdict; -errno */
int rv__run_bound_facts(struct rv_run *run);
/** rv__run_judge_shadow() - have the shadow judge the facts; what becomes of it is `shadow`. Context: loop thread. Ownership: borrows. Return: none */
void rv__run_judge_shadow(struct rv_run *run);
/** rv__record_shadow_digest() - add the digest of the shadow's verdict as it stands in a record's body. Context: any. Ownership: borrows. Return: 0 or -errno */
int rv__record_shadow_digest(json_t *body);
/** rv__record_drop_shadow() - put a remark in place of the shadow's verdict. Context: any. Ownership: borrows. Return: was there one? */
bool rv__record_drop_shadow(json_t *body);

/** rv__run_make_ids() - other ids than before. Context: any. Ownership: none. Return: none */
void rv__run_make_ids(struct rv_run *run);

/* How a claim ends that is none. */
enum {
        RV__RUN_CLAIM_E_TAKEN = 1,   /* another run has the key */
        RV__RUN_CLAIM_E_AGAIN,       /* only inside rv__run_claim() */
};
/** rv__run_key_json() - the member `key` of records. Context: after the phase. Ownership: a new reference. Return: it */
json_t *rv__run_key_json(const struct rv_run *run);
/** rv__run_key_fini() - release what the phase holds. Context: any. Ownership: takes it. Return: none */
void rv__run_key_fini(struct rv_run *run);
/** rv__run_key_stop() - whoever asked does not want to wait. Context: loop thread; harmless when nothing waits. Ownership: borrows. Return: none */
void rv__run_key_stop(struct rv_run *run, enum rv_stop why);
/** rv__run_claim() - append the decision's record if the key is still free. Context: may block. Ownership: borrows. Return: 0; RV__RUN_CLAIM_E_TAKEN; -errno */
int rv__run_claim(struct rv_run *run, json_t *body, struct rv_error *err);
/** rv__run_again() - it was not: forget the decision. Context: loop thread. Ownership: borrows. Return: RV_STEP_AGAIN */
enum rv_step rv__run_again(struct rv_run *run);
/** rv__run_keep_outcome() - store the outcome's bytes if they can be asked for again. Context: blocks on the disk. Ownership: borrows. Return: none */
void rv__run_keep_outcome(struct rv_run *run);
/** rv__run_key_answered() - what can wait until after the answer. Context: may block. Ownership: borrows. Return: none */
void rv__run_key_answered(struct rv_run *run);

/** rv__record_begin() - what every record of a run has. Context: any. Ownership: a new reference. Return: it */
json_t *rv__record_begin(const struct rv_run *run);
/** rv__record_rejected() - write the record of a rejected request. Context: may block. Ownership: borrows. Return: 0 or -errno */
int rv__record_rejected(struct rv_run *run, struct rv_error *err);
/** rv__record_outcome() - write the outcome record, synced. Context: may block. Ownership: borrows. Return: 0 or -errno */
int rv__record_outcome(struct rv_run *run, struct rv_error *err);
/** rv__record_decision() - write the decision record, not yet synced. Context: may block. Ownership: borrows. Return: 0; RV__RUN_CLAIM_E_TAKEN nothing was written; -errno */
int rv__record_decision(struct rv_run *run, struct rv_error *err);
