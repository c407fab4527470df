#!/usr/bin/python3
"""What runs with packages keep and use again: locks, layers, records; what policy demands of versions; what kill -9 leaves.

    runs_store.py REEVE DRIVE [WORD…]
"""
import ctypes
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import runs
from runs import Place, Registry, asked, either, each, tarball, tools, wheel

sys.path.insert(0, os.path.join(runs.HERE, "../unpack"))
from common import Wheel  # noqa: E402

USER = "daemon"
N_KILLS = 50
REST = ' network = { default = "allow" }, idempotency = { default = "none" }, backend = { default = "tenant" } }'


def policy(rule):
    return "return policy { packages = { " + rule + ', default = "allow" },' + REST


def since(days):
    return time.strftime("%Y-%m-%dT%H:%M:%S.000000Z", time.gmtime(time.time() - days * 86400))


def setup():
    global IS_USER
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)        # PR_SET_CHILD_SUBREAPER: what a killed reeve leaves behind is seen
    IS_USER = runs.delegate(USER)


def users():
    """None is root."""
    if not IS_USER:
        runs.skip("an ordinary user", "no cgroup can be given to it")
    return [None, USER] if IS_USER else [None]


# ---- The same again ----

def test_ten_at_once_build_once():
    def do(language, tool, user):
        with Registry(language, [either(language, "top", "1.0.0", [("leaf", ">=1")]), either(language, "leaf", "1.0.0")]) as r:
            place = Place(r, tool=tool, user=user)
            what = [asked(language, "top", "==1.0.0")]
            began = [place.begin(language, what) for _ in range(10)]
            ended = [(p.communicate(timeout=120), p.returncode) for p in began]
            outcomes = [place.outcome_of(status, out, err.decode()).ended() for (out, err), status in ended]
            assert len({o.all["packages"]["layer"] for o in outcomes}) == 1 and all(o.all["packages"]["stale"] is False for o in outcomes), outcomes
            downloads = {p["file"] for p in r.packages}
            got = r.downloads()
            # Of a Python file the resolver may read its metadata from the file itself, once or twice; reeve takes it once.
            most = 3 if language == "python" else 1
            assert set(got) == downloads and all(n <= most for n in got.values()), got
            kept = place.kept()
            assert len(kept["layers"]) == 1 and len(kept["locks"]) == 1 and not kept.get("staging") and not kept.get("artifacts"), kept
            assert place.reeve("package", "verify", "--json")[1]["status"] == "good"
    each([(language, tool, user) for user in users() for language, tool in tools() if tool != "pip" or not user], do, 1)


