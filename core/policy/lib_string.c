/*
 * `string` in the sandbox. Each function is linear in its input and pays for the bytes it touches. Lua's
 * patterns are not here, since one `find` can run for hours on a hundred bytes: find, match, gmatch and gsub
 * take plain text, and raise for a pattern rather than look for its characters; string.glob knows `*`.
 */
#include "policy/env.h"

#include "policy/matcher.h"

#include <string.h>

static const char *check_text(lua_State *L, int index, size_t *ret_n)
{
        const char *s = luaL_checklstring(L, index, ret_n);

        rv_engine_charge_bytes(L, *ret_n);
        return s;
}

void rv_string_check_size(lua_State *L, const char *function, size_t n)
{
        if (n > RV_ENGINE_STRING_MAX)
                rv_engine_raise(L, "%s: a string is longer than %d bytes", function, RV_ENGINE_STRING_MAX);
        rv_engine_charge_bytes(L, n);
}

/* Plain text, or an error that says what to do: a policy that looks for "%d+" literally would never match. */
static const char *check_plain(lua_State *L, int index, const char *function, bool is_plain, size_t *ret_n)
{
        const char *s = check_text(L, index, ret_n);

        for (size_t i = 0; i < *ret_n && !is_plain; i++)
                if (s[i] && strchr("^$*+?.([%-", s[i]))
                        rv_engine_raise(L, "string.%s takes plain text here, no pattern, and '%.60s' has '%c': use string.glob, or "
                                "string.find(s, text, 1, true)", function, s, s[i]);
        return s;
}

/* A position as string.sub counts: from 1, or from the end; past the ends it is cut. */
static size_t start_of(lua_Integer i, size_t n)
{
        if (i > 0)
                return (size_t)i;
        if (i == 0 || i < -(lua_Integer)n)
                return 1;
        return n + (size_t)i + 1;
}

static size_t end_of(lua_Integer i, size_t n)
{
        if (i > (lua_Integer)n)
                return n;
        if (i >= 0)
                return (size_t)i;
        return i < -(lua_Integer)n ? 0 : n + (size_t)i + 1;
}

static int raw_sub(lua_State *L)
{
        size_t n, from, to;
        const char *s = check_text(L, 1, &n);

        from = start_of(luaL_checkinteger(L, 2), n);
        to = end_of(luaL_optinteger(L, 3, -1), n);
        if (from > to)
                lua_pushliteral(L, "");
        else
                lua_pushlstring(L, s + from - 1, to - from + 1);
        return 1;
}

static int raw_len(lua_State *L)
{
        size_t n;

        luaL_checklstring(L, 1, &n);
        lua_pushinteger(L, (lua_Integer)n);
        return 1;
}

static int raw_byte(lua_State *L)
{
        size_t n, from, to;
        lua_Integer i = luaL_optinteger(L, 2, 1);
        const char *s = check_text(L, 1, &n);

        from = start_of(i, n);
        to = end_of(luaL_optinteger(L, 3, (lua_Integer)from), n);
        if (from > to)
                return 0;
        luaL_argcheck(L, to - from < 250, 3, "more than 250 bytes at once");
        luaL_checkstack(L, (int)(to - from + 1), "string.byte");
        for (size_t k = from; k <= to; k++)
                lua_pushinteger(L, (unsigned char)s[k - 1]);
        return (int)(to - from + 1);
}

static int raw_char(lua_State *L)
{
        int n = lua_gettop(L);
        char text[256];

        luaL_argcheck(L, n <= (int)sizeof(text), 1, "more than 256 characters at once");
        for (int i = 1; i <= n; i++) {
                lua_Integer c = luaL_checkinteger(L, i);

                luaL_argcheck(L, c >= 0 && c <= 255, i, "a byte is from 0 to 255");
                text[i - 1] = (char)c;
        }
        lua_pushlstring(L, text, (size_t)n);
        return 1;
}

