#!/usr/bin/python3
"""Kills reeve, its spawner, PID 1 of the run and the program, and shows that nothing of it is left.

    kills.py --reeve BINARY [--kills N] [-j N] [--seed N]
    kills.py --reeve BINARY --points        (BINARY of a build with -Dtest_points=true)

Without --points N kills at random moments over the whole life of a run; with it, at exact moments. In the end one
more run; then there is no process, cgroup, mount, lock and file of any of them, the log's every decision has
exactly one outcome, every answer is on record, the log verifies, goes together and replays, and whoever asked and was
not killed itself was answered, within three seconds of the kill. Half of the runs have an idempotency key, and are
asked for again.
Exit status 77 where that cannot be tried (no root).
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import subprocess
import sys
import time

import common

ANSWER_S = 3
LIFE_S = 0.15
TRIES = 10      # the moment is chosen before the run, and may be after it

# The codes that an answer may have after the process was killed: at the very beginning, under way, or too late.
CODES = {
    "spawner": {"backend_failed", "backend_lost", "ok"},
    "init": {"backend_failed", "backend_lost", "ok"},
    "program": {"signal", "ok"},
}


def check_answer(name, role, answer, codes):
    if role == "reeve":
        return []
    if answer.status is None:
        return [f"{name}: no end within {ANSWER_S} s of the kill"]
    o = answer.json
    if answer.code not in codes:
        return [f"{name}: wanted one of {sorted(codes)}: {answer}"]
    faults = []
    if answer.code == "signal" and (o["exit"]["signal"] != "KILL" or o["started"] != "yes"):
        faults.append(f"{name}: {answer}")
    if answer.code == "backend_lost" and o["status"] != "failed":
        faults.append(f"{name}: {answer}")
    if answer.code == "backend_failed" and o["started"] != "no":
        faults.append(f"{name}: {answer}")
    if answer.status != {"ok": 0, "signal": 137}.get(answer.code, 125):
        faults.append(f"{name}: {answer}")
    return faults


def try_random(at, number, chance, role):
    """One run, one kill. (what came of it, faults)."""
    delay, lasts = chance.uniform(0, LIFE_S), chance.uniform(0, LIFE_S)
    source = f"import time\nprint(1, flush=True)\ntime.sleep({lasts:.3f})\n"
    key = f"kill-{number}-{chance.random()}" if chance.random() < 0.5 else None
    p = at.start(source, key=key)
    time.sleep(delay)
    common.wait_for(p, lambda found: role in found)
    killed = common.kill(p.pid, role)
    answer = common.finish(p, ANSWER_S)
    name = f"kill {number} of {role} after {delay * 1000:.0f} ms"
    at.acknowledged += [answer.json] if answer.json else []
    faults = ask_again(at, name, source, key, answer) if key else []
    if killed is None:
        return "too late", faults + ([] if answer.code == "ok" else [f"{name}, which was gone: {answer}"])
    return answer.code or "no answer", faults + check_answer(name, role, answer, CODES.get(role))


def ask_again(at, name, source, key, first):
    """With the same key: what may have run does not run again. That nobody was answered and it did is for `reconcile` to find."""
    second = common.finish(at.start(source, key=key), ANSWER_S)
    at.acknowledged += [second.json] if second.json else []
    if not second.json or "replayed" not in second.json:
        return [f"{name}: asked again: {second}"]
    ran = first.json and first.json["started"] != "no"
    if ran and (not second.json["replayed"] or second.json["run_id"] != first.json["run_id"]):
        return [f"{name}: ran twice: {first}; {second}"]
    return []


def check_acknowledged(at):
    """Whatever a caller was told is in the log."""
    known = {r["decision_id"] for r in map(json.loads, at.records()) if r["kind"] == "outcome"}
    lost = [a["decision_id"] for a in at.acknowledged if a.get("decision_id") and a["decision_id"] not in known]
    print(f"log: {len(at.acknowledged)} answers, {len(lost)} of them not on record")
    return [f"acknowledged and lost: {d}" for d in lost]


def check_commands(at):
    """What an auditor would ask: is it whole, does it go together, does policy say the same?"""
    faults = []
    for command in ("verify", "reconcile", "replay"):
        p = subprocess.run([at.reeve, "audit", command, "--config", at.config], capture_output=True, text=True, check=False)
        print(f"log: reeve audit {command}: exit {p.returncode}")
        if p.returncode:
            faults.append(f"reeve audit {command}: exit {p.returncode}: {p.stdout[-500:]} {p.stderr[-500:]}")
    return faults


def one_random(at, number, seed):
    """Runs until one could be killed. (role, [what came of each], faults)."""
    chance = random.Random(seed * 1000003 + number)
    role, all_seen, all_faults = chance.choice(common.ROLES), [], []
    for _ in range(TRIES):
        seen, faults = try_random(at, number, chance, role)
        all_seen.append(seen)
        all_faults += faults
        if seen != "too late":
            break
    return role, all_seen, all_faults


def at_random(opt, at):
    seen, faults = collections.Counter(), []
    with concurrent.futures.ThreadPoolExecutor(opt.j) as pool:
        for role, what, bad in pool.map(lambda i: one_random(at, i, opt.seed), range(opt.kills)):
            seen.update((role, w) for w in what)
            faults += bad
    for (role, what), n in sorted(seen.items()):
        print(f"{role}: {what}: {n}")
    return faults


LOST, OK = {"backend_lost"}, {"ok"}
BEGINNING = {"backend_failed", "backend_lost"}
# point, milliseconds of the pause (0: for ever), whom to kill, in this order; what the answer may say.
# A run made ahead that dies is replaced by another, which waits at the same point: hence `ok`.
POINTS = [
    ("before-clone", 0, ("spawner",), BEGINNING),
    ("before-clone", 300, ("reeve",), None),
    ("before-clone", 0, ("reeve", "spawner"), None),
    ("in-mounts", 0, ("spawner",), BEGINNING),
    ("in-mounts", 0, ("reeve",), None),
    ("in-mounts", 300, ("init",), BEGINNING | OK),
    ("in-mounts", 0, ("spawner", "reeve"), None),
    ("held", 0, ("spawner",), LOST),
    ("held", 0, ("reeve",), None),
    ("held", 0, ("init",), LOST),
    ("held", 0, ("reeve", "spawner"), None),
    ("running", 0, ("spawner",), LOST),
    ("running", 0, ("reeve",), None),
    ("running", 0, ("init",), LOST),
    ("running", 300, ("program",), {"signal"}),
    ("running", 0, ("reeve", "spawner", "init"), None),
    ("before-answer", 0, ("reeve",), None),
    ("before-answer", 300, ("spawner",), OK),
    ("before-answer", 0, ("reeve", "spawner"), None),
    ("in-teardown", 0, ("spawner",), OK),
    ("in-teardown", 300, ("reeve",), None),
    ("in-teardown", 0, ("reeve", "spawner"), None),
]
SEAL_POINTS = [
    ("seal-memory", 0, ("spawner",), OK),
    ("seal-memory", 300, ("reeve",), None),
    ("seal-memory", 0, ("reeve", "spawner"), None),
    ("seal-signed", 0, ("spawner",), OK),
    ("seal-signed", 300, ("reeve",), None),
    ("seal-signed", 0, ("reeve", "spawner"), None),
    ("seal-append", 0, ("reeve",), None),
    ("seal-append", 300, ("spawner",), OK),
    ("seal-tree", 0, ("reeve",), None),
]
# After the answer.
LATE = ("in-teardown", *(row[0] for row in SEAL_POINTS))
# Of `reeve audit rotate`: everything is killed there, and it is run again.
ROTATE_POINTS = ("rotate-new", "seal-memory", "seal-signed", "seal-append", "seal-tree", "rotate-note", "rotate-key", "rotate-pub")


def one_point(at, point, pause_ms, roles, codes):
    name = f"{' and '.join(roles)} at {point}"
    source = "print(1)" if point in ("before-answer", *LATE) else "import time\nprint(1, flush=True)\ntime.sleep(10)\n"
    if codes == BEGINNING | OK:
        source = "print(1)"
    p = at.start(source, env={"REEVE_TEST_PAUSE": f"{point}:{pause_ms}" if pause_ms else point})
    found = common.wait_for(p, lambda t: any(common.name_of(pid) == "@" + point for pid in t.values())
                            and (roles != ("program",) or "program" in t))
    if not found:
        return [f"{name}: never came there: {common.finish(p, ANSWER_S)}"]
    if absent := common.kill_all(p.pid, roles):
        return [f"{name}: there is no {absent}"]
    answer = common.finish(p, ANSWER_S + pause_ms / 1000)
    faults = check_answer(name, "reeve" if codes is None else roles[0], answer, codes)
    # The answer is given before the cgroups are removed.
    if codes is None and answer.json and (point not in LATE or answer.code != "ok"):
        faults.append(f"{name}: an answer from the dead: {answer}")
    print(f"{name}: {answer.code or 'no answer'}", flush=True)
    return faults


def rotate(at, point=None):
    return subprocess.Popen([at.reeve, "audit", "rotate", "--yes", "--config", at.config], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            env={**os.environ, **({"REEVE_TEST_PAUSE": point} if point else {})})


def expect_run(at, name):
    """A run is as ever, and seals the log."""
    answer = at.run()
    return [] if answer.code == "ok" and not answer.stderr else [f"{name}: {answer}"]


def one_rotation(at, point):
    name, p = f"rotation killed at {point}", rotate(at, point)
    if not common.wait_for(p, lambda t: any(common.name_of(pid) == "@" + point for pid in t.values())):
        p.kill()
        return [f"{name}: never came there: {p.communicate()[1]}"]
    if absent := common.kill_all(p.pid, ("reeve", "spawner")):
        return [f"{name}: there is no {absent}"]
    p.communicate()
    faults = expect_run(at, name)
    again = rotate(at)
    stderr = again.communicate()[1].decode()
    if again.returncode or stderr:
        faults.append(f"{name}: run again: exit {again.returncode}: {stderr}")
    if os.path.exists(os.path.join(at.state, "keys/ed25519.new")):
        faults.append(f"{name}: the change is not finished")
    print(f"{name}: finished", flush=True)
    return faults + expect_run(at, f"{name}, afterwards")


def at_points(at):
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        faults = [f for bad in pool.map(lambda row: one_point(at, *row), POINTS) for f in bad]
    # One at a time: a run whose records another one has sealed comes to none of these.
    for row in SEAL_POINTS:
        faults += one_point(at, *row)
    for point in ROTATE_POINTS:
        faults += one_rotation(at, point)
    return faults


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--reeve", required=True)
    a.add_argument("--kills", type=int, default=60)
    a.add_argument("-j", type=int, default=4)
    a.add_argument("--seed", type=int, default=int(time.time()) % 1000000)
    a.add_argument("--points", action="store_true")
    opt = a.parse_args()
    if os.geteuid() != 0:
        print("needs root")
        return 77
    with common.place(opt.reeve) as at:
        first = at.run()
        if first.code != "ok":
            sys.exit(f"a run without a kill: {first}")
        if not opt.points:
            print(f"seed {opt.seed}")
        faults = at_points(at) if opt.points else at_random(opt, at)
        last = at.run()
        if last.code != "ok":
            faults.append(f"the run after it all: {last}")
        faults += [f"left: {x}" for x in common.left(at)] + common.check_log(at) + check_acknowledged(at) + check_commands(at)
    print("\n".join(f"FAULT {f}" for f in faults) if faults else "kills: as it should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
