#include "audit/redact.h"

#include "audit/log_private.h"
#include "audit/redact_texts.h"
#include "base/pointer.h"

#include <stdio.h>
#include <string.h>

#define MEMBER "redacted"
#define ALGORITHM "hmac-sha256:"
#define WITHHELD "withheld"

/* Where texts of others get into a record. Below them all is looked through. */
static const char *const searched[] = {
        "tenant", "principal", "request_id", "trace_id", "source", "env", "stdin", "request", "errors", "facts", "verdict", "shadow",
        /* of bundles and configurations */
        "name", "version", "message", "file",
};

/* But not these, which are words of a fixed set or places in a request. */
static const char *const fixed[] = {
        "/errors/*/code",
        "/facts/stage", "/facts/request/language", "/facts/request/network_mode", "/facts/packages/*/language", "/facts/packages/*/stage",
        "/facts/packages/*/kind", "/facts/network/*/mode", "/facts/idempotency/mode", "/facts/backend/mode",
        "/facts/pointers/packages/*", "/facts/pointers/packages/*/*", "/facts/pointers/network/*",
        "/verdict/effect", "/verdict/code", "/verdict/reason/path", "/verdict/denials/*/section",
        "/verdict/packages/*/effect", "/verdict/packages/*/unmet/*", "/verdict/network/*/effect", "/verdict/backend/effect",
        "/shadow/bundle", "/shadow/verdict_sha256",
        "/shadow/verdict/effect", "/shadow/verdict/code", "/shadow/verdict/reason/path", "/shadow/verdict/denials/*/section",
        "/shadow/verdict/packages/*/effect", "/shadow/verdict/packages/*/unmet/*", "/shadow/verdict/network/*/effect", "/shadow/verdict/backend/effect",
};

/* Digests, in which four digits of a text stand by chance. The text itself may be one. */
static const char *const digests[] = {
        "/source/sha256", "/env/*/hmac_sha256", "/stdin/hmac_sha256", "/request/hmac_sha256", "/facts/request/source_sha256",
        "/facts/packages/*/hash",
};

struct rv_redaction {
        struct rv_pointer fixed[RV_N_ELEMENTS(fixed)], digests[RV_N_ELEMENTS(digests)];
        size_t n;
        struct rv_pointer items[];
};

/* A walk through a body: where it is, and what it does with what it finds. */
struct walk {
        const struct rv_log *log;
        json_t *removed;                          /* array: what was hidden by the list */
        struct rv_redact_texts texts;             /* in that */
        const char *parts[RV_LOG_DEPTH_MAX];
        char indices[RV_LOG_DEPTH_MAX][24];
        unsigned n;
        /* 1: go into it, 0: leave it, -errno; a value in *@ret_instead takes its place */
        int (*visit)(struct walk *w, json_t *value, json_t **ret_instead);
};

static void walk_free(struct walk *w)
{
        json_decref(w->removed);
        rv_redact_texts_fini(&w->texts);
        free(w);
}
RV_DEFINE_CLEANUP(struct walk, walk_free)

static int read_pointers(const char *const *texts, size_t n, struct rv_pointer *ret)
{
        for (size_t i = 0; i < n; i++)
                if (rv_pointer_read(texts[i], &ret[i]) < 0)
                        return rv_raise(-EINVAL);
        return 0;
}

int rv_log_set_redaction(struct rv_log *log, const char *const *pointers, size_t n)
{
        _cleanup_(rv_freep) struct rv_redaction *redaction = NULL;

        if (n) {
                redaction = calloc(1, sizeof(*redaction) + n * sizeof(redaction->items[0]));
                if (!redaction)
                        return rv_raise(-ENOMEM);
                redaction->n = n;
                if (read_pointers(pointers, n, redaction->items) < 0)
                        return -EINVAL;
                rv_require(read_pointers(fixed, RV_N_ELEMENTS(fixed), redaction->fixed) == 0);
                rv_require(read_pointers(digests, RV_N_ELEMENTS(digests), redaction->digests) == 0);
        }
        free(log->redaction);
        log->redaction = rv_take(&redaction);
        return 0;
}

bool rv_log_is_commitment(const json_t *value)
{
        const char *text = json_object_size(value) == 1 ? rv_json_get_string(value, MEMBER, NULL) : NULL;
        size_t n = strlen(ALGORITHM);

        if (!text)
                return false;
        return strcmp(text, WITHHELD) == 0 ||
               (strncmp(text, ALGORITHM, n) == 0 && strlen(text) == n + 64 && strspn(text + n, "0123456789abcdef") == 64);
}

json_t *rv_log_commitment(const struct rv_log *log, const json_t *value)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        char commitment[sizeof(ALGORITHM) + 64] = WITHHELD;

        if (rv_json_canonical(value, &text) == 0) {
                memcpy(commitment, ALGORITHM, sizeof(ALGORITHM));
                rv_log_hmac(log, text.data, text.size, commitment + strlen(ALGORITHM));
                explicit_bzero(text.data, text.size);
        }
        return json_pack("{s:s}", MEMBER, commitment);
}

/* ---- Walking ---- */

static int step(struct walk *w, json_t *value, json_t **ret_instead);

