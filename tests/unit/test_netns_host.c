/*
 * A run's network namespace and its host: rules that are not as they were made, capabilities that are not there or
 * given up, kernels that lack something, and what is left afterwards.
 */
#include "test_netns.h"

#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "netns_batch.h"
#include "netns_netlink.h"
#include "netns_rules.h"

/* ---- Rules that changed ---- */

struct transaction {
        struct nlmsghdr begin_head;
        struct nfgenmsg begin;
        char change[512];
};

/* Begins with what begins a transaction and ends with what ends one; numbers do not matter. */
static int change(const void *message, size_t size)
{
        const struct nlmsghdr head = {
                .nlmsg_len = 20, .nlmsg_type = NFNL_MSG_BATCH_BEGIN, .nlmsg_flags = NLM_F_REQUEST
        };
        struct transaction t = { .begin_head = head, .begin = { .res_id = htons(NFNL_SUBSYS_NFTABLES) } };
        struct nlmsghdr end = head, one;
        int fd = rv_netlink_open(NETLINK_NETFILTER), e = 0, r;

        CHECK(fd >= 0 && size + 20 <= sizeof(t.change));
        memcpy(t.change, message, size);
        memcpy(&one, message, sizeof(one));
        one.nlmsg_seq = 1;
        one.nlmsg_flags |= NLM_F_REQUEST | NLM_F_ACK;
        memcpy(t.change, &one, sizeof(one));
        end.nlmsg_type = NFNL_MSG_BATCH_END;
        memcpy(t.change + size, &end, sizeof(end));
        memcpy(t.change + size + sizeof(end), &t.begin, sizeof(t.begin));
        r = rv_netlink_request(fd, &t, 20 + size + 20, 1, &e);
        close(fd);
        return r < 0 ? r : e;
}

/* What `nft flush ruleset` does. */
static void flush_rules(const struct variant *v, struct rv_netns *net)
{
        const struct {
                struct nlmsghdr head;
                struct nfgenmsg all;
        } del = { { .nlmsg_len = sizeof(del), .nlmsg_type = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_DELTABLE },
                { .nfgen_family = 0 } };

        CHECK(rv_netns_rules_check(v->mode) == 0);
        CHECK(change(&del, sizeof(del)) == 0);
        CHECK(rv_netns_rules_check(v->mode) < 0);
}

static void dial_nowhere(const struct variant *v)
{
        static const char *const nowhere[] = { "93.184.216.34", "169.254.169.254", "10.0.0.1", "2001:db8::1", "127.0.0.1" };

        for (size_t i = 0; i < RV_N_ELEMENTS(nowhere); i++) {
                int64_t start = now_ms();

                CHECK(dial(SOCK_STREAM, nowhere[i], 443) == -ECONNREFUSED);
                CHECK(now_ms() - start < AT_ONCE_MS);
        }
}

static void expect_nothing(const struct variant *v, const struct rv_netns *net)
{
        CHECK(is_quiet(net));
}

static void flushed_rules_connect_nothing(void **state)
{
        netns_play(
                *state, &(struct play){ .privileged = flush_rules, .program = dial_nowhere, .gate = expect_nothing });
}

/* The last rule of the batch, once more. */
static void add_a_rule(const struct variant *v, struct rv_netns *net)
{
        const uint8_t *p = v->mode == RV_NETNS_TPROXY ? rv_netns_tproxy : rv_netns_redirect;
        struct nlmsghdr m, last = { 0 };
        const uint8_t *rule = NULL;

        do {
                memcpy(&m, p, sizeof(m));
                if (m.nlmsg_type == (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE)) {
                        rule = p;
                        last = m;
                }
                p += NLMSG_ALIGN(m.nlmsg_len);
        } while (m.nlmsg_type != NFNL_MSG_BATCH_END);
        CHECK(rule);
        CHECK(rv_netns_rules_check(v->mode) == 0);
        CHECK(change(rule, NLMSG_ALIGN(last.nlmsg_len)) == 0);
        CHECK(rv_netns_rules_check(v->mode) == -EBADE);
}

