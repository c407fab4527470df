/*
 * The address that is built into pip or npm, read from their sources: as they state it, and not from anything else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "package/registry_private.h"

#include "base/fd.h"
#include "test_base_tmp.h"

#include <string.h>

#define PIP "usr/lib/python3/dist-packages/pip/_internal/models"
#define NPM "usr/share/nodejs/npm/lib/utils/config"
#define PIP_LINE "\nPyPI = PackageIndex(\"https://registry.example/\", file_storage_domain=\"files.registry.example\")\n"

static const struct row {
        const char *name;
        enum rv_language language;
        const char *dir, *file, *text, *lines;   /* lines NULL: it is to be asked */
} rows[] = {
        { "pip's", RV_LANGUAGE_PYTHON, PIP, "index.py", "import urllib.parse\n" PIP_LINE, "https://registry.example/simple\nhttps://files.registry.example\n" },
        { "in several lines", RV_LANGUAGE_PYTHON, PIP, "index.py",
          "\nPyPI = PackageIndex(\n    \"https://registry.example/\", file_storage_domain=\"files.registry.example\"\n)\n", NULL },
        { "of a test index alone", RV_LANGUAGE_PYTHON, PIP, "index.py", "\nTestPyPI = PackageIndex(\"https://registry.example/\", file_storage_domain=\"f.example\")\n", NULL },
        { "no https", RV_LANGUAGE_PYTHON, PIP, "index.py", "\nPyPI = PackageIndex(\"http://registry.example/\", file_storage_domain=\"f.example\")\n", NULL },
        { "no slash at its end", RV_LANGUAGE_PYTHON, PIP, "index.py", "\nPyPI = PackageIndex(\"https://registry.example/a\", file_storage_domain=\"f.example\")\n", NULL },
        { "credentials", RV_LANGUAGE_PYTHON, PIP, "index.py", "\nPyPI = PackageIndex(\"https://a@registry.example/\", file_storage_domain=\"f.example\")\n", NULL },
        { "a path as files' host", RV_LANGUAGE_PYTHON, PIP, "index.py", "\nPyPI = PackageIndex(\"https://registry.example/\", file_storage_domain=\"f.example/x\")\n", NULL },
        { "no files' host", RV_LANGUAGE_PYTHON, PIP, "index.py", "\nPyPI = PackageIndex(\"https://registry.example/\")\n", NULL },
        { "cut", RV_LANGUAGE_PYTHON, PIP, "index.py", "\nPyPI = PackageIndex(\"https://registry.exam", NULL },
        { "empty", RV_LANGUAGE_PYTHON, PIP, "index.py", "", NULL },
        { "npm's", RV_LANGUAGE_JAVASCRIPT, NPM, "definitions.js",
          "x\n  registry: new Definition('registry', {\n    default: 'https://registry.example/',\n    type: url,\n", "https://registry.example/\n" },
        { "another's default", RV_LANGUAGE_JAVASCRIPT, NPM, "definitions.js",
          "new Definition('registry', {\n    type: url,\n    description: `" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa`\n  default: 'https://registry.example/'", NULL },
        { "npm without https", RV_LANGUAGE_JAVASCRIPT, NPM, "definitions.js", "'registry', {\n    default: 'http://registry.example/',\n", NULL },
};

static void every_row(void **state)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                char path[256];
                _cleanup_(rv_freep) char *lines = NULL;

                (void)snprintf(path, sizeof(path), "%zu/%s", i, rows[i].dir);
                assert_int_equal(rv_mkdir_p(tmp_path(state, path), 0700), 0);
                (void)snprintf(path, sizeof(path), "%zu/%s/%s", i, rows[i].dir, rows[i].file);
                assert_int_equal(
                        rv_write_file(tmp_path(state, path), rows[i].text, strlen(rows[i].text), 0600, false), 0);
                (void)snprintf(path, sizeof(path), "%zu", i);
                lines = rv__registry_read_own(rows[i].language, tmp_path(state, path));
                if (!lines != !rows[i].lines || (lines && strcmp(lines, rows[i].lines) != 0))
                        fail_msg("%s: %s", rows[i].name, lines ? lines : "(none)");
        }
}

/* Other files of an installation, and none at all. */
static void no_file(void **state)
{
        assert_null(rv__registry_read_own(RV_LANGUAGE_PYTHON, tmp_path(state, "none")));
        assert_null(rv__registry_read_own(RV_LANGUAGE_JAVASCRIPT, tmp_path(state, "none")));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(every_row, tmp_make, tmp_remove),
                cmocka_unit_test_setup_teardown(no_file, tmp_make, tmp_remove),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
