//! Writes to existing files never fill a file system: holes, shared extents and copy-on-write data take free
//! space, on the file system of a file and below loop devices.

use crate::rows::rows;

const STEPS: &str = r#"
with=
# Free space of a file system, MiB.
free() { echo $(($(stat -f -c '%a * %S' $1) / 1048576)); }
# NAME SIZE KIND: a file system on a loop device over a sparse file.
system() {
  truncate -s $2 $1.img; over below $1.img; _name=$1
  case $3 in ext4) mkfs.ext4 -qF -m 0 $below ;; xfs) mkfs.xfs -qf -m reflink=1 $below ;; btrfs) mkfs.btrfs -qf $below ;; esac >/dev/null
  mounted $_name $below -o noatime
}
# TARGET PLACE: refused for a lack of space there, even in a dry run, and none is taken.
cramped() { before=$(free $2); refuses $1 -; with=--dry-run; refuses $1 - 'too little space is free'; with=; [ $(($(free $2) + 1)) -ge $before ]; }
# TARGET [ARGUMENT...]
fits() { _target=$1; shift; with="$*"; accepts $_target -; with=; }
noise() { head -c ${2}M /dev/urandom >$1; sync -f $1; }
most() { echo $(($(free $1) * 3 / 5)); }

holes() { system m 640M $1; truncate -s 1G m/sparse; cramped $m/sparse $m; refuses $m/sparse - 'choose --size '; fits $m/sparse --size 16MiB; }
unwritten() { system m 640M $1; fallocate -l $(most $m)M m/unwritten || lacking; sync -f m/unwritten; $2 $m/unwritten ${3-}; }
shared() {
  system m 640M $1; mkdir m/folder; bytes=$(most $m)
  # Without copy-on-write, unshared extents are written in place.
  [ $1 != btrfs ] || chattr +C m/folder
  noise m/folder/file $bytes; fits $m/folder/file
  cp --reflink=always m/folder/file m/folder/copy; sync -f m/folder/copy
  cramped $m/folder/file $m; cramped $m/folder/copy $m
}
below() {
  system bottom 640M ext4; truncate -s 1G bottom/sparse; over device bottom/sparse
  cramped $device $bottom; fits $device --size 16MiB
  # A directory and a file of a file system there, which itself has enough room; a loop device over a loop device.
  truncate -s 4G bottom/top.img; over top bottom/top.img; mkfs.$1 -q $top; mounted top $top -o noatime
  truncate -s 1G top/sparse; over upper top/sparse
  cramped $top/sparse $bottom; cramped $upper $bottom; fits $upper --size 16MiB
  with="--size 1GiB"; refuses $top none top.img; with=
  # The default is smaller, and the reserve stays.
  fits $top; [ $(free $bottom) -ge 60 ]
}
# The disk of the run file fills up in mid-run, down to the last block; it is still full when the results are read.
full() {
  mkdir target; fallocate -l $(($(free $m) - 40))M m/most
  $iolab run read-random $root/target --set bs=4k,8k,16k --size 1M --time .02 --budget 60s --precision .01% -o $m/run.iolab >out 2>&1 & run=$!; later kill $run
  logged m/run.iolab
  # btrfs has no room for a name before its last block is used.
  for block in 1M 4k 512; do dd if=/dev/zero of=m/$block bs=$block 2>/dev/null || sync -f m; done
  code=0; wait $run || code=$?
  ended 1; says 'No space left' ' kept in '; rmdir target
  $iolab table m/run.iolab
}
"#;

rows! {
    STEPS;

    holes_are_not_filled_without_room_for_them, Ext4, "holes ext4";
    holes_of_xfs_are_not_filled, Xfs, "holes xfs";
    holes_of_btrfs_are_not_filled, Btrfs, "holes btrfs";
    holes_in_memory_are_not_filled, Mount, r#"
        mounted m none -t tmpfs -o size=200m; truncate -s 1G m/sparse
        cramped $m/sparse $m; fits $m/sparse --size 16MiB --buffered
    "#;
    several_files_are_counted_together, Ext4, r#"
        system m 640M ext4; bytes=$(most $m)
        truncate -s ${bytes}M m/one m/other
        fits $m/one --dry-run
        with=$m/other; refuses $m/one -
        fits $m/one $m/other --size 16MiB
    "#;
    unwritten_space_of_ext4_is_the_files, Ext4, "unwritten ext4 fits";
    unwritten_space_of_xfs_is_the_files, Xfs, "unwritten xfs fits";
    unwritten_space_is_new_with_copy_on_write, Btrfs, "unwritten btrfs cramped $root/m";
    shared_extents_of_xfs_are_new_space, Xfs, "shared xfs";
    shared_extents_of_btrfs_are_new_space, Btrfs, "shared btrfs";
    holes_below_loop_devices_are_not_filled, Ext4, "below ext4";
    holes_below_an_xfs_are_not_filled, Xfs, "below xfs";
    what_an_overlay_copies_is_new_space, Overlay, r#"
        system m 256M ext4; mkdir lower merged m/upper m/work; noise lower/file $(free $m); noise lower/small 16
        mount -t overlay overlay -o lowerdir=$root/lower,upperdir=$m/upper,workdir=$m/work merged || lacking; later umount $root/merged
        cramped $root/merged/file $m
        with="--size 1MiB"; refuses $root/merged/file -
        fits $root/merged/small --size 1MiB
    "#;
    disk_of_the_run_file_fills_btrfs, Btrfs, "truncate -s 128M i; over i i; mkfs.btrfs -qfM $i; mounted m $i; full";
    disk_of_the_run_file_fills_ext4, Ext4, "truncate -s 128M i; over i i; mkfs.ext4 -qF -b 1024 $i; mounted m $i; full";
    disk_of_the_run_file_fills_xfs, Xfs, "system m 640M xfs; full";
}
