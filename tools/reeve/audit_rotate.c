#include "audit.h"
#include "session.h"

#include "base/test_point.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
        "usage: reeve audit rotate [--yes] [--destroy] [--config FILE]\n"
        "\n"
        "Changes the key that signs the audit log. A new key is made, and a checkpoint that names\n"
        "it, signed by both, goes into the log; from there on the new key signs, and whoever has\n"
        "the old verifier key can follow. The old key is kept as FILE.old-ID, or with --destroy\n"
        "wiped, its public half being kept in either case. Interrupted, it is finished by running\n"
        "it again; meanwhile both keys sign. Without a key one is made, and that is all.\n"
        "\n"
        "On a terminal it asks first, unless there is --yes.\n"
        "Exit status 0: done; 1: not confirmed; 2: usage; 125: it could not be done.\n";

struct rotation {
        struct session session;
        const char *config;
        bool is_sure, is_destroying;
        struct rv_error err;
        struct rv_sign_answer answer;
};

static int ask(struct rotation *t, struct rv_sign_request *q)
{
        int r;

        memcpy(q->log_id, rv_log_id(t->session.core.log), sizeof(q->log_id));
        r = session_ask(&t->session, q, &t->answer);
        if (r < 0)
                return rv_error_set(&t->err, r, "the spawner, which has the key, does not answer: %s", strerror(-r));
        return t->answer.code == RV_SIGN_OK ? 0 : rv_error_set(&t->err, -ENOKEY, "%s", t->answer.text);
}

static void tell(const struct rotation *t, const char *what)
{
        struct rv_checkpoint_key key = { 0 };
        char text[RV_CHECKPOINT_VERIFIER_SIZE];

        memcpy(key.log_id, rv_log_id(t->session.core.log), sizeof(key.log_id));
        memcpy(key.public_key, t->answer.key, sizeof(key.public_key));
        rv_checkpoint_key_text(&key, text);
        print_text("%s %s", what, t->answer.path);
        print_text("verifier key %s", text);
}

static bool is_confirmed(const struct rotation *t)
{
        char line[16] = "";

        if (t->is_sure)
                return true;
        fprintf(stderr, "Change the key that signs this log? Type yes: ");
        return fgets(line, sizeof(line), stdin) && !strcmp(line, "yes\n");
}

/* The new key takes over only when the record that names it is in the log for good. */
static int change(struct rotation *t)
{
        struct rv_sign_request q = { .kind = RV_SIGN_SETTLE, .flags = t->is_destroying ? RV_SIGN_DESTROY : 0 };
        struct session *s = &t->session;
        int r;

        r = rv_log_sync_all(s->core.log, &t->err);
        if (r == 0)
                r = session_seal(s, RV_SEAL_NEXT_KEY, &t->err);
        if (r < 0)
                return r;
        rv_test_point("rotate-note");
        memcpy(q.next_key, rv_seal_checkpoint(s->seal)->next_key.public_key, sizeof(q.next_key));
        r = ask(t, &q);
        if (r < 0)
                return r;
        tell(t, "changed");
        print_text("from the checkpoint of the first %llu records on", (unsigned long long)rv_seal_checkpoint(s->seal)->size);
        return 0;
}

static int rotate(struct rotation *t)
{
        struct rv_sign_request look = { .kind = RV_SIGN_QUERY, .flags = RV_SIGN_LOOK_ONLY },
                               make = { .kind = RV_SIGN_MAKE_KEY };
        int r;

        r = session_prepare_signing(&t->session, t->config, NULL, &t->err);
        if (r == 0)
                r = session_settle_signing(&t->session, &t->err);
        if (r < 0)
                return r;
        r = ask(t, &look);
        if (r == 0)
                return change(t);
        if (t->answer.code != RV_SIGN_NO_KEY)
                return r;
        t->err = (struct rv_error){ 0 };
        r = ask(t, &make);
        if (r == 0)
                tell(t, "there was no key; made");
        return r;
}

int audit_rotate(int argc, char **argv)
{
        struct rotation t = { 0 };
        int r;

        for (int i = 1; i < argc; i++) {
                if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
                        fputs(help, stdout);
                        return 0;
                }
                if (!strcmp(argv[i], "--yes"))
                        t.is_sure = true;
                else if (!strcmp(argv[i], "--destroy"))
                        t.is_destroying = true;
                else if (!strcmp(argv[i], "--config") && i + 1 < argc)
                        t.config = argv[++i];
                else
                        return usage_error("audit rotate", "unknown argument %s", argv[i]);
        }
        if (!t.is_sure && !isatty(STDIN_FILENO))
                return usage_error("audit rotate", "it changes the log's key for good; confirm with --yes");
        if (!is_confirmed(&t)) {
                say("audit rotate: not confirmed, nothing was changed");
                return 1;
        }
        r = rotate(&t);
        if (r < 0)
                say("audit rotate: %s", t.err.message);
        session_close(&t.session);
        return r < 0 ? EXIT_REEVE : 0;
}
