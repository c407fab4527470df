#!/usr/bin/python3
"""What reeve reads of a registry, and what it makes of it, against servers on loopback that behave and misbehave.

    metadata.py ASK REEVE-FETCH

Prints one line per failure and a last line with what was measured. Exit status 1 if any failed.
"""
import contextlib, json, os, socket, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "conformance"))
import registry

registry.http.server.ThreadingHTTPServer.request_queue_size = 64     # of 5, some of 16 connections at once wait a second
ASK, FETCH = sys.argv[1:3]
HOST = "127.0.0.7"
failures = []
n_checks = [0]

def check(name, ok, got=None):
    n_checks[0] += 1
    if not ok:
        failures.append(name)
        print(f"FAILED {name}: {got!r}"[:1500])

def free_port():
    with socket.socket() as s:
        s.bind((HOST, 0))
        return s.getsockname()[1]

def config(language, port, name="reg.example", path=None, **more):
    path = ("/simple/" if language == "python" else "/") if path is None else path
    return {"registries": {language: {"index": f"http://{name}:{port}{path}", **more}}, "egress": {"resolve": {name: HOST}}}

def ask(job, cache="-"):
    p = subprocess.run([ASK, FETCH, cache], input=json.dumps(job).encode(), capture_output=True, timeout=60, check=False)
    if p.returncode:
        return {"r": "crash", "error": p.stderr.decode()}
    return json.loads(p.stdout)

@contextlib.contextmanager
def made(kind, **spec):
    port = free_port()
    s = registry.serve({"kind": kind, "host": HOST, "port": port, **spec})
    try:
        yield port
    finally:
        s.shutdown(0)
        s.close()

@contextlib.contextmanager
def raw(behave):
    """A server of one function: (connection, request head) -> bytes to send, or None to say nothing."""
    port = free_port()
    listener = socket.create_server((HOST, port))
    seen = []
    def serve(c):
        with c:
            head = b""
            while b"\r\n\r\n" not in head:
                more = c.recv(65536)
                if not more:
                    return
                head += more
                if head[:1] == b"\x16":      # TLS
                    head += b"\r\n\r\n"
            head = head.decode(errors="replace")
            seen.append(head)
            out = behave(head)
            if out is None:
                time.sleep(8)
            else:
                c.sendall(out)
    def loop():
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
    threading.Thread(target=loop, daemon=True).start()
    try:
        yield port, seen
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()

def http(status, body, kind="application/vnd.pypi.simple.v1+json", length=None, more=""):
    body = body.encode() if isinstance(body, str) else body
    return f"HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {len(body) if length is None else length}\r\nConnection: close\r\n{more}\r\n".encode() + body

def page(*files, name="a"):
    return json.dumps({"meta": {"api-version": "1.1"}, "name": name, "files": [
        {"filename": f, "url": f"/f/{f}", "hashes": {}, **(m or {})} for f, m in files]})

TINY = {"name": "Tiny_Thing", "version": "1.2", "files": {"tiny.py": "x = 5\n"}}
NPAD = {"name": "npad", "version": "1.0.0", "files": {"index.js": ""}}
SCOPED = {"name": "@s/a", "version": "1.3.0", "files": {}, "manifest": {"license": "MIT", "scripts": {"install": "x"}}}
RUNTIME = {"tag": "cp311-linux_x86_64", "version": "3.11"}

# ---- Pages ----

def pages():
    with made("pypi", packages=[TINY, {**TINY, "version": "1.10", "yanked": "bad", "python": ">=3.8"}]) as port:
        got = ask({"config": config("python", port), "language": "python", "names": ["tiny-thing", "absent"]})
        p = got.get("pages", {}).get("tiny-thing", {})
        check("a page", p.get("status") == "ok" and set(p["versions"]) == {"1.2", "1.10"}, got)
        f = p["versions"]["1.10"]["files"][0]
        check("a file", f["url"].startswith(f"http://reg.example:{port}/files/") and len(f["sha256"]) == 64 and f["requires_python"] == ">=3.8" and
              f["yanked"] and f["published_at"] == 1577836800 and f["size_bytes"] > 0, f)
        check("yanked", p["versions"]["1.10"]["yanked"] and not p["versions"]["1.2"]["yanked"], p)
        check("a missing page", got["pages"]["absent"]["status"] == "missing" and got["pages"]["absent"]["http_status"] == 404, got)
    with made("npm", packages=[NPAD, {**NPAD, "version": "1.1.0"}, SCOPED]) as port:
        got = ask({"config": config("javascript", port), "language": "javascript", "names": ["npad", "@s/a", "none-such"]})
        p = got.get("pages", {}).get("npad", {})
        check("a document", p.get("status") == "ok" and p.get("latest") == "1.1.0" and set(p["versions"]) == {"1.0.0", "1.1.0"}, got)
        v = p["versions"]["1.0.0"]
        check("a version", v["integrity"].startswith("sha512-") and v["published_at"] == 1577836800 and not v["install_script"], v)
        v = got["pages"]["@s/a"].get("versions", {}).get("1.3.0", {})
        check("a scoped one", v.get("install_script") is True and v.get("license") == "MIT", got)
        check("a missing document", got["pages"]["none-such"]["status"] == "missing", got)

