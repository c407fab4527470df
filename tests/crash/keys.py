#!/usr/bin/python3
"""Idempotency keys against a model: random calls, two at once, killed at every step, a damaged index, a clock a day on.

    keys.py --reeve BINARY [--steps N] [--seed N]        (BINARY of a build with -Dtest_points=true)

A step is one call of `reeve run --key`, or two at once with the same key, with one of a few keys and one of two
requests, under a configuration that lets it run, denies it, or has no interpreter. It may be killed at a point of its
way. The model knows for each key which request has it, since when and with which outcome, and says what each call
must answer: a run, that outcome again, or a conflict. In the end the log tells that no key ran twice.
Exit status 77 where that cannot be tried (no root).
"""
import argparse
import collections
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import common

ANSWER_S = 20
DAY_S = 24 * 3600
KEYS = "abcdef"
PROGRAMS = ("import os\nprint(os.urandom(8).hex())\nopen(os.environ['REEVE_RESULT'], 'w').write('{\"x\": 1.50}')\n",
            "import os, sys\nprint(os.urandom(8).hex(), file=sys.stderr)\nsys.exit(7)\n")
CODES = ("ok", "exit_nonzero")
WAYS = ("run", "run", "run", "denied", "cannot")
WAY_CODES = {"denied": "network_denied", "cannot": "runtime_unavailable"}
# Where a call that runs is killed -> what is on record of it then: nothing, a decision, or an outcome too.
POINTS = {"before-claim": "nothing", "in-claim": "nothing", "after-claim": "decision", "held": "decision", "outcome-bytes": "decision",
          "outcome-record": "outcome", "before-answer": "outcome"}
DENY = 'return policy { packages = { default = "allow" }, network = { default = "deny" }, idempotency = { default = "none" }, backend = { default = "tenant" } }'

# Who has a key: `answer` is the outcome that was given, `run_id` and `code` all that is known of one that was not.
Holder = collections.namedtuple("Holder", "body run_id code ended_s answer")


