#include "policy/policy.h"

#include "base/utf8.h"
#include "policy/env.h"
#include "policy/object.h"

#include <lauxlib.h>
#include <string.h>

static const char kind;

enum field {
        FIELD_ID,
        FIELD_MATCH,
        FIELD_WHEN,
        FIELD_ALLOW,
        FIELD_DENY,
        FIELD_REQUIRE_KEY,
        FIELD_USE,
        FIELD_PORTS,
        _FIELD_MAX
};
static const char *const fields[_FIELD_MAX] = { "id", "match", "when", "allow", "deny", "require_key", "use", "ports" };
static const char field_list[] =
        "id, match, when, allow, deny, require_key, use, ports, pin, require_hash, newest_published, allow_source_build";

struct rv_rule *rv_rule_test(lua_State *L, int index)
{
        return rv_object_test(L, index, &kind);
}

#define FAULT(...) (rule->is_broken = true, rv_engine_report(L, &rule->place, __VA_ARGS__))

static void check_field(lua_State *L, struct rv_rule *rule, const char *name)
{
        for (size_t i = 0; i < _FIELD_MAX; i++)
                if (strcmp(name, fields[i]) == 0)
                        return;
        if (!rv_obligation_is_field(name))
                FAULT("rule '%s': unknown field '%.60s'; a rule has %s", rule->id, name, field_list);
}

static bool is_text(lua_State *L, int index, size_t max)
{
        const char *text;
        size_t n;

        if (lua_type(L, index) != LUA_TSTRING)
                return false;
        text = lua_tolstring(L, index, &n);
        return n >= 1 && n <= max && !memchr(text, 0, n) && rv_utf8_check(text, n, NULL);
}

bool rv_rule_is_backend_name(const char *s)
{
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

        return s[n] == 0 && n >= 1 && n <= RV_RULE_BACKEND_MAX;
}

static const char *keep_text(lua_State *L, int index, int anchor)
{
        lua_pushvalue(L, index);
        lua_rawseti(L, anchor, (lua_Integer)lua_rawlen(L, anchor) + 1);
        return lua_tostring(L, index);
}

static int compare_ports(const void *a, const void *b)
{
        return *(const uint16_t *)a - *(const uint16_t *)b;
}

static size_t count_members(lua_State *L, int index)
{
        size_t n = 0;

        for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1))
                n++;
        return n;
}

/* The list is on top of the stack. */
static void take_ports(lua_State *L, struct rv_rule *rule, int anchor)
{
        int list = lua_gettop(L);
        size_t n = lua_istable(L, list) ? lua_rawlen(L, list) : 0, n_kept = 0;
        uint16_t *ports;

        if (n < 1 || n > RV_RULE_PORTS_MAX || count_members(L, list) != n) {
                FAULT("rule '%s': `ports` is a list of 1 to %d ports: ports = { 443 }", rule->id, RV_RULE_PORTS_MAX);
                return;
        }
        ports = lua_newuserdatauv(L, n * sizeof(*ports), 0);
        lua_rawseti(L, anchor, (lua_Integer)lua_rawlen(L, anchor) + 1);
        for (size_t i = 0; i < n; i++) {
                lua_Integer port = lua_rawgeti(L, list, (lua_Integer)i + 1) == LUA_TNUMBER && lua_isinteger(L, -1)
                        ? lua_tointeger(L, -1)
                        : 0;

                lua_pop(L, 1);
                if (port < 1 || port > UINT16_MAX) {
                        FAULT("rule '%s': a port is a whole number from 1 to 65535", rule->id);
                        return;
                }
                ports[i] = (uint16_t)port;
        }
        qsort(ports, n, sizeof(*ports), compare_ports);
        for (size_t i = 0; i < n; i++)
                if (!i || ports[i] != ports[i - 1])
                        ports[n_kept++] = ports[i];
        rule->ports = ports;
        rule->n_ports = n_kept;
}

