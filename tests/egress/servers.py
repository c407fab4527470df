"""What the runs of tests/egress/clients.py speak to: each serve(connection, server) for through.Server."""
import base64
import hashlib
import struct

from through import Stream, Tls

BLOCK = bytes(range(256)) * 256


def pattern(n):
    """n bytes that both sides know."""
    whole, rest = divmod(n, len(BLOCK))
    for _ in range(whole):
        yield BLOCK
    yield BLOCK[:rest]


def digest_of_pattern(n):
    digest = hashlib.sha256()
    for piece in pattern(n):
        digest.update(piece)
    return digest.hexdigest()


# ---- HTTP/1.1 ----

def body_of(stream, head):
    """The length and the digest of a request's body."""
    digest, n = hashlib.sha256(), 0
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:])
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        while size := int(stream.line().split(b";")[0], 16):
            for piece in stream.take(size):
                digest.update(piece)
            n += size
            stream.line()
        while stream.line():
            pass
    else:
        n = int(fields.get(b"content-length", b"0"))
        for piece in stream.take(n):
            digest.update(piece)
    return n, digest.hexdigest()


def web(s, server):
    """GET /bytes/N: so many bytes of the pattern; else the name of the Host, the path, and what the body came to."""
    stream = Stream(s)
    while (head := stream.until(b"\r\n\r\n")) is not None:
        server.seen.append(head)
        method, path = head.split(b" ", 2)[:2]
        fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
        if fields.get(b"upgrade", b"").strip() == b"websocket":
            key = next(line.split(b": ")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key"))
            websocket(s, stream, key)
            return
        n, digest = body_of(stream, head)
        if path.startswith(b"/bytes/"):
            n = int(path[7:])
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % n)
            for piece in pattern(n):
                s.sendall(piece)
        elif path == b"/chunks":
            s.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n")
        else:
            body = b"%s %s%s" % (fields[b"host"], path, b" %d %s" % (n, digest.encode()) if n else b"")
            s.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + (b"" if method == b"HEAD" else body))
        if fields.get(b"connection", b"").strip() == b"close":
            return


# ---- WebSocket (RFC 6455) ----

def websocket(s, stream, key):
    """Sends back every message, and ends when it is asked to."""
    accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
    s.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n" % accept)
    while True:
        first, length = stream.get(2)
        n = length & 127
        if n == 126:
            n, = struct.unpack(">H", stream.get(2))
        elif n == 127:
            n, = struct.unpack(">Q", stream.get(8))
        mask = stream.get(4)
        data = bytes(b ^ mask[i & 3] for i, b in enumerate(stream.get(n)))
        head = bytes([first]) + (bytes([n]) if n < 126 else struct.pack(">BH", 126, n) if n < 65536 else struct.pack(">BQ", 127, n))
        s.sendall(head + data)
        if first & 15 == 8:
            return


# ---- HTTP/2 (RFC 9113) ----

DATA, HEADERS, SETTINGS, PING, WINDOW = 0, 1, 4, 6, 8


def frame(kind, flags, stream_id, data=b""):
    return struct.pack(">I", len(data))[1:] + bytes([kind, flags]) + struct.pack(">I", stream_id) + data


def http2(s, server):
    """Answers every request with "h2 " and how many bytes its body had."""
    stream = Stream(s)
    assert stream.get(24) == b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    s.sendall(frame(SETTINGS, 0, 0))
    sizes = {}
    while True:
        try:
            head = stream.get(9)
        except EOFError:
            return
        n, kind, flags, number = int.from_bytes(head[:3], "big"), head[3], head[4], int.from_bytes(head[5:], "big")
        data = stream.get(n)
        if kind == SETTINGS and not flags & 1:
            s.sendall(frame(SETTINGS, 1, 0))
        elif kind == PING and not flags & 1:
            s.sendall(frame(PING, 1, 0, data))
        elif kind in (HEADERS, DATA):
            sizes[number] = sizes.get(number, 0) + (n if kind == DATA else 0)
            if kind == DATA and n:
                s.sendall(frame(WINDOW, 0, 0, struct.pack(">I", n)) + (b"" if flags & 1 else frame(WINDOW, 0, number, struct.pack(">I", n))))
            if flags & 1:
                server.seen.append(("h2", number))
                s.sendall(frame(HEADERS, 4, number, b"\x88") + frame(DATA, 1, number, b"h2 %d" % sizes[number]))


# ---- Servers that speak first, and a client that does so in binary ----

