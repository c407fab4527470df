#!/usr/bin/python3
"""Packages that the registry has as source alone, through whole runs: who builds them, when, and what comes of it.

    runs_source.py REEVE [WORD]

Everything is served on the spot: source archives, and a stand-in for setuptools. With uv too, where $REEVE_UV names it; the
real setuptools is built with where pip can fetch it. WORD: only cases whose name has it. Exit status 77 if this is not root.
"""
import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness
from harness import check

HOST, INDEX = "127.0.0.11", "py.source.test"
REEVE = os.path.abspath(sys.argv[1]) if len(sys.argv) > 1 else ""
ONLY = sys.argv[2] if len(sys.argv) > 2 else ""
ALLOW = """return policy {
  packages = { %s rule { id = "build", match = { name = { "src-*" } }, allow = true, allow_source_build = true }, default = "allow" },
  network = { default = "allow" }, idempotency = { default = "none" }, backend = { default = "tenant" } }"""
# A backend as flit's or hatchling's, in the tree of what it builds.
BACKEND = '''
import hashlib, base64, json, os, zipfile
def write(folder, name, version, files, requires=(), file=None):
    info, out = f"{name}-{version}.dist-info", file or f"{name}-{version}-py3-none-any.whl"
    files = dict(files)
    files[info + "/METADATA"] = f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\nLicense: MIT\\n" + "".join(f"Requires-Dist: {r}\\n" for r in requires)
    files[info + "/WHEEL"] = "Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
    with zipfile.ZipFile(os.path.join(folder, out), "w") as z:
        record = ""
        for path, text in files.items():
            z.writestr(path, text)
            record += f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b'=').decode()},{len(text.encode())}\\n"
        z.writestr(info + "/RECORD", record + info + "/RECORD,,\\n")
    return out
'''
LOOK = '''
import os, socket, sys
def reach(host, port):
    try:
        socket.create_connection((host, port), 2).close()
        return "reached"
    except OSError as e:
        return type(e).__name__
'''


def sdist(name, version, files, suffix=".tar.gz"):
    """A source archive as the registry serves it."""
    b, top = io.BytesIO(), f"{name.replace('-', '_')}-{version}"
    if suffix == ".zip":
        with zipfile.ZipFile(b, "w") as z:
            for path, text in files.items():
                z.writestr(f"{top}/{path}", text)
    else:
        with tarfile.open(fileobj=b, mode="w:gz") as t:
            for path, text in files.items():
                info = tarfile.TarInfo(f"{top}/{path}")
                info.size, info.mode = len(text.encode()), 0o644
                t.addfile(info, io.BytesIO(text.encode()))
    return {"name": name, "version": version, "file": top + suffix, "data": b.getvalue()}


def source(name, body, version="1.0", requires=(), pyproject=None, suffix=".tar.gz", **files):
    """One whose own backend says `body` in build_wheel(wheel_directory, …)."""
    project = pyproject if pyproject is not None else f'[build-system]\nrequires = {json.dumps(list(requires))}\nbuild-backend = "own"\nbackend-path = ["."]\n'
    code = BACKEND + "def build_wheel(folder, config_settings=None, metadata_directory=None):\n" + "".join(f"    {line}\n" for line in body.strip("\n").split("\n"))
    return sdist(name, version, {"own.py": code, "PKG-INFO": "Metadata-Version: 2.1\n", **({"pyproject.toml": project} if project else {}), **files}, suffix)


def plain(name, value="1", version="1.0", needs=(), **members):
    module = name.replace("-", "_")
    return source(name, f'return write(folder, "{module}", "{version}", {{"{module}.py": "V = {value}\\n"}}, {list(needs)!r})', version, **members)


def wheel(name, version, files, **members):
    return {"name": name, "version": version, "files": files, **members}


