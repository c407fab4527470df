#!/usr/bin/python3
"""What whole runs are refused: by which rule, how often, how fast, in every mode and protocol; and that nothing of it leaves.

    refusals.py REEVE DRIVE [WORD…]
"""
import os
import signal
import subprocess
import sys
import threading
import time

import servers
from through import HERE, OTHER, PUBLIC, STATE, Server, reeve, with_link, without
from world import Dns, Sniffer, main

PRIVATE, OWN = "10.1.2.3", "93.184.216.77"
CONFIG = {"egress": {"resolve": {"api.example.test": HERE}, "deny": ["bad.example.test", "93.184.216.9"]},
          "registries": {"python": {"index": "http://reg.test/simple", "files": ["http://reg.test"]}}}

# What a row may do; each gives what came of it.
TRIES = r'''
def hello(name):
    i, o = ssl.MemoryBIO(), ssl.MemoryBIO(); c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT); c.check_hostname = name is not None
    t = c.wrap_bio(i, o, server_hostname=name)
    try: t.do_handshake()
    except ssl.SSLWantReadError: return o.read()
def tcp(host, port, data=b''):
    """Up to the first kilobyte of an answer: the status, or what ended it."""
    got = ask(host, port, data, 5)[0]
    return got[9:12].decode() if got.startswith(b'HTTP/1.1 ') else got.decode('latin-1')[:40]
def late(host, port, *pieces):
    s = dial(host, port, b'', 5)
    try:
        for p in pieces: s.sendall(p); time.sleep(0.001)
    except OSError as e: return type(e).__name__
    got = read(s); return ' '.join(p[:3].decode() for p in got.split(b'HTTP/1.1 ')[1:]) or got.decode('latin-1')
def udp(host, port):
    s = socket.socket(socket.AF_INET6 if ':' in host else socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2)
    try: s.connect((host, port)); s.send(b'x'); return s.recv(9).decode('latin-1')
    except OSError as e: return type(e).__name__
def name(n, kind=1, server='127.0.0.1', is_tcp=False):
    try: return 'code %d, %d answers' % dns(n, kind, server, is_tcp)
    except OSError as e: return type(e).__name__
def curl_says(*args): return curl('-o', '/dev/null', '-w', '%{http_code}', *args)[1][:3]
def judge(rows):
    import statistics
    for label, what in rows:
        times = []
        for _ in range(3):
            t = time.monotonic(); got = what(); times.append((time.monotonic() - t) * 1000)
        print(f'{label}\t{got}\t{statistics.median(times):.1f}')
'''


def setup():
    global dns, sniffer, all_servers
    dns, sniffer = Dns(), Sniffer()
    dns.zone = {("public.example.test", "A"): [PUBLIC], ("other.test", "A"): [OTHER], ("bad.example.test", "A"): [OTHER], ("reg.test", "A"): [PUBLIC],
                ("priv.example.test", "A"): [PRIVATE], ("meta.example.test", "A"): ["169.254.169.254"], ("secret.attacker.test", "A"): [OTHER]}
    all_servers = [Server(a, p, servers.web) for a in (HERE, OTHER, PRIVATE, "169.254.169.254", "93.184.216.9") for p in (80, 443, 22, 8080, 8443)]
    Server(PUBLIC, 80, servers.web)


def row(label, what, came, *denial):
    return label, what, came, denial


