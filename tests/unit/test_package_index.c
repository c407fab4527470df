/* What an index says: names of files, times, addresses, pages in JSON and HTML, documents of npm, tags of wheels. */
#include "package/index_npm.h"
#include "package/index_private.h"
#include "package/metadata.h"
#include "package/wheel_tags.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void file_names(void **state)
{
        static const struct {
                const char *name, *project, *expected;   /* "kind version[ python abi platform]", or "" */
        } rows[] = {
                { "a-1.0-py3-none-any.whl", "a", "wheel 1.0 py3 none any" },
                { "Foo.Bar_baz-1.0-py2.py3-none-any.whl", "foo-bar-baz", "wheel 1.0 py2.py3 none any" },
                { "a-1.0-1b-cp311-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", "a", "wheel 1.0 cp311 abi3 manylinux_2_17_x86_64.manylinux2014_x86_64" },
                { "torch-2.0+cu118-cp311-cp311-linux_x86_64.whl", "torch", "wheel 2.0+cu118 cp311 cp311 linux_x86_64" },
                { "a-1.0-x-py3-none-any.whl", "a", "" },
                { "a-1.0-1-2-py3-none-any.whl", "a", "" },
                { "a-1.0-py3-any.whl", "a", "" },
                { "b-1.0-py3-none-any.whl", "a", "" },
                { "a--py3-none-any.whl", "a", "" },
                { "a-1.0.tar.gz", "a", "sdist 1.0" },
                { "foo-bar-1.0-2.zip", "foo-bar", "sdist 1.0-2" },
                { "foo-bar-1.0.tgz", "foo", "sdist bar-1.0" },
                { "Foo_Bar-1.0.tar.bz2", "foo-bar", "sdist 1.0" },
                { "a-1.0.exe", "a", "" },
                { "a-1.0-py3.9.egg", "a", "" },
                { "a-.tar.gz", "a", "" },
                { "-1.0.tar.gz", "a", "" },
                { "a.tar.gz", "a", "" },
                { "x/a-1.0.tar.gz", "a", "" },
                { ".whl", "a", "" },
                { "", "a", "" },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_index_file f = { 0 };
                char got[300] = "";

                if (rv_index_file_parse(rows[i].name, rows[i].project, &f))
                        snprintf(got, sizeof(got), f.kind == RV_INDEX_WHEEL ? "%s %.*s %.*s %.*s %.*s" : "%s %.*s",
                                f.kind == RV_INDEX_WHEEL ? "wheel" : "sdist", (int)f.version.n, f.version.text, (int)f.python.n, f.python.text, (int)f.abi.n,
                                f.abi.text, (int)f.platform.n, f.platform.text);
                if (strcmp(got, rows[i].expected) != 0)
                        fail_msg("%s of %s: \"%s\", not \"%s\"", rows[i].name, rows[i].project, got, rows[i].expected);
        }
}

static void times(void **state)
{
        static const struct {
                const char *text;
                int64_t expected;
        } rows[] = {
                { "1970-01-01T00:00:00Z", 0 }, { "2023-05-22T15:12:42Z", 1684768362 }, { "2023-05-22T15:12:42.123456Z", 1684768362 },
                { "2023-05-22t17:12:42+02:00", 1684768362 }, { "2023-05-22 10:42:42-04:30", 1684768362 }, { "2024-02-29T00:00:00Z", 1709164800 },
                { "2000-12-31T23:59:60Z", 978307200 }, { "9999-12-31T23:59:59Z", 253402300799 }, { "2100-03-01T00:00:00Z", 4107542400 },
                { "1969-12-31T23:59:59Z", -1 }, { "2023-13-01T00:00:00Z", -1 }, { "2023-02-30T00:00:00Z", -1 }, { "2023-05-22", -1 }, { "2023-05-22T15:12:42", -1 },
                { "2023-05-22T15:12:42.Z", -1 }, { "2023-05-22T15:12:42Zx", -1 }, { "2023-05-22T24:00:00Z", -1 }, { "2023-05-22T15:12:42+2", -1 }, { "", -1 },
                { "12023-05-22T15:12:42Z", -1 }, { "2023-05-22T15:12:42+99:00", -1 },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                int64_t at = -1;

                rv_index_time(rows[i].text, &at);
                if (at != rows[i].expected)
                        fail_msg("%s: %lld, not %lld", rows[i].text, (long long)at, (long long)rows[i].expected);
        }
}

