#include "netns_netlink.h"

#include <string.h>
#include <sys/socket.h>

int rv_netlink_open(int protocol)
{
        int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

        return fd < 0 ? -errno : fd;
}

/* One message of what was received, taken off *@p; NULL at the end. Sets *@ret_r to -EPROTO if the rest is no message. */
static const struct nlmsghdr *take_message(const char **p, size_t *left, int *ret_r)
{
        const struct nlmsghdr *m = (const void *)*p;
        size_t n;

        if (*left == 0)
                return NULL;
        if (*left < sizeof(*m) || m->nlmsg_len < sizeof(*m) || m->nlmsg_len > *left) {
                *ret_r = -EPROTO;
                return NULL;
        }
        n = RV_MIN((size_t)NLMSG_ALIGN(m->nlmsg_len), *left);
        *p += n;
        *left -= n;
        return m;
}

static bool get_error(const struct nlmsghdr *m, int *ret)
{
        const struct nlmsgerr *e = (const void *)(m + 1);

        if (m->nlmsg_len < sizeof(*m) + sizeof(e->error))
                return false;
        *ret = e->error;
        return true;
}

static int receive(int fd, void *buf, size_t size, size_t *ret_n)
{
        ssize_t n;

        do
                n = recv(fd, buf, size, MSG_TRUNC);
        while (n < 0 && errno == EINTR);
        if (n < 0)
                return errno == EAGAIN ? -EPROTO : -errno;
        *ret_n = (size_t)n;
        return 0;
}

int rv_netlink_request(int fd, const void *messages, size_t size, uint32_t n, int errors[])
{
        union {
                struct nlmsghdr head;
                char bytes[4096];
        } buf;
        uint32_t n_left = n;
        int told[RV_NETLINK_MESSAGES_MAX], r;

        if (n > RV_NETLINK_MESSAGES_MAX)
                return -EINVAL;
        for (uint32_t i = 0; i < n; i++)
                told[i] = 1;            /* not told: an error is never positive */
        if (send(fd, messages, size, 0) < 0)
                return -errno;
        while (n_left) {
                const char *p = buf.bytes;
                const struct nlmsghdr *m;
                size_t got = 0;

                r = receive(fd, buf.bytes, sizeof(buf), &got);
                if (r < 0)
                        return r;
                /* An error carries the request behind its number, which nobody needs: it may be cut. */
                if (got > sizeof(buf)) {
                        got = sizeof(buf);
                        buf.head.nlmsg_len = sizeof(buf);
                }
                while ((m = take_message(&p, &got, &r))) {
                        int e;

                        if (m->nlmsg_type != NLMSG_ERROR || !get_error(m, &e) || e > 0)
                                return -EPROTO;
                        if (m->nlmsg_seq == 0 && e < 0)
                                return e;
                        if (m->nlmsg_seq == 0 || m->nlmsg_seq > n || told[m->nlmsg_seq - 1] <= 0)
                                return -EPROTO;
                        told[m->nlmsg_seq - 1] = e;
                        n_left--;
                }
                if (r < 0)
                        return r;
        }
        memcpy(errors, told, n * sizeof(*errors));
        return 0;
}

int rv_netlink_dump(int fd, const void *request, size_t request_size, void *buf, size_t size, size_t *ret_size)
{
        size_t used = 0;

        if (send(fd, request, request_size, 0) < 0)
                return -errno;
        for (;;) {
                const char *p = (char *)buf + used;
                const struct nlmsghdr *m;
                size_t got = 0;
                int r = receive(fd, (char *)buf + used, size - used, &got), e;

                if (r < 0)
                        return r;
                if (got > size - used)
                        return -ENOBUFS;
                while ((m = take_message(&p, &got, &r))) {
                        if (m->nlmsg_flags & NLM_F_DUMP_INTR)
                                return -EINTR;
                        if (m->nlmsg_type == NLMSG_ERROR)
                                return get_error(m, &e) && e < 0 ? e : -EPROTO;
                        if (m->nlmsg_type == NLMSG_DONE) {
                                /* The result of the dump stands in it. */
                                if (get_error(m, &e) && e < 0)
                                        return e;
                                *ret_size = used;
                                return 0;
                        }
                        used = (size_t)(p - (char *)buf);
                }
                if (r < 0)
                        return r;
        }
}
