/*
 * What uv and pip answered, and what no answer of a resolver may be; the ways by which packages come in.
 */
#include "test_package_closure.h"

#include "package/closure_paths.h"
#include "package/drivers.h"

#define REFUSED RV_CLOSURE_E_REFUSED
#define FAILED RV_CLOSURE_E_FAILED
#define URL "'url':'https://files.example/a/b.whl'"
#define IDNA "{'name':'idna','version':'3.4','file':'idna-3.4-py3-none-any.whl'," URL "}"
#define ONE(name, version, file) "[{'name':'" name "','version':'" version "','file':'" file "'," URL "}]"
#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct closure_row python_rows[] = {
        { .name = "one package", "idna>=3", "[" IDNA "]", 0,
          { "'packages':[{'direct':true,'extras':[],'file':'idna-3.4-py3-none-any.whl','name':'idna','requested':'idna>=3','url':'https://files.example/a/b.whl','version':'3.4'}]",
            "'runtime':{'interpreter':'/usr/bin/x','tag':'cp311-linux_x86_64','version':'3.11'}", "'tool':{'name':'uv','version':'1.2'}", "'not_installed':[]" } },
        { .name = "all that is told", "idna>=3", "[{'name':'idna','version':'3.4','file':'idna-3.4-py3-none-any.whl'," URL ",'sha256':'" HEX64 "','size_bytes':61538,'published_at':1663193418}]", 0,
          { "'published_at':1663193418", "'sha256':'" HEX64 "'", "'size_bytes':61538" } },
        { .name = "sorted, one of them transitive", "requests==2.31.0", "[{'name':'requests','version':'2.31.0','file':'requests-2.31.0-py3-none-any.whl'," URL "}," IDNA "]", 0,
          { "'packages':[{'direct':false,'extras':[],'file':'idna", "'requested':''" } },
        { .name = "asked for twice, with extras", "requests[socks,a]>=2; requests[socks]<3", ONE("requests", "2.31.0", "requests-2.31.0-py3-none-any.whl"), 0,
          { "'extras':['a','socks']", "'requested':'requests[socks,a]>=2, requests[socks]<3'" } },
        { .name = "one of ours", "idna>=3", "[{'name':'idna','version':'3.4','file':'idna-3.4-py3-none-any.whl','url':''}]", 0, { "'url':''" } },
        { .name = "file of a longer name", "ruamel-yaml>=0", ONE("ruamel-yaml", "0.17.1", "ruamel.yaml-0.17.1-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl"), 0, { "ruamel" } },
        { .name = "file with a build", "a-b>=0", ONE("a-b", "1.0", "A_B-1.0-1-py3-none-any.whl"), 0, { "A_B" } },
        { .name = "a version in another spelling", "a==1.0", ONE("a", "1.0.0", "a-1.0-py3-none-any.whl"), 0, { "'1.0.0'" } },
        { .name = "a local version", "a==1.0", ONE("a", "1.0+cpu", "a-1.0+cpu-py3-none-any.whl"), 0, { "'1.0+cpu'" } },
        { .name = "a pre-release", "a>=1.0a1", ONE("a", "1.0rc1", "a-1.0rc1-py3-none-any.whl"), 0, { "'1.0rc1'" } },
        { .name = "arbitrary equality", "a===1.0", ONE("a", "1.0", "a-1.0-py3-none-any.whl"), 0, { "'1.0'" } },
        { .name = "arbitrary equality, normalised", "a===1.0.0-RC1", ONE("a", "1.0.0rc1", "a-1.0.0rc1-py3-none-any.whl"), 0, { "rc1" } },
        { .name = "nothing asked, nothing there", NULL, "[]", 0, { "'packages':[]" } },

        { .name = "not what was asked for", "idna==3.7", "[" IDNA "]", REFUSED, { "'cause':'name_mismatch'", "'package':'idna'", "idna==3.7 was asked for", "version 3.4" } },
        { .name = "outside of one of two", "idna>=3; idna<3.4", "[" IDNA "]", REFUSED, { "idna<3.4 was asked for" } },
        { .name = "outside of a prefix", "idna==3.3.*", "[" IDNA "]", REFUSED, { "name_mismatch" } },
        { .name = "excluded", "idna!=3.4", "[" IDNA "]", REFUSED, { "name_mismatch" } },
        { .name = "outside of what is compatible", "idna~=3.5", "[" IDNA "]", REFUSED, { "name_mismatch" } },
        { .name = "asked for and absent", "idna>=3; six>=1", "[" IDNA "]", REFUSED, { "'package':'six'", "'cause':'name_mismatch'" } },
        { .name = "nothing there", "idna>=3", "[]", REFUSED, { "'package':'idna'" } },
        { .name = "twice", "idna>=3", "[" IDNA "," IDNA "]", REFUSED, { "idna twice" } },
        { .name = "file of another name", "a>=0", ONE("a", "1.0", "ab-1.0-py3-none-any.whl"), REFUSED, { "name_mismatch" } },
        { .name = "file of another version", "a>=0", ONE("a", "1.0", "a-1.1-py3-none-any.whl"), REFUSED, { "name_mismatch" } },
        { .name = "a source archive", "a>=0", ONE("a", "1.0", "a-1.0.tar.gz"), REFUSED, { "no wheel" } },
        { .name = "file with too few parts", "a>=0", ONE("a", "1.0", "a-1.0-py3-none.whl"), REFUSED, { "no wheel" } },
        { .name = "file with too many parts", "a>=0", ONE("a", "1.0", "a-1.0-1-2-py3-none-any.whl"), REFUSED, { "no wheel" } },
        { .name = "file with an empty part", "a>=0", ONE("a", "1.0", "a-1.0--none-any.whl"), REFUSED, { "no wheel" } },
        { .name = "file with a path", "a>=0", ONE("a", "1.0", "../a-1.0-py3-none-any.whl"), REFUSED, { "no wheel" } },
        { .name = "name not canonical", "a-b>=0", ONE("A_b", "1.0", "a_b-1.0-py3-none-any.whl"), REFUSED, { "name_mismatch" } },
        { .name = "name with a path", NULL, ONE("../a", "1.0", "a-1.0-py3-none-any.whl"), REFUSED, { "name_mismatch" } },
        { .name = "no name", NULL, "[{}]", REFUSED, { "name_mismatch" } },
        { .name = "an entry of another kind", NULL, "[1]", REFUSED, { "name_mismatch" } },
        { .name = "no version", NULL, "[{'name':'a'}]", REFUSED, { "name_mismatch" } },
        { .name = "version is none", NULL, ONE("a", "latest", "a-1.0-py3-none-any.whl"), REFUSED, { "the version of a" } },
        { .name = "version with a v", NULL, ONE("a", "v1.0", "a-1.0-py3-none-any.whl"), REFUSED, { "the version of a" } },
        { .name = "version with a space", NULL, ONE("a", "1.0 ", "a-1.0-py3-none-any.whl"), REFUSED, { "the version of a" } },
        { .name = "url of a file", "a>=0", "[{'name':'a','version':'1','file':'a-1-py3-none-any.whl','url':'file:///etc/passwd'}]", REFUSED, { "unsafe_archive" } },
        { .name = "url of a repository", "a>=0", "[{'name':'a','version':'1','file':'a-1-py3-none-any.whl','url':'git+https://host.example/a'}]", REFUSED, { "unsafe_archive" } },
        { .name = "url with credentials", "a>=0", "[{'name':'a','version':'1','file':'a-1-py3-none-any.whl','url':'https://u:p@host.example/a'}]", REFUSED, { "unsafe_archive" }, "u:p" },
        { .name = "url without a host", "a>=0", "[{'name':'a','version':'1','file':'a-1-py3-none-any.whl','url':'https:///a'}]", REFUSED, { "unsafe_archive" } },
        { .name = "url with a space", "a>=0", "[{'name':'a','version':'1','file':'a-1-py3-none-any.whl','url':'https://host.example/a b'}]", REFUSED, { "unsafe_archive" } },
        { .name = "no url", "a>=0", "[{'name':'a','version':'1','file':'a-1-py3-none-any.whl'}]", REFUSED, { "unsafe_archive" } },
        { .name = "sha256 too short", "a>=0", "[{'name':'a','version':'1','file':'a-1-py3-none-any.whl'," URL ",'sha256':'00'}]", REFUSED, { "unsafe_archive" } },
        { .name = "sha256 of another kind", "a>=0", "[{'name':'a','version':'1','file':'a-1-py3-none-any.whl'," URL ",'sha256':1}]", REFUSED, { "unsafe_archive" } },
        { .name = "size below zero", "a>=0", "[{'name':'a','version':'1','file':'a-1-py3-none-any.whl'," URL ",'size_bytes':-1}]", REFUSED, { "unsafe_archive" } },
        { .name = "time too large", "a>=0", "[{'name':'a','version':'1','file':'a-1-py3-none-any.whl'," URL ",'published_at':9007199254740992}]", REFUSED, { "unsafe_archive" } },

        { .name = "the tool failed", "idna>=3", "'ok':false,'exit':1,'code':null,'text':'no version\\nof \\u001b[1midna\\u0085!'", FAILED,
          { "'code':null", "'exit':1", "'text':'no version\\nof  [1midna  !'", "'tool':{'name':'uv'" } },
        { .name = "the driver failed", "idna>=3", "'ok':false,'exit':1,'code':'ENOTOOL','text':''", FAILED, { "'code':'ENOTOOL'", "'package':''" } },
        { .name = "an exit status that is none", "idna>=3", "'ok':false,'exit':-9,'code':7", FAILED, { "'exit':255", "'code':null", "'text':''" } },
        { .name = "no list", NULL, "'ok':true", -EINVAL, { "no list" } },
        { .name = "no verdict", NULL, "'packages':[]", -EINVAL, { "reeve.closure/1" } },
        { .name = "a tag that is none", NULL, "[]", -EINVAL, { "what runtime" }, .runtime = "cp311 linux" },
        { .name = "twice the same member", NULL, "'ok':true,'ok':true", -EINVAL, { "the resolver" } },
        { .name = "cut", NULL, "[{'name'", -EINVAL, { "the resolver" } },
};

