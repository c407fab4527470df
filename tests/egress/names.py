#!/usr/bin/python3
"""Which destinations a run reaches: by name, by address, in each mode; and that of the others no packet leaves.

    names.py GATE DRIVE [WORD…]
"""
import subprocess
import time

import world
from world import Dns, Server, Sniffer, http, main, run

FIVE, SIX, V6 = "93.184.216.5", "93.184.216.6", "2606:4700::6"
PRIVATE = ["10.1.2.3", "127.0.0.1", "127.9.9.9", "169.254.1.1", "169.254.169.254", "100.64.0.1", "172.16.0.1", "192.168.1.1", "192.0.2.1",
           "198.18.0.77", "198.51.100.1", "0.0.0.1", "240.0.0.1", "224.0.0.5", "::1", "fd00::1", "fe80::1", "64:ff9b::a00:1", "2002:a00:1::1",
           "2001::1", "2001:db8::1", "ff02::1", "::ffff:10.0.0.1", "::a00:1"]


def setup():
    global dns, sniffer, five, six, v6
    dns, sniffer = Dns(), Sniffer()
    dns.zone = {("example.test", "A"): [FIVE], ("sub.example.test", "A"): [FIVE], ("other.test", "A"): [SIX], ("both.test", "A"): [FIVE],
                ("both.test", "AAAA"): [V6], ("evilexample.test", "A"): [SIX], ("example.test.evil.test", "A"): [SIX], ("v6.example.test", "AAAA"): [V6]}
    five, six = Server(FIVE, 80, http("five")), Server(SIX, 80, http("six"))
    v6 = Server(V6, 80, http("v6"), family=world.socket.AF_INET6)
    Server(FIVE, 8080, http("five:8080"))
    for address in ("127.0.0.5", "10.1.2.3"):
        Server(address, 80, http("private " + address))
        Server(address, 8080, http("private " + address))


def left(*expected):
    """Only these (address, port) were dialled, and DNS is all of UDP."""
    seen = sniffer.take()
    dialled = {(a, p) for kind, a, p in seen if kind == "tcp"}
    assert dialled == set(expected), f"dialled {dialled}, expected {expected}"
    assert all(kind in ("tcp", "udp") and (kind == "tcp" or a == "127.0.0.1") for kind, a, p in seen), seen


def asked(*expected):
    names = dns.names()
    dns.asked.clear()
    assert names == set(expected), f"asked {names}, expected {expected}"


def clean():
    sniffer.take()
    dns.asked.clear()


def test_a_domain_and_what_is_below_it():
    clean()
    r = run('print([get(f"http://{h}/") for h in ("example.test", "EXAMPLE.test", "example.test.", "sub.example.test")])')
    assert r.text == "['five', 'five', 'five', 'five']\n", r.text
    assert r.denials == [] and r.has_contact(name="example.test", address=FIVE, port=80, protocol="http", connections=3), r.contacts
    assert [c["name"] for c in r.contacts] == ["example.test", "sub.example.test"], r.contacts
    left((FIVE, 80))
    asked("example.test", "sub.example.test")


def test_other_names_are_neither_asked_for_nor_dialled():
    clean()
    names = ["other.test", "evilexample.test", "example.test.evil.test", "secret-data.attacker.test", "test", "localhost.evil.test", "xn--exampl-gva.test"]
    r = run("print([resolve(n) for n in sys.argv[1:]], get('http://other.test/'))", arguments=names)
    assert r.text == f"{[None] * len(names)} gaierror\n", r.text
    for n in names:
        assert r.has_denial(name=n, protocol="dns", address="", port=0), (n, r.denials)
    assert r.has_denial(name="test", rule="single-label") and r.has_denial(name="other.test", rule="name", count=2), r.denials
    left()
    asked()


