/* What of a root a run sees: made-up roots in a directory of the test's own, worked out into a view. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/fd.h"
#include "runtime.h"
#include "test_base_tmp.h"

/* "d path" makes a directory, "f path" a file, "x path" one to be executed, "l path target" a link. */
static void make(void **state, const char *const *items)
{
        for (; *items; items++) {
                char path[256], target[256] = "", full[1024];

                sscanf(*items, "%*c %255s %255s", path, target);
                snprintf(full, sizeof(full), "%s/root%s", (const char *)*state, path);
                *strrchr(full, '/') = 0;
                assert_int_equal(rv_mkdir_p(full, 0755), 0);
                full[strlen(full)] = '/';
                if (**items == 'd')
                        assert_int_equal(rv_mkdir_p(full, 0755), 0);
                else if (**items == 'l')
                        assert_int_equal(symlink(target, full), 0);
                else
                        assert_int_equal(rv_write_file(full, "x", 1, **items == 'x' ? 0755 : 0644, false), 0);
        }
}

struct opened {
        struct rv_config_runtime config;
        char root[512];
        const char *expose[4];
        struct rv_runtime runtime;
};

static void open_runtime(void **state, struct opened *o, const char *e1, const char *e2)
{
        struct rv_error err = { 0 };

        *o = (struct opened){ .config = { .name = "made-up", .python = "/usr/bin/python3", .javascript = "/usr/bin/node" }, .expose = { e1, e2 } };
        snprintf(o->root, sizeof(o->root), "%s/root", (const char *)*state);
        o->config.root = o->root;
        o->config.expose.items = o->expose;
        o->config.expose.n_items = (e1 != NULL) + (e2 != NULL);
        if (rv_runtime_open(&o->config, &o->runtime, &err) != 0)
                fail_msg("%s", err.message);
}

static ssize_t find(const struct rv_runtime *rt, enum rv_view_kind kind, const char *path)
{
        for (size_t i = 0; i < rt->n_entries; i++)
                if (rt->entries[i].kind == kind && rt->entries[i].when == RV_VIEW_ALWAYS &&
                        !strcmp(rt->entries[i].path, path))
                        return (ssize_t)i;
        return -1;
}

static void expect_entry(const struct opened *o, enum rv_view_kind kind, const char *path, const char *source)
{
        ssize_t i = find(&o->runtime, kind, path);
        char full[1024];

        if (i < 0)
                fail_msg("no entry of kind %d for %s", kind, path);
        if (kind == RV_VIEW_BIND) {
                snprintf(full, sizeof(full), "%s%s", o->root, path);
                source = full;
        }
        if (source && strcmp(o->runtime.entries[i].source, source) != 0)
                fail_msg("%s comes from %s, not %s", path, o->runtime.entries[i].source, source);
}

static void expect_none(const struct opened *o, const char *path)
{
        for (size_t i = 0; i < o->runtime.n_entries; i++)
                if (!strcmp(o->runtime.entries[i].path, path))
                        fail_msg("%s has an entry of kind %d", path, o->runtime.entries[i].kind);
}

static const char *const merged_usr[] = {
        "d /usr/bin", "l /bin usr/bin", "l /lib usr/lib", "l /lib64 usr/lib64", "d /sbin", "d /usr/local/bin", "d /usr/lib/python3/dist-packages/evil",
        "d /usr/lib/python3.11/site-packages", "d /usr/lib/python3.11/json", "d /usr/lib64/python3.12/site-packages", "d /usr/lib/node_modules/npm",
        "d /usr/lib/nodejs", "d /usr/lib/x86_64-linux-gnu/nodejs", "d /usr/share/node_modules", "f /usr/share/python-wheels/x.whl", "f /usr/etc/npmrc", "d /etc/alternatives", "f /etc/ld.so.cache",
        "d /etc/ssl/certs", "d /etc/ssl/private", "l /etc/localtime /usr/share/zoneinfo/Etc/UTC", "f /etc/mime.types", "f /etc/shadow", "f /etc/passwd",
        "d /opt/tool", "d /root", "d /home/someone", "f /usr/share/nodejs/acorn/dist/acorn.js", "f /usr/share/nodejs/undici/undici.js",
        "f /usr/share/nodejs/lodash/index.js", "x /usr/bin/python3", "f /usr/pip.conf", "f /usr/local/pip.conf", "f /usr/lib/node_modules/npm/npmrc", NULL,
};