def smtp(context):
    """A mail server with STARTTLS; the messages join `seen`."""
    def serve(s, server):
        s.sendall(b"220 mail.example.test ESMTP\r\n")
        stream, is_secure = Stream(s), False
        while (line := stream.line()) is not None:
            verb = line.split(b" ")[0].upper()
            if verb == b"EHLO":
                s.sendall(b"250-mail.example.test\r\n" + (b"" if is_secure else b"250-STARTTLS\r\n") + b"250 SIZE 10000000\r\n")
            elif verb == b"STARTTLS":
                s.sendall(b"220 go ahead\r\n")
                s = Tls(s, context)
                stream, is_secure = Stream(s), True
            elif verb == b"DATA":
                s.sendall(b"354 go ahead\r\n")
                server.seen.append(stream.until(b"\r\n.\r\n"))
                s.sendall(b"250 taken\r\n")
            elif verb == b"QUIT":
                s.sendall(b"221 bye\r\n")
                return
            else:
                s.sendall(b"250 ok\r\n")
    return serve


def ssh(s, server):
    """Both sides say who they are, then binary packets: the server's first, which is as long as the client's."""
    s.sendall(b"SSH-2.0-test_1.0\r\n")
    stream = Stream(s)
    server.seen.append(stream.line())
    n, = struct.unpack(">I", stream.get(4))
    server.seen.append(stream.get(n))
    s.sendall(struct.pack(">I", n) + bytes([20]) + bytes(n - 1))


def mysql(context):
    """Greets in binary; takes a log-in, over TLS where the client asks for it, and one query."""
    def packet(number, data):
        return struct.pack("<I", len(data))[:3] + bytes([number]) + data

    def get(stream):
        head = stream.get(4)
        return stream.get(int.from_bytes(head[:3], "little"))

    def serve(s, server):
        s.sendall(packet(0, b"\x0a8.0.0-test\0" + struct.pack("<I", 7) + b"saltsalt\0" + b"\xff\xff\x21\x02\0\xff\xff\x15" + bytes(10) + b"saltsaltsalt\0"))
        stream, number = Stream(s), 2
        login = get(stream)
        if len(login) == 32:                             # the short form: TLS comes next
            s, number = Tls(s, context, stream.data), 3
            stream = Stream(s)
            login = get(stream)
        server.seen.append(login)
        s.sendall(packet(number, b"\0\0\0\2\0\0\0"))
        server.seen.append(get(stream))
        s.sendall(packet(1, b"\1") + packet(2, b"answer") + packet(3, b"\xfe\0\0\2\0"))
        while stream.more():
            pass
    return serve


def postgres(context):
    """Its client speaks first: SSLRequest, then, over TLS if the server has it (`context`), a start and a query."""
    def message(kind, data):
        return kind + struct.pack(">I", len(data) + 4) + data

    def serve(s, server):
        stream = Stream(s)
        n, code = struct.unpack(">II", stream.get(8))
        if (n, code) == (8, 80877103):
            s.sendall(b"S" if context else b"N")
            s = Tls(s, context) if context else s
            stream = Stream(s)
            n, code = struct.unpack(">II", stream.get(8))
        server.seen.append((code, stream.get(n - 8)))
        s.sendall(message(b"R", bytes(4)) + message(b"Z", b"I"))
        assert stream.get(1) == b"Q"
        n, = struct.unpack(">I", stream.get(4))
        server.seen.append(stream.get(n - 4))
        s.sendall(message(b"D", b"\0\1\0\0\0\x0242") + message(b"C", b"SELECT 1\0") + message(b"Z", b"I"))
        while stream.more():
            pass
    return serve


def redis(s, server):
    """Its client speaks first, in lines that begin like no request."""
    stream = Stream(s)
    while (line := stream.line()) is not None:
        words = []
        for _ in range(int(line[1:])):
            words.append(stream.get(int(stream.line()[1:])))
            stream.line()
        server.seen.append(words)
        s.sendall(b"+PONG\r\n" if words == [b"PING"] else b"$%d\r\n%s\r\n" % (len(words[-1]), words[-1]))


# ---- Bytes ----

def echo(s, server):
    while data := s.recv(1 << 18):
        s.sendall(data)


def sink(s, server):
    """Takes all until the end, then says what it was."""
    digest, n = hashlib.sha256(), 0
    while data := s.recv(1 << 18):
        digest.update(data)
        n += len(data)
    s.sendall(b"%d %s" % (n, digest.hexdigest().encode()))


def source(n):
    """Sends so much of the pattern and ends its side; then takes what comes until the end."""
    def serve(s, server):
        for piece in pattern(n):
            s.sendall(piece)
        s.end()
        digest, taken = hashlib.sha256(), 0
        while data := s.recv(1 << 18):
            digest.update(data)
            taken += len(data)
        server.seen.append((taken, digest.hexdigest()))
    return serve
