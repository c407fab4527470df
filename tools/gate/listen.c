#include "listen.h"

#include "base/fd.h"
#include "conn.h"
#include "egress/gate_msg.h"

#include <fcntl.h>
#include <sys/socket.h>

#define TURN_CONNECTIONS 1
#define REFUSED_AT_ONCE 64
#define SHORTAGE_MS 50          /* of descriptors or memory: not tried again before */

static void pause_until(struct run *run, uint64_t ms)
{
        (void)watch_set(&run->listener, 0);
        run_wake_at(run, ms);
}

/* No descriptor is left for it: taken by the spare one, it learns so at once. */
static void refuse_by_spare(struct run *run)
{
        struct gate *gate = run->gate;
        int fd;

        gate->spare_fd = rv_close(gate->spare_fd);
        fd = accept4(run->listener.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0) {
                struct watch client;

                watch_init(&client, run->epoll_fd, fd, NULL);
                watch_reset(&client);
        }
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

void listen_ready(struct watch *watch, uint32_t events)
{
        struct run *run = container_of(watch, struct run, listener);
        uint64_t now = gate_now(run->gate);

        for (int i = 0; i < TURN_CONNECTIONS; i++) {
                int fd;

                if (run->n_conns >= run->rules->limits.connections) {
                        run->full_ms = run->full_ms ? run->full_ms : now;
                        pause_until(run, run->full_ms + LISTEN_WAIT_MS);
                        return;
                }
                if (!bucket_take(&run->connection_bucket, now)) {
                        pause_until(run, now + bucket_wait_ms(&run->connection_bucket));
                        return;
                }
                fd = take(run);
                if (fd < 0) {
                        bucket_return(&run->connection_bucket);
                        return;
                }
                conn_new(run, fd, RV_DENIAL_NONE);
        }
}

/* Those that have waited too long, and whoever came after them: the queue does not tell them apart. */
static void refuse_waiting(struct run *run)
{
        for (int i = 0; i < REFUSED_AT_ONCE; i++) {
                int fd = take(run);

                if (fd < 0)
                        return;
                conn_new(run, fd, RV_DENIAL_CONNECTION_LIMIT);
        }
}

void listen_on_time(struct run *run, uint64_t now)
{
        if (run->listener.waits_for)
                return;
        if (run->n_conns < run->rules->limits.connections) {
                run->full_ms = 0;
        } else if (run->full_ms && now >= run->full_ms + LISTEN_WAIT_MS) {
                refuse_waiting(run);
                run->full_ms = now;
        }
        if (run->full_ms)
                run_wake_at(run, run->full_ms + LISTEN_WAIT_MS);
        else
                (void)watch_set(&run->listener, EPOLLIN);
}

void listen_close(struct run *run)
{
        uint64_t now = gate_now(run->gate);
        int fd;

        while (run->n_conns < run->rules->limits.connections && bucket_take(&run->connection_bucket, now)) {
                fd = take(run);
                if (fd < 0)
                        break;
                conn_new(run, fd, RV_DENIAL_NONE);
        }
        run->full_ms = 0;
        watch_close_shared(&run->listener);
}