def test_locks_that_were_edited():
    strict = ('return policy { packages = { rule { id = "lic", match = { license = "GPL*" }, deny = "no gpl" }, rule { id = "withdrawn", match = { yanked = true },'
              ' deny = "withdrawn" }, default = "allow" }, network = { default = "allow" }, idempotency = { default = "none" }, backend = { default = "tenant" } }')
    with Registry("python", [wheel("tiny", "1.0", license="GPL-3.0"), wheel("other", "1.0"), wheel("other", "2.0"), wheel("gone", "1.0", {"yanked": "unsafe"})]) as r:
        place, free = Place(r, tool="pip", policy=strict), Place(r, tool="pip")

        def use(lock, ask, to=place, **changes):
            lock = json.loads(json.dumps(lock))
            lock["runtime"].update(changes.pop("runtime", {}))
            lock["packages"][-1].update(changes)
            path = os.path.join(place.folder, "edited.lock")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(lock, f, sort_keys=True, separators=(",", ":"))
            os.chmod(path, 0o644)
            return to.run("python", ask, args=["--lock", path])
        one = free.reeve("package", "lock", "tiny==1.0")[1]
        both = free.reeve("package", "lock", "tiny==1.0", "other==1.0")[1]
        use(one, ["tiny==1.0"]).denied("tiny", "lic")
        gone = free.reeve("package", "lock", "gone==1.0")[1]
        forged = {"license": "MIT", "size_bytes": 1, "yanked": False, "published_at": 1500000000, "registry_hash": True}
        use(one, ["tiny==1.0"], **forged).denied("tiny", "lic")
        use(gone, ["gone==1.0"]).denied("gone", "withdrawn")
        use(gone, ["gone==1.0"], **forged).denied("gone", "withdrawn")
        use(one, ["tiny==1.0"], runtime={"tag": "cp311-linux_sparc64"}).failed("package_unavailable", "conflict", False, None, "platform")
        use(one, ["tiny==1.0"], runtime={"interpreter": "/opt/python3"}).failed("package_unavailable", "conflict", False, None, "interpreter")
        use(one, ["tiny==1.0"], hash="sha256:" + "0" * 64).failed("package_install_failed", "hash_mismatch", False, "tiny")
        use(both, ["other==1.0"]).failed("package_unavailable", "conflict", False, None, "tiny", "not asked for")
        use(one, ["tiny[more]==1.0"]).failed("package_unavailable", "conflict", False, None, "extra")
        assert "layers" not in place.kept(), place.kept()

        # With a key, another lock is another request.
        locks = [free.reeve("package", "lock", f"other=={v}")[1] for v in ("1.0", "2.0", "1.0")]
        for lock, status in zip(locks, ("completed", 422, "completed")):
            path = os.path.join(free.folder, "keyed.lock")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(lock, f)
            os.chmod(path, 0o644)
            answer = json.loads(free.begin("python", ["other>=1"], args=["--lock", path], idempotency_key="k").communicate(timeout=60)[0])
            assert answer["status"] == status, answer

        # Where a layer of it is, nothing is fetched, and its own lock is believed: also with the registry down.
        used = use(one, ["tiny==1.0"], to=free, **forged).ended()
        assert used.all["packages"]["lock"][0]["license"] == "GPL-3.0", used.all
        shutil.rmtree(place.packages)
        subprocess.run(["cp", "-a", free.packages, place.packages], check=True)
        r.stop()
        use(one, ["tiny==1.0"], **forged).denied("tiny", "lic")
        use(one, ["tiny==1.0"], to=free, **forged).ended()


def test_extras_as_their_package_spells_them():
    def do(tool, extra):
        meta = f"Metadata-Version: 2.1\nName: ext\nVersion: 1.0\nProvides-Extra: {extra}\nRequires-Dist: leaf; extra == \"{extra}\"\n"
        with Registry("python", [wheel("ext", "1.0", data=Wheel("ext", "1.0", files=[("ext.py", "x = 1\n")], metadata=meta).data()), wheel("leaf", "1.0")]) as r:
            assert set(Place(r, tool=tool).run("python", [f"ext[{extra}]==1.0"], "import leaf").ended().versions()) == {"ext", "leaf"}
    each([(tool, extra) for _, tool in tools("uv", "pip") for extra in ("some-extra", "some_extra", "some.extra")], do, 2)


def test_from_the_store_with_the_registry_down():
    def do(language, tool, user):
        r = Registry(language, [either(language, "top", "1.0.0", [("leaf", ">=1")]), either(language, "leaf", "1.0.0"), either(language, "leaf", "1.5.0")])
        place = Place(r, tool=tool, user=user)
        code = "import top, leaf; print(leaf.version)" if language == "python" else "console.log(require('leaf'))"
        pinned, ranged = [asked(language, "top", "==1.0.0")], [asked(language, "leaf", ">=1")]
        with_leaf = [asked(language, "top", "==1.0.0"), asked(language, "leaf", "==1.5.0")]
        first = place.run(language, with_leaf, code).ended("1.5.0")
        assert first.versions() == {"top": "1.0.0", "leaf": "1.5.0"}, first.lock
        assert place.run(language, pinned).ended().versions() == {"top": "1.0.0", "leaf": "1.5.0"}
        place.run(language, ranged).ended()
        r.stop()
        again = place.run(language, with_leaf, code).ended("1.5.0")
        assert again.all["packages"] == first.all["packages"] and not again.all["packages"]["stale"], again.all["packages"]
        assert again.all["timings_ms"]["resolve"] < 50 and again.all["timings_ms"]["prepare"] < 50, again.all["timings_ms"]
        place.run(language, ranged).ended()             # not pinned, but held for a day
        place.run(language, [asked(language, "leaf", "==1.0.0")]).failed("package_unavailable", "registry_unreachable", True)
        r.start()
        # A layer that is gone is built again from its lock, of the same bytes.
        place.reeve("package", "prune", "--max", "0", json_too=False)
        assert "layers" not in place.kept(), place.kept()
        again = place.run(language, with_leaf, code).ended("1.5.0")
        assert again.all["packages"] == first.all["packages"], again.all["packages"]
        r.stop()
    each([(language, tool, user) for user in users() for language, tool in tools() if tool != "pip" or not user], do, 2)


