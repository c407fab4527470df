#!/usr/bin/python3
"""The second place of the audit log, as an operator meets it: `reeve run`, `reeve audit send` and `reeve doctor`.

    sink.py REEVE

Requests that are rejected write records without running a program, so most of this needs no sandbox. Prints one line
per failure and a last line with what was measured. Exit status 1 if any failed.
"""
import json, os, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import servers
from servers import Server

failures = []

def check(name, ok, got=None):
    if not ok:
        failures.append(name)
        print(f"FAILED {name}: {got!r}"[:2000])

class Place:
    """A configuration with a state directory of its own and a sink."""
    def __init__(self, reeve, top, name):
        self.reeve, self.dir = reeve, os.path.join(top, name)
        os.mkdir(self.dir, 0o755)
        os.chmod(self.dir, 0o755)
        self.out = self.path("out/received.jsonl")
        os.mkdir(self.path("out"))
        os.chmod(self.path("out"), 0o777)
        with open(self.path("hello.py"), "w", encoding="ascii") as f:
            f.write("print('hi')\n")

    def path(self, name):
        return os.path.join(self.dir, name)

    def sink(self, **keys):
        keys.setdefault("records", True)
        with open(self.path("reeve.yaml"), "w", encoding="ascii") as f:
            f.write(f"state_dir: {self.path('state')}\nphases: {{queue: 2s}}\naudit:\n  sink:\n")
            f.writelines(f"    {k}: {json.dumps(v)}\n" for k, v in keys.items())

    def command(self, name, body):
        with open(self.path(name), "w", encoding="ascii") as f:
            f.write(f"#!/bin/sh\ncd {self.path('out')} || exit 9\n{body}\n")
        os.chmod(self.path(name), 0o755)
        return "command:" + self.path(name)

    def call(self, *words, timeout=60):
        p = subprocess.run([self.reeve, *words], cwd=self.dir, capture_output=True, timeout=timeout, check=False)
        return p.returncode, p.stdout.decode(), p.stderr.decode()

    def reject(self):
        """A run that leaves a `rejected` record behind."""
        return self.call("run", "--json", "--config", "reeve.yaml", "--timeout", "400", "hello.py")

    def send(self, *words):
        return self.call("audit", "send", "--config", "reeve.yaml", *words)

    def log(self):
        text = b""
        for name in sorted(os.listdir(self.path("state/audit"))):
            if name.endswith(".jsonl"):
                with open(self.path("state/audit/" + name), "rb") as f:
                    text += f.read()
        return text

    def received(self):
        with open(self.out, "rb") as f:
            return f.read()

def seqs(text):
    return [json.loads(line)["seq"] for line in text.splitlines()]

def file_sink(reeve, top):
    p = Place(reeve, top, "file")
    p.sink(to="file:" + p.out)
    for _ in range(3):
        check("a run says what it would say", p.reject()[0] == 2)
    check("every record is there", p.received() == p.log() and len(seqs(p.log())) >= 5, p.received())
    status, out, _ = p.send("--json")
    check("nothing is left", status == 0 and json.loads(out) == {"to": "file:" + p.out, "records": 0, "bytes": 0, "lag_bytes": 0, "error": None}, out)
    if os.geteuid() == 0:
        os.chmod(p.path("out"), 0o700)
        os.chmod(p.out, 0o600)
        p.reject()
        check("a file that is root's, in root's directory", os.stat(p.out).st_uid == 0 and p.received() == p.log())
    os.unlink(p.path("state/audit/sent"))
    check("a mark that is lost", p.send()[0] == 0 and p.received() == p.log() * 2)

