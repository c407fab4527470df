/*
 * What replay costs beside the evaluation itself.
 *
 *     audit_replay DIRECTORY [DECISIONS [BUNDLE_DIRECTORY]]    (default: 200000, the bundle that is compiled in)
 *
 * Writes a log of that many decisions, with an outcome each, to DIRECTORY (make it on tmpfs; it is left there if KEEP
 * is set), half of them small and half with ten packages and five domains, no two facts the same. Then, in turns, the
 * evaluator alone judges facts of that log that are in memory already, and the log is replayed by one thread. Prints
 * decisions a second of both, the ratio of the medians, the rate of two threads, and the peak of memory.
 */
#include "audit/replay.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/hash.h"
#include "policy/decide.h"
#include "policy/facts.h"
#include "policy/provenance.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define N_ROUNDS 5
#define N_SAMPLE 10000           /* facts that the evaluator judges in a round */
#define SEGMENT_BYTES ((uint64_t)64 << 20)
#define LOG_ID "0123456789abcdef0123456789abcdef"

struct writing {
        const struct rv_bundle *bundle;
        int dir_fd, fd;
        uint64_t seq, size;
        char prev[RV_SHA256_HEX_SIZE];
        struct rv_buf out;
        json_t *sample;
        double evaluator[N_ROUNDS], replay[N_ROUNDS];
};

static void need(bool is_fine, const char *what)
{
        if (is_fine)
                return;
        perror(what);
        exit(1);
}

static void flush_segment(struct writing *w)
{
        need(rv_write_all(w->fd, w->out.data, w->out.size) == 0, "write");
        w->size += w->out.size;
        w->out.size = 0;
}

static void put(struct writing *w, const char *kind, json_t *take_body)
{
        size_t start;
        char name[40];

        if (w->fd < 0 || w->size + w->out.size >= SEGMENT_BYTES) {
                if (w->fd >= 0)
                        flush_segment(w);
                rv_close(w->fd);
                snprintf(name, sizeof(name), "%020llu.jsonl", (unsigned long long)w->seq);
                w->fd = openat(w->dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
                need(w->fd >= 0, name);
                w->size = 0;
        }
        json_object_set_new(take_body, "kind", json_string(kind));
        json_object_set_new(take_body, "log_id", json_string(LOG_ID));
        json_object_set_new(take_body, "instance", json_string(LOG_ID));
        json_object_set_new(take_body, "build", json_string("0.1.0"));
        json_object_set_new(take_body, "tenant", json_string("local"));
        json_object_set_new(take_body, "prev", json_string(w->prev));
        json_object_set_new(take_body, "seq", json_integer((json_int_t)w->seq));
        json_object_set_new(take_body, "time_us", json_integer((json_int_t)(1750000000000000 + w->seq * 1000)));
        start = w->out.size;
        need(rv_json_canonical(take_body, &w->out) == 0, "a record");
        rv_sha256_hex(w->out.data + start, w->out.size - start, w->prev);
        rv_buf_putc(&w->out, '\n');
        json_decref(take_body);
        w->seq++;
        if (w->out.size > (1u << 20))
                flush_segment(w);
}

static json_t *make_facts(unsigned i)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct rv_facts_tenant tenant = { "local", NULL };
        struct rv_request *request = NULL;
        struct rv_problem *problem = NULL;
        json_t *facts = NULL;

        rv_buf_printf(&text, "{\"language\":\"python\",\"source\":\"print(%u)\",\"timeout_s\":%u", i, 1 + i % 300);
        if (i % 2) {
                rv_buf_puts(&text, ",\"packages\":[");
                for (unsigned k = 0; k < 10; k++)
                        rv_buf_printf(&text, "%s\"package-%u%s%u.%u\"", k ? "," : "", (i * 7 + k * 131) % 5000, k % 3 ? "==" : ">=", i % 11, k);
                rv_buf_puts(&text, "],\"network\":{\"mode\":\"domains\",\"domains\":[");
                for (unsigned k = 0; k < 5; k++)
                        rv_buf_printf(&text, "%s\"h%u.example.com\"", k ? "," : "", (i + k * 17) % 997);
                rv_buf_puts(&text, "]},\"idempotency_key\":\"k\"");
        }
        rv_buf_puts(&text, "}");
        need(rv_request_parse(text.data, text.size, &request, &problem) == 0, "a request");
        need(rv_facts_build(request, &tenant, i % 3 ? "" : "someone@example.com", 1750000000 + i, &facts) == 0, "facts");
        rv_request_free(request);
        return facts;
}

