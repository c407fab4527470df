/*
 * confine.h - what every helper executable gives up before it reads anything
 *
 * Called once, first of all, by one thread. There is no way back. What each helper needs beside it, such as its
 * filter of system calls, is in its own folder.
 */
#pragma once

#include "base/error.h"

#include <sys/resource.h>

/* A sanitized build traces its own process at its end, to find leaks: it stays dumpable and has no filter. */
#if defined(__SANITIZE_ADDRESS__)
#define RV_IS_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RV_IS_SANITIZED true
#endif
#endif
#ifndef RV_IS_SANITIZED
#define RV_IS_SANITIZED false
#endif

/**
 * rv_confine() - no new privileges, not dumpable, no other descriptors, no core file
 * @n_fds:     descriptors from this one on are closed
 * @files_max: descriptors that it may have from now on, or fewer where it may not have so many
 *
 * Context:   start of the process
 * Ownership: closes what it does not know
 * Return:    0; -errno: it must not go on
 */
int rv_confine(unsigned n_fds, rlim_t files_max, struct rv_error *err);

/** rv_confine_limit() - lower a resource limit, soft and hard, to @most; @name is for messages. Context: any. Ownership: borrows. Return: 0 or -errno */
int rv_confine_limit(int what, rlim_t most, const char *name, struct rv_error *err);
