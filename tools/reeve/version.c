#include "reeve.h"

#include "policy/provenance.h"

#include <stdio.h>
#include <string.h>

int verb_version(int argc, char **argv)
{
        _cleanup_(rv_json_unrefp) json_t *engine = NULL;

        if (argc > 1 && !strcmp(argv[1], "--json")) {
                engine = rv_policy_engine();
                return print_json(engine, "the version");
        }
        if (argc > 1 && strcmp(argv[1], "--help"))
                return usage_error("version", "unknown argument %s", argv[1]);
        if (argc > 1)
                printf("usage: reeve version [--json]\n\nPrints the version; with --json also the policy engine's release and limits.\n");
        else
                printf("reeve %s\n", RV_VERSION);
        return 0;
}
