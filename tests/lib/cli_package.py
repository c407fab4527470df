#!/usr/bin/python3
"""`reeve package list`, `verify` and `prune` on the command line, over a store that is made here by hand.

    cli_package.py REEVE

As root the same again with a state directory of another user's. Prints one line per failure. Exit status 1 if any failed.
"""
import fcntl, hashlib, json, os, shutil, subprocess, sys, tempfile, time

USER = 65534
failures = []


def check(name, ok, got):
    if not ok:
        failures.append(name)
        print(f"FAILED {name}: {got!r}")


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def lock_of(version):
    return {"schema": "reeve.lock/1", "language": "python",
            "runtime": {"tag": "cp311-linux_x86_64", "version": "3.11", "interpreter": "/usr/bin/python3"},
            "packages": [{"name": "idna", "version": version, "file": f"idna-{version}-py3-none-any.whl", "hash": "sha256:" + "ab" * 32,
                          "url": "https://registry.example/idna.whl", "kind": "wheel", "size_bytes": 1, "license": "", "direct": True,
                          "requested": f"idna=={version}", "extras": [], "yanked": False, "install_script": False, "registry_hash": True,
                          "path": ["idna"]}]}


def digest_of(lock):
    packages = [{k: p[k] for k in ("name", "version", "hash", "file")} for p in lock["packages"]]
    return hashlib.sha256(canonical({"language": lock["language"], "runtime": lock["runtime"], "packages": packages})).hexdigest()


class Store:
    def __init__(self, reeve, place, uid):
        self.reeve, self.place, self.uid = reeve, place, uid
        self.state = os.path.join(place, "state")
        self.packages = os.path.join(self.state, "packages")
        with open(os.path.join(place, "reeve.yaml"), "w", encoding="ascii") as f:
            f.write(f"state_dir: {self.state}\n")

    def run(self, *words, json_too=True):
        p = subprocess.run([self.reeve, "package", *words, "--config", os.path.join(self.place, "reeve.yaml")], stdin=subprocess.DEVNULL,
                           capture_output=True, text=True, timeout=60, check=False)
        return p.returncode, json.loads(p.stdout) if json_too and p.stdout else p.stdout, p.stderr

    def make(self):
        for d in ("locks", "used", "cache", "artifacts", "claims", "layers", "staging"):
            os.makedirs(os.path.join(self.packages, d))
        for d in ("layers", "staging"):
            os.chmod(os.path.join(self.packages, d), 0o755)
        for path in (self.state, self.packages, *(os.path.join(self.packages, d) for d in ("locks", "used", "cache", "artifacts", "claims"))):
            os.chown(path, self.uid, self.uid)

    def add(self, version, days):
        """A layer that was used so long ago."""
        lock = lock_of(version)
        digest = digest_of(lock)
        layer, used = os.path.join(self.packages, "layers", digest), os.path.join(self.packages, "used", digest)
        os.makedirs(os.path.join(layer, "tree/lib"))
        entries = [{"path": "lib", "type": "directory", "mode": 0o755, "size": 0},
                   {"path": "lib/a.py", "type": "file", "mode": 0o644, "size": 4, "sha256": hashlib.sha256(b"pass").hexdigest()}]
        for name, data in (("lock.json", canonical(lock)), ("manifest.json", canonical({"schema": "reeve.manifest/1", "entries": entries})), ("tree/lib/a.py", b"pass")):
            with open(os.path.join(layer, name), "wb") as f:
                f.write(data)
            os.chmod(f.name, 0o644)
        for d in (layer, os.path.join(layer, "tree"), os.path.join(layer, "tree/lib")):
            os.chmod(d, 0o755)
        open(used, "wb").close()
        os.chown(used, self.uid, self.uid)
        os.utime(used, (time.time() - days * 86400,) * 2)
        return digest

    def layers(self):
        return sorted(os.listdir(os.path.join(self.packages, "layers")))


def nothing_kept(s):
    check("list of nothing", s.run("list", "--json")[:2] == (0, {"layers": [], "locks": [], "bytes": 0}), s.run("list", "--json"))
    check("verify of nothing", s.run("verify", "--json")[:2] == (0, {"status": "good", "layers": []}), s.run("verify", "--json"))
    check("prune of nothing", s.run("prune", "--json")[0] == 0, s.run("prune", "--json"))
    check("nothing was made", not os.path.exists(s.state), os.listdir(s.place))
    status, out, _ = s.run("verify", "0" * 64, json_too=False)
    check("verify of what is not there", status == 1 and "absent" in out, (status, out))


