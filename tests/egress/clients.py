#!/usr/bin/python3
"""Real clients in real runs: what they get, and that the outcome says where they were, to the byte.

    clients.py REEVE DRIVE [WORD…]
"""
import hashlib
import ssl
import threading
import time

import servers
from servers import digest_of_pattern
from through import HERE, MIB, OTHER, PUBLIC, Server, matches, reeve, secure
from world import Authority, Dns, Sniffer, main

NAMES = ["api", "mail", "ssh", "mysql", "pg", "pgs", "redis", "echo", "sink", "source", "tls"]
RESOLVE = {"egress": {"resolve": {f"{n}.example.test": HERE for n in NAMES}}}


def setup():
    global dns, sniffer, ca, ca_text, http, tls, h2, echo, sink, source, secret_echo, secret_sink, mail, ssh, mysql, pg, pgs, redis, public
    dns, sniffer, ca = Dns(), Sniffer(), Authority()
    dns.zone = {("public.example.test", "A"): [PUBLIC], ("other.test", "A"): [OTHER]}
    with open(ca.path("ca.pem"), encoding="ascii") as f:
        ca_text = f.read()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca.path("cert.pem"), ca.path("key.pem"))
    http, tls = Server(HERE, 80, servers.web), Server(HERE, 443, secure(ca, servers.web, ["http/1.1"]))
    h2 = Server(HERE, 8443, secure(ca, servers.http2, ["h2"]))
    echo, sink, source = Server(HERE, 7000, servers.echo), Server(HERE, 7001, servers.sink), Server(HERE, 7002, servers.source(8 * MIB))
    secret_echo, secret_sink = Server(HERE, 7443, secure(ca, servers.echo)), Server(HERE, 7444, secure(ca, servers.sink))
    mail, ssh, mysql = Server(HERE, 587, servers.smtp(context)), Server(HERE, 22, servers.ssh), Server(HERE, 3306, servers.mysql(context))
    pg, pgs, redis = Server(HERE, 5432, servers.postgres(None)), Server(HERE, 5433, servers.postgres(context)), Server(HERE, 6379, servers.redis)
    public = Server(PUBLIC, 80, servers.web)


def run(code, language="python", **options):
    """A run that knows the CA, after every server has forgotten the last one."""
    for s in (http, tls, h2, echo, sink, source, secret_echo, secret_sink, mail, ssh, mysql, pg, pgs, redis, public):
        s.fresh()
    dns.asked.clear()
    sniffer.take()
    return reeve(code, language, config=options.pop("config", RESOLVE), CA=ca_text, **options)


def only(outcome, *contacts):
    """There are no other contacts than these (name, server, protocol, connections), each right to the byte."""
    for name, server, protocol, connections in contacts:
        matches(outcome, name, server, protocol, connections)
    assert len(outcome.contacts) == len(contacts), outcome.contacts
    dialled = {(a, p) for kind, a, p in sniffer.take() if kind == "tcp"}
    assert dialled == {server.where for _, server, _, _ in contacts}, dialled
    return outcome


API = "api.example.test"


# ---- HTTP ----

def test_curl():
    r = run(r"""
print(*curl('http://api.example.test/a'))
print(*curl('http://api.example.test/b', 'http://api.example.test/c', '-w', ' %{num_connects} '))
print(*curl('-I', '-o', '/dev/null', '-w', '%{http_code}', 'http://API.example.test./d'))
print(*curl('--data', 'x=1', 'http://api.example.test/e'))
print(*curl('--http1.0', 'http://api.example.test/f', '-H', 'Connection: close'))
print(*curl('http://api.example.test/chunks'))""")
    x1 = hashlib.sha256(b"x=1").hexdigest()
    r.printed(f"0 {API} /a", f"0 {API} /b 1 {API} /c 0 ", "0 200", f"0 {API} /e 3 {x1}", f"0 {API} /f", "0 hello world")
    only(r, (API, http, "http", 6))


