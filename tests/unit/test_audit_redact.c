/* What records hide: that it is nowhere in the log, that the rest stays, and what happens when hiding fails. */
#include "audit/redact.h"

#include "audit/live.h"
#include "audit/redact_texts.h"
#include "base/clock.h"
#include "base/config_value.h"

#include "test_audit_segments.h"

#define SECRET "acme-corp"
#define JANE "{\"facts\":{\"request\":{\"tenant\":{\"name\":\"t\",\"labels\":{\"owner\":\"jane\"}}}},\"principal\":\"jane@x\",\"env\":[{\"name\":\"owner\"}]}"

static json_t *parse(const char *text)
{
        json_error_t error;
        json_t *value = json_loads(text, JSON_DECODE_ANY, &error);

        if (!value)
                fail_msg("%s: %s", text, error.text);
        return value;
}

/* Also looks whether the configuration would take them. */
static void hide(struct rv_log *log, const char *pointers)
{
        char copy[512], *list[16], *save = NULL;
        size_t n = 0;

        snprintf(copy, sizeof(copy), "%s", pointers);
        for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save)) {
                if (rv_config_check_redact(p))
                        fail_msg("%s: needs %s", p, rv_config_check_redact(p));
                list[n++] = p;
        }
        assert_int_equal(rv_log_set_redaction(log, (const char *const *)list, n), 0);
}

/* What stands for a value: "HMAC(JSON)". */
static void commitment_of(const struct rv_log *log, const char *json, char ret[80])
{
        char hex[65];

        rv_log_hmac(log, json, strlen(json), hex);
        snprintf(ret, 80, "hmac-sha256:%s", hex);
}

/* In @expected `<JSON>` stands for the commitment to that JSON. */
static json_t *expand(const struct rv_log *log, const char *expected)
{
        char text[4096];
        size_t n = 0;

        for (const char *p = expected; *p; p++) {
                const char *end = *p == '<' ? strchr(p, '>') : NULL;
                char json[512], commitment[80];

                if (!end) {
                        text[n++] = *p;
                        continue;
                }
                snprintf(json, sizeof(json), "%.*s", (int)(end - p - 1), p + 1);
                commitment_of(log, json, commitment);
                n += (size_t)snprintf(text + n, sizeof(text) - n, "{\"redacted\":\"%s\"}", commitment);
                p = end;
        }
        text[n] = 0;
        return parse(text);
}

