/*
 * engine.h - one Lua state for one decision, its budgets, and how errors leave it
 *
 * An engine is made for a bundle and a facts value, loads `policy.lua`, answers `when` functions, and is thrown
 * away: nothing of one decision reaches the next. It lives on its caller's stack between rv_engine_init() and
 * rv_engine_fini() and belongs to one thread. The state's allocator bounds memory, its count hook bounds work,
 * and each host function that does work Lua's instruction count cannot see pays for it with rv_engine_charge().
 *
 * An error inside is described in the engine (`fault`, `message`, `place`), never in Lua values: policy has no
 * pcall, so that what is thrown goes straight to the call that entered the state, whether it is an error, a
 * spent budget or the reading of a fact that is not known yet.
 */
#pragma once

#include "policy/bundle_files.h"
#include "policy/fact_names.h"
#include "policy/version.h"

#include <lua.h>

#define RV_ENGINE_LOAD_BUDGET 100000       /* VM instructions to load the bundle */
#define RV_ENGINE_ITEM_BUDGET 20000        /* … to judge one item */
#define RV_ENGINE_MEMORY_MAX (8 * 1024 * 1024)
#define RV_ENGINE_STRING_MAX 131072         /* one string: what an instruction such as `..` can cost */
#define RV_ENGINE_BLOCK_MAX (1024 * 1024)         /* one table's array or hash part */
#define RV_ENGINE_TURNOVER_MAX (64 * 1024 * 1024) /* allocated in all, for loading and for each item */
#define RV_ENGINE_BYTES_PER_UNIT 64        /* what a host function may touch for the price of one instruction */
#define RV_ENGINE_MESSAGE_MAX 512

/* What a message says after a breach of a bound of memory. */
#define RV_ENGINE_MEMORY_CAUSES(X) \
        X(STRING, "a string is longer than " RV_STR(RV_ENGINE_STRING_MAX) " bytes") \
        X(BLOCK, "a table has too many entries, or calls nest too deep") \
        X(TOTAL, "the policy uses more than 8 MiB") \
        X(TURNOVER, "the policy allocates without end") \
        X(OTHER, "out of memory")
enum {
#define X(name, text) RV_ENGINE_MEMORY_##name,
        RV_ENGINE_MEMORY_CAUSES(X)
#undef X
        RV_ENGINE_MEMORY_MAX_,
};
extern const char *const rv_engine_memory_causes[RV_ENGINE_MEMORY_MAX_];

enum rv_engine_fault {
        RV_ENGINE_FINE,
        RV_ENGINE_UNDECIDED,   /* a fact was read that is known only at stage `resolved` */
        RV_ENGINE_ERROR,
        RV_ENGINE_BUDGET,      /* sticky */
        RV_ENGINE_MEMORY,      /* sticky */
        RV_ENGINE_HOST,        /* the process itself is out of memory: no verdict */
};

/* Where in the bundle; line 0 is a file as a whole. */
struct rv_engine_place {
        char file[RV_BUNDLE_PATH_MAX + 1];
        int line;
};

struct rv_engine;
struct rv_policy;

/* Told of faults that would end a load, so that one check can list them all. */
typedef void rv_engine_finding(void *userdata, const struct rv_engine_place *place, const char *message);

struct rv_engine {
        lua_State *L;
        const struct rv_bundle *bundle;
        const json_t *facts;
        enum rv_version_order order;
        const struct rv_policy *policy;   /* after loading; in the state's memory */

        size_t used_bytes, turnover_bytes;
        unsigned n_refusals;
        size_t units, budget, n_items;

        enum rv_engine_fault fault;
        struct rv_engine_place place;     /* of the fault */
        struct rv_engine_place fallback;  /* when no Lua function is running: the rule judged, the file loaded */
        char message[RV_ENGINE_MESSAGE_MAX];
        struct rv_engine_place memory_place;
        const char *memory_cause;
        bool is_host_out, is_spent;
        const char *lacking;              /* the first fact that was read and is in the tables, but not in the facts */
        const json_t *lacking_of;         /* of which item */

        rv_engine_finding *finding;       /* NULL: the first fault raises */
        void *finding_data;
};

