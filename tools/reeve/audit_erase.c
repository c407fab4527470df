#include "audit.h"

#include "audit/erase.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
        "usage: reeve audit erase --yes [--config FILE] [DIR]\n"
        "\n"
        "Erases the log's secret (keys/hmac) and goes on with a new one. Values that records hide, keys of\n"
        "idempotency, environment values and standard input are in the log as commitments under that secret:\n"
        "afterwards nobody can find out, prove or compare what they were. The log stays whole and verifies as\n"
        "before. Keys of idempotency used so far are forgotten, so a request repeated with one runs again.\n"
        "\n"
        "DIR is the state directory; without it, the configuration's. No reeve may be writing to its log. Where the\n"
        "secret was lost, the log is continued with a new one. Backups of keys/ are yours to erase.\n"
        "\n"
        "Exit status 0: erased; 2: usage, or no log there; 125: not erased, or not recorded.\n";

int audit_erase(int argc, char **argv)
{
        _cleanup_(audit_place_close) struct audit_place place = { .audit_fd = -EBADF, .state_fd = -EBADF };
        const char *config = NULL, *dir = NULL;
        struct rv_error err = { 0 };
        bool is_sure = false;
        uint64_t seq = 0;

        for (int i = 1; i < argc; i++) {
                if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
                        return fputs(help, stdout) < 0 ? EXIT_REEVE : 0;
                if (!strcmp(argv[i], "--yes"))
                        is_sure = true;
                else if (!strcmp(argv[i], "--config") && i + 1 < argc)
                        config = argv[++i];
                else if (argv[i][0] == '-' || dir)
                        return usage_error("audit erase", "cannot use %s", argv[i]);
                else
                        dir = argv[i];
        }
        if (!is_sure)
                return usage_error("audit erase", "what is erased cannot be had again; if that is meant, give --yes");
        if (audit_place_open(config, dir, &place, &err) < 0) {
                say("%s", err.message);
                return EXIT_USAGE;
        }
        if (place.state_fd < 0)
                return usage_error("audit erase", "%s is no state directory; name the one above audit/", place.path);
        if (rv_log_erase_secret(place.state_fd, place.state_dir, &seq, &err) < 0) {
                say("%s", err.message);
                return err.code == -ENOENT ? EXIT_USAGE : EXIT_REEVE;
        }
        print_text("erased; record %llu says so", (unsigned long long)seq);
        return 0;
}
