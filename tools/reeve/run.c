#include "reeve.h"
#include "run_options.h"
#include "session.h"
#include "stream.h"

#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MIN 64            /* descriptors: some 40 are in use at most */

struct run_verb {
        struct run_options options;
        struct session session;
        struct rv_run *run;
        struct stream out, err;
        int outcome_fd;
        int status;
        uv_signal_t signals[3];
};

static void on_output(void *ctx, enum rv_stream stream, const void *data, size_t n)
{
        struct run_verb *v = ctx;

        stream_put(stream == RV_STREAM_STDOUT ? &v->out : &v->err, data, n);
}

/* What could not be delivered is reeve's own error, whatever the program did. */
static void lose(struct run_verb *v, const char *what, const char *name, int r)
{
        if (r == 0)
                return;
        say("cannot write %s to %s: %s", what, name, strerror(-r));
        v->status = EXIT_REEVE;
}

static void on_flow_out(void *arg, bool is_flowing)
{
        struct run_verb *v = arg;

        rv_run_flow(v->run, RV_STREAM_STDOUT, is_flowing);
}

static void on_flow_err(void *arg, bool is_flowing)
{
        struct run_verb *v = arg;

        rv_run_flow(v->run, RV_STREAM_STDERR, is_flowing);
}

/* Standard error carries the program's bytes too; our line begins on a line of its own where that is known. */
static void print_line(struct run_verb *v, const struct rv_outcome *outcome)
{
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };
        const struct rv_capture *err = outcome->err;

        if (rv_outcome_line(outcome, &line) < 0 || !line.size)
                return;
        if (!v->options.is_json && err && err->text.size && err->text.data[err->text.size - 1] != '\n')
                (void)!write(STDERR_FILENO, "\n", 1);
        (void)!write(STDERR_FILENO, line.data, line.size);
}

static void unwatch_signals(struct run_verb *v);

static void on_problem(struct run_verb *v, const struct rv_problem *problem)
{
        _cleanup_(rv_json_unrefp) json_t *json = rv_problem_to_json(problem);

        v->status = problem->status == 422 ? EXIT_USAGE : EXIT_REEVE;
        print_problem(problem, v->options.is_json);
        if (v->options.is_json && v->status == EXIT_REEVE)
                say("%s: %s", problem->title, problem->detail);
        if (v->outcome_fd >= 0 && json && json_dumpfd(json, v->outcome_fd, JSON_COMPACT) < 0)
                lose(v, "the problem", v->options.outcome, -EIO);
}

/* By now the outcome is on record: what is left can be waited for, or given up by a signal. */
static void on_answered(void *ctx, struct rv_run *run)
{
        struct run_verb *v = ctx;
        const struct rv_problem *problem = rv_run_problem(run);
        const struct rv_outcome *outcome = rv_run_outcome(run);
        int out_r, err_r;

        unwatch_signals(v);
        out_r = stream_finish(&v->out);
        err_r = stream_finish(&v->err);
        if (problem) {
                on_problem(v, problem);
                return;
        }
        v->status = rv_outcome_exit_status(&outcome->reason);
        print_line(v, outcome);
        lose(v, "output", "standard output", out_r);
        lose(v, "output", "standard error", err_r);
        if (v->options.is_json)
                lose(v, "the outcome", "standard output", rv_outcome_write_fd(outcome, STDOUT_FILENO));
        if (v->outcome_fd >= 0)
                lose(v, "the outcome", v->options.outcome, rv_outcome_write_fd(outcome, v->outcome_fd));
}

static void on_released(void *ctx, struct rv_run *run)
{
        struct run_verb *v = ctx;

        (void)run;
        rv_loop_stop(&v->session.loop);
}

static void on_signal(uv_signal_t *handle, int number)
{
        struct run_verb *v = handle->data;

        rv_run_stop(v->run, number == SIGTERM ? RV_STOP_SHUTDOWN : RV_STOP_CANCELLED);
}

