/*
 * What init is given to execute the program: written and read back, whose environment wins, and every way in
 * which the bytes can be damaged.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "payload.h"

static struct rv_plan plan_of(const struct rv_plan_env *env, size_t n_env, const char *source)
{
        return (struct rv_plan){ .struct_size = sizeof(struct rv_plan),
                .env = env,
                .n_env = n_env,
                .source = source,
                .source_bytes = strlen(source) };
}

/* The value of a name; NULL if it is not there, and a failure if it is there twice. */
static const char *value_of(const struct rv_payload *p, const char *name)
{
        const char *value = NULL;
        size_t n = strlen(name);

        for (size_t i = 0; p->env[i]; i++)
                if (!strncmp(p->env[i], name, n) && p->env[i][n] == '=') {
                        if (value)
                                fail_msg("%s stands there twice", name);
                        value = p->env[i] + n + 1;
                }
        return value;
}

static void write_and_read(const struct rv_plan *plan, struct rv_payload *ret)
{
        int fd = -1;

        assert_int_equal(rv_payload_write(plan, &fd), 0);
        assert_int_equal(rv_payload_read(fd, ret), 0);
        close(fd);
}

static void base_environment(void **state)
{
        static const char *const rows[][2] = {
                { "PATH", "/usr/bin:/bin" }, { "HOME", "/box" }, { "PWD", "/box" }, { "TMPDIR", "/tmp" }, { "LANG", "C.UTF-8" },
                { "TZ", "UTC" }, { "USER", "sandbox" }, { "SHELL", "/bin/sh" }, { "PYTHONUNBUFFERED", "1" },
                { "PYTHONDONTWRITEBYTECODE", "1" }, { "REEVE_RESULT", "/box/.reeve-result" },
        };
        struct rv_plan plan = plan_of(NULL, 0, "print(1)");
        struct rv_payload p;
        size_t n = 0;

        write_and_read(&plan, &p);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                const char *value = value_of(&p, rows[i][0]);

                if (!value || strcmp(value, rows[i][1]) != 0)
                        fail_msg("%s is %s", rows[i][0], value ? value : "(none)");
        }
        while (p.env[n])
                n++;
        assert_int_equal(n, RV_N_ELEMENTS(rows));
        assert_int_equal(p.source_bytes, 8);
        assert_memory_equal(p.source, "print(1)", 8);
        rv_payload_fini(&p);
        assert_null(p.bytes);
}

static void whose_environment_wins(void **state)
{
        static const struct rv_plan_env env[] = {
                { "A", "" }, { "HOME", "/elsewhere" }, { "PATH", "/x" }, { "REEVE_IDEMPOTENCY_KEY", "forged" }, { "REEVE_RESULT", "/etc/passwd" },
                { "REEVE_X", "1" }, { "Z", "a=b\nc" },
        };
        static const struct {
                const char *name, *value;
        } rows[] = {
                { "A", "" }, { "HOME", "/elsewhere" }, { "PATH", "/x" }, { "Z", "a=b\nc" }, { "PWD", "/box" },
                { "REEVE_RESULT", "/box/.reeve-result" }, { "REEVE_IDEMPOTENCY_KEY", "the key" }, { "REEVE_X", NULL },
        };
        struct rv_plan plan = plan_of(env, RV_N_ELEMENTS(env), "x");
        struct rv_payload p;

        plan.idempotency_key = "the key";
        write_and_read(&plan, &p);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                const char *value = value_of(&p, rows[i].name);

                if (!value != !rows[i].value || (value && strcmp(value, rows[i].value) != 0))
                        fail_msg("%s is %s, not %s", rows[i].name, value ? value : "(none)", rows[i].value ? rows[i].value : "(none)");
        }
        rv_payload_fini(&p);
        plan.idempotency_key = NULL;
        write_and_read(&plan, &p);
        assert_null(value_of(&p, "REEVE_IDEMPOTENCY_KEY"));
        rv_payload_fini(&p);
}

/* Below the request's, above nothing of reeve's own. */
static void package_manager(void **state)
{
        static const struct rv_plan_env env[] = { { "PIP_CERT", "/box/mine.pem" } };
        static const struct rv_plan_env tool_env[] = { { "PIP_INDEX_URL", "https://registry.example/simple" }, { "PIP_CERT", RV_PLAN_CA_FILE } };
        struct rv_plan plan = plan_of(env, 1, "import x");
        struct rv_payload p;

        plan.tool_env = tool_env;
        plan.n_tool_env = 2;
        plan.ca = "certificates\n";
        plan.ca_bytes = strlen(plan.ca);
        write_and_read(&plan, &p);
        assert_string_equal(value_of(&p, "PIP_INDEX_URL"), "https://registry.example/simple");
        assert_string_equal(value_of(&p, "PIP_CERT"), "/box/mine.pem");
        assert_int_equal(p.ca_bytes, plan.ca_bytes);
        assert_memory_equal(p.ca, plan.ca, plan.ca_bytes);
        assert_int_equal(p.source_bytes, 8);
        assert_memory_equal(p.source, "import x", 8);
        rv_payload_fini(&p);
}

