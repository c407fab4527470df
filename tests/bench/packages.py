#!/usr/bin/python3
"""What packages cost: against the bare package managers, and against runs without packages.

    packages.py --build DIR [-n N] [--dir PLACE] [ROW...]

Rows: `uv` and `npm`, cold, in turns with the bare tool, medians of N (7); `held`, a layer that is there, in pairs with a run
without packages; `locks`, one lock among a thousand; `ten`, ten runs at once that ask for the same. Without a row all of them.
Each line ends with its bound, and whether it is kept.

It needs root and the registries that this machine's package managers use. The bare tools get the same index and
certificates as reeve; where they are is read when it runs, and not printed. uv is /usr/bin/uv, /usr/local/bin/uv, or what
REEVE_UV names. Caches are empty each time, but those of the registry itself: one round before is not counted. Everything cold
is on the disk of PLACE (/var/tmp), with the state of reeve; the state of the rows `held` and `locks` is on a tmpfs.
"""
import ctypes, json, os, re, shutil, struct, subprocess, sys, tempfile, time

PYTHON, NPM = "/usr/bin/python3", "/usr/bin/npm"
PAIRS = 101
IN_CREATE, IN_MOVED_TO, IN_GONE, IN_ISDIR, IN_NONBLOCK = 0x100, 0x80, 0x240, 0x40000000, 0o4000
PROGRAMS = {"python": ("p.py", "import requests\n"), "javascript": ("p.mjs", "import 'express'\n"), "plain": ("q.py", "pass\n")}


