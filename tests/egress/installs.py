#!/usr/bin/python3
"""pip and npm inside runs in network mode registries, through `reeve run`. Needs root.

    tests/egress/installs.py REEVE [--real]

Against registries made here, with TLS by an authority of their own; with --real against the ones that this machine's
package managers use (exit status 77 where those cannot be reached from outside a run either).
"""
import base64
import hashlib
import http.server
import json
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import traceback

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../conformance"))
import registry  # noqa: E402

PYTHON = "/usr/bin/python3"
PY, JS = ("py.registry.test", "127.0.0.8", 8443), ("js.registry.test", "127.0.0.9", 8444)
REEVE = D = None


# ---- Registries ----

class Index(http.server.BaseHTTPRequestHandler):
    """One wheel and one tarball, each in the manner of its registry."""
    protocol_version = "HTTP/1.1"
    name, wheel = registry.wheel({"name": "tiny-thing", "version": "1.2", "files": {"tiny.py": "x = 5\n"}})
    tar_name, tar = registry.tarball({"name": "npad", "version": "1.0.0", "files": {"index.js": "module.exports = 7"}})
    seen = []

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.seen.append((self.path, self.headers.get("Authorization")))
        pages = {"/simple/tiny-thing/": (f'<a href="/files/{self.name}#sha256={hashlib.sha256(self.wheel).hexdigest()}">{self.name}</a>'.encode(), "text/html"),
                 f"/files/{self.name}": (self.wheel, "application/octet-stream"),
                 "/npad": (json.dumps({"name": "npad", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": {"name": "npad", "version": "1.0.0", "dist": {
                     "tarball": f"https://{self.headers['Host']}/npad/-/{self.tar_name}", "integrity": "sha512-" + base64.b64encode(hashlib.sha512(self.tar).digest()).decode()}}}}).encode(), "application/json"),
                 f"/npad/-/{self.tar_name}": (self.tar, "application/octet-stream")}
        body, kind = pages.get(self.path, (b"{}", "application/json"))
        self.send_response(200 if self.path in pages else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def make_authority():
    def openssl(*args):
        subprocess.run(["openssl", *args], cwd=D, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "ca.key", "-out", "ca.pem", "-days", "2", "-subj", "/CN=a test's authority")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key.pem", "-out", "csr.pem", "-subj", "/CN=registry.test")
    with open(os.path.join(D, "names"), "w", encoding="ascii") as f:
        f.write(f"subjectAltName=DNS:{PY[0]},DNS:{JS[0]}\n")
    openssl("x509", "-req", "-in", "csr.pem", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names", "-out", "cert.pem")
    os.chmod(os.path.join(D, "ca.pem"), 0o644)


def serve(address, port):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(D, "cert.pem"), os.path.join(D, "key.pem"))
    server = http.server.ThreadingHTTPServer((address, port), Index)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()


# ---- Runs ----

def reeve(*args, text=None):
    r = subprocess.run([REEVE, *args], input=text, capture_output=True, text=True, timeout=280)
    return r.returncode, r.stdout, r.stderr


def run(language, source, mode="registries", config=None, **request):
    """The outcome of a program. Its last line of output is in ["last"]."""
    path = os.path.join(D, "reeve.yaml")
    made = {"registries": {"python": {"index": f"https://user:secret@{PY[0]}:{PY[2]}/simple/", "ca": os.path.join(D, "ca.pem")},
                           "javascript": {"index": f"https://user:secret@{JS[0]}:{JS[2]}/", "ca": os.path.join(D, "ca.pem")}},
            "egress": {"resolve": {PY[0]: PY[1], JS[0]: JS[1]}}}
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"state_dir": os.path.join(D, "state"), **(made if config is None else config)}, f)
    network = {"mode": mode, **({"domains": ["example.com"]} if mode == "domains" else {})}
    status, out, err = reeve("run", "--config", path, "--json", "--request", "-",
                             text=json.dumps({"language": language, "source": source, "network": network, "timeout_s": 120, **request}))
    assert out, (status, err)
    outcome = json.loads(out)
    outcome["lines"] = (outcome.get("stdout") or {"text": ""})["text"].splitlines()
    return outcome


def ended(outcome, *lines):
    assert outcome["status"] == "completed" and outcome["lines"] == [str(x) for x in lines], json.dumps(outcome, indent=1)
    return outcome


def contacts(outcome):
    return sorted({(c["name"], c["port"]) for c in outcome["network"]["contacts"]})


PIP = """import os, subprocess, sys
def pip(*a):
    r = subprocess.run([sys.executable, '-m', 'pip', *a], capture_output=True, text=True)
    if r.returncode: print(r.stdout, r.stderr)
    return r
"""
NPM = """const { spawnSync } = require('child_process');
function npm(...a) {
    const r = spawnSync('npm', a, { encoding: 'utf8' });
    if (r.status) console.log(r.status, r.error, r.stdout, r.stderr);
    return r;
}
"""


# ---- What is made here ----

