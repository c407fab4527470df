#!/bin/sh
# image.sh DIR PACKAGE…: makes the test guest's kernel, initramfs and root image in DIR, which is new.
#
# The suite, the mirrors, proxies and keys are those of this machine's own apt, so that the guest has the C library
# that programs built here are linked with. Run as root (mmdebstrap unpacks files of several owners and runs their
# scripts below a chroot).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
[ $# -ge 1 ] || {
        echo "usage: image.sh DIR PACKAGE..." >&2
        exit 2
}
out=$1
shift
packages=$(printf '%s,' "$@")
packages=${packages%,}
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
work=$out/parts root=$out/parts/root
mkdir -p "$work/deb"

# ---- Packages ----

set --
for sources in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do
        [ ! -s "$sources" ] || set -- "$@" "$sources"
done
apt-config dump | grep '^Acquire::' | grep -vE '""|IndexTargets|CompressionTypes|Changelogs|Languages' >"$work/apt.conf" || :
# The kernel's package is only unpacked: its scripts would want an initramfs generator and a boot loader. It is
# fetched in a hook, as apt's lists are fresh there and gone afterwards.
cat >"$work/kernel.sh" <<'HOOK'
set -eu
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
cd "$1/../deb"
name=$(apt-cache depends linux-image-cloud-amd64 | awk '/Depends:/ { print $2; exit }')
apt-get -qq -o APT::Sandbox::User=root download "$name"
HOOK
mmdebstrap --quiet --mode=root --variant=essential --include="$packages" --aptopt="$work/apt.conf" \
        --aptopt='APT::Install-Recommends "false"' --dpkgopt=force-unsafe-io \
        --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        --customize-hook="sh '$work/kernel.sh' \"\$1\"" "$suite" "$root" "$@"

# ---- Kernel and modules ----

dpkg -x "$work"/deb/linux-image-*.deb "$work/kernel"
kernel=$(ls "$work/kernel/lib/modules")
/usr/bin/python3 "$here/pack.py" vmlinux "$work/kernel/boot/vmlinuz-$kernel" "$out/vmlinux"
from=$work/kernel/lib/modules/$kernel to=$root/usr/lib/modules/$kernel
mkdir -p "$to"
for part in net fs lib crypto arch drivers/virtio drivers/block drivers/char drivers/net/veth.ko drivers/net/dummy.ko \
        drivers/net/tun.ko drivers/net/virtio_net.ko; do
        mkdir -p "$to/kernel/$(dirname "$part")"
        cp -a "$from/kernel/$part" "$to/kernel/$part"
done
cp "$from"/modules.builtin* "$from/modules.order" "$to/"
chroot "$root" depmod "$kernel"

# ---- Settings ----

etc=$root/etc
echo guest >"$etc/hostname"
printf '127.0.0.1 localhost guest\n::1 localhost\n' >"$etc/hosts"
echo 0123456789abcdef0123456789abcdef >"$etc/machine-id"
# tester is given a user manager that lingers; plain has none, ever.
chroot "$root" useradd -M -u 1000 -s /bin/bash tester
chroot "$root" useradd -M -u 1001 -s /bin/bash plain
# The root is an overlay, which is no upper layer for another one: what is written to must be a tmpfs of its own.
cat >"$etc/fstab" <<'FILE'
tmpfs /tmp tmpfs mode=1777,nosuid,nodev 0 0
tmpfs /var/tmp tmpfs mode=1777,nosuid,nodev 0 0
tmpfs /var/lib/reeve tmpfs mode=755 0 0
tmpfs /home tmpfs mode=755 0 0
FILE
mkdir -p "$etc/tmpfiles.d" "$etc/systemd/journald.conf.d" "$root/var/lib/reeve"
# Without udev nothing else sets the modes of device files.
cat >"$etc/tmpfiles.d/guest.conf" <<'FILE'
d /home/tester 0700 tester tester -
d /home/plain 0700 plain plain -
z /dev/fuse 0666 root root -
z /dev/net/tun 0666 root root -
FILE
printf '[Journal]\nStorage=volatile\nRuntimeMaxUse=8M\n' >"$etc/systemd/journald.conf.d/guest.conf"
install -D -m 755 "$here/runner.py" "$root/usr/local/lib/guest-runner"
units=$etc/systemd/system
# No Delegate: a command that is given no session runs where any service does.
cat >"$units/guest-runner.service" <<'FILE'
[Unit]
Description=runner of the tests
DefaultDependencies=no
After=dbus.socket systemd-logind.service basic.target

[Service]
ExecStart=/usr/bin/python3 -I -S -u /usr/local/lib/guest-runner
Restart=always
OOMPolicy=continue

[Install]
WantedBy=multi-user.target
FILE
mkdir -p "$units/multi-user.target.wants"
ln -s ../guest-runner.service "$units/multi-user.target.wants/"
ln -sf /lib/systemd/system/multi-user.target "$units/default.target"
# What no test needs and a boot would wait for.
for unit in getty.target getty@tty1.service console-getty.service serial-getty@ttyS0.service \
        systemd-timesyncd.service systemd-update-utmp.service systemd-update-utmp-runlevel.service \
        systemd-journal-flush.service systemd-journal-catalog-update.service systemd-update-done.service \
        systemd-machine-id-commit.service systemd-firstboot.service systemd-pstore.service \
        systemd-random-seed.service systemd-sysusers.service systemd-tmpfiles-clean.timer e2scrub_all.timer \
        e2scrub_reap.service fstrim.timer dpkg-db-backup.timer apt-daily.timer apt-daily-upgrade.timer \
        nftables.service systemd-ask-password-console.path systemd-ask-password-wall.path \
        systemd-boot-system-token.service systemd-hwdb-update.service systemd-binfmt.service \
        proc-sys-fs-binfmt_misc.automount sys-kernel-config.mount sys-kernel-debug.mount sys-kernel-tracing.mount \
        sys-fs-fuse-connections.mount dev-hugepages.mount dev-mqueue.mount modprobe@.service; do
        ln -sf /dev/null "$units/$unit"
done

# ---- Initramfs: a static first program and the modules that it loads, in order ----

mkdir -p "$work/initramfs/modules"
gcc -O2 -Wall -Wextra -Werror -static -o "$work/initramfs/init" "$here/init.c"
chroot "$root" modprobe -S "$kernel" -a -D virtio_pci virtio_blk virtio_console virtio-rng erofs overlay |
        awk '/^insmod/ && !seen[$2]++ { print $2 }' >"$work/modules"
n=10
while read -r module; do
        cp "$root$module" "$work/initramfs/modules/$n-$(basename "$module")"
        n=$((n + 1))
done <"$work/modules"
/usr/bin/python3 "$here/pack.py" cpio "$work/initramfs" "$out/initrd"
mkfs.erofs --quiet -T0 -U 00000000-0000-0000-0000-000000000000 "$out/root.erofs" "$root" >/dev/null
rm -rf "$work"
