#include "request.h"

#include "base/fd.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

static_assert(sizeof(struct rv_spawn_request) != sizeof(struct rv_sign_request), "told apart by their size");

/* What a message of @n bytes is. */
static int classify(const union request *q, size_t n)
{
        bool is_sign_kind = q->sign.kind >= RV_SIGN_QUERY && q->sign.kind < RV_SIGN_KIND_MAX_;

        if (n == sizeof(q->spawn) && !is_sign_kind)
                return REQUEST_SPAWN;
        return n == sizeof(q->sign) && is_sign_kind ? REQUEST_SIGN : -EBADMSG;
}

int request_receive(int fd, union request *ret, int ret_fds[RV_SPAWN_FD_MAX_], int *ret_n_fds)
{
        size_t n_fds;
        ssize_t n = rv_receive_with_fds(fd, ret, sizeof(*ret), 0, ret_fds, RV_SPAWN_FD_MAX_, &n_fds);

        *ret_n_fds = (int)n_fds;
        if (n > 0)
                return classify(ret, (size_t)n);
        if (n == -EINTR || n == -EAGAIN)
                return -EAGAIN;
        return n == -EBADMSG ? -EBADMSG : 0;
}

static bool has_end(const char *text, size_t size)
{
        return memchr(text, 0, size) != NULL;
}

const char *request_find_fault(const struct rv_config *config, const struct rv_spawn_request *q)
{
        if (!has_end(q->run_id, sizeof(q->run_id)) || !has_end(q->runtime, sizeof(q->runtime)) ||
            !has_end(q->tenant, sizeof(q->tenant)) || !has_end(q->layer, sizeof(q->layer)))
                return "a name without an end";
        if (strspn(q->run_id, "0123456789abcdef") != RV_RUN_ID_SIZE - 1)
                return "the run id";
        if (q->layer[0] && strspn(q->layer, "0123456789abcdef") != RV_LAYER_DIGEST_SIZE - 1)
                return "the layer";
        if (q->kind != RV_SPAWN_REQUEST_START)
                return q->layer[0] ? NULL : "the layer";
        if (q->language > RV_PLAN_JAVASCRIPT)
                return "the language";
        if (q->network > RV_PLAN_NETWORK_ANY)
                return "the network mode";
        if (q->memory_mib < 128 || q->memory_mib > 2048)
                return "memory_mib";
        if (q->timeout_s < 1 || q->timeout_s > 300)
                return "timeout_s";
        if (q->pids < 1 || q->pids > config->limits.pids)
                return "pids";
        if (q->cpus_milli != config->limits.cpus_milli)
                return "cpus";
        if (!rv_config_tenant(config, q->tenant))
                return "the tenant";
        return NULL;
}

const char *request_find_sign_fault(const struct rv_sign_request *q)
{
        if (!has_end(q->log_id, sizeof(q->log_id)) || strspn(q->log_id, "0123456789abcdef") != RV_LOG_ID_SIZE - 1)
                return "the log's id";
        if (q->flags & ~(RV_SIGN_DESTROY | RV_SIGN_LOOK_ONLY))
                return "the flags";
        if (q->edge.size >= RV_SIGN_SIZE_MAX || q->growth.size >= RV_SIGN_SIZE_MAX)
                return "the size of the log";
        if (q->growth.n_parts > RV_MERKLE_GROWTH_MAX)
                return "the log's growth";
        return NULL;
}
