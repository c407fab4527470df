#!/usr/bin/python3
"""What `reeve-unpack build` and `compiled` make, beside what pip and npm make of the same artifacts.

    build.py REEVE-UNPACK

Prints one line per failure and a last line with what was checked. Exit status 1 if any failed.
"""
import hashlib, json, os, shutil, struct, subprocess, sys, tarfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import Helper, Tarball, Wheel, check, finish, info, tree

MTIME = 315532800
SITE = "lib/python3.11/site-packages"

def demo():
    """A wheel with everything that a wheel may have."""
    return Wheel(name="Demo-Pack", stem="Demo_Pack-1.0", lock_name="demo-pack", headers="License: MIT\n", entry_points=
                 "[other]\nx = not looked at\n[console_scripts]\n# a comment\ndemo = demo.main:run\ndemo-two=demo:Thing.go [extra]\n\n[gui_scripts]\n  demo-gui = demo:gui\n",
                 files=[("demo/__init__.py", "gui = 1\n"), ("demo/main.py", "def run():\n    print('ran')\n"), ("demo/tool", "#!/bin/sh\n", 0o755),
                        ("demo/data/d\u00e9.txt", "\u00e9"), ("demo/", ""),
                        ("Demo_Pack-1.0.data/purelib/pure.py", "p = 1\n"), ("Demo_Pack-1.0.data/platlib/plat.py", "p = 2\n"),
                        ("Demo_Pack-1.0.data/scripts/demo-script", "#!python\nprint('script')\n", 0o755),
                        ("Demo_Pack-1.0.data/scripts/demo-w", "#!pythonw -E\r\nprint('w')\n", 0o755),
                        ("Demo_Pack-1.0.data/scripts/demo-sh", "#!/bin/sh\necho sh\n", 0o755),
                        ("Demo_Pack-1.0.data/scripts/demo", "#!python\nprint('hidden by the entry point')\n", 0o755),
                        ("Demo_Pack-1.0.data/data/share/demo/x.conf", "x\n"), ("Demo_Pack-1.0.data/headers/demo.h", "int x;\n")])

