#!/usr/bin/python3
"""What `reeve-unpack scan` says of good and hostile wheels and tarballs.

    scan.py REEVE-UNPACK

Prints one line per failure and a last line with what was checked. Exit status 1 if any failed.
"""
import base64, gzip, hashlib, io, json, os, stat, struct, subprocess, sys, tarfile, time, zipfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from common import Helper, Tarball, Wheel, check, finish, info

def refused(helper, rows):
    """rows: (name, package, cause, text that has to be in the message)"""
    for (name, _, cause, text), got in zip(rows, helper.scan(*[r[1] for r in rows])):
        fault = got.get("fault", {})
        check(name, fault.get("cause") == cause and text in fault.get("text", ""), fault or got)
        line = fault.get("text", "")
        check(name + ": a line", line.isascii() and line.isprintable(), line)
        check(name + ": what is known of it", len(got["sha256"]) == 64 and got["size_bytes"] > 0 and "license" not in got, got)

def member(name, content="x", mode=0o644):
    return Wheel(files=[("demo.py", "x = 1\n"), (name, content, mode)])

# ---- Zip files with something wrong with them ----

def patch(data, at, new):
    return data[:at] + new + data[at + len(new):]

def central(data, i=0):
    """Offset of the i-th entry of the directory."""
    at = struct.unpack_from("<I", data, len(data) - 6)[0]
    for _ in range(i):
        n, extra, comment = struct.unpack_from("<HHH", data, at + 28)
        at += 46 + n + extra + comment
    return at

def two_directories(data):
    """Another whole zip file before it, as a reader that looks from the front finds it."""
    return Wheel(files=[("evil.py", "x")]).data() + data

def hidden_behind(data):
    return data + Wheel(files=[("evil.py", "x")]).data()

def prefixed(data):
    """With offsets that fit, so that the prefix is the only thing wrong."""
    b = io.BytesIO(b"#!/bin/sh\n")
    b.seek(0, 2)
    with zipfile.ZipFile(io.BytesIO(data)) as z, zipfile.ZipFile(b, "a") as out:
        for i in z.infolist():
            out.writestr(i, z.read(i))
    return b.getvalue()

def gap(data):
    """Bytes between the last member and the directory."""
    at = central(data)
    out = data[:at] + b"hidden" + data[at:]
    return patch(out, len(out) - 6, struct.pack("<I", at + 6))

def in_comment(data):
    """A second end in the comment of the first."""
    end = data[-22:]
    return patch(data, len(data) - 2, struct.pack("<H", 22)) + end

def local_name(data):
    return patch(data, 30, b"evil.py")

def local_size(data):
    return patch(data, 22, struct.pack("<I", 7))

def central_size(data):
    return patch(data, central(data) + 24, struct.pack("<I", 7))

def both_sizes(data):
    return central_size(local_size(data))

def flag(bit, local=True):
    def change(data):
        at = central(data) + 8
        data = patch(data, at, struct.pack("<H", struct.unpack_from("<H", data, at)[0] | 1 << bit))
        return patch(data, 6, struct.pack("<H", struct.unpack_from("<H", data, 6)[0] | 1 << bit)) if local else data
    return change

def method(number):
    return lambda data: patch(patch(data, 8, struct.pack("<H", number)), central(data) + 10, struct.pack("<H", number))

def bad_crc(data):
    return patch(patch(data, 14, b"\1\2\3\4"), central(data) + 16, b"\1\2\3\4")

def overlap(data):
    """The second member begins where the first does."""
    return patch(data, central(data, 1) + 42, struct.pack("<I", 0))

def renamed(old, new):
    """The same number of bytes, in both places: names that zipfile would not write."""
    return lambda data: data.replace(old, new)

