#!/usr/bin/python3
"""Damages audit logs in every way, and asks reeve and an independent verifier what they think of each.

    tamper.py [--quick | --every] --reeve REEVE [--flip FLIP]

The logs are written by writer.py and, where runs work here, by `reeve run`. FLIP (tests/audit/flip.c) changes every third
byte of a log (--every: every one), each by itself. Both verifiers have to agree on every log, and the first bad record has
to be the one that is named. Prints a line for each kind of damage. Exit status 1 if anything was not as it should be.
"""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import verifier
import writer

CUTS = (6, 14)    # records that begin a segment


class Tamper:
    def __init__(self, options, place):
        self.options, self.place, self.n_made = options, place, 0
        self.old, self.new, self.foreign = (writer.Signer(place, name) for name in ("old", "new", "foreign"))
        self.log = writer.all_kinds(self.old, self.new)
        self.n, self.root = len(self.log.lines), self.log.root()
        self.checkpoints = [i for i, line in enumerate(self.log.lines) if json.loads(line)["kind"] == "checkpoint"]
        self.n_failed = 0
        self.tried = {}

    # -- One log --

    def directory(self):
        self.n_made += 1
        return os.path.join(self.place, f"log-{self.n_made}")

    def write(self, lines=None, cuts=CUTS):
        place = self.directory()
        writer.write(place, self.log.lines if lines is None else lines, cuts, self.new)
        return place

    def whole(self):
        """What somebody noted when the log was whole."""
        return [f"{self.n}:{self.root.hex()}"]

    def reeve(self, place, keys, expects):
        words = [self.options.reeve, "audit", "verify", "--json"]
        words += [w for k in keys for w in ("--key", k.text())] + [w for e in expects for w in ("--expect", e)]
        p = subprocess.run(words + [place], capture_output=True, text=True, check=False)
        if p.returncode not in (0, 2) or not p.stdout:
            return {"valid": None, "fault": {"what": f"exit status {p.returncode}", "message": p.stderr}}
        o = json.loads(p.stdout)
        if o["valid"] != (p.returncode == 0):
            return {"valid": None, "fault": {"what": f"exit status {p.returncode}", "message": p.stdout}}
        if not o["valid"]:
            return {"valid": False, "fault": o["faults"][0]}
        return {"valid": True, "log_id": o["log_id"], "records": o["records"], "root": o["root"], "checkpoints": o["checkpoints"]["count"],
                "unsealed": o["unsealed"]["records"], "incomplete_bytes": o["unsealed"]["incomplete_bytes"]}

    @staticmethod
    def independent(place, keys, expects):
        fault, v = verifier.verify(place, [k.key() for k in keys], [verifier.read_expect(e) for e in expects])
        if fault:
            return {"valid": False, "fault": fault.to_json()}
        return {"valid": True, **{k: value for k, value in v.to_json().items() if k != "sealed"}}

    def check(self, kind, name, place, wanted, keys=None, expects=()):
        """`wanted`: True for a good log, (what, seq) for a fault, None for whatever both agree on."""
        keys = [self.old] if keys is None else keys
        a, b = self.reeve(place, keys, expects), self.independent(place, keys, expects)
        told = [{k: v for k, v in r.get("fault", r).items() if k != "message"} for r in (a, b)]
        self.tried[kind] = self.tried.get(kind, 0) + 1
        found = True if a["valid"] else (a["fault"]["what"], a["fault"].get("seq"))
        if told[0] != told[1] or (wanted is not None and found != wanted):
            self.n_failed += 1
            print(f"FAILED {kind}, {name}: wanted {wanted}\n  reeve    {a}\n  verifier {b}")
        shutil.rmtree(place)

    # -- Whole logs --

    def whole_logs(self):
        for cuts in ((), CUTS, (1,), (self.n - 1,)):
            self.check("whole", f"cut at {cuts}", self.write(cuts=cuts), True)
        check = lambda name, wanted, **more: self.check("keys", name, self.write(), wanted, **more)
        check("the newer key alone", True, keys=[self.new])
        check("both in order", True, keys=[self.old, self.new])
        check("found beside the log", True, keys=[])
        check("another one", ("key", self.checkpoints[0]), keys=[self.foreign])
        check("a rotation to none of those given", ("key", 15), keys=[self.old, self.foreign])
        check("one of another log", ("key", 0), keys=[writer.Signer(self.place, "other", "f" * 32)])
        check("in another order", ("key", self.n), keys=[self.new, self.old])
        check("one more at the end", ("key", self.n), keys=[self.old, self.new, self.foreign])
        check("one more between them", ("key", 15), keys=[self.old, self.foreign, self.new])
        self.lost_keys()
        place = self.write()
        os.unlink(os.path.join(place, "keys/ed25519.pub"))
        self.check("keys", "none at all", place, ("key", self.checkpoints[0]), keys=[])
        place = self.write(self.log.lines[:5])
        self.check("keys", "nothing sealed, a key given", place, ("unsealed", 0))
        self.check("keys", "nothing sealed, none given", self.write(self.log.lines[:5]), True, keys=[])

    def lost_keys(self):
        """A key is lost, and another one signs on."""
        log = writer.Log()
        for signer in (self.old, self.old, self.new, self.new, self.foreign):
            log.append("outcome", status="completed", code="ok", started="yes")
            log.checkpoint(signer)
        for name, keys, wanted in (("all of them", [self.old, self.new, self.foreign], True), ("the first", [self.old], ("key", 5)), ("the last", [self.foreign], ("key", 1)),
                                   ("two of them", [self.old, self.new], ("key", 9)), ("without the middle one", [self.old, self.foreign], ("key", 5)),
                                   ("the wrong order", [self.old, self.foreign, self.new], ("key", 5))):
            self.check("lost keys", name, self.write(log.lines, ()), wanted, keys=keys)
        log.append("outcome", status="completed", code="ok", started="yes")
        log.checkpoint(self.new)
        self.check("lost keys", "one that comes back", self.write(log.lines, ()), ("key", 11), keys=[self.old, self.new, self.foreign])
        self.check("lost keys", "whoever has the old one goes on", self.write(self.log.lines[:9], ()), ("key", 9), keys=[self.old, self.new])

    def expectations(self):
        roots = [writer.verifier.tree_root([verifier.leaf_hash(line) for line in self.log.lines[:i]]) for i in range(self.n + 1)]
        for i in range(self.n + 1):
            self.check("expected states", f"{i} records", self.write(), True, expects=[f"{i}:{roots[i].hex()}"])
            self.check("expected states", f"another root of {i}", self.write(), ("expect", max(i - 1, 0)), expects=[f"{i}:{roots[i - 1].hex()}"])
        note = os.path.join(self.place, "note")
        for signer, size, wanted in ((self.old, 7, True), (self.new, self.n, True), (self.foreign, 7, ("key", 0)), (self.old, 99, ("expect", self.n))):
            with open(note, "w", encoding="utf-8") as f:
                f.write(writer.make_note(size, roots[min(size, self.n)], [signer]))
            self.check("expected states", f"a note of {size}", self.write(), wanted, expects=[note])

    # -- Lines moved about --

    def write_files(self, files):
        """`files`: {first number: lines}."""
        place = self.write(())
        os.unlink(writer.segment(place, 0))
        for begin, lines in files.items():
            writer.put(place, begin, lines)
        return place

    def files(self):
        begins = [0, *CUTS]
        return {b: list(self.log.lines[b:e]) for b, e in zip(begins, begins[1:] + [self.n])}

    def moved(self):
        where = [(b, i) for b, lines in self.files().items() for i in range(len(lines))]
        for k, (b, i) in enumerate(where):
            files = self.files()
            del files[b][i]
            ends_segment = k + 1 in CUTS
            wanted = ("expect", k) if k == self.n - 1 else ("segment" if ends_segment else "seq", k)
            self.check("deleted", k, self.write_files(files), wanted, expects=self.whole())
            files = self.files()
            files[b].insert(i, files[b][i])
            self.check("duplicated", k, self.write_files(files), ("seq", k + 1), expects=self.whole())
            if k + 1 < self.n:
                files = self.files()
                c, j = where[k + 1]
                files[b][i], files[c][j] = files[c][j], files[b][i]
                self.check("swapped", k, self.write_files(files), ("seq", k))

    def truncated(self):
        for k in range(self.n):
            place = self.write(self.log.lines[:k])
            self.check("cut off", f"behind {k}", place, ("expect" if k else "empty", k), expects=self.whole())
            self.check("cut off", f"behind {k}, nothing expected", self.write(self.log.lines[:k]), None, keys=[])
            place = self.write(self.log.lines[:k + 1])
            begin = max(b for b in (0, *CUTS) if b <= k)
            os.truncate(writer.segment(place, begin), os.path.getsize(writer.segment(place, begin)) - 1 - k)
            self.check("cut off", f"inside {k}", place, ("expect" if k else "empty", k), expects=self.whole())

    def segments(self):
        for begin in (0, *CUTS):
            place = self.write()
            os.unlink(writer.segment(place, begin))
            self.check("segments", f"without {begin}", place, ("expect" if begin == CUTS[-1] else "segment", begin), expects=self.whole())
        for name in ("x.jsonl", "0.jsonl", "00000000000000000003.jsonl.jsonl", "99999999999999999999.jsonl"):
            place = self.write()
            writer.put(place, 3, [])
            os.rename(writer.segment(place, 3), os.path.join(place, "audit", name))
            self.check("segments", name, place, ("segment", self.n))
        place = self.write()
        writer.put(place, 3, self.log.lines[3:6])
        self.check("segments", "one too many", place, ("segment", 3))
        place = self.write()
        os.rename(writer.segment(place, CUTS[0]), writer.segment(place, CUTS[0] + 1))
        self.check("segments", "another number", place, ("segment", CUTS[0]))
        place = self.write()
        os.rename(writer.segment(place, 0), os.path.join(place, "elsewhere"))
        os.symlink("../elsewhere", writer.segment(place, 0))
        self.check("segments", "a link", place, ("segment", 0))
        for begin, wanted in ((0, ("form", CUTS[0])), (CUTS[-1], True)):
            place = self.write()
            with open(writer.segment(place, begin), "ab") as f:
                f.write(b'{"build":"0.1.0","inst')
            self.check("segments", f"an incomplete line in {begin}", place, wanted)
        place = self.write()
        writer.put(place, self.n, [])
        self.check("segments", "an empty newest one", place, True)
        place = self.write()
        with open(os.path.join(place, "audit/id"), "w", encoding="ascii") as f:
            f.write("f" * 32 + "\n")
        self.check("segments", "the id of another log", place, None)

    # -- Those who recompute the chain --

    def rewritten(self):
        """A record is changed, and every `prev` behind it made right: only signatures can tell."""
        for k in range(self.n):
            record = json.loads(self.log.lines[k])
            record["time_us"] += 1
            lines = writer.chain(self.log.lines[:k] + [verifier.canonical(record).encode()] + self.log.lines[k + 1:], k)
            seal = next((c for c in self.checkpoints if json.loads(self.log.lines[c])["size"] > k), None)
            self.check("rewritten", k, self.write(lines), True if seal is None else ("root", seal))
            self.check("rewritten", f"{k}, state expected", self.write(lines), ("expect", self.n - 1) if seal is None else ("root", seal), expects=self.whole())

    def forged(self):
        for c in self.checkpoints:
            record = json.loads(self.log.lines[c])
            root = bytes.fromhex(record["root"])
            for name, signers, next_key in (("foreign", [self.foreign], None), ("foreign, with a next key", [self.foreign], self.foreign),
                                            ("the key that is not in force", [self.new if c <= 15 else self.old], None)):
                record["note"] = writer.make_note(record["size"], root, signers, next_key)
                lines = writer.chain(self.log.lines[:c] + [verifier.canonical(record).encode()] + self.log.lines[c + 1:], c)
                self.check("re-signed", f"{c}, {name}", self.write(lines), ("key", c))
        record = json.loads(self.log.lines[15])
        record["note"] = writer.make_note(15, bytes.fromhex(record["root"]), [self.old], self.new)
        lines = writer.chain(self.log.lines[:15] + [verifier.canonical(record).encode()] + self.log.lines[16:], 15)
        self.check("re-signed", "15, not by the next key", self.write(lines), ("key", 15))
        for k in range(9, self.n):
            log = writer.Log()
            log.lines = self.log.lines[:k]
            log.append("outcome", status="completed", code="ok", started="yes")
            log.checkpoint(self.foreign)
            self.check("forged tail", k, self.write(log.lines), ("key", k + 1))
        log = writer.all_kinds(self.foreign, self.foreign)
        self.check("forged", "all of it", self.write(log.lines), ("key", self.checkpoints[0]))
        note = json.loads(self.log.lines[8])["note"]
        for name, change in (("covers itself", {"size": 9}), ("another root", {"root": "0" * 64}),
                             ("a root and more", {"root": json.loads(self.log.lines[8])["root"] + "\0x"}), ("no note", {"note": "x"}), ("no size", {"size": "8"}),
                             ("a wrong signature", {"note": note[:-6] + ("A" if note[-6] != "A" else "B") + note[-5:]}), ("no line end", {"note": note[:-1]}),
                             ("another log's", {"note": note.replace(writer.LOG_ID, "f" * 32)})):
            record = {**json.loads(self.log.lines[8]), **change}
            lines = writer.chain(self.log.lines[:8] + [verifier.canonical(record).encode()] + self.log.lines[9:], 8)
            self.check("forged", name, self.write(lines), ("key" if name == "a wrong signature" else "checkpoint", 8))
        log = writer.Log()
        log.lines = self.log.lines[:13]
        log.checkpoint(self.old, size=3)
        self.check("forged", "a checkpoint that goes back", self.write(log.lines), None)
        log.lines = self.log.lines[:14]
        log.checkpoint(self.old, size=3)
        self.check("forged", "a checkpoint that goes back", self.write(log.lines), ("checkpoint", 14))

    def no_records(self):
        """Lines that say the same to a lax reader; the chain is right."""
        line = self.log.lines[3]
        for name, other in (("white space", line.replace(b'":"', b'": "', 1)), ("an escape", line.replace(b"build", b"b\\u0075ild")), ("order", b'{"seq":3,' + line[1:].replace(b'"seq":3,', b"")),
                            ("twice", line.replace(b'"code":"ok"', b'"code":"ok","code":"ok"')), ("a fraction", line.replace(b'"stderr_bytes":0', b'"stderr_bytes":0.0')),
                            ("an exponent", line.replace(b'"stderr_bytes":0', b'"stderr_bytes":0e1')), ("minus zero", line.replace(b'"stderr_bytes":0', b'"stderr_bytes":-0')),
                            ("2^53", line.replace(b"9007199254740991", b"9007199254740992")), ("bytes behind", line + b" "), ("a byte order mark", b"\xef\xbb\xbf" + line),
                            ("a surrogate", line.replace(b'"ok"', b'"\xed\xa0\x80"')), ("an escaped surrogate", line.replace(b'"ok"', b'"\\ud800"')), ("overlong", line.replace(b'"ok"', b'"\xc0\x80"')),
                            ("an escape of upper case", line.replace(b'"ok"', b'"\\u001F"')), ("a slash escaped", line.replace(b'"ok"', b'"\\/"')), ("a long escape", line.replace(b'"ok"', b'"\\u000a"')),
                            ("a control character", line.replace(b'"ok"', b'"\x1f"')), ("no build", line.replace(b'"build":"0.1.0",', b"")), ("a number for a text", line.replace(b'"0.1.0"', b"1")),
                            ("deep", line.replace(b'"ok"', b"[" * 64 + b"]" * 64)), ("an array", b"[" + line + b"]"), ("empty", b""), ("too long", line.replace(b'"ok"', b'"' + b"x" * (2 << 20) + b'"'))):
            if other == line:
                self.n_failed += 1
                print(f"FAILED no record, {name}: nothing was changed")
            lines = self.log.lines[:3] + [other] + self.log.lines[4:]
            self.check("no record", name, self.write(lines), ("form", 3))
        for name, other in (("as deep as can be", line.replace(b'"ok"', b"[" * 63 + b"]" * 63)), ("a character beyond U+FFFF before one below", line.replace(b'"kind"', b'"k\xf0\x90\x80\x80":1,"k\xee\x80\x80":2,"kind"'))):
            lines = writer.chain(self.log.lines[:3], 0)
            lines.append(other)
            self.check("no record", name, self.write(lines), ("form", 3) if "beyond" in name else True, keys=[])
        other = line.replace(b'"log_id"', b'"k\xf0\x90\x80\x80":1,"k\xee\x80\x80":2,"log_id"')
        self.check("no record", "order of UTF-16", self.write(self.log.lines[:3] + [other]), True, keys=[])
        other = line.replace(b'"log_id"', b'"k\xee\x80\x80":2,"k\xf0\x90\x80\x80":1,"log_id"')
        self.check("no record", "order of UTF-8", self.write(self.log.lines[:3] + [other]), ("form", 3), keys=[])

    # -- Proofs --

    def check_proof(self, name, proof, wanted, keys):
        """Do both take the proof, or refuse it, as wanted?"""
        path = os.path.join(self.place, "proof.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(proof, f)
        status = subprocess.run([self.options.reeve, "audit", "check-proof", *(w for k in keys for w in ("--key", k.text())), path], capture_output=True, check=False).returncode
        try:
            verifier.check_proof(proof, [k.key() for k in keys])
            other = True
        except (ValueError, KeyError):
            other = False
        self.tried["proofs"] = self.tried.get("proofs", 0) + 1
        if (status == 0) != wanted or status not in (0, 2) or other != wanted:
            self.n_failed += 1
            print(f"FAILED proof, {name}: wanted {wanted}, reeve {status}, verifier {other}: {json.dumps(proof)[:300]}")

    def prove(self, place, *words):
        p = subprocess.run([self.options.reeve, "audit", "prove", *map(str, words), place], capture_output=True, text=True, check=False)
        return json.loads(p.stdout) if p.returncode == 0 else p.returncode

    def proofs(self):
        place, both = self.write(), [self.old, self.new]
        sealed = self.n - 1
        for k in range(sealed):
            self.check_proof(f"of {k}", self.prove(place, k), True, both)
            if k:
                self.check_proof(f"from {k}", self.prove(place, "--from", k), True, both)
            for size in range(k + 1, sealed + 1, 3):
                self.check_proof(f"of {k} in {size}", self.prove(place, k, "--size", size), True, both)
                if k:
                    self.check_proof(f"from {k} to {size}", self.prove(place, "--from", k, "--size", size), True, both)
        self.check_proof("the last record, which nothing seals", self.prove(place, sealed), False, both)
        proof, consistency = self.prove(place, 9, "--size", 12), self.prove(place, "--from", 9, "--size", 12)
        self.check_proof("another key", proof, False, [self.foreign])
        self.check_proof("no key", proof, False, [])
        lines = {"record": verifier.canonical({**json.loads(proof["record"]), "time_us": 1}), "checkpoint": writer.make_note(12, bytes.fromhex(proof["root"]), [self.foreign]),
                 "root": "0" * 64, "path": proof["path"][:-1], "seq": 8, "leaf": "0" * 64, "size": 13, "log_id": "f" * 32, "consistency": consistency["path"], "schema": "x"}
        for name, value in lines.items():
            self.check_proof(f"another {name}", {**proof, name: value}, False, both)
        for name, value in {"from": 8, "from_root": "0" * 64, "root": "0" * 64, "path": consistency["path"][::-1], "size": 13, "checkpoint": None}.items():
            self.check_proof(f"another {name}", {**consistency, name: value}, False, both)
        for words in (["99"], ["x"], [], ["--from", "0"], ["5", "--size", "5"], ["--from", "99"], ["--size", "99", "1"]):
            if self.prove(place, *words) != 2:
                self.n_failed += 1
                print(f"FAILED prove {words}: not refused")

    # -- Bytes --

    def bytes(self, n):
        """A sample of what flip does; the record is named by both."""
        rng = random.Random(5)
        for _ in range(n):
            place = self.write()
            begin = rng.choice([0, *CUTS])
            with open(writer.segment(place, begin), "r+b") as f:
                text = f.read()
                at = rng.randrange(len(text))
                f.seek(at)
                f.write(bytes([text[at] ^ rng.randrange(1, 256)]))
            k = begin + text[:at].count(b"\n")
            fault, _ = verifier.verify(place, [self.old.key()], [verifier.read_expect(self.whole()[0])])
            self.check("bytes", f"{at} of {begin}", place, (fault.what if fault else "?", k), expects=self.whole())

    def flip(self, place, keys, every, n):
        p = subprocess.run([self.options.flip, "--every", str(every), "--random", str(n), "--seed", str(os.getpid()), os.path.join(place, "audit")]
                           + [k if isinstance(k, str) else k.text() for k in keys], capture_output=True, text=True, check=False)
        print(p.stdout + p.stderr, end="", flush=True)
        self.n_failed += p.returncode != 0

    # -- reeve's own log --

    def own(self, is_quick, is_every):
        state, config, program = (os.path.join(self.place, n) for n in ("state", "reeve.yaml", "hello.py"))
        with open(config, "w", encoding="ascii") as f:
            f.write(f"state_dir: {state}\n")
        with open(program, "w", encoding="ascii") as f:
            f.write("print('hello')\n")
        os.chmod(self.place, 0o755)
        if subprocess.run([self.options.reeve, "doctor", "--config", config], capture_output=True, check=False).returncode:
            print("reeve's own log: left out, as nothing can be run here")
            return
        for words in ([], ["--timeout", "999"], ["--memory", "128"], ["--network", "any"], ["--stdin", program]) * (1 if is_quick else 4):
            subprocess.run([self.options.reeve, "run", "--config", config, *words, program], capture_output=True, check=False)
        copy = self.directory()
        shutil.copytree(state, copy)
        with open(writer.segment(copy, 0), "rb") as f:
            lines = f.read().splitlines()
        key = os.path.join(copy, "keys/ed25519.pub")
        if not os.path.exists(key):
            print(f"reeve's own log: {len(lines)} records, not sealed: this reeve signs nothing")
            self.check("reeve's own log", "whole", copy, True, keys=[])
            return
        with open(key, encoding="ascii") as f:
            key = f.read().strip()
        if self.options.flip:
            self.flip(copy, [key], 11 if is_quick else 2 if is_every else 8, 0)
        self.check("reeve's own log", "whole", copy, True, keys=[])


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--quick", action="store_true")
    a.add_argument("--every", action="store_true", help="change every byte of a log, not one in three")
    a.add_argument("--reeve", required=True, type=os.path.abspath)
    a.add_argument("--flip", type=os.path.abspath)
    options = a.parse_args()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as place:
        t = Tamper(options, place)
        for f in (t.whole_logs, t.expectations, t.moved, t.truncated, t.segments, t.rewritten, t.forged, t.no_records, t.proofs):
            f()
        t.bytes(30 if options.quick else 400)
        if options.flip:
            whole = t.write()
            t.flip(whole, [t.old], 7 if options.quick else 1 if options.every else 3, 300 if options.quick else 10000)
        t.own(options.quick, options.every)
        print("; ".join(f"{kind} {n}" for kind, n in t.tried.items()))
        print(f"{sum(t.tried.values())} logs and proofs judged by both verifiers, {t.n_failed} failures")
    return 1 if t.n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
