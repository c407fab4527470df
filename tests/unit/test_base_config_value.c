#include "base/config_value.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct row {
        const char *text;
        bool is_valid;
};

static void check(const char *what, const char *(*function)(const char *), const struct row *rows, size_t n)
{
        for (size_t i = 0; i < n; i++) {
                const char *why = function(rows[i].text);

                if (!why != rows[i].is_valid)
                        fail_msg("%s \"%s\": %s", what, rows[i].text, why ? why : "was taken");
        }
}

#define CHECK(function, rows) check(#function, function, rows, RV_N_ELEMENTS(rows))

#define X_10 "xxxxxxxxxx"
#define X_60 X_10 X_10 X_10 X_10 X_10 X_10

static void names(void **state)
{
        static const struct row rows[] = {
                { "a", true },        { "local", true },   { "A-1_b.c", true }, { "0", true },     { X_60 "abcd", true },
                { X_60 "abcde", false }, { "", false },    { ".a", false },     { "-a", false },   { "_a", false },
                { "a b", false },     { "a/b", false },    { "..", false },     { "é", false },    { "a\n", false },
        };

        (void)state;
        CHECK(rv_config_check_name, rows);
}

static void paths(void **state)
{
        static const struct row rows[] = {
                { "/", true },       { "/a", true },        { "/a/b.c/..d/e..", true }, { "//a//b/", true }, { "/a b", true },
                { "", false },       { "a", false },        { "./a", false },           { "/a/../b", false }, { "/..", false },
                { "/a/.", false },   { "/./a", false },     { "/a\nb", false },         { "/a\x7f", false },  { "~/a", false },
        };

        (void)state;
        CHECK(rv_config_check_path, rows);
}

static void exposed_paths(void **state)
{
        static const struct row rows[] = {
                { "/opt/data", true },  { "/usr/local", true }, { "/process", true },   { "/devices", true }, { "/temporary", true },
                { "/", false },         { "//", false },        { "/proc", false },     { "/proc/1", false }, { "//proc", false },
                { "/sys/fs", false },   { "/dev", false },      { "/tmp/x", false },    { "/box", false },    { "/opt/../proc", false },
                { "opt", false },
        };

        (void)state;
        CHECK(rv_config_check_expose, rows);
}

static void domains(void **state)
{
        static const struct row rows[] = {
                { "example.com", true },   { "EXAMPLE.com.", true }, { "a.b.c.d", true },      { "xn--bcher-kva.example", true },
                { "1.2.3.com", true },     { "_x.example", true },   { X_60 "abc.example", true },
                { "example", false },      { "", false },            { ".", false },           { "a..b", false },
                { ".a.b", false },         { "a.b..", false },       { "-a.b", false },        { "a-.b", false },
                { "a.1", false },          { "1.2.3.4", false },     { "*.a.b", false },       { "bücher.example", false },
                { "a b.c", false },        { X_60 "abcd.example", false }, { X_60 "." X_60 "." X_60 "." X_60 ".abcdefghi.x", false },
                { "a.b/c", false },        { "a.b:80", false },
        };

        (void)state;
        CHECK(rv_config_check_domain, rows);
}

static void addresses(void **state)
{
        static const struct row rows[] = {
                { "127.0.0.5", true }, { "0.0.0.0", true },      { "::1", true },       { "2001:db8::1", true }, { "::ffff:10.0.0.1", true },
                { "", false },         { "127.1", false },       { "0x7f.0.0.1", false }, { "256.0.0.1", false }, { "1.2.3.4.5", false },
                { "127.0.0.1:80", false }, { "[::1]", false },   { "fe80::1%eth0", false }, { "a.example", false }, { " 127.0.0.1", false },
        };

        (void)state;
        CHECK(rv_config_check_address, rows);
}

