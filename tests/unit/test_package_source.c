/* What a build says that it needs, and the wheel that it prints, are a stranger's: what is taken of them, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "package/source.h"

#define TAG "cp311-linux_x86_64"

static json_t *make_source(void)
{
        return json_pack("{s:s, s:s, s:s, s:s}", "name", "some-thing", "version", "1.0", "file", "some_thing-1.0.tar.gz", "url", "https://registry.example/s.tar.gz");
}

static void requires_are_joined_and_sorted(void **state)
{
        static const char first[] = "{\"requires\": [\"wheel>=0\", \"setuptools >= 40\"]}\n", second[] = "{\"requires\":[\"cython[x]==3.0\",\"wheel>=0\"]}\n";
        json_t *source = make_source(), *into = json_array(), *expected = json_pack("[s,s,s]", "cython[x]==3.0", "setuptools >= 40", "wheel>=0");
        struct rv_package_failure f = { 0 };

        (void)state;
        assert_int_equal(rv_source_read_requires(first, strlen(first), source, into, &f), 0);
        assert_int_equal(rv_source_read_requires(second, strlen(second), source, into, &f), 0);
        assert_true(json_equal(into, expected));
        json_decref(expected);
        json_decref(into);
        json_decref(source);
}

static void requires_that_are_none_are_refused(void **state)
{
        static const char *const bad[] = { "\"x @ https://registry.example/x.whl\"", "\"../x\"", "\"x\"", "7",
                "\"x>=1; python_version>'3'\"", "\"--index-url=x\"" };
        json_t *source = make_source();

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(bad); i++) {
                _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
                struct rv_package_failure f = { 0 };
                json_t *into = json_array();

                rv_buf_printf(&text, "{\"requires\":[%s]}\n", bad[i]);
                assert_int_equal(rv_source_read_requires(text.data, text.size, source, into, &f), RV_ACQUIRE_E_FAILED);
                assert_string_equal(f.cause, "build_failed");
                assert_string_equal(f.package, "some-thing");
                assert_int_equal(json_array_size(into), 0);
                json_decref(into);
        }
        json_decref(source);
}

static void too_many_requires_are_refused(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        json_t *source = make_source(), *into = json_array();
        struct rv_package_failure f = { 0 };

        (void)state;
        rv_buf_puts(&text, "{\"requires\":[\"a>=0\"");
        for (unsigned i = 0; i < RV_SOURCE_REQUIRES_MAX; i++)
                rv_buf_printf(&text, ",\"b%u>=0\"", i);
        rv_buf_puts(&text, "]}\n");
        assert_int_equal(rv_source_read_requires(text.data, text.size, source, into, &f), RV_ACQUIRE_E_FAILED);
        assert_non_null(strstr(f.message, "at most 50"));
        json_decref(into);
        json_decref(source);
}

static void other_answers_have_no_requires(void **state)
{
        static const char *const other[] = { "", "{}", "{\"requires\":[]}", "{\"file\":\"x.whl\",\"bytes\":1}\nx", "[]\n", "{\"requires\":{}}\n", "{\"requires\":[\"x>=1\\u0000y\"]}\n" };
        json_t *source = make_source(), *into = json_array();
        struct rv_package_failure f = { 0 };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(other); i++)
                assert_int_equal(
                        rv_source_read_requires(other[i], strlen(other[i]), source, into, &f), RV_SOURCE_E_OTHER);
        json_decref(into);
        json_decref(source);
}

static void a_wheel_is_taken(void **state)
{
        static const char *const good[] = { "some_thing-1.0-py3-none-any.whl", "Some.Thing-1.0.0-cp311-cp311-linux_x86_64.whl" };
        json_t *source = make_source();

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(good); i++) {
                _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
                struct rv_package_failure f = { 0 };
                struct rv_source_wheel wheel;

                rv_buf_printf(&text, "{\"file\":\"%s\",\"bytes\":4}\nPK\n.", good[i]);
                assert_int_equal(rv_source_read_wheel(text.data, text.size, source, TAG, &wheel, &f), 0);
                assert_string_equal(wheel.file, good[i]);
                assert_int_equal(wheel.bytes, 4);
                assert_memory_equal(wheel.data, "PK\n.", 4);
        }
        json_decref(source);
}

static void other_wheels_are_refused(void **state)
{
        static const struct {
                const char *file, *bytes, *cause;
        } bad[] = {
                { "other-1.0-py3-none-any.whl", "4", "name_mismatch" },
                { "some_thing-1.1-py3-none-any.whl", "4", "name_mismatch" },
                { "../some_thing-1.0-py3-none-any.whl", "4", "name_mismatch" },
                { "some_thing-1.0.tar.gz", "4", "name_mismatch" },
                { "some_thing-1.0-cp39-cp39-linux_x86_64.whl", "4", "build_failed" },
                { "some_thing-1.0-py3-none-any.whl", "5", "build_failed" },
                { "some_thing-1.0-py3-none-any.whl", "-1", "build_failed" },
                { "", "4", "build_failed" },
        };
        json_t *source = make_source();

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(bad); i++) {
                _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
                struct rv_package_failure f = { 0 };
                struct rv_source_wheel wheel;

                rv_buf_printf(&text, "{\"file\":\"%s\",\"bytes\":%s}\nPK\n.", bad[i].file, bad[i].bytes);
                assert_int_equal(
                        rv_source_read_wheel(text.data, text.size, source, TAG, &wheel, &f), RV_ACQUIRE_E_FAILED);
                assert_string_equal(f.cause, bad[i].cause);
                assert_string_equal(f.code, RV_PACKAGE_INSTALL_FAILED);
        }
        json_decref(source);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(requires_are_joined_and_sorted),
                cmocka_unit_test(requires_that_are_none_are_refused),
                cmocka_unit_test(too_many_requires_are_refused),
                cmocka_unit_test(other_answers_have_no_requires),
                cmocka_unit_test(a_wheel_is_taken),
                cmocka_unit_test(other_wheels_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
