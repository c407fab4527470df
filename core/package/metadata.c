#include "package/metadata_private.h"

#include "base/clock.h"
#include "base/text.h"
#include "package/index_npm.h"
#include "package/metadata_cache.h"
#include "request/npmrange.h"

#include <stdio.h>
#include <string.h>

#define AT_ONCE 64u                  /* pages of one helper: all of their texts are in memory together */
#define USUAL_BYTES ((size_t)6 << 20)    /* the helper has 96 MiB for all that is under way: larger pages are asked for again */
#define CODE_TEXT_MAX 160u

/* ---- A page that is none ---- */

static json_t *pack_status(
        const struct rv_registry *r, const char *name, const char *status, const char *text, int http_status)
{
        return json_pack("{s:s, s:s, s:s, s:s, s:i, s:{}}", "name", name, "language", rv_language_name(r->language), "status", status, "text",
                         text, "http_status", http_status, "versions");
}

const char *rv__metadata_host(const char *url, char *ret, size_t size)
{
        struct rv__url parts;

        if (!rv__url_split(url, &parts))
                return "";
        snprintf(ret, size, "%.*s", (int)(parts.host_end - parts.host), parts.host);
        return ret;
}

const char *rv__metadata_status(enum rv_fetch_code code, int status)
{
        switch (code) {
        case RV_FETCH_UNREACHABLE:
        case RV_FETCH_TIMEOUT: return "unreachable";
        case RV_FETCH_TLS: return "tls";
        case RV_FETCH_REFUSED_ADDRESS: return "refused";
        case RV_FETCH_OK: break;
        default: return "invalid";
        }
        if (status >= 200 && status <= 299)
                return "ok";
        if (status == 404 || status == 410)
                return "missing";
        if (status == 401 || status == 403 || status == 407)
                return "refused";
        return status == 429 || status >= 500 ? "error" : "invalid";
}

void rv__metadata_describe(const struct rv_fetch_answer *a, const char *url, char *ret, size_t size)
{
        char host[RV_DOMAIN_SIZE];

        rv__metadata_host(url, host, sizeof(host));
        if (a->code == RV_FETCH_OK)
                snprintf(ret, size, "%s answered with HTTP status %d", host, a->status);
        else if (rv_index_is_line(a->message, CODE_TEXT_MAX))
                snprintf(ret, size, "%s: %s", host, a->message);
        else
                snprintf(ret, size, "%s: %s", host, rv_fetch_code_name(a->code));
}

/* ---- One answer ---- */

static int read_page(const struct rv_registry *r, const struct rv_fetch_item *item, const char *name, json_t **ret)
{
        const struct rv_fetch_answer *a = &item->answer;
        const char *text = a->body.size ? a->body.data : "", *type = rv_json_get_string(a->headers, "content-type", "");
        struct rv_error err = { 0 };
        char host[RV_DOMAIN_SIZE], why[800];
        int code;

        if (r->language == RV_LANGUAGE_PYTHON)
                code = rv_index_python_read(text, a->body.size, type, item->q.url, name, ret, &err);
        else
                code = rv_index_npm_read(text, a->body.size, item->q.url, name, ret, &err);
        if (code != -EBADMSG)
                return rv_trace(code);
        snprintf(why, sizeof(why), "what %s answers is not usable: %.400s", rv__metadata_host(item->q.url, host, sizeof(host)), err.message);
        *ret = pack_status(r, name, "invalid", why, a->status);
        return *ret ? 0 : rv_raise(-ENOMEM);
}

static int take_answer(const struct rv_registry *r, const struct rv_fetch_item *item, const char *name, json_t **ret)
{
        const struct rv_fetch_answer *a = &item->answer;
        const char *status = rv__metadata_status(a->code, a->status);
        char text[600];

        if (a->code == RV_FETCH_INTERNAL || a->code == RV_FETCH_USAGE)
                return rv_raise(-EIO);
        if (a->code == RV_FETCH_OK && a->status == 200)
                return rv_trace(read_page(r, item, name, ret));
        rv__metadata_describe(a, item->q.url, text, sizeof(text));
        *ret = pack_status(r, name, strcmp(status, "ok") == 0 ? "invalid" : status, text, a->status);
        return *ret ? 0 : rv_raise(-ENOMEM);
}