def html():
    body = ("<!DOCTYPE html><html><head><base href='/files/'></head><body><!-- <a href='a-9.0.tar.gz'>no</a> -->"
            "<a href=\"a-1.0-py3-none-any.whl#sha256=" + "AB" * 32 + "\" data-requires-python=\"&gt;=3.7\">a</a>"
            "<a data-yanked='' href='http://other.example/a-1.1.tar.gz?x=1&amp;y=2'>b</a><a href='ftp://x/a-3.0.tar.gz'>c</a></body></html>")
    with raw(lambda head: http(200, body, "text/html; charset=utf-8")) as (port, seen):
        got = ask({"config": config("python", port), "language": "python", "names": ["a"]})
        v = got.get("pages", {}).get("a", {}).get("versions", {})
        check("HTML", set(v) == {"1.0", "1.1"}, got)
        f = v["1.0"]["files"][0]
        check("its links", f["url"] == f"http://reg.example:{port}/files/a-1.0-py3-none-any.whl" and f["sha256"] == "ab" * 32 and f["requires_python"] == ">=3.7", f)
        check("its other host", v["1.1"]["files"][0]["url"] == "http://other.example/a-1.1.tar.gz?x=1&y=2" and v["1.1"]["yanked"], v)
        check("what is asked", seen and seen[0].startswith("GET /simple/a/ HTTP/1.1\r\n") and "vnd.pypi.simple.v1+json, " in seen[0], seen)

def statuses():
    ok = page(("a-1.0-py3-none-any.whl", None))
    rows = [
        ("500", lambda h: http(500, "x"), "error"), ("503", lambda h: http(503, "x"), "error"), ("429", lambda h: http(429, "x"), "error"),
        ("401", lambda h: http(401, "x"), "refused"), ("403", lambda h: http(403, "x"), "refused"), ("407", lambda h: http(407, "x"), "refused"),
        ("410", lambda h: http(410, "x"), "missing"), ("418", lambda h: http(418, "x"), "invalid"), ("204", lambda h: http(204, ""), "invalid"),
        ("another type", lambda h: http(200, ok, "application/json"), "invalid"), ("no type", lambda h: http(200, ok, ""), "invalid"),
        ("a page for signing in", lambda h: http(200, "<html><body><a href='/login'>sign in</a></body></html>", "text/html"), "invalid"),
        ("an index without files", lambda h: http(200, "<html><body><h1>Links for a</h1></body></html>", "text/html"), "ok"),
        ("cut JSON", lambda h: http(200, ok[:-9]), "invalid"), ("no JSON", lambda h: http(200, "<html>"), "invalid"), ("JSON of another kind", lambda h: http(200, "{}"), "invalid"),
        ("cut", lambda h: http(200, ok, length=len(ok) + 50), "unreachable"), ("no answer", lambda h: b"", "unreachable"),
        ("no HTTP", lambda h: b"\0\1\2\3 garbage\r\n\r\n", "invalid"), ("never an answer", lambda h: None, "unreachable"),
        ("redirect to another host", lambda h: http(302, "", more="Location: http://sso.example/\r\n"), "invalid"),
    ]
    for name, behave, status in rows:
        with raw(behave) as (port, _):
            got = ask({"config": config("python", port), "language": "python", "names": ["a"], "deadline_ms": 2000})
            p = got.get("pages", {}).get("a", {})
            check(f"status: {name}", p.get("status") == status and (status == "ok" or p["text"]), got)
    got = ask({"config": config("python", free_port()), "language": "python", "names": ["a"]})
    check("status: closed port", got.get("pages", {}).get("a", {}).get("status") == "unreachable", got)
    with raw(lambda h: http(200, "{}")) as (port, _):
        c = config("python", port)
        c["registries"]["python"]["index"] = f"https://reg.example:{port}/simple/"
        got = ask({"config": c, "language": "python", "names": ["a"]})
        check("status: no TLS", got.get("pages", {}).get("a", {}).get("status") == "tls", got)
    got = ask({"config": config("python", free_port()), "language": "python", "names": ["a"], "stop": True})
    check("stopped", got["r"] == -125 or got["pages"]["a"]["status"] == "unreachable", got)
    for bad in ("A", "", "a/b", "../a", "-a", "a b"):
        got = ask({"config": config("python", 1), "language": "python", "names": [bad]})
        check(f"no name: {bad!r}", got["r"] == -22, got)

