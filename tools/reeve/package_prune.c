#include "package.h"

#include "audit_options.h"

#include "base/clock.h"
#include "base/config_value.h"
#include "store/packages_list.h"

#include <stdio.h>
#include <string.h>

#define COMMAND "package prune"

static const char help[] =
        "usage: reeve package prune [--older TIME] [--max SIZE] [--dry-run] [--json] [--config FILE]\n"
        "\n"
        "Removes layers: those that were not used for TIME, then, the least recently used first, as many as it takes\n"
        "for the rest to be no larger than SIZE. One that is in use stays. Locks go when they were not used for TIME,\n"
        "or for 90 days; one that is held builds its layer again, with the same bytes. What dead processes left goes\n"
        "too.\n"
        "\n"
        "  --older TIME   such as 12h or 30d; without it age is no reason, but for locks\n"
        "  --max SIZE     such as 500MiB, or 0; without it the configuration's packages.store_max\n"
        "  --dry-run      only tell what would be removed\n"
        "  --json         print one JSON object: {\"removed\", \"locks\", \"in_use\", \"bytes\", \"left_bytes\", \"dry_run\"}\n"
        "  --config FILE  the configuration\n"
        "\n"
        "Exit status: 0; 2 usage; 125 the store cannot be read, or something cannot be removed.\n";

enum { OPT_OLDER = AUDIT_OPT_OWN, OPT_MAX, OPT_DRY_RUN };

struct pruning {
        struct rv_store_prune p;
        bool has_max, is_json;
        json_t *removed;
        struct package_place place;
};

static int take(void *ctx, int id, const char *value)
{
        struct pruning *x = ctx;
        const char *needs = NULL;
        uint64_t ms = 0;

        if (id == OPT_DRY_RUN) {
                x->p.is_dry = true;
        } else if (id == OPT_OLDER) {
                needs = rv_config_read_duration(value, &ms);
                x->p.older_us = ms * 1000;
        } else {
                needs = strcmp(value, "0") ? rv_config_read_size(value, &x->p.max_bytes) : NULL;
                x->has_max = true;
        }
        return needs ? usage_error(COMMAND, "--%s needs %s, not \"%s\"", id == OPT_OLDER ? "older" : "max", needs, value) : 0;
}

static int remove_one(void *ctx, const char *digest, struct rv_error *err)
{
        struct pruning *x = ctx;

        return x->place.remove(x->place.ctx, digest, err);
}

static void tell(void *ctx, const struct rv_store_layer *layer, const char *why)
{
        struct pruning *x = ctx;
        char size[PACKAGE_TEXT_SIZE], age[PACKAGE_TEXT_SIZE];

        json_array_append_new(x->removed, json_pack("{s:s, s:I, s:I, s:s}", "digest", layer->digest, "bytes", (json_int_t)layer->bytes, "used_at",
                                                    (json_int_t)(layer->last_use_us / 1000000), "why", why));
        if (!x->is_json)
                print_text("%s  %s  %s, used %s ago (%s)", x->p.is_dry ? "would go" : "removed", layer->digest, package_size_text(layer->bytes, size),
                           package_age_text(layer->last_use_us, age), why);
}

static int answer(struct pruning *x, const struct rv_store_pruned *p)
{
        _cleanup_(rv_json_unrefp) json_t *json = NULL;
        char size[PACKAGE_TEXT_SIZE], left[PACKAGE_TEXT_SIZE];

        if (x->is_json) {
                json = json_pack("{s:O, s:I, s:I, s:I, s:I, s:b}", "removed", x->removed, "locks", (json_int_t)p->n_locks, "in_use", (json_int_t)p->n_in_use,
                                 "bytes", (json_int_t)p->bytes, "left_bytes", (json_int_t)p->left_bytes, "dry_run", (int)x->p.is_dry);
                return print_json(json, "what was removed");
        }
        print_text("%s %zu %s, %s, and %zu %s; %s left%s", x->p.is_dry ? "would remove" : "removed", p->n_layers, p->n_layers == 1 ? "layer" : "layers",
                   package_size_text(p->bytes, size), p->n_locks, p->n_locks == 1 ? "lock" : "locks", package_size_text(p->left_bytes, left),
                   p->n_in_use ? "; what is in use stays" : "");
        return 0;
}

static int prune(struct pruning *x, const char *config, struct rv_store_pruned *ret, struct rv_error *err)
{
        int r = package_place_open(config, !x->p.is_dry, &x->place, err);

        if (r < 0 || !x->place.store)
                return rv_trace(r);
        if (!x->has_max)
                x->p.max_bytes = x->place.config->packages.store_max_bytes;
        return rv_trace(rv_store_prune(x->place.store, &x->p, ret, err));
}

int package_prune(int argc, char **argv)
{
        static const struct option table[] = { { "older", required_argument, NULL, OPT_OLDER }, { "max", required_argument, NULL, OPT_MAX },
                { "dry-run", no_argument, NULL, OPT_DRY_RUN }, AUDIT_OPTION_JSON, AUDIT_OPTION_CONFIG, AUDIT_OPTIONS_END };
        _cleanup_(rv_json_unrefp) json_t *removed = json_array();
        struct pruning x = { .p = { .now_us = rv_now_us(), .remove = remove_one, .tell = tell }, .removed = removed };
        struct audit_options o = { .command = COMMAND, .help = help, .table = table, .take = take, .ctx = &x };
        struct rv_store_pruned pruned = { 0 };
        struct rv_error err = { 0 };
        int r = audit_options_read(&o, argc, argv);

        if (r >= 0)
                return r;
        x.p.ctx = &x;
        x.is_json = o.is_json;
        r = prune(&x, o.config, &pruned, &err);
        package_place_close(&x.place);
        if (r < 0) {
                say("%s", err.message);
                return EXIT_REEVE;
        }
        return answer(&x, &pruned);
}
