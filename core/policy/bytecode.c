#include "policy/bytecode.h"

#include "base/buf.h"

#include <string.h>

/* Lua 5.4: lopcodes.h. An instruction has the opcode in 7 bits, A in 8, k in 1, B and C in 8 each, or Bx in 17. */
enum {
        OP_MOVE = 0, OP_LOADK = 3, OP_LOADKX = 4, OP_GETUPVAL = 9, OP_GETTABUP = 11, OP_GETTABLE = 12, OP_GETFIELD = 14,
        OP_SETTABUP = 15, OP_SETTABLE = 16, OP_SELF = 20, OP_EXTRAARG = 82,
        OP_SETUPVAL = 10, OP_SETI = 17, OP_SETFIELD = 18, OP_MMBIN = 46, OP_MMBINK = 48, OP_CLOSE = 54, OP_JMP = 56,
        OP_EQ = 57, OP_TEST = 66, OP_RETURN = 70, OP_RETURN1 = 72, OP_SETLIST = 78,
};

#define OPCODE(i) ((i) & 0x7f)
#define ARG_A(i) ((i) >> 7 & 0xff)
#define ARG_B(i) ((i) >> 16 & 0xff)
#define ARG_C(i) ((i) >> 24 & 0xff)
#define ARG_BX(i) ((i) >> 15)
#define ARG_AX(i) ((i) >> 7)

/* Tags of constants: lobject.h. */
enum { TAG_NIL = 0x00, TAG_FALSE = 0x01, TAG_TRUE = 0x11, TAG_INTEGER = 0x03, TAG_FLOAT = 0x13, TAG_SHORT = 0x04,
        TAG_LONG = 0x14 };

#define NESTING_MAX 200   /* Lua's own bound on nested functions is below this */

struct reader {
        const uint8_t *p, *end;
        bool is_bad;
        unsigned depth;
        rv_bytecode_visitor *visit;
        void *userdata;
};

struct function {
        const uint8_t *code;
        size_t n_code, n_constants, n_upvalues;
        char **constants;        /* NULL where it is no text */
        bool *is_env;            /* of each upvalue: does it reach the chunk's _ENV? */
        int *lines;              /* of each instruction */
        int line_defined, n_parameters;
};

static uint8_t read_byte(struct reader *r)
{
        if (r->p == r->end) {
                r->is_bad = true;
                return 0;
        }
        return *r->p++;
}

static const uint8_t *read_block(struct reader *r, size_t n)
{
        const uint8_t *p = r->p;

        if ((size_t)(r->end - r->p) < n) {
                r->is_bad = true;
                return NULL;
        }
        r->p += n;
        return p;
}

/* ldump.c, dumpSize: seven bits a byte, the most significant first, the last one marked. */
static size_t read_size(struct reader *r)
{
        size_t n = 0;
        uint8_t b;

        do {
                b = read_byte(r);
                n = n << 7 | (b & 0x7f);
        } while (!(b & 0x80) && !r->is_bad && n < (SIZE_MAX >> 8));
        return n;
}

/* A count of things of at least @size bytes each, which can be no more than what is left. */
static size_t read_count(struct reader *r, size_t size)
{
        size_t n = read_size(r);

        if (n > (size_t)(r->end - r->p) / size) {
                r->is_bad = true;
                return 0;
        }
        return n;
}

static char *read_text(struct reader *r)
{
        size_t n = read_size(r);
        const uint8_t *p = n ? read_block(r, n - 1) : NULL;
        char *s = p ? malloc(n) : NULL;

        if (s) {
                memcpy(s, p, n - 1);
                s[n - 1] = 0;
        }
        return s;
}

static void skip_text(struct reader *r)
{
        size_t n = read_size(r);

        if (n)
                read_block(r, n - 1);
}

static void free_function(struct function *f)
{
        for (size_t i = 0; i < f->n_constants && f->constants; i++)
                free(f->constants[i]);
        free(f->constants);
        free(f->is_env);
        free(f->lines);
}

static void read_constants(struct reader *r, struct function *f)
{
        f->n_constants = read_count(r, 1);
        f->constants = calloc(f->n_constants + 1, sizeof(*f->constants));
        for (size_t i = 0; i < f->n_constants && f->constants && !r->is_bad; i++) {
                switch (read_byte(r)) {
                case TAG_INTEGER:
                case TAG_FLOAT:
                        read_block(r, 8);
                        break;
                case TAG_SHORT:
                case TAG_LONG:
                        f->constants[i] = read_text(r);
                        break;
                case TAG_NIL:
                case TAG_FALSE:
                case TAG_TRUE:
                        break;
                default:
                        r->is_bad = true;
                }
        }
}

