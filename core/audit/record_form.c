#include "audit/record_form.h"

#include "base/utf8.h"

#include <string.h>

#define DEPTH_MAX 64                               /* as of what the log writes */
#define INTEGER_MAX UINT64_C(9007199254740991)     /* 2^53 - 1 */
#define ONES UINT64_C(0x0101010101010101)
#define HIGHS (ONES * 0x80)

struct text {
        const char *text;                          /* between the quotes */
        size_t n;
        bool is_plain;                             /* ASCII without escapes */
};

struct scan {
        const char *p, *end;
        unsigned depth;
        const char *why;
        struct rv_record_form *form;
        unsigned found;                            /* a bit for each member that every record has */
};

static bool wrong(struct scan *s, const char *why)
{
        s->why = why;
        return false;
}

/* ---- Texts ---- */

/* In each byte of the result the highest bit is set if that byte of @x is 0. */
static uint64_t zeros(uint64_t x)
{
        return (x - ONES) & ~x & HIGHS;
}

/* Past the characters that stand for themselves: ASCII but control characters, quotes and backslashes. */
static const char *skip_plain(const char *p, const char *end)
{
        uint64_t x;

        for (; end - p >= 8; p += 8) {
                memcpy(&x, p, 8);
                if ((x & HIGHS) | ((x - ONES * 0x20) & ~x & HIGHS) | zeros(x ^ (ONES * '"')) | zeros(x ^ (ONES * '\\')))
                        break;
        }
        while (p < end && (uint8_t)*p >= 0x20 && (uint8_t)*p < 0x80 && *p != '"' && *p != '\\')
                p++;
        return p;
}

/* Past the escape at @p, if it is the shortest one of its character; else NULL. */
static const char *skip_escape(const char *p, const char *end)
{
        int high, low;

        if (end - p < 2)
                return NULL;
        if (p[1] != 'u')
                return strchr("\"\\bfnrt", p[1]) && p[1] ? p + 2 : NULL;
        if (end - p < 6 || p[2] != '0' || p[3] != '0' || (p[4] != '0' && p[4] != '1'))
                return NULL;
        high = p[4] - '0';
        low = p[5] >= '0' && p[5] <= '9' ? p[5] - '0' : p[5] >= 'a' && p[5] <= 'f' ? p[5] - 'a' + 10 : -1;
        /* Those that have a short escape are not written so. */
        if (low < 0 || (high == 0 && strchr("\b\t\n\f\r", low) && low))
                return NULL;
        return p + 6;
}

static bool scan_text(struct scan *s, struct text *ret)
{
        const char *start = s->p + 1, *p = start;
        bool has_escape = false, is_ascii = true;

        if (s->p == s->end || *s->p != '"')
                return wrong(s, "is no JSON object");
        for (;;) {
                p = skip_plain(p, s->end);
                if (p == s->end)
                        return wrong(s, "ends inside a text");
                if (*p == '"')
                        break;
                if (*p == '\\') {
                        has_escape = true;
                        p = skip_escape(p, s->end);
                        if (!p)
                                return wrong(s, "holds an escape that is not the shortest");
                } else if ((uint8_t)*p >= 0x80) {
                        is_ascii = false;
                        p++;
                } else {
                        return wrong(s, "holds a control character");
                }
        }
        if (!is_ascii && !rv_utf8_check(start, (size_t)(p - start), NULL))
                return wrong(s, "holds a text that is no UTF-8");
        *ret = (struct text){ start, (size_t)(p - start), is_ascii && !has_escape };
        s->p = p + 1;
        return true;
}

/* The next code point of a well-formed text, escapes taken for what they mean. */
static uint32_t next_character(const char **p, const char *end)
{
        static const char escapes[] = "b\bf\fn\nr\rt\t";
        struct rv_utf8 u = { 0 };
        const char *e;

        if (**p == '\\' && (*p)[1] == 'u') {
                uint32_t low = (uint32_t)((*p)[5] <= '9' ? (*p)[5] - '0' : (*p)[5] - 'a' + 10);
                uint32_t c = (uint32_t)((*p)[4] - '0') * 16 + low;

                *p += 6;
                return c;
        }
        if (**p == '\\') {
                e = strchr(escapes, (*p)[1]);
                *p += 2;
                return e ? (uint8_t)e[1] : (uint8_t)(*p)[-1];
        }
        while (*p < end && rv_utf8_feed(&u, (uint8_t) * (*p)++) != RV_UTF8_CHARACTER)
                ;
        return u.code_point;
}

/* UTF-16 puts what is beyond U+FFFF, as surrogates, before U+E000. */
static uint32_t utf16_rank(uint32_t c)
{
        return c > 0xffff ? c - 0x10000 + 0xd800 : c >= 0xe000 ? c + 0x200000 : c;
}

static bool is_behind(const struct text *a, const struct text *b)
{
        const char *p = a->text, *p_end = p + a->n, *q = b->text, *q_end = q + b->n;

        if (a->is_plain && b->is_plain) {
                int order = memcmp(p, q, RV_MIN(a->n, b->n));

                return order ? order > 0 : a->n > b->n;
        }
        while (p < p_end && q < q_end) {
                uint32_t x = utf16_rank(next_character(&p, p_end)), y = utf16_rank(next_character(&q, q_end));

                if (x != y)
                        return x > y;
        }
        return p < p_end;
}

/* ---- Values ---- */

static bool scan_value(struct scan *s);

