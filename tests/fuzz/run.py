#!/usr/bin/python3
"""Runs fuzz targets, which a build with -Dfuzzers=true has.

    tests/fuzz/run.py --build DIRECTORY [--seconds N] [--continue] [--merge] [PARSER…]

Each target starts from tests/fuzz/corpus/PARSER (of a file named *.lines each line is an input) with the words of tests/fuzz/PARSER.dict and runs for N seconds (5).
What it finds beyond the corpus is left in DIRECTORY/fuzz/PARSER, with --continue a start for the next run. An input
that crashes, hangs, leaks or breaks a property is left in DIRECTORY/fuzz/PARSER-found; the exit status is then 1. To see it
again:

    DIRECTORY/tests/fuzz/fuzz_PARSER FILE

Once it is fixed the file belongs into tests/fuzz/corpus/PARSER as NAME.in, its name saying what it shows: every build
replays it. With --merge, the smallest set of inputs that reaches all that was reached is added to the corpus.
"""
import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
BYTES_MAX = {"policy": 8192, "request": 8192}   # of an input; 4096 for the others
BYTES_MAX_OTHERS = 4096
KEPT_BYTES_MAX = 3072                         # of one that is kept
ENVIRONMENT = {
    "ASAN_OPTIONS": "abort_on_error=1:detect_leaks=1:handle_abort=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1:abort_on_error=1",
}


def targets(build):
    folder = os.path.join(build, "tests/fuzz")
    names = os.listdir(folder) if os.path.isdir(folder) else []
    return sorted(n[5:] for n in names if re.fullmatch(r"fuzz_[a-z0-9_]+", n) and os.access(os.path.join(folder, n), os.X_OK))


def command_of(build, name):
    command = [os.path.join(build, "tests/fuzz/fuzz_" + name), f"-max_len={BYTES_MAX.get(name, BYTES_MAX_OTHERS)}",
               "-timeout=10", "-rss_limit_mb=1500"]
    words = os.path.join(HERE, name + ".dict")
    return command + (["-dict=" + words] if os.path.exists(words) else [])


def read(path):
    with open(path, "rb") as f:
        return f.read()


def run(command):
    p = subprocess.run(command, capture_output=True, check=False, env={**os.environ, **ENVIRONMENT})
    return p.returncode, (p.stderr + p.stdout).decode(errors="replace")


def number(pattern, text, which):
    found = re.findall(pattern, text)
    return int(found[which]) if found else 0


def expand(corpus, into):
    """Writes each line of the corpus's *.lines files as a file of its own, which is how libFuzzer wants them."""
    shutil.rmtree(into, ignore_errors=True)
    os.makedirs(into)
    lines = [l for n in os.listdir(corpus) if n.endswith(".lines")
             for l in read(os.path.join(corpus, n)).rstrip(b"\n").split(b"\n")]
    for number_of_line, line in enumerate(lines):
        with open(os.path.join(into, str(number_of_line)), "wb") as f:
            f.write(line)
    return into


def fuzz(build, name, seconds, is_continued):
    """Returns whether nothing was found."""
    work, corpus = os.path.join(build, "fuzz", name), os.path.join(HERE, "corpus", name)
    if not is_continued:
        shutil.rmtree(work, ignore_errors=True)
    os.makedirs(work, exist_ok=True)
    os.makedirs(work + "-found", exist_ok=True)
    before = set(os.listdir(work))
    status, text = run(command_of(build, name) + [f"-max_total_time={seconds}", "-print_final_stats=1", "-reload=0",
                                                  f"-artifact_prefix={work}-found/", work, corpus,
                                                  expand(corpus, work + "-lines")])
    n_executions, n_new = number(r"number_of_executed_units: *(\d+)", text, -1), len(set(os.listdir(work)) - before)
    coverage = [number(r"INITED\s+cov: (\d+)", text, 0), number(r"\bcov: (\d+)", text, -1)]
    print(f"{name}: {n_executions} executions, coverage {coverage[0]} to {coverage[1]} edges, {n_new} new inputs", flush=True)
    # A target that ran nothing has shown nothing.
    if status == 0 and n_executions > 0:
        return True
    print(f"{text[-20000:]}\nexit status {status}", flush=True)
    return False


def merge(build, name):
    """Adds to the corpus what covers something that it does not, if it is small enough to be looked at."""
    work, corpus = os.path.join(build, "fuzz", name), os.path.join(HERE, "corpus", name)
    with tempfile.TemporaryDirectory(prefix="reeve-fuzz-") as scratch:
        small, new = os.path.join(scratch, "small"), os.path.join(scratch, "new")
        os.makedirs(small)
        os.makedirs(new)
        for n in os.listdir(work):
            if os.path.getsize(os.path.join(work, n)) <= KEPT_BYTES_MAX:
                shutil.copy(os.path.join(work, n), small)
        status, text = run(command_of(build, name) + ["-set_cover_merge=1", "-use_counters=0", new, corpus, work + "-lines", small])
        known = {read(os.path.join(corpus, n)) for n in os.listdir(corpus)}
        added = [n for n in sorted(os.listdir(new)) if read(os.path.join(new, n)) not in known]
        for n in added:
            shutil.copyfile(os.path.join(new, n), os.path.join(corpus, n[:12] + ".in"))
    print(text[-2000:] if status else f"{name}: {len(added)} inputs added to the corpus", flush=True)
    return status == 0


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--build", required=True)
    a.add_argument("--seconds", type=int, default=5)
    a.add_argument("--continue", dest="is_continued", action="store_true")
    a.add_argument("--merge", action="store_true")
    a.add_argument("parser", nargs="*")
    options = a.parse_args()
    names = targets(options.build)
    unknown = set(options.parser) - set(names)
    if unknown or not names:
        sys.exit(f"no such target in {options.build}: {' '.join(sorted(unknown)) or 'it has none, set it up with -Dfuzzers=true'}")
    results = [fuzz(options.build, n, options.seconds, options.is_continued) and (not options.merge or merge(options.build, n))
               for n in options.parser or names]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
