/* Runtimes that are images: which are refused and how that is told, what is remembered of them, where they are mounted. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <utime.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "image.h"
#include "test_base_tmp.h"
#include "test_privilege.h"

#define MKFS "/usr/bin/mkfs.erofs"

static void need_mkfs(void)
{
        need_root();
        if (access(MKFS, X_OK) < 0)
                cannot_run("root", "this needs mkfs.erofs (Debian: erofs-utils)");
}

/* An erofs with one file, STATE/image. */
static void make_image(void **state, const char *text)
{
        char command[2048];

        assert_int_equal(rv_mkdir_p(tmp_path(state, "tree/usr/bin"), 0755), 0);
        assert_int_equal(rv_write_file(tmp_path(state, "tree/usr/bin/python3"), text, strlen(text), 0755, false), 0);
        snprintf(command, sizeof(command), MKFS " -T0 --all-root -x-1 -U 00000000-0000-0000-0000-000000000000 %s %s >/dev/null 2>&1", tmp_path(state, "image"),
                 tmp_path(state, "tree"));
        assert_int_equal(system(command), 0);
        assert_int_equal(chmod(tmp_path(state, "image"), 0644), 0);
}

static void no_change(void **state)
{
        (void)state;
}

static void gone(void **state)
{
        assert_int_equal(unlink(tmp_path(state, "image")), 0);
}

static void a_directory(void **state)
{
        gone(state);
        assert_int_equal(mkdir(tmp_path(state, "image"), 0755), 0);
}

static void a_pipe(void **state)
{
        gone(state);
        assert_int_equal(mkfifo(tmp_path(state, "image"), 0644), 0);
}

static void of_another(void **state)
{
        assert_int_equal(chown(tmp_path(state, "image"), 1234, 1234), 0);
}

static void writable(void **state)
{
        assert_int_equal(chmod(tmp_path(state, "image"), 0664), 0);
}

static void text_file(void **state)
{
        assert_int_equal(rv_write_file(tmp_path(state, "image"), "hello", 5, 0644, false), 0);
}

static void cut_to_nothing(void **state)
{
        assert_int_equal(truncate(tmp_path(state, "image"), 0), 0);
}

#define OTHER "sha256:0000000000000000000000000000000000000000000000000000000000000000"

static const struct {
        const char *name;
        void (*change)(void **state);
        const char *digest;
        int result;
        const char *message;
} refusals[] = {
        { "good", no_change, NULL, 0, "" },
        { "gone", gone, NULL, -ENOENT, "cannot be opened: No such file or directory; build it (`reeve runtime build`), or correct runtimes.*.image" },
        { "directory", a_directory, NULL, -EINVAL, "is no regular file; correct" },
        { "pipe", a_pipe, NULL, -EINVAL, "is no regular file; correct" },
        { "another's", of_another, NULL, -EPERM, "can be changed by others than root; give it to root" },
        { "writable", writable, NULL, -EPERM, "can be changed by others than root; give it to root" },
        { "text", text_file, NULL, -EINVAL, "is neither an erofs nor a squashfs file system" },
        { "empty", cut_to_nothing, NULL, -EINVAL, "is neither an erofs nor a squashfs file system" },
        { "another digest", no_change, OTHER, -EBADMSG, "not the configured " OTHER "; put the right file there, or correct runtimes.*.digest" },
};

static void what_is_refused(void **state)
{
        (void)state;
        need_mkfs();
        for (size_t i = 0; i < RV_N_ELEMENTS(refusals); i++) {
                char digest[RV_TREE_DIGEST_SIZE] = "as it was";
                struct rv_config_runtime rt = { .name = "made", .root = "", .digest = refusals[i].digest };
                struct image_namespace ns = { 0 };
                struct rv_error err = { 0 };
                char place[IMAGE_PLACE_SIZE];
                void *own = NULL;
                int r;

                assert_int_equal(tmp_make(&own), 0);
                make_image(&own, "x");
                rt.image = tmp_path(&own, "image");
                refusals[i].change(&own);
                r = image_digest(&rt, digest, &err);
                if (r != refusals[i].result || !strstr(err.message, refusals[i].message) || (r < 0 && strncmp(err.message, "runtime made: its image /", 25) != 0))
                        fail_msg("%s: %d, %s", refusals[i].name, r, err.message);
                if (r < 0) {
                        assert_string_equal(digest, "as it was");
                        assert_int_equal(image_mount(&rt, &ns, place, NULL), r);
                        assert_false(ns.is_made);
                }
                tmp_remove(&own);
        }
}

static void a_user_is_refused(void **state)
{
        struct rv_config_runtime rt = { .name = "made", .image = "/x.erofs", .root = "" };
        char digest[RV_TREE_DIGEST_SIZE];
        struct rv_error err = { 0 };
        uid_t before = geteuid();

        (void)state;
        if (before == 0)
                assert_int_equal(seteuid(65534), 0);
        assert_int_equal(image_digest(&rt, digest, &err), -EPERM);
        assert_int_equal(seteuid(before), 0);
        assert_string_equal(err.message, "runtime made: its image /x.erofs can be mounted by root alone; start reeve as root, or use a directory (runtimes.*.root)");
}

