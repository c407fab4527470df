/* A lock is taken whole or not at all: each fault with where it is, what it is and what to do; its digest names just what is installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "package/lock.h"

#include "test_package_lock.h"

static json_t *from(const char *text)
{
        json_error_t error;
        json_t *value = json_loads(text, JSON_DECODE_ANY | JSON_ALLOW_NUL, &error);

        if (!value)
                fail_msg("%s: %s", error.text, text);
        return value;
}

/* Sets the member or element at @path ("packages/0/name"; a last part "+" appends); NULL removes it. */
static void edit(json_t *root, const char *path, const char *text)
{
        char copy[256], *part, *rest = copy, *last;
        json_t *at = root;

        snprintf(copy, sizeof(copy), "%s", path);
        last = strrchr(copy, '/');
        last = last ? last + 1 : copy;
        while ((part = strsep(&rest, "/")) && part != last)
                at = json_is_array(at) ? json_array_get(at, strtoul(part, NULL, 10)) : json_object_get(at, part);
        assert_non_null(at);
        if (json_is_array(at) && *last == '+')
                json_array_append_new(at, from(text));
        else if (json_is_array(at) && text)
                json_array_set_new(at, strtoul(last, NULL, 10), from(text));
        else if (json_is_array(at))
                json_array_remove(at, strtoul(last, NULL, 10));
        else if (text)
                json_object_set_new(at, last, from(text));
        else
                json_object_del(at, last);
}

#define PY lock_python
#define JS lock_javascript

