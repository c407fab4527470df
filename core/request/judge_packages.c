#include "request/judge.h"
#include "request/npmrange.h"
#include "request/pyreq.h"

#include <stdio.h>
#include <string.h>

static int judge_package(struct rv_judge *j, const char *pointer, const json_t *value, struct rv_package *ret)
{
        const char *text;
        struct rv_fault fault;
        size_t n;
        int r;

        if (!rv_judge_string(j, pointer, value, RV_BOUND_ID_package, NULL))
                return 0;
        text = json_string_value(value);
        n = json_string_length(value);
        if (j->language == RV_LANGUAGE_PYTHON)
                r = rv_pyreq_parse(text, n, ret, &fault);
        else if (j->language == RV_LANGUAGE_JAVASCRIPT)
                r = rv_npmreq_parse(text, n, ret, &fault);
        else
                return 0;   /* the language's own fault is in the list */
        if (r > 0)
                rv_problem_add(j->problem, pointer, fault.code, "%s", fault.message);
        return r < 0 ? rv_trace(r) : 0;
}

/*
 * The parsed entries stand where they stood in the list; those with a fault have no name. A name twice is a
 * fault in JavaScript, where a project's dependencies are an object; Python combines the constraints.
 */
static void find_repeated(struct rv_judge *j, const struct rv_package *p, size_t n)
{
        char pointer[32];

        for (size_t i = 1; i < n; i++) {
                if (!p[i].name)
                        continue;
                for (size_t k = 0; k < i; k++) {
                        if (!p[k].name || strcmp(p[k].name, p[i].name) != 0 ||
                            strcmp(p[k].requested, p[i].requested) == 0)
                                continue;
                        snprintf(pointer, sizeof(pointer), "/packages/%zu", i);
                        rv_problem_add(j->problem, pointer, RV_FAULT_DUPLICATE,
                                       "%.80s stands at /packages/%zu with another range: write one range, with || for either",
                                       p[i].name, k);
                        break;
                }
        }
}

/* The number of faults would not tell: a full list takes no more. */
static bool are_all_good(const struct rv_request *q)
{
        for (size_t i = 0; i < q->n_packages; i++)
                if (!q->packages[i].name)
                        return false;
        return true;
}

static int compare_packages(const void *pa, const void *pb)
{
        const struct rv_package *a = pa, *b = pb;
        int r = rv_package_compare(a, b);

        return r ? r : (a->position > b->position) - (a->position < b->position);
}

/* Sort, and drop what is asked for twice in the same words. */
static void settle_packages(struct rv_request *q)
{
        size_t kept = 0;

        if (q->n_packages == 0)
                return;
        for (size_t i = 0; i < q->n_packages; i++)
                q->packages[i].position = i;
        qsort(q->packages, q->n_packages, sizeof(*q->packages), compare_packages);
        for (size_t i = 1; i < q->n_packages; i++) {
                if (rv_package_compare(&q->packages[kept], &q->packages[i]) == 0)
                        rv_package_fini(&q->packages[i]);
                else
                        q->packages[++kept] = q->packages[i];
        }
        q->n_packages = kept + 1;
}

int rv_judge_packages(struct rv_judge *j, const json_t *value)
{
        struct rv_request *q = j->request;
        size_t n;
        char pointer[32];
        int r;

        if (!value || !rv_judge_is_type(j, "/packages", value, JSON_ARRAY))
                return 0;
        n = json_array_size(value);
        rv_judge_count(j, "/packages", n, RV_BOUND_ID_packages);
        q->packages = calloc(n ? n : 1, sizeof(*q->packages));
        if (!q->packages)
                return rv_raise(-ENOMEM);
        q->n_packages = n;
        for (size_t i = 0; i < n; i++) {
                snprintf(pointer, sizeof(pointer), "/packages/%zu", i);
                r = judge_package(j, pointer, json_array_get(value, i), &q->packages[i]);
                if (r < 0)
                        return rv_trace(r);
        }
        /* The comparison of all with all is for a list within its bound only. */
        if (j->language == RV_LANGUAGE_JAVASCRIPT && n <= RV_BOUND_MAX(packages))
                find_repeated(j, q->packages, n);
        if (are_all_good(q))
                settle_packages(q);
        return 0;
}
