#include "package/index_private.h"

#include "base/json_pull.h"
#include "policy/constraint.h"

#include <string.h>
#include <strings.h>

#define REQUIRES_MAX 512u
#define SAFE_INTEGER_MAX INT64_C(9007199254740991)

bool rv__set_text(json_t *object, const char *name, const char *text, size_t max)
{
        return !*text || !rv_index_is_line(text, max) || json_object_set_new(object, name, json_string(text)) == 0;
}

bool rv__set_number(json_t *object, const char *name, int64_t value)
{
        return value < 0 || value > SAFE_INTEGER_MAX || json_object_set_new(object, name, json_integer(value)) == 0;
}

/* ---- A page in the making ---- */

int rv__page_init(struct rv__page *page, const char *url, const char *name)
{
        *page = (struct rv__page){ .name = name, .url = url, .versions = json_object() };
        return page->versions ? 0 : rv_raise(-ENOMEM);
}

void rv__page_fini(struct rv__page *page)
{
        json_decref(page->versions);
        page->versions = NULL;
}

static json_t *find_version(struct rv__page *page, const struct rv_index_file *parts)
{
        char name[RV_VERSION_SIZE_MAX + 16];
        struct rv_version v;
        json_t *version;

        if (rv_version_parse(RV_VERSION_PEP440, parts->version.text, parts->version.n, &v) < 0 ||
            rv_version_write(&v, name, sizeof(name)) < 0)
                return NULL;
        version = json_object_get(page->versions, name);
        if (version)
                return version;
        version = json_pack("{s:b, s:[]}", "yanked", 1, "files");
        if (!version || json_object_set_new(page->versions, name, version) < 0) {
                page->is_failed = true;
                return NULL;
        }
        return version;
}

static json_t *pack_file(const struct rv__page_file *f, const char *url, const char *sha256)
{
        json_t *file = json_pack("{s:s, s:s, s:b}", "file", f->file, "url", url, "yanked", f->is_yanked);
        char digest[65] = "";

        /* Of hexadecimal digits there is one spelling. */
        if (rv_index_is_hex(sha256, 64))
                for (size_t i = 0; i < 64; i++)
                        digest[i] = sha256[i] >= 'A' && sha256[i] <= 'F' ? (char)(sha256[i] | 0x20) : sha256[i];
        if (file && rv__set_text(file, "sha256", digest, 64) && rv__set_number(file, "size_bytes", f->size_bytes) &&
            rv__set_text(file, "requires_python", f->requires_python, REQUIRES_MAX) &&
            rv__set_number(file, "published_at", f->published_at))
                return file;
        json_decref(file);
        return NULL;
}

static void add_to_version(struct rv__page *page, json_t *version, const struct rv__page_file *f, json_t *file)
{
        const json_t *first = json_object_get(version, "published_at");

        if (!file || json_array_append_new(json_object_get(version, "files"), file) < 0)
                page->is_failed = true;
        if (!f->is_yanked && json_object_set_new(version, "yanked", json_false()) < 0)
                page->is_failed = true;
        if (f->published_at >= 0 && (!first || f->published_at < json_integer_value(first)) &&
            !rv__set_number(version, "published_at", f->published_at))
                page->is_failed = true;
}

bool rv__page_add_file(struct rv__page *page, const struct rv__page_file *f)
{
        char url[RV_INDEX_URL_MAX];
        struct rv_index_file parts;
        const char *fragment, *sha256 = f->sha256;
        json_t *version;

        if (!rv_index_is_line(f->file, RV_INDEX_NAME_MAX) || !rv_index_file_parse(f->file, page->name, &parts) ||
            !rv_index_url(page->url, f->url, url, &fragment))
                return false;
        if (page->n_files == RV_INDEX_FILES_MAX) {
                page->is_too_large = true;
                return false;
        }
        if (!*sha256 && strncmp(fragment, "sha256=", 7) == 0)
                sha256 = fragment + 7;
        version = find_version(page, &parts);
        if (!version)
                return false;
        page->n_files++;
        add_to_version(page, version, f, pack_file(f, url, sha256));
        return true;
}

int rv__page_take(struct rv__page *page, const char *language, json_t **ret, struct rv_error *err)
{
        json_t *root;

        if (page->is_too_large) {
                rv__page_fini(page);
                return rv_error_set(err, rv_raise(-EBADMSG), "it lists more than %u files", RV_INDEX_FILES_MAX);
        }
        root = page->is_failed ? NULL : json_pack("{s:s, s:s, s:s, s:s, s:i, s:O}", "name", page->name, "language", language, "status", "ok",
                                                  "text", "", "http_status", 200, "versions", page->versions);
        rv__page_fini(page);
        if (!root)
                return rv_error_set(err, rv_raise(-ENOMEM), "out of memory for a page of the registry");
        *ret = root;
        return 0;
}

/* ---- PEP 691 ---- */

struct reading {
        struct rv_pull pull;
        struct rv_buf name, file, url, sha256, requires_python, text;
        bool has_files;
};

