/*
 * What npm answered: a package-lock.json, and all that one may hide (notes in core/package/npm_lock.h).
 */
#include "test_package_closure.h"

#include "package/closure_private.h"
#include "package/npm_key.h"

#define REFUSED RV_CLOSURE_E_REFUSED
#define FAILED RV_CLOSURE_E_FAILED
#define SHA "'integrity':'sha512-XI5MPzVNApjAyhQzphX8BkmKsKUxD4LdyK24iZeQGinBN9yTQT3bFlCBy/aVx2HrNcqQGsdot8ghrjyrvMCoEA=='"
#define SHA2 "'integrity':'sha512-PYAthTa2m2VKxuvSD3DPC/Gy+U+sOA1LAuT8mkmRuvw+NACSaeXEQ+NHcVF7rONl6qcaxV3Uuemwawk+7+SJLw=='"
#define LOCK(places) "{'name':'project','lockfileVersion':3,'requires':true,'packages':{'':{}" places "}}"
#define AT(key, rest) ",'node_modules/" key "':{'version':'1.0.0'," SHA rest "}"
#define A AT("a", "")

static const struct closure_row rows[] = {
        { .name = "one package", "a@^1", LOCK(A), 0,
          { "'packages':[{'at':['node_modules/a'],'direct':true,'extras':[],'install_script':false," SHA ",'name':'a','needs':[],'optional':false,'requested':'a@^1','requires':[],'version':'1.0.0'}]" } },
        { .name = "lockfileVersion 2", "a@1", "{'lockfileVersion':2,'packages':{'':{}" A "},'dependencies':{'a':{'version':'1.0.0'}}}", 0, { "'a'" } },
        { .name = "scope, licence, script", "@s/a@1", LOCK(AT("@s/a", ",'license':'MIT','hasInstallScript':true")), 0, { "'name':'@s/a'", "'license':'MIT'", "'install_script':true" } },
        { .name = "a licence that is no text", "a@1", LOCK(AT("a", ",'license':{'type':'MIT'}")), 0, { "'a'" }, "license" },
        { .name = "a dependency", "a@1", LOCK(AT("a", ",'dependencies':{'b':'^1'}") AT("b", "")), 0, { "'needs':[1]", "'requires':['b']", "'direct':false" } },
        { .name = "the nearest is meant", "a@1", LOCK(AT("a", ",'dependencies':{'b':'^1'}") AT("a/node_modules/b", "") ",'node_modules/b':{'version':'2.0.0'," SHA2 "}"), 0,
          { "{'at':['node_modules/a'],'direct':true,'extras':[],'install_script':false," SHA ",'name':'a','needs':[1]", "{'at':['node_modules/a/node_modules/b']", "'version':'2.0.0'" } },
        { .name = "one package at two places", "a@1; b@2", LOCK(AT("a", ",'dependencies':{'b':'1'}") AT("a/node_modules/b", "") AT("c", ",'dependencies':{'b':'1'}") AT("c/node_modules/b", "") ",'node_modules/b':{'version':'2.0.0'," SHA2 "}"), 0,
          { "'at':['node_modules/a/node_modules/b','node_modules/c/node_modules/b']", "'requested':'b@2'" } },
        { .name = "the same with two hashes", "a@1", LOCK(A AT("a/node_modules/b", "") ",'node_modules/b':{'version':'1.0.0'," SHA2 "}"), REFUSED, { "name_mismatch", "two hashes" } },
        { .name = "an alias is judged by its name", "a@1", LOCK(AT("a", ",'dependencies':{'foo':'npm:leaf@1'}") AT("foo", ",'name':'leaf'")), 0,
          { "'requires':['leaf']", "{'at':['node_modules/foo'],'direct':false", "'name':'leaf'" } },
        { .name = "an alias of what was asked for", "a@1", LOCK(AT("a", ",'name':'leaf'")), REFUSED, { "'package':'a'", "does not have it" } },
        { .name = "capitals, of old", "a@1", LOCK(AT("a", ",'dependencies':{'JSONStream':'1'}") AT("JSONStream", "")), 0, { "'JSONStream'" } },
        { .name = "peers are judged", "a@1", LOCK(AT("a", ",'peerDependencies':{'p':'*'}") AT("p", ",'peer':true")), 0, { "'requires':['p']" } },
        { .name = "a peer that is not there", "a@1", LOCK(AT("a", ",'peerDependencies':{'p':'*'},'peerDependenciesMeta':{'p':{'optional':true}}")), 0, { "'requires':[]" } },

        { .name = "for another system", "a@1", LOCK(AT("a", ",'optionalDependencies':{'w':'1'}") AT("w", ",'optional':true,'os':['win32']")), 0,
          { "'not_installed':[{'at':'node_modules/w','name':'w','version':'1.0.0'}]", "'requires':[]" } },
        { .name = "for this one", "a@1", LOCK(AT("a", ",'optionalDependencies':{'w':'1'}") AT("w", ",'optional':true,'os':['linux','darwin'],'cpu':['x64'],'libc':['glibc']")), 0, { "'not_installed':[]", "'optional':true" } },
        { .name = "for another libc", "a@1", LOCK(AT("a", ",'optionalDependencies':{'w':'1'}") AT("w", ",'optional':true,'libc':['musl']")), 0, { "'not_installed':[{" } },
        { .name = "on that libc", "a@1", LOCK(AT("a", ",'optionalDependencies':{'w':'1'}") AT("w", ",'optional':true,'libc':['musl']")), 0, { "'not_installed':[]" }, .runtime = "node-linux-x64-musl" },
        { .name = "on another cpu", "a@1", LOCK(AT("a", ",'optionalDependencies':{'w':'1'}") AT("w", ",'optional':true,'cpu':['x64']")), 0, { "'not_installed':[{" }, .runtime = "node-linux-arm64-glibc" },
        { .name = "all but this one", "a@1", LOCK(AT("a", ",'optionalDependencies':{'w':'1'}") AT("w", ",'optional':true,'os':['!linux']")), 0, { "'not_installed':[{" } },
        { .name = "all but another", "a@1", LOCK(AT("a", ",'optionalDependencies':{'w':'1'}") AT("w", ",'optional':true,'os':['!win32','!darwin']")), 0, { "'not_installed':[]" } },
        { .name = "any", "a@1", LOCK(AT("a", ",'optionalDependencies':{'w':'1'}") AT("w", ",'optional':true,'os':'any'")), 0, { "'not_installed':[]" } },
        { .name = "what lies in it is not looked at", "a@1", LOCK(AT("a", ",'optionalDependencies':{'w':'1'}") AT("w", ",'optional':true,'os':['win32'],'bundleDependencies':['x']")
                ",'node_modules/w/node_modules/x':{'version':'1.0.0','inBundle':true,'optional':true}"), 0, { "'name':'w'", "'name':'x'" } },
        { .name = "what only it needs is left out", "a@1", LOCK(AT("a", ",'optionalDependencies':{'w':'1'}") AT("w", ",'optional':true,'os':['win32'],'dependencies':{'x':'1'}") AT("x", ",'optional':true")), 0,
          { "'name':'w'", "'at':'node_modules/x'" } },
        { .name = "what cannot do without it is left out", "a@1", LOCK(AT("a", ",'optionalDependencies':{'v':'1'}") AT("v", ",'optional':true,'dependencies':{'w':'1'}") AT("w", ",'optional':true,'os':['win32']")), 0,
          { "'at':'node_modules/v'", "'at':'node_modules/w'", "'requires':[]" } },
        { .name = "wanted, for another system", "a@1", LOCK(AT("a", ",'os':['win32']")), FAILED, { "'code':'EBADPLATFORM'", "'package':'a'", "'tool':{'name':'npm'" } },
        { .name = "needed, for another system", "a@1", LOCK(AT("a", ",'dependencies':{'w':'1'}") AT("w", ",'os':['win32']")), FAILED, { "'package':'w'" } },
        { .name = "an optional one that is not there", "a@1", LOCK(AT("a", ",'optionalDependencies':{'gone':'1'}")), 0, { "'requires':[]" } },
        { .name = "the same, named twice", "a@1", LOCK(AT("a", ",'dependencies':{'gone':'1'},'optionalDependencies':{'gone':'1'}")), 0, { "'requires':[]" } },
        { .name = "one that is needed is not there", "a@1", LOCK(AT("a", ",'dependencies':{'gone':'1'}")), REFUSED, { "'cause':'name_mismatch'", "does not have" } },

        { .name = "a version that was not asked for", "a@^2", LOCK(A), REFUSED, { "name_mismatch", "a@^2 was asked for" } },
        { .name = "not there", "a@1; b@1", LOCK(A), REFUSED, { "'package':'b'" } },
        { .name = "there, but within another", "b@1", LOCK(A AT("a/node_modules/b", "")), REFUSED, { "'package':'b'" } },
        { .name = "key outside", "a@1", LOCK(A ",'../../etc':{'version':'1.0.0'," SHA "}"), REFUSED, { "unsafe_archive", "outside of node_modules" } },
        { .name = "key of a workspace", "a@1", LOCK(A ",'packages/b':{'version':'1.0.0'," SHA "}"), REFUSED, { "unsafe_archive" } },
        { .name = "absolute key", "a@1", LOCK(A ",'/node_modules/b':{'version':'1.0.0'," SHA "}"), REFUSED, { "unsafe_archive" } },
        { .name = "key that climbs", "a@1", LOCK(A AT("../b", "")), REFUSED, { "unsafe_archive" } },
        { .name = "key that climbs in a scope", "a@1", LOCK(A AT("@../b", "")), REFUSED, { "unsafe_archive" } },
        { .name = "key that climbs within", "a@1", LOCK(A AT("a/node_modules/../../../b", "")), REFUSED, { "unsafe_archive" } },
        { .name = "key into another package", "a@1", LOCK(A AT("a/lib/x", "")), REFUSED, { "unsafe_archive" } },
        { .name = "key that ends in a slash", "a@1", LOCK(A AT("a/", "")), REFUSED, { "unsafe_archive" } },
        { .name = "key of the scripts", "a@1", LOCK(A AT(".bin", "")), REFUSED, { "unsafe_archive" } },
        { .name = "key called node_modules", "a@1", LOCK(A AT("node_modules", "")), REFUSED, { "unsafe_archive" } },
        { .name = "link", "a@1", LOCK(A AT("b", ",'link':true")), REFUSED, { "unsafe_archive", "link" } },
        { .name = "link, not by true", "a@1", LOCK(A AT("b", ",'link':1")), REFUSED, { "unsafe_archive" } },
        { .name = "no link", "a@1", LOCK(AT("a", ",'link':false")), 0, { "'a'" } },
        { .name = "resolved", "a@1", LOCK(AT("a", ",'resolved':'https://registry.example/a.tgz'")), REFUSED, { "unsafe_archive", "does not come from the registry" } },
        { .name = "in a bundle", "a@1", LOCK(A AT("a/node_modules/b", ",'inBundle':true")), REFUSED, { "unsafe_archive" } },
        { .name = "brings a bundle", "a@1", LOCK(AT("a", ",'bundleDependencies':['b']")), REFUSED, { "unsafe_archive", "brings" } },
        { .name = "brings all of it", "a@1", LOCK(AT("a", ",'bundleDependencies':true")), REFUSED, { "unsafe_archive" } },
        { .name = "no integrity", "a@1", LOCK(",'node_modules/a':{'version':'1.0.0'}"), REFUSED, { "unsafe_archive", "SHA-512" } },
        { .name = "sha1", "a@1", LOCK(",'node_modules/a':{'version':'1.0.0','integrity':'sha1-W8PTcmUyMyc+BoTIwaXJrbQLjGM='}"), REFUSED, { "unsafe_archive" } },
        { .name = "two hashes", "a@1", LOCK(",'node_modules/a':{'version':'1.0.0','integrity':'sha1-W8PTcmUyMyc+BoTIwaXJrbQLjGM= sha512-XI5MPzVNApjAyhQzphX8BkmKsKUxD4LdyK24iZeQGinBN9yTQT3bFlCBy/aVx2HrNcqQGsdot8ghrjyrvMCoEA=='}"), REFUSED, { "unsafe_archive" } },
        { .name = "a short hash", "a@1", LOCK(",'node_modules/a':{'version':'1.0.0','integrity':'sha512-AAAA'}"), REFUSED, { "unsafe_archive" } },
        { .name = "git", "a@1", LOCK(AT("a", ",'dependencies':{'b':'git+ssh://host.example/b'}") AT("b", "")), REFUSED, { "unsafe_archive", "elsewhere" } },
        { .name = "user/repository", "a@1", LOCK(AT("a", ",'dependencies':{'b':'user/b'}") AT("b", "")), REFUSED, { "unsafe_archive" } },
        { .name = "a URL", "a@1", LOCK(AT("a", ",'optionalDependencies':{'b':'https://host.example/b.tgz'}") AT("b", "")), REFUSED, { "unsafe_archive" } },
        { .name = "a path", "a@1", LOCK(AT("a", ",'dependencies':{'b':'file:../b'}") AT("b", "")), REFUSED, { "unsafe_archive" } },
        { .name = "a spec that is no text", "a@1", LOCK(AT("a", ",'dependencies':{'b':{}}") AT("b", "")), REFUSED, { "unsafe_archive" } },
        { .name = "a name that is none", "a@1", LOCK(A AT("b", ",'name':'../c'")), REFUSED, { "name_mismatch" } },
        { .name = "a version that is none", "a@1", LOCK(A ",'node_modules/b':{'version':'latest'," SHA "}"), REFUSED, { "name_mismatch" } },
        { .name = "half a version", "a@1", LOCK(A ",'node_modules/b':{'version':'1.0'," SHA "}"), REFUSED, { "name_mismatch" } },
        { .name = "no version", "a@1", LOCK(A ",'node_modules/b':{" SHA "}"), REFUSED, { "name_mismatch" } },
        { .name = "no object", "a@1", LOCK(A ",'node_modules/b':[]"), REFUSED, { "unsafe_archive" } },

        { .name = "lockfileVersion 1", "a@1", "{'lockfileVersion':1,'dependencies':{}}", -EINVAL, { "lockfileVersion" } },
        { .name = "no packages", "a@1", "{'lockfileVersion':3}", -EINVAL, { "without a list" } },
        { .name = "no lock", "a@1", "'ok':true", -EINVAL, { "lockfileVersion" } },
        { .name = "Python's tag", "a@1", LOCK(A), -EINVAL, { "what runtime" }, .runtime = "cp311-linux_x86_64" },
        { .name = "npm failed", "a@1", "'ok':false,'exit':1,'code':'ETARGET','text':'No matching version found for a@1.'", FAILED, { "'code':'ETARGET'", "'text':'No matching version found for a@1.'" } },
};

