#!/usr/bin/python3
"""All checks of the project (tools/dev/check calls this; see there for the options).

Each is a step (steps.py). Meson suites and conformance files count by their tests, every other step counts one.
"""
import argparse
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import time

import tree
import uv
from steps import LOGS, OUT, Steps, count_conformance

JOBS = str(os.cpu_count() or 1)
PYTHON = "/usr/bin/python3"
REGISTRY_CASES = "tests/conformance/packages.json"   # with registries that are not made on the spot

# A build that the checks use: directory name -> (compiler, meson options).
BUILDS = {
    "gcc-debug": ("gcc", ["-Dbuildtype=debugoptimized"]),
    "gcc-release": ("gcc", ["-Dbuildtype=release", "-Db_ndebug=true"]),
    "clang-debug": ("clang", ["-Dbuildtype=debugoptimized"]),
    "clang-release": ("clang", ["-Dbuildtype=release", "-Db_ndebug=true"]),
    # As it is installed, and what runs programs with it: link-time optimisation of a hundred test programs takes minutes.
    "gcc-lto": ("gcc", ["-Dbuildtype=release", "-Db_ndebug=true", "-Db_lto=true"]),
    "clang-lto": ("clang", ["-Dbuildtype=release", "-Db_ndebug=true", "-Db_lto=true"]),
    "sanitize": ("gcc", ["-Dbuildtype=debugoptimized", "-Db_sanitize=address,undefined", "-Dstatic_libraries=false",
                         "-Dc_args=-fno-sanitize-recover=all"]),
    # The targets alone are built (tests/fuzz/meson.build).
    "fuzz": ("clang", ["-Dbuildtype=debugoptimized", "-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dstatic_libraries=false",
                       "-Dfuzzers=true", "-Dc_args=-fno-sanitize-recover=all"]),
    "points": ("gcc", ["-Dbuildtype=debugoptimized", "-Dtest_points=true"]),
    # Off are the analyzer's kinds that gcc 12 gets wrong for what cleanup attributes and arenas release, and for
    # what a callee sets only when it succeeds; leaks and uninitialised reads are the sanitizers' business.
    "analyze": ("gcc", ["-Dbuildtype=debugoptimized", "-Dtests=disabled", "-Dc_args=" + " ".join(
        ["-fanalyzer"] + [f"-Wno-analyzer-{kind}" for kind in (
            "malloc-leak", "file-leak", "use-of-uninitialized-value", "null-dereference", "possible-null-dereference",
            "null-argument", "possible-null-argument")])]),
}

# What runs programs, and what the checks do with it.
PROGRAMS = ["tools/reeve/reeve", "tools/gate/reeve-gate", "tools/fetch/reeve-fetch", "tools/unpack/reeve-unpack", "tests/escape/probe"]


class Checks(Steps):
    def build(self, name, targets=()):
        """Sets up (if its options changed, afresh) and builds build-check/NAME, all of it or these targets."""
        compiler, options = BUILDS[name]
        directory, wanted = os.path.join(OUT, name), json.dumps([compiler, options])
        stamp = os.path.join(OUT, name + ".options")
        commands = []
        if not os.path.exists(os.path.join(directory, "build.ninja")) or not os.path.exists(stamp) or open(stamp, encoding="utf-8").read() != wanted:
            shutil.rmtree(directory, ignore_errors=True)
            commands.append(["meson", "setup", directory, tree.TOP, "-Dtests=enabled"] + options)
            with open(stamp, "w", encoding="utf-8") as f:
                f.write(wanted)
        env = {"CC": compiler}
        if compiler == "clang":
            env["CC_LD"] = "lld"
        self.step(f"build {name}", commands + [["ninja", "-C", directory, *targets]], env=env, timeout_s=900, is_patient=True)
        return directory

    def suites(self, name, suites=("unit", "lua", "abi", "fuzz-regress"), label="tests", must_run=""):
        """Runs meson suites in a build; a test program's cases count one by one. In a suite of must_run a skip fails."""
        directory = os.path.join(OUT, name)
        base = "testlog-" + label.replace(" ", "-")      # its own, as suites of one build may run side by side
        log = os.path.join(directory, "meson-logs", base + ".json")
        self.wait([f"build {name}"] if self.is_wanted(f"build {name}") else [])
        if os.path.exists(log):
            os.unlink(log)   # or a run that does not come to its tests would count by those of the last one
        command = ["meson", "test", "-C", directory, "--no-rebuild", "--print-errorlogs", "--logbase", base]
        command += [a for s in suites if s in known_suites(directory) for a in ("--suite", s)]
        env = {"UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1", "ASAN_OPTIONS": "detect_leaks=1:abort_on_error=0",
               "RV_MUST_RUN": must_run}
        self.step(f"{label} {name}", command, env=env, needs=[f"build {name}"],
                  count=lambda _: count_meson(log))


