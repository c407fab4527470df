#!/usr/bin/python3
"""Runs whose packages cannot be had: the code and the cause, what may be tried again, and that nothing is left of them.

    runs_causes.py REEVE DRIVE [WORD…]
"""
import os
import socket
import threading
import time

import runs
from runs import Place, Registry, asked, either, each, tarball, tools, wheel

UNAVAILABLE, FAILED = "package_unavailable", "package_install_failed"
SECRET = "s3cr3t-of-the-registry"
WAITED = []
YOUNG = 'return policy { packages = { rule { id = "cooldown", match = { language = { "python", "javascript" } }, allow = true, newest_published = "P7D" }, default = "allow" },' \
        ' network = { default = "allow" }, idempotency = { default = "none" }, backend = { default = "tenant" } }'


def setup():
    global AUTHORITY, FOREIGN, WAITING
    AUTHORITY, FOREIGN = runs.world.Authority(), runs.world.Authority()
    runs.world.Dns()
    WAITING = threading.Thread(target=wait_for_ever)
    WAITING.start()


def now(days=0):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - days * 86400))


def clean(place, outcome):
    """Nothing is kept of it but what the registry said, and nobody is told the credentials."""
    place.kept_nothing()
    assert SECRET not in str(outcome.all) + outcome.errors, outcome.all
    place.has_no(SECRET)
    place.remove()


# ---- Of the packages ----

def python_cases():
    """(name, packages of the registry, what is asked for, code, cause, retryable, package, words of the message, policy)"""
    some = [wheel("tiny", v) for v in ("1.0", "1.1", "2.0", "3.0")]
    return [
        ("missing package", some, ["absent==1"], "missing_package", "absent", ["absent"]),
        ("missing version", some, ["tiny==1.2"], "missing_version", "tiny", ["tiny", "1.1", "2.0"]),
        ("nothing in the range", some, ["tiny>=7"], "missing_version", "tiny", ["3.0"]),
        ("missing package, transitive", some + [wheel("top", "1.0", requires=["absent>=1"])], ["top==1.0"], "missing_package", "absent", ["absent"]),
        ("missing version, transitive", some + [wheel("top", "1.0", requires=["tiny==1.2"])], ["top==1.0"], "missing_version", "tiny", ["1.1"]),
        ("conflict", some + [wheel("a", "1", requires=["tiny<2"]), wheel("b", "1", requires=["tiny>=2"])], ["a==1", "b==1"], "conflict", None, []),
        ("source only", [wheel("tiny", "1.0", file="tiny-1.0.tar.gz")], ["tiny==1.0"], "no_wheel", "tiny", ["tiny"]),
        ("another platform", [wheel("tiny", "1.0", file="tiny-1.0-cp311-cp311-win_amd64.whl")], ["tiny==1.0"], "platform", "tiny", ["tiny"]),
        ("a newer runtime", [wheel("tiny", "1.0", python=">=3.99")], ["tiny==1.0"], "runtime", "tiny", ["3.99"]),
        ("wheels of a newer runtime", [wheel("tiny", "1.0", file="tiny-1.0-cp399-cp399-manylinux2014_x86_64.whl")], ["tiny==1.0"], "runtime", "tiny", ["tiny"]),
        ("yanked", [wheel("tiny", "1.0", page={"yanked": "broken"})], ["tiny>=1"], "yanked", "tiny", ["tiny"]),
        ("too young", [wheel("tiny", "1.0", page={"upload-time": now(2)})], ["tiny>=1"], "too_new", "tiny", ["tiny"], YOUNG),
    ]


