#include "audit_options.h"
#include "audit_runs.h"
#include "audit_select.h"

#include "audit/lines.h"
#include "audit/log_private.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define ID_PREFIX_MIN 8
#define EXIT_NOTHING 1

static const char help[] =
        "usage: reeve audit show [OPTION…] [DIR]\n"
        "       reeve audit show --id ID [--json] [DIR]\n"
        "\n"
        "Lists the runs of a log, each when its outcome stands there: when, whose, what policy said, what\n"
        "came of it. Rejected requests and outcomes that were given again have lines of their own. DIR is\n"
        "a state directory, or one with *.jsonl files; without it the configuration's.\n"
        "\n"
        "  --since TIME       runs decided at that time or later\n"
        "  --until TIME       and at that time or before\n"
        "  --tenant NAME      of this tenant\n"
        "  --rule ID          in which this rule decided something\n"
        "  --outcome WORD     with this status or code, such as failed or timeout; rejected, replayed, open\n"
        "  --package NAME     that asked for this package\n"
        "  --limit N          the first N of them\n"
        "  --all              all other records too: bundles, configurations, checkpoints, gaps\n"
        "  --id ID            the records of one run in full, by its run or decision id (8 digits or more)\n"
        "  --config FILE      the configuration\n"
        "  --json             one JSON object a line; with --id the records as they lie\n"
        "\n"
        "A TIME is as in RFC 3339, or 24h (ago), or Unix seconds.\n"
        "Exit status: 0, 1 no record has that ID, 2 a corrupt log or usage.\n";

enum {
        OPT_SINCE = AUDIT_OPT_OWN,
        OPT_UNTIL,
        OPT_TENANT,
        OPT_RULE,
        OPT_OUTCOME,
        OPT_PACKAGE,
        OPT_LIMIT,
        OPT_ALL,
        OPT_ID
};

static const struct option table[] = {
        { "since", required_argument, NULL, OPT_SINCE },     { "until", required_argument, NULL, OPT_UNTIL },
        { "tenant", required_argument, NULL, OPT_TENANT },   { "rule", required_argument, NULL, OPT_RULE },
        { "outcome", required_argument, NULL, OPT_OUTCOME }, { "package", required_argument, NULL, OPT_PACKAGE },
        { "limit", required_argument, NULL, OPT_LIMIT },     { "all", no_argument, NULL, OPT_ALL },
        { "id", required_argument, NULL, OPT_ID },           AUDIT_OPTION_CONFIG,
        AUDIT_OPTION_JSON,                                   AUDIT_OPTIONS_END,
};

struct show {
        const char *id;
        struct audit_filter filter;
        uint64_t limit, n_told;
        bool is_json;
        unsigned width;                          /* of the terminal; 0: there is none */
        int status;
};

/* ---- Lines for a person ---- */

static const char *text_of(const json_t *entry, const char *name)
{
        return rv_json_get_string(entry, name, "");
}

/* Fills up what is shorter than @width characters, and cuts what is longer where that would not fit a terminal. */
static void put_cell(struct rv_buf *out, const char *text, unsigned width, bool is_cut)
{
        size_t n = 0, at = 0, cut = 0;

        for (; text[at]; at++) {
                if (((uint8_t)text[at] & 0xc0) == 0x80)
                        continue;
                if (n == width - 1)
                        cut = at;
                if (n++ == width)
                        break;
        }
        if (n > width && is_cut) {
                rv_buf_append(out, text, cut);
                rv_buf_puts(out, "…");
        } else {
                rv_buf_puts(out, text);
        }
        rv_buf_printf(out, "%*s", n < width ? (int)(width - n) + 2 : 2, "");
}

/* "deny packages/pins-only", "allow", "allow, refused backend_denied" */
static void put_decision(struct rv_buf *out, const json_t *entry)
{
        rv_buf_puts(out, text_of(entry, "effect"));
        if (*text_of(entry, "section"))
                rv_buf_printf(out, " %s%s%s", text_of(entry, "section"), *text_of(entry, "rule") ? "/" : "", text_of(entry, "rule"));
        if (*text_of(entry, "refused") && strcmp(text_of(entry, "refused"), text_of(entry, "verdict_code")) != 0)
                rv_buf_printf(out, ", refused %s", text_of(entry, "refused"));
}