class Trial:
    def __init__(self, reeve, at, seed):
        self.reeve, self.at, self.chance = reeve, at, random.Random(seed)
        self.clock_s, self.holders, self.faults, self.seen = 0, {}, [], collections.Counter()
        self.configs, self.programs = self.make_configs(), []
        for i, text in enumerate(PROGRAMS):
            self.programs.append(os.path.join(at.directory, f"{i}.py"))
            with open(self.programs[i], "w", encoding="utf-8") as f:
                f.write(text)

    def make_configs(self):
        bundle, configs = os.path.join(self.at.directory, "deny"), {}
        os.mkdir(bundle)
        with open(os.path.join(bundle, "policy.lua"), "w", encoding="utf-8") as f:
            f.write(DENY)
        with open(self.at.config, encoding="utf-8") as f:
            config = json.load(f)
        more = {"run": {}, "denied": {"tenants": {"local": {"policy": bundle}}}, "cannot": {"runtimes": {"host": {"python": "/nowhere/python3"}}}}
        for way, change in more.items():
            configs[way] = os.path.join(self.at.directory, way + ".yaml")
            with open(configs[way], "w", encoding="utf-8") as f:
                json.dump({**config, **change}, f)
        return configs

    def fault(self, text):
        self.faults.append(f"step {self.step}: {text}")

    # ---- Calls ----

    def start(self, key, body, way, point=None):
        env = {**os.environ, "REEVE_TEST_CLOCK": str(self.clock_s)}
        if point:
            env["REEVE_TEST_PAUSE"] = point
        answer = tempfile.TemporaryFile()
        p = subprocess.Popen([self.reeve, "run", "--config", self.configs[way], "--json", "--timeout", "15", "--key", key, self.programs[body]], stdin=subprocess.DEVNULL,
                             stdout=answer, stderr=subprocess.PIPE, env=env)
        p.answer = answer
        return p

    def kill_at(self, p, point):
        """Kills the reeve when it comes to the point. Whether it came."""
        found = common.wait_for(p, lambda t: any(common.name_of(pid) == "@" + point for pid in t.values()), within_s=ANSWER_S)
        if not found:
            return False
        os.kill(p.pid, signal.SIGKILL)
        return True

    def damage_index(self):
        name = os.path.join(self.at.state, "index.sqlite" + self.chance.choice(("", "", "-wal", "-shm")))
        try:
            size = os.path.getsize(name)
            how = self.chance.choice(("remove", "cut", "bytes", "replace"))
            if how == "remove":
                os.unlink(name)
            elif how == "cut":
                os.truncate(name, self.chance.randrange(size + 1))
            elif how == "replace":
                with open(name, "wb") as f:
                    f.write(self.chance.randbytes(4096))
            else:
                with open(name, "r+b") as f:
                    for _ in range(self.chance.randrange(1, 30)):
                        f.seek(self.chance.randrange(max(size, 1)))
                        f.write(self.chance.randbytes(1))
        except FileNotFoundError:
            return
        self.seen["index damaged"] += 1

    # ---- The model ----

    def holder(self, key):
        h = self.holders.get(key)
        return None if h and self.clock_s - h.ended_s > DAY_S else h

    def newest(self, key_kind):
        """The newest record of that kind."""
        for line in reversed(self.at.records()):
            r = json.loads(line)
            if r["kind"] == key_kind:
                return r
        return {}

    def expect(self, key, body, way):
        """What a call must answer now: 'conflict', 'replay', or how it runs."""
        h = self.holder(key)
        if h:
            return "replay" if h.body == body else "conflict"
        return way

    def is_it(self, answer, wanted, key, body):
        """Does the answer say what the model does? If it is a run, the model has it from here on."""
        o = answer.json or {}
        if wanted == "conflict":
            return answer.status == 2 and o.get("status") == 422 and o["errors"][0]["pointer"] == "/idempotency_key" and o["errors"][0]["code"] == "conflict"
        if wanted == "replay":
            h = self.holder(key)
            same = h.answer is None or {**o, "replayed": False} == h.answer
            if not o.get("replayed") or (h.run_id and o.get("run_id") != h.run_id) or answer.code != h.code or not same:
                return False
            self.holders[key] = h._replace(answer={**o, "replayed": False}, run_id=o["run_id"])
            return True
        if o.get("replayed") is not False or answer.code != (CODES[body] if wanted == "run" else WAY_CODES[wanted]):
            return False
        if wanted == "run":
            self.holders[key] = Holder(body, o["run_id"], answer.code, self.clock_s, o)
        return True

    def note_killed(self, key, body, way, point):
        """It was killed at that point, where it comes only if it was let run or refused."""
        what = POINTS[point]
        # What could not have started is free again if that is on record, and nobody knows it if it is not.
        if way == "denied" or what == "nothing" or (way == "cannot" and what == "outcome"):
            return
        decision = self.newest("decision")
        code = CODES[body] if what == "outcome" else "backend_lost"
        # Whoever comes next concludes it, at its own time.
        self.holders[key] = Holder(body, decision["run_id"], code, self.clock_s, None)

    # ---- Steps ----

    def one(self, key, body, way):
        wanted, point = self.expect(key, body, way), None
        if self.chance.random() < 0.35:
            point = self.chance.choice(list(POINTS))
        p = self.start(key, body, way, point)
        if point and self.kill_at(p, point):
            common.finish(p, ANSWER_S)
            self.seen[f"killed at {point}"] += 1
            if wanted in ("conflict", "replay") and point != "before-answer":
                self.fault(f"a {wanted} came to {point}")
            if wanted not in ("conflict", "replay"):
                self.note_killed(key, body, way, point)
            return
        answer = common.finish(p, ANSWER_S)
        self.seen[wanted] += 1
        if not self.is_it(answer, wanted, key, body):
            self.fault(f"key {key}, request {body}, {way}: wanted {wanted} ({self.holder(key)}), not {answer}")

    def two(self, key, bodies):
        """At once, both let run. If neither has the key one of them runs; the other is given its outcome, or conflicts."""
        held, point = self.holder(key), None
        if self.chance.random() < 0.5:
            point = self.chance.choice(list(POINTS))
        first, second = self.start(key, bodies[0], "run", point), self.start(key, bodies[1], "run")
        is_killed = point is not None and self.kill_at(first, point)
        answers = [common.finish(first, ANSWER_S), common.finish(second, ANSWER_S)]
        self.seen["two at once" + (f", one killed at {point}" if is_killed else "")] += 1
        name = f"key {key}, two at once, requests {bodies}, killed at {point if is_killed else None}"
        if is_killed:
            self.second_alone(name, key, bodies, held, point, answers[1])
        elif held:
            for body, answer in zip(bodies, answers):
                if not self.is_it(answer, self.expect(key, body, "run"), key, body):
                    self.fault(f"{name}: {answer}")
        else:
            fresh = [i for i in (0, 1) if answers[i].json and answers[i].json.get("replayed") is False]
            if len(fresh) != 1 or not self.is_it(answers[fresh[0]], "run", key, bodies[fresh[0]]):
                self.fault(f"{name}: {len(fresh)} of them ran: {answers[0]} and {answers[1]}")
                return
            other = 1 - fresh[0]
            if not self.is_it(answers[other], self.expect(key, bodies[other], "run"), key, bodies[other]):
                self.fault(f"{name}: the other: {answers[other]}")

    def second_alone(self, name, key, bodies, held, point, answer):
        """The first was killed. The second ran before it or after it, was given what came of it, or conflicts."""
        if held:
            wanted = [self.expect(key, bodies[1], "run")]
        elif POINTS[point] == "nothing":
            wanted = ["run"]
        else:
            wanted = ["run", "replay" if bodies[0] == bodies[1] else "conflict"]
        if not held and POINTS[point] != "nothing" and not (answer.json or {}).get("replayed") is False:
            decisions = [json.loads(r) for r in self.at.records()]
            run_id = [r["run_id"] for r in decisions if r["kind"] == "decision"][-1]
            self.holders[key] = Holder(bodies[0], run_id, CODES[bodies[0]] if POINTS[point] == "outcome" else "backend_lost", self.clock_s, None)
        # The second may have been the one that ran, and the first, killed before its answer, the one that was given it.
        if not any(self.is_it(answer, w, key, bodies[1]) for w in wanted):
            self.fault(f"{name}: wanted one of {wanted}, not {answer}")

    def run(self, n):
        for self.step in range(n):
            key, way = self.chance.choice(KEYS), self.chance.choice(WAYS)
            if self.chance.random() < 0.3:
                self.damage_index()
            if self.chance.random() < 0.15:
                self.clock_s += self.chance.choice((3600, DAY_S - 60, DAY_S + 60, DAY_S + 60))
                self.seen["clock moved"] += 1
            self.conclude_dead()
            if self.chance.random() < 0.3:
                self.two(key, [self.chance.randrange(2), self.chance.randrange(2)])
            else:
                self.one(key, self.chance.randrange(2), way)
            if len(self.faults) > 5:
                break

    def conclude_dead(self):
        """A killed run's outcome has the time of whoever wrote it, which is the next call, whatever its key."""
        for key, h in self.holders.items():
            if h.answer is None and h.code == "backend_lost" and not self.is_concluded(h.run_id):
                self.holders[key] = h._replace(ended_s=self.clock_s)

    def is_concluded(self, run_id):
        return any(json.loads(r).get("run_id") == run_id and json.loads(r)["kind"] == "outcome" for r in self.at.records())