def npm_cases():
    some = [tarball("tiny", v) for v in ("1.0.0", "1.1.0", "2.0.0", "3.0.0")]
    return [
        ("missing package", some, ["absent@1.0.0"], "missing_package", "absent", ["absent"]),
        ("missing version", some, ["tiny@1.2.0"], "missing_version", "tiny", ["1.1.0", "2.0.0"]),
        ("nothing in the range", some, ["tiny@^7"], "missing_version", "tiny", ["3.0.0"]),
        ("missing package, transitive", some + [tarball("top", "1.0.0", manifest={"dependencies": {"absent": "^1"}})], ["top@1.0.0"], "missing_package", "absent", ["absent"]),
        ("missing version, transitive", some + [tarball("top", "1.0.0", manifest={"dependencies": {"tiny": "1.2.0"}})], ["top@1.0.0"], "missing_version", "tiny", ["1.1.0"]),
        ("conflict", some + [tarball("a", "1.0.0", manifest={"peerDependencies": {"tiny": "^1"}}), tarball("b", "1.0.0", manifest={"peerDependencies": {"tiny": "^2"}})],
         ["a@1.0.0", "b@1.0.0"], "conflict", None, []),
        ("another platform", [tarball("tiny", "1.0.0", manifest={"os": ["win32"]})], ["tiny@1.0.0"], "platform", "tiny", ["tiny"]),
        ("too young", [tarball("tiny", "1.0.0", time=now(2))], ["tiny@^1"], "too_new", "tiny", ["tiny"], YOUNG),
    ]


def one(tool, language, name, packages, ask, cause, package, words, policy=None):
    with Registry(language, packages) as r:
        place = Place(r, tool=tool, policy=policy, credentials=f"reader:{SECRET}@")
        outcome = place.run(language, ask)
        outcome.failed(UNAVAILABLE, cause, False, package, *words)
        clean(place, outcome)


def test_packages_that_cannot_be_had():
    each([(tool, language, *case) for language, tool in tools() for case in (python_cases() if language == "python" else npm_cases())], one)


def test_a_yanked_version_that_is_named_is_taken_and_told():
    def do(tool):
        with Registry("python", [wheel("tiny", "1.0", page={"yanked": "broken"}), wheel("tiny", "2.0")]) as r:
            outcome = Place(r, tool=tool).run("python", ["tiny==1.0"], "import tiny; print(tiny.version)").ended("1.0")
            assert outcome.lock["tiny"]["yanked"] is True, outcome.lock
    each([(tool,) for _, tool in tools("uv", "pip")], do)


# ---- Of the registry ----

def status(code):
    def fault(handler, _):
        handler.answer(code, "<html>no</html>", "text/html", **({"WWW_Authenticate": 'Basic realm="x"'} if code == 401 else {}))
        return True
    return fault


def text(body, kind):
    def fault(handler, _):
        handler.answer(200, body, kind)
        return True
    return fault


def of_file(code):
    """The pages are there, the files are not."""
    def fault(handler, path):
        if not path.endswith((".whl", ".tgz")):
            return False
        handler.answer(code, "no", "text/plain")
        return True
    return fault


def hang_up(handler, _):
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)
    return True


FAULTS = [   # name, fault, cause, may be tried again, at most so many ms
    ("500", status(500), "registry_error", True, 3000),
    ("503", status(503), "registry_error", True, 3000),
    ("401", status(401), "registry_refused", True, 0),
    ("403", status(403), "registry_refused", True, 0),
    ("a page to sign in", text("<html><body>please sign in</body></html>", "text/html"), "registry_invalid", True, 0),
    ("JSON that is cut", text('{"meta":{"api-version":"1.1"},"name":"tiny","files":[{"filen', "application/vnd.pypi.simple.v1+json"), "registry_invalid", True, 0),
    ("no answer's beginning", hang_up, None, True, 0),
    ("503 of a file", of_file(503), "registry_error", True, 0),
    ("404 of a file", of_file(404), "registry_invalid", True, 0),
    ("403 of a file", of_file(403), "registry_refused", True, 0),
]


def faulty(tool, language, name, fault, cause, is_retryable, ms):
    with Registry(language, [either(language, "tiny", "1.0.0")], fault=fault) as r:
        place = Place(r, tool=tool, credentials=f"reader:{SECRET}@")
        outcome = place.run(language, [asked(language, "tiny", "==1.0.0")])
        outcome.failed(UNAVAILABLE, cause or outcome.cause, is_retryable)
        assert cause or outcome.cause in ("registry_unreachable", "registry_invalid"), outcome.reason
        assert not ms or outcome.took_ms < ms, outcome.took_ms
        clean(place, outcome)


