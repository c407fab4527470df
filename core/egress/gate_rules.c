#include "egress/gate_rules.h"

#include "base/json.h"

#include <string.h>

#define DEPTH_MAX 4
#define PORTS_MAX 64

static int fail(struct rv_error *err, const char *member, const char *what)
{
        return rv_error_set(err, rv_raise(-EINVAL), "%s: %s", member, what);
}

static int no_memory(struct rv_error *err)
{
        return rv_error_set(err, rv_raise(-ENOMEM), "no memory");
}

static bool read_port(const json_t *value, uint16_t *ret)
{
        json_int_t port = json_is_integer(value) ? json_integer_value(value) : 0;

        if (port < 1 || port > UINT16_MAX)
                return false;
        *ret = (uint16_t)port;
        return true;
}

/* A name, or an address in its one spelling. */
static int read_host(
        struct rv_gate_rules *rules, const json_t *value, const char *member, const char **ret, struct rv_error *err)
{
        struct rv_hostname host = { .kind = RV_HOSTNAME_INVALID };

        if (json_is_string(value))
                rv_hostname_parse(json_string_value(value), json_string_length(value), RV_HOSTNAME_BARE, &host);
        if (host.kind == RV_HOSTNAME_INVALID || host.name[0] == 0)
                return fail(err, member, "has to be a host name or an address");
        *ret = rv_arena_strdup(&rules->arena, host.name);
        return *ret ? 0 : no_memory(err);
}

static int read_port_list(
        struct rv_gate_rules *rules, const json_t *value, const uint16_t **ret, size_t *ret_n, struct rv_error *err)
{
        size_t n = json_array_size(value);
        uint16_t *ports;

        if (!json_is_array(value) || n > PORTS_MAX)
                return fail(err, "ports", "has to be null or a list of ports");
        ports = rv_arena_array(&rules->arena, n + 1, sizeof(*ports));
        if (!ports)
                return no_memory(err);
        for (size_t i = 0; i < n; i++)
                if (!read_port(json_array_get(value, i), &ports[i]))
                        return fail(err, "ports", "has to hold numbers from 1 to 65535");
        *ret = ports;
        *ret_n = n;
        return 0;
}

static int read_ports(struct rv_gate_rules *rules, const json_t *value, struct rv_error *err)
{
        return json_is_null(value) ? 0 : read_port_list(rules, value, &rules->names.ports, &rules->names.n_ports, err);
}

static int read_mode(struct rv_gate_rules *rules, const json_t *value, struct rv_error *err)
{
        int mode = json_is_string(value) ? rv_network_mode_parse(json_string_value(value)) : -EINVAL;

        if (mode < 0 || mode == RV_NETWORK_NONE)
                return fail(err, "mode", "has to be registries, domains or any");
        rules->names.mode = (enum rv_network_mode)mode;
        return 0;
}

/* A name, or an object of a name and the only ports of it. */
static int read_domain(struct rv_gate_rules *rules, const json_t *value, struct rv_name_rule *ret, struct rv_error *err)
{
        int r;

        if (!json_is_object(value))
                return read_host(rules, value, "domains", &ret->name, err);
        if (json_object_size(value) != 2)
                return fail(err, "domains", "an object has to be one of name and ports");
        r = read_port_list(rules, json_object_get(value, "ports"), &ret->ports, &ret->n_ports, err);
        return r < 0 ? r : read_host(rules, json_object_get(value, "name"), "domains", &ret->name, err);
}

/* Read when the mode is known. */
static int read_domains(struct rv_gate_rules *rules, const json_t *value, struct rv_error *err)
{
        size_t n = json_array_size(value);
        struct rv_name_rule *allowed;
        int r = 0;

        if (!json_is_array(value))
                return fail(err, "domains", "has to be a list");
        allowed = rv_arena_array(&rules->arena, n + 1, sizeof(*allowed));
        if (!allowed)
                return no_memory(err);
        for (size_t i = 0; i < n && r == 0; i++)
                r = read_domain(rules, json_array_get(value, i), &allowed[i], err);
        if (r == 0 && rules->names.mode == RV_NETWORK_DOMAINS) {
                rules->names.allowed = allowed;
                rules->names.n_allowed = n;
        }
        return r;
}

static int read_endpoint(struct rv_gate_rules *rules, const json_t *value, const char *member, const char **ret_host,
        uint16_t *ret_port, struct rv_error *err)
{
        if (!json_is_object(value) || json_object_size(value) != 2u + (json_object_get(value, "is_learned") != NULL))
                return fail(err, member, "has to be an object of host and port");
        if (!read_port(json_object_get(value, "port"), ret_port))
                return fail(err, member, "port has to be a number from 1 to 65535");
        return read_host(rules, json_object_get(value, "host"), member, ret_host, err);
}

