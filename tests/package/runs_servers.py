#!/usr/bin/python3
"""Runs with packages from real registry servers, which this test installs by pip and npm: simple-repository-server,
pypiserver, verdaccio.

    runs_servers.py REEVE DRIVE [WORD…]

They are kept in $REEVE_REGISTRIES, or in build-check/registries. One that cannot be installed is left out, with the reason.
"""
import atexit
import base64
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

import runs
from runs import Place, tarball, tools, wheel

CACHE = os.environ.get("REEVE_REGISTRIES") or os.path.join(runs.HERE, "../../build-check/registries")
PIP = ["simple-repository-server==0.10.*", "pypiserver==2.4.*", "passlib==1.7.*"]
# One of verdaccio's packages asks for a tag that not every mirror has.
NPM = {"private": True, "dependencies": {"verdaccio": "6.8.0"}, "overrides": {"node-fetch": "2.7.0"}}
SECRET, TOKEN_USER = "pypi-s3cr3t", "writer"
COOLDOWN = 'return policy { packages = { rule { id = "cooldown", when = function(p) return p.age_days < 7 end, deny = "younger than 7 days" }, default = "allow" },' \
           ' network = { default = "allow" }, idempotency = { default = "none" }, backend = { default = "tenant" } }'
NEWEST = COOLDOWN.replace('when = function(p) return p.age_days < 7 end, deny = "younger than 7 days"', 'match = { name = "*" }, allow = true, newest_published = "P7D"')
LICENSE = COOLDOWN.replace('when = function(p) return p.age_days < 7 end, deny = "younger than 7 days"', 'match = { license = "AGPL*" }, deny = "license"')


# ---- Installed before the world is entered ----

def install(name, wanted, command):
    """Into CACHE/name, once: what is half done has another name."""
    place = os.path.join(CACHE, name)
    mark = os.path.join(place, "installed")
    with contextlib.suppress(OSError), open(mark, encoding="utf-8") as f:
        if f.read() == wanted:
            return ""
    os.makedirs(CACHE, exist_ok=True)
    new = tempfile.mkdtemp(dir=CACHE, prefix="." + name)
    try:
        p = subprocess.run(command(new), cwd=new, capture_output=True, text=True, timeout=200, check=False)
    except (OSError, subprocess.TimeoutExpired) as e:
        return str(type(e).__name__)
    if p.returncode:
        subprocess.run(["rm", "-rf", new], check=False)
        return (p.stderr.strip().splitlines() or ["no message"])[-1][:200]
    with open(os.path.join(new, "installed"), "w", encoding="utf-8") as f:
        f.write(wanted)
    os.chmod(new, 0o755)
    subprocess.run(["rm", "-rf", place], check=False)
    os.rename(new, place)
    return ""


def npm_command(place):
    with open(os.path.join(place, "package.json"), "w", encoding="utf-8") as f:
        json.dump(NPM, f)
    return ["/usr/bin/npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]


def before():
    why = {"python": install("python", " ".join(PIP), lambda place: [runs.world.PYTHON, "-m", "pip", "install", "-q", "--retries", "1", "--target", place, *PIP]),
           "javascript": install("javascript", json.dumps(NPM), npm_command)}
    os.environ["RUNS_SERVERS"] = json.dumps(why)


def has(language, what):
    why = json.loads(os.environ["RUNS_SERVERS"])[language]
    if why:
        runs.skip(what, f"cannot be installed: {why}")
    return not why


# ---- Servers ----

def start(command, port, **environment):
    """A server that answers at the port, until the end of this program."""
    log = open(os.path.join(runs.FOLDER, f"server-{port}"), "wb")
    p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **environment})
    atexit.register(p.kill)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
                return p
            except urllib.error.HTTPError:
                return p
        time.sleep(0.05)
    with open(log.name, encoding="utf-8", errors="replace") as f:
        raise AssertionError(f"{command} does not answer: {f.read()[-1000:]}")


def python_server(module, *words, port):
    return start([runs.world.PYTHON, "-m", module, *words], port, PYTHONPATH=os.path.join(CACHE, "python"))


