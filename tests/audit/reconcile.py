#!/usr/bin/python3
"""`reeve audit reconcile` on logs made up here: each kind of finding, and what is none.

    reconcile.py REEVE

A log is a few records that hold what reconcile looks at. Prints one line per failure. Exit status 1 if any failed.
"""
import fcntl
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time

NOW_US = int(time.time() * 1000000)
HOUR_US = 3600 * 1000000
BYTES = b'{"an":"outcome"}'
failures = []


def hex_of(name, n=32):
    return hashlib.sha256(name.encode()).hexdigest()[:n]


def decision(d, key=None, at=0, effect="allow", **more):
    record = {"kind": "decision", "decision_id": hex_of(d), "instance": hex_of("writer"), "verdict": {"effect": effect}, "time_us": NOW_US + at, **more}
    if key:
        record["key"] = {"bytes": 1, "fingerprint": hex_of("body", 64), "hmac_sha256": hex_of(key, 64)}
    return record


def outcome(d, started="yes", at=1, text=BYTES):
    return {"kind": "outcome", "decision_id": hex_of(d), "started": started, "time_us": NOW_US + at, "outcome_sha256": hashlib.sha256(text).hexdigest()}


def replay(d, text=BYTES):
    return {"kind": "idempotent_replay", "decision_id": hex_of(d), "time_us": NOW_US + 2, "outcome_sha256": hashlib.sha256(text).hexdigest()}


A = [decision("a"), outcome("a")]
KEYED = [decision("a", "k"), outcome("a")]

# name, records, stored {decision: bytes}, the kinds that are found.
CASES = [
    ("an empty log", [], {}, []),
    ("one run", A, {}, []),
    ("two stages", [decision("a"), decision("a"), outcome("a")], {}, []),
    ("the second stage after the outcome", [decision("a"), outcome("a"), decision("a")], {}, ["outcome_before_decision"]),
    ("a rejection", [{"kind": "rejected", "time_us": 1}], {}, []),
    ("no outcome", A + [decision("b")], {}, ["decision_without_outcome"]),
    ("no decision", [outcome("a")], {}, ["outcome_without_decision"]),
    ("outcome first", [outcome("a"), decision("a")], {}, ["outcome_before_decision"]),
    ("two outcomes", A + [outcome("a")], {}, ["two_outcomes"]),
    ("a key", KEYED, {"a": BYTES}, []),
    ("given again", KEYED + [replay("a")], {"a": BYTES}, []),
    ("given again, otherwise", KEYED + [replay("a", b"other")], {"a": BYTES}, ["replay_without_outcome"]),
    ("given again, unknown", [replay("a")], {}, ["replay_without_outcome"]),
    ("stored bytes are missing", KEYED, {}, ["stored_missing"]),
    ("stored bytes are too old to be missed", [decision("a", "k", at=-25 * HOUR_US), outcome("a", at=-25 * HOUR_US)], {}, []),
    ("nothing is stored of a run that did not start", [decision("a", "k"), outcome("a", "no")], {}, []),
    ("stored bytes are others", KEYED, {"a": b"other"}, ["stored_differs"]),
    ("stored bytes of nothing", A, {"b": BYTES}, ["stored_without_record"]),
    ("a key twice", KEYED + [decision("b", "k"), outcome("b")], {"a": BYTES, "b": BYTES}, ["key_ran_twice"]),
    ("a key twice at once", [decision("a", "k"), decision("b", "k"), outcome("a"), outcome("b")], {"a": BYTES, "b": BYTES}, ["key_ran_twice"]),
    ("a key again, unknown before", [decision("a", "k"), outcome("a", "unknown"), decision("b", "k"), outcome("b")], {"a": BYTES, "b": BYTES}, ["key_ran_twice"]),
    ("a key again, not started before", [decision("a", "k"), outcome("a", "no"), decision("b", "k"), outcome("b")], {"b": BYTES}, []),
    ("a key again a day later", [decision("a", "k", at=-25 * HOUR_US), outcome("a", at=-25 * HOUR_US), decision("b", "k"), outcome("b")], {"b": BYTES}, []),
    ("a key again, denied", KEYED + [decision("b", "k", effect="deny"), outcome("b", "no")], {"a": BYTES}, []),
    ("a key again, refused", KEYED + [decision("b", "k", refused="backend_denied"), outcome("b", "no")], {"a": BYTES}, []),
    ("all at once", [outcome("x"), decision("y"), decision("a", "k"), outcome("a"), outcome("a"), decision("b", "k"), outcome("b")], {"z": BYTES},
     ["two_outcomes", "key_ran_twice", "outcome_without_decision", "decision_without_outcome", "stored_missing", "stored_missing", "stored_without_record"]),
]


