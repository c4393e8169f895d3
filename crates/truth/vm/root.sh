#!/bin/bash
# root.sh FOLDER: makes the guests' root file system (root.img) in a new FOLDER, as root, of programs of Debian 12, and depmod.tar,
# the program that lists the modules of a kernel.
set -eu
here=$(realpath "$(dirname "$0")")
mkdir "$1"
cd "$1"

# Nothing has to survive a crash of the machine.
mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io --include="$(paste -sd, "$here/packages.txt")" bookworm rootfs.tar
mkdir rootfs
tar -xpf rootfs.tar -C rootfs --exclude='./dev/*'
mkdir -p rootfs/lib/modules rootfs/lab rootfs/data rootfs/mnt
rm -rf rootfs/usr/share/{doc,locale,man} rootfs/var/lib/apt/lists/*
install -m 755 "$here/start" rootfs/start
# shellcheck disable=SC2046
chroot rootfs tar -C / -cf - --dereference sbin/depmod $(chroot rootfs ldd /sbin/depmod | grep -o '/[^ ]*' | sed 's,^/,,') >depmod.tar
mke2fs -q -t ext4 -d rootfs root.img 1200M
rm -rf rootfs rootfs.tar
