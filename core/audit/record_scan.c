#include "audit/record_scan.h"

#include <string.h>

/* Past the string whose opening quote is at @p, or NULL. */
static const char *skip_string(const char *p, const char *end)
{
        for (const char *q = p + 1; q < end && (q = memchr(q, '"', (size_t)(end - q))); q++) {
                const char *before = q;

                while (before[-1] == '\\')      /* the opening quote ends this at the latest */
                        before--;
                if ((q - before) % 2 == 0)
                        return q + 1;
        }
        return NULL;
}

/* Up to what follows the value at @p: the comma, or the brace of the outermost object. */
static const char *skip_value(const char *p, const char *end)
{
        unsigned depth = 0;

        while (p && p < end) {
                switch (*p) {
                case '"':
                        p = skip_string(p, end);
                        continue;
                case '{':
                case '[':
                        depth++;
                        break;
                case '}':
                case ']':
                        if (depth == 0)
                                return p;
                        depth--;
                        break;
                case ',':
                        if (depth == 0)
                                return p;
                        break;
                default:
                        break;
                }
                p++;
        }
        return NULL;
}

static struct rv_record_text *member_of(struct rv_record_head *head, const char *name, size_t n)
{
        if (n == 4 && memcmp(name, "kind", 4) == 0)
                return &head->kind;
        if (n == 8 && memcmp(name, "instance", 8) == 0)
                return &head->instance;
        if (n == 11 && memcmp(name, "decision_id", 11) == 0)
                return &head->decision_id;
        return NULL;
}

void rv_record_scan(const char *line, size_t n, struct rv_record_head *ret)
{
        const char *p = line, *end = line + n;

        *ret = (struct rv_record_head){ 0 };
        if (n == 0 || *p++ != '{')
                return;
        while (p < end && *p == '"') {
                const char *name = p + 1, *value = skip_string(p, end);
                struct rv_record_text *member;

                if (!value || value == end || *value != ':')
                        return;
                member = member_of(ret, name, (size_t)(value - 1 - name));
                value++;
                p = skip_value(value, end);
                if (!p)
                        return;
                if (member && *value == '"')
                        *member = (struct rv_record_text){ value + 1, (size_t)(p - value) - 2 };
                /* The canonical order puts `kind` behind the other two. */
                if (member == &ret->kind)
                        return;
                p++;
        }
}

bool rv_record_text_is(const struct rv_record_text *t, const char *text)
{
        return t->text && strlen(text) == t->n && memcmp(t->text, text, t->n) == 0;
}
