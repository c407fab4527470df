#include "cgroup_file.h"

#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

int rv_cgroup_write(int dir_fd, const char *file, const char *text)
{
        int fd, r = 0;
        size_t n = strlen(text);
        ssize_t w;

        fd = openat(dir_fd, file, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        w = write(fd, text, n);
        if (w != (ssize_t)n)
                r = w < 0 ? -errno : -EIO;
        rv_close(fd);
        return r;
}

int rv_cgroup_read(int dir_fd, const char *file, char *ret, size_t size)
{
        ssize_t n;
        int fd;

        fd = openat(dir_fd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return -errno;
        n = read(fd, ret, size - 1);
        if (n < 0)
                n = -errno;
        else
                ret[n] = 0;
        rv_close(fd);
        return n < 0 ? (int)n : 0;
}

uint64_t rv_cgroup_read_number(int dir_fd, const char *file)
{
        char text[64];

        if (dir_fd < 0 || rv_cgroup_read(dir_fd, file, text, sizeof(text)) < 0)
                return 0;
        return strncmp(text, "max", 3) ? strtoull(text, NULL, 10) : UINT64_MAX;
}

uint64_t rv_cgroup_read_keyed(int dir_fd, const char *file, const char *key)
{
        char text[1024], *line, *save = NULL;
        size_t n = strlen(key);

        if (dir_fd < 0 || rv_cgroup_read(dir_fd, file, text, sizeof(text)) < 0)
                return 0;
        for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
                if (!strncmp(line, key, n) && line[n] == ' ')
                        return strtoull(line + n + 1, NULL, 10);
        return 0;
}

/* A sweep may be asking just now. Anybody may lock a directory, so it is not waited for longer. */
void rv_cgroup_hold(int dir_fd)
{
        const struct timespec pause = { .tv_nsec = 1000 * 1000 };

        for (int i = 0; i < 5 && flock(dir_fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK; i++)
                nanosleep(&pause, NULL);
}

bool rv_cgroup_is_held(int dir_fd)
{
        if (flock(dir_fd, LOCK_EX | LOCK_NB) < 0)
                return true;
        (void)flock(dir_fd, LOCK_UN);
        return false;
}

bool rv_cgroup_has_word(const char *list, const char *word, char separator)
{
        size_t n = strlen(word);

        for (const char *p = list; p; p = strchr(p, separator), p = p ? p + 1 : NULL)
                if (!strncmp(p, word, n) && (p[n] == separator || p[n] == 0 || p[n] == '\n'))
                        return true;
        return false;
}