def test_pip():
    Index.seen.clear()
    r = ended(run("python", PIP + "print(pip('install', 'tiny-thing').returncode)\nimport tiny\nprint(tiny.x, tiny.__file__)"),
              0, "5 /box/.local/lib/python3." + os.path.realpath(PYTHON).rpartition("python3.")[2] + "/site-packages/tiny.py")
    assert contacts(r) == [(PY[0], PY[2])] and r["network"]["denials"] == [], r["network"]
    # Credentials are the resolver's; what a run is given has none.
    assert Index.seen and all(a is None for _, a in Index.seen), Index.seen


def test_pip_as_a_command():
    ended(run("python", "import os\nprint(os.system('pip install -q tiny-thing && python3 -c \"import tiny; print(tiny.x)\" && pip uninstall -qy tiny-thing'))\n"
                        "print(os.path.exists('/box/.local/bin'), os.path.exists('/box/.cache'))"), 5, 0, "False False")


def test_pip_into_a_directory():
    ended(run("python", PIP + "print(pip('install', '-q', '--target', 'vendor', 'tiny-thing').returncode)\nsys.path.insert(0, 'vendor')\nimport tiny\nprint(tiny.__file__)"),
          0, "/box/vendor/tiny.py")


def test_pip_what_is_not_there():
    r = run("python", PIP + "import time\nt = time.monotonic()\nr = subprocess.run([sys.executable, '-m', 'pip', 'install', 'absent'], capture_output=True, text=True)\n"
                            "print(r.returncode, 'No matching distribution' in r.stderr, time.monotonic() - t < 10)")
    ended(r, "1 True True")


def test_pip_from_elsewhere_is_refused_soon():
    r = run("python", PIP + "import time\nt = time.monotonic()\nr = subprocess.run([sys.executable, '-m', 'pip', 'install', '-i', 'https://elsewhere.example/simple', 'tiny-thing'], capture_output=True)\n"
                            "print(r.returncode, time.monotonic() - t < 10)")
    ended(r, "1 True")
    assert contacts(r) == [] and {(d["name"], d["rule"]) for d in r["network"]["denials"]} == {("elsewhere.example", "name")}, r["network"]


def test_what_python_sees():
    r = run("python", "import os, sys, json\nimport pip\n"
                      "print(sorted(os.listdir(os.path.dirname(os.path.dirname(pip.__file__)))))\n"
                      "print([p for p in sys.path if p.startswith('/box/')], os.stat('/box/.local').st_uid == os.getuid())\n"
                      "print(json.dumps({k: v for k, v in os.environ.items() if k.startswith(('PIP_', 'npm_'))}))\n"
                      "print(open(os.environ['PIP_CERT']).read() == open('/box/own.pem', 'w').write('') or 'BEGIN CERTIFICATE' in open(os.environ['PIP_CERT']).read())\n"
                      "for m in ('apt', 'yaml', 'setuptools', 'wheel', 'six'):\n"
                      "    try: __import__(m); print(m)\n"
                      "    except ImportError: pass\n"
                      "try: open(os.environ['PIP_CERT'], 'a')\n"
                      "except OSError as e: print(e.strerror)", env={"PIP_NO_INPUT": "0"})
    assert r["status"] == "completed", r
    shown, path, environment, ca, *rest = r["lines"]
    assert all(x.startswith("pip") for x in json.loads(shown.replace("'", '"'))), shown
    assert path.endswith("/site-packages'] True"), path
    environment = json.loads(environment)
    assert environment["PIP_INDEX_URL"] == f"https://{PY[0]}:{PY[2]}/simple/" and environment["PIP_CERT"] == "/.reeve/ca.pem", environment
    assert environment["PIP_NO_INPUT"] == "0" and "npm_config_registry" not in environment, environment
    assert ca == "True" and rest in (["Read-only file system"], ["Permission denied"]), r["lines"]


def test_npm():
    Index.seen.clear()
    r = ended(run("javascript", NPM + "console.log(npm('install', 'npad').status, require('npad'));\nimport('npad').then(m => console.log(m.default));"), "0 7", 7)
    assert contacts(r) == [(JS[0], JS[2])] and r["network"]["denials"] == [], r["network"]
    assert Index.seen and all(a is None for _, a in Index.seen), Index.seen


def test_npm_what_is_not_there():
    r = run("javascript", "const { spawnSync } = require('child_process');\nconst t = Date.now(), r = spawnSync('npm', ['install', 'absent'], { encoding: 'utf8' });\n"
                          "console.log(r.status, r.stderr.includes('E404'), Date.now() - t < 10000);")
    ended(r, "1 true true")


def test_npm_from_elsewhere_is_refused_soon():
    r = run("javascript", "const { spawnSync } = require('child_process');\nconst t = Date.now(), r = spawnSync('npm', ['install', '--registry', 'https://elsewhere.example/', 'npad'], { encoding: 'utf8' });\n"
                          "console.log(r.status !== 0, Date.now() - t < 15000);")
    ended(r, "true true")
    assert contacts(r) == [] and {(d["name"], d["rule"]) for d in r["network"]["denials"]} == {("elsewhere.example", "name")}, r["network"]


