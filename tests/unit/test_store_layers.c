/* A layer against its manifest: each kind of damage is found, and named with its file. And manifests: what is none is said where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "package/lock.h"
#include "store/layer_manifest.h"
#include "store/layer_verify.h"
#include "test_base_tmp.h"
#include "test_package_lock.h"

#define HEX_A "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"   /* of "a" */
#define HEX_B "3e23e8160039594a33894f6564e1b1348bbd7a0088d42c4acb73eeaed59c009d"   /* of "b" */

static const char built[] =
        "{\"schema\":\"reeve.manifest/1\",\"entries\":["
        "{\"path\":\"bin\",\"type\":\"directory\",\"mode\":493,\"size\":0},"
        "{\"path\":\"bin/python3\",\"type\":\"link\",\"mode\":511,\"size\":16,\"target\":\"/usr/bin/python3\"},"
        "{\"path\":\"bin/tool\",\"type\":\"file\",\"mode\":493,\"size\":1,\"sha256\":\"" HEX_A "\"},"
        "{\"path\":\"lib\",\"type\":\"directory\",\"mode\":493,\"size\":0},"
        "{\"path\":\"lib/a.py\",\"type\":\"file\",\"mode\":420,\"size\":1,\"sha256\":\"" HEX_A "\"}]}";
static const char compiled[] =
        "{\"schema\":\"reeve.manifest/1\",\"entries\":["
        "{\"path\":\"lib/__pycache__\",\"type\":\"directory\",\"mode\":493,\"size\":0},"
        "{\"path\":\"lib/__pycache__/a.pyc\",\"type\":\"file\",\"mode\":420,\"size\":1,\"sha256\":\"" HEX_B "\"},"
        "{\"path\":\"lib/__pycache__/gone.pyc\",\"type\":\"file\",\"mode\":420,\"size\":1,\"sha256\":\"" HEX_B "\"}]}";

static char digest[RV_SHA256_HEX_SIZE];

/* A path in the layer. */
static const char *in_layer(void **state, const char *path)
{
        char all[512];

        snprintf(all, sizeof(all), "packages/layers/%s/%s", digest, path);
        return tmp_path(state, all);
}

static void put(void **state, const char *path, mode_t mode, const char *text)
{
        assert_int_equal(rv_write_file(in_layer(state, path), text, strlen(text), mode, false), 0);
        assert_int_equal(chmod(in_layer(state, path), mode), 0);
}

static void make_directory(void **state, const char *path)
{
        assert_int_equal(mkdir(in_layer(state, path), 0755), 0);
        assert_int_equal(chmod(in_layer(state, path), 0755), 0);
}

static struct rv_store *make(void **state)
{
        _cleanup_(rv_closep) int fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_(rv_json_unrefp) json_t *lock = NULL;
        struct rv_store *store = NULL;

        assert_int_equal(rv_lock_read(lock_python, strlen(lock_python), &lock, NULL), 0);
        assert_int_equal(rv_lock_digest(lock, digest), 0);
        assert_int_equal(rv_store_open(fd, *state, geteuid(), &store, NULL), 0);
        assert_int_equal(mkdir(tmp_path(state, "packages/layers"), 0755), 0);
        make_directory(state, "");
        make_directory(state, "tree");
        make_directory(state, "tree/bin");
        make_directory(state, "tree/lib");
        assert_int_equal(symlink("/usr/bin/python3", in_layer(state, "tree/bin/python3")), 0);
        put(state, "tree/bin/tool", 0755, "a");
        put(state, "tree/lib/a.py", 0644, "a");
        put(state, "manifest.json", 0644, built);
        put(state, "lock.json", 0644, lock_python);
        return store;
}

static void compile(void **state)
{
        make_directory(state, "tree/lib/__pycache__");
        put(state, "tree/lib/__pycache__/a.pyc", 0644, "b");
        put(state, "manifest-compiled.json", 0644, compiled);
}

/* ---- Damage ---- */

