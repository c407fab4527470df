/*
 * The index over the log: what it answers, when it is made anew, and that it agrees with a model of the log whatever is
 * appended to it, whoever asks, and whatever is done to its files.
 */
#include "store/index.h"

#include "test_audit_common.h"

#include <limits.h>
#include <sqlite3.h>
#include <sys/wait.h>

static uint64_t chance_state;

static unsigned chance(unsigned n)
{
        chance_state = chance_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        return (unsigned)(chance_state >> 33) % n;
}

static void hex_of(const char *prefix, unsigned n, size_t size, char *ret)
{
        char text[64], hex[RV_SHA256_HEX_SIZE];

        snprintf(text, sizeof(text), "%s %u", prefix, n);
        rv_sha256_hex(text, strlen(text), hex);
        memcpy(ret, hex, size - 1);
        ret[size - 1] = 0;
}

static void append(struct rv_log *log, const char *kind, json_t *take_body)
{
        struct rv_error err = { 0 };

        if (rv_log_append(log, kind, take_body, NULL, &err) != 0)
                fail_msg("%s", err.message);
        json_decref(take_body);
}

/* @key: UINT_MAX is none. */
static void decide(
        struct rv_log *log, unsigned decision, unsigned key, unsigned body, const char *effect, const char *refused)
{
        char id[33], run[33], key_hex[65], fingerprint[65];
        json_t *record;

        hex_of("decision", decision, sizeof(id), id);
        hex_of("run", decision, sizeof(run), run);
        record = json_pack("{s:s, s:s, s:s, s:{s:s}}", "decision_id", id, "run_id", run, "tenant", "local", "verdict", "effect", effect);
        if (key != UINT_MAX) {
                hex_of("key", key, sizeof(key_hex), key_hex);
                hex_of("body", body, sizeof(fingerprint), fingerprint);
                json_object_set_new(record, "key", json_pack("{s:s, s:s, s:i}", "hmac_sha256", key_hex, "fingerprint", fingerprint, "bytes", 3));
        }
        if (refused)
                json_object_set_new(record, "refused", json_string(refused));
        append(log, "decision", record);
}

static void conclude(struct rv_log *log, unsigned decision, const char *started)
{
        char id[33], run[33], sha256[65];

        hex_of("decision", decision, sizeof(id), id);
        hex_of("run", decision, sizeof(run), run);
        hex_of("outcome", decision, sizeof(sha256), sha256);
        append(log, "outcome", json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "decision_id", id, "run_id", run, "tenant", "local", "outcome_sha256", sha256,
                                         "status", "failed", "code", "exit_nonzero", "started", started));
}

static struct rv_index *open_index(struct rv_log *log)
{
        struct rv_index *index = NULL;

        assert_int_equal(rv_index_open(log, &index), 0);
        return index;
}

static struct rv_index_key find(struct rv_index *index, unsigned key)
{
        struct rv_index_key found = { 0 };
        struct rv_error err = { 0 };
        char hex[65];

        hex_of("key", key, sizeof(hex), hex);
        if (rv_index_find(index, hex, &found, &err) != 0)
                fail_msg("key %u: %s", key, err.message);
        return found;
}

/* By a new object, as another process would. *ret_n_made: how often it had to make the index. */
static struct rv_index_key find_once(struct rv_log *log, unsigned key, unsigned *ret_n_made)
{
        struct rv_index *index = open_index(log);
        struct rv_index_key found = find(index, key);

        if (ret_n_made)
                *ret_n_made = rv_index_n_made(index);
        rv_index_close(index);
        return found;
}

static void expect(const struct rv_index_key *found, enum rv_index_state state, unsigned decision)
{
        char id[33], run[33], sha256[65];

        assert_int_equal(found->state, state);
        if (state == RV_INDEX_FREE)
                return;
        hex_of("decision", decision, sizeof(id), id);
        hex_of("run", decision, sizeof(run), run);
        hex_of("outcome", decision, sizeof(sha256), sha256);
        assert_string_equal(found->decision_id, id);
        assert_string_equal(found->run_id, run);
        assert_true(found->decided_us > 0);
        if (state == RV_INDEX_DONE) {
                assert_string_equal(found->outcome_sha256, sha256);
                assert_true(found->ended_us >= found->decided_us);
        }
}

