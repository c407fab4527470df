/* Records that are written only if something changed: bundle_activated and config. */
#include "audit/log_private.h"

#include "test_audit_common.h"

static int note(struct rv_log *log, const char *kind, const char *tenant, const char *digest)
{
        _cleanup_(rv_json_unrefp) json_t *body = tenant ? json_pack("{s:s}", "tenant", tenant) : NULL;
        struct rv_error err = { 0 };
        int r;

        r = strcmp(kind, "config") == 0 ? rv_log_note_config(log, digest, body, &err) : rv_log_note_bundle(log, digest, body, &err);
        if (r < 0)
                fail_msg("%s", err.message);
        return r;
}

static unsigned count(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *records = read_log(state);

        return (unsigned)json_array_size(records);
}

static const struct {
        const char *kind, *tenant, *digest;
        int is_written;
} steps[] = {
        { "config", NULL, "sha256:a", 1 },
        { "config", NULL, "sha256:a", 0 },
        { "bundle_activated", NULL, "sha256:a", 1 },   /* another kind with the same digest */
        { "config", NULL, "sha256:b", 1 },
        { "config", NULL, "sha256:b", 0 },
        { "bundle_activated", NULL, "sha256:a", 0 },
        { "config", NULL, "sha256:a", 1 },             /* back to an old one: the last one counts */
        { "config", NULL, "sha256:a", 0 },
        { "bundle_activated", "t1", "sha256:a", 1 },   /* of one tenant is not of all */
        { "bundle_activated", "t2", "sha256:c", 1 },
        { "bundle_activated", "t1", "sha256:a", 0 },   /* tenants take turns */
        { "bundle_activated", "t2", "sha256:c", 0 },
        { "bundle_activated", NULL, "sha256:a", 0 },
        { "bundle_activated", "t1", "sha256:c", 1 },
        { "bundle_activated", "t2", "sha256:c", 0 },
        { "bundle_activated", "../../x\n y", "sha256:c", 1 },
        { "bundle_activated", "../../x\n y", "sha256:c", 0 },
};

enum how { SAME_OBJECT, NEW_OBJECT, WITHOUT_CACHE };

static void run_steps(void **state, enum how how)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        unsigned n = 0;

        for (size_t i = 0; i < RV_N_ELEMENTS(steps); i++) {
                int r;

                if (how != SAME_OBJECT) {
                        rv_log_close(rv_take(&log));
                        log = open_log(state);
                }
                if (how == WITHOUT_CACHE) {
                        char name[1024];

                        snprintf(name, sizeof(name), "%s", in_state(state, "audit/last"));
                        nftw(name, tmp_remove_one, 16, FTW_DEPTH | FTW_PHYS);
                        assert_int_equal(access(name, F_OK), -1);
                }
                r = note(log, steps[i].kind, steps[i].tenant, steps[i].digest);
                if (r != steps[i].is_written)
                        fail_msg("step %zu: %d", i, r);
                append_text(log, "decision", i * 700);
                n += 1 + (unsigned)r;
                assert_int_equal(count(state), n);
        }
}

static void in_one_object(void **state)
{
        run_steps(state, SAME_OBJECT);
}

static void in_many_objects(void **state)
{
        run_steps(state, NEW_OBJECT);
}

/* The cache can be lost at any time: the log knows. */
static void without_the_cache(void **state)
{
        run_steps(state, WITHOUT_CACHE);
}

/* A tenant's shadow is another bundle than the one that decides, with the cache and without. */
static void by_role(void **state)
{
        static const struct {
                const char *role, *digest;
                int is_written;
        } roles[] = { { NULL, "sha256:a", 1 }, { "shadow", "sha256:b", 1 }, { NULL, "sha256:a", 0 }, { "shadow", "sha256:b", 0 }, { "shadow", "sha256:a", 1 },
                { NULL, "sha256:a", 0 }, { NULL, "sha256:b", 1 }, { "shadow", "sha256:a", 0 } };
        char name[1024];

        for (size_t i = 0; i < 2 * RV_N_ELEMENTS(roles); i++) {
                _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
                _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s}", "tenant", i < RV_N_ELEMENTS(roles) ? "t1" : "t2");
                size_t k = i % RV_N_ELEMENTS(roles);

                if (roles[k].role)
                        json_object_set_new(body, "role", json_string(roles[k].role));
                if (i >= RV_N_ELEMENTS(roles)) {
                        snprintf(name, sizeof(name), "%s", in_state(state, "audit/last"));
                        nftw(name, tmp_remove_one, 16, FTW_DEPTH | FTW_PHYS);
                }
                assert_int_equal(rv_log_note_bundle(log, roles[k].digest, body, NULL), roles[k].is_written);
        }
}

static void record_holds_digest_and_body(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s, s:s}", "tenant", "t", "directory", "/p");
        _cleanup_(rv_json_unrefp) json_t *same = json_deep_copy(body);
        _cleanup_(rv_json_unrefp) json_t *records = NULL;

        assert_int_equal(rv_log_note_bundle(log, "sha256:x", body, NULL), 1);
        assert_true(json_equal(body, same));
        records = read_log(state);
        assert_string_equal(member(records, 0, "kind"), "bundle_activated");
        assert_string_equal(member(records, 0, "digest"), "sha256:x");
        assert_string_equal(member(records, 0, "tenant"), "t");
        assert_string_equal(member(records, 0, "directory"), "/p");
}

