#!/usr/bin/python3
"""What the driver for Python's packages answers, with registries made on the spot; uv is tested if REEVE_UV names it.

    drivers_python.py [--read READ_CLOSURE] [PYTHON…]      (further interpreters, each with a pip of its own)
"""
import atexit, base64, json, os, shutil, subprocess, sys, tempfile, unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import DRIVERS, PYTHON, Registry, check, end, is_well_formed, load, options, pip_packages, read_closure, registry, registry_socket, run, sha256, uv_path

T2020, T2023 = "2020-01-01T00:00:00.000000Z", "2023-06-01T12:00:00.000000Z"
PACKAGES = pip_packages(
    ("app", "1.0", "lib>=1", "only-old; python_version < '3'", "Extra-Thing>=1; extra == 'more'", {"license": "MIT\nProvides-Extra: more"}),
    ("lib", "1.0"), ("lib", "1.1", {"time": T2023}), ("lib", "2.0rc1"),
    ("Extra-Thing", "1.0", "lib<1.1"), ("only-old", "1.0"),
    ("pre", "1.0rc1"), ("withdrawn", "1.0"), ("withdrawn", "1.1", {"yanked": "broken"}), ("allgone", "1.0", {"yanked": "broken"}),
    ("modern", "1.0"), ("modern", "2.0", {"python": ">=3.99"}), ("future", "1.0", {"python": ">=3.99"}),
    ("left", "1.0", "shared==1"), ("right", "1.0", "shared==2"), ("shared", "1"), ("shared", "2"),
    ("needs-url", "1.0", "lib @ http://127.0.0.1:9/lib-1.0-py3-none-any.whl"), ("needs-git", "1.0", "lib @ git+file:///nowhere/lib.git"),
    ("needs-nothing-there", "1.0", "not-there>=1"), ("Under_Score.d", "1.0"))
NATIVE = "cp3%d" % sys.version_info[1]
WHEELS = [("plat", "1.0", "plat-1.0-py3-none-any.whl"), ("plat", "1.0", f"plat-1.0-{NATIVE}-{NATIVE}-win_amd64.whl"),
          ("plat", "1.0", "plat-1.0-py3-none-manylinux_2_5_%s.manylinux1_%s.whl" % (os.uname().machine, os.uname().machine)),
          ("abi", "1.0", f"abi-1.0-{NATIVE}-{NATIVE}-linux_%s.whl" % os.uname().machine), ("abi", "1.0", "abi-1.0-cp36-abi3-linux_%s.whl" % os.uname().machine),
          ("abi", "1.0", "abi-1.0-py3-none-any.whl"), ("built", "1.0", "built-1.0-1-py3-none-any.whl"), ("built", "1.0", "built-1.0-10-py3-none-any.whl"),
          ("built", "1.0", "built-1.0-2-py3-none-any.whl"), ("alien", "1.0", f"alien-1.0-{NATIVE}-{NATIVE}-win_amd64.whl"),
          ("multi", "1.0", "multi-1.0-py2.py3-none-any.whl")]

