#include "policy/engine.h"

#include "policy/env.h"
#include "policy/policy.h"
#include "policy/view.h"

#include <lauxlib.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define COUNT_STEP 100       /* VM instructions between two looks at the budget */
#define REFUSALS_MAX 8       /* each refusal costs a full collection, which is work as well */
#define STRING_OVERHEAD 64   /* Lua's header of a string and its NUL, with room */

const char *const rv_engine_memory_causes[RV_ENGINE_MEMORY_MAX_] = {
#define X(name, text) text,
        RV_ENGINE_MEMORY_CAUSES(X)
#undef X
};

static void set_place(struct rv_engine_place *place, const char *file, int line)
{
        snprintf(place->file, sizeof(place->file), "%s", file);
        place->line = line;
}

bool rv_engine_where(lua_State *L, struct rv_engine_place *ret)
{
        lua_Debug ar;

        for (int level = 0; lua_getstack(L, level, &ar); level++) {
                if (!lua_getinfo(L, "Sl", &ar) || ar.currentline <= 0 || ar.source[0] != '@')
                        continue;
                set_place(ret, ar.source + 1, ar.currentline);
                return true;
        }
        return false;
}

static void *refuse(struct rv_engine *e, int cause)
{
        e->n_refusals++;
        e->memory_cause = rv_engine_memory_causes[cause];
        e->memory_place = e->fallback;
        /* Reads the call chain only; as the count hook is set, each instruction has saved where it is. */
        if (e->L)
                rv_engine_where(e->L, &e->memory_place);
        return NULL;
}

/*
 * Lua's contract (manual, lua_Alloc): a new object's `osize` is a type tag, shrinking never fails, and after a
 * refusal Lua collects everything and asks once more. Sizes are bounded by kind because one instruction can
 * copy or compare a whole string, which the instruction budget does not see.
 */
static void *allocate(void *ud, void *ptr, size_t osize, size_t nsize)
{
        struct rv_engine *e = ud;
        size_t old = ptr ? osize : 0;
        void *p;

        if (nsize == 0) {
                free(ptr);
                e->used_bytes -= old;
                return NULL;
        }
        if (nsize > old) {
                if (!ptr && osize == LUA_TSTRING && nsize > RV_ENGINE_STRING_MAX + STRING_OVERHEAD)
                        return refuse(e, RV_ENGINE_MEMORY_STRING);
                if (nsize > RV_ENGINE_BLOCK_MAX)
                        return refuse(e, RV_ENGINE_MEMORY_BLOCK);
                if (e->used_bytes + (nsize - old) > RV_ENGINE_MEMORY_MAX)
                        return refuse(e, RV_ENGINE_MEMORY_TOTAL);
                if (e->turnover_bytes + nsize > RV_ENGINE_TURNOVER_MAX || e->n_refusals > REFUSALS_MAX)
                        return refuse(e, RV_ENGINE_MEMORY_TURNOVER);
                e->turnover_bytes += nsize;
        }
        p = realloc(ptr, nsize);
        if (!p) {
                if (nsize <= old)
                        return ptr;
                e->is_host_out = true;
                return NULL;
        }
        e->used_bytes += nsize - old;
        return p;
}

static void on_count(lua_State *L, lua_Debug *ar)
{
        rv_engine_charge(L, COUNT_STEP);
}

void rv_engine_lacks(struct rv_engine *e, const char *fact, const json_t *item)
{
        if (e->lacking)
                return;
        e->lacking = fact;
        e->lacking_of = item;
}

bool rv_engine_spend(struct rv_engine *e, size_t units)
{
        e->units += units;
        if (e->units <= e->budget && !e->is_spent)
                return true;
        e->fault = RV_ENGINE_BUDGET;
        if (!e->is_spent) {
                e->is_spent = true;
                e->place = e->fallback;
                rv_engine_where(e->L, &e->place);
                snprintf(e->message, sizeof(e->message), "the budget of %zu instructions %s is spent", e->budget,
                        e->policy ? "for one item" : "for loading");
        }
        return false;
}

void rv_engine_charge(lua_State *L, size_t units)
{
        struct rv_engine *e = rv_engine_of(L);

        if (rv_engine_spend(e, units))
                return;
        /* Sticky: whatever still runs, such as a function of a variable to be closed, ends at its first step. */
        lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
        lua_pushlightuserdata(L, e);
        lua_error(L);
}

static void set_fault(struct rv_engine *e, const struct rv_engine_place *place, const char *fmt, va_list ap)
{
        e->fault = RV_ENGINE_ERROR;
        e->place = *place;
        vsnprintf(e->message, sizeof(e->message), fmt, ap);
}

