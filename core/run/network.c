#include "run/run_private.h"

#include "base/fd.h"

#include <stdio.h>
#include <string.h>

/*
 * The network of a run: what it may reach becomes rules for the gate; the backend hands out the sockets, the gate serves
 * them, and only then may the program be released. When all of the run is gone the gate tells what was reached.
 */

static bool has_network(const struct rv_run *run)
{
        return run->request->network_mode != RV_NETWORK_NONE;
}

/* ---- What it may reach ---- */

static json_t *make_texts(const char *const *texts, size_t n)
{
        json_t *list = json_array();

        for (size_t i = 0; i < n; i++)
                json_array_append_new(list, json_string(texts[i]));
        return list;
}

static json_t *make_resolve(const struct rv_config *config)
{
        json_t *resolve = json_object();

        for (size_t i = 0; i < config->egress.resolve.n_items; i++)
                json_object_set_new(resolve, config->egress.resolve.items[i].name,
                        json_string(config->egress.resolve.items[i].value));
        return resolve;
}

/* What policy's rule on a part of the run's network (a domain; "": all of it) says of ports; NULL: nothing. */
static json_t *find_ports(const struct rv_run *run, const char *item)
{
        const json_t *entry;
        size_t i;

        json_array_foreach(json_object_get(run->granted, "network"), i, entry)
                if (!strcmp(rv_json_get_string(entry, "item", ""), item))
                        return json_object_get(entry, "ports");
        return NULL;
}

static json_t *make_domains(const struct rv_run *run)
{
        json_t *list = json_array();

        for (size_t i = 0; i < run->request->n_domains; i++) {
                json_t *ports = find_ports(run, run->request->domains[i]);

                json_array_append_new(list, ports ? json_pack("{s:s, s:O}", "name", run->request->domains[i], "ports", ports)
                                                  : json_string(run->request->domains[i]));
        }
        return list;
}

/* Hosts that the run may reach in mode registries, and only it. */
static const struct rv_registry *registry_of(const struct rv_run *run)
{
        return run->request->network_mode == RV_NETWORK_REGISTRIES ? run->core->registries[run->request->language]
                                                                   : NULL;
}

static json_t *make_endpoint(const struct rv_registry_host *host)
{
        return json_pack("{s:s, s:i}", "host", host->host, "port", (int)host->port);
}

static json_t *make_registries(const struct rv_registry *registry)
{
        json_t *list = json_array();

        for (size_t i = 0; registry && i < registry->n_hosts; i++) {
                json_t *endpoint = make_endpoint(&registry->hosts[i]);

                if (registry->hosts[i].is_learned)
                        json_object_set_new(endpoint, "is_learned", json_true());
                json_array_append_new(list, endpoint);
        }
        return list;
}

static json_t *make_limits(const struct rv_config *config)
{
        json_t *limits = json_object();

#define X(name) json_object_set_new(limits, #name, json_integer((json_int_t)config->egress.limits.name));
        RV_CONFIG_EGRESS_LIMITS(X)
#undef X
        return limits;
}

static char *make_rules(const struct rv_run *run, const struct rv_network_sockets *sockets)
{
        const struct rv_config *config = run->core->config;
        const struct rv_registry *registry = registry_of(run);
        _cleanup_(rv_json_unrefp) json_t *rules = json_pack(
                "{s:s, s:o, s:o?, s:s, s:i, s:o, s:o, s:o, s:o?, s:o}", "mode", rv_network_mode_name(run->request->network_mode), "domains",
                make_domains(run), "ports", json_incref(find_ports(run, "")), "original",
                sockets->is_redirect ? "redirect" : "tproxy", "listen_port", (int)sockets->listen_port, "resolve", make_resolve(config), "deny",
                make_texts(config->egress.deny.items, config->egress.deny.n_items), "registries", make_registries(registry),
                "proxy", registry && registry->proxy.host ? make_endpoint(&registry->proxy) : NULL, "limits", make_limits(config));

        return rules ? json_dumps(rules, JSON_COMPACT) : NULL;
}

