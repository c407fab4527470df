/*
 * config_keys.h - every key of reeve.yaml, in one table
 *
 * X(path, type, place, default, text): the path with `*` for a name that the operator chooses; the type,
 * one of enum rv_config_type; where the value goes; the default as it would be written in the file, or
 * NULL where there is none; what it means. A row of type REFUSED names what this build lacks. From this
 * table come the parser, the defaults and the table of the docs. A row stands before those below it.
 */
#pragma once

/* clang-format off */
#define RV_CONFIG_KEYS(X) \
        X("state_dir",                   PATH,          IN_ROOT(state_dir),             NULL, \
          "directory of records and keys; without it `/var/lib/reeve` as root, else `$XDG_STATE_HOME/reeve` (`~/.local/state/reeve`)") \
        X("cgroup",                      PATH,          IN_ROOT(cgroup),                NULL, \
          "cgroup to make runs' cgroups in, as a path inside the hierarchy (on v1 inside each): `/reeve`; without it one is looked for") \
        X("uid_range",                   UID_RANGE,     IN_ROOT(uid_first),             "2000000-2065535", \
          "user ids handed to runs, one a run") \
        X("runtimes.*",                  EACH_RUNTIME,  NOWHERE,                        NULL, \
          "an interpreter set with its root file system; `host` is always there") \
        X("runtimes.*.root",             ROOT,          IN_RUNTIME(root),               NULL, \
          "`host`, or the directory that the run sees as `/`; required but for the runtime `host` and for an image") \
        X("runtimes.*.image",            PATH,          IN_RUNTIME(image),              NULL, \
          "in place of `root`: a file with an erofs or squashfs file system, mounted read-only; needs root") \
        X("runtimes.*.digest",           DIGEST,        IN_RUNTIME(digest),             NULL, \
          "`sha256:` and 64 hex digits, as `reeve runtime build` prints it: an image with another is refused") \
        X("runtimes.*.python",           PATH,          IN_RUNTIME(python),             "/usr/bin/python3", \
          "the interpreter, as seen inside the root") \
        X("runtimes.*.javascript",       PATH,          IN_RUNTIME(javascript),         "/usr/bin/node", \
          "the interpreter, as seen inside the root") \
        X("runtimes.*.expose",           EXPOSE,        IN_RUNTIME(expose),             NULL, \
          "further paths of the host that runs see, read-only, at the same place") \
        X("tenants.*",                   EACH_TENANT,   NOWHERE,                        NULL, \
          "who runs; without any there is `local`") \
        X("tenants.*.policy",            DIRECTORY,     IN_TENANT(policy),              NULL, \
          "bundle directory, relative to this file's; without it the default bundle of the binary") \
        X("tenants.*.shadow",            DIRECTORY,     IN_TENANT(shadow),              NULL, \
          "bundle directory, as `policy`: it judges the same facts and decides nothing; both verdicts are recorded") \
        X("tenants.*.backend",           NAME,          IN_TENANT(backend),             "namespace", \
          "isolation backend") \
        X("tenants.*.runtime",           RUNTIME,       IN_TENANT(runtime),             "host", \
          "one of `runtimes`") \
        X("tenants.*.network",           NETWORK,       IN_TENANT(network),             "any", \
          "the widest network mode allowed") \
        X("tenants.*.labels",            LABELS,        IN_TENANT(labels),              NULL, \
          "names and texts that policy sees as the tenant's") \
        X("tenants.*.registries.*",      EACH_REGISTRY, IN_TENANT(registries),          NULL, \
          "the tenant's own package registry of a language") \
        X("tenants.*.registries.*.index", URL,          IN_REGISTRY(index),             NULL, \
          "as `registries.<language>.index`") \
        X("tenants.*.registries.*.files", HOSTS,        IN_REGISTRY(files),             NULL, \
          "as `registries.<language>.files`") \
        X("tenants.*.registries.*.ca",   PATH,          IN_REGISTRY(ca),                NULL, \
          "as `registries.<language>.ca`") \
        X("tenants.*.registries.*.proxy", URL,          IN_REGISTRY(proxy),             NULL, \
          "as `registries.<language>.proxy`") \
        X("tenants.*.token_sha256",      REFUSED,       NOWHERE,                        NULL, \
          "service with bearer tokens") \
        X("tenants.*.quotas",            REFUSED,       NOWHERE,                        NULL, \
          "quotas by tenant") \
        X("limits.pids",                 PIDS,          IN_ROOT(limits.pids),           "256", \
          "processes and threads of one run, at most") \
        X("limits.cpus",                 CPUS,          IN_ROOT(limits.cpus_milli),     "0", \
          "CPUs of one run, at most; 0 is no quota, CPU is then shared by weight") \
        X("phases.queue",                DURATION,      IN_ROOT(phases.queue_ms),       "60s", \
          "budget for waiting") \
        X("phases.decide",               DURATION,      IN_ROOT(phases.decide_ms),      "250ms", \
          "budget for policy, and 1 ms more for each package judged") \
        X("phases.resolve",              DURATION,      IN_ROOT(phases.resolve_ms),     "120s", \
          "budget for finding package versions") \
        X("phases.prepare",              DURATION,      IN_ROOT(phases.prepare_ms),     "120s", \
          "budget for making a package layer") \
        X("phases.start",                DURATION,      IN_ROOT(phases.start_ms),       "10s", \
          "budget for building the sandbox, up to the start of the program") \
        X("phases.collect",              DURATION,      IN_ROOT(phases.collect_ms),     "2s", \
          "budget for reading what a program left") \
        X("phases.teardown",             DURATION,      IN_ROOT(phases.teardown_ms),    "5s", \
          "budget for removing the sandbox") \
        X("egress.resolve",              ADDRESSES,     IN_ROOT(egress.resolve),        NULL, \
          "host names and the addresses to use for them") \
        X("egress.deny",                 DENIED,        IN_ROOT(egress.deny),           NULL, \
          "domain names, addresses and networks that no run may reach") \
        X("egress.limits.connections",   CONNECTIONS,   IN_ROOT(egress.limits.connections), "256", \
          "connections of one run that are open at once") \
        X("egress.limits.connections_per_s", RATE,      IN_ROOT(egress.limits.connections_per_s), "100", \
          "connections of one run in a second; as many may come at once") \
        X("egress.limits.bytes",         SIZE,          IN_ROOT(egress.limits.bytes),   NULL, \
          "what one run may move over its network, both ways together; without it there is no such bound") \
        X("egress.limits.idle",          IDLE,          IN_ROOT(egress.limits.idle_ms), "120s", \
          "how long a connection may be without a byte; then it is ended") \
        X("egress.limits.names",         NAMES,         IN_ROOT(egress.limits.names),   "4096", \
          "names that one run may look up") \
        X("egress.limits.dns_per_s",     RATE,          IN_ROOT(egress.limits.dns_per_s), "200", \
          "DNS questions of one run in a second; as many may come at once") \
        X("registries.*",                EACH_REGISTRY, IN_ROOT(registries),            NULL, \
          "the package registry of a language, `python` or `javascript`") \
        X("registries.*.index",          URL,           IN_REGISTRY(index),             NULL, \
          "address of the index") \
        X("registries.*.files",          HOSTS,         IN_REGISTRY(files),             NULL, \
          "further hosts that files come from") \
        X("registries.*.ca",             PATH,          IN_REGISTRY(ca),                NULL, \
          "file of certificates to trust") \
        X("registries.*.proxy",          URL,           IN_REGISTRY(proxy),             NULL, \
          "HTTP proxy to go through, by CONNECT") \
        X("packages.resolve_ttl",        DURATION,      IN_ROOT(packages.resolve_ttl_ms), "24h", \
          "how long a resolution that is not all pinned is used again") \
        X("packages.resolver",           RESOLVER,      IN_ROOT(packages.resolver),     "auto", \
          "what finds Python packages: `uv`, `pip`, or `auto`: uv where there is one, else the runtime's pip") \
        X("packages.uv",                 PATH,          IN_ROOT(packages.uv),           NULL, \
          "the uv to use; without it `/usr/bin/uv`, else `/usr/local/bin/uv`, if it is there") \
        X("packages.store_max",          SIZE,          IN_ROOT(packages.store_max_bytes), "10GiB", \
          "size of all layers above which `reeve package prune` removes the least recently used") \
        X("audit.key",                   PATH,          IN_ROOT(audit.key),             NULL, \
          "file of the key that signs the audit log, read by the spawner alone; without it `STATE/keys/ed25519`") \
        X("audit.redact",                REDACT,        IN_ROOT(audit.redact),          NULL, \
          "what records hide: pointers into them; `*` stands for any member or element") \
        X("audit.segment_max",           SEGMENT,       IN_ROOT(audit.segment_max_bytes), "64MiB", \
          "size of a file of the log from which on the next record begins another one") \
        X("audit.sink.to",               SINK,          IN_ROOT(audit.sink.to),         NULL, \
          "where the log goes besides: `file:PATH`, `command:PATH WORD…` (its standard input; no shell) or an `https://` address") \
        X("audit.sink.records",          BOOL,          IN_ROOT(audit.sink.has_records), "false", \
          "true: every record; else checkpoints alone") \
        X("audit.sink.behind",           BEHIND,        IN_ROOT(audit.sink.behind),     "wait", \
          "what a run does when more than `lag_max` is not delivered: `wait` for it, for `phases.queue` at most, or `deny`") \
        X("audit.sink.lag_max",          SIZE,          IN_ROOT(audit.sink.lag_max_bytes), "16MiB", \
          "how much of the log may be undelivered before a run starts") \
        X("audit.sink.timeout",          DURATION,      IN_ROOT(audit.sink.timeout_ms), "10s", \
          "budget for delivering what a run has left, and for each batch") \
        X("audit.sink.ca",               PATH,          IN_ROOT(audit.sink.ca),         NULL, \
          "file of certificates to trust for an `https://` address, and no other") \
        X("audit.sink.header_file",      PATH,          IN_ROOT(audit.sink.header_file), NULL, \
          "file of HTTP headers to send along, one `Name: value` a line; readable by its owner alone") \
        X("admission.*",                 REFUSED,       NOWHERE,                        NULL, \
          "admission control")
/* clang-format on */
