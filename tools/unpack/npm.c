#include "npm.h"

#include "base/buf.h"
#include "manifest.h"

#include <string.h>

#define MANIFEST "package.json"
#define MANIFEST_BYTES_MAX ((size_t)4 << 20)

void npm_fini(struct npm *p)
{
        free(p->top);
        name_table_fini(&p->names);
        json_decref(p->manifest);
        json_decref(p->bin);
        *p = (struct npm){ 0 };
}

struct look {
        struct npm *npm;
        struct rv_buf manifest;
        bool has_manifest;
};

static int judge_top(struct npm *p, const struct member *m, size_t part, struct fault *f)
{
        char quote[FAULT_QUOTE_SIZE];

        if (part == m->n && !m->is_directory)
                return fault_set(f, UNPACK_UNSAFE, "the member %s is not below the directory of the package", fault_quote(m->path, m->n, quote));
        if (!p->top) {
                p->top = strndup(m->path, part);
                return p->top ? 0 : rv_raise(-ENOMEM);
        }
        if (strlen(p->top) == part && memcmp(p->top, m->path, part) == 0)
                return 0;
        return fault_set(f, UNPACK_UNSAFE, "the member %s is not below the directory of the package", fault_quote(m->path, m->n, quote));
}

static int look_begin(void *ctx, const struct member *m, struct fault *f)
{
        struct look *l = ctx;
        size_t part = name_part(m->path, m->n);
        const char *rest = m->path + part + 1;
        struct name_entry *clash;
        int r = judge_top(l->npm, m, part, f);

        if (r || part == m->n)
                return r ? r : MEMBERS_E_SKIP;
        r = name_add(&l->npm->names, rest, m->n - part - 1, m->is_directory ? NAME_DIRECTORY : NAME_FILE, 0, &clash);
        if (r)
                return r < 0 ? rv_trace(r) : name_clash_fault(clash, rest, m->n - part - 1, NAME_FILE, f);
        if (m->is_directory || strcmp(rest, MANIFEST) != 0)
                return MEMBERS_E_SKIP;
        if (m->bytes > MANIFEST_BYTES_MAX)
                return fault_set(f, UNPACK_UNSAFE, MANIFEST " has more than 4 MiB");
        l->has_manifest = true;
        return 0;
}

static int look_data(void *ctx, const void *data, size_t n, struct fault *f)
{
        struct look *l = ctx;

        return rv_trace(rv_buf_append(&l->manifest, data, n));
}

static int look_end(void *ctx, struct fault *f)
{
        return 0;
}

int npm_look(int fd, const struct npm_want *want, struct npm *ret, struct fault *f)
{
        struct look l = { .npm = ret };
        const struct visitor v = { look_begin, look_data, look_end, &l };
        int r = members_walk(fd, MEMBER_TARBALL, &v, &ret->counts, f);

        if (r == 0 && !l.has_manifest)
                r = fault_set(f, UNPACK_UNSAFE, "it is not an npm package: it has no " MANIFEST);
        if (r == 0)
                r = manifest_read(l.manifest.data ? l.manifest.data : "", l.manifest.size, want, ret, f);
        rv_buf_fini(&l.manifest);
        return r < 0 ? rv_trace(r) : r;
}

/* ---- Its files ---- */

struct strip {
        const struct npm *npm;
        const struct visitor *visitor;
};

static int strip_begin(void *ctx, const struct member *m, struct fault *f)
{
        const struct strip *s = ctx;
        size_t top = strlen(s->npm->top) + 1;
        struct member below = *m;

        if (m->is_directory || m->n <= top)
                return MEMBERS_E_SKIP;
        below.path += top;
        below.n -= top;
        return s->visitor->begin(s->visitor->ctx, &below, f);
}

static int strip_data(void *ctx, const void *data, size_t n, struct fault *f)
{
        const struct strip *s = ctx;

        return s->visitor->data(s->visitor->ctx, data, n, f);
}

static int strip_end(void *ctx, struct fault *f)
{
        const struct strip *s = ctx;

        return s->visitor->end(s->visitor->ctx, f);
}

int npm_walk(int fd, const struct npm *p, const struct visitor *v, struct fault *f)
{
        struct strip s = { p, v };
        const struct visitor all = { strip_begin, strip_data, strip_end, &s };
        int r = members_walk(fd, MEMBER_TARBALL, &all, NULL, f);

        return r < 0 ? rv_trace(r) : r;
}
