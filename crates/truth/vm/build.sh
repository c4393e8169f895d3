#!/bin/bash
# build.sh FOLDER [SUITE]: makes vmlinuz, root.img and initramfs.gz in a new FOLDER, as root. The guest's programs are those of
# Debian 12; SUITE names one whose kernel is taken instead of bookworm's (bullseye, bookworm-backports).
set -eu
here=$(realpath "$(dirname "$0")")
suite=${2:-bookworm}
mkdir "$1"
cd "$1"

apt=(-o APT::Sandbox::User=root -qq)
if [ "$suite" != bookworm ]; then
  # A list of its own: the machine's stays as it is.
  mkdir -p state/lists/partial state/cache/archives/partial
  mirror=$(apt-cache policy base-files | awk '/http/ { print $2; exit }')
  echo "deb $mirror $suite main" >state/sources.list
  : >state/status
  apt+=(-o "Dir::Etc::sourcelist=$PWD/state/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State=$PWD/state"
    -o "Dir::State::status=$PWD/state/status" -o "Dir::Cache=$PWD/state/cache")
  apt-get "${apt[@]}" update
fi
# Not the one for clouds, which lacks most drivers.
package=$(apt-cache "${apt[@]}" depends linux-image-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
version=${package#linux-image-}
apt-get "${apt[@]}" download "$package"
dpkg-deb -x "$package"_*.deb kernel
cp "kernel/boot/vmlinuz-$version" vmlinuz

mmdebstrap --quiet --variant=minbase --include="$(paste -sd, "$here/packages.txt")" bookworm rootfs.tar
mkdir rootfs
tar -xpf rootfs.tar -C rootfs --exclude='./dev/*'
mkdir -p rootfs/lib/modules rootfs/lab rootfs/data rootfs/mnt
cp -a "kernel/lib/modules/$version" rootfs/lib/modules/
(cd "rootfs/lib/modules/$version/kernel" && rm -rf sound drivers/gpu drivers/net/wireless drivers/media)
rm -rf rootfs/usr/share/{doc,locale,man} rootfs/var/lib/apt/lists/*
chroot rootfs depmod "$version"
install -m 755 "$here/start" rootfs/start
mke2fs -q -t ext4 -d rootfs root.img 1200M

mkdir -p initramfs/{bin,modules,proc,sys,dev,lower,rw,new}
cp /bin/busybox initramfs/bin/
while read -r module; do
  file=$(find kernel -name "$module.ko" -o -name "$module.ko.xz" | head -n 1)
  case $file in
  *.xz) xz -dc "$file" >"initramfs/modules/$module.ko" ;;
  *.ko) cp "$file" initramfs/modules/ ;;
  *) continue ;; # built into this kernel
  esac
  echo "$module" >>initramfs/modules/order
done <"$here/modules.txt"
install -m 755 "$here/init" initramfs/init
(cd initramfs && find . | cpio -o -H newc --quiet | gzip -1) >initramfs.gz
rm -rf state kernel rootfs rootfs.tar initramfs "$package"_*.deb
