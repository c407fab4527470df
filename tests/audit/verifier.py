#!/usr/bin/python3
"""A verifier of reeve's audit log, written from docs/audit.md alone.

    verifier.py [--key KEY|FILE]... [--expect SIZE:ROOT|FILE]... [--json] DIR
    verifier.py --key KEY|FILE... --proof FILE

Nothing of reeve is in it: Python's standard library, and the `openssl` command for Ed25519. It holds the whole log in
memory and hashes without haste; what it is for is to disagree with reeve wherever reeve departs from its own page.
DIR is a state directory, or one with *.jsonl files. Exit status 0: the log is good; 2: it is not.
"""
import argparse
import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile

INTEGER_MAX = 2**53 - 1
RECORD_BYTES_MAX = 2 << 20
DEPTH_MAX = 64
# SubjectPublicKeyInfo of Ed25519 (RFC 8410) up to the 32 bytes of the key.
PUBLIC_PREFIX = bytes.fromhex("302a300506032b6570032100")


class Fault(Exception):
    """What is wrong, and with which record."""

    def __init__(self, what, seq, segment, offset, text):
        super().__init__(text)
        self.what, self.seq, self.segment, self.offset, self.text = what, seq, segment, offset, text

    def to_json(self):
        return {"what": self.what, "seq": self.seq, "segment": self.segment, "offset": self.offset, "message": self.text}


# ---- Canonical form ----

def canonical(value, depth=0):
    """RFC 8785, for values without numbers other than integers."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        if abs(value) > INTEGER_MAX:
            raise ValueError("a number out of range")
        return str(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if depth == DEPTH_MAX:
        raise ValueError("nested too deep")
    if isinstance(value, list):
        return "[" + ",".join(canonical(v, depth + 1) for v in value) + "]"
    if isinstance(value, dict):
        members = sorted(value.items(), key=lambda m: m[0].encode("utf-16-be"))
        return "{" + ",".join(canonical(k) + ":" + canonical(v, depth + 1) for k, v in members) + "}"
    raise ValueError("a number that is no integer")


def no_number(text):
    raise ValueError(f"{text} is no integer")


def members(pairs):
    o = dict(pairs)
    if len(o) != len(pairs):
        raise ValueError("a member twice")
    return o


def read_record(line):
    """The record that a line is. ValueError if it is none."""
    text = line.decode("utf-8")
    try:
        record = json.loads(text, object_pairs_hook=members, parse_float=no_number, parse_constant=no_number)
    except RecursionError as e:
        raise ValueError("nested too deep") from e
    if not isinstance(record, dict):
        raise ValueError("no object")
    if canonical(record).encode("utf-8") != line:
        raise ValueError("not in canonical form")
    for name, is_good in (("seq", is_number), ("time_us", is_number), ("prev", is_hex(64)), ("log_id", is_hex(32)),
                          ("kind", is_text), ("instance", is_text), ("build", is_text)):
        if name not in record or not is_good(record[name]):
            raise ValueError(f"no {name}, or not one")
    return record


def is_number(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def is_text(value):
    return isinstance(value, str)


def is_hex(n):
    return lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{%d}" % n, value) is not None


# ---- Tree ----

def leaf_hash(line):
    return hashlib.sha256(b"\0" + line).digest()


def tree_root(leaves):
    """RFC 6962, 2.1, of the leaves' hashes."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return leaves[0]
    k = largest_power_below(len(leaves))
    return node_hash(tree_root(leaves[:k]), tree_root(leaves[k:]))


def node_hash(left, right):
    return hashlib.sha256(b"\1" + left + right).digest()


def inclusion_leads_to(leaf, seq, size, path):
    """The root that an audit path leads to, as RFC 6962 builds it from the top: the last hash is the outermost."""
    if size == 1:
        if path:
            raise ValueError("a path that is too long")
        return leaf
    if not path:
        raise ValueError("a path that is too short")
    k = largest_power_below(size)
    if seq < k:
        return node_hash(inclusion_leads_to(leaf, seq, k, path[:-1]), path[-1])
    return node_hash(path[-1], inclusion_leads_to(leaf, seq - k, size - k, path[:-1]))