static int read_registries(struct rv_gate_rules *rules, const json_t *value, struct rv_error *err)
{
        size_t n = json_array_size(value);
        struct rv_name_rule *allowed;
        uint16_t *ports;
        int r = 0;

        if (!json_is_array(value))
                return fail(err, "registries", "has to be a list");
        allowed = rv_arena_array(&rules->arena, n + 1, sizeof(*allowed));
        ports = rv_arena_array(&rules->arena, n + 1, sizeof(*ports));
        if (!allowed || !ports)
                return no_memory(err);
        for (size_t i = 0; i < n && r == 0; i++) {
                r = read_endpoint(rules, json_array_get(value, i), "registries", &allowed[i].name, &ports[i], err);
                allowed[i].ports = &ports[i];
                allowed[i].n_ports = 1;
                allowed[i].is_learned = json_is_true(json_object_get(json_array_get(value, i), "is_learned"));
        }
        if (r == 0 && rules->names.mode == RV_NETWORK_REGISTRIES) {
                rules->names.allowed = allowed;
                rules->names.n_allowed = n;
        }
        return r;
}

static int read_resolve(struct rv_gate_rules *rules, const json_t *value, struct rv_error *err)
{
        char name[RV_DOMAIN_SIZE];
        const char *key;
        json_t *item;

        if (!json_is_object(value))
                return fail(err, "resolve", "has to be an object");
        rules->resolve = rv_arena_array(&rules->arena, json_object_size(value) + 1, sizeof(*rules->resolve));
        if (!rules->resolve)
                return no_memory(err);
        json_object_foreach((json_t *)value, key, item) {
                struct rv_gate_resolve *entry = &rules->resolve[rules->n_resolve];

                if (rv_domain_parse_host(key, strlen(key), name, NULL) != 0)
                        return fail(err, "resolve", "a member's name has to be a host name");
                if (!json_is_string(item) ||
                        rv_address_parse(json_string_value(item), json_string_length(item), &entry->address) < 0)
                        return fail(err, "resolve", "a member's value has to be an address");
                entry->name = rv_arena_strdup(&rules->arena, name);
                if (!entry->name)
                        return no_memory(err);
                rules->n_resolve++;
        }
        return 0;
}

static int read_deny(struct rv_gate_rules *rules, const json_t *value, struct rv_error *err)
{
        size_t n = json_array_size(value);
        const char **names;

        if (!json_is_array(value))
                return fail(err, "deny", "has to be a list");
        names = rv_arena_array(&rules->arena, n + 1, sizeof(*names));
        rules->denied = rv_arena_array(&rules->arena, n + 1, sizeof(*rules->denied));
        if (!names || !rules->denied)
                return no_memory(err);
        rules->names.denied = names;
        for (size_t i = 0; i < n; i++) {
                const json_t *item = json_array_get(value, i);
                char name[RV_DOMAIN_SIZE];

                if (!json_is_string(item))
                        return fail(err, "deny", "has to hold texts");
                if (rv_network_parse(
                            json_string_value(item), json_string_length(item), &rules->denied[rules->n_denied]) == 0) {
                        rules->n_denied++;
                        continue;
                }
                if (rv_domain_parse_host(json_string_value(item), json_string_length(item), name, NULL) != 0)
                        return fail(err, "deny", "has to hold names, addresses or networks");
                names[rules->names.n_denied] = rv_arena_strdup(&rules->arena, name);
                if (!names[rules->names.n_denied++])
                        return no_memory(err);
        }
        return 0;
}

static int read_proxy(struct rv_gate_rules *rules, const json_t *value, struct rv_error *err)
{
        if (json_is_null(value))
                return 0;
        return read_endpoint(rules, value, "proxy", &rules->proxy_host, &rules->proxy_port, err);
}

static int read_original(struct rv_gate_rules *rules, const json_t *value, struct rv_error *err)
{
        const char *text = json_is_string(value) ? json_string_value(value) : "";

        rules->is_redirect = strcmp(text, "redirect") == 0;
        return rules->is_redirect || strcmp(text, "tproxy") == 0 ? 0 : fail(err, "original", "has to be tproxy or redirect");
}

static int read_listen_port(struct rv_gate_rules *rules, const json_t *value, struct rv_error *err)
{
        return read_port(value, &rules->listen_port) ? 0 : fail(err, "listen_port", "has to be a number from 1 to 65535");
}

static const struct {
        const char *name;
        size_t offset;
        json_int_t least, most;
} limits[] = {
#define X(member, least, most, otherwise) { #member, offsetof(struct rv_gate_limits, member), least, most },
        RV_GATE_LIMITS(X)
#undef X
};

