#include "reeve.h"
#include "run_options.h"
#include "session.h"
#include "stream.h"

#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

static void write_outcome(const struct run_verb *v, int fd, const char *name, const struct rv_outcome *outcome)
{
        int r = rv_outcome_write_fd(outcome, fd);

        if (r < 0)
                fprintf(stderr, "reeve: cannot write the outcome to %s: %s\n", name, strerror(-r));
        (void)v;
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

static void on_answered(void *ctx, struct rv_run *run)
{
        struct run_verb *v = ctx;
        const struct rv_problem *problem = rv_run_problem(run);
        const struct rv_outcome *outcome = rv_run_outcome(run);

        stream_finish(&v->out);
        stream_finish(&v->err);
        if (problem) {
                v->status = problem->status == 422 ? EXIT_USAGE : EXIT_REEVE;
                print_problem(problem, v->options.is_json);
                if (v->options.is_json && v->status == EXIT_REEVE)
                        fprintf(stderr, "reeve: %s: %s\n", problem->title, problem->detail);
                return;
        }
        v->status = rv_outcome_exit_status(&outcome->reason);
        if (v->options.is_json)
                write_outcome(v, STDOUT_FILENO, "standard output", outcome);
        if (v->outcome_fd >= 0)
                write_outcome(v, v->outcome_fd, v->options.outcome, outcome);
        print_line(v, outcome);
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

static void unwatch_signals(struct run_verb *v)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(v->signals); i++)
                uv_close((uv_handle_t *)&v->signals[i], NULL);
}

static int open_outcome(struct run_verb *v)
{
        if (!v->options.outcome)
                return 0;
        v->outcome_fd = open(v->options.outcome, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (v->outcome_fd >= 0)
                return 0;
        fprintf(stderr, "reeve: run: cannot write %s: %s\n", v->options.outcome, strerror(errno));
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
        r = session_settle(s, &is_log, &err);
        if (r < 0)
                return fail(v->options.is_json, 503, is_log ? "the audit log cannot be written" : "reeve cannot start", err.message);
        input = (struct rv_run_input){
                .tenant = s->tenant->name, .bundle = s->bundle, .bundle_error = s->bundle_error.message,
                .backend = v->options.backend,
                .text = v->options.request ? text.data : NULL, .text_bytes = text.size,
                .value = v->options.request ? NULL : v->options.value,
                .ctx = v, .output = v->options.is_json ? NULL : on_output, .answered = on_answered, .released = on_released,
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

int verb_run(int argc, char **argv)
{
        struct run_verb v = { .outcome_fd = -EBADF, .status = EXIT_REEVE };
        int r;

        signal(SIGPIPE, SIG_IGN);       /* a reader of ours that went away is no reason to leave a run alone */
        signal(SIGCHLD, SIG_DFL);       /* a caller may have it ignored, and then nobody could be waited for */
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
