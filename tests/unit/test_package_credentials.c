/*
 * A registry's credentials: found in each place that can hold them, handed to the URLs that they are meant for and to
 * the resolver's sandbox, and to nothing else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "package/registry_credentials.h"

#include "base/fd.h"
#include "test_base_tmp.h"

#include <sys/stat.h>

#define PY RV_LANGUAGE_PYTHON
#define JS RV_LANGUAGE_JAVASCRIPT
#define SECRET "s3cr3t"              /* in each of them; in base64 of user:password it is one of the two below */
#define BASIC_ME "bWU6czNjcjN0"      /* me:s3cr3t */
#define BASIC_YOU "eW91OnMzY3IzdA==" /* you:s3cr3t */

struct source {
        const char *name;
        enum rv_language language;
        const char *config;
        const char *files[4][2];     /* path, text */
        const char *env[8];          /* NAME, value */
        const char *urls[12][2];     /* URL, header without "Authorization: "; NULL: none */
        const char *vars[10][2];     /* of the resolver: NAME, what is in it; NULL: it is not there */
        const char *hosts;           /* or NULL: not looked at */
};

static const struct source sources[] = {
        { .name = "the configuration's index", .language = PY, .config = "registries: {python: {index: 'https://me:" SECRET "@registry.example/simple/', files: [files.example]}}",
          .urls = { { "https://registry.example/simple/idna/", "Basic " BASIC_ME }, { "https://registry.example/", "Basic " BASIC_ME }, { "https://REGISTRY.example:443/x?y#z", "Basic " BASIC_ME },
                    { "http://registry.example/simple/", NULL }, { "https://registry.example:8443/simple/", NULL }, { "http://registry.example:443/simple/", NULL },
                    { "https://registry.example.evil.example/simple/", NULL }, { "https://you@registry.example/simple/", NULL }, { "https://registry.example@evil.example/simple/", NULL },
                    { "https://evil.example/https://registry.example/simple/", NULL }, { "no address", NULL }, { "", NULL } },
          .vars = { { "UV_DEFAULT_INDEX", "https://me:" SECRET "@registry.example/simple/" }, { "PIP_INDEX_URL", "https://me:" SECRET "@registry.example/simple/" }, { "UV_INDEX", NULL },
                    { "PIP_EXTRA_INDEX_URL", NULL }, { "UV_NO_CONFIG", "1" }, { "UV_HTTP_RETRIES", "0" }, { "UV_HTTP_TIMEOUT", "10" }, { "PIP_RETRIES", "0" }, { "PIP_DEFAULT_TIMEOUT", "10" },
                    { "REEVE_NPMRC", NULL } } },
        { .name = "the tenant's index", .language = PY,
          .config = "registries: {python: {index: 'https://you:" SECRET "@registry.example/'}}\ntenants: {local: {registries: {python: {index: 'https://me:" SECRET "@tenant.example:8443/x'}}}}",
          .urls = { { "https://tenant.example:8443/x/idna/", "Basic " BASIC_ME }, { "https://registry.example/", NULL } } },
        { .name = "the configuration's files", .language = PY, .config = "registries: {python: {index: 'https://registry.example/', files: ['https://me:" SECRET "@files.example/']}}",
          .urls = { { "https://files.example/x.whl", "Basic " BASIC_ME }, { "https://registry.example/", NULL } }, .hosts = "registry.example:443 files.example:443" },
        { .name = "what is percent-encoded", .language = PY, .config = "registries: {python: {index: 'https://%6de:s%33cr3t@registry.example/'}}",
          .urls = { { "https://registry.example/", "Basic " BASIC_ME } }, .vars = { { "PIP_INDEX_URL", "https://%6de:s%33cr3t@registry.example/" } } },
        { .name = "a name alone", .language = PY, .config = "registries: {python: {index: 'https://me@registry.example/'}}", .urls = { { "https://registry.example/", "Basic bWU6" } } },
        { .name = "a password with @ and :", .language = PY, .config = "registries: {python: {index: 'https://me:a@b:c@registry.example/'}}",
          .urls = { { "https://registry.example/", "Basic bWU6YUBiOmM=" } } },
        { .name = "an address of IPv6", .language = PY, .config = "registries: {python: {index: 'http://me:" SECRET "@[2001:db8::1]:8080/'}}",
          .urls = { { "http://[2001:DB8:0::1]:8080/x", "Basic " BASIC_ME }, { "http://[2001:db8::2]:8080/x", NULL } }, .vars = { { "PIP_TRUSTED_HOST", "[2001:db8::1]:8080" } } },
        { .name = "pip.conf", .language = PY,
          .files = { { "/etc/pip.conf", "[global]\nindex-url = https://you:" SECRET "@registry.example/simple\n" },
                     { "/home/me/.config/pip/pip.conf", "[global]\nindex-url = https://me:" SECRET "@registry.example/simple\nextra-index-url =\n  https://you:" SECRET "@b.example/x\n  http://c.example:8080/\n" } },
          .env = { "HOME", "/home/me" },
          .urls = { { "https://registry.example/simple/a/", "Basic " BASIC_ME }, { "https://b.example/x/a/", "Basic " BASIC_YOU }, { "http://c.example:8080/", NULL } },
          .vars = { { "UV_INDEX", "https://you:" SECRET "@b.example/x http://c.example:8080/" }, { "PIP_EXTRA_INDEX_URL", "https://you:" SECRET "@b.example/x http://c.example:8080/" },
                    { "PIP_TRUSTED_HOST", "c.example:8080" }, { "PIP_CONFIG_FILE", "/dev/null" } } },
        { .name = "an index that another file puts in its place", .language = PY,
          .files = { { "/etc/pip.conf", "[global]\nindex-url = https://me:" SECRET "@registry.example/simple\n" } }, .env = { "PIP_INDEX_URL", "https://registry.example/simple" },
          .urls = { { "https://registry.example/simple/", NULL } } },
        { .name = "the environment", .language = PY, .env = { "PIP_INDEX_URL", "https://me:" SECRET "@registry.example/a/", "PIP_EXTRA_INDEX_URL", "https://you:" SECRET "@registry.example/b/" },
          .urls = { { "https://registry.example/a/x/", "Basic " BASIC_ME }, { "https://registry.example/b/x/", "Basic " BASIC_YOU }, { "https://registry.example/files/x", "Basic " BASIC_ME },
                    { "https://registry.example/a/../b/", NULL } } },
        { .name = "find-links", .language = PY, .env = { "PIP_INDEX_URL", "https://registry.example/", "PIP_FIND_LINKS", "/wheels https://me:" SECRET "@links.example/x" },
          .urls = { { "https://links.example/x", NULL } }, .vars = { { "PIP_FIND_LINKS", NULL }, { "UV_FIND_LINKS", NULL } } },
        { .name = "npm's token", .language = JS,
          .files = { { "/home/me/.npmrc", "registry=https://registry.example/npm/\n//registry.example/npm/:_authToken=" SECRET "\n" } }, .env = { "HOME", "/home/me" },
          .urls = { { "https://registry.example/npm/left-pad", "Bearer " SECRET }, { "https://registry.example/npm", "Bearer " SECRET }, { "https://registry.example/npm/@a%2fb", "Bearer " SECRET },
                    { "https://registry.example/", NULL }, { "https://registry.example/npmx/y", NULL }, { "http://registry.example/npm/x", NULL }, { "https://registry.example:444/npm/x", NULL },
                    { "https://registry.example/npm/../x", NULL }, { "https://registry.example/npm/%2E%2e/x", NULL }, { "https://registry.example/npm/a%2f..%2f../x", NULL },
                    { "https://registry.example/npm/..\\x", NULL }, { "https://registry.example/npm/a?b=/../", "Bearer " SECRET } },
          .vars = { { "REEVE_NPMRC", "//registry.example/npm/:_authToken=\"" SECRET "\"\n" }, { "REEVE_NPMRC", "registry=\"https://registry.example/npm/\"\n" },
                    { "REEVE_NPMRC", "omit-lockfile-registry-resolved=true\n" }, { "REEVE_NPMRC", "fetch-retries=0\n" }, { "REEVE_NPMRC", "fetch-timeout=10000\n" }, { "PIP_INDEX_URL", NULL } } },
        { .name = "npm's token of a variable", .language = JS, .files = { { "/etc/npmrc", "registry=https://registry.example/\n//registry.example/:_authToken = ${TOKEN}\n//b.example/:_authToken=${UNSET}\n" } },
          .env = { "TOKEN", SECRET }, .urls = { { "https://registry.example/x", "Bearer " SECRET }, { "https://b.example/x", NULL } } },
        { .name = "npm's _auth", .language = JS, .files = { { "/etc/npmrc", "registry=https://registry.example/\n//registry.example/:_auth=\"" BASIC_ME "\"\n//b.example/:_auth=no base64\n" } },
          .urls = { { "https://registry.example/x", "Basic " BASIC_ME }, { "https://b.example/x", NULL } }, .vars = { { "REEVE_NPMRC", "//registry.example/:_auth=\"" BASIC_ME "\"\n" } } },
        { .name = "npm's user and password", .language = JS,
          .files = { { "/etc/npmrc", "registry=https://registry.example/\n//registry.example/:username=me\n//registry.example/:_password=czNjcjN0\n//b.example/:username=me\n//c.example/:_password=czNjcjN0\n" } },
          .urls = { { "https://registry.example/x", "Basic " BASIC_ME }, { "https://b.example/x", NULL }, { "https://c.example/x", NULL } },
          .vars = { { "REEVE_NPMRC", "//registry.example/:_auth=\"" BASIC_ME "\"\n" } } },
        { .name = "npm's nearest, and a later file's", .language = JS,
          .files = { { "/etc/npmrc", "//registry.example/:_authToken=other-" SECRET "\n" },
                     { "/home/me/.npmrc", "registry=https://registry.example/\n//registry.example/:_authToken=far-" SECRET "\n//registry.example/near:_authToken=near-" SECRET "\n" } },
          .env = { "HOME", "/home/me" },
          .urls = { { "https://registry.example/x", "Bearer far-" SECRET }, { "https://registry.example/near/x", "Bearer near-" SECRET }, { "https://registry.example/nearer/x", "Bearer far-" SECRET } } },
        { .name = "npm's scopes", .language = JS,
          .files = { { "/etc/npmrc", "@corp:registry=https://old.example/\nregistry=https://registry.example/\n@corp:registry=https://me:" SECRET "@corp.example:8443/npm\n@bad scope:registry=https://x.example/\n"
                                     "@odd:registry=ftp://me:" SECRET "@srv.example/x\n//registry.example/:_authToken=" SECRET "\n" } },
          .urls = { { "https://corp.example:8443/npm/@corp%2fx", "Basic " BASIC_ME }, { "https://corp.example:8443/other", NULL }, { "https://registry.example/x", "Bearer " SECRET }, { "https://old.example/", NULL } },
          .vars = { { "REEVE_NPMRC", "@corp:registry=\"https://corp.example:8443/npm\"\n" }, { "REEVE_NPMRC", "//corp.example:8443/npm/:_auth=\"" BASIC_ME "\"\n" } },
          .hosts = "registry.example:443 corp.example:8443" },
        { .name = "npm's index with credentials", .language = JS, .config = "registries: {javascript: {index: 'https://me:" SECRET "@registry.example/npm'}}",
          .urls = { { "https://registry.example/npm/x", "Basic " BASIC_ME }, { "https://registry.example/x", NULL } },
          .vars = { { "REEVE_NPMRC", "//registry.example/npm/:_auth=\"" BASIC_ME "\"\n" }, { "REEVE_NPMRC", "registry=\"https://registry.example/npm\"\n" } } },
        { .name = "npm's in the clear", .language = JS, .files = { { "/etc/npmrc", "registry=http://127.0.0.5:4873/\n//127.0.0.5:4873/:_authToken=" SECRET "\n//other.example:80/:_authToken=" SECRET "\n" } },
          .urls = { { "http://127.0.0.5:4873/x", "Bearer " SECRET }, { "http://other.example/x", NULL } } },
        { .name = "npm's environment", .language = JS, .env = { "npm_config_registry", "https://me:" SECRET "@registry.example/" }, .urls = { { "https://registry.example/x", "Basic " BASIC_ME } } },
        { .name = "lines that are none", .language = JS,
          .files = { { "/etc/npmrc", "registry=https://registry.example/\n_authToken=" SECRET "\n_auth=" BASIC_ME "\n//registry.example/:certfile=" SECRET "\n//:_authToken=" SECRET "\n"
                                     "//registry.example/:_authToken=two words\n//registry.example/#x:_authToken=" SECRET "\n" } },
          .urls = { { "https://registry.example/x", NULL } } },
        { .name = "a directory's own .npmrc and .netrc", .language = JS,
          .files = { { "/.npmrc", "//registry.example/:_authToken=" SECRET "\n" }, { "/home/me/.netrc", "machine registry.example login me password " SECRET "\n" }, { "/etc/npmrc", "registry=https://registry.example/\n" } },
          .env = { "HOME", "/home/me" }, .urls = { { "https://registry.example/x", NULL } } },
};