static void python(void **state)
{
        closure_check_rows(RV_LANGUAGE_PYTHON, python_rows, RV_N_ELEMENTS(python_rows));
}

static void others_schema(void **state)
{
        static const char *const texts[] = { "", "[]", "null", "{}", "{\"schema\":\"reeve.closure/2\",\"ok\":true}", "\xff" };
        struct rv_error err = { 0 };
        json_t *value = (void *)1;

        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++)
                assert_int_equal(rv_closure_read(RV_LANGUAGE_PYTHON, texts[i], strlen(texts[i]), NULL, 0, &value, &err),
                        -EINVAL);
        assert_ptr_equal(value, (void *)1);
}

static void sizes(void **state)
{
        static const char head[] = "{\"schema\":\"reeve.closure/1\",\"ok\":true,\"tool\":{\"name\":\"uv\"},\"runtime\":{\"tag\":\"t\",\"interpreter\":\"/p\"},\"packages\":[";
        struct rv_buf text = { 0 };
        struct rv_error err = { 0 };
        json_t *value = NULL;
        char *large = calloc(1, RV_CLOSURE_BYTES_MAX + 1);

        assert_non_null(large);
        assert_int_equal(
                rv_closure_read(RV_LANGUAGE_PYTHON, large, RV_CLOSURE_BYTES_MAX + 1, NULL, 0, &value, &err), -EMSGSIZE);
        free(large);
        for (int n = RV_CLOSURE_PACKAGES_MAX; n <= RV_CLOSURE_PACKAGES_MAX + 1; n++) {
                text.size = 0;
                rv_buf_puts(&text, head);
                for (int i = 0; i < n; i++)
                        rv_buf_printf(&text, "%s{\"name\":\"p%d\",\"version\":\"1\",\"file\":\"p%d-1-py3-none-any.whl\",\"url\":\"http://h/\"}", i ? "," : "", i, i);
                rv_buf_puts(&text, "]}");
                assert_int_equal(rv_closure_read(RV_LANGUAGE_PYTHON, text.data, text.size, NULL, 0, &value, &err),
                        n > RV_CLOSURE_PACKAGES_MAX ? RV_CLOSURE_E_TOO_LARGE : 0);
                if (n > RV_CLOSURE_PACKAGES_MAX)
                        assert_int_equal(json_integer_value(json_object_get(value, "n_packages")), n);
                json_decref(value);
        }
        rv_buf_fini(&text);
}

