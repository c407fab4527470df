#include "package/source.h"

#include "base/fd.h"
#include "base/hash.h"
#include "package/acquire_private.h"
#include "package/unpack.h"
#include "package/wheel_tags.h"
#include "policy/version.h"
#include "request/pyreq.h"

#include <string.h>
#include <unistd.h>

#define HEAD_DEPTH_MAX 4
#define BUILT_FILE "built"

static const char *name_of(const json_t *source)
{
        return rv_json_get_string(source, "name", "");
}

static const char *version_of(const json_t *source)
{
        return rv_json_get_string(source, "version", "");
}

/* ---- The archive ---- */

static int check_archive(const json_t *source, const struct rv_buf *body, struct rv_package_failure *f)
{
        const char *told = rv_json_get_string(source, "sha256", NULL);
        char hex[RV_SHA256_HEX_SIZE];

        rv_sha256_hex(body->data ? body->data : "", body->size, hex);
        if (!told || strcmp(told, hex) == 0)
                return 0;
        return rv__acquire_fail(f, RV_PACKAGE_INSTALL_FAILED, "hash_mismatch", false, name_of(source),
                                "%s %s: the source archive that came is not the one that the registry names by its hash; somebody has changed it, or the registry is damaged",
                                name_of(source), version_of(source));
}

int rv_source_fetch(const struct rv_acquire *in, const json_t *source, struct rv_buf *ret, struct rv_package_failure *f,
        struct rv_error *err)
{
        _cleanup_(rv_arena_fini) struct rv_arena arena = { 0 };
        struct rv_fetch_item item = { 0 };
        int r;

        r = rv_metadata_request(&in->source, json_object_get(source, "page"), rv_json_get_string(source, "url", ""), &arena, &item.q);
        if (r == RV_METADATA_E_HOST || r == -EINVAL)
                return rv__acquire_fail(f, RV_PACKAGE_UNAVAILABLE, "registry_invalid", false, name_of(source),
                                        "%s: its source archive is at a host that is not the registry's; name it in registries.python.files if it is to be trusted", name_of(source));
        if (r < 0)
                return rv_trace(r);
        item.q.method = "GET";
        item.q.max_bytes = RV_SOURCE_BYTES_MAX;
        item.q.timeout_ms = RV_FETCH_TIMEOUT_MS_MAX;
        r = rv_metadata_fetch(&in->source, &item, 1, -EBADF, err);
        if (r == 0 && (item.answer.code != RV_FETCH_OK || item.answer.status < 200 || item.answer.status > 299))
                r = rv__acquire_explain(&item, source, RV_SOURCE_BYTES_MAX, f);
        if (r == 0)
                r = check_archive(source, &item.answer.body, f);
        if (r == 0)
                r = rv_buf_append(ret, item.answer.body.data, item.answer.body.size);
        rv_metadata_request_wipe(&item.q);
        rv_fetch_answer_fini(&item.answer);
        return r < 0 ? rv_trace(r) : r;
}

/* ---- What a build says ---- */

static json_t *read_head(const char *text, size_t n, size_t *ret_head_bytes)
{
        const char *end = memchr(text, '\n', RV_MIN(n, RV_SOURCE_HEAD_MAX));
        json_t *head = NULL;

        if (!end || rv_json_read(text, (size_t)(end - text), HEAD_DEPTH_MAX, &head, NULL) < 0)
                return NULL;
        *ret_head_bytes = (size_t)(end - text) + 1;
        return head;
}

/* Texts of a build's own are quoted: they may be anything. */
static int refuse_requirement(const json_t *source, const char *text, const char *why, struct rv_package_failure *f)
{
        char quote[RV_FAULT_QUOTE_SIZE];

        return rv__acquire_fail(f, RV_PACKAGE_INSTALL_FAILED, "build_failed", false, name_of(source),
                                "%s %s cannot be built from its source: it says that it needs %s, which is not taken: %.200s", name_of(source), version_of(source),
                                rv_fault_quote(text, strlen(text), quote), why);
}

static int add_requirement(const json_t *source, const json_t *entry, json_t *into, struct rv_package_failure *f)
{
        const char *text = json_is_string(entry) ? json_string_value(entry) : "";
        struct rv_package package = { 0 };
        struct rv_fault fault = { 0 };
        const json_t *other;
        size_t i, at = 0;
        int r;

        if (strlen(text) != json_string_length(entry) || strlen(text) > 214)
                return refuse_requirement(source, "", "it is no text, or too long", f);
        r = rv_pyreq_parse(text, strlen(text), &package, &fault);
        if (r == RV_PYREQ_E_INVALID)
                return refuse_requirement(source, text, fault.message, f);
        rv_package_fini(&package);
        if (r < 0)
                return rv_trace(r);
        json_array_foreach(into, i, other) {
                int order = strcmp(json_string_value(other), text);

                if (order == 0)
                        return 0;
                at += order < 0;
        }
        if (json_array_size(into) == RV_SOURCE_REQUIRES_MAX)
                return refuse_requirement(source, text, "a build may need at most 50 packages", f);
        return json_array_insert_new(into, at, json_string(text)) < 0 ? rv_raise(-ENOMEM) : 0;
}