static void what_is_seen(void **state)
{
        static const char *const hidden[] = {
                "/usr/local", "/usr/lib/python3/dist-packages", "/usr/lib/python3.11/site-packages", "/usr/lib64/python3.12/site-packages",
                "/usr/lib/node_modules", "/usr/lib/nodejs", "/usr/lib/x86_64-linux-gnu/nodejs", "/usr/share/node_modules", "/usr/share/python-wheels", "/usr/etc", "/etc/ssl/private",
                "/usr/pip.conf",
        };
        static const char *const bound[] = { "/usr", "/sbin", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ssl", "/etc/mime.types" };
        static const char *const absent[] = { "/etc/shadow", "/etc/passwd", "/etc", "/opt", "/opt/tool", "/root", "/home", "/", "/var", "/lib32", "/libx32" };
        struct opened o;

        make(state, merged_usr);
        open_runtime(state, &o, NULL, NULL);
        for (size_t i = 0; i < RV_N_ELEMENTS(bound); i++)
                expect_entry(&o, RV_VIEW_BIND, bound[i], NULL);
        for (size_t i = 0; i < RV_N_ELEMENTS(hidden); i++)
                expect_entry(&o, RV_VIEW_HIDE, hidden[i], NULL);
        for (size_t i = 0; i < RV_N_ELEMENTS(absent); i++)
                expect_none(&o, absent[i]);
        expect_entry(&o, RV_VIEW_LINK, "/bin", "usr/bin");
        expect_entry(&o, RV_VIEW_LINK, "/lib", "usr/lib");
        expect_entry(&o, RV_VIEW_LINK, "/etc/localtime", "/usr/share/zoneinfo/Etc/UTC");
        expect_none(&o, "/usr/lib/python3.11/json");
        rv_runtime_close(&o.runtime);
        assert_int_equal(o.runtime.n_entries, 0);
}

/* Debian's node is built on a few files of packages: those alone are there. */
static void node_files(void **state)
{
        struct opened o;

        make(state, merged_usr);
        open_runtime(state, &o, NULL, NULL);
        expect_entry(&o, RV_VIEW_FILL, "/usr/share/nodejs", NULL);
        expect_entry(&o, RV_VIEW_BIND, "/usr/share/nodejs/acorn/dist/acorn.js", NULL);
        expect_entry(&o, RV_VIEW_BIND, "/usr/share/nodejs/undici/undici.js", NULL);
        expect_none(&o, "/usr/share/nodejs/lodash/index.js");
        expect_none(&o, "/usr/share/nodejs/acorn-walk/dist/walk.js");
        rv_runtime_close(&o.runtime);
}

/* Each entry is done after those it lies in. */
static void the_order(void **state)
{
        struct opened o;

        make(state, merged_usr);
        open_runtime(state, &o, "/usr/local/lib/tool", "/etc/ssl/private/key");
        for (size_t i = 0; i < o.runtime.n_entries; i++)
                for (size_t j = i + 1; j < o.runtime.n_entries; j++) {
                        const char *inner = o.runtime.entries[i].path, *outer = o.runtime.entries[j].path;

                        if (!strncmp(inner, outer, strlen(outer)) && inner[strlen(outer)] == '/')
                                fail_msg("%s comes before %s", inner, outer);
                }
        rv_runtime_close(&o.runtime);
}

static const struct {
        const char *name, *expose;
        enum rv_view_kind kind;         /* of `path` */
        const char *path;
        bool is_there;
} exposed[] = {
        { "outside /usr", "/opt/tool", RV_VIEW_BIND, "/opt/tool", true },
        { "in /usr: seen as it is", "/usr/lib/python3.11/json", RV_VIEW_BIND, "/usr/lib/python3.11/json", false },
        { "what would be hidden", "/usr/local", RV_VIEW_HIDE, "/usr/local", false },
        { "what would be hidden is not bound again", "/usr/local", RV_VIEW_BIND, "/usr/local", false },
        { "a hidden directory of packages", "/usr/lib/python3/dist-packages", RV_VIEW_HIDE, "/usr/lib/python3/dist-packages", false },
        { "below a hidden directory: it", "/usr/local/lib/tool", RV_VIEW_BIND, "/usr/local/lib/tool", true },
        { "below a hidden directory: and no more of it", "/usr/local/lib/tool", RV_VIEW_FILL, "/usr/local", true },
        { "below a hidden directory: not as a whole", "/usr/local/lib/tool", RV_VIEW_HIDE, "/usr/local", false },
        { "a name that only begins alike", "/usr/localized", RV_VIEW_HIDE, "/usr/local", true },
        { "below one of /etc", "/etc/ssl/private/key", RV_VIEW_FILL, "/etc/ssl/private", true },
        { "but for the host's credentials in it", "/usr/local", RV_VIEW_HIDE, "/usr/local/pip.conf", true },
        { "nor those of an exposed npm", "/usr/lib/node_modules", RV_VIEW_HIDE, "/usr/lib/node_modules/npm/npmrc", true },
        { "unless they are what is exposed", "/usr/pip.conf", RV_VIEW_HIDE, "/usr/pip.conf", false },
        { "node's packages: all", "/usr/share/nodejs", RV_VIEW_FILL, "/usr/share/nodejs", false },
        { "node's packages: one more", "/usr/share/nodejs/lodash", RV_VIEW_BIND, "/usr/share/nodejs/lodash", true },
};

static void expose(void **state)
{
        make(state, merged_usr);
        for (size_t i = 0; i < RV_N_ELEMENTS(exposed); i++) {
                struct opened o;

                open_runtime(state, &o, exposed[i].expose, NULL);
                if ((find(&o.runtime, exposed[i].kind, exposed[i].path) >= 0) != exposed[i].is_there)
                        fail_msg("%s: an entry of kind %d for %s is %sthere", exposed[i].name, exposed[i].kind, exposed[i].path,
                                exposed[i].is_there ? "not " : "");
                rv_runtime_close(&o.runtime);
        }
}

/* What is not shown cannot be hidden: a run with such an entry would not start. */
static const struct {
        const char *name;
        const char *items[4];
        const char *expose;
        const char *absent;             /* no entry hides it */
} links_elsewhere[] = {
        { "to what is not shown", { "d /var/usrlocal", "l /usr/local ../var/usrlocal" }, NULL, "/var/usrlocal" },
        { "into what is hidden", { "d /usr/local/nodejs", "l /usr/lib/nodejs ../local/nodejs" }, NULL, "/usr/local/nodejs" },
        { "into what is hidden but for a part", { "d /usr/local/nodejs", "d /usr/local/tool", "l /usr/lib/nodejs ../local/nodejs" }, "/usr/local/tool", "/usr/local/nodejs" },
        { "of a file", { "f /etc/pip.conf", "d /usr", "l /usr/pip.conf ../etc/pip.conf" }, NULL, "/etc/pip.conf" },
};

static void hidden_links_that_lead_elsewhere(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(links_elsewhere); i++) {
                void *own = NULL;
                struct opened o;

                assert_int_equal(tmp_make(&own), 0);
                make(&own, links_elsewhere[i].items);
                open_runtime(&own, &o, links_elsewhere[i].expose, NULL);
                if (find(&o.runtime, RV_VIEW_HIDE, links_elsewhere[i].absent) >= 0)
                        fail_msg("%s: %s is hidden", links_elsewhere[i].name, links_elsewhere[i].absent);
                rv_runtime_close(&o.runtime);
                tmp_remove(&own);
        }
}