def consistency_leads_to(old, m, size, path, is_whole=True):
    """(root of the first m, root of size) that a consistency proof leads to; `old` is the former, where it is not in the path."""
    if m == size:
        if len(path) != (0 if is_whole else 1):
            raise ValueError("a path of another length")
        return (old, old) if is_whole else (path[0], path[0])
    if not path:
        raise ValueError("a path that is too short")
    k = largest_power_below(size)
    if m <= k:
        a, b = consistency_leads_to(old, m, k, path[:-1], is_whole)
        return a, node_hash(b, path[-1])
    a, b = consistency_leads_to(old, m - k, size - k, path[:-1], False)
    return node_hash(path[-1], a), node_hash(path[-1], b)


def largest_power_below(n):
    k = 1
    while 2 * k < n:
        k *= 2
    return k


# ---- Checkpoints ----

def strict_base64(text, n):
    data = base64.b64decode(text, validate=True)
    if base64.b64encode(data).decode() != text or len(data) != n:
        raise ValueError("no base64 of that size")
    return data


class Key:
    """A verifier key."""

    def __init__(self, text):
        m = re.fullmatch(r"reeve/([0-9a-f]{32})\+([0-9a-f]{8})\+([A-Za-z0-9+/=]+)\n?", text)
        if not m:
            raise ValueError("no verifier key")
        data = strict_base64(m[3], 33)
        self.log_id, self.public = m[1], data[1:]
        self.id = hashlib.sha256(f"reeve/{m[1]}\n".encode() + data).digest()[:4]
        if data[0] != 1 or self.id.hex() != m[2]:
            raise ValueError("no key of Ed25519, or not its id")

    def __eq__(self, other):
        return isinstance(other, Key) and (self.log_id, self.public) == (other.log_id, other.public)


class Note:
    """A checkpoint's text."""

    def __init__(self, text):
        if len(text.encode("utf-8")) > 2048 or not text.endswith("\n"):
            raise ValueError("too long, or without an end")
        lines = text[:-1].split("\n")
        origin = re.fullmatch(r"reeve/([0-9a-f]{32})", lines[0])
        if not 5 <= len(lines) <= 16 or not origin or not re.fullmatch(r"0|[1-9][0-9]{0,17}", lines[1], re.A):
            raise ValueError("no checkpoint")
        self.log_id, self.size, self.root = origin[1], int(lines[1]), strict_base64(lines[2], 32)
        at, self.next_key = 3, None
        if lines[3].startswith("next-key "):
            self.next_key, at = Key(lines[3][len("next-key "):]), 4
            if lines[3].endswith("\n") or self.next_key.log_id != self.log_id:
                raise ValueError("the next key is one of another log")
        if lines[at] != "" or at + 1 == len(lines):
            raise ValueError("no signature")
        self.body = "".join(line + "\n" for line in lines[:at]).encode()
        self.signatures = []
        for line in lines[at + 1:]:
            m = re.fullmatch(r"\u2014 ([^ ]*) (.*)", line, re.S)
            if not m:
                raise ValueError("a line that is no signature")
            if m[1] == lines[0]:
                self.signatures.append(strict_base64(m[2], 68))
        if len(self.signatures) > 4:
            raise ValueError("too many signatures")

    def check(self, key):
        """"good", "unsigned" or "wrong"."""
        result = "unsigned"
        for s in self.signatures:
            if s[:4] == key.id and self.log_id == key.log_id:
                if ed25519(key.public, self.body, s[4:]):
                    return "good"
                result = "wrong"
        return result


seen_signatures = {}


def ed25519(public, message, signature):
    """By openssl; each question is asked once."""
    question = (public, message, signature)
    if question not in seen_signatures:
        with tempfile.TemporaryDirectory() as place:
            names = [os.path.join(place, n) for n in ("key", "message", "signature")]
            for name, data in zip(names, (PUBLIC_PREFIX + public, message, signature)):
                with open(name, "wb") as f:
                    f.write(data)
            p = subprocess.run(["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", names[0], "-rawin",
                                "-in", names[1], "-sigfile", names[2]], capture_output=True, check=False)
        seen_signatures[question] = p.returncode == 0
    return seen_signatures[question]


# ---- The log ----

class Expect:
    def __init__(self, size, root, note=None):
        self.size, self.root, self.note = size, root, note


