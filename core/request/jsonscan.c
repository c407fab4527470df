#include "request/jsonscan.h"

#include "base/utf8.h"

#include <string.h>

#define FAIL(s, code, ...) rv_fault_set(&(s)->fault, RV_FAULT_##code, __VA_ARGS__)

enum step { STEP_VALUE, STEP_FIRST_ELEMENT, STEP_FIRST_MEMBER, STEP_MEMBER, STEP_AFTER_VALUE, STEP_END };

static int peek(const struct rv_jsonscan *s)
{
        return s->at < s->n ? (uint8_t)s->text[s->at] : -1;
}

static bool is_digit(int c)
{
        return c >= '0' && c <= '9';
}

static void skip_space(struct rv_jsonscan *s)
{
        int c;

        while (c = peek(s), c == ' ' || c == '\t' || c == '\n' || c == '\r')
                s->at++;
}

static int count_value(struct rv_jsonscan *s)
{
        if (++s->n_values > s->max_values)
                return FAIL(s, LENGTH, "the document holds more than %zu values: no request needs so many", s->max_values);
        return 0;
}

static int grow(void *array, size_t *capacity, size_t n, size_t size)
{
        void *p;

        if (n < *capacity)
                return 0;
        p = reallocarray(*(void **)array, *capacity ? *capacity * 2 : 16, size);
        if (!p)
                return rv_raise(-ENOMEM);
        *(void **)array = p;
        *capacity = *capacity ? *capacity * 2 : 16;
        return 0;
}

static int scan_hex4(struct rv_jsonscan *s, uint32_t *ret)
{
        uint32_t v = 0;

        for (int i = 0; i < 4; i++, s->at++) {
                int c = peek(s), low = c | 0x20;

                if (is_digit(c))
                        v = v << 4 | (uint32_t)(c - '0');
                else if (low >= 'a' && low <= 'f')
                        v = v << 4 | (uint32_t)(low - 'a' + 10);
                else
                        return FAIL(s, SYNTAX, "\\u must be followed by four hexadecimal digits");
        }
        *ret = v;
        return 0;
}

/* RFC 8259, section 7: a character beyond U+FFFF is a pair of \u escapes; half a pair is no character. */
static int scan_unicode_escape(struct rv_jsonscan *s, uint32_t *ret)
{
        uint32_t high = 0, low = 0;
        int r;

        r = scan_hex4(s, &high);
        if (r)
                return r;
        if (high < 0xd800 || high > 0xdfff) {
                *ret = high;
                return 0;
        }
        if (high > 0xdbff || s->n - s->at < 2 || s->text[s->at] != '\\' || s->text[s->at + 1] != 'u')
                return FAIL(s, ENCODING, "\\u%04x is half of a surrogate pair: it stands for no character", high);
        s->at += 2;
        r = scan_hex4(s, &low);
        if (r)
                return r;
        if (low < 0xdc00 || low > 0xdfff)
                return FAIL(s, ENCODING, "\\u%04x is half of a surrogate pair: it stands for no character", high);
        *ret = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
        return 0;
}

static int scan_escape(struct rv_jsonscan *s, uint32_t *ret)
{
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        int c = peek(s);
        const char *p;

        s->at++;
        if (c == 'u')
                return scan_unicode_escape(s, ret);
        p = c > 0 ? strchr(from, c) : NULL;
        if (!p)
                return FAIL(s, SYNTAX, "there is no such escape in JSON; a backslash is written \\\\");
        *ret = (uint8_t)to[p - from];
        return 0;
}

/* From the opening quote to past the closing one. @out, if given, gets the string's own bytes. */
static int scan_string(struct rv_jsonscan *s, struct rv_buf *out)
{
        uint32_t code_point = 0;
        char utf8[4];
        int c, r;

        for (s->at++;; ) {
                size_t start = s->at;

                while (c = peek(s), c >= 0x20 && c != '"' && c != '\\')
                        s->at++;
                if (out)
                        rv_buf_append(out, s->text + start, s->at - start);
                if (c < 0)
                        return FAIL(s, SYNTAX, "the text ends within a string");
                if (c < 0x20)
                        return FAIL(s, SYNTAX, "a control character in a string must be escaped (\\u%04x)", (unsigned)c);
                s->at++;
                if (c == '"')
                        break;
                r = scan_escape(s, &code_point);
                if (r)
                        return r;
                if (out)
                        rv_buf_append(out, utf8, rv_utf8_encode(code_point, utf8));
        }
        return out ? rv_buf_error(out) : 0;
}

