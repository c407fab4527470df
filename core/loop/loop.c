#include "loop/loop.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define LOOP_DESCRIPTORS 6      /* epoll, two pipes, an eventfd */

struct rv_host_timer {
        uv_timer_t uv;
        void (*cb)(void *arg);
        void *arg;
};

struct rv_host_watch {
        uv_poll_t uv;
        void (*cb)(void *arg, uint32_t events);
        void *arg;
};

static void free_handle(uv_handle_t *handle)
{
        free(handle->data);
}

static void log_line(void *ctx, enum rv_log_level level, const char *text)
{
        (void)ctx;
        if (level >= RV_LOG_WARNING || getenv("REEVE_DEBUG_ERRORS"))
                fprintf(stderr, "reeve: %s\n", text);
}

static void on_timer(uv_timer_t *uv)
{
        struct rv_host_timer *timer = uv->data;

        timer->cb(timer->arg);
}

static int timer_start(void *ctx, uint64_t ms, void (*cb)(void *arg), void *arg, struct rv_host_timer **ret)
{
        struct rv_loop *loop = ctx;
        struct rv_host_timer *timer = calloc(1, sizeof(*timer));
        int r;

        if (!timer)
                return rv_raise(-ENOMEM);
        timer->cb = cb;
        timer->arg = arg;
        r = uv_timer_init(&loop->uv, &timer->uv);
        if (r < 0) {
                free(timer);
                return rv_raise(r);
        }
        timer->uv.data = timer;
        /* The loop's idea of now is that of its last wake-up: work since then must not shorten the time. */
        uv_update_time(&loop->uv);
        uv_timer_start(&timer->uv, on_timer, ms, 0);
        *ret = timer;
        return 0;
}

static void timer_stop(void *ctx, struct rv_host_timer *timer)
{
        (void)ctx;
        if (timer)
                uv_close((uv_handle_t *)&timer->uv, free_handle);
}

static void on_poll(uv_poll_t *uv, int status, int events)
{
        struct rv_host_watch *watch = uv->data;
        uint32_t seen = 0;

        /* An error of the descriptor is told as readiness: reading or writing then says what it is. */
        if (status < 0 || events & (UV_READABLE | UV_DISCONNECT))
                seen |= RV_WATCH_READ;
        if (status < 0 || events & UV_WRITABLE)
                seen |= RV_WATCH_WRITE;
        watch->cb(watch->arg, seen);
}

static int watch_add(void *ctx, int fd, uint32_t events, void (*cb)(void *arg, uint32_t events), void *arg,
        struct rv_host_watch **ret)
{
        struct rv_loop *loop = ctx;
        struct rv_host_watch *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch)
                return rv_raise(-ENOMEM);
        watch->cb = cb;
        watch->arg = arg;
        r = uv_poll_init(&loop->uv, &watch->uv, fd);
        if (r < 0) {
                free(watch);
                return rv_raise(r);
        }
        watch->uv.data = watch;
        r = uv_poll_start(&watch->uv,
                (events & RV_WATCH_READ ? UV_READABLE : 0) | (events & RV_WATCH_WRITE ? UV_WRITABLE : 0), on_poll);
        if (r < 0) {
                uv_close((uv_handle_t *)&watch->uv, free_handle);
                return rv_raise(r);
        }
        *ret = watch;
        return 0;
}

static void watch_remove(void *ctx, struct rv_host_watch *watch)
{
        (void)ctx;
        if (!watch)
                return;
        uv_poll_stop(&watch->uv);
        uv_close((uv_handle_t *)&watch->uv, free_handle);
}

/* libuv does not report it but aborts when it cannot make the pipe of its signal handler. */
static int check_descriptors(void)
{
        int fds[LOOP_DESCRIPTORS], n = 0, r = 0;

        while (n < LOOP_DESCRIPTORS && r == 0) {
                fds[n] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
                if (fds[n] >= 0)
                        n++;
                else
                        r = rv_raise(-errno);
        }
        while (n > 0)
                close(fds[--n]);
        return r;
}

int rv_loop_init(struct rv_loop *loop)
{
        int r;

        r = check_descriptors();
        if (r < 0)
                return rv_trace(r);

        *loop = (struct rv_loop){
                .host = { .struct_size = sizeof(loop->host),
                        .abi_major = RV_BACKEND_ABI_MAJOR,
                        .abi_minor = RV_BACKEND_ABI_MINOR,
                        .log = log_line,
                        .timer_start = timer_start,
                        .timer_stop = timer_stop,
                        .watch_add = watch_add,
                        .watch_remove = watch_remove },
        };
        loop->host.ctx = loop;
        r = uv_loop_init(&loop->uv);
        return r < 0 ? rv_raise(r) : 0;
}

struct work {
        uv_work_t uv;
        void (*fn)(void *arg);
        void (*done)(void *arg);
        void *arg;
};

static void on_work(uv_work_t *uv)
{
        struct work *work = uv->data;

        work->fn(work->arg);
}

static void on_worked(uv_work_t *uv, int status)
{
        struct work work = *(struct work *)uv->data;

        (void)status;           /* nobody cancels it */
        free(uv->data);
        work.done(work.arg);
}

int rv_loop_work(struct rv_loop *loop, void (*fn)(void *arg), void (*done)(void *arg), void *arg)
{
        struct work *work = calloc(1, sizeof(*work));
        int r;

        if (!work)
                return rv_raise(-ENOMEM);
        *work = (struct work){ .fn = fn, .done = done, .arg = arg };
        work->uv.data = work;
        r = uv_queue_work(&loop->uv, &work->uv, on_work, on_worked);
        if (r < 0)
                free(work);
        return r < 0 ? rv_raise(r) : 0;
}

void rv_loop_run(struct rv_loop *loop)
{
        uv_run(&loop->uv, UV_RUN_DEFAULT);
}

void rv_loop_stop(struct rv_loop *loop)
{
        uv_stop(&loop->uv);
}

void rv_loop_fini(struct rv_loop *loop)
{
        /* Closed handles are freed in the loop's next turn; all of them are freed by free_handle. */
        while (uv_run(&loop->uv, UV_RUN_NOWAIT))
                ;
        rv_check(uv_loop_close(&loop->uv) == 0);
}
