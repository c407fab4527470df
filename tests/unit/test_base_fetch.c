/* The client's half of the fetch protocol: what a helper answers, and one that does not behave. */
#include "base/fetch.h"

#include "base/fd.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define ERROR_OF(code) "{\"id\":\"1\",\"error\":{\"code\":\"" code "\",\"message\":\"m\"}}\n"

static void answers(void **state)
{
        static const struct {
                const char *text;
                int r, status;
                enum rv_fetch_code code;
                const char *body;
        } rows[] = {
                { "{\"id\":\"1\",\"status\":200,\"headers\":{\"a\":\"b\"},\"bytes\":2}\nok", 0, 200, RV_FETCH_OK, "ok" },
                { "{\"id\":\"1\",\"status\":599,\"headers\":{},\"bytes\":0}\n", 0, 599, RV_FETCH_OK, "" },
                { ERROR_OF("unreachable"), 0, 0, RV_FETCH_UNREACHABLE, "" },
                { ERROR_OF("redirect_refused"), 0, 0, RV_FETCH_REDIRECT_REFUSED, "" },
                { ERROR_OF("internal"), 0, 0, RV_FETCH_INTERNAL, "" },
                { ERROR_OF(""), -EPROTO, 0, 0, NULL },
                { ERROR_OF("else"), -EPROTO, 0, 0, NULL },
                { ERROR_OF("timeout") "x", -EPROTO, 0, 0, NULL },
                { "", -EPROTO, 0, 0, NULL },
                { "\n", -EPROTO, 0, 0, NULL },
                { "[]\n", -EPROTO, 0, 0, NULL },
                { "{\"id\":\"1\",\"status\":200,\"headers\":{},\"bytes\":0}", -EPROTO, 0, 0, NULL },
                { "{\"id\":\"2\",\"status\":200,\"headers\":{},\"bytes\":0}\n", -EPROTO, 0, 0, NULL },
                { "{\"id\":\"1\",\"status\":200,\"headers\":{},\"bytes\":3}\nok", -EPROTO, 0, 0, NULL },
                { "{\"id\":\"1\",\"status\":200,\"headers\":{},\"bytes\":1}\nok", -EPROTO, 0, 0, NULL },
                { "{\"id\":\"1\",\"status\":200,\"headers\":{},\"bytes\":-1}\n", -EPROTO, 0, 0, NULL },
                { "{\"id\":\"1\",\"status\":200,\"headers\":{},\"bytes\":11}\n01234567890", -EPROTO, 0, 0, NULL },
                { "{\"id\":\"1\",\"status\":99,\"headers\":{},\"bytes\":0}\n", -EPROTO, 0, 0, NULL },
                { "{\"id\":\"1\",\"status\":\"200\",\"headers\":{},\"bytes\":0}\n", -EPROTO, 0, 0, NULL },
                { "{\"id\":\"1\",\"status\":200,\"headers\":[],\"bytes\":0}\n", -EPROTO, 0, 0, NULL },
                { "{\"id\":\"1\",\"status\":200,\"headers\":{\"a\":1},\"bytes\":0}\n", -EPROTO, 0, 0, NULL },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_fetch_answer a = { .status = -1 };
                struct rv_error err = { 0 };

                assert_int_equal(rv_fetch_answer_read(rows[i].text, strlen(rows[i].text), "1", 10, &a, &err), rows[i].r);
                if (rows[i].r) {
                        assert_int_equal(a.status, -1);
                        assert_non_null(strstr(err.message, "reeve-fetch"));
                        continue;
                }
                assert_int_equal(a.status, rows[i].status);
                assert_int_equal(a.code, rows[i].code);
                assert_int_equal(a.body.size, strlen(rows[i].body));
                assert_string_equal(a.message, a.code ? "m" : "");
                rv_fetch_answer_fini(&a);
        }
}

/* Programs that are no helper in its place. */
static void helpers_that_misbehave(void **state)
{
        static const struct {
                const char *path;
                int r;
                const char *message;
        } rows[] = {
                { "/bin/true", -EPROTO, "is no line" },
                { "/bin/false", -EPROTO, "ended with status 1" },
                { "/bin/cat", -EPROTO, "has no status" },      /* it gives back what it was asked, which ends in the body */
                { "/usr/bin/yes", -EFBIG, "said more than" },
                { "/etc/passwd", -EACCES, "cannot run" },
        };
        const char *const headers[] = { "A: b" };
        struct rv_fetch_request q = { .method = "POST", .url = "https://a.example/", .headers = headers, .n_headers = 1, .body = "body", .body_bytes = 4,
                                      .max_bytes = 100, .timeout_ms = 5000 };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_closep) int fd = open(rows[i].path, O_PATH | O_CLOEXEC);
                struct rv_fetch_answer a = { 0 };
                struct rv_error err = { 0 };

                assert_int_equal(rv_fetch(fd, &q, &a, &err), rows[i].r);
                if (!strstr(err.message, rows[i].message))
                        fail_msg("%s: %s", rows[i].path, err.message);
                assert_null(a.headers);
        }
}

static void finding(void **state)
{
        struct rv_error err = { 0 };
        int fd = -1, r = rv_fetch_find(&fd, &err);

        (void)state;
        /* Beside a test there is none; it may be installed. */
        assert_true(r == 0 ? fd >= 0 : strstr(err.message, "reeve-fetch") != NULL && fd == -1);
        rv_close(fd);
}

static void bad_texts(void **state)
{
        struct rv_fetch_request q = { .method = "GET", .url = "http://a.example/\xff", .timeout_ms = 1000 };
        struct rv_fetch_answer a = { 0 };
        struct rv_error err = { 0 };

        (void)state;
        assert_int_equal(rv_fetch(-EBADF, &q, &a, &err), -EINVAL);
        assert_non_null(strstr(err.message, "UTF-8"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(answers), cmocka_unit_test(helpers_that_misbehave), cmocka_unit_test(finding),
                cmocka_unit_test(bad_texts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
