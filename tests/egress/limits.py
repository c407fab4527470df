#!/usr/bin/python3
"""What a run may use of the gate, what the gate may do at all, and what the loop may tell it.

    limits.py GATE DRIVE [WORD…]
"""
import os
import signal
import socket
import subprocess
import time

import world
from world import ADD, REFUSED, REMOVE, READY, Dns, Gate, Inside, Run, Server, Sniffer, echo, http, main, memfd, run

FIVE = "93.184.216.5"


def setup():
    global dns, web, idle
    dns = Dns()
    dns.zone = {("example.test", "A"): [FIVE], ("other.test", "A"): [FIVE], ("many.test", "A"): [FIVE]}
    web = Server(FIVE, 80, http("five"))
    idle = Server(FIVE, 7000, echo)


def test_connections_at_once():
    r = run("""
held = [dial('example.test', 7000, X) for _ in range(10)]
for s in held: s.recv(1)
t = time.monotonic(); print(ask('example.test', 80, request('example.test'))[0][9:12], 1.9 < time.monotonic() - t < 2.5)
late = dial('example.test', 7000, X); time.sleep(0.2); held.pop().close(); late.settimeout(1); print(late.recv(1) == X)""", limits={"connections": 10})
    assert r.text == "b'403' True\nTrue\n", r.text
    assert r.has_denial(rule="connection-limit", name="example.test", port=80, protocol="http"), r.denials


def test_each_waits_for_itself():
    """Past the limit one is refused two seconds after it came, whoever came before it; also one that has begun a request."""
    r = run(r"""
def one(i, wait):
    time.sleep(wait); t = time.monotonic(); got = read(dial('example.test', 80, b'GET / HTTP/1.1\r\nHo', 5))[9:]
    told[i] = f"{got[:3].decode()} {1.9 < time.monotonic() - t < 2.4}"
told, threads = {}, [threading.Thread(target=one, args=a) for a in enumerate((0, 0, 0, 0.3, 0.4, 1.3, 2.2, 2.4))]
for t in threads: t.start()
for t in threads: t.join()
print([told[i] for i in range(8)])""", mode="any", limits={"connections": 3})
    assert r.text == f"{[' False'] * 3 + ['403 True'] * 5}\n", r.text
    assert r.has_denial(rule="connection-limit", name="example.test", count=5), r.denials


def test_a_place_that_is_free_goes_to_the_first():
    """It does not make the others wait anew, and who was refused has no place."""
    r = run("""
def ends(s, t): return s.recv(99)[9:12], round(time.monotonic() - t, 1)
held = [dial('example.test', 7000, X) for _ in range(3)]
for s in held: s.recv(1)
t = time.monotonic(); first, second, third = [dial('example.test', p, d) for p, d in ((7000, X), (80, request('example.test')), (80, request('example.test')))]
time.sleep(1); held.pop().close(); first.settimeout(0.5); print(first.recv(1) == X)
print([1.9 < ends(s, t)[1] < 2.4 for s in (second, third)])
held.pop().close(); time.sleep(0.1); fourth = dial('example.test', 7000, X); fourth.settimeout(0.5); print(fourth.recv(1) == X)""", limits={"connections": 3})
    assert r.text == "True\n[True, True]\nTrue\n", r.text


def test_a_long_line():
    r = run("""
held = dial('example.test', 7000, X); held.recv(1); t = time.monotonic()
line = [dial('example.test', 80, request('example.test')) for _ in range(400)]
got = [(s.recv(99)[9:12], 1.9 < time.monotonic() - t < 3) for s in line]
print(set(got))""", limits={"connections": 1})
    assert r.text == "{(b'403', True)}\n" and r.has_denial(rule="connection-limit", count=400), (r.text, r.denials)


def test_an_answer_for_many_keeps_no_other_run_waiting():
    """What is due for a run is done in pieces, between which others have their turn. Counted, not timed: the gate is stopped
    until both the answer that 300 connections wait for and another run's request are there."""
    gate, sniffer = Gate(), Sniffer()
    quiet = Run(gate, "a = resolve('example.test'); ask(a, 80, request('example.test', extra='Connection: close\\r\\n'), 0.2); print(1, flush=True); sys.stdin.readline()\n"
                "print(dial(a, 80, request('example.test')).recv(15))", stdin=subprocess.PIPE)
    assert quiet.inside.process.stdout.readline() == "1\n"
    before = gate.descriptors()
    dns.may_answer.clear()
    busy = Run(gate, "held = [dial('many.test', 7000, X) for _ in range(300)]\nfor s in held: s.recv(1)", domains=["many.test"], limits={"connections": 400})
    while gate.descriptors() < before + 300:
        pass
    os.kill(gate.process.pid, signal.SIGSTOP)
    sniffer.take()
    dns.may_answer.set()
    time.sleep(0.2)
    quiet.inside.process.stdin.write("\n")
    quiet.inside.process.stdin.flush()
    time.sleep(0.3)
    os.kill(gate.process.pid, signal.SIGCONT)
    assert quiet.finish().text.endswith("b'HTTP/1.1 200 OK'\n")
    assert busy.finish().contacts[0]["connections"] == 300
    ports = [port for kind, address, port in sniffer.take() if kind == "tcp" and address == FIVE]
    assert ports.count(7000) == 300 and ports.index(80) < 20, ports.index(80)
    gate.close()