static void take_hashes(struct reading *in)
{
        if (!rv_pull_enter(&in->pull, '{'))
                return;
        while (rv_pull_member(&in->pull, &in->text))
                if (strcmp(in->text.data, "sha256") == 0)
                        rv_pull_string(&in->pull, &in->sha256);
                else
                        rv_pull_skip(&in->pull);
}

static const char *text_of(const struct rv_buf *b)
{
        return b->size ? b->data : "";
}

static void take_member(struct reading *in, struct rv__page_file *f)
{
        const char *name = in->name.data;

        if (strcmp(name, "filename") == 0) {
                rv_pull_string(&in->pull, &in->file);
        } else if (strcmp(name, "url") == 0) {
                rv_pull_string(&in->pull, &in->url);
        } else if (strcmp(name, "requires-python") == 0) {
                rv_pull_string(&in->pull, &in->requires_python);
        } else if (strcmp(name, "hashes") == 0) {
                take_hashes(in);
        } else if (strcmp(name, "size") == 0) {
                rv_pull_integer(&in->pull, &f->size_bytes);
        } else if (strcmp(name, "upload-time") == 0) {
                if (rv_pull_string(&in->pull, &in->text) && !rv_index_time(in->text.data, &f->published_at))
                        f->published_at = -1;
        } else if (strcmp(name, "yanked") == 0) {
                /* A reason, or true. */
                f->is_yanked = rv_pull_kind(&in->pull) == '"' ? rv_pull_string(&in->pull, &in->text) && in->text.size
                                                              : rv_pull_bool(&in->pull);
        } else {
                rv_pull_skip(&in->pull);
        }
}

static void take_file(struct reading *in, struct rv__page *page)
{
        struct rv__page_file f = { .size_bytes = -1, .published_at = -1 };

        in->file.size = in->url.size = in->sha256.size = in->requires_python.size = 0;
        if (!rv_pull_enter(&in->pull, '{'))
                return;
        while (rv_pull_member(&in->pull, &in->name))
                take_member(in, &f);
        if (in->pull.is_failed)
                return;
        f.file = text_of(&in->file);
        f.url = text_of(&in->url);
        f.sha256 = text_of(&in->sha256);
        f.requires_python = text_of(&in->requires_python);
        rv__page_add_file(page, &f);
}

static bool read_json(struct reading *in, struct rv__page *page, const char *text, size_t n)
{
        rv_pull_init(&in->pull, text, n);
        if (rv_pull_enter(&in->pull, '{'))
                while (rv_pull_member(&in->pull, &in->name)) {
                        if (strcmp(in->name.data, "files") != 0) {
                                rv_pull_skip(&in->pull);
                                continue;
                        }
                        if (!rv_pull_enter(&in->pull, '['))
                                continue;
                        in->has_files = true;
                        while (rv_pull_element(&in->pull) && !page->is_failed && !page->is_too_large)
                                take_file(in, page);
                        if (page->is_failed || page->is_too_large)
                                return true;
                }
        return rv_pull_end(&in->pull) && in->has_files;
}

static void fini(struct reading *in)
{
        rv_buf_fini(&in->name);
        rv_buf_fini(&in->file);
        rv_buf_fini(&in->url);
        rv_buf_fini(&in->sha256);
        rv_buf_fini(&in->requires_python);
        rv_buf_fini(&in->text);
}

/* ---- Either ---- */

static bool is_type(const char *content_type, const char *type)
{
        size_t n = strlen(type);

        return strncasecmp(content_type, type, n) == 0 && strchr("; \t", content_type[n]);
}

int rv_index_python_read(const char *text, size_t n, const char *content_type, const char *url, const char *name,
        json_t **ret, struct rv_error *err)
{
        bool is_json = is_type(content_type, "application/vnd.pypi.simple.v1+json") ||
                       is_type(content_type, "application/vnd.pypi.simple.latest+json");
        bool is_html = is_type(content_type, "text/html") || is_type(content_type, "application/vnd.pypi.simple.v1+html") ||
                       is_type(content_type, "application/vnd.pypi.simple.latest+html");
        struct reading in = { 0 };
        struct rv__page page;
        bool is_page;
        int r;

        if (n > RV_INDEX_BYTES_MAX)
                return rv_error_set(err, rv_raise(-EBADMSG), "it has more than %zu bytes", RV_INDEX_BYTES_MAX);
        if (!is_json && !is_html)
                return rv_error_set(err, rv_raise(-EBADMSG), "its type is %.60s, which no index of packages has",
                                    *content_type && rv_index_is_line(content_type, 60) ? content_type : "not told, or unreadable");
        r = rv__page_init(&page, url, name);
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "out of memory for a page of the registry");
        is_page = is_json ? read_json(&in, &page, text, n) : rv__index_html_read(&page, text, n);
        fini(&in);
        if (!is_page && !page.is_failed) {
                rv__page_fini(&page);
                return rv_error_set(err, rv_raise(-EBADMSG), "it is no page of an index of packages: %s",
                                    is_json ? "its JSON is cut, ill-formed or of another kind" :
                                              "HTML without a link to a file of the project, such as a page for signing in");
        }
        return rv_trace(rv__page_take(&page, "python", ret, err));
}
