"""Servers for the tests of the fetch helper: they answer byte for byte what a test wants, over plain TCP or TLS.

    with Server(answer) as s: ... s.url("/path")

answer(request, connection) gets a Request and may write to connection.out, close, or sleep; True keeps the connection.
"""
import os, socket, ssl, subprocess, threading

class Request:
    def __init__(self, line, headers, body):
        self.method, self.path = line.split(" ")[:2]
        self.line, self.headers, self.body = line, headers, body

class Connection:
    def __init__(self, sock):
        self.sock, self.file, self.n = sock, sock.makefile("rb"), 0

    def send(self, *parts):
        self.sock.sendall(b"".join(p if isinstance(p, bytes) else p.encode("latin-1") for p in parts))

    def reply(self, status=200, body=b"", *headers):
        head = "".join(f"{h}\r\n" for h in headers)
        self.send(f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n{head}\r\n", body)
        return True

    def reset(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")

    def read_request(self):
        line = self.file.readline().decode("latin-1").strip()
        if not line:
            return None
        headers = {}
        while h := self.file.readline().decode("latin-1").strip():
            name, _, value = h.partition(":")
            headers[name.lower()] = value.strip()
        body = self.file.read(int(headers.get("content-length", 0)))
        self.n += 1
        return Request(line, headers, body)

class Server:
    """Counts connections and remembers requests."""
    def __init__(self, answer, tls=None, host="127.0.0.1"):
        self.answer, self.tls = answer, tls
        self.listener = socket.create_server((host, 0))
        self.host, self.port = host, self.listener.getsockname()[1]
        self.requests, self.n_connections, self.n_busy, self.n_busy_most = [], 0, 0, 0
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self.accept, daemon=True)

    def url(self, path="/", host=None):
        return f"{'https' if self.tls else 'http'}://{host or self.host}:{self.port}{path}"

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)    # or a thread that waits in accept() would keep it
        self.listener.close()

    def accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.n_connections += 1
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock):
        try:
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
            c = Connection(sock)
            while q := c.read_request():
                with self.lock:
                    self.requests.append(q)
                    self.n_busy += 1
                    self.n_busy_most = max(self.n_busy, self.n_busy_most)
                goes_on = self.answer(q, c)
                with self.lock:
                    self.n_busy -= 1
                if not goes_on:
                    break
        except (OSError, ValueError):
            pass
        finally:
            sock.close()

def openssl(place, *words):
    subprocess.run(["openssl", *words], cwd=place, check=True, capture_output=True)

def make_authority(place, name):
    """A certificate authority NAME.pem in a directory."""
    openssl(place, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out",
            f"{name}.pem", "-subj", f"/CN={name}", "-days", "2", "-addext", "basicConstraints=critical,CA:TRUE")

def make_certificate(place, authority, name, days="2"):
    """A server's TLS context for 127.0.0.1, signed by an authority; negative days: expired."""
    with open(os.path.join(place, f"{name}.ext"), "w", encoding="ascii") as f:
        f.write("subjectAltName=IP:127.0.0.1\n")
    openssl(place, "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out", f"{name}.csr",
            "-subj", f"/CN={name}")
    openssl(place, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-set_serial", "1",
            "-days", days, "-extfile", f"{name}.ext", "-out", f"{name}.pem")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(place, f"{name}.pem"), os.path.join(place, f"{name}.key"))
    return context
