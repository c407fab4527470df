/*
 * What the gate is told of a run: taken whole, or refused with the member that is wrong.
 */
#include "egress/gate_rules.h"

#include "test_privilege.h"

static struct rv_gate_rules *rules_of(const char *text)
{
        struct rv_gate_rules *rules = NULL;
        struct rv_error err = { 0 };

        if (rv_gate_rules_read(text, strlen(text), &rules, &err) < 0)
                fail_msg("%s: %s", text, err.message);
        return rules;
}

static void all_members(void **state)
{
        _cleanup_(rv_gate_rules_freep) struct rv_gate_rules *r = rules_of(
                "{\"mode\":\"domains\",\"domains\":[\"Example.com.\",\"b.test\"],\"ports\":[443,80],\"original\":\"redirect\",\"listen_port\":7,"
                "\"resolve\":{\"Api.example.com\":\"10.0.0.5\",\"v6.test\":\"fd00::1\"},\"deny\":[\"bad.example.com\",\"192.0.2.0/24\",\"::1\"],"
                "\"registries\":[{\"host\":\"registry.example\",\"port\":443}],\"proxy\":{\"host\":\"p.test\",\"port\":3128},"
                "\"limits\":{\"connections\":1,\"connections_per_s\":2,\"bytes\":3,\"idle_ms\":400,\"names\":5,\"dns_per_s\":6}}");
        char text[RV_ADDRESS_TEXT_SIZE];

        assert_int_equal(r->names.mode, RV_NETWORK_DOMAINS);
        assert_int_equal(r->names.n_allowed, 2);
        assert_string_equal(r->names.allowed[0].name, "example.com");
        assert_int_equal(r->names.n_ports, 2);
        assert_int_equal(r->names.ports[0], 443);
        assert_true(r->is_redirect);
        assert_int_equal(r->listen_port, 7);
        assert_string_equal(rv_address_print(rv_gate_rules_resolve(r, "api.example.com"), text), "10.0.0.5");
        assert_string_equal(rv_address_print(rv_gate_rules_resolve(r, "v6.test"), text), "fd00::1");
        assert_null(rv_gate_rules_resolve(r, "example.com"));
        assert_int_equal(r->names.n_denied, 1);
        assert_string_equal(r->names.denied[0], "bad.example.com");
        assert_int_equal(r->n_denied, 2);
        assert_int_equal(r->denied[0].bits, 24);
        assert_null(r->proxy_host);                  /* of mode registries only, as they are themselves */
        assert_false(rv_gate_rules_is_registry(r, "registry.example", 443));
        assert_int_equal(r->limits.connections, 1);
        assert_int_equal(r->limits.connections_per_s, 2);
        assert_int_equal(r->limits.bytes, 3);
        assert_int_equal(r->limits.idle_ms, 400);
        assert_int_equal(r->limits.names, 5);
        assert_int_equal(r->limits.dns_per_s, 6);
}

/* A domain with ports of its own is reached at those alone; the others at every port. */
static void domains_with_ports(void **state)
{
        static const struct {
                const char *host;
                uint16_t port;
                enum rv_denial denial;
        } rows[] = {
                { "example.com", 443, RV_DENIAL_NONE },
                { "example.com", 8443, RV_DENIAL_NONE },
                { "example.com", 80, RV_DENIAL_PORT },
                { "example.com", 0, RV_DENIAL_NONE },           /* a DNS question has none yet */
                { "api.example.com", 443, RV_DENIAL_NONE },
                { "api.example.com", 80, RV_DENIAL_PORT },
                { "b.test", 80, RV_DENIAL_NONE },               /* none of its own */
                { "d.test", 80, RV_DENIAL_PORT },               /* an empty list: no port at all */
                { "com", 443, RV_DENIAL_SINGLE_LABEL },
                { "other.test", 443, RV_DENIAL_NAME },
        };
        _cleanup_(rv_gate_rules_freep) struct rv_gate_rules *r = rules_of(
                "{\"mode\":\"domains\",\"domains\":[{\"name\":\"Example.com.\",\"ports\":[443,8443]},\"b.test\","
                "{\"name\":\"d.test\",\"ports\":[]}]}");
        struct rv_hostname host;

        assert_int_equal(r->names.n_allowed, 3);
        assert_string_equal(r->names.allowed[0].name, "example.com");
        assert_int_equal(r->names.allowed[0].n_ports, 2);
        assert_null(r->names.allowed[1].ports);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                rv_hostname_parse(rows[i].host, strlen(rows[i].host), RV_HOSTNAME_BARE, &host);
                if (rv_names_judge(&r->names, &host, rows[i].port) != rows[i].denial)
                        fail_msg("%s:%u: %s", rows[i].host, rows[i].port, rv_denial_word(rv_names_judge(&r->names, &host, rows[i].port)));
        }
}