int rv_source_read_requires(
        const char *text, size_t n, const json_t *source, json_t *into, struct rv_package_failure *f)
{
        size_t head_bytes, i;
        _cleanup_(rv_json_unrefp) json_t *head = read_head(text, n, &head_bytes);
        const json_t *list = json_object_get(head, "requires"), *entry;
        int r = 0;

        if (!json_is_array(list))
                return RV_SOURCE_E_OTHER;
        json_array_foreach((json_t *)list, i, entry) {
                r = add_requirement(source, entry, into, f);
                if (r)
                        break;
        }
        return r < 0 ? rv_trace(r) : r;
}

static int refuse_wheel(
        const json_t *source, const char *cause, const char *file, const char *why, struct rv_package_failure *f)
{
        char quote[RV_FAULT_QUOTE_SIZE];

        return rv__acquire_fail(f, RV_PACKAGE_INSTALL_FAILED, cause, false, name_of(source), "%s %s was built from its source, and what came is %s, %s", name_of(source),
                                version_of(source), *file ? rv_fault_quote(file, strlen(file), quote) : "no wheel", why);
}

static bool is_version(struct rv_index_text text, const char *wanted)
{
        struct rv_version a, b;

        return rv_version_parse(RV_VERSION_PEP440, text.text, text.n, &a) == 0 &&
               rv_version_parse(RV_VERSION_PEP440, wanted, strlen(wanted), &b) == 0 && rv_version_compare(&a, &b) == 0;
}

int rv_source_read_wheel(const char *text, size_t n, const json_t *source, const char *tag, struct rv_source_wheel *ret,
        struct rv_package_failure *f)
{
        size_t head_bytes = 0;
        _cleanup_(rv_json_unrefp) json_t *head = read_head(text, n, &head_bytes);
        const char *file = rv_json_get_string(head, "file", "");
        struct rv_index_file parts;

        if (!*file || strlen(file) >= sizeof(ret->file) ||
            json_integer_value(json_object_get(head, "bytes")) != (json_int_t)(n - head_bytes))
                return refuse_wheel(source, "build_failed", "", "or not all of one", f);
        if (n - head_bytes > RV_SOURCE_BYTES_MAX)
                return refuse_wheel(source, "build_failed", file, "which is larger than is taken", f);
        if (!rv_index_file_parse(file, name_of(source), &parts) || parts.kind != RV_INDEX_WHEEL)
                return refuse_wheel(source, "name_mismatch", file, "no wheel of that package", f);
        if (!is_version(parts.version, version_of(source)))
                return refuse_wheel(source, "name_mismatch", file, "another version", f);
        if (rv_wheel_fit(&parts, tag) != RV_WHEEL_FITS)
                return refuse_wheel(source, "build_failed", file, "which this runtime cannot take", f);
        memcpy(ret->file, file, strlen(file) + 1);
        ret->data = text + head_bytes;
        ret->bytes = n - head_bytes;
        return 0;
}

int rv_source_check_wheel(const struct rv_acquire *in, const json_t *source, const struct rv_source_wheel *wheel,
        struct rv_package_failure *f, struct rv_error *err)
{
        _cleanup_(rv_json_unrefp) json_t *result = NULL;
        _cleanup_(rv_json_unrefp) json_t *job = json_pack("{s:s, s:[{s:s, s:O, s:O, s:s}]}", "language", "python", "artifacts", "file", BUILT_FILE, "name",
                                                          json_object_get(source, "name"), "version", json_object_get(source, "version"), "file_name", wheel->file);
        const json_t *fault;
        int r;

        if (!job)
                return rv_raise(-ENOMEM);
        r = rv_write_file_at(in->dir_fd, BUILT_FILE, wheel->data, wheel->bytes, 0644, false);
        if (r == 0)
                r = rv_unpack_scan(
                        in->unpack_fd, in->dir_fd, job, in->source.stop, in->source.deadline_us, &result, err);
        (void)unlinkat(in->dir_fd, BUILT_FILE, 0);
        if (r < 0)
                return rv_trace(r);
        fault = json_object_get(json_array_get(json_object_get(result, "artifacts"), 0), "fault");
        return fault ? rv_acquire_fault(fault, source, f) : 0;
}