# (what, packages, members of the job, answer): a dictionary of name to version or file; None: no packages; text: that code
ROWS = [
    ("closure", ["app==1.0"], {}, {"app": "1.0", "lib": "1.1"}),
    ("extra", ["app[more]==1.0"], {}, {"app": "1.0", "extra-thing": "1.0", "lib": "1.0"}),
    ("extra, spelt otherwise", ["app[MORE] (>=1, <2)"], {}, {"app": "1.0", "extra-thing": "1.0", "lib": "1.0"}),
    ("two", ["app>=0", "lib<1.1"], {}, {"app": "1.0", "lib": "1.0"}),
    ("pre-release only", ["pre>=1.0rc1"], {}, {"pre": "1.0rc1"}),
    ("no pre-release unasked", ["lib>=0"], {}, {"lib": "1.1"}),
    ("pre-release by its pin", ["lib==2.0rc1"], {}, {"lib": "2.0rc1"}),
    ("not the yanked one", ["withdrawn>=0"], {}, {"withdrawn": "1.0"}),
    ("the yanked one, pinned", ["withdrawn==1.1"], {}, {"withdrawn": "1.1"}),
    ("yanked all", ["allgone>=0"], {}, None),
    ("the one for this Python", ["modern>=0"], {}, {"modern": "1.0"}),
    ("for no Python yet", ["future>=0"], {}, None),
    ("conflict", ["left>=0", "right>=0"], {}, None),
    ("missing package", ["nowhere>=0"], {}, None),
    ("missing version", ["lib==9"], {}, None),
    ("missing, of another", ["needs-nothing-there>=0"], {}, None),
    ("pinned", ["app>=0"], {"pins": {"lib": "1.0"}}, {"app": "1.0", "lib": "1.0"}),
    ("pinned against what is asked", ["lib>=1.1"], {"pins": {"lib": "1.0"}}, None),
    ("pinned, and not there", ["app>=0"], {"pins": {"unrelated": "1.0"}}, {"app": "1.0", "lib": "1.1"}),
    ("excluded", ["app>=0"], {"exclude": {"lib": ["1.1"]}}, {"app": "1.0", "lib": "1.0"}),
    ("excluded all", ["app>=0"], {"exclude": {"lib": ["1.1", "1.0", "2.0rc1"]}}, None),
    ("excluded none", ["app>=0"], {"exclude": {"lib": []}}, {"app": "1.0", "lib": "1.1"}),
    ("names", ["under.score-D>=0"], {}, {"under-score-d": "1.0"}),
    ("the best platform", ["plat>=0"], {}, {"plat": "plat-1.0-py3-none-manylinux_2_5_%s.manylinux1_%s.whl" % (os.uname().machine, os.uname().machine)}),
    ("the best ABI", ["abi>=0"], {}, {"abi": f"abi-1.0-{NATIVE}-{NATIVE}-linux_%s.whl" % os.uname().machine}),
    ("the best build", ["built>=0"], {}, {"built": "built-1.0-10-py3-none-any.whl"}),
    ("for both Pythons", ["multi>=0"], {}, {"multi": "multi-1.0-py2.py3-none-any.whl"}),
    ("for another platform", ["alien>=0"], {}, None),
    ("a URL in metadata", ["needs-url>=0"], {}, None),
    ("a repository in metadata", ["needs-git>=0"], {}, None),
    ("an option", ["-r /etc/passwd"], {}, "EJOB"),
    ("a variable", ["${HOME}>=1"], {}, "EJOB"),
    ("a URL", ["lib @ http://127.0.0.1/x.whl"], {}, "EJOB"),
    ("a path", ["./lib>=0"], {}, "EJOB"),
    ("a marker", ["lib>=0; python_version < '3'"], {}, "EJOB"),
    ("two lines", ["lib>=0\n-i http://127.0.0.1/"], {}, "EJOB"),
    ("a continued line", ["lib>=0 \\"], {}, "EJOB"),
    ("no constraint", ["lib"], {}, "EJOB"),
    ("a comment", ["lib>=0 # x"], {}, "EJOB"),
    ("a hash option", ["lib>=0 --hash=sha256:00"], {}, "EJOB"),
    ("a pin of two lines", ["lib>=0"], {"pins": {"lib": "1.0\n-r x"}}, "EJOB"),
    ("a pin that is a path", ["lib>=0"], {"pins": {"../lib": "1.0"}}, "EJOB"),
    ("an exclusion with an option", ["lib>=0"], {"exclude": {"lib": ["1 --x"]}}, "EJOB"),
    ("the other language's", ["lib>=0"], {"language": "javascript"}, "EJOB"),
]
UV_ROWS = [
    ("not the younger", ["lib>=0"], {"newest_published": 1600000000}, {"lib": "1.0"}),
    ("of that very second", ["lib>=0"], {"newest_published": 1685620800}, {"lib": "1.1"}),
    ("of the second before", ["lib>=0"], {"newest_published": 1685620799}, {"lib": "1.0"}),
    ("all too young", ["lib>=0"], {"newest_published": 1000000000}, None),
]


