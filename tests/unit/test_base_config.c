#include "base/config.h"

#include "base/fd.h"

#include "test_base_tmp.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

static struct rv_config *parse(const char *text)
{
        struct rv_config *config = NULL;
        struct rv_error err = { 0 };

        if (rv_config_parse(text, strlen(text), "/etc/x/reeve.yaml", &config, &err) != 0)
                fail_msg("%s", err.message);
        return config;
}

static void check_defaults(const struct rv_config *c)
{
        assert_null(c->cgroup);
        assert_int_equal(c->uid_first, 2000000);
        assert_int_equal(c->uid_last, 2065535);
        assert_int_equal(c->n_runtimes, 1);
        assert_string_equal(c->runtimes[0].name, "host");
        assert_string_equal(c->runtimes[0].root, "host");
        assert_string_equal(c->runtimes[0].python, "/usr/bin/python3");
        assert_string_equal(c->runtimes[0].javascript, "/usr/bin/node");
        assert_int_equal(c->runtimes[0].expose.n_items, 0);
        assert_int_equal(c->n_tenants, 1);
        assert_string_equal(c->tenants[0].name, "local");
        assert_null(c->tenants[0].policy);
        assert_string_equal(c->tenants[0].backend, "namespace");
        assert_string_equal(c->tenants[0].runtime, "host");
        assert_string_equal(c->tenants[0].network, "any");
        assert_int_equal(c->tenants[0].labels.n_items, 0);
        assert_int_equal(c->limits.pids, 256);
        assert_int_equal(c->limits.cpus_milli, 0);
        assert_int_equal(c->phases.queue_ms, 60000);
        assert_int_equal(c->phases.decide_ms, 250);
        assert_int_equal(c->phases.resolve_ms, 120000);
        assert_int_equal(c->phases.prepare_ms, 120000);
        assert_int_equal(c->phases.start_ms, 10000);
        assert_null(c->audit.sink.to);
        assert_false(c->audit.sink.has_records);
        assert_string_equal(c->audit.sink.behind, "wait");
        assert_int_equal(c->audit.sink.lag_max_bytes, 16 << 20);
        assert_int_equal(c->audit.sink.timeout_ms, 10000);
        assert_int_equal(c->phases.collect_ms, 2000);
        assert_int_equal(c->phases.teardown_ms, 5000);
        assert_int_equal(c->packages.resolve_ttl_ms, 86400000);
        assert_int_equal(c->packages.store_max_bytes, UINT64_C(10) << 30);
        assert_int_equal(c->audit.segment_max_bytes, 64 << 20);
        assert_int_equal(c->audit.redact.n_items, 0);
        assert_int_equal(c->egress.resolve.n_items + c->egress.deny.n_items + c->registries.n_items, 0);
}

/* All of these say nothing. */
static void nothing_is_the_defaults(void **state)
{
        static const char *const texts[] = { "", "\n", "# a comment\n", "---\n", "{}", "null\n", "\xef\xbb\xbf{}", "phases:\nlimits: {}\nadmission: {}\n" };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++) {
                _cleanup_(rv_config_freep) struct rv_config *c = parse(texts[i]);

                check_defaults(c);
                assert_string_equal(c->file, "/etc/x/reeve.yaml");
                assert_string_equal(c->text, texts[i]);
                assert_int_equal(c->text_bytes, strlen(texts[i]));
        }
}

