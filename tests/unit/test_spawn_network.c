/*
 * Runs with network, by the spawner's channel: the sockets that come with HELD, the gate that is started for them, and
 * what is told when it ends or cannot be had. The spawner is a copy beside which a gate of the test's own lies: this
 * program, which is one when it is called so. Needs root.
 */
#include "test_spawn.h"

#include "egress/gate_msg.h"
#include "netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define DIAL "import socket\ns = socket.create_connection(('192.0.2.7', 4242), timeout=8)\nprint(s.recv(9).decode(), flush=True)\n"

/* ---- The gate ---- */

/* Tells what it is and has, then waits for its end. */
static int be_gate(void)
{
        char text[256], pid_text[16] = "", byte;
        int fd = open("/proc/self/cgroup", O_RDONLY);
        ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

        close(fd);

        text[n > 0 ? n : 0] = 0;
        snprintf(pid_text, sizeof(pid_text), "%d", (int)getpid());
        snprintf(text + (n > 200 ? 200 : n), 56, "\nuid=%u nnp=%d env=%d pid=%s", (unsigned)getuid(), prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0),
                 environ[0] != NULL, pid_text);
        if (send(RV_GATE_CHANNEL_FD, text, strlen(text), MSG_NOSIGNAL) < 0)
                return 9;
        while (recv(RV_GATE_CHANNEL_FD, &byte, 1, 0) > 0)
                if (byte == 'x')
                        return 3;
        return 0;
}

/* ---- The test's spawner ---- */

static void copy(const char *from, const char *to)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };

        assert_int_equal(rv_read_file_at(AT_FDCWD, from, 256u << 20, &text), 0);
        assert_int_equal(rv_write_file(to, text.data, text.size, 0755, false), 0);
}

static void make_tree(void **state, bool has_gate)
{
        char own[512] = "";

        need_root();
        assert_true(readlink("/proc/self/exe", own, sizeof(own) - 1) > 0);
        assert_int_equal(rv_mkdir_p(tmp_path(state, "spawner"), 0755), 0);
        assert_int_equal(rv_mkdir_p(tmp_path(state, "gate"), 0755), 0);
        copy(spawner_path(), tmp_path(state, "spawner/reeve-spawner"));
        if (has_gate)
                copy(own, tmp_path(state, "gate/reeve-gate"));
}

static void begin(void **state, struct child *c)
{
        spawner_begin_at(state, tmp_path(state, "spawner/reeve-spawner"), "", c);
}

static struct rv_spawn_request networked(uint64_t id)
{
        struct rv_spawn_request q = good_request(id);

        q.network = RV_PLAN_NETWORK_ANY;
        return q;
}

struct gate {
        int fd;
        pid_t pid;
        char text[320];
};

static void take_gate(const struct child *c, struct gate *ret)
{
        struct rv_spawn_report report;
        int fds[RV_SPAWN_REPORT_FDS_MAX];
        size_t n_fds;
        const char *at;
        ssize_t n;

        assert_int_equal(receive_fds(c, &report, fds, &n_fds), 1);
        if (report.event.kind != RV_SPAWN_GATE)
                fail_msg("event %u: %s", report.event.kind, report.event.fault_text);
        assert_int_equal(report.id, 0);
        assert_int_equal(n_fds, 1);
        *ret = (struct gate){ .fd = fds[0] };
        n = recv(ret->fd, ret->text, sizeof(ret->text) - 1, 0);
        assert_true(n > 0);
        ret->text[n] = 0;
        at = strstr(ret->text, "pid=");
        assert_non_null(at);
        ret->pid = atoi(at + 4);
}

/* HELD with the run's sockets. */
static void take_sockets(const struct child *c, uint64_t id, struct rv_spawn_report *report,
        int fds[RV_SPAWN_REPORT_FDS_MAX], size_t *n_fds)
{
        assert_int_equal(receive_fds(c, report, fds, n_fds), 1);
        if (report->event.kind != RV_SPAWN_HELD)
                fail_msg("event %u: %s", report->event.kind, report->event.fault_text);
        assert_int_equal(report->id, id);
        assert_int_equal(report->event.network.n_fds, *n_fds);
        assert_true(*n_fds >= RV_NETNS_SOCKET_DNS_UDP6);
        assert_int_equal(report->event.network.listen_port, RV_NETNS_PORT);
}

static void close_all(int *fds, size_t n)
{
        for (size_t i = 0; i < n; i++)
                close(fds[i]);
}

