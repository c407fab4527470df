#!/usr/bin/python3
"""Checks the layout of the C sources against .clang-format.

    check_format.py [--self-test | --fix] [FILE…]

clang-format cannot let alone what a hand set in columns (trailing comments, rows of a table, the backslashes of
a macro), has one form for `case`, and breaks long statements where it likes. So what is compared is the
sequence of logical lines with their indentation: where a statement is broken, and the spaces between its
words, are the author's choice; indentation, braces, one statement a line and the length of lines are not. Lines
between `clang-format off` and `on` are not touched. With --fix clang-format rewrites the faulty lines and no others.
"""
import concurrent.futures
import difflib
import os
import re
import subprocess
import sys

import tree


def logical_lines(text):
    """(number, indentation, text without white space) of each statement, label, row or preprocessor line."""
    joined, start, depth = "", 0, 0
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if not joined:
            start, indent, depth = number, len(line) - len(line.lstrip()), 0
        joined += " " + bare
        code = re.sub(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|/\*.*?\*/|//.*|/\*.*$", lambda m: "" if m[0][0] == "/" else "_", bare).rstrip()
        is_row = re.match(r"\s*\{.", joined)     # of a table: whole when its brace is closed
        depth += sum(code.count(c) for c in ("([{" if is_row else "([")) - sum(code.count(c) for c in (")]}" if is_row else ")]"))
        following = lines[number].strip() if number < len(lines) else ""
        is_macro = joined.lstrip().startswith("#")
        if is_macro and bare.endswith("\\"):
            continue
        is_list = code.endswith(",") and re.match(r"\s*(\w+\s+)+\**\w+(\[[^\]]*\])*\s*[=,]", joined)
        is_whole = depth <= 0 and not is_list and (not code or code[-1] in ";{}:," or following in ("", "{")
                                   or re.match(r"\s*(}?\s*else\b|if\b|for\b|while\b|switch\b|do\b|\w+_foreach)", joined))
        if is_macro or is_whole or not bare:
            if joined.strip():
                yield start, 0 if is_macro else indent, re.sub(r"\\$|[\s\\]+", "", joined)
            joined = ""


def faults_of(text, formatted):
    """(line, text) of each fault."""
    found = [(i + 1, "longer than 120 columns") for i, s in enumerate(text.splitlines())
             if len(s) > 120 and '"' not in s and not re.match(r"\s*(/\*|\*|//|#\s*define)|.*/\*", s)]
    found += [(i + 1, "a tab, or white space at the end") for i, s in enumerate(text.splitlines()) if "\t" in s or s != s.rstrip()]
    mine, its = list(logical_lines(text)), list(logical_lines(formatted))
    matcher = difflib.SequenceMatcher(None, [x[1:] for x in mine], [x[1:] for x in its], autojunk=False)
    for op, a, b, c, d in matcher.get_opcodes():
        if op == "equal":
            continue
        left, right = "".join(x[2] for x in mine[a:b]), "".join(x[2] for x in its[c:d])
        is_case = any(re.match(r"(case\b|case['\"(]|case\w|default:)", x[2]) for x in mine[max(a - 1, 0):b])
        # Rows of an initialiser or an enum, and declarations of several names, are broken as their author likes.
        is_table = any(re.match(r"\{.", mine[k][2]) for k in range(max(a - 1, 0), b)) or all(k and re.search(r",(/\*.*\*/)?$", mine[k - 1][2])
                       or re.search(r"([,}\"]|[^)]\{|\};)$|^\}|/\*.*\*/$", mine[k][2]) and ";" not in mine[k][2][:-1]
                       for k in range(a, b))
        if left == right and (is_case or is_table):
            continue
        wanted = " ⏎ ".join(x[2] for x in its[c:d][:3])
        found.append((mine[min(a, len(mine) - 1)][0], f"clang-format would indent, brace or split so: {wanted[:120]}"))
    return sorted(found)


def clang_format(path, text):
    p = subprocess.run(["clang-format", "--style=file", f"--assume-filename={path}"], input=text,
                       capture_output=True, text=True, check=True, cwd=tree.TOP)
    return p.stdout


def self_test():
    rows = [("columns", "int a;   /* x */\n", 0), ("one-line case", "int f(int x)\n{\n        switch (x) {\n        case 1: return 2;\n        default: return 3;\n        }\n}\n", 0),
            ("case on lines", "int f(int x)\n{\n        switch (x) {\n        case 1:\n                return 2;\n        default:\n                return 3;\n        }\n}\n", 0),
            ("four spaces", "int f(void)\n{\n    return 1;\n}\n", 1), ("brace", "int f(void) {\n        return 1;\n}\n", 1),
            ("another break", "int f(int a)\n{\n        return f(a,\n            a);\n}\n", 0),
            ("text in pieces", "static const char a[] = \"a\"\n                         \"b\";\n", 0),
            ("packed enum", "enum a {\n        A, B,\n        C,\n};\n", 0),
            ("else if", "int f(int x)\n{\n        if (x)\n                return 1;\n        else if (x > 2)\n                x = 4;\n        return 0;\n}\n", 0),
            ("two statements", "int f(int x)\n{\n        x++; x++;\n        return x;\n}\n", 1),
            ("brace in if", "int f(int x)\n{\n        if (x)\n        {\n                x++;\n                x++;\n        }\n        return x;\n}\n", 1),
            ("tabs", "int f(void)\n{\n\treturn 1;\n}\n", 1), ("if on one line", "int f(int x)\n{\n        if (x) return 1;\n        return 0;\n}\n", 1)]
    return [f"self-test: {name}: {r}" for name, text, n in rows if bool(r := faults_of(text, clang_format("x.c", text))) != bool(n)]


def faults_in(path):
    text = tree.read(path)
    return [(path, line, what) for line, what in faults_of(text, clang_format(path, text))]


def main():
    if "--self-test" in sys.argv:
        return self_test()
    is_fixing = "--fix" in sys.argv
    paths = [os.path.relpath(p, tree.TOP) for p in sys.argv[1:] if p != "--fix"] or tree.files(".c", ".h")
    with concurrent.futures.ProcessPoolExecutor() as pool:
        faults = [fault for found in pool.map(faults_in, paths, chunksize=8) for fault in found]
    if is_fixing:
        for p in sorted({p for p, _, _ in faults}):
            lines = [f"--lines={line}:{line}" for q, line, _ in faults if q == p]
            subprocess.run(["clang-format", "-i", "--style=file"] + lines + [p], check=True, cwd=tree.TOP)
        return []
    return [f"{p}:{line}: {what}" for p, line, what in faults]


if __name__ == "__main__":
    result = main()
    print("\n".join(result) if result else "format: as it should be")
    sys.exit(1 if result else 0)
