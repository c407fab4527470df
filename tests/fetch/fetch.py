#!/usr/bin/python3
"""What `reeve-fetch` answers, against servers on loopback that behave and misbehave.

    fetch.py REEVE-FETCH

Prints one line per failure and a last line with what was measured. Exit status 1 if any failed.
"""
import base64, gzip, json, os, subprocess, sys, tempfile, threading, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import servers
from servers import Server

MIB = 1 << 20
failures = []
HELPER = [""]

def check(name, ok, got=None):
    if not ok:
        failures.append(name)
        print(f"FAILED {name}: {got!r}"[:2000])

def lines(*requests):
    """What is written to the helper: a body goes as the member `body` (bytes)."""
    out = b""
    for i, q in enumerate(requests):
        q = {"id": str(i + 1), **q}
        body = q.pop("body", b"")
        if body:
            q.setdefault("body_bytes", len(body))
        out += json.dumps(q).encode() + b"\n" + body
    return out

def answers(out):
    """id -> (answer, body)"""
    got = {}
    while out:
        line, _, out = out.partition(b"\n")
        a = json.loads(line)
        n = a.get("bytes", 0)
        got[a["id"]] = (a, out[:n])
        out = out[n:]
    return got

def run(*requests, raw=None, env=None, status=0):
    p = subprocess.run(HELPER, input=lines(*requests) if raw is None else raw, capture_output=True, timeout=60, env=env or {}, check=False)
    check(f"exit status of {requests or raw[:60]}", p.returncode == status, (p.returncode, p.stderr))
    return answers(p.stdout), p.stderr.decode()

def one(**q):
    got, _ = run(q)
    return got.get("1", ({}, b""))

def code(answer):
    return answer[0].get("error", {}).get("code")

# ---- Servers' behaviours ----

