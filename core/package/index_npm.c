#include "package/index_npm.h"

#include "package/index_private.h"

#include "base/json_pull.h"
#include "policy/constraint.h"

#include <string.h>

#define INTEGRITY_MAX 1024u
#define LICENSE_MAX 256u
#define DEPRECATED_MAX 256u
#define PLATFORMS_MAX 32u            /* names in each of os, cpu and libc */
#define DEPTH_NAMES_MAX 64u

struct reading {
        struct rv_pull pull;
        struct rv__page page;
        json_t *times;               /* by version */
        struct rv_buf name, version, text, latest;
        bool has_versions, is_other; /* it is another package's */
};

/* One version as it is read. */
struct entry {
        struct rv_buf tarball, integrity, license, deprecated;
        json_t *lists;               /* os, cpu, libc */
        bool has_script;
};

static const char *text_of(const struct rv_buf *b)
{
        return b->size && b->data ? b->data : "";
}

static void take_dist(struct reading *in, struct entry *e)
{
        if (!rv_pull_enter(&in->pull, '{'))
                return;
        while (rv_pull_member(&in->pull, &in->name))
                if (strcmp(in->name.data, "tarball") == 0)
                        rv_pull_string(&in->pull, &e->tarball);
                else if (strcmp(in->name.data, "integrity") == 0)
                        rv_pull_string(&in->pull, &e->integrity);
                else
                        rv_pull_skip(&in->pull);
}

/* npm runs these at an installation. */
static void take_scripts(struct reading *in, struct entry *e)
{
        if (!rv_pull_enter(&in->pull, '{'))
                return;
        while (rv_pull_member(&in->pull, &in->name)) {
                const char *name = in->name.data;

                if (strcmp(name, "install") == 0 || strcmp(name, "preinstall") == 0 || strcmp(name, "postinstall") == 0)
                        e->has_script = true;
                rv_pull_skip(&in->pull);
        }
}

/* A text, or what it was long ago: {"type": text}. */
static void take_license(struct reading *in, struct entry *e)
{
        if (rv_pull_kind(&in->pull) != '{') {
                rv_pull_string(&in->pull, &e->license);
                return;
        }
        rv_pull_enter(&in->pull, '{');
        while (rv_pull_member(&in->pull, &in->name))
                if (strcmp(in->name.data, "type") == 0)
                        rv_pull_string(&in->pull, &e->license);
                else
                        rv_pull_skip(&in->pull);
}

static void add_platform(struct reading *in, json_t *list)
{
        if (rv_pull_string(&in->pull, &in->text) && rv_index_is_line(in->text.data, DEPTH_NAMES_MAX) &&
            json_array_size(list) < PLATFORMS_MAX && json_array_append_new(list, json_string(in->text.data)) < 0)
                in->page.is_failed = true;
}

/* Names, or one, such as "linux" or "!win32". */
static void take_platforms(struct reading *in, struct entry *e, const char *what)
{
        json_t *list = json_array();

        if (!list || json_object_set_new(e->lists, what, list) < 0) {
                in->page.is_failed = true;
                rv_pull_skip(&in->pull);
        } else if (rv_pull_kind(&in->pull) != '[') {
                add_platform(in, list);
        } else if (rv_pull_enter(&in->pull, '[')) {
                while (rv_pull_element(&in->pull))
                        add_platform(in, list);
        }
        if (list && json_array_size(list) == 0)
                json_object_del(e->lists, what);
}

static void take_member(struct reading *in, struct entry *e)
{
        static const char *const lists[] = { "os", "cpu", "libc" };
        const char *name = in->name.data;

        for (size_t i = 0; i < RV_N_ELEMENTS(lists); i++)
                if (strcmp(name, lists[i]) == 0) {
                        take_platforms(in, e, lists[i]);
                        return;
                }
        if (strcmp(name, "dist") == 0)
                take_dist(in, e);
        else if (strcmp(name, "scripts") == 0)
                take_scripts(in, e);
        else if (strcmp(name, "license") == 0)
                take_license(in, e);
        else if (strcmp(name, "deprecated") == 0)
                rv_pull_string(&in->pull, &e->deprecated);
        else if (strcmp(name, "hasInstallScript") == 0)
                e->has_script = rv_pull_bool(&in->pull) || e->has_script;
        else
                rv_pull_skip(&in->pull);
}

static void add_version(struct reading *in, struct entry *e)
{
        char url[RV_INDEX_URL_MAX], name[RV_VERSION_SIZE_MAX + 16];
        struct rv_version v;
        const char *fragment;
        json_t *version;

        if (rv_version_parse(RV_VERSION_SEMVER, text_of(&in->version), in->version.size, &v) < 0 || v.n_segments != 3 ||
                rv_version_write(&v, name, sizeof(name)) < 0 ||
                !rv_index_url(in->page.url, text_of(&e->tarball), url, &fragment) || !*text_of(&e->tarball))
                return;
        if (in->page.n_files++ == RV_INDEX_FILES_MAX) {
                in->page.is_too_large = true;
                return;
        }
        version = json_pack("{s:s, s:s, s:b}", "tarball", url, "integrity",
                            rv_index_is_line(text_of(&e->integrity), INTEGRITY_MAX) ? text_of(&e->integrity) : "", "install_script",
                            e->has_script);
        if (!version || !rv__set_text(version, "license", text_of(&e->license), LICENSE_MAX) ||
            !rv__set_text(version, "deprecated", text_of(&e->deprecated), DEPRECATED_MAX) || json_object_update(version, e->lists) < 0)
                in->page.is_failed = true;
        if (version && json_object_set_new(in->page.versions, name, version) < 0)
                in->page.is_failed = true;
}

