"""Which wheels a list of requirements comes to: asks uv or pip, and prints one JSON document (reeve.closure/1).

It runs inside the sandbox, in network mode `registries`, on the interpreter that the packages are for. The job is one
JSON document on standard input; addresses, certificates and credentials come with the environment, of which the tool
is given what stands in a list. Nothing that it prints is trusted: reeve reads the closure as any other stranger's text.

What is not needed before the tool runs is imported while it does.
"""
import json
import os
import re
import sys

TEXT_MAX = 4096                   # characters of the tool's messages
LOCK_BYTES_MAX = 64 << 20
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?\Z")
VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]*\Z")
CLAUSE = re.compile(r"(===|==|!=|~=|<=|>=|<|>)[ \t]*([A-Za-z0-9._+!*-]+)\Z")
REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)[ \t]*(?:\[([A-Za-z0-9._, \t-]*)\])?[ \t]*(?:\(([^()]*)\)|([^()]*))\Z")
WHEEL = re.compile(r"([A-Za-z0-9._]+)-([A-Za-z0-9._+!]+)(?:-([0-9][A-Za-z0-9_.]*))?-([A-Za-z0-9_.]+)-([A-Za-z0-9_.]+)-([A-Za-z0-9_.]+)\.whl\Z")
LEGACY_MANYLINUX = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}


class Failure(Exception):
    """The job ends without packages: a code for reeve, a text for people."""

    def __init__(self, code, text, status=1):
        super().__init__(text)
        self.code, self.text, self.status = code, text, status


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def spellings(extra):
    """pip before 23.3 finds an extra only as the package itself spells it, and passes over one that is not there."""
    return {extra, extra.replace("-", "_"), extra.replace("-", ".")}


def requirement_line(text, is_pip=False):
    """(canonical name, the line for a requirements file), put together anew from parts that are only what they should be."""
    m = REQUIREMENT.match(text.strip(" \t"))
    extras = [e.strip(" \t") for e in (m[2] or "").split(",")] if m else []
    clauses = [c.strip(" \t") for c in ((m[3] or m[4] or "") if m else "").split(",")]
    if len(clauses) > 1 and not clauses[-1]:
        clauses.pop()
    found = [CLAUSE.match(c) for c in clauses]
    if not m or not NAME.match(m[1]) or not all(found) or (extras != [""] and not all(NAME.match(e) for e in extras)):
        raise Failure("EJOB", f"no requirement that is taken: {text!r}")
    name = canonical(m[1])
    known = {canonical(e) for e in extras} if any(extras) else set()
    if is_pip:
        known = set().union(*(spellings(e) for e in known))
    brackets = "[" + ",".join(sorted(known)) + "]" if known else ""
    return name, name + brackets + ",".join(c[1] + c[2] for c in found)


def constraint_lines(job):
    lines = []
    for name, versions, operator in ([(n, [v], "==") for n, v in (job.get("pins") or {}).items()] +
                                     [(n, v, "!=") for n, v in (job.get("exclude") or {}).items()]):
        if not NAME.match(name) or not all(VERSION.match(v) for v in versions):
            raise Failure("EJOB", f"no constraint that is taken: {name!r} {versions!r}")
        if versions:
            lines.append(canonical(name) + ",".join(operator + v for v in versions))
    return sorted(lines)


def write(path, lines):
    with open(path, "w", encoding="ascii") as f:
        f.write("".join(line + "\n" for line in lines))


def read(path, most):
    with open(path, "rb") as f:
        return f.read(most)


def message(path, is_end):
    """What a tool said: plain text without control characters or credentials, of what is too long the end or the beginning."""
    text = read(path, 1 << 20).decode("utf-8", "replace")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    text = re.sub(r"//[^/@\s]*@", "//", text)
    text = "".join(c if c == "\n" or c.isprintable() else " " for c in text).strip()
    return text[-TEXT_MAX:] if is_end else text[:TEXT_MAX]


def environment(work, keep):
    """The tool's: what is listed of ours, and places of its own. There is nothing to be found in its PATH, git least of all."""
    out = {name: os.environ[name] for name in keep if os.environ.get(name)}
    out.update({"PATH": work + "/bin", "HOME": work, "TMPDIR": work, "LANG": "C.UTF-8", "NO_COLOR": "1", "TERM": "dumb"})
    return out


def write_wheels(job, work):
    """Wheels that reeve built itself and gave with the job: [{"file", "base64"}]. They join those that are named by path."""
    import base64
    for given in job.get("wheel_data") or []:
        if not WHEEL.match(given["file"]):
            raise Failure("EJOB", "a wheel that was built has no name of one")
        os.makedirs(work + "/wheels", 0o700, exist_ok=True)
        with open(f"{work}/wheels/{given['file']}", "wb") as f:
            f.write(base64.b64decode(given["base64"]))
        job.setdefault("wheels", []).append(f"{work}/wheels/{given['file']}")


