#include "run/run_private.h"

#include "base/clock.h"
#include "base/test_point.h"
#include "package/lock.h"
#include "run/recover.h"
#include "store/outcomes.h"

#include <stdio.h>
#include <string.h>

/*
 * The phase `idempotency`, and the claim that follows it: a key stands for one run, whose outcome is given again.
 *
 * Here it is looked who has the key. If nobody has, policy decides as for any run, and the decision's record is the
 * claim: it is appended only if, under the log's lock, the key is still free. If it is not, or if a run is in flight,
 * this waits: the log is looked at again whenever it has grown, and whatever a dead owner left is concluded.
 */

#define POLL_MS 40
#define RECOVER_EVERY_US (UINT64_C(250) * 1000)
#define CLAIM_TRIES 8           /* each after the index was brought up to date or mended */

#define TYPE_IN_FLIGHT "urn:reeve:problem:key-in-flight"
#define TYPE_CANCELLED "urn:reeve:problem:wait-ended"
#define TYPE_LOST "urn:reeve:problem:outcome-lost"

/* ---- What a key is ---- */

/* SHA-256 of all that the request asks for, defaults filled in, and for whom. With another lock it is another run. */
static int make_fingerprint(const struct rv_run *run, char ret[RV_SHA256_HEX_SIZE])
{
        char lock[RV_SHA256_HEX_SIZE];
        const char *digest = NULL;
        _cleanup_(rv_json_unrefp) json_t *whole = NULL;

        if (run->input.lock && rv_lock_digest(run->input.lock, lock) < 0)
                return rv_raise(-ENOMEM);
        if (run->input.lock)
                digest = lock;
        whole = json_pack("{s:o, s:s, s:s*}", "request", rv_request_canonical(run->request, false), "tenant", run->tenant->name, "lock", digest);
        return whole ? rv_trace(rv_json_canonical_sha256(whole, ret)) : rv_raise(-ENOMEM);
}

/* Whoever guesses another's key must not get at another's outcome: it counts for one tenant and principal. */
static int make_key(struct rv_run *run)
{
        struct rv_run_key *key = &run->key;
        _cleanup_(rv_json_unrefp) json_t *scope = json_pack("[s, s, s]", run->tenant->name, run->input.principal ? run->input.principal : "",
                                                            run->request->idempotency_key);
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        char fingerprint[RV_SHA256_HEX_SIZE];
        int r;

        r = scope ? rv_json_canonical(scope, &text) : rv_raise(-ENOMEM);
        if (r == 0)
                r = make_fingerprint(run, fingerprint);
        if (r == 0)
                r = rv_index_open(run->core->log, &key->index);
        if (r < 0)
                return rv_trace(r);
        rv_log_hmac(run->core->log, text.data, text.size, key->hmac);
        rv_log_hmac(run->core->log, fingerprint, strlen(fingerprint), key->fingerprint);
        return 0;
}

json_t *rv__run_key_json(const struct rv_run *run)
{
        return json_pack("{s:s, s:I, s:s}", "hmac_sha256", run->key.hmac, "bytes", (json_int_t)strlen(run->request->idempotency_key),
                         "fingerprint", run->key.fingerprint);
}

void rv__run_key_fini(struct rv_run *run)
{
        rv_index_close(run->key.index);
        run->key.index = NULL;
        rv_outcome_kept_free(run->kept);
        run->kept = NULL;
}

static bool is_expired(const struct rv_index_key *found)
{
        uint64_t now = rv_now_us();

        return found->state == RV_INDEX_DONE && now > found->ended_us && now - found->ended_us > RV_OUTCOMES_KEPT_US;
}

/* ---- Answers ---- */

/* A problem, on record as a rejection. */
static enum rv_step reject(
        struct rv_run *run, int status, uint32_t after_s, const char *type, const char *title, const char *detail)
{
        struct rv_error err = { 0 };

        rv_problem_free(run->problem);
        run->problem = rv_problem_new(status, type, title);
        if (!run->problem)
                return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it looked for the idempotency key");
        run->problem->retry_after_s = after_s;
        if (status == 422)
                rv_problem_add(run->problem, "/idempotency_key", RV_FAULT_CONFLICT, "%s", detail);
        else
                rv_problem_detail(run->problem, "%s", detail);
        if (rv__record_rejected(run, &err) < 0)
                return rv__run_fail(run, 503, "the audit log cannot be written", err.message);
        return RV_STEP_ANSWER;
}

