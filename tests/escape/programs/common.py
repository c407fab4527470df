# The beginning of every Python program here: run.py puts it in front.
import ctypes
import errno
import fcntl
import json
import os
import re
import stat
import struct
import sys
import time


def say(check, result, **more):
    print(json.dumps({"check": check, "result": result if isinstance(result, str) else ",".join(result), **more}), flush=True)


def errno_of(e):
    return errno.errorcode.get(e.errno, str(e.errno))


def tried(check, call, *args, **named):
    """Says whether a call worked. Which of several walls refused it (mode, mount, Landlock) differs between kernels:
    the error is told, and is no part of the result."""
    try:
        call(*args, **named)
    except OSError as e:
        say(check, "denied", errno=errno_of(e))
    else:
        say(check, "allowed")


def opened(path, flags=os.O_RDONLY):
    os.close(os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK))


def read(path, size=1 << 20):
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        return os.read(fd, size)
    finally:
        os.close(fd)


def walk(top, skip=()):
    """Every path below top that is no directory."""
    for d, subdirs, names in os.walk(top):
        subdirs[:] = [s for s in subdirs if os.path.join(d, s) not in skip and not os.path.islink(os.path.join(d, s))]
        for name in names:
            yield os.path.join(d, name)


def syscall(*args):
    libc = ctypes.CDLL(None, use_errno=True)
    r = libc.syscall(*(ctypes.c_long(a) if isinstance(a, int) else a for a in args))
    if r < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return r


