#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audit/checkpoint.h"

/* RFC 8032, section 7.1, TEST 1. */
static const uint8_t secret[RV_CHECKPOINT_KEY_BYTES] = {
        0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
        0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
};
static const char public_hex[] = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";

static struct rv_checkpoint make(void)
{
        struct rv_checkpoint c = { .log_id = "00112233445566778899aabbccddeeff", .size = 1234 };

        memset(c.root, 7, sizeof(c.root));
        return c;
}

static struct rv_checkpoint_key make_key(const uint8_t seed[RV_CHECKPOINT_KEY_BYTES])
{
        struct rv_checkpoint_key key = { .log_id = "00112233445566778899aabbccddeeff" };

        assert_int_equal(rv_checkpoint_public(seed, key.public_key), 0);
        return key;
}

static void the_public_key_is_rfc_8032s(void **state)
{
        struct rv_checkpoint_key key = make_key(secret);
        char hex[65];

        (void)state;
        rv_hex(key.public_key, sizeof(key.public_key), hex);
        assert_string_equal(hex, public_hex);
}

static void the_text_is_that_of_c2sp(void **state)
{
        struct rv_checkpoint c = make(), again;
        struct rv_checkpoint_key key = make_key(secret);
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 }, twice = { 0 };
        static const char body[] = "reeve/00112233445566778899aabbccddeeff\n1234\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n\n\xe2\x80\x94 reeve/00112233445566778899aabbccddeeff ";

        (void)state;
        assert_int_equal(rv_checkpoint_sign(&c, secret), 0);
        assert_int_equal(rv_checkpoint_write(&c, &text), 0);
        assert_memory_equal(text.data, body, sizeof(body) - 1);
        assert_int_equal(rv_checkpoint_read(text.data, text.size, &again), 0);
        assert_int_equal(rv_checkpoint_write(&again, &twice), 0);
        assert_string_equal(text.data, twice.data);
        assert_int_equal(rv_checkpoint_verify(&again, &key), 0);
}

static void every_changed_byte_is_found(void **state)
{
        struct rv_checkpoint c = make(), again;
        struct rv_checkpoint_key key = make_key(secret);
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };

        (void)state;
        c.has_next_key = true;
        c.next_key = key;
        assert_int_equal(rv_checkpoint_sign(&c, secret), 0);
        assert_int_equal(rv_checkpoint_write(&c, &text), 0);
        for (size_t i = 0; i < text.size; i++)
                for (int bit = 0; bit < 8; bit++) {
                        text.data[i] = (char)(text.data[i] ^ (1 << bit));
                        if (rv_checkpoint_read(text.data, text.size, &again) == 0)
                                assert_int_not_equal(rv_checkpoint_verify(&again, &key), 0);
                        text.data[i] = (char)(text.data[i] ^ (1 << bit));
                }
        for (size_t n = 0; n < text.size; n++)
                assert_int_equal(rv_checkpoint_read(text.data, n, &again), -EINVAL);
}

static void another_key_is_told_from_a_bad_signature(void **state)
{
        struct rv_checkpoint c = make();
        uint8_t other[RV_CHECKPOINT_KEY_BYTES] = { 1 };
        struct rv_checkpoint_key key = make_key(secret), other_key = make_key(other);

        (void)state;
        assert_int_equal(rv_checkpoint_sign(&c, other), 0);
        assert_int_equal(rv_checkpoint_verify(&c, &key), RV_CHECKPOINT_E_UNSIGNED);
        assert_int_equal(rv_checkpoint_sign(&c, secret), 0);
        assert_int_equal(rv_checkpoint_verify(&c, &key), 0);
        assert_int_equal(rv_checkpoint_verify(&c, &other_key), 0);
        c.size++;
        assert_int_equal(rv_checkpoint_verify(&c, &key), RV_CHECKPOINT_E_BAD);
}

static void keys_are_read_as_they_are_written(void **state)
{
        struct rv_checkpoint_key key = make_key(secret), again;
        char text[RV_CHECKPOINT_VERIFIER_SIZE];

        (void)state;
        rv_checkpoint_key_text(&key, text);
        assert_int_equal(rv_checkpoint_key_read(text, strlen(text), &again), 0);
        assert_memory_equal(again.public_key, key.public_key, sizeof(key.public_key));
        for (size_t i = 0; text[i]; i++) {
                text[i] ^= 1;
                assert_int_equal(rv_checkpoint_key_read(text, strlen(text), &again), -EINVAL);
                text[i] ^= 1;
        }
}

static void a_witness_may_sign_too(void **state)
{
        struct rv_checkpoint c = make(), again;
        struct rv_checkpoint_key key = make_key(secret);
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };

        (void)state;
        assert_int_equal(rv_checkpoint_sign(&c, secret), 0);
        assert_int_equal(rv_checkpoint_write(&c, &text), 0);
        rv_buf_puts(&text, "\xe2\x80\x94 witness.example/w AAAA\n");
        assert_int_equal(rv_checkpoint_read(text.data, text.size, &again), 0);
        assert_int_equal(again.n_signatures, 1);
        assert_int_equal(rv_checkpoint_verify(&again, &key), 0);
        rv_buf_puts(&text, "no signature\n");
        assert_int_equal(rv_checkpoint_read(text.data, text.size, &again), -EINVAL);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_public_key_is_rfc_8032s),
                cmocka_unit_test(the_text_is_that_of_c2sp),
                cmocka_unit_test(every_changed_byte_is_found),
                cmocka_unit_test(another_key_is_told_from_a_bad_signature),
                cmocka_unit_test(keys_are_read_as_they_are_written),
                cmocka_unit_test(a_witness_may_sign_too),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
