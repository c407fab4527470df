#include "run/result_json.h"

#include "base/utf8.h"
#include "run/json_stream.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define INTEGER_MAX 9007199254740992ull   /* 2^53 */
#define INTEGER_DIGITS_MAX 16

/* Where in `out` an object's member name was written: its own bytes, so that equal names are equal bytes. */
struct name {
        size_t offset, size;
};

struct reader {
        const char *start, *p, *end;
        unsigned depth, max_depth;
        struct rv_buf *out;
        struct name *names;           /* of all objects that are open, the innermost last */
        size_t n_names, names_capacity;
        char *note;
        size_t note_size;
};

static int read_value(struct reader *r);

static int RV_PRINTF(2, 3) refuse(struct reader *r, const char *fmt, ...)
{
        char what[80];
        va_list ap;

        va_start(ap, fmt);
        vsnprintf(what, sizeof(what), fmt, ap);
        va_end(ap);
        snprintf(r->note, r->note_size, "not usable as JSON: %s at byte %zu", what, (size_t)(r->p - r->start));
        return RV_RESULT_JSON_E_REFUSED;
}

static void skip_space(struct reader *r)
{
        while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
                r->p++;
}

static bool take(struct reader *r, char c)
{
        if (r->p >= r->end || *r->p != c)
                return false;
        r->p++;
        return true;
}

static bool take_word(struct reader *r, const char *word)
{
        size_t n = strlen(word);

        if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
                return false;
        r->p += n;
        return true;
}

static size_t take_digits(struct reader *r)
{
        const char *from = r->p;

        while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
                r->p++;
        return (size_t)(r->p - from);
}

/* RFC 8259, section 6. */
static int read_number(struct reader *r)
{
        const char *from = r->p, *digits;
        bool is_real = false;
        size_t n_digits;

        take(r, '-');
        digits = r->p;
        n_digits = take_digits(r);
        if (n_digits == 0)
                return refuse(r, "a value expected");
        if (*digits == '0' && n_digits > 1)
                return refuse(r, "a number that begins with 0");
        if (take(r, '.')) {
                is_real = true;
                if (take_digits(r) == 0)
                        return refuse(r, "a digit expected");
        }
        if (take(r, 'e') || take(r, 'E')) {
                is_real = true;
                if (!take(r, '+'))
                        take(r, '-');
                if (take_digits(r) == 0)
                        return refuse(r, "a digit expected");
        }
        if (is_real && !isfinite(strtod(from, NULL)))
                return refuse(r, "a number too large to be finite");
        if (!is_real && (n_digits > INTEGER_DIGITS_MAX || strtoull(digits, NULL, 10) > INTEGER_MAX))
                return refuse(r, "an integer beyond 2^53");
        return rv_buf_append(r->out, from, (size_t)(r->p - from));
}

static bool take_hex4(struct reader *r, uint32_t *ret)
{
        uint32_t value = 0;

        if (r->end - r->p < 4)
                return false;
        for (int i = 0; i < 4; i++) {
                char c = r->p[i];

                if (c >= '0' && c <= '9')
                        value = value << 4 | (uint32_t)(c - '0');
                else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
                        value = value << 4 | (uint32_t)((c | 0x20) - 'a' + 10);
                else
                        return false;
        }
        r->p += 4;
        *ret = value;
        return true;
}

static int read_escape(struct reader *r)
{
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        char text[RV_JSON_ESCAPE_SIZE];
        const char *simple;
        uint32_t c, low;

        if (r->p < r->end && *r->p && (simple = strchr(from, *r->p))) {
                c = (uint32_t)to[simple - from];
                r->p++;
        } else if (!take(r, 'u') || !take_hex4(r, &c)) {
                return refuse(r, "an unknown escape");
        } else if (c >= 0xd800 && c <= 0xdfff) {
                if (c >= 0xdc00 || !take_word(r, "\\u") || !take_hex4(r, &low) || low < 0xdc00 || low > 0xdfff)
                        return refuse(r, "half a surrogate pair");
                c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        }
        return rv_buf_append(r->out, text, rv_json_escape(c, text));
}

/* The opening quote is taken. All of the text is known to be well-formed UTF-8. */
static int read_string(struct reader *r)
{
        char text[RV_JSON_ESCAPE_SIZE];
        int e = rv_buf_putc(r->out, '"');

        while (e == 0) {
                size_t run = rv_json_plain_run(r->p, (size_t)(r->end - r->p));
                uint8_t byte;

                rv_buf_append(r->out, r->p, run);
                r->p += run;
                if (take(r, '"'))
                        return rv_buf_putc(r->out, '"');
                if (take(r, '\\')) {
                        e = read_escape(r);
                        continue;
                }
                if (r->p >= r->end)
                        return refuse(r, "a string without an end");
                byte = (uint8_t)*r->p;
                if (byte < 0x20)
                        return refuse(r, "a control character in a string");
                /* What is left is DEL, or the two bytes of a C1 character. */
                r->p += byte == 0x7f ? 1 : 2;
                e = rv_buf_append(r->out, text, rv_json_escape(byte == 0x7f ? byte : (uint8_t)r->p[-1], text));
        }
        return e;
}

