/*
 * test_spawn.h - a spawner of a test's own, driven by raw messages on its channel
 *
 * The test is the loop: it may send anything. Every wait is bounded. What is checked at the end of each
 * spawner is that it ended by itself with status 0 and that no process and no cgroup of its is left. One thread.
 */
#pragma once

#include "base/fd.h"
#include "payload.h"
#include "spawn_msg.h"
#include "test_base_tmp.h"
#include "test_privilege.h"

#include <sys/types.h>

#define WAIT_MS 10000

struct child {
        pid_t pid;
        int fd;                 /* the channel */
        pid_t init_pid;         /* of the run that start_run() began, if it is the only one; -1 if it was over at once */
};

/* The loop's ends of one run. */
struct ends {
        int control, in, out, err;
        int theirs[RV_SPAWN_FD_MAX_];
};

/** spawner_begin() - start a spawner on a configuration's text; "" is the built-in one. Context: a test. Ownership: to be ended by spawner_end(). Return: none */
void spawner_begin(void **state, const char *config, struct child *ret);
/** spawner_begin_at() - the same of another spawner than the one that was built. Context: a test. Ownership: as spawner_begin(). Return: none */
void spawner_begin_at(void **state, const char *path, const char *config, struct child *ret);
/** spawner_path() - of the one that was built. Context: any. Ownership: static. Return: it */
const char *spawner_path(void);
/** spawner_end() - close the channel, wait, and check that all is well and nothing is left. Context: a test. Ownership: takes @c. Return: none */
void spawner_end(struct child *c, const char *what);
/** send_raw() - any message with any descriptors. Context: a test. Ownership: borrows. Return: 0 or -errno */
int send_raw(int fd, const void *data, size_t n, const int *fds, size_t n_fds);
/** receive() - the next report. Context: a test. Ownership: the report's result_fd is the caller's. Return: 1; 0 the channel is closed; -ETIMEDOUT */
int receive(const struct child *c, struct rv_spawn_report *ret);
/** receive_fds() - the next report with all its descriptors. Context: a test. Ownership: they are the caller's. Return: 1; 0 the channel is closed; -ETIMEDOUT */
int receive_fds(const struct child *c, struct rv_spawn_report *ret, int fds[RV_SPAWN_REPORT_FDS_MAX], size_t *n_fds);
/** expect_event() - the next report must be of this kind. Context: a test. Ownership: as receive(). Return: none */
void expect_event(const struct child *c, const char *what, enum rv_spawn_event_kind kind, struct rv_spawn_report *ret);

/** good_request() - a START that nothing is wrong with. Context: a test. Ownership: none. Return: it */
struct rv_spawn_request good_request(uint64_t id);
/** ends_open() - pipes, control channel and payload of a run of @source. Context: a test. Ownership: release with ends_close(). Return: none */
void ends_open(const char *source, struct ends *ret);
/** ends_close() - Context: a test. Ownership: takes the content. Return: none */
void ends_close(struct ends *e);
/** give() - send START with the run's descriptors, and close ours of them. Context: a test. Ownership: none. Return: none */
void give(const struct child *c, const struct rv_spawn_request *q, struct ends *e);
/** start_run() - START, HELD, go, STARTED. Context: a test. Ownership: @ret's, by ends_close(). Return: none */
void start_run(struct child *c, uint64_t id, const char *source, struct ends *ret);
/** read_report() - the next report of init. Context: a test. Ownership: none. Return: 1; 0 the channel is closed; -ETIMEDOUT */
int read_report(const struct ends *e, struct rv_init_report *ret);
/** is_alive() - is there such a process that is no zombie? Context: a test. Ownership: none. Return: as named */
bool is_alive(pid_t pid);
/** await_death() - wait for it. Context: a test. Ownership: none. Return: did it die in time */
bool await_death(pid_t pid);
/** find_children() - the processes whose parent is @pid. Context: a test. Ownership: none. Return: how many; the first ones are in @ret */
size_t find_children(pid_t pid, pid_t *ret, size_t n);
/** count_fds() - open descriptors of a process, once their number does not change any more. Context: a test. Ownership: none. Return: the number */
unsigned count_fds(pid_t pid);
/** count_cgroups() - directories of the instance that process @pid was. Context: a test. Ownership: none. Return: the number */
unsigned count_cgroups(pid_t pid);
