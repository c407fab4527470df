#include "package/registry_credentials.h"

#include "package/registry_private.h"
#include "package/registry_secrets.h"

#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <strings.h>

/* ---- Which are meant for a URL ---- */

struct place {
        bool is_tls, has_user;
        char host[RV_DOMAIN_SIZE];
        uint16_t port;
        const char *path;            /* with its slash, or "" */
        size_t n_path;
};

static bool read_place(const char *text, struct place *ret)
{
        struct rv__url url;
        const char *after;

        if (!rv__url_split(text, &url) ||
                !rv__registry_canonical_host(url.host, (size_t)(url.host_end - url.host), ret->host))
                return false;
        after = url.host[-1] == '[' ? url.host - 1 : url.host;
        ret->is_tls = url.scheme_end[-4] == 's';
        ret->has_user = after != url.scheme_end;
        ret->port = url.port;
        ret->path = url.rest + strcspn(url.rest, "/?#");
        ret->n_path = strcspn(ret->path, "?#");
        return true;
}

/* One character of a path, as a server may understand it: '/' and '.' however they are written. */
static char path_character(const char *p, size_t n, size_t *ret_n)
{
        *ret_n = 1;
        if (*p == '%' && n > 2) {
                static const struct {
                        char digits[3], c;
                } codes[] = { { "2f", '/' }, { "5c", '/' }, { "2e", '.' } };

                for (size_t i = 0; i < RV_N_ELEMENTS(codes); i++)
                        if (strncasecmp(p + 1, codes[i].digits, 2) == 0) {
                                *ret_n = 3;
                                return codes[i].c;
                        }
        }
        return *p == '\\' ? '/' : *p;
}

/* Somebody on the way would make another path of it, which may not be below the one that it seems to be below. */
static bool is_twisted(const char *path, size_t n)
{
        size_t n_dots = 0, step;
        bool is_dots = true;

        for (size_t i = 0; i < n; i += step) {
                char c = path_character(path + i, n - i, &step);

                if ((unsigned char)c <= 0x20 || c == 0x7f)
                        return true;
                if (c == '/') {
                        if (is_dots && n_dots)
                                return true;
                        is_dots = true;
                        n_dots = 0;
                } else if (c == '.') {
                        n_dots++;
                } else {
                        is_dots = false;
                }
        }
        return is_dots && n_dots;
}

static bool is_below(const struct place *p, const struct place *prefix)
{
        size_t n = prefix->n_path;

        while (n && prefix->path[n - 1] == '/')
                n--;
        return p->n_path >= n && memcmp(p->path, prefix->path, n) == 0 && (p->n_path == n || p->path[n] == '/');
}

static bool is_same_server(const struct place *a, const struct place *b)
{
        return a->is_tls == b->is_tls && a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* npm's lines say no scheme. In the clear they go only where the registry's own address is so. */
static bool is_named_plain(const struct rv_registry *r, const struct place *p)
{
        struct place own;

        if (r->index && read_place(r->index, &own) && is_same_server(&own, p))
                return true;
        for (size_t i = 0; i < r->n_scopes; i++)
                if (read_place(r->scopes[i].url, &own) && is_same_server(&own, p))
                        return true;
        return false;
}

/* How well it fits: 0 not at all, else more the longer the path that both have. */
static size_t judge(const struct rv_registry *r, const struct rv__secret *s, const struct place *p)
{
        struct place own;
        char text[700];

        if (s->kind == RV__SECRET_NPM) {
                snprintf(text, sizeof(text), "%s:%s", p->is_tls ? "https" : "http", s->where);
                if (!p->is_tls && !is_named_plain(r, p))
                        return 0;
        }
        if (!read_place(s->kind == RV__SECRET_NPM ? text : s->where, &own) || !is_same_server(&own, p))
                return 0;
        if (is_below(p, &own))
                return 2 + own.n_path;
        return r->language == RV_LANGUAGE_PYTHON ? 1 : 0;
}

bool rv_registry_authorization(const struct rv_registry *r, const char *url, char ret[RV_REGISTRY_AUTHORIZATION_SIZE])
{
        const struct rv__secret *best = NULL;
        size_t most = 0;
        struct place p;
        char *basic;
        int n = 0;

        *ret = 0;
        if (!r->secrets || !read_place(url, &p) || p.has_user || is_twisted(p.path, p.n_path))
                return false;
        for (size_t i = 0; i < r->secrets->n; i++) {
                const struct rv__secret *s = &r->secrets->items[i];
                size_t fit = judge(r, s, &p);

                if (fit > most || (fit && fit == most && s->kind == RV__SECRET_NPM && best->kind != RV__SECRET_NPM)) {
                        most = fit;
                        best = s;
                }
        }
        if (!best)
                return false;
        basic = best->token ? NULL : rv__secret_basic(best);
        if (best->token || basic)
                n = snprintf(ret, RV_REGISTRY_AUTHORIZATION_SIZE, "Authorization: %s %s", basic ? "Basic" : "Bearer", basic ? basic : best->token);
        rv__secret_drop(basic);
        if (n >= RV_REGISTRY_AUTHORIZATION_SIZE)
                *ret = 0;
        return *ret;
}

/* ---- What makes two the same ---- */

static void add_text(struct rv_sha256 *h, const char *name, const char *value)
{
        rv_sha256_update(h, name, strlen(name) + 1);
        rv_sha256_update(h, value ? value : "", value ? strlen(value) + 1 : 0);
        rv_sha256_update(h, "\n", 1);
}

static void add_ca(struct rv_sha256 *h, const char *path)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        char hex[RV_SHA256_HEX_SIZE];

        add_text(h, "ca", NULL);
        if (!path)
                return;
        if (rv_read_file_at(AT_FDCWD, path, RV_PLAN_CA_BYTES_MAX, &text) < 0) {
                add_text(h, "ca_path", path);
                return;
        }
        rv_sha256_hex(text.data ? text.data : "", text.size, hex);
        add_text(h, "ca_content", hex);
}

static void add_secrets(struct rv_sha256 *h, const struct rv__secrets *all)
{
        for (size_t i = 0; all && i < all->n; i++) {
                const struct rv__secret *s = &all->items[i];

                add_text(h, "secret", s->where);
                add_text(h, "token", s->token);
                add_text(h, "basic", s->basic);
                add_text(h, "user", s->user);
                add_text(h, "password", s->password);
        }
}

void rv_registry_fingerprint(const struct rv_registry *r, char ret[RV_SHA256_HEX_SIZE])
{
        uint8_t digest[RV_SHA256_SIZE];
        struct rv_sha256 h;
        char port[16];

        rv_sha256_init(&h);
        add_text(&h, "reeve.registry/1", rv_language_name(r->language));
        add_text(&h, "index", r->index);
        add_text(&h, "extra", r->extra_index);
        add_text(&h, "files", r->files);
        add_text(&h, "find_links", r->find_links);
        for (size_t i = 0; i < r->n_scopes; i++) {
                add_text(&h, "scope", r->scopes[i].name);
                add_text(&h, "url", r->scopes[i].url);
        }
        add_ca(&h, r->ca);
        snprintf(port, sizeof(port), "%u", r->proxy.port);
        add_text(&h, "proxy", r->proxy.host);
        add_text(&h, "port", port);
        add_secrets(&h, r->secrets);
        rv_sha256_final(&h, digest);
        explicit_bzero(&h, sizeof(h));
        rv_hex(digest, sizeof(digest), ret);
}