/* The test is the gate: what the program dials arrives here. */
static void a_run_dials(void **state)
{
        struct rv_spawn_request q = networked(5);
        int fds[RV_SPAWN_REPORT_FDS_MAX], served;
        struct rv_spawn_report report;
        union rv_netns_address to;
        struct rv_init_report m;
        char go = RV_INIT_GO, text[16] = "";
        struct pollfd wait;
        struct gate gate;
        struct child c;
        struct ends e;
        size_t n_fds;

        make_tree(state, true);
        begin(state, &c);
        ends_open(DIAL, &e);
        give(&c, &q, &e);
        take_gate(&c, &gate);
        take_sockets(&c, 5, &report, fds, &n_fds);
        assert_int_equal(send(e.control, &go, 1, 0), 1);
        assert_int_equal(read_report(&e, &m), 1);
        assert_int_equal(m.kind, RV_INIT_STARTED);
        wait = (struct pollfd){ .fd = fds[RV_NETNS_SOCKET_TCP], .events = POLLIN };
        assert_int_equal(poll(&wait, 1, WAIT_MS), 1);
        served = accept4(wait.fd, NULL, NULL, SOCK_CLOEXEC);
        assert_true(served >= 0);
        assert_int_equal(rv_netns_destination(
                                 served, report.event.network.is_redirect ? RV_NETNS_REDIRECT : RV_NETNS_TPROXY, &to),
                0);
        assert_int_equal(to.any.sa_family, AF_INET);
        assert_int_equal(ntohs(to.ipv4.sin_port), 4242);
        assert_int_equal(ntohl(to.ipv4.sin_addr.s_addr), 0xc0000207);
        assert_int_equal(write(served, "hello", 5), 5);
        close(served);
        expect_event(&c, "the end", RV_SPAWN_ENDED, &report);
        close(report.event.result_fd);
        assert_true(read(e.out, text, sizeof(text) - 1) > 0);
        assert_string_equal(text, "hello\n");
        expect_event(&c, "removed", RV_SPAWN_REMOVED, &report);
        close_all(fds, n_fds);
        ends_close(&e);
        close(gate.fd);
        spawner_end(&c, "a run dials");
}

static void what_a_gate_is(void **state)
{
        struct rv_spawn_request q = networked(1);
        int fds[RV_SPAWN_REPORT_FDS_MAX];
        struct rv_spawn_report report;
        char expected[96], link[64], at[512] = "";
        struct gate gate;
        struct child c;
        struct ends e;
        size_t n_fds;
        unsigned uid;

        make_tree(state, true);
        begin(state, &c);
        ends_open("pass", &e);
        give(&c, &q, &e);
        take_gate(&c, &gate);
        take_sockets(&c, 1, &report, fds, &n_fds);
        close_all(fds, n_fds);
        assert_int_equal(sscanf(strstr(gate.text, "uid="), "uid=%u", &uid), 1);
        assert_true(uid >= 2000000 && uid <= 2065535);
        assert_non_null(strstr(gate.text, "nnp=1 env=0"));
        snprintf(expected, sizeof(expected), "reeve-%d.", (int)c.pid);
        assert_non_null(strstr(gate.text, expected));
        for (int i = 0; i < 6; i++) {
                ssize_t n;

                snprintf(link, sizeof(link), "/proc/%d/fd/%d", (int)gate.pid, i);
                n = readlink(link, at, sizeof(at) - 1);
                at[n > 0 ? n : 0] = 0;
                if (i < 3)
                        assert_string_equal(at, "/dev/null");
                else if (i == RV_GATE_CHANNEL_FD)
                        assert_non_null(strstr(at, "socket:"));
                else
                        assert_true(n < 0);
        }
        ends_close(&e);
        close(gate.fd);
        spawner_end(&c, "what a gate is");
        assert_false(is_alive(gate.pid));
}