def test_registries_that_answer_badly():
    each([(tool, language, *f) for language, tool in tools() for f in FAULTS], faulty)


def test_another_type_of_page():
    def do(tool):
        with Registry("python", [wheel("tiny", "1.0.0")]) as r:
            r.kind_of_page = "application/octet-stream"
            place = Place(r, tool=tool)
            outcome = place.run("python", ["tiny==1.0.0"]).failed(UNAVAILABLE, "registry_invalid", True)
            clean(place, outcome)
    each([(tool,) for _, tool in tools("uv", "pip")], do)


def test_registries_that_are_not_there():
    def do(language, tool, host, port):
        with Registry(language) as r:
            config = r.config(f"reader:{SECRET}@")
        config["index"] = config["index"].replace(f"{r.host}:{r.port}", f"{host or r.host}:{port or r.port}")
        place = Place(tool=tool, registries={language: config})
        outcome = place.run(language, [asked(language, "tiny", "==1.0.0")])
        outcome.failed(UNAVAILABLE, "registry_unreachable", True)
        assert outcome.took_ms < 3000, outcome.took_ms
        clean(place, outcome)
    each([(language, tool, None, None) for language, tool in tools()], do, 1)
    each([(language, tool, "absent.registry.test", 8080) for language, tool in tools()], do, 1)


def wait_for_ever():
    """Asks registries that take a connection and say nothing. Each tool waits as long as it may, so this is done beside all else."""
    hole = socket.socket()
    hole.bind(("127.0.0.1", 0))
    hole.listen(64)

    def do(language, tool):
        place = Place(tool=tool, registries={language: {"index": f"http://reader:{SECRET}@{runs.PY if language == 'python' else runs.JS}:{hole.getsockname()[1]}/simple/"}})
        WAITED.append((place, place.run(language, [asked(language, "tiny", "==1.0.0")])))
    each(tools(), do)


def test_a_registry_at_an_address_that_is_the_sandbox_itself():
    def do(language, tool, host):
        with Registry(language, [either(language, "tiny", "1.0.0")]) as r:
            r.host = host
            place = Place(r, tool=tool)
            outcome = place.run(language, [asked(language, "tiny", "==1.0.0")])
            assert (outcome.all["status"], outcome.code, outcome.reason["retryable"], outcome.exit) == ("blocked", "backend_denied", False, 126), outcome.reason
            assert host.strip("[]") in outcome.reason["message"] and "egress.resolve" in outcome.reason["message"], outcome.reason
            clean(place, outcome)
    each([(language, tool, host) for language, tool in tools() for host in ("127.0.0.1", "localhost", "[::1]")], do)


def test_registries_that_are_slow():
    def slow(*_):
        time.sleep(1)
        return False

    def do(language, tool):
        with Registry(language, [either(language, "tiny", "1.0.0")], fault=slow) as r:
            Place(r, tool=tool).run(language, [asked(language, "tiny", "==1.0.0")]).ended()
    each(tools(), do)


def test_certificates():
    def do(language, tool, is_known):
        with Registry(language, [either(language, "tiny", "1.0.0")], tls=AUTHORITY) as r:
            r.host = ("py" if language == "python" else "js") + ".example.test"
            trusted = (AUTHORITY if is_known else FOREIGN).path("ca.pem")
            place = Place(tool=tool, registries={language: r.config(f"reader:{SECRET}@", ca=trusted)}, egress={"resolve": {r.host: "127.0.0.1"}})
            outcome = place.run(language, [asked(language, "tiny", "==1.0.0")])
            if is_known:
                outcome.ended()
            else:
                outcome.failed(UNAVAILABLE, "registry_tls", False)
                clean(place, outcome)
    each([(language, tool, is_known) for language, tool in tools() for is_known in (True, False)], do)


