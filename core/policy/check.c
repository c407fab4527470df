#include "policy/check.h"

#include "policy/bytecode.h"
#include "policy/env.h"
#include "policy/policy.h"

#include "base/json.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

struct entry {
        char *file, *message;
        int line;
};

struct checking {
        const struct rv_bundle *bundle;
        struct entry *entries;
        size_t n_entries, capacity;
        bool is_out;                    /* of memory */
        const struct rv_bundle_file *file;   /* being scanned */
        enum rv_section section;        /* of the rule being scanned */
        const struct rv_rule *rule;
};

static bool is_known(const struct checking *c, const char *file, int line, const char *message)
{
        for (size_t i = 0; i < c->n_entries; i++)
                if (c->entries[i].line == line && strcmp(c->entries[i].file, file) == 0 &&
                        strcmp(c->entries[i].message, message) == 0)
                        return true;
        return false;
}

/* The same fault is often met twice, in the code and in loading it, or for either language. */
static void add(struct checking *c, const char *file, int line, const char *message)
{
        struct entry *entries = c->entries, e = { .line = line };

        if (is_known(c, file, line, message))
                return;
        if (c->n_entries == c->capacity) {
                entries = reallocarray(c->entries, c->capacity * 2 + 16, sizeof(*entries));
                if (entries) {
                        c->entries = entries;
                        c->capacity = c->capacity * 2 + 16;
                }
        }
        e.file = strdup(file);
        e.message = strdup(message);
        if (!entries || !e.file || !e.message) {
                free(e.file);
                free(e.message);
                c->is_out = true;
                return;
        }
        c->entries[c->n_entries++] = e;
}

static void on_finding(void *userdata, const struct rv_engine_place *place, const char *message)
{
        add(userdata, place->file, place->line, message);
}

static void on_file_access(void *userdata, const struct rv_access *access)
{
        struct checking *c = userdata;
        char message[RV_ENGINE_MESSAGE_MAX];

        switch (access->kind) {
        case RV_ACCESS_GLOBAL:
                if (rv_env_has(access->name, NULL))
                        return;
                rv_env_describe_missing("", access->name, message, sizeof(message));
                break;
        case RV_ACCESS_SET:
                snprintf(message, sizeof(message), "'%.60s' cannot be set: globals and libraries are frozen; use a local variable", access->name);
                break;
        case RV_ACCESS_MEMBER:
                if (!rv_env_has(access->name, NULL) || rv_env_has(access->name, access->member) ||
                        rv_env_describe_missing(access->name, access->member, message, sizeof(message)) == 0)
                        return;
                break;
        case RV_ACCESS_ARGUMENT:
                return;
        }
        add(c, c->file->path, access->line, message);
}

static int raw_scan_file(lua_State *L)
{
        struct checking *c = lua_touserdata(L, 1);
        int r;

        rv_engine_load_file(L, c->file);
        if (rv_bundle_is_test(c->file))
                return 0;   /* tests run outside the sandbox, with names of their own */
        r = rv_bytecode_walk(L, on_file_access, c);
        if (r == -ENOMEM)
                c->is_out = true;
        else if (r < 0)
                add(c, c->file->path, 0, "its globals cannot be checked: this Lua compiles to a form that is not known here");
        return 0;
}

static void on_when_access(void *userdata, const struct rv_access *access)
{
        struct checking *c = userdata;
        enum rv_fact_set set = access->argument == 0 ? rv_section_facts[c->section] : RV_FACTS_REQUEST;
        char message[RV_ENGINE_MESSAGE_MAX], names[400];

        if (access->kind != RV_ACCESS_ARGUMENT || access->depth > 0 || access->argument > 1 || rv_fact_find(set,
                access->member))
                return;
        snprintf(message, sizeof(message), "unknown fact '%.60s' of %s; there are %s", access->member, rv_fact_tables[set].title,
                rv_fact_list(set, names, sizeof(names)));
        add(c, c->rule->place.file, access->line, message);
}

static int raw_scan_when(lua_State *L)
{
        struct checking *c = lua_touserdata(L, 1);

        lua_rawgeti(L, LUA_REGISTRYINDEX, c->rule->when_ref);
        if (!lua_iscfunction(L, -1) && rv_bytecode_walk(L, on_when_access, c) == -ENOMEM)
                c->is_out = true;
        return 0;
}

