/*
 * index_schema.h - the tables of the index; another version of them is another index, made anew
 *
 * Ids, digests and HMACs are blobs, a segment is its first seq. Constant; any thread.
 */
#pragma once

#define RV__INDEX_VERSION 1

#define RV__INDEX_SCHEMA                                                                                         \
        "CREATE TABLE runs ("                                                                                    \
        " seq INTEGER PRIMARY KEY, decision_id BLOB NOT NULL UNIQUE, run_id BLOB NOT NULL, tenant TEXT NOT NULL," \
        " time_us INTEGER NOT NULL, segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL,"  \
        " outcome_segment INTEGER, outcome_offset INTEGER, outcome_length INTEGER,"                              \
        " status TEXT, code TEXT, started TEXT);"                                                                \
        "CREATE TABLE keys ("                                                                                    \
        " key BLOB PRIMARY KEY, fingerprint BLOB NOT NULL, decision_id BLOB NOT NULL,"                           \
        " ended_us INTEGER, outcome_sha256 BLOB) WITHOUT ROWID;"                                                 \
        "CREATE TABLE cursor ("                                                                                  \
        " id INTEGER PRIMARY KEY, log_id TEXT NOT NULL, boot_id TEXT NOT NULL, has_line INTEGER NOT NULL,"       \
        " segment INTEGER NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL, line_sha256 BLOB NOT NULL," \
        " sums BLOB NOT NULL);"
