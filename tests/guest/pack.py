#!/usr/bin/python3
"""What the test guest boots from, made with no tool of the kernel's.

    pack.py cpio DIR OUT           an initramfs: a "newc" archive of DIR, owned by root
    pack.py vmlinux VMLINUZ OUT    the ELF kernel inside a bzImage, which QEMU starts half a second faster; the
                                   bzImage itself, if it is packed in a way that is not known here
"""
import os
import shutil
import stat
import subprocess
import sys


def member(number, name, st, data):
    """One archive member; st is None for the one that ends the archive."""
    name = os.fsencode(name) + b"\0"
    fields = (number, st.st_mode if st else 0, 0, 0, 1, 0, len(data), 0, 0, 0, 0, len(name), 0)
    head = b"070701" + b"".join(b"%08X" % v for v in fields) + name
    return head + b"\0" * (-len(head) % 4) + data + b"\0" * (-len(data) % 4)


def cpio(top, out):
    number = 0
    with open(out, "wb") as archive:
        for directory, subdirs, names in os.walk(top):
            subdirs.sort()
            for name in sorted(subdirs + names):
                number += 1
                path = os.path.join(directory, name)
                st, data = os.lstat(path), b""
                if stat.S_ISREG(st.st_mode):
                    with open(path, "rb") as f:
                        data = f.read()
                archive.write(member(number, os.path.relpath(path, top), st, data))
        archive.write(member(0, "TRAILER!!!", None, b""))


def vmlinux(compressed, out):
    with open(compressed, "rb") as f:
        image = f.read()
    for magic, tool in ((b"\xfd7zXZ\0", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"\x1f\x8b\x08", "gzip"), (b"\x02!L\x18", "lz4")):
        at = image.find(magic)
        while at >= 0:
            # What follows the kernel in the file makes the tool complain after it has written the kernel.
            kernel = subprocess.run([tool, "-dc"], input=image[at:], capture_output=True, check=False).stdout
            if kernel.startswith(b"\x7fELF"):
                with open(out, "wb") as f:
                    f.write(kernel)
                return
            at = image.find(magic, at + 1)
    shutil.copyfile(compressed, out)


if __name__ == "__main__":
    {"cpio": cpio, "vmlinux": vmlinux}[sys.argv[1]](*sys.argv[2:])