static void put_outcome(struct rv_buf *out, const json_t *entry)
{
        const json_t *error;
        size_t i;

        rv_buf_puts(out, *text_of(entry, "status") ? text_of(entry, "status") : "open");
        if (*text_of(entry, "code"))
                rv_buf_printf(out, " %s", text_of(entry, "code"));
        if (json_is_integer(json_object_get(entry, "http_status")))
                rv_buf_printf(out, " %lld", (long long)json_integer_value(json_object_get(entry, "http_status")));
        json_array_foreach(json_object_get(entry, "errors"), i, error)
                rv_buf_printf(out, " %s %s", text_of(error, "pointer"), text_of(error, "code"));
        if (json_is_true(json_object_get(entry, "recovered")))
                rv_buf_puts(out, ", recovered");
}

static void put_other(struct rv_buf *out, const json_t *entry)
{
        static const char *const names[] = { "role", "name", "version", "digest", "file", "message", "cause", "cut_bytes", "size", "root" };

        rv_buf_puts(out, text_of(entry, "type"));
        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++)
                if (*text_of(entry, names[i]))
                        rv_buf_printf(out, " %s", text_of(entry, names[i]));
}

static bool is_of_run(const json_t *entry)
{
        const char *type = text_of(entry, "type");

        return !strcmp(type, "run") || !strcmp(type, "rejected") || !strcmp(type, "replayed");
}

/* What the terminal lacks is taken from the ids, which --id takes shortened, and from what was decided. */
static int print_entry(const struct show *show, const json_t *entry)
{
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 }, decision = { 0 }, outcome = { 0 };
        unsigned decision_width = 34, outcome_width = 28, id_width = 32, fixed = 22 + 14 + 9;

        if (show->width && show->width < fixed + decision_width + outcome_width + 4 + id_width)
                id_width = 12;
        if (show->width && show->width < fixed + decision_width + outcome_width + 4 + id_width)
                decision_width = outcome_width = RV_MAX(show->width, fixed + 4 + id_width + 32) / 2 -
                        (fixed + 4 + id_width) / 2;
        rv_buf_printf(&line, "%.19sZ  ", text_of(entry, "time"));
        put_cell(&line, *text_of(entry, "tenant") ? text_of(entry, "tenant") : "-", 12, show->width);
        if (is_of_run(entry)) {
                put_decision(&decision, entry);
                put_outcome(&outcome, entry);
                put_cell(&line, decision.size ? decision.data : "-", decision_width, show->width);
                put_cell(&line, outcome.data, outcome_width, show->width);
                put_cell(&line, *text_of(entry, "started") ? text_of(entry, "started") : "-", 7, false);
                rv_buf_printf(&line, "%.*s", (int)id_width, text_of(entry, "run_id"));
        } else {
                put_other(&outcome, entry);
                rv_buf_puts(&line, outcome.data);
        }
        if (rv_buf_error(&line) || rv_buf_error(&decision) || rv_buf_error(&outcome))
                return -ENOMEM;
        print_text("%s", line.data);
        return 0;
}

static int on_entry(void *ctx, const json_t *entry)
{
        struct show *show = ctx;
        int r = 0;

        if (show->is_json) {
                show->status = print_json(entry, "the runs");
                if (show->status)
                        return 1;
        } else {
                r = print_entry(show, entry);
        }
        if (ferror(stdout))
                return 1;        /* main() says why */
        show->n_told++;
        return r < 0 ? r : show->limit && show->n_told == show->limit;
}

/* ---- Records in full ---- */

static bool has_id(struct rv_span member, const char *id)
{
        struct rv_span text = rv_span_string(member);

        return text.n >= strlen(id) && memcmp(text.text, id, strlen(id)) == 0;
}

static int print_record(const struct show *show, const struct audit_record *r)
{
        _cleanup_(rv_json_unrefp) json_t *value = NULL;
        _cleanup_(rv_freep) char *text = NULL;
        char *line, *rest;

        if (show->is_json) {
                fwrite(r->line, 1, r->n, stdout);
                fputc('\n', stdout);
                return 0;
        }
        if (rv_canonical_read(r->line, r->n, RV_LOG_DEPTH_MAX, &value) < 0)
                return -EINVAL;
        text = json_dumps(value, JSON_INDENT(2) | JSON_SORT_KEYS);
        if (!text)
                return -ENOMEM;
        for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
                print_text("%s", line);
        return 0;
}