/* The first ones are RFC 3986's, 5.4. */
static void addresses(void **state)
{
        static const struct {
                const char *base, *link, *expected;
        } rows[] = {
                { "http://a/b/c/d;p?q", "g", "http://a/b/c/g" }, { "http://a/b/c/d;p?q", "./g", "http://a/b/c/g" }, { "http://a/b/c/d;p?q", "g/", "http://a/b/c/g/" },
                { "http://a/b/c/d;p?q", "/g", "http://a/g" }, { "http://a/b/c/d;p?q", "//g", "http://g" }, { "http://a/b/c/d;p?q", "?y", "http://a/b/c/d;p?y" },
                { "http://a/b/c/d;p?q", "g?y", "http://a/b/c/g?y" }, { "http://a/b/c/d;p?q", ".", "http://a/b/c/" }, { "http://a/b/c/d;p?q", "..", "http://a/b/" },
                { "http://a/b/c/d;p?q", "../g", "http://a/b/g" }, { "http://a/b/c/d;p?q", "../..", "http://a/" }, { "http://a/b/c/d;p?q", "../../g", "http://a/g" },
                { "http://a/b/c/d;p?q", "../../../g", "http://a/g" }, { "http://a/b/c/d;p?q", "/./g", "http://a/g" }, { "http://a/b/c/d;p?q", "/../g", "http://a/g" },
                { "http://a/b/c/d;p?q", "g..", "http://a/b/c/g.." }, { "http://a/b/c/d;p?q", "./g/.", "http://a/b/c/g/" }, { "http://a/b/c/d;p?q", "g?y/./x", "http://a/b/c/g?y/./x" },
                { "http://a/b/c/d;p?q", "g/../h", "http://a/b/c/h" },
                { "https://i.example/simple/a/", "../../packages/x-1.whl#sha256=00", "https://i.example/packages/x-1.whl" },
                { "https://i.example", "x", "https://i.example/x" },
                { "https://i.example/simple/a/", "HTTPS://f.example/x", "https://f.example/x" },
                { "https://i.example/simple/a/", "https://me:secret@f.example:8443/x", "https://f.example:8443/x" },
                { "https://i.example/simple/a/", "http://[::1]:80/x", "http://[::1]:80/x" },
                { "https://i.example/simple/a/", "file:///etc/passwd", NULL }, { "https://i.example/simple/a/", "ftp://x/y", NULL },
                { "https://i.example/simple/a/", "javascript:x", NULL }, { "https://i.example/simple/a/", "http://", NULL },
                { "https://i.example/simple/a/", "http://a:0/x", NULL }, { "https://i.example/simple/a/", "x y", NULL }, { "https://i.example/simple/a/", "x\ny", NULL },
                { "https://i.example/simple/a/", "caf\xc3\xa9", NULL }, { "file:///x", "y", NULL },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                char url[RV_INDEX_URL_MAX];
                const char *fragment = NULL;
                bool r = rv_index_url(rows[i].base, rows[i].link, url, &fragment);

                if (r != (rows[i].expected != NULL) || (r && strcmp(url, rows[i].expected) != 0))
                        fail_msg("%s at %s: %s", rows[i].link, rows[i].base, r ? url : "none");
        }
}

