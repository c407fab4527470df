/*
 * bytecode.h - what a compiled chunk reads, without running it
 *
 * Lua's own compiler is the parser: a chunk is dumped (lua_dump, Lua 5.4's format) and its instructions are
 * walked, functions that nothing calls too. Only chunks that were compiled in this process from text are read,
 * never bytecode of anybody else's; all the same each length is checked. One thread.
 */
#pragma once

#include "policy/engine.h"

enum rv_access_kind {
        RV_ACCESS_GLOBAL,     /* `name` is read */
        RV_ACCESS_SET,        /* `name` is written */
        RV_ACCESS_MEMBER,     /* `name.member` is read, of a global */
        RV_ACCESS_ARGUMENT,   /* `.member` of the function's argument number `argument` is read */
};

struct rv_access {
        enum rv_access_kind kind;
        const char *name, *member;
        int argument;
        int line;
        unsigned depth;      /* 0: in the function that was given; else in one inside it */
};

/** rv_bytecode_visitor - told of each access in the order of the code; texts live for the call. Context: as the walk. Ownership: borrows. Return: none */
typedef void rv_bytecode_visitor(void *userdata, const struct rv_access *access);

/**
 * rv_bytecode_walk() - visit each access of the function on top of the stack and of all functions in it
 *
 * Context:   the function is one that luaL_loadbufferx() made; raises no Lua error
 * Ownership: borrows
 * Return:    0; -EINVAL a format that this code does not know (another Lua); -ENOMEM
 */
int rv_bytecode_walk(lua_State *L, rv_bytecode_visitor *visit, void *userdata);