static const struct {
        const char *name, *pointers, *body, *expected;
} rows[] = {
        { "nothing named is there", "/principal /facts/request/x", "{\"tenant\":\"t\",\"facts\":{\"request\":{}}}", "{\"tenant\":\"t\",\"facts\":{\"request\":{}}}" },
        { "a text", "/principal", "{\"principal\":\"p\",\"tenant\":\"t\"}", "{\"principal\":<\"p\">,\"tenant\":\"t\"}" },
        { "a number, null, a truth", "/facts/n /facts/z /facts/b", "{\"facts\":{\"n\":30,\"z\":null,\"b\":true,\"m\":30}}",
          "{\"facts\":{\"n\":<30>,\"z\":<null>,\"b\":<true>,\"m\":30}}" },
        { "an object, in canonical form", "/source", "{\"source\":{\"z\":1,\"a\":\"x\"}}", "{\"source\":<{\"a\":\"x\",\"z\":1}>}" },
        { "any element", "/facts/packages/*/name", "{\"facts\":{\"packages\":[{\"name\":\"six\",\"direct\":true},{\"name\":\"attrs\"}]}}",
          "{\"facts\":{\"packages\":[{\"name\":<\"six\">,\"direct\":true},{\"name\":<\"attrs\">}]}}" },
        { "one element", "/facts/packages/1/name", "{\"facts\":{\"packages\":[{\"name\":\"six\"},{\"name\":\"attrs\"}]}}",
          "{\"facts\":{\"packages\":[{\"name\":\"six\"},{\"name\":<\"attrs\">}]}}" },
        { "any member", "/facts/request/tenant/labels/*", "{\"facts\":{\"request\":{\"tenant\":{\"labels\":{\"a\":\"1\",\"b/c\":\"2\"}}}}}",
          "{\"facts\":{\"request\":{\"tenant\":{\"labels\":{\"a\":<\"1\">,\"b/c\":<\"2\">}}}}}" },
        { "a member with a slash", "/facts/a~1b", "{\"facts\":{\"a/b\":\"x\",\"a\":{\"b\":\"y\"}}}", "{\"facts\":{\"a/b\":<\"x\">,\"a\":{\"b\":\"y\"}}}" },
        { "a whole and a part of it", "/source /source/bytes", "{\"source\":{\"bytes\":3}}", "{\"source\":<{\"bytes\":3}>}" },
        { "the same text elsewhere", "/tenant", "{\"tenant\":\"t1\",\"facts\":{\"request\":{\"tenant\":{\"name\":\"t1\"}}},\"principal\":\"t2\"}",
          "{\"tenant\":<\"t1\">,\"facts\":{\"request\":{\"tenant\":{\"name\":<\"t1\">}}},\"principal\":\"t2\"}" },
        { "inside another text", "/tenant", "{\"tenant\":\"acme\",\"verdict\":{\"reason\":{\"message\":\"not for acme today\",\"rule\":\"r\"}}}",
          "{\"tenant\":<\"acme\">,\"verdict\":{\"reason\":{\"message\":<\"not for acme today\">,\"rule\":\"r\"}}}" },
        { "in other letters", "/tenant", "{\"tenant\":\"acme-corp\",\"facts\":{\"packages\":[{\"requested\":\"ACME_Corp@1\"}]}}",
          "{\"tenant\":<\"acme-corp\">,\"facts\":{\"packages\":[{\"requested\":<\"ACME_Corp@1\">}]}}" },
        { "a short one only by itself", "/tenant", "{\"tenant\":\"abc\",\"principal\":\"ABC\",\"verdict\":{\"m\":\"abcd\"}}",
          "{\"tenant\":<\"abc\">,\"principal\":<\"ABC\">,\"verdict\":{\"m\":\"abcd\"}}" },
        { "texts of a hidden object", "/facts/request/tenant", JANE,
          "{\"facts\":{\"request\":{\"tenant\":<{\"labels\":{\"owner\":\"jane\"},\"name\":\"t\"}>}},\"principal\":<\"jane@x\">,\"env\":[{\"name\":\"owner\"}]}" },
        { "an empty text is nowhere else", "/principal", "{\"principal\":\"\",\"tenant\":\"\"}", "{\"principal\":<\"\">,\"tenant\":\"\"}" },
        { "ids, digests and words stay", "/tenant",
          "{\"tenant\":\"none\",\"run_id\":\"none\",\"decision_id\":\"xnonex\",\"stage\":\"none\",\"bundle\":\"none\",\"engine\":{\"lua\":\"none\"},\"status\":\"none\","
          "\"facts\":{\"stage\":\"none\",\"request\":{\"network_mode\":\"none\",\"language\":\"none\"},\"network\":[{\"mode\":\"none\",\"domain\":\"none\"}]},"
          "\"verdict\":{\"effect\":\"none\",\"code\":\"none\",\"denials\":[{\"section\":\"none\",\"item\":\"none\"}]}}",
          "{\"tenant\":<\"none\">,\"run_id\":\"none\",\"decision_id\":\"xnonex\",\"stage\":\"none\",\"bundle\":\"none\",\"engine\":{\"lua\":\"none\"},\"status\":\"none\","
          "\"facts\":{\"stage\":\"none\",\"request\":{\"network_mode\":\"none\",\"language\":\"none\"},\"network\":[{\"mode\":\"none\",\"domain\":<\"none\">}]},"
          "\"verdict\":{\"effect\":\"none\",\"code\":\"none\",\"denials\":[{\"section\":\"none\",\"item\":<\"none\">}]}}" },
        { "in other letters, with more between them", "/facts/packages/*/name", "{\"facts\":{\"packages\":[{\"name\":\"acme-corp\",\"requested\":\"Acme_._Corp@1\"}]}}",
          "{\"facts\":{\"packages\":[{\"name\":<\"acme-corp\">,\"requested\":<\"Acme_._Corp@1\">}]}}" },
        { "in the path that brought a package in", "/facts/packages/*/name",
          "{\"facts\":{\"packages\":[{\"name\":\"packages\"},{\"name\":\"acme-corp\"}],\"pointers\":{\"packages\":[[\"/packages/0\"],[]],\"paths\":[[\"packages\"],[\"packages\",\"acme-corp\"]]}},"
          "\"verdict\":{\"packages\":[{\"item\":\"acme-corp\",\"unmet\":[\"pin\"]}],\"reason\":{\"path\":[\"x\",\"acme-corp\"]}}}",
          "{\"facts\":{\"packages\":[{\"name\":<\"packages\">},{\"name\":<\"acme-corp\">}],\"pointers\":{\"packages\":[[\"/packages/0\"],[]],\"paths\":[[<\"packages\">],[<\"packages\">,<\"acme-corp\">]]}},"
          "\"verdict\":{\"packages\":[{\"item\":<\"acme-corp\">,\"unmet\":[\"pin\"]}],\"reason\":{\"path\":[\"x\",<\"acme-corp\">]}}}" },
        { "with less between them", "/tenant", "{\"tenant\":\"acme--corp\",\"principal\":\"x acme.corp\",\"message\":\"acme corp\"}",
          "{\"tenant\":<\"acme--corp\">,\"principal\":<\"x acme.corp\">,\"message\":\"acme corp\"}" },
        { "a label is no fixed word, whatever it is called", "/tenant", "{\"tenant\":\"acme\",\"facts\":{\"request\":{\"tenant\":{\"labels\":{\"mode\":\"acme\",\"effect\":\"acme\"}}}}}",
          "{\"tenant\":<\"acme\">,\"facts\":{\"request\":{\"tenant\":{\"labels\":{\"mode\":<\"acme\">,\"effect\":<\"acme\">}}}}}" },
        { "digits in a digest", "/tenant", "{\"tenant\":\"beef\",\"source\":{\"sha256\":\"00beef00\"},\"facts\":{\"request\":{\"source_sha256\":\"beef\"}}}",
          "{\"tenant\":<\"beef\">,\"source\":{\"sha256\":\"00beef00\"},\"facts\":{\"request\":{\"source_sha256\":<\"beef\">}}}" },
        { "of other kinds of records", "/tenant", "{\"tenant\":\"acme\",\"name\":\"acme-rules\",\"message\":\"/etc/acme: no\",\"file\":\"/etc/acme.yaml\",\"version\":\"1\"}",
          "{\"tenant\":<\"acme\">,\"name\":<\"acme-rules\">,\"message\":<\"/etc/acme: no\">,\"file\":<\"/etc/acme.yaml\">,\"version\":\"1\"}" },
        { "no canonical form", "/facts/x", "{\"facts\":{\"x\":{\"secret\":\"acme\",\"n\":0.5}},\"principal\":\"acme\"}",
          "{\"facts\":{\"x\":{\"redacted\":\"withheld\"}},\"principal\":<\"acme\">}" },
};

