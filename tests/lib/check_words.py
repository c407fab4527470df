#!/usr/bin/python3
"""Checks that no source carries what it should not: marks of unfinished work, the host name of a package
registry, a path of the machine it was written on.

    check_words.py [--self-test]

The product reads registries' names at run time, examples use registry.example. Which names those are, pip and
npm are asked here, so that no list of them stands in the tree. Exit status 77 if neither is there to ask.
"""
import os
import re
import subprocess
import sys

import tree

# Each word is spelt so that this file does not contain it.
UNFINISHED = re.compile(r"\b(T[O]DO|F[I]XME|X[X]X|H[A]CK|u[n]implemented|not yet i[m]plemented|p[l]aceholder)\b", re.I)
SOURCES = (".c", ".h", ".lua", ".py", ".sh", ".build", ".scd", ".md", ".js", ".json", ".txt", ".yaml", ".yml")
PIP = """
from urllib.parse import urlsplit
from pip._internal.models.index import PyPI, TestPyPI
for index in (PyPI, TestPyPI):
    print(urlsplit(index.simple_url).hostname)
    print(index.file_storage_domain)
"""


def ask(*command):
    try:
        p = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd="/")
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return p.stdout if p.returncode == 0 else ""


def registry_hosts():
    """Host names that the package managers here would go to."""
    text = ask("/usr/bin/python3", "-c", PIP)
    text += "\n".join(re.findall(r"https?://[^/\s'\"]+", ask("/usr/bin/python3", "-m", "pip", "config", "list")
                                 + ask("npm", "config", "get", "registry")))
    hosts = {re.sub(r"^https?://|^[^@/]*@|:\d+$", "", line.strip()) for line in text.splitlines()}
    return sorted(h for h in hosts if re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", h) and not re.fullmatch(r"[\d.]+", h))


def faults_of(path, text, hosts, room):
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if path != "LICENSE" and (m := UNFINISHED.search(line)):
            found.append(f"{path}:{number}: \u201c{m[0]}\u201d marks unfinished work: finish it or say in docs/ what is not there")
        found += [f"{path}:{number}: names a package registry's host" for h in hosts if h in line]
        if room and room + "/" in line:
            found.append(f"{path}:{number}: a path of this machine")
    return found


def self_test():
    rows = [("// TO" + "DO later", 1), ("mkstemp(\"aXX" + "XXXX\")", 0), ("see registry.example", 0),
            ("index at pkg.registry.test/simple", 1), ("/the/room/x", 1), ("the hackle", 0)]
    return [f"self-test: {text!r}: {r}" for text, n in rows
            if len(r := faults_of("a.c", text, ["pkg.registry.test"], "/the/room")) != n]


def main():
    if "--self-test" in sys.argv:
        return self_test(), 0
    room = os.path.dirname(tree.TOP)
    if room.count("/") < 1 or room in ("/", "/root", "/home", "/src", "/tmp", "/usr/src"):
        room = ""
    hosts = registry_hosts()
    paths = [p for p in tree.files() if p.endswith(SOURCES) or tree.is_shell(p) or "." not in os.path.basename(p)]
    found = [f for p in paths for f in faults_of(p, tree.read(p), hosts, room)]
    if not hosts and not found:
        print("words: neither pip nor npm is there to tell the registries' names")
        return [], 77
    return found, 1 if found else 0


if __name__ == "__main__":
    result, status = main()
    print("\n".join(result) if result else "words: as they should be")
    sys.exit(1 if result else status)