static void the_life_of_a_key(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_index *index = open_index(log);
        struct rv_index_key found;

        found = find(index, 1);         /* of a log without a record */
        expect(&found, RV_INDEX_FREE, 0);
        decide(log, 1, 1, 1, "allow", NULL);
        found = find(index, 1);
        expect(&found, RV_INDEX_OPEN, 1);
        conclude(log, 1, "no");
        found = find(index, 1);
        expect(&found, RV_INDEX_FREE, 0);
        decide(log, 2, 1, 2, "allow", NULL);
        append_text(log, "rejected", 10);
        conclude(log, 2, "unknown");
        found = find(index, 1);
        expect(&found, RV_INDEX_DONE, 2);
        decide(log, 3, 1, 3, "deny", NULL);
        conclude(log, 3, "no");
        decide(log, 4, 1, 3, "allow", "backend_denied");
        conclude(log, 4, "no");
        found = find(index, 1);
        expect(&found, RV_INDEX_DONE, 2);
        assert_int_equal(rv_index_n_made(index), 1);
        rv_index_close(index);
        found = find_once(log, 1, NULL);
        expect(&found, RV_INDEX_DONE, 2);
}

static void a_second_stage(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_index_key found;

        decide(log, 1, 1, 1, "allow", NULL);
        decide(log, 1, 1, 1, "deny", NULL);
        found = find_once(log, 1, NULL);
        expect(&found, RV_INDEX_OPEN, 1);
        conclude(log, 1, "no");
        found = find_once(log, 1, NULL);
        expect(&found, RV_INDEX_FREE, 0);
}

/* Each record is read by an index that has not read those before: a second one without a key leaves the key as it is. */
static void a_second_stage_read_by_another(void **state)
{
        static const struct {
                const char *effect, *started;
                enum rv_index_state then;
        } rows[] = {
                { "deny", "no", RV_INDEX_FREE }, { "allow", "no", RV_INDEX_FREE }, { "allow", "yes", RV_INDEX_DONE },
        };
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_index_key found;

        for (unsigned i = 0; i < RV_N_ELEMENTS(rows); i++) {
                decide(log, i, i, i, "allow", NULL);
                found = find_once(log, i, NULL);
                expect(&found, RV_INDEX_OPEN, i);
                decide(log, i, UINT_MAX, i, rows[i].effect, NULL);
                found = find_once(log, i, NULL);
                expect(&found, RV_INDEX_OPEN, i);
                conclude(log, i, rows[i].started);
                found = find_once(log, i, NULL);
                expect(&found, rows[i].then, rows[i].then == RV_INDEX_DONE ? i : 0);
        }
}

/* And by one that reads second record and outcome together. */
static void a_second_stage_read_with_the_outcome(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_index_key found;

        decide(log, 1, 1, 1, "allow", NULL);
        found = find_once(log, 1, NULL);
        decide(log, 1, UINT_MAX, 1, "deny", NULL);
        conclude(log, 1, "no");
        found = find_once(log, 1, NULL);
        expect(&found, RV_INDEX_FREE, 0);
}

/* ---- When it is made anew ---- */

static const char *index_file(void **state, const char *suffix)
{
        char name[64];

        snprintf(name, sizeof(name), "index.sqlite%s", suffix);
        return in_state(state, name);
}

static void execute(void **state, const char *sql)
{
        char command[1024];

        snprintf(command, sizeof(command), "/usr/bin/python3 -c 'import sqlite3,sys; c=sqlite3.connect(sys.argv[1]); c.executescript(sys.argv[2]); c.commit()' %s \"%s\"",
                 index_file(state, ""), sql);
        assert_int_equal(system(command), 0);
}

