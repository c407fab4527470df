#!/usr/bin/python3
"""The drivers with the registries that this machine's package managers use, and how reeve reads what comes of it.

    drivers_real.py [--read READ_CLOSURE]

What is found there changes, so that only what is old is expected to the letter. No name of a registry is printed. Exit
status 77 where they cannot be reached; uv is tested if REEVE_UV names it.
"""
import os, re, subprocess, sys, time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from harness import PYTHON, check, counts, end, is_well_formed, options, read_closure, run, uv_path

CUTOFF = 1704067200   # 2024-01-01
CA = "/etc/ssl/certs/ca-certificates.crt"


def ask(*command):
    p = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd="/")
    return p.stdout.strip() if p.returncode == 0 else ""


def places():
    index = ask(PYTHON, "-m", "pip", "config", "get", "global.index-url") or \
        ask(PYTHON, "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)")
    npm = ask("npm", "config", "get", "registry")
    ca = os.environ.get("SSL_CERT_FILE") or CA
    return {"UV_DEFAULT_INDEX": index, "PIP_INDEX_URL": index, "SSL_CERT_FILE": ca, "PIP_CERT": ca, "NODE_EXTRA_CA_CERTS": ca, "REEVE_NPMRC": f"registry={npm}\n"}


def shown(a):
    """An answer without what names a registry."""
    return re.sub(r"https?://[^\"' ]+", "URL", str({**a, "lock": 0}))


def resolve(name, driver, packages, env, **job):
    began = time.monotonic()
    a, _ = run(driver, {"packages": packages, **job}, env)
    took = time.monotonic() - began
    check(f"{name}: form", is_well_formed(a), shown(a))
    got = read_closure(name, "python" if driver.endswith("py") else "javascript", packages, a)
    print(f"{name}: {took * 1000:.0f} ms" + (f", {len(got['value']['packages'])} packages" if got and got["r"] == 0 else ""))
    return a, got


def python(tool, env):
    def one(name, packages, **more):
        return resolve(f"{tool} {name}", "resolve.py", packages, env, tool=tool, uv=uv_path(), **more)
    a, got = one("requests", ["requests==2.31.0"])
    found = {p["name"]: p for p in a["packages"]}
    check(f"{tool}: requests and what it needs", set(found) == {"certifi", "charset-normalizer", "idna", "requests", "urllib3"}, sorted(found))
    check(f"{tool}: the hash of requests", found["requests"]["sha256"] == "58cd2187c01e70e6e26505bca751777aa9f2ee0b7f4300988b709f44e013003f", shown(a))
    held, _ = one("pinned", ["requests[socks]==2.31.0"], pins={"idna": "3.4"}, exclude={"urllib3": [found["urllib3"]["version"]]})
    versions = {p["name"]: p["version"] for p in held["packages"]}
    check(f"{tool}: pinned and excluded", versions.get("idna") == "3.4" and versions.get("urllib3") != found["urllib3"]["version"] and "pysocks" in versions, versions)
    native, _ = one("native", ["numpy==1.26.4", "pydantic-core==2.14.6"])
    gone, _ = one("missing version", ["requests==99"])
    check(f"{tool}: missing version", not gone["ok"] and gone["exit"] == 1, shown(gone))
    if tool == "uv":
        old, _ = one("of old", ["requests==2.31.0"], newest_published=CUTOFF)
        versions = {p["name"]: p["version"] for p in old["packages"]}
        check("uv: as of 2024", versions.get("urllib3") == "2.1.0" and versions.get("certifi") == "2023.11.17", versions)
    return {p["name"]: (p["file"], p["sha256"]) for p in native["packages"]}


def npm(env):
    a, got = resolve("npm left-pad", "resolve.cjs", ["left-pad@1.3.0"], env)
    check("left-pad", a["ok"] and a["lock"]["packages"]["node_modules/left-pad"]["integrity"].startswith("sha512-XI5MPzVNApjAyhQzphX8"), shown(a))
    a, got = resolve("npm express", "resolve.cjs", ["express@4.18.2"], env, pins={"qs": "6.11.0"})
    check("express", a["ok"] and a["lock"]["packages"]["node_modules/qs"]["version"] == "6.11.0", shown(a))
    if got and got["r"] == 0:
        check("paths", all(p[0] == "express" for p in got["paths"]) and len(got["paths"]) > 50, got["paths"][:3])
    a, got = resolve("npm esbuild", "resolve.cjs", ["esbuild@0.19.12"], env)
    if got and got["r"] == 0:
        check("one platform's", [p["name"] for p in got["value"]["packages"] if p["name"] != "esbuild"] == ["@esbuild/linux-" + {"x86_64": "x64", "aarch64": "arm64"}[os.uname().machine]]
              and len(got["value"]["not_installed"]) > 15, got["value"])
    resolve("npm bundles of other platforms", "resolve.cjs", ["@tailwindcss/oxide@4.1.3"], env)
    a, _ = resolve("npm missing version", "resolve.cjs", ["left-pad@9.9.9"], env)
    check("npm: missing version", a["code"] == "ETARGET", shown(a))


def main():
    options()
    env = places()
    a, _ = run("resolve.py", {"packages": ["six==1.16.0"], "tool": "pip"}, env)
    b, _ = run("resolve.cjs", {"packages": ["left-pad@1.3.0"]}, env)
    if not a["ok"] or not b["ok"]:
        print("the registries cannot be reached from here")
        sys.exit(77)
    by_pip = python("pip", env)
    if uv_path():
        check("uv and pip choose the same wheels", python("uv", env) == by_pip, by_pip)
    else:
        print("uv was not tested: REEVE_UV names none")
    npm(env)
    end("drivers_real")


if __name__ == "__main__":
    main()
