#include "run/recover.h"

#include "audit/recover.h"
#include "run/classify.h"
#include "run/outcome.h"
#include "store/outcomes.h"

#include <stdio.h>
#include <string.h>

static const char lost_text[] = "the reeve that had started it ended before the outcome was recorded";
static const char early_text[] = "the reeve that it was given to ended while packages were resolved";

static const char *text_at(const json_t *object, const char *outer, const char *inner)
{
        return rv_json_get_string(json_object_get(object, outer), inner, NULL);
}

/* The effective value of a limit: what policy lowered it to, else what was asked for. */
static uint32_t limit_at(const json_t *decision, const char *name)
{
        const json_t *request = json_object_get(json_object_get(decision, "facts"), "request");
        json_int_t asked = json_integer_value(json_object_get(request, name));
        json_int_t most = json_integer_value(json_object_get(json_object_get(json_object_get(decision, "verdict"), "limits"), name));

        return (uint32_t)(most > 0 && most < asked ? most : asked);
}

/*
 * With packages a program is started only after its second decision, of stage `resolved`. Where the list of them is
 * hidden, their number may still be there; where neither says that there is none, nothing is concluded from it.
 */
static bool is_never_started(const json_t *last)
{
        const json_t *facts = json_object_get(last, "facts");

        return strcmp(rv_json_get_string(last, "stage", ""), "requested") == 0 &&
               (json_array_size(json_object_get(facts, "packages")) > 0 ||
                json_integer_value(json_object_get(json_object_get(facts, "request"), "package_count")) > 0);
}

/* It was refused, by policy or by the core: the decision itself says why. */
static bool judge_refused(const json_t *decision, struct rv_classification *ret)
{
        const json_t *verdict = json_object_get(decision, "verdict");
        const char *refused = rv_json_get_string(decision, "refused", NULL), *message = text_at(verdict, "reason", "message");
        bool is_denied = strcmp(rv_json_get_string(verdict, "effect", "allow"), "allow") != 0;
        const char *code = rv_json_get_string(verdict, "code", "");
        enum rv_phase phase = RV_PHASE_DECIDE;
        enum rv_code parsed;

        if (!refused && !is_denied)
                return false;
        if (refused && strcmp(refused, code) != 0) {
                code = refused;
                message = NULL;
        }
        if (rv_code_parse(code, &parsed) < 0)
                parsed = RV_CODE_POLICY_ERROR;
        /* The tenant's ceiling stands beside policy; what else the core refuses comes with the plan. */
        if (!is_denied && (parsed == RV_CODE_PACKAGE_UNAVAILABLE || parsed == RV_CODE_PACKAGE_INSTALL_FAILED))
                phase = RV_PHASE_RESOLVE;
        else if (!is_denied && parsed != RV_CODE_NETWORK_DENIED)
                phase = RV_PHASE_PLAN;
        rv_classification_refuse(parsed, phase, message ? message : "refused before it started", ret);
        return true;
}

static void judge_lost(const json_t *decision, const char *mode, bool is_early, struct rv_classification *ret)
{
        struct rv_observation seen = {
                .struct_size = sizeof(seen), .started = is_early ? RV_STARTED_NO : RV_STARTED_UNKNOWN,
                .fault = RV_BACKEND_FAULT_LOST, .result_fd = -1,
        };
        struct rv_evidence evidence = {
                .has_network = !mode || strcmp(mode, "none") != 0,
                .timeout_s = limit_at(decision, "timeout_s"), .memory_mib = limit_at(decision, "memory_mib"),
                .was_released = !is_early, .observation = &seen,
        };

        snprintf(seen.fault_text, sizeof(seen.fault_text), "%s", is_early ? early_text : lost_text);
        rv_require(rv_classify(&evidence, ret) == 0);
}

/* What says whose it is, as the decision has it. */
static int begin(const json_t *decision, json_t **ret)
{
        static const char *const names[] = { "run_id", "decision_id", "tenant", "principal", "request_id", "trace_id" };
        json_t *body = json_object();
        int r = body ? 0 : -ENOMEM;

        for (size_t i = 0; i < RV_N_ELEMENTS(names) && r == 0; i++) {
                json_t *value = json_object_get(decision, names[i]);

                if (value && json_object_set(body, names[i], value) < 0)
                        r = -ENOMEM;
        }
        if (r < 0) {
                json_decref(body);
                return rv_raise(r);
        }
        *ret = body;
        return 0;
}

static int set(json_t *body, const char *name, const char *value)
{
        return json_object_set_new(body, name, json_string(value)) < 0 ? rv_raise(-ENOMEM) : 0;
}

static int sink_buf(void *ctx, const void *data, size_t n)
{
        return rv_buf_append(ctx, data, n);
}