static const struct {
        const char *name, *base, *path, *value, *says;   /* says NULL: it is taken */
} rows[] = {
        { "schema", PY, "schema", "\"reeve.lock/2\"", "lock: /schema: it needs \"reeve.lock/1\", which \"reeve.lock/2\" is not; make the lock anew" },
        { "no schema", PY, "schema", NULL, "/schema: it is missing" },
        { "language", PY, "language", "\"ruby\"", "/language: it needs \"python\" or \"javascript\"" },
        { "language of another kind", PY, "language", "7", "/language: it needs a text" },
        { "a further member", PY, "note", "1", "lock: the document: there is no member \"note\" here" },
        { "no runtime", PY, "runtime", NULL, "/runtime: it is missing: it needs an object" },
        { "tag with a slash", PY, "runtime/tag", "\"a/b\"", "/runtime/tag: it needs a tag" },
        { "runtime's version", PY, "runtime/version", "\"3\"", "/runtime/version: it needs two numbers" },
        { "runtime's version with a letter", PY, "runtime/version", "\"3.1a\"", "/runtime/version" },
        { "javascript has no such version", JS, "runtime/version", "\"20.1\"", "/runtime/version: it needs an empty text" },
        { "interpreter relative", PY, "runtime/interpreter", "\"python3\"", "/runtime/interpreter: it needs an absolute path" },
        { "interpreter above", PY, "runtime/interpreter", "\"/usr/../x\"", "/runtime/interpreter" },
        { "interpreter with two slashes", PY, "runtime/interpreter", "\"/usr//x\"", "/runtime/interpreter" },
        { "a further member of runtime", PY, "runtime/x", "1", "lock: /runtime: there is no member \"x\" here" },
        { "packages of another kind", PY, "packages", "{}", "/packages: it needs a list" },
        { "no package", PY, "packages", "[]", "/packages: it has 0 entries, and needs 1 to 2000" },
        { "package of another kind", PY, "packages/0", "\"idna\"", "/packages/0: it needs an object" },
        { "name with capitals", PY, "packages/0/name", "\"Idna\"", "/packages/0/name: it needs a name in canonical form" },
        { "name with an underscore", PY, "packages/0/name", "\"a_b\"", "/packages/0/name" },
        { "name with two hyphens", PY, "packages/0/name", "\"a--b\"", "/packages/0/name" },
        { "name like an option", PY, "packages/0/name", "\"-r\"", "/packages/0/name" },
        { "name empty", PY, "packages/0/name", "\"\"", "/packages/0/name" },
        { "name of npm like an option", JS, "packages/1/name", "\"-g\"", "/packages/1/name: it needs an npm name" },
        { "name of npm that is hidden", JS, "packages/1/name", "\".bin\"", "/packages/1/name" },
        { "name of npm with a path", JS, "packages/1/name", "\"a/b\"", "/packages/1/name" },
        { "scope empty", JS, "packages/1/name", "\"@/b\"", "/packages/1/name" },
        { "scope alone", JS, "packages/1/name", "\"@a\"", "/packages/1/name" },
        { "two scopes", JS, "packages/1/name", "\"@a/@b/c\"", "/packages/1/name" },
        { "reserved name", JS, "packages/1/name", "\"node_modules\"", "/packages/1/name" },
        { "version open", PY, "packages/0/version", "\"3.*\"", "/packages/0/version: it needs one exact version" },
        { "version with a blank", PY, "packages/0/version", "\"3.4 \"", "/packages/0/version" },
        { "version with a letter first", PY, "packages/0/version", "\"v3.4\"", "/packages/0/version" },
        { "version of nothing", PY, "packages/0/version", "\"\"", "/packages/0/version" },
        { "version with all that can be", PY, "packages/0/version", "\"1!3.4rc1.post2.dev3+local.7\"", NULL },
        { "version of two numbers", JS, "packages/0/version", "\"1.0\"", "/packages/0/version: it needs one exact version" },
        { "version that is a range", JS, "packages/0/version", "\"1.0.0-\"", "/packages/0/version" },
        { "version with a build", JS, "packages/0/version", "\"1.0.0+b.1\"", NULL },
        { "file with a slash", PY, "packages/0/file", "\"../x.whl\"", "/packages/0/file: it needs a file's name" },
        { "file hidden", PY, "packages/0/file", "\".x.whl\"", "/packages/0/file" },
        { "file like an option", PY, "packages/0/file", "\"-x.whl\"", "/packages/0/file" },
        { "file with NUL", PY, "packages/0/file", "\"a\\u0000b\"", "/packages/0/file: it needs a text without NUL" },
        { "hash of another kind", PY, "packages/0/hash", "\"md5:0123\"", "/packages/0/hash: it needs \"sha256:\" and 64 digits" },
        { "hash with capitals", PY, "packages/0/hash", "\"sha256:ABCDEF6789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"", "/packages/0/hash" },
        { "hash too short", PY, "packages/0/hash", "\"sha256:0123\"", "/packages/0/hash" },
        { "no hash", PY, "packages/0/hash", NULL, "/packages/0/hash: it is missing" },
        { "url of another scheme", PY, "packages/0/url", "\"file:///etc/passwd\"", "/packages/0/url: it needs an http or https URL" },
        { "url with credentials", PY, "packages/0/url", "\"https://u:p@registry.example/x\"", "/packages/0/url" },
        { "url with a fragment", PY, "packages/0/url", "\"https://registry.example/x#y\"", "/packages/0/url" },
        { "url without a host", PY, "packages/0/url", "\"https:///x\"", "/packages/0/url" },
        { "url with a port alone", PY, "packages/0/url", "\"https://:80/x\"", "/packages/0/url" },
        { "url with a line", PY, "packages/0/url", "\"https://registry.example/\\nx\"", "/packages/0/url" },
        { "at sign in a path", PY, "packages/0/url", "\"https://registry.example/@a/x?y=@\"", NULL },
        { "kind", PY, "packages/0/kind", "\"npm\"", "/packages/0/kind: it needs \"wheel\" or \"built\"" },
        { "kind of npm", JS, "packages/0/kind", "\"wheel\"", "/packages/0/kind: it needs \"npm\"" },
        { "built, and at a place", PY, "packages/0/kind", "\"built\"", "/packages/0/url: it needs an empty text, as the package is built" },
        { "at no place, and not built", PY, "packages/0/url", "\"\"", "/packages/0/url: it needs an http or https URL" },
        { "at no place, of npm", JS, "packages/0/url", "\"\"", "/packages/0/url: it needs an http or https URL" },
        { "size below 0", PY, "packages/0/size_bytes", "-1", "/packages/0/size_bytes: it needs a number from 0 to 2^53-1" },
        { "size too large", PY, "packages/0/size_bytes", "9007199254740992", "/packages/0/size_bytes" },
        { "size not whole", PY, "packages/0/size_bytes", "1.0", "/packages/0/size_bytes: it needs an integer" },
        { "published_at of another kind", PY, "packages/0/published_at", "\"2020\"", "/packages/0/published_at: it needs an integer" },
        { "published_at is not known", PY, "packages/0/published_at", NULL, NULL },
        { "license with a line", PY, "packages/0/license", "\"a\\nb\"", "/packages/0/license: it needs a text without control characters" },
        { "license with an old control character", PY, "packages/0/license", "\"a\\u0085b\"", "/packages/0/license" },
        { "license that ends a line", PY, "packages/0/license", "\"a\\u2028b\"", "/packages/0/license" },
        { "license in other letters", PY, "packages/0/license", "\"\\u00e9 \\u2019 \\u65e5\"", NULL },
        { "direct of another kind", PY, "packages/0/direct", "0", "/packages/0/direct: it needs true or false" },
        { "direct, not asked for", PY, "packages/1/requested", "\"\"", "/packages/1/requested: it needs the text that was asked for" },
        { "asked for, not direct", PY, "packages/0/requested", "\"idna>=3\"", "/packages/0/requested: it needs to be empty" },
        { "extras of another kind", PY, "packages/0/extras", "\"x\"", "/packages/0/extras: it needs a list" },
        { "extras twice", PY, "packages/0/extras", "[\"a\",\"a\"]", "/packages/0/extras/1: entries stand in order, each once" },
        { "extras not in order", PY, "packages/0/extras", "[\"b\",\"a\"]", "/packages/0/extras/1" },
        { "an extra's name", PY, "packages/0/extras", "[\"A\"]", "/packages/0/extras/0" },
        { "extras", PY, "packages/0/extras", "[\"a\",\"b\"]", NULL },
        { "no registry_hash", PY, "packages/0/registry_hash", NULL, "/packages/0/registry_hash: it is missing" },
        { "yanked of another kind", PY, "packages/0/yanked", "null", "/packages/0/yanked" },
        { "path empty", PY, "packages/0/path", "[]", "/packages/0/path: it has 0 entries" },
        { "path ends elsewhere", PY, "packages/0/path", "[\"requests\",\"requests\"]", "/packages/0/path: it needs to end with the package itself" },
        { "path through nothing", PY, "packages/0/path", "[\"nothing\",\"idna\"]", "/packages/0/path/0: it needs the name of a package of this lock, which \"nothing\" is not" },
        { "path from what nobody asked for", PY, "packages/0/path", "[\"idna\",\"idna\"]", "/packages/0/path/0: it needs the name of a direct package" },
        { "path of a direct one", PY, "packages/1/path", "[\"idna\",\"requests\"]", "/packages/1/path: it needs to be the package alone" },
        { "path of an indirect one", PY, "packages/0/path", "[\"idna\"]", "/packages/0/path: it needs two names or more" },
        { "a further member of a package", PY, "packages/0/at", "[]", "lock: /packages/0: there is no member \"at\" here" },
        { "a further member with a line in it", PY, "packages/0/a\nb", "[]", "there is no member \"a\\010b\" here" },
        { "no integrity", JS, "packages/0/integrity", NULL, "/packages/0/integrity: it is missing" },
        { "integrity of another kind", JS, "packages/0/integrity", "\"sha1-AAAA\"", "/packages/0/integrity: it needs \"sha512-\"" },
        { "integrity too short", JS, "packages/0/integrity", "\"sha512-AAAA\"", "/packages/0/integrity" },
        { "no place", JS, "packages/0/at", "[]", "/packages/0/at: it has 0 entries" },
        { "place elsewhere", JS, "packages/0/at", "[\"../../etc\"]", "/packages/0/at/0: it needs a place like node_modules/NAME" },
        { "place above", JS, "packages/0/at", "[\"node_modules/..\"]", "/packages/0/at/0" },
        { "place within a package", JS, "packages/0/at", "[\"node_modules/a/b\"]", "/packages/0/at/0" },
        { "place that ends in a slash", JS, "packages/0/at", "[\"node_modules/a/\"]", "/packages/0/at/0" },
        { "place that begins with one", JS, "packages/0/at", "[\"/node_modules/a\"]", "/packages/0/at/0" },
        { "place that is hidden", JS, "packages/0/at", "[\"node_modules/.bin\"]", "/packages/0/at/0" },
        { "place that is the folder", JS, "packages/0/at", "[\"node_modules/node_modules\"]", "/packages/0/at/0" },
        { "place of a scope", JS, "packages/0/at", "[\"node_modules/@a\"]", "/packages/0/at/0" },
        { "place within nothing", JS, "packages/0/at", "[\"node_modules/@a/x\",\"node_modules/q/node_modules/r\"]", "/packages/0/at/1: it needs a place within a package of this lock" },
        { "place taken", JS, "packages/2/at", "[\"node_modules/JSONStream\"]", "/packages/2/at/0: another package has this place already" },
        { "places not in order", JS, "packages/1/at", "[\"node_modules/b\",\"node_modules/a\"]", "/packages/1/at/1: entries stand in order" },
        { "not sorted", PY, "packages/0/name", "\"zzz\"", "/packages/0/path: it needs to end with the package itself" },
        { "not sorted by version", JS, "packages/1/version", "\"9.0.0\"", "/packages/2: packages stand sorted by name and version" },
        { "listed twice", JS, "packages/2/version", "\"1.3.5\"", "/packages/2/version: this version of the package is listed twice" },
};

static void faults(void **state)
{
        size_t n_wrong = 0;

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_json_unrefp) json_t *lock = from(rows[i].base);
                struct rv_error err = { 0 };
                int r;

                edit(lock, rows[i].path, rows[i].value);
                r = rv_lock_check(lock, &err);
                if (rows[i].says ? r == -EINVAL && strstr(err.message, rows[i].says) && strstr(err.message, "reeve package lock") : r == 0)
                        continue;
                print_error("%s: %d %s\n", rows[i].name, r, err.message);
                n_wrong++;
        }
        assert_int_equal(n_wrong, 0);
}

