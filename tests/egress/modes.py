#!/usr/bin/python3
"""What configuration and policy make of a run's network, in whole runs: ceilings, ports, what the operator names and denies,
proxies, and the hosts that an index's page names.

    modes.py REEVE DRIVE [WORD…]
"""
import servers
from through import HERE, OTHER, PUBLIC, Server, Stream, matches, reeve
from world import Dns, Sniffer, main, socket

FILES, PRIVATE, PROXY = "93.184.216.20", "10.1.2.3", "10.1.2.9"
MODES = ["none", "registries", "domains", "any"]


def index(s, server):
    """An index whose page names hosts of files: `server.links`."""
    stream = Stream(s)
    while (head := stream.until(b"\r\n\r\n")) is not None:
        server.seen.append(head.split(b"\r\n")[0])
        body = "".join(f'<a href="{link}#sha256=00">a</a>\n' for link in server.links).encode()
        s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


def proxy(s, server):
    """CONNECT, to the places that it knows; what goes through is served as if it were there. All else is refused."""
    head = Stream(s).until(b"\r\n\r\n")
    server.seen.append(head)
    target = head.split(b" ")[1]
    if not head.startswith(b"CONNECT ") or target not in server.places:
        s.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
        return
    s.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
    servers.web(s, server)


def setup():
    global dns, sniffer, web, here, other, files, private, pages, forward, six
    dns, sniffer = Dns(), Sniffer()
    dns.zone = {("public.example.test", "A"): [PUBLIC], ("other.test", "A"): [OTHER], ("files.test", "A"): [FILES], ("intern.test", "A"): [PRIVATE],
                ("reg.test", "A"): [HERE], ("proxy.test", "A"): [PROXY], ("six.example.test", "A"): [OTHER]}
    web, other, files, private = (Server(a, 80, servers.web) for a in (PUBLIC, OTHER, FILES, PRIVATE))
    here, pages, forward = Server(HERE, 8080, servers.web), Server(HERE, 80, index), Server(PROXY, 3128, proxy)
    for address in (PUBLIC, OTHER, HERE):
        Server(address, 8085, servers.web)
    six = Server("fd00::5", 80, servers.web, family=socket.AF_INET6)
    pages.links, forward.places = [], set()


def run(code, language="python", **options):
    for s in (web, here, other, files, private, pages, forward, six):
        s.fresh()
    dns.asked.clear()
    sniffer.take()
    return reeve(code, language, **options)


def dialled():
    return {(a, p) for kind, a, p in sniffer.take() if kind == "tcp"}


# ---- Ceilings ----

def test_ceilings():
    """A request for more than the tenant may have is refused before anything starts; for as much or less it runs."""
    for ceiling in MODES:
        for mode in MODES:
            r = run("print('ran')", mode=mode, config={"tenants": {"local": {"network": ceiling}}, "registries": {"python": {"index": "http://reg.test/simple"}}})
            if MODES.index(mode) <= MODES.index(ceiling):
                assert r.ended().text == "ran\n" and r.mode == mode, (ceiling, mode, r.all)
            else:
                reason = r.all["reason"]
                assert (r.exit, r.all["status"], r.all["started"], reason["code"], reason["detail"]["rule"], r.text) == (126, "blocked", "no", "network_denied", "tenant", ""), r.all
                assert r.contacts == r.denials == [] and dialled() == set() and dns.asked == []


def test_each_tenant_has_its_own_ceiling():
    tenants = {"tenants": {"local": {"network": "none"}, "wide": {"network": "any"}, "usual": {}}}
    for tenant, exit_status in (("local", 126), ("wide", 0), ("usual", 0)):
        assert run("print(get('http://other.test/'))", mode="any", config=tenants, args=["--tenant", tenant]).exit == exit_status, tenant


# ---- Policy's ports ----

POLICY = """return policy { packages = { default = 'allow' }, network = { %s default = 'allow' }, idempotency = { default = 'none' },
                        backend = { default = 'tenant' } }"""
PORTS = """
print([get(f'http://{h}/') for h in sys.argv[1:]] or [get(f'http://{h}/') for h in HOSTS])
got, ms = ask('other.test', 22, X); print(got, ms < 50)"""