def many():
    names = [f"p{i}" for i in range(150)]
    with made("pypi", packages=[{**TINY, "name": n} for n in names[:149]]) as port:
        begin = time.monotonic()
        got = ask({"config": config("python", port), "language": "python", "names": names})
        took = time.monotonic() - begin
        status = [got["pages"][n]["status"] for n in names]
        check("many", status == ["ok"] * 149 + ["missing"], status)
        return took

def cache():
    with tempfile.TemporaryDirectory() as d:
        n = [0]
        def behave(head):
            n[0] += 1
            return http(200, page(("a-1.0-py3-none-any.whl", None)))
        with raw(behave) as (port, _):
            job = {"config": config("python", port), "language": "python", "names": ["a"], "ttl_ms": 60000}
            one, two = ask(job, d), ask(job, d)
            check("kept", n[0] == 1 and one == two and one["pages"]["a"]["status"] == "ok", (n, one, two))
            file = os.path.join(d, os.listdir(d)[0])
            ask({**job, "ttl_ms": 0}, d)
            check("not used", n[0] == 2, n)
            os.utime(file, (time.time() - 61, time.time() - 61))
            ask(job, d)
            check("too old", n[0] == 3, n)
            os.utime(file, (time.time() + 100, time.time() + 100))
            ask(job, d)
            check("from the future", n[0] == 4, n)
            with open(file, "r+b") as f:
                f.seek(90)
                f.write(b"!")
            got = ask(job, d)
            check("damaged", n[0] == 5 and got == one, (n, got))
            with open(file, "r+b") as f:
                f.truncate(100)
            ask(job, d)
            check("cut", n[0] == 6, n)
            check("one file", len(os.listdir(d)) == 1, os.listdir(d))
            other = {**job, "config": config("python", port, path="/other/")}
            ask(other, d)
            check("of another registry", n[0] == 7 and len(os.listdir(d)) == 2, n)
        got = ask({"config": config("python", port), "language": "python", "names": ["a"], "ttl_ms": 60000}, d)
        check("without a registry", got == one, got)
    with tempfile.TemporaryDirectory() as d, made("pypi", status=500) as port:
        ask({"config": config("python", port), "language": "python", "names": ["a"], "ttl_ms": 60000}, d)
        check("trouble is not kept", os.listdir(d) == [], os.listdir(d))

# ---- Diagnoses ----

def diagnose(name, port, packages, cause, retryable=False, words=(), language="python", **more):
    c = more.pop("config", config(language, port))
    status, code = more.pop("ended", (1, None if language == "python" else "ERESOLVE"))
    closure = {"schema": "reeve.closure/1", "tool": {"name": more.pop("tool", "uv" if language == "python" else "npm"), "version": "1"}, "ok": False, "exit": status, "code": code,
               "text": more.pop("text", ""), "runtime": RUNTIME if language == "python" else {"tag": "node-linux-x64-glibc", "version": ""}}
    got = ask({"config": c, "language": language, "packages": packages, "closure": closure, **more})
    ok = got.get("code") == ("backend_failed" if cause == "resolver_failed" else "package_unavailable") and got["cause"] == cause and got["retryable"] == retryable and "\n" not in got["message"]
    check(f"diagnose: {name}", ok and all(w in got["message"] for w in words), got)

