/*
 * Memory ends at every allocation in turn: the answer is then -ENOMEM, never a verdict, and nothing is left behind
 * (AddressSanitizer looks). The linker's --wrap puts the functions below in the place of libc's.
 */
#include "egress/clienthello.h"
#include "egress/dns.h"
#include "egress/http1.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static long n_left = -1;   /* allocations that still succeed; negative: all */

static bool fails(void)
{
        return n_left >= 0 && n_left-- == 0;
}

void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);

void *__wrap_calloc(size_t n, size_t size)
{
        return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
        return fails() ? NULL : __real_realloc(p, n);
}

static int feed_http1(void)
{
        static const char input[] = "POST / HTTP/1.1\r\nHost: example.com\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\r\n\r\n";
        struct rv_http1 p = { 0 };
        size_t taken = 0;
        int r = 0;

        for (size_t at = 0; at < sizeof(input) - 1 && r >= 0 && r != RV_HTTP1_REFUSED; at += taken)
                r = rv_http1_feed(&p, input + at, sizeof(input) - 1 - at, &taken);
        if (r >= 0)
                assert_true(p.n_requests == 1 && rv_http1_is_between(&p));
        rv_http1_fini(&p);
        return r < 0 ? r : 0;
}

static int feed_hello(void)
{
        static const char input[] = "\x16\3\1\0\x42\1\0\0\x3e\3\3" "0123456789abcdef0123456789abcdef" "\0\0\2\x13\1\1\0"
                                    "\0\x13\0\0\0\x0f\0\x0d\0\0\x0a" "reeve.test";
        struct rv_hello h = { 0 };
        int r = rv_hello_feed(&h, input, sizeof(input) - 1);

        if (r >= 0)
                assert_int_equal(r, RV_HELLO_NAMED);
        rv_hello_fini(&h);
        return r < 0 ? r : 0;
}

static int answer_dns(void)
{
        static const char message[] = "\0\1\1\0\0\1\0\0\0\0\0\0\5reeve\4test\0\0\1\0\1";
        const struct rv_names names = { .mode = RV_NETWORK_ANY };
        _cleanup_(rv_synth_freep) struct rv_synth *synth = NULL;
        uint8_t answer[RV_DNS_ANSWER_MAX];
        struct rv_dns_report report;
        size_t n = 77;
        int r = rv_synth_new(1, &synth);

        if (r < 0)
                return r;
        r = rv_dns_answer(&names, synth, message, sizeof(message) - 1, answer, &n, &report);
        assert_true(r < 0 ? n == 77 && rv_synth_count(synth) == 0 : n == sizeof(message) - 1 + 16);
        return r;
}

/* More names than there is room for at first. What was given out before stays. */
static int fill_map(void)
{
        _cleanup_(rv_synth_freep) struct rv_synth *synth = NULL;
        struct rv_address first, again, a;
        char name[16];
        int r = rv_synth_new(1, &synth);

        if (r < 0)
                return r;
        r = rv_synth_get(synth, "n0.test", &first);
        for (int i = 1; i < 200 && r == 0; i++) {
                snprintf(name, sizeof(name), "n%d.test", i);
                r = rv_synth_get(synth, name, &a);
                assert_int_equal(rv_synth_count(synth), r < 0 ? i : i + 1);
                assert_int_equal(rv_synth_get(synth, "n0.test", &again), 0);
                assert_true(rv_address_is_equal(&first, &again));
                assert_true(r < 0 || strcmp(rv_synth_find(synth, &a), name) == 0);
        }
        return r;
}

static void every_allocation_may_fail(void **state)
{
        static const struct {
                const char *name;
                int (*run)(void);
                long n_least;
        } cases[] = { { "http1", feed_http1, 2 }, { "hello", feed_hello, 1 }, { "dns", answer_dns, 4 }, { "synth", fill_map, 8 } };

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++) {
                long n = 0;
                int r;

                do {
                        n_left = n;
                        r = cases[i].run();
                        if (n_left < 0 ? r != -ENOMEM : r != 0)
                                fail_msg("%s: %d when allocation %ld fails", cases[i].name, r, n);
                        n++;
                } while (n_left < 0);
                n_left = -1;
                if (n - 1 < cases[i].n_least)
                        fail_msg("%s: %ld allocations", cases[i].name, n - 1);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation_may_fail) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
