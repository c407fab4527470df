#!/usr/bin/python3
"""Runs a finished build in guests: cgroup v2 and systemd, as three kinds of user, and in plain containers.

    check.py --build DIR [--only RE] [--long] [-j N]

Each test has a guest of its own, fresh from one snapshot. As root and as tester, each in a login session: doctor,
conformance cases with their times five-fold (those that depend on the machine; with --long all of five files), packages,
the leak check, in a delegated unit; as tester, with --long as root too, the demo; as root also with a configured cgroup,
and the figures of a start. As plain, who has neither session nor manager: the refusal. In
containers as root: what works with a writable cgroup, what is refused, and with which reason.

The guest is an emulated machine, about 15 times slower than this one (Node: 30). What ran into one of reeve's own time
limits there, a conformance case or a test, is therefore run once more at the end, by itself, and counts by that.

Prints one line a test and, last, "N passed, N failed, N skipped"; a conformance case counts one.
"""
import argparse
import concurrent.futures
import dataclasses
import os
import re
import resource
import shlex
import sys
import time

import cache
import machine
import tree

CASES = {name: "" for name in ("run", "output", "validation", "isolation", "policy")}
# What depends on the machine. No more is asked of an emulated one, unless there is time.
CASES_OF_MACHINE = {"run": "hello|timeout|memory|mib|heap|fork|daemonised|background|signal|threads|multiprocessing", "isolation": ""}
SCALE = 5
HELLO = "print('hello from', 40 + 2)"
CONTAINER = f"/usr/bin/python3 {tree.HOME}/tests/guest/container.py"
# Writes the configuration and a program to /tmp, and names them.
PREPARE = ("cd /tmp && umask 022 && printf 'state_dir: /tmp/state-%s\\nphases: {decide: 5s}\\n' $(id -u) >reeve.yaml && "
           f"printf '%s\\n' {shlex.quote(HELLO)} >hello.py && ")
RUN = f"{tree.REEVE} run --config /tmp/reeve.yaml"


@dataclasses.dataclass
class Test:
    name: str
    user: str             # root, tester, plain; "" for the runner's own service
    command: str
    status: tuple = (0,)  # any of these
    says: tuple = ()      # patterns that standard output and standard error have to match
    timeout_s: float = 300
    is_conformance: bool = False
    wants_uv: bool = False
    shows: str = ""       # pattern of lines to print though all is well


@dataclasses.dataclass
class Verdict:
    passed: int
    failed: int
    skipped: int
    text: str             # of the faults
    late: tuple = ()      # what to run again: conformance cases, or the test


def conformance(user, file, only, again=""):
    more = f" --only {shlex.quote(only)}" if only else ""
    name = f"{user}/{file}{again}"
    return Test(name, user, f"cd {tree.HOME} && /usr/bin/python3 tests/conformance/run.py --reeve {tree.REEVE} --scale {SCALE}{more} "
                f"tests/conformance/{file}.json", timeout_s=900, is_conformance=True)


def packages(user, only):
    """Runs with packages, from an index made on the spot: a job in a sandbox, the helpers, a layer that is built and bound. There is no npm.
    What one case needs is what a user's rights could be too few for; how soon a held lock is found is no question for this machine."""
    return Test(f"{user}/packages", user, f"cd {tree.HOME} && /usr/bin/python3 tests/conformance/run.py --reeve {tree.REEVE} --scale {SCALE} --have root "
                f"--config '{{\"phases\":{{\"decide\":\"5s\",\"start\":\"60s\"}}}}' --only {shlex.quote(only)} tests/conformance/registry.json", timeout_s=900, is_conformance=True, wants_uv=True)


