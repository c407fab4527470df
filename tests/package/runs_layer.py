#!/usr/bin/python3
"""What a program finds of its packages: where they lie, what wins, what its processes keep, and that it can change nothing of it.

    runs_layer.py REEVE DRIVE [WORD…]
"""
import json

import runs
from runs import Place, Registry, tarball, wheel

DEMO = {
    "demo/__init__.py": "import os\ndef main():\n    import sys\n    print('script', sys.executable, sys.argv[1:])\n    return 3\ndef fail():\n    raise ValueError('of the layer')\n"
                        "data = open(os.path.join(os.path.dirname(__file__), 'data.txt')).read()\n",
    "demo/__main__.py": "from . import main\nprint('as a module', main())\n",
    "demo/data.txt": "of the package",
    "demo.pth": "import sys; sys.from_pth = 'ran'\n",
    "json.py": "raise ImportError('the standard library comes first')\n",
}
PROGRAM = "import json, os, subprocess, sys\nout = lambda *a: print(*a, flush=True)\n"


def setup():
    global PYTHON, JAVASCRIPT, PLACE, VERSION
    with_script = runs.wheel("demo", "1.5", files={**DEMO, "demo-1.5.dist-info/entry_points.txt": "[console_scripts]\ndemo-tool = demo:main\n"}, requires=["dep>=1"])
    PYTHON = Registry("python", [with_script, wheel("dep", "2.0", files={"dep.py": "import demo\nx = 5\n"}), wheel("later", "1.0", files={"later.py": "y = 6\n"}),
                                 wheel("unrelated", "1.0", files={"unrelated.py": "1\n"})])
    JAVASCRIPT = Registry("javascript", [
        tarball("demo", "1.5.0", files={"index.js": "exports.fail = () => { throw new Error('of the layer'); }; exports.dep = require('dep'); exports.file = __filename;",
                                        "cli.js": "#!/usr/bin/env node\nconsole.log('script', require('dep'), process.argv.slice(2).join());\n", "data.txt": "of the package"},
                manifest={"dependencies": {"dep": "^2"}, "bin": {"demo-tool": "cli.js"}}),
        tarball("dep", "2.1.0"), tarball("@scope/esm", "1.0.0", manifest={"type": "module", "exports": "./index.js"}, files={"index.js": "export default 'a module';"}),
        tarball("later", "1.0.0"), tarball("unrelated", "1.0.0")])
    PLACE = Place(PYTHON, JAVASCRIPT, tool="uv" if runs.UV else "pip")
    VERSION = python("out('%d.%d' % sys.version_info[:2])").ended().lines[0]
    PLACE.run("python", ["unrelated==1.0"]).ended()
    PLACE.run("javascript", ["unrelated@1.0.0"]).ended()


def python(code, packages=("demo==1.5",), **options):
    return PLACE.run("python", packages, PROGRAM + code, **options)


def javascript(code, packages=("demo@1.5.0", "@scope/esm@1.0.0"), **options):
    return PLACE.run("javascript", packages, code, **options)


def site():
    return f"/venv/lib/python{VERSION}/site-packages"


def test_python_where_things_are():
    r = python("import demo, dep\nout(sys.prefix, sys.base_prefix != sys.prefix, sys.executable)\nout(json.dumps(sys.path))\nout(demo.__file__, dep.x, demo.data, sys.from_pth, json.__file__)\n"
               "out(os.environ['PATH'])").ended()
    assert r.lines[0] == "/venv True /venv/bin/python3", r.lines
    path = json.loads(r.lines[1])
    assert path[0] == "/box" and path[-1] == site() and not [p for p in path if "dist-packages" in p or ".local" in p], path
    assert r.lines[2] == f"{site()}/demo/__init__.py 5 of the package ran /usr/lib/python{VERSION}/json/__init__.py", r.lines
    assert r.lines[3] == "/venv/bin:/usr/bin:/bin", r.lines


def test_python_as_modules_and_scripts():
    r = python("for a in (['python3', '-m', 'demo', 'a'], ['demo-tool', 'b'], [sys.executable, '-I', '-c', 'import demo; print(demo.data)'], ['/venv/bin/python', '-c', 'import dep; print(dep.x)']):\n"
               "    p = subprocess.run(a, capture_output=True, text=True)\n    out(p.returncode, p.stdout.split(chr(10))[0:-1], p.stderr)").ended()
    assert r.lines == ["0 ['script /venv/bin/python3 [\\'a\\']', 'as a module 3'] ".replace("\\'", "'").replace("['script", "[\"script").replace("['a']'", "['a']\""),
                       "3 [\"script /venv/bin/python3 ['b']\"] ", "0 ['of the package'] ", "0 ['5'] "], r.lines


