"""The runs of the escape checks. Each scenario gives lines {"check", "result"} about one or more runs."""
import contextlib
import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import threading
import time

import host

SCENARIOS = []


def scenario(f):
    SCENARIOS.append(f)
    return f


def line(check, result):
    return {"check": check, "result": result}


def lines_of(outcome, name):
    """The lines that a program printed; that it came to its end is a check of its own."""
    text = outcome.get("stdout", {}).get("text", "")
    found = [json.loads(t) for t in text.splitlines() if t.startswith("{")]
    end = end_of(outcome)
    if end != "completed ok":
        end += ": " + outcome.get("stderr", {}).get("text", "").strip()[-400:]
    return found + [line(f"end/{name}", end)]


def end_of(outcome):
    words = [outcome["status"], outcome["reason"]["code"]]
    if words[1] == "signal":
        words.append(outcome["exit"]["signal"])
    if words[1] == "exit_nonzero":
        words.append(str(outcome["exit"]["code"]))
    return " ".join(words)


def run_outside(probe, groups):
    """The probe without a sandbox, as an ordinary user: what the kernel alone says."""
    who = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    text = subprocess.run([probe, *groups], stdout=subprocess.PIPE, check=True, timeout=60, cwd="/", **who).stdout
    return [json.loads(t) for t in text.splitlines()]


# ---- What programs see ----

def carried(h, name, groups, **request):
    with h.listening():
        return lines_of(h.run(h.source("carry.py"), stdin=h.probe, env={"PROBE_GROUPS": groups}, **request), name)


@scenario
def probe_calls(h):
    return carried(h, "probe-calls", "calls clones numbers sockets")


@scenario
def probe_processes(h):
    return carried(h, "probe-processes", "privilege processes")


@scenario
def probe_bombs(h):
    return carried(h, "probe-bombs", "bombs", memory_mib=128)


@scenario
def programs(h):
    found = []
    with h.listening():
        for name in ("files", "proc", "facts"):
            found += lines_of(h.run(h.source("common.py", name + ".py"), env={"HOST_NAME": h.host_name, "SECRET_NAME": h.secret,
                                                                              "LOCKED_INODE": str(os.fstat(h.locked).st_ino)}), name)
        return found + lines_of(h.run(h.source("node.cjs"), "javascript"), "node")


def be_unusual():
    """The state that reeve is started in; what only root may set is left where this is not root."""
    os.umask(0)
    for name, limits in CALLER_LIMITS.items():
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(getattr(resource, "RLIMIT_" + name, RLIMIT_RTTIME), limits)
    with contextlib.suppress(OSError):
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as f:
            f.write("-500")
    ctypes.CDLL(None).personality(ADDR_NO_RANDOMIZE)
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))


RLIMIT_RTTIME, ADDR_NO_RANDOMIZE = 15, 0x40000
CALLER_LIMITS = {name: (1 << 45, 1 << 45) for name in ("AS", "CORE", "CPU", "DATA", "FSIZE", "MEMLOCK", "MSGQUEUE", "RTTIME", "SIGPENDING", "STACK")}
CALLER_LIMITS |= {"NICE": (40, 40), "RTPRIO": (99, 99), "NOFILE": (9999, 9999), "NPROC": (9999, 9999)}


@scenario
def inherited(h):
    request = {"language": "python", "source": h.source("common.py", "inherited.py"), "env": {"CALLER_LIMITS": json.dumps(CALLER_LIMITS)}}
    return lines_of(h.wait(h.popen(request, preexec_fn=be_unusual)), "inherited")


