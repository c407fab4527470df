#include "policy/policy.h"

#include "policy/env.h"
#include "policy/matcher.h"
#include "policy/view.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

#define ALTERNATIVES_MAX 20000

static void keep(lua_State *L, int anchor)
{
        lua_rawseti(L, anchor, (lua_Integer)lua_rawlen(L, anchor) + 1);
}

static void report(lua_State *L, struct rv_rule *rule, const char *name, const char *text)
{
        rule->is_broken = true;
        rv_engine_report(L, &rule->place, "rule '%s': match.%.60s: %s", rule->id, name, text);
}

/* One alternative from the value on top of the stack, which is popped and, if it must outlive the call, kept. */
static void compile_alternative(lua_State *L, struct rv_rule *rule, const char *name, int anchor,
        struct rv_alternative *ret)
{
        const struct rv_matcher *matcher = rv_matcher_test(L, -1);

        *ret = (struct rv_alternative){ .kind = RV_ALT_BOOLEAN };
        switch (lua_type(L, -1)) {
        case LUA_TSTRING:
                ret->text = lua_tolstring(L, -1, &ret->n);
                ret->kind = memchr(ret->text, '*', ret->n) ? RV_ALT_GLOB : RV_ALT_STRING;
                if (ret->n > RV_RULE_TEXT_MAX)
                        report(L, rule, name, "a text of more than " RV_STR(RV_RULE_TEXT_MAX) " bytes");
                keep(L, anchor);
                return;
        case LUA_TNUMBER:
                ret->kind = RV_ALT_INTEGER;
                ret->integer = lua_tointeger(L, -1);
                if (!lua_isinteger(L, -1))
                        report(L, rule, name, "a number here is a whole one");
                break;
        case LUA_TBOOLEAN:
                ret->boolean = lua_toboolean(L, -1);
                break;
        default:
                if (matcher) {
                        ret->kind = matcher->kind == RV_MATCHER_WITHIN ? RV_ALT_WITHIN : RV_ALT_VERSION;
                        ret->matcher = matcher;
                        keep(L, anchor);
                        return;
                }
                report(L, rule, name, "takes a text, a whole number, true, false, within { … }, version \"…\", or a list of these");
        }
        lua_pop(L, 1);
}

static bool is_list(lua_State *L, int index)
{
        const struct rv_view *view = rv_view_test(L, index);

        return lua_istable(L, index) || (view && view->kind == RV_VIEW_LIST);
}

/* A list with a hole, or with members that are no entries, says something other than its author means. */
static size_t count_raw(lua_State *L, int index)
{
        size_t n = 0;

        for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
                n++;
        return n;
}

static void compile_condition(lua_State *L, struct rv_rule *rule, const char *name, int anchor, struct rv_condition *c)
{
        struct rv_alternative *alternatives;
        int value = lua_gettop(L);
        size_t n = 1;

        if (is_list(L, value)) {
                n = (size_t)luaL_len(L, value);
                if (n == 0)
                        report(L, rule, name, "an empty list matches nothing");
                if (n > ALTERNATIVES_MAX) {
                        report(L, rule, name, "a list of more than " RV_STR(ALTERNATIVES_MAX) " entries");
                        n = 0;
                }
                if (lua_istable(L, value) && count_raw(L, value) != n)
                        report(L, rule, name, "a list has entries only, without holes");
        }
        rv_engine_charge(L, 1 + n / 4);
        alternatives = lua_newuserdatauv(L, (n + 1) * sizeof(*alternatives), 0);
        keep(L, anchor);
        *c = (struct rv_condition){ .name = name, .n_alternatives = n, .alternatives = alternatives };
        if (!is_list(L, value)) {
                compile_alternative(L, rule, name, anchor, alternatives);
                return;
        }
        for (size_t i = 0; i < n; i++) {
                lua_geti(L, value, (lua_Integer)i + 1);
                compile_alternative(L, rule, name, anchor, &alternatives[i]);
        }
        lua_pop(L, 1);
}

void rv_match_compile(lua_State *L, struct rv_rule *rule, int match, int anchor)
{
        size_t n = rv_keys_push(L, match);   /* in order: which of two faults is met first must not be chance */
        int keys = lua_gettop(L);

        rule->conditions = lua_newuserdatauv(L, (n + 1) * sizeof(*rule->conditions), 0);
        keep(L, anchor);
        for (size_t i = 0; i < n; i++) {
                const char *name;

                if (lua_rawgeti(L, keys, (lua_Integer)i + 1) != LUA_TSTRING) {
                        report(L, rule, "[…]", "match names facts, as in match = { name = \"numpy\" }");
                        lua_pop(L, 1);
                        continue;
                }
                name = lua_tostring(L, -1);
                lua_pushvalue(L, -1);
                keep(L, anchor);
                lua_rawget(L, match);
                compile_condition(L, rule, name, anchor, &rule->conditions[rule->n_conditions++]);
        }
        lua_pop(L, 1);
}

