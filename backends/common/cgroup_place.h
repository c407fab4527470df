/*
 * cgroup_place.h - the two halves of finding a place, and the names in it, for cgroup_place.c and cgroup_sweep.c alone
 */
#pragma once

#include "cgroup.h"

#define RV_CGROUP_PROC_SIZE 8192

/** rv_cgroup_place_v1() - rules 1 and 5 on v1. @cgroups is the text of /proc/self/cgroup. Context: may block. Ownership: as rv_cgroup_place_open(). Return: as rv_cgroup_place_open() */
int rv_cgroup_place_v1(
        const char *configured, const char *cgroups, struct rv_cgroup_place *place, struct rv_error *err);
/** rv_cgroup_place_v2() - rules 1 to 4 on v2. @point is where it is mounted, @own the process's path in it. Context: may block. Ownership: as rv_cgroup_place_open(). Return: as rv_cgroup_place_open() */
int rv_cgroup_place_v2(const char *configured, const char *point, const char *own, struct rv_cgroup_place *place,
        struct rv_error *err);

/** rv_cgroup_pid_namespace() - what tells this process's PID namespace from the others. Context: may block. Ownership: none. Return: 0 or -errno */
int rv_cgroup_pid_namespace(unsigned long *ret);
/** rv_cgroup_own_path() - this process's path in the hierarchy of @controller ("" is v2). Context: any. Ownership: none. Return: 0; -ENOENT; -ENAMETOOLONG */
int rv_cgroup_own_path(const char *cgroups, const char *controller, unsigned *ret_id, char *ret, size_t size);
/** rv_cgroup_mount() - mount point and mounted root of @controller's v1 hierarchy, or of v2 ("") , from /proc/self/mountinfo. Context: may block. Ownership: none. Return: 0; -ENOENT; -errno */
int rv_cgroup_mount(const char *controller, char *ret_point, char *ret_root, size_t size);
