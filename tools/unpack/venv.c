#include "build.h"

#include "head.h"
#include "job.h"
#include "wheel.h"

#include <stdio.h>
#include <string.h>

#define INSTALLER "reeve\n"
#define PATH_SIZE (NAME_BYTES_MAX * 2)

struct venv_sink {
        struct build *build;
        const struct wheel *wheel;
        uint32_t owner;
        const char *python;              /* "3.11" */
        const char *name;
        struct head head;
};

static const char *runtime_text(const struct build *b, const char *name)
{
        return job_text(json_object_get(b->job, "runtime"), name);
}

int venv_begin(struct build *b, struct fault *f)
{
        const char *interpreter = runtime_text(b, "interpreter");
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        int r;

        rv_buf_printf(&text, "home = %.*s\ninclude-system-site-packages = false\nversion = %s\n",
                (int)(strrchr(interpreter, '/') - interpreter), interpreter, runtime_text(b, "version"));
        if (rv_buf_error(&text) < 0)
                return rv_raise(-ENOMEM);
        r = tree_put(&b->tree, "pyvenv.cfg", b->own, false, text.data, text.size, f);
        if (r == 0)
                r = tree_link(&b->tree, "bin/python3", b->own, interpreter, f);
        if (r == 0)
                r = tree_link(&b->tree, "bin/python", b->own, interpreter, f);
        return r < 0 ? rv_trace(r) : r;
}

/* ---- The members of a wheel ---- */

/* What would stand where the environment's own files do, in whatever case. */
static int judge_data(const char *rest, struct fault *f)
{
        if (strncmp(rest, "bin/", 4) == 0 && !strchr(rest + 4, '/'))
                return scripts_judge_name(rest + 4, strlen(rest + 4), f);
        return 0;
}

static int place(const struct venv_sink *s, const struct member *m, enum wheel_place *ret_place, char ret[PATH_SIZE],
        struct fault *f)
{
        const char *rest;
        int r = wheel_where(s->wheel, m->path, m->n, ret_place, &rest, f);

        if (r)
                return r;
        switch (*ret_place) {
        case WHEEL_SITE:
        case WHEEL_SIGNATURE:
                snprintf(ret, PATH_SIZE, "lib/python%s/site-packages/%s", s->python, rest);
                return 0;
        case WHEEL_HEADERS:
                snprintf(ret, PATH_SIZE, "include/site/python%s/%s/%s", s->python, s->name, rest);
                return 0;
        case WHEEL_SCRIPTS:
                snprintf(ret, PATH_SIZE, "bin/%s", rest);
                return scripts_judge_name(rest, name_part(rest, strlen(rest)), f);
        case WHEEL_DATA:
                snprintf(ret, PATH_SIZE, "%s", rest);
                return judge_data(rest, f);
        }
        return rv_raise(-EINVAL);
}

static bool is_installer(const struct venv_sink *s, const char *path)
{
        size_t n = strlen(s->wheel->dist_info);

        return strncmp(path, s->wheel->dist_info, n) == 0 && strcmp(path + n, "/INSTALLER") == 0;
}

static int sink_begin(void *ctx, const struct member *m, struct fault *f)
{
        struct venv_sink *s = ctx;
        enum wheel_place where;
        char path[PATH_SIZE];
        int r;

        if (m->is_directory || is_installer(s, m->path))
                return MEMBERS_E_SKIP;
        r = place(s, m, &where, path, f);
        if (r)
                return r < 0 ? rv_trace(r) : r;
        /* The program that is made for an entry point of the same name takes its place. */
        if (where == WHEEL_SCRIPTS && scripts_find(&s->wheel->scripts, path + strlen("bin/"), strlen(path) - strlen("bin/")))
                return MEMBERS_E_SKIP;
        head_begin(&s->head, where == WHEEL_SCRIPTS ? HEAD_PYTHON : HEAD_KEEP);
        return tree_create(&s->build->tree, path, s->owner, m->is_executable || where == WHEEL_SCRIPTS, f);
}

static int sink_data(void *ctx, const void *data, size_t n, struct fault *f)
{
        struct venv_sink *s = ctx;

        return rv_trace(head_write(&s->head, &s->build->tree, data, n));
}

static int sink_end(void *ctx, struct fault *f)
{
        struct venv_sink *s = ctx;
        int r = head_end(&s->head, &s->build->tree);

        return r < 0 ? rv_trace(r) : rv_trace(tree_close(&s->build->tree));
}

/* ---- What an installer adds ---- */

static int add_scripts(struct venv_sink *s, struct fault *f)
{
        for (size_t i = 0; i < s->wheel->scripts.n; i++) {
                const struct script *one = &s->wheel->scripts.all[i];
                _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
                char path[PATH_SIZE];
                int r = scripts_write(one, HEAD_INTERPRETER, &text);

                if (r < 0)
                        return rv_trace(r);
                snprintf(path, sizeof(path), "bin/%s", one->name);
                r = tree_put(&s->build->tree, path, s->owner, true, text.data, text.size, f);
                if (r)
                        return r < 0 ? rv_trace(r) : r;
        }
        return 0;
}

static int add_installer(struct venv_sink *s, struct fault *f)
{
        char path[PATH_SIZE];

        snprintf(path, sizeof(path), "lib/python%s/site-packages/%s/INSTALLER", s->python, s->wheel->dist_info);
        return tree_put(&s->build->tree, path, s->owner, false, INSTALLER, strlen(INSTALLER), f);
}

int venv_add(struct build *b, const json_t *package, uint32_t owner, int fd, struct fault *f)
{
        const struct wheel_want want = { job_text(package, "name"), job_text(package, "version"), NULL };
        _cleanup_(wheel_fini) struct wheel w = { 0 };
        struct venv_sink s = { .build = b, .wheel = &w, .owner = owner, .python = runtime_text(b, "version"), .name = want.name };
        const struct visitor v = { sink_begin, sink_data, sink_end, &s };
        int r = wheel_look(fd, &want, &w, f);

        if (r == 0)
                r = wheel_walk(fd, &w, &v, NULL, f);
        if (r == 0)
                r = add_scripts(&s, f);
        if (r == 0)
                r = add_installer(&s, f);
        return r < 0 ? rv_trace(r) : r;
}
