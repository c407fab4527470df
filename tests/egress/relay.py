#!/usr/bin/python3
"""What passes: every byte, both ends of each direction, resets; many connections; nothing after the run or the gate is gone.

    relay.py GATE DRIVE [WORD…]
"""
import hashlib
import os
import random
import socket
import struct
import time

from world import REFUSED, REMOVE, REPORT, Authority, Dns, Gate, Run, Server, echo, http, main, run

FIVE = "93.184.216.5"
BLOCK = bytes(range(256)) * 256
MIB = 64


def source(s, server):
    """Sends MIB MiB, then its end; takes what comes."""
    for _ in range(MIB * (1 << 20) // len(BLOCK)):
        s.sendall(BLOCK)
    s.shutdown(socket.SHUT_WR)
    while s.recv(65536):
        pass


def sink(s, server):
    """Answers with the digest of all that came before the end."""
    digest, n = hashlib.sha256(), 0
    while True:
        piece = s.recv(1 << 20)
        if not piece:
            break
        digest.update(piece)
        n += len(piece)
    s.sendall(f"{n} {digest.hexdigest()}".encode())


def end_first(s, server):
    """Sends and ends its side; then takes what comes."""
    s.sendall(b"last words")
    s.shutdown(socket.SHUT_WR)
    got = b""
    while True:
        piece = s.recv(65536)
        if not piece:
            break
        got += piece
    server.seen.append(got)


def reset(s, server):
    s.sendall(b"so far")
    time.sleep(0.1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def wait_for_end(s, server):
    try:
        while s.recv(65536):
            pass
        server.seen.append("end")
    except ConnectionResetError:
        server.seen.append("reset")


def unhurried(s, server):
    """Takes what comes slowly; keeps how much it was and how it ended. Talks when its client has long ended."""
    n, ended = 0, "end"
    try:
        while True:
            piece = s.recv(65536)
            if not piece:
                break
            n += len(piece)
            if n > 3 << 19:
                s.send(b"so far so good")
            time.sleep(0.004)
    except OSError as e:
        ended = type(e).__name__
    server.seen.append((n, ended))


def moody(s, server):
    """Reads, writes, ends and resets by chance."""
    for _ in range(random.randrange(6)):
        what = random.randrange(4)
        if what == 0:
            s.settimeout(0.05)
            try:
                s.recv(random.choice((1, 100, 65536)))
            except TimeoutError:
                pass
        elif what == 1:
            s.sendall(bytes(random.choice((1, 1000, 300000))))
        elif what == 2:
            s.shutdown(random.choice((socket.SHUT_RD, socket.SHUT_WR)))
        else:
            time.sleep(random.random() * 0.02)
    if random.random() < 0.3:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def setup():
    global dns, echo_server, waiting, half, web, tls, slow, ca, unhurried_server, posted
    dns, ca = Dns(), Authority()
    dns.zone = {("example.test", "A"): [FIVE]}
    web = Server(FIVE, 80, http("five"))
    echo_server = Server(FIVE, 7000, echo)
    Server(FIVE, 7001, source)
    Server(FIVE, 7002, sink)
    half = Server(FIVE, 7003, end_first)
    Server(FIVE, 7004, reset)
    waiting = Server(FIVE, 7005, wait_for_end)
    tls = Server(FIVE, 443, ca.wrap(echo))
    for port in (81, 7007, 444):
        Server(FIVE, port, moody)
    dns.zone["slow.example.test", "A"] = None
    dns.zone["private.example.test", "A"] = ["10.0.0.1"]
    slow = Server(FIVE, 7006, lambda s, server: time.sleep(30))
    unhurried_server, posted = Server(FIVE, 7008, unhurried), Server(FIVE, 8080, unhurried)


def test_each_side_may_end_first():
    half.seen.clear()
    r = run("""
s = dial('example.test', 7000, b'hello\\n'); s.shutdown(socket.SHUT_WR); print(read(s))
s = dial('example.test', 7003); print(read(s)); s.sendall(bytes(500000)); s.shutdown(socket.SHUT_WR); time.sleep(0.2)
s = dial('example.test', 80, request('example.test')); s.shutdown(socket.SHUT_WR); print(read(s)[9:12])""")
    assert r.text == "b'hello\\n'\nb'last words'\nb'200'\n", r.text
    assert half.seen == [bytes(500000)], [len(x) for x in half.seen]
    assert r.has_contact(port=7003, bytes_in=10, bytes_out=500000, connections=1), r.contacts


def test_resets_are_passed_on():
    waiting.seen.clear()
    r = run("""
print(read(dial('example.test', 7004)))
for end in ('reset', 'end'):
    s = dial('example.test', 7005, X); time.sleep(0.1)
    if end == 'reset': s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
    s.close(); time.sleep(0.1)
print(ask('example.test', 9999)[0], ask('example.test', 9999, b'GET / HTTP/1.0\\r\\nHost: example.test\\r\\n\\r\\n')[0])""")
    assert r.text == "b'so far!RESET'\nb'!RESET' b'!RESET'\n", r.text
    assert waiting.seen == ["reset", "end"], waiting.seen
    assert r.has_contact(port=9999, connections=0) and r.denials == [], r.contacts


def test_big_streams():
    r = run(r"""
import hashlib
block = bytes(range(256)) * 256
def digest(s):
    h, n = hashlib.sha256(), 0
    while True:
        p = s.recv(1 << 20)
        if not p: return n, h.hexdigest()
        h.update(p); n += len(p)
def up(s, n):
    h = hashlib.sha256()
    for _ in range(n): s.sendall(block); h.update(block)
    s.shutdown(socket.SHUT_WR)
    return f"{n * len(block)} {h.hexdigest()}"
n = int(sys.argv[2]) * 16
print(digest(dial('example.test', 7001)))
s = dial('example.test', 7002); told = up(s, n); print(read(s).decode() == told)
c = ssl.create_default_context(cafile=sys.argv[1])
s = c.wrap_socket(dial('example.test', 443), server_hostname='example.test'); n_bad = 0
for _ in range(100):
    s.sendall(block); got = b''
    while len(got) < len(block): got += s.recv(65536)
    n_bad += got != block
print(n_bad)
s = dial('example.test', 80, request('example.test', '/', f'Content-Length: {n * len(block)}\r\nConnection: close\r\n', 'POST'))
told = up(s, n); print(read(s)[9:12])
""", arguments=[ca.path("ca.pem"), str(MIB)])
    whole = hashlib.sha256(BLOCK * (MIB * 16)).hexdigest()
    assert r.lines[0] == f"({MIB << 20}, '{whole}')" and r.lines[1] == "True", r.text
    assert r.lines[2:] == ["0", "b'200'"], r.text
    assert r.has_contact(port=7001, bytes_in=MIB << 20) and r.has_contact(port=7002, bytes_out=MIB << 20), r.contacts


def test_both_ways_at_once():
    r = run(r"""
import hashlib
block, n = bytes(range(256)) * 64, 2000
s = dial('example.test', 7000); got = hashlib.sha256(); size = 0
def send():
    for _ in range(n): s.sendall(block)
    s.shutdown(socket.SHUT_WR)
t = threading.Thread(target=send); t.start()
while True:
    p = s.recv(65536)
    if not p: break
    got.update(p); size += len(p)
print(size == n * len(block), got.hexdigest() == hashlib.sha256(block * n).hexdigest())""")
    assert r.text == "True True\n", r.text


def rss(gate):
    with open(f"/proc/{gate.process.pid}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def cpu_s(gate):
    with open(f"/proc/{gate.process.pid}/stat", encoding="ascii") as f:
        return sum(int(x) for x in f.read().split()[13:15]) / os.sysconf("SC_CLK_TCK")


def test_a_slow_reader_stops_its_writer():
    """Neither direction is taken faster than it is given on: the gate does not grow."""
    gate = Gate()
    before = rss(gate)
    r = Run(gate, """
down = [dial('example.test', 7001) for _ in range(20)]
up = dial('example.test', 7006); up.settimeout(1); n = 0
try:
    while n < 1 << 28: n += up.send(bytes(65536))
except TimeoutError: pass
print(n < 1 << 26, flush=True); time.sleep(1)
print([s.recv(10) == bytes(range(10)) for s in down] == [True] * 20)""")
    time.sleep(2)
    grown = rss(gate) - before
    result = r.finish()
    assert result.text == "True\nTrue\n", result.text
    assert grown < 16384, f"the gate has grown by {grown} KiB"
    gate.close()


def test_a_thousand_in_a_row():
    r = run("""
bad = [r for r in (get('http://example.test/') for _ in range(1000)) if r != 'five']
print(bad)""")
    assert r.text == "[]\n", r.text
    assert r.has_contact(name="example.test", connections=1000), r.contacts


def test_two_hundred_at_once():
    r = run("""
got, ready = [], threading.Barrier(200)
def one():
    ready.wait(); got.append(get('http://example.test/', 20))
threads = [threading.Thread(target=one) for _ in range(200)]
for t in threads: t.start()
for t in threads: t.join()
print(len(got), set(got))""")
    assert r.text == "200 {'five'}\n", r.text


def test_the_gate_dies():
    gate = Gate()
    r = Run(gate, """
s = dial('example.test', 7000, X); print(s.recv(1) == X, flush=True); print(read(s)[-8:])
print(resolve('example.test'), end=' ')
try: dial('198.18.0.1', 80, timeout=2); print('connected')
except OSError as e: print(type(e).__name__)""")
    time.sleep(0.5)
    gate.process.kill()
    gate.process.wait()
    text = r.inside.output()
    assert text.splitlines()[0] == "True" and text.splitlines()[1] in ("b''", "b'!RESET'"), text
    assert text.splitlines()[2] == "None ConnectionRefusedError", text


def test_what_was_written_before_the_end_is_sent():
    """A program that ends right after it has written: the server has all of it, and the evidence says so."""
    for code, server, n_head in (("s = dial('example.test', 7008); s.sendall(bytes(n))", unhurried_server, 0),
                                 ("h = request('example.test', '/', f'Content-Length: {n}\\r\\n', 'POST'); s = dial('example.test', 8080, h); s.sendall(bytes(n)); print(len(h))", posted, None)):
        for n in (1, 3000, 2 << 20):
            server.seen.clear()
            r = run(f"import os\nn = {n}\n{code}\nsys.stdout.flush(); os._exit(0)")
            whole = n + (int(r.text) if n_head is None else n_head)
            end = time.monotonic() + 5
            while not server.seen and time.monotonic() < end:
                time.sleep(0.01)
            assert server.seen == [(whole, "end")], (code, n, server.seen, r.contacts)
            assert r.has_contact(address=FIVE, connections=1, bytes_out=whole), (code, n, r.contacts)


def test_the_end_waits_for_nothing_but_that():
    """Answered at once when nothing is left to send; a second at most when the server takes no more."""
    gate = Gate()
    for code, drain_ms, least, most in (("", 1000, 0, 0.05),
                                        ("get('http://example.test/')", 1000, 0, 0.05),
                                        ("s = [dial('example.test', p) for p in (80, 443, 7000, 7006)] + [dial('example.test', 80, b'GET / HT')]; time.sleep(0.1)", 1000, 0, 0.1),
                                        ("s = [dial('example.test', p, X) for p in (7000, 7001, 7005, 7006)]; time.sleep(0.1)", 1000, 0, 0.1),
                                        (FULL, 1000, 0.9, 1.3), (FULL, 4000000000, 0.9, 1.3), (FULL, 300, 0.25, 0.6), (FULL, 0, 0, 0.05)):
        r = Run(gate, code)
        r.inside.output()
        began = time.monotonic()
        gate.remove(r.number, drain_ms)
        took = time.monotonic() - began
        assert least <= took < most, (code, drain_ms, took)
    gate.close()


FULL = """
s = dial('example.test', 7006); s.settimeout(0.3)
try:
    while True: s.sendall(bytes(65536))
except TimeoutError: pass"""


def test_a_run_that_ends_keeps_no_other_waiting():
    gate = Gate()
    before = gate.descriptors()
    r = Run(gate, FULL)
    r.inside.output()
    began = time.monotonic()
    gate.send(REMOVE, r.number)
    gate.send(REMOVE, r.number)
    assert gate.receive()[:2] == (REFUSED, r.number)
    second = Run(gate, "print(get('http://example.test/'))").finish()
    assert second.text == "five\n" and time.monotonic() - began < 0.9, second.text
    kind, number, _, fds = gate.receive()
    assert (kind, number) == (REPORT, r.number)
    os.close(fds[0])
    assert gate.descriptors() == before
    r = Run(gate, FULL)
    r.inside.output()
    gate.send(REMOVE, r.number)
    gate.close()                                     # in the middle of it


def test_the_end_of_a_run_ends_all_of_it():
    gate = Gate()
    before = gate.descriptors()
    r = Run(gate, """
s = [dial('example.test', 7000, X) for _ in range(30)] + [dial('example.test', 80) for _ in range(30)]
for x in s[:30]: x.recv(1)
print('there', flush=True)
print({read(x) for x in s})""")
    assert r.inside.process.stdout.readline() == "there\n"
    assert gate.descriptors() > before + 90
    began = time.monotonic()
    evidence = gate.remove(r.number)
    took = time.monotonic() - began
    assert took < 1.3, took
    assert gate.descriptors() == before, before
    assert evidence["contacts"][0]["connections"] == 30 and evidence["contacts"][0]["bytes_in"] == 30, evidence
    assert r.inside.output() == "{b'!RESET'}\n"
    gate.close()


def test_nothing_spins():
    """Connections that wait in every state cost no time."""
    gate = Gate()
    r = Run(gate, r"""
held = [dial('example.test', p) for p in (80, 443, 7000, 7001, 7003, 7005, 7006) for _ in range(3)]
for p, data in ((80, b'GET / HT'), (443, b'\x16\3\1'), (7000, X), (7006, X), (7005, X), (80, request('example.test', extra='Content-Length: 9\r\n'))):
    for end in (None, socket.SHUT_RD, socket.SHUT_WR):
        s = dial('example.test', p, data); held.append(s)
        if end is not None: s.shutdown(end)
full = dial('example.test', 7006); full.settimeout(0.3); held.append(full)
try:
    while True: full.sendall(bytes(65536))
except TimeoutError: pass
late = dial('slow.example.test', 7000, X); held.append(late)
print('there', flush=True); time.sleep(2.5)""")
    assert r.inside.process.stdout.readline() == "there\n"
    time.sleep(0.3)
    before = cpu_s(gate)
    time.sleep(1.5)
    used = cpu_s(gate) - before
    r.finish()
    assert used <= 0.05, f"{used:.2f} s of 1.5"
    gate.close()


CHAOS = r"""
import os, random
random.seed(int(sys.argv[1])); end = time.monotonic() + 4
hello = b"\x16\3\1\1\0\1\0\0\xfc\3\3" + bytes(32) + b"\0\0\2\x13\1\1\0"
pieces = [X, b"x", bytes(5000), hello, hello[:9], b"GET / HTTP/1.1\r\n", b"Host: example.test\r\n", b"Host: other.test\r\n", b"\r\n", b"Content-Length: 5\r\n",
          b"POST / HTTP/1.1\r\nHost: example.test\r\nTransfer-Encoding: chunked\r\n\r\n", b"5\r\nhello\r\n", b"0\r\n\r\n", request("example.test"), request("other.test"), b"PRI * "]
def one():
    while time.monotonic() < end:
        try:
            s = dial(random.choice(("example.test", "example.test", "slow.example.test", "private.example.test", "198.18.0.1", "10.0.0.1")), random.choice((80, 443, 81, 444, 7000, 7007, 7001, 9, 1)), timeout=0.5)
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(random.randrange(8)):
                what = random.randrange(8)
                if what < 5: s.sendall(random.choice(pieces))
                elif what == 5: time.sleep(random.random() * 0.05)
                elif what == 6: s.settimeout(0.03); s.recv(random.choice((1, 65536)))
                else: s.shutdown(random.choice((socket.SHUT_RD, socket.SHUT_WR)))
            if random.random() < 0.3: s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            s.close()
        except OSError: pass
def ask_dns():
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    while time.monotonic() < end:
        u.sendto(os.urandom(random.randrange(60)), ("127.0.0.1", 53)); time.sleep(0.001)
        try: t = dial("127.0.0.1", 53, os.urandom(random.randrange(40)), 0.2); t.close()
        except OSError: pass
threads = [threading.Thread(target=one) for _ in range(40)] + [threading.Thread(target=ask_dns)]
for t in threads: t.start()
for t in threads: t.join()
"""


def test_whatever_they_do():
    """Clients and servers by chance, runs that end in the middle of it: the gate goes on, and keeps nothing."""
    gate = Gate()
    before, began = gate.descriptors(), time.monotonic()
    seed = int(os.environ.get("EGRESS_SEED", began * 1000))
    print(f"# EGRESS_SEED={seed}", flush=True)
    runs = [Run(gate, CHAOS, arguments=[str(seed + i)], mode=mode, **rules)
            for i, (mode, rules) in enumerate((("domains", {}), ("any", {}), ("any", {"deny": ["other.test"], "limits": {"connections": 20}}),
                                               ("domains", {"limits": {"bytes": 2000000, "idle_ms": 100}})))]
    time.sleep(2)
    gate.remove(runs[0].number)
    gate.remove(runs[2].number)
    for r in runs[1], runs[3]:
        r.finish()
    for r in runs[0], runs[2]:
        r.inside.output()
    assert gate.descriptors() <= before + 4, "descriptors are left"      # the resolver's sockets
    assert run("print(get('http://example.test/'))", gate=gate).text == "five\n"
    gate.close()


def test_runs_do_not_see_each_other():
    gate = Gate()
    first = Run(gate, "print(resolve('example.test'), flush=True); time.sleep(1); print(get('http://example.test/'))")
    second = Run(gate, "a = [resolve(f'n{i}.second.test') for i in range(5)]; print(ask('198.18.0.1', 80, request('example.test'))[0][9:12], a[0])", domains=["second.test"])
    one, two = first.finish(), second.finish()
    assert one.lines[1] == "five" and [c["name"] for c in one.contacts] == ["example.test"], one.text
    assert two.text == "b'403' 198.18.0.1\n" and two.contacts == [], two.text
    gate.close()


if __name__ == "__main__":
    main(globals())
