"""An outside and an inside for the tests of the gate.

A test program calls main(globals()). It is started anew as root in a network namespace in which every address is this
machine's and whose DNS server is the test's (tests/egress/drive.c), so that public addresses can be served by the test
and no packet leaves the machine; every packet that the gate sends is seen by Sniffer. A Run is a network namespace
like a run's, with the gate's sockets; its clients are Python programs.
"""
import array
import atexit
import ctypes
import json
import os
import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

NOBODY = 65534
ADD, REMOVE, READY, REFUSED, REPORT = 1, 2, 3, 4, 5
MESSAGE = struct.Struct("=IIQ256s")
RESOLV_CONF = "nameserver 127.0.0.1\noptions timeout:1 attempts:5 no-aaaa\n"
PYTHON = "/usr/bin/python3"
LIMITS = {"connections_per_s": 100000, "dns_per_s": 100000}
GATE = DRIVE = None


class Gate:
    """A gate process and the loop's end of its channel."""

    def __init__(self, files=None):
        self.channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(20)
        self.last_id = 0

        def prepare():
            fd = theirs.fileno()
            if fd != 3:
                os.dup2(fd, 3)
            os.set_inheritable(3, True)
            if files:
                resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
            os.setgroups([])
            os.setresgid(NOBODY, NOBODY, NOBODY)
            os.setresuid(NOBODY, NOBODY, NOBODY)
        self.process = subprocess.Popen([GATE], stdin=subprocess.DEVNULL, env=gate_environment(), close_fds=False, preexec_fn=prepare)
        theirs.close()

    def send(self, kind, number=0, fds=(), size=None, drain_ms=1000):
        data = MESSAGE.pack(kind, drain_ms, number, b"")[:size]
        self.channel.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])

    def receive(self):
        data, fds, _, _ = socket.recv_fds(self.channel, MESSAGE.size, 4)
        if not data:
            raise EOFError("the gate is gone")
        kind, _, number, text = MESSAGE.unpack(data)
        return kind, number, text.split(b"\0")[0].decode(), fds

    def add(self, rules, sockets):
        """Returns the run's number, or raises ValueError with the gate's reason."""
        self.last_id += 1
        fd = memfd(rules if isinstance(rules, bytes) else json.dumps(rules).encode())
        self.send(ADD, self.last_id, [fd, *sockets])
        os.close(fd)
        kind, number, text, _ = self.receive()
        assert number == self.last_id, (number, self.last_id)
        if kind != READY:
            assert kind == REFUSED and text, (kind, text)
            raise ValueError(text)
        return number

    def remove(self, number, drain_ms=1000):
        self.send(REMOVE, number, drain_ms=drain_ms)
        kind, told, text, fds = self.receive()
        assert (kind, told, text) == (REPORT, number, ""), (kind, told, text)
        with os.fdopen(fds[0], "rb") as f:
            f.seek(0)
            return json.load(f)

    def descriptors(self):
        """How many it has, now that what was under way is done."""
        time.sleep(0.1)
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def close(self):
        """Ends it as the loop does; what it says of itself must be good."""
        self.channel.close()
        assert self.process.wait(20) == 0, f"the gate ended with {self.process.returncode}"


