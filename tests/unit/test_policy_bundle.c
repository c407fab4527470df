/*
 * Bundles on disk: what is taken, what is refused, the digest, the copy that is kept.
 */
#include "test_policy_util.h"

#include "base/fd.h"

#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char top[64];

static int make_top(void **state)
{
        strcpy(top, "/tmp/reeve-bundle-XXXXXX");
        return mkdtemp(top) ? 0 : -1;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
        return remove(path);
}

static int remove_top(void **state)
{
        return nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *path, const char *text)
{
        char full[200], parent[200];

        snprintf(full, sizeof(full), "%s/%s", top, path);
        snprintf(parent, sizeof(parent), "%s", full);
        *strrchr(parent, '/') = 0;
        assert_int_equal(rv_mkdir_p(parent, 0755), 0);
        assert_int_equal(rv_write_file(full, text, strlen(text), 0644, false), 0);
}

static struct rv_bundle *load_ok(void)
{
        struct rv_bundle *b = NULL;
        struct rv_error err = { 0 };

        if (rv_bundle_load(top, &b, &err) != 0)
                fail_msg("cannot load: %s", err.message);
        return b;
}

static void expect_refusal(int code, const char *message)
{
        struct rv_bundle *b = (void *)0x1;
        struct rv_error err = { 0 };
        int r = rv_bundle_load(top, &b, &err);

        if (r != code || !strstr(err.message, message))
                fail_msg("%d '%s', and not %d '%s'", r, err.message, code, message);
        assert_ptr_equal(b, (void *)0x1);
}

static void only_policy_lua_is_needed(void **state)
{
        struct rv_bundle *b;

        expect_refusal(-ENOENT, "policy.lua: not in the policy bundle");
        put("policy.lua", "");
        b = load_ok();
        assert_int_equal(b->n_files, 1);
        assert_string_equal(rv_bundle_name(b), "");
        assert_string_equal(rv_bundle_version(b), "");
        rv_bundle_free(b);
        rv_bundle_free(NULL);
}

static void what_is_part_of_it(void **state)
{
        static const char *const part[] = { "bundle.yaml", "data/deep/b.json", "data/set.json", "lib/a/b.lua", "lib/x.lua", "policy.lua", "tests/x_test.lua" };
        static const char *const other[] = { "README.md", ".luarc.json", ".git/x.lua", "policy.lua~", "data/set.csv", "data/x.lua", "x.json", "lib/.hidden.lua",
                "a/b/c/d/e.lua" };
        struct rv_bundle *b;
        char digest[65];

        for (size_t i = 0; i < RV_N_ELEMENTS(part); i++)
                put(part[i], strstr(part[i], ".json") ? "[1]" : strstr(part[i], ".yaml") ? "name: n\nversion: '2'\ndescription: d\n" : "return 1");
        b = load_ok();
        strcpy(digest, rv_bundle_digest(b));
        rv_bundle_free(b);
        for (size_t i = 0; i < RV_N_ELEMENTS(other); i++)
                put(other[i], "\xff not anything");
        b = load_ok();
        assert_int_equal(b->n_files, RV_N_ELEMENTS(part));
        for (size_t i = 0; i < RV_N_ELEMENTS(part); i++)
                assert_string_equal(b->files[i].path, part[i]);
        assert_string_equal(rv_bundle_digest(b), digest);
        assert_string_equal(rv_bundle_name(b), "n");
        assert_string_equal(rv_bundle_version(b), "2");
        assert_string_equal(rv_bundle_description(b), "d");
        assert_true(rv_bundle_is_test(rv_bundle_find(b, "tests/x_test.lua")));
        assert_null(rv_bundle_find(b, "README.md"));
        rv_bundle_free(b);
}

/* The digest is what two commands that everybody has would print. */
static void digest_is_that_of_sha256sum(void **state)
{
        char command[300], line[100] = "";
        struct rv_bundle *b;
        FILE *f;

        put("policy.lua", "return 1\n");
        put("lib/x.lua", "return 2\n");
        put("data/a.json", "{}");
        put("bundle.yaml", "name: x\n");
        snprintf(command, sizeof(command), "cd %s && find * -type f | LC_ALL=C sort | xargs sha256sum | sha256sum", top);
        f = popen(command, "r");
        assert_non_null(f);
        assert_non_null(fgets(line, sizeof(line), f));
        pclose(f);
        line[64] = 0;
        b = load_ok();
        assert_string_equal(rv_bundle_digest(b), line);
        rv_bundle_free(b);
}

