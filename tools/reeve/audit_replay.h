/*
 * audit_replay.h - what the two files of `reeve audit replay` share
 *
 * One command, one process; nothing of it outlives it.
 */
#pragma once

#include "audit_keys.h"

#include "audit/replay.h"

struct replay_options {
        const char *config, *dir, *candidate_dir, *bundles_dir;
        struct audit_keys keys;
        struct rv_replay_input input;
        unsigned gates;                  /* bits of enum rv_change */
        bool has_gates, is_json, is_unverified, wants_help;
};

/** replay_status() - the exit status that a result means. Context: any. Ownership: borrows. Return: it */
int replay_status(const struct replay_options *o, const struct rv_replay_result *result);
/** replay_print() - the result for a person. Context: may block. Ownership: borrows. Return: none; a failure is stdout's */
void replay_print(const struct replay_options *o, const struct rv_replay_result *result);
/** replay_print_json() - the result as one line of JSON. Context: may block. Ownership: borrows. Return: 0 or EXIT_REEVE */
int replay_print_json(const struct replay_options *o, const struct rv_replay_result *result);
