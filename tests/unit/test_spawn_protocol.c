/*
 * The spawner against a loop that was taken over: messages of another size, fields out of range, names without
 * an end, descriptors that are too few, too many or of another kind, noise. Each is refused or ends the channel;
 * nothing is left, and nothing crashes.
 */
#include "test_spawn.h"

#include "audit/sign_msg.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Ends the channel: everything dies, the spawner with it. */
static void expect_closed(const struct child *c, const char *what)
{
        struct rv_spawn_report report;
        int r = receive(c, &report);

        if (r != 0)
                fail_msg("%s: %s", what, r == 1 ? "a report came" : "the channel stays open");
}

static void expect_refused(const struct child *c, const char *what, uint64_t id)
{
        struct rv_spawn_report report;

        expect_event(c, what, RV_SPAWN_FAILED, &report);
        if (report.id != id || report.event.fault != RV_BACKEND_FAULT_SETUP || !report.event.fault_text[0])
                fail_msg("%s: fault %u: %s", what, report.event.fault, report.event.fault_text);
        expect_event(c, what, RV_SPAWN_REMOVED, &report);
        assert_int_equal(report.id, id);
}

/* ---- Sizes ---- */

static void other_sizes(void **state)
{
        static const size_t sizes[] = { 0, 1, 4, sizeof(struct rv_spawn_request) - 1,
                sizeof(struct rv_spawn_request) + 1, 4096, 60000 };
        static char bytes[60000];
        struct rv_spawn_request q = good_request(1);

        memcpy(bytes, &q, sizeof(q));
        for (size_t i = 0; i < RV_N_ELEMENTS(sizes); i++) {
                char what[64];
                struct child c;
                struct ends e;

                snprintf(what, sizeof(what), "%zu bytes", sizes[i]);
                spawner_begin(state, "", &c);
                ends_open("print(1)", &e);
                assert_int_equal(send_raw(c.fd, bytes, sizes[i], e.theirs, RV_SPAWN_FD_MAX_), 0);
                expect_closed(&c, what);
                ends_close(&e);
                spawner_end(&c, what);
        }
}

static void other_kinds(void **state)
{
        static const uint32_t kinds[] = { 0, 3, 255, UINT32_MAX };

        for (size_t i = 0; i < RV_N_ELEMENTS(kinds); i++) {
                struct rv_spawn_request q = good_request(1);
                char what[64];
                struct child c;
                struct ends e;

                snprintf(what, sizeof(what), "kind %u", kinds[i]);
                q.kind = kinds[i];
                spawner_begin(state, "", &c);
                ends_open("print(1)", &e);
                give(&c, &q, &e);
                expect_closed(&c, what);
                ends_close(&e);
                spawner_end(&c, what);
        }
}

/* ---- Descriptors ---- */

static void other_numbers_of_descriptors(void **state)
{
        static const struct {
                uint32_t kind;
                size_t n_fds;
        } rows[] = {
                { RV_SPAWN_REQUEST_START, 0 },
                { RV_SPAWN_REQUEST_START, 1 },
                { RV_SPAWN_REQUEST_START, 4 },
                { RV_SPAWN_REQUEST_START, 6 },
                { RV_SPAWN_REQUEST_START, 16 },
                { RV_SPAWN_REQUEST_STOP, 1 },
                { RV_SPAWN_REQUEST_STOP, 5 },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_spawn_request q = good_request(1);
                char what[64];
                int fds[16];
                struct child c;
                struct ends e;

                snprintf(what, sizeof(what), "kind %u with %zu descriptors", rows[i].kind, rows[i].n_fds);
                q.kind = rows[i].kind;
                spawner_begin(state, "", &c);
                ends_open("print(1)", &e);
                for (size_t j = 0; j < 16; j++)
                        fds[j] = e.theirs[j % RV_SPAWN_FD_MAX_];
                assert_int_equal(send_raw(c.fd, &q, sizeof(q), fds, rows[i].n_fds), 0);
                expect_closed(&c, what);
                ends_close(&e);
                spawner_end(&c, what);
        }
}

