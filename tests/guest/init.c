/*
 * The first program of the test guest: loads the kernel modules of the initramfs in the order of their names,
 * puts a tmpfs above the read-only root image, moves there and becomes systemd. What fails is said on the console;
 * the kernel then panics for want of a first program, which ends the machine (panic=-1, QEMU's -no-reboot).
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MODULES "/modules"

static void die(const char *what)
{
        FILE *log = fopen("/dev/kmsg", "w");

        if (log) {
                fprintf(log, "<2>guest: %s: %s\n", what, strerror(errno));
                fclose(log);
        }
        exit(1);
}

static void must_mount(const char *from, const char *to, const char *type, unsigned long flags, const char *options)
{
        if (mount(from, to, type, flags, options))
                die(to);
}

static int is_module(const struct dirent *d)
{
        size_t n = strlen(d->d_name);

        return n > 3 && !strcmp(d->d_name + n - 3, ".ko");
}

static void load_modules(void)
{
        struct dirent **list;
        char path[PATH_MAX];
        int n, fd;

        n = scandir(MODULES, &list, is_module, alphasort);
        if (n < 0)
                die(MODULES);
        for (int i = 0; i < n; i++) {
                snprintf(path, sizeof(path), MODULES "/%s", list[i]->d_name);
                fd = open(path, O_RDONLY | O_CLOEXEC);
                if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) && errno != EEXIST))
                        die(path);
                close(fd);
        }
}

/* The disk comes up a little after its driver is loaded. */
static void mount_image(void)
{
        const struct timespec pause = { .tv_nsec = 5000000 };
        int tries = 2000;

        while (mount("/dev/vda", "/image", "erofs", MS_RDONLY, NULL)) {
                if (!--tries)
                        die("/dev/vda");
                nanosleep(&pause, NULL);
        }
}

int main(void)
{
        static const char *const directories[] = { "/dev", "/image", "/written", "/root" };

        for (size_t i = 0; i < sizeof(directories) / sizeof(directories[0]); i++)
                if (mkdir(directories[i], 0755) && errno != EEXIST)
                        die(directories[i]);
        if (mount("dev", "/dev", "devtmpfs", 0, NULL) && errno != EBUSY)
                die("/dev");
        load_modules();
        mount_image();
        must_mount("written", "/written", "tmpfs", 0, "mode=0755,size=75%");
        if (mkdir("/written/upper", 0755) || mkdir("/written/work", 0755))
                die("/written");
        must_mount("overlay", "/root", "overlay", 0, "lowerdir=/image,upperdir=/written/upper,workdir=/written/work");
        must_mount("/dev", "/root/dev", NULL, MS_MOVE, NULL);
        if (chdir("/root"))
                die("/root");
        must_mount(".", "/", NULL, MS_MOVE, NULL);
        if (chroot(".") || chdir("/"))
                die("chroot");
        execl("/lib/systemd/systemd", "/sbin/init", (char *)NULL);
        die("/lib/systemd/systemd");
}
