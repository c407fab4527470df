/* Reading the canonical form: what is read is what would be written, and everything else is refused. */
#include "base/canonical.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define DEPTH 8

static const char *const fine[] = {
        "0", "-1", "9007199254740991", "-9007199254740991", "true", "false", "null", "\"\"", "{}", "[]", "[0,[],{},\"x\"]",
        "{\"\":0,\"a\":1,\"ab\":2,\"b\":{\"c\":[true,null]}}", "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0000\\u001f\x7f/\"", "\"\u00f6\u20ac\U0001f600\"",
        "{\"\\n\":1,\"\\r\":2,\"\\\"\":3,\"1\":4}", "{\"\\r\":0,\"1\":1,\"\xc2\x80\":2,\"\u00f6\":3,\"\u20ac\":4,\"\U0001f600\":5,\"\ufb33\":6}",
        "[[[[[[[[]]]]]]]]",
};

static const struct {
        const char *name, *text;
        int r;
} refused[] = {
        { "nothing", "", -EINVAL }, { "a blank before", " 1", -EINVAL }, { "a blank after", "1 ", -EINVAL },
        { "a blank within", "[1, 2]", -EINVAL }, { "minus zero", "-0", -EINVAL }, { "a leading zero", "01", -EINVAL },
        { "minus alone", "-", -EINVAL }, { "a real", "1.5", -EINVAL }, { "an exponent", "1e3", -EINVAL },
        { "2^53", "9007199254740992", -EINVAL }, { "far too large", "99999999999999999999", -EINVAL },
        { "a word cut off", "tru", -EINVAL }, { "another word", "True", -EINVAL },
        { "a text without end", "\"abc", -EINVAL }, { "an escape at the end", "\"abc\\", -EINVAL }, { "an escaped quote at the end", "\"abc\\\"", -EINVAL },
        { "an escape without need", "\"\\u0041\"", -EINVAL }, { "an escaped slash", "\"\\/\"", -EINVAL }, { "the long form of \\n", "\"\\u000a\"", -EINVAL },
        { "capital digits", "\"\\u001F\"", -EINVAL }, { "an escape of nothing", "\"\\x\"", -EINVAL }, { "a raw control character", "\"\n\"", -EINVAL },
        { "an escape above control", "\"\\u0020\"", -EINVAL }, { "escaped beyond ASCII", "\"\\u00f6\"", -EINVAL },
        { "ill-formed UTF-8", "\"\xc0\xaf\"", -EINVAL }, { "a surrogate", "\"\xed\xa0\x80\"", -EINVAL }, { "a character cut off", "\"\xe2\x82\"", -EINVAL },
        { "members in the wrong order", "{\"b\":1,\"a\":2}", -EINVAL }, { "a member twice", "{\"a\":1,\"a\":2}", -EINVAL },
        { "the wrong order of UTF-16", "{\"\ufb33\":1,\"\U0001f600\":2}", -EINVAL }, { "the wrong order behind an escape", "{\"\\n\":1,\"\\b\":2}", -EINVAL },
        { "a comma too many", "[1,]", -EINVAL }, { "and in an object", "{\"a\":1,}", -EINVAL }, { "no comma", "[1 2]", -EINVAL },
        { "no colon", "{\"a\"}", -EINVAL }, { "no value", "{\"a\":}", -EINVAL }, { "a name that is no text", "{1:2}", -EINVAL },
        { "not closed", "[1", -EINVAL }, { "not closed either", "{\"a\":1", -EINVAL }, { "closed by another", "[1}", -EINVAL },
        { "something after", "{}{}", -EINVAL }, { "U+0000 in a name", "{\"\\u0000\":1}", -EINVAL },
        { "too deep", "[[[[[[[[[]]]]]]]]]", -ELOOP }, { "too deep by objects", "[[[[[[[[{}]]]]]]]]", -ELOOP },
};