static void wheels(void **state)
{
        static const struct {
                const char *tags;   /* of the file's name */
                enum rv_wheel_fit glibc, musl;
                bool threaded;      /* does CPython 3.13 without the lock take it? */
        } rows[] = {
                { "py3-none-any", RV_WHEEL_FITS, RV_WHEEL_FITS, true }, { "py2.py3-none-any", RV_WHEEL_FITS, RV_WHEEL_FITS, true }, { "py311-none-any", RV_WHEEL_FITS, RV_WHEEL_FITS, true },
                { "py38-none-any", RV_WHEEL_FITS, RV_WHEEL_FITS, true }, { "py312-none-any", RV_WHEEL_OTHER_PYTHON, RV_WHEEL_OTHER_PYTHON, true },
                { "py2-none-any", RV_WHEEL_OTHER_PYTHON, RV_WHEEL_OTHER_PYTHON, false }, { "cp311-none-any", RV_WHEEL_FITS, RV_WHEEL_FITS, false }, { "cp3-none-any", RV_WHEEL_FITS, RV_WHEEL_FITS, true },
                { "cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64", RV_WHEEL_FITS, RV_WHEEL_OTHER_PLATFORM, false }, { "cp311-cp311-linux_x86_64", RV_WHEEL_FITS, RV_WHEEL_OTHER_PLATFORM, false },
                { "cp311-cp311-musllinux_1_2_x86_64", RV_WHEEL_OTHER_PLATFORM, RV_WHEEL_FITS, false }, { "cp310-cp310-manylinux2014_x86_64", RV_WHEEL_OTHER_PYTHON, RV_WHEEL_OTHER_PLATFORM, false },
                { "cp37-abi3-manylinux1_x86_64", RV_WHEEL_FITS, RV_WHEEL_OTHER_PLATFORM, false }, { "cp312-abi3-manylinux1_x86_64", RV_WHEEL_OTHER_PYTHON, RV_WHEEL_OTHER_PLATFORM, false },
                { "cp311-cp311-manylinux2014_aarch64", RV_WHEEL_OTHER_PLATFORM, RV_WHEEL_OTHER_PLATFORM, false }, { "cp311-cp311-win_amd64", RV_WHEEL_OTHER_PLATFORM, RV_WHEEL_OTHER_PLATFORM, false },
                { "cp311-cp311-macosx_11_0_x86_64", RV_WHEEL_OTHER_PLATFORM, RV_WHEEL_OTHER_PLATFORM, false }, { "cp311-cp311t-linux_x86_64", RV_WHEEL_OTHER_PYTHON, RV_WHEEL_OTHER_PLATFORM, false },
                { "cp313-cp313t-linux_x86_64", RV_WHEEL_OTHER_PYTHON, RV_WHEEL_OTHER_PLATFORM, true }, { "cp313-cp313-linux_x86_64", RV_WHEEL_OTHER_PYTHON, RV_WHEEL_OTHER_PLATFORM, false },
                { "pp310-pypy310_pp73-manylinux2014_x86_64", RV_WHEEL_OTHER_PYTHON, RV_WHEEL_OTHER_PLATFORM, false }, { "cp31111-none-any", RV_WHEEL_OTHER_PYTHON, RV_WHEEL_OTHER_PYTHON, false },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_index_file f = { 0 };
                char name[200];

                snprintf(name, sizeof(name), "a-1-%s.whl", rows[i].tags);
                assert_true(rv_index_file_parse(name, "a", &f));
                if (rv_wheel_fit(&f, "cp311-linux_x86_64") != rows[i].glibc || rv_wheel_fit(&f, "cp311-musllinux_x86_64") != rows[i].musl)
                        fail_msg("%s: %d %d", rows[i].tags, rv_wheel_fit(&f, "cp311-linux_x86_64"), rv_wheel_fit(&f, "cp311-musllinux_x86_64"));
                assert_int_equal(rv_wheel_fit(&f, "what"), RV_WHEEL_FITS);
                assert_int_equal(rv_wheel_fit(&f, "cp313t-linux_x86_64") == RV_WHEEL_FITS, rows[i].threaded);
        }
}

#define JSON "application/vnd.pypi.simple.v1+json"
#define FILE_JSON(name, more) "{\"filename\":\"" name "\",\"url\":\"u/" name "\"" more "}"