/* The right number, but not what they should be: the run may fail, no more. */
static void other_kinds_of_descriptors(void **state)
{
        static const char *const names[RV_SPAWN_FD_MAX_] = { "control", "payload", "stdin", "stdout", "stderr" };

        for (size_t i = 0; i < RV_SPAWN_FD_MAX_; i++) {
                struct rv_spawn_request q = good_request(i + 1);
                struct rv_spawn_report report;
                char go = RV_INIT_GO;
                struct child c;
                struct ends e;

                spawner_begin(state, "", &c);
                ends_open("print(1)", &e);
                rv_close(e.theirs[i]);
                e.theirs[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
                give(&c, &q, &e);
                (void)send(e.control, &go, 1, MSG_NOSIGNAL);
                do
                        if (receive(&c, &report) != 1)
                                fail_msg("%s is /dev/null: no report", names[i]);
                while (report.event.kind == RV_SPAWN_HELD);
                if (report.event.kind != RV_SPAWN_ENDED && report.event.kind != RV_SPAWN_FAILED)
                        fail_msg("%s is /dev/null: event %u", names[i], report.event.kind);
                if (i == RV_SPAWN_FD_PAYLOAD)
                        assert_string_equal(report.event.fault_step, "read the payload");
                expect_event(&c, names[i], RV_SPAWN_REMOVED, &report);
                ends_close(&e);
                spawner_end(&c, names[i]);
        }
}

/* ---- Fields ---- */

#define SPOIL(name, ...) static void name(struct rv_spawn_request *q) { __VA_ARGS__; }
SPOIL(memory_4096, q->memory_mib = 4096)
SPOIL(memory_2049, q->memory_mib = 2049)
SPOIL(memory_127, q->memory_mib = 127)
SPOIL(memory_0, q->memory_mib = 0)
SPOIL(memory_most, q->memory_mib = UINT32_MAX)
SPOIL(timeout_0, q->timeout_s = 0)
SPOIL(timeout_301, q->timeout_s = 301)
SPOIL(timeout_most, q->timeout_s = UINT32_MAX)
SPOIL(pids_33, q->pids = 33)
SPOIL(pids_0, q->pids = 0)
SPOIL(pids_most, q->pids = UINT32_MAX)
SPOIL(cpus_1, q->cpus_milli = 1)
SPOIL(language_2, q->language = 2)
SPOIL(network_4, q->network = RV_PLAN_NETWORK_ANY + 1)
SPOIL(network_most, q->network = UINT32_MAX)
SPOIL(tenant_unknown, strcpy(q->tenant, "other"))
SPOIL(tenant_empty, q->tenant[0] = 0)
SPOIL(tenant_without_end, memset(q->tenant, 'a', sizeof(q->tenant)))
SPOIL(runtime_without_end, memset(q->runtime, 'a', sizeof(q->runtime)))
SPOIL(run_id_without_end, memset(q->run_id, 'a', sizeof(q->run_id)))
SPOIL(run_id_empty, q->run_id[0] = 0)
SPOIL(run_id_short, q->run_id[31] = 0)
SPOIL(run_id_no_hex, q->run_id[0] = '/')
SPOIL(run_id_upper, q->run_id[0] = 'A')
#undef SPOIL

static const struct {
        const char *name;
        void (*spoil)(struct rv_spawn_request *q);
} fields[] = {
#define ROW(f) { #f, f }
        ROW(memory_4096),
        ROW(memory_2049),
        ROW(memory_127),
        ROW(memory_0),
        ROW(memory_most),
        ROW(timeout_0),
        ROW(timeout_301),
        ROW(timeout_most),
        ROW(pids_33),
        ROW(pids_0),
        ROW(pids_most),
        ROW(cpus_1),
        ROW(language_2),
        ROW(network_4),
        ROW(network_most),
        ROW(tenant_unknown),
        ROW(tenant_empty),
        ROW(tenant_without_end),
        ROW(runtime_without_end),
        ROW(run_id_without_end),
        ROW(run_id_empty),
        ROW(run_id_short),
        ROW(run_id_no_hex),
        ROW(run_id_upper),
#undef ROW
};

static const char few_pids[] = "limits: {pids: 32}\n";

/* All on one channel: a refusal costs nothing, and after it a good run is possible. */
static void fields_out_of_range(void **state)
{
        struct rv_spawn_report report;
        unsigned n_fds;
        struct child c;
        struct ends e;

        spawner_begin(state, few_pids, &c);
        for (size_t i = 0; i < RV_N_ELEMENTS(fields); i++) {
                struct rv_spawn_request q = good_request(100 + i);

                fields[i].spoil(&q);
                ends_open("print(1)", &e);
                give(&c, &q, &e);
                expect_refused(&c, fields[i].name, 100 + i);
                ends_close(&e);
                if (i == 0)
                        n_fds = count_fds(c.pid);
        }
        assert_int_equal(count_fds(c.pid), n_fds);
        start_run(&c, 1, "print(1)", &e);
        expect_event(&c, "a good run", RV_SPAWN_ENDED, &report);
        expect_event(&c, "a good run", RV_SPAWN_REMOVED, &report);
        ends_close(&e);
        spawner_end(&c, "fields out of range");
}

static void a_runtime_that_is_not_there(void **state)
{
        static const char *const names[] = { "", "other", "../host", "/", "host ", "hos" };
        struct child c;

        spawner_begin(state, "", &c);
        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++) {
                struct rv_spawn_request q = good_request(i);
                struct rv_spawn_report report;
                struct ends e;

                snprintf(q.runtime, sizeof(q.runtime), "%s", names[i]);
                ends_open("print(1)", &e);
                give(&c, &q, &e);
                expect_event(&c, names[i], RV_SPAWN_FAILED, &report);
                assert_int_equal(report.event.fault, RV_BACKEND_FAULT_RUNTIME);
                expect_event(&c, names[i], RV_SPAWN_REMOVED, &report);
                ends_close(&e);
        }
        spawner_end(&c, "a runtime that is not there");
}