def test_python_processes_keep_it():
    r = python("import multiprocessing as m\ndef of(i):\n    import dep\n    return dep.x + i\nif __name__ == '__main__':\n    for how in ('fork', 'spawn', 'forkserver'):\n"
               "        with m.get_context(how).Pool(2) as p: out(how, p.map(of, [1, 2]))").ended()
    assert r.lines == [f"{how} [6, 7]" for how in ("fork", "spawn", "forkserver")], r.lines


def test_python_metadata():
    r = python("import importlib.metadata as m\nout(m.version('demo'), m.version('dep'), sorted(d.metadata['Name'] for d in m.distributions()), m.files('demo')[0].locate().is_file(),\n"
               "    [e.name for e in m.entry_points(group='console_scripts')])").ended()
    assert r.lines == ["1.5 2.0 ['demo', 'dep'] True ['demo-tool']"], r.lines


def test_python_nothing_else():
    """Nothing of the resolver, of the host, or of other layers."""
    r = python("import importlib.util as u\nout([n for n in ('pip', 'setuptools', 'wheel', 'uv', 'unrelated', 'apt', 'yaml', 'later') if u.find_spec(n)])\n"
               "out(os.listdir('/.reeve') if os.path.isdir('/.reeve') else [])\nout([l.split()[4] for l in open('/proc/self/mountinfo') if 'layer' in l or 'packages' in l or 'venv' in l])\n"
               "out(sorted(os.listdir('/venv/bin')))\nout([k for k in os.environ if k.startswith(('PIP', 'UV_', 'npm_', 'REEVE')) and k != 'REEVE_RESULT'])").ended()
    assert r.lines[0] == "[]" and "/venv" in r.lines[2] and r.lines[4] == "[]", r.lines
    assert "unrelated" not in r.all["stdout"]["text"] and "node_modules" not in r.lines[2], r.lines
    assert json.loads(r.lines[3].replace("'", '"')) == ["demo-tool", "python", "python3"], r.lines
    other = PLACE.run("python", ["unrelated==1.0"]).all["packages"]["layer"][7:]
    assert other not in python("out(open('/proc/self/mountinfo').read(), open('/proc/mounts').read())").ended().all["stdout"]["text"]


def test_python_read_only():
    r = python("import demo, errno\nfor what in (lambda: open(demo.__file__, 'a'), lambda: os.unlink(demo.__file__), lambda: open(os.path.join(os.path.dirname(demo.__file__), 'new'), 'w'),\n"
               "    lambda: os.chmod(demo.__file__, 0o777), lambda: os.rename('/venv/bin/python3', '/venv/bin/x'), lambda: os.mkdir('/venv/new')):\n"
               "    try: what(); out('done')\n    except OSError as e: out(e.errno in (errno.EROFS, errno.EACCES, errno.EPERM))").ended()
    assert r.lines == ["True"] * 6, r.lines
    status, out, _ = PLACE.reeve("package", "verify", "--json")
    assert status == 0 and out["status"] == "good", out


def test_python_tracebacks_and_bytecode():
    for _ in range(2):          # before it is compiled, and after
        r = python("import demo\nout(demo.__spec__.cached, os.path.exists(demo.__spec__.cached))\ndemo.fail()")
        assert (r.exit, r.code) == (1, "exit_nonzero"), r.reason
        assert f'File "{site()}/demo/__init__.py", line 7, in fail\n    raise ValueError' in r.all["stderr"]["text"], r.all["stderr"]
    assert r.lines == [f"{site()}/demo/__pycache__/__init__.cpython-{VERSION.replace('.', '')}.pyc True"], r.lines


def test_python_further_packages_by_pip():
    r = python("import pip\np = subprocess.run([sys.executable, '-m', 'pip', 'install', '-q', 'later'], capture_output=True, text=True)\nout(p.returncode, p.stderr)\nimport demo, later\nout(demo.data, later.y, later.__file__)",
               mode="registries").ended()
    assert r.lines[0].startswith("0") and r.lines[-1].startswith("of the package 6 /box/"), r.lines
    r = python("p = subprocess.run('pip install -q later && python3 -c \"import later, demo; print(later.y)\"', shell=True, capture_output=True, text=True)\nout(p.returncode, p.stdout, p.stderr)",
               mode="registries").ended()
    assert r.lines[0].startswith("0 6"), r.lines


