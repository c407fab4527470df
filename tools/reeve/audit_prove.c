#include "audit.h"

#include "audit/lines.h"
#include "audit/log_private.h"
#include "audit/proof_json.h"
#include "audit/record_form.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define COMMAND "audit prove"

static const char help[] =
        "usage: reeve audit prove SEQ [--size N] [--config FILE] [DIR]\n"
        "       reeve audit prove --from M [--size N] [--config FILE] [DIR]\n"
        "\n"
        "Prints a proof as JSON that whoever has the log's key can check without the log\n"
        "(`reeve audit check-proof`): that record SEQ stands in the log of N records, or that the\n"
        "log of N records begins with that of M. DIR is a state directory, or one with *.jsonl\n"
        "files; without it the configuration's state directory.\n"
        "\n"
        "  --size N       the size of the log that the proof leads to; by default that of the\n"
        "                 newest checkpoint, if that covers SEQ or M records, else the whole log\n"
        "  --from M       prove that one log is the beginning of another\n"
        "  --config FILE  the configuration\n"
        "\n"
        "Exit status: 0; 2 wrong usage, there is no such record, or the log is damaged; 125 it\n"
        "cannot be read.\n";

struct options {
        const char *config, *dir;
        bool has_size, is_consistency;
        uint64_t size, from;                     /* from is SEQ, or --from */
};

enum { OPT_SIZE = 256, OPT_FROM, OPT_CONFIG };

static const struct option long_options[] = {
        { "size", required_argument, NULL, OPT_SIZE }, { "from", required_argument, NULL, OPT_FROM },
        { "config", required_argument, NULL, OPT_CONFIG }, { "help", no_argument, NULL, 'h' }, { 0 },
};

static bool read_number(const char *text, uint64_t *ret)
{
        size_t n = strlen(text);

        if (n == 0 || n > 15 || strspn(text, "0123456789") != n)
                return false;
        *ret = strtoull(text, NULL, 10);
        return true;
}

static int take_option(struct options *o, int id, const char *value)
{
        switch (id) {
        case OPT_SIZE:
                o->has_size = true;
                return read_number(value, &o->size) ? 0 : usage_error(COMMAND, "--size wants a number, not \"%s\"", value);
        case OPT_FROM:
                o->is_consistency = true;
                return read_number(value, &o->from) && o->from > 0 ? 0 : usage_error(COMMAND, "--from wants a number above 0, not \"%s\"", value);
        case OPT_CONFIG:
                o->config = value;
                return 0;
        default:
                return usage_error(COMMAND, "an option that is unknown, or lacks its value");
        }
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
        if (!o->is_consistency && (optind == argc || !read_number(argv[optind++], &o->from)))
                return usage_error(COMMAND, "say the number of a record, or --from");
        if (argc - optind > 1)
                return usage_error(COMMAND, "more than one directory");
        o->dir = argv[optind];
        if (o->has_size && o->size < o->from + !o->is_consistency)
                return usage_error(COMMAND, "a log of %" PRIu64 " records does not hold that", o->size);
        return -1;
}

/* ---- The log ---- */

struct proving {
        const struct options *o;
        const struct audit_place *place;
        uint64_t n_records;
        struct rv_proof_file file;
        struct rv_proof_maker main, consistency;
        rv_merkle_hash checkpoint_root;          /* of that many records, as they are */
};

/* The log's @at-th line. The log ends where a segment is missing. */
static int next_line(struct rv_lines *lines, uint64_t at, const char **ret_line, size_t *ret_n, struct rv_error *err)
{
        int r = rv_lines_next(lines, ret_line, ret_n, err);

        return r > 0 ? lines->offset > 0 || rv_log_segment_first(lines->segment) == at : r;
}

/* Is it a better checkpoint than the one that is held? Of the wanted size, else the newest that covers it. */
static bool is_better(const struct proving *p, const struct rv_checkpoint *c)
{
        uint64_t wanted = p->o->has_size ? p->o->size : p->o->from + !p->o->is_consistency;

        if (c->size < wanted)
                return false;
        return !(p->file.has_checkpoint && p->o->has_size && p->file.checkpoint.size == p->o->size);
}

static void look_for_checkpoint(struct proving *p, const char *line, size_t n)
{
        _cleanup_(rv_json_unrefp) json_t *record = NULL;
        struct rv_record_head head;
        struct rv_checkpoint c;
        const json_t *note;

        rv_record_scan(line, n, &head);
        if (!rv_record_text_is(&head.kind, "checkpoint"))
                return;
        record = rv_log_parse(line, n);
        note = json_object_get(record, "note");
        if (!json_is_string(note) || rv_checkpoint_read(json_string_value(note), json_string_length(note), &c) < 0 ||
                !is_better(p, &c))
                return;
        p->file.has_checkpoint = true;
        p->file.checkpoint = c;
}

/* The first time through: how many records there are, and the checkpoint. */
static int look_through(struct proving *p, struct rv_error *err)
{
        struct rv_lines lines;
        const char *line;
        size_t n;
        int r;

        rv_lines_begin(&lines, p->place->audit_fd, p->place->path);
        for (; (r = next_line(&lines, p->n_records, &line, &n, err)) > 0; p->n_records++)
                look_for_checkpoint(p, line, n);
        rv_lines_close(&lines);
        return r;
}