static void locks(void **state)
{
        closure_check_rows(RV_LANGUAGE_JAVASCRIPT, rows, RV_N_ELEMENTS(rows));
}

/* Checked against npm's own semver. */
static const struct {
        const char *range, *in, *out;   /* versions, with spaces between them */
} ranges[] = {
        { "*", "0.0.0 9.9.9", "" }, { "latest", "0.0.0", "" }, { "x", "1.2.3", "" }, { "", "1.2.3", "" },
        { "1.2.3", "1.2.3 1.2.3+build", "1.2.4 1.2.3-a" }, { "=1.2.3", "1.2.3", "1.2.2" }, { "v1.2.3", "1.2.3", "1.2.2" }, { "= v1", "1.5.0", "2.0.0" },
        { "1", "1.0.0 1.9.9", "0.9.9 2.0.0 2.0.0-a" }, { "1.x", "1.9.9", "2.0.0" }, { "1.2", "1.2.9", "1.3.0" }, { "1.2.*", "1.2.9", "1.3.0 1.1.9" },
        { ">1.2", "1.3.0", "1.2.9" }, { ">=1.2", "1.2.0 2.0.0", "1.1.9" }, { "<1.2", "1.1.9", "1.2.0 1.2.5" }, { "<=1.2", "1.2.9", "1.3.0" },
        { ">1.2.3", "1.2.4", "1.2.3" }, { "<1.2.3", "1.2.2", "1.2.3" }, { "<=1.2.3", "1.2.3", "1.2.4" }, { "<*", "", "0.0.0" }, { ">*", "", "9.9.9" }, { ">=*", "1.0.0", "" },
        { "~1.2.3", "1.2.3 1.2.9", "1.3.0 1.2.2" }, { "~1.2", "1.2.0", "1.3.0" }, { "~1", "1.9.0", "2.0.0" }, { "~>1.2", "1.2.5", "1.3.0" }, { "~ 1.2.3", "1.2.5", "1.3.0" },
        { "^1.2.3", "1.2.3 1.9.9", "2.0.0 1.2.2 2.0.0-rc.1" }, { "^0.2.3", "0.2.9", "0.3.0 1.0.0" }, { "^0.0.3", "0.0.3", "0.0.4" }, { "^0.0", "0.0.9", "0.1.0" }, { "^0", "0.9.9", "1.0.0" }, { "^0.0.0", "0.0.0", "0.0.1" },
        { "1.2.3 - 2", "1.2.3 2.9.9", "3.0.0 1.2.2" }, { "1.2 - 2.3.4", "1.2.0 2.3.4", "2.3.5" }, { "1 - 2.3 || 5", "2.3.9 5.1.0", "2.4.0 4.0.0" },
        { ">=1 <3 || 7.0.0", "2.9.9 7.0.0", "3.0.0 7.0.1" }, { "1||2", "1.1.1 2.2.2", "3.0.0" }, { ">= 1.2.3 < 2", "1.9.9", "2.0.0" }, { "^4 <=4.18", "4.18.9", "4.19.0" },
        { "1.0.0-rc.1", "1.0.0-rc.1", "1.0.0" }, { "^1.0.0-rc.1", "1.0.0-rc.2 1.5.0", "1.0.0-beta 2.0.0" }, { ">=99999999999 <=900719925474099", "99999999999.0.0", "1.0.0" },
};

