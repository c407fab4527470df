# The other of two runs at the same time: looks for the first one's marks.
import socket

libc = ctypes.CDLL(None, use_errno=True)


def is_locked(path, flags, command):
    fd = os.open(path, flags)
    kind = struct.unpack("hhqqi4x", fcntl.fcntl(fd, command, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)))[0]
    return kind != fcntl.F_UNLCK


def is_flocked(path):
    try:
        fcntl.flock(os.open(path, os.O_RDONLY), fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True


def is_there(name):
    with socket.socket(socket.AF_UNIX) as s:
        try:
            s.connect(name)
            return True
        except OSError:
            return False


def saw(check, is_seen):
    say(check, "seen" if is_seen else "not seen")


saw("5/inode-channels/flock-file", is_flocked("/usr/bin/env"))
saw("5/inode-channels/flock-device", is_flocked("/dev/null"))
saw("5/inode-channels/ofd-lock-device", is_locked("/dev/zero", os.O_RDWR, 36))
saw("5/inode-channels/posix-lock-device", is_locked("/dev/full", os.O_RDWR, fcntl.F_GETLK))
saw("10/26-dev-shm-of-another", os.path.exists("/dev/shm/mark"))
saw("10/53-tmp-of-another", os.path.exists("/tmp/mark"))
saw("10/53-box-of-another", os.path.exists("/box/mark"))
saw("5/abstract-unix/abstract-of-another", is_there("\0reeve-escape-pair"))
saw("5/ipc/shm-of-another", libc.shmget(0x7ee7e, 0, 0) >= 0)
saw("5/ipc/msg-of-another", libc.msgget(0x7ee7e, 0) >= 0)
saw("5/ipc/sem-of-another", libc.semget(0x7ee7e, 0, 0) >= 0)
saw("5/ipc/mq-of-another", libc.mq_open(b"/mark", 0) >= 0)
saw("5/signals/processes-of-another", [p for p in os.listdir("/proc") if p.isdigit() and int(p) not in (1, os.getpid())])
opened("/usr/bin/env")
opened("/dev/null")
