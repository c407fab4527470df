#!/usr/bin/python3
"""What `reeve` does with its own streams: readers that stand still or are gone, full files, words that hold control characters;
and what its log hides and how the log's secret is erased.

    cli.py REEVE

The checks that run a program are left out, and said to be, where `reeve doctor` finds something missing.
Prints one line per failure. Exit status 1 if any failed.
"""
import fcntl, hashlib, json, os, signal, subprocess, sys, tempfile, time

MUCH = 'import sys\nwhile True: sys.stdout.write("x" * 65536)\n'
WORD = "\x1b[31mX\nY"
failures = []

def check(name, ok, got):
    if not ok:
        failures.append(name)
        print(f"FAILED {name}: {got!r}")

class Cli:
    def __init__(self, reeve, place):
        self.reeve, self.place = reeve, place
        for name, text in (("hello.py", "print('hi')\n"), ("much.py", MUCH), ("reeve.yaml", f"state_dir: {place}/state\n"),
                           ("signing.yaml", f"state_dir: {place}/signing\n")):
            with open(os.path.join(place, name), "w", encoding="ascii") as f:
                f.write(text)

    def start(self, *words, stdout=subprocess.PIPE):
        return subprocess.Popen([self.reeve, *words], cwd=self.place, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE)

    def run(self, *words, stdout=subprocess.PIPE):
        p = self.start(*words, stdout=stdout)
        out, err = p.communicate(timeout=60)
        return p.returncode, out, err.decode()

def words_are_shown(cli):
    os.mkdir(os.path.join(cli.place, "bundle"))
    with open(os.path.join(cli.place, "bundle/policy.lua"), "w", encoding="ascii") as f:
        f.write('error("\\27[31mX\\nY")\n')
    for words in (["run", "--" + WORD, "hello.py"], ["run", "--raw=" + WORD, "hello.py"], ["policy", "check", WORD],
                  ["policy", "check", "bundle"], ["runtime", WORD], ["runtime", "build", WORD], ["runtime", "verify", "--config", "reeve.yaml", WORD], ["doctor", "--config", WORD]):
        _, out, err = cli.run(*words)
        text = out.decode() + err
        check(f"{words[:2]} shows the word", "^[[31mX^JY" in text and "\x1b" not in text, text)

def lost_is_said(cli):
    bad = ["run", "--config", "reeve.yaml", "--timeout", "400"]
    with open("/dev/full", "wb") as full:
        for words in (bad + ["--json", "hello.py"], ["run", "--json", "--config", "nowhere", "hello.py"], ["version", "--json"]):
            status, _, err = cli.run(*words, stdout=full)
            check(f"{words} to a full file", status == 125 and "No space left" in err, (status, err))
    status, _, err = cli.run(*bad, "--outcome", "/dev/full", "hello.py")
    check("a problem to a full file", status == 125 and "No space left" in err, (status, err))

def runtimes(cli):
    """The commands about runtimes, as far as they need no build: tests/runtime has those."""
    for words, status, text in (
            (["runtime"], 2, "say list, build or verify"), (["runtime", "make"], 2, "no command make"), (["runtime", "build"], 2, "say which NAME"),
            (["runtime", "build", "host"], 2, "cannot be its name"), (["runtime", "build", "../x"], 2, "cannot be its name"), (["runtime", "build", ".x"], 2, "cannot be its name"),
            (["runtime", "build", "x", "--format", "tar"], 2, "directory or erofs"), (["runtime", "build", "x", "--mirror", "registry.example"], 2, "an address"),
            (["runtime", "build", "x", "--mirror", "http://registry.example/ x"], 2, "an address"), (["runtime", "build", "x", "--suite", "-x"], 2, "name of a release"),
            (["runtime", "build", "x", "--include", "a b"], 2, "names of packages"), (["runtime", "build", "x", "--output", "/proc/none"], 1, "say --output"),
            (["runtime", "verify", "nobody"], 2, "no runtime nobody"), (["runtime", "verify", "host"], 2, "have no digest"), (["runtime", "verify", "--config", "nowhere"], 125, "nowhere")):
        got, _, err = cli.run(*words)
        missing = words[1:2] == ["build"] and got == 1 and "is missing" in err
        check(f"{words}", (got == status and text in err) or missing, (got, err))
    with open(os.path.join(cli.place, "runtimes.yaml"), "w", encoding="ascii") as f:
        f.write(f"state_dir: {cli.place}/state\nruntimes: {{d: {{root: {cli.place}/root}}, gone: {{root: {cli.place}/gone}}}}\n")
    os.makedirs(os.path.join(cli.place, "root/usr/bin"))
    status, out, err = cli.run("runtime", "verify", "--config", "runtimes.yaml", "--json")
    said = {r["name"]: r for r in json.loads(out)}
    check("runtime verify", status == 1 and said["d"]["state"] == "unknown" and said["d"]["digest"].startswith("sha256:") and said["gone"]["state"] == "unreadable", out)
    with open(os.path.join(cli.place, "root.runtime.json"), "w", encoding="ascii") as f:
        json.dump({"schema": "reeve.runtime/1", "digest": said["d"]["digest"]}, f)
    status, out, err = cli.run("runtime", "verify", "--config", "runtimes.yaml", "d")
    check("runtime verify by the description", status == 0 and out.startswith(b"ok "), out)
    os.chmod(os.path.join(cli.place, "root/usr"), 0o700)
    status, out, err = cli.run("runtime", "verify", "--config", "runtimes.yaml", "d")
    check("runtime verify of what was changed", status == 1 and out.startswith(b"differs "), out)
    status, out, err = cli.run("runtime", "list", "--config", "runtimes.yaml", "--json")
    said = {r["name"]: r for r in json.loads(out)}
    check("runtime list", status == 1 and said["host"]["format"] == "host" and said["gone"]["state"] == "unusable" and "is not there" in said["gone"]["text"]
          and said["d"]["state"] == "unusable" and "interpreter" in said["d"]["text"], out)

