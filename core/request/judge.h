/*
 * judge.h - judging one JSON value as a request, field by field
 *
 * Private to core/request. A judgement gathers faults in `problem` and good values in `request`; functions
 * return 0 (also after a fault: the next field is judged all the same) or -ENOMEM. One thread at a time.
 */
#pragma once

#include "request/request.h"

struct rv_judge {
        struct rv_problem *problem;   /* borrowed */
        struct rv_request *request;   /* borrowed; what is in it after faults is only good for release */
        int language;                 /* an enum rv_language, or -1 while it is not known */
};

/**
 * rv_judge_field_*() - judge one member of the request and store it
 * @value: the member, or NULL where it is left out
 *
 * Context:   any thread
 * Ownership: borrows @value; copies into the request
 * Return:    0 or -ENOMEM
 */
int rv_judge_language(struct rv_judge *j, const json_t *value);
int rv_judge_source(struct rv_judge *j, const json_t *value);
int rv_judge_timeout(struct rv_judge *j, const json_t *value);
int rv_judge_memory(struct rv_judge *j, const json_t *value);
int rv_judge_packages(struct rv_judge *j, const json_t *value);
int rv_judge_env(struct rv_judge *j, const json_t *value);
int rv_judge_network(struct rv_judge *j, const json_t *value);
int rv_judge_key(struct rv_judge *j, const json_t *value);
int rv_judge_stdin(struct rv_judge *j, const json_t *value);

/** rv_judge_is_type() - add the fault `type` unless @value is of @type. Context: any. Ownership: borrows. Return: is it? */
bool rv_judge_is_type(struct rv_judge *j, const char *pointer, const json_t *value, json_type type);

/**
 * rv_judge_string() - type, encoding and number of characters of a string
 * @id:             whose bounds
 * @ret_characters: may be NULL; set on true
 *
 * Context:   any thread
 * Ownership: borrows
 * Return:    is it within? A fault was added if not
 */
bool rv_judge_string(struct rv_judge *j, const char *pointer, const json_t *value, enum rv_bound_id id,
                     size_t *ret_characters);

/** rv_judge_count() - number of entries of a list or members of a map. Context: any. Ownership: borrows. Return: is it within? A fault was added if not */
bool rv_judge_count(struct rv_judge *j, const char *pointer, size_t count, enum rv_bound_id id);

/** rv_judge_dup() - the bytes of a string with a NUL behind. Context: any. Ownership: to the caller. Return: 0 or -ENOMEM */
int rv_judge_dup(const json_t *value, char **ret, size_t *ret_bytes);

/**
 * rv_judge_names() - the names of an object's members, sorted bytewise
 * @ret: a NULL-terminated list, set on 0; the names themselves belong to @object
 *
 * The order of faults must not depend on the order of the text.
 *
 * Context:   any thread
 * Ownership: the list to the caller (free)
 * Return:    0 or -ENOMEM
 */
int rv_judge_names(const json_t *object, const char ***ret);
