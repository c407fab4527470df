#include "audit/proof_json.h"

#include "audit/record_form.h"

#include <inttypes.h>
#include <string.h>

#define SCHEMA "reeve.proof/1"
#define DEPTH_MAX 4

void rv_proof_file_fini(struct rv_proof_file *file)
{
        free(file->record);
        *file = (struct rv_proof_file){ 0 };
}

/* ---- Writing ---- */

static void set_hash(json_t *object, const char *name, const rv_merkle_hash hash)
{
        char hex[RV_SHA256_HEX_SIZE];

        rv_hex(hash, sizeof(rv_merkle_hash), hex);
        json_object_set_new(object, name, json_string(hex));
}

static void set_path(json_t *object, const char *name, const struct rv_proof *proof)
{
        json_t *path = json_array();
        char hex[RV_SHA256_HEX_SIZE];

        for (unsigned i = 0; i < proof->n; i++) {
                rv_hex(proof->path[i], sizeof(proof->path[i]), hex);
                json_array_append_new(path, json_string(hex));
        }
        json_object_set_new(object, name, path);
}

json_t *rv_proof_file_to_json(const struct rv_proof_file *file)
{
        _cleanup_(rv_buf_fini) struct rv_buf note = { 0 };
        json_t *o = json_pack("{s:s, s:s, s:I}", "schema", SCHEMA, "log_id", file->log_id, "size", (json_int_t)file->proof.size);

        json_object_set_new(o, file->proof.is_consistency ? "from" : "seq", json_integer((json_int_t)file->proof.from));
        if (file->proof.is_consistency) {
                set_hash(o, "from_root", file->from_root);
        } else {
                set_hash(o, "leaf", file->leaf);
                json_object_set_new(o, "record", json_stringn(file->record, file->n_record));
        }
        set_hash(o, "root", file->root);
        set_path(o, "path", &file->proof);
        if (file->has_checkpoint && rv_checkpoint_write(&file->checkpoint, &note) == 0)
                json_object_set_new(o, "checkpoint", json_stringn(note.data, note.size));
        else
                json_object_set_new(o, "checkpoint", json_null());
        if (file->has_consistency)
                set_path(o, "consistency", &file->consistency);
        return o;
}

/* ---- Reading ---- */

static bool read_hash(const json_t *value, rv_merkle_hash ret)
{
        const char *hex = json_string_value(value);

        if (!hex || strlen(hex) != 2 * sizeof(rv_merkle_hash) || strspn(hex, "0123456789abcdef") != 2 * sizeof(rv_merkle_hash))
                return false;
        for (size_t i = 0; i < sizeof(rv_merkle_hash); i++) {
                char pair[3] = { hex[2 * i], hex[2 * i + 1], 0 };

                ret[i] = (uint8_t)strtoul(pair, NULL, 16);
        }
        return true;
}

static bool read_path(const json_t *value, struct rv_proof *ret)
{
        size_t n = json_array_size(value);

        if (!json_is_array(value) || n > RV_PROOF_HASHES_MAX)
                return false;
        for (size_t i = 0; i < n; i++)
                if (!read_hash(json_array_get(value, i), ret->path[i]))
                        return false;
        ret->n = (unsigned)n;
        return true;
}

static bool read_number(const json_t *value, uint64_t *ret)
{
        if (!json_is_integer(value) || json_integer_value(value) < 0)
                return false;
        *ret = (uint64_t)json_integer_value(value);
        return true;
}

static bool is_log_id(const char *id)
{
        return strlen(id) == RV_LOG_ID_SIZE - 1 && strspn(id, "0123456789abcdef") == RV_LOG_ID_SIZE - 1;
}

/* What the note is made for. */
static const char *read_note(const json_t *o, struct rv_proof_file *file)
{
        const json_t *note = json_object_get(o, "checkpoint"), *consistency = json_object_get(o, "consistency");

        file->has_checkpoint = !json_is_null(note);
        file->has_consistency = consistency != NULL;
        if (file->has_checkpoint &&
                (!json_is_string(note) ||
                        rv_checkpoint_read(json_string_value(note), json_string_length(note), &file->checkpoint) < 0))
                return "its checkpoint is none";
        if (!file->has_consistency)
                return NULL;
        file->consistency.is_consistency = true;
        file->consistency.from = file->proof.size;
        file->consistency.size = file->checkpoint.size;
        return file->has_checkpoint && read_path(consistency, &file->consistency) ? NULL : "its consistency is no path to a checkpoint";
}

