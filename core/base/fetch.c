#include "base/fetch_private.h"

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/helper.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GRACE_MS 1000u               /* the helper keeps its time itself; past this it hangs */
#define ANSWER_DEPTH_MAX 4u

static const char *const code_names[_RV_FETCH_CODE_MAX] = {
        [RV_FETCH_OK] = "",
#define X(name, code, text) [RV_FETCH_##name] = code,
        RV_FETCH_CODES(X)
#undef X
};

const char *rv_fetch_code_name(enum rv_fetch_code code)
{
        return code_names[code];
}

/* ---- The helper ---- */

int rv_fetch_find(int *ret_fd, struct rv_error *err)
{
        return rv_trace(rv_helper_find("fetch", RV__FETCH_HELPER, ret_fd, err));
}

/* ---- What it is asked ---- */

static int set_text(json_t *line, const char *name, const char *value)
{
        return value && json_object_set_new(line, name, json_string(value)) < 0 ? rv_raise(-EINVAL) : 0;
}

static int set_number(json_t *line, const char *name, uint64_t value)
{
        return value && json_object_set_new(line, name, json_integer((json_int_t)value)) < 0 ? rv_raise(-ENOMEM) : 0;
}

static int set_flag(json_t *line, const char *name, bool value)
{
        return value && json_object_set_new(line, name, json_true()) < 0 ? rv_raise(-ENOMEM) : 0;
}

static int set_texts(json_t *line, const char *name, const char *const *values, size_t n)
{
        json_t *list = n ? json_array() : NULL;
        int r = list || !n ? 0 : rv_raise(-ENOMEM);

        for (size_t i = 0; i < n && r == 0; i++)
                r = json_array_append_new(list, json_string(values[i])) < 0 ? rv_raise(-EINVAL) : 0;
        if (r < 0) {
                json_decref(list);
                return rv_trace(r);
        }
        return list && json_object_set_new(line, name, list) < 0 ? rv_raise(-ENOMEM) : 0;
}

int rv__fetch_write_line(const struct rv_fetch_request *q, const char *id, const char *file, char **ret)
{
        _cleanup_(rv_json_unrefp) json_t *line = json_pack("{s:s, s:s}", "id", id, "method", q->method);
        char *text;
        int r = line ? set_texts(line, "headers", q->headers, q->n_headers) : rv_raise(-ENOMEM);

        if (r == 0)
                r = set_texts(line, "resolve", q->resolve, q->n_resolve);
        if (r == 0)
                r = set_flag(line, "is_public_only", q->is_public_only);
        if (r == 0)
                r = set_flag(line, "tells_redirects", q->tells_redirects);
        if (r == 0)
                r = set_text(line, "file", file);
        if (r == 0)
                r = set_text(line, "url", q->url);
        if (r == 0)
                r = set_text(line, "ca", q->ca);
        if (r == 0)
                r = set_text(line, "proxy", q->proxy);
        if (r == 0)
                r = set_number(line, "body_bytes", q->body_bytes);
        if (r == 0)
                r = set_number(line, "max_bytes", q->max_bytes);
        if (r == 0)
                r = set_number(line, "timeout_ms", RV_MIN(RV_MAX(q->timeout_ms, (uint64_t)1), (uint64_t)RV_FETCH_TIMEOUT_MS_MAX));
        if (r < 0)
                return rv_trace(r);
        text = json_dumps(line, JSON_COMPACT);
        if (!text)
                return rv_raise(-ENOMEM);
        *ret = text;
        return 0;
}

/* ---- What it answers ---- */

int rv__fetch_fault(struct rv_error *err, const char *what)
{
        return rv_error_set(err, rv_raise(-EPROTO), "the helper " RV__FETCH_HELPER " gave an answer that %s", what);
}

static int read_error(const json_t *error, struct rv_fetch_answer *ret, struct rv_error *err)
{
        const char *code = rv_json_get_string(error, "code", "");

        for (int i = RV_FETCH_OK + 1; i < _RV_FETCH_CODE_MAX; i++) {
                if (strcmp(code_names[i], code) != 0)
                        continue;
                ret->code = (enum rv_fetch_code)i;
                rv_text_copy(ret->message, sizeof(ret->message), rv_json_get_string(error, "message", ""));
                return 0;
        }
        return rv__fetch_fault(err, "has an unknown code");
}

static int read_headers(json_t *headers, struct rv_error *err)
{
        const char *name;
        json_t *value;

        if (!json_is_object(headers))
                return rv__fetch_fault(err, "has no headers");
        json_object_foreach(headers, name, value)
                if (!json_is_string(value))
                        return rv__fetch_fault(err, "has headers that are no texts");
        return 0;
}