static const char *describe(const struct rv_fact *fact)
{
        static const char *const texts[] = {
                [RV_FACT_STRING] = "is a text", [RV_FACT_INTEGER] = "is a whole number", [RV_FACT_BOOLEAN] = "is true or false",
                [RV_FACT_LIST] = "is a list of texts, which matches if one of them does", [RV_FACT_MAP] = "cannot be matched; use `when`",
                [RV_FACT_TENANT] = "is matched by the tenant's name, a text",
        };

        return texts[fact->type];
}

static bool is_word(const char *words, const char *text, size_t n)
{
        const char *at = words;

        while (at) {
                const char *end = strchrnul(at, ' ');

                if ((size_t)(end - at) == n && memcmp(at, text, n) == 0)
                        return true;
                at = *end ? end + 1 : NULL;
        }
        return false;
}

/* Can the fact ever be that? What cannot is a mistake, not a rule that happens not to match. */
static void check_alternative(lua_State *L, struct rv_rule *rule, const struct rv_condition *c,
        const struct rv_alternative *a)
{
        const struct rv_fact *fact = c->fact;
        bool is_textual = fact->type == RV_FACT_STRING || fact->type == RV_FACT_LIST || fact->type == RV_FACT_TENANT;
        char text[200];

        switch (a->kind) {
        case RV_ALT_STRING:
                if (is_textual && fact->words && !is_word(fact->words, a->text, a->n)) {
                        snprintf(text, sizeof(text), "'%.40s' is not one of: %s", a->text, fact->words);
                        report(L, rule, c->name, text);
                }
                break;
        case RV_ALT_GLOB: break;
        case RV_ALT_INTEGER: is_textual = fact->type == RV_FACT_INTEGER; break;
        case RV_ALT_BOOLEAN: is_textual = fact->type == RV_FACT_BOOLEAN; break;
        case RV_ALT_WITHIN: is_textual = is_textual && strcmp(fact->name, "domain") == 0; break;
        case RV_ALT_VERSION: is_textual = is_textual && strcmp(fact->name, "version") == 0; break;
        }
        if (is_textual)
                return;
        if (a->kind == RV_ALT_WITHIN || a->kind == RV_ALT_VERSION)
                report(L, rule, c->name, a->kind == RV_ALT_WITHIN ? "within is for `domain`" : "version is for `version`");
        else
                report(L, rule, c->name, describe(fact));
}

static int compare_conditions(const void *pa, const void *pb)
{
        const struct rv_condition *a = pa, *b = pb;
        bool is_late_a = a->fact && a->fact->is_resolved_only, is_late_b = b->fact && b->fact->is_resolved_only;

        return is_late_a != is_late_b ? (int)is_late_a - (int)is_late_b : strcmp(a->name, b->name);
}

void rv_match_place(lua_State *L, struct rv_rule *rule, enum rv_fact_set set)
{
        char names[400], more[400], text[900];

        for (size_t i = 0; i < rule->n_conditions; i++) {
                struct rv_condition *c = &rule->conditions[i];

                c->fact = rv_fact_find(set, c->name);
                if (!c->fact) {
                        c->fact = rv_fact_find(RV_FACTS_REQUEST, c->name);
                        c->is_of_request = c->fact != NULL;
                }
                if (!c->fact) {
                        snprintf(text, sizeof(text), "unknown fact; there are, of %s, %s, and of the request %s",
                                rv_fact_tables[set].title, rv_fact_list(set, names, sizeof(names)),
                                rv_fact_list(RV_FACTS_REQUEST, more, sizeof(more)));
                        report(L, rule, c->name, text);
                        continue;
                }
                for (size_t k = 0; k < c->n_alternatives && !rule->is_broken; k++)
                        check_alternative(L, rule, c, &c->alternatives[k]);
        }
        if (rule->n_conditions)
                qsort(rule->conditions, rule->n_conditions, sizeof(*rule->conditions), compare_conditions);
}

static int has_text(struct rv_engine *e, const struct rv_rule *rule, const struct rv_alternative *a, const char *text,
        size_t n)
{
        char why[200];
        int r;

        switch (a->kind) {
        case RV_ALT_STRING: return a->n == n && memcmp(a->text, text, n) == 0;
        case RV_ALT_GLOB: return rv_glob_has(a->text, a->n, text, n);
        case RV_ALT_WITHIN:
        case RV_ALT_VERSION:
                if (!rv_engine_spend(e, 1 + a->matcher->n_names / 4))
                        return -EAGAIN;
                r = rv_matcher_has(a->matcher, e->order, text, n, why);
                if (r < 0) {
                        e->fault = RV_ENGINE_ERROR;
                        e->place = rule->place;
                        snprintf(e->message, sizeof(e->message), "%s", why);
                }
                return r;
        case RV_ALT_INTEGER:
        case RV_ALT_BOOLEAN:
                break;
        }
        return 0;
}

