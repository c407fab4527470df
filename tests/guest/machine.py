"""One test guest: a QEMU process (TCG, so no virtualisation is needed) and the channel to the runner in it.

    with Machine(image).boot() as m: m.run(…); m.save(snapshot)
    with Machine(image).restore(snapshot) as m: m.push(…); m.run(…)

image and snapshot are directories (see cache.py). A snapshot is the machine's state and its memory in a file of its
own, which a restored guest maps copy on write: many guests share it, and one is there within 0.2 s. A Machine is
used by one thread at a time; close() ends QEMU, as does the end of the thread that started it.
"""
import dataclasses
import io
import json
import os
import shlex
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time

MEMORY_MIB = 2048
BOOT_S, RESTORE_S = 120, 30   # deadlines; busy machines take many times the usual 6 s and 0.2 s
# q35, as the microvm machine of QEMU 7.2 hangs in one boot of ten; a named CPU, so that a snapshot needs no
# particular host.
MACHINE = ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35,memory-backend=ram",
           "-accel", "tcg,thread=multi,tb-size=256", "-cpu", "Nehalem", "-smp", "2", "-m", str(MEMORY_MIB)]
KERNEL = ("console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off nokaslr tsc=reliable no_timer_check audit=0 "
          "random.trust_cpu=on systemd.show_status=0 systemd.unified_cgroup_hierarchy=1 net.ifnames=0 rdinit=/init")


class GuestError(Exception):
    """The machine, not what was run in it, failed."""


@dataclasses.dataclass
class Result:
    status: int
    out: str
    err: str
    is_late: bool
    ms: float


