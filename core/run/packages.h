/*
 * packages.h - the packages of a run: from what was asked for to a layer that it can be given
 *
 *     resolve          a lock is found: one that is held, or one that the package manager is asked for, in a job
 *     decide_resolved  policy judges all of it; back to `resolve` with what it demands
 *     prepare          the layer of the lock is there, or is built, by one of all who want it
 *     (after the answer)  what can be compiled is, so that the next run starts faster
 *
 * What blocks (metadata, downloads, archives) is done on a thread of its own, one piece at a time; it touches nothing of
 * the run but `work`. Loop thread but for that.
 */
#pragma once

#include "package/acquire.h"
#include "package/registry_credentials.h"
#include "package/source.h"
#include "run/build.h"
#include "run/run.h"
#include "store/packages.h"

#include <reeve/backend.h>
#include <stdatomic.h>

struct rv_run;
struct rv_job_spec;

/* What is under way in the phase. */
enum rv_packages_step {
        RV_PACKAGES_BEGIN,
        RV_PACKAGES_QUEUE,       /* somebody else resolves, or builds, the same */
        RV_PACKAGES_JOB,         /* a job runs */
        RV_PACKAGES_WORK,        /* the thread is at work */
        RV_PACKAGES_ASK,         /* a job says what a build needs */
        RV_PACKAGES_SOURCE,      /* a run builds a package from its source */
        RV_PACKAGES_BUILD,       /* the spawner has the layer built */
};

/* For the thread, and from it. */
struct rv_packages_work {
        struct rv_acquire in;
        enum {
                RV_WORK_LEARN,
                RV_WORK_NEW_LOCK,
                RV_WORK_EXPLAIN,
                RV_WORK_HELD_LOCK,
                RV_WORK_GIVEN_LOCK,
                RV_WORK_SOURCE,
                RV_WORK_BUILT
        } what;
        json_t *pages;                   /* out of LEARN: the registry's, of what was asked for */
        json_t *closure;                 /* in */
        json_t *denials, *contacts;      /* in of EXPLAIN: what the gate saw */
        const json_t *obligations;       /* in; borrowed from the run */
        bool is_for_build;               /* in of EXPLAIN */
        json_t *source;                  /* out of EXPLAIN: what could be built instead, or NULL; in of SOURCE, BUILT */
        struct rv_buf archive;           /* out of SOURCE: its bytes */
        struct rv_source_wheel wheel;    /* in of BUILT */
        const struct rv_package *packages;
        size_t n_packages;
        int64_t cutoff_s;
        bool knows_cutoff;               /* in of NEW_LOCK: the package manager left out what is too young */
        json_t *unfit;                   /* out of NEW_LOCK: by name, versions that obligations forbid, of packages that have one of them */
        bool has_unhashed;               /* the same: some of them may be for want of a hash */
        json_t *lock;                    /* in of HELD_LOCK and GIVEN_LOCK, out of NEW_LOCK and GIVEN_LOCK */
        struct rv_package_failure failure;
        struct rv_error err;
        int r;
};

struct rv_run_packages {
        enum rv_packages_step step;
        uint64_t deadline_us, budget_ms; /* of the phase; on rv_boot_us()'s clock */
        enum rv_stop stop_why;           /* it is to end */
        _Atomic bool stop;               /* the same, for the thread */
        bool is_working, is_building;
        uint64_t build_id;
        char build_fault[RV_REASON_SIZE];
        int build_errno;

        json_t *requested_facts;         /* those that were judged first */
        json_t *obligations;             /* what policy demands of the closure (policy/obligations.h) */
        json_t *exclude;                 /* {name: [versions]} that the package manager is not to choose */
        json_t *spare_lock;              /* one with versions that have no hash, for policy to deny if there are no others */
        unsigned n_rounds, n_excludes;   /* how often policy, and versions that are left out, had it look again */