def test_python_times():
    place = Place(PYTHON, tool="uv" if runs.UV else "pip")
    cold = place.run("python", ["demo==1.5"]).ended().all["timings_ms"]
    warm = place.run("python", ["demo==1.5"]).ended().all["timings_ms"]
    assert cold["resolve"] > 50 and cold["prepare"] > 2 and cold["run"] < 0.8 * cold["resolve"] + 100, cold
    assert warm["resolve"] < 20 and warm["prepare"] < 20, warm


def test_node_where_things_are():
    r = javascript("import demo from 'demo'; import esm from '@scope/esm'; import { createRequire } from 'node:module'; import fs from 'node:fs';\n"
                   "console.log(demo.dep, esm, require('demo').dep, (await import('@scope/esm')).default, createRequire('/tmp/x.js')('dep'));\n"
                   "console.log(demo.file, process.env.PATH, fs.readFileSync(require.resolve('demo/data.txt'), 'utf8'), fs.readdirSync('/node_modules').sort().join());").ended()
    assert r.lines[0] == "2.1.0 a module 2.1.0 a module 2.1.0", r.lines
    assert r.lines[1] == "/node_modules/demo/index.js /node_modules/.bin:/usr/bin:/bin of the package .bin,@scope,demo,dep", r.lines


def test_node_elsewhere_and_as_scripts():
    r = javascript("const { spawnSync } = require('child_process'); const fs = require('fs');\nfs.writeFileSync('/tmp/a.mjs', \"import d from 'dep'; import e from '@scope/esm'; console.log(d, e)\");\n"
                   "fs.mkdirSync('/tmp/deep'); fs.writeFileSync('/tmp/deep/b.cjs', \"console.log(require('demo').dep)\");\n"
                   "for (const a of [['node', '/tmp/a.mjs'], ['node', '/tmp/deep/b.cjs'], ['demo-tool', 'a', 'b'], ['node', '-p', \"require('dep')\"]]) {\n"
                   "  const p = spawnSync(a[0], a.slice(1), { encoding: 'utf8' }); console.log(p.status, p.stdout.trim(), p.stderr); }").ended()
    assert r.lines == ["0 2.1.0 a module ", "0 2.1.0 ", "0 script 2.1.0 a,b ", "0 2.1.0 "], r.lines


def test_node_workers():
    r = javascript("const { Worker, isMainThread, parentPort } = require('worker_threads');\nif (isMainThread) new Worker(__filename).on('message', (m) => console.log(m)); else parentPort.postMessage(require('dep'));").ended()
    assert r.lines == ["2.1.0"], r.lines


def test_node_read_only_and_nothing_else():
    r = javascript("const fs = require('fs');\nfor (const f of [() => fs.appendFileSync('/node_modules/demo/index.js', 'x'), () => fs.unlinkSync('/node_modules/demo/index.js'), () => fs.mkdirSync('/node_modules/x'),\n"
                   "  () => fs.renameSync('/node_modules/dep', '/node_modules/e')]) try { f(); console.log('done'); } catch (e) { console.log(['EROFS', 'EACCES', 'EPERM'].includes(e.code)); }\n"
                   "for (const m of ['npm', 'lodash', 'unrelated', 'semver']) try { require(m); console.log(m); } catch (e) { if (e.code !== 'MODULE_NOT_FOUND') console.log(e); }\n"
                   "console.log(fs.readFileSync('/proc/self/mountinfo', 'utf8').split('\\n').map(l => l.split(' ')[4]).filter(l => /venv|node_modules|layer|packages/.test(l)).join());\n"
                   "console.log(Object.keys(process.env).filter(k => /^(npm|PIP|REEVE_)/.test(k)).join());").ended()
    assert r.lines[:4] == ["true"] * 4 and r.lines[-1] == "REEVE_RESULT" and "/venv" not in r.lines[-2] and "/node_modules" in r.lines[-2].split(","), r.lines
    assert len(r.lines) == 6, r.lines


def test_node_tracebacks():
    r = javascript("require('demo').fail()")
    assert (r.exit, r.code) == (1, "exit_nonzero") and "at exports.fail (/node_modules/demo/index.js:1:" in r.all["stderr"]["text"], r.all["stderr"]


def test_node_further_packages_by_npm():
    r = javascript("const { spawnSync } = require('child_process');\nconst p = spawnSync('npm', ['install', 'later'], { encoding: 'utf8' });\nconsole.log(p.status, p.status ? p.stderr : '');\n"
                   "console.log(require('demo').dep, require('later'), require.resolve('later'));", mode="registries").ended()
    assert r.lines[0] == "0 " and r.lines[-1] == "2.1.0 1.0.0 /box/node_modules/later/index.js", r.lines


if __name__ == "__main__":
    runs.main(globals())
