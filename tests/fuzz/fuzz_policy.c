/*
 * Policies: whatever text stands in policy.lua, judging facts by it ends in time with a verdict that is well-formed,
 * has a canonical form, never widens, and is the same bytes when judged again; and the checker finds what loading
 * finds. Inputs are made by a grammar (policy_grammar.c).
 */
#include "fuzz.h"

#include "base/clock.h"
#include "base/fd.h"
#include "policy/bundle_files.h"
#include "policy/check.h"
#include "policy/decide.h"
#include "policy/facts.h"

#include <unistd.h>

#define EVALUATION_MS 250        /* the budget of the phase `decide`, for … */
#define EVALUATION_ITEM_MS 1     /* … a request without packages; more for each */
#define TRIES 3                  /* a busy machine makes caches cold; the time is that of the processor, as the budget is */

/* With sanitizers each byte that a host function touches costs many times as much. */
#if defined(__SANITIZE_ADDRESS__)
#define SLOWNESS 8
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLOWNESS 8
#endif
#endif
#ifndef SLOWNESS
#define SLOWNESS 1
#endif

static const char lib_text[] = "local function is_young(p) return p.age_days < 7 end\nreturn { is_young = is_young, names = { 'a', 'b' } }\n";
static const char data_text[] = "{\"names\":[\"six\",\"attrs\"],\"limits\":{\"a\":1,\"b\":[true,null,\"x\"]}}";

static const char *const requests[] = {
        "{\"language\":\"python\",\"source\":\"print(1)\"}",
        "{\"language\":\"python\",\"source\":\"1\",\"packages\":[\"six==1.16.0\",\"requests[socks]>=2,<3\",\"evil-x>=0\"],\"env\":{\"A\":\"1\",\"B\":\"2\"}}",
        ("{\"language\":\"javascript\",\"source\":\"1\",\"packages\":[\"lodash@^4\",\"@scope/x@1.2.3\"],\"idempotency_key\":\"k\",\"timeout_s\":300,"
         "\"network\":{\"mode\":\"domains\",\"domains\":[\"api.example.com\",\"other.example\"]}}"),
        "{\"language\":\"python\",\"source\":\"1\",\"memory_mib\":2048,\"network\":{\"mode\":\"any\"}}",
};

#define N_FACTS (RV_N_ELEMENTS(requests) + 1)

static json_t *build_facts(const char *text)
{
        _cleanup_(rv_json_unrefp) json_t *labels = json_pack("{s:s}", "team", "blue");
        struct rv_facts_tenant tenant = { "local", labels };
        struct rv_request *q = NULL;
        struct rv_problem *problem = NULL;
        json_t *facts = NULL;

        FUZZ_CHECK(rv_request_parse(text, strlen(text), &q, &problem) == 0, "%s", text);
        FUZZ_CHECK(rv_facts_build(q, &tenant, "alice", 1750000000, &facts) == 0);
        rv_request_free(q);
        return facts;
}

/* What is known once packages are resolved, and what is not; one that others brought in has been built. */
static const char lock_text[] =
        "{\"packages\":[{\"name\":\"evil-x\",\"version\":\"2.0rc1\",\"direct\":true,\"requested\":\"evil-x>=0\",\"kind\":\"wheel\",\"hash\":\"sha256:00\","
        "\"published_at\":1749000000,\"license\":\"MIT\",\"yanked\":true,\"install_script\":false,\"size_bytes\":12345,\"registry_hash\":true,\"path\":[\"evil-x\"]},"
        "{\"name\":\"idna\",\"version\":\"3.4\",\"kind\":\"built\",\"license\":\"\",\"path\":[\"requests\",\"idna\"]},"
        "{\"name\":\"six\",\"version\":\"1.16.0\",\"direct\":true,\"requested\":\"six==1.16.0\",\"kind\":\"wheel\",\"hash\":\"sha256:00\","
        "\"published_at\":1749950000,\"license\":\"MIT\",\"yanked\":false,\"install_script\":false,\"size_bytes\":1,\"path\":[\"six\"]}]}";

static json_t *build_resolved(const char *text)
{
        _cleanup_(rv_json_unrefp) json_t *asked = build_facts(text), *lock = json_loads(lock_text, 0, NULL);
        json_t *resolved = NULL;

        FUZZ_CHECK(rv_facts_resolve(asked, lock, 1750000000, &resolved) == 0);
        return resolved;
}

static json_t *facts[N_FACTS];
static struct rv_bundle_file files[3];
static char dir[64];

static void remove_dir(void)
{
        static const char *const names[] = { "/policy.lua", "/lib/x.lua", "/data/x.json", "/lib", "/data", "" };
        char path[128];

        for (size_t i = 0; i < RV_N_ELEMENTS(names); i++) {
                snprintf(path, sizeof(path), "%s%s", dir, names[i]);
                remove(path);
        }
        for (size_t i = 0; i < N_FACTS; i++)
                json_decref(facts[i]);
        json_decref(files[0].data);
}