        char key[RV_SHA256_HEX_SIZE];    /* of the held lock */
        json_t *lock;
        json_t *stale_lock;              /* a held one that is too old to be used while the registry answers */
        char digest[RV_SHA256_HEX_SIZE]; /* of the lock: the layer's name; "" before */
        json_t *report;                  /* the outcome's `packages` */
        bool is_stale, has_no_uv;

        struct rv_registry_tools env;    /* of the resolver, with credentials */
        struct rv_buf text;              /* what the job prints */
        char claimed[RV_SHA256_HEX_SIZE];   /* what nobody else does meanwhile, … */
        int claim_fd;                    /* … as this says; these are -1 for none: zeroed is not empty */
        int use_fd;                      /* the layer's use, while the run may need it */
        int artifacts_fd;                /* a directory for its artifacts, … */
        char artifacts_name[RV_STORE_ARTIFACT_SIZE];   /* … in the store's */
        int result_fd;                   /* the builder's */
        int frames_fd;                   /* of what is compiled */
        uint64_t frames_bytes;
        bool is_preparing, is_compiling; /* the phases have begun */
        struct rv_packages_work work;
        struct rv_run_build build;

        struct rv_acquire guess;         /* of the thread that fetches what the package manager will probably choose */
        struct rv_prefetched prefetched;
        _Atomic bool guess_stop;
        bool is_guessing;
};

/** rv__packages_stop() - whoever asked does not want to wait. Context: loop thread; harmless outside of the phases. Ownership: borrows. Return: none */
void rv__packages_stop(struct rv_run *run, enum rv_stop why);
/** rv__packages_init() - nothing is found yet. Context: loop thread. Ownership: borrows. Return: none */
void rv__packages_init(struct rv_run *run);
/** rv__packages_forget() - forget what was found: it is looked for again. Context: loop thread. Ownership: borrows. Return: none */
void rv__packages_forget(struct rv_run *run);
/** rv__packages_fini() - release. Context: nothing is under way. Ownership: takes it. Return: none */
void rv__packages_fini(struct rv_run *run);