def tests_of(user, manager, n_runs, cases, has_demo):
    """What one user with a login session can do."""
    # No unit may be left of a run, not even a failed one; the mount's name is its path, /var/lib/reeve.
    units = "systemctl {} list-units --all --plain --no-legend 'reeve*' | grep . && exit 1; exit 0"
    own_manager = "--user" if user == "tester" else ""
    yield Test(f"{user}/session", user, "cat /proc/self/cgroup; stat -fc %T /sys/fs/cgroup", says=(r"^0::/user\.slice/.*/session-", "^cgroup2fs$"))
    yield Test(f"{user}/doctor", user, PREPARE + f"{tree.REEVE} doctor --config reeve.yaml",
               says=(rf"^ok +cgroup +v2.*transient scope of the {manager}'s manager", r"^ok +run \(python\)", r"^ok +run \(javascript\)"),
               shows="^(ok|note) +(cgroup|user ids|private_uid)")
    if has_demo:
        yield Test(f"{user}/demo", user, f"cd {tree.HOME} && REGISTRY=none NO_BUILD=1 BUILD={tree.BUILD} tools/dev/demo", says=("steps, all as expected",))
    # A user's manager of systemd 252 does not mark what it delegates, so that reeve asks it for a scope.
    rule = "delegated unit" + ("|transient scope of the user's manager" if user == "tester" else "")
    yield Test(f"{user}/delegated unit", user, PREPARE + f"systemd-run {own_manager} --scope -q -p Delegate=yes {tree.REEVE} doctor --config reeve.yaml",
               says=(f"^ok +cgroup +v2.*({rule})", r"^ok +run \(python\)"), shows="^(ok|note) +cgroup")
    for file, only in cases.items():
        yield conformance(user, file, only)
    yield Test(f"{user}/leaks", user, f"cd {tree.HOME} && /usr/bin/python3 tests/lib/soak.py --reeve {tree.REEVE} --runs {n_runs} -j 2 --slow 15 && "
               f"{{ {units.format(own_manager)}; }}", says=("^left over: 0$",), timeout_s=900,
               shows="^[0-9]+ runs|^left over|^log:")


def container_tests():
    """A container with every privilege runs programs if it has a cgroup to write to; else the refusal names what is missing."""
    def contained(name, cgroup, privileges, command, **more):
        return Test(f"container/{name}", "root", f"{CONTAINER} --cgroup {cgroup} --privileges {privileges} /bin/sh -c {shlex.quote(PREPARE + command)}", **more)
    # Its root may hold no process before reeve can give controllers to runs, so the shell must have become reeve.
    yield contained("runs", "rw", "all", f"exec {RUN} hello.py", says=("^hello from 42$",))
    yield contained("doctor", "rw", "all", f"exec {tree.REEVE} doctor --config reeve.yaml", says=(r"^ok +cgroup +v2.*container", r"^ok +run \(python\)"),
                    shows="^(ok|note) +cgroup")
    limits = "x = bytearray(1 << 30)\nfor i in range(0, len(x), 4096): x[i] = 1\n"
    yield contained("memory limit", "rw", "all", f"printf %s {shlex.quote(limits)} >hog.py && exec {RUN} --memory 128 hog.py",
                    status=(137,), says=("memory_limit",))
    yield contained("not alone in its cgroup", "rw", "all", f"{RUN} hello.py; exit $?", status=(126,), says=("cgroup",), shows="^reeve: ")
    yield contained("from a leaf", "rw", "all", f"mkdir /sys/fs/cgroup/shell && echo $$ >/sys/fs/cgroup/shell/cgroup.procs && {RUN} hello.py; exit $?",
                    says=("^hello from 42$",))
    yield contained("read-only cgroup", "ro", "all", f"exec {RUN} hello.py", status=(126,), says=("cgroup.*(read-only|writable)",), shows="^reeve: ")
    yield contained("usual privileges", "rw", "usual", f"exec {RUN} hello.py", status=(125, 126), says=("(?i)/proc.*mask|mask.*/proc",), shows="^reeve: ")
    yield contained("usual privileges, read-only cgroup", "ro", "usual", f"exec {RUN} hello.py", status=(126,), says=("cgroup",), shows="^reeve: ")


def all_tests(is_long):
    """The longest first, so that none of them is left over at the end."""
    found = [Test("root/configured cgroup", "root", PREPARE + "mkdir /sys/fs/cgroup/mine && echo 'cgroup: /mine' >>reeve.yaml && "
                  f"{tree.REEVE} doctor --config reeve.yaml", says=("^ok +cgroup +v2.*configured", r"^ok +run \(python\)"), shows="^(ok|note) +cgroup"),
             Test("root/start", "root", f"{tree.BUILD}/tests/bench/cold --reeve {tree.REEVE} --floor {tree.BUILD}/tests/bench/floor -n {60 if is_long else 4}",
                  timeout_s=900, shows="ratio")]
    for user, manager in (("root", "system"), ("tester", "user")):
        found.append(packages(user, "^registry/(?!javascript|install-script|registry-500|held-lock)" if is_long else "^registry/python-closure$"))
        # Of the demo root's rights ask nothing new: it runs as root outside of the guest too.
        found += tests_of(user, manager, 220 if is_long else 12, CASES if is_long else CASES_OF_MACHINE, is_long or user == "tester")
    found += container_tests()
    refusal = ("no cgroup", "uid 1001", "systemctl --user|enable-linger", "`cgroup:`")
    found.append(Test("plain/refused", "plain", PREPARE + f"{RUN} --json hello.py", status=(126,),
                      says=(*refusal, '"status":"blocked"', '"started":"no"'), shows="^reeve: "))
    found.append(Test("plain/doctor", "plain", PREPARE + f"{tree.REEVE} doctor --config reeve.yaml", status=(1,), says=refusal))
    order = ["/run", "/leaks", "/packages", "/demo", "/start", "/validation", "/output", "/isolation", "/policy"]
    return sorted(found, key=lambda t: next((i for i, end in enumerate(order) if t.name.endswith(end)), len(order)))


