#include "run/run_private.h"

#include "audit/live.h"
#include "audit/redact.h"
#include "base/test_point.h"
#include "policy/decide.h"
#include "policy/provenance.h"

#include <string.h>

/* The records of a run: `rejected`, or one decision and one outcome that points back to it. A replay's is in idempotency.c. */

static void set(json_t *object, const char *name, const char *value)
{
        if (value)
                json_object_set_new(object, name, json_string(value));
}

json_t *rv__record_begin(const struct rv_run *run)
{
        json_t *body = json_object();

        set(body, "run_id", run->run_id);
        set(body, "tenant", run->tenant->name);
        set(body, "principal", run->input.principal);
        set(body, "request_id", run->input.request_id);
        set(body, "trace_id", run->input.trace_id);
        if (run->input.build_for)
                set(body, "build_for", run->input.build_for->run_id);
        if (run->has_decision_id)
                set(body, "decision_id", run->decision_id);
        return body;
}

/* A low-entropy value is there as its HMAC under the log's secret, with its length. */
static json_t *commit(const struct rv_run *run, const void *data, size_t n)
{
        char hmac[65];

        rv_log_hmac(run->core->log, data, n, hmac);
        return json_pack("{s:s, s:I}", "hmac_sha256", hmac, "bytes", (json_int_t)n);
}

/*
 * How much of a fault's pointer names what a request can have. A member's name that is none may hold anything,
 * a secret written in the wrong place too: it is left out.
 */
static size_t known_part(const struct rv_problem_fault *f)
{
        const char *last = strrchr(f->pointer, '/');
        bool is_free = f->code == RV_FAULT_UNKNOWN || (!strncmp(f->pointer, "/env/", 5) && f->code != RV_FAULT_TYPE);

        return is_free && last ? (size_t)(last - f->pointer) : strlen(f->pointer);
}

int rv__record_rejected(struct rv_run *run, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *body = rv__record_begin(run);
        json_t *errors = json_array();

        for (size_t i = 0; i < run->problem->n_faults; i++) {
                const struct rv_problem_fault *f = &run->problem->faults[i];

                json_array_append_new(errors, json_pack("{s:s%, s:s}", "pointer", f->pointer, known_part(f), "code",
                                                        rv_fault_code_name(f->code)));
        }
        json_object_set_new(body, "errors", errors);
        json_object_set_new(body, "status", json_integer(run->problem->status));
        if (run->key.hmac[0])
                json_object_set_new(body, "key", rv__run_key_json(run));
        if (run->input.text)
                json_object_set_new(body, "request", commit(run, run->input.text, run->input.text_bytes));
        return rv_trace(rv_log_append_synced(run->core->log, "rejected", body, NULL, err));
}

/* The plan without its secrets: what a digest of it must bind. */
static int digest_plan(const struct rv_run *run, char ret_hex[65])
{
        const struct rv_plan *p = &run->plan;
        _cleanup_(rv_json_unrefp) json_t *plan = json_pack(
                "{s:s, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "run_id", p->run_id, "runtime", p->runtime, "backend",
                run->backend->name, "language", (int)p->language, "network", (int)p->network, "timeout_s", (int)p->timeout_s,
                "memory_mib", (int)p->memory_mib, "pids", (int)p->pids, "cpus_milli", (int)p->cpus_milli);
        char source[RV_SHA256_HEX_SIZE];

        rv_sha256_hex(p->source, p->source_bytes, source);
        json_object_set_new(plan, "source_sha256", json_string(source));
        set(plan, "runtime_digest", p->runtime_digest);
        if (p->layer)
                json_object_set_new(plan, "layer", json_string(p->layer));
        for (size_t i = 0; i < p->n_tool_env; i++)
                json_object_set_new(plan, p->tool_env[i].name, json_string(p->tool_env[i].value));
        return rv_json_canonical_sha256(plan, ret_hex);
}

static void add_verdict(struct rv_run *run, json_t *body)
{
        set(body, "bundle", run->input.bundle ? rv_bundle_digest(run->input.bundle) : "");
        json_object_set_new(body, "engine", rv_policy_engine());
        json_object_set(body, "facts", run->facts);
        json_object_set(body, "verdict", run->verdict);
        if (run->shadow)
                json_object_set(body, "shadow", run->shadow);
}

/* Of what stands in the record: an auditor has nothing else. */
static int add_digests(json_t *body)
{
        _cleanup_(rv_json_unrefp) json_t *context = NULL;
        char hex[65];
        int r;

        context = json_pack("{s:O, s:O, s:O}", "facts", json_object_get(body, "facts"), "bundle", json_object_get(body, "bundle"), "limits",
                            json_object_get(json_object_get(body, "engine"), "limits"));
        r = context ? rv_json_canonical_sha256(context, hex) : rv_raise(-ENOMEM);
        if (r < 0)
                return rv_trace(r);
        set(body, "context_sha256", hex);
        r = rv_json_canonical_sha256(json_object_get(body, "verdict"), hex);
        if (r < 0)
                return rv_trace(r);
        set(body, "verdict_sha256", hex);
        return rv_trace(rv__record_shadow_digest(body));
}

/* A decision that lets a run go on takes the key with it. */
static int append_or_claim(struct rv_run *run, json_t *body, struct rv_error *err)
{
        if (run->request->idempotency_key && !run->is_owed && !run->is_refused && !run->evidence.stop)
                return rv_trace(rv__run_claim(run, body, err));
        return rv_trace(rv_log_append(run->core->log, "decision", body, NULL, err));
}