static void reads_what_is_written(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(fine); i++) {
                _cleanup_(rv_json_unrefp) json_t *value = NULL, *same = NULL;
                _cleanup_(rv_buf_fini) struct rv_buf again = { 0 };

                if (rv_canonical_read(fine[i], strlen(fine[i]), DEPTH, &value) != 0)
                        fail_msg("%s is refused", fine[i]);
                assert_int_equal(rv_json_canonical(value, &again), 0);
                assert_string_equal(again.data, fine[i]);
                same = json_loads(fine[i], JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
                assert_true(json_equal(value, same));
                /* Nothing that begins like it is it. */
                for (size_t n = 0; n < strlen(fine[i]); n++) {
                        json_t *part = NULL;

                        if (rv_canonical_read(fine[i], n, DEPTH, &part) == 0) {
                                assert_true(json_is_integer(part));
                                json_decref(part);
                        }
                }
        }
}

static void refuses_the_rest(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(refused); i++) {
                json_t *const untouched = (json_t *)0x1;
                json_t *value = untouched;
                int r = rv_canonical_read(refused[i].text, strlen(refused[i].text), DEPTH, &value);

                if (r != refused[i].r)
                        fail_msg("%s: %d", refused[i].name, r);
                assert_ptr_equal(value, untouched);
        }
}

/* ---- Members ---- */

static const char record[] = "{\"a\":1,\"b\\n\":\"}\\\"{\",\"c\":{\"a\":[1,{}],\"z\":\"]\"},\"d\":[\"x\"],\"e\":\"plain\"}";

static void members_one_by_one(void **state)
{
        static const struct {
                const char *name, *value;
        } wanted[] = { { "a", "1" }, { "b\\n", "\"}\\\"{\"" }, { "c", "{\"a\":[1,{}],\"z\":\"]\"}" }, { "d", "[\"x\"]" }, { "e", "\"plain\"" } };
        struct rv_canonical_object o;
        struct rv_span name, value;

        (void)state;
        rv_canonical_open(&o, record, strlen(record));
        for (size_t i = 0; i < RV_N_ELEMENTS(wanted); i++) {
                assert_int_equal(rv_canonical_next(&o, &name), 1);
                assert_true(rv_span_is(name, wanted[i].name));
                if (i % 2 == 0) {
                        assert_int_equal(rv_canonical_skip(&o, &value), 0);
                        assert_true(rv_span_is(value, wanted[i].value));
                        assert_int_equal(rv_canonical_skip(&o, &value), -EINVAL);
                }
        }
        assert_int_equal(rv_canonical_next(&o, &name), 0);
        assert_true(rv_span_is(rv_span_string(value), "plain"));
        rv_canonical_open(&o, "{}", 2);
        assert_int_equal(rv_canonical_next(&o, &name), 0);
}

/* Cut off, lengthened, or with members out of order: never "that was all". */
static void objects_that_are_none(void **state)
{
        static const char *const texts[] = { "", "{", "x", "[]", "{}x", "{\"a\":1}x", "{\"a\":1,}", "{,}", "{\"a\"}", "{\"a\":}", "{\"a\":,\"b\":1}", "{\"b\":1,\"a\":1}",
                "{\"a\":1,\"a\":1}", "{\"a\":1\"b\":1}", "{\"a\":[]\"b\":1}", "{\"a\":\"\"1}", "{\"a\":1[]}", "{\"a\":[1}", "{\"a\":1]" };
        struct rv_canonical_object o;
        struct rv_span name;
        int r;

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++) {
                rv_canonical_open(&o, texts[i], strlen(texts[i]));
                while ((r = rv_canonical_next(&o, &name)) > 0)
                        ;
                if (r == 0)
                        fail_msg("%s is taken for an object", texts[i]);
        }
        for (size_t n = 0; n < strlen(record); n++) {
                rv_canonical_open(&o, record, n);
                while ((r = rv_canonical_next(&o, &name)) > 0)
                        ;
                assert_int_equal(r, -EINVAL);
        }
}