static void nobody_can_change_it(void **state)
{
        struct rv_plan plan = plan_of(NULL, 0, "x");
        int fd = -1;

        assert_int_equal(rv_payload_write(&plan, &fd), 0);
        assert_int_equal(write(fd, "y", 1), -1);
        assert_int_equal(ftruncate(fd, 0), -1);
        assert_ptr_equal(mmap(NULL, 1, PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        close(fd);
}

/* The largest request there can be fits; what is larger is refused, not cut. */
static void sizes(void **state)
{
        static struct rv_plan_env env[RV_PAYLOAD_ENV_MAX];
        _cleanup_(rv_freep) char *source = malloc(RV_PAYLOAD_BYTES_MAX + 1), *value = malloc(128 << 10);
        struct rv_plan plan;
        struct rv_payload p;
        int fd = 77;

        memset(source, 'x', RV_PAYLOAD_BYTES_MAX);
        memset(value, 'v', (128 << 10) - 1);
        source[RV_PAYLOAD_BYTES_MAX] = value[(128 << 10) - 1] = 0;
        for (size_t i = 0; i < RV_PAYLOAD_ENV_MAX; i++)
                env[i] = (struct rv_plan_env){ "N", "" };
        env[0].value = value;
        plan = plan_of(env, 50, "");
        plan.source = source;
        plan.source_bytes = 400000;
        write_and_read(&plan, &p);
        assert_int_equal(p.source_bytes, 400000);
        rv_payload_fini(&p);
        plan.n_env = RV_PAYLOAD_ENV_MAX;
        assert_int_equal(rv_payload_write(&plan, &fd), -E2BIG);
        plan.n_env = 0;
        plan.source_bytes = RV_PAYLOAD_BYTES_MAX;
        assert_int_equal(rv_payload_write(&plan, &fd), -E2BIG);
        assert_int_equal(fd, 77);
        plan.source_bytes = 0;
        write_and_read(&plan, &p);
        assert_int_equal(p.source_bytes, 0);
        rv_payload_fini(&p);
}

/* ---- Damaged ---- */

static int make_file(const void *data, size_t n)
{
        int fd = memfd_create("payload", MFD_CLOEXEC);

        assert_true(fd >= 0);
        assert_int_equal(rv_write_all(fd, data, n), 0);
        return fd;
}

static bool is_inside(const struct rv_payload *p, size_t n, const char *at)
{
        return at >= p->bytes && at <= p->bytes + n;
}

/* Reads @n bytes as a payload: refused, or a value that lies in them as a whole. */
static int read_bytes(const char *what, const void *data, size_t n)
{
        struct rv_payload p = { .source = "untouched" };
        int fd = make_file(data, n), r;
        size_t i;

        r = rv_payload_read(fd, &p);
        close(fd);
        if (r == 0) {
                for (i = 0; p.env[i]; i++) {
                        if (i >= RV_PAYLOAD_ENV_MAX || !is_inside(&p, n, p.env[i]) || !strchr(p.env[i], '=') ||
                            !is_inside(&p, n, p.env[i] + strlen(p.env[i])))
                                fail_msg("%s: environment entry %zu is not whole", what, i);
                }
                if (!is_inside(&p, n, p.source) || !is_inside(&p, n, p.source + p.source_bytes) ||
                    !is_inside(&p, n, p.ca) || p.ca + p.ca_bytes != p.source)
                        fail_msg("%s: the source is not whole", what);
                rv_payload_fini(&p);
        } else if (r != -EBADMSG) {
                fail_msg("%s: %d, not -EBADMSG", what, r);
        } else if (strcmp(p.source, "untouched") != 0) {
                fail_msg("%s: refused, but the result was touched", what);
        }
        return r;
}

static size_t make_bytes(char *ret, size_t size)
{
        static const struct rv_plan_env env[] = { { "A", "1" }, { "B", "" } };
        struct rv_plan plan = plan_of(env, 2, "print('\xc3\xa4')\n");
        int fd = -1;
        ssize_t n;

        assert_int_equal(rv_payload_write(&plan, &fd), 0);
        n = pread(fd, ret, size, 0);
        close(fd);
        assert_true(n > 0 && (size_t)n < size);
        return (size_t)n;
}

static void every_truncation(void **state)
{
        char bytes[2048], what[64];
        size_t n = make_bytes(bytes, sizeof(bytes));

        assert_int_equal(read_bytes("whole", bytes, n), 0);
        for (size_t i = 0; i < n; i++) {
                snprintf(what, sizeof(what), "the first %zu bytes", i);
                if (read_bytes(what, bytes, i) != -EBADMSG)
                        fail_msg("%s are taken for the whole", what);
        }
        bytes[n] = 'x';
        assert_int_equal(read_bytes("one byte more", bytes, n + 1), -EBADMSG);
}

static void damaged_heads(void **state)
{
        static const struct {
                const char *name;
                size_t at;
                uint32_t value;
        } rows[] = {
                { "magic", 0, 0 }, { "no names", 4, 0 }, { "a name less", 4, 12 }, { "a name more", 4, 14 }, { "the most names", 4, RV_PAYLOAD_ENV_MAX },
                { "one above the most", 4, RV_PAYLOAD_ENV_MAX + 1 }, { "4294967295 names", 4, UINT32_MAX }, { "no environment", 8, 0 },
                { "4294967295 bytes of environment", 8, UINT32_MAX }, { "certificates that are not there", 12, 1 }, { "4294967295 bytes of certificates", 12, UINT32_MAX },
                { "no source", 16, 0 }, { "4294967295 bytes of source", 16, UINT32_MAX },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                char bytes[2048];
                size_t n = make_bytes(bytes, sizeof(bytes));
                int r;

                memcpy(bytes + rows[i].at, &rows[i].value, sizeof(rows[i].value));
                r = read_bytes(rows[i].name, bytes, n);
                /* Nothing can be missed where there are no names: the bytes are just not looked at. */
                if (r != -EBADMSG && strcmp(rows[i].name, "no names") != 0)
                        fail_msg("%s is taken", rows[i].name);
        }
}

/* Two sums that wrap round in 32 bits and would then fit. */
static void sums_do_not_wrap(void **state)
{
        char bytes[2048];
        size_t n = make_bytes(bytes, sizeof(bytes));
        struct rv_payload_head head;

        memcpy(&head, bytes, sizeof(head));
        head.env_bytes += 0x80000000u;
        head.source_bytes += 0x80000000u;
        memcpy(bytes, &head, sizeof(head));
        assert_int_equal(read_bytes("a sum that wraps", bytes, n), -EBADMSG);
        head.env_bytes -= 0x80000000u;
        head.ca_bytes += 0x80000000u;
        memcpy(bytes, &head, sizeof(head));
        assert_int_equal(read_bytes("another", bytes, n), -EBADMSG);
}

static void mutations(void **state)
{
        uint32_t random = 12345;
        unsigned n_taken = 0;

        for (unsigned i = 0; i < 2000; i++) {
                char bytes[2048], what[64];
                size_t n = make_bytes(bytes, sizeof(bytes));

                for (unsigned j = 0; j <= i % 4; j++) {
                        random = random * 1664525u + 1013904223u;
                        /* Half of them in the head, where they tell most. */
                        bytes[(random >> 8) % (i % 2 ? n : sizeof(struct rv_payload_head))] = (char)(random >> 24);
                }
                snprintf(what, sizeof(what), "mutation %u", i);
                n_taken += read_bytes(what, bytes, n) == 0;
        }
        /* Most changes to names, values and the source are values like any other. */
        assert_in_range(n_taken, 400, 1500);
}

static void other_descriptors(void **state)
{
        struct rv_payload p = { 0 };
        int fds[2], fd;

        assert_int_equal(rv_payload_read(-1, &p), -EBADF);
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        assert_int_equal(rv_payload_read(fds[0], &p), -EBADMSG);
        close(fds[0]);
        close(fds[1]);
        fd = memfd_create("large", MFD_CLOEXEC);
        assert_int_equal(ftruncate(fd, RV_PAYLOAD_BYTES_MAX + 1), 0);
        assert_int_equal(rv_payload_read(fd, &p), -EBADMSG);
        close(fd);
        assert_null(p.bytes);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(base_environment),
                cmocka_unit_test(whose_environment_wins),
                cmocka_unit_test(package_manager),
                cmocka_unit_test(nobody_can_change_it),
                cmocka_unit_test(sizes),
                cmocka_unit_test(every_truncation),
                cmocka_unit_test(damaged_heads),
                cmocka_unit_test(sums_do_not_wrap),
                cmocka_unit_test(mutations),
                cmocka_unit_test(other_descriptors),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