static const struct {
        const char *name, *packages, *paths;
} path_rows[] = {
        { "none", "[]", "[]" },
        { "itself", "[{'name':'a','direct':true}]", "[['a']]" },
        { "a chain", "[{'name':'a','direct':true,'requires':['b']},{'name':'b','requires':['c']},{'name':'c'}]", "[['a'],['a','b'],['a','b','c']]" },
        { "the shorter way", "[{'name':'a','direct':true,'requires':['b','c']},{'name':'b','requires':['c']},{'name':'c'}]", "[['a'],['a','b'],['a','c']]" },
        { "the first of two", "[{'name':'d','requires':[]},{'name':'x','direct':true,'requires':['d']},{'name':'b','direct':true,'requires':['d']}]", "[['x','d'],['x'],['b']]" },
        { "asked for and needed", "[{'name':'a','direct':true,'requires':['b']},{'name':'b','direct':true}]", "[['a'],['b']]" },
        { "a ring", "[{'name':'a','direct':true,'requires':['b']},{'name':'b','requires':['a']}]", "[['a'],['a','b']]" },
        { "nothing leads there", "[{'name':'a','direct':true},{'name':'b'}]", "[['a'],['b']]" },
        { "metadata's spelling", "[{'name':'a','direct':true,'requires':[{'name':'Foo._Bar','marker':''}]},{'name':'foo-bar'}]", "[['a'],['a','foo-bar']]" },
        { "not by an extra", "[{'name':'a','direct':true,'requires':[{'name':'z','marker':\"extra == 'x'\"},'b']},{'name':'b','requires':['c']},{'name':'c','requires':['z']},{'name':'z'}]",
          "[['a'],['a','b'],['a','b','c'],['a','b','c','z']]" },
        { "by an extra only", "[{'name':'a','direct':true,'requires':[{'name':'z','marker':\"python_version > '3' and ('x' == extra)\"}]},{'name':'z'}]", "[['a'],['a','z']]" },
        { "extra within another word", "[{'name':'a','direct':true,'requires':['b',{'name':'z','marker':\"x == 'extra' or extras\"}]},{'name':'b','requires':['z']},{'name':'z'}]",
          "[['a'],['a','b'],['a','z']]" },
        { "positions", "[{'name':'a','direct':true,'needs':[2],'requires':['a']},{'name':'b'},{'name':'b','needs':[1,9,-1]}]", "[['a'],['a','b','b'],['a','b']]" },
};

