#include "policy/matcher.h"

#include "policy/object.h"
#include "policy/view.h"
#include "request/request.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

static const char metatable_key;

bool rv_glob_has(const char *pattern, size_t n_pattern, const char *text, size_t n)
{
        const char *star = memchr(pattern, '*', n_pattern);
        size_t n_head, n_tail;

        if (!star)
                return n == n_pattern && memcmp(pattern, text, n) == 0;
        n_head = (size_t)(star - pattern);
        if (n < n_head || memcmp(pattern, text, n_head) != 0)
                return false;
        pattern += n_head, n_pattern -= n_head, text += n_head, n -= n_head;
        star = memrchr(pattern, '*', n_pattern);
        n_tail = n_pattern - (size_t)(star - pattern) - 1;
        if (n < n_tail || memcmp(star + 1, text + n - n_tail, n_tail) != 0)
                return false;
        n -= n_tail;
        /* Between the first and the last star each piece goes to its leftmost place: no choice is ever undone. */
        while (pattern < star) {
                const char *begin = pattern + 1, *end = memchr(begin, '*', (size_t)(star - begin) + 1);
                size_t n_piece = (size_t)(end - begin);
                const char *found = n_piece ? memmem(text, n, begin, n_piece) : text;

                if (!found)
                        return false;
                n -= (size_t)(found - text) + n_piece;
                text = found + n_piece;
                pattern = end;
        }
        return true;
}

const struct rv_matcher *rv_matcher_test(lua_State *L, int index)
{
        return rv_object_test(L, index, &metatable_key);
}

/* A matcher with room for @n names; its user value is the table that keeps the texts. */
static struct rv_matcher *push_matcher(lua_State *L, enum rv_matcher_kind kind, size_t n)
{
        struct rv_matcher *m = lua_newuserdatauv(L, sizeof(*m) + n * sizeof(char *), 1);

        *m = (struct rv_matcher){ .kind = kind, .names = (const char *const *)(m + 1) };
        lua_newtable(L);
        lua_setiuservalue(L, -2, 1);
        lua_rawgetp(L, LUA_REGISTRYINDEX, &metatable_key);
        lua_setmetatable(L, -2);
        return m;
}

