#!/usr/bin/python3
"""Checks that headers teach: each begins with a paragraph, each function says what it returns, who owns
what and where it may be called.

    check_headers.py [--self-test]

Every .h of core/ and backends/common begins with a comment (the concept, its lifetime, its thread rule). Each
function declared in one has a doc comment (/** … */) of its own just before it that has the words Return,
Ownership and Context; a family of functions may share one that is titled so (`rv_noun_*() - …`), if they follow it
without a blank line. Names that begin with rv__ are the hidden half of a macro and are documented there;
`static inline` helpers may go without.
"""
import re
import sys

import tree

WORDS = ("Return", "Ownership", "Context")
TOKEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S)
ATTRIBUTE = re.compile(r"\b(?:RV_PRINTF|__attribute__)\s*\((?:[^()]|\([^()]*\)|\((?:[^()]|\([^()]*\))*\))*\)")
FUNCTION = re.compile(r"^(?!typedef\b|static\b|return\b|else\b)[\w][\w\s*]*?[\s*](\w+)\s*\(")
MACRO_CALL = re.compile(r"^[A-Z][A-Z0-9_]+\([^()]*\)(?=\s*$)", re.M)


def declarations(text):
    """Yields (doc comment or "", declaration text, line) for each top-level declaration."""
    text = re.sub(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", lambda m: re.sub(r"[^\n]", " ", m[0]), text, flags=re.M)
    docs = {}

    def blank(m):
        if m[0].startswith("/**"):
            docs[m.end()] = m[0]
        return re.sub(r"[^\n]", " ", m[0])
    code = TOKEN.sub(blank, text)
    code = re.sub(r"extern\s+\{", lambda m: " " * len(m[0]), code)   # extern "C" {, whose string is blank by now
    code = MACRO_CALL.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), code)
    start = depth = 0
    for i, c in enumerate(code):
        if c in "{(":
            depth += 1
        elif c in "})":
            depth = max(depth - 1, 0)
        # A declaration ends with its semicolon, the definition of a function with its brace.
        ends = depth == 0 and (c == ";" or (c == "}" and code[start:i].split("{")[0].rstrip().endswith(")")))
        if ends:
            piece = code[start:i + 1]
            body = start + len(piece) - len(piece.lstrip())
            # the last doc comment that ends between the previous declaration and this one's first word
            doc = [d for end, d in docs.items() if start <= end <= body]
            yield (doc[-1] if doc else ""), piece.strip(), code.count("\n", 0, body) + 1
            start = i + 1


def check_text(path, text):
    faults = []
    if not re.match(r"\s*/\*(?!\*/).{20,}?\*/", text, re.S):
        faults.append(f"{path}:1: no paragraph at the head: what is it, how long does it live, which thread")
    family, end = "", 0
    for doc, declaration, line in declarations(text):
        if doc:
            family = doc if re.search(r"^/\*\*\s*(?:\*\s*)?\w+\*\(\)", doc) else ""
        elif family and line == end + 1:
            doc = family
        end = line + declaration.count("\n")
        declaration = ATTRIBUTE.sub("", declaration).strip()
        m = FUNCTION.match(declaration)
        if not m or "{" in declaration or "=" in declaration.split("(")[0] or m[1].startswith("rv__"):
            continue
        missing = [w for w in WORDS if not re.search(rf"\b{w}\b", doc)]
        if missing:
            faults.append(f"{path}:{line}: {m[1]}() " + (f"does not say {', '.join(missing)}" if doc else "has no doc comment"))
    return faults


def self_test():
    head = "/*\n * x.h - a thing that lives for a while, any thread\n */\n#pragma once\n#include <a.h>\n"
    good = "/** f() - do. Context: any. Ownership: none. Return: 0 */\n"
    rows = [("good", head + good + "int f(void);\n", 0),
            ("good with attribute", head + good + "int f(const char *s, ...) RV_PRINTF(1, 2);\n", 0),
            ("no head", "#pragma once\n", 1),
            ("no doc", head + "int f(void);\n", 1),
            ("plain comment is no doc", head + "/* Return Ownership Context */\nint f(void);\n", 1),
            ("no return", head + "/** f() - do. Context: any. Ownership: none. */\nint f(void);\n", 1),
            ("one doc for two", head + good + "int f(void);\nint g(void);\n", 1),
            ("a family", head + good.replace("f()", "f_*()") + "int f_a(void);\nint f_b(int x,\n        int y);\nint f_c(void);\n", 0),
            ("a family ends", head + good.replace("f()", "f_*()") + "int f_a(void);\n\nint f_b(void);\n", 1),
            ("after a struct", head + "struct a {\n int (*f)(int);\n};\nstruct b *f(int);\n", 1),
            ("after an inline", head + "static inline int g(int a)\n{\n return f(a);\n}\nint f(void);\n", 1),
            ("function pointers and inlines pass", head + "struct a {\n int (*f)(int);\n};\nstatic inline int g(int a)\n{\n return a;\n}\n", 0),
            ("macro calls pass", head + "RV_DEFINE_CLEANUP(struct a, f)\n" + good + "int f(void);\n", 0),
            ("macro bodies pass", head + "#define A(x) \\\n int f(x); \\\n int g(x)\n", 0),
            ("extern C", head + 'extern "C" {\nint f(void);\n}\n', 1)]
    return [f"self-test: {name}: {len(r)} faults for {n}: {r}" for name, text, n in rows if len(r := check_text("x.h", text)) != n]


if __name__ == "__main__":
    if "--self-test" in sys.argv:
        result = self_test()
    else:
        headers = [p for p in tree.files(".h") if p.startswith(("core/", "backends/common/"))]
        result = [f for p in headers for f in check_text(p, tree.read(p))]
    print("\n".join(result) if result else "headers: as they should be")
    sys.exit(1 if result else 0)
