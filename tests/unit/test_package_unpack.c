/* What the helper that reads archives may answer, and what becomes of its client where it does not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "package/unpack.h"

#include "base/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HEX32 "0123456789abcdef0123456789abcdef"
#define SHA256 HEX32 HEX32
#define SHA512 SHA256 SHA256
#define REST "\"sha256\":\"" SHA256 "\",\"sha512\":\"" SHA512 "\",\"size_bytes\":9,\"name\":\"a\",\"version\":\"1\",\"license\":\"\",\"requires_python\":\"\",\"n_files\":1,\"unpacked_bytes\":2"
#define GOOD "{\"file\":\"f\"," REST ",\"install_script\":false,\"requires\":[{\"name\":\"b\",\"marker\":\"\"}]}"
#define FAULT "{\"file\":\"f\",\"sha256\":\"" SHA256 "\",\"sha512\":\"" SHA512 "\",\"size_bytes\":9,\"fault\":{\"cause\":\"unsafe_archive\",\"text\":\"it is\"}}"

static json_t *job_of_one(void)
{
        return json_pack("{s:s, s:[{s:s}]}", "language", "python", "artifacts", "file", "f");
}

static const struct {
        const char *name, *artifacts;
        int result;
} answers[] = {
        { "described", "[" GOOD "]", 0 },
        { "a fault", "[" FAULT "]", 0 },
        { "a fault of what could not be read", "[{\"file\":\"f\",\"sha256\":\"\",\"sha512\":\"\",\"size_bytes\":0,\"fault\":{\"cause\":\"build_failed\",\"text\":\"\"}}]", 0 },
        { "none", "[]", -EPROTO },
        { "one too many", "[" GOOD "," GOOD "]", -EPROTO },
        { "of another file", "[{\"file\":\"g\"," REST ",\"install_script\":false,\"requires\":[]}]", -EPROTO },
        { "a member missing", "[{\"file\":\"f\"," REST ",\"install_script\":false}]", -EPROTO },
        { "a member too many", "[{\"file\":\"f\"," REST ",\"install_script\":false,\"requires\":[],\"more\":1}]", -EPROTO },
        { "no truth value", "[{\"file\":\"f\"," REST ",\"install_script\":0,\"requires\":[]}]", -EPROTO },
        { "requires a number", "[{\"file\":\"f\"," REST ",\"install_script\":false,\"requires\":[1]}]", -EPROTO },
        { "requires a control", "[{\"file\":\"f\"," REST ",\"install_script\":false,\"requires\":[{\"name\":\"b\\n\",\"marker\":\"\"}]}]", -EPROTO },
        { "an unknown cause", "[{\"file\":\"f\",\"sha256\":\"" SHA256 "\",\"sha512\":\"" SHA512 "\",\"size_bytes\":9,\"fault\":{\"cause\":\"allow\",\"text\":\"\"}}]", -EPROTO },
        { "a fault of two lines", "[{\"file\":\"f\",\"sha256\":\"" SHA256 "\",\"sha512\":\"" SHA512 "\",\"size_bytes\":9,\"fault\":{\"cause\":\"unsafe_archive\",\"text\":\"a\\nb\"}}]", -EPROTO },
        { "a fault with a C1 control", "[{\"file\":\"f\",\"sha256\":\"" SHA256 "\",\"sha512\":\"" SHA512 "\",\"size_bytes\":9,\"fault\":{\"cause\":\"unsafe_archive\",\"text\":\"a\\u009bb\"}}]", -EPROTO },
        { "a short digest", "[{\"file\":\"f\",\"sha256\":\"" HEX32 "\",\"sha512\":\"" SHA512 "\",\"size_bytes\":9,\"fault\":{\"cause\":\"unsafe_archive\",\"text\":\"\"}}]", -EPROTO },
        { "a digest that is a number", "[{\"file\":\"f\",\"sha256\":0,\"sha512\":\"" SHA512 "\",\"size_bytes\":9,\"fault\":{\"cause\":\"unsafe_archive\",\"text\":\"\"}}]", -EPROTO },
        { "a negative size", "[{\"file\":\"f\",\"sha256\":\"" SHA256 "\",\"sha512\":\"" SHA512 "\",\"size_bytes\":-1,\"fault\":{\"cause\":\"unsafe_archive\",\"text\":\"\"}}]", -EPROTO },
        { "a number that is large", "[{\"file\":\"f\",\"sha256\":\"" SHA256 "\",\"sha512\":\"" SHA512 "\",\"size_bytes\":9007199254740993,\"fault\":{\"cause\":\"unsafe_archive\",\"text\":\"\"}}]", -EPROTO },
        { "no list", "{}", -EPROTO },
        { "no JSON", "[", -EPROTO },
};

static void answers_are_judged(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(answers); i++) {
                _cleanup_(rv_json_unrefp) json_t *job = job_of_one(), *result = NULL;
                struct rv_error err = { 0 };
                char text[4096];
                int n = snprintf(text, sizeof(text), "{\"artifacts\":%s}", answers[i].artifacts);
                int r = rv_unpack_scan_check(job, text, (size_t)n, &result, &err);

                if (r != answers[i].result || (r == 0) != (result != NULL) || (r < 0 && !strstr(err.message, "reeve-unpack")))
                        fail_msg("%s: %d %s", answers[i].name, r, err.message);
        }
}

/* Programs that stand in for the helper: what they say and how they end. */
static const struct {
        const char *name, *program;
        int result;
        const char *message;
} helpers[] = {
        { "one that fails", "/bin/false", -EPROTO, "the helper reeve-unpack ended with status 1" },
        { "one that says nothing", "/bin/true", -EPROTO, "is no list of artifacts" },
        { "one that gives the job back", "/bin/cat", -EPROTO, "" },
};

static void helpers_fail(void **state)
{
        int dir_fd = open("/", O_PATH | O_CLOEXEC);

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(helpers); i++) {
                _cleanup_(rv_json_unrefp) json_t *job = job_of_one();
                json_t *result = (json_t *)0x1;
                int fd = open(helpers[i].program, O_PATH | O_CLOEXEC);
                struct rv_error err = { 0 };
                int r = rv_unpack_scan(fd, dir_fd, job, NULL, rv_boot_us() + 10000000, &result, &err);

                if (r != helpers[i].result || result != (json_t *)0x1 || !strstr(err.message, helpers[i].message))
                        fail_msg("%s: %d %s", helpers[i].name, r, err.message);
                close(fd);
        }
        close(dir_fd);
}

static void no_time(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *job = job_of_one();
        json_t *result = NULL;
        int fd = open("/bin/cat", O_PATH | O_CLOEXEC), dir_fd = open("/", O_PATH | O_CLOEXEC);
        struct rv_error err = { 0 };

        (void)state;
        assert_int_equal(rv_unpack_scan(fd, dir_fd, job, NULL, rv_boot_us(), &result, &err), -ETIMEDOUT);
        assert_null(result);
        assert_non_null(strstr(err.message, "took too long"));
        close(fd);
        close(dir_fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(answers_are_judged),
                cmocka_unit_test(helpers_fail),
                cmocka_unit_test(no_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