static void built_and_nowhere(void **state)
{
        json_t *lock = from(PY);
        struct rv_error err = { 0 };

        (void)state;
        edit(lock, "packages/0/kind", "\"built\"");
        edit(lock, "packages/0/url", "\"\"");
        assert_int_equal(rv_lock_check(lock, &err), 0);
        json_decref(lock);
}

static void order_of_python(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *lock = from(lock_python), *first = NULL;
        json_t *list = json_object_get(lock, "packages");
        struct rv_error err = { 0 }, other = { 0 };

        (void)state;
        first = json_deep_copy(json_array_get(list, 0));
        json_array_insert(list, 0, first);
        json_object_set_new(first, "version", json_string("3.3"));
        assert_int_equal(rv_lock_check(lock, &err), -EINVAL);
        assert_non_null(strstr(err.message, "/packages/1/name: the package is listed twice"));
        json_array_remove(list, 0);
        json_array_append(list, first);
        assert_int_equal(rv_lock_check(lock, &other), -EINVAL);
        assert_non_null(strstr(other.message, "/packages/2: packages stand sorted"));
}

static void bounds(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *lock = from(lock_python);
        json_t *list = json_object_get(lock, "packages"), *idna = json_incref(json_array_get(list, 0)), *requests = json_incref(json_array_get(list, 1));
        struct rv_error err = { 0 };
        char name[16];

        (void)state;
        json_array_clear(list);
        for (int i = 0; i < RV_LOCK_PACKAGES_MAX; i++) {
                json_t *package = json_deep_copy(idna);

                snprintf(name, sizeof(name), "p%05d", i);
                json_object_set_new(package, "name", json_string(name));
                json_array_set_new(json_object_get(package, "path"), 1, json_string(name));
                json_array_append_new(list, package);
        }
        json_array_set(list, RV_LOCK_PACKAGES_MAX - 1, requests);
        assert_int_equal(rv_lock_check(lock, &err), 0);
        json_array_append_new(list, json_deep_copy(requests));
        assert_int_equal(rv_lock_check(lock, &err), -EINVAL);
        assert_non_null(strstr(err.message, "it has 2001 entries"));
        json_decref(idna);
        json_decref(requests);
}