/* Ctrl-C and a lost terminal cancel; SIGTERM is the host going down. The outcome is printed all the same. */
static void watch_signals(struct run_verb *v)
{
        static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };

        for (size_t i = 0; i < RV_N_ELEMENTS(numbers); i++) {
                uv_signal_init(&v->session.loop.uv, &v->signals[i]);
                v->signals[i].data = v;
                uv_signal_start(&v->signals[i], on_signal, numbers[i]);
                uv_unref((uv_handle_t *)&v->signals[i]);
        }
}

/* From here on a signal does what it does to any program: the spawner then cleans up. */
static void unwatch_signals(struct run_verb *v)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(v->signals); i++)
                if (!uv_is_closing((uv_handle_t *)&v->signals[i]))
                        uv_close((uv_handle_t *)&v->signals[i], NULL);
}

static int open_outcome(struct run_verb *v)
{
        if (!v->options.outcome)
                return 0;
        v->outcome_fd = open(v->options.outcome, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (v->outcome_fd >= 0)
                return 0;
        say("run: cannot write %s: %s", v->options.outcome, strerror(errno));
        return EXIT_USAGE;
}

static int run_in_session(struct run_verb *v)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        struct session *s = &v->session;
        struct rv_error err = { 0 };
        struct rv_run_input input;
        bool is_log;
        int r;

        r = session_prepare(s, v->options.config, v->options.tenant, &err);
        if (r < 0)
                return fail(v->options.is_json, 500, "reeve cannot start", err.message);
        r = run_options_read(&v->options, &text);
        if (r == 0)
                r = open_outcome(v);
        if (r)
                return r;
        /* A terminal is opened once more, which the loop's user may not do. */
        stream_init(&v->out, &s->loop.host, STDOUT_FILENO, v->options.is_raw);
        stream_init(&v->err, &s->loop.host, STDERR_FILENO, v->options.is_raw);
        v->out.flow = on_flow_out;
        v->err.flow = on_flow_err;
        v->out.flow_arg = v->err.flow_arg = v;
        r = session_settle(s, &is_log, &err);
        if (r < 0)
                return fail(v->options.is_json, 503, is_log ? "the audit log cannot be written" : "reeve cannot start", err.message);
        input = (struct rv_run_input){
                .tenant = s->tenant->name,
                .bundle = s->bundle,
                .bundle_error = s->bundle_error.message,
                .backend = v->options.backend,
                .text = v->options.request ? text.data : NULL,
                .text_bytes = text.size,
                .value = v->options.request ? NULL : v->options.value,
                .ctx = v,
                .output = v->options.is_json ? NULL : on_output,
                .answered = on_answered,
                .released = on_released,
        };
        watch_signals(v);
        r = rv_run_start(&s->core, &input, &v->run);
        if (r < 0)
                v->status = fail(v->options.is_json, 500, "reeve cannot start", "out of memory");
        else
                rv_loop_run(&s->loop);
        unwatch_signals(v);
        rv_run_free(v->run);
        return v->status;
}

/* Whatever the caller left behind of signals, mask and limits. */
static int settle_process(void)
{
        struct rlimit files;
        sigset_t none;

        signal(SIGPIPE, SIG_IGN);       /* a reader of ours that went away is no reason to leave a run alone */
        signal(SIGXFSZ, SIG_IGN);       /* a full file is told by the write */
        signal(SIGCHLD, SIG_DFL);       /* a caller may have it ignored, and then nobody could be waited for */
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        umask(022);
        if (getrlimit(RLIMIT_NOFILE, &files) < 0)
                return 0;
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
        if (files.rlim_max >= FILES_MIN)
                return 0;
        say("run: at most %llu files may be open (ulimit -n), and reeve needs %d", (unsigned long long)files.rlim_max, FILES_MIN);
        return EXIT_REEVE;
}

int verb_run(int argc, char **argv)
{
        struct run_verb v = { .outcome_fd = -EBADF, .status = EXIT_REEVE };
        int r;

        r = settle_process();
        if (r)
                return r;
        r = run_options_parse(argc, argv, &v.options);
        if (r == 0 && v.options.wants_help)
                run_options_help();
        else if (r == 0) {
                r = run_in_session(&v);
                session_close(&v.session);
                rv_close(v.outcome_fd);
        }
        run_options_fini(&v.options);
        return r;
}
