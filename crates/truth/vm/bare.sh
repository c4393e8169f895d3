#!/bin/bash
# bare.sh make FOLDER ARCHITECTURE PACKAGE SUITE: puts what a guest with nothing but a kernel and busybox boots into a new FOLDER, from
# packages of SUITE of Debian or of Ubuntu for ARCHITECTURE (amd64, arm64): the kernel of PACKAGE, or of the one that PACKAGE depends on
# (vmlinuz), its modules for NVMe and ext4 in the order in which they are loaded, and busybox.
# bare.sh boot FOLDER ARCHITECTURE IOLAB JOB: boots a guest under QEMU with an ext4 file system on an NVMe disk at /mnt and the static
# program IOLAB in its path, carries the shell script JOB out there, and prints what that prints. The exit code is that of JOB; 99: the
# guest did not come to its end.
set -eu

make() {
  local folder=$1 architecture=$2 package=$3 suite=$4 source kernel modules version line number=10
  mkdir "$folder"
  cd "$folder"
  # Lists of its own: the machine's stay as they are.
  mkdir -p state/lists/partial state/cache/archives/partial
  case $suite in
    # Debian has no key of Ubuntu. Nothing of its packages runs outside of the guest, which has no network.
    bionic* | resolute*) source="[arch=$architecture trusted=yes] http://archive.ubuntu.com/ubuntu" ;;
    *) source="[arch=$architecture] $(apt-cache policy base-files | awk '/http/ { print $2; exit }')" ;;
  esac
  echo "deb $source $suite main" >state/sources.list
  : >state/status
  apt=(-qq -o APT::Sandbox::User=root -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture"
    -o "Dir::Etc::sourcelist=$PWD/state/sources.list" -o Dir::Etc::sourceparts=/dev/null -o "Dir::State=$PWD/state"
    -o "Dir::State::status=$PWD/state/status" -o "Dir::Cache=$PWD/state/cache")
  apt-get "${apt[@]}" update
  kernel=$(apt-cache "${apt[@]}" depends "$package" | awk '/Depends: linux-image/ { print $2; exit }')
  kernel=${kernel:-$package} kernel=${kernel#linux-image-} kernel=${kernel#unsigned-}
  # Ubuntu has modules in a package of their own, and wraps the kernel that is signed.
  apt-get "${apt[@]}" download "linux-image-unsigned-$kernel" "linux-modules-$kernel" 2>/dev/null ||
    apt-get "${apt[@]}" download "linux-image-$kernel"
  apt-get "${apt[@]}" download busybox-static
  for package in *.deb; do dpkg-deb -x "$package" unpacked; done
  plain_kernel unpacked/boot/vmlinuz-* >vmlinuz
  # What is built in is printed as such.
  [ -d unpacked/lib/modules ] || mv unpacked/usr/lib unpacked/lib
  version=$(basename unpacked/lib/modules/*)
  depmod -b unpacked "$version"
  mkdir modules
  for modules in crc32c nvme ext4; do
    while read -r line; do
      number=$((number + 1))
      cp "$line" "modules/$number-$(basename "$line")"
    done < <(modprobe -d unpacked -S "$version" --show-depends "$modules" 2>/dev/null | awk '$1 == "insmod" { print $2 }')
  done
  for line in modules/*.xz; do [ ! -e "$line" ] || xz -d "$line"; done
  for line in modules/*.zst; do [ ! -e "$line" ] || zstd -dq --rm "$line"; done
  cp unpacked/bin/busybox busybox 2>/dev/null || cp unpacked/usr/bin/busybox busybox
  rm -r state unpacked ./*.deb
}

# The kernel itself, of one that EFI unpacks ("zimg", its place and length: drivers/firmware/efi/libstub/zboot-header.S of Linux).
plain_kernel() {
  local start length
  if [ "$(dd if="$1" bs=1 skip=4 count=4 status=none)" != zimg ]; then
    cat "$1"
    return
  fi
  read -r start length < <(od -A n -t u4 --endian=little -j 8 -N 8 "$1")
  tail -c "+$((start + 1))" "$1" | head -c "$length" | case $(dd if="$1" bs=1 skip=24 count=4 status=none) in zstd) zstd -dc ;; *) gzip -dc ;; esac
}

boot() {
  local guest=$1 architecture=$2 iolab=$3 job=$4 code console machine
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
# The firmware leaves a line begun.
echo
echo "== begin"
sh /job
echo "== end $?"
poweroff -f
INIT
  chmod +x "$place/root/init" "$place/root/bin/"*
  (cd "$place/root" && find . | cpio -o -H newc --quiet | gzip -1) >"$place/initramfs"
  truncate --size 256M "$place/disk"
  mke2fs -q -t ext4 "$place/disk"
  case $architecture in
    arm64) console=ttyAMA0 machine=(qemu-system-aarch64 -M virt -cpu neoverse-n1) ;;
    amd64) console=ttyS0 machine=(qemu-system-x86_64 -M q35 -accel tcg -cpu Nehalem) ;;
  esac
  # Two minutes on an idle machine.
  timeout 3600 "${machine[@]}" -smp 2 -m 3072 -nographic -no-reboot \
    -kernel "$guest/vmlinuz" -initrd "$place/initramfs" -append "console=$console quiet panic=-1" \
    -drive "file=$place/disk,format=raw,if=none,id=disk" -device nvme,drive=disk,serial=lab \
    </dev/null | tr -d '\r' >"$place/console" || :
  sed -n '/^== begin$/,/^== end /p' "$place/console" | sed '1d;/^== end /d'
  code=$(sed -n 's/^== end //p' "$place/console" | tail -n 1)
  grep -q '^== begin$' "$place/console" || code=
  [ -n "$code" ] || { tail -n 20 "$place/console" >&2; exit 99; }
  exit "$code"
}

"$@"
