#include "run/run_private.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/*
 * A job: a program of reeve's own that runs in the same isolation as any other, on behalf of a run. It goes through the
 * pipeline's phases from start to collect; there is no decision on it, no record and no outcome. Whoever began it looks at
 * what was seen of it.
 */

static struct rv_request *make_request(const struct rv_job_spec *spec)
{
        struct rv_request *q = calloc(1, sizeof(*q));

        if (!q)
                return NULL;
        q->language = spec->language;
        q->network_mode = spec->network_mode;
        q->timeout_s = spec->timeout_s;
        q->memory_mib = spec->memory_mib;
        q->stdin_data = malloc(spec->input_bytes ? spec->input_bytes : 1);
        if (!q->stdin_data) {
                rv_request_free(q);
                return NULL;
        }
        if (spec->input_bytes)
                memcpy(q->stdin_data, spec->input, spec->input_bytes);
        q->stdin_bytes = spec->input_bytes;
        return q;
}

static void fill_plan(struct rv_run *job, const struct rv_job_spec *spec)
{
        const struct rv_config *config = job->core->config;

        job->plan = (struct rv_plan){
                .struct_size = sizeof(job->plan),
                .tenant = job->tenant->name,
                .runtime = job->tenant->runtime,
                .language = spec->language == RV_LANGUAGE_PYTHON ? RV_PLAN_PYTHON : RV_PLAN_JAVASCRIPT,
                .network = (uint32_t)spec->network_mode,
                .timeout_s = spec->timeout_s,
                .memory_mib = spec->memory_mib,
                .pids = config->limits.pids,
                .cpus_milli = config->limits.cpus_milli,
                .source = spec->source,
                .source_bytes = spec->source_bytes,
                .stdin_data = job->request->stdin_data,
                .stdin_bytes = job->request->stdin_bytes,
                .collect_ms = (uint32_t)config->phases.collect_ms,
                .teardown_ms = (uint32_t)config->phases.teardown_ms,
                .tool_env = spec->env,
                .n_tool_env = spec->n_env,
                .ca = spec->ca,
                .ca_bytes = spec->ca_bytes,
                .layer = spec->layer,
                .is_resolver = spec->network_mode == RV_NETWORK_REGISTRIES,
        };
        memcpy(job->plan.run_id, job->run_id, sizeof(job->plan.run_id));
}

static void on_output(void *ctx, enum rv_stream stream, const void *data, size_t n)
{
        struct rv_run *run = ctx;

        if (stream == RV_STREAM_STDOUT && !run->job_sink.is_full && run->job_sink.put(run->job_sink.ctx, data, n) < 0) {
                run->job_sink.is_full = true;
                if (run->job)
                        rv_run_stop(run->job, RV_STOP_OUTPUT_LIMIT);
        }
}

static void on_released(void *ctx, struct rv_run *job)
{
        struct rv_run *run = ctx;

        (void)job;
        run->is_job_over = true;
        rv__run_go_on(run);
}

int rv__job_start(struct rv_run *run, const struct rv_job_spec *spec)
{
        struct rv_run *job = calloc(1, sizeof(*job));

        if (!job)
                return rv_raise(-ENOMEM);
        job->request = make_request(spec);
        if (!job->request) {
                free(job);
                return rv_raise(-ENOMEM);
        }
        job->parent = run;
        job->core = run->core;
        job->tenant = run->tenant;
        job->backend = run->backend;
        job->backend_state = run->backend_state;
        job->seen.result_fd = -1;
        rv__packages_init(job);
        rv_capture_init(&job->out, 0, 0);
        rv_capture_init(&job->err, RV_CAPTURE_STDERR_CHARACTERS, RV_CAPTURE_CEILING_BYTES);
        job->input = (struct rv_run_input){ .ctx = run, .output = on_output, .released = on_released };
        rv__run_make_ids(job);
        fill_plan(job, spec);
        job->phase = RV_RUN_START;
        run->job = job;
        run->is_job_over = false;
        run->job_sink = spec->sink;
        rv__run_go_on(job);
        return 0;
}

void rv__job_free(struct rv_run *run)
{
        struct rv_run *job = run->job;

        run->job = NULL;
        rv_run_free(job);
}

const char *rv__job_fault(const struct rv_run *run, char ret[RV_REASON_SIZE])
{
        const struct rv_run *job = run->job;

        if (job->seen.fault_text[0])
                snprintf(ret, RV_REASON_SIZE, "%s", job->seen.fault_text);
        else if (job->evidence.gate_text[0])
                snprintf(ret, RV_REASON_SIZE, "%s", job->evidence.gate_text);
        else if (job->evidence.stop == RV_STOP_TIMEOUT)
                snprintf(ret, RV_REASON_SIZE, "it took longer than %u s", job->plan.timeout_s);
        else if (run->job_sink.is_full)
                snprintf(ret, RV_REASON_SIZE, "it wrote more than it may");
        else if (job->seen.n_oom_kills)
                snprintf(ret, RV_REASON_SIZE, "it met its memory limit of %u MiB", job->plan.memory_mib);
        else if (!job->has_seen || !job->seen.has_wait_status)
                snprintf(ret, RV_REASON_SIZE, "it could not be started");
        else if (WIFSIGNALED(job->seen.wait_status))
                snprintf(ret, RV_REASON_SIZE, "it was killed by signal %d", WTERMSIG(job->seen.wait_status));
        else if (job->seen.wait_status != 0)
                snprintf(ret, RV_REASON_SIZE, "it ended with exit status %d: %.200s", WEXITSTATUS(job->seen.wait_status), job->err.text.data ? job->err.text.data : "");
        else
                return NULL;
        return ret;
}