def failing(reeve, top):
    p = Place(reeve, top, "failing")
    p.sink(to=p.command("ship", "cat >/dev/null; echo 'no such host' >&2; exit 3"))
    status, out, err = p.reject()
    check("the answer stays what it is", status == 2 and json.loads(out)["status"] == 422, out)
    check("a failing sink is said once, with the lag", err.count("reeve: warning:") == 1 and "no such host" in err and "not delivered" in err, err)
    status, out, err = p.send("--json")
    report = json.loads(out)
    check("audit send fails", status == 1 and "no such host" in report["error"] and report["lag_bytes"] == len(p.log()) and "no such host" in err, (out, err))
    rows = {r["probe"]: r for r in json.loads(p.call("doctor", "--json", "--config", "reeve.yaml")[1])}
    check("doctor tells the lag and the error", rows["audit sink"]["state"] == "note" and "no such host" in rows["audit sink"]["text"], rows.get("audit sink"))
    p.command("ship", "cat >>received.jsonl")
    check("audit send delivers", p.send()[0] == 0 and p.received() == p.log())
    p.reject()
    rows = {r["probe"]: r for r in json.loads(p.call("doctor", "--json", "--config", "reeve.yaml")[1])}
    check("and all is well", rows["audit sink"]["state"] == "ok", rows["audit sink"])