static int has(struct rv_engine *e, const struct rv_rule *rule, const struct rv_alternative *a, const json_t *value)
{
        const json_t *element;
        size_t i;
        int r;

        switch (json_typeof(value)) {
        case JSON_STRING: return has_text(e, rule, a, json_string_value(value), json_string_length(value));
        case JSON_INTEGER: return a->kind == RV_ALT_INTEGER && a->integer == json_integer_value(value);
        case JSON_TRUE:
        case JSON_FALSE:
                return a->kind == RV_ALT_BOOLEAN && a->boolean == json_is_true(value);
        case JSON_ARRAY:
                json_array_foreach((json_t *)value, i, element) {
                        r = has(e, rule, a, element);
                        if (r)
                                return r;
                }
                return 0;
        case JSON_OBJECT:
                element = json_object_get(value, "name");   /* the tenant */
                return element ? has(e, rule, a, element) : 0;
        case JSON_REAL:
        case JSON_NULL:
                break;
        }
        return 0;
}

static enum rv_engine_fault test_condition(struct rv_engine *e, const struct rv_rule *rule,
        const struct rv_condition *c,
        const json_t *item, bool *ret)
{
        const json_t *value = json_object_get(c->is_of_request ? json_object_get(e->facts, "request") : item, c->name);
        int r = 0;

        if (!rv_engine_spend(e, 1 + c->n_alternatives / 8))
                return e->fault;
        if (!value) {
                e->place = rule->place;
                if (c->fact->is_resolved_only && strcmp(rv_json_get_string(item, "stage", ""), "resolved") != 0)
                        return e->fault = RV_ENGINE_UNDECIDED;
                rv_engine_lacks(e, c->fact->name, item);
                if (c->fact->is_resolved_only)
                        rv_fact_describe_lack(c->name, item, e->message, sizeof(e->message));
                else
                        snprintf(e->message, sizeof(e->message), "the facts have no '%s'", c->name);
                return e->fault = RV_ENGINE_ERROR;
        }
        for (size_t i = 0; i < c->n_alternatives && r == 0; i++)
                r = has(e, rule, &c->alternatives[i], value);
        if (r < 0)
                return e->fault;
        *ret = r;
        return RV_ENGINE_FINE;
}

enum rv_engine_fault rv_match_test(struct rv_engine *e, const struct rv_rule *rule, const json_t *item, bool *ret)
{
        bool is_match = true;

        e->fallback = rule->place;
        for (size_t i = 0; i < rule->n_conditions && is_match; i++)
                if (test_condition(e, rule, &rule->conditions[i], item, &is_match) != RV_ENGINE_FINE)
                        return e->fault;
        *ret = is_match;
        return RV_ENGINE_FINE;
}

static bool alternative_covers(const struct rv_alternative *earlier, const struct rv_alternative *later)
{
        if (earlier->kind == RV_ALT_GLOB && earlier->n == 1)
                return true;
        if (earlier->kind == RV_ALT_GLOB && later->kind == RV_ALT_STRING)
                return rv_glob_has(earlier->text, earlier->n, later->text, later->n);
        if (earlier->kind != later->kind)
                return false;
        switch (earlier->kind) {
        case RV_ALT_STRING:
        case RV_ALT_GLOB:
                return earlier->n == later->n && memcmp(earlier->text, later->text, later->n) == 0;
        case RV_ALT_INTEGER: return earlier->integer == later->integer;
        case RV_ALT_BOOLEAN: return earlier->boolean == later->boolean;
        case RV_ALT_WITHIN:
        case RV_ALT_VERSION:
                break;
        }
        return earlier->matcher == later->matcher;
}

static bool condition_covers(const struct rv_condition *earlier, const struct rv_condition *later)
{
        if (strcmp(earlier->name, later->name) != 0)
                return false;
        for (size_t i = 0; i < later->n_alternatives; i++) {
                bool is_covered = false;

                for (size_t k = 0; k < earlier->n_alternatives && !is_covered; k++)
                        is_covered = alternative_covers(&earlier->alternatives[k], &later->alternatives[i]);
                if (!is_covered)
                        return false;
        }
        return true;
}

/* Does the condition hold for every value that the fact can have? */
static bool is_always(const struct rv_condition *c)
{
        for (size_t i = 0; i < c->n_alternatives; i++)
                if (c->alternatives[i].kind == RV_ALT_GLOB && c->alternatives[i].n == 1 &&
                        c->fact->type != RV_FACT_LIST)
                        return true;
        return false;
}

bool rv_match_covers(const struct rv_rule *earlier, const struct rv_rule *later)
{
        if (earlier->when_ref != LUA_NOREF)
                return false;
        for (size_t i = 0; i < earlier->n_conditions; i++) {
                bool is_covered = is_always(&earlier->conditions[i]);

                for (size_t k = 0; k < later->n_conditions && !is_covered; k++)
                        is_covered = condition_covers(&earlier->conditions[i], &later->conditions[k]);
                if (!is_covered)
                        return false;
        }
        return true;
}
