"""The host's side of the escape checks: starts runs, and knows what must be the same after them."""
import base64
import contextlib
import ctypes
import fcntl
import json
import os
import re
import secrets
import signal
import socket
import stat
import struct
import subprocess
import time
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
DEVICES = ("null", "zero", "full", "random", "urandom")
# Settings of the whole host that a program would like to change.
SETTINGS = ("kernel/core_pattern", "kernel/hostname", "kernel/domainname", "kernel/modprobe", "kernel/panic", "kernel/sysrq", "kernel/shmmax", "kernel/msgmni",
            "vm/overcommit_memory", "vm/drop_caches", "vm/swappiness", "user/max_user_namespaces", "fs/suid_dumpable", "fs/aio-nr", "fs/mqueue/msg_max",
            "net/ipv4/ip_forward", "net/ipv4/ping_group_range", "kernel/unprivileged_bpf_disabled")
CLONE_NEWUTS, F_OFD_SETLK = 0x4000000, 37


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def give_host_a_name():
    """A name that stands nowhere by chance, in a namespace of this process's own; without privilege the real one, if it is not as short as a word."""
    name = "escape-" + secrets.token_hex(6)
    if os.geteuid() == 0 and ctypes.CDLL(None).unshare(CLONE_NEWUTS) == 0:
        socket.sethostname(name)
    return socket.gethostname() if len(socket.gethostname()) > 6 else name


class Harness:
    def __init__(self, reeve, probe, directory):
        self.reeve, self.directory = reeve, directory
        first = 2200000 + os.getpid() % 60 * 1000      # not of the default range: others may be using that
        self.uids = (first, first + 999) if os.geteuid() == 0 else None
        self.config = os.path.join(directory, "reeve.yaml")
        config = {"state_dir": os.path.join(directory, "state"), "tenants": {"local": {}}}
        if self.uids:
            config["uid_range"] = f"{self.uids[0]}-{self.uids[1]}"
        with open(self.config, "w", encoding="utf-8") as f:
            json.dump(config, f)
        self.cwd = os.path.join(directory, "cwd")     # where a core file of reeve's caller would fall
        os.mkdir(self.cwd)
        os.chmod(self.cwd, 0o777)
        with open(probe, "rb") as f:
            self.probe = base64.b64encode(zlib.compress(f.read(), 9)).decode()
        self.locked = os.open(self.config, os.O_RDWR | os.O_CLOEXEC)
        fcntl.fcntl(self.locked, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_RDLCK, 0, 0, 0, 0))
        self.owners = set()      # process ids by which the cgroups of this harness's runs are named
        self.host_name = give_host_a_name()
        self.secret = "ESCAPE_" + secrets.token_hex(8)
        self.environment = {**os.environ, self.secret: "x"}
        self.before = self.state()

    # ---- Runs ----

    @staticmethod
    def source(*names):
        text = ""
        for name in names:
            with open(os.path.join(HERE, "programs", name), encoding="utf-8") as f:
                text += f.read()
        return text

    def popen(self, request, args=("--json",), **named):
        """Begins a run; the request on standard input, reeve's own environment with the secret."""
        question = open(os.path.join(self.directory, "request-" + secrets.token_hex(4)), "w+b")
        question.write(json.dumps(request).encode())
        question.seek(0)
        os.unlink(question.name)
        with question:
            p = subprocess.Popen([self.reeve, "run", "--config", self.config, *args, "--request", "-"], stdin=question, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env=self.environment, cwd=self.cwd, **named)
        # The spawner, by whose number the run's cgroups are named; it is there until the run has ended.
        while not (children := read(f"/proc/{p.pid}/task/{p.pid}/children").split()) and p.poll() is None:
            time.sleep(0.001)
        self.owners.update(children, [str(p.pid)])
        return p

    def wait(self, p):
        """The outcome of a run begun by popen(); with what it took: wall_ms, peak_kib."""
        began = time.monotonic()
        text = p.stdout.read()
        trouble = p.stderr.read()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        p.stdout.close()
        p.stderr.close()
        try:
            outcome = json.loads(text)
        except ValueError:
            outcome = {"status": "no outcome", "reason": {"code": str(p.returncode)}, "stderr": {"text": trouble.decode(errors="replace")[-300:]}}
        return {**outcome, "wall_ms": (time.monotonic() - began) * 1000, "peak_kib": usage.ru_maxrss}

    def run(self, source, language="python", **request):
        return self.wait(self.popen({"language": language, "source": source, "timeout_s": 60, **request}))

    # ---- The host ----

    def processes(self):
        """Processes that this harness's runs would leave: by their ids, or by their command line."""
        found = set()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            text, command = read(f"/proc/{pid}/status"), read(f"/proc/{pid}/cmdline")
            uid = re.search(r"^Uid:\t(\d+)", text, re.M)
            if int(pid) != os.getpid() and (self.directory in command or (uid and self.uids and self.uids[0] <= int(uid[1]) <= self.uids[1])):
                found.add(f"process {text.split(None, 2)[1] if text else pid}")
        return found

    def cgroups(self):
        found = set()
        for d, subdirs, _ in os.walk("/sys/fs/cgroup"):
            for name in subdirs:
                owner = re.match(r"reeve-(\d+)\.\d+", name)
                if owner and owner[1] in self.owners:
                    found.add(f"cgroup {os.path.join(d, name)}")
        return found

    def state(self):
        """What must be the same after a run as before it, as lines of text. Others may work on the machine meanwhile: of what anybody makes, only
        what has a name that the runs here give counts."""
        found = self.processes() | self.cgroups() | {"core file" for _ in os.listdir(self.cwd)}
        points = [line.split()[4] for line in read("/proc/self/mountinfo").splitlines()]
        found |= {f"mount {p}" for p in points if not p.startswith(("/tmp/", "/var/", "/run/", "/mnt/", "/home/", "/root/"))}
        found |= {f"sysvipc {kind}: {line.split()[0]}" for kind in ("shm", "msg", "sem") for line in read(f"/proc/sysvipc/{kind}").splitlines()
                  if line.split()[0] in ("1", str(0x7ee7e))}
        found |= {f"{d}/{name}" for d in ("/dev/shm", "/tmp") for name in ("mark", "full", "own", "one-more", "probe", "f") if os.path.lexists(f"{d}/{name}")}
        for name in DEVICES:
            st = os.stat("/dev/" + name)
            found.add(f"/dev/{name}: {stat.filemode(st.st_mode)} {st.st_uid} {st.st_gid} {st.st_rdev} links {st.st_nlink} flags {os.listxattr('/dev/' + name)}")
        return found | {f"{name}: {read('/proc/sys/' + name).strip()}" for name in SETTINGS}

    def changes(self):
        """What differs from the state at first. A change that goes away by itself was somebody else's."""
        changed = self.before ^ self.state()
        for _ in range(20):
            if not changed:
                break
            time.sleep(0.1)
            changed &= self.before ^ self.state()
        return sorted(changed)

    @contextlib.contextmanager
    def listening(self):
        """Sockets of the host's that a program tries to reach."""
        path = "/tmp/reeve-escape-test.socket"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as two:
            one.bind(path)
            os.chmod(path, 0o777)
            two.bind("\0reeve-escape-test")
            one.listen()
            two.listen()
            try:
                yield
            finally:
                os.unlink(path)


def stop(p, number=signal.SIGINT):
    """Ends a run that was begun with popen()."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(p.pid, number)