def slow(reeve, top):
    p = Place(reeve, top, "slow")
    p.sink(to=p.command("ship", "cat >/dev/null; sleep 30"), timeout="700ms")
    began = time.monotonic()
    status, _, err = p.reject()
    took = time.monotonic() - began
    check("a slow sink costs its timeout and no more", status == 2 and 0.6 < took < 3 and "took too long" in err, (took, err))
    q = subprocess.Popen([reeve, "run", "--json", "--config", "reeve.yaml", "--timeout", "400", "hello.py"], cwd=p.dir, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    began = time.monotonic()
    q.stdout.readline()
    check("the answer comes before", time.monotonic() - began < 0.5 and q.poll() is None, time.monotonic() - began)
    q.communicate()

def hanging(reeve, top):
    """One run waits for a sink that hangs; those that follow leave it alone for a while."""
    p = Place(reeve, top, "hanging")
    p.sink(to=p.command("ship", "sleep 30"), timeout="1200ms")
    check("the first finds out", p.reject()[0] == 2)
    began = time.monotonic()
    status, _, err = p.reject()
    check("the next does not wait", status == 2 and time.monotonic() - began < 1, time.monotonic() - began)
    check("and says so", err.count("reeve: warning:") == 1 and "took too long" in err and "tried again in" in err and "not delivered" in err, err)
    p.command("ship", "cat >>received.jsonl")
    check("audit send does", p.send()[0] == 0 and p.received() == p.log())
    check("and then all is as it was", "warning" not in p.reject()[2] and p.received() == p.log())

def behind(reeve, top):
    for how in ("deny", "wait"):
        p = Place(reeve, top, "behind-" + how)
        keys = {"to": p.command("ship", "cat >/dev/null; exit 1"), "behind": how, "lag_max": "4KiB"}
        p.sink(**keys)
        for _ in range(30):
            status, out, err = p.reject()
            if status != 2:
                break
        problem = json.loads(out)
        last = [r for r in map(json.loads, p.log().splitlines()) if r["kind"] == "rejected"][-1]
        check(f"{how}: refused", status == 125 and problem["status"] == 503 and "ship" in problem["detail"] and "behind" in problem["detail"], (status, out))
        check(f"{how}: on record", last["status"] == 503 and last["tenant"] == "local" and "decision_id" not in last, last)
        check(f"{how}: and nothing else is", sum(json.loads(line)["kind"] == "decision" for line in p.log().splitlines()) == 0)
        lag = len(p.log())
        check(f"{how}: not before lag_max", lag > 4096 and lag < 4096 + 3000, lag)
        began = time.monotonic()
        check(f"{how}: again", p.call("run", "--config", "reeve.yaml", "hello.py")[0] == 125)
        took = time.monotonic() - began
        check(f"{how}: in time", took < 1.5 if how == "deny" else 2 <= took < 4, took)
        p.command("ship", "cat >>received.jsonl")
        if how == "wait":
            status, _, _ = p.reject()
            check("wait: what can be delivered is, and the run goes on", status == 2, status)
        else:
            check("deny: the run is still refused", p.reject()[0] == 125)
            check("deny: but has delivered by its end", p.reject()[0] == 2)
        check(f"{how}: nothing is lost", p.received() == p.log())

def wait_for_another(reeve, top):
    """A run finds the sink behind, and another process delivering: it waits for that."""
    p = Place(reeve, top, "another")
    p.sink(to=p.command("ship", "exit 1"), behind="wait", lag_max="4KiB")
    while p.reject()[0] == 2:
        pass
    p.sink(to=p.command("ship", "sleep 1; cat >>received.jsonl"), behind="wait", lag_max="4KiB")
    sender = subprocess.Popen([reeve, "audit", "send", "--config", "reeve.yaml"], cwd=p.dir, stdout=subprocess.DEVNULL)
    time.sleep(0.4)
    check("waited", p.reject()[0] == 2)
    check("both delivered", sender.wait(10) == 0 and p.send()[0] == 0 and p.received() == p.log())

def https(reeve, top):
    p = Place(reeve, top, "https")
    servers.make_authority(p.dir, "ca")
    servers.make_authority(p.dir, "other")
    context = servers.make_certificate(p.dir, "ca", "server")
    os.chmod(p.path("ca.pem"), 0o644)
    os.chmod(p.path("other.pem"), 0o644)
    with open(p.path("headers"), "w", encoding="ascii") as f:
        f.write("Authorization: Bearer secret-token\n\nX-Source: reeve\n")
    os.chmod(p.path("headers"), 0o600)
    how, received = {"status": 200, "n": 0}, bytearray()

    def collect(q, c):
        how["n"] += 1
        if how["status"] == "half":
            ok = how["n"] % 2 == 0
            if ok:
                received.extend(q.body)
            return c.reply(200 if ok else 503, b"")
        if how["status"] == "redirect":
            return c.reply(302, b"", "Location: /elsewhere")
        if how["status"] == 200:
            received.extend(q.body)
        return c.reply(how["status"], b"{}")

    with Server(collect, context) as s:
        keys = {"to": s.url("/reeve?key=hidden"), "ca": p.path("ca.pem"), "header_file": p.path("headers"), "timeout": "5s"}
        p.sink(**keys)
        status, _, err = p.reject()
        q = s.requests[0]
        check("https", status == 2 and err.count("warning") == 0 and bytes(received) == p.log(), err)
        check("as it should be asked", q.line.startswith("POST /reeve?key=hidden") and q.headers["content-type"] == "application/x-ndjson" and q.headers["x-source"] == "reeve"
              and q.headers["authorization"] == "Bearer secret-token" and q.headers["user-agent"].startswith("reeve/"), q.headers)
        for answer in (500, 404, 401, "redirect"):
            how["status"] = answer
            _, _, err = p.reject()
            check(f"an answer of {answer}", "warning" in err and "hidden" not in err and "secret-token" not in err and ("redirect" if answer == "redirect" else str(answer)) in err, err)
        how["status"] = "half"
        for _ in range(20):
            p.reject()
        while p.send()[0] != 0:
            pass
        check("half of the answers fail: all are there, in order", bytes(received) == p.log(), (len(received), len(p.log())))
        how["status"] = 200
        p.sink(**{**keys, "ca": p.path("other.pem")})
        _, _, err = p.reject()
        check("another CA", "tls" in err, err)
        os.chmod(p.path("headers"), 0o644)
        p.sink(**keys)
        _, _, err = p.reject()
        check("headers that others can read", "0600" in err, err)
    os.chmod(p.path("headers"), 0o600)
    _, _, err = p.reject()
    check("nobody there", "unreachable" in err, err)

def crash(reeve, top):
    """reeve is killed after the sink has the batch and before the mark is moved."""
    p = Place(reeve, top, "crash")
    p.sink(to=p.command("ship", "cat >>received.jsonl; touch has; sleep 5"))
    q = subprocess.Popen([reeve, "run", "--config", "reeve.yaml", "--timeout", "400", "hello.py"], cwd=p.dir, stderr=subprocess.DEVNULL)
    while not os.path.exists(p.path("out/has")):
        time.sleep(0.01)
    q.kill()
    q.wait()
    first = p.received()
    p.command("ship", "cat >>received.jsonl")
    check("after a crash", p.send()[0] == 0)
    got = seqs(p.received())
    check("it comes again, nothing is missing", first and p.received() == first + p.log() and sorted(set(got)) == seqs(p.log()), got)

def at_once(reeve, top):
    p = Place(reeve, top, "at-once")
    p.sink(to=p.command("ship", "cat >>received.jsonl"))
    p.reject()
    threads = [threading.Thread(target=lambda: [p.reject() for _ in range(10)]) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    check("what four left", p.send()[0] == 0)
    check("every line once, in order", p.received() == p.log() and len(seqs(p.log())) >= 41, len(seqs(p.received())))

def much(reeve, top):
    """A log of 100 MiB that nobody has sent so far: memory and time."""
    p = Place(reeve, top, "much")
    p.sink(to="file:" + p.out)
    p.reject()
    p.command("ship", "exec cat >/dev/null")
    log = p.path("state/audit/00000000000000000000.jsonl")
    record = json.loads(p.log().splitlines()[-1])
    owner = os.stat(log)
    with open(log, "ab") as f:
        for i in range(100000):
            record["seq"] += 1
            record["text"] = "x" * 600
            f.write(json.dumps(record, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    os.chown(log, owner.st_uid, owner.st_gid)
    sizes = {}
    with open(reeve, "rb") as f:
        is_sanitized = b"__asan_init" in f.read()
    for name, to in (("file", "file:" + p.out), ("command", "command:" + p.path("ship"))):
        p.sink(to=to, timeout="30s")
        if os.path.exists(p.path("state/audit/sent")):
            os.unlink(p.path("state/audit/sent"))
        began = time.monotonic()
        child = subprocess.Popen([reeve, "audit", "send", "--config", "reeve.yaml"], cwd=p.dir, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(child.pid, 0)
        sizes[name] = (time.monotonic() - began, usage.ru_maxrss // 1024)
        check(f"100 MiB to a {name}", status == 0, status)
        check(f"memory for a {name} is bounded", is_sanitized or usage.ru_maxrss < 40 * 1024, usage.ru_maxrss)
    check("all of it", p.received().endswith(p.log()))
    return "; ".join(f"{os.path.getsize(log) / 1e6:.0f} MB to a {n}: {s:.1f} s, {m} MiB" for n, (s, m) in sizes.items())

def unconfigured(reeve, top):
    p = Place(reeve, top, "none")
    with open(p.path("reeve.yaml"), "w", encoding="ascii") as f:
        f.write(f"state_dir: {p.path('state')}\n")
    p.reject()
    check("no sink, no trace of one", not {"sent", "sending"} & set(os.listdir(p.path("state/audit"))))
    status, _, err = p.send()
    check("audit send without a sink", status == 2 and "audit.sink" in err, (status, err))
    check("usage", p.call("audit", "send", "x")[0] == 2 and p.call("audit", "send", "--help")[0] == 0)
    p.sink(to="file:" + p.out)
    os.rename(p.path("state"), p.path("state.away"))
    check("audit send without a log", p.send()[0] == 2)

def main():
    reeve = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as top:
        os.chmod(top, 0o755)
        for f in (file_sink, failing, slow, hanging, behind, wait_for_another, https, crash, at_once, unconfigured):
            f(reeve, top)
        print(much(reeve, top))
    return 1 if failures else 0

if __name__ == "__main__":
    sys.exit(main())
