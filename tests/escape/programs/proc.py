# /proc, and what else tells of the host.

def state_of(path):
    """How much of a file or directory is there for a program: hidden, or readable."""
    try:
        if not os.path.lexists(path):
            return "hidden"
        if os.path.isdir(path):
            return "readable" if os.listdir(path) else "hidden"
        return "readable" if read(path) else "hidden"
    except OSError:
        return "hidden"


MASKED = ("acpi", "asound", "config.gz", "kallsyms", "kcore", "keys", "kmsg", "latency_stats", "sched_debug", "scsi", "sysrq-trigger", "timer_list")
OF_ROOT = ("iomem", "ioports", "kpagecgroup", "kpagecount", "kpageflags", "pagetypeinfo", "slabinfo", "vmallocinfo")
OF_HOST = ("cmdline", "diskstats", "interrupts", "key-users", "partitions", "softirqs", "swaps", "vmstat", "zoneinfo", "sys/kernel/random/boot_id")
FOR_PROGRAMS = ("cpuinfo", "loadavg", "meminfo", "stat", "uptime", "version")      # what interpreters and libraries ask
for name in MASKED:
    say(f"5/proc-masks/{name}", state_of("/proc/" + name))
    tried(f"5/proc-masks/{name}-write", opened, "/proc/" + name, os.O_WRONLY)
for name in OF_ROOT:
    what = state_of("/proc/" + name)
    if name in ("iomem", "ioports") and what == "readable":      # addresses are zeros for those who may not know
        what = "readable" if re.search(r"[1-9a-f]", "".join(re.findall(r"^ *([0-9a-f]+-[0-9a-f]+) :", open("/proc/" + name).read(), re.M))) else "hidden"
    say(f"5/proc-masks/{name}", what)
for name in OF_HOST:
    say(f"5/host-facts/{name.replace('/', '-')}", state_of("/proc/" + name))
say("5/host-facts/for-programs", [n for n in FOR_PROGRAMS if state_of("/proc/" + n) == "readable"])

# Locks of open file descriptions have no owner to hide them by. The harness holds one, of a file that has this number.
say("5/host-facts/locks-of-others", "readable" if f":{os.environ['LOCKED_INODE']} ".encode() in read("/proc/locks") else "hidden")

# Everything of /proc that may be opened for writing, and a write to what is said to be read-only.
may = []
for path in walk("/proc", [f"/proc/{n}" for n in os.listdir("/proc") if n.isdigit()]):
    if path.startswith("/proc/sys/"):
        continue
    try:
        opened(path, os.O_WRONLY)
        may.append(path)
    except OSError:
        pass
say("5/proc-write/outside-sys", sorted(may) or "none")
may, n = [], 0
for path in walk("/proc/sys"):
    n += 1
    try:
        opened(path, os.O_WRONLY)
        may.append(path)
    except OSError:
        pass
say("5/proc-write/sys", sorted(may) or ("none" if n > 500 else "hardly any there"))
for name, value in (("kernel/core_pattern", "|/bin/true"), ("kernel/modprobe", "/tmp/x"), ("kernel/hostname", "x"), ("kernel/panic", "1"), ("vm/overcommit_memory", "1"),
                    ("user/max_user_namespaces", "100"), ("net/ipv4/ip_forward", "1"), ("net/ipv4/ping_group_range", "0 65535"), ("kernel/yama/ptrace_scope", "0"),
                    ("kernel/shmmax", "1"), ("fs/mqueue/msg_max", "100"), ("fs/binfmt_misc/register", ":x:M::x::/tmp/x:")):
    def write(path=f"/proc/sys/{name}", text=value):
        with open(path, "w") as f:
            f.write(text)
    if os.path.exists(f"/proc/sys/{name}"):
        tried(f"5/proc-write/sys-{name.replace('/', '-')}", write)
    else:
        say(f"5/proc-write/sys-{name.replace('/', '-')}", "denied", errno="ENOENT")
say("5/fsconfig/max_user_namespaces", open("/proc/sys/user/max_user_namespaces").read().strip())

# Init, the program before this one.
for name in ("auxv", "environ", "io", "maps", "mem", "pagemap", "personality", "smaps", "stack", "syscall", "wchan", "mountstats"):
    say(f"5/init/read-{name}", "hidden" if name == "wchan" and read("/proc/1/wchan") in (b"", b"0") else state_of(f"/proc/1/{name}"))
for name in ("attr/current", "autogroup", "clear_refs", "comm", "coredump_filter", "gid_map", "loginuid", "mem", "oom_adj", "oom_score_adj", "projid_map", "sched", "setgroups",
             "timerslack_ns", "uid_map"):
    def write(path=f"/proc/1/{name}"):
        with open(path, "r+b" if name == "mem" else "wb", buffering=0) as f:
            f.write(b"0 0 1" if name.endswith("_map") else b"0")
    if os.path.exists(f"/proc/1/{name}"):
        tried(f"5/init/write-{name.replace('/', '-')}", write)
    else:
        say(f"5/init/write-{name.replace('/', '-')}", "denied", errno="ENOENT")
for name in ("cwd", "exe", "root"):
    tried(f"5/init/link-{name}", os.readlink, f"/proc/1/{name}")
    tried(f"5/init/enter-{name}", os.listdir if name != "exe" else opened, f"/proc/1/{name}")
tried("5/init/through-root", opened, "/proc/1/root/etc/passwd")
for name in ("fd", "map_files", "task/1/fd"):
    tried(f"5/init/list-{name.replace('/', '-')}", os.listdir, f"/proc/1/{name}")
for name in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts"):
    tried(f"5/init/namespace-{name}", opened, f"/proc/1/ns/{name}")
say("5/init/name", open("/proc/1/comm").read().strip())
for name in ("uid_map", "gid_map", "projid_map", "setgroups"):
    def write(path=f"/proc/self/{name}", text="allow" if name == "setgroups" else "0 0 1\n"):
        with open(path, "w") as f:
            f.write(text)
    tried(f"5/privilege/own-{name}", write)


def write(text):
    with open("/proc/self/oom_score_adj", "w") as f:
        f.write(text)


tried("5/privilege/own-oom_score_adj-down", write, "-1")