def test_stale():
    def do(language, tool):
        r = Registry(language, [either(language, "leaf", "1.0.0")])
        place = Place(r, tool=tool, packages={"resolve_ttl": "1s"})
        ranged, pinned = [asked(language, "leaf", ">=1")], [asked(language, "leaf", "==1.0.0")]
        place.run(language, ranged).ended()
        place.run(language, pinned).ended()
        time.sleep(1.1)
        r.stop()
        old = place.run(language, ranged).ended()
        assert old.all["packages"]["stale"] is True and old.versions() == {"leaf": "1.0.0"}, old.all["packages"]
        assert place.run(language, pinned).ended().all["packages"]["stale"] is False
        r.packages.append(either(language, "leaf", "1.1.0"))
        r.start()
        new = place.run(language, ranged).ended()
        assert new.all["packages"]["stale"] is False and new.versions() == {"leaf": "1.1.0"}, new.all["packages"]
        # The registry is there and says that there is no such thing any more: what is old is not used then.
        time.sleep(1.1)
        r.packages.clear()
        place.run(language, ranged).failed("package_unavailable", "missing_package", False, "leaf")
        r.stop()
    each(tools(), do)


def test_stale_without_its_layer():
    """What was fetched for the lock that could not be is not taken for the files of the old one, which are fetched if they are there."""
    def do(language, tool):
        def fault(handler, path):
            is_hit = wrong[0] and "need" in path and path.endswith((".whl", ".tgz"))
            if is_hit:
                handler.answer(503)
            return is_hit
        wrong = [False]
        with Registry(language, [either(language, "leaf", "1.0.0")], fault=fault) as r:
            place = Place(r, tool=tool, packages={"resolve_ttl": "1s"})
            ask = [asked(language, "leaf", ">=1")]
            place.run(language, ask).ended()
            time.sleep(1.1)
            place.reeve("package", "prune", "--max", "0", json_too=False)
            assert "layers" not in place.kept(), place.kept()
            r.packages += [either(language, "leaf", "2.0.0", [("need", ">=1")]), either(language, "need", "1.0.0")]
            shutil.rmtree(os.path.join(place.packages, "cache"), ignore_errors=True)
            wrong[0] = True
            old = place.run(language, ask).ended()
            assert old.all["packages"]["stale"] is True and old.versions() == {"leaf": "1.0.0"}, old.all["packages"]
        place.reeve("package", "prune", "--max", "0", json_too=False)
        time.sleep(1.1)
        place.run(language, ask).failed("package_unavailable", "registry_unreachable", True)
    each(tools(), do)


def test_a_full_disk():
    """What cannot be kept is no fault of the registry's: an old lock is not used for it."""
    def do(language, tool):
        with Registry(language, [either(language, "leaf", "1.0.0")]) as r:
            place = Place(r, tool=tool, packages={"resolve_ttl": "1s"})
            os.mkdir(place.state)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", place.state], check=True)
            try:
                ask = [asked(language, "leaf", ">=1")]
                place.run(language, ask).ended()
                time.sleep(1.1)
                r.packages.append(either(language, "leaf", "1.1.0", files={"leaf.py" if language == "python" else "index.js": os.urandom(6 << 20).hex()}))
                place.run(language, ask).failed("package_install_failed", "build_failed", True, "leaf", "cannot be kept", "state_dir")
                assert len(place.kept()["layers"]) == 1 and not {"staging", "artifacts"} & set(place.kept()), place.kept()
            finally:
                subprocess.run(["umount", place.state], check=True)
    each(tools(), do)


