#!/usr/bin/python3
"""What clients speak: TLS and HTTP have to name allowed hosts, whatever the port and however the bytes are cut.

    protocols.py GATE DRIVE [WORD…]
"""
import time

from world import Authority, Server, Dns, Sniffer, echo, http, main, run

FIVE, SIX = "93.184.216.5", "93.184.216.6"
TLS = r'''
def context():
    c = ssl.create_default_context(cafile=sys.argv[1]); return c
def tls(address, sni, port=443, bare=False):
    """What a server behind TLS answers, or the exception's name."""
    c = context()
    if bare: c.check_hostname = False
    try:
        with c.wrap_socket(socket.create_connection((address, port), timeout=10), server_hostname=sni) as s:
            s.sendall(request(sni or 'x'))
            return s.recv(9999).decode().split('\r\n\r\n')[1]
    except OSError as e:
        return type(e).__name__
def hello(name):
    """The bytes of a ClientHello."""
    i, o = ssl.MemoryBIO(), ssl.MemoryBIO()
    t = context().wrap_bio(i, o, server_hostname=name)
    try: t.do_handshake()
    except ssl.SSLWantReadError: return o.read()
'''


def banner(s, server):
    s.sendall(b"220 hi\r\n")
    while True:
        line = s.recv(4096)
        server.seen.append(line)
        if not line:
            return
        s.sendall(b"250 " + line)


def setup():
    global dns, sniffer, five, six, secure, ca, mail, opened
    dns, sniffer, ca = Dns(), Sniffer(), Authority()
    dns.zone = {("example.test", "A"): [FIVE], ("sub.example.test", "A"): [SIX], ("other.test", "A"): [SIX]}
    five, six = Server(FIVE, 80, http("five")), Server(SIX, 80, http("six"))
    secure = Server(FIVE, 443, ca.wrap(http("secret")))
    Server(FIVE, 8443, ca.wrap(http("secret 8443")))
    Server(SIX, 443, ca.wrap(http("secret six")))
    Server(FIVE, 8080, http("five:8080"))
    mail = Server(FIVE, 2525, banner)
    opened = Server(FIVE, 2222, echo)


def tls(code, **rules):
    return run(TLS + code, arguments=[ca.path("ca.pem")], **rules)


def fresh(server):
    server.seen.clear()
    sniffer.take()


def test_tls_by_name():
    r = tls("print(tls('example.test', 'example.test'), tls('sub.example.test', 'sub.example.test'), get('https://x.test/'), tls('example.test', 'example.test', 8443))")
    assert r.text == "secret secret six gaierror secret 8443\n", r.text
    assert r.has_contact(name="example.test", address=FIVE, port=443, protocol="tls", connections=1), r.contacts
    assert r.has_contact(name="example.test", port=8443, protocol="tls"), r.contacts


def test_tls_by_another_name():
    """An allowed SNI goes to the name that the address was given for; another is refused, on every port."""
    fresh(secure)
    r = tls("""
print(tls('example.test', 'sub.example.test'))
for port in (443, 8443, 2222):
    t = time.monotonic(); print(tls('example.test', 'other.test', port), time.monotonic() - t < 0.2)""")
    assert r.text == "secret\n" + "ConnectionResetError True\n" * 3, r.text
    assert [s for s in secure.seen if s[0] == "sni"] == [("sni", "sub.example.test")], secure.seen
    assert r.has_denial(name="other.test", port=443, protocol="tls", rule="name", address=""), r.denials
    assert {(a, p) for k, a, p in sniffer.take() if k == "tcp"} == {(FIVE, 443)}


