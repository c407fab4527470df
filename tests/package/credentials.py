#!/usr/bin/python3
"""Do uv, pip and npm read what reeve writes for the resolver, and does reeve send what they send?

    credentials.py REGISTRY-ENV        the program of registry_env.c; REEVE_UV: uv's path

Registries on loopback answer 401 to whoever lacks the right credentials. A tool that is not there is left out, with the
reason. Prints one line per failure and a last line; exit status 1 if any failed.
"""
import base64, http.client, json, os, socket, subprocess, sys, tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "..", "fetch"), os.path.join(HERE, "..", "conformance")]
import registry
from servers import Server

ENV = os.path.abspath(sys.argv[1])
PYTHON, NPM = "/usr/bin/python3", "/usr/bin/npm"
failures, notes = [], []

def check(name, ok, got=None):
    if not ok:
        failures.append(name)
        print(f"FAILED {name}: {got!r}"[:3000])

def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]

class Guarded:
    """A registry of registry.py behind a server that wants a header."""
    def __init__(self, kind, packages, header):
        self.port, self.header, self.seen = free_port(), header, []
        self.inner = registry.serve({"kind": kind, "host": "127.0.0.1", "port": self.port, "packages": packages})
        self.server = Server(self.answer)

    def answer(self, q, c):
        self.seen.append((q.path, q.headers.get("authorization")))
        if self.header and q.headers.get("authorization") != self.header:
            return c.reply(401, b"{}", "WWW-Authenticate: Basic realm=x", "Content-Type: application/json")
        inner = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        inner.request(q.method, q.path, headers={k: v for k, v in q.headers.items() if k in ("host", "accept")})
        r = inner.getresponse()
        body = r.read()
        if q.method == "HEAD":
            c.send(f"HTTP/1.1 {r.status} X\r\nContent-Length: {r.getheader('content-length')}\r\n\r\n")
            return True
        return c.reply(r.status, body, f"Content-Type: {r.getheader('content-type')}")

    def __enter__(self):
        self.server.__enter__()
        return self

    def __exit__(self, *_):
        self.server.__exit__()
        self.inner.shutdown(socket.SHUT_RDWR)
        self.inner.close()

def ask(language, root, env, *urls):
    p = subprocess.run([ENV, language, root, *urls], env=env, capture_output=True, check=True, timeout=20)
    return json.loads(p.stdout)

def basic(text):
    return "Basic " + base64.b64encode(text.encode()).decode()

def put(root, path, text):
    full = root + path
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "w", encoding="utf-8") as f:
        f.write(text)

def run(tool, words, env, cwd):
    p = subprocess.run(words, env={"PATH": "/usr/bin:/bin", "HOME": cwd, **env}, cwd=cwd, capture_output=True, check=False, timeout=60)
    check(f"{tool} succeeds", p.returncode == 0, (p.stdout[-800:], p.stderr[-1500:]))
    return p.stdout.decode()

