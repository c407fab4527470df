/*
 * HTTP/1 requests: the same heads, bodies and verdicts however the bytes come; what goes out is what came in, but for
 * empty lines; and every head that is taken is plain to a second reader that knows only lines: one Host, at most one
 * length, nothing that ends the protocol. What is HTTP here the classification calls HTTP. The first byte of an input
 * says how it is split.
 */
#include "fuzz.h"

#include "egress/classify.h"
#include "egress/http1.h"

#include <strings.h>

struct run {
        struct rv_buf out;
        struct rv_buf trace;   /* a line for each head */
        enum rv_denial denial;
        bool is_between;
        uint64_t n_requests;
};

static bool begins(const char *line, size_t n, const char *with)
{
        return n >= strlen(with) && strncasecmp(line, with, strlen(with)) == 0;
}

/* Lines as the most lenient server sees them: LF ends one, whatever precedes it. */
static void check_head(const struct rv_http1 *p)
{
        unsigned n_hosts = 0, n_lengths = 0, n_lines = 0;
        const char *line = p->head.data, *end = line + p->head.size;

        FUZZ_CHECK(p->head.size >= 18 && p->head.size <= RV_HTTP1_HEAD_MAX && memcmp(end - 4, "\r\n\r\n", 4) == 0);
        FUZZ_CHECK(!memchr(line, 0, p->head.size));
        FUZZ_CHECK(!begins(line, p->head.size, "PRI ") && !begins(line, p->head.size, "CONNECT "));
        while (line < end) {
                const char *lf = memchr(line, '\n', (size_t)(end - line));
                size_t n = (size_t)(lf - line);

                FUZZ_CHECK(lf && n > 0 && line[n - 1] == '\r' && !memchr(line, '\r', n - 1));
                FUZZ_CHECK(*line != ' ' && *line != '\t');
                n_hosts += begins(line, n, "host:") && n_lines > 0;
                n_lengths += (begins(line, n, "content-length:") || begins(line, n, "transfer-encoding:")) && n_lines > 0;
                FUZZ_CHECK(!begins(line, n, "upgrade:") && !begins(line, n, "expect:") && !begins(line, n, "http2-settings:"));
                n_lines++;
                line = lf + 1;
        }
        FUZZ_CHECK(n_hosts == 1 && n_lengths <= 1 && n_lines <= RV_HTTP1_FIELDS_MAX + 2, "%u hosts, %u lengths", n_hosts, n_lengths);
        FUZZ_CHECK(p->n_method <= RV_HTTP1_METHOD_MAX && p->method == p->head.data && p->target > p->method);
        FUZZ_CHECK(p->host_text > p->target && p->host_text + p->n_host_text < end);
        FUZZ_CHECK(!p->is_chunked || (p->n_content == 0 && p->minor == 1));
}

static void on_head(const struct rv_http1 *p, struct run *run)
{
        check_head(p);
        rv_buf_append(&run->out, p->head.data, p->head.size);
        rv_buf_printf(&run->trace, "%.*s %d %s %d %u %d %ju\n", (int)p->n_method, p->method, p->host.kind, p->host.name,
                p->host.has_port ? p->host.port : -1, p->minor, p->is_chunked, (uintmax_t)p->n_content);
}

/* @step: a piece's size; 0: sizes from a sequence that @seed begins. */
static void feed(const uint8_t *data, size_t n, size_t step, uint32_t seed, struct run *run)
{
        struct rv_http1 p = { 0 };
        size_t at = 0;

        while (at < n && !run->denial) {
                size_t piece, taken;
                int event;

                seed = seed * 1664525 + 1013904223;
                piece = RV_MIN(step ? step : 1 + (seed >> 24) % 9, n - at);
                event = rv_http1_feed(&p, data + at, piece, &taken);
                FUZZ_CHECK(taken <= piece && (taken > 0 || event == RV_HTTP1_REFUSED));
                switch (event) {
                case RV_HTTP1_MORE: FUZZ_CHECK(taken == piece); break;
                case RV_HTTP1_HEAD: on_head(&p, run); break;
                case RV_HTTP1_BODY: rv_buf_append(&run->out, data + at, taken); break;
                default: FUZZ_CHECK(event == RV_HTTP1_REFUSED && p.denial != RV_DENIAL_NONE); run->denial = p.denial;
                }
                at += taken;
        }
        run->is_between = rv_http1_is_between(&p);
        run->n_requests = p.n_requests;
        FUZZ_CHECK(p.head.size <= RV_HTTP1_HEAD_MAX && p.line.size <= RV_HTTP1_TRAILER_MAX);
        rv_http1_fini(&p);
}

static bool is_same(const struct rv_buf *a, const struct rv_buf *b)
{
        return a->size == b->size && (a->size == 0 || memcmp(a->data, b->data, a->size) == 0);
}