@scenario
def pair(h):
    """Two runs at the same time."""
    holder = h.popen({"language": "python", "source": h.source("common.py", "holder.py")}, args=())
    told = b""
    for text in holder.stdout:
        told += text
        if text == b"held\n":
            break
    found = lines_of(h.run(h.source("common.py", "seeker.py")), "seeker")
    time.sleep(0.2)
    host.stop(holder)
    told += holder.stdout.read()
    holder.stderr.close()
    holder.stdout.close()
    status = holder.wait()
    heard = [json.loads(t) for t in told.splitlines() if t.startswith(b"{")]
    for what in ("directory", "device"):
        check = f"5/inode-channels/inotify-{what}"
        heard += [] if check in {entry["check"] for entry in heard} else [line(check, "not seen")]
    return found + heard + [line("end/holder", "stopped" if status == 130 else str(status))]


# ---- How runs end ----

ENDS = {
    "10/4-abort": "import os; os.abort()",
    "10/16-daemon": "import os,time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n  time.sleep(99)\n os._exit(0)",
    "10/22-memory": "x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1",
    "10/32-smallest-memory": "print(1)",
    "10/38-250-mib-in-128": "x = [bytearray(b'x' * (1 << 20)) for _ in range(250)]",
    "5/oom/in-a-child": "import os\nif os.fork() == 0:\n x = bytearray(b'x' * (1 << 28))\n os._exit(0)\nos.wait()\nprint('went on')",
    "5/oom/memfd": "import os\nfd = os.memfd_create('x')\nfor _ in range(300): os.write(fd, b'x' * (1 << 20))",
    "5/oom/sysv-shm": "import ctypes\nc = ctypes.CDLL(None)\nc.shmat.restype = ctypes.c_void_p\np = c.shmat(c.shmget(1, 300 << 20, 0o1600), None, 0)\nctypes.memset(p, 1, 300 << 20)",
    "5/oom/mmap-shared": "import mmap\nm = mmap.mmap(-1, 300 << 20)\nfor i in range(0, len(m), 4096): m[i] = 1",
    "5/oom/pipes": "import os,resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\np = []\nimport fcntl\ntry:\n while True:\n  r, w = os.pipe()\n  p.append((r, w))\n"
                   "  fcntl.fcntl(w, 1031, 1 << 20)\n  os.set_blocking(w, False)\n  os.write(w, b'x' * (1 << 20))\nexcept OSError as e: print(e)",
    "5/oom/sockets": "import os,resource,socket\nresource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))\ns = []\ntry:\n while True:\n  a, b = socket.socketpair()\n  s.append((a, b))\n"
                     "  a.setblocking(False)\n  try:\n   while True: a.send(b'x' * 65536)\n  except BlockingIOError: pass\nexcept OSError as e: print(e)",
    "5/core-dumps/segv": "import ctypes; ctypes.string_at(0)",
    "5/core-dumps/child": "import os,resource\nif os.fork() == 0: os.abort()\n_, s = os.wait()\nassert not os.WCOREDUMP(s)\nassert not [n for d in ('/box', '/tmp') for n in os.listdir(d) if 'core' in n]",
    "5/signals/kill-all-and-go-on": "import os,signal\nfor s in (1, 2, 9, 15, 19):\n try: os.kill(-1, s)\n except ProcessLookupError: pass\nprint('here')",
    "5/signals/init-without-processor-time": "import os,resource,time\ntry: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0))\nexcept PermissionError: raise SystemExit\n"
                                             "until = time.monotonic() + 20\nwhile time.monotonic() < until:\n pid = os.fork()\n"
                                             " if pid == 0:\n  os.fork()\n  os._exit(0)\n os.waitpid(pid, 0)",
    "5/signals/kill-own-group": "import os; os.killpg(0, 9)",
    "5/bombs/fork": "import os\ntry:\n while True: os.fork()\nexcept BlockingIOError: pass",
}
SMALL = {"memory_mib": 128}


@scenario
def ends(h):
    return [line(check + "-end", end_of(h.run(source, memory_mib=512 if check == "5/bombs/fork" else 128))) for check, source in ENDS.items()]