def python(place):
    root = os.path.join(place, "root")
    # What has to be encoded in an address. (A letter beyond ASCII is sent as UTF-8 by uv and by reeve, as Latin-1 by pip.)
    user, password, encoded = "m@e", "s3:%/t", "m%40e:s3%3A%25%2Ft"
    wheels = [{"name": "reeve-a", "version": "1.0", "requires": ["reeve-b"], "files": {"reeve_a.py": ""}}], [{"name": "reeve-b", "version": "2.0", "files": {"reeve_b.py": ""}}]
    with Guarded("pypi", wheels[0], basic(f"{user}:{password}")) as main, Guarded("pypi", wheels[1], basic("you:other")) as extra:
        at = lambda s, who="": f"http://{who}127.0.0.1:{s.server.port}/simple/"
        put(root, "/home/.config/pip/pip.conf", f"[global]\nindex-url = {at(main, encoded + '@')}\nextra-index-url = {at(extra, 'you:other@')}\n")
        got = ask("python", root, {"HOME": "/home"}, at(main) + "reeve-a/", at(extra) + "reeve-b/", f"http://127.0.0.1:{main.server.port}/files/x.whl", "http://127.0.0.1:1/simple/")
        check("what reeve would send", got["authorization"] == ["Authorization: " + h for h in (main.header, extra.header, main.header)] + [""], got["authorization"])
        check("a run gets none", "s3" not in json.dumps(got["run"]) and "other" not in json.dumps(got["run"]), got["run"])
        env, uv = got["resolver"], os.environ.get("REEVE_UV", "")
        if os.access(uv, os.X_OK):
            with open(os.path.join(place, "r.in"), "w", encoding="ascii") as f:
                f.write("reeve-a\n")
            out = run("uv", [uv, "pip", "compile", "-q", "--cache-dir", os.path.join(place, "uv"), "--python", PYTHON, "--only-binary", ":all:", "r.in"], env, place)
            check("uv resolves", "reeve-a==1.0" in out and "reeve-b==2.0" in out, out)
        else:
            notes.append("without uv (REEVE_UV names none)")
        out = run("pip", [PYTHON, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed", "--no-cache-dir", "--target", os.path.join(place, "t"), "--report", "-", "reeve-a"], env, place)
        names = sorted(i["metadata"]["name"] for i in json.loads(out or '{"install":[]}')["install"])
        check("pip resolves", names == ["reeve-a", "reeve-b"], out[-500:])
        served = {h for s in (main, extra) for path, h in s.seen if path.startswith("/files/")}
        check("files too were asked for with them", served == {main.header, extra.header}, (main.seen, extra.seen))

def npm(place):
    if not os.access(NPM, os.X_OK):
        notes.append("without npm")
        return
    packages = ([{"name": "reeve-a", "version": "1.0.0", "manifest": {"dependencies": {"@corp/b": "1", "@open/c": "1"}}}], [{"name": "@corp/b", "version": "1.0.0"}], [{"name": "@open/c", "version": "1.0.0"}])
    for name, lines, header in (("token", "//{}/:_authToken=t0k=en#;x\n", "Bearer t0k=en#;x"), ("_auth", "//{}/:_auth=" + basic("me:pa")[6:] + "\n", basic("me:pa")),
                                ("password", "//{}/:username=me\n//{}/:_password=" + basic("s3")[6:] + "\n", basic("me:s3")), ("variable", "//{}/:_authToken=${{TOKEN}}\n", "Bearer from-outside")):
        root, work = os.path.join(place, name), os.path.join(place, name + "-work")
        with Guarded("npm", packages[0], header) as main, Guarded("npm", packages[1], "Bearer scoped") as corp, Guarded("npm", packages[2], None) as opened:
            at = [f"127.0.0.1:{s.server.port}" for s in (main, corp, opened)]
            put(root, "/home/.npmrc", f"registry=http://{at[0]}/\n" + lines.replace("{}", at[0]).replace("{{", "{").replace("}}", "}") +
                f"@corp:registry=http://{at[1]}/\n//{at[1]}/:_authToken=scoped\n@open:registry=http://{at[2]}/\n")
            got = ask("javascript", root, {"HOME": "/home", "TOKEN": "from-outside"}, f"http://{at[0]}/reeve-a", f"http://{at[1]}/@corp%2fb", f"http://{at[2]}/@open%2fc")
            check(f"what reeve would send, {name}", got["authorization"] == [f"Authorization: {header}", "Authorization: Bearer scoped", ""], got["authorization"])
            check(f"a run gets none, {name}", not any(w in json.dumps(got["run"]) for w in ("t0k", "scoped", "outside", header.split()[1])), got["run"])
            put(work, "/package.json", json.dumps({"private": True, "dependencies": {"reeve-a": "1"}}))
            put(work, "/user.npmrc", got["resolver"]["REEVE_NPMRC"])
            put(work, "/global.npmrc", "")
            run(f"npm, {name}", [NPM, "install", "--package-lock-only", "--json", "--loglevel=silent"],
                {"npm_config_userconfig": work + "/user.npmrc", "npm_config_globalconfig": work + "/global.npmrc", "npm_config_cache": work + "/cache"}, work)
            with open(work + "/package-lock.json", encoding="utf-8") as f:
                lock = json.load(f)
            check(f"npm's lock, {name}", sorted(lock["packages"]) == ["", "node_modules/@corp/b", "node_modules/@open/c", "node_modules/reeve-a"] and "resolved" not in json.dumps(lock), lock)
            check(f"none for the open one, {name}", opened.seen and all(h is None for _, h in opened.seen), opened.seen)

def main():
    with tempfile.TemporaryDirectory() as place:
        python(place)
        npm(place)
    print("credentials: " + ("; ".join(["as they should be"] + notes) if not failures else f"{len(failures)} failed"))
    return 1 if failures else 0

if __name__ == "__main__":
    sys.exit(main())
