#include "reeve.h"

#include "base/fd.h"
#include "run/terminal.h"
#include "start.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
        const char *name;
        int (*run)(int argc, char **argv);
        const char *text;
} verbs[] = {
        { "run", verb_run, "run a program under policy, isolated" },
        { "audit", verb_audit, "verify, replay and look through the log of decisions" },
        { "package", verb_package, "find packages, lock them, and see to what is kept of them" },
        { "policy", verb_policy, "check a policy bundle, or print its digest" },
        { "runtime", verb_runtime, "list, build and verify what runs see as their files" },
        { "doctor", verb_doctor, "try what a run needs on this host, and say what is missing" },
        { "schema", verb_schema, "print the JSON Schema of a request, or the bounds' table" },
        { "version", verb_version, "print the version" },
};

static void print_usage(FILE *f)
{
        fprintf(f, "usage: reeve VERB [OPTION…] [ARGUMENT…]\n\nRuns bounded, untrusted Python and JavaScript under Lua policy.\n\n");
        for (size_t i = 0; i < RV_N_ELEMENTS(verbs); i++)
                fprintf(f, "  %-9s %s\n", verbs[i].name, verbs[i].text);
        fprintf(f, "\n`reeve VERB --help` tells more.\n");
}

static void say_with(const char *before, const char *fmt, va_list ap, const char *after)
{
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };
        _cleanup_(rv_freep) char *text = NULL;

        if (vasprintf(&text, fmt, ap) < 0) {
                text = NULL;
                return;
        }
        rv_buf_printf(&line, "reeve: %s", before);
        (void)rv_terminal_put_line(text, &line);
        rv_buf_printf(&line, "%s\n", after);
        if (rv_buf_error(&line) == 0)
                (void)rv_write_all(STDERR_FILENO, line.data, line.size);
}

void say(const char *fmt, ...)
{
        va_list ap;

        va_start(ap, fmt);
        say_with("", fmt, ap, "");
        va_end(ap);
}

int usage_error(const char *verb, const char *fmt, ...)
{
        char before[64], after[64];
        va_list ap;

        snprintf(before, sizeof(before), "%s: ", verb);
        snprintf(after, sizeof(after), "; see `reeve %s --help`", verb);
        va_start(ap, fmt);
        say_with(before, fmt, ap, after);
        va_end(ap);
        return EXIT_USAGE;
}

static void list_commands(FILE *f, const char *verb, const char *about, const struct command *commands)
{
        int width = 8;

        for (const struct command *c = commands; c->name; c++)
                width = RV_MAX(width, (int)strlen(c->name));
        fprintf(f, "usage: reeve %s COMMAND [OPTION…] [ARGUMENT…]\n\n%s\n\n", verb, about);
        for (const struct command *c = commands; c->name; c++)
                fprintf(f, "  %-*s %s\n", width, c->name, c->text);
        fprintf(f, "\n`reeve %s COMMAND --help` tells more.\n", verb);
}

int run_command(const char *verb, const char *about, const struct command *commands, int argc, char **argv)
{
        if (argc < 2) {
                list_commands(stderr, verb, about, commands);
                return EXIT_USAGE;
        }
        if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
                list_commands(stdout, verb, about, commands);
                return 0;
        }
        for (const struct command *c = commands; c->name; c++)
                if (!strcmp(argv[1], c->name))
                        return c->run(argc - 1, argv + 1);
        return usage_error(verb, "there is no command %s", argv[1]);
}

void print_text(const char *fmt, ...)
{
        _cleanup_(rv_buf_fini) struct rv_buf line = { 0 };
        _cleanup_(rv_freep) char *text = NULL;
        va_list ap;
        int r;

        va_start(ap, fmt);
        r = vasprintf(&text, fmt, ap);
        va_end(ap);
        if (r < 0) {
                text = NULL;
                return;
        }
        (void)rv_terminal_put_line(text, &line);
        rv_buf_putc(&line, '\n');
        if (rv_buf_error(&line) == 0)
                fwrite(line.data, 1, line.size, stdout);
}

/* That nobody reads it any more is no error. */
static int lost(const char *what, int error)
{
        if (error == EPIPE)
                return 0;
        say("cannot write %s to standard output: %s", what, strerror(error));
        return EXIT_REEVE;
}

int print_json(const json_t *value, const char *what)
{
        _cleanup_(rv_freep) char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;

        if (!text)
                return lost(what, ENOMEM);
        return printf("%s\n", text) < 0 || fflush(stdout) != 0 ? lost(what, errno) : 0;
}

void print_problem(const struct rv_problem *problem)
{
        if (problem->detail[0])
                say("%s: %s", problem->title, problem->detail);
        for (size_t i = 0; i < problem->n_faults; i++)
                say("rejected: %s: %s", problem->faults[i].pointer[0] ? problem->faults[i].pointer : "the request", problem->faults[i].message);
        if (problem->n_left_out)
                say("rejected: and %zu faults more", problem->n_left_out);
}

int fail(bool is_json, int status, const char *title, const char *detail)
{
        _cleanup_(rv_problem_freep) struct rv_problem *problem =
                rv_problem_new(status, status == 503 ? "urn:reeve:problem:unavailable" : "urn:reeve:problem:configuration", title);
        _cleanup_(rv_json_unrefp) json_t *json = NULL;

        if (problem)
                rv_problem_detail(problem, "%s", detail);
        if (is_json) {
                json = problem ? rv_problem_to_json(problem) : NULL;
                (void)print_json(json, "the problem");
        }
        say("%s: %s", title, detail);
        return EXIT_REEVE;
}

int main(int argc, char **argv)
{
        int r;

        spawner_remember_caller(argc, argv);
        /* Descriptors 0 to 2 are used as such by everything below; writing to one that was closed is an error still. */
        for (int fd = 0; fd < 3; fd++)
                if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDONLY) != fd)
                        return EXIT_REEVE;
        if (argc < 2) {
                print_usage(stderr);
                return EXIT_USAGE;
        }
        if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
                print_usage(stdout);
                return 0;
        }
        if (!strcmp(argv[1], "--version"))
                return verb_version(1, argv + 1);
        for (size_t i = 0; i < RV_N_ELEMENTS(verbs); i++) {
                if (strcmp(argv[1], verbs[i].name))
                        continue;
                r = verbs[i].run(argc - 1, argv + 1);
                if (r != EXIT_REEVE && fflush(stdout) != 0)
                        return lost("everything", errno) ? EXIT_REEVE : r;
                return r;
        }
        say("there is no verb %s", argv[1]);
        print_usage(stderr);
        return EXIT_USAGE;
}