def contact(port, bytes_in, name="reg.example", **more):
    return {"name": name, "address": HOST, "port": port, "protocol": "http", "connections": 1, "bytes_out": 10, "bytes_in": bytes_in, **more}

def denial(port, rule, name="reg.example"):
    return {"name": name, "address": "", "port": port, "protocol": "dns", "rule": rule, "count": 1}

def python_diagnoses():
    def v(version, **more):
        return {**TINY, "version": version, **more}
    with made("pypi", packages=[TINY]) as port:
        diagnose("missing package", port, ["absent==1.0"], "missing_package", words=["absent"])
        diagnose("missing version", port, ["tiny-thing==9"], "missing_version", words=["tiny-thing", "==9", "1.2"])
        diagnose("missing beside one there", port, ["tiny-thing==1.2", "zz>=1"], "missing_package", words=["zz"])
        diagnose("two that exclude each other", port, ["tiny-thing>=1,<2", "tiny-thing!=1.2,>=1"], "missing_version")
        diagnose("all there", port, ["tiny-thing==1.2"], "conflict")
        diagnose("words name a further one", port, ["tiny-thing==1.2"], "missing_package", words=["deep-dep"],
                 text="Because deep-dep was not found in the package registry and tiny-thing depends on deep-dep, we can conclude")
        diagnose("words that are not so", port, ["tiny-thing==1.2"], "conflict", text="Because there is no version of tiny-thing==1.2 and you require tiny-thing==1.2")
        diagnose("a further version", port, ["tiny-thing==1.2"], "missing_version", words=["tiny-thing", ">=3", "needs"], text="because x depends on tiny-thing>=3, we")
        diagnose("hostile words", port, ["tiny-thing==1.2"], "conflict", text="no version of --index-url=http://x and no version of ../../etc and depends on x@http://y no version of ${HOME}")
        diagnose("uv broke", port, ["tiny-thing==1.2"], "resolver_failed", True, ["uv failed", "it says: panicked"], ended=(101, None), text="panicked")
        diagnose("no answer of uv's", port, ["tiny-thing==1.2"], "resolver_failed", True, ended=(1, "EABSENT"))
        diagnose("uv broke, and there is no such version", port, ["tiny-thing==9"], "missing_version", ended=(2, None))
        diagnose("our denial", port, ["tiny-thing==1.2"], "registry_refused", False, ["reg.example", "name"], denials=[denial(port, "name")])
        diagnose("a denial of something else", port, ["tiny-thing==9"], "missing_version", denials=[denial(port, "name", "telemetry.example")])
        diagnose("no address", port, ["tiny-thing==1.2"], "registry_unreachable", True, denials=[denial(port, "unresolved")])
        diagnose("nothing came", port, ["tiny-thing==1.2"], "registry_unreachable", True, contacts=[contact(port, 0)])
        diagnose("something came", port, ["tiny-thing==9"], "missing_version", contacts=[contact(port, 0), contact(port, 500, address="::1")])
        diagnose("a pin that is not there", port, ["tiny-thing>=1"], "missing_version", words=["policy pins", "7.0", "1.2"], obligations={"pins": {"tiny-thing": "7.0"}})
        diagnose("a pin that is not there, which the tool names", port, ["tiny-thing>=1"], "missing_version", words=["policy pins", "7.0", "1.2"], obligations={"pins": {"tiny-thing": "7.0"}},
                 text="Because there is no version of tiny-thing==7.0 and you require tiny-thing==7.0")
    versions = [v(x) for x in ("0.9", "1.0", "1.1", "1.2", "1.3", "1.4", "1.10", "2.0", "3.0")]
    with made("pypi", packages=[*versions, v("2.1b1")]) as port:
        diagnose("near versions", port, ["tiny-thing==1.5"], "missing_version", words=["1.2, 1.3, 1.4, 1.10, 2.0"])
        diagnose("conflict in one name", port, ["tiny-thing<1.2", "tiny-thing>=2"], "conflict", words=["<1.2 and >=2"])
        diagnose("a pin outside", port, ["tiny-thing>=2"], "conflict", words=["policy pins tiny-thing to 1.0"], obligations={"pins": {"tiny-thing": "1.0"}})
        diagnose("a pre-release alone, uv", port, ["tiny-thing>2.0,<3.0"], "missing_version")
        diagnose("a pre-release alone, pip", port, ["tiny-thing>2.0,<3.0"], "conflict", tool="pip")
        diagnose("a pre-release, named", port, ["tiny-thing>=2.1b1,<3.0"], "conflict")
    with made("pypi", packages=[v("1.0", yanked="broken"), v("1.1", yanked=True), v("2.0")]) as port:
        diagnose("yanked", port, ["tiny-thing<2"], "yanked", words=["1.1", "2.0"])
        diagnose("yanked and pinned", port, ["tiny-thing==1.1"], "conflict")
    with made("pypi", packages=[v("1.0", time="2020-01-01T00:00:00Z"), v("2.0", time="2026-06-01T00:00:00.5Z")]) as port:
        diagnose("too new", port, ["tiny-thing>=2"], "too_new", words=["2.0", "2026-01-01", "1.0"], cutoff_s=1767225600)
        diagnose("old enough", port, ["tiny-thing>=1"], "conflict", cutoff_s=1767225600)
        diagnose("new, no cutoff", port, ["tiny-thing>=2"], "conflict")
    with made("pypi", packages=[v("1.0", python=">=3.8"), v("2.0", python=">=3.12")]) as port:
        diagnose("runtime", port, ["tiny-thing==2.0"], "runtime", words=[">=3.12", "3.11", "1.0"])
        diagnose("an older one will do", port, ["tiny-thing>=1"], "conflict")
    kinds = [("a-1.0.tar.gz", None), ("a-2.0-cp311-cp311-win_amd64.whl", None), ("a-2.0.tar.gz", None), ("a-3.0-cp312-cp312-manylinux_2_17_x86_64.manylinux2014_x86_64.whl", None),
             ("a-3.0-cp311-cp311-musllinux_1_2_x86_64.whl", None), ("a-4.0-cp311-abi3-macosx_11_0_arm64.whl", None), ("a-5.0-cp38-abi3-manylinux2014_x86_64.whl", None),
             ("a-6.0-py2-none-any.whl", None), ("a-7.0-py2.py3-none-any.whl", {"requires-python": ">=4"}), ("a-8.0-py3-none-any.whl", {"requires-python": "what?"}),
             ("a-9.0-cp312-cp312-manylinux2014_x86_64.whl", {"requires-python": ">=3.7"})]
    with raw(lambda head: http(200, page(*kinds)) if head.startswith("GET") else http(200, "")) as (port, _):
        diagnose("source only", port, ["a==1.0"], "no_wheel", words=["a 1.0", "5.0, 8.0"])
        diagnose("source that may be built, which others look to", port, ["a==1.0"], "no_wheel", obligations={"source_build": ["a"]})
        diagnose("another platform", port, ["a==2.0"], "platform", words=["linux_x86_64"])
        diagnose("another Python's wheels", port, ["a==3.0"], "runtime")
        diagnose("a mac's", port, ["a==4.0"], "platform")
        diagnose("abi3", port, ["a==5.0"], "conflict")
        diagnose("Python 2", port, ["a==6.0"], "runtime")
        diagnose("requires-python", port, ["a==7.0"], "runtime", words=[">=4"])
        diagnose("wheels for others, though it would do", port, ["a==9.0"], "runtime", words=["(a-9.0-cp312-cp312-"])
        diagnose("a specifier that is none", port, ["a==8.0"], "conflict")