/* What a package manager's directory and its parts add to the view: "bind PATH" and "fill PATH", in their order. */
static const struct {
        const char *name;
        const char *items[8];
        const char *expose;
        const char *python, *javascript;     /* the entries of either's runs */
        const char *python_site;
} tools[] = {
        { "nothing is there", { "d /usr/bin", NULL }, NULL, "", "", NULL },
        { "Debian's pip", { "d /usr/lib/python3/dist-packages/pip", "d /usr/lib/python3/dist-packages/pip-23.0.1.dist-info", "d /usr/lib/python3/dist-packages/pipx",
                              "x /usr/bin/python3.11", "l /usr/bin/python3 python3.11", NULL }, NULL,
          "fill /usr/lib/python3/dist-packages bind /usr/lib/python3/dist-packages/pip bind /usr/lib/python3/dist-packages/pip-23.0.1.dist-info ", "",
          "lib/python3.11/site-packages" },
        { "pip beside something exposed", { "d /usr/lib/python3/dist-packages/pip", "d /usr/lib/python3/dist-packages/mine", NULL }, "/usr/lib/python3/dist-packages/mine",
          "bind /usr/lib/python3/dist-packages/pip ", "", NULL },
        { "pip where all is exposed", { "d /usr/lib/python3/dist-packages/pip", NULL }, "/usr/lib/python3/dist-packages", "", "", NULL },
        { "what venv installs", { "f /usr/share/python-wheels/pip-23.0.1-py3-none-any.whl", "f /usr/share/python-wheels/other-1.whl", "d /usr/bin", NULL }, NULL,
          "fill /usr/share/python-wheels bind /usr/share/python-wheels/pip-23.0.1-py3-none-any.whl ", "", NULL },
        { "npm with all its parts", { "f /usr/lib/node_modules/npm/bin/npm-cli.js", "d /usr/lib/node_modules/corepack", "d /usr/bin", NULL }, NULL, "",
          "fill /usr/lib/node_modules bind /usr/lib/node_modules/npm ", NULL },
        { "npm with the host's configuration", { "f /usr/lib/node_modules/npm/npmrc", NULL }, NULL, "",
          "fill /usr/lib/node_modules bind /usr/lib/node_modules/npm hide /usr/lib/node_modules/npm/npmrc ", NULL },
        { "Debian's npm", { "f /usr/share/nodejs/npm/bin/npm-cli.js", "f /usr/share/nodejs/npmlog/lib/log.js", "f /usr/share/nodejs/acorn/dist/acorn.js", "d /usr/bin", NULL }, NULL, "",
          "bind /usr/share/nodejs/npm bind /usr/share/nodejs/node_modules ", NULL },
        { "Debian's npm, to which a hidden link leads", { "f /usr/share/nodejs/npm/bin/npm-cli.js", "l /usr/share/node_modules nodejs", "f /usr/share/nodejs/acorn/dist/acorn.js", NULL }, NULL, "",
          "bind /usr/share/nodejs/npm bind /usr/share/nodejs/node_modules ", NULL },
        { "a Python of another name", { "x /usr/bin/python3", "d /usr/lib/python3.11/site-packages", NULL }, NULL, "", "", NULL },
        { "a Python of a later name", { "x /usr/bin/python3.9x", "l /usr/bin/python3 python3.9x", NULL }, NULL, "", "", NULL },
};

