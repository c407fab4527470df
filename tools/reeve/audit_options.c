#include "audit_options.h"

#include "audit_select.h"

#include <stdio.h>

/* What getopt_long() found wrong. */
static int refuse(const char *command, int id, char **argv)
{
        const char *word = argv[optind - 1];

        if (id == ':')
                return usage_error(command, "%s wants a value", word);
        if (optopt && optopt < 256)
                return usage_error(command, "there is no option -%c", optopt);
        if (optopt)
                return usage_error(command, "%s: this option takes no value", word);
        return usage_error(command, "%s is no option, or the beginning of several", word);
}

static int take(struct audit_options *o, int id, char **argv)
{
        struct rv_error err = { 0 };

        switch (id) {
        case AUDIT_OPT_CONFIG: o->config = optarg; return 0;
        case AUDIT_OPT_JSON: o->is_json = true; return 0;
        case AUDIT_OPT_KEY:
                return audit_key_add(o->keys, optarg, &err) < 0 ? usage_error(o->command, "%s", err.message) : 0;
        default: return id < AUDIT_OPT_OWN ? refuse(o->command, id, argv) : o->take(o->ctx, id, optarg);
        }
}

int audit_options_read(struct audit_options *o, int argc, char **argv)
{
        int id, r;

        opterr = 0;             /* getopt would print the word as it is */
        optind = 0;             /* all of getopt's state */
        while ((id = getopt_long(argc, argv, ":h", o->table, NULL)) != -1) {
                if (id == 'h') {
                        fputs(o->help, stdout);
                        return 0;
                }
                r = take(o, id, argv);
                if (r)
                        return r;
        }
        o->words = argv + optind;
        o->n_words = argc - optind;
        if (o->n_words > o->n_words_max)
                return usage_error(o->command, "%s is one word too many", o->words[o->n_words_max]);
        return -1;
}

int audit_time_option(const char *command, const char *option, const char *text, uint64_t *ret_us)
{
        if (audit_unix_or_time_parse(text, ret_us) == 0)
                return 0;
        return usage_error(command, "%s wants a time, not \"%s\"", option, text);
}