static void expects(void **state)
{
        struct rv_canonical_object o;
        struct rv_span name;

        (void)state;
        rv_canonical_open(&o, record, strlen(record));
        for (int i = 0; i < 3; i++)
                assert_int_equal(rv_canonical_next(&o, &name), 1);
        assert_false(rv_canonical_expect(&o, "{\"a\":[1,{}],\"z\":\"[\"}", 20));
        assert_true(rv_canonical_expect(&o, "{\"a\":[1,{}],\"z\":\"]\"}", 20));
        assert_int_equal(rv_canonical_next(&o, &name), 1);
        assert_true(rv_span_is(name, "d"));
        assert_int_equal(rv_canonical_next(&o, &name), 1);
        assert_int_equal(rv_canonical_next(&o, &name), 0);
}

/* With a cache the values are the same, and what is there twice in one value is two objects. */
static void cache_changes_nothing(void **state)
{
        static struct rv_canonical_cache cache;
        static const char text[] = "{\"v\":{\"list\":[{\"a\":\"six\",\"b\":[]},{\"a\":\"six\",\"b\":[]},{\"a\":{}},{\"a\":\"}\"},{\"a\":\"six\"}]}}";
        static const char deep[] = "{\"v\":[[{\"a\":[]}]]}";
        _cleanup_(rv_json_unrefp) json_t *plain = NULL;
        struct rv_canonical_object o;
        struct rv_span name, span;
        json_t *value;

        (void)state;
        assert_int_equal(rv_canonical_read(text, strlen(text), DEPTH, &plain), 0);
        for (int i = 0; i < 4; i++) {
                const json_t *list;

                rv_canonical_open(&o, text, strlen(text));
                assert_int_equal(rv_canonical_next(&o, &name), 1);
                assert_int_equal(rv_canonical_take(&o, DEPTH, &cache, &value, &span), 0);
                assert_true(json_equal(value, json_object_get(plain, "v")));
                assert_int_equal(span.n, strlen(text) - 6);
                assert_int_equal(rv_canonical_next(&o, &name), 0);
                list = json_object_get(value, "list");
                assert_ptr_not_equal(json_array_get(list, 0), json_array_get(list, 1));
                json_decref(value);
        }
        /* What was read at one depth is not taken where it would be too deep. */
        for (unsigned depth = 5; depth > 0; depth--) {
                int r;

                rv_canonical_open(&o, deep, strlen(deep));
                assert_int_equal(rv_canonical_next(&o, &name), 1);
                r = rv_canonical_take(&o, depth, &cache, &value, &span);
                assert_int_equal(r, depth >= 4 ? 0 : -ELOOP);
                if (r == 0)
                        json_decref(value);
        }
        rv_canonical_cache_fini(&cache);
}

static void spans(void **state)
{
        static const struct {
                const char *text;
                int64_t value;
        } numbers[] = { { "0", 0 }, { "17", 17 }, { "9007199254740991", INT64_C(9007199254740991) }, { "9007199254740992", -EINVAL }, { "-1", -EINVAL },
                { "01", -EINVAL }, { "", -EINVAL }, { "1x", -EINVAL }, { "99999999999999999", -EINVAL } };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(numbers); i++)
                assert_int_equal(rv_span_integer((struct rv_span){ numbers[i].text, strlen(numbers[i].text) }),
                        numbers[i].value);
        assert_int_equal(rv_span_integer((struct rv_span){ 0 }), -EINVAL);
        assert_null(rv_span_string((struct rv_span){ "\"a\\n\"", 5 }).text);
        assert_null(rv_span_string((struct rv_span){ "17", 2 }).text);
        assert_null(rv_span_string((struct rv_span){ "\"", 1 }).text);
        assert_false(rv_span_is((struct rv_span){ 0 }, ""));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(reads_what_is_written),
                cmocka_unit_test(refuses_the_rest),
                cmocka_unit_test(members_one_by_one),
                cmocka_unit_test(objects_that_are_none),
                cmocka_unit_test(expects),
                cmocka_unit_test(cache_changes_nothing),
                cmocka_unit_test(spans),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
