#include "base/json.h"

#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Canonical form. The published vectors of RFC 8785 but for their real numbers, which records do not hold. */
static const struct {
        const char *name, *text, *canonical;
} vectors[] = {
        { "arrays.json", "[\n  56,\n  {\n    \"d\": true,\n    \"10\": null,\n    \"1\": [ ]\n  }\n]", "[56,{\"1\":[],\"10\":null,\"d\":true}]" },
        { "french.json",
          "{\"peach\":\"This sorting order\",\"péché\":\"is wrong according to French\",\"pêche\":\"but canonicalization MUST\",\"sin\":\"ignore locale\"}",
          "{\"peach\":\"This sorting order\",\"péché\":\"is wrong according to French\",\"pêche\":\"but canonicalization MUST\",\"sin\":\"ignore locale\"}" },
        { "structures.json",
          "{\"1\": {\"f\": {\"f\": \"hi\",\"F\": 5} ,\"\\n\": 56}, \"10\": { }, \"\": \"empty\", \"a\": { }, \"111\": [ {\"e\": \"yes\",\"E\": \"no\" } ], \"A\": { }}",
          "{\"\":\"empty\",\"1\":{\"\\n\":56,\"f\":{\"F\":5,\"f\":\"hi\"}},\"10\":{},\"111\":[{\"E\":\"no\",\"e\":\"yes\"}],\"A\":{},\"a\":{}}" },
        { "unicode.json", "{\"Unnormalized Unicode\":\"A\\u030a\"}", "{\"Unnormalized Unicode\":\"A\u030a\"}" },
        { "values.json", "{\"string\": \"\\u20ac$\\u000F\\u000aA'\\u0042\\u0022\\u005c\\\\\\\"\\/\", \"literals\": [null, true, false]}",
          "{\"literals\":[null,true,false],\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}" },
        { "weird.json",
          "{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\",\"\\u000a\":\"Newline\",\"1\":\"One\",\"\\u0080\":\"Control\\u007f\","
          "\"\\ud83d\\ude02\":\"Smiley\",\"\\u00f6\":\"Latin Small Letter O With Diaeresis\",\"\\ufb33\":\"Hebrew Letter Dalet With Dagesh\","
          "\"</script>\":\"Browser Challenge\"}",
          "{\"\\n\":\"Newline\",\"\\r\":\"Carriage Return\",\"1\":\"One\",\"</script>\":\"Browser Challenge\",\"\xc2\x80\":\"Control\x7f\","
          "\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😂\":\"Smiley\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}" },
        { "RFC 8785, 3.2.3, sorting",
          "{\"\\u20ac\":\"Euro Sign\",\"\\r\":\"Carriage Return\",\"\\ufb33\":\"Hebrew Letter Dalet With Dagesh\",\"1\":\"One\","
          "\"\\ud83d\\ude00\":\"Emoji: Grinning Face\",\"\\u0080\":\"Control\",\"\\u00f6\":\"Latin Small Letter O With Diaeresis\"}",
          "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\xc2\x80\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\","
          "\"😀\":\"Emoji: Grinning Face\",\"\ufb33\":\"Hebrew Letter Dalet With Dagesh\"}" },
        { "a prefix comes first", "{\"ab\":1,\"a\":2,\"abc\":3,\"b\":4}", "{\"a\":2,\"ab\":1,\"abc\":3,\"b\":4}" },
        { "U+D7FF, U+E000, U+FFFF, U+10000 by UTF-16", "{\"\\uffff\":1,\"\\ue000\":2,\"\\ud800\\udc00\":3,\"\\ud7ff\":4,\"\\udbff\\udfff\":5}",
          "{\"\ud7ff\":4,\"\U00010000\":3,\"\U0010ffff\":5,\"\ue000\":2,\"\uffff\":1}" },
        { "U+FB33 against U+1F600 behind a common start", "{\"x\\ufb33\":1,\"x\\ud83d\\ude00\":2}", "{\"x😀\":2,\"x\ufb33\":1}" },
        { "integers", "[0,-0,1,-1,9007199254740991,-9007199254740991]", "[0,0,1,-1,9007199254740991,-9007199254740991]" },
        { "scalars stand alone", "\"x\"", "\"x\"" },
        { "RFC 8785, appendix B: zero and minus zero", "[0,-0]", "[0,0]" },
        { "RFC 8785, 3.2.2.2: what is escaped and what is not", "\"\\u20ac$\\u000F\\nA'\\u0042\\\"\\\\\\\\\\\"\\/\\u007f\\u2028\"",
          "\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\x7f\u2028\"" },
        { "empty", "[{},[],\"\"]", "[{},[],\"\"]" },
};

