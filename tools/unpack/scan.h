/*
 * scan.h - the job `scan`: what artifacts are, and whether they may be used. One thread.
 */
#pragma once

#include "base/error.h"

#include <jansson.h>

/** scan() - look at every artifact of the job. Context: blocks. Ownership: borrows; takes the descriptors' content; *@ret is a new reference. Return: 0; -errno with a message */
int scan(const json_t *job, const int *fds, json_t **ret, struct rv_error *err);

/** scan_check() - has the job the shape that it should have? Context: any. Ownership: borrows. Return: 0; -EINVAL with a message */
int scan_check(const json_t *job, struct rv_error *err);
