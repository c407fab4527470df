#!/usr/bin/python3
"""Runs with packages that are made to harm: what each of them comes to, that nothing is left of it, and that nothing got out.

    runs_hostile.py REEVE DRIVE [WORD…]
"""
import contextlib
import os
import stat
import sys
import tarfile
import threading

import runs
from runs import Place, Registry, each, tarball, tools, wheel

sys.path.insert(0, os.path.join(runs.HERE, "../unpack"))
from common import Tarball, Wheel, info  # noqa: E402

FAILED = "package_install_failed"
OUTSIDE = ["/evil", "/tmp/evil", "/evil.py", "/tmp/evil.py", "/var/evil.py"]
DENY = 'return policy { packages = { rule { id = "no-leaf", match = { name = "leaf" }, deny = "not leaf" }, rule { id = "no-scripts", when = function(p) return p.install_script end,' \
       ' deny = "it runs scripts" }, default = "allow" }, network = { default = "allow" }, idempotency = { default = "none" }, backend = { default = "tenant" } }'


def clean(place):
    place.kept_nothing()
    p = runs.subprocess.run(["find", place.folder, "-name", "*evil*"], capture_output=True, text=True, check=True)
    assert not p.stdout, p.stdout
    for path in OUTSIDE:
        assert not os.path.lexists(path), path
    place.remove()


# ---- Wheels ----

def bad(files=None, name="tiny", version="1.0", **also):
    """tiny 1.0 as the index tells of it, and what is really in it."""
    return wheel("tiny", "1.0", data=Wheel(name, version, files=[("tiny.py", "x = 1\n"), *(files or [])], **also).data())


def wheels():
    return [
        ("a place above", bad([("../evil.py", "x")]), "unsafe_archive"),
        ("a place above, within", bad([("a/../../../evil.py", "x")]), "unsafe_archive"),
        ("an absolute place", bad([("/tmp/evil.py", "x")]), "unsafe_archive"),
        ("a backslash", bad([("..\\evil.py", "x")]), "unsafe_archive"),
        ("a symbolic link", bad([("evil", "/etc/passwd", stat.S_IFLNK | 0o777)]), "unsafe_archive"),
        ("a device", bad([("evil", "", stat.S_IFCHR | 0o666)]), "unsafe_archive"),
        ("two names that differ in case", bad([("Tiny.py", "x")]), "unsafe_archive"),
        ("a script above", bad([("tiny-1.0.data/scripts/../../../evil", "x")]), "unsafe_archive"),
        ("an entry point above", bad(entry_points="[console_scripts]\n../../evil = tiny:main\n"), "unsafe_archive"),
        ("another name", bad(name="other", stem="tiny-1.0"), "name_mismatch"),
        ("another version", bad(version="2.0", stem="tiny-1.0"), "name_mismatch"),
        ("no archive", wheel("tiny", "1.0", data=b"<html>sign in</html>" * 50), "unsafe_archive"),
        ("an archive that is cut", wheel("tiny", "1.0", data=Wheel("tiny", "1.0", files=[("tiny.py", "x = 1\n" * 999)]).data()[:-40]), "unsafe_archive"),
        ("a bomb", wheel("tiny", "1.0", zeros=100 * runs.MIB), "unsafe_archive"),
    ]


def a_wheel(tool, _, package, cause):
    with Registry("python", [package]) as r:
        place = Place(r, tool=tool)
        place.run("python", ["tiny==1.0"], "import tiny").failed(FAILED, cause, False, "tiny", "tiny")
        clean(place)


def test_wheels():
    cases = wheels()
    each([(tool, *case) for _, tool in tools("uv", "pip") for case in cases], a_wheel)


def test_wheels_that_need_what_is_elsewhere():
    def do(tool, where):
        with Registry("python", [wheel("tiny", "1.0", requires=["leaf @ " + where]), wheel("leaf", "1.0")]) as r:
            place = Place(r, tool=tool)
            outcome = place.run("python", ["tiny==1.0"])
            assert (outcome.code, outcome.reason["retryable"], outcome.all["started"]) in ((FAILED, False, "no"), ("package_unavailable", False, "no")), outcome.reason
            clean(place)
    each([(tool, where) for _, tool in tools("uv", "pip") for where in (
        "http://files.registry.test/leaf-1.0-py3-none-any.whl", "git+https://git.registry.test/a/b.git", "file:///etc/passwd")], do)


