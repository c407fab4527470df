/*
 * A document of an npm registry. What is taken is bounded and fit to be shown, addresses are http or https. Whatever
 * jansson reads as JSON the walker takes for JSON as well, and what it refuses jansson refuses.
 */
#include "fuzz.h"

#include "base/json_pull.h"
#include "package/index_npm.h"
#include "package/index_private.h"
#include "package/metadata.h"
#include "policy/constraint.h"

static void check_json(const char *text, size_t n)
{
        struct rv_pull p;
        json_t *value = NULL;
        bool is_json = rv_json_read(text, n, RV_PULL_DEPTH_MAX, &value, NULL) == 0;

        rv_pull_init(&p, text, n);
        rv_pull_skip(&p);
        FUZZ_CHECK(!is_json || rv_pull_end(&p));
        /* A text alone: both read the same. */
        rv_pull_init(&p, text, n);
        if (is_json && json_is_string(value)) {
                struct rv_buf out = { 0 };

                FUZZ_CHECK(
                        rv_pull_string(&p, &out) && rv_pull_end(&p) && strcmp(out.data, json_string_value(value)) == 0);
                rv_buf_fini(&out);
        }
        if (is_json && json_is_integer(value)) {
                int64_t number = 0;

                FUZZ_CHECK(!rv_pull_integer(&p, &number) || number == json_integer_value(value));
        }
        json_decref(value);
}

static void check_lists(const json_t *version)
{
        static const char *const names[] = { "os", "cpu", "libc" };
        json_t *entry;
        size_t i;

        for (size_t k = 0; k < RV_N_ELEMENTS(names); k++) {
                const json_t *list = json_object_get(version, names[k]);

                FUZZ_CHECK(!list || (json_array_size(list) > 0 && json_array_size(list) <= 32));
                json_array_foreach(list, i, entry)
                        FUZZ_CHECK(rv_index_is_line(json_string_value(entry), 64));
        }
}

static void check_page(const json_t *page)
{
        _cleanup_(rv_freep) const char **versions = NULL;
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        const char *latest = rv_json_get_string(page, "latest", NULL);
        size_t n = 0;

        FUZZ_CHECK(rv_metadata_versions(page, &versions, &n) == 0 && n == json_object_size(json_object_get(page, "versions")));
        FUZZ_CHECK(!latest || rv_metadata_version(page, latest));
        for (size_t i = 0; i < n; i++) {
                const json_t *v = json_object_get(json_object_get(page, "versions"), versions[i]), *at = json_object_get(v, "published_at");

                FUZZ_CHECK(rv_index_is_url(rv_json_get_string(v, "tarball", "")));
                FUZZ_CHECK(rv_index_is_line(rv_json_get_string(v, "integrity", "\n"), 1024));
                FUZZ_CHECK(rv_index_is_line(rv_json_get_string(v, "license", ""), 256) && rv_index_is_line(rv_json_get_string(v, "deprecated", ""), 256));
                FUZZ_CHECK(json_is_boolean(json_object_get(v, "install_script")) && (!at || json_integer_value(at) >= 0));
                check_lists(v);
        }
        FUZZ_CHECK(rv_json_canonical(page, &text) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rv_error err = { 0 };
        json_t *page = NULL;
        int r = rv_index_npm_read((const char *)data, size, "https://npm.example/a", "a", &page, &err);

        check_json((const char *)data, size);
        FUZZ_CHECK(r == 0 || (r == -EBADMSG && !page && fuzz_is_line(err.message)), "%d %s", r, err.message);
        if (r == 0)
                check_page(page);
        json_decref(page);
        return 0;
}
