/*
 * own.h - the addresses of the host, which no run may reach
 *
 * Read at the start and again whenever the kernel tells of a change (rtnetlink). A list that cannot be read ends the
 * gate: it must not go on with one that may be out of date. One thread.
 */
#pragma once

struct gate;

/** own_open() - read them and watch. Context: start of the process. Ownership: own_fini(). Return: 0 or -errno */
int own_open(struct gate *gate, int *ret_watch_fd);
/** own_init() - join the loop. Context: the loop is there. Ownership: takes @watch_fd. Return: 0 or -errno */
int own_init(struct gate *gate, int watch_fd);
/** own_fini() - Context: the loop runs once more. Ownership: takes what own_open() made. Return: none */
void own_fini(struct gate *gate);
