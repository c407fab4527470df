#include "runtime_private.h"

#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Directories of third-party packages: what a run can import is the standard library and its layer, or the
 * package policy would mean nothing. Patterns below the root; what matches nothing is not there. */
static const char *const hidden[] = {
        "/usr/local",
        "/usr/lib/python3*/dist-packages",
        "/usr/lib/python3*/site-packages",
        "/usr/lib64/python3*/site-packages",
        "/usr/lib/node_modules",
        "/usr/lib/nodejs",
        "/usr/lib/*-linux-gnu*/nodejs",
        "/usr/share/node_modules",
        "/usr/share/python-wheels",
        "/usr/etc",             /* npm's global configuration lies here, with the host's credentials */
        "/usr/pip.conf",        /* and pip's of the system's Python, as those of a Python and a node that are exposed */
        "/usr/local/pip.conf",
        "/usr/local/etc/npmrc",
        "/usr/local/lib/node_modules/npm/npmrc",
        "/usr/lib/node_modules/npm/npmrc",
        NODE_SHARE "/npm/npmrc",
        "/etc/ssl/private",
};

/* Debian builds its node on these files of other packages: they are part of the interpreter. */
static const char *const node_files[] = {
        NODE_SHARE "/acorn/dist/acorn.js",
        NODE_SHARE "/acorn-walk/dist/walk.js",
        NODE_SHARE "/minimatch/dist/cjs/index.bundle.js",
        NODE_SHARE "/cjs-module-lexer/lexer.js",
        NODE_SHARE "/cjs-module-lexer/dist/lexer.js",
        NODE_SHARE "/undici/undici-fetch.js",
        NODE_SHARE "/undici/undici.js",
};

static const char *const top_links[] = { "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32" };
static const char *const etc_files[] = { "/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl", "/etc/localtime", "/etc/mime.types" };

int rv__runtime_add(
        struct rv_runtime *rt, enum rv_view_when when, enum rv_view_kind kind, const char *path, const char *source)
{
        struct rv_view_entry *entries = reallocarray(rt->entries, rt->n_entries + 1, sizeof(*entries));
        struct rv_view_entry e = {
                .kind = kind, .when = when, .path = strdup(path), .source = source ? strdup(source) : NULL
        };

        if (entries)
                rt->entries = entries;
        if (!entries || !e.path || (source && !e.source)) {
                free(e.path);
                free(e.source);
                return rv_raise(-ENOMEM);
        }
        entries[rt->n_entries++] = e;
        return 0;
}

static int add(struct rv_runtime *rt, enum rv_view_kind kind, const char *path, const char *source)
{
        return rv__runtime_add(rt, RV_VIEW_ALWAYS, kind, path, source);
}

bool rv__runtime_outside(const struct rv_runtime *rt, const char *path, char ret[4096])
{
        return (size_t)snprintf(ret, 4096, "%s%s", rt->root, path) < 4096;
}

/* Bind it, or make the same link; nothing if it is not there. */
static int add_as_is(struct rv_runtime *rt, const char *path)
{
        char full[4096], target[4096];
        struct stat st;
        ssize_t n;

        if (!rv__runtime_outside(rt, path, full) || lstat(full, &st) < 0)
                return 0;
        if (!S_ISLNK(st.st_mode))
                return add(rt, RV_VIEW_BIND, path, full);
        n = readlink(full, target, sizeof(target) - 1);
        if (n < 0)
                return rv_raise(-errno);
        target[n] = 0;
        return add(rt, RV_VIEW_LINK, path, target);
}

static bool is_below(const char *path, const char *directory)
{
        size_t n = strlen(directory);

        return !strncmp(path, directory, n) && path[n] == '/';
}

/* Is there something to hide? What a link leads to may not be shown at all, or be hidden with what it lies in. */
static bool is_shown(const struct rv_runtime *rt, const char *path)
{
        bool is_bound = false;

        for (size_t i = 0; i < rt->n_entries; i++) {
                if (!is_below(path, rt->entries[i].path))
                        continue;
                if (rt->entries[i].kind == RV_VIEW_HIDE || rt->entries[i].kind == RV_VIEW_FILL)
                        return false;
                is_bound = is_bound || rt->entries[i].kind == RV_VIEW_BIND;
        }
        return is_bound;
}

static bool is_hidden_already(const struct rv_runtime *rt, const char *path)
{
        for (size_t i = 0; i < rt->n_entries; i++)
                if (rt->entries[i].kind != RV_VIEW_BIND && !strcmp(rt->entries[i].path, path))
                        return true;
        return false;
}

/* A configured `expose` path that would be hidden is not; one below a hidden directory shows again in it. */
static bool is_exposed(const struct rv_runtime *rt, const char *path)
{
        for (size_t i = 0; i < rt->config->expose.n_items; i++)
                if (!strcmp(rt->config->expose.items[i], path))
                        return true;
        return false;
}

static bool has_exposed_below(const struct rv_runtime *rt, const char *path)
{
        for (size_t i = 0; i < rt->config->expose.n_items; i++)
                if (is_below(rt->config->expose.items[i], path))
                        return true;
        return false;
}