class Verifier:
    def __init__(self, directory, keys=(), expects=()):
        self.dir = os.path.join(directory, "audit") if os.path.isdir(os.path.join(directory, "audit")) else directory
        self.is_vouched = bool(keys)
        self.keys = list(keys) or self.key_beside()
        self.expects = sorted(expects, key=lambda e: e.size)
        self.notes = [e.note for e in expects if e.note]
        self.leaves, self.places = [], []    # of each record: its leaf; (segment, offset)
        self.log_id = self.last = None       # the last checkpoint's note
        self.past = []                       # keys that were in force; the last one is
        self.coming = self.keys[1:]          # and those given that are to follow
        self.first_unknown = None
        self.vouched = 0                     # so many records were as somebody else says
        self.incomplete = self.n_checkpoints = 0
        self.last_seq = None

    def key_beside(self):
        try:
            with open(os.path.join(self.dir, "../keys/ed25519.pub"), encoding="ascii") as f:
                return [Key(f.read())]
        except FileNotFoundError:
            return []

    # -- Lines --

    def segments(self):
        """(number, name) of what are segments by name; the first name that only looks like one."""
        names = sorted(n for n in os.listdir(self.dir) if n.endswith(".jsonl"))
        is_one = [bool(re.fullmatch(r"[0-9]{20}\.jsonl", n, re.A)) and int(n[:20]) <= INTEGER_MAX for n in names]
        return [(int(n[:20]), n) for n, good in zip(names, is_one) if good], next((n for n, good in zip(names, is_one) if not good), None)

    def lines(self):
        """(segment's name, offset, line) of every complete line, segment by segment; checks the names on the way."""
        segments, _ = self.segments()
        for i, (number, name) in enumerate(segments):
            n = len(self.leaves)
            if number > n:
                yield Fault("segment", n, "%020d.jsonl" % n, 0, "the segment is missing"), 0, b""
            if number < n:
                yield Fault("segment", number, name, 0, "no segment can begin here"), 0, b""
            path = os.path.join(self.dir, name)
            if os.path.islink(path) or not os.path.isfile(path):
                yield Fault("segment", number, name, 0, "no regular file"), 0, b""
            with open(path, "rb") as f:
                parts = f.read().split(b"\n")
            offset = 0
            for line in parts[:-1]:
                yield name, offset, line
                offset += len(line) + 1
            if parts[-1] and i + 1 < len(segments):
                yield Fault("form", len(self.leaves), name, offset, "the last line has no end"), 0, b""
            if len(parts[-1]) > RECORD_BYTES_MAX:
                yield Fault("form", len(self.leaves), name, offset, "the line is too long"), 0, b""
            self.incomplete, self.end = len(parts[-1]), (name, offset)

    def read_id(self):
        try:
            with open(os.path.join(self.dir, "id"), "rb") as f:
                text = f.read().decode("latin-1")
        except FileNotFoundError:
            text = self.keys[0].log_id + "\n" if self.keys else None
        if text is None:
            return
        if not re.fullmatch(r"[0-9a-f]{32}\n", text):
            raise Fault("log_id", 0, "%020d.jsonl" % 0, 0, "the file id holds none")
        self.log_id = text[:-1]
        if any(k.log_id != self.log_id for k in self.keys):
            raise Fault("key", 0, "%020d.jsonl" % 0, 0, "the key is one of another log")

    def verify(self):
        """Raises the fault, if there is one."""
        self.read_id()
        self.check_expects(0)
        before, doubt = "0" * 64, None       # the hash of the line before; (the two that it may be, is it settled)
        for name, offset, line in self.lines():
            seq = len(self.leaves)
            if isinstance(name, Fault):
                raise doubt[doubt[2]] if doubt else name
            try:
                if len(line) + 1 > RECORD_BYTES_MAX:
                    raise ValueError("longer than 2 MiB")
                record = read_record(line)
            except ValueError as e:
                raise (doubt[doubt[2]] if doubt else Fault("form", seq, name, offset, str(e))) from e
            if doubt:
                raise doubt[1 if doubt[2] or record["prev"] != before else 0]
            if self.log_id is None:
                self.log_id = record["log_id"]
            if record["log_id"] != self.log_id:
                raise Fault("log_id", seq, name, offset, "a record of another log")
            if record["seq"] != seq:
                raise Fault("seq", seq, name, offset, f"record {record['seq']} stands there")
            if record["prev"] != before:
                text = "the record was changed"
                if seq == 0:
                    raise Fault("prev", 0, name, offset, text)
                doubt = (Fault("prev", seq - 1, *self.places[-1], text), Fault("prev", seq, name, offset, text), int(self.clears(record)))
            before = hashlib.sha256(line).hexdigest()
            self.leaves.append(leaf_hash(line))
            self.places.append((name, offset))
            if record["kind"] == "checkpoint" and not doubt:
                self.checkpoint(record)
        if doubt:
            raise doubt[doubt[2]]
        self.finish()

    # -- Seals --

    def fault_here(self, what, text):
        return Fault(what, len(self.leaves) - 1, *self.places[-1], text)

    def check_expects(self, size):
        """Those up to this size that were not looked at."""
        while self.expects and self.expects[0].size <= min(size, len(self.leaves)):
            e = self.expects.pop(0)
            if tree_root(self.leaves[:e.size]) != e.root:
                n = max(e.size - 1, 0)
                raise Fault("expect", n, *(self.places[n] if self.places else ("%020d.jsonl" % 0, 0)), f"another root; one from record {min(self.vouched, n)} on was changed")
            self.vouched = e.size

    @staticmethod
    def read_note(record):
        """The note of a checkpoint's record. ValueError."""
        if not is_number(record.get("size")) or not is_hex(64)(record.get("root")) or not is_text(record.get("note")):
            raise ValueError("no size, root or note")
        note = Note(record["note"])
        if note.log_id != record["log_id"] or note.size != record["size"] or note.root.hex() != record["root"]:
            raise ValueError("the record is not as its note")
        return note

    def clears(self, record):
        """Is it a signed checkpoint of all that stands before it, as it is?"""
        try:
            note = self.read_note(record) if record["kind"] == "checkpoint" else None
        except ValueError:
            return False
        return bool(note and self.past and note.size == len(self.leaves) and note.check(self.past[-1]) == "good"
                    and tree_root(self.leaves) == note.root)

    def checkpoint(self, record):
        seq = len(self.leaves) - 1
        try:
            note = self.read_note(record)
        except ValueError as e:
            raise self.fault_here("checkpoint", str(e)) from e
        if note.size > seq or (self.last and note.size < self.last.size):
            raise self.fault_here("checkpoint", "it covers what it cannot, or goes back")
        self.check_key(note)
        self.check_expects(note.size)
        if tree_root(self.leaves[:note.size]) != note.root:
            raise self.fault_here("root", f"made for other records; one from record {self.vouched} on was changed")
        self.vouched = note.size
        self.last, self.last_seq, self.n_checkpoints = note, seq, self.n_checkpoints + 1

    def check_key(self, note):
        key = self.past[-1] if self.past else self.keys[0] if self.keys else None
        result = note.check(key) if key else "unsigned"
        if result == "unsigned" and not self.past:
            self.first_unknown = self.first_unknown or self.fault_here("key", "not signed by a known key")
            return
        if result == "unsigned" and self.coming and note.check(self.coming[0]) == "good":
            result = "good"
            self.past.append(self.coming.pop(0))
        if result != "good":
            raise self.fault_here("key", f"{result} by the key in force")
        if not self.past:
            if self.first_unknown and note.next_key != key:
                raise self.first_unknown
            self.past.append(key)
        if note.next_key and note.next_key != self.past[-1]:
            if note.check(note.next_key) != "good" or (len(self.keys) > 1 and self.coming[:1] != [note.next_key]):
                raise self.fault_here("key", "the next key has not signed, or is not the next of those given")
            self.coming = self.coming[1:]
            self.past.append(note.next_key)

    def finish(self):
        if not self.leaves:
            raise Fault("empty", 0, "%020d.jsonl" % 0, 0, "no record")
        if self.first_unknown and not self.past:
            raise self.first_unknown
        self.check_expects(len(self.leaves))
        if self.expects:
            raise Fault("expect", len(self.leaves), *self.end, "the end is cut off")
        for note in self.notes:
            if all(note.check(k) != "good" for k in self.past + self.keys):
                raise Fault("key", 0, "%020d.jsonl" % 0, 0, "an expected checkpoint that no known key has signed")
        if self.past and self.coming:
            raise Fault("key", len(self.leaves), *self.end, "the last of the keys given is not in force at the end")
        if self.is_vouched and not self.n_checkpoints:
            raise Fault("unsealed", 0, "%020d.jsonl" % 0, 0, "no checkpoint")
        odd = self.segments()[1]
        if odd:
            raise Fault("segment", len(self.leaves), odd, 0, "no name of a segment")

    def to_json(self):
        size = self.last.size if self.last else 0
        return {"log_id": self.log_id, "records": len(self.leaves), "root": tree_root(self.leaves).hex(), "checkpoints": self.n_checkpoints,
                "sealed": size, "unsealed": len(self.leaves) - size, "incomplete_bytes": self.incomplete}