static void canonical_vectors(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(vectors); i++) {
                _cleanup_(rv_json_unrefp) json_t *value = NULL, *again = NULL;
                _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
                struct rv_error err = { 0 };

                if (rv_json_read(vectors[i].text, strlen(vectors[i].text), 32, &value, &err) != 0)
                        fail_msg("%s: %s", vectors[i].name, err.message);
                assert_int_equal(rv_json_canonical(value, &out), 0);
                if (strcmp(out.data, vectors[i].canonical) != 0)
                        fail_msg("%s: %s", vectors[i].name, out.data);
                /* It is a fixed point, and the same value. */
                assert_int_equal(rv_json_read(out.data, out.size, 32, &again, NULL), 0);
                assert_true(json_equal(value, again));
        }
}

/* RFC 8785, 3.2.2.2: each control character; DEL and `/` stand as they are. */
static void control_characters(void **state)
{
        static const char *const short_ones[0x20] = { ['\b'] = "\\b", ['\t'] = "\\t", ['\n'] = "\\n", ['\f'] = "\\f", ['\r'] = "\\r" };

        (void)state;
        for (unsigned c = 0; c < 0x80; c++) {
                _cleanup_(rv_json_unrefp) json_t *value = NULL;
                _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
                char raw = (char)c, want[16];

                value = json_stringn(&raw, 1);
                assert_int_equal(rv_json_canonical(value, &out), 0);
                if (c < 0x20 && short_ones[c])
                        snprintf(want, sizeof(want), "\"%s\"", short_ones[c]);
                else if (c < 0x20)
                        snprintf(want, sizeof(want), "\"\\u%04x\"", c);
                else
                        snprintf(want, sizeof(want), c == '"' || c == '\\' ? "\"\\%c\"" : "\"%c\"", raw);
                assert_string_equal(out.data, want);
        }
}

static const struct {
        const char *name, *text;
} not_for_records[] = {
        { "2^53", "9007199254740992" },       { "-2^53", "-9007199254740992" }, { "a real", "1.5" },
        { "an integral real", "30.0" },       { "an exponent", "1e3" },         { "deep inside", "[{\"a\":[1,2,{\"b\":0.5}]}]" },
        { "the largest", "9223372036854775807" },
        /* RFC 8785, appendix B: integers that a double holds and another reader may not. */
        { "4340000000000001", "9007199254740994" }, { "c340000000000001", "-9007199254740994" },
        { "44b52d02c7e14af5", "9.999999999999997e+22" },
        { "444b1ae4d6e2ef50", "1e+21" }, { "41b3de4355555553", "333333333.3333332" },
};

static void numbers_that_no_record_holds(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(not_for_records); i++) {
                _cleanup_(rv_json_unrefp) json_t *value = NULL;
                _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };
                char hex[65] = "untouched";

                rv_buf_puts(&out, "before");
                value = json_loads(not_for_records[i].text, JSON_DECODE_ANY, NULL);
                assert_non_null(value);
                if (rv_json_canonical(value, &out) != -EDOM)
                        fail_msg("%s was written: %s", not_for_records[i].name, out.data);
                assert_string_equal(out.data, "before");
                assert_int_equal(out.size, 6);
                assert_int_equal(rv_json_canonical_sha256(value, hex), -EDOM);
                assert_string_equal(hex, "untouched");
        }
}

