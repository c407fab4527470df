/*
 * backend.h - the whole of what an isolation backend knows of reeve (interface version 0)
 *
 * A backend is code that can start one run in an isolation of its kind and tell what it saw. It receives
 * a *plan* (approved, fully resolved, immutable) and reports one *observation* a run: wait status, counters,
 * times. It never judges; the core alone makes the outcome. Built-in backends and third-party plugins use
 * this header alike; it is C99, needs no other header of reeve, and names no type of libuv.
 *
 * Lifetime:  probe -> configure -> [warm] -> start -> (host->observe) -> release -> ... -> fini
 *                                              `-> stop, at any time between start and observe
 *
 * Threads:   everything is called on the loop thread and must not block; what takes time is done by the
 *            host's services (watches, timers, the spawner) and told by their callbacks. A host service may
 *            be called from any backend call or callback, never from another thread.
 *
 * Structs are append-only within a major version and begin with `struct_size`: the size as its maker
 * compiled it. A reader takes a member only if RV_HAS() says that it is there. Version 0 is open: it may
 * change until version 1 is declared, in docs/abi-changes.md.
 */
#ifndef REEVE_BACKEND_H
#define REEVE_BACKEND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RV_BACKEND_ABI_MAJOR 0
#define RV_BACKEND_ABI_MINOR 1

#define RV_HAS(o, f) ((o)->struct_size >= offsetof(__typeof__(*(o)), f) + sizeof((o)->f))

#define RV_RUN_ID_SIZE 33       /* 32 hex digits and NUL */
#define RV_REASON_SIZE 512      /* one line of text for a person */

/* ---- What a backend can do ---- */

enum rv_grade {
        RV_GRADE_ABSENT = 0,    /* cannot */
        RV_GRADE_APPROXIMATE,   /* does, with the gap that the reason names */
        RV_GRADE_ENFORCED,      /* does, by something a program cannot get round */
};

/* X(name, text): the capabilities of a manifest, in the order in which they are listed. */
#define RV_CAPABILITIES(X)                                                              \
        X(memory, "memory limit, swap included")                                        \
        X(pids, "limit of processes and threads")                                       \
        X(cpus, "CPU quota (only if limits.cpus is set)")                               \
        X(files, "size and inode cap of the writable file systems")                     \
        X(timeout, "time limit")                                                        \
        X(private_uid, "a user id of the run's own")                                    \
        X(syscall_filter, "allow-list of system calls")                                 \
        X(landlock, "Landlock as a second wall round the file systems")                 \
        X(network_none, "no network")                                                   \
        X(network_registries, "network mode registries")                                \
        X(network_domains, "network mode domains")                                      \
        X(network_any, "network mode any")

enum rv_capability {
#define X(name, text) RV_CAPABILITY_##name,
        RV_CAPABILITIES(X)
#undef X
        RV_CAPABILITY_MAX_,
};

struct rv_capability_grade {
        uint32_t grade;                  /* enum rv_grade */
        char reason[RV_REASON_SIZE];     /* why not ENFORCED, and how to get it; "" if it is */
};

struct rv_manifest {
        uint32_t struct_size;
        uint32_t is_usable;              /* 0: nothing can be started; `reason` says why and what to do */
        char reason[RV_REASON_SIZE];
        char isolation[32];              /* shared-kernel, user-kernel, vm-kvm, vm-tcg */
        struct rv_capability_grade capabilities[RV_CAPABILITY_MAX_];
};

/* ---- What it is asked to run ---- */

enum rv_plan_language { RV_PLAN_PYTHON = 0, RV_PLAN_JAVASCRIPT = 1 };
enum rv_plan_network {
        RV_PLAN_NETWORK_NONE = 0,
        RV_PLAN_NETWORK_REGISTRIES = 1,
        RV_PLAN_NETWORK_DOMAINS = 2,
        RV_PLAN_NETWORK_ANY = 3
};

struct rv_plan_env {
        const char *name, *value;
};