def gate_environment():
    return {k: v for k, v in os.environ.items() if k in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS", "REEVE_DEBUG_ERRORS")}


def memfd(data):
    fd = os.memfd_create("rules")
    os.write(fd, data)
    return fd


class Inside:
    """A process in a network namespace like a run's: its sockets, then a Python program with `code`."""

    def __init__(self, code, mode="tproxy", arguments=(), stdin=subprocess.DEVNULL):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel = ours
        theirs.set_inheritable(True)
        self.process = subprocess.Popen([DRIVE, "inside", str(theirs.fileno()), mode, PYTHON, "-I", "-c", CLIENT + code, *arguments],
                                        stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                        pass_fds=[theirs.fileno()])
        theirs.close()
        told, self.sockets, _, _ = socket.recv_fds(ours, 1, 8)
        if not told:
            raise RuntimeError("no namespace: " + self.process.communicate()[0])

    def go(self):
        self.channel.send(b"g")
        self.channel.close()

    def output(self, timeout=60):
        text = self.process.communicate(timeout=timeout)[0]
        if self.process.returncode != 0:
            raise AssertionError(f"the client ended with {self.process.returncode}: {text}")
        return text

    def close_sockets(self):
        for fd in self.sockets:
            os.close(fd)
        self.sockets = []


# What every client program begins with.
CLIENT = r'''
import http.client, socket, ssl, struct, sys, threading, time, urllib.request
X = b"\0"   # no beginning of TLS or HTTP
def get(url, timeout=10, **headers):
    """The body, the status of an error, or the exception's name."""
    try:
        return urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=timeout).read().decode()
    except Exception as e:
        return getattr(e, "code", None) or type(getattr(e, "reason", e)).__name__
def dial(host, port, data=b"", timeout=10):
    s = socket.create_connection((host, port), timeout=timeout)
    if data: s.sendall(data)
    return s
def read(s):
    """All until the end, or what ended it."""
    got = b""
    try:
        while True:
            piece = s.recv(65536)
            if not piece: return got
            got += piece
    except ConnectionResetError:
        return got + b"!RESET"
    except TimeoutError:
        return got + b"!TIMEOUT"
def ask(host, port, data=b"", timeout=10):
    """What comes back for it; the time it took in ms."""
    t = time.monotonic()
    try:
        got = read(dial(host, port, data, timeout))
    except OSError as e:
        got = type(e).__name__.encode()
    return got, (time.monotonic() - t) * 1000
def dns(name, kind, server="127.0.0.1", tcp=False):
    """(code, answers) of one question."""
    q = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + struct.pack(">BHH", 0, kind, 1)
    s = socket.socket(socket.AF_INET6 if ":" in server else socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
    s.settimeout(5)
    s.connect((server, 53))
    s.send(struct.pack(">H", len(q)) + q if tcp else q)
    a = s.recv(4096)[2 if tcp else 0:]
    return a[3] & 15, struct.unpack(">H", a[6:8])[0]
def resolve(name):
    try: return socket.gethostbyname(name)
    except OSError: return None
def request(host, path="/", extra="", method="GET"):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n".encode()
'''


class Result:
    def __init__(self, text, evidence):
        self.text = text
        self.lines = text.splitlines()
        self.contacts = evidence["contacts"]
        self.denials = evidence["denials"]
        self.more_contacts, self.more_denials = evidence["more_contacts"], evidence["more_denials"]

    def rules(self):
        return {(d["name"], d["rule"]) for d in self.denials}

    def has_denial(self, **want):
        return any(all(d[k] == v for k, v in want.items()) for d in self.denials)

    def has_contact(self, **want):
        return any(all(c[k] == v for k, v in want.items()) for c in self.contacts)


class Run:
    """A run with these rules whose program is `code`; finish() for its result."""

    def __init__(self, gate, code, mode="domains", original="tproxy", arguments=(), stdin=subprocess.DEVNULL, **rules):
        self.gate = gate
        self.inside = Inside(code, original, arguments, stdin)
        if mode == "domains":
            rules.setdefault("domains", ["example.test"])
        rules["limits"] = {**LIMITS, **rules.get("limits", {})}
        self.number = gate.add({"mode": mode, "original": original, "listen_port": 1, **rules}, self.inside.sockets)
        self.inside.close_sockets()
        self.inside.go()

    def finish(self, timeout=60):
        text = self.inside.output(timeout)
        return Result(text, self.gate.remove(self.number))


def run(code, gate=None, **rules):
    """Runs `code` to its end. Returns its Result."""
    gate = gate or shared_gate()
    return Run(gate, code, **rules).finish()


_shared = []


def shared_gate():
    if not _shared:
        _shared.append(Gate())
    return _shared[0]


# ---- The outside ----

class Server:
    """A TCP server at `address`:`port`, a thread for each connection: serve(socket, server)."""

    def __init__(self, address, port, serve, family=socket.AF_INET):
        self.listener = socket.socket(family, socket.SOCK_STREAM)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            self.listener.setsockopt(socket.IPPROTO_IPV6, 78, 1)   # IPV6_FREEBIND: it is an address by its route alone
        self.listener.bind((address, port))
        self.listener.listen(1024)
        self.serve, self.count, self.seen = serve, 0, []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                s, _ = self.listener.accept()
            except OSError:
                return
            self.count += 1
            threading.Thread(target=self.one, args=(s,), daemon=True).start()

    def one(self, s):
        try:
            self.serve(s, self)
        except OSError as e:
            self.seen.append(e)
        finally:
            s.close()

    def close(self):
        self.listener.close()


def http(body):
    """A server that answers each request of a connection with `body`, and keeps the heads in `seen`."""
    def serve(s, server):
        data = b""
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            while b"\r\n\r\n" not in data:
                piece = s.recv(65536)
                if not piece:
                    return
                data += piece
            head, data = data.split(b"\r\n\r\n", 1)
            server.seen.append(head)
            length = [int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
            missing = length[0] - len(data) if length else 0
            data = data[length[0]:] if length else data
            while missing > 0:
                piece = s.recv(min(missing, 65536))
                if not piece:
                    return
                missing -= len(piece)
            s.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    return serve


def echo(s, server):
    """Sends back what comes, and its end."""
    while True:
        piece = s.recv(65536)
        server.seen.append(piece)
        if not piece:
            return
        s.sendall(piece)


def encode(name):
    return b"".join(bytes([len(label)]) + label.encode("latin-1") for label in name.split(".")) + b"\0"


class Dns:
    """The upstream resolver: `zone` maps (name, "A" or "AAAA") to addresses, or None for silence, and (name, "CNAME") to a
    name. Keeps what it is asked, and answers while may_answer is set."""

    def __init__(self):
        self.zone, self.asked, self.may_answer = {}, [], threading.Event()
        self.may_answer.set()
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        threading.Thread(target=self.serve, daemon=True).start()

    def names(self):
        return {name for name, _ in self.asked}

    def serve(self):
        while True:
            data, peer = self.socket.recvfrom(4096)
            labels, at = [], 12
            while data[at]:
                labels.append(data[at + 1:at + 1 + data[at]].decode("latin-1"))
                at += 1 + data[at]
            name, kind = ".".join(labels).lower(), {1: "A", 28: "AAAA"}.get(struct.unpack(">H", data[at + 1:at + 3])[0], "?")
            self.asked.append((name, kind))
            known = any(n == name for n, _ in self.zone)
            self.may_answer.wait()
            records, owner = [], encode(name)
            if (name, "CNAME") in self.zone:
                name = self.zone[name, "CNAME"]
                records.append(owner + struct.pack(">HHIH", 5, 1, 60, len(encode(name))) + encode(name))
                owner = encode(name)
            addresses = self.zone.get((name, kind), [])
            if addresses is None:
                continue
            family, number = (socket.AF_INET6, 28) if kind == "AAAA" else (socket.AF_INET, 1)
            for a in addresses:
                packed = socket.inet_pton(family, a)
                records.append(owner + struct.pack(">HHIH", number, 1, 60, len(packed)) + packed)
            self.socket.sendto(data[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, len(records), 0, 0) + data[12:at + 5] + b"".join(records), peer)


class Sniffer:
    """Every TCP connection that is begun, and every UDP datagram, in the outside: (kind, address, port)."""

    # Of TCP the first packet of a connection alone: (code, jump if true, jump if false, constant) of a socket filter.
    FILTER = [(0x30, 0, 0, 0), (0x54, 0, 0, 0xf0), (0x15, 0, 5, 0x40),           # version 4?
              (0x30, 0, 0, 9), (0x15, 0, 8, 6), (0xb1, 0, 0, 0), (0x50, 0, 0, 13), (0x05, 0, 0, 3),
              (0x30, 0, 0, 6), (0x15, 0, 3, 6), (0x30, 0, 0, 53),                # version 6
              (0x54, 0, 0, 0x12), (0x15, 0, 1, 2), (0x06, 0, 0, 0xffff), (0x06, 0, 0, 0)]   # SYN without ACK

    def __init__(self):
        self.seen = []
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in self.FILTER))
        self.socket.setsockopt(socket.SOL_SOCKET, 26, struct.pack("@HP", len(self.FILTER), ctypes.addressof(code)))     # SO_ATTACH_FILTER
        self.socket.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)                                                         # SO_RCVBUFFORCE
        self.socket.bind(("lo", 0))
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        while True:
            data, where = self.socket.recvfrom(65536)
            if where[2] != socket.PACKET_OUTGOING or not data:
                continue
            version = data[0] >> 4
            if version == 4:
                protocol, to, rest = data[9], socket.inet_ntop(socket.AF_INET, data[16:20]), data[(data[0] & 15) * 4:]
            else:
                protocol, to, rest = data[6], socket.inet_ntop(socket.AF_INET6, data[24:40]), data[40:]
            if protocol == 6 and rest[13] & 0x12 == 2:
                self.seen.append(("tcp", to, struct.unpack(">H", rest[2:4])[0]))
            elif protocol == 17:
                self.seen.append(("udp", to, struct.unpack(">H", rest[2:4])[0]))
            elif protocol not in (6, 17):
                self.seen.append((protocol, to, 0))

    def take(self):
        """What was seen since the last call."""
        time.sleep(0.05)
        lost = struct.unpack("=II", self.socket.getsockopt(263, 6, 8))[1]          # PACKET_STATISTICS
        assert lost == 0, f"{lost} packets were not seen"
        seen, self.seen = self.seen, []
        return seen