STUBBORN = {
    "5/stopped/stops-itself": "import os,signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "5/stopped/stops-all": "import os,signal\nfor _ in range(9):\n if os.fork() == 0: break\nos.kill(os.getpid(), signal.SIGSTOP)",
    "5/stopped/deaf": "import signal,time\nfor s in range(1, 65):\n try: signal.signal(s, signal.SIG_IGN)\n except (OSError, ValueError): pass\ntime.sleep(60)",
    "5/stopped/forks-while-dying": "import os,time\nwhile True:\n try:\n  if os.fork() == 0: pass\n except BlockingIOError: time.sleep(.001)",
    "5/stopped/vfork-waits": "import ctypes,os\nos.spawnv(os.P_WAIT, '/bin/sleep', ['sleep', '60'])",
    "10/24-busy": "while True: pass",
    "10/41-blocked-reading": "import os; r, w = os.pipe(); os.read(r, 1)",
}


@scenario
def time_limits(h):
    found, names = [], list(STUBBORN)
    for some in (names[:4], names[4:]):       # a few at a time: they mostly wait
        started = [(check, h.popen({"language": "python", "source": STUBBORN[check], "timeout_s": 1})) for check in some]
        for check, p in started:
            o = h.wait(p)
            found.append(line(check, end_of(o) + (" in time" if o.get("timings_ms", {}).get("run", 1e9) < 6000 else " late")))
    return found


@scenario
def bystander(h):
    """A run that does its work while another takes all it can."""
    work = "import hashlib\nx = b''\nfor _ in range(300000): x = hashlib.sha256(x).digest()\nfor i in range(20):\n open(f'/tmp/{i}', 'w').write('x' * 100000)\nprint(x[:4])"
    found = []
    for name, source in (("memory", ENDS["10/22-memory"]), ("fork", "import os,time\ntry:\n while True:\n  if os.fork() == 0: time.sleep(9)\nexcept BlockingIOError: time.sleep(1)"),
                         ("disk", "for d in ('/tmp', '/box', '/dev/shm'):\n try:\n  with open(d + '/f', 'wb') as f:\n   while True: f.write(b'x' * 65536)\n except OSError: pass\nimport time; time.sleep(1)")):
        other = h.popen({"language": "python", "source": source, **SMALL})
        found.append(line(f"5/bombs/bystander-of-{name}", end_of(h.run(work, **SMALL))))
        found.append(line(f"5/bombs/{name}-beside-bystander", end_of(h.wait(other))))
    return found


@scenario
def output_flood(h):
    flood = "import os,threading\nb = b'y' * 65536\ndef pour(fd):\n while True: os.write(fd, b)\nthreading.Thread(target=pour, args=(2,), daemon=True).start()\npour(1)"
    o = h.run(flood, **SMALL)
    return [line("5/output-flood/both-streams", end_of(o)), line("5/output-flood/resident", "flat" if o["peak_kib"] < 40 << 10 else f"{o['peak_kib']} KiB")]


