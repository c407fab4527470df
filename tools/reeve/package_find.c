#include "package.h"

#include "audit_options.h"
#include "progress.h"
#include "session.h"

#include "base/fd.h"
#include "package/lock.h"
#include "run/outcome.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/*
 * `package resolve` and `package lock`: what packages come to, by the same pipeline as a run's, which is that of an empty
 * program: policy judges them, the layer is made and tried, and all of it is on record.
 */

static const char resolve_help[] =
        "usage: reeve package resolve [--language NAME] [--tenant NAME] [--json] [--config FILE] SPEC…\n"
        "\n"
        "Finds what packages come to, has policy judge all of it, and makes the layer: a run with the same packages then\n"
        "starts at once. Prints each package, and by which one it comes in. SPEC is as for `reeve run --package`:\n"
        "requests==2.31.0, lodash@^4.\n"
        "\n"
        "  --language NAME  python or javascript; else by the form of SPEC\n"
        "  --tenant NAME    whose policy and registries count (default: local)\n"
        "  --json           print one JSON object: {\"layer\", \"stale\", \"lock\"}\n"
        "  --config FILE    the configuration\n"
        "\n"
        "Exit status: 0; 126 policy refuses; 125 they cannot be had; 2 usage.\n";

static const char lock_help[] =
        "usage: reeve package lock [--output FILE] [--language NAME] [--tenant NAME] [--config FILE] SPEC…\n"
        "\n"
        "As `package resolve`, and prints the lock, which `reeve run --lock FILE` takes: exactly those files, by their hashes.\n"
        "\n"
        "  --output FILE    write the lock there, whole or not at all\n"
        "  --language NAME  python or javascript; else by the form of SPEC\n"
        "  --tenant NAME    whose policy and registries count (default: local)\n"
        "  --config FILE    the configuration\n"
        "\n"
        "Exit status: 0; 126 policy refuses; 125 they cannot be had; 2 usage.\n";

enum { OPT_LANGUAGE = AUDIT_OPT_OWN, OPT_TENANT, OPT_OUTPUT };

struct finding {
        const char *language, *tenant, *output;
        bool is_lock, is_json;
        struct session session;
        struct progress progress;
        struct rv_run *run;
        int status;
};

static int take(void *ctx, int id, const char *value)
{
        struct finding *f = ctx;

        if (id == OPT_LANGUAGE)
                f->language = value;
        else if (id == OPT_TENANT)
                f->tenant = value;
        else
                f->output = value;
        return 0;
}

/* A version of npm's is behind an "@"; Python's specifiers have none. */
static const char *guess_language(char *const *words, int n)
{
        const char *found = NULL;

        for (int i = 0; i < n; i++) {
                const char *language = strchr(words[i], '@') ? "javascript" : "python";

                if (found && found != language)
                        return NULL;
                found = language;
        }
        return found;
}

static json_t *make_request(const struct finding *f, char *const *words, int n)
{
        json_t *packages = json_array();

        for (int i = 0; i < n; i++)
                json_array_append_new(packages, json_stringn_nocheck(words[i], strlen(words[i])));
        return json_pack("{s:s, s:s, s:o}", "language", f->language, "source", strcmp(f->language, "python") == 0 ? "pass\n" : ";\n", "packages", packages);
}

/* ---- What is printed ---- */

static const char *date(const json_t *package, char ret[16])
{
        const json_t *at = json_object_get(package, "published_at");
        time_t t = (time_t)json_integer_value(at);
        struct tm tm;

        if (!json_is_integer(at) || !gmtime_r(&t, &tm) || !strftime(ret, 16, "%Y-%m-%d", &tm))
                snprintf(ret, 16, "-");
        return ret;
}