def manifest_of(top):
    """The manifest that describes what lies in a directory, made here on our own."""
    entries = []
    for path, (kind, mode, content) in tree(top).items():
        e = {"path": path, "type": kind, "mode": mode, "size": len(content)}
        if kind == "file":
            e["sha256"] = hashlib.sha256(content).hexdigest()
        if kind == "link":
            e["target"] = content
        entries.append(e)
    entries.sort(key=lambda e: e["path"].encode())
    return json.dumps({"entries": entries, "schema": "reeve.manifest/1"}, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

def judge_tree(name, result, staging):
    """What holds of every layer."""
    with open(os.path.join(staging, "manifest.json"), "rb") as f:
        manifest = f.read()
    made = tree(os.path.join(staging, "tree"))
    files = [c for k, _, c in made.values() if k == "file"]
    check(name + ": the manifest", manifest == manifest_of(os.path.join(staging, "tree")))
    check(name + ": the result", result == {"n_files": len(files), "bytes": sum(map(len, files)), "manifest_sha256": hashlib.sha256(manifest).hexdigest()}, result)
    check(name + ": nothing else", sorted(os.listdir(staging)) == ["manifest.json", "tree"], os.listdir(staging))
    times = {os.lstat(os.path.join(staging, "tree", p)).st_mtime for p in ["", *made]}
    check(name + ": times", times == {MTIME}, times)
    modes = {(k, m) for k, m, _ in made.values()}
    check(name + ": modes", modes <= {("file", 0o644), ("file", 0o755), ("directory", 0o755), ("link", 0o777)}, modes)
    return made

# ---- Python ----

def python_tree(helper):
    result, staging = helper.build("python", [demo(), Wheel(name="other")])
    made = judge_tree("python", result, staging)
    text = lambda p: made.get(p, ("", 0, b""))[2]
    check("pyvenv.cfg", text("pyvenv.cfg") == b"home = /usr/bin\ninclude-system-site-packages = false\nversion = 3.11\n", text("pyvenv.cfg"))
    for n in "python", "python3":
        check(n, made.get("bin/" + n) == ("link", 0o777, "/usr/bin/python3"), made.get("bin/" + n))
    for path, mode, content in (
        (SITE + "/demo/tool", 0o755, b"#!/bin/sh\n"), (SITE + "/demo/main.py", 0o644, None), (SITE + "/pure.py", 0o644, b"p = 1\n"), (SITE + "/plat.py", 0o644, b"p = 2\n"),
        ("bin/demo-script", 0o755, b"#!/venv/bin/python3\nprint('script')\n"), ("bin/demo-w", 0o755, b"#!/venv/bin/python3\nprint('w')\n"),
        ("bin/demo-sh", 0o755, b"#!/bin/sh\necho sh\n"), ("share/demo/x.conf", 0o644, b"x\n"), ("include/site/python3.11/demo-pack/demo.h", 0o644, b"int x;\n"),
        (SITE + "/Demo_Pack-1.0.dist-info/INSTALLER", 0o644, b"reeve\n"), (SITE + "/demo/data/d\u00e9.txt", 0o644, "\u00e9".encode()),
    ):
        got = made.get(path, ("", 0, b""))
        check(path, got[0] == "file" and got[1] == mode and content in (None, got[2]), got)
    with_record = dict((n, d) for n, d, _ in demo().members())
    check("RECORD is kept", text(SITE + "/Demo_Pack-1.0.dist-info/RECORD") == with_record["Demo_Pack-1.0.dist-info/RECORD"])
    check("a script of an entry point", b"from demo.main import run\n" in text("bin/demo") and b"sys.exit(run())" in text("bin/demo"), text("bin/demo"))
    check("a method", b"from demo import Thing\n" in text("bin/demo-two") and b"sys.exit(Thing.go())" in text("bin/demo-two"), text("bin/demo-two"))
    check("no data directory", not any(".data" in p for p in made), list(made))
    again, second = helper.build("python-again", [demo(), Wheel(name="other")])
    check("the same again", again == result and tree(second + "/tree") == made, (again, result))
    return made

def python_beside_pip(helper, made):
    """pip takes the same wheels; what differs is known."""
    wheels = os.path.join(helper.top, "wheels")
    os.mkdir(wheels)
    paths = []
    for w in demo(), Wheel(name="other"):
        paths.append(os.path.join(wheels, w.file_name))
        with open(paths[-1], "wb") as f:
            f.write(w.data())
    venv = os.path.join(helper.top, "venv")
    run = lambda *c: subprocess.run(c, capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin", "HOME": helper.top, "PIP_CONFIG_FILE": "/dev/null", "TMPDIR": helper.top})
    p = run("/usr/bin/python3", "-m", "pip", "--version")
    if p.returncode != 0:
        return print("skipped: beside pip: /usr/bin/python3 has no pip")
    version = "%d.%d" % sys.version_info[:2]
    site = f"lib/python{version}/site-packages"
    os.makedirs(os.path.join(venv, "bin"))
    os.makedirs(os.path.join(venv, site))
    os.symlink("/usr/bin/python3", os.path.join(venv, "bin/python3"))
    with open(os.path.join(venv, "pyvenv.cfg"), "w", encoding="ascii") as f:
        f.write("home = /usr/bin\ninclude-system-site-packages = false\n")
    p = run("/usr/bin/python3", "-m", "pip", "--python", os.path.join(venv, "bin/python3"), "install", "--no-index", "--no-deps", "--no-compile", "--no-cache-dir", "--quiet",
            "--disable-pip-version-check", *paths)
    if p.returncode != 0 and "no such option: --python" in p.stderr:
        return print("skipped: beside pip: this pip has no option --python")
    check("pip", p.returncode == 0, p.stderr)
    theirs = {}
    for path, (kind, mode, content) in tree(venv).items():
        name = os.path.basename(path)
        if kind != "file" or name in ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "pyvenv.cfg"):
            continue
        first, _, rest = content.partition(b"\n")
        if path.startswith("bin/") and first.endswith(b"/python3"):
            content = b"#!/venv/bin/python3\n" + rest
        theirs[path.replace(f"python{version}", "python3.11").replace("/Demo-Pack/", "/demo-pack/")] = (kind, mode, content)
    ours = {p: v for p, v in made.items() if v[0] == "file" and os.path.basename(p) not in ("INSTALLER", "RECORD", "pyvenv.cfg")}
    for path in sorted(set(ours) | set(theirs)):
        check("as pip: " + path, ours.get(path) == theirs.get(path), (ours.get(path), theirs.get(path)))

def python_runs(helper):
    """The tree as a virtual environment, where it lies."""
    version = "%d.%d" % sys.version_info[:2]
    _, staging = helper.build("runs", [demo()], version=version)
    python = staging + "/tree/bin/python3"
    p = subprocess.run([python, "-c", "import demo.main, sys; demo.main.run(); print(sys.prefix)"], capture_output=True, text=True, check=False)
    check("it is an environment", p.stdout == f"ran\n{staging}/tree\n", (p.stdout, p.stderr))
    p = subprocess.run([python, "-c", "import importlib.metadata as m; print(m.version('demo-pack'), sorted(e.name for e in m.distribution('demo-pack').entry_points))"],
                       capture_output=True, text=True, check=False)
    check("its packages are known", p.stdout.startswith("1.0 ['demo', 'demo-gui', 'demo-two'"), (p.stdout, p.stderr))
    p = subprocess.run([python, staging + "/tree/bin/demo"], capture_output=True, text=True, check=False)
    check("its script runs", p.stdout == "ran\n", (p.stdout, p.stderr))

def python_refusals(helper):
    data = lambda name: Wheel(files=[("demo.py", "x"), ("demo-1.0.data/data/" + name, "evil")])
    script = lambda name: Wheel(files=[("demo.py", "x"), ("demo-1.0.data/scripts/" + name, "evil")])
    one, two = Wheel(files=[("same.py", "x")]), Wheel(name="two", files=[("same.py", "x")])
    for i, (name, packages, change, cause, text, package) in enumerate((
        ("two of one path", [one, two], None, "unsafe_archive", 'demo and two both have the path "' + SITE + '/same.py"', "two"),
        ("a path below another's file", [one, Wheel(name="two", files=[("same.py/x", "x")])], None, "unsafe_archive", "demo and two both have", "two"),
        ("data as pyvenv.cfg", [data("pyvenv.cfg")], None, "unsafe_archive", "the environment and demo both have the path", "demo"),
        ("data as the interpreter", [data("bin/python3")], None, "unsafe_archive", "take the interpreter's place", "demo"),
        ("data as another interpreter", [data("bin/Python3.9")], None, "unsafe_archive", "take the interpreter's place", "demo"),
        ("data over site-packages", [Wheel(files=[("demo.py", "x"), ("demo-1.0.data/data/" + SITE + "/demo.py", "y")])], None, "unsafe_archive", "demo and demo both have", "demo"),
        ("data below the interpreter", [data("bin/python3/x")], None, "unsafe_archive", "the environment and demo both have", "demo"),
        ("a script as the interpreter", [script("python")], None, "unsafe_archive", "take the interpreter's place", "demo"),
        ("other bytes", [one], lambda j: j["packages"][0].update(sha256="0" * 64), "hash_mismatch", "and the lock says 000", "demo"),
        ("another version", [one], lambda j: j["packages"][0].update(version="2"), "name_mismatch", "", "demo"),
        ("not there", [one], lambda j: j["packages"][0].update(file="none"), "build_failed", "No such file", "demo"),
        ("hostile", [Wheel(files=[("demo.py", "x"), ("../x", "y")])], None, "unsafe_archive", "leads out", "demo"),
        ("hostile in the second pass", [Wheel(rows=lambda r: [(n, h, s + 1) for n, h, s in r])], None, "unsafe_archive", "not what RECORD says", "demo"),
    )):
        result, staging = helper.build(f"refused{i}", packages, change=change)
        fault = result.get("fault", {})
        check(name, fault.get("cause") == cause and text in fault.get("text", "") and fault.get("package") == package, result)
        check(name + ": no manifest", not os.path.exists(staging + "/manifest.json"))
    check("nothing outside", sorted(os.listdir(helper.top)) == sorted(n for n in os.listdir(helper.top) if n in ("artifacts", "wheels", "venv", "npm") or os.path.isdir(os.path.join(helper.top, n))))

# ---- JavaScript ----

A = Tarball(name="a", files=[("cli.js", "#!/usr/bin/env node\r\nconsole.log('a')\r\n"), ("lib/x.js", "1", 0o755), ("other.js", "#!/usr/bin/env node\n"), ("w.js", "2", 0o444)],
            manifest={"bin": {"a": "./cli.js", "../../evil": "other.js", "out": "../../etc/passwd", "none": "none.js", "b/a2": "lib/../other.js"}})
B = Tarball(name="@s/b", files=[("bin/b.js", "#!/usr/bin/env node\n")], manifest={"bin": "bin/b.js"}, top="b")
C = Tarball(name="c", files=[("tools/one", "#!/bin/sh\n"), ("tools/.hidden", "")], manifest={"directories": {"bin": "tools"}})
AT = [["node_modules/a", "node_modules/@s/b/node_modules/a"], ["node_modules/@s/b"], ["node_modules/alias"]]

def modules_tree(helper):
    result, staging = helper.build("modules", [A, B, C], at=AT)
    made = judge_tree("modules", result, staging)
    for path, want in {
        ".bin/a": ("link", 0o777, "../a/cli.js"), ".bin/evil": ("link", 0o777, "../a/other.js"), ".bin/a2": ("link", 0o777, "../a/other.js"), ".bin/b": ("link", 0o777, "../@s/b/bin/b.js"),
        ".bin/one": ("link", 0o777, "../alias/tools/one"), "@s/b/node_modules/.bin/a": ("link", 0o777, "../a/cli.js"), "a/lib/x.js": ("file", 0o755, b"1"), "a/w.js": ("file", 0o644, b"2"),
        "a/cli.js": ("file", 0o755, b"#!/usr/bin/env node\nconsole.log('a')\r\n"), "@s/b/node_modules/a/cli.js": ("file", 0o755, b"#!/usr/bin/env node\nconsole.log('a')\r\n"),
        "alias/tools/one": ("file", 0o755, b"#!/bin/sh\n"), "alias/tools/.hidden": ("file", 0o644, b"")}.items():
        check(path, made.get(path) == want, made.get(path))
    for path in ".bin/out", ".bin/none", ".bin/.hidden":
        check("no " + path, path not in made)
    check("every link leads to a file", all(os.path.isfile(os.path.join(staging, "tree", p)) for p, v in made.items() if v[0] == "link"))
    again, second = helper.build("modules-again", [A, B, C], at=AT)
    check("the same again", again == result and tree(second + "/tree") == made)
    return made

def modules_beside_npm(helper, made):
    """npm takes the same tarballs, by path."""
    npm = "/usr/bin/npm"
    if not os.path.exists(npm):
        return print("skipped: beside npm: there is no " + npm)
    top = os.path.join(helper.top, "npm")
    os.mkdir(top)
    for n, p in ("a.tgz", A), ("b.tgz", B), ("c.tgz", C):
        with open(os.path.join(top, n), "wb") as f:
            f.write(p.data())
    for n in "user", "global":
        with open(os.path.join(top, n), "w", encoding="ascii"):
            pass
    with open(os.path.join(top, "package.json"), "w", encoding="ascii") as f:
        json.dump({"private": True, "dependencies": {"a": "file:a.tgz", "@s/b": "file:b.tgz", "alias": "file:c.tgz"}}, f)
    settings = {"cache": top + "/cache", "userconfig": top + "/user", "globalconfig": top + "/global", "offline": "true", "audit": "false", "fund": "false", "ignore_scripts": "true", "update_notifier": "false"}
    p = subprocess.run([npm, "install", "--silent"], cwd=top, capture_output=True, text=True, check=False, timeout=120,
                       env={"PATH": "/usr/bin:/bin", "HOME": top, **{"npm_config_" + k: v for k, v in settings.items()}})
    check("npm", p.returncode == 0, (p.stdout, p.stderr))
    theirs = {p: v for p, v in tree(top + "/node_modules").items() if p != ".package-lock.json" and v[0] != "directory"}
    ours = {p: v for p, v in made.items() if v[0] != "directory" and not p.startswith("@s/b/node_modules")}
    for path in sorted(set(ours) | set(theirs)):
        check("as npm: " + path, ours.get(path) == theirs.get(path), (ours.get(path), theirs.get(path)))

def modules_run(helper):
    node = "/usr/bin/node"
    if not os.path.exists(node):
        return print("skipped: the modules run: there is no " + node)
    _, staging = helper.build("modules-run", [Tarball(name="a", files=[("index.js", "module.exports = 7\n"), ("cli.js", "#!/usr/bin/env node\nconsole.log('cli')\n")], manifest={"bin": "cli.js"})])
    os.symlink("tree", staging + "/node_modules")
    with open(staging + "/main.cjs", "w", encoding="ascii") as f:
        f.write("console.log(require('a'))\n")
    p = subprocess.run([node, staging + "/main.cjs"], capture_output=True, text=True, check=False)
    check("a module is found", p.stdout == "7\n", (p.stdout, p.stderr))
    p = subprocess.run([staging + "/tree/.bin/a"], capture_output=True, text=True, check=False, env={"PATH": "/usr/bin:/bin"})
    check("a command runs", p.stdout == "cli\n", (p.stdout, p.stderr))

def modules_refusals(helper):
    for i, (name, packages, at, cause, text) in enumerate((
        ("two of one place", [A, Tarball(name="b")], [["node_modules/a"], ["node_modules/a"]], "unsafe_archive", "a and b both have the path"),
        ("one twice", [A], [["node_modules/a", "node_modules/a"]], "unsafe_archive", "a and a both have the path"),
        ("below another's file", [Tarball(name="a", files=[("node_modulez", "x")]), Tarball(name="b", files=[("x", "")])], [["node_modules/a"], ["node_modules/a"]], "unsafe_archive", "both have"),
        ("hostile", [Tarball(name="a", raw=[(info("package/l", tarfile.SYMTYPE, "/"), "")])], None, "unsafe_archive", "symbolic link"),
    )):
        result, _ = helper.build(f"modules-refused{i}", packages, at=at)
        check("modules: " + name, result.get("fault", {}).get("cause") == cause and text in result["fault"]["text"], result)

def jobs(helper):
    helper.put("x", A.data())
    one = {"file": "x", "name": "a", "version": "1.0.0", "sha256": hashlib.sha256(A.data()).hexdigest()}
    runtime = {"version": "3.11", "interpreter": "/usr/bin/python3"}
    rows = [(f"the place {at}", {"language": "javascript", "packages": [{**one, "at": [at]}]}) for at in (
        "a", "../a", "/node_modules/a", "node_modules", "node_modules/", "node_modules/../a", "node_modules/.bin", "node_modules/a/../b", "node_modules/a/b", "node_modules/@s",
        "node_modules/@/a", "node_modules/a/node_modules", "node_modules/a/node_modules/", "node_modules/node_modules", "node_modules//a", "node_modules/a\\b", "node_modules/.a", "")]
    rows += [("no place", {"language": "javascript", "packages": [one]}), ("no digest", {"language": "python", "runtime": runtime, "packages": [{**one, "sha256": "x"}]}),
             ("no language", {"packages": [one]}), ("no runtime", {"language": "python", "packages": [one]})]
    rows += [(f"the version {v}", {"language": "python", "runtime": {**runtime, "version": v}, "packages": [one]}) for v in ("3", "2.7", "3.11/../x", "3.", "3.1111", "")]
    rows += [(f"the interpreter {v}", {"language": "python", "runtime": {**runtime, "interpreter": v}, "packages": [one]}) for v in ("python3", "/python3", "/usr/../x/python3", "/usr/bin/p\n")]
    for i, (name, job) in enumerate(rows):
        staging = helper.staging(f"job{i}")
        status, _, text = helper.run("build", job, helper.artifacts, staging)
        check("job: " + name, status == 2 and not os.listdir(staging), (status, text))
    staging = helper.staging("job-full")
    os.mkdir(staging + "/tree")
    status, _, text = helper.run("build", {"language": "javascript", "packages": [{**one, "at": ["node_modules/a"]}]}, helper.artifacts, staging)
    check("job: a directory that is not empty", status == 1 and "File exists" in text, (status, text))

# ---- Byte code ----

def frame(path, data):
    path = path if isinstance(path, bytes) else path.encode()
    return b"RVPC" + struct.pack("<II", len(path), len(data)) + path + data

def end(n):
    return b"RVPE" + struct.pack("<II", n, 0)

def compiled(helper):
    code = b"\xa7\x0d\x0d\x0a" + struct.pack("<I", 1) + bytes(8) + b"code"
    pyc = SITE + "/demo/__pycache__/main.cpython-311.pyc"
    top = os.path.join(helper.top, "compiled-layer")
    _, staging = helper.build("compiled-of", [demo()])
    shutil.copytree(staging + "/tree", top, symlinks=True)
    os.symlink("main.py", top + "/" + SITE + "/demo/linked.py")
    def run(i, data):
        out = helper.staging(f"compiled{i}")
        helper.put("frames", data)
        status, result, text = helper.run("compiled", {"file": "frames"}, helper.artifacts, out, top)
        check(f"compiled {i}: status", status == 0, (status, text))
        return result or {}, out
    result, out = run("good", frame(pyc, code) + frame(SITE + "/demo/__pycache__/__init__.cpython-311.pyc", code * 9000) + frame(SITE + "/__pycache__/pure.cpython-311.pyc", code) + end(3))
    made = tree(out)
    with open(out + "/manifest-compiled.json", "rb") as f:
        manifest = json.load(f)
    check("compiled: files", made.get(pyc) == ("file", 0o644, code) and result.get("n_files") == 3, (result, made.get(pyc)))
    check("compiled: its manifest", [(e["path"].split("/")[-1], e["type"]) for e in manifest["entries"]] == [
        ("__pycache__", "directory"), ("pure.cpython-311.pyc", "file"), ("__pycache__", "directory"), ("__init__.cpython-311.pyc", "file"), ("main.cpython-311.pyc", "file")], manifest)
    check("compiled: none", run("none", end(0))[0].get("n_files") == 0)
    for name, data, text in (
        ("of no source", frame(SITE + "/demo/__pycache__/none.cpython-311.pyc", code) + end(1), "of no source"),
        ("of a link", frame(SITE + "/demo/__pycache__/linked.cpython-311.pyc", code) + end(1), "of no source"),
        ("of a directory", frame(SITE + "/demo/none/__pycache__/a.cpython-311.pyc", code) + end(1), "of no source"),
        ("elsewhere", frame("bin/__pycache__/main.cpython-311.pyc", code) + end(1), "not where byte code belongs"),
        ("a source", frame(SITE + "/demo/main.py", code) + end(1), "not where byte code belongs"),
        ("no tag", frame(SITE + "/demo/__pycache__/main.pyc", code) + end(1), "not where byte code belongs"),
        ("a tag of more", frame(SITE + "/demo/__pycache__/main.cpython-311.opt-1.x.pyc", code) + end(1), "not where byte code belongs"),
        ("beside the cache", frame(SITE + "/demo/main.cpython-311.pyc", code) + end(1), "not where byte code belongs"),
        ("no whole part", frame(SITE + "/demo/x__pycache__/main.cpython-311.pyc", code) + end(1), "not where byte code belongs"),
        ("traversal", frame(SITE + "/../site-packages/demo/__pycache__/main.cpython-311.pyc", code) + end(1), "leads out"),
        ("absolute", frame("/" + pyc, code) + end(1), "absolute"),
        ("NUL", frame(pyc + "\0", code) + end(1), "control"),
        ("twice", frame(pyc, code) * 2 + end(2), "both have the path"),
        ("empty", frame(pyc, b"") + end(1), "is empty"),
        ("compared with its source", frame(pyc, code[:4] + bytes(4) + code[8:]) + end(1), "compared with its source"),
        ("no byte code", frame(pyc, b"import os") + end(1), "is none"),
        ("a count that is wrong", frame(pyc, code) + end(2), "another number of frames"),
        ("more behind it", frame(pyc, code) + end(1) + b"x", "goes on behind its end"),
        ("cut", frame(pyc, code)[:-1], "is cut off"),
        ("no end", frame(pyc, code), "is cut off"),
        ("nothing", b"", "is cut off"),
        ("text", b"Traceback (most recent call last):", "no frame"),
        ("a path too long", b"RVPC" + struct.pack("<II", 1 << 30, 1), "too large"),
        ("data too long", b"RVPC" + struct.pack("<II", 3, 1 << 31) + b"abc", "too large"),
    ):
        result, out = run(name.replace(" ", "-"), data)
        fault = result.get("fault", {})
        check("compiled: " + name, fault.get("cause") == "unsafe_archive" and text in fault.get("text", ""), result)
        check("compiled: " + name + ": no manifest", not os.path.exists(out + "/manifest-compiled.json"))

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    h = Helper(sys.argv[1])
    try:
        python_beside_pip(h, python_tree(h))
        python_runs(h)
        python_refusals(h)
        modules_beside_npm(h, modules_tree(h))
        modules_run(h)
        modules_refusals(h)
        jobs(h)
        compiled(h)
    finally:
        h.close()
    sys.exit(finish("build"))
