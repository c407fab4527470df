/*
 * One sync for many writers. The test is linked with --wrap for fdatasync(), which is counted, slowed down, stopped or
 * made to fail, and keeps book of what is durable; and for fstatfs(), as the place may be on any file system.
 */
#include "base/clock.h"

#include "test_audit_segments.h"

#include <linux/magic.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#define FILES_MAX 256

/* What all processes share. */
static struct {
        uint32_t n_syncs;
        uint32_t delay_us;
        pid_t stop, fail;                  /* the process whose next sync waits to be killed, or fails */
        uint32_t is_stopped;
        long fs_type;
        /* Bytes of each file that were there when a sync that succeeded began. */
        struct {
                uint64_t inode, durable;
        } files[FILES_MAX];
} *shared;

int __wrap_fdatasync(int fd);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs64(int fd, struct statfs *fs);

static void note_durable(uint64_t inode, uint64_t size)
{
        for (size_t i = 0; i < FILES_MAX; i++) {
                uint64_t none = 0, seen;

                if (!__atomic_compare_exchange_n(
                            &shared->files[i].inode, &none, inode, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) &&
                        none != inode)
                        continue;
                seen = __atomic_load_n(&shared->files[i].durable, __ATOMIC_SEQ_CST);
                while (seen < size &&
                        !__atomic_compare_exchange_n(
                                &shared->files[i].durable, &seen, size, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                        ;
                return;
        }
}

static uint64_t durable_of(uint64_t inode)
{
        for (size_t i = 0; i < FILES_MAX; i++)
                if (__atomic_load_n(&shared->files[i].inode, __ATOMIC_SEQ_CST) == inode)
                        return __atomic_load_n(&shared->files[i].durable, __ATOMIC_SEQ_CST);
        return 0;
}

int __wrap_fdatasync(int fd)
{
        struct stat st;

        __atomic_fetch_add(&shared->n_syncs, 1, __ATOMIC_SEQ_CST);
        if (fstat(fd, &st) < 0)
                return -1;
        if (shared->delay_us)
                usleep(shared->delay_us);
        if (shared->stop == getpid()) {
                shared->is_stopped = 1;
                pause();
        }
        if (shared->fail == getpid()) {
                shared->fail = 0;
                errno = EIO;
                return -1;
        }
        note_durable(st.st_ino, (uint64_t)st.st_size);
        return 0;
}

int __wrap_fstatfs(int fd, struct statfs *fs)
{
        (void)fd;
        *fs = (struct statfs){ .f_type = shared->fs_type };
        return 0;
}

/* The same under the name that it has where offsets are 64 bits wide. */
int __wrap_fstatfs64(int fd, struct statfs *fs)
{
        return __wrap_fstatfs(fd, fs);
}

static int make(void **state)
{
        memset(shared, 0, sizeof(*shared));
        shared->fs_type = EXT4_SUPER_MAGIC;
        return tmp_make(state);
}

#define ON_DISK(f) cmocka_unit_test_setup_teardown(f, make, tmp_remove)

/* Is what this log object appended last on the disk, by the book? */
static bool is_durable(const struct rv_log *log)
{
        struct stat st;

        return fstat(log->segment_fd, &st) == 0 && durable_of(st.st_ino) >= log->tail_end;
}

static int append_synced(struct rv_log *log)
{
        _cleanup_(rv_json_unrefp) json_t *body = json_pack("{s:s}", "text", "one of many records");
        int r = rv_log_append_synced(log, "outcome", body, NULL, NULL);

        return r < 0 ? r : is_durable(log) ? 0 : 1;
}

/* ---- What it is for ---- */

#define WRITERS 16
#define EACH 60

static int write_many(void **state, unsigned i)
{
        struct rv_log *log = NULL;
        int r = rv_log_open(tmp_path(state, "state"), &log, NULL);

        (void)i;
        for (unsigned k = 0; k < EACH && r == 0; k++)
                r = append_synced(log);
        rv_log_close(log);
        return r != 0;
}

static void one_sync_for_many(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *records = NULL;

        rv_log_close(open_log(state));
        shared->delay_us = 2000;
        shared->n_syncs = 0;
        in_processes(WRITERS, state, write_many);
        print_message("%u syncs for %d records\n", shared->n_syncs, WRITERS * EACH);
        assert_true(shared->n_syncs >= EACH);
        if (shared->n_syncs * 4 > WRITERS * EACH)
                fail_msg("%u syncs for %d records", shared->n_syncs, WRITERS * EACH);
        records = read_log(state);
        assert_int_equal(json_array_size(records), WRITERS * EACH);
}

/* One alone syncs each record once, as it would without the page. */
static void one_writer(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);

        shared->n_syncs = 0;
        for (unsigned i = 0; i < 20; i++)
                assert_int_equal(append_synced(log), 0);
        assert_int_equal(shared->n_syncs, 20);
        assert_int_equal(rv_log_sync(log, NULL), 0);
        assert_int_equal(shared->n_syncs, 20);
}

/* What another has synced meanwhile is not synced again. */
static void synced_by_another(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *a = open_log(state), *b = open_log(state);

        append_text(a, "decision", 1);
        append_text(b, "decision", 1);
        shared->n_syncs = 0;
        assert_int_equal(rv_log_sync(b, NULL), 0);
        assert_int_equal(rv_log_sync(a, NULL), 0);
        assert_int_equal(shared->n_syncs, 1);
        append_text(a, "decision", 1);
        assert_int_equal(rv_log_sync(b, NULL), 0);
        assert_int_equal(shared->n_syncs, 1);
        assert_int_equal(rv_log_sync(a, NULL), 0);
        assert_int_equal(shared->n_syncs, 2);
}

static int write_many_small(void **state, unsigned i)
{
        struct rv_log *log = NULL;
        int r = rv_log_open(tmp_path(state, "state"), &log, NULL);

        (void)i;
        if (r == 0)
                log->segment_max = 5000;
        for (unsigned k = 0; k < EACH && r == 0; k++)
                r = append_synced(log);
        rv_log_close(log);
        return r != 0;
}

static void across_segments(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *records = NULL;
        unsigned n_segments;

        rv_log_close(open_log(state));
        shared->delay_us = 500;
        in_processes(8, state, write_many_small);
        records = read_segments(state, 0, &n_segments);
        assert_int_equal(json_array_size(records), 8 * EACH);
        assert_true(n_segments > 20);
}

/* ---- What can go wrong with the others ---- */

/* A child that stays in its sync for all. */
static pid_t start_stuck_leader(void **state)
{
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                struct rv_log *log = NULL;

                shared->stop = getpid();
                _exit(rv_log_open(tmp_path(state, "state"), &log, NULL) == 0 && append_synced(log) == 0 ? 0 : 1);
        }
        while (!__atomic_load_n(&shared->is_stopped, __ATOMIC_SEQ_CST))
                usleep(500);
        return pid;
}

