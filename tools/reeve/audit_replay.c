#include "audit_options.h"
#include "audit_replay.h"
#include "audit_select.h"

#include "base/fd.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define JOBS_DEFAULT_MAX 16

static const char help[] =
        "usage: reeve audit replay [OPTION…] [DIR]\n"
        "       reeve audit replay --candidate BUNDLE [--fail-on LIST] [OPTION…] [DIR]\n"
        "\n"
        "Evaluates the decisions of a log again, each with the facts and the bundle that it records, and\n"
        "compares the verdicts. With --candidate another bundle judges, and what would change is told.\n"
        "DIR is a state directory, or one with *.jsonl files; without it the configuration's.\n"
        "\n"
        "  --from SEQ|TIME    the first decision: a record's number, or a time\n"
        "  --to SEQ|TIME      the last one\n"
        "  --tenant NAME      only of this tenant\n"
        "  --candidate BUNDLE a bundle directory\n"
        "  --fail-on LIST     exit status 1 if, and only if, one of these would happen: allow (what was\n"
        "                     denied is allowed), deny, widen (network), backend, key (is no longer\n"
        "                     required); with commas between\n"
        "  --bundles DIR      where bundles are kept by their digest (default: bundles/ of the state)\n"
        "  --jobs N           threads (default: one for each processor, 16 at most)\n"
        "  --key KEY|FILE     the key to verify the log with first, as for `reeve audit verify`\n"
        "  --no-verify        do not verify the log first\n"
        "  --config FILE      the configuration\n"
        "  --json             print the result as one JSON object\n"
        "\n"
        "A TIME is as in RFC 3339, or 24h (ago), or @SECONDS.\n"
        "Exit status: 0 all the same, 1 differences or a change of --fail-on, 2 a corrupt log, usage, or a\n"
        "candidate that fails on every decision, 3 no differences, but not all could be evaluated.\n";

enum { OPT_FROM = AUDIT_OPT_OWN, OPT_TO, OPT_TENANT, OPT_CANDIDATE, OPT_FAIL_ON, OPT_BUNDLES, OPT_JOBS, OPT_NO_VERIFY };

static const struct option table[] = {
        { "from", required_argument, NULL, OPT_FROM },       { "to", required_argument, NULL, OPT_TO },
        { "tenant", required_argument, NULL, OPT_TENANT },   { "candidate", required_argument, NULL, OPT_CANDIDATE },
        { "fail-on", required_argument, NULL, OPT_FAIL_ON }, { "bundles", required_argument, NULL, OPT_BUNDLES },
        { "jobs", required_argument, NULL, OPT_JOBS },       { "no-verify", no_argument, NULL, OPT_NO_VERIFY },
        AUDIT_OPTION_KEY,                                    AUDIT_OPTION_CONFIG,
        AUDIT_OPTION_JSON,                                   AUDIT_OPTIONS_END,
};

/* A number is a record's. */
static int parse_bound(const char *option, const char *text, uint64_t *ret_seq, uint64_t *ret_us)
{
        if (audit_number_parse(text, ret_seq) == 0 || audit_time_parse(text, ret_us) == 0)
                return 0;
        return usage_error("audit replay", "%s wants a record's number or a time, not \"%s\"", option, text);
}

static int parse_gates(struct replay_options *o, const char *list)
{
        for (const char *p = list; *p || p == list;) {
                size_t n = strcspn(p, ",");
                unsigned i = 0;

                while (i < RV_CHANGE_GATES &&
                        (strlen(rv_change_words[i]) != n || strncmp(rv_change_words[i], p, n) != 0))
                        i++;
                if (i == RV_CHANGE_GATES)
                        return usage_error("audit replay", "--fail-on takes allow, deny, widen, backend and key, with commas between, not \"%.*s\"", (int)n, p);
                o->gates |= 1u << i;
                p += n + (p[n] == ',');
        }
        o->has_gates = true;
        return 0;
}

static int parse_jobs(struct replay_options *o, const char *text)
{
        uint64_t n;

        if (audit_number_parse(text, &n) < 0 || n < 1 || n > RV_REPLAY_JOBS_MAX)
                return usage_error("audit replay", "--jobs wants a number from 1 to %d, not \"%s\"", RV_REPLAY_JOBS_MAX, text);
        o->input.jobs = (unsigned)n;
        return 0;
}

static int take(void *ctx, int id, const char *value)
{
        struct replay_options *o = ctx;

        switch (id) {
        case OPT_FROM: return parse_bound("--from", value, &o->input.from_seq, &o->input.from_us);
        case OPT_TO: return parse_bound("--to", value, &o->input.to_seq, &o->input.to_us);
        case OPT_FAIL_ON: return parse_gates(o, value);
        case OPT_JOBS: return parse_jobs(o, value);
        case OPT_TENANT: o->input.tenant = value; break;
        case OPT_CANDIDATE: o->candidate_dir = value; break;
        case OPT_BUNDLES: o->bundles_dir = value; break;
        case OPT_NO_VERIFY: o->is_unverified = true; break;
        }
        return 0;
}

