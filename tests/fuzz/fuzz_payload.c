/*
 * A run's payload as init reads it: any file is either refused or gives an environment and a source that lie within
 * it; and what the loop writes for a plan is read back as that plan. An input is tried as a file, then as a plan's
 * source and environment.
 */
#include "fuzz.h"

#include "base/fd.h"
#include "payload.h"

#include <sys/mman.h>
#include <unistd.h>

/* The file is made once: memfd_create() would be most of the time. */
static int file_of(const uint8_t *data, size_t size)
{
        static int fd = -EBADF;

        if (fd < 0)
                fd = memfd_create("fuzz", MFD_CLOEXEC);
        FUZZ_CHECK(fd >= 0 && ftruncate(fd, 0) == 0 && pwrite(fd, data, size, 0) == (ssize_t)size);
        return fd;
}

static void check_within(const struct rv_payload *p, size_t size)
{
        const char *end = p->bytes + size;
        size_t n = 0;

        for (; p->env[n]; n++) {
                FUZZ_CHECK(n < RV_PAYLOAD_ENV_MAX);
                FUZZ_CHECK(p->env[n] >= p->bytes && p->env[n] < p->ca);
                FUZZ_CHECK(memchr(p->env[n], 0, (size_t)(end - p->env[n])) && strchr(p->env[n], '='));
                FUZZ_CHECK(n == 0 || p->env[n] == p->env[n - 1] + strlen(p->env[n - 1]) + 1);
        }
        FUZZ_CHECK(p->source >= p->bytes && p->source + p->source_bytes == end);
        FUZZ_CHECK(n == 0 ? p->ca == p->bytes + sizeof(struct rv_payload_head) : p->ca == strchr(p->env[n - 1], 0) + 1);
        FUZZ_CHECK(p->source == p->ca + p->ca_bytes);
}

static void check_file(const uint8_t *data, size_t size)
{
        struct rv_payload p = { 0 };
        int r = rv_payload_read(file_of(data, size), &p);

        FUZZ_CHECK(r == 0 || (r == -EBADMSG && !p.bytes), "%d", r);
        if (r == 0)
                check_within(&p, size);
        rv_payload_fini(&p);
        FUZZ_CHECK(!p.bytes && !p.env[0]);
}

#define N_ENV 3

/* A name, then a value of up to 15 bytes. */
static void take_env(struct fuzz_cursor *in, char text[N_ENV][2][16], struct rv_plan_env *env, size_t *n)
{
        static const char *const names[] = { "A", "PATH", "HOME", "REEVE", "_x1", "PYTHONUNBUFFERED" };

        for (size_t i = 0; i < N_ENV && (fuzz_byte(in) & 1); i++) {
                snprintf(text[i][0], sizeof(text[i][0]), "%s", names[fuzz_byte(in) % RV_N_ELEMENTS(names)]);
                fuzz_bytes(in, text[i][1], sizeof(text[i][1]) - 1);
                env[(*n)++] = (struct rv_plan_env){ text[i][0], text[i][1] };
        }
}

static bool has(const struct rv_payload *p, const char *name, const char *value)
{
        size_t n = strlen(name);

        for (size_t i = 0; p->env[i]; i++)
                if (strncmp(p->env[i], name, n) == 0 && p->env[i][n] == '=' && strcmp(p->env[i] + n + 1, value) == 0)
                        return true;
        return false;
}

static void check_plan(const uint8_t *data, size_t size)
{
        struct fuzz_cursor in = { data, size };
        char text[N_ENV][2][16] = { 0 };
        struct rv_plan_env env[N_ENV];
        struct rv_plan plan = { .struct_size = sizeof(plan), .env = env };
        struct rv_payload p = { 0 };
        _cleanup_(rv_closep) int fd = -EBADF;

        if (fuzz_byte(&in) & 1)
                plan.idempotency_key = "key";
        take_env(&in, text, env, &plan.n_env);
        plan.ca_bytes = in.size ? fuzz_byte(&in) % (in.size + 1) : 0;
        plan.ca_bytes = RV_MIN(plan.ca_bytes, in.size);
        plan.ca = (const char *)in.data;
        plan.source = (const char *)in.data + plan.ca_bytes;
        plan.source_bytes = in.size - plan.ca_bytes;
        FUZZ_CHECK(rv_payload_write(&plan, &fd) == 0);
        FUZZ_CHECK(rv_payload_read(fd, &p) == 0);
        FUZZ_CHECK(p.ca_bytes == plan.ca_bytes && p.source_bytes == plan.source_bytes &&
                memcmp(p.ca, in.data, in.size) == 0);
        FUZZ_CHECK(has(&p, "REEVE_RESULT", "/box/.reeve-result"));
        FUZZ_CHECK(has(&p, "REEVE_IDEMPOTENCY_KEY", "key") == (plan.idempotency_key != NULL));
        for (size_t i = 0; i < plan.n_env; i++)
                FUZZ_CHECK(has(&p, env[i].name, env[i].value), "%s", env[i].name);
        rv_payload_fini(&p);
        /* Nobody can change it once init has been handed it. */
        FUZZ_CHECK(pwrite(fd, "x", 1, 0) < 0 && ftruncate(fd, 0) < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        check_file(data, size);
        check_plan(data, size);
        return 0;
}