def put(folder, package, days=0):
    path = os.path.join(folder, package["file"])
    with open(path, "wb") as f:
        f.write(package["data"])
    os.utime(path, (time.time() - days * 86400,) * 2)


def python_packages():
    return [(wheel("top", "1.0", requires=["leaf>=1"], license="MIT"), 900), (wheel("leaf", "1.0", license="MIT"), 500), (wheel("leaf", "1.5"), 30), (wheel("leaf", "2.0", license="AGPL-3.0"), 1)]


def index_of(port, credentials=""):
    return {"python": {"index": f"http://{credentials}{runs.PY}:{port}/simple/"}}


def pythons():
    return [tool for _, tool in tools("uv", "pip")]


# ---- simple-repository-server ----

def test_simple_repository_server():
    if not has("python", "simple-repository-server"):
        return
    folder, port = os.path.join(runs.FOLDER, "simple"), runs.free_port()
    for package, days in python_packages():
        os.makedirs(os.path.join(folder, package["name"]), exist_ok=True)
        put(os.path.join(folder, package["name"]), package, days)
    python_server("simple_repository_server", "--port", str(port), "--host", "127.0.0.1", folder, port=port)

    def do(tool):
        def place(policy=None):
            return Place(tool=tool, registries=index_of(port), policy=policy)
        outcome = place().run("python", ["top==1.0"], "import top, leaf; print(leaf.version)").ended("2.0")
        leaf, top = outcome.lock["leaf"], outcome.lock["top"]
        assert (leaf["version"], leaf["direct"], leaf["path"], leaf["license"], leaf["kind"]) == ("2.0", False, ["top", "leaf"], "AGPL-3.0", "wheel"), leaf
        assert abs(top["published_at"] - time.time() + 900 * 86400) < 3600 and top["size_bytes"] > 0 and top["license"] == "MIT", top
        place(COOLDOWN).run("python", ["top==1.0"]).denied("leaf", "cooldown", ["top", "leaf"])
        assert place(NEWEST).run("python", ["top==1.0"]).ended().versions() == {"top": "1.0", "leaf": "1.5"}
        place(LICENSE).run("python", ["top==1.0"]).denied("leaf", "cooldown", ["top", "leaf"])
        place().run("python", ["leaf==1.4"]).failed("package_unavailable", "missing_version", False, "leaf", "1.5")
        place().run("python", ["absent==1.4"]).failed("package_unavailable", "missing_package", False, "absent")
    runs.each([(tool,) for tool in pythons()], do)


# ---- pypiserver ----

def test_pypiserver():
    """It knows no time of publication: what reads it is never allowed."""
    if not has("python", "pypiserver"):
        return
    folder, port = os.path.join(runs.FOLDER, "flat"), runs.free_port()
    os.mkdir(folder)
    for package, days in python_packages():
        put(folder, package, days)
    with open(os.path.join(runs.FOLDER, "passwords"), "w", encoding="ascii") as f:
        f.write("reader:{SHA}" + base64.b64encode(hashlib.sha1(SECRET.encode()).digest()).decode() + "\n")
    python_server("pypiserver", "run", "-i", "127.0.0.1", "-p", str(port), "-a", ".", "-P", ".", "--disable-fallback", folder, port=port)
    closed = runs.free_port()
    python_server("pypiserver", "run", "-i", "127.0.0.1", "-p", str(closed), "-a", "list,download,update", "-P", os.path.join(runs.FOLDER, "passwords"), "--disable-fallback", folder, port=closed)

    def do(tool):
        def place(policy=None, at=port, credentials=""):
            return Place(tool=tool, registries=index_of(at, credentials), policy=policy)
        outcome = place().run("python", ["top==1.0"], "import leaf; print(leaf.version)").ended("2.0")
        assert "published_at" not in outcome.lock["leaf"], outcome.lock
        place(LICENSE).run("python", ["top==1.0"]).denied("leaf", "cooldown", ["top", "leaf"])
        reads_age = place(COOLDOWN).run("python", ["leaf==1.0"])
        assert (reads_age.code, reads_age.reason["retryable"], reads_age.all["started"]) == ("package_unavailable", True, "no") and "leaf" in reads_age.reason["message"], reads_age.reason
        # Credentials: without them nothing, with them all; and nobody else gets to see them.
        place(at=closed).run("python", ["top==1.0"]).failed("package_unavailable", "registry_refused", True)
        mine = place(at=closed, credentials=f"reader:{SECRET}@")
        code = "import leaf, os, subprocess, sys\nprint(leaf.version)\nprint(dict(os.environ))\n" \
               "print(subprocess.run([sys.executable, '-m', 'pip', 'config', 'list'], capture_output=True, text=True).stdout)\n" \
               "for d, _, files in os.walk('/'):\n    if d.startswith(('/proc', '/sys', '/usr', '/dev')): continue\n    for f in files:\n        try: text = open(os.path.join(d, f), 'rb').read(1 << 20)\n" \
               "        except OSError: continue\n        if b'SECRET'.replace(b'SEC', b'pypi-').replace(b'RET', b's3cr3t') in text and f != 'main.py': print('found in', d, f)\n"
        outcome = mine.run("python", ["top==1.0"], code, mode="registries").ended()
        assert outcome.lines[0] == "2.0" and SECRET not in str(outcome.all) + outcome.errors and "found in" not in outcome.all["stdout"]["text"], outcome.all["stdout"]["text"]
        mine.has_no(SECRET, base64.b64encode(f"reader:{SECRET}".encode()).decode())
    runs.each([(tool,) for tool in pythons()], do)