def test_the_end_of_a_run_with_a_line():
    gate = Gate()
    before = gate.descriptors()
    r = Run(gate, "held = [dial('example.test', 7000, X) for _ in range(4)]; held[0].recv(1); held += [dial('example.test', 80, b'x' * 9) for _ in range(40)]", limits={"connections": 2})
    r.inside.output()
    began = time.monotonic()
    evidence = gate.remove(r.number)
    assert time.monotonic() - began < 0.5 and evidence["contacts"][0]["connections"] == 4, evidence
    assert gate.descriptors() == before
    gate.close()


def test_connections_a_second():
    r = run("t = time.monotonic()\nfor _ in range(60): assert get('http://example.test/') == 'five'\nprint(time.monotonic() - t)", limits={"connections_per_s": 20})
    assert 1.8 < float(r.text) < 4, r.text
    assert r.denials == []


def test_questions_a_second():
    r = run("t = time.monotonic()\nfor _ in range(60): assert resolve('example.test')\nprint(time.monotonic() - t)", limits={"dns_per_s": 20})
    assert 1.8 < float(r.text) < 6, r.text


def test_bytes():
    r = run("""
s = dial('example.test', 7000); n = 0
try:
    while n < 1 << 20: s.sendall(bytes(4096)); n += len(s.recv(4096))
except OSError as e: print(type(e).__name__, 40000 < n < 60000)
print(get('http://example.test/'))""", limits={"bytes": 100000})
    assert r.text == "ConnectionResetError True\n403\n", r.text
    assert {d["rule"] for d in r.denials} == {"byte-limit"}, r.denials


def test_idle():
    r = run("""
s, busy = dial('example.test', 7000, X), dial('example.test', 7000, X); s.recv(1); busy.recv(1); silent = dial('example.test', 80)
t = time.monotonic()
for _ in range(8): busy.sendall(X); busy.recv(9); time.sleep(0.1)
print(read(s), read(silent), time.monotonic() - t < 0.9); busy.sendall(b'z'); print(busy.recv(9))""", limits={"idle_ms": 500})
    assert r.text == "b'!RESET' b'!RESET' True\nb'z'\n", r.text


def test_names():
    r = run("print([resolve(f'n{i}.example.test') is not None for i in range(7)], resolve('n0.example.test'))", limits={"names": 5})
    assert r.text == "[True, True, True, True, True, False, False] 198.18.0.1\n", r.text
    assert r.has_denial(rule="name-limit", name="n5.example.test", protocol="dns"), r.denials


def test_lists_are_bounded():
    for i in range(300):
        dns.zone[f"c{i}.example.test", "A"] = [FIVE]
    r = run("""
for i in range(300):
    get(f'http://c{i}.example.test/'); resolve(f'd{i}.test')""")
    assert len(r.contacts) == 256 and r.more_contacts == 44, (len(r.contacts), r.more_contacts)
    assert len(r.denials) == 256 and r.more_denials == 44, (len(r.denials), r.more_denials)
    assert [c["name"] for c in r.contacts] == [f"c{i}.example.test" for i in range(256)]
    assert [d["name"] for d in r.denials] == [f"d{i}.test" for i in range(256)]


def test_without_descriptors():
    """A connection for which there is no descriptor is reset at once; those that are there go on, and so it does later."""
    gate = Gate(files=60)
    r = Run(gate, """
first = dial('example.test', 7000, X); first.recv(1)
def begin():
    try: return dial('example.test', 7000, X)
    except OSError as e: return type(e).__name__
def end(s):
    if isinstance(s, str): return s
    s.settimeout(3)
    try: return s.recv(1)
    except OSError as e: return type(e).__name__
rest = [begin() for _ in range(60)]
ends = [end(s) for s in rest]; print(ends.count(X) > 10, ends.count('ConnectionResetError') > 10, set(ends))
first.sendall(b'still'); print(first.recv(5))
rest = None
time.sleep(0.3); print(get('http://example.test/'))""")
    result = r.finish()
    cpu = sum(float(x) for x in open(f"/proc/{gate.process.pid}/stat", encoding="ascii").read().split()[13:15]) / os.sysconf("SC_CLK_TCK")
    assert result.lines[0].startswith("True True {") and result.lines[1:] == ["b'still'", "five"], result.text
    assert "TIMEOUT" not in result.text and cpu < 1, (result.text, cpu)
    gate.close()