static int throw(lua_State *L)
{
        lua_pushlightuserdata(L, rv_engine_of(L));
        return lua_error(L);
}

int rv_engine_raise(lua_State *L, const char *fmt, ...)
{
        struct rv_engine *e = rv_engine_of(L);
        struct rv_engine_place place = e->fallback;
        va_list ap;

        rv_engine_where(L, &place);
        va_start(ap, fmt);
        set_fault(e, &place, fmt, ap);
        va_end(ap);
        return throw(L);
}

void rv_engine_report(lua_State *L, const struct rv_engine_place *place, const char *fmt, ...)
{
        struct rv_engine *e = rv_engine_of(L);
        va_list ap;

        va_start(ap, fmt);
        set_fault(e, place, fmt, ap);
        va_end(ap);
        if (!e->finding)
                throw(L);
        e->finding(e->finding_data, &e->place, e->message);
        e->fault = RV_ENGINE_FINE;
}

int rv_engine_undecided(lua_State *L)
{
        struct rv_engine *e = rv_engine_of(L);

        e->fault = RV_ENGINE_UNDECIDED;
        e->place = e->fallback;
        rv_engine_where(L, &e->place);
        return throw(L);
}

/* Cuts "FILE:LINE: ", which Lua puts before its messages; the place is recorded by itself. */
static const char *without_place(const char *text, const char *file, int *ret_line)
{
        size_t n = strlen(file);
        char *end;
        long line;

        if (strncmp(text, file, n) != 0 || text[n] != ':')
                return text;
        line = strtol(text + n + 1, &end, 10);
        if (end == text + n + 1 || strncmp(end, ": ", 2) != 0)
                return text;
        *ret_line = (int)line;
        return end + 2;
}

/* The handler of all errors that Lua itself raises, before the stack is unwound. Calls nothing of policy's. */
static int on_error(lua_State *L)
{
        struct rv_engine *e = rv_engine_of(L);
        const char *text;
        int line = 0;

        if (e->fault)
                return 1;
        e->fault = RV_ENGINE_ERROR;
        e->place = e->fallback;
        rv_engine_where(L, &e->place);
        text = lua_type(L, 1) == LUA_TSTRING ? lua_tostring(L, 1) : "an error that is no text";
        snprintf(e->message, sizeof(e->message), "%s", without_place(text, e->place.file, &line));
        return 1;
}

enum rv_engine_fault rv_engine_run(struct rv_engine *e, lua_CFunction function, void *argument)
{
        lua_State *L = e->L;
        int status;

        lua_settop(L, 0);
        lua_pushcfunction(L, on_error);
        lua_pushcfunction(L, function);
        lua_pushlightuserdata(L, argument);
        e->fault = RV_ENGINE_FINE;
        status = lua_pcall(L, 1, 0, 1);
        lua_settop(L, 0);
        if (status == LUA_OK)
                return RV_ENGINE_FINE;
        if (status == LUA_ERRMEM) {
                e->fault = e->is_host_out ? RV_ENGINE_HOST : RV_ENGINE_MEMORY;
                e->is_spent = true;
                e->place = e->memory_place;
                snprintf(e->message, sizeof(e->message), "%s", e->memory_cause ? e->memory_cause : rv_engine_memory_causes[RV_ENGINE_MEMORY_OTHER]);
        } else if (e->fault == RV_ENGINE_FINE) {
                /* An error while Lua was handling one, as when its C stack ends. */
                e->fault = RV_ENGINE_ERROR;
                e->place = e->fallback;
                snprintf(e->message, sizeof(e->message), "calls or expressions are nested too deeply");
        }
        return e->fault;
}

static int raw_make(lua_State *L)
{
        rv_view_open(L);
        rv_env_open(L);
        return 0;
}

static int on_panic(lua_State *L)
{
        /* Nothing is called outside rv_engine_run() that can raise: reaching this is a bug, and going on is no option. */
        rv_require(!"an error left the policy engine");
        return 0;
}

int rv_engine_init(struct rv_engine *e, const struct rv_bundle *bundle, const json_t *facts)
{
        *e = (struct rv_engine){ .bundle = bundle, .facts = facts, .budget = RV_ENGINE_LOAD_BUDGET };
        e->order = rv_version_order_for(rv_json_get_string(json_object_get(facts, "request"), "language", "python"));
        set_place(&e->fallback, "policy.lua", 0);
        e->L = lua_newstate(allocate, e);
        if (!e->L)
                return rv_raise(-ENOMEM);
        *(struct rv_engine **)lua_getextraspace(e->L) = e;
        lua_atpanic(e->L, on_panic);
        /* A decision is over before a collector would be of use; at the bound Lua collects by itself. */
        lua_gc(e->L, LUA_GCSTOP);
        if (rv_engine_run(e, raw_make, NULL) != RV_ENGINE_FINE) {
                rv_engine_fini(e);
                return rv_raise(-ENOMEM);
        }
        return 0;
}

