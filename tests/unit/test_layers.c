/*
 * Layers from the spawner's side: what becomes one and what does not, whose it is then, how it goes; and that a process
 * that is killed at any moment leaves no half of one.
 *
 *     test_layers                 the tests
 *     test_layers worker STATE    what they kill: it publishes, compiles and removes for ever
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

#include "test_privilege.h"

#include "base/fd.h"
#include "layers.h"
#include "test_base_tmp.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST_B "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define N_FILES 40
#define USER 65534

static void put(int dir_fd, const char *path, mode_t mode, const char *text)
{
        int fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

        assert_true(fd >= 0);
        assert_int_equal(write(fd, text, strlen(text)), strlen(text));
        assert_int_equal(fchmod(fd, mode), 0);
        close(fd);
}

static void fill(int fd)
{
        char name[64];

        assert_int_equal(mkdirat(fd, "tree", 0700), 0);
        assert_int_equal(mkdirat(fd, "tree/bin", 0777), 0);
        assert_int_equal(mkdirat(fd, "tree/lib", 02750), 0);
        assert_int_equal(symlinkat("/usr/bin/python3", fd, "tree/bin/python3"), 0);
        put(fd, "tree/bin/tool", 04755, "#!/bin/sh\n");
        for (int i = 0; i < N_FILES; i++) {
                snprintf(name, sizeof(name), "tree/lib/m%02d.py", i);
                put(fd, name, 0600, "pass\n");
        }
        put(fd, "manifest.json", 0600, "{}\n");
}

static void fill_compiled(int fd)
{
        char name[64];

        assert_int_equal(mkdirat(fd, "lib", 0700), 0);
        assert_int_equal(mkdirat(fd, "lib/__pycache__", 0700), 0);
        for (int i = 0; i < N_FILES; i++) {
                snprintf(name, sizeof(name), "lib/__pycache__/m%02d.cpython-311.pyc", i);
                put(fd, name, 0600, "x");
        }
        put(fd, "manifest-compiled.json", 0600, "{}\n");
}

static void open_layers(void **state, struct rv_layers *ret)
{
        struct rv_error err = { 0 };

        if (rv_layers_open(*state, ret, &err) < 0)
                fail_msg("%s", err.message);
}

static void stage(const struct rv_layers *l, const char *name, struct rv_layers_stage *ret)
{
        struct rv_error err = { 0 };

        if (rv_layers_stage(l, name, geteuid(), getegid(), ret, &err) < 0)
                fail_msg("%s", err.message);
}

static void publish(const struct rv_layers *l, const char *name, const char *digest)
{
        struct rv_layers_stage s;
        struct rv_error err = { 0 };

        stage(l, name, &s);
        fill(s.dir_fd);
        if (rv_layers_publish(l, name, digest, -1, &err) < 0)
                fail_msg("%s", err.message);
        rv_layers_stage_close(&s);
}

static mode_t mode_of(int fd, const char *path)
{
        struct stat st;

        assert_int_equal(fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW), 0);
        assert_int_equal(st.st_uid, geteuid());
        return st.st_mode & 07777;
}

static bool is_there(int fd, const char *path)
{
        return faccessat(fd, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int count(int fd)
{
        int n = 0, copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *d = fdopendir(copy);
        const struct dirent *e;

        assert_non_null(d);
        while ((e = readdir(d)))
                n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
        closedir(d);
        return n;
}

/* ---- What becomes a layer ---- */

static void published(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf lock = { 0 };
        struct rv_layers l;
        struct rv_layers_stage s;
        int lock_fd;

        open_layers(state, &l);
        assert_int_equal(mode_of(AT_FDCWD, tmp_path(state, "packages/layers")), 0755);
        stage(&l, "run-1", &s);
        fill(s.dir_fd);
        put(AT_FDCWD, tmp_path(state, "lock"), 0600, "the lock\n");
        lock_fd = open(tmp_path(state, "lock"), O_RDONLY | O_CLOEXEC);
        assert_int_equal(rv_layers_publish(&l, "run-1", DIGEST, lock_fd, NULL), 0);
        close(lock_fd);
        rv_layers_stage_close(&s);
        assert_int_equal(mode_of(l.layers_fd, DIGEST), 0755);
        assert_int_equal(mode_of(l.layers_fd, DIGEST "/tree"), 0755);
        assert_int_equal(mode_of(l.layers_fd, DIGEST "/tree/lib"), 0755);
        assert_int_equal(mode_of(l.layers_fd, DIGEST "/tree/bin/tool"), 0755);
        assert_int_equal(mode_of(l.layers_fd, DIGEST "/tree/lib/m00.py"), 0644);
        assert_int_equal(mode_of(l.layers_fd, DIGEST "/manifest.json"), 0644);
        assert_int_equal(rv_read_file_at(l.layers_fd, DIGEST "/lock.json", 100, &lock), 0);
        assert_string_equal(lock.data, "the lock\n");
        assert_int_equal(count(l.staging_fd), 0);
        rv_layers_close(&l);
}