# ---- verdaccio ----

def verdaccio(folder, port):
    config = {"storage": os.path.join(folder, "storage"), "auth": {"htpasswd": {"file": os.path.join(folder, "htpasswd"), "max_users": 10}}, "uplinks": {},
              "packages": {"@private/*": {"access": "$authenticated", "publish": "$authenticated"}, "**": {"access": "$all", "publish": "$authenticated"}},
              "log": {"type": "stdout", "format": "json", "level": "warn"}, "max_body_size": "10mb"}
    path = os.path.join(folder, "config.yaml")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config, f)
    return start(["/usr/bin/node", os.path.join(CACHE, "javascript/node_modules/verdaccio/bin/verdaccio"), "--config", path, "--listen", f"127.0.0.1:{port}"], port, HOME=folder)


def token_of(port):
    data = json.dumps({"name": TOKEN_USER, "password": "password-of-writer"}).encode()
    q = urllib.request.Request(f"http://127.0.0.1:{port}/-/user/org.couchdb.user:{TOKEN_USER}", data, {"Content-Type": "application/json"}, method="PUT")
    with urllib.request.urlopen(q, timeout=10) as answer:
        return json.load(answer)["token"]


def publish(port, token, package):
    """As npm does."""
    sha512 = base64.b64encode(hashlib.sha512(package["data"]).digest()).decode()
    name, version = package["name"], package["version"]
    doc = {"_id": name, "name": name, "dist-tags": {"latest": version}, "versions": {version: {"name": name, "version": version, **package["manifest"], "dist": {
        "integrity": "sha512-" + sha512, "shasum": hashlib.sha1(package["data"]).hexdigest(), "tarball": f"http://127.0.0.1:{port}/{name}/-/{package['file']}"}}},
        "_attachments": {f"{name}-{version}.tgz": {"content_type": "application/octet-stream", "data": base64.b64encode(package["data"]).decode(), "length": len(package["data"])}}}
    q = urllib.request.Request(f"http://127.0.0.1:{port}/{name.replace('/', '%2f')}", json.dumps(doc).encode(), {"Content-Type": "application/json", "Authorization": "Bearer " + token}, method="PUT")
    urllib.request.urlopen(q, timeout=10).close()


def grow_older(folder, name, version, days):
    """As if it had been published so long ago."""
    path = os.path.join(folder, "storage", name, "package.json")
    with open(path, encoding="utf-8") as f:
        doc = json.load(f)
    doc["time"][version] = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(time.time() - days * 86400))
    with open(path, "w", encoding="utf-8") as f:
        json.dump(doc, f)


