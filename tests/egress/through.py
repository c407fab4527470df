"""Programs run through the whole of `reeve run`, in the world of tests/egress/world.py, and servers that count.

A test program calls world.main(globals()) with REEVE DRIVE [WORD…] as its arguments; the outside is world.py's, so that
every packet which reeve's gate sends is seen and every question of its resolver counted.
"""
import atexit
import ctypes
import errno
import json
import os
import ssl
import struct
import subprocess
import sys
import tempfile
import threading
import time

import world

HERE, PUBLIC, OTHER = "127.0.0.5", "93.184.216.5", "93.184.216.6"
STATE = tempfile.mkdtemp(prefix="egress-reeve-")
atexit.register(lambda: subprocess.run(["rm", "-rf", STATE], check=False))
MIB = 1 << 20

# What every Python program begins with: the CA is in its environment.
PYTHON = world.CLIENT + r'''
import hashlib, os, subprocess
if "CA" in os.environ: open("/box/ca.pem", "w").write(os.environ.pop("CA"))
def context(): return ssl.create_default_context(cafile="/box/ca.pem")
def sha(data): return hashlib.sha256(data).hexdigest()
def curl(*args, stdin=b""):
    """Its exit status and what it printed."""
    p = subprocess.run(["/usr/bin/curl", "-sS", "--max-time", "30", *args], input=stdin, capture_output=True)
    return p.returncode, p.stdout.decode() + (p.stderr.decode() if p.returncode else "")
'''

# And every JavaScript program, which is a module.
JAVASCRIPT = r'''
import http from 'node:http'; import https from 'node:https'; import http2 from 'node:http2'; import net from 'node:net'; import tls from 'node:tls';
import dns from 'node:dns'; import dgram from 'node:dgram'; import crypto from 'node:crypto'; import fs from 'node:fs'; import child from 'node:child_process';
const ca = process.env.CA; if (ca) fs.writeFileSync('/box/ca.pem', ca);
const sha = (data) => crypto.createHash('sha256').update(data).digest('hex');
const until = (e, name) => new Promise((yes, no) => { e.once(name, yes); e.once('error', no); });
const text = (res) => new Promise((yes, no) => { let s = ''; res.setEncoding('utf8'); res.on('data', (d) => s += d); res.on('end', () => yes(s)); res.on('error', no); });
'''


class Outcome:
    """What `reeve run --json` printed."""

    def __init__(self, data, status, took_ms):
        self.all, self.exit, self.took_ms = data, status, took_ms
        self.text, self.errors = data["stdout"]["text"], data["stderr"]["text"]
        self.lines = self.text.splitlines()
        self.mode = data["network"]["mode"]
        self.contacts, self.denials = data["network"]["contacts"], data["network"]["denials"]
        self.more = data["network"]["more_contacts"], data["network"]["more_denials"]

    def refused(self):
        """Each denial as (name, address, port, protocol, rule, count)."""
        return [(d["name"], d["address"], d["port"], d["protocol"], d["rule"], d["count"]) for d in self.denials]

    def reached(self):
        """Each contact as (name, address, port, protocol, connections)."""
        return [(c["name"], c["address"], c["port"], c["protocol"], c["connections"]) for c in self.contacts]

    def printed(self, *lines):
        """The program came to its end and printed exactly this, and nothing was refused to it."""
        self.ended()
        assert self.lines == list(lines), f"printed {self.text}\n{self.errors}"
        assert self.denials == [] and self.more == (0, 0), self.denials
        return self

    def ended(self):
        assert (self.exit, self.all["status"], self.all["reason"]["code"], self.all["started"]) == (0, "completed", "ok", "yes"), f"{self.all}"
        return self


_n_files = [0]