class Machine:
    def __init__(self, image):
        self.image = image
        self.dir = tempfile.mkdtemp(prefix="guest-")
        self.process = self.channel = self.qmp = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def file(self, name):
        return os.path.join(self.dir, name)

    def text(self, name):
        try:
            with open(self.file(name), encoding="utf-8", errors="replace") as f:
                return f.read()[-3000:]
        except OSError:
            return ""

    # ---- The machine ----

    def start(self, memory, is_new):
        share = "on" if is_new else "off"
        command = ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", *MACHINE,
                   "-object", f"memory-backend-file,id=ram,size={MEMORY_MIB}M,mem-path={memory},share={share}",
                   "-kernel", f"{self.image}/vmlinux", "-initrd", f"{self.image}/initrd", "-append", KERNEL,
                   "-serial", f"file:{self.file('console')}", "-qmp", f"unix:{self.file('qmp')},server=on,wait=off",
                   "-device", "virtio-serial-pci", "-chardev", f"socket,id=run,path={self.file('run')},server=on,wait=off",
                   "-device", "virtserialport,chardev=run,nr=1,name=run", "-device", "virtio-rng-pci",
                   "-drive", f"if=none,id=root,format=raw,file={self.image}/root.erofs,readonly=on,cache=unsafe",
                   "-device", "virtio-blk-pci,drive=root"] + ([] if is_new else ["-incoming", "defer"])
        with open(self.file("stderr"), "wb") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        self.channel = self.connect("run")
        self.qmp = self.connect("qmp")
        self.qmp.settimeout(RESTORE_S)
        self.answers = self.qmp.makefile("r", encoding="utf-8")
        self.answers.readline()
        self.command("qmp_capabilities")
        self.command("migrate-set-capabilities", capabilities=[{"capability": "x-ignore-shared", "state": True}])

    def connect(self, name):
        end = time.monotonic() + RESTORE_S
        while True:
            s = socket.socket(socket.AF_UNIX)
            try:
                s.connect(self.file(name))
                return s
            except OSError:
                s.close()
                if time.monotonic() > end or self.process.poll() is not None:
                    raise GuestError(f"QEMU does not run: {self.text('stderr')}") from None
                time.sleep(0.005)

    def command(self, name, **arguments):
        """One command to QEMU itself."""
        try:
            self.qmp.sendall(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
            while True:
                answer = json.loads(self.answers.readline() or "{}")
                if "return" in answer:
                    return answer["return"]
                if "event" not in answer:
                    raise GuestError(f"QEMU: {name}: {answer.get('error')} {self.text('stderr')}")
        except OSError as e:
            raise GuestError(f"QEMU: {name}: {e} {self.text('stderr')}") from None

    def wait_for(self, query, is_done):
        end = time.monotonic() + RESTORE_S   # a damaged snapshot would leave QEMU waiting for ever
        while not is_done(status := self.command(query)["status"]):
            if time.monotonic() > end or status == "failed":
                raise GuestError(f"QEMU: {query} says {status}: {self.text('stderr')}")
            time.sleep(0.005)

    def boot(self, memory):
        """Starts afresh, with its memory in a new file."""
        self.start(memory, True)
        self.wait_hello(BOOT_S)
        return self

    def save(self, state):
        """Stops the machine for good; its state goes to a file, its memory is in the one that boot() was given."""
        self.command("stop")
        self.command("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
        self.command("migrate", uri=f"exec:cat >{shlex.quote(state)}")
        self.wait_for("query-migrate", lambda status: status == "completed")

    def restore(self, snapshot):
        self.start(os.path.join(snapshot, "memory"), False)
        self.command("migrate-incoming", uri="exec:cat " + shlex.quote(os.path.join(snapshot, "state")))
        self.wait_for("query-status", lambda status: status not in ("inmigrate", "prelaunch"))
        self.command("cont")
        self.put(b"N", struct.pack(">Q", time.time_ns()) + os.urandom(64))
        self.wait_hello(RESTORE_S)
        return self

    def close(self):
        for s in (self.channel, self.qmp):
            if s:
                s.close()
        if self.process and self.process.poll() is None:
            self.process.kill()
        if self.process:
            self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)

    # ---- The channel (runner.py tells of the frames) ----

    def put(self, kind, body=b""):
        self.channel.sendall(struct.pack(">I", len(body)) + kind + body)

    def receive(self, n):
        data = bytearray()
        while len(data) < n:
            part = self.channel.recv(n - len(data))
            if not part:
                raise GuestError(f"the guest is gone; its console: {self.text('console')}")
            data += part
        return bytes(data)

    def get(self):
        try:
            n, kind = struct.unpack(">Ic", self.receive(5))
            return kind, self.receive(n)
        except TimeoutError:
            raise GuestError(f"the guest does not answer; its console: {self.text('console')}") from None

    def wait_hello(self, seconds):
        self.channel.settimeout(seconds)
        if self.get()[0] != b"H":
            raise GuestError("the guest says no hello")

    def feed(self, stdin):
        while part := stdin.read(65536):
            self.put(b"I", part)
        self.put(b"I")

    def run(self, argv, stdin=b"", timeout_s=60, echo=None):
        """Runs a command as root in the runner's own service.

        argv   a list, or text for the shell
        stdin  bytes, or a binary file
        echo   function called with each piece of standard output as it comes
        """
        argv = ["/bin/sh", "-c", argv] if isinstance(argv, str) else argv
        self.channel.settimeout(timeout_s + RESTORE_S)
        self.put(b"R", json.dumps({"argv": argv, "timeout_s": timeout_s}).encode())
        source = stdin if hasattr(stdin, "read") else io.BytesIO(stdin)
        feeder = threading.Thread(target=self.feed, args=(source,), daemon=True)
        feeder.start()
        streams = {b"o": bytearray(), b"e": bytearray()}
        while True:
            kind, body = self.get()
            if kind == b"x":
                break
            streams[kind] += body
            if echo and kind == b"o":
                echo(body)
        feeder.join()
        end = json.loads(body)
        out, err = (bytes(streams[k]).decode(errors="replace") for k in (b"o", b"e"))
        return Result(end["status"], out, err + end.get("error", ""), end["timeout"], end["ms"])

    def push(self, directory, files, to):
        """Copies files (paths below a directory here) into a directory of the guest, owned by root."""
        with subprocess.Popen(["tar", "-C", directory, "--owner=0", "--group=0", "-cf", "-", "--", *files], stdout=subprocess.PIPE) as tar:
            got = self.run(["sh", "-c", 'mkdir -p "$0" && tar -C "$0" -xf -', to], stdin=tar.stdout)
        if tar.returncode or got.status:
            raise GuestError(f"copying to {to}: {got.err}")


def as_user(user, command):
    """The argv that runs text for the shell as a user: in a login session, but for plain, who is given none."""
    if user == "plain":
        return ["setpriv", "--reuid", "1001", "--regid", "1001", "--clear-groups", "--reset-env", "/bin/sh", "-c", f"cd && {command}"]
    return ["runuser", "-l", user, "-c", command]