static void denied(void **state)
{
        static const struct row rows[] = {
                { "example.com", true },     { "10.0.0.1", true },      { "10.0.0.0/8", true },   { "0.0.0.0/0", true },  { "::/0", true },
                { "2001:db8::/128", true },  { "10.0.0.0/33", false },  { "::/129", false },      { "10.0.0.0/", false }, { "/8", false },
                { "10.0.0.0/-1", false },    { "10.0.0.0/8x", false },  { "example.com/8", false }, { "example", false }, { "10.0/16", false },
                { "", false },
        };

        (void)state;
        CHECK(rv_config_check_denied, rows);
}

static void urls(void **state)
{
        static const struct row rows[] = {
                { "http://py.registry.test:8081/simple/", true }, { "https://registry.example", true },
                { "HTTPS://registry.example/a?b=c", true },       { "https://user:p%40ss@registry.example/x", true },
                { "http://127.0.0.1:1/", true },                  { "http://[::1]:8080/", true }, { "http://localhost:4873", true },
                { "registry.example", false },                    { "ftp://registry.example", false }, { "http://", false },
                { "http:///x", false },                           { "http://registry.example:0/", false },
                { "http://registry.example:65536/", false },      { "http://registry.example:x/", false },
                { "http://a b.example/", false },                 { "http://registry.example/\n", false }, { "http://[::1", false },
                { "http://[::1]x/", false },                      { "http://[127.0.0.1]/", false }, { "http://::1/", false },
                { "file:///etc/passwd", false },                  { "http://user@/", false }, { "http://registry/", false },
        };

        (void)state;
        CHECK(rv_config_check_url, rows);
}

static void hosts(void **state)
{
        static const struct row rows[] = {
                { "files.registry.example", true }, { "files.registry.example:8443", true }, { "https://files.registry.example/x", true },
                { "127.0.0.1:80", true },           { "[::1]:80", true },                    { "[::1]", true },
                { "", false },                      { "files", false },                      { "files.example:", false },
                { "files.example:99999", false },   { "ftp://files.example", false },        { "files.example/x", false },
        };

        (void)state;
        CHECK(rv_config_check_host, rows);
}

static void enumerations(void **state)
{
        static const struct row modes[] = {
                { "none", true }, { "registries", true }, { "domains", true }, { "any", true }, { "Any", false }, { "", false }, { "all", false },
        };
        static const struct row languages[] = { { "python", true }, { "javascript", true }, { "node", false }, { "", false } };

        (void)state;
        CHECK(rv_config_check_network, modes);
        CHECK(rv_config_check_language, languages);
}

#define BAD UINT64_MAX

struct number_row {
        const char *text;
        uint64_t value;   /* BAD: not taken */
};

static void durations(void **state)
{
        static const struct number_row rows[] = {
                { "1ms", 1 },       { "250ms", 250 },   { "10s", 10000 },  { "2m", 120000 },  { "24h", 86400000 }, { "7d", 604800000 },
                { "0010s", 10000 }, { "366d", UINT64_C(31622400000) }, { "367d", BAD },  { "0s", BAD },  { "", BAD },   { "10", BAD },
                { "s", BAD },       { "10 s", BAD },    { "1.5s", BAD },   { "-1s", BAD },    { "10S", BAD },      { "10sec", BAD },
                { "10s5ms", BAD },  { "99999999999999999999d", BAD },      { "213503982335d", BAD },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                uint64_t v = BAD;
                const char *why = rv_config_read_duration(rows[i].text, &v);

                if (v != rows[i].value || !why != (v != BAD))
                        fail_msg("\"%s\": %llu, %s", rows[i].text, (unsigned long long)v, why ? why : "taken");
        }
}

