#include "session.h"

#include "base/fetch.h"
#include "base/helper.h"
#include "spawn_msg.h"
#include "store/packages.h"

/* What runs with packages need of this process: the store, the helpers, a thread, and the spawner's hand. */

static int do_work(void *work_arg, void (*fn)(void *arg), void (*done)(void *arg), void *arg)
{
        struct session *s = work_arg;

        return rv_loop_work(&s->loop, fn, done, arg);
}

static int do_layer(void *layer_arg, const struct rv_layer_task *task,
        void (*cb)(void *arg, const struct rv_spawn_event *event), void *arg, uint64_t *ret_id)
{
        static const uint32_t kinds[] = { [RV_LAYER_BUILD] = RV_SPAWN_REQUEST_BUILD,
                [RV_LAYER_COMPILED] = RV_SPAWN_REQUEST_COMPILED,
                 };
        struct session *s = layer_arg;
        const struct rv_spawn_layer layer = { .kind = kinds[task->action],
                .run_id = task->run_id,
                .digest = task->digest,
                .job_fd = task->job_fd,
                .result_fd = task->result_fd,
                .artifacts_fd = task->artifacts_fd,
                .lock_fd = task->lock_fd >= 0 ? task->lock_fd : task->job_fd };

        return rv_spawn_client_layer(s->loop.spawn_client, &layer, cb, arg, ret_id);
}

static void stop_layer(void *layer_arg, uint64_t id)
{
        struct session *s = layer_arg;

        rv_spawn_client_stop(s->loop.spawn_client, id);
}

int session_want_packages(struct session *s)
{
        if (s->fetch_fd < 0)
                (void)rv_fetch_find(&s->fetch_fd, NULL);
        if (s->unpack_fd < 0)
                (void)rv_helper_find("unpack", "reeve-unpack", &s->unpack_fd, NULL);
        s->wants_packages = true;
        return 0;
}

int session_open_packages(struct session *s, struct rv_error *err)
{
        if (!s->wants_packages)
                return 0;
        s->core.fetch_fd = s->fetch_fd;
        s->core.unpack_fd = s->unpack_fd;
        s->core.work = do_work;
        s->core.work_arg = s;
        s->core.layer = do_layer;
        s->core.layer_stop = stop_layer;
        s->core.layer_arg = s;
        return rv_store_open(s->state_fd, s->config->state_dir, s->is_root ? 0 : s->uid, &s->core.store, err);
}
