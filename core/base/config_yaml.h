/*
 * config_yaml.h - a configuration text as a tree of nodes with their lines (libyaml)
 *
 * The tree is plain memory in the caller's arena and lives as long as that. Only what a configuration
 * needs is taken of YAML 1.2: one document of mappings, sequences and scalars; anchors, aliases, tags,
 * keys that are no scalars and duplicate keys are errors. JSON is a subset, but for escapes of surrogate
 * pairs: a character beyond U+FFFF stands as itself, or as \U and eight digits. One thread at a time.
 */
#pragma once

#include "base/arena.h"
#include "base/error.h"

#include <stdarg.h>

#define RV_YAML_DEPTH_MAX 16         /* a mapping or sequence counts one */
#define RV_YAML_NODES_MAX 100000
#define RV_YAML_SCALAR_BYTES_MAX 65536

enum rv_yaml_kind {
        RV_YAML_NULL,       /* nothing, `null` or `~` */
        RV_YAML_BOOL,       /* `true` or `false`, unquoted */
        RV_YAML_INTEGER,    /* decimal digits with an optional sign, unquoted */
        RV_YAML_REAL,       /* any other number of YAML 1.2's core schema, unquoted */
        RV_YAML_STRING,     /* every other scalar */
        RV_YAML_MAPPING,
        RV_YAML_SEQUENCE,
};

struct rv_yaml_node {
        enum rv_yaml_kind kind;
        unsigned line;                       /* of its start, from 1 */
        unsigned n_children;
        const char *text;                    /* a scalar's; no NUL within */
        const char *key;                     /* if it stands in a mapping */
        unsigned key_line;
        struct rv_yaml_node *child, *next;   /* in the order of the text */
};

/**
 * rv_yaml_read() - parse one document
 * @text: UTF-8; bounding it is the caller's business
 * @file: for messages: "FILE:LINE: …"
 * @ret:  the root; an empty text gives a node of kind RV_YAML_NULL; untouched on failure
 *
 * Context:   any thread
 * Ownership: the nodes and texts are @arena's
 * Return:    0; -EINVAL with the line in @err; -ENOMEM
 */
int rv_yaml_read(struct rv_arena *arena, const char *text, size_t n, const char *file, struct rv_yaml_node **ret,
                 struct rv_error *err);

/** rv_yaml_kind_text() - what a message calls a kind ("a mapping"). Context: any. Ownership: static. Return: the text */
const char *rv_yaml_kind_text(enum rv_yaml_kind kind);

/** rv_yaml_vfail() - set "FILE:LINE: …", made one line whatever the text it quotes. Context: any. Ownership: borrows. Return: -EINVAL */
int rv_yaml_vfail(const char *file, unsigned line, struct rv_error *err, const char *fmt, va_list ap) RV_PRINTF(4, 0);