/* Whoever has waited for a run with a key is given this outcome. Without its bytes he is told that they are lost. */
static int keep(struct rv_log *log, const json_t *decision, const struct rv_outcome *o)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        int r;

        if (!json_object_get(decision, "key") || o->reason.started == RV_STARTED_NO)
                return 0;
        r = rv_outcome_write(o, sink_buf, &text);
        if (r == 0 && rv_outcomes_put(log, o->decision_id ? o->decision_id : "", text.data, text.size, NULL) < 0)
                return 0;
        return rv_trace(r);
}

/* What a run with network reached; nobody is left to tell if it may have started. */
static int set_network(json_t *body, const char *mode, enum rv_started started)
{
        json_t *network;

        if (!mode || !strcmp(mode, "none"))
                return 0;
        network = json_pack("{s:s, s:[], s:[], s:i, s:i}", "mode", mode, "contacts", "denials", "more_contacts", 0, "more_denials", 0);
        if (started != RV_STARTED_NO)
                json_object_set_new(network, "is_lost", json_true());
        return json_object_set_new(body, "network", network) < 0 ? rv_raise(-ENOMEM) : 0;
}

/* The first decision has what was asked for and the limits, the last says how far it came. */
static int make_outcome(struct rv_log *log, const json_t *decision, const json_t *last, json_t *body)
{
        const char *mode = text_at(json_object_get(decision, "facts"), "request", "network_mode");
        struct rv_outcome o = {
                .run_id = rv_json_get_string(decision, "run_id", NULL), .decision_id = rv_json_get_string(decision, "decision_id", NULL),
                .tenant = rv_json_get_string(decision, "tenant", NULL), .network_mode = mode,
                .timeout_s = limit_at(decision, "timeout_s"), .memory_mib = limit_at(decision, "memory_mib"),
        };
        char hex[RV_SHA256_HEX_SIZE];
        int r;

        if (!judge_refused(last, &o.reason))
                judge_lost(decision, mode, is_never_started(last), &o.reason);
        rv_outcome_sha256(&o, hex);
        r = keep(log, decision, &o);
        if (r == 0)
                r = set(body, "outcome_sha256", hex);
        if (r == 0)
                r = set(body, "status", rv_status_name(o.reason.status));
        if (r == 0)
                r = set(body, "code", rv_code_name(o.reason.code));
        if (r == 0)
                r = set(body, "started", rv_started_name(o.reason.started));
        if (r == 0)
                r = set_network(body, mode, o.reason.started);
        return rv_trace(r);
}

static int append_gap(struct rv_log *log, const json_t *decision, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *gap = NULL;
        int r;

        r = begin(decision, &gap);
        if (r == 0)
                r = set(gap, "cause", "outcome_not_written");
        if (r < 0)
                return rv_error_set(err, r, "out of memory for a gap record");
        return rv_trace(rv_log_append(log, "gap", gap, NULL, err));
}

/* What a file holds is not trusted to be what a log takes: all that an outcome record must have, of the same run. */
static bool is_outcome(const json_t *body, const json_t *decision)
{
        static const char *const same[] = { "run_id", "decision_id", "tenant" }, *const needed[] = { "outcome_sha256", "status", "code", "started" };

        for (size_t i = 0; i < RV_N_ELEMENTS(same); i++)
                if (!json_equal(json_object_get(body, same[i]), json_object_get(decision, same[i])))
                        return false;
        for (size_t i = 0; i < RV_N_ELEMENTS(needed); i++)
                if (!json_is_string(json_object_get(body, needed[i])))
                        return false;
        return true;
}

static int conclude(
        void *ctx, struct rv_log *log, const json_t *decision, const json_t *last, json_t *left, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *body = NULL;
        int r = 0;

        (void)ctx;
        if (left)
                r = append_gap(log, decision, err);
        if (r < 0)
                return rv_trace(r);
        if (left && is_outcome(left, decision) && json_object_set_new(left, "recovered", json_true()) == 0) {
                r = rv_log_append(log, "outcome", left, NULL, NULL);
                if (r != -EINVAL && r != -EDOM && r != -EILSEQ && r != -EMSGSIZE && r != 0)
                        return rv_error_set(err, rv_trace(r), "cannot write the outcome that run %s left: %s", rv_json_get_string(decision, "run_id", "?"), strerror(-r));
                if (r == 0)
                        return 0;
        }
        r = begin(decision, &body);
        if (r == 0)
                r = make_outcome(log, decision, last, body);
        if (r == 0 && json_object_set_new(body, "recovered", json_true()) < 0)
                r = rv_raise(-ENOMEM);
        if (r < 0)
                return rv_error_set(err, r, "out of memory for an outcome record");
        return rv_trace(rv_log_append(log, "outcome", body, NULL, err));
}

int rv_run_recover(struct rv_log *log, struct rv_error *err)
{
        return rv_trace(rv_log_recover(log, conclude, NULL, err));
}