def test_no_tunnel_by_dns():
    clean()
    r = run("for i in range(400): resolve('%030x.attacker.test' % i)\nprint(dns('a.b.test', 16), dns('x.test', 255), dns('x.test', 15))")
    assert r.text == "(3, 0) (3, 0) (3, 0)\n", r.text
    assert len(r.denials) == 256 and r.more_denials == 147, (len(r.denials), r.more_denials)
    asked()
    left()


def test_dns_has_nothing_but_a():
    clean()
    r = run("print([dns('example.test', k) for k in (1, 28, 65, 64, 15, 33, 16, 255)], dns('example.test', 1, tcp=True), dns('example.test', 1, '8.8.8.8'), "
            "dns('example.test', 1, '2001:4860::8888'), dns('example.test', 1, '9.9.9.9', True), dns('1.0.0.127.in-addr.arpa', 12))")
    assert r.text == "[(0, 1)" + ", (0, 0)" * 7 + "] (0, 1) (0, 1) (0, 1) (0, 1) (3, 0)\n", r.text
    asked()
    left()


def test_answers_come_from_whom_was_asked():
    r = run("""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5)
s.sendto(struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\\7example\\4test\\0\\0\\1\\0\\1", ("8.8.4.4", 53))
print(s.recvfrom(999)[1])""")
    assert r.text == "('8.8.4.4', 53)\n", r.text


def test_a_name_is_asked_for_when_it_is_dialled():
    clean()
    r = run("print(resolve('example.test'), resolve('example.test'), resolve('sub.example.test'))")
    a, b, c = r.text.split()
    assert a == b != c and a.startswith("198.18."), r.text
    asked()
    assert r.contacts == [] and r.denials == []


def test_many_connections_ask_once():
    clean()
    run("for i in range(20): assert get('http://example.test/') == 'five'")
    assert dns.asked.count(("example.test", "A")) == 1, dns.asked


def test_addresses_have_no_name_in_domains():
    clean()
    targets = [FIVE, SIX, "127.0.0.5", "10.1.2.3", "169.254.169.254", "198.18.0.200", "8.8.8.8", f"[{V6}]", "[::ffff:93.184.216.6]", "0x5db8d806", "1572395014"]
    r = run("t = time.monotonic()\nfor h in sys.argv[1:]:\n  if not h.startswith('127.'): print(get(f'http://{h}/'))\n"
            "print(ask('93.184.216.6', 443), ask('93.184.216.6', 22), file=sys.stderr)\n"
            "for p in (443, 22, 80):\n  got, ms = ask('93.184.216.6', p); print(got, ms < 50)", arguments=targets)
    lines = r.lines
    assert lines.count("403") == len(targets) - 1, r.text
    assert lines[-3:] == ["b'!RESET' True"] * 3, r.text
    assert r.has_denial(name="", address=SIX, port=80, protocol="http", rule="no-name"), r.denials
    assert r.contacts == []
    left()
    asked()


def test_every_kind_of_address_is_refused_whatever_name_has_it():
    clean()
    for i, address in enumerate(PRIVATE):
        dns.zone[f"n{i}.example.test", "AAAA" if ":" in address else "A"] = [address]
    r = run(f"for i in range({len(PRIVATE)}): print(get(f'http://n{{i}}.example.test/'))")
    assert r.lines == ["403"] * len(PRIVATE), r.text
    left()
    for i in range(len(PRIVATE)):
        assert r.has_denial(name=f"n{i}.example.test", port=80, protocol="http"), (PRIVATE[i], r.denials)
    assert r.has_denial(address="169.254.169.254", rule="metadata") and r.has_denial(address="10.1.2.3", rule="private"), r.denials
    assert r.has_denial(address="10.0.0.1", rule="private") and r.has_denial(address="64:ff9b::a00:1", rule="nat64"), r.denials