def known_suites(directory):
    """Suites that the build has; meson takes an unknown one for an error."""
    try:
        with open(os.path.join(directory, "meson-info/intro-tests.json"), encoding="utf-8") as f:
            return {s.split(":")[-1] for t in json.load(f) for s in t["suite"]}
    except OSError:
        return set()


def count_meson(path):
    """Cases of the tests in a testlog.json. A program that prints no cases counts one."""
    passed = failed = 0
    skipped = []
    if not os.path.exists(path):
        return None
    for line in open(path, encoding="utf-8"):
        test = json.loads(line)
        name = test["name"].split(":")[-1].strip()
        text = (test.get("stdout") or "") + "\n" + (test.get("stderr") or "")
        ok = len(re.findall(r"^(?:\[       OK \]|ok \d+)(?!.*# SKIP)", text, re.M))
        bad = len(set(re.findall(r"^(?:\[  FAILED  \] (?!\d+ test|tests?:)(\S+)|not ok (\d+).*)$", text, re.M)))
        skips = re.findall(r"^\[  SKIPPED \] (?!\d+ test)(\S+)", text, re.M) + re.findall(r"^ok \d+.*# SKIP (.*)$", text, re.M)
        if test["result"] == "SKIP":
            skipped.append(name)
        elif test["result"] in ("OK", "EXPECTEDFAIL"):
            passed += ok or (0 if skips else 1)
            skipped += sorted({f"{name}/{s}" for s in skips})
        else:
            passed += ok
            failed += max(bad, 1)
    return passed, failed, skipped


def style(c):
    """What needs no build."""
    c.step("format", [[PYTHON, "tests/lib/check_format.py", "--self-test"], [PYTHON, "tests/lib/check_format.py"]])
    for name in ("includes", "headers", "sizes", "words", "docs"):
        script = f"tests/lib/check_{name}.py"
        c.step(name, [[PYTHON, script, "--self-test"], [PYTHON, script]])
    c.step("luacheck", ["luacheck", "--quiet", "--no-color"] + (tree.files(".lua") or ["--version"]))
    c.step("shellcheck", ["shellcheck"] + [f for f in tree.files() if tree.is_shell(f)])
    c.step("codespell", ["codespell", "--ignore-words", "tests/lib/codespell.txt"]
           + [f for f in tree.files() if f.endswith((".c", ".h", ".md", ".scd", ".lua", ".py", ".build", ".txt")) or tree.is_shell(f)])
    c.step("python compiles", [PYTHON, "-W", "error", "-c", "import sys; [compile(open(f).read(), f, 'exec') for f in sys.argv[1:]]"]
           + tree.files(".py"))
    pages = tree.files(".scd")
    c.step("man pages", ["sh", "-ec", 'for p; do scdoc <"$p" >/dev/null; done', "sh"] + pages)


def reeve_of(name):
    return os.path.join(OUT, name, "tools/reeve/reeve")


def conformance(c, name, jobs):
    cases = sorted(os.path.relpath(p, tree.TOP) for p in glob.glob(os.path.join(tree.TOP, "tests/conformance/*.json")))
    cases.remove(REGISTRY_CASES)
    c.step(f"conformance -j {jobs}", [PYTHON, "tests/conformance/run.py", "--reeve", reeve_of(name), "--again-offline", "-j", str(jobs)] + cases,
           timeout_s=900, needs=[f"build {name}"], count=count_conformance)


