/*
 * test_package_closure.h - rows of (what was asked for, what the resolver answered, what is made of it)
 *
 * JSON is written with ' for ". Failures are printed one a line, so that one run shows them all.
 */
#pragma once

#include "package/closure.h"
#include "request/npmrange.h"
#include "request/pyreq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct closure_row {
        const char *name;
        const char *asked;           /* packages, with "; " between them */
        const char *answer;          /* the closure's members after schema, tool and runtime; or its list, if it begins with [ or { */
        int r;
        const char *has[4];          /* what stands in the canonical form of the result, or in the error's message */
        const char *has_not;
        const char *runtime;         /* another tag */
};

static inline char *closure_json(const char *text)
{
        char *json = strdup(text);

        assert_non_null(json);
        for (char *p = json; *p; p++)
                *p = *p == '\'' ? '"' : *p;
        return json;
}

static inline size_t closure_ask(enum rv_language language, const char *asked, struct rv_package *ret, size_t max)
{
        size_t n = 0;

        while (asked && *asked) {
                size_t size = strcspn(asked, ";");
                struct rv_fault fault;

                assert_true(n < max);
                if ((language == RV_LANGUAGE_PYTHON ? rv_pyreq_parse : rv_npmreq_parse)(asked, size, &ret[n++], &fault))
                        fail_msg("%s: %s", asked, fault.message);
                asked += size;
                asked += strspn(asked, "; ");
        }
        return n;
}

/* Reads the answer of a row. Returns what the reader did; *@ret is its value or its message, as text. */
static inline int closure_read_row(enum rv_language language, const struct closure_row *row, char **ret)
{
        bool is_python = language == RV_LANGUAGE_PYTHON;
        const char *key = is_python ? "packages" : "lock", *tag = row->runtime;
        struct rv_package asked[8] = { 0 };
        size_t n = closure_ask(language, row->asked, asked, 8);
        struct rv_buf text = { 0 }, out = { 0 };
        struct rv_error err = { 0 };
        json_t *value = NULL;
        char *body = closure_json(row->answer);
        int r;

        rv_buf_printf(&text, "{\"schema\":\"reeve.closure/1\",\"tool\":{\"name\":\"%s\",\"version\":\"1.2\"},\"runtime\":{\"tag\":\"%s\",\"version\":\"%s\",\"interpreter\":\"/usr/bin/x\"},",
                is_python ? "uv" : "npm", tag ? tag : is_python ? "cp311-linux_x86_64" : "node-linux-x64-glibc", is_python ? "3.11" : "");
        if (strchr("[{", *body))
                rv_buf_printf(&text, "\"ok\":true,\"exit\":0,\"code\":null,\"text\":\"\",\"%s\":%s}", key, body);
        else
                rv_buf_printf(&text, "%s}", body);
        assert_int_equal(rv_buf_error(&text), 0);
        r = rv_closure_read(language, text.data, text.size, asked, n, &value, &err);
        assert_true((r < 0) == (value == NULL));
        if (value)
                assert_int_equal(rv_json_canonical(value, &out), 0);
        *ret = value ? rv_buf_take(&out, NULL) : strdup(err.message);
        assert_non_null(*ret);
        json_decref(value);
        rv_buf_fini(&text);
        free(body);
        for (size_t i = 0; i < n; i++)
                rv_package_fini(&asked[i]);
        return r;
}

static inline void closure_check_rows(enum rv_language language, const struct closure_row *rows, size_t n)
{
        size_t n_failed = 0;

        for (size_t i = 0; i < n; i++) {
                char *got = NULL;
                int r = closure_read_row(language, &rows[i], &got);
                bool is_good = r == rows[i].r;

                for (size_t j = 0; j < RV_N_ELEMENTS(rows[i].has) && rows[i].has[j]; j++) {
                        char *wanted = closure_json(rows[i].has[j]);

                        is_good = is_good && strstr(got, wanted) != NULL;
                        free(wanted);
                }
                if (rows[i].has_not) {
                        char *unwanted = closure_json(rows[i].has_not);

                        is_good = is_good && !strstr(got, unwanted);
                        free(unwanted);
                }
                if (!is_good)
                        print_error("%s: %d, not %d: %s\n", rows[i].name, r, rows[i].r, got);
                n_failed += !is_good;
                free(got);
        }
        assert_int_equal(n_failed, 0);
}
