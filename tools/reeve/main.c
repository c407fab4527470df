#include "reeve.h"

#include "base/fd.h"
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
        { "policy", verb_policy, "check a policy bundle, or print its digest" },
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

int usage_error(const char *verb, const char *fmt, ...)
{
        va_list ap;

        fprintf(stderr, "reeve: %s: ", verb);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fprintf(stderr, "; see `reeve %s --help`\n", verb);
        return EXIT_USAGE;
}

int print_json(const json_t *value)
{
        _cleanup_(rv_freep) char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);

        if (!text)
                return rv_raise(-ENOMEM);
        return printf("%s\n", text) < 0 || fflush(stdout) < 0 ? rv_raise(-errno) : 0;
}

void print_problem(const struct rv_problem *problem, bool is_json)
{
        _cleanup_(rv_json_unrefp) json_t *json = NULL;

        if (is_json) {
                json = rv_problem_to_json(problem);
                if (json)
                        (void)print_json(json);
                return;
        }
        if (problem->detail[0])
                fprintf(stderr, "reeve: %s: %s\n", problem->title, problem->detail);
        for (size_t i = 0; i < problem->n_faults; i++)
                fprintf(stderr, "reeve: rejected: %s: %s\n", problem->faults[i].pointer[0] ? problem->faults[i].pointer : "the request",
                        problem->faults[i].message);
        if (problem->n_left_out)
                fprintf(stderr, "reeve: rejected: and %zu faults more\n", problem->n_left_out);
}

int fail(bool is_json, int status, const char *title, const char *detail)
{
        _cleanup_(rv_problem_freep) struct rv_problem *problem =
                rv_problem_new(status, status == 503 ? "urn:reeve:problem:unavailable" : "urn:reeve:problem:configuration", title);

        if (problem) {
                rv_problem_detail(problem, "%s", detail);
                if (is_json)
                        print_problem(problem, true);
        }
        fprintf(stderr, "reeve: %s: %s\n", title, detail);
        return EXIT_REEVE;
}

int main(int argc, char **argv)
{
        int r;

        spawner_remember_caller(argc, argv);
        /* Descriptors 0 to 2 are used as such by everything below. */
        for (int fd = 0; fd < 3; fd++)
                if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) != fd)
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
                return fflush(stdout) == 0 ? r : r ? r : EXIT_REEVE;
        }
        fprintf(stderr, "reeve: there is no verb %s\n", argv[1]);
        print_usage(stderr);
        return EXIT_USAGE;
}