RESULTS = {
    "good": "open(p, 'w').write('{\"a\": 1}')",
    "symlink-out": "os.symlink('/etc/passwd', p)",
    "symlink-in": "open('/box/x', 'w').write('1'); os.symlink('x', p)",
    "symlink-to-init": "os.symlink('/proc/1/environ', p)",
    "symlink-to-stdout": "os.symlink('/proc/self/fd/1', p)",
    "fifo": "os.mkfifo(p)",
    "hard-link": "open('/box/x', 'w').write('1'); os.link('/box/x', p)",
    "directory": "os.mkdir(p)",
    "socket": "import socket; socket.socket(socket.AF_UNIX).bind(p)",
    "device": "try: os.mknod(p, 0o20666, os.makedev(1, 5))\nexcept PermissionError: open(p, 'w').write('\"refused\"')",
    "sparse": "os.truncate(os.open(p, os.O_WRONLY | os.O_CREAT), 1 << 40)",
    "large": "open(p, 'w').write('\"' + 'x' * (1 << 20) + '\"')",
    "deep": "open(p, 'w').write('[' * 65 + ']' * 65)",
    "not-json": "open(p, 'w').write('{')",
    "mode-0": "open(p, 'w').write('1'); os.chmod(p, 0)",
    "many-files-beside": "for i in range(10**6):\n try: os.close(os.open(f'/box/{i}', os.O_CREAT))\n except OSError: break\nos.unlink('/box/0'); open(p, 'w').write('1')",
    "full-disk": "try:\n with open('/tmp/f', 'wb') as f:\n  while True: f.write(b'x' * 65536)\nexcept OSError: pass\nopen(p, 'w').write('[' + '1,' * 99999 + '1]')",
    "swapped": "import threading\ndef swap():\n while True:\n  for t in ('/etc/passwd', 'x'):\n   try: os.symlink(t, p + '.new'); os.rename(p + '.new', p)\n   except OSError: pass\n"
               "threading.Thread(target=swap, daemon=True).start(); import time; time.sleep(.2)",
    "box-replaced": "os.rename(p, p) if os.path.exists(p) else None\ntry: os.rename('/box', '/tmp/box')\nexcept OSError: open(p, 'w').write('\"refused\"')",
    "open-for-append": "open(p, 'w').write('1')\nif os.fork() == 0:\n f = open(p, 'a')\n while True: f.write(' '); f.flush()\nimport time; time.sleep(.05)",
}


@scenario
def result_files(h):
    found = []
    for name, source in RESULTS.items():
        o = h.run("import os\np = os.environ['REEVE_RESULT']\n" + source, **SMALL)
        value = json.dumps(o.get("result")) if o.get("result") is not None else re.sub(r":? (line|at|char|near).*", "", o.get("result_note") or "nothing")
        found.append(line(f"5/result-file/{name}", f"{end_of(o)}: {value[:100]}".replace('"', "'")))
    return found


# ---- reeve's own process ----

@scenario
def orchestrator(h):
    hello = {"language": "python", "source": "print('hello')"}
    sleep = {"language": "python", "source": "import os,time\nprint('up', flush=True)\nfor _ in range(5):\n if os.fork() == 0: break\ntime.sleep(60)"}
    found = []
    p = h.popen(hello, preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
    found.append(line("10/18-started-with-sigchld-ignored", end_of(h.wait(p))))
    p = h.popen(hello, preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65)))
    found.append(line("10/18-started-with-signals-blocked", end_of(h.wait(p))))
    more = [os.open(path, os.O_RDONLY) for path in ("/", "/etc", "/proc/self/ns/mnt", "/dev/null")]
    p = h.popen({"language": "python", "source": h.source("common.py", "descriptors.py")}, pass_fds=more)
    found += lines_of(h.wait(p), "descriptors")
    for fd in more:
        os.close(fd)
    for name, number in (("SIGTERM", signal.SIGTERM), ("SIGINT", signal.SIGINT)):
        p = h.popen(sleep)
        timer = threading.Timer(0.5, host.stop, (p, number))
        timer.start()
        o = h.wait(p)
        timer.join()
        found.append(line(f"10/1-{name}-of-orchestrator", end_of(o)))
    return found


@scenario
def repeated(h):
    """Started often, for what goes wrong once in a hundred."""
    n = sum(end_of(h.run("print(1)", **SMALL)) == "completed ok" for _ in range(40))
    return [line("10/40-forty-starts", f"{n} completed"), line("10/17-zombies-of-orchestrator", "none" if not h.processes() else "some")]


def run_all(h, only):
    """All scenarios whose name matches, and after each the state of the host."""
    found = []
    for f in SCENARIOS:
        if re.search(only, f.__name__):
            found += f(h)
            found.append(line(f"host/after-{f.__name__.replace('_', '-')}", "; ".join(h.changes()) or "as before"))
    return found
