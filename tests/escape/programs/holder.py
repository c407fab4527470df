# One of two runs at the same time: leaves marks in all that might be shared, says so, and tells
# of what it hears of the other.
import socket

libc = ctypes.CDLL(None, use_errno=True)
marks = []      # kept from being closed


def hold(what):
    try:
        marks.append(what())
    except OSError:
        pass


def lock(path, flags, command):
    fd = os.open(path, flags)
    fcntl.fcntl(fd, command, struct.pack("hhqqi4x", fcntl.F_RDLCK if flags == os.O_RDONLY else fcntl.F_WRLCK, 0, 0, 0, 0))
    return fd


def flock(path):
    fd = os.open(path, os.O_RDONLY)
    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return fd


def lease():
    fd = os.open("/usr/bin/env", os.O_RDONLY)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    return fd


def listen(name):
    s = socket.socket(socket.AF_UNIX)
    s.bind(name)
    s.listen()
    return s


F_OFD_SETLK = 37
hold(lambda: flock("/usr/bin/env"))
hold(lambda: flock("/dev/null"))
hold(lambda: lock("/dev/zero", os.O_RDWR, F_OFD_SETLK))
hold(lambda: lock("/dev/full", os.O_RDWR, fcntl.F_SETLK))
tried("5/inode-channels/lease", lease)
hold(lambda: open("/dev/shm/mark", "w"))
hold(lambda: open("/tmp/mark", "w"))
hold(lambda: open("/box/mark", "w"))
hold(lambda: listen("\0reeve-escape-pair"))
libc.shmget(0x7ee7e, 4096, 0o1666)
libc.msgget(0x7ee7e, 0o1666)
libc.semget(0x7ee7e, 1, 0o1666)
libc.mq_open(b"/mark", 0o102, 0o666, None)

watch = libc.inotify_init1(0)
names = {libc.inotify_add_watch(watch, b"/usr/bin", 0x20): "directory", libc.inotify_add_watch(watch, b"/dev/null", 0x20): "device"}
print("held", flush=True)
seen = set()
while True:     # until the harness ends this run
    data, at = os.read(watch, 65536), 0
    while at < len(data):
        wd, _, _, size = struct.unpack_from("iIII", data, at)
        at += 16 + size
        if wd in names and wd not in seen:
            seen.add(wd)
            say(f"5/inode-channels/inotify-{names[wd]}", "seen")