static void an_added_rule_is_noticed(void **state)
{
        netns_play(*state, &(struct play){ .privileged = add_a_rule });
}

static void open_again(enum rv_netns_mode mode)
{
        struct rv_netns net, again = { .n_fds = 77 };
        const char *step = "";
        unsigned n = count_fds();
        uint32_t object = 77;

        CHECK(netns_enter(WHO_ROOT_IN_USERNS) == 0);
        CHECK(rv_netns_open(mode, &net, &step) == 0);
        CHECK(rv_netns_open(mode, &again, &step) == -EADDRINUSE);
        CHECK(again.n_fds == 77 && !strcmp(step, "listen for connections"));
        rv_netns_close(&net);
        CHECK(net.n_fds == 0 && net.fds[0] < 0 && count_fds() == n);
        CHECK(rv_netns_open(mode, &again, &step) == -EEXIST);
        CHECK(again.n_fds == 77 && !strcmp(step, "make the nftables table"));
        CHECK(rv_netns_open_best(RV_NETNS_TPROXY, &again, &step) == -EEXIST);
        CHECK(again.n_fds == 77);
        CHECK(rv_netns_rules_add(mode, &object) == -EEXIST);
        CHECK(object == RV_NETNS_OBJECT_TABLE);
        CHECK(count_fds() == n);
        CHECK(rv_netns_rules_check(mode) == 0);
        CHECK(rv_netns_rules_check(mode == RV_NETNS_TPROXY ? RV_NETNS_REDIRECT : RV_NETNS_TPROXY) == -EBADE);
}

static void open_tproxy_again(void)
{
        open_again(RV_NETNS_TPROXY);
}

static void open_redirect_again(void)
{
        open_again(RV_NETNS_REDIRECT);
}

static void opening_twice_changes_nothing(void **state)
{
        assert_int_equal(netns_fork(WHO_USER, open_tproxy_again), 0);
        assert_int_equal(netns_fork(WHO_USER, open_redirect_again), 0);
}

/* ---- Capabilities ---- */

static uint32_t capabilities(void)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2];

        CHECK(syscall(SYS_capget, &head, data) == 0);
        CHECK(data[0].effective == data[0].permitted);
        return data[0].effective;
}

static void give_up(const struct variant *v, struct rv_netns *net)
{
        uint32_t before = capabilities(),
                 network = 1u << CAP_NET_ADMIN | 1u << CAP_NET_RAW | 1u << CAP_NET_BIND_SERVICE;

        CHECK((before & network) == network && before & 1u << CAP_SYS_ADMIN);
        CHECK(rv_netns_drop_capabilities() == 0);
        CHECK(capabilities() == (before & ~network));
}

static void change_nothing(const struct variant *v)
{
        const struct sockaddr_in privileged = { .sin_family = AF_INET, .sin_port = htons(80) };
        uint32_t object = 77;
        int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        CHECK(fd >= 0);
        CHECK(setsockopt(fd, SOL_IP, IP_TRANSPARENT, &one, sizeof(one)) < 0 && errno == EPERM);
        CHECK(bind(fd, (const struct sockaddr *)&privileged, sizeof(privileged)) < 0 && errno == EACCES);
        CHECK(rv_netns_rules_add(v->mode, &object) == -EPERM);
        CHECK(socket(AF_INET, SOCK_RAW, IPPROTO_TCP) < 0 && errno == EPERM);
}

static void capabilities_are_given_up(void **state)
{
        netns_play(*state, &(struct play){ .privileged = give_up, .program = change_nothing });
}