def test_two_wheels_with_one_path():
    def do(tool):
        with Registry("python", [wheel("tiny", "1.0", files={"tiny.py": "1"}), wheel("other", "1.0", files={"tiny.py": "2"})]) as r:
            place = Place(r, tool=tool)
            for _ in range(2):
                place.run("python", ["tiny>=1", "other>=1"]).failed(FAILED, "unsafe_archive", False, None, "tiny.py")
                assert set(place.kept()) <= {"used"}, place.kept()
            # What the registry has by then is found.
            r.packages.append(wheel("other", "1.1"))
            assert place.run("python", ["tiny>=1", "other>=1"]).ended().versions() == {"tiny": "1.0", "other": "1.1"}
    each([(tool,) for _, tool in tools("uv", "pip")], do)


# ---- Tarballs ----

def tar(**also):
    return tarball("tiny", "1.0.0", data=Tarball("tiny", "1.0.0", **also).data())


def raw(path, kind=tarfile.REGTYPE, link=""):
    return tar(files=[("index.js", "0")], raw=[(info(path, kind, link), "")])


def tarballs():
    return [
        ("a place above", raw("package/../../evil"), "unsafe_archive"),
        ("an absolute place", raw("/tmp/evil"), "unsafe_archive"),
        ("a symbolic link", raw("package/evil", tarfile.SYMTYPE, "/etc/passwd"), "unsafe_archive"),
        ("a hard link", raw("package/evil", tarfile.LNKTYPE, "/etc/passwd"), "unsafe_archive"),
        ("a device", raw("package/evil", tarfile.CHRTYPE), "unsafe_archive"),
        ("two names that differ in case", raw("package/INDEX.js"), "unsafe_archive"),
        ("another name", tarball("tiny", "1.0.0", data=Tarball("other", "1.0.0").data()), "name_mismatch"),
        ("another version", tarball("tiny", "1.0.0", data=Tarball("tiny", "2.0.0").data()), "name_mismatch"),
        ("no archive", tarball("tiny", "1.0.0", data=b"<html>sign in</html>" * 50), "unsafe_archive"),
        ("a bomb", tarball("tiny", "1.0.0", zeros=100 * runs.MIB), "unsafe_archive"),
        ("no strong hash", tarball("tiny", "1.0.0", dist={"integrity": "sha1-" + "A" * 27 + "="}), "unsafe_archive"),
        ("packages in it that are told", tarball("tiny", "1.0.0", manifest={"dependencies": {"leaf": "1.0.0"}, "bundleDependencies": ["leaf"]},
                                                 members=[["package/node_modules/leaf/package.json", '{"name":"leaf","version":"9.9.9"}']]), "unsafe_archive"),
        ("packages in it that are not told", tarball("tiny", "1.0.0", members=[["package/node_modules/leaf/package.json", '{"name":"leaf","version":"9.9.9"}']]), "unsafe_archive"),
        ("a program above", tarball("tiny", "1.0.0", manifest={"bin": {"../../evil": "index.js"}}), None),
        ("a program that is elsewhere", tarball("tiny", "1.0.0", manifest={"bin": {"tool": "../../../etc/passwd"}}), None),
    ] + [(f"it needs {spec}", tarball("tiny", "1.0.0", manifest={"dependencies": {"leaf": spec}}), "unsafe_archive") for spec in (
        "file:../../..", "file:/etc", "link:../..", "git+https://git.registry.test/a/b.git", "git+ssh://git@git.registry.test/a/b.git", "someone/something",
        "http://files.registry.test/leaf.tgz")]


def a_tarball(_, package, cause):
    with Registry("javascript", [package, tarball("leaf", "1.0.0")]) as r:
        place = Place(r)
        outcome = place.run("javascript", ["tiny@1.0.0"], "console.log(require('fs').readdirSync('/node_modules').sort().join())")
        if cause is None:
            assert outcome.code == FAILED or outcome.ended(), outcome.reason
            assert outcome.code == FAILED or outcome.lines in (["tiny"], [".bin,tiny"]), outcome.lines
            if outcome.code == "ok":
                place.remove()
                return
        else:
            outcome.failed(FAILED, cause, False)
        clean(place)


def test_tarballs():
    each(tarballs(), a_tarball)