/* ---- The gate ---- */

/* The program is not left alone with a network that nobody answers for. */
static void give_up(struct rv_run *run, bool is_refusal, const char *text)
{
        if (run->evidence.stop || run->has_seen)
                return;
        run->network.has_failed = true;
        run->evidence.is_gate_refusal = is_refusal;
        snprintf(run->evidence.gate_text, sizeof(run->evidence.gate_text), "%s", text);
        rv__run_stop_unserved(run);
}

void rv__run_stop_unserved(struct rv_run *run)
{
        if (run->network.has_failed)
                rv__run_end(run, RV_STOP_GATE, run->is_started ? RV_PHASE_RUN : RV_PHASE_START, 0);
}

static void on_gate(void *arg, const struct rv_gate_event *event)
{
        struct rv_run *run = arg;
        char line[RV_REASON_SIZE];

        if (event->kind == RV_GATE_EVENT_SERVED) {
                run->network.is_served = true;
                rv__run_release(run);
                return;
        }
        run->network.gate_id = 0;
        run->network.is_over = true;
        /* Before its release the program was held: it has reached nothing. */
        run->network.is_evidence_lost = event->kind != RV_GATE_EVENT_REPORT &&
                (run->evidence.was_released || run->has_seen);
        if (event->kind == RV_GATE_EVENT_REPORT) {
                run->network.evidence = *event->evidence;
                *event->evidence = (struct rv_network_evidence){ 0 };
        } else if (run->has_seen) {
                snprintf(line, sizeof(line), "what run %s reached is not known: %.400s", run->run_id, event->text);
                run->core->host->log(run->core->host->ctx, RV_LOG_WARNING, line);
        } else {
                give_up(run, event->kind == RV_GATE_EVENT_REFUSED, event->text);
        }
        rv__run_go_on(run);
}

static void ask_gate(struct rv_run *run, const struct rv_network_sockets *sockets)
{
        _cleanup_(rv_freep) char *rules = make_rules(run, sockets);
        char text[RV_REASON_SIZE];
        const char *why;
        int r = -EPIPE;

        if (!rules)
                r = rv_raise(-ENOMEM);
        else if (run->core->gate)
                r = rv_gate_client_add(run->core->gate, rules, strlen(rules), sockets->fds, sockets->n_fds, on_gate,
                        run, &run->network.gate_id);
        if (r == 0)
                return;
        why = run->core->gate ? rv_gate_client_lost_text(run->core->gate) : "";
        if (r == -EPIPE)
                snprintf(text, sizeof(text), "%s", why[0] ? why : "the gate is gone");
        else
                snprintf(text, sizeof(text), "the gate cannot be asked to serve it: %s", strerror(-r));
        give_up(run, r != -EPIPE, text);
}

void rv__run_on_network(void *ctx, struct rv_run *run, const struct rv_network_sockets *sockets)
{
        (void)ctx;
        if (!run->evidence.stop && !run->has_seen && !run->problem && !run->network.gate_id)
                ask_gate(run, sockets);
        for (uint32_t i = 0; i < sockets->n_fds; i++)
                rv_close(sockets->fds[i]);
}

bool rv__run_is_network_ready(const struct rv_run *run)
{
        return !has_network(run) || run->network.is_served;
}

bool rv__run_end_network(struct rv_run *run)
{
        if (!run->network.gate_id)
                return true;
        rv_gate_client_remove(run->core->gate, run->network.gate_id, run->core->config->phases.collect_ms);
        return !run->network.gate_id;
}

void rv__run_forget_gate(struct rv_run *run)
{
        if (run->network.gate_id)
                rv_gate_client_forget(run->core->gate, run->network.gate_id);
        run->network.gate_id = 0;
}

void rv__run_network_fini(struct rv_run *run)
{
        rv__run_forget_gate(run);
        rv_network_evidence_fini(&run->network.evidence);
}
