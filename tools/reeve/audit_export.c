#include "audit_options.h"
#include "audit_record.h"
#include "audit_select.h"

#include "audit/lines.h"
#include "audit/log_private.h"
#include "audit/merkle.h"
#include "base/fd.h"
#include "base/hash.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
        "usage: reeve audit export --format jsonl|csv [OPTION…] [DIR]\n"
        "\n"
        "Writes the records of a log, all of them or those that are asked for: as they lie, byte for byte\n"
        "(jsonl), or as a table with a row for each (csv; docs/audit.md has its columns). When it is done\n"
        "the last lines on standard error say how many records that were, and the size, the last hash and\n"
        "the root of the whole log, by which `reeve audit verify` and others can tell that none is missing.\n"
        "DIR is a state directory, or one with *.jsonl files; without it the configuration's.\n"
        "\n"
        "  --format FORMAT    jsonl or csv\n"
        "  --since TIME       records written at that time or later\n"
        "  --until TIME       and at that time or before\n"
        "  --tenant NAME      of this tenant\n"
        "  --output FILE      write there instead of standard output (mode 0600)\n"
        "  --config FILE      the configuration\n"
        "\n"
        "A TIME is as in RFC 3339, or 24h (ago), or Unix seconds.\n"
        "Exit status: 0, 2 a corrupt log, records that are missing, or usage, 125 the export could not be\n"
        "written.\n";

enum { OPT_FORMAT = AUDIT_OPT_OWN, OPT_SINCE, OPT_UNTIL, OPT_TENANT, OPT_OUTPUT };

static const struct option table[] = {
        { "format", required_argument, NULL, OPT_FORMAT }, { "since", required_argument, NULL, OPT_SINCE },
        { "until", required_argument, NULL, OPT_UNTIL },   { "tenant", required_argument, NULL, OPT_TENANT },
        { "output", required_argument, NULL, OPT_OUTPUT }, AUDIT_OPTION_CONFIG,
        AUDIT_OPTIONS_END,
};

struct export {
        const char *format, *tenant, *output;
        uint64_t since_us, until_us;
        bool is_csv;
        int fd;
        struct rv_buf row;
        /* Of what was written, and of the whole log. */
        uint64_t n, first_seq, last_seq, n_log, next_seq;
        bool has_gap;
        uint64_t gap_at, gap_seq;         /* the first record that is not there, and the one in its place */
        struct rv_merkle tree;
        char last_sha256[RV_SHA256_HEX_SIZE];
        char log_id[RV_LOG_ID_SIZE];
        int write_error;
};

/* ---- CSV (RFC 4180) ---- */

/* X(column, how): a column's cell is a member as a text, or what is said in put_special(). */
#define COLUMNS(X) \
        X(seq, MEMBER) \
        X(time, TIME) X(time_us, MEMBER) X(kind, MEMBER) X(tenant, MEMBER) X(principal, MEMBER) X(request_id, MEMBER) \
                X(trace_id, MEMBER) X(run_id, MEMBER) X(decision_id, MEMBER) X(stage, MEMBER) X(effect, VERDICT) X( \
                        verdict_code, VERDICT) X(section, VERDICT) X(rule, VERDICT) X(item, VERDICT) X(bundle, MEMBER) \
                        X(refused, MEMBER) X(status, MEMBER) X(code, MEMBER) X(started, MEMBER) X(recovered, MEMBER) \
                                X(digest, MEMBER) X(role, MEMBER) X(message, MEMBER) X(cause, MEMBER) X(size, MEMBER) \
                                        X(root, MEMBER) X(outcome_sha256, MEMBER) X(context_sha256, MEMBER) \
                                                X(verdict_sha256, MEMBER) X(instance, MEMBER) X(build, MEMBER) \
                                                        X(prev, MEMBER) X(sha256, LINE)

/* A spreadsheet would take a cell that begins so for a formula. */
static bool is_formula(const char *text)
{
        return *text && strchr("=+-@\t\r", *text);
}

static void put_text(struct rv_buf *row, const char *text)
{
        bool is_quoted = text[strcspn(text, ",\"\r\n")] != 0;

        if (row->size)
                rv_buf_putc(row, ',');
        if (is_quoted)
                rv_buf_putc(row, '"');
        if (is_formula(text))
                rv_buf_putc(row, '\'');
        for (; *text; text++) {
                if (*text == '"')
                        rv_buf_putc(row, '"');
                rv_buf_putc(row, *text);
        }
        if (is_quoted)
                rv_buf_putc(row, '"');
}

