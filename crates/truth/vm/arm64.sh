#!/bin/bash
# arm64.sh make FOLDER PACKAGE SUITE: puts what an arm64 guest boots into a new FOLDER, from Debian's packages of SUITE: the kernel of
# PACKAGE (vmlinuz), its modules for NVMe and ext4 in the order in which they are loaded, and busybox.
# arm64.sh boot FOLDER IOLAB JOB: boots a guest under QEMU with an ext4 file system on an NVMe disk at /mnt and the static program IOLAB
# in its path, carries the shell script JOB out there, and prints what that prints. The exit code is that of JOB; 99: the guest did
# not come to its end.
set -eu

make() {
  local folder=$1 package=$2 suite=$3 mirror kernel modules version line number=10
  mkdir "$folder"
  cd "$folder"
  # Lists of its own: the machine's stay as they are.
  mkdir -p state/lists/partial state/cache/archives/partial
  mirror=$(apt-cache policy base-files | awk '/http/ { print $2; exit }')
  echo "deb [arch=arm64] $mirror $suite main" >state/sources.list
  : >state/status
  apt=(-qq -o APT::Sandbox::User=root -o APT::Architecture=arm64 -o APT::Architectures=arm64
    -o "Dir::Etc::sourcelist=$PWD/state/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State=$PWD/state"
    -o "Dir::State::status=$PWD/state/status" -o "Dir::Cache=$PWD/state/cache")
  apt-get "${apt[@]}" update
  kernel=$(apt-cache "${apt[@]}" depends "$package" | awk '/Depends: linux-image/ { print $2; exit }')
  apt-get "${apt[@]}" download "$kernel" busybox-static
  for package in *.deb; do dpkg-deb -x "$package" unpacked; done
  cp unpacked/boot/vmlinuz-* vmlinuz
  # What is built in is printed as such.
  [ -d unpacked/lib/modules ] || mv unpacked/usr/lib unpacked/lib
  version=$(basename unpacked/lib/modules/*)
  depmod -b unpacked "$version"
  mkdir modules
  for modules in crc32c nvme ext4; do
    while read -r line; do
      number=$((number + 1))
      cp "$line" "modules/$number-$(basename "$line")"
    done < <(modprobe -d unpacked -S "$version" --show-depends "$modules" | awk '$1 == "insmod" { print $2 }')
  done
  for line in modules/*.xz; do [ ! -e "$line" ] || xz -d "$line"; done
  cp unpacked/bin/busybox busybox 2>/dev/null || cp unpacked/usr/bin/busybox busybox
  rm -r state unpacked ./*.deb
}

boot() {
  local guest=$1 iolab=$2 job=$3 code
  place=$(mktemp -d)
  trap 'rm -r "$place"' EXIT
  mkdir -p "$place"/root/{bin,proc,sys,dev,tmp,mnt,modules}
  cp "$guest/busybox" "$place/root/bin/busybox"
  cp "$iolab" "$place/root/bin/iolab"
  cp "$job" "$place/root/job"
  cp "$guest"/modules/*.ko "$place/root/modules" 2>/dev/null || :
  cat >"$place/root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
# A module that two others need is there twice.
for module in /modules/*.ko; do insmod "$module" 2>/dev/null; done
tries=0
until mount /dev/nvme0n1 /mnt 2>/dev/null || [ "$((tries += 1))" = 60 ]; do sleep 1; done
export HOME=/tmp TERM=dumb COLUMNS=100 LC_ALL=C.UTF-8
cd /tmp
echo "== begin"
sh /job
echo "== end $?"
poweroff -f
INIT
  chmod +x "$place/root/init" "$place/root/bin/"*
  (cd "$place/root" && find . | cpio -o -H newc --quiet | gzip -1) >"$place/initramfs"
  truncate --size 256M "$place/disk"
  mke2fs -q -t ext4 "$place/disk"
  # Two minutes on an idle machine.
  timeout 3600 qemu-system-aarch64 -M virt -cpu neoverse-n1 -smp 2 -m 1024 -nographic -no-reboot \
    -kernel "$guest/vmlinuz" -initrd "$place/initramfs" -append "console=ttyAMA0 quiet panic=-1" \
    -drive "file=$place/disk,format=raw,if=none,id=disk" -device nvme,drive=disk,serial=lab \
    </dev/null | tr -d '\r' >"$place/console" || :
  sed -n '/^== begin$/,/^== end /p' "$place/console" | sed '1d;/^== end /d'
  code=$(sed -n 's/^== end //p' "$place/console" | tail -n 1)
  [ -n "$code" ] || { tail -n 20 "$place/console" >&2; exit 99; }
  exit "$code"
}

"$@"