static void package_managers(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(tools); i++) {
                struct rv_buf texts[3] = { 0 };
                void *own = NULL;
                struct opened o;

                assert_int_equal(tmp_make(&own), 0);
                make(&own, tools[i].items);
                open_runtime(&own, &o, tools[i].expose, NULL);
                rv_buf_puts(&texts[RV_VIEW_PYTHON_TOOLS], "");
                rv_buf_puts(&texts[RV_VIEW_JAVASCRIPT_TOOLS], "");
                for (size_t k = 0; k < o.runtime.n_entries; k++) {
                        const struct rv_view_entry *e = &o.runtime.entries[k];

                        rv_buf_printf(&texts[e->when], "%s %s ", e->kind == RV_VIEW_BIND ? "bind" : e->kind == RV_VIEW_FILL ? "fill" : "hide", e->path);
                }
                if (strcmp(texts[RV_VIEW_PYTHON_TOOLS].data, tools[i].python) ||
                        strcmp(texts[RV_VIEW_JAVASCRIPT_TOOLS].data, tools[i].javascript))
                        fail_msg("%s: [%s] and [%s]", tools[i].name, texts[RV_VIEW_PYTHON_TOOLS].data, texts[RV_VIEW_JAVASCRIPT_TOOLS].data);
                if (!o.runtime.python_site != !tools[i].python_site ||
                        (tools[i].python_site && strcmp(o.runtime.python_site, tools[i].python_site) != 0))
                        fail_msg("%s: a user's packages in %s", tools[i].name, o.runtime.python_site ? o.runtime.python_site : "(none)");
                for (size_t k = 0; k < RV_N_ELEMENTS(texts); k++)
                        rv_buf_fini(&texts[k]);
                rv_runtime_close(&o.runtime);
                tmp_remove(&own);
        }
}

static void a_root_that_is_not_there(void **state)
{
        struct rv_config_runtime config = { .name = "gone", .root = tmp_path(state, "nowhere") };
        struct rv_runtime rt = { .n_entries = 77 };
        struct rv_error err = { 0 };

        assert_int_equal(rv_runtime_open(&config, &rt, &err), -ENOENT);
        assert_non_null(strstr(err.message, config.root));
        assert_non_null(strstr(err.message, "runtimes.gone.root"));
        assert_int_equal(rt.n_entries, 77);
}