def test_verdaccio():
    if not has("javascript", "verdaccio"):
        return
    folder, port = os.path.join(runs.FOLDER, "verdaccio"), runs.free_port()
    os.mkdir(folder)
    server = verdaccio(folder, port)
    token = token_of(port)
    for package in (tarball("leaf", "1.0.0", manifest={"license": "MIT"}), tarball("leaf", "2.0.0", manifest={"license": "AGPL-3.0"}), tarball("@scope/top", "1.0.0", manifest={"license": "MIT", "dependencies": {"leaf": ">=1"}}),
                    tarball("@private/mine", "1.0.0", manifest={"dependencies": {"leaf": "^1"}}), tarball("loud", "1.0.0", manifest={"scripts": {"install": "touch /tmp/loud"}})):
        publish(port, token, package)
    server.kill()
    server.wait()
    for name in ("leaf", "@scope/top", "@private/mine"):
        grow_older(folder, name, "1.0.0", 400)
    verdaccio(folder, port)

    def place(policy=None, **config):
        return Place(policy=policy, **({"registries": {"javascript": {"index": f"http://{runs.JS}:{port}/"}}} if not config else config))
    code = "import leaf from 'leaf'; import top from '@scope/top'; console.log(leaf, top)"
    outcome = place().run("javascript", ["@scope/top@1.0.0"], code).ended("2.0.0 1.0.0")
    leaf = outcome.lock["leaf"]
    assert (leaf["version"], leaf["direct"], leaf["path"], leaf["license"], leaf["kind"]) == ("2.0.0", False, ["@scope/top", "leaf"], "AGPL-3.0", "npm"), leaf
    assert abs(leaf["published_at"] - time.time()) < 600 and abs(outcome.lock["@scope/top"]["published_at"] - time.time() + 400 * 86400) < 3600, outcome.lock
    place(COOLDOWN).run("javascript", ["@scope/top@1.0.0"]).denied("leaf", "cooldown", ["@scope/top", "leaf"])
    place(LICENSE).run("javascript", ["@scope/top@1.0.0"]).denied("leaf", "cooldown", ["@scope/top", "leaf"])
    assert place(NEWEST).run("javascript", ["@scope/top@1.0.0"]).ended().versions() == {"@scope/top": "1.0.0", "leaf": "1.0.0"}
    assert place().run("javascript", ["loud@1.0.0"]).ended().lock["loud"]["install_script"] is True
    place().run("javascript", ["leaf@1.5.0"]).failed("package_unavailable", "missing_version", False, "leaf", "2.0.0")
    place().run("javascript", ["absent@1.0.0"]).failed("package_unavailable", "missing_package", False, "absent")
    credentials(place, port, token)


def credentials(place, port, token):
    """In the npmrc of whoever calls reeve: for the resolver, and for nobody else."""
    without = place().run("javascript", ["@private/mine@1.0.0"])
    assert (without.code, without.all["started"]) == ("package_unavailable", "no") and without.cause in ("registry_refused", "missing_package"), without.reason
    mine = place(registries={})
    home = os.path.join(mine.folder, "home")
    os.mkdir(home)
    with open(os.path.join(home, ".npmrc"), "w", encoding="utf-8") as f:
        f.write(f"registry=http://{runs.JS}:{port}/\n//{runs.JS}:{port}/:_authToken={token}\n")
    code = "const fs = require('fs'); const { spawnSync } = require('child_process');\nconsole.log(require('@private/mine'), require('leaf'));\n" \
           "console.log(JSON.stringify(process.env), spawnSync('npm', ['config', 'list', '--json'], { encoding: 'utf8' }).stdout);\n" \
           "console.log('installs', spawnSync('npm', ['install', '@private/mine'], { encoding: 'utf8', cwd: '/tmp' }).status);"
    outcome = mine.run("javascript", ["@private/mine@1.0.0"], code, mode="registries", env={"HOME": home}).ended()
    assert outcome.lines[0] == "1.0.0 1.0.0" and outcome.lines[-1] == "installs 1", outcome.all["stdout"]["text"]
    assert token not in str(outcome.all) + outcome.errors
    mine.has_no(token)


if __name__ == "__main__":
    runs.main(globals(), before)
