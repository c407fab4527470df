#include "request/bounds.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const struct rv_bound rv_bounds[_RV_BOUND_ID_MAX] = {
#define RV_BOUND_X(id, name, type, minimum, maximum, otherwise, unit, text) \
        [RV_BOUND_ID_##id] = { #id, name, RV_BOUND_##type, minimum, maximum, otherwise, unit, text },
        RV_BOUNDS(RV_BOUND_X)
#undef RV_BOUND_X
};

const char *rv_bound_describe(enum rv_bound_id id, char ret[64])
{
        const struct rv_bound *b = &rv_bounds[id];

        if (b->type == RV_BOUND_ENUM || b->type == RV_BOUND_OBJECT)
                ret[0] = 0;
        else if (b->minimum == 0)
                snprintf(ret, 64, "at most %" PRId64 " %s", b->maximum, b->unit);
        else
                snprintf(ret, 64, "%" PRId64 " to %" PRId64 " %s", b->minimum, b->maximum, b->unit);
        return ret;
}

static const char *describe_default(const struct rv_bound *b, char ret[32])
{
        switch (b->otherwise) {
        case RV_BOUND_REQUIRED:
                return "required";
        case RV_BOUND_NONE:
                return "none";
        case RV_BOUND_EMPTY:
                return "empty";
        case RV_BOUND_NO_DEFAULT:
                return "";
        }
        snprintf(ret, 32, "%" PRId64, b->otherwise);
        return ret;
}

int rv_bounds_markdown(struct rv_buf *out)
{
        char extent[64], otherwise[32];

        rv_buf_puts(out, "| field | bound | default | meaning |\n|---|---|---|---|\n");
        for (int i = 0; i < _RV_BOUND_ID_MAX; i++) {
                const struct rv_bound *b = &rv_bounds[i];
                const char *quote = b->name[0] == '(' || strchr(b->name, ' ') ? "" : "`";

                rv_buf_printf(out, "| %s%s%s | %s | %s | %s |\n", quote, b->name, quote,
                              rv_bound_describe((enum rv_bound_id)i, extent), describe_default(b, otherwise), b->text);
        }
        return rv_buf_error(out);
}

/* --help is plain text: the marks of Markdown in `text` are left out. */
static void put_plain(struct rv_buf *out, const char *text)
{
        for (; *text; text++)
                if (*text != '`')
                        rv_buf_putc(out, *text);
}

int rv_bounds_help(struct rv_buf *out)
{
        char extent[64], otherwise[32];

        for (int i = 0; i < _RV_BOUND_ID_MAX; i++) {
                const struct rv_bound *b = &rv_bounds[i];
                const char *value = describe_default(b, otherwise);

                rv_buf_printf(out, "  %-18s ", b->name);
                rv_bound_describe((enum rv_bound_id)i, extent);
                rv_buf_puts(out, extent);
                if (b->otherwise >= 0)
                        rv_buf_printf(out, " (default %s)", value);
                else if (*value)
                        rv_buf_printf(out, "%s(%s)", *extent ? " " : "", b->otherwise == RV_BOUND_REQUIRED ? value : "optional");
                rv_buf_puts(out, *extent || *value ? ": " : "");
                put_plain(out, b->text);
                rv_buf_putc(out, '\n');
        }
        return rv_buf_error(out);
}