def test_one_forbidden_answer_is_enough():
    clean()
    dns.zone["mixed.example.test", "A"] = [FIVE, "10.1.2.3"]
    dns.zone["mixed6.example.test", "A"] = [FIVE]
    dns.zone["mixed6.example.test", "AAAA"] = ["fd00::5"]
    r = run("print(get('http://mixed.example.test/'), get('http://mixed6.example.test/'), ask('mixed.example.test', 22)[0])")
    assert r.text == "403 403 b'!RESET'\n", r.text
    assert r.rules() == {("mixed.example.test", "private"), ("mixed6.example.test", "private")}, r.denials
    assert r.contacts == []
    left()


def test_aliases_end_at_judged_addresses():
    clean()
    dns.zone["alias.example.test", "CNAME"] = "elsewhere.test"
    dns.zone["elsewhere.test", "A"] = [FIVE]
    dns.zone["inward.example.test", "CNAME"] = "intern.test"
    dns.zone["intern.test", "A"] = ["10.1.2.3"]
    r = run("print(get('http://alias.example.test/'), get('http://inward.example.test/'))")
    assert r.text == "five 403\n", r.text
    left((FIVE, 80))


def test_the_hosts_own_addresses_as_they_change():
    gate = world.Gate()
    dns.zone["own.example.test", "A"] = ["93.184.216.77"]
    Server("93.184.216.77", 80, http("own"))
    first = run("print(get('http://own.example.test/'))", gate=gate)
    subprocess.run(["ip", "addr", "add", "93.184.216.77/32", "dev", "lo"], check=True)
    time.sleep(0.1)
    second = run("print(get('http://own.example.test/'))", gate=gate)
    in_any = run("print(get('http://93.184.216.77/'), get('http://own.example.test/'))", gate=gate, mode="any")
    subprocess.run(["ip", "addr", "del", "93.184.216.77/32", "dev", "lo"], check=True)
    time.sleep(0.1)
    third = run("print(get('http://own.example.test/'))", gate=gate)
    gate.close()
    assert (first.text, second.text, third.text) == ("own\n", "403\n", "own\n"), (first.text, second.text, third.text)
    assert second.has_denial(rule="own", address="93.184.216.77"), second.denials
    assert in_any.text == "403 403\n" and in_any.has_denial(name="", rule="own"), in_any.denials


def test_names_that_the_operator_resolves():
    clean()
    r = run("print(get('http://api.example.test/'), get('http://x.api.example.test/'), get('http://unlisted.test/'), get('http://api.example.test:8080/'))",
            resolve={"api.example.test": "127.0.0.5", "unlisted.test": "127.0.0.5"})
    assert r.text == "private 127.0.0.5 502 gaierror private 127.0.0.5\n", r.text
    assert r.rules() == {("x.api.example.test", "unresolved"), ("unlisted.test", "name")}, r.denials
    left(("127.0.0.5", 80), ("127.0.0.5", 8080))


def test_ports_of_the_policy():
    clean()
    r = run("print(get('http://example.test/'), get('http://example.test:8080/'), ask('example.test', 22)[0])", ports=[80])
    assert r.text == "five 403 b'!RESET'\n", r.text
    assert r.has_denial(name="example.test", port=8080, protocol="http", rule="port") and r.has_denial(port=22, rule="port"), r.denials
    left((FIVE, 80))


def test_what_the_operator_denies_wins():
    clean()
    denied = ["sub.example.test", "10.0.0.0/8", "127.0.0.5", V6]
    r = run("print([get(f'http://{h}/') for h in ('example.test', 'sub.example.test', 'x.sub.example.test', 'api.example.test', 'v6.example.test')])",
            deny=denied, resolve={"api.example.test": "127.0.0.5"})
    assert r.text == "['five', 'gaierror', 'gaierror', 403, 403]\n", r.text
    assert {d["rule"] for d in r.denials} == {"egress.deny"}, r.denials
    left((FIVE, 80))
    r = run("print(get('http://registry.test/'))", mode="registries", registries=[{"host": "registry.test", "port": 80}], deny=["10.0.0.0/8"],
            resolve={"registry.test": "10.1.2.3"})
    assert r.text == "403\n" and r.has_denial(rule="egress.deny", name="registry.test", address="10.1.2.3"), (r.text, r.denials)
    left()