static enum rv_step reject_other(struct rv_run *run, const struct rv_index_key *found)
{
        char detail[256];

        snprintf(detail, sizeof(detail), "the key stands for another request, of run %s; repeat that one as it was, or use a key of its own for this one", found->run_id);
        return reject(run, 422, 0, RV_PROBLEM_INVALID_TYPE, "the idempotency key was used with another request", detail);
}

/* How long the run in flight may take from now on, as both ask for the same. */
static uint32_t retry_after_s(const struct rv_run *run, const struct rv_index_key *found)
{
        uint64_t now = rv_now_us(), passed_s = now > found->decided_us ? (now - found->decided_us) / 1000000 : 0;

        return run->request->timeout_s > passed_s ? run->request->timeout_s - (uint32_t)passed_s : 1;
}

static enum rv_step reject_in_flight(struct rv_run *run, const struct rv_index_key *found)
{
        uint32_t after_s = retry_after_s(run, found);
        char detail[256];

        if (run->key.stop) {
                snprintf(detail, sizeof(detail), "%s while it waited for run %s, which has the key and goes on", run->key.stop == RV_STOP_SHUTDOWN ? "told to end" : "cancelled", found->run_id);
                return reject(run, 409, after_s, TYPE_CANCELLED, "the wait for the idempotency key was ended", detail);
        }
        snprintf(detail, sizeof(detail), "run %s has the key and has not ended; ask again in %u s, or wait longer (--wait)", found->run_id, after_s);
        return reject(run, 409, after_s, TYPE_IN_FLIGHT, "the idempotency key is in use by a run in flight", detail);
}

/* The run took place, and what it answered is gone. A second run is the one thing that must not come of that. */
static enum rv_step reject_lost(struct rv_run *run, const struct rv_index_key *found, const char *why)
{
        char detail[RV_ERROR_MESSAGE_MAX + 512];

        snprintf(detail, sizeof(detail), "run %s has already taken place with this key (%s, %s) and cannot be answered again: %s; it is not run a second time: look at what it did, and use another key if it is to be repeated",
                 found->run_id, found->status, found->code, why);
        return reject(run, 503, 0, TYPE_LOST, "the stored outcome of the idempotency key is lost", detail);
}

static int record_replay(struct rv_run *run, const struct rv_index_key *found, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *body = rv__record_begin(run);

        json_object_set_new(body, "decision_id", json_string(found->decision_id));
        json_object_set_new(body, "run_id", json_string(found->run_id));
        json_object_set_new(body, "outcome_sha256", json_string(found->outcome_sha256));
        json_object_set_new(body, "key", rv__run_key_json(run));
        return rv_trace(rv_log_append_synced(run->core->log, "idempotent_replay", body, NULL, err));
}

/* What the program printed then is printed again. */
static void put_output(struct rv_run *run)
{
        const struct rv_capture *streams[] = {
                [RV_STREAM_STDOUT] = &run->kept->out, [RV_STREAM_STDERR] = &run->kept->err
        };

        for (int i = 0; run->input.output && i < 2; i++)
                if (streams[i]->text.size)
                        run->input.output(
                                run->input.ctx, (enum rv_stream)i, streams[i]->text.data, streams[i]->text.size);
}

static enum rv_step replay(struct rv_run *run, const struct rv_index_key *found)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_error err = { 0 };
        int r;

        r = rv_outcomes_get(run->core->log, found->decision_id, found->outcome_sha256, &text, &err);
        if (r < 0)
                return reject_lost(run, found, err.message);
        r = rv_outcome_read(text.data ? text.data : "", text.size, &run->kept);
        if (r == -ENOMEM)
                return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it read a stored outcome");
        if (r < 0)
                return reject_lost(run, found, "its stored outcome is of a form that this reeve does not know");
        if (record_replay(run, found, &err) < 0)
                return rv__run_fail(run, 503, "the audit log cannot be written", err.message);
        run->outcome = run->kept->outcome;
        run->outcome.is_replayed = true;
        put_output(run);
        return RV_STEP_ANSWER;
}

