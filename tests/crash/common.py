"""What the crash tests share: a state of their own, runs of it, the processes of a run, and what may be left over.

Processes are found by parentage through /proc, from the pid of a reeve that the test started, and are killed
through a pidfd. Needs root.
"""
import base64
import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time

ROLES = ("reeve", "spawner", "init", "program")


class Place:
    """A directory with a configuration, a state and a uid range of its own."""

    def __init__(self, reeve, directory, **config):
        self.reeve, self.directory = reeve, directory
        self.foreign = left_cgroups()       # of reeves that were killed elsewhere on this host: not these runs' to remove
        self.acknowledged = []      # answers that callers got, for those who note them
        self.state = os.path.join(directory, "state")
        first = 2020000 + os.getpid() % 40 * 1000
        self.uids = (first, first + 999)
        self.config = os.path.join(directory, "reeve.yaml")
        self.configure(**config)

    def configure(self, **config):
        with open(self.config, "w", encoding="utf-8") as f:
            json.dump({"state_dir": self.state, "uid_range": f"{self.uids[0]}-{self.uids[1]}", "tenants": {"local": {}}, **config}, f)

    def start(self, source, timeout_s=20, env=None, key=None, **more):
        """A reeve that runs a Python program. Its answer is in `.answer`, a file."""
        question, answer = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        question.write(json.dumps({"language": "python", "source": source, "timeout_s": timeout_s, **({"idempotency_key": key} if key else {})}).encode())
        question.seek(0)
        p = subprocess.Popen([self.reeve, "run", "--config", self.config, "--json", "--request", "-"], stdin=question,
                             stdout=answer, stderr=subprocess.PIPE, env={**os.environ, **(env or {})}, **more)
        question.close()
        p.answer = answer
        return p

    def run(self, source="print(1)", within_s=30, **more):
        return finish(self.start(source, **more), within_s)

    def records(self):
        found, audit = [], os.path.join(self.state, "audit")
        for name in sorted(n for n in os.listdir(audit) if n.endswith(".jsonl")):
            with open(os.path.join(audit, name), "rb") as f:
                found += f.read().splitlines()
        return found


@contextlib.contextmanager
def place(reeve, **config):
    with tempfile.TemporaryDirectory(prefix="crash-") as d:
        os.chmod(d, 0o755)
        yield Place(os.path.abspath(reeve), d, **config)


class Answer:
    """What a reeve gave: exit status (None: it did not end in time), its output and that as JSON (or None), standard error."""

    def __init__(self, status, text, stderr, took_s):
        self.status, self.text, self.stderr, self.took_s = status, text, stderr, took_s
        try:
            self.json = json.loads(text)
        except ValueError:
            self.json = None

    @property
    def code(self):
        return (self.json or {}).get("reason", {}).get("code")

    def __str__(self):
        return f"exit {self.status} after {self.took_s:.2f} s, {json.dumps(self.json)[:400] if self.json else 'no answer'}, stderr: {self.stderr[-300:].strip()}"


def finish(p, within_s):
    """Waits for a reeve of Place.start()."""
    began, stderr = time.monotonic(), ""
    try:
        stderr = p.communicate(timeout=within_s)[1].decode(errors="replace")
        status = p.returncode
    except subprocess.TimeoutExpired:
        status = None
        p.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):     # another may hold its standard error open
            p.communicate(timeout=2)
    p.answer.seek(0)
    text = p.answer.read()
    p.answer.close()
    return Answer(status, text, stderr, time.monotonic() - began)


# ---- The processes of a run ----

def name_of(pid):
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as f:
            return f.read().strip()
    except OSError:
        return ""