static void take_version(struct reading *in, struct entry *e)
{
        e->tarball.size = e->integrity.size = e->license.size = e->deprecated.size = 0;
        e->has_script = false;
        json_object_clear(e->lists);
        if (!rv_pull_enter(&in->pull, '{'))
                return;
        while (rv_pull_member(&in->pull, &in->name))
                take_member(in, e);
        if (!in->pull.is_failed)
                add_version(in, e);
}

static void take_versions(struct reading *in)
{
        struct entry e = { .lists = json_object() };

        if (!e.lists)
                in->page.is_failed = true;
        if (!rv_pull_enter(&in->pull, '{')) {
                json_decref(e.lists);
                return;
        }
        in->has_versions = true;
        while (rv_pull_member(&in->pull, &in->version) && !in->page.is_failed && !in->page.is_too_large)
                take_version(in, &e);
        json_decref(e.lists);
        rv_buf_fini(&e.tarball);
        rv_buf_fini(&e.integrity);
        rv_buf_fini(&e.license);
        rv_buf_fini(&e.deprecated);
}

static void take_times(struct reading *in)
{
        int64_t at;

        if (!rv_pull_enter(&in->pull, '{'))
                return;
        while (rv_pull_member(&in->pull, &in->name))
                if (rv_pull_string(&in->pull, &in->text) && rv_index_time(in->text.data, &at) &&
                    json_object_size(in->times) < RV_INDEX_FILES_MAX &&
                    json_object_set_new(in->times, in->name.data, json_integer(at)) < 0)
                        in->page.is_failed = true;
}

static void take_tags(struct reading *in)
{
        if (!rv_pull_enter(&in->pull, '{'))
                return;
        while (rv_pull_member(&in->pull, &in->name))
                if (strcmp(in->name.data, "latest") == 0)
                        rv_pull_string(&in->pull, &in->latest);
                else
                        rv_pull_skip(&in->pull);
}

static void take(struct reading *in)
{
        const char *name = in->name.data;

        if (strcmp(name, "versions") == 0)
                take_versions(in);
        else if (strcmp(name, "time") == 0)
                take_times(in);
        else if (strcmp(name, "dist-tags") == 0)
                take_tags(in);
        else if (strcmp(name, "name") == 0)
                in->is_other = rv_pull_string(&in->pull, &in->text) && strcmp(in->text.data, in->page.name) != 0;
        else
                rv_pull_skip(&in->pull);
}

static bool read_document(struct reading *in, const char *text, size_t n)
{
        rv_pull_init(&in->pull, text, n);
        if (rv_pull_enter(&in->pull, '{'))
                while (rv_pull_member(&in->pull, &in->name) && !in->page.is_failed) {
                        take(in);
                        if (in->page.is_too_large)
                                return true;
                }
        return rv_pull_end(&in->pull) && in->has_versions && !in->is_other;
}

/* Times and tags that belong to a version there is. */
static int finish(struct reading *in, json_t *page)
{
        json_t *versions = json_object_get(page, "versions"), *at, *version;
        const char *name;

        json_object_foreach(in->times, name, at) {
                version = json_object_get(versions, name);
                if (version && json_object_set(version, "published_at", at) < 0)
                        return rv_raise(-ENOMEM);
        }
        if (json_object_get(versions, text_of(&in->latest)) &&
            json_object_set_new(page, "latest", json_string(text_of(&in->latest))) < 0)
                return rv_raise(-ENOMEM);
        return 0;
}

static int read(struct reading *in, const char *text, size_t n, json_t **ret, struct rv_error *err)
{
        bool is_document = read_document(in, text, n);
        json_t *page;
        int r;

        if (!is_document && !in->page.is_failed)
                return rv_error_set(err, rv_raise(-EBADMSG), "it is no document of an npm registry: %s",
                                    in->is_other ? "it is of another package" : "its JSON is cut, ill-formed or of another kind");
        r = rv__page_take(&in->page, "javascript", &page, err);
        if (r < 0)
                return rv_trace(r);
        r = finish(in, page);
        if (r < 0) {
                json_decref(page);
                return rv_error_set(err, rv_trace(r), "out of memory for a document of the registry");
        }
        *ret = page;
        return 0;
}

int rv_index_npm_read(const char *text, size_t n, const char *url, const char *name, json_t **ret, struct rv_error *err)
{
        struct reading in = { .times = json_object() };
        int r;

        if (n > RV_INDEX_BYTES_MAX) {
                json_decref(in.times);
                return rv_error_set(err, rv_raise(-EBADMSG), "it has more than %zu bytes", RV_INDEX_BYTES_MAX);
        }
        r = rv__page_init(&in.page, url, name);
        if (r < 0 || !in.times)
                r = rv_error_set(err, rv_raise(-ENOMEM), "out of memory for a document of the registry");
        else
                r = read(&in, text, n, ret, err);
        rv__page_fini(&in.page);
        json_decref(in.times);
        rv_buf_fini(&in.name);
        rv_buf_fini(&in.version);
        rv_buf_fini(&in.text);
        rv_buf_fini(&in.latest);
        return rv_trace(r);
}