def test_curl_over_tls():
    r = run(r"""
print(*curl('--cacert', '/box/ca.pem', 'https://api.example.test/a', '-w', ' %{http_version} %{ssl_verify_result}'))
print(*curl('--cacert', '/box/ca.pem', '--tls-max', '1.2', 'https://api.example.test/b'))
print(curl('https://api.example.test/')[0])""")
    r.printed(f"0 {API} /a 1.1 0", f"0 {API} /b", "60")
    only(r, (API, tls, "tls", 3))
    assert [s[:3] for s in tls.seen if s[0] == "tls"] == [("tls", API, "http/1.1")] * 2, tls.seen


def test_curl_over_http2():
    r = run(r"""
c = ('--cacert', '/box/ca.pem', '--http2')
print(*curl(*c, 'https://api.example.test:8443/a', '-w', ' %{http_version}'))
print(*curl(*c, '-Z', *[f'https://api.example.test:8443/{i}' for i in range(20)]))
print(*curl(*c, '-T', '-', 'https://api.example.test:8443/up', stdin=bytes(3 << 20)))""")
    r.printed("0 h2 0 2", "0 " + "h2 0" * 20, f"0 h2 {3 * MIB}")
    c = matches(r, API, h2, "tls", h2.count)
    assert 3 <= h2.count <= 22 and r.contacts == [c], r.contacts


def test_curl_uploads():
    """A body of more than a megabyte makes curl ask first (Expect); it is told 417 and sends without."""
    r = run(r"""
block = bytes(range(256)) * 256
open('/box/big', 'wb').write(block * 512)
print(*curl('-T', '/box/big', 'http://api.example.test/put'))
print(*curl('-T', '-', 'http://api.example.test/chunked', '-H', 'Expect:', stdin=block * 16))
print(*curl('-F', 'f=@/box/big', '--cacert', '/box/ca.pem', 'https://api.example.test/form', '-o', '/dev/null', '-w', '%{http_code} %{size_upload}'))
print(*curl('http://api.example.test/bytes/33554432', '-o', '/box/down'))
print(sha(open('/box/down', 'rb').read()))""")
    r.ended()
    lines = [f"0 {API} /put {32 * MIB} {digest_of_pattern(32 * MIB)}", f"0 {API} /chunked {MIB} {digest_of_pattern(MIB)}"]
    assert r.lines[:2] == lines and r.lines[2].startswith("0 200 3355") and r.lines[3:] == ["0 ", digest_of_pattern(32 * MIB)], r.text
    assert r.refused() == [(API, "", 80, "http", "http-expect", 1)], r.denials
    only(r, (API, http, "http", http.count), (API, tls, "tls", 1))


def test_curl_that_is_refused():
    r = run(r"""
print(curl('http://other.test/')[0])
print(*curl('http://api.example.test/', '-H', 'Host: other.test', '-w', '%{http_code} %{header_json}'))
print(curl('--resolve', 'api.example.test:80:93.184.216.6', 'http://api.example.test/', '-o', '/dev/null', '-w', '%{http_code}')[1])
print(curl('-k', '--connect-to', 'other.test:443:api.example.test:443', 'https://other.test/')[0])
print(curl('--http2-prior-knowledge', 'http://api.example.test/')[0])
print(curl('-x', 'http://api.example.test:80', '-p', 'http://other.test/')[0])
print(curl('--doh-url', 'https://93.184.216.6/dns-query', 'http://api.example.test/')[0])""")
    r.ended()
    assert r.lines[0] == "6" and r.lines[1] == "0 reeve: refused by rule name: other.test, port 80: the name is not one of those that the run may reach", r.text
    assert r.lines[2].startswith("403 {") and '"x-reeve-rule":["name"]' in r.text, r.text
    assert r.contacts == [] and sniffer.take() == [] and dns.asked == [], (r.contacts, dns.asked)
    assert ("other.test", "", 0, "dns", "name", 2) in r.refused() or ("other.test", "", 0, "dns", "name", 1) in r.refused(), r.denials
    for denial in (("other.test", "", 80, "http", "name"), ("", OTHER, 80, "http", "no-name"), ("other.test", "", 443, "tls", "name"), (API, "", 80, "http", "http2"),
                   (API, "", 80, "http", "http-connect"), ("", OTHER, 443, "tls", "no-name")):
        assert denial in [d[:5] for d in r.refused()], (denial, r.denials)