static void broken_in_any_way(void **state)
{
        static const char *const ways[] = {
                "DELETE FROM keys", "UPDATE keys SET fingerprint = x'00'", "UPDATE keys SET key = zeroblob(32)", "UPDATE keys SET ended_us = 1",
                "DELETE FROM cursor", "UPDATE cursor SET offset = offset + 1", "UPDATE cursor SET segment = 7", "UPDATE cursor SET log_id = 'x'",
                "UPDATE cursor SET boot_id = 'x'", "UPDATE cursor SET sums = zeroblob(2048)", "UPDATE cursor SET has_line = 0, sums = zeroblob(2048)", "UPDATE cursor SET length = length - 1", "UPDATE cursor SET line_sha256 = zeroblob(32)", "DROP TABLE keys", "DROP TABLE runs", "DELETE FROM runs",
                "UPDATE runs SET offset = 0, length = 9999999", "UPDATE runs SET outcome_offset = offset, outcome_length = length", "PRAGMA user_version = 9",
                "UPDATE runs SET length = 'x'", "UPDATE runs SET decision_id = x'00'",
        };
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        decide(log, 1, 1, 1, "allow", NULL);
        conclude(log, 1, "yes");
        for (size_t i = 0; i < RV_N_ELEMENTS(ways); i++) {
                struct rv_index_key found = find_once(log, 1, NULL);
                unsigned n_made;

                expect(&found, RV_INDEX_DONE, 1);
                execute(state, ways[i]);
                found = find_once(log, 1, &n_made);
                expect(&found, RV_INDEX_DONE, 1);
                if (n_made != 1)
                        fail_msg("%s: it was made %u times", ways[i], n_made);
                found = find_once(log, 1, &n_made);
                expect(&found, RV_INDEX_DONE, 1);
                assert_int_equal(n_made, 0);
        }
}

/* Another process has made the file and is about to make more of it: that is waited for. */
static void being_made(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_index_key found;
        int ready[2], status;
        pid_t pid;
        char c;

        assert_int_equal(pipe(ready), 0);
        pid = fork();
        if (pid == 0) {
                sqlite3 *db = NULL;

                if (sqlite3_open(index_file(state, ""), &db) != SQLITE_OK || sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK ||
                    write(ready[1], "x", 1) != 1)
                        _exit(1);
                usleep(200000);
                _exit(0);
        }
        assert_int_equal(read(ready[0], &c, 1), 1);
        decide(log, 1, 1, 1, "allow", NULL);
        found = find_once(log, 1, NULL);
        expect(&found, RV_INDEX_OPEN, 1);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        close(ready[0]);
        close(ready[1]);
}

/* An outcome whose decision the index does not know any more. */
static void broken_before_an_outcome(void **state)
{
        static const char *const ways[] = { "DELETE FROM runs", "UPDATE runs SET offset = offset + 1", "UPDATE runs SET decision_id = randomblob(16)" };
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        for (unsigned i = 0; i < RV_N_ELEMENTS(ways); i++) {
                struct rv_index_key found;

                decide(log, i, i, 1, "allow", NULL);
                found = find_once(log, i, NULL);
                expect(&found, RV_INDEX_OPEN, i);
                execute(state, ways[i]);
                conclude(log, i, "yes");
                found = find_once(log, i, NULL);
                expect(&found, RV_INDEX_DONE, i);
        }
}

static void another_log(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = NULL;
        struct rv_index_key found;
        struct rv_log *first = open_log(state);
        unsigned n_made;

        decide(first, 1, 1, 1, "allow", NULL);
        conclude(first, 1, "yes");
        find_once(first, 1, NULL);
        rv_log_close(first);
        assert_int_equal(rename(in_state(state, "audit"), in_state(state, "old")), 0);
        log = open_log(state);
        found = find_once(log, 1, &n_made);
        expect(&found, RV_INDEX_FREE, 0);
        assert_int_equal(n_made, 1);
}

/* The log was restored from a copy, and what was there is not any more. */
static void a_shorter_log(void **state)
{
        struct rv_log *log = open_log(state);
        struct rv_index_key found;
        struct stat st;

        decide(log, 1, 1, 1, "allow", NULL);
        assert_int_equal(stat(in_state(state, SEGMENT), &st), 0);
        conclude(log, 1, "yes");
        found = find_once(log, 1, NULL);
        expect(&found, RV_INDEX_DONE, 1);
        rv_log_close(log);
        assert_int_equal(truncate(in_state(state, SEGMENT), st.st_size), 0);
        log = open_log(state);
        found = find_once(log, 1, NULL);
        expect(&found, RV_INDEX_OPEN, 1);
        rv_log_close(log);
}

/* Outcomes of decisions that stood in a segment which is not there any more. */
static void a_log_without_its_beginning(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_index_key found;
        unsigned n_made;

        conclude(log, 1, "yes");
        decide(log, 2, 2, 2, "allow", NULL);
        found = find_once(log, 2, NULL);
        expect(&found, RV_INDEX_OPEN, 2);
        conclude(log, 2, "yes");
        found = find_once(log, 2, &n_made);
        expect(&found, RV_INDEX_DONE, 2);
        assert_int_equal(n_made, 0);
        conclude(log, 3, "yes");
        found = find_once(log, 2, &n_made);
        expect(&found, RV_INDEX_DONE, 2);
        assert_int_equal(n_made, 0);
}