/* ---- Waiting ---- */

static void on_poll(void *arg)
{
        struct rv_run *run = arg;

        rv__run_clear_timer(run);
        rv__run_go_on(run);
}

static enum rv_step fail_index(struct rv_run *run, const struct rv_error *err)
{
        return rv__run_fail(run, 503, "the idempotency key cannot be looked up", err->message);
}

/* Has anything been written since it was looked last? Notes the place. */
static int has_grown(struct rv_run *run, struct rv_error *err)
{
        struct rv_run_key *key = &run->key;
        char segment[RV_LOG_SEGMENT_NAME_SIZE] = "";
        uint64_t size = 0;
        bool has;
        int r;

        r = rv_log_end(run->core->log, segment, &size, err);
        if (r < 0)
                return rv_trace(r);
        has = size != key->end_size || strcmp(segment, key->end_segment) != 0;
        memcpy(key->end_segment, segment, sizeof(segment));
        key->end_size = size;
        return has;
}

/* Whoever waits is the process that comes next, where the owner died. 1 if there may be something to be seen. */
static int recover(struct rv_run *run, struct rv_error *err)
{
        struct rv_run_key *key = &run->key;
        uint64_t now = rv_boot_us();

        if (now < key->recover_at_us)
                return 0;
        key->recover_at_us = now + RECOVER_EVERY_US;
        return rv_trace(rv_run_recover(run->core->log, err));
}

static enum rv_step wait_on(struct rv_run *run)
{
        /* Others must be able to mend the index while this waits. */
        rv_index_close(run->key.index);
        run->key.index = NULL;
        if (rv_index_open(run->core->log, &run->key.index) < 0 || rv__run_set_timer(run, POLL_MS, on_poll) < 0)
                return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it waited for the idempotency key");
        return RV_STEP_WAIT;
}

/* It is looked once more after the time is over, so that what came last is seen. */
static enum rv_step wait_or_end(struct rv_run *run, const struct rv_index_key *found)
{
        struct rv_run_key *key = &run->key;

        if (!key->is_waiting) {
                uint64_t wait_s = run->input.has_wait ? run->input.wait_s : run->request->timeout_s;

                key->is_waiting = true;
                key->wait_until_us = rv_boot_us() + wait_s * 1000000;
        }
        if (key->stop || rv_boot_us() >= key->wait_until_us)
                return reject_in_flight(run, found);
        return wait_on(run);
}

static enum rv_step look(struct rv_run *run)
{
        struct rv_index_key found = { 0 };
        struct rv_error err = { 0 };
        int r = 0;

        for (int i = 0; i < 2; i++) {
                if (has_grown(run, &err) < 0 || rv_index_find(run->key.index, run->key.hmac, &found, &err) < 0)
                        return fail_index(run, &err);
                if (found.state == RV_INDEX_FREE || is_expired(&found))
                        return RV_STEP_NEXT;
                if (strcmp(found.fingerprint, run->key.fingerprint) != 0)
                        return reject_other(run, &found);
                if (found.state == RV_INDEX_DONE)
                        return replay(run, &found);
                r = recover(run, &err);
                if (r < 0)
                        return rv__run_fail(run, 503, "the audit log cannot be written", err.message);
                if (r == 0)
                        break;
        }
        return wait_or_end(run, &found);
}

/* Between two looks at the index: is there a reason for one? */
static bool is_quiet(struct rv_run *run, enum rv_step *ret)
{
        struct rv_error err = { 0 };
        int grown, recovered;

        if (run->key.stop || rv_boot_us() >= run->key.wait_until_us)
                return false;
        recovered = recover(run, &err);
        if (recovered < 0) {
                *ret = rv__run_fail(run, 503, "the audit log cannot be written", err.message);
                return true;
        }
        grown = recovered > 0 ? 1 : has_grown(run, &err);
        if (grown == 0)
                *ret = wait_on(run);
        else if (grown < 0)
                *ret = fail_index(run, &err);
        return grown <= 0;
}

enum rv_step rv__run_idempotency(struct rv_run *run)
{
        enum rv_step step;