def local_folders(job):
    """The folders of wheels that reeve built itself: [absolute path of a wheel...] in the job."""
    paths = job.get("wheels") or []
    if not all(re.match(r"/[A-Za-z0-9._+/@!-]+\.whl\Z", p) for p in paths):
        raise Failure("EJOB", "a wheel that was built is named by an absolute path")
    return sorted({os.path.dirname(p) for p in paths})


def index_of(*names):
    return next((os.environ[n] for n in names if os.environ.get(n)), None)


# Tags: what this interpreter can install, best first (PEP 425, 600 and 656, as CPython's on Linux).

def musl_minor():
    """Of `ld-musl-ARCH.so.1`, which says its version when it is called without a program; None: this is no musl."""
    import subprocess
    m = re.search(rb"/[A-Za-z0-9/_.-]*ld-musl-[A-Za-z0-9_.-]+", read(sys.executable, 1 << 16))
    if not m:
        return None
    said = subprocess.run([m[0]], stdin=subprocess.DEVNULL, capture_output=True, check=False, env={}, timeout=5).stderr
    m = re.search(rb"Version 1\.(\d+)", said)
    return int(m[1]) if m else None


def libc():
    """("glibc" | "musl" | "", minor version)"""
    try:
        m = re.match(r"glibc 2\.(\d+)", os.confstr("CS_GNU_LIBC_VERSION") or "")
    except (ValueError, OSError):
        m = None
    if m:
        return "glibc", int(m[1])
    minor = musl_minor()
    return ("musl", minor) if minor is not None else ("", 0)


def architecture():
    machine = os.uname().machine
    return machine if sys.maxsize > 1 << 32 else {"x86_64": "i686", "aarch64": "armv8l"}.get(machine, machine)


def platforms(kind, minor, arch):
    """The plain name first: such a wheel was built for this machine. (Older ones of pip had it last.)"""
    yield f"linux_{arch}"
    if kind == "glibc":
        for n in range(minor, 4 if arch in ("x86_64", "i686") else 16, -1):
            yield f"manylinux_2_{n}_{arch}"
            if n in LEGACY_MANYLINUX:
                yield f"{LEGACY_MANYLINUX[n]}_{arch}"
    elif kind == "musl":
        for n in range(minor, -1, -1):
            yield f"musllinux_1_{n}_{arch}"


def tags(kind, minor, arch, version=sys.version_info[:2], flags=getattr(sys, "abiflags", "")):
    """(interpreter, abi, platform) in the order of preference."""
    here, places = version[1], list(platforms(kind, minor, arch))
    cp, threads = f"cp3{here}", "t" if "t" in flags else ""
    abis = [cp + threads + "d", cp + threads] if "d" in flags else [cp + threads]
    out = [(cp, abi, p) for abi in abis + ([] if threads else ["abi3"]) + ["none"] for p in places]
    if not threads:
        out += [(f"cp3{n}", "abi3", p) for n in range(here - 1, 1, -1) for p in places]
    py = [f"py3{here}", "py3"] + [f"py3{n}" for n in range(here - 1, -1, -1)]
    out += [(v, "none", p) for v in py for p in places]
    return out + [(cp, "none", "any")] + [(v, "none", "any") for v in py]


def ranks():
    kind, minor = libc()
    return {tag: i for i, tag in enumerate(tags(kind, minor, architecture()))}


def rank_of(file, order):
    """Smaller is better; None: not for this interpreter. Of equal ones the highest build number wins."""
    m = WHEEL.match(file)
    if not m:
        return None
    found = [order[t] for t in ((i, a, p) for i in m[4].split(".") for a in m[5].split(".") for p in m[6].split(".")) if t in order]
    build = re.match(r"(\d+)(.*)", m[3] or "0")
    return (min(found), -int(build[1]), [-ord(c) for c in build[2]]) if found else None


# uv

def start_uv(uv, work, job):
    import time
    index = index_of("UV_DEFAULT_INDEX", "PIP_INDEX_URL")
    env = environment(work, ("SSL_CERT_FILE", "SSL_CERT_DIR", "UV_INDEX", "UV_FIND_LINKS", "UV_INDEX_STRATEGY"))
    env.update({"UV_NO_CONFIG": "1", "UV_CACHE_DIR": work + "/cache", "UV_PYTHON_DOWNLOADS": "never", "UV_HTTP_RETRIES": "0",
                "UV_HTTP_TIMEOUT": "10", "UV_NO_PROGRESS": "1", "UV_KEYRING_PROVIDER": "disabled"})
    if index:
        env["UV_DEFAULT_INDEX"] = index
    argv = [uv, "pip", "compile", "-q", "--python", sys.executable, "--only-binary", ":all:", "--no-header", "--no-annotate",
            "--format", "pylock.toml", "-c", "constraints.txt"]
    for folder in local_folders(job):
        argv += ["--find-links", folder]
    if job.get("newest_published") is not None:
        # uv leaves out what is not older than this; a file of the very second is old enough.
        argv += ["--exclude-newer", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(job["newest_published"]) + 1))]
    return spawn(argv + ["requirements.in"], env, "uv.out", "uv.err")