# Where names are judged: the names that are not allowed, what has no name, and what hides one behind another.
NAMED = [
    row("DNS, a name", "name('other.test')", "code 3, 0 answers", "other.test", "", 0, "dns", "name"),
    row("DNS, TXT by TCP", "name('secret.attacker.test', 16, '8.8.8.8', True)", "code 3, 0 answers", "secret.attacker.test", "", 0, "dns", "name"),
    row("DNS, AAAA by IPv6", "name('v6.other.test', 28, '2001:4860:4860::8888')", "code 3, 0 answers", "v6.other.test", "", 0, "dns", "name"),
    row("DNS, one label", "name('intern')", "code 3, 0 answers", "intern", "", 0, "dns", "single-label"),
    row("DNS, an address", "name('169.254.169.254')", "code 3, 0 answers", "169.254.169.254", "", 0, "dns", "literal"),
    row("TCP, 22, silent", f"tcp('{OTHER}', 22)", "!RESET", "", OTHER, 22, "tcp", "no-name"),
    row("TCP, 22, binary", f"tcp('{OTHER}', 22, X)", "!RESET", "", OTHER, 22, "tcp", "no-name"),
    row("TCP, 80, silent", f"tcp('{OTHER}', 80)", "!RESET", "", OTHER, 80, "tcp", "no-name"),
    row("TCP, 443, silent", f"tcp('{OTHER}', 443)", "!RESET", "", OTHER, 443, "tcp", "no-name"),
    row("TCP, IPv6", "tcp('2606:4700::6', 22)", "!RESET", "", "2606:4700::6", 22, "tcp", "no-name"),
    row("TCP, NAT64", "tcp('64:ff9b::a9fe:a9fe', 80)", "!RESET", "", "64:ff9b::a9fe:a9fe", 80, "tcp", "no-name"),
    row("TCP, v4-mapped", f"tcp('::ffff:{PRIVATE}', 22)", "!RESET", "", PRIVATE, 22, "tcp", "no-name"),
    row("HTTP, metadata", "tcp('169.254.169.254', 80, request('169.254.169.254', '/latest/meta-data/'))", "403", "", "169.254.169.254", 80, "http", "no-name"),
    row("HTTP, 8080", f"tcp('{OTHER}', 8080, request('other.test'))", "403", "", OTHER, 8080, "http", "no-name"),
    row("HTTP, its address for Host", f"tcp('{OTHER}', 80, request('{OTHER}'))", "403", "", OTHER, 80, "http", "no-name"),
    row("TLS, 443", f"tcp('{OTHER}', 443, hello('%(ok)s'))", "!RESET", "", OTHER, 443, "tls", "no-name"),
    row("TLS, 8443", f"tcp('{OTHER}', 8443, hello('other.test'))", "!RESET", "", OTHER, 8443, "tls", "no-name"),
    row("DNS over TLS", "tcp('93.184.216.5', 853, hello('dns.other.test'))", "!RESET", "", PUBLIC, 853, "tls", "no-name"),
    row("Host", "tcp('%(ok)s', 80, request('other.test'))", "403", "other.test", "", 80, "http", "name"),
    row("Host, a part of it", "tcp('%(ok)s', 80, request('evil%(ok)s'))", "403", "evil%(ok)s", "", 80, "http", "name"),
    row("second Host", "tcp('%(ok)s', 80, b'GET / HTTP/1.1\\r\\nHost: %(ok)s\\r\\nHost: a\\r\\n\\r\\n')", "403", "%(ok)s", "", 80, "http", "http-host"),
    row("absolute target", "tcp('%(ok)s', 80, request('%(ok)s', 'http://x.other.test/'))", "403", "%(ok)s", "", 80, "http", "http-host"),
    row("CONNECT", "tcp('%(ok)s', 80, b'CONNECT c.other.test:443 HTTP/1.1\\r\\nHost: c.other.test:443\\r\\n\\r\\n')", "403", "%(ok)s", "", 80, "http", "http-connect"),
    row("Upgrade: h2c", "tcp('%(ok)s', 80, request('%(ok)s', '/', 'Connection: Upgrade\\r\\nUpgrade: h2c\\r\\n'))", "403", "%(ok)s", "", 80, "http", "http-upgrade"),
    row("HTTP/2", "tcp('%(ok)s', 80, b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')", "!RESET", "%(ok)s", "", 80, "http", "http2"),
    row("neither on 80", "tcp('%(ok)s', 80, X)", "!RESET", "%(ok)s", "", 80, "tcp", "protocol"),
    row("TLS to the port of HTTP", "tcp('%(ok)s', 80, hello('y.other.test'))", "!RESET", "y.other.test", "", 80, "tls", "name"),
    row("TLS without a name", "tcp('%(ok)s', 80, hello(None))", "!RESET", "%(ok)s", "", 80, "tls", "tls-no-name"),
    row("the gate's port", "tcp('%(ok)s', 1, X)", "!RESET", "%(ok)s", "", 1, "tcp", "gate-port"),
    row("curl, a proxy's place", f"curl_says('-x', 'http://{OTHER}:8080', 'http://other.test/')", "403", "", OTHER, 8080, "http", "no-name"),
]