def registries_answer():
    """Words for --have: the languages whose package manager gets something from the registry that it is set up for."""
    asked = {"python": [PYTHON, "-m", "pip", "download", "--quiet", "--no-deps", "--retries", "0", "--timeout", "15", "--dest", os.path.join(OUT, "answer"), "six==1.16.0"],
             "javascript": ["npm", "view", "is-number@7.0.0", "version", "--fetch-retries=0", "--fetch-timeout=15000"]}
    found = []
    for language, command in asked.items():
        try:
            p = subprocess.run(command, capture_output=True, check=False, timeout=60, cwd="/")
        except (OSError, subprocess.TimeoutExpired):
            continue
        found += [f"registry:{language}"] if p.returncode == 0 else []
    return found


def real_registries(c, name):
    """Cases with the registries that this machine is set up for, by each of the tools that find Python packages."""
    steps = {tool: f"conformance packages by {tool}" for tool in ("uv", "pip")}
    have = registries_answer() if any(map(c.is_wanted, steps.values())) else []
    for tool, step in steps.items():
        command = ["tests/conformance/run.py", "--reeve", reeve_of(name), "--again-offline", "--have", ",".join(have)]
        if tool == "uv":
            settings = {"resolver": "uv", "uv": os.environ.get("REEVE_UV", "")}
        else:
            settings, command = {"resolver": "pip"}, command + ["--only", "^packages/python-"]
        command += ["--config", json.dumps({"packages": settings}), REGISTRY_CASES]
        if tool == "uv" and not settings["uv"]:
            command = ["-c", "print('no uv is to be had'); raise SystemExit(77)"]
        c.step(step, [PYTHON, *command], timeout_s=600, needs=[f"build {name}"], count=count_conformance)


def fuzz(c, seconds, is_continued):
    """Looks for inputs that break a parser, each for so many seconds, from the corpus or from where the last run ended."""
    c.build("fuzz", ["fuzzers"])

    def one(path):
        name = os.path.basename(path)[len("fuzz_"):-len(".c")]
        c.step(f"fuzz {name}", [PYTHON, "tests/fuzz/run.py", "--build", os.path.join(OUT, "fuzz"), "--seconds", str(seconds), name]
               + (["--continue"] if is_continued else []), timeout_s=seconds + 120, needs=["build fuzz"], show=r"executions, coverage", is_patient=True)

    with concurrent.futures.ThreadPoolExecutor(int(JOBS)) as pool:
        list(pool.map(one, tree.files(".c", under="tests/fuzz/fuzz_")))


def runtimes(c, name):
    c.step("runtimes", [PYTHON, "tests/runtime/built.py", "--reeve", reeve_of(name)], timeout_s=600, needs=[f"build {name}"],
           count=count_conformance, show=r"^ok +cases| s, \d+ MiB$")


def escape(c, name):
    """Tries to get out of runs. As root it is done once more as a user that owns nothing, with a cgroup given to it where cgroup v1 is."""
    command = ["tests/escape/run.py", "--reeve", reeve_of(name)]
    need = {"needs": [f"build {name}"], "count": count_conformance, "show": r"^\d+ checks|^self-test: \d", "timeout_s": 900}
    c.step("escape", [[PYTHON, *command, "--self-test"], [PYTHON, *command]], **need)
    if os.geteuid() == 0:
        c.step("escape as an ordinary user", ["sh", "-c", 'tools/dev/delegate nobody || exit 77; trap "tools/dev/delegate --remove nobody" EXIT; '
                                              'setpriv --reuid nobody --regid nogroup --clear-groups "$@"', "sh", PYTHON, *command], **need)


