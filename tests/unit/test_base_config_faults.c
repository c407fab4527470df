/* What a configuration may not say, and how that is told: "FILE:LINE: what, why, what to do". */
#include "base/config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* What is wrong, and what its message begins with and contains. */
static const struct {
        const char *text, *begin, *contains;
} faults[] = {
        { "state_dir: /s\nfoo: 1\n", "f.yaml:2: unknown key \"foo\"", "state_dir" },
        { "tenants:\n  local:\n    polcy: x\n", "f.yaml:3: unknown key \"polcy\"", "policy" },
        { "phases:\n  run: 10s\n", "f.yaml:2: unknown key \"run\" in phases", "queue" },
        { "limits: {memory: 5}", "f.yaml:1: unknown key \"memory\"", "pids cpus" },
        { "registries: {python: {indx: \"http://a.example/\"}}", "f.yaml:1: unknown key \"indx\"", "index" },
        { "\"a\\nb\\e\": 1", "f.yaml:1: unknown key \"a?b?\"", "" },
        { "state_dir: /a\n# x\nstate_dir: /b\n", "f.yaml:3: key \"state_dir\"", "line 1" },
        { "tenants:\n  a: {}\n  b: {}\n  \"a\": {}\n", "f.yaml:4: key \"a\"", "line 2" },
        { "- a\n", "f.yaml:1: the configuration needs a mapping, not a list", "" },
        { "hello\n", "f.yaml:1: the configuration needs a mapping, not text", "" },
        { "tenants: [a]\n", "f.yaml:1: tenants needs a mapping, not a list", "" },
        { "tenants: {}\n", "f.yaml:1: tenants names nobody", "" },
        { "tenants:\n", "f.yaml:1: tenants names nobody", "" },
        { "tenants:\n  a: x\n", "f.yaml:2: tenants.* needs a mapping, not text", "" },
        { "tenants:\n  'a b': {}\n", "f.yaml:2: tenants.*: \"a b\" has to be a name", "" },
        { "tenants:\n  a:\n    runtime: nope\n", "f.yaml:3: tenant \"a\" names the runtime \"nope\"", "define it" },
        { "tenants:\n  a:\n    network: all\n", "f.yaml:3: tenants.*.network needs one of", "registries" },
        { "tenants:\n  a:\n    policy:\n", "f.yaml:3: tenants.*.policy needs text, not nothing", "remove the key" },
        { "tenants:\n  a:\n    policy: [x]\n", "f.yaml:3: tenants.*.policy needs text, not a list", "" },
        { "tenants:\n  a:\n    backend: 7\n", "f.yaml:3: tenants.*.backend needs text, not a whole number", "quote it" },
        { "tenants:\n  a:\n    backend: true\n", "f.yaml:3: tenants.*.backend needs text, not true or false", "" },
        { "tenants:\n  a:\n    backend: ../x\n", "f.yaml:3: tenants.*.backend needs a name", "" },
        { "tenants:\n  a:\n    labels: {n: 5}\n", "f.yaml:3: tenants.*.labels: the value of \"n\" needs text", "quote it" },
        { "tenants:\n  a:\n    labels: [n]\n", "f.yaml:3: tenants.*.labels needs a mapping", "" },
        { "tenants:\n  a:\n    labels: {\"n m\": x}\n", "f.yaml:3: tenants.*.labels: \"n m\"", "" },
        { "tenants:\n  a:\n    labels: {n: \"a\\u0007\"}\n", "f.yaml:3: tenants.*.labels needs a text without control", "" },
        { "tenants:\n  a:\n    shadow: [x]\n", "f.yaml:3: tenants.*.shadow needs text, not a list", "" },
        { "tenants:\n  a:\n    quotas: {runs: 5}\n", "f.yaml:3: tenants.*.quotas: this build has no quotas", "remove the key" },
        { "tenants:\n  a:\n    token_sha256: null\n", "f.yaml:3: tenants.*.token_sha256: this build has no", "remove the key" },
        { "audit: {key: k}\n", "f.yaml:1: audit.key needs an absolute path", "" },
        { "audit: {segment_max: 64}\n", "f.yaml:1: audit.segment_max needs a unit", "64MiB" },
        { "audit: {segment_max: 512KiB}\n", "f.yaml:1: audit.segment_max needs a size of at least `1MiB`", "" },
        { "audit: {redact: /tenant}\n", "f.yaml:1: audit.redact needs a list, not text", "" },
        { "audit:\n  redact:\n  - /tenant\n  - tenant\n", "f.yaml:4: audit.redact needs JSON pointers", "/principal" },
        { "audit: {redact: [/run_id]}\n", "f.yaml:1: audit.redact needs pointers to `/tenant", "" },
        { "audit: {redact: [/verdict/*]}\n", "f.yaml:1: audit.redact needs pointers that leave alone what recovery", "" },
        { "audit:\n  sink: https://x.example\n", "f.yaml:2: audit.sink needs a mapping, not text", "" },
        { "audit:\n  sink:\n    records: true\n", "f.yaml:3: audit.sink needs `to`", "add it" },
        { "audit: {sink: {}}\n", "f.yaml:1: audit.sink needs `to`", "" },
        { "audit: {sink: {to: \"http://x.example\"}}\n", "f.yaml:1: audit.sink.to needs `file:`", "https://" },
        { "audit: {sink: {to: \"file:x\"}}\n", "f.yaml:1: audit.sink.to needs `file:`", "" },
        { "audit: {sink: {to: \"file:/x/\"}}\n", "f.yaml:1: audit.sink.to needs `file:`", "" },
        { "audit: {sink: {to: \"command:ship\"}}\n", "f.yaml:1: audit.sink.to needs `file:`", "" },
        { "audit: {sink: {to: \"file:/x\", ca: /ca}}\n", "f.yaml:1: audit.sink.ca and header_file are for", "remove" },
        { "audit: {sink: {to: \"file:/x\", records: 1}}\n", "f.yaml:1: audit.sink.records needs true or false", "" },
        { "audit: {sink: {to: \"file:/x\", records: \"true\"}}\n", "f.yaml:1: audit.sink.records needs true or false", "remove the quotes" },
        { "audit: {sink: {to: \"file:/x\", behind: drop}}\n", "f.yaml:1: audit.sink.behind needs `wait` or `deny`", "" },
        { "audit: {sink: {to: \"file:/x\", lag_max: 5}}\n", "f.yaml:1: audit.sink.lag_max needs a unit", "16MiB" },
        { "admission:\n  memory_overcommit: 2\n", "f.yaml:2: admission.*: this build has no admission control", "remove the key" },
        { "state_dir: relative\n", "f.yaml:1: state_dir needs an absolute path", "" },
        { "state_dir: /a/../b\n", "f.yaml:1: state_dir needs an absolute path", "" },
        { "state_dir: \"/a\\0b\"\n", "f.yaml:1: a NUL character", "" },
        { "cgroup: 5\n", "f.yaml:1: cgroup needs text, not a whole number", "" },
        { "uid_range: 0-5\n", "f.yaml:1: uid_range needs", "" },
        { "uid_range: {first: 1, last: 2}\n", "f.yaml:1: uid_range needs text, not a mapping", "" },
        { "limits: {pids: \"256\"}\n", "f.yaml:1: limits.pids needs a whole number, not text", "remove the quotes" },
        { "limits: {pids: 2.5}\n", "f.yaml:1: limits.pids needs a whole number, not a number", "" },
        { "limits: {pids: 1}\n", "f.yaml:1: limits.pids needs a whole number from 4", "" },
        { "limits: {cpus: -1}\n", "f.yaml:1: limits.cpus needs", "" },
        { "limits: {cpus: .inf}\n", "f.yaml:1: limits.cpus needs", "" },
        { "phases: {start: 10}\n", "f.yaml:1: phases.start needs a unit", "10s" },
        { "phases: {start: 1.5}\n", "f.yaml:1: phases.start needs a unit", "10s" },
        { "phases: {start: ten}\n", "f.yaml:1: phases.start needs a duration", "250ms" },
        { "packages: {store_max: 5}\n", "f.yaml:1: packages.store_max needs a unit", "10GiB" },
        { "runtimes:\n  py: {python: /p}\n", "f.yaml:2: runtime \"py\" has no root", "" },
        { "runtimes:\n  py:\n", "f.yaml:2: runtime \"py\" has no root", "" },
        { "runtimes:\n  py: {root: /}\n", "f.yaml:2: runtimes.*.root needs `host`", "" },
        { "runtimes:\n  py: {image: rel}\n", "f.yaml:2: runtimes.*.image needs an absolute path", "" },
        { "runtimes:\n  py: {image: /i, root: /r}\n", "f.yaml:2: runtime \"py\" has a root and an image", "one of them" },
        { "runtimes:\n  host: {image: /i}\n", "f.yaml:2: the runtime `host` is the host's own", "" },
        { "runtimes:\n  py: {root: host, digest: \"sha256:" HEX64 "\"}\n", "f.yaml:2: runtime \"py\" is the host's own files", "remove it" },
        { "runtimes:\n  py: {image: /i, digest: \"" HEX64 "\"}\n", "f.yaml:2: runtimes.*.digest needs `sha256:`", "" },
        { "runtimes:\n  py: {image: /i, digest: \"sha256:" HEX64 "0\"}\n", "f.yaml:2: runtimes.*.digest needs `sha256:`", "" },
        { "runtimes:\n  py: {image: /i, digest: \"sha256:ABCDEF\"}\n", "f.yaml:2: runtimes.*.digest needs `sha256:`", "" },
        { "runtimes:\n  py: {image: /i, digest: 5}\n", "f.yaml:2: runtimes.*.digest needs text, not a whole number", "" },
        { "runtimes:\n  py: {root: rel}\n", "f.yaml:2: runtimes.*.root needs `host`", "" },
        { "runtimes:\n  host: {root: /r}\n", "f.yaml:2: the runtime `host` is the host's own", "" },
        { "runtimes:\n  host: {python: python3}\n", "f.yaml:2: runtimes.*.python needs an absolute path", "" },
        { "runtimes:\n  host:\n    expose: /opt\n", "f.yaml:3: runtimes.*.expose needs a list, not text", "" },
        { "runtimes:\n  host:\n    expose:\n    - /opt\n    - /\n", "f.yaml:5: runtimes.*.expose needs a path below", "" },
        { "runtimes:\n  host:\n    expose: [1]\n", "f.yaml:3: runtimes.*.expose needs a list of texts", "" },
        { "egress: {resolve: {localhost: 127.0.0.1}}\n", "f.yaml:1: egress.resolve: \"localhost\" has to be a domain", "" },
        { "egress: {resolve: {a.example: b.example}}\n", "f.yaml:1: egress.resolve needs an IPv4", "" },
        { "egress: {resolve: {a.example: 1.1.1.1, A.example.: 2.2.2.2}}\n", "f.yaml:1: egress.resolve: \"a.example\" stands here twice", "" },
        { "egress: {deny: [10.0.0.0/99]}\n", "f.yaml:1: egress.deny needs a domain name", "" },
        { "registries: {ruby: {}}\n", "f.yaml:1: registries.*: \"ruby\" has to be", "javascript" },
        { "registries: {python: {index: registry}}\n", "f.yaml:1: registries.*.index needs an address", "" },
        { "a: &x {b: 1}\nc: *x\n", "f.yaml:1: an anchor", "" },
        { "tenants: {a: {policy: &x /p}}\n", "f.yaml:1: an anchor", "" },
        { "tenants: *x\n", "f.yaml:1: an alias", "" },
        { "*x : 1\n", "f.yaml:1: an alias", "" },
        { "state_dir: !!str /x\n", "f.yaml:1: an anchor (&) or a tag", "" },
        { "tenants: !!map {}\n", "f.yaml:1: an anchor (&) or a tag", "" },
        { "{a: 1}: 2\n", "f.yaml:1: a key that is a mapping", "" },
        { "? [a]\n: 2\n", "f.yaml:1: a key that is a list", "" },
        { "state_dir: /s\n---\nstate_dir: /t\n", "f.yaml:2: a second document", "" },
        { "state_dir: /s\n...\n---\n", "f.yaml:3: a second document", "" },
        { "a: [1\n", "f.yaml:2: not valid YAML", "" },
        { "a: b: c\n", "f.yaml:1: not valid YAML", "" },
        { "state_dir: /s\n\tcgroup: /c\n", "f.yaml:2: not valid YAML", "" },
        { "state_dir: \"/s\n", "f.yaml:2: not valid YAML", "" },
        { "state_dir: /\xff\n", "f.yaml:1: not valid YAML", "" },
        { "%YAML 1.1\n%YAML 1.1\n---\n{}", "f.yaml:2: not valid YAML", "" },
        { "[[[[[[[[[[[[[[[[[[[[", "f.yaml:1: nested deeper", "" },
        { "<<: {state_dir: /x}\n", "f.yaml:1: unknown key \"<<\"", "" },
};

