#include "run/outcome_read.h"

#include "audit/record_scan.h"
#include "run/result_json.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define US_MAX 9e15     /* whole numbers of this size are exact as a double */
#define SIGNALS_MAX 64

/*
 * What a member of another type or value would be read as does not matter: the outcome is written again at the end
 * and compared with what was read.
 */
static uint64_t number_at(const json_t *object, const char *name)
{
        json_int_t value = json_integer_value(json_object_get(object, name));

        return value > 0 ? (uint64_t)value : 0;
}

static uint32_t small_at(const json_t *object, const char *name)
{
        uint64_t value = number_at(object, name);

        return value <= UINT32_MAX ? (uint32_t)value : 0;
}

static bool is_at(const json_t *object, const char *name)
{
        return json_is_true(json_object_get(object, name));
}

static const char *text_at(const json_t *object, const char *name)
{
        return rv_json_get_string(object, name, NULL);
}

static int find_name(const char *name, int n, const char *(*name_of)(int i))
{
        for (int i = 0; name && i < n; i++)
                if (strcmp(name_of(i), name) == 0)
                        return i;
        return 0;
}

static const char *status_of(int i)
{
        return rv_status_name((enum rv_status)i);
}

static const char *phase_of(int i)
{
        return rv_phase_name((enum rv_phase)i);
}

static const char *started_of(int i)
{
        return rv_started_name((enum rv_started)i);
}

static uint8_t read_signal(const char *name)
{
        char own[RV_SIGNAL_NAME_SIZE];

        for (uint8_t i = 1; name && i <= SIGNALS_MAX; i++) {
                rv_signal_name(i, own);
                if (strcmp(own, name) == 0)
                        return i;
        }
        return 0;
}

static void read_reason(const json_t *value, struct rv_outcome *o)
{
        const json_t *reason = json_object_get(value, "reason"), *how = json_object_get(value, "exit");
        struct rv_classification *c = &o->reason;
        const char *code = text_at(reason, "code"), *message = text_at(reason, "message");

        c->status = (enum rv_status)find_name(text_at(value, "status"), RV_STATUS_MAX_, status_of);
        c->phase = (enum rv_phase)find_name(text_at(reason, "phase"), RV_PHASE_MAX_, phase_of);
        c->started = (enum rv_started)find_name(text_at(value, "started"), RV_STARTED_UNKNOWN + 1, started_of);
        if (code)
                (void)rv_code_parse(code, &c->code);
        snprintf(c->message, sizeof(c->message), "%s", message ? message : "");
        c->is_retryable = is_at(reason, "retryable");
        c->is_repeat_safe = is_at(value, "repeat_safe");
        c->has_exit_code = json_is_integer(json_object_get(how, "code"));
        c->exit_code = (uint8_t)number_at(how, "code");
        c->exit_signal = read_signal(text_at(how, "signal"));
        c->row = "stored";
        o->detail = json_object_get(reason, "detail");
        o->is_replayed = is_at(value, "replayed");
        o->is_unrecorded = !is_at(value, "recorded");
}

static int read_capture(const json_t *stream, struct rv_capture *ret)
{
        const json_t *text = json_object_get(stream, "text");

        ret->is_truncated = is_at(stream, "truncated");
        ret->characters = number_at(stream, "characters");
        ret->bytes = number_at(stream, "bytes");
        ret->has_invalid_utf8 = is_at(stream, "invalid_utf8");
        return json_is_string(text) ? rv_buf_append(&ret->text, json_string_value(text), json_string_length(text)) : 0;
}

static void read_timings(const json_t *timings, uint64_t us[RV_PHASE_MAX_])
{
        for (int i = 0; i < RV_PHASE_MAX_; i++) {
                double ms = json_number_value(json_object_get(timings, phase_of(i)));

                us[i] = ms > 0 && ms < US_MAX / 1000 ? (uint64_t)llround(ms * 1000) : 0;
        }
}

static void read_rest(const json_t *value, struct rv_outcome *o)
{
        const json_t *limits = json_object_get(value, "limits"), *network = json_object_get(value, "network");
        const json_t *runtime = json_object_get(value, "runtime"), *backend = json_object_get(value, "backend");
        const json_t *usage = json_object_get(value, "usage");

        o->run_id = text_at(value, "run_id");
        o->decision_id = text_at(value, "decision_id");
        o->tenant = text_at(value, "tenant");
        o->timeout_s = small_at(limits, "timeout_s");
        o->memory_mib = small_at(limits, "memory_mib");
        o->packages = json_object_get(value, "packages");
        o->network_mode = text_at(network, "mode");
        o->contacts = json_object_get(network, "contacts");
        o->denials = json_object_get(network, "denials");
        o->n_more_contacts = number_at(network, "more_contacts");
        o->n_more_denials = number_at(network, "more_denials");
        o->runtime_name = text_at(runtime, "name");
        o->runtime_digest = text_at(runtime, "digest");
        o->backend_name = text_at(backend, "name");
        o->backend_start = text_at(backend, "start");
        o->backend_isolation = text_at(backend, "isolation");
        o->backend_teardown = text_at(backend, "teardown");
        o->wall_us = RV_MIN(number_at(usage, "wall_ms"), UINT64_MAX / 2000) * 1000;
        o->cpu_us = RV_MIN(number_at(usage, "cpu_ms"), UINT64_MAX / 2000) * 1000;
        o->peak_memory_bytes = number_at(usage, "peak_memory_bytes");
        o->peak_processes = small_at(usage, "peak_processes");
        read_timings(json_object_get(value, "timings_ms"), o->timings_us);
}

