/*
 * test_netns.h - a run's network namespace in tests: a program inside, a gate outside that serves its sockets
 *
 * Each test forks both: the program makes a namespace of its own, opens the sockets, sends them to the gate, gives
 * up its capabilities and plays; the gate is an ordinary user in the namespace that the test was started in. Both
 * check with CHECK(), whose failure ends the process with a line that says what; the test looks at both ends.
 */
#pragma once

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "netns.h"
#include "test_privilege.h"

#define CHECK(expr)                                                                                                    \
        do {                                                                                                           \
                errno = 0;                                                                                             \
                if (!(expr)) {                                                                                         \
                        fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, __func__, #expr, strerror(errno)); \
                        _exit(1);                                                                                      \
                }                                                                                                      \
        } while (0)

#define ARRIVES_MS 3000       /* more than a busy machine takes */
#define AT_ONCE_MS 50         /* what "at once" means: nothing is waited for */

enum who {
        WHO_ROOT,                /* the superuser, whose network namespace belongs to the host's user namespace */
        WHO_ROOT_IN_USERNS,      /* as a run is built by root */
        WHO_USER,                /* an ordinary user in a user namespace */
};

struct variant {
        const char *name;
        enum who who;
        enum rv_netns_mode mode;
};

struct play {
        void (*prepare)(void);                                                   /* in the namespace, before it is opened; or NULL */
        void (*privileged)(const struct variant *v, struct rv_netns *net);       /* after that, with capabilities; or NULL */
        void (*program)(const struct variant *v);                                /* or NULL */
        void (*gate)(const struct variant *v, const struct rv_netns *net);       /* or NULL */
        bool is_gate_first;                                                      /* the program plays when the gate is gone */
};

/** netns_play() - do all of it and see both ends well. Context: a test. Ownership: none. Return: none */
void netns_play(const struct variant *v, const struct play *play);
/** netns_fork() - run @body in a process that is @who, without namespaces of its own. Context: a test. Ownership: none. Return: exit status, or -1 */
int netns_fork(enum who who, void (*body)(void));
/** netns_enter() - new namespaces for the calling process. Context: it is @who. Ownership: none. Return: 0 or -errno */
int netns_enter(enum who who);

/** address() - of @text, IPv4 or IPv6. Context: any. Ownership: none. Return: it */
union rv_netns_address address(const char *text, uint16_t port);
/** address_size() - for connect() and the like. Context: any. Ownership: none. Return: it */
socklen_t address_size(const union rv_netns_address *a);
/** is_address() - are they the same, port and family too? Context: any. Ownership: borrows. Return: as named */
bool is_address(const union rv_netns_address *a, const char *text, uint16_t port);
/** dial() - a connected socket of @type, which waits at most ARRIVES_MS for anything. Context: any. Ownership: the caller closes. Return: it or -errno */
int dial(int type, const char *text, uint16_t port);
/** take_connection() - accept, within ARRIVES_MS. Context: CHECK(). Ownership: the caller closes. Return: the socket, which blocks for as long as ARRIVES_MS */
int take_connection(int listener_fd);
/** is_quiet() - nothing arrives at any socket of @net for a moment. Context: any. Ownership: borrows. Return: as named */
bool is_quiet(const struct rv_netns *net);
/** echo() - one byte there and back: the program's side. Context: CHECK(). Ownership: takes @fd. Return: none */
void echo(int fd);
/** serve_echo() - the gate's side. Context: CHECK(). Ownership: takes @fd. Return: none */
void serve_echo(int fd);
/** now_ms() - CLOCK_MONOTONIC. Context: any. Ownership: none. Return: it */
int64_t now_ms(void);
/** write_text() - into a file of /proc. Context: any. Ownership: none. Return: 0 or -errno */
int write_text(const char *path, const char *text);
/** count_fds() - the descriptors of this process. Context: any. Ownership: none. Return: it */
unsigned count_fds(void);