def test_urllib():
    r = run(r"""
print(get('http://api.example.test/a'))
print(urllib.request.urlopen('https://api.example.test/b', context=context()).read().decode())
q = urllib.request.Request('http://api.example.test/c', data=bytes(100000)); print(urllib.request.urlopen(q).read().decode())
os.environ['http_proxy'] = 'http://api.example.test:80'                 # absolute targets, to a proxy that is allowed
urllib.request.install_opener(urllib.request.build_opener())
print(get('http://api.example.test/d'), get('http://other.test/d'))""")
    r.ended()
    assert r.lines == [f"{API} /a", f"{API} /b", f"{API} /c 100000 {hashlib.sha256(bytes(100000)).hexdigest()}", f"{API} http://api.example.test/d 403"], r.text
    assert r.refused() == [("other.test", "", 80, "http", "name", 1)], r.denials
    only(r, (API, http, "http", 3), (API, tls, "tls", 1))


def test_many_requests_on_one_connection():
    r = run(r"""
for c in (http.client.HTTPConnection('api.example.test'), http.client.HTTPSConnection('api.example.test', context=context())):
    bad = 0
    for i in range(1500):
        c.request(('GET', 'POST', 'PUT')[i % 3], f'/{i}', body=None if i % 3 == 0 else bytes(i), headers={'X-Long': 'x' * (i % 300)})
        a = c.getresponse(); got = a.read().decode()
        want = f'api.example.test /{i}' + (f' {i} {sha(bytes(i))}' if i % 3 else '')
        bad += got != want or a.status != 200
    print(bad)""")
    r.printed("0", "0")
    only(r, (API, http, "http", 1), (API, tls, "tls", 1))
    assert len(http.seen) == 1500


def test_asyncio():
    r = run(r"""
import asyncio
async def one(i, **tls):
    reader, writer = await asyncio.open_connection('api.example.test', 443 if tls else 80, **tls)
    writer.write(request('api.example.test', f'/{i}', 'Connection: close\r\n')); await writer.drain()
    got = (await reader.read()).split(b'\r\n\r\n')[1].decode(); writer.close(); return got
async def both():
    plain = await asyncio.gather(*[one(i) for i in range(40)])
    over_tls = await asyncio.gather(*[one(i, ssl=context()) for i in range(40)])
    reader, writer = await asyncio.open_connection('echo.example.test', 7000); data = bytes(range(256)) * 4096
    async def send():
        writer.write(data); await writer.drain(); writer.write_eof()
    _, back = await asyncio.gather(send(), reader.read())
    print(plain == over_tls == [f'api.example.test /{i}' for i in range(40)], back == data)
asyncio.run(both())""")
    r.printed("True True")
    only(r, (API, http, "http", 40), (API, tls, "tls", 40), ("echo.example.test", echo, "tcp", 1))
    assert echo.bytes_in == echo.bytes_out == MIB


def test_node_fetch():
    r = run(r"""
console.log(await (await fetch('http://api.example.test/a')).text());
const big = await fetch('http://api.example.test/up', {method: 'POST', body: Buffer.alloc(5 << 20, 'x')}); console.log(await big.text());
const down = Buffer.from(await (await fetch('http://api.example.test/bytes/8388608')).arrayBuffer()); console.log(sha(down));
const all = await Promise.all(Array.from({length: 60}, async (_, i) => (await fetch(`http://api.example.test/${i}`)).text()));
console.log(all.every((t, i) => t === `api.example.test /${i}`));
try { await fetch('http://other.test/'); } catch (e) { console.log(e.cause.code); }
console.log((await fetch('http://api.example.test/', {headers: {'X-A': 'b'.repeat(9000)}})).status);
const secret = child.spawnSync('/usr/bin/node', ['-e', "fetch('https://api.example.test/s').then((r) => r.text()).then(console.log)"],
    {env: {...process.env, NODE_EXTRA_CA_CERTS: '/box/ca.pem'}, encoding: 'utf8'}); console.log(secret.stdout.trim());""", "javascript")
    r.ended()
    digest = hashlib.sha256(b"x" * (5 << 20)).hexdigest()
    assert r.lines == [f"{API} /a", f"{API} /up {5 * MIB} {digest}", digest_of_pattern(8 * MIB), "true", "ENOTFOUND", "200", f"{API} /s"], (r.text, r.errors)
    assert {d[:5] for d in r.refused()} == {("other.test", "", 0, "dns", "name")}, r.denials
    only(r, (API, http, "http", http.count), (API, tls, "tls", 1))
    assert http.count < 64, f"{http.count} connections: they are not kept"


