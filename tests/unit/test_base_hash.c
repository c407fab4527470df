#include "base/hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* FIPS 180-4's examples (NIST, "Cryptographic Standards and Guidelines: Example Values", SHA-256). */
static const struct {
        const char *name, *text;
        unsigned n_times;
        const char *digest;
} digests[] = {
        { "empty", "", 1, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "one block", "abc", 1, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "two blocks by padding", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 1,
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "896 bits",
          "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu", 1,
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
        { "a million a", "a", 1000000, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0" },
};

static void fips_180_4(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(digests); i++) {
                uint8_t digest[RV_SHA256_SIZE];
                char hex[RV_SHA256_HEX_SIZE];
                struct rv_sha256 h;

                rv_sha256_init(&h);
                for (unsigned k = 0; k < digests[i].n_times; k++)
                        rv_sha256_update(&h, digests[i].text, strlen(digests[i].text));
                rv_sha256_final(&h, digest);
                rv_hex(digest, sizeof(digest), hex);
                if (strcmp(hex, digests[i].digest) != 0)
                        fail_msg("%s: %s", digests[i].name, hex);
        }
}

/* The same source, SHA-384 and SHA-512. */
static void fips_180_4_large(void **state)
{
        static const struct {
                const char *name, *text, *sha384, *sha512;
        } rows[] = {
                { "one block", "abc", "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7",
                  "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f" },
                { "empty", "", "38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b",
                  "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e" },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                uint8_t digest[RV_SHA512_SIZE];
                char hex[RV_SHA512_HEX_SIZE];
                struct rv_sha512 h;

                rv_sha512_init(&h);
                rv_sha512_update(&h, rows[i].text, strlen(rows[i].text));
                rv_sha512_final(&h, digest);
                rv_hex(digest, RV_SHA512_SIZE, hex);
                if (strcmp(hex, rows[i].sha512) != 0)
                        fail_msg("SHA-512, %s: %s", rows[i].name, hex);
                rv_sha384_init(&h);
                rv_sha512_update(&h, rows[i].text, strlen(rows[i].text));
                rv_sha512_final(&h, digest);
                rv_hex(digest, RV_SHA384_SIZE, hex);
                if (strcmp(hex, rows[i].sha384) != 0)
                        fail_msg("SHA-384, %s: %s", rows[i].name, hex);
        }
}

static void split_does_not_matter(void **state)
{
        char text[150], whole[RV_SHA256_HEX_SIZE], hex[RV_SHA256_HEX_SIZE];
        uint8_t digest[RV_SHA256_SIZE];
        struct rv_sha256 h;

        (void)state;
        for (size_t i = 0; i < sizeof(text); i++)
                text[i] = (char)(i * 31);
        rv_sha256_hex(text, sizeof(text), whole);
        for (size_t at = 0; at <= sizeof(text); at++) {
                rv_sha256_init(&h);
                rv_sha256_update(&h, text, at);
                rv_sha256_update(&h, text + at, sizeof(text) - at);
                rv_sha256_final(&h, digest);
                rv_hex(digest, sizeof(digest), hex);
                if (strcmp(hex, whole) != 0)
                        fail_msg("split at %zu", at);
        }
}

#define TIMES_10(x) x x x x x x x x x x
#define AA_20 TIMES_10("\xaa\xaa")
#define AA_131 AA_20 AA_20 AA_20 AA_20 AA_20 AA_20 TIMES_10("\xaa") "\xaa"

/* RFC 4231, section 4; test 5 gives the first 128 bits only. */
static const struct {
        const char *name, *key, *data, *mac;
} macs[] = {
        { "4.2", TIMES_10("\x0b\x0b"), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7" },
        { "4.3", "Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843" },
        { "4.4", AA_20, TIMES_10("\xdd\xdd\xdd\xdd\xdd"), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe" },
        { "4.5", "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19",
          TIMES_10("\xcd\xcd\xcd\xcd\xcd"), "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b" },
        { "4.6", TIMES_10("\x0c\x0c"), "Test With Truncation", "a3b6167473100ee06e0c796c2955552b" },
        { "4.7", AA_131, "Test Using Larger Than Block-Size Key - Hash Key First",
          "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54" },
        { "4.8", AA_131,
          "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed "
          "before being used by the HMAC algorithm.",
          "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2" },
};

static void rfc_4231(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(macs); i++) {
                uint8_t mac[RV_SHA256_SIZE];
                char hex[RV_SHA256_HEX_SIZE];

                rv_hmac_sha256(macs[i].key, strlen(macs[i].key), macs[i].data, strlen(macs[i].data), mac);
                rv_hex(mac, sizeof(mac), hex);
                if (strncmp(hex, macs[i].mac, strlen(macs[i].mac)) != 0)
                        fail_msg("%s: %s", macs[i].name, hex);
        }
}

/* A key of exactly one block is used as it is, one byte more is hashed first (RFC 2104, section 2). */
static void hmac_key_at_block_size(void **state)
{
        char key[65], hashed[RV_SHA256_SIZE];
        uint8_t a[RV_SHA256_SIZE], b[RV_SHA256_SIZE];

        (void)state;
        memset(key, 'k', sizeof(key));
        rv_sha256(key, 65, (uint8_t *)hashed);
        rv_hmac_sha256(key, 65, "x", 1, a);
        rv_hmac_sha256(hashed, sizeof(hashed), "x", 1, b);
        assert_memory_equal(a, b, sizeof(a));
        rv_sha256(key, 64, (uint8_t *)hashed);
        rv_hmac_sha256(key, 64, "x", 1, a);
        rv_hmac_sha256(hashed, sizeof(hashed), "x", 1, b);
        assert_memory_not_equal(a, b, sizeof(a));
}

static void hex_digits(void **state)
{
        char hex[9];

        (void)state;
        rv_hex("\x00\x0f\xa5\xff", 4, hex);
        assert_string_equal(hex, "000fa5ff");
        rv_hex("", 0, hex);
        assert_string_equal(hex, "");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(fips_180_4),
                cmocka_unit_test(fips_180_4_large),
                cmocka_unit_test(split_does_not_matter),
                cmocka_unit_test(rfc_4231),
                cmocka_unit_test(hmac_key_at_block_size),
                cmocka_unit_test(hex_digits),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