/* A page as read, in canonical form from "versions" on; "!…" a part of the message. */
static void python_pages(void **state)
{
        static const struct {
                const char *name, *type, *text, *expected;
        } rows[] = {
                { "none", JSON, "{\"files\":[]}", "{}" },
                { "one", JSON ";charset=utf-8", "{\"files\":[" FILE_JSON("a-1.0.zip", "") "]}",
                  "{\"1.0\":{\"files\":[{\"file\":\"a-1.0.zip\",\"url\":\"https://i.example/simple/a/u/a-1.0.zip\",\"yanked\":false}],\"yanked\":false}}" },
                { "all of it", JSON, "{\"files\":[" FILE_JSON("a-v1.0.zip", ",\"size\":7,\"upload-time\":\"1970-01-02T00:00:00Z\",\"requires-python\":\">=3\",\"yanked\":\"why\",\"hashes\":{\"md5\":\"x\",\"sha256\":\"ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef0123456789\"}") "]}",
                  "{\"1.0\":{\"files\":[{\"file\":\"a-v1.0.zip\",\"published_at\":86400,\"requires_python\":\">=3\",\"sha256\":\"abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789\",\"size_bytes\":7,\"url\":\"https://i.example/simple/a/u/a-v1.0.zip\",\"yanked\":true}],\"published_at\":86400,\"yanked\":true}}" },
                { "the first of two times", JSON, "{\"files\":[" FILE_JSON("a-1.zip", ",\"upload-time\":\"1970-01-03T00:00:00Z\",\"yanked\":true") "," FILE_JSON("a-1.tgz", ",\"upload-time\":\"1970-01-02T00:00:00Z\"") "]}",
                  "{\"1\":{\"files\":[{\"file\":\"a-1.zip\",\"published_at\":172800,\"url\":\"https://i.example/simple/a/u/a-1.zip\",\"yanked\":true},{\"file\":\"a-1.tgz\",\"published_at\":86400,\"url\":\"https://i.example/simple/a/u/a-1.tgz\",\"yanked\":false}],\"published_at\":86400,\"yanked\":false}}" },
                { "what is not understood is left out", JSON, "{\"files\":[1,null,[],{},{\"filename\":1,\"url\":2}," FILE_JSON("b-1.zip", "") "," FILE_JSON("a-x.zip", "") ",{\"filename\":\"a-1.zip\",\"url\":\"ftp://x/\"},{\"filename\":\"a-1.zip\\u0007\",\"url\":\"u\"}]}", "{}" },
                { "values of other kinds", JSON, "{\"files\":[" FILE_JSON("a-1.zip", ",\"size\":1.5,\"upload-time\":7,\"requires-python\":null,\"yanked\":{},\"hashes\":[]") "]}",
                  "{\"1\":{\"files\":[{\"file\":\"a-1.zip\",\"url\":\"https://i.example/simple/a/u/a-1.zip\",\"yanked\":false}],\"yanked\":false}}" },
                { "cut", JSON, "{\"files\":[", "!cut" },
                { "something follows", JSON, "{\"files\":[]}x", "!ill-formed" },
                { "no files", JSON, "{\"versions\":[]}", "!another kind" },
                { "an array", JSON, "[]", "!another kind" },
                { "nothing", JSON, "", "!cut" },
                { "another type", "application/json", "{\"files\":[]}", "!type is application/json" },
                { "a longer type", JSON "x", "{\"files\":[]}", "!type" },
                { "no type", "", "{\"files\":[]}", "!not told" },
                { "a type with an escape", "\x1b[1m", "{\"files\":[]}", "!unreadable" },
                { "HTML", "text/html", "<a href=\"a-1.zip\">", "{\"1\":{\"files\":[{\"file\":\"a-1.zip\",\"url\":\"https://i.example/simple/a/a-1.zip\",\"yanked\":false}],\"yanked\":false}}" },
                { "HTML in capitals, entities, no quotes", "TEXT/HTML", "<A HREF='x/a-1.zip?x&#61;1&amp;y'  DATA-REQUIRES-PYTHON='&lt;4&#x2C;&gt;3' data-yanked>x</A><a href=/a-2.zip>",
                  "{\"1\":{\"files\":[{\"file\":\"a-1.zip\",\"requires_python\":\"<4,>3\",\"url\":\"https://i.example/simple/a/x/a-1.zip?x=1&y\",\"yanked\":true}],\"yanked\":true},\"2\":{\"files\":[{\"file\":\"a-2.zip\",\"url\":\"https://i.example/a-2.zip\",\"yanked\":false}],\"yanked\":false}}" },
                { "HTML, escaped name", "text/html", "<a href='a-1.0%2Bx.zip'>", "{\"1.0+x\":{\"files\":[{\"file\":\"a-1.0+x.zip\",\"url\":\"https://i.example/simple/a/a-1.0%2Bx.zip\",\"yanked\":false}],\"yanked\":false}}" },
                { "HTML with a version", "text/html", "<meta name='pypi:repository-version' content=1.0>", "{}" },
                { "HTML cut", "text/html", "<a href='a-1.zip", "{\"1\":{\"files\":[{\"file\":\"a-1.zip\",\"url\":\"https://i.example/simple/a/a-1.zip\",\"yanked\":false}],\"yanked\":false}}" },
                { "a page for signing in", "text/html", "<form><a href='/login'>sign in</a>", "!signing in" },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_json_unrefp) json_t *page = NULL;
                _cleanup_(rv_buf_fini) struct rv_buf got = { 0 };
                struct rv_error err = { 0 };
                int r = rv_index_python_read(rows[i].text, strlen(rows[i].text), rows[i].type, "https://i.example/simple/a/", "a", &page, &err);

                if (*rows[i].expected == '!') {
                        if (r != -EBADMSG || page || !strstr(err.message, rows[i].expected + 1))
                                fail_msg("%s: %d %s", rows[i].name, r, err.message);
                        continue;
                }
                if (r != 0)
                        fail_msg("%s: %d %s", rows[i].name, r, err.message);
                assert_int_equal(rv_json_canonical(json_object_get(page, "versions"), &got), 0);
                if (strcmp(got.data, rows[i].expected) != 0)
                        fail_msg("%s:\n%s\n%s", rows[i].name, got.data, rows[i].expected);
                assert_string_equal(rv_json_get_string(page, "status", ""), "ok");
        }
}