def zip_rows():
    w = lambda then, **also: Wheel(then=then, **also)
    return [
        ("two zip files", w(two_directories), "unsafe_archive", "there may be another"),
        ("another behind it", w(hidden_behind), "unsafe_archive", "there may be another"),
        ("bytes behind it", w(lambda d: d + b"more"), "unsafe_archive", "something follows its end"),
        ("bytes before it", w(prefixed), "unsafe_archive", "before its first member"),
        ("bytes within it", w(gap), "unsafe_archive", "followed by bytes that belong to no member"),
        ("two ends", w(in_comment), "unsafe_archive", "two ends"),
        ("another name where it lies", w(local_name), "unsafe_archive", '"demo.py" has another name where it lies'),
        ("another size where it lies", w(local_size), "unsafe_archive", '"demo.py" has another size'),
        ("another size in the directory", w(central_size), "unsafe_archive", '"demo.py" has another size'),
        ("both sizes wrong", w(both_sizes), "unsafe_archive", ""),
        ("a checksum that is wrong", w(bad_crc), "unsafe_archive", "not a well-formed zip file"),
        ("overlapping members", w(overlap), "unsafe_archive", ""),
        ("encrypted", w(flag(0)), "unsafe_archive", '"demo.py" is encrypted'),
        ("encrypted, says the directory alone", w(flag(0, local=False)), "unsafe_archive", "encrypted"),
        ("strongly encrypted", w(flag(6)), "unsafe_archive", "encrypted"),
        ("masked headers", w(flag(13)), "unsafe_archive", "encrypted"),
        ("another method", w(method(9)), "unsafe_archive", "another method"),
        ("LZMA", Wheel(compression=zipfile.ZIP_LZMA), "unsafe_archive", "another method"),
        ("stored by another account", w(method(0)), "unsafe_archive", "two sizes"),
        ("cut in the middle", w(lambda d: d[:len(d) // 2]), "unsafe_archive", "no directory at its end"),
        ("cut at the end", w(lambda d: d[:-1]), "unsafe_archive", "not a well-formed zip file"),
        ("nothing", w(lambda d: b"PK"), "unsafe_archive", "too short"),
        ("an empty zip file", w(lambda d: b"PK\5\6" + bytes(18)), "unsafe_archive", "not a well-formed zip file"),
        ("a tar archive", Wheel(then=lambda d: Tarball().data()), "unsafe_archive", "not a well-formed zip file"),
        ("text", w(lambda d: b"<html>sign in</html>" * 10), "unsafe_archive", "not a well-formed zip file"),
    ]

def zip_names():
    return [
        ("traversal", member("../evil.py"), "unsafe_archive", 'the member "../evil.py" leads out'),
        ("traversal within", member("a/../../evil.py"), "unsafe_archive", "leads out"),
        ("traversal at the end", member("a/.."), "unsafe_archive", "leads out"),
        ("absolute", member("/etc/evil"), "unsafe_archive", '"/etc/evil" has an absolute name'),
        ("backslash", member("a\\..\\evil"), "unsafe_archive", "a\\092..\\092evil"),
        ("drive letter", member("C:evil"), "unsafe_archive", "drive letter"),
        ("control character", member("a\x1b[31m"), "unsafe_archive", "a\\027[31m"),
        ("newline", member("a\nb"), "unsafe_archive", "control character"),
        ("a C1 control", member("a\x85b"), "unsafe_archive", "control character"),
        ("NUL", Wheel(files=[("demo.py", "x"), ("aQ.py", "x")], then=renamed(b"aQ.py", b"a\0.py")), "unsafe_archive", "a\\000.py"),
        ("not UTF-8", Wheel(files=[("demo.py", "x"), ("a\u00e9.py", "x")], then=renamed("a\u00e9.py".encode(), b"a\xff\xfe.py")), "unsafe_archive", "not UTF-8"),
        ("neither ASCII nor marked", Wheel(files=[("demo.py", "x"), ("aQQ.py", "x")], then=renamed(b"aQQ.py", "a\u00e9.py".encode())), "unsafe_archive", "nor marked as UTF-8"),
        ("an empty part", member("a//b"), "unsafe_archive", "empty part"),
        ("a point", member("./a"), "unsafe_archive", 'the part "."'),
        ("a slash alone", member("/", ""), "unsafe_archive", "empty name"),
        ("too long", member("d/" * 50 + "n" * 950), "unsafe_archive", "more than 1024 bytes"),
        ("a part too long", member("n" * 256), "unsafe_archive", "more than 255 bytes"),
        ("too deep", member("d/" * 64 + "n"), "unsafe_archive", "nested too deep"),
        ("symbolic link", Wheel(files=[("demo.py", "x"), ("link", "/etc/passwd", stat.S_IFLNK | 0o777)]), "unsafe_archive", '"link" is a symbolic link'),
        ("device", Wheel(files=[("demo.py", "x"), ("dev", "", stat.S_IFCHR | 0o666)]), "unsafe_archive", "is a device"),
        ("FIFO", Wheel(files=[("demo.py", "x"), ("fifo", "", stat.S_IFIFO | 0o666)]), "unsafe_archive", "neither a file nor a directory"),
        ("a directory by its mode alone", Wheel(files=[("demo.py", "x"), ("dir", "", stat.S_IFDIR | 0o755)]), "unsafe_archive", "by one account"),
        ("twice", member("demo.py", "x = 2\n"), "unsafe_archive", '"demo.py" is there twice'),
        ("another case", member("Demo.py"), "unsafe_archive", '"demo.py" and "Demo.py" differ only in case'),
        ("a file as a directory", member("demo.py/a"), "unsafe_archive", "one of them is a file"),
        ("a directory as a file", Wheel(files=[("a/b", "x"), ("a", "y")]), "unsafe_archive", "one of them is a file"),
        ("a bomb", Wheel(files=[("zeros", bytes(200 << 20))]), "unsafe_archive", "more than 200 times its size"),
    ]

def wheel_rows():
    foreign = Wheel(files=[("demo.py", "x"), ("other-2.0.dist-info/METADATA", "Name: other\n")])
    return [
        ("another name in METADATA", Wheel(metadata="Name: other\nVersion: 1.0\n"), "name_mismatch", 'says that it is "other", and "demo" was asked for'),
        ("another version in METADATA", Wheel(metadata="Name: demo\nVersion: 1.1\n"), "name_mismatch", 'version "1.1", and "1.0"'),
        ("another directory", Wheel(stem="other-1.0", metadata="Name: demo\nVersion: 1.0\n"), "name_mismatch", "other-1.0.dist-info"),
        ("another directory's version", Wheel(stem="demo-1.1"), "name_mismatch", "demo-1.1.dist-info"),
        ("another file name", Wheel(file_name="other-1.0-py3-none-any.whl"), "name_mismatch", "other-1.0-py3-none-any.whl"),
        ("a file name of another version", Wheel(file_name="demo-1.1-py3-none-any.whl"), "name_mismatch", "file name"),
        ("a file name that is none", Wheel(file_name="demo-1.0.tar.gz"), "name_mismatch", "file name"),
        ("no name", Wheel(metadata="Version: 1.0\n"), "unsafe_archive", "METADATA has no usable Name"),
        ("no version", Wheel(metadata="Name: demo\n"), "unsafe_archive", "METADATA has no usable Version"),
        ("a name in the body", Wheel(metadata="Version: 1.0\n\nName: demo\n"), "unsafe_archive", "no usable Name"),
        ("no METADATA", Wheel(metadata=None), "unsafe_archive", "it has no METADATA"),
        ("no WHEEL", Wheel(wheel=None), "unsafe_archive", "it has no WHEEL"),
        ("no Wheel-Version", Wheel(wheel="Tag: x\n"), "unsafe_archive", "no Wheel-Version"),
        ("a later Wheel-Version", Wheel(wheel="Wheel-Version: 2.0\n"), "unsafe_archive", 'of version "2.0"'),
        ("no RECORD", Wheel(record=None), "unsafe_archive", "it has no RECORD"),
        ("METADATA too large", Wheel(headers="X: " + base64.b64encode(os.urandom(4 << 20)).decode() + "\n"), "unsafe_archive", "larger than such a file may be"),
        ("two that describe it", foreign, "unsafe_archive", "two directories that describe it"),
        ("no directory that describes it", Wheel(then=lambda d: zipped({"a.py": "x"})), "unsafe_archive", "no directory NAME-VERSION.dist-info"),
        ("not listed", Wheel(unlisted=[("evil.py", "x", 0o644)]), "unsafe_archive", '"evil.py" is not listed in RECORD'),
        ("listed without a digest", Wheel(rows=lambda r: [(n, "" if n == "demo.py" else h, s) for n, h, s in r]), "unsafe_archive", "not listed in RECORD with a digest"),
        ("another digest", Wheel(rows=lambda r: [(n, r[-1][1], s) for n, h, s in r]), "unsafe_archive", '"demo.py" is not what RECORD says'),
        ("another size", Wheel(rows=lambda r: [(n, h, s + 1) for n, h, s in r]), "unsafe_archive", "not what RECORD says"),
        ("a weak digest", Wheel(algorithm="md5"), "unsafe_archive", "no digest of SHA-256"),
        ("RECORD with an absolute path", Wheel(rows=lambda r: r + [("/etc/passwd", r[0][1], 1)]), "unsafe_archive", 'RECORD is at fault: the member "/etc/passwd" has an absolute name'),
        ("RECORD that leads out", Wheel(rows=lambda r: r + [("../../bin/sh", r[0][1], 1)]), "unsafe_archive", "RECORD is at fault"),
        ("RECORD says two things", Wheel(rows=lambda r: r + [(r[0][0], r[1][1], 1)]), "unsafe_archive", "says two things"),
        ("RECORD of two fields", Wheel(record="demo.py,sha256=x\n"), "unsafe_archive", "has not three fields"),
        ("RECORD with an open quote", Wheel(record='"demo.py,sha256=x,1\n'), "unsafe_archive", "has not three fields"),
        ("RECORD with a size that is none", Wheel(rows=lambda r: [(n, h, "1k") for n, h, s in r]), "unsafe_archive", "a size that is no number"),
        ("data of no kind", member("demo-1.0.data/evil/x"), "unsafe_archive", "a place that wheels do not have"),
        ("data outside of a kind", member("demo-1.0.data/x"), "unsafe_archive", "a place that wheels do not have"),
        ("a kind that is a file", member("demo-1.0.data/scripts"), "unsafe_archive", "a place that wheels do not have"),
        ("data of another wheel", member("other-1.0.data/scripts/x"), "unsafe_archive", "not the wheel's"),
        ("a script that leads out", Wheel(entry_points="[console_scripts]\n../evil = a:b\n"), "unsafe_archive", "leads out"),
        ("a script in a directory", Wheel(entry_points="[console_scripts]\na/b = a:b\n"), "unsafe_archive", "a slash in its name"),
        ("a script as the interpreter", Wheel(entry_points="[gui_scripts]\npython3 = a:b\n"), "unsafe_archive", "take the interpreter's place"),
        ("a script as Python", Wheel(entry_points="[console_scripts]\nPython3.11 = a:b\n"), "unsafe_archive", "take the interpreter's place"),
        ("a script of no callable", Wheel(entry_points="[console_scripts]\nx = a\n"), "unsafe_archive", "names no callable"),
        ("a script with code in it", Wheel(entry_points="[console_scripts]\nx = os:system('id') or a\n"), "unsafe_archive", "names no callable"),
        ("a script twice", Wheel(entry_points="[console_scripts]\nx = a:b\n[gui_scripts]\nx = a:c\n"), "unsafe_archive", "is there twice"),
    ]

def zipped(files):
    b = io.BytesIO()
    with zipfile.ZipFile(b, "w") as z:
        for n, t in files.items():
            z.writestr(n, t)
    return b.getvalue()

# ---- Tarballs ----

def raw(path, data="x", kind=tarfile.REGTYPE, link="", **also):
    return Tarball(raw=[(info(path, kind, link, **also), data)])

def tar_rows():
    many = [(info(f"package/{i}", size=0), "") for i in range(200001)]
    return [
        ("tar: traversal", raw("package/../../evil"), "unsafe_archive", '"package/../../evil" leads out'),
        ("tar: absolute", raw("/package/evil"), "unsafe_archive", "absolute name"),
        ("tar: backslash", raw("package/a\\b"), "unsafe_archive", "backslash"),
        ("tar: control character", raw("package/a\x1bb"), "unsafe_archive", "control character"),
        ("tar: not UTF-8", Tarball(format=tarfile.GNU_FORMAT, raw=[(info("package/a\udcff"), "x")]), "unsafe_archive", ""),
        ("tar: an empty part", raw("package//a"), "unsafe_archive", "empty part"),
        ("tar: a point", raw("./package/a"), "unsafe_archive", 'the part "."'),
        ("tar: symbolic link", raw("package/link", "", tarfile.SYMTYPE, "/etc/passwd"), "unsafe_archive", '"package/link" is a symbolic link'),
        ("tar: hard link", raw("package/link", "", tarfile.LNKTYPE, "package/package.json"), "unsafe_archive", '"package/link" is a hard link'),
        ("tar: character device", raw("package/dev", "", tarfile.CHRTYPE), "unsafe_archive", "is a device"),
        ("tar: block device", raw("package/dev", "", tarfile.BLKTYPE), "unsafe_archive", "is a device"),
        ("tar: FIFO", raw("package/fifo", "", tarfile.FIFOTYPE), "unsafe_archive", "is a FIFO"),
        ("tar: twice", raw("package/package.json", "{}"), "unsafe_archive", '"package/package.json" is there twice'),
        ("tar: another case", raw("package/Package.json", "{}"), "unsafe_archive", "differ only in case"),
        ("tar: a file as a directory", raw("package/package.json/a"), "unsafe_archive", "one of them is a file"),
        ("tar: two top directories", raw("other/a"), "unsafe_archive", '"other/a" is not below the directory of the package'),
        ("tar: a file at the top", raw("README"), "unsafe_archive", '"README" is not below the directory'),
        ("tar: too deep", raw("package/" + "d/" * 64 + "n"), "unsafe_archive", "nested too deep"),
        ("tar: too long", raw("package/" + "d" * 250 + "/" + "/".join(["e" * 200] * 5)), "unsafe_archive", "more than 1024 bytes"),
        ("tar: too many", Tarball(raw=many), "unsafe_archive", "more than 200000 members"),
        ("tar: a bomb", Tarball(files=[("zeros", bytes(200 << 20))]), "unsafe_archive", "more than 200 times its size"),
        ("tar: cut", Tarball(files=[("a", os.urandom(100000))], then=lambda d: d[:len(d) // 2]), "unsafe_archive", ""),
        ("tar: not compressed", Tarball(then=gzip.decompress), "unsafe_archive", "not a gzipped tar archive"),
        ("tar: compressed otherwise", Tarball(filter="xz"), "unsafe_archive", "not a well-formed gzipped tar archive"),
        ("tar: text", Tarball(then=lambda d: b"<html>sign in</html>"), "unsafe_archive", ""),
        ("tar: a zip file", Tarball(then=lambda d: Wheel().data()), "unsafe_archive", ""),
        ("tar: a gzipped zip file", Tarball(then=lambda d: gzip.compress(Wheel().data())), "unsafe_archive", ""),
        ("npm: another name", Tarball(manifest={"name": "other"}), "name_mismatch", 'it is "other", and "demo" was asked for'),
        ("npm: another version", Tarball(manifest={"version": "1.0.1"}), "name_mismatch", 'version "1.0.1"'),
        ("npm: a name that is none", Tarball(manifest={"name": ["demo"]}), "name_mismatch", 'it is ""'),
        ("npm: no package.json", Tarball(text=None, files=[("a", "x")]), "unsafe_archive", "it has no package.json"),
        ("npm: no JSON", Tarball(text="{"), "unsafe_archive", "is no JSON"),
        ("npm: no object", Tarball(text="[]"), "unsafe_archive", "is no object"),
        ("npm: package.json too large", Tarball(manifest={"x": base64.b64encode(os.urandom(4 << 20)).decode()}), "unsafe_archive", "more than 4 MiB"),
        ("npm: bundles a list", Tarball(manifest={"bundleDependencies": ["x"]}), "unsafe_archive", "bundleDependencies"),
        ("npm: bundles all", Tarball(manifest={"bundledDependencies": True}), "unsafe_archive", "bundledDependencies"),
        ("npm: brings modules", Tarball(files=[("node_modules/x/index.js", "")]), "unsafe_archive", "a directory node_modules"),
    ]

# ---- Good ones ----

def good(helper):
    for name, package, want in (
        ("a wheel", Wheel(headers="License: MIT\nRequires-Python: >=3.8\n"), {"name": "demo", "version": "1.0", "license": "MIT", "requires_python": ">=3.8", "install_script": False, "n_files": 4}),
        ("a spelling of its own", Wheel(name="Demo.Pack", version="1.0.0", lock_name="demo-pack", lock_version="1.0", stem="Demo_Pack-1.0.0"), {"name": "Demo.Pack", "version": "1.0.0"}),
        ("a build tag", Wheel(file_name="demo-1.0-2-py3-none-any.whl"), {"name": "demo"}),
        ("a local version", Wheel(version="1.0+cpu.1", stem="demo-1.0+cpu.1"), {"version": "1.0+cpu.1"}),
        ("requirements", Wheel(headers='Requires-Dist: Foo_Bar[x] (>=1) ; extra == "a"\nRequires-Dist: b@ https://example.test/b;1.whl ; python_version<"3"\nRequires-Dist: c\n'),
         {"requires": [{"name": "foo-bar", "marker": 'extra == "a"'}, {"name": "b", "marker": 'python_version<"3"'}, {"name": "c", "marker": ""}]}),
        ("an expression before a text", Wheel(headers="License: a text\nLicense-Expression: Apache-2.0\n"), {"license": "Apache-2.0"}),
        ("classifiers", Wheel(headers="License: UNKNOWN\nClassifier: License :: OSI Approved :: MIT License\nClassifier: License :: OSI Approved :: BSD License\n"), {"license": "MIT License, BSD License"}),
        ("a licence of many lines", Wheel(headers="License: " + "\u00e9" * 300 + "\n        second\n"), {"license": "\u00e9" * 200}),
        ("no licence", Wheel(), {"license": ""}),
        ("SHA-512", Wheel(algorithm="sha512"), {"name": "demo"}),
        ("SHA-384", Wheel(algorithm="sha384"), {"name": "demo"}),
        ("stored", Wheel(compression=zipfile.ZIP_STORED), {"name": "demo"}),
        ("names beyond ASCII", member("d\u00e9mo/\u4e2d.py"), {"name": "demo"}),
        ("directories", Wheel(files=[("demo/", ""), ("demo/a.py", "x")]), {"n_files": 4}),
        ("quotes in RECORD", Wheel(files=[("a,b.py", "x"), ("demo.py", "x")], rows=lambda r: [('"' + n + '"', h, s) for n, h, s in r]), {"name": "demo"}),
        ("a comment", Wheel(then=lambda d: patch(d, len(d) - 2, b"\4\0") + b"said"), {"name": "demo"}),
        ("setuid", member("s", mode=stat.S_IFREG | 0o4755), {"name": "demo"}),
        ("a zip file within", Wheel(files=[("in.zip", Wheel().data())], compression=zipfile.ZIP_STORED), {"name": "demo"}),
        ("sizes behind the data", Wheel(then=streamed), {"name": "demo"}),
        ("large sizes", Wheel(then=lambda d: rezipped(d, True)), {"name": "demo"}),
    ):
        got = helper.scan(package)[0]
        data = package.data()
        check(name, {k: got.get(k) for k in want} == want, got)
        check(name + ": digests", got["sha256"] == hashlib.sha256(data).hexdigest() and got.get("sha512") == hashlib.sha512(data).hexdigest() and got["size_bytes"] == len(data), got)
    for name, package, want in (
        ("a tarball", Tarball(manifest={"license": "MIT"}, files=[("index.js", "1")]), {"name": "demo", "version": "1.0.0", "license": "MIT", "install_script": False, "n_files": 2, "requires": []}),
        ("a scope", Tarball(name="@scope/demo"), {"name": "@scope/demo"}),
        ("another top", Tarball(top="demo-1.0.0"), {"name": "demo"}),
        ("a licence as an object", Tarball(manifest={"license": {"type": "BSD", "url": "x"}}), {"license": "BSD"}),
        ("old licences", Tarball(manifest={"licenses": [{"type": "MIT"}, {"type": "Apache"}]}), {"license": "MIT, Apache"}),
        ("an install script", Tarball(manifest={"scripts": {"postinstall": "node x"}}), {"install_script": True}),
        ("other scripts", Tarball(manifest={"scripts": {"prepare": "x", "test": "y"}}), {"install_script": False}),
        ("binding.gyp", Tarball(files=[("binding.gyp", "{}")]), {"install_script": True}),
        ("binding.gyp below", Tarball(files=[("src/binding.gyp", "{}")]), {"install_script": False}),
        ("a byte-order mark", Tarball(text='\ufeff{"name":"demo","version":"1.0.0"}'), {"name": "demo"}),
        ("members twice in JSON", Tarball(text='{"name":"x","name":"demo","version":"1.0.0"}'), {"name": "demo"}),
        ("build metadata", Tarball(manifest={"version": "v1.0.0+5"}), {"version": "1.0.0"}),
        ("bundles nothing", Tarball(manifest={"bundleDependencies": []}), {"name": "demo"}),
        ("GNU's format", Tarball(format=tarfile.GNU_FORMAT, files=[("d" * 120 + "/e", "x")]), {"name": "demo"}),
        ("modules of tests", Tarball(files=[("test/node_modules/x.js", "x")]), {"name": "demo"}),
    ):
        got = helper.scan(package)[0]
        check(name, {k: got.get(k) for k in want} == want, got)

def streamed(data):
    return rezipped(data, False)

def rezipped(data, is_large):
    """Written as to a pipe: sizes behind the data; or with fields for large sizes."""
    class Pipe(io.RawIOBase):
        out = b""
        def writable(self): return True
        def write(self, b):
            self.out += bytes(b)
            return len(b)
    target = io.BytesIO() if is_large else Pipe()
    with zipfile.ZipFile(io.BytesIO(data)) as z, zipfile.ZipFile(target, "w") as out:
        for i in z.infolist():
            with out.open(i.filename, "w", force_zip64=is_large) as f:
                f.write(z.read(i))
    return target.getvalue() if is_large else target.out

def jobs(helper):
    """What is no job."""
    helper.put("a", Wheel().data())
    one = {"file": "a", "name": "demo", "version": "1.0", "file_name": "demo-1.0-py3-none-any.whl"}
    for name, job, status, text in (
        ("no JSON", b"{", 2, "line 1"),
        ("no object", [], 2, "no JSON object"),
        ("no language", {"artifacts": [one]}, 2, "language"),
        ("no artifacts", {"language": "python"}, 2, "no list of artifacts"),
        ("a path as a file", {"language": "python", "artifacts": [{**one, "file": "../a"}]}, 2, "no file's name"),
        ("no name", {"language": "python", "artifacts": [{**one, "name": ""}]}, 2, "artifact 0"),
        ("too many", {"language": "python", "artifacts": [one] * 2001}, 2, "more than 2000"),
    ):
        got, _, message = helper.run("scan", job, helper.artifacts)
        check("job: " + name, got == status and text in message, (got, message))
    got, result, message = helper.run("scan", {"language": "python", "artifacts": [{**one, "file": "none"}, one]}, helper.artifacts)
    check("job: a file that is not there", got == 0 and result["artifacts"][0]["fault"]["cause"] == "build_failed" and "fault" not in result["artifacts"][1], result or message)
    os.symlink("a", os.path.join(helper.artifacts, "link"))
    os.mkfifo(os.path.join(helper.artifacts, "fifo"))
    for file in "link", "fifo":
        got, result, _ = helper.run("scan", {"language": "python", "artifacts": [{**one, "file": file}]}, helper.artifacts)
        check("job: a " + file, got == 0 and result["artifacts"][0]["fault"]["cause"] == "build_failed", result)
    got, result, message = helper.run("scan", {"language": "python", "artifacts": [one] * 2000}, helper.artifacts)
    check("job: as many as there may be", got == 0 and len(result["artifacts"]) == 2000, message)
    got, _, message = helper.run("scan", {"language": "python", "artifacts": [one]})
    check("job: no directory", got == 1 and "descriptor 3" in message, (got, message))
    check("no mode", helper.run("look", {})[0] == 2)

def confined(helper, exe):
    """What it has left while it is at work: held by a result that nobody reads."""
    one = {"file": "a", "name": "demo", "version": "1.0", "file_name": "demo-1.0-py3-none-any.whl"}
    helper.put("a", Wheel().data())
    directory = os.open(helper.artifacts, os.O_RDONLY)
    p = subprocess.Popen([exe, "scan"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(directory,), preexec_fn=lambda: os.dup2(directory, 3))
    p.stdin.write(json.dumps({"language": "python", "artifacts": [one] * 1000}).encode())
    p.stdin.close()
    read = lambda: dict(l.split(":\t", 1) for l in open(f"/proc/{p.pid}/status", encoding="ascii").read().splitlines() if ":\t" in l)
    end = time.monotonic() + 30
    while time.monotonic() < end and open(f"/proc/{p.pid}/wchan", encoding="ascii").read() not in ("pipe_write", "anon_pipe_write"):
        time.sleep(0.05)
        if read()["State"].startswith("S") and read()["Seccomp"].strip() == "2":
            break
    status = read()
    if b"__asan_init" in open(exe, "rb").read():
        print("skipped: the filter of system calls: a sanitized build has none")
    else:
        check("confined: a filter", status["Seccomp"].strip() == "2", status["Seccomp"])
    check("confined: no new privileges", status["NoNewPrivs"].strip() == "1", status["NoNewPrivs"])
    check("confined: no capabilities", int(status["CapEff"], 16) == 0 and int(status["CapPrm"], 16) == 0, status["CapEff"])
    check("confined: one thread", status["Threads"].strip() == "1", status["Threads"])
    if os.geteuid() == 0:
        check("confined: nobody", status["Uid"].split() == ["65534"] * 4 and status["Groups"].strip() == "", (status["Uid"], status["Groups"]))
        fds = sorted(int(n) for n in os.listdir(f"/proc/{p.pid}/fd"))
        check("confined: descriptors", fds == [0, 1, 2, 3], fds)
    check("confined: the result", len(json.loads(p.stdout.read())["artifacts"]) == 1000 and p.wait() == 0)
    os.close(directory)

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    h = Helper(sys.argv[1])
    try:
        refused(h, zip_rows())
        refused(h, zip_names())
        refused(h, wheel_rows())
        refused(h, tar_rows())
        good(h)
        jobs(h)
        confined(h, sys.argv[1])
    finally:
        h.close()
    sys.exit(finish("scan"))