def test_registries_on_their_port_only():
    clean()
    dns.zone["registry.test", "A"] = ["10.1.2.3"]
    r = run("print([get(f'http://{h}/') for h in ('registry.test', 'registry.test:8080', 'example.test', 'sub.registry.test')])",
            mode="registries", registries=[{"host": "registry.test", "port": 80}], domains=["example.test"])
    assert r.text == "['private 10.1.2.3', 403, 'gaierror', 'gaierror']\n", r.text
    assert r.has_denial(name="registry.test", port=8080, rule="port") and r.has_denial(name="example.test", rule="name"), r.denials
    left(("10.1.2.3", 80))
    r = run("print(get('http://registry.test/'))", domains=["registry.test"], registries=[{"host": "registry.test", "port": 80}])
    assert r.text == "403\n" and r.has_denial(rule="private"), "a registry is private in mode registries alone"
    left()
    r = run("print(get('http://registry.test/'), get('http://10.1.2.3/'))", mode="registries",
            registries=[{"host": h, "port": 80, "is_learned": True} for h in ("registry.test", "10.1.2.3")])
    assert r.text == "403 403\n" and r.has_denial(rule="private", name="registry.test"), "one that a page names has to be public"
    left()
    r = run("print(get('http://10.1.2.3/'), get('http://10.1.2.3:8080/'))", mode="registries", registries=[{"host": "10.1.2.3", "port": 80}])
    assert r.text == "private 10.1.2.3 403\n", r.text
    left(("10.1.2.3", 80))


def proxy(s, server):
    data = b""
    while b"\r\n\r\n" not in data:
        data += s.recv(4096)
    server.seen.append(data)
    if b"refused" in data:
        s.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")
        return
    if b"broken" in data:
        s.sendall(b"HTTP/1.1 200 OK\r\nVia")
        s.shutdown(1)
        time.sleep(3)
        return
    head = b"HTTP/1.1 200 Connection established\r\nVia: test\r\n\r\n"
    for i in range(len(head)):
        s.sendall(head[i:i + 1])
        time.sleep(0.001)
    http("by proxy")(s, server)


def test_registries_by_a_proxy():
    clean()
    server = Server("10.1.2.9", 3128, proxy)
    dns.zone["proxy.test", "A"] = ["10.1.2.9"]
    rules = {"mode": "registries", "registries": [{"host": "registry.test", "port": 80}, {"host": "refused.test", "port": 80}]}
    for host in ("proxy.test", "10.1.2.9"):
        r = run("print(get('http://registry.test/'), get('http://refused.test/'), get('http://proxy.test:3128/'))", proxy={"host": host, "port": 3128}, **rules)
        assert r.lines[0].split()[0:2] == ["by", "proxy"], r.text
        assert "by proxy ConnectionResetError gaierror" in r.text, r.text
        assert r.has_contact(name="registry.test", address="10.1.2.9", port=80), r.contacts
        left(("10.1.2.9", 3128))
    r = run("t = time.monotonic(); print(get('http://broken.test/'), time.monotonic() - t < 2)", proxy={"host": "10.1.2.9", "port": 3128}, mode="registries",
            registries=[{"host": "broken.test", "port": 80}])
    assert r.text == "ConnectionResetError True\n", "one that ends in the middle of its answer is not waited for"
    left(("10.1.2.9", 3128))
    assert server.seen[0].startswith(b"CONNECT registry.test:80 HTTP/1.1\r\nHost: registry.test:80\r\n"), server.seen
    asked("proxy.test")


