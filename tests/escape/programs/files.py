# What a program sees of files, and what it may do to them.

def others():
    return [p for p in os.listdir("/proc") if p.isdigit() and int(p) != os.getpid()]


# CVE-2019-5736: the program that started this one, overwritten through /proc.
writable = []
for pid in os.listdir("/proc"):
    if pid.isdigit():
        try:
            opened(f"/proc/{pid}/exe", os.O_WRONLY)
            writable.append(pid)
        except OSError:
            pass
say("5/proc-self-exe/any-writable", writable or "none")
tried("5/proc-self-exe/own-write", opened, "/proc/self/exe", os.O_WRONLY)
tried("5/proc-self-exe/own-truncate", opened, "/proc/self/exe", os.O_WRONLY | os.O_TRUNC)
tried("5/proc-self-exe/init-read", opened, "/proc/1/exe")
tried("5/proc-self-exe/interpreter-write", opened, sys.executable, os.O_WRONLY)
tried("5/proc-self-exe/interpreter-rename", os.rename, sys.executable, sys.executable + ".old")
say("5/proc-self-exe/other-processes", [p for p in others() if p != "1"] or "none")

# CVE-2024-21626: a descriptor or a working directory left from the host.
fd = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY)
names = sorted(os.listdir(fd), key=int)
os.close(fd)
say("5/leaked-fds/list", [n for n in names if os.path.lexists(f"/proc/self/fd/{n}")])
say("5/leaked-fds/kinds", [os.readlink(f"/proc/self/fd/{n}").split(":")[0] for n in range(3)])
entered = []
for n in range(65):
    try:
        os.chdir(f"/proc/self/fd/{n}")
        entered.append(str(n))
    except OSError:
        pass
say("5/leaked-fds/chdir-0-to-64", entered or "none")
os.chdir("/box")
say("5/leaked-fds/cwd", os.getcwd())
tried("5/leaked-fds/up-and-out", os.stat, "/../../../../../../box/../../root")
say("5/leaked-fds/root-is-root", "yes" if os.stat("/..").st_ino == os.stat("/").st_ino else "no")
for name in ("stdin", "stdout", "stderr"):
    tried(f"5/leaked-fds/reopen-{name}", opened, f"/dev/{name}", os.O_RDONLY if name == "stdin" else os.O_WRONLY)
tried("5/leaked-fds/write-to-stdin", os.write, 0, b"x")
tried("5/leaked-fds/read-from-stdout", os.read, 1, 1)
tried("5/leaked-fds/reopen-stdin-for-write", opened, "/proc/self/fd/0", os.O_WRONLY)
tried("5/leaked-fds/reopen-stdout-for-read", opened, "/proc/self/fd/1", os.O_RDONLY)
tried("5/leaked-fds/chmod-stdout", os.fchmod, 1, 0o777)
tried("5/leaked-fds/truncate-stdout", os.ftruncate, 1, 0)
tried("5/leaked-fds/proc-fd-of-init", os.listdir, "/proc/1/fd")

# CVE-2025-31133 and the like: a mask or a device that is the host's own inode.
for device, number in (("null", (1, 3)), ("zero", (1, 5)), ("full", (1, 7)), ("random", (1, 8)), ("urandom", (1, 9))):
    path = "/dev/" + device
    st = os.stat(path)
    right = stat.S_ISCHR(st.st_mode) and (os.major(st.st_rdev), os.minor(st.st_rdev)) == number and stat.S_IMODE(st.st_mode) == 0o666
    say(f"5/null-inode/{device}-is", "as it should be" if right else f"{st.st_mode:o} {st.st_rdev:x}")
    tried(f"5/null-inode/{device}-chmod", os.chmod, path, 0o600)
    tried(f"5/null-inode/{device}-chown", os.chown, path, 1000, 1000)
    tried(f"5/null-inode/{device}-utime-set", os.utime, path, (0, 0))
    tried(f"5/null-inode/{device}-utime-now", os.utime, path)
    tried(f"5/null-inode/{device}-unlink", os.unlink, path)
    tried(f"5/null-inode/{device}-setxattr", os.setxattr, path, "user.mark", b"1")
