"""Byte-compiles a Python layer and prints what came out, as frames: reeve-unpack writes them into the layer.

It runs inside the sandbox, where the layer is at /venv, so that the places in tracebacks are those that a run sees. A
frame is "RVPC", the sizes of path and data (32 bits each, little endian), the path below /venv, and the file; at the end
stands "RVPE", the number of frames and 0. The files are valid whatever their source's time is (PEP 552, unchecked).

Two processes take turns where there is much to do. A source that kills one (a C stack overflow, memory) costs that
source only. Nothing is written to disk, and what is printed is read as any other stranger's bytes.
"""
import gc
import importlib._bootstrap_external as external
import importlib.util
import os
import stat
import struct
import sys
import warnings

SOURCE_BYTES_MAX = 16 << 20
ALONE_BYTES_MAX = 256 << 10           # of sources for which a second process is not worth its start
PIPE_BYTES = 1 << 20
FRAME = struct.Struct("<4sII")
SKIPPED = 0xFFFFFFFF                  # of a worker: there is nothing for this source


def is_nameable(name):
    """Names that a path in a frame may have."""
    return name.isprintable() and not any(0xD800 <= ord(c) <= 0xDFFF for c in name)


def sources(root):
    """[(path below the root, size)], sorted. Links are not followed."""
    found, folders = [], [""]
    while folders:
        folder = folders.pop()
        with os.scandir(os.path.join(root, folder)) as entries:
            for e in entries:
                if not is_nameable(e.name):
                    continue
                path = folder + "/" + e.name if folder else e.name
                if e.is_dir(follow_symlinks=False):
                    if e.name != "__pycache__":
                        folders.append(path)
                elif e.name.endswith(".py") and e.is_file(follow_symlinks=False):
                    size = e.stat(follow_symlinks=False).st_size
                    if size <= SOURCE_BYTES_MAX:
                        found.append((path, size))
    return sorted(found)


def read(path):
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        parts = []
        while True:
            part = os.read(fd, 1 << 20)
            if not part:
                return b"".join(parts)
            parts.append(part)
            if len(parts) * (1 << 20) > SOURCE_BYTES_MAX + (1 << 20):
                return None
    finally:
        os.close(fd)


def compiled(root, path, shown):
    """The file for a source, or None: it cannot be compiled, which is for whoever imports it to find."""
    try:
        data = read(os.path.join(root, path))
        if data is None:
            return None
        code = compile(data, shown + "/" + path, "exec", dont_inherit=True, optimize=0)
        return bytes(external._code_to_hash_pyc(code, importlib.util.source_hash(data), False))
    except (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, OSError):
        return None


def cache_path(path):
    folder, name = os.path.split(path)
    name = f"{name[:-3]}.{sys.implementation.cache_tag}.pyc"
    return f"{folder}/__pycache__/{name}" if folder else f"__pycache__/{name}"


def write_all(fd, data):
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view):]


class Worker:
    """A process that compiles the sources of a list, one answer each, in order."""

    def __init__(self, root, shown, paths):
        self.root, self.shown, self.paths, self.at, self.pid, self.fd = root, shown, paths, 0, 0, -1

    def start(self):
        self.fd, out = os.pipe()
        try:
            import fcntl
            fcntl.fcntl(out, getattr(fcntl, "F_SETPIPE_SZ", 1031), PIPE_BYTES)
        except (ImportError, OSError):
            pass   # a smaller pipe is only slower
        self.pid = os.fork()
        if self.pid:
            os.close(out)
            return
        try:
            os.close(self.fd)
            for path in self.paths[self.at:]:
                data = compiled(self.root, path, self.shown)
                write_all(out, struct.pack("<I", SKIPPED) if data is None else struct.pack("<I", len(data)) + data)
        finally:
            os._exit(0)

    def take(self, n):
        parts = []
        while n:
            part = os.read(self.fd, min(n, 1 << 20))
            if not part:
                return None
            parts.append(part)
            n -= len(part)
        return b"".join(parts)

    def next(self):
        """The answer for the next source; None: there is none. A worker that died is followed by another, one source on."""
        if self.fd < 0:
            self.start()
        head = self.take(4)
        size = struct.unpack("<I", head)[0] if head else SKIPPED
        data = self.take(size) if size != SKIPPED else None
        self.at += 1
        if head is None or (size != SKIPPED and data is None) or self.at == len(self.paths):
            os.close(self.fd)
            os.waitpid(self.pid, 0)
            self.fd = -1
        return data


def main():
    job = {}
    text = sys.stdin.buffer.read()
    if text.strip():
        import json
        job = json.loads(text)
    shown = "/venv"
    root = job.get("work_dir") or shown
    below = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    found = sources(os.path.join(root, below))
    paths = [f"{below}/{p}" for p, _ in found if len(os.path.basename(p)) < 200]
    n_workers = 2 if sum(size for _, size in found) > ALONE_BYTES_MAX and len(os.sched_getaffinity(0)) > 1 else 1
    warnings.simplefilter("ignore")
    gc.disable()   # compiling leaves next to no cycles, and looking for them takes a fifth of the time
    gc.freeze()
    workers = [Worker(root, shown, paths[i::n_workers]) for i in range(n_workers)]
    for w in workers:
        if w.paths:
            w.start()
    n_frames = 0
    for i, path in enumerate(paths):
        data = workers[i % n_workers].next()
        if data is not None:
            name = cache_path(path).encode()
            write_all(1, FRAME.pack(b"RVPC", len(name), len(data)) + name + data)
            n_frames += 1
    write_all(1, FRAME.pack(b"RVPE", n_frames, 0))
    os._exit(0)


if __name__ == "__main__":
    main()