static void write_in_dir(const char *name, const void *text, size_t n)
{
        char path[128];

        snprintf(path, sizeof(path), "%s/%s", dir, name);
        FUZZ_CHECK(rv_write_file(path, text, n, 0600, false) == 0, "%s", path);
}

static void prepare(void)
{
        char path[128];

        if (facts[0])
                return;
        for (size_t i = 0; i < RV_N_ELEMENTS(requests); i++)
                facts[i] = build_facts(requests[i]);
        facts[N_FACTS - 1] = build_resolved(requests[1]);
        files[0] = (struct rv_bundle_file){ "data/x.json", data_text, sizeof(data_text) - 1, json_loads(data_text, 0, NULL) };
        files[1] = (struct rv_bundle_file){ "lib/x.lua", lib_text, sizeof(lib_text) - 1, NULL };
        files[2] = (struct rv_bundle_file){ .path = "policy.lua" };
        /* In memory where there is such a place: the checker reads a directory. */
        snprintf(dir, sizeof(dir), "%s/reeve-fuzz-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
        FUZZ_CHECK(mkdtemp(dir));
        atexit(remove_dir);
        for (size_t i = 0; i < 2; i++) {
                snprintf(path, sizeof(path), "%s/%s", dir, i ? "lib" : "data");
                FUZZ_CHECK(rv_mkdir_p(path, 0700) == 0);
                write_in_dir(files[i].path, files[i].text, files[i].size);
        }
}

/* ---- What a verdict has to be ---- */

static const char *text_of(const json_t *object, const char *name)
{
        const json_t *value = json_object_get(object, name);

        FUZZ_CHECK(json_is_string(value) && json_string_length(value) == strlen(json_string_value(value)), "%s", name);
        return json_string_value(value);
}

static bool is_one_of(const char *text, const char *words)
{
        char word[64];

        snprintf(word, sizeof(word), " %s ", text);
        return strstr(words, word) != NULL;
}

/* Some line of a file of the bundle; "" and 0 where nothing was reached. */
static void check_place(const json_t *object)
{
        const json_t *line = json_object_get(object, "line");
        const char *file = text_of(object, "file");
        json_int_t n_lines = 1;

        FUZZ_CHECK(json_is_integer(line) && json_integer_value(line) >= 0);
        for (size_t i = 0; i < RV_N_ELEMENTS(files); i++) {
                if (strcmp(files[i].path, file) != 0)
                        continue;
                for (size_t k = 0; k < files[i].size; k++)
                        n_lines += files[i].text[k] == '\n' || files[i].text[k] == '\r';
                FUZZ_CHECK(json_integer_value(line) <= n_lines, "%s:%lld", file, (long long)json_integer_value(line));
                return;
        }
        FUZZ_CHECK(!*file && json_integer_value(line) == 0, "%s", file);
}

static void check_denials(const json_t *verdict)
{
        const json_t *denials = json_object_get(verdict, "denials"), *reason = json_object_get(verdict, "reason"), *d;
        bool is_denied = strcmp(text_of(verdict, "effect"), "deny") == 0;
        size_t i;

        FUZZ_CHECK(json_is_array(denials) && is_denied == (json_array_size(denials) > 0));
        FUZZ_CHECK(is_one_of(text_of(verdict, "code"),
                             " ok package_denied network_denied idempotency_required backend_denied limit_denied policy_error "));
        FUZZ_CHECK(is_denied != (strcmp(text_of(verdict, "code"), "ok") == 0));
        json_array_foreach((json_t *)denials, i, d) {
                FUZZ_CHECK(is_one_of(text_of(d, "section"), " policy packages network idempotency backend limits "));
                text_of(d, "rule");
                text_of(d, "item");
                FUZZ_CHECK(*text_of(d, "message"));
                check_place(d);
        }
        if (!is_denied) {
                FUZZ_CHECK(json_is_null(reason));
                return;
        }
        d = json_array_get(denials, 0);
        for (size_t k = 0; k < 4; k++) {
                static const char *const same[] = { "rule", "item", "message", "file" };

                FUZZ_CHECK(strcmp(text_of(reason, same[k]), text_of(d, same[k])) == 0, "%s", same[k]);
        }
        if (json_object_get(verdict, "network"))
                FUZZ_CHECK(!*text_of(reason, "path") || *text_of(reason, "path") == '/');
        else
                FUZZ_CHECK(json_is_array(json_object_get(reason, "path")));
}

static void check_items(const json_t *verdict, const json_t *f, const char *section, const char *effects)
{
        const json_t *items = json_object_get(verdict, section), *item;
        size_t i;

        /* Once a budget is spent, what was not judged is left out. */
        FUZZ_CHECK(json_array_size(items) <= json_array_size(json_object_get(f, section)));
        FUZZ_CHECK(json_array_size(items) == json_array_size(json_object_get(f, section)) ||
                   strcmp(text_of(verdict, "effect"), "deny") == 0);
        json_array_foreach((json_t *)items, i, item) {
                FUZZ_CHECK(is_one_of(text_of(item, "effect"), effects));
                text_of(item, "item");
                text_of(item, "rule");
                check_place(item);
        }
}

static void check_rest(const json_t *verdict, const json_t *f)
{
        const json_t *backend = json_object_get(verdict, "backend"), *request = json_object_get(f, "request");
        bool is_allowed = strcmp(text_of(backend, "effect"), "allow") == 0;

        FUZZ_CHECK(json_is_boolean(json_object_get(json_object_get(verdict, "idempotency"), "require_key")));
        check_place(json_object_get(verdict, "idempotency"));
        check_place(backend);
        FUZZ_CHECK(is_allowed == (*text_of(backend, "use") != 0));
        FUZZ_CHECK(is_allowed || strcmp(text_of(verdict, "effect"), "deny") == 0);
        FUZZ_CHECK(rv_policy_verdict_timeout_s(verdict) >= 1 && rv_policy_verdict_memory_mib(verdict) >= 128);
        FUZZ_CHECK(rv_policy_verdict_timeout_s(verdict) <= json_integer_value(json_object_get(request, "timeout_s")));
        FUZZ_CHECK(rv_policy_verdict_memory_mib(verdict) <= json_integer_value(json_object_get(request, "memory_mib")));
}

static uint64_t judge_ms(const struct rv_bundle *bundle, const json_t *f, struct rv_buf *ret_text, json_t **ret)
{
        uint64_t start_us = rv_clock_us(CLOCK_THREAD_CPUTIME_ID), took_us;

        FUZZ_CHECK(rv_policy_decide(bundle, f, ret) == 0 && *ret);
        took_us = rv_clock_us(CLOCK_THREAD_CPUTIME_ID) - start_us;
        ret_text->size = 0;
        FUZZ_CHECK(rv_json_canonical(*ret, ret_text) == 0 && rv_utf8_check(ret_text->data, ret_text->size, NULL));
        return took_us / 1000;
}

/* Returns whether the policy could be loaded. */
static bool check_facts(const struct rv_bundle *bundle, const json_t *f)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 }, again = { 0 };
        uint64_t n_packages = json_array_size(json_object_get(f, "packages"));
        uint64_t best_ms = UINT64_MAX, most_ms = SLOWNESS * (EVALUATION_MS + EVALUATION_ITEM_MS * n_packages);
        json_t *verdict = NULL, *second = NULL;
        bool is_loaded;

        for (int i = 0; i < TRIES && best_ms > most_ms; i++) {
                uint64_t ms;

                json_decref(rv_take(&verdict));
                ms = judge_ms(bundle, f, &text, &verdict);
                best_ms = RV_MIN(best_ms, ms);
        }
        FUZZ_CHECK(best_ms <= most_ms, "an evaluation took %llu ms", (unsigned long long)best_ms);
        judge_ms(bundle, f, &again, &second);
        FUZZ_CHECK(text.size == again.size && memcmp(text.data, again.data, text.size) == 0, "%s\n%s", text.data, again.data);
        check_denials(verdict);
        if (rv_facts_is_resolved(f)) {
                check_items(verdict, f, "packages", " allow deny ");
                FUZZ_CHECK(json_object_size(verdict) == 5);
        } else {
                check_items(verdict, f, "packages", " allow deny undecided ");
                check_items(verdict, f, "network", " allow deny ");
                check_rest(verdict, f);
        }
        is_loaded = strcmp(rv_json_get_string(json_array_get(json_object_get(verdict, "denials"), 0), "section", ""), "policy") != 0;
        json_decref(verdict);
        json_decref(second);
        return is_loaded;
}

static void on_finding(void *userdata, const struct rv_policy_finding *finding)
{
        ++*(int *)userdata;
        FUZZ_CHECK(finding->file && finding->line >= 0 && finding->message && *finding->message);
}

static void check_checker(bool is_loaded)
{
        int n_told = 0, n;

        write_in_dir("policy.lua", files[2].text, files[2].size);
        n = rv_policy_check(dir, on_finding, &n_told);
        FUZZ_CHECK(n >= 0 && n == n_told, "%d", n);
        FUZZ_CHECK(is_loaded || n > 0, "the checker has nothing to say of a policy that cannot be loaded");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rv_bundle bundle = { .files = files, .n_files = RV_N_ELEMENTS(files) };
        _cleanup_(rv_freep) char *text = malloc(size + 1);
        bool is_loaded = true;

        prepare();
        FUZZ_CHECK(text);
        memcpy(text, data, size);
        text[size] = 0;
        files[2].text = text;
        files[2].size = size;
        for (size_t i = 0; i < N_FACTS && is_loaded; i++)
                is_loaded = check_facts(&bundle, facts[i]);
        check_checker(is_loaded);
        return 0;
}