static int add_name(struct reader *r, size_t offset)
{
        if (r->n_names == r->names_capacity) {
                size_t capacity = r->names_capacity + r->names_capacity / 2 + 64;
                struct name *names = reallocarray(r->names, capacity, sizeof(*names));

                if (!names)
                        return rv_raise(-ENOMEM);
                r->names = names;
                r->names_capacity = capacity;
        }
        r->names[r->n_names++] = (struct name){ offset, r->out->size - offset };
        return 0;
}

static int compare_names(const void *pa, const void *pb, void *data)
{
        const struct name *a = pa, *b = pb;

        if (a->size != b->size)
                return a->size < b->size ? -1 : 1;
        return memcmp((const char *)data + a->offset, (const char *)data + b->offset, a->size);
}

/* Looks for a name that stands twice among those from @first on, and forgets them. */
static int close_names(struct reader *r, size_t first)
{
        size_t n = r->n_names - first;
        struct name *names;

        r->n_names = first;
        if (n < 2)
                return 0;
        names = r->names + first;
        qsort_r(names, n, sizeof(*names), compare_names, r->out->data);
        for (size_t i = 1; i < n; i++)
                if (compare_names(&names[i - 1], &names[i], r->out->data) == 0)
                        return refuse(r, "a name twice in the object that ends");
        return 0;
}

static int read_member(struct reader *r)
{
        size_t offset = r->out->size;
        int e;

        skip_space(r);
        if (!take(r, '"'))
                return refuse(r, "a member's name expected");
        e = read_string(r);
        if (e == 0)
                e = add_name(r, offset);
        if (e)
                return e;
        skip_space(r);
        if (!take(r, ':'))
                return refuse(r, "':' expected");
        return rv_buf_putc(r->out, ':');
}

/* The opening bracket is taken. */
static int read_container(struct reader *r, bool is_object)
{
        char close = is_object ? '}' : ']';
        size_t first = r->n_names;
        int e;

        if (++r->depth > r->max_depth)
                return refuse(r, "nested deeper than %u", r->max_depth);
        rv_buf_putc(r->out, is_object ? '{' : '[');
        skip_space(r);
        if (!take(r, close)) {
                for (;;) {
                        e = is_object ? read_member(r) : 0;
                        if (e == 0)
                                e = read_value(r);
                        if (e)
                                return e;
                        skip_space(r);
                        if (take(r, close))
                                break;
                        if (!take(r, ','))
                                return refuse(r, "',' or '%c' expected", close);
                        rv_buf_putc(r->out, ',');
                }
        }
        r->depth--;
        e = is_object ? close_names(r, first) : 0;
        return e ? e : rv_buf_putc(r->out, close);
}

static int read_value(struct reader *r)
{
        static const char *const words[] = { "null", "true", "false" };
        static const char *const no_numbers[] = { "NaN", "Infinity", "-Infinity" };

        skip_space(r);
        if (take(r, '{'))
                return read_container(r, true);
        if (take(r, '['))
                return read_container(r, false);
        if (take(r, '"'))
                return read_string(r);
        for (size_t i = 0; i < RV_N_ELEMENTS(words); i++)
                if (take_word(r, words[i]))
                        return rv_buf_puts(r->out, words[i]);
        for (size_t i = 0; i < RV_N_ELEMENTS(no_numbers); i++)
                if (take_word(r, no_numbers[i])) {
                        r->p -= strlen(no_numbers[i]);
                        return refuse(r, "%s, which is no JSON number,", no_numbers[i]);
                }
        return read_number(r);
}

static int read_text(struct reader *r)
{
        int e;

        if (!rv_utf8_check(r->start, (size_t)(r->end - r->start), NULL)) {
                snprintf(r->note, r->note_size, "not usable as JSON: not UTF-8");
                return RV_RESULT_JSON_E_REFUSED;
        }
        if (take_word(r, "\xef\xbb\xbf")) {
                r->p = r->start;
                return refuse(r, "a byte order mark");
        }
        skip_space(r);
        if (r->p == r->end) {
                snprintf(r->note, r->note_size, "not usable as JSON: empty");
                return RV_RESULT_JSON_E_REFUSED;
        }
        e = read_value(r);
        if (e)
                return e;
        skip_space(r);
        return r->p == r->end ? rv_buf_error(r->out) : refuse(r, "more than one value");
}

int rv_result_json_compact(const char *text, size_t n, unsigned max_depth, struct rv_buf *out, char *ret_note,
        size_t note_size)
{
        struct reader r = { text, text, text + n, 0, max_depth, out, NULL, 0, 0, ret_note, note_size };
        size_t start = out->size;
        int e = read_text(&r);

        free(r.names);
        if (e && out->data && !out->is_failed) {
                out->size = start;
                out->data[start] = 0;
        }
        return e < 0 ? rv_trace(e) : e;
}