def test_tenants_do_not_see_each_others_packages():
    def do(language, tool):
        with Registry(language, [either(language, "private", "1.0.0", license="of the one")]) as one, Registry(language, [either(language, "private", "1.0.0", license="of the other")]) as other, \
                Registry(language) as neither:
            tenants = {name: {"registries": {language: r.config()}} for name, r in (("one", one), ("other", other), ("neither", neither))}
            place = Place(tool=tool, tenants=tenants)
            what = [asked(language, "private", "==1.0.0")]
            a = place.run(language, what, args=["--tenant", "one"]).ended()
            place.run(language, what, args=["--tenant", "neither"]).failed("package_unavailable", "missing_package", False, "private")
            b = place.run(language, what, args=["--tenant", "other"]).ended()
            assert [o.lock["private"]["license"] for o in (a, b)] == ["of the one", "of the other"], (a.lock, b.lock)
            assert a.all["packages"]["layer"] != b.all["packages"]["layer"] and len(place.kept()["locks"]) == 2, place.kept()
            one.seen.clear()
            place.run(language, what, args=["--tenant", "one"]).ended()
            assert not one.seen, one.seen
    each(tools(), do)


# ---- What policy demands ----

def versions_of(language, *rows):
    """leaf in these versions: (version, days since)."""
    return [either(language, "leaf", version, time=since(days)) for version, days in rows]


def test_obligations_find_an_older_version():
    def do(language, tool, _name, rule, rows, ask, expected):
        rows = [either(language, "top", "1.0.0", [("leaf", ">=1")], time=since(900))] + versions_of(language, *rows)
        ask = [asked(language, n, c) for n, c in ask]
        with Registry(language, rows) as r:
            place = Place(r, tool=tool, policy=policy(rule))
            outcome = place.run(language, ask).ended()
            assert outcome.versions().get("leaf") == expected, outcome.versions()
            assert place.run(language, ask).ended().versions() == outcome.versions()       # and so does the lock that is held
    rows = [("1.0.0", 400), ("1.1.0", 30), ("1.2.0", 3), ("1.3.0", 0)]
    top, leaf = ("top", "==1.0.0"), ("leaf", ">=1")
    cases = [
        ("pin of what is asked for", 'rule { id = "held", match = { name = "leaf" }, allow = true, pin = "1.1.0" }', rows, [leaf], "1.1.0"),
        ("pin of what is needed", 'rule { id = "held", match = { name = "leaf" }, allow = true, pin = "1.0.0" }', rows, [top], "1.0.0"),
        ("age", 'rule { id = "cooldown", match = { name = "*" }, allow = true, newest_published = "P7D" }', rows, [leaf], "1.1.0"),
        ("age of what is needed", 'rule { id = "cooldown", match = { name = "top" }, allow = true, newest_published = "P7D" }', rows, [top], "1.1.0"),
        ("the stricter of two", 'rule { id = "a", match = { name = "top" }, allow = true, newest_published = "P1D" }, rule { id = "b", match = { name = "leaf" }, allow = true, newest_published = "P60D" }',
         rows, [top], "1.0.0"),
    ]
    each([(language, tool, *case) for language, tool in tools() for case in cases], do)


def test_hashes_that_are_asked_for():
    """Versions of which the index tells no hash are passed over, of what is needed too; where there are no others, policy denies the newest."""
    def do(tool, needs, unhashed, found, more="", breaks=None):
        rows = [either("python", "top", "1.0.0", [("leaf", ">=1")])] + versions_of("python", ("1.0.0", 90), ("1.1.0", 30), ("1.2.0", 8))
        rows += [wheel("leaf", "1.1.0", file="leaf-1.1.0.tar.gz", page={"hashes": {}, "upload-time": since(30)})]
        for row in rows:
            if row["name"] == "leaf" and row["version"] in unhashed:
                row["page"]["hashes"] = {}

        def fault(handler, path):
            is_hit = breaks and path.endswith("/simple/leaf/") and sum(p == path for _, p, _ in r.seen) > breaks
            if is_hit:
                handler.answer(503)
            return is_hit
        with Registry("python", rows, fault=fault) as r:
            place = Place(r, tool=tool, policy=policy('rule { id = "hashed", match = { name = "leaf" }, allow = true, require_hash = true' + more + " }"))
            outcome = place.run("python", [needs])
            if breaks:
                outcome.failed("package_unavailable", "registry_error", True, "leaf")
                place.kept_nothing()
            elif found:
                assert outcome.ended().versions()["leaf"] == found, outcome.versions()
                assert place.run("python", [needs]).ended().versions()["leaf"] == found
            else:
                outcome.denied("leaf", "hashed", None, *(["younger"] if more and tool == "pip" else ["tells none"]))
                assert "layers" not in place.kept(), place.kept()
    each([(tool, *case) for _, tool in tools("uv", "pip") for case in
          (("leaf>=1", ["1.2.0"], "1.1.0"), ("leaf>=1", ["1.2.0", "1.0.0"], "1.1.0"), ("leaf>=1.2", ["1.2.0"], None), ("leaf>=1", ["1.0.0", "1.1.0", "1.2.0"], None),
           ("top==1.0.0", ["1.2.0"], "1.1.0"), ("top==1.0.0", ["1.0.0", "1.1.0", "1.2.0"], None),
           ("leaf>=1", ["1.0.0", "1.1.0"], None, ', newest_published = "P14D"'), ("leaf>=1", ["1.2.0"], None, "", 2))], do)