def test_another_name_for_a_package_does_not_hide_it():
    with Registry("javascript", [tarball("tiny", "1.0.0", manifest={"dependencies": {"innocent": "npm:leaf@1.0.0"}}), tarball("leaf", "1.0.0")]) as r:
        Place(r, policy=DENY).run("javascript", ["tiny@1.0.0"]).denied("leaf", "no-leaf", ["tiny", "leaf"])
        outcome = Place(r).run("javascript", ["tiny@1.0.0"], "console.log(require('innocent'))").ended("1.0.0")
        assert outcome.versions() == {"tiny": "1.0.0", "leaf": "1.0.0"}, outcome.lock


def test_what_would_run_when_installed_is_told_and_never_run():
    marks = {"scripts": {"install": "touch /tmp/evil", "preinstall": "touch /tmp/evil", "postinstall": "touch /tmp/evil"}}
    with Registry("javascript", [tarball("quiet", "1.0.0"), tarball("loud", "1.0.0", manifest=marks), tarball("built", "1.0.0", files={"index.js": "0", "binding.gyp": "{}"}),
                                 tarball("liar", "1.0.0", data=Tarball("liar", "1.0.0", manifest=marks).data())]) as r:
        outcome = Place(r).run("javascript", ["quiet@1.0.0", "loud@1.0.0", "built@1.0.0", "liar@1.0.0"], "console.log(require('fs').existsSync('/tmp/evil'))").ended("false")
        assert {n: p["install_script"] for n, p in outcome.lock.items()} == {"quiet": False, "loud": True, "built": True, "liar": True}, outcome.lock
        for name in ("loud", "built", "liar"):
            place = Place(r, policy=DENY)
            place.run("javascript", [name + "@1.0.0"]).denied(name, "no-scripts", [name])
        assert not os.path.exists("/tmp/evil")


def test_source_is_never_built():
    """An index that has only source is told so, and what is in it never runs."""
    import io
    b = io.BytesIO()
    with tarfile.open(fileobj=b, mode="w:gz") as t:
        for name, text in (("tiny-1.0/setup.py", "open('/tmp/evil', 'w')\nfrom setuptools import setup\nsetup(name='tiny', version='1.0')\n"), ("tiny-1.0/PKG-INFO", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")):
            i = tarfile.TarInfo(name)
            i.size = len(text)
            t.addfile(i, io.BytesIO(text.encode()))

    def do(tool):
        with Registry("python", [wheel("tiny", "1.0", file="tiny-1.0.tar.gz", data=b.getvalue())]) as r:
            place = Place(r, tool=tool)
            place.run("python", ["tiny==1.0"]).failed("package_unavailable", "no_wheel", False, "tiny")
            assert "tiny-1.0.tar.gz" not in r.downloads(), r.seen
            clean(place)
    each([(tool,) for _, tool in tools("uv", "pip")], do)


def test_pages_that_are_made_to_harm():
    """Names, addresses and texts of a page that no registry has."""
    secret = threading.Event()

    def watch(handler, path):
        if "secret" in path:
            secret.set()
        return False

    def do(tool, _, page):
        with Registry("python", [], fault=watch) as inside, Registry("python", [wheel("tiny", "1.0", page=page)], fault=watch) as r:
            if "PORT" in str(page.get("url", "")):
                r.packages[0]["page"] = {"url": page["url"].replace("PORT", str(inside.port))}
            place = Place(r, tool=tool)
            outcome = place.run("python", ["tiny==1.0"])
            assert (outcome.all["status"], outcome.all["started"]) == ("failed", "no") and outcome.code in ("package_unavailable", FAILED), outcome.reason
            assert not secret.is_set(), "a file of the host's own was asked for"
            clean(place)
    each([(tool, *case) for _, tool in tools("uv", "pip") for case in [
        ("a file of the machine", {"url": "file:///etc/passwd"}), ("an address of the machine", {"url": "http://127.0.0.1:PORT/secret/tiny-1.0-py3-none-any.whl"}),
        ("an address of the machine, otherwise", {"url": "http://[::ffff:127.0.0.1]:PORT/secret/tiny-1.0-py3-none-any.whl"}),
        ("another file name", {"filename": "../../evil-1.0-py3-none-any.whl"}), ("another package's file", {"filename": "other-1.0-py3-none-any.whl"})]], do)


if __name__ == "__main__":
    with contextlib.suppress(FileNotFoundError):
        os.unlink("/tmp/evil")
    runs.main(globals())
