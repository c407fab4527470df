/*
 * Where the packages of a language come from: each place that can say it, in the order in which pip and npm read them,
 * in a tree and an environment of the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "package/registry.h"

#include "base/fd.h"
#include "base/hash.h"
#include "test_base_tmp.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

struct file {
        const char *path, *text;
};

struct row {
        const char *name;
        enum rv_language language;
        const char *config;          /* of reeve */
        struct file files[4];
        const char *env[6];          /* NAME, value */
        const char *index;           /* NULL: none */
        const char *hosts;           /* "host:port host:port" */
        const char *ca, *proxy, *find_links, *source;
        const char *proxy_fault;     /* a word of it */
        const char *extra;
};

#define PY RV_LANGUAGE_PYTHON
#define JS RV_LANGUAGE_JAVASCRIPT

static const struct row rows[] = {
        { .name = "nothing anywhere", .language = PY, .hosts = "" },
        { .name = "nothing anywhere, npm", .language = JS, .hosts = "" },
        { .name = "the configuration", .language = PY, .config = "registries: {python: {index: 'https://registry.example/simple', files: [files.example, 'other.example:8443'], ca: /ca.pem, proxy: 'http://proxy.example:3128'}}",
          .files = { { "/etc/pip.conf", "[global]\nindex-url = https://pip.example/simple\n" } },
          .index = "https://registry.example/simple", .hosts = "registry.example:443 files.example:443 other.example:8443", .ca = "/ca.pem",
          .proxy = "proxy.example:3128", .source = "the configuration" },
        { .name = "the tenant's before it", .language = PY,
          .config = "registries: {python: {index: 'https://registry.example/'}}\ntenants: {local: {registries: {python: {index: 'https://tenant.example:8443/x'}}}}",
          .index = "https://tenant.example:8443/x", .hosts = "tenant.example:8443", .source = "the tenant's configuration" },
        { .name = "the other language's says nothing", .language = JS, .config = "registries: {python: {index: 'https://registry.example/'}}", .hosts = "" },
        { .name = "pip's common file", .language = PY, .files = { { "/etc/pip.conf", "# it\n[global]\n index-url = https://registry.example/simple \ncert: no\n" } },
          .index = "https://registry.example/simple", .hosts = "registry.example:443", .source = "/etc/pip.conf" },
        { .name = "the user's wins", .language = PY,
          .files = { { "/etc/pip.conf", "[global]\nindex-url = https://a.example/\ncert = /a.pem\n" },
                     { "/home/me/.pip/pip.conf", "[global]\nindex-url = https://b.example/\n" },
                     { "/home/me/.config/pip/pip.conf", "[install]\nindex_url = 'https://c.example/'\nfind-links = /wheels\n[list]\nindex-url = https://d.example/\n" } },
          .env = { "HOME", "/home/me" }, .index = "https://c.example/", .hosts = "c.example:443", .ca = "/a.pem", .find_links = "/wheels",
          .source = "/home/me/.config/pip/pip.conf" },
        { .name = "XDG", .language = PY, .files = { { "/xdg/pip/pip.conf", "[global]\nindex-url = https://x.example/\n" } },
          .env = { "HOME", "/home/me", "XDG_CONFIG_HOME", "/xdg" }, .index = "https://x.example/", .hosts = "x.example:443", .source = "/xdg/pip/pip.conf" },
        { .name = "pip's of the installation", .language = PY,
          .files = { { "/usr/pip.conf", "[global]\nindex-url = https://s.example/\n" }, { "/home/me/.pip/pip.conf", "[global]\nindex-url = https://a.example/\n" } },
          .env = { "HOME", "/home/me" }, .index = "https://s.example/", .hosts = "s.example:443", .source = "/usr/pip.conf" },
        { .name = "a file that is named", .language = PY, .files = { { "/etc/pip.conf", "[global]\nindex-url = https://a.example/\n" }, { "/mine", "[global]\nproxy = http://p.example:1\n" } },
          .env = { "PIP_CONFIG_FILE", "/mine" }, .index = "https://a.example/", .hosts = "a.example:443", .proxy = "p.example:1", .source = "/etc/pip.conf" },
        { .name = "no file at all", .language = PY, .files = { { "/etc/pip.conf", "[global]\nindex-url = https://a.example/\n" } }, .env = { "PIP_CONFIG_FILE", "/dev/null" }, .hosts = "" },
        { .name = "the environment wins", .language = PY, .files = { { "/etc/pip.conf", "[global]\nindex-url = https://a.example/\n" } },
          .env = { "PIP_INDEX_URL", "https://e.example/", "HTTPS_PROXY", "http://q.example:2" }, .index = "https://e.example/", .hosts = "e.example:443",
          .proxy = "q.example:2", .source = "the environment (PIP_INDEX_URL)" },
        { .name = "further indexes", .language = PY,
          .files = { { "/etc/pip.conf", "[global]\nextra-index-url = https://old.example/\n" },
                     { "/home/me/.config/pip/pip.conf", "[global]\n index-url = https://a.example/simple\n extra-index-url =\n   https://u:p@b.example/x?y=1\n   # one more\n   https://c.example:8443/\n cert = /a.pem\n" } },
          .env = { "HOME", "/home/me" }, .index = "https://a.example/simple", .hosts = "a.example:443 b.example:443 c.example:8443", .ca = "/a.pem",
          .extra = "https://b.example/x?y=1 https://c.example:8443/" },
        { .name = "further indexes of the environment", .language = PY, .files = { { "/etc/pip.conf", "[global]\nindex-url = https://a.example/\nextra-index-url = https://old.example/\n  https://older.example/\n" } },
          .env = { "PIP_EXTRA_INDEX_URL", "https://b.example/ nonsense" }, .index = "https://a.example/", .hosts = "a.example:443 b.example:443", .extra = "https://b.example/" },
        { .name = "a named file in place of the user's", .language = PY, .files = { { "/home/me/.pip/pip.conf", "[global]\nindex-url = https://a.example/\n" }, { "/mine", "[global]\ncert = /m.pem\n" } },
          .env = { "HOME", "/home/me", "PIP_CONFIG_FILE", "/mine" }, .hosts = "", .ca = "/m.pem" },
        { .name = "a proxy without a scheme", .language = PY, .env = { "PIP_INDEX_URL", "https://e.example/", "https_proxy", "q.example:2" }, .index = "https://e.example/",
          .hosts = "e.example:443", .proxy = "q.example:2" },
        { .name = "a proxy over TLS", .language = PY, .env = { "PIP_INDEX_URL", "https://e.example/", "HTTPS_PROXY", "https://q.example" }, .index = "https://e.example/",
          .hosts = "e.example:443", .proxy_fault = "without TLS" },
        { .name = "a proxy of another kind", .language = PY, .env = { "PIP_INDEX_URL", "https://e.example/", "PIP_PROXY", "socks5://q.example:1080" }, .index = "https://e.example/",
          .hosts = "e.example:443", .proxy_fault = "HTTP proxies" },
        { .name = "a proxy with credentials", .language = PY, .env = { "PIP_INDEX_URL", "https://e.example/", "HTTPS_PROXY", "http://me:secret@q.example:1" },
          .index = "https://e.example/", .hosts = "e.example:443", .proxy_fault = "password" },
        { .name = "a proxy that is none", .language = PY, .env = { "PIP_INDEX_URL", "https://e.example/", "HTTPS_PROXY", "http://:3128" }, .index = "https://e.example/",
          .hosts = "e.example:443", .proxy_fault = "no address" },
        { .name = "an index that needs no proxy", .language = PY, .env = { "PIP_INDEX_URL", "https://py.corp.example:8443/", "HTTPS_PROXY", "http://q.example:1", "NO_PROXY", "localhost, .corp.example" },
          .index = "https://py.corp.example:8443/", .hosts = "py.corp.example:8443" },
        { .name = "nor one that could not be used", .language = PY, .env = { "PIP_INDEX_URL", "https://py.corp.example/", "HTTPS_PROXY", "https://q.example", "no_proxy", "CORP.example:443" },
          .index = "https://py.corp.example/", .hosts = "py.corp.example:443" },
        { .name = "another port needs it", .language = PY, .env = { "PIP_INDEX_URL", "https://py.corp.example/", "HTTPS_PROXY", "http://q.example:1", "no_proxy", "corp.example:8443,xpy.corp.example,corp" },
          .index = "https://py.corp.example/", .hosts = "py.corp.example:443", .proxy = "q.example:1" },
        { .name = "a name that only ends alike needs it", .language = PY, .env = { "PIP_INDEX_URL", "https://evilcorp.example/", "HTTPS_PROXY", "http://q.example:1", "no_proxy", "corp.example" },
          .index = "https://evilcorp.example/", .hosts = "evilcorp.example:443", .proxy = "q.example:1" },
        { .name = "pip's own proxy is for all", .language = PY, .files = { { "/etc/pip.conf", "[global]\nproxy = http://p.example:1\n" } },
          .env = { "PIP_INDEX_URL", "https://e.example/", "NO_PROXY", "*" }, .index = "https://e.example/", .hosts = "e.example:443", .proxy = "p.example:1" },
        { .name = "a proxy that is turned off", .language = JS, .files = { { "/etc/npmrc", "registry=https://a.example/\nproxy=http://p.example:1\n" }, { "/root/.npmrc", "proxy=null\n" } },
          .env = { "HOME", "/root" }, .index = "https://a.example/", .hosts = "a.example:443" },
        { .name = "npm's is not", .language = JS, .files = { { "/etc/npmrc", "registry=https://a.example/\nhttps-proxy=http://p.example:1\nnoproxy=a.example\n" } },
          .index = "https://a.example/", .hosts = "a.example:443" },
        { .name = "credentials are left out", .language = PY, .env = { "PIP_INDEX_URL", "https://me:s%40cret@e.example:8443/simple/" },
          .index = "https://e.example:8443/simple/", .hosts = "e.example:8443", .source = "the environment (PIP_INDEX_URL)" },
        { .name = "an address", .language = PY, .env = { "PIP_INDEX_URL", "http://127.0.0.5:8080/simple" }, .index = "http://127.0.0.5:8080/simple", .hosts = "127.0.0.5:8080" },
        { .name = "an address of IPv6", .language = PY, .env = { "PIP_INDEX_URL", "http://u@[::1]:8080/simple" }, .index = "http://[::1]:8080/simple", .hosts = "::1:8080" },
        { .name = "no address", .language = PY, .env = { "PIP_INDEX_URL", "file:///srv/simple" }, .hosts = "" },
        { .name = "no host", .language = PY, .env = { "PIP_INDEX_URL", "https://:443/" }, .hosts = "" },
        { .name = "no port", .language = PY, .env = { "PIP_INDEX_URL", "https://a.example:70000/" }, .hosts = "" },
        { .name = "npm's files", .language = JS,
          .files = { { "/usr/etc/npmrc", "registry=https://a.example/\ncafile=/a.pem\n" },
                     { "/home/me/.npmrc", "; mine\n//b.example/:_authToken=secret\nregistry = \"https://${WHERE}/npm/\"\n@corp:registry=https://corp.example:8443/\n" } },
          .env = { "HOME", "/home/me", "WHERE", "b.example" }, .index = "https://b.example/npm/", .hosts = "b.example:443 corp.example:8443", .ca = "/a.pem", .source = "/home/me/.npmrc" },
        { .name = "npm's scopes before its registry", .language = JS, .files = { { "/etc/npmrc", "@corp:registry=https://corp.example/\nregistry=https://a.example/\n" } },
          .index = "https://a.example/", .hosts = "a.example:443 corp.example:443", .source = "/etc/npmrc" },
        { .name = "npm's environment", .language = JS, .files = { { "/etc/npmrc", "registry=https://a.example/\n" } },
          .env = { "NPM_CONFIG_REGISTRY", "https://e.example/", "npm_config_cafile", "/e.pem" }, .index = "https://e.example/", .hosts = "e.example:443", .ca = "/e.pem",
          .source = "the environment (npm_config_registry)" },
};

