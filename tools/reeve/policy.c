#include "reeve.h"

#include "policy/bundle.h"
#include "policy/check.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
        "usage: reeve policy check [--json] DIR\n"
        "       reeve policy digest DIR\n"
        "\n"
        "check   prints what is wrong with a bundle, each fault with file and line;\n"
        "        exit status 0: nothing, 1: something, 2: usage\n"
        "digest  prints the bundle's SHA-256: of the sorted list of its files' digests and\n"
        "        paths, as `sha256sum` prints it\n";

struct check {
        const char *dir;
        json_t *findings;       /* with --json */
};

static void on_finding(void *userdata, const struct rv_policy_finding *f)
{
        struct check *check = userdata;

        if (check->findings)
                json_array_append_new(check->findings, json_pack("{s:s, s:i, s:s}", "file", f->file, "line", f->line, "message", f->message));
        else if (!f->file[0])
                print_text("%s: %s", check->dir, f->message);
        else if (f->line)
                print_text("%s/%s:%d: %s", check->dir, f->file, f->line, f->message);
        else
                print_text("%s/%s: %s", check->dir, f->file, f->message);
}

static int check_bundle(const char *dir, bool is_json)
{
        _cleanup_(rv_json_unrefp) json_t *findings = is_json ? json_array() : NULL;
        struct check check = { .dir = dir, .findings = findings };
        int n = rv_policy_check(dir, on_finding, &check);

        if (n < 0) {
                say("policy check: %s", strerror(-n));
                return EXIT_REEVE;
        }
        if (is_json && print_json(findings, "the findings"))
                return EXIT_REEVE;
        return n ? 1 : 0;
}

static int print_digest(const char *dir)
{
        _cleanup_(rv_bundle_freep) struct rv_bundle *bundle = NULL;
        struct rv_error err = { 0 };

        if (rv_bundle_load(dir, &bundle, &err) < 0) {
                say("policy digest: %s: %s", dir, err.message);
                return 1;
        }
        printf("%s\n", rv_bundle_digest(bundle));
        return 0;
}

int verb_policy(int argc, char **argv)
{
        bool is_json = argc == 4 && !strcmp(argv[2], "--json");

        if (argc >= 2 && (!strcmp(argv[argc - 1], "--help") || !strcmp(argv[argc - 1], "-h"))) {
                fputs(help, stdout);
                return 0;
        }
        if (argc >= 2 && !strcmp(argv[1], "check") && (argc == 3 || is_json))
                return check_bundle(argv[argc - 1], is_json);
        if (argc == 3 && !strcmp(argv[1], "digest"))
                return print_digest(argv[2]);
        return usage_error("policy", "say check DIR or digest DIR");
}
