#!/usr/bin/python3
"""What the gate costs, against the same client and server without it, in one run. Needs root; else it prints that.

    tests/bench/egress.py --build DIRECTORY [--brief] [requests|streams|fairness|starts…]

One request on a connection of its own, alternating with one without the gate; a stream in either direction, likewise, and
by a bare splice proxy (splice_proxy.c); the 99th percentile of a quiet run's requests beside a busy run, against alone,
with the gate and without it in turns: where the machine itself is full, the latter says what is left to the gate. ADD and
REMOVE, and the start of the gate. Briefly, the figures only show that they can be taken.
"""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../egress"))
import world  # noqa: E402

ADDRESS, STREAM_MIB, STREAMS, REQUESTS = "93.184.216.34", 512, 7, 400
ROUNDS, WINDOW_S = 3, 0.6
if "--brief" in sys.argv:
    STREAM_MIB, STREAMS, REQUESTS, ROUNDS = 64, 1, 100, 1
CONTROL = "/proc/sys/net/ipv4/tcp_congestion_control"
PROXIED = 100      # added to a port: the same by the bare splice proxy

SERVER = r"""
import os, socket, sys, threading
def serve(port, one):
    l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); l.bind((sys.argv[1], port)); l.listen(2048)
    while True:
        s, _ = l.accept()
        try: one(s)
        except OSError: pass
        s.close()
def request(s):
    s.recv(4096); s.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nfive')
block = bytes(1 << 20)
def stream(s):
    n = int(s.recv(64)[1:])
    for _ in range(n): s.sendall(block)
if os.fork() == 0: serve(80, request)
if os.fork() == 0: serve(81, request)
def keep():
    import select
    l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); l.bind((sys.argv[1], 82)); l.listen(2048)
    poll, open_ = select.epoll(), {}
    poll.register(l, select.EPOLLIN)
    while True:
        for fd, _ in poll.poll():
            s = l.accept()[0] if fd == l.fileno() else open_[fd]
            open_[s.fileno()] = s
            if fd == l.fileno(): poll.register(s, select.EPOLLIN)
            elif s.recv(4096): s.sendall(b'HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfive')
            else: del open_[fd]; s.close()
if os.fork() == 0: keep()
def count(s):
    buf, n = bytearray(1 << 20), 0
    while True:
        got = s.recv_into(buf)
        if not got: break
        n += got
    s.sendall(b'%d' % n)
if os.fork() == 0: serve(7001, count)
def many(port):
    l = socket.socket(); l.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); l.bind((sys.argv[1], port)); l.listen(2048)
    def one(s):
        try: stream(s)
        except OSError: pass
        s.close()
    while True: threading.Thread(target=one, args=(l.accept()[0],), daemon=True).start()
if os.fork() == 0: many(7002)
serve(7000, stream)
"""

