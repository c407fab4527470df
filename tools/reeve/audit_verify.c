#include "audit_keys.h"

#include "base/clock.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COMMAND "audit verify"

static const char help[] =
        "usage: reeve audit verify [--key KEY|FILE]… [--expect SIZE:ROOT|FILE]… [--all] [--json]\n"
        "                          [--config FILE] [DIR]\n"
        "\n"
        "Tells whether a log is what it was when it was written: every record in its place and\n"
        "unchanged, every checkpoint signed and made for these records. Offline and without the\n"
        "log's secret; a log that is being written meanwhile may be verified too. DIR is a state\n"
        "directory, or one with *.jsonl files; without it the configuration's state directory.\n"
        "\n"
        "  --key KEY|FILE     the key that signs checkpoints (reeve/LOG_ID+HASH+KEY), or its file. Hands\n"
        "                     over to others as the log says. More than one: in the order in which they\n"
        "                     came into force, all of them and no other. Without it keys/ed25519.pub\n"
        "                     beside the log, for which nothing outside vouches\n"
        "  --expect SIZE:ROOT the log's first SIZE records have this root (hex or base64), known from\n"
        "                     elsewhere; or the file of a checkpoint. May be repeated\n"
        "  --all              go on behind a fault, where that makes sense\n"
        "  --json             print one JSON object\n"
        "  --config FILE      the configuration\n"
        "\n"
        "Exit status: 0 the log is good; 2 it is not, or wrong usage; 125 it cannot be read.\n";

struct options {
        const char *config, *dir;
        bool is_json, is_all;
        struct audit_keys keys;
        struct rv_verify_expect expects[AUDIT_EXPECTS_MAX];
        size_t n_expects;
};

enum { OPT_KEY = 256, OPT_EXPECT, OPT_ALL, OPT_JSON, OPT_CONFIG };

static const struct option long_options[] = {
        { "key", required_argument, NULL, OPT_KEY },   { "expect", required_argument, NULL, OPT_EXPECT },
        { "all", no_argument, NULL, OPT_ALL },         { "json", no_argument, NULL, OPT_JSON },
        { "config", required_argument, NULL, OPT_CONFIG }, { "help", no_argument, NULL, 'h' }, { 0 },
};

static int take_option(struct options *o, int id, const char *value)
{
        struct rv_error err = { 0 };
        int r = 0;

        switch (id) {
        case OPT_KEY:
                r = audit_key_add(&o->keys, value, &err);
                break;
        case OPT_EXPECT:
                r = o->n_expects == AUDIT_EXPECTS_MAX ? rv_error_set(&err, -E2BIG, "more than %d times --expect", AUDIT_EXPECTS_MAX)
                                                      : audit_expect_read(value, &o->expects[o->n_expects], &err);
                o->n_expects += r == 0;
                break;
        case OPT_ALL:
                o->is_all = true;
                break;
        case OPT_JSON:
                o->is_json = true;
                break;
        case OPT_CONFIG:
                o->config = value;
                break;
        default:
                return usage_error(COMMAND, "an option that is unknown, or lacks its value");
        }
        return r < 0 ? usage_error(COMMAND, "%s", err.message) : 0;
}

/* -1 to go on, else the exit status. */
static int read_options(int argc, char **argv, struct options *o)
{
        int id, r;

        opterr = 0;
        optind = 1;
        while ((id = getopt_long(argc, argv, "h", long_options, NULL)) >= 0) {
                if (id == 'h') {
                        fputs(help, stdout);
                        return 0;
                }
                r = take_option(o, id, optarg);
                if (r)
                        return r;
        }
        if (argc - optind > 1)
                return usage_error(COMMAND, "more than one directory");
        o->dir = argv[optind];
        return -1;
}

/* ---- As text ---- */

static void print_fault(void *ctx, const struct rv_verify_fault *fault)
{
        (void)ctx;
        if (fault->segment[0])
                print_text("bad       record %" PRIu64 " (%s, byte %" PRIu64 "): %s [%s]", fault->seq, fault->segment, fault->offset, fault->text, rv_verify_what_name(fault->what));
        else
                print_text("bad       %s [%s]", fault->text, rv_verify_what_name(fault->what));
}