def test_node_agent():
    r = run(r"""
const one = (agent, module, port, i) => new Promise((yes, no) => module.get({host: 'api.example.test', port, path: `/${i}`, agent, ca}, (res) => yes(text(res))).on('error', no));
for (const [module, port] of [[http, 80], [https, 443]]) {
    const agent = new module.Agent({keepAlive: true, maxSockets: 1}); let bad = 0;
    for (let i = 0; i < 300; i++) bad += (await one(agent, module, port, i)) !== `api.example.test /${i}`;
    console.log(bad); agent.destroy();
}""", "javascript")
    r.printed("0", "0")
    only(r, (API, http, "http", 1), (API, tls, "tls", 1))


def test_node_http2():
    r = run(r"""
const session = http2.connect('https://api.example.test:8443', {ca});
const one = (body) => new Promise((yes, no) => { const s = session.request({':path': '/', ':method': body ? 'POST' : 'GET'}); s.on('error', no); text(s).then(yes); s.end(body); });
console.log((await Promise.all(Array.from({length: 50}, () => one()))).join('') === 'h2 0'.repeat(50), await one(Buffer.alloc(200000)));
session.close();
const plain = http2.connect('http://api.example.test:8443'); plain.on('error', (e) => console.log(e.code));""", "javascript")
    r.ended()
    assert r.lines == ["true h2 200000", "ECONNRESET"], (r.text, r.errors)
    assert r.refused() == [(API, "", 8443, "http", "http2", 1)], r.denials
    only(r, (API, h2, "tls", 1))


def test_websocket_over_tls():
    r = run(r"""
import base64
s = context().wrap_socket(dial('api.example.test', 443), server_hostname='api.example.test'); key = base64.b64encode(b'0123456789abcdef').decode()
s.sendall(request('api.example.test', '/ws', f'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n'))
f = s.makefile('rb'); print(f.readline().split()[1]); [None for _ in iter(f.readline, b'\r\n')]
def send(kind, data):
    n = len(data); mask = b'\1\2\3\4'
    s.sendall(bytes([0x80 | kind]) + (bytes([0x80 | n]) if n < 126 else struct.pack('>BH', 254, n) if n < 65536 else struct.pack('>BQ', 255, n)) + mask + bytes(b ^ mask[i & 3] for i, b in enumerate(data)))
def receive():
    first, n = f.read(2); n = n if n < 126 else struct.unpack('>H', f.read(2))[0] if n == 126 else struct.unpack('>Q', f.read(8))[0]
    return first & 15, f.read(n)
bad = 0
for n in (0, 1, 125, 126, 5000, 65535, 65536, 300000):
    data = bytes(i * 7 & 255 for i in range(n)); send(2, data); bad += receive() != (2, data)
time.sleep(1); send(1, b'after a while'); print(bad, receive()); send(8, b'\3\xe8'); print(receive())
print(ask('api.example.test', 80, request('api.example.test', '/ws', f'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n'))[0][9:12])""")
    r.ended()
    assert r.lines == ["b'101'", "0 (1, b'after a while')", "(8, b'\\x03\\xe8')", "b'403'"], r.text
    assert r.refused() == [(API, "", 80, "http", "http-upgrade", 1)], r.denials
    only(r, (API, tls, "tls", 1))


# ---- Other protocols ----

def test_mail():
    """smtplib: the server speaks first, then the connection becomes TLS in the middle."""
    r = run(r"""
import smtplib
for secure in (False, True):
    with smtplib.SMTP('mail.example.test', 587, timeout=10) as m:
        if secure: print(m.starttls(context=context())[0])
        print(m.sendmail('a@example.test', ['b@example.test'], f'Subject: {secure}\r\n\r\nhello' + 'x' * 100000))""", domains=["mail.example.test"])
    r.printed("{}", "220", "{}")
    only(r, ("mail.example.test", mail, "tcp", 2))
    assert [m[:14] for m in mail.seen] == [b"Subject: False", b"Subject: True\r"], mail.seen