def judge(name, tool, wanted, a):
    if not check(f"{name}: form", is_well_formed(a), a):
        return
    if not isinstance(wanted, dict):
        check(name, not a["ok"] and a["packages"] == [] and a["exit"] != 0 and (wanted is None or a["code"] == wanted) and a["text"], a)
        return
    got = {p["name"]: p["file"] if wanted.get(p["name"], "").endswith(".whl") else p["version"] for p in a["packages"]}
    check(name, a["ok"] and got == wanted and a["tool"]["name"] == tool and bool(a["tool"]["version"]) == (tool == "pip") and a["code"] is None and a["exit"] == 0, a)
    check(f"{name}: facts", all(p["url"].startswith("http://127.0.0.1") and p["url"].endswith(p["file"].replace("+", "%2B")) and len(p["sha256"]) == 64 for p in a["packages"]), a)
    if tool == "uv":
        check(f"{name}: sizes and times", all(p["size_bytes"] > 0 and p["published_at"] > 0 for p in a["packages"]), a)
    check(f"{name}: order", a["packages"] == sorted(a["packages"], key=lambda p: p["name"]), a)


def rows(tool, job, interpreter):
    with Registry("pypi", PACKAGES, wheels=WHEELS) as r:
        env = {"PIP_INDEX_URL": r.url, "UV_DEFAULT_INDEX": r.url}
        for name, packages, members, wanted in ROWS + (UV_ROWS if tool == "uv" else []):
            a, err = run("resolve.py", {"language": "python", "packages": packages, **job, **members}, env, interpreter)
            judge(f"{tool} {name}", tool, wanted, a)
            check(f"{tool} {name}: nothing beside", err == "", err)
            if wanted != "EJOB":
                read_closure(f"{tool} {name}", "python", packages, a)


def ours(tool, job):
    """A wheel that reeve built lies beside the index; one that lies elsewhere on the disk does not count."""
    with Registry("pypi", PACKAGES) as r, tempfile.TemporaryDirectory(prefix="reeve-driver-") as place:
        file, data = registry.wheel({"name": "made", "version": "1.0", "requires": ["lib<1.1"]})
        with open(os.path.join(place, file), "wb") as f:
            f.write(data)
        a, _ = run("resolve.py", {"packages": ["made>=0"], **job, "wheels": [os.path.join(place, file)]}, {"PIP_INDEX_URL": r.url})
        found = {p["name"]: p for p in a["packages"]}
        check(f"{tool} a wheel of ours", set(found) == {"made", "lib"} and found["made"]["url"] == "" and found["made"]["sha256"] == sha256(data) and found["lib"]["url"], a)
        read_closure(f"{tool} a wheel of ours", "python", ["made>=0"], a)
        a, _ = run("resolve.py", {"packages": ["made>=0"], **job}, {"PIP_INDEX_URL": r.url, "PIP_FIND_LINKS": place, "UV_FIND_LINKS": place})
        check(f"{tool} a wheel of somebody's", not a["ok"] and a["code"] == "EURL", a)
        a, _ = run("resolve.py", {"packages": ["made>=0"], **job, "wheels": ["made.whl"]}, {"PIP_INDEX_URL": r.url})
        check(f"{tool} a wheel without a place", a["code"] == "EJOB", a)
        given = {"file": file, "base64": base64.b64encode(data).decode()}
        a, _ = run("resolve.py", {"packages": ["made>=0"], **job, "wheel_data": [given]}, {"PIP_INDEX_URL": r.url})
        found = {p["name"]: p for p in a.get("packages", [])}
        check(f"{tool} a wheel of ours in the job", set(found) == {"made", "lib"} and found["made"]["url"] == "" and found["made"]["sha256"] == sha256(data), a)
        a, _ = run("resolve.py", {"packages": ["made>=0"], **job, "wheel_data": [{**given, "file": "../" + file}]}, {"PIP_INDEX_URL": r.url})
        check(f"{tool} a wheel in the job whose name is a path", a["code"] == "EJOB", a)


