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

static void take_member(const char *name, size_t n_name, const char *value, size_t n, struct rv_record_member *members,
        size_t n_members, size_t *n_missing)
{
        for (size_t i = 0; i < n_members; i++) {
                struct rv_record_member *m = &members[i];

                if (m->n_name != n_name || m->value || memcmp(m->name, name, n_name) != 0)
                        continue;
                m->value = value;
                m->n = n;
                --*n_missing;
                return;
        }
}

void rv_record_members(const char *line, size_t n, struct rv_record_member *members, size_t n_members)
{
        const char *p = line, *end = line + n;
        size_t n_missing = n_members;

        for (size_t i = 0; i < n_members; i++)
                members[i].value = NULL;
        if (n == 0 || *p++ != '{')
                return;
        while (n_missing && p < end && *p == '"') {
                const char *name = p + 1, *value = skip_string(p, end);

                if (!value || value == end || *value != ':')
                        return;
                value++;
                p = skip_value(value, end);
                if (!p)
                        return;
                take_member(
                        name, (size_t)(value - 2 - name), value, (size_t)(p - value), members, n_members, &n_missing);
                p++;
        }
}

struct rv_record_text rv_record_string(const struct rv_record_member *member)
{
        if (!member->value || member->n < 2 || member->value[0] != '"' || member->value[member->n - 1] != '"')
                return (struct rv_record_text){ 0 };
        return (struct rv_record_text){ member->value + 1, member->n - 2 };
}

bool rv_record_number(const struct rv_record_member *member, uint64_t *ret)
{
        uint64_t value = 0;

        if (!member->value || member->n == 0 || member->n > 16)
                return false;
        for (size_t i = 0; i < member->n; i++) {
                char c = member->value[i];

                if (c < '0' || c > '9')
                        return false;
                value = value * 10 + (uint64_t)(c - '0');
        }
        if (value >= UINT64_C(1) << 53)
                return false;
        *ret = value;
        return true;
}

static int digit_of(char c)
{
        if (c >= '0' && c <= '9')
                return c - '0';
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool rv_record_hex(const struct rv_record_text *t, size_t n_bytes, uint8_t *ret)
{
        if (!t->text || t->n != 2 * n_bytes)
                return false;
        for (size_t i = 0; i < n_bytes; i++) {
                int high = digit_of(t->text[2 * i]), low = digit_of(t->text[2 * i + 1]);

                if (high < 0 || low < 0)
                        return false;
                ret[i] = (uint8_t)(high << 4 | low);
        }
        return true;
}

bool rv_record_text_is(const struct rv_record_text *t, const char *text)
{
        return t->text && strlen(text) == t->n && memcmp(t->text, text, t->n) == 0;
}
