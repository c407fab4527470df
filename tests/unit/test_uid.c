/* Pairs of user ids: two runs never share one, a pair comes back, a range can be too small and be used up. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/fd.h"
#include "test_privilege.h"
#include "uid.h"

/* Far from what a reeve on this machine uses. */
#define FIRST 3000000000u

static void take(uint32_t n_ids, struct rv_uid_pair *ret)
{
        struct rv_error err = { 0 };

        if (rv_uid_take(FIRST, FIRST + n_ids - 1, ret, &err) != 0)
                fail_msg("%s", err.message);
}

static void expect_apart(const struct rv_uid_pair *pairs, size_t n, uint32_t n_ids)
{
        for (size_t i = 0; i < n; i++) {
                /* The first pair is the loop's own. */
                assert_in_range(pairs[i].init_uid, FIRST + 2, FIRST + n_ids - 1);
                assert_in_range(pairs[i].program_uid, FIRST + 2, FIRST + n_ids - 1);
                assert_int_not_equal(pairs[i].init_uid, pairs[i].program_uid);
                for (size_t j = 0; j < i; j++) {
                        assert_int_not_equal(pairs[i].init_uid, pairs[j].init_uid);
                        assert_int_not_equal(pairs[i].init_uid, pairs[j].program_uid);
                        assert_int_not_equal(pairs[i].program_uid, pairs[j].init_uid);
                        assert_int_not_equal(pairs[i].program_uid, pairs[j].program_uid);
                }
        }
}

static void all_are_taken_once(void **state)
{
        struct rv_uid_pair pairs[9], more = { .lock_fd = 77 };
        struct rv_error err = { 0 };

        need_root();
        for (size_t i = 0; i < 9; i++)
                take(20, &pairs[i]);
        expect_apart(pairs, 9, 20);
        assert_int_equal(rv_uid_take(FIRST, FIRST + 19, &more, &err), -EAGAIN);
        assert_int_equal(more.lock_fd, 77);
        assert_non_null(strstr(err.message, "3000000000-3000000019"));
        /* One comes back, and is the one that is given out. */
        more = pairs[4];
        rv_uid_release(&pairs[4]);
        assert_int_equal(pairs[4].lock_fd, -EBADF);
        take(20, &pairs[4]);
        assert_int_equal(pairs[4].init_uid, more.init_uid);
        for (size_t i = 0; i < 9; i++)
                rv_uid_release(&pairs[i]);
}

/* An odd id at the end is not half a pair. */
static void odd_ranges(void **state)
{
        struct rv_uid_pair pairs[2], more;

        need_root();
        take(7, &pairs[0]);
        take(7, &pairs[1]);
        expect_apart(pairs, 2, 7);
        assert_int_equal(rv_uid_take(FIRST, FIRST + 6, &more, NULL), -EAGAIN);
        rv_uid_release(&pairs[0]);
        rv_uid_release(&pairs[1]);
}

/* Two configurations whose ranges overlap, one of them shifted by one id. */
static void overlapping_ranges(void **state)
{
        struct rv_uid_pair a[4], b[4];
        size_t n = 0;

        need_root();
        for (size_t i = 0; i < 2; i++)
                take(6, &a[i]);
        while (n < 4 && rv_uid_take(FIRST + 1, FIRST + 10, &b[n], NULL) == 0)
                n++;
        assert_true(n > 0);
        for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < 2; j++) {
                        assert_int_not_equal(a[j].init_uid, b[i].init_uid);
                        assert_int_not_equal(a[j].init_uid, b[i].program_uid);
                        assert_int_not_equal(a[j].program_uid, b[i].init_uid);
                        assert_int_not_equal(a[j].program_uid, b[i].program_uid);
                }
        for (size_t i = 0; i < n; i++)
                rv_uid_release(&b[i]);
        for (size_t i = 0; i < 2; i++)
                rv_uid_release(&a[i]);
}

static void small_ranges(void **state)
{
        struct rv_uid_pair pair = { .lock_fd = 77 };
        struct rv_error err = { 0 };

        for (uint32_t n = 1; n < 4; n++)
                assert_int_equal(rv_uid_take(FIRST, FIRST + n - 1, &pair, &err), -EINVAL);
        assert_int_equal(pair.lock_fd, 77);
        assert_non_null(strstr(err.message, "at least 4"));
        need_root();
        take(4, &pair);
        assert_int_equal(pair.init_uid, FIRST + 2);
        assert_int_equal(pair.program_uid, FIRST + 3);
        rv_uid_release(&pair);
}

/* Eight processes at once for eight pairs: everyone gets one, of which nobody else knows. */
static void processes_do_not_share(void **state)
{
        struct rv_uid_pair pairs[8], more;
        int fds[2], hold[2];
        pid_t pids[8];

        need_root();
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        assert_int_equal(pipe(hold), 0);
        for (size_t i = 0; i < 8; i++) {
                pids[i] = fork();
                assert_true(pids[i] >= 0);
                if (pids[i] == 0) {
                        struct rv_uid_pair pair = { 0 };
                        char c;

                        close(hold[1]);
                        (void)rv_uid_take(FIRST, FIRST + 17, &pair, NULL);
                        (void)!write(fds[1], &pair, sizeof(pair));
                        (void)!read(hold[0], &c, 1);
                        _exit(0);
                }
        }
        for (size_t i = 0; i < 8; i++)
                assert_int_equal(read(fds[0], &pairs[i], sizeof(pairs[i])), sizeof(pairs[i]));
        expect_apart(pairs, 8, 18);
        assert_int_equal(rv_uid_take(FIRST, FIRST + 17, &more, NULL), -EAGAIN);
        /* Their end lets go of all. */
        close(hold[1]);
        for (size_t i = 0; i < 8; i++)
                assert_int_equal(waitpid(pids[i], NULL, 0), pids[i]);
        for (size_t i = 0; i < 8; i++)
                take(18, &pairs[i]);
        expect_apart(pairs, 8, 18);
        for (size_t i = 0; i < 8; i++)
                rv_uid_release(&pairs[i]);
        close(hold[0]);
        close(fds[0]);
        close(fds[1]);
}

/* A pair is held for as long as anyone has the descriptor: PID 1 has it too. */
static void the_last_holder_counts(void **state)
{
        struct rv_uid_pair pair, more;
        int fd;

        need_root();
        take(4, &pair);
        fd = dup(pair.lock_fd);
        rv_uid_release(&pair);
        assert_int_equal(rv_uid_take(FIRST, FIRST + 3, &more, NULL), -EAGAIN);
        close(fd);
        take(4, &pair);
        rv_uid_release(&pair);
}

static void without_privilege(void **state)
{
        int status;
        pid_t pid;

        need_root();
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                struct rv_uid_pair pair;
                struct rv_error err = { 0 };
                int r;

                if (setresuid(65534, 65534, 65534) < 0)
                        _exit(3);
                r = rv_uid_take(FIRST, FIRST + 3, &pair, &err);
                _exit(r == -EACCES && strstr(err.message, "/run/reeve/uids") ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_are_taken_once),
                cmocka_unit_test(odd_ranges),
                cmocka_unit_test(overlapping_ranges),
                cmocka_unit_test(small_ranges),
                cmocka_unit_test(processes_do_not_share),
                cmocka_unit_test(the_last_holder_counts),
                cmocka_unit_test(without_privilege),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
