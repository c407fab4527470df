/*
 * string.format in the sandbox: %d %i %u %c %x %X %o %f %e %g %s and %%. There is no %p and no %a, and %s takes
 * scalars only, so that no address can become text; no number that is not finite, whose text differs between
 * platforms.
 */
#include "policy/env.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define SPEC_SIZE 16    /* '%', five flags, width and precision of two digits each, NUL; room for "ll" and a letter */
#define FIELD_SIZE 512  /* the widest number is 1e308 with 99 decimals */

struct formatting {
        lua_State *L;
        luaL_Buffer buffer;
        size_t total;   /* bytes so far */
        int argument;
};

static void count(struct formatting *f, size_t n)
{
        f->total += n;
        if (f->total > RV_ENGINE_STRING_MAX)
                rv_string_check_size(f->L, "string.format", f->total);
        rv_engine_charge_bytes(f->L, n);
}

/* Copies '%' and the flags, width and precision that follow; wide ones could fill memory. */
static const char *take_spec(lua_State *L, const char *p, char spec[SPEC_SIZE])
{
        const char *start = p;
        size_t n;

        p += RV_MIN(strspn(p, "-+ #0"), (size_t)5);
        p += RV_MIN(strspn(p, "0123456789"), (size_t)2);
        if (*p == '.') {
                p++;
                p += RV_MIN(strspn(p, "0123456789"), (size_t)2);
        }
        if (*p >= '0' && *p <= '9')
                rv_engine_raise(L, "string.format: a width or precision has at most two digits");
        n = (size_t)(p - start);
        spec[0] = '%';
        memcpy(spec + 1, start, n);
        spec[n + 1] = 0;
        return p;
}

static void add_field(struct formatting *f, const char *text, int n)
{
        if (n < 0 || n >= FIELD_SIZE)
                rv_engine_raise(f->L, "string.format: a field is too long");
        count(f, (size_t)n);
        luaL_addlstring(&f->buffer, text, (size_t)n);
}

static void add_text(struct formatting *f, char *spec)
{
        bool is_cut = strchr(spec, '.') != NULL;
        char text[FIELD_SIZE];
        const char *s;
        int n_field;
        size_t n;

        s = rv_text_push(f->L, f->argument, &n);
        if (spec[1] && strlen(s) != n)
                rv_engine_raise(f->L, "string.format: a text with a zero byte takes no width or precision");
        /* Longer than any width: there is nothing to fill up. */
        if (!spec[1] || (!is_cut && n >= 100)) {
                count(f, n);
                luaL_addvalue(&f->buffer);
                return;
        }
        strcat(spec, "s");
        n_field = snprintf(text, sizeof(text), spec, s);
        lua_pop(f->L, 1);   /* before the buffer is used again, which wants the stack as it left it */
        add_field(f, text, n_field);
}

static void add_integer(struct formatting *f, char *spec, char conversion)
{
        char text[FIELD_SIZE], end[] = { 'l', 'l', conversion == 'i' ? 'd' : conversion, 0 };
        lua_Integer i = luaL_checkinteger(f->L, f->argument);

        if (conversion == 'c') {
                text[0] = (char)i;
                add_field(f, text, 1);
                return;
        }
        strcat(spec, end);
        add_field(f, text, snprintf(text, sizeof(text), spec, (long long)i));
}

static void add_float(struct formatting *f, char *spec, char conversion)
{
        char text[FIELD_SIZE], end[] = { conversion, 0 };
        lua_Number x = luaL_checknumber(f->L, f->argument);

        if (!isfinite(x))
                rv_engine_raise(f->L, "string.format: a number that is not finite has no text");
        strcat(spec, end);
        add_field(f, text, snprintf(text, sizeof(text), spec, x));
}

static void add_conversion(struct formatting *f, char *spec, char conversion)
{
        f->argument++;
        luaL_checkany(f->L, f->argument);
        switch (conversion) {
        case 's': add_text(f, spec); return;
        case 'd':
        case 'i':
        case 'u':
        case 'c':
        case 'x':
        case 'X':
        case 'o':
                add_integer(f, spec, conversion);
                return;
        case 'f':
        case 'e':
        case 'g':
                add_float(f, spec, conversion);
                return;
        default:
                rv_engine_raise(f->L, "string.format: there is no '%s%c' here; there are %%d %%i %%u %%c %%x %%X %%o %%f %%e %%g %%s %%%%",
                        spec, conversion ? conversion : '?');
        }
}

int raw_format(lua_State *L)
{
        struct formatting f = { .L = L, .argument = 1 };
        size_t n;
        const char *p = luaL_checklstring(L, 1, &n), *end = p + n;

        if (strlen(p) != n)
                return rv_engine_raise(L, "string.format: the format has a zero byte");
        luaL_buffinit(L, &f.buffer);
        while (p < end) {
                const char *percent = strchrnul(p, '%');
                char spec[SPEC_SIZE];

                count(&f, (size_t)(percent - p));
                luaL_addlstring(&f.buffer, p, (size_t)(percent - p));
                if (!*percent)
                        break;
                if (percent[1] == '%') {
                        luaL_addchar(&f.buffer, '%');
                        p = percent + 2;
                        continue;
                }
                p = take_spec(L, percent + 1, spec);
                add_conversion(&f, spec, *p);
                p += p < end;
        }
        luaL_pushresult(&f.buffer);
        return 1;
}