def test_ports_in_mode_any():
    """One rule for all of it: names and addresses, HTTP or not."""
    r = run("HOSTS = ('other.test', 'other.test:8085', '93.184.216.6', '93.184.216.6:8085')" + PORTS, mode="any",
            policy=POLICY % "rule { id = 'web', match = { mode = 'any' }, ports = { 80, 443 }, allow = true },").ended()
    assert r.lines == ["['other.test /', 403, '93.184.216.6 /', 403]", "b'!RESET' True"], r.text
    assert r.refused() == [("other.test", "", 8085, "http", "port", 1), ("", OTHER, 8085, "http", "port", 1), ("other.test", "", 22, "tcp", "port", 1)], r.denials
    assert r.reached() == [("other.test", OTHER, 80, "http", 1), ("", OTHER, 80, "http", 1)] and dialled() == {(OTHER, 80)}, r.contacts


def test_ports_in_mode_domains():
    """A rule's ports hold for its domain; where two of the request's domains hold a name, one that allows the port is enough."""
    rules = "rule { id = 'a', match = { domain = 'example.test' }, ports = { 80 }, allow = true }, rule { id = 'b', match = { domain = 'other.test' }, ports = { 8085 }, allow = true },"
    r = run("HOSTS = ('public.example.test', 'public.example.test:8085', 'other.test', 'other.test:8085')" + PORTS, domains=["example.test", "other.test"], policy=POLICY % rules).ended()
    assert r.lines == ["['public.example.test /', 403, 403, 'other.test:8085 /']", "b'!RESET' True"], r.text
    assert {d[:5] for d in r.refused()} == {("public.example.test", "", 8085, "http", "port"), ("other.test", "", 80, "http", "port"), ("other.test", "", 22, "tcp", "port")}
    assert dialled() == {(PUBLIC, 80), (OTHER, 8085)}
    rules = "rule { id = 'a', match = { domain = 'example.test' }, ports = { 443 }, allow = true }, rule { id = 'b', match = { domain = 'public.example.test' }, ports = { 80 }, allow = true },"
    r = run("print(get('http://public.example.test/'), get('http://six.example.test/'))", domains=["example.test", "public.example.test"], policy=POLICY % rules).ended()
    assert r.text == "public.example.test / 403\n" and dialled() == {(PUBLIC, 80)}, r.text


def test_ports_in_mode_registries():
    registries = {"registries": {"python": {"index": "http://reg.test:8080/simple", "files": ["http://files.test"]}}}
    for ports, want in (("80", "403 files.test /"), ("8080", "reg.test:8080 / 403"), ("443", "403 403")):
        r = run("print(get('http://reg.test:8080/'), get('http://files.test/'))", mode="registries", config=registries,
                policy=POLICY % f"rule {{ id = 'x', match = {{ mode = 'registries' }}, ports = {{ {ports} }}, allow = true }},").ended()
        assert r.text == want + "\n" and {d[4] for d in r.refused()} == {"port"}, (ports, r.text, r.denials)


# ---- What the operator names and denies ----

def test_names_that_the_operator_resolves():
    """Wherever their name is allowed, private or not, in IPv4 or IPv6; nobody is asked for them."""
    config = {"egress": {"resolve": {"api.example.test": HERE, "v6.example.test": "fd00::5", "intern.test": PRIVATE, "x.other.test": PRIVATE}}}
    code = "print([get(f'http://{h}/') for h in ('api.example.test:8080', 'v6.example.test', 'intern.test', 'x.other.test', 'y.api.example.test', '10.1.2.3', '[fd00::5]')])"
    r = run(code, config=config).ended()
    assert r.text == "['api.example.test:8080 /', 'v6.example.test /', 'gaierror', 'gaierror', 502, 403, 403]\n", r.text
    assert dialled() == {(HERE, 8080), ("fd00::5", 80)} and dns.names() == {"y.api.example.test"}, dns.asked
    matches(r, "v6.example.test", six, "http", 1)
    assert r.refused() == [("intern.test", "", 0, "dns", "name", 1), ("x.other.test", "", 0, "dns", "name", 1), ("y.api.example.test", "", 80, "http", "unresolved", 1),
                           ("", PRIVATE, 80, "http", "no-name", 1), ("", "fd00::5", 80, "http", "no-name", 1)], r.denials
    r = run(code, mode="any", config=config).ended()
    assert r.text == "['api.example.test:8080 /', 'v6.example.test /', 'intern.test /', 'x.other.test /', 502, 403, 403]\n", r.text
    assert {d[4] for d in r.refused()} == {"unresolved", "private"}, r.denials


