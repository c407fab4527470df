#include "package/registry_private.h"
#include "package/registry_secrets.h"

#include "base/buf.h"
#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define FILE_BYTES_MAX ((size_t)256 << 10)

static const char *get(const struct rv_registry_view *view, const char *name)
{
        const char *value = view->get(view->arg, name);

        return value && *value ? value : NULL;
}

/* One file of settings: `take` gets each key with its value, both trimmed. */
struct reading {
        struct rv_registry *r;
        const struct rv_registry_view *view;
        char path[512];
        char section[32];            /* pip's; "" before the first */
        bool has_lists;              /* lines that are indented further go on with a key's value: pip's */
        char key[64];                /* the last */
        size_t indentation;          /* of its line */
        bool is_more;                /* `take` gets more of the same key */
        struct rv_buf extra;         /* pip's further indexes */
        void (*take)(struct reading *reading, const char *key, const char *value);
};

static char *trim(char *s)
{
        size_t n;

        s += strspn(s, " \t\r");
        n = strlen(s);
        while (n && strchr(" \t\r", s[n - 1]))
                s[--n] = 0;
        if (n > 1 && (*s == '"' || *s == '\'') && s[n - 1] == *s) {
                s[n - 1] = 0;
                s++;
        }
        return s;
}

static void take_line(struct reading *reading, char *line)
{
        size_t indentation = strspn(line, " \t"), n;
        char *equals, *key = trim(line);

        n = strlen(key);
        reading->is_more = reading->has_lists && *reading->key && indentation > reading->indentation;
        if (reading->is_more && *key && *key != '#' && *key != ';')
                reading->take(reading, reading->key, key);
        if (reading->is_more || !*key || *key == '#' || *key == ';')
                return;
        if (*key == '[' && key[n - 1] == ']') {
                key[n - 1] = 0;
                snprintf(reading->section, sizeof(reading->section), "%s", key + 1);
                *reading->key = 0;
                return;
        }
        equals = strchr(key, '=');
        if (!equals)
                return;
        *equals = 0;
        key = trim(key);
        snprintf(reading->key, sizeof(reading->key), "%s", key);
        reading->indentation = indentation;
        reading->take(reading, key, trim(equals + 1));
}

static void read_file(struct reading *reading, const char *dir, const char *name)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        char path[600];
        char *line, *rest;

        snprintf(reading->path, sizeof(reading->path), "%s%s", dir, name);
        snprintf(path, sizeof(path), "%s%s", reading->view->root, reading->path);
        if (rv_read_file_at(AT_FDCWD, path, FILE_BYTES_MAX, &text) < 0 || !text.data)
                return;
        reading->section[0] = reading->key[0] = 0;
        rest = text.data;
        while ((line = strsep(&rest, "\n")) != NULL)
                take_line(reading, line);
        explicit_bzero(text.data, text.size);   /* it may hold credentials */
}

static void set(struct rv_registry *r, const char **field, const char *value)
{
        if (*value)
                *field = rv_arena_strdup(&r->arena, value);
}

static void take_environments_proxy(struct rv_registry *r, const struct rv_registry_view *view)
{
        const char *no_proxy = get(view, "no_proxy");

        rv__registry_set_proxy(r, get(view, "HTTPS_PROXY"));
        rv__registry_set_proxy(r, get(view, "https_proxy"));
        if (!no_proxy)
                no_proxy = get(view, "NO_PROXY");
        if (no_proxy)
                set(r, &r->no_proxy, no_proxy);
}

/* ---- pip ---- */

/* A later file's list is in place of an earlier one's. */
static void take_pip_extra(struct reading *reading, const char *value)
{
        if (!reading->is_more)
                reading->extra.size = 0;
        rv_buf_printf(&reading->extra, " %s", value);
}

