"""What the tests of whole runs with packages share: registries made on the spot, `reeve run`, and what its store holds.

A test program calls runs.main(globals()) with REEVE DRIVE [WORD…] as its arguments. It is started anew in the world of
tests/egress/world.py, so that no packet leaves the machine, and calls its functions test_*, or those whose names have one
of the words. uv is taken from REEVE_UV; without it the cases for uv are skipped, and counted.
"""
import atexit
import base64
import concurrent.futures
import contextlib
import hashlib
import http.server
import json
import os
import pwd
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "../conformance"), os.path.join(HERE, "../egress")]
import registry  # noqa: E402
import world  # noqa: E402

FOLDER = None           # of this program, removed at its end
UV = os.environ.get("REEVE_UV", "")
TOOLS = [("python", "uv"), ("python", "pip"), ("javascript", "npm")]
PY, JS = "py.registry.test", "js.registry.test"
MIB = 1 << 20
skipped = []


# ---- Packages ----

def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def wheel(name, version, page=None, file=None, data=None, hashed=None, **spec):
    """A file of a Python index. `page`: members of its entry there; `file`, `data`: another name, other bytes; `hashed`: bytes
    whose hash is told; the rest as tests/conformance/registry.py says."""
    spec.setdefault("files", {canonical(name).replace("-", "_") + ".py": f"version = {version!r}\n"})
    made, built = registry.wheel({"name": name, "version": version, **spec})
    data = data if data is not None else built
    return {"name": name, "version": version, "file": file or made, "data": data, "hashed": data if hashed is None else hashed, "page": page or {},
            **({"python": spec["python"]} if "python" in spec else {})}


def tarball(name, version, page=None, dist=None, data=None, hashed=None, manifest=None, time=None, **spec):  # pylint: disable=redefined-outer-name
    """A version in an npm registry. `page`, `dist`: members of what is told of it."""
    spec.setdefault("files", {"index.js": f"module.exports = {json.dumps(version)};\n"})
    made, built = registry.tarball({"name": name, "version": version, "manifest": manifest or {}, **spec})
    data = data if data is not None else built
    return {"name": name, "version": version, "file": made, "data": data, "hashed": data if hashed is None else hashed, "manifest": manifest or {}, "page": page or {},
            "dist": dist or {}, "time": time or "2020-01-01T00:00:00.000Z"}


def either(language, name, version, requires=(), **spec):
    """A package of the language; requires: [(name, constraint)] with a constraint that both understand, such as ">=1"."""
    if language == "python":
        page = {"upload-time": spec.pop("time")} if "time" in spec else {}
        return wheel(name, version, requires=[n + c for n, c in requires], page=page, **spec)
    return tarball(name, version, manifest={**({"dependencies": {n: c.replace("==", "") for n, c in requires}} if requires else {}), **({"license": spec.pop("license")} if "license" in spec else {})}, **spec)


def asked(language, name, constraint):
    return name + constraint if language == "python" else name + "@" + constraint.replace("==", "")


# ---- Registries ----

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle(self):
        with contextlib.suppress(OSError, ssl.SSLError):
            super().handle()

    def answer(self, status, body=b"{}", kind="application/json", length=None, **headers):
        body = body if isinstance(body, bytes) else body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.answer(404)

    def do_GET(self):
        mine = self.server.mine
        path = urllib.parse.unquote(self.path.split("?")[0])
        with mine.lock:
            mine.seen.append((self.command, path, self.headers.get("Authorization")))
        if mine.secret and self.headers.get("Authorization") != mine.secret:
            return self.answer(401, WWW_Authenticate='Basic realm="packages"')
        if mine.fault and mine.fault(self, path):
            return None
        for p in mine.packages:
            if path.endswith("/" + p["file"]):
                return self.answer(200, p["data"], "application/octet-stream")
        scheme = "https" if mine.tls else "http"
        base = f"{scheme}://{self.headers.get('Host')}"
        body = mine.page(path, base)
        return self.answer(200 if body else 404, body or "{}", mine.kind_of_page)

    do_HEAD = do_GET


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass


