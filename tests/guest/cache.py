"""The image and the snapshot of the test guest, made when they are not there.

They are in $XDG_CACHE_HOME/reeve/guest, or in build-check/guest where no such variable is set, in a directory named
by a digest of what makes them: these scripts, the packages, the releases of this machine and of QEMU. A lock is held
while one is made; what was not used for a week goes when a new one is made.
"""
import contextlib
import fcntl
import glob
import hashlib
import os
import shutil
import subprocess
import sys
import time

import machine

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
IMAGE_INPUTS = ("image.sh", "init.c", "pack.py", "runner.py")
SNAPSHOT_INPUTS = ("machine.py", "cache.py")
TRIES = 3
UNUSED_S = 7 * 86400

# Beside what tools/dev/setup installs: a system with logins and user managers, an OCI runtime, tools to look around.
# There is no udev and no network in the guest.
PACKAGES = ("systemd systemd-sysv dbus dbus-user-session libpam-systemd nodejs runc nftables iproute2 procps kmod "
            "libcap2-bin uidmap strace ca-certificates").split()

# What is slow the first time, and what each test would otherwise wait for.
WARM = """set -e
loginctl enable-linger tester
for user in root tester; do
        runuser -l $user -c 'python3 -c "import json, subprocess, tempfile, argparse"; node -e 0; tar --version >/dev/null'
done
runuser -l tester -c 'systemd-run --user --scope -q -p Delegate=yes true'
modprobe -a nft_tproxy nft_socket nft_redir nft_ct nft_reject_inet veth tun
[ "$(systemctl is-system-running --wait)" = running ]
sync
"""


def directory():
    base = os.environ.get("XDG_CACHE_HOME")
    return os.path.join(base, "reeve", "guest") if base else os.path.join(TOP, "build-check", "guest")


def packages():
    """Those that tools/dev/setup names, asked of it, and our own."""
    listed = subprocess.run([os.path.join(TOP, "tools/dev/setup"), "--list", "demo"], capture_output=True, text=True, check=True)
    return sorted(set(listed.stdout.split()) | set(PACKAGES))


def digest(names, *more):
    """Names what is made from these scripts and texts."""
    sum_ = hashlib.sha256("\n".join(more).encode())
    for name in names:
        with open(os.path.join(HERE, name), "rb") as f:
            sum_.update(hashlib.sha256(f.read()).digest())
    return sum_.hexdigest()[:16]


def log(text):
    print(text, file=sys.stderr, flush=True)


def make_image(to):
    began = time.monotonic()
    new = to + ".new"
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
    subprocess.run([os.path.join(HERE, "image.sh"), new, *packages()], check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)
    os.rename(new, to)
    log(f"guest: image made in {time.monotonic() - began:.0f} s")


def make_snapshot(image, to):
    began = time.monotonic()
    for old in glob.glob(os.path.join(os.path.dirname(to), "snapshot-*")):
        shutil.rmtree(old, ignore_errors=True)
    new = to + ".new"
    shutil.rmtree(new, ignore_errors=True)
    os.makedirs(new)
    with machine.Machine(image) as m:
        m.boot(os.path.join(new, "memory"))
        booted = time.monotonic()
        warm = m.run(WARM, timeout_s=300)
        if warm.status:
            raise machine.GuestError(f"warm-up: {warm}")
        m.save(os.path.join(new, "state"))
    os.rename(new, to)
    log(f"guest: booted in {booted - began:.1f} s, warmed up and saved in {time.monotonic() - booted:.1f} s")


def drop_unused(base, but):
    for name in os.listdir(base):
        path = os.path.join(base, name)
        if os.path.isdir(path) and path != but and time.time() - os.stat(path).st_mtime > UNUSED_S:
            shutil.rmtree(path, ignore_errors=True)


def prepare():
    """(image, snapshot): directories with vmlinux, initrd, root.erofs and with state, memory."""
    base = directory()
    with open("/etc/os-release", encoding="utf-8") as f:
        release = f.read()
    qemu = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True).stdout
    home = os.path.join(base, digest(IMAGE_INPUTS, release, *packages()))
    image, snapshot = os.path.join(home, "image"), os.path.join(home, "snapshot-" + digest(SNAPSHOT_INPUTS, qemu))
    os.makedirs(home, exist_ok=True)
    with open(os.path.join(base, "lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.utime(home)
        if not os.path.isdir(image):
            drop_unused(base, home)
            make_image(image)
        for left in reversed(range(TRIES)):
            if os.path.isdir(snapshot):
                break
            try:
                make_snapshot(image, snapshot)
            except machine.GuestError as e:
                log(f"guest: {e}")
                if not left:
                    raise
    return image, snapshot


@contextlib.contextmanager
def guest():
    """A running guest, fresh from the snapshot."""
    image, snapshot = prepare()
    with machine.Machine(image) as m:
        yield m.restore(snapshot)
