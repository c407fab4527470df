#include "audit/segments.h"

#include "base/fd.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROW_BY 64

static void closedirp(DIR **d)
{
        if (*d)
                closedir(*d);
}

int rv__segments_fail(const char *path, const char *name, struct rv_error *err, int r, const char *what)
{
        return rv_error_set(err, r, "%s%s%s: %s: %s%s", path, *name ? "/" : "", name, what, strerror(-r),
                            r == -EACCES ? "; the user to whom it belongs can read it" : "");
}

bool rv_log_is_segment(const char *name)
{
        return strspn(name, "0123456789") == 20 && strcmp(name + 20, ".jsonl") == 0;
}

void rv_log_segment_name(uint64_t seq, char ret_name[RV_LOG_SEGMENT_NAME_SIZE])
{
        snprintf(ret_name, RV_LOG_SEGMENT_NAME_SIZE, "%020llu.jsonl", (unsigned long long)seq);
}

uint64_t rv_log_segment_first(const char *name)
{
        return strtoull(name, NULL, 10);
}

/* ---- Listing ---- */

static int compare_segments(const void *a, const void *b)
{
        return strcmp(((const struct rv_segment *)a)->name, ((const struct rv_segment *)b)->name);
}

static int take_name(struct rv_segments *s, const char *name, const char *after)
{
        static const char suffix[] = ".jsonl";
        size_t n = strlen(name);
        struct rv_segment *more;

        if (!rv_log_is_segment(name)) {
                if (n >= strlen(suffix) && strcmp(name + n - strlen(suffix), suffix) == 0 &&
                        (!s->odd_name[0] || strcmp(name, s->odd_name) < 0))
                        snprintf(s->odd_name, sizeof(s->odd_name), "%s", name);
                return 0;
        }
        if (strcmp(name, after) <= 0)
                return 0;
        if (s->n % GROW_BY == 0) {
                more = reallocarray(s->all, s->n + GROW_BY, sizeof(*more));
                if (!more)
                        return rv_raise(-ENOMEM);
                s->all = more;
        }
        s->all[s->n] = (struct rv_segment){ 0 };
        memcpy(s->all[s->n++].name, name, RV_LOG_SEGMENT_NAME_SIZE);
        return 0;
}

/* What a look at the directory shows: of the segments that are made meanwhile any, or none. */
static int look(struct rv_segments *s, const char *after, struct rv_error *err)
{
        _cleanup_(closedirp) DIR *d = NULL;
        struct dirent *e;
        int fd, r = 0;

        s->n = 0;
        s->odd_name[0] = 0;
        fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        d = fd >= 0 ? fdopendir(fd) : NULL;
        if (!d) {
                r = rv_raise(-errno);
                rv_close(fd);
                return rv__segments_fail(s->path, "", err, r, "cannot read the directory");
        }
        while (r == 0 && (errno = 0, e = readdir(d)))
                r = take_name(s, e->d_name, after);
        if (r == 0 && errno)
                r = rv_raise(-errno);
        if (r < 0)
                return rv__segments_fail(s->path, "", err, r, "cannot read the directory");
        if (s->n)
                qsort(s->all, s->n, sizeof(*s->all), compare_segments);
        return 0;
}

/*
 * Twice, as others write meanwhile: a look may show a segment that was made while the directory was read and not one
 * that was made just before that. The second one shows all that were made before the last that the first one shows.
 */
int rv_segments_list(int dir_fd, const char *path, const char *after, struct rv_segments *ret, struct rv_error *err)
{
        struct rv_segments s = { .dir_fd = dir_fd, .path = path };
        char last[RV_LOG_SEGMENT_NAME_SIZE];
        int r;

        r = look(&s, after, err);
        if (r == 0 && s.n) {
                memcpy(last, s.all[s.n - 1].name, sizeof(last));
                r = look(&s, after, err);
                while (r == 0 && s.n && strcmp(s.all[s.n - 1].name, last) > 0)
                        s.n--;
        }
        if (r < 0) {
                rv_segments_fini(&s);
                return rv_trace(r);
        }
        rv_segments_fini(ret);
        *ret = s;
        return 0;
}

/* After all names are known: a segment that another follows has all its lines by then. */
static int measure(struct rv_segments *s, struct rv_error *err)
{
        for (size_t i = 0; i < s->n; i++) {
                struct rv_segment *segment = &s->all[i];
                struct stat st;

                if (fstatat(s->dir_fd, segment->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        return rv__segments_fail(s->path, segment->name, err, rv_raise(-errno), "cannot look at the file");
                if (!S_ISREG(st.st_mode))
                        return rv_error_set(err, rv_raise(-EINVAL), "%s/%s: is no regular file", s->path, segment->name);
                segment->start = s->size;
                segment->size = (uint64_t)st.st_size;
                s->size += segment->size;
        }
        return 0;
}

int rv_segments_open(int dir_fd, const char *path, struct rv_segments *ret, struct rv_error *err)
{
        struct rv_segments s = { 0 };
        int r;

        r = rv_segments_list(dir_fd, path, "", &s, err);
        if (r == 0 && s.n == 0)
                r = rv_error_set(err, rv_raise(-ENOENT), "%s: there is no log: no file NNNNNNNNNNNNNNNNNNNN.jsonl in it", path);
        if (r == 0)
                r = measure(&s, err);
        if (r < 0) {
                rv_segments_fini(&s);
                return rv_trace(r);
        }
        *ret = s;
        return 0;
}

void rv_segments_fini(struct rv_segments *segments)
{
        free(segments->all);
        segments->all = NULL;
        segments->n = 0;
}

/* ---- Looking up ---- */

const struct rv_segment *rv_segments_after(const struct rv_segments *segments, const char *name)
{
        size_t from = 0, to = segments->n;

        while (from < to) {
                size_t middle = from + (to - from) / 2;

                if (strcmp(segments->all[middle].name, name) > 0)
                        to = middle;
                else
                        from = middle + 1;
        }
        return from < segments->n ? &segments->all[from] : NULL;
}

uint64_t rv_segments_at_seq(const struct rv_segments *segments, uint64_t seq)
{
        size_t i = segments->n;

        while (i > 1 && rv_log_segment_first(segments->all[i - 1].name) > seq)
                i--;
        return i ? segments->all[i - 1].start : 0;
}

uint64_t rv_segments_past_seq(const struct rv_segments *segments, uint64_t seq)
{
        for (size_t i = 0; i < segments->n; i++)
                if (rv_log_segment_first(segments->all[i].name) > seq)
                        return segments->all[i].start;
        return segments->size;
}

int rv_segments_newest(int dir_fd, const char *path, const char *before, char ret_name[RV_LOG_SEGMENT_NAME_SIZE],
        struct rv_error *err)
{
        _cleanup_(rv_segments_fini) struct rv_segments s = { .dir_fd = dir_fd, .path = path };
        int r;

        r = look(&s, "", err);
        while (r == 0 && before && s.n && strcmp(s.all[s.n - 1].name, before) >= 0)
                s.n--;
        if (r < 0 || s.n == 0)
                return rv_trace(r);
        memcpy(ret_name, s.all[s.n - 1].name, RV_LOG_SEGMENT_NAME_SIZE);
        return 1;
}
