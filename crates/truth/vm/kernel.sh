#!/bin/bash
# kernel.sh FOLDER SUITE ROOT: makes vmlinuz, initramfs.gz and modules.img of the kernel of a suite of Debian in a new FOLDER, as root;
# ROOT is what root.sh made.
set -eu
here=$(realpath "$(dirname "$0")")
suite=$2 root=$3
mkdir "$1"
cd "$1"

# A list of its own: the machine's stays as it is.
mkdir -p state/lists/partial state/cache/archives/partial
mirror=$(apt-cache policy base-files | awk '/http/ { print $2; exit }')
echo "deb ${mirror:-http://deb.debian.org/debian} $suite main" >state/sources.list
: >state/status
apt=(-qq -o APT::Sandbox::User=root -o "Dir::Etc::sourcelist=$PWD/state/sources.list" -o Dir::Etc::sourceparts=/dev/null
  -o "Dir::State=$PWD/state" -o "Dir::State::status=$PWD/state/status" -o "Dir::Cache=$PWD/state/cache")
apt-get "${apt[@]}" update
depends() { apt-cache "${apt[@]}" depends "$1" | awk -v name="^linux-($2)-" '/Depends:/ && $2 ~ name { print $2 }'; }
# Not the one for clouds, which lacks most drivers. New kernels come in several packages.
package=$(depends linux-image-amd64 image | head -n 1)
# shellcheck disable=SC2046
apt-get "${apt[@]}" download "$package" $(depends "$package" 'binary|modules')
for archive in *.deb; do dpkg-deb -x "$archive" kernel; done
cp "$(find kernel -type f -name 'vmlinuz*' | head -n 1)" vmlinuz
modules=$(find kernel -path '*/lib/modules/*' -prune | head -n 1)
version=${modules##*/}

rm -rf "$modules"/kernel/{sound,drivers/gpu,drivers/net/wireless,drivers/media}
mkdir -p tools/lib/modules
tar -xf "$root/depmod.tar" -C tools
mv "$modules" tools/lib/modules/
chroot tools /sbin/depmod "$version"
modules=tools/lib/modules/$version
size=$(du -sm "$modules" | cut -f 1)
mke2fs -q -t ext4 -O ^has_journal -d tools/lib/modules modules.img "$((size + size / 4 + 16))M"

mkdir -p initramfs/{bin,modules,proc,sys,dev,lower,rw,new}
cp "$(command -v busybox)" initramfs/bin/busybox
# One that is not static, as of the package busybox, needs its libraries.
for library in $(ldd initramfs/bin/busybox 2>/dev/null | grep -o '/[^ ]*'); do cp -L --parents "$library" initramfs; done
while read -r module; do
  file=$(find "$modules" -name "$module.ko" -o -name "$module.ko.xz" | head -n 1)
  case $file in
  *.xz) xz -dc "$file" >"initramfs/modules/$module.ko" ;;
  *.ko) cp "$file" initramfs/modules/ ;;
  *) continue ;; # built into this kernel
  esac
  echo "$module" >>initramfs/modules/order
done <"$here/modules.txt"
install -m 755 "$here/init" initramfs/init
(cd initramfs && find . | cpio -o -H newc --quiet | gzip -1) >initramfs.gz
rm -rf state kernel tools initramfs ./*.deb