static bool scan_number(struct scan *s)
{
        bool is_negative = *s->p == '-';
        const char *start = s->p += is_negative;
        uint64_t value = 0;

        while (s->p < s->end && *s->p >= '0' && *s->p <= '9' && s->p - start <= 16)
                value = value * 10 + (uint64_t)(*s->p++ - '0');
        if (s->p == start || (*start == '0' && (s->p - start > 1 || is_negative)) || value > INTEGER_MAX)
                return wrong(s, "holds a number that is no integer within 2^53 - 1 in its shortest form");
        return true;
}

static bool scan_word(struct scan *s, const char *word)
{
        size_t n = strlen(word);

        if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0)
                return wrong(s, "is no JSON object");
        s->p += n;
        return true;
}

/* What follows an item: a comma takes the next one, @close ends it. 1, 0, -1. */
static int scan_separator(struct scan *s, char close)
{
        if (s->p < s->end && (*s->p == ',' || *s->p == close))
                return *s->p++ == ',';
        wrong(s, "is no JSON object");
        return -1;
}

static bool scan_array(struct scan *s)
{
        int r;

        if (s->p < s->end && *s->p == ']') {
                s->p++;
                return true;
        }
        do {
                if (!scan_value(s))
                        return false;
                r = scan_separator(s, ']');
        } while (r > 0);
        return r == 0;
}

/* ---- What every record has ---- */

static bool is_hex(const char *text, size_t n, size_t n_wanted)
{
        if (n != n_wanted)
                return false;
        for (size_t i = 0; i < n; i++)
                if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
                        return false;
        return true;
}

static bool take_number(const char *value, const char *end, uint64_t *ret)
{
        if (value == end || *value < '0' || *value > '9')
                return false;
        *ret = 0;
        for (; value < end; value++)
                *ret = *ret * 10 + (uint64_t)(*value - '0');
        return true;
}

static bool take_text(const char *value, const char *end, struct rv_record_text *ret)
{
        if (end - value < 2 || *value != '"')
                return false;
        *ret = (struct rv_record_text){ value + 1, (size_t)(end - value) - 2 };
        return true;
}

enum member { SEQ, TIME_US, PREV, KIND, LOG_ID, INSTANCE, BUILD, N_MEMBERS };

static const char *const names[N_MEMBERS] = { "seq", "time_us", "prev", "kind", "log_id", "instance", "build" };

/* The member at the outermost level whose value ends where the scan stands. */
static bool take_member(struct scan *s, const struct text *key, const char *value)
{
        struct rv_record_text text;
        unsigned i = 0;
        bool is_good;

        while (i < N_MEMBERS && (strlen(names[i]) != key->n || memcmp(names[i], key->text, key->n) != 0))
                i++;
        switch (i) {
        case SEQ:
                is_good = take_number(value, s->p, &s->form->seq);
                break;
        case TIME_US:
                is_good = take_number(value, s->p, &s->form->time_us);
                break;
        case PREV:
                is_good = take_text(value, s->p, &s->form->prev) && is_hex(s->form->prev.text, s->form->prev.n, 64);
                break;
        case LOG_ID:
                is_good = take_text(value, s->p, &s->form->log_id) &&
                        is_hex(s->form->log_id.text, s->form->log_id.n, 32);
                break;
        case KIND:
                is_good = take_text(value, s->p, &s->form->kind);
                break;
        case INSTANCE:
        case BUILD:
                is_good = take_text(value, s->p, &text);
                break;
        default:
                return true;
        }
        s->found |= 1u << i;
        return is_good || wrong(s, "has a member of every record with a value of another type");
}

static bool scan_object(struct scan *s)
{
        struct text before = { 0 }, key;
        bool is_outermost = s->depth == 1;
        int r;

        if (s->p < s->end && *s->p == '}') {
                s->p++;
                return true;
        }
        do {
                const char *value;

                if (!scan_text(s, &key))
                        return false;
                if (before.text && !is_behind(&key, &before))
                        return wrong(s, "has members out of order, or one twice");
                before = key;
                if (s->p == s->end || *s->p++ != ':')
                        return wrong(s, "is no JSON object");
                value = s->p;
                if (!scan_value(s) || (is_outermost && !take_member(s, &key, value)))
                        return false;
                r = scan_separator(s, '}');
        } while (r > 0);
        return r == 0;
}

static bool scan_value(struct scan *s)
{
        struct text text;
        bool is_good;

        if (s->p == s->end)
                return wrong(s, "is no JSON object");
        switch (*s->p) {
        case '"':
                return scan_text(s, &text);
        case 't':
                return scan_word(s, "true");
        case 'f':
                return scan_word(s, "false");
        case 'n':
                return scan_word(s, "null");
        case '{':
        case '[':
                if (s->depth == DEPTH_MAX)
                        return wrong(s, "is nested too deep");
                s->depth++;
                is_good = *s->p++ == '{' ? scan_object(s) : scan_array(s);
                s->depth--;
                return is_good;
        default:
                if (*s->p == '-' || (*s->p >= '0' && *s->p <= '9'))
                        return scan_number(s);
                return wrong(s, "is no JSON object");
        }
}

const char *rv_record_form(const char *line, size_t n, struct rv_record_form *ret)
{
        struct rv_record_form form = { 0 };
        struct scan s = { .p = line, .end = line + n, .form = &form };

        if (n == 0 || *line != '{')
                return "is no JSON object";
        if (!scan_value(&s))
                return s.why;
        if (s.p != s.end)
                return "has bytes behind the object";
        if (s.found != (1u << N_MEMBERS) - 1)
                return "lacks a member that every record has";
        *ret = form;
        return NULL;
}
