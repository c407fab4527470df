#include "compiled.h"

#include "base/fd.h"
#include "frames.h"
#include "job.h"
#include "tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define MANIFEST_NAME "manifest-compiled.json"

struct sink {
        struct tree tree;
        bool is_begun;                   /* the header has been looked at */
};

static int bad(const struct member *m, const char *what, struct fault *f)
{
        char quote[FAULT_QUOTE_SIZE];

        return fault_set(f, UNPACK_UNSAFE, "the byte code %s %s", fault_quote(m->path, m->n, quote), what);
}

static int sink_begin(void *ctx, const struct member *m, struct fault *f)
{
        char source[NAME_BYTES_MAX + 4];
        struct sink *s = ctx;
        int r;

        if (!frames_source(m->path, m->n, source))
                return bad(m, "is not where byte code belongs", f);
        r = tree_has_file(JOB_FD_TREE, source);
        if (r <= 0)
                return r < 0 ? rv_trace(r) : bad(m, "is of no source in the layer", f);
        if (m->bytes == 0)
                return bad(m, "is empty", f);
        s->is_begun = false;
        return tree_create(&s->tree, m->path, 0, false, f);
}

static int sink_data(void *ctx, const void *data, size_t n, struct fault *f)
{
        struct sink *s = ctx;

        if (!s->is_begun && !frames_is_code(data, n))
                return fault_set(f, UNPACK_UNSAFE, "what came as byte code is none, or would be compared with its source");
        s->is_begun = true;
        return rv_trace(tree_write(&s->tree, data, n));
}

static int sink_end(void *ctx, struct fault *f)
{
        struct sink *s = ctx;

        return rv_trace(tree_close(&s->tree));
}

static int read_all(struct sink *s, FILE *in, json_t **ret, struct fault *f)
{
        const struct visitor v = { sink_begin, sink_data, sink_end, s };
        int r = frames_read(in, &v, f);

        if (r == 0)
                r = tree_publish(&s->tree, JOB_FD_STAGING, MANIFEST_NAME, ret);
        return r < 0 ? rv_trace(r) : r;
}

int compiled(int in_fd, json_t **ret, struct rv_error *err)
{
        static const char *const owners[] = { "the byte code" };
        struct sink s = { 0 };
        struct fault f = { 0 };
        FILE *in = in_fd >= 0 ? fdopen(in_fd, "r") : NULL;
        int r = in ? 0 : -ENOENT;

        tree_open(&s.tree, JOB_FD_STAGING, owners);
        s.tree.lists_caches_only = true;
        if (r == 0)
                r = read_all(&s, in, ret, &f);
        tree_fini(&s.tree);
        if (in)
                fclose(in);
        if (r > 0) {
                *ret = json_pack("{s:o}", "fault", job_fault(&f));
                r = *ret ? 0 : -ENOMEM;
        }
        return r < 0 ? rv_error_set(err, rv_trace(r), "cannot take the byte code: %s", strerror(-r)) : 0;
}