static void faults_are_told(void **state)
{
        (void)state;
        for (size_t i = 0; i < RV_N_ELEMENTS(faults); i++) {
                struct rv_config *config = (struct rv_config *)0x1;
                struct rv_error err = { 0 };
                int r;

                r = rv_config_parse(faults[i].text, strlen(faults[i].text), "f.yaml", &config, &err);
                if (r == 0)
                        fail_msg("was taken: %s", faults[i].text);
                assert_int_equal(r, -EINVAL);
                assert_int_equal(err.code, -EINVAL);
                assert_ptr_equal(config, 0x1);
                if (strncmp(err.message, faults[i].begin, strlen(faults[i].begin)) != 0 ||
                        !strstr(err.message, faults[i].contains))
                        fail_msg("for %s\ngot:  %s\nwant: %s … %s", faults[i].text, err.message, faults[i].begin, faults[i].contains);
                assert_null(strpbrk(err.message, "\n\r\x1b"));
        }
}

/* A registry's address may hold a password, which has no place in a message. */
static void messages_hold_no_credentials(void **state)
{
        static const char text[] = "registries: {python: {index: \"https://me:hunter2@registry .example/\"}}";
        struct rv_config *config = NULL;
        struct rv_error err = { 0 };

        (void)state;
        assert_int_equal(rv_config_parse(text, strlen(text), "f.yaml", &config, &err), -EINVAL);
        assert_null(strstr(err.message, "hunter2"));
}

