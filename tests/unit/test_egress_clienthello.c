/* ClientHellos, whole and in every kind of pieces: the name that is asked for, or why there is none. */
#include "egress/clienthello.h"

#include <stdio.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define R32 "0123456789abcdef0123456789abcdef"
#define START "\3\3" R32 "\0" "\0\2\x13\1" "\1\0"   /* version, random, no session, one cipher, no compression */
#define SNI(list) "\0\0" list
#define EXAMPLE SNI("\0\x10\0\x0e\0\0\x0b" "example.com")
#define GREASE "\x1a\x1a\0\0"
#define ECH "\xfe\x0d\0\x08\0\0\1\0\1\x2a\0\0"
#define VERSIONS "\0\x2b\0\3\2\3\4"

static const struct row {
        const char *name, *start;
        size_t n_start;
        const char *extensions;   /* NULL: none, not even their length */
        size_t n_extensions;
        enum rv_hello_event event;
        const char *wanted;       /* the name, or the denial's word */
} rows[] = {
#define BYTES(text) text, sizeof(text) - 1
#define EXT(name, extensions, event, wanted) { name, BYTES(START), BYTES(extensions), RV_HELLO_##event, wanted }
#define BODY(name, start, event, wanted) { name, BYTES(start), NULL, 0, RV_HELLO_##event, wanted }
        EXT("a name", EXAMPLE, NAMED, "example.com"),
        EXT("among others", GREASE VERSIONS EXAMPLE ECH GREASE, NAMED, "example.com"),
        EXT("the outer name beside ECH", ECH EXAMPLE, NAMED, "example.com"),
        EXT("name as it was sent", SNI("\0\x11\0\x0f\0\0\x0c" "EXAMPLE.com."), NAMED, "EXAMPLE.com."),
        EXT("an address", SNI("\0\x0d\0\x0b\0\0\x08" "10.0.0.1"), NAMED, "10.0.0.1"),
        EXT("bytes that are no name", SNI("\0\x08\0\6\0\0\3" "a b"), NAMED, "a b"),
        EXT("one byte", SNI("\0\6\0\4\0\0\1" "x"), NAMED, "x"),
        EXT("TLS 1.3 padding after it", EXAMPLE "\0\x15\0\4\0\0\0\0", NAMED, "example.com"),
        EXT("unknown extension", "\xff\x01\0\1\0" EXAMPLE, NAMED, "example.com"),
        EXT("early data", EXAMPLE "\0\x2a\0\0", NAMED, "example.com"),
        EXT("an extension twice that is no name", GREASE GREASE EXAMPLE, NAMED, "example.com"),

        EXT("no extension", "", NO_NAME, "tls-no-name"),
        EXT("other extensions", GREASE VERSIONS, NO_NAME, "tls-no-name"),
        EXT("ECH alone", ECH, NO_NAME, "tls-no-name"),
        BODY("no extensions' length", START, NO_NAME, "tls-no-name"),
        BODY("SSL 3.0", "\3\0" R32 "\0" "\0\2\0\x0a" "\1\0", NO_NAME, "tls-no-name"),

        EXT("twice", EXAMPLE EXAMPLE, REFUSED, "tls-names"),
        EXT("twice, apart", EXAMPLE GREASE EXAMPLE, REFUSED, "tls-names"),
        EXT("two in a list", SNI("\0\x0c\0\x0a\0\0\2" "ab" "\0\0\2" "cd"), REFUSED, "tls-names"),
        EXT("another type", SNI("\0\7\0\5\1\0\2" "ab"), REFUSED, "tls-names"),
        EXT("another type behind", SNI("\0\x0c\0\x0a\0\0\2" "ab" "\1\0\2" "cd"), REFUSED, "tls-names"),
        EXT("empty name", SNI("\0\5\0\3\0\0\0"), REFUSED, "tls-names"),
        EXT("empty list", SNI("\0\2\0\0"), REFUSED, "tls-names"),
        EXT("empty extension", SNI("\0\0"), REFUSED, "tls-malformed"),
        EXT("list shorter than the extension", SNI("\0\x11\0\x0e\0\0\x0b" "example.com\0"), REFUSED, "tls-malformed"),
        EXT("list longer than the extension", SNI("\0\x10\0\x0f\0\0\x0b" "example.com"), REFUSED, "tls-malformed"),
        EXT("name longer than the list", SNI("\0\x10\0\x0e\0\0\x0c" "example.com"), REFUSED, "tls-malformed"),
        EXT("name's length cut", SNI("\0\4\0\2\0\0"), REFUSED, "tls-malformed"),
        EXT("byte behind the name", SNI("\0\x11\0\x0f\0\0\x0b" "example.com\0"), REFUSED, "tls-names"),
        EXT("extension past the end", EXAMPLE "\0\x2b\0\4\2\3\4", REFUSED, "tls-malformed"),
        EXT("half an extension's head", EXAMPLE "\0\x2b\0", REFUSED, "tls-malformed"),
        BODY("byte behind extensions", START "\0\0\0", REFUSED, "tls-malformed"),
        BODY("extensions past the end", START "\0\4\x1a\x1a\0", REFUSED, "tls-malformed"),
        BODY("half an extensions' length", START "\0", REFUSED, "tls-malformed"),
        BODY("empty", "", REFUSED, "tls-malformed"),
        BODY("version alone", "\3\3", REFUSED, "tls-malformed"),
        BODY("version 2", "\2\3" R32 "\0" "\0\2\x13\1" "\1\0", REFUSED, "tls-malformed"),
        BODY("version 4", "\4\0" R32 "\0" "\0\2\x13\1" "\1\0", REFUSED, "tls-malformed"),
        BODY("session of 33", "\3\3" R32 "\x21" R32 "x" "\0\2\x13\1" "\1\0", REFUSED, "tls-malformed"),
        BODY("session of 32", "\3\3" R32 "\x20" R32 "\0\2\x13\1" "\1\0", NO_NAME, "tls-no-name"),
        BODY("no ciphers", "\3\3" R32 "\0" "\0\0" "\1\0", REFUSED, "tls-malformed"),
        BODY("half a cipher", "\3\3" R32 "\0" "\0\3\x13\1\x13" "\1\0", REFUSED, "tls-malformed"),
        BODY("no compression", "\3\3" R32 "\0" "\0\2\x13\1" "\0", REFUSED, "tls-malformed"),
        BODY("ciphers past the end", "\3\3" R32 "\0" "\x13\2\x13\1" "\1\0", REFUSED, "tls-malformed"),
#undef BODY
#undef EXT
};

