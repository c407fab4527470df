/*
 * cgroup_limits.h - what differs between v1 and v2 in a run's cgroup, for cgroup.c alone
 */
#pragma once

#include "cgroup.h"

/** rv_cgroup_set() - write a limit and insist that the kernel holds at most that. Context: may block. Ownership: borrows. Return: 0; -errno with @err */
int rv_cgroup_set(const struct rv_cgroup_hierarchy *h, int dir_fd, const char *file, uint64_t value,
        uint64_t *ret_actual, struct rv_error *err);

/** rv_cgroup_limit_v1() - Context: may block. Ownership: borrows. Return: as rv_cgroup_limit() */
int rv_cgroup_limit_v1(const struct rv_cgroup_place *place, struct rv_cgroup *cg, const struct rv_cgroup_limits *limits,
        struct rv_error *err);
/** rv_cgroup_limit_v2() - Context: may block. Ownership: borrows. Return: as rv_cgroup_limit() */
int rv_cgroup_limit_v2(const struct rv_cgroup_place *place, struct rv_cgroup *cg, const struct rv_cgroup_limits *limits,
        struct rv_error *err);
/** rv_cgroup_count_v1() - Context: may block. Ownership: borrows. Return: none */
void rv_cgroup_count_v1(const struct rv_cgroup *cg, struct rv_cgroup_counters *ret);
/** rv_cgroup_count_v2() - Context: may block. Ownership: borrows. Return: none */
void rv_cgroup_count_v2(const struct rv_cgroup *cg, struct rv_cgroup_counters *ret);
/** rv_cgroup_watch_oom() - v1: ask to be told when the run meets its memory limit. Context: may block. Ownership: sets cg->oom_event_fd. Return: 0; -errno with @err */
int rv_cgroup_watch_oom(struct rv_cgroup *cg, struct rv_error *err);
