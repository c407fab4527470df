#!/usr/bin/python3
"""The program that builds packages, outside of a sandbox: what it reads of a source archive, markers, and what it leaves out."""
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import harness
from harness import check

DRIVER = os.path.join(harness.DRIVERS, "build.py")
build = harness.load(DRIVER, "build_driver")


def archive(members, suffix=".tar.gz"):
    b = io.BytesIO()
    if suffix == ".zip":
        with zipfile.ZipFile(b, "w") as z:
            for path, text in members:
                z.writestr(path, text)
    else:
        with tarfile.open(fileobj=b, mode="w:gz") as t:
            for path, text in members:
                info = tarfile.TarInfo(path)
                if isinstance(text, tuple):
                    info.type, info.linkname = text
                    t.addfile(info)
                else:
                    info.size = len(text.encode())
                    t.addfile(info, io.BytesIO(text.encode()))
    return b.getvalue()


def ask(data, what="ask", suffix=".tar.gz", **members):
    """(exit status, first line as JSON, what follows, the last line of standard error)"""
    with tempfile.TemporaryDirectory(prefix="reeve-build-") as work:
        head = json.dumps({"what": what, "archive": "x-1.0" + suffix, "work_dir": work, **members}).encode()
        p = subprocess.run([harness.PYTHON, DRIVER], input=head + b"\n" + data, capture_output=True, cwd=work, timeout=60, check=False, env={"PATH": "/usr/bin:/bin"})
    line, _, rest = p.stdout.partition(b"\n")
    return p.returncode, json.loads(line) if line else None, rest, (p.stderr.decode(errors="replace").strip().splitlines() or [""])[-1]


def project(text, suffix=".tar.gz"):
    return archive([("x-1.0/PKG-INFO", ""), ("x-1.0/sub/pyproject.toml", "no"), ("x-1.0/pyproject.toml", text)], suffix)


def markers():
    values = {**build.marker_values(), "python_version": "3.11", "python_full_version": "3.11.2", "sys_platform": "linux", "platform_system": "Linux", "extra": ""}
    rows = [("python_version >= '3.8'", True), ("python_version<'3.8'", False), ("python_version < '3.9' or python_version > '3.10'", True), ("python_version == '3.11.*'", True),
            ("python_version == '3.*'", True), ("python_version ~= '3.8'", True), ("python_version ~= '2.8'", False), ("python_version != '3.11'", False),
            ("python_full_version >= '3.11.1'", True), ("'3.9' <= python_version", True), ("python_version in '3.10 3.11'", True), ("python_version not in '3.11'", False),
            ("sys_platform == 'win32' and python_version > '3'", False), ("(sys_platform == 'win32' or os_name == 'posix') and extra == ''", True),
            ('platform_system != "Windows"', True), ("sys.platform == 'linux'", True), ("extra == 'test'", False)]
    for text, expected in rows:
        check(f"marker {text}", build.Marker(text, values).is_true() is expected)
    for text in ("", "python_version", "python_version >=", "python_version >= '3' and", "who == 'x'", "python_version >= '3' )", "(" * 200 + "os_name == 'x'", "os_name ~= 'x'", "a b c", "'"):
        try:
            build.Marker(text, values).is_true()
            check(f"no marker {text}", False)
        except build.Failure:
            check(f"no marker {text}", True)


def asked():
    table = '[build-system]\nrequires = ["flit_core >=3,<4", "tomli; python_version < \'3\'", "x[a, b]", "y ; os_name == \'posix\'"]\nbuild-backend = "flit_core.buildapi"\n'
    expected = ["flit_core >=3,<4", "x[a, b]>=0", "y>=0"]
    for suffix in (".tar.gz", ".zip"):
        check("what it needs" + suffix, ask(project(table, suffix), suffix=suffix)[:2] == (0, {"requires": expected}), ask(project(table, suffix), suffix=suffix))
    default = {"requires": build.DEFAULT_REQUIRES[:1] + ["wheel>=0"]}
    check("no pyproject.toml", ask(archive([("x-1.0/setup.py", "")]))[:2] == (0, default), ask(archive([("x-1.0/setup.py", "")])))
    check("no build-system", ask(project("[project]\nname = 'x'\n"))[:2] == (0, default))
    for name, data, words in (("no requires", project("[build-system]\n"), "without a list"), ("no TOML", project("["), "TOMLDecodeError"), ("no text", project("[build-system]\nrequires=[1]\n"), "no list of texts"),
                              ("no archive", b"PK", ""), ("a bad marker", project("[build-system]\nrequires=['x; y']\n"), "no environment marker")):
        got = ask(data)
        check(f"{name} is told", got[0] == 1 and got[1] is None and words in got[3] and got[3], got)


def built():
    own = "import os, json\ndef build_wheel(folder, *a, **k):\n    print('noise')\n    open(folder + '/x-1.0-py3-none-any.whl', 'w').write(json.dumps(sorted(os.listdir('.'))))\n    return 'x-1.0-py3-none-any.whl'\n"
    table = '[build-system]\nrequires = []\nbuild-backend = "own"\nbackend-path = ["."]\n'
    links = [("x-1.0/link", (tarfile.SYMTYPE, "/etc")), ("x-1.0/hard", (tarfile.LNKTYPE, "x-1.0/own.py")), ("x-1.0/pipe", (tarfile.FIFOTYPE, ""))]
    got = ask(archive([("x-1.0/pyproject.toml", table), ("x-1.0/own.py", own), *links]), "build")
    check("files alone, and no noise", got[0] == 0 and got[1] == {"file": "x-1.0-py3-none-any.whl", "bytes": len(got[2])} and
          [n for n in json.loads(got[2]) if n != "__pycache__"] == ["own.py", "pyproject.toml"], got)
    for path in ("../x", "/x", "x-1.0/../../x", "x-1.0\\..\\x"):
        got = ask(archive([("x-1.0/pyproject.toml", table), (path, "")]), "build")
        check(f"a member {path}", got[0] == 1 and "leads out of it" in got[3], got)
    got = ask(archive([("x-1.0/pyproject.toml", table.replace('["."]', '["../.."]')), ("x-1.0/own.py", own)]), "build")
    check("a backend outside", got[0] == 1 and "leads out of the source" in got[3], got)
    more = own + "def get_requires_for_build_wheel(*a):\n    return ['cython', 'never; os_name == \"nt\"']\n"
    data = archive([("x-1.0/pyproject.toml", table), ("x-1.0/own.py", more)])
    check("a backend needs more", ask(data, "build")[:2] == (0, {"requires": ["cython>=0"]}), ask(data, "build"))
    check("and has it", ask(data, "build", requires=["cython>=0"])[1].get("file") is not None)


if __name__ == "__main__":
    markers()
    asked()
    built()
    harness.end("the build driver")