static const char *get(void *arg, const char *name)
{
        const struct source *s = arg;

        for (size_t i = 0; i + 1 < RV_N_ELEMENTS(s->env) && s->env[i]; i += 2)
                if (strcmp(s->env[i], name) == 0)
                        return s->env[i + 1];
        return NULL;
}

static void put(const char *root, const char *file, const char *text)
{
        char path[512], *slash;

        snprintf(path, sizeof(path), "%s%s", root, file);
        slash = strrchr(path, '/');
        *slash = 0;
        assert_int_equal(rv_mkdir_p(path, 0700), 0);
        *slash = '/';
        assert_int_equal(rv_write_file(path, text, strlen(text), 0600, false), 0);
}

static struct rv_registry *find(const struct source *s, const char *root)
{
        const char *text = s->config ? s->config : "";
        struct rv_registry_view view = { .root = root, .get = get, .arg = (void *)s };
        _cleanup_(rv_config_freep) struct rv_config *config = NULL;
        struct rv_registry *r = NULL;
        struct rv_error err = { 0 };

        for (size_t k = 0; k < RV_N_ELEMENTS(s->files) && s->files[k][0]; k++)
                put(root, s->files[k][0], s->files[k][1]);
        if (rv_config_parse(text, strlen(text), "/t.yaml", &config, &err) != 0)
                fail_msg("%s: %s", s->name, err.message);
        assert_int_equal(rv_registry_find(config, &config->tenants[0], s->language, &view, &r), 0);
        return r;
}