/* A body may have gone out by pieces before it was found at fault: then the one is the beginning of the other. */
static void check_same(const struct run *a, const struct run *b)
{
        FUZZ_CHECK(a->denial == b->denial, "%s, %s", rv_denial_word(a->denial), rv_denial_word(b->denial));
        FUZZ_CHECK(is_same(&a->trace, &b->trace), "%s\n%s", a->trace.data, b->trace.data);
        FUZZ_CHECK(a->n_requests == b->n_requests && a->is_between == b->is_between);
        if (!a->denial)
                FUZZ_CHECK(is_same(&a->out, &b->out));
        else
                FUZZ_CHECK(a->out.size <= b->out.size &&
                        (a->out.size == 0 || memcmp(a->out.data, b->out.data, a->out.size) == 0));
}

/* The line at @at, as far as there is one. Returns what follows it, or 0 where it is not whole. */
static size_t next_line(const char *data, size_t n, size_t at)
{
        const char *end = at < n ? memmem(data + at, n - at, "\r\n", 2) : NULL;

        return end ? (size_t)(end - data) + 2 : 0;
}

/* A body's end, 0 if it is not there. The lines of chunks and trailers were all found to be well-formed. */
static size_t skip_chunks(const char *data, size_t n, size_t at)
{
        for (;;) {
                size_t line = next_line(data, n, at), size = line ? strtoull(data + at, NULL, 16) : 0;

                if (!line || size > n - line || (size && n - line - size < 2))
                        return 0;
                at = line + size;
                if (size == 0)
                        break;
                FUZZ_CHECK(memcmp(data + at, "\r\n", 2) == 0, "%zu", at);
                at += 2;
        }
        for (;;) {
                size_t line = next_line(data, n, at);

                if (!line || line == at + 2)
                        return line;
                at = line;
        }
}

/* A second reader of what went out, which has all of it at once: does it see as many requests? */
static void check_requests(const struct run *run)
{
        const char *data = run->out.data;
        size_t n = run->out.size, at = 0;
        uint64_t n_requests = 0;

        while (at < n) {
                size_t length = 0, line;
                bool is_chunked = false;

                for (n_requests++; (line = next_line(data, n, at)) > at + 2; at = line) {
                        if (begins(data + at, line - at, "content-length:"))
                                length = strtoull(data + at + 15, NULL, 10);
                        is_chunked = is_chunked || begins(data + at, line - at, "transfer-encoding:");
                }
                FUZZ_CHECK(line == at + 2, "%zu", at);
                at = is_chunked ? skip_chunks(data, n, line) : length <= n - line ? line + length : 0;
                if (at == 0)
                        break;
        }
        FUZZ_CHECK(n_requests == run->n_requests, "%ju, %ju", (uintmax_t)n_requests, (uintmax_t)run->n_requests);
        FUZZ_CHECK(!run->is_between || at == n, "%zu of %zu", at, n);
}

/* What went out is the input with CRLFs left out. */
static void check_out(const struct run *run, const uint8_t *data, size_t n)
{
        size_t at = 0;

        for (size_t i = 0; i < run->out.size; i++, at++) {
                while (at < n && data[at] != (uint8_t)run->out.data[i]) {
                        FUZZ_CHECK(data[at] == '\r' || data[at] == '\n', "%zu", at);
                        at++;
                }
                FUZZ_CHECK(at < n);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        uint32_t seed = fuzz_byte(&in);
        struct run runs[3] = { 0 };

        feed(in.data, in.size, SIZE_MAX, 0, &runs[0]);
        feed(in.data, in.size, 1, 0, &runs[1]);
        feed(in.data, in.size, 0, seed, &runs[2]);
        check_same(&runs[0], &runs[1]);
        check_same(&runs[0], &runs[2]);
        check_same(&runs[2], &runs[1]);
        check_out(&runs[1], in.data, in.size);
        if (!runs[0].denial)
                check_requests(&runs[0]);
        if (runs[0].n_requests > 0) {
                FUZZ_CHECK(rv_protocol_classify(in.data, in.size, false) == RV_PROTOCOL_HTTP);
                for (size_t n = 1; n < RV_MIN(in.size, (size_t)64); n++) {
                        enum rv_protocol protocol = rv_protocol_classify(in.data, n, false);

                        FUZZ_CHECK(protocol == RV_PROTOCOL_MORE || protocol == RV_PROTOCOL_HTTP, "%d after %zu", protocol, n);
                        FUZZ_CHECK(rv_protocol_classify(in.data, n, true) == RV_PROTOCOL_HTTP, "%zu", n);
                }
        }
        for (size_t i = 0; i < RV_N_ELEMENTS(runs); i++) {
                rv_buf_fini(&runs[i].out);
                rv_buf_fini(&runs[i].trace);
        }
        return 0;
}