/* The run's ports narrow a domain's own. */
static void domains_with_ports_of_both(void **state)
{
        _cleanup_(rv_gate_rules_freep) struct rv_gate_rules *r = rules_of(
                "{\"mode\":\"domains\",\"domains\":[{\"ports\":[443,80],\"name\":\"a.test\"}],\"ports\":[443,22]}");
        struct rv_hostname host;

        rv_hostname_parse("a.test", 6, RV_HOSTNAME_BARE, &host);
        assert_int_equal(rv_names_judge(&r->names, &host, 443), RV_DENIAL_NONE);
        assert_int_equal(rv_names_judge(&r->names, &host, 80), RV_DENIAL_PORT);
        assert_int_equal(rv_names_judge(&r->names, &host, 22), RV_DENIAL_PORT);
}

static void registries(void **state)
{
        _cleanup_(rv_gate_rules_freep) struct rv_gate_rules *r = rules_of(
                "{\"mode\":\"registries\",\"registries\":[{\"host\":\"A.example\",\"port\":443},{\"host\":\"a.example\",\"port\":80},"
                "{\"host\":\"10.0.0.1\",\"port\":8080}],\"domains\":[\"b.test\"],\"proxy\":{\"port\":3128,\"host\":\"10.0.0.2\"}}");

        assert_int_equal(r->names.n_allowed, 3);
        assert_true(rv_gate_rules_is_registry(r, "a.example", 443));
        assert_true(rv_gate_rules_is_registry(r, "a.example", 80));
        assert_true(rv_gate_rules_is_registry(r, "10.0.0.1", 8080));
        assert_false(rv_gate_rules_is_registry(r, "10.0.0.1", 80));
        assert_false(rv_gate_rules_is_registry(r, "x.a.example", 443));
        assert_string_equal(r->proxy_host, "10.0.0.2");
        assert_int_equal(r->proxy_port, 3128);
}

static void what_is_left_out(void **state)
{
        _cleanup_(rv_gate_rules_freep) struct rv_gate_rules *r = rules_of("{\"mode\":\"any\"}");
        _cleanup_(rv_gate_rules_freep) struct rv_gate_rules *nulls = rules_of("{\"mode\":\"any\",\"ports\":null,\"proxy\":null}");

        assert_null(r->names.ports);
        assert_null(nulls->names.ports);
        assert_false(r->is_redirect);
        assert_int_equal(r->listen_port, 1);
        assert_int_equal(r->limits.connections, 256);
        assert_int_equal(r->limits.bytes, 0);
        assert_int_equal(r->limits.names, 4096);
}

static void no_ports_at_all(void **state)
{
        _cleanup_(rv_gate_rules_freep) struct rv_gate_rules *r = rules_of("{\"mode\":\"any\",\"ports\":[]}");
        struct rv_hostname host;

        rv_hostname_parse("a.test", 6, RV_HOSTNAME_BARE, &host);
        assert_int_equal(rv_names_judge(&r->names, &host, 443), RV_DENIAL_PORT);
}

