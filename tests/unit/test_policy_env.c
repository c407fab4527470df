/*
 * The sandbox's environment against policies/types/reeve.lua, so that what an editor shows and what a policy
 * finds never part, and against everything that a plain Lua has.
 */
#include "test_policy_util.h"

#include "base/fd.h"
#include "policy/engine.h"
#include "policy/env.h"

#include <fcntl.h>
#include <lualib.h>

#define NAMES_MAX 400

struct names {
        char *list[NAMES_MAX];
        size_t n;
};

static void add(void *userdata, const char *name)
{
        struct names *names = userdata;

        assert_true(names->n < NAMES_MAX);
        names->list[names->n++] = strdup(name);
}

static bool has(const struct names *names, const char *name)
{
        for (size_t i = 0; i < names->n; i++)
                if (strcmp(names->list[i], name) == 0)
                        return true;
        return false;
}

static void clear(struct names *names)
{
        for (size_t i = 0; i < names->n; i++)
                free(names->list[i]);
        names->n = 0;
}

static char *read_types(void)
{
        struct rv_buf text = { 0 };

        assert_int_equal(rv_read_file_at(AT_FDCWD, SOURCE_ROOT "/policies/types/reeve.lua", 1 << 20, &text), 0);
        return rv_buf_take(&text, NULL);
}

/* Names that the types declare: lines that begin `function NAME(` or `NAME = `. */
static void read_declared(struct names *names)
{
        char *text = read_types(), *save = NULL;

        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                const char *name = strncmp(line, "function ", 9) == 0 ? line + 9 : line;
                size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz.");

                if (n > 0 && (name == line ? strncmp(name + n, " = ", 3) == 0 : name[n] == '(')) {
                        line[(name - line) + n] = 0;
                        add(names, name);
                }
        }
        free(text);
}

/* Members of a class of the types: lines `---@field NAME …` after `---@class TITLE`. */
static void read_fields(const char *title, struct names *names)
{
        char *text = read_types(), *save = NULL;
        bool is_inside = false;

        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                if (strncmp(line, "---@class ", 10) == 0) {
                        is_inside = strcmp(line + 10, title) == 0;
                } else if (is_inside && strncmp(line, "---@field ", 10) == 0) {
                        line[10 + strcspn(line + 10, " ?")] = 0;
                        add(names, line + 10);
                }
        }
        free(text);
}

static void types_name_what_is_there(void **state)
{
        struct names declared = { 0 }, real = { 0 };
        char snippet[200];

        read_declared(&declared);
        rv_env_each(add, &real);
        assert_true(declared.n > 40);
        for (size_t i = 0; i < declared.n; i++) {
                if (!has(&real, declared.list[i]))
                        fail_msg("policies/types declares %s, which is not there", declared.list[i]);
                /* And really so: read by a policy. */
                snprintf(snippet, sizeof(snippet), "assert(%s ~= nil)", declared.list[i]);
                expect_outcome(declared.list[i], decide_snippet(snippet), NULL);
        }
        for (size_t i = 0; i < real.n; i++)
                if (!has(&declared, real.list[i]))
                        fail_msg("policies/types does not declare %s", real.list[i]);
        clear(&declared);
        clear(&real);
}

static void types_name_the_facts(void **state)
{
        static const char *const titles[_RV_FACTS_MAX] = {
                [RV_FACTS_PACKAGE] = "reeve.Package", [RV_FACTS_NETWORK] = "reeve.Network", [RV_FACTS_IDEMPOTENCY] = "reeve.Idempotency",
                [RV_FACTS_BACKEND] = "reeve.Backend", [RV_FACTS_REQUEST] = "reeve.Request", [RV_FACTS_TENANT] = "reeve.Tenant",
        };

        for (size_t set = 0; set < _RV_FACTS_MAX; set++) {
                struct names declared = { 0 };

                read_fields(titles[set], &declared);
                assert_int_equal(declared.n, rv_fact_tables[set].n_facts);
                for (size_t i = 0; i < declared.n; i++)
                        if (!rv_fact_find((enum rv_fact_set)set, declared.list[i]))
                                fail_msg("policies/types: %s has no fact %s", titles[set], declared.list[i]);
                clear(&declared);
        }
}

/* Whatever a plain Lua has and the types do not declare must raise. */
static void nothing_else_of_lua_is_there(void **state)
{
        static const char list[] = "local names = {}\n"
                                   "for k, v in pairs(_G) do names[#names + 1] = k\n"
                                   "  if type(v) == 'table' and k ~= '_G' then for m in pairs(v) do if type(m) == 'string' then names[#names + 1] = k .. '.' .. m end end end\n"
                                   "end\n"
                                   "return names";
        struct names declared = { 0 };
        lua_State *L = luaL_newstate();
        size_t n_missing = 0;
        char snippet[200];

        read_declared(&declared);
        luaL_openlibs(L);
        assert_int_equal(luaL_dostring(L, list), LUA_OK);
        for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++, lua_pop(L, 1)) {
                const char *name = lua_tostring(L, -1);

                if (has(&declared, name) || strchr(name, '-'))
                        continue;
                snprintf(snippet, sizeof(snippet), "local x = %s", name);
                expect_outcome(name, decide_snippet(snippet), "");
                n_missing++;
        }
        assert_true(n_missing > 60);
        lua_close(L);
        clear(&declared);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(types_name_what_is_there), cmocka_unit_test(types_name_the_facts),
                cmocka_unit_test(nothing_else_of_lua_is_there),
        };

        return cmocka_run_group_tests_name("policy environment", tests, NULL, NULL);
}
