/*
 * registry_env.c - what the package managers' configuration, as this process sees it, makes of a registry, for tests
 *
 *     registry_env python|javascript ROOT [URL…]
 *
 * Prints {"resolver": {NAME: value}, "run": {NAME: value}, "authorization": [header or ""], "fingerprint"}.
 */
#include "package/registry_credentials.h"

#include "base/json.h"

#include <stdio.h>
#include <string.h>

static const char *get(void *arg, const char *name)
{
        (void)arg;
        return getenv(name);
}

static json_t *variables(struct rv_registry_tools *t)
{
        json_t *all = json_object();

        for (size_t i = 0; i < t->n_env; i++)
                json_object_set_new(all, t->env[i].name, json_string(t->env[i].value));
        rv_registry_tools_fini(t);
        return all;
}

int main(int argc, char **argv)
{
        struct rv_registry_view view = { .root = argc > 2 ? argv[2] : "", .get = get };
        json_t *headers = json_array(), *all;
        struct rv_registry_tools resolver, run;
        char print[RV_SHA256_HEX_SIZE];
        struct rv_config *config = NULL;
        struct rv_registry *r = NULL;
        enum rv_language language;

        if (argc < 3 || rv_config_parse("", 0, "none", &config, NULL) < 0)
                return 2;
        language = strcmp(argv[1], "python") == 0 ? RV_LANGUAGE_PYTHON : RV_LANGUAGE_JAVASCRIPT;
        if (rv_registry_find(config, &config->tenants[0], language, &view, &r) < 0 || rv_registry_resolver_env(r, "host", &resolver, NULL) < 0 ||
                rv_registry_tools_make(r, "host", &run, NULL) < 0)
                return 1;
        for (int i = 3; i < argc; i++) {
                char header[RV_REGISTRY_AUTHORIZATION_SIZE];

                (void)rv_registry_authorization(r, argv[i], header);
                json_array_append_new(headers, json_string(header));
        }
        rv_registry_fingerprint(r, print);
        all = json_pack("{s:o, s:o, s:o, s:s}", "resolver", variables(&resolver), "run", variables(&run), "authorization", headers, "fingerprint", print);
        json_dumpf(all, stdout, JSON_COMPACT);
        json_decref(all);
        rv_registry_free(r);
        rv_config_free(config);
        return 0;
}