def trouble(tool, job):
    """A registry that is none, or not there."""
    for name, members in (("5xx", {"status": 503}), ("403", {"status": 403}), ("a sign-in page", {"garbage": True})):
        with Registry("pypi", PACKAGES, **members) as r:
            a, _ = run("resolve.py", {"packages": ["lib>=0"], **job}, {"PIP_INDEX_URL": r.url})
            judge(f"{tool} {name}", tool, None, a)
    with registry_socket() as port:
        a, _ = run("resolve.py", {"packages": ["lib>=0"], **job}, {"PIP_INDEX_URL": f"http://user:secret@127.0.0.1:{port}/simple"})
    judge(f"{tool} nobody there", tool, None, a)
    check(f"{tool} no credentials in texts", "secret" not in a["text"], a)


def made_up(text):
    """A uv that is a shell script."""
    place = tempfile.mkdtemp(prefix="reeve-driver-")
    atexit.register(shutil.rmtree, place)
    path = os.path.join(place, "uv")
    with open(path, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\n" + text)
    os.chmod(path, 0o755)
    return path


def hygiene():
    """What the tool is given, and answers that are none."""
    leaks = {"HTTPS_PROXY": "http://127.0.0.1:9", "UV_INDEX_URL": "http://127.0.0.1:9", "UV_PYTHON": "/x", "PYTHONPATH": "/x", "PIP_FIND_LINKS": "/x", "AWS_SECRET": "x"}
    a, _ = run("resolve.py", {"packages": ["a>=0"], "tool": "uv", "uv": made_up("/usr/bin/env >&2; exit 3\n")}, {**leaks, "UV_DEFAULT_INDEX": "http://127.0.0.1:9/simple"})
    names = {line.split("=")[0] for line in a["text"].splitlines()} - {"PWD", "SHLVL", "_", "OLDPWD"}
    allowed = {"PATH", "HOME", "TMPDIR", "LANG", "NO_COLOR", "TERM", "UV_NO_CONFIG", "UV_CACHE_DIR", "UV_PYTHON_DOWNLOADS", "UV_HTTP_RETRIES", "UV_HTTP_TIMEOUT",
               "UV_NO_PROGRESS", "UV_KEYRING_PROVIDER", "UV_DEFAULT_INDEX"}
    check("uv's environment", names == allowed and a["exit"] == 3 and not a["ok"], a)
    wheel = "[[packages]]\\nname = \"a\"\\nversion = \"1\"\\n"
    for name, script, code in (
            ("absent", "echo 'lock-version = \"1.0\"'\n", "EABSENT"), ("no TOML", "echo '<html>'\n", "EANSWER"), ("nothing", "exit 0\n", "EABSENT"),
            ("a list of nothing", "echo 'packages = [1]'\n", "EANSWER"), ("no wheel", f"printf '{wheel}'\n", "EPLATFORM"),
            ("a repository", f"printf '{wheel}vcs = {{ type = \"git\" }}\\n'\n", "EURL"), ("a directory", f"printf '{wheel}directory = {{ path = \"/\" }}\\n'\n", "EURL"),
            ("an archive", f"printf '{wheel}archive = {{ url = \"http://h/a.zip\" }}\\n'\n", "EURL"),
            ("killed", "kill -9 $$\n", None)):
        a, _ = run("resolve.py", {"packages": ["a>=0"], "tool": "uv", "uv": made_up(script)}, {})
        check(f"uv answers {name}", is_well_formed(a) and not a["ok"] and a["code"] == code and (a["exit"] == 137) == (name == "killed"), a)
    a, _ = run("resolve.py", {"packages": ["a>=0"], "tool": "uv", "uv": "/nowhere/uv"}, {})
    check("no uv", a["code"] == "ENOTOOL" and not a["ok"], a)
    a, _ = run("resolve.py", {"packages": ["a>=0"], "tool": "uv", "uv": made_up("printf '\\033[31mred\\007\\377' >&2; /usr/bin/yes x | /usr/bin/head -c 9999 >&2; exit 1\n")}, {})
    check("what it says is cut and plain", a["text"].startswith("red ") and len(a["text"]) == 4096 and "\x1b" not in a["text"], a)


def older_toml():
    """Without tomllib pip's own reader is used, without either pip itself."""
    driver = load(os.path.join(DRIVERS, "resolve.py"), "resolve_driver")
    with unittest.mock.patch.dict(sys.modules, {"tomllib": None}):
        check("pip's tomli", driver.toml_reader() is not None)
    with unittest.mock.patch.dict(sys.modules, {"tomllib": None, "pip._vendor": None}):
        check("no reader", driver.toml_reader() is None)


TAGS = '''
import importlib.util, inspect, json, sys
spec = importlib.util.spec_from_file_location("driver", sys.argv[1])
d = importlib.util.module_from_spec(spec)
spec.loader.exec_module(d)
from pip._vendor.packaging import tags, _manylinux, _musllinux
from pip._internal.utils.compatibility_tags import get_supported
def flat(ts):
    """As lists; of each interpreter and ABI the plain `linux_*` first, which older ones have last."""
    groups = {}
    for t in ts:
        groups.setdefault((t.interpreter, t.abi, t.platform == "any"), []).append([t.interpreter, t.abi, t.platform])
    return [t for g in groups.values() for t in sorted(g, key=lambda t: not t[2].startswith("linux_"))]
def ours(*a, **k): return [list(t) for t in d.tags(*a, **k)]
out = {"here": [ours(*d.libc(), d.architecture()), flat(get_supported())]}
known = {tuple(t) for t in flat(tags.sys_tags())}
out["sys_tags"] = [[t for t in ours(*d.libc(), d.architecture()) if tuple(t) in known], flat(tags.sys_tags())]
_manylinux._is_compatible = _manylinux._have_compatible_abi = lambda *a: True
def plat(module, arch):
    takes = list(inspect.signature(module.platform_tags).parameters)
    return list(module.platform_tags(*(["linux_" + arch, arch] if len(takes) == 2 else [[arch]] if takes == ["archs"] else [arch]))) + ["linux_" + arch]
def manylinux(minor, arch):
    _manylinux._get_glibc_version = lambda: (2, minor)
    return plat(_manylinux, arch)
def musllinux(minor, arch):
    _musllinux._get_musl_version = lambda *a: _musllinux._MuslVersion(1, minor)
    return plat(_musllinux, arch)
for kind, f, minors in (("glibc", manylinux, (17, 31, 36, 41)), ("musl", musllinux, (1, 2, 5))):
    for arch in ("x86_64", "aarch64"):
        for minor in minors:
            places = f(minor, arch)
            for v in ((3, 9), (3, 11), (3, 13)):
                cp = "cp3%d" % v[1]
                places = ["linux_" + arch] + [p for p in places if not p.startswith("linux_")]
                theirs = flat(tags.cpython_tags(v, [cp], places)) + flat(tags.compatible_tags(v, cp, places))
                out["%s 2.%d %s %s" % (kind, minor, arch, cp)] = [ours(kind, minor, arch, v, ""), theirs]
print(json.dumps(out))
'''


def tag_lists(interpreter):
    p = subprocess.run([interpreter, "-c", TAGS, os.path.join(DRIVERS, "resolve.py")], capture_output=True, check=False)
    if not check(f"tags of {interpreter}", p.returncode == 0, p.stderr.decode()[-600:]):
        return
    for name, (ours, theirs) in json.loads(p.stdout).items():
        at = next((i for i, (a, b) in enumerate(zip(ours, theirs)) if a != b), min(len(ours), len(theirs)))
        check(f"tags {interpreter} {name}", ours == theirs, (at, ours[at:at + 2], theirs[at:at + 2], len(ours), len(theirs)))


def main():
    for interpreter in [PYTHON] + options():
        rows("pip", {"tool": "pip"}, interpreter)
        tag_lists(interpreter)
    trouble("pip", {"tool": "pip"})
    ours("pip", {"tool": "pip"})
    hygiene()
    older_toml()
    if uv_path():
        rows("uv", {"tool": "uv", "uv": uv_path()}, PYTHON)
        trouble("uv", {"tool": "uv", "uv": uv_path()})
        ours("uv", {"tool": "uv", "uv": uv_path()})
    else:
        print("uv was not tested: REEVE_UV names none")
    end("drivers_python")


if __name__ == "__main__":
    main()