def signing(cli):
    """The commands that sign: what they print, what they refuse, and that no key is written over."""
    def audit(*words):
        status, out, err = cli.run("audit", words[0], "--config", "signing.yaml", *words[1:])
        return status, out.decode(), err
    key = os.path.join(cli.place, "signing/keys/ed25519")
    def verifier():
        with open(key + ".pub", encoding="ascii") as f:
            return f.read()
    status, out, err = audit("keygen")
    check("keygen", status == 0 and out.endswith("verifier key " + verifier()) and not err, (status, out, err))
    first = verifier()
    status, out, err = audit("keygen")
    check("keygen again", status == 1 and not out and "is there already" in err and verifier() == first, (status, out, err))
    status, out, err = audit("keygen", "elsewhere")
    check("keygen FILE", status == 0 and os.stat(os.path.join(cli.place, "elsewhere")).st_mode & 0o777 == 0o600, (status, out, err))
    status, note, err = audit("checkpoint")
    lines = note.split("\n")
    check("checkpoint", status == 0 and lines[0] == first.split("+")[0] and int(lines[1]) > 0 and lines[4].startswith("\u2014 "), (status, note, err))
    check("checkpoint again", audit("checkpoint") == (0, note, ""), note)
    status, out, err = audit("rotate")
    check("rotate unconfirmed", status == 2 and "--yes" in err and verifier() == first, (status, out, err))
    status, out, err = audit("rotate", "--yes", "--destroy")
    kept = sorted(n for n in os.listdir(os.path.dirname(key)) if ".old-" in n)
    check("rotate", status == 0 and out.splitlines()[1] + "\n" == "verifier key " + verifier() != "verifier key " + first and
          len(kept) == 1 and kept[0].endswith(".pub"), (status, out, err, kept))
    os.rename(key, key + ".away")
    status, out, err = audit("checkpoint")
    check("a lost key", status == 125 and not out and "restore it from a copy" in err, (status, out, err))
    os.rename(key + ".away", key)
    for words in (("checkpoint", "x"), ("keygen", "a", "b"), ("rotate", "--no")):
        status, out, err = audit(*words)
        check(f"{words}", status == 2 and not out, (status, out, err))

def gone(cli):
    for words, wanted in ((["hello.py"], 0), (["--json", "hello.py"], 0), (["--json", "--timeout", "400", "hello.py"], 2)):
        r, w = os.pipe()
        os.close(r)
        status, _, err = cli.run("run", "--config", "reeve.yaml", *words, stdout=w)
        os.close(w)
        check(f"{words} to nobody", status == wanted and "annot write" not in err, (status, err))

def stalled(cli):
    outcome = os.path.join(cli.place, "o.json")
    p = cli.start("run", "--config", "reeve.yaml", "--timeout", "30", "--outcome", "o.json", "much.py")
    time.sleep(1.5)
    p.send_signal(signal.SIGTERM)
    time.sleep(1.2)
    with open(outcome, "rb") as f:
        text = f.read()
    check("the outcome comes before the reader", b'"shutdown"' in text and p.poll() is None, text[:200])
    try:
        status = p.wait(10)
    except subprocess.TimeoutExpired:
        p.kill()
        status = None
    check("a reader that stands still is given up", status == 125, status)
    p.communicate()

