#!/usr/bin/python3
"""Tries to get out of a run, and compares what happened with what is expected.

    run.py --reeve BUILD/tools/reeve/reeve [--probe FILE] [--only REGEX] [--output FILE] [-v]
    run.py --self-test [--probe FILE]

A check is named after the row of the list of known escapes and faults that it stands for: 5/… is the list of
vectors, 9/… what the usual inspection tools look at, 10/… what users of such programs have reported, by number;
host/… is what is left on the host after a run. A check has one result: "denied", "allowed", or a word that says
what was found. The checks are made by three kinds of things: the probe, a static C program that is carried in
through standard input; the programs of programs/; and scenarios here, which judge a run from outside by its outcome.

expected/root.jsonl holds the results as root; expected/user.jsonl those that are others for an ordinary user.
Its lines: {"check", "result"}, where a list of results means any of them (kernels differ), and "known" is the
reason why a result that nobody would wish for stands there. A result that differs, a check that is missing and
one that is not expected are failures. --output writes what was found, a line a check; --accept makes it the
expectation (to be read before it is believed); -v prints the known ones.
Exit status 77 where the expectations do not apply.
"""
import argparse
import json
import os
import platform
import re
import sys
import tempfile

import host
import scenarios

HERE = os.path.dirname(os.path.abspath(__file__))


def read_expected(kind):
    """Check -> its line, of the kind's files."""
    expected = {}
    for name in ("root",) if kind == "root" else ("root", kind):
        path = os.path.join(HERE, "expected", name + ".jsonl")
        for number, line in enumerate(open(path, encoding="utf-8") if os.path.exists(path) else (), 1):
            entry = json.loads(line)
            if set(entry) - {"check", "result", "known"} or entry.get("known") == "":
                sys.exit(f"{path}:{number}: a line has check, result and perhaps known, with a reason")
            if name == kind and entry["check"] in expected and kind == "root":
                sys.exit(f"{path}:{number}: {entry['check']} is there twice")
            expected[entry["check"]] = entry
    return expected


def accept(kind, expected, found):
    """Rewrites the kind's file; lists of results and reasons stay where they still hold."""
    shared = read_expected("root") if kind != "root" else {}
    with open(os.path.join(HERE, "expected", kind + ".jsonl"), "w", encoding="utf-8") as f:
        for line in found:
            entry = expected.get(line["check"], {"result": None})
            if line["result"] not in (entry["result"] if isinstance(entry["result"], list) else [entry["result"]]):
                entry = {"check": line["check"], "result": line["result"]}
            if entry != shared.get(line["check"]):
                f.write(json.dumps(entry) + "\n")


def compare(expected, found):
    """Faults of a list of results against what is expected."""
    faults, seen = [], set()
    for line in found:
        check, want = line["check"], expected.get(line["check"])
        if check in seen:
            faults.append(f"twice: {check}: {line['result']}")
        elif want is None:
            faults.append(f"extra: {check}: {line['result']}")
        elif line["result"] not in (want["result"] if isinstance(want["result"], list) else [want["result"]]):
            faults.append(f"drift: {check}: {line['result']}{' (' + line['errno'] + ')' if line.get('errno') else ''}, expected {want['result']}")
        seen.add(check)
    return faults + [f"missing: {check}" for check in sorted(set(expected) - seen)]


# Outside a sandbox the kernel answers an ordinary user the same as the filter would, or on some kernels.
SAME_OUTSIDE = re.compile(r"calls/(acct|bpf|create_module|delete_module|fanotify_init|finit_module|fsmount|fsopen|fspick|init_module|kcmp|kexec_\w+|lookup_dcookie|move_mount|"
                          r"open_by_handle_at|pivot_root|ptrace-attach-init|reboot|setdomainname|sethostname|swapoff|swapon|syslog|uselib|userfaultfd|vhangup|"
                          r"cachestat|file_setattr|listmount|lsm_\w+|memfd_secret|open_tree_attr|setxattrat|statmount)$"
                          r"|5/(fsconfig|release-agent|null-inode)/|/setns-|/ioctl-")


def self_test(probe):
    want = {"a": {"check": "a", "result": "denied"}, "b": {"check": "b", "result": ["x", "y"]}}
    a, b = {"check": "a", "result": "denied"}, {"check": "b", "result": "y"}
    rows = [("as expected", [a, b], 0), ("drift", [{**a, "result": "allowed"}, b], 1), ("drift of a list", [a, {**b, "result": "z"}], 1), ("missing", [a], 1),
            ("extra", [a, b, {"check": "c", "result": "denied"}], 1), ("twice", [a, a, b], 1), ("nothing", [], 2)]
    faults = [f"self-test: {name}: {r}" for name, found, n in rows if len(r := compare(want, found)) != n]
    if probe:
        expected = read_expected("root")
        outside = {line["check"]: line["result"] for line in scenarios.run_outside(probe, ["calls", "clones"])}
        same = sorted(c for c, r in outside.items() if r.startswith("denied") and r == expected.get(c, {}).get("result"))
        faults += [f"self-test: {c} is {outside[c]} without a sandbox, too" for c in same if not SAME_OUTSIDE.search(c)]
        print(f"self-test: {len(outside) - len(same)} of {len(outside)} system calls answer otherwise without a sandbox")
    return faults


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--reeve", default="")
    a.add_argument("--probe", default="", help="default: tests/escape/probe of reeve's build")
    a.add_argument("--only", default="", metavar="REGEX", help="only the scenarios whose name matches; nothing is then missing")
    a.add_argument("--output", metavar="FILE")
    a.add_argument("--accept", action="store_true")
    a.add_argument("--self-test", action="store_true")
    a.add_argument("-v", action="store_true")
    opt = a.parse_args()
    if platform.machine() != "x86_64":
        print("escape: the expectations are of x86_64")
        return 77
    if opt.reeve:
        opt.reeve = os.path.abspath(opt.reeve)
        opt.probe = opt.probe or os.path.join(os.path.dirname(opt.reeve), "../../tests/escape/probe")
    if opt.self_test:
        faults = self_test(opt.probe)
        print("\n".join(faults) or "self-test: as it should be")
        return 1 if faults else 0
    if not opt.reeve:
        a.error("--reeve is missing")
    if opt.accept and opt.only:
        a.error("--accept is for all of them")

    kind = "root" if os.geteuid() == 0 else "user"
    with tempfile.TemporaryDirectory(prefix="escape-") as d:
        os.chmod(d, 0o755)
        found = scenarios.run_all(host.Harness(opt.reeve, opt.probe, d), opt.only)
    if opt.output:
        with open(opt.output, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(line) + "\n" for line in found)
    if opt.accept:
        accept(kind, read_expected(kind), found)
    expected = read_expected(kind)
    faults = [f for f in compare(expected, found) if not (opt.only and f.startswith("missing: "))]
    print("\n".join(faults) or f"escape: as expected as {kind}")
    known = [e for e in expected.values() if "known" in e]
    print(f"{len(found)} checks, of which {len(known)} are known not to be as one would wish")
    if opt.v:
        print("\n".join(f"known: {e['check']}: {e['result']}: {e['known']}" for e in known))
    print(f"{max(len(found) - len(faults), 0)} passed, {len(faults)} failed, 0 skipped")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