class Registry:
    """A registry of one language at a port of loopback, until stop(). `fault(handler, path)` is true of what it has answered;
    `tls` is a certificate's authority; `secret` the header Authorization without which nothing is told."""

    def __init__(self, language, packages=(), fault=None, tls=None, secret=None, has_times=True):
        self.language, self.packages, self.fault, self.tls, self.secret, self.has_times = language, list(packages), fault, tls, secret, has_times
        self.seen, self.lock = [], threading.Lock()
        self.kind_of_page = "application/vnd.pypi.simple.v1+json" if language == "python" else "application/json"
        self.host = PY if language == "python" else JS
        self.port = free_port()
        self.server = None
        self.start()

    def start(self):
        self.server = Server(("127.0.0.1", self.port), Handler)
        self.server.mine = self
        if self.tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(self.tls.path("cert.pem"), self.tls.path("key.pem"))
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def config(self, credentials="", **members):
        scheme = "https" if self.tls else "http"
        return {"index": f"{scheme}://{credentials}{self.host}:{self.port}" + ("/simple/" if self.language == "python" else "/"), **members}

    def downloads(self):
        """How often each file was taken."""
        files = {p["file"] for p in self.packages}
        got = [path.rpartition("/")[2] for method, path, _ in self.seen if method == "GET" and path.rpartition("/")[2] in files]
        return {f: got.count(f) for f in got}

    def page(self, path, base):
        return self.python_page(path, base) if self.language == "python" else self.npm_page(path, base)

    def python_page(self, path, base):
        name = canonical(path.strip("/").rpartition("/")[2])
        hits = [p for p in self.packages if canonical(p["name"]) == name]
        files = []
        for p in hits:
            entry = {"filename": p["file"], "url": f"{base}/files/{p['file']}", "hashes": {"sha256": hashlib.sha256(p["hashed"]).hexdigest()}, "size": len(p["data"]),
                     "yanked": False, **({"requires-python": p["python"]} if "python" in p else {}), **({"upload-time": "2020-01-01T00:00:00.000000Z"} if self.has_times else {}), **p["page"]}
            files.append({k: v for k, v in entry.items() if v is not None})
        return json.dumps({"meta": {"api-version": "1.1"}, "name": name, "versions": sorted({p["version"] for p in hits}), "files": files}) if hits else None

    def npm_page(self, path, base):
        name = path.strip("/")
        hits = [p for p in self.packages if p["name"] == name]
        if not hits:
            return None
        doc = {"name": name, "dist-tags": {"latest": hits[-1]["version"]}, "versions": {}, "time": {"created": "2020-01-01T00:00:00.000Z", "modified": "2020-01-01T00:00:00.000Z"}}
        for p in hits:
            scripts = {"install", "preinstall", "postinstall"} & set(p["manifest"].get("scripts", {}))
            doc["versions"][p["version"]] = {"name": name, "version": p["version"], **p["manifest"], **({"hasInstallScript": True} if scripts else {}), **p["page"],
                                             "dist": {"tarball": f"{base}/{name}/-/{p['file']}", "shasum": hashlib.sha1(p["hashed"]).hexdigest(),
                                                      "integrity": "sha512-" + base64.b64encode(hashlib.sha512(p["hashed"]).digest()).decode(), **p["dist"]}}
            if self.has_times:
                doc["time"][p["version"]] = p["time"]
        return json.dumps(doc)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


# ---- Runs ----

