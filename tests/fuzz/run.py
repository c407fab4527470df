#!/usr/bin/python3
"""Runs fuzz targets, which a build with -Dfuzzers=true has.

    tests/fuzz/run.py --build DIRECTORY [--seconds N] [--work DIRECTORY] [--merge] [PARSER…]

Each target starts from tests/fuzz/corpus/PARSER with the words of tests/fuzz/PARSER.dict and runs for N seconds
(5). What it finds beyond the corpus is left in WORK/PARSER (a temporary directory if none is named) and is a start
for the next run there. An input that crashes, hangs or breaks a property is left in WORK/PARSER-found; the exit
status is then 1, and to see it again:

    DIRECTORY/tests/fuzz/fuzz_PARSER FILE

Once it is fixed the file belongs into tests/fuzz/corpus/PARSER under a name that says what it shows: every build
replays it. With --merge, what adds coverage is copied into the corpus too.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES_MAX = {"policy": 8192, "request": 8192}   # of an input; 4096 for the others
BYTES_MAX_OTHERS = 4096
ENVIRONMENT = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1:handle_abort=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:abort_on_error=1",
}


def targets(build):
    folder = os.path.join(build, "tests/fuzz")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(n[5:] for n in names if re.fullmatch(r"fuzz_[a-z0-9]+", n) and os.access(os.path.join(folder, n), os.X_OK))


def command_of(build, name):
    command = [os.path.join(build, "tests/fuzz/fuzz_" + name), f"-max_len={BYTES_MAX.get(name, BYTES_MAX_OTHERS)}",
               "-timeout=10", "-rss_limit_mb=1500"]
    words = os.path.join(HERE, name + ".dict")
    return command + (["-dict=" + words] if os.path.exists(words) else [])


def run(command):
    p = subprocess.run(command, capture_output=True, check=False, env={**os.environ, **ENVIRONMENT})
    return p.returncode, (p.stderr + p.stdout).decode(errors="replace")


def number(pattern, text, which):
    found = re.findall(pattern, text)
    return int(found[which]) if found else 0


def fuzz(build, name, seconds, work):
    """Returns whether nothing was found."""
    corpus, fresh, found = os.path.join(HERE, "corpus", name), os.path.join(work, name), os.path.join(work, name + "-found")
    os.makedirs(fresh, exist_ok=True)
    os.makedirs(found, exist_ok=True)
    before = set(os.listdir(fresh))
    status, text = run(command_of(build, name) + [f"-max_total_time={seconds}", "-print_final_stats=1", "-reload=0",
                                                  f"-artifact_prefix={found}/", fresh, corpus])
    n_executions, n_new = number(r"number_of_executed_units: *(\d+)", text, -1), len(set(os.listdir(fresh)) - before)
    coverage = [number(r"INITED\s+cov: (\d+)", text, 0), number(r"\bcov: (\d+)", text, -1)]
    print(f"{name}: {n_executions} executions, coverage {coverage[0]} to {coverage[1]} edges, {n_new} new inputs", flush=True)
    # A target that ran nothing has shown nothing.
    if status == 0 and n_executions > 0:
        return True
    print(text[-20000:], flush=True)
    return False


def merge(build, name, work):
    """Copies into the corpus what covers something that it does not."""
    status, text = run(command_of(build, name) + ["-merge=1", os.path.join(HERE, "corpus", name), os.path.join(work, name)])
    n_added = number(r"(\d+) new files", text, -1)
    print(text[-2000:] if status else f"{name}: {n_added} inputs added to the corpus", flush=True)
    return status == 0


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--build", required=True)
    a.add_argument("--seconds", type=int, default=5)
    a.add_argument("--work")
    a.add_argument("--merge", action="store_true")
    a.add_argument("parser", nargs="*")
    options = a.parse_args()
    names = targets(options.build)
    unknown = set(options.parser) - set(names)
    if unknown or not names:
        sys.exit(f"no such target in {options.build}: {' '.join(sorted(unknown)) or 'it has none, set it up with -Dfuzzers=true'}")
    with tempfile.TemporaryDirectory(prefix="reeve-fuzz-") as scratch:
        work = options.work or scratch
        results = [fuzz(options.build, n, options.seconds, work) and (not options.merge or merge(options.build, n, work))
                   for n in options.parser or names]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
