#include "spawner.h"

#include "base/child.h"
#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* For `reeve runtime list` and doctor: each runtime opened as for a run, and its interpreters asked for their version. */

#define VERSION_US (UINT64_C(10) * 1000 * 1000)
#define NOBODY "--userspec=65534:65534"

/* Inside the root, as nobody, or as the user that this is: the interpreter is the operator's, its output is not believed. */
static void ask_version(const struct rv_runtime *rt, const char *interpreter, char *ret, size_t size)
{
        const char *const as_root[] = { "/usr/sbin/chroot", NOBODY, *rt->root ? rt->root : "/", interpreter, "--version", NULL };
        const char *const directly[] = { interpreter, "--version", NULL };
        char root_option[4096];
        const char *const as_user[] = { "/usr/bin/unshare", "--user", "--map-root-user", root_option, interpreter, "--version", NULL };
        struct rv_child c = { .exe_fd = -EBADF, .out_max = 256, .deadline_us = rv_boot_us() + VERSION_US };
        char *text;

        *ret = 0;
        snprintf(root_option, sizeof(root_option), "--root=%s", rt->root);
        c.argv = geteuid() == 0 ? as_root : *rt->root ? as_user : directly;
        if (rv_child_run(&c, NULL) < 0 || c.status != 0) {
                rv_child_fini(&c);
                return;
        }
        /* "Python 3.11.2", "v18.20.4" */
        text = c.out.data ? c.out.data : (char *)"";
        text += strcspn(text, "0123456789\n");
        snprintf(ret, size, "%.*s", (int)strspn(text, "0123456789abcdefghijklmnopqrstuvwxyz.+-"), text);
        rv_child_fini(&c);
}

struct row {
        const char *state;
        char digest[RV_TREE_DIGEST_SIZE], versions[2][64];
        struct rv_error err;
};

static void look_at(struct spawner *s, size_t i, struct row *row)
{
        const struct rv_config_runtime *config = &s->config->runtimes[i];
        const struct rv_runtime *rt;
        const char *path;

        *row = (struct row){ .state = "unusable" };
        if (config->digest)
                snprintf(row->digest, sizeof(row->digest), "%s", config->digest);
        if (config->image && image_digest(config, row->digest, &row->err) < 0)
                return;
        rt = spawner_open_runtime(s, i, &row->err);
        if (!rt)
                return;
        for (int k = RV_PLAN_PYTHON; k <= RV_PLAN_JAVASCRIPT; k++)
                if (rv_runtime_interpreter(rt, k, &path, &row->err) == 0)
                        ask_version(rt, path, row->versions[k], sizeof(row->versions[k]));
        /* With one of the two it can be used; what is missing is told all the same. */
        if (*row->versions[RV_PLAN_PYTHON] || *row->versions[RV_PLAN_JAVASCRIPT])
                row->state = "usable";
        else
                rv_error_set(&row->err, -ENOEXEC, "runtime %s: neither of its interpreters runs", config->name);
}

/* A tab or a newline would end the field. */
static void print(const char *text, char end)
{
        for (; *text; text++)
                putchar((unsigned char)*text < ' ' ? ' ' : *text);
        putchar(end);
}

int spawner_explain_runtimes(struct spawner *s)
{
        struct row row;

        for (size_t i = 0; i < s->config->n_runtimes; i++) {
                const struct rv_config_runtime *config = &s->config->runtimes[i];
                const char *format = config->image ? "image" : strcmp(config->root, "host") ? "directory" : "host";

                look_at(s, i, &row);
                print(config->name, '\t');
                print(format, '\t');
                print(row.state, '\t');
                print(config->image ? config->image : strcmp(config->root, "host") ? config->root : "/", '\t');
                print(row.digest, '\t');
                print(row.versions[RV_PLAN_PYTHON], '\t');
                print(row.versions[RV_PLAN_JAVASCRIPT], '\t');
                print(row.err.message, '\n');
        }
        return fflush(stdout) == 0 ? 0 : 1;
}