static void put_member(struct rv_buf *row, struct rv_span member)
{
        _cleanup_(rv_json_unrefp) json_t *text = audit_record_text(member);

        put_text(row, json_is_string(text) ? json_string_value(text) : "");
}

static const char *of_verdict(const json_t *verdict, const char *column)
{
        const json_t *denial = json_array_get(json_object_get(verdict, "denials"), 0);

        if (!strcmp(column, "effect"))
                return rv_json_get_string(verdict, "effect", "");
        if (!strcmp(column, "verdict_code"))
                return rv_json_get_string(verdict, "code", "");
        return rv_json_get_string(denial, column, "");
}

static int make_row(struct export *e, const struct audit_record *r, const char *sha256)
{
        _cleanup_(rv_json_unrefp) json_t *verdict = NULL;
        char time[AUDIT_TIME_SIZE];

        if (r->verdict.text && rv_canonical_read(r->verdict.text, r->verdict.n, RV_LOG_DEPTH_MAX, &verdict) < 0)
                return -EINVAL;
        e->row.size = 0;
#define MEMBER(column) put_member(&e->row, r->column)
#define TIME(column) put_text(&e->row, audit_time_text(r->time_number, true, time))
#define VERDICT(column) put_text(&e->row, of_verdict(verdict, #column))
#define LINE(column) put_text(&e->row, sha256)
#define X(column, how) how(column);
        COLUMNS(X)
#undef X
        rv_buf_puts(&e->row, "\r\n");
        return rv_buf_error(&e->row);
}

static void put_header(struct rv_buf *row)
{
#define X(column, how) put_text(row, #column);
        COLUMNS(X)
#undef X
        rv_buf_puts(row, "\r\n");
}

/* ---- Records ---- */

static int write_out(struct export *e, const void *data, size_t n)
{
        int r = rv_write_all(e->fd, data, n);

        if (r < 0)
                e->write_error = r;
        return r;
}

static bool is_wanted(const struct export *e, const struct audit_record *r)
{
        return r->time_number >= e->since_us && r->time_number <= e->until_us &&
                (!e->tenant || audit_record_is(r->tenant, e->tenant));
}

static int export_record(struct export *e, const struct audit_record *r, const char *sha256)
{
        int ret;

        if (!is_wanted(e, r))
                return 0;
        if (e->is_csv)
                ret = make_row(e, r, sha256);
        else
                ret = rv_buf_append(&e->row, r->line, r->n) < 0 || rv_buf_putc(&e->row, '\n') < 0 ? -ENOMEM : 0;
        if (ret == 0)
                ret = write_out(e, e->row.data, e->row.size);
        e->row.size = 0;
        e->first_seq = e->n++ ? e->first_seq : r->seq_number;
        e->last_seq = r->seq_number;
        return ret;
}

/* Segments may have been moved away, or records left out. */
static void look_for_gap(struct export *e, uint64_t seq)
{
        if (seq != e->next_seq && !e->has_gap) {
                e->has_gap = true;
                e->gap_at = e->next_seq;
                e->gap_seq = seq;
        }
        e->next_seq = seq + 1;
}

static int export_line(struct export *e, const char *line, size_t n)
{
        struct audit_record record;
        rv_merkle_hash leaf;
        int r;

        r = audit_record_read(line, n, &record);
        if (r < 0)
                return r;
        rv_merkle_leaf(line, n, leaf);
        rv_merkle_push(&e->tree, leaf);
        rv_sha256_hex(line, n, e->last_sha256);
        look_for_gap(e, record.seq_number);
        if (e->n_log++ == 0)
                snprintf(e->log_id, sizeof(e->log_id), "%.*s", (int)RV_MIN(rv_span_string(record.log_id).n, sizeof(e->log_id)), rv_span_string(record.log_id).text ? rv_span_string(record.log_id).text : "");
        return export_record(e, &record, e->last_sha256);
}