/* Only the chunk's first upvalue is _ENV; in a function it is what was handed down from there. */
static void read_upvalues(struct reader *r, struct function *f, const struct function *parent)
{
        f->n_upvalues = read_count(r, 3);
        f->is_env = calloc(f->n_upvalues + 1, sizeof(*f->is_env));
        for (size_t i = 0; i < f->n_upvalues && f->is_env && !r->is_bad; i++) {
                bool is_in_stack = read_byte(r);
                size_t index = read_byte(r);

                read_byte(r);
                f->is_env[i] = parent ? !is_in_stack && index < parent->n_upvalues && parent->is_env[index] : i == 0;
        }
}

/* lineinfo is the difference to the instruction before, or -128: then abslineinfo has the line. */
static void read_lines(struct reader *r, struct function *f)
{
        size_t n = read_count(r, 1), n_absolute;
        const uint8_t *differences = read_block(r, n);
        int line = f->line_defined;

        f->lines = calloc(f->n_code + 1, sizeof(*f->lines));
        n_absolute = read_count(r, 2);
        if (!f->lines || r->is_bad || n != f->n_code) {
                r->is_bad = true;
                return;
        }
        for (size_t i = 0; i < n; i++)
                f->lines[i] = (int8_t)differences[i];
        for (size_t at = 0, i = 0; i < n_absolute && !r->is_bad; i++) {
                size_t pc = read_size(r), absolute = read_size(r);

                for (; at < n && at < pc; at++)
                        line = f->lines[at] += line;
                if (at < n)
                        f->lines[at++] = line = (int)absolute;
                if (i + 1 == n_absolute)
                        for (; at < n; at++)
                                line = f->lines[at] += line;
        }
        for (size_t i = 0; i < n && n_absolute == 0; i++)
                line = f->lines[i] += line;
}

static void skip_names(struct reader *r)
{
        size_t n = read_count(r, 3);

        for (size_t i = 0; i < n && !r->is_bad; i++) {
                skip_text(r);
                read_size(r);
                read_size(r);
        }
        n = read_count(r, 1);
        for (size_t i = 0; i < n && !r->is_bad; i++)
                skip_text(r);
}

static uint32_t instruction(const struct function *f, size_t i)
{
        uint32_t x;

        memcpy(&x, f->code + 4 * i, sizeof(x));
        return x;
}

static const char *constant(const struct function *f, size_t i)
{
        return i < f->n_constants ? f->constants[i] : NULL;
}

static bool is_env(const struct function *f, size_t upvalue)
{
        return upvalue < f->n_upvalues && f->is_env[upvalue];
}

/* Does the instruction write the register A? As lopcodes.c has it in its table, for the opcodes that do not. */
static bool sets_a(uint32_t i)
{
        uint32_t op = OPCODE(i);

        return !(op == OP_SETUPVAL || (op >= OP_SETTABUP && op <= OP_SETFIELD) || (op >= OP_MMBIN && op <= OP_MMBINK) ||
                 (op >= OP_CLOSE && op <= OP_TEST) || (op >= OP_RETURN && op <= OP_RETURN1) || op == OP_SETLIST ||
                         op == OP_EXTRAARG);
}

static void visit(struct reader *r, const struct function *f, size_t at, struct rv_access access)
{
        access.line = f->lines[at];
        access.depth = r->depth;
        if (access.name || access.member)
                r->visit(r->userdata, &access);
}

/* `name.member`: the field is read from the register that the global was just read into. */
static void visit_member(struct reader *r, const struct function *f, size_t at, const char *name)
{
        uint32_t next;

        if (at + 1 >= f->n_code)
                return;
        next = instruction(f, at + 1);
        if (OPCODE(next) == OP_GETFIELD && ARG_B(next) == ARG_A(instruction(f, at)) && constant(f, ARG_C(next)))
                visit(r, f, at + 1, (struct rv_access){ .kind = RV_ACCESS_MEMBER, .name = name, .member = constant(f,
                        ARG_C(next)) });
}

/*
 * In a chunk of more than 255 constants a name can be too far for the short form; then _ENV and the name are
 * put into two registers, and the access that uses both follows somewhere.
 */
static void visit_far(struct reader *r, const struct function *f, size_t at)
{
        uint32_t env = instruction(f, at), load = at + 1 < f->n_code ? instruction(f, at + 1) : 0;
        const char *name = NULL;

        if (OPCODE(load) == OP_LOADK)
                name = constant(f, ARG_BX(load));
        else if (OPCODE(load) == OP_LOADKX && at + 2 < f->n_code)
                name = constant(f, ARG_AX(instruction(f, at + 2)));
        for (size_t i = at + 2; i < f->n_code && name; i++) {
                uint32_t x = instruction(f, i);

                if (OPCODE(x) == OP_GETTABLE && ARG_B(x) == ARG_A(env) && ARG_C(x) == ARG_A(load)) {
                        visit(r, f, i, (struct rv_access){ .kind = RV_ACCESS_GLOBAL, .name = name });
                        visit_member(r, f, i, name);
                        return;
                }
                if (OPCODE(x) == OP_SETTABLE && ARG_A(x) == ARG_A(env) && ARG_B(x) == ARG_A(load)) {
                        visit(r, f, i, (struct rv_access){ .kind = RV_ACCESS_SET, .name = name });
                        return;
                }
                if (sets_a(x) && (ARG_A(x) == ARG_A(env) || ARG_A(x) == ARG_A(load)))
                        return;
        }
}

