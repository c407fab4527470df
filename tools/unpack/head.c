#include "head.h"

#include <string.h>

void head_begin(struct head *h, enum head_rule rule)
{
        h->rule = rule;
        h->n = 0;
}

/* The first line, with its end if it has one. */
static int write_line(struct head *h, struct tree *t)
{
        static const char python[] = "#!" HEAD_INTERPRETER "\n";
        enum head_rule rule = h->rule;
        size_t n = h->n;
        int r;

        h->rule = HEAD_KEEP;
        h->n = 0;
        if (rule == HEAD_PYTHON && n >= 8 && memcmp(h->line, "#!python", 8) == 0)
                return rv_trace(tree_write(t, python, strlen(python)));
        if (rule != HEAD_UNIX || n < 5 || memcmp(h->line, "#!", 2) != 0 || memcmp(h->line + n - 2, "\r\n", 2) != 0)
                return n ? rv_trace(tree_write(t, h->line, n)) : 0;
        r = tree_write(t, h->line, n - 2);
        return r < 0 ? rv_trace(r) : rv_trace(tree_write(t, "\n", 1));
}

int head_write(struct head *h, struct tree *t, const void *data, size_t n)
{
        const char *p = data, *newline;
        size_t taken;
        int r;

        if (h->rule != HEAD_KEEP) {
                newline = memchr(p, '\n', n);
                taken = newline ? (size_t)(newline + 1 - p) : n;
                if (taken > sizeof(h->line) - h->n) {
                        taken = 0;
                        h->rule = HEAD_KEEP;
                        newline = p;             /* what is held back goes on as it is */
                }
                memcpy(h->line + h->n, p, taken);
                h->n += taken;
                p += taken;
                n -= taken;
                if (newline) {
                        r = write_line(h, t);
                        if (r < 0)
                                return rv_trace(r);
                }
        }
        return n ? rv_trace(tree_write(t, p, n)) : 0;
}

int head_end(struct head *h, struct tree *t)
{
        return h->rule != HEAD_KEEP ? rv_trace(write_line(h, t)) : 0;
}
