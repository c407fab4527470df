/*
 * A program's result file: what is accepted is JSON that jansson reads to the same value, written so that it is
 * accepted again as it is and is harmless for a terminal; what is refused has a note that holds nothing of the text.
 */
#include "fuzz.h"

#include "base/json.h"
#include "run/result.h"
#include "run/result_json.h"

static void check_harmless(const char *text, size_t n)
{
        FUZZ_CHECK(rv_utf8_check(text, n, NULL));
        for (size_t i = 0; i < n; i++) {
                FUZZ_CHECK((uint8_t)text[i] >= 0x20 && text[i] != 0x7f);
                /* U+0080 to U+009F, which terminals obey like escape sequences. */
                FUZZ_CHECK((uint8_t)text[i] != 0xc2 || (uint8_t)text[i + 1] >= 0xa0);
        }
}

static void check_accepted(const char *raw, size_t n_raw, const struct rv_buf *compact)
{
        _cleanup_(rv_json_unrefp) json_t *before = NULL, *after = NULL;
        _cleanup_(rv_buf_fini) struct rv_buf again = { 0 };
        char note[RV_RESULT_NOTE_SIZE] = "";
        json_error_t e = { 0 };

        check_harmless(compact->data, compact->size);
        FUZZ_CHECK(rv_result_json_compact(compact->data, compact->size, RV_RESULT_DEPTH_MAX, &again, note,
                                          sizeof(note)) == 0,
                   "%s: %s", compact->data, note);
        FUZZ_CHECK(again.size == compact->size && memcmp(again.data, compact->data, again.size) == 0, "%s\n%s", compact->data,
                   again.data);
        before = json_loadb(raw, n_raw, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &e);
        after = json_loadb(compact->data, compact->size, JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES,
                           NULL);
        FUZZ_CHECK(before || json_error_code(&e) == json_error_null_byte_in_key ||
                   json_error_code(&e) == json_error_numeric_overflow,
                   "jansson: %s", e.text);
        FUZZ_CHECK(!before || (after && json_equal(before, after)), "%s", compact->data);
}

/* Refusals that are not about what JSON is are reeve's own; jansson has none of them. */
static bool is_own_rule(const char *note)
{
        static const char *const rules[] = { "nested deeper", "an integer beyond", "too large to be finite" };

        for (size_t i = 0; i < RV_N_ELEMENTS(rules); i++)
                if (strstr(note, rules[i]))
                        return true;
        return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 }, out = { 0 };
        char note[RV_RESULT_NOTE_SIZE] = "";
        int r;

        rv_buf_append(&text, data, size);
        rv_buf_puts(&out, "kept");
        r = rv_result_json_compact(text.data ? text.data : "", size, RV_RESULT_DEPTH_MAX, &out, note, sizeof(note));
        FUZZ_CHECK(r == 0 || r == RV_RESULT_JSON_E_REFUSED, "%d", r);
        FUZZ_CHECK(out.size >= 4 && memcmp(out.data, "kept", 4) == 0 && out.data[out.size] == 0);
        if (r == 0) {
                struct rv_buf compact = { .data = out.data + 4, .size = out.size - 4 };

                check_accepted((const char *)data, size, &compact);
                return 0;
        }
        FUZZ_CHECK(out.size == 4 && strncmp(note, "not usable as JSON: ", 20) == 0 && fuzz_is_line(note), "%s", note);
        /* jansson reads over a NUL that follows a number or a literal. */
        if (!is_own_rule(note) && !(size && memchr(data, 0, size))) {
                json_t *value = json_loadb((const char *)data, size,
                                           JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);

                FUZZ_CHECK(!value, "jansson takes what is refused: %s", note);
        }
        return 0;
}
