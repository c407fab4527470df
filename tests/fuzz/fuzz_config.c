/*
 * Configurations: what is refused is refused with its file and line, in one line; what is taken is within its bounds
 * and refers to nothing that is not there, and its own text says the same again.
 */
#include "fuzz.h"

#include "base/config.h"

#include <ctype.h>

#define FILE_NAME "/etc/reeve/fuzz.yaml"

static void check_error(int r, const struct rv_error *err)
{
        const char *rest = err->message + strlen(FILE_NAME ":");
        size_t n_digits;

        FUZZ_CHECK(r == -EINVAL && err->code == r, "%d: %s", r, err->message);
        FUZZ_CHECK(fuzz_is_line(err->message), "%s", err->message);
        FUZZ_CHECK(strncmp(err->message, FILE_NAME ":", strlen(FILE_NAME ":")) == 0, "%s", err->message);
        n_digits = strspn(rest, "0123456789");
        FUZZ_CHECK(n_digits > 0 && *rest != '0' && strncmp(rest + n_digits, ": ", 2) == 0 && rest[n_digits + 2], "%s", err->message);
}

static void check_path(const char *path)
{
        FUZZ_CHECK(path && path[0] == '/', "%s", path);
        FUZZ_CHECK(!strstr(path, "/../") && !strstr(path, "/./"), "%s", path);
        FUZZ_CHECK(fuzz_is_line(path), "%s", path);
}

static void check_runtimes(const struct rv_config *c)
{
        for (size_t i = 0; i < c->n_runtimes; i++) {
                const struct rv_config_runtime *rt = &c->runtimes[i];

                FUZZ_CHECK(rv_config_runtime(c, rt->name) == rt, "%s", rt->name);
                if (strcmp(rt->root, "host") != 0)
                        check_path(rt->root);
                check_path(rt->python);
                check_path(rt->javascript);
                for (size_t k = 0; k < rt->expose.n_items; k++)
                        check_path(rt->expose.items[k]);
        }
}

static void check_tenants(const struct rv_config *c)
{
        static const char modes[] = " none registries domains any ";
        char word[16];

        FUZZ_CHECK(c->n_tenants > 0 && c->n_runtimes > 0);
        for (size_t i = 0; i < c->n_tenants; i++) {
                const struct rv_config_tenant *t = &c->tenants[i];

                FUZZ_CHECK(rv_config_tenant(c, t->name) == t, "%s", t->name);
                FUZZ_CHECK(rv_config_runtime(c, t->runtime) != NULL, "%s", t->runtime);
                FUZZ_CHECK(!t->policy || t->policy[0] == '/', "%s", t->policy);
                FUZZ_CHECK(*t->backend && !strchr(t->backend, '/'), "%s", t->backend);
                snprintf(word, sizeof(word), " %s ", t->network);
                FUZZ_CHECK(strstr(modes, word), "%s", t->network);
        }
}

static void check_numbers(const struct rv_config *c)
{
        const uint64_t phases[] = { c->phases.queue_ms, c->phases.decide_ms, c->phases.resolve_ms, c->phases.prepare_ms,
                                    c->phases.start_ms, c->phases.collect_ms, c->phases.teardown_ms };

        FUZZ_CHECK(c->uid_first > 0 && c->uid_first <= c->uid_last && c->uid_last < UINT32_MAX);
        FUZZ_CHECK(c->limits.pids >= 4 && c->limits.pids <= 4194304);
        for (size_t i = 0; i < RV_N_ELEMENTS(phases); i++)
                FUZZ_CHECK(phases[i] >= 1 && phases[i] <= UINT64_C(366) * 24 * 3600 * 1000, "%zu", i);
}

static struct rv_config *parse(const char *text, size_t n)
{
        struct rv_config *c = NULL;
        struct rv_error err = { 0 };
        int r = rv_config_parse(text, n, FILE_NAME, &c, &err);

        FUZZ_CHECK((r == 0) == (c != NULL));
        if (r)
                check_error(r, &err);
        return c;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rv_config *c, *again;

        /* Where state is kept by default is the only thing that the environment says. */
        setenv("HOME", "/nowhere", 1);
        unsetenv("XDG_STATE_HOME");
        c = parse((const char *)data, size);
        if (!c)
                return 0;
        check_path(c->state_dir);
        if (c->cgroup)
                check_path(c->cgroup);
        check_runtimes(c);
        check_tenants(c);
        check_numbers(c);
        FUZZ_CHECK(c->text_bytes == size && memcmp(c->text, data, size) == 0 && c->text[size] == 0);
        again = parse(c->text, c->text_bytes);
        FUZZ_CHECK(again && again->n_tenants == c->n_tenants && again->n_runtimes == c->n_runtimes);
        FUZZ_CHECK(strcmp(again->state_dir, c->state_dir) == 0 && again->uid_first == c->uid_first);
        rv_config_free(again);
        rv_config_free(c);
        return 0;
}
