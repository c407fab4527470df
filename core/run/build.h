/*
 * build.h - a wheel that the registry does not have is built from its source, within the phase `resolve`
 *
 *     resolve -> (nothing that would do, and a source) -> rv__build_consider() -> [thread: the archive] -> rv__build_worked()
 *             -> [job: what it needs] -> [run: the build] -> rv__build_look() -> [thread: the wheel] -> rv__build_worked()
 *             -> resolve again
 *
 * Loop thread only.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"

#define RV_SOURCE_BUILDS_MAX 8u          /* of one run */

struct rv_run;

/* What is built, and what was. */
struct rv_run_build {
        json_t *requires;                /* package strings */
        json_t *request;                 /* of the run that builds it */
        struct rv_buf input;             /* its standard input */
        unsigned n_rounds;               /* how often it was begun: a backend may need more than it said */
        json_t *built;                   /* [{"name","version","file","sha256","yanked","published_at"?}] */
};

/** rv__build_consider() - the thread found no versions, and a source: have it built, if policy lets it be. Context: loop thread; no job. Ownership: borrows. Return: what comes next */
enum rv_step rv__build_consider(struct rv_run *run);
/** rv__build_worked() - the thread has fetched the source, or has looked at what was built. Context: loop thread. Ownership: borrows. Return: what comes next */
enum rv_step rv__build_worked(struct rv_run *run);
/** rv__build_look() - go on, if what is under way is over. Context: loop thread. Ownership: borrows. Return: what comes next */
enum rv_step rv__build_look(struct rv_run *run);
/** rv__build_fini() - forget what is built; what was built stays. Context: nothing is under way. Ownership: takes it. Return: none */
void rv__build_fini(struct rv_run *run);
/** rv__build_wheels() - what was built, for the resolver's job: [{"file","base64"}]. Context: reads files. Ownership: a new reference. Return: the list */
json_t *rv__build_wheels(const struct rv_run *run);
/** rv__build_has_all() - is what was built for a lock still there, or its layer? Context: loop thread. Ownership: borrows. Return: as named */
bool rv__build_has_all(const struct rv_run *run, const json_t *lock);
/** rv__build_facts() - of a run that builds for another: its facts are that one's but for packages and program. Context: loop thread. Ownership: borrows. Return: 0 or -ENOMEM */
int rv__build_facts(struct rv_run *run);
/** rv__build_timeout() - the request's, or what is left of the other's phase. Context: loop thread. Ownership: borrows. Return: seconds */
uint32_t rv__build_timeout(const struct rv_run *run);