DOMAINS = NAMED + [
    row("resolved to a private address", "tcp('priv.example.test', 80, request('priv.example.test'))", "403", "priv.example.test", PRIVATE, 80, "http", "private"),
    row("resolved to metadata, TCP", "tcp('meta.example.test', 22, X)", "!RESET", "meta.example.test", "169.254.169.254", 22, "tcp", "metadata"),
    row("the operator's own", "name('bad.example.test')", "code 3, 0 answers", "bad.example.test", "", 0, "dns", "egress.deny"),
    row("TLS on another port", "tcp('%(ok)s', 8443, hello('z.other.test'))", "!RESET", "z.other.test", "", 8443, "tls", "name"),
    row("HTTP on another port", "tcp('%(ok)s', 22, request('w.other.test'))", "403", "w.other.test", "", 22, "http", "name"),
]

REGISTRIES = NAMED + [
    row("another port", "tcp('%(ok)s', 22, X)", "!RESET", "%(ok)s", "", 22, "tcp", "port"),
    row("another port, HTTP", "tcp('%(ok)s', 8080, request('%(ok)s'))", "403", "%(ok)s", "", 8080, "http", "port"),
    row("another port, TLS", "tcp('%(ok)s', 443, hello('%(ok)s'))", "!RESET", "%(ok)s", "", 443, "tls", "port"),
    row("below a registry's host", "name('files.%(ok)s')", "code 3, 0 answers", "files.%(ok)s", "", 0, "dns", "name"),
]

ANY = [row(f"{what} to {address}", f"tcp('{address}', {port}{data})", "403" if protocol == "http" else "!RESET", "", address, port, protocol, rule)
       for address, rule in ((PRIVATE, "private"), ("169.254.169.254", "metadata"), ("100.64.0.1", "cgnat"), ("fd00::5", "private"), ("64:ff9b::a01:203", "nat64"),
                             ("93.184.216.9", "egress.deny"), (OWN, "own"))
       for what, port, data, protocol in (("silence", 443, "", "tcp"), ("bytes", 22, ", X", "tcp"), ("HTTP", 80, ", request('other.test')", "http"),
                                          ("HTTP", 8080, ", request('x')", "http"), ("TLS", 8443, ", hello('other.test')", "tls"))] + [
    row("DNS, one label", "name('intern')", "code 3, 0 answers", "intern", "", 0, "dns", "single-label"),
    row("DNS, what the operator denies", "name('x.bad.example.test', 16, '8.8.8.8', True)", "code 3, 0 answers", "x.bad.example.test", "", 0, "dns", "egress.deny"),
    row("SNI that the operator denies", "tcp('93.184.216.5', 443, hello('bad.example.test'))", "!RESET", "bad.example.test", PUBLIC, 443, "tls", "egress.deny"),
    row("Host that the operator denies", "tcp('93.184.216.5', 80, request('BAD.example.test.'))", "403", "BAD.example.test.", PUBLIC, 80, "http", "egress.deny"),
    row("a name that has a private address", "tcp('priv.example.test', 443, hello('priv.example.test'))", "!RESET", "priv.example.test", PRIVATE, 443, "tls", "private"),
    row("HTTP/2", "tcp('api.example.test', 8080, b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')", "!RESET", "api.example.test", "", 8080, "http", "http2"),
    row("neither on 443", "tcp('api.example.test', 443, X)", "!RESET", "api.example.test", "", 443, "tcp", "protocol"),
]