def registry_diagnoses():
    ok = page(("a-1.0-py3-none-any.whl", None))
    rows = [
        ("500", lambda h: http(500, ""), "registry_error", True), ("429", lambda h: http(429, ""), "registry_error", True), ("403", lambda h: http(403, ""), "registry_refused", True),
        ("401", lambda h: http(401, ""), "registry_refused", True), ("garbage", lambda h: http(200, "<p>sign in", "text/html"), "registry_invalid", True),
        ("cut JSON", lambda h: http(200, ok[:40]), "registry_invalid", True), ("black hole", lambda h: None, "registry_unreachable", True),
    ]
    for name, behave, cause, retryable in rows:
        with raw(behave) as (port, _):
            diagnose(name, port, ["a==1.0"], cause, retryable, deadline_ms=2000)
    for name, status, cause in (("500", 500, "registry_error"), ("403", 403, "registry_refused"), ("404", 404, "registry_invalid")):
        with raw(lambda h, status=status: http(200, ok) if "/simple/" in h else http(status, "")) as (port, _):
            diagnose(f"a file answers {name}", port, ["a==1.0"], cause, True, ["a-1.0-py3-none-any.whl"])
    with raw(lambda h: http(200, ok) if "/simple/" in h else http(405, "")) as (port, _):
        diagnose("no HEAD", port, ["a==1.0"], "conflict")
    diagnose("closed port", free_port(), ["a==1.0"], "registry_unreachable", True)
    elsewhere = page(("a-1.0-py3-none-any.whl", {"url": f"http://127.0.0.1:{free_port()}/a-1.0-py3-none-any.whl"}))
    with raw(lambda h: http(200, elsewhere)) as (port, _):
        diagnose("files at a private address that is not the registry's", port, ["a==1.0"], "registry_refused", False)
    with raw(lambda h: http(200, page(("a-1.0-py3-none-any.whl", {"url": "https://files.example/a-1.0-py3-none-any.whl"})))) as (port, _):
        diagnose("files at a host that is not configured", port, ["a==1.0"], "registry_refused", False, ["files.example", "registries.python.files"], denials=[denial(443, "name", "files.example")])