tried("5/null-inode/null-write", opened, "/dev/null", os.O_RDWR)
tried("5/null-inode/null-link", os.link, "/dev/null", "/tmp/null")
tried("5/null-inode/null-rename", os.rename, "/dev/null", "/dev/zero")
tried("5/null-inode/null-flock", lambda: fcntl.flock(os.open("/dev/null", os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB))
tried("5/null-inode/null-inotify", lambda: syscall(254, syscall(294, 0), ctypes.c_char_p(b"/dev/null"), 0xfff))

# Devices and what else is at the top.
say("5/device-nodes/dev-list", sorted(os.listdir("/dev")))
say("5/device-nodes/root-list", [n for n in sorted(os.listdir("/")) if n not in ("lib32", "libx32")])
ETC = {"group", "hostname", "hosts", "nsswitch.conf", "passwd", "resolv.conf"}
OF_HOST = {"alternatives", "ld.so.cache", "localtime", "mime.types", "ssl"}      # each if the host has it
etc = set(os.listdir("/etc"))
say("5/device-nodes/etc-list", sorted(etc - ETC - OF_HOST) + sorted("no " + n for n in ETC - etc) or "as it should be")
say("5/device-nodes/passwd", [line.split(":")[0] for line in open("/etc/passwd")])
found = [p for p in ("/root", "/home", "/var", "/run", "/srv", "/opt", "/mnt", "/boot", "/sys", "/media", "/lost+found") if os.path.lexists(p)]
say("5/device-nodes/host-directories", found or "none")
say("5/device-nodes/devices-elsewhere", [p for p in walk("/", ("/proc", "/dev", "/usr")) if stat.S_ISCHR(os.lstat(p).st_mode) or stat.S_ISBLK(os.lstat(p).st_mode)] or "none")
for d in ("/usr/local", "/usr/lib/python3/dist-packages", "/usr/lib/node_modules", "/etc/ssl/private"):
    say("5/device-nodes/hidden" + d.replace("/", "-"), (os.path.isdir(d) and os.listdir(d)) or "empty")

# Writing anywhere but in the three places.
PLACES = ("/", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/etc", "/etc/ssl", "/dev", "/proc", "/.reeve", "/.reeve/empty", "/usr/share/nodejs")
for d in PLACES:
    tried("5/read-only/create-in" + (d.replace("/", "-") if d != "/" else "-root"), lambda d: os.mknod(os.path.join(d, "reeve-escape")), d)
for p in ("/etc/passwd", "/usr/bin/env", "/etc/ld.so.cache", "/.reeve/null"):
    tried("5/read-only/write" + p.replace("/", "-"), opened, p, os.O_WRONLY)
    tried("5/read-only/chmod" + p.replace("/", "-"), os.chmod, p, 0o4755)
    tried("5/read-only/unlink" + p.replace("/", "-"), os.unlink, p)
    tried("5/read-only/hard-link" + p.replace("/", "-"), os.link, p, "/tmp/linked")
    tried("5/read-only/rename" + p.replace("/", "-"), os.rename, p, "/tmp/renamed")
os.symlink("/etc/passwd", "/tmp/to-passwd")
tried("5/read-only/through-symlink", opened, "/tmp/to-passwd", os.O_WRONLY)
tried("5/read-only/mmap-shared", lambda: __import__("mmap").mmap(os.open("/usr/bin/env", os.O_RDONLY), 4096, prot=3))
for d in ("/box", "/tmp", "/dev/shm"):
    name = d.strip("/").replace("/", "-")
    tried(f"5/read-only/can-write-{name}", lambda d: os.mkdir(d + "/own"), d)
    flags = os.statvfs(d).f_flag
    say(f"5/privilege/flags-{name}", [n for n, bit in (("nosuid", os.ST_NOSUID), ("nodev", os.ST_NODEV), ("noexec", os.ST_NOEXEC)) if flags & bit])
flags = os.statvfs("/usr").f_flag
say("5/privilege/flags-usr", [n for n, bit in (("ro", os.ST_RDONLY), ("nosuid", os.ST_NOSUID), ("nodev", os.ST_NODEV)) if flags & bit])
os.mkdir("/tmp/a"), os.mkdir("/tmp/b"), open("/tmp/a/f", "w").close()
tried("5/read-only/can-rename-across", os.rename, "/tmp/a/f", "/tmp/b/f")     # Landlock of ABI 1 would forbid it

# The table of mounts.
mounts = [line.split() for line in open("/proc/self/mountinfo")]
unlike = [f"{m[3]} at {m[4]}" for m in mounts if not m[4].endswith(m[3]) and not m[3].startswith("/.reeve/") and m[3] != "/"]
say("9/cdk/mounts-of-other-host-paths", unlike or "none")
say("9/cdk/mounts-writable", sorted(m[4] for m in mounts if "rw" in m[5].split(",") and "rw" in m[-1].split(",") and m[3][:8] != "/.reeve/"))
say("9/cdk/mounts-without-nosuid", sorted(m[4] for m in mounts if "nosuid" not in m[5]) or "none")
say("9/cdk/mounts-without-nodev", sorted(m[4] for m in mounts if "nodev" not in m[5]) or "none")
say("9/cdk/mounts-shared", sorted(m[4] for m in mounts if any(f.startswith(("shared:", "master:")) for f in m[6:m.index("-")])) or "none")
say("9/cdk/mount-types", sorted({m[m.index("-") + 1] for m in mounts} & {"proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue", "debugfs", "tracefs", "securityfs", "bpf"}))
say("9/cdk/sockets-of-daemons", [p for p in ("/var/run/docker.sock", "/run/containerd/containerd.sock", "/run/crio/crio.sock", "/run/podman/podman.sock") if os.path.lexists(p)] or "none")
say("9/cdk/service-account", "there" if os.path.lexists("/var/run/secrets") else "none")
say("5/release-agent/sys", "there" if os.path.lexists("/sys") else "none")
say("5/release-agent/files-of-cgroups", [p for p in walk("/", ("/proc", "/usr")) if os.path.basename(p) in ("release_agent", "cgroup.procs", "tasks")] or "none")
paths = {line.rstrip("\n").split(":", 2)[2] for line in open("/proc/self/cgroup")}
say("10/8-cgroup-paths-seen", sorted(paths))
say("10/28-cgroup-paths-of-init", sorted({line.rstrip("\n").split(":", 2)[2] for line in open("/proc/1/cgroup")}))
for d in ("/", "/proc", "/dev", "/dev/shm", "/tmp", "/box", "/etc", "/.reeve"):
    say("10/30-mode-of" + (d.replace("/", "-") if d != "/" else "-root"), f"{stat.S_IMODE(os.stat(d).st_mode):04o}")
