#include "audit/replay_private.h"

#include "policy/provenance.h"

#include <string.h>

#define COMMITTED "{\"redacted\":\"hmac-sha256:"
#define WITHHELD "{\"redacted\":\"withheld\"}"

int rv_replay_worker_init(struct rv_replay_worker *w, const struct rv_replay_input *input)
{
        _cleanup_(rv_json_unrefp) json_t *engine = rv_policy_engine();
        struct rv_canonical_object o;
        struct rv_span name;
        int r;

        *w = (struct rv_replay_worker){ .input = input, .bundles.dir_fd = input->bundles_fd };
        r = engine ? rv_json_canonical(engine, &w->engine) : rv_raise(-ENOMEM);
        if (r < 0)
                return rv_trace(r);
        rv_canonical_open(&o, w->engine.data, w->engine.size);
        while (rv_canonical_next(&o, &name) > 0)
                if (rv_span_is(name, "limits"))
                        (void)rv_canonical_skip(&o, &w->limits);
        return 0;
}

void rv_replay_worker_fini(struct rv_replay_worker *w)
{
        rv_bundle_cache_fini(&w->bundles);
        rv_canonical_cache_fini(&w->cache);
        rv_buf_fini(&w->verdict);
        rv_buf_fini(&w->engine);
        rv_buf_fini(&w->other_engine);
}

/* Canonical form has no such bytes inside a text, where quotes are escaped. */
bool rv_replay_is_redacted(struct rv_span s)
{
        static const char committed[] = "{\"redacted\":\"hmac-sha256:", withheld[] = "{\"redacted\":\"withheld\"}";

        return s.text &&
                (memmem(s.text, s.n, committed, sizeof(committed) - 1) ||
                        memmem(s.text, s.n, withheld, sizeof(withheld) - 1));
}

static bool is_sha256(struct rv_span recorded, const char *hex)
{
        return rv_span_is(rv_span_string(recorded), hex);
}

static void update(struct rv_sha256 *h, const char *text, struct rv_span s)
{
        rv_sha256_update(h, text, strlen(text));
        rv_sha256_update(h, s.text, s.n);
}

static struct rv_span limits_of(const struct rv_replay_worker *w, struct rv_span engine)
{
        struct rv_span name, limits = { "null", 4 };
        struct rv_canonical_object o;

        if (engine.n == w->engine.size && memcmp(engine.text, w->engine.data, engine.n) == 0)
                return w->limits;
        rv_canonical_open(&o, engine.text, engine.n);
        while (rv_canonical_next(&o, &name) > 0)
                if (rv_span_is(name, "limits"))
                        (void)rv_canonical_skip(&o, &limits);
        return limits;
}

/* Values are in canonical form as they lie, so the form of an object of them is put together from their bytes. */
bool rv_replay_is_context_right(const struct rv_replay_worker *w, const struct rv_replay_record *rec)
{
        uint8_t digest[RV_SHA256_SIZE];
        char hex[RV_SHA256_HEX_SIZE];
        struct rv_sha256 h;

        rv_sha256_init(&h);
        update(&h, "{\"bundle\":", rec->bundle);
        update(&h, ",\"facts\":", rec->facts_text);
        update(&h, ",\"limits\":", limits_of(w, rec->engine));
        rv_sha256_update(&h, "}", 1);
        rv_sha256_final(&h, digest);
        rv_hex(digest, sizeof(digest), hex);
        return is_sha256(rec->context_sha256, hex);
}

bool rv_replay_is_digest_right(struct rv_span text, struct rv_span recorded)
{
        char hex[RV_SHA256_HEX_SIZE];

        rv_sha256_hex(text.text, text.n, hex);
        return is_sha256(recorded, hex);
}

int rv_replay_has_same_engine(struct rv_replay_worker *w, struct rv_span engine, bool *ret)
{
        static const char *const parts[] = { "lua", "sandbox", "limits" };
        _cleanup_(rv_json_unrefp) json_t *theirs = NULL, *ours = NULL;

        if (engine.n == w->engine.size && memcmp(engine.text, w->engine.data, engine.n) == 0) {
                *ret = true;
                return 0;
        }
        if (w->other_engine.size != engine.n || memcmp(w->other_engine.data, engine.text, engine.n) != 0) {
                w->other_engine.size = 0;
                if (rv_buf_append(&w->other_engine, engine.text, engine.n) < 0 ||
                        rv_canonical_read(w->engine.data, w->engine.size, 4, &ours) < 0)
                        return rv_raise(-ENOMEM);
                w->is_other_same = rv_canonical_read(engine.text, engine.n, 4, &theirs) == 0;
                for (size_t i = 0; i < RV_N_ELEMENTS(parts); i++)
                        if (!json_equal(json_object_get(ours, parts[i]), json_object_get(theirs, parts[i])))
                                w->is_other_same = false;
        }
        *ret = w->is_other_same;
        return 0;
}

struct rv_span rv_replay_text(struct rv_span s)
{
        struct rv_span text = rv_span_string(s);
        size_t before = strlen("{\"redacted\":\"");

        if (text.text)
                return text;
        if (rv_replay_is_redacted(s) && s.n > before + 2)
                return (struct rv_span){ s.text + before, s.n - before - 2 };
        return s;
}