static const char *get(void *arg, const char *name)
{
        const struct row *row = arg;

        for (size_t i = 0; i + 1 < RV_N_ELEMENTS(row->env) && row->env[i]; i += 2)
                if (strcmp(row->env[i], name) == 0)
                        return row->env[i + 1];
        return NULL;
}

static void expect(const struct row *row, const char *what, const char *seen, const char *expected)
{
        if (strcmp(seen ? seen : "(none)", expected ? expected : "(none)") != 0)
                fail_msg("%s: %s is \"%s\", not \"%s\"", row->name, what, seen ? seen : "(none)", expected ? expected : "(none)");
}

static void put(void **state, const struct file *file)
{
        char path[512], *slash;

        snprintf(path, sizeof(path), "%s%s", (const char *)*state, file->path);
        slash = strrchr(path, '/');
        *slash = 0;
        assert_int_equal(rv_mkdir_p(path, 0700), 0);
        *slash = '/';
        assert_int_equal(rv_write_file(path, file->text, strlen(file->text), 0600, false), 0);
}

static void list_hosts(const struct rv_registry *r, char *ret, size_t size)
{
        *ret = 0;
        for (size_t i = 0; i < r->n_hosts; i++)
                snprintf(ret + strlen(ret), size - strlen(ret), "%s%s:%u", i ? " " : "", r->hosts[i].host, r->hosts[i].port);
}

