/* The digest of a directory: which changes alter it, which do not, and that it is what its header says. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <utime.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/hash.h"
#include "base/tree_digest.h"
#include "test_base_tmp.h"
#include "test_privilege.h"

static void put(void **state, const char *path, const char *text, mode_t mode)
{
        const char *full = tmp_path(state, path);

        assert_int_equal(rv_write_file(full, text, strlen(text), 0600, false), 0);
        assert_int_equal(chmod(full, mode), 0);
}

static void make_tree(void **state)
{
        assert_int_equal(mkdir(tmp_path(state, "t"), 0755), 0);
        assert_int_equal(mkdir(tmp_path(state, "t/a"), 0755), 0);
        assert_int_equal(mkdir(tmp_path(state, "t/empty"), 0755), 0);
        put(state, "t/a/x", "one", 0644);
        put(state, "t/a/y", "two", 0755);
        put(state, "t/a.b", "three", 0644);
        assert_int_equal(symlink("a/x", tmp_path(state, "t/link")), 0);
        assert_int_equal(mkfifo(tmp_path(state, "t/pipe"), 0600), 0);
}

static void digest_of(void **state, char ret[RV_TREE_DIGEST_SIZE])
{
        _cleanup_(rv_closep) int fd = open(tmp_path(state, "t"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct rv_error err = { 0 };

        assert_true(fd >= 0);
        if (rv_tree_digest(fd, ret, NULL, &err) < 0)
                fail_msg("%s", err.message);
}

/* As the header has it, put together by hand. */
static void is_as_documented(void **state)
{
        static const char *const parts[] = {
                "d 0755 - a", "f 0644 @three a.b", "f 0644 @one a/x", "f 0755 @two a/y", "d 0755 - empty", "l 0777 @a/x link", "p 0600 - pipe",
        };
        char digest[RV_TREE_DIGEST_SIZE], hex[RV_SHA256_HEX_SIZE];
        _cleanup_(rv_buf_fini) struct rv_buf all = { 0 };
        size_t n = 0;
        int fd;

        make_tree(state);
        for (size_t i = 0; i < RV_N_ELEMENTS(parts); i++) {
                char value[16], path[16];

                assert_int_equal(sscanf(parts[i], "%*c %*s %15s %15s", value, path), 2);
                if (*value == '@')
                        rv_sha256_hex(value + 1, strlen(value + 1), hex);
                rv_buf_printf(&all, "%.7s%s %s", parts[i], *value == '@' ? hex : value, path);
                rv_buf_putc(&all, 0);
        }
        rv_sha256_hex(all.data, all.size, hex);
        fd = open(tmp_path(state, "t"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(rv_tree_digest(fd, digest, &n, NULL), 0);
        close(fd);
        assert_int_equal(n, RV_N_ELEMENTS(parts));
        assert_int_equal(strncmp(digest, "sha256:", 7), 0);
        assert_string_equal(digest + 7, hex);
}

static void content(void **state)
{
        put(state, "t/a/x", "onE", 0644);
}

static void length(void **state)
{
        put(state, "t/a/x", "one\n", 0644);
}

static void mode(void **state)
{
        assert_int_equal(chmod(tmp_path(state, "t/a/x"), 0744), 0);
}

static void set_user_id(void **state)
{
        assert_int_equal(chmod(tmp_path(state, "t/a/y"), 04755), 0);
}

static void directory_mode(void **state)
{
        assert_int_equal(chmod(tmp_path(state, "t/empty"), 0700), 0);
}

static void new_file(void **state)
{
        put(state, "t/a/z", "", 0644);
}

static void new_directory(void **state)
{
        assert_int_equal(mkdir(tmp_path(state, "t/a/d"), 0755), 0);
}

static void gone_file(void **state)
{
        assert_int_equal(unlink(tmp_path(state, "t/a/x")), 0);
}

static void gone_directory(void **state)
{
        assert_int_equal(rmdir(tmp_path(state, "t/empty")), 0);
}

static void other_name(void **state)
{
        assert_int_equal(rename(tmp_path(state, "t/a/x"), tmp_path(state, "t/a/w")), 0);
}

static void moved(void **state)
{
        assert_int_equal(rename(tmp_path(state, "t/a/x"), tmp_path(state, "t/x")), 0);
}

static void exchanged(void **state)
{
        put(state, "t/a/x", "two", 0644);
        put(state, "t/a/y", "one", 0755);
}

static void link_target(void **state)
{
        assert_int_equal(unlink(tmp_path(state, "t/link")), 0);
        assert_int_equal(symlink("a/y", tmp_path(state, "t/link")), 0);
}

static void link_to_file(void **state)
{
        assert_int_equal(unlink(tmp_path(state, "t/link")), 0);
        put(state, "t/link", "a/x", 0777);
}

static void pipe_to_file(void **state)
{
        assert_int_equal(unlink(tmp_path(state, "t/pipe")), 0);
        put(state, "t/pipe", "", 0600);
}

static void times(void **state)
{
        const struct utimbuf old = { 1, 1 };

        assert_int_equal(utime(tmp_path(state, "t/a/x"), &old), 0);
        assert_int_equal(utime(tmp_path(state, "t/a"), &old), 0);
}

static void same_again(void **state)
{
        assert_int_equal(unlink(tmp_path(state, "t/a/x")), 0);
        put(state, "t/a/x", "one", 0644);
}

static void hard_link(void **state)
{
        assert_int_equal(unlink(tmp_path(state, "t/a/x")), 0);
        put(state, "other", "one", 0644);
        assert_int_equal(link(tmp_path(state, "other"), tmp_path(state, "t/a/x")), 0);
}

static const struct {
        const char *name;
        void (*change)(void **state);
        bool alters;
} changes[] = {
        { "content", content, true },
        { "length", length, true },
        { "mode", mode, true },
        { "set-user-id", set_user_id, true },
        { "directory mode", directory_mode, true },
        { "new file", new_file, true },
        { "new directory", new_directory, true },
        { "file gone", gone_file, true },
        { "directory gone", gone_directory, true },
        { "other name", other_name, true },
        { "moved", moved, true },
        { "contents exchanged", exchanged, true },
        { "link's target", link_target, true },
        { "link to file", link_to_file, true },
        { "pipe to file", pipe_to_file, true },
        { "times", times, false },
        { "written again", same_again, false },
        { "hard link", hard_link, false },
};

static void what_alters_it(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(changes); i++) {
                char before[RV_TREE_DIGEST_SIZE], after[RV_TREE_DIGEST_SIZE];
                void *own = NULL;

                (void)state;
                assert_int_equal(tmp_make(&own), 0);
                make_tree(&own);
                digest_of(&own, before);
                changes[i].change(&own);
                digest_of(&own, after);
                if ((strcmp(before, after) != 0) != changes[i].alters)
                        fail_msg("%s: %s", changes[i].name, changes[i].alters ? "is not seen" : "alters it");
                tmp_remove(&own);
        }
}

static void owner_does_not_matter(void **state)
{
        char before[RV_TREE_DIGEST_SIZE], after[RV_TREE_DIGEST_SIZE];

        need_root();
        make_tree(state);
        digest_of(state, before);
        assert_int_equal(chown(tmp_path(state, "t/a/x"), 1234, 1234), 0);
        digest_of(state, after);
        assert_string_equal(before, after);
}

static void what_cannot_be_read_is_named(void **state)
{
        struct rv_error err = { 0 };
        char digest[RV_TREE_DIGEST_SIZE] = "as it was";
        int fd;

        fd = open(tmp_path(state, "."), O_RDONLY | O_CLOEXEC);
        close(fd);
        assert_int_equal(rv_tree_digest(fd, digest, NULL, &err), -EBADF);
        assert_string_equal(digest, "as it was");
        assert_non_null(strstr(err.message, "Bad file descriptor"));
}

static void of_a_file(void **state)
{
        char digest[RV_TREE_DIGEST_SIZE], hex[RV_SHA256_HEX_SIZE];
        int fd;

        put(state, "file", "abc", 0644);
        fd = open(tmp_path(state, "file"), O_RDONLY | O_CLOEXEC);
        assert_int_equal(rv_file_digest(fd, digest), 0);
        rv_sha256_hex("abc", 3, hex);
        assert_string_equal(digest + 7, hex);
        close(fd);
        assert_int_equal(rv_file_digest(fd, digest), -EBADF);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, tmp_make, tmp_remove)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(is_as_documented),
                TEST(what_alters_it),
                TEST(owner_does_not_matter),
                TEST(what_cannot_be_read_is_named),
                TEST(of_a_file),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