def test_tls_without_a_name():
    fresh(secure)
    r = tls("print(tls('example.test', None, bare=True), tls('example.test', '93.184.216.5', bare=True))")
    assert r.text == "ConnectionResetError ConnectionResetError\n", r.text
    assert {d["rule"] for d in r.denials} == {"tls-no-name"}, r.denials
    assert secure.seen == []
    r = tls(f"print(tls('example.test', None, bare=True), tls('{FIVE}', 'whatever.test', bare=True), tls('{FIVE}', None, bare=True))", mode="any")
    assert r.text == "secret secret secret\n", r.text
    r = tls("print(tls('example.test', 'example.test'), tls('example.test', 'bad.test'), tls('example.test', None, bare=True))", mode="any", deny=["bad.test"])
    assert r.text == "secret ConnectionResetError secret\n", r.text


def test_a_hello_in_pieces():
    r = tls("""
def send(name, cut, wait=0.0):
    h = hello(name); s = dial('example.test', 443)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        for i in range(0, len(h), cut):
            s.sendall(h[i:i + cut]); time.sleep(wait)
        s.settimeout(5)
        return s.recv(5)[:1].hex()
    except OSError as e: return type(e).__name__
for name in ('example.test', 'other.test'):
    print(send(name, 1), send(name, 3, 0.002), send(name, 100, 0.1), send(name, 9999))
def records(name, size):
    h = hello(name)[5:]; s = dial('example.test', 443)
    try:
        for i in range(0, len(h), size): s.sendall(b'\\x16\\3\\1' + struct.pack('>H', len(h[i:i + size])) + h[i:i + size])
        s.settimeout(5); return s.recv(5)[:1].hex()
    except OSError as e: return type(e).__name__
print(records('example.test', 7), records('other.test', 7))""")
    assert r.lines == ["16 16 16 16", "ConnectionResetError " * 3 + "ConnectionResetError", "16 ConnectionResetError"], r.text


def test_hellos_as_browsers_send_them():
    """Of 1.7 KB (a key share of ML-KEM), in two segments, with GREASE and an encrypted hello: the outer name is what counts."""
    r = tls(r"""
import os
def extension(kind, data): return struct.pack('>HH', kind, len(data)) + data
def big(name, *more):
    n = name.encode(); sni = extension(0, struct.pack('>HBH', len(n) + 3, 0, len(n)) + n) if name else b''
    share = struct.pack('>HH', 4588, 1216) + os.urandom(1216) + struct.pack('>HH', 29, 32) + os.urandom(32)
    e = extension(0x1a1a, b'') + sni + b''.join(more) + extension(43, b'\4\3\4\3\3') + extension(10, b'\0\4\x11\xec\0\x1d') + extension(13, b'\0\4\4\3\x08\4')
    e += extension(51, struct.pack('>H', len(share)) + share) + extension(0x2a2a, b'\0')
    body = b'\3\3' + os.urandom(32) + b'\x20' + os.urandom(32) + b'\0\6\x3a\x3a\x13\1\x13\2\1\0' + struct.pack('>H', len(e)) + e
    return b'\x16\3\1' + struct.pack('>HBBH', len(body) + 4, 1, 0, len(body)) + body
ech = extension(0xfe0d, b'\0\0\1\0\1\x2a\0\x20' + os.urandom(32) + b'\0\xd0' + os.urandom(208))
def send(data, cut=1400):
    s = dial('example.test', 443); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1); s.settimeout(5)
    try: s.sendall(data[:cut]); time.sleep(0.02); s.sendall(data[cut:]); return s.recv(5)[:1].hex()
    except OSError as e: return type(e).__name__
print(len(big('example.test', ech)) > 1600, send(big('example.test')), send(big('example.test', ech)), send(big('sub.example.test', ech), 9))
print(send(big('other.test', ech)), send(big('', ech)))""")
    assert r.text == "True 16 16 16\nConnectionResetError ConnectionResetError\n", r.text
    assert r.rules() == {("other.test", "name"), ("example.test", "tls-no-name")}, r.denials


def test_what_is_said_inside_tls_is_not_seen():
    """Domain fronting: docs/network.md, "What it cannot stop"."""
    fresh(secure)
    r = tls("""
with context().wrap_socket(dial('example.test', 443), server_hostname='example.test') as s:
    s.sendall(request('other.test')); print(s.recv(999)[9:12])""")
    assert r.text == "b'200'\n" and r.denials == [], (r.text, r.denials)
    assert [h for h in secure.seen if b"Host: other.test" in h], secure.seen


