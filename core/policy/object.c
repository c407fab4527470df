#include "policy/object.h"

#include <stdbool.h>
#include <string.h>

void *rv_object_push(lua_State *L, size_t size, const void *kind, const char *name)
{
        void *object = lua_newuserdatauv(L, size, 1);

        memset(object, 0, size);
        lua_newtable(L);
        lua_pushvalue(L, -1);
        lua_setiuservalue(L, -3, 1);
        lua_insert(L, -2);
        if (lua_rawgetp(L, LUA_REGISTRYINDEX, kind) == LUA_TNIL) {
                lua_pop(L, 1);
                lua_createtable(L, 0, 2);
                lua_pushstring(L, name);
                lua_setfield(L, -2, "__name");
                lua_pushboolean(L, 0);
                lua_setfield(L, -2, "__metatable");
                lua_pushvalue(L, -1);
                lua_rawsetp(L, LUA_REGISTRYINDEX, kind);
        }
        lua_setmetatable(L, -2);
        return object;
}

void *rv_object_test(lua_State *L, int index, const void *kind)
{
        bool is_of_kind;

        if (lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index))
                return NULL;
        lua_rawgetp(L, LUA_REGISTRYINDEX, kind);
        is_of_kind = lua_rawequal(L, -1, -2);
        lua_pop(L, 2);
        return is_of_kind ? lua_touserdata(L, index) : NULL;
}
