#include "run/outcome.h"

#include "base/fd.h"
#include "run/terminal.h"

#include <stdio.h>
#include <string.h>

static void member_string(struct rv_json_stream *w, const char *key, const char *value)
{
        rv_json_stream_key(w, key);
        rv_json_stream_string(w, value);
}

static void member_integer(struct rv_json_stream *w, const char *key, uint64_t value)
{
        rv_json_stream_key(w, key);
        rv_json_stream_integer(w, value);
}

static void member_bool(struct rv_json_stream *w, const char *key, bool value)
{
        rv_json_stream_key(w, key);
        rv_json_stream_bool(w, value);
}

static void member_begin(struct rv_json_stream *w, const char *key)
{
        rv_json_stream_key(w, key);
        rv_json_stream_begin(w, '{');
}

static void write_detail(struct rv_json_stream *w, const struct rv_detail *d)
{
        rv_json_stream_begin(w, '{');
        if (d->limit_ms && d->limit_ms % 1000 == 0)
                member_integer(w, "limit_s", d->limit_ms / 1000);
        else if (d->limit_ms)
                member_integer(w, "limit_ms", d->limit_ms);
        if (d->limit_mib)
                member_integer(w, "limit_mib", d->limit_mib);
        if (d->limit_bytes)
                member_integer(w, "limit_bytes", d->limit_bytes);
        if (d->stream)
                member_string(w, "stream", d->stream);
        if (d->cause)
                member_string(w, "cause", d->cause);
        if (d->step[0])
                member_string(w, "step", d->step);
        if (d->error)
                member_string(w, "error", d->error);
        if (d->missing[0]) {
                rv_json_stream_key(w, "missing");
                rv_json_stream_begin(w, '[');
                rv_json_stream_string(w, d->missing);
                rv_json_stream_end(w, ']');
        }
        if (d->path[0])
                member_string(w, "path", d->path);
        rv_json_stream_end(w, '}');
}

static void write_reason(struct rv_json_stream *w, const struct rv_outcome *o)
{
        const struct rv_classification *c = &o->reason;

        member_string(w, "status", rv_status_name(c->status));
        member_begin(w, "reason");
        member_string(w, "code", rv_code_name(c->code));
        member_string(w, "phase", rv_phase_name(c->phase));
        member_string(w, "message", c->message);
        member_bool(w, "retryable", c->is_retryable);
        rv_json_stream_key(w, "detail");
        if (o->detail)
                rv_json_stream_value(w, o->detail);
        else
                write_detail(w, &c->detail);
        rv_json_stream_end(w, '}');
        member_string(w, "started", rv_started_name(c->started));
        member_bool(w, "repeat_safe", c->is_repeat_safe);
        member_bool(w, "replayed", o->is_replayed);
        member_bool(w, "recorded", !o->is_unrecorded);
}

static void write_exit(struct rv_json_stream *w, const struct rv_classification *c)
{
        char name[RV_SIGNAL_NAME_SIZE];

        member_begin(w, "exit");
        if (c->has_exit_code)
                member_integer(w, "code", c->exit_code);
        else
                member_string(w, "code", NULL);
        rv_signal_name(c->exit_signal, name);
        member_string(w, "signal", c->exit_signal ? name : NULL);
        rv_json_stream_end(w, '}');
}

static void write_capture(struct rv_json_stream *w, const char *key, const struct rv_capture *c)
{
        static const struct rv_capture nothing;

        if (!c)
                c = &nothing;
        member_begin(w, key);
        rv_json_stream_key(w, "text");
        rv_json_stream_well_formed(w, c->text.data, c->text.size);
        member_bool(w, "truncated", c->is_truncated);
        member_integer(w, "characters", c->characters);
        member_integer(w, "bytes", c->bytes);
        member_bool(w, "invalid_utf8", c->has_invalid_utf8);
        rv_json_stream_end(w, '}');
}

