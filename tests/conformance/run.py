#!/usr/bin/python3
"""Runs request/outcome cases against a built reeve through its command line.

    run.py --reeve build/tools/reeve/reeve [--only REGEX] [--backend NAME] [--runtime JSON] [--config JSON] [--again-offline] [-j N] FILE.json…

A case file holds a list of cases. A case:
  name      unique
  request   the JSON request ("$repeat": [text, n] and "$concat": […] build long strings), or
  raw       the exact bytes given as request (text; "$b64" for bytes)
  requests  several requests, run one after another in one state directory; `expect` is then a list
  policy    files of a bundle: {"policy.lua": "…", …}; default: the built-in bundle
  config    a dict merged over the case's reeve.yaml (written as JSON, which is YAML)
  servers   [{"host": "127.0.0.5", "port": 80, "body": "…", "kind": "http"|"banner"|"echo-udp"|"black-hole"}]
            or a registry made on the spot (registry.py beside this file): {"kind": "pypi"|"npm", "host", "port", "packages": […]}
  down_after  N: the servers stop after the Nth request
  unscaled  the times of this case stand in the policy or are the default: --scale leaves them
  needs     words such as "registry:python" "registry:javascript" "root" "runtime:host" "x86_64": skipped where absent
  args      extra command-line arguments
  expect    {"exit": N, "outcome": {…subset…}, "problem": {…subset…}, "wall_ms_max": N}
  differ    with `requests`: members of the outcome, such as "/stdout/text", that must differ between the runs
In a request's text %MARK% is a random file name that the runner leaves in places of the host, and %HOSTNAME% the
host's name; anywhere in a case %HOSTADDR% is the host's own address.
Matchers inside a subset: {"$contains": s} {"$lacks": s} {"$re": r} {"$len": n} {"$gte": n} {"$lte": n} {"$in": […]} {"$absent": true}
{"$any": {…}} (some element of a list matches) {"$none": {…}} (no element does) {"$size": n} (list length). Lists are matched element by element.

The command that is run:  reeve run --config CFG --json --request -   (request on standard input)
It prints one JSON object: an outcome (schema reeve.outcome/1), or for a rejected request a problem:
{"schema":"reeve.problem/1","title":…,"errors":[{"pointer":"/timeout_s","code":…,"message":…}]}.
Prints one line per failure and, last, 'N passed, N failed, N skipped'. Exit status 1 if any failed.
"""
import argparse, base64, concurrent.futures as cf, contextlib, json, os, platform, re, secrets, socket, subprocess, sys, tempfile, threading, time
import registry

def build(v):
    if isinstance(v, dict):
        if set(v) == {"$repeat"}:
            return build(v["$repeat"][0]) * v["$repeat"][1]
        if set(v) == {"$concat"}:
            return "".join(build(x) for x in v["$concat"])
        return {k: build(x) for k, x in v.items()}
    return [build(x) for x in v] if isinstance(v, list) else v

def diff(want, got, at=""):
    """The first difference as text, or None. got is MISSING where there is no such member."""
    if isinstance(want, dict) and len(want) > 1 and all(k.startswith("$") for k in want):
        return next((d for k, v in want.items() if (d := diff({k: v}, got, at))), None)
    if isinstance(want, dict) and len(want) == 1 and next(iter(want)).startswith("$"):
        op, arg = next(iter(want.items()))
        if op == "$absent":
            return None if (got is MISSING) == arg else f"{at}: {'present' if arg else 'absent'}"
        if got is MISSING:
            return f"{at}: absent"
        arg = build(arg)
        ok = {"$contains": lambda: arg in got, "$lacks": lambda: arg not in got,
              "$re": lambda: re.search(arg, got, re.S) is not None,
              "$len": lambda: len(got) == arg, "$size": lambda: len(got) == arg, "$gte": lambda: got >= arg,
              "$lte": lambda: got <= arg, "$in": lambda: got in arg,
              "$any": lambda: any(diff(arg, g) is None for g in got),
              "$none": lambda: all(diff(arg, g) is not None for g in got)}
        if op in ok:
            try:
                good = ok[op]()
            except TypeError:
                good = False
            return None if good else f"{at}: {op} {str(arg)[:80]!r} does not hold of {str(got)[:160]!r}"
    if isinstance(want, dict) and not ({"$repeat"} == set(want) or {"$concat"} == set(want)):
        if not isinstance(got, dict):
            return f"{at}: {str(got)[:80]!r} is no object"
        for k, w in want.items():
            d = diff(w, got.get(k, MISSING), f"{at}/{k}")
            if d:
                return d
        return None
    want = build(want)
    if isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for i, (w, g) in enumerate(zip(want, got)):
            d = diff(w, g, f"{at}/{i}")
            if d:
                return d
        return None
    return None if type(want) == type(got) and want == got else f"{at}: want {str(want)[:80]!r}, got {'nothing' if got is MISSING else repr(got)[:160]}"

class Missing:
    def __repr__(self): return "nothing"