static void read_and_written(void **state)
{
        static const char *const texts[] = { lock_python, lock_javascript };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++) {
                _cleanup_(rv_json_unrefp) json_t *lock = NULL, *again = NULL;
                _cleanup_(rv_buf_fini) struct rv_buf a = { 0 }, b = { 0 };
                struct rv_error err = { 0 };

                if (rv_lock_read(texts[i], strlen(texts[i]), &lock, &err) < 0)
                        fail_msg("%s", err.message);
                assert_int_equal(rv_lock_write(lock, &a), 0);
                assert_int_equal(a.data[a.size - 1], '\n');
                assert_int_equal(rv_lock_read(a.data, a.size, &again, &err), 0);
                assert_int_equal(rv_lock_write(again, &b), 0);
                assert_string_equal(a.data, b.data);
        }
}

static void texts_that_are_none(void **state)
{
        static const struct {
                const char *text, *says;
                int r;
        } table[] = {
                { "", "lock: it cannot be read as JSON", -EINVAL },
                { "{\"schema\":1,\"schema\":2}", "lock: it cannot be read as JSON", -EINVAL },
                { "[[[[[[[[[[1]]]]]]]]]]", "lock: it cannot be read as JSON", -ELOOP },
                { "7", "lock: the document: it needs an object", -EINVAL },
                { "{}", "lock: /schema: it is missing", -EINVAL },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                json_t *lock = (void *)1;
                struct rv_error err = { 0 };

                assert_int_equal(rv_lock_read(table[i].text, strlen(table[i].text), &lock, &err), table[i].r);
                assert_ptr_equal(lock, (void *)1);
                if (!strstr(err.message, table[i].says))
                        fail_msg("%s: %s", table[i].text, err.message);
        }
        assert_int_equal(rv_lock_read("", RV_LOCK_BYTES_MAX + 1, NULL, NULL), -EFBIG);
}

