/*
 * reeve.h - what the verbs of the command line share
 *
 * A verb is one file with one function `int verb_NAME(int argc, char **argv)`; argv[0] is the verb. It returns
 * the exit status. Exit statuses are those of the design's section 6.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "request/problem.h"

#define EXIT_USAGE 2
#define EXIT_REEVE 125

int verb_audit(int argc, char **argv);
int verb_run(int argc, char **argv);
int verb_doctor(int argc, char **argv);
int verb_package(int argc, char **argv);
int verb_runtime(int argc, char **argv);
int verb_policy(int argc, char **argv);
int verb_schema(int argc, char **argv);
int verb_version(int argc, char **argv);

/** usage_error() - say what is wrong with the words of the command. Context: any. Ownership: borrows. Return: EXIT_USAGE */
int usage_error(const char *verb, const char *fmt, ...) RV_PRINTF(2, 3);

/* A command of a verb that has several: `reeve audit verify`. The last of a list has no name. */
struct command {
        const char *name;
        int (*run)(int argc, char **argv);      /* argv[0] is the command */
        const char *text;                       /* what it does, for the list of them */
};

/** run_command() - the one of @commands that argv[1] names, or the list of them, under @about. Context: as the command. Ownership: borrows. Return: the exit status */
int run_command(const char *verb, const char *about, const struct command *commands, int argc, char **argv);

/** say() - one line on standard error that begins "reeve: "; what a caller wrote is shown, never obeyed (control characters). Context: may block. Ownership: borrows. Return: none */
void say(const char *fmt, ...) RV_PRINTF(1, 2);

/** print_text() - one line on standard output, control characters shown and never obeyed. Context: may block. Ownership: borrows. Return: none; a failure is stdout's */
void print_text(const char *fmt, ...) RV_PRINTF(1, 2);

/** print_json() - one line on standard output; that it is lost is said, with @what it is. Context: may block. Ownership: borrows; NULL is out of memory. Return: 0, also if nobody reads it any more (EPIPE), or EXIT_REEVE */
int print_json(const json_t *value, const char *what);

/** print_problem() - a problem on standard error as lines. Context: may block. Ownership: borrows. Return: none */
void print_problem(const struct rv_problem *problem);

/** fail() - a problem of reeve's own with @status and @detail. Context: may block. Ownership: borrows. Return: EXIT_REEVE */
int fail(bool is_json, int status, const char *title, const char *detail);
