#!/usr/bin/python3
"""Runs many programs at once and shows that nothing of a run is left after its answer.

    soak.py --reeve BINARY [--runs N] [-j N] [--slow F] [--flat]

All runs share one state directory. Afterwards: no process, mount, network namespace, cgroup or file more than
before, and a log whose sequence has no gap, with a decision and an outcome for every run. Then two bounds of the
orchestrator itself: an answer within 200 ms of the time limit whatever the program does (best of three, as the
machine may be busy), and at most 40 MiB resident while a program floods both streams. --slow is for an emulated
machine: how many times slower it is than others.

With --flat instead: N runs one after another, then N of them -j at a time, and what the host holds and what a run
costs is printed at every tenth of the way; neither may grow.
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

LATE_MS = 200
RESIDENT_KIB = 40 << 10
LANGUAGE, SOURCE = "language", "source"

# name, request, exit status, reason code
PROGRAMS = [
    ("hello", {LANGUAGE: "python", SOURCE: "print('hello')"}, 0, "ok"),
    ("javascript", {LANGUAGE: "javascript", SOURCE: "console.log('hello')"}, 0, "ok"),
    ("exit code", {LANGUAGE: "python", SOURCE: "raise SystemExit(7)"}, 7, "exit_nonzero"),
    ("signal", {LANGUAGE: "python", SOURCE: "import os; os.kill(os.getpid(), 15)"}, 143, "signal"),
    ("daemon", {LANGUAGE: "python", SOURCE: "import os,time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(99)\n os._exit(0)"}, 0, "ok"),
    ("many children", {LANGUAGE: "python", SOURCE: "import os,time\nfor i in range(40):\n if os.fork() == 0: time.sleep(99)"}, 0, "ok"),
    ("files", {LANGUAGE: "python", SOURCE: "for i in range(200): open(f'/tmp/{i}', 'w').write('x' * 999)"}, 0, "ok"),
    ("output", {LANGUAGE: "python", SOURCE: "import sys\nsys.stdout.write('x' * 2000000); sys.stderr.write('y' * 200000)"}, 0, "ok"),
    ("memory", {LANGUAGE: "python", SOURCE: "x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1", "memory_mib": 128}, 137, "memory_limit"),
    ("timeout", {LANGUAGE: "python", SOURCE: "while True: pass", "timeout_s": 1}, 124, "timeout"),
    ("rejected", {LANGUAGE: "python", SOURCE: ""}, 2, None),
]

# What a program may do to be late.
STUBBORN = [
    ("busy", "while True: pass"),
    ("deaf", "import signal,time\nfor s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)\ntime.sleep(60)"),
    ("stopped", "import os,signal\nos.kill(os.getpid(), signal.SIGSTOP)"),
    ("forking", "import os,time\nfor i in range(200):\n  if os.fork() == 0:\n    time.sleep(60)\ntime.sleep(60)"),
    ("printing", "import sys\nwhile True: sys.stdout.write('x' * 4096 + chr(10)); __import__('time').sleep(.001)"),
]

FLOOD = """import os, threading
b = b'y' * 65536
def pour(fd):
    while True: os.write(fd, b)
threading.Thread(target=pour, args=(2,), daemon=True).start()
pour(1)
"""


def run(opt, config, request):
    """One run: (exit status, answer, milliseconds, peak KiB of reeve and what it waited for)."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as question:
        question.write(json.dumps(request).encode())
        question.seek(0)
        p = subprocess.Popen([opt.reeve, "run", "--config", config, "--json", "--request", "-"],
                             stdin=question, stdout=answer, stderr=subprocess.PIPE)
        stderr = p.stderr.read()
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
        p.stderr.close()
        took = (time.monotonic() - began) * 1000
        answer.seek(0)
        try:
            return p.returncode, json.load(answer), took, usage.ru_maxrss
        except ValueError:
            return p.returncode, {"note": stderr[-300:].decode(errors="replace")}, took, usage.ru_maxrss


