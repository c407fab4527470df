#include "dns.h"

#include "base/fd.h"
#include "egress/dns.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define TURN_DATAGRAMS 4
#define MESSAGE_MAX 4096        /* longer ones are no question */

/* A connection of DNS over TCP. */
struct stream {
        struct run *run;
        struct link link;
        struct watch watch;
        uint64_t due_ms;
        size_t n;
        uint8_t in[2 + MESSAGE_MAX];
};

/* Returns whether there is an answer, and puts a refusal into the evidence. */
static bool answer(struct run *run, const void *message, size_t n, uint8_t ret[RV_DNS_ANSWER_MAX], size_t *ret_n)
{
        struct rv_evidence_key key = { .address = "", .protocol = "dns" };
        struct rv_dns_report report;
        int r = rv_dns_answer(&run->rules->names, run->synth, message, n, ret, ret_n, &report);

        key.name = report.name;
        if (report.denial)
                rv_evidence_deny(run->evidence, &key, report.denial);
        return r == 0;
}

static bool may_answer(struct run *run)
{
        uint64_t now = gate_now(run->gate);

        if (bucket_take(&run->dns_bucket, now))
                return true;
        run_wake_at(run, now + bucket_wait_ms(&run->dns_bucket));
        return false;
}

/* What is to be read out of, and put into, a message so that the answer comes from where the question went. */
union control {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo))];
};

static void set_source(struct msghdr *message)
{
        struct cmsghdr *c = CMSG_FIRSTHDR(message);

        if (!c || c->cmsg_level != SOL_IP || c->cmsg_type != IP_PKTINFO)
                return;
        ((struct in_pktinfo *)CMSG_DATA(c))->ipi_spec_dst = ((struct in_pktinfo *)CMSG_DATA(c))->ipi_addr;
        ((struct in_pktinfo *)CMSG_DATA(c))->ipi_ifindex = 0;
}

/* Returns whether there was a datagram. */
static bool serve_datagram(struct run *run, int fd)
{
        uint8_t out[RV_DNS_ANSWER_MAX];
        union control control;
        struct sockaddr_storage from;
        struct iovec iov = { .iov_base = run->gate->chunk, .iov_len = GATE_CHUNK_BYTES };
        struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &iov, .msg_iovlen = 1,
                                  .msg_control = &control, .msg_controllen = sizeof(control) };
        ssize_t n = recvmsg(fd, &message, 0);
        size_t n_out = 0;

        if (n < 0)
                return errno == EINTR;
        if (n > MESSAGE_MAX || !answer(run, run->gate->chunk, (size_t)n, out, &n_out))
                return true;
        set_source(&message);
        iov = (struct iovec){ .iov_base = out, .iov_len = n_out };
        message.msg_flags = 0;
        (void)sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        return true;
}

static void serve_datagrams(struct watch *watch, struct run *run)
{
        for (int i = 0; i < TURN_DATAGRAMS; i++) {
                if (!may_answer(run)) {
                        (void)watch_set(watch, 0);
                        return;
                }
                if (!serve_datagram(run, watch->fd)) {
                        bucket_return(&run->dns_bucket);
                        return;
                }
        }
}

/* ---- Over TCP ---- */

static void end_stream(struct stream *stream)
{
        watch_close(&stream->watch);
        link_remove(&stream->link);
        link_append(&stream->run->dead_dns_streams, &stream->link);
        stream->run->n_dns_streams--;
        if (!stream->run->dns_tcp.waits_for)
                run_wake_at(stream->run, gate_now(stream->run->gate));
}

/* Answers the questions that are whole. Returns whether the connection goes on. */
static bool answer_stream(struct stream *stream)
{
        uint8_t out[2 + RV_DNS_ANSWER_MAX];
        size_t size, n_out = 0;

        while (stream->n >= 2) {
                size = (size_t)(stream->in[0] << 8 | stream->in[1]);
                if (size > MESSAGE_MAX)
                        return false;
                if (stream->n < 2 + size)
                        return true;
                if (!may_answer(stream->run)) {
                        (void)watch_set(&stream->watch, 0);
                        return true;
                }
                if (!answer(stream->run, stream->in + 2, size, out + 2, &n_out))
                        return false;
                out[0] = (uint8_t)(n_out >> 8);
                out[1] = (uint8_t)n_out;
                if (send(stream->watch.fd, out, 2 + n_out, MSG_NOSIGNAL) != (ssize_t)(2 + n_out))
                        return false;
                stream->n -= 2 + size;
                memmove(stream->in, stream->in + 2 + size, stream->n);
                stream->due_ms = gate_now(stream->run->gate) + DNS_STREAM_MS;
                run_wake_at(stream->run, stream->due_ms);
        }
        return true;
}

static void stream_ready(struct watch *watch, uint32_t events)
{
        struct stream *stream = container_of(watch, struct stream, watch);
        ssize_t n = recv(watch->fd, stream->in + stream->n, sizeof(stream->in) - stream->n, 0);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return;
        stream->n += n > 0 ? (size_t)n : 0;
        if (n <= 0 || !answer_stream(stream))
                end_stream(stream);
}

static void accept_stream(struct run *run)
{
        int fd = accept4(run->dns_tcp.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        struct stream *stream = fd >= 0 ? calloc(1, sizeof(*stream)) : NULL;

        if (!stream) {
                rv_close(fd);
                /* Without a descriptor for it, it stays: not again before the next turn of the timer. */
                (void)watch_set(&run->dns_tcp, 0);
                run_wake_at(run, gate_now(run->gate) + 50);
                return;
        }
        stream->run = run;
        watch_init(&stream->watch, run->epoll_fd, fd, stream_ready);
        stream->due_ms = gate_now(run->gate) + DNS_STREAM_MS;
        run_wake_at(run, stream->due_ms);
        link_append(&run->dns_streams, &stream->link);
        run->n_dns_streams++;
        if (watch_set(&stream->watch, EPOLLIN) < 0)
                end_stream(stream);
}

void dns_accept(struct watch *watch, uint32_t events)
{
        struct run *run = container_of(watch, struct run, dns_tcp);

        if (run->n_dns_streams < DNS_STREAMS_MAX)
                accept_stream(run);
        else
                (void)watch_set(watch, 0);
}

void dns_ready(struct watch *watch, uint32_t events)
{
        serve_datagrams(watch, watch->owner);
}

void dns_on_time(struct run *run, uint64_t now)
{
        link_each(l, &run->dns_streams)
        {
                struct stream *stream = container_of(l, struct stream, link);

                if (stream->due_ms <= now || !answer_stream(stream)) {
                        end_stream(stream);
                        continue;
                }
                run_wake_at(run, stream->due_ms);
                if (stream->n < sizeof(stream->in))
                        (void)watch_set(&stream->watch, EPOLLIN);
        }
        if (run->n_dns_streams < DNS_STREAMS_MAX)
                (void)watch_set(&run->dns_tcp, EPOLLIN);
        (void)watch_set(&run->dns_udp4, EPOLLIN);
        if (run->dns_udp6.fd >= 0)
                (void)watch_set(&run->dns_udp6, EPOLLIN);
}

void dns_reap(struct run *run)
{
        link_each(l, &run->dead_dns_streams)
                free(container_of(l, struct stream, link));
        link_init(&run->dead_dns_streams);
}

void dns_close(struct run *run)
{
        link_each(l, &run->dns_streams)
                end_stream(container_of(l, struct stream, link));
        watch_close_shared(&run->dns_udp4);
        watch_close_shared(&run->dns_udp6);
        watch_close_shared(&run->dns_tcp);
}