static int read_success(const json_t *line, const char *body, size_t n, size_t max_bytes, struct rv_fetch_answer *ret,
        struct rv_error *err)
{
        const json_t *status = json_object_get(line, "status"), *bytes = json_object_get(line, "bytes");
        json_t *headers = json_object_get(line, "headers");
        int r;

        if (!json_is_integer(status) || json_integer_value(status) < 100 || json_integer_value(status) > 999)
                return rv__fetch_fault(err, "has no status");
        if (!json_is_integer(bytes) || json_integer_value(bytes) < 0 || (uint64_t)json_integer_value(bytes) != n ||
                n > max_bytes)
                return rv__fetch_fault(err, "is longer or shorter than it says");
        r = read_headers(headers, err);
        if (r < 0)
                return r;
        if (n && rv_buf_append(&ret->body, body, n) < 0)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for an answer of %zu bytes", n);
        ret->status = (int)json_integer_value(status);
        ret->headers = json_incref(headers);
        return 0;
}

int rv_fetch_answer_read(const char *text, size_t n, const char *id, size_t max_bytes, struct rv_fetch_answer *ret,
        struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *line = NULL;
        const char *end = n ? memchr(text, '\n', RV_MIN(n, RV_FETCH_ANSWER_BYTES_MAX)) : NULL;
        struct rv_fetch_answer answer = { 0 };
        const json_t *error;
        size_t n_body;
        int r;

        if (!end)
                return rv__fetch_fault(err, "is no line");
        n_body = n - (size_t)(end + 1 - text);
        r = rv_json_read(text, (size_t)(end - text), ANSWER_DEPTH_MAX, &line, NULL);
        if (r == -ENOMEM)
                return rv_error_set(err, r, "out of memory for an answer");
        if (r < 0 || !json_is_object(line))
                return rv__fetch_fault(err, "is no JSON object");
        if (strcmp(rv_json_get_string(line, "id", ""), id) != 0)
                return rv__fetch_fault(err, "is none to what it was asked");
        error = json_object_get(line, "error");
        if (error && n_body)
                return rv__fetch_fault(err, "is longer than it says");
        r = error ? read_error(error, &answer, err) : read_success(line, end + 1, n_body, max_bytes, &answer, err);
        if (r < 0)
                return rv_trace(r);
        *ret = answer;
        return 0;
}

void rv_fetch_answer_fini(struct rv_fetch_answer *answer)
{
        json_decref(answer->headers);
        answer->headers = NULL;
        rv_buf_fini(&answer->body);
}

int rv_fetch(int helper_fd, const struct rv_fetch_request *q, struct rv_fetch_answer *ret, struct rv_error *err)
{
        static const char *const argv[] = { RV__FETCH_HELPER, NULL };
        _cleanup_(rv_freep) char *line = NULL;
        _cleanup_(rv_child_fini) struct rv_child child = { .exe_fd = helper_fd, .argv = argv };
        size_t max_bytes = q->max_bytes ? q->max_bytes : RV_FETCH_MAX_BYTES_DEFAULT;
        struct iovec in[3];
        char end[512];
        int r;

        r = rv__fetch_write_line(q, "1", NULL, &line);
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "cannot ask the helper " RV__FETCH_HELPER ": %s", r == -EINVAL ? "a text is no UTF-8" : strerror(-r));
        in[0] = (struct iovec){ line, strlen(line) };
        in[1] = (struct iovec){ "\n", 1 };
        in[2] = (struct iovec){ (void *)q->body, q->body_bytes };
        child.in = in;
        child.n_in = RV_N_ELEMENTS(in);
        child.out_max = RV_FETCH_ANSWER_BYTES_MAX + max_bytes;
        child.err_max = RV__FETCH_COMPLAINT_BYTES_MAX;
        child.deadline_us = rv_boot_us() + (q->timeout_ms + GRACE_MS) * 1000;
        r = rv_child_run(&child, err);
        explicit_bzero(line, strlen(line));     /* it may hold credentials */
        if (r < 0)
                return rv_trace(r);
        if (child.status != 0)
                return rv_error_set(err, rv_raise(-EPROTO), "the helper " RV__FETCH_HELPER " %s", rv_child_end_text(&child, end, sizeof(end)));
        return rv_trace(rv_fetch_answer_read(child.out.data, child.out.size, "1", max_bytes, ret, err));
}