static void digest_depends_on_everything(void **state)
{
        static const char *const changes[][2] = {
                { "policy.lua", "return 2" }, { "data/a.json", "[]" }, { "tests/a_test.lua", "" }, { "bundle.yaml", "name: y" }, { "new.lua", "" },
        };
        char digests[RV_N_ELEMENTS(changes) + 1][65];

        put("policy.lua", "return 1");
        put("data/a.json", "{}");
        for (size_t i = 0; i <= RV_N_ELEMENTS(changes); i++) {
                struct rv_bundle *b = load_ok();

                strcpy(digests[i], rv_bundle_digest(b));
                rv_bundle_free(b);
                for (size_t k = 0; k < i; k++)
                        assert_string_not_equal(digests[i], digests[k]);
                if (i < RV_N_ELEMENTS(changes))
                        put(changes[i][0], changes[i][1]);
        }
}

static void put_size(const char *path, size_t n, char c)
{
        char *text = malloc(n + 1);

        assert_non_null(text);
        memset(text, c, n);
        text[n] = 0;
        put(path, text);
        free(text);
}

static void sizes(void **state)
{
        put_size("policy.lua", RV_BUNDLE_LUA_SIZE_MAX, ' ');
        rv_bundle_free(load_ok());
        put_size("policy.lua", RV_BUNDLE_LUA_SIZE_MAX + 1, ' ');
        expect_refusal(-EFBIG, "policy.lua: larger than 65536 bytes");
        put("policy.lua", "");
        put_size("data/x.json", RV_BUNDLE_DATA_SIZE_MAX + 1, ' ');
        expect_refusal(-EFBIG, "data/x.json: larger than 1048576 bytes");
        put("data/x.json", "1");
        put_size("bundle.yaml", RV_BUNDLE_YAML_SIZE_MAX + 1, '#');
        expect_refusal(-EFBIG, "bundle.yaml: larger than 16384 bytes");
}

static void counts(void **state)
{
        char path[40];

        put("policy.lua", "");
        for (int i = 1; i < RV_BUNDLE_FILES_MAX; i++) {
                snprintf(path, sizeof(path), "m%d.lua", i);
                put(path, "");
        }
        rv_bundle_free(load_ok());
        put("one_more.lua", "");
        expect_refusal(-E2BIG, "more than 256 files");
}

static void bytes_in_all(void **state)
{
        char path[40], *big = malloc(1000 * 1000 + 3);

        assert_non_null(big);
        memset(big, ' ', 1000 * 1000);
        strcpy(big + 1000 * 1000, "1");
        put("policy.lua", "");
        for (int i = 0; i < 9; i++) {
                snprintf(path, sizeof(path), "data/d%d.json", i);
                put(path, big);
        }
        free(big);
        expect_refusal(-E2BIG, "more than 8388608 bytes in all");
}

static void names(void **state)
{
        put("policy.lua", "");
        put("lib/a b.lua", "");
        expect_refusal(-EINVAL, "letters, digits, '_', '.' and '-' only: byte 0x20");
        remove_top(NULL);
        make_top(NULL);
        put("policy.lua", "");
        put("lib/a_name_that_is_much_longer_than_any_message_of_lua_can_show.lua", "");
        expect_refusal(-EINVAL, "at most 59 bytes");
}

static void links(void **state)
{
        char from[200], to[200];

        put("policy.lua", "");
        put("real/x.lua", "return 1");
        snprintf(to, sizeof(to), "%s/link.lua", top);
        assert_int_equal(symlink("real/x.lua", to), 0);
        expect_refusal(-ELOOP, "link.lua: is a link");
        unlink(to);
        snprintf(to, sizeof(to), "%s/notes.md", top);
        assert_int_equal(symlink("/etc/passwd", to), 0);
        rv_bundle_free(load_ok());
        snprintf(to, sizeof(to), "%s/policy.lua", top);
        unlink(to);
        assert_int_equal(mkfifo(to, 0600), 0);
        expect_refusal(-EINVAL, "policy.lua: is not a regular file");
        unlink(to);
        put("policy.lua", "");
        snprintf(from, sizeof(from), "%s/lib", top);
        assert_int_equal(symlink("/usr", from), 0);
        rv_bundle_free(load_ok());   /* a link to a directory is not gone into */
}