class Authority:
    """A CA made for the test, and certificates by it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="egress-ca-")
        atexit.register(lambda: subprocess.run(["rm", "-rf", self.folder], check=False))
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-out", "ca.pem",
                     "-subj", "/CN=test CA", "-days", "2", "-addext", "basicConstraints=critical,CA:TRUE")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out", "req.pem", "-subj", "/CN=server")
        with open(self.path("ext"), "w", encoding="ascii") as f:
            f.write("subjectAltName=DNS:example.test,DNS:*.example.test,DNS:other.test\n")
        self.openssl("x509", "-req", "-in", "req.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out", "cert.pem", "-days", "2", "-extfile", "ext")
        os.chmod(self.folder, 0o755)

    def path(self, name):
        return os.path.join(self.folder, name)

    def openssl(self, *arguments):
        subprocess.run(["openssl", *arguments], cwd=self.folder, check=True, capture_output=True)

    def wrap(self, serve):
        """serve() behind TLS; the names that clients ask for are kept in server.seen_names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path("cert.pem"), self.path("key.pem"))

        def serve_tls(s, server):
            context.sni_callback = lambda sock, name, ctx: server.seen.append(("sni", name))
            try:
                with context.wrap_socket(s, server_side=True) as t:
                    serve(t, server)
            except ssl.SSLError as e:
                server.seen.append(e)
        return serve_tls