/* Since a time, in words. */
static const char *age(uint64_t time_us, char ret[32])
{
        uint64_t now = rv_now_us(), s = now > time_us ? (now - time_us) / 1000000 : 0;

        if (s < 120)
                snprintf(ret, 32, "%" PRIu64 " s", s);
        else if (s < 2 * 3600)
                snprintf(ret, 32, "%" PRIu64 " min", s / 60);
        else if (s < 48 * 3600)
                snprintf(ret, 32, "%" PRIu64 " h", s / 3600);
        else
                snprintf(ret, 32, "%" PRIu64 " days", s / 86400);
        return ret;
}

static void print_seal(const struct rv_verify_result *r)
{
        char text[32];

        if (r->n_checkpoints)
                print_text("sealed    %" PRIu64 " checkpoint%s; the last one covers %" PRIu64 " records, is record %" PRIu64 " and %s old", r->n_checkpoints, r->n_checkpoints == 1 ? "" : "s",
                        r->last.size, r->last_seq, age(r->last_time_us, text));
        else
                print_text("sealed    nothing: there is no checkpoint, and whoever can write the log can have made all of it");
        if (r->n_unsealed)
                print_text("unsealed  %" PRIu64 " record%s at the end, the first %s old; a changed last record, or a cut-off end, shows only by --expect", r->n_unsealed, r->n_unsealed == 1 ? "" : "s", age(r->unsealed_time_us, text));
        if (r->incomplete_bytes)
                print_text("          and %" PRIu64 " bytes of an incomplete line", r->incomplete_bytes);
}

static void print_key(const struct rv_verify_result *r, bool is_vouched)
{
        char key[RV_CHECKPOINT_VERIFIER_SIZE];

        if (!r->has_key)
                return;
        rv_checkpoint_key_text(&r->key, key);
        print_text("key       %s", key);
        if (r->n_rotations)
                print_text("          handed over %" PRIu64 " time%s", r->n_rotations, r->n_rotations == 1 ? "" : "s");
        if (r->n_replaced)
                print_text("          took over %" PRIu64 " time%s from one that had not named it, as the keys given say", r->n_replaced, r->n_replaced == 1 ? "" : "s");
        if (r->n_earlier)
                print_text("          %" PRIu64 " checkpoint%s of an earlier key that is not known here; that key's successor vouches for the records", r->n_earlier, r->n_earlier == 1 ? "" : "s");
        if (!is_vouched)
                print_text("          nothing outside vouches for this key: it is the one that lies beside the log, or that this machine is configured with; name the one that you know with --key");
}

static void print_result(const struct rv_verify_result *r, bool is_vouched)
{
        char root[RV_SHA256_HEX_SIZE];

        if (r->n_faults) {
                print_text("the log is NOT what it was");
                return;
        }
        rv_hex(r->root, sizeof(r->root), root);
        print_text("log       %s: %" PRIu64 " records, %" PRIu64 " segment%s, %" PRIu64 " bytes", r->log_id, r->n_records, r->n_segments, r->n_segments == 1 ? "" : "s", r->n_bytes);
        print_text("root      %s", root);
        print_seal(r);
        print_key(r, is_vouched);
        print_text("the log is good");
}

/* ---- As JSON ---- */

static void add_fault(void *ctx, const struct rv_verify_fault *fault)
{
        json_t *faults = ctx;

        json_array_append_new(faults, json_pack("{s:s, s:s, s:I, s:I, s:s}", "what", rv_verify_what_name(fault->what), "segment", fault->segment,
                                              "offset", (json_int_t)fault->offset, "seq", (json_int_t)fault->seq, "message", fault->text));
}