/* OpenSSL 3.0, TLS 1.2, as it was on the wire. */
static const uint8_t real[] = {
        0x16, 0x03, 0x01, 0x00, 0xcf, 0x01, 0x00, 0x00, 0xcb, 0x03, 0x03, 0x3c,
        0x47, 0xf7, 0x3a, 0x00, 0x30, 0x64, 0xca, 0x6a, 0x1a, 0x5e, 0x1b, 0x5b,
        0xda, 0xfe, 0x96, 0x68, 0xc9, 0x3a, 0x84, 0x07, 0x0c, 0xd2, 0x8b, 0x74,
        0x3d, 0x5e, 0x02, 0x15, 0xd6, 0x21, 0x80, 0x00, 0x00, 0x38, 0xc0, 0x2c,
        0xc0, 0x30, 0x00, 0x9f, 0xcc, 0xa9, 0xcc, 0xa8, 0xcc, 0xaa, 0xc0, 0x2b,
        0xc0, 0x2f, 0x00, 0x9e, 0xc0, 0x24, 0xc0, 0x28, 0x00, 0x6b, 0xc0, 0x23,
        0xc0, 0x27, 0x00, 0x67, 0xc0, 0x0a, 0xc0, 0x14, 0x00, 0x39, 0xc0, 0x09,
        0xc0, 0x13, 0x00, 0x33, 0x00, 0x9d, 0x00, 0x9c, 0x00, 0x3d, 0x00, 0x3c,
        0x00, 0x35, 0x00, 0x2f, 0x00, 0xff, 0x01, 0x00, 0x00, 0x6a, 0x00, 0x00,
        0x00, 0x14, 0x00, 0x12, 0x00, 0x00, 0x0f, 0x77, 0x77, 0x77, 0x2e, 0x65,
        0x78, 0x61, 0x6d, 0x70, 0x6c, 0x65, 0x2e, 0x63, 0x6f, 0x6d, 0x00, 0x0b,
        0x00, 0x04, 0x03, 0x00, 0x01, 0x02, 0x00, 0x0a, 0x00, 0x0c, 0x00, 0x0a,
        0x00, 0x1d, 0x00, 0x17, 0x00, 0x1e, 0x00, 0x19, 0x00, 0x18, 0x00, 0x23,
        0x00, 0x00, 0x00, 0x16, 0x00, 0x00, 0x00, 0x17, 0x00, 0x00, 0x00, 0x0d,
        0x00, 0x2a, 0x00, 0x28, 0x04, 0x03, 0x05, 0x03, 0x06, 0x03, 0x08, 0x07,
        0x08, 0x08, 0x08, 0x09, 0x08, 0x0a, 0x08, 0x0b, 0x08, 0x04, 0x08, 0x05,
        0x08, 0x06, 0x04, 0x01, 0x05, 0x01, 0x06, 0x01, 0x03, 0x03, 0x03, 0x01,
        0x03, 0x02, 0x04, 0x02, 0x05, 0x02, 0x06, 0x02
};