struct rv_plan {
        uint32_t struct_size;
        char run_id[RV_RUN_ID_SIZE];
        const char *tenant;              /* names, to be looked up in the configuration by whoever has privilege */
        const char *runtime;
        uint32_t language;               /* enum rv_plan_language */
        uint32_t network;                /* enum rv_plan_network */
        uint32_t timeout_s;
        uint32_t memory_mib;
        uint32_t pids;
        uint32_t cpus_milli;             /* thousandths of a processor; 0: shared by weight, no quota */
        const char *source;              /* UTF-8, not terminated */
        size_t source_bytes;
        const char *stdin_data;          /* bytes; then end of file */
        size_t stdin_bytes;
        const struct rv_plan_env *env;   /* the request's own names, sorted; they win over every name but REEVE_* */
        size_t n_env;
        const char *idempotency_key;     /* or NULL */
        uint32_t collect_ms;             /* how long the pipes may be read after the last process is gone */
        uint32_t teardown_ms;            /* how long a stopped run may take to die, before it is given up */
        const struct rv_plan_env *tool_env;  /* network mode registries: what the package manager goes by; the request's names win */
        size_t n_tool_env;
        const char *ca;                  /* the content of RV_PLAN_CA_FILE, which tool_env names, if ca_bytes is not 0 */
        size_t ca_bytes;                 /* at most RV_PLAN_CA_BYTES_MAX */
        const char *runtime_digest;      /* "sha256:HEX" of the runtime's image or directory; NULL: none is known, as of the host's own files */
        const char *layer;               /* digest of the run's package layer, 64 hex digits; NULL: it has none */
        uint32_t is_resolver;            /* the program is reeve's own, and finds packages: it has RV_PLAN_UV_FILE if the host has uv */
};

/* Where a layer is, as the program sees it: a whole virtual environment, or the content of `node_modules`. */
#define RV_LAYER_PYTHON "/venv"
#define RV_LAYER_JAVASCRIPT "/node_modules"
#define RV_LAYER_DIGEST_SIZE 65

#define RV_PLAN_CA_FILE "/.reeve/ca.pem"     /* as the program sees it */
#define RV_PLAN_UV_FILE "/.reeve/uv"
#define RV_PLAN_CA_BYTES_MAX (1u << 20)

/* ---- What it saw ---- */

enum rv_started { RV_STARTED_NO = 0, RV_STARTED_YES = 1, RV_STARTED_UNKNOWN = 2 };

/* Why a backend could not start a run, or lost it. `none` while all went well. */
enum rv_backend_fault {
        RV_BACKEND_FAULT_NONE = 0,
        RV_BACKEND_FAULT_RUNTIME,    /* the interpreter or its root is not there */
        RV_BACKEND_FAULT_SETUP,         /* a step of the set-up failed */
        RV_BACKEND_FAULT_LOST,           /* what watched the run died, or the host took its memory */
        RV_BACKEND_FAULT_HOST_MEMORY,            /* the host or a parent ran out of memory, not the run */
        RV_BACKEND_FAULT_CAPABILITY,     /* this host cannot enforce what the plan asks; fault_step is the capability's name */
};

enum rv_stop {
        RV_STOP_NONE = 0,
        RV_STOP_TIMEOUT,
        RV_STOP_CANCELLED,
        RV_STOP_SHUTDOWN,
        RV_STOP_OUTPUT_LIMIT,
        RV_STOP_MEMORY_LIMIT,            /* the run met its own limit and this kernel kills one process only */
        RV_STOP_GATE,                    /* what serves the run's network is gone, or cannot serve it */
};

struct rv_observation {
        uint32_t struct_size;
        uint32_t started;                /* enum rv_started: was the interpreter executed */
        uint32_t has_wait_status;        /* PID 1 reaped the program and said so */
        int32_t wait_status;             /* as waitpid(2) gives it */
        uint32_t was_stopped;            /* stop() sent its kill before PID 1 had reaped the program */
        uint32_t fault;                  /* enum rv_backend_fault */
        int32_t fault_errno;             /* errno of the failed step, or 0 */
        char fault_step[64];             /* the step, such as "mount proc"; "" if none */
        char fault_text[RV_REASON_SIZE]; /* what, why, what to do */
        uint64_t wall_us;                /* CLOCK_BOOTTIME, exec of the interpreter to exit of the program */
        uint64_t cpu_us;                 /* of the whole run */
        uint64_t peak_memory_bytes;
        uint64_t memory_limit_bytes;     /* as read back from the kernel */
        uint32_t peak_processes;         /* 0: this kernel does not tell */
        uint32_t n_oom_kills;            /* kills for want of memory that the run's own counter shows */
        uint32_t is_memory_limit_reached;/* the run's own limit was met: v2 memory.events.local, v1 peak within 1 % */
        uint32_t is_teardown_complete;   /* no process of the run is left */
        int32_t result_fd;               /* the program's result file opened for reading, or -1. The core closes it */
        char result_note[128];           /* why result_fd is -1 although a result is there; else "" */
};

