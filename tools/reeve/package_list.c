#include "package.h"

#include "audit_options.h"

#include "store/packages_list.h"

#include <stdio.h>

#define COMMAND "package list"

static const char help[] =
        "usage: reeve package list [--json] [--config FILE]\n"
        "\n"
        "Lists the layers that are kept, the least recently used first: digest, language, how many packages, size on\n"
        "the disk, how long ago it was used, and whether it is in use now; and how many locks are held.\n"
        "\n"
        "  --json         print one JSON object: {\"layers\", \"locks\", \"bytes\"}; times are seconds since 1970\n"
        "  --config FILE  the configuration\n"
        "\n"
        "Exit status: 0; 2 usage; 125 the store cannot be read.\n";

static json_t *layer_json(const struct rv_store_layer *l)
{
        return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:b, s:b}", "digest", l->digest, "language", l->language, "runtime", l->runtime, "packages",
                         (json_int_t)l->n_packages, "bytes", (json_int_t)l->bytes, "used_at", (json_int_t)(l->last_use_us / 1000000), "in_use",
                         (int)l->is_in_use, "compiled", (int)l->is_compiled);
}

static json_t *to_json(const struct rv_store_list *list)
{
        json_t *layers = json_array(), *locks = json_array();

        for (size_t i = 0; i < list->n_layers; i++)
                json_array_append_new(layers, layer_json(&list->layers[i]));
        for (size_t i = 0; i < list->n_locks; i++)
                json_array_append_new(locks, json_pack("{s:s, s:I, s:I}", "key", list->locks[i].key, "used_at", (json_int_t)(list->locks[i].last_use_us / 1000000), "bytes", (json_int_t)list->locks[i].bytes));
        return json_pack("{s:o, s:o, s:I}", "layers", layers, "locks", locks, "bytes", (json_int_t)list->layers_bytes);
}

static void print_list(const struct rv_store_list *list)
{
        char size[PACKAGE_TEXT_SIZE], age[PACKAGE_TEXT_SIZE];

        for (size_t i = 0; i < list->n_layers; i++) {
                const struct rv_store_layer *l = &list->layers[i];

                print_text("%s  %-10s  %4zu packages  %10s  used %s ago%s", l->digest, l->language[0] ? l->language : "(damaged)", l->n_packages,
                           package_size_text(l->bytes, size), package_age_text(l->last_use_us, age), l->is_in_use ? ", in use" : "");
        }
        print_text("%zu %s, %s; %zu %s held", list->n_layers, list->n_layers == 1 ? "layer" : "layers", package_size_text(list->layers_bytes, size), list->n_locks, list->n_locks == 1 ? "lock" : "locks");
}

int package_list(int argc, char **argv)
{
        static const struct option table[] = { AUDIT_OPTION_JSON, AUDIT_OPTION_CONFIG, AUDIT_OPTIONS_END };
        _cleanup_(package_place_close) struct package_place place = { 0 };
        _cleanup_(rv_store_list_fini) struct rv_store_list list = { 0 };
        _cleanup_(rv_json_unrefp) json_t *json = NULL;
        struct audit_options o = { .command = COMMAND, .help = help, .table = table };
        struct rv_error err = { 0 };
        int r = audit_options_read(&o, argc, argv);

        if (r >= 0)
                return r;
        r = package_place_open(o.config, false, &place, &err);
        if (r == 0 && place.store)
                r = rv_store_list(place.store, &list, &err);
        if (r < 0) {
                say("%s", err.message);
                return EXIT_REEVE;
        }
        if (o.is_json) {
                json = to_json(&list);
                return print_json(json, "the list");
        }
        print_list(&list);
        return 0;
}