static void append_number(struct rv_buf *b, size_t value, size_t n_bytes)
{
        while (n_bytes-- > 0)
                rv_buf_putc(b, (char)(value >> (8 * n_bytes)));
}

static void append_message(const struct row *row, struct rv_buf *ret)
{
        size_t n_extensions = row->extensions ? 2 + row->n_extensions : 0;

        rv_buf_putc(ret, 1);
        append_number(ret, row->n_start + n_extensions, 3);
        rv_buf_append(ret, row->start, row->n_start);
        if (row->extensions) {
                append_number(ret, row->n_extensions, 2);
                rv_buf_append(ret, row->extensions, row->n_extensions);
        }
}

/* In records of @n_record bytes. */
static void append_records(const char *message, size_t n, size_t n_record, struct rv_buf *ret)
{
        for (size_t at = 0, piece; at < n; at += piece) {
                piece = RV_MIN(n_record, n - at);
                append_number(ret, 0x160301, 3);
                append_number(ret, piece, 2);
                rv_buf_append(ret, message + at, piece);
        }
        assert_int_equal(rv_buf_error(ret), 0);
}

/* Each piece in memory of its own, so that a sanitizer finds what reads past it. */
static int feed(struct rv_hello *h, const void *data, size_t n, size_t n_piece)
{
        int r = h->event;

        for (size_t at = 0, piece; at < n; at += piece) {
                char *exact;

                piece = RV_MIN(n_piece, n - at);
                exact = malloc(piece);
                assert_non_null(exact);
                memcpy(exact, (const char *)data + at, piece);
                r = rv_hello_feed(h, exact, piece);
                free(exact);
                assert_int_equal(r, h->event);
        }
        return r;
}

static void check(
        const char *name, const void *data, size_t n, size_t n_piece, enum rv_hello_event event, const char *wanted)
{
        struct rv_hello h = { 0 };
        int r = feed(&h, data, n, n_piece);

        if (r != (int)event)
                fail_msg("%s, pieces of %zu: event %d, %s", name, n_piece, r, rv_denial_word(h.denial));
        if (event == RV_HELLO_NAMED ? h.n_name != strlen(wanted) || memcmp(h.name, wanted, h.n_name) != 0
                                    : strcmp(rv_denial_word(h.denial), wanted) != 0)
                fail_msg("%s, pieces of %zu: \"%.*s\", %s", name, n_piece, (int)h.n_name, h.name ? h.name : "", rv_denial_word(h.denial));
        rv_hello_fini(&h);
        assert_int_equal(h.message.size, 0);
}

static void table(void **state)
{
        static const size_t records[] = { 16384, 1, 2, 3, 4, 5, 7, 64 }, pieces[] = { SIZE_MAX, 1, 2, 3, 5, 6, 50 };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_buf_fini) struct rv_buf message = { 0 };

                append_message(&rows[i], &message);
                for (size_t k = 0; k < RV_N_ELEMENTS(records); k++) {
                        _cleanup_(rv_buf_fini) struct rv_buf wire = { 0 };

                        append_records(message.data, message.size, records[k], &wire);
                        for (size_t m = 0; m < RV_N_ELEMENTS(pieces); m++)
                                check(rows[i].name, wire.data, wire.size, pieces[m], rows[i].event, rows[i].wanted);
                }
        }
        print_message("%zu rows\n", RV_N_ELEMENTS(rows));
}

