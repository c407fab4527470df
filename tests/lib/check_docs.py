#!/usr/bin/python3
"""Checks the documentation.

    check_docs.py [--self-test] [--reeve BINARY [--write]]

Links inside the tree lead somewhere, anchors included; the README names the demo and the check; every page of
docs/ can be reached from the README; no page names a file of the tree that is not there. Tables that the
binary prints stand between <!-- begin: reeve ARGUMENTS --> and <!-- end -->: with --reeve they are compared,
with --write brought up to date.
"""
import os
import re
import subprocess
import sys

import tree

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
TABLE = re.compile(r"(<!-- begin: reeve ([^\n]*?) -->\n)(.*?)(<!-- end -->)", re.S)
PATH = re.compile(r"`((?:core|backends|policies|tools|tests|docs)/[\w./*-]+)`")


def without_code(text):
    return re.sub(r"^```.*?^```", lambda m: "\n" * m[0].count("\n"), text, flags=re.S | re.M)


def anchors(text):
    """Heading anchors as code hosts make them: lower case, no punctuation, spaces to hyphens."""
    heads = re.findall(r"^#+ +(.*)$", without_code(text), re.M)
    return {re.sub(r" ", "-", re.sub(r"[^\w\- ]", "", h.strip().lower())) for h in heads}


def links_of(path, text):
    """(line, target file or "", anchor) of each link that stays inside the tree."""
    for m in LINK.finditer(without_code(text)):
        if re.match(r"[a-z]+:", m[1]):
            continue
        target, _, anchor = m[1].partition("#")
        full = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        yield without_code(text).count("\n", 0, m.start()) + 1, full, anchor


def check(top):
    faults, pages = [], {p: tree.read(p, top) for p in tree.files(".md", top=top)}
    known = set(tree.files(top=top))
    folders = {os.path.dirname(f)[:i] for f in known for i in [len(os.path.dirname(f))] + [k for k, c in enumerate(os.path.dirname(f)) if c == "/"]}
    for path, text in pages.items():
        for line, target, anchor in links_of(path, text):
            if target not in known and target.rstrip("/") not in folders:
                faults.append(f"{path}:{line}: the link leads nowhere: {target}")
            elif anchor and target in pages and anchor not in anchors(pages[target]):
                faults.append(f"{path}:{line}: {target} has no heading #{anchor}")
        for m in PATH.finditer(without_code(text)):
            name = m[1].rstrip("/")
            if "*" not in name and name not in known and name not in folders:
                faults.append(f"{path}:{without_code(text).count(chr(10), 0, m.start()) + 1}: there is no {name} in the tree")
    readme = pages.get("README.md", "")
    faults += [f"README.md: does not name {n}" for n in ("tools/dev/demo", "tools/dev/check") if n not in readme]
    reached, queue = set(), ["README.md"]
    while queue:
        page = queue.pop()
        if page in reached or page not in pages:
            continue
        reached.add(page)
        queue += [t for _, t, _ in links_of(page, pages[page])]
    faults += [f"{p}: no link leads here from the README" for p in pages
               if p.startswith("docs/") and not p.startswith("docs/changes.d/") and p not in reached]
    return faults


def check_tables(reeve, is_written):
    faults = []
    for path in tree.files(".md"):
        text = tree.read(path)

        def made(m):
            try:
                p = subprocess.run([reeve] + m[2].split(), capture_output=True, text=True, check=False)
            except OSError as e:
                faults.append(f"{path}: {reeve}: {e.strerror}")
                return m[0]
            if p.returncode:
                faults.append(f"{path}: `reeve {m[2]}` failed: {p.stderr.strip()[:200]}")
                return m[0]
            return m[1] + p.stdout.rstrip("\n") + "\n" + m[4]
        new = TABLE.sub(made, text)
        if new != text and is_written:
            with open(os.path.join(tree.TOP, path), "w", encoding="utf-8") as f:
                f.write(new)
        elif new != text:
            faults.append(f"{path}: a table is not what the binary prints; run tests/lib/check_docs.py --reeve BINARY --write")
    return faults


def self_test():
    import tempfile
    good = {"README.md": "tools/dev/demo tools/dev/check [a](docs/a.md#the-b)\n", "docs/a.md": "# The B\n[x](../README.md)\n"}
    rows = [("good", {}, 0), ("dead link", {"docs/a.md": "# The B\n[x](nowhere.md)\n"}, 1),
            ("dead anchor", {"docs/a.md": "# Other\n"}, 1), ("link in code", {"docs/a.md": "# The B\n```\n[x](nowhere.md)\n```\n"}, 0),
            ("unreached page", {"docs/b.md": "hello\n"}, 1), ("no file of that name", {"docs/a.md": "# The B\n`core/none.c`\n"}, 1),
            ("no demo", {"README.md": "tools/dev/check [a](docs/a.md)\n"}, 1)]
    bad = []
    for name, change, n in rows:
        with tempfile.TemporaryDirectory() as top:
            for f, text in {**good, **change}.items():
                os.makedirs(os.path.dirname(os.path.join(top, f)), exist_ok=True)
                with open(os.path.join(top, f), "w", encoding="utf-8") as out:
                    out.write(text)
            found = check(top)
        if len(found) != n:
            bad.append(f"self-test: {name}: {found}")
    return bad


def main(args):
    if "--self-test" in args:
        return self_test()
    if "--reeve" in args:
        return check_tables(os.path.abspath(args[args.index("--reeve") + 1]), "--write" in args)
    return check(tree.TOP)


if __name__ == "__main__":
    result = main(sys.argv[1:])
    print("\n".join(result) if result else "docs: as they should be")
    sys.exit(1 if result else 0)
