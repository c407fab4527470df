#include "base/config_yaml.h"

#include "base/utf8.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

struct reader {
        struct rv_arena *arena;
        const char *file;
        struct rv_error *err;
        unsigned n_nodes, depth;
        struct rv_yaml_node *open[RV_YAML_DEPTH_MAX];    /* the collections being read, outermost first */
        struct rv_yaml_node *last[RV_YAML_DEPTH_MAX];    /* the newest child of each */
        const char *key[RV_YAML_DEPTH_MAX];              /* a mapping's key that awaits its value */
        unsigned key_line[RV_YAML_DEPTH_MAX];
        struct rv_yaml_node *root;
        unsigned n_documents;
};

/* Control characters, and characters of which quoting has left a part only, become question marks. */
static void make_line(char *text)
{
        struct rv_utf8 u = { 0 };
        char *start = text;

        for (char *c = text; *c;) {
                enum rv_utf8_event event = rv_utf8_feed(&u, (uint8_t)*c);

                c += event != RV_UTF8_INVALID_BEFORE;
                if (event == RV_UTF8_MORE)
                        continue;
                if (event != RV_UTF8_CHARACTER || u.code_point < 0x20 || (u.code_point >= 0x7f && u.code_point <= 0x9f))
                        memset(start, '?', (size_t)(c - start));
                start = c;
        }
        memset(start, '?', strlen(start));
}

int rv_yaml_vfail(const char *file, unsigned line, struct rv_error *err, const char *fmt, va_list ap)
{
        char text[RV_ERROR_MESSAGE_MAX];
        int r;

        vsnprintf(text, sizeof(text), fmt, ap);
        r = rv_error_set(err, rv_raise(-EINVAL), "%s:%u: %s", file, line, text);
        if (err)
                make_line(err->message);
        return r;
}

static int RV_PRINTF(3, 4) fail(struct reader *x, unsigned line, const char *fmt, ...)
{
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = rv_yaml_vfail(x->file, line, x->err, fmt, ap);
        va_end(ap);
        return r;
}

const char *rv_yaml_kind_text(enum rv_yaml_kind kind)
{
        static const char *const texts[] = {
                [RV_YAML_NULL] = "nothing",
                [RV_YAML_BOOL] = "true or false",
                [RV_YAML_INTEGER] = "a whole number",
                [RV_YAML_REAL] = "a number",
                [RV_YAML_STRING] = "text",
                [RV_YAML_MAPPING] = "a mapping",
                [RV_YAML_SEQUENCE] = "a list",
        };

        return texts[kind];
}

static bool is_number(const char *s, bool *ret_is_integer)
{
        size_t n_digits, n_more;

        *ret_is_integer = false;
        if (strncmp(s, "0x", 2) == 0 && s[2])
                return s[2 + strspn(s + 2, "0123456789abcdefABCDEF")] == 0;
        if (strncmp(s, "0o", 2) == 0 && s[2])
                return s[2 + strspn(s + 2, "01234567")] == 0;
        if (strcmp(s, ".nan") == 0 || strcmp(s, ".NaN") == 0 || strcmp(s, ".NAN") == 0)
                return true;
        s += *s == '-' || *s == '+';
        if (strcmp(s, ".inf") == 0 || strcmp(s, ".Inf") == 0 || strcmp(s, ".INF") == 0)
                return true;
        n_digits = strspn(s, "0123456789");
        s += n_digits;
        if (n_digits && !*s) {
                *ret_is_integer = true;
                return true;
        }
        if (*s == '.') {
                n_more = strspn(s + 1, "0123456789");
                s += 1 + n_more;
                n_digits += n_more;
        }
        if (!n_digits)
                return false;
        if (*s == 'e' || *s == 'E') {
                s++;
                s += *s == '-' || *s == '+';
                n_more = strspn(s, "0123456789");
                return n_more && s[n_more] == 0;
        }
        return *s == 0;
}

