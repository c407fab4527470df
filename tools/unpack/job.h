/*
 * job.h - what the helper is asked, and how it answers: one JSON document each way (core/package/unpack.h)
 *
 * The job comes from whoever started the helper and is checked for its shape. One thread.
 */
#pragma once

#include "base/error.h"
#include "base/json.h"
#include "fault.h"

#define JOB_FD_ARTIFACTS 3
#define JOB_FD_STAGING 4
#define TREE_NAME "tree"                 /* in it: what goes into the layer */
#define JOB_FD_TREE 5

/** job_read() - all of standard input. Context: blocks. Ownership: a new reference. Return: 0; -errno with a message */
int job_read(json_t **ret, struct rv_error *err);

/** job_text() - a member that is a non-empty text of at most 1024 bytes without controls. Context: any. Ownership: borrowed from @object. Return: it; NULL */
const char *job_text(const json_t *object, const char *name);

/** job_open() - the artifacts of @list, in their order; -EBADF for one that cannot be opened. Context: blocks. Ownership: an array of descriptors that is the caller's, as they are. Return: 0; -errno with a message */
int job_open(const json_t *list, int **ret_fds, struct rv_error *err);

/** job_answer() - write the result. Context: blocks. Ownership: borrows. Return: 0; -errno with a message */
int job_answer(const json_t *result, struct rv_error *err);

/** job_fault() - a fault as it stands in a result. Context: any. Ownership: a new reference. Return: it; NULL without memory */
json_t *job_fault(const struct fault *f);

/** job_trouble() - a failure that is not the artifact's, as a fault. Context: any. Ownership: none. Return: UNPACK_E_FAULT */
int job_trouble(int r, struct fault *f);