static void check_versions(const char *range, const char *versions, bool is_in)
{
        while (*versions) {
                size_t n = strcspn(versions, " ");
                struct rv_version v;

                assert_int_equal(rv_version_parse(RV_VERSION_SEMVER, versions, n, &v), 0);
                if (rv__npm_satisfies(range, &v) != is_in)
                        fail_msg("%s should %sbe in %s", versions, is_in ? "" : "not ", range);
                versions += n;
                versions += strspn(versions, " ");
        }
}

static void range_rows(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(ranges); i++) {
                check_versions(ranges[i].range, ranges[i].in, true);
                check_versions(ranges[i].range, ranges[i].out, false);
        }
}

static void keys(void **state)
{
        static const char *const good[] = { "node_modules/a", "node_modules/@s/a", "node_modules/a/node_modules/@s/b", "node_modules/xnode_modules/node_modules/b" };
        static const char *const names[] = { "a", "@s/a", "@s/b", "b" };
        static const char *const bad[] = { "", "a", "node_modules", "node_modules/", "node_modules/a/", "node_modules//a", "node_modules/@s", "node_modules/@s/", "node_modules/@/a",
                "node_modules/a/b", "node_modules/.a", "node_modules/..", "node_modules/a\\b", "node_modules/a/node_modules", "Node_modules/a", "node_modules/NODE_MODULES", "node_modules/\xc3\xa4" };

        for (size_t i = 0; i < RV_N_ELEMENTS(good); i++) {
                assert_true(rv_npm_key_is_valid(good[i]));
                assert_string_equal(rv_npm_key_name(good[i]), names[i]);
        }
        assert_string_equal(rv_npm_key_name("node_modules/@xnode_modules/b"), "@xnode_modules/b");
        assert_int_equal(rv_npm_key_parent(good[2], strlen(good[2])), strlen("node_modules/a"));
        for (size_t i = 0; i < RV_N_ELEMENTS(bad); i++)
                if (rv_npm_key_is_valid(bad[i]))
                        fail_msg("%s is no key", bad[i]);
}