# No name can be looked up, and nothing can be sent: there is nothing to be refused.
NONE = [
    row("DNS", "name('api.example.test')", "ConnectionRefusedError"),
    row("DNS elsewhere", "name('api.example.test', 1, '8.8.8.8')", "OSError"),
    row("DNS by TCP", "name('api.example.test', 1, '127.0.0.1', True)", "ConnectionRefusedError"),
    row("TCP", f"tcp('{OTHER}', 80, b'x')", "OSError"),
    row("TCP, IPv6", "tcp('2606:4700::6', 80)", "OSError"),
    row("what resolve names", f"tcp('{HERE}', 80)", "ConnectionRefusedError"),
    row("UDP", "udp('8.8.8.8', 443)", "OSError"),
]

UDP = [row(f"UDP to {host}, {port}", f"udp('{host}', {port})", "ConnectionRefusedError") for host in (PUBLIC, PRIVATE, "2606:4700::6") for port in (443, 123)]


def refused(rows, mode, ok, **options):
    """Every row comes out as it says, three times, in less than 50 ms, and is listed; nothing was dialled or asked for."""
    rows = [(a, b.replace("%(ok)s", ok), c, tuple(d.replace("%(ok)s", ok) if isinstance(d, str) else d for d in denial)) for a, b, c, denial in rows + UDP * (mode != "none")]
    for s in all_servers:
        s.fresh()
    dns.asked.clear()
    sniffer.take()
    r = reeve(TRIES + "judge([" + ",\n".join(f"({label!r}, lambda: {what})" for label, what, _, _ in rows) + "])", mode=mode, config=CONFIG, **options).ended()
    got = [line.split("\t") for line in r.lines]
    assert [g[0] for g in got] == [row[0] for row in rows], (r.text, r.errors)
    for (label, _, came, _), (_, said, ms) in zip(rows, got):
        assert said == came, f"{mode}: {label}: {said}, expected {came}"
        assert float(ms) < 50, f"{mode}: {label}: {ms} ms"
    expected = {}
    for _, _, _, denial in rows:
        if denial:
            expected[denial] = expected.get(denial, 0) + 3
    listed = {d[:5]: d[5] for d in r.refused()}
    assert listed == expected, "\n".join(f"{k}: listed {listed.get(k)}, expected {expected.get(k)}" for k in sorted({*listed, *expected}, key=str)
                                        if listed.get(k) != expected.get(k))
    assert r.contacts == [], r.contacts
    return r


def nothing_left(*asked):
    """No connection was begun, no datagram sent but to the test's own resolver, and that was asked for these names alone."""
    seen = sniffer.take()
    assert {(kind, a) for kind, a, _ in seen} <= {("udp", "127.0.0.1")}, seen
    assert dns.names() == set(asked), dns.asked
    assert [s.where for s in all_servers if s.count] == []


def test_without_network():
    r = refused(NONE, "none", "")
    assert r.denials == [] and r.mode == "none"
    nothing_left()


def test_in_mode_domains():
    refused(DOMAINS, "domains", "api.example.test", domains=[f"{n}.example.test" for n in ("api", "priv", "meta", "bad")])
    nothing_left("priv.example.test", "meta.example.test")


def test_in_mode_registries():
    refused(REGISTRIES, "registries", "reg.test")
    nothing_left()


def test_in_mode_any():
    subprocess.run(["ip", "addr", "add", OWN + "/32", "dev", "lo"], check=True)
    try:
        refused(ANY, "any", "api.example.test")
    finally:
        subprocess.run(["ip", "addr", "del", OWN + "/32", "dev", "lo"], check=True)
    nothing_left("priv.example.test")


