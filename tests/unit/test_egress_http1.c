/* HTTP/1 requests: what is taken and refused, where requests end, whole and in every kind of pieces. */
#include "egress/http1.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define E "\r\n"
#define HOST "Host: example.com" E
#define GET "GET / HTTP/1.1" E HOST
#define POST "POST /x HTTP/1.1" E HOST
#define TE "Transfer-Encoding: chunked" E

/* `wanted`: "METHOD host" of each head, then "!word" if it is refused, else "." between requests or "~" within one. */
static const struct row {
        const char *name, *input;
        size_t n;
        const char *wanted;
        size_t n_blank;   /* bytes of empty lines, which do not go out */
} rows[] = {
#define ROW(name, input, wanted) { name, input, sizeof(input) - 1, wanted, 0 }
#define BLANK(name, n_blank, input, wanted) { name, input, sizeof(input) - 1, wanted, n_blank }
        /* what clients send */
        ROW("GET", GET E, "GET example.com ."),
        ROW("fields of all kinds", GET "User-Agent: x/1 (y; z)" E "Accept: */*" E "X-Empty:" E "X-Tab:\ta\tb\t" E "X-Latin: \351" E E, "GET example.com ."),
        ROW("no space after the colon", "GET / HTTP/1.1" E "Host:example.com" E E, "GET example.com ."),
        ROW("white space round the value", "GET / HTTP/1.1" E "hOsT: \t example.com \t" E E, "GET example.com ."),
        ROW("Host is last", "GET / HTTP/1.1" E "A: b" E HOST E, "GET example.com ."),
        ROW("Host with a port", "GET / HTTP/1.1" E "Host: example.com:8080" E E, "GET example.com:8080 ."),
        ROW("Host with capitals and a dot", "GET / HTTP/1.1" E "Host: EXAMPLE.com." E E, "GET example.com ."),
        ROW("query, fragment and UTF-8", "GET /a?b=c&d#e\303\274 HTTP/1.1" E HOST E, "GET example.com ."),
        ROW("target of slashes", "GET //evil.test/ HTTP/1.1" E HOST E, "GET example.com ."),
        ROW("HTTP/1.0 with Host", "GET / HTTP/1.0" E HOST E, "GET example.com ."),
        ROW("unknown method", "BASELINE-CONTROL / HTTP/1.1" E HOST E, "BASELINE-CONTROL example.com ."),
        ROW("longest method", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF / HTTP/1.1" E HOST E, "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEF example.com ."),
        ROW("OPTIONS *", "OPTIONS * HTTP/1.1" E HOST E, "OPTIONS example.com ."),
        ROW("three requests", GET E "HEAD /b HTTP/1.1" E HOST E "DELETE /c HTTP/1.1" E HOST E,
                "GET example.com HEAD example.com DELETE example.com ."),
        ROW("another host on a connection", GET E "GET / HTTP/1.1" E "Host: evil.test" E E, "GET example.com GET evil.test ."),
        ROW("Connection: upgrade alone", GET "Connection: keep-alive, upgrade" E E, "GET example.com ."),
        ROW("head under way", GET, "~"),
        ROW("CR under way", "GET / HTTP/1.1\r", "~"),
        ROW("nothing", "", "."),

        /* absolute targets */
        ROW("absolute", "GET http://example.com/x HTTP/1.1" E HOST E, "GET example.com ."),
        ROW("absolute without a path", "GET HTTP://Example.COM HTTP/1.1" E HOST E, "GET example.com ."),
        ROW("absolute, query at once", "GET http://example.com?x HTTP/1.1" E HOST E, "GET example.com ."),
        ROW("absolute with the default port", "GET http://example.com:80/ HTTP/1.1" E HOST E, "GET example.com ."),
        ROW("absolute, the same port", "GET http://example.com:81/ HTTP/1.1" E "Host: example.com:81" E E, "GET example.com:81 ."),
        ROW("absolute, an address", "GET http://[::1]/ HTTP/1.1" E "Host: [0::1]" E E, "GET ::1 ."),
        ROW("absolute, another host", "GET http://evil.test/ HTTP/1.1" E HOST E, "!http-host"),
        ROW("absolute, another port", "GET http://example.com:81/ HTTP/1.1" E HOST E, "!http-host"),
        ROW("absolute, user", "GET http://user@example.com/ HTTP/1.1" E HOST E, "!http-host"),
        ROW("absolute, the host as user", "GET http://example.com@evil.test/ HTTP/1.1" E HOST E, "!http-host"),
        ROW("absolute, backslash", "GET http://evil.test\\@example.com/ HTTP/1.1" E HOST E, "!http-host"),
        ROW("absolute, backslash path", "GET http://example.com\\x HTTP/1.1" E HOST E, "!http-host"),
        ROW("absolute, empty", "GET http:/// HTTP/1.1" E HOST E, "!http-host"),
        ROW("absolute, empty port", "GET http://example.com:/ HTTP/1.1" E HOST E, "!http-host"),
        ROW("absolute, below", "GET http://a.example.com/ HTTP/1.1" E HOST E, "!http-host"),
        ROW("absolute, short address in both", "GET http://127.1/ HTTP/1.1" E "Host: 127.1" E E, "!http-host"),
        ROW("absolute, https", "GET https://example.com/ HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("absolute, ftp", "GET ftp://example.com/ HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("absolute, one slash", "GET http:/example.com/ HTTP/1.1" E HOST E, "!http-malformed"),

        /* Host */
        ROW("no Host", "GET / HTTP/1.1" E E, "!http-host"),
        ROW("no Host, HTTP/1.0", "GET / HTTP/1.0" E E, "!http-host"),
        ROW("two Hosts", GET "Host: evil.test" E E, "!http-host"),
        ROW("two Hosts alike", GET HOST E, "!http-host"),
        ROW("two Hosts, one in capitals", GET "HOST: evil.test" E E, "!http-host"),
        ROW("absolute without Host", "GET http://example.com/ HTTP/1.1" E E, "!http-host"),
        ROW("empty Host", "GET / HTTP/1.1" E "Host:" E E, "GET invalid ."),
        ROW("list as Host", "GET / HTTP/1.1" E "Host: example.com, evil.test" E E, "GET invalid ."),
        ROW("user in Host", "GET / HTTP/1.1" E "Host: example.com@evil.test" E E, "GET invalid ."),
        ROW("address as Host", "GET / HTTP/1.1" E "Host: 0x7f.1" E E, "GET literal ."),

        /* the request line */
        ROW("HTTP/0.9", "GET /" E E, "!http-malformed"),
        ROW("HTTP/0.9 with a space", "GET / " E E, "!http-malformed"),
        ROW("HTTP/1.2", "GET / HTTP/1.2" E HOST E, "!http-version"),
        ROW("HTTP/2.0", "GET / HTTP/2.0" E HOST E, "!http-version"),
        ROW("HTTP/1.10", "GET / HTTP/1.10" E HOST E, "!http-version"),
        ROW("HTTP/1", "GET / HTTP/1" E HOST E, "!http-version"),
        ROW("HTTP/01.1", "GET / HTTP/01.1" E HOST E, "!http-version"),
        ROW("http/1.1", "GET / http/1.1" E HOST E, "!http-malformed"),
        ROW("space behind the version", "GET / HTTP/1.1 " E HOST E, "!http-version"),
        ROW("two spaces", "GET  / HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("two spaces before the version", "GET /  HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("space in the target", "GET /a b HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("tab for a space", "GET\t/ HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("tab in the target", "GET /a\tb HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("space at the front", " GET / HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("no method", "/ HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("method with a colon", "GE:T / HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("method of other bytes", "G\351T / HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("method too long", "ABCDEFGHIJKLMNOPQRSTUVWXYZABCDEFG / HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("no line", "x" E E, "!http-malformed"),
        ROW("target without a slash", "GET x HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("GET *", "GET * HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("options *", "options * HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("OPTIONS *x", "OPTIONS *x HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("authority", "GET example.com:80 HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("CONNECT", "CONNECT example.com:443 HTTP/1.1" E "Host: example.com:443" E E, "!http-connect"),
        ROW("connect", "connect example.com:443 HTTP/1.1" E "Host: example.com:443" E E, "!http-connect"),
        ROW("CONNECT, second", GET E "CONNECT evil.test:443 HTTP/1.1" E HOST E, "GET example.com !http-connect"),
        ROW("PRI", "PRI * HTTP/2.0" E E "SM" E E, "!http2"),
        ROW("PRI as HTTP/1.1", "PRI * HTTP/1.1" E HOST E, "!http2"),
        ROW("PRI, second", GET E "PRI * HTTP/2.0" E E "SM" E E, "GET example.com !http2"),

        /* lines */
        ROW("LF alone", "GET / HTTP/1.1\n" HOST E, "!http-malformed"),
        ROW("LF alone behind a field", "GET / HTTP/1.1" E "Host: example.com\nA: b" E E, "!http-malformed"),
        ROW("LF alone at the end", GET "\n", "!http-malformed"),
        ROW("CR alone", GET "A: b\rC: d" E E, "!http-malformed"),
        ROW("CR alone at the end", GET "\rX", "!http-malformed"),
        ROW("CR CR LF", "GET / HTTP/1.1\r" E HOST E, "!http-malformed"),
        ROW("NUL in the target", "GET /\0 HTTP/1.1" E HOST E, "!http-malformed"),
        ROW("NUL in Host", "GET / HTTP/1.1" E "Host: example.com\0.evil.test" E E, "!http-malformed"),
        ROW("NUL in a name", GET "A\0: b" E E, "!http-malformed"),
        ROW("control character", GET "A: \33[2J" E E, "!http-malformed"),
        ROW("DEL", GET "A: \177" E E, "!http-malformed"),
        ROW("vertical tab before a coding", POST "Transfer-Encoding:\13chunked" E E, "!http-malformed"),
        ROW("folded", GET "A: b" E " c" E E, "!http-malformed"),
        ROW("folded by a tab", GET "A: b" E "\tTransfer-Encoding: chunked" E E, "!http-malformed"),
        ROW("folded Host", "GET / HTTP/1.1" E "Host:" E " example.com" E E, "!http-malformed"),
        ROW("first field folded", "GET / HTTP/1.1" E " " HOST E, "!http-malformed"),
        ROW("space before the colon", "GET / HTTP/1.1" E "Host : example.com" E E, "!http-malformed"),
        ROW("no colon", GET "A" E E, "!http-malformed"),
        ROW("no name", GET ": b" E E, "!http-malformed"),
        ROW("name of other bytes", GET "A\303\274: b" E E, "!http-malformed"),
        ROW("quoted name", GET "\"A\": b" E E, "!http-malformed"),

        /* empty lines before a request */
        BLANK("one", 2, E GET E, "GET example.com ."),
        BLANK("four", 8, E E E E GET E, "GET example.com ."),
        BLANK("four before each", 16, E E E E GET E E E E E GET E, "GET example.com GET example.com ."),
        BLANK("at the end", 4, GET E E E, "GET example.com ."),
        BLANK("under way", 3, E "\r", "~"),
        ROW("five", E E E E E GET E, "!http-malformed"),
        ROW("LF", "\n" GET E, "!http-malformed"),
        ROW("CR", "\r" GET E, "!http-malformed"),
        ROW("LF behind CRLF", E "\n" GET E, "!http-malformed"),

        /* lengths */
        ROW("length 0", POST "Content-Length: 0" E E GET E, "POST example.com GET example.com ."),
        ROW("length 5", POST "Content-Length: 5" E E "hello" GET E, "POST example.com GET example.com ."),
        ROW("zeros before", POST "Content-Length: 0005" E E "hello" GET E, "POST example.com GET example.com ."),
        ROW("body that looks like a request", POST "Content-Length: 43" E E "GET / HTTP/1.1" E "Host: evil.test" E E "01234567" GET E,
                "POST example.com GET example.com ."),
        ROW("body under way", POST "Content-Length: 5" E E "hell", "POST example.com ~"),
        ROW("length with GET", GET "Content-Length: 2" E E "ab", "GET example.com ."),
        ROW("length in HTTP/1.0", "POST / HTTP/1.0" E HOST "Content-Length: 2" E E "ab", "POST example.com ."),
        ROW("body too long by one", POST "Content-Length: 4" E E "hello" E E, "POST example.com !http-malformed"),
        ROW("largest length", POST "Content-Length: 999999999999999999" E E "x", "POST example.com ~"),
        ROW("length of 19 digits", POST "Content-Length: 1000000000000000000" E E, "!http-framing"),
        ROW("length that overflows", POST "Content-Length: 18446744073709551621" E E "hello", "!http-framing"),
        ROW("length +5", POST "Content-Length: +5" E E "hello", "!http-framing"),
        ROW("length -1", POST "Content-Length: -1" E E, "!http-framing"),
        ROW("length 0x5", POST "Content-Length: 0x5" E E "hello", "!http-framing"),
        ROW("length 5,5", POST "Content-Length: 5, 5" E E "hello", "!http-framing"),
        ROW("length 5 5", POST "Content-Length: 5 5" E E "hello", "!http-framing"),
        ROW("length 5.0", POST "Content-Length: 5.0" E E "hello", "!http-framing"),
        ROW("no length", POST "Content-Length:" E E, "!http-framing"),
        ROW("two lengths", POST "Content-Length: 5" E "Content-Length: 6" E E "hello", "!http-framing"),
        ROW("two lengths alike", POST "Content-Length: 5" E "content-length: 5" E E "hello", "!http-framing"),

        /* chunks */
        ROW("chunks", POST TE E "5" E "hello" E "0" E E GET E, "POST example.com GET example.com ."),
        ROW("no chunk", POST TE E "0" E E GET E, "POST example.com GET example.com ."),
        ROW("chunks, hexadecimal", POST TE E "00A" E "0123456789" E "b" E "0123456789x" E "000" E E, "POST example.com ."),
        ROW("chunks of CRLF", POST TE E "4" E E E E "0" E E, "POST example.com ."),
        ROW("chunk that looks like a request", POST TE E "27" E "GET / HTTP/1.1" E "Host: evil.test" E E "0123" E "0" E E GET E,
                "POST example.com GET example.com ."),
        ROW("extensions", POST TE E "1;a=b;c=\"d\"" E "x" E "0;e" E E, "POST example.com ."),
        ROW("trailer", POST TE E "0" E "X-Checksum: abc" E "Y:" E E GET E, "POST example.com GET example.com ."),
        ROW("CHUNKED", POST "TRANSFER-ENCODING: CHUNKED" E E "0" E E, "POST example.com ."),
        ROW("chunks under way", POST TE E "5" E "hello" E "0" E, "POST example.com ~"),
        ROW("chunk's CR under way", POST TE E "5" E "hello\r", "POST example.com ~"),
        ROW("largest size", POST TE E "fffffffffffffff" E "x", "POST example.com ~"),
        ROW("size of 16 digits", POST TE E "0000000000000001" E "x" E, "POST example.com !http-framing"),
        ROW("size that overflows", POST TE E "ffffffffffffffff5" E "x" E, "POST example.com !http-framing"),
        ROW("no size", POST TE E E "0" E E, "POST example.com !http-framing"),
        ROW("extension without a size", POST TE E ";a" E "0" E E, "POST example.com !http-framing"),
        ROW("size 0x1", POST TE E "0x1" E "x" E, "POST example.com !http-framing"),
        ROW("size -1", POST TE E "-1" E "x" E, "POST example.com !http-framing"),
        ROW("size +1", POST TE E "+1" E "x" E, "POST example.com !http-framing"),
        ROW("space before the size", POST TE E " 1" E "x" E, "POST example.com !http-framing"),
        ROW("space after the size", POST TE E "1 " E "x" E, "POST example.com !http-framing"),
        ROW("size g", POST TE E "g" E, "POST example.com !http-framing"),
        ROW("LF after the size", POST TE E "1\nx" E, "POST example.com !http-framing"),
        ROW("LF in an extension", POST TE E "1;a\nx" E, "POST example.com !http-malformed"),
        ROW("CR alone in an extension", POST TE E "1;a\rb" E "x" E, "POST example.com !http-malformed"),
        ROW("NUL in an extension", POST TE E "1;\0" E "x" E, "POST example.com !http-malformed"),
        ROW("chunk longer than its size", POST TE E "1" E "xy" E "0" E E, "POST example.com !http-framing"),
        ROW("chunk without its end", POST TE E "1" E "x0" E E, "POST example.com !http-framing"),
        ROW("LF after a chunk", POST TE E "1" E "x\n0" E E, "POST example.com !http-framing"),
        ROW("CR alone after a chunk", POST TE E "1" E "x\r0" E E, "POST example.com !http-malformed"),
        ROW("request instead of a trailer", POST TE E "0" E GET E, "POST example.com !http-malformed"),
        ROW("Host in a trailer", POST TE E "0" E "Host: evil.test" E E, "POST example.com !http-framing"),
        ROW("length in a trailer", POST TE E "0" E "X: y" E "content-length: 5" E E, "POST example.com !http-framing"),
        ROW("coding in a trailer", POST TE E "0" E TE E, "POST example.com !http-framing"),
        ROW("folded trailer", POST TE E "0" E "X: y" E " z" E E, "POST example.com !http-malformed"),
        ROW("LF in a trailer", POST TE E "0" E "X: y\nZ: a" E E, "POST example.com !http-malformed"),
        ROW("LF at the trailer's end", POST TE E "0" E "\n", "POST example.com !http-malformed"),

        /* which of two lengths holds, servers do not agree upon */
        ROW("length and chunks", POST "Content-Length: 5" E TE E "0" E E, "!http-framing"),
        ROW("chunks and length", POST TE "Content-Length: 5" E E "0" E E, "!http-framing"),
        ROW("chunked twice", POST TE TE E "0" E E, "!http-framing"),
        ROW("chunked, chunked", POST "Transfer-Encoding: chunked, chunked" E E "0" E E, "!http-framing"),
        ROW("gzip, chunked", POST "Transfer-Encoding: gzip, chunked" E E "0" E E, "!http-framing"),
        ROW("chunked, identity", POST "Transfer-Encoding: chunked, identity" E E "0" E E, "!http-framing"),
        ROW("identity", POST "Transfer-Encoding: identity" E E, "!http-framing"),
        ROW("xchunked", POST "Transfer-Encoding: xchunked" E E, "!http-framing"),
        ROW("chunked;q=1", POST "Transfer-Encoding: chunked;q=1" E E, "!http-framing"),
        ROW("\"chunked\"", POST "Transfer-Encoding: \"chunked\"" E E, "!http-framing"),
        ROW("no coding", POST "Transfer-Encoding:" E E, "!http-framing"),
        ROW("chunked in HTTP/1.0", "POST / HTTP/1.0" E HOST TE E "0" E E, "!http-framing"),

        /* what makes the connection something else */
        ROW("WebSocket", GET "Connection: Upgrade" E "Upgrade: websocket" E "Sec-WebSocket-Key: x" E E, "!http-upgrade"),
        ROW("h2c", GET "Connection: Upgrade, HTTP2-Settings" E "Upgrade: h2c" E "HTTP2-Settings: AAMAAABk" E E, "!http-upgrade"),
        ROW("Upgrade without Connection", GET "uPgRaDe: x" E E, "!http-upgrade"),
        ROW("HTTP2-Settings", GET "HTTP2-Settings: AAMAAABk" E E, "!http-upgrade"),
        ROW("Expect", POST "Content-Length: 5" E "Expect: 100-continue" E E, "!http-expect"),
        ROW("Expect, something", POST "Expect: the worst" E E, "!http-expect"),
#undef BLANK
#undef ROW
};

struct run {
        char trace[512];
        struct rv_buf out;
        bool is_refused;
};

static void trace_head(const struct rv_http1 *p, struct run *run)
{
        static const char *const kinds[] = { "invalid", "", "literal" };
        size_t n = strlen(run->trace);
        const char *host = p->host.name[0] ? p->host.name : kinds[p->host.kind];

        n += (size_t)snprintf(run->trace + n, sizeof(run->trace) - n, "%.*s %s", (int)p->n_method, p->method, host);
        if (p->host.has_port)
                n += (size_t)snprintf(run->trace + n, sizeof(run->trace) - n, ":%d", p->host.port);
        snprintf(run->trace + n, sizeof(run->trace) - n, " ");
        rv_buf_append(&run->out, p->head.data, p->head.size);
}

/* One piece, in memory of its own. */
static void feed(struct rv_http1 *p, const char *data, size_t n, struct run *run)
{
        char *exact = malloc(n);
        size_t at = 0, taken;

        assert_non_null(exact);
        memcpy(exact, data, n);
        while (at < n && !run->is_refused) {
                uint64_t n_requests = p->n_requests;
                int event = rv_http1_feed(p, exact + at, n - at, &taken);

                assert_true(taken <= n - at);
                assert_true(p->n_requests - n_requests == (event == RV_HTTP1_HEAD));
                switch (event) {
                case RV_HTTP1_MORE: assert_int_equal(taken, n - at); break;
                case RV_HTTP1_HEAD: trace_head(p, run); break;
                case RV_HTTP1_BODY: rv_buf_append(&run->out, exact + at, taken); break;
                case RV_HTTP1_REFUSED: run->is_refused = true; break;
                default: fail_msg("event %d", event);
                }
                assert_true(taken > 0 || event == RV_HTTP1_REFUSED);
                at += taken;
        }
        free(exact);
}

static void check(const struct row *row, size_t n_piece)
{
        struct run run = { 0 };
        struct rv_http1 p = { 0 };
        size_t taken, n;

        for (size_t at = 0; at < row->n; at += n_piece)
                feed(&p, row->input + at, RV_MIN(n_piece, row->n - at), &run);
        n = strlen(run.trace);
        snprintf(run.trace + n, sizeof(run.trace) - n, "%s%s", run.is_refused ? "!" : rv_http1_is_between(&p) ? "." : "~",
                rv_denial_word(p.denial));
        if (strcmp(run.trace, row->wanted) != 0)
                fail_msg("%s, pieces of %zu: \"%s\" wanted, got \"%s\"", row->name, n_piece, row->wanted, run.trace);
        /* All that was between goes out, byte for byte, but empty lines. */
        if (row->wanted[strlen(row->wanted) - 1] == '.') {
                assert_int_equal(run.out.size, row->n - row->n_blank);
                if (!row->n_blank && row->n)
                        assert_memory_equal(run.out.data, row->input, row->n);
        }
        if (run.is_refused) {
                assert_int_equal(rv_http1_feed(&p, GET E, sizeof(GET E) - 1, &taken), RV_HTTP1_REFUSED);
                assert_int_equal(taken, 0);
        }
        rv_buf_fini(&run.out);
        rv_http1_fini(&p);
        assert_int_equal(p.head.size, 0);
}

static void table(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                for (size_t k = 0; k < i; k++)
                        if (strcmp(rows[i].name, rows[k].name) == 0)
                                fail_msg("two rows named %s", rows[i].name);
                check(&rows[i], SIZE_MAX);
                for (size_t piece = 1; piece < rows[i].n; piece = piece < 8 ? piece + 1 : piece * 2)
                        check(&rows[i], piece);
        }
        print_message("%zu rows\n", RV_N_ELEMENTS(rows));
}

/* Cut in two at every place. */
static void cut_everywhere(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                for (size_t cut = 1; cut < rows[i].n; cut++) {
                        struct run whole = { 0 }, parts = { 0 };
                        struct rv_http1 p = { 0 }, q = { 0 };

                        feed(&p, rows[i].input, rows[i].n, &whole);
                        feed(&q, rows[i].input, cut, &parts);
                        feed(&q, rows[i].input + cut, rows[i].n - cut, &parts);
                        assert_string_equal(whole.trace, parts.trace);
                        assert_int_equal(p.denial, q.denial);
                        if (!whole.is_refused && whole.out.size != parts.out.size)
                                fail_msg("%s, cut at %zu", rows[i].name, cut);
                        rv_buf_fini(&whole.out);
                        rv_buf_fini(&parts.out);
                        rv_http1_fini(&p);
                        rv_http1_fini(&q);
                }
        }
}

/* @fixed, then @unit @times over, then @rest. */
static void check_repeated(
        const char *name, const char *fixed, const char *unit, size_t times, const char *rest, const char *wanted)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        struct row row = { .name = name, .wanted = wanted };

        rv_buf_puts(&b, fixed);
        for (size_t i = 0; i < times; i++)
                rv_buf_puts(&b, unit);
        rv_buf_puts(&b, rest);
        assert_int_equal(rv_buf_error(&b), 0);
        row.input = b.data;
        row.n = b.size;
        check(&row, SIZE_MAX);
        check(&row, 1);
        check(&row, 1000);
}

static void bounds(void **state)
{
        const size_t n_fixed = strlen(GET "A: " E E);

        check_repeated("most fields", "GET / HTTP/1.1" E HOST, "A: b" E, RV_HTTP1_FIELDS_MAX - 1, E, "GET example.com .");
        check_repeated("one too many", "GET / HTTP/1.1" E HOST, "A: b" E, RV_HTTP1_FIELDS_MAX, E, "!http-too-large");
        check_repeated("longest head", GET "A: ", "x", RV_HTTP1_HEAD_MAX - n_fixed, E E, "GET example.com .");
        check_repeated("a byte more", GET "A: ", "x", RV_HTTP1_HEAD_MAX - n_fixed + 1, E E, "!http-too-large");
        check_repeated("endless line", "GET /", "x", 100000, "", "!http-too-large");
        check_repeated("longest extension", POST TE E "1;", "x", RV_HTTP1_EXTENSION_MAX, E "y" E "0" E E, "POST example.com .");
        check_repeated("longer", POST TE E "1;", "x", RV_HTTP1_EXTENSION_MAX + 1, E "y" E "0" E E, "POST example.com !http-too-large");
        check_repeated("each chunk has an extension", POST TE E, "1;" "0123456789012345678901234567890123456789" E "x" E, 100, "0" E E, "POST example.com .");
        check_repeated("most trailers", POST TE E "0" E, "A: b" E, RV_HTTP1_TRAILERS_MAX, E, "POST example.com .");
        check_repeated("one trailer too many", POST TE E "0" E, "A: b" E, RV_HTTP1_TRAILERS_MAX + 1, E, "POST example.com !http-too-large");
        check_repeated("longest trailer", POST TE E "0" E "A:", "x", RV_HTTP1_TRAILER_MAX - 2, E E, "POST example.com .");
        check_repeated("longer trailer", POST TE E "0" E "A:", "x", RV_HTTP1_TRAILER_MAX - 1, E E, "POST example.com !http-too-large");
        check_repeated("long trailers together", POST TE E "0" E, "A: 0123456789" E, RV_HTTP1_TRAILERS_MAX, E, "POST example.com .");
        check_repeated("trailers are counted for each request", POST TE E "1;x" E "y" E "0" E "A: b" E E POST TE E "0" E, "A: b" E, RV_HTTP1_TRAILERS_MAX, E,
                "POST example.com POST example.com .");
        check_repeated("extensions are counted for each chunk", POST TE E "1;x" E "y" E "1;", "x", RV_HTTP1_EXTENSION_MAX, E "y" E "0" E E, "POST example.com .");
        check_repeated("body of many pieces", POST "Content-Length: 100000" E E, "0123456789", 10000, GET E, "POST example.com GET example.com .");
}

/* Requests over and over on one connection keep no memory but the head's. */
static void many_requests(void **state)
{
        static const char request[] = POST "Content-Length: 3" E E "abc";
        struct rv_http1 p = { 0 };

        for (uint64_t i = 0; i < 2000; i++) {
                size_t taken;

                assert_int_equal(rv_http1_feed(&p, request, sizeof(request) - 1, &taken), RV_HTTP1_HEAD);
                assert_int_equal(taken, sizeof(request) - 4);
                assert_int_equal(p.n_content, 3);
                assert_int_equal(p.n_requests, i + 1);
                assert_false(rv_http1_is_between(&p));
                assert_int_equal(rv_http1_feed(&p, "abc", 3, &taken), RV_HTTP1_BODY);
                assert_true(rv_http1_is_between(&p));
        }
        assert_true(p.head.capacity < 4096);
        rv_http1_fini(&p);
}

static void what_a_head_tells(void **state)
{
        static const char head[] = "PATCH /a?b HTTP/1.0" E "Host:  EXAMPLE.com:81 " E "Content-Length: 12" E E;
        struct rv_http1 p = { 0 };
        size_t taken;

        assert_int_equal(rv_http1_feed(&p, head, sizeof(head) - 1, &taken), RV_HTTP1_HEAD);
        assert_int_equal(p.n_method, 5);
        assert_memory_equal(p.method, "PATCH", 5);
        assert_int_equal(p.n_target, 4);
        assert_memory_equal(p.target, "/a?b", 4);
        assert_int_equal(p.n_host_text, 14);
        assert_memory_equal(p.host_text, "EXAMPLE.com:81", 14);
        assert_true(p.minor == 0 && p.n_content == 12 && !p.is_chunked && p.host.port == 81);
        assert_int_equal(rv_http1_feed(&p, "x", 0, &taken), RV_HTTP1_MORE);
        assert_int_equal(taken, 0);
        rv_http1_fini(&p);
        assert_int_equal(rv_http1_status(RV_DENIAL_HTTP_EXPECT), 417);
        assert_int_equal(rv_http1_status(RV_DENIAL_NAME), 403);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(table), cmocka_unit_test(cut_everywhere), cmocka_unit_test(bounds),
                cmocka_unit_test(many_requests), cmocka_unit_test(what_a_head_tells),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
