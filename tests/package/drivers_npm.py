#!/usr/bin/python3
"""What the driver for the packages of JavaScript answers, with registries made on the spot.

    drivers_npm.py [--read READ_CLOSURE] [NODE…]      (further nodes, each with an npm of its own beside it)
"""
import os, shutil, sys, tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import NODE, Registry, check, end, is_well_formed, npm_packages, options, read_closure, registry_socket, run

PACKAGES = npm_packages(
    ("app", "1.0.0", {"dependencies": {"lib": "^1"}, "license": "MIT"}), ("lib", "1.0.0"), ("lib", "1.1.0"), ("lib", "1.2.0"), ("lib", "2.0.0-rc.1"), ("lib", "2.1.0"),
    ("other", "1.0.0", {"dependencies": {"lib": "^2"}}), ("@scope/thing", "1.0.0"), ("script", "1.0.0", {"scripts": {"postinstall": "touch /tmp/never"}}),
    ("renamed", "1.0.0", {"dependencies": {"foo": "npm:lib@1.0.0"}}), ("maybe", "1.0.0", {"optionalDependencies": {"not-there": "1"}}),
    ("git", "1.0.0", {"dependencies": {"x": "git+file:///nowhere/x.git"}}), ("short", "1.0.0", {"dependencies": {"x": "user/repository"}}),
    ("url", "1.0.0", {"dependencies": {"x": "http://127.0.0.1:9/x.tgz"}}), ("broken", "1.0.0", {"dependencies": {"not-there": "1"}}),
    ("peer-a", "1.0.0", {"peerDependencies": {"lib": "1.0.0"}}), ("windows", "1.0.0", {"os": ["win32"]}),
    ("young", "1.0.0"), ("young", "1.1.0"))
for p in PACKAGES:
    if (p["name"], p["version"]) == ("young", "1.1.0"):
        p["time"] = "2023-06-01T12:00:00.000Z"

