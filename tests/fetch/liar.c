/*
 * liar.c - a helper that is none: it answers what the URL of the first request says, in hexadecimal behind a "?"
 *
 * What it is asked is not read to the end. With "&" behind the digits it goes on to sleep, with "!" it ends with status
 * 3, with "+" it has made the file "new" of two bytes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
        static char line[1 << 20];
        const char *p = fgets(line, sizeof(line), stdin) ? strstr(line, "\"url\"") : NULL;
        unsigned byte;
        int fd;

        p = p ? strchr(p, '?') : NULL;
        for (p = p ? p + 1 : ""; sscanf(p, "%2x", &byte) == 1 && !strchr("&!+", *p); p += 2)
                putchar((int)byte);
        fd = *p == '+' ? openat(STDERR_FILENO + 1, "new", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644) : -1;
        if (fd >= 0 && write(fd, "ok", 2) != 2)
                return 4;
        fflush(stdout);
        if (*p == '&')
                sleep(30);
        return *p == '!' ? 3 : 0;
}