/* Each is one more host, and one more address for pip inside a run. */
static void keep_pip_extra(struct rv_registry *r, char *list)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        const char *url, *plain;

        while ((url = strsep(&list, " \t\r")) != NULL)
                if (*url && rv__registry_add_extra(r, url, &plain) == 0)
                        rv_buf_printf(&text, "%s%s", text.size ? " " : "", plain);
        if (text.size && rv_buf_error(&text) == 0)
                set(r, &r->extra_index, text.data);
}

/* pip's own setting holds for every host. */
static void take_pip_proxy(struct rv_registry *r, const char *value)
{
        rv__registry_set_proxy(r, value);
        r->no_proxy = NULL;
}

static void set_find_links(struct rv_registry *r, const char *value)
{
        char *copy = *value ? rv_arena_strdup(&r->arena, value) : NULL;

        if (copy)
                rv__registry_strip(copy);
        r->find_links = copy ? copy : r->find_links;
}

static void take_pip_setting(struct reading *reading, const char *name, const char *value)
{
        struct rv_registry *r = reading->r;

        if (strcmp(name, "index-url") == 0)
                rv__registry_set_index(r, value, reading->path);
        else if (strcmp(name, "cert") == 0)
                set(r, &r->ca, value);
        else if (strcmp(name, "proxy") == 0)
                take_pip_proxy(r, value);
        else if (strcmp(name, "extra-index-url") == 0)
                take_pip_extra(reading, value);
        else if (strcmp(name, "find-links") == 0)
                set_find_links(r, value);
}

static void take_pip(struct reading *reading, const char *key, const char *value)
{
        char name[64];

        /* Of a command's own section that of `install` counts; pip takes `_` for `-`. */
        if (strcmp(reading->section, "global") != 0 && strcmp(reading->section, "install") != 0)
                return;
        snprintf(name, sizeof(name), "%s", key);
        for (char *c = name; *c; c++)
                if (*c == '_')
                        *c = '-';
        take_pip_setting(reading, name, value);
}

static bool is_there(const struct rv_registry_view *view, const char *file)
{
        char path[600];

        snprintf(path, sizeof(path), "%s%s", view->root, file);
        return access(path, F_OK) == 0;
}

static void read_users_files(struct reading *reading, const char *home, const char *xdg)
{
        if (home)
                read_file(reading, home, "/.pip/pip.conf");
        if (xdg)
                read_file(reading, xdg, "/pip/pip.conf");
        else if (home)
                read_file(reading, home, "/.config/pip/pip.conf");
}

void rv__registry_read_pip(struct rv_registry *r, const struct rv_registry_view *view)
{
        static const char *const variables[][2] = { { "PIP_INDEX_URL", "index-url" }, { "PIP_CERT", "cert" },
                                                    { "PIP_PROXY", "proxy" }, { "PIP_FIND_LINKS", "find-links" },
                                                    { "PIP_EXTRA_INDEX_URL", "extra-index-url" } };
        struct reading reading = { .r = r, .view = view, .take = take_pip, .has_lists = true };
        const char *file = get(view, "PIP_CONFIG_FILE");

        take_environments_proxy(r, view);
        /* Later ones win, as with pip; /dev/null turns all of them off, a file that is there the user's. */
        if (!file || strcmp(file, "/dev/null") != 0) {
                read_file(&reading, "/etc/xdg", "/pip/pip.conf");
                read_file(&reading, "/etc", "/pip.conf");
                if (!file || !is_there(view, file))
                        read_users_files(&reading, get(view, "HOME"), get(view, "XDG_CONFIG_HOME"));
                read_file(&reading, "/usr", "/pip.conf");        /* of the installation that the system's Python is */
                if (file)
                        read_file(&reading, file, "");
        }
        snprintf(reading.path, sizeof(reading.path), "the environment (PIP_INDEX_URL)");
        reading.is_more = false;
        for (size_t i = 0; i < RV_N_ELEMENTS(variables); i++)
                if (get(view, variables[i][0]))
                        take_pip_setting(&reading, variables[i][1], get(view, variables[i][0]));
        if (rv_buf_error(&reading.extra) == 0)
                keep_pip_extra(r, reading.extra.data);
        if (reading.extra.data)
                explicit_bzero(reading.extra.data, reading.extra.capacity);
        rv_buf_fini(&reading.extra);
}

