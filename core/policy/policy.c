#include "policy/policy.h"

#include "policy/env.h"
#include "policy/object.h"
#include "request/bounds.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

static const char kind;

const char *const rv_section_names[_RV_SECTION_MAX] = { "packages", "network", "idempotency", "backend" };
const enum rv_fact_set rv_section_facts[_RV_SECTION_MAX] = { RV_FACTS_PACKAGE, RV_FACTS_NETWORK, RV_FACTS_IDEMPOTENCY,
        RV_FACTS_BACKEND };
const char *const rv_limit_names[_RV_LIMIT_MAX] = { "timeout_s", "memory_mib" };

static const int64_t limit_minima[_RV_LIMIT_MAX] = { RV_BOUND_MIN(timeout_s), RV_BOUND_MIN(memory_mib) };

/* Where policy { … } is being called: what its faults are reported at. */
#define FAULT(...) rv_engine_report(L, &policy->place, __VA_ARGS__)

const struct rv_policy *rv_policy_test(lua_State *L, int index)
{
        return rv_object_test(L, index, &kind);
}

static bool is_unique(const struct rv_section_rules *s, const struct rv_rule *rule)
{
        for (size_t i = 0; i < s->n_rules; i++)
                if (strcmp(s->rules[i]->id, rule->id) == 0)
                        return false;
        return true;
}

/* The entries 1 to n of the section on top of the stack. */
static void take_rules(lua_State *L, struct rv_policy *policy, enum rv_section section, int anchor)
{
        struct rv_section_rules *s = &policy->sections[section];
        int table = lua_gettop(L);
        size_t n = lua_rawlen(L, table);

        if (n > RV_POLICY_RULES_MAX) {
                FAULT("section %s has more than %d rules", rv_section_names[section], RV_POLICY_RULES_MAX);
                n = 0;
        }
        s->rules = lua_newuserdatauv(L, (n + 1) * sizeof(*s->rules), 0);
        lua_rawseti(L, anchor, (lua_Integer)lua_rawlen(L, anchor) + 1);
        rv_engine_charge(L, n + n * n / 64);
        for (size_t i = 0; i < n; i++) {
                struct rv_rule *rule;

                lua_rawgeti(L, table, (lua_Integer)i + 1);
                rule = rv_rule_test(L, -1);
                if (!rule) {
                        FAULT("%s[%zu] is %s and not a rule; write rule { id = \"…\", … }", rv_section_names[section], i + 1,
                                luaL_typename(L, -1));
                        lua_pop(L, 1);
                        continue;
                }
                lua_rawseti(L, anchor, (lua_Integer)lua_rawlen(L, anchor) + 1);
                rv_rule_place(L, rule, section);
                if (!is_unique(s, rule) && strcmp(rule->id, "?") != 0)
                        rv_engine_report(L, &rule->place, "rule '%s': its id is not unique in section %s", rule->id, rv_section_names[section]);
                s->rules[s->n_rules++] = rule;
        }
}

static const char *default_words(enum rv_section section)
{
        static const char *const words[] = {
                [RV_SECTION_PACKAGES] = "\"allow\" or \"deny\"", [RV_SECTION_NETWORK] = "\"allow\" or \"deny\"",
                [RV_SECTION_IDEMPOTENCY] = "\"none\" or \"require_key\"", [RV_SECTION_BACKEND] = "a backend's name or \"tenant\"",
        };

        return words[section];
}

static bool set_default(struct rv_section_rules *s, enum rv_section section, const char *text)
{
        static const struct {
                enum rv_section section;
                const char *word;
                enum rv_verdict_kind verdict;
        } table[] = {
                { RV_SECTION_PACKAGES, "allow", RV_VERDICT_ALLOW },        { RV_SECTION_PACKAGES, "deny", RV_VERDICT_DENY },
                { RV_SECTION_NETWORK, "allow", RV_VERDICT_ALLOW },         { RV_SECTION_NETWORK, "deny", RV_VERDICT_DENY },
                { RV_SECTION_IDEMPOTENCY, "none", RV_VERDICT_NO_KEY },     { RV_SECTION_IDEMPOTENCY, "require_key", RV_VERDICT_REQUIRE_KEY },
        };

        if (section == RV_SECTION_BACKEND) {
                s->otherwise = RV_VERDICT_USE;
                s->otherwise_use = text;
                return rv_rule_is_backend_name(text);
        }
        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                if (table[i].section != section || strcmp(table[i].word, text) != 0)
                        continue;
                s->otherwise = table[i].verdict;
                return true;
        }
        return false;
}

static void take_default(lua_State *L, struct rv_policy *policy, enum rv_section section, int anchor)
{
        const char *name = rv_section_names[section], *text;

        lua_pushstring(L, "default");
        lua_rawget(L, -2);
        text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
        if (lua_isnil(L, -1))
                FAULT("section %s has no default; it must have one: default = %s", name, default_words(section));
        else if (!text || strlen(text) != lua_rawlen(L, -1) || !set_default(&policy->sections[section], section, text))
                FAULT("section %s: its default is %s", name, default_words(section));
        lua_rawseti(L, anchor, (lua_Integer)lua_rawlen(L, anchor) + 1);
}