def test_ssh():
    r = run(r"""
t = time.monotonic(); s = dial('ssh.example.test', 22); print(s.recv(99), time.monotonic() - t < 0.5)
s.sendall(b'SSH-2.0-client\r\n'); s.sendall(struct.pack('>I', 1500) + bytes([20]) + bytes(1499)); f = s.makefile('rb'); print(len(f.read(1504)), f.read())
s = dial('ssh.example.test', 22); s.sendall(b'SSH-2.0-eager\r\n' + struct.pack('>I', 4) + b'xxxx'); print(read(s))""")
    r.printed(r"b'SSH-2.0-test_1.0\r\n' True", "1504 b''", r"b'SSH-2.0-test_1.0\r\n\x00\x00\x00\x04\x14\x00\x00\x00'")
    only(r, ("ssh.example.test", ssh, "tcp", 2))
    assert [s for s in ssh.seen if len(s) < 20] == [b"SSH-2.0-client", b"SSH-2.0-eager", b"xxxx"], ssh.seen


def test_mysql():
    r = run(r"""
def packet(n, data): return struct.pack('<I', len(data))[:3] + bytes([n]) + data
for secure in (False, True):
    s = dial('mysql.example.test', 3306); f = s.makefile('rb')
    def get(): n = int.from_bytes(f.read(4)[:3], 'little'); return f.read(n)
    greeting = get(); n = 1
    if secure:
        s.sendall(packet(1, bytes(32))); f.detach(); s = context().wrap_socket(s, server_hostname='mysql.example.test'); f = s.makefile('rb'); n = 2
    s.sendall(packet(n, bytes(32) + b'user\0' + bytes([20]) + bytes(20))); ok = get()
    s.sendall(packet(0, b'\3SELECT 1')); print(greeting[1:11], ok[0], get(), get(), get()[0])
    s.close()""")
    r.printed(*["b'8.0.0-test' 0 b'\\x01' b'answer' 254"] * 2)
    only(r, ("mysql.example.test", mysql, "tcp", 2))
    assert [s for s in mysql.seen if s[0] == 3] == [b"\3SELECT 1"] * 2, mysql.seen


def test_postgres():
    """The client speaks first, in binary, and waits for one byte; what becomes TLS then is not looked at."""
    r = run(r"""
def message(kind, data): return kind + struct.pack('>I', len(data) + 4) + data
for host, port in (('pg.example.test', 5432), ('pgs.example.test', 5433)):
    s = dial(host, port); t = time.monotonic(); s.sendall(struct.pack('>II', 8, 80877103)); answer = s.recv(1); ms = (time.monotonic() - t) * 1000
    if answer == b'S': s = context().wrap_socket(s, server_hostname=host)
    s.sendall(message(b'', struct.pack('>I', 196608) + b'user\0me\0database\0x\0\0')); f = s.makefile('rb')
    def get(): kind, n = struct.unpack('>cI', f.read(5)); return kind, f.read(n - 4)
    print(answer, ms < 100, get(), get()); s.sendall(message(b'Q', b'SELECT 42\0')); print(get(), get()[0], get()[0]); s.close()""")
    rows = [r"True (b'R', b'\x00\x00\x00\x00') (b'Z', b'I')", r"(b'D', b'\x00\x01\x00\x00\x00\x0242') b'C' b'Z'"]
    r.printed("b'N' " + rows[0], rows[1], "b'S' " + rows[0], rows[1])
    only(r, ("pg.example.test", pg, "tcp", 1), ("pgs.example.test", pgs, "tcp", 1))
    assert pg.seen == pgs.seen == [(196608, b"user\0me\0database\0x\0\0"), b"SELECT 42\0"], (pg.seen, pgs.seen)