def test_what_the_operator_denies():
    """Names and what is below them, addresses, networks, whoever allows them."""
    denied = ["other.test", "93.184.216.0/28", "fd00::/8", HERE]
    config = {"egress": {"deny": denied, "resolve": {"api.example.test": HERE, "v6.example.test": "fd00::5", "other.test": PRIVATE}},
              "registries": {"python": {"index": "http://reg.test/simple", "files": ["http://files.test"]}}}
    r = run("print([get(f'http://{h}/') for h in ('other.test', 'a.other.test', 'public.example.test', 'api.example.test', 'v6.example.test', 'files.test')])",
            domains=["example.test", "other.test", "files.test"], config=config).ended()
    assert r.text == "['gaierror', 'gaierror', 403, 403, 403, 'files.test /']\n", r.text
    assert r.refused() == [("other.test", "", 0, "dns", "egress.deny", 1), ("a.other.test", "", 0, "dns", "egress.deny", 1), ("public.example.test", PUBLIC, 80, "http", "egress.deny", 1),
                           ("api.example.test", HERE, 80, "http", "egress.deny", 1), ("v6.example.test", "fd00::5", 80, "http", "egress.deny", 1)], r.denials
    assert dialled() == {(FILES, 80)}
    r = run("print([get(f'http://{h}/') for h in ('93.184.216.5', 'reg.test', 'files.test', '[fd00::5]')], get('http://93.184.216.20/', Host='a.other.test'))", mode="any", config=config).ended()
    assert r.text == "[403, 403, 'files.test /', 403] 403\n" and {d[4] for d in r.refused()} == {"egress.deny"}, (r.text, r.denials)
    r = run("print(get('http://reg.test/'), get('http://files.test/'))", mode="registries", config=config).ended()
    assert r.text == "403 files.test /\n" and r.refused() == [("reg.test", HERE, 80, "http", "egress.deny", 1)], (r.text, r.denials)


# ---- Registries ----

def test_each_language_has_its_registries():
    config = {"registries": {"python": {"index": "http://reg.test:8080/simple", "files": ["http://files.test"]}, "javascript": {"index": "http://other.test/"}}}
    r = run("print([get(f'http://{h}/') for h in ('reg.test:8080', 'files.test', 'other.test', 'public.example.test', '10.1.2.3:8080')])", mode="registries", config=config).ended()
    assert r.text == "['reg.test:8080 /', 'files.test /', 'gaierror', 'gaierror', 403]\n", r.text
    assert r.reached() == [("reg.test", HERE, 8080, "http", 1), ("files.test", FILES, 80, "http", 1)] and dialled() == {(HERE, 8080), (FILES, 80)}, r.contacts
    r = run("for (const h of ['other.test', 'reg.test:8080']) try { console.log(await (await fetch(`http://${h}/`)).text()); } catch (e) { console.log(e.cause.code); }",
            "javascript", mode="registries", config=config).ended()
    assert r.lines == ["other.test /", "ENOTFOUND"] and r.reached() == [("other.test", OTHER, 80, "http", 1)], (r.text, r.contacts)
    tenant = {**config, "tenants": {"local": {"registries": {"python": {"index": "http://other.test/simple", "files": ["http://other.test"]}}}}}
    r = run("print(get('http://other.test/'), get('http://reg.test:8080/'))", mode="registries", config=tenant).ended()
    assert r.text == "other.test / gaierror\n", r.text