static void every_place(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                _cleanup_(rv_registry_freep) struct rv_registry *r = NULL;
                _cleanup_(rv_config_freep) struct rv_config *config = NULL;
                const char *text = rows[i].config ? rows[i].config : "";
                struct rv_error err = { 0 };
                struct rv_registry_view view = { .get = get, .arg = (void *)&rows[i] };
                char hosts[512], proxy[128] = "";

                tmp_make(state);
                view.root = *state;
                for (size_t k = 0; k < RV_N_ELEMENTS(rows[i].files) && rows[i].files[k].path; k++)
                        put(state, &rows[i].files[k]);
                if (rv_config_parse(text, strlen(text), "/t.yaml", &config, &err) != 0)
                        fail_msg("%s: %s", rows[i].name, err.message);
                assert_int_equal(rv_registry_find(config, &config->tenants[0], rows[i].language, &view, &r), 0);
                expect(&rows[i], "the index", r->index, rows[i].index);
                list_hosts(r, hosts, sizeof(hosts));
                expect(&rows[i], "the list of hosts", hosts, rows[i].hosts);
                expect(&rows[i], "the certificates", r->ca, rows[i].ca);
                if (r->proxy.host)
                        snprintf(proxy, sizeof(proxy), "%s:%u", r->proxy.host, r->proxy.port);
                expect(&rows[i], "the proxy", proxy, rows[i].proxy ? rows[i].proxy : "");
                if (!r->proxy_fault != !rows[i].proxy_fault ||
                        (r->proxy_fault && !strstr(r->proxy_fault, rows[i].proxy_fault)))
                        fail_msg("%s: the proxy's fault is \"%s\"", rows[i].name, r->proxy_fault ? r->proxy_fault : "(none)");
                expect(&rows[i], "the further indexes", r->extra_index, rows[i].extra);
                expect(&rows[i], "find-links", r->find_links, rows[i].find_links);
                if (rows[i].source)
                        expect(&rows[i], "the source", r->source, rows[i].source);
                tmp_remove(state);
        }
}