def reeve(code, language="python", mode="domains", domains=("example.test",), config=None, policy=None, args=(), memory_mib=512, timeout_s=60, prepare=None, **env):
    """Runs `code` (behind PYTHON or JAVASCRIPT) to its end. `config` joins reeve.yaml; `policy` is the text of a bundle;
    `prepare` is called in the process that becomes reeve."""
    _n_files[0] += 1
    folder = os.path.join(STATE, str(_n_files[0]))
    os.mkdir(folder)
    path = os.path.join(folder, "reeve.yaml")
    settings = {"state_dir": os.path.join(STATE, "state"), **(config or {})}
    if policy:
        os.mkdir(os.path.join(folder, "bundle"))
        with open(os.path.join(folder, "bundle", "policy.lua"), "w", encoding="utf-8") as f:
            f.write(policy)
        tenants = settings.setdefault("tenants", {})
        tenants["local"] = {**tenants.get("local", {}), "policy": "bundle"}
    with open(path, "w", encoding="utf-8") as f:
        json.dump(settings, f)
    network = {"mode": mode, **({"domains": list(domains)} if mode == "domains" else {})}
    request = {"language": language, "source": (PYTHON if language == "python" else JAVASCRIPT) + code, "timeout_s": timeout_s, "memory_mib": memory_mib,
               "network": network, "env": env}
    began = time.monotonic()
    p = subprocess.run([os.path.abspath(sys.argv[1]), "run", "--config", path, "--json", "--request", "-", *args], input=json.dumps(request).encode(),
                       capture_output=True, timeout=120, check=False, preexec_fn=prepare)
    took_ms = (time.monotonic() - began) * 1000
    try:
        data = json.loads(p.stdout)
        return Outcome(data, p.returncode, took_ms)
    except (ValueError, KeyError) as e:
        raise AssertionError(f"no outcome: exit status {p.returncode}: {p.stdout[:500]} {p.stderr[-500:]}") from e


# ---- A host that lacks something ----

def refuse(error, number, at, value, third):
    """A seccomp filter: the system call fails whose argument `at` has this value, and whose third has that."""
    program = [(0x20, 0, 0, 0), (0x15, 0, 5, number), (0x20, 0, 0, 16 + 8 * at), (0x15, 0, 3, value), (0x20, 0, 0, 32), (0x15, 0, 1, third),
               (0x06, 0, 0, 0x50000 | error), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *i) for i in program))
    if ctypes.CDLL(None).prctl(22, 2, struct.pack("HxxxxxxP", len(program), ctypes.addressof(code)), 0, 0) != 0:    # PR_SET_SECCOMP
        raise OSError("seccomp")


def without_gate():
    """There is no helper in the place where reeve looks for it."""
    libc = ctypes.CDLL(None)
    gate = os.path.join(os.path.dirname(os.path.abspath(sys.argv[1])), "../gate/reeve-gate")
    if libc.unshare(0x20000) != 0 or libc.mount(None, b"/", None, 0x44000, None) != 0 or libc.mount(b"/dev/null", gate.encode(), None, 0x1000, None) != 0:
        raise OSError("mount")


def with_link(name, to):
    """This file of /etc is a link. In memory, as an overlay cannot stand on another one."""
    libc, place = ctypes.CDLL(None, use_errno=True), tempfile.mkdtemp(dir=STATE)
    if libc.unshare(0x20000) != 0 or libc.mount(None, b"/", None, 0x44000, None) != 0 or libc.mount(b"tmpfs", place.encode(), b"tmpfs", 0, b"mode=755") != 0:
        raise OSError(ctypes.get_errno(), "mount")
    os.mkdir(place + "/upper")
    os.mkdir(place + "/work")
    os.symlink(to, f"{place}/upper/{name}")
    if libc.mount(b"overlay", b"/etc", b"overlay", 0, f"lowerdir=/etc,upperdir={place}/upper,workdir={place}/work".encode()) != 0:
        raise OSError(ctypes.get_errno(), "mount")


SOCKET, SETSOCKOPT = 41, 54                 # of x86_64
LACKS = {
    "netfilter": lambda: refuse(errno.EPROTONOSUPPORT, SOCKET, 0, world.socket.AF_NETLINK, 12),
    "routes": lambda: refuse(errno.EPERM, SOCKET, 0, world.socket.AF_NETLINK, 0),
    "tproxy": lambda: refuse(errno.EPERM, SETSOCKOPT, 1, world.socket.SOL_IP, 19) or refuse(errno.EPERM, SETSOCKOPT, 1, world.socket.IPPROTO_IPV6, 75),
    "gate": without_gate,
}


def without(lack, code, **options):
    """As reeve(), on a host that lacks this."""
    return reeve(code, prepare=LACKS[lack], **options)


# ---- Servers that count ----

class Counted:
    """A connection whose bytes join its server's sums."""

    def __init__(self, s, server):
        self.s, self.server = s, server

    def recv(self, n):
        data = self.s.recv(n)
        with self.server.lock:
            self.server.bytes_in += len(data)
        return data

    def sendall(self, data):
        self.s.sendall(data)
        with self.server.lock:
            self.server.bytes_out += len(data)

    def say_goodbye(self, data):
        """What a program that has ended by then never gets."""
        self.s.sendall(data)
        with self.server.lock:
            self.server.goodbyes += len(data)

    def end(self):
        self.s.shutdown(world.socket.SHUT_WR)

    def close(self):
        self.s.close()