def test_what_node_sees():
    r = run("javascript", "const fs = require('fs'), path = require('path');\nconst cli = fs.realpathSync('/usr/bin/npm');\n"
                          "for (const m of ['npm', 'npmlog', 'semver', 'corepack', 'lodash']) try { require(m); console.log(m); } catch (e) { }\n"
                          "console.log(process.env.npm_config_registry, process.env.npm_config_cafile, process.env.PIP_INDEX_URL, fs.existsSync(cli), fs.existsSync('/box/.local'));")
    assert r["status"] == "completed" and r["lines"][-1] == f"https://{JS[0]}:{JS[2]}/ /.reeve/ca.pem undefined true false", r
    # Debian's npm lies where every program of its node can name it; nothing else does.
    assert r["lines"][:-1] in ([], ["npm"]), r["lines"]


def test_other_modes_have_neither():
    for mode in ("none", "domains", "any"):
        ended(run("python", "import os, importlib.util as u\nprint(u.find_spec('pip'), os.path.exists('/.reeve/ca.pem'), os.path.exists('/box/.local'), [k for k in os.environ if k.startswith('PIP_')])", mode),
              "None False False []")
        ended(run("javascript", "console.log(require('fs').existsSync(require('path').resolve('/usr/bin', require('fs').readlinkSync('/usr/bin/npm'))), Object.keys(process.env).filter(k => k.startsWith('npm_')))", mode),
              "false []")


def test_the_other_languages_registry_is_not_reached():
    r = run("python", f"import socket\ntry: socket.getaddrinfo('{JS[0]}', 443)\nexcept OSError as e: print(e.errno == socket.EAI_NONAME)")
    ended(r, True)


def test_certificates_that_cannot_be_read():
    path = os.path.join(D, "closed.pem")
    with open(path, "w", encoding="ascii") as f:
        f.write("x")
    os.chmod(path, 0o600)
    for ca, word in ((path, "Permission denied"), (path + ".absent", "No such file")):
        r = run("python", "print(1)", config={"registries": {"python": {"index": "https://registry.example/", "files": ["registry.example"], "ca": ca}}})
        assert (r["status"], r["reason"]["code"], r["reason"]["detail"]["missing"]) == ("blocked", "backend_denied", ["network_registries"]), r
        assert ca in r["reason"]["message"] and word in r["reason"]["message"] and "registries.python.ca" in r["reason"]["message"], r["reason"]
        assert run("python", "print(1)", "none", config={"registries": {"python": {"ca": ca}}})["status"] == "completed"


# ---- What this machine has ----

def doctor_hosts(language):
    status, out, err = reeve("doctor", "--json", "--config", os.path.join(D, "real.yaml"))
    for row in json.loads(out):
        if row["probe"] == f"registry ({language})":
            words = row["text"].partition("; hosts ")[2].partition(";")[0].split()
            return {(h.rpartition(":")[0], int(h.rpartition(":")[2])) for h in words}
    raise AssertionError((status, out, err))


def real_pip():
    r = run("python", PIP + "print(pip('install', '-q', 'six==1.16.0', 'requests==2.31.0', 'numpy>=1.26,<3').returncode)\n"
                            "import six, requests, numpy as n\nprint(six.__version__, requests.__version__, n.arange(5).sum())", config={}, memory_mib=1024)
    ended(r, 0, "1.16.0 2.31.0 10")
    assert set(contacts(r)) <= doctor_hosts("python") and len(contacts(r)) > 0 and r["network"]["denials"] == [], "contacts or denials are not as they should be"


def real_npm():
    r = run("javascript", NPM + "console.log(npm('install', 'express@4', 'is-number@7.0.0').status, require('is-number')(5), typeof require('express')());", config={}, memory_mib=1024)
    ended(r, "0 true function")
    assert set(contacts(r)) <= doctor_hosts("javascript") and len(contacts(r)) == 1 and r["network"]["denials"] == [], "contacts or denials are not as they should be"


def is_reached_from_outside():
    command = [PYTHON, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "-d", os.path.join(D, "download"), "six==1.16.0"]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def main():
    global REEVE, D
    REEVE, is_real = os.path.abspath(sys.argv[1]), "--real" in sys.argv
    if os.geteuid() != 0:
        print("installs: needs root")
        sys.exit(77)
    with tempfile.TemporaryDirectory(prefix="installs-") as D:
        os.chmod(D, 0o755)
        if is_real:
            with open(os.path.join(D, "real.yaml"), "w", encoding="utf-8") as f:
                json.dump({"state_dir": os.path.join(D, "state")}, f)
            if not is_reached_from_outside():
                print("installs: this machine's registries cannot be reached")
                sys.exit(77)
        else:
            make_authority()
            serve(*PY[1:])
            serve(*JS[1:])
        chosen = [f for n, f in globals().items() if n.startswith("real_" if is_real else "test_")]
        failed = 0
        for f in chosen:
            try:
                f()
                print(f"ok   {f.__name__}", flush=True)
            except Exception:
                failed += 1
                print(f"FAIL {f.__name__}\n{traceback.format_exc()}", flush=True)
    print(f"{len(chosen) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
