#include "audit.h"

#include <stdio.h>
#include <string.h>

static const struct command commands[] = {
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

int verb_audit(int argc, char **argv)
{
        return run_command("audit", "The log of decisions and outcomes.", commands, argc, argv);
}
