"""Writes audit logs from docs/audit.md, without reeve: for the tests of what verifies them.

A log is a list of lines; whoever wants a damaged one changes the list, or the files. Ed25519 is openssl's.
"""
import base64
import hashlib
import json
import os
import subprocess
import tempfile

import verifier

LOG_ID = "00112233445566778899aabbccddeeff"
BEGAN_US = 1750000000000000


class Signer:
    """A key pair; signs by openssl."""

    def __init__(self, place, name, log_id=LOG_ID):
        self.pem = os.path.join(place, name + ".pem")
        subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", self.pem], check=True, capture_output=True)
        der = subprocess.run(["openssl", "pkey", "-in", self.pem, "-pubout", "-outform", "DER"], check=True, capture_output=True).stdout
        self.log_id, self.public = log_id, der[-32:]
        self.key_id = hashlib.sha256(f"reeve/{log_id}\n".encode() + b"\1" + self.public).digest()[:4]

    def text(self):
        """As a verifier key."""
        return f"reeve/{self.log_id}+{self.key_id.hex()}+{base64.b64encode(bytes([1]) + self.public).decode()}"

    def key(self):
        return verifier.Key(self.text())

    def sign(self, body):
        with tempfile.NamedTemporaryFile() as f:
            f.write(body)
            f.flush()
            return subprocess.run(["openssl", "pkeyutl", "-sign", "-inkey", self.pem, "-rawin", "-in", f.name],
                                  check=True, capture_output=True).stdout


def make_note(size, root, signers, next_key=None, log_id=LOG_ID):
    body = f"reeve/{log_id}\n{size}\n{base64.b64encode(root).decode()}\n" + (f"next-key {next_key.text()}\n" if next_key else "")
    lines = [f"\u2014 reeve/{log_id} {base64.b64encode(s.key_id + s.sign(body.encode())).decode()}\n" for s in signers]
    return body + "\n" + "".join(lines)


class Log:
    def __init__(self, log_id=LOG_ID):
        self.log_id, self.lines = log_id, []

    def append(self, kind, **body):
        prev = hashlib.sha256(self.lines[-1]).hexdigest() if self.lines else "0" * 64
        record = {"seq": len(self.lines), "prev": prev, "kind": kind, "log_id": self.log_id, "time_us": BEGAN_US + len(self.lines) * 1000,
                  "instance": "feedfacefeedfacefeedfacefeedface", "build": "0.1.0", **body}
        self.lines.append(verifier.canonical(record).encode())

    def checkpoint(self, *signers, size=None, next_key=None):
        size = len(self.lines) if size is None else size
        root = verifier.tree_root([verifier.leaf_hash(line) for line in self.lines[:size]])
        self.append("checkpoint", size=size, root=root.hex(), note=make_note(size, root, signers, next_key, self.log_id))

    def root(self):
        return verifier.tree_root([verifier.leaf_hash(line) for line in self.lines])


def chain(lines, begin):
    """The lines with `prev` made right from `begin` on, everything else as it is."""
    result = list(lines[:begin])
    for line in lines[begin:]:
        record = json.loads(line)
        record["prev"] = hashlib.sha256(result[-1]).hexdigest() if result else "0" * 64
        result.append(verifier.canonical(record).encode())
    return result


def write(place, lines, cuts=(), key=None, log_id=LOG_ID):
    """A state directory whose segments begin at record 0 and at those of `cuts`."""
    audit = os.path.join(place, "audit")
    os.makedirs(audit)
    os.makedirs(os.path.join(place, "keys"))
    with open(os.path.join(audit, "id"), "w", encoding="ascii") as f:
        f.write(log_id + "\n")
    if key:
        with open(os.path.join(place, "keys/ed25519.pub"), "w", encoding="ascii") as f:
            f.write(key.text() + "\n")
    begins = [0, *(c for c in cuts if c < len(lines))]
    for begin, end in zip(begins, begins[1:] + [len(lines)]):
        put(place, begin, lines[begin:end])


def segment(place, begin):
    return os.path.join(place, "audit", "%020d.jsonl" % begin)


def put(place, begin, lines):
    with open(segment(place, begin), "wb") as f:
        f.write(b"".join(line + b"\n" for line in lines))


def all_kinds(old, new):
    """A log with records of all kinds: checkpoints of all records before them and of fewer, and a rotation."""
    log = Log()
    facts = {"language": "python", "packages": [{"name": "numpy", "pinned": True, "extras": []}], "note \U0001f600": "\u00e9\u007f\u2028", "\ue000": -5}
    verdict = {"effect": "deny", "sections": {"network": {"rule": "default"}}, "reason": {"code": "network_denied", "line": 7}}
    ids = {"run_id": "r" * 32, "tenant": "local", "decision_id": "d" * 32}
    log.append("config", digest="sha256:" + "1" * 64, file="/etc/reeve/reeve.yaml")
    log.append("bundle_activated", digest="sha256:" + "2" * 64, tenant="local", name="strict", version="1")
    for i in range(3):
        log.append("decision", stage="requested", facts=facts, bundle="sha256:" + "2" * 64, engine={"limits": {"bytes": 8388608}}, verdict=verdict,
                   context_sha256="3" * 64, verdict_sha256="4" * 64, source={"bytes": 9 + i, "sha256": "5" * 64}, **ids)
        log.append("outcome", status="completed", code="ok", started="yes", outcome_sha256="6" * 64, stdout_bytes=2**53 - 1, stderr_bytes=0, **ids)
    log.checkpoint(old)                                                                                       # 8
    log.append("rejected", status=422, errors=[{"pointer": "/source", "code": "length"}], request={"redacted": "withheld"})
    log.append("gap", cause="incomplete_line", cut_bytes=17)
    log.append("idempotent_replay", key={"bytes": 3, "fingerprint": "7" * 64, "hmac_sha256": "8" * 64}, outcome_sha256="6" * 64, **ids)
    log.append("bundle_rejected", tenant="local", message="policy.lua:3: \"x\"\\\b\f\n\r\t\u0001\u001f")
    log.checkpoint(old, size=11)                                                                              # 13
    log.append("outcome", status="failed", code="timeout", started="yes", outcome_sha256="9" * 64, stdout_bytes=0, stderr_bytes=0, **ids)
    log.checkpoint(old, new, next_key=new)                                                                    # 15
    for i in range(4):
        log.append("decision", stage="requested", facts={"i": i}, bundle="", verdict=verdict, **ids)
    log.append("config", digest="sha256:" + "a" * 64)
    log.append("a_kind_of_later", empty={}, none=None, yes=True, no=False, nested=[[[]], {"a": [{}]}])
    log.checkpoint(new)                                                                                       # 22
    log.append("outcome", status="failed", code="signal", started="yes", outcome_sha256="b" * 64, stdout_bytes=1, stderr_bytes=2, **ids)
    log.checkpoint(new)                                                                                       # 24
    return log
