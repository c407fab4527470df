#include "scripts.h"

#include "name.h"

#include <string.h>
#include <strings.h>

struct reader {
        struct scripts *scripts;
        bool is_ours;                    /* the section */
        const char *name, *value;        /* of the line at hand */
        size_t n_name, n_value;
        struct fault *fault;
};

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v';
}

static void strip(const char **text, size_t *n)
{
        while (*n && is_blank(**text)) {
                ++*text;
                --*n;
        }
        while (*n && is_blank((*text)[*n - 1]))
                --*n;
}

static int bad(struct reader *r, const char *what)
{
        char quote[FAULT_QUOTE_SIZE];

        return fault_set(r->fault, UNPACK_UNSAFE, "entry_points.txt: the script %s %s", fault_quote(r->name, r->n_name, quote), what);
}

int scripts_judge_name(const char *name, size_t n, struct fault *f)
{
        char quote[FAULT_QUOTE_SIZE];
        int r = name_check(name, n, f);
        size_t rest = 6;

        if (r)
                return r;
        if (memchr(name, '/', n))
                return fault_set(f, UNPACK_UNSAFE, "the script %s has a slash in its name", fault_quote(name, n, quote));
        /* python, python3, python3.11 in any case. */
        if (n < rest || strncasecmp(name, "python", rest) != 0)
                return 0;
        while (rest < n && ((name[rest] >= '0' && name[rest] <= '9') || name[rest] == '.'))
                rest++;
        return rest < n ? 0 : fault_set(f, UNPACK_UNSAFE, "the script %s would take the interpreter's place", fault_quote(name, n, quote));
}

/* Dotted identifiers; beyond ASCII Python's own compiler will judge. Returns how much of the text they are. */
static size_t dotted_size(const char *text, size_t n)
{
        size_t at = 0;

        for (bool begins = true; at < n; at++) {
                unsigned char c = (unsigned char)text[at];
                bool is_digit = c >= '0' && c <= '9';

                if (c == '.' ? begins : begins && is_digit)
                        return 0;
                if (c != '.' && c != '_' && c < 0x80 && !is_digit && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z'))
                        break;
                begins = c == '.';
        }
        return at && text[at - 1] != '.' ? at : 0;
}

/* module ":" attribute ("[" extras "]")? */
static int read_value(struct reader *r, struct script *ret)
{
        const char *text = r->value;
        size_t n = r->n_value, module, attribute;

        module = dotted_size(text, n);
        ret->module = strndup(text, module);
        text += module;
        n -= module;
        strip(&text, &n);
        if (module == 0 || n == 0 || *text != ':')
                return bad(r, "names no callable: module:attribute");
        text++;
        n--;
        strip(&text, &n);
        attribute = dotted_size(text, n);
        ret->attribute = strndup(text, attribute);
        text += attribute;
        n -= attribute;
        strip(&text, &n);
        if (attribute == 0 || (n && (*text != '[' || text[n - 1] != ']')))
                return bad(r, "names no callable: module:attribute");
        return ret->module && ret->attribute ? 0 : rv_raise(-ENOMEM);
}

static void script_fini(struct script *s)
{
        free(s->name);
        free(s->module);
        free(s->attribute);
}

static int add(struct reader *r)
{
        _cleanup_(script_fini) struct script s = { 0 };
        struct script *all;
        int e = scripts_judge_name(r->name, r->n_name, r->fault);

        if (e)
                return e;
        if (scripts_find(r->scripts, r->name, r->n_name))
                return bad(r, "is there twice");
        if (r->scripts->n == SCRIPTS_MAX)
                return fault_set(r->fault, UNPACK_UNSAFE, "entry_points.txt has more than 1000 scripts");
        e = read_value(r, &s);
        if (e)
                return e;
        s.name = strndup(r->name, r->n_name);
        all = reallocarray(r->scripts->all, r->scripts->n + 1, sizeof(*all));
        if (all)
                r->scripts->all = all;
        if (!s.name || !all)
                return rv_raise(-ENOMEM);
        all[r->scripts->n++] = s;
        s = (struct script){ 0 };
        return 0;
}

/* A section, a comment, or a pair: each line by itself, as importlib.metadata reads it. */
static int read_line(struct reader *r, const char *text, size_t n)
{
        const char *equals;

        strip(&text, &n);
        if (n == 0 || *text == '#')
                return 0;
        if (*text == '[' && text[n - 1] == ']') {
                r->is_ours = (n == 17 && memcmp(text, "[console_scripts]", 17) == 0) || (n == 13 && memcmp(text, "[gui_scripts]", 13) == 0);
                return 0;
        }
        if (!r->is_ours)
                return 0;
        equals = memchr(text, '=', n);
        r->name = text;
        r->n_name = equals ? (size_t)(equals - text) : n;
        r->value = text + r->n_name + (equals != NULL);
        r->n_value = n - r->n_name - (equals != NULL);
        strip(&r->name, &r->n_name);
        strip(&r->value, &r->n_value);
        return add(r);
}

int scripts_read(const char *text, size_t n, struct scripts *ret, struct fault *f)
{
        struct reader r = { .scripts = ret, .fault = f };
        const char *end = text + n;
        int e = 0;

        while (text < end && e == 0) {
                const char *newline = memchr(text, '\n', (size_t)(end - text));

                e = read_line(&r, text, (size_t)((newline ? newline : end) - text));
                text = newline ? newline + 1 : end;
        }
        return e < 0 ? rv_trace(e) : e;
}

const struct script *scripts_find(const struct scripts *s, const char *name, size_t n)
{
        for (size_t i = 0; i < s->n; i++)
                if (strlen(s->all[i].name) == n && memcmp(s->all[i].name, name, n) == 0)
                        return &s->all[i];
        return NULL;
}

int scripts_write(const struct script *s, const char *interpreter, struct rv_buf *out)
{
        int imported = (int)strcspn(s->attribute, ".");

        return rv_buf_printf(out,
                "#!%s\n"
                "# -*- coding: utf-8 -*-\n"
                "import re\n"
                "import sys\n"
                "from %s import %.*s\n"
                "if __name__ == '__main__':\n"
                "    sys.argv[0] = re.sub(r'(-script\\.pyw|\\.exe)?$', '', sys.argv[0])\n"
                "    sys.exit(%s())\n",
                interpreter, s->module, imported, s->attribute, s->attribute);
}

void scripts_fini(struct scripts *s)
{
        for (size_t i = 0; i < s->n; i++)
                script_fini(&s->all[i]);
        free(s->all);
        *s = (struct scripts){ 0 };
}