def test_obligations_that_cannot_be_met():
    def do(language, tool, name):
        rows = versions_of(language, ("1.0.0", 1))
        if name == "hash":
            rows[0]["page"]["hashes"] = {}
        rule = {"pin": 'pin = "9.9.9"', "age": 'newest_published = "P7D"', "hash": "require_hash = true"}[name]
        with Registry(language, rows) as r:
            place = Place(r, tool=tool, policy=policy('rule { id = "demand", match = { name = "leaf" }, allow = true, ' + rule + " }"))
            outcome = place.run(language, [asked(language, "leaf", ">=1")])
            if name == "hash":
                outcome.denied("leaf", "demand", ["leaf"], "hash")
            else:
                outcome.failed("package_unavailable", {"pin": "missing_version", "age": "too_new"}[name], False, "leaf")
            kept = place.kept()
            assert set(kept) <= {"locks"}, kept
    each([(language, tool, name) for language, tool in tools() for name in ("pin", "age", "hash") if name != "hash" or language == "python"], do)


def test_denials_of_what_is_needed():
    def do(language, tool, name):
        rules = {"name": ('rule { id = "no-leaf", match = { name = "leaf" }, deny = "not that one" }', "no-leaf"),
                 "age": ('rule { id = "withdrawn", when = function(p) return p.age_days < 7 end, deny = "too young" }', "withdrawn"),
                 "license": ('rule { id = "copyleft", match = { license = "AGPL-*" }, deny = "license" }', "copyleft")}
        rows = [either(language, "top", "1.0.0", [("mid", ">=1")]), either(language, "mid", "1.0.0", [("leaf", ">=1")]), either(language, "leaf", "1.0.0", time=since(1), license="AGPL-3.0")]
        with Registry(language, rows) as r:
            place = Place(r, tool=tool, policy=policy(rules[name][0]))
            outcome = place.run(language, [asked(language, "top", "==1.0.0")]).denied("leaf", rules[name][1], ["top", "mid", "leaf"])
            assert outcome.all["packages"]["layer"] is None and set(place.kept()) <= {"locks"}, place.kept()
            records = records_of(place)
            assert [(x["kind"], x.get("stage")) for x in records if x["kind"] in ("decision", "outcome")] == [("decision", "requested"), ("decision", "resolved"), ("outcome", None)], records
    each([(language, tool, name) for language, tool in tools() for name in ("name", "age", "license")], do)


# ---- Records ----

def records_of(place):
    found = []
    for path in sorted(glob.glob(os.path.join(place.state, "audit", "*.jsonl"))):
        with open(path, encoding="utf-8") as f:
            found += [json.loads(line) for line in f]
    return found