SETUPTOOLS = wheel("setuptools", "65.0", {"setuptools/__init__.py": "", "setuptools/build_meta.py": BACKEND + '''
class Legacy:
    @staticmethod
    def get_requires_for_build_wheel(config_settings=None):
        return ["wheel", "helper; python_version > '3'", "never; python_version < '3'"] if os.path.exists("setup.py") else []
    @staticmethod
    def build_wheel(folder, config_settings=None, metadata_directory=None):
        import helper, wheel
        return write(folder, "src_legacy", "1.0", {"src_legacy.py": f"V = {helper.V}\\n"})
__legacy__ = Legacy
'''})
TOOLS = [SETUPTOOLS, wheel("wheel", "0.40", {"wheel.py": ""}), wheel("helper", "2.0", {"helper.py": "V = 7\n"})]


@contextlib.contextmanager
def served(packages):
    made = harness.registry.wheel
    harness.registry.wheel = lambda p: (p["file"], p["data"]) if "data" in p else made(p)
    try:
        with harness.registry_socket() as port:
            pass
        server = harness.registry.serve({"kind": "pypi", "host": HOST, "port": port, "packages": packages})
        yield port
        server.shutdown(None)
        server.close()
    finally:
        harness.registry.wheel = made


class Case:
    """A registry, a state directory and a tool."""

    def __init__(self, tool, port, place, policy=None, phases=None):
        self.place, self.state = place, os.path.join(place, "state")
        os.makedirs(os.path.join(place, "policy"), exist_ok=True)
        with open(os.path.join(place, "policy", "policy.lua"), "w", encoding="ascii") as f:
            f.write(policy if policy is not None else ALLOW % "")
        self.config = {"state_dir": self.state, "tenants": {"local": {"policy": os.path.join(place, "policy")}}, "egress": {"resolve": {INDEX: HOST}},
                       "registries": {"python": {"index": f"http://{INDEX}:{port}/simple/"}},
                       "packages": {"uv": os.environ["REEVE_UV"]} if tool == "uv" else {"resolver": "pip"}, "phases": phases or {}}
        if not phases:
            del self.config["phases"]
        self.port = port

    def run(self, packages, program, stop_when=None, more=(), **members):
        path = os.path.join(self.place, "reeve.yaml")
        with open(path, "w", encoding="ascii") as f:
            json.dump(self.config, f)
        request = {"language": "python", "source": program, "packages": packages, "timeout_s": 60, **members}
        with subprocess.Popen([REEVE, "run", "--config", path, "--json", "--request", "-", *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={"PATH": "/usr/bin:/bin", "LEAKED": "secret-of-the-host"}) as p:
            p.stdin.write(json.dumps(request).encode())
            p.stdin.close()
            p.stdin = None
            while stop_when and p.poll() is None and not stop_when():
                time.sleep(0.1)
            if stop_when:
                time.sleep(0.5)
                p.send_signal(signal.SIGINT)
            out, err = p.communicate(timeout=300)
        check("sanitizers find nothing", b"Sanitizer" not in err, err.decode(errors="replace")[-3000:])
        try:
            return json.loads(out)
        except ValueError:
            return {"stdout": out.decode(errors="replace")[-500:], "stderr": err.decode(errors="replace")[-2000:], "exit": p.returncode}

    def records(self):
        out = []
        for folder, _, files in sorted(os.walk(os.path.join(self.state, "audit"))):
            for name in sorted(files):
                if name.endswith(".jsonl"):
                    with open(os.path.join(folder, name), encoding="utf-8") as f:
                        out += [json.loads(line) for line in f if line.endswith("\n")]
        return out

    def built(self):
        return sorted(n for n in os.listdir(os.path.join(self.state, "packages", "built")) if n.endswith(".whl"))


def ok(name, outcome, text):
    return check(name, outcome.get("reason", {}).get("code") == "ok" and outcome.get("stdout", {}).get("text") == text, outcome)


def failed(name, outcome, code, cause, words, package=None):
    reason = outcome.get("reason", {})
    return check(name, reason.get("code") == code and reason.get("detail", {}).get("cause") == cause and words in reason.get("message", "") and
                 outcome.get("started") == "no" and (package is None or reason["detail"].get("package") == package), outcome)


def case_own_backend(tool, place):
    with served([plain("src-a", "41")]) as port:
        c = Case(tool, port, place)
        outcome = c.run(["src-a==1.0"], "import src_a; print(src_a.V)")
        if not ok("built and used", outcome, "41\n"):
            return
        lock = outcome["packages"]["lock"]
        check("its entry", [(e["name"], e["kind"], e["install_script"], e["registry_hash"], e["license"]) for e in lock] == [("src-a", "built", True, False, "MIT")], lock)
        check("its facts", lock[0].get("published_at") == 1577836800 and lock[0]["yanked"] is False, lock)
        check("it is kept by its hash", c.built() == [lock[0]["hash"][7:] + ".whl"], (c.built(), lock))
        records = c.records()
        builds = [r for r in records if r.get("build_for")]
        check("the build is on record as a run of its own, for this one", [r["kind"] for r in builds] == ["decision", "outcome"] and
              {r["build_for"] for r in builds} == {outcome["run_id"]} and builds[1]["code"] == "ok", builds)
        check("its decision names its program, and nothing of the run's", builds[0]["facts"]["packages"] == [] and
              builds[0]["facts"]["request"]["source_sha256"] == builds[0]["source"]["sha256"], builds)
        verified = subprocess.run([REEVE, "audit", "verify", "--config", os.path.join(place, "reeve.yaml")], capture_output=True, check=False, timeout=60)
        check("the log is sound", verified.returncode == 0, verified)
        path = os.path.join(place, "given.json")
        made = subprocess.run([REEVE, "package", "lock", "--config", os.path.join(place, "reeve.yaml"), "--output", path, "src-a==1.0"], capture_output=True, check=False, timeout=60)
        check("a lock for later", made.returncode == 0 and os.path.exists(path), made)
    # The registry is gone: what was built is held.
    ok("again without a registry", c.run(["src-a==1.0"], "import src_a; print(src_a.V)"), "41\n")
    shutil.rmtree(os.path.join(c.state, "packages", "layers"))
    ok("a new layer of the wheel that is held", c.run(["src-a==1.0"], "import src_a; print(src_a.V)"), "41\n")
    # Neither the wheel nor the layer: it is looked for anew, which needs the registry.
    shutil.rmtree(os.path.join(c.state, "packages", "layers"))
    os.remove(os.path.join(c.state, "packages", "built", c.built()[0]))
    failed("the lock that was given names it", c.run(["src-a==1.0"], "0", more=["--lock", path]), "package_install_failed", "build_failed", "is not in the store any more", "src-a")
    failed("the wheel is gone, and so is the registry", c.run(["src-a==1.0"], "0"), "package_unavailable", "registry_unreachable", "")


def case_setuptools(tool, place):
    old = sdist("src-legacy", "1.0", {"setup.py": "", "PKG-INFO": ""})
    with served([old, *TOOLS]) as port:
        c = Case(tool, port, place)
        outcome = c.run(["src-legacy>=0"], "import src_legacy; print(src_legacy.V)\ntry:\n    import setuptools\nexcept ImportError:\n    print('alone')")
        if not ok("without pyproject.toml", outcome, "7\nalone\n"):
            return
        builds = [r for r in c.records() if r.get("build_for") and r["kind"] == "decision" and r["stage"] == "resolved"]
        judged = [[p["name"] for p in r["facts"]["packages"]] for r in builds]
        check("what it needs is judged, and more that its backend asks for", judged == [["setuptools", "wheel"], ["helper", "setuptools", "wheel"]], judged)


def case_transitive(tool, place):
    with served([wheel("top", "1.0", {"top.py": ""}, requires=["src-b>=1"]), plain("src-b", "2", needs=["src-c"]), plain("src-b", "0", "0.5"), plain("src-c", "3", suffix=".zip")]) as port:
        outcome = Case(tool, port, place).run(["top==1.0"], "import src_b, src_c; print(src_b.V, src_c.V)")
        if ok("two, one for the other, the second a zip", outcome, "2 3\n"):
            kinds = {e["name"]: (e["version"], e["kind"], e["path"]) for e in outcome["packages"]["lock"]}
            check("their paths", kinds == {"top": ("1.0", "wheel", ["top"]), "src-b": ("1.0", "built", ["top", "src-b"]), "src-c": ("1.0", "built", ["top", "src-b", "src-c"])}, kinds)


def case_alone(tool, place):
    body = '''
import urllib.request
exec(open("look.py").read(), globals())
found = {"env": dict(os.environ), "registry": reach("127.0.0.11", int(open("port").read())), "name": reach("py.source.test", 80), "out": reach("203.0.113.1", 80), "uid": os.getuid(),
         "files": [p for p in ("/etc/shadow", "/root", "/run/reeve") if os.access(p, os.R_OK) and os.path.isfile(p)]}
print("this goes nowhere")
return write(folder, "src_look", "1.0", {"src_look.py": "V = " + repr(found) + "\\n"})
'''
    with harness.registry_socket() as port:
        pass
    with served([]) as port:
        pass
    made = source("src-look", body, **{"look.py": LOOK, "port": str(port)})
    with served([made]) as port:
        c = Case(tool, port, place)
        c.config["registries"]["python"]["index"] = f"http://tester:hidden-password@{INDEX}:{port}/simple/"
        outcome = c.run(["src-look==1.0"], "import src_look, json; print(json.dumps(src_look.V))", env={"TOKEN": "of-the-caller"})
        if check("it builds", outcome.get("reason", {}).get("code") == "ok", outcome):
            seen = json.loads(outcome["stdout"]["text"])
            check("nothing is reached", "reached" not in (seen["registry"], seen["name"], seen["out"]), seen)
            text = json.dumps(seen)
            check("no credentials", not any(w in text for w in ("hidden-password", "secret-of-the-host", "of-the-caller", "PIP_", "UV_")), seen)
            check("no privilege", seen["files"] == [], seen)


def case_failures(tool, place):
    bad = {
        "src-raise": ("raise RuntimeError('no compiler\\x1b[31m here')", "build_failed", "RuntimeError: no compiler?[31m here"),
        "src-exit": ("raise SystemExit('error: gave up')", "build_failed", "error: gave up"),
        "src-name": ('return write(folder, "other", "1.0", {})', "name_mismatch", "no wheel of that package"),
        "src-inside": ('return write(folder, "other", "1.0", {}, file="src_inside-1.0-py3-none-any.whl")', "name_mismatch", "cannot be installed"),
        "src-version": ('return write(folder, "src_version", "2.0", {})', "name_mismatch", "another version"),
        "src-none": ('return "src_none-1.0-py3-none-any.whl"', "build_failed", "FileNotFoundError"),
        "src-link": ('return write(folder, "src_link", "1.0", {"../../escape.py": ""})', "unsafe_archive", "cannot be installed"),
        "src-memory": ('return "x" * (4 << 30)', "build_failed", ""),
    }
    packages = [source(name, body) for name, (body, _, _) in bad.items()]
    packages.append(sdist("src-out", "1.0", {"../../../escape": "", "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'}))
    packages.append(sdist("src-broken", "1.0", {"pyproject.toml": "[build-system\n"}))
    packages.append(source("src-direct", "0", requires=["x @ https://registry.example/x.whl"]))
    packages.append({**plain("src-hash"), "wrong_hash": True})
    bad.update({"src-out": (None, "build_failed", "leads out of it"), "src-broken": (None, "build_failed", "TOMLDecodeError"),
                "src-direct": (None, "build_failed", "is not taken"), "src-hash": (None, "hash_mismatch", "source archive that came")})
    with served(packages) as port:
        c = Case(tool, port, place)
        for name, (_, cause, words) in bad.items():
            failed(name, c.run([name + "==1.0"], "0"), "package_install_failed", cause, words, name)
        check("no lock is held", os.listdir(os.path.join(c.state, "packages", "locks")) == [], os.listdir(os.path.join(c.state, "packages", "locks")))


def case_hangs(tool, place):
    with served([source("src-hang", "import time\ntime.sleep(1000)")]) as port:
        c = Case(tool, port, place, phases={"resolve": "8s"})
        failed("it takes too long", c.run(["src-hang==1.0"], "0"), "package_install_failed", "build_failed", "src-hang 1.0 could not be built", "src-hang")
        c = Case(tool, port, os.path.join(place, "stopped"))
        begun = time.monotonic()
        outcome = c.run(["src-hang==1.0"], "0", stop_when=lambda: any(r.get("build_for") and r["kind"] == "decision" for r in c.records()))
        check("it is ended with the run", outcome.get("reason", {}).get("code") == "cancelled" and outcome.get("started") == "no" and time.monotonic() - begun < 20, outcome)
        check("and both have an outcome", sorted(r["code"] for r in c.records() if r["kind"] == "outcome") == ["cancelled", "cancelled"], c.records()[-2:])


def case_policy(tool, place):
    with served([plain("other", "1"), plain("src-a", "1"), source("src-needs", "0", requires=["setuptools", "banned"]), source("src-deep", "0", requires=["src-a"]),
                 wheel("banned", "1.0", {"banned.py": ""}), {**plain("src-young"), "time": "2099-01-01T00:00:00Z"}, *TOOLS]) as port:
        c = Case(tool, port, place, ALLOW % ('rule { id = "ban", match = { name = "banned" }, deny = "it is banned" },'
                                             'rule { id = "cooldown", when = function(p) return p.name == "src-young" and p.age_days < 7 end, deny = "too young" },'))
        failed("policy does not let it be built", c.run(["other==1.0"], "0"), "package_unavailable", "no_wheel", "policy lets nothing be built", "other")
        outcome = c.run(["src-needs==1.0"], "0")
        reason = outcome.get("reason", {})
        check("what it needs is denied", (reason.get("code"), reason.get("detail", {}).get("rule"), reason.get("detail", {}).get("item")) == ("package_denied", "ban", "banned") and
              outcome.get("started") == "no" and "src-needs 1.0" in reason.get("message", ""), outcome)
        failed("what is needed for a build is not built itself", c.run(["src-deep==1.0"], "0"), "package_unavailable", "no_wheel", "what is needed for a build is not built itself")
        outcome = c.run(["src-young>=0"], "0")
        check("it is judged before it is built", (outcome["reason"]["code"], outcome["reason"]["detail"].get("rule")) == ("package_denied", "cooldown") and
              not any(r.get("build_for") for r in c.records()[-2:]), outcome)
        strict = ALLOW.replace('idempotency = { default = "none" }', 'idempotency = { default = "require_key" }') % ""
        keyed = Case(tool, port, os.path.join(place, "keyed"), strict)
        ok("a key counts for the build too", keyed.run(["src-a==1.0"], "import src_a; print(src_a.V)", idempotency_key="k1"), "1\n")


def case_versions(tool, place):
    """The newest that the constraints, the cutoff and the pin allow; never one where there is a wheel that will do."""
    packages = [plain("src-v", "1", "1.0"), {**plain("src-v", "2", "2.0"), "time": "2024-06-01T00:00:00Z"}, {**plain("src-v", "3", "3.0"), "time": "2099-01-01T00:00:00Z"},
                wheel("top", "1.0", {"top.py": ""}, requires=["src-v"]), wheel("src-w", "1.0", {"src_w.py": "V = 1\n"}), plain("src-w", "2", "2.0"), {**plain("src-y", "1", "1.0"), "yanked": "broken"}, plain("src-y", "0", "0.9"),
                {**plain("src-p", "1", "2.0"), "python": ">=3.99"}, plain("src-p", "5", "1.0"), wheel("src-q", "1.0", {}, python=">=3.99"), plain("src-q", "6", "1.0")]
    young = ALLOW % 'rule { id = "old", match = { name = "src-v" }, allow = true, allow_source_build = true, newest_published = "P7D" },'
    with served(packages) as port:
        c = Case(tool, port, place)
        ok("the newest", c.run(["src-v>=0"], "import src_v; print(src_v.V)"), "3\n")
        ok("within the constraint", c.run(["src-v<2"], "import src_v; print(src_v.V)"), "1\n")
        ok("a wheel goes before", c.run(["src-w>=0"], "import src_w; print(src_w.V)"), "1\n")
        ok("not where only the source is new enough", c.run(["src-w>=2"], "import src_w; print(src_w.V)"), "2\n")
        ok("yanked ones are not taken", c.run(["src-y>=0"], "import src_y; print(src_y.V)"), "0\n")
        ok("for this Python", c.run(["src-p>=0"], "import src_p; print(src_p.V)"), "5\n")
        ok("where the wheel is for another Python", c.run(["src-q==1.0"], "import src_q; print(src_q.V)"), "6\n")
        asked = "import src_v; print(src_v.V)"
        ok("what another needs is old enough too", Case(tool, port, os.path.join(place, "needed"), young).run(["top==1.0"], asked), "2\n")
        pinned = Case(tool, port, os.path.join(place, "pinned"), young.replace('newest_published = "P7D"', 'pin = "1.0"'))
        ok("what another needs is the one that policy pins", pinned.run(["top==1.0"], asked), "1\n")
        ok("old enough", Case(tool, port, os.path.join(place, "young"), young).run(["src-v>=0"], "import src_v; print(src_v.V)"), "2\n")


def case_real(tool, place):
    """setuptools as it is."""
    folder = os.path.join(place, "wheels")
    p = subprocess.run([harness.PYTHON, "-m", "pip", "download", "-q", "--only-binary", ":all:", "--retries", "1", "-d", folder, "setuptools", "wheel"],
                       capture_output=True, check=False, timeout=120)
    if p.returncode:
        print("skipped: pip cannot fetch setuptools here")
        return
    packages = [sdist("src-real", "1.0", {"setup.py": "from setuptools import setup\nsetup(name='src-real', version='1.0', py_modules=['src_real'])\n", "src_real.py": "V = 9\n"}),
                sdist("src-toml", "1.0", {"pyproject.toml": '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n[project]\nname = "src-toml"\nversion = "1.0"\n',
                                          "src_toml.py": "V = 8\n"})]
    for file in os.listdir(folder):
        with open(os.path.join(folder, file), "rb") as f:
            packages.append({"name": file.split("-")[0], "version": file.split("-")[1], "file": file, "data": f.read()})
    with served(packages) as port:
        c = Case(tool, port, place)
        first = c.run(["src-real==1.0", "src-toml==1.0"], "import src_real, src_toml; print(src_real.V, src_toml.V)")
        ok("setuptools builds both", first, "9 8\n")


def main():
    if not REEVE or os.getuid() != 0:
        print("this needs root, and the path of reeve")
        return 77
    tools = ["pip"] + (["uv"] if harness.uv_path() else [])
    if len(tools) == 1:
        print("uv is not there (REEVE_UV): only pip is tried")
    for tool in tools:
        for name, case in list(globals().items()):
            if name.startswith("case_") and ONLY in name:
                with tempfile.TemporaryDirectory(prefix="reeve-source-") as place:
                    os.chmod(place, 0o755)
                    before = len(harness.failures)
                    began = time.monotonic()
                    case(tool, place)
                    print(f"{name[5:]} with {tool}: {time.monotonic() - began:.1f} s", flush=True)
                    if len(harness.failures) > before:
                        print(f"  … {name[5:]}, with {tool}")
    return harness.end("packages from source")


if __name__ == "__main__":
    sys.exit(main())