static int keep_record(struct proving *p, const char *line, size_t n, struct rv_error *err)
{
        struct rv_record_form form;
        const char *why = rv_record_form(line, n, &form);

        if (why)
                return rv_error_set(err, -EBADMSG, "%s: record %" PRIu64 ": the line %s; `reeve audit verify` tells more", p->place->path, p->o->from, why);
        if (form.seq != p->o->from)
                return rv_error_set(err, -EBADMSG, "%s: record %" PRIu64 " stands where record %" PRIu64 " should be; `reeve audit verify` tells more", p->place->path, form.seq, p->o->from);
        memcpy(p->file.log_id, form.log_id.text, RV_LOG_ID_SIZE - 1);
        p->file.n_record = n;
        p->file.record = malloc(n + 1);
        if (!p->file.record)
                return rv_error_set(err, -ENOMEM, "out of memory");
        memcpy(p->file.record, line, n);
        p->file.record[n] = 0;
        return 0;
}

/* The second time through: every leaf. */
static int read_leaves(struct proving *p, uint64_t n_leaves, struct rv_error *err)
{
        struct rv_merkle tree = { 0 };
        struct rv_record_form form;
        struct rv_lines lines;
        rv_merkle_hash leaf;
        const char *line;
        size_t n;
        int r = 0;

        rv_lines_begin(&lines, p->place->audit_fd, p->place->path);
        while (r >= 0 && tree.size < n_leaves && (r = next_line(&lines, tree.size, &line, &n, err)) > 0) {
                rv_merkle_leaf(line, n, leaf);
                if (tree.size == 0 && !rv_record_form(line, n, &form))
                        memcpy(p->file.log_id, form.log_id.text, RV_LOG_ID_SIZE - 1);
                if (!p->o->is_consistency && tree.size == p->o->from) {
                        memcpy(p->file.leaf, leaf, sizeof(leaf));
                        r = keep_record(p, line, n, err);
                }
                rv_merkle_push(&tree, leaf);
                rv_proof_push(&p->main, leaf);
                rv_proof_push(&p->consistency, leaf);
                if (p->o->is_consistency && tree.size == p->o->from)
                        rv_merkle_root(&tree, p->file.from_root);
                if (tree.size == p->main.proof.size)
                        rv_merkle_root(&tree, p->file.root);
                if (tree.size == p->file.checkpoint.size)
                        rv_merkle_root(&tree, p->checkpoint_root);
        }
        rv_lines_close(&lines);
        if (r < 0)
                return r;
        return tree.size < n_leaves ? rv_error_set(err, -EBADMSG, "%s: the log was cut short while it was read", p->place->path) : 0;
}

static int choose_sizes(struct proving *p, uint64_t *ret_size, struct rv_error *err)
{
        uint64_t wanted = p->o->has_size ? p->o->size : p->o->from + !p->o->is_consistency;

        if (wanted > p->n_records)
                return rv_error_set(err, -ENOENT, "%s: the log has %" PRIu64 " records", p->place->path, p->n_records);
        *ret_size = p->o->has_size ? p->o->size : p->file.has_checkpoint ? p->file.checkpoint.size : p->n_records;
        p->file.has_consistency = p->file.has_checkpoint && p->file.checkpoint.size != *ret_size;
        return 0;
}

static int make_proof(struct proving *p, struct rv_error *err)
{
        const struct options *o = p->o;
        struct rv_proof_file *file = &p->file;
        uint64_t size = 0;
        int r = look_through(p, err);

        if (r == 0)
                r = choose_sizes(p, &size, err);
        if (r < 0)
                return r;
        r = o->is_consistency ? rv_proof_begin_consistency(&p->main, o->from, size)
                              : rv_proof_begin_inclusion(&p->main, o->from, size);
        if (r == 0 && file->has_consistency)
                r = rv_proof_begin_consistency(&p->consistency, size, file->checkpoint.size);
        if (r == 0)
                r = read_leaves(p, file->has_checkpoint ? RV_MAX(size, file->checkpoint.size) : size, err);
        if (r == 0)
                r = rv_proof_finish(&p->main, &file->proof);
        if (r == 0 && file->has_consistency)
                r = rv_proof_finish(&p->consistency, &file->consistency);
        if (r < 0)
                return rv_error_set(err, r, "%s: cannot make the proof: %s", p->place->path, strerror(-r));
        if (file->has_checkpoint &&
                memcmp(p->checkpoint_root, file->checkpoint.root, sizeof(file->checkpoint.root)) != 0)
                return rv_error_set(err, -EBADMSG, "%s: the checkpoint of %" PRIu64 " records was not made for those that are there; `reeve audit verify` tells more", p->place->path, file->checkpoint.size);
        return 0;
}

int audit_prove(int argc, char **argv)
{
        _cleanup_(rv_json_unrefp) json_t *json = NULL;
        struct options o = { 0 };
        struct audit_place place;
        struct proving p = { .o = &o, .place = &place };
        struct rv_error err = { 0 };
        int r = read_options(argc, argv, &o);

        if (r >= 0)
                return r;
        r = audit_place_open(o.config, o.dir, &place, &err);
        if (r == 0)
                r = make_proof(&p, &err);
        if (r == 0) {
                json = rv_proof_file_to_json(&p.file);
                r = print_json(json, "the proof");
        } else {
                say("%s: %s", COMMAND, err.message);
                r = (place.audit_fd < 0 && place.path) || r == -ENOMEM || r == -EIO || r == -EACCES ? EXIT_REEVE
                                                                                                    : EXIT_USAGE;
        }
        rv_proof_file_fini(&p.file);
        audit_place_close(&place);
        return r;
}