/* Who lacks a capability gets an error and nothing that is half there; never another mode, never open doors. */
static void open_without(uint32_t capability, enum rv_netns_mode mode, int expected)
{
        struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
        struct __user_cap_data_struct data[2];
        struct rv_netns net = { .n_fds = 77 };
        const char *step = "";
        unsigned n;
        int r;

        CHECK(netns_enter(WHO_ROOT_IN_USERNS) == 0);
        CHECK(syscall(SYS_capget, &head, data) == 0);
        data[0].effective &= ~(1u << capability);
        data[0].permitted &= ~(1u << capability);
        CHECK(syscall(SYS_capset, &head, data) == 0);
        n = count_fds();
        r = rv_netns_open(mode, &net, &step);
        if (r != expected)
                fprintf(stderr, "cannot %s: %s\n", step, strerror(-r));
        CHECK(r == expected);
        CHECK(net.n_fds == 77 && *step);
        CHECK(count_fds() == n);
}

static void open_without_admin(void)
{
        open_without(CAP_NET_ADMIN, RV_NETNS_TPROXY, -EPERM);
}

static void open_without_bind(void)
{
        open_without(CAP_NET_BIND_SERVICE, RV_NETNS_REDIRECT, -EACCES);
}

static void without_capabilities_nothing_opens(void **state)
{
        assert_int_equal(netns_fork(WHO_USER, open_without_admin), 0);
        assert_int_equal(netns_fork(WHO_USER, open_without_bind), 0);
}

static void no_such_mode(void **state)
{
        struct rv_netns net = { .n_fds = 77 };
        const char *step = "";

        assert_int_equal(rv_netns_open(RV_NETNS_NONE, &net, &step), -EINVAL);
        assert_int_equal(rv_netns_open(RV_NETNS_MODE_MAX_, &net, &step), -EINVAL);
        assert_int_equal(net.n_fds, 77);
        assert_string_equal(rv_netns_mode_name(RV_NETNS_NONE), "none");
        assert_string_equal(rv_netns_mode_name(RV_NETNS_TPROXY), "tproxy");
        assert_string_equal(rv_netns_mode_name(RV_NETNS_REDIRECT), "redirect");
}

/* ---- The probe ---- */

#define ARGUMENT(n) (uint32_t)offsetof(struct seccomp_data, args[n])
#define UNLIKE(value, jump) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), 0, (jump))
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define ANSWER(value) BPF_STMT(BPF_RET | BPF_K, (value))

