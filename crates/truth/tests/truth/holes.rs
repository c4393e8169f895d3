//! Kinds of use of a target that were once overlooked; and free targets next to them, which must stay free.

use crate::rows::rows;

const STEPS: &str = r#"
# A disk with two partitions, of which the second one is mounted.
disk() {
  file both 128M; over disk $both --partscan
  printf 'label: dos\nstart=2048,size=60M\nsize=60M\n' | sfdisk -q --no-reread --no-tell-kernel $disk; partx --update $disk || lacking partitions
  mkfs.ext4 -qF ${disk}p2; mounted at ${disk}p2
}
make() { case $1 in ext4) mkfs.ext4 -qF $2 ;; xfs) mkfs.xfs -qf $2 ;; btrfs) mkfs.btrfs -qf $2 ;; swap) mkswap -q $2 ;; esac; }
# FILE: a process with a shared, writable mapping whose descriptor is closed again, until it is `released`.
mapped_by() {
  { printf 'mmap -rw 0 65536\nclose\n'; exec tail --pid=$$ -f /dev/null; } | xfs_io $1 >/dev/null 2>&1 & holder=$!; later kill $holder
  until grep -q ' rw-s ' /proc/$holder/maps && ! readlink /proc/$holder/fd/* | grep -qxF $1; do kill -0 $holder; sleep .05; done
}
without() { by="unshare --mount --propagation private sh -c 'mount -t tmpfs none $1 && exec \"\$@\"' sh"; }
# KIND: a mounted file system, a file in it, and the device next to it are free; so is its own device, once it is idle and named.
beside() {
  file image 480M; over start $image --sizelimit 400M; make $1 $start; over rest $image --offset 400M
  accepts $rest -
  mounted at $start; accepts $rest -; accepts $at none; truncate -s 24M at/inside; accepts $at/inside -
  umount $at; accepts $start $1
}
"#;

rows! {
    STEPS;

    loop_device_over_part_of_a_mounted_image, Loop, "busy; refuses $window - $window $file $device $folder '(bytes 16 MiB to 64 MiB)' 'mounted at'";
    a_loop_device_over_a_mounted_loop_device, Loop, "busy; over above $device; refuses $above - $above $device $folder 'mounted at'";
    disk_with_a_mounted_partition_and_loop_above, Partitions, r#"
        disk; refuses $disk mbr,dos $disk ${disk}p2 $at 'mounted at'
        over above $disk; refuses $above mbr,dos $above ${disk}p2 $at 'mounted at'
    "#;
    loop_device_over_a_mounted_partitions_range, Partitions, "disk; over range $both --offset 61M; refuses $range - $range $both $disk";
    // The file is in a layer of an overlay: no further reason has to be named.
    file_backing_a_mounted_loop_through_an_overlay, Overlay, r#"
        overlay; truncate -s 64M m/f; over device m/f; mkfs.ext4 -qF $device; mounted at $device
        refuses $root/u/f - $root/u/f
    "#;
    overlay_file_whose_upper_backs_a_mount, Overlay, r#"
        overlay; truncate -s 64M m/f; over device u/f; mkfs.ext4 -qF $device; mounted at $device
        refuses $root/m/f - $root/m/f $device $at 'mounted at'
    "#;
    a_mount_that_only_another_namespace_sees, Loop, r#"
        image file; over device $file; over window $file --offset 16M; mkdir hidden
        holding unshare --mount --propagation private sh -c "mount $device hidden; touch ready; exec sleep 1000"
        refuses $device - $device; refuses $window - $window
    "#;
    four_layers_down_is_still_down, Btrfs, r#"
        file f 320M; over below $f; mkfs.btrfs -q $below; mounted at $below
        image at/im 128M; over device $im; mounted inner $device; over window $im --offset 64M; over above $window
        refuses $above - $above $im $inner 'mounted at'
    "#;
    the_external_log_of_an_xfs, Xfs, r#"
        file a 320M; file b 80M; over data $a; over log $b; mkfs.xfs -q -l logdev=$log,size=64m $data
        refuses $log - --destroy-data=xfs_external_log
        over above $log; mounted at $data -o logdev=$log; refuses $above xfs_external_log $above $log
        umount $at; losetup --detach $above; accepts $log xfs_external_log
    "#;
    the_external_journal_of_an_ext4, Ext4, r#"
        file a 64M; file b 16M; over data $a; over log $b; mkfs.ext4 -qF -b 4096 -O journal_dev $log; mkfs.ext4 -qF -b 4096 -J device=$log $data
        refuses $log - --destroy-data=; accepts $log jbd,ext2,ext3,ext4
    "#;
    swap_below_a_loop_device, Swap, r#"
        file f; over device $f; mkswap -q $device; swapon $device || lacking; later swapoff $device; over above $device
        refuses $above swap $above $device 'used as swap'
    "#;
    what_another_process_may_write, XfsIo, r#"
        file g; file f; over device $f
        for how in written_by mapped_by; do
            $how $g; refuses $g - $g process; released
            $how $f; refuses $device - $device $f process; released
            $how $device; refuses $device - $device process; released
        done
    "#;
    // A path inside the layer is refused for its place; the message need not name the process.
    file_open_for_writing_by_another_path, Overlay, r#"
        overlay; truncate -s 24M m/f
        for how in written_by mapped_by; do
            $how $root/u/f; refuses $root/m/f - $root/m/f process; released
            $how $root/m/f; refuses $root/u/f - $root/u/f; released
        done
    "#;
    an_idle_file_system_under_another_offset, Loop, "file f 64M; over device $f; mkfs.ext4 -qF $device; over window $f --offset 16M; refuses $window - $window $device";
    an_idle_file_system_in_the_file_below, Loop, "image f; over window $f --offset 16M; refuses $window - $window $f ext4";
    // Without `/sys` the loop devices are unknown; without `/proc`, the mounts.
    what_cannot_be_seen_is_in_use, Loop, r#"
        file f; file g; over device $g
        for hidden in /sys /proc; do without $hidden; refuses $f - $hidden; refuses $device - $hidden; done
        by=; busy; without /sys; refuses $file ext4 /sys
    "#;

    a_folder_is_free_wherever_it_lies, Overlay, r#"
        accepts $root none; mkdir folder bind; mount --bind folder bind; later umount $root/bind; accepts $root/bind none
        overlay; accepts $root/m none
    "#;
    // Writing to a file of the lower layer through the overlay writes a copy of it.
    a_file_of_ones_own_is_free, Overlay, r#"
        file f; accepts $f -; mkdir l; file l/below; overlay; truncate -s 24M m/f; accepts $root/m/f -
        before=$(cksum <l/below); accepts $root/m/below -; [ "$(cksum <l/below)" = "$before" ]
    "#;
    loop_device_over_a_private_file_is_free, Loop, "file f 64M; over device $f; over above $device --offset 8M --sizelimit 32M; accepts $above -";
    a_partition_next_to_a_mounted_one_is_free, Partitions, r#"
        disk; head -c 2M /dev/urandom >at/data; sync -f at; before=$(cksum <at/data)
        accepts ${disk}p1 -; over above ${disk}p1; accepts $above -
        umount $at; e2fsck -fn ${disk}p2; mount ${disk}p2 $at; [ "$(cksum <at/data)" = "$before" ]
    "#;
    what_does_not_overlap_an_ext4_is_free, Ext4, "beside ext4";
    what_does_not_overlap_an_xfs_is_free, Xfs, "beside xfs";
    what_does_not_overlap_a_btrfs_is_free, Btrfs, "beside btrfs";
    what_does_not_overlap_swap_is_free, Swap, r#"
        file image 64M; over start $image --sizelimit 32M; make swap $start; over rest $image --offset 32M; accepts $rest -; accepts $start swap
    "#;
    devices_of_one_idle_file_system_are_free, Btrfs, r#"
        file a 128M; file b 128M; over one $a; over other $b; mkfs.btrfs -q -d single -m raid1 $one $other; later "btrfs device scan --forget $one $other"
        accepts $one btrfs; accepts $other btrfs
    "#;
}
