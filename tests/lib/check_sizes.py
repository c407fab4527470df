#!/usr/bin/python3
"""Checks that a reader can take in a file and a function at once.

    check_sizes.py [--self-test]

A C file of the product has at most 500 lines, a test 1,000; a function of the product, where no table of cases
makes it long, 60 from brace to brace.
"""
import sys

import tree

FILE_MAX, TEST_MAX, FUNCTION_MAX = 500, 1000, 60


def faults_of(path, text):
    lines = text.splitlines()
    most = TEST_MAX if path.startswith("tests/") else FILE_MAX
    found = [f"{path}: {len(lines)} lines, at most {most}: split it by concept"] if len(lines) > most else []
    start = 0
    for number, line in enumerate(lines, 1):
        if line.startswith("{"):
            start = number
        elif line.startswith("}") and start:
            if number - start > FUNCTION_MAX and not path.startswith("tests/"):
                found.append(f"{path}:{start}: a function of {number - start} lines, at most {FUNCTION_MAX}")
            start = 0
    return found


def self_test():
    def function(n):
        return "int f(void)\n{\n" + "        x++;\n" * (n - 1) + "}\n"
    rows = [("60 lines", "core/a.c", function(60), 0), ("61 lines", "core/a.c", function(61), 1),
            ("long test function", "tests/a.c", function(90), 0), ("long file", "core/a.c", "\n" * 501, 1), ("long test", "tests/a.c", "\n" * 501, 0),
            ("struct", "core/a.c", "struct a {\n" + " int b;\n" * 99 + "};\n", 0)]
    return [f"self-test: {name}: {r}" for name, path, text, n in rows if len(r := faults_of(path, text)) != n]


if __name__ == "__main__":
    result = self_test() if "--self-test" in sys.argv else [
        f for p in tree.files(".c", ".h") for f in faults_of(p, tree.read(p))]
    print("\n".join(result) if result else "sizes: as they should be")
    sys.exit(1 if result else 0)