static size_t scan_digits(struct rv_jsonscan *s)
{
        size_t start = s->at;

        while (is_digit(peek(s)))
                s->at++;
        return s->at - start;
}

/* Rewrite a number that jansson could refuse as too large. See document.h for what it stands for then. */
static void tame_number(struct rv_jsonscan *s, size_t start, size_t digits_at, bool is_real)
{
        size_t length = s->at - start, n_digits = s->at - digits_at;

        if (is_real) {
                memset(s->text + start, ' ', length);
                memcpy(s->text + start, "0.5", 3);   /* the shortest real number, 1e1, has three bytes */
        } else if (n_digits > 18) {
                memset(s->text + digits_at, '9', 18);
                memset(s->text + digits_at + 18, ' ', n_digits - 18);
        }
}

static int scan_number(struct rv_jsonscan *s)
{
        size_t start = s->at, digits_at;
        bool is_real = false;

        if (peek(s) == '-')
                s->at++;
        digits_at = s->at;
        if (scan_digits(s) == 0)
                return FAIL(s, SYNTAX, "a digit must follow the sign");
        if (s->text[digits_at] == '0' && s->at > digits_at + 1)
                return FAIL(s, SYNTAX, "a number may not begin with a zero that other digits follow");
        if (peek(s) == '.') {
                is_real = true;
                s->at++;
                if (scan_digits(s) == 0)
                        return FAIL(s, SYNTAX, "a digit must follow the decimal point");
        }
        if (peek(s) == 'e' || peek(s) == 'E') {
                is_real = true;
                s->at++;
                if (peek(s) == '+' || peek(s) == '-')
                        s->at++;
                if (scan_digits(s) == 0)
                        return FAIL(s, SYNTAX, "a digit must follow the exponent's sign");
        }
        tame_number(s, start, digits_at, is_real);
        return 0;
}

static int scan_literal(struct rv_jsonscan *s)
{
        static const char *const literals[] = { "true", "false", "null" };

        for (size_t i = 0; i < RV_N_ELEMENTS(literals); i++) {
                size_t length = strlen(literals[i]);

                if (s->n - s->at >= length && memcmp(s->text + s->at, literals[i], length) == 0) {
                        s->at += length;
                        return 0;
                }
        }
        if (s->at == s->n)
                return FAIL(s, SYNTAX, s->n_values > 1 ? "the text ends too early" : "there is no JSON text");
        return FAIL(s, SYNTAX, "no JSON value begins here");
}

static int open_container(struct rv_jsonscan *s, bool is_object, enum step *step)
{
        int r;

        if (++s->depth > s->max_depth)
                return FAIL(s, LENGTH, "the document is nested deeper than %zu levels", s->max_depth);
        r = grow(&s->containers, &s->containers_capacity, s->n_containers, sizeof(*s->containers));
        if (r)
                return rv_trace(r);
        s->containers[s->n_containers] = (struct rv_jsonscan_container){ s->container, s->place, is_object };
        s->container = (uint32_t)s->n_containers++;
        s->place = 0;
        s->at++;
        *step = is_object ? STEP_FIRST_MEMBER : STEP_FIRST_ELEMENT;
        return 0;
}

static void close_container(struct rv_jsonscan *s)
{
        const struct rv_jsonscan_container *c = &s->containers[s->container];

        s->place = c->place;
        s->container = c->parent;
        s->depth--;
        s->at++;
}

static int scan_value(struct rv_jsonscan *s, enum step *step)
{
        int c = peek(s), r;

        r = count_value(s);
        if (r)
                return r;
        if (c == '{' || c == '[')
                return open_container(s, c == '{', step);
        *step = STEP_AFTER_VALUE;
        if (c == '"')
                return scan_string(s, NULL);
        if (c == '-' || is_digit(c))
                return scan_number(s);
        return scan_literal(s);
}

