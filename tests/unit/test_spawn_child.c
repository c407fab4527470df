/* The spawner as a child of the tests: see test_spawn.h. */
#include "test_spawn.h"

#include "spawner_path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

static void pause_ms(long ms)
{
        const struct timespec t = { .tv_nsec = ms * 1000000 };

        nanosleep(&t, NULL);
}

const char *spawner_path(void)
{
        return SPAWNER_PATH;
}

void spawner_begin(void **state, const char *config, struct child *ret)
{
        spawner_begin_at(state, SPAWNER_PATH, config, ret);
}

void spawner_begin_at(void **state, const char *path, const char *config, struct child *ret)
{
        char file[512] = "";
        int pair[2];
        pid_t pid;

        need_root();
        if (*config) {
                snprintf(file, sizeof(file), "%s/reeve.yaml", (const char *)*state);
                assert_int_equal(rv_write_file(file, config, strlen(config), 0600, false), 0);
        }
        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0) {
                if (pair[1] == 3)
                        fcntl(3, F_SETFD, 0);
                else if (dup2(pair[1], 3) < 0)
                        _exit(126);
                execl(path, "reeve-spawner", file, (char *)NULL);
                _exit(127);
        }
        close(pair[1]);
        *ret = (struct child){ .pid = pid, .fd = pair[0] };
}

bool is_alive(pid_t pid)
{
        char path[64], text[512] = "", *p;
        int fd;

        snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        (void)!read(fd, text, sizeof(text) - 1);
        close(fd);
        p = strrchr(text, ')');
        return p && p[2] != 'Z' && p[2] != 'X';
}

bool await_death(pid_t pid)
{
        for (int i = 0; i < WAIT_MS / 5; i++) {
                if (!is_alive(pid))
                        return true;
                pause_ms(5);
        }
        return false;
}

size_t find_children(pid_t pid, pid_t *ret, size_t n)
{
        DIR *proc = opendir("/proc");
        const struct dirent *entry;
        size_t n_found = 0;

        assert_non_null(proc);
        while ((entry = readdir(proc)) != NULL) {
                char path[300], text[512] = "", state, *p;
                int fd, parent = 0;

                snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
                fd = *entry->d_name >= '1' && *entry->d_name <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
                if (fd < 0)
                        continue;
                (void)!read(fd, text, sizeof(text) - 1);
                close(fd);
                p = strrchr(text, ')');
                if (!p || sscanf(p, ") %c %d", &state, &parent) != 2 || parent != pid || state == 'Z')
                        continue;
                if (n_found < n)
                        ret[n_found] = atoi(entry->d_name);
                n_found++;
        }
        closedir(proc);
        return n_found;
}

static unsigned count_fds_now(pid_t pid)
{
        char path[64];
        unsigned n = 0;
        DIR *dir;

        snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
        dir = opendir(path);
        assert_non_null(dir);
        while (readdir(dir))
                n++;
        closedir(dir);
        return n;
}

unsigned count_fds(pid_t pid)
{
        unsigned n = count_fds_now(pid), n_same = 0;

        for (int i = 0; i < WAIT_MS / 5 && n_same < 10; i++) {
                unsigned now;

                pause_ms(5);
                now = count_fds_now(pid);
                n_same = now == n ? n_same + 1 : 0;
                n = now;
        }
        return n;
}

/* ---- Cgroups ---- */

static char wanted[32];
static unsigned n_wanted;

static int look_at(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        if (flag == FTW_D && !strncmp(path + ftw->base, wanted, strlen(wanted)))
                n_wanted++;
        return 0;
}

unsigned count_cgroups(pid_t pid)
{
        snprintf(wanted, sizeof(wanted), "reeve-%d.", (int)pid);
        n_wanted = 0;
        nftw("/sys/fs/cgroup", look_at, 32, FTW_PHYS);
        return n_wanted;
}

/* ---- The end ---- */

void spawner_end(struct child *c, const char *what)
{
        int status = -1, i;
        pid_t children[8];
        size_t n = find_children(c->pid, children, 8);

        c->fd = rv_close(c->fd);
        for (i = 0; i < WAIT_MS / 5 && waitpid(c->pid, &status, WNOHANG) == 0; i++)
                pause_ms(5);
        if (i == WAIT_MS / 5) {
                kill(c->pid, SIGKILL);
                waitpid(c->pid, &status, 0);
                fail_msg("%s: the spawner does not end", what);
        }
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                fail_msg("%s: the spawner ended with status 0x%x", what, (unsigned)status);
        for (size_t j = 0; j < n && j < 8; j++)
                if (!await_death(children[j]))
                        fail_msg("%s: process %d is left", what, (int)children[j]);
        if (count_cgroups(c->pid))
                fail_msg("%s: %u cgroups are left", what, count_cgroups(c->pid));
}

/* ---- Messages ---- */

int send_raw(int fd, const void *data, size_t n, const int *fds, size_t n_fds)
{
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(16 * sizeof(int))];
        } control = { 0 };
        struct iovec iov = { .iov_base = (void *)data, .iov_len = n };
        struct msghdr message = { .msg_iov = &iov, .msg_iovlen = 1 };

        if (n_fds) {
                control.head = (struct cmsghdr){
                        .cmsg_len = CMSG_LEN(n_fds * sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS
                };
                memcpy(CMSG_DATA(&control.head), fds, n_fds * sizeof(int));
                message.msg_control = &control;
                message.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
        }
        return sendmsg(fd, &message, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int await(int fd)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };

        return poll(&p, 1, WAIT_MS) == 1 ? 0 : -ETIMEDOUT;
}

