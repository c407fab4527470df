#!/usr/bin/python3
"""`reeve audit show`, `export` and `replay` on the command line, over a log that `reeve run` writes by refusing.

    cli_audit.py REEVE

Runs that policy refuses start nothing, so this needs no isolation. Records of other kinds are appended by hand.
Prints one line per failure. Exit status 1 if any failed.
"""
import csv, hashlib, io, json, os, shutil, subprocess, sys, tempfile

POLICY = """return policy {
  packages = { rule { id = "pins-only", when = function(p) return not p.pinned end, deny = "name one version" }, default = "allow" },
  network = { rule { id = "offline", match = { mode = "none" }, allow = true }, default = "deny" },
  idempotency = { rule { id = "key", match = { mode = "any" }, require_key = true }, default = "none" },
  backend = { default = "tenant" },
}
"""
CANDIDATE = POLICY.replace('default = "deny"', 'default = "allow"')
CONFIG = """state_dir: {place}/state
tenants:
  local: {{ policy: bundle, shadow: candidate }}
  other: {{ policy: bundle }}
"""
RUNS = (["--network", "any", "hello.py"], ["--package", "six>=1", "hello.py"], ["--network", "any", "--key", "k", "hello.py"],
        ["--tenant", "other", "--network", "any", "hello.py"], ["--timeout", "900", "hello.py"])
failures = []


def check(name, ok, got):
    if not ok:
        failures.append(name)
        print(f"FAILED {name}: {got!r}")


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def root_of(lines):
    """RFC 6962, section 2.1, as it stands there."""
    if len(lines) == 0:
        return hashlib.sha256(b"").digest()
    if len(lines) == 1:
        return hashlib.sha256(b"\0" + lines[0]).digest()
    k = 1
    while k * 2 < len(lines):
        k *= 2
    return hashlib.sha256(b"\1" + root_of(lines[:k]) + root_of(lines[k:])).digest()


class Cli:
    def __init__(self, reeve, place):
        self.reeve, self.place = reeve, place
        os.chmod(place, 0o755)
        for name, text in (("hello.py", "print('hi')\n"), ("reeve.yaml", CONFIG.format(place=place))):
            self.write(name, text)
        for name, text in (("bundle", POLICY), ("candidate", CANDIDATE)):
            os.mkdir(os.path.join(place, name))
            self.write(name + "/policy.lua", text)

    def write(self, name, text):
        with open(os.path.join(self.place, name), "w", encoding="utf-8") as f:
            f.write(text)

    def run(self, *words):
        p = subprocess.run([self.reeve, *words], cwd=self.place, capture_output=True, timeout=60, check=False)
        return p.returncode, p.stdout, p.stderr.decode()

    def audit(self, *words):
        status, out, err = self.run("audit", *words)
        return status, out.decode(), err

    def segment(self, state="state"):
        folder = os.path.join(self.place, state, "audit")
        return os.path.join(folder, sorted(f for f in os.listdir(folder) if f.endswith(".jsonl"))[-1])

    def lines(self, state="state"):
        with open(self.segment(state), "rb") as f:
            return f.read().split(b"\n")[:-1]

    def append(self, state, kind, **members):
        last = self.lines(state)[-1]
        before = json.loads(last)
        record = {**{k: before[k] for k in ("log_id", "instance", "build", "time_us")}, **members, "kind": kind,
                  "seq": before["seq"] + 1, "prev": hashlib.sha256(last).hexdigest()}
        with open(self.segment(state), "ab") as f:
            f.write(canonical(record) + b"\n")

    def copy(self, name):
        shutil.copytree(os.path.join(self.place, "state"), os.path.join(self.place, name))
        return name


def fill(cli):
    for words in RUNS:
        status, _, err = cli.run("run", "--config", "reeve.yaml", *words)
        check(f"{words} is refused", status in (2, 126), (status, err))