static const char all_keys[] =
        "state_dir: /srv/reeve state\n"
        "cgroup: /sys/fs/cgroup/reeve.slice\n"
        "uid_range: 100000-165535\n"
        "runtimes:\n"
        "  host: { python: /usr/bin/python3.11 }\n"
        "  py312:\n"
        "    root: /srv/runtimes/py312\n"
        "    python: /usr/local/bin/python3\n"
        "    expose: [/opt/data, \"/usr/local/share\"]\n"
        "    digest: \"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"\n"
        "  image: { image: /srv/runtimes/py.erofs, javascript: /usr/bin/nodejs }\n"
        "tenants:\n"
        "  local:\n"
        "  team-a:\n"
        "    policy: bundles/a\n"
        "    backend: microvm\n"
        "    runtime: py312\n"
        "    network: none\n"
        "    labels: { tier: gold, cost-centre: \"17\" }\n"
        "    registries:\n"
        "      python: { index: \"https://user:secret@registry.example/simple/\", files: [files.registry.example], ca: /etc/ca.pem }\n"
        "  team-b: { policy: /srv/b }\n"
        "limits: { pids: 64, cpus: 1.5 }\n"
        "phases: { queue: 1m, decide: 300ms, resolve: 2m, prepare: 3m, start: 4s, collect: 5s, teardown: 6s }\n"
        "egress:\n"
        "  resolve: { API.example.test.: 127.0.0.5, v6.example.test: \"::1\" }\n"
        "  deny: [10.0.0.0/8, evil.example]\n"
        "registries:\n"
        "  javascript: { index: \"http://js.registry.example:8082/\", proxy: \"http://proxy.example:3128\" }\n"
        "  python: { files: [\"https://files.example/\"] }\n"
        "packages: { resolve_ttl: 1h, store_max: 512MiB }\n"
        "audit: { redact: [/principal, \"/facts/packages/*/name\"], segment_max: 2MiB }\n";

static void check_all_keys(const struct rv_config *c)
{
        const struct rv_config_tenant *a = rv_config_tenant(c, "team-a");
        const struct rv_config_runtime *py = rv_config_runtime(c, "py312");

        assert_string_equal(c->state_dir, "/srv/reeve state");
        assert_string_equal(c->cgroup, "/sys/fs/cgroup/reeve.slice");
        assert_int_equal(c->uid_first, 100000);
        assert_int_equal(c->uid_last, 165535);
        assert_int_equal(c->n_runtimes, 3);
        assert_null(py->image);
        assert_string_equal(py->digest, "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef");
        assert_string_equal(rv_config_runtime(c, "image")->image, "/srv/runtimes/py.erofs");
        assert_string_equal(rv_config_runtime(c, "image")->root, "");
        assert_null(rv_config_runtime(c, "image")->digest);
        assert_string_equal(rv_config_runtime(c, "host")->python, "/usr/bin/python3.11");
        assert_string_equal(rv_config_runtime(c, "host")->root, "host");
        assert_string_equal(py->root, "/srv/runtimes/py312");
        assert_string_equal(py->javascript, "/usr/bin/node");
        assert_int_equal(py->expose.n_items, 2);
        assert_string_equal(py->expose.items[1], "/usr/local/share");
        assert_int_equal(c->n_tenants, 3);
        assert_null(rv_config_tenant(c, "local")->policy);
        assert_string_equal(a->policy, "/etc/x/bundles/a");
        assert_string_equal(a->backend, "microvm");
        assert_string_equal(a->runtime, "py312");
        assert_string_equal(a->network, "none");
        assert_int_equal(a->labels.n_items, 2);
        assert_string_equal(a->labels.items[1].name, "cost-centre");
        assert_string_equal(a->labels.items[1].value, "17");
        assert_int_equal(a->registries.n_items, 1);
        assert_string_equal(a->registries.items[0].language, "python");
        assert_string_equal(a->registries.items[0].ca, "/etc/ca.pem");
        assert_string_equal(a->registries.items[0].files.items[0], "files.registry.example");
        assert_string_equal(rv_config_tenant(c, "team-b")->policy, "/srv/b");
        assert_null(rv_config_tenant(c, "team-c"));
        assert_null(rv_config_runtime(c, "team-a"));
}