/* ---- What is asked ---- */

/* A scope's slash is escaped, as npm does. */
static char *page_url(const struct rv_registry *r, const char *index, const char *name, struct rv_arena *arena)
{
        char url[RV_INDEX_URL_MAX];
        size_t n = strlen(index);
        const char *slash = strchr(name, '/'), *end = n && index[n - 1] == '/' ? "" : "/";
        int size;

        if (r->language == RV_LANGUAGE_PYTHON)
                size = snprintf(url, sizeof(url), "%s%s%s/", index, end, name);
        else if (slash)
                size = snprintf(url, sizeof(url), "%s%s%.*s%%2f%s", index, end, (int)(slash - name), name, slash + 1);
        else
                size = snprintf(url, sizeof(url), "%s%s%s", index, end, name);
        return size < 0 || (size_t)size >= sizeof(url) ? NULL : rv_arena_strdup(arena, url);
}

struct asking {
        const char *index;           /* NULL: where the registry has the package */
        size_t max_bytes;
        const char **large;          /* those that are larger */
        size_t n_large;
        json_t *pages;
};

static int prepare(const struct rv_metadata_source *src, const struct asking *asking, const char *name,
        struct rv_arena *arena, struct rv_fetch_item *item)
{
        static const char *const python[] = {
                "Accept: application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
        };
        static const char *const npm[] = { "Accept: application/json" };
        const char *base = asking->index ? asking->index : rv_registry_base(src->registry, name);
        const char *url = page_url(src->registry, base, name, arena);
        int r;

        if (!url)
                return rv_raise(-ENOMEM);
        item->q = (struct rv_fetch_request){
                .method = "GET",
                .headers = src->registry->language == RV_LANGUAGE_PYTHON ? python : npm,
                .n_headers = 1,
                .max_bytes = asking->max_bytes,
        };
        r = rv_metadata_request(src, NULL, url, arena, &item->q);
        return r > 0 ? rv_raise(-EINVAL) : rv_trace(r);
}

/* One answer to the pages, or its name to those that are asked for again. */
static int keep_answer(
        const struct rv_metadata_source *src, struct asking *asking, const struct rv_fetch_item *item, const char *name)
{
        json_t *page = NULL;
        int r;

        if (item->answer.code == RV_FETCH_TOO_LARGE && asking->max_bytes < RV_INDEX_BYTES_MAX) {
                asking->large[asking->n_large++] = name;
                return 0;
        }
        r = take_answer(src->registry, item, name, &page);
        if (r < 0)
                return rv_trace(r);
        if (strcmp(rv_json_get_string(page, "status", ""), "ok") == 0)
                rv_metadata_cache_put(src, name, page);
        return json_object_set_new(asking->pages, name, page) < 0 ? rv_raise(-ENOMEM) : 0;
}

/* At most AT_ONCE of them. */
static int ask(const struct rv_metadata_source *src, struct asking *asking, const char *const *names, size_t n,
        struct rv_error *err)
{
        struct rv_fetch_item items[AT_ONCE] = { 0 };
        _cleanup_(rv_arena_fini) struct rv_arena arena = { 0 };
        struct rv_error why = { 0 };
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i++)
                r = prepare(src, asking, names[i], &arena, &items[i]);
        if (r < 0)
                rv_error_set(&why, r, "cannot ask the registry: %s", r == -ENOMEM ? "out of memory" : "its address is not usable");
        else
                r = rv_fetch_many(src->helper_fd, items, n, -EBADF, src->stop, src->deadline_us, &why);
        for (size_t i = 0; i < n; i++) {
                if (r == 0)
                        r = keep_answer(src, asking, &items[i], names[i]);
                rv_metadata_request_wipe(&items[i].q);
                rv_fetch_answer_fini(&items[i].answer);
        }
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "%s", *why.message ? why.message : "cannot read what the registry says: out of memory, or the helper failed");
        return 0;
}

static int ask_all(const struct rv_metadata_source *src, struct asking *asking, const char *const *names, size_t n,
        size_t at_once, struct rv_error *err)
{
        int r = 0;

        for (size_t i = 0; i < n && r == 0; i += at_once)
                r = ask(src, asking, names + i, RV_MIN(n - i, at_once), err);
        return rv_trace(r);
}

