#!/usr/bin/python3
"""Builds a runtime of Debian packages, as `reeve runtime build` does for anybody, and runs cases on it: as a directory
and as an image. Then what goes wrong: builds that are ended, images that were changed, users who may not mount.

    built.py --reeve build/tools/reeve/reeve [--image FILE --directory DIR] [-j N] [--cases FILE…]

Needs root, mmdebstrap, mkfs.erofs and fsck.erofs, and this host's apt; a build takes a minute. With --image and
--directory those are used in place of a build. Prints a line a check and, last, 'N passed, N failed, N skipped'.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
CONFORMANCE = os.path.join(HERE, "..", "conformance")
NAME = "built"


class Checks:
    def __init__(self, reeve):
        self.reeve, self.passed, self.failed = reeve, 0, 0

    def check(self, name, is_good, text=""):
        self.passed += bool(is_good)
        self.failed += not is_good
        print(f"{'ok' if is_good else 'FAIL'}  {name}{'' if is_good or not text else ': ' + str(text)[-1500:]}", flush=True)
        return is_good

    def run(self, *words, stdin="", **options):
        return subprocess.run([self.reeve, *words], input=stdin, capture_output=True, text=True, timeout=600, check=False, **options)


def left_in(place):
    return sorted(os.listdir(place))


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line for line in f if "/run/reeve/image/" in line or NAME in line]


def ended_builds(c, place):
    """A build that is told to end leaves nothing; of one that was killed the next removes what is left."""
    for name, number, status in (("INT", signal.SIGINT, 130), ("TERM", signal.SIGTERM, 130)):
        with subprocess.Popen([c.reeve, "runtime", "build", NAME, "--output", place], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as p:
            time.sleep(3)
            p.send_signal(number)
            said = p.communicate(timeout=60)[0]
        c.check(f"ended by {name}", p.returncode == status and not left_in(place) and not mounts(), f"{p.returncode} {said} {left_in(place)} {mounts()}")
    with subprocess.Popen([c.reeve, "runtime", "build", NAME, "--output", place], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as p:
        time.sleep(3)
        second = c.run("runtime", "build", NAME, "--output", place)
        c.check("two of one name", second.returncode == 1 and "another build" in second.stderr, second.stderr)
        p.kill()
    c.check("killed: nothing has its name", all(n.startswith(".") for n in left_in(place)) and not mounts(), f"{left_in(place)} {mounts()}")
    time.sleep(2)       # mmdebstrap ends with reeve


def build(c, place):
    began = time.monotonic()
    p = c.run("runtime", "build", NAME, "--output", place, "--format", "erofs", "--json")
    image = os.path.join(place, NAME + ".erofs")
    if not c.check("build", p.returncode == 0 and left_in(place) == [NAME + ".erofs", NAME + ".runtime.json"], f"{p.returncode} {p.stdout} {p.stderr} {left_in(place)}"):
        return None
    print(f"      {time.monotonic() - began:.0f} s, {os.path.getsize(image) >> 20} MiB", flush=True)
    said = json.loads(p.stdout)
    with open(os.path.join(place, NAME + ".runtime.json"), encoding="utf-8") as f:
        written = json.load(f)
    names = [x["name"] for x in said["packages"]]
    c.check("what it says of itself", said == written and said["schema"] == "reeve.runtime/1" and said["format"] == "erofs" and {"python3", "python3-pip", "nodejs", "npm"} <= set(names)
            and names == sorted(names) and said["python"][0] == "3" and said["javascript"][:1].isdigit(), json.dumps(said)[:600])
    digest = subprocess.run(["sha256sum", image], capture_output=True, text=True, check=True).stdout.split()[0]
    c.check("its digest is the file's", said["digest"] == "sha256:" + digest)
    again = c.run("runtime", "build", NAME, "--output", place, "--format", "erofs")
    c.check("no second one without --replace", again.returncode == 1 and "--replace" in again.stderr, again.stderr)
    return image


def extract(c, image, directory):
    """The same files as a directory, with the modes that they have in the image."""
    p = subprocess.run(["fsck.erofs", f"--extract={directory}", "--preserve-perms", image], capture_output=True, text=True, check=False)
    return c.check("the image as a directory", p.returncode == 0, p.stderr)


def cases(c, runtime, files, jobs):
    p = subprocess.run(["/usr/bin/python3", os.path.join(CONFORMANCE, "run.py"), "--reeve", c.reeve, "--runtime", json.dumps(runtime), "-j", str(jobs), *files],
                       capture_output=True, text=True, timeout=900, check=False)
    last = p.stdout.strip().split("\n")[-1]
    what = "image" if "image" in runtime else "directory"
    if not c.check(f"cases on the {what}: {last}", p.returncode == 0, p.stdout + p.stderr):
        print(p.stdout[-4000:])


def configure(place, **runtime):
    path = os.path.join(place, "reeve.yaml")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"state_dir": os.path.join(place, "state"), "runtimes": {NAME: runtime}, "tenants": {"local": {"runtime": NAME}}}, f)
    return path


def one_run(c, config, language="python", source="print(1)", **options):
    p = c.run("run", "--config", config, "--json", "--request", "-", stdin=json.dumps({"language": language, "source": source}), **options)
    return json.loads(p.stdout) if p.stdout.startswith("{") else {"reason": {"code": "", "message": p.stderr}}


TOOLS = ("import importlib, mimetypes, ssl, locale, site, zoneinfo, pathlib\n"
         "assert mimetypes.guess_type('a.webp')[0] == 'image/webp', mimetypes.guess_type('a.webp')\n"
         "assert ssl.create_default_context().cert_store_stats()['x509_ca'] > 50\n"
         "assert locale.getlocale() == ('en_US', 'UTF-8') or locale.getpreferredencoding() == 'UTF-8'\n"
         "assert zoneinfo.ZoneInfo('Europe/Berlin')\n"
         "import json.decoder as d\n"
         "flags = pathlib.Path(d.__cached__).read_bytes()[4]\n"
         "assert flags == 1, 'the compiled module goes by the time of its source'\n"
         "try:\n    import pip\n    raise SystemExit('pip is there')\nexcept ImportError:\n    print('good')\n")


def what_is_in_it(c, config, what):
    o = one_run(c, config, source=TOOLS)
    c.check(f"{what}: kinds of files, certificates, zones, compiled modules", o.get("stdout", {}).get("text") == "good\n", o)
    o = one_run(c, config, "javascript", "import fs from 'fs'; console.log(typeof require, fs.existsSync('/usr/share/nodejs/npm'))")
    c.check(f"{what}: a module of node's, without npm", o.get("stdout", {}).get("text") == "function false\n", o)


def judged(c, place, image, directory):
    """What the digests are for."""
    config = configure(place, image=image)
    p = c.run("runtime", "verify", "--config", config)
    c.check("verify by the description", p.returncode == 0 and p.stdout.startswith("ok "), p.stdout + p.stderr)
    digest = json.loads(c.run("runtime", "verify", "--config", config, "--json").stdout)[0]["digest"]
    what_is_in_it(c, config, "image")
    config = configure(place, image=image, digest=digest)
    o = one_run(c, config)
    c.check("the outcome has the digest", o.get("runtime") == {"name": NAME, "digest": digest}, o)
    config = configure(place, image=image, digest="sha256:" + "0" * 64)
    o = one_run(c, config)
    c.check("another digest is refused", o["reason"]["code"] == "runtime_unavailable" and digest in o["reason"]["message"], o["reason"])
    c.check("and told by list, verify and doctor", c.run("runtime", "list", "--config", config).returncode == 1 and c.run("runtime", "verify", "--config", config).returncode == 1
            and c.run("doctor", "--config", config).returncode == 1)
    p = c.run("runtime", "list", "--config", configure(place, root=directory), "--json")
    said = {r["name"]: r for r in json.loads(p.stdout)}[NAME]
    c.check("list", said["state"] == "usable" and said["python"][0] == "3" and said["javascript"][:1].isdigit(), said)
    what_is_in_it(c, configure(place, root=directory), "directory")
    p = c.run("runtime", "verify", "--config", configure(place, root=directory), "--json")
    said = json.loads(p.stdout)[0]
    c.check("verify a directory with nothing to compare", p.returncode == 1 and said["state"] == "unknown", said)
    config = configure(place, root=directory, digest=said["digest"])
    c.check("verify a directory", c.run("runtime", "verify", NAME, "--config", config).returncode == 0)
    o = one_run(c, config)
    c.check("the outcome has the directory's digest", o.get("runtime") == {"name": NAME, "digest": said["digest"]}, o)
    with open(os.path.join(directory, "usr/lib/os-release"), "a", encoding="utf-8") as f:
        f.write("X=1\n")
    p = c.run("runtime", "verify", NAME, "--config", config)
    c.check("a changed directory is told", p.returncode == 1 and p.stdout.startswith("differs "), p.stdout)
    c.check("no such runtime", c.run("runtime", "verify", "nobody", "--config", config).returncode == 2)


def as_a_user(c, place, image):
    config = configure(place, image=image)
    os.chmod(place, 0o755)
    shutil.rmtree(os.path.join(place, "state"), ignore_errors=True)
    os.mkdir(os.path.join(place, "state"))
    os.chown(os.path.join(place, "state"), 65534, 65534)
    p = subprocess.run(["tools/dev/delegate", "nobody"], cwd=os.path.join(HERE, "../.."), capture_output=True, text=True, check=False)
    try:
        o = one_run(c, config, user=65534, group=65534, extra_groups=[], cwd="/")
        c.check("a user is told why", o["reason"]["code"] == "runtime_unavailable" and "root alone" in o["reason"]["message"], f"{o['reason']} {p.stderr}")
    finally:
        subprocess.run(["tools/dev/delegate", "--remove", "nobody"], cwd=os.path.join(HERE, "../.."), capture_output=True, check=False)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--reeve", required=True)
    a.add_argument("--image")
    a.add_argument("--directory")
    a.add_argument("--cases", nargs="*", default=["run.json", "isolation.json"])
    a.add_argument("-j", type=int, default=2)
    o = a.parse_args()
    c = Checks(os.path.abspath(o.reeve))
    missing = [t for t in ("mmdebstrap", "mkfs.erofs", "fsck.erofs", "apt-get") if not shutil.which(t, path="/usr/sbin:/usr/bin:/sbin:/bin")]
    if os.geteuid() or missing:
        print("skip: runtimes: " + ("this needs root" if os.geteuid() else "these are missing: " + " ".join(missing)))
        print("0 passed, 0 failed, 1 skipped")
        return 0
    files = [os.path.join(CONFORMANCE, f) for f in o.cases]
    with tempfile.TemporaryDirectory(prefix="reeve-runtime-") as place:
        os.mkdir(os.path.join(place, "out"))
        image, directory = o.image, o.directory
        if not image:
            ended_builds(c, os.path.join(place, "out"))
            image = build(c, os.path.join(place, "out"))
        if image and not directory:
            directory = os.path.join(place, "out", "tree")
            directory = directory if extract(c, image, directory) else None
        if image and directory:
            cases(c, {"root": directory}, files, o.j)
            cases(c, {"image": image}, files, o.j)
            judged(c, place, image, directory)
            as_a_user(c, place, image)
        c.check("nothing is mounted", not mounts(), mounts())
    print(f"{c.passed} passed, {c.failed} failed, 0 skipped")
    return 1 if c.failed else 0


if __name__ == "__main__":
    sys.exit(main())
