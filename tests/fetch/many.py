#!/usr/bin/python3
"""What rv_fetch_many() and the helper's files, fixed addresses and refusals do, against servers on loopback.

    many.py MANY REEVE-FETCH LIAR        MANY and LIAR are the programs of many.c and liar.c

Prints one line per failure and a last line with what was measured. Exit status 1 if any failed.
"""
import hashlib, json, os, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from servers import Server

MIB = 1 << 20
MANY, FETCH, LIAR = (os.path.abspath(p) for p in sys.argv[1:4])
failures = []

def check(name, ok, got=None):
    if not ok:
        failures.append(name)
        print(f"FAILED {name}: {got!r}"[:2000])

def many(*requests, place="-", deadline_ms=20000, stop_ms=0, helper=FETCH):
    p = subprocess.run([MANY, helper, place, str(deadline_ms), str(stop_ms)], input=json.dumps(requests).encode(), capture_output=True, timeout=60, check=False)
    check(f"exit status of {requests[:3]}", p.returncode == 0, (p.returncode, p.stderr))
    return json.loads(p.stdout or b'{"r": 1, "answers": [{}]}')

def directory(place, name):
    """One that the helper may write to, whoever it is then."""
    path = os.path.join(place, name)
    os.mkdir(path)
    os.chmod(path, 0o777)
    return path

