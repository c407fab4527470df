# What a program can learn of the host's names, ids and of its caller; its limits and what is shared between processes.
import resource
import signal
import socket

host, secret = os.environ["HOST_NAME"], os.environ["SECRET_NAME"]
say("5/host-names/hostname", socket.gethostname())
say("5/host-names/uname", os.uname().nodename)
say("5/host-names/domain", open("/proc/sys/kernel/domainname").read().strip())


def mentions(word):
    """Files that hold a word: of /etc and /proc, but the request's own environment."""
    found = []
    for path in list(walk("/etc", ("/etc/ssl", "/etc/alternatives"))) + list(walk("/proc", ["/proc/sys", "/proc/self", "/proc/thread-self"])):
        if path.endswith(("/environ", "/mem", "/auxv", "/pagemap")) or re.search(r"/proc/\d+/task/", path):
            continue
        try:
            if re.search(rb"(?<![A-Za-z0-9])" + re.escape(word.encode()) + rb"(?![A-Za-z0-9])", read(path)):
                found.append(path)
        except OSError:
            pass
    return found


say("5/host-names/name-in-files", mentions(host) or "hidden")

# The environment of reeve's caller holds a variable of this name. The request gives only its name.
say("5/caller/variable", os.environ.get(secret, "hidden"))
say("5/caller/environment", sorted(set(os.environ) - {"HOST_NAME", "SECRET_NAME", "LOCKED_INODE", "LC_CTYPE"}))
seen = []
for pid in os.listdir("/proc"):
    if pid.isdigit():
        try:
            if secret.encode() + b"=" in read(f"/proc/{pid}/environ"):
                seen.append(pid)
        except OSError:
            pass
say("5/caller/variable-of-processes", seen or "hidden")
say("5/caller/arguments-of-init", "readable" if "/" in open("/proc/1/cmdline").read() else "hidden")

# Ids: files of the host are nobody's, so that no id of the host has a name here.
say("5/host-ids/own", f"{os.getuid()} {os.getgid()}")
say("5/host-ids/of-host-files", f"{os.stat('/usr').st_uid} {os.stat('/usr').st_gid}")
say("5/host-ids/of-root", f"{os.stat('/').st_uid} {os.stat('/').st_gid}")
say("5/host-ids/uid_map-columns", [line.split()[0] + ":" + line.split()[2] for line in open("/proc/self/uid_map")])
say("5/host-ids/uid_map-outside", "hidden" if all(line.split()[0] == line.split()[1] for line in open("/proc/self/uid_map")) else "readable")
say("5/host-ids/mountinfo", "readable" if re.search(r"[ ,]uid=\d+", open("/proc/self/mountinfo").read()) else "hidden")
say("5/host-ids/setgroups", open("/proc/self/setgroups").read().strip())

# Limits and the state that a program is started with.
for name in ("CORE", "NOFILE", "STACK", "AS", "MEMLOCK", "RTPRIO", "NICE"):
    limits = resource.getrlimit(getattr(resource, "RLIMIT_" + name))
    say(f"5/core-dumps/rlimit-{name.lower()}", " ".join("unlimited" if n == resource.RLIM_INFINITY else str(n) for n in limits))
umask = os.umask(0)
os.umask(umask)
say("10/30-umask", f"{umask:04o}")
fields = open("/proc/self/stat").read().rpartition(")")[2].split()
say("5/tiocsti/controlling-terminal", "none" if fields[4] == "0" else fields[4])
tried("5/tiocsti/dev-tty", opened, "/dev/tty", os.O_RDWR)
tried("5/tiocsti/dev-ptmx", opened, "/dev/ptmx", os.O_RDWR)
say("5/tiocsti/session", "init's" if os.getsid(0) == 1 else str(os.getsid(0)))
say("5/signals/blocked", sorted(s.name for s in signal.pthread_sigmask(signal.SIG_BLOCK, [])) or "none")
# Python ignores SIGPIPE and SIGXFSZ by itself.
ignored = int(re.search(r"SigIgn:\s*(\S+)", open("/proc/self/status").read())[1], 16)
say("10/18-ignored-signals", [str(n) for n in range(1, 65) if ignored >> (n - 1) & 1 and n not in (signal.SIGPIPE, signal.SIGXFSZ)] or "none")
say("5/signals/parent-death", str(ctypes.CDLL(None).prctl(2, ctypes.byref(got := ctypes.c_int(0)), 0, 0, 0) or got.value))
say("5/privilege/dumpable", str(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0)))
say("5/seccomp/filters", re.search(r"Seccomp_filters:\s*(\d+)", open("/proc/self/status").read() + "Seccomp_filters: 2")[1])

# Interprocess communication: empty, and it works for the run itself.
for name in ("shm", "msg", "sem"):
    say(f"5/ipc/sysv-{name}", "empty" if len(open(f"/proc/sysvipc/{name}").readlines()) == 1 else "something")
libc = ctypes.CDLL(None, use_errno=True)
say("5/ipc/own-shm", "allowed" if libc.shmget(1, 4096, 0o1600) >= 0 else "denied")
say("5/ipc/own-msg", "allowed" if libc.msgget(1, 0o1600) >= 0 else "denied")
say("5/ipc/own-sem", "allowed" if libc.semget(1, 1, 0o1600) >= 0 else "denied")
say("5/ipc/own-mq", "allowed" if libc.mq_open(b"/own", 0o102, 0o600, None) >= 0 else "denied", errno=errno.errorcode.get(ctypes.get_errno()))
say("5/ipc/dev-shm", os.listdir("/dev/shm") or "empty")
say("5/ipc/dev-mqueue", "there" if os.path.lexists("/dev/mqueue") else "none")
say("10/26-tmp-is-fresh", os.listdir("/tmp") or "empty")
say("10/26-box-is-fresh", sorted(os.listdir("/box")))

# Only the loop-back interface, and nothing that listens.
say("9/cdk/interfaces", sorted(line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]))
say("9/cdk/listeners", "none" if all(len(open(f"/proc/net/{p}").readlines()) == 1 for p in ("tcp", "tcp6", "udp", "udp6")) else "some")
tried("9/cdk/netfilter", opened, "/proc/net/ip_tables_names")

# Sixteen Landlock domains can be nested: one fewer than that shows that one is in force already.
layers, abi = 0, 0
try:
    abi = syscall(444, 0, 0, 1)
    attr = ctypes.create_string_buffer(struct.pack("Q", 1 << 12))     # MAKE_SYM, which nothing here does afterwards
    while layers < 32:
        fd = syscall(444, attr, 8, 0)
        syscall(446, fd, 0)
        os.close(fd)
        layers += 1
except OSError as e:
    if e.errno != errno.E2BIG:
        layers = -1
say("5/landlock/in-force", "one domain" if layers == 15 else "not in this kernel" if abi < 2 and layers < 0 else f"{16 - layers} domains")
