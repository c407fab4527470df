/*
 * Versions and sets of them as policy compares them: the order is one (total, transitive, the same from both sides),
 * and sets say what the order says. An input is one byte for the ecosystem and texts on lines.
 */
#include "fuzz.h"

#include "policy/version.h"

#define N_TEXTS 3

struct line {
        const char *text;
        size_t n;
        struct rv_version version;
        bool is_version;
};

static int sign(int x)
{
        return (x > 0) - (x < 0);
}

static int compare(const struct line *a, const struct line *b)
{
        return sign(rv_version_compare(&a->version, &b->version));
}

static int in_set(enum rv_version_order order, const char *operator, const struct line *set, const struct line *v)
{
        char text[RV_VERSION_SIZE_MAX + 8];
        int n = snprintf(text, sizeof(text), "%s%.*s", operator, (int)set->n, set->text);

        return rv_version_set_has(order, text, (size_t)n, &v->version);
}

/* Only where the set's version says nothing of its build: there the order of the builds counts in one way more. */
static void check_pair(enum rv_version_order order, const struct line *a, const struct line *b)
{
        int c = compare(a, b);

        FUZZ_CHECK(c == -compare(b, a), "%.*s and %.*s", (int)a->n, a->text, (int)b->n, b->text);
        if (memchr(b->text, '+', b->n) || memchr(a->text, '+', a->n))
                return;
        if (memchr(b->text, ' ', b->n) || memchr(b->text, '\t', b->n))
                return;
        FUZZ_CHECK(in_set(order, "==", b, a) == (c == 0), "%.*s == %.*s", (int)a->n, a->text, (int)b->n, b->text);
        FUZZ_CHECK(in_set(order, "!=", b, a) == (c != 0), "%.*s != %.*s", (int)a->n, a->text, (int)b->n, b->text);
        FUZZ_CHECK(in_set(order, "<", b, a) == (c < 0), "%.*s < %.*s", (int)a->n, a->text, (int)b->n, b->text);
        FUZZ_CHECK(in_set(order, ">=", b, a) == (c >= 0), "%.*s >= %.*s", (int)a->n, a->text, (int)b->n, b->text);
        FUZZ_CHECK(in_set(order, ">", b, a) == (c > 0) && in_set(order, "<=", b, a) == (c <= 0));
        if (c < 0)
                FUZZ_CHECK(in_set(order, "^", b, a) == 0 && in_set(order, "~", b, a) == 0);
}

static void check_triple(const struct line *a, const struct line *b, const struct line *c)
{
        if (compare(a, b) <= 0 && compare(b, c) <= 0)
                FUZZ_CHECK(compare(a, c) <= 0, "%.*s, %.*s, %.*s", (int)a->n, a->text, (int)b->n, b->text, (int)c->n, c->text);
}

static void take_lines(struct fuzz_cursor *in, enum rv_version_order order, struct line lines[N_TEXTS])
{
        for (size_t i = 0; i < N_TEXTS; i++) {
                const uint8_t *end = in->size ? memchr(in->data, '\n', in->size) : NULL;
                struct line *l = &lines[i];

                l->text = (const char *)in->data;
                l->n = end ? (size_t)(end - in->data) : in->size;
                l->is_version = rv_version_parse(order, l->text, l->n, &l->version) == 0;
                in->data += l->n + (end != NULL);
                in->size -= l->n + (end != NULL);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        enum rv_version_order order = fuzz_byte(&in) % _RV_VERSION_ORDER_MAX;
        struct line lines[N_TEXTS] = { 0 };

        take_lines(&in, order, lines);
        for (size_t i = 0; i < N_TEXTS; i++) {
                int alone = rv_version_set_has(order, lines[i].text, lines[i].n, NULL);

                FUZZ_CHECK(alone == 1 || alone == -EINVAL, "%d", alone);
                if (!lines[i].is_version)
                        continue;
                FUZZ_CHECK(rv_version_compare(&lines[i].version, &lines[i].version) == 0);
                for (size_t k = 0; k < N_TEXTS; k++) {
                        int any = rv_version_set_has(order, lines[k].text, lines[k].n, NULL);
                        int r = rv_version_set_has(order, lines[k].text, lines[k].n, &lines[i].version);

                        FUZZ_CHECK((r == -EINVAL) == (any == -EINVAL) && r <= 1);
                        if (lines[k].is_version)
                                check_pair(order, &lines[i], &lines[k]);
                        for (size_t m = 0; m < N_TEXTS && lines[k].is_version; m++)
                                if (lines[m].is_version)
                                        check_triple(&lines[i], &lines[k], &lines[m]);
                }
        }
        return 0;
}