static void check_bound(const char *what, const struct rv_buf *text, const char *contains)
{
        struct rv_config *config = NULL;
        struct rv_error err = { 0 };
        int r;

        assert_int_equal(rv_buf_error(text), 0);
        r = rv_config_parse(text->data, text->size, "f.yaml", &config, &err);
        if (r != (contains ? (strstr(contains, "larger") ? -EFBIG : -EINVAL) : 0) || (contains && !strstr(err.message, contains)))
                fail_msg("%s: %d, %s", what, r, err.message);
        rv_config_free(config);
}

static void bounds(void **state)
{
        struct rv_buf b = { 0 };

        (void)state;
        for (size_t i = 0; i < RV_CONFIG_BYTES_MAX; i++)
                rv_buf_putc(&b, '#');
        check_bound("just as large as allowed", &b, NULL);
        rv_buf_putc(&b, '#');
        check_bound("a byte too large", &b, "larger than");
        rv_buf_fini(&b);

        rv_buf_puts(&b, "egress: {deny: [");
        for (size_t i = 0; i < 110000; i++)
                rv_buf_puts(&b, "a,");
        rv_buf_puts(&b, "]}");
        check_bound("many values", &b, "more than 100000 values");
        rv_buf_fini(&b);

        rv_buf_puts(&b, "egress: {resolve: {");
        for (size_t i = 0; i < 4097; i++)
                rv_buf_printf(&b, "a%zu.example: 1.1.1.1,\n", i);
        rv_buf_puts(&b, "}}");
        check_bound("many names", &b, "more than 4096 entries");
        rv_buf_fini(&b);

        rv_buf_puts(&b, "state_dir: /");
        for (size_t i = 0; i < 70000; i++)
                rv_buf_putc(&b, 'x');
        check_bound("a long text", &b, "more than 65536 bytes");
        rv_buf_fini(&b);

        rv_buf_puts(&b, "tenants:\n");
        for (size_t i = 0; i < 3000; i++)
                rv_buf_printf(&b, "  t%zu: {network: none, labels: {a: b}}\n", i);
        check_bound("many tenants", &b, NULL);
        rv_buf_fini(&b);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(faults_are_told),
                cmocka_unit_test(messages_hold_no_credentials),
                cmocka_unit_test(bounds),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