MISSING = Missing()

def serve(spec):
    kind = spec.get("kind", "http")
    spec = build(spec)
    if kind in ("pypi", "npm"):
        return registry.serve(spec)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if kind == "echo-udp" else socket.SOCK_STREAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((spec["host"], spec["port"]))
    def udp():
        while True:
            try:
                d, a = s.recvfrom(65536)
                s.sendto(d, a)
            except (OSError, TypeError): return
    def one(c):
        with c:
            c.settimeout(20)
            try:
                if kind == "banner":
                    c.sendall(spec["body"].encode())
                    return
                if kind == "black-hole":
                    while c.recv(65536): pass
                    return
                buf = b""
                while True:
                    while b"\r\n\r\n" not in buf:
                        d = c.recv(65536)
                        if not d: return
                        buf += d
                    head, buf = buf.split(b"\r\n\r\n", 1)
                    n = re.search(rb"(?i)content-length: *(\d+)", head)
                    want = int(n.group(1)) if n else 0
                    while len(buf) < want:
                        d = c.recv(65536)
                        if not d: return
                        buf += d
                    buf = buf[want:]
                    b = spec.get("body", "ok").encode()
                    c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(b) + b)
            except OSError:
                pass
    def tcp():
        while True:
            try: c, _ = s.accept()
            except OSError: return
            threading.Thread(target=one, args=(c,), daemon=True).start()
    if kind != "echo-udp": s.listen(64)
    threading.Thread(target=udp if kind == "echo-udp" else tcp, daemon=True).start()
    return s

def shut(s):
    with contextlib.suppress(OSError, AttributeError):
        s.shutdown(socket.SHUT_RDWR)        # close() alone leaves the address taken while a thread is in accept()
    s.close()