# A line on standard input is an order, a line on standard output the seconds that it took.
CLIENT = r"""
import select
buf = bytearray(1 << 20)
host = sys.argv[1]
address = resolve(host)
def one(target):
    t = time.perf_counter()
    s = socket.create_connection((target, 80)); s.sendall(b'GET / HTTP/1.1\r\nHost: ' + host.encode() + b'\r\n\r\n')
    while s.recv_into(buf): pass
    s.close(); return time.perf_counter() - t
def down(mib, port):
    s = socket.create_connection((address, port)); s.sendall(b'\0%d' % mib); n, t = 0, time.perf_counter()
    while True:
        got = s.recv_into(buf)
        if not got: break
        n += got
    assert n == mib << 20; return time.perf_counter() - t
def up(mib, port):
    s = socket.create_connection((address, port)); t = time.perf_counter()
    for _ in range(mib): s.sendall(buf)
    s.shutdown(socket.SHUT_WR)
    assert int(s.recv(64)) == mib << 20; return time.perf_counter() - t
def burst(count):
    '''So many connections at once, each with one request.'''
    poll, open_ = select.epoll(), {}
    for _ in range(count):
        s = socket.socket(); s.setblocking(False)
        try: s.connect((address, 81))
        except BlockingIOError: pass
        open_[s.fileno()] = s; poll.register(s, select.EPOLLOUT)
    while open_:
        for fd, events in poll.poll():
            s = open_[fd]
            try:
                if events & select.EPOLLOUT:
                    s.send(b'GET / HTTP/1.1\r\nHost: ' + host.encode() + b'\r\n\r\n'); poll.modify(s, select.EPOLLIN)
                elif not s.recv(4096):
                    del open_[fd]; s.close()
            except OSError:
                del open_[fd]; s.close()
def hold(count, seconds):
    '''So many connections at once, opened and held; each has a request, and another once the others had theirs.'''
    held = [socket.create_connection((address, 82)) for _ in range(count)]
    began, n = time.monotonic(), 0
    while time.monotonic() < began + seconds:
        s = held[n % count]; n += 1
        s.sendall(b'GET / HTTP/1.1\r\nHost: ' + host.encode() + b'\r\n\r\n'); s.recv(4096)
        time.sleep(max(0, began + n / 1000 - time.monotonic()))
    return n
def renew(count, seconds):
    '''So many connections at once, 1000 times a second another one for the oldest of them, with a request.'''
    held, began, n = [socket.create_connection((address, 82)) for _ in range(count)], time.monotonic(), 0
    while time.monotonic() < began + seconds:
        held[n % count].close(); s = held[n % count] = socket.create_connection((address, 82)); n += 1
        s.sendall(b'GET / HTTP/1.1\r\nHost: ' + host.encode() + b'\r\n\r\n'); s.recv(4096)
        time.sleep(max(0, began + n / 1000 - time.monotonic()))
    return n
def bursts(count, seconds):
    end, n = time.monotonic() + seconds, 0
    while time.monotonic() < end: burst(count); n += count
    return n
def streams(count, seconds):
    '''So many streams at once, as fast as they go. MiB.'''
    ends, n = time.monotonic() + seconds, 0
    poll, open_ = select.epoll(), {}
    for _ in range(count):
        s = socket.create_connection((address, 7002)); s.sendall(b'\0' b'100000'); open_[s.fileno()] = s; poll.register(s, select.EPOLLIN)
    while time.monotonic() < ends:
        for fd, _ in poll.poll(1, 1): n += open_[fd].recv_into(buf)
    for s in open_.values(): s.close()
    return n >> 20
def quiet(seconds):
    '''A request every 2 ms, each on a connection of its own: what each took.'''
    began, times = time.monotonic(), []
    while time.monotonic() < began + seconds:
        times.append(one(address))
        time.sleep(max(0, began + len(times) / 500 - time.monotonic()))
    return times
for line in sys.stdin:
    what, n, port = line.split()
    if what == 'one': print(one(address), flush=True)
    elif what == 'named': print(one(host), flush=True)
    elif what == 'down': print(down(int(n), int(port)), flush=True)
    elif what == 'up': print(up(int(n), int(port)), flush=True)
    elif what == 'quiet': print(*quiet(float(n)), flush=True)
    elif what == 'hold': print(hold(500, float(n)), flush=True)
    elif what == 'renew': print(renew(500, float(n)), flush=True)
    elif what == 'burst': print(bursts(500, float(n)), flush=True)
    elif what == 'streams': print(streams(4, float(n)), flush=True)
"""


class Client:
    def __init__(self, process):
        self.process = process

    def order(self, what, n=0, port=0):
        self.process.stdin.write(f"{what} {n} {port}\n")
        self.process.stdin.flush()

    def answer(self):
        return [float(x) for x in self.process.stdout.readline().split()]

    def ask(self, what, n=0, port=0):
        self.order(what, n, port)
        return self.answer()


