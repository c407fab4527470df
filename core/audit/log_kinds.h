/*
 * log_kinds.h - the kinds of records, in one table
 *
 * X(kind, text): the record's `kind`, and what it says. Any thread; constant.
 */
#pragma once

/* clang-format off */
#define RV_LOG_KINDS(X) \
        X("decision",          "the verdict of a bundle on facts, for one stage of one run") \
        X("rejected",          "a request outside its bounds; nothing ran") \
        X("outcome",           "how a run ended; points back to its decision") \
        X("idempotent_replay", "an outcome given again for a key") \
        X("bundle_activated",  "from here on another policy bundle decides") \
        X("bundle_rejected",   "a bundle could not be loaded") \
        X("config",            "from here on another configuration holds") \
        X("checkpoint",        "the size and the root of the log up to here, signed") \
        X("gap",               "something is missing before this record, and why")
/* clang-format on */