# (what, packages, members of the job, answer): {place: version}; a text: that code
ROWS = [
    ("closure", ["app@^1"], {}, {"app": "1.0.0", "lib": "1.2.0"}),
    ("exact", ["lib@1.0.0"], {}, {"lib": "1.0.0"}),
    ("latest", ["lib@latest"], {}, {"lib": "2.1.0"}),
    ("any", ["lib@*"], {}, {"lib": "2.1.0"}),
    ("hyphen", ["lib@1.0 - 1.1"], {}, {"lib": "1.1.0"}),
    ("alternatives", ["lib@1.0.0 || ^2"], {}, {"lib": "2.1.0"}),
    ("pre-release", ["lib@2.0.0-rc.1"], {}, {"lib": "2.0.0-rc.1"}),
    ("scope", ["@scope/thing@^1"], {}, {"@scope/thing": "1.0.0"}),
    ("two versions", ["app@1", "other@1"], {}, {"app": "1.0.0", "other": "1.0.0", "lib": None, "other/node_modules/lib": "2.1.0"}),
    ("script", ["script@1"], {}, {"script": "1.0.0"}),
    ("alias within", ["renamed@1"], {}, {"renamed": "1.0.0", "foo": "1.0.0"}),
    ("optional that is not there", ["maybe@1"], {}, {"maybe": "1.0.0"}),
    ("asked for twice", ["lib@^1", "lib@<1.2"], {}, {"lib": "1.1.0"}),
    ("twice, one of them any", ["lib@*", "lib@<1.2"], {}, {"lib": "1.1.0"}),
    ("twice, with alternatives", ["lib@1.0.0 || ^2", "lib@<2"], {}, {"lib": "1.0.0"}),
    ("twice, which cannot be both", ["lib@^1", "lib@^2"], {}, "ETARGET"),
    ("twice, hyphen", ["lib@1 - 2", "lib@<2"], {}, "ERESOLVE"),
    ("twice, latest", ["lib@latest", "lib@<2"], {}, "ERESOLVE"),
    ("pinned", ["app@1"], {"pins": {"lib": "1.0.0"}}, {"app": "1.0.0", "lib": "1.0.0"}),
    ("pinned itself", ["lib@^1"], {"pins": {"lib": "1.0.0"}}, {"lib": "1.0.0"}),
    ("pinned latest", ["lib@latest"], {"pins": {"lib": "1.0.0"}}, {"lib": "1.0.0"}),
    ("pinned to a pre-release", ["lib@*"], {"pins": {"lib": "2.0.0-rc.1"}}, {"lib": "2.0.0-rc.1"}),
    ("pinned both ways", ["app@1", "lib@^1"], {"pins": {"lib": "1.1.0"}}, {"app": "1.0.0", "lib": "1.1.0"}),
    ("pinned against what is asked", ["lib@^2"], {"pins": {"lib": "1.0.0"}}, "ERESOLVE"),
    ("pinned to what is not there", ["app@1"], {"pins": {"lib": "1.9.9"}}, "ETARGET"),
    ("not the younger", ["young@1"], {"newest_published": 1600000000}, {"young": "1.0.0"}),
    ("of that very second", ["young@1"], {"newest_published": 1685620800}, {"young": "1.1.0"}),
    ("of the second before", ["young@1"], {"newest_published": 1685620799}, {"young": "1.0.0"}),
    ("all too young", ["young@1"], {"newest_published": 1000000000}, ("ETARGET", "ENOVERSIONS")),
    ("missing package", ["nowhere@1"], {}, "E404"),
    ("missing version", ["lib@9"], {}, "ETARGET"),
    ("missing, of another", ["broken@1"], {}, "E404"),
    ("peers in conflict", ["peer-a@1", "lib@^2"], {}, "ERESOLVE"),
    ("a repository", ["git@1"], {}, None),
    ("a repository, in short", ["short@1"], {}, None),
    ("a URL", ["url@1"], {}, None),
    ("an option", ["--registry=x"], {}, "EJOB"),
    ("an alias", ["foo@npm:lib@1"], {}, "EJOB"),
    ("a URL asked for", ["lib@http://127.0.0.1/x.tgz"], {}, "EJOB"),
    ("a path asked for", ["lib@file:../x"], {}, "EJOB"),
    ("a name that climbs", ["../lib@1"], {}, "EJOB"),
    ("__proto__", ["__proto__@1"], {}, "EJOB"),
    ("no range", ["lib"], {}, "EJOB"),
    ("a pin that is none", ["lib@1"], {"pins": {"lib": "^1"}}, "EJOB"),
    ("the other language's", ["lib@1"], {"language": "python"}, "EJOB"),
]


def judge(name, wanted, a):
    if not check(f"{name}: form", is_well_formed(a), a):
        return
    if not isinstance(wanted, dict):
        codes = wanted if isinstance(wanted, tuple) else (wanted,)
        check(name, not a["ok"] and "lock" not in a and a["exit"] != 0 and (wanted is None or a["code"] in codes) and a["text"], a)
        check(f"{name}: no paths of the cache", "/reeve-d" not in a["text"] and "reeve-resolve" not in a["text"], a)
        return
    if not check(name, a["ok"] and "lock" in a and a["code"] is None, a):
        return
    places = {k[len("node_modules/"):]: v for k, v in a["lock"]["packages"].items() if k}
    got = {k: v["version"] for k, v in places.items()}
    check(name, set(got) == set(wanted) and all(w is None or got[k] == w for k, w in wanted.items()), got)
    check(f"{name}: locked", a["lock"]["lockfileVersion"] == 3 and all(v["integrity"].startswith("sha512-") and "resolved" not in v for v in places.values()), places)
    check(f"{name}: origin", a["tool"]["name"] == "npm" and a["tool"]["version"] and a["runtime"]["tag"].startswith("node-linux-"), a)