static void take_section(lua_State *L, struct rv_policy *policy, enum rv_section section, int anchor)
{
        const char *name = rv_section_names[section];
        int table;
        size_t n;

        lua_pushstring(L, name);
        lua_rawget(L, 1);
        table = lua_gettop(L);
        if (!lua_istable(L, table)) {
                FAULT(lua_isnil(L, table) ? "section %s is missing; it must be there: %s = { default = … }"
                                          : "section %s is a list of rules with a default: %s = { rule { … }, default = … }",
                        name, name);
                lua_settop(L, table - 1);
                return;
        }
        n = rv_keys_push(L, table);
        for (size_t i = 0; i < n; i++) {
                int type = lua_rawgeti(L, -1, (lua_Integer)i + 1);

                if (type == LUA_TSTRING && strcmp(lua_tostring(L, -1), "default") != 0)
                        FAULT("section %s: unknown field '%.60s'; a section has rules and a default", name, lua_tostring(L, -1));
                else if (type != LUA_TSTRING && lua_tointeger(L, -1) != (lua_Integer)i + 1)
                        FAULT("section %s: its rules are a list without holes; there is none at %zu", name, i + 1);
                lua_pop(L, 1);
        }
        lua_pop(L, 1);
        take_rules(L, policy, section, anchor);
        take_default(L, policy, section, anchor);
        lua_settop(L, table - 1);
}

/* The number at field @name of the table on top of the stack. */
static bool take_limit_number(lua_State *L, struct rv_policy *policy, const char *limit, const char *name,
        int64_t minimum, int64_t *ret)
{
        bool is_given;

        lua_pushstring(L, name);
        is_given = lua_rawget(L, -2) != LUA_TNIL;
        if (is_given && (!lua_isinteger(L, -1) || lua_tointeger(L, -1) < minimum || lua_tointeger(L,
                -1) > (1ll << 53) - 1)) {
                FAULT("limits.%s.%s is a whole number of at least %lld", limit, name, (long long)minimum);
                is_given = false;
        }
        *ret = lua_tointeger(L, -1);
        lua_pop(L, 1);
        return is_given;
}

static void take_limit(lua_State *L, struct rv_policy *policy, enum rv_limit limit)
{
        const char *name = rv_limit_names[limit];
        size_t n = rv_keys_push(L, lua_gettop(L));

        for (size_t i = 0; i < n; i++) {
                int type = lua_rawgeti(L, -1, (lua_Integer)i + 1);
                const char *key = type == LUA_TSTRING ? lua_tostring(L, -1) : "[…]";

                if (strcmp(key, "max") != 0 && strcmp(key, "deny_above") != 0)
                        FAULT("limits.%s: unknown field '%.60s'; a limit has max and deny_above", name, key);
                lua_pop(L, 1);
        }
        lua_pop(L, 1);
        policy->limits[limit].has_max = take_limit_number(L, policy, name, "max", limit_minima[limit], &policy->limits[limit].max);
        policy->limits[limit].has_deny_above = take_limit_number(L, policy, name, "deny_above", 0, &policy->limits[limit].deny_above);
        if (n == 0)
                FAULT("limits.%s says nothing; a limit has max and deny_above", name);
}

static void take_limits(lua_State *L, struct rv_policy *policy)
{
        int table;
        size_t n;

        lua_pushstring(L, "limits");
        if (lua_rawget(L, 1) == LUA_TNIL)
                return;
        table = lua_gettop(L);
        if (!lua_istable(L, table)) {
                FAULT("limits is a table: limits = { timeout_s = { max = 60 } }");
                return;
        }
        n = rv_keys_push(L, table);
        for (size_t i = 0; i < n; i++) {
                int type = lua_rawgeti(L, table + 1, (lua_Integer)i + 1);
                const char *key = type == LUA_TSTRING ? lua_tostring(L, -1) : "[…]";
                size_t limit = 0;

                while (limit < _RV_LIMIT_MAX && strcmp(key, rv_limit_names[limit]) != 0)
                        limit++;
                lua_pushvalue(L, -1);
                lua_rawget(L, table);
                if (limit == _RV_LIMIT_MAX)
                        FAULT("limits: unknown limit '%.60s'; there are timeout_s and memory_mib", key);
                else if (!lua_istable(L, -1))
                        FAULT("limits.%s is a table: { max = …, deny_above = … }", key);
                else
                        take_limit(L, policy, (enum rv_limit)limit);
                lua_settop(L, table + 1);
        }
}

static void check_sections(lua_State *L, struct rv_policy *policy)
{
        size_t n = rv_keys_push(L, 1);

        for (size_t i = 0; i < n; i++) {
                int type = lua_rawgeti(L, -1, (lua_Integer)i + 1);
                const char *key = type == LUA_TSTRING ? lua_tostring(L, -1) : "[…]";
                bool is_known = strcmp(key, "limits") == 0;

                for (size_t k = 0; k < _RV_SECTION_MAX; k++)
                        is_known = is_known || strcmp(key, rv_section_names[k]) == 0;
                if (!is_known)
                        FAULT("unknown section '%.60s'; a policy has packages, network, idempotency, backend and limits", key);
                lua_pop(L, 1);
        }
        lua_pop(L, 1);
}

int raw_policy(lua_State *L)
{
        struct rv_policy *policy;

        if (lua_gettop(L) != 1 || !lua_istable(L, 1))
                return rv_engine_raise(L, "policy takes one table: policy { packages = …, network = …, idempotency = …, backend = … }");
        policy = rv_object_push(L, sizeof(*policy), &kind, "policy");   /* [2] is its anchor, [3] the policy */
        policy->place = rv_engine_of(L)->fallback;
        rv_engine_where(L, &policy->place);
        check_sections(L, policy);
        for (size_t i = 0; i < _RV_SECTION_MAX; i++)
                take_section(L, policy, (enum rv_section)i, 2);
        take_limits(L, policy);
        lua_settop(L, 3);
        return 1;
}