def test_hosts_that_the_indexs_page_names():
    """They are reached if they are public; a private one has to be named by the operator."""
    pages.links = ["http://files.test/a.whl", "http://intern.test/b.whl", "http://10.1.2.3/c.whl", "http://127.0.0.5:8080/d.whl", "http://169.254.169.254/e", "/own/f.whl",
                   "https://files.test:8443/g.whl", "http://u:p@other.test/h.whl"]
    config = {"registries": {"python": {"index": "http://reg.test/simple"}}}
    code = """
print([get(f'http://{h}/') for h in ('files.test', 'other.test', 'intern.test', '10.1.2.3', '127.0.0.5:8080', '169.254.169.254', 'files.test:8085', 'public.example.test')])
print(get('http://reg.test/simple/pip/')[:8])"""
    r = run(code, mode="registries", config=config).ended()
    assert r.lines == ["['files.test /', 'other.test /', 403, 403, 'ConnectionRefusedError', 403, 403, 'gaierror']", "<a href="], r.text    # 127.0.0.5 is the run's own
    refused = [("intern.test", PRIVATE, 80, "http", "private", 1), ("", PRIVATE, 80, "http", "private", 1), ("", "169.254.169.254", 80, "http", "metadata", 1),
               ("files.test", "", 8085, "http", "port", 1), ("public.example.test", "", 0, "dns", "name", 1)]
    assert r.refused() == refused, r.denials
    assert r.reached() == [("files.test", FILES, 80, "http", 1), ("other.test", OTHER, 80, "http", 1), ("reg.test", HERE, 80, "http", 1)], r.contacts
    assert pages.seen.count(b"GET /simple/pip/ HTTP/1.1") == 2, pages.seen
    r = run(code, mode="registries", config=config).ended()
    assert pages.seen == [b"GET /simple/pip/ HTTP/1.1"], "the page is asked for once a day, not by every run"
    r = run("print(get('http://intern.test/'))", mode="registries", config={"registries": {"python": {"index": "http://reg.test/simple", "files": ["http://intern.test"]}}}).ended()
    assert r.text == "intern.test /\n", r.text


def test_an_index_that_is_down():
    """Its hosts of files are not known then, and are not reached; the index itself may be, whenever it is back."""
    r = run("print(get('http://reg.test:8086/'), get('http://files.test/'))", mode="registries", config={"registries": {"python": {"index": "http://reg.test:8086/simple"}}}).ended()
    assert r.text == "ConnectionResetError gaierror\n", r.text
    assert r.reached() == [("reg.test", HERE, 8086, "http", 0)] and r.refused() == [("files.test", "", 0, "dns", "name", 1)], (r.contacts, r.denials)


# ---- A proxy ----

def test_registries_by_a_proxy():
    """Each connection by CONNECT, plain HTTP too; the proxy alone is dialled, and nobody is asked for the registry's name."""
    forward.places = {b"far.test:80", b"far.test:8443"}
    for where in ("http://10.1.2.9:3128", "http://proxy.test:3128/"):
        config = {"registries": {"python": {"index": "http://far.test/simple", "files": ["http://far.test", "http://gone.test", "far.test:8443"], "proxy": where}}}
        r = run(r"""
c = http.client.HTTPConnection('far.test'); got = []
for i in range(3): c.request('GET', f'/{i}'); got.append(c.getresponse().read().decode())
print(got, get('http://far.test/x'), get('http://gone.test/'), get('http://far.test/', Host='other.test'), get('http://other.test/'), get('http://proxy.test:3128/'))
print(ask('10.1.2.9', 3128, b'CONNECT other.test:80 HTTP/1.1\r\nHost: other.test\r\n\r\n')[0][9:12])""", mode="registries", config=config).ended()
        assert r.lines == ["['far.test /0', 'far.test /1', 'far.test /2'] far.test /x ConnectionResetError 403 gaierror gaierror", "b'403'"], r.text
        assert r.reached() == [("far.test", PROXY, 80, "http", 2), ("gone.test", PROXY, 80, "http", 0)], r.contacts
        assert [d[:5] for d in r.refused()] == [("other.test", "", 80, "http", "name"), ("other.test", "", 0, "dns", "name"), ("proxy.test", "", 0, "dns", "name"),
                                               ("", PROXY, 3128, "http", "no-name")], r.denials
        assert [h.split(b"\r\n")[0] for h in forward.seen if h.startswith(b"CONNECT")] == [b"CONNECT far.test:80 HTTP/1.1", b"CONNECT far.test:80 HTTP/1.1", b"CONNECT gone.test:80 HTTP/1.1"], forward.seen
        assert all(b"secret" not in h and b"uthorization" not in h for h in forward.seen)
        assert dialled() == {(PROXY, 3128)} and dns.names() <= {"proxy.test"}, dns.asked