static int ask_for(const struct rv_metadata_source *src, const char *index, const char *const *names, size_t n,
        json_t *pages, struct rv_error *err)
{
        _cleanup_(rv_freep) const char **large = calloc(n + 1, sizeof(*large));
        struct asking asking = { .index = index, .max_bytes = USUAL_BYTES, .large = large, .pages = pages };
        int r;

        if (!large)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for %zu pages of the registry", n);
        r = ask_all(src, &asking, names, n, AT_ONCE, err);
        if (r < 0 || asking.n_large == 0)
                return rv_trace(r);
        asking.max_bytes = RV_INDEX_BYTES_MAX;
        return rv_trace(ask_all(src, &asking, large, asking.n_large, 1, err));
}

/* ---- All of them ---- */

static bool is_status(const json_t *pages, const char *name, const char *status)
{
        return strcmp(rv_json_get_string(json_object_get(pages, name), "status", ""), status) == 0;
}

static bool is_name(enum rv_language language, const char *name)
{
        char text[RV_INDEX_NAME_MAX + 8];
        struct rv_package p;
        size_t n = strlen(name);
        bool is_same;

        if (n == 0 || n > 214)
                return false;
        if (language == RV_LANGUAGE_PYTHON)
                return rv_index_canonical(name, n, text) && strcmp(name, text) == 0;
        snprintf(text, sizeof(text), "%s@*", name);
        if (rv_npmreq_parse(text, strlen(text), &p, NULL))
                return false;
        is_same = strcmp(p.name, name) == 0;
        rv_package_fini(&p);
        return is_same;
}

/* pip looks in all of its indexes; where one has the package, the next are not asked. */
static int ask_further(
        const struct rv_metadata_source *src, const char **names, size_t n, json_t *pages, struct rv_error *err)
{
        _cleanup_(rv_freep) char *list = src->registry->extra_index ? strdup(src->registry->extra_index) : NULL;
        char *rest = list;
        const char *index;
        int r = 0;

        while (r == 0 && (index = strsep(&rest, " ")) != NULL) {
                size_t n_left = 0;

                for (size_t i = 0; i < n; i++)
                        if (is_status(pages, names[i], "missing"))
                                names[n_left++] = names[i];
                n = n_left;
                if (*index && n)
                        r = ask_for(src, index, names, n, pages, err);
        }
        return rv_trace(r);
}

int rv_metadata_get(const struct rv_metadata_source *src, const char *const *names, size_t n, json_t **ret_pages,
        struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *pages = json_object();
        _cleanup_(rv_freep) const char **asked = calloc(n + 1, sizeof(*asked));
        size_t n_asked = 0;
        int r;

        if (!pages || !asked)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for %zu pages of the registry", n);
        if (!src->registry->index)
                return rv_error_set(err, rv_raise(-EINVAL),
                        "no registry of %s packages is known: set registries.%s.index in the configuration",
                        rv_language_name(src->registry->language), rv_language_name(src->registry->language));
        for (size_t i = 0; i < n; i++) {
                json_t *page;

                if (!is_name(src->registry->language, names[i]))
                        return rv_error_set(err, rv_raise(-EINVAL), "\"%.80s\" is no package's canonical name", names[i]);
                if (json_object_get(pages, names[i]))
                        continue;
                page = rv_metadata_cache_get(src, names[i]);
                if (!page)
                        asked[n_asked++] = names[i];
                if (json_object_set_new(pages, names[i], page ? page : json_null()) < 0)
                        return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for %zu pages of the registry", n);
        }
        r = ask_for(src, NULL, asked, n_asked, pages, err);
        if (r == 0)
                r = ask_further(src, asked, n_asked, pages, err);
        if (r < 0)
                return rv_trace(r);
        if (n_asked && src->cache_dir_fd >= 0)
                rv_metadata_cache_prune(src->cache_dir_fd, RV_METADATA_CACHE_FILES_MAX, RV_METADATA_CACHE_BYTES_MAX);
        *ret_pages = rv_take(&pages);
        return 0;
}