void rv_engine_fini(struct rv_engine *e)
{
        if (e->L)
                lua_close(e->L);
        e->L = NULL;
}

static void set_budget(struct rv_engine *e, size_t budget)
{
        e->units = 0;
        e->turnover_bytes = 0;
        e->n_refusals = 0;
        e->budget = budget;
        lua_sethook(e->L, on_count, LUA_MASKCOUNT, e->is_spent ? 1 : COUNT_STEP);
}

void rv_engine_load_file(lua_State *L, const struct rv_bundle_file *f)
{
        struct rv_engine *e = rv_engine_of(L);
        struct rv_engine_place place;
        char name[RV_BUNDLE_PATH_MAX + 2];
        const char *text;
        int status;

        set_place(&place, f->path, 1);
        snprintf(name, sizeof(name), "@%s", f->path);
        rv_engine_charge_bytes(L, f->size);
        status = luaL_loadbufferx(L, f->text, f->size, name, "t");
        if (status == LUA_ERRMEM) {
                e->memory_place = place;
                lua_error(L);
        }
        if (status != LUA_OK) {
                text = lua_type(L, -1) == LUA_TSTRING ? lua_tostring(L, -1) : "cannot be compiled";
                text = without_place(text, f->path, &place.line);
                e->fault = RV_ENGINE_ERROR;
                e->place = place;
                snprintf(e->message, sizeof(e->message), "%s", text);
                throw(L);
        }
        rv_env_push(L);
        lua_setupvalue(L, -2, 1);
}

static int raw_load(lua_State *L)
{
        struct rv_engine *e = rv_engine_of(L);
        const struct rv_bundle_file *f = rv_bundle_find(e->bundle, "policy.lua");
        const struct rv_policy *policy;
        int top = lua_gettop(L);

        rv_engine_load_file(L, f);
        lua_call(L, 0, LUA_MULTRET);
        policy = lua_gettop(L) == top + 1 ? rv_policy_test(L, -1) : NULL;
        if (!policy) {
                struct rv_engine_place place = e->fallback;

                set_place(&place, f->path, 1);
                rv_engine_report(L, &place, "policy.lua must return policy { … } and nothing else");
                return 0;
        }
        luaL_ref(L, LUA_REGISTRYINDEX);   /* keeps it for as long as the state */
        e->policy = policy;
        return 0;
}

enum rv_engine_fault rv_engine_load(struct rv_engine *e)
{
        if (!rv_bundle_find(e->bundle, "policy.lua")) {
                e->place = e->fallback;
                snprintf(e->message, sizeof(e->message), "the bundle has no policy.lua");
                return e->fault = RV_ENGINE_ERROR;
        }
        set_budget(e, RV_ENGINE_LOAD_BUDGET);
        return rv_engine_run(e, raw_load, NULL);
}

void rv_engine_begin_item(struct rv_engine *e)
{
        set_budget(e, RV_ENGINE_ITEM_BUDGET);
        e->n_items++;
        if (!e->is_spent)
                e->fault = RV_ENGINE_FINE;
}

struct when {
        int function_ref;
        enum rv_fact_set set;
        const json_t *item;
        bool answer;
};

static int raw_when(lua_State *L)
{
        struct rv_engine *e = rv_engine_of(L);
        struct when *w = lua_touserdata(L, 1);
        int top;

        lua_settop(L, 0);
        lua_rawgeti(L, LUA_REGISTRYINDEX, w->function_ref);
        rv_view_push_record(L, w->item, w->set);
        rv_view_push_record(L, json_object_get(e->facts, "request"), RV_FACTS_REQUEST);
        lua_call(L, 2, LUA_MULTRET);
        top = lua_gettop(L);
        if (top != 1 || !lua_isboolean(L, 1))
                return rv_engine_raise(L, "`when` must return true or false and nothing else; it returned %s",
                        top == 0 ? "nothing" : top > 1 ? "more than one value" : luaL_typename(L, 1));
        w->answer = lua_toboolean(L, 1);
        return 0;
}

enum rv_engine_fault rv_engine_call_when(struct rv_engine *e, int function_ref, enum rv_fact_set set,
        const json_t *item,
        const struct rv_engine_place *place, bool *ret)
{
        struct when w = { function_ref, set, item, false };

        e->fallback = *place;
        if (rv_engine_run(e, raw_when, &w) == RV_ENGINE_FINE)
                *ret = w.answer;
        return e->fault;
}
