/*
 * config_private.h - what the files of the configuration share: the table of keys as data, and how one
 * key's value gets from the text to its field
 *
 * The table is constant. A parser lives on the stack of rv_config_parse(); one thread.
 */
#pragma once

#include "base/config.h"
#include "base/config_keys.h"
#include "base/config_yaml.h"

enum rv_config_type {
        RV_CONFIG_PATH,
        RV_CONFIG_UID_RANGE,
        RV_CONFIG_EACH_RUNTIME,
        RV_CONFIG_ROOT,
        RV_CONFIG_EXPOSE,
        RV_CONFIG_EACH_TENANT,
        RV_CONFIG_DIRECTORY,
        RV_CONFIG_NAME,
        RV_CONFIG_RUNTIME,
        RV_CONFIG_NETWORK,
        RV_CONFIG_LABELS,
        RV_CONFIG_EACH_REGISTRY,
        RV_CONFIG_URL,
        RV_CONFIG_HOSTS,
        RV_CONFIG_REFUSED,
        RV_CONFIG_PIDS,
        RV_CONFIG_CPUS,
        RV_CONFIG_DURATION,
        RV_CONFIG_ADDRESSES,
        RV_CONFIG_DENIED,
        RV_CONFIG_SIZE,
        RV_CONFIG_REDACT,
        RV_CONFIG_SEGMENT,
        RV_CONFIG_SINK,
        RV_CONFIG_BOOL,
        RV_CONFIG_BEHIND,
        RV_CONFIG_RESOLVER,
        RV_CONFIG_CONNECTIONS,
        RV_CONFIG_RATE,
        RV_CONFIG_NAMES,
        RV_CONFIG_IDLE,
        RV_CONFIG_DIGEST,
};

enum rv_config_in {
        RV_CONFIG_IN_NOTHING,
        RV_CONFIG_IN_ROOT,
        RV_CONFIG_IN_RUNTIME,
        RV_CONFIG_IN_TENANT,
        RV_CONFIG_IN_REGISTRY,
        _RV_CONFIG_IN_MAX,
};

struct rv_config_place {
        enum rv_config_in in;
        size_t offset;
};

struct rv_config_key {
        const char *path;
        enum rv_config_type type;
        struct rv_config_place place;
        const char *otherwise;   /* default, as it would be written; or NULL */
        const char *text;
};

extern const struct rv_config_key rv_config_keys[];
extern const size_t rv_config_n_keys;

struct rv_config_parser {
        struct rv_config *config;
        const char *directory;               /* the file's, absolute; or NULL */
        struct rv_error *err;
        void *place[_RV_CONFIG_IN_MAX];      /* the struct being filled, by enum rv_config_in */
};

/** rv_config_fail() - "FILE:LINE: …", as one line. Context: any. Ownership: borrows. Return: -EINVAL */
int rv_config_fail(struct rv_config_parser *p, unsigned line, const char *fmt, ...) RV_PRINTF(3, 4);
/** rv_config_fail_memory() - no memory. Context: any. Ownership: none. Return: -ENOMEM */
int rv_config_fail_memory(struct rv_config_parser *p);
/** rv_config_set_defaults() - set every key of one struct that has a default. Context: any. Ownership: borrows. Return: 0 or -ENOMEM */
int rv_config_set_defaults(struct rv_config_parser *p, enum rv_config_in in);
/** rv_config_set_value() - check one value and set its field. Context: any. Ownership: borrows. Return: 0; -EINVAL; -ENOMEM */
int rv_config_set_value(struct rv_config_parser *p, const struct rv_config_key *key, const struct rv_yaml_node *node);