def npm_diagnoses():
    js = {"language": "javascript"}
    with made("npm", packages=[NPAD, {**NPAD, "version": "2.0.0", "time": "2026-06-01T00:00:00Z"}, {**NPAD, "name": "win", "manifest": {"os": ["win32"]}},
                               {**NPAD, "name": "nowin", "manifest": {"os": ["!win32"], "cpu": ["x64", "arm64"]}}, SCOPED]) as port:
        diagnose("npm: missing package", port, ["absent@1.0.0"], "missing_package", words=["absent"], **js)
        diagnose("npm: missing version", port, ["npad@^3"], "missing_version", words=["npad", "^3", "1.0.0, 2.0.0"], **js)
        diagnose("npm: scoped", port, ["@s/a@^2"], "missing_version", words=["@s/a", "1.3.0"], **js)
        diagnose("npm: latest", port, ["npad@latest"], "conflict", **js)
        diagnose("npm: platform", port, ["win@*"], "platform", words=["win 1.0.0", "linux-x64"], **js)
        diagnose("npm: not win32", port, ["nowin@*"], "conflict", **js)
        diagnose("npm: too new", port, ["npad@^2"], "too_new", words=["2.0.0"], cutoff_s=1767225600, **js)
        diagnose("npm: a further one", port, ["npad@1.0.0"], "missing_package", words=["deep"], text="404 Not Found\n'deep@^1.0.0' is not in this registry.", **js)
        diagnose("npm: a further one, as later releases say it", port, ["npad@1.0.0"], "missing_package", words=["deep"],
                 text="Not Found - GET http://x/deep\nThe requested resource 'deep@^1.0.0' could not be found or you do not have permission to access it.", **js)
        diagnose("npm: a further version", port, ["npad@1.0.0"], "missing_version", words=["@s/a"], text="No matching version found for @s/a@9.9.9.", **js)
        diagnose("npm: broke", port, ["npad@1.0.0"], "resolver_failed", True, ["npm failed"], ended=(1, None), text="Cannot read properties of undefined", **js)
        diagnose("npm: a pin that is no version", port, ["npad@1"], "missing_version", words=["policy pins npad to 1.0,", "1.0.0"], ended=(1, "EJOB"), obligations={"pins": {"npad": "1.0"}}, **js)
        diagnose("npm: peers", port, ["npad@1.0.0", "@s/a@1"], "conflict", words=["npad@1.0.0"], text="ERESOLVE could not resolve http://x/y /root/secret", **js)
    with made("npm", status=500) as port:
        diagnose("npm: 500", port, ["npad@1.0.0"], "registry_error", True, **js)
    with made("npm", garbage=True) as port:
        diagnose("npm: garbage", port, ["npad@1.0.0"], "registry_invalid", True, **js)
    with raw(lambda h: http(200, json.dumps({"name": "other", "versions": {}}))) as (port, _):
        diagnose("npm: another's document", port, ["npad@1.0.0"], "registry_invalid", True, **js)

pages()
html()
statuses()
took = many()
cache()
python_diagnoses()
registry_diagnoses()
npm_diagnoses()
print(f"{n_checks[0]} checks, {len(failures)} failed; 150 pages in {took * 1000:.0f} ms")
sys.exit(1 if failures else 0)