static const char *read_members(const json_t *o, struct rv_proof_file *file)
{
        const json_t *seq = json_object_get(o, "seq"), *from = json_object_get(o, "from"), *record = json_object_get(o, "record");
        const char *log_id = rv_json_get_string(o, "log_id", "");

        if (strcmp(rv_json_get_string(o, "schema", ""), SCHEMA) != 0)
                return "its schema is not " SCHEMA;
        if (!is_log_id(log_id))
                return "its log_id is none";
        memcpy(file->log_id, log_id, RV_LOG_ID_SIZE);
        if (!seq == !from)
                return "it needs either seq or from";
        file->proof.is_consistency = from != NULL;
        if (!read_number(from ? from : seq, &file->proof.from) || !read_number(json_object_get(o, "size"), &file->proof.size))
                return "one of its numbers is none";
        if (!read_hash(json_object_get(o, "root"), file->root) ||
                (from ? !read_hash(json_object_get(o, "from_root"), file->from_root) : !read_hash(json_object_get(o, "leaf"), file->leaf)))
                return "one of its hashes is none";
        if (!read_path(json_object_get(o, "path"), &file->proof))
                return "its path is none";
        if (!from && !json_is_string(record))
                return "its record is no text";
        if (json_object_size(o) != (from ? 8u : 9u) + (json_object_get(o, "consistency") ? 1 : 0))
                return "it has a member too many, or lacks one";
        return read_note(o, file);
}

int rv_proof_file_read(const char *text, size_t n, struct rv_proof_file *ret, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *o = NULL;
        struct rv_proof_file file = { 0 };
        const json_t *record;
        const char *why;
        int r;

        if (n > RV_PROOF_JSON_BYTES_MAX)
                return rv_error_set(err, rv_raise(-EINVAL), "it is larger than any proof");
        r = rv_json_read(text, n, DEPTH_MAX, &o, err);
        if (r < 0)
                return r == -ENOMEM ? rv_trace(r) : -EINVAL;
        why = json_is_object(o) ? read_members(o, &file) : "it is no JSON object";
        if (why)
                return rv_error_set(err, rv_raise(-EINVAL), "%s", why);
        record = json_object_get(o, "record");
        if (record) {
                file.n_record = json_string_length(record);
                file.record = malloc(file.n_record + 1);
                if (!file.record)
                        return rv_error_set(err, rv_raise(-ENOMEM), "out of memory");
                memcpy(file.record, json_string_value(record), file.n_record + 1);
        }
        *ret = file;
        return 0;
}

/* ---- Checking ---- */

static int check_record(const struct rv_proof_file *file, struct rv_error *err)
{
        struct rv_record_form form;
        rv_merkle_hash leaf;
        const char *why = rv_record_form(file->record, file->n_record, &form);

        if (why)
                return rv_error_set(err, RV_PROOF_E_WRONG, "its record is none: it %s", why);
        rv_merkle_leaf(file->record, file->n_record, leaf);
        if (memcmp(leaf, file->leaf, sizeof(leaf)) != 0)
                return rv_error_set(err, RV_PROOF_E_WRONG, "the leaf is not the hash of the record");
        if (form.seq != file->proof.from)
                return rv_error_set(err, RV_PROOF_E_WRONG, "the record is number %" PRIu64 ", the proof is of number %" PRIu64, form.seq, file->proof.from);
        if (memcmp(form.log_id.text, file->log_id, RV_LOG_ID_SIZE - 1) != 0)
                return rv_error_set(err, RV_PROOF_E_WRONG, "the record is one of another log");
        return 0;
}

static int check_checkpoint(const struct rv_proof_file *file, struct rv_error *err)
{
        const struct rv_checkpoint *c = &file->checkpoint;

        if (!file->has_checkpoint)
                return 0;
        if (strcmp(c->log_id, file->log_id) != 0)
                return rv_error_set(err, RV_PROOF_E_WRONG, "the checkpoint is one of another log");
        if (file->has_consistency)
                return rv_proof_check_consistency(&file->consistency, file->root, c->root) == 0
                        ? 0
                        : rv_error_set(err, RV_PROOF_E_WRONG, "the consistency path does not lead from the root to the checkpoint's");
        if (c->size != file->proof.size || memcmp(c->root, file->root, sizeof(c->root)) != 0)
                return rv_error_set(err, RV_PROOF_E_WRONG, "the checkpoint is not one of this size and root");
        return 0;
}

int rv_proof_file_check(const struct rv_proof_file *file, struct rv_error *err)
{
        const struct rv_proof *proof = &file->proof;
        int r = proof->is_consistency ? 0 : check_record(file, err);

        if (r != 0)
                return r;
        if ((proof->is_consistency ? rv_proof_check_consistency(proof, file->from_root, file->root)
                                   : rv_proof_check_inclusion(proof, file->leaf, file->root)) != 0)
                return rv_error_set(err, RV_PROOF_E_WRONG, "the path does not lead to the root");
        return check_checkpoint(file, err);
}
