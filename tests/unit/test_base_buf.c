#include "base/buf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void empty_is_valid(void **state)
{
        struct rv_buf b = { 0 };
        size_t n = 7;
        char *s;

        (void)state;
        assert_int_equal(rv_buf_error(&b), 0);
        s = rv_buf_take(&b, &n);
        assert_non_null(s);
        assert_int_equal(n, 0);
        assert_string_equal(s, "");
        free(s);
        rv_buf_fini(&b);
        rv_buf_fini(&b);
}

static void pieces_are_joined(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };

        (void)state;
        assert_int_equal(rv_buf_puts(&b, "ab"), 0);
        assert_int_equal(rv_buf_putc(&b, 'c'), 0);
        assert_int_equal(rv_buf_append(&b, "d\0e", 3), 0);
        assert_int_equal(rv_buf_append(&b, NULL, 0), 0);
        assert_int_equal(rv_buf_printf(&b, "%s-%d", "f", 42), 0);
        assert_int_equal(b.size, 10);
        assert_memory_equal(b.data, "abcd\0ef-42", 11);
}

/* Around every capacity that growing meets, the bytes and the NUL behind them have to be right. */
static void growth_keeps_bytes(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };

        (void)state;
        for (size_t i = 0; i < 5000; i++) {
                assert_int_equal(rv_buf_putc(&b, (char)(i * 7)), 0);
                assert_int_equal(b.size, i + 1);
                assert_true(b.capacity > b.size);
                assert_int_equal(b.data[b.size], 0);
        }
        for (size_t i = 0; i < 5000; i++)
                assert_int_equal(b.data[i], (char)(i * 7));
}

static void printf_of_every_length(void **state)
{
        char long_text[300];

        (void)state;
        memset(long_text, 'x', sizeof(long_text));
        for (int n = 0; n < 300; n++) {
                _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };

                assert_int_equal(rv_buf_printf(&b, "%.*s|", n, long_text), 0);
                assert_int_equal(b.size, n + 1);
                assert_memory_equal(b.data, long_text, (size_t)n);
                assert_int_equal(b.data[n], '|');
                assert_int_equal(b.data[n + 1], 0);
        }
}

static void failure_is_sticky(void **state)
{
        struct rv_buf b = { 0 };
        size_t n = 7;

        (void)state;
        assert_int_equal(rv_buf_puts(&b, "ab"), 0);
        assert_int_equal(rv_buf_reserve(&b, SIZE_MAX - 1), -ENOMEM);
        assert_int_equal(rv_buf_error(&b), -ENOMEM);
        assert_int_equal(rv_buf_puts(&b, "c"), -ENOMEM);
        assert_int_equal(rv_buf_putc(&b, 'c'), -ENOMEM);
        assert_int_equal(rv_buf_append(&b, "c", 1), -ENOMEM);
        assert_int_equal(rv_buf_printf(&b, "c"), -ENOMEM);
        assert_int_equal(b.size, 2);
        assert_null(rv_buf_take(&b, &n));
        assert_int_equal(n, 7);
        /* Taken, it is as new. */
        assert_int_equal(rv_buf_error(&b), 0);
        assert_int_equal(rv_buf_puts(&b, "c"), 0);
        rv_buf_fini(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(empty_is_valid),
                cmocka_unit_test(pieces_are_joined),
                cmocka_unit_test(growth_keeps_bytes),
                cmocka_unit_test(printf_of_every_length),
                cmocka_unit_test(failure_is_sticky),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
