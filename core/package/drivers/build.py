"""Builds a wheel from a source archive, or says what that needs: PEP 517 and 518.

It runs inside the sandbox, without network, and is given one line of JSON on standard input, followed by the archive. Asked
what a build needs it only reads pyproject.toml, and prints {"requires": [...]}. Else it unpacks the archive, has the
backend build a wheel, and prints one line of JSON and the wheel, or what the backend says that it needs besides. What
goes wrong stands in the last line of standard error. Nothing that it prints is trusted.
"""
import io
import json
import os
import re
import sys

UNPACKED_BYTES_MAX = 512 << 20
MEMBERS_MAX = 50000
PROJECT_BYTES_MAX = 1 << 20
DEFAULT_REQUIRES = ["setuptools>=40.8.0", "wheel"]
DEFAULT_BACKEND = "setuptools.build_meta:__legacy__"
BUILT_AT = "315532800"   # 1980, the first year of zip: a build of the same source has the same bytes
BARE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*[ \t]*(\[[^\]]*\])?[ \t]*\Z")
TOKEN = re.compile(r"[ \t]*(\(|\)|'[^']*'|\"[^\"]*\"|===|==|!=|<=|>=|~=|<|>|[A-Za-z_.]+)")


class Failure(Exception):
    """Nothing can be built; the text is for people."""


# Environment markers (PEP 508)

def marker_values():
    import platform
    release = platform.python_version()
    return {"python_version": ".".join(release.split(".")[:2]), "python_full_version": release, "os_name": os.name, "sys_platform": sys.platform,
            "platform_machine": platform.machine(), "platform_system": platform.system(), "platform_release": platform.release(),
            "platform_version": platform.version(), "platform_python_implementation": platform.python_implementation(),
            "implementation_name": sys.implementation.name, "implementation_version": release, "extra": ""}


def numbers(text):
    """A release as numbers without trailing zeros; None: it is none."""
    m = re.match(r"(\d+(?:\.\d+)*)(?:\.\*)?\Z", text)
    if not m:
        return None
    found = [int(n) for n in m[1].split(".")]
    while len(found) > 1 and not found[-1]:
        found.pop()
    return found


def compare(left, operator, right):
    a, b = numbers(left), numbers(right)
    if a is None or b is None or operator == "===":
        table = {"==": left == right, "===": left == right, "!=": left != right, "<": left < right, "<=": left <= right, ">": left > right,
                 ">=": left >= right, "in": left in right, "not in": left not in right}
    else:
        n = len(right.replace(".*", "").split("."))
        padded = (a + [0] * n)[:n]
        starts = padded == (b + [0] * n)[:n] if right.endswith(".*") else a == b
        table = {"==": starts, "!=": not starts, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "in": left in right, "not in": left not in right,
                 "~=": a >= b and padded[:n - 1] == (b + [0] * n)[:n - 1]}
    if operator not in table:
        raise Failure(f"no environment marker: {left!r} {operator} {right!r}")
    return table[operator]


class Marker:
    """Reads `a op b` joined by `and`, `or` and brackets."""

    def __init__(self, text, values):
        self.values, self.tokens, self.text = values, [], text
        text = text.strip()
        while text:
            m = TOKEN.match(text)
            if not m:
                raise Failure(f"no environment marker: {self.text!r}")
            self.tokens.append(m[1])
            text = text[m.end():].strip()

    def take(self, *wanted):
        if self.tokens and (not wanted or self.tokens[0] in wanted):
            return self.tokens.pop(0)
        if wanted:
            return None
        raise Failure(f"no environment marker: {self.text!r}")

    def value(self):
        token = self.take()
        if token[0] in "'\"":
            return token[1:-1]
        if token.replace(".", "_") not in self.values:
            raise Failure(f"no environment marker: {self.text!r}")
        return self.values[token.replace(".", "_")]

    def one(self, depth):
        if depth > 50:
            raise Failure("an environment marker is nested too deeply")
        if self.take("("):
            found = self.any(depth + 1)
            if not self.take(")"):
                raise Failure(f"no environment marker: {self.text!r}")
            return found
        left, operator = self.value(), self.take()
        if operator == "not":
            operator = "not " + self.take()
        return compare(left, operator, self.value())

    def all(self, depth):
        found = self.one(depth)
        while self.take("and"):
            found = self.one(depth) and found
        return found

    def any(self, depth=0):
        found = self.all(depth)
        while self.take("or"):
            found = self.all(depth) or found
        return found

    def is_true(self):
        found = self.any()
        if self.tokens:
            raise Failure(f"no environment marker: {self.text!r}")
        return found


def wanted(requirements):
    """Those that count here, as package strings: without markers, each with a constraint."""
    values, out = marker_values(), []
    for text in requirements:
        if not isinstance(text, str):
            raise Failure("build-system.requires is no list of texts")
        name, semicolon, marker = text.partition(";")
        if not semicolon or Marker(marker, values).is_true():
            out.append(name.strip() + (">=0" if BARE.match(name.strip()) else ""))
    return out


# The archive

def members(name, data):
    """(path, mode, None for a directory or a function that reads the file)"""
    if name.endswith(".zip"):
        import zipfile
        archive = zipfile.ZipFile(io.BytesIO(data))
        for info in archive.infolist():
            kind = (info.external_attr >> 16) & 0o170000
            if kind in (0, 0o100000, 0o040000):
                yield info.filename, info.external_attr >> 16, None if info.is_dir() else (lambda info=info: archive.open(info))
        return
    import tarfile
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        for info in archive:
            if info.isfile() or info.isdir():
                yield info.name, info.mode, None if info.isdir() else (lambda info=info: archive.extractfile(info))


