#!/usr/bin/python3
"""Runs commands in the test guest for the tests outside, which speak to it over a virtio-serial port; one at a time.

A frame is the length of its body (u32, big endian), its kind (one byte), its body.

    to the guest   R  JSON {argv, env, cwd, timeout_s}: run this
                   I  bytes of its standard input; an empty one ends it
                   N  after a restore: host time (u64, ns), then random bytes; answered with H
    from it        H  hello
                   o e  output of the command
                   x  JSON {status, timeout, ms}: it has ended
"""
import contextlib
import fcntl
import json
import os
import selectors
import signal
import struct
import subprocess
import threading
import time

PORT = "/dev/vport0p1"
RNDADDENTROPY, RNDRESEEDCRNG = 0x40085203, 0x5207
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": "/root"}


class Channel:
    def __init__(self):
        self.fd = os.open(PORT, os.O_RDWR | os.O_CLOEXEC)

    def receive(self, n):
        data = b""
        while len(data) < n:
            part = os.read(self.fd, min(n - len(data), 1 << 20))
            data += part
            if not part:
                time.sleep(0.02)   # nobody is connected to the other side
        return data

    def get(self):
        n, kind = struct.unpack(">Ic", self.receive(5))
        return kind, self.receive(n)

    def put(self, kind, body=b""):
        rest = memoryview(struct.pack(">I", len(body)) + kind + body)
        while rest:
            rest = rest[os.write(self.fd, rest[:32768]):]


def feed(channel, pipe):
    """Passes standard input on. A command that no longer reads does not keep the rest of it from being taken."""
    while body := channel.get()[1]:
        try:
            pipe.write(body)
            pipe.flush()
        except (BrokenPipeError, ValueError):
            continue
    try:
        pipe.close()
    except BrokenPipeError:
        pass


def run(channel, request):
    start = time.monotonic()
    end = start + request["timeout_s"]
    try:
        p = subprocess.Popen(request["argv"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             cwd=request.get("cwd") or "/", env={**ENVIRONMENT, **(request.get("env") or {})}, start_new_session=True)
    except OSError as e:
        while channel.get()[1]:
            pass
        return {"status": 127, "timeout": False, "ms": 0, "error": str(e)}
    # Output is sent while input still comes, or a filter would wait for us and we for it.
    feeder = threading.Thread(target=feed, args=(channel, p.stdin), daemon=True)
    feeder.start()
    streams, is_late = selectors.DefaultSelector(), False
    streams.register(p.stdout, selectors.EVENT_READ, b"o")
    streams.register(p.stderr, selectors.EVENT_READ, b"e")
    while streams.get_map():
        left = end - time.monotonic()
        if left <= 0:
            if is_late:
                break   # a process outside the session keeps the pipe open
            is_late, left = True, 2
            end = time.monotonic() + left
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
        for key, _ in streams.select(left):
            data = os.read(key.fd, 65536)
            if data:
                channel.put(key.data, data)
            else:
                streams.unregister(key.fileobj)
    feeder.join()
    return {"status": p.wait(), "timeout": is_late, "ms": round((time.monotonic() - start) * 1000)}


def renew(body):
    """After a restore the clock and the kernel's randomness are those of the snapshot."""
    time.clock_settime_ns(time.CLOCK_REALTIME, struct.unpack(">Q", body[:8])[0])
    seed = body[8:]
    with open("/dev/urandom", "wb", 0) as random:
        fcntl.ioctl(random, RNDADDENTROPY, struct.pack("ii", len(seed) * 8, len(seed)) + seed)
        fcntl.ioctl(random, RNDRESEEDCRNG)


def main():
    channel = Channel()
    channel.put(b"H")
    while True:
        kind, body = channel.get()
        if kind == b"R":
            channel.put(b"x", json.dumps(run(channel, json.loads(body))).encode())
        elif kind == b"N":
            renew(body)
            channel.put(b"H")


main()