def show(cli):
    status, out, err = cli.audit("show", "--config", "reeve.yaml")
    lines = out.splitlines()
    check("show lists runs", status == 0 and len(lines) == len(RUNS), (status, out, err))
    check("what was decided", "deny packages/pins-only" in lines[1] and "blocked package_denied" in lines[1], lines[1])
    check("a rejection", "rejected 422 /timeout_s range" in lines[4] or "rejected /timeout_s range" in lines[4], lines[4])
    entries = [json.loads(line) for line in cli.audit("show", "--json", "state")[1].splitlines()]
    check("and as JSON", [e["type"] for e in entries] == ["run"] * 4 + ["rejected"], entries)
    check("members of a run", entries[0]["rule"] == "default" and entries[0]["section"] == "network" and entries[0]["status"] == "blocked"
          and entries[0]["started"] == "no" and entries[0]["outcome_seq"] > entries[0]["seq"], entries[0])
    for words, n in ((["--tenant", "other"], 1), (["--rule", "pins-only"], 1), (["--rule", "key"], 3), (["--outcome", "blocked"], 4), (["--outcome", "network_denied"], 3),
                     (["--outcome", "rejected"], 1), (["--package", "Six"], 1), (["--package", "numpy"], 0), (["--limit", "2"], 2), (["--since", "1h"], 5),
                     (["--until", "2000-01-01"], 0), (["--since", "2000-01-01T00:00:00Z"], 5), (["--until", entries[1]["time"]], 2), (["--since", entries[3]["time"]], 2),
                     (["--since", entries[1]["time"], "--until", entries[2]["time"]], 2), (["--outcome", "open"], 0)):
        status, out, err = cli.audit("show", *words, "state")
        check(f"show {words}", status == 0 and len(out.splitlines()) == n, (status, out, err))
    everything = cli.audit("show", "--all", "state")[1]
    check("all kinds", "bundle_activated" in everything and "shadow" in everything and "config" in everything, everything)
    status, out, _ = cli.audit("show", "--id", entries[1]["run_id"][:12], "state")
    check("one run in full", status == 0 and out.count('"kind": "decision"') == 1 and out.count('"kind": "outcome"') == 1, out[:300])
    status, out, _ = cli.audit("show", "--json", "--id", entries[1]["decision_id"], "state")
    check("and as it lies", out.encode().split(b"\n")[:-1] == [l for l in cli.lines() if entries[1]["run_id"].encode() in l], out[:300])
    check("a run that is not there", cli.audit("show", "--id", "0" * 32, "state")[0] == 1, "")


def verdict(effect, code, *packages):
    denials = [{"section": "packages", "rule": rule, "item": item, "message": "m", "file": "policy.lua", "line": 1}
               for item, rule, e in packages if e == "deny"]
    return {"effect": effect, "code": code, "denials": denials, "packages": [{"item": item, "rule": rule, "effect": e} for item, rule, e in packages]}


def two_stages(cli):
    """A run with packages has a decision for each stage, and is told as one."""
    state = cli.copy("stages")
    for name, second in (("a", verdict("deny", "package_denied", ("idna", "late", "deny"), ("requests", "early", "allow"))),
                         ("b", verdict("allow", "ok", ("idna", "default", "allow"), ("requests", "early", "allow"))), ("c", None)):
        ids = {"decision_id": name * 32, "run_id": name * 32, "tenant": "local", "bundle": "x"}
        cli.append(state, "decision", stage="requested", facts={"packages": [{"name": "requests"}]},
                   verdict=verdict("allow", "ok", ("requests", "early", "undecided")), **ids)
        if second:
            cli.append(state, "decision", stage="resolved", facts={"packages": [{"name": "idna"}, {"name": "requests"}]}, verdict=second, **ids)
        code = "package_denied" if name == "a" else "ok" if name == "b" else "package_unavailable"
        cli.append(state, "outcome", status="blocked" if name == "a" else "failed", code=code, started="no", outcome_sha256="0" * 64, **ids)
    entries = [json.loads(line) for line in cli.audit("show", "--json", state)[1].splitlines()][len(RUNS):]
    check("one entry a run", [e["run_id"][0] for e in entries] == ["a", "b", "c"], entries)
    check("denied as resolved", entries[0]["effect"] == "deny" and entries[0]["rule"] == "late" and entries[0]["item"] == "idna" and entries[0]["stage"] == "resolved", entries[0])
    check("its place is that of the first", entries[0]["outcome_seq"] - entries[0]["seq"] == 2 and entries[2]["outcome_seq"] - entries[2]["seq"] == 1, entries)
    check("allowed in both", entries[1]["effect"] == "allow" and entries[2]["stage"] == "requested", entries[1:])
    for words, n in ((["--rule", "late"], 1), (["--rule", "early"], 3), (["--package", "idna"], 2), (["--package", "requests"], 3)):
        out = cli.audit("show", "--json", *words, state)[1]
        check(f"two stages, show {words}", len(out.splitlines()) == n, out)
    rows = list(csv.DictReader(io.StringIO(cli.audit("export", "--format", "csv", state)[1])))
    stages = [(r["stage"], r["effect"]) for r in rows if r["run_id"] == "a" * 32 and r["kind"] == "decision"]
    check("both are exported", stages == [("requested", "allow"), ("resolved", "deny")], stages)