static void print_package(const json_t *package)
{
        char size[PACKAGE_TEXT_SIZE], day[16];
        _cleanup_(rv_buf_fini) struct rv_buf way = { 0 };
        const json_t *name;
        size_t i;

        json_array_foreach(json_object_get(package, "path"), i, name)
                rv_buf_printf(&way, "%s%s", i ? " > " : "", json_string_value(name));
        print_text("%-32s %-14s %10s  %s  %-16.16s %s", rv_json_get_string(package, "name", ""), rv_json_get_string(package, "version", ""),
                   package_size_text((uint64_t)json_integer_value(json_object_get(package, "size_bytes")), size), date(package, day),
                   *rv_json_get_string(package, "license", "") ? rv_json_get_string(package, "license", "") : "-",
                   json_is_true(json_object_get(package, "direct")) ? "asked for" : way.data ? way.data : "");
}

static int print_found(struct finding *f, const struct rv_outcome *outcome)
{
        const json_t *package, *lock = rv_run_lock(f->run);
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        size_t i;

        if (f->is_lock) {
                if (!lock || rv_lock_write(lock, &text) < 0 || rv_write_all(STDOUT_FILENO, text.data, text.size) < 0)
                        return EXIT_REEVE;
                return 0;
        }
        if (f->is_json)
                return print_json(outcome->packages, "the packages");
        json_array_foreach(json_object_get(outcome->packages, "lock"), i, package)
                print_package(package);
        print_text("layer %s%s", rv_json_get_string(outcome->packages, "layer", ""), json_is_true(json_object_get(outcome->packages, "stale")) ? " (of an old lock: the registry cannot be reached)" : "");
        return fflush(stdout) == 0 ? 0 : EXIT_REEVE;
}

/* ---- The run ---- */

static void on_progress(void *ctx, const char *text)
{
        struct finding *f = ctx;

        progress_show(&f->progress, text);
}

static void on_answered(void *ctx, struct rv_run *run)
{
        struct finding *f = ctx;
        const struct rv_problem *problem = rv_run_problem(run);
        const struct rv_outcome *outcome = rv_run_outcome(run);
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };

        progress_clear(&f->progress);
        f->run = run;
        if (problem) {
                print_problem(problem);
                f->status = problem->status == 422 ? EXIT_USAGE : EXIT_REEVE;
        } else {
                f->status = rv_outcome_exit_status(&outcome->reason);
                if (f->status == 0)
                        f->status = print_found(f, outcome);
                else if (rv_outcome_line(outcome, &line) == 0 && line.size)
                        (void)rv_write_all(STDERR_FILENO, line.data, line.size);
        }
        progress_show(&f->progress, "compiling");
        session_answered(&f->session);
}

static void on_released(void *ctx, struct rv_run *run)
{
        struct finding *f = ctx;

        (void)run;
        progress_clear(&f->progress);
        session_released(&f->session);
}

static int find_in_session(struct finding *f, const char *config, const json_t *request)
{
        struct session *s = &f->session;
        struct rv_error err = { 0 };
        struct rv_run_input input;
        bool is_log;
        int r, language = rv_language_parse(f->language);

        r = session_prepare(s, config, f->tenant, &err);
        if (r < 0)
                return fail(false, 500, "reeve cannot start", err.message);
        session_want_packages(s);
        if (language >= 0 && session_find_registries(s, (enum rv_language)language) < 0)
                return fail(false, 500, "out of memory", "reeve ran out of memory while it looked for registries");
        r = session_settle(s, &is_log, &err);
        if (r < 0)
                return fail(false, 503, is_log ? "the audit log cannot be written" : "reeve cannot start", err.message);
        input = (struct rv_run_input){
                .tenant = s->tenant->name,
                .bundle = s->bundle,
                .bundle_error = s->bundle_error.message,
                .shadow = s->shadow,
                .shadow_error = s->shadow_error.message,
                .unavailable = session_unavailable(s),
                .value = request,
                .ctx = f,
                .progress = on_progress,
                .answered = on_answered,
                .released = on_released,
        };
        if (rv_run_start(&s->core, &input, &f->run) < 0)
                return fail(false, 500, "reeve cannot start", "out of memory");
        rv_loop_run(&s->loop);
        rv_run_free(f->run);
        return f->status;
}

static int find(struct finding *f, const char *config, const json_t *request)
{
        int r = find_in_session(f, config, request);

        session_close(&f->session);
        return r;
}

/* ---- To a file ---- */

