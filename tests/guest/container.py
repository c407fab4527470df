#!/usr/bin/python3
"""Runs a command in a plain container, as an OCI runtime of a container service would (in the guest, as root).

    container.py --cgroup ro|rw --privileges usual|all COMMAND…

Private cgroup namespace, pid and mount namespace, root read-only (that of the guest itself), /tmp and /run tmpfs.
--cgroup is how /sys/fs/cgroup is mounted. `usual` are the 14 capabilities of container services, with parts of
/proc masked; `all` is every capability that is to be had, and nothing masked.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

USUAL = ("CHOWN DAC_OVERRIDE FSETID FOWNER MKNOD NET_RAW SETGID SETUID SETFCAP SETPCAP NET_BIND_SERVICE SYS_CHROOT KILL "
         "AUDIT_WRITE").split()
# In the order of their numbers.
ALL = ("CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE "
       "NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT "
       "SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP "
       "MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE").split()


def all_capabilities():
    """Those of the bounding set: asking for one more is an error."""
    with open("/proc/self/status", encoding="ascii") as f:
        bound = int(next(line for line in f if line.startswith("CapBnd:")).split()[1], 16)
    return [name for i, name in enumerate(ALL) if bound >> i & 1]


def write_bundle(directory, root, opt):
    subprocess.run(["runc", "spec", "-b", directory], check=True)
    path = os.path.join(directory, "config.json")
    with open(path, encoding="utf-8") as f:
        spec = json.load(f)
    linux, process = spec["linux"], spec["process"]
    process.update(terminal=False, args=opt.command, cwd="/",
                   env=["PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/tmp"])
    names = ["CAP_" + name for name in (USUAL if opt.privileges == "usual" else all_capabilities())]
    process["capabilities"] = {k: names for k in ("bounding", "effective", "permitted")}
    process["rlimits"] = []
    spec["root"] = {"path": root, "readonly": True}
    for mount in spec["mounts"]:
        if mount["destination"] == "/sys/fs/cgroup":
            mount["options"] = [o for o in mount["options"] if o not in ("ro", "rw")] + [opt.cgroup]
    spec["mounts"] += [{"destination": d, "type": "tmpfs", "source": "tmpfs", "options": [f"mode={mode}"]}
                       for d, mode in (("/tmp", "1777"), ("/run", "755"))]
    if not any(n["type"] == "cgroup" for n in linux["namespaces"]):
        linux["namespaces"].append({"type": "cgroup"})
    linux["cgroupsPath"] = f"/plain-{os.getpid()}"
    if opt.privileges == "all":
        linux["maskedPaths"], linux["readonlyPaths"] = [], []
        linux.pop("seccomp", None)
        process["noNewPrivileges"] = False
    with open(path, "w", encoding="utf-8") as f:
        json.dump(spec, f)


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("--cgroup", choices=("ro", "rw"), required=True)
    a.add_argument("--privileges", choices=("usual", "all"), required=True)
    a.add_argument("command", nargs=argparse.REMAINDER)
    opt = a.parse_args()
    with tempfile.TemporaryDirectory(prefix="bundle-", dir="/run") as directory:
        root = os.path.join(directory, "root")
        os.mkdir(root)
        # Without what is mounted below it: runc moves into a root that is a mount of its own.
        subprocess.run(["mount", "--bind", "/", root], check=True)
        try:
            write_bundle(directory, root, opt)
            return subprocess.run(["runc", "run", "-b", directory, f"plain-{os.getpid()}"], check=False).returncode
        finally:
            subprocess.run(["umount", "-l", root], check=True)


if __name__ == "__main__":
    sys.exit(main())