def usage(s):
    for words in (["other"], ["list", "word"], ["verify", "abc"], ["prune", "--older", "soon"], ["prune", "--max", "1"], ["prune", "--nothing"]):
        status, out, err = s.run(*words, json_too=False)
        check(f"{words} is usage", status == 2 and out == "" and "reeve package" in err, (status, out, err))
    for words in (["--help"], ["list", "--help"], ["verify", "--help"], ["prune", "--help"]):
        p = subprocess.run([s.reeve, "package", *words], capture_output=True, text=True, check=False)
        check(f"{words}", p.returncode == 0 and p.stdout.startswith("usage: reeve package"), p.stdout)


def listing_and_verifying(s, old, new):
    status, out, err = s.run("list", "--json")
    layers = out["layers"]
    check("list", status == 0 and [x["digest"] for x in layers] == [old, new], (status, out, err))
    check("list tells", layers[0]["language"] == "python" and layers[0]["packages"] == 1 and layers[0]["bytes"] >= 4 and not layers[0]["in_use"] and not layers[0]["compiled"]
          and abs(layers[0]["used_at"] - time.time() + 10 * 86400) < 60, layers)
    status, out, err = s.run("list", json_too=False)
    check("list as text", status == 0 and old in out and "10 days ago" in out and "2 layers" in out, (status, out, err))
    status, out, err = s.run("verify", "--json")
    check("verify", status == 0 and out["status"] == "good" and [x["status"] for x in out["layers"]] == ["good", "good"], (status, out, err))
    with open(os.path.join(s.packages, "layers", old, "tree/lib/a.py"), "wb") as f:
        f.write(b"evil")
    status, out, err = s.run("verify", "--json", "sha256:" + old)
    check("verify finds it", status == 1 and out["layers"][0]["faults"][0]["path"] == "tree/lib/a.py", (status, out, err))
    status, out, err = s.run("verify", json_too=False)
    check("verify names it", status == 1 and f"damaged  {old}: tree/lib/a.py: its bytes" in out and f"good     {new}" in out, (status, out, err))
    check("verify of another", s.run("verify", new, json_too=False)[0] == 0, s.run("verify", new, json_too=False))


def pruning(s, old, new):
    status, out, err = s.run("prune", "--older", "5d", "--dry-run", "--json")
    check("prune tells", status == 0 and [x["digest"] for x in out["removed"]] == [old] and out["dry_run"] and s.layers() == sorted([old, new]), (status, out, err))
    with open(os.path.join(s.packages, "used", old), "rb") as f:
        fcntl.flock(f, fcntl.LOCK_SH)
        status, out, err = s.run("prune", "--older", "5d", "--json")
        check("prune leaves what is used", status == 0 and out["removed"] == [] and out["in_use"] == 1 and s.layers() == sorted([old, new]), (status, out, err))
    status, out, err = s.run("prune", "--older", "5d", "--json")
    check("prune", status == 0 and [(x["digest"], x["why"]) for x in out["removed"]] == [(old, "age")] and s.layers() == [new], (status, out, err))
    check("prune by the configuration", s.run("prune", "--json")[1]["removed"] == [] and s.layers() == [new], s.layers())
    status, out, err = s.run("prune", "--max", "0", json_too=False)
    check("prune by size", status == 0 and "removed 1 layer" in out and s.layers() == [], (status, out, err))
    check("nothing is left", os.listdir(os.path.join(s.packages, "staging")) == [] == os.listdir(os.path.join(s.packages, "used")), os.listdir(s.packages))


def main():
    reeve = os.path.abspath(sys.argv[1])
    for uid in [os.geteuid()] + ([USER] if os.geteuid() == 0 else []):
        place = tempfile.mkdtemp(prefix="cli-package-")
        os.chmod(place, 0o755)
        try:
            s = Store(reeve, place, uid)
            nothing_kept(s)
            usage(s)
            s.make()
            old, new = s.add("3.4", 10), s.add("3.5", 1)
            listing_and_verifying(s, old, new)
            pruning(s, old, new)
        finally:
            shutil.rmtree(place)
    print("package commands: " + ("as they should be" if not failures else f"{len(failures)} failed"))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