static void an_incomplete_line(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_index_key found;
        FILE *f;

        decide(log, 1, 1, 1, "allow", NULL);
        f = fopen(in_state(state, SEGMENT), "a");
        fputs("{\"kind\":\"outcome\",\"deci", f);
        fclose(f);
        found = find_once(log, 1, NULL);
        expect(&found, RV_INDEX_OPEN, 1);
        conclude(log, 1, "yes");        /* cuts it off */
        found = find_once(log, 1, NULL);
        expect(&found, RV_INDEX_DONE, 1);
}

static void not_a_file(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        struct rv_index *index = open_index(log);
        struct rv_index_key found;
        struct rv_error err = { 0 };
        char hex[65];

        decide(log, 1, 1, 1, "allow", NULL);
        assert_int_equal(symlink("keys/hmac", index_file(state, "")), 0);
        found = find(index, 1);
        expect(&found, RV_INDEX_OPEN, 1);
        rv_index_close(index);
        assert_int_equal(unlink(index_file(state, "")), 0);
        assert_int_equal(mkdir(index_file(state, ""), 0700), 0);
        index = open_index(log);
        hex_of("key", 1, sizeof(hex), hex);
        assert_int_equal(rv_index_find(index, hex, &found, &err), -EISDIR);
        assert_non_null(strstr(err.message, "index.sqlite"));
        rv_index_close(index);
}

/* ---- Against a model ---- */

#define N_KEYS 12

static struct model {
        enum rv_index_state state;
        unsigned decision, body;
} model[N_KEYS];

static void damage(void **state)
{
        static const char *const suffixes[] = { "", "", "", "-wal", "-shm" };
        const char *path = index_file(state, suffixes[chance(RV_N_ELEMENTS(suffixes))]);
        int fd = open(path, O_RDWR | O_CLOEXEC);
        struct stat st = { 0 };

        if (fd < 0)
                return;
        fstat(fd, &st);
        switch (chance(4)) {
        case 0:
                assert_int_equal(unlink(path), 0);
                break;
        case 1:
                assert_int_equal(ftruncate(fd, st.st_size ? (off_t)chance((unsigned)st.st_size) : 0), 0);
                break;
        default:
                for (unsigned i = 1 + chance(20); i > 0 && st.st_size; i--) {
                        uint8_t byte = (uint8_t)chance(256);

                        assert_int_equal(pwrite(fd, &byte, 1, (off_t)chance((unsigned)st.st_size)), 1);
                }
        }
        close(fd);
}

static void step(struct rv_log *log, unsigned number)
{
        unsigned k = chance(N_KEYS);
        struct model *m = &model[k];

        if (m->state == RV_INDEX_OPEN && chance(3)) {
                const char *started = chance(3) ? chance(2) ? "yes" : "unknown" : "no";

                conclude(log, m->decision, started);
                m->state = strcmp(started, "no") ? RV_INDEX_DONE : RV_INDEX_FREE;
        } else if (chance(4) == 0) {
                decide(log, number, chance(2) ? k : UINT_MAX, 0, chance(2) ? "deny" : "allow", "limit_denied");
                conclude(log, number, "no");
        } else if (m->state != RV_INDEX_OPEN) {
                *m = (struct model){ RV_INDEX_OPEN, number, chance(3) };
                decide(log, number, k, m->body, "allow", NULL);
        } else
                append_text(log, "rejected", chance(200));
}

static void check(struct rv_index *index, unsigned k, unsigned number)
{
        struct rv_index_key found = find(index, k);
        char fingerprint[65];

        if (found.state != model[k].state)
                fail_msg("step %u: key %u is %d, not %d", number, k, (int)found.state, (int)model[k].state);
        expect(&found, model[k].state, model[k].decision);
        hex_of("body", model[k].body, sizeof(fingerprint), fingerprint);
        if (found.state != RV_INDEX_FREE)
                assert_string_equal(found.fingerprint, fingerprint);
}

