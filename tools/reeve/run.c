#include "progress.h"
#include "reeve.h"
#include "run_options.h"
#include "session.h"
#include "stream.h"

#include "base/clock.h"
#include "base/fd.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILES_MIN 64            /* descriptors: some 40 are in use at most */
#define EXIT_CANCELLED 130
#define EXIT_SHUTDOWN 143
#define PATIENCE_US 2000000     /* after a signal, for a reader that stands still */

struct run_verb {
        struct run_options options;
        struct session session;
        struct rv_run *run;
        struct stream out, err;
        struct progress progress;
        int outcome_fd;
        int status;
        uv_async_t signalled;
        int n_signals_seen, n_signals_answered;         /* counted when last looked at; when the run was answered */
        uint64_t moved_us;      /* when the last byte, or signal, went through since then */
};

static const int signal_numbers[] = { SIGINT, SIGTERM, SIGHUP };
static volatile sig_atomic_t n_signals, last_signal;
static uv_async_t *signalled;

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
        say("cannot write %s to %s: %s", what, name, r == -ECANCELED ? "given up after a signal, since its reader stands still" : strerror(-r));
        v->status = EXIT_REEVE;
}

static void on_flow_out(void *arg, bool is_flowing)
{
        struct run_verb *v = arg;

        if (v->run)     /* else an outcome of before is given again: there is no program to wait */
                rv_run_flow(v->run, RV_STREAM_STDOUT, is_flowing);
}

static void on_flow_err(void *arg, bool is_flowing)
{
        struct run_verb *v = arg;

        if (v->run)
                rv_run_flow(v->run, RV_STREAM_STDERR, is_flowing);
}

/*
 * After a signal a reader that stands still is waited for a while only, and not at all after one more. A signal
 * that stopped the program is the first.
 */
static bool is_patient(void *arg, bool has_moved)
{
        struct run_verb *v = arg;
        int n = n_signals;

        if (has_moved || n != v->n_signals_seen)
                v->moved_us = rv_boot_us();
        v->n_signals_seen = n;
        if (n - v->n_signals_answered > (v->n_signals_answered ? 0 : 1))
                return false;
        return n == 0 || rv_boot_us() - v->moved_us < PATIENCE_US;
}

/* Of an outcome that is given again: what the first call had printed and was not kept. */
static void describe_cut(const struct rv_outcome *outcome, struct rv_buf *line)
{
        const struct rv_capture *streams[] = { outcome->out, outcome->err };

        for (size_t i = 0; outcome->is_replayed && i < RV_N_ELEMENTS(streams); i++)
                if (streams[i] && streams[i]->is_truncated)
                        rv_buf_printf(line, "reeve: given again for the key: of standard %s only the first %zu characters were kept, and %llu bytes had been written\n",
                                      i ? "error" : "output", streams[i]->characters, (unsigned long long)streams[i]->bytes);
}

/* Standard error carries the program's bytes too; our line begins on a line of its own where that is known. */
static void put_line(struct run_verb *v, const struct rv_outcome *outcome)
{
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };
        const struct rv_capture *err = outcome->err;

        if (!v->options.is_json)
                describe_cut(outcome, &line);
        if (rv_outcome_line(outcome, &line) < 0 || !line.size)
                return;
        if (!v->options.is_json && err && err->text.size && err->text.data[err->text.size - 1] != '\n')
                stream_put(&v->err, "\n", 1);
        stream_put(&v->err, line.data, line.size);
}

struct sink {
        struct run_verb *verb;
        struct stream *stream;
};

static int put_and_wait(void *ctx, const void *data, size_t n)
{
        struct sink *sink = ctx;

        stream_put(sink->stream, data, n);
        stream_wait(&sink->stream, 1, is_patient, sink->verb);
        return -sink->stream->error;
}

static void write_outcome(struct run_verb *v, struct stream *s, const struct rv_outcome *outcome)
{
        struct sink sink = { .verb = v, .stream = s };

        if (rv_outcome_write(outcome, put_and_wait, &sink) == 0)
                (void)put_and_wait(&sink, "\n", 1);
}

static void write_problem(struct run_verb *v, struct stream *s, const struct rv_problem *problem, const char *end)
{
        _cleanup_(rv_json_unrefp) json_t *json = rv_problem_to_json(problem);
        _cleanup_(rv_freep) char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
        struct sink sink = { .verb = v, .stream = s };

        if (!text)
                s->error = ENOMEM;
        else if (put_and_wait(&sink, text, strlen(text)) == 0)
                (void)put_and_wait(&sink, end, strlen(end));
}

static void on_released(void *ctx, struct rv_run *run)
{
        struct run_verb *v = ctx;

        (void)run;
        session_released(&v->session);
}

static void on_progress(void *ctx, const char *text)
{
        struct run_verb *v = ctx;

        progress_show(&v->progress, text);
}

static void on_started(void *ctx, struct rv_run *run)
{
        struct run_verb *v = ctx;

        progress_clear(&v->progress);

        (void)run;
        rv_seal_prepare(v->session.seal);
}

static void unwatch_signals(struct run_verb *v);

/* A wait for another run that a signal ended is told as a run that it ended. */
static int problem_status(const struct rv_problem *problem)
{
        if (problem->status == 422)
                return EXIT_USAGE;
        if (problem->status == 409 && n_signals)
                return last_signal == SIGTERM ? EXIT_SHUTDOWN : EXIT_CANCELLED;
        return EXIT_REEVE;
}