def test_a_proxy_is_for_registries_alone():
    config = {"registries": {"python": {"index": "http://far.test/simple", "files": ["http://far.test"], "proxy": "http://10.1.2.9:3128"}}}
    r = run("print(get('http://public.example.test/'))", config=config).ended()
    assert r.text == "public.example.test /\n" and dialled() == {(PUBLIC, 80)}, r.text
    r = run("print(get('http://10.1.2.9:3128/'))", mode="any", config=config).ended()
    assert r.text == "403\n" and r.refused() == [("", PROXY, 3128, "http", "private", 1)], (r.text, r.denials)


def test_a_proxy_that_the_gate_does_not_speak_to():
    """Nothing is dialled past it."""
    for where, word in (("https://10.1.2.9:3128", "without TLS"), ("http://user:secret@10.1.2.9:3128", "password")):
        r = run("print(1)", mode="registries", config={"registries": {"python": {"index": "http://far.test/simple", "proxy": where}}})
        assert (r.exit, r.all["reason"]["code"], r.all["reason"]["detail"]["missing"]) == (126, "backend_denied", ["network_registries"]), r.all
        assert word in r.all["reason"]["message"] and "registries.python.proxy" in r.all["reason"]["message"] and "secret" not in str(r.all), r.all["reason"]
        assert dialled() == set()


def test_a_proxy_that_is_not_to_be_had():
    files = {"index": "http://far.test/simple", "files": ["http://far.test"]}
    r = run("t = time.monotonic(); print(get('http://far.test/'), time.monotonic() - t < 1)", mode="registries", config={"registries": {"python": {**files, "proxy": "http://10.1.2.9:3129"}}}).ended()
    assert r.text == "ConnectionResetError True\n" and r.reached() == [("far.test", PROXY, 80, "http", 0)], (r.text, r.contacts)
    r = run("print(get('http://far.test/'))", mode="registries", config={"egress": {"deny": ["10.0.0.0/8"]}, "registries": {"python": {**files, "proxy": "http://10.1.2.9:3128"}}}).ended()
    assert r.text == "403\n" and r.refused() == [("far.test", PROXY, 80, "http", "egress.deny", 1)] and dialled() == set(), (r.text, r.denials)
    r = run("print(get('http://far.test/'))", mode="registries", config={"registries": {"python": {**files, "proxy": "http://nowhere.test:3128"}}}).ended()
    assert r.text == "502\n" and r.refused() == [("far.test", "", 80, "http", "unresolved", 1)], (r.text, r.denials)


# ---- Limits of the configuration ----

def test_limits():
    config = {"egress": {"limits": {"connections": 2, "connections_per_s": 50, "bytes": "64KiB", "idle": "300ms", "names": 3, "dns_per_s": 100}}}
    r = run(r"""
held = [dial('public.example.test', 80) for _ in range(2)]; t = time.monotonic()
print([resolve(f'n{i}.example.test') is not None for i in range(4)], [read(s) for s in held], 0.2 < time.monotonic() - t < 1)
n = 0
while get('http://public.example.test/' + 'x' * 4000) != 403: n += 1
print(7 <= n <= 8)""", config=config).ended()
    assert r.lines == ["[True, True, False, False] [b'!RESET', b'!RESET'] True", "True"], r.text
    assert [(d[0], d[4]) for d in r.refused()] == [("n2.example.test", "name-limit"), ("n3.example.test", "name-limit"), ("public.example.test", "byte-limit")], r.denials


if __name__ == "__main__":
    main(globals())
