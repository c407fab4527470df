#!/usr/bin/python3
"""Where uv is for the tests: prints its path.

    uv.py [DIRECTORY]

$REEVE_UV if it names a program; else the one in DIRECTORY (build-check/uv), which is fetched by pip if it is not there:
uv is no Debian package, and what the tests need is installed nowhere. Exit status 77, with the reason, where it cannot
be had. tools/dev/check exports what is printed as REEVE_UV.
"""
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

import tree

TIMEOUT_S = 120


def works(path):
    try:
        return subprocess.run([path, "--version"], capture_output=True, check=False, timeout=30).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def last_line(text):
    return (text.strip().splitlines() or ["no message"])[-1]


def fetch(directory):
    """(path, "") or (None, why not). What is half done is never seen under the name that is looked for."""
    os.makedirs(directory, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory) as place:
        command = ["/usr/bin/python3", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--retries", "1", "--dest", place, "uv"]
        try:
            p = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return None, f"pip did not fetch it in {TIMEOUT_S} s"
        wheels = glob.glob(os.path.join(place, "uv-*.whl"))
        if p.returncode or not wheels:
            return None, f"pip cannot fetch it: {last_line(p.stderr)}"
        with zipfile.ZipFile(wheels[0]) as wheel:
            name = next((n for n in wheel.namelist() if n.endswith(".data/scripts/uv")), None)
            if not name:
                return None, "its wheel has no program"
            new = os.path.join(place, "uv")
            with open(new, "wb") as out:
                out.write(wheel.read(name))
        os.chmod(new, 0o755)
        if not works(new):
            return None, "it does not run here"
        path = os.path.join(directory, "uv")
        os.replace(new, path)
    return path, ""


def find(directory=os.path.join(tree.TOP, "build-check", "uv")):
    """(path, "") or (None, why there is none)."""
    for path in filter(None, (os.environ.get("REEVE_UV"), os.path.join(directory, "uv"))):
        if works(path):
            return path, ""
    return fetch(directory)


def main():
    path, why = find(*sys.argv[1:2])
    print(path or f"no uv: {why}")
    return 0 if path else 77


if __name__ == "__main__":
    sys.exit(main())