static uint64_t time_synced(struct rv_log *log)
{
        uint64_t begun_us = rv_boot_us();

        assert_int_equal(append_synced(log), 0);
        return rv_boot_us() - begun_us;
}

static void a_leader_that_stands_still(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        uint64_t first_us, second_us;
        pid_t pid;

        append_text(log, "decision", 1);
        pid = start_stuck_leader(state);
        first_us = time_synced(log);
        second_us = time_synced(log);   /* it is known by now */
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        assert_true(first_us < 2000000);
        assert_true(second_us < 100000);
        shared->n_syncs = 0;
        assert_true(time_synced(log) < 100000);
        assert_int_equal(shared->n_syncs, 1);
}

static void a_leader_that_dies(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        pid_t leader, killer;

        append_text(log, "decision", 1);
        leader = start_stuck_leader(state);
        killer = fork();
        if (killer == 0) {
                usleep(50000);
                kill(leader, SIGKILL);
                _exit(0);
        }
        assert_true(time_synced(log) < 1000000);
        waitpid(leader, NULL, 0);
        waitpid(killer, NULL, 0);
}

static int write_and_fail(void **state, unsigned i)
{
        struct rv_log *log = NULL;
        int r = rv_log_open(tmp_path(state, "state"), &log, NULL);
        unsigned k = 0;

        for (; k < EACH && r == 0; k++) {
                if (i == 0 && k == EACH / 2)
                        shared->fail = getpid();
                r = append_synced(log);
        }
        rv_log_close(log);
        /* The first meets the error, and nobody else takes anything for durable that is not. */
        return i == 0 ? r != -EIO : r != 0;
}

static void a_sync_that_fails(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *old = open_log(state), *new = NULL;

        append_text(old, "decision", 1);
        shared->delay_us = 1000;
        in_processes(4, state, write_and_fail);
        shared->delay_us = 0;
        /* Those who have the page sync for themselves from then on; who comes new makes another one. */
        assert_int_equal(old->commit->failed, 1);
        shared->n_syncs = 0;
        assert_int_equal(append_synced(old), 0);
        new = open_log(state);
        assert_int_equal(append_synced(new), 0);
        assert_int_equal(shared->n_syncs, 2);
        assert_int_equal(new->commit->failed, 0);
        append_text(old, "decision", 1);
        assert_int_equal(append_synced(new), 0);
        assert_int_equal(rv_log_sync(old, NULL), 0);
        assert_int_equal(shared->n_syncs, 4);
}