def verify(directory, keys=(), expects=()):
    """The fault, or None, and what was found of the log."""
    v = Verifier(directory, keys, expects)
    try:
        v.verify()
    except Fault as fault:
        return fault, v
    return None, v


def check_proof(proof, keys):
    """Raises ValueError unless it proves what it says to whoever knows the keys."""
    path, size, root = [bytes.fromhex(h) for h in proof["path"]], proof["size"], bytes.fromhex(proof["root"])
    if proof["schema"] != "reeve.proof/1":
        raise ValueError("another schema")
    if "from" in proof:
        old = bytes.fromhex(proof["from_root"])
        if not 0 < proof["from"] <= size or consistency_leads_to(old, proof["from"], size, path) != (old, root):
            raise ValueError("the path leads elsewhere")
    else:
        line = proof["record"].encode()
        record, leaf = read_record(line), leaf_hash(line)
        if leaf.hex() != proof["leaf"] or record["seq"] != proof["seq"] or record["log_id"] != proof["log_id"]:
            raise ValueError("the record is another")
        if not 0 <= proof["seq"] < size or inclusion_leads_to(leaf, proof["seq"], size, path) != root:
            raise ValueError("the path leads elsewhere")
    if proof["checkpoint"] is None:
        raise ValueError("no checkpoint")
    note = Note(proof["checkpoint"])
    if "consistency" in proof:
        if size > note.size or consistency_leads_to(root, size, note.size, [bytes.fromhex(h) for h in proof["consistency"]]) != (root, note.root):
            raise ValueError("the consistency leads elsewhere")
    elif (note.size, note.root) != (size, root):
        raise ValueError("the checkpoint is another's")
    if note.log_id != proof["log_id"] or all(note.check(k) != "good" for k in keys):
        raise ValueError("not signed by the key")