/* Pushes the canonical form of a domain name that a policy wrote. */
static const char *push_domain(lua_State *L, const char *text, size_t n)
{
        char name[RV_DOMAIN_SIZE_MAX + 1];
        bool is_label = false;

        if (n > 1 && text[n - 1] == '.')
                n--;
        for (size_t i = 0; i < n && n <= RV_DOMAIN_SIZE_MAX; i++) {
                char c = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] + 'a' - 'A') : text[i];
                bool is_dot = c == '.';

                if (is_dot ? !is_label : !((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
                        n = 0;
                is_label = !is_dot;
                name[i] = c;
        }
        if (n == 0 || n > RV_DOMAIN_SIZE_MAX || !is_label) {
                rv_engine_raise(L, "within: '%.80s' is no domain name; a name includes its subdomains, so that no '*' is needed", text);
                return NULL;
        }
        return lua_pushlstring(L, name, n);
}

int raw_within(lua_State *L)
{
        const struct rv_view *view = rv_view_test(L, 1);
        struct rv_matcher *m;
        const char **names;
        size_t n;

        if (lua_gettop(L) != 1 || !(lua_istable(L, 1) || (view && view->kind == RV_VIEW_LIST)))
                return rv_engine_raise(L, "within takes a list of domain names: within { \"example.com\" }");
        n = (size_t)luaL_len(L, 1);
        if (n == 0 || n > RV_WITHIN_NAMES_MAX)
                return rv_engine_raise(L, "within takes 1 to %d domain names", RV_WITHIN_NAMES_MAX);
        rv_engine_charge(L, n);
        m = push_matcher(L, RV_MATCHER_WITHIN, n);
        names = (const char **)(m + 1);
        lua_getiuservalue(L, -1, 1);
        for (size_t i = 0; i < n; i++) {
                lua_geti(L, 1, (lua_Integer)i + 1);
                if (lua_type(L, -1) != LUA_TSTRING)
                        return rv_engine_raise(L, "within: entry %zu is %s and not a domain name", i + 1, luaL_typename(L, -1));
                names[i] = push_domain(L, lua_tostring(L, -1), lua_rawlen(L, -1));
                lua_rawseti(L, -3, (lua_Integer)i + 1);
                lua_pop(L, 1);
                m->n_names = i + 1;
        }
        lua_pop(L, 1);
        return 1;
}

/* Called as version(self, set): the table `version` is what is called. */
int raw_version(lua_State *L)
{
        struct rv_matcher *m;

        if (lua_gettop(L) != 2 || lua_type(L, 2) != LUA_TSTRING)
                return rv_engine_raise(L, "version takes a set of versions as text: version \">=1.2, <2\"");
        m = push_matcher(L, RV_MATCHER_VERSION, 0);
        lua_getiuservalue(L, -1, 1);
        lua_pushvalue(L, 2);
        m->set = lua_tolstring(L, -1, &m->set_size);
        lua_rawseti(L, -2, 1);
        lua_pop(L, 1);
        /* A set may be meant for one ecosystem only: it must be well-formed in either. */
        if (rv_version_set_has(RV_VERSION_PEP440, m->set, m->set_size, NULL) < 0 &&
                rv_version_set_has(RV_VERSION_SEMVER, m->set, m->set_size, NULL) < 0)
                return rv_engine_raise(L, "version: '%.80s' is no set of versions, such as \">=1.2, <2\", \"==1.4.*\" or \"^1 || ^2\"", m->set);
        return 1;
}

static void parse_argument(lua_State *L, int index, enum rv_version_order order, struct rv_version *ret)
{
        const char *text;
        size_t n;

        if (lua_type(L, index) != LUA_TSTRING)
                rv_engine_raise(L, "version.compare takes versions as text; 1.10 as a number would be 1.1");
        text = lua_tolstring(L, index, &n);
        rv_engine_charge_bytes(L, n);
        if (rv_version_parse(order, text, n, ret) < 0)
                rv_engine_raise(L, "version.compare: '%.80s' is no version of %s", text, order == RV_VERSION_SEMVER ? "SemVer" : "PEP 440");
}

int raw_version_compare(lua_State *L)
{
        enum rv_version_order order = rv_engine_of(L)->order;
        struct rv_version a, b;
        int r;

        if (!lua_isnoneornil(L, 3)) {
                const char *language = luaL_checkstring(L, 3);

                if (strcmp(language, "python") != 0 && strcmp(language, "javascript") != 0)
                        return rv_engine_raise(L, "version.compare: '%.40s' is no language; there are python and javascript", language);
                order = rv_version_order_for(language);
        }
        parse_argument(L, 1, order, &a);
        parse_argument(L, 2, order, &b);
        r = rv_version_compare(&a, &b);
        lua_pushinteger(L, r < 0 ? -1 : r > 0);
        return 1;
}

int rv_matcher_has(const struct rv_matcher *m, enum rv_version_order order, const char *text, size_t n, char *why)
{
        const char *order_name = order == RV_VERSION_SEMVER ? "SemVer" : "PEP 440";
        struct rv_version version;
        int r;

        if (m->kind == RV_MATCHER_WITHIN) {
                for (size_t i = 0; i < m->n_names; i++)
                        if (rv_domain_is_within(text, m->names[i]))
                                return 1;
                return 0;
        }
        r = rv_version_parse(order, text, n, &version);
        if (r < 0) {
                snprintf(why, 200, "'%.80s' is no version of %s", text, order_name);
                return r;
        }
        r = rv_version_set_has(order, m->set, m->set_size, &version);
        if (r < 0)
                snprintf(why, 200, "version: '%.80s' is no set of versions of %s", m->set, order_name);
        return r;
}

/* matcher(text): true or false. */
static int raw_call(lua_State *L)
{
        const struct rv_matcher *m = lua_touserdata(L, 1);
        char why[200];
        const char *text;
        size_t n;
        int r;

        if (lua_gettop(L) != 2 || lua_type(L, 2) != LUA_TSTRING)
                return rv_engine_raise(L, "a matcher is called with one text");
        text = lua_tolstring(L, 2, &n);
        rv_engine_charge(L, 1 + m->n_names + n / RV_ENGINE_BYTES_PER_UNIT);
        r = rv_matcher_has(m, rv_engine_of(L)->order, text, n, why);
        if (r < 0)
                return rv_engine_raise(L, "%s", why);
        lua_pushboolean(L, r);
        return 1;
}

void rv_matcher_open(lua_State *L)
{
        lua_createtable(L, 0, 3);
        lua_pushcfunction(L, raw_call);
        lua_setfield(L, -2, "__call");
        lua_pushliteral(L, "matcher");
        lua_setfield(L, -2, "__name");
        lua_pushboolean(L, 0);
        lua_setfield(L, -2, "__metatable");
        lua_rawsetp(L, LUA_REGISTRYINDEX, &metatable_key);
}