/* ---- The signer, on the same channel ---- */

static const char own_state[] = "state_dir: %s/state\n";

static void begin_signing(void **state, struct child *c)
{
        char text[512];

        assert_int_equal(mkdir(tmp_path(state, "state"), 0700), 0);
        snprintf(text, sizeof(text), own_state, (const char *)*state);
        spawner_begin(state, text, c);
}

static struct rv_sign_answer ask_signer(const struct child *c, const struct rv_sign_request *q)
{
        struct rv_sign_answer a;

        assert_int_equal(send_raw(c->fd, q, sizeof(*q), NULL, 0), 0);
        assert_int_equal(recv(c->fd, &a, sizeof(a), MSG_TRUNC), sizeof(a));
        return a;
}

/* The records of a log that has grown from @from to @to. */
static struct rv_sign_request growth(uint64_t from, uint64_t to)
{
        struct rv_sign_request q = { .kind = RV_SIGN_CHECKPOINT, .log_id = "0123456789abcdef0123456789abcdef" };

        for (uint64_t i = 0; i < to; i++) {
                rv_merkle_hash leaf;

                if (i == from || i == 0)
                        rv_merkle_growth_begin(&q.growth, from);
                rv_merkle_leaf(&i, sizeof(i), leaf);
                if (i < from)
                        rv_merkle_push(&q.edge, leaf);
                else
                        rv_merkle_growth_push(&q.growth, leaf);
        }
        return q;
}

static void the_signer_signs_one_root_for_one_size(void **state)
{
        struct rv_sign_request q = growth(0, 5), other = growth(0, 5), look = { .kind = RV_SIGN_QUERY };
        struct rv_sign_answer a;
        struct rv_spawn_report report;
        struct child c;
        struct ends e;

        begin_signing(state, &c);
        a = ask_signer(&c, &q);
        assert_int_equal(a.code, RV_SIGN_OK);
        assert_int_equal(a.n_signatures, 1);
        other.growth.parts[0].hash[0] ^= 1;
        assert_int_equal(ask_signer(&c, &other).code, RV_SIGN_STALE);
        other = growth(5, 5);
        other.edge.edge[0][0] ^= 1;
        assert_int_equal(ask_signer(&c, &other).code, RV_SIGN_REFUSED);
        q = growth(3, 4);
        assert_int_equal(ask_signer(&c, &q).code, RV_SIGN_STALE);
        q = growth(5, 8);
        /* A run in between: its process is made without the key, which is read again for the next. */
        start_run(&c, 1, "import sys\nsys.stdin.read()", &e);
        assert_int_equal(ask_signer(&c, &q).code, RV_SIGN_OK);
        memcpy(look.log_id, q.log_id, sizeof(look.log_id));
        a = ask_signer(&c, &look);
        assert_int_equal(a.code, RV_SIGN_OK);
        assert_int_equal(a.size, 8);
        e.in = rv_close(e.in);
        expect_event(&c, "the run", RV_SPAWN_ENDED, &report);
        expect_event(&c, "the run", RV_SPAWN_REMOVED, &report);
        ends_close(&e);
        spawner_end(&c, "the signer");
}

static void the_signer_is_asked_for_what_may_not_be(void **state)
{
        struct rv_sign_request q[5] = { growth(0, 5), growth(0, 5), growth(0, 5), growth(0, 5), growth(0, 5) };
        struct child c;

        memset(q[0].log_id, 'a', sizeof(q[0].log_id));
        q[1].log_id[31] = '/';
        q[2].edge.size = UINT64_MAX;
        q[3].growth.n_parts = RV_MERKLE_GROWTH_MAX + 1;
        q[4].flags = 64;
        begin_signing(state, &c);
        for (size_t i = 0; i < RV_N_ELEMENTS(q); i++) {
                struct rv_sign_answer a = ask_signer(&c, &q[i]);

                assert_int_equal(a.code, RV_SIGN_REFUSED);
                assert_non_null(strstr(a.text, "may not be"));
                assert_int_equal(a.n_signatures, 0);
        }
        q[0] = growth(0, 5);
        assert_int_equal(ask_signer(&c, &q[0]).code, RV_SIGN_OK);
        spawner_end(&c, "the signer");
}