class Outcome:
    """What `reeve run --json` printed."""

    def __init__(self, data, status, took_ms, errors, folder):
        self.all, self.exit, self.took_ms, self.errors, self.folder = data, status, took_ms, errors, folder
        self.reason = data.get("reason", {})
        self.code, self.cause = self.reason.get("code"), self.reason.get("detail", {}).get("cause")
        self.lock = {p["name"]: p for p in data["packages"]["lock"]}
        self.lines = data["stdout"]["text"].splitlines()

    def ended(self, *lines):
        assert (self.exit, self.all["status"], self.code) == (0, "completed", "ok"), f"{self.reason} {self.all['stdout']['text']} {self.all['stderr']['text']} {self.errors}"
        assert not lines or self.lines == [str(x) for x in lines], f"{self.lines} {self.all['stderr']['text']}"
        return self

    def versions(self):
        return {name: p["version"] for name, p in self.lock.items()}

    def failed(self, code, cause, is_retryable, package=None, *words):
        r = self.reason
        assert (self.exit, self.all["status"], self.code, self.cause, r["retryable"], self.all["started"]) == (125, "failed", code, cause, is_retryable, "no"), f"{r} {self.errors}"
        assert package is None or r["detail"].get("package", "") == package, r
        for word in words:
            assert word in r["message"], (word, r["message"])
        assert self.all["packages"]["lock"] == [] and self.all["packages"]["layer"] is None, self.all["packages"]
        return self

    def denied(self, item, rule, path=None, *words):
        r = self.reason
        assert (self.exit, self.all["status"], self.code, self.all["started"]) == (126, "blocked", "package_denied", "no"), f"{r} {self.errors}"
        assert (r["detail"]["item"], r["detail"]["rule"]) == (item, rule), r
        assert path is None or r["detail"]["path"] == path, r
        for word in words:
            assert word in r["message"], (word, r["message"])
        return self


def joined(one, other):
    if not isinstance(one, dict) or not isinstance(other, dict):
        return other
    return {**one, **{key: joined(one.get(key), value) for key, value in other.items()}}


class Place:
    """A folder with a configuration and a state directory, used by reeve as root or as another user."""
    n = 0
    lock = threading.Lock()

    def __init__(self, *registries, tool=None, policy=None, user=None, credentials="", **config):
        with Place.lock:
            Place.n += 1
            self.folder = os.path.join(FOLDER, str(Place.n))
        self.user = user
        os.mkdir(self.folder, 0o755)
        self.state = os.path.join(self.folder, "state")
        self.packages = os.path.join(self.state, "packages")
        self.config = {"state_dir": self.state, "registries": {r.language: r.config(credentials) for r in registries}, "egress": {"resolve": {PY: "127.0.0.1", JS: "127.0.0.1"}}}
        self.config["packages"] = {"uv": UV} if tool == "uv" else {"resolver": "pip"}
        if policy:
            os.mkdir(os.path.join(self.folder, "bundle"))
            with open(os.path.join(self.folder, "bundle", "policy.lua"), "w", encoding="utf-8") as f:
                f.write(policy)
            self.config["tenants"] = {"local": {"policy": "bundle"}}
        for key, value in config.items():
            self.config[key] = joined(self.config.get(key), value)
        self.write()
        if user:
            uid = pwd.getpwnam(user)
            os.chown(self.folder, uid.pw_uid, uid.pw_gid)

    def write(self):
        with open(os.path.join(self.folder, "reeve.yaml"), "w", encoding="utf-8") as f:
            json.dump(self.config, f)

    def command(self, *words):
        as_user = ["setpriv", "--reuid", self.user, "--regid", str(pwd.getpwnam(self.user).pw_gid), "--clear-groups"] if self.user else []
        return [*as_user, REEVE, *words, "--config", os.path.join(self.folder, "reeve.yaml")]

    def reeve(self, *words, json_too=True, data=b"", **environment):
        p = subprocess.run(self.command(*words), input=data, capture_output=True, timeout=120, check=False, env={**os.environ, **environment})
        return p.returncode, json.loads(p.stdout) if json_too and p.stdout else p.stdout.decode(), p.stderr.decode()

    def begin(self, language, packages, code="", mode="none", args=(), env=None, stdout=subprocess.PIPE, **members):
        """The process, which has got its request."""
        request = {"language": language, "source": code or ("pass" if language == "python" else "0"), "packages": list(packages), "network": {"mode": mode}, "timeout_s": 60, **members}
        p = subprocess.Popen(self.command("run", "--json", "--request", "-", *args), stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE, env={**os.environ, **(env or {})})
        p.stdin.write(json.dumps(request).encode())
        p.stdin.close()
        p.stdin = None
        return p

    def run(self, language, packages, code="", **options):
        began = time.monotonic()
        p = self.begin(language, packages, code, **options)
        out, err = p.communicate(timeout=150)
        return self.outcome_of(p.returncode, out, err.decode(), (time.monotonic() - began) * 1000)

    def outcome_of(self, status, out, err, took_ms=0):
        try:
            data = json.loads(out)
            return Outcome(data, status, took_ms, err, self.folder)
        except (ValueError, KeyError) as e:
            raise AssertionError(f"no outcome: exit status {status}: {out[:1000]} {err[-500:]}") from e

    def kept(self):
        """What is in the store beside what registries said: {folder: names}."""
        found = {}
        for folder in ("locks", "layers", "staging", "artifacts", "claims", "used"):
            with contextlib.suppress(FileNotFoundError):
                found[folder] = sorted(os.listdir(os.path.join(self.packages, folder)))
        return {k: v for k, v in found.items() if v}

    def kept_nothing(self):
        assert self.kept() == {}, self.kept()

    def has_no(self, *secrets):
        """None of these is anywhere below the state directory."""
        for secret in secrets:
            p = subprocess.run(["grep", "-rlF", "-e", secret, self.state], capture_output=True, text=True, check=False)
            assert p.returncode == 1, f"{secret} is in {p.stdout}"

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)