# ---- Tests ----

def enter():
    """Goes on in the world; elsewhere it starts the program anew there and ends with it. argv: GATE DRIVE …"""
    global GATE, DRIVE
    if os.geteuid() != 0:
        print("1..0 # SKIP needs root")
        sys.exit(1 if "root" in os.environ.get("RV_MUST_RUN", "").split(",") else 77)
    GATE, DRIVE = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if "EGRESS_WORLD" not in os.environ:
        with tempfile.NamedTemporaryFile("w", prefix="egress-", suffix=".conf") as f:
            f.write(RESOLV_CONF)
            f.flush()
            os.chmod(f.name, 0o644)
            sys.exit(subprocess.run([DRIVE, "world", f.name, PYTHON, *sys.argv], env={**os.environ, "EGRESS_WORLD": "1"}, check=False).returncode)


def run_tests(names, wanted=()):
    """Runs the functions test_* of a test program's globals(); an exit status."""
    failed, n = 0, 0
    for name, test in list(names.items()):
        if not name.startswith("test_") or (wanted and not any(w in name for w in wanted)):
            continue
        n += 1
        began = time.monotonic()
        try:
            test()
            print(f"ok {n} {name[5:]} ({time.monotonic() - began:.2f} s)", flush=True)
        except Exception:
            failed += 1
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), end="")
            print(f"not ok {n} {name[5:]}", flush=True)
    print(f"1..{n}", flush=True)
    return 1 if failed else 0


def main(names):
    """Runs setup() and the tests of a test program's globals(), in the world."""
    enter()
    names["setup"]()
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    status = run_tests(names, sys.argv[3:])
    for gate in _shared:
        gate.close()
    atexit._run_exitfuncs()                          # threads that wait for clients do not end
    os._exit(status)