static void what_is_hidden(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_json_unrefp) json_t *body = parse(rows[i].body), *kept = NULL, *shared = NULL,
                                                 *expected = NULL;

                hide(log, rows[i].pointers);
                expected = expand(log, rows[i].expected);
                kept = json_deep_copy(body);
                shared = json_copy(body);
                /* Twice: what is hidden is not hidden again. */
                for (unsigned k = 0; k < 2; k++) {
                        assert_int_equal(rv_log_redact(log, shared), 0);
                        if (!json_equal(shared, expected))
                                fail_msg("%s: %s", rows[i].name, json_dumps(shared, JSON_SORT_KEYS));
                }
                /* What the body shares with others is as it was. */
                assert_true(json_equal(body, kept));
        }
}

/* Every byte of every file below STATE. */
static const char *sought;
static unsigned n_files_seen;

static int look_into(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };

        (void)st;
        (void)ftw;
        if (flag != FTW_F)
                return 0;
        n_files_seen++;
        if (rv_read_file_at(AT_FDCWD, path, (size_t)64 << 20, &b) < 0)
                fail_msg("%s cannot be read", path);
        if (memmem(b.data, b.size, sought, strlen(sought)))
                fail_msg("%s stands in %s", sought, path);
        return 0;
}

static void expect_nowhere(void **state, const char *text)
{
        sought = text;
        n_files_seen = 0;
        nftw(tmp_path(state, "state"), look_into, 16, FTW_PHYS);
        assert_true(n_files_seen > 3);
}