def test_any():
    clean()
    r = run(f"print([get(f'http://{{h}}/') for h in ('example.test', 'other.test', '{SIX}', '[{V6}]', 'api.example.test')])", mode="any",
            resolve={"api.example.test": "127.0.0.5"})
    assert r.text == "['five', 'six', 'six', 'v6', 'private 127.0.0.5']\n", r.text
    assert r.denials == [] and r.has_contact(name="", address=SIX), (r.contacts, r.denials)
    left((FIVE, 80), (SIX, 80), (V6, 80), ("127.0.0.5", 80))


def test_any_refuses_what_is_not_public():
    clean()
    addresses = [f"[{a}]" if ":" in a else a for a in PRIVATE if not a.startswith(("127.", "::1", "224.", "ff02", "fe80"))]
    r = run("for h in sys.argv[1:]: print(get(f'http://{h}/'))\nprint(get('http://intern/'), ask('10.1.2.3', 22)[0])\n"
            "for p in (80, 443, 22): got, ms = ask('169.254.169.254', p); print(got, ms < 50)", mode="any", arguments=addresses)
    assert r.lines[:-4] == ["403"] * len(addresses), r.text
    assert r.lines[-4:] == ["gaierror b'!RESET'"] + ["b'!RESET' True"] * 3, r.text
    assert r.contacts == []
    left()


def test_any_and_denied_names():
    clean()
    r = run(f"print(get('http://other.test/'), get('http://{SIX}/', Host='other.test'), get('http://{SIX}/', Host='x'), get('http://{SIX}/'))",
            mode="any", deny=["other.test"])
    assert r.text == "gaierror 403 six six\n", r.text
    left((SIX, 80))


def test_two_families():
    clean()
    r = run("print(get('http://both.test/'))", domains=["both.test"])
    assert r.text == "five\n"
    dns.zone["both.test", "A"] = ["93.184.216.99"]      # where nobody listens
    r = run("print(get('http://both.test/'), get('http://v6.example.test/'))", domains=["both.test", "example.test"])
    dns.zone["both.test", "A"] = [FIVE]
    assert r.text == "v6 v6\n", r.text
    assert r.has_contact(address="93.184.216.99", connections=0) and r.has_contact(address=V6, connections=1), r.contacts


def test_names_without_an_address():
    dns.zone["silent.example.test", "A"] = None
    r = run("""
def timed(h):
    t = time.monotonic(); r = get(f'http://{h}/', 20); print(h, r, round(time.monotonic() - t))
timed('none.example.test')
timed('silent.example.test')
print(ask('none.example.test', 22)[0])""")
    assert r.text == "none.example.test 502 0\nsilent.example.test 502 5\nb'!RESET'\n", r.text
    assert r.rules() == {("none.example.test", "unresolved"), ("silent.example.test", "unresolved")}, r.denials


def test_the_gates_port():
    clean()
    r = run(f"print(ask('{FIVE}', 1)[0], ask('example.test', 1, request('example.test'))[0][:12], ask('10.0.0.1', 1)[0])", mode="any")
    assert r.text == "b'!RESET' b'HTTP/1.1 403' b'!RESET'\n", r.text
    assert {d["rule"] for d in r.denials} == {"gate-port"}, r.denials
    left()


def test_udp_is_refused_at_once():
    clean()
    r = run("""
for port in (443, 123, 5000):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2); s.connect(('8.8.8.8', port)); s.send(b'x')
    try: s.recv(1)
    except OSError as e: print(type(e).__name__)""", mode="any")
    assert r.lines == ["ConnectionRefusedError"] * 3, r.text
    left()


def test_by_redirection():
    clean()
    r = run(f"print(get('http://example.test/'), get('http://other.test/'), get('http://{SIX}/'), get('http://[{V6}]/'))", original="redirect")
    assert r.text == "five gaierror 403 403\n", r.text
    r = run(f"print(get('http://{SIX}/'), get('http://[{V6}]/'), get('http://10.1.2.3/'))", mode="any", original="redirect")
    assert r.text == "six v6 403\n", r.text
    left((FIVE, 80), (SIX, 80), (V6, 80))


if __name__ == "__main__":
    main(globals())
