#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "base/base64.h"

/* RFC 4648, section 10. */
static const struct {
        const char *bytes, *text;
} vectors[] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
        { "\xfb\xff\xfe", "+//+" },
};

static void vectors_go_both_ways(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(vectors); i++) {
                char text[16];
                uint8_t bytes[16];

                rv_base64(vectors[i].bytes, strlen(vectors[i].bytes), text);
                assert_string_equal(text, vectors[i].text);
                assert_int_equal(rv_base64_read(text, strlen(text), bytes, sizeof(bytes)), strlen(vectors[i].bytes));
                assert_memory_equal(bytes, vectors[i].bytes, strlen(vectors[i].bytes));
        }
}

static void what_would_not_be_written_is_refused(void **state)
{
        static const char *const texts[] = { "Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Z===", "Zg==Zg==", "Zg= =", "Zm9v\n", "Zm-v", "Zm_v", "=Zm9" };
        uint8_t bytes[16];

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++)
                assert_int_equal(rv_base64_read(texts[i], strlen(texts[i]), bytes, sizeof(bytes)), -EINVAL);
        assert_int_equal(rv_base64_read("Zm9v", 4, bytes, 2), -EMSGSIZE);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(vectors_go_both_ways),
                cmocka_unit_test(what_would_not_be_written_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