static void write_result(struct rv_json_stream *w, const struct rv_result *r)
{
        rv_json_stream_key(w, "result");
        if (r && r->text)
                rv_json_stream_raw(w, r->text, r->size);
        else
                rv_json_stream_string(w, NULL);
        member_string(w, "result_note", r && r->note[0] ? r->note : NULL);
}

static void write_packages(struct rv_json_stream *w, const json_t *packages)
{
        static const char none[] = "{\"layer\":null,\"stale\":false,\"lock\":[]}";

        rv_json_stream_key(w, "packages");
        if (packages)
                rv_json_stream_value(w, packages);
        else
                rv_json_stream_raw(w, none, sizeof(none) - 1);
}

static void member_array(struct rv_json_stream *w, const char *key, const json_t *array)
{
        rv_json_stream_key(w, key);
        if (array)
                rv_json_stream_value(w, array);
        else
                rv_json_stream_raw(w, "[]", 2);
}

static void write_network(struct rv_json_stream *w, const struct rv_outcome *o)
{
        member_begin(w, "network");
        member_string(w, "mode", o->network_mode ? o->network_mode : "none");
        member_array(w, "contacts", o->contacts);
        member_array(w, "denials", o->denials);
        member_integer(w, "more_contacts", o->n_more_contacts);
        member_integer(w, "more_denials", o->n_more_denials);
        rv_json_stream_end(w, '}');
}

static void write_backend(struct rv_json_stream *w, const struct rv_outcome *o)
{
        member_begin(w, "runtime");
        member_string(w, "name", o->runtime_name);
        member_string(w, "digest", o->runtime_digest);
        rv_json_stream_end(w, '}');
        member_begin(w, "backend");
        member_string(w, "name", o->backend_name);
        member_string(w, "start", o->backend_start);
        member_string(w, "isolation", o->backend_isolation);
        member_string(w, "teardown", o->backend_teardown);
        rv_json_stream_end(w, '}');
}

static void write_usage(struct rv_json_stream *w, const struct rv_outcome *o)
{
        static const enum rv_phase timed[] = {
                RV_PHASE_QUEUE, RV_PHASE_DECIDE, RV_PHASE_RESOLVE, RV_PHASE_PREPARE,
                RV_PHASE_START, RV_PHASE_RUN, RV_PHASE_COLLECT, RV_PHASE_TEARDOWN,
        };

        member_begin(w, "usage");
        member_integer(w, "wall_ms", (o->wall_us + 500) / 1000);
        member_integer(w, "cpu_ms", (o->cpu_us + 500) / 1000);
        member_integer(w, "peak_memory_bytes", o->peak_memory_bytes);
        if (o->peak_processes)
                member_integer(w, "peak_processes", o->peak_processes);
        else
                member_string(w, "peak_processes", NULL);
        rv_json_stream_end(w, '}');
        member_begin(w, "timings_ms");
        for (size_t i = 0; i < RV_N_ELEMENTS(timed); i++) {
                rv_json_stream_key(w, rv_phase_name(timed[i]));
                rv_json_stream_ms(w, o->timings_us[timed[i]]);
        }
        rv_json_stream_end(w, '}');
}

int rv_outcome_write(const struct rv_outcome *o, rv_sink_fn sink, void *ctx)
{
        struct rv_json_stream w;

        rv_json_stream_init(&w, sink, ctx);
        rv_json_stream_begin(&w, '{');
        member_string(&w, "schema", "reeve.outcome/1");
        member_string(&w, "run_id", o->run_id);
        member_string(&w, "decision_id", o->decision_id);
        member_string(&w, "tenant", o->tenant);
        write_reason(&w, o);
        write_exit(&w, &o->reason);
        write_capture(&w, "stdout", o->out);
        write_capture(&w, "stderr", o->err);
        write_result(&w, o->result);
        member_begin(&w, "limits");
        member_integer(&w, "timeout_s", o->timeout_s);
        member_integer(&w, "memory_mib", o->memory_mib);
        rv_json_stream_end(&w, '}');
        write_packages(&w, o->packages);
        write_network(&w, o);
        write_backend(&w, o);
        write_usage(&w, o);
        rv_json_stream_end(&w, '}');
        return rv_json_stream_finish(&w);
}