static int step_object(struct walk *w, json_t *object)
{
        for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i)) {
                json_t *instead = NULL;
                int r;

                w->parts[w->n++] = json_object_iter_key(i);
                r = step(w, json_object_iter_value(i), &instead);
                w->n--;
                if (r == 0 && instead && json_object_iter_set_new(object, i, instead) < 0)
                        r = -ENOMEM;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int step_array(struct walk *w, json_t *array)
{
        for (size_t i = 0; i < json_array_size(array); i++) {
                json_t *instead = NULL;
                int r;

                snprintf(w->indices[w->n], sizeof(w->indices[0]), "%zu", i);
                w->parts[w->n] = w->indices[w->n];
                w->n++;
                r = step(w, json_array_get(array, i), &instead);
                w->n--;
                if (r == 0 && instead && json_array_set_new(array, i, instead) < 0)
                        r = -ENOMEM;
                if (r < 0)
                        return r;
        }
        return 0;
}

static int step(struct walk *w, json_t *value, json_t **ret_instead)
{
        int r;

        if (rv_log_is_commitment(value))
                return 0;
        r = w->visit(w, value, ret_instead);
        if (r <= 0 || *ret_instead)
                return r < 0 ? r : 0;
        return json_is_object(value) ? step_object(w, value) : json_is_array(value) ? step_array(w, value) : 0;
}

static bool is_searched(const char *name)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(searched); i++)
                if (strcmp(searched[i], name) == 0)
                        return true;
        return false;
}

static int hide(struct walk *w, const json_t *value, json_t **ret_instead)
{
        *ret_instead = rv_log_commitment(w->log, value);
        return *ret_instead ? 0 : -ENOMEM;
}

static bool is_among(const struct rv_pointer *list, size_t n, const struct walk *w)
{
        for (size_t i = 0; i < n; i++)
                if (rv_pointer_matches(&list[i], w->parts, w->n))
                        return true;
        return false;
}

/* The first walk hides what the list names. */
static int visit_named(struct walk *w, json_t *value, json_t **ret_instead)
{
        if (!is_among(w->log->redaction->items, w->log->redaction->n, w))
                return 1;
        if (json_array_append(w->removed, value) < 0)
                return -ENOMEM;
        return hide(w, value, ret_instead);
}

/* One over what was hidden gathers its texts. */
static int visit_removed(struct walk *w, json_t *value, json_t **ret_instead)
{
        (void)ret_instead;
        if (json_is_string(value))
                return rv_redact_texts_add(&w->texts, json_string_value(value), json_string_length(value));
        return 1;
}

/* The last one hides them wherever else they stand. */
static int visit_others(struct walk *w, json_t *value, json_t **ret_instead)
{
        const struct rv_redaction *known = w->log->redaction;
        bool is_digest;

        if (!json_is_string(value))
                return 1;
        is_digest = is_among(known->digests, RV_N_ELEMENTS(known->digests), w);
        if (!rv_redact_texts_match(&w->texts, json_string_value(value), json_string_length(value), is_digest) ||
            is_among(known->fixed, RV_N_ELEMENTS(known->fixed), w))
                return 0;
        return hide(w, value, ret_instead);
}

/* ---- A body ---- */

/* So that nothing is changed that the body shares with others. */
static int copy_members(json_t *body)
{
        for (void *i = json_object_iter(body); i; i = json_object_iter_next(body, i)) {
                json_t *value = json_object_iter_value(i);

                if (!is_searched(json_object_iter_key(i)) || !(json_is_object(value) || json_is_array(value)))
                        continue;
                if (json_object_iter_set_new(body, i, json_deep_copy(value)) < 0)
                        return rv_raise(-ENOMEM);
        }
        return 0;
}

static int walk_body(struct walk *w, json_t *body, int (*visit)(struct walk *, json_t *, json_t **))
{
        w->visit = visit;
        for (void *i = json_object_iter(body); i; i = json_object_iter_next(body, i)) {
                json_t *instead = NULL;
                int r;

                w->parts[0] = json_object_iter_key(i);
                w->n = 1;
                if (!is_searched(w->parts[0]))
                        continue;
                r = step(w, json_object_iter_value(i), &instead);
                if (r == 0 && instead && json_object_iter_set_new(body, i, instead) < 0)
                        r = -ENOMEM;
                if (r < 0)
                        return rv_raise(r);
        }
        return 0;
}

static int walk_new(const struct rv_log *log, struct walk **ret)
{
        _cleanup_(walk_freep) struct walk *w = calloc(1, sizeof(*w));

        if (w)
                w->removed = json_array();
        if (!w || !w->removed)
                return rv_raise(-ENOMEM);
        w->log = log;
        *ret = rv_take(&w);
        return 0;
}

int rv_log_redact(const struct rv_log *log, json_t *body)
{
        _cleanup_(walk_freep) struct walk *w = NULL;
        json_t *none = NULL;
        int r;

        if (!log->redaction)
                return 0;
        if (rv_json_is_deeper(body, RV_LOG_DEPTH_MAX))
                return rv_raise(-ELOOP);
        r = walk_new(log, &w);
        if (r == 0)
                r = copy_members(body);
        if (r == 0)
                r = walk_body(w, body, visit_named);
        if (r < 0 || !json_array_size(w->removed))
                return rv_trace(r);
        w->visit = visit_removed;
        w->n = 0;
        r = step(w, w->removed, &none);
        if (r == 0)
                r = rv_redact_texts_seal(&w->texts);
        if (r == 0)
                r = walk_body(w, body, visit_others);
        return rv_trace(r);
}
