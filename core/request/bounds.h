/*
 * bounds.h - every bound of a request, in one table
 *
 * RV_BOUNDS(X) is the only place where a figure stands. From it come the constants that code compares with
 * (RV_BOUND_MAX(source)), the run-time table rv_bounds[], the JSON Schema, the documentation's table and the
 * lines of --help. It is constant data: any thread, nothing to release.
 */
#pragma once

#include "base/buf.h"

#include <jansson.h>

/* What stands in the default column when there is no number to stand there. */
#define RV_BOUND_REQUIRED (-1)     /* the member must be given */
#define RV_BOUND_NONE (-2)         /* left out means none */
#define RV_BOUND_EMPTY (-3)        /* left out means empty */
#define RV_BOUND_NO_DEFAULT (-4)   /* a part of a member: nothing to default */

enum rv_bound_type {
        RV_BOUND_ENUM,      /* one of the words in `text` */
        RV_BOUND_STRING,    /* minimum and maximum count code points */
        RV_BOUND_INTEGER,   /* minimum and maximum are values */
        RV_BOUND_LIST,      /* … count entries */
        RV_BOUND_MAP,       /* … count members */
        RV_BOUND_OBJECT,    /* its parts have rows of their own */
        RV_BOUND_SIZE,      /* … measure something that is not one member */
};

/* id, name as documents show it, type, minimum, maximum, default, unit, text. In the order of faults. */
#define RV_BOUNDS(X)                                                                                                   \
        X(language, "language", ENUM, 1, 1, RV_BOUND_REQUIRED, "", "`python` or `javascript`")                         \
        X(source, "source", STRING, 1, 100000, RV_BOUND_REQUIRED, "characters",                                        \
          "the program: Unicode code points, well-formed UTF-8, no NUL")                                               \
        X(timeout_s, "timeout_s", INTEGER, 1, 300, 30, "s", "run time of the program")                                 \
        X(memory_mib, "memory_mib", INTEGER, 128, 2048, 512, "MiB", "memory of the whole run")                         \
        X(packages, "packages", LIST, 0, 50, RV_BOUND_NONE, "entries",                                                 \
          "packages the program needs, each with a version constraint, which can be open")                             \
        X(package, "packages[]", STRING, 3, 214, RV_BOUND_NO_DEFAULT, "characters",                                    \
          "Python: `name[extras] specifier` (PEP 508, no markers); JavaScript: `name@range`")                          \
        X(env, "env", MAP, 0, 50, RV_BOUND_NONE, "pairs",                                                              \
          "environment variables: names `[A-Za-z_][A-Za-z0-9_]*`, not `REEVE_*`; values without NUL")                  \
        X(env_bytes, "env (in all)", SIZE, 0, 131072, RV_BOUND_NO_DEFAULT, "bytes",                                    \
          "name + value + 2 bytes a pair")                                                                             \
        X(network, "network", OBJECT, 1, 1, RV_BOUND_NONE, "",                                                         \
          "`{\"mode\":…}`: `none`, `registries`, `domains` or `any`")                                                  \
        X(domains, "network.domains", LIST, 1, 100, RV_BOUND_NO_DEFAULT, "names",                                      \
          "with mode `domains`, and only with it; a name includes its subdomains")                                     \
        X(domain, "network.domains[]", STRING, 3, 253, RV_BOUND_NO_DEFAULT, "characters",                              \
          "a name of two labels or more, A-labels only; no IP literal, wildcard, port or scheme")                      \
        X(idempotency_key, "idempotency_key", STRING, 1, 255, RV_BOUND_NONE, "characters", "printable ASCII")          \
        X(input, "stdin", STRING, 0, 1000000, RV_BOUND_EMPTY, "characters",                                            \
          "standard input, passed byte for byte; then end of file")                                                    \
        X(document, "(the document)", SIZE, 2, 16777216, RV_BOUND_NO_DEFAULT, "bytes",                                 \
          "the request's JSON text; holds every request within the bounds, escaped as it may be")                      \
        X(depth, "(its depth)", SIZE, 1, 32, RV_BOUND_NO_DEFAULT, "levels", "an array or object counts one")           \
        X(values, "(its values)", SIZE, 1, 65536, RV_BOUND_NO_DEFAULT, "values", "values and members' names in all")   \
        X(output, "(standard output)", SIZE, 0, 1000000, RV_BOUND_NO_DEFAULT, "characters",                            \
          "kept of what the program writes; the rest is dropped, counted and flagged")                                 \
        X(errors, "(standard error)", SIZE, 0, 100000, RV_BOUND_NO_DEFAULT, "characters",                              \
          "kept of what the program writes; the rest is dropped, counted and flagged")

enum rv_bound_id {
#define RV_BOUND_X(id, name, type, minimum, maximum, otherwise, unit, text) RV_BOUND_ID_##id,
        RV_BOUNDS(RV_BOUND_X)
#undef RV_BOUND_X
        _RV_BOUND_ID_MAX
};

enum {
#define RV_BOUND_X(id, name, type, minimum, maximum, otherwise, unit, text) \
        rv_bound_min_##id = (minimum), rv_bound_max_##id = (maximum), rv_bound_default_##id = (otherwise),
        RV_BOUNDS(RV_BOUND_X)
#undef RV_BOUND_X
};

/* Constant expressions, for code and array sizes. */
#define RV_BOUND_MIN(id) rv_bound_min_##id
#define RV_BOUND_MAX(id) rv_bound_max_##id
#define RV_BOUND_DEFAULT(id) rv_bound_default_##id

/* ECMA-262 regular expressions, as JSON Schema wants them; the C code that judges stands beside the parser. */
#define RV_BOUND_ENV_NAME_PATTERN "^(?!REEVE_)[A-Za-z_][A-Za-z0-9_]*$"
#define RV_BOUND_KEY_PATTERN "^[ -~]+$"
#define RV_BOUND_NO_NUL_PATTERN "^[^\\u0000]*$"

struct rv_bound {
        const char *id, *name;
        enum rv_bound_type type;
        int64_t minimum, maximum;
        int64_t otherwise;   /* the default: a value, or one of the RV_BOUND_* above */
        const char *unit, *text;
};

/* Indexed by enum rv_bound_id. */
extern const struct rv_bound rv_bounds[_RV_BOUND_ID_MAX];

/**
 * rv_bound_describe() - the allowed extent in words: "1 to 300 s", "at most 50 entries"
 * @id:  which
 * @ret: at least 64 bytes; empty for a bound that has no extent (language, network)
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    @ret
 */
const char *rv_bound_describe(enum rv_bound_id id, char ret[64]);

/**
 * rv_bounds_schema() - the JSON Schema (draft 2020-12) of a request
 *
 * What a schema cannot say (package and domain syntax, `30.0` is no integer, duplicate keys, the environment's
 * size in all) stands in its descriptions; a request that it accepts can still be rejected.
 *
 * Context:   any thread
 * Ownership: a new reference, to the caller
 * Return:    the schema, or NULL when out of memory
 */
json_t *rv_bounds_schema(void);

/** rv_bounds_markdown() - the documentation's table. Context: any. Ownership: adds to @out. Return: 0 or -ENOMEM */
int rv_bounds_markdown(struct rv_buf *out);

/** rv_bounds_help() - lines for --help, each indented by two spaces. Context: any. Ownership: adds to @out. Return: 0 or -ENOMEM */
int rv_bounds_help(struct rv_buf *out);