/* YAML 1.2, 10.3.2: the core schema's resolution of an unquoted scalar. */
static enum rv_yaml_kind resolve(const char *s)
{
        static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };
        static const char *const bools[] = { "true", "True", "TRUE", "false", "False", "FALSE" };
        bool is_integer;

        for (size_t i = 0; i < RV_N_ELEMENTS(nulls); i++)
                if (strcmp(s, nulls[i]) == 0)
                        return RV_YAML_NULL;
        for (size_t i = 0; i < RV_N_ELEMENTS(bools); i++)
                if (strcmp(s, bools[i]) == 0)
                        return RV_YAML_BOOL;
        if (is_number(s, &is_integer))
                return is_integer ? RV_YAML_INTEGER : RV_YAML_REAL;
        return RV_YAML_STRING;
}

/* Hangs a new node into the collection that is open, if any. */
static int add_node(struct reader *x, enum rv_yaml_kind kind, unsigned line, struct rv_yaml_node **ret)
{
        struct rv_yaml_node *node;

        if (++x->n_nodes > RV_YAML_NODES_MAX)
                return fail(x, line, "more than %u values; a configuration needs fewer", RV_YAML_NODES_MAX);
        node = rv_arena_alloc(x->arena, sizeof(*node));
        if (!node)
                return rv_error_set(x->err, rv_raise(-ENOMEM), "%s: out of memory", x->file);
        node->kind = kind;
        node->line = line;
        if (x->depth == 0) {
                x->root = node;
        } else {
                unsigned top = x->depth - 1;

                node->key = x->key[top];
                node->key_line = x->key_line[top];
                x->key[top] = NULL;
                if (x->last[top])
                        x->last[top]->next = node;
                else
                        x->open[top]->child = node;
                x->last[top] = node;
                x->open[top]->n_children++;
        }
        *ret = node;
        return 0;
}

static bool awaits_key(const struct reader *x)
{
        return x->depth && x->open[x->depth - 1]->kind == RV_YAML_MAPPING && !x->key[x->depth - 1];
}

static int take_scalar(struct reader *x, const yaml_event_t *e, unsigned line)
{
        const char *value = (const char *)e->data.scalar.value;
        struct rv_yaml_node *node;
        char *text;
        int r;

        if (e->data.scalar.anchor || e->data.scalar.tag)
                return fail(x, line, "an anchor (&) or a tag (!) has no use here; remove it, or quote the text");
        if (e->data.scalar.length > RV_YAML_SCALAR_BYTES_MAX)
                return fail(x, line, "a text of more than %u bytes", RV_YAML_SCALAR_BYTES_MAX);
        if (memchr(value, 0, e->data.scalar.length))
                return fail(x, line, "a NUL character in a text; remove it");
        text = rv_arena_strndup(x->arena, value, e->data.scalar.length);
        if (!text)
                return rv_error_set(x->err, rv_raise(-ENOMEM), "%s: out of memory", x->file);
        if (awaits_key(x)) {
                x->key[x->depth - 1] = text;
                x->key_line[x->depth - 1] = line;
                return 0;
        }
        r = add_node(x, e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE ? resolve(text) : RV_YAML_STRING, line, &node);
        if (r == 0)
                node->text = text;
        return r;
}

static int open_collection(struct reader *x, enum rv_yaml_kind kind, bool is_marked, unsigned line)
{
        struct rv_yaml_node *node = NULL;
        int r;

        if (is_marked)
                return fail(x, line, "an anchor (&) or a tag (!) has no use here; remove it");
        if (awaits_key(x))
                return fail(x, line, "a key that is %s; a key is text", rv_yaml_kind_text(kind));
        if (x->depth == RV_YAML_DEPTH_MAX)
                return fail(x, line, "nested deeper than %u", RV_YAML_DEPTH_MAX);
        r = add_node(x, kind, line, &node);
        if (r < 0)
                return r;
        x->open[x->depth] = node;
        x->last[x->depth] = NULL;
        x->key[x->depth] = NULL;
        x->depth++;
        return 0;
}

static int compare_keys(const void *pa, const void *pb)
{
        const struct rv_yaml_node *a = *(struct rv_yaml_node *const *)pa, *b = *(struct rv_yaml_node *const *)pb;
        int r = strcmp(a->key, b->key);

        return r ? r : (a->key_line > b->key_line) - (a->key_line < b->key_line);
}

