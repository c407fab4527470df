/*
 * Output on its way to a terminal: whatever the pieces in which it comes, the same is shown, it is well-formed, holds
 * no control character, and is not changed by being filtered again.
 */
#include "fuzz.h"

#include "run/terminal.h"

static void filter(const uint8_t *data, size_t n, bool is_single_line, size_t step, struct rv_buf *out)
{
        struct rv_terminal t = { .is_single_line = is_single_line };

        for (size_t at = 0; at < n;) {
                size_t piece = RV_MIN(step, n - at);

                FUZZ_CHECK(rv_terminal_feed(&t, data + at, piece, out) == 0);
                at += piece;
        }
        FUZZ_CHECK(rv_terminal_finish(&t, out) == 0);
}

static bool is_equal(const struct rv_buf *a, const struct rv_buf *b)
{
        return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

static void check_harmless(const struct rv_buf *out, bool is_single_line)
{
        FUZZ_CHECK(rv_utf8_check(out->data ? out->data : "", out->size, NULL));
        for (size_t i = 0; i < out->size; i++) {
                uint8_t c = (uint8_t)out->data[i];

                FUZZ_CHECK((c >= 0x20 && c != 0x7f) || (!is_single_line && (c == '\t' || c == '\n')), "%02x at %zu", c, i);
                FUZZ_CHECK(c != 0xc2 || (uint8_t)out->data[i + 1] >= 0xa0, "C1 at %zu", i);
        }
}

static void check(const uint8_t *data, size_t n, bool is_single_line)
{
        _cleanup_(rv_buf_fini) struct rv_buf whole = { 0 }, again = { 0 };

        filter(data, n, is_single_line, SIZE_MAX, &whole);
        check_harmless(&whole, is_single_line);
        for (size_t step = 1; step <= 3; step++) {
                _cleanup_(rv_buf_fini) struct rv_buf pieces = { 0 };

                filter(data, n, is_single_line, step, &pieces);
                FUZZ_CHECK(is_equal(&whole, &pieces), "%zu bytes at once", step);
        }
        filter((const uint8_t *)whole.data, whole.size, is_single_line, SIZE_MAX, &again);
        FUZZ_CHECK(is_equal(&whole, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        check(data, size, false);
        check(data, size, true);
        return 0;
}