        if (!run->request->idempotency_key)
                return RV_STEP_NEXT;
        if (!run->key.hmac[0] && make_key(run) < 0)
                return rv__run_fail(run, 500, "out of memory", "reeve ran out of memory while it looked for the idempotency key");
        if (run->timer)
                return RV_STEP_WAIT;    /* called for another reason */
        if (run->key.is_polling && is_quiet(run, &step))
                return step;
        step = look(run);
        run->key.is_polling = step == RV_STEP_WAIT;
        return step;
}

void rv__run_key_stop(struct rv_run *run, enum rv_stop why)
{
        if (run->phase != RV_RUN_IDEMPOTENCY || !run->key.is_polling || run->key.stop)
                return;
        run->key.stop = why;
        rv__run_clear_timer(run);
        rv__run_go_on(run);
}

/* ---- The claim ---- */

static int check_free(void *ctx, struct rv_log *log, struct rv_error *err)
{
        struct rv_index_key found = { 0 };
        struct rv_run *run = ctx;
        int r;

        (void)log;
        rv_test_point("in-claim");
        r = rv_index_find_locked(run->key.index, run->key.hmac, &found, err);
        if (r != 0)
                return r < 0 ? rv_trace(r) : RV__RUN_CLAIM_E_AGAIN;
        return found.state == RV_INDEX_FREE || is_expired(&found) ? 0 : RV__RUN_CLAIM_E_TAKEN;
}

int rv__run_claim(struct rv_run *run, json_t *body, struct rv_error *err)
{
        struct rv_index_key found;
        int r = RV__RUN_CLAIM_E_AGAIN;

        rv_test_point("before-claim");
        for (int i = 0; i < CLAIM_TRIES && r == RV__RUN_CLAIM_E_AGAIN; i++) {
                r = i ? rv_index_find(run->key.index, run->key.hmac, &found, err) : 0;
                if (r == 0)
                        r = rv_log_append_if(run->core->log, "decision", body, check_free, run, NULL, err);
        }
        if (r == RV__RUN_CLAIM_E_AGAIN)
                return rv_error_set(err, rv_raise(-EBUSY), "the log grows faster than its index; try again when fewer runs are started");
        rv_index_close(run->key.index);
        run->key.index = NULL;
        if (r == RV__RUN_CLAIM_E_TAKEN && rv_index_open(run->core->log, &run->key.index) < 0)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for the index");
        rv_test_point("after-claim");
        return r;
}

/* Nothing of the decision is on record: another one, with another id, is made when the key is free. */
enum rv_step rv__run_again(struct rv_run *run)
{
        json_decref(run->facts);
        json_decref(run->verdict);
        json_decref(run->granted);
        json_decref(run->detail);
        free(run->plan_env);
        rv_registry_tools_fini(&run->tools);
        run->facts = run->verdict = run->granted = run->detail = NULL;
        run->plan_env = NULL;
        run->plan = (struct rv_plan){ 0 };
        run->has_decision_id = false;
        run->backend = NULL;
        run->outcome.timeout_s = run->outcome.memory_mib = 0;
        rv__run_make_ids(run);
        return RV_STEP_AGAIN;
}

/* ---- The outcome ---- */

static int sink_buf(void *ctx, const void *data, size_t n)
{
        return rv_buf_append(ctx, data, n);
}

/* A failure leaves a record without bytes: whoever asks again is told so, and nothing runs twice. */
void rv__run_keep_outcome(struct rv_run *run)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_error err = { 0 };
        int r;

        if (!run->request->idempotency_key || run->outcome.reason.started == RV_STARTED_NO)
                return;
        r = rv_outcome_write(&run->outcome, sink_buf, &text);
        if (r == 0)
                r = rv_outcomes_put(run->core->log, run->decision_id, text.data, text.size, &err);
        if (r < 0)
                run->core->host->log(run->core->host->ctx, RV_LOG_WARNING, err.message[0] ? err.message : "out of memory keeping the outcome");
        rv_test_point("outcome-bytes");
}

void rv__run_key_answered(struct rv_run *run)
{
        if (!run->request || !run->request->idempotency_key)
                return;
        rv_index_close(run->key.index);
        run->key.index = NULL;
        (void)rv_outcomes_prune(run->core->log);
}