static void paths(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(path_rows); i++) {
                char *text = strdup(path_rows[i].packages), *wanted = closure_json(path_rows[i].paths);
                struct rv_buf out = { 0 };
                json_t *packages, *got = NULL;
                bool is_quoted = false;

                /* ' for ", but within ", where a marker's own quotes stand. */
                for (char *p = text; *p; p++) {
                        if (*p == '"')
                                is_quoted = !is_quoted;
                        else if (*p == '\'' && !is_quoted)
                                *p = '"';
                }
                packages = json_loads(text, 0, NULL);
                assert_non_null(packages);
                assert_int_equal(rv_closure_paths(packages, &got), 0);
                assert_int_equal(rv_json_canonical(got, &out), 0);
                if (strcmp(out.data, wanted) != 0)
                        fail_msg("%s: %s", path_rows[i].name, out.data);
                json_decref(packages);
                json_decref(got);
                rv_buf_fini(&out);
                free(text);
                free(wanted);
        }
}

static void no_paths(void **state)
{
        json_t *object = json_object(), *nameless = json_pack("[{}]"), *ret = (void *)1;

        assert_int_equal(rv_closure_paths(object, &ret), -EINVAL);
        assert_int_equal(rv_closure_paths(nameless, &ret), -EINVAL);
        assert_ptr_equal(ret, (void *)1);
        json_decref(object);
        json_decref(nameless);
}

static void drivers(void **state)
{
        const struct rv_driver *py = rv_driver_get(RV_DRIVER_RESOLVE, RV_LANGUAGE_PYTHON),
                               *js = rv_driver_get(RV_DRIVER_RESOLVE, RV_LANGUAGE_JAVASCRIPT);
        const struct rv_driver *compile = rv_driver_get(RV_DRIVER_COMPILE, RV_LANGUAGE_PYTHON);

        assert_null(rv_driver_get(RV_DRIVER_COMPILE, RV_LANGUAGE_JAVASCRIPT));
        assert_int_equal(strlen(py->text), py->size);
        assert_int_equal(strlen(js->text), js->size);
        assert_int_equal(strlen(compile->text), compile->size);
        assert_non_null(strstr(py->text, "__main__"));
        assert_non_null(strstr(js->text, "'use strict'"));
        assert_non_null(strstr(compile->text, "RVPC"));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(python),
                cmocka_unit_test(others_schema),
                cmocka_unit_test(sizes),
                cmocka_unit_test(paths),
                cmocka_unit_test(no_paths),
                cmocka_unit_test(drivers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