static void check_urls(const struct source *s, const struct rv_registry *r)
{
        for (size_t k = 0; k < RV_N_ELEMENTS(s->urls) && s->urls[k][0]; k++) {
                char header[RV_REGISTRY_AUTHORIZATION_SIZE] = "?", expected[200] = "";
                bool is_there = rv_registry_authorization(r, s->urls[k][0], header);

                if (s->urls[k][1])
                        snprintf(expected, sizeof(expected), "Authorization: %s", s->urls[k][1]);
                if (is_there != !!s->urls[k][1] || strcmp(header, expected) != 0)
                        fail_msg("%s: %s gets \"%s\", not \"%s\"", s->name, s->urls[k][0], header, expected);
        }
}

static void check_resolver(const struct source *s, const struct rv_registry *r, const char *root)
{
        struct rv_registry_tools t;

        assert_int_equal(rv_registry_resolver_env(r, root, &t, NULL), 0);
        for (size_t k = 0; k < RV_N_ELEMENTS(s->vars) && s->vars[k][0]; k++) {
                const char *value = NULL, *expected = s->vars[k][1];
                bool is_npmrc = strcmp(s->vars[k][0], "REEVE_NPMRC") == 0;

                for (size_t i = 0; i < t.n_env; i++)
                        if (strcmp(t.env[i].name, s->vars[k][0]) == 0)
                                value = t.env[i].value;
                if (!value != !expected ||
                        (value && (is_npmrc ? !strstr(value, expected) : strcmp(value, expected) != 0)))
                        fail_msg("%s: the resolver's %s is \"%s\", not \"%s\"", s->name, s->vars[k][0], value ? value : "(none)", expected ? expected : "(none)");
        }
        rv_registry_tools_fini(&t);
}

