#include "reconcile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LISTED_MAX 1000         /* findings in --json: more are counted */

static const char help[] =
        "usage: reeve audit reconcile [--json] [--config FILE] [DIR]\n"
        "\n"
        "Tells whether decisions, outcomes, idempotency keys and stored outcomes go together: finds runs\n"
        "without a decision, decisions without an outcome, two outcomes of one decision, an outcome before its\n"
        "decision, an outcome given again that is not on record, a key that let two runs begin within 24\n"
        "hours, and stored outcomes that are missing, unknown or other than recorded. A run in flight is no\n"
        "finding. DIR is a state directory, or one with *.jsonl files (then stored outcomes are left out);\n"
        "without it the configuration's state directory. Whether the log itself is untouched is told by\n"
        "`reeve audit verify`.\n"
        "\n"
        "Exit status 0: all goes together; 1: it does not; 2: the log is damaged or cannot be read, or usage.\n";

struct output {
        bool is_json;
        json_t *findings;
};

static void on_found(void *ctx, const struct reconcile_finding *f)
{
        struct output *out = ctx;
        json_t *value;

        if (!out->is_json) {
                char seq[32] = "";

                if (f->has_seq)
                        snprintf(seq, sizeof(seq), " (seq %" PRIu64 ")", f->seq);
                print_text("decision %s%s: %s%s%s", f->decision_id, seq, reconcile_kind_text(f->kind), *f->detail ? ", " : "", f->detail);
                return;
        }
        if (json_array_size(out->findings) >= LISTED_MAX)
                return;
        value = json_pack("{s:s, s:s, s:s}", "kind", reconcile_kind_name(f->kind), "decision_id", f->decision_id, "message", reconcile_kind_text(f->kind));
        if (f->has_seq)
                json_object_set_new(value, "seq", json_integer((json_int_t)f->seq));
        if (*f->detail)
                json_object_set_new(value, "detail", json_string(f->detail));
        json_array_append_new(out->findings, value);
}

static int finish(const struct output *out, const struct reconcile_counts *n)
{
        _cleanup_(rv_json_unrefp) json_t *value = NULL;
        int status = n->findings ? 1 : 0;

        if (!out->is_json) {
                print_text("%" PRIu64 " records: %" PRIu64 " decisions, %" PRIu64 " outcomes, %" PRIu64 " in flight, %" PRIu64 " keys, %" PRIu64 " given again, %" PRIu64 " stored; %" PRIu64 " finding%s",
                           n->records, n->decisions, n->outcomes, n->in_flight, n->keys, n->replays, n->stored, n->findings, n->findings == 1 ? "" : "s");
                return status;
        }
        value = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:O}", "schema", "reeve.audit.reconcile/1", "records", (json_int_t)n->records, "decisions",
                          (json_int_t)n->decisions, "outcomes", (json_int_t)n->outcomes, "in_flight", (json_int_t)n->in_flight, "keys", (json_int_t)n->keys, "replays",
                          (json_int_t)n->replays, "stored", (json_int_t)n->stored, "n_findings", (json_int_t)n->findings, "findings", out->findings);
        return print_json(value, "the reconciliation") ? EXIT_REEVE : status;
}

int audit_reconcile(int argc, char **argv)
{
        _cleanup_(audit_place_close) struct audit_place place = { .audit_fd = -EBADF, .state_fd = -EBADF };
        _cleanup_(rv_json_unrefp) json_t *findings = json_array();
        struct output out = { .findings = findings };
        const char *config = NULL, *dir = NULL;
        struct reconcile_counts counts;
        struct rv_error err = { 0 };

        for (int i = 1; i < argc; i++) {
                if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
                        return fputs(help, stdout) < 0 ? EXIT_REEVE : 0;
                if (!strcmp(argv[i], "--json"))
                        out.is_json = true;
                else if (!strcmp(argv[i], "--config") && i + 1 < argc)
                        config = argv[++i];
                else if (argv[i][0] == '-' || dir)
                        return usage_error("audit reconcile", "cannot use %s", argv[i]);
                else
                        dir = argv[i];
        }
        if (audit_place_open(config, dir, &place, &err) < 0 || reconcile(&place, on_found, &out, &counts, &err) < 0) {
                say("audit reconcile: %s", err.message);
                return EXIT_USAGE;
        }
        if (!counts.records && place.state_fd < 0) {
                say("audit reconcile: %s: there is no log: not one record in it", place.path);
                return EXIT_USAGE;
        }
        return finish(&out, &counts);
}