def spawn(argv, env, out, err):
    made = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        return os.posix_spawn(argv[0], argv, env, file_actions=[(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                              (os.POSIX_SPAWN_OPEN, 1, out, made, 0o600), (os.POSIX_SPAWN_OPEN, 2, err, made, 0o600)])
    except OSError as e:
        raise Failure("ENOTOOL", f"{argv[0]} cannot be started: {e.strerror}") from e


def wait(pid):
    status = os.waitpid(pid, 0)[1]
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def toml_reader():
    """tomllib came with 3.11; pip carries the same code."""
    try:
        import tomllib
        return tomllib.loads
    except ImportError:
        try:
            from pip._vendor import tomli
            return tomli.loads
        except ImportError:
            return None


def wheel_file(wheel):
    from urllib.parse import unquote
    place = wheel.get("url") or wheel.get("path") or ""
    return wheel.get("name") or unquote(place.split("#")[0].split("?")[0].rstrip("/").rsplit("/", 1)[-1])


def take_wheel(package, order):
    """The one wheel of a package that this interpreter would take, as an entry of the closure."""
    name, version = package["name"], package["version"]
    if any(k in package for k in ("vcs", "directory", "archive")):
        raise Failure("EURL", f"{name} does not come from the registry")
    ranked = [(rank_of(wheel_file(w), order), i) for i, w in enumerate(package.get("wheels", []))]
    ranked = sorted(r for r in ranked if r[0] is not None)
    if not ranked:
        raise Failure("EPLATFORM", f"no wheel of {name} {version} is for this interpreter")
    return wheel_entry(name, version, package["wheels"][ranked[0][1]])


def wheel_entry(name, version, wheel):
    url = wheel.get("url") or ""
    entry = {"name": canonical(name), "version": version, "file": wheel_file(wheel), "url": "" if url.startswith("file:") else url}
    sha256, size, published = wheel.get("hashes", {}).get("sha256"), wheel.get("size"), wheel.get("upload-time")
    if sha256:
        entry["sha256"] = sha256.lower()
    if isinstance(size, int):
        entry["size_bytes"] = size
    if published is not None and hasattr(published, "timestamp"):
        from datetime import timezone
        entry["published_at"] = int((published if published.tzinfo else published.replace(tzinfo=timezone.utc)).timestamp())
    return entry


def by_uv(job, work, tool):
    pid = start_uv(job["uv"], work, job)         # its version is not asked for: that would be another start of it
    loads, order = toml_reader(), ranks()
    status = wait(pid)
    tool["text"] = message("uv.err", is_end=False)
    if status:
        raise Failure(None, tool["text"], status)
    lock = loads(read("uv.out", LOCK_BYTES_MAX).decode())
    return [take_wheel(p, order) for p in lock.get("packages", [])]


# pip

def run_pip(work, job):
    """In a child: pip as it is, but without programs. A package that names a repository, or sources, would have it start some."""
    import subprocess

    def refuse(*args, **kwargs):
        raise FileNotFoundError(2, "no program is started here")
    subprocess.Popen = type("Popen", (subprocess.Popen,), {"__init__": refuse, "__del__": lambda self: None})
    os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
    for fd, name in ((1, "pip.out"), (2, "pip.err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), fd)
    index = index_of("PIP_INDEX_URL", "UV_DEFAULT_INDEX")
    env = environment(work, ("PIP_CERT", "SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS", "PIP_TRUSTED_HOST"))
    env.update({"PIP_CONFIG_FILE": "/dev/null", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_RETRIES": "0",
                "PIP_DEFAULT_TIMEOUT": "10", "PIP_NO_COLOR": "1"})
    if "PIP_CERT" not in env and "SSL_CERT_FILE" in env:
        env["PIP_CERT"] = env["SSL_CERT_FILE"]
    if index:
        env["PIP_INDEX_URL"] = index
    argv = ["pip", "install", "-q", "--dry-run", "--ignore-installed", "--no-cache-dir", "--only-binary", ":all:", "--progress-bar", "off",
            "--report", "report.json", "-c", "constraints.txt", "-r", "requirements.in"]
    m = re.match(r"http://(?:[^@/]*@)?([^/@]+)", index or "")
    if m:
        # Whoever configured it knows that it is not encrypted; pip would act as if it were not there.
        argv += ["--trusted-host", m[1]]
    for folder in local_folders(job):
        argv += ["--find-links", folder]
    os.environ.clear()
    os.environ.update(env)
    sys.argv = argv
    import runpy
    runpy.run_module("pip", run_name="__main__", alter_sys=True)


def fork_pip(work, job):
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        run_pip(work, job)
        status = 0
    except SystemExit as e:
        status = e.code if isinstance(e.code, int) else 0 if e.code is None else 1
    except BaseException as e:   # whatever it is, the parent tells it
        os.write(2, f"{type(e).__name__}: {e}\n".encode("utf-8", "replace"))
    finally:
        sys.stderr.flush()
        os._exit(status)


def report_entry(item):
    info, meta = item["download_info"], item["metadata"]
    archive = info.get("archive_info")
    if item.get("is_direct") or archive is None:
        raise Failure("EURL", f"{meta['name']} does not come from the registry")
    hashes = dict(archive.get("hashes") or {})
    if "sha256" not in hashes and archive.get("hash", "").startswith("sha256="):
        hashes["sha256"] = archive["hash"][7:]
    return wheel_entry(meta["name"], meta["version"], {"url": info["url"].split("#")[0], "hashes": hashes})


def by_pip(job, work, tool):
    try:
        import pip
    except ImportError as e:
        raise Failure("ENOTOOL", "this interpreter has no pip") from e
    tool["name"], tool["version"] = "pip", pip.__version__
    status = wait(fork_pip(work, job))
    text = message("pip.err", is_end=True)
    tool["text"] = "\n".join(t for t in (tool["text"], text) if t)[-TEXT_MAX:]
    if status or not os.path.exists("report.json"):
        raise Failure(None, tool["text"], status or 1)
    return [report_entry(i) for i in json.loads(read("report.json", LOCK_BYTES_MAX)).get("install", [])]


def resolve(job, tool):
    if job.get("language", "python") != "python":
        raise Failure("EJOB", "this resolves Python's packages")
    work = f"{job.get('work_dir') or '/tmp'}/reeve-resolve-{os.getpid()}"
    os.makedirs(work + "/bin", 0o700)
    write_wheels(job, work)
    built = {os.path.basename(p) for p in job.get("wheels") or [] if local_folders(job)}
    os.chdir(work)
    write("constraints.txt", constraint_lines(job))
    if tool["name"] == "uv" and sys.version_info < (3, 11) and not toml_reader():
        tool.update({"name": "pip", "text": "uv's answer cannot be read here (neither tomllib nor pip's tomli is there), so pip was asked"})
    wanted = [requirement_line(p, is_pip=tool["name"] == "pip") for p in job["packages"]]
    write("requirements.in", [line for _, line in wanted])
    packages = (by_uv if tool["name"] == "uv" else by_pip)(job, work, tool)
    for p in packages:
        if not p["url"] and p["file"] not in built:
            raise Failure("EURL", f"{p['name']} does not come from the registry")
    names = {p["name"] for p in packages}
    absent = sorted({n for n, _ in wanted} - names)
    if absent:
        raise Failure("EABSENT", f"{', '.join(absent)}: asked for, and not in what the tool answered")
    return sorted(packages, key=lambda p: (p["name"], p["version"], p["file"]))


def runtime():
    kind = {"glibc": "linux", "musl": "musllinux"}.get(libc()[0], "linux")
    threads = "t" if "t" in getattr(sys, "abiflags", "") else ""
    return {"tag": f"cp{sys.version_info[0]}{sys.version_info[1]}{threads}-{kind}_{architecture()}",
            "version": f"{sys.version_info[0]}.{sys.version_info[1]}", "interpreter": sys.executable}


def main():
    job = json.loads(sys.stdin.buffer.read())
    tool = {"name": "pip" if job.get("tool") == "pip" or not job.get("uv") else "uv", "version": "", "text": ""}
    answer = {"schema": "reeve.closure/1", "ok": True, "exit": 0, "code": None, "packages": []}
    try:
        answer["packages"] = resolve(job, tool)
    except Failure as e:
        answer.update({"ok": False, "exit": e.status, "code": e.code})
        tool["text"] = e.text[:TEXT_MAX]
    except Exception as e:   # an answer of the tool's that is not what it should be
        answer.update({"ok": False, "exit": 1, "code": "EANSWER"})
        tool["text"] = f"the answer of {tool['name']} cannot be used: {type(e).__name__}: {e}"[:TEXT_MAX]
    answer.update({"tool": {"name": tool["name"], "version": tool["version"]}, "text": tool["text"], "runtime": runtime()})
    data = json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
    with open(1, "wb", closefd=False) as out:
        out.write(data)
    os._exit(0)


if __name__ == "__main__":
    main()
