#include "progress.h"

#include <stdio.h>
#include <unistd.h>

void progress_init(struct progress *p)
{
        *p = (struct progress){ .is_on = isatty(STDERR_FILENO) };
}

void progress_show(struct progress *p, const char *text)
{
        if (!p->is_on)
                return;
        fprintf(stderr, "\r\033[K%.78s", text);
        fflush(stderr);
        p->is_shown = true;
}

void progress_clear(struct progress *p)
{
        if (!p->is_shown)
                return;
        fputs("\r\033[K", stderr);
        fflush(stderr);
        p->is_shown = false;
}