static int hide(struct rv_runtime *rt, const char *pattern)
{
        char full[4096];
        glob_t found;
        int r = 0;

        if (!rv__runtime_outside(rt, pattern, full))
                return 0;
        if (glob(full, GLOB_NOSORT, NULL, &found) != 0)
                return 0;
        for (size_t i = 0; i < found.gl_pathc && r == 0; i++) {
                /* A link is hidden where it leads, if that is shown at all. */
                _cleanup_(rv_freep) char *real = realpath(found.gl_pathv[i], NULL);
                const char *path = real ? real + strlen(rt->root) : NULL;
                struct stat st;

                if (real && !strncmp(real, rt->root, strlen(rt->root)) && stat(real, &st) == 0 &&
                    (S_ISDIR(st.st_mode) || S_ISREG(st.st_mode)) && is_shown(rt, path) && !is_exposed(rt, path) &&
                    !is_hidden_already(rt, path))
                        r = add(rt, has_exposed_below(rt, path) ? RV_VIEW_FILL : RV_VIEW_HIDE, path, NULL);
        }
        globfree(&found);
        return r;
}

static int add_node_files(struct rv_runtime *rt)
{
        char full[4096];
        int r;

        if (!rv__runtime_outside(rt, NODE_SHARE, full) || access(full, F_OK) < 0 || is_exposed(rt, NODE_SHARE))
                return 0;
        r = add(rt, RV_VIEW_FILL, NODE_SHARE, NULL);
        for (size_t i = 0; i < RV_N_ELEMENTS(node_files) && r == 0; i++)
                if (rv__runtime_outside(rt, node_files[i], full) && access(full, R_OK) == 0)
                        r = add(rt, RV_VIEW_BIND, node_files[i], full);
        return r;
}

static bool is_in_filled(const struct rv_runtime *rt, const char *path)
{
        for (size_t i = 0; i < rt->n_entries; i++)
                if (rt->entries[i].kind == RV_VIEW_FILL && is_below(path, rt->entries[i].path))
                        return true;
        return false;
}

static int add_exposed(struct rv_runtime *rt)
{
        char full[4096];
        int r = 0;

        for (size_t i = 0; i < rt->config->expose.n_items && r == 0; i++) {
                const char *path = rt->config->expose.items[i];

                if ((is_below(path, "/usr") && !is_in_filled(rt, path)) || !rv__runtime_outside(rt, path, full))
                        continue;       /* is in /usr, which is shown as a whole */
                r = add(rt, RV_VIEW_BIND, path, full);
        }
        return r;
}

/* Without links and doubled slashes: paths that a search in it finds begin with it. */
static int find_root(const struct rv_config_runtime *config, char **ret)
{
        char *root = strcmp(config->root, "host") ? realpath(config->root, NULL) : strdup("");

        if (!root)
                return rv_raise(-errno);
        if (strcmp(root, "/") == 0)
                *root = 0;
        *ret = root;
        return 0;
}

int rv_runtime_open(const struct rv_config_runtime *config, struct rv_runtime *ret, struct rv_error *err)
{
        struct rv_runtime rt = { .config = config };
        int r = find_root(config, &rt.root);

        if (r < 0)
                return rv_error_set(err, r, "runtime %s: its root %s is not there: %s; correct runtimes.%s.root",
                                    config->name, config->root, strerror(-r), config->name);
        r = add_as_is(&rt, "/usr");
        for (size_t i = 0; i < RV_N_ELEMENTS(top_links) && r == 0; i++)
                r = add_as_is(&rt, top_links[i]);
        for (size_t i = 0; i < RV_N_ELEMENTS(etc_files) && r == 0; i++)
                r = add_as_is(&rt, etc_files[i]);
        /* First, as a link may lead there from one that is hidden. */
        if (r == 0)
                r = add_node_files(&rt);
        for (size_t i = 0; i < RV_N_ELEMENTS(hidden) && r == 0; i++)
                r = hide(&rt, hidden[i]);
        if (r == 0)
                r = add_exposed(&rt);
        if (r == 0)
                r = rv__runtime_add_tools(&rt);
        if (r < 0) {
                rv_runtime_close(&rt);
                return rv_error_set(err, rv_trace(r), "runtime %s: %s", config->name, strerror(-r));
        }
        *ret = rt;
        return 0;
}

int rv_runtime_add_uv(struct rv_runtime *rt, const char *path)
{
        return rv__runtime_add(rt, RV_VIEW_RESOLVER, RV_VIEW_BIND, RV_PLAN_UV_FILE, path);
}

void rv_runtime_close(struct rv_runtime *rt)
{
        for (size_t i = 0; i < rt->n_entries; i++) {
                free(rt->entries[i].path);
                free(rt->entries[i].source);
        }
        free(rt->entries);
        free(rt->root);
        free(rt->python_site);
        *rt = (struct rv_runtime){ 0 };
}

int rv_runtime_interpreter(
        const struct rv_runtime *rt, enum rv_plan_language language, const char **ret_path, struct rv_error *err)
{
        const char *name = language == RV_PLAN_PYTHON ? "python" : "javascript";
        const char *path = language == RV_PLAN_PYTHON ? rt->config->python : rt->config->javascript;
        char full[4096], in_image[4096];
        const char *shown = full;
        struct stat st;
        int r = 0;

        if (rt->config->image) {
                snprintf(in_image, sizeof(in_image), "%s in %s", path, rt->config->image);
                shown = in_image;
        }
        if (!rv__runtime_outside(rt, path, full))
                r = -ENAMETOOLONG;
        else if (stat(full, &st) < 0)
                r = -errno;
        else if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111))
                r = -EACCES;
        if (r < 0)
                return rv_error_set(err, rv_raise(r), "no %s interpreter for runtime %s: %s: %s; install it or set runtimes.%s.%s",
                                    name, rt->config->name, shown, strerror(-r), rt->config->name, name);
        *ret_path = path;
        return 0;
}