static void other_messages_to_the_signer(void **state)
{
        static const struct {
                uint32_t kind;
                size_t size, n_fds;
        } rows[] = {
                { RV_SIGN_CHECKPOINT, sizeof(struct rv_sign_request) - 1, 0 },
                { RV_SIGN_CHECKPOINT, sizeof(struct rv_sign_request) + 1, 0 },
                { RV_SIGN_CHECKPOINT, sizeof(struct rv_spawn_request), 0 },
                { RV_SIGN_CHECKPOINT, sizeof(struct rv_sign_request), 1 },
                { RV_SIGN_KIND_MAX_, sizeof(struct rv_sign_request), 0 },
                { RV_SPAWN_REQUEST_STOP, sizeof(struct rv_sign_request), 0 },
        };
        char bytes[sizeof(struct rv_sign_request) + 1] = { 0 };
        struct rv_sign_request q = growth(0, 5);

        memcpy(bytes, &q, sizeof(q));
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                char what[64];
                struct child c;
                int fd = STDERR_FILENO;

                snprintf(what, sizeof(what), "row %zu", i);
                memcpy(bytes, &rows[i].kind, sizeof(rows[i].kind));
                spawner_begin(state, "", &c);
                assert_int_equal(send_raw(c.fd, bytes, rows[i].size, &fd, rows[i].n_fds), 0);
                expect_closed(&c, what);
                spawner_end(&c, what);
        }
}

/* ---- Noise ---- */

static uint32_t random_state = 2463534242u;

static uint32_t next_random(void)
{
        random_state ^= random_state << 13;
        random_state ^= random_state >> 17;
        random_state ^= random_state << 5;
        return random_state;
}

static void fill_with_noise(void *data, size_t n)
{
        for (size_t i = 0; i < n; i++)
                ((uint8_t *)data)[i] = (uint8_t)(next_random() >> 11);
}

static void noise(void **state)
{
        for (int i = 0; i < 20; i++) {
                struct rv_spawn_request q;
                struct child c;
                struct ends e;

                fill_with_noise(&q, sizeof(q));
                q.kind |= 4;            /* neither of the two */
                spawner_begin(state, "", &c);
                ends_open("print(1)", &e);
                assert_int_equal(send_raw(c.fd, &q, next_random() % (sizeof(q) + 1), e.theirs,
                                         next_random() % (RV_SPAWN_FD_MAX_ + 1)),
                        0);
                expect_closed(&c, "noise");
                ends_close(&e);
                spawner_end(&c, "noise");
        }
}

static void noise_in_the_fields(void **state)
{
        unsigned n_fds = 0;
        struct child c;

        spawner_begin(state, "", &c);
        for (uint64_t i = 0; i < 300; i++) {
                struct rv_spawn_request q = good_request(i);
                struct ends e;

                /* Every byte from the language on, or only some. */
                if (i % 2)
                        fill_with_noise((char *)&q + sizeof(q.kind), sizeof(q) - sizeof(q.kind));
                else
                        fill_with_noise(q.run_id, 1 + next_random() % 8);
                q.id = i;
                q.run_id[0] |= (char)0x80;      /* never a good one */
                ends_open("print(1)", &e);
                give(&c, &q, &e);
                expect_refused(&c, "noise in the fields", i);
                ends_close(&e);
                if (i == 0)
                        n_fds = count_fds(c.pid);
        }
        assert_int_equal(count_fds(c.pid), n_fds);
        spawner_end(&c, "noise in the fields");
}

/* While a run is under way: what breaks the rules ends it too. */
static void noise_during_a_run(void **state)
{
        struct child c;
        struct ends e;

        spawner_begin(state, "", &c);
        start_run(&c, 1, "import time\ntime.sleep(60)\n", &e);
        assert_int_equal(send_raw(c.fd, "noise", 5, NULL, 0), 0);
        for (int r = 1; r == 1;) {
                struct rv_spawn_report report;

                r = receive(&c, &report);
                assert_int_not_equal(r, -ETIMEDOUT);
        }
        spawner_end(&c, "noise during a run");
        assert_false(is_alive(c.init_pid));
        ends_close(&e);
}

#define IN_TMP(f) cmocka_unit_test_setup_teardown(f, tmp_make, tmp_remove)

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_TMP(other_sizes),
                IN_TMP(other_kinds),
                IN_TMP(other_numbers_of_descriptors),
                IN_TMP(other_kinds_of_descriptors),
                IN_TMP(fields_out_of_range),
                IN_TMP(a_runtime_that_is_not_there),
                IN_TMP(the_signer_signs_one_root_for_one_size),
                IN_TMP(the_signer_is_asked_for_what_may_not_be),
                IN_TMP(other_messages_to_the_signer),
                IN_TMP(noise),
                IN_TMP(noise_in_the_fields),
                IN_TMP(noise_during_a_run),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