static bool has_secret(const char *text)
{
        return text && (strstr(text, SECRET) || strstr(text, BASIC_ME) || strstr(text, "eW91OnMzY3IzdA") || strstr(text, "czNjcjN0") || strstr(text, "s%33cr3t"));
}

/* Nothing that is shown or goes to a run has any. */
static void check_rest(const struct source *s, const struct rv_registry *r, const char *root)
{
        const char *const texts[] = { r->index, r->extra_index, r->find_links, r->source, r->files, r->ca, r->no_proxy,
                r->proxy.host };
        struct rv_registry_tools t;

        for (size_t i = 0; i < RV_N_ELEMENTS(texts); i++)
                if (has_secret(texts[i]))
                        fail_msg("%s: a secret is in \"%s\"", s->name, texts[i]);
        for (size_t i = 0; i < r->n_scopes; i++)
                if (has_secret(r->scopes[i].url))
                        fail_msg("%s: a secret is in \"%s\"", s->name, r->scopes[i].url);
        for (size_t i = 0; i < r->n_hosts; i++)
                assert_false(has_secret(r->hosts[i].host));
        assert_int_equal(rv_registry_tools_make(r, root, &t, NULL), 0);
        for (size_t i = 0; i < t.n_env; i++)
                if (has_secret(t.env[i].value))
                        fail_msg("%s: a run gets %s=%s", s->name, t.env[i].name, t.env[i].value);
        rv_registry_tools_fini(&t);
}