/* Is a parameter's register never written, so that a field read from it is one of the argument's? */
static bool is_constant_argument(const struct function *f, uint32_t argument)
{
        for (size_t i = 0; i < f->n_code; i++)
                if (sets_a(instruction(f, i)) && ARG_A(instruction(f, i)) == argument)
                        return false;
        return true;
}

static void scan(struct reader *r, const struct function *f)
{
        for (size_t i = 0; i < f->n_code; i++) {
                uint32_t x = instruction(f, i);
                const char *name;

                switch (OPCODE(x)) {
                case OP_GETTABUP:
                        name = is_env(f, ARG_B(x)) ? constant(f, ARG_C(x)) : NULL;
                        visit(r, f, i, (struct rv_access){ .kind = RV_ACCESS_GLOBAL, .name = name });
                        if (name)
                                visit_member(r, f, i, name);
                        break;
                case OP_SETTABUP:
                        name = is_env(f, ARG_A(x)) ? constant(f, ARG_B(x)) : NULL;
                        visit(r, f, i, (struct rv_access){ .kind = RV_ACCESS_SET, .name = name });
                        break;
                case OP_GETUPVAL:
                        if (is_env(f, ARG_B(x)))
                                visit_far(r, f, i);
                        break;
                case OP_GETFIELD:
                        if ((int)ARG_B(x) < f->n_parameters && is_constant_argument(f, ARG_B(x)))
                                visit(r, f, i, (struct rv_access){ .kind = RV_ACCESS_ARGUMENT, .member = constant(f,
                                        ARG_C(x)),
                                        .argument = (int)ARG_B(x) });
                        break;
                }
        }
}

static void read_function(struct reader *r, const struct function *parent)
{
        struct function f = { 0 };
        const uint8_t *functions;
        struct reader inner;
        size_t n;

        if (r->depth > NESTING_MAX)
                r->is_bad = true;
        skip_text(r);
        f.line_defined = (int)read_size(r);
        read_size(r);
        f.n_parameters = read_byte(r);
        read_byte(r);
        read_byte(r);
        f.n_code = read_count(r, 4);
        f.code = read_block(r, 4 * f.n_code);
        read_constants(r, &f);
        read_upvalues(r, &f, parent);
        /* Lines come after the functions inside, whose accesses are told after this one's: walk them twice. */
        functions = r->p;
        n = read_count(r, 1);
        inner = *r;
        inner.visit = NULL;
        inner.depth++;
        for (size_t i = 0; i < n && !r->is_bad && !inner.is_bad; i++)
                read_function(&inner, &f);
        r->p = inner.p;
        r->is_bad = r->is_bad || inner.is_bad || !f.constants || !f.is_env;
        if (!r->is_bad)
                read_lines(r, &f);
        if (!r->is_bad && r->visit)
                scan(r, &f);
        if (!r->is_bad)
                skip_names(r);
        if (!r->is_bad && r->visit) {
                inner = *r;
                inner.p = functions;
                inner.depth++;
                n = read_count(&inner, 1);
                for (size_t i = 0; i < n; i++)
                        read_function(&inner, &f);
        }
        free_function(&f);
}

static int write_piece(lua_State *L, const void *data, size_t n, void *ud)
{
        return rv_buf_append(ud, data, n);
}

int rv_bytecode_walk(lua_State *L, rv_bytecode_visitor *visitor, void *userdata)
{
        /* lundump.h: signature, version, format, LUAC_DATA, sizes of an instruction, an integer, a number. */
        static const char header[] = "\x1bLua\x54\x00\x19\x93\r\n\x1a\n\x04\x08\x08";
        _cleanup_(rv_buf_fini) struct rv_buf dump = { 0 };
        struct reader r = { .visit = visitor, .userdata = userdata };
        const uint8_t *begin;

        if (lua_dump(L, write_piece, &dump, 0) != 0)
                return rv_raise(-ENOMEM);
        r.p = (const uint8_t *)dump.data;
        r.end = r.p + dump.size;
        begin = read_block(&r, sizeof(header) - 1);
        if (!begin || memcmp(begin, header, sizeof(header) - 1) != 0)
                return rv_raise(-EINVAL);
        read_block(&r, 16);   /* LUAC_INT, LUAC_NUM */
        read_byte(&r);
        read_function(&r, NULL);
        return r.is_bad ? rv_raise(-EINVAL) : 0;
}
