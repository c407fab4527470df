#!/usr/bin/python3
"""Checks that includes go one way.

    check_includes.py [--self-test]

core/ is a pile of folders: a file includes headers of its own folder and of those before it in ORDER.
A backend sees core/include (the plugin interface), backends/common and its own folder, since a third
party's plugin sees no more. What is privileged must not reach the parsers: backends/common sees core/base
only. Tools may include any header of core/ for as long as libreeve's public headers (core/include/reeve)
cover the backend interface alone; no tool sees a backend's own folder. Tests see everything.
"""
import os
import re
import sys
import tempfile

import tree

ORDER = ["base", "loop", "request", "policy", "audit", "package", "egress", "store", "plugin", "run"]
ROOTS = ["core/include", "core", ".", "backends", "tools"]   # where the build looks for "x/y.h"
# Folders of backends/ and tools/ -> what each may include besides itself and core/include.
BACKENDS_COMMON = {"core/base"}
# The spawner and init are the privileged halves of the backends: they are built from backends/common. The
# command line starts the spawner, whose client is there too.
TOOLS_WITH_COMMON = {"spawner", "init", "reeve", "gate", "serve"}
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)


def place(path):
    """The folder that the rules speak of: core/base, core/include, backends/common, tools/reeve, tests…"""
    return "/".join(os.path.dirname(path).split("/")[:2])


def resolve(path, name, known):
    """The tree's file that an include names, or None: a system header, or one that the build generates."""
    for root in [os.path.dirname(path)] + ROOTS:
        candidate = os.path.normpath(os.path.join(root, name))
        if candidate in known:
            return candidate
    return None


def is_allowed(path, target):
    """May the file at `path` include the one at `target`?"""
    here, there = place(path), place(target)
    if here == there or there == "core/include":
        return True
    area, folder = (here + "/").split("/")[:2]
    if area == "tests":
        return True
    if here == "core/include":
        return False
    if area == "core":
        if not there.startswith("core/") or folder not in ORDER or there[5:] not in ORDER:
            return False
        return ORDER.index(there[5:]) <= ORDER.index(folder)
    if here == "backends/common":
        return there in BACKENDS_COMMON
    if area == "backends":
        return there == "backends/common"
    if area == "tools":
        return there.startswith("core/") or (there == "backends/common" and folder in TOOLS_WITH_COMMON)
    return False


def check(top):
    """All wrong includes, as 'file:line: text'."""
    sources = tree.files(".c", ".h", ".inc", top=top)
    known, faults = set(sources), []
    for path in sources:
        text = tree.read(path, top)
        for m in INCLUDE.finditer(text):
            name = m[1] or m[2]
            target = resolve(path, name, known)
            if target and not is_allowed(path, target):
                line = text.count("\n", 0, m.start()) + 1
                faults.append(f"{path}:{line}: {place(path)} must not include {target}")
            folder = place(path).removeprefix("core/")
            if path.startswith("core/") and folder not in ORDER + ["include"] and not m.start():
                faults.append(f"{path}: folder core/{folder} has no place in the order ({' < '.join(ORDER)})")
    return faults


def self_test():
    """Each row is one file with one include and whether it is wrong."""
    rows = [("core/base/a.c", '"base/b.h"', False), ("core/base/a.c", '"request/r.h"', True),
            ("core/request/a.c", '"base/b.h"', False), ("core/policy/a.c", '"run/x.h"', True),
            ("core/run/a.c", '"policy/p.h"', False), ("core/run/a.c", '"common/c.h"', True),
            ("core/run/a.c", "<reeve/backend.h>", False), ("core/base/a.c", "<base/../request/r.h>", True),
            ("core/include/reeve/x.h", '"base/b.h"', True), ("core/base/a.c", "<stdio.h>", False),
            ("backends/common/a.c", '"base/b.h"', False), ("backends/common/a.c", '"request/r.h"', True),
            ("backends/fake/a.c", '"backends/common/c.h"', False), ("backends/fake/a.c", '"namespace/n.h"', True),
            ("backends/namespace/a.c", '"base/b.h"', True), ("backends/namespace/a.c", "<reeve/backend.h>", False),
            ("tools/reeve/a.c", '"run/x.h"', False), ("tools/reeve/a.c", '"backends/namespace/n.h"', True),
            ("tools/spawner/a.c", '"common/c.h"', False), ("tools/fetch/a.c", '"common/c.h"', True),
            ("tests/unit/a.c", '"backends/namespace/n.h"', False)]
    headers = ["core/base/b.h", "core/request/r.h", "core/policy/p.h", "core/run/x.h", "core/include/reeve/backend.h",
               "backends/common/c.h", "backends/namespace/n.h"]
    bad = []
    for path, include, is_wrong in rows:
        with tempfile.TemporaryDirectory() as top:
            for f in headers + [path]:
                os.makedirs(os.path.dirname(os.path.join(top, f)), exist_ok=True)
                with open(os.path.join(top, f), "w", encoding="utf-8") as out:
                    out.write(f"#include {include}\n" if f == path else "")
            if bool(check(top)) != is_wrong:
                bad.append(f"self-test: {path} with #include {include} should be {'found' if is_wrong else 'allowed'}")
    return bad


if __name__ == "__main__":
    result = self_test() if "--self-test" in sys.argv else check(tree.TOP)
    print("\n".join(result) if result else "includes: as they should be")
    sys.exit(1 if result else 0)