class Tls:
    """The server's side of TLS on a connection that counts; `data` came already."""

    def __init__(self, s, context, data=b""):
        self.s, self.i, self.o = s, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.i.write(data)
        self.tls = context.wrap_bio(self.i, self.o, server_side=True)
        self.do(self.tls.do_handshake)

    def do(self, what, *args):
        while True:
            try:
                got = what(*args)
            except ssl.SSLWantReadError:
                got = None
            except ssl.SSLZeroReturnError:
                got = b""
            if self.o.pending:
                self.s.sendall(self.o.read())
            if got is not None or what == self.tls.do_handshake and self.tls.version():
                return got
            data = self.s.recv(65536)
            if data:
                self.i.write(data)
            else:
                self.i.write_eof()

    def recv(self, n):
        try:
            return self.do(self.tls.read, n)
        except ssl.SSLEOFError:
            return b""

    def sendall(self, data):
        self.do(self.tls.write, data)

    def end(self):
        """Says that no more comes, and does not wait for the other side to say so."""
        try:
            self.tls.unwrap()
        except ssl.SSLError:
            pass
        self.s.say_goodbye(self.o.read())


class Stream:
    """What comes over a connection, by lines and by lengths."""

    def __init__(self, s):
        self.s, self.data = s, b""

    def more(self):
        piece = self.s.recv(1 << 18)
        self.data += piece
        return len(piece) > 0

    def until(self, mark):
        """All before the mark, which is taken too; None at the end."""
        while mark not in self.data:
            if not self.more():
                return None
        head, self.data = self.data.split(mark, 1)
        return head

    def line(self):
        return self.until(b"\r\n")

    def take(self, n):
        """n bytes, in pieces as they come."""
        while n:
            if not self.data and not self.more():
                raise EOFError("in the middle")
            piece, self.data = self.data[:n], self.data[n:]
            n -= len(piece)
            yield piece

    def get(self, n):
        return b"".join(self.take(n))


class Server(world.Server):
    """serve(connection, server), whose `bytes_in` and `bytes_out` are what all its connections have had on the wire."""

    def __init__(self, address, port, serve, **options):
        self.lock, self.bytes_in, self.bytes_out, self.goodbyes, self.errors = threading.Lock(), 0, 0, 0, []
        self.where = address, port
        super().__init__(address, port, serve, **options)

    def one(self, s):
        s.setsockopt(world.socket.IPPROTO_TCP, world.socket.TCP_NODELAY, 1)
        counted = Counted(s, self)
        try:
            self.serve(counted, self)
            counted.end()
            while counted.recv(65536):               # closed with bytes unread it would be reset, and they would not be counted
                pass
        except (OSError, EOFError) as e:
            self.errors.append(e)
        finally:
            s.close()

    def fresh(self):
        self.count, self.bytes_in, self.bytes_out, self.goodbyes = 0, 0, 0, 0
        self.seen.clear()
        self.errors.clear()
        return self


def secure(ca, serve, alpn=()):
    """serve() behind TLS. What was agreed on joins the server's `seen` as ("tls", SNI, ALPN)."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca.path("cert.pem"), ca.path("key.pem"))
    context.set_alpn_protocols(list(alpn))

    def keep_name(tls, name, _):
        tls.asked = name
    context.sni_callback = keep_name

    def serve_tls(s, server):
        t = Tls(s, context)
        server.seen.append(("tls", getattr(t.tls, "asked", None), t.tls.selected_alpn_protocol()))
        serve(t, server)
        t.end()
    return serve_tls


def matches(outcome, name, server, protocol, connections):
    """The contact says what the server saw, to the byte. Returns the contact."""
    address, port = server.where
    found = [c for c in outcome.contacts if (c["name"], c["address"], c["port"]) == (name, address, port)]
    assert len(found) == 1 and set(found[0]) == {"name", "address", "port", "protocol", "connections", "bytes_out", "bytes_in"}, outcome.contacts
    c = found[0]
    end = time.monotonic() + 2

    def is_same():
        return c["bytes_out"] == server.bytes_in and server.bytes_out <= c["bytes_in"] <= server.bytes_out + server.goodbyes
    while not is_same() and time.monotonic() < end:
        time.sleep(0.01)
    assert (c["protocol"], c["connections"], c["connections"]) == (protocol, connections, server.count), (c, server.count)
    assert is_same(), (c, server.bytes_in, server.bytes_out, server.goodbyes)
    return c
