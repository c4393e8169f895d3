//! Targets that are named, backed, held or lent in unusual ways, and targets that become others.

use iolab_truth::Scene;
use iolab_truth::system::{lacks, unless_missing};
use needs::Need;

use crate::rows::{play_in, rows};
use crate::stacks::needs_tools;
use crate::stage::alone;

rows! {
    "";

    clones_share_extents_and_not_data, Btrfs, r#"
        file pool 480M; mkfs.btrfs -qf $pool; over device $pool; mounted at $device
        cd at; btrfs -q subvolume create v; truncate -s 64M v/im; mkfs.ext4 -qF v/im
        cp --reflink=always v/im clone; btrfs -q subvolume snapshot v snapshot >/dev/null; cd $root
        over below $at/v/im; mounted inner $below
        head -c 2M /dev/urandom >inner/d; sync -f inner
        sum() { cksum <inner/d; umount inner; e2fsck -fn $below >/dev/null 2>&1; mount $below inner; cksum <inner/d; }
        before=$(sum)
        accepts $at/clone ext4; accepts $at/snapshot/im ext4
        refuses $at/v/im - $below
        [ "$(sum)" = "$before" ]
    "#;

    read_only_mounts_are_in_use, Loop, r#"
        image im; over device $im --read-only; mounted at $device -o ro; over window $im --offset 16M
        refuses $im ext4 $device $at; refuses $window - $device $at
        file free; over idle $free
        refuses $free -
    "#;

    devices_are_claimed_and_may_be_read_only, Loop, r#"
        file blank; over device $blank; file other; over fixed $other --read-only
        refuses $device none 'its data would be destroyed'; refuses $blank - "the backing file of $device"
        ln -s $device link; refuses $root/link - "the symlink $root/link" "name $device itself"
        ask $fixed -; ended 2; says "$fixed is set read-only"
        # The claim: no other program may take the device during the run.
        begun $device; ! mkfs.ext4 -q $device >out 2>&1; says 'in use'
        kill $run; wait $run || :
        accepts $device -
        # A mount that is shown nowhere.
        mkfs.ext4 -q $device; mounted at $device; holding sh -c "exec 3>$at/f; touch ready; exec sleep 1000"; umount -l $at
        refuses $device - 'the kernel holds a claim on it'
        released
    "#;

    devices_are_identified_by_number_not_name, Loop, r#"
        busy; file private; over idle $private
        node() { mknod $root/$1 b $(stat -c '0x%t 0x%T' $2); }
        node a $device; node b $window; node c $idle
        refuses $root/a - $folder; refuses $root/b - $folder
        accepts $root/c -
    "#;

    links_lead_to_what_is_in_use, Loop, r#"
        busy; ln -s $root here; ln -s $file to-file; ln -s $window to-window
        refuses $root/to-file -; refuses $root/to-window -; refuses $root/here/file ext4
        # By the number of a descriptor.
        for path in $file $device $window; do exec 3<$path; refuses /proc/self/fd/3 -; exec 3<&-; done
    "#;

    a_file_is_mounted_by_itself, Loop, r#"
        busy; touch place; mount --bind $file place; later umount $root/place
        refuses $root/place ext4 $device $folder
    "#;

    memory_that_is_a_disk_is_a_disk, Zram, r#"
        memory 64M; device=$target
        accepts $device -
        mkfs.ext4 -qF $device; mounted at $device; over window $device --offset 16M
        refuses $device - $at; refuses $window - $device $at
    "#;

    a_partition_that_two_disks_show, Partitions, r#"
        file both 128M; over disk $both --partscan
        printf 'label: dos\nsize=60M\nsize=60M\n' | sfdisk -q --no-reread --no-tell-kernel $disk; partx --update $disk || lacking
        mkfs.ext4 -qF ${disk}p1; mounted at ${disk}p1
        accepts ${disk}p2 -
        over second $both --partscan; partx --update $second
        refuses ${second}p1 ext4 $disk
    "#;

    a_hard_link_leads_out_of_a_layer, Overlay, r#"
        overlay; truncate -s 64M m/f; over device m/f
        mkdir e; ln u/f e/g; over same e/g; over window e/g --offset 16M
        mkfs.ext4 -q $device; mounted at $device
        refuses $same ext4 $device $at; refuses $window ext4 $device $at
    "#;

    // Once their names are gone, a file of an overlay and the one in its layer cannot be distinguished from others.
    overlay_files_without_names_are_refused, Overlay, r#"
        overlay; truncate -s 64M m/f; over device m/f; over layer u/f
        mkfs.ext4 -q $device; rm m/f; mkdir at
        mount $device at; refuses $layer ext4 'cannot tell'; umount at
        mount $layer at; refuses $device ext4 'cannot tell'; umount at
    "#;

    // A `/proc` with processes alone lacks swap.
    swap_that_proc_does_not_tell, Swap, r#"
        file f; over device $f; mkswap -q $device; swapon $device || lacking; later swapoff $device; over above $device
        by='unshare --mount --propagation private sh -euc "mount -t proc -o subset=pid none /proc; exec \"\$@\"" sh'
        refuses $above swap
    "#;

    swap_files_are_known_by_every_path, Swap, r#"
        busy; mkdir bind; mount --bind $folder bind; later umount $root/bind
        dd if=/dev/zero of=folder/swap bs=1M count=12 status=none; chmod 600 folder/swap; mkswap -q folder/swap
        swapon $folder/swap || lacking; later swapoff $folder/swap; over above $folder/swap
        for path in $folder/swap $root/bind/swap $above; do refuses $path swap swap; done
    "#;

    backing_files_are_found_after_renaming_and_removal, Loop, r#"
        busy; mv $file moved; truncate -s 24M $file
        accepts $file -
        refuses $root/moved - $device $folder; refuses $window - $device $folder
        rm moved
        accepts $file -
        refuses $window - $device $folder
    "#;

    backing_files_that_no_path_reaches_are_known, Loop, r#"
        image file 320M; over device $file; mounted folder $device
        image folder/im; over inner folder/im; mounted at $inner; over window folder/im --offset 16M
        umount --lazy $folder
        refuses $window -; refuses $device -
    "#;

    backing_files_in_other_mount_namespaces_are_known, Loop, r#"
        mkdir hidden
        holding unshare --mount --propagation private sh -euc 'mount -t tmpfs none hidden; cd hidden; mkdir at; truncate -s 64M im; mkfs.ext4 -qF im
            losetup --find --show im >../list; losetup --find --show --offset 16M im >>../list; mount $(head -n 1 ../list) at
            touch ../ready; until [ -e ../over ]; do sleep .1; done; umount at; losetup --detach $(cat ../list)'
        later "touch $root/over; while kill -0 $holder; do sleep .1; done"
        whole=$(head -n 1 list); window=$(tail -n 1 list)
        refuses $whole - $whole; refuses $window - $window $whole
    "#;

    lower_file_backing_through_the_overlay, Overlay, r#"
        mkdir l; image l/f; overlay
        # Opened read-only, it is not copied up.
        over device m/f --read-only; mounted ro $device -o ro
        refuses $root/l/f ext4
    "#;

    device_marked_for_detaching_is_in_use, Loop, r#"
        image im; mounted at $im -o loop; device=$(findmnt -no SOURCE $at); over window $im --offset 16M
        refuses $im ext4 $device $at; refuses $window - $device $at
    "#;

    names_with_blanks_and_line_breaks_are_read, Loop, r#"
        name=$root/$(printf 'a b\\n\n\\040c\t"d"'); at=$root/$(printf 'at a b\\n\\040c\t"d"')
        truncate -s 64M "$name"; mkfs.ext4 -qF "$name"; over device "$name"; over window "$name" --offset 16M
        mkdir "$at"; mount $device "$at"; later umount $device
        refuses "$name" ext4 $device; refuses $window - $device
    "#;

    backing_paths_beyond_path_max_are_known, Loop, r#"
        part=$(printf '%0200d' 0); n=0
        while [ $n -lt 25 ]; do mkdir $part; cd -P ./$part; n=$((n + 1)); done
        truncate -s 64M im; mkfs.ext4 -qF im; over device im; over window im --offset 16M; cd $root
        mounted at $device
        refuses $window - $window
    "#;

    covered_backing_file_is_still_in_use, Loop, r#"
        mkdir folder; image folder/im; over device $root/folder/im; mounted at $device; over window folder/im --offset 16M
        mount -t tmpfs none folder; later umount $root/folder; truncate -s 24M folder/im
        refuses $window -
        accepts $root/folder/im -
    "#;

    // Two paths to one disk that no layer has joined.
    use_of_one_path_uses_the_other, ScsiDebug, r#"
        [ ! -e /sys/module/scsi_debug ] || { echo 'it is in use' >&2; lacking; }
        modprobe sd_mod && modprobe scsi_debug dev_size_mb=64 add_host=2 per_host_store=0 vpd_use_hostno=0 || lacking
        later modprobe --remove scsi_debug; settled
        set -- $(for at in /sys/block/sd*; do ! grep -q scsi_debug $at/device/model || echo /dev/${at##*/} $(cat $at/device/wwid); done)
        one=$1 id=$2 other=$3; [ "$id" = "$4" ]
        accepts $other -
        mkfs.ext4 -qF $one; settled; mounted at $one
        refuses $other ext4 $id $one $at; umount $at
        mkswap -q $one; swapon $one; later swapoff $one; settled
        refuses $other swap $id $one
        swapoff $one; wipefs -qa $one; settled
        printf 'label: dos\nsize=16M\nsize=16M\n' | sfdisk -q $one; blockdev --rereadpt $other; settled
        mkfs.ext4 -qF ${one}1; settled; mount ${one}1 $at
        refuses $other mbr,ext4 $id ${one}1 $at; refuses ${other}1 ext4 $id ${one}1 $at
        accepts ${other}2 -
    "#;

    what_the_kernel_exports_is_in_use, Nvmet, r#"
        modprobe nvmet || lacking
        file f; over device $f; name=iolab-truth-$$; at=/sys/kernel/config/nvmet/subsystems/$name
        end="rmdir $at/namespaces/1 $at"; later "! test -d $at || $end"
        mkdir $at $at/namespaces/1; printf %s $device >$at/namespaces/1/device_path; echo 1 >$at/namespaces/1/enable
        refuses $device - $name
        $end
        accepts $device -
    "#;

    a_process_elsewhere_that_may_write_is_known, Loop, r#"
        file f; over device $f
        for held in $f $device; do
            written_by $held unshare --mount --propagation private
            refuses $device - process
            released
        done
    "#;

    // A process that serves a file system has its image open read-only.
    image_that_is_mounted_by_a_process, Squashfuse, r#"
        command -v mksquashfs >/dev/null || lacking
        mkdir from at; head -c 8M /dev/urandom >from/data; mksquashfs from im -quiet -no-progress >/dev/null; file im; over device $im
        later "! mountpoint -q $root/at || umount $root/at"
        for mounted in $im $device; do
            squashfuse $mounted at >/dev/null 2>&1
            refuses $device squashfs squashfuse
            umount at
        done
        accepts $device squashfs
    "#;

    // In a container, `/proc` has only the container's processes; the kernel knows all openers of files, but not of devices.
    a_process_outside_a_container_that_may_write, Loop, r#"
        by='unshare --pid --fork --mount-proc'
        file private
        accepts $private -
        written_by $private
        refuses $private -
        file free; over device $free
        refuses $device - 'PID namespace'
    "#;

    // Root may lack the right to see other processes' open files, with or without their names hidden.
    a_process_that_root_may_not_look_into, Loop, r#"
        file f; over device $f
        for hides in 'mount -t proc -o hidepid=2 proc /proc;' ''; do
            within="unshare --mount --propagation private sh -euc '$hides exec \"\$@\"' sh setpriv --bounding-set"
            written_by $device; by="$within -sys_ptrace"
            refuses $device - CAP_SYS_PTRACE
            released; by="$within +sys_ptrace"
            accepts $device -
        done
        # The kernel knows all openers of files.
        file private; by='setpriv --bounding-set -sys_ptrace'
        accepts $private -
    "#;

    // Missing rights to check must not stop an ordinary user on their own files.
    ordinary_user_may_write_to_own_files, OrdinaryUser, r#"
        by=$nobody
        file own; chown 65534:65534 own .
        accepts $own -; accepts $root none
    "#;

    // A reset gives the device other bytes under the same number.
    a_zram_device_is_not_resumed_in_place, Zram, r#"
        memory 64M; device=$target
        begun $device; kill -INT $run; code=0; wait $run || code=$?
        ended 130; says 'start a new run: '
        code=0; $iolab resume run.iolab --destroy-data >out 2>&1 || code=$?; ended 3
    "#;

    // LOOP_GET_STATUS64 and LOOP_SET_STATUS64, whose structure has the offset at byte 24.
    loop_device_with_other_bytes_ends_the_run, Python, r#"
        file f 64M; head -c 64M /dev/urandom >$f; over device $f
        begun $device
        python3 -c 'import fcntl,struct,sys; f=open(sys.argv[1],"r+b"); b=bytearray(232); fcntl.ioctl(f,0x4c05,b); struct.pack_into("<Q",b,24,16<<20); fcntl.ioctl(f,0x4c04,b)' $device
        code=0; wait $run || code=$?
        ended 3; says 'another part of its file'
    "#;

    // What peers and programs are lent is found by `/proc`: without it nothing is lent, and nothing made.
    without_proc_nothing_is_lent_and_nothing_made, Fio, r#"
        mkdir place
        none='umount -l /proc && exec "$@"'
        # A /proc of another PID namespace, whose processes end with the first one.
        foreign='mkfifo go; unshare --pid --fork sh -c "mount -t proc proc /proc && echo >go && sleep 60" & read -r _ <go; "$@"; code=$?; rm go; exit $code'
        for hides in "$none" "$foreign"; do
            for words in "read-random place --set bs=64k $peer" "linkage place --set command='cat {file}' --size 4k --budget 1s"; do
                rm -f run.iolab; code=0
                eval "unshare --mount --pid --fork --kill-child sh -c \"\$hides\" sh \"\$iolab\" run $words -o run.iolab" >out 2>&1 || code=$?
                ended 3; says "cannot be given iolab's target" /proc mount
                spares filling; rmdir place; mkdir place
            done
        done
    "#;

    peer_is_refused_when_iolabs_file_is_unreadable, OrdinaryUser, r#"
        command -v fio >/dev/null || lacking
        mkdir -m 777 place; cp "$iolab" hidden; chmod 711 hidden
        try() { rm -f run.iolab; code=0; eval "$nobody \"\$1\" run read-random place --set bs=64k $peer -o run.iolab" >out 2>&1 || code=$?; }
        try $root/hidden; ended 3
        # Only the rights of the program differ.
        try "$iolab"; ended 0
    "#;

    devices_are_guarded_without_the_peers_own_guard, Fio, r#"
        file below 64M; over device $below; with=$peer
        accepts $device ext4
        "$iolab" export run.iolab --format json >out 2>/dev/null
        grep -q '"tool": *"fio"' out; spares /fd/
        mkfs.ext4 -qF $device; mounted at $device; echo 'of others' >at/file
        refuses $device ext4 'mounted at'
        [ "$(cat at/file)" = 'of others' ]
    "#;
}

/// EROFS mounts a file by itself: no loop device shows it.
#[test]
fn image_mounted_without_a_loop_device() {
    let _alone = alone();
    let test = || {
        needs_tools()?;
        let scene = Scene::new()?;
        let make = "mkdir from at; head -c 20M /dev/urandom >from/data; mkfs.erofs im from 2>&1; later umount $root/at";
        play_in(&scene, Need::Erofs, make)?;
        let [image, at] = ["im", "at"].map(|name| scene.folder().join(name));
        let flags = rustix::mount::MountFlags::RDONLY;
        rustix::mount::mount(&image, &at, "erofs", flags, None)
            .map_err(lacks(Need::Erofs, "erofs from a file"))?;
        // The name by which it was mounted leads nowhere in the end.
        let asks = "refuses $root/im erofs; over window im --offset 8M; refuses $window - $root/at; mv im moved; refuses $window erofs erofs";
        play_in(&scene, Need::Erofs, asks)
    };
    unless_missing(test());
}