static int close_mapping(struct reader *x)
{
        const struct rv_yaml_node *mapping = x->open[x->depth - 1];
        _cleanup_(rv_freep) struct rv_yaml_node **sorted = NULL;
        size_t n = 0;

        x->depth--;
        sorted = calloc(mapping->n_children + 1, sizeof(struct rv_yaml_node *));
        if (!sorted)
                return rv_error_set(x->err, rv_raise(-ENOMEM), "%s: out of memory", x->file);
        for (struct rv_yaml_node *c = mapping->child; c; c = c->next)
                sorted[n++] = c;
        qsort(sorted, n, sizeof(struct rv_yaml_node *), compare_keys);
        for (size_t i = 1; i < n; i++)
                if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0)
                        return fail(x, sorted[i]->key_line, "key \"%.100s\" stands here and in line %u; remove one",
                                    sorted[i]->key, sorted[i - 1]->key_line);
        return 0;
}

static int take_event(struct reader *x, const yaml_event_t *e)
{
        unsigned line = (unsigned)e->start_mark.line + 1;
        bool is_marked;

        switch (e->type) {
        case YAML_DOCUMENT_START_EVENT:
                if (++x->n_documents > 1)
                        return fail(x, line, "a second document begins; a configuration is one, so remove the `---`");
                return 0;
        case YAML_ALIAS_EVENT:
                return fail(x, line, "an alias (*) has no use here; write the value itself");
        case YAML_SCALAR_EVENT:
                return take_scalar(x, e, line);
        case YAML_MAPPING_START_EVENT:
                is_marked = e->data.mapping_start.anchor || e->data.mapping_start.tag;
                return open_collection(x, RV_YAML_MAPPING, is_marked, line);
        case YAML_SEQUENCE_START_EVENT:
                is_marked = e->data.sequence_start.anchor || e->data.sequence_start.tag;
                return open_collection(x, RV_YAML_SEQUENCE, is_marked, line);
        case YAML_MAPPING_END_EVENT:
                return close_mapping(x);
        case YAML_SEQUENCE_END_EVENT:
                x->depth--;
                return 0;
        default:
                return 0;
        }
}

static int parser_failed(struct reader *x, const yaml_parser_t *parser)
{
        unsigned line = (unsigned)parser->problem_mark.line + 1;

        if (parser->error == YAML_MEMORY_ERROR)
                return rv_error_set(x->err, rv_raise(-ENOMEM), "%s: out of memory", x->file);
        if (parser->error == YAML_READER_ERROR)   /* has an offset in place of a mark */
                line = (unsigned)parser->mark.line + 1;
        return fail(x, line, "not valid YAML: %s%s%s", parser->problem ? parser->problem : "unknown problem",
                    parser->context ? " " : "", parser->context ? parser->context : "");
}

static int read_events(struct reader *x, yaml_parser_t *parser)
{
        bool is_end = false;
        int r = 0;

        while (r == 0 && !is_end) {
                yaml_event_t e;

                if (!yaml_parser_parse(parser, &e))
                        return parser_failed(x, parser);
                is_end = e.type == YAML_STREAM_END_EVENT;
                r = take_event(x, &e);
                yaml_event_delete(&e);
        }
        return r;
}

int rv_yaml_read(struct rv_arena *arena, const char *text, size_t n, const char *file, struct rv_yaml_node **ret,
                 struct rv_error *err)
{
        struct reader x = { .arena = arena, .file = file, .err = err };
        yaml_parser_t parser;
        int r;

        if (!yaml_parser_initialize(&parser))
                return rv_error_set(err, rv_raise(-ENOMEM), "%s: out of memory", file);
        /* Said beforehand, so that no byte order mark makes it anything else. */
        yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
        yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
        r = read_events(&x, &parser);
        yaml_parser_delete(&parser);
        if (r < 0)
                return rv_trace(r);
        if (!x.root)
                r = add_node(&x, RV_YAML_NULL, 1, &x.root);
        if (r < 0)
                return rv_trace(r);
        *ret = x.root;
        return 0;
}