def show_is_careful(cli):
    state = cli.copy("odd")
    cli.append(state, "decision", decision_id="d" * 32, run_id="e" * 32, tenant="a\x1b[31mb", verdict={"effect": "allow", "code": "ok", "denials": []}, facts={})
    cli.append(state, "rejected", run_id="f" * 32, tenant={"redacted": "hmac-sha256:" + "0" * 64}, errors=[{"pointer": "/\x07", "code": "range"}])
    status, out, _ = cli.audit("show", "odd")
    check("control characters are shown", status == 0 and "^[[31m" in out and "\x1b" not in out and "^G" in out, out[-400:])
    check("what is open comes last", out.splitlines()[-1].endswith("e" * 32) and " open " in out.splitlines()[-1], out[-300:])
    check("what is redacted is told by its commitment", "hmac-sha256" in out, out[-400:])
    with open(cli.segment(state), "ab") as f:
        f.write(b'{"half a')
    check("a line that is being written is no fault", cli.audit("show", "odd")[0] == 0, "")
    with open(cli.segment(state), "ab") as f:
        f.write(b"\n")
    status, _, err = cli.audit("show", "odd")
    check("a line that is no record is one", status == 2 and "byte" in err, (status, err))


    state = cli.copy("nameless")
    cli.append(state, "decision", run_id="e" * 32, tenant="local", verdict={"effect": "allow", "code": "ok", "denials": []}, facts={})
    status, _, err = cli.audit("show", state)
    check("a decision without an id is damage", status == 2 and "byte" in err, (status, err))


def digests(cli):
    """As docs/audit.md tells them."""
    for record in map(json.loads, cli.lines()):
        if record["kind"] == "decision":
            context = {"bundle": record["bundle"], "facts": record["facts"], "limits": record["engine"]["limits"]}
            check("context_sha256", hashlib.sha256(canonical(context)).hexdigest() == record["context_sha256"], record["seq"])
            for of in (record, record.get("shadow", record)):
                check("verdict_sha256", hashlib.sha256(canonical(of["verdict"])).hexdigest() == of["verdict_sha256"], record["seq"])