def test_redis():
    r = run(r"""
s = dial('redis.example.test', 6379); f = s.makefile('rb'); t = time.monotonic()
s.sendall(b'*1\r\n$4\r\nPING\r\n'); print(f.readline(), time.monotonic() - t < 0.1)
s.sendall(b'*2\r\n$4\r\nECHO\r\n$36\r\nGET / HTTP/1.1\r\nHost: other.test\r\n\r\n\r\n'); print(f.readline(), f.read(36))""")
    r.printed(r"b'+PONG\r\n' True", r"b'$36\r\n' b'GET / HTTP/1.1\r\nHost: other.test\r\n\r\n'")
    only(r, ("redis.example.test", redis, "tcp", 1))


# ---- Bytes ----

BIG = r"""
block = bytes(range(256)) * 256
def up(s, n):
    for _ in range(n): s.sendall(block)
def down(s):
    h, n = hashlib.sha256(), 0
    while p := s.recv(1 << 20): h.update(p); n += len(p)
    return n, h.hexdigest()
"""


def test_large_up_and_down():
    """One way, the other, and both at once; plain and over TLS."""
    r = run(BIG + r"""
s = dial('sink.example.test', 7001); up(s, 1024); s.shutdown(socket.SHUT_WR); print(read(s).decode())
s = dial('source.example.test', 7002); t = threading.Thread(target=up, args=(s, 512)); t.start(); got = down(s); t.join(); s.shutdown(socket.SHUT_WR); print(*got); read(s); s.close()
s = dial('echo.example.test', 7000); h, n = hashlib.sha256(), 0; t = threading.Thread(target=up, args=(s, 1024)); t.start()
while n < 1024 * len(block): p = s.recv(1 << 20); h.update(p); n += len(p)
t.join(); print(n, h.hexdigest()); s.close()
s = context().wrap_socket(dial('tls.example.test', 7443), server_hostname='tls.example.test'); h, n = hashlib.sha256(), 0      # for one thread at a time
for i in range(1, 1025):
    up(s, 1)
    while n < i * len(block): p = s.recv(1 << 20); h.update(p); n += len(p)
print(n, h.hexdigest()); s.close()""")
    whole = f"{64 * MIB} {digest_of_pattern(64 * MIB)}"
    r.printed(whole, f"{8 * MIB} {digest_of_pattern(8 * MIB)}", whole, whole)
    only(r, ("sink.example.test", sink, "tcp", 1), ("source.example.test", source, "tcp", 1), ("echo.example.test", echo, "tcp", 1), ("tls.example.test", secret_echo, "tls", 1))
    assert source.seen == [(32 * MIB, digest_of_pattern(32 * MIB))], source.seen
    assert (sink.bytes_in, echo.bytes_in, echo.bytes_out) == (64 * MIB,) * 3


def test_half_close():
    """Each side may end first, and the other goes on for as long as it likes."""
    r = run(BIG + r"""
s = dial('echo.example.test', 7000, X + b'hello'); s.shutdown(socket.SHUT_WR); print(read(s))
s = dial('sink.example.test', 7001); s.shutdown(socket.SHUT_WR); print(read(s).decode()[:2])
s = dial('source.example.test', 7002); n, _ = down(s); time.sleep(0.3); up(s, 16); time.sleep(0.3); up(s, 16); s.shutdown(socket.SHUT_WR); print(n, read(s)); s.close()
s = dial('api.example.test', 80, request('api.example.test', '/half')); s.shutdown(socket.SHUT_WR); print(read(s)[-22:])
""")
    r.printed(r"b'\x00hello'", "0 ", f"{8 * MIB} b''", "b'api.example.test /half'")
    assert source.seen == [(2 * MIB, digest_of_pattern(2 * MIB))], source.seen
    only(r, ("echo.example.test", echo, "tcp", 1), ("sink.example.test", sink, "tcp", 1), ("source.example.test", source, "tcp", 1), (API, http, "http", 1))