def direct():
    return Client(subprocess.Popen([world.PYTHON, "-I", "-c", world.CLIENT + CLIENT, ADDRESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))


def through(gate, **limits):
    r = world.Run(gate, CLIENT, arguments=["example.test"], stdin=subprocess.PIPE, limits=limits)
    return Client(r.inside.process)


def quantile(values, q):
    return sorted(values)[min(int(len(values) * q), len(values) - 1)]


def requests(a, b):
    rows = {"one": ([], []), "named": ([], [])}
    for what, (with_gate, without) in rows.items():
        for i in range(REQUESTS):
            order = ((a, with_gate), (b, without)) if i % 2 else ((b, without), (a, with_gate))
            for client, times in order:
                times.extend(client.ask(what))
    for what, (with_gate, without) in rows.items():
        label = "name looked up before" if what == "one" else "name looked up each time, against an address"
        x, y = quantile(with_gate, 0.5) * 1e3, quantile(without, 0.5) * 1e3
        print(f"one request, {label}: median {x:.3f} ms, direct {y:.3f} ms: {x - y:+.3f} ms (at most +1.000)")


def cpu_s(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as f:
        return sum(int(x) for x in f.read().split()[13:15]) / os.sysconf("SC_CLK_TCK")


def streams(gate, a, b):
    """By a bare splice proxy too: what this machine can do at that moment. Outside once with the host's own congestion
    control, which may pace and then varies from one to the other, and once with one that does not."""
    with open(CONTROL, encoding="ascii") as f:
        own = f.read().strip()
    for control in dict.fromkeys([own, "reno"]):
        with open(CONTROL, "w", encoding="ascii") as f:
            f.write(control)
        for what, port in (("down", 7000), ("up", 7001)):
            stream(gate, a, b, what, port, control)
    with open(CONTROL, "w", encoding="ascii") as f:
        f.write(own)


def stream(gate, a, b, what, port, control):
    times, used = {"gate": [], "proxy": [], "direct": []}, 0
    for _ in range(STREAMS):
        before = cpu_s(gate.process)
        times["gate"] += a.ask(what, STREAM_MIB, port)
        used += cpu_s(gate.process) - before
        times["proxy"] += b.ask(what, STREAM_MIB, port + PROXIED)
        times["direct"] += b.ask(what, STREAM_MIB, port)
    gate_rate, proxy, plain = (STREAM_MIB / quantile(times[k], 0.5) for k in ("gate", "proxy", "direct"))
    print(f"one stream {what}, {control} outside: median {gate_rate:.0f} MiB/s, direct {plain:.0f} MiB/s: {gate_rate / plain:.2f} (at least 0.45); "
          f"a bare splice proxy {proxy:.0f} MiB/s: {proxy / plain:.2f}; the gate uses {used / (STREAMS * STREAM_MIB / 1024):.2f} s of a processor for a GiB")


BESIDE = {"hold": "500 connections held, {:.0f} requests", "renew": "500 connections at once, {:.0f} of them new ones",
          "burst": "500 connections opened at once, again and again, {:.0f} in all", "streams": "4 streams, {:.0f} MiB"}


def fairness(label, what, pairs):
    """The quiet run's requests alone and beside the busy one: with the gate and without it, in turns. What the busy side does
    to the machine shows in the latter; what the former has more of is the gate's."""
    rows = []
    times = [([], [], []) for _ in pairs]
    for _ in range(ROUNDS):
        for (quiet, busy), (alone, beside, done) in zip(pairs, times):
            alone += quiet.ask("quiet", WINDOW_S)
            busy.order(what, WINDOW_S + 0.4)
            time.sleep(0.2)
            beside += quiet.ask("quiet", WINDOW_S)
            done += busy.answer()
    for alone, beside, done in times:
        x, y = quantile(alone, 0.99) * 1e3, quantile(beside, 0.99) * 1e3
        rows.append(f"{x:.3f} ms alone, {y:.3f} ms beside {BESIDE[what].format(sum(done))}: {y / x:.2f}")
    print(f"p99 of a run's requests, {label}: " + "; direct: ".join(rows))


def every_fairness(gate, a, b):
    usual, free, plain = through(gate, connections_per_s=100, connections=256), through(gate, connections=1000), direct()
    fairness("usual limits", "burst", [(a, usual), (b, plain)])
    for what in ("hold", "renew", "streams", "burst"):
        fairness("no limits", what, [(a, free), (b, plain)])


def starts():
    times, adds, inside = [], [], world.Inside("")
    for _ in range(40):
        began = time.perf_counter()
        gate = world.Gate()
        number = gate.add({"mode": "any"}, inside.sockets)
        times.append(time.perf_counter() - began)
        for _ in range(20):
            gate.remove(number)
            began = time.perf_counter()
            number = gate.add({"mode": "any"}, inside.sockets)
            adds.append(time.perf_counter() - began)
        gate.close()
    print(f"start of the gate to its first READY, by a Python parent: median {quantile(times, 0.5) * 1e3:.2f} ms; ADD to READY in one that runs: median {quantile(adds, 0.5) * 1e3:.3f} ms")


def main():
    if os.geteuid() != 0:
        print("egress: needs root")
        return
    if "EGRESS_WORLD" not in os.environ and "--build" in sys.argv:
        build = sys.argv[sys.argv.index("--build") + 1]
        subprocess.run(["ninja", "-C", build, "tools/gate/reeve-gate", "tests/egress/drive", "tests/bench/splice_proxy"], stdout=subprocess.DEVNULL, check=True)
        sys.argv[1:] = [os.path.join(build, "tools/gate/reeve-gate"), os.path.join(build, "tests/egress/drive"), os.path.join(build, "tests/bench/splice_proxy"), *sys.argv[sys.argv.index("--build") + 2:]]
    world.enter()
    dns = world.Dns()
    dns.zone = {("example.test", "A"): [ADDRESS]}
    server = subprocess.Popen([world.PYTHON, "-I", "-c", SERVER, ADDRESS], start_new_session=True)
    proxies = [subprocess.Popen([sys.argv[3], ADDRESS, str(port + PROXIED), ADDRESS, str(port)]) for port in (7000, 7001)]
    time.sleep(0.3)
    gate = world.Gate()
    a, b = through(gate, connections=1000), direct()
    a.ask("one"), b.ask("one")
    rows = {"requests": lambda: requests(a, b), "streams": lambda: streams(gate, a, b),
            "fairness": lambda: every_fairness(gate, a, b), "starts": starts}
    for name, measure in rows.items():
        if name in sys.argv[4:] or not set(sys.argv[4:]) - {"--brief"}:
            measure()
    os.killpg(server.pid, 9)
    for p in proxies:
        p.kill()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