static void refused(void **state)
{
        static const char *const digests[] = { "", "a b", "a\nb", "\xc3\xa9" };
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s}", "digest", "x"), *array = json_array();
        char long_digest[202];

        memset(long_digest, 'a', 201);
        long_digest[201] = 0;
        for (size_t i = 0; i < RV_N_ELEMENTS(digests); i++)
                assert_int_equal(rv_log_note_config(log, digests[i], NULL, NULL), -EINVAL);
        assert_int_equal(rv_log_note_config(log, long_digest, NULL, NULL), -EINVAL);
        assert_int_equal(rv_log_note_config(log, long_digest + 1, NULL, NULL), 1);
        assert_int_equal(rv_log_note_config(log, long_digest + 1, NULL, NULL), 0);
        assert_int_equal(rv_log_note_config(log, "x", body, NULL), -EINVAL);
        assert_int_equal(rv_log_note_config(log, "x", array, NULL), -EINVAL);
        assert_int_equal(count(state), 1);
}

/* Whatever stands in the cache, it is believed only if the log has that very line. */
static void cache_is_not_trusted(void **state)
{
        static const char *const texts[] = {
                "", "x", "00000000000000000000.jsonl\n", "00000000000000000000.jsonl 0 10 ab sha256:b\n",
                "00000000000000000000.jsonl 18446744073709551615 10 ab sha256:b\n", "00000000000000000000.jsonl 0 18446744073709551615 ab sha256:b\n",
                "00000000000000000009.jsonl 0 10 ab sha256:b\n", ".. 0 10 ab sha256:b\n", "00000000000000000000.jsonl 0 0 ab sha256:b\n",
        };
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        assert_int_equal(note(log, "config", NULL, "sha256:a"), 1);
        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++) {
                assert_int_equal(rv_write_file(in_state(state, "audit/last/config"), texts[i], strlen(texts[i]), 0600, false), 0);
                if (note(log, "config", NULL, "sha256:a") != 0)
                        fail_msg("written again with the cache \"%s\"", texts[i]);
                assert_int_equal(rv_write_file(in_state(state, "audit/last/config"), texts[i], strlen(texts[i]), 0600, false), 0);
                if (note(log, "config", NULL, "sha256:b") != 1 || note(log, "config", NULL, "sha256:a") != 1)
                        fail_msg("not written with the cache \"%s\"", texts[i]);
        }
}

/* A line is there, but not the one that the cache was made of: a log put back from a copy, say. */
static void cache_of_another_line(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        char text[512], sha256[RV_SHA256_HEX_SIZE];
        int n;

        assert_int_equal(note(log, "config", NULL, "sha256:a"), 1);
        read_segment(state, &b);
        rv_sha256_hex("another line", 12, sha256);
        n = snprintf(text, sizeof(text), "00000000000000000000.jsonl 0 %zu %s sha256:b\n", b.size - 1, sha256);
        assert_int_equal(rv_write_file(in_state(state, "audit/last/config"), text, (size_t)n, 0600, false), 0);
        assert_int_equal(note(log, "config", NULL, "sha256:a"), 0);
}

/* A record that only holds the words is none of the kind. */
static void look_alikes(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *inner = json_pack("{s:{s:s, s:s}}", "facts", "kind", "config", "digest", "sha256:b");
        _cleanup_(rv_json_unrefp) json_t *text = json_pack("{s:s, s:s}", "digest", "sha256:b", "x", "\"kind\":\"config\"");

        assert_int_equal(note(log, "config", NULL, "sha256:a"), 1);
        assert_int_equal(rv_log_append(log, "decision", inner, NULL, NULL), 0);
        assert_int_equal(rv_log_append(log, "outcome", text, NULL, NULL), 0);
        assert_int_equal(unlink(in_state(state, "audit/last/config")), 0);
        assert_int_equal(note(log, "config", NULL, "sha256:a"), 0);
        assert_int_equal(note(log, "config", NULL, "sha256:b"), 1);
}

static int note_once(void **state, unsigned i)
{
        struct rv_log *log = NULL;
        int r;

        (void)i;
        if (rv_log_open(tmp_path(state, "state"), &log, NULL) < 0)
                return 1;
        r = rv_log_note_config(log, "sha256:a", NULL, NULL);
        rv_log_close(log);
        return r < 0;
}

static void many_at_once_write_one(void **state)
{
        in_processes(8, state, note_once);
        assert_int_equal(count(state), 1);
}

/* A crash between the record and the cache: the cache was removed before, so the record is found. */
static void crash_before_the_cache(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s}", "digest", "sha256:b");

        assert_int_equal(note(log, "config", NULL, "sha256:a"), 1);
        assert_int_equal(unlink(in_state(state, "audit/last/config")), 0);
        assert_int_equal(rv_log_append(log, "config", body, NULL, NULL), 0);
        assert_int_equal(note(log, "config", NULL, "sha256:b"), 0);
        assert_int_equal(note(log, "config", NULL, "sha256:a"), 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(in_one_object),
                TMP(in_many_objects),
                TMP(without_the_cache),
                TMP(by_role), TMP(record_holds_digest_and_body),
                TMP(refused),
                TMP(cache_is_not_trusted),
                TMP(cache_of_another_line),
                TMP(look_alikes),
                TMP(many_at_once_write_one),
                TMP(crash_before_the_cache),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