/* A shadow's verdict that makes the record too long is left out: it cannot make a run fail. */
static int append_decision(struct rv_run *run, json_t *body, struct rv_error *err)
{
        struct rv_error first = { 0 };
        int r;

        r = append_or_claim(run, body, &first);
        if (r == -EMSGSIZE && rv__record_drop_shadow(body))
                return rv_trace(append_or_claim(run, body, err));
        return r < 0 ? rv_error_set(err, rv_trace(r), "%s", first.message) : r;
}

static json_t *commit_env(const struct rv_run *run)
{
        json_t *env = json_array();

        for (size_t i = 0; i < run->request->n_env; i++) {
                const struct rv_env_pair *pair = &run->request->env[i];
                json_t *entry = commit(run, pair->value, strlen(pair->value));

                set(entry, "name", pair->name);
                json_array_append_new(env, entry);
        }
        return env;
}

/* What policy denied by itself is in the verdict. */
static bool is_policys_own(const struct rv_run *run)
{
        return !rv_policy_verdict_is_allow(run->verdict) &&
               json_object_get(run->detail, "denials") == json_object_get(run->verdict, "denials");
}

int rv__record_decision(struct rv_run *run, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *body = rv__record_begin(run);
        const struct rv_request *q = run->request;
        char hex[RV_SHA256_HEX_SIZE];
        int r;

        set(body, "stage", rv_json_get_string(run->facts, "stage", "requested"));
        add_verdict(run, body);
        rv_sha256_hex(q->source, q->source_bytes, hex);
        json_object_set_new(body, "source", json_pack("{s:s, s:I}", "sha256", hex, "bytes", (json_int_t)q->source_bytes));
        if (q->n_env)
                json_object_set_new(body, "env", commit_env(run));
        if (q->stdin_bytes)
                json_object_set_new(body, "stdin", commit(run, q->stdin_data, q->stdin_bytes));
        if (q->idempotency_key)
                json_object_set_new(body, "key", rv__run_key_json(run));
        /* What the core refuses although policy allows: a ceiling, a capability, a budget. */
        if (run->is_refused && !is_policys_own(run))
                set(body, "refused", rv_code_name(run->outcome.reason.code));
        else if (run->evidence.stop)
                set(body, "refused", rv_code_name(RV_CODE_TIMEOUT));
        else if (run->plan.struct_size && run->backend && digest_plan(run, hex) == 0)
                set(body, "plan_sha256", hex);
        set(body, "runtime_digest", run->plan.runtime_digest);
        r = rv_log_redact(run->core->log, body);
        if (r == 0)
                r = add_digests(body);
        if (r < 0)
                return rv_error_set(err, r, "cannot make the decision record: %s", strerror(-r));
        r = append_decision(run, body, err);
        if (r == 0 && !run->is_owed) {
                run->is_owed = true;
                rv_log_owe(run->core->log);
        }
        return rv_trace(r);
}

/* What a run with network reached, as in its outcome; or that this is not known. */
static json_t *make_network(const struct rv_run *run)
{
        const struct rv_network_evidence *e = &run->network.evidence;
        json_t *network = json_pack("{s:s, s:o, s:o, s:I, s:I}", "mode", rv_network_mode_name(run->request->network_mode), "contacts",
                                    e->contacts ? json_incref(e->contacts) : json_array(), "denials",
                                    e->denials ? json_incref(e->denials) : json_array(), "more_contacts", (json_int_t)e->n_more_contacts,
                                    "more_denials", (json_int_t)e->n_more_denials);

        if (run->network.is_evidence_lost)
                json_object_set_new(network, "is_lost", json_true());
        return network;
}

static json_t *make_outcome(const struct rv_run *run)
{
        json_t *body = rv__record_begin(run);
        const struct rv_outcome *o = &run->outcome;
        char hex[RV_SHA256_HEX_SIZE];

        rv_outcome_sha256(o, hex);
        set(body, "outcome_sha256", hex);
        set(body, "status", rv_status_name(o->reason.status));
        set(body, "code", rv_code_name(o->reason.code));
        set(body, "started", rv_started_name(o->reason.started));
        json_object_set_new(body, "stdout_bytes", json_integer((json_int_t)run->out.bytes));
        json_object_set_new(body, "stderr_bytes", json_integer((json_int_t)run->err.bytes));
        if (run->request && run->request->network_mode != RV_NETWORK_NONE)
                json_object_set_new(body, "network", make_network(run));
        return body;
}

int rv__record_outcome(struct rv_run *run, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *body = make_outcome(run);
        int r;

        r = rv_log_append_synced(run->core->log, "outcome", body, NULL, err);
        if (r == 0 && run->is_owed) {
                run->is_owed = false;
                rv_log_settle(run->core->log);
        }
        return rv_trace(r);
}

/* For the next reeve: the record with the digest of the answer as it goes out, which says that it is not recorded. */
static void leave_outcome(struct rv_run *run)
{
        _cleanup_(rv_json_unrefp) json_t *body = NULL;

        run->outcome.is_unrecorded = true;
        rv__run_keep_outcome(run);
        body = make_outcome(run);
        if (run->is_owed)
                (void)rv_log_leave(run->core->log, body);
}

/* The outcome is recorded before the answer. Once the program ran, the answer goes out in any case. */
enum rv_step rv__run_record(struct rv_run *run)
{
        struct rv_error err = { 0 };

        rv__run_keep_outcome(run);
        if (rv__record_outcome(run, &err) < 0) {
                leave_outcome(run);
                run->core->host->log(run->core->host->ctx, RV_LOG_WARNING, err.message);
        }
        rv_test_point("outcome-record");
        return RV_STEP_NEXT;
}