/* By every way into a record, and into what is kept beside the log. */
static void nowhere_in_the_state(void **state)
{
        static const char body_text[] = "{\"tenant\":\"" SECRET "\",\"decision_id\":\"0\",\"facts\":{\"request\":{\"tenant\":{\"name\":\"" SECRET "\"}}},"
                "\"verdict\":{\"denials\":[{\"message\":\"" SECRET " may not\"}]}}";
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *body = parse(body_text), *again = parse(body_text), *records = NULL;

        hide(log, "/tenant");
        assert_int_equal(rv_log_enlist(log, NULL), 0);
        assert_int_equal(rv_log_append_synced(log, "decision", body, NULL, NULL), 0);
        assert_int_equal(rv_log_append(log, "gap", body, NULL, NULL), 0);
        assert_int_equal(rv_log_note_bundle(log, "sha256:a", body, NULL), 1);
        assert_int_equal(rv_log_note_bundle(log, "sha256:a", body, NULL), 0);
        rv_log_owe(log);
        assert_int_equal(rv_log_leave(log, body), 0);
        expect_nowhere(state, SECRET);
        rv_log_close(rv_take(&log));
        expect_nowhere(state, SECRET);
        assert_true(json_equal(body, again));
        records = read_log(state);
        assert_int_equal(json_array_size(records), 3);
        for (size_t i = 0; i < 3; i++)
                assert_true(rv_log_is_commitment(json_object_get(json_array_get(records, i), "tenant")));
}

/* A tenant's newest bundle is found whether it was hidden then or not, and without the cache. */
static void notes_of_hidden_tenants(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *a = json_pack("{s:s}", "tenant", "a"), *b = json_pack("{s:s}", "tenant", "b");
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        assert_int_equal(rv_log_note_bundle(log, "sha256:x", a, NULL), 1);
        hide(log, "/tenant");
        for (unsigned i = 0; i < 4; i++) {
                char path[64];
                struct dirent **names;
                int n;

                assert_int_equal(rv_log_note_bundle(log, "sha256:x", a, NULL), 0);
                assert_int_equal(rv_log_note_bundle(log, i < 2 ? "sha256:y" : "sha256:z", b, NULL), i % 2 == 0);
                n = scandir(in_state(state, "audit/last"), &names, NULL, NULL);
                for (int k = 0; k < n; k++) {
                        snprintf(path, sizeof(path), "audit/last/%.50s", names[k]->d_name);
                        (void)unlink(in_state(state, path));
                        free(names[k]);
                }
                free(names);
        }
}

static size_t allocations_left;

static void *scarce_malloc(size_t n)
{
        if (allocations_left == 0)
                return NULL;
        allocations_left--;
        return malloc(n);
}

/* Memory gives out at every moment: the record is not there, or shows nothing. */
static void out_of_memory(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *body = parse(JANE), *records = NULL;
        size_t n_written = 0, n_failed = 0;

        json_object_set_new(body, "tenant", json_string(SECRET));
        hide(log, "/tenant /facts/request/tenant");
        for (size_t n = 0; n_written < 3; n++) {
                int r;

                allocations_left = n;
                json_set_alloc_funcs(scarce_malloc, free);
                r = rv_log_append(log, "decision", body, NULL, NULL);
                json_set_alloc_funcs(malloc, free);
                assert_true(r == 0 || r == -ENOMEM || r == -EBADMSG);
                n_written += r == 0;
                n_failed += r != 0;
        }
        assert_true(n_failed > 10);
        expect_nowhere(state, SECRET);
        expect_nowhere(state, "jane");
        records = read_log(state);
        assert_int_equal(json_array_size(records), n_written);
}

static void without_a_list(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *body = parse("{\"tenant\":\"t\",\"facts\":{\"a\":1}}"),
                                         *kept = json_copy(body);

        assert_int_equal(rv_log_redact(log, body), 0);
        assert_ptr_equal(json_object_get(body, "facts"), json_object_get(kept, "facts"));
        hide(log, "/tenant");
        hide(log, "");
        assert_null(log->redaction);
        assert_int_equal(rv_log_redact(log, body), 0);
        assert_true(json_equal(body, kept));
}