def crash(c, name, is_long):
    """Kills everything of a run at every moment, and takes from the host what a run needs (tests/crash)."""
    kills, n = [PYTHON, "tests/crash/kills.py", "--reeve"], 2000 if is_long else 200
    show = {"show": r"^(log|seed|quarantine|descriptors): |: left out"}
    c.step("crash at points", kills + [reeve_of("points"), "--points"], needs=["build points"], **show)
    c.step(f"crash {n} kills", kills + [reeve_of(name), "--kills", str(n)], needs=[f"build {name}"], **show)
    c.step("crash keys", [PYTHON, "tests/crash/keys.py", "--reeve", reeve_of("points"), "--steps", "2000" if is_long else "300"], needs=["build points"],
           timeout_s=1200, **show)
    c.step("crash hosts", [PYTHON, "tests/crash/hosts.py", "--reeve", reeve_of(name), "--points", reeve_of("points")],
           needs=[f"build {name}", "build points"], **show)


def audit(c, name, is_long):
    """Damages audit logs in every way; reeve and a verifier that knows only docs/audit.md have to agree on each."""
    directory = os.path.join(OUT, name)
    c.step("audit tamper", [["ninja", "-C", directory, "tests/audit/flip"],
                            [PYTHON, "tests/audit/tamper.py", "--reeve", reeve_of(name), "--flip", os.path.join(directory, "tests/audit/flip"),
                             *(["--every"] if is_long else [])]],
           timeout_s=600, needs=[f"build {name}"], show=r"^(\d+ (single-byte|logs)|reeve's own)|: \d+ of \d+ not found$")


BRIEF = {"egress": ["--brief"], "packages": ["-n", "3"], "start": ["40"]}


def bench(c, name, is_long):
    """Runs each executable of tests/bench with --build DIRECTORY and prints its figures; whether they are good is for
    a reader, who knows what else the machine does."""
    for script in tree.files(under="tests/bench/"):
        if not os.access(os.path.join(tree.TOP, script), os.X_OK):
            continue
        label = os.path.splitext(os.path.basename(script))[0]
        c.step(f"bench {label}", [script, "--build", os.path.join(OUT, name), *([] if is_long else BRIEF.get(label, []))], timeout_s=300,
               needs=[f"build {name}"], show=r"^(?!\$ )\S|^ +\S")


def packaging(c, name):
    """A release archive builds by itself, and what is installed from it runs where it was put."""
    prefix, place = os.path.join(OUT, "prefix"), os.path.join(OUT, "dist")
    for directory in (prefix, place):
        shutil.rmtree(directory, ignore_errors=True)
    c.step("dist", ["sh", "-ec", 'meson dist -C "$1" --no-tests --allow-dirty --formats gztar; mkdir "$2"; '
                    'tar -xzf "$1"/meson-dist/reeve-*.tar.gz -C "$2" --strip-components=1', "sh", os.path.join(OUT, name), place],
           timeout_s=600, needs=[f"build {name}"])
    # The demo builds the released files by itself, as whoever unpacked them would have it do. Twice: it has to leave nothing that it would meet.
    c.step("demo, twice", [[os.path.join(place, "tools/dev/demo")]] * 2, env={"BUILD": os.path.join(place, "build")}, timeout_s=600, needs=["dist"])
    c.step("install", [["sh", "-ec", 'cd "$1"; meson configure build --prefix "$2" -Dtests=disabled; ninja -C build; meson install -C build --no-rebuild', "sh", place, prefix],
                       [os.path.join(prefix, "bin/reeve"), "version"],
                       [PYTHON, "tests/conformance/run.py", "--reeve", os.path.join(prefix, "bin/reeve"), "--only", "^run/.*-hello$|^registry/python-closure$",
                        "tests/conformance/run.json", "tests/conformance/registry.json"]], timeout_s=600, needs=["demo, twice"])


def guest(c, name, is_long):
    """cgroup v2, systemd, three kinds of user, containers: in an emulated machine (tests/guest)."""
    directory = os.path.join(OUT, name)
    c.step("guest", [["ninja", "-C", directory, "tests/bench/cold", "tests/bench/floor"],
                     [PYTHON, "tests/guest/check.py", "--build", directory] + (["--long"] if is_long else [])],
           timeout_s=3600 if is_long else 900, needs=[f"build {name}"], count=count_conformance, show=r"^(ok|late|FAIL) |^ {6}\S|^guest: ")


