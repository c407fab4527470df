/*
 * Requests as JSON: the scanner agrees with jansson on what is JSON and on what it says; a request that is taken has
 * one canonical form, which is itself a request with that form; one that is not is a problem that can be shown.
 */
#include "fuzz.h"

#include "base/json.h"
#include "request/document.h"
#include "request/request.h"

#include <ctype.h>

#define HUGE_INTEGER 999999999999999999   /* what document.h makes of an integer of more than 18 digits */

/* Is @read the value of @plain, but for the numbers that document.h reads as others? */
static bool is_same(const json_t *read, const json_t *plain)
{
        const char *key;
        json_t *child;
        size_t i;

        if (json_is_integer(read) && llabs(json_integer_value(read)) == HUGE_INTEGER)
                return json_is_integer(plain) && llabs(json_integer_value(plain)) >= HUGE_INTEGER;
        if (json_is_real(read))
                return json_is_real(plain);
        if (json_typeof(read) != json_typeof(plain))
                return false;
        if (json_is_object(read)) {
                json_object_foreach((json_t *)read, key, child)
                        if (!json_object_get(plain, key) || !is_same(child, json_object_get(plain, key)))
                                return false;
                return json_object_size(read) == json_object_size(plain);
        }
        if (json_is_array(read)) {
                json_array_foreach((json_t *)read, i, child)
                        if (i >= json_array_size(plain) || !is_same(child, json_array_get(plain, i)))
                                return false;
                return json_array_size(read) == json_array_size(plain);
        }
        return json_equal(read, plain);
}

/* jansson takes fewer numbers, and names without NUL only: that is why there is a scanner. */
static bool is_jansson_short(const json_error_t *e)
{
        return json_error_code(e) == json_error_numeric_overflow || json_error_code(e) == json_error_null_byte_in_key;
}

static void check_document(const char *text, size_t n)
{
        _cleanup_(rv_json_unrefp) json_t *read = NULL, *plain = NULL;
        _cleanup_(rv_problem_freep) struct rv_problem *problem = rv_problem_new(422, RV_PROBLEM_INVALID_TYPE, "fuzz");
        json_error_t e = { 0 };
        int r;

        r = rv_document_read(text, n, problem, &read);
        plain = json_loadb(text, n, JSON_ALLOW_NUL | JSON_DECODE_ANY, &e);
        FUZZ_CHECK(r == 0 || r == RV_DOCUMENT_E_INVALID, "%d", r);
        if (r == 0) {
                FUZZ_CHECK(json_is_object(read));
                FUZZ_CHECK(plain || is_jansson_short(&e), "jansson: %s", e.text);
                FUZZ_CHECK(!plain || is_same(read, plain));
                return;
        }
        FUZZ_CHECK(!read && problem->n_faults > 0);
        switch (problem->faults[0].code) {
        case RV_FAULT_SYNTAX:
        case RV_FAULT_ENCODING:
                /* jansson reads over a NUL that follows a number or a literal. */
                FUZZ_CHECK(!plain || memchr(text, 0, n), "jansson takes what is refused: %s", problem->faults[0].message);
                break;
        case RV_FAULT_TYPE:
                FUZZ_CHECK(plain ? !json_is_object(plain) : is_jansson_short(&e), "jansson: %s", e.text);
                break;
        default:
                break;
        }
}

static void check_pointer(const char *pointer)
{
        FUZZ_CHECK(!*pointer || *pointer == '/', "%s", pointer);
        FUZZ_CHECK(strlen(pointer) <= RV_PROBLEM_POINTER_MAX && rv_utf8_check(pointer, strlen(pointer), NULL));
        for (const char *c = pointer; *c; c++)
                FUZZ_CHECK(*c != '~' || c[1] == '0' || c[1] == '1', "%s", pointer);
}

static void check_problem(const struct rv_problem *problem)
{
        _cleanup_(rv_json_unrefp) json_t *value = rv_problem_to_json(problem);
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };

        FUZZ_CHECK(problem->status == 422 && problem->n_faults > 0 && problem->n_faults <= RV_PROBLEM_FAULTS_MAX);
        FUZZ_CHECK(rv_problem_error(problem) == 0);
        for (size_t i = 0; i < problem->n_faults; i++) {
                const struct rv_problem_fault *f = &problem->faults[i];

                check_pointer(f->pointer);
                FUZZ_CHECK(f->code < _RV_FAULT_MAX && fuzz_is_line(f->message), "%s", f->message);
                /* What is no JSON object has one fault only, at the whole document. */
                FUZZ_CHECK(f->code != RV_FAULT_SYNTAX || (!*f->pointer && problem->n_faults == 1), "%s", f->message);
        }
        FUZZ_CHECK(value && rv_json_canonical(value, &text) == 0 && rv_utf8_check(text.data, text.size, NULL));
}