static void check_hosts(const struct source *s, const struct rv_registry *r)
{
        char hosts[512] = "";

        for (size_t i = 0; i < r->n_hosts; i++)
                snprintf(hosts + strlen(hosts), sizeof(hosts) - strlen(hosts), "%s%s:%u", i ? " " : "", r->hosts[i].host, r->hosts[i].port);
        if (s->hosts && strcmp(hosts, s->hosts) != 0)
                fail_msg("%s: the hosts are %s", s->name, hosts);
}

static void every_source(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(sources); i++) {
                struct rv_registry *r;

                tmp_make(state);
                r = find(&sources[i], *state);
                check_urls(&sources[i], r);
                check_resolver(&sources[i], r, *state);
                check_rest(&sources[i], r, *state);
                check_hosts(&sources[i], r);
                rv_registry_free(r);
                tmp_remove(state);
        }
}

/* A packages's own place, scopes as npm has them. */
static void bases(void **state)
{
        static const struct source s = { .name = "bases", .language = JS,
                .files = { { "/etc/npmrc", "registry=https://registry.example/\n@corp:registry=https://corp.example/\n@odd:registry=file:///x\n" } } };
        static const char *const rows[][2] = { { "left-pad", "https://registry.example/" }, { "@corp/x", "https://corp.example/" }, { "@corporate/x", "https://registry.example/" },
                { "@cor/x", "https://registry.example/" }, { "@corp", "https://corp.example/" }, { "@odd/x", "file:///x" } };
        struct rv_registry *r = find(&s, *state);

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                assert_string_equal(rv_registry_base(r, rows[i][0]), rows[i][1]);
        rv_registry_free(r);
}