/* The value of one verdict field is on top of the stack. */
static void take_verdict(lua_State *L, struct rv_rule *rule, enum field field, int anchor)
{
        bool is_true = lua_toboolean(L, -1);

        if (rule->verdict_name)
                FAULT("rule '%s' has both '%s' and '%s'; it has exactly one verdict", rule->id, rule->verdict_name, fields[field]);
        rule->verdict_name = fields[field];
        switch (field) {
        case FIELD_ALLOW:
                rule->verdict = RV_VERDICT_ALLOW;
                if (!lua_isboolean(L, -1) || !is_true)
                        FAULT("rule '%s': `allow` is true; to refuse write deny = \"why\"", rule->id);
                break;
        case FIELD_DENY:
                rule->verdict = RV_VERDICT_DENY;
                if (is_text(L, -1, RV_RULE_TEXT_MAX))
                        rule->text = keep_text(L, -1, anchor);
                else
                        FAULT("rule '%s': `deny` is the reason, a text of 1 to %d bytes", rule->id, RV_RULE_TEXT_MAX);
                break;
        case FIELD_REQUIRE_KEY:
                rule->verdict = is_true ? RV_VERDICT_REQUIRE_KEY : RV_VERDICT_NO_KEY;
                if (!lua_isboolean(L, -1))
                        FAULT("rule '%s': `require_key` is true or false", rule->id);
                break;
        default:
                rule->verdict = RV_VERDICT_USE;
                if (is_text(L, -1, RV_RULE_BACKEND_MAX) && rv_rule_is_backend_name(lua_tostring(L, -1)))
                        rule->text = keep_text(L, -1, anchor);
                else
                        FAULT("rule '%s': `use` is a backend's name or \"tenant\"", rule->id);
        }
}

/* An id stands in records and on terminals' lines. */
static bool is_printable(const char *s)
{
        for (; *s; s++)
                if ((unsigned char)*s < 0x20 || *s == 0x7f)
                        return false;
        return true;
}

/* Sets the id first, so that every other message can name the rule. */
static void take_id(lua_State *L, struct rv_rule *rule, int table, int anchor)
{
        rule->id = "?";
        lua_pushstring(L, "id");
        lua_rawget(L, table);
        if (lua_isnil(L, -1))
                FAULT("a rule has no id; write rule { id = \"…\", … }");
        else if (!is_text(L, -1, RV_RULE_ID_MAX) || !is_printable(lua_tostring(L, -1)))
                FAULT("a rule's id is a text of 1 to %d bytes without control characters", RV_RULE_ID_MAX);
        else
                rule->id = keep_text(L, -1, anchor);
        lua_pop(L, 1);
        if (strcmp(rule->id, "default") == 0)
                FAULT("'default' is no id for a rule: outcomes use it for what no rule decided");
}

/* One member of the table: its value is on top of the stack, its name below. */
static void take_field(lua_State *L, struct rv_rule *rule, int anchor)
{
        enum field field = 0;
        const char *name;

        if (lua_type(L, -2) != LUA_TSTRING) {
                FAULT("rule '%s': a rule has named fields only: %s", rule->id, field_list);
                return;
        }
        name = lua_tostring(L, -2);
        check_field(L, rule, name);
        while (field < _FIELD_MAX && strcmp(name, fields[field]) != 0)
                field++;
        if (field == FIELD_MATCH) {
                if (lua_istable(L, -1))
                        rv_match_compile(L, rule, lua_gettop(L), anchor);
                else
                        FAULT("rule '%s': `match` is a table of facts: match = { name = \"numpy\" }", rule->id);
        } else if (field == FIELD_WHEN) {
                if (lua_isfunction(L, -1)) {
                        lua_pushvalue(L, -1);
                        rule->when_ref = luaL_ref(L, LUA_REGISTRYINDEX);
                } else {
                        FAULT("rule '%s': `when` is a function of the item and the request", rule->id);
                }
        } else if (field == FIELD_PORTS) {
                take_ports(L, rule, anchor);
        } else if (rv_obligation_is_field(name)) {
                rv_obligation_take(L, rule, name, anchor);
        } else if (field > FIELD_WHEN && field < _FIELD_MAX) {
                take_verdict(L, rule, field, anchor);
        }
}