/* What is not installed is no part of the digest; all that is, is. */
static void digest(void **state)
{
        static const struct {
                const char *path, *value;
                bool is_same;
        } table[] = {
                { "packages/0/url", "\"https://other.example/x\"", true }, { "packages/0/published_at", "7", true },
                { "packages/0/license", "\"\"", true }, { "packages/0/registry_hash", "false", true },
                { "packages/0/size_bytes", "7", true }, { "packages/0/name", "\"@a/y\"", false },
                { "packages/0/version", "\"1.0.1\"", false }, { "packages/0/file", "\"y.tgz\"", false },
                { "packages/0/hash", "\"sha256:\"", false }, { "packages/0/at", "[\"node_modules/y\"]", false },
                { "runtime/tag", "\"x\"", false }, { "language", "\"python\"", false }, { "packages/2", NULL, false },
        };
        _cleanup_(rv_json_unrefp) json_t *lock = from(lock_javascript);
        char hex[RV_SHA256_HEX_SIZE], other[RV_SHA256_HEX_SIZE];

        (void)state;
        assert_int_equal(rv_lock_digest(lock, hex), 0);
        assert_string_equal(hex, "cb0a2dc36d2d45f1b0d12a21475d5a73e95fcd3c03df59e0008844904acdcebd");
        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                _cleanup_(rv_json_unrefp) json_t *changed = from(lock_javascript);

                edit(changed, table[i].path, table[i].value);
                assert_int_equal(rv_lock_digest(changed, other), 0);
                if ((strcmp(hex, other) == 0) != table[i].is_same)
                        fail_msg("%s", table[i].path);
        }
}

static void public_list(void **state)
{
        _cleanup_(rv_json_unrefp) json_t *lock = from(lock_javascript), *list = rv_lock_public(lock);
        const json_t *first = json_array_get(list, 0);

        (void)state;
        assert_int_equal(json_array_size(list), 3);
        assert_null(json_object_get(first, "url"));
        assert_null(json_object_get(first, "integrity"));
        assert_null(json_object_get(first, "at"));
        assert_null(json_object_get(first, "file"));
        assert_string_equal(json_string_value(json_object_get(first, "hash")), LOCK_HASH);
        assert_int_equal(json_object_size(first), json_object_size(json_array_get(json_object_get(lock, "packages"), 0)) - 4);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(faults),
                cmocka_unit_test(built_and_nowhere),
                cmocka_unit_test(order_of_python),
                cmocka_unit_test(bounds),
                cmocka_unit_test(read_and_written),
                cmocka_unit_test(texts_that_are_none),
                cmocka_unit_test(digest),
                cmocka_unit_test(public_list),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