def read_key(text):
    if not text.startswith("reeve/"):
        with open(text, encoding="utf-8") as f:
            text = f.read()
    return Key(text)


def read_expect(text):
    m = re.fullmatch(r"([0-9]{1,18}):(.*)", text, re.A)
    if m:
        return Expect(int(m[1]), bytes.fromhex(m[2]) if len(m[2]) == 64 else strict_base64(m[2], 32))
    with open(text, encoding="utf-8", newline="") as f:
        note = Note(f.read())
    return Expect(note.size, note.root, note)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--key", action="append", type=read_key, default=[])
    a.add_argument("--expect", action="append", type=read_expect, default=[])
    a.add_argument("--json", action="store_true")
    a.add_argument("--proof", metavar="FILE")
    a.add_argument("dir", nargs="?", default=".")
    o = a.parse_args()
    if o.proof:
        try:
            with open(o.proof, encoding="utf-8") as f:
                check_proof(json.load(f), o.key)
        except (ValueError, KeyError) as e:
            print(f"not proved: {e}")
            return 2
        print("proved")
        return 0
    fault, v = verify(o.dir, o.key, o.expect)
    result = {"valid": not fault, **({"fault": fault.to_json()} if fault else v.to_json())}
    if o.json:
        print(json.dumps(result))
    elif fault:
        print(f"record {fault.seq} ({fault.segment}, byte {fault.offset}): {fault.text} [{fault.what}]")
    else:
        print("\n".join(f"{k:<17} {value}" for k, value in result.items()))
    return 2 if fault else 0


if __name__ == "__main__":
    sys.exit(main())