int receive(const struct child *c, struct rv_spawn_report *ret)
{
        int fds[RV_SPAWN_REPORT_FDS_MAX], r;
        size_t n_fds;

        r = receive_fds(c, ret, fds, &n_fds);
        if (r == 1)
                ret->event.result_fd = n_fds ? fds[0] : -1;
        return r;
}

int receive_fds(const struct child *c, struct rv_spawn_report *ret, int fds[RV_SPAWN_REPORT_FDS_MAX], size_t *n_fds)
{
        union {
                struct cmsghdr head;
                char bytes[CMSG_SPACE(sizeof(int) * RV_SPAWN_REPORT_FDS_MAX)];
        } control = { 0 };
        struct iovec iov = { .iov_base = ret, .iov_len = sizeof(*ret) };
        struct msghdr message = {
                .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)
        };
        const struct cmsghdr *head;
        ssize_t n;

        if (await(c->fd) < 0)
                return -ETIMEDOUT;
        n = recvmsg(c->fd, &message, MSG_CMSG_CLOEXEC);
        if (n <= 0)
                return 0;
        assert_int_equal(n, sizeof(*ret));
        assert_int_equal(ret->event.struct_size, sizeof(ret->event));
        head = CMSG_FIRSTHDR(&message);
        *n_fds = 0;
        if (head && head->cmsg_type == SCM_RIGHTS) {
                *n_fds = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
                memcpy(fds, CMSG_DATA(head), *n_fds * sizeof(int));
        }
        return 1;
}

void expect_event(const struct child *c, const char *what, enum rv_spawn_event_kind kind, struct rv_spawn_report *ret)
{
        int r = receive(c, ret);

        if (r != 1)
                fail_msg("%s: %s instead of event %d", what, r == 0 ? "the channel was closed" : "nothing came", kind);
        if (ret->event.kind != (uint32_t)kind)
                fail_msg("%s: event %u instead of %d: %s", what, ret->event.kind, kind, ret->event.fault_text);
}

/* ---- Runs ---- */

struct rv_spawn_request good_request(uint64_t id)
{
        return (struct rv_spawn_request){
                .kind = RV_SPAWN_REQUEST_START,
                .language = RV_PLAN_PYTHON,
                .memory_mib = 128,
                .pids = 32,
                .id = id,
                .timeout_s = 30,
                .run_id = "0123456789abcdef0123456789abcdef",
                .runtime = "host",
                .tenant = "local",
        };
}

void ends_open(const char *source, struct ends *ret)
{
        struct rv_plan plan = { .struct_size = sizeof(plan), .source = source, .source_bytes = strlen(source) };
        int control[2], in[2], out[2], err[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control), 0);
        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        assert_int_equal(pipe2(err, O_CLOEXEC), 0);
        *ret = (struct ends){ .control = control[0], .in = in[1], .out = out[0], .err = err[0],
                              .theirs = { control[1], -1, in[0], out[1], err[1] } };
        assert_int_equal(rv_payload_write(&plan, &ret->theirs[RV_SPAWN_FD_PAYLOAD]), 0);
}

static void close_theirs(struct ends *e)
{
        for (size_t i = 0; i < RV_SPAWN_FD_MAX_; i++)
                e->theirs[i] = rv_close(e->theirs[i]);
}

void ends_close(struct ends *e)
{
        close_theirs(e);
        rv_close(e->control);
        rv_close(e->in);
        rv_close(e->out);
        rv_close(e->err);
}

void give(const struct child *c, const struct rv_spawn_request *q, struct ends *e)
{
        assert_int_equal(send_raw(c->fd, q, sizeof(*q), e->theirs, RV_SPAWN_FD_MAX_), 0);
        close_theirs(e);
}

int read_report(const struct ends *e, struct rv_init_report *ret)
{
        ssize_t n;

        if (await(e->control) < 0)
                return -ETIMEDOUT;
        n = recv(e->control, ret, sizeof(*ret), 0);
        if (n <= 0)
                return 0;
        assert_int_equal(n, sizeof(*ret));
        return 1;
}

void start_run(struct child *c, uint64_t id, const char *source, struct ends *ret)
{
        struct rv_spawn_request q = good_request(id);
        struct rv_spawn_report report;
        struct rv_init_report m;
        char go = RV_INIT_GO;
        pid_t children[4];

        ends_open(source, ret);
        give(c, &q, ret);
        expect_event(c, "a good run", RV_SPAWN_HELD, &report);
        assert_int_equal(report.id, id);
        assert_int_equal(report.event.memory_limit_bytes, 128 << 20);
        assert_int_equal(send(ret->control, &go, 1, 0), 1);
        assert_int_equal(read_report(ret, &m), 1);
        assert_int_equal(m.kind, RV_INIT_STARTED);
        c->init_pid = find_children(c->pid, children, 4) == 1 ? children[0] : -1;
}