def test_what_is_no_hello():
    r = tls("""
for data in (b'\\x16\\3\\1\\0\\5hello', b'\\x80\\x2e\\1\\0\\2' + b'x' * 41, b'\\x16\\3\\1\\xff\\xff' + b'\\1\\0\\xff\\xff' + b'x' * 70000, b'hello there\\r\\n', b'SSH-2.0-x\\r\\n'):
    for port in (443, 80, 2222): print(ask('example.test', port, data, 1)[0][:30])""")
    sslv2_and_tls, others = ["b'!RESET'"] * 9, r.lines[9:]
    assert r.lines[:9] == sslv2_and_tls, r.text
    assert others == ["b'!RESET'", "b'!RESET'", "b'hello there\\r\\n!TIMEOUT'", "b'!RESET'", "b'!RESET'", "b'SSH-2.0-x\\r\\n!TIMEOUT'"], r.text
    assert {d["rule"] for d in r.denials} >= {"tls-malformed", "sslv2", "protocol"}, r.denials


def test_hosts_of_http():
    fresh(five)
    r = run("""
t = time.monotonic()
print(get('http://example.test/', Host='other.test'), time.monotonic() - t < 0.5)
print(get('http://example.test:8080/', Host='other.test'), get('http://example.test:8080/'), get('http://example.test/', Host='sub.example.test'))
for host in ('93.184.216.6', '[::1]', 'x', 'other.test:80', 'example.test@other.test', 'example.test:80', '', 'exa\\0mple.test', 'EXAMPLE.test.'):
    got, ms = ask('example.test', 80, request(host) if host != 'EXAMPLE.test.' else request(host, extra='Connection: close\\r\\n'), 1)
    print(host, got[9:12])""")
    assert r.lines[:2] == ["403 True", "403 five:8080 five"], r.text
    assert r.lines[2:] == [f"{h} b'{c}'" for h, c in (("93.184.216.6", 403), ("[::1]", 403), ("x", 403), ("other.test:80", 403), ("example.test@other.test", 403),
                                                     ("example.test:80", 200), ("", 403), ("exa\0mple.test", 403), ("EXAMPLE.test.", 200))], r.text
    assert all(b"other" not in head for head in five.seen), five.seen
    assert r.has_denial(name="other.test", port=80, protocol="http", rule="name") and r.has_denial(rule="literal"), r.denials


def test_a_refusal_says_why():
    r = run("""
for data in (request('other.test'), request('other.test', extra='Content-Length: 100000\\r\\n') + b'x' * 100000):
    got, ms = ask('example.test', 80, data); print(ms < 50, got.decode())""")
    assert r.text.count("True HTTP/1.1 403 Forbidden\r\n".replace("\r\n", "\n")) == 2, r.text
    assert r.text.count("reeve: refused by rule name: other.test, port 80: the name is not one of those that the run may reach") == 2, r.text


def test_every_request_of_a_connection():
    fresh(five)
    r = run("""
s = dial('example.test', 80)
for host in ('example.test', 'sub.example.test', 'example.test', 'other.test'):
    s.sendall(request(host, '/' + host)); print(s.recv(4096)[9:12])
print(read(s)[-8:])""")
    assert r.text == "b'200'\nb'200'\nb'200'\nb'403'\nb''\n", r.text
    assert [h.split()[1] for h in five.seen] == [b"/example.test", b"/sub.example.test", b"/example.test"], five.seen
    assert r.has_contact(connections=1, protocol="http"), r.contacts


def test_requests_one_behind_the_other():
    fresh(five)
    r = run("""
got, ms = ask('example.test', 80, request('example.test', '/1') + request('example.test', '/2') + request('other.test', '/3') + request('example.test', '/4'))
print([got[i + 9:i + 12] for i in range(len(got)) if got.startswith(b'HTTP/1.1', i)], ms < 100)""")
    assert r.text == "[b'200', b'200', b'403'] True\n", r.text
    assert [h.split()[1] for h in five.seen] == [b"/1", b"/2"], five.seen