static int scan_member(struct rv_jsonscan *s, enum step *step)
{
        struct rv_jsonscan_member *m;
        int r;

        if (peek(s) != '"')
                return FAIL(s, SYNTAX, "a member's name in double quotes is wanted here");
        r = count_value(s);
        if (r == 0)
                r = grow(&s->members, &s->members_capacity, s->n_members, sizeof(*s->members));
        if (r)
                return r;
        m = &s->members[s->n_members];
        *m = (struct rv_jsonscan_member){ .container = s->container, .name_at = s->names.size };
        r = scan_string(s, &s->names);
        if (r)
                return r;
        m->name_bytes = (uint32_t)(s->names.size - m->name_at);
        m->has_nul = m->name_bytes && memchr(s->names.data + m->name_at, 0, m->name_bytes);
        s->place = (uint32_t)s->n_members++;
        skip_space(s);
        if (peek(s) != ':')
                return FAIL(s, SYNTAX, "a colon must follow a member's name");
        s->at++;
        *step = STEP_VALUE;
        return 0;
}

static int scan_after_value(struct rv_jsonscan *s, enum step *step)
{
        bool is_object;
        int c = peek(s);

        if (s->depth == 0) {
                *step = STEP_END;
                return c < 0 ? 0 : FAIL(s, SYNTAX, "nothing may follow the request's closing brace");
        }
        is_object = s->containers[s->container].is_object;
        if (c == ',') {
                s->at++;
                if (!is_object)
                        s->place++;
                *step = is_object ? STEP_MEMBER : STEP_VALUE;
                return 0;
        }
        if (c == (is_object ? '}' : ']')) {
                close_container(s);
                return 0;
        }
        return FAIL(s, SYNTAX, is_object ? "a comma or a closing brace is wanted here" :
                                           "a comma or a closing bracket is wanted here");
}

int rv_jsonscan_run(struct rv_jsonscan *s)
{
        enum step step = STEP_VALUE;
        int r = 0;

        while (r == 0 && step != STEP_END) {
                skip_space(s);
                switch (step) {
                case STEP_FIRST_ELEMENT:
                case STEP_FIRST_MEMBER:
                        if (peek(s) == (step == STEP_FIRST_MEMBER ? '}' : ']')) {
                                close_container(s);
                                step = STEP_AFTER_VALUE;
                        } else {
                                step = step == STEP_FIRST_MEMBER ? STEP_MEMBER : STEP_VALUE;
                        }
                        break;
                case STEP_MEMBER:
                        r = scan_member(s, &step);
                        break;
                case STEP_VALUE:
                        r = scan_value(s, &step);
                        break;
                case STEP_AFTER_VALUE:
                case STEP_END:
                        r = scan_after_value(s, &step);
                        break;
                }
        }
        return r;
}

void rv_jsonscan_fini(struct rv_jsonscan *s)
{
        free(s->containers);
        free(s->members);
        rv_buf_fini(&s->names);
}

int rv_jsonscan_pointer(const struct rv_jsonscan *s, const struct rv_jsonscan_member *member, struct rv_buf *out)
{
        uint32_t path[64];   /* containers from the innermost outwards; max_depth is below that */
        size_t n = 0;
        int r = 0;

        for (uint32_t c = member->container; c != 0 && n < RV_N_ELEMENTS(path); c = s->containers[c].parent)
                path[n++] = c;
        while (n > 0 && r == 0) {
                const struct rv_jsonscan_container *c = &s->containers[path[--n]];
                const struct rv_jsonscan_member *m = &s->members[c->place];

                if (s->containers[c->parent].is_object)
                        r = rv_pointer_append(out, s->names.data + m->name_at, m->name_bytes);
                else
                        r = rv_pointer_append_index(out, c->place);
        }
        if (r == 0)
                r = rv_pointer_append(out, s->names.data + member->name_at, member->name_bytes);
        return r < 0 ? rv_trace(r) : 0;
}