static int sink_fd(void *ctx, const void *data, size_t n)
{
        return rv_write_all(*(const int *)ctx, data, n);
}

int rv_outcome_write_fd(const struct rv_outcome *o, int fd)
{
        int r = rv_outcome_write(o, sink_fd, &fd);

        return r < 0 ? rv_trace(r) : rv_write_all(fd, "\n", 1);
}

static int sink_sha256(void *ctx, const void *data, size_t n)
{
        rv_sha256_update(ctx, data, n);
        return 0;
}

void rv_outcome_sha256(const struct rv_outcome *o, char ret_hex[RV_SHA256_HEX_SIZE])
{
        uint8_t digest[RV_SHA256_SIZE];
        struct rv_sha256 h;

        rv_sha256_init(&h);
        rv_outcome_write(o, sink_sha256, &h);
        rv_sha256_final(&h, digest);
        rv_hex(digest, sizeof(digest), ret_hex);
}

/* What a person calls the item of a refusal; NULL where the message is clear without it. */
static const char *item_word(enum rv_code code)
{
        switch (code) {
        case RV_CODE_PACKAGE_DENIED: return "package";
        case RV_CODE_NETWORK_DENIED: return "domain";
        case RV_CODE_LIMIT_DENIED: return "limit";
        default: return NULL;
        }
}

/* " (rule no-evil, policy.lua:2, package evil-thing)" */
static void add_place(const struct rv_outcome *o, struct rv_buf *out)
{
        const json_t *denial = json_array_get(json_object_get(o->detail, "denials"), 0);
        const char *rule = rv_json_get_string(o->detail, "rule", NULL);
        const char *item = rv_json_get_string(o->detail, "item", NULL);
        const char *file = rv_json_get_string(denial, "file", NULL), *word = item_word(o->reason.code);
        json_int_t line = json_integer_value(json_object_get(denial, "line"));
        const char *before = " (";

        if (rule && rule[0]) {
                rv_buf_printf(out, "%srule %s", before, rule);
                before = ", ";
        }
        if (file && line > 0) {
                rv_buf_printf(out, "%s%s:%" JSON_INTEGER_FORMAT, before, file, line);
                before = ", ";
        }
        if (item && item[0] && word) {
                rv_buf_printf(out, "%s%s %s", before, word, item);
                before = ", ";
        }
        if (before[0] == ',')
                rv_buf_putc(out, ')');
        else
                rv_buf_printf(out, " (%s)", rv_code_name(o->reason.code));
}

int rv_outcome_line(const struct rv_outcome *o, struct rv_buf *out)
{
        _cleanup_(rv_buf_fini) struct rv_buf raw = { 0 };
        const struct rv_classification *c = &o->reason;

        if (c->status == RV_STATUS_COMPLETED)
                return 0;
        if (c->status == RV_STATUS_BLOCKED) {
                rv_buf_printf(&raw, "%s: %s", c->code == RV_CODE_POLICY_ERROR ? "blocked, the policy failed" :
                              json_object_get(o->detail, "missing") || c->detail.missing[0] ? "blocked" : "blocked by policy", c->message);
                add_place(o, &raw);
        } else {
                rv_buf_printf(&raw, "%s (%s)", c->message, rv_code_name(c->code));
                if (c->status == RV_STATUS_OUTCOME_UNKNOWN)
                        rv_buf_puts(&raw, "; it had network access, so whether it had an effect is not known");
        }
        if (rv_buf_error(&raw) < 0)
                return rv_trace(rv_buf_error(&raw));
        rv_buf_puts(out, "reeve: ");
        rv_terminal_put_line(raw.data, out);
        return rv_buf_putc(out, '\n');
}
