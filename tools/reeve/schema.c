#include "reeve.h"

#include "base/config.h"
#include "request/bounds.h"

#include <stdio.h>
#include <string.h>

static const char help[] =
        "usage: reeve schema request [--markdown]\n"
        "       reeve schema configuration --markdown\n"
        "\n"
        "Prints the JSON Schema (draft 2020-12) of a request, or the table for the\n"
        "documentation, from the one list of bounds that requests are judged by.\n";

static int print_markdown(int (*make)(struct rv_buf *out))
{
        _cleanup_(rv_buf_fini) struct rv_buf b = { 0 };

        if (make(&b) < 0)
                return EXIT_REEVE;
        fwrite(b.data, 1, b.size, stdout);
        return 0;
}

int verb_schema(int argc, char **argv)
{
        _cleanup_(rv_json_unrefp) json_t *schema = NULL;
        bool is_markdown = argc == 3 && !strcmp(argv[2], "--markdown");

        if (argc >= 2 && (!strcmp(argv[argc - 1], "--help") || !strcmp(argv[argc - 1], "-h"))) {
                fputs(help, stdout);
                return 0;
        }
        if (is_markdown && !strcmp(argv[1], "configuration"))
                return print_markdown(rv_config_markdown);
        if (argc < 2 || strcmp(argv[1], "request") || (argc > 2 && !is_markdown))
                return usage_error("schema", "say request, request --markdown or configuration --markdown");
        if (is_markdown)
                return print_markdown(rv_bounds_markdown);
        schema = rv_bounds_schema();
        if (!schema || json_dumpf(schema, stdout, JSON_INDENT(2)) < 0)
                return EXIT_REEVE;
        putchar('\n');
        return 0;
}
