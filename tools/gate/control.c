#include "control.h"

#include "base/fd.h"
#include "base/text.h"
#include "message.h"
#include "own.h"
#include "resolve.h"
#include "run.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* The answer that the channel has no room for yet. */
static struct rv_gate_message waiting;
static int waiting_fd = -EBADF;
static bool is_waiting;

static void on_control(uv_poll_t *poll, int status, int events);

static void end(struct gate *gate)
{
        if (gate->is_ending)
                return;
        gate->is_ending = true;
        waiting_fd = rv_close(waiting_fd);
        link_each(l, &gate->runs)
                (void)run_remove(container_of(l, struct run, link), NULL);
        uv_close((uv_handle_t *)&gate->control_poll, NULL);
        own_fini(gate);
        resolve_fini(gate);
}

static void flush(struct gate *gate)
{
        int r = is_waiting
                ? rv_send_with_fds(RV_GATE_CHANNEL_FD, &waiting, sizeof(waiting), &waiting_fd, waiting_fd >= 0)
                : 0;

        if (r == -EAGAIN) {
                (void)uv_poll_start(&gate->control_poll, UV_WRITABLE, on_control);
                return;
        }
        waiting_fd = rv_close(waiting_fd);
        is_waiting = false;
        if (r < 0)
                end(gate);
        else
                (void)uv_poll_start(&gate->control_poll, UV_READABLE, on_control);
}

static void send_answer(struct gate *gate, enum rv_gate_kind kind, uint64_t id, const char *text, int take_fd)
{
        waiting = (struct rv_gate_message){ .kind = kind, .id = id };
        rv_text_copy(waiting.text, sizeof(waiting.text), text);
        waiting_fd = take_fd;
        is_waiting = true;
        flush(gate);
}

/* Its size is asked, not believed: it is bounded, and what is read is what is there. */
static int read_rules(int fd, struct rv_gate_rules **ret, struct rv_error *err)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        int r;

        if (lseek(fd, 0, SEEK_SET) < 0)
                return rv_error_set(err, rv_raise(-errno), "the rules cannot be read: %s", strerror(errno));
        r = rv_read_fd(fd, RV_GATE_RULES_BYTES_MAX, &text);
        if (r < 0)
                return rv_error_set(err, rv_trace(r), "the rules cannot be read: %s", strerror(-r));
        return rv_trace(rv_gate_rules_read(text.data ? text.data : "", text.size, ret, err));
}

/* Closes the descriptors, or hands them on. */
static int add(struct gate *gate, uint64_t id, int *fds, size_t n_fds, struct rv_error *err)
{
        struct rv_gate_rules *rules = NULL;
        int r = 0;

        if (n_fds < 4)
                r = rv_error_set(err, rv_raise(-EINVAL), "ADD with %zu descriptors", n_fds);
        else if (run_find(gate, id))
                r = rv_error_set(err, rv_raise(-EEXIST), "there is a run of this number");
        else if (gate->n_runs >= RV_GATE_RUNS_MAX)
                r = rv_error_set(err, rv_raise(-EMFILE), "%u runs are served already", gate->n_runs);
        if (r == 0)
                r = read_rules(fds[0], &rules, err);
        if (n_fds)
                rv_close(fds[0]);
        if (r == 0)
                return rv_trace(run_add(gate, id, rules, fds + 1, n_fds - 1, err));
        for (size_t i = 1; i < n_fds; i++)
                rv_close(fds[i]);
        return r;
}

/* The evidence in a memfd that nobody changes any more. */
static int write_report(const struct rv_buf *report)
{
        _cleanup_(rv_closep) int fd = memfd_create("evidence", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        int r;

        if (fd < 0)
                return rv_raise(-errno);
        r = rv_write_all(fd, report->data, report->size);
        if (r < 0)
                return rv_trace(r);
        (void)fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
        return rv_take_fd(&fd);
}

void control_report(struct run *run)
{
        _cleanup_(rv_buf_fini) struct rv_buf report = { 0 };
        struct gate *gate = run->gate;
        uint64_t id = run->id;
        int r;

        if (is_waiting)
                return;         /* report_waiting() comes to it */
        r = run_remove(run, &report);
        if (r == 0)
                r = write_report(&report);
        if (r < 0)
                send_answer(gate, RV_GATE_REFUSED, id, "the run is removed; its evidence is lost", -EBADF);
        else
                send_answer(gate, RV_GATE_REPORT, id, "", r);
}

static void report_waiting(struct gate *gate)
{
        link_each(l, &gate->runs)
        {
                struct run *run = container_of(l, struct run, link);

                if (is_waiting || gate->is_ending)
                        return;
                if (run_is_over(run))
                        control_report(run);
        }
}

static void remove_run(struct gate *gate, const struct rv_gate_message *m)
{
        struct run *run = run_find(gate, m->id);

        if (!run || run->drain_ms) {
                send_answer(gate, RV_GATE_REFUSED, m->id, "there is no run of this number, or it is being removed", -EBADF);
                return;
        }
        run_drain(run, RV_MIN(m->drain_ms, (uint32_t)RV_GATE_DRAIN_MS));
        if (run_is_over(run))
                control_report(run);
}

static void handle(struct gate *gate, const struct rv_gate_message *m, int *fds, size_t n_fds)
{
        struct rv_error err = { 0 };

        if (m->kind == RV_GATE_ADD) {
                if (add(gate, m->id, fds, n_fds, &err) == 0)
                        send_answer(gate, RV_GATE_READY, m->id, "", -EBADF);
                else
                        send_answer(gate, RV_GATE_REFUSED, m->id, err.message, -EBADF);
                return;
        }
        for (size_t i = 0; i < n_fds; i++)
                rv_close(fds[i]);
        if (m->kind == RV_GATE_REMOVE)
                remove_run(gate, m);
        else
                send_answer(gate, RV_GATE_REFUSED, m->id, "a message of an unknown kind", -EBADF);
}

static void on_control(uv_poll_t *poll, int status, int events)
{
        struct gate *gate = poll->data;
        struct rv_gate_message m;
        int fds[RV_GATE_FDS_MAX], r;
        size_t n_fds = 0;

        if (is_waiting) {
                flush(gate);
                report_waiting(gate);
                return;
        }
        r = message_receive(RV_GATE_CHANNEL_FD, &m, fds, &n_fds);
        if (r == 1) {
                handle(gate, &m, fds, n_fds);
                return;
        }
        for (size_t i = 0; i < n_fds; i++)
                rv_close(fds[i]);
        if (r == 0)
                end(gate);
        else if (r == -EBADMSG)
                send_answer(gate, RV_GATE_REFUSED, 0, "a message of another size", -EBADF);
}

int control_start(struct gate *gate)
{
        int r = uv_poll_init(&gate->loop, &gate->control_poll, RV_GATE_CHANNEL_FD);

        gate->control_poll.data = gate;
        if (r == 0)
                r = uv_poll_start(&gate->control_poll, UV_READABLE, on_control);
        return rv_trace(r);
}
