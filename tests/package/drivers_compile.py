#!/usr/bin/python3
"""What the byte-compiling driver prints for layers of all kinds; that what it prints is what Python itself would make."""
import importlib.util, json, marshal, os, struct, subprocess, sys, tempfile, warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import DRIVERS, PYTHON, check, end, load

BELOW = "lib/python%d.%d/site-packages" % sys.version_info[:2]
TAG = sys.implementation.cache_tag


def run(root, interpreter=PYTHON):
    p = subprocess.run([interpreter, os.path.join(DRIVERS, "compile.py")], input=json.dumps({"work_dir": root}).encode(), capture_output=True, check=False, timeout=120,
                       env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"})
    return p.stdout, p.stderr, p.returncode


def frames(data):
    """[(path, bytes)], or None: they are not well formed."""
    out = []
    while True:
        if len(data) < 12:
            return None
        magic, n_path, n_data = struct.unpack("<4sII", data[:12])
        if magic == b"RVPE":
            return out if (n_path, n_data, len(data)) == (len(out), 0, 12) else None
        if magic != b"RVPC" or len(data) < 12 + n_path + n_data:
            return None
        out.append((data[12:12 + n_path].decode(), data[12 + n_path:12 + n_path + n_data]))
        data = data[12 + n_path + n_data:]


def layer(root, files):
    for name, data in files.items():
        path = os.path.join(root, BELOW, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())


def code_of(pyc, source):
    """The code of a file that is valid whatever its source's time is."""
    magic, flags, digest = pyc[:4], struct.unpack("<I", pyc[4:8])[0], pyc[8:16]
    assert magic == importlib.util.MAGIC_NUMBER and flags == 0b01 and digest == importlib.util.source_hash(source)
    return marshal.loads(pyc[16:])


def kinds():
    files = {"a.py": "X = 1\n", "pkg/__init__.py": "from . import b\n", "pkg/b.py": "def f():\n    assert False, 'seen'\n", "pkg/broken.py": "def (:\n", "pkg/null.py": b"a\0b\n",
             "pkg/latin.py": b"# -*- coding: latin-1 -*-\nX = '\xe4'\n", "pkg/bad_utf8.py": b"X = '\xe4'\n", "pkg/warns.py": "x = 1 is 1\n'\\d'\n", "pkg/empty.py": "",
             "pkg/data.txt": "no", "pkg/__pycache__/old.py": "X = 1\n", "deep/er/still/c.py": "Y = 2\n", "name with space.py": "Z = 3\n", "uni\u00e4.py": "Z = 4\n",
             "new\nline.py": "Z = 5\n", "nested.py": "(" * 5000 + ")" * 5000, "minus.py": "-" * 300000 + "1"}
    with tempfile.TemporaryDirectory(prefix="reeve-driver-") as root:
        layer(root, files)
        base = os.path.join(root, BELOW)
        os.symlink("a.py", base + "/link.py")
        os.symlink("pkg", base + "/linked")
        os.symlink("/etc/passwd", base + "/passwd.py")
        os.mkfifo(base + "/fifo.py")
        out, err, status = run(root)
        got = frames(out)
        check("frames", got is not None and status == 0 and err == b"", (status, err[-300:], out[:80]))
        wanted = ["a", "deep/er/still/c", "name with space", "pkg/__init__", "pkg/b", "pkg/empty", "pkg/latin", "pkg/warns", "uni\u00e4"]
        paths = [f"{BELOW}/{os.path.dirname(w)}/__pycache__/{os.path.basename(w)}.{TAG}.pyc".replace("//", "/") for w in wanted]
        check("what is compiled, in order", [p for p, _ in got or []] == paths, [p for p, _ in got or []])
        for w, (_, pyc) in zip(wanted, got or []):
            with open(f"{base}/{w}.py", "rb") as f:
                source = f.read()
            code = code_of(pyc, source)
            check(f"code of {w}", code == compile(source, code.co_filename, "exec", dont_inherit=True, optimize=0) and code.co_filename == f"/venv/{BELOW}/{w}.py", code.co_filename)
        again, _, _ = run(root)
        check("the same order again", [p for p, _ in frames(again)] == paths)
        check("nothing is written", not os.path.exists(base + "/__pycache__"))


def as_python_would():
    """A layer that two processes share, used as a run would use it."""
    with tempfile.TemporaryDirectory(prefix="reeve-driver-") as root:
        layer(root, {f"many/m{i}.py": f"V = {i}\n" + f"def f{i}(a, b=1, *c, **d):\n    return [x for x in (a, b) if x]\n" * 60 for i in range(120)})
        layer(root, {"many/__init__.py": ""})
        got = frames(run(root)[0])
        check("all of many", got is not None and len(got) == 121 and [p for p, _ in got] == sorted(p for p, _ in got), got and len(got))
        for path, data in got or []:
            os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
            with open(os.path.join(root, path), "wb") as f:
                f.write(data)
        # A changed source is not noticed: the compiled file is what runs.
        layer(root, {"many/m7.py": "V = 'source'\n"})
        p = subprocess.run([PYTHON, "-c", "import many.m7; print(many.m7.V, many.m7.f7(1))"], capture_output=True, check=False, env={"PYTHONPATH": os.path.join(root, BELOW)})
        check("it is used", p.stdout == b"7 [1, 1]\n", (p.stdout, p.stderr[-300:]))


def nothing():
    with tempfile.TemporaryDirectory(prefix="reeve-driver-") as root:
        os.makedirs(os.path.join(root, BELOW))
        check("an empty layer", frames(run(root)[0]) == [])
        os.rmdir(os.path.join(root, BELOW))
        out, err, status = run(root)
        check("no layer", status != 0 and frames(out) is None and err, (out, status))


def deaths():
    """A source that kills the process which compiles it costs that source alone."""
    driver = load(os.path.join(DRIVERS, "compile.py"), "compile_driver")
    made = driver.compiled

    def compiled(root, path, shown):
        if "kill" in path:
            os.kill(os.getpid(), 9)
        return made(root, path, shown)
    with tempfile.TemporaryDirectory(prefix="reeve-driver-") as root:
        names = ["a", "kill0", "kill1", "m", "z", "zkill"]
        layer(root, {n + ".py": f"N = {n!r}\n" * 1000 for n in names})
        driver.compiled = compiled
        worker = driver.Worker(root, "/venv", [f"{BELOW}/{n}.py" for n in names])
        got = [worker.next() for _ in names]
        check("who survives", [g is not None for g in got] == [True, False, False, True, True, False], [g and len(g) for g in got])
        check("no process is left", worker.fd == -1)


def main():
    warnings.simplefilter("ignore")
    kinds()
    as_python_would()
    nothing()
    deaths()
    end("drivers_compile")


if __name__ == "__main__":
    main()