/* A kernel on which calls of @nr whose argument @n is @value, and @n + 1 too if @next is positive, give @e. */
static void lack(uint32_t nr, unsigned n, uint32_t value, int next, int e)
{
        struct sock_filter filter[] = {
                LOAD(offsetof(struct seccomp_data, nr)),
                UNLIKE(nr, 5),
                LOAD(ARGUMENT(n)),
                UNLIKE(value, 3),
                LOAD(ARGUMENT(n + 1)),
                UNLIKE((uint32_t)next, 1),
                ANSWER(SECCOMP_RET_ERRNO | (uint32_t)e),
                ANSWER(SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = { .len = RV_N_ELEMENTS(filter), .filter = filter };

        if (next < 0)
                filter[5] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_IMM, 0);
        CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
}

static void expect_support(enum rv_netns_mode first, enum rv_netns_mode mode, const char *reason)
{
        struct rv_netns_support s;
        unsigned n = count_fds();

        rv_netns_probe(first, &s);
        if (s.mode != mode || !strstr(s.reason, reason))
                fprintf(stderr, "mode %s, reason: %s\n", rv_netns_mode_name(s.mode), s.reason);
        CHECK(s.mode == mode);
        CHECK(s.has_ipv6 == (mode != RV_NETNS_NONE));
        CHECK(*reason ? strstr(s.reason, reason) != NULL : !*s.reason);
        CHECK(count_fds() == n);
        CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void with_all(void)
{
        expect_support(RV_NETNS_TPROXY, RV_NETNS_TPROXY, "");
}

static void told_to_redirect(void)
{
        expect_support(RV_NETNS_REDIRECT, RV_NETNS_REDIRECT, "");
}

static void without_transparent_sockets(void)
{
        lack(SYS_setsockopt, 1, SOL_IPV6, IPV6_TRANSPARENT, ENOPROTOOPT);
        expect_support(RV_NETNS_TPROXY, RV_NETNS_REDIRECT, "tproxy: cannot listen for connections: Protocol not available; this needs IP_TRANSPARENT");
}

static void without_netfilter(void)
{
        lack(SYS_socket, 2, NETLINK_NETFILTER, -1, EPROTONOSUPPORT);
        expect_support(RV_NETNS_TPROXY, RV_NETNS_NONE, "; redirect: cannot make the nftables table: Protocol not supported; this needs nf_tables");
}

static void without_namespaces(void)
{
        lack(SYS_unshare, 0, CLONE_NEWUSER | CLONE_NEWNET, -1, EPERM);
        expect_support(RV_NETNS_TPROXY, RV_NETNS_NONE, "make a user and a network namespace: Operation not permitted; this needs user namespaces");
}

static void without_original_destination(void)
{
        lack(SYS_getsockopt, 1, SOL_IPV6, 80, ENOPROTOOPT);
        expect_support(RV_NETNS_REDIRECT, RV_NETNS_NONE, "redirect: cannot connect through the rules: Protocol not available");
}

/* A run takes what there is by itself. */
static void opens_what_there_is(void)
{
        struct rv_netns net = { .n_fds = 77 };
        const char *step = "";

        CHECK(netns_enter(WHO_ROOT_IN_USERNS) == 0);
        lack(SYS_setsockopt, 1, SOL_IPV6, IPV6_TRANSPARENT, ENOPROTOOPT);
        CHECK(rv_netns_open(RV_NETNS_TPROXY, &net, &step) == -ENOPROTOOPT);
        CHECK(net.n_fds == 77);
        CHECK(rv_netns_open_best(RV_NETNS_TPROXY, &net, &step) == 0);
        CHECK(net.mode == RV_NETNS_REDIRECT && net.n_fds == RV_NETNS_SOCKET_MAX_);
        CHECK(rv_netns_rules_check(RV_NETNS_REDIRECT) == 0);
}

static void opens_nothing_without_rules(void)
{
        struct rv_netns net = { .n_fds = 77 };
        const char *step = "";
        unsigned n = count_fds();

        CHECK(netns_enter(WHO_ROOT_IN_USERNS) == 0);
        lack(SYS_socket, 2, NETLINK_NETFILTER, -1, EPROTONOSUPPORT);
        CHECK(rv_netns_open_best(RV_NETNS_TPROXY, &net, &step) == -EPROTONOSUPPORT);
        CHECK(net.n_fds == 77 && !strcmp(step, "make the nftables table") && count_fds() == n);
}

static void a_run_takes_what_there_is(void **state)
{
        assert_int_equal(netns_fork(WHO_USER, opens_what_there_is), 0);
        assert_int_equal(netns_fork(WHO_USER, opens_nothing_without_rules), 0);
}

/* As by an older caller that ignores its children. */
static void with_ignored_children(void)
{
        struct rv_netns_support s;

        CHECK(signal(SIGCHLD, SIG_IGN) != SIG_ERR);
        rv_netns_probe(RV_NETNS_TPROXY, &s);
        CHECK(s.mode == RV_NETNS_TPROXY);
}

static void the_probe_tells(void **state)
{
        static const struct {
                const char *name;
                void (*body)(void);
        } rows[] = {
                { "with all", with_all },
                { "told to redirect", told_to_redirect },
                { "without transparent sockets", without_transparent_sockets },
                { "without netfilter", without_netfilter },
                { "without namespaces", without_namespaces },
                { "without the original destination", without_original_destination },
                { "with ignored children", with_ignored_children },
        };

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                for (enum who who = geteuid() == 0 ? WHO_ROOT : WHO_USER; who <= WHO_USER; who++)
                        if (who != WHO_ROOT_IN_USERNS && netns_fork(who, rows[i].body) != 0)
                                fail_msg("%s%s", rows[i].name, who == WHO_USER ? ", as a user" : "");
}

/* ---- What is left ---- */

static bool can_have_another(void)
{
        int status = -1;
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (pid == 0)
                _exit(unshare(CLONE_NEWNET) < 0);
        CHECK(waitpid(pid, &status, 0) == pid);
        return status == 0;
}

/* This user may have one network namespace at a time, so whether one is left shows in whether there can be another. */
static void have_one_at_a_time(void)
{
        struct rv_netns net = { .n_fds = 0 };
        int channel[2], own, status = -1;
        unsigned n = count_fds();
        const char *step;
        int64_t start;
        pid_t pid;

        CHECK(unshare(CLONE_NEWUSER) == 0);
        CHECK(write_text("/proc/self/setgroups", "deny") == 0);
        own = write_text("/proc/self/uid_map", "0 65534 1\n");
        if (own < 0)
                own = write_text("/proc/self/uid_map", "0 0 1\n");
        CHECK(own == 0);
        CHECK(write_text("/proc/sys/user/max_net_namespaces", "1") == 0);
        for (int mode = RV_NETNS_TPROXY; mode < RV_NETNS_MODE_MAX_; mode++) {
                CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, channel) == 0);
                pid = fork();
                CHECK(pid >= 0);
                if (pid == 0) {
                        /* What the last one left, or a try, goes a moment after its end. */
                        for (start = now_ms(); unshare(CLONE_NEWNET) < 0; usleep(1000))
                                CHECK(now_ms() - start < ARRIVES_MS);
                        CHECK(rv_netns_open(mode, &net, &step) == 0);
                        CHECK(dial(SOCK_DGRAM, "8.8.8.8", RV_NETNS_DNS_PORT) >= 0);
                        CHECK(rv_send_with_fds(channel[1], &net, sizeof(net), net.fds, net.n_fds) == 0);
                        _exit(0);
                }
                CHECK(waitpid(pid, &status, 0) == pid && status == 0);
                /* Its process is gone; the sockets keep it. */
                usleep(20000);
                CHECK(!can_have_another());
                close(channel[0]);
                close(channel[1]);
                for (start = now_ms(); !can_have_another(); usleep(1000))
                        CHECK(now_ms() - start < ARRIVES_MS);
                CHECK(count_fds() == n);
        }
}

