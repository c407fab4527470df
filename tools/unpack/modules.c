#include "build.h"

#include "base/json.h"
#include "head.h"
#include "job.h"
#include "npm.h"

#include <stdio.h>
#include <string.h>

#define ROOT "node_modules/"
#define PATH_SIZE (NAME_BYTES_MAX * 2)

/* ---- Places ---- */

/* A part of a package's name: neither hidden nor anything but the characters that npm allows or once allowed. */
static size_t part_size(const char *text)
{
        size_t n = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!*'()");

        return *text == '.' || n > 214 ? 0 : n;
}

/* "name" or "@scope/name"; its size, or 0. */
static size_t package_size(const char *text)
{
        size_t scope = 0, name;

        if (*text == '@') {
                scope = part_size(text + 1) + 1;
                if (scope == 1 || text[scope] != '/')
                        return 0;
                scope++;
        }
        name = part_size(text + scope);
        /* Or it would be read as another level. */
        if (name == strlen("node_modules") && memcmp(text + scope, "node_modules", name) == 0)
                return 0;
        return name ? scope + name : 0;
}

const char *modules_place(const char *at)
{
        const char *p = at;

        if (strlen(at) > NAME_BYTES_MAX)
                return NULL;
        for (;;) {
                size_t n;

                if (strncmp(p, ROOT, strlen(ROOT)) != 0)
                        return NULL;
                p += strlen(ROOT);
                n = package_size(p);
                if (n == 0)
                        return NULL;
                p += n;
                if (!*p)
                        return at + strlen(ROOT);
                if (*p++ != '/')
                        return NULL;
        }
}

/* The bytes of a place up to its last node_modules/, and with it: 0 at the first level. */
static size_t level_size(const char *place)
{
        size_t n = 0;

        for (const char *p = place; (p = strstr(p, "/" ROOT)); p++)
                n = (size_t)(p - place) + strlen("/" ROOT);
        return n;
}

/* ---- The files ---- */

struct modules_sink {
        struct build *build;
        const struct npm *npm;
        const char *place;
        uint32_t owner;
        struct head head;
};

static bool is_bin(const struct npm *p, const char *path)
{
        const char *name;
        json_t *target;

        json_object_foreach(p->bin, name, target)
                if (strcmp(json_string_value(target), path) == 0)
                        return true;
        return false;
}

static int sink_begin(void *ctx, const struct member *m, struct fault *f)
{
        struct modules_sink *s = ctx;
        bool is_command = is_bin(s->npm, m->path);
        char path[PATH_SIZE];

        if ((size_t)snprintf(path, sizeof(path), "%s/%s", s->place, m->path) >= sizeof(path))
                return fault_set(f, UNPACK_UNSAFE, "a path below %.200s is too long", s->place);
        head_begin(&s->head, is_command ? HEAD_UNIX : HEAD_KEEP);
        return tree_create(&s->build->tree, path, s->owner, m->is_executable || is_command, f);
}

static int sink_data(void *ctx, const void *data, size_t n, struct fault *f)
{
        struct modules_sink *s = ctx;

        return rv_trace(head_write(&s->head, &s->build->tree, data, n));
}

static int sink_end(void *ctx, struct fault *f)
{
        struct modules_sink *s = ctx;
        int r = head_end(&s->head, &s->build->tree);

        return r < 0 ? rv_trace(r) : rv_trace(tree_close(&s->build->tree));
}

/* ---- Commands ---- */

static int compare_texts(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Where two packages of one level have a command of the same name, the first package has it. */
static int add_bin(const struct modules_sink *s, const char *name, const char *target, struct fault *f)
{
        size_t level = level_size(s->place);
        char path[PATH_SIZE], link[PATH_SIZE + 4];
        int n = snprintf(path, sizeof(path), "%.*s.bin/%s", (int)level, s->place, name);

        if (n < 0 || (size_t)n >= sizeof(path) || name_find(&s->build->tree.names, path, (size_t)n))
                return 0;
        n = snprintf(link, sizeof(link), "../%s/%s", s->place + level, target);
        return n < 0 || (size_t)n >= sizeof(link) ? 0 : tree_link(&s->build->tree, path, s->owner, link, f);
}

static int add_bins(const struct modules_sink *s, struct fault *f)
{
        size_t n = json_object_size(s->npm->bin), i = 0;
        _cleanup_(rv_freep) const char **names = calloc(n + 1, sizeof(*names));
        const char *name;
        json_t *target;
        int r = 0;

        if (!names)
                return rv_raise(-ENOMEM);
        json_object_foreach(s->npm->bin, name, target)
                names[i++] = name;
        qsort(names, n, sizeof(*names), compare_texts);
        for (i = 0; i < n && r == 0; i++)
                r = add_bin(s, names[i], rv_json_get_string(s->npm->bin, names[i], ""), f);
        return r < 0 ? rv_trace(r) : r;
}

int modules_add(struct build *b, const json_t *package, uint32_t owner, int fd, struct fault *f)
{
        const struct npm_want want = { job_text(package, "name"), job_text(package, "version") };
        _cleanup_(npm_fini) struct npm p = { 0 };
        struct modules_sink s = { .build = b, .npm = &p, .owner = owner };
        const struct visitor v = { sink_begin, sink_data, sink_end, &s };
        json_t *at;
        size_t i;
        int r = npm_look(fd, &want, &p, f);

        json_array_foreach(json_object_get(package, "at"), i, at) {
                s.place = modules_place(json_string_value(at));
                if (r == 0)
                        r = npm_walk(fd, &p, &v, f);
                if (r == 0)
                        r = add_bins(&s, f);
        }
        return r < 0 ? rv_trace(r) : r;
}