def test_bodies():
    r = run("""
body = bytes(range(256)) * 4096
s = dial('example.test', 80)
s.sendall(request('example.test', '/big', f'Content-Length: {len(body)}\\r\\n', 'POST') + body + request('example.test', '/after', 'Connection: close\\r\\n'))
s.settimeout(5); got = s.recv(4096)
while got.count(b'five') < 2: got += s.recv(4096)
print(got.count(b' 200 '))
s = dial('example.test', 80)
s.sendall(request('example.test', '/chunks', 'Transfer-Encoding: chunked\\r\\n', 'POST')); s.sendall(b'5\\r\\nHost:\\r\\n0\\r\\n\\r\\n' + request('other.test'))
print(read(s)[9:12])""")
    assert r.lines[0] == "2", r.text


def test_what_servers_read_differently():
    fresh(five)
    r = run("""
cases = {
 'two hosts': b'GET / HTTP/1.1\\r\\nHost: example.test\\r\\nHost: other.test\\r\\n\\r\\n',
 'no host': b'GET / HTTP/1.1\\r\\n\\r\\n',
 'absolute': b'GET http://other.test/ HTTP/1.1\\r\\nHost: example.test\\r\\n\\r\\n',
 'connect': b'CONNECT other.test:443 HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n',
 'connect allowed': b'CONNECT example.test:443 HTTP/1.1\\r\\nHost: example.test\\r\\n\\r\\n',
 'upgrade': request('example.test', extra='Connection: Upgrade\\r\\nUpgrade: websocket\\r\\n'),
 'h2c': request('example.test', extra='Connection: Upgrade, HTTP2-Settings\\r\\nUpgrade: h2c\\r\\nHTTP2-Settings: AAMAAABkAAQAAP__\\r\\n'),
 'length and chunked': request('example.test', extra='Content-Length: 3\\r\\nTransfer-Encoding: chunked\\r\\n'),
 'two lengths': request('example.test', extra='Content-Length: 3\\r\\nContent-Length: 4\\r\\n'),
 'folded': b'GET / HTTP/1.1\\r\\nHost: example.test\\r\\nX: a\\r\\n b\\r\\n\\r\\n',
 'folded host': b'GET / HTTP/1.1\\r\\nX: a\\r\\nHost:\\r\\n other.test\\r\\n\\r\\n',
 'bare lf': b'GET / HTTP/1.1\\nHost: other.test\\n\\n',
 'space before colon': b'GET / HTTP/1.1\\r\\nHost : other.test\\r\\nHost: example.test\\r\\n\\r\\n',
 'nul': b'GET / HTTP/1.1\\r\\nHost: example.test\\0.other.test\\r\\n\\r\\n',
 'version': b'GET / HTTP/1.2\\r\\nHost: example.test\\r\\n\\r\\n',
 'expect': request('example.test', extra='Expect: 100-continue\\r\\nContent-Length: 1\\r\\n'),
 'leading lines': b'\\r\\n\\r\\nGET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n',
 'leading space': b' GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n',
}
for port in (80, 8080):
    for name, data in cases.items(): print(name, ask('example.test', port, data)[0][9:12].decode())
print(ask('example.test', 80, b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')[0], ask('example.test', 2222, b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')[0])""")
    for line in r.lines[:-1]:
        assert line.endswith("417" if line.startswith("expect") else "403"), r.text
    assert len(r.lines) == 37 and r.lines[-1] == "b'!RESET' b'!RESET'", r.text
    assert five.seen == [], five.seen


