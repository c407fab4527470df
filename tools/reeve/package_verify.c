#include "package.h"

#include "audit_options.h"

#include "store/layer_verify.h"
#include "store/packages_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COMMAND "package verify"
#define EXIT_DAMAGED 1

static const char help[] =
        "usage: reeve package verify [--json] [--config FILE] [DIGEST…]\n"
        "\n"
        "Reads every file of the layers, all of them or those named, and compares it with what was written down when\n"
        "the layer was made: bytes, kind, mode, owner, and that nothing is there besides and nothing is missing. Each\n"
        "fault is told with its file. A layer that is damaged is removed by hand or by `reeve package prune --max`, and\n"
        "is built again from its lock when it is asked for.\n"
        "\n"
        "  --json         print one JSON object: {\"status\", \"layers\"}\n"
        "  --config FILE  the configuration\n"
        "\n"
        "Exit status: 0 all are good; 1 one is damaged, or not there; 2 usage; 125 the store cannot be read.\n";

struct verifying {
        struct rv_store *store;
        bool is_json, is_damaged;
        json_t *layers, *faults;
        const char *digest;
};

static void on_fault(void *ctx, const char *path, const char *fault)
{
        struct verifying *v = ctx;

        if (v->is_json)
                json_array_append_new(v->faults, json_pack("{s:s+, s:s}", "path", path, "", "fault", fault));
        else
                print_text("damaged  %s: %s: %s", v->digest, path, fault);
}

static int verify_one(struct verifying *v, const char *digest, struct rv_error *err)
{
        struct rv_layer_count count;
        const char *status;
        int r;

        v->digest = digest;
        v->faults = json_array();
        r = rv_layer_verify(v->store, digest, on_fault, v, &count, err);
        if (r < 0) {
                json_decref(v->faults);
                return rv_trace(r);
        }
        status = r == RV_LAYER_E_ABSENT ? "absent" : r == RV_LAYER_E_DAMAGED ? "damaged" : "good";
        v->is_damaged = v->is_damaged || r != 0;
        if (!v->is_json && r != RV_LAYER_E_DAMAGED)
                print_text("%-8s %s: %" PRIu64 " files, %" PRIu64 " bytes", status, digest, count.n_files, count.bytes);
        json_array_append_new(v->layers, json_pack("{s:s, s:s, s:I, s:I, s:o}", "digest", digest, "status", status, "files", (json_int_t)count.n_files, "bytes",
                                                   (json_int_t)count.bytes, "faults", v->faults));
        return 0;
}

static int verify_all(struct verifying *v, struct rv_error *err)
{
        struct rv_store_list list = { 0 };
        int r = rv_store_list(v->store, &list, err);

        for (size_t i = 0; r == 0 && i < list.n_layers; i++)
                r = verify_one(v, list.layers[i].digest, err);
        rv_store_list_fini(&list);
        return rv_trace(r);
}

static int verify(struct verifying *v, const struct audit_options *o, struct rv_error *err)
{
        int r = 0;

        if (!o->n_words)
                return v->store ? rv_trace(verify_all(v, err)) : 0;
        for (int i = 0; r == 0 && i < o->n_words; i++) {
                if (v->store) {
                        r = verify_one(v, package_digest(o->words[i]), err);
                        continue;
                }
                v->is_damaged = true;
                if (!v->is_json)
                        print_text("absent   %s", package_digest(o->words[i]));
                json_array_append_new(v->layers, json_pack("{s:s, s:s, s:i, s:i, s:[]}", "digest", package_digest(o->words[i]), "status", "absent", "files", 0, "bytes", 0, "faults"));
        }
        return rv_trace(r);
}

int package_verify(int argc, char **argv)
{
        static const struct option table[] = { AUDIT_OPTION_JSON, AUDIT_OPTION_CONFIG, AUDIT_OPTIONS_END };
        _cleanup_(package_place_close) struct package_place place = { 0 };
        _cleanup_(rv_json_unrefp) json_t *layers = json_array(), *json = NULL;
        struct audit_options o = { .command = COMMAND, .help = help, .table = table, .n_words_max = argc };
        struct verifying v = { .layers = layers };
        struct rv_error err = { 0 };
        int r = audit_options_read(&o, argc, argv);

        if (r >= 0)
                return r;
        for (int i = 0; i < o.n_words; i++)
                if (!package_digest(o.words[i]))
                        return usage_error(COMMAND, "%s names no layer: a digest has 64 digits of lower-case hexadecimal", o.words[i]);
        r = package_place_open(o.config, false, &place, &err);
        v.store = place.store;
        v.is_json = o.is_json;
        if (r == 0)
                r = verify(&v, &o, &err);
        if (r < 0) {
                say("%s", err.message);
                return EXIT_REEVE;
        }
        if (v.is_json) {
                json = json_pack("{s:s, s:O}", "status", v.is_damaged ? "damaged" : "good", "layers", layers);
                r = print_json(json, "what was found");
        }
        return r ? r : v.is_damaged ? EXIT_DAMAGED : 0;
}