static void refused(void **state)
{
        static const char *const bad[] = { "/tenant", "tenant" };
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *deep = json_object(), *body = json_object();

        hide(log, "/principal");
        assert_int_equal(rv_log_set_redaction(log, bad, 2), -EINVAL);
        assert_int_equal(log->redaction != NULL, 1);   /* the one before holds */
        for (unsigned i = 0; i < 70; i++) {
                json_t *outer = json_pack("{s:o}", "x", json_incref(deep));

                json_decref(deep);
                deep = outer;
        }
        json_object_set(body, "facts", deep);
        assert_int_equal(rv_log_redact(log, body), -ELOOP);
        assert_true(rv_log_append(log, "decision", body, NULL, NULL) < 0);
}

static void commitments(void **state)
{
        static const struct {
                const char *text;
                bool is;
        } values[] = {
                { "{\"redacted\":\"withheld\"}", true },
                { "{\"redacted\":\"hmac-sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}", true },
                { "{\"redacted\":\"hmac-sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeF\"}", false },
                { "{\"redacted\":\"hmac-sha256:0123\"}", false }, { "{\"redacted\":\"secret\"}", false }, { "{\"redacted\":1}", false },
                { "{\"redacted\":\"withheld\",\"more\":\"secret\"}", false }, { "{}", false }, { "[]", false }, { "\"withheld\"", false }, { "null", false },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(values); i++) {
                _cleanup_(rv_json_unrefp) json_t *value = parse(values[i].text);

                if (rv_log_is_commitment(value) != values[i].is)
                        fail_msg("%s", values[i].text);
        }
        assert_false(rv_log_is_commitment(NULL));
}

/* Against the plain way, on texts of few letters so that much is met. */
static bool plain_match(char **texts, size_t n, const char *text, bool is_whole)
{
        for (size_t i = 0; i < n; i++)
                if (strcasecmp(texts[i], text) == 0 ||
                        (!is_whole && strlen(texts[i]) >= 4 && strcasestr(text, texts[i])))
                        return true;
        return false;
}

static void random_texts(void **state)
{
        unsigned random = 7, n_met = 0;

        (void)state;
        for (unsigned round = 0; round < 2000; round++) {
                _cleanup_(rv_redact_texts_fini) struct rv_redact_texts set = { 0 };
                char store[12][24], *texts[12];
                size_t n = round % 11;

                for (size_t i = 0; i < n + 1; i++) {
                        size_t length = (random = random * 1103515245 + 12345) / 65536 % (i < n ? 8 : 23);

                        for (size_t k = 0; k < length; k++)
                                store[i][k] = "abAB"[(random = random * 1103515245 + 12345) / 65536 % 4];
                        store[i][length] = 0;
                        texts[i] = store[i];
                        if (!length)
                                snprintf(store[i], sizeof(store[i]), "x");
                        if (i < n)
                                assert_int_equal(rv_redact_texts_add(&set, store[i], strlen(store[i])), 0);
                }
                assert_int_equal(rv_redact_texts_seal(&set), 0);
                for (unsigned whole = 0; whole < 2; whole++) {
                        bool met = rv_redact_texts_match(&set, store[n], strlen(store[n]), whole);

                        n_met += met;
                        if (met != plain_match(texts, n, store[n], whole))
                                fail_msg("round %u: %s", round, store[n]);
                }
        }
        assert_true(n_met > 200);
}

/* Many names to be hidden in a long record: no work that grows with both. */
static void many_texts(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_json_unrefp) json_t *packages = json_array(), *body = NULL;
        uint64_t begun_us;

        for (unsigned i = 0; i < 2000; i++) {
                char name[64], requested[200];

                snprintf(name, sizeof(name), "@types/package-%u-%u", i, i * i);
                snprintf(requested, sizeof(requested), "@types/package-%0120u@1", i);
                json_array_append_new(packages, json_pack("{s:s, s:s}", "name", name, "requested", requested));
        }
        body = json_pack("{s:{s:O}}", "facts", "packages", packages);
        hide(log, "/facts/packages/*/name");
        begun_us = rv_boot_us();
        assert_int_equal(rv_log_redact(log, body), 0);
        print_message("%llu us for 2000 packages\n", (unsigned long long)(rv_boot_us() - begun_us));
        assert_true(rv_boot_us() - begun_us < 3000000);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(what_is_hidden),
                TMP(nowhere_in_the_state),
                TMP(notes_of_hidden_tenants),
                TMP(out_of_memory),
                TMP(without_a_list),
                TMP(refused),
                cmocka_unit_test(commitments),
                cmocka_unit_test(random_texts),
                TMP(many_texts),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