def reconcile(at):
    p = subprocess.run([at.reeve, "audit", "reconcile", "--config", at.config], capture_output=True, text=True, timeout=60, check=False)
    print(p.stdout.strip().splitlines()[-1] if p.stdout else p.stderr)
    return [] if p.returncode == 0 else [f"reconcile: {p.stdout}{p.stderr}"]


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--reeve", required=True)
    a.add_argument("--steps", type=int, default=150)
    a.add_argument("--seed", type=int, default=int(time.time()) % 1000000)
    opt = a.parse_args()
    if os.geteuid() != 0:
        print("needs root")
        return 77
    with common.place(opt.reeve) as at:
        first = at.run()
        if first.code != "ok":
            sys.exit(f"a run without a key: {first}")
        print(f"seed {opt.seed}", flush=True)
        os.chmod(at.directory, 0o700)       # by its path the loop's user cannot reach the state
        trial = Trial(os.path.abspath(opt.reeve), at, opt.seed)
        trial.run(opt.steps)
        for what, n in sorted(trial.seen.items()):
            print(f"{what}: {n}")
        last = at.run()     # concludes what was killed last
        faults = trial.faults + ([] if last.code == "ok" else [f"the run after it all: {last}"])
        faults += [f"left: {x}" for x in common.left(at)] + common.check_log(at) + reconcile(at)
    print("\n".join(f"FAULT {f}" for f in faults) if faults else "keys: as it should be")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