def test_slow_first_bytes():
    r = run("""
def slow(host, port, gap, n=None):
    s = dial('example.test', port); s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        for c in request(host)[:n]: s.sendall(bytes([c])); time.sleep(gap)
        if n: s.sendall(request(host)[n:])
        s.settimeout(5); return s.recv(4096)[9:12]
    except OSError as e: return type(e).__name__
for port in (80, 8080): print(slow('example.test', port, 0.01), slow('other.test', port, 0.01), slow('other.test', port, 0.15, 4))
def late(host, port):
    s = dial('example.test', port); time.sleep(0.5); s.sendall(request(host)); s.settimeout(5); return s.recv(4096)[9:12]
for port in (80, 8080): print(late('example.test', port), late('other.test', port))""")
    assert r.lines == ["b'200' b'403' b'403'"] * 2 + ["b'200' b'403'"] * 2, r.text


def test_servers_that_speak_first():
    fresh(mail)
    r = run("""
t = time.monotonic(); s = dial('example.test', 2525); print(s.recv(99), time.monotonic() - t < 0.15)
for line in (b'EHLO x\\r\\n', b'a LOGIN a/b c\\r\\n', b'GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n'): s.sendall(line); print(s.recv(99)[:12])
s = dial('example.test', 2525); s.shutdown(socket.SHUT_WR); print(read(s))
s = dial('example.test', 2525); s.sendall(b'EHLO first\\r\\n'); time.sleep(0.3); print(s.recv(99))
print(ask('example.test', 2525, b'GET / HTTP/1.1\\r\\nHost: other.test\\r\\n\\r\\n')[0][9:12])""")
    assert r.lines == ["b'220 hi\\r\\n' True", "b'250 EHLO x\\r\\n'", "b'250 a LOGIN '", "b'250 GET / HT'", "b'220 hi\\r\\n'", "b'220 hi\\r\\n250 EHLO first\\r\\n'", "b'403'"], r.text
    assert r.has_contact(name="example.test", port=2525, protocol="tcp"), r.contacts


def test_no_server_is_seen_before_its_client_is_judged():
    fresh(five)
    sniffer.take()
    r = run("""
s = dial('example.test', 80); time.sleep(0.4); s.close()
s = dial('example.test', 443); s.sendall(b'\\x16\\3'); time.sleep(0.1); s.close()
s = dial('example.test', 80); s.sendall(b'GET / HT'); time.sleep(0.3); s.close()""")
    time.sleep(0.1)
    assert [x for x in sniffer.take() if x[0] == "tcp"] == [] and r.contacts == [] and r.denials == [], (r.contacts, r.denials)


def test_any_looks_at_addresses_alone():
    r = run("""
print(get('http://example.test/', Host='whatever'), get('http://example.test/', Host='10.0.0.1'))
print(ask('example.test', 80, request('example.test', extra='Connection: Upgrade\\r\\nUpgrade: websocket\\r\\n'), 1)[0][9:12])
print(ask('example.test', 80, b'hello\\r\\n')[0], ask('example.test', 2222, b'PRI * HTTP/2.0\\r\\n\\r\\n')[0], ask('example.test', 2222, b'\\x80\\x2e\\1\\0\\2hello', 1)[0][-8:])""", mode="any")
    assert r.text == "five five\nb'200'\nb'!RESET' b'!RESET' b'!TIMEOUT'\n", r.text
    assert {d["rule"] for d in r.denials} == {"protocol", "http2"}, r.denials


def test_names_of_programs_are_written_in_ascii():
    r = run(r"""
ask('example.test', 80, b'GET / HTTP/1.1\r\nHost: a"b\\c\xe9\x7f.test\r\n\r\n'); ask('example.test', 80, request('x' * 2000))
q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\4a.\n\xff\4test\0\0\1\0\1"
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.sendto(q, ('127.0.0.1', 53)); s.recv(999)""")
    names = [d["name"] for d in r.denials]
    assert all(n.isascii() and n.isprintable() and " " not in n and '"' not in n and len(n) < 1024 for n in names), names
    assert "x" * 255 + "..." in names and r"a\046\010\255.test" in names, names


if __name__ == "__main__":
    main(globals())