/* ASCII, whatever the locale. */
static int raw_lower(lua_State *L)
{
        size_t n;
        const char *s = check_text(L, 1, &n);
        luaL_Buffer b;
        char *p = luaL_buffinitsize(L, &b, n);

        for (size_t i = 0; i < n; i++)
                p[i] = s[i] >= 'A' && s[i] <= 'Z' ? (char)(s[i] + 32) : s[i];
        luaL_pushresultsize(&b, n);
        return 1;
}

static int raw_upper(lua_State *L)
{
        size_t n;
        const char *s = check_text(L, 1, &n);
        luaL_Buffer b;
        char *p = luaL_buffinitsize(L, &b, n);

        for (size_t i = 0; i < n; i++)
                p[i] = s[i] >= 'a' && s[i] <= 'z' ? (char)(s[i] - 32) : s[i];
        luaL_pushresultsize(&b, n);
        return 1;
}

static int raw_reverse(lua_State *L)
{
        size_t n;
        const char *s = check_text(L, 1, &n);
        luaL_Buffer b;
        char *p = luaL_buffinitsize(L, &b, n);

        for (size_t i = 0; i < n; i++)
                p[i] = s[n - i - 1];
        luaL_pushresultsize(&b, n);
        return 1;
}

static int raw_rep(lua_State *L)
{
        size_t n, n_separator, total;
        const char *s = check_text(L, 1, &n), *separator = luaL_optlstring(L, 3, "", &n_separator);
        lua_Integer times = luaL_checkinteger(L, 2);
        luaL_Buffer b;
        char *p;

        if (times <= 0 || n + n_separator == 0) {
                lua_pushliteral(L, "");
                return 1;
        }
        if ((lua_Unsigned)times > RV_ENGINE_STRING_MAX)
                rv_string_check_size(L, "string.rep", SIZE_MAX);
        total = (size_t)times * n + (size_t)(times - 1) * n_separator;
        rv_string_check_size(L, "string.rep", total);
        p = luaL_buffinitsize(L, &b, total);
        for (lua_Integer i = 0; i < times; i++) {
                memcpy(p, s, n);
                p += n;
                if (i < times - 1 && n_separator) {
                        memcpy(p, separator, n_separator);
                        p += n_separator;
                }
        }
        luaL_pushresultsize(&b, total);
        return 1;
}

static const char *search(const char *s, size_t n, const char *text, size_t n_text)
{
        return n_text ? memmem(s, n, text, n_text) : s;
}

/* find(s, text [, init [, plain]]): first and last position, or nil. */
static int raw_find(lua_State *L)
{
        size_t n, n_text, from;
        const char *s = check_text(L, 1, &n), *found;
        const char *text = check_plain(L, 2, "find", lua_toboolean(L, 4), &n_text);

        from = start_of(luaL_optinteger(L, 3, 1), n);
        found = from <= n + 1 ? search(s + from - 1, n - from + 1, text, n_text) : NULL;
        if (!found) {
                lua_pushnil(L);
                return 1;
        }
        lua_pushinteger(L, found - s + 1);
        lua_pushinteger(L, found - s + (lua_Integer)n_text);
        return 2;
}

static int raw_match(lua_State *L)
{
        size_t n, n_text, from;
        const char *s = check_text(L, 1, &n);
        const char *text = check_plain(L, 2, "match", false, &n_text);

        from = start_of(luaL_optinteger(L, 3, 1), n);
        if (from <= n + 1 && search(s + from - 1, n - from + 1, text, n_text))
                lua_pushvalue(L, 2);
        else
                lua_pushnil(L);
        return 1;
}

/* Iterates with the position reached in upvalue 3; an empty text matches once at each place. */
static int next_match(lua_State *L)
{
        size_t n, n_text, from = (size_t)lua_tointeger(L, lua_upvalueindex(3));
        const char *s = lua_tolstring(L, lua_upvalueindex(1), &n), *text = lua_tolstring(L, lua_upvalueindex(2),
                &n_text);
        const char *found = from <= n ? search(s + from, n - from, text, n_text) : NULL;

        if (!found) {
                rv_engine_charge_bytes(L, n);
                lua_pushnil(L);
                return 1;
        }
        rv_engine_charge_bytes(L, (size_t)(found - s) - from + n_text);
        lua_pushinteger(L, found - s + (lua_Integer)RV_MAX(n_text, (size_t)1));
        lua_replace(L, lua_upvalueindex(3));
        lua_pushvalue(L, lua_upvalueindex(2));
        return 1;
}

