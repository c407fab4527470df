/* What a client speaks: every answer, at every length, in time and when the time is over. */
#include "egress/classify.h"

#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define X32 "abcdefghijklmnopqrstuvwxyz012345"

static const struct {
        const char *name, *data;
        size_t n;
        enum rv_protocol in_time, late;   /* while more is waited for; when no more is */
} rows[] = {
#define ROW(name, data, in_time, late) { name, data, sizeof(data) - 1, RV_PROTOCOL_##in_time, RV_PROTOCOL_##late }
#define SURE(name, data, what) ROW(name, data, what, what)
        ROW("nothing", "", MORE, SILENT),
        ROW("one byte of TLS", "\x16", MORE, TLS),
        SURE("TLS 1.0 record", "\x16\3\1", TLS),
        SURE("TLS 1.2 record", "\x16\3\3\2\0\1\0\1", TLS),
        SURE("two bytes of TLS", "\x16\3", TLS),
        SURE("0x16 and another version", "\x16\2", OTHER),
        SURE("TLS alert", "\x15\3\1\0\2", OTHER),
        SURE("TLS application data", "\x17\3\3\0\1", OTHER),
        SURE("SSLv2", "\x80\x2e\1\0\2\0\x15", SSLV2),
        SURE("SSLv2 hello for TLS 1.0", "\x80\x67\1\3\1\0\x4e", SSLV2),
        SURE("SSLv2, long", "\xff\xff\1\3\3", SSLV2),
        ROW("SSLv2, slow", "\x80\x2e\1\3", MORE, SSLV2),
        ROW("0x80 alone", "\x80", MORE, SSLV2),
        SURE("high bit, no hello", "\x80\x2e\2", OTHER),
        SURE("high bit, version 1", "\x80\x2e\1\1", OTHER),
        SURE("high bit, version 0.3", "\x80\x2e\1\0\3", OTHER),
        SURE("telnet's negotiation", "\xff\xfd\3\xff\xfb\1", OTHER),
        SURE("GET", "GET / HTTP/1.1\r\n", HTTP),
        SURE("GET, 5 bytes", "GET /", HTTP),
        ROW("GET, 4 bytes", "GET ", MORE, HTTP),
        ROW("GET, 3 bytes", "GET", MORE, HTTP),
        ROW("G", "G", MORE, HTTP),
        SURE("OPTIONS *", "OPTIONS * HTTP/1.1\r\n", HTTP),
        ROW("OPTIONS * and no more", "OPTIONS *", MORE, HTTP),
        SURE("absolute target", "GET http://example.com/", HTTP),
        SURE("absolute target of another scheme", "GET x://example.com/", HTTP),
        SURE("CONNECT", "CONNECT example.com:443 HTTP/1.1", HTTP),
        ROW("CONNECT, 8 bytes", "CONNECT ", MORE, HTTP),
        SURE("target without a slash", "GET foo HTTP/1.1\r\n", HTTP),
        SURE("two spaces", "GET  / HTTP/1.1", HTTP),
        SURE("tab", "GET\t/", HTTP),
        SURE("vertical tab", "GET\v/", HTTP),
        SURE("lower case", "get / HTTP/1.1", HTTP),
        SURE("unknown method", "FROBNICATE /", HTTP),
        SURE("odd method", "!#$%&'*+-.^_`|~ /", HTTP),
        ROW("8 bytes of a long method", "VERSION-", MORE, HTTP),
        SURE("long method", X32 X32 " / HTTP/1.1", HTTP),
        SURE("endless method", X32 X32 X32 X32 X32 X32 X32 X32, HTTP),
        SURE("endless line", "A " X32 X32 X32 X32 X32 X32 X32 X32, HTTP),
        SURE("CRLF before", "\r\nGET / HTTP/1.1", HTTP),
        SURE("many CRLF before", "\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1", HTTP),
        SURE("bare LF before", "\nGET /", HTTP),
        SURE("space before", " GET /", HTTP),
        ROW("CRLF alone", "\r\n\r\n\r\n\r\n", MORE, HTTP),
        SURE("HTTP/0.9", "GET /\r\n", HTTP),
        SURE("PRI", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", PRI),
        SURE("PRI, 8 bytes", "PRI * HT", PRI),
        SURE("PRI, 4 bytes", "PRI ", PRI),
        ROW("PRI, 3 bytes", "PRI", MORE, HTTP),
        SURE("CRLF and PRI", "\r\nPRI *", PRI),
        SURE("PRIVMSG", "PRIVMSG x\r\n", OTHER),
        SURE("SSH", "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n", OTHER),
        ROW("SSH, slow", "SSH-2.0-Ope", MORE, HTTP),
        SURE("IRC", "NICK someone\r\nUSER a b c :d/e\r\n", OTHER),
        SURE("memcached", "get key\r\n", OTHER),
        SURE("Redis", "*1\r\n$4\r\nPING\r\n", OTHER),
        SURE("Redis, inline", "PING\r\n", OTHER),
        SURE("whois", "example.com\r\n", OTHER),
        SURE("STOMP", "CONNECT\naccept-version:1.2\n\n", OTHER),
        SURE("PostgreSQL", "\0\0\0\x08\4\xd2\x16\x2f", OTHER),
        SURE("MQTT", "\x10\x0c\0\4MQTT", OTHER),
        SURE("AMQP", "AMQP\0\0\x09\1", OTHER),
        SURE("JSON", "{\"a\":1}", OTHER),
        SURE("XMPP", "<?xml version='1.0'?>", OTHER),
        SURE("Gopher", "/path\r\n", OTHER),
        SURE("method and colon", "GET: /", OTHER),
        SURE("method and slash", "GET/ HTTP/1.1", OTHER),
        SURE("NUL", "\0", OTHER),
        SURE("CRLF and NUL", "\r\n\0", OTHER),
        SURE("0x7f", "\x7f" "GET /", OTHER),
#undef SURE
#undef ROW
};

static enum rv_protocol classify(const char *data, size_t n, bool is_last)
{
        char *exact = malloc(n ? n : 1);
        enum rv_protocol protocol;

        assert_non_null(exact);
        memcpy(exact, data, n);
        protocol = rv_protocol_classify(exact, n, is_last);
        free(exact);
        return protocol;
}

static void table(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                enum rv_protocol in_time = classify(rows[i].data, rows[i].n, false),
                                 late = classify(rows[i].data, rows[i].n, true);

                if (in_time != rows[i].in_time || late != rows[i].late)
                        fail_msg("%s: %d, %d", rows[i].name, in_time, late);
        }
}

/* An answer that was given stays, and what is given late never turns HTTP or TLS into something that passes. */
static void answers_hold(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                enum rv_protocol before = RV_PROTOCOL_MORE;

                for (size_t n = 0; n <= rows[i].n; n++) {
                        enum rv_protocol now = classify(rows[i].data, n, false), late = classify(rows[i].data, n, true);

                        if (before != RV_PROTOCOL_MORE && now != before)
                                fail_msg("%s: %d, after %zu bytes %d", rows[i].name, before, n, now);
                        if (late == RV_PROTOCOL_MORE || (now != RV_PROTOCOL_MORE && late != now))
                                fail_msg("%s: %d in time, %d late, at %zu bytes", rows[i].name, now, late, n);
                        if (now == RV_PROTOCOL_MORE && n > 0 && late == RV_PROTOCOL_OTHER)
                                fail_msg("%s: slow bytes pass at %zu", rows[i].name, n);
                        before = now;
                }
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = { cmocka_unit_test(table), cmocka_unit_test(answers_hold) };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
