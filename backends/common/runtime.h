/*
 * runtime.h - an interpreter with the files that a run sees beside it
 *
 * A runtime comes from the configuration: `host` shows the host's own interpreters and libraries, another
 * name a directory's. It is worked out once per spawner into a *view*: an ordered list of what to bind,
 * link, hide and make in the run's root. What stands in no view entry does not exist for the program.
 *
 *   rv_runtime_open -> (view used by any number of runs) -> rv_runtime_close
 *
 * Single thread.
 */
#pragma once

#include "base/config.h"
#include "base/error.h"

#include <reeve/backend.h>

enum rv_view_kind {
        RV_VIEW_BIND,    /* the directory or file @source, read-only, at @path */
        RV_VIEW_LINK,    /* a symbolic link at @path with the text @source */
        RV_VIEW_HIDE,    /* an empty directory, or file, over @path */
        RV_VIEW_FILL,    /* a directory of the run's own over @path, into which later entries are bound */
};

enum rv_view_when {
        RV_VIEW_ALWAYS,
        RV_VIEW_PYTHON_TOOLS,        /* in a run of that language in network mode registries: the package manager */
        RV_VIEW_JAVASCRIPT_TOOLS,
        RV_VIEW_RESOLVER,            /* in a program of reeve's that finds packages for Python */
};

struct rv_view_entry {
        enum rv_view_kind kind;
        enum rv_view_when when;
        char *path;      /* as the program sees it, absolute */
        char *source;
};

struct rv_runtime {
        const struct rv_config_runtime *config;    /* borrowed */
        char *root;                                /* "" for host, else its directory, without links: what is in it is found by its beginning */
        struct rv_view_entry *entries;
        size_t n_entries;
        char *python_site;                         /* "lib/python3.11/site-packages", as Python has it below a user's directory; NULL: not known */
};

/**
 * rv_runtime_open() - work out the view of a configured runtime
 *
 * Context:   may block on the disk
 * Ownership: borrows @config until close
 * Return:    0; -ENOENT the root is not there; -ENOMEM
 */
int rv_runtime_open(const struct rv_config_runtime *config, struct rv_runtime *ret, struct rv_error *err);
/** rv_runtime_add_uv() - @path, the host's uv, is RV_PLAN_UV_FILE where packages are looked for. Context: after open. Ownership: copies. Return: 0 or -ENOMEM */
int rv_runtime_add_uv(struct rv_runtime *rt, const char *path);
/** rv_runtime_close() - release. Context: any. Ownership: takes the content. Return: none */
void rv_runtime_close(struct rv_runtime *rt);

/**
 * rv_runtime_interpreter() - the path to execute, checked
 * @ret_path: as the program sees it
 *
 * Context:   may block on the disk
 * Ownership: *ret_path is borrowed from the configuration
 * Return:    0; -ENOENT or -EACCES: @err names the path looked at
 */
int rv_runtime_interpreter(
        const struct rv_runtime *rt, enum rv_plan_language language, const char **ret_path, struct rv_error *err);