static void there_already(void **state)
{
        struct rv_layers l;
        struct stat before, after;

        open_layers(state, &l);
        publish(&l, "run-1", DIGEST);
        assert_int_equal(fstatat(l.layers_fd, DIGEST, &before, 0), 0);
        publish(&l, "run-2", DIGEST);
        assert_int_equal(fstatat(l.layers_fd, DIGEST, &after, 0), 0);
        assert_int_equal(before.st_ino, after.st_ino);
        assert_int_equal(count(l.staging_fd), 0);
        rv_layers_close(&l);
}

static void add_fifo(int fd)
{
        assert_int_equal(mkfifoat(fd, "tree/lib/f", 0600), 0);
}
static void add_socket(int fd)
{
        struct sockaddr_un {
                sa_family_t family;
                char path[108];
        } a = { .family = AF_UNIX };
        int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(a.path, sizeof(a.path), "/proc/self/fd/%d/tree/s", fd);
        assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
        close(s);
}
static void add_second_name(int fd)
{
        assert_int_equal(linkat(fd, "tree/lib/m00.py", fd, "tree/lib/other.py", 0), 0);
}
static void add_beside(int fd)
{
        put(fd, "other", 0600, "");
}
static void tree_is_a_link(int fd)
{
        assert_int_equal(renameat(fd, "tree", fd, "manifest.json"), -1);
        assert_int_equal(unlinkat(fd, "manifest.json", 0), 0);
        assert_int_equal(renameat(fd, "tree", fd, "manifest.json"), 0);
        assert_int_equal(symlinkat("/", fd, "tree"), 0);
}
static void no_manifest(int fd)
{
        assert_int_equal(unlinkat(fd, "manifest.json", 0), 0);
}
static void manifest_is_a_link(int fd)
{
        no_manifest(fd);
        assert_int_equal(symlinkat("/etc/passwd", fd, "manifest.json"), 0);
}
static void too_deep(int fd)
{
        int at = openat(fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        for (int i = 0; i < 300; i++) {
                int next;

                assert_int_equal(mkdirat(at, "d", 0700), 0);
                next = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                close(at);
                at = next;
        }
        close(at);
}
static void too_long(int fd)
{
        char name[256];
        int at = openat(fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        memset(name, 'n', 255);
        name[255] = 0;
        for (int i = 0; i < 9; i++) {
                int next;

                assert_int_equal(mkdirat(at, name, 0700), 0);
                next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
                close(at);
                at = next;
        }
        close(at);
}
static void hostile_name(int fd)
{
        assert_int_equal(mkfifoat(fd, "tree/lib/a\033[2J\nb", 0600), 0);
}

static const struct {
        const char *name;
        void (*change)(int fd);
        const char *says;
} refused_rows[] = {
        { "a FIFO", add_fifo, "tree/lib/f: it is neither a regular file" },
        { "a socket", add_socket, "tree/s: it is neither a regular file" },
        { "a hard link", add_second_name, "several names" },
        { "something beside the tree", add_beside, "other: it is neither the tree nor its manifest" },
        { "a link in place of the tree", tree_is_a_link, "it is neither the tree nor its manifest" },
        { "no manifest", no_manifest, "there is no manifest in it" },
        { "a link in place of the manifest", manifest_is_a_link, "manifest.json: it is neither" },
        { "directories too deep", too_deep, "directories are too deep" },
        { "a path too long", too_long, "too long a path" },
        { "a name for a terminal", hostile_name, "tree/lib/a?[2J?b" },
};

static void refused(void **state)
{
        struct rv_layers l;

        open_layers(state, &l);
        for (size_t i = 0; i < RV_N_ELEMENTS(refused_rows); i++) {
                struct rv_layers_stage s;
                struct rv_error err = { 0 };

                stage(&l, "run-1", &s);
                fill(s.dir_fd);
                refused_rows[i].change(s.dir_fd);
                assert_int_equal(rv_layers_publish(&l, "run-1", DIGEST, -1, &err), -EBADMSG);
                if (!strstr(err.message, refused_rows[i].says))
                        fail_msg("%s: %s", refused_rows[i].name, err.message);
                assert_int_equal(count(l.layers_fd), 0);
                assert_int_equal(rv_layers_unstage(&l, "run-1"), 0);
                assert_int_equal(count(l.staging_fd), 0);
                rv_layers_stage_close(&s);
        }
        rv_layers_close(&l);
}

static void names(void **state)
{
        static const char *const wrong[] = { "", "..", "a/b", "-x", "a.b", DIGEST, "run 1" };
        struct rv_layers_stage s;
        struct rv_layers l;

        open_layers(state, &l);
        for (size_t i = 0; i < RV_N_ELEMENTS(wrong); i++) {
                assert_int_equal(rv_layers_stage(&l, wrong[i], geteuid(), getegid(), &s, NULL), -EINVAL);
                assert_int_equal(rv_layers_unstage(&l, wrong[i]), -EINVAL);
                if (strcmp(wrong[i], DIGEST))
                        assert_int_equal(rv_layers_remove(&l, wrong[i], NULL), -EINVAL);
        }
        assert_int_equal(rv_layers_publish(&l, "run-9", DIGEST, -1, NULL), -ENOENT);
        stage(&l, "run-1", &s);
        assert_int_equal(rv_layers_publish(&l, "run-1", "../x", -1, NULL), -EINVAL);
        assert_int_equal(rv_layers_stage(&l, "run-1", geteuid(), getegid(), &s, NULL), -EEXIST);
        rv_layers_stage_close(&s);
        rv_layers_close(&l);
}

/* ---- Byte code ---- */

static void compiled(void **state)
{
        struct rv_layers l;
        struct rv_layers_stage s;
        struct rv_error err = { 0 };

        open_layers(state, &l);
        publish(&l, "run-1", DIGEST);
        for (int i = 0; i < 2; i++) {
                stage(&l, "run-2", &s);
                fill_compiled(s.dir_fd);
                if (rv_layers_add_compiled(&l, "run-2", DIGEST, &err) < 0)
                        fail_msg("%s", err.message);
                rv_layers_stage_close(&s);
        }
        assert_int_equal(mode_of(l.layers_fd, DIGEST "/tree/lib/__pycache__"), 0755);
        assert_int_equal(mode_of(l.layers_fd, DIGEST "/tree/lib/__pycache__/m00.cpython-311.pyc"), 0644);
        assert_int_equal(mode_of(l.layers_fd, DIGEST "/manifest-compiled.json"), 0644);
        assert_int_equal(count(l.staging_fd), 0);
        stage(&l, "run-3", &s);
        fill_compiled(s.dir_fd);
        assert_int_equal(rv_layers_add_compiled(&l, "run-3", DIGEST_B, &err), -ENOENT);
        rv_layers_stage_close(&s);
        rv_layers_close(&l);
}

static void source_beside(int fd)
{
        put(fd, "lib/m.py", 0600, "");
}
static void other_in_cache(int fd)
{
        put(fd, "lib/__pycache__/m.so", 0600, "");
}
static void link_in_cache(int fd)
{
        assert_int_equal(symlinkat("/etc/passwd", fd, "lib/__pycache__/m.pyc"), 0);
}
static void directory_in_cache(int fd)
{
        assert_int_equal(mkdirat(fd, "lib/__pycache__/m.pyc", 0700), 0);
}
static void link_beside(int fd)
{
        assert_int_equal(symlinkat("lib", fd, "lib2"), 0);
}

static void compiled_refused(void **state)
{
        static void (*const changes[])(
                int) = { source_beside, other_in_cache, link_in_cache, directory_in_cache, link_beside, add_beside };
        struct rv_layers l;

        open_layers(state, &l);
        publish(&l, "run-1", DIGEST);
        for (size_t i = 0; i < RV_N_ELEMENTS(changes); i++) {
                struct rv_layers_stage s;

                stage(&l, "run-2", &s);
                fill_compiled(s.dir_fd);
                changes[i](s.dir_fd);
                assert_int_equal(rv_layers_add_compiled(&l, "run-2", DIGEST, NULL), -EBADMSG);
                assert_false(is_there(l.layers_fd, DIGEST "/manifest-compiled.json"));
                assert_false(is_there(l.layers_fd, DIGEST "/tree/lib/__pycache__"));
                assert_int_equal(rv_layers_unstage(&l, "run-2"), 0);
                rv_layers_stage_close(&s);
        }
        rv_layers_close(&l);
}

/* What the layer came with stays, and a link in it is not followed. */
static void compiled_beside(void **state)
{
        struct rv_layers l;
        struct rv_layers_stage s;

        open_layers(state, &l);
        stage(&l, "run-1", &s);
        fill(s.dir_fd);
        assert_int_equal(mkdirat(s.dir_fd, "tree/lib/__pycache__", 0700), 0);
        put(s.dir_fd, "tree/lib/__pycache__/own.pyc", 0600, "own");
        assert_int_equal(mkdir(tmp_path(state, "outside"), 0755), 0);
        assert_int_equal(symlinkat(tmp_path(state, "outside"), s.dir_fd, "tree/link"), 0);
        assert_int_equal(rv_layers_publish(&l, "run-1", DIGEST, -1, NULL), 0);
        rv_layers_stage_close(&s);
        stage(&l, "run-2", &s);
        fill_compiled(s.dir_fd);
        assert_int_equal(mkdirat(s.dir_fd, "link", 0700), 0);
        assert_int_equal(mkdirat(s.dir_fd, "link/__pycache__", 0700), 0);
        assert_int_equal(rv_layers_add_compiled(&l, "run-2", DIGEST, NULL), 0);
        rv_layers_stage_close(&s);
        assert_true(is_there(l.layers_fd, DIGEST "/tree/lib/__pycache__/own.pyc"));
        assert_false(is_there(l.layers_fd, DIGEST "/tree/lib/__pycache__/m00.cpython-311.pyc"));
        assert_false(is_there(AT_FDCWD, tmp_path(state, "outside/__pycache__")));
        rv_layers_close(&l);
}

/* ---- Going, and being left over ---- */

static void removed(void **state)
{
        struct rv_layers l;

        open_layers(state, &l);
        publish(&l, "run-1", DIGEST);
        publish(&l, "run-2", DIGEST_B);
        assert_int_equal(rv_layers_remove(&l, DIGEST, NULL), 0);
        assert_int_equal(rv_layers_remove(&l, DIGEST, NULL), 0);
        assert_false(is_there(l.layers_fd, DIGEST));
        assert_true(is_there(l.layers_fd, DIGEST_B "/tree"));
        assert_int_equal(count(l.staging_fd), 0);
        rv_layers_close(&l);
}

static void swept(void **state)
{
        struct rv_layers_stage held, left;
        struct rv_layers l;

        open_layers(state, &l);
        stage(&l, "held", &held);
        stage(&l, "left", &left);
        fill(left.dir_fd);
        too_deep(left.dir_fd);
        assert_int_equal(mkdirat(left.dir_fd, "closed", 0), 0);
        put(l.staging_fd, "file", 0600, "");
        rv_layers_stage_close(&left);
        assert_int_equal(rv_layers_sweep(&l), 2);
        assert_int_equal(count(l.staging_fd), 1);
        /* Whoever fills it cannot let go of the lock. */
        (void)flock(held.dir_fd, LOCK_UN);
        assert_int_equal(rv_layers_sweep(&l), 0);
        rv_layers_stage_close(&held);
        assert_int_equal(rv_layers_sweep(&l), 1);
        rv_layers_close(&l);
}

/* ---- Whose the directories are ---- */

static void places(void **state)
{
        struct rv_layers l = { .layers_fd = 77 };
        struct rv_error err = { 0 };

        assert_int_equal(rv_layers_open("/nonexistent", &l, NULL), -ENOENT);
        assert_int_equal(mkdir(tmp_path(state, "packages"), 0755), 0);
        assert_int_equal(mkdir(tmp_path(state, "elsewhere"), 0755), 0);
        assert_int_equal(symlink("../elsewhere", tmp_path(state, "packages/layers")), 0);
        assert_int_equal(rv_layers_open(*state, &l, &err), -EPERM);
        assert_non_null(strstr(err.message, "packages/layers"));
        assert_int_equal(unlink(tmp_path(state, "packages/layers")), 0);
        put(AT_FDCWD, tmp_path(state, "packages/layers"), 0600, "");
        assert_int_equal(rv_layers_open(*state, &l, NULL), -EPERM);
        assert_int_equal(unlink(tmp_path(state, "packages/layers")), 0);
        assert_int_equal(mkdir(tmp_path(state, "packages/layers"), 0755), 0);
        assert_int_equal(chmod(tmp_path(state, "packages/layers"), 0775), 0);
        assert_int_equal(rv_layers_open(*state, &l, NULL), -EPERM);
        assert_int_equal(l.layers_fd, 77);
}

static void place_of_another(void **state)
{
        struct rv_layers l;
        struct rv_error err = { 0 };

        need_root();
        assert_int_equal(chown(*state, USER, USER), 0);
        open_layers(state, &l);
        rv_layers_close(&l);
        assert_int_equal(chown(tmp_path(state, "packages/staging"), USER, USER), 0);
        assert_int_equal(rv_layers_open(*state, &l, &err), -EPERM);
        assert_non_null(strstr(err.message, "belongs to uid 65534"));
}

/* A tree that another user filled, with all that a user can do to one. */
static void filled_by_another(void **state)
{
        struct rv_layers l;
        struct rv_layers_stage s;
        struct stat st;
        int status;
        pid_t pid;

        need_root();
        assert_int_equal(chown(*state, USER, USER), 0);
        open_layers(state, &l);
        assert_int_equal(stat(tmp_path(state, "packages"), &st), 0);
        assert_int_equal(st.st_uid, USER);
        assert_int_equal(rv_layers_stage(&l, "run-1", USER, USER, &s, NULL), 0);
        pid = fork();
        if (pid == 0) {
                if (setresgid(USER, USER, USER) < 0 || setresuid(USER, USER, USER) < 0 || fchdir(s.dir_fd) < 0)
                        _exit(1);
                fill(s.dir_fd);
                (void)setxattr("tree/lib/m00.py", "user.note", "x", 1, 0);
                _exit(chmod("tree/lib/m01.py", 06711) == 0 && chmod("tree/lib", 01333) == 0 && chmod("tree/lib/m02.py", 0) == 0 ? 0 : 2);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(rv_layers_publish(&l, "run-1", DIGEST, -1, NULL), 0);
        rv_layers_stage_close(&s);
        assert_int_equal(mode_of(l.layers_fd, DIGEST), 0755);
        assert_int_equal(mode_of(l.layers_fd, DIGEST "/tree/lib"), 0755);
        assert_int_equal(mode_of(l.layers_fd, DIGEST "/tree/lib/m01.py"), 0755);
        assert_int_equal(mode_of(l.layers_fd, DIGEST "/tree/lib/m02.py"), 0644);
        (void)mode_of(l.layers_fd, DIGEST "/tree/bin/python3");
        assert_int_equal(getxattr(tmp_path(state, "packages/layers/" DIGEST "/tree/lib/m00.py"), "user.note", NULL, 0), -1);
        rv_layers_close(&l);
}

static void device(void **state)
{
        struct rv_layers l;
        struct rv_layers_stage s;
        int r;

        need_root();
        open_layers(state, &l);
        stage(&l, "run-1", &s);
        fill(s.dir_fd);
        r = mknodat(s.dir_fd, "tree/null", S_IFCHR | 0600, 0x103);
        assert_int_equal(rv_layers_publish(&l, "run-1", DIGEST, -1, NULL), r == 0 ? -EBADMSG : 0);
        rv_layers_stage_close(&s);
        rv_layers_close(&l);
}

static void by_an_ordinary_user(void **state)
{
        int status;
        pid_t pid;

        need_root();
        assert_int_equal(chown(*state, USER, USER), 0);
        pid = fork();
        if (pid == 0) {
                if (setresgid(USER, USER, USER) < 0 || setresuid(USER, USER, USER) < 0)
                        _exit(1);
                published(state);
                there_already(state);
                _exit(0);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

/* ---- Killed at any moment ---- */

static const char *own_path;

static int work(const char *state_dir)
{
        static const char *const digests[] = { DIGEST, DIGEST_B };
        void *state = (void *)state_dir;
        struct rv_layers l;

        open_layers(&state, &l);
        for (unsigned i = 0;; i++) {
                const char *digest = digests[i % 2];
                struct rv_layers_stage s;
                char name[64];

                (void)rv_layers_sweep(&l);
                snprintf(name, sizeof(name), "run-%d-%u", (int)getpid(), i);
                publish(&l, name, digest);
                snprintf(name, sizeof(name), "code-%d-%u", (int)getpid(), i);
                stage(&l, name, &s);
                fill_compiled(s.dir_fd);
                if (rv_layers_add_compiled(&l, name, digest, NULL) < 0)
                        return 1;
                rv_layers_stage_close(&s);
                if (i % 4 > 1 && rv_layers_remove(&l, digest, NULL) < 0)
                        return 1;
        }
}

/* Every layer that is there is whole, and what byte code there is is in a manifest; the rest goes with a sweep. */
static int check_whole(void **state)
{
        int n = 0;
        static const char *const digests[] = { DIGEST, DIGEST_B };
        struct rv_layers l;
        char path[160];

        open_layers(state, &l);
        for (size_t i = 0; i < 2; i++) {
                if (!is_there(l.layers_fd, digests[i]))
                        continue;
                n++;
                assert_int_equal(mode_of(l.layers_fd, digests[i]), 0755);
                for (int k = 0; k < N_FILES; k++) {
                        snprintf(path, sizeof(path), "%s/tree/lib/m%02d.py", digests[i], k);
                        assert_int_equal(mode_of(l.layers_fd, path), 0644);
                }
                snprintf(path, sizeof(path), "%s/manifest.json", digests[i]);
                assert_int_equal(mode_of(l.layers_fd, path), 0644);
                snprintf(path, sizeof(path), "%s/tree/lib/__pycache__", digests[i]);
                if (!is_there(l.layers_fd, path))
                        continue;
                snprintf(path, sizeof(path), "%s/manifest-compiled.json", digests[i]);
                assert_true(is_there(l.layers_fd, path));
                for (int k = 0; k < N_FILES; k++) {
                        snprintf(path, sizeof(path), "%s/tree/lib/__pycache__/m%02d.cpython-311.pyc", digests[i], k);
                        assert_int_equal(mode_of(l.layers_fd, path), 0644);
                }
        }
        (void)rv_layers_sweep(&l);
        assert_int_equal(count(l.staging_fd), 0);
        rv_layers_close(&l);
        return n;
}

static pid_t start_worker(const char *state_dir, const char *point)
{
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0) {
                if (point)
                        setenv("REEVE_TEST_PAUSE", point, 1);
                execl(own_path, own_path, "worker", state_dir, (char *)NULL);
                _exit(127);
        }
        return pid;
}

static void end_worker(pid_t pid)
{
        int status;

        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
}

static void sleep_us(long us)
{
        struct timespec t = { .tv_nsec = us * 1000 };

        nanosleep(&t, NULL);
}

static void random_kills(void **state)
{
        unsigned seed = (unsigned)time(NULL);
        int n_seen = 0;

        print_message("seed %u\n", seed);
        for (int i = 0; i < 50; i++) {
                pid_t pid = start_worker(*state, NULL);

                sleep_us(500 + rand_r(&seed) % 60000);
                end_worker(pid);
                n_seen += check_whole(state);
        }
        assert_true(n_seen > 0);
}

#ifdef RV_TEST_POINTS
static bool is_waiting(pid_t pid, const char *point)
{
        char path[64], mark[32];
        _cleanup_(rv_buf_fini) struct rv_buf comm = { 0 };

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        snprintf(mark, sizeof(mark), "@%s\n", point);
        return rv_read_file_at(AT_FDCWD, path, 64, &comm) == 0 && strcmp(comm.data, mark) == 0;
}

static void kills_at_points(void **state)
{
        static const char *const points[] = { "layer-owned", "layer-synced", "layer-renamed", "layer-manifest", "layer-removing" };

        for (size_t i = 0; i < RV_N_ELEMENTS(points); i++) {
                pid_t pid = start_worker(*state, points[i]);
                int n;

                for (n = 0; n < 2000 && !is_waiting(pid, points[i]); n++)
                        sleep_us(5000);
                assert_true(n < 2000);
                end_worker(pid);
                (void)check_whole(state);
        }
}
#endif

#define TMP(name) cmocka_unit_test_setup_teardown(name, tmp_make, tmp_remove)

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                TMP(published),
                TMP(there_already),
                TMP(refused),
                TMP(names),
                TMP(compiled),
                TMP(compiled_refused),
                TMP(compiled_beside),
                TMP(removed),
                TMP(swept),
                TMP(places),
                TMP(place_of_another),
                TMP(filled_by_another),
                TMP(device),
                TMP(by_an_ordinary_user),
                TMP(random_kills),
#ifdef RV_TEST_POINTS
                TMP(kills_at_points),
#endif
        };

        if (argc == 3 && !strcmp(argv[1], "worker"))
                return work(argv[2]);
        own_path = "/proc/self/exe";
        return cmocka_run_group_tests(tests, NULL, NULL);
}
