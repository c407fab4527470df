#include "image.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define RUN_DIRECTORY "/run/reeve"
#define MEMORY RUN_DIRECTORY "/images"
#define STAGE RUN_DIRECTORY "/image"         /* where they are mounted, in the spawner's namespace */
#define MEMORY_BYTES_MAX 512
#define YOUNG_US (UINT64_C(2) * 1000 * 1000) /* two writes within a tick of the clock have one time */

static const struct format {
        const char *name;
        off_t at;
        unsigned char magic[4];
} formats[] = {
        { "erofs", 1024, { 0xe2, 0xe1, 0xf5, 0xe0 } },
        { "squashfs", 0, { 'h', 's', 'q', 's' } },
};

static int fail(const struct rv_config_runtime *rt, struct rv_error *err, int r, const char *why, const char *cure)
{
        return rv_error_set(err, rv_raise(r), "runtime %s: its image %s %s; %s", rt->name, rt->image, why, cure);
}

/* ---- What it is ---- */

static const struct format *find_format(int fd)
{
        unsigned char magic[4];

        for (size_t i = 0; i < RV_N_ELEMENTS(formats); i++)
                if (pread(fd, magic, sizeof(magic), formats[i].at) == sizeof(magic) &&
                        memcmp(magic, formats[i].magic, sizeof(magic)) == 0)
                        return &formats[i];
        return NULL;
}

static int open_image(const struct rv_config_runtime *rt, int *ret_fd, const struct format **ret, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        char why[160];
        struct stat st;

        if (geteuid() != 0)
                return fail(rt, err, -EPERM, "can be mounted by root alone", "start reeve as root, or use a directory (runtimes.*.root)");
        fd = open(rt->image, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0) {
                int r = -errno;

                snprintf(why, sizeof(why), "cannot be opened: %s", strerror(-r));
                return fail(rt, err, r, why, "build it (`reeve runtime build`), or correct runtimes.*.image");
        }
        if (!S_ISREG(st.st_mode))
                return fail(rt, err, -EINVAL, "is no regular file", "correct runtimes.*.image");
        if (st.st_uid != 0 || (st.st_mode & 022))
                return fail(rt, err, -EPERM, "can be changed by others than root", "give it to root, mode 0644");
        *ret = find_format(fd);
        if (!*ret)
                return fail(rt, err, -EINVAL, "is neither an erofs nor a squashfs file system", "build it again (`reeve runtime build`)");
        *ret_fd = rv_take_fd(&fd);
        return 0;
}

/* ---- Its digest, and what is remembered of it ---- */

/* What a memory says of the file before the digest. */
static void identify(const struct stat *st, char ret[256])
{
        snprintf(ret, 256, "%u:%u %llu %lld %lld.%09ld %lld.%09ld ", major(st->st_dev), minor(st->st_dev),
                (unsigned long long)st->st_ino, (long long)st->st_size, (long long)st->st_mtim.tv_sec,
                st->st_mtim.tv_nsec, (long long)st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

static void name_memory(const struct stat *st, char ret[64])
{
        snprintf(ret, 64, "%u-%u-%llu", major(st->st_dev), minor(st->st_dev), (unsigned long long)st->st_ino);
}

/* A directory that is root's and nobody else's; or negative, and then nothing is remembered. */
static int open_memory(void)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        struct stat st;

        (void)mkdir(RUN_DIRECTORY, 0755);
        (void)mkdir(MEMORY, 0700);
        fd = open(MEMORY, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0 || fstat(fd, &st) < 0 || st.st_uid != 0 || (st.st_mode & 077))
                return -EBADF;
        return rv_take_fd(&fd);
}

static bool recall(int memory_fd, const struct stat *st, char ret[RV_TREE_DIGEST_SIZE])
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        char name[64], head[256];
        size_t n;

        name_memory(st, name);
        identify(st, head);
        n = strlen(head);
        if (memory_fd < 0 || rv_read_file_at(memory_fd, name, MEMORY_BYTES_MAX, &text) < 0)
                return false;
        if (text.size != n + RV_TREE_DIGEST_SIZE || memcmp(text.data, head, n) != 0 || text.data[text.size - 1] != '\n')
                return false;
        snprintf(ret, RV_TREE_DIGEST_SIZE, "%s", text.data + n);
        return true;
}

static void remember(int memory_fd, const struct stat *st, const char *digest)
{
        char name[64], head[256], text[MEMORY_BYTES_MAX];
        uint64_t changed_us = (uint64_t)st->st_ctim.tv_sec * 1000000u + (uint64_t)st->st_ctim.tv_nsec / 1000u;

        if (memory_fd < 0 || rv_clock_us(CLOCK_REALTIME) < changed_us + YOUNG_US)
                return;
        name_memory(st, name);
        identify(st, head);
        snprintf(text, sizeof(text), "%s%s\n", head, digest);
        (void)rv_write_file_at(memory_fd, name, text, strlen(text), 0600, false);
}

static int make_digest(const struct rv_config_runtime *rt, int fd, char ret[RV_TREE_DIGEST_SIZE], struct rv_error *err)
{
        _cleanup_(rv_closep) int memory_fd = open_memory();
        struct stat before, after;
        char why[160];
        int r;

        if (fstat(fd, &before) < 0)
                return fail(rt, err, -errno, "cannot be looked at", "see to the file");
        if (recall(memory_fd, &before, ret))
                return 0;
        r = rv_file_digest(fd, ret);
        if (r < 0) {
                snprintf(why, sizeof(why), "cannot be read: %s", strerror(-r));
                return fail(rt, err, r, why, "build it again (`reeve runtime build`)");
        }
        if (fstat(fd, &after) == 0 && before.st_ctim.tv_sec == after.st_ctim.tv_sec &&
                before.st_ctim.tv_nsec == after.st_ctim.tv_nsec)
                remember(memory_fd, &before, ret);
        return 0;
}

