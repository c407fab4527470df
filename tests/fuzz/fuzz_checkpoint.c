/*
 * A checkpoint's note, or a verifier key: what is taken is written back byte for byte, but for the signatures of
 * others, and is taken again as the same; whose signature holds is found without trouble.
 */
#include "fuzz.h"

#include "audit/checkpoint.h"

static void check_key(const char *text, size_t n)
{
        struct rv_checkpoint_key key;
        char again[RV_CHECKPOINT_VERIFIER_SIZE];

        if (rv_checkpoint_key_read(text, n, &key) < 0)
                return;
        rv_checkpoint_key_text(&key, again);
        FUZZ_CHECK(strlen(again) == n - (text[n - 1] == '\n') && memcmp(again, text, strlen(again)) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rv_checkpoint c, same;
        _cleanup_(rv_buf_fini) struct rv_buf again = { 0 }, body = { 0 };
        struct rv_checkpoint_key key = { 0 };
        int r;

        check_key((const char *)data, size);
        if (rv_checkpoint_read((const char *)data, size, &c) < 0)
                return 0;
        FUZZ_CHECK(rv_checkpoint_body(&c, &body) == 0 && rv_checkpoint_write(&c, &again) == 0);
        FUZZ_CHECK(body.size < size && memcmp(body.data, data, body.size) == 0);
        FUZZ_CHECK(again.size <= size);
        if (c.n_signatures) {
                FUZZ_CHECK(rv_checkpoint_read(again.data, again.size, &same) == 0);
                FUZZ_CHECK(memcmp(&c, &same, sizeof(c)) == 0);
        }
        memcpy(key.log_id, c.log_id, sizeof(key.log_id));
        r = rv_checkpoint_verify(&c, &key);
        FUZZ_CHECK(r >= 0 || r == -EIO, "%d", r);
        if (c.has_next_key)
                FUZZ_CHECK(rv_checkpoint_verify(&c, &c.next_key) >= -EIO);
        return 0;
}
