/*
 * Memory ends at every allocation in turn on the way from a text to an answer: the answer is then -ENOMEM,
 * nothing is left behind (AddressSanitizer looks), and no out-parameter is touched. The linker's --wrap puts
 * the functions below in the place of libc's in reeve's own objects; jansson is given them by its own hook.
 * From the first failure on all fail: jansson's lexer goes on after a single one, a character short.
 */
#include "request/request.h"
#include "test_request_table.h"

static long n_left = -1;   /* allocations that still succeed; negative: all */
static bool has_failed;

static bool fails(void)
{
        if (n_left < 0)
                return false;
        if (n_left > 0) {
                n_left--;
                return false;
        }
        has_failed = true;
        return true;
}

#define WRAP(type, name, parameters, arguments, failed) \
        type __real_##name parameters;                  \
        type __wrap_##name parameters;                  \
        type __wrap_##name parameters                   \
        {                                               \
                return fails() ? (failed) : __real_##name arguments; \
        }

WRAP(void *, malloc, (size_t n), (n), NULL)
WRAP(void *, calloc, (size_t n, size_t size), (n, size), NULL)
WRAP(void *, realloc, (void *p, size_t n), (p, n), NULL)
WRAP(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size), NULL)
WRAP(char *, strdup, (const char *s), (s), NULL)
WRAP(char *, strndup, (const char *s, size_t n), (s, n), NULL)
WRAP(int, vasprintf, (char **ret, const char *fmt, va_list ap), (ret, fmt, ap), -1)

static const struct row rows[] = {
        { "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"six[a,b]>=1\",\"a==1\",\"a==1\"],\"env\":{\"A\":\"1\",\"B\":\"2\"},"
          "\"network\":{\"mode\":\"domains\",\"domains\":[\"a.b\",\"c.d\",\"a.b\"]},\"stdin\":\"x\",\"idempotency_key\":\"k\"}", "taken" },
        { "{\"language\":\"javascript\",\"source\":\"1\",\"packages\":[\"six@1\",\"@a/b@^1\"]}", "taken" },
        { "{\"language\":\"ruby\",\"x\":{\"a\":1,\"a\":2},\"packages\":[\"six\",4],\"env\":{\"A-\":\"1\",\"B\":2},"
          "\"network\":{\"mode\":\"domains\",\"q\":1,\"domains\":[\"a\",3]},\"stdin\":3}", "rejected" },
        { "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"six\",\"b@1\",\"q[a,b]>=1;\"],\"env\":[]}", "rejected" },
        { "{\"language\":", "rejected" },
        { "{\"language\":\"python\",\"source\":\"1\",\"a\\u0000\":1}", "rejected" },
};

/* Returns whether allocation number @n, counted from 0, was reached. */
static bool fail_at(const struct row *row, long n)
{
        _cleanup_(rv_request_freep) struct rv_request *request = NULL;
        _cleanup_(rv_problem_freep) struct rv_problem *problem = NULL;
        json_t *answer = NULL;
        int r;

        n_left = n;
        has_failed = false;
        r = rv_request_parse(row->text, strlen(row->text), &request, &problem);
        if (r >= 0)
                answer = r == 0 ? rv_request_canonical(request, true) : rv_problem_to_json(problem);
        n_left = -1;
        if (r < 0) {
                assert_int_equal(r, -ENOMEM);
                assert_null(request);
                assert_null(problem);
        } else {
                assert_int_equal(r == 0, strcmp(row->expected, "taken") == 0);
        }
        assert_int_equal(answer == NULL, has_failed);
        json_decref(answer);
        return has_failed;
}

static void every_allocation_may_fail(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                long n = 0;

                while (fail_at(&rows[i], n))
                        n++;
                assert_in_range(n, 4, 5000);
        }
}

static void the_schema_is_whole_or_absent(void **state)
{
        json_t *whole = rv_bounds_schema();

        assert_non_null(whole);
        for (long n = 0;; n++) {
                json_t *schema;

                assert_in_range(n, 0, 5000);
                n_left = n;
                has_failed = false;
                schema = rv_bounds_schema();
                n_left = -1;
                assert_int_equal(schema == NULL, has_failed);
                if (schema)
                        assert_true(json_equal(schema, whole));
                json_decref(schema);
                if (!has_failed)
                        break;
        }
        json_decref(whole);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_allocation_may_fail),
                cmocka_unit_test(the_schema_is_whole_or_absent),
        };

        json_set_alloc_funcs(__wrap_malloc, free);
        return cmocka_run_group_tests(tests, NULL, NULL);
}
