/*
 * A page of a Python index, in JSON or HTML. Whatever it is: what is taken is bounded, of the project, and fit to be
 * shown; addresses are http or https, absolute, without credentials, and stay what they are when read again. The first
 * byte says which form.
 */
#include "fuzz.h"

#include "package/index_private.h"
#include "package/metadata.h"
#include "policy/constraint.h"

#define BASE "https://index.example/simple/a/"

static void check_number(const json_t *file, const char *name)
{
        const json_t *value = json_object_get(file, name);

        FUZZ_CHECK(!value ||
                (json_is_integer(value) && json_integer_value(value) >= 0 &&
                        json_integer_value(value) < INT64_C(1) << 53));
}

static void check_url(const char *url)
{
        char again[RV_INDEX_URL_MAX];
        const char *fragment;
        size_t n_host = strcspn(strstr(url, "://") + 3, "/?#");

        FUZZ_CHECK(rv_index_is_url(url) && !strchr(url, '#'), "%s", url);
        FUZZ_CHECK(!memchr(strstr(url, "://") + 3, '@', n_host), "%s", url);
        FUZZ_CHECK(rv_index_url("http://other.example/x/y", url, again, &fragment) && strcmp(again, url) == 0, "%s: %s", url, again);
}

static void check_file(const char *version, json_t *file)
{
        const char *name = rv_json_get_string(file, "file", ""), *sha256 = rv_json_get_string(file, "sha256", NULL);
        struct rv_index_file parts;
        struct rv_version v, w;

        FUZZ_CHECK(fuzz_is_line(name) && strlen(name) <= RV_INDEX_NAME_MAX && rv_index_file_parse(name, "a", &parts), "%s", name);
        FUZZ_CHECK(rv_version_parse(RV_VERSION_PEP440, version, strlen(version), &v) == 0, "%s", version);
        FUZZ_CHECK(rv_version_parse(RV_VERSION_PEP440, parts.version.text, parts.version.n, &w) == 0 && rv_version_compare(&v, &w) == 0, "%s: %s", version, name);
        FUZZ_CHECK(json_is_boolean(json_object_get(file, "yanked")));
        FUZZ_CHECK(!sha256 || rv_index_is_hex(sha256, 64));
        FUZZ_CHECK(!json_object_get(file, "requires_python") || fuzz_is_line(rv_json_get_string(file, "requires_python", "")));
        check_number(file, "size_bytes");
        check_number(file, "published_at");
        check_url(rv_json_get_string(file, "url", ""));
}

static void check_page(const json_t *page)
{
        _cleanup_(rv_freep) const char **versions = NULL;
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        size_t n = 0;
        json_t *file;

        FUZZ_CHECK(rv_metadata_versions(page, &versions, &n) == 0 && n == json_object_size(json_object_get(page, "versions")));
        for (size_t i = 0; i < n; i++) {
                const json_t *entry = json_object_get(json_object_get(page, "versions"), versions[i]), *files = json_object_get(entry, "files");
                size_t k;

                FUZZ_CHECK(rv_metadata_version(page, versions[i]) == entry && json_array_size(files) > 0, "%s", versions[i]);
                json_array_foreach(files, k, file)
                        check_file(versions[i], file);
        }
        FUZZ_CHECK(rv_json_canonical(page, &text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rv_error err = { 0 };
        json_t *page = NULL;
        int r;

        if (size == 0)
                return 0;
        r = rv_index_python_read((const char *)data + 1, size - 1, data[0] & 1 ? "text/html" : "application/vnd.pypi.simple.v1+json", BASE, "a", &page, &err);
        FUZZ_CHECK(r == 0 || (r == -EBADMSG && !page && fuzz_is_line(err.message)), "%d %s", r, err.message);
        if (r == 0)
                check_page(page);
        json_decref(page);
        return 0;
}