def processes(uids):
    """Processes of reeve's own programs, and those with a user id of the range that only this soak uses."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
                text = f.read()
        except OSError:
            continue
        name, uid = re.search(r"^Name:\t(.*)$", text, re.M)[1], int(re.search(r"^Uid:\t(\d+)", text, re.M)[1])
        if name.startswith("reeve") or uids[0] <= uid <= uids[1]:
            found.add(f"process {pid} {name} uid {uid}")
    return found


def namespaces():
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            found.add("network namespace " + os.readlink(f"/proc/{pid}/ns/net"))
        except OSError:
            continue
    return found


def cgroups():
    found = set()
    for d, subdirs, _ in os.walk("/sys/fs/cgroup"):
        found |= {f"cgroup {os.path.join(d, s)}" for s in subdirs if re.match(r"reeve-\d+\.\d+", s)}
    return found


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return {f"mount {line.split()[4]}" for line in f}


def files(state):
    found = {f"file /tmp/{n}" for n in os.listdir("/tmp") if "reeve" in n}
    for d, _, names in os.walk(state):
        below = os.path.relpath(d, state)
        found |= {f"file {os.path.join(d, n)}" for n in names if below.split("/")[0] not in ("audit", "keys", "bundles") or below == "audit/live"}
    return found


def everything(state, uids):
    return processes(uids) | namespaces() | cgroups() | mounts() | files(state)


def check_log(state, n_runs, n_rejected):
    """Reads the whole log: sequence, chain, and how many records of which kind."""
    kinds, faults, seq, prev = {}, [], None, "0" * 64
    audit = os.path.join(state, "audit")
    if not os.path.isdir(audit):
        return ["log: there is none"]
    for name in sorted(n for n in os.listdir(audit) if n.endswith(".jsonl")):
        with open(os.path.join(audit, name), "rb") as f:
            for line in f:
                record = json.loads(line)
                kinds[record["kind"]] = kinds.get(record["kind"], 0) + 1
                if seq is not None and record["seq"] != seq + 1:
                    faults.append(f"log: {record['seq']} follows {seq}")
                if record["prev"] != prev:
                    faults.append(f"log: record {record['seq']} does not name the line before it")
                seq, prev = record["seq"], hashlib.sha256(line.rstrip(b"\n")).hexdigest()
    for kind, n in (("decision", n_runs), ("outcome", n_runs), ("rejected", n_rejected)):
        if kinds.get(kind, 0) != n:
            faults.append(f"log: {kinds.get(kind, 0)} records of kind {kind} for {n} runs")
    print("log: " + ", ".join(f"{n} {k}" for k, n in sorted(kinds.items())))
    return faults[:20]


def soak(opt, config, state, uids):
    jobs = [PROGRAMS[i % len(PROGRAMS)] for i in range(opt.runs)]
    before = everything(state, uids)
    faults, times = [], []
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(opt.j) as pool:
        for (name, _, status, code), got in zip(jobs, pool.map(lambda j: run(opt, config, j[1]), jobs)):
            times.append(got[2])
            have = got[1].get("reason", {}).get("code")
            if got[0] != status or have != code:
                faults.append(f"{name}: exit {got[0]} code {have}, want {status} {code}: {str(got[1])[:200]}")
            elif code and got[1]["backend"]["teardown"] != "complete":
                faults.append(f"{name}: teardown {got[1]['backend']['teardown']}")
    took = time.monotonic() - began
    # What is under way elsewhere on the machine may come and go: only what stays is left over.
    left = everything(state, uids) - before
    for _ in range(20):
        if not left:
            break
        time.sleep(0.25)
        left &= everything(state, uids)
    times.sort()
    print(f"{opt.runs} runs, {opt.j} at a time: {took:.1f} s, {opt.runs / took:.0f} a second; "
          f"a run {times[len(times) // 2]:.0f} ms (median), {times[len(times) * 99 // 100]:.0f} ms (p99)")
    print(f"left over: {len(left)}")
    rejected = sum(1 for j in jobs if j[3] is None)
    return faults[:20] + sorted(f"left over: {x}" for x in left)[:20] + check_log(state, opt.runs - rejected, rejected)


def host_holds():
    """What the kernel holds: open files, cgroups of all hierarchies together, mounts, processes that nobody reaped."""
    with open("/proc/sys/fs/file-nr", encoding="ascii") as f:
        files_open = int(f.read().split()[0])
    with open("/proc/cgroups", encoding="ascii") as f:
        groups = sum(int(line.split()[2]) for line in f if not line.startswith("#"))
    zombies = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                zombies += f.read().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            continue
    return {"files": files_open, "cgroups": groups, "mounts": len(mounts()), "zombies": zombies}


def memory(opt, config):
    """Most resident KiB of reeve and of its spawner, while a program of theirs runs. (What wait4() tells counts the caller's, too.)"""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as program:
        program.write("print(1, flush=True)\nimport time\ntime.sleep(60)")
        program.flush()
        with subprocess.Popen([opt.reeve, "run", "--config", config, program.name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
            p.stdout.readline()
            with open(f"/proc/{p.pid}/task/{p.pid}/children", encoding="ascii") as f:
                pids = [str(p.pid), f.read().split()[0]]
            peaks = []
            for pid in pids:
                with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
                    peaks.append(int(re.search(r"^VmHWM:\s+(\d+)", f.read(), re.M)[1]))
            p.terminate()
    return {"reeve KiB": peaks[0], "spawner KiB": peaks[1]}


def flat_at(opt, config, state, uids, j):
    """N runs, j at a time. The host may be busy with others' work: what grows is more at every one of the last tenths than at any of the first."""
    job = {LANGUAGE: "python", SOURCE: "print('hello')"}
    before, faults, tenths, part = everything(state, uids), [], [], max(opt.runs // 10, 1)
    with concurrent.futures.ThreadPoolExecutor(j) as pool:
        for tenth in range(10):
            began = time.monotonic()
            got = list(pool.map(lambda _: run(opt, config, job), range(part)))
            faults += [f"flat: exit {g[0]}: {str(g[1])[:200]}" for g in got if g[0] != 0]
            took = time.monotonic() - began
            times = sorted(g[2] for g in got)
            time.sleep(0.2)
            tenths.append({**host_holds(), **memory(opt, config), "ms": round(times[len(times) // 2], 1), "a second": round(part / took)})
            print(f"{j} at a time, {(tenth + 1) * part}: " + ", ".join(f"{k} {v}" for k, v in tenths[-1].items()), flush=True)
    for what, slack in (("files", 100), ("cgroups", 20), ("mounts", 5), ("zombies", 5), ("reeve KiB", 256), ("spawner KiB", 256)):
        first, last = max(t[what] for t in tenths[:3]), min(t[what] for t in tenths[-3:])
        if last > first + slack:
            faults.append(f"flat: {what} went from {first} to {last} over {opt.runs} runs, {j} at a time")
    time.sleep(1)
    left = everything(state, uids) - before
    time.sleep(1)
    left &= everything(state, uids)
    return faults[:20] + sorted(f"left over: {x}" for x in left)[:20]


def flat(opt, config, state, uids):
    return flat_at(opt, config, state, uids, 1) + flat_at(opt, config, state, uids, opt.j) + check_log(state, 20 * (max(opt.runs // 10, 1) + 1), 0)


def timeliness(opt, config):
    faults = []
    for name, source in STUBBORN:
        late = None
        for _ in range(3):
            status, answer, took, _ = run(opt, config, {LANGUAGE: "python", SOURCE: source, "timeout_s": 1})
            if status != 124:
                faults.append(f"{name}: exit {status}, want 124: {str(answer)[:200]}")
                break
            late = min(took - 1000, late or 1e9)
            if late <= LATE_MS * opt.slow:
                break
        if late is not None:
            print(f"time limit, {name}: the answer came {late:.0f} ms after it")
            if late > LATE_MS * opt.slow:
                faults.append(f"{name}: {late:.0f} ms after the limit, at most {LATE_MS * opt.slow:.0f}")
    return faults


def flood(opt, config):
    status, answer, took, peak = run(opt, config, {LANGUAGE: "python", SOURCE: FLOOD, "timeout_s": 60})
    print(f"flood of both streams: stopped after {took / 1000:.1f} s, reeve at most {peak / 1024:.1f} MiB resident")
    faults = [] if status == 123 else [f"flood: exit {status}, want 123: {str(answer)[:200]}"]
    return faults + ([f"flood: {peak} KiB resident, at most {RESIDENT_KIB}"] if peak > RESIDENT_KIB else [])


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--reeve", required=True)
    a.add_argument("--runs", type=int, default=400)
    a.add_argument("-j", type=int, default=8)
    a.add_argument("--flat", action="store_true")
    a.add_argument("--slow", type=float, default=1, metavar="F")
    opt = a.parse_args()
    opt.reeve = os.path.abspath(opt.reeve)
    first = 2000000 + os.getpid() % 60 * 1000
    uids = (first, first + 999)
    with tempfile.TemporaryDirectory(prefix="soak-") as d:
        os.chmod(d, 0o755)

        def configured(name):
            path, state = os.path.join(d, name + ".yaml"), os.path.join(d, name)
            with open(path, "w", encoding="utf-8") as f:
                json.dump({"state_dir": state, "uid_range": f"{uids[0]}-{uids[1]}", "tenants": {"local": {}},
                           "phases": {"decide": f"{250 * opt.slow:.0f}ms"}}, f)
            return path, state
        run(opt, configured("first")[0], PROGRAMS[0][1])   # what the first run makes for good is no leak
        config, state = configured("state")
        if opt.flat:
            faults = flat(opt, config, state, uids)
        else:
            # First the flood: a process takes over the peak of the one that started it, and this one will grow.
            faults = flood(opt, configured("flood")[0]) + soak(opt, config, state, uids) + timeliness(opt, config)
    print("\n".join(f"FAULT {f}" for f in faults) if faults else "soak: as it should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