static void every_key(void **state)
{
        _cleanup_(rv_config_freep) struct rv_config *c = parse(all_keys);

        (void)state;
        check_all_keys(c);
        assert_int_equal(c->limits.pids, 64);
        assert_int_equal(c->limits.cpus_milli, 1500);
        assert_int_equal(c->phases.queue_ms, 60000);
        assert_int_equal(c->phases.decide_ms, 300);
        assert_int_equal(c->phases.resolve_ms, 120000);
        assert_int_equal(c->phases.prepare_ms, 180000);
        assert_int_equal(c->phases.start_ms, 4000);
        assert_int_equal(c->phases.collect_ms, 5000);
        assert_int_equal(c->phases.teardown_ms, 6000);
        assert_int_equal(c->egress.resolve.n_items, 2);
        assert_string_equal(c->egress.resolve.items[0].name, "api.example.test");
        assert_string_equal(c->egress.resolve.items[0].value, "127.0.0.5");
        assert_int_equal(c->egress.deny.n_items, 2);
        assert_int_equal(c->registries.n_items, 2);
        assert_string_equal(c->registries.items[0].proxy, "http://proxy.example:3128");
        assert_null(c->registries.items[1].index);
        assert_int_equal(c->packages.resolve_ttl_ms, 3600000);
        assert_int_equal(c->packages.store_max_bytes, UINT64_C(512) << 20);
        assert_int_equal(c->audit.redact.n_items, 2);
        assert_string_equal(c->audit.redact.items[1], "/facts/packages/*/name");
        assert_int_equal(c->audit.segment_max_bytes, 2 << 20);
}

static void json_is_yaml(void **state)
{
        static const char *const texts[] = {
                "{\"state_dir\": \"/s\", \"tenants\": {\"local\": {\"policy\": \"/b\", \"network\": \"domains\"}}, \"limits\": {\"pids\": 99}}",
                "{\"state_dir\":\"/s\",\"tenants\":{\"local\":{\"policy\":\"/b\",\"network\":\"domains\"}},\"limits\":{\"pids\":99}}",
                "{\n\t\"state_dir\": \"\\/s\",\n\t\"tenants\": {\n\t\t\"local\": {\"policy\": \"\\u002fb\", \"network\": \"domains\"}\n\t},\n\t\"limits\": {\"pids\": 99}\n}\n",
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++) {
                _cleanup_(rv_config_freep) struct rv_config *c = parse(texts[i]);

                assert_string_equal(c->state_dir, "/s");
                assert_string_equal(c->tenants[0].policy, "/b");
                assert_string_equal(c->tenants[0].network, "domains");
                assert_int_equal(c->limits.pids, 99);
        }
}

static void use_env(const char *reeve, const char *xdg, const char *home)
{
        reeve ? setenv("REEVE_CONFIG", reeve, 1) : unsetenv("REEVE_CONFIG");
        xdg ? setenv("XDG_CONFIG_HOME", xdg, 1) : unsetenv("XDG_CONFIG_HOME");
        home ? setenv("HOME", home, 1) : unsetenv("HOME");
}

static void check_find(const char *path, const char *want)
{
        _cleanup_(rv_freep) char *file = NULL;

        assert_int_equal(rv_config_find(path, &file, NULL), 0);
        assert_string_equal(file, want);
}