def export(cli):
    lines = cli.lines()
    status, out, err = cli.run("audit", "export", "--format", "jsonl", "state")
    check("lines as they lie", status == 0 and out == b"\n".join(lines) + b"\n", (status, err))
    check("the trailer", f"exported {len(lines)} records, seq 0 to {len(lines) - 1}, of the {len(lines)} of log " in err
          and f"size {len(lines)}, root {root_of(lines).hex()}, last hash {hashlib.sha256(lines[-1]).hexdigest()}" in err, err)
    status, out, err = cli.run("audit", "export", "--format", "jsonl", "--tenant", "other", "state")
    check("of one tenant", out.split(b"\n")[:-1] == [l for l in lines if json.loads(l).get("tenant") == "other"] and f"of the {len(lines)}" in err, err)
    state = cli.copy("gap")
    for name, text in (("00000000000000000000.jsonl", lines[:2]), ("00000000000000000003.jsonl", lines[3:])):
        with open(os.path.join(cli.place, state, "audit", name), "wb") as f:
            f.write(b"\n".join(text) + b"\n")
    status, out, err = cli.run("audit", "export", "--format", "jsonl", state)
    check("a log with a gap is not the whole one", status == 2 and out.count(b"\n") == len(lines) - 1 and "record 3 stands where record 2 should be" in err
          and "root" not in err, (status, err))
    state = cli.copy("formulas")
    cli.append(state, "rejected", run_id="f" * 32, tenant="=1+1", principal='say "hi", you\r\n', request_id="@x", trace_id="-1", message="+2", cause="\tx")
    status, _, err = cli.run("audit", "export", "--format", "csv", "--output", "out.csv", state)
    path = os.path.join(cli.place, "out.csv")
    with open(path, "rb") as f:
        text = f.read().decode()
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    check("a row a record", status == 0 and len(rows) == len(lines) + 1 and text.count("\r\n") >= len(rows) + 1, (status, err))
    check("its mode", os.stat(path).st_mode & 0o777 == 0o600, oct(os.stat(path).st_mode))
    check("cells", [r["seq"] for r in rows] == [str(i) for i in range(len(rows))] and rows[0]["kind"] == "config"
          and all(r["sha256"] == n["prev"] for r, n in zip(rows, rows[1:])), rows[0])
    last = rows[-1]
    check("formulas and quotes", [last[c] for c in ("tenant", "principal", "request_id", "trace_id", "message", "cause")]
          == ["'=1+1", 'say "hi", you\r\n', "'@x", "'-1", "'+2", "'\tx"], last)
    check("no negative number is a formula", all(r["time_us"].isdigit() for r in rows), "")
    with open("/dev/full", "wb") as full:
        p = subprocess.run([cli.reeve, "audit", "export", "--format", "csv", "state"], cwd=cli.place, stdout=full, stderr=subprocess.PIPE, check=False)
    check("a full file is said", p.returncode == 125 and b"not complete" in p.stderr and b"exported" not in p.stderr, p.stderr)


def replay(cli):
    status, out, err = cli.audit("replay", "--config", "reeve.yaml")
    check("replay is the same", status == 0 and "same                          4" in out, (status, out, err))
    result = json.loads(cli.audit("replay", "--json", "state")[1])
    check("its JSON", result["enforced"]["same"] == 4 and result["shadow"]["same"] == 3 and result["exit_status"] == 0 and result["failed_on"] == [], result)
    check("the shadow's flips", result["changes"]["by_kind"]["widen"]["n"] == 2 and result["changes"]["by_kind"]["allow"]["n"] == 1, result["changes"])
    for words, wanted in ((["--fail-on", "deny,backend,key"], 0), (["--fail-on", "allow"], 1), (["--fail-on", "key,widen"], 1), ([], 0),
                          (["--fail-on", "widen", "--tenant", "nobody"], 0), (["--fail-on", "widen", "--jobs", "3"], 1)):
        status, out, err = cli.audit("replay", "--candidate", "candidate", *words, "state")
        check(f"a candidate with {words}", status == wanted, (status, out, err))
    result = json.loads(cli.audit("replay", "--json", "--candidate", "candidate", "--fail-on", "widen,deny", "state")[1])
    groups = [(g["change"], g["tenant"], g["section"], g["rule_before"], g["rule_now"], g["n"]) for g in result["changes"]["groups"]]
    check("flips by tenant and rule", ("widen", "local", "network", "default", "default", 2) in groups and ("widen", "other", "network", "default", "default", 1) in groups
          and result["failed_on"] == ["widen"] and result["exit_status"] == 1, groups)
    os.mkdir(os.path.join(cli.place, "typo"))
    with open(os.path.join(cli.place, "typo/policy.lua"), "w", encoding="ascii") as f:
        f.write("return policy {\n  packages = { default = 'allow' }\n  network = {},\n}\n")
    status, out = cli.audit("replay", "--candidate", "typo", "--fail-on", "allow,widen", "state")[:2]
    check("a candidate that fails on everything passes no gate", status == 2 and "the candidate itself fails" in out and "policy.lua:3" in out, (status, out))
    check("the bundle itself changes nothing", "changed                       0" in cli.audit("replay", "--candidate", "bundle", "--fail-on", "allow,deny,widen,backend,key", "state")[1], "")