/* ---- The command ---- */

static int show_record(struct show *show, struct audit_runs *runs, const struct audit_record *r)
{
        if (!show->id)
                return audit_runs_add(runs, r);
        if (!has_id(r->run_id, show->id) && !has_id(r->decision_id, show->id))
                return 0;
        show->n_told++;
        return print_record(show, r);
}

static int show_log(struct show *show, const struct audit_place *place, struct rv_error *err)
{
        struct audit_runs runs = { .filter = show->filter, .tell = on_entry, .ctx = show };
        struct rv_segments segments;
        struct audit_record record;
        struct rv_lines lines = { .fd = -EBADF };
        const char *line;
        size_t n;
        int r;

        r = rv_segments_open(place->audit_fd, place->path, &segments, err);
        if (r < 0)
                return r;
        r = audit_runs_init(&runs);
        if (r == 0)
                r = rv_lines_begin_range(&lines, &segments, 0, segments.size, err);
        while (r == 0 && (r = rv_lines_next(&lines, &line, &n, err)) > 0) {
                r = audit_record_read(line, n, &record);
                if (r == 0)
                        r = show_record(show, &runs, &record);
                if (r == -EINVAL)
                        rv_error_set(err, r, "%s/%s, byte %llu: is no record; `reeve audit verify` tells more", place->path, lines.segment,
                                     (unsigned long long)lines.offset);
        }
        rv_lines_close(&lines);
        if (r == 0)
                r = audit_runs_end(&runs);
        audit_runs_fini(&runs);
        rv_segments_fini(&segments);
        return r < 0 ? r : 0;
}

static int take(void *ctx, int id, const char *value)
{
        struct show *s = ctx;

        switch (id) {
        case OPT_SINCE: return audit_time_option("audit show", "--since", value, &s->filter.since_us);
        case OPT_UNTIL: return audit_time_option("audit show", "--until", value, &s->filter.until_us);
        case OPT_TENANT: s->filter.tenant = value; break;
        case OPT_RULE: s->filter.rule = value; break;
        case OPT_OUTCOME: s->filter.outcome = value; break;
        case OPT_PACKAGE: s->filter.package = value; break;
        case OPT_LIMIT:
                if (audit_number_parse(value, &s->limit) < 0 || s->limit == 0)
                        return usage_error("audit show", "--limit wants a number from 1 on, not \"%s\"", value);
                break;
        case OPT_ALL: s->filter.is_all = true; break;
        case OPT_ID:
                if (strlen(value) < ID_PREFIX_MIN)
                        return usage_error("audit show", "--id wants a run's or a decision's id, or at least its first %d digits", ID_PREFIX_MIN);
                s->id = value;
                break;
        }
        return 0;
}

/* Of the terminal; 0: there is none. */
static unsigned find_width(void)
{
        struct winsize size;

        return isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

int audit_show(int argc, char **argv)
{
        struct audit_place place = { .audit_fd = -EBADF, .state_fd = -EBADF };
        struct show show = { .filter.until_us = UINT64_MAX, .width = find_width() };
        struct audit_options o = { .command = "audit show", .help = help, .table = table, .n_words_max = 1, .take = take, .ctx = &show };
        struct rv_error err = { 0 };
        int r;

        r = audit_options_read(&o, argc, argv);
        if (r >= 0)
                return r;
        show.is_json = o.is_json;
        r = audit_place_open(o.config, o.words[0], &place, &err);
        if (r == 0)
                r = show_log(&show, &place, &err);
        audit_place_close(&place);
        if (r < 0) {
                (void)fflush(stdout);
                say("audit show: %s", err.message[0] ? err.message : strerror(-r));
                return r == -ENOMEM ? EXIT_REEVE : EXIT_USAGE;
        }
        if (show.id && !show.n_told) {
                say("audit show: no record of %s", show.id);
                return EXIT_NOTHING;
        }
        return show.status;
}
