"""Runs commands as steps of a check, prints a line for each, and what failed once more at the end.

A step has a log of its own in build-check/logs/ and counts one, or as many tests as it says that it ran. Its line tells how
long it took, and of that its seconds of processor time, as far as it waited for its own processes. The log of a
step that fails is printed whole; what it says of the fault comes again in front of the closing line.
"""
import concurrent.futures
import fnmatch
import os
import re
import signal
import subprocess
import sys
import threading
import time

import tree

OUT = os.path.join(tree.TOP, "build-check")
LOGS = os.path.join(OUT, "logs")
IS_CI = os.environ.get("CI") == "true"
DIFFERENT = 77   # exit status of a script that had nothing to ask (automake's and meson's "skipped")
RECAP_LINES, RECAP_WIDTH = 12, 240
# How our own tests, cmocka, ninja, compilers and sanitizers begin a line that says what is wrong.
FAULT = re.compile(r"^(FAULT|FAIL|fail:|not ok|\[  FAILED  \] (?!\d+ test)|FAILED:|ended:)|\b(error|ERROR|runtime error|Error):")

# What has time: it yields to what runs beside it, also where the kernel shares out processors by session.
PATIENT = ["sh", "-c", 'echo 10 2>/dev/null >/proc/$$/autogroup; exec nice -n 10 "$@"', "sh"]