def behave(q, c):
    path, _, argument = q.path.partition("?")
    if path == "/status":
        return c.reply(int(argument), b"said")
    if path == "/echo":
        return c.reply(200, q.body, *[f"X-{k}: {v}" for k, v in q.headers.items() if "content-length" not in k])
    if path == "/big":
        return c.reply(200, b"b" * int(argument))
    if path == "/endless":
        c.send("HTTP/1.1 200 X\r\n\r\n")
        while True:
            c.send(b"e" * 65536)
    if path == "/chunked":
        c.send("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        return True
    if path == "/gzip":
        return c.reply(200, gzip.compress(b"z" * int(argument)), "Content-Encoding: gzip")
    if path == "/bomb":
        layered = gzip.compress(gzip.compress(b"\0" * int(argument)))
        return c.reply(200, layered, "Content-Encoding: gzip, gzip")
    if path == "/brotli":
        return c.reply(200, b"\x00" * 9, "Content-Encoding: br")
    if path == "/bad-gzip":
        return c.reply(200, b"this is no gzip", "Content-Encoding: gzip")
    if path == "/to":
        status, _, target = argument.partition("&")
        return c.reply(int(status), b"moved", f"Location: {target}")
    if path == "/slow":
        c.send("HTTP/1.1 200 X\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(1000):
            c.send(b"s")
            time.sleep(0.05)
    if path == "/silent":
        time.sleep(30)
    if path == "/reset":
        c.send("HTTP/1.1 200 X\r\nContent-Length: 1000\r\n\r\npart")
        c.reset()
        return False
    if path == "/cut":
        c.send("HTTP/1.1 200 X\r\nContent-Length: 1000\r\n\r\npart")
        return False
    if path == "/close":
        return False
    if path == "/garbage":
        c.send(b"\0\1\2 no http at all\r\n\r\n" + bytes(range(256)))
        return False
    if path == "/many-headers":
        c.send("HTTP/1.1 200 X\r\n" + "".join(f"X-{i}: {'v' * 100}\r\n" for i in range(int(argument))) + "Content-Length: 0\r\n\r\n")
        return True
    if path == "/long-header":
        c.send("HTTP/1.1 200 X\r\nX: " + "v" * int(argument) + "\r\nContent-Length: 0\r\n\r\n")
        return True
    if path == "/hostile":
        c.send(b"HTTP/1.1 200 X\r\nX-Latin: caf\xe9\r\nX-Utf8: caf\xc3\xa9\r\nX-Esc: a\x1b[31mb\x07\r\nX-Quote: \"\\\r\n"
               b"X-Twice: one\r\nX-TWICE: two\r\n: no name\r\nB\xe9d: x\r\nContent-Length: 2\r\n\r\nok")
        return True
    if path == "/no-colon":
        c.send("HTTP/1.1 200 X\r\nno colon here\r\nContent-Length: 0\r\n\r\n")
        return True
    if path == "/nul-header":
        c.send(b"HTTP/1.1 200 X\r\nX: a\0b\r\nContent-Length: 0\r\n\r\n")
        return True
    if path == "/continue":
        c.send("HTTP/1.1 100 Continue\r\nX-Early: yes\r\n\r\nHTTP/1.1 103 Early\r\nX-Early: yes\r\n\r\n")
        return c.reply(200, b"ok")
    if path == "/two-lengths":
        c.send("HTTP/1.1 200 X\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\nokok")
        return False
    if path == "/cookie":
        return c.reply(200, b"", "Set-Cookie: a=b; Path=/", "Set-Cookie: c=d")
    time.sleep(float(argument or 0))
    return c.reply(200, q.path.encode())

# ---- Tests ----

def answering(s):
    a, body = one(url=s.url("/echo"), headers=["Accept: text/x", "X-Mine: 1"])
    h = a.get("headers", {})
    check("GET", a.get("status") == 200 and body == b"" and h.get("x-accept") == "text/x" and h.get("x-x-mine") == "1", a)
    check("user agent", h.get("x-user-agent", "").startswith("reeve/"), h)
    check("no more headers than that", set(h) == {"content-length", "x-host", "x-user-agent", "x-accept", "x-x-mine"}, h)
    for status in (204, 304, 404, 500, 599):
        a, body = one(url=s.url(f"/status?{status}"))
        check(f"status {status}", a.get("status") == status and body == (b"" if status in (204, 304) else b"said"), (a, body))
    a, body = one(url=s.url("/echo"), method="POST", body=b"x\n\0" * 100000, headers=["Content-Type: application/x-ndjson"])
    check("POST", body == b"x\n\0" * 100000 and a["headers"].get("x-content-type") == "application/x-ndjson" and "x-expect" not in a["headers"], a)
    a, body = one(url=s.url("/echo"), method="PUT", body=b"put")
    check("PUT", body == b"put" and s.requests[-1].method == "PUT" and "x-content-type" not in a["headers"], a)
    a, body = one(url=s.url("/echo"), method="POST")
    check("POST of nothing", a.get("status") == 200 and s.requests[-1].headers.get("content-length") == "0", a)
    a, body = one(url=s.url("/big?100000000"), method="HEAD")
    check("HEAD", a.get("status") == 200 and a["bytes"] == 0 and a["headers"]["content-length"] == "100000000", a)
    a, body = one(url=s.url("/chunked"))
    check("chunked", body == b"hello", (a, body))
    a, body = one(url=s.url("/continue"))
    check("1xx is passed over", body == b"ok" and "x-early" not in a["headers"], a)
    one(url=f"http://us%40er:pa%3Ass@127.0.0.1:{s.port}/echo")
    check("credentials in the address", s.requests[-1].headers.get("authorization") == "Basic " + base64.b64encode(b"us@er:pa:ss").decode(), s.requests[-1].headers)
    got, _ = run({"url": s.url("/cookie")}, {"url": s.url("/echo")})
    check("cookies are not kept", got["1"][0]["headers"]["set-cookie"] == "a=b; Path=/, c=d" and "x-cookie" not in got["2"][0]["headers"], got)

def hostile_headers(s):
    a, body = one(url=s.url("/hostile"))
    h = a.get("headers", {})
    check("header texts", body == b"ok" and h.get("x-latin") == h.get("x-utf8") == "caf\u00e9" and h.get("x-esc") == "a [31mb " and h.get("x-quote") == '"\\'
          and h.get("x-twice") == "one, two", h)
    check("lines that are no headers", set(h) <= {"x-latin", "x-utf8", "x-esc", "x-quote", "x-twice", "content-length"}, h)
    check("a header without a colon", code(one(url=s.url("/no-colon"))) == "protocol")
    check("a header with NUL", code(one(url=s.url("/nul-header"))) == "protocol")
    a, _ = one(url=s.url("/many-headers?500"))
    check("50 KiB of headers", a.get("status") == 200 and len(a["headers"]) == 501, str(a)[:200])
    check("70 KiB of headers", code(one(url=s.url("/many-headers?700"))) == "too_large")
    check("a header of 70 KiB", code(one(url=s.url("/long-header?70000"))) == "too_large")
    check("a header of 1 MiB", code(one(url=s.url("/long-header?1000000"))) in ("too_large", "protocol", "internal"))
    check("two lengths", code(one(url=s.url("/two-lengths"))) in ("protocol", "unreachable", None))

def sizes(s):
    a, body = one(url=s.url(f"/big?{MIB}"))
    check("1 MiB by default", len(body) == MIB, a)
    check("and no byte more", code(one(url=s.url(f"/big?{MIB + 1}"))) == "too_large")
    check("an answer without an end", code(one(url=s.url("/endless"), max_bytes=3 * MIB)) == "too_large")
    a, body = one(url=s.url(f"/big?{64 * MIB}"), max_bytes=64 * MIB)
    check("64 MiB", len(body) == 64 * MIB, a)
    check("gzip, whole or not, is none that was asked for", code(one(url=s.url("/gzip?1000000"))) == "protocol"
          and "accept-encoding" not in s.requests[-1].headers)
    check("gzip in gzip", code(one(url=s.url(f"/bomb?{MIB}"))) == "protocol")
    check("gzip that is none", code(one(url=s.url("/bad-gzip"))) == "protocol")
    check("any encoding", code(one(url=s.url("/brotli"))) == "protocol")

def redirects(s, other):
    a, body = one(url=s.url("/to?302&/echo"))
    check("redirect within", a.get("status") == 200 and "location" not in a["headers"], a)
    one(url=f"http://u:p@127.0.0.1:{s.port}/to?301&/echo")
    check("credentials stay with their place", s.requests[-1].headers.get("authorization", "").startswith("Basic"), s.requests[-1].headers)
    a, body = one(url=s.url("/to?307&/echo"), method="POST", body=b"again")
    check("307 keeps the body", body == b"again" and s.requests[-1].method == "POST", a)
    for status in (301, 302, 303):
        check(f"{status} of a POST", code(one(url=s.url(f"/to?{status}&/echo"), method="POST", body=b"x")) == "redirect_refused")
    n = len(other.requests)
    for target, named in ((other.url("/echo"), f"127.0.0.1:{other.port}"), (s.url("/echo", "localhost"), "localhost"), ("https://127.0.0.1/x", "https://"),
                          (f"//127.0.0.1:{other.port}/x", str(other.port)), ("file:///etc/passwd", ""), ("gopher://127.0.0.1/x", "gopher"), ("http://", "")):
        a = one(url=s.url(f"/to?302&{target}"))
        check(f"redirect to {target}", code(a) == "redirect_refused" and named in a[0]["error"]["message"], a)
    check("nobody else was asked", len(other.requests) == n)
    a = one(url=s.url("/to?302&" + s.url("/to?302&/to?302&/to?302&/to?302&/echo")))
    check("five redirects", a[0].get("status") == 200, a)
    loop = one(url=s.url("/to?302&/to?302&/to?302&/to?302&/to?302&/to?302&/echo"))
    check("six are too many", code(loop) == "redirect_refused", loop)

def trouble(s):
    began = time.monotonic()
    check("a slow server", code(one(url=s.url("/slow"), timeout_ms=500)) == "timeout")
    check("a silent server", code(one(url=s.url("/silent"), timeout_ms=500)) == "timeout")
    check("in time", time.monotonic() - began < 5, time.monotonic() - began)
    check("a reset", code(one(url=s.url("/reset"))) == "unreachable")
    check("a body that is cut off", code(one(url=s.url("/cut"))) == "unreachable")
    check("no answer", code(one(url=s.url("/close"))) == "unreachable")
    check("no HTTP", code(one(url=s.url("/garbage"))) == "protocol")
    check("nobody there", code(one(url="http://127.0.0.1:1/")) == "unreachable")
    check("no such name", code(one(url="http://nowhere.invalid/", timeout_ms=5000)) in ("unreachable", "timeout"))
    a = one(url="https://127.0.0.1:%d/" % s.port, timeout_ms=1000)
    check("TLS to what has none", code(a) in ("tls", "unreachable", "timeout"), a)

def tls(place):
    servers.make_authority(place, "good")
    servers.make_authority(place, "other")
    good, expired = servers.make_certificate(place, "good", "server"), servers.make_certificate(place, "good", "expired", "-1")
    ca = os.path.join(place, "good.pem")
    with Server(behave, good) as s, Server(behave, expired) as old, Server(behave) as plain:
        check("TLS", one(url=s.url("/echo"), ca=ca)[0].get("status") == 200)
        for name, q in (("no CA", {"url": s.url()}), ("another CA", {"url": s.url(), "ca": os.path.join(place, "other.pem")}),
                        ("a CA file that is not there", {"url": s.url(), "ca": "/nowhere.pem"}), ("an expired certificate", {"url": old.url(), "ca": ca}),
                        ("another name", {"url": s.url(host="localhost"), "ca": ca})):
            a = one(**q)
            check(f"TLS, {name}", code(a) == "tls", a)
        a = one(url=s.url(f"/to?302&{plain.url('/echo')}"), ca=ca)
        check("from https to http", code(a) == "redirect_refused" and not plain.requests, a)
        got, _ = run(*[{"url": s.url(f"/{i}"), "ca": ca} for i in range(50)])
        check("TLS connections are used again", all(got[str(i + 1)][1] == f"/{i}".encode() for i in range(50)) and s.n_connections < 30, s.n_connections)

def proxies(s):
    def forward(q, c):
        if "bad" in q.headers.get("proxy-authorization", "bad"):
            return c.reply(407, b"who are you")
        return c.reply(200, f"by proxy {q.path}".encode())
    with Server(forward) as proxy:
        good = f"http://user:good@127.0.0.1:{proxy.port}"
        a, body = one(url="http://far.example/x", proxy=good)
        check("by a proxy", body == b"by proxy http://far.example/x", (a, body))
        check("a proxy that refuses", one(url="http://far.example/", proxy=proxy.url())[0].get("status") == 407)
        a = one(url="https://far.example/", proxy=proxy.url())
        check("a proxy that refuses a tunnel", code(a) == "unreachable", a)
        check("no proxy there", code(one(url="http://far.example/", proxy="http://127.0.0.1:1")) == "unreachable")
        a = one(url="https://far.example/", proxy=good, headers=["Authorization: Bearer secret"])
        # Behind the tunnel comes TLS, which this proxy takes for another request.
        tunnels = [q for q in proxy.requests if q.method == "CONNECT"]
        check("the proxy of a tunnel sees no credentials", len(tunnels) == 2 and not any("authorization" in q.headers for q in proxy.requests), [(q.method, q.headers) for q in proxy.requests])
        env = {k: proxy.url() for k in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy")}
        got, _ = run({"url": s.url("/echo")}, env=env)
        check("proxies of the environment are not used", got["1"][0].get("status") == 200 and not any("/echo" in q.path for q in proxy.requests), got)
    check("socks is no proxy here", code(one(url=s.url(), proxy="socks5://127.0.0.1:1")) == "usage")

def pipelined(s):
    began = time.monotonic()
    got, _ = run(*[{"url": s.url(f"/p{i}?0.02")} for i in range(100)])
    took = time.monotonic() - began
    check("100 requests", all(got[str(i + 1)][1] == f"/p{i}?0.02".encode() for i in range(100)), len(got))
    check("16 at once, on as many connections", 2 <= s.n_busy_most <= 16 and s.n_connections <= 16, (s.n_busy_most, s.n_connections))
    check("in parallel", took < 1.5, took)
    got, _ = run({"url": s.url("/?0.3")}, {"url": s.url("/fast")})
    check("answers come as they are there", list(got) == ["2", "1"], list(got))
    bodies = [bytes([65 + i]) * 300000 for i in range(20)]
    got, _ = run(*[{"url": s.url("/echo"), "method": "POST", "body": b} for b in bodies])
    check("20 bodies", all(got[str(i + 1)][1] == b for i, b in enumerate(bodies)), {k: v[0] for k, v in got.items()})
    return took

def memory(s):
    """A reader that takes nothing, 16 answers of 16 MiB each wanted: what is held stays bounded, and all come in the end."""
    p = subprocess.Popen(HELPER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    text = lines(*[{"url": s.url(f"/big?{16 * MIB}"), "max_bytes": 16 * MIB} for _ in range(16)])
    writer = threading.Thread(target=lambda: (p.stdin.write(text), p.stdin.close()), daemon=True)
    writer.start()
    time.sleep(2)
    most = int(status_of(p.pid)["VmHWM"][0]) // 1024
    got = answers(p.stdout.read())
    writer.join()
    check("all 16 answers", len(got) == 16 and all(len(b) == 16 * MIB for _, b in got.values()) and p.wait(10) == 0, len(got))
    check("memory is bounded", most < 150, most)
    return most

def flood():
    """Requests that are refused, from a caller that reads nothing: not all of them are read before it does."""
    p, n = subprocess.Popen(HELPER, stdin=subprocess.PIPE, stdout=subprocess.PIPE), 200000
    text = lines({"url": "ftp://x.example/"}) * n
    writer = threading.Thread(target=lambda: (p.stdin.write(text), p.stdin.close()), daemon=True)
    writer.start()
    time.sleep(1.5)
    most = int(status_of(p.pid)["VmHWM"][0]) // 1024
    out = p.stdout.read()
    writer.join()
    check("an answer for each refused request", out.count(b'"usage"') == n and p.wait(10) == 0, out.count(b"\n"))
    check("memory is bounded when nobody reads", most < 40, most)

def usage(s):
    url = s.url("/echo")
    for name, q in (("no url", {}), ("ftp", {"url": "ftp://x.example/"}), ("file", {"url": "file:///etc/passwd"}), ("no scheme", {"url": "127.0.0.1/x"}),
                    ("a space", {"url": "http://a b/"}), ("no host", {"url": "http://"}), ("a newline", {"url": url + "\nX: y"}), ("a port too far", {"url": "http://a.example:99999/"}),
                    ("DELETE", {"url": url, "method": "DELETE"}), ("method in lower case", {"url": url, "method": "get"}), ("a body for GET", {"url": url, "body": b"x"}),
                    ("max_bytes 0", {"url": url, "max_bytes": 0}), ("max_bytes past 64 MiB", {"url": url, "max_bytes": 64 * MIB + 1}), ("timeout -1", {"url": url, "timeout_ms": -1}),
                    ("timeout as text", {"url": url, "timeout_ms": "5"}), ("headers as object", {"url": url, "headers": {"a": "b"}}), ("a header without colon", {"url": url, "headers": ["x"]}),
                    ("a header with newline", {"url": url, "headers": ["a: b\r\nc: d"]}), ("Host", {"url": url, "headers": ["Host: other"]}),
                    ("Transfer-Encoding", {"url": url, "headers": ["transfer-encoding: chunked"]}), ("Content-Length", {"url": url, "headers": ["Content-Length: 5"]}),
                    ("Accept-Encoding", {"url": url, "headers": ["Accept-Encoding: br"]}), ("65 headers", {"url": url, "headers": ["a: b"] * 65}), ("relative ca", {"url": url, "ca": "x.pem"}),
                    ("an unknown member", {"url": url, "follow": True})):
        n = len(s.requests)
        got, _ = run(q, {"url": url})
        check(f"usage: {name}", code(got["1"]) == "usage" and got["2"][0].get("status") == 200 and len(s.requests) == n + 1, got)
    got, _ = run({"url": s.url("/?0.3"), "id": "same"}, {"url": url, "id": "same", "method": "POST", "body": b"skipped"}, {"url": url})
    check("an id in use", got["3"][0].get("status") == 200, got)
    for name, raw in (("no JSON", b"GET / HTTP/1.1\n"), ("a list", b"[]\n"), ("no id", b'{"url":"http://x.example/"}\n'), ("a long id", b'{"id":"' + b"i" * 65 + b'"}\n'),
                      ("body_bytes past the bound", b'{"id":"1","url":"http://x.example/","method":"POST","body_bytes":4194305}\n'),
                      ("duplicates", b'{"id":"1","id":"2"}\n'), ("a line without an end", b'{"id":"1"'), ("too deep", b'{"id":"1","headers":[[1]]}\n'),
                      ("a long line", b'{"id":"1","url":"http://x.example/' + b"u" * 70000 + b'"}\n'), ("a body that is cut off", b'{"id":"1","url":"http://x.example/","method":"POST","body_bytes":5}\nab')):
        got, err = run(raw=lines({"id": "0", "url": url}) + raw, status=2)
        check(f"end: {name}", err.startswith("reeve-fetch: ") and len(err.splitlines()) == 1, err)
    check("nothing to do", run(raw=b"")[0] == {})

def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return {k: v.split() for k, _, v in (line.partition(":") for line in f)}

def confined(s):
    """What it may not have once it runs: descriptors, privilege, other programs, cores."""
    r, w = os.pipe()
    p = subprocess.Popen(HELPER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[r, w], env={"SECRET": "x"})
    p.stdin.write(lines({"url": s.url("/echo")}))
    p.stdin.flush()
    p.stdout.readline()
    status = status_of(p.pid)
    fds = [os.readlink(f"/proc/{p.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{p.pid}/fd")] if os.geteuid() == 0 else []
    inherited = f"pipe:[{os.fstat(r).st_ino}]"
    check("no_new_privs and a filter", status["NoNewPrivs"] == ["1"] and status["Seccomp"] == ["2"], status)
    check("as root it becomes nobody", os.geteuid() != 0 or set(status["Uid"]) == {"65534"} and int(status["CapEff"][0], 16) == 0 and not status["Groups"], status)
    check("it keeps no descriptor of its caller", inherited not in fds, fds)
    with open(f"/proc/{p.pid}/limits", encoding="ascii") as f:
        check("no core", any(line.startswith("Max core file size") and line.split()[4] == "0" for line in f))
    p.stdin.close()
    check("it ends with its input", p.wait(5) == 0)
    if os.geteuid() == 0:
        uid = subprocess.Popen(HELPER + ["--uid", "12345"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        uid.stdin.write(lines({"url": s.url("/echo")}))
        uid.stdin.flush()
        uid.stdout.readline()
        check("--uid", status_of(uid.pid)["Uid"] == ["12345"] * 4)
        uid.stdin.close()
        uid.wait(5)
    for words in (["--uid"], ["--uid", "0"], ["--uid", "-1"], ["--uid", "x"], ["x"]):
        bad = subprocess.run(HELPER + words, input=b"", capture_output=True, check=False, timeout=10)
        check(f"usage of {words}", bad.returncode == 2, bad)
    p = subprocess.Popen(HELPER, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    p.stdout.close()
    p.stdin.write(lines({"url": s.url("/echo")}))
    p.stdin.flush()
    check("nobody reads", p.wait(10) == 1)
    p.stdin.close()

def main():
    HELPER[0] = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as place, Server(behave) as s, Server(behave) as other:
        os.chmod(place, 0o755)
        with open(HELPER[0], "rb") as f:
            is_sanitized = b"__asan_init" in f.read()
        for f in (answering, hostile_headers, sizes, trouble):
            f(s)
        with Server(behave) as fresh:   # what trouble() made may still be on its way to the other
            usage(fresh)
        redirects(s, other)
        tls(place)
        proxies(s)
        if not is_sanitized:
            confined(s)
        with Server(behave) as fresh:
            took = pipelined(fresh)
        if not is_sanitized:
            flood()
        most = memory(s) if not is_sanitized else 0
    print(f"100 requests of 20 ms: {took * 1000:.0f} ms; most memory: {most} MiB")
    return 1 if failures else 0

if __name__ == "__main__":
    sys.exit(main())
