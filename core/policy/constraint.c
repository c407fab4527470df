#include "policy/constraint_private.h"

#include "request/pep440.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool rv_version_is_pre(const struct rv_version *v)
{
        return v->pre_kind || v->has_dev;
}

/* Epoch and the first @n numbers, alone. */
static struct rv_version prefix(const struct rv_version *v, size_t n)
{
        struct rv_version p = { .order = v->order, .epoch = v->epoch, .n_segments = RV_MIN(v->n_segments, n) };

        memcpy(p.segments, v->segments, sizeof(p.segments[0]) * p.n_segments);
        return p;
}

static bool is_same_prefix(const struct rv_version *a, const struct rv_version *b, size_t n)
{
        struct rv_version x = prefix(a, n), y = prefix(b, n);

        return rv_version_compare(&x, &y) == 0;
}

static bool is_same_base(const struct rv_version *a, const struct rv_version *b)
{
        return is_same_prefix(a, b, RV_VERSION_SEGMENTS_MAX);
}

static struct rv_version without_local(const struct rv_version *v)
{
        struct rv_version p = *v;

        p.build = (struct rv_version_span){ 0 };
        return p;
}

static bool is_below(const struct rv_version *v, const struct rv_version *wanted)
{
        return rv_version_compare(v, wanted) < 0 &&
               !(rv_version_is_pre(v) && !rv_version_is_pre(wanted) && is_same_base(v, wanted));
}

static bool is_above(const struct rv_version *v, const struct rv_version *wanted)
{
        return rv_version_compare(v, wanted) > 0 && !(v->has_post && !wanted->has_post && is_same_base(v, wanted)) &&
               !(v->build.n && is_same_base(v, wanted));
}

static bool is_equal(const struct rv_version *v, const struct rv_version *wanted, bool is_prefix)
{
        struct rv_version public = without_local(v);

        if (is_prefix)
                return is_same_prefix(v, wanted, wanted->n_segments);
        return rv_version_compare(wanted->build.n ? v : &public, wanted) == 0;
}

/* `===` aside. */
static bool clause_has(
        const char *operator, const struct rv_version * v, const struct rv_version *wanted, bool is_prefix)
{
        struct rv_version public = without_local(v);

        switch (operator[0]) {
        case '=': return is_equal(v, wanted, is_prefix);
        case '!': return !is_equal(v, wanted, is_prefix);
        case '<': return operator[1] ? rv_version_compare(&public, wanted) <= 0 : is_below(v, wanted);
        case '>': return operator[1] ? rv_version_compare(&public, wanted) >= 0 : is_above(v, wanted);
        default: break;
        }
        return rv_version_compare(&public, wanted) >= 0 && is_same_prefix(v, wanted, wanted->n_segments - 1);
}

static int take_clause(const char *constraint, const struct rv_pep440_clause *c, const char *text,
        const struct rv_version *v, bool *names_pre)
{
        const char *version = constraint + c->version_at;
        size_t n = c->version_bytes;
        struct rv_version wanted;
        bool is_prefix = n > 2 && memcmp(version + n - 2, ".*", 2) == 0;

        if (strcmp(c->operator, "===") == 0) {
                *names_pre = *names_pre || (rv_version_parse(RV_VERSION_PEP440, version, n, &wanted) == 0 && rv_version_is_pre(&wanted));
                return strlen(text) == n && strncasecmp(text, version, n) == 0;
        }
        if (rv_version_parse(RV_VERSION_PEP440, version, is_prefix ? n - 2 : n, &wanted) < 0)
                return rv_raise(-EINVAL);
        *names_pre = *names_pre || (c->operator[0] != '!' && rv_version_is_pre(&wanted));
        return clause_has(c->operator, v, &wanted, is_prefix);
}

int rv__constraint_pep440(const char *constraint, const char *text, const struct rv_version *version)
{
        size_t n = strlen(constraint), at = 0;
        bool has_all = true, names_pre = false;

        for (;;) {
                struct rv_pep440_clause c;
                int r;

                at += strspn(constraint + at, " \t,");
                if (at == n)
                        break;
                if (rv_pep440_parse_clause(constraint, n, at, &c, NULL))
                        return rv_raise(-EINVAL);
                r = take_clause(constraint, &c, text, version, &names_pre);
                if (r < 0)
                        return rv_trace(r);
                has_all = has_all && r;
                at = c.end + strspn(constraint + c.end, " \t");
                if (at < n && constraint[at] != ',')
                        return rv_raise(-EINVAL);
        }
        if (!has_all)
                return 0;
        return rv_version_is_pre(version) && !names_pre ? RV_CONSTRAINT_PRE : 1;
}

int rv_constraint_has(const char *constraint, const char *text, const struct rv_version *version)
{
        return version->order == RV_VERSION_SEMVER ? rv__constraint_npm(constraint, version)
                                                   : rv__constraint_pep440(constraint, text, version);
}

/* ---- The normal form ---- */

struct writer {
        char *at;
        size_t size;
        bool is_full;
};

static void put(struct writer *w, const char *before, struct rv_version_span s)
{
        int n = snprintf(w->at, w->size, "%s%.*s", before, (int)s.n, s.text ? s.text : "");

        if (n < 0 || (size_t)n >= w->size) {
                w->is_full = true;
                return;
        }
        w->at += n;
        w->size -= (size_t)n;
}

/* Numbers lose their zeros at the front, letters become small, and all separators are periods. */
static void put_local(struct writer *w, struct rv_version_span s)
{
        char *from = w->at;

        put(w, "+", s);
        for (char *c = from; *c; c++)
                *c = *c == '-' || *c == '_' ? '.' : *c >= 'A' && *c <= 'Z' ? (char)(*c | 0x20) : *c;
        for (char *part = from + 1; part && part < w->at;) {
                size_t n = strcspn(part, "."), zeros = strspn(part, "0");

                if (n > 1 && zeros && strspn(part, "0123456789") == n) {
                        zeros = RV_MIN(zeros, n - 1);
                        memmove(part, part + zeros, strlen(part + zeros) + 1);
                        w->at -= zeros;
                        w->size += zeros;
                        n -= zeros;
                }
                part = part[n] ? part + n + 1 : NULL;
        }
}

int rv_version_write(const struct rv_version *v, char *ret, size_t size)
{
        struct writer w = { ret, size, false };
        bool is_semver = v->order == RV_VERSION_SEMVER;

        if (v->epoch.n && !(v->epoch.n == 1 && v->epoch.text[0] == '0')) {
                put(&w, "", v->epoch);
                put(&w, "!", (struct rv_version_span){ 0 });
        }
        for (size_t i = 0; i < v->n_segments; i++)
                put(&w, i ? "." : "", v->segments[i]);
        if (v->pre_kind)
                put(&w, is_semver ? "-" : v->pre_kind == 'a' ? "a" : v->pre_kind == 'b' ? "b" : "rc", v->pre);
        if (v->has_post)
                put(&w, ".post", v->post);
        if (v->has_dev)
                put(&w, ".dev", v->dev);
        if (v->build.n && is_semver)
                put(&w, "+", v->build);
        else if (v->build.n && !w.is_full)
                put_local(&w, v->build);
        return w.is_full ? rv_raise(-ENOSPC) : 0;
}