/* The program's own JSON is checked without building a tree of it, and kept as it is spelt. */
static int read_result(const char *text, size_t n, const json_t *value, struct rv_result *ret)
{
        _cleanup_(rv_freep) char *copy = strndup(text, n);
        _cleanup_(rv_buf_fini) struct rv_buf compact = { 0 };
        const char *note = text_at(value, "result_note");
        char why[RV_RESULT_NOTE_SIZE];
        int r;

        snprintf(ret->note, sizeof(ret->note), "%s", note ? note : "");
        if (!copy)
                return rv_raise(-ENOMEM);
        if (strcmp(copy, "null") == 0)
                return 0;
        r = strlen(copy) == n ? rv_result_json_compact(copy, n, RV_RESULT_DEPTH_MAX, &compact, why, sizeof(why)) : 1;
        if (r != 0)
                return r < 0 ? rv_trace(r) : -EBADMSG;
        ret->text = rv_take(&copy);
        ret->size = n;
        return 0;
}

/* All but the result, as a tree. */
static int parse(const char *text, size_t n, const struct rv_record_member *result, json_t **ret)
{
        _cleanup_(rv_buf_fini) struct rv_buf rest = { 0 };
        size_t n_before = (size_t)(result->value - text);
        json_t *value;

        rv_buf_append(&rest, text, n_before);
        rv_buf_puts(&rest, "null");
        rv_buf_append(&rest, result->value + result->n, n - n_before - result->n);
        if (rv_buf_error(&rest) < 0)
                return rv_raise(-ENOMEM);
        if (memchr(rest.data, 0, rest.size))
                return -EBADMSG;
        value = json_loadb(rest.data, rest.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
        if (!json_is_object(value) || rv_json_is_deeper(value, RV_OUTCOME_DEPTH_MAX)) {
                json_decref(value);
                return -EBADMSG;
        }
        *ret = value;
        return 0;
}

struct comparison {
        const char *text;
        size_t n;
};

static int compare(void *ctx, const void *data, size_t n)
{
        struct comparison *c = ctx;

        if (n > c->n || memcmp(c->text, data, n) != 0)
                return -EBADMSG;
        c->text += n;
        c->n -= n;
        return 0;
}

static int check(const struct rv_outcome *o, const char *text, size_t n)
{
        struct comparison rest = { text, n };
        int r = rv_outcome_write(o, compare, &rest);

        return r == 0 && rest.n ? -EBADMSG : r;
}

int rv_outcome_read(const char *text, size_t n, struct rv_outcome_kept **ret)
{
        _cleanup_(rv_outcome_kept_freep) struct rv_outcome_kept *kept = calloc(1, sizeof(*kept));
        struct rv_record_member result[] = { RV_RECORD_MEMBER("result") };
        int r;

        if (!kept)
                return rv_raise(-ENOMEM);
        rv_record_members(text, n, result, 1);
        if (!result[0].value)
                return -EBADMSG;
        r = parse(text, n, &result[0], &kept->value);
        if (r == 0)
                r = read_result(result[0].value, result[0].n, kept->value, &kept->result);
        if (r == 0)
                r = read_capture(json_object_get(kept->value, "stdout"), &kept->out);
        if (r == 0)
                r = read_capture(json_object_get(kept->value, "stderr"), &kept->err);
        if (r < 0)
                return r;
        kept->outcome.out = &kept->out;
        kept->outcome.err = &kept->err;
        kept->outcome.result = &kept->result;
        read_reason(kept->value, &kept->outcome);
        read_rest(kept->value, &kept->outcome);
        r = check(&kept->outcome, text, n);
        if (r < 0)
                return r;
        *ret = rv_take(&kept);
        return 0;
}

void rv_outcome_kept_free(struct rv_outcome_kept *kept)
{
        if (!kept)
                return;
        json_decref(kept->value);
        rv_buf_fini(&kept->out.text);
        rv_buf_fini(&kept->err.text);
        rv_result_fini(&kept->result);
        free(kept);
}