def write(state, records, stored, first=0):
    os.makedirs(os.path.join(state, "audit/live"))
    os.makedirs(os.path.join(state, "outcomes"))
    middle = len(records) // 2
    for begin, part in ((0, records[:middle]), (middle, records[middle:])) if records else ():
        with open(os.path.join(state, f"audit/{first + begin:020}.jsonl"), "w", encoding="utf-8") as f:
            for i, r in enumerate(part):
                f.write(json.dumps({**r, "seq": first + begin + i}, sort_keys=True, separators=(",", ":")) + "\n")
    for d, text in stored.items():
        with open(os.path.join(state, "outcomes", hex_of(d)), "wb") as f:
            f.write(text)


def run(reeve, *words):
    p = subprocess.run([reeve, "audit", "reconcile", *words], capture_output=True, text=True, timeout=30, check=False)
    return p.returncode, p.stdout, p.stderr


def check(name, ok, got):
    if not ok:
        failures.append(name)
        print(f"FAILED {name}: {got!r}")


def cases(reeve, top):
    for i, (name, records, stored, wanted) in enumerate(CASES):
        state = os.path.join(top, str(i))
        write(state, records, stored, first=i % 3 * 100)
        status, out, err = run(reeve, "--json", state)
        answer = json.loads(out) if out else {"findings": []}
        check(name, [f["kind"] for f in answer["findings"]] == wanted and status == (1 if wanted else 0), (status, out, err))
        status, out, err = run(reeve, state)
        lines = out.splitlines()
        check(f"{name}, as text", len(lines) == len(wanted) + 1 and status == (1 if wanted else 0), (status, out, err))
        status, out, err = run(reeve, "--json", os.path.join(state, "audit"))
        answer = json.loads(out) if out else {"findings": []}
        check(f"{name}, the log alone", [f["kind"] for f in answer["findings"]] == [w for w in wanted if not w.startswith("stored")], (status, out, err))


def living(reeve, top):
    """Whose lock is held lives, and its run may be in flight."""
    state = os.path.join(top, "living")
    write(state, A + [decision("b", "k")], {"b": BYTES})
    with open(os.path.join(state, "audit/live", hex_of("writer")), "w", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        status, out, err = run(reeve, "--json", state)
        check("a living owner", status == 0 and json.loads(out)["in_flight"] == 1, (status, out, err))
    status, out, err = run(reeve, "--json", state)
    check("a dead owner", status == 1 and [f["kind"] for f in json.loads(out)["findings"]] == ["decision_without_outcome", "stored_without_record"], (status, out, err))


def damaged(reeve, top):
    state = os.path.join(top, "damaged")
    write(state, A + [decision("b"), outcome("a")], {})
    path = os.path.join(state, "audit", f"{2:020}.jsonl")
    with open(path, encoding="utf-8") as f:
        lines = f.read().splitlines(keepends=True)
    for name, text in (("a record is missing", lines[1]), ("no record", "nonsense\n" + lines[1]), ("a record twice", lines[0] + lines[0])):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        status, out, err = run(reeve, state)
        check(name, status == 2 and path.rsplit("/", 1)[1] in err and not out, (status, out, err))
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(lines) + '{"incomplete')
    status, out, err = run(reeve, state)
    check("an incomplete line is none yet", status == 1 and "4 records" in out, (status, out, err))
    for words in (["--nonsense"], [state, state], [os.path.join(top, "nowhere")]):
        status, out, err = run(reeve, *words)
        check(f"usage {words}", status == 2 and err.startswith("reeve: "), (status, out, err))


def main():
    reeve = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="reconcile-") as top:
        cases(reeve, top)
        living(reeve, top)
        damaged(reeve, top)
    print(f"{len(CASES)} logs, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
