#include "base/config_private.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define IN_ROOT(field) { RV_CONFIG_IN_ROOT, offsetof(struct rv_config, field) }
#define IN_RUNTIME(field) { RV_CONFIG_IN_RUNTIME, offsetof(struct rv_config_runtime, field) }
#define IN_TENANT(field) { RV_CONFIG_IN_TENANT, offsetof(struct rv_config_tenant, field) }
#define IN_REGISTRY(field) { RV_CONFIG_IN_REGISTRY, offsetof(struct rv_config_registry, field) }
#define NOWHERE { RV_CONFIG_IN_NOTHING, 0 }

#define ROW(path, type, place, otherwise, text) { path, RV_CONFIG_##type, place, otherwise, text },
const struct rv_config_key rv_config_keys[] = { RV_CONFIG_KEYS(ROW) };
const size_t rv_config_n_keys = RV_N_ELEMENTS(rv_config_keys);

static bool is_there(const char *path)
{
        struct stat st;

        /* What cannot be looked at may be there: the caller is to hear of it, not to run without it. */
        return stat(path, &st) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

static int take_if_there(char *path, char **ret_file)
{
        if (!path)
                return rv_raise(-ENOMEM);
        if (!is_there(path)) {
                free(path);
                return 0;
        }
        *ret_file = path;
        return 1;
}

/* In $XDG_CONFIG_HOME, which the XDG Base Directory Specification wants absolute or ignored. */
static int find_users(char **ret_file)
{
        const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
        char *path;
        int n;

        if (config && config[0] == '/')
                n = asprintf(&path, "%s/reeve/reeve.yaml", config);
        else if (home && home[0] == '/')
                n = asprintf(&path, "%s/.config/reeve/reeve.yaml", home);
        else
                return 0;
        return take_if_there(n < 0 ? NULL : path, ret_file);
}

int rv_config_find(const char *path, char **ret_file, struct rv_error *err)
{
        const char *named = path ? path : getenv("REEVE_CONFIG");
        char *file = NULL;
        int r = 0;

        if (path && !*path)
                return rv_error_set(err, rv_raise(-EINVAL), "the name of the configuration file is empty");
        if (!named || !*named) {
                r = find_users(&file);
                if (r == 0)
                        r = take_if_there(strdup("/etc/reeve/reeve.yaml"), &file);
                named = "";
        }
        if (r == 0) {
                file = strdup(named);
                r = file ? 1 : rv_raise(-ENOMEM);
        }
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "out of memory looking for the configuration");
        *ret_file = file;
        return 0;
}

/* A link is followed: operators and orchestrators put configuration in place by links. */
static int read_file(const char *file, struct rv_buf *out, struct rv_error *err)
{
        _cleanup_(rv_closep) int fd = -EBADF;
        struct stat st;
        int r;

        fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd < 0) {
                r = rv_raise(-errno);
                return rv_error_set(err, r, "%s: cannot open the configuration: %s", file, strerror(-r));
        }
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return rv_error_set(err, rv_raise(-EINVAL), "%s: is no regular file; it is read more than once, so it cannot be a pipe", file);
        r = rv_read_fd(fd, RV_CONFIG_BYTES_MAX, out);
        if (r == -EFBIG)
                return rv_error_set(err, r, "%s: larger than %zu bytes", file, RV_CONFIG_BYTES_MAX);
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "%s: cannot read the configuration: %s", file, strerror(-r));
        return 0;
}

int rv_config_load(const char *path, struct rv_config **ret, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        _cleanup_(rv_freep) char *file = NULL;
        int r;

        r = rv_config_find(path, &file, err);
        if (r < 0)
                return rv_trace(r);
        if (*file) {
                r = read_file(file, &text, err);
                if (r < 0)
                        return rv_trace(r);
        }
        return rv_trace(rv_config_parse(text.data, text.size, file, ret, err));
}

void rv_config_free(struct rv_config *config)
{
        if (!config)
                return;
        rv_arena_fini(&config->arena);
        free(config);
}

const struct rv_config_tenant *rv_config_tenant(const struct rv_config *config, const char *name)
{
        for (size_t i = 0; i < config->n_tenants; i++)
                if (strcmp(config->tenants[i].name, name) == 0)
                        return &config->tenants[i];
        return NULL;
}

const struct rv_config_runtime *rv_config_runtime(const struct rv_config *config, const char *name)
{
        for (size_t i = 0; i < config->n_runtimes; i++)
                if (strcmp(config->runtimes[i].name, name) == 0)
                        return &config->runtimes[i];
        return NULL;
}

const char *rv_config_uv(const struct rv_config *config)
{
        static const char *const places[] = { "/usr/bin/uv", "/usr/local/bin/uv" };

        if (strcmp(config->packages.resolver, "pip") == 0)
                return NULL;
        if (config->packages.uv)
                return access(config->packages.uv, X_OK) == 0 ? config->packages.uv : NULL;
        for (size_t i = 0; i < RV_N_ELEMENTS(places); i++)
                if (access(places[i], X_OK) == 0)
                        return places[i];
        return NULL;
}
