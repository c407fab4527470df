/*
 * audit_options.h - the words of `reeve audit COMMAND`, `reeve package COMMAND` and `reeve runtime COMMAND`
 *
 * What many commands have, --config, --json, --key and --help, is taken here; a command's own options are handed to it,
 * one by one and in their order. So that all of them say the same of the same mistake.
 *
 *     static const struct option table[] = { { "all", no_argument, NULL, AUDIT_OPT_OWN }, AUDIT_OPTION_JSON, AUDIT_OPTIONS_END };
 *     struct audit_options o = { .command = "audit verify", .help = help, .table = table, .n_words_max = 1, .take = take };
 *     int r = audit_options_read(&o, argc, argv);
 *
 *     if (r >= 0)
 *             return r;
 *
 * Start of the process; one thread, as getopt_long() has a state of its own.
 */
#pragma once

#include "audit_keys.h"

#include <getopt.h>

enum { AUDIT_OPT_CONFIG = 256, AUDIT_OPT_JSON, AUDIT_OPT_KEY, AUDIT_OPT_OWN /* from here on a command's own */ };

#define AUDIT_OPTION_JSON { "json", no_argument, NULL, AUDIT_OPT_JSON }
#define AUDIT_OPTION_KEY { "key", required_argument, NULL, AUDIT_OPT_KEY }
#define AUDIT_OPTION_CONFIG { "config", required_argument, NULL, AUDIT_OPT_CONFIG }
/* The last of a table. */
#define AUDIT_OPTIONS_END { "help", no_argument, NULL, 'h' }, { 0 }

struct audit_options {
        const char *command, *help;
        const struct option *table;
        int n_words_max;                 /* words that are no options */
        int (*take)(void *ctx, int id, const char *value);   /* an option of the command's own. Return: 0; an exit status, said why */
        void *ctx;
        struct audit_keys *keys;         /* where those of --key go */
        /* What was said. */
        const char *config;
        bool is_json;
        char **words;                    /* up to n_words_max, and NULL */
        int n_words;
};

/** audit_options_read() - take the words of a command, or print its help. Context: start of the process. Ownership: borrows; what was said is @argv's. Return: -1 to go on; else the exit status */
int audit_options_read(struct audit_options *o, int argc, char **argv);

/** audit_time_option() - the time of an option like --since, as microseconds since 1970. Context: any; reads the clock. Ownership: borrows. Return: 0; EXIT_USAGE after saying what is wrong */
int audit_time_option(const char *command, const char *option, const char *text, uint64_t *ret_us);