/* ---- What the page can be ---- */

static void whatever_the_page_says(void **state)
{
        const struct rv_commit pages[] = {
                { .magic = RV_COMMIT_MAGIC,
                        .appended = UINT64_MAX,
                        .synced = UINT64_MAX,
                        .segment = UINT64_MAX,
                        .leader_since_us = UINT64_MAX,
                        .tick = UINT32_MAX },
                { .magic = RV_COMMIT_MAGIC, .appended = 1000, .synced = 1000 },
                { .magic = RV_COMMIT_MAGIC, .appended = 2, .synced = 1, .segment = 7, .leader_since_us = 1 },
                { .magic = RV_COMMIT_MAGIC, .synced = 5, .failed = 1 },
                { .magic = "reeve.c0", .appended = 1000, .synced = 1000 },
        };
        static const size_t sizes[] = { RV_COMMIT_BYTES, sizeof(struct rv_commit), 0, RV_COMMIT_BYTES + 1 };

        for (size_t i = 0; i < RV_N_ELEMENTS(pages) * RV_N_ELEMENTS(sizes); i++) {
                _cleanup_(rv_log_closep) struct rv_log *log = NULL;
                char page[RV_COMMIT_BYTES + 1] = { 0 };

                memcpy(page, &pages[i % RV_N_ELEMENTS(pages)], sizeof(pages[0]));
                rv_log_close(open_log(state));
                assert_int_equal(rv_write_file(in_state(state, "audit/commit"), page, sizes[i / RV_N_ELEMENTS(pages)], 0600, false), 0);
                log = open_log(state);
                shared->n_syncs = 0;
                for (unsigned k = 0; k < 3; k++)
                        if (append_synced(log) != 0)
                                fail_msg("page %zu: not durable", i);
                assert_int_equal(shared->n_syncs, 3);
                assert_non_null(log->commit);
                assert_int_equal(log->commit->synced, log->next_seq);
        }
}

/* A log put back from an older copy: what is written anew is not taken for what was there. */
static void an_older_copy(void **state)
{
        _cleanup_(rv_log_closep) struct rv_log *log = open_log(state);
        _cleanup_(rv_buf_fini) struct rv_buf copy = { 0 };

        for (unsigned i = 0; i < 5; i++)
                assert_int_equal(append_synced(log), 0);
        read_segment(state, &copy);
        for (unsigned i = 0; i < 50; i++)
                assert_int_equal(append_synced(log), 0);
        assert_int_equal(log->commit->synced, 55);
        rv_log_close(rv_take(&log));
        assert_int_equal(rv_write_file(in_state(state, SEGMENT), copy.data, copy.size, 0600, false), 0);
        log = open_log(state);
        shared->n_syncs = 0;
        assert_int_equal(append_synced(log), 0);
        assert_int_equal(shared->n_syncs, 1);
        assert_int_equal(log->commit->synced, 6);
}

/* Without the page each syncs for itself. */
static void without_the_page(void **state)
{
        for (unsigned i = 0; i < 3; i++) {
                struct rv_log *a, *b;

                (void)unlink(in_state(state, "audit/commit"));
                (void)rmdir(in_state(state, "audit/commit"));
                if (i == 1)
                        assert_int_equal(mkdir(in_state(state, "audit/commit"), 0700), 0);
                shared->fs_type = i == 1 ? EXT4_SUPER_MAGIC : i == 0 ? TMPFS_MAGIC : BTRFS_SUPER_MAGIC;
                a = open_log(state);
                b = open_log(state);
                append_text(a, "decision", 1);
                append_text(b, "decision", 1);
                assert_null(a->commit);
                shared->n_syncs = 0;
                assert_int_equal(rv_log_sync(b, NULL), 0);
                assert_int_equal(rv_log_sync(a, NULL), 0);
                assert_int_equal(shared->n_syncs, 2);
                rv_log_close(a);
                rv_log_close(b);
                assert_int_equal(access(in_state(state, "audit/commit"), F_OK), i == 1 ? 0 : -1);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                ON_DISK(one_sync_for_many),
                ON_DISK(one_writer),
                ON_DISK(synced_by_another),
                ON_DISK(across_segments),
                ON_DISK(a_leader_that_stands_still),
                ON_DISK(a_leader_that_dies),
                ON_DISK(a_sync_that_fails),
                ON_DISK(whatever_the_page_says),
                ON_DISK(an_older_copy),
                ON_DISK(without_the_page),
        };

        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED)
                return 1;
        return cmocka_run_group_tests(tests, NULL, NULL);
}