static void refused(void **state)
{
        static const struct {
                const char *text, *says;
        } rows[] = {
                { "", "line 1" },
                { "null", "mode" },
                { "[]", "mode" },
                { "{}", "mode" },
                { "{\"mode\":null}", "mode" },
                { "{\"mode\":\"none\"}", "mode" },
                { "{\"mode\":\"ANY\"}", "mode" },
                { "{\"mode\":\"any\",\"mode\":\"any\"}", "duplicate" },
                { "{\"mode\":\"any\"} x", "line 1" },
                { "{\"mode\":\"any\",\"port\":[1]}", "unknown" },
                { "{\"mode\":\"domains\"}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[]}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":\"a.test\"}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[1]}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[\"*.a.test\"]}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[\"a b\"]}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[\"\"]}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[\"0x7f.1\"]}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[{}]}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[{\"name\":\"a.test\"}]}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[{\"ports\":[1]}]}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[{\"name\":\"a.test\",\"port\":1}]}", "ports" },
                { "{\"mode\":\"domains\",\"domains\":[{\"name\":\"a.test\",\"ports\":[1],\"x\":1}]}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[{\"name\":1,\"ports\":[1]}]}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[{\"name\":\"a/b\",\"ports\":[1]}]}", "domains" },
                { "{\"mode\":\"domains\",\"domains\":[{\"name\":\"a.test\",\"ports\":1}]}", "ports" },
                { "{\"mode\":\"domains\",\"domains\":[{\"name\":\"a.test\",\"ports\":null}]}", "ports" },
                { "{\"mode\":\"domains\",\"domains\":[{\"name\":\"a.test\",\"ports\":[0]}]}", "ports" },
                { "{\"mode\":\"domains\",\"domains\":[{\"name\":\"a.test\",\"ports\":[65536]}]}", "ports" },
                { "{\"mode\":\"any\",\"ports\":443}", "ports" },
                { "{\"mode\":\"any\",\"ports\":[0]}", "ports" },
                { "{\"mode\":\"any\",\"ports\":[65536]}", "ports" },
                { "{\"mode\":\"any\",\"ports\":[80.0]}", "ports" },
                { "{\"mode\":\"any\",\"ports\":[\"80\"]}", "ports" },
                { "{\"mode\":\"any\",\"original\":\"nat\"}", "original" },
                { "{\"mode\":\"any\",\"listen_port\":0}", "listen_port" },
                { "{\"mode\":\"any\",\"resolve\":[]}", "resolve" },
                { "{\"mode\":\"any\",\"resolve\":{\"a.test\":\"b.test\"}}", "resolve" },
                { "{\"mode\":\"any\",\"resolve\":{\"a.test\":1}}", "resolve" },
                { "{\"mode\":\"any\",\"resolve\":{\"1.2.3.4\":\"1.2.3.4\"}}", "resolve" },
                { "{\"mode\":\"any\",\"resolve\":{\"\":\"1.2.3.4\"}}", "resolve" },
                { "{\"mode\":\"any\",\"resolve\":{\"a.test\":\"1.2.3.04\"}}", "resolve" },
                { "{\"mode\":\"any\",\"deny\":{}}", "deny" },
                { "{\"mode\":\"any\",\"deny\":[null]}", "deny" },
                { "{\"mode\":\"any\",\"deny\":[\"10.0.0.0/33\"]}", "deny" },
                { "{\"mode\":\"any\",\"registries\":[\"a.test\"]}", "registries" },
                { "{\"mode\":\"any\",\"registries\":[{\"host\":\"a.test\"}]}", "registries" },
                { "{\"mode\":\"any\",\"registries\":[{\"host\":\"a.test\",\"port\":1,\"x\":1}]}", "registries" },
                { "{\"mode\":\"any\",\"registries\":[{\"host\":\"a/b\",\"port\":1}]}", "registries" },
                { "{\"mode\":\"any\",\"proxy\":\"a.test:3128\"}", "proxy" },
                { "{\"mode\":\"any\",\"proxy\":{\"host\":\"a.test\",\"port\":-1}}", "proxy" },
                { "{\"mode\":\"any\",\"limits\":[]}", "limits" },
                { "{\"mode\":\"any\",\"limits\":{\"x\":1}}", "limits" },
                { "{\"mode\":\"any\",\"limits\":{\"connections\":0}}", "connections" },
                { "{\"mode\":\"any\",\"limits\":{\"names\":4097}}", "names" },
                { "{\"mode\":\"any\",\"limits\":{\"bytes\":-1}}", "bytes" },
                { "{\"mode\":\"any\",\"limits\":{\"idle_ms\":1.5}}", "idle_ms" },
                { "{\"mode\":\"any\",\"deny\":[[[[[[]]]]]]}", "nested" },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct rv_gate_rules *rules = (void *)0x1;
                struct rv_error err = { 0 };

                if (rv_gate_rules_read(rows[i].text, strlen(rows[i].text), &rules, &err) != -EINVAL)
                        fail_msg("taken: %s", rows[i].text);
                if (!strstr(err.message, rows[i].says))
                        fail_msg("%s: \"%s\" does not name %s", rows[i].text, err.message, rows[i].says);
                assert_ptr_equal(rules, (void *)0x1);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_members),
                cmocka_unit_test(domains_with_ports),
                cmocka_unit_test(domains_with_ports_of_both),
                cmocka_unit_test(registries),
                cmocka_unit_test(what_is_left_out),
                cmocka_unit_test(no_ports_at_all),
                cmocka_unit_test(refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