static int count_memories(void)
{
        char command[] = "ls /run/reeve/images | wc -l";
        FILE *f = popen(command, "r");
        int n = -1;

        assert_int_equal(fscanf(f, "%d", &n), 1);
        pclose(f);
        return n;
}

/* As the kernel gives it: what is younger than two seconds is not remembered. */
static void what_is_remembered(void **state)
{
        struct rv_config_runtime rt = { .name = "made", .root = "" };
        char first[RV_TREE_DIGEST_SIZE], second[RV_TREE_DIGEST_SIZE], name[128];
        struct stat st;
        int n;

        need_mkfs();
        make_image(state, "x");
        rt.image = strdup(tmp_path(state, "image"));
        assert_int_equal(image_digest(&rt, first, NULL), 0);
        n = count_memories();
        sleep(3);
        assert_int_equal(image_digest(&rt, second, NULL), 0);
        assert_string_equal(first, second);
        assert_int_equal(count_memories(), n + 1);
        /* It is the memory that answers, as long as it is of this very file. */
        assert_int_equal(stat(rt.image, &st), 0);
        snprintf(name, sizeof(name), "sed -i s/sha256:../sha256:zz/ /run/reeve/images/*-%llu", (unsigned long long)st.st_ino);
        assert_int_equal(system(name), 0);
        assert_int_equal(image_digest(&rt, second, NULL), 0);
        assert_int_equal(strncmp(second, "sha256:zz", 9), 0);
        assert_int_equal(utime(rt.image, NULL), 0);
        assert_int_equal(image_digest(&rt, second, NULL), 0);
        assert_string_equal(first, second);
        snprintf(name, sizeof(name), "rm -f /run/reeve/images/*-%llu", (unsigned long long)st.st_ino);
        assert_int_equal(system(name), 0);
        free((char *)rt.image);
}

static bool is_in_mounts(const char *path)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        int fd = open(path, O_RDONLY | O_CLOEXEC);

        assert_true(fd >= 0 && rv_read_fd(fd, 1 << 20, &text) == 0);
        close(fd);
        return text.data && strstr(text.data, "/run/reeve/image/");
}

/* In a process of its own, which is then killed. */
static void where_it_is_mounted(void **state)
{
        struct rv_config_runtime rt = { .name = "made", .root = "", .image = strdup(tmp_path(state, "image")) };
        char path[64], byte = 0;
        int pair[2], status;
        pid_t pid;

        need_mkfs();
        make_image(state, "content");
        assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
        pid = fork();
        if (pid == 0) {
                struct image_namespace ns = { 0 };
                char places[2][IMAGE_PLACE_SIZE], file[128], text[8] = "";
                int fd;

                for (int i = 0; i < 2; i++)
                        if (image_mount(&rt, &ns, places[i], NULL) < 0)
                                _exit(2);
                if (!strcmp(places[0], places[1]))
                        _exit(3);
                snprintf(file, sizeof(file), "%s/usr/bin/python3", places[1]);
                fd = open(file, O_RDONLY);
                if (fd < 0 || read(fd, text, 7) != 7 || strcmp(text, "content") != 0)
                        _exit(4);
                if (open(file, O_WRONLY) >= 0 || errno != EROFS)
                        _exit(5);
                (void)!write(pair[1], "x", 1);
                pause();
        }
        close(pair[1]);
        if (read(pair[0], &byte, 1) != 1) {
                waitpid(pid, &status, 0);
                fail_msg("the process ended with status %d", WEXITSTATUS(status));
        }
        close(pair[0]);
        snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
        assert_true(is_in_mounts(path));
        assert_false(is_in_mounts("/proc/self/mountinfo"));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_false(is_in_mounts("/proc/self/mountinfo"));
        free((char *)rt.image);
}

/* What has the right beginning and nothing else. */
static void damaged(void **state)
{
        struct rv_config_runtime rt = { .name = "made", .root = "", .image = strdup(tmp_path(state, "image")) };
        int status;
        pid_t pid;

        need_mkfs();
        make_image(state, "content");
        assert_int_equal(truncate(rt.image, 1030), 0);
        pid = fork();
        if (pid == 0) {
                struct image_namespace ns = { 0 };
                char place[IMAGE_PLACE_SIZE];
                struct rv_error err = { 0 };

                _exit(image_mount(&rt, &ns, place, &err) < 0 && strstr(err.message, "cannot be mounted: ") ? 0 : 1);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        free((char *)rt.image);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, tmp_make, tmp_remove)

int main(void)
{
        const struct CMUnitTest tests[] = {
                TEST(what_is_refused),
                TEST(a_user_is_refused),
                TEST(what_is_remembered),
                TEST(where_it_is_mounted),
                TEST(damaged),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
