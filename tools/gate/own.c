#include "own.h"

#include "base/fd.h"
#include "gate.h"
#include "netns_netlink.h"

#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DUMP_BYTES_MIN (64u << 10)
#define DUMP_BYTES_MAX (16u << 20)
#define DUMP_TRIES 10           /* while addresses change */

static void add_attributes(const struct nlmsghdr *m, struct rv_address *own, size_t *n)
{
        const struct ifaddrmsg *head = NLMSG_DATA(m);
        size_t left = m->nlmsg_len - NLMSG_LENGTH(sizeof(*head));

        if (m->nlmsg_type != RTM_NEWADDR || m->nlmsg_len < NLMSG_LENGTH(sizeof(*head)))
                return;
        /* IFA_LOCAL is ours; IFA_ADDRESS too, unless the link is point-to-point and it is the other end's. */
        for (const struct rtattr *a = IFA_RTA(head); RTA_OK(a, left); a = RTA_NEXT(a, left))
                if (a->rta_type == IFA_LOCAL || a->rta_type == IFA_ADDRESS)
                        if (rv_address_make(RTA_DATA(a), RTA_PAYLOAD(a), &own[*n]) == 0)
                                ++*n;
}

static size_t count_messages(const char *buf, size_t size)
{
        size_t n = 0;

        for (const struct nlmsghdr *m = (const void *)buf; NLMSG_OK(m, size); m = NLMSG_NEXT(m, size))
                n++;
        return n;
}

static int dump(struct gate *gate, char *buf, size_t size)
{
        const struct {
                struct nlmsghdr head;
                struct ifaddrmsg body;
        } request = { { .nlmsg_len = sizeof(request),
                              .nlmsg_type = RTM_GETADDR,
                              .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
                              .nlmsg_seq = 1 },
                { .ifa_family = AF_UNSPEC } };
        struct rv_address *own;
        size_t used, n = 0;
        int r = rv_netlink_dump(gate->own_dump_fd, &request, sizeof(request), buf, size, &used);

        if (r < 0)
                return r;
        own = calloc(2 * count_messages(buf, used) + 1, sizeof(*own));
        if (!own)
                return rv_raise(-ENOMEM);
        for (const struct nlmsghdr *m = (const void *)buf; NLMSG_OK(m, used); m = NLMSG_NEXT(m, used))
                add_attributes(m, own, &n);
        free(gate->own);
        gate->own = own;
        gate->n_own = n;
        return 0;
}

/* The socket is made anew for each try: what is left of a list that did not fit must not be taken for the next. */
static int read_own(struct gate *gate)
{
        size_t size = DUMP_BYTES_MIN;
        int r = -EIO;

        for (int i = 0; i < DUMP_TRIES; i++) {
                _cleanup_(rv_freep) char *buf = malloc(size);

                if (!buf)
                        return rv_raise(-ENOMEM);
                r = dump(gate, buf, size);
                if (r != -EINTR && r != -ENOBUFS)
                        return rv_trace(r);
                if (r == -ENOBUFS) {
                        size *= 4;
                        if (size > DUMP_BYTES_MAX)
                                break;
                }
                rv_close(gate->own_dump_fd);
                gate->own_dump_fd = rv_netlink_open(NETLINK_ROUTE);
                if (gate->own_dump_fd < 0)
                        return gate->own_dump_fd;
        }
        return rv_trace(r);
}

static void on_change(uv_poll_t *poll, int status, int events)
{
        struct gate *gate = poll->data;
        char buf[8192];
        int fd;

        /* What changed does not matter, nor whether news of it were lost: all is read again. */
        if (uv_fileno((uv_handle_t *)poll, &fd) == 0)
                while (recv(fd, buf, sizeof(buf), MSG_DONTWAIT) > 0 || errno == ENOBUFS)
                        ;
        if (read_own(gate) == 0)
                return;
        fprintf(stderr, "reeve-gate: the host's addresses cannot be read any more\n");
        _exit(1);
}

int own_open(struct gate *gate, int *ret_watch_fd)
{
        const struct sockaddr_nl groups = { .nl_family = AF_NETLINK,
                .nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
        _cleanup_(rv_closep) int fd = rv_netlink_open(NETLINK_ROUTE);
        int r;

        if (fd < 0)
                return fd;
        if (bind(fd, (const struct sockaddr *)&groups, sizeof(groups)) < 0)
                return rv_raise(-errno);
        gate->own_dump_fd = rv_netlink_open(NETLINK_ROUTE);
        if (gate->own_dump_fd < 0)
                return gate->own_dump_fd;
        r = read_own(gate);
        if (r < 0)
                return rv_trace(r);
        *ret_watch_fd = rv_take_fd(&fd);
        return 0;
}

static void close_watch(uv_handle_t *handle)
{
        rv_close((int)(intptr_t)handle->data);
}

int own_init(struct gate *gate, int watch_fd)
{
        int r = uv_poll_init(&gate->loop, &gate->own_poll, watch_fd);

        gate->own_poll.data = gate;
        if (r == 0)
                r = uv_poll_start(&gate->own_poll, UV_READABLE, on_change);
        return rv_trace(r);
}

void own_fini(struct gate *gate)
{
        int fd = -EBADF;

        (void)uv_fileno((uv_handle_t *)&gate->own_poll, &fd);
        gate->own_poll.data = (void *)(intptr_t)fd;
        uv_close((uv_handle_t *)&gate->own_poll, close_watch);
        rv_close(gate->own_dump_fd);
        free(gate->own);
}
