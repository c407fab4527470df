/*
 * Captured output, against a second decoder that knows nothing of splitting: whatever the pieces in which a stream
 * comes, what is kept and counted is the same, and is well-formed. The first bytes of an input are the cap and how
 * the rest is split.
 */
#include "fuzz.h"

#include "run/capture.h"
#include "run/json_stream.h"

#define CEILING_BYTES 512

/* One character, or one maximal subpart of an ill-formed one (Unicode 15, table 3-7 and section 3.9). */
static size_t take_subpart(const uint8_t *p, size_t n, bool *ret_is_well_formed)
{
        static const struct {
                uint8_t first, last, low, high, n_more;
        } table[] = {
                { 0x00, 0x7f, 0, 0, 0 },       { 0xc2, 0xdf, 0x80, 0xbf, 1 }, { 0xe0, 0xe0, 0xa0, 0xbf, 2 },
                { 0xe1, 0xec, 0x80, 0xbf, 2 }, { 0xed, 0xed, 0x80, 0x9f, 2 }, { 0xee, 0xef, 0x80, 0xbf, 2 },
                { 0xf0, 0xf0, 0x90, 0xbf, 3 }, { 0xf1, 0xf3, 0x80, 0xbf, 3 }, { 0xf4, 0xf4, 0x80, 0x8f, 3 },
        };

        *ret_is_well_formed = false;
        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                if (p[0] < table[i].first || p[0] > table[i].last)
                        continue;
                for (size_t k = 1; k <= table[i].n_more; k++) {
                        uint8_t low = k == 1 ? table[i].low : 0x80, high = k == 1 ? table[i].high : 0xbf;

                        if (k >= n || p[k] < low || p[k] > high)
                                return k;
                }
                *ret_is_well_formed = true;
                return 1u + table[i].n_more;
        }
        return 1;
}

struct expected {
        struct rv_buf text;
        size_t characters;
        bool has_invalid_utf8, is_truncated;
};

static void decode(const uint8_t *p, size_t n, size_t max_characters, struct expected *ret)
{
        while (n && ret->characters < max_characters) {
                bool is_well_formed;
                size_t taken = take_subpart(p, n, &is_well_formed);

                if (is_well_formed)
                        rv_buf_append(&ret->text, p, taken);
                else
                        rv_buf_puts(&ret->text, "\xef\xbf\xbd");
                ret->has_invalid_utf8 = ret->has_invalid_utf8 || !is_well_formed;
                ret->characters++;
                p += taken;
                n -= taken;
        }
        ret->is_truncated = n > 0;
}

/* @step: a piece's size; 0: sizes from a sequence that @seed begins. */
static void check_split(const uint8_t *data, size_t n, const struct expected *wanted, size_t max_characters,
                        size_t step, uint32_t seed)
{
        struct rv_capture c;
        size_t characters = 0, at = 0;

        rv_capture_init(&c, max_characters, CEILING_BYTES);
        while (at < n) {
                size_t piece;
                int r;

                seed = seed * 1664525 + 1013904223;
                piece = RV_MIN(step ? step : (seed >> 24) % 9, n - at);
                r = rv_capture_feed(&c, data + at, piece);
                at += piece;
                FUZZ_CHECK(r == (at > CEILING_BYTES ? RV_CAPTURE_E_CEILING : 0), "%d after %zu bytes", r, at);
                FUZZ_CHECK(c.bytes == at);
        }
        FUZZ_CHECK(rv_capture_finish(&c) == 0);
        FUZZ_CHECK(c.bytes == n && c.characters == wanted->characters, "%zu for %zu", c.characters, wanted->characters);
        FUZZ_CHECK(c.text.size == wanted->text.size);
        FUZZ_CHECK(c.text.size == 0 || memcmp(c.text.data, wanted->text.data, c.text.size) == 0);
        FUZZ_CHECK(c.has_invalid_utf8 == wanted->has_invalid_utf8 && c.is_truncated == wanted->is_truncated);
        FUZZ_CHECK(rv_utf8_check(c.text.data ? c.text.data : "", c.text.size, &characters) && characters == c.characters);
        rv_capture_fini(&c);
}

static int collect(void *ctx, const void *data, size_t n)
{
        return rv_buf_append(ctx, data, n);
}

/* The outcome holds the same text, as a JSON string that another reader reads back. */
static void check_json(const uint8_t *data, size_t n)
{
        _cleanup_(rv_json_unrefp) json_t *string = NULL;
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
        struct expected all = { 0 };
        struct rv_json_stream w;

        decode(data, n, SIZE_MAX, &all);
        rv_json_stream_init(&w, collect, &out);
        rv_json_stream_text(&w, (const char *)data, n);
        FUZZ_CHECK(rv_json_stream_finish(&w) == 0);
        string = json_loadb(out.data, out.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
        FUZZ_CHECK(json_is_string(string) && json_string_length(string) == all.text.size, "%s", out.data);
        FUZZ_CHECK(all.text.size == 0 || memcmp(json_string_value(string), all.text.data, all.text.size) == 0, "%s", out.data);
        for (size_t i = 0; i < out.size; i++)
                FUZZ_CHECK((uint8_t)out.data[i] >= 0x20 && out.data[i] != 0x7f);
        rv_buf_fini(&all.text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        size_t max_characters = fuzz_byte(&in);
        uint32_t seed = fuzz_byte(&in);
        struct expected wanted = { 0 };

        /* Half of the caps are small enough to be reached by small inputs, the others never are. */
        max_characters = max_characters & 1 ? 1000000 : max_characters / 2;
        decode(in.data, in.size, max_characters, &wanted);
        check_split(in.data, in.size, &wanted, max_characters, SIZE_MAX, 0);
        check_split(in.data, in.size, &wanted, max_characters, 1, 0);
        check_split(in.data, in.size, &wanted, max_characters, 0, seed);
        check_json(in.data, in.size);
        rv_buf_fini(&wanted.text);
        return 0;
}
