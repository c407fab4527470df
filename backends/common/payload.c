#include "payload.h"

#include "base/fd.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Design, section 7a. The working directory is also HOME; a key is handed on, never enforced here. */
static const char *const base_env[][2] = {
        { "HOME", "/box" },          { "PWD", "/box" },
        { "TMPDIR", "/tmp" },        { "LANG", "C.UTF-8" }, { "TZ", "UTC" },
        { "USER", "sandbox" },       { "SHELL", "/bin/sh" }, { "PYTHONUNBUFFERED", "1" },
        { "PYTHONDONTWRITEBYTECODE", "1" }, { "REEVE_RESULT", "/box/.reeve-result" },
};

static void add_env(struct rv_buf *b, uint32_t *n_env, const char *name, const char *value)
{
        rv_buf_printf(b, "%s=%s", name, value);
        rv_buf_putc(b, 0);
        ++*n_env;
}

/* Reeve's own names are not the request's to set, whoever let one through. */
static bool is_own(const char *name)
{
        return !strncmp(name, "REEVE_", 6);
}

static bool is_requested(const struct rv_plan *plan, const char *name)
{
        if (is_own(name))
                return false;
        for (size_t i = 0; i < plan->n_env; i++)
                if (!strcmp(plan->env[i].name, name))
                        return true;
        return false;
}

/* With a layer its commands come first. */
static const char *find_path(const struct rv_plan *plan)
{
        if (!plan->layer)
                return "/usr/bin:/bin";
        return plan->language == RV_PLAN_PYTHON ? RV_LAYER_PYTHON "/bin:/usr/bin:/bin" : RV_LAYER_JAVASCRIPT "/.bin:/usr/bin:/bin";
}

int rv_payload_write(const struct rv_plan *plan, int *ret_fd)
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };
        _cleanup_(rv_closep) int fd = -EBADF;
        struct rv_payload_head head = { .magic = RV_PAYLOAD_MAGIC, .ca_bytes = (uint32_t)plan->ca_bytes,
                .source_bytes = (uint32_t)plan->source_bytes };
        int r;

        rv_buf_append(&b, &head, sizeof(head));
        if (!is_requested(plan, "PATH"))
                add_env(&b, &head.n_env, "PATH", find_path(plan));
        for (size_t i = 0; i < RV_N_ELEMENTS(base_env); i++)
                if (!is_requested(plan, base_env[i][0]))
                        add_env(&b, &head.n_env, base_env[i][0], base_env[i][1]);
        for (size_t i = 0; i < plan->n_tool_env; i++)
                if (!is_requested(plan, plan->tool_env[i].name))
                        add_env(&b, &head.n_env, plan->tool_env[i].name, plan->tool_env[i].value);
        if (plan->idempotency_key)
                add_env(&b, &head.n_env, "REEVE_IDEMPOTENCY_KEY", plan->idempotency_key);
        for (size_t i = 0; i < plan->n_env; i++)
                if (!is_own(plan->env[i].name))
                        add_env(&b, &head.n_env, plan->env[i].name, plan->env[i].value);
        head.env_bytes = (uint32_t)(b.size - sizeof(head));
        rv_buf_append(&b, plan->ca, plan->ca_bytes);
        rv_buf_append(&b, plan->source, plan->source_bytes);
        r = rv_buf_error(&b);
        if (r < 0)
                return rv_trace(r);
        if (b.size > RV_PAYLOAD_BYTES_MAX || head.n_env > RV_PAYLOAD_ENV_MAX)
                return rv_raise(-E2BIG);
        memcpy(b.data, &head, sizeof(head));

        fd = memfd_create("reeve-payload", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        if (fd < 0)
                return rv_raise(-errno);
        r = rv_write_all(fd, b.data, b.size);
        if (r < 0)
                return rv_trace(r);
        if (fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
                return rv_raise(-errno);
        *ret_fd = rv_take_fd(&fd);
        return 0;
}

int rv_payload_read(int fd, struct rv_payload *ret)
{
        struct rv_payload p = { 0 };
        struct rv_payload_head head;
        struct stat st;
        char *env;
        ssize_t n;
        int r = -EBADMSG;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (st.st_size < (off_t)sizeof(head) || st.st_size > RV_PAYLOAD_BYTES_MAX)
                return -EBADMSG;
        p.bytes = malloc((size_t)st.st_size);
        if (!p.bytes)
                return -ENOMEM;
        n = pread(fd, p.bytes, (size_t)st.st_size, 0);
        if (n != st.st_size)
                goto fail;
        memcpy(&head, p.bytes, sizeof(head));
        if (head.magic != RV_PAYLOAD_MAGIC || head.n_env > RV_PAYLOAD_ENV_MAX ||
            (uint64_t)sizeof(head) + head.env_bytes + head.ca_bytes + head.source_bytes != (uint64_t)st.st_size ||
            (head.n_env == 0 && head.env_bytes != 0))
                goto fail;
        env = p.bytes + sizeof(head);
        for (uint32_t i = 0, at = 0; i < head.n_env; i++) {
                char *end = memchr(env + at, 0, head.env_bytes - at);

                if (!end || !memchr(env + at, '=', (size_t)(end - env) - at))
                        goto fail;
                p.env[i] = env + at;
                at = (uint32_t)(end - env) + 1;
                if (i + 1 == head.n_env && at != head.env_bytes)
                        goto fail;
        }
        p.ca = env + head.env_bytes;
        p.ca_bytes = head.ca_bytes;
        p.source = p.ca + p.ca_bytes;
        p.source_bytes = head.source_bytes;
        *ret = p;
        return 0;
fail:
        free(p.bytes);
        return r;
}

void rv_payload_fini(struct rv_payload *p)
{
        free(p->bytes);
        *p = (struct rv_payload){ 0 };
}
