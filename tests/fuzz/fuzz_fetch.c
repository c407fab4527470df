/*
 * What stands between reeve and the network: request lines to the helper, its answers, and the headers of a server.
 * The first byte says which. A request that is accepted is within its bounds, and is accepted again as it is; an
 * answer's body is what it says; a header's texts are well-formed and have no control characters.
 */
#include "fuzz.h"

#include "headers.h"
#include "request.h"

#define MAX_BYTES ((size_t)1000)

static void check_texts(const struct fetch_request *q)
{
        const json_t *header;
        size_t i;

        FUZZ_CHECK(strncmp(q->url, "http://", 7) == 0 || strncmp(q->url, "https://", 8) == 0);
        for (const char *p = q->url; *p; p++)
                FUZZ_CHECK(*p > 0x20 && *p < 0x7f);
        json_array_foreach((json_t *)q->headers, i, header)
                for (const char *p = json_string_value(header); *p; p++)
                        FUZZ_CHECK((unsigned char)*p >= 0x20 || *p == '\t', "a header could end a line");
}

/* A file is in its directory, and libcurl reads a `resolve` as it was meant. */
static void check_places(const struct fetch_request *q)
{
        const json_t *entry;
        size_t i, n;

        FUZZ_CHECK(!q->file || (*q->file && *q->file != '.' && !strpbrk(q->file, "/\n ") && strlen(q->file) <= RV_FETCH_FILE_NAME_MAX));
        FUZZ_CHECK(json_array_size(q->resolve) <= RV_FETCH_RESOLVE_MAX);
        json_array_foreach((json_t *)q->resolve, i, entry) {
                const char *s = json_string_value(entry);

                n = fetch_resolve_host(s);
                FUZZ_CHECK(n && s[n] == ':' && !strpbrk(s, "*+,/ \n") && *s != '-', "%s", s);
        }
}

static void request(const char *text, size_t n)
{
        struct fetch_request q = { 0 }, again = { 0 };
        struct rv_error err = { 0 };
        int r = fetch_request_read(text, n, &q, &err);
        char *line;

        FUZZ_CHECK(r == 0 || r == FETCH_E_USAGE || r == -EPROTO || r == -ENOMEM, "%d", r);
        FUZZ_CHECK(r == 0 || fuzz_is_line(err.message), "%s", err.message);
        if (r < 0)
                return;
        FUZZ_CHECK(*q.id && strlen(q.id) < RV_FETCH_ID_SIZE && q.body_bytes <= RV_FETCH_BODY_BYTES_MAX);
        if (r == 0) {
                check_texts(&q);
                check_places(&q);
                FUZZ_CHECK(q.max_bytes && q.max_bytes <= (q.file ? RV_FETCH_FILE_BYTES_MAX : RV_FETCH_MAX_BYTES_MAX) &&
                        q.timeout_ms && q.timeout_ms <= RV_FETCH_TIMEOUT_MS_MAX);
                FUZZ_CHECK(!q.body_bytes || q.method == FETCH_POST || q.method == FETCH_PUT);
        }
        line = json_dumps(q.line, JSON_COMPACT);
        FUZZ_CHECK(line);
        if (strlen(line) <= RV_FETCH_LINE_BYTES_MAX) {
                FUZZ_CHECK(fetch_request_read(line, strlen(line), &again, NULL) == r);
                FUZZ_CHECK(strcmp(again.id, q.id) == 0 && again.body_bytes == q.body_bytes &&
                        again.max_bytes == q.max_bytes);
                fetch_request_fini(&again);
        }
        free(line);
        fetch_request_fini(&q);
}

static void answer(const char *text, size_t n)
{
        struct rv_fetch_answer a = { 0 };
        struct rv_error err = { 0 };
        int r = rv_fetch_answer_read(text, n, "1", MAX_BYTES, &a, &err);

        if (r < 0) {
                FUZZ_CHECK((r == -EPROTO || r == -ENOMEM) && fuzz_is_line(err.message), "%d: %s", r, err.message);
                FUZZ_CHECK(!a.headers && !a.body.size && !a.status);
                return;
        }
        FUZZ_CHECK(a.body.size <= MAX_BYTES &&
                (a.body.size == 0 || memcmp(a.body.data, text + n - a.body.size, a.body.size) == 0));
        FUZZ_CHECK(a.code != RV_FETCH_OK ? !a.headers && !a.status
                                         : json_is_object(a.headers) && a.status >= 100 && a.status <= 999);
        rv_fetch_answer_fini(&a);
}

static void headers(const char *text, size_t n)
{
        json_t *all = json_object(), *value;
        const char *name, *end = text + n;

        while (text < end) {
                const char *newline = memchr(text, '\n', (size_t)(end - text));
                size_t n_line = newline ? (size_t)(newline + 1 - text) : (size_t)(end - text);

                FUZZ_CHECK(headers_add(all, text, n_line) == 0);
                text += n_line;
        }
        json_object_foreach(all, name, value) {
                FUZZ_CHECK(fuzz_is_line(name) && !strpbrk(name, ":ABCDEFGHIJKLMNOPQRSTUVWXYZ "), "%s", name);
                FUZZ_CHECK(!*json_string_value(value) || fuzz_is_line(json_string_value(value)), "%s", json_string_value(value));
        }
        json_decref(all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        uint8_t what = fuzz_byte(&in);
        const char *text = in.size ? (const char *)in.data : "";

        if (what % 3 == 0)
                request(text, in.size);
        else if (what % 3 == 1)
                answer(text, in.size);
        else
                headers(text, in.size);
        return 0;
}