/** rv__packages_begin() - the budget of a phase begins. Context: loop thread. Ownership: borrows. Return: none */
void rv__packages_begin(struct rv_run *run, uint64_t budget_ms);
/** rv__packages_claim() - be the one who does what is named by @digest. Context: loop thread. Ownership: the run's. Return: 0; RV_STORE_E_TAKEN; -errno */
int rv__packages_claim(struct rv_run *run, const char *digest);
/** rv__packages_unclaim() - let the next one. Context: loop thread. Ownership: the run's. Return: none */
void rv__packages_unclaim(struct rv_run *run);
/** rv__packages_open_artifacts() - an empty directory for what is fetched, in place of the one before. Context: loop thread. Ownership: the run's. Return: 0 or -errno */
int rv__packages_open_artifacts(struct rv_run *run, struct rv_error *err);
/** rv__packages_close_artifacts() - remove it. Context: loop thread, nothing is under way. Ownership: the run's. Return: none */
void rv__packages_close_artifacts(struct rv_run *run);
/** rv__packages_wait() - look again in @ms, or when something comes, or the budget is over. Context: loop thread. Ownership: borrows. Return: RV_STEP_WAIT */
enum rv_step rv__packages_wait(struct rv_run *run, uint64_t ms);
/** rv__packages_is_ending() - is the phase to end, as its budget is over or somebody said so? What is under way is told. Context: loop thread. Ownership: borrows. Return: as named */
bool rv__packages_is_ending(struct rv_run *run);
/** rv__packages_end() - the phase @phase ends as rv__packages_is_ending() said, once nothing is under way. Context: loop thread. Ownership: borrows. Return: RV_STEP_WAIT or RV_STEP_CLASSIFY */
enum rv_step rv__packages_end(struct rv_run *run, enum rv_phase phase);
/** rv__packages_say() - what is done now, for people. Context: loop thread. Ownership: borrows. Return: none */
void rv__packages_say(struct rv_run *run, const char *fmt, ...) RV_PRINTF(2, 3);
/** rv__packages_work() - have the thread do `work`. Context: loop thread. Ownership: borrows. Return: RV_STEP_WAIT; RV_STEP_ANSWER */
enum rv_step rv__packages_work(struct rv_run *run);
/** rv__packages_build() - have the spawner do it; `is_building` until it is done, then `build_errno` and `build_fault` say how. Context: loop thread. Ownership: borrows. Return: 0 or -errno */
int rv__packages_build(struct rv_run *run, enum rv_layer_action action, int job_fd, int lock_fd);
/** rv__packages_make_memory() - a file in memory, at its beginning. Context: any. Ownership: the descriptor is the caller's. Return: 0 or -errno */
int rv__packages_make_memory(const char *name, const char *text, size_t n, int *ret_fd);
/** rv__packages_guess() - begin to fetch what will probably be chosen, into the artifacts' directory. Context: loop thread, a job begins. Ownership: borrows. Return: none */
void rv__packages_guess(struct rv_run *run);
/** rv__packages_end_guess() - no more of it. Context: loop thread. Ownership: borrows. Return: is it over? Else the run is moved on when it is */
bool rv__packages_end_guess(struct rv_run *run);
/** rv__packages_refuse() - the run fails for what the thread, or another, found. Context: loop thread. Ownership: borrows. Return: RV_STEP_CLASSIFY */
enum rv_step rv__packages_refuse(struct rv_run *run, const struct rv_package_failure *failure, enum rv_phase phase);
/** rv__packages_registry() - the language's registry; unless @is_whole, not all of its hosts need be known. Context: loop thread; may block a while the first time. Ownership: borrowed from the core. Return: it, or NULL: none is known */
struct rv_registry *rv__packages_registry(struct rv_run *run, bool is_whole);
/** rv__resolve_start_job() - have the package manager find versions, with all that is known. Context: loop thread, in the phase `resolve`. Ownership: borrows. Return: what comes next */
enum rv_step rv__resolve_start_job(struct rv_run *run);
/** rv__exclude_find() - which versions a new lock should not have. Context: the thread; blocks. Ownership: into @w. Return: 0; -errno */
int rv__exclude_find(struct rv_packages_work *w);
/** rv__exclude_take() - have them left out. Context: the loop's thread. Ownership: copies. Return: 1: the package manager has to choose again; 0: it need not, or has often enough; -ENOMEM */
int rv__exclude_take(struct rv_run *run);
/** rv__resolve_given() - take the lock that came with the request, with what is found out about its packages. Context: as before. Ownership: borrows. Return: what comes next */
enum rv_step rv__resolve_given(struct rv_run *run);
/** rv__resolve_take_lock() - the run's lock is this. Context: as before. Ownership: takes the lock. Return: 0 or -ENOMEM */
int rv__resolve_take_lock(struct rv_run *run, json_t *take_lock);
/** rv__resolve_refuse_to_begin() - the backend has no registry, or no packages. Context: as before. Ownership: copies. Return: what comes next */
enum rv_step rv__resolve_refuse_to_begin(struct rv_run *run, const char *why);
/** rv__resolve_learn() - find out from the pages where the registry's files are. Context: as before. Ownership: borrows. Return: what comes next */
enum rv_step rv__resolve_learn(struct rv_run *run);
/** rv__resolve_take_learned() - that was found out. Context: as before. Ownership: borrows. Return: what comes next */
enum rv_step rv__resolve_take_learned(struct rv_run *run);
/** rv__packages_find_again() - does a verdict oblige to what was not asked of the package manager yet? Then what was found is forgotten. Context: loop thread. Ownership: borrows. Return: 1 back to the phase `resolve`; 0 the verdict stands; -ENOMEM */
int rv__packages_find_again(struct rv_run *run, const json_t *verdict);