class Steps:
    def __init__(self, options):
        self.options = options
        self.passed = self.failed = self.skipped = 0
        self.unexplained = []
        self.faults = {}        # by step, the lines that say what is wrong
        self.reasons = self.read_reasons()
        self.broken = set()     # steps that failed, for those that need them
        self.lock = threading.Condition()
        self.done = set()
        self.finished = set()   # steps, run or not
        self.n_lanes = 1

    @staticmethod
    def read_reasons():
        """tests/skips.txt: `name pattern: reason` a line; # begins a comment."""
        reasons = {}
        path = os.path.join(tree.TOP, "tests/skips.txt")
        for line in open(path, encoding="utf-8") if os.path.exists(path) else ():
            line = line.strip()
            if line and not line.startswith("#"):
                name, colon, reason = line.partition(": ")
                if not colon or not reason.strip():
                    sys.exit(f"tests/skips.txt: a line without a reason: {line}")
                reasons[name] = reason.strip()
        return reasons

    def note_skips(self, names):
        """Counts skipped tests. Returns what to add to the step's line."""
        self.skipped += len(names)
        for name in names:
            reason = next((r for pattern, r in self.reasons.items() if fnmatch.fnmatchcase(name, pattern)), None)
            if reason is None:
                self.unexplained.append(name)
                if IS_CI:
                    self.failed += 1
            print(f"      skipped {name}: {reason or 'no reason in tests/skips.txt'}", flush=True)

    def is_wanted(self, name):
        return not self.options.only or bool(re.search(self.options.only, name))

    def finish(self, name):
        with self.lock:
            self.finished.add(name)
            self.lock.notify_all()

    def wait(self, names):
        """Until these steps are finished, which another lane may be at."""
        with self.lock:
            while self.n_lanes > 1 and not self.finished.issuperset(names):
                self.lock.wait()

    def step(self, name, command, timeout_s=600, env=None, needs=(), count=None, show=None, is_patient=False):
        """Runs one step.

        command     a list, or several lists run in order until one fails
        needs       names of steps without which this one makes no sense: it waits for them, and fails unrun if one did
        count       function of the log's text -> (passed, failed, [skipped names]) or None: counts one
        show        pattern of the lines of the log to print though the step passed
        is_patient  it leaves the processors to what runs beside it
        """
        try:
            if self.is_wanted(name):
                self.run_step(name, command, timeout_s, env, needs, count, show, is_patient)
        finally:
            self.finish(name)

    def run_step(self, name, command, timeout_s, env, needs, count, show, is_patient):
        self.done.add(name)
        self.wait([n for n in needs if self.is_wanted(n)])
        missing = [n for n in needs if n in self.broken]
        if missing:
            with self.lock:
                self.failed += 1
                self.broken.add(name)
                self.faults[name] = [f"unrun, as {missing[0]} failed"]
                print(f"FAIL  {name:<34}    unrun, as {missing[0]} failed", flush=True)
            return
        log = os.path.join(LOGS, re.sub(r"[^\w.-]+", "-", name) + ".log")
        commands = [command] if isinstance(command[0], str) else command
        began, status, cpu_s = time.monotonic(), 0, 0
        with open(log, "w", encoding="utf-8") as out:
            for c in commands:
                out.write(f"$ {' '.join(c)}\n")
                out.flush()
                status, used_s = run(PATIENT + c if is_patient else c, out, timeout_s - (time.monotonic() - began), env)
                cpu_s += used_s
                if status:
                    break
        with self.lock:
            self.judge(name, log, status, (time.monotonic() - began, cpu_s), count, show)

    def judge(self, name, log, status, took, count, show):
        with open(log, encoding="utf-8", errors="replace") as f:
            text = f.read()
        counted = count(text) if count else None
        skips = []
        if status == DIFFERENT and not counted:
            skips = [name]
        elif counted:
            self.passed += counted[0]
            self.failed += max(counted[1], 1 if status and not counted[1] else 0)
            skips = counted[2]
        else:
            self.passed += status == 0
            self.failed += status != 0
        is_bad = status not in (0, DIFFERENT) or bool(counted and counted[1])
        figures = f"  ({counted[0]} passed, {counted[1]} failed, {len(skips)} skipped)" if counted else ""
        word = "FAIL" if is_bad else "skip" if skips and not counted else "ok"
        print(f"{word:<4}  {name:<34} {took[0]:7.1f} s {took[1]:7.1f} s{figures}", flush=True)
        if is_bad:
            self.broken.add(name)
            self.faults[name] = faults_in(text)
            print("".join(f"      | {line}\n" for line in text.splitlines()), end="", flush=True)
        elif show:
            print("".join(f"      {line}\n" for line in text.splitlines() if re.search(show, line)), end="", flush=True)
        self.note_skips(skips)

    def beside(self, *lanes):
        """Runs these functions at the same time. What measures times closely, or looks for what is left on the host, has no
        place in one. A step that needs another lane's waits for it, so that no two lanes may wait for each other."""
        def lane(function):
            try:
                function()
            finally:
                with self.lock:
                    self.n_lanes -= 1
                    self.lock.notify_all()

        self.n_lanes = len(lanes)
        with concurrent.futures.ThreadPoolExecutor(len(lanes)) as pool:
            for done in [pool.submit(lane, function) for function in lanes]:
                done.result()
        self.n_lanes = 1

    def summary(self):
        for name, lines in self.faults.items():
            print(f"FAILED {name}\n" + "".join(f"      | {line[:RECAP_WIDTH]}\n" for line in lines), end="")
        if self.unexplained and IS_CI:
            print("A skip needs a line in tests/skips.txt: " + ", ".join(self.unexplained))
        if not self.done:
            print("no step has such a name")
            self.failed += 1
        print(f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped")
        return 1 if self.failed else 0


def faults_in(text):
    """The lines of a log that say what is wrong, each with the two below it; the last ones, if none says so."""
    lines, found = text.splitlines(), []
    for i, line in enumerate(lines):
        if FAULT.search(line):
            found += [n for n in range(i, min(i + 3, len(lines))) if n not in found]
    return [lines[n] for n in found[:RECAP_LINES]] or lines[-RECAP_LINES:]


def run(command, out, timeout_s, env):
    """Runs one command in a session of its own, so that on a timeout all of it can be ended. (status, seconds of processor time)"""
    deadline = time.monotonic() + max(timeout_s, 1)
    with subprocess.Popen(command, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=tree.TOP,
                          env={**os.environ, **(env or {})}, start_new_session=True) as p:
        try:
            if (used_s := wait(p, deadline)) is not None:
                return p.returncode, used_s
            out.write("\nended: it took too long\n")
        finally:
            if p.returncode is None:
                os.killpg(p.pid, signal.SIGTERM)
                if wait(p, time.monotonic() + 10) is None:
                    os.killpg(p.pid, signal.SIGKILL)
        return 124, 0


def wait(p, deadline):
    """Until a process ends, whose status it gets. What it and what it waited for used of a processor, in seconds; None: it goes on."""
    while True:
        pid, status, used = os.wait4(p.pid, os.WNOHANG)
        if pid:
            p.returncode = os.waitstatus_to_exitcode(status)
            return used.ru_utime + used.ru_stime
        if time.monotonic() > deadline:
            return None
        time.sleep(0.02)


def count_conformance(text):
    """The runner's last line, and the names of what it skipped."""
    m = re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", text, re.M)
    return m and (int(m[1]), int(m[2]), re.findall(r"^skip: ([^:]+)", text, re.M))