# ---- Tests ----

def delegate(user):
    """A cgroup for runs of that user until the end of this program; false where it cannot be."""
    script = os.path.join(HERE, "../../tools/dev/delegate")
    if subprocess.run([script, user], capture_output=True, check=False).returncode != 0:
        return False
    atexit.register(lambda: subprocess.run([script, "--remove", user], capture_output=True, check=False))
    return True


def skip(what, why):
    skipped.append(f"{what}: {why}")
    print(f"# SKIP {what}: {why}", flush=True)


def tools(*wanted):
    """(language, tool) that there is."""
    found = []
    for language, tool in TOOLS:
        if wanted and tool not in wanted:
            continue
        if tool == "uv" and not (UV and os.access(UV, os.X_OK)):
            skip("uv", "REEVE_UV names none")
        else:
            found.append((language, tool))
    return found


def each(cases, do, n=3):
    """do(*case) for each, some at once; all that fail are told."""
    failed = []

    def one(case):
        try:
            do(*case)
        except Exception as e:  # pylint: disable=broad-except
            failed.append(f"{[c for c in case if isinstance(c, str)]}: {type(e).__name__}: {e}")
    with concurrent.futures.ThreadPoolExecutor(n) as pool:
        list(pool.map(one, cases))
    assert not failed, f"{len(failed)} of {len(cases)}\n" + "\n".join(failed)


def main(names, before=None):
    """Runs the tests of a program's globals(), in the world; before() outside of it, in the process that enters it."""
    global REEVE, FOLDER
    REEVE = os.path.abspath(sys.argv[1])
    if "EGRESS_WORLD" not in os.environ and os.geteuid() == 0 and before:
        before()
    world.enter()
    FOLDER = tempfile.mkdtemp(prefix="reeve-runs-")
    os.chmod(FOLDER, 0o755)
    atexit.register(lambda: shutil.rmtree(FOLDER, ignore_errors=True))
    if "setup" in names:
        names["setup"]()
    status = world.run_tests(names, sys.argv[3:])
    if skipped:
        print(f"# {len(skipped)} skipped: " + "; ".join(sorted(set(skipped))), flush=True)
    atexit._run_exitfuncs()                          # threads that wait for clients do not end
    sys.stdout.flush()
    os._exit(status)