static void search_order(void **state)
{
        const char *etc = access("/etc/reeve/reeve.yaml", F_OK) == 0 ? "/etc/reeve/reeve.yaml" : "";
        char in_xdg[1024], in_home[1024], xdg[1024];
        struct rv_error err = { 0 };
        char *file = NULL;

        snprintf(xdg, sizeof(xdg), "%s", tmp_path(state, "xdg"));
        snprintf(in_xdg, sizeof(in_xdg), "%s", tmp_path(state, "xdg/reeve/reeve.yaml"));
        snprintf(in_home, sizeof(in_home), "%s", tmp_path(state, ".config/reeve/reeve.yaml"));
        assert_int_equal(rv_mkdir_p(tmp_path(state, "xdg/reeve"), 0755), 0);
        assert_int_equal(rv_mkdir_p(tmp_path(state, ".config/reeve"), 0755), 0);

        use_env(NULL, xdg, *state);
        check_find(NULL, etc);
        assert_int_equal(rv_write_file(in_home, "{}", 2, 0644, false), 0);
        check_find(NULL, etc);                  /* $XDG_CONFIG_HOME stands for ~/.config, not beside it */
        use_env(NULL, NULL, *state);
        check_find(NULL, in_home);
        use_env(NULL, "relative", *state);
        check_find(NULL, in_home);
        assert_int_equal(rv_write_file(in_xdg, "{}", 2, 0644, false), 0);
        use_env(NULL, xdg, *state);
        check_find(NULL, in_xdg);
        use_env("", xdg, *state);
        check_find(NULL, in_xdg);
        use_env("/nowhere/r.yaml", xdg, *state);
        check_find(NULL, "/nowhere/r.yaml");    /* named, so not passed over for being absent */
        check_find("/else/r.yaml", "/else/r.yaml");
        use_env(NULL, NULL, NULL);
        check_find(NULL, etc);
        assert_int_equal(rv_config_find("", &file, &err), -EINVAL);
        assert_null(file);
}

static void check_load_fails(const char *path, int want, const char *begin)
{
        struct rv_config *config = (struct rv_config *)0x1;
        struct rv_error err = { 0 };

        assert_int_equal(rv_config_load(path, &config, &err), want);
        assert_ptr_equal(config, 0x1);
        if (strncmp(err.message, begin, strlen(begin)) != 0)
                fail_msg("%s", err.message);
}

static void load(void **state)
{
        _cleanup_(rv_config_freep) struct rv_config *c = NULL;
        const char *path = tmp_path(state, "r.yaml"), *link = tmp_path(state, "link.yaml"), *fifo = tmp_path(state, "fifo");
        const char *none = tmp_path(state, "none.yaml");
        struct rv_error err = { 0 };

        use_env(NULL, "/nowhere", "/nowhere");
        assert_int_equal(rv_write_file(path, all_keys, strlen(all_keys), 0644, false), 0);
        assert_int_equal(symlink("r.yaml", link), 0);
        assert_int_equal(mkfifo(fifo, 0600), 0);
        assert_int_equal(rv_config_load(link, &c, &err), 0);
        assert_string_equal(c->file, link);
        assert_string_equal(c->text, all_keys);
        assert_string_equal(rv_config_tenant(c, "team-a")->policy, tmp_path(state, "bundles/a"));
        check_load_fails(none, -ENOENT, none);
        check_load_fails(fifo, -EINVAL, fifo);
        check_load_fails(*state, -EINVAL, *state);
        setenv("REEVE_CONFIG", none, 1);
        check_load_fails(NULL, -ENOENT, none);
        setenv("REEVE_CONFIG", path, 1);
        rv_config_free(rv_take(&c));
        assert_int_equal(rv_config_load(NULL, &c, &err), 0);
        assert_string_equal(c->file, path);
}

/* `policy` is relative to the file, and the file may be named relative to the working directory. */
static void relative_file(void **state)
{
        static const char text[] = "tenants: {local: {policy: b}}";
        _cleanup_(rv_config_freep) struct rv_config *c = NULL;
        char here[1024], want[1100];

        assert_int_equal(chdir(*state), 0);
        assert_non_null(getcwd(here, sizeof(here)));
        assert_int_equal(rv_config_parse(text, strlen(text), "r.yaml", &c, NULL), 0);
        snprintf(want, sizeof(want), "%s/b", here);
        assert_string_equal(c->tenants[0].policy, want);
        rv_config_free(rv_take(&c));
        assert_int_equal(rv_config_parse(text, strlen(text), "sub/r.yaml", &c, NULL), 0);
        snprintf(want, sizeof(want), "%s/sub/b", here);
        assert_string_equal(c->tenants[0].policy, want);
        rv_config_free(rv_take(&c));
        assert_int_equal(rv_config_parse(text, strlen(text), "/r.yaml", &c, NULL), 0);
        assert_string_equal(c->tenants[0].policy, "//b");
        assert_int_equal(chdir("/"), 0);
}