def test_behind_allowed_requests():
    """A request that is refused behind others of its connection: those are answered, and it is as fast. A denial waits 30 ms for
    the server's answers, which a full machine may not keep: then once more."""
    wanted = [["keep-alive", "200 200 403"], ["at once", "200 200 403"], ["in a body", "200 403"], ["CONNECT", "200 403"]]
    for _ in range(4):
        r = reeve(TRIES + r"""
ok = request('public.example.test')
judge([('keep-alive', lambda: late('public.example.test', 80, ok, ok, request('other.test'))),
       ('at once', lambda: late('public.example.test', 80, ok + ok + request('b.other.test'))),
       ('in a body', lambda: late('public.example.test', 80, request('public.example.test', '/', 'Content-Length: 4\r\n', 'POST') + b'body' + request('c.other.test'))),
       ('CONNECT', lambda: late('public.example.test', 80, ok + b'CONNECT public.example.test:443 HTTP/1.1\r\nHost: public.example.test:443\r\n\r\n'))])""", config=CONFIG).ended()
        got = [line.split("\t") for line in r.lines]
        if [g[:2] for g in got] == wanted:
            break
    assert [g[:2] for g in got] == wanted, r.text
    assert all(float(ms) < 100 for _, _, ms in got), r.text
    assert [d[:5] for d in r.refused()] == [("other.test", "", 80, "http", "name"), ("b.other.test", "", 80, "http", "name"), ("c.other.test", "", 80, "http", "name"),
                                           ("public.example.test", "", 80, "http", "http-connect")] and {d[5] for d in r.refused()} == {3}, r.denials


def test_curl_with_and_without_a_proxy_of_its_own():
    """What keeps a run in is its network, not its environment."""
    r = reeve(TRIES + r"""
import os
for env in ({}, {'http_proxy': 'http://93.184.216.6:8080'}, {'NO_PROXY': '*', 'no_proxy': '*'}, {'ALL_PROXY': 'socks5h://93.184.216.6:1080'}):
    p = subprocess.run(['/usr/bin/curl', '-s', '-o', '/dev/null', '-w', '%{http_code}', 'http://other.test/'], env={'PATH': '/usr/bin', **env}, capture_output=True, text=True)
    print(p.returncode, p.stdout)""", config=CONFIG).ended()
    assert r.lines == ["6 000", "0 403", "6 000", "97 000"], r.text
    assert r.contacts == [], r.contacts


# ---- Names whose answers change ----

def test_rebinding():
    """The address that was judged is dialled: one question a connection, and each answer is judged."""
    answers = [[PUBLIC], [PRIVATE], [PRIVATE]]

    class Turning(dict):
        def get(self, key, default=None):
            return answers.pop(0) if key == ("turn.example.test", "A") and answers else super().get(key, default)
    dns.zone = Turning(dns.zone)
    dns.zone["turn.example.test", "A"] = [PRIVATE]
    for s in all_servers:
        s.fresh()
    sniffer.take()
    dns.asked.clear()
    first = reeve("print([get('http://turn.example.test/') for _ in range(5)])", config=CONFIG).ended()
    assert first.text == f"{['turn.example.test /'] * 5}\n" and dns.asked.count(("turn.example.test", "A")) == 1, (first.text, dns.asked)
    second = reeve("print([get('http://turn.example.test/') for _ in range(2)])", config=CONFIG).ended()
    assert second.text == "[403, 403]\n" and second.refused() == [("turn.example.test", PRIVATE, 80, "http", "private", 2)], (second.text, second.denials)
    assert {s for s in sniffer.take() if s[0] == "tcp"} == {("tcp", PUBLIC, 80)}
    dns.zone = dict(dns.zone)


def test_aliases_without_end():
    for i in range(40):
        dns.zone[f"a{i}.example.test", "CNAME"] = f"a{(i + 1) % 40}.example.test"
    dns.zone["self.example.test", "CNAME"] = "self.example.test"
    r = reeve("t = time.monotonic(); print(get('http://self.example.test/'), get('http://a0.example.test/'), time.monotonic() - t < 1)", config=CONFIG).ended()
    assert r.text == "502 502 True\n" and {d[4] for d in r.refused()} == {"unresolved"}, (r.text, r.denials)


# ---- Where the way out cannot be made, or is lost ----

def test_a_host_that_lacks_what_it_takes():
    """Each is a refusal before the program starts, which says what is missing; a run without network is not concerned."""
    blocked = (126, "blocked", "backend_denied", ["network_domains"])
    for lack, word, expected in (("netfilter", "nf_tables", blocked), ("routes", "routes", blocked), ("gate", "the gate cannot be executed", (125, "failed", "backend_lost", None))):
        r = without(lack, "print('ran')", config=CONFIG)
        reason = r.all["reason"]
        assert (r.text, r.all["started"], r.contacts, r.denials) == ("", "no", [], []), (lack, r.all)
        assert (r.exit, r.all["status"], reason["code"], reason["detail"].get("missing")) == expected and word in reason["message"], (lack, r.all)
        assert without(lack, "print('ran')", mode="none").ended().text == "ran\n"


