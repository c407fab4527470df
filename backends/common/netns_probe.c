#include "netns.h"

#include "common.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Addresses of nobody, RFC 5737 and RFC 3849; the port, because no rule may look at it. */
#define SOME_IPV4 "192.0.2.1"
#define SOME_IPV6 "2001:db8::1"
#define SOME_PORT 33000

#define MAKE_NAMESPACES "make a user and a network namespace"
#define CONNECT "connect through the rules"

/* What the child found, written in one piece. */
struct finding {
        int r;                       /* 0 or -errno of `step` */
        bool has_ipv6;
        char step[64];
};

/* What a step stands or falls with, for whoever runs the host. */
static const struct {
        const char *step, *need;
} needs[] = {
        { MAKE_NAMESPACES, "user namespaces: kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0, "
                           "user.max_user_namespaces and max_net_namespaces above 0" },
        { "make local routes", "IPv4 routing (CONFIG_INET)" },
        { "listen for connections", "IP_TRANSPARENT" },
        { "make the nftables table", "nf_tables (CONFIG_NF_TABLES, CONFIG_NF_TABLES_INET)" },
        { "make the nftables filter chain", "nf_tables (CONFIG_NF_TABLES_INET)" },
        { "make the nftables tproxy rules", "nft_tproxy (CONFIG_NFT_TPROXY)" },
        { "make the nftables nat chain", "nft_chain_nat (CONFIG_NFT_NAT)" },
        { "make the nftables redirect rules", "nft_redir (CONFIG_NFT_REDIR)" },
};

static bool is_same(const union rv_netns_address *a, const union rv_netns_address *b)
{
        if (a->any.sa_family != b->any.sa_family)
                return false;
        if (a->any.sa_family == AF_INET)
                return a->ipv4.sin_port == b->ipv4.sin_port && a->ipv4.sin_addr.s_addr == b->ipv4.sin_addr.s_addr;
        return a->ipv6.sin6_port == b->ipv6.sin6_port && IN6_ARE_ADDR_EQUAL(&a->ipv6.sin6_addr, &b->ipv6.sin6_addr);
}

/* Does a connection to @to arrive, and tell that it was meant for it? Between two sockets of one thread. */
static int try_connection(
        const struct rv_netns *net, enum rv_netns_mode mode, const union rv_netns_address *to, socklen_t size)
{
        struct pollfd wait = { .fd = net->fds[RV_NETNS_SOCKET_TCP], .events = POLLIN };
        union rv_netns_address told;
        int client, served = -EBADF, r;

        client = socket(to->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (client < 0)
                return -errno;
        if (connect(client, &to->any, size) < 0 && errno != EINPROGRESS)
                goto fail;
        if (poll(&wait, 1, RV_NETNS_PROBE_MS / 4) == 0)
                errno = ETIMEDOUT;
        else
                served = accept4(wait.fd, NULL, NULL, SOCK_CLOEXEC);
        if (served < 0)
                goto fail;
        r = rv_netns_destination(served, mode, &told);
        if (r == 0 && !is_same(&told, to))
                r = -EADDRNOTAVAIL;
        rv_close(served);
        rv_close(client);
        return r;
fail:
        r = -errno;
        rv_close(client);
        return r;
}

static int try_connections(const struct rv_netns *net, enum rv_netns_mode mode)
{
        union rv_netns_address to = { .ipv4 = { .sin_family = AF_INET, .sin_port = htons(SOME_PORT) } };
        int r;

        inet_pton(AF_INET, SOME_IPV4, &to.ipv4.sin_addr);
        r = try_connection(net, mode, &to, sizeof(to.ipv4));
        if (r < 0 || !net->has_ipv6)
                return r;
        to = (union rv_netns_address){ .ipv6 = { .sin6_family = AF_INET6, .sin6_port = htons(SOME_PORT) } };
        inet_pton(AF_INET6, SOME_IPV6, &to.ipv6.sin6_addr);
        return try_connection(net, mode, &to, sizeof(to.ipv6));
}

static _Noreturn void try_in_child(enum rv_netns_mode mode, int report_fd)
{
        struct finding f = { .r = 0 };
        struct rv_netns net = { .n_fds = 0 };
        const char *step = MAKE_NAMESPACES;

        prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
                f.r = -errno;
        if (f.r == 0)
                f.r = rv_netns_open(mode, &net, &step);
        if (f.r == 0) {
                step = CONNECT;
                f.has_ipv6 = net.has_ipv6;
                f.r = try_connections(&net, mode);
        }
        rv_text_copy(f.step, sizeof(f.step), step);
        (void)!write(report_fd, &f, sizeof(f));
        _exit(0);
}

static void try_mode(enum rv_netns_mode mode, struct finding *ret)
{
        struct pollfd wait = { .events = POLLIN };
        int fds[2];
        pid_t pid;

        *ret = (struct finding){ .step = "start a process that tries it" };
        if (pipe2(fds, O_CLOEXEC) < 0) {
                ret->r = -errno;
                return;
        }
        pid = fork();
        if (pid == 0)
                try_in_child(mode, fds[1]);
        ret->r = pid < 0 ? -errno : -ETIMEDOUT;
        rv_close(fds[1]);
        wait.fd = fds[0];
        if (pid > 0) {
                if (poll(&wait, 1, RV_NETNS_PROBE_MS) == 1 && read(fds[0], ret, sizeof(*ret)) != sizeof(*ret))
                        *ret = (struct finding){ .r = -ECHILD, .step = "hear of the process that tries it" };
                kill(pid, SIGKILL);
                while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        rv_close(fds[0]);
}

const char *rv_netns_need(const char *step)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(needs); i++)
                if (!strcmp(needs[i].step, step))
                        return needs[i].need;
        return NULL;
}

/* @f failed: adds what and why behind what the reason says already. */
static void explain(enum rv_netns_mode mode, const struct finding *f, struct rv_netns_support *s)
{
        const char *need = rv_netns_need(f->step);
        size_t n = strlen(s->reason);

        snprintf(s->reason + n, sizeof(s->reason) - n, "%s%s: cannot %s: %s%s%s", n ? "; " : "", rv_netns_mode_name(mode), f->step,
                 strerror(-f->r), need ? "; this needs " : "", need ? need : "");
}

void rv_netns_probe(enum rv_netns_mode first, struct rv_netns_support *ret)
{
        struct finding f;

        *ret = (struct rv_netns_support){ .mode = RV_NETNS_NONE };
        for (enum rv_netns_mode mode = RV_MAX(first, RV_NETNS_TPROXY); mode < RV_NETNS_MODE_MAX_; mode++) {
                try_mode(mode, &f);
                if (f.r == 0) {
                        ret->mode = mode;
                        ret->has_ipv6 = f.has_ipv6;
                        break;
                }
                explain(mode, &f, ret);
                if (!strcmp(f.step, MAKE_NAMESPACES))
                        return;         /* whatever the mode */
        }
        if (ret->mode && !ret->has_ipv6)
                snprintf(ret->reason + strlen(ret->reason), sizeof(ret->reason) - strlen(ret->reason), "%sIPv6 is off in this kernel: "
                         "programs reach IPv4 destinations only", *ret->reason ? "; " : "");
}
