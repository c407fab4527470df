#include "package.h"

#include <stdio.h>
#include <string.h>

static const struct command {
        const char *name;
        int (*run)(int argc, char **argv);
        const char *text;
} commands[] = {
        { "resolve", package_resolve, "find what packages come to, and make their layer" },
        { "lock", package_lock, "the same, and print the lock for `reeve run --lock`" },
        { "list", package_list, "list the layers and locks that are kept" },
        { "verify", package_verify, "are layers what they were when they were made?" },
        { "prune", package_prune, "remove layers and locks that are old or too much" },
        { NULL, NULL, NULL },
};

static void print_usage(FILE *f)
{
        fprintf(f, "usage: reeve package COMMAND [OPTION…] [ARGUMENT…]\n\nPackages: what is kept of them, and what they come to.\n\n");
        for (const struct command *c = commands; c->name; c++)
                fprintf(f, "  %-8s %s\n", c->name, c->text);
        fprintf(f, "\n`reeve package COMMAND --help` tells more.\n");
}

int verb_package(int argc, char **argv)
{
        if (argc < 2) {
                print_usage(stderr);
                return EXIT_USAGE;
        }
        if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
                print_usage(stdout);
                return 0;
        }
        for (const struct command *c = commands; c->name; c++)
                if (!strcmp(argv[1], c->name))
                        return c->run(argc - 1, argv + 1);
        return usage_error("package", "there is no command %s", argv[1]);
}