/* All of it or nothing, beside it first. By whoever called: the process that found it has given up what it needs for that. */
static int write_whole(const char *path, const struct rv_buf *text)
{
        _cleanup_(rv_freep) char *beside = NULL;
        _cleanup_(rv_closep) int fd = -EBADF;
        int r = 0;

        if (asprintf(&beside, "%s.%d.new", path, (int)getpid()) < 0)
                return rv_raise(-ENOMEM);
        fd = open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
        if (fd < 0)
                return rv_raise(-errno);
        r = rv_write_all(fd, text->data, text->size);
        if (r == 0 && (fsync(fd) < 0 || rename(beside, path) < 0))
                r = -errno;
        if (r < 0)
                (void)unlink(beside);
        return rv_trace(r);
}

static int find_to_file(struct finding *f, const char *config, const json_t *request)
{
        _cleanup_(rv_buf_fini) struct rv_buf text = { 0 };
        int out[2], status, r;
        pid_t pid;

        if (pipe2(out, O_CLOEXEC) < 0)
                return fail(false, 500, "reeve cannot start", strerror(errno));
        (void)fflush(NULL);
        pid = fork();
        if (pid == 0) {
                if (dup2(out[1], STDOUT_FILENO) < 0)
                        _exit(EXIT_REEVE);
                close(out[0]);
                close(out[1]);
                r = find(f, config, request);
                _exit(fflush(stdout) == 0 ? r : EXIT_REEVE);
        }
        rv_close(out[1]);
        if (pid < 0) {
                rv_close(out[0]);
                return fail(false, 500, "reeve cannot start", strerror(errno));
        }
        signal(SIGINT, SIG_IGN);        /* the other one ends, and says so */
        r = rv_read_fd(out[0], RV_LOCK_BYTES_MAX, &text);
        rv_close(out[0]);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
                return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_REEVE;
        if (r == 0)
                r = write_whole(f->output, &text);
        if (r < 0)
                say("package lock: cannot write %s: %s", f->output, strerror(-r));
        return r < 0 ? EXIT_REEVE : 0;
}

static int run(int argc, char **argv, struct finding *f, struct audit_options *o)
{
        _cleanup_(rv_json_unrefp) json_t *request = NULL;
        int r = audit_options_read(o, argc, argv);

        if (r >= 0)
                return r;
        if (!o->n_words)
                return usage_error(o->command, "name a package, such as requests==2.31.0 or lodash@^4");
        if (!f->language)
                f->language = guess_language(o->words, o->n_words);
        if (!f->language)
                return usage_error(o->command, "packages of one language at a time: NAME==VERSION is Python's, NAME@VERSION JavaScript's; or give --language");
        f->is_json = o->is_json;
        request = make_request(f, o->words, o->n_words);
        if (!request)
                return fail(false, 500, "out of memory", "reeve ran out of memory while it read the packages");
        signal(SIGPIPE, SIG_IGN);
        progress_init(&f->progress);
        return f->output ? find_to_file(f, o->config, request) : find(f, o->config, request);
}

int package_resolve(int argc, char **argv)
{
        static const struct option table[] = { { "language", required_argument, NULL, OPT_LANGUAGE }, { "tenant", required_argument, NULL, OPT_TENANT },
                AUDIT_OPTION_JSON, AUDIT_OPTION_CONFIG, AUDIT_OPTIONS_END };
        struct finding f = { 0 };
        struct audit_options o = { .command = "package resolve", .help = resolve_help, .table = table, .n_words_max = 50, .take = take, .ctx = &f };

        return run(argc, argv, &f, &o);
}

int package_lock(int argc, char **argv)
{
        static const struct option table[] = { { "language", required_argument, NULL, OPT_LANGUAGE }, { "tenant", required_argument, NULL, OPT_TENANT },
                { "output", required_argument, NULL, OPT_OUTPUT }, AUDIT_OPTION_CONFIG, AUDIT_OPTIONS_END };
        struct finding f = { .is_lock = true };
        struct audit_options o = { .command = "package lock", .help = lock_help, .table = table, .n_words_max = 50, .take = take, .ctx = &f };

        return run(argc, argv, &f, &o);
}
