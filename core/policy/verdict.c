#include "policy/verdict.h"

#include "base/utf8.h"
#include "policy/decide.h"

#include <string.h>

static void set(struct rv_verdict *v, json_t *object, const char *key, json_t *value)
{
        /* NULL is an allocation that failed; jansson's setters refuse it, and a NULL object too. */
        if (json_object_set_new(object, key, value) < 0)
                v->is_failed = true;
}

/*
 * Text for the record. Messages quote what a policy wrote, which can be cut inside a character or hold any
 * byte: what is not UTF-8 becomes '?'.
 */
static json_t *text(const char *s)
{
        size_t n = strlen(s);
        char clean[2 * RV_ENGINE_MESSAGE_MAX];
        struct rv_utf8 u = { 0 };
        size_t begin = 0, out = 0;

        if (rv_utf8_check(s, n, NULL))
                return json_stringn_nocheck(s, n);
        for (size_t i = 0; i < n && out + 5 < sizeof(clean);) {
                enum rv_utf8_event event = rv_utf8_feed(&u, (uint8_t)s[i]);

                if (event == RV_UTF8_CHARACTER) {
                        memcpy(clean + out, s + begin, i + 1 - begin);
                        out += i + 1 - begin;
                } else if (event == RV_UTF8_INVALID || event == RV_UTF8_INVALID_BEFORE) {
                        clean[out++] = '?';
                }
                i += event != RV_UTF8_INVALID_BEFORE;
                if (event != RV_UTF8_MORE)
                        begin = i;
        }
        return json_stringn_nocheck(clean, out);
}

static void begin(struct rv_verdict *v)
{
        *v = (struct rv_verdict){ .root = json_object(), .denials = json_array(), .packages = json_array() };
        set(v, v->root, "effect", json_string("allow"));
        set(v, v->root, "code", json_string("ok"));
        set(v, v->root, "reason", json_null());
        set(v, v->root, "denials", v->denials);
        set(v, v->root, "packages", v->packages);
}

void rv_verdict_begin(struct rv_verdict *v)
{
        begin(v);
        v->network = json_array();
        set(v, v->root, "network", v->network);
}

void rv_verdict_begin_packages(struct rv_verdict *v)
{
        begin(v);
        v->has_path_lists = true;
}

void rv_verdict_fini(struct rv_verdict *v)
{
        json_decref(v->root);
        *v = (struct rv_verdict){ 0 };
}

static void set_place(struct rv_verdict *v, json_t *object, const struct rv_finding *f)
{
        set(v, object, "rule", text(f->rule));
        set(v, object, "file", text(f->file));
        set(v, object, "line", json_integer(f->line));
}

void rv_verdict_deny(struct rv_verdict *v, const struct rv_finding *f)
{
        json_t *denial = json_object(), *reason;

        if (v->is_failed) {
                json_decref(denial);
                return;
        }
        set_place(v, denial, f);
        set(v, denial, "section", json_string(f->section));
        set(v, denial, "item", text(f->item));
        set(v, denial, "message", text(f->message));
        if (json_array_append_new(v->denials, denial) < 0)
                v->is_failed = true;
        if (v->is_failed || json_array_size(v->denials) > 1)
                return;
        reason = json_object();
        set_place(v, reason, f);
        set(v, reason, "item", text(f->item));
        if (v->has_path_lists)
                set(v, reason, "path", f->names ? json_deep_copy(f->names) : json_array());
        else
                set(v, reason, "path", text(f->path));
        set(v, reason, "message", text(f->message));
        set(v, v->root, "reason", reason);
        set(v, v->root, "effect", json_string("deny"));
        set(v, v->root, "code", json_string(f->code));
}

void rv_verdict_add(struct rv_verdict *v, json_t *list, json_t *entry, const struct rv_finding *f)
{
        if (v->is_failed || !entry)
                v->is_failed = true;
        else
                set_place(v, entry, f);
        if (json_array_append_new(list, entry) < 0)
                v->is_failed = true;
}

void rv_verdict_set(struct rv_verdict *v, const char *section, json_t *entry, const struct rv_finding *f)
{
        if (f && entry)
                set_place(v, entry, f);
        set(v, v->root, section, entry);
}

int rv_verdict_end(struct rv_verdict *v, json_t **ret)
{
        if (v->is_failed)
                return rv_raise(-ENOMEM);
        *ret = rv_take(&v->root);
        return 0;
}

json_t *rv_policy_verdict_error(const char *message, const char *file, int line)
{
        struct rv_finding f = { "policy", "policy_error", "", "", "", message, file, line, NULL };
        struct rv_verdict v;
        json_t *verdict = NULL;

        rv_verdict_begin(&v);
        rv_verdict_deny(&v, &f);
        rv_verdict_set(&v, "idempotency", json_pack("{s:b}", "require_key", 0), &f);
        rv_verdict_set(&v, "backend", json_pack("{s:s, s:s}", "effect", "deny", "use", ""), &f);
        rv_verdict_end(&v, &verdict);
        rv_verdict_fini(&v);
        return verdict;
}

bool rv_policy_verdict_is_of_memory(const json_t *verdict)
{
        const json_t *denial;
        size_t i;

        json_array_foreach(json_object_get(verdict, "denials"), i, denial)
                for (size_t k = 0; k < RV_ENGINE_MEMORY_MAX_; k++)
                        if (strcmp(rv_json_get_string(denial, "message", ""), rv_engine_memory_causes[k]) == 0)
                                return true;
        return false;
}

bool rv_policy_verdict_is_allow(const json_t *verdict)
{
        return strcmp(rv_json_get_string(verdict, "effect", "deny"), "allow") == 0;
}

const char *rv_policy_verdict_code(const json_t *verdict)
{
        return rv_json_get_string(verdict, "code", "policy_error");
}

bool rv_policy_verdict_requires_key(const json_t *verdict)
{
        return json_is_true(json_object_get(json_object_get(verdict, "idempotency"), "require_key"));
}

const char *rv_policy_verdict_backend(const json_t *verdict)
{
        return rv_json_get_string(json_object_get(verdict, "backend"), "use", "");
}

uint32_t rv_policy_verdict_timeout_s(const json_t *verdict)
{
        return (uint32_t)json_integer_value(json_object_get(json_object_get(verdict, "limits"), "timeout_s"));
}

uint32_t rv_policy_verdict_memory_mib(const json_t *verdict)
{
        return (uint32_t)json_integer_value(json_object_get(json_object_get(verdict, "limits"), "memory_mib"));
}