int raw_rule(lua_State *L)
{
        struct rv_rule *rule;
        bool has_match;
        size_t n;

        if (lua_gettop(L) != 1 || !lua_istable(L, 1))
                return rv_engine_raise(L, "rule takes one table: rule { id = \"…\", match = { … }, deny = \"…\" }");
        rule = rv_object_push(L, sizeof(*rule), &kind, "rule");   /* [2] is its anchor, [3] the rule */
        rule->when_ref = LUA_NOREF;
        rule->place = rv_engine_of(L)->fallback;
        rv_engine_where(L, &rule->place);
        take_id(L, rule, 1, 2);
        n = rv_keys_push(L, 1);   /* [4]; in order: which of two faults is met first must not be chance */
        for (size_t i = 0; i < n; i++) {
                lua_rawgeti(L, 4, (lua_Integer)i + 1);
                lua_pushvalue(L, -1);
                lua_rawget(L, 1);
                take_field(L, rule, 2);
                lua_settop(L, 4);
        }
        lua_settop(L, 3);
        lua_pushstring(L, "match");
        has_match = lua_rawget(L, 1) != LUA_TNIL;
        lua_pop(L, 1);
        if (!has_match && rule->when_ref == LUA_NOREF && !rule->is_broken)
                FAULT("rule '%s' has neither `match` nor `when`; what holds for everything is the section's default", rule->id);
        if (!rule->verdict_name && !rule->is_broken)
                FAULT("rule '%s' has no verdict: allow, deny, require_key or use", rule->id);
        return 1;
}

void rv_rule_place(lua_State *L, struct rv_rule *rule, enum rv_section section)
{
        static const char *const allowed[] = {
                [RV_SECTION_PACKAGES] = "allow = true or deny = \"…\"", [RV_SECTION_NETWORK] = "allow = true or deny = \"…\"",
                [RV_SECTION_IDEMPOTENCY] = "require_key = true or false", [RV_SECTION_BACKEND] = "use = \"…\" or deny = \"…\"",
        };
        static const unsigned verdicts[] = {
                [RV_SECTION_PACKAGES] = 1u << RV_VERDICT_ALLOW | 1u << RV_VERDICT_DENY,
                [RV_SECTION_NETWORK] = 1u << RV_VERDICT_ALLOW | 1u << RV_VERDICT_DENY,
                [RV_SECTION_IDEMPOTENCY] = 1u << RV_VERDICT_REQUIRE_KEY | 1u << RV_VERDICT_NO_KEY,
                [RV_SECTION_BACKEND] = 1u << RV_VERDICT_USE | 1u << RV_VERDICT_DENY,
        };

        if (rule->is_placed) {
                FAULT("rule '%s' stands in the policy twice", rule->id);
                return;
        }
        rule->is_placed = true;
        if (rule->is_broken)
                return;
        if (!(verdicts[section] & 1u << rule->verdict))
                FAULT("rule '%s': '%s' is no verdict of section %s, whose rules have %s", rule->id, rule->verdict_name,
                        rv_section_names[section], allowed[section]);
        if (rule->n_ports && (section != RV_SECTION_NETWORK || rule->verdict != RV_VERDICT_ALLOW))
                FAULT("rule '%s': `ports` belongs to a rule of section network that allows", rule->id);
        rv_match_place(L, rule, rv_section_facts[section]);
        rv_obligation_place(L, rule, section == RV_SECTION_PACKAGES && rule->verdict == RV_VERDICT_ALLOW);
}