def median(values):
    return sorted(values)[len(values) // 2]


def bound(text, value, most, unit):
    print(f"{text}: {value:.2f}{unit} (at most {most:.2f}{unit}) {'OK' if value <= most else 'over'}", flush=True)


def in_turns(n, a, b):
    """Both, n times, the order swapped each time, and once before that is not counted."""
    rows = ([], [])
    for i in range(n + 1):
        order = ((a, rows[0]), (b, rows[1]))
        for measure, row in order if i % 2 else order[::-1]:
            row.append(measure())
    return rows[0][1:], rows[1][1:]


class Reeve:
    """One reeve with a state directory; `cold()` empties its store."""

    def __init__(self, build, place, packages):
        self.binary = os.path.join(build, "tools/reeve/reeve")
        self.place, self.state = place, os.path.join(place, "state")
        with open(os.path.join(place, "reeve.yaml"), "w", encoding="utf-8") as f:
            json.dump({"state_dir": self.state, "packages": packages}, f)
        for name, text in PROGRAMS.values():
            with open(os.path.join(place, name), "w", encoding="ascii") as f:
                f.write(text)

    def command(self, program, *packages):
        words = [self.binary, "run", "--config", os.path.join(self.place, "reeve.yaml"), "--json"]
        for package in packages:
            words += ["--package", package]
        return words + [os.path.join(self.place, PROGRAMS[program][0])]

    def run(self, program, *packages):
        """(the outcome; milliseconds until it was there; until the process had ended)"""
        began = time.perf_counter()
        p = subprocess.Popen(self.command(program, *packages), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        line = p.stdout.readline()
        answered = time.perf_counter()
        rest = p.communicate()
        ended = time.perf_counter()
        outcome = json.loads(line) if line else {"status": "none", "reason": rest[1].decode()}
        if outcome["status"] != "completed":
            sys.exit(f"packages: a run failed: {outcome['reason']}")
        return outcome, (answered - began) * 1e3, (ended - began) * 1e3

    def cold(self):
        for part in ("artifacts", "cache", "claims", "layers", "locks", "staging", "used"):
            folder = os.path.join(self.state, "packages", part)
            for name in os.listdir(folder) if os.path.isdir(folder) else ():
                path = os.path.join(folder, name)
                if os.path.isdir(path):
                    shutil.rmtree(path)
                else:
                    os.unlink(path)

    def cold_run(self, program, package):
        self.cold()
        outcome, answered, ended = self.run(program, package)
        return {**outcome["timings_ms"], "answer": answered, "process": ended}

    def registry(self, language):
        """The index that this reeve uses, and the file of its certificates."""
        p = subprocess.run([self.binary, "doctor", "--json", "--config", os.path.join(self.place, "reeve.yaml")], stdin=subprocess.DEVNULL, capture_output=True, check=False)
        text = next(row["text"] for row in json.loads(p.stdout) if row["probe"] == f"registry ({language})")
        ca = re.search(r"; certificates (/[^;]*)", text)
        return text.split(",")[0], ca[1] if ca else ""


def bare(words, env, folder):
    began = time.perf_counter()
    p = subprocess.run(words, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    took = (time.perf_counter() - began) * 1e3
    if p.returncode != 0:
        sys.exit(f"packages: {os.path.basename(words[0])} ended with status {p.returncode}: " + re.sub(r"https?://\S+", "URL", p.stderr[-500:]))
    return took


def environment(more):
    return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", **more}


def find_uv():
    return next((p for p in (os.environ.get("REEVE_UV"), "/usr/bin/uv", "/usr/local/bin/uv") if p and os.path.exists(p)), None)


def tell_cold(what, reeve, times, most):
    def of(*names):
        return median([sum(row[n] for n in names) for row in reeve])
    bound(f"cold {what}: resolve and prepare {of('resolve', 'prepare'):.0f} ms ({of('resolve'):.0f} and {of('prepare'):.0f}), bare {median(times):.0f} ms",
          of("resolve", "prepare") / median(times), most, "")
    print(f"    to the answer {of('answer'):.0f} ms ({of('answer') / median(times):.2f}), to the end of the process {of('process'):.0f} ms; "
          f"from {min(row['resolve'] + row['prepare'] for row in reeve):.0f} to {max(row['resolve'] + row['prepare'] for row in reeve):.0f} ms, bare {min(times):.0f} to {max(times):.0f}", flush=True)


def cold_uv(build, place, n):
    uv = find_uv()
    if not uv:
        print("uv: there is none; REEVE_UV names one")
        return
    reeve = Reeve(build, place, {"uv": uv})
    index, ca = reeve.registry("python")
    env, i = environment({"SSL_CERT_FILE": ca} if ca else {}), iter(range(10000))

    def one():
        folder = os.path.join(place, f"uv-{next(i)}")
        os.mkdir(folder)
        took = bare([uv, "pip", "install", "-q", "--no-config", "--cache-dir", "cache", "--python", PYTHON, "--target", "target", "--only-binary", ":all:",
                     "--default-index", index, "requests==2.31.0"], env, folder)
        shutil.rmtree(folder)
        return took
    tell_cold("requests==2.31.0, uv", *in_turns(n, lambda: reeve.cold_run("python", "requests==2.31.0"), one), 1.3)


def cold_npm(build, place, n):
    reeve = Reeve(build, place, {})
    index, ca = reeve.registry("javascript")
    env, i = environment({"npm_config_registry": index, "NODE_EXTRA_CA_CERTS": ca, "npm_config_update_notifier": "false"}), iter(range(10000))

    def one():
        folder = os.path.join(place, f"npm-{next(i)}")
        os.mkdir(folder)
        with open(os.path.join(folder, "package.json"), "w", encoding="ascii") as f:
            f.write('{"private":true,"dependencies":{"express":"4"}}')
        took = bare([NPM, "install", "--no-audit", "--no-fund", "--loglevel=silent", "--cache", os.path.join(folder, "cache")], env, folder)
        shutil.rmtree(folder)
        return took
    tell_cold("express@4", *in_turns(n, lambda: reeve.cold_run("javascript", "express@4"), one), 1.6)


def held(build, place, _):
    reeve = Reeve(build, place, {"uv": find_uv() or "/nonexistent"})
    reeve.run("plain", "requests==2.31.0")
    with_layer, without = in_turns(PAIRS, lambda: reeve.run("plain", "requests==2.31.0"), lambda: reeve.run("plain"))
    for phase in ("decide", "resolve", "prepare", "start", "run"):
        x, y = (median([o["timings_ms"][phase] for o, _, _ in rows]) for rows in (with_layer, without))
        print(f"held layer: {phase} {x:.2f} ms, without packages {y:.2f} ms: {x - y:+.2f}")
    for name, k in (("to the answer", 1), ("whole process", 2)):
        x, y = (median([row[k] for row in rows]) for rows in (with_layer, without))
        bound(f"held layer: {name} {x:.2f} ms, without packages {y:.2f} ms", x - y, 3, " ms")


def locks(build, place, _):
    """A lock is found by its name, so that the others cost nothing; by what the phase takes, of which it is a part."""
    reeve = Reeve(build, place, {"uv": find_uv() or "/nonexistent"})
    reeve.run("plain", "requests==2.31.0")
    folder = os.path.join(reeve.state, "packages/locks")
    first = os.path.join(folder, os.listdir(folder)[0])
    rows = {}
    for n in (1, 1001):
        for i in range(n - 1):
            shutil.copy2(first, os.path.join(folder, f"{i:064x}.json"))
        rows[n] = median([reeve.run("plain", "requests==2.31.0")[0]["timings_ms"]["resolve"] for _ in range(PAIRS)])
    bound(f"a lock among 1001: the whole phase resolve, {rows[1]:.2f} ms with one", rows[1001], 1, " ms")


class Watch:
    """Which directories come into being in a folder. That they go is watched too: of two events that are alike the kernel
    tells one if nothing is between them."""

    def __init__(self, path):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(IN_NONBLOCK)
        if self.libc.inotify_add_watch(self.fd, os.fsencode(path), IN_CREATE | IN_MOVED_TO | IN_GONE) < 0:
            sys.exit("packages: inotify does not work here")

    def names(self):
        found = []
        try:
            data = os.read(self.fd, 1 << 16)
        except BlockingIOError:
            return found
        while data:
            _, mask, _, size = struct.unpack_from("iIII", data)
            if mask & IN_ISDIR and mask & (IN_CREATE | IN_MOVED_TO):
                found.append(data[16:16 + size].rstrip(b"\0").decode())
            data = data[16 + size:]
        return found


def ten(build, place, _):
    reeve = Reeve(build, place, {"uv": find_uv() or "/nonexistent"})
    reeve.run("plain", "requests==2.31.0")
    reeve.cold()
    alone = reeve.cold_run("python", "requests==2.31.0")["answer"]
    reeve.cold()
    staged, layers = Watch(os.path.join(reeve.state, "packages/staging")), Watch(os.path.join(reeve.state, "packages/layers"))
    began = time.perf_counter()
    running = [subprocess.Popen(reeve.command("python", "requests==2.31.0"), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for _ in range(10)]
    outcomes = [json.loads(p.communicate()[0]) for p in running]
    took = (time.perf_counter() - began) * 1e3
    if any(o["status"] != "completed" for o in outcomes):
        sys.exit(f"packages: a run failed: {[o['reason'] for o in outcomes if o['status'] != 'completed'][0]}")
    # One more is staged for the byte code, after the answers.
    print(f"ten at once: all had ended after {took:.0f} ms, one alone had its answer after {alone:.0f} ms; {len(set(o['packages']['layer'] for o in outcomes))} layer, "
          f"{sum('resolve' in o['timings_ms'] for o in outcomes)} outcomes")
    bound("ten at once: trees put in place", len(layers.names()), 1, "")
    bound("ten at once: directories in which something was made, with that for the byte code", len(staged.names()), 2, "")


def main():
    words = sys.argv[1:]
    options = {"--build": None, "-n": "7", "--dir": "/var/tmp"}
    while len(words) > 1 and words[0] in options:
        options[words[0]], words = words[1], words[2:]
    rows = {"uv": cold_uv, "npm": cold_npm, "held": held, "locks": locks, "ten": ten}
    if not options["--build"] or any(w not in rows for w in words):
        sys.exit(__doc__)
    if os.geteuid() != 0:
        print("packages: needs root")
        return
    build = os.path.abspath(options["--build"])
    subprocess.run(["ninja", "-C", build, *(f"tools/{t}/{n}" for t, n in (("reeve", "reeve"), ("gate", "reeve-gate"), ("fetch", "reeve-fetch"), ("unpack", "reeve-unpack")))], stdout=subprocess.DEVNULL, check=True)
    for name, measure in rows.items():
        if name in words or not words:
            place = tempfile.mkdtemp(prefix="reeve-bench-", dir="/dev/shm" if name in ("held", "locks") else options["--dir"])
            try:
                measure(build, place, int(options["-n"]))
            finally:
                shutil.rmtree(place)


if __name__ == "__main__":
    main()