/* However the root is written, the same is hidden. */
static void spellings_of_a_root(void **state)
{
        static const char *const spellings[] = { "%s/link", "%s/root/", "%s//root", "%s/link/" };
        struct opened o;

        make(state, merged_usr);
        open_runtime(state, &o, NULL, NULL);
        rv_runtime_close(&o.runtime);
        assert_int_equal(symlink("root", tmp_path(state, "link")), 0);
        for (size_t i = 0; i < RV_N_ELEMENTS(spellings); i++) {
                char *root;

                assert_true(asprintf(&root, spellings[i], (const char *)*state) > 0);
                o.config.root = root;
                assert_int_equal(rv_runtime_open(&o.config, &o.runtime, NULL), 0);
                if (find(&o.runtime, RV_VIEW_HIDE, "/usr/lib/python3/dist-packages") < 0 || find(&o.runtime, RV_VIEW_HIDE, "/usr/local") < 0)
                        fail_msg("%s: packages are not hidden", root);
                rv_runtime_close(&o.runtime);
                free(root);
        }
}

/* Even an empty root has a view; that nothing can be executed in it is told when it is asked for. */
static void an_empty_root(void **state)
{
        static const char *const nothing[] = { "d /", NULL };
        struct opened o;

        make(state, nothing);
        open_runtime(state, &o, NULL, NULL);
        assert_int_equal(o.runtime.n_entries, 0);
        rv_runtime_close(&o.runtime);
}

static const struct {
        const char *name;
        const char *items[3];
        int expected;
} interpreters[] = {
        { "not there", { "d /usr/bin" }, -ENOENT },
        { "a link that leads nowhere", { "l /usr/bin/python3 python3.99" }, -ENOENT },
        { "not to be executed", { "f /usr/bin/python3" }, -EACCES },
        { "a directory", { "d /usr/bin/python3" }, -EACCES },
        { "a file below a file", { "f /usr/bin" }, -ENOTDIR },
        { "a file", { "x /usr/bin/python3" }, 0 },
        { "a link", { "x /usr/bin/python3.11", "l /usr/bin/python3 python3.11" }, 0 },
};

static void the_interpreter(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(interpreters); i++) {
                struct rv_error err = { 0 };
                const char *path = "untouched";
                void *own = NULL;
                struct opened o;
                int r;

                assert_int_equal(tmp_make(&own), 0);
                make(&own, interpreters[i].items);
                open_runtime(&own, &o, NULL, NULL);
                r = rv_runtime_interpreter(&o.runtime, RV_PLAN_PYTHON, &path, &err);
                if (r != interpreters[i].expected)
                        fail_msg("%s: %d, not %d", interpreters[i].name, r, interpreters[i].expected);
                if (strcmp(path, r == 0 ? "/usr/bin/python3" : "untouched") != 0)
                        fail_msg("%s: the path is %s", interpreters[i].name, path);
                /* Names what was looked at, and where it is set. */
                if (r < 0 && (!strstr(err.message, o.root) || !strstr(err.message, "/usr/bin/python3") || !strstr(err.message, "runtimes.made-up.python")))
                        fail_msg("%s: %s", interpreters[i].name, err.message);
                assert_int_equal(rv_runtime_interpreter(&o.runtime, RV_PLAN_JAVASCRIPT, &path, NULL),
                        i == 4 ? -ENOTDIR : -ENOENT);
                rv_runtime_close(&o.runtime);
                tmp_remove(&own);
        }
}

/* The host's own root: whatever else it has, /usr is there and nothing that is a user's. */
static void the_host(void **state)
{
        struct rv_config_runtime config = { .name = "host", .root = "host", .python = "/usr/bin/python3", .javascript = "/usr/bin/node" };
        struct rv_runtime rt;
        ssize_t i;

        assert_int_equal(rv_runtime_open(&config, &rt, NULL), 0);
        i = find(&rt, RV_VIEW_BIND, "/usr");
        assert_true(i >= 0);
        assert_string_equal(rt.entries[i].source, "/usr");
        assert_int_equal(find(&rt, RV_VIEW_BIND, "/etc"), -1);
        assert_int_equal(find(&rt, RV_VIEW_BIND, "/"), -1);
        rv_runtime_close(&rt);
}

#define IN_TMP(f) cmocka_unit_test_setup_teardown(f, tmp_make, tmp_remove)

int main(void)
{
        const struct CMUnitTest tests[] = {
                IN_TMP(what_is_seen),
                IN_TMP(spellings_of_a_root),
                cmocka_unit_test(hidden_links_that_lead_elsewhere),
                IN_TMP(node_files),
                IN_TMP(the_order),
                IN_TMP(expose),
                cmocka_unit_test(package_managers),
                IN_TMP(a_root_that_is_not_there),
                IN_TMP(an_empty_root),
                cmocka_unit_test(the_interpreter),
                cmocka_unit_test(the_host),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
