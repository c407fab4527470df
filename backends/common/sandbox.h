/*
 * sandbox.h - what the spawner's cloned child does until it is PID 1 of a finished sandbox
 *
 * Declared here for the spawner, done by backends/namespace. The spawner clones the child into new user,
 * mount, pid, net, ipc and uts namespaces; it joins its cgroups, takes a cgroup namespace and builds the run's
 * root, all without knowing for whom. Then it is assigned a run, finishes what depends on it, and goes on as
 * init (backends/common/init.h). So a child can be made ahead, and one made ahead and one made on the spot go
 * the same way. It talks to the spawner on a SOCK_SEQPACKET pair:
 *
 *     spawner: PROCEED, ASSIGN    child: JOINED, NETWORK if it has one, READY, or FAILED at any time
 *
 * Everything here runs in a single-threaded process between clone and exec.
 */
#pragma once

#include "cgroup.h"
#include "init.h"
#include "runtime.h"
#include "spawn_msg.h"

#define NS_PROGRAM_UID 1000
#define NS_HOST_NAME "sandbox"

enum ns_message_kind {
        NS_JOINED = 1,       /* child: I am in my cgroups */
        NS_PROCEED,          /* spawner: your ids are mapped; always before ASSIGN */
        NS_ASSIGN,           /* spawner: this is your run; carries the descriptors of enum rv_spawn_fd */
        NS_READY,            /* child: the sandbox stands; carries a descriptor of RV_BOX */
        NS_FAILED,           /* child: `step` failed; I am gone */
        NS_NETWORK,          /* child: the network stands; carries its sockets, in the order of enum rv_netns_socket */
};

struct ns_message {
        uint32_t kind;
        int32_t fault_errno;             /* with FAILED */
        uint32_t language, memory_mib;   /* with ASSIGN */
        uint32_t network;                /* with ASSIGN: enum rv_plan_network; with NETWORK: enum rv_netns_mode */
        uint32_t is_network_fault;       /* with FAILED: it is this host's network that cannot be had */
        uint32_t is_resolver;            /* with ASSIGN */
        char layer[RV_LAYER_DIGEST_SIZE];        /* with ASSIGN: "" for none */
        char step[64];
};

struct ns_child {
        int spawner_fd;                      /* the child's end */
        const struct rv_cgroup *cgroup;
        const struct rv_runtime *runtime;
        bool has_own_uid;                    /* PID 1 is uid 0 of the namespace; else it is the program's uid */
        struct rv_init init;                 /* filled when it is assigned */
        int payload_fd;
        enum rv_plan_network network;
        int layers_fd;                       /* a mount of the layers' directory, or -1: `layers` is to be opened, */
        const char *layers;                  /* if it is not NULL: its path */
        bool is_resolver;
        char layer[RV_LAYER_DIGEST_SIZE];
};

/** ns_child_main() - be the child. Context: just cloned. Ownership: takes all. Return: never */
_Noreturn void ns_child_main(struct ns_child *child);