static void canonical_sha256(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *value = json_pack("{s:i, s:i}", "b", 1, "a", 2);
        char hex[65], want[65];

        (void)state;
        assert_int_equal(rv_json_canonical_sha256(value, hex), 0);
        rv_sha256_hex("{\"a\":2,\"b\":1}", 13, want);
        assert_string_equal(hex, want);
}

static const struct {
        const char *name, *text;
        size_t n;   /* 0: strlen */
        int r;
} reads[] = {
        { "an object", "{\"a\":1}", 0, 0 },
        { "a scalar", " 7 ", 0, 0 },
        { "at the bound of depth", "[[[[]]]]", 0, 0 },
        { "beyond the bound of depth", "[[[[[]]]]]", 0, -ELOOP },
        { "beyond it by objects", "{\"a\":{\"a\":{\"a\":{\"a\":{}}}}}", 0, -ELOOP },
        { "a duplicate key", "{\"a\":1,\"b\":2,\"a\":1}", 0, -EINVAL },
        { "a duplicate key by escape", "{\"a\":1,\"\\u0061\":1}", 0, -EINVAL },
        { "nothing", "", 0, -EINVAL },
        { "white space only", " \n", 0, -EINVAL },
        { "something after", "{} {}", 0, -EINVAL },
        { "a comma after", "[1,]", 0, -EINVAL },
        { "not finished", "{\"a\":", 0, -EINVAL },
        { "single quotes", "{'a':1}", 0, -EINVAL },
        { "NaN", "NaN", 0, -EINVAL },
        { "a leading zero", "01", 0, -EINVAL },
        { "a plus sign", "+1", 0, -EINVAL },
        { "a comment", "{} // x", 0, -EINVAL },
        { "an escaped NUL", "\"a\\u0000b\"", 0, -EINVAL },
        { "an escaped NUL in a key", "{\"a\\u0000b\":1}", 0, -EINVAL },
        { "a raw NUL", "\"a\0b\"", 5, -EINVAL },
        { "a NUL after", "1\0", 2, -EINVAL },
        { "a NUL within", "[1\0]", 4, -EINVAL },
        { "a NUL between", "{\0}", 3, -EINVAL },
        { "a lone high surrogate", "\"\\ud800\"", 0, -EINVAL },
        { "a lone low surrogate", "\"\\udc00\"", 0, -EINVAL },
        { "two high surrogates", "\"\\ud800\\ud800\"", 0, -EINVAL },
        { "an overlong form", "\"\xc0\xaf\"", 0, -EINVAL },
        { "an encoded surrogate", "\"\xed\xa0\x80\"", 0, -EINVAL },
        { "a truncated character", "\"\xe2\x82\"", 0, -EINVAL },
        { "a raw control character", "\"a\nb\"", 0, -EINVAL },
        { "an unknown escape", "\"\\x41\"", 0, -EINVAL },
};

static void strict_reader(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(reads); i++) {
                json_t *const untouched = (json_t *)0x1;
                json_t *value = untouched;
                struct rv_error err = { 0 };
                int r;

                r = rv_json_read(reads[i].text, reads[i].n ? reads[i].n : strlen(reads[i].text), 4, &value, &err);
                if (r != reads[i].r)
                        fail_msg("%s: %d, %s", reads[i].name, r, err.message);
                if (r == 0) {
                        json_decref(value);
                        continue;
                }
                assert_ptr_equal(value, untouched);
                assert_int_equal(err.code, r);
                assert_true(err.message[0] != 0);
        }
}

static void get_string(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *value = json_pack("{s:s, s:i}", "a", "x", "n", 1);

        (void)state;
        assert_string_equal(rv_json_get_string(value, "a", "other"), "x");
        assert_string_equal(rv_json_get_string(value, "n", "other"), "other");
        assert_string_equal(rv_json_get_string(value, "b", "other"), "other");
        assert_null(rv_json_get_string(NULL, "b", NULL));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(canonical_vectors),
                cmocka_unit_test(control_characters),
                cmocka_unit_test(numbers_that_no_record_holds),
                cmocka_unit_test(canonical_sha256),
                cmocka_unit_test(strict_reader),
                cmocka_unit_test(get_string),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
