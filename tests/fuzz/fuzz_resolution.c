/*
 * What a resolver answered: a driver's whole document, or what uv, pip or npm is supposed to have said within one. What is
 * taken lies where it belongs, comes from the registry and is named; what is not taken is told in plain text; both are
 * the same the second time. The first byte says which: 1 npm's, 2 something was asked for, 4 the whole document.
 */
#include "fuzz.h"

#include "package/closure.h"
#include "package/closure_paths.h"
#include "package/npm_key.h"
#include "request/npmrange.h"
#include "request/pyreq.h"

#include <string.h>

static void check_package(enum rv_language language, const json_t *package, size_t n_packages)
{
        const char *name = rv_json_get_string(package, "name", ""), *url = rv_json_get_string(package, "url", "");
        const json_t *value;
        size_t i;

        FUZZ_CHECK(name[0] && rv_json_get_string(package, "version", "")[0] && rv_json_get_string(package, "requested", NULL));
        if (language == RV_LANGUAGE_PYTHON) {
                FUZZ_CHECK(strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(name), "%s", name);
                FUZZ_CHECK(!strchr(rv_json_get_string(package, "file", "/"), '/'));
                FUZZ_CHECK(!*url || strncasecmp(url, "http", 4) == 0, "%s", url);
                return;
        }
        FUZZ_CHECK(rv_npm_name_is_valid(name, strlen(name)), "%s", name);
        FUZZ_CHECK(strncmp(rv_json_get_string(package, "integrity", ""), "sha512-", 7) == 0);
        FUZZ_CHECK(json_array_size(json_object_get(package, "at")) > 0);
        json_array_foreach(json_object_get(package, "at"), i, value) {
                FUZZ_CHECK(rv_npm_key_is_valid(json_string_value(value)), "%s", json_string_value(value));
                FUZZ_CHECK(!strstr(json_string_value(value), "/../"));
        }
        json_array_foreach(json_object_get(package, "needs"), i, value)
                FUZZ_CHECK((size_t)json_integer_value(value) < n_packages);
}

static void check_packages(enum rv_language language, const json_t *closure)
{
        const json_t *packages = json_object_get(closure, "packages"), *package;
        json_t *paths = NULL;
        size_t i;

        FUZZ_CHECK(json_array_size(packages) <= RV_CLOSURE_PACKAGES_MAX);
        FUZZ_CHECK(rv_closure_paths(packages, &paths) == 0);
        json_array_foreach(packages, i, package) {
                const json_t *path = json_array_get(paths, i), *last = json_array_get(path, json_array_size(path) - 1);

                check_package(language, package, json_array_size(packages));
                FUZZ_CHECK(json_equal(last, json_object_get(package, "name")));
                FUZZ_CHECK(i == 0 || strcmp(rv_json_get_string(json_array_get(packages, i - 1), "name", ""), rv_json_get_string(package, "name", "")) <= 0);
        }
        json_decref(paths);
}

static void check_text(const char *text)
{
        FUZZ_CHECK(text);
        for (const char *p = text; *p; p++)
                FUZZ_CHECK((uint8_t)*p >= ' ' || *p == '\n', "%s", text);
}

static int read_once(enum rv_language language, const struct rv_buf *text, const struct rv_package *asked,
        size_t n_asked, struct rv_buf *out)
{
        struct rv_error err = { 0 };
        json_t *value = NULL;
        int r = rv_closure_read(language, text->data, text->size, asked, n_asked, &value, &err);

        FUZZ_CHECK((r < 0) == (value == NULL));
        FUZZ_CHECK(r == 0 || r == -EINVAL || (r > 0 && r <= RV_CLOSURE_E_TOO_LARGE));
        FUZZ_CHECK(r >= 0 || err.code == r);
        if (r == 0)
                check_packages(language, value);
        if (r == RV_CLOSURE_E_REFUSED || r == RV_CLOSURE_E_FAILED)
                check_text(rv_json_get_string(value, "text", NULL));
        if (value)
                FUZZ_CHECK(rv_json_canonical(value, out) == 0);
        json_decref(value);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const char head[] = "{\"schema\":\"reeve.closure/1\",\"ok\":true,\"tool\":{\"name\":\"x\"},\"runtime\":{\"interpreter\":\"/x\",\"tag\":\"node-linux-x64-glibc\"},";
        enum rv_language language = size && data[0] & 1 ? RV_LANGUAGE_JAVASCRIPT : RV_LANGUAGE_PYTHON;
        struct rv_buf text = { 0 }, first = { 0 }, second = { 0 };
        struct rv_package asked = { 0 };
        size_t n_asked = size && data[0] & 2 ? 1 : 0;

        if (size == 0)
                return 0;
        FUZZ_CHECK((language == RV_LANGUAGE_PYTHON ? rv_pyreq_parse("a>=1", 4, &asked, NULL) : rv_npmreq_parse("a@^1", 4, &asked, NULL)) == 0);
        if (!(data[0] & 4))
                rv_buf_printf(&text, "%s\"%s\":", head, language == RV_LANGUAGE_PYTHON ? "packages" : "lock");
        rv_buf_append(&text, data + 1, size - 1);
        if (!(data[0] & 4))
                rv_buf_putc(&text, '}');
        FUZZ_CHECK(rv_buf_error(&text) == 0);
        FUZZ_CHECK(read_once(language, &text, &asked, n_asked, &first) ==
                read_once(language, &text, &asked, n_asked, &second));
        FUZZ_CHECK(first.size == second.size && (first.size == 0 || memcmp(first.data, second.data, first.size) == 0));
        rv_buf_fini(&text);
        rv_buf_fini(&first);
        rv_buf_fini(&second);
        rv_package_fini(&asked);
        return 0;
}
