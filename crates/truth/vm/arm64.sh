#!/bin/bash
# arm64.sh FOLDER: makes the kernel (vmlinuz) and busybox of an arm64 guest in a new FOLDER, from Debian's packages.
# arm64.sh FOLDER IOLAB JOB: boots a guest under QEMU with an ext4 file system on an NVMe disk at /mnt and the static program IOLAB in
# its path, carries the shell script JOB out there, and prints what that prints. The exit code is that of JOB; 99: the guest did not
# come to its end.
set -eu

if [ $# = 1 ]; then
  mkdir "$1"
  cd "$1"
  # Lists of its own: the machine's stay as they are.
  mkdir -p state/lists/partial state/cache/archives/partial
  mirror=$(apt-cache policy base-files | awk '/http/ { print $2; exit }')
  echo "deb [arch=arm64] $mirror bookworm main" >state/sources.list
  : >state/status
  apt=(-qq -o APT::Sandbox::User=root -o APT::Architecture=arm64 -o APT::Architectures=arm64
    -o "Dir::Etc::sourcelist=$PWD/state/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State=$PWD/state"
    -o "Dir::State::status=$PWD/state/status" -o "Dir::Cache=$PWD/state/cache")
  apt-get "${apt[@]}" update
  # The kernel for clouds has NVMe and ext4 built in.
  kernel=$(apt-cache "${apt[@]}" depends linux-image-cloud-arm64 | awk '/Depends: linux-image/ { print $2; exit }')
  apt-get "${apt[@]}" download "$kernel" busybox-static
  for package in *.deb; do dpkg-deb -x "$package" unpacked; done
  cp unpacked/boot/vmlinuz-* vmlinuz
  cp unpacked/bin/busybox busybox
  rm -r state unpacked ./*.deb
  exit
fi

guest=$1 iolab=$2 job=$3
place=$(mktemp -d)
trap 'rm -r "$place"' EXIT
mkdir -p "$place"/root/{bin,proc,sys,dev,tmp,mnt}
cp "$guest/busybox" "$iolab" "$place/root/bin/"
mv "$place/root/bin/$(basename "$iolab")" "$place/root/bin/iolab" 2>/dev/null || :
cp "$job" "$place/root/job"
cat >"$place/root/init" <<'INIT'
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount /dev/nvme0n1 /mnt
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
timeout 1200 qemu-system-aarch64 -M virt -cpu neoverse-n1 -smp 2 -m 1024 -nographic -no-reboot \
  -kernel "$guest/vmlinuz" -initrd "$place/initramfs" -append "console=ttyAMA0 quiet panic=-1" \
  -drive "file=$place/disk,format=raw,if=none,id=disk" -device nvme,drive=disk,serial=lab \
  </dev/null | tr -d '\r' >"$place/console" || :
sed -n '/^== begin$/,/^== end /p' "$place/console" | sed '1d;/^== end /d'
code=$(sed -n 's/^== end //p' "$place/console" | tail -n 1)
[ -n "$code" ] || { tail -n 20 "$place/console" >&2; exit 99; }
exit "$code"