def one_signal(cli):
    p = cli.start("run", "--config", "reeve.yaml", "--json", "--timeout", "1", "much.py")
    time.sleep(2.5)
    p.send_signal(signal.SIGINT)
    time.sleep(0.5)
    out, _ = p.communicate(timeout=30)
    try:
        status = json.loads(out)["status"]
    except ValueError:
        status = out[-100:]
    check("one signal leaves the outcome whole", status == "failed" and p.returncode in (123, 124), (status, p.returncode))

def given_again(cli):
    """Output that was not kept is not left out in silence when the outcome is given again."""
    with open(os.path.join(cli.place, "long.py"), "w", encoding="ascii") as f:
        f.write("import sys\nsys.stdout.write('x' * 1000001)\nsys.stderr.write('e' * 10)\n")
    words = ["run", "--config", "reeve.yaml", "--key", "long", "long.py"]
    first, again = cli.run(*words), cli.run(*words)
    check("the first call prints all", first == (0, b"x" * 1000001, "e" * 10), (first[0], len(first[1]), first[2]))
    check("the next what was kept, and says so", again[:2] == (0, b"x" * 1000000) and again[2].startswith("e" * 10 + "\nreeve: ") and
          again[2].count("\n") == 2 and "1000001 bytes" in again[2], (again[0], len(again[1]), again[2]))
    check("JSON has it as a member", cli.run("run", "--json", *words[1:])[2] == "", "")

def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

def digest(value):
    return hashlib.sha256(value).hexdigest()

def records_of(state):
    """All records, the chain checked."""
    found, prev = [], "0" * 64
    for name in sorted(n for n in os.listdir(os.path.join(state, "audit")) if n.endswith(".jsonl")):
        with open(os.path.join(state, "audit", name), "rb") as f:
            for line in f.read().splitlines():
                record = json.loads(line)
                check(f"record {len(found)} of {state} is in its place", (record["seq"], record["prev"]) == (len(found), prev), record)
                found.append(record)
                prev = digest(line)
    return found

HIDING = """state_dir: %s/hiding
audit: {redact: [/tenant, /facts/request/tenant/labels/customer, "/facts/packages/*/name", "/facts/network/*/domain", "/env/*/name"]}
tenants: {umbrella: {labels: {customer: wile-e}}}
registries: {python: {index: "http://py.registry.test:9/simple/"}}
egress: {resolve: {py.registry.test: 127.0.0.1}}
"""
HIDDEN = (b"umbrella", b"wile-e", b"acme-anvil", b"acme_anvil", b"road-runner.example", b"ANVIL_TOKEN", b"beep-beep", b"meep")

def hiding(cli):
    state, request = os.path.join(cli.place, "hiding"), os.path.join(cli.place, "request.json")
    with open(os.path.join(cli.place, "hiding.yaml"), "w", encoding="ascii") as f:
        f.write(HIDING % cli.place)
    with open(request, "w", encoding="ascii") as f:
        json.dump({"language": "python", "source": "pass", "packages": ["Acme_Anvil>=1"], "env": {"ANVIL_TOKEN": "beep-beep"}, "stdin": "meep",
                   "network": {"mode": "domains", "domains": ["road-runner.example"]}}, f)
    status, out, err = cli.run("run", "--config", "hiding.yaml", "--tenant", "umbrella", "--json", "--request", request)
    # Nobody is at the registry's port: what is looked for there is not to be found in STATE either.
    answer = json.loads(out)
    check("the answer hides nothing", status == 125 and answer["tenant"] == "umbrella" and answer["reason"]["detail"]["package"] == "acme-anvil", (status, out, err))
    status, _, err = cli.run("run", "--config", "hiding.yaml", "--tenant", "umbrella", "--timeout", "400", "hello.py")
    check("rejected", status == 2, (status, err))
    for where, _, names in os.walk(state):
        for name in names:
            with open(os.path.join(where, name), "rb") as f:
                text = f.read().lower()
            check(f"{name} shows nothing", not any(h.lower() in text for h in HIDDEN), [h for h in HIDDEN if h.lower() in text])
    records = [r for r in records_of(state) if r["kind"] != "checkpoint"]
    kinds = [r["kind"] for r in records]
    check("what is recorded", kinds == ["config", "bundle_activated", "decision", "outcome", "rejected"], kinds)
    decision = records[2]
    check("context_sha256", decision["context_sha256"] == digest(canonical({"facts": decision["facts"], "bundle": decision["bundle"],
                                                                            "limits": decision["engine"]["limits"]})), decision)
    check("verdict_sha256", decision["verdict_sha256"] == digest(canonical(decision["verdict"])), decision)
    check("one tenant, one commitment", len({r["tenant"]["redacted"] for r in records if "tenant" in r}) == 1, records)
    check("the rejection's status", records[4]["status"] == 422, records[4])