def pattern(n):
    return (bytes(range(256)) * (n // 256 + 1))[:n]

def behave(q, c):
    path, _, argument = q.path.partition("?")
    if path == "/big":
        return c.reply(200, pattern(int(argument)))
    if path == "/status":
        return c.reply(int(argument), b"said")
    if path == "/to":
        return c.reply(302, b"moved", f"Location: {argument}")
    if path == "/cut":
        c.send("HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n", b"p" * 50000)
        return False
    if path == "/endless":
        c.send("HTTP/1.1 200 X\r\n\r\n")
        while True:
            c.send(b"e" * 65536)
    if path == "/slow":
        c.send("HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n")
        for _ in range(1000):
            c.send(b"s" * 100)
            time.sleep(0.02)
    if path == "/echo":
        return c.reply(200, q.body)
    time.sleep(float(argument or 0))
    return c.reply(200, q.path.encode())

# ---- Many ----

def in_memory(s):
    got = many(*[{"url": s.url(f"/{i}")} for i in range(71)])
    check("71 answers, each its own", got["r"] == 0 and [a["body"] for a in got["answers"]] == [f"/{i}" for i in range(71)], got)
    check("at most 16 connections", s.n_connections <= 16, s.n_connections)
    took = got["took_ms"]
    got = many({"url": s.url("/echo"), "method": "POST", "body": "a" * 3 * MIB, "max_bytes": 3 * MIB}, {"url": s.url(f"/big?{5 * MIB}"), "max_bytes": 5 * MIB}, {"url": s.url("/status?404")},
               {"url": s.url(f"/big?{MIB + 1}")}, {"url": "http://127.0.0.1:1/"}, {"url": "ftp://a.example/"}, {"url": s.url("/x")})
    seen = [(a["code"], a["status"], a["bytes"]) for a in got["answers"]]
    check("each its own result", seen == [("", 200, 3 * MIB), ("", 200, 5 * MIB), ("", 404, 4), ("too_large", 0, 0), ("unreachable", 0, 0), ("usage", 0, 0), ("", 200, 2)], seen)
    check("none", many()["r"] == 0)
    return took

def deadline(s):
    got = many(*[{"url": s.url("/?30" if i % 2 else f"/{i}"), "timeout_ms": 60000} for i in range(20)], deadline_ms=1000)
    codes = [a["code"] for a in got["answers"]]
    check("past the deadline what is there is kept", got["r"] == 0 and codes == ["", "timeout"] * 10 and 900 < got["took_ms"] < 2500, got)
    got = many(*[{"url": s.url("/slow"), "timeout_ms": 60000} for _ in range(40)], deadline_ms=800)
    check("those that were not begun too", [a["code"] for a in got["answers"]] == ["timeout"] * 40 and got["took_ms"] < 2500, got)

def stopping(s, place):
    d = directory(place, "stop")
    got = many({"url": s.url("/x"), "file": "done"}, *[{"url": s.url("/slow"), "timeout_ms": 60000, "file": f"f{i}"} for i in range(30)], place=d, deadline_ms=30000, stop_ms=400)
    check("stop", got["r"] == -125 and 400 <= got["took_ms"] < 700, got["took_ms"])
    check("and nothing is left", os.listdir(d) == [] and all(a["status"] == 0 and a["file_bytes"] == 0 for a in got["answers"]), os.listdir(d))

def misbehaving(s):
    for helper, r, text in (("/bin/true", -71, "is not whole"), ("/bin/false", -71, "ended with status 1"), ("/bin/cat", -71, "has no status"), ("/usr/bin/yes", -71, "no JSON"),
                            ("/etc/passwd", -13, "cannot run")):
        got = many({"url": s.url("/x")}, {"url": s.url("/y")}, helper=helper)
        check(f"{helper} is no helper", got["r"] == r and text in got["error"], got)

def lies(place):
    """Answers that cannot be: none is taken, what it was asked for is not there afterwards, and a file that was is."""
    d = directory(place, "lies")
    with open(os.path.join(d, "mine"), "w", encoding="ascii") as f:
        f.write("mine")
    def line(body=b"", **members):
        return json.dumps({"id": "0", "status": 200, "headers": {}, "bytes": len(body), **members}).encode() + b"\n" + body
    error = lambda code, **more: json.dumps({"id": "0", "error": {"code": code, "message": "m"}, **more}).encode() + b"\n"
    ok, second = line(b"ok"), line(b"ok", id="1")
    for name, text, end, r, said in (
            ("both", second + ok, "", 0, ""), ("one is missing", ok, "", -71, "not whole"), ("nothing", b"", "", -71, "not whole"), ("too many", ok + second + line(id="2"), "", -71, "none to what"),
            ("twice the same", ok + ok, "", -71, "none to what"), ("a number that is none", line(id="0x"), "", -71, "none to what"), ("an empty id", line(id=""), "", -71, "none to what"),
            ("a negative id", line(id="-1"), "", -71, "none to what"), ("a huge id", line(id="9" * 30), "", -71, "none to what"), ("an id with a space", line(id=" 0"), "", -71, "none to what"),
            ("no JSON", b"hello\n", "", -71, "no JSON"), ("a list", b"[]\n", "", -71, "no JSON"), ("no newline", b"{", "", -71, "not whole"), ("no line at all", b"x" * 20000, "", -71, "not whole"),
            ("a negative length", line(bytes=-1), "", -71, "longer or shorter"), ("a length past the bound", line(bytes=1 << 40), "", -71, "longer or shorter"),
            ("cut off", ok + second[:-1], "", -71, "not whole"), ("a length that is a text", line(bytes="2") + b"ok", "", -71, "longer or shorter"), ("no status", line(status=None), "", -71, "no status"),
            ("something behind", ok + second + b"x", "", -71, "not whole"), ("an error with a body", error("timeout", bytes=2) + b"ok" + second, "", -71, "longer"), ("an unknown code", error("else") + second, "", -71, "unknown code"),
            ("a bad end", ok + second, "!", -71, "status 3"), ("no end", ok + second, "&", 0, ""), ("deep", b'{"id":' + b"[" * 2000 + b"]" * 2000 + b"}\n", "", -71, "no JSON")):
        got = many({"url": f"http://a.example/?{text.hex()}{end}"}, {"url": "http://a.example/"}, helper=LIAR, deadline_ms=3000)
        check(f"lie: {name}", got["r"] == r and said in got["error"] and (r == 0 or all(a["status"] == 0 and a["bytes"] == 0 for a in got["answers"])), got)
    for name, members, r in (("a file that is not there", {"file_bytes": 2}, -71), ("none said", {}, -71), ("of another size", {"file_bytes": -1}, -71), ("bytes of a file", {"file_bytes": 0, "bytes": 2}, -71),
                             ("a failure", {"status": 404}, 0)):
        got = many({"url": f"http://a.example/?{line(**members).hex()}", "file": "new"}, place=d, helper=LIAR)
        check(f"lie: {name}", got["r"] == r and got["answers"][0]["file_bytes"] == 0, got)
    check("the directory is as it was", os.listdir(d) == ["mine"], os.listdir(d))
    for name, members, r, left in (("a file as it says", {"file_bytes": 2}, 0, ["mine", "new"]), ("longer than it says", {"file_bytes": 1}, -71, ["mine"]), ("shorter", {"file_bytes": 3}, -71, ["mine"])):
        got = many({"url": f"http://a.example/?{line(**members).hex()}+", "file": "new"}, place=d, helper=LIAR)
        check(f"lie: {name}", got["r"] == r and sorted(os.listdir(d)) == left, (got, os.listdir(d)))
        if r == 0:
            os.unlink(os.path.join(d, "new"))

# ---- Files ----

def files(s, place):
    d = directory(place, "files")
    size = 300 * 1000 + 7
    got = many({"url": s.url(f"/big?{size}"), "file": "a-1.0+x@y!.whl"}, {"url": s.url("/big?0"), "file": "empty"}, {"url": s.url(f"/to?/big?{size}"), "file": "redirected"},
               {"url": s.url("/x")}, place=d)
    check("answers of files", [(a["status"], a["bytes"], a["file_bytes"], a["body"]) for a in got["answers"]] ==
          [(200, 0, size, ""), (200, 0, 0, ""), (200, 0, size, ""), (200, 2, 0, "/x")], got)
    for name in ("a-1.0+x@y!.whl", "redirected"):
        with open(os.path.join(d, name), "rb") as f:
            check(f"content of {name}", f.read() == pattern(size))
        check(f"mode of {name}", os.stat(os.path.join(d, name)).st_mode & 0o7777 == 0o644, os.stat(os.path.join(d, name)))
    check("all of them and no more", sorted(os.listdir(d)) == ["a-1.0+x@y!.whl", "empty", "redirected"], os.listdir(d))
    # To another place: refused, or told, as the request says; what came with it is no file.
    there = "http://other.example:1/x?signature=s"
    d = directory(place, "redirected")
    got = many({"url": s.url("/to?" + there), "file": "refused"}, {"url": s.url("/to?" + there), "file": "told", "tells_redirects": True},
               {"url": s.url("/to?/big?5"), "file": "within", "tells_redirects": True}, {"url": s.url("/to?//other.example/y"), "tells_redirects": True}, place=d)
    check("redirects elsewhere", [(a["code"], a["status"], a["location"]) for a in got["answers"]] ==
          [("redirect_refused", 0, ""), ("", 302, there), ("", 200, ""), ("", 302, "http://other.example/y")] and os.listdir(d) == ["within"], (got, os.listdir(d)))
    d = directory(place, "failed")
    got = many({"url": s.url("/cut"), "file": "cut"}, {"url": s.url("/endless"), "file": "endless", "max_bytes": 3 * MIB}, {"url": s.url("/status?404"), "file": "missing"},
               {"url": s.url("/slow"), "file": "slow", "timeout_ms": 300}, {"url": "http://127.0.0.1:1/", "file": "nobody"}, {"url": s.url("/status?500"), "file": "error"}, place=d)
    check("codes of what failed", [(a["code"], a["status"]) for a in got["answers"]] == [("unreachable", 0), ("too_large", 0), ("", 404), ("timeout", 0), ("unreachable", 0), ("", 500)], got)
    check("of what failed nothing is left", os.listdir(d) == [], os.listdir(d))

def file_names(s, place):
    d, elsewhere = directory(place, "names"), directory(place, "elsewhere")
    os.symlink(os.path.join(elsewhere, "target"), os.path.join(d, "link"))
    with open(os.path.join(d, "there"), "w", encoding="ascii") as f:
        f.write("mine")
    os.chmod(os.path.join(d, "there"), 0o666)
    for name in ("there", "link"):
        got = many({"url": s.url("/x"), "file": name}, {"url": s.url("/x"), "file": "new"}, place=d)
        check(f"{name} is there already", got["r"] == -17 and name in got["error"], got)
    got = many({"url": s.url("/x"), "file": "twice"}, {"url": s.url("/y"), "file": "twice"}, place=d)
    check("one file for two", got["r"] == -22, got)
    check("without a directory", many({"url": s.url("/x"), "file": "x"})["r"] == -22)
    for name in ("../x", "a/b", "/etc/x", ".hidden", "-x", "a b", "a\n", "a\u00e9", "x" * 201):
        got = many({"url": s.url("/x"), "file": name}, {"url": s.url("/x"), "file": "fine"}, place=d)
        check(f"a file's name {name!r}", [a["code"] for a in got["answers"]] == ["usage", ""], got)
        os.unlink(os.path.join(d, "fine"))
    check("nothing else came of it", sorted(os.listdir(d)) == ["link", "there"] and not os.path.exists(os.path.join(place, "x")), os.listdir(d))
    with open(os.path.join(d, "there"), encoding="ascii") as f:
        check("a file that is there is as it was", f.read() == "mine")
    # The helper itself, whatever its client looked at before.
    p = subprocess.run(["/bin/sh", "-c", 'exec "$0" --files 3<"$1"', FETCH, d], input=b"".join(json.dumps({"id": n, "url": s.url("/x"), "file": n}).encode() + b"\n" for n in ("there", "link")), capture_output=True,
                       check=False, timeout=20)
    check("the helper leaves it alone as well", p.stdout.count(b'"usage"') == 2 and sorted(os.listdir(d)) == ["link", "there"] and not os.listdir(elsewhere), p)
    with open(os.path.join(d, "there"), encoding="ascii") as f:
        check("and as it was", f.read() == "mine")
    p = subprocess.run([FETCH], input=json.dumps({"id": "1", "url": s.url("/x"), "file": "x"}).encode() + b"\n", capture_output=True, check=False, timeout=20)
    check("without --files", b'"usage"' in p.stdout, p)

def at_once(place):
    """What may be large and goes to files takes no memory, so that it does not wait for room."""
    with Server(behave) as s:
        got = many(*[{"url": s.url("/?0.3"), "file": f"f{i}", "max_bytes": 4 << 30} for i in range(16)], place=directory(place, "at-once"))
        check("16 files at once", all(a["file_bytes"] == 5 for a in got["answers"]) and got["took_ms"] < 2000 and s.n_busy_most > 8, (got, s.n_busy_most))
        got = many({"url": s.url("/x"), "file": "x", "max_bytes": (4 << 30) + 1}, place=directory(place, "too-much"))
        check("more than 4 GiB", got["answers"][0]["code"] == "usage", got)

def large(s, place):
    """A body of 600 MiB, more than the helper may have memory: to a file, with both processes as small as ever."""
    d, n, most, seen = directory(place, "large"), 600, [0], set()
    def behave_large(q, c):
        c.send(f"HTTP/1.1 200 X\r\nContent-Length: {n * MIB}\r\n\r\n")
        block = pattern(MIB)
        for _ in range(n):
            c.send(block)
        return True
    with Server(behave_large) as big:
        p = subprocess.Popen([MANY, FETCH, d, "50000", "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        def watch():
            while p.poll() is None:
                for pid in [p.pid] + children(p.pid):
                    most[0] = max(most[0], peak_of(pid))
                    seen.add(pid)
                time.sleep(0.02)
        watcher = threading.Thread(target=watch)
        watcher.start()
        out, _ = p.communicate(json.dumps([{"url": big.url("/"), "file": "f", "max_bytes": 700 * MIB, "timeout_ms": 50000}]).encode())
        watcher.join()
    got = json.loads(out)
    check("a large file", got["r"] == 0 and got["answers"][0]["file_bytes"] == n * MIB == os.stat(os.path.join(d, "f")).st_size, got)
    digest = hashlib.sha256()
    with open(os.path.join(d, "f"), "rb") as f:
        while block := f.read(MIB):
            digest.update(block)
    check("its content", digest.hexdigest() == hashlib.sha256(pattern(MIB) * n).hexdigest())
    check("memory stays flat", 0 < most[0] < 40 and len(seen) == 2, (most[0], seen))
    os.unlink(os.path.join(d, "f"))
    return most[0], got["took_ms"]

def children(pid):
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as f:
                if name.isdigit() and int(f.read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(name))
        except OSError:
            pass
    return found

def peak_of(pid):
    try:
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return next((int(line.split()[1]) // 1024 for line in f if line.startswith("VmHWM")), 0)
    except OSError:
        return 0

# ---- Where it goes ----

def resolving(s, other):
    name = "packages.registry.example"
    got = many({"url": s.url("/a", name), "resolve": [f"{name}:{s.port}:127.0.0.1"]}, {"url": s.url("/b", name), "resolve": [f"other.example:1:192.0.2.1", f"{name}:{s.port}:127.0.0.1"]})
    check("resolve", [a["body"] for a in got["answers"]] == ["/a", "/b"] and s.requests[-1].headers["host"] == f"{name}:{s.port}", got)
    got = many({"url": other.url("/c", name), "resolve": [f"{name}:{s.port}:127.0.0.1"], "timeout_ms": 3000})
    check("resolve is for one port", got["answers"][0]["code"] in ("unreachable", "timeout"), got)
    got = many({"url": s.url("/d", name), "resolve": [f"{name}:{s.port}:[::1]"], "timeout_ms": 3000})
    check("resolve to IPv6, where nobody is", got["answers"][0]["code"] == "unreachable", got)
    for entry in ("", name, f"{name}:{s.port}", f"{name}:{s.port}:", f"{name}:0:127.0.0.1", f"{name}:65536:127.0.0.1", f"{name}:x:127.0.0.1", f"-{name}:{s.port}",
                  f"-{name}:{s.port}:127.0.0.1", f"+{name}:{s.port}:127.0.0.1", f"*:{s.port}:127.0.0.1", f"{name}:{s.port}:127.0.0.1,127.0.0.2", f"{name}:{s.port}:[127.0.0.1]",
                  f"{name}:{s.port}:[::1", f"{name}:{s.port}:127.1", f"{name}:{s.port}:localhost", f"{name}:{s.port}:127.0.0.1\n"):
        got = many({"url": s.url("/e"), "resolve": [entry]})
        check(f"resolve {entry!r}", got["answers"][0]["code"] == "usage", got)

def public(s, place):
    n, name = len(s.requests), "packages.registry.example"
    own = sorted({word.split("/")[0] for line in subprocess.run(["ip", "-o", "address"], capture_output=True, check=False, text=True).stdout.splitlines()
                  for word in line.split() if "/" in word and word[0] in "0123456789abcdef"}) or ["127.0.0.1"]
    hosts = ["127.0.0.1", "localhost", "127.1", "0x7f000001", "2130706433", "0", "[::1]", "[::ffff:127.0.0.1]", "10.0.0.1", "169.254.169.254", "192.0.2.1", "100.64.0.1", "[fd00::1]",
             "[64:ff9b::7f00:1]"] + [f"[{a}]" if ":" in a else a for a in own]
    got = many(*[{"url": f"http://{h}:{s.port}/p", "is_public_only": True, "timeout_ms": 3000} for h in hosts])
    for host, a in zip(hosts, got["answers"]):
        check(f"{host} is not public", a["code"] == "refused_address" and "not of the public Internet" in a["message"], a)
    check("none of them was connected to", s.n_connections == 0, s.n_connections)
    # By a name; the request's own `resolve` exempts it, another's does not.
    entry = [f"{name}:{s.port}:127.0.0.1"]
    got = many({"url": s.url("/q", name), "is_public_only": True, "resolve": entry})
    check("an address that the operator gave", got["answers"][0]["status"] == 200 and len(s.requests) == n + 1, got)
    got = many({"url": s.url("/r", name), "resolve": entry, "file": "first"}, {"url": s.url("/s?0.2", name), "resolve": entry}, *[{"url": s.url("/t", name), "is_public_only": True}] * 20,
               place=directory(place, "public"))
    check("not for a request that was not given it", [a["code"] for a in got["answers"]] == ["", ""] + ["refused_address"] * 20, got)
    check("nothing of those came", [q.path for q in s.requests[n + 1:]].count("/t") == 0, [q.path for q in s.requests[n:]])
    got = many({"url": s.url("/to?/u", name), "resolve": entry, "is_public_only": True})
    check("redirected, exempt", got["answers"][0]["body"] == "/u", got)
    connection_that_is_there(s, name, entry)
    own_address()
    # Through a proxy names are its own business; an address in the URL is not.
    got = one_by_proxy(s, "http://10.1.2.3/x")
    check("an address through a proxy", got == "refused_address", got)
    got = one_by_proxy(s, "http://far.example/x")
    check("a name through a proxy", got is None, got)
    got = one_by_proxy(s, "https://[fd00::1]/x")
    check("an address through a proxy's tunnel", got == "refused_address", got)

def connection_that_is_there(s, name, entry):
    """One that was made for a request whose address the operator gave is not for another's."""
    n = len(s.requests)
    with subprocess.Popen([FETCH], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        def ask(**q):
            p.stdin.write(json.dumps({"id": "1", "url": s.url("/reuse", name), "is_public_only": True, **q}).encode() + b"\n")
            p.stdin.flush()
            answer = json.loads(p.stdout.readline())
            p.stdout.read(answer.get("bytes", 0))
            return answer
        first, before, again, other = ask(resolve=entry), s.n_connections, ask(resolve=entry), ask()
    check("the connection is used again", first.get("status") == again.get("status") == 200 and s.n_connections == before, (first, again))
    check("but not for one that has to be public", other.get("error", {}).get("code") == "refused_address" and len(s.requests) == n + 2, other)

def own_address():
    """An address of public space, but of this host: in a network namespace of its own, with nothing but lo."""
    script = 'ip link set lo up && ip address add 11.22.33.44/32 dev lo && ip -6 address add 2a00::1/128 dev lo; exec "$0"'
    lines = b"".join(json.dumps({"id": h, "url": f"http://{h}:1/", "is_public_only": True, "timeout_ms": 2000}).encode() + b"\n" for h in ("11.22.33.44", "[2a00::1]", "11.22.33.45"))
    mapped = [] if os.geteuid() == 0 else ["--map-current-user", "--keep-caps"]
    p = subprocess.run(["unshare", "--net", *mapped, "/bin/sh", "-c", script, FETCH], input=lines, capture_output=True, check=False, timeout=20)
    got = {a["id"]: a["error"] for a in map(json.loads, p.stdout.splitlines())}
    if len(got) != 3:
        print(f"left out: addresses of the host itself ({p.stderr.decode().strip()[:200]})")
        return
    check("the host's own", all(got[h]["code"] == "refused_address" and "(own)" in got[h]["message"] for h in ("11.22.33.44", "[2a00::1]")), got)
    check("not its own", got["11.22.33.45"]["code"] == "unreachable", got)

def one_by_proxy(s, url):
    p = subprocess.run([FETCH], input=json.dumps({"id": "1", "url": url, "is_public_only": True, "proxy": s.url()}).encode() + b"\n", capture_output=True, check=False, timeout=20)
    return json.loads(p.stdout.split(b"\n")[0]).get("error", {}).get("code")

def redirect_by_address(place):
    """A redirect to the same host, whose address has become another: it is judged each time."""
    with Server(behave) as s:
        got = many({"url": s.url("/to?" + s.url("/v")), "is_public_only": True}, {"url": s.url("/to?http://10.0.0.1/w")})
        check("a redirect is refused before", [a["code"] for a in got["answers"]] == ["refused_address", "redirect_refused"] and len(s.requests) == 1, got)

def main():
    with tempfile.TemporaryDirectory() as place, Server(behave) as s, Server(behave) as other:
        os.chmod(place, 0o755)
        with open(FETCH, "rb") as f:
            is_sanitized = b"__asan_init" in f.read()
        with Server(behave) as fresh:
            took = in_memory(fresh)
        deadline(s)
        stopping(s, place)
        misbehaving(s)
        lies(place)
        files(s, place)
        file_names(s, place)
        at_once(place)
        resolving(s, other)
        with Server(behave) as fresh:
            public(fresh, place)
        redirect_by_address(place)
        most, large_ms = large(s, place) if not is_sanitized else (0, 0)
    print(f"71 small answers: {took} ms; 600 MiB to a file: {large_ms} ms, most memory: {most} MiB")
    return 1 if failures else 0

if __name__ == "__main__":
    sys.exit(main())
