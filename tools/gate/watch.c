#include "watch.h"

#include "base/fd.h"

#include <sys/socket.h>

void watch_init(struct watch *watch, int epoll_fd, int fd, void (*ready)(struct watch *watch, uint32_t events))
{
        *watch = (struct watch){ .fd = fd, .epoll_fd = epoll_fd, .ready = ready };
}

int watch_set(struct watch *watch, uint32_t events)
{
        struct epoll_event e = { .events = events, .data.ptr = watch };
        int op = !watch->waits_for ? EPOLL_CTL_ADD : events ? EPOLL_CTL_MOD : EPOLL_CTL_DEL;

        if (events == watch->waits_for)
                return 0;
        if (epoll_ctl(watch->epoll_fd, op, watch->fd, &e) < 0)
                return rv_raise(-errno);
        watch->waits_for = events;
        return 0;
}

void watch_close(struct watch *watch)
{
        watch->waits_for = 0;
        watch->fd = rv_close(watch->fd);
}

void watch_close_shared(struct watch *watch)
{
        /* The kernel takes it out of the set when its last descriptor is closed, and ours is not. */
        if (watch->fd >= 0)
                (void)watch_set(watch, 0);
        watch_close(watch);
}

void watch_reset(struct watch *watch)
{
        const struct linger at_once = { .l_onoff = 1 };

        if (watch->fd >= 0)
                (void)setsockopt(watch->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        watch_close(watch);
}