def test_node_half_close():
    r = run(r"""
const s = net.connect({host: 'sink.example.test', port: 7001, allowHalfOpen: true}); const got = text(s);
for (let i = 0; i < 64; i++) if (!s.write(Buffer.alloc(65536, i))) await until(s, 'drain');
s.end(); console.log((await got).split(' ')[0]);
const t = tls.connect({host: 'tls.example.test', port: 7443, servername: 'tls.example.test', ca}); await until(t, 'secureConnect');
t.write('over tls'); const d = await until(t, 'data'); console.log(d.toString(), t.authorized); t.end(); await new Promise((yes) => t.on('close', yes));
const u = tls.connect({host: 'tls.example.test', port: 7444, servername: 'tls.example.test', ca, allowHalfOpen: true}); u.end('last words'); console.log(await text(u));""", "javascript")
    r.printed(str(4 * MIB), "over tls true", f"10 {hashlib.sha256(b'last words').hexdigest()}")
    only(r, ("sink.example.test", sink, "tcp", 1), ("tls.example.test", secret_echo, "tls", 1), ("tls.example.test", secret_sink, "tls", 1))


# ---- Many ----

def test_a_thousand_one_after_another():
    """With the usual limits, a new connection for each."""
    r = run(r"""
t = time.monotonic(); bad = {x for i in range(1000) if (x := get(f'http://api.example.test/{i}')) != f'api.example.test /{i}'}
print(bad, time.monotonic() - t < 20)""")
    r.printed("set() True")
    only(r, (API, http, "http", 1000))


def test_two_hundred_at_once():
    code = r"""
got, ready = [], threading.Barrier(200)
def one(i):
    ready.wait(); got.append(get(f'http://api.example.test/{i}', 20) == f'api.example.test /{i}')
threads = [threading.Thread(target=one, args=(i,)) for i in range(200)]
for t in threads: t.start()
for t in threads: t.join()
print(len(got), all(got))"""
    r = run(code)
    r.printed("200 True")
    only(r, (API, http, "http", 200))
    r = run(r"""
const one = (i) => new Promise((yes, no) => http.get({host: 'api.example.test', path: `/${i}`, agent: false}, (res) => yes(text(res))).on('error', no));
const all = await Promise.all(Array.from({length: 200}, (_, i) => one(i))); console.log(all.length, all.every((t, i) => t === `api.example.test /${i}`));""", "javascript")
    r.printed("200 true")
    only(r, (API, http, "http", 200))


# ---- DNS and UDP ----

def test_dns_by_udp_and_tcp():
    r = run(r"""
print([dns('api.example.test', k) for k in (1, 28, 65, 64, 15, 33, 16, 6, 2, 255)])
print([dns('api.example.test', 1, server, tcp) for server in ('127.0.0.1', '8.8.8.8', '2001:4860:4860::8888') for tcp in (False, True)])
print(dns('other.test', 1), dns('other.test', 1, tcp=True), dns('secret.attacker.test', 16, '9.9.9.9'))
s = dial('127.0.0.1', 53); q = struct.pack('>HHHHHH', 9, 0x100, 1, 0, 0, 0) + b'\3api\7example\4test\0\0\1\0\1'
for _ in range(3): s.sendall((struct.pack('>H', len(q)) + q) * 5)
f = s.makefile('rb'); print({f.read(int.from_bytes(f.read(2), 'big'))[-4:-2] for _ in range(15)})
print(subprocess.run(['/usr/bin/getent', 'ahostsv4', 'api.example.test'], capture_output=True, text=True).stdout.split()[0], resolve('api.example.test'))""")
    r.ended()
    address = r.lines[-1].split()
    assert r.lines[:4] == ["[(0, 1)" + ", (0, 0)" * 9 + "]", "[" + ", ".join(["(0, 1)"] * 6) + "]", "(3, 0) (3, 0) (3, 0)", r"{b'\xc6\x12'}"], r.text
    assert address[0] == address[1] and address[0].startswith("198.18."), r.text
    assert r.refused() == [("other.test", "", 0, "dns", "name", 2), ("secret.attacker.test", "", 0, "dns", "name", 1)], r.denials
    assert r.contacts == [] and dns.asked == [] and sniffer.take() == []


