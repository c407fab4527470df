/*
 * A proof as a file: what is read is written back as the same JSON; what proves something proves nothing else, be it
 * another leaf, another root or another number; a refusal says why.
 */
#include "fuzz.h"

#include "audit/proof_json.h"

static void check_nothing_else(struct rv_proof_file *file)
{
        file->root[3] ^= 1;
        FUZZ_CHECK(rv_proof_file_check(file, NULL) != 0, "another root");
        file->root[3] ^= 1;
        file->leaf[3] ^= 1;
        file->from_root[3] ^= 1;
        FUZZ_CHECK(rv_proof_file_check(file, NULL) != 0, "another leaf, or smaller log");
        file->leaf[3] ^= 1;
        file->from_root[3] ^= 1;
        file->proof.from++;
        FUZZ_CHECK(file->proof.is_consistency || rv_proof_file_check(file, NULL) != 0, "another number");
        file->proof.from--;
        FUZZ_CHECK(rv_proof_file_check(file, NULL) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(rv_json_unrefp) json_t *given = NULL, *written = NULL;
        struct rv_proof_file file = { 0 };
        struct rv_error err = { 0 };
        int r = rv_proof_file_read((const char *)data, size, &file, &err);

        FUZZ_CHECK(r == 0 || r == -EINVAL, "%d", r);
        FUZZ_CHECK(r == 0 || err.message[0]);
        if (r < 0)
                return 0;
        given = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL);
        written = rv_proof_file_to_json(&file);
        /* Signatures of others are left out. */
        json_object_del(given, "checkpoint");
        json_object_del(written, "checkpoint");
        FUZZ_CHECK(given && written && json_equal(given, written));
        r = rv_proof_file_check(&file, &err);
        FUZZ_CHECK(r == 0 || (r == RV_PROOF_E_WRONG && err.message[0]), "%d", r);
        if (r == 0)
                check_nothing_else(&file);
        rv_proof_file_fini(&file);
        return 0;
}