static void nothing_is_left(void **state)
{
        assert_int_equal(netns_fork(WHO_USER, have_one_at_a_time), 0);
}

static const struct variant variants[] = {
        { "root, tproxy", WHO_ROOT, RV_NETNS_TPROXY },
        { "root in a user namespace, tproxy", WHO_ROOT_IN_USERNS, RV_NETNS_TPROXY },
        { "user, tproxy", WHO_USER, RV_NETNS_TPROXY },
        { "user, redirect", WHO_USER, RV_NETNS_REDIRECT },
};

#define ROW(test) { #test, test, true }
#define ROW_ONCE(test) { #test, test, false }

int main(void)
{
        static const struct {
                const char *name;
                CMUnitTestFunction run;
                bool has_variants;
        } rows[] = {
                ROW(flushed_rules_connect_nothing),
                ROW(an_added_rule_is_noticed),
                ROW_ONCE(opening_twice_changes_nothing),
                ROW(capabilities_are_given_up),
                ROW_ONCE(without_capabilities_nothing_opens),
                ROW_ONCE(no_such_mode),
                ROW_ONCE(the_probe_tells),
                ROW_ONCE(a_run_takes_what_there_is),
                ROW_ONCE(nothing_is_left),
        };
        static char names[RV_N_ELEMENTS(rows) * RV_N_ELEMENTS(variants)][128];
        struct CMUnitTest tests[RV_N_ELEMENTS(names)];
        size_t n = 0;

        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++)
                for (size_t j = 0; j < (rows[i].has_variants ? RV_N_ELEMENTS(variants) : 1); j++) {
                        snprintf(names[n], sizeof(names[n]), rows[i].has_variants ? "%s (%s)" : "%s", rows[i].name, variants[j].name);
                        tests[n] = (struct CMUnitTest){
                                .name = names[n], .test_func = rows[i].run, .initial_state = (void *)&variants[j]
                        };
                        n++;
                }
        return _cmocka_run_group_tests("netns_host", tests, n, NULL, NULL);
}