static json_t *checkpoints_to_json(const struct rv_verify_result *r)
{
        char root[RV_SHA256_HEX_SIZE];

        if (!r->n_checkpoints)
                return json_pack("{s:i, s:n}", "count", 0, "last", "last");
        rv_hex(r->last.root, sizeof(r->last.root), root);
        return json_pack("{s:I, s:{s:I, s:s, s:I, s:I}}", "count", (json_int_t)r->n_checkpoints, "last", "size", (json_int_t)r->last.size, "root", root,
                "seq", (json_int_t)r->last_seq, "time_us", (json_int_t)r->last_time_us);
}

static json_t *key_to_json(const struct rv_verify_result *r, bool is_vouched)
{
        char key[RV_CHECKPOINT_VERIFIER_SIZE];

        if (!r->has_key)
                return json_null();
        rv_checkpoint_key_text(&r->key, key);
        return json_pack("{s:s, s:b, s:I, s:I, s:I}", "verifier", key, "vouched", is_vouched, "rotations", (json_int_t)r->n_rotations, "replaced",
                (json_int_t)r->n_replaced, "earlier_checkpoints", (json_int_t)r->n_earlier);
}

static int print_result_json(const struct rv_verify_result *r, bool is_vouched, json_t *faults)
{
        _cleanup_(rv_json_unrefp) json_t *o = json_pack("{s:s, s:b, s:s, s:O}", "schema", "reeve.audit.verify/1", "valid", !r->n_faults, "log_id", r->log_id, "faults", faults);
        char root[RV_SHA256_HEX_SIZE];

        if (!r->n_faults) {
                rv_hex(r->root, sizeof(r->root), root);
                json_object_set_new(o, "records", json_integer((json_int_t)r->n_records));
                json_object_set_new(o, "segments", json_integer((json_int_t)r->n_segments));
                json_object_set_new(o, "bytes", json_integer((json_int_t)r->n_bytes));
                json_object_set_new(o, "root", json_string(root));
                json_object_set_new(o, "checkpoints", checkpoints_to_json(r));
                json_object_set_new(o, "unsealed",
                        json_pack("{s:I, s:o, s:I}", "records", (json_int_t)r->n_unsealed, "since_us",
                                r->n_unsealed ? json_integer((json_int_t)r->unsealed_time_us) : json_null(),
                                "incomplete_bytes", (json_int_t)r->incomplete_bytes));
                json_object_set_new(o, "key", key_to_json(r, is_vouched));
        }
        return print_json(o, "the result");
}

static int verify(struct options *o, const struct audit_place *place, bool is_vouched)
{
        _cleanup_(rv_json_unrefp) json_t *faults = json_array();
        struct rv_verify_input input = {
                .audit_fd = place->audit_fd,
                .path = place->path,
                .keys = o->keys.keys,
                .n_keys = o->keys.n,
                .is_vouched = is_vouched,
                .expects = o->expects,
                .n_expects = o->n_expects,
                .is_all = o->is_all,
                .on_fault = o->is_json ? add_fault : print_fault,
                .ctx = faults,
        };
        struct rv_verify_result result;
        struct rv_error err = { 0 };
        int r = rv_verify_log(&input, &result, &err);

        if (r < 0)
                return fail(o->is_json, 500, "The log cannot be verified", err.message);
        if (o->is_json && print_result_json(&result, is_vouched, faults))
                return EXIT_REEVE;
        if (!o->is_json)
                print_result(&result, is_vouched);
        return r == 0 ? 0 : EXIT_USAGE;
}

int audit_verify(int argc, char **argv)
{
        _cleanup_(rv_freep) struct options *o = calloc(1, sizeof(*o));
        struct audit_place place;
        struct rv_error err = { 0 };
        bool is_vouched;
        int r;

        if (!o)
                return EXIT_REEVE;
        r = read_options(argc, argv, o);
        if (r >= 0)
                return r;
        is_vouched = o->keys.n > 0;
        r = audit_place_open(o->config, o->dir, &place, &err);
        if (r == 0 && !is_vouched)
                r = audit_key_beside(&o->keys, &place, &err);
        if (r < 0) {
                say("%s: %s", COMMAND, err.message);
                r = place.path ? EXIT_REEVE : EXIT_USAGE;
        } else {
                r = verify(o, &place, is_vouched);
        }
        audit_place_close(&place);
        return r;
}
