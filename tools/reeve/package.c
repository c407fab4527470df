#include "package.h"

#include <stdio.h>
#include <string.h>

static const struct command commands[] = {
        { "resolve", package_resolve, "find what packages come to, and make their layer" },
        { "lock", package_lock, "the same, and print the lock for `reeve run --lock`" },
        { "list", package_list, "list the layers and locks that are kept" },
        { "verify", package_verify, "are layers what they were when they were made?" },
        { "prune", package_prune, "remove layers and locks that are old or too much" },
        { NULL, NULL, NULL },
};

int verb_package(int argc, char **argv)
{
        return run_command("package", "Packages: what is kept of them, and what they come to.", commands, argc, argv);
}