def test_credentials_that_are_asked_for():
    def do(language, tool, is_right):
        secret = "Basic " + runs.base64.b64encode(f"reader:{SECRET}".encode()).decode()
        with Registry(language, [either(language, "tiny", "1.0.0")], secret=secret) as r:
            place = Place(r, tool=tool, credentials=f"reader:{SECRET if is_right else 'wrong-' + SECRET}@")
            outcome = place.run(language, [asked(language, "tiny", "==1.0.0")])
            if is_right:
                outcome.ended()
                place.has_no(SECRET)
            else:
                outcome.failed(UNAVAILABLE, "registry_refused", True)
                clean(place, outcome)
    each([(language, tool, is_right) for language, tool in tools() for is_right in (True, False)], do)


def test_files_elsewhere():
    """A page that names another server, which is private: taken if the registry's configuration names it; and redirections there."""
    def do(language, tool, is_redirected, is_known):
        package = either(language, "tiny", "1.0.0")
        with Registry(language, [package]) as files:
            there = f"http://{'files.registry.test' if is_redirected or is_known else '127.0.0.1'}:{files.port}"

            def redirect(handler, path):
                if not path.endswith((".whl", ".tgz")):
                    return False
                handler.answer(302, "", "text/plain", Location=there + path)
                return True
            if not is_redirected:
                (package["page"] if language == "python" else package["dist"]).update({"url" if language == "python" else "tarball": f"{there}/files/{package['file']}"})
            with Registry(language, [package], fault=redirect if is_redirected else None) as r:
                config = r.config(f"reader:{SECRET}@", **({"files": [there]} if is_known else {}))
                place = Place(tool=tool, registries={language: config}, egress={"resolve": {"files.registry.test": "127.0.0.1"}})
                outcome = place.run(language, [asked(language, "tiny", "==1.0.0")])
                assert all(a is None for _, _, a in files.seen), "credentials went to another host"
                if is_known:
                    outcome.ended()
                elif is_redirected:
                    clean(place, outcome.failed(UNAVAILABLE, "registry_refused", False, "tiny", "files.registry.test", f"registries.{language}.files"))
                else:
                    clean(place, outcome.failed(UNAVAILABLE, "registry_refused", False))
    each([(language, tool, is_redirected, is_known) for language, tool in tools() for is_redirected in (True, False) for is_known in (True, False)], do)


def test_faults_of_what_is_needed():
    """Of a package that was not asked for: the address that the tool gave up at leads there, and what is there says why."""
    def cut(handler):
        handler.answer(200, b"PK", "application/octet-stream", length=5000)
        handler.close_connection = True

    def do(language, tool, what, is_file, answer, code, cause, is_retryable):
        def fault(handler, path):
            is_hit = "leaf" in path and path.endswith((".whl", ".tgz")) == is_file
            if is_hit:
                answer(handler)
            return is_hit
        with Registry(language, [either(language, "top", "1.0.0", [("mid", ">=1")]), either(language, "mid", "1.0.0", [("leaf", ">=1")]), either(language, "leaf", "1.0.0")], fault=fault) as r:
            place = Place(r, tool=tool)
            clean(place, place.run(language, [asked(language, "top", "==1.0.0")]).failed(code, cause, is_retryable, "leaf"))
    elsewhere = {"Location": "http://files.registry.test:1/x"}         # pip says nothing of where it was before
    each([(language, tool, *case) for language, tool in tools() for case in (
        ("page 503", False, lambda h: h.answer(503), UNAVAILABLE, "registry_error", True), ("page 403", False, lambda h: h.answer(403), UNAVAILABLE, "registry_refused", True),
        ("file 503", True, lambda h: h.answer(503), UNAVAILABLE, "registry_error", True), ("file 404", True, lambda h: h.answer(404), UNAVAILABLE, "registry_invalid", True),
        ("file 304", True, lambda h: h.answer(304), UNAVAILABLE, "registry_invalid", True), ("file cut", True, cut, UNAVAILABLE, "registry_unreachable", True),
        ("file elsewhere", True, lambda h: h.answer(302, "", **elsewhere), UNAVAILABLE, "registry_refused", False),
        ("another file", True, lambda h: h.answer(200, "<html>"), FAILED, "hash_mismatch", False)) if (tool, case[0]) != ("pip", "file elsewhere")], do)