static void sizes(void **state)
{
        static const struct number_row rows[] = {
                { "1KiB", 1024 },  { "512MiB", UINT64_C(536870912) }, { "10GiB", UINT64_C(10737418240) }, { "1TiB", UINT64_C(1099511627776) },
                { "1048576TiB", UINT64_C(1) << 60 }, { "1048577TiB", BAD }, { "0MiB", BAD }, { "10", BAD }, { "10GB", BAD }, { "10G", BAD },
                { "10gib", BAD },  { "1.5GiB", BAD }, { "-1GiB", BAD }, { "", BAD }, { "18446744073709551616KiB", BAD },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                uint64_t v = BAD;
                const char *why = rv_config_read_size(rows[i].text, &v);

                if (v != rows[i].value || !why != (v != BAD))
                        fail_msg("\"%s\": %llu, %s", rows[i].text, (unsigned long long)v, why ? why : "taken");
        }
}

static void counts(void **state)
{
        static const struct number_row cpus[] = {
                { "0", 0 },      { "1", 1000 },   { "0.5", 500 },  { "2.25", 2250 },  { "0.125", 125 }, { "4096", 4096000 }, { "0.01", 10 },
                { "4096.001", BAD }, { "4097", BAD }, { "0.0001", BAD }, { "0.009", BAD }, { "1.", BAD }, { ".5", BAD }, { "-1", BAD },
                { "1e3", BAD },  { "", BAD },     { "1 ", BAD },   { "+1", BAD },
        };
        static const struct number_row pids[] = {
                { "4", 4 },  { "256", 256 }, { "4194304", 4194304 }, { "3", BAD }, { "0", BAD }, { "4194305", BAD }, { "-5", BAD },
                { "1.5", BAD }, { "", BAD }, { "18446744073709551620", BAD },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(cpus); i++) {
                uint32_t v = UINT32_MAX;
                const char *why = rv_config_read_cpus(cpus[i].text, &v);

                if (!why != (cpus[i].value != BAD) || (!why && v != cpus[i].value) || (why && v != UINT32_MAX))
                        fail_msg("cpus \"%s\": %u, %s", cpus[i].text, v, why ? why : "taken");
        }
        for (size_t i = 0; i < RV_N_ELEMENTS(pids); i++) {
                uint32_t v = UINT32_MAX;
                const char *why = rv_config_read_pids(pids[i].text, &v);

                if (!why != (pids[i].value != BAD) || (!why && v != pids[i].value) || (why && v != UINT32_MAX))
                        fail_msg("pids \"%s\": %u, %s", pids[i].text, v, why ? why : "taken");
        }
}

static void uid_ranges(void **state)
{
        static const struct {
                const char *text;
                bool is_valid;
                uint32_t first, last;
        } rows[] = {
                { "2000000-2065535", true, 2000000, 2065535 }, { "1000-1000", true, 1000, 1000 }, { "1000-65533", true, 1000, 65533 },
                { "65536-4294967294", true, 65536, 4294967294u },
                { "0-100", false, 0, 0 },             { "999-2000", false, 0, 0 },    { "1000-65534", false, 0, 0 }, { "65535-70000", false, 0, 0 },
                { "1000-70000", false, 0, 0 },        { "70000-69999", false, 0, 0 }, { "70000", false, 0, 0 },      { "70000-", false, 0, 0 },
                { "70000-4294967295", false, 0, 0 },  { "70000 - 70001", false, 0, 0 }, { "", false, 0, 0 },         { "-1-5", false, 0, 0 },
                { "70000-70001-70002", false, 0, 0 },
        };

        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                uint32_t first = 0, last = 0;
                const char *why = rv_config_read_uid_range(rows[i].text, &first, &last);

                if (!why != rows[i].is_valid || first != rows[i].first || last != rows[i].last)
                        fail_msg("\"%s\": %u-%u, %s", rows[i].text, first, last, why ? why : "taken");
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(names),
                cmocka_unit_test(paths),
                cmocka_unit_test(exposed_paths),
                cmocka_unit_test(domains),
                cmocka_unit_test(addresses),
                cmocka_unit_test(denied),
                cmocka_unit_test(urls),
                cmocka_unit_test(hosts),
                cmocka_unit_test(enumerations),
                cmocka_unit_test(durations),
                cmocka_unit_test(sizes),
                cmocka_unit_test(counts),
                cmocka_unit_test(uid_ranges),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
