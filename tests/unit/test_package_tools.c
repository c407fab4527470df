/* What a run's own pip or npm goes by: for each registry the variables, and the certificates that go with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "package/registry_tools.h"

#include "base/fd.h"
#include "test_base_tmp.h"

#include <unistd.h>

static const struct {
        const char *name, *config;
        enum rv_language language;
        const char *values[4][2];            /* NULL value: the name is not there */
} rows[] = {
        { "an index", "registries: {python: {index: 'https://registry.example/simple/'}}", RV_LANGUAGE_PYTHON,
          { { "PIP_INDEX_URL", "https://registry.example/simple/" }, { "PIP_TRUSTED_HOST", NULL }, { "PIP_BREAK_SYSTEM_PACKAGES", "1" }, { "PIP_CERT", NULL } } },
        { "credentials", "registries: {python: {index: 'https://user:secret@registry.example/simple/'}}", RV_LANGUAGE_PYTHON,
          { { "PIP_INDEX_URL", "https://registry.example/simple/" } } },
        { "plain HTTP", "registries: {python: {index: 'http://registry.example:8081/simple/'}}", RV_LANGUAGE_PYTHON,
          { { "PIP_INDEX_URL", "http://registry.example:8081/simple/" }, { "PIP_TRUSTED_HOST", "registry.example:8081" } } },
        { "plain HTTP, an address of IPv6", "registries: {python: {index: 'http://[2001:db8::1]/simple/'}}", RV_LANGUAGE_PYTHON,
          { { "PIP_TRUSTED_HOST", "[2001:db8::1]:80" } } },
        { "npm's", "registries: {javascript: {index: 'https://a:b@registry.example/npm/'}}", RV_LANGUAGE_JAVASCRIPT,
          { { "npm_config_registry", "https://registry.example/npm/" }, { "npm_config_audit", "false" }, { "npm_config_cafile", NULL }, { "PIP_INDEX_URL", NULL } } },
        { "npm's, plain HTTP", "registries: {javascript: {index: 'http://registry.example/'}}", RV_LANGUAGE_JAVASCRIPT,
          { { "npm_config_registry", "http://registry.example/" }, { "PIP_TRUSTED_HOST", NULL } } },
        { "no index", "registries: {python: {files: [files.example]}}", RV_LANGUAGE_PYTHON, { { "PIP_INDEX_URL", NULL } } },
};

static struct rv_registry *registry_of(const char *text, enum rv_language language, struct rv_config **ret_config)
{
        struct rv_registry *r = NULL;
        struct rv_error err = { 0 };

        if (rv_config_parse(text, strlen(text), "t.yaml", ret_config, &err) < 0)
                fail_msg("%s", err.message);
        assert_int_equal(rv_registry_find(*ret_config, &(*ret_config)->tenants[0], language, NULL, &r), 0);
        return r;
}

static const char *value_of(const struct rv_registry_tools *t, const char *name)
{
        for (size_t i = 0; i < t->n_env; i++)
                if (!strcmp(t->env[i].name, name))
                        return t->env[i].value;
        return NULL;
}

/* @dir is a root without certificates of its own. */
static void variables(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_config *config = NULL;
                struct rv_registry *r = registry_of(rows[i].config, rows[i].language, &config);
                struct rv_registry_tools t;

                assert_int_equal(rv_registry_tools_make(r, *state, &t, NULL), 0);
                for (size_t k = 0; k < RV_N_ELEMENTS(rows[i].values) && rows[i].values[k][0]; k++) {
                        const char *value = value_of(&t, rows[i].values[k][0]), *expected = rows[i].values[k][1];

                        if (!value != !expected || (value && strcmp(value, expected) != 0))
                                fail_msg("%s: %s is %s", rows[i].name, rows[i].values[k][0], value ? value : "(none)");
                }
                rv_registry_tools_fini(&t);
                rv_registry_free(r);
                rv_config_free(config);
        }
}

static void certificates(void **state)
{
        const char *dir = *state;
        struct rv_config *config = NULL;
        struct rv_registry_tools t = { .n_env = 77 };
        struct rv_error err = { 0 };
        char text[1024], path[512], link[512], *large = calloc(1, RV_PLAN_CA_BYTES_MAX + 1);
        struct rv_registry *r;

        snprintf(path, sizeof(path), "%s/ca.pem", dir);
        snprintf(link, sizeof(link), "%s/link.pem", dir);
        snprintf(text, sizeof(text), "registries: {python: {index: 'https://registry.example/', ca: '%s'}}", link);
        r = registry_of(text, RV_LANGUAGE_PYTHON, &config);
        assert_int_equal(rv_registry_tools_make(r, "host", &t, &err), -ENOENT);
        assert_non_null(strstr(err.message, link));
        assert_non_null(strstr(err.message, "registries.python.ca"));
        assert_int_equal(t.n_env, 77);
        assert_int_equal(symlink(path, link), 0);
        assert_int_equal(rv_write_file(path, "", 0, 0644, false), 0);
        assert_int_equal(rv_registry_tools_make(r, "host", &t, &err), -ENODATA);
        assert_int_equal(rv_write_file(path, large, RV_PLAN_CA_BYTES_MAX + 1, 0644, false), 0);
        assert_int_equal(rv_registry_tools_make(r, "host", &t, &err), -EFBIG);
        assert_int_equal(rv_write_file(path, "PEM\n", 4, 0644, false), 0);
        assert_int_equal(rv_registry_tools_make(r, "host", &t, &err), 0);
        assert_string_equal(value_of(&t, "PIP_CERT"), RV_PLAN_CA_FILE);
        assert_int_equal(t.ca.size, 4);
        assert_memory_equal(t.ca.data, "PEM\n", 4);
        rv_registry_tools_fini(&t);
        rv_registry_free(r);
        rv_config_free(config);
        free(large);
}

/* Without a file of the registry's, the runtime's own counts, where it has one. */
static void certificates_of_the_runtime(void **state)
{
        const char *dir = *state;
        struct rv_config *config = NULL;
        struct rv_registry *r = registry_of("registries: {javascript: {index: 'https://registry.example/'}}", RV_LANGUAGE_JAVASCRIPT, &config);
        struct rv_registry_tools t;
        char path[512];

        snprintf(path, sizeof(path), "%s/etc/ssl/certs", dir);
        assert_int_equal(rv_mkdir_p(path, 0755), 0);
        snprintf(path, sizeof(path), "%s/etc/ssl/certs/ca-certificates.crt", dir);
        assert_int_equal(rv_write_file(path, "PEM\n", 4, 0644, false), 0);
        assert_int_equal(rv_registry_tools_make(r, dir, &t, NULL), 0);
        assert_string_equal(value_of(&t, "npm_config_cafile"), "/etc/ssl/certs/ca-certificates.crt");
        assert_int_equal(t.ca.size, 0);
        rv_registry_tools_fini(&t);
        rv_registry_free(r);
        rv_config_free(config);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(variables, tmp_make, tmp_remove),
                cmocka_unit_test_setup_teardown(certificates, tmp_make, tmp_remove),
                cmocka_unit_test_setup_teardown(certificates_of_the_runtime, tmp_make, tmp_remove),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