/* The text cannot be made to say more than it should. */
static void npmrc_is_quoted(void **state)
{
        static const struct source s = { .name = "quoted", .language = JS, .env = { "npm_config_registry", "https://registry.example/\nignore-scripts=false\n\"\\x" } };
        struct rv_registry *r = find(&s, *state);
        struct rv_registry_tools t;

        assert_int_equal(rv_registry_resolver_env(r, *state, &t, NULL), 0);
        assert_int_equal(t.n_env, 1);
        assert_non_null(strstr(t.env[0].value, "registry=\"https://registry.example/\\u000aignore-scripts=false\\u000a\\\"\\\\x\"\n"));
        rv_registry_tools_fini(&t);
        rv_registry_free(r);
}

static void certificates(void **state)
{
        const char *root = *state;
        struct rv_error err = { 0 };
        struct source s = { .name = "certificates", .language = PY };
        struct rv_registry_tools t = { .n_env = 77 };
        struct rv_registry *r;
        char text[600], path[512];
        size_t n_seen = 0;

        snprintf(text, sizeof(text), "registries: {python: {index: 'https://registry.example/', ca: '%s/ca.pem'}, javascript: {index: 'https://registry.example/', ca: '%s/ca.pem'}}", root, root);
        s.config = text;
        r = find(&s, root);
        assert_int_equal(rv_registry_resolver_env(r, root, &t, &err), -ENOENT);
        assert_int_equal(t.n_env, 77);
        snprintf(path, sizeof(path), "%s/ca.pem", root);
        assert_int_equal(rv_write_file(path, "PEM\n", 4, 0644, false), 0);
        assert_int_equal(rv_registry_resolver_env(r, root, &t, &err), 0);
        for (size_t i = 0; i < t.n_env; i++)
                n_seen += (!strcmp(t.env[i].name, "SSL_CERT_FILE") || !strcmp(t.env[i].name, "PIP_CERT")) && !strcmp(t.env[i].value, RV_PLAN_CA_FILE);
        assert_int_equal(n_seen, 2);
        assert_memory_equal(t.ca.data, "PEM\n", 4);
        rv_registry_tools_fini(&t);
        rv_registry_free(r);

        s.language = JS;
        r = find(&s, root);
        assert_int_equal(rv_registry_resolver_env(r, root, &t, &err), 0);
        assert_non_null(strstr(t.env[0].value, "cafile=\"" RV_PLAN_CA_FILE "\"\n"));
        rv_registry_tools_fini(&t);
        rv_registry_free(r);
}

/* Rows that differ in one thing differ in the fingerprint; the same twice is the same. */
static void fingerprints(void **state)
{
        static const struct source rows[] = {
                { .language = PY, .config = "registries: {python: {index: 'https://registry.example/'}}" },
                { .language = JS, .config = "registries: {javascript: {index: 'https://registry.example/'}}" },
                { .language = PY, .config = "registries: {python: {index: 'https://registry.example/a'}}" },
                { .language = PY, .config = "registries: {python: {index: 'https://me@registry.example/'}}" },
                { .language = PY, .config = "registries: {python: {index: 'https://me:a@registry.example/'}}" },
                { .language = PY, .config = "registries: {python: {index: 'https://me:b@registry.example/'}}" },
                { .language = PY, .config = "registries: {python: {index: 'https://registry.example/', files: [a.example]}}" },
                { .language = PY, .config = "registries: {python: {index: 'https://registry.example/', files: [b.example]}}" },
                { .language = PY, .config = "registries: {python: {index: 'https://registry.example/', files: ['https://me:a@a.example']}}" },
                { .language = PY, .config = "registries: {python: {index: 'https://registry.example/', proxy: 'http://a.example:1'}}" },
                { .language = PY, .config = "registries: {python: {index: 'https://registry.example/', proxy: 'http://a.example:2'}}" },
                { .language = PY, .config = "registries: {python: {index: 'https://registry.example/', ca: /nonexistent/a.pem}}" },
                { .language = PY, .config = "registries: {python: {index: 'https://registry.example/', ca: /nonexistent/b.pem}}" },
                { .language = PY, .env = { "PIP_INDEX_URL", "https://registry.example/", "PIP_EXTRA_INDEX_URL", "https://a.example/" } },
                { .language = PY, .env = { "PIP_INDEX_URL", "https://registry.example/", "PIP_FIND_LINKS", "/wheels" } },
                { .language = JS, .files = { { "/etc/npmrc", "registry=https://registry.example/\n@a:registry=https://a.example/\n" } } },
                { .language = JS, .files = { { "/etc/npmrc", "registry=https://registry.example/\n@b:registry=https://a.example/\n" } } },
                { .language = JS, .files = { { "/etc/npmrc", "registry=https://registry.example/\n//registry.example/:_authToken=a\n" } } },
                { .language = JS, .files = { { "/etc/npmrc", "registry=https://registry.example/\n//registry.example/:_authToken=b\n" } } },
        };
        char prints[RV_N_ELEMENTS(rows)][RV_SHA256_HEX_SIZE];

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                for (int again = 0; again < 2; again++) {
                        char print[RV_SHA256_HEX_SIZE];
                        struct rv_registry *r;

                        tmp_make(state);
                        r = find(&rows[i], *state);
                        rv_registry_fingerprint(r, print);
                        /* A host that was learned today does not count. */
                        assert_true(rv_registry_page_hosts(r, "\"https://learned.example/x\"", 27) == 1);
                        rv_registry_fingerprint(r, prints[i]);
                        assert_string_equal(print, prints[i]);
                        assert_int_equal(strlen(print), 64);
                        rv_registry_free(r);
                        tmp_remove(state);
                }
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                for (size_t k = 0; k < i; k++)
                        if (strcmp(prints[i], prints[k]) == 0)
                                fail_msg("rows %zu and %zu are the same", i, k);
}

