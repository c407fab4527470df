/*
 * ask.c - rv_metadata_get() and rv_package_diagnose() for tests: a JSON document on standard input, another on standard
 * output
 *
 *     ask HELPER CACHE    CACHE "-": none
 *
 *     {"config": {…as reeve.yaml…}, "language", "deadline_ms"?, "ttl_ms"?, "stop"?: true, and
 *      "names": […]                                                      -> {"r", "error", "pages"}
 *      or "packages": […], "closure"?, "obligations"?, "cutoff_s"?, "contacts"?, "denials"?
 *                                                                        -> {"r", "error", "code", "cause", "retryable", "package", "message"}}
 */
#include "base/clock.h"
#include "base/fd.h"
#include "package/diagnose.h"
#include "request/npmrange.h"
#include "request/pyreq.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PACKAGES_MAX 50

static uint64_t number(const json_t *job, const char *name, uint64_t otherwise)
{
        const json_t *value = json_object_get(job, name);

        return json_is_integer(value) ? (uint64_t)json_integer_value(value) : otherwise;
}

/* Tests speak to loopback alone, whatever this machine's package managers are configured for. */
static bool is_loopback(const struct rv_config *config, const struct rv_registry *r)
{
        if (!r->index || r->n_hosts == 0 || r->proxy.host)
                return false;
        for (size_t i = 0; i < r->n_hosts; i++) {
                const char *at = r->hosts[i].host;

                for (size_t k = 0; k < config->egress.resolve.n_items; k++)
                        if (strcmp(config->egress.resolve.items[k].name, r->hosts[i].host) == 0)
                                at = config->egress.resolve.items[k].value;
                if (strncmp(at, "127.", 4) != 0 || strspn(at, "0123456789.") != strlen(at))
                        return false;
        }
        return true;
}

static json_t *get(const struct rv_metadata_source *src, const json_t *job)
{
        const json_t *list = json_object_get(job, "names");
        const char *names[2000];
        struct rv_error err = { 0 };
        json_t *pages = NULL, *name;
        size_t i, n = 0;
        int r;

        json_array_foreach(list, i, name)
                if (n < RV_N_ELEMENTS(names))
                        names[n++] = json_string_value(name);
        r = rv_metadata_get(src, names, n, &pages, &err);
        return json_pack("{s:i, s:s, s:o?}", "r", r, "error", err.message, "pages", pages);
}

static json_t *diagnose(const struct rv_metadata_source *src, const json_t *job)
{
        struct rv_package packages[PACKAGES_MAX] = { 0 };
        struct rv_package_trouble t = { .source = src, .dir_fd = -EBADF, .packages = packages, .closure = json_object_get(job, "closure"),
                .obligations = json_object_get(job, "obligations"), .contacts = json_object_get(job, "contacts"),
                .denials = json_object_get(job, "denials"), .cutoff_s = (int64_t)number(job, "cutoff_s", UINT64_MAX) };
        struct rv_package_failure f = { .code = "", .cause = "" };
        struct rv_error err = { 0 };
        struct rv_fault fault = { 0 };
        json_t *text;
        size_t i;
        int r = 0;

        json_array_foreach(json_object_get(job, "packages"), i, text) {
                const char *s = json_string_value(text);

                r = src->registry->language == RV_LANGUAGE_PYTHON ? rv_pyreq_parse(s, strlen(s), &packages[i], &fault)
                                                                  : rv_npmreq_parse(s, strlen(s), &packages[i], &fault);
                if (r)
                        break;
                t.n_packages++;
        }
        if (r == 0)
                r = rv_package_diagnose(&t, &f, &err);
        for (i = 0; i < t.n_packages; i++)
                rv_package_fini(&packages[i]);
        return json_pack("{s:i, s:s, s:s, s:s, s:b, s:s, s:s}", "r", r, "error", fault.message[0] ? fault.message : err.message, "code", f.code, "cause", f.cause,
                         "retryable", f.is_retryable, "package", f.package, "message", f.message);
}

static int answer(const json_t *job, const char *helper, const char *cache)
{
        static _Atomic bool stop = true;
        _cleanup_(rv_freep) char *yaml = json_dumps(json_object_get(job, "config"), 0);
        _cleanup_(rv_config_freep) struct rv_config *config = NULL;
        _cleanup_(rv_registry_freep) struct rv_registry *registry = NULL;
        _cleanup_(rv_closep) int helper_fd = open(helper, O_PATH | O_CLOEXEC);
        _cleanup_(rv_closep) int cache_fd = *cache == '-' ? -EBADF : open(cache, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        _cleanup_(rv_json_unrefp) json_t *result = NULL;
        struct rv_metadata_source src = { 0 };
        struct rv_error err = { 0 };

        if (!yaml || rv_config_parse(yaml, strlen(yaml), "/test.yaml", &config, &err) < 0) {
                fprintf(stderr, "%s\n", err.message);
                return 2;
        }
        if (rv_registry_find(config, rv_config_tenant(config, "local"), (enum rv_language)rv_language_parse(rv_json_get_string(job, "language", "")),
                             NULL, &registry) < 0)
                return 2;
        if (!is_loopback(config, registry)) {
                fprintf(stderr, "the registry of a test has to be at a loopback address, not %s\n", registry->index ? registry->index : "(none)");
                return 2;
        }
        src = (struct rv_metadata_source){ .registry = registry,
                .config = config,
                .helper_fd = helper_fd,
                .cache_dir_fd = cache_fd,
                .stop = json_object_get(job, "stop") ? &stop : NULL,
                .deadline_us = rv_boot_us() + number(job, "deadline_ms", 10000) * 1000,
                .cache_ttl_ms = number(job, "ttl_ms", 0) };
        result = json_object_get(job, "names") ? get(&src, job) : diagnose(&src, job);
        return result && json_dumpf(result, stdout, JSON_COMPACT) == 0 ? 0 : 2;
}

int main(int argc, char **argv)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        _cleanup_(rv_json_unrefp) json_t *job = NULL;
        struct rv_error err = { 0 };

        if (argc != 3 || rv_read_fd(STDIN_FILENO, (size_t)16 << 20, &text) < 0 ||
                rv_json_read(text.data, text.size, 32, &job, &err) < 0) {
                fprintf(stderr, "usage: ask HELPER CACHE: %s\n", err.message);
                return 2;
        }
        return answer(job, argv[1], argv[2]);
}
