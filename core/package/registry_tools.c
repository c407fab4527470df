#include "package/registry_private.h"

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

int rv__registry_tools_add(struct rv_registry_tools *t, const char *name, const char *value)
{
        char *copy = t->n_env < RV_REGISTRY_TOOLS_ENV_MAX ? rv_arena_strdup(&t->arena, value) : NULL;

        if (!copy)
                return rv_raise(-ENOMEM);
        t->env[t->n_env++] = (struct rv_plan_env){ name, copy };
        return 0;
}

/* "host:port" of an address over plain HTTP joins the list. */
static void trust(struct rv_buf *list, const char *text)
{
        char host[RV_DOMAIN_SIZE];
        struct rv__url url;

        if (strncmp(text, "http://", 7) != 0 || !rv__url_split(text, &url) || !rv__registry_canonical_host(url.host, (size_t)(url.host_end - url.host), host))
                return;
        rv_buf_printf(list, strchr(host, ':') ? "%s[%s]:%u" : "%s%s:%u", list->size ? " " : "", host, url.port);
}

int rv__registry_tools_add_trust(struct rv_registry_tools *t, const struct rv_registry *r)
{
        _cleanup_(rv_buf_fini) struct rv_buf list = { 0 };
        const char *entry = r->extra_index;

        if (r->language != RV_LANGUAGE_PYTHON)
                return 0;
        if (r->index)
                trust(&list, r->index);
        while (entry && *entry) {
                size_t n = strcspn(entry, " ");
                _cleanup_(rv_freep) char *one = strndup(entry, n);

                if (!one)
                        return rv_raise(-ENOMEM);
                trust(&list, one);
                entry += n + strspn(entry + n, " ");
        }
        if (rv_buf_error(&list) < 0)
                return rv_raise(-ENOMEM);
        return list.size ? rv_trace(rv__registry_tools_add(t, "PIP_TRUSTED_HOST", list.data)) : 0;
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

int rv__registry_tools_ca(struct rv_registry_tools *t, const struct rv_registry *r, const char *root,
        const char **ret_path, struct rv_error *err)
{
        char path[4096];
        int e;

        if (r->ca) {
                e = read_ca(t, r, err);
                if (e == 0)
                        *ret_path = RV_PLAN_CA_FILE;
                return rv_trace(e);
        }
        if ((size_t)snprintf(path, sizeof(path), "%s%s", strcmp(root, "host") ? root : "", SYSTEM_CA) < sizeof(path) &&
                access(path, R_OK) == 0)
                *ret_path = SYSTEM_CA;
        return 0;
}

int rv_registry_tools_make(
        const struct rv_registry *r, const char *root, struct rv_registry_tools *ret, struct rv_error *err)
{
        const struct names *n = &names[r->language];
        struct rv_registry_tools t = { 0 };
        const char *ca = NULL;
        int e = r->index ? rv__registry_tools_add(&t, n->index, r->index) : 0;

        if (e == 0 && r->extra_index)
                e = rv__registry_tools_add(&t, "PIP_EXTRA_INDEX_URL", r->extra_index);
        if (e == 0)
                e = rv__registry_tools_add_trust(&t, r);
        if (e == 0)
                e = rv__registry_tools_ca(&t, r, root, &ca, err);
        if (e == 0 && ca)
                e = rv__registry_tools_add(&t, n->ca, ca);
        for (size_t i = 0; i < RV_N_ELEMENTS(n->fixed) && n->fixed[i][0] && e == 0; i++)
                e = rv__registry_tools_add(&t, n->fixed[i][0], n->fixed[i][1]);
        if (e < 0) {
                rv_registry_tools_fini(&t);
                return rv_trace(e);
        }
        *ret = t;
        return 0;
}

void rv_registry_tools_fini(struct rv_registry_tools *t)
{
        for (size_t i = 0; i < t->n_env; i++)
                explicit_bzero((char *)t->env[i].value, strlen(t->env[i].value));
        rv_buf_fini(&t->ca);
        rv_arena_fini(&t->arena);
        *t = (struct rv_registry_tools){ 0 };
}
