#include "package/registry_tools.h"

#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"       /* every run sees /etc/ssl */

/* How the tools call what the registry says, and what else they are told. */
static const struct names {
        const char *index, *ca;
        const char *fixed[8][2];
} names[] = {
        [RV_LANGUAGE_PYTHON] = { "PIP_INDEX_URL", "PIP_CERT", {
                { "PIP_BREAK_SYSTEM_PACKAGES", "1" },        /* there is no system here that an installation could break */
                { "PIP_NO_CACHE_DIR", "1" },                 /* files are the run's memory */
                { "PIP_NO_INPUT", "1" },
                { "PIP_DISABLE_PIP_VERSION_CHECK", "1" },
                { "PIP_RETRIES", "1" },                      /* a host that is refused stays refused */
        } },
        [RV_LANGUAGE_JAVASCRIPT] = { "npm_config_registry", "npm_config_cafile", {
                { "npm_config_update_notifier", "false" },
                { "npm_config_audit", "false" },
                { "npm_config_fund", "false" },
                { "npm_config_fetch_retries", "1" },
                { "npm_config_fetch_retry_mintimeout", "500" },
        } },
};

/* Returns -ENOMEM if the texts could not be kept. */
static int add(struct rv_registry_tools *t, const char *name, const char *value)
{
        char *copy = rv_arena_strdup(&t->arena, value);

        if (!copy)
                return rv_raise(-ENOMEM);
        t->env[t->n_env++] = (struct rv_plan_env){ name, copy };
        return 0;
}

/* pip takes an index over plain HTTP only from a host that it is told to trust. */
static int add_trust(struct rv_registry_tools *t, const struct rv_registry *r)
{
        char text[RV_DOMAIN_SIZE + 24];

        if (r->language != RV_LANGUAGE_PYTHON || !r->index || strncmp(r->index, "http://", 7) != 0)
                return 0;
        snprintf(text, sizeof(text), strchr(r->hosts[0].host, ':') ? "[%s]:%u" : "%s:%u", r->hosts[0].host, r->hosts[0].port);
        return rv_trace(add(t, "PIP_TRUSTED_HOST", text));
}

static int read_ca(struct rv_registry_tools *t, const struct rv_registry *r, struct rv_error *err)
{
        const char *language = rv_language_name(r->language);
        _cleanup_(rv_freep) char *path = realpath(r->ca, NULL);      /* it may well be a link */
        int e = path ? rv_read_file_at(AT_FDCWD, path, RV_PLAN_CA_BYTES_MAX, &t->ca) : -errno;

        if (e == 0 && t->ca.size == 0)
                e = -ENODATA;
        if (e < 0)
                return rv_error_set(err, rv_raise(e), "the certificates of the %s registry cannot be used: %s: %s; correct registries.%s.ca, or let everybody read the file",
                        language, r->ca, e == -ENODATA ? "it is empty" : strerror(-e), language);
        return 0;
}

/* With a file of its own, that; else the runtime's, if it has one. */
static int add_ca(struct rv_registry_tools *t, const struct rv_registry *r, const char *root, struct rv_error *err)
{
        const char *name = names[r->language].ca;
        char path[4096];

        if (r->ca) {
                int e = read_ca(t, r, err);

                return e < 0 ? rv_trace(e) : rv_trace(add(t, name, RV_PLAN_CA_FILE));
        }
        if ((size_t)snprintf(path, sizeof(path), "%s%s", strcmp(root, "host") ? root : "", SYSTEM_CA) >= sizeof(path) ||
                access(path, R_OK) < 0)
                return 0;
        return rv_trace(add(t, name, SYSTEM_CA));
}

int rv_registry_tools_make(
        const struct rv_registry *r, const char *root, struct rv_registry_tools *ret, struct rv_error *err)
{
        const struct names *n = &names[r->language];
        struct rv_registry_tools t = { 0 };
        int e = r->index ? add(&t, n->index, r->index) : 0;

        if (e == 0 && r->extra_index)
                e = add(&t, "PIP_EXTRA_INDEX_URL", r->extra_index);
        if (e == 0)
                e = add_trust(&t, r);
        if (e == 0)
                e = add_ca(&t, r, root, err);
        for (size_t i = 0; i < RV_N_ELEMENTS(n->fixed) && n->fixed[i][0] && e == 0; i++)
                e = add(&t, n->fixed[i][0], n->fixed[i][1]);
        if (e < 0) {
                rv_registry_tools_fini(&t);
                return rv_trace(e);
        }
        *ret = t;
        return 0;
}

void rv_registry_tools_fini(struct rv_registry_tools *t)
{
        rv_buf_fini(&t->ca);
        rv_arena_fini(&t->arena);
        *t = (struct rv_registry_tools){ 0 };
}