/* An address that is cut would be another host's. */
static void a_long_list(void **state)
{
        _cleanup_(rv_config_freep) struct rv_config *config = NULL;
        _cleanup_(rv_registry_freep) struct rv_registry *r = NULL;
        char list[8192] = "";
        struct row row = { .env = { "PIP_EXTRA_INDEX_URL", list } };
        struct rv_registry_view view = { .root = "/nonexistent", .get = get, .arg = &row };

        (void)state;
        for (int i = 0; i < RV_REGISTRY_HOSTS_MAX; i++)
                snprintf(list + strlen(list), sizeof(list) - strlen(list), "https://h%02d.registry.example/a/path/that/makes/the/list/long/enough/to/be/cut/somewhere ", i);
        assert_int_equal(rv_config_parse("", 0, "/t.yaml", &config, NULL), 0);
        assert_int_equal(rv_registry_find(config, &config->tenants[0], PY, &view, &r), 0);
        assert_int_equal(r->n_hosts, RV_REGISTRY_HOSTS_MAX);
        for (int i = 0; i < RV_REGISTRY_HOSTS_MAX; i++)
                assert_int_equal(strlen(r->hosts[i].host), strlen("h00.registry.example"));
        list[strlen(list) - 1] = 0;
        assert_string_equal(r->extra_index, list);
}