static void check_reach(struct checking *c, const struct rv_section_rules *s, size_t index)
{
        const struct rv_rule *rule = s->rules[index];
        char message[RV_ENGINE_MESSAGE_MAX];

        for (size_t i = 0; i < index; i++) {
                if (s->rules[i]->is_broken || rule->is_broken || !rv_match_covers(s->rules[i], rule))
                        continue;
                snprintf(message, sizeof(message), "rule '%s' can never be reached: rule '%s' (%s:%d) matches all that it matches",
                        rule->id, s->rules[i]->id, s->rules[i]->place.file, s->rules[i]->place.line);
                add(c, rule->place.file, rule->place.line, message);
                return;
        }
}

static void check_rules(struct checking *c, struct rv_engine *e)
{
        for (size_t section = 0; section < _RV_SECTION_MAX; section++) {
                const struct rv_section_rules *s = &e->policy->sections[section];

                for (size_t i = 0; i < s->n_rules; i++) {
                        check_reach(c, s, i);
                        c->section = (enum rv_section)section;
                        c->rule = s->rules[i];
                        rv_engine_begin_item(e);
                        if (c->rule->when_ref != LUA_NOREF)
                                rv_engine_run(e, raw_scan_when, c);
                }
        }
}

static void add_fault(struct checking *c, const struct rv_engine *e)
{
        if (e->fault == RV_ENGINE_HOST)
                c->is_out = true;
        else if (e->fault != RV_ENGINE_FINE)
                add(c, e->place.file, e->place.line, e->message);
}

static void scan_file(struct checking *c, const struct rv_bundle_file *f)
{
        struct rv_engine e;

        if (rv_engine_init(&e, c->bundle, NULL) < 0) {
                c->is_out = true;
                return;
        }
        c->file = f;
        rv_engine_run(&e, raw_scan_file, c);
        add_fault(c, &e);
        rv_engine_fini(&e);
}

static void load_for(struct checking *c, const char *language)
{
        _cleanup_(rv_json_unrefp) json_t *facts = json_pack("{s:{s:s}}", "request", "language", language);
        struct rv_engine e;

        if (!facts || rv_engine_init(&e, c->bundle, facts) < 0) {
                c->is_out = true;
                return;
        }
        e.finding = on_finding;
        e.finding_data = c;
        rv_engine_load(&e);
        add_fault(c, &e);
        if (e.policy)
                check_rules(c, &e);
        rv_engine_fini(&e);
}

static bool is_lua(const struct rv_bundle_file *f)
{
        size_t n = strlen(f->path);

        return n > 4 && strcmp(f->path + n - 4, ".lua") == 0;
}

static int compare_entries(const void *pa, const void *pb)
{
        const struct entry *a = pa, *b = pb;
        int r = strcmp(a->file, b->file);

        if (r == 0)
                r = a->line < b->line ? -1 : a->line > b->line;
        return r ? r : strcmp(a->message, b->message);
}

/* Tells the findings in order and releases them. */
static int tell(struct checking *c, rv_policy_finding_fn *told, void *userdata)
{
        if (c->n_entries)
                qsort(c->entries, c->n_entries, sizeof(*c->entries), compare_entries);
        for (size_t i = 0; i < c->n_entries; i++) {
                struct rv_policy_finding f = { c->entries[i].file, c->entries[i].line, c->entries[i].message };

                if (!c->is_out)
                        told(userdata, &f);
                free(c->entries[i].file);
                free(c->entries[i].message);
        }
        free(c->entries);
        return c->is_out ? rv_raise(-ENOMEM) : (int)c->n_entries;
}

int rv_policy_check(const char *dir, rv_policy_finding_fn *told, void *userdata)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = NULL;
        struct checking c = { 0 };
        struct rv_error err = { 0 };
        char file[RV_BUNDLE_PATH_MAX + 1];
        const char *text;
        int r, line;

        r = rv_bundle_load(dir, &bundle, &err);
        if (r == -ENOMEM)
                return rv_trace(r);
        if (r < 0) {
                text = rv_bundle_error_place(&err, file, &line);
                add(&c, file, line, text);
                return tell(&c, told, userdata);
        }
        c.bundle = bundle;
        for (size_t i = 0; i < bundle->n_files; i++)
                if (is_lua(&bundle->files[i]))
                        scan_file(&c, &bundle->files[i]);
        load_for(&c, "python");
        load_for(&c, "javascript");
        return tell(&c, told, userdata);
}