static void put_decision(struct writing *w, unsigned i)
{
        _cleanup_(rv_json_unrefp) json_t *facts = make_facts(i), *engine = rv_policy_engine(), *verdict = NULL,
                                         *context = NULL;
        char id[33], hex[65];
        json_t *body;

        need(rv_policy_decide(w->bundle, facts, &verdict) == 0, "a verdict");
        context = json_pack("{s:O, s:s, s:O}", "facts", facts, "bundle", rv_bundle_digest(w->bundle), "limits", json_object_get(engine, "limits"));
        snprintf(id, sizeof(id), "%032x", i);
        body = json_pack("{s:s, s:s, s:s, s:s, s:O, s:O, s:O}", "decision_id", id, "run_id", id, "stage", "requested", "bundle",
                         rv_bundle_digest(w->bundle), "facts", facts, "engine", engine, "verdict", verdict);
        need(body && rv_json_canonical_sha256(context, hex) == 0, "a digest");
        json_object_set_new(body, "context_sha256", json_string(hex));
        need(rv_json_canonical_sha256(verdict, hex) == 0, "a digest");
        json_object_set_new(body, "verdict_sha256", json_string(hex));
        put(w, "decision", body);
        put(w, "outcome", json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "decision_id", id, "run_id", id, "status", "completed", "code", "ok", "started", "yes", "outcome_sha256", hex));
        if (json_array_size(w->sample) < N_SAMPLE)
                json_array_append(w->sample, facts);
}

static double rate(uint64_t n, uint64_t since_us)
{
        return (double)n * 1e6 / (double)(rv_clock_us(CLOCK_MONOTONIC) - since_us);
}

static double evaluate(const struct writing *w)
{
        uint64_t since = rv_clock_us(CLOCK_MONOTONIC);
        json_t *facts;
        size_t i;

        json_array_foreach(w->sample, i, facts) {
                json_t *verdict = NULL;

                need(rv_policy_decide(w->bundle, facts, &verdict) == 0, "a verdict");
                json_decref(verdict);
        }
        return rate(i, since);
}

static double replay(const struct writing *w, const char *dir, unsigned jobs)
{
        struct rv_replay_input input = { .bundles_fd = openat(w->dir_fd, "bundles", O_RDONLY | O_DIRECTORY | O_CLOEXEC), .to_seq = UINT64_MAX, .to_us = UINT64_MAX, .jobs = jobs };
        _cleanup_(rv_replay_freep) struct rv_replay_result *result = NULL;
        struct rv_segments segments;
        struct rv_error err = { 0 };
        uint64_t since, n;

        need(rv_segments_open(w->dir_fd, dir, &segments, &err) == 0, err.message);
        input.segments = &segments;
        since = rv_clock_us(CLOCK_MONOTONIC);
        need(rv_replay(&input, &result, &err) == 0, err.message);
        n = result->enforced.same.n;
        need(n && n == result->enforced.n_decisions && result->n_records == w->seq, "not all of them are the same");
        rv_segments_fini(&segments);
        rv_close(input.bundles_fd);
        return rate(n, since);
}

static int compare(const void *a, const void *b)
{
        double x = *(const double *)a, y = *(const double *)b;

        return x < y ? -1 : x > y;
}

static void measure(struct writing *w, const char *dir)
{
        struct rusage usage;
        double two;

        for (int i = 0; i < N_ROUNDS; i++) {
                w->evaluator[i] = evaluate(w);
                w->replay[i] = replay(w, dir, 1);
                printf("round %d   evaluator %8.0f /s   replay %8.0f /s\n", i + 1, w->evaluator[i], w->replay[i]);
        }
        qsort(w->evaluator, N_ROUNDS, sizeof(double), compare);
        qsort(w->replay, N_ROUNDS, sizeof(double), compare);
        two = replay(w, dir, 2);
        getrusage(RUSAGE_SELF, &usage);
        printf("median    evaluator %8.0f /s   replay %8.0f /s   ratio %.2f\n", w->evaluator[N_ROUNDS / 2], w->replay[N_ROUNDS / 2],
               w->replay[N_ROUNDS / 2] / w->evaluator[N_ROUNDS / 2]);
        printf("two threads %.0f /s; peak of memory %ld MiB (with %d facts kept for the evaluator)\n", two, usage.ru_maxrss / 1024, N_SAMPLE);
}

static void remove_log(int dir_fd)
{
        struct rv_segments segments;

        if (rv_segments_open(dir_fd, "", &segments, NULL) < 0)
                return;
        for (size_t i = 0; i < segments.n; i++)
                unlinkat(dir_fd, segments.all[i].name, 0);
        rv_segments_fini(&segments);
}

int main(int argc, char **argv)
{
        unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 200000;
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = NULL;
        struct writing w = { .fd = -EBADF, .sample = json_array() };
        struct rv_error err = { 0 };
        char bundles[4096];

        if (argc < 2) {
                fprintf(stderr, "usage: audit_replay DIRECTORY [DECISIONS [BUNDLE_DIRECTORY]]\n");
                return 2;
        }
        need((argc > 3 ? rv_bundle_load(argv[3], &bundle, &err) : rv_bundle_builtin(&bundle)) == 0, err.message);
        snprintf(bundles, sizeof(bundles), "%s/bundles", argv[1]);
        need(rv_mkdir_p(argv[1], 0700) == 0 && rv_bundle_keep(bundle, bundles) == 0, argv[1]);
        w.dir_fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        need(w.dir_fd >= 0, argv[1]);
        w.bundle = bundle;
        memset(w.prev, '0', 64);
        remove_log(w.dir_fd);
        for (unsigned i = 0; i < n; i++)
                put_decision(&w, i);
        flush_segment(&w);
        rv_close(w.fd);
        measure(&w, argv[1]);
        if (!getenv("KEEP"))
                remove_log(w.dir_fd);
        json_decref(w.sample);
        rv_buf_fini(&w.out);
        return 0;
}
