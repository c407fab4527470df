/*
 * Python requirements: what is accepted is a package of the index and nothing else, is the same when its
 * canonical form is read again, and its versions are versions to the part of the policy that compares them.
 */
#include "fuzz.h"

#include "policy/version.h"
#include "request/pyreq.h"

static bool is_canonical_name(const char *name)
{
        size_t n = strlen(name);

        for (size_t i = 0; i < n; i++) {
                bool is_letter = (name[i] >= 'a' && name[i] <= 'z') || (name[i] >= '0' && name[i] <= '9');

                if (!is_letter && (name[i] != '-' || i == 0 || i == n - 1 || name[i - 1] == '-'))
                        return false;
        }
        return n > 0;
}

/* Nothing that an installer could take for an option, an address, a path, a marker or a second line. */
static void check_harmless(const char *text)
{
        FUZZ_CHECK(!strpbrk(text, ";@/\\:#$%&\"'`|?{}\n\r"), "%s", text);
        FUZZ_CHECK(text[0] != '-' && text[0] != '.', "%s", text);
        for (const char *c = text; *c; c++)
                FUZZ_CHECK((*c >= 0x20 && *c < 0x7f) || *c == '\t', "%s", text);
}

static void check_same(const char *text, const struct rv_package *p, const char *what)
{
        struct rv_package q = { 0 };
        struct rv_fault fault = { 0 };

        FUZZ_CHECK(rv_pyreq_parse(text, strlen(text), &q, &fault) == 0, "%s %s: %s", what, text, fault.message);
        FUZZ_CHECK(strcmp(p->name, q.name) == 0 && strcmp(p->constraint, q.constraint) == 0, "%s %s", what, text);
        FUZZ_CHECK(p->n_extras == q.n_extras && p->is_pinned == q.is_pinned, "%s %s", what, text);
        for (size_t i = 0; i < p->n_extras; i++)
                FUZZ_CHECK(strcmp(p->extras[i], q.extras[i]) == 0, "%s %s", what, text);
        FUZZ_CHECK(strcmp(q.requested, text) == 0, "%s %s", what, text);
        rv_package_fini(&q);
}

static void check_extras(const struct rv_package *p)
{
        FUZZ_CHECK((p->n_extras == 0) == (p->extras == NULL));
        for (size_t i = 0; i < p->n_extras; i++) {
                FUZZ_CHECK(is_canonical_name(p->extras[i]), "%s", p->extras[i]);
                FUZZ_CHECK(i == 0 || strcmp(p->extras[i - 1], p->extras[i]) < 0);
        }
}

/* `==X` and its like, but not `===`, which takes texts that are no versions. */
static void check_versions(const struct rv_package *p)
{
        const char *c = p->constraint;

        FUZZ_CHECK(!strchr(c, ' ') && !strchr(c, '\t'), "%s", c);
        FUZZ_CHECK(!p->is_pinned || (strncmp(c, "==", 2) == 0 && !strchr(c, '*') && !strchr(c, ',')), "%s", c);
        if (strlen(c) <= RV_VERSION_SIZE_MAX && !strstr(c, "===")) {
                int r = rv_version_set_has(RV_VERSION_PEP440, c, strlen(c), NULL);
                size_t n_dots = 0;

                for (const char *d = c; *d; d++)
                        n_dots += *d == '.';
                FUZZ_CHECK(r == 1 || n_dots >= RV_VERSION_SEGMENTS_MAX, "policy takes no set %s", c);
        }
}

static void check_accepted(const struct rv_package *p)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };

        FUZZ_CHECK(is_canonical_name(p->name), "%s", p->name);
        FUZZ_CHECK(*p->constraint);
        check_harmless(p->requested);
        check_extras(p);
        check_versions(p);
        check_same(p->requested, p, "as asked for");
        rv_buf_puts(&text, p->name);
        for (size_t i = 0; i < p->n_extras; i++)
                rv_buf_printf(&text, "%c%s", i ? ',' : '[', p->extras[i]);
        rv_buf_printf(&text, "%s%s", p->n_extras ? "]" : "", p->constraint);
        check_same(text.data, p, "canonical");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rv_package p = { 0 };
        struct rv_fault fault = { .code = _RV_FAULT_MAX };
        int r = rv_pyreq_parse((const char *)data, size, &p, &fault);

        if (r == 0) {
                check_accepted(&p);
                rv_package_fini(&p);
                return 0;
        }
        FUZZ_CHECK(r == RV_PYREQ_E_INVALID && !p.name && !p.requested && !p.constraint && !p.extras);
        FUZZ_CHECK(fault.code == RV_FAULT_MISSING || fault.code == RV_FAULT_UNSUPPORTED ||
                   fault.code == RV_FAULT_PATTERN || fault.code == RV_FAULT_LENGTH);
        FUZZ_CHECK(fuzz_is_line(fault.message), "%s", fault.message);
        return 0;
}
