#!/usr/bin/python3
"""pip and npm inside runs in network mode registries, with registries made here, behind TLS by an authority of their own.

    installs.py REEVE DRIVE [WORD…]
"""
import base64
import hashlib
import http.server
import json
import os
import ssl
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../conformance"))
import registry  # noqa: E402
import through  # noqa: E402
from world import PYTHON, Authority, main  # noqa: E402

PY, JS = ("py.example.test", "127.0.0.8", 8443), ("js.example.test", "127.0.0.9", 8444)


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


def serve(address, port):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca.path("cert.pem"), ca.path("key.pem"))
    server = http.server.ThreadingHTTPServer((address, port), Index)
    server.daemon_threads = True
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def setup():
    global ca
    ca = Authority()
    serve(*PY[1:])
    serve(*JS[1:])


def run(language, code, mode="registries", config=None, **options):
    made = {"registries": {"python": {"index": f"https://user:secret@{PY[0]}:{PY[2]}/simple/", "ca": ca.path("ca.pem")},
                           "javascript": {"index": f"https://user:secret@{JS[0]}:{JS[2]}/", "ca": ca.path("ca.pem")}},
            "egress": {"resolve": {PY[0]: PY[1], JS[0]: JS[1]}}}
    return through.reeve(code, language, mode, config=made if config is None else config, **options)


def ended(outcome, *lines):
    assert outcome.ended().lines == [str(x) for x in lines], outcome.all
    return outcome


def refused_elsewhere(outcome, *lines):
    """It asked for another registry, and got no further than its name."""
    ended(outcome, *lines)
    assert named(outcome) == [] and {d[0:5:4] for d in outcome.refused()} == {("elsewhere.example", "name")}, outcome.all["network"]


def named(outcome):
    return sorted({(c["name"], c["port"]) for c in outcome.contacts})


PIP = """def pip(*a):
    r = subprocess.run([sys.executable, '-m', 'pip', *a], capture_output=True, text=True)
    if r.returncode: print(r.stdout, r.stderr)
    return r
"""
NPM = """function npm(...a) {
    const r = child.spawnSync('npm', a, { encoding: 'utf8' });
    if (r.status) console.log(r.status, r.error, r.stdout, r.stderr);
    return r;
}
"""


def test_pip():
    Index.seen.clear()
    r = ended(run("python", PIP + "print(pip('install', 'tiny-thing').returncode)\nimport tiny\nprint(tiny.x, tiny.__file__)"),
              0, "5 /box/.local/lib/python3." + os.path.realpath(PYTHON).rpartition("python3.")[2] + "/site-packages/tiny.py")
    assert named(r) == [(PY[0], PY[2])] and r.denials == [], r.all["network"]
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
    refused_elsewhere(r, "1 True")


def test_what_python_sees():
    r = run("python", "import os, sys, json\nimport pip\n"
                      "print(sorted(os.listdir(os.path.dirname(os.path.dirname(pip.__file__)))))\n"
                      "print([p for p in sys.path if p.startswith('/box/')], os.stat('/box/.local').st_uid == os.getuid())\n"
                      "print(json.dumps({k: v for k, v in os.environ.items() if k.startswith(('PIP_', 'npm_'))}))\n"
                      "print(sha(open(os.environ['PIP_CERT'], 'rb').read()))\n"
                      "for m in ('apt', 'yaml', 'setuptools', 'wheel', 'six'):\n"
                      "    try: __import__(m); print(m)\n"
                      "    except ImportError: pass\n"
                      "try: open(os.environ['PIP_CERT'], 'a')\n"
                      "except OSError as e: print(e.strerror)", PIP_NO_INPUT="0")
    assert r.ended()
    shown, path, environment, trusted, *rest = r.lines
    assert all(x.startswith("pip") for x in json.loads(shown.replace("'", '"'))), shown
    assert path.endswith("/site-packages'] True"), path
    environment = json.loads(environment)
    assert environment["PIP_INDEX_URL"] == f"https://{PY[0]}:{PY[2]}/simple/" and environment["PIP_CERT"] == "/.reeve/ca.pem", environment
    assert environment["PIP_NO_INPUT"] == "0" and "npm_config_registry" not in environment, environment
    with open(ca.path("ca.pem"), "rb") as f:
        assert trusted == hashlib.sha256(f.read()).hexdigest(), trusted
    assert rest in (["Read-only file system"], ["Permission denied"]), r.lines


def test_npm():
    Index.seen.clear()
    r = ended(run("javascript", NPM + "console.log(npm('install', 'npad').status, require('npad'));\nimport('npad').then(m => console.log(m.default));"), "0 7", 7)
    assert named(r) == [(JS[0], JS[2])] and r.denials == [], r.all["network"]
    assert Index.seen and all(a is None for _, a in Index.seen), Index.seen


def test_npm_what_is_not_there():
    r = run("javascript", "const t = Date.now(), r = child.spawnSync('npm', ['install', 'absent'], { encoding: 'utf8' });\n"
                          "console.log(r.status, r.stderr.includes('E404'), Date.now() - t < 10000);")
    ended(r, "1 true true")


def test_npm_from_elsewhere_is_refused_soon():
    r = run("javascript", "const t = Date.now(), r = child.spawnSync('npm', ['install', '--registry', 'https://elsewhere.example/', 'npad'], { encoding: 'utf8' });\n"
                          "console.log(r.status !== 0, Date.now() - t < 15000);")
    refused_elsewhere(r, "true true")


def test_what_node_sees():
    r = run("javascript", "const cli = fs.realpathSync('/usr/bin/npm');\n"
                          "for (const m of ['npm', 'npmlog', 'semver', 'corepack', 'lodash']) try { require(m); console.log(m); } catch (e) { }\n"
                          "console.log(process.env.npm_config_registry, process.env.npm_config_cafile, process.env.PIP_INDEX_URL, fs.existsSync(cli), fs.existsSync('/box/.local'));")
    assert r.ended() and r.lines[-1] == f"https://{JS[0]}:{JS[2]}/ /.reeve/ca.pem undefined true false", r
    # Debian's npm lies where every program of its node can name it; nothing else does.
    assert r.lines[:-1] in ([], ["npm"]), r.lines


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
    path = ca.path("closed.pem")
    with open(path, "w", encoding="ascii") as f:
        f.write("x")
    os.chmod(path, 0o600)
    for file, word in ((path, "Permission denied"), (path + ".absent", "No such file")):
        r = run("python", "print(1)", config={"registries": {"python": {"index": "https://registry.example/", "files": ["registry.example"], "ca": file}}})
        assert (r.all["status"], r.all["reason"]["code"], r.all["reason"]["detail"]["missing"]) == ("blocked", "backend_denied", ["network_registries"]), r
        assert file in r.all["reason"]["message"] and word in r.all["reason"]["message"] and "registries.python.ca" in r.all["reason"]["message"], r.all["reason"]
        assert run("python", "print(1)", "none", config={"registries": {"python": {"ca": file}}}).ended()


if __name__ == "__main__":
    main(globals())