static void bytes(void **state)
{
        put(state, "tree/lib/a.py", 0644, "b");
}
static void size(void **state)
{
        put(state, "tree/lib/a.py", 0644, "aa");
}
static void mode(void **state)
{
        assert_int_equal(chmod(in_layer(state, "tree/bin/tool"), 0644), 0);
}
static void setuid_bit(void **state)
{
        assert_int_equal(chmod(in_layer(state, "tree/bin/tool"), 04755), 0);
}
static void directory_mode(void **state)
{
        assert_int_equal(chmod(in_layer(state, "tree/lib"), 0777), 0);
}
static void missing(void **state)
{
        assert_int_equal(unlink(in_layer(state, "tree/lib/a.py")), 0);
}
static void more(void **state)
{
        put(state, "tree/lib/b.py", 0644, "a");
}
static void more_directories(void **state)
{
        make_directory(state, "tree/more");
        put(state, "tree/more/b.py", 0644, "a");
}
static void link_elsewhere(void **state)
{
        assert_int_equal(unlink(in_layer(state, "tree/bin/python3")), 0);
        assert_int_equal(symlink("/bin/sh", in_layer(state, "tree/bin/python3")), 0);
}
static void file_is_a_link(void **state)
{
        missing(state);
        assert_int_equal(symlink("../bin/tool", in_layer(state, "tree/lib/a.py")), 0);
}
static void file_is_a_fifo(void **state)
{
        missing(state);
        assert_int_equal(mkfifo(in_layer(state, "tree/lib/a.py"), 0644), 0);
}
static void second_name(void **state)
{
        assert_int_equal(link(in_layer(state, "tree/lib/a.py"), tmp_path(state, "other")), 0);
}
static void beside(void **state)
{
        put(state, "note", 0644, "");
}
static void no_lock(void **state)
{
        assert_int_equal(unlink(in_layer(state, "lock.json")), 0);
}
static void lock_of_another(void **state)
{
        put(state, "lock.json", 0644, lock_javascript);
}
static void lock_cut(void **state)
{
        put(state, "lock.json", 0644, "{");
}
static void manifest_cut(void **state)
{
        put(state, "manifest.json", 0644, "{\"schema\":");
}
static void no_manifest(void **state)
{
        assert_int_equal(unlink(in_layer(state, "manifest.json")), 0);
}
static void no_tree(void **state)
{
        assert_int_equal(rename(in_layer(state, "tree"), tmp_path(state, "away")), 0);
}
static void code_without_manifest(void **state)
{
        compile(state);
        assert_int_equal(unlink(in_layer(state, "manifest-compiled.json")), 0);
}
static void code_changed(void **state)
{
        compile(state);
        put(state, "tree/lib/__pycache__/a.pyc", 0644, "c");
}
static void code_more(void **state)
{
        compile(state);
        put(state, "tree/lib/__pycache__/b.pyc", 0644, "b");
}
/* The manifest of byte code vouches for nothing else. */
static void source_in_the_other_manifest(void **state)
{
        put(state, "manifest-compiled.json", 0644, "{\"schema\":\"reeve.manifest/1\",\"entries\":[{\"path\":\"lib/evil.py\",\"type\":\"file\",\"mode\":420,\"size\":1,\"sha256\":\"" HEX_A "\"}]}");
        put(state, "tree/lib/evil.py", 0644, "a");
}

static const struct {
        const char *name;
        void (*damage)(void **state);
        const char *path, *says;         /* NULL: none is found */
} rows[] = {
        { "none", NULL, NULL, NULL },
        { "byte code", compile, NULL, NULL },
        { "bytes", bytes, "tree/lib/a.py", "its bytes are not those" },
        { "size", size, "tree/lib/a.py", "another size" },
        { "mode", mode, "tree/bin/tool", "another mode" },
        { "setuid", setuid_bit, "tree/bin/tool", "another mode" },
        { "a directory's mode", directory_mode, "tree/lib", "another mode" },
        { "missing", missing, "tree/lib/a.py", "in the manifest and not there" },
        { "more", more, "tree/lib/b.py", "not in the manifest" },
        { "a directory more", more_directories, "tree/more", "not in the manifest" },
        { "a link leads elsewhere", link_elsewhere, "tree/bin/python3", "leads elsewhere" },
        { "a file is a link", file_is_a_link, "tree/lib/a.py", "not what it was in the manifest, a file" },
        { "a file is a FIFO", file_is_a_fifo, "tree/lib/a.py", "not what it was in the manifest, a file" },
        { "a second name", second_name, "tree/lib/a.py", "several names" },
        { "beside", beside, "note", "no part of a layer" },
        { "no lock", no_lock, "lock.json", "cannot be read" },
        { "lock of another", lock_of_another, "lock.json", "the lock of another layer" },
        { "lock cut", lock_cut, "lock.json", "cannot be read as JSON" },
        { "manifest cut", manifest_cut, "manifest.json", "cannot be read" },
        { "no manifest", no_manifest, "manifest.json", "cannot be read" },
        { "no tree", no_tree, "tree", "cannot be opened" },
        { "byte code without a manifest", code_without_manifest, "tree/lib/__pycache__", "not in the manifest" },
        { "byte code changed", code_changed, "tree/lib/__pycache__/a.pyc", "its bytes are not those" },
        { "more byte code", code_more, "tree/lib/__pycache__/b.pyc", "not in the manifest" },
        { "a source in the other manifest", source_in_the_other_manifest, "tree/lib/evil.py", "not in the manifest" },
};

struct found {
        const char *path, *says;
        size_t n, n_right;
};

static void on_fault(void *ctx, const char *path, const char *fault)
{
        struct found *f = ctx;

        f->n++;
        f->n_right += f->path && !strcmp(path, f->path) && strstr(fault, f->says);
        if (!f->path || strcmp(path, f->path) || !strstr(fault, f->says))
                print_message("%s: %s\n", path, fault);
}

