#include "request/document.h"

#include "base/utf8.h"
#include "request/bounds.h"
#include "request/jsonscan.h"

#include <string.h>

static void add_scan_fault(const struct rv_jsonscan *s, struct rv_problem *problem)
{
        size_t line = 1, column = 1;

        for (size_t i = 0; i < s->at && i < s->n; i++) {
                column++;
                if (s->text[i] == '\n')
                        line++, column = 1;
        }
        rv_problem_add(problem, "", s->fault.code, "line %zu, byte %zu: %s", line, column, s->fault.message);
}

static int compare_members(const void *pa, const void *pb, void *data)
{
        const struct rv_jsonscan *s = data;
        uint32_t ia = *(const uint32_t *)pa, ib = *(const uint32_t *)pb;
        const struct rv_jsonscan_member *a = &s->members[ia], *b = &s->members[ib];
        int r;

        if (a->container != b->container)
                return a->container < b->container ? -1 : 1;
        r = memcmp(s->names.data + a->name_at, s->names.data + b->name_at, RV_MIN(a->name_bytes, b->name_bytes));
        if (r)
                return r;
        if (a->name_bytes != b->name_bytes)
                return a->name_bytes < b->name_bytes ? -1 : 1;
        return ia < ib ? -1 : ia > ib;
}

static bool is_same_name(const struct rv_jsonscan *s, uint32_t ia, uint32_t ib)
{
        const struct rv_jsonscan_member *a = &s->members[ia], *b = &s->members[ib];

        return a->container == b->container && a->name_bytes == b->name_bytes &&
               memcmp(s->names.data + a->name_at, s->names.data + b->name_at, a->name_bytes) == 0;
}

static int add_member_fault(const struct rv_jsonscan *s, uint32_t i, struct rv_problem *problem,
                            enum rv_fault_code code, const char *message)
{
        _cleanup_(rv_buf_fini) struct rv_buf pointer = { 0 };
        int r;

        r = rv_jsonscan_pointer(s, &s->members[i], &pointer);
        if (r < 0)
                return rv_trace(r);
        rv_problem_add(problem, pointer.size ? pointer.data : "", code, "%s", message);
        return rv_problem_error(problem);
}

static int compare_indices(const void *a, const void *b)
{
        uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

        return x < y ? -1 : x > y;
}

/* Each name that an object has more than once gives one fault, in the order of the text. */
static int add_duplicates(struct rv_jsonscan *s, struct rv_problem *problem)
{
        _cleanup_(rv_freep) uint32_t *order = NULL;
        size_t n_duplicates = 0;
        int r = 0;

        if (s->n_members < 2)
                return 0;
        order = reallocarray(NULL, s->n_members, sizeof(*order));
        if (!order)
                return rv_raise(-ENOMEM);
        for (size_t i = 0; i < s->n_members; i++)
                order[i] = (uint32_t)i;
        qsort_r(order, s->n_members, sizeof(*order), compare_members, s);
        for (size_t i = 1, run = 0; i < s->n_members; i++) {
                run = is_same_name(s, order[i - 1], order[i]) ? run + 1 : 0;
                if (run == 1)
                        order[n_duplicates++] = order[i];   /* never catches up with i - 1 */
        }
        qsort(order, n_duplicates, sizeof(*order), compare_indices);
        for (size_t i = 0; i < n_duplicates && r == 0; i++)
                r = add_member_fault(s, order[i], problem, RV_FAULT_DUPLICATE,
                                     "this member is given twice: keep one of the two");
        return r;
}

static int add_nul_names(const struct rv_jsonscan *s, struct rv_problem *problem, bool *ret_has_any)
{
        int r = 0;

        for (size_t i = 0; i < s->n_members && r == 0; i++)
                if (s->members[i].has_nul) {
                        *ret_has_any = true;
                        r = add_member_fault(s, (uint32_t)i, problem, RV_FAULT_PATTERN, "a member's name may not hold NUL");
                }
        return r;
}

/*
 * What the scanner passed is JSON, so jansson can only fail for want of memory. It does not say so: a failed
 * allocation gives a syntax error or none at all.
 */
static int load(const struct rv_jsonscan *s, json_t **ret)
{
        json_t *value = json_loadb(s->text, s->n, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);

        if (!value)
                return rv_raise(-ENOMEM);
        *ret = value;
        return 0;
}

static int read_scanned(struct rv_jsonscan *s, struct rv_problem *problem, json_t **ret)
{
        bool has_nul_names = false;
        int r;

        r = rv_jsonscan_run(s);
        if (r > 0) {
                add_scan_fault(s, problem);
                return RV_DOCUMENT_E_INVALID;
        }
        if (r < 0)
                return rv_trace(r);
        if (s->n_containers == 0 || !s->containers[0].is_object) {
                rv_problem_add(problem, "", RV_FAULT_TYPE, "a request is one JSON object: {\"language\": ..., \"source\": ...}");
                return RV_DOCUMENT_E_INVALID;
        }
        r = add_duplicates(s, problem);
        if (r == 0)
                r = add_nul_names(s, problem, &has_nul_names);
        if (r < 0)
                return rv_trace(r);
        return has_nul_names ? RV_DOCUMENT_E_INVALID : load(s, ret);
}

int rv_document_read(const char *text, size_t n, struct rv_problem *problem, json_t **ret)
{
        _cleanup_(rv_freep) char *copy = NULL;
        struct rv_jsonscan s = { .max_depth = RV_BOUND_MAX(depth), .max_values = RV_BOUND_MAX(values) };
        int r;

        if (n > RV_BOUND_MAX(document)) {
                rv_problem_add(problem, "", RV_FAULT_LENGTH, "the document has %zu bytes; at most %d are read", n,
                               RV_BOUND_MAX(document));
                return RV_DOCUMENT_E_INVALID;
        }
        if (!rv_utf8_check(text, n, NULL)) {
                rv_problem_add(problem, "", RV_FAULT_ENCODING, "the document is not well-formed UTF-8; send JSON as UTF-8");
                return RV_DOCUMENT_E_INVALID;
        }
        if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
                rv_problem_add(problem, "", RV_FAULT_SYNTAX, "the document begins with a byte order mark: leave it out");
                return RV_DOCUMENT_E_INVALID;
        }
        copy = malloc(n ? n : 1);
        if (!copy)
                return rv_raise(-ENOMEM);
        if (n)
                memcpy(copy, text, n);
        s.text = copy;
        s.n = n;
        r = read_scanned(&s, problem, ret);
        rv_jsonscan_fini(&s);
        return r < 0 ? rv_trace(r) : r;
}
