"""The files of the source tree, for the checks: what git knows and does not ignore, or, outside a
checkout (an unpacked release), every file that is no build output."""
import os
import subprocess

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def files(*suffixes, under="", top=TOP):
    """Paths relative to the top, sorted; only those that end in one of the suffixes, if any are given."""
    p = subprocess.run(["git", "-c", f"safe.directory={top}", "-C", top, "ls-files", "-z", "-co", "--exclude-standard"],
                       capture_output=True, text=True, check=False)
    if p.returncode == 0:
        found = [f for f in p.stdout.split("\0") if f]
    else:
        found = []
        for d, subdirs, names in os.walk(top):
            subdirs[:] = [s for s in subdirs if not (s.startswith("build") and d == top) and s not in (".git", "__pycache__")]
            found += [os.path.relpath(os.path.join(d, n), top) for n in names]
    found = [f for f in found if f.startswith(under) and (not suffixes or f.endswith(suffixes))]
    return sorted(f for f in found if os.path.isfile(os.path.join(top, f)))


def read(path, top=TOP):
    with open(os.path.join(top, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def is_shell(path, top=TOP):
    """Is it a shell script, by suffix or by its first line?"""
    if path.endswith(".sh"):
        return True
    if os.path.splitext(path)[1]:
        return False
    with open(os.path.join(top, path), "rb") as f:
        first = f.readline(64)
    return first.startswith(b"#!") and first.rstrip().endswith((b"/bash", b"/sh", b" bash", b" sh"))
