#include "audit/live_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static void add_left(struct rv_dead *dead, const char *line, size_t n)
{
        json_t *body = rv_log_parse(line, n);

        if (json_is_object(body))
                json_array_append_new(dead->left, body);
        else
                json_decref(body);
}

/* A file that does not begin as it should tells nothing, and then the whole log is looked through. */
static void parse(struct rv_dead *dead, const char *text, size_t n)
{
        const char *end = memchr(text, '\n', n), *next;
        char segment[RV_LOG_SEGMENT_NAME_SIZE];
        unsigned long long offset;

        dead->may_have_records = n > 0;      /* the line is written before any record */
        if (!end)
                return;
        if (sscanf(text, "%26s %llu", segment, &offset) == 2 && rv_log_is_segment(segment)) {
                memcpy(dead->segment, segment, sizeof(segment));
                dead->offset = offset;
        }
        for (const char *line = end + 1; (next = memchr(line, '\n', n - (size_t)(line - text))); line = next + 1)
                add_left(dead, line, (size_t)(next - line));
}

int rv_dead_take(struct rv_log *log, const char *instance, struct rv_dead *ret, struct rv_error *err)
{
        struct rv_dead dead = { .fd = -EBADF };
        char text[RV_LIVE_BYTES_MAX + 1];
        struct stat st;
        ssize_t n;

        if (strlen(instance) != RV_LOG_ID_SIZE - 1)
                return 0;
        snprintf(dead.name, sizeof(dead.name), RV_LIVE_DIRECTORY "/%s", instance);
        dead.fd = openat(log->audit_fd, dead.name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        if (dead.fd < 0)
                return errno == ENOENT ? 0 : rv_log_fail(log, err, rv_raise(-errno), dead.name, "cannot open");
        /* Another may have finished with it between the opening and the locking. */
        if (flock(dead.fd, LOCK_EX | LOCK_NB) < 0 || fstat(dead.fd, &st) < 0 || st.st_nlink == 0) {
                rv_close(dead.fd);
                return 0;
        }
        n = read(dead.fd, text, sizeof(text) - 1);
        dead.left = json_array();
        if (n < 0 || !dead.left) {
                int r = rv_raise(n < 0 ? -errno : -ENOMEM);

                rv_dead_release(&dead);
                return rv_log_fail(log, err, r, dead.name, "cannot read");
        }
        text[n] = 0;
        parse(&dead, text, (size_t)n);
        *ret = dead;
        ret->instance = ret->name + sizeof(RV_LIVE_DIRECTORY);
        return 1;
}

int rv_dead_remove(struct rv_log *log, const struct rv_dead *dead, struct rv_error *err)
{
        if (unlinkat(log->audit_fd, dead->name, 0) < 0 && errno != ENOENT)
                return rv_log_fail(log, err, rv_raise(-errno), dead->name, "cannot remove");
        return 0;
}

void rv_dead_release(struct rv_dead *dead)
{
        dead->fd = rv_close(dead->fd);
        json_decref(dead->left);
        dead->left = NULL;
}