static void agrees_with_a_model(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state), *other = open_log(state);
        const char *seed = getenv("TEST_SEED");
        struct rv_index *index = open_index(log);
        unsigned n_made = 0;

        chance_state = seed ? strtoull(seed, NULL, 10) : 20260731;
        memset(model, 0, sizeof(model));
        for (unsigned i = 1; i <= 4000; i++) {
                step(chance(2) ? log : other, i);
                if (chance(3) == 0)
                        check(index, chance(N_KEYS), i);
                if (chance(10) == 0) {
                        n_made += rv_index_n_made(index);
                        rv_index_close(index);
                        if (chance(2))
                                damage(state);
                        index = open_index(chance(2) ? log : other);
                        check(index, chance(N_KEYS), i);
                }
        }
        for (unsigned k = 0; k < N_KEYS; k++)
                check(index, k, 0);
        print_message("the index was made %u times\n", n_made + rv_index_n_made(index));
        rv_index_close(index);
}

/* ---- Many processes ---- */

#define N_PROCESSES 4

static int check_free(void *ctx, struct rv_log *log, struct rv_error *err)
{
        struct rv_index_key found;
        char hex[65];
        int r;

        (void)log;
        hex_of("key", 1, sizeof(hex), hex);
        r = rv_index_find_locked(ctx, hex, &found, err);
        return r != 0 ? r < 0 ? r : 2 : found.state != RV_INDEX_FREE;
}

/* Takes the key when it is free, and lets it go again; how often it was had. */
static unsigned claim_often(void **state, unsigned process)
{
        struct rv_log *log = open_log(state);
        struct rv_index *index = open_index(log);
        unsigned n = 0;

        for (unsigned i = 0; i < 60; i++) {
                char key[65], fingerprint[65], id[33];
                unsigned decision = 1000 + process * 1000 + i;
                json_t *body;
                int r;

                hex_of("key", 1, sizeof(key), key);
                hex_of("body", 1, sizeof(fingerprint), fingerprint);
                hex_of("decision", decision, sizeof(id), id);
                body = json_pack("{s:s, s:s, s:s, s:{s:s}, s:{s:s, s:s}}", "decision_id", id, "run_id", id, "tenant", "local", "verdict", "effect", "allow", "key", "hmac_sha256", key,
                                 "fingerprint", fingerprint);
                r = rv_log_append_if(log, "decision", body, check_free, index, NULL, NULL);
                json_decref(body);
                if (r == 0) {
                        n++;
                        conclude(log, decision, "no");
                } else if (r < 0)
                        _exit(255);
                else if (r == 2)
                        find(index, 1);
                rv_index_close(index);
                index = open_index(log);
        }
        rv_index_close(index);
        rv_log_close(log);
        return n;
}

/* Between a decision that takes the key and the outcome that lets it go there is none that takes it. */
static void one_at_a_time(void **state)
{
        unsigned n_claims = 0, n_seen = 0;
        pid_t pids[N_PROCESSES];
        json_t *records, *record;
        char holder[64] = "";
        size_t i;

        rv_log_close(open_log(state));
        for (unsigned k = 0; k < N_PROCESSES; k++) {
                pids[k] = fork();
                if (pids[k] == 0)
                        _exit((int)claim_often(state, k));
        }
        for (unsigned k = 0; k < N_PROCESSES; k++) {
                int status;

                assert_int_equal(waitpid(pids[k], &status, 0), pids[k]);
                assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 60);
                n_claims += (unsigned)WEXITSTATUS(status);
        }
        records = read_log(state);
        json_array_foreach(records, i, record) {
                const char *id = rv_json_get_string(record, "decision_id", "");

                if (!strcmp(rv_json_get_string(record, "kind", ""), "decision")) {
                        assert_string_equal(holder, "");
                        snprintf(holder, sizeof(holder), "%s", id);
                        n_seen++;
                } else {
                        assert_string_equal(holder, id);
                        holder[0] = 0;
                }
        }
        json_decref(records);
        assert_int_equal(n_seen, n_claims);
        assert_true(n_claims > 10);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TMP(the_life_of_a_key),
                TMP(a_second_stage),
                TMP(a_second_stage_read_by_another),
                TMP(a_second_stage_read_with_the_outcome),
                TMP(broken_in_any_way),
                TMP(being_made),
                TMP(broken_before_an_outcome),
                TMP(another_log),
                TMP(a_shorter_log),
                TMP(a_log_without_its_beginning),
                TMP(an_incomplete_line),
                TMP(not_a_file),
                TMP(agrees_with_a_model),
                TMP(one_at_a_time),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
