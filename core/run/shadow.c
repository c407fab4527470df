#include "run/run_private.h"

#include "policy/decide.h"

#include <string.h>

/*
 * The shadow: a second bundle that judges the same facts and decides nothing. Whatever becomes of it goes into the
 * decision record; nothing of it can change what becomes of the run.
 */

static json_t *make_error(const char *digest, const char *text)
{
        json_t *error = json_string(text);

        return json_pack("{s:s, s:o}", "bundle", digest, "error", error ? error : json_string("a message that is not UTF-8"));
}

void rv__run_judge_shadow(struct rv_run *run)
{
        const struct rv_run_input *in = &run->input;
        json_t *verdict = NULL;

        json_decref(run->shadow);
        run->shadow = NULL;
        if (!in->shadow) {
                if (in->shadow_error && *in->shadow_error)
                        run->shadow = make_error("", in->shadow_error);
                return;
        }
        if (rv_policy_decide(in->shadow, run->facts, &verdict) == 0)
                run->shadow = json_pack("{s:s, s:o}", "bundle", rv_bundle_digest(in->shadow), "verdict", verdict);
        else
                run->shadow = make_error(rv_bundle_digest(in->shadow), "reeve ran out of memory while it evaluated the shadow");
}

int rv__record_shadow_digest(json_t *body)
{
        json_t *shadow = json_object_get(body, "shadow"), *verdict = json_object_get(shadow, "verdict");
        char hex[65];
        int r;

        if (!verdict)
                return 0;
        r = rv_json_canonical_sha256(verdict, hex);
        if (r < 0)
                return rv_trace(r);
        return json_object_set_new(shadow, "verdict_sha256", json_string(hex)) < 0 ? rv_raise(-ENOMEM) : 0;
}

bool rv__record_drop_shadow(json_t *body)
{
        json_t *shadow = json_object_get(body, "shadow"), *error;

        if (!json_object_get(shadow, "verdict"))
                return false;
        error = make_error(rv_json_get_string(shadow, "bundle", ""), "the verdict does not fit into the record beside the other");
        return error && json_object_set_new(body, "shadow", error) == 0;
}