/* Before its last byte there is no answer; what follows the hello is not looked at. */
static void ends_where_it_ends(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf more = { 0 };
        struct rv_hello h = { 0 };

        assert_int_equal(feed(&h, real, sizeof(real) - 1, 1), RV_HELLO_MORE);
        assert_int_equal(feed(&h, real + sizeof(real) - 1, 1, 1), RV_HELLO_NAMED);
        assert_int_equal(h.n_fed, sizeof(real));
        rv_hello_fini(&h);
        rv_buf_append(&more, real, sizeof(real));
        rv_buf_append(&more, "\x17\3\3\0\5early", 10);
        for (size_t piece = 1; piece < 300; piece += 7) {
                assert_int_equal(feed(&h, more.data, more.size, piece), RV_HELLO_NAMED);
                assert_int_equal(h.n_fed, sizeof(real));
                assert_int_equal(h.n_name, 15);
                assert_memory_equal(h.name, "www.example.com", 15);
                rv_hello_fini(&h);
        }
        assert_int_equal(rv_hello_feed(&h, NULL, 0), RV_HELLO_MORE);
        rv_hello_fini(&h);
}

static void wire_rows(void **state)
{
        static const struct {
                const char *name, *data;
                size_t n;
                enum rv_hello_event event;
                const char *word;
        } cases[] = {
                { "HTTP", BYTES("GET / HTTP/1.1\r\n"), RV_HELLO_NOT_TLS, "" },
                { "SSLv2", BYTES("\x80\x2e\1\0\2\0\x15\0\0\0\x10"), RV_HELLO_NOT_TLS, "" },
                { "another version", BYTES("\x16\2\0\0\1"), RV_HELLO_NOT_TLS, "" },
                { "version 4", BYTES("\x16\4"), RV_HELLO_NOT_TLS, "" },
                { "alert", BYTES("\x15\3\1\0\2\2\0"), RV_HELLO_NOT_TLS, "" },
                { "application data", BYTES("\x17\3\3\0\2ab"), RV_HELLO_NOT_TLS, "" },
                { "any minor version", BYTES("\x16\3\xff\0\1\1"), RV_HELLO_MORE, "" },
                { "empty record", BYTES("\x16\3\1\0\0"), RV_HELLO_REFUSED, "tls-malformed" },
                { "record of 16384", BYTES("\x16\3\1\x40\0\1"), RV_HELLO_MORE, "" },
                { "record of 16385", BYTES("\x16\3\1\x40\1"), RV_HELLO_REFUSED, "tls-malformed" },
                { "ServerHello", BYTES("\x16\3\1\0\4\2\0\0\0"), RV_HELLO_REFUSED, "tls-malformed" },
                { "HelloRequest", BYTES("\x16\3\1\0\4\0"), RV_HELLO_REFUSED, "tls-malformed" },
                { "alert in between", BYTES("\x16\3\1\0\1\1\x15\3\1\0\2"), RV_HELLO_REFUSED, "tls-malformed" },
                { "another version in between", BYTES("\x16\3\1\0\1\1\x16\2"), RV_HELLO_REFUSED, "tls-malformed" },
                { "empty record in between", BYTES("\x16\3\1\0\1\1\x16\3\1\0\0"), RV_HELLO_REFUSED, "tls-malformed" },
                { "16 MiB of message", BYTES("\x16\3\1\0\4\1\xff\xff\xff"), RV_HELLO_REFUSED, "tls-too-large" },
                { "64 KiB of message, too large with its head", BYTES("\x16\3\1\0\4\1\0\xff\xfd"), RV_HELLO_REFUSED, "tls-too-large" },
                { "a byte less", BYTES("\x16\3\1\0\4\1\0\xff\xfc"), RV_HELLO_MORE, "" },
                { "message shorter than its record", BYTES("\x16\3\1\0\5\1\0\0\0\0"), RV_HELLO_REFUSED, "tls-malformed" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(cases); i++)
                for (size_t piece = 1; piece <= cases[i].n; piece++)
                        check(cases[i].name, cases[i].data, cases[i].n, piece, cases[i].event, cases[i].word);
}

/* A hello with @n_padding bytes before its name, in records of @n_record bytes. */
static void build_padded(size_t n_padding, size_t n_record, struct rv_buf *ret)
{
        static const char name[] = EXAMPLE;
        _cleanup_(rv_buf_fini) struct rv_buf extensions = { 0 }, message = { 0 };
        struct row row = { .start = START, .n_start = sizeof(START) - 1 };

        append_number(&extensions, 0x0015, 2);
        append_number(&extensions, n_padding, 2);
        for (size_t i = 0; i < n_padding; i++)
                rv_buf_putc(&extensions, 0);
        rv_buf_append(&extensions, name, sizeof(name) - 1);
        row.extensions = extensions.data;
        row.n_extensions = extensions.size;
        append_message(&row, &message);
        append_records(message.data, message.size, n_record, ret);
}

static void as_large_as_it_may_be(void **state)
{
        static const size_t records[] = { 16384, 1400, 100, 1 };

        for (size_t i = 0; i < RV_N_ELEMENTS(records); i++) {
                _cleanup_(rv_buf_fini) struct rv_buf wire = { 0 }, probe = { 0 };
                size_t n = 1000, n_fit, fixed;

                /* The most padding that fits: look from below, since each record has a head of its own. */
                build_padded(0, 16384, &probe);
                fixed = probe.size - 5;
                n_fit = RV_HELLO_BYTES_MAX / (records[i] + 5) * records[i] +
                        RV_MAX(RV_HELLO_BYTES_MAX % (records[i] + 5), (size_t)5) - 5;
                n = n_fit - fixed;
                build_padded(n, records[i], &wire);
                assert_in_range(wire.size, RV_HELLO_BYTES_MAX - 5, RV_HELLO_BYTES_MAX);
                check("fits", wire.data, wire.size, SIZE_MAX, RV_HELLO_NAMED, "example.com");
                check("fits", wire.data, wire.size, 1, RV_HELLO_NAMED, "example.com");
                rv_buf_fini(&wire);
                build_padded(n + 6, records[i], &wire);
                check("too large", wire.data, wire.size, SIZE_MAX, RV_HELLO_REFUSED, "tls-too-large");
                check("too large", wire.data, wire.size, 1, RV_HELLO_REFUSED, "tls-too-large");
        }
}

/* A post-quantum key share makes a hello of more than one segment. */
static void two_segments(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf wire = { 0 };

        build_padded(1600, 16384, &wire);
        check("two segments", wire.data, wire.size, 1448, RV_HELLO_NAMED, "example.com");
}

/* A byte more in the record that ends the hello. */
static void record_goes_on(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf message = { 0 };

        append_message(&rows[0], &message);
        rv_buf_putc(&message, 0);
        for (size_t n_record = 16; n_record < 200; n_record++) {
                _cleanup_(rv_buf_fini) struct rv_buf wire = { 0 };
                bool is_alone = (message.size - 1) % n_record == 0;   /* in a record of its own, which is not looked at */

                append_records(message.data, message.size, n_record, &wire);
                check("goes on", wire.data, wire.size, SIZE_MAX, is_alone ? RV_HELLO_NAMED : RV_HELLO_REFUSED,
                        is_alone ? "example.com" : "tls-malformed");
                check("goes on", wire.data, wire.size, 1, is_alone ? RV_HELLO_NAMED : RV_HELLO_REFUSED,
                        is_alone ? "example.com" : "tls-malformed");
        }
}

static void final_is_final(void **state)
{
        struct rv_hello h = { 0 };

        assert_int_equal(feed(&h, "GET", 3, 3), RV_HELLO_NOT_TLS);
        assert_int_equal(feed(&h, real, sizeof(real), SIZE_MAX), RV_HELLO_NOT_TLS);
        assert_int_equal(h.n_fed, 1);
        rv_hello_fini(&h);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(table),
                cmocka_unit_test(ends_where_it_ends),
                cmocka_unit_test(wire_rows),
                cmocka_unit_test(as_large_as_it_may_be),
                cmocka_unit_test(two_segments),
                cmocka_unit_test(final_is_final),
                cmocka_unit_test(record_goes_on),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
