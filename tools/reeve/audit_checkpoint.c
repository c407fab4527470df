#include "audit.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
        "usage: reeve audit checkpoint [--config FILE]\n"
        "\n"
        "Seals the log now, all that is in it, and prints the checkpoint: a C2SP signed note with\n"
        "the log's name, its size and the root of its Merkle tree. Whoever keeps it elsewhere can\n"
        "later show that nothing of the log was changed or cut off. `reeve run` seals by itself\n"
        "before it ends; this is for copies at fixed times.\n"
        "\n"
        "Exit status 0: done; 2: usage; 125: it could not be sealed.\n";

static int print_note(const struct rv_checkpoint *c)
{
        _cleanup_(rv_buf_fini) struct rv_buf note = { 0 };

        if (rv_checkpoint_write(c, &note) < 0) {
                say("audit checkpoint: out of memory");
                return EXIT_REEVE;
        }
        fwrite(note.data, 1, note.size, stdout);
        return 0;       /* whether it was written is looked at in main() */
}

static int checkpoint(struct session *s, const char *config, struct rv_error *err)
{
        int r;

        r = session_prepare_signing(s, config, NULL, err);
        if (r == 0)
                r = session_settle_signing(s, err);
        if (r == 0)
                r = rv_log_sync_all(s->core.log, err);
        if (r == 0)
                r = session_seal(s, RV_SEAL_ALWAYS, err);
        return r;
}

int audit_checkpoint(int argc, char **argv)
{
        struct rv_error err = { 0 };
        const char *config = NULL;
        struct session s;
        int status;

        for (int i = 1; i < argc; i++) {
                if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
                        fputs(help, stdout);
                        return 0;
                }
                if (strcmp(argv[i], "--config") != 0 || i + 1 == argc)
                        return usage_error("audit checkpoint", "unknown argument %s", argv[i]);
                config = argv[++i];
        }
        if (checkpoint(&s, config, &err) == 0) {
                status = print_note(rv_seal_checkpoint(s.seal));
        } else {
                say("audit checkpoint: %s", err.message);
                status = EXIT_REEVE;
        }
        session_close(&s);
        return status;
}