/* ---- What it may call ---- */

struct rv_run;          /* one run: the core's; the backend hands it back */
struct rv_host_timer;
struct rv_host_watch;

enum rv_stream { RV_STREAM_STDOUT = 0, RV_STREAM_STDERR = 1 };
enum rv_log_level { RV_LOG_DEBUG = 0, RV_LOG_INFO = 1, RV_LOG_WARNING = 2 };
enum rv_watch_event { RV_WATCH_READ = 1, RV_WATCH_WRITE = 2 };

/* What the spawner tells of a run it holds. */
enum rv_spawn_event_kind {
        RV_SPAWN_HELD = 1,      /* placed in its cgroup, checked; it may be released */
        RV_SPAWN_FAILED,        /* could not be started */
        RV_SPAWN_ENDED,         /* every process is gone: the counters are final */
        RV_SPAWN_REMOVED,       /* its cgroups are gone too */
        RV_SPAWN_LOST,          /* the spawner itself is gone */
};

#define RV_NETWORK_SOCKETS_MAX 4

/* The sockets inside a run's network namespace through which it reaches everything (backends/common/netns.h). */
struct rv_network_sockets {
        uint32_t struct_size;
        uint32_t n_fds;                  /* 0: the run has no network */
        int32_t fds[RV_NETWORK_SOCKETS_MAX];
        uint32_t is_redirect;            /* connections come by NAT; else by transparent proxying */
        uint32_t listen_port;            /* of the first, at which every connection arrives */
};

struct rv_spawn_event {
        uint32_t struct_size;
        uint32_t kind;
        uint32_t fault;                  /* enum rv_backend_fault, with RV_SPAWN_FAILED */
        int32_t fault_errno;
        char fault_step[64];
        char fault_text[RV_REASON_SIZE];
        uint32_t was_stopped;            /* spawn_stop() was acted on: its kill went to a live PID 1 */
        uint32_t is_memory_stop;         /* the spawner killed the run after a kill at the run's own limit */
        uint64_t cpu_us, peak_memory_bytes, memory_limit_bytes;
        uint32_t peak_processes, n_oom_kills, is_memory_limit_reached;
        int32_t result_fd;               /* as in the observation; the receiver's */
        char result_note[128];
        struct rv_network_sockets network;       /* with RV_SPAWN_HELD of a run with network; the receiver's */
};

struct rv_spawn_spec {
        uint32_t struct_size;
        const struct rv_plan *plan;
        int control_fd;                  /* lent: init's end of the channel on which it is released and reports */
        int payload_fd;                  /* lent: a sealed memfd with what only init may read (see backends/common/payload.h) */
        int stdin_fd, stdout_fd, stderr_fd;   /* lent: the program's */
};

typedef void (*rv_spawn_cb)(void *arg, const struct rv_spawn_event *event);

/* Host services. All run on the loop thread and never block unless said. */
struct rv_host {
        uint32_t struct_size;
        uint16_t abi_major, abi_minor;
        void *ctx;

        /* log: a line for the operator. Borrows text. */
        void (*log)(void *ctx, enum rv_log_level level, const char *text);

        /* timer_start: cb once after `ms` milliseconds (CLOCK_MONOTONIC). 0 or -errno. The timer is freed
         * by timer_stop, which must be called also after it fired; cb may call it. */
        int (*timer_start)(void *ctx, uint64_t ms, void (*cb)(void *arg), void *arg, struct rv_host_timer **ret);
        void (*timer_stop)(void *ctx, struct rv_host_timer *timer);

