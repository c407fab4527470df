#include "package/acquire_private.h"

#include <stdio.h>
#include <string.h>

/* Artifacts into files, all with one helper. */

#define ARTIFACT_BYTES_MAX ((size_t)2 << 30)
#define NPM_MESSAGE "the registry does not say where the package is"

struct batch {
        struct rv_fetch_item *items;
        size_t *index;                   /* of each item's package */
        char (*files)[RV_ACQUIRE_FILE_SIZE];
        size_t n;
};

static void batch_fini(struct batch *b)
{
        for (size_t i = 0; i < b->n; i++) {
                rv_metadata_request_wipe(&b->items[i].q);
                rv_fetch_answer_fini(&b->items[i].answer);
        }
        free(b->items);
        free(b->index);
        free(b->files);
}

static int batch_init(struct batch *b, size_t n)
{
        b->items = calloc(n + 1, sizeof(*b->items));
        b->index = calloc(n + 1, sizeof(*b->index));
        b->files = calloc(n + 1, sizeof(*b->files));
        return b->items && b->index && b->files ? 0 : rv_raise(-ENOMEM);
}

/* Where it is: a closure or a lock says so of Python; npm's registry does on the package's page. NULL: not known. */
static const char *find_url(const struct rv_acquire *in, const json_t *package, const json_t *page)
{
        const char *url = rv_json_get_string(package, "url", NULL);
        const json_t *version;

        if (url || in->language == RV_LANGUAGE_PYTHON || !page)
                return url;
        version = rv_metadata_version(page, rv_json_get_string(package, "version", ""));
        return rv_json_get_string(version, "tarball", NULL);
}

/* It joins the batch, unless it is there, or has to wait for its page. */
static int add(const struct rv_acquire *in, const json_t *package, size_t index, struct rv_artifact *a,
        const json_t *pages, struct batch *b, struct rv_package_failure *f)
{
        const char *name = rv_json_get_string(package, "name", "");
        const json_t *page = json_object_get(pages, name);
        const char *url = find_url(in, package, page);
        struct rv_fetch_item *item = &b->items[b->n];
        int r;

        if (a->is_there)
                return 0;
        if (rv__acquire_is_built(package))
                return rv__acquire_take_built(in, package, index, a, f);
        if (!url && !pages)
                return 0;
        if (!url)
                return rv__acquire_fail(f, "package_unavailable", "registry_invalid", true, name, "%s %s: " NPM_MESSAGE, name, rv_json_get_string(package, "version", ""));
        r = rv_metadata_request(&in->source, page, url, a->arena, &item->q);
        if (r == RV_METADATA_E_HOST && !pages)
                return 0;
        if (r == RV_METADATA_E_HOST || r == -EINVAL)
                return rv__acquire_fail(f, "package_unavailable", "registry_invalid", false, name,
                                        "%s: its file is at a host that is not the registry's; name it in registries.%s.files if it is to be trusted", name, rv_language_name(in->language));
        if (r < 0)
                return rv_trace(r);
        item->q.method = "GET";
        item->q.max_bytes = ARTIFACT_BYTES_MAX;
        item->q.timeout_ms = RV_FETCH_TIMEOUT_MS_MAX;
        a->url = rv_arena_strdup(a->arena, url);
        if (!a->url)
                return rv_raise(-ENOMEM);
        rv_acquire_file(index, b->files[b->n]);
        if (in->prefetched && rv_prefetched_take(in->prefetched, in->dir_fd, url, b->files[b->n])) {
                a->is_there = a->is_prefetched = true;
                return 0;
        }
        item->file = b->files[b->n];
        b->index[b->n++] = index;
        return 0;
}

/* What came in place of an artifact, told of the registry. */
int rv__acquire_explain(
        const struct rv_fetch_item *item, const json_t *package, size_t most, struct rv_package_failure *f)
{
        const char *name = rv_json_get_string(package, "name", ""), *version = rv_json_get_string(package, "version", "");
        const struct rv_fetch_answer *a = &item->answer;

        switch (a->code) {
        case RV_FETCH_OK:
                break;
        case RV_FETCH_TLS:
                return rv__acquire_fail(f, "package_unavailable", "registry_tls", false, name, "%s %s cannot be fetched: %s; see the registry's certificates (registries.*.ca)", name, version, a->message);
        case RV_FETCH_REFUSED_ADDRESS:
        case RV_FETCH_REDIRECT_REFUSED:
                return rv__acquire_fail(f, "package_unavailable", "registry_refused", false, name, "%s %s cannot be fetched: %s", name, version, a->message);
        case RV_FETCH_TOO_LARGE:
                return rv__acquire_fail(f, "package_install_failed", "unsafe_archive", false, name, "%s %s is larger than %zu MiB", name, version, most >> 20);
        case RV_FETCH_INTERNAL:
                return rv__acquire_fail(f, "package_install_failed", "build_failed", true, name, "%s %s cannot be kept: %s; see the disk that state_dir is on", name, version, a->message);
        case RV_FETCH_PROTOCOL:
                return rv__acquire_fail(f, "package_unavailable", "registry_invalid", true, name, "%s %s cannot be fetched: %s", name, version, a->message);
        default:
                return rv__acquire_fail(f, "package_unavailable", "registry_unreachable", true, name, "%s %s cannot be fetched: %s; try again", name, version, a->message);
        }
        if (a->status >= 500 || a->status == 429)
                return rv__acquire_fail(f, "package_unavailable", "registry_error", true, name, "%s %s cannot be fetched: the registry answered %d; try again", name, version, a->status);
        if (a->status == 401 || a->status == 403 || a->status == 407)
                return rv__acquire_fail(f, "package_unavailable", "registry_refused", true, name, "%s %s cannot be fetched: the registry answered %d", name, version, a->status);
        return rv__acquire_fail(f, "package_unavailable", "registry_invalid", true, name, "%s %s cannot be fetched: the registry lists it and answered %d", name, version, a->status);
}

static int send(const struct rv_acquire *in, const json_t *packages, struct rv_artifact *artifacts, struct batch *b,
        struct rv_package_failure *f, struct rv_error *err)
{
        int r;

        if (!b->n)
                return 0;
        r = rv_metadata_fetch(&in->source, b->items, b->n, in->dir_fd, err);
        if (r < 0)
                return rv_trace(r);
        for (size_t i = 0; i < b->n; i++) {
                if (b->items[i].answer.code != RV_FETCH_OK || b->items[i].answer.status < 200 ||
                        b->items[i].answer.status > 299)
                        return rv__acquire_explain(
                                &b->items[i], json_array_get(packages, b->index[i]), ARTIFACT_BYTES_MAX, f);
                artifacts[b->index[i]].is_there = true;
        }
        return 0;
}

int rv__acquire_fetch(const struct rv_acquire *in, const json_t *packages, struct rv_artifact *artifacts,
        const json_t *pages, struct rv_package_failure *f, struct rv_error *err)
{
        struct batch b = { 0 };
        size_t n = json_array_size(packages);
        int r = batch_init(&b, n);

        for (size_t i = 0; i < n && r == 0; i++)
                r = add(in, json_array_get(packages, i), i, &artifacts[i], pages, &b, f);
        if (r == 0)
                r = send(in, packages, artifacts, &b, f, err);
        batch_fini(&b);
        return r < 0 ? rv_trace(r) : r;
}
