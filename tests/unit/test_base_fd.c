#include "base/fd.h"

#include "test_base_tmp.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cmocka.h>

static void read_is_bounded(void **state)
{
        const char *path = tmp_path(state, "f");

        assert_int_equal(rv_write_file(path, "12345", 5, 0600, false), 0);
        for (size_t max = 0; max < 8; max++) {
                _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
                int r;

                rv_buf_puts(&b, "x");
                r = rv_read_file_at(AT_FDCWD, path, max, &b);
                if (r != (max < 5 ? -EFBIG : 0))
                        fail_msg("max %zu: %d", max, r);
                if (r == 0)
                        assert_string_equal(b.data, "x12345");
        }
}

/* The size of these is not known beforehand, so the bound has to hold while reading. */
static void read_of_a_pipe_is_bounded(void **state)
{
        (void)state;
        for (size_t n = 0; n < 4; n++) {
                _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
                int fds[2], r;

                assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
                assert_int_equal(rv_write_all(fds[1], "abc", n), 0);
                rv_close(fds[1]);
                r = rv_read_fd(fds[0], 2, &b);
                rv_close(fds[0]);
                assert_int_equal(r, n > 2 ? -EFBIG : 0);
                assert_true(b.size <= 2);
        }
}

static void traps_are_no_files(void **state)
{
        _cleanup_(rv_closep) int dir = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };

        assert_int_equal(rv_write_file(tmp_path(state, "f"), "x", 1, 0600, false), 0);
        assert_int_equal(symlink("f", tmp_path(state, "link")), 0);
        assert_int_equal(mkfifo(tmp_path(state, "fifo"), 0600), 0);
        assert_int_equal(rv_read_file_at(dir, "f", 10, &b), 0);
        assert_int_equal(rv_read_file_at(dir, "link", 10, &b), -ELOOP);
        assert_int_equal(rv_read_file_at(dir, "fifo", 10, &b), -EINVAL);   /* and it did not wait for a writer */
        assert_int_equal(rv_read_file_at(dir, ".", 10, &b), -EINVAL);
        assert_int_equal(rv_read_file_at(dir, "none", 10, &b), -ENOENT);
        assert_string_equal(b.data, "x");
}

static unsigned count_entries(const char *path)
{
        DIR *d = opendir(path);
        unsigned n = 0;

        assert_non_null(d);
        while (readdir(d))
                n++;
        closedir(d);
        return n - 2;
}

static void write_replaces_whole(void **state)
{
        const char *path = tmp_path(state, "f");
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        mode_t mask = umask(022);
        struct stat st;

        assert_int_equal(rv_write_file(path, "a long first text", 17, 0640, true), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0640);
        assert_int_equal(rv_write_file(path, "short", 5, 0600, false), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(rv_read_file_at(AT_FDCWD, path, 100, &b), 0);
        assert_string_equal(b.data, "short");
        assert_int_equal(count_entries(*state), 1);
        umask(mask);
}

static void failed_write_leaves_nothing(void **state)
{
        const char *path = tmp_path(state, "d");

        assert_int_equal(mkdir(path, 0700), 0);
        assert_int_equal(rv_write_file(tmp_path(state, "d/x/y"), "a", 1, 0600, false), -ENOENT);
        assert_int_equal(rv_write_file(path, "a", 1, 0600, false), -EISDIR);
        assert_int_equal(count_entries(*state), 1);
        assert_int_equal(count_entries(path), 0);
}

static void write_below_a_directory(void **state)
{
        _cleanup_(rv_closep) int dir = open(*state, O_PATH | O_DIRECTORY | O_CLOEXEC);
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };

        assert_int_equal(rv_write_file_at(dir, "g", "at", 2, 0600, false), 0);
        assert_int_equal(rv_read_file_at(AT_FDCWD, tmp_path(state, "g"), 2, &b), 0);
        assert_string_equal(b.data, "at");
        assert_int_equal(count_entries(*state), 1);
}

static void mkdir_with_parents(void **state)
{
        const char *path = tmp_path(state, "a/b//c");
        mode_t mask = umask(0);
        struct stat st;

        assert_int_equal(rv_mkdir_p(path, 0700), 0);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_mode & 0777, 0700);
        assert_int_equal(stat(tmp_path(state, "a"), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0755);
        assert_int_equal(rv_mkdir_p(path, 0700), 0);
        assert_int_equal(rv_write_file(tmp_path(state, "f"), "", 0, 0600, false), 0);
        assert_int_equal(rv_mkdir_p(tmp_path(state, "f/x"), 0700), -ENOTDIR);
        assert_int_equal(rv_mkdir_p("", 0700), -ENAMETOOLONG);
        umask(mask);
}

static void descriptors(void **state)
{
        int fd = open(*state, O_RDONLY | O_CLOEXEC), taken;

        taken = rv_take_fd(&fd);
        assert_true(taken >= 0);
        assert_int_equal(fd, -EBADF);
        errno = EIO;
        assert_int_equal(rv_close(taken), -EBADF);
        assert_int_equal(errno, EIO);
        assert_int_equal(fcntl(taken, F_GETFD), -1);
        assert_int_equal(rv_close(-EBADF), -EBADF);
        assert_int_equal(rv_write_all(-1, "x", 1), -EBADF);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, tmp_make, tmp_remove)

/* What is too much, of bytes or of descriptors, is refused, and nothing that came with it stays open. */
static void messages_with_descriptors(void **state)
{
        int pair[2], got[RV_SEND_FDS_MAX], sent[RV_SEND_FDS_MAX], next;
        char text[4];

        (void)state;
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        for (size_t i = 0; i < RV_SEND_FDS_MAX; i++)
                sent[i] = pair[0];
        next = dup(pair[0]);
        close(next);
        for (size_t n_sent = 0; n_sent <= RV_SEND_FDS_MAX; n_sent++)
                for (size_t max = 1; max <= RV_SEND_FDS_MAX; max++)
                        for (size_t size = 0; size < 7; size++) {
                                bool is_good = n_sent <= max && size <= sizeof(text);
                                size_t n_got = 77;
                                ssize_t n;
                                int after;

                                assert_int_equal(rv_send_with_fds(pair[0], "abcdef", size, sent, n_sent), 0);
                                n = rv_receive_with_fds(pair[1], text, sizeof(text), MSG_DONTWAIT, got, max, &n_got);
                                if (n != (is_good ? (ssize_t)size : -EBADMSG) || n_got != (is_good ? n_sent : 0))
                                        fail_msg("%zu descriptors in room for %zu, %zu bytes: %zd, %zu", n_sent, max, size, n, n_got);
                                for (size_t i = 0; i < n_got; i++)
                                        assert_true(fcntl(got[i], F_GETFD) == FD_CLOEXEC && close(got[i]) == 0);
                                after = dup(pair[0]);
                                assert_int_equal(after, next);
                                close(after);
                                n_got = 77;
                                assert_int_equal(rv_receive_with_fds(
                                                         pair[1], text, sizeof(text), MSG_DONTWAIT, got, max, &n_got),
                                        -EAGAIN);
                                assert_int_equal(n_got, 0);
                        }
        close(pair[0]);
        assert_int_equal(rv_receive_with_fds(pair[1], text, sizeof(text), 0, got, 1, &(size_t){ 0 }), 0);
        close(pair[1]);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(read_is_bounded),       TEST(read_of_a_pipe_is_bounded), TEST(traps_are_no_files),
                TEST(write_replaces_whole),  TEST(failed_write_leaves_nothing), TEST(write_below_a_directory),
                TEST(mkdir_with_parents),    TEST(descriptors),               TEST(messages_with_descriptors),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
