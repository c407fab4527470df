#include "runtime_private.h"

#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/*
 * pip and npm lie among the third-party packages of the host, which are hidden. In network mode registries theirs, and no
 * others, are bound over the hidden directories again.
 */

#define MATCHES_MAX 8          /* of a pattern; a view has room for so many entries only */

static const struct tool {
        enum rv_view_when when;
        const char *directory;               /* a hidden one: a pattern */
        const char *items[3];                /* in it */
        const char *configuration;           /* of the host's, in one of those: what pip or npm goes by is in the environment */
} tools[] = {
        { RV_VIEW_PYTHON_TOOLS, "*/python3*/*-packages", { "pip", "pip-*.dist-info", "pip-*.egg-info" }, NULL },
        { RV_VIEW_PYTHON_TOOLS, "/usr/share/python-wheels", { "pip-*.whl", "setuptools-*.whl" }, NULL },      /* for venv */
        { RV_VIEW_JAVASCRIPT_TOOLS, "*/node_modules", { "npm" }, "npm/npmrc" },
        { RV_VIEW_JAVASCRIPT_TOOLS, NODE_SHARE, { "npm" }, "npm/npmrc" },
};

/* What matches in a hidden directory; the first of it opens the directory again. */
static int add_item(
        struct rv_runtime *rt, const struct tool *tool, const char *directory, const char *item, bool *is_open)
{
        char pattern[4096], path[4096];
        glob_t found;
        int r = 0;

        snprintf(path, sizeof(path), "%s/%s", directory, item);
        if (!rv__runtime_outside(rt, path, pattern) || glob(pattern, 0, NULL, &found) != 0)
                return 0;
        if (!*is_open)
                r = rv__runtime_add(rt, tool->when, RV_VIEW_FILL, directory, NULL);
        *is_open = true;
        for (size_t i = 0; i < found.gl_pathc && i < MATCHES_MAX && r == 0; i++)
                r = rv__runtime_add(
                        rt, tool->when, RV_VIEW_BIND, found.gl_pathv[i] + strlen(rt->root), found.gl_pathv[i]);
        globfree(&found);
        return r;
}

/* It may hold the host's credentials. */
static int hide_configuration(struct rv_runtime *rt, const struct tool *tool, const char *directory)
{
        char path[4096], full[4096];
        struct stat st;

        if (!tool->configuration)
                return 0;
        if ((size_t)snprintf(path, sizeof(path), "%s/%s", directory, tool->configuration) >= sizeof(path))
                return 0;
        /* A link of it leads to where the run has nothing, or what it may see. */
        if (!rv__runtime_outside(rt, path, full) || lstat(full, &st) < 0 || !S_ISREG(st.st_mode))
                return 0;
        return rv__runtime_add(rt, tool->when, RV_VIEW_HIDE, path, NULL);
}

/* Debian's npm has its parts beside it. They are found by it alone: `node_modules` is looked for from its own files up. */
static int add_parts(struct rv_runtime *rt)
{
        char source[4096];

        if (!rv__runtime_outside(rt, NODE_SHARE, source))
                return 0;
        return rv__runtime_add(rt, RV_VIEW_JAVASCRIPT_TOOLS, RV_VIEW_BIND, NODE_SHARE "/node_modules", source);
}

static int add_tool(struct rv_runtime *rt, const struct tool *tool, const char *directory, bool is_open)
{
        size_t n_before = rt->n_entries;
        int r = 0;

        for (size_t i = 0; i < RV_N_ELEMENTS(tool->items) && tool->items[i] && r == 0; i++)
                r = add_item(rt, tool, directory, tool->items[i], &is_open);
        if (r == 0 && rt->n_entries > n_before && strcmp(directory, NODE_SHARE) == 0)
                r = add_parts(rt);
        if (r == 0 && rt->n_entries > n_before)
                r = hide_configuration(rt, tool, directory);
        return r;
}

/* "/usr/bin/python3" leads to python3.11, and that name is a directory's too. */
static int find_python_site(struct rv_runtime *rt)
{
        char full[4096], site[64];
        _cleanup_(rv_freep) char *real = NULL;
        const char *name;

        if (!rv__runtime_outside(rt, rt->config->python, full))
                return 0;
        real = realpath(full, NULL);
        name = real ? strrchr(real, '/') + 1 : "";
        if (fnmatch("python3.[0-9]", name, 0) != 0 && fnmatch("python3.[0-9][0-9]", name, 0) != 0)
                return 0;
        snprintf(site, sizeof(site), "lib/%s/site-packages", name);
        rt->python_site = strdup(site);
        return rt->python_site ? 0 : rv_raise(-ENOMEM);
}

int rv__runtime_add_tools(struct rv_runtime *rt)
{
        size_t n = rt->n_entries;
        int r = find_python_site(rt);

        for (size_t i = 0; i < n && r == 0; i++)
                for (size_t k = 0; k < RV_N_ELEMENTS(tools) && r == 0; k++) {
                        const struct rv_view_entry e = rt->entries[i];

                        if ((e.kind == RV_VIEW_HIDE || e.kind == RV_VIEW_FILL) &&
                                fnmatch(tools[k].directory, e.path, 0) == 0)
                                r = add_tool(rt, &tools[k], e.path, e.kind == RV_VIEW_FILL);
                }
        return rv_trace(r);
}
