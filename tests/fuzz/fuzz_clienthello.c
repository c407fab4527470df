/*
 * ClientHellos: the same answer however the bytes come, a name that stands in them, and TLS in the eyes of the
 * classification too. The first bytes of an input say how it is split and whether the rest is what is on the wire, or a
 * ClientHello's body that is still to be put into records: so the fuzzer need not find three lengths that agree.
 */
#include "fuzz.h"

#include "egress/classify.h"
#include "egress/clienthello.h"

static void put_record(struct rv_buf *wire, const char *data, size_t n)
{
        const char head[] = { 0x16, 3, 1, (char)(n >> 8), (char)n };

        rv_buf_append(wire, head, sizeof(head));
        rv_buf_append(wire, data, n);
}

static void wrap(struct rv_buf *wire, const uint8_t *body, size_t n, size_t n_record)
{
        const char head[] = { 1, (char)(n >> 16), (char)(n >> 8), (char)n };
        _cleanup_(rv_buf_fini) struct rv_buf message = { 0 };

        rv_buf_append(&message, head, sizeof(head));
        rv_buf_append(&message, body, n);
        for (size_t at = 0; at < message.size; at += n_record)
                put_record(wire, message.data + at, RV_MIN(n_record, message.size - at));
}

/* @step: a piece's size; 0: sizes from a sequence that @seed begins. */
static void feed(struct rv_hello *h, const char *data, size_t n, size_t step, uint32_t seed)
{
        for (size_t at = 0, piece; at < n; at += piece) {
                int r;

                seed = seed * 1664525 + 1013904223;
                piece = RV_MIN(step ? step : 1 + (seed >> 24) % 9, n - at);
                r = rv_hello_feed(h, data + at, piece);
                FUZZ_CHECK(r == (int)h->event && r >= 0);
                FUZZ_CHECK(h->n_fed <= at + piece && h->n_fed <= RV_HELLO_BYTES_MAX);
        }
}

/* The hello ends where a record ends, as the heads of the records tell. */
static void check_end(const struct rv_hello *h, const char *data)
{
        const uint8_t *p = (const uint8_t *)data;
        size_t at = 0;

        while (at < h->n_fed)
                at += 5u + ((size_t)p[at + 3] << 8 | p[at + 4]);
        FUZZ_CHECK(at == h->n_fed, "%zu, %zu", at, h->n_fed);
}

static void check(const struct rv_hello *h, const char *data, size_t n)
{
        struct rv_hostname host;

        FUZZ_CHECK(h->message.size <= h->n_fed);
        FUZZ_CHECK((h->event == RV_HELLO_REFUSED || h->event == RV_HELLO_NO_NAME) == (h->denial != RV_DENIAL_NONE));
        if (h->event == RV_HELLO_NAMED) {
                FUZZ_CHECK(h->n_name > 0 && h->name >= h->message.data &&
                        h->name + h->n_name <= h->message.data + h->message.size);
                rv_hostname_parse(h->name, h->n_name, RV_HOSTNAME_BARE, &host);
        }
        if (h->event == RV_HELLO_NAMED || h->event == RV_HELLO_NO_NAME)
                check_end(h, data);
        if (h->event == RV_HELLO_NAMED || h->event == RV_HELLO_NO_NAME)
                FUZZ_CHECK(rv_protocol_classify(data, n, false) == RV_PROTOCOL_TLS);
        if (n > 1 && rv_protocol_classify(data, n, true) == RV_PROTOCOL_TLS)
                FUZZ_CHECK(h->event != RV_HELLO_NOT_TLS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        uint32_t seed = fuzz_byte(&in);
        size_t n_record = fuzz_byte(&in);
        _cleanup_(rv_buf_fini) struct rv_buf wire = { 0 };
        struct rv_hello whole = { 0 }, bytes = { 0 }, pieces = { 0 };

        if (n_record)
                wrap(&wire, in.data, in.size, n_record == 255 ? 16384 : n_record);
        else
                rv_buf_append(&wire, in.data, in.size);
        FUZZ_CHECK(rv_buf_error(&wire) == 0);
        feed(&whole, wire.data, wire.size, SIZE_MAX, 0);
        feed(&bytes, wire.data, wire.size, 1, 0);
        feed(&pieces, wire.data, wire.size, 0, seed);
        FUZZ_CHECK(whole.event == bytes.event && whole.event == pieces.event, "%d %d %d", whole.event, bytes.event, pieces.event);
        FUZZ_CHECK(whole.denial == bytes.denial && whole.denial == pieces.denial);
        FUZZ_CHECK(whole.n_name == bytes.n_name && whole.n_name == pieces.n_name);
        FUZZ_CHECK(whole.n_name == 0 || memcmp(whole.name, bytes.name, whole.n_name) == 0);
        check(&whole, wire.data, wire.size);
        check(&bytes, wire.data, wire.size);
        rv_hello_fini(&whole);
        rv_hello_fini(&bytes);
        rv_hello_fini(&pieces);
        return 0;
}