/**
 * rv_engine_init() - a state with the sandbox's environment and nothing loaded
 * @facts: borrowed, never written; NULL only where no item will be judged
 *
 * Context:   one thread
 * Ownership: borrows @bundle and @facts until rv_engine_fini()
 * Return:    0 or -ENOMEM
 */
int rv_engine_init(struct rv_engine *e, const struct rv_bundle *bundle, const json_t *facts);

/** rv_engine_fini() - Context: as init. Ownership: releases the state. Return: none */
void rv_engine_fini(struct rv_engine *e);

/**
 * rv_engine_run() - call a C function inside the state: the only way in
 * @argument: its one argument, a light userdata
 *
 * Context:   outside Lua; the stack is empty before and after
 * Ownership: borrows
 * Return:    e->fault, which says how it ended
 */
enum rv_engine_fault rv_engine_run(struct rv_engine *e, lua_CFunction function, void *argument);

/**
 * rv_engine_load() - run policy.lua and keep the policy that it returns
 *
 * Context:   once, before any item is judged
 * Ownership: e->policy lives as long as the state
 * Return:    e->fault, RV_ENGINE_FINE for success
 */
enum rv_engine_fault rv_engine_load(struct rv_engine *e);

/** rv_engine_begin_item() - a fresh budget; the fault of the item before, unless it sticks, is forgotten. Context: as load. Ownership: none. Return: none */
void rv_engine_begin_item(struct rv_engine *e);

/**
 * rv_engine_call_when() - ask a rule's function
 * @function_ref: in the registry
 * @set, @item:   its first argument; the request is the second
 * @place:        of the rule
 * @ret:          its answer; set only with RV_ENGINE_FINE
 *
 * Context:   after loading
 * Ownership: borrows
 * Return:    e->fault
 */
enum rv_engine_fault rv_engine_call_when(struct rv_engine *e, int function_ref, enum rv_fact_set set,
        const json_t *item,
        const struct rv_engine_place *place, bool *ret);

/** rv_engine_of() - the engine of a state, for functions that Lua calls. Context: any. Ownership: borrowed. Return: the engine */
static inline struct rv_engine *rv_engine_of(lua_State *L)
{
        return *(struct rv_engine **)lua_getextraspace(L);
}

/** rv_engine_lacks() - note that @fact of @item was read and is missing, if it is the first. Context: any. Ownership: borrows; both outlive the engine. Return: none */
void rv_engine_lacks(struct rv_engine *e, const char *fact, const json_t *item);

/** rv_engine_spend() - count @units of work outside the state. Context: not inside Lua. Ownership: none. Return: false when the budget is spent: e->fault is set */
bool rv_engine_spend(struct rv_engine *e, size_t units);

/** rv_engine_charge() - count @units of work in a function that Lua called. Context: inside Lua; raises. Ownership: none. Return: none */
void rv_engine_charge(lua_State *L, size_t units);

/** rv_engine_charge_bytes() - likewise for @n bytes touched. Context: inside Lua; raises. Ownership: none. Return: none */
static inline void rv_engine_charge_bytes(lua_State *L, size_t n)
{
        rv_engine_charge(L, 1 + n / RV_ENGINE_BYTES_PER_UNIT);
}

/** rv_engine_raise() - end the evaluation with an error at the Lua line that is running. Context: inside Lua; does not come back. Ownership: borrows. Return: never; `return rv_engine_raise(…)` reads well */
int rv_engine_raise(lua_State *L, const char *fmt, ...) RV_PRINTF(2, 3);

/** rv_engine_report() - like rv_engine_raise() at @place, but comes back where findings are collected. Context: inside Lua. Ownership: borrows. Return: none */
void rv_engine_report(lua_State *L, const struct rv_engine_place *place, const char *fmt, ...) RV_PRINTF(3, 4);

/** rv_engine_undecided() - end this package's evaluation: a fact is read that is not known yet. Context: inside Lua; does not come back. Ownership: none. Return: never */
int rv_engine_undecided(lua_State *L);

/** rv_engine_where() - the Lua line that is running. Context: inside Lua. Ownership: none. Return: false, and @ret untouched, if none is */
bool rv_engine_where(lua_State *L, struct rv_engine_place *ret);

/** rv_engine_load_file() - compile a file of the bundle and push it as a function. Context: inside Lua; raises. Ownership: borrows. Return: none */
void rv_engine_load_file(lua_State *L, const struct rv_bundle_file *f);