static void specs(void **state)
{
        static const char *const good[] = { "", "*", "^1.2", "1.x || >=2 <3", "1 - 2", "latest", "next", "npm:leaf@1", "npm:@s/leaf@^1", "npm:leaf" };
        static const char *const bad[] = { "git://h/a", "git+https://h/a", "user/repo", "github:user/repo", "https://h/a.tgz", "file:../a", "./a", "../a", "~/a", "/a", "link:a", "workspace:*",
                "npm:", "npm:../a@1", "npm:leaf@https://h/a", "npm:@s@1", "a\\b", ".", "C:\\a" };

        for (size_t i = 0; i < RV_N_ELEMENTS(good); i++)
                if (!rv_npm_spec_is_plain(good[i]))
                        fail_msg("%s is of the registry", good[i]);
        for (size_t i = 0; i < RV_N_ELEMENTS(bad); i++)
                if (rv_npm_spec_is_plain(bad[i]))
                        fail_msg("%s is not of the registry", bad[i]);
}

/* Long rows of packages that need each other end in time. */
static void long_rows(void **state)
{
        struct rv_buf text = { 0 };
        struct closure_row row = { .asked = "p0@1" };
        char *got = NULL;

        rv_buf_puts(&text, "{'lockfileVersion':3,'packages':{'':{}");
        for (int i = 0; i < 2000; i++)
                rv_buf_printf(&text, ",'node_modules/p%d':{'version':'1.0.0'," SHA ",'optional':%s,'%s':{'p%d':'1'}%s}", i, i ? "true" : "false",
                        i ? "dependencies" : "optionalDependencies", i + 1, i == 1999 ? ",'os':['win32']" : "");
        rv_buf_puts(&text, "}}");
        row.answer = text.data;
        assert_int_equal(closure_read_row(RV_LANGUAGE_JAVASCRIPT, &row, &got), REFUSED);
        assert_non_null(strstr(got, "too long a row"));
        free(got);
        rv_buf_fini(&text);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(locks),
                cmocka_unit_test(range_rows),
                cmocka_unit_test(keys),
                cmocka_unit_test(specs),
                cmocka_unit_test(long_rows),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