static int read_limits(struct rv_gate_rules *rules, const json_t *value, struct rv_error *err)
{
        const char *key;
        json_t *item;

        if (!json_is_object(value))
                return fail(err, "limits", "has to be an object");
        json_object_foreach((json_t *)value, key, item) {
                json_int_t number = json_is_integer(item) ? json_integer_value(item) : -1;
                size_t i = 0;

                while (i < RV_N_ELEMENTS(limits) && strcmp(limits[i].name, key) != 0)
                        i++;
                if (i == RV_N_ELEMENTS(limits))
                        return fail(err, "limits", "an unknown member");
                if (number < limits[i].least || number > limits[i].most)
                        return fail(err, limits[i].name, "not a number within its bounds");
                *(uint64_t *)((char *)&rules->limits + limits[i].offset) = (uint64_t)number;
        }
        return 0;
}

/* In this order: what depends on the mode comes after it. */
static const struct {
        const char *name;
        int (*read)(struct rv_gate_rules *rules, const json_t *value, struct rv_error *err);
} members[] = {
        { "mode", read_mode },
        { "domains", read_domains },
        { "registries", read_registries },
        { "ports", read_ports },
        { "original", read_original },
        { "listen_port", read_listen_port },
        { "resolve", read_resolve },
        { "deny", read_deny },
        { "proxy", read_proxy },
        { "limits", read_limits },
};

static int read_members(struct rv_gate_rules *rules, const json_t *object, struct rv_error *err)
{
        size_t n_known = 0;
        int r = 0;

        if (!json_is_object(object) || !json_object_get(object, "mode"))
                return fail(err, "mode", "is missing");
        for (size_t i = 0; i < RV_N_ELEMENTS(members) && r == 0; i++) {
                const json_t *value = json_object_get(object, members[i].name);

                if (!value)
                        continue;
                n_known++;
                r = members[i].read(rules, value, err);
        }
        if (r == 0 && n_known != json_object_size(object))
                return fail(err, "rules", "an unknown member");
        if (r == 0 && rules->names.mode == RV_NETWORK_DOMAINS && rules->names.n_allowed == 0)
                return fail(err, "domains", "names none");
        return rv_trace(r);
}

/* What jansson says quotes the text, whatever bytes are in it. */
static int read_json(const char *text, size_t n, json_t **ret, struct rv_error *err)
{
        struct rv_error e = { 0 };
        int r = rv_json_read(text, n, DEPTH_MAX, ret, &e);

        for (char *c = e.message; *c; c++)
                if (*c < ' ' || *c > '~')
                        *c = '?';
        return r < 0 ? rv_error_set(err, r == -ELOOP ? -EINVAL : r, "%s", e.message) : 0;
}

int rv_gate_rules_read(const char *text, size_t n, struct rv_gate_rules **ret, struct rv_error *err)
{
        _cleanup_(rv_gate_rules_freep) struct rv_gate_rules *rules = NULL;
        _cleanup_(rv_json_unrefp) json_t *object = NULL;
        int r;

        r = read_json(text, n, &object, err);
        if (r < 0)
                return rv_trace(r);
        rules = calloc(1, sizeof(*rules));
        if (!rules)
                return no_memory(err);
        rules->listen_port = 1;
#define X(member, least, most, otherwise) rules->limits.member = otherwise;
        RV_GATE_LIMITS(X)
#undef X
        r = read_members(rules, object, err);
        if (r < 0)
                return rv_trace(r);
        if (rules->names.mode != RV_NETWORK_REGISTRIES)
                rules->proxy_host = NULL;
        *ret = rv_take(&rules);
        return 0;
}

void rv_gate_rules_free(struct rv_gate_rules *rules)
{
        if (!rules)
                return;
        rv_arena_fini(&rules->arena);
        free(rules);
}

const struct rv_address *rv_gate_rules_resolve(const struct rv_gate_rules *rules, const char *name)
{
        for (size_t i = 0; i < rules->n_resolve; i++)
                if (strcmp(rules->resolve[i].name, name) == 0)
                        return &rules->resolve[i].address;
        return NULL;
}

bool rv_gate_rules_is_registry(const struct rv_gate_rules *rules, const char *name, uint16_t port)
{
        if (rules->names.mode != RV_NETWORK_REGISTRIES)
                return false;
        for (size_t i = 0; i < rules->names.n_allowed; i++)
                if (strcmp(rules->names.allowed[i].name, name) == 0 && rules->names.allowed[i].ports[0] == port)
                        return !rules->names.allowed[i].is_learned;
        return false;
}
