/*
 * Running out of memory, at each allocation in turn: -ENOMEM or the right verdict, nothing else and nothing lost.
 */
#include "test_policy_util.h"

#include "policy/check.h"

#include <errno.h>

#if defined(__SANITIZE_ADDRESS__)
#define IS_INTERPOSED false   /* the sanitizer has the allocator */
#else
#define IS_INTERPOSED true

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);
#endif

static long left = -1;   /* allocations until one fails; negative: none does */
static long n_live;      /* blocks that are not freed */

#if !defined(__SANITIZE_ADDRESS__)
/* Once out, always out: as with a memory limit that is reached. Public, so that the C library uses these too. */
static bool fails(void)
{
        if (left != 0) {
                left -= left > 0;
                return false;
        }
        errno = ENOMEM;
        return true;
}

static void *count(void *p)
{
        n_live += p != NULL;
        return p;
}

RV_PUBLIC void *malloc(size_t n)
{
        return fails() ? NULL : count(__libc_malloc(n));
}

RV_PUBLIC void *calloc(size_t n, size_t size)
{
        return fails() ? NULL : count(__libc_calloc(n, size));
}

RV_PUBLIC void *realloc(void *p, size_t n)
{
        if (fails())
                return NULL;
        return p ? __libc_realloc(p, n) : count(__libc_malloc(n));
}

RV_PUBLIC void free(void *p)
{
        n_live -= p != NULL;
        __libc_free(p);
}
#endif

static const char request_text[] = "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"a1==1\",\"b1>=1\"],\"env\":{\"A\":\"\"},"
                                   "\"network\":{\"mode\":\"domains\",\"domains\":[\"a.example\",\"b.example\"]}}";
static const char policy_text[] = "local m = use 'm'\n"
                                  "return policy { packages = { rule { id = 'a', match = { name = { 'x', 'b*' } }, deny = 'x' },\n"
                                  "rule { id = 'b', when = function(p, r) return p.extras[1] == r.tenant.name .. m end, deny = 'y' }, default = 'allow' },\n"
                                  "network = { rule { id = 'n', match = { domain = within { 'b.example' } }, deny = 'n' }, default = 'allow' },\n"
                ALLOW_IDEMPOTENCY ALLOW_BACKEND "limits = { timeout_s = { max = 5 } } }";
static const struct rv_bundle_file files[] = {
        { "m.lua", "return 'm'", 10, NULL },
        { "policy.lua", policy_text, sizeof(policy_text) - 1, NULL },
};

static void deciding(void **state)
{
        struct rv_bundle bundle = { .files = files, .n_files = 2 };
        json_t *facts = facts_for(request_text), *wanted = NULL;
        int r = -ENOMEM;

        assert_int_equal(rv_policy_decide(&bundle, facts, &wanted), 0);
        assert_string_equal(rv_policy_verdict_code(wanted), "package_denied");
        for (long n = 0; r == -ENOMEM; n++) {
                json_t *verdict = (void *)0x1;
                long before = n_live;

                assert_true(n < 5000);
                left = n;
                r = rv_policy_decide(&bundle, facts, &verdict);
                left = -1;
                if (r == -ENOMEM) {
                        assert_ptr_equal(verdict, (void *)0x1);
                        assert_int_equal(n_live, before);
                        continue;
                }
                assert_int_equal(r, 0);
                assert_true(n > 50 || !IS_INTERPOSED);
                assert_true(json_equal(verdict, wanted));
                json_decref(verdict);
                assert_int_equal(n_live, before);
        }
        json_decref(wanted);
        json_decref(facts);
}

static void building_facts(void **state)
{
        struct rv_facts_tenant tenant = { "local", NULL };
        struct rv_request *request = NULL;
        struct rv_problem *problem = NULL;
        int r = -ENOMEM;

        assert_int_equal(rv_request_parse(request_text, strlen(request_text), &request, &problem), 0);
        for (long n = 0; r == -ENOMEM; n++) {
                json_t *facts = (void *)0x1;
                long before = n_live;

                assert_true(n < 5000);
                left = n;
                r = rv_facts_build(request, &tenant, "p", 1, &facts);
                left = -1;
                if (r == 0) {
                        assert_true(n > 50 || !IS_INTERPOSED);
                        json_decref(facts);
                } else {
                        assert_ptr_equal(facts, (void *)0x1);
                }
                assert_int_equal(n_live, before);
        }
        assert_int_equal(r, 0);
        rv_request_free(request);
}

static void ignore(void *userdata, const struct rv_policy_finding *finding)
{
        (*(size_t *)userdata)++;
}

static void checking_and_loading(void **state)
{
        size_t n_found = 0;
        int r = -ENOMEM;

        for (long n = 0; r == -ENOMEM; n++) {
                long before = n_live;

                assert_true(n < 20000);
                left = n;
                r = rv_policy_check(SOURCE_ROOT "/policies/strict", ignore, &n_found);
                left = -1;
                assert_int_equal(n_live, before);
        }
        assert_int_equal(r, 0);
        assert_int_equal(n_found, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(deciding), cmocka_unit_test(building_facts), cmocka_unit_test(checking_and_loading),
        };

        return cmocka_run_group_tests_name("policy memory", tests, NULL, NULL);
}
