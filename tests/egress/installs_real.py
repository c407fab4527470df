#!/usr/bin/python3
"""pip and npm inside runs, with the registries that this machine's package managers use. Needs root.

    installs_real.py REEVE

Exit status 77 where those cannot be reached from outside a run either.
"""
import json
import os
import subprocess
import sys
import tempfile

from through import reeve
from world import PYTHON, run_tests


def hosts_of(language):
    """As `reeve doctor` shows them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "reeve.yaml")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"state_dir": os.path.join(folder, "state")}, f)
        os.chmod(folder, 0o755)
        p = subprocess.run([sys.argv[1], "doctor", "--json", "--config", path], capture_output=True, text=True, check=False)
    text = {row["probe"]: row["text"] for row in json.loads(p.stdout)}[f"registry ({language})"]
    return {(h.rpartition(":")[0], int(h.rpartition(":")[2])) for h in text.partition("; hosts ")[2].partition(";")[0].split()}


def only_registries(outcome, language):
    """No name of a registry is in what is printed."""
    found = {(c["name"], c["port"]) for c in outcome.contacts}
    assert found and found <= hosts_of(language), "a contact that is no registry's, or none"
    assert outcome.denials == [], "something was refused"


def test_pip():
    r = reeve("print(subprocess.call([sys.executable, '-m', 'pip', 'install', '-q', 'six==1.16.0', 'requests==2.31.0', 'numpy>=1.26,<3']))\n"
              "import six, requests, numpy as n\nprint(six.__version__, requests.__version__, n.arange(5).sum())", mode="registries", memory_mib=1024, timeout_s=120)
    assert r.ended().lines == ["0", "1.16.0 2.31.0 10"], r.text + r.errors
    only_registries(r, "python")


def test_npm():
    r = reeve("const r = child.spawnSync('npm', ['install', 'express@4', 'is-number@7.0.0'], { encoding: 'utf8' });\n"
              "console.log(r.status, require('is-number')(5), typeof require('express')());", "javascript", mode="registries", memory_mib=1024, timeout_s=120)
    assert r.ended().lines == ["0 true function"], r.text + r.errors
    only_registries(r, "javascript")


def is_reached_from_outside():
    with tempfile.TemporaryDirectory() as folder:
        command = [PYTHON, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir", "-d", folder, "six==1.16.0"]
        return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode == 0


def main():
    if os.geteuid() != 0 or not is_reached_from_outside():
        print("needs root, and the registries of this machine's pip")
        sys.exit(77)
    sys.exit(run_tests(globals()))


if __name__ == "__main__":
    main()