def erasing(cli):
    state = os.path.join(cli.place, "hiding")
    def erase(*words):
        status, out, err = cli.run("audit", "erase", *words)
        return status, out.decode() + err
    def secret():
        with open(os.path.join(state, "keys/hmac"), encoding="ascii") as f:
            return f.read()
    old = secret()
    for words in ((), (state,), ("--yes", "--no"), ("--yes", cli.place), ("--yes", os.path.join(state, "nowhere")), ("--yes", state, state)):
        check(f"erase {words}", erase(*words)[0] == 2 and secret() == old, words)
    live = os.path.join(state, "audit/live", "0" * 32)
    with open(live, "w", encoding="ascii") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        status, text = erase("--yes", state)
        check("not while a reeve writes", status == 125 and "is running" in text and secret() == old, (status, text))
    os.unlink(live)
    status, text = erase("--yes", "--config", "hiding.yaml")
    new = secret()
    check("erased", status == 0 and new != old and len(new) == 65, (status, text))
    os.unlink(os.path.join(state, "keys/hmac"))
    status, _, err = cli.run("run", "--config", "hiding.yaml", "--tenant", "umbrella", "--timeout", "400", "hello.py")
    check("no secret, no run", status == 125 and "reeve audit erase --yes" in err, (status, err))
    status, text = erase("--yes", state)
    check("continued with a new one", status == 0 and secret() not in (old, new), (status, text))
    status, _, err = cli.run("run", "--config", "hiding.yaml", "--tenant", "umbrella", "--timeout", "400", "hello.py")
    check("and it goes on", status == 2, (status, err))
    records = records_of(state)
    gaps = [r["cause"] for r in records if r["kind"] == "gap"]
    tenants = [r["tenant"]["redacted"] for r in records if "tenant" in r]
    check("it is on record", gaps == ["secret_erased"] * 2, gaps)
    check("before and after cannot be compared", len(set(tenants)) == 2 and tenants[0] != tenants[-1], tenants)

def finding_packages(cli):
    """What doctor says of the tools that find packages, and of where they are kept; nobody is at the registries' port."""
    os.chmod(cli.place, 0o755)      # as root, doctor asks uv as another user
    uv = os.path.join(cli.place, "uv")
    with open(uv, "w", encoding="ascii") as f:
        f.write('#!/bin/sh\n[ "$1" = --version ] || exit 1\necho "uv 1.2.3 (made up)"\necho more\n')
    os.chmod(uv, 0o755)
    silent = os.path.join(cli.place, "silent")
    with open(silent, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\nexit 3\n")
    os.chmod(silent, 0o755)
    for settings, state, says in ((f"uv: {uv}", "ok", ("uv 1.2.3 (made up)", uv)), (f"resolver: uv, uv: {cli.place}/none", "missing", (f"{cli.place}/none", "packages.uv")),
                                  (f"uv: {silent}", "missing", (silent,)), ("resolver: pip", "note", ("packages.resolver",))):
        with open(os.path.join(cli.place, "packages.yaml"), "w", encoding="ascii") as f:
            f.write(f"state_dir: {cli.place}/packages\npackages: {{{settings}, store_max: 3GiB}}\n"
                    'registries: {python: {index: "http://127.0.0.1:9/simple/"}, javascript: {index: "http://127.0.0.1:9/"}}\n')
        _, out, err = cli.run("doctor", "--json", "--config", "packages.yaml")
        rows = {r["probe"]: r for r in json.loads(out)}
        got = rows.get("uv", {})
        check(f"doctor, {settings}", got.get("state") == state and all(w in got["text"] for w in says) and "more" not in got["text"], (rows, err))
        store = rows.get("package store", {})
        check("doctor: the store", store.get("state") == "ok" and "0 layers" in store["text"] and "of 3.0 GiB" in store["text"] and "0 locks held" in store["text"], rows)
        check("doctor: the helpers", "package helpers" not in rows, rows)

def main():
    reeve = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as place:
        cli = Cli(reeve, place)
        words_are_shown(cli)
        lost_is_said(cli)
        hiding(cli)
        erasing(cli)
        signing(cli)
        runtimes(cli)
        finding_packages(cli)
        if cli.run("doctor", "--config", "reeve.yaml")[0] == 0:
            for f in (gone, stalled, one_signal, given_again):
                f(cli)
        else:
            print("left out: what runs a program")
    return 1 if failures else 0

if __name__ == "__main__":
    sys.exit(main())