def test_node_dns():
    r = run(r"""
const p = dns.promises, say = (f) => f.then((v) => v.address ?? v.length, (e) => e.code);
console.log(dns.getServers().join(), (await p.lookup('api.example.test')).address === (await p.resolve4('api.example.test'))[0]);
for (const f of ['resolve6', 'resolveMx', 'resolveTxt', 'resolveSrv', 'resolveNs', 'resolveCaa']) console.log(f, await say(p[f]('api.example.test')));
console.log(await say(p.resolve4('other.test')), await say(p.resolveTxt('secret.attacker.test')), await say(p.reverse('93.184.216.5')), await say(p.lookup('localhost')));
const r = new p.Resolver(); r.setServers(['8.8.8.8']); console.log((await r.resolve4('api.example.test'))[0].startsWith('198.18.'));""", "javascript")
    r.ended()
    assert r.lines[0] == "127.0.0.1 true" and {line.split()[1] for line in r.lines[1:7]} == {"ENODATA"}, (r.text, r.errors)
    assert r.lines[7:] == ["ENOTFOUND ENOTFOUND ENOTFOUND 127.0.0.1", "true"], r.text
    assert r.contacts == [] and dns.asked == [] and sniffer.take() == []


def test_udp_elsewhere_is_refused_at_once():
    code = r"""
for family, host in ((socket.AF_INET, '93.184.216.5'), (socket.AF_INET, sys.argv[1] if len(sys.argv) > 1 else '198.18.0.1'), (socket.AF_INET6, '2606:4700::6')):
    for port in (443, 123, 5353, 40000):
        s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(2); t = time.monotonic()
        try: s.connect((host, port)); s.send(b'x'); s.recv(9); print('answered')
        except OSError as e: print(type(e).__name__, time.monotonic() - t < 0.05)"""
    for mode in ("domains", "any", "registries"):
        r = run("resolve('api.example.test')\n" + code, mode=mode, config={**RESOLVE, "registries": {"python": {"index": "http://api.example.test/simple", "files": ["api.example.test"]}}})
        r.ended()
        assert r.lines == ["ConnectionRefusedError True"] * 12, r.text
        seen = sniffer.take()
        assert r.contacts == [] and r.denials == [] and seen == [], (r.contacts, r.denials, seen)
    r = run(r"""
const s = dgram.createSocket('udp4'), t = performance.now(); s.on('error', (e) => { console.log(e.code, performance.now() - t < 100); s.close(); });
s.connect(443, '93.184.216.5', () => s.send('x'));""", "javascript")
    r.printed("ECONNREFUSED true")


# ---- What is true of every run ----

def test_names_are_asked_for_once_and_only_when_dialled():
    r = run("print([get(f'http://public.example.test/{i}') for i in range(3)], resolve('a.example.test') is not None, get('http://other.test/'))")
    r.ended()
    assert r.text == "['public.example.test /0', 'public.example.test /1', 'public.example.test /2'] True gaierror\n", r.text
    assert dns.names() == {"public.example.test"} and dns.asked.count(("public.example.test", "A")) == 1, dns.asked
    seen = sniffer.take()
    assert {s for s in seen if s[0] == "tcp"} == {("tcp", PUBLIC, 80)} and {s[1] for s in seen if s[0] == "udp"} == {"127.0.0.1"}, seen
    matches(r, "public.example.test", public, "http", 3)


def test_two_runs_at_once_have_what_is_theirs():
    got = {}

    def one(i, domain):
        got[i] = reeve(f"time.sleep(0.3)\nfor i in range(20): assert get('http://{domain}/{{}}'.format(i)) == '{domain} /{{}}'.format(i)\nprint(get('http://api.example.test/') if {i} else 1)",
                       domains=[domain], config=RESOLVE)
    for s in (http, public):
        s.fresh()
    threads = [threading.Thread(target=one, args=a) for a in enumerate((API, "public.example.test", "public.example.test"))]
    began = time.monotonic()
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert time.monotonic() - began < 20
    assert [got[i].ended().text for i in range(3)] == ["1\n", "gaierror\n", "gaierror\n"], [r.text for r in got.values()]
    assert [r.reached() for _, r in sorted(got.items())] == [[(API, HERE, 80, "http", 20)]] + [[("public.example.test", PUBLIC, 80, "http", 20)]] * 2
    assert got[0].denials == [] and got[1].refused() == got[2].refused() == [(API, "", 0, "dns", "name", 1)], [r.denials for r in got.values()]


if __name__ == "__main__":
    main(globals())
