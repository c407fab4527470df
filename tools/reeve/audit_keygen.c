#include "audit.h"
#include "session.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
        "usage: reeve audit keygen [--config FILE] [FILE]\n"
        "\n"
        "Makes a key to sign the audit log with: FILE, by default the configuration's audit.key,\n"
        "else ed25519 in keys/ of the state directory. It is made by the spawner and readable by\n"
        "its user alone. Beside it FILE.pub gets the verifier key, which is printed too: give it\n"
        "to whoever is to verify the log. A key that is there is never written over.\n"
        "\n"
        "Exit status 0: made; 1: there is one already; 2: usage; 125: it could not be made.\n";

static char *make_absolute(const char *file)
{
        _cleanup_(rv_freep) char *cwd = NULL;
        char *path = NULL;

        if (file[0] == '/')
                return strdup(file);
        cwd = getcwd(NULL, 0);
        return cwd && asprintf(&path, "%s/%s", cwd, file) >= 0 ? path : NULL;
}

static int make(struct session *s, struct rv_error *err)
{
        struct rv_sign_request q = { .kind = RV_SIGN_MAKE_KEY };
        struct rv_checkpoint_key key = { 0 };
        char text[RV_CHECKPOINT_VERIFIER_SIZE];
        struct rv_sign_answer a;
        int r;

        memcpy(q.log_id, rv_log_id(s->core.log), sizeof(q.log_id));
        r = session_ask(s, &q, &a);
        if (r < 0)
                return rv_error_set(err, r, "the spawner, which makes keys, does not answer: %s", strerror(-r));
        if (a.code != RV_SIGN_OK)
                return rv_error_set(err, a.code == RV_SIGN_THERE ? -EEXIST : -ENOKEY, "%s", a.text);
        memcpy(key.log_id, q.log_id, sizeof(key.log_id));
        memcpy(key.public_key, a.key, sizeof(key.public_key));
        rv_checkpoint_key_text(&key, text);
        print_text("made %s", a.path);
        print_text("verifier key %s", text);
        return 0;
}

int audit_keygen(int argc, char **argv)
{
        _cleanup_(rv_freep) char *path = NULL;
        const char *config = NULL, *file = NULL;
        struct rv_error err = { 0 };
        struct session s;
        int r;

        for (int i = 1; i < argc; i++) {
                if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
                        fputs(help, stdout);
                        return 0;
                }
                if (!strcmp(argv[i], "--config") && i + 1 < argc)
                        config = argv[++i];
                else if (argv[i][0] == '-' || !argv[i][0] || file)
                        return usage_error("audit keygen", "unknown argument %s", argv[i]);
                else
                        file = argv[i];
        }
        path = file ? make_absolute(file) : NULL;
        if (file && !path) {
                say("audit keygen: cannot tell where %s is", file);
                return EXIT_REEVE;
        }
        r = session_prepare_signing(&s, config, path, &err);
        if (r == 0)
                r = session_settle_signing(&s, &err);
        if (r == 0)
                r = make(&s, &err);
        if (r < 0)
                say("audit keygen: %s", err.message);
        session_close(&s);
        return r == 0 ? 0 : r == -EEXIST ? 1 : EXIT_REEVE;
}