/* ---- npm ---- */

/* ${NAME} is the environment's, if it has it. Returns false if it does not fit. */
static bool expand(const struct reading *reading, const char *value, char *ret, size_t size)
{
        size_t n = 0;

        while (*value && n + 1 < size) {
                const char *end = value[0] == '$' && value[1] == '{' ? strchr(value, '}') : NULL;
                char name[64];
                const char *text = NULL;

                if (end && (size_t)(end - value) < sizeof(name)) {
                        snprintf(name, sizeof(name), "%.*s", (int)(end - value - 2), value + 2);
                        text = get(reading->view, name);
                }
                if (!text) {
                        ret[n++] = *value++;
                        continue;
                }
                n += (size_t)snprintf(ret + n, size - n, "%s", text);
                n = RV_MIN(n, size - 1);
                value = end + 1;
        }
        ret[n] = 0;
        return n + 1 < size;
}

static bool ends_in(const char *text, const char *end)
{
        size_t n = strlen(text), k = strlen(end);

        return n >= k && strcmp(text + n - k, end) == 0;
}

static void take_npm_value(struct reading *reading, const char *key, const char *value)
{
        struct rv_registry *r = reading->r;

        if (strcmp(key, "registry") == 0)
                rv__registry_set_index(r, value, reading->path);
        else if (*key == '@' && ends_in(key, ":registry"))
                rv__registry_set_scope(r, key, strlen(key) - strlen(":registry"), value);
        else if (strncmp(key, "//", 2) == 0)
                rv__secrets_keep_npm(&r->secrets, key, value);
        else if (strcmp(key, "cafile") == 0)
                set(r, &r->ca, value);
        else if (strcmp(key, "https-proxy") == 0 || strcmp(key, "proxy") == 0)
                rv__registry_set_proxy(r, value);
        else if (strcmp(key, "noproxy") == 0)
                set(r, &r->no_proxy, value);
}

static void take_npm(struct reading *reading, const char *key, const char *text)
{
        char value[RV__SECRET_BYTES_MAX + 1024];

        if (expand(reading, text, value, sizeof(value)))
                take_npm_value(reading, key, value);
        explicit_bzero(value, sizeof(value));
}

/* npm reads its variables in any case. */
static void take_npm_variable(struct reading *reading, const char *name, const char *key)
{
        char upper[64];
        const char *value = get(reading->view, name);

        for (size_t i = 0; i <= strlen(name); i++)
                upper[i] = name[i] >= 'a' && name[i] <= 'z' ? (char)(name[i] - 'a' + 'A') : name[i];
        if (!value)
                value = get(reading->view, upper);
        if (!value)
                return;
        snprintf(reading->path, sizeof(reading->path), "the environment (%s)", name);
        take_npm(reading, key, value);
}

void rv__registry_read_npm(struct rv_registry *r, const struct rv_registry_view *view)
{
        struct reading reading = { .r = r, .view = view, .take = take_npm };
        const char *home = get(view, "HOME"), *global = get(view, "npm_config_globalconfig"), *user = get(view, "npm_config_userconfig");

        take_environments_proxy(r, view);
        /* Later ones win. A directory's own .npmrc is not looked at: it is nobody's configuration but that directory's. */
        if (global) {
                read_file(&reading, global, "");
        } else {
                read_file(&reading, "/etc", "/npmrc");
                read_file(&reading, "/usr/etc", "/npmrc");
        }
        if (user)
                read_file(&reading, user, "");
        else if (home)
                read_file(&reading, home, "/.npmrc");
        take_npm_variable(&reading, "npm_config_registry", "registry");
        take_npm_variable(&reading, "npm_config_cafile", "cafile");
        take_npm_variable(&reading, "npm_config_https_proxy", "https-proxy");
        take_npm_variable(&reading, "npm_config_noproxy", "noproxy");
        rv__registry_add_scopes(r);
}