static void the_directory_itself_may_be_a_link(void **state)
{
        struct rv_bundle *b = NULL;
        char link[100];

        put("real/policy.lua", "");
        snprintf(link, sizeof(link), "%s/current", top);
        assert_int_equal(symlink("real", link), 0);
        assert_int_equal(rv_bundle_load(link, &b, NULL), 0);
        rv_bundle_free(b);
}

static void no_directory(void **state)
{
        struct rv_bundle *b = NULL;
        struct rv_error err = { 0 };

        assert_int_equal(rv_bundle_load("/nonexistent/bundle", &b, &err), -ENOENT);
        assert_non_null(strstr(err.message, "/nonexistent/bundle"));
        put("policy.lua", "");
        put("file", "");
        strcat(top, "/file");
        err = (struct rv_error){ 0 };
        assert_int_equal(rv_bundle_load(top, &b, &err), -ENOTDIR);
        *strrchr(top, '/') = 0;
}

static void ill_formed_files(void **state)
{
        static const struct {
                const char *path, *text, *message;
        } table[] = {
                { "data/x.json", "{\"a\":1,", "data/x.json: line 1, column" },
                { "data/x.json", "{\"a\":1,\"a\":2}", "data/x.json: line 1" },
                { "data/x.json", "", "data/x.json: line 1" },
                { "data/x.json", "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]", "data/x.json: nested deeper than 32" },
                { "bundle.yaml", "name: x\nauthor: y\n", "bundle.yaml:2: unknown key 'author'" },
                { "bundle.yaml", "name: x\nname: y\n", "bundle.yaml:2: name is given twice" },
                { "bundle.yaml", "name: [x]\n", "bundle.yaml:1: name is text" },
                { "bundle.yaml", "- x\n", "bundle.yaml:1: a bundle.yaml is one mapping" },
                { "bundle.yaml", "name: x\n---\nname: y\n", "bundle.yaml:2: a second document" },
                { "bundle.yaml", "name: 'x\n", "bundle.yaml:" },
                { "bundle.yaml", "\n\n  {", "bundle.yaml:" },
                { "bundle.yaml", "name: \xff\n", "bundle.yaml:1: not UTF-8" },
                { "bundle.yaml", "name: &a x\nversion: *a\n", "bundle.yaml:2: version is text" },
                { "bundle.yaml", "? [a]\n: b\n", "bundle.yaml:1: a bundle.yaml is a mapping" },
        };

        put("policy.lua", "");
        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                put(table[i].path, table[i].text);
                expect_refusal(strstr(table[i].message, "deeper") ? -ELOOP : -EINVAL, table[i].message);
                put(table[i].path, strstr(table[i].path, ".json") ? "1" : "");
        }
        rv_bundle_free(load_ok());
}

static void places_of_errors(void **state)
{
        static const struct {
                const char *message, *file, *text;
                int line;
        } table[] = {
                { "bundle.yaml:3: unknown key", "bundle.yaml", "unknown key", 3 },
                { "data/x.json: line 2, column 5: bad", "data/x.json", "line 2, column 5: bad", 2 },
                { "lib/x.lua: larger than 65536 bytes", "lib/x.lua", "larger than 65536 bytes", 0 },
                { "lib/x.lua: 5: bad", "lib/x.lua", "5: bad", 5 },
                { "more than 256 files", "", "more than 256 files", 0 },
                { "cannot open the policy bundle /x: no", "", "cannot open the policy bundle /x: no", 0 },
                { "", "", "", 0 },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(table); i++) {
                struct rv_error err = { .code = -EINVAL };
                char file[RV_BUNDLE_PATH_MAX + 1];
                int line;

                strcpy(err.message, table[i].message);
                assert_string_equal(rv_bundle_error_place(&err, file, &line), table[i].text);
                assert_string_equal(file, table[i].file);
                assert_int_equal(line, table[i].line);
        }
}

static void builtin_is_policies_default(void **state)
{
        struct rv_bundle *b = NULL, *on_disk = NULL;
        struct rv_error err = { 0 };
        char digest[65];

        assert_int_equal(rv_bundle_builtin(&b), 0);
        rv_bundle_compute_digest(b->files, b->n_files, digest);
        assert_string_equal(rv_bundle_digest(b), digest);
        assert_int_equal(rv_bundle_load(SOURCE_ROOT "/policies/default", &on_disk, &err), 0);
        assert_string_equal(rv_bundle_digest(b), rv_bundle_digest(on_disk));
        assert_string_equal(rv_bundle_name(b), rv_bundle_name(on_disk));
        assert_string_equal(rv_bundle_version(b), rv_bundle_version(on_disk));
        assert_string_equal(rv_bundle_description(b), rv_bundle_description(on_disk));
        assert_string_equal(rv_bundle_name(b), "default");
        rv_bundle_free(on_disk);
        rv_bundle_free(b);
}