def export_uv(c):
    """The tests of what uses uv take it from REEVE_UV."""
    path, why = uv.find()
    os.environ["REEVE_UV"] = path or ""
    print(f"uv: {path or 'none: ' + why}", flush=True)


def everything(c, options):
    """What --quick leaves out. What only --long does adds little to the rest: clang-debug's sources are those that the
    build `fuzz` has clang compile in the same way, gcc-release's those of gcc-lto and, with its tests, of
    clang-release; one case after the other finds what four at a time find, unless they hide it from each other."""
    seconds = options.fuzz_seconds or (600 if options.long else 1)
    further = (("gcc-release", ()), ("clang-debug", ()), ("clang-lto", PROGRAMS)) if options.long else ()

    privileged = "root" if os.geteuid() == 0 else ""

    def builds():
        for name, targets in (("clang-release", ()), ("sanitize", ()), ("gcc-lto", PROGRAMS), ("points", ["tools/reeve/reeve"]), *further, ("analyze", ())):
            c.build(name, targets)
        fuzz(c, seconds, options.long)

    def tests():
        c.suites("gcc-debug")
        for name in ("clang-release", *(("gcc-release",) if options.long else ())):
            c.suites(name)
        # These count what is left in the cgroups that the runs of `packages` are made and killed in.
        c.suites("sanitize", ("host",), "host tests", privileged)
        c.suites("sanitize")
        # With privilege: the spawner, the gate, and what they are made of.
        c.suites("sanitize", ("root",), "root tests", privileged)

    def packages():
        c.wait(["host tests sanitize"] if c.is_wanted("host tests sanitize") else [])
        c.suites("sanitize", ("packages",), "packages", privileged)

    def scripts():
        c.suites("sanitize", ("scripts",), "scripts")
        real_registries(c, "gcc-lto")
        runtimes(c, "gcc-lto")
        audit(c, "gcc-lto", options.long)

    export_uv(c)
    c.beside(builds, tests, scripts, packages)
    for jobs in [4] + ([1, 8] if options.long else []):
        conformance(c, "gcc-lto", jobs)
    escape(c, "gcc-lto")
    crash(c, "gcc-lto", options.long)
    if options.long:
        c.step("soak 10000 in a row, 10000 8 at a time", [PYTHON, "tests/lib/soak.py", "--reeve", reeve_of("gcc-lto"), "--runs", "10000", "--flat"],
               timeout_s=3600, needs=["build gcc-lto"], show=r"^(?!\$ )")
    n = 4000 if options.long else 400
    c.step(f"soak {n} runs, 8 at a time", [PYTHON, "tests/lib/soak.py", "--reeve", reeve_of("gcc-lto"), "--runs", str(n), "-j", "8"],
           timeout_s=3600 if options.long else 600, needs=["build gcc-lto"], show=r"^(?!\$ )")
    guest(c, "gcc-lto", options.long)
    bench(c, "gcc-lto", options.long)
    packaging(c, "gcc-debug")


def main():
    a = argparse.ArgumentParser(prog="tools/dev/check")
    a.add_argument("--quick", action="store_true")
    a.add_argument("--long", action="store_true")
    a.add_argument("--only", metavar="RE")
    a.add_argument("--fuzz-seconds", metavar="N", type=int, help="for each parser: 1, with --long 600")
    options = a.parse_args()
    os.makedirs(LOGS, exist_ok=True)
    began = time.monotonic()
    c = Checks(options)
    style(c)
    c.build("gcc-debug")
    c.step("docs tables", [PYTHON, "tests/lib/check_docs.py", "--reeve", reeve_of("gcc-debug")], needs=["build gcc-debug"])
    if options.quick:
        c.suites("gcc-debug")
    else:
        everything(c, options)
    took = time.monotonic() - began
    print(f"{took // 60:.0f} min {took % 60:.0f} s; logs in build-check/logs/")
    return c.summary()


if __name__ == "__main__":
    sys.exit(main())