/* The content of the certificates counts, not where they lie. */
static void fingerprint_of_certificates(void **state)
{
        const char *root = *state;
        char text[600], path[512], prints[3][RV_SHA256_HEX_SIZE];
        struct source s = { .name = "ca", .language = PY, .config = text };

        for (int i = 0; i < 3; i++) {
                const char *content = i == 1 ? "B" : "A";
                struct rv_registry *r;

                snprintf(path, sizeof(path), "%s/%d.pem", root, i);
                snprintf(text, sizeof(text), "registries: {python: {index: 'https://registry.example/', ca: '%s'}}", path);
                assert_int_equal(rv_write_file(path, content, 1, 0644, false), 0);
                r = find(&s, root);
                rv_registry_fingerprint(r, prints[i]);
                rv_registry_free(r);
        }
        assert_string_equal(prints[0], prints[2]);
        assert_string_not_equal(prints[0], prints[1]);
}

/* Past the bounds nothing is cut: it is not there. */
static void long_ones(void **state)
{
        static char token[8192], text[10000];
        static const struct {
                size_t n;
                bool is_there;
        } rows[] = { { 1, true }, { 2000, true }, { 4096, true }, { 4097, false }, { 6000, false } };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct source s = { .name = "long", .language = JS, .files = { { "/etc/npmrc", text } } };
                char header[RV_REGISTRY_AUTHORIZATION_SIZE];
                struct rv_registry *r;

                memset(token, 't', rows[i].n);
                token[rows[i].n] = 0;
                snprintf(text, sizeof(text), "registry=https://registry.example/\n//registry.example/:_authToken=%s\n", token);
                r = find(&s, *state);
                assert_int_equal(rv_registry_authorization(r, "https://registry.example/x", header), rows[i].is_there);
                assert_int_equal(strlen(header), rows[i].is_there ? rows[i].n + strlen("Authorization: Bearer ") : 0);
                rv_registry_free(r);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_source),
                cmocka_unit_test_setup_teardown(bases, tmp_make, tmp_remove),
                cmocka_unit_test_setup_teardown(npmrc_is_quoted, tmp_make, tmp_remove),
                cmocka_unit_test_setup_teardown(certificates, tmp_make, tmp_remove),
                cmocka_unit_test(fingerprints),
                cmocka_unit_test_setup_teardown(fingerprint_of_certificates, tmp_make, tmp_remove),
                cmocka_unit_test_setup_teardown(long_ones, tmp_make, tmp_remove),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
