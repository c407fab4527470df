"""What the tests of reeve-unpack share: wheels and tarballs made on the spot, and the helper run over them."""
import base64, hashlib, io, json, os, shutil, stat, subprocess, tarfile, tempfile, zipfile

NOBODY = 65534
failures = []
counted = [0]

def check(name, ok, got=None):
    counted[0] += 1
    if not ok:
        failures.append(name)
        print(f"FAILED {name}: {got!r}"[:2000])

def finish(what):
    print(f"{what}: {counted[0]} checks, {len(failures)} failures")
    return 1 if failures else 0

# ---- Wheels ----

def digest(data, algorithm="sha256"):
    return algorithm + "=" + base64.urlsafe_b64encode(hashlib.new(algorithm, data).digest()).rstrip(b"=").decode()

def to_bytes(text):
    return text if isinstance(text, bytes) else text.encode()

class Wheel:
    """One that is good, unless it is told otherwise. `files` is a list of (name, content, mode)."""
    def __init__(self, name="demo", version="1.0", files=None, **also):
        self.name, self.version, self.also = name, version, also
        self.stem = also.get("stem", f"{name.replace('-', '_')}-{version}")
        self.info = self.stem + ".dist-info"
        self.files = [(f[0], to_bytes(f[1]), f[2] if len(f) > 2 else 0o644) for f in (files if files is not None else [("demo.py", "x = 1\n")])]
        self.file_name = also.get("file_name", self.stem + "-py3-none-any.whl")

    def metadata(self):
        if "metadata" in self.also:
            return self.also["metadata"]
        return f"Metadata-Version: 2.1\nName: {self.name}\nVersion: {self.version}\n" + self.also.get("headers", "")

    def members(self):
        out = list(self.files)
        wheel = self.also.get("wheel", "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        for name, text in (("METADATA", self.metadata()), ("WHEEL", wheel), ("entry_points.txt", self.also.get("entry_points"))):
            if text is not None:
                out.append((f"{self.info}/{name}", to_bytes(text), 0o644))
        rows = [(n, digest(d, self.also.get("algorithm", "sha256")), len(d)) for n, d, _ in out if not n.endswith("/")]
        rows = self.also.get("rows", lambda r: r)(rows)
        record = "".join(f"{n},{h},{s}\n" for n, h, s in rows) + f"{self.info}/RECORD,,\n"
        record = self.also.get("record", record)
        if record is not None:
            out.append((f"{self.info}/RECORD", to_bytes(record), 0o644))
        return out + [(n, to_bytes(d), m) for n, d, m in self.also.get("unlisted", [])]

    def data(self):
        b = io.BytesIO()
        with zipfile.ZipFile(b, "w", self.also.get("compression", zipfile.ZIP_DEFLATED)) as z:
            for name, data, mode in self.members():
                i = zipfile.ZipInfo(name)
                i.external_attr = (mode if mode > 0o7777 else stat.S_IFREG | mode if not name.endswith("/") else stat.S_IFDIR | 0o755) << 16
                i.compress_type = self.also.get("compression", zipfile.ZIP_DEFLATED)
                i.filename = name        # as it is: ZipInfo's constructor cuts at a NUL
                z.writestr(i, data)
        return self.also.get("then", lambda d: d)(b.getvalue())

    def artifact(self):
        return {"name": self.also.get("lock_name", self.name), "version": self.also.get("lock_version", self.version), "file_name": self.file_name}

# ---- Tarballs ----

class Tarball:
    """An npm package. `files` is a list of (path below the top directory, content, mode); `raw` of tarfile.TarInfo and content."""
    def __init__(self, name="demo", version="1.0.0", files=(), **also):
        self.name, self.version, self.also = name, version, also
        self.top = also.get("top", "package")
        self.files = [(f[0], to_bytes(f[1]), f[2] if len(f) > 2 else 0o644) for f in files]
        self.file_name = name.split("/")[-1] + f"-{version}.tgz"

    def data(self):
        b = io.BytesIO()
        with tarfile.open(fileobj=b, mode="w:" + self.also.get("filter", "gz"), format=self.also.get("format", tarfile.PAX_FORMAT)) as t:
            def add(path, data, mode=0o644):
                i = tarfile.TarInfo(path)
                i.size, i.mode = len(data), mode
                t.addfile(i, io.BytesIO(data))
            manifest = self.also.get("text", json.dumps({"name": self.name, "version": self.version, **self.also.get("manifest", {})}))
            if manifest is not None:
                add(self.top + "/package.json", to_bytes(manifest))
            for path, data, mode in self.files:
                add(f"{self.top}/{path}", data, mode)
            for info, data in self.also.get("raw", []):
                info.size = len(to_bytes(data))
                t.addfile(info, io.BytesIO(to_bytes(data)))
        return self.also.get("then", lambda d: d)(b.getvalue())

    def artifact(self):
        return {"name": self.also.get("lock_name", self.name), "version": self.also.get("lock_version", self.version), "file_name": self.file_name}

def info(path, kind=tarfile.REGTYPE, link="", **also):
    i = tarfile.TarInfo(path)
    i.type, i.linkname = kind, link
    for k, v in also.items():
        setattr(i, k, v)
    return i

# ---- The helper ----

class Helper:
    def __init__(self, exe):
        self.exe = exe
        self.top = tempfile.mkdtemp(prefix="unpack-")
        self.artifacts = os.path.join(self.top, "artifacts")
        os.mkdir(self.artifacts)
        os.chmod(self.top, 0o755)

    def close(self):
        shutil.rmtree(self.top)

    def put(self, file, data):
        with open(os.path.join(self.artifacts, file), "wb") as f:
            f.write(data)

    def run(self, mode, job, *directories):
        """Status, result or None, messages. The directories are descriptors 3 and on."""
        fds = [os.open(d, os.O_RDONLY | os.O_DIRECTORY) for d in directories]
        def place():
            high = [os.dup2(fd, 200 + i) for i, fd in enumerate(fds)]
            for i, fd in enumerate(high):
                os.dup2(fd, 3 + i)
            os.closerange(3 + len(high), 300)
        try:
            p = subprocess.run([self.exe, mode], input=job if isinstance(job, bytes) else json.dumps(job).encode(), capture_output=True,
                               preexec_fn=place, close_fds=False, timeout=120, check=False)
        finally:
            for fd in fds:
                os.close(fd)
        return p.returncode, json.loads(p.stdout) if p.returncode == 0 else None, p.stderr.decode(errors="replace")

    def scan(self, *packages, language=None):
        """One result a package."""
        jobs = []
        for i, p in enumerate(packages):
            self.put(f"a{i}", p.data())
            jobs.append({"file": f"a{i}", **p.artifact()})
        language = language or ("python" if isinstance(packages[0], Wheel) else "javascript")
        status, result, text = self.run("scan", {"language": language, "artifacts": jobs}, self.artifacts)
        check("scan: status", status == 0, (status, text))
        return result["artifacts"] if result else [{}] * len(packages)

    def staging(self, name):
        path = os.path.join(self.top, name)
        os.mkdir(path)
        if os.geteuid() == 0:
            os.chown(path, NOBODY, NOBODY)
        return path

    def build(self, name, packages, at=None, version="3.11", interpreter="/usr/bin/python3", change=None):
        """The result, and the staging directory."""
        python = isinstance(packages[0], Wheel)
        jobs = []
        for i, p in enumerate(packages):
            data = p.data()
            self.put(f"b{i}", data)
            jobs.append({"file": f"b{i}", "name": p.artifact()["name"], "version": p.artifact()["version"], "sha256": hashlib.sha256(data).hexdigest()})
            if not python:
                jobs[-1]["at"] = at[i] if at else ["node_modules/" + p.name]
        job = {"language": "python" if python else "javascript", "packages": jobs,
               "runtime": {"tag": "x", "version": version, "interpreter": interpreter}}
        if change:
            change(job)
        staging = self.staging(name)
        status, result, text = self.run("build", job, self.artifacts, staging)
        check(f"build {name}: status", status == 0, (status, text))
        return result or {}, staging

def tree(top):
    """path -> (kind, mode, content or target) of everything below a directory."""
    out = {}
    for where, directories, files in os.walk(top):
        for n in directories + files:
            path = os.path.join(where, n)
            st = os.lstat(path)
            rel = os.path.relpath(path, top)
            if stat.S_ISLNK(st.st_mode):
                out[rel] = ("link", 0o777, os.readlink(path))
            elif stat.S_ISDIR(st.st_mode):
                out[rel] = ("directory", st.st_mode & 0o7777, "")
            else:
                with open(path, "rb") as f:
                    out[rel] = ("file", st.st_mode & 0o7777, f.read())
    return out