def replay_finds(cli):
    state = cli.copy("without")
    shutil.rmtree(os.path.join(cli.place, state, "bundles"))
    status, out, _ = cli.audit("replay", state)
    check("without bundles nothing can be replayed", status == 3 and "bundle                        4" in out, (status, out))
    check("with others' it can", cli.audit("replay", "--bundles", "state/bundles", state)[0] == 0, "")
    state = cli.copy("changed")
    with open(cli.segment(state), "rb") as f:
        text = f.read()
    with open(cli.segment(state), "wb") as f:
        f.write(text.replace(b'"source_characters":12', b'"source_characters":13'))
    status, out, _ = cli.audit("replay", "--no-verify", state)
    check("a changed fact is damage", status == 2 and "corrupt" in out and "context_sha256" in out, (status, out))
    status, out, _ = cli.audit("replay", state)
    check("with the chain too", status == 2, (status, out))


def places(cli):
    """What cannot be read, and a key in a directory that is its owner's alone."""
    for words in (["verify", "nowhere"], ["verify", "hello.py"], ["prove", "0", "nowhere"]):
        status, _, err = cli.audit(*words)
        check(f"{words} cannot be read", status == 125 and err.startswith("reeve: "), (status, err))
    check("no configuration", cli.audit("verify", "--config", "nowhere.yaml")[0] == 2, "")
    for words in (["verify"], ["reconcile"], ["show"], ["replay"], ["export", "--format", "csv"], ["prove", "0"]):
        check(f"{words} of a directory without a log", cli.audit(*words, "bundle")[0] == 2, "")
    state = cli.copy("closed")
    for words, wanted in ((["verify"], 125), (["prove", "0"], 125), (["reconcile"], 2), (["show"], 2), (["replay"], 2)):
        try:
            p = subprocess.run([cli.reeve, "audit", *words, state], cwd=cli.place, capture_output=True, check=False, user=65534, group=65534, extra_groups=[])
        except PermissionError:
            break       # not as root, or the binary lies where that user cannot come
        check(f"{words} of a log that is another's", p.returncode == wanted and b"Permission denied" in p.stderr and not p.stdout, (p.returncode, p.stderr))
    state = cli.copy("with-pipe")
    last = cli.segment(state)
    os.rename(last, last + ".old")
    os.mkfifo(last)
    for words in (["reconcile"], ["verify"], ["show"], ["replay"], ["export", "--format", "csv"]):
        status, _, err = cli.audit(*words, state)
        check(f"{words} of a pipe", status == 2, (status, err))
    cli.write("key.yaml", f"state_dir: {cli.place}/keyed\naudit: {{ key: {cli.place}/secrets/audit.key }}\n")
    os.mkdir(os.path.join(cli.place, "secrets"), 0o700)
    check("a key elsewhere", cli.audit("keygen", "--config", "key.yaml")[0] == 0 and cli.audit("checkpoint", "--config", "key.yaml")[0] == 0, "")
    status, out, err = cli.audit("verify", "--config", "key.yaml")
    check("is found", status == 0 and "the log is good" in out, (status, out, err))


def usage(cli):
    for words in (["replay", "--fail-on", "allow", "state"], ["replay", "--candidate", "candidate", "--fail-on", "other", "state"], ["replay", "--jobs", "0", "state"],
                  ["replay", "--from", "x", "state"], ["replay", "--candidate", "nowhere", "state"], ["replay", "--nope"], ["replay", "a", "b"], ["replay", "nowhere"],
                  ["show", "--since", "x"], ["show", "--limit", "0", "state"], ["show", "--id", "12", "state"], ["show", "nowhere"], ["show", "bundle"],
                  ["export", "state"], ["export", "--format", "xml", "state"], ["export", "--format", "csv", "nowhere"], ["replay", "--fail-on", "", "--candidate", "bundle", "state"]):
        status, out, err = cli.audit(*words)
        check(f"{words} is wrong usage", status == 2 and err.startswith("reeve: ") and not out, (status, out, err))
    for command in ("show", "export", "replay"):
        status, out, _ = cli.audit(command, "--help")
        check(f"{command} --help", status == 0 and out.startswith(f"usage: reeve audit {command}"), out[:80])


def main():
    reeve = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        cli = Cli(reeve, place)
        fill(cli)
        if not failures:
            for f in (show, two_stages, show_is_careful, digests, export, replay, replay_finds, places, usage):
                f(cli)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