/* -1 to go on, else the exit status. */
static int parse(int argc, char **argv, struct replay_options *ret)
{
        struct audit_options o = { .command = "audit replay", .help = help, .table = table, .n_words_max = 1, .take = take, .ctx = ret, .keys = &ret->keys };
        cpu_set_t cpus;
        int r;

        *ret = (struct replay_options){ .input = { .bundles_fd = -EBADF, .to_seq = UINT64_MAX, .to_us = UINT64_MAX } };
        ret->input.jobs = sched_getaffinity(0, sizeof(cpus), &cpus) == 0
                ? (unsigned)RV_MIN(CPU_COUNT(&cpus), JOBS_DEFAULT_MAX)
                : 1;
        r = audit_options_read(&o, argc, argv);
        if (r >= 0)
                return r;
        ret->config = o.config;
        ret->dir = o.words[0];
        ret->is_json = o.is_json;
        if (ret->has_gates && !ret->candidate_dir)
                return usage_error("audit replay", "--fail-on needs --candidate: it is about what a candidate would change");
        return -1;
}

/* Before privilege is given up: what the command line names. */
static int open_named(struct replay_options *o, struct rv_bundle **ret_candidate, struct rv_error *err)
{
        if (o->candidate_dir && rv_bundle_load(o->candidate_dir, ret_candidate, err) < 0)
                return rv_error_prefix(err, "the candidate %s", o->candidate_dir);
        o->input.candidate = *ret_candidate;
        if (!o->bundles_dir)
                return 0;
        o->input.bundles_fd = open(o->bundles_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        return o->input.bundles_fd < 0 ? rv_error_set(err, rv_raise(-errno), "cannot open %s: %s", o->bundles_dir, strerror(errno)) : 0;
}

/* What is replayed has to be what was written: the chain, the tree and the signatures come first. */
static int verify(struct replay_options *o, const struct audit_place *place, struct rv_error *err)
{
        struct rv_verify_input input = {
                .audit_fd = place->audit_fd, .path = place->path, .keys = o->keys.keys, .is_vouched = o->keys.n > 0
        };
        struct rv_verify_result result;
        int r = 0;

        if (o->is_unverified)
                return 0;
        if (!o->keys.n)
                r = audit_key_beside(&o->keys, place, err);
        input.n_keys = o->keys.n;
        if (r >= 0)
                r = rv_verify_log(&input, &result, err);
        if (r <= 0)
                return r;
        return rv_error_set(err, -EBADMSG, "the log is not what it was when it was written: %s%s%s (record %" PRIu64 ") [%s]; see `reeve audit verify`",
                            result.fault.segment, result.fault.segment[0] ? ": " : "", result.fault.text, result.fault.seq,
                            rv_verify_what_name(result.fault.what));
}

static int run(
        struct replay_options *o, const struct audit_place *place, struct rv_replay_result **ret, struct rv_error *err)
{
        struct rv_segments segments;
        int r;

        if (o->input.bundles_fd < 0)
                o->input.bundles_fd = place->state_fd >= 0 ? openat(place->state_fd, "bundles", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                                                           : openat(place->audit_fd, "../bundles", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = verify(o, place, err);
        if (r == 0)
                r = rv_segments_open(place->audit_fd, place->path, &segments, err);
        if (r < 0)
                return r;
        o->input.segments = &segments;
        r = rv_replay(&o->input, ret, err);
        rv_segments_fini(&segments);
        return r;
}

int audit_replay(int argc, char **argv)
{
        _cleanup_(rv_replay_freep) struct rv_replay_result *result = NULL;
        _cleanup_(rv_bundle_freep) struct rv_bundle *candidate = NULL;
        struct audit_place place = { .audit_fd = -EBADF, .state_fd = -EBADF };
        struct rv_error err = { 0 };
        struct replay_options o;
        int r;

        r = parse(argc, argv, &o);
        if (r >= 0)
                return r;
        r = open_named(&o, &candidate, &err);
        if (r == 0)
                r = audit_place_open(o.config, o.dir, &place, &err);
        if (r == 0)
                r = run(&o, &place, &result, &err);
        audit_place_close(&place);
        rv_close(o.input.bundles_fd);
        if (r < 0) {
                say("audit replay: %s", err.message[0] ? err.message : strerror(-r));
                return r == -ENOMEM ? EXIT_REEVE : EXIT_USAGE;
        }
        if (o.is_json)
                return replay_print_json(&o, result) ? EXIT_REEVE : replay_status(&o, result);
        replay_print(&o, result);
        return replay_status(&o, result);
}