static void npm_documents(void **state)
{
#define DIST "\"dist\":{\"tarball\":\"https://t.example/a.tgz\",\"integrity\":\"sha512-x\"}"
        static const struct {
                const char *name, *text, *expected;
        } rows[] = {
                { "none", "{\"name\":\"a\",\"versions\":{}}", "{}" },
                { "one", "{\"versions\":{\"1.0.0\":{" DIST "}}}", "{\"1.0.0\":{\"install_script\":false,\"integrity\":\"sha512-x\",\"tarball\":\"https://t.example/a.tgz\"}}" },
                { "all of it", "{\"time\":{\"created\":\"x\",\"1.0.0\":\"1970-01-02T00:00:00.000Z\",\"9.9.9\":\"1970-01-02T00:00:00.000Z\"},\"versions\":{\"1.0.0\":{" DIST ",\"license\":{\"type\":\"MIT\"},\"hasInstallScript\":true,\"deprecated\":\"old\",\"os\":[\"linux\",1],\"cpu\":\"x64\",\"libc\":[]}}}",
                  "{\"1.0.0\":{\"cpu\":[\"x64\"],\"deprecated\":\"old\",\"install_script\":true,\"integrity\":\"sha512-x\",\"license\":\"MIT\",\"os\":[\"linux\"],\"published_at\":86400,\"tarball\":\"https://t.example/a.tgz\"}}" },
                { "scripts", "{\"versions\":{\"1.0.0\":{\"scripts\":{\"test\":\"x\",\"postinstall\":\"y\"},\"license\":[\"x\"]," DIST "},\"2.0.0\":{\"scripts\":{\"prepare\":\"x\"}," DIST "}}}",
                  "{\"1.0.0\":{\"install_script\":true,\"integrity\":\"sha512-x\",\"tarball\":\"https://t.example/a.tgz\"},\"2.0.0\":{\"install_script\":false,\"integrity\":\"sha512-x\",\"tarball\":\"https://t.example/a.tgz\"}}" },
                { "what is not understood is left out", "{\"versions\":{\"1.0\":{" DIST "},\"x\":{" DIST "},\"1.0.0\":{},\"2.0.0\":1,\"3.0.0\":{\"dist\":{\"tarball\":\"git://x\"}}}}", "{}" },
                { "another package", "{\"name\":\"b\",\"versions\":{}}", "!of another package" },
                { "no versions", "{\"name\":\"a\"}", "!another kind" },
                { "cut", "{\"versions\":{\"1.0.0\":{" DIST, "!cut" },
                { "HTML", "<html>", "!ill-formed" },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_json_unrefp) json_t *page = NULL;
                _cleanup_(rv_buf_fini) struct rv_buf got = { 0 };
                struct rv_error err = { 0 };
                int r = rv_index_npm_read(rows[i].text, strlen(rows[i].text), "https://n.example/a", "a", &page, &err);

                if (*rows[i].expected == '!') {
                        if (r != -EBADMSG || page || !strstr(err.message, rows[i].expected + 1))
                                fail_msg("%s: %d %s", rows[i].name, r, err.message);
                        continue;
                }
                if (r != 0)
                        fail_msg("%s: %d %s", rows[i].name, r, err.message);
                assert_int_equal(rv_json_canonical(json_object_get(page, "versions"), &got), 0);
                if (strcmp(got.data, rows[i].expected) != 0)
                        fail_msg("%s:\n%s\n%s", rows[i].name, got.data, rows[i].expected);
        }
}