/* One gate for all runs; when it ends that is told once, and the next run gets another. */
static void ends_and_is_started_again(void **state)
{
        static const struct {
                const char *name, *text;
                int signal;          /* 0: it ends by itself */
        } rows[] = { { "by itself", "the gate ended with status 3", 0 }, { "killed", "the gate was ended by signal 9", SIGKILL } };
        int fds[RV_SPAWN_REPORT_FDS_MAX];
        struct rv_spawn_report report;
        struct ends e[6];
        struct child c;
        size_t n_fds;
        uint64_t id = 0;

        make_tree(state, true);
        begin(state, &c);
        for (size_t i = 0; i < RV_N_ELEMENTS(rows); i++) {
                struct gate gate;

                for (int k = 0; k < 2; k++) {
                        struct rv_spawn_request q = networked(++id);

                        ends_open("import time\ntime.sleep(60)", &e[id - 1]);
                        give(&c, &q, &e[id - 1]);
                        if (k == 0)
                                take_gate(&c, &gate);
                        take_sockets(&c, id, &report, fds, &n_fds);
                        close_all(fds, n_fds);
                }
                if (rows[i].signal)
                        kill(gate.pid, rows[i].signal);
                else
                        assert_int_equal(send(gate.fd, "x", 1, MSG_NOSIGNAL), 1);
                assert_int_equal(receive_fds(&c, &report, fds, &n_fds), 1);
                assert_int_equal(report.event.kind, RV_SPAWN_GATE_LOST);
                assert_int_equal(report.id, 0);
                assert_int_equal(n_fds, 0);
                if (strcmp(report.event.fault_text, rows[i].text) != 0)
                        fail_msg("%s: told \"%s\"", rows[i].name, report.event.fault_text);
                close(gate.fd);
        }
        for (uint64_t i = 0; i < id; i++)
                ends_close(&e[i]);
        spawner_end(&c, "started again");
}

static void there_is_none(void **state)
{
        static const char *const names[] = { [RV_PLAN_NETWORK_REGISTRIES] = "network_registries", [RV_PLAN_NETWORK_DOMAINS] = "network_domains",
                                             [RV_PLAN_NETWORK_ANY] = "network_any" };
        struct rv_spawn_report report;
        struct child c;

        make_tree(state, false);
        begin(state, &c);
        for (uint32_t mode = RV_PLAN_NETWORK_REGISTRIES; mode <= RV_PLAN_NETWORK_ANY; mode++) {
                struct rv_spawn_request q = networked(mode);
                struct ends e;

                q.network = mode;
                ends_open("pass", &e);
                give(&c, &q, &e);
                expect_event(&c, "no gate", RV_SPAWN_FAILED, &report);
                assert_int_equal(report.event.fault, RV_BACKEND_FAULT_CAPABILITY);
                assert_string_equal(report.event.fault_step, names[mode]);
                assert_non_null(strstr(report.event.fault_text, "cannot open the helper reeve-gate"));
                expect_event(&c, "removed", RV_SPAWN_REMOVED, &report);
                ends_close(&e);
        }
        /* The others go on as they did. */
        {
                struct ends e;

                start_run(&c, 9, "pass", &e);
                expect_event(&c, "without network", RV_SPAWN_ENDED, &report);
                close(report.event.result_fd);
                expect_event(&c, "removed", RV_SPAWN_REMOVED, &report);
                ends_close(&e);
        }
        spawner_end(&c, "no gate");
}

/* One that cannot be executed has a channel that ends, and a reason. */
static void it_is_no_program(void **state)
{
        struct rv_spawn_request q = networked(1);
        int fds[RV_SPAWN_REPORT_FDS_MAX];
        struct rv_spawn_report report;
        struct child c;
        struct ends e;
        bool was_held = false, was_lost = false;
        size_t n_fds;

        make_tree(state, false);
        assert_int_equal(rv_write_file(tmp_path(state, "gate/reeve-gate"), "no program", 10, 0755, false), 0);
        begin(state, &c);
        ends_open("pass", &e);
        give(&c, &q, &e);
        assert_int_equal(receive_fds(&c, &report, fds, &n_fds), 1);
        assert_int_equal(report.event.kind, RV_SPAWN_GATE);
        close_all(fds, n_fds);
        while (!was_held || !was_lost) {
                assert_int_equal(receive_fds(&c, &report, fds, &n_fds), 1);
                was_held |= report.event.kind == RV_SPAWN_HELD;
                if (report.event.kind == RV_SPAWN_GATE_LOST) {
                        assert_string_equal(report.event.fault_text, "the gate cannot be executed");
                        was_lost = true;
                }
                close_all(fds, n_fds);
        }
        ends_close(&e);
        spawner_end(&c, "no program");
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(a_run_dials, tmp_make, tmp_remove),
                cmocka_unit_test_setup_teardown(what_a_gate_is, tmp_make, tmp_remove),
                cmocka_unit_test_setup_teardown(ends_and_is_started_again, tmp_make, tmp_remove),
                cmocka_unit_test_setup_teardown(there_is_none, tmp_make, tmp_remove),
                cmocka_unit_test_setup_teardown(it_is_no_program, tmp_make, tmp_remove),
        };

        if (argc && !strcmp(argv[0], "reeve-gate"))
                return be_gate();
        return cmocka_run_group_tests(tests, NULL, NULL);
}
