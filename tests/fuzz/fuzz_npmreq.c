/*
 * JavaScript packages: what is accepted is a package of the registry and nothing else, is the same when its
 * canonical form is read again, and where a range goes wrong is told within it.
 */
#include "fuzz.h"

#include "policy/version.h"
#include "request/npmrange.h"

static void check_name(const char *name)
{
        const char *slash = strchr(name, '/');

        FUZZ_CHECK(strlen(name) <= 214 && *name);
        FUZZ_CHECK((name[0] == '@') == (slash != NULL), "%s", name);
        FUZZ_CHECK(!slash || (slash > name + 1 && slash[1] && !strchr(slash + 1, '/')), "%s", name);
        for (const char *c = name + (*name == '@'); *c; c++)
                FUZZ_CHECK((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || strchr("-._", *c) || c == slash, "%s", name);
        /* No part of it leads anywhere as a path. */
        FUZZ_CHECK(name[0] != '.' && name[0] != '-' && name[0] != '_' && !strstr(name, "/."), "%s", name);
}

static void check_same(const char *text, const struct rv_package *p)
{
        struct rv_package q = { 0 };
        struct rv_fault fault = { 0 };

        FUZZ_CHECK(rv_npmreq_parse(text, strlen(text), &q, &fault) == 0, "%s: %s", text, fault.message);
        FUZZ_CHECK(strcmp(p->name, q.name) == 0 && strcmp(p->constraint, q.constraint) == 0, "%s", text);
        FUZZ_CHECK(p->is_pinned == q.is_pinned && q.n_extras == 0, "%s", text);
        FUZZ_CHECK(strcmp(q.requested, text) == 0, "%s", text);
        rv_package_fini(&q);
}

static void check_constraint(const struct rv_package *p)
{
        const char *c = p->constraint;
        bool is_pinned = false;

        FUZZ_CHECK(*c && *c != ' ' && !strstr(c, "  ") && !strchr(c, '\t'), "%s", c);
        /* Nothing that npm could take for an address, a path, an alias or an option. */
        FUZZ_CHECK(!strpbrk(c, ":/\\@#?%$&;\"'`"), "%s", c);
        if (strcmp(c, "latest") == 0) {
                FUZZ_CHECK(!p->is_pinned);
                return;
        }
        FUZZ_CHECK(rv_npmrange_check(c, strlen(c), &is_pinned, NULL, NULL) == 0 && is_pinned == p->is_pinned, "%s", c);
        if (is_pinned && strlen(c) <= RV_VERSION_SIZE_MAX)
                FUZZ_CHECK(rv_version_set_has(RV_VERSION_SEMVER, c, strlen(c), NULL) == 1, "policy takes no set %s", c);
}

static void check_accepted(const struct rv_package *p)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };

        check_name(p->name);
        check_constraint(p);
        check_same(p->requested, p);
        rv_buf_printf(&text, "%s@%s", p->name, p->constraint);
        check_same(text.data, p);
}

/* The whole input as a range, whatever stands before an "@" in it. */
static void check_range(const char *text, size_t n)
{
        struct rv_fault fault = { .code = _RV_FAULT_MAX };
        bool is_pinned = false;
        size_t at = SIZE_MAX;

        if (rv_npmrange_check(text, n, &is_pinned, &at, &fault) == 0)
                return;
        FUZZ_CHECK(at <= n && !is_pinned && fault.code == RV_FAULT_PATTERN);
        FUZZ_CHECK(fuzz_is_line(fault.message), "%s", fault.message);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rv_package p = { 0 };
        struct rv_fault fault = { .code = _RV_FAULT_MAX };
        int r = rv_npmreq_parse((const char *)data, size, &p, &fault);

        check_range((const char *)data, size);
        if (r == 0) {
                check_accepted(&p);
                rv_package_fini(&p);
                return 0;
        }
        FUZZ_CHECK(r == RV_NPMREQ_E_INVALID && !p.name && !p.requested && !p.constraint);
        FUZZ_CHECK(fault.code == RV_FAULT_MISSING || fault.code == RV_FAULT_UNSUPPORTED ||
                   fault.code == RV_FAULT_PATTERN || fault.code == RV_FAULT_LENGTH);
        FUZZ_CHECK(fuzz_is_line(fault.message), "%s", fault.message);
        return 0;
}