static void print_trailer(const struct export *e)
{
        rv_merkle_hash root;
        char hex[RV_SHA256_HEX_SIZE];

        rv_merkle_root(&e->tree, root);
        rv_hex(root, sizeof(root), hex);
        if (e->n)
                say("exported %llu records, seq %llu to %llu, of the %llu of log %s", (unsigned long long)e->n, (unsigned long long)e->first_seq,
                    (unsigned long long)e->last_seq, (unsigned long long)e->n_log, e->log_id);
        else
                say("exported 0 records, of the %llu of log %s", (unsigned long long)e->n_log, e->log_id);
        if (e->has_gap) {
                say("audit export: this is not the whole log: record %llu stands where record %llu should be; `reeve audit verify` tells more",
                    (unsigned long long)e->gap_seq, (unsigned long long)e->gap_at);
                return;
        }
        say("the whole log: size %llu, root %s, last hash %s", (unsigned long long)e->n_log, hex, e->last_sha256);
}

static int export_log(struct export *e, const struct audit_place *place, struct rv_error *err)
{
        struct rv_segments segments;
        struct rv_lines lines = { .fd = -EBADF };
        const char *line;
        size_t n;
        int r;

        r = rv_segments_open(place->audit_fd, place->path, &segments, err);
        if (r < 0)
                return r;
        if (e->is_csv) {
                put_header(&e->row);
                r = write_out(e, e->row.data, e->row.size);
                e->row.size = 0;
        }
        if (r == 0)
                r = rv_lines_begin_range(&lines, &segments, 0, segments.size, err);
        while (r == 0 && (r = rv_lines_next(&lines, &line, &n, err)) > 0) {
                r = export_line(e, line, n);
                if (r == -EINVAL && !e->write_error)
                        rv_error_set(err, r, "%s/%s, byte %llu: is no record; `reeve audit verify` tells more", place->path, lines.segment,
                                     (unsigned long long)lines.offset);
        }
        rv_lines_close(&lines);
        rv_segments_fini(&segments);
        return r;
}

/* ---- The command ---- */

static int take(void *ctx, int id, const char *value)
{
        struct export *e = ctx;

        switch (id) {
        case OPT_FORMAT:
                e->format = value;
                e->is_csv = !strcmp(value, "csv");
                if (!e->is_csv && strcmp(value, "jsonl") != 0)
                        return usage_error("audit export", "--format is jsonl or csv, not \"%s\"", value);
                break;
        case OPT_SINCE: return audit_time_option("audit export", "--since", value, &e->since_us);
        case OPT_UNTIL: return audit_time_option("audit export", "--until", value, &e->until_us);
        case OPT_TENANT: e->tenant = value; break;
        case OPT_OUTPUT: e->output = value; break;
        }
        return 0;
}

static int run(struct export *e, const struct audit_options *o, struct rv_error *err)
{
        struct audit_place place = { .audit_fd = -EBADF, .state_fd = -EBADF };
        int r;

        r = audit_place_open(o->config, o->words[0], &place, err);
        if (r == 0)
                r = export_log(e, &place, err);
        audit_place_close(&place);
        if (r == 0 && e->output && fsync(e->fd) < 0 && errno != EINVAL && errno != EROFS)
                r = e->write_error = -errno;
        return r;
}

int audit_export(int argc, char **argv)
{
        struct export e = { .until_us = UINT64_MAX, .fd = -EBADF };
        struct audit_options o = { .command = "audit export", .help = help, .table = table, .n_words_max = 1, .take = take, .ctx = &e };
        struct rv_error err = { 0 };
        int r;

        r = audit_options_read(&o, argc, argv);
        if (r >= 0)
                return r;
        if (!e.format)
                return usage_error("audit export", "say --format jsonl or --format csv");
        /* Before privilege is given up. */
        e.fd = e.output ? open(e.output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0600) : STDOUT_FILENO;
        if (e.fd < 0) {
                say("audit export: cannot open %s: %s", e.output, strerror(errno));
                return EXIT_REEVE;
        }
        r = run(&e, &o, &err);
        if (e.output)
                rv_close(e.fd);
        rv_buf_fini(&e.row);
        if (r == 0) {
                print_trailer(&e);
                return e.has_gap ? EXIT_USAGE : 0;
        }
        if (e.write_error)
                say("audit export: cannot write to %s: %s; what is there is not complete", e.output ? e.output : "standard output", strerror(-e.write_error));
        else
                say("audit export: %s", err.message[0] ? err.message : strerror(-r));
        return e.write_error || r == -ENOMEM ? EXIT_REEVE : EXIT_USAGE;
}
