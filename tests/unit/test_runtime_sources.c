/* Where a runtime's packages come from: what of a host's apt sources is taken, and how it is changed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "base/fd.h"
#include "runtime_sources.h"
#include "test_base_tmp.h"

struct row {
        const char *name, *text, *want;
};

static const struct row lines[] = {
        { "plain", "deb http://registry.example/debian bookworm main\n", "deb http://registry.example/debian trixie main\n" },
        { "additions", "deb http://a.example/d bookworm-updates main\ndeb http://a.example/s bookworm-security main contrib\n",
          "deb http://a.example/d trixie-updates main\ndeb http://a.example/s trixie-security main contrib\n" },
        { "old security", "deb http://a.example/s bookworm/updates main", "deb http://a.example/s trixie/updates main\n" },
        { "options", "deb [ signed-by=/k.gpg arch=amd64 ] http://a.example/d bookworm main\n", "deb [ signed-by=/k.gpg arch=amd64 ] http://a.example/d trixie main\n" },
        { "no end of options", "deb [ signed-by=/k.gpg http://a.example/d bookworm main\n", "" },
        { "source packages", "deb-src http://a.example/d bookworm main\n", "" },
        { "comments", "# deb http://a.example/d bookworm main\n  #x\n\ndeb http://a.example/d bookworm main # mine\n", "deb http://a.example/d trixie main \n" },
        { "third party", "deb http://a.example/d nodistro main\ndeb http://a.example/d stable main\n", "" },
        { "backports", "deb http://a.example/d bookworm-backports main\n", "" },
        { "longer name", "deb http://a.example/d bookworms main\n", "" },
        { "flat", "deb http://a.example/d ./\n", "" },
        { "short", "deb\ndeb \ndeb http://a.example\n", "" },
        { "empty", "", "" },
};

static const struct row paragraphs[] = {
        { "plain", "Types: deb\nURIs: http://a.example/d\nSuites: bookworm bookworm-updates bookworm-backports\nComponents: main\nSigned-By: /k.gpg\n",
          "Types: deb\nURIs: http://a.example/d\nSuites: trixie trixie-updates\nComponents: main\nSigned-By: /k.gpg\n\n" },
        { "two", "Types: deb\nURIs: http://a.example/d\nSuites: bookworm\n \t\n\nTypes: deb\nURIs: http://a.example/s\nSuites: bookworm-security\n",
          "Types: deb\nURIs: http://a.example/d\nSuites: trixie\n\nTypes: deb\nURIs: http://a.example/s\nSuites: trixie-security\n\n" },
        { "source packages too", "Types: deb deb-src\nURIs: u\nSuites: bookworm\n", "Types: deb\nURIs: u\nSuites: trixie\n\n" },
        { "source packages alone", "Types: deb-src\nURIs: u\nSuites: bookworm\n", "" },
        { "off", "Enabled: no\nTypes: deb\nURIs: u\nSuites: bookworm\n", "" },
        { "on", "Enabled: yes\nTypes: deb\nURIs: u\nSuites: bookworm\n", "Types: deb\nURIs: u\nSuites: trixie\n\n" },
        { "third party", "Types: deb\nURIs: u\nSuites: nodistro\n", "" },
        { "comments", "# mine\nTypes: deb\n# URIs: x\nURIs: u\nSuites: bookworm\n# end\n", "Types: deb\nURIs: u\nSuites: trixie\n\n" },
        { "continued", "Types: deb\nURIs: u\nSuites:\n bookworm\n# no\n bookworm-updates\nComponents: main\n", "Types: deb\nURIs: u\nSuites: trixie trixie-updates\nComponents: main\n\n" },
        { "embedded key", "Types: deb\nURIs: u\nSuites: bookworm\nSigned-By:\n -----BEGIN\n .\n abc\n -----END\n",
          "Types: deb\nURIs: u\nSuites: trixie\nSigned-By:\n -----BEGIN\n .\n abc\n -----END\n\n" },
        { "case of names", "types: deb\nuris: u\nsuites: bookworm\n", "Types: deb\nuris: u\nSuites: trixie\n\n" },
        { "no newline at the end", "Types: deb\nSuites: bookworm\nURIs: u", "Types: deb\nSuites: trixie\nURIs: u\n\n" },
        { "no types", "URIs: u\nSuites: bookworm\n", "" },
        { "no colon", "Types deb\nSuites bookworm\n", "" },
        { "empty", "\n\n", "" },
};

static void check(const struct row *row, int (*take)(const char *, const char *, const char *, struct rv_buf *))
{
        _cleanup_(rv_buf_fini) struct rv_buf out = { 0 };

        assert_int_equal(take(row->text, "bookworm", "trixie", &out), 0);
        if (strcmp(out.data ? out.data : "", row->want) != 0)
                fail_msg("%s:\n%s\nwant:\n%s", row->name, out.data ? out.data : "", row->want);
}

static void of_lines(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(lines); i++)
                check(&lines[i], sources_take_lines);
}

static void of_paragraphs(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(paragraphs); i++)
                check(&paragraphs[i], sources_take_paragraphs);
}

static void put(void **state, const char *path, const char *text)
{
        assert_int_equal(rv_write_file(tmp_path(state, path), text, strlen(text), 0644, false), 0);
}

static void of_a_configuration(void **state)
{
        _cleanup_(rv_buf_fini) struct rv_buf l = { 0 }, p = { 0 };
        struct rv_error err = { 0 };

        assert_int_equal(mkdir(tmp_path(state, "sources.list.d"), 0755), 0);
        assert_int_equal(sources_read(*state, "bookworm", "bookworm", &l, &p, &err), -ENOENT);
        assert_non_null(strstr(err.message, "--mirror URL"));
        put(state, "sources.list", "deb a bookworm main\n");
        put(state, "sources.list.d/b.list", "deb b bookworm main\n");
        put(state, "sources.list.d/c.sources", "Types: deb\nURIs: c\nSuites: bookworm\n");
        put(state, "sources.list.d/d.list.off", "deb d bookworm main\n");
        put(state, "sources.list.d/e.sources", "");
        assert_int_equal(sources_read(*state, "bookworm", "bookworm", &l, &p, &err), 0);
        assert_string_equal(l.data, "deb a bookworm main\ndeb b bookworm main\n");
        assert_string_equal(p.data, "Types: deb\nURIs: c\nSuites: bookworm\n\n");
}

static void of_a_release(void **state)
{
        static const struct row rows[] = {
                { "Debian", "NAME=\"Debian\"\nVERSION_CODENAME=bookworm\nID=debian\n", "bookworm" },
                { "quoted", "VERSION_CODENAME=\"trixie\"\n", "trixie" },
                { "at the end", "ID=x\nVERSION_CODENAME=sid", "sid" },
                { "none", "ID=x\nX_VERSION_CODENAME=sid\n", NULL },
                { "empty", "VERSION_CODENAME=\n", NULL },
                { "too long", "VERSION_CODENAME=aaaaaaaaaaaaaaaaaaaaaaaa\n", NULL },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                char name[16] = "";
                bool is = sources_release(rows[i].text, name, sizeof(name));

                if (is != (rows[i].want != NULL) || (is && strcmp(name, rows[i].want) != 0))
                        fail_msg("%s: %s", rows[i].name, name);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(of_lines),
                cmocka_unit_test(of_paragraphs),
                cmocka_unit_test_setup_teardown(of_a_configuration, tmp_make, tmp_remove),
                cmocka_unit_test(of_a_release),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