        /* watch_add: cb while any of `events` (enum rv_watch_event) holds of fd, which is lent until
         * watch_remove; cb may remove it. 0 or -errno. */
        int (*watch_add)(void *ctx, int fd, uint32_t events, void (*cb)(void *arg, uint32_t events), void *arg,
                struct rv_host_watch **ret);
        void (*watch_remove)(void *ctx, struct rv_host_watch *watch);

        /* spawn_start: have the spawner build the run's isolation and PID 1 in it. Events come by cb: HELD, ENDED,
         * REMOVED in this order; FAILED in place of HELD or ENDED; LOST in place of what has not come, and last.
         * 0 or -errno. */
        int (*spawn_start)(void *ctx, const struct rv_spawn_spec *spec, rv_spawn_cb cb, void *arg, uint64_t *ret_id);
        /* spawn_stop: kill every process of the run. Harmless if it is over. */
        void (*spawn_stop)(void *ctx, uint64_t id);

        /* output: bytes that the program wrote, as they come. Borrows. Never fails; may end in stop(). */
        void (*output)(void *ctx, struct rv_run *run, enum rv_stream stream, const void *data, size_t n);
        /* held: the isolation stands and the program waits for go(). At most once a run. */
        void (*held)(void *ctx, struct rv_run *run);
        /* started: the interpreter was executed, at this CLOCK_BOOTTIME microsecond. At most once a run. */
        void (*started)(void *ctx, struct rv_run *run, uint64_t boot_us);
        /* ended: the program is over (its time stops) although collecting goes on. At most once a run. */
        void (*ended)(void *ctx, struct rv_run *run);
        /* observe: the one observation of a run, after which only release() may follow. Borrows, but for
         * result_fd, which becomes the core's. */
        void (*observe)(void *ctx, struct rv_run *run, const struct rv_observation *observation);
        /* released: after release(): nothing of the run is left (is_clean) or what is left will be swept. */
        void (*released)(void *ctx, struct rv_run *run, int is_clean);

        /* The spawner can give each run user ids of its own: reeve was started as root. */
        uint32_t has_private_uids;

        /* network: how a run with network is reached, before held(), once. The descriptors become the core's, which has
         * them served and calls go() when they are. */
        void (*network)(void *ctx, struct rv_run *run, const struct rv_network_sockets *sockets);
};

/* ---- What it offers ---- */

struct rv_backend {
        uint32_t struct_size;            /* as compiled by the backend */
        uint16_t abi_major, abi_minor;   /* major equal to the host's, minor at most the host's */
        const char *name, *version;

        /* probe: really start something and fill the manifest. May block up to the start budget: it is
         * called by `doctor`, by warm services, and never on the path of a run. 0 or -errno. */
        int (*probe)(const struct rv_host *host, struct rv_manifest *ret);
        /* configure: make the backend's state. Borrows host until fini. 0 or -errno, state untouched. */
        int (*configure)(const struct rv_host *host, void **ret_state);
        /* can: what of the plan the backend cannot enforce: fills the manifest as far as it is known without
         * starting anything. The core refuses a plan with a missing capability. */
        void (*can)(void *state, struct rv_manifest *ret);
        /* start: begin one run; borrows plan until observe. The program is held until go(). 0, or -errno
         * when nothing was begun (no observation follows). *ret_handle is passed to the calls below. */
        int (*start)(void *state, const struct rv_plan *plan, struct rv_run *run, void **ret_handle);
        /* go: the decision is recorded, and the network of a run that has one is served: release the held program as
         * soon as it stands. Once a run. */
        void (*go)(void *state, void *handle);
        /* stop: end the run; the first reason stays. May be called at any time between start and observe. */
        void (*stop)(void *state, void *handle, enum rv_stop why);
        /* flow: stop passing a stream on (is_flowing 0), so that the program waits with its writes, or go on. What
         * the program has written when it ends is passed on in any case. */
        void (*flow)(void *state, void *handle, enum rv_stream stream, int is_flowing);
        /* release: free what is left of the run, after observe; host->released follows, maybe at once. */
        void (*release)(void *state, void *handle);
        /* fini: after the last released. */
        void (*fini)(void *state);
};

#ifdef __cplusplus
}
#endif
#endif
