/*
 * compiled.h - the job `compiled`: byte code for a layer that is there already. One thread.
 */
#pragma once

#include "base/error.h"

#include <jansson.h>

/** compiled() - write what the stream in @in_fd has below the staging directory, and manifest-compiled.json. Context: blocks. Ownership: closes @in_fd; *@ret is a new reference. Return: 0, also with a fault in the result; -errno with a message */
int compiled(int in_fd, json_t **ret, struct rv_error *err);
