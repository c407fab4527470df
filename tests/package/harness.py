"""What the tests of the drivers share: registries on loopback, a driver run outside of a sandbox, checks that are counted."""
import hashlib, importlib.util, json, os, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
DRIVERS = os.path.join(TOP, "core/package/drivers")
PYTHON, NODE = "/usr/bin/python3", "/usr/bin/node"
failures, counts = [], [0]
READER = []


def check(name, ok, got=None):
    counts[0] += 1
    if not ok:
        failures.append(name)
        print(f"FAILED {name}: {got!r}"[:3000], flush=True)
    return ok


def load(path, name):
    """A Python file as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


registry = load(os.path.join(TOP, "tests/conformance/registry.py"), "registry")


class Registry:
    """One of tests/conformance/registry.py's at a free port of loopback. `wheels` are further files of a Python index: {file: metadata}."""

    def __init__(self, kind, packages, wheels=None, **members):
        made = registry.wheel

        def wheel(p):
            file, data = made(p)
            return p.get("file", file), data
        more = [{"name": name, "version": version, "file": file} for name, version, file in wheels or []]
        registry.wheel = wheel
        try:
            with registry_socket() as port:
                self.port = port
            self.server = registry.serve({"kind": kind, "host": "127.0.0.1", "port": self.port, "packages": packages + more, **members})
        finally:
            registry.wheel = made
        self.url = f"http://127.0.0.1:{self.port}" + ("/simple" if kind == "pypi" else "/")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown(None)
        self.server.close()


class registry_socket:
    """A port of loopback that was free a moment ago."""

    def __enter__(self):
        import socket
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return s.getsockname()[1]

    def __exit__(self, *_):
        pass


def pip_packages(*rows):
    """(name, version, requires..., members as a dictionary) as registry.py wants them."""
    out = []
    for name, version, *rest in rows:
        members = rest.pop() if rest and isinstance(rest[-1], dict) else {}
        out.append({"name": name, "version": version, "files": {f"{name.lower().replace('-', '_')}.py": f"V={version!r}\n"}, "requires": rest, **members})
    return out


def npm_packages(*rows):
    return [{"name": name, "version": version, "files": {"index.js": "0"}, "manifest": manifest[0] if manifest else {}} for name, version, *manifest in rows]


def run(driver, job, env, interpreter=None, timeout=120):
    """The driver's answer, as JSON, and what it wrote to standard error."""
    interpreter = interpreter or (NODE if driver.endswith("cjs") else PYTHON)
    with tempfile.TemporaryDirectory(prefix="reeve-driver-") as work:
        p = subprocess.run([interpreter, os.path.join(DRIVERS, driver)], input=json.dumps({"work_dir": work, **job}).encode(), capture_output=True,
                           env={"PATH": "/usr/bin:/bin", **env}, cwd=work, timeout=timeout, check=False)
    try:
        return json.loads(p.stdout), p.stderr.decode(errors="replace")
    except ValueError:
        return {"ok": None, "stdout": p.stdout[:500].decode(errors="replace"), "status": p.returncode}, p.stderr.decode(errors="replace")


def is_well_formed(a):
    members = {"schema", "tool", "ok", "exit", "code", "text", "runtime"}
    return (a.get("schema") == "reeve.closure/1" and members <= set(a) and set(a) - members <= {"packages", "lock"} and isinstance(a["exit"], int)
            and len(a["text"]) <= 4096 and {"name", "version"} == set(a["tool"]) and {"tag", "version", "interpreter"} == set(a["runtime"]))


def options():
    """Takes `--read PROGRAM` (read_closure.c) out of the command line. Returns the other arguments."""
    rest = sys.argv[1:]
    if rest[:1] == ["--read"]:
        READER.append(os.path.abspath(rest[1]))
        rest = rest[2:]
    return rest


def read_closure(name, language, packages, answer, is_taken=True):
    """How reeve reads an answer; None without the program that does."""
    if not READER:
        return None
    p = subprocess.run(READER + [language] + packages, input=json.dumps(answer).encode(), capture_output=True, check=False, timeout=60)
    if not check(f"{name}: read", p.returncode == 0, (p.returncode, p.stderr[-2000:])):
        return None
    got = json.loads(p.stdout)
    check(f"{name}: read as what it is", got["r"] == 0 if answer["ok"] and is_taken else got["r"] == 2 or (got["r"] == 1 and not is_taken), {**got, "paths": 0})
    return got


def sha256(data):
    return hashlib.sha256(data).hexdigest()


def uv_path():
    """From the environment: tests never look for it elsewhere."""
    path = os.environ.get("REEVE_UV", "")
    return path if path and os.access(path, os.X_OK) else None


def end(what):
    print(f"{what}: {counts[0]} checks, {len(failures)} failed", flush=True)
    sys.exit(1 if failures else 0)