def rows(node):
    with Registry("npm", PACKAGES) as r:
        env = {"REEVE_NPMRC": f"registry={r.url}\n", "npm_config_registry": "", "HTTPS_PROXY": "http://127.0.0.1:9", "NODE_PATH": "/nowhere"}
        for name, packages, members, wanted in ROWS:
            a, err = run("resolve.cjs", {"language": "javascript", "tool": "npm", "packages": packages, **members}, env, node)
            if wanted is None and a.get("ok"):
                # npm may lock what is not from the registry: then the lock says so, and reeve refuses it.
                places = [v for k, v in a["lock"]["packages"].items() if k]
                check(f"{name} is seen", any("resolved" in v or "integrity" not in v for v in places), a)
                read_closure(name, "javascript", packages, a, is_taken=False)
                continue
            judge(name, wanted, a)
            check(f"{name}: nothing beside", err == "", err)
            if wanted != "EJOB":
                got = read_closure(name, "javascript", packages, a)
                if name == "two versions" and got:
                    check("paths", got["paths"] == [["app"], ["app", "lib"], ["other", "lib"], ["other"]], got["paths"])
    check("no script was run", not os.path.exists("/tmp/never"))


def trouble():
    for name, members, codes in (("5xx", {"status": 503}, ("E503",)), ("403", {"status": 403}, ("E403",)), ("a sign-in page", {"garbage": True}, ("FETCH_ERROR",))):
        with Registry("npm", PACKAGES, **members) as r:
            a, _ = run("resolve.cjs", {"packages": ["lib@1"]}, {"REEVE_NPMRC": f"registry={r.url}\n"})
            judge(name, codes, a)
    with registry_socket() as port:
        npmrc = f"registry=http://127.0.0.1:{port}/\n//127.0.0.1:{port}/:_authToken=secret-token\n"
        a, _ = run("resolve.cjs", {"packages": ["lib@1"]}, {"REEVE_NPMRC": npmrc})
    judge("nobody there", ("ECONNREFUSED",), a)
    check("no credentials in texts", "secret" not in str(a), a)


def hygiene():
    """An npm that is made up: what it is given, and answers that are none."""
    def beside(script):
        place = tempfile.mkdtemp(prefix="reeve-driver-")
        os.makedirs(place + "/bin")
        os.makedirs(place + "/lib/node_modules/npm/bin")
        os.link(os.path.realpath(NODE), place + "/bin/node") if os.stat(place).st_dev == os.stat(os.path.realpath(NODE)).st_dev else \
            shutil.copy(os.path.realpath(NODE), place + "/bin/node")
        with open(place + "/lib/node_modules/npm/package.json", "w", encoding="ascii") as f:
            f.write('{"name":"npm","version":"0.0.1"}')
        with open(place + "/lib/node_modules/npm/bin/npm-cli.js", "w", encoding="ascii") as f:
            f.write(script)
        return place
    leaks = {"HTTPS_PROXY": "http://127.0.0.1:9", "npm_config_ignore_scripts": "false", "NPM_TOKEN": "x", "NODE_OPTIONS": "", "AWS_SECRET": "x"}
    for name, script, code in (
            ("its environment", "console.error(Object.keys(process.env).sort().join(' ')); process.exit(3)", None),
            ("no lock", "", "EANSWER"), ("a lock that is none", "require('fs').writeFileSync('package-lock.json', '<html>')", "EANSWER"),
            ("killed", "process.kill(process.pid, 'SIGKILL')", None),
            ("a number", "console.log(JSON.stringify({error:{code:128,summary:'git \\u001b[1mfailed\\u0007'}})); process.exit(1)", "128")):
        place = beside(script)
        a, _ = run("resolve.cjs", {"packages": ["lib@1"]}, leaks, place + "/bin/node")
        shutil.rmtree(place)
        check(f"npm: {name}", is_well_formed(a) and not a["ok"] and a["code"] == code and a["tool"]["version"] == "0.0.1", a)
        if name == "its environment":
            names = a["text"].split()
            check("npm's environment", not set(names) & set(leaks) - {"npm_config_ignore_scripts"} and "npm_config_userconfig" in names, a)
        if name == "a number":
            check("its words are plain", a["text"] == "git failed", a)


def main():
    for node in [NODE] + options():
        rows(node)
    trouble()
    hygiene()
    end("drivers_npm")


if __name__ == "__main__":
    main()