static const struct {
        const char *name, *text, *hosts;
        size_t n_links;
} pages[] = {
        { "HTML", "<a href=\"https://files.example/a/x-1.whl#sha256=0\">x</a> <a href='https://files.example/b'>", "registry.example:443 files.example:443", 2 },
        { "JSON", "{\"files\":[{\"url\":\"https://files.example:8443/x\"},{\"url\": \"http://other.example/y\"}]}", "registry.example:443 files.example:8443 other.example:80", 2 },
        { "links to itself", "<a href=\"../../packages/x-1.whl\">", "registry.example:443", 0 },
        { "text that is no link", "see https://evil.example/ for more", "registry.example:443", 0 },
        { "what is no address", "\"https://\" \"http://a b\" \"https://[::1\" \"httpx://a.example\"", "registry.example:443", 0 },
        { "cut off", "\"https://files.example/x", "registry.example:443", 0 },
        { "nothing", "", "registry.example:443", 0 },
};

static void every_page(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(pages); i++) {
                struct rv_registry *r = calloc(1, sizeof(*r));
                char hosts[512];
                size_t n;

                assert_int_equal(rv_registry_add_url(r, "https://registry.example/simple", NULL), 0);
                n = rv_registry_page_hosts(r, pages[i].text, strlen(pages[i].text));
                list_hosts(r, hosts, sizeof(hosts));
                if (n != pages[i].n_links || strcmp(hosts, pages[i].hosts) != 0)
                        fail_msg("%s: %zu links, hosts %s", pages[i].name, n, hosts);
                rv_registry_free(r);
        }
}

/* As a page that was asked for today leaves it. */
static void keep_page(int state_fd, const char *index, const char *lines)
{
        char what[256], name[128], digest[RV_SHA256_HEX_SIZE];
        int n = snprintf(what, sizeof(what), "page %s %lld", index, (long long)time(NULL) / 86400), fd;

        rv_sha256_hex(what, (size_t)n, digest);
        snprintf(name, sizeof(name), "registries/python-%.16s", digest);
        (void)mkdirat(state_fd, "registries", 0700);    /* the tool's own answer may lie there */
        fd = openat(state_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, what, (size_t)n), n);
        assert_int_equal(write(fd, lines, strlen(lines)), (ssize_t)strlen(lines));
        close(fd);
}

/* What is kept is used, for its own index alone, and what is not well-formed is as if it were not there. */
static void kept_answers(void **state)
{
        int state_fd = open(*state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct rv_registry *r;

        assert_true(state_fd >= 0);
        for (int i = 0; i < 2; i++) {
                r = calloc(1, sizeof(*r));
                r->language = PY;
                assert_int_equal(rv_registry_add_url(r, "http://127.0.0.1:1/simple", &r->index), 0);
                rv_registry_complete(r, state_fd, -1);
                assert_false(r->has_files);      /* nobody to ask, and nothing is kept of it */
                assert_int_equal(r->n_hosts, 1);
                rv_registry_free(r);
        }
        keep_page(state_fd, "http://127.0.0.1:1/simple", "\nhttps://127.0.0.1:1\nhttps://169.254.0.1:80\n");
        r = calloc(1, sizeof(*r));
        r->language = PY;
        assert_int_equal(rv_registry_add_url(r, "http://127.0.0.1:1/simple", &r->index), 0);
        rv_registry_complete(r, state_fd, -1);
        assert_true(r->has_files);
        assert_int_equal(r->n_hosts, 2);
        assert_false(r->hosts[0].is_learned);    /* the page names it too */
        assert_true(r->hosts[1].is_learned);
        rv_registry_free(r);

        r = calloc(1, sizeof(*r));
        r->language = JS;
        assert_int_equal(rv_registry_add_url(r, "http://127.0.0.1:1/", &r->index), 0);
        rv_registry_complete(r, state_fd, -1);
        assert_true(r->has_files);
        rv_registry_free(r);
        close(state_fd);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_place),
                cmocka_unit_test(a_long_list),
                cmocka_unit_test(every_page),
                cmocka_unit_test_setup_teardown(kept_answers, tmp_make, tmp_remove),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