def state_of(pid):
    """As in proc(5); "" if there is none."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(x) for x in f.read().split()]
    except OSError:
        return []


def tree(reeve_pid):
    """{role: pid} of one run as it is now. Of two inits, one of them made ahead, the older."""
    found, pid = {"reeve": reeve_pid}, reeve_pid
    for role in ROLES[1:]:
        below = children(pid)
        if not below:
            break
        found[role] = pid = below[0]
    return found


def kill_all(reeve_pid, roles):
    """Kills these at one moment: none acts on the death of another. The role that is not there, or None."""
    ranked = sorted(roles, key=ROLES.index)
    for role in ranked[:-1]:
        pid = tree(reeve_pid).get(role)
        if pid is None:
            return role
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
        while state_of(pid) not in ("T", "Z", ""):
            time.sleep(0.0005)
    # From the bottom up, as the tree is found from its top.
    for role in reversed(ranked):
        if kill(reeve_pid, role) is None:
            return role
    return None


def kill(reeve_pid, role):
    """Kills that process of the run, if it is there. The pid that it had, or None."""
    pid = tree(reeve_pid).get(role)
    if pid is None:
        return None
    try:
        fd = os.pidfd_open(pid)
    except OSError:
        return None
    try:
        if tree(reeve_pid).get(role) != pid:     # it ended, and the number may be another's
            return None
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        return pid
    except OSError:
        return None
    finally:
        os.close(fd)


def wait_for(reeve_process, condition, within_s=5):
    """Looks until condition(tree) holds. The tree, or None if the reeve ended or it took too long."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        found = tree(reeve_process.pid)
        if condition(found):
            return found
        if reeve_process.poll() is not None:
            return None
        time.sleep(0.0005)
    return None


# ---- What may be left ----

def left_cgroups():
    """Directories named after an instance that is dead."""
    found = set()
    for d, subdirs, _ in os.walk("/sys/fs/cgroup"):
        for s in subdirs:
            m = re.match(r"reeve-(\d+)\.(\d+)", s)
            if not m:
                continue
            try:
                with open(f"/proc/{m[1]}/stat", encoding="utf-8", errors="replace") as f:
                    stat = f.read().rsplit(")", 1)[1].split()
                is_dead = stat[19] != m[2] or stat[0] in "ZX"
            except OSError:
                is_dead = True
            if is_dead:
                found.add(f"cgroup {os.path.join(d, s)}")
    return found


def left_processes(at):
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
                uids = [int(u) for u in re.search(r"^Uid:\t(.*)$", f.read(), re.M)[1].split()]
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                arguments = f.read()
        except OSError:
            continue
        if any(at.uids[0] <= u <= at.uids[1] for u in uids) or at.config.encode() in arguments:
            found.add(f"process {pid} {name_of(pid)} uid {uids[0]}")
    return found


def left_locks(at):
    """Pairs of our uid range that are still held."""
    try:
        inode = os.stat("/run/reeve/uids").st_ino
    except OSError:
        return set()
    with open("/proc/locks", encoding="ascii") as f:
        return {f"lock {line.strip()}" for line in f
                if (m := re.search(r":(\d+) (\d+) (\d+)$", line)) and int(m[1]) == inode and at.uids[0] <= int(m[2]) <= at.uids[1]}


def left_mounts(at):
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        points = [line.split()[4] for line in f]
    return {f"mount {p}" for p in points if p == "/tmp" or p.startswith((at.directory, "/run/reeve"))}


def left_files(at):
    live = os.path.join(at.state, "audit/live")
    return {f"file live/{n}" for n in (os.listdir(live) if os.path.isdir(live) else ())}


def left(at, before=frozenset()):
    """What is there of runs that are over, given some time to go."""
    for _ in range(30):
        found = (left_cgroups() | left_processes(at) | left_locks(at) | left_mounts(at) | left_files(at)) - before - at.foreign
        if not found:
            break
        time.sleep(0.1)
    return sorted(found)


# ---- Checkpoints ----

def add_leaf(edge, size, line):
    """The right edge of the tree (RFC 6962) after one more record; `edge` is of `size` records."""
    edge, node = list(edge), hashlib.sha256(b"\0" + line).digest()
    while size & 1:
        node, size = hashlib.sha256(b"\1" + edge.pop() + node).digest(), size >> 1
    return edge + [node]


def root_of(edge):
    root = edge[-1] if edge else hashlib.sha256(b"").digest()
    for left in reversed(edge[:-1]):
        root = hashlib.sha256(b"\1" + left + root).digest()
    return root


def read_key(text):
    """(key id, public key) of a verifier key."""
    name, key_id, key = text.strip().split("+", 2)
    raw = base64.b64decode(key)
    assert raw[0] == 1 and hashlib.sha256(name.encode() + b"\n" + raw).hexdigest()[:8] == key_id
    return bytes.fromhex(key_id), raw[1:]


