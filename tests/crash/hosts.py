#!/usr/bin/python3
"""What reeve does on a host that gives it too little, or takes it away under way.

    hosts.py --reeve BINARY [--points BINARY] [--only NAME]

BINARY of --points is of a build with -Dtest_points=true; without it one case is left out. Each case ends in a clear
refusal or an outcome, and leaves nothing: no process, cgroup, mount or lock, and a log in which every decision has
its outcome once the host is as it should be. Exit status 77 where that cannot be tried (no root). Not for a sanitized
build: the leak checker needs a process more, and a sanitized PID 1 keeps standard error to report on.
"""
import argparse
import contextlib
import ctypes
import hashlib
import json
import os
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

import common

libc = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS = 0x20000
MS_BIND, MS_REMOUNT, MS_RDONLY, MS_REC, MS_PRIVATE, MNT_DETACH = 0x1000, 0x20, 1, 0x4000, 0x40000, 2
EPERM, EAGAIN = 1, 11
SYS_MOUNT, SYS_UNSHARE, SYS_CLONE3, SYS_OPEN_TREE = 165, 272, 435, 428      # x86_64; see has_filters()


def mount(source, target, kind=None, flags=0, options=None):
    if libc.mount(*(a and a.encode() for a in (source, target, kind)), flags, options and options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"mount {target}")


def own_mounts():
    """For preexec_fn: what is mounted from now on is seen by this process and its children only."""
    if libc.unshare(CLONE_NEWNS) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    mount(None, "/", None, MS_REC | MS_PRIVATE)


def has_filters():
    return os.uname().machine == "x86_64"


def deny(error, *calls):
    """For preexec_fn: a seccomp filter under which these system calls fail with @error."""
    load, equal, ret = 0x20, 0x15, 0x06
    program = [(load, 0, 0, 0)] + [i for n in calls for i in ((equal, 0, 1, n), (ret, 0, 0, 0x50000 | error))] + [(ret, 0, 0, 0x7FFF0000)]
    code = b"".join(struct.pack("HBBI", *i) for i in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter_ = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer)))
    if libc.prctl(22, 2, filter_, 0, 0) != 0:       # PR_SET_SECCOMP, SECCOMP_MODE_FILTER: needs no no_new_privs as root
        raise OSError(ctypes.get_errno(), "seccomp")


def fill_up(directory):
    """Writes until there is no room. The file."""
    path = os.path.join(directory, "ballast")
    with open(path, "wb", buffering=0) as f:
        for size in (4096, 1):
            with contextlib.suppress(OSError):
                while f.write(b"x" * size):
                    pass
    return path


def want(name, answer, status, code=None, *texts):
    """Faults unless the answer has that exit status, that code (None: it is a problem) and says these texts."""
    said = json.dumps(answer.json) + answer.stderr
    is_right = answer.status == status and answer.json is not None and (answer.code == code if code else "title" in answer.json)
    missing = [t for t in texts if t not in said]
    return [] if is_right and not missing else [f"{name}: wanted exit {status}, {code or 'a problem'}, and {list(texts)}: {answer}"]


@contextlib.contextmanager
def small_disk(at, size):
    os.makedirs(at.state, exist_ok=True)
    mount("tmpfs", at.state, "tmpfs", 0, f"size={size},mode=0700")
    try:
        yield
    finally:
        libc.umount2(at.state.encode(), MNT_DETACH)


def conclude(name, at):
    """The host is as it should be: a run works, owes nothing and finds nothing."""
    return want(f"{name}, afterwards", at.run(), 0, "ok") + [f"{name}: left: {x}" for x in common.left(at, MOUNTED)] + \
        [f"{name}: {f}" for f in common.check_log(at)]


MOUNTED = set()


def case_full_disk(at, _opt):
    """No room for the log before the run: no run."""
    with small_disk(at, "256k"):
        MOUNTED.add(f"mount {at.state}")
        faults = want("full disk", at.run(), 0, "ok")
        ballast = fill_up(at.state)
        faults += want("full disk", at.run(), 125, None, "No space left on device", at.state)
        os.unlink(ballast)
        return faults + conclude("full disk", at)


def fill_under_way(at):
    """One run during which the disk becomes full. Its answer."""
    p = at.start("import time\nprint(1, flush=True)\ntime.sleep(0.6)\nprint(2)")
    common.wait_for(p, lambda found: "program" in found)
    time.sleep(0.2)
    ballast = fill_up(at.state)
    answer = common.finish(p, 10)
    os.unlink(ballast)
    return answer