def test_records():
    def do(language, tool):
        with Registry(language, [either(language, "top", "1.0.0", [("leaf", ">=1")]), either(language, "leaf", "1.0.0")]) as r:
            place = Place(r, tool=tool)
            outcomes = [place.run(language, [asked(language, "top", "==1.0.0")]).ended() for _ in range(2)]
            absent = place.run(language, [asked(language, "absent", "==1.0.0")]).failed("package_unavailable", "missing_package", False)
            place.run(language, []).ended()
            records = records_of(place)
            for o in outcomes:
                mine = [x for x in records if x.get("decision_id") == o.all["decision_id"]]
                assert [(x["kind"], x.get("stage")) for x in mine] == [("decision", "requested"), ("decision", "resolved"), ("outcome", None)], mine
                facts = {p["name"]: p for p in mine[1]["facts"]["packages"]}
                assert set(facts) == {"top", "leaf"} and facts["leaf"]["version"] == "1.0.0" and facts["leaf"]["hash"].startswith("sha256:") and not facts["leaf"]["direct"], facts
                status, text, err = place.reeve("audit", "show", "--id", o.all["run_id"], json_too=False)
                assert status == 0 and "requested" in text and "resolved" in text, (status, text, err)
            mine = [(x["kind"], x.get("stage")) for x in records if x.get("decision_id") == absent.all["decision_id"]]
            assert mine == [("decision", "requested"), ("outcome", None)], mine
            status, told, err = place.reeve("audit", "replay", "--json")
            assert status == 0, (status, told, err)
            assert place.reeve("audit", "verify", json_too=False)[0] == 0
    each(tools(), do)


# ---- kill -9 ----

def descendants_end():
    """All that were left to this process end by themselves."""
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            time.sleep(0.01)
    return False


def whole(place):
    """Everything that is visible is whole; what `package` says of it."""
    for digest in place.kept().get("layers", []):
        there = set(os.listdir(os.path.join(place.packages, "layers", digest)))
        assert {"lock.json", "manifest.json", "tree"} <= there, (digest, there)
    for lock in place.kept().get("locks", []):
        if lock.endswith(".json"):
            with open(os.path.join(place.packages, "locks", lock), encoding="utf-8") as f:
                json.load(f)
    status, told, err = place.reeve("package", "verify", "--json")
    assert status == 0 and told["status"] == "good", (status, told, err)
    status, told, err = place.reeve("package", "list", "--json")
    assert status == 0, (status, told, err)


def kill_and_look(language, tool, user, n):
    names = [f"thing{i}" for i in range(n + 3)]
    rows = [either(language, name, "1.0.0", [("leaf", ">=1")]) for name in names] + [either(language, "leaf", "1.0.0")]
    with Registry(language, rows) as r:
        place = Place(r, tool=tool, user=user)
        began = time.monotonic()
        place.run(language, [asked(language, names[0], "==1.0.0")]).ended()
        took = time.monotonic() - began
        seed = random.randrange(1 << 32)
        draw = random.Random(seed)
        for i, name in enumerate(names[1:n + 1]):
            p = place.begin(language, [asked(language, name, "==1.0.0")], stdout=subprocess.DEVNULL)
            time.sleep(draw.uniform(0, 1.1 * took))
            reeve = p.pid
            os.kill(reeve, signal.SIGKILL)
            p.wait()
            p.stderr.close()
            if i % 10 == 9:
                whole(place)
        assert descendants_end(), f"processes are left (seed {seed})"
        whole(place)
        # What was killed in the middle works now, and what it left is swept by who comes next.
        for name in names[-4:]:
            place.run(language, [asked(language, name, "==1.0.0")]).ended()
        kept = place.kept()
        left = {k: kept[k] for k in ("staging", "artifacts") if k in kept}
        assert not left, f"{left} (seed {seed})"
        whole(place)
        assert place.reeve("audit", "verify", json_too=False)[0] == 0
        outcomes = [x["decision_id"] for x in records_of(place) if x["kind"] == "outcome"]
        assert len(outcomes) == len(set(outcomes)), "two outcomes of one run"
        print(f"# {language} by {tool} as {user or 'root'}: killed {n} times within {took:.2f} s, seed {seed}", flush=True)


def test_kills():
    python = [x for x in tools("uv", "pip")][:1]
    for language, tool in python:
        kill_and_look(language, tool, None, N_KILLS - 15)
    kill_and_look("javascript", "npm", None, 15)


def test_kills_as_an_ordinary_user():
    for user in users()[1:]:
        kill_and_look(*tools("uv", "pip")[0], user, 10)


if __name__ == "__main__":
    runs.main(globals())
