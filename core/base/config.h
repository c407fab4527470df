/*
 * config.h - reeve.yaml: where it is found, what it may say, what it says
 *
 * A `struct rv_config` is read once, by rv_config_load() or rv_config_parse(), is constant after that and
 * lives until rv_config_free(); all texts and arrays in it are its own. Any thread may read it.
 *
 * The privileged spawner reads the file too, so nothing here uses more than libyaml: no JSON library and
 * no libcrypto is linked with it. Load before giving up privilege: what `state_dir` is by default depends
 * on the effective user. The keys are in config_keys.h.
 *
 * How values are written. Durations: digits and a unit, `250ms 10s 2m 24h 7d`. Sizes: digits and a unit,
 * `512MiB 10GiB`. `uid_range`: `FIRST-LAST`. `limits.cpus`: a number with at most three decimals.
 * Paths are absolute, but for a tenant's `policy` and `shadow`. Text is quoted where YAML would take it for a number.
 */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

#define RV_CONFIG_BYTES_MAX ((size_t)1 << 20)

struct rv_config_list {
        const char **items;
        size_t n_items;
};

struct rv_config_pair {
        const char *name, *value;
};

struct rv_config_pairs {
        struct rv_config_pair *items;
        size_t n_items;
};

struct rv_config_registry {
        const char *language;               /* "python" or "javascript" */
        const char *index, *ca, *proxy;     /* or NULL; index and proxy may hold credentials: never print them */
        struct rv_config_list files;
};

struct rv_config_registries {
        struct rv_config_registry *items;
        size_t n_items;
};

struct rv_config_runtime {
        const char *name;
        const char *root;                   /* "host" or an absolute directory; "" if it is an image */
        const char *image;                  /* absolute path of a file system's image, or NULL */
        const char *digest;                 /* "sha256:HEX" that an image must have, and that a directory had when it was built; or NULL */
        const char *python, *javascript;    /* absolute, inside the root */
        struct rv_config_list expose;
};

struct rv_config_tenant {
        const char *name;
        const char *policy;                 /* absolute directory, or NULL: the default bundle */
        const char *shadow;                 /* absolute directory of a bundle that judges too, or NULL */
        const char *backend, *runtime;
        const char *network;                /* "none", "registries", "domains" or "any" */
        struct rv_config_pairs labels;
        struct rv_config_registries registries;
        unsigned runtime_line;              /* where `runtime` stands; 0 if it does not */
};

/* The second place of the audit log (audit/sink.h). */
struct rv_config_sink {
        const char *to;                     /* "file:PATH", "command:PATH WORD…" or an https address; NULL: there is none */
        bool has_records;                   /* every record; else checkpoints alone */
        const char *behind;                 /* "wait" or "deny" */
        uint64_t lag_max_bytes, timeout_ms;
        const char *ca, *header_file;       /* or NULL */
        unsigned line;                      /* where `audit.sink` stands; 0 if it does not */
};

/* X(name): what one run's network is bounded by, of egress.limits. */
#define RV_CONFIG_EGRESS_LIMITS(X) X(connections) X(connections_per_s) X(bytes) X(idle_ms) X(names) X(dns_per_s)

struct rv_config {
        const char *file;                   /* as it was named; "" if built in */
        const char *text;                   /* the file's bytes; a NUL follows */
        size_t text_bytes;
        const char *state_dir;
        const char *cgroup;                 /* or NULL */
        uint32_t uid_first, uid_last;       /* both included */
        struct rv_config_runtime *runtimes;
        size_t n_runtimes;
        struct rv_config_tenant *tenants;
        size_t n_tenants;
        struct {
                uint32_t pids, cpus_milli;  /* cpus_milli 0: no quota */
        } limits;
        struct {
                uint64_t queue_ms, decide_ms, resolve_ms, prepare_ms, start_ms, collect_ms, teardown_ms;
        } phases;
        struct {
                struct rv_config_pairs resolve;
                struct rv_config_list deny;
                struct {
#define X(name) uint64_t name;
                        RV_CONFIG_EGRESS_LIMITS(X)
#undef X
                } limits;
        } egress;
        struct rv_config_registries registries;
        struct {
                uint64_t resolve_ttl_ms, store_max_bytes;
                const char *resolver;       /* "auto", "uv" or "pip" */
                const char *uv;             /* absolute path, or NULL: see rv_config_uv() */
        } packages;
        struct {
                struct rv_config_list redact;
                uint64_t segment_max_bytes;
                const char *key;            /* absolute path, or NULL: keys/ed25519 in state_dir */
                struct rv_config_sink sink;
        } audit;
        struct rv_arena arena;              /* private */
};

/**
 * rv_config_find() - which file would be used
 * @path:     what the command line says, or NULL
 * @ret_file: "" for none, which means the built-in defaults; untouched on failure
 *
 * Order: @path; $REEVE_CONFIG; $XDG_CONFIG_HOME/reeve/reeve.yaml, where ~/.config stands for a variable
 * that is unset or not absolute; /etc/reeve/reeve.yaml. The first two are used whether they exist or not,
 * and one of the others that exists but cannot be read is not passed over: reading it then fails.
 *
 * Context:   any thread; reads the environment
 * Ownership: *@ret_file is the caller's (free)
 * Return:    0; -EINVAL for an empty @path; -ENOMEM
 */
int rv_config_find(const char *path, char **ret_file, struct rv_error *err);

/**
 * rv_config_load() - find, read and check the configuration
 * @path: as for rv_config_find()
 * @ret:  untouched on failure
 *
 * Context:   any thread; reads one file and the environment
 * Ownership: *@ret is the caller's (rv_config_free)
 * Return:    0; -EINVAL for what the file says, or if it is no regular file; -EFBIG above 1 MiB; -ENOMEM;
 *            -errno from reading. The message is "FILE:LINE: what, why, what to do" or "FILE: …"
 */
int rv_config_load(const char *path, struct rv_config **ret, struct rv_error *err);

/**
 * rv_config_parse() - check a configuration's text
 * @text: @n bytes; copied
 * @file: for messages, and the directory that `policy` and `shadow` are relative to; "" means built in
 * @ret:  untouched on failure
 *
 * Context:   any thread; reads the environment
 * Ownership: *@ret is the caller's (rv_config_free)
 * Return:    as rv_config_load()
 */
int rv_config_parse(const char *text, size_t n, const char *file, struct rv_config **ret, struct rv_error *err);

/** rv_config_free() - release; NULL is allowed. Context: any. Ownership: takes @config. Return: none */
void rv_config_free(struct rv_config *config);
RV_DEFINE_CLEANUP(struct rv_config, rv_config_free)

/** rv_config_tenant() - a tenant by name. Context: any. Ownership: borrowed from @config. Return: it, or NULL */
const struct rv_config_tenant *rv_config_tenant(const struct rv_config *config, const char *name);

/** rv_config_runtime() - a runtime by name. Context: any. Ownership: borrowed from @config. Return: it, or NULL */
const struct rv_config_runtime *rv_config_runtime(const struct rv_config *config, const char *name);

/** rv_config_uv() - the uv that is to find Python packages, if it is there. Context: any; looks at the disk. Ownership: borrowed from @config, or static. Return: its path, or NULL */
const char *rv_config_uv(const struct rv_config *config);

/**
 * rv_config_markdown() - the table of keys for the docs
 * @out: added to
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    0 or -ENOMEM
 */
int rv_config_markdown(struct rv_buf *out);