/* By now the outcome is on record. What asked for no reader's patience comes first. */
static void on_answered(void *ctx, struct rv_run *run)
{
        struct run_verb *v = ctx;
        const struct rv_problem *problem = rv_run_problem(run);
        const struct rv_outcome *outcome = rv_run_outcome(run);
        const char *what = problem ? "the problem" : "the outcome";
        struct stream file, *both[] = { &v->err, &v->out };
        int out_r, err_r, file_r = 0;

        progress_clear(&v->progress);
        v->out.flow = v->err.flow = NULL;
        v->n_signals_seen = v->n_signals_answered = n_signals;
        v->moved_us = rv_boot_us();
        if (v->outcome_fd >= 0) {
                stream_init(&file, NULL, v->outcome_fd, true);
                if (problem)
                        write_problem(v, &file, problem, "");
                else
                        write_outcome(v, &file, outcome);
                file_r = stream_finish(&file);
        }
        stream_end_filter(&v->out);
        stream_end_filter(&v->err);
        if (!problem)
                put_line(v, outcome);
        stream_wait(both, RV_N_ELEMENTS(both), is_patient, v);
        if (v->options.is_json && problem)
                write_problem(v, &v->out, problem, "\n");
        else if (v->options.is_json)
                write_outcome(v, &v->out, outcome);
        out_r = stream_finish(&v->out);
        err_r = stream_finish(&v->err);
        unwatch_signals(v);
        if (problem) {
                v->status = problem_status(problem);
                if (!v->options.is_json)
                        print_problem(problem);
                else if (v->status != EXIT_USAGE)
                        say("%s: %s", problem->title, problem->detail);
        } else
                v->status = rv_outcome_exit_status(&outcome->reason);
        lose(v, v->options.is_json ? what : "output", "standard output", out_r);
        lose(v, "output", "standard error", err_r);
        lose(v, what, v->options.outcome, file_r);
        /* While what is left of the run is removed. */
        session_answered(&v->session);
}

static void on_signal(int number)
{
        int saved = errno;

        last_signal = number;
        n_signals++;
        uv_async_send(signalled);
        errno = saved;
}

static void on_signalled(uv_async_t *handle)
{
        struct run_verb *v = handle->data;

        rv_run_stop(v->run, last_signal == SIGTERM ? RV_STOP_SHUTDOWN : RV_STOP_CANCELLED);
}

/* Ctrl-C and a lost terminal cancel; SIGTERM is the host going down. The outcome is printed all the same. */
static void watch_signals(struct run_verb *v)
{
        struct sigaction action = { .sa_handler = on_signal };

        uv_async_init(&v->session.loop.uv, &v->signalled, on_signalled);
        uv_unref((uv_handle_t *)&v->signalled);
        v->signalled.data = v;
        signalled = &v->signalled;
        for (size_t i = 0; i < RV_N_ELEMENTS(signal_numbers); i++)
                sigaction(signal_numbers[i], &action, NULL);
}

/* From here on a signal does what it does to any program: the spawner then cleans up. */
static void unwatch_signals(struct run_verb *v)
{
        for (size_t i = 0; i < RV_N_ELEMENTS(signal_numbers); i++)
                signal(signal_numbers[i], SIG_DFL);
        if (!uv_is_closing((uv_handle_t *)&v->signalled))
                uv_close((uv_handle_t *)&v->signalled, NULL);
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

/* With the caller's privilege, and only for a run that needs them; what is wrong with the request is told later. */
static int find_registries(struct run_verb *v, const struct rv_buf *text)
{
        _cleanup_(rv_json_unrefp) json_t *parsed = NULL;
        const json_t *request = v->options.value;
        bool has_packages;
        int language;

        if (v->options.request && text->data && (memmem(text->data, text->size, "registries", 10) || memmem(text->data, text->size, "packages", 8)) &&
            rv_json_read(text->data, text->size, 32, &parsed, NULL) == 0)
                request = parsed;
        has_packages = json_array_size(json_object_get(request, "packages")) || v->options.lock;
        if (strcmp(rv_json_get_string(json_object_get(request, "network"), "mode", ""), "registries") != 0 && !has_packages)
                return 0;
        if (has_packages)
                session_want_packages(&v->session);
        language = rv_language_parse(rv_json_get_string(request, "language", ""));
        return language < 0 ? 0 : session_find_registries(&v->session, (enum rv_language)language);
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
        if (r == 0 && find_registries(v, &text) < 0)
                return fail(v->options.is_json, 500, "out of memory", "reeve ran out of memory while it looked for registries");
        if (r)
                return r;
        /* A terminal is opened once more, which the loop's user may not do. */
        stream_init(&v->out, &s->loop.host, STDOUT_FILENO, v->options.is_raw || v->options.is_json);
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
                .shadow = s->shadow,
                .shadow_error = s->shadow_error.message,
                .unavailable = session_unavailable(s),
                .lock = v->options.lock,
                .backend = v->options.backend,
                .has_wait = v->options.has_wait,
                .wait_s = v->options.wait_s,
                .text = v->options.request ? text.data : NULL,
                .text_bytes = text.size,
                .value = v->options.request ? NULL : v->options.value,
                .ctx = v,
                .output = v->options.is_json ? NULL : on_output,
                .progress = on_progress,
                .started = on_started,
                .answered = on_answered,
                .released = on_released,
        };
        if (!v->options.is_json)
                progress_init(&v->progress);
        watch_signals(v);
        r = rv_run_start(&s->core, &input, &v->run);
        if (r < 0) {
                unwatch_signals(v);
                v->status = fail(v->options.is_json, 500, "reeve cannot start", "out of memory");
        } else
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
