#include "audit.h"

#include <stdio.h>
#include <string.h>

static const struct command {
        const char *name;
        int (*run)(int argc, char **argv);
        const char *text;
} commands[] = {
        { "erase", audit_erase, "erase the secret that hidden values are bound to" },
        { "verify", audit_verify, "is the log what it was when it was written?" },
        { "prove", audit_prove, "print a proof that a record is in the log, or that one log begins another" },
        { "check-proof", audit_check_proof, "check such a proof, without the log" },
        { "replay", audit_replay, "evaluate the decisions again, or what another bundle would change" },
        { "show", audit_show, "list the runs, or print the records of one" },
        { "export", audit_export, "write the records out, as they lie or as a table" },
        { "checkpoint", audit_checkpoint, "seal the log now, and print the checkpoint" },
        { "keygen", audit_keygen, "make a key to sign the log with" },
        { "rotate", audit_rotate, "change the key that signs the log" },
        { "reconcile", audit_reconcile, "do decisions, outcomes, keys and stored outcomes go together?" },
        { "send", audit_send, "deliver the log to its second place, now" },
        { NULL, NULL, NULL },
};

static void print_usage(FILE *f)
{
        fprintf(f, "usage: reeve audit COMMAND [OPTION…] [ARGUMENT…]\n\nThe log of decisions and outcomes.\n\n");
        for (const struct command *c = commands; c->name; c++)
                fprintf(f, "  %-11s %s\n", c->name, c->text);
        fprintf(f, "\n`reeve audit COMMAND --help` tells more.\n");
}

int verb_audit(int argc, char **argv)
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
        return usage_error("audit", "there is no command %s", argv[1]);
}