def test_redirection_where_there_is_no_transparent_proxying():
    r = without("tproxy", f"print(get('http://public.example.test/'), get('http://other.test/'), get('http://{OTHER}/'), tcp('priv.example.test', 80, X), udp('{OTHER}', 443))".join((TRIES, "")), config=CONFIG)
    assert r.ended().text == "public.example.test / gaierror 403 !RESET ConnectionRefusedError\n", r.text
    assert r.reached() == [("public.example.test", PUBLIC, 80, "http", 1)], r.contacts


def test_a_resolv_conf_that_is_a_link():
    """As systemd-resolved has it; one that leads nowhere leaves the usual server, 127.0.0.1."""
    folder = os.path.join(STATE, "resolve")
    os.mkdir(folder)
    with open(folder + "/stub.conf", "w", encoding="ascii") as f:
        f.write("nameserver 127.0.0.1\nsearch corp.test\noptions edns0 trust-ad\n")
    for path in (STATE, folder):
        os.chmod(path, 0o755)
    for to in ("stub.conf", "nowhere.conf"):
        dns.asked.clear()
        r = reeve("print(get('http://public.example.test/'), get('http://none.example.test/'))", config=CONFIG,
                  prepare=lambda to=to: with_link("resolv.conf", f"{folder}/{to}")).ended()
        assert r.text == "public.example.test / 502\n", r.text
        assert dns.names() == {"public.example.test", "none.example.test"}, "search domains are not tried"


def gate_below(pid):
    """The gate that this reeve, or a child of it, has started."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8") as f:
                    name, rest = f.read().split("(", 1)[1].rsplit(")", 1)
                parents[int(entry)] = int(rest.split()[1]), name
            except OSError:
                pass
    for child, (_, name) in parents.items():
        at = child
        while at in parents and at != pid:
            at = parents[at][0]
        if at == pid and name.startswith("reeve-gate"):
            return child
    return None


def test_the_gate_is_killed():
    """Its death ends the run, says so, and opens nothing."""
    before, found = os.getpid(), []

    def kill():
        end = time.monotonic() + 10
        while time.monotonic() < end and not os.path.exists(os.path.join(STATE, "there")):
            gate = gate_below(before)
            if gate:
                time.sleep(0.5)
                found.append(gate)
                os.kill(gate, signal.SIGKILL)
                return
            time.sleep(0.01)
    killer = threading.Thread(target=kill)
    killer.start()
    r = reeve("print(get('http://public.example.test/'), flush=True); time.sleep(30)", config=CONFIG)
    killer.join()
    reason = r.all["reason"]
    assert found and (r.exit, r.all["status"], reason["code"], reason["detail"].get("cause")) == (120, "outcome_unknown", "backend_lost", "gate_lost"), r.all
    assert r.text == "public.example.test /\n" and r.took_ms < 5000 and r.all["repeat_safe"] is False, r.all


def test_each_run_has_its_own_mode():
    """One after another in one state directory: nothing of the last run's network is there in the next."""
    got = []
    for mode in ("any", "none", "domains", "none", "registries", "any", "none"):
        r = reeve("print(get('http://public.example.test/'), get('http://reg.test/'))", mode=mode, domains=["public.example.test"], config=CONFIG).ended()
        got.append((mode, r.mode, r.text.strip(), len(r.contacts)))
    assert got == [(m, m, {"any": "public.example.test / reg.test /", "none": "gaierror gaierror", "domains": "public.example.test / gaierror",
                           "registries": "gaierror reg.test /"}[m], {"any": 2, "none": 0}.get(m, 1)) for m, _, _, _ in got], got


if __name__ == "__main__":
    main(globals())