def judge(test, got):
    said = got.out + got.err
    if test.is_conformance and (m := re.search(r"^(\d+) passed, (\d+) failed, (\d+) skipped$", got.out, re.M)):
        failures = re.findall(r"^fail: (\S+): (.*)$", got.out, re.M)
        late = tuple(name for name, why in failures if '"code": "timeout"' in why or re.search(r"no answer in|took \d+ ms", why))
        faults = [f"{name}: {why}" for name, why in failures if name not in late]
        # In the form that tools/dev/check counts skips by.
        skips = [f"skip: guest/{test.user}/{name}" for name in re.findall(r"^skip: (.*)$", got.out, re.M)]
        return Verdict(int(m[1]), int(m[2]) - len(late), int(m[3]), "\n".join(faults + skips), late)
    faults = [f"status {got.status}, want {' or '.join(map(str, test.status))}"] if got.status not in test.status else []
    faults += [f"does not say {pattern!r}" for pattern in test.says if not re.search(pattern, said, re.M)]
    if got.is_late:
        faults.append(f"not done in {test.timeout_s:.0f} s")
    text = "\n".join(faults + said.splitlines()[-60:]) if faults else ""
    is_late = bool(faults) and not got.is_late and re.search("took longer than [0-9.]+ s", said)
    return Verdict(not faults, bool(faults and not is_late), 0, "again later" if is_late else text, (test.name,) if is_late else ())


def indented(text):
    return "".join(f"      {line}\n" for line in text.splitlines())


def run(test, build):
    """One test in a fresh guest: its verdict. A guest that fails, not what ran in it, is replaced once."""
    for left in (1, 0):
        began = time.monotonic()
        try:
            with cache.guest() as m:
                ready = time.monotonic()
                tree.push(m, build)
                if test.wants_uv:
                    tree.push_uv(m)
                got = m.run(machine.as_user(test.user, test.command) if test.user else test.command, timeout_s=test.timeout_s)
            break
        except machine.GuestError as e:
            print(f"      {test.name}: {e}", flush=True)
            if not left:
                return Verdict(0, 1, 0, str(e))
    verdict = judge(test, got)
    counts = f", {verdict.passed} passed" if test.is_conformance else ""
    lines = [line for line in (got.out + got.err).splitlines() if test.shows and re.search(test.shows, line)]
    word = "FAIL" if verdict.failed else "late" if verdict.late else "ok"
    if test.is_conformance and verdict.late:
        verdict.text = "\n".join(filter(None, (verdict.text, "again later: " + " ".join(verdict.late))))
    print(f"{word:<4}  {test.name:<40} {got.ms / 1000:6.1f} s (guest there in {ready - began:.2f} s{counts})\n"
          + indented("\n".join(lines)) + re.sub(r"(?m)^ {6}skip: ", "skip: ", indented(verdict.text)), end="", flush=True)
    return verdict


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--build", required=True)
    a.add_argument("--only", default="", metavar="RE")
    a.add_argument("--long", action="store_true")
    a.add_argument("-j", type=int, default=2, help="guests at a time (each has two processors)")
    opt = a.parse_args()
    if os.uname().machine != "x86_64" or os.geteuid() != 0:
        print("guest: the image is made on an x86_64 machine, as root")
        return 77
    build = os.path.abspath(opt.build)
    began = time.monotonic()
    cache.prepare()
    tests = [t for t in all_tests(opt.long) if re.search(opt.only, t.name)]
    with concurrent.futures.ThreadPoolExecutor(opt.j) as pool:
        verdicts = list(pool.map(lambda t: run(t, build), tests))
    for test, late in [(t, v.late) for t, v in zip(tests, verdicts) if v.late]:
        if test.is_conformance:
            only = f"^({'|'.join(map(re.escape, late))})$"
            test = packages(test.user, only) if test.wants_uv else conformance(test.user, test.name.split("/")[1], only, " again")
        verdict = run(test, build)
        verdict.failed += len(verdict.late)
        verdicts.append(verdict)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"guest: {len(tests)} tests in {time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor time")
    print("{} passed, {} failed, {} skipped".format(*(sum(getattr(v, k) for v in verdicts) for k in ("passed", "failed", "skipped"))))
    return 1 if any(v.failed for v in verdicts) or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