static int judge(const struct rv_config_runtime *rt, int fd, char ret[RV_TREE_DIGEST_SIZE], struct rv_error *err)
{
        char digest[RV_TREE_DIGEST_SIZE], why[256];
        int r = make_digest(rt, fd, digest, err);

        if (r < 0)
                return rv_trace(r);
        if (rt->digest && strcmp(rt->digest, digest) != 0) {
                snprintf(why, sizeof(why), "has the digest %s, not the configured %s", digest, rt->digest);
                return fail(rt, err, -EBADMSG, why, "put the right file there, or correct runtimes.*.digest");
        }
        memcpy(ret, digest, sizeof(digest));
        return 0;
}

int image_digest(const struct rv_config_runtime *rt, char ret[RV_TREE_DIGEST_SIZE], struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        const struct format *format;
        int r = open_image(rt, &fd, &format, err);

        return r < 0 ? rv_trace(r) : rv_trace(judge(rt, fd, ret, err));
}

/* ---- Where it is mounted ---- */

/* What is mounted here is not seen outside; what the host mounts later is seen here. */
static int enter_namespace(struct image_namespace *ns)
{
        if (ns->is_made)
                return 0;
        if ((mkdir(RUN_DIRECTORY, 0755) < 0 && errno != EEXIST) || (mkdir(STAGE, 0700) < 0 && errno != EEXIST))
                return -errno;
        if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0 ||
                mount("tmpfs", STAGE, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=64k,mode=0700") < 0)
                return -errno;
        ns->is_made = true;
        return 0;
}

static int mount_source(const char *type, const char *source, const char *place)
{
        _cleanup_(rv_closep) int fs_fd = fsopen(type, FSOPEN_CLOEXEC), mount_fd = -EBADF;

        if (fs_fd < 0)
                return -errno;
        if (fsconfig(fs_fd, FSCONFIG_SET_STRING, "source", source, 0) < 0 || fsconfig(fs_fd, FSCONFIG_SET_FLAG, "ro", NULL, 0) < 0 ||
                fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
                return -errno;
        mount_fd = fsmount(fs_fd, FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
        if (mount_fd < 0 || move_mount(mount_fd, "", AT_FDCWD, place, MOVE_MOUNT_F_EMPTY_PATH) < 0)
                return -errno;
        return 0;
}

/* The device goes away by itself with the last mount of it. */
static int mount_by_loop(const char *type, int image_fd, const char *place)
{
        struct loop_config config = {
                .fd = (uint32_t)image_fd, .info = { .lo_flags = LO_FLAGS_READ_ONLY | LO_FLAGS_AUTOCLEAR }
        };
        _cleanup_(rv_closep) int control_fd = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
        char device[32];

        if (control_fd < 0)
                return -errno;
        for (int i = 0; i < 16; i++) {
                int number = ioctl(control_fd, LOOP_CTL_GET_FREE), r;
                _cleanup_(rv_closep) int fd = -EBADF;

                if (number < 0)
                        return -errno;
                snprintf(device, sizeof(device), "/dev/loop%d", number);
                fd = open(device, O_RDONLY | O_CLOEXEC);
                if (fd < 0)
                        return -errno;
                if (ioctl(fd, LOOP_CONFIGURE, &config) == 0)
                        return mount_source(type, device, place);
                r = -errno;
                if (r != -EBUSY)        /* else another took it first */
                        return r;
        }
        return -EBUSY;
}

/* By the file where the kernel can do that (erofs from Linux 6.12 on), else by a loop device. */
static int mount_image(const struct format *format, int fd, const char *place)
{
        char source[32];
        int r = -ENOTBLK;

        snprintf(source, sizeof(source), "/proc/self/fd/%d", fd);
        if (strcmp(format->name, "erofs") == 0)
                r = mount_source(format->name, source, place);
        return r == -ENOTBLK || r == -EINVAL || r == -EOPNOTSUPP ? mount_by_loop(format->name, fd, place) : r;
}

static int fail_mount(const struct rv_config_runtime *rt, const struct format *format, int r, struct rv_error *err)
{
        char why[160];

        if (r == -ENODEV) {
                snprintf(why, sizeof(why), "cannot be mounted: this kernel has no %s", format->name);
                return fail(rt, err, r, why, "load its module, or use a directory (runtimes.*.root)");
        }
        snprintf(why, sizeof(why), "cannot be mounted: %s", strerror(-r));
        return fail(rt, err, r, why, r == -EPERM ? "reeve needs CAP_SYS_ADMIN; or use a directory (runtimes.*.root)" : "check it (`reeve runtime verify`) or build it again");
}

int image_mount(const struct rv_config_runtime *rt, struct image_namespace *ns, char ret_place[IMAGE_PLACE_SIZE],
        struct rv_error *err)
{
        char digest[RV_TREE_DIGEST_SIZE], place[IMAGE_PLACE_SIZE];
        _cleanup_(rv_closep) int fd = -EBADF;
        const struct format *format;
        int r = open_image(rt, &fd, &format, err);

        if (r == 0 && rt->digest)
                r = judge(rt, fd, digest, err);
        if (r < 0)
                return rv_trace(r);
        r = enter_namespace(ns);
        if (r < 0)
                return fail_mount(rt, format, r, err);
        snprintf(place, sizeof(place), STAGE "/%u", ns->n_mounted);
        r = mkdir(place, 0755) < 0 && errno != EEXIST ? -errno : mount_image(format, fd, place);
        if (r < 0)
                return fail_mount(rt, format, r, err);
        ns->n_mounted++;
        memcpy(ret_place, place, sizeof(place));
        return 0;
}
