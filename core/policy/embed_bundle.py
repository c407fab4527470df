#!/usr/bin/python3
"""Turns a policy bundle into C, so that it is there without a file and its digest without being computed.

    embed_bundle.py OUTPUT.c BUNDLE_DIR FILE…    (FILEs below BUNDLE_DIR)

The digest follows core/policy/bundle.h; a unit test loads the directory and compares. bundle.yaml is read as
the plain `key: value` lines that the bundles of this project are written in, and anything else is refused.
"""
import hashlib
import os
import re
import sys


def c_string(data):
    """The bytes as C string literals, one a source line."""
    def escape(line):
        return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in line)
    return "\n".join(f'                "{escape(line)}"' for line in data.splitlines(keepends=True)) or '                ""'


def read_yaml(text):
    values = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        m = re.fullmatch(r"(name|version|description): ([A-Za-z0-9][^:#]*)", line)
        if not m:
            sys.exit(f"embed_bundle.py: bundle.yaml: cannot read {line!r}")
        values[m[1]] = m[2].strip()
    return values


def main():
    output, top, *paths = sys.argv[1:]
    files, lines = [], b""
    for path in paths:
        with open(path, "rb") as f:
            files.append((os.path.relpath(path, top), f.read()))
    files.sort(key=lambda f: f[0].encode())
    for name, data in files:
        lines += f"{hashlib.sha256(data).hexdigest()}  {name}\n".encode()
    yaml = read_yaml(dict(files).get("bundle.yaml", b"").decode())
    with open(output, "w", encoding="ascii") as f:
        f.write('#include "policy/bundle_files.h"\n\nstatic const struct rv_bundle_file files[] = {\n')
        for name, data in files:
            f.write(f'        {{ "{name}",\n{c_string(data)},\n          {len(data)}, NULL }},\n')
        f.write("};\n\nconst struct rv_bundle rv_bundle_default = {\n")
        f.write(f'        .digest = "{hashlib.sha256(lines).hexdigest()}",\n')
        for key in ("name", "version", "description"):
            f.write(f"        .{key} =\n{c_string(yaml.get(key, '').encode())},\n")
        f.write("        .files = files,\n        .n_files = sizeof(files) / sizeof(files[0]),\n};\n")


main()
