/*
 * run_options.h - the words of `reeve run`, made into a request
 *
 * The options are checked for their form only; bounds are judged with the request, by the code that judges
 * every request.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"

struct run_options {
        const char *config, *tenant, *backend;
        const char *request;                 /* FILE or "-": the request as JSON */
        const char *file;                    /* FILE or "-": the program */
        const char *language, *stdin_file, *outcome;
        const char *lock_file;               /* of a lock, which is then `lock` */
        json_t *lock;
        bool is_raw, is_json, wants_help;
        bool has_wait;
        uint32_t wait_s;                     /* for a run in flight with the same key */
        json_t *value;                       /* the request that the options make, without source and stdin */
};

/** run_options_parse() - Context: start. Ownership: borrows @argv; release with run_options_fini(), also after a failure. Return: 0, or the exit status after saying what is wrong */
int run_options_parse(int argc, char **argv, struct run_options *ret);
/** run_options_fini() - release. Context: any. Ownership: takes the content. Return: none */
void run_options_fini(struct run_options *o);
/** run_options_help() - the text of --help, on standard output. Context: any. Ownership: none. Return: none */
void run_options_help(void);

/**
 * run_options_read() - read the program, or the request's text, and standard input
 * @ret_text: the request's text, with --request; else empty, and o->value is complete
 *
 * Context:   with the caller's privilege; may block
 * Ownership: @ret_text is the caller's
 * Return:    0, or the exit status after saying what is wrong
 */
int run_options_read(struct run_options *o, struct rv_buf *ret_text);