/* A page so deep, or so long, that holding it all would hurt. */
static void bounds(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_error err = { 0 };
        json_t *page = NULL;

        (void)state;
        rv_buf_puts(&text, "{\"x\":");
        for (int i = 0; i < 5000; i++)
                rv_buf_putc(&text, '[');
        assert_int_equal(rv_index_python_read(text.data, text.size, JSON, "https://i.example/a/", "a", &page, &err), -EBADMSG);
        text.size = 0;
        rv_buf_puts(&text, "{\"files\":[");
        for (unsigned i = 0; i <= RV_INDEX_FILES_MAX; i++)
                rv_buf_printf(&text, "%s{\"filename\":\"a-1.zip\",\"url\":\"u\"}", i ? "," : "");
        rv_buf_puts(&text, "]}");
        err = (struct rv_error){ 0 };
        assert_int_equal(rv_index_python_read(text.data, text.size, JSON, "https://i.example/a/", "a", &page, &err), -EBADMSG);
        assert_non_null(strstr(err.message, "more than 200000 files"));
        assert_null(page);
}

static void versions(void **state)
{
        static const char text[] = "{\"files\":[" FILE_JSON("a-1.10.zip", ",\"upload-time\":\"1970-01-03T00:00:00Z\"") "," FILE_JSON("a-1.9.zip", ",\"upload-time\":\"1970-01-02T00:00:00Z\"") ","
                FILE_JSON("a-1.9-cp312-cp312-win_amd64.whl", ",\"upload-time\":\"1970-01-09T00:00:00Z\"") "," FILE_JSON("a-2a1.zip", "") ","
                FILE_JSON("a-2a1-py3-none-any.whl", "") "," FILE_JSON("a-1.10-py3-none-any.whl", ",\"upload-time\":\"1970-01-01T00:00:00Z\"") "]}";
        _cleanup_(rv_json_unrefp) json_t *page = NULL, *all = NULL, *own = NULL, *fit = NULL, *unhashed = NULL;
        _cleanup_(rv_freep) const char **list = NULL;
        size_t n;

        (void)state;
        assert_int_equal(rv_index_python_read(text, sizeof(text) - 1, JSON, "https://i.example/a/", "a", &page, NULL), 0);
        assert_int_equal(rv_metadata_versions(page, &list, &n), 0);
        assert_int_equal(n, 3);
        assert_string_equal(list[0], "1.9");
        assert_string_equal(list[1], "1.10");
        assert_string_equal(list[2], "2a1");
        assert_non_null(rv_metadata_version(page, "1.10"));
        assert_ptr_equal(rv_metadata_version(page, "v1.10.0"), rv_metadata_version(page, "1.10"));
        assert_null(rv_metadata_version(page, "1.1"));
        assert_null(rv_metadata_version(page, "what"));
        assert_non_null(rv_metadata_file(page, "1.9", "a-1.9.zip"));
        assert_null(rv_metadata_file(page, "1.9", "a-1.10.zip"));
        assert_int_equal(rv_metadata_unfit(page, NULL, 86400, false, &all), 0);
        assert_int_equal(json_array_size(all), 3);
        assert_int_equal(rv_metadata_unfit(page, "cp311-linux_x86_64", 86400, false, &own), 0);
        assert_int_equal(json_array_size(own), 1);      /* the younger ones are archives, and a wheel for another platform */
        assert_string_equal(json_string_value(json_array_get(own, 0)), "2a1");   /* nobody says when */
        assert_int_equal(rv_metadata_unfit(page, NULL, -1, false, &fit), 0);
        assert_int_equal(json_array_size(fit), 0);
        assert_int_equal(rv_metadata_unfit(page, NULL, -1, true, &unhashed), 0);
        assert_int_equal(json_array_size(unhashed), 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(file_names),
                cmocka_unit_test(times),
                cmocka_unit_test(addresses),
                cmocka_unit_test(wheels),
                cmocka_unit_test(python_pages),
                cmocka_unit_test(npm_documents),
                cmocka_unit_test(bounds),
                cmocka_unit_test(versions),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
