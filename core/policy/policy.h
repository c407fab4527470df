/*
 * policy.h - rules and a policy, checked and compiled, as the evaluator walks them
 *
 * `rule { … }` and `policy { … }` make userdata of these; what they point at is kept alive by the userdata's
 * user values, so that all of it lives as long as the state and nothing policy does afterwards changes it. One
 * thread, that of the engine.
 */
#pragma once

#include "policy/engine.h"
#include "policy/obligation.h"

#define RV_RULE_ID_MAX 100       /* bytes */
#define RV_RULE_TEXT_MAX 1000    /* bytes of a `deny` */
#define RV_RULE_BACKEND_MAX 64
#define RV_RULE_PORTS_MAX 64
#define RV_POLICY_RULES_MAX 1000 /* in one section */

enum rv_section {
        RV_SECTION_PACKAGES,
        RV_SECTION_NETWORK,
        RV_SECTION_IDEMPOTENCY,
        RV_SECTION_BACKEND,
        _RV_SECTION_MAX,
};

enum rv_verdict_kind { RV_VERDICT_ALLOW, RV_VERDICT_DENY, RV_VERDICT_REQUIRE_KEY, RV_VERDICT_NO_KEY, RV_VERDICT_USE };

enum rv_alternative_kind { RV_ALT_STRING, RV_ALT_GLOB, RV_ALT_INTEGER, RV_ALT_BOOLEAN, RV_ALT_WITHIN, RV_ALT_VERSION };

struct rv_matcher;

/* One thing that a fact may be. */
struct rv_alternative {
        enum rv_alternative_kind kind;
        union {
                struct {
                        const char *text;
                        size_t n;
                };
                int64_t integer;
                bool boolean;
                const struct rv_matcher *matcher;
        };
};

/* One member of `match`. */
struct rv_condition {
        const char *name;
        const struct rv_fact *fact;   /* set when the rule finds its section */
        bool is_of_request;
        size_t n_alternatives;
        const struct rv_alternative *alternatives;
};

struct rv_rule {
        const char *id;
        struct rv_engine_place place;
        int when_ref;                 /* in the registry; LUA_NOREF without `when` */
        size_t n_conditions;
        struct rv_condition *conditions;   /* known facts first, then those of the resolved stage; each bytewise */
        enum rv_verdict_kind verdict;
        const char *verdict_name;     /* the field: "allow", "deny", … */
        const char *text;             /* of `deny` and `use` */
        size_t n_ports;               /* of the obligation `ports`; 0: the rule has none */
        const uint16_t *ports;        /* ascending, no two alike */
        struct rv_obligations obliges;
        bool is_placed, is_broken;    /* broken: reported already, where findings are collected */
};

struct rv_section_rules {
        size_t n_rules;
        struct rv_rule **rules;
        enum rv_verdict_kind otherwise;
        const char *otherwise_use;    /* a backend's name */
};

enum rv_limit { RV_LIMIT_TIMEOUT_S, RV_LIMIT_MEMORY_MIB, _RV_LIMIT_MAX };

struct rv_policy {
        struct rv_engine_place place;
        struct rv_section_rules sections[_RV_SECTION_MAX];
        struct {
                bool has_max, has_deny_above;
                int64_t max, deny_above;
        } limits[_RV_LIMIT_MAX];
};

extern const char *const rv_section_names[_RV_SECTION_MAX];
extern const enum rv_fact_set rv_section_facts[_RV_SECTION_MAX];
extern const char *const rv_limit_names[_RV_LIMIT_MAX];

/** raw_rule() - `rule { … }`. Context: called by Lua. Ownership: by the state. Return: one userdata */
int raw_rule(lua_State *L);
/** raw_policy() - `policy { … }`. Context: called by Lua. Ownership: by the state. Return: one userdata */
int raw_policy(lua_State *L);

/** rv_policy_test() - Context: inside Lua. Ownership: borrowed from the stack's value. Return: the policy at @index, or NULL */
const struct rv_policy *rv_policy_test(lua_State *L, int index);
/** rv_rule_test() - Context: inside Lua. Ownership: borrowed from the stack's value. Return: the rule at @index, or NULL */
struct rv_rule *rv_rule_test(lua_State *L, int index);

/**
 * rv_rule_place() - give a rule its section: its facts and its verdict must be the section's
 *
 * Context:   inside Lua; reports faults with rv_engine_report()
 * Ownership: borrows
 * Return:    none
 */
void rv_rule_place(lua_State *L, struct rv_rule *rule, enum rv_section section);

/** rv_rule_is_backend_name() - Context: any. Ownership: borrows. Return: could it be a backend's name, or "tenant"? */
bool rv_rule_is_backend_name(const char *s);

/**
 * rv_match_compile() - make conditions of a `match` table
 * @match:  its stack index
 * @anchor: stack index of a table that keeps what the conditions point at
 *
 * Context:   inside Lua; reports faults with rv_engine_report() at the rule's place
 * Ownership: by the state
 * Return:    none; fills @rule
 */
void rv_match_compile(lua_State *L, struct rv_rule *rule, int match, int anchor);

/** rv_match_place() - tie each condition to a fact of @set or of the request. Context: inside Lua; reports. Ownership: borrows. Return: none */
void rv_match_place(lua_State *L, struct rv_rule *rule, enum rv_fact_set set);

/**
 * rv_match_test() - do a rule's conditions hold for an item
 *
 * Conditions on facts that are known are tested first: a rule that they exclude reads no other.
 *
 * Context:   outside Lua
 * Ownership: borrows
 * Return:    e->fault (RV_ENGINE_UNDECIDED: a fact that is not known yet was read); @ret set with RV_ENGINE_FINE
 */
enum rv_engine_fault rv_match_test(struct rv_engine *e, const struct rv_rule *rule, const json_t *item, bool *ret);

/** rv_match_covers() - does every item that @later matches match @earlier's conditions too? Sound, not complete. Context: any. Ownership: borrows. Return: as named */
bool rv_match_covers(const struct rv_rule *earlier, const struct rv_rule *later);