def own_address():
    """The address that the host would use to the outside, or "": a connected UDP socket sends nothing."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("198.51.100.1", 9))
        return s.getsockname()[0]
    return ""

def marked(case, d):
    """Leaves a file of a random name where a run must not see it, if the case asks; gives (name, its paths)."""
    if "%MARK%" not in json.dumps(case):
        return "", []
    name, paths = "mark-" + secrets.token_hex(8), []
    for place in (d, os.path.expanduser("~"), "/var/lib", "/srv", "/var/tmp", "/opt", "/etc"):
        with contextlib.suppress(OSError):
            open(os.path.join(place, name), "w").write("host")
            paths.append(os.path.join(place, name))
    return name, paths

def scaled(v, f, key=""):
    """The case with its times multiplied, for a backend that is slow by nature."""
    if isinstance(v, dict):
        return {k: scaled(x, f, key if k.startswith("$") else k) for k, x in v.items()}
    if isinstance(v, list):
        return [scaled(x, f, key) for x in v]
    return int(v * f) if key in ("timeout_s", "limit_s", "wall_ms", "wall_ms_max") and type(v) in (int, float) and f != 1 else v

def run_case(case, opt):
    try:
        f = 1 if case.get("unscaled") or '"problem"' in json.dumps(case["expect"]) else opt.scale
        return run_case_in(scaled(case, f), opt)
    except Exception as e:
        return "fail", f"the runner: {e!r}"

def is_held(case, want):
    """Is it one of packages that are found, whose lock and layer are there from then on?"""
    reason = want.get("outcome", {}).get("reason", {})
    asks = any(r and r.get("packages") for r in case.get("requests", [case.get("request")]))
    return asks and (reason.get("code") in ("ok", "package_denied"))

def run_case_in(case, opt):
    if "%HOSTADDR%" in json.dumps(case):
        if not own_address():
            return "skip", "the host has no address of its own"
        case = json.loads(json.dumps(case).replace("%HOSTADDR%", own_address()))
    if opt.backend and "only_backends" in case and opt.backend not in case["only_backends"]:
        return "skip", f"not for backend {opt.backend}"
    for need in case.get("needs", []):
        if need not in opt.have:
            return "skip", f"needs {need}"
    socks = []
    with tempfile.TemporaryDirectory(prefix="case-") as d:
        name, marks = marked(case, d)
        try:
            for spec in case.get("servers", []):
                socks.append(serve(spec))
            tenant = {}
            if "policy" in case:
                for file, text in case["policy"].items():
                    p = os.path.join(d, "bundle", file)
                    os.makedirs(os.path.dirname(p), exist_ok=True)
                    open(p, "w").write(build(text))
                tenant["policy"] = os.path.join(d, "bundle")
            if opt.backend:
                tenant["backend"] = opt.backend
            cfg = {"state_dir": os.path.join(d, "state"), "tenants": {"local": tenant}}
            if opt.runtime:
                tenant["runtime"] = "other"
                cfg["runtimes"] = {"other": json.loads(opt.runtime)}
            for k, v in [*json.loads(opt.config or "{}").items(), *build(case.get("config", {})).items()]:
                cfg[k] = {**cfg.get(k, {}), **v} if isinstance(v, dict) else v
            path = os.path.join(d, "reeve.yaml")
            json.dump(cfg, open(path, "w"))
            reqs = case["requests"] if "requests" in case else [case.get("request")]
            wants = case["expect"] if isinstance(case["expect"], list) else [case["expect"]]
            n_requests = len(reqs)
            outs = []
            if opt.again_offline and os.geteuid() == 0 and is_held(case, wants[-1]):
                reqs, wants = reqs + reqs[-1:], wants + wants[-1:]
            for turn, (req, want) in enumerate(zip(reqs, wants)):
                offline = ["unshare", "--net"] if turn == n_requests else []
                if "raw" in case:
                    raw = case["raw"]
                    data = base64.b64decode(raw["$b64"]) if isinstance(raw, dict) and "$b64" in raw else build(raw).encode()
                else:
                    data = json.dumps(build(req), ensure_ascii=False).replace("%MARK%", name).replace("%HOSTNAME%", socket.gethostname()).encode()
                t = time.monotonic()
                try:
                    p = subprocess.run(offline + [opt.reeve, "run", "--config", path, "--json", "--request", "-"] + case.get("args", []),
                                       input=data, capture_output=True, timeout=opt.timeout)
                except subprocess.TimeoutExpired:
                    return "fail", f"no answer in {opt.timeout} s"
                ms = (time.monotonic() - t) * 1000
                try:
                    out = json.loads(p.stdout)
                except ValueError:
                    return "fail", f"printed no JSON: exit {p.returncode}, stdout {p.stdout[:120]!r}, stderr {p.stderr[-300:]!r}"
                outs.append(out)
                if case.get("down_after") == len(outs):
                    while socks: shut(socks.pop())
                if "exit" in want and p.returncode != want["exit"]:
                    return "fail", f"exit status {p.returncode}, want {want['exit']}; {json.dumps(out.get('reason', out.get('errors')))[:300]} {p.stderr[-200:]!r}"
                for part, schema in (("outcome", "reeve.outcome/1"), ("problem", "reeve.problem/1")):
                    if part in want:
                        x = diff({"schema": schema, **want[part]}, out)
                        if x:
                            return "fail", f"{x} | reason {json.dumps(out.get('reason'))[:200]} stderr {str((out.get('stderr') or {}).get('text'))[-200:]!r}"
                if "wall_ms_max" in want and ms > want["wall_ms_max"]:
                    return "fail", f"took {ms:.0f} ms, at most {want['wall_ms_max']} allowed"
            for at in case.get("differ", []):
                seen = []
                for out in outs:
                    for key in at.strip("/").split("/"):
                        out = out[key]
                    seen.append(json.dumps(out))
                if len(set(seen)) != len(seen):
                    return "fail", f"{at} is the same in two runs: {seen[0][:80]}"
            return "pass", ""
        finally:
            for s in socks:
                shut(s)
            for m in marks:
                os.unlink(m)

def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--reeve", required=True)
    a.add_argument("--only", default="")
    a.add_argument("--again-offline", action="store_true", help="packages that were found once more without a network (root)")
    a.add_argument("--backend", default="")
    a.add_argument("--runtime", default="", help="what runs use in place of the host's files, as under `runtimes`, in JSON")
    a.add_argument("--config", default="", help="members for the configuration of every case, in JSON")
    a.add_argument("--have", default="", help="comma-separated words that satisfy `needs`")
    a.add_argument("--timeout", type=float, default=120)
    a.add_argument("--scale", type=float, default=1, help="multiply the cases' times")
    a.add_argument("-j", type=int, default=1)
    a.add_argument("-v", action="store_true")
    a.add_argument("files", nargs="+")
    opt = a.parse_args()
    opt.have = set(filter(None, opt.have.split(","))) | ({"root"} if os.geteuid() == 0 else set()) | {platform.machine()}
    if not opt.runtime:
        opt.have.add("runtime:host")
    opt.timeout *= opt.scale
    opt.reeve = os.path.abspath(opt.reeve)
    cases = [c for f in opt.files for c in json.load(open(f)) if re.search(opt.only, c["name"])]
    names = [c["name"] for c in cases]
    assert len(names) == len(set(names)), "case names are not unique"
    count = {"pass": 0, "fail": 0, "skip": 0}
    alone = [c for c in cases if c.get("servers")]
    free = [c for c in cases if not c.get("servers")]
    def report(c, r):
        count[r[0]] += 1
        if r[0] != "pass" or opt.v:
            print(f"{r[0]}: {c['name']}{': ' + r[1] if r[1] else ''}", flush=True)
    with cf.ThreadPoolExecutor(opt.j) as ex:
        for c, r in zip(free, ex.map(lambda c: run_case(c, opt), free)):
            report(c, r)
    for c in alone:
        report(c, run_case(c, opt))
    print(f"{count['pass']} passed, {count['fail']} failed, {count['skip']} skipped")
    return 1 if count["fail"] else 0

if __name__ == "__main__":
    sys.exit(main())