static void check_bounds(const struct rv_request *q)
{
        size_t characters = 0, env_bytes = 0;

        FUZZ_CHECK(strlen(q->source) == q->source_bytes && rv_utf8_check(q->source, q->source_bytes, &characters));
        FUZZ_CHECK(characters == q->source_characters && characters >= 1 && characters <= RV_BOUND_MAX(source));
        FUZZ_CHECK(q->timeout_s >= RV_BOUND_MIN(timeout_s) && q->timeout_s <= RV_BOUND_MAX(timeout_s));
        FUZZ_CHECK(q->memory_mib >= RV_BOUND_MIN(memory_mib) && q->memory_mib <= RV_BOUND_MAX(memory_mib));
        FUZZ_CHECK(q->n_packages <= RV_BOUND_MAX(packages) && q->n_env <= RV_BOUND_MAX(env) &&
                   q->n_domains <= RV_BOUND_MAX(domains));
        for (size_t i = 1; i < q->n_packages; i++)
                FUZZ_CHECK(rv_package_compare(&q->packages[i - 1], &q->packages[i]) < 0);
        for (size_t i = 0; i < q->n_env; i++) {
                const struct rv_env_pair *e = &q->env[i];

                FUZZ_CHECK((isalpha((unsigned char)*e->name) || *e->name == '_') && strncmp(e->name, "REEVE_", 6) != 0, "%s", e->name);
                FUZZ_CHECK(!strchr(e->name, '=') && (i == 0 || strcmp(q->env[i - 1].name, e->name) < 0), "%s", e->name);
                env_bytes += strlen(e->name) + strlen(e->value) + 2;
        }
        FUZZ_CHECK(env_bytes <= RV_BOUND_MAX(env_bytes));
        FUZZ_CHECK((q->n_domains > 0) == (q->network_mode == RV_NETWORK_DOMAINS));
        for (size_t i = 1; i < q->n_domains; i++)
                FUZZ_CHECK(strcmp(q->domains[i - 1], q->domains[i]) < 0);
        FUZZ_CHECK(q->stdin_data && rv_utf8_check(q->stdin_data, q->stdin_bytes, &characters) &&
                   characters <= RV_BOUND_MAX(input));
}

/* The canonical text of a request is a request, whose canonical text it is. */
static void check_canonical(const struct rv_request *q, bool with_key)
{
        _cleanup_(rv_json_unrefp) json_t *value = rv_request_canonical(q, with_key), *again_value = NULL;
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 }, again = { 0 };
        _cleanup_(rv_request_freep) struct rv_request *same = NULL;
        _cleanup_(rv_problem_freep) struct rv_problem *problem = NULL;

        FUZZ_CHECK(value && rv_json_canonical(value, &text) == 0);
        FUZZ_CHECK(rv_request_parse(text.data, text.size, &same, &problem) == 0, "%s", text.data);
        again_value = rv_request_canonical(same, with_key);
        FUZZ_CHECK(again_value && rv_json_canonical(again_value, &again) == 0);
        FUZZ_CHECK(text.size == again.size && memcmp(text.data, again.data, text.size) == 0, "%s\n%s", text.data, again.data);
        FUZZ_CHECK((same->idempotency_key != NULL) == (with_key && q->idempotency_key));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        _cleanup_(rv_request_freep) struct rv_request *q = NULL;
        _cleanup_(rv_problem_freep) struct rv_problem *problem = NULL;
        int r;

        check_document((const char *)data, size);
        r = rv_request_parse((const char *)data, size, &q, &problem);
        FUZZ_CHECK(r == 0 || r == RV_REQUEST_E_INVALID, "%d", r);
        FUZZ_CHECK((r == 0) == (q != NULL) && (r != 0) == (problem != NULL));
        if (r) {
                check_problem(problem);
                return 0;
        }
        check_bounds(q);
        check_canonical(q, true);
        check_canonical(q, false);
        return 0;
}