static size_t count_entries(const char *dir)
{
        char command[200];
        unsigned n = 0;
        FILE *f;

        snprintf(command, sizeof(command), "find %s -mindepth 1 -maxdepth 1 | wc -l", dir);
        f = popen(command, "r");
        assert_non_null(f);
        assert_int_equal(fscanf(f, "%u", &n), 1);
        pclose(f);
        return n;
}

static void kept_copies_load_to_the_same(void **state)
{
        struct rv_bundle *b, *copy = NULL, *builtin = NULL;
        char store[100], place[200];
        struct rv_error err = { 0 };

        put("in/policy.lua", "return 1");
        put("in/lib/a/b.lua", "return 2");
        put("in/data/x.json", "{\"a\":[]}");
        put("in/bundle.yaml", "name: kept\n");
        put("in/tests/x_test.lua", "");
        snprintf(store, sizeof(store), "%s/state/bundles", top);
        strcat(top, "/in");
        b = load_ok();
        *strrchr(top, '/') = 0;
        assert_int_equal(rv_bundle_builtin(&builtin), 0);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(rv_bundle_keep(b, store), 0);
                assert_int_equal(rv_bundle_keep(builtin, store), 0);
                assert_int_equal(count_entries(store), 2);
        }
        snprintf(place, sizeof(place), "%s/%s", store, rv_bundle_digest(b));
        if (rv_bundle_load(place, &copy, &err) != 0)
                fail_msg("%s", err.message);
        assert_string_equal(rv_bundle_digest(copy), rv_bundle_digest(b));
        assert_string_equal(rv_bundle_name(copy), "kept");
        rv_bundle_free(copy);
        snprintf(place, sizeof(place), "%s/%s", store, rv_bundle_digest(builtin));
        assert_int_equal(rv_bundle_load(place, &copy, &err), 0);
        assert_string_equal(rv_bundle_digest(copy), rv_bundle_digest(builtin));
        rv_bundle_free(copy);
        rv_bundle_free(builtin);
        rv_bundle_free(b);
}

/* What another process does in between: a copy that appears first is taken for ours, and nothing is left over. */
static void keeping_twice_at_once(void **state)
{
        char store[100], command[400];
        struct rv_bundle *b;

        put("policy.lua", "return 1");
        b = load_ok();
        snprintf(store, sizeof(store), "%s/store", top);
        for (int i = 0; i < 4; i++) {
                if (fork() == 0)
                        _exit(rv_bundle_keep(b, store) == 0 ? 0 : 1);
        }
        for (int i = 0; i < 4; i++) {
                int status = -1;

                assert_true(wait(&status) > 0);
                assert_int_equal(status, 0);
        }
        assert_int_equal(count_entries(store), 1);
        snprintf(command, sizeof(command), "test -f %s/%s/policy.lua", store, rv_bundle_digest(b));
        assert_int_equal(system(command), 0);
        rv_bundle_free(b);
}

static void keeping_where_one_cannot(void **state)
{
        struct rv_bundle *b = NULL;
        char path[100];

        assert_int_equal(rv_bundle_builtin(&b), 0);
        put("file", "");
        snprintf(path, sizeof(path), "%s/file", top);
        assert_int_equal(rv_bundle_keep(b, path), -ENOTDIR);
        rv_bundle_free(b);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, make_top, remove_top)
        const struct CMUnitTest tests[] = {
                TEST(only_policy_lua_is_needed), TEST(what_is_part_of_it), TEST(digest_is_that_of_sha256sum),
                TEST(digest_depends_on_everything),
                TEST(sizes), TEST(counts), TEST(bytes_in_all), TEST(names), TEST(links),
                TEST(the_directory_itself_may_be_a_link),
                TEST(no_directory), TEST(ill_formed_files), TEST(places_of_errors), TEST(builtin_is_policies_default),
                TEST(kept_copies_load_to_the_same),
                TEST(keeping_twice_at_once), TEST(keeping_where_one_cannot),
        };

        return cmocka_run_group_tests_name("policy bundle", tests, NULL, NULL);
}