def test_redirections_that_are_not_followed():
    def do(language, tool, target, is_tls, word):
        def redirect(handler, path):
            if path.endswith((".whl", ".tgz")):
                handler.answer(302, "", Location=target)
            return path.endswith((".whl", ".tgz"))
        with Registry(language, [either(language, "tiny", "1.0.0")], fault=redirect, tls=AUTHORITY if is_tls else None) as r:
            r.host = ("py" if language == "python" else "js") + ".example.test"
            there = "https://files.registry.test:81" if is_tls else "http://files.registry.test:81"
            place = Place(tool=tool, registries={language: r.config(files=[there], **({"ca": AUTHORITY.path("ca.pem")} if is_tls else {}))},
                          egress={"resolve": {r.host: "127.0.0.1", "files.registry.test": "127.0.0.1"}})
            clean(place, place.run(language, [asked(language, "tiny", "==1.0.0")]).failed(UNAVAILABLE, "registry_refused", False, "tiny", word))
    each([(language, tool, *case) for language, tool in tools() for case in (
        ("http://files.registry.test:81/" + "x" * 4096, False, "4095 bytes"), ("ftp://files.registry.test/x", False, "no address of HTTP"),
        ("http://files.registry.test:81/x", True, "without TLS"))], do)


def test_resolver_that_is_broken():
    """Another fault of the package manager than that there is no solution is not told as one; of what can be had it says nothing."""
    def do(script, ask, code, cause, is_retryable, word):
        with Registry("python", [wheel("tiny", "1.0")]) as r:
            place = Place(r)
            uv = os.path.join(place.folder, "uv")
            if script:
                with open(uv, "w", encoding="ascii") as f:
                    f.write(f"#!/bin/sh\n{script}\n")
                os.chmod(uv, 0o755)
            place.config["packages"] = {"uv": uv, "resolver": "uv"}
            place.write()
            clean(place, place.run("python", [ask]).failed(code, cause, is_retryable, None, word))
    each([("exit 0", "tiny==1.0", "backend_failed", "resolver_failed", True, "uv failed"),
          ("echo panicked >&2; exit 101", "tiny==1.0", "backend_failed", "resolver_failed", True, "it says: panicked"),
          ("kill -9 $$", "tiny==1.0", "backend_failed", "resolver_failed", True, "uv failed"),
          ("echo no solution >&2; exit 1", "tiny==1.0", UNAVAILABLE, "conflict", False, "no solution"),
          ("exit 101", "tiny==7", UNAVAILABLE, "missing_version", False, "1.0"),
          (None, "tiny==1.0", "runtime_unavailable", "no_package_manager", False, "/uv cannot be executed")], do)


def test_another_file_than_was_told():
    def do(language, tool):
        other = either(language, "tiny", "1.0.0", files={"other.py": "1"})["data"]
        make = wheel if language == "python" else tarball
        with Registry(language, [make("tiny", "1.0.0", hashed=other)]) as r:
            place = Place(r, tool=tool, credentials=f"reader:{SECRET}@")
            clean(place, place.run(language, [asked(language, "tiny", "==1.0.0")]).failed(FAILED, "hash_mismatch", False, "tiny"))
    each(tools(), do)


def test_registries_that_never_answer():
    WAITING.join()
    assert len(WAITED) == len(tools()), WAITED
    for place, outcome in WAITED:
        outcome.failed(UNAVAILABLE, "registry_unreachable", True)
        assert outcome.took_ms < 45000, outcome.took_ms
        clean(place, outcome)


if __name__ == "__main__":
    runs.main(globals())