static void damage(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct found found = { rows[i].path, rows[i].says, 0, 0 };
                struct rv_layer_count count;
                struct rv_error err = { 0 };
                struct rv_store *store;
                void *own = NULL;
                int r;

                assert_int_equal(tmp_make(&own), 0);
                store = make(&own);
                if (rows[i].damage)
                        rows[i].damage(&own);
                r = rv_layer_verify(store, digest, on_fault, &found, &count, &err);
                if (r != (rows[i].path ? RV_LAYER_E_DAMAGED : 0) || found.n != (rows[i].path != NULL) ||
                        found.n_right != found.n || count.n_faults != found.n)
                        fail_msg("%s: %d, %zu faults, %zu of them right %s", rows[i].name, r, found.n, found.n_right, err.message);
                if (!rows[i].damage) {
                        assert_int_equal(count.n_files, 2);
                        assert_int_equal(count.bytes, 2);
                }
                rv_store_close(store);
                tmp_remove(&own);
        }
}

static void absent(void **state)
{
        struct rv_store *store = make(state);
        struct rv_layer_count count;

        assert_int_equal(rv_layer_verify(store, HEX_A, NULL, NULL, &count, NULL), RV_LAYER_E_ABSENT);
        assert_int_equal(rv_layer_verify(store, "..", NULL, NULL, &count, NULL), -EINVAL);
        rv_store_close(store);
}

/* ---- Manifests ---- */

#define ENTRY(path, rest) "{\"path\":\"" path "\",\"mode\":420,\"size\":1," rest "}"
#define FILE_ENTRY(path) ENTRY(path, "\"type\":\"file\",\"sha256\":\"" HEX_A "\"")
#define OF(entries) "{\"schema\":\"reeve.manifest/1\",\"entries\":[" entries "]}"

static const struct {
        const char *name, *text, *says;
} manifests[] = {
        { "nothing", "", "" },
        { "another schema", "{\"schema\":\"reeve.lock/1\",\"entries\":[]}", "it is no reeve.manifest/1" },
        { "entries of another kind", "{\"schema\":\"reeve.manifest/1\",\"entries\":{}}", "it is no reeve.manifest/1" },
        { "an entry of another kind", OF("7"), "/entries/0: its path" },
        { "a path from the root", OF(FILE_ENTRY("/a")), "/entries/0: its path" },
        { "a path upwards", OF(FILE_ENTRY("a/../b")), "/entries/0: its path" },
        { "a path in place", OF(FILE_ENTRY("./a")), "/entries/0: its path" },
        { "a path that ends in a slash", OF(FILE_ENTRY("a/")), "/entries/0: its path" },
        { "a path of nothing", OF(FILE_ENTRY("")), "/entries/0: its path" },
        { "a type", OF(ENTRY("a", "\"type\":\"device\"")), "/entries/0: its type" },
        { "no hash", OF(ENTRY("a", "\"type\":\"file\"")), "/entries/0: its sha256" },
        { "no target", OF(ENTRY("a", "\"type\":\"link\"")), "/entries/0: it has no target" },
        { "a mode", OF("{\"path\":\"a\",\"type\":\"directory\",\"mode\":2541,\"size\":0}"), "/entries/0: its mode" },
        { "a size", OF("{\"path\":\"a\",\"type\":\"directory\",\"mode\":493,\"size\":-1}"), "/entries/0: its size" },
        { "twice", OF(FILE_ENTRY("a") "," FILE_ENTRY("a")), "/entries/1: it does not stand in order" },
        { "not in order", OF(FILE_ENTRY("b") "," FILE_ENTRY("a")), "/entries/1: it does not stand in order" },
};

static void manifests_that_are_none(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(manifests); i++) {
                struct rv_manifest m = { .n = 7 };
                struct rv_error err = { 0 };

                if (rv_manifest_read(manifests[i].text, strlen(manifests[i].text), &m, &err) != -EINVAL ||
                        !strstr(err.message, manifests[i].says) || !err.message[0])
                        fail_msg("%s: %s", manifests[i].name, err.message);
                assert_int_equal(m.n, 7);
        }
}

static void looked_up(void **state)
{
        struct rv_manifest m;

        (void)state;
        assert_int_equal(rv_manifest_read(built, strlen(built), &m, NULL), 0);
        assert_int_equal(m.n, 5);
        for (size_t i = 0; i < m.n; i++)
                assert_ptr_equal(rv_manifest_find(&m, m.entries[i].path), &m.entries[i]);
        assert_null(rv_manifest_find(&m, "bin/"));
        rv_manifest_fini(&m);
}

#define TMP(name) cmocka_unit_test_setup_teardown(name, tmp_make, tmp_remove)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(damage),
                TMP(absent),
                cmocka_unit_test(manifests_that_are_none),
                cmocka_unit_test(looked_up),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
