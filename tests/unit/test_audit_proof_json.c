#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "audit/proof_json.h"

#define LOG_ID "00112233445566778899aabbccddeeff"
#define N_LINES 13

static const uint8_t secret[RV_CHECKPOINT_KEY_BYTES] = { 1 };

static void make_line(unsigned seq, char ret[512])
{
        snprintf(ret, 512, "{\"build\":\"0\",\"instance\":\"\xc3\xa9\\n\",\"kind\":\"gap\",\"log_id\":\"" LOG_ID "\",\"prev\":\"%064u\",\"seq\":%u,\"time_us\":9}", seq, seq);
}

static void make_root(unsigned size, rv_merkle_hash ret)
{
        struct rv_merkle tree = { 0 };
        rv_merkle_hash leaf;
        char line[512];

        for (unsigned i = 0; i < size; i++) {
                make_line(i, line);
                rv_merkle_leaf(line, strlen(line), leaf);
                rv_merkle_push(&tree, leaf);
        }
        rv_merkle_root(&tree, ret);
}

static struct rv_proof make_proof(bool is_consistency, unsigned from, unsigned size)
{
        struct rv_proof_maker maker;
        struct rv_proof proof;
        rv_merkle_hash leaf;
        char line[512];

        assert_int_equal(is_consistency ? rv_proof_begin_consistency(&maker, from, size)
                                        : rv_proof_begin_inclusion(&maker, from, size),
                0);
        for (unsigned i = 0; i < size; i++) {
                make_line(i, line);
                rv_merkle_leaf(line, strlen(line), leaf);
                rv_proof_push(&maker, leaf);
        }
        assert_int_equal(rv_proof_finish(&maker, &proof), 0);
        return proof;
}

/* A proof to @size, and a checkpoint of @sealed records, or of none for 0. */
static json_t *make(bool is_consistency, unsigned from, unsigned size, unsigned sealed)
{
        struct rv_proof_file file = {
                .log_id = LOG_ID, .proof = make_proof(is_consistency, from, size), .has_checkpoint = sealed != 0
        };
        char line[512];
        json_t *o;

        make_root(size, file.root);
        if (is_consistency) {
                make_root(from, file.from_root);
        } else {
                make_line(from, line);
                rv_merkle_leaf(line, strlen(line), file.leaf);
                file.record = line;
                file.n_record = strlen(line);
        }
        memcpy(file.checkpoint.log_id, LOG_ID, RV_LOG_ID_SIZE);
        file.checkpoint.size = sealed;
        make_root(sealed, file.checkpoint.root);
        assert_int_equal(rv_checkpoint_sign(&file.checkpoint, secret), 0);
        if (sealed && sealed != size) {
                file.has_consistency = true;
                file.consistency = make_proof(true, size, sealed);
        }
        o = rv_proof_file_to_json(&file);
        assert_non_null(o);
        return o;
}

static int check(const json_t *o, char *ret_why)
{
        _cleanup_(rv_freep) char *text = json_dumps(o, JSON_COMPACT);
        struct rv_proof_file file = { 0 };
        struct rv_error err = { 0 };
        int r = rv_proof_file_read(text, strlen(text), &file, &err);

        if (r == 0)
                r = rv_proof_file_check(&file, &err);
        if (ret_why)
                strcpy(ret_why, err.message);
        assert_true(r == 0 || err.message[0]);
        rv_proof_file_fini(&file);
        return r;
}

static void what_is_made_holds(void **state)
{
        char why[RV_ERROR_MESSAGE_MAX];

        (void)state;
        for (unsigned size = 1; size <= N_LINES; size++)
                for (unsigned from = 0; from <= size; from++)
                        for (unsigned sealed = size - 1; sealed <= N_LINES; sealed++)
                                for (int is_consistency = from == size; is_consistency <= (from != 0);
                                        is_consistency++) {
                                        json_t *o = make(is_consistency, from, size, sealed < size ? 0 : sealed);

                                        if (check(o, why) != 0)
                                                fail_msg("%s: %s", json_dumps(o, 0), why);
                                        json_decref(o);
                                }
}

/* Any character of any text changed, any number, any member left out or added. */
static void what_is_changed_does_not(void **state)
{
        (void)state;
        for (int row = 0; row < 4; row++) {
                json_t *o = make(row & 1, 5, 9, row & 2 ? 12 : 9), *copy, *value;
                const char *name;

                json_object_foreach(o, name, value) {
                        copy = json_deep_copy(o);
                        json_object_del(copy, name);
                        assert_int_not_equal(check(copy, NULL), 0);
                        json_decref(copy);
                        copy = json_deep_copy(o);
                        if (json_is_integer(value))
                                json_integer_set(json_object_get(copy, name), json_integer_value(value) + 1);
                        else if (json_is_array(value))
                                json_array_remove(json_object_get(copy, name), 0);
                        else
                                json_object_set_new(copy, name, json_integer(1));
                        assert_int_not_equal(check(copy, NULL), 0);
                        json_decref(copy);
                        /* A checkpoint's signature is left to whoever knows the key. */
                        if (!json_is_string(value))
                                continue;
                        for (size_t i = 0; i < strlen(json_string_value(value)); i++) {
                                _cleanup_(rv_freep) char *text = strdup(json_string_value(value));
                                const char *signature = strstr(text, "\xe2\x80\x94");

                                if (signature && text + i >= signature)
                                        break;
                                text[i] = (char)(text[i] ^ 1);
                                copy = json_deep_copy(o);
                                /* No UTF-8 any more: jansson takes no such text. */
                                if (json_object_set_new(copy, name, json_string(text)) == 0)
                                        assert_int_not_equal(check(copy, NULL), 0);
                                json_decref(copy);
                        }
                }
                json_object_set_new(o, "more", json_true());
                assert_int_equal(check(o, NULL), -EINVAL);
                json_decref(o);
        }
}

static void what_is_no_proof_is_refused(void **state)
{
        static const char *const texts[] = { "", "[]", "{}", "{\"schema\":\"reeve.proof/1\"}", "nonsense", "{\"schema\":\"reeve.proof/2\"}" };
        struct rv_proof_file file = { .n_record = 77 };
        struct rv_error err = { 0 };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++)
                assert_int_equal(rv_proof_file_read(texts[i], strlen(texts[i]), &file, &err), -EINVAL);
        assert_int_equal(file.n_record, 77);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(what_is_made_holds),
                cmocka_unit_test(what_is_changed_does_not),
                cmocka_unit_test(what_is_no_proof_is_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