def status(gate):
    with open(f"/proc/{gate.process.pid}/status", encoding="ascii") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def test_what_the_gate_is():
    gate = Gate()
    inside = Inside("")
    gate.add({"mode": "any"}, inside.sockets)
    s = status(gate)
    pid = gate.process.pid
    assert s["Uid"].split() == ["65534"] * 4 and s["Groups"].strip() == "" and s["NoNewPrivs"] == "1", s
    assert int(s["CapEff"], 16) == int(s["CapPrm"], 16) == 0 and s["Threads"] == "1", s
    with open(world.GATE, "rb") as f:
        sanitized = b"__asan_init" in f.read()
    if not sanitized:
        assert s["Seccomp"] == "2" and s["Seccomp_filters"] == "1", s
    with open(f"/proc/{pid}/limits", encoding="ascii") as f:
        assert [line.split()[4:6] for line in f if line.startswith("Max core")] == [["0", "0"]]
    inside.go()
    inside.output()
    gate.close()


def refusal(gate, rules, sockets):
    try:
        gate.add(rules, sockets)
    except ValueError as e:
        return str(e)
    raise AssertionError(f"accepted: {rules}")


def test_what_the_loop_may_say():
    gate = Gate()
    inside = Inside("")
    before = gate.descriptors()
    good = {"mode": "any"}
    for rules, reason in ((b"", "line"), (b"[]", "mode"), (b'{"mode":"none"}', "mode"), (b'{"mode":"any","mode":"any"}', "duplicate"), (b'{"mode":"any","x":1}', "unknown"),
                          ({"mode": "domains"}, "domains"), ({"mode": "any", "limits": {"names": 0}}, "names"), ({"mode": "any", "deny": ["*"]}, "deny"),
                          (b" " * (1 << 20) + b'{"mode":"any"}', "cannot be read")):
        assert reason in refusal(gate, rules, inside.sockets), (rules[:40] if isinstance(rules, bytes) else rules, refusal(gate, rules, inside.sockets))
    tcp = socket.socket()
    tcp.bind(("127.0.0.1", 0))
    tcp.listen()
    for sockets in (inside.sockets[:2], inside.sockets[1:], [*inside.sockets[:3], inside.sockets[0]], [*inside.sockets[:3], tcp.fileno()],
                    [*inside.sockets[:3], memfd(b"")]):
        assert "descriptor" in refusal(gate, good, sockets) or "socket" in refusal(gate, good, sockets), sockets
    for kind, size in ((0, None), (READY, None), (99, None), (ADD, None), (REMOVE, None), (ADD, 8), (ADD, 271)):
        gate.send(kind, 7, size=size)
        answer = gate.receive()
        assert answer[0] == REFUSED and answer[2], (kind, size, answer)
    gate.send(99, 7, [0, 1, 2])
    assert gate.receive()[0] == REFUSED
    assert gate.descriptors() == before, "descriptors are left"
    gate.last_id = 41
    gate.add(good, inside.sockets)
    gate.last_id = 41
    assert "number" in refusal(gate, good, inside.sockets)
    gate.remove(42)
    inside.go()
    inside.output()
    assert gate.descriptors() == before, "descriptors are left"
    gate.close()


def test_the_sockets_in_any_order():
    gate = Gate()
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 0, 2), (2, 3, 0, 1)):
        inside = Inside("print(get('http://example.test/'))")
        number = gate.add({"mode": "any"}, [inside.sockets[i] for i in order])
        inside.close_sockets()
        inside.go()
        assert inside.output() == "five\n"
        gate.remove(number)
    gate.close()


def test_many_runs_leave_nothing():
    gate = Gate()
    inside = Inside("")
    before, began = gate.descriptors(), time.monotonic()
    for _ in range(300):
        gate.remove(gate.add({"mode": "any"}, inside.sockets))
    took = time.monotonic() - began
    assert gate.descriptors() == before
    print(f"# ADD and REMOVE: {took / 300 * 1000:.2f} ms")
    inside.go()
    inside.output()
    gate.close()


def test_the_end_of_the_channel_ends_the_gate():
    gate = Gate()
    r = Run(gate, "s = dial('example.test', 7000, X); s.recv(1); print('there', flush=True); print(read(s))")
    assert r.inside.process.stdout.readline() == "there\n"
    gate.close()
    assert r.inside.output() == "b'!RESET'\n"


def test_started_by_hand():
    p = subprocess.run([world.GATE], capture_output=True, text=True, check=False)
    assert p.returncode == 2 and p.stderr.startswith("usage: reeve-gate"), p


if __name__ == "__main__":
    main(globals())
