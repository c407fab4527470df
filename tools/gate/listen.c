#include "listen.h"

#include "base/fd.h"
#include "conn.h"
#include "egress/gate_msg.h"

#include <fcntl.h>
#include <sys/socket.h>

#define TURN_CONNECTIONS 1
#define SHORTAGE_MS 50          /* of descriptors or memory: not tried again before */

struct waiting {
        struct link link;
        int fd;
        uint64_t due_ms;
};

static void pause_until(struct run *run, uint64_t ms)
{
        (void)watch_set(&run->listener, 0);
        run_wake_at(run, ms);
}

static void reset(struct run *run, int fd)
{
        struct watch client;

        watch_init(&client, run->epoll_fd, fd, NULL);
        watch_reset(&client);
}

/* No descriptor is left for it: taken by the spare one, it learns so at once. */
static void refuse_by_spare(struct run *run)
{
        struct gate *gate = run->gate;
        int fd;

        gate->spare_fd = rv_close(gate->spare_fd);
        fd = accept4(run->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
                reset(run, fd);
        gate->spare_fd = fcntl(RV_GATE_CHANNEL_FD, F_DUPFD_CLOEXEC, 0);
}

/* Returns a connection, or -EAGAIN when there is none now, however that came. */
static int take(struct run *run)
{
        for (;;) {
                int fd = accept4(run->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

                if (fd >= 0)
                        return fd;
                if (errno == ECONNABORTED || errno == EINTR)
                        continue;
                if (errno == EMFILE || errno == ENFILE) {
                        refuse_by_spare(run);
                        pause_until(run, gate_now(run->gate) + SHORTAGE_MS);
                } else if (errno != EAGAIN) {
                        pause_until(run, gate_now(run->gate) + SHORTAGE_MS);
                }
                return -EAGAIN;
        }
}

/* The first in line; NULL: nobody waits. */
static struct waiting *first_in_line(const struct run *run)
{
        return link_is_alone(&run->waiting) ? NULL : container_of(run->waiting.next, struct waiting, link);
}

static int take_first(struct run *run)
{
        struct waiting *first = first_in_line(run);
        int fd = first->fd;

        link_remove(&first->link);
        run->n_waiting--;
        free(first);
        return fd;
}

static bool is_full(const struct run *run)
{
        return run->n_conns >= run->rules->limits.connections;
}

static bool may_stand_in_line(const struct run *run)
{
        return run->n_waiting + run->n_refused < LISTEN_LINE_MAX;
}

static void stand_in_line(struct run *run, int fd, uint64_t now)
{
        struct waiting *last = calloc(1, sizeof(*last));

        if (!last) {
                reset(run, fd);
                return;
        }
        last->fd = fd;
        last->due_ms = now + LISTEN_WAIT_MS;
        link_append(&run->waiting, &last->link);
        run->n_waiting++;
        run_wake_at(run, last->due_ms);
}

/* Returns whether there may be another one. */
static bool take_one(struct run *run, uint64_t now)
{
        int fd;

        if (!may_stand_in_line(run)) {
                (void)watch_set(&run->listener, 0);      /* each of the line ends soon, and the timer fires then */
                return false;
        }
        if (!bucket_take(&run->connection_bucket, now)) {
                pause_until(run, now + bucket_wait_ms(&run->connection_bucket));
                return false;
        }
        fd = take(run);
        if (fd < 0) {
                bucket_return(&run->connection_bucket);
                return false;
        }
        if (is_full(run) || first_in_line(run))
                stand_in_line(run, fd, now);
        else
                conn_new(run, fd, RV_DENIAL_NONE);
        return true;
}

void listen_ready(struct watch *watch, uint32_t events)
{
        struct run *run = container_of(watch, struct run, listener);

        for (int i = 0; i < TURN_CONNECTIONS; i++)
                if (!take_one(run, gate_now(run->gate)))
                        return;
}

/* Takes what is connected already, as far as the limits allow, and nothing more. */
static void drain(struct run *run, uint64_t now)
{
        while (run->listener.fd >= 0 && run_take_turn(run))
                if (!take_one(run, now))
                        watch_close_shared(&run->listener);
        while (now >= run->drain_ms && first_in_line(run) && run_take_turn(run))
                reset(run, take_first(run));
}

void listen_on_time(struct run *run, uint64_t now)
{
        const struct waiting *first;

        if (run->drain_ms)
                drain(run, now);
        while (!is_full(run) && first_in_line(run) && run_take_turn(run))
                conn_new(run, take_first(run), RV_DENIAL_NONE);
        for (first = first_in_line(run); first && first->due_ms <= now; first = first_in_line(run)) {
                if (!run_take_turn(run))
                        break;
                conn_new(run, take_first(run), RV_DENIAL_CONNECTION_LIMIT);
        }
        if (first && first->due_ms > now)
                run_wake_at(run, first->due_ms);
        if (run->listener.fd >= 0 && may_stand_in_line(run))
                (void)watch_set(&run->listener, EPOLLIN);
}

void listen_close(struct run *run)
{
        while (first_in_line(run))
                reset(run, take_first(run));
        watch_close_shared(&run->listener);
}
