#include "package/diagnose_private.h"

#include "base/buf.h"

#include <string.h>

/* What the gate saw of the registry's hosts, and of those that its pages name. Whatever else a tool tried says nothing. */

static bool is_registry_host(const struct rv_package_trouble *t, const char *name, int64_t port)
{
        const struct rv_registry *r = t->source->registry;

        for (size_t i = 0; i < r->n_hosts; i++)
                if (strcmp(r->hosts[i].host, name) == 0 && (port == 0 || port == r->hosts[i].port))
                        return true;
        return false;
}

static bool is_at(const char *url, const char *name)
{
        char host[RV_DOMAIN_SIZE];

        return *url && strcmp(rv__metadata_host(url, host, sizeof(host)), name) == 0;
}

/* Does a file of one of the pages lie at a host? */
static bool is_file_host(const json_t *pages, const char *name)
{
        const char *key, *version;
        json_t *page, *entry, *file;
        size_t i;

        json_object_foreach((json_t *)pages, key, page)
                json_object_foreach(json_object_get(page, "versions"), version, entry) {
                        if (is_at(rv_json_get_string(entry, "tarball", ""), name))
                                return true;
                        json_array_foreach(json_object_get(entry, "files"), i, file)
                                if (is_at(rv_json_get_string(file, "url", ""), name))
                                        return true;
                }
        return false;
}

static int64_t number(const json_t *entry, const char *name)
{
        return json_integer_value(json_object_get(entry, name));
}

/* Evidence names an address's host by the address alone. */
static const char *name_of(const json_t *entry)
{
        const char *name = rv_json_get_string(entry, "name", "");

        return *name ? name : rv_json_get_string(entry, "address", "");
}

static void look_at_denial(
        const struct rv_package_trouble *t, const json_t *pages, const json_t *entry, struct rv__finding *f)
{
        const char *name = name_of(entry), *rule = rv_json_get_string(entry, "rule", ""), *language;
        bool is_known = is_registry_host(t, name, number(entry, "port"));

        if (!*name || strlen(name) >= RV_DOMAIN_SIZE || (!is_known && !is_file_host(pages, name)))
                return;
        if (strcmp(rule, "unresolved") == 0) {
                rv__find(f, RV_PACKAGE_CAUSE_UNREACHABLE, "", "the registry cannot be reached: %s has no address, or its servers did not answer; try again", name);
                return;
        }
        language = rv_language_name(t->source->registry->language);
        if (is_known)
                rv__find(f, RV_PACKAGE_CAUSE_REFUSED, "", "reeve's own gate refused a connection to %s, a host of the registry (rule %.40s): see egress and registries.%s in the configuration",
                         name, rule, language);
        else
                rv__find(f, RV_PACKAGE_CAUSE_REFUSED, "", "files of the registry lie at %s, which reeve's own gate refused (rule %.40s): add that host to registries.%s.files in the configuration",
                         name, rule, language);
        f->is_ours = true;
}

/* All of a host's contacts together: it may have several addresses, of which one does not answer. */
static bool has_answered(const json_t *contacts, const char *name, int64_t port)
{
        json_t *entry;
        size_t i;

        json_array_foreach(contacts, i, entry)
                if (strcmp(name_of(entry), name) == 0 && number(entry, "port") == port && number(entry, "bytes_in") > 0)
                        return true;
        return false;
}

void rv__diagnose_gate(const struct rv_package_trouble *t, const json_t *pages, struct rv__finding *f)
{
        json_t *entry;
        size_t i;

        json_array_foreach(t->denials, i, entry)
                if (f->cause == RV_PACKAGE_CAUSE_NONE)
                        look_at_denial(t, pages, entry, f);
        json_array_foreach(t->contacts, i, entry) {
                const char *name = name_of(entry);
                int64_t port = number(entry, "port");

                if (is_registry_host(t, name, port) && number(entry, "connections") > 0 && !has_answered(t->contacts, name, port))
                        rv__find(f, RV_PACKAGE_CAUSE_UNREACHABLE, "", "the registry cannot be reached: nothing came from %s, port %d; try again", name, (int)port);
        }
}

/* npm's own codes for what its packages name instead of a version; what is asked for itself was read before. */
static bool is_code_of_elsewhere(const char *code)
{
        static const char *const codes[] = {
                "128", "ENOGIT", "EALLOWGIT", "EALLOWREMOTE", "EALLOWFILE", "EALLOWDIRECTORY", "EUNSUPPORTEDPROTOCOL"
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(codes); i++)
                if (strcmp(codes[i], code) == 0)
                        return true;
        return false;
}

void rv__diagnose_elsewhere(const struct rv_package_trouble *t, struct rv__finding *f)
{
        const char *host = NULL;
        json_t *entry;
        size_t i;

        if (f->cause != RV_PACKAGE_CAUSE_NONE)
                return;
        json_array_foreach(t->denials, i, entry)
                if (!host && !is_registry_host(t, name_of(entry), number(entry, "port")))
                        host = name_of(entry);
        if (host && *host && strlen(host) < RV_DOMAIN_SIZE)
                rv__find(f, RV_PACKAGE_CAUSE_CONFLICT, t->packages[0].name, "something that %s needs is to come from %s, which is no host of the registry; only what the registry has is installed",
                         t->packages[0].requested, host);
        else if (t->source->registry->language == RV_LANGUAGE_JAVASCRIPT && is_code_of_elsewhere(rv_json_get_string(t->closure, "code", "")))
                rv__find(f, RV_PACKAGE_CAUSE_CONFLICT, t->packages[0].name, "something that %s needs is to come from git, an address or a directory; only what the registry has is installed",
                         t->packages[0].requested);
        if (f->cause != RV_PACKAGE_CAUSE_NONE)
                f->install_cause = "unsafe_archive";
}