def is_signed(body, signatures, key):
    """Does openssl find a signature of this key good?"""
    key_id, public = key
    for signature in signatures:
        raw = base64.b64decode(signature.rsplit(" ", 1)[1])
        if raw[:4] != key_id:
            continue
        with tempfile.TemporaryDirectory(prefix="crash-key-") as d:
            for name, data in (("key", bytes.fromhex("302a300506032b6570032100") + public), ("text", body), ("signature", raw[4:])):
                with open(os.path.join(d, name), "wb") as f:
                    f.write(data)
            return subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", "key", "-rawin", "-in", "text",
                                   "-sigfile", "signature"], cwd=d, capture_output=True, check=False).returncode == 0
    return False


def check_seals(at):
    """Faults of the checkpoints: each fits the log before it and is signed by the key of its time, and none covers less than one before."""
    keys, faults, edges, size, n, key = os.path.join(at.state, "keys"), [], [[]], 0, 0, None
    known = {}
    for name in sorted(os.listdir(keys)):
        if name.endswith(".pub"):
            with open(os.path.join(keys, name), encoding="ascii") as f:
                key_id, public = read_key(f.read())
                known[key_id] = (key_id, public)
    for seq, line in enumerate(at.records()):
        edges.append(add_leaf(edges[-1], seq, line))
        r = json.loads(line)
        if r["kind"] != "checkpoint":
            continue
        n += 1
        text, _, rest = r["note"].partition("\n\n")
        lines, signatures = text.split("\n"), rest.splitlines()
        if lines[:3] != [f"reeve/{r['log_id']}", str(r["size"]), base64.b64encode(bytes.fromhex(r["root"])).decode()]:
            faults.append(f"checkpoint {seq}: its note says something else: {lines}")
        if not size <= r["size"] <= seq:
            faults.append(f"checkpoint {seq}: covers {r['size']} records after one of {size}")
        size = r["size"]
        if root_of(edges[size]).hex() != r["root"]:
            faults.append(f"checkpoint {seq}: the root is not that of {size} records")
        key = key or known.get(base64.b64decode(signatures[0].rsplit(" ", 1)[1])[:4])
        if not key or not is_signed(text.encode() + b"\n", signatures, key):
            faults.append(f"checkpoint {seq}: not signed by the key of its time")
        for next_key in (x[9:] for x in lines[3:] if x.startswith("next-key ")):
            key = read_key(next_key)
            if not is_signed(text.encode() + b"\n", signatures, key):
                faults.append(f"checkpoint {seq}: not signed by the key that it names")
    if known.get(key and key[0]) != key or size != len(edges) - 2:
        faults.append(f"checkpoints: the last of {n} covers {size} of {len(edges) - 1} records")
    print(f"checkpoints: {n}, the last over {size} records")
    return faults


# ---- The log ----

def check_log(at):
    """Faults of the whole log: sequence, chain, and an outcome for each decision. Also prints what kinds there are."""
    faults, prev, kinds, decided, concluded, recovered = [], "0" * 64, {}, set(), {}, 0
    for seq, line in enumerate(at.records()):
        try:
            r = json.loads(line)
        except ValueError:
            faults.append(f"log: line {seq} is no JSON: {line[:80]}")
            continue
        if r["seq"] != seq:
            faults.append(f"log: record {r['seq']} is line {seq}")
        if r["prev"] != prev:
            faults.append(f"log: record {seq} does not name the line before it")
        prev = hashlib.sha256(line).hexdigest()
        kinds[r["kind"]] = kinds.get(r["kind"], 0) + 1
        if r["kind"] == "decision":
            decided.add(r["decision_id"])
        elif r["kind"] == "outcome":
            concluded.setdefault(r["decision_id"], []).append(r)
            recovered += r.get("recovered", False)
            if r["decision_id"] not in decided:
                faults.append(f"log: the outcome {seq} has no decision before it")
            if not re.fullmatch("[0-9a-f]{64}", r["outcome_sha256"]) or not r["run_id"] or r["tenant"] != "local":
                faults.append(f"log: the outcome {seq} is not whole")
    for d in sorted(decided):
        n = len(concluded.get(d, ()))
        if n != 1:
            faults.append(f"log: the decision {d} has {n} outcomes")
    faults += check_seals(at)
    print("log: " + ", ".join(f"{n} {k}" for k, n in sorted(kinds.items())) + f"; {recovered} recovered")
    return faults[:20]