static int raw_gmatch(lua_State *L)
{
        size_t n;

        check_text(L, 1, &n);
        check_plain(L, 2, "gmatch", false, &n);
        lua_settop(L, 2);
        lua_pushinteger(L, 0);
        lua_pushcclosure(L, next_match, 3);
        return 1;
}

/* Adds what stands for one find: the text [3], or what the function or table [3] says of it. */
static size_t add_replacement(lua_State *L, luaL_Buffer *b)
{
        size_t n;

        if (lua_type(L, 3) == LUA_TSTRING) {
                lua_pushvalue(L, 3);
        } else if (lua_isfunction(L, 3)) {
                lua_pushvalue(L, 3);
                lua_pushvalue(L, 2);
                lua_call(L, 1, 1);
        } else {
                lua_pushvalue(L, 2);
                lua_gettable(L, 3);
        }
        if (!lua_toboolean(L, -1)) {
                lua_pop(L, 1);
                lua_pushvalue(L, 2);
        } else if (lua_type(L, -1) != LUA_TSTRING) {
                rv_engine_raise(L, "string.gsub: a replacement is a text, not %s", luaL_typename(L, -1));
        }
        n = lua_rawlen(L, -1);
        rv_engine_charge_bytes(L, n);
        luaL_addvalue(b);
        return n;
}

/* gsub(s, text, replacement [, n]): the new text and how many were replaced. */
static int raw_gsub(lua_State *L)
{
        size_t n, n_text, total = 0;
        const char *s = check_text(L, 1, &n), *text = check_plain(L, 2, "gsub", false, &n_text);
        lua_Integer left = luaL_optinteger(L, 4, LUA_MAXINTEGER), count = 0;
        const char *end = s + n, *found;
        luaL_Buffer b;

        if (lua_type(L, 3) == LUA_TSTRING)
                check_plain(L, 3, "gsub", !strchr(lua_tostring(L, 3), '%'), &total);
        else if (lua_type(L, 3) != LUA_TTABLE && lua_type(L, 3) != LUA_TFUNCTION)
                return rv_engine_raise(L, "string.gsub: a replacement is a text, a table or a function");
        luaL_argcheck(L, n_text > 0, 2, "empty");
        lua_settop(L, 3);
        luaL_buffinit(L, &b);
        for (total = 0; count < left && (found = memmem(s, (size_t)(end - s), text, n_text)); count++) {
                luaL_addlstring(&b, s, (size_t)(found - s));
                total += (size_t)(found - s) + add_replacement(L, &b);
                if (total > RV_ENGINE_STRING_MAX)
                        rv_string_check_size(L, "string.gsub", total);
                s = found + n_text;
        }
        rv_string_check_size(L, "string.gsub", total + (size_t)(end - s));
        luaL_addlstring(&b, s, (size_t)(end - s));
        luaL_pushresult(&b);
        lua_pushinteger(L, count);
        return 2;
}

/* glob(s, pattern): does all of s fit? `*` is any run of bytes, all else is itself. */
static int raw_glob(lua_State *L)
{
        size_t n, n_pattern;
        const char *s = check_text(L, 1, &n), *pattern = check_text(L, 2, &n_pattern);

        lua_pushboolean(L, rv_glob_has(pattern, n_pattern, s, n));
        return 1;
}

const luaL_Reg rv_lib_string[] = {
        { "byte", raw_byte }, { "char", raw_char }, { "find", raw_find }, { "format", raw_format },
        { "glob", raw_glob }, { "gmatch", raw_gmatch }, { "gsub", raw_gsub }, { "len", raw_len },
        { "lower", raw_lower }, { "match", raw_match }, { "rep", raw_rep }, { "reverse", raw_reverse },
        { "sub", raw_sub }, { "upper", raw_upper }, { NULL, NULL },
};