def parts_of(path):
    parts = [p for p in path.split("/") if p not in ("", ".")]
    if path.startswith("/") or ".." in parts or "\0" in path or "\\" in path:
        raise Failure(f"the source archive has a member that leads out of it: {path[:200]!r}")
    return parts


def copy(source, target, most):
    n = 0
    while True:
        block = source.read(1 << 20)
        if not block:
            return n
        n += len(block)
        if n > most:
            raise Failure(f"the source archive unpacks to more than {UNPACKED_BYTES_MAX >> 20} MiB")
        target.write(block)


def unpack(name, data, place):
    """Files and directories alone: links and devices are left out. Returns the directory of the source."""
    left, n = UNPACKED_BYTES_MAX, 0
    for path, mode, opened in members(name, data):
        n += 1
        parts = parts_of(path)
        if n > MEMBERS_MAX:
            raise Failure("the source archive has too many members")
        target = os.path.join(place, *parts)
        if opened is None or not parts:
            os.makedirs(target, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with opened() as source, open(target, "wb") as out:
            left -= copy(source, out, left)
        os.chmod(target, 0o755 if mode & 0o100 else 0o644)
    top = os.listdir(place)
    return os.path.join(place, top[0]) if len(top) == 1 and os.path.isdir(os.path.join(place, top[0])) else place


def project_text(name, data):
    """pyproject.toml at the top of the archive, or None."""
    n = 0
    for path, _, opened in members(name, data):
        n += 1
        if n > MEMBERS_MAX:
            raise Failure("the source archive has too many members")
        if opened and len(parts_of(path)) == 2 and parts_of(path)[1] == "pyproject.toml":
            with opened() as f:
                return f.read(PROJECT_BYTES_MAX)
    return None


def build_system(text):
    """(requires, backend, backend-path)"""
    if text is None:
        return DEFAULT_REQUIRES, DEFAULT_BACKEND, []
    try:
        import tomllib
    except ImportError:
        try:
            from pip._vendor import tomli as tomllib
        except ImportError as e:
            raise Failure("pyproject.toml cannot be read here: this Python has neither tomllib nor pip") from e
    table = tomllib.loads(text.decode()).get("build-system")
    if table is None:
        return DEFAULT_REQUIRES, DEFAULT_BACKEND, []
    if not isinstance(table, dict) or not isinstance(table.get("requires"), list):
        raise Failure("pyproject.toml has a build-system without a list `requires`")
    backend, path = table.get("build-backend", DEFAULT_BACKEND), table.get("backend-path", [])
    if not isinstance(backend, str) or not isinstance(path, list) or not all(isinstance(p, str) for p in path):
        raise Failure("pyproject.toml has a build-backend or backend-path that is none")
    return table["requires"], backend, path


# The build

def hooks(root, backend, path):
    for part in reversed(path):
        folder = os.path.realpath(os.path.join(root, part))
        if folder != root and not folder.startswith(root + "/"):
            raise Failure("backend-path leads out of the source")
        sys.path.insert(0, folder)
    import importlib
    module, _, inside = backend.partition(":")
    found = importlib.import_module(module)
    for name in inside.split(".") if inside else []:
        found = getattr(found, name)
    return found


def build(job, data):
    work = f"{job.get('work_dir') or '/tmp'}/reeve-build-{os.getpid()}"
    for name in ("source", "wheel", "home", "tmp"):
        os.makedirs(f"{work}/{name}", 0o700)
    os.environ.update({"HOME": work + "/home", "TMPDIR": work + "/tmp", "SOURCE_DATE_EPOCH": BUILT_AT, "PYTHONNOUSERSITE": "1"})
    root = os.path.realpath(unpack(job["archive"], data, work + "/source"))
    os.chdir(root)
    text = None
    if os.path.isfile("pyproject.toml"):
        with open("pyproject.toml", "rb") as f:
            text = f.read(PROJECT_BYTES_MAX)
    _, backend, path = build_system(text)
    here = os.path.dirname(os.path.abspath(sys.argv[0]))
    sys.path[:] = [p for p in sys.path if p and p != here]
    sys.argv = ["setup.py"]
    hook = hooks(root, backend, path)
    more = wanted(hook.get_requires_for_build_wheel() if hasattr(hook, "get_requires_for_build_wheel") else [])
    if set(more) - set(job.get("requires") or []) and not job.get("is_last"):
        return {"requires": more}, b""
    name = os.path.basename(hook.build_wheel(work + "/wheel"))
    with open(f"{work}/wheel/{name}", "rb") as f:
        wheel = f.read()
    return {"file": name, "bytes": len(wheel)}, wheel


def main():
    head = sys.stdin.buffer.readline()
    job = json.loads(head)
    data = sys.stdin.buffer.read()
    out = os.dup(1)
    os.dup2(2, 1)   # what a backend prints is no answer
    status, answer, wheel = 1, {}, b""
    try:
        if job["what"] == "ask":
            answer = {"requires": wanted(build_system(project_text(job["archive"], data))[0])}
        else:
            answer, wheel = build(job, data)
        status = 0
    except Failure as e:
        print(e, file=sys.stderr)
    except SystemExit as e:
        if not isinstance(e.code, int) or not e.code:
            print(e.code or "the build backend ended the program", file=sys.stderr)
    except BaseException:   # whatever a stranger's backend raises
        import traceback
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    if status == 0:
        view = memoryview(json.dumps(answer).encode() + b"\n" + wheel)
        while view:
            view = view[os.write(out, view):]
    os._exit(status)


if __name__ == "__main__":
    main()