def leave(path, left_kib):
    """Fills the disk until that much is free."""
    with open(path, "ab", buffering=0) as f:
        while (free := os.statvfs(path).f_bavail * os.statvfs(path).f_frsize // 1024 - left_kib) > 0:
            f.write(b"x" * 1024 * max(1, free // 2))
            os.fsync(f.fileno())


def case_no_room_for_the_index(at, _opt):
    """A key on a disk of small blocks that is full, or nearly: a problem, and never a death by the index's mapped file."""
    image, faults, seen = os.path.join(at.directory, "image"), [], set()
    os.makedirs(at.state, exist_ok=True)
    with open(image, "wb") as f:
        f.truncate(8 << 20)
    made = [subprocess.run(c, capture_output=True, check=False).returncode if shutil.which(c[0]) else 1
            for c in (["mkfs.ext4", "-q", "-b", "1024", "-m", "0", image], ["mount", "-o", "loop", image, at.state])]
    if any(made):
        print("no room for the index: left out, no loop device or no mkfs.ext4")
        return []
    try:
        MOUNTED.add(f"mount {at.state}")
        faults += want("no room for the index", at.run(key="first"), 0, "ok")
        ballast = os.path.join(at.state, "ballast")
        for left_kib in range(0, 66, 3):
            leave(ballast, left_kib)
            answer = at.run(key=f"k{left_kib}")
            os.unlink(ballast)
            seen.add(answer.status)
            if answer.status not in (0, 125) or not answer.json or (answer.status == 125 and answer.json.get("status") != 503):
                faults.append(f"with {left_kib} KiB left: {answer}")
        faults += [] if 125 in seen else ["no room for the index: there was always room"]
        return faults + conclude("no room for the index", at)
    finally:
        libc.umount2(at.state.encode(), MNT_DETACH)


def case_disk_full_under_way(at, _opt):
    """No room for the outcome: the answer goes out, marked, and the log is made whole by who comes next."""
    with small_disk(at, "256k"):
        MOUNTED.add(f"mount {at.state}")
        # The last block of the log may have room for one record: then the run after it meets the end of its block.
        for _ in range(8):
            answer = fill_under_way(at)
            if answer.json and answer.json.get("recorded") is False:
                break
        else:
            return [f"disk full under way: always recorded: {answer}"]
        faults = want("disk full under way", answer, 0, "ok")
        if answer.json["stdout"]["text"] != "1\n2\n" or len(os.listdir(os.path.join(at.state, "audit/live"))) != 1:
            faults.append(f"disk full under way: {answer}")
        faults += conclude("disk full under way", at)
        records = [json.loads(r) for r in at.records()]
        i = next((i for i, r in enumerate(records) if r["kind"] == "gap"), None)
        digest = hashlib.sha256(answer.text.rstrip(b"\n")).hexdigest()
        if i is None or records[i]["cause"] != "outcome_not_written" or records[i]["run_id"] != answer.json["run_id"] or \
                records[i + 1]["kind"] != "outcome" or records[i + 1]["outcome_sha256"] != digest or not records[i + 1]["recovered"]:
            faults.append(f"disk full under way: no gap with the outcome behind it: {records[-6:]}")
        return faults


def case_read_only_state(at, _opt):
    with small_disk(at, "1m"):
        MOUNTED.add(f"mount {at.state}")
        faults = want("read-only state", at.run(), 0, "ok")
        mount(None, at.state, None, MS_REMOUNT | MS_RDONLY)
        faults += want("read-only state", at.run(), 125, None, "Read-only file system", at.state)
        mount(None, at.state, None, MS_REMOUNT)
        return faults + conclude("read-only state", at)


def case_segment_of_another(at, _opt):
    faults = want("segment of another", at.run(), 0, "ok")
    segment = os.path.join(at.state, "audit", "0" * 20 + ".jsonl")
    owner = os.stat(segment)
    os.chown(segment, 0, 0)
    faults += want("segment of another", at.run(), 125, None, "Permission denied", segment)
    os.chown(segment, owner.st_uid, owner.st_gid)
    return faults + conclude("segment of another", at)


def case_state_of_another(at, _opt):
    """What is root's and holds files is not given away, whatever a slip of the configuration says."""
    os.mkdir(at.state, 0o755)
    other = os.path.join(at.state, "other")
    with open(other, "w", encoding="ascii"):
        pass
    faults = want("a state directory in use", at.run(), 125, None, "not empty", at.state)
    if os.stat(at.state).st_uid != 0:
        faults.append("a state directory in use: it was given away")
    os.unlink(other)
    os.mkdir(os.path.join(at.state, "lost+found"))      # of a file system that was made for it
    return faults + want("a new file system", at.run(), 0, "ok") + conclude("state of another", at)


def case_stopped(at, _opt):
    """A reeve that is stopped keeps no time: the spawner ends the run, if later."""
    at.configure(phases={"start": "1s"})
    source = "import time\nwhile True: time.sleep(.05); print(time.time(), flush=True)"
    p = at.start(source, timeout_s=1)
    time.sleep(.5)
    os.kill(p.pid, signal.SIGSTOP)
    stopped = time.time()
    time.sleep(4.5)
    os.kill(p.pid, signal.SIGCONT)
    answer = common.finish(p, 10)
    at.configure()
    lines = ((answer.json or {}).get("stdout") or {}).get("text", "").split()
    faults = [] if answer.code == "timeout" and answer.status == 124 else [f"stopped: {answer}"]
    if not lines or float(lines[-1]) > stopped + 3.5:
        faults.append(f"stopped: the program ran on: {answer}")
    return faults + conclude("stopped", at)


def case_early_interrupt(at, _opt):
    """A Ctrl-C goes to the spawner too, and may reach it before it has settled."""
    faults = []
    for i in range(40):
        p = at.start("print(1)")
        children = ""
        while not children and p.poll() is None:
            with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
                children = f.read()
        if children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(children.split()[0]), signal.SIGINT)
        answer = common.finish(p, 10)
        if answer.code != "ok":
            faults.append(f"early interrupt {i}: {answer}")
    return faults + conclude("early interrupt", at)


def case_descriptors(at, _opt):
    """With few descriptors: each number of them is enough, or a refusal; none hangs. 4096 is what a run is given."""
    faults, enough = [], None
    for n in (*range(4, 80), 4095, 4096):
        answer = at.run(preexec_fn=lambda n=n: resource.setrlimit(resource.RLIMIT_NOFILE, (n, n)), within_s=5)
        if answer.code == "ok":
            enough = enough or n
        elif answer.status not in (125, 126) or not answer.stderr:
            faults.append(f"{n} descriptors: {answer}")
        elif enough:
            faults.append(f"{n} descriptors, though {enough} are enough: {answer}")
    print(f"descriptors: {enough} are enough")
    return faults + ([] if enough else ["descriptors: never enough"]) + conclude("descriptors", at)


def case_no_more_processes(at, _opt):
    """A limit of processes around reeve: the spawner, PID 1 or the program cannot be made."""
    directory = f"/sys/fs/cgroup/pids/crash-{os.getpid()}"
    if not os.path.isdir("/sys/fs/cgroup/pids"):
        print("no more processes: left out, no v1 pids hierarchy")
        return []
    os.mkdir(directory)

    def join():
        with open(directory + "/tasks", "w", encoding="ascii") as f:
            f.write("0")
    try:
        faults = []
        for n, code, texts in ((1, None, ("cannot start the spawner", "Resource temporarily unavailable")), (2, "backend_failed", ("no more processes", "EAGAIN")),
                               (3, "backend_failed", ("the interpreter could not be executed", "EAGAIN"))):
            with open(directory + "/pids.max", "w", encoding="ascii") as f:
                f.write(str(n))
            answer = at.run(preexec_fn=join, within_s=5)
            faults += want(f"at most {n} processes", answer, 125, code, *texts)
            if code and (answer.json or {}).get("started") != "no":
                faults.append(f"at most {n} processes: started: {answer}")
        return faults + conclude("no more processes", at)
    finally:
        os.rmdir(directory)


def case_read_only_cgroups(at, _opt):
    """The place of cgroups cannot be written."""
    point = next(p for p in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup") if os.path.isdir(p))

    def lock():
        own_mounts()
        mount(None, point, None, MS_REMOUNT | MS_BIND | MS_RDONLY)
    return want("read-only cgroups", at.run(preexec_fn=lock), 126, "backend_denied", point) + conclude("read-only cgroups", at)


def case_read_only_limit(at, opt):
    """One limit's file cannot be written: a program is not run with less."""
    if not opt.points or not os.path.isdir("/sys/fs/cgroup/memory"):
        print("read-only limit: left out, it needs --points and cgroups v1")
        return []
    faults = []
    for controller, file in (("memory", "memory.limit_in_bytes"), ("pids", "pids.max"), ("memory", "memory.memsw.limit_in_bytes")):
        paused = common.Place(opt.points, at.directory)
        p = paused.start("print(1)", env={"REEVE_TEST_PAUSE": "before-clone:800"}, preexec_fn=own_mounts)
        found = common.wait_for(p, lambda t: "spawner" in t and common.name_of(t["spawner"]) == "@before-clone")
        path = found and find_cgroup(found["spawner"], controller, file)
        if not path:
            return faults + [f"read-only limit {file}: {common.finish(p, 5)}"]
        subprocess.run(["nsenter", "-t", str(found["spawner"]), "-m", "sh", "-ec", 'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"',
                        "sh", path], check=True)
        faults += want(f"read-only limit {file}", common.finish(p, 5), 126, "backend_denied", file, "Read-only file system")
    return faults + conclude("read-only limit", at)


def find_cgroup(spawner, controller, file):
    for d, _, names in os.walk(os.path.join("/sys/fs/cgroup", controller)):
        if os.path.basename(d).startswith(f"reeve-{spawner}.") and d.endswith("-1") and file in names:
            return os.path.join(d, file)
    return None


def case_no_namespaces(at, _opt):
    """A seccomp profile around reeve refuses what makes namespaces and mounts."""
    if not has_filters():
        print("no namespaces: left out, the numbers of system calls are those of x86_64")
        return []
    faults = []
    for name, error, call, texts in (
            ("clone3 not permitted", EPERM, SYS_CLONE3, ("seccomp profile", "EPERM")),
            ("clone3 out of processes", EAGAIN, SYS_CLONE3, ("no more processes", "EAGAIN")),
            ("unshare not permitted", EPERM, SYS_UNSHARE, ("unshare the cgroup namespace", "EPERM")),
            ("mount not permitted", EPERM, SYS_MOUNT, ("make mounts private", "EPERM")),
            ("open_tree not permitted", EPERM, SYS_OPEN_TREE, ("open /usr", "EPERM"))):
        answer = at.run(preexec_fn=lambda e=error, c=call: deny(e, c), within_s=5)
        faults += want(name, answer, 125, "backend_failed", *texts)
        if answer.json and answer.json.get("started") != "no":
            faults.append(f"{name}: started: {answer}")
    return faults + conclude("no namespaces", at)


@contextlib.contextmanager
def freezer():
    """A v1 freezer cgroup: what is in it while it is frozen does not even die of SIGKILL."""
    directory = f"/sys/fs/cgroup/freezer/crash-{os.getpid()}"

    def write(file, text):
        with open(os.path.join(directory, file), "w", encoding="ascii") as f:
            f.write(str(text))

    def state(text):
        write("freezer.state", text)
        for _ in range(200):
            with open(os.path.join(directory, "freezer.state"), encoding="ascii") as f:
                if f.read().strip() == text:
                    return
            time.sleep(0.01)
        raise TimeoutError(f"freezer: not {text}")
    os.mkdir(directory)
    try:
        yield write, state
    finally:
        state("THAWED")
        for _ in range(200):
            try:
                os.rmdir(directory)
                break
            except OSError:
                time.sleep(0.01)


def case_quarantine(at, _opt):
    """A run that cannot be torn down: the answer comes, reeve ends, what is left is listed, and removed later."""
    if not os.path.isdir("/sys/fs/cgroup/freezer"):
        print("quarantine: left out, no v1 freezer hierarchy")
        return []
    teardown_s, faults = 1, []
    at.configure(phases={"teardown": f"{teardown_s}s"})
    with freezer() as (write, state):
        p = at.start("import time\nprint(1, flush=True)\ntime.sleep(60)", timeout_s=1)
        began = time.monotonic()
        found = common.wait_for(p, lambda t: "program" in t)
        time.sleep(0.3)
        for role in ("init", "program"):
            write("tasks", found[role])
        state("FROZEN")
        answer = common.finish(p, 15)
        took = time.monotonic() - began
        print(f"quarantine: ended after {took:.2f} s, {answer.code}")
        faults += want("quarantine", answer, answer.status or 1, answer.code or "an outcome")
        if answer.json and (answer.json["backend"]["teardown"] != "incomplete" or answer.json["stdout"]["text"] != "1\n" or answer.status == 0):
            faults.append(f"quarantine: {answer}")
        if took > 1 + teardown_s + 3:
            faults.append(f"quarantine: reeve ended only after {took:.2f} s")
        if f"process {found['init']}" not in " ".join(common.left_processes(at)):
            faults.append("quarantine: PID 1 is not there any more, so this tried nothing")
        faults += want("run beside a quarantine", at.run(), 0, "ok")
        doctor = subprocess.run([at.reeve, "doctor", "--config", at.config], capture_output=True, text=True, check=False, timeout=60).stdout
        if f"reeve-{found['spawner']}." not in doctor:
            faults.append(f"quarantine: doctor does not list it: {doctor}")
    time.sleep(0.2)
    return faults + conclude("quarantine", at)


CASES = {name[5:]: function for name, function in sorted(globals().items()) if name.startswith("case_")}


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--reeve", required=True)
    a.add_argument("--points", metavar="BINARY")
    a.add_argument("--only", choices=sorted(CASES))
    opt = a.parse_args()
    if os.geteuid() != 0:
        print("needs root")
        return 77
    faults = []
    for name, case in CASES.items():
        if opt.only in (None, name):
            began = time.monotonic()
            MOUNTED.clear()
            with common.place(opt.reeve) as at:
                bad = case(at, opt)
            print(f"{'FAULT' if bad else 'ok':<5} {name} ({time.monotonic() - began:.1f} s)", flush=True)
            faults += bad
    print("\n".join(f"FAULT {f}" for f in faults) if faults else "hosts: as it should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