static void built_in(void **state)
{
        _cleanup_(rv_config_freep) struct rv_config *c = NULL;

        (void)state;
        assert_int_equal(rv_config_parse(NULL, 0, "", &c, NULL), 0);
        check_defaults(c);
        assert_string_equal(c->file, "");
        assert_string_equal(c->text, "");
        assert_int_equal(c->text_bytes, 0);
}

static void check_state_dir(const char *xdg, const char *home, const char *want)
{
        _cleanup_(rv_config_freep) struct rv_config *c = NULL;
        struct rv_error err = { 0 };

        xdg ? setenv("XDG_STATE_HOME", xdg, 1) : unsetenv("XDG_STATE_HOME");
        home ? setenv("HOME", home, 1) : unsetenv("HOME");
        if (want) {
                assert_int_equal(rv_config_parse("", 0, "f", &c, NULL), 0);
                assert_string_equal(c->state_dir, want);
        } else {
                assert_int_equal(rv_config_parse("", 0, "f", &c, &err), -EINVAL);
                assert_non_null(strstr(err.message, "state_dir"));
        }
}

static void default_state_dir(void **state)
{
        bool is_root = geteuid() == 0;

        (void)state;
        if (is_root) {
                check_state_dir("/xs", "/h", "/var/lib/reeve");
                assert_int_equal(seteuid(65534), 0);
        }
        check_state_dir("/xs", "/h", "/xs/reeve");
        check_state_dir("relative", "/h", "/h/.local/state/reeve");
        check_state_dir(NULL, "/h", "/h/.local/state/reeve");
        check_state_dir("", "/h", "/h/.local/state/reeve");
        check_state_dir(NULL, NULL, NULL);
        check_state_dir(NULL, "relative", NULL);
        check_state_dir("/a/../b", "/h", NULL);
        if (is_root)
                assert_int_equal(seteuid(0), 0);
}

/* Every key of the table is in the docs' table, and each line has four columns. */
static void markdown(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        static const char *const rows[] = {
                "| `state_dir` | absolute path | |", "| `tenants.<name>.network` |", "| `registries.<language>.index` |",
                "| `tenants.<name>.registries.<language>.files` |", "| `phases.decide` | duration | `250ms` |", "| `admission.<name>` | refused |",
        };

        (void)state;
        assert_int_equal(rv_config_markdown(&b), 0);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                if (!strstr(b.data, rows[i]))
                        fail_msg("no %s", rows[i]);
        for (char *line = strtok(b.data, "\n"); line; line = strtok(NULL, "\n")) {
                unsigned n = 0;

                for (const char *c = line; *c; c++)
                        n += *c == '|';
                if (n != 5)
                        fail_msg("%u bars: %s", n, line);
        }
}

/* The spawner links this too: neither the JSON library nor libcrypto may come along. */
static void links_little(void **state)
{
        (void)state;
        assert_null(dlsym(RTLD_DEFAULT, "json_object"));
        assert_null(dlsym(RTLD_DEFAULT, "SHA256_Init"));
}

#define TMP(f) cmocka_unit_test_setup_teardown(f, tmp_make, tmp_remove)

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_the_defaults),
                cmocka_unit_test(every_key),
                cmocka_unit_test(json_is_yaml),
                TMP(search_order),
                TMP(load),
                TMP(relative_file),
                cmocka_unit_test(built_in),
                cmocka_unit_test(default_state_dir),
                cmocka_unit_test(markdown),
                cmocka_unit_test(links_little),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
