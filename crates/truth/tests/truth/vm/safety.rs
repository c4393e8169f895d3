//! Used targets are never written, whatever layers are in between; free ones are.

use iolab_truth::stacks::mapping::serve_nbd;

use super::lab::{END_EXPORTS, Lab, disk, lab_of_safety as lab};

/// Makes an ext4 on a device, mounted at `/mnt/NAME`, with a file whose checksum [`is_whole`] compares. It is
/// left read-only, so that the kernel writes nothing by itself.
fn mounted(lab: &mut Lab, device: &str, name: &str) {
    lab.shell(&format!(
        "mkfs.ext4 -qF -E lazy_itable_init=0,lazy_journal_init=0 {device}; mkdir -p /mnt/{name}; mount {device} /mnt/{name}
        head -c 4M /dev/urandom >/mnt/{name}/data; mkdir /mnt/{name}/folder; mount -o remount,ro /mnt/{name}
        sha256sum /mnt/{name}/data >/tmp/{name}.sum"
    ));
}

/// Checks that a mounted file system, read again from below, has its content, and is intact by its own tool.
#[track_caller]
fn is_whole(lab: &mut Lab, device: &str, name: &str) {
    lab.shell(&format!(
        "umount /mnt/{name}; e2fsck -fn {device}; mount -o ro {device} /mnt/{name}; sha256sum -c /tmp/{name}.sum"
    ));
}

#[test]
fn a_mapped_device_keeps_what_lies_below_it() {
    let Some(mut lab) = lab() else { return };
    let (a, b) = (disk("a"), disk("b"));
    lab.shell(&format!(
        "printf '0 65536 linear {a} 2048\n65536 65536 linear {b} 0\n' | dmsetup create pair"
    ));
    for target in [&a, &b] {
        lab.refused(target, "--destroy-data", &["/dev/dm-"]);
    }
    mounted(&mut lab, "/dev/mapper/pair", "pair");
    // The message names the mount, not the device in between.
    for target in [&a, &b] {
        lab.refused(target, "--destroy-data=ext4", &["mounted at /mnt/pair"]);
    }
    lab.refused(
        "/dev/mapper/pair",
        "--destroy-data=ext4",
        &["mounted at /mnt/pair"],
    );
    is_whole(&mut lab, "/dev/mapper/pair", "pair");
    lab.shell("umount /mnt/pair");
    lab.refused("/dev/mapper/pair", "--destroy-data", &["ext4"]);
    lab.accepted("/dev/mapper/pair", "--destroy-data=ext4", &["c"]);
}

#[test]
fn mapped_devices_over_the_same_bytes_conflict() {
    let Some(mut lab) = lab() else { return };
    let a = disk("a");
    lab.shell(&format!(
        "dmsetup create first --table '0 65536 linear {a} 0'
        dmsetup create inside --table '0 8192 linear {a} 4096'
        dmsetup create beside --table '0 65536 linear {a} 65536'"
    ));
    mounted(&mut lab, "/dev/mapper/first", "first");
    lab.refused(
        "/dev/mapper/inside",
        "--destroy-data",
        &["mounted at /mnt/first"],
    );
    lab.accepted("/dev/mapper/beside", "--destroy-data", &["b", "c"]);
    is_whole(&mut lab, "/dev/mapper/first", "first");
}

#[test]
fn volumes_are_told_apart() {
    let Some(mut lab) = lab() else { return };
    let (a, b) = (disk("a"), disk("b"));
    lab.shell(&format!(
        "vgcreate -q group {a} {b}; lvcreate -qy -L 40m -n used group {a}; lvcreate -qy -L 40m -n free group {a}"
    ));
    mounted(&mut lab, "/dev/group/used", "used");
    for target in ["/dev/group/used", "/dev/mapper/group-used"] {
        lab.refused(target, "--destroy-data=ext4", &["mounted at /mnt/used"]);
    }
    lab.refused(&a, "--destroy-data=lvm2,ext4", &["mounted at /mnt/used"]);
    lab.refused(&b, "--destroy-data", &["lvm2"]);
    // Its name is a symlink, and its neighbour on the same disk is in use.
    lab.accepted("/dev/group/free", "--destroy-data", &["b", "c"]);
    is_whole(&mut lab, "/dev/group/used", "used");
    lab.shell("umount /mnt/used; vgchange -q -an group");
    lab.refused(&a, "--destroy-data", &["lvm2"]);
    lab.accepted(&a, "--destroy-data=lvm2", &["b", "c"]);
}

/// Volumes of a pool have separate blocks, and share its free space.
#[test]
fn thin_volumes_are_distinguished_without_filling_their_pool() {
    let Some(mut lab) = lab() else { return };
    let a = disk("a");
    lab.shell(&format!(
        "vgcreate -q group {a}; lvcreate -qy --type thin-pool -L 64m --chunksize 64k --poolmetadatasize 4m -Zn -n pool group
        lvcreate -qy -V 60m --thinpool pool -n used group; lvcreate -qy -V 400m --thinpool pool -n free group"
    ));
    mounted(&mut lab, "/dev/group/used", "used");
    lab.accepted("/dev/group/free", "--destroy-data", &["b", "c"]);
    is_whole(&mut lab, "/dev/group/used", "used");
    for inner in ["group-pool_tdata", "group-pool_tmeta", "group-pool-tpool"] {
        lab.refused(&format!("/dev/mapper/{inner}"), "--destroy-data", &[]);
    }
    // More than the pool has left: all its volumes would lose their writes.
    let size = ["--size", "100M", "--budget", "1", "--time", ".1"];
    let words = [
        "run", "write-random", "/dev/group/free", "--destroy-data", "--bs", "64k",
    ];
    let answer = lab.iolab(&[&words[..], &size].concat());
    assert_eq!(answer.code, Some(3), "{}", answer.stderr);
    assert!(answer.stderr.contains("/dev/dm-"), "{}", answer.stderr);
    // A scratch file in a directory takes space from the same pool.
    lab.shell("mkfs.ext4 -qF -E nodiscard /dev/group/free; mkdir -p /mnt/free; mount /dev/group/free /mnt/free");
    let answer = lab.iolab(&[&["run", "write-random", "/mnt/free"], &size[..]].concat());
    assert_ne!(answer.code, Some(0), "{}", answer.stdout);
    assert!(answer.stderr.contains("/dev/dm-"), "{}", answer.stderr);
    is_whole(&mut lab, "/dev/group/used", "used");
}

#[test]
fn a_snapshot_and_its_origin_are_one() {
    let Some(mut lab) = lab() else { return };
    let a = disk("a");
    lab.shell(&format!(
        "vgcreate -q group {a}; lvcreate -qy -L 40m -n origin group"
    ));
    mounted(&mut lab, "/dev/group/origin", "origin");
    lab.shell("lvcreate -qy -s -L 8m -n copy group/origin; umount /mnt/origin; mkdir -p /mnt/copy; mount -o ro /dev/group/copy /mnt/copy");
    // A write to the origin is first copied to the snapshot, which may lack the space.
    lab.refused(
        "/dev/group/origin",
        "--destroy-data=ext4",
        &["mounted at /mnt/copy"],
    );
    for inner in ["group-origin-real", "group-copy-cow"] {
        lab.refused(&format!("/dev/mapper/{inner}"), "--destroy-data=ext4", &[]);
    }
    lab.shell("umount /mnt/copy");
    lab.refused("/dev/group/origin", "--destroy-data=ext4", &["/dev/dm-"]);
}

#[test]
fn raid_members_are_used_and_identified_by_metadata() {
    let Some(mut lab) = lab() else { return };
    let (a, b) = (disk("a"), disk("b"));
    for metadata in ["0.90", "1.0", "1.2"] {
        lab.shell(&format!(
            "mdadm -q --create /dev/md9 --run --level=1 --raid-devices=2 --metadata={metadata} --assume-clean --bitmap=none {a} {b}"
        ));
        mounted(&mut lab, "/dev/md9", "raid");
        for target in [&a, &b] {
            lab.refused_but_for(
                target,
                "--destroy-data=mdraid,ext4",
                &["mounted at /mnt/raid"],
                &["a", "b"],
            );
        }
        is_whole(&mut lab, "/dev/md9", "raid");
        lab.shell("umount /mnt/raid");
        for target in [&a, &b] {
            lab.refused_but_for(
                target,
                "--destroy-data=mdraid,ext4",
                &["/dev/md9"],
                &["a", "b"],
            );
        }
        lab.shell("mdadm -q --stop /dev/md9");
        lab.refused(&a, "--destroy-data=ext4", &["mdraid"]);
        lab.accepted(&a, "--destroy-data=mdraid,ext4", &["b", "c"]);
        lab.shell(&format!(
            "mdadm -q --zero-superblock {a} {b}; wipefs -qa {a} {b}"
        ));
    }
}

#[test]
fn cipher_hides_the_content_but_not_the_use() {
    let Some(mut lab) = lab() else { return };
    let a = disk("a");
    lab.shell(&format!(
        "echo -n secret >key; cryptsetup -q luksFormat --pbkdf pbkdf2 --pbkdf-force-iterations 1000 {a} key
        cryptsetup open --key-file key {a} open"
    ));
    mounted(&mut lab, "/dev/mapper/open", "open");
    lab.refused(&a, "--destroy-data=luks", &["mounted at /mnt/open"]);
    is_whole(&mut lab, "/dev/mapper/open", "open");
    lab.shell("umount /mnt/open; cryptsetup close open");
    lab.refused(&a, "--destroy-data", &["luks"]);
}

#[test]
fn swap_on_a_partitions_volume_is_named() {
    let Some(mut lab) = lab() else { return };
    let a = disk("a");
    lab.shell(&format!(
        "printf 'label: gpt\nsize=100M\n' | sfdisk -q {a}; udevadm settle
        vgcreate -q group {a}-part1; lvcreate -qy -L 40m -n swap group; mkswap -q /dev/group/swap; swapon /dev/group/swap"
    ));
    for target in [
        a.clone(),
        format!("{a}-part1"),
        "/dev/group/swap".to_owned(),
    ] {
        lab.refused(&target, "--destroy-data=gpt,lvm2,swap", &["used as swap"]);
    }
}

#[test]
fn only_the_systems_own_symlinks_are_followed() {
    let Some(mut lab) = lab() else { return };
    let (a, real) = (disk("a"), lab.shell(&format!("readlink -f {}", disk("a"))));
    lab.accepted(&a, "--destroy-data", &["b", "c"]);
    lab.accepted(&real, "--destroy-data", &["b", "c"]);
    lab.shell(&format!(
        "ln -s {a} /tmp/link; ln -s {real} /dev/shm/link; mkdir -p /dev/open; chmod 777 /dev/open; ln -s {real} /dev/open/link
        ln -s {real} /dev/foreign; chown -h 1000 /dev/foreign"
    ));
    for link in [
        "/tmp/link", "/dev/shm/link", "/dev/open/link", "/dev/foreign",
    ] {
        lab.refused(link, "--destroy-data", &["symlink", &real]);
    }
    lab.shell("rm -r /dev/shm/link /dev/open /dev/foreign");
}

#[test]
fn what_a_usb_gadget_exports_is_in_use() {
    let Some(mut lab) = lab() else { return };
    let a = disk("a");
    let at = "/sys/kernel/config/usb_gadget/g1";
    lab.shell(&format!(
        "modprobe -a libcomposite usb_f_mass_storage; mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
        mkdir -p {at}/functions/mass_storage.0; readlink -f {a} >{at}/functions/mass_storage.0/lun.0/file"
    ));
    lab.refused(&a, "--destroy-data", &["USB gadget g1 (mass_storage.0)"]);
    // Another present exporter may be named first.
    lab.shell("umount /sys/kernel/config");
    lab.refused(&a, "--destroy-data", &["configfs is not mounted"]);
    lab.shell(&format!(
        "mount -t configfs config /sys/kernel/config; echo >{at}/functions/mass_storage.0/lun.0/file
        rmdir {at}/functions/mass_storage.0 {at}"
    ));
    lab.accepted(&a, "--destroy-data", &["b", "c"]);
}

#[test]
fn flash_memory_below_volumes_is_in_use() {
    let Some(mut lab) = lab() else { return };
    lab.shell("modprobe nandsim; modprobe mtdblock; modprobe ubi mtd=0");
    lab.refused("/dev/mtdblock0", "--destroy-data", &["ubi0"]);
    lab.shell("modprobe -r ubi");
    // A process that has the flash memory itself open for writing.
    lab.holding("/dev/mtd0", |lab| {
        lab.refused("/dev/mtdblock0", "--destroy-data", &["open for writing"])
    });
    lab.shell("modprobe -r mtdblock nandsim");
}

#[test]
fn commands_past_the_block_device_are_a_use() {
    let Some(mut lab) = lab() else { return };
    let (first, second) = (lab.namespace("lab", 1), lab.namespace("lab", 2));
    lab.holding(&first.replace("nvme", "ng"), |lab| {
        lab.refused(&first, "--destroy-data", &["open for writing"]);
        // Another namespace of the same controller.
        lab.accepted_elsewhere(&second, "--destroy-data", &["a", "b", "c"]);
    });
    // The controller itself sends commands to all its namespaces.
    let controller = lab.shell(
        "for at in /sys/class/nvme/nvme*; do [ \"$(tr -d ' ' <$at/serial)\" = lab ] && echo /dev/${at##*/}; done",
    );
    lab.holding(&controller, |lab| {
        for target in [&first, &second] {
            lab.refused(target, "--destroy-data", &["open for writing"]);
        }
    });
    lab.shell("modprobe sd_mod; modprobe sg; modprobe scsi_debug dev_size_mb=64");
    let name = lab.shell("udevadm settle; for at in /sys/block/sd*; do echo ${at##*/}; done");
    let generic = lab.shell(&format!("ls /sys/block/{name}/device/scsi_generic"));
    lab.holding(&format!("/dev/{generic}"), |lab| {
        lab.refused(
            &format!("/dev/{name}"),
            "--destroy-data",
            &["open for writing"],
        );
    });
    lab.accepted_elsewhere(&format!("/dev/{name}"), "--destroy-data", &["a", "b", "c"]);
    lab.shell("udevadm settle; modprobe -r scsi_debug");
}

/// Checks that the doctor reports this kind of attachment, and its meaning for results.
#[track_caller]
fn assert_network(lab: &mut Lab, device: &str, transport: &str) {
    let doctor = lab.doctor(device);
    assert_eq!(
        doctor["environment"]["device_transport"], transport,
        "{doctor:#}"
    );
    let findings = doctor["findings"].as_array().expect("a list");
    let is_told = findings.iter().any(|found| found["rule"] == "layer");
    assert!(is_told, "{doctor:#}");
}

/// An export of this machine to itself is the exported disk: a use below is a use above, and the export is not
/// another use.
#[test]
fn export_to_itself_is_the_exported_disk() {
    let Some(mut lab) = lab() else { return };
    let a = disk("a");
    lab.shell(&format!(
        "modprobe -a nvmet nvmet-tcp nvme-tcp; mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
        cd /sys/kernel/config/nvmet; mkdir subsystems/own subsystems/own/namespaces/1 ports/1
        cd subsystems/own; echo 1 >attr_allow_any_host; echo own >attr_serial
        printf %s {a} >namespaces/1/device_path; echo 1 >namespaces/1/enable
        cd ../../ports/1; echo tcp >addr_trtype; echo ipv4 >addr_adrfam; echo 127.0.0.1 >addr_traddr; echo 4420 >addr_trsvcid
        ln -s /sys/kernel/config/nvmet/subsystems/own subsystems/own
        nvme connect -t tcp -n own -a 127.0.0.1 -s 4420; udevadm settle"
    ));
    let client = lab.namespace("own", 1);
    lab.refused(&a, "--destroy-data", &["exported by nvmet (subsystem own"]);
    lab.accepted(&client, "--destroy-data", &["b", "c"]);
    assert_network(&mut lab, &client, "nvme-fabric");
    // The kernel exports it without a claim.
    mounted(&mut lab, &a, "own");
    lab.refused(&client, "--destroy-data=ext4", &["mounted at /mnt/own"]);
    is_whole(&mut lab, &a, "own");
    lab.shell("umount /mnt/own");
    lab.shell(END_EXPORTS);
    // LIO claims what it exports.
    let real = lab.shell(&format!("readlink -f {a}"));
    lab.shell(&format!(
        "modprobe -a sd_mod target_core_mod target_core_iblock tcm_loop; cd /sys/kernel/config/target
        mkdir -p core/iblock_0/own; echo udev_path={real} >core/iblock_0/own/control; echo 1 >core/iblock_0/own/enable
        echo 1b4e28ba-2fa1-11d2-883f-0016d3cca427 >core/iblock_0/own/wwn/vpd_unit_serial
        at=loopback/naa.6001405000000001/tpgt_1; mkdir -p $at/lun/lun_0; echo naa.6001405000000002 >$at/nexus
        ln -s $PWD/core/iblock_0/own $at/lun/lun_0/port; udevadm settle"
    ));
    let client = lab.shell("for at in /sys/block/sd*; do echo /dev/${at##*/}; done");
    lab.refused(
        &a,
        "--destroy-data",
        &["exported by LIO (backstore iblock_0/own)"],
    );
    lab.accepted(&client, "--destroy-data=ext4", &["b", "c"]);
    let upon = lab.shell(&format!("modprobe loop; losetup --find --show {a}"));
    mounted(&mut lab, &upon, "own");
    lab.refused(&client, "--destroy-data=ext4", &["mounted at /mnt/own"]);
    lab.shell(&format!("umount /mnt/own; losetup -d {upon}"));
    lab.shell(END_EXPORTS);
}

#[test]
fn network_block_server_uses_its_disk() {
    let Some(mut lab) = lab() else { return };
    let a = disk("a");
    lab.shell(&format!(
        "modprobe nbd; {}; nbd-client -N x 127.0.0.1 10809 /dev/nbd0",
        serve_nbd("/tmp/nbd", 10_809, &a)
    ));
    lab.refused(&a, "--destroy-data", &["nbd-server"]);
    mounted(&mut lab, "/dev/nbd0", "nbd");
    lab.refused(&a, "--destroy-data=ext4", &["nbd-server"]);
    lab.refused("/dev/nbd0", "--destroy-data=ext4", &["mounted at /mnt/nbd"]);
    assert_network(&mut lab, "/dev/nbd0", "network");
    lab.shell("umount /mnt/nbd; nbd-client -d /dev/nbd0; kill $(cat /tmp/nbd.pid)");
}

#[test]
fn two_paths_to_a_disk_are_one() {
    let Some(mut lab) = lab() else { return };
    lab.shell("modprobe sd_mod; modprobe dm-multipath; modprobe dm-round-robin; modprobe scsi_debug dev_size_mb=64 add_host=2 per_host_store=0 vpd_use_hostno=0");
    let names = lab.shell("udevadm settle; for at in /sys/block/sd*; do echo /dev/${at##*/}; done");
    let [one, other] = names.lines().collect::<Vec<_>>()[..] else {
        panic!("no two disks: {names}")
    };
    mounted(&mut lab, one, "path");
    lab.refused(other, "--destroy-data=ext4", &["mounted at /mnt/path"]);
    is_whole(&mut lab, one, "path");
    lab.shell("umount /mnt/path");
    lab.shell(&format!(
        "dmsetup create both --table \"0 $(blockdev --getsz {one}) multipath 0 0 1 1 round-robin 0 2 1 {one} 100 {other} 100\""
    ));
    for path in [one, other] {
        lab.refused(path, "--destroy-data=ext4", &["/dev/dm-"]);
    }
    lab.shell("mount /dev/mapper/both /mnt/path");
    for path in [one, other, "/dev/mapper/both"] {
        lab.refused(path, "--destroy-data=ext4", &["mounted at /mnt/path"]);
    }
    lab.shell("umount /mnt/path");
    lab.accepted_elsewhere("/dev/mapper/both", "--destroy-data=ext4", &["a", "b", "c"]);
    lab.shell("dmsetup remove both; modprobe -r scsi_debug");
}

/// A disk that has grown shows its new size on the rescanned path.
#[test]
fn path_with_an_older_size_is_recognised() {
    let Some(mut lab) = lab() else { return };
    lab.shell("modprobe sd_mod; modprobe scsi_debug dev_size_mb=64 add_host=2 per_host_store=0 vpd_use_hostno=0");
    let names = lab.shell("udevadm settle; for at in /sys/block/sd*; do echo ${at##*/}; done");
    let [one, other] = names.lines().collect::<Vec<_>>()[..] else {
        panic!("no two disks: {names}")
    };
    let [at_one, at_other] = [one, other].map(|name| format!("/dev/{name}"));
    mounted(&mut lab, &at_one, "path");
    let sizes = lab.shell(&format!(
        "echo 1 >/sys/bus/pseudo/drivers/scsi_debug/virtual_gb; echo 1 >/sys/block/{other}/device/rescan
        cat /sys/block/{one}/size /sys/block/{other}/size"
    ));
    let [small, large] = sizes.lines().collect::<Vec<_>>()[..] else {
        panic!("no two sizes: {sizes}")
    };
    assert_ne!(small, large);
    lab.refused(&at_other, "--destroy-data=ext4", &["mounted at /mnt/path"]);
    is_whole(&mut lab, &at_one, "path");
    lab.shell("umount /mnt/path; modprobe -r scsi_debug");
}

#[test]
fn zoned_disk_is_refused_with_the_reason() {
    let Some(mut lab) = lab() else { return };
    let zoned = lab.namespace("lab", 3);
    // Even sequentially: zones with data accept no write at their start.
    let in_order = lab.iolab(&[
        "run", "write-size", &zoned, "--bs", "64k", "--size", "4M", "--budget", ".3",
        "--destroy-data",
    ]);
    for answer in [lab.write(&zoned, "--destroy-data"), in_order] {
        assert_eq!(answer.code, Some(2), "{}", answer.stderr);
        assert!(answer.stderr.contains("host-managed"), "{}", answer.stderr);
    }
}

#[test]
fn a_suspended_device_is_named_at_once() {
    let Some(mut lab) = lab() else { return };
    let a = disk("a");
    lab.shell(&format!("dmsetup create quiet --table '0 131072 linear {a} 0'; dmsetup create above --table '0 65536 linear /dev/mapper/quiet 0'"));
    mounted(&mut lab, "/dev/mapper/above", "above");
    lab.shell("mount -o remount,rw /mnt/above; dmsetup suspend quiet");
    let words = [
        "run", "read-random", "/dev/mapper/above", "--size", "4M", "--budget", "1",
    ];
    for words in [
        &words[..],
        &[
            "run", "write-random", "/mnt/above/folder", "--size", "4M", "--budget", "1",
        ],
    ] {
        let answer = lab.iolab(words);
        assert_eq!(answer.code, Some(3), "{}{}", answer.stdout, answer.stderr);
        assert!(
            answer.stderr.contains("dmsetup resume quiet"),
            "{}",
            answer.stderr
        );
    }
    lab.shell("dmsetup resume quiet");
    let answer = lab.iolab(&words);
    assert_eq!(answer.code, Some(0), "{}{}", answer.stdout, answer.stderr);
}

#[test]
fn purge_erases_only_its_whole_namespace() {
    let Some(mut lab) = lab() else { return };
    let (own, shared) = (lab.namespace("lab", 1), lab.namespace("lab", 2));
    let fill = |lab: &mut Lab, device: &str| {
        lab.shell(&format!(
            "yes | dd of={device} bs=1M count=32 iflag=fullblock oflag=direct status=none; blockdev --flushbufs {device}"
        ))
    };
    // Bytes of the first 32 MiB that are not zero.
    let kept = |lab: &mut Lab, device: &str| -> u64 {
        let count = lab.shell(&format!(
            "dd if={device} bs=1M count=32 iflag=direct status=none | tr -d '\\0' | wc -c"
        ));
        count.trim().parse().expect("a number")
    };
    for device in [&own, &shared] {
        fill(&mut lab, device);
    }
    let words = "--size 4M --set bs=64k --set precondition=purge --set bytes=64k --set time=none --set trials_min=1 --set trials_max=1";
    let purge = |lab: &mut Lab, device: &str, consent: &[&str]| {
        let words: Vec<&str> = words.split(' ').collect();
        let run = ["run", "write-random", device, "-o", "run.iolab"];
        lab.iolab(&[&run[..], &words, consent].concat())
    };
    let refused = purge(&mut lab, &own, &[]);
    assert_eq!(
        refused.code,
        Some(3),
        "{}{}",
        refused.stdout,
        refused.stderr
    );
    assert_eq!(kept(&mut lab, &own), 32 << 20);
    let done = purge(&mut lab, &own, &["--destroy-data"]);
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let left = kept(&mut lab, &own);
    // Data of the trials: at most the region.
    assert!(left <= 4 << 20, "{left} bytes are left");
    assert_eq!(kept(&mut lab, &shared), 32 << 20);
    // The other namespace may belong to several hosts: its region is trimmed, and the rest stays.
    let done = purge(&mut lab, &shared, &["--destroy-data"]);
    assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    let left = kept(&mut lab, &shared);
    assert!(
        (28 << 20..=32 << 20).contains(&left),
        "{left} bytes are left"
    );
}

#[test]
fn purge_of_a_volume_keeps_the_disks_rest() {
    let Some(mut lab) = lab() else { return };
    let disk = lab.namespace("lab", 1);
    let words = "--size 4M --set bs=64k --precondition purge --set bytes=64k --set time=none --set trials_min=1 --set trials_max=1 --destroy-data";
    let purge = |lab: &mut Lab| {
        let words: Vec<&str> = words.split(' ').collect();
        let run = [
            "run", "write-random", "/dev/mapper/volume", "-o", "run.iolab",
        ];
        let done = lab.iolab(&[&run[..], &words].concat());
        assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
    };
    // A volume next to a mounted one on the same namespace.
    lab.shell(&format!(
        "dmsetup create beside --table '0 65536 linear {disk} 0'
        dmsetup create volume --table '0 65536 linear {disk} 65536'"
    ));
    mounted(&mut lab, "/dev/mapper/beside", "beside");
    purge(&mut lab);
    is_whole(&mut lab, "/dev/mapper/beside", "beside");
    lab.shell("umount /mnt/beside; dmsetup remove volume; dmsetup remove beside; rm -f run.iolab");
    // A volume on a partition next to a mounted one.
    lab.shell(&format!(
        "wipefs -qa {disk}; printf 'label: gpt\\nsize=32MiB\\nsize=32MiB\\n' | sfdisk -q {disk}; udevadm settle
        dmsetup create volume --table \"0 $(blockdev --getsz {disk}p2) linear {disk}p2 0\""
    ));
    let first = format!("{disk}p1");
    mounted(&mut lab, &first, "beside");
    purge(&mut lab);
    is_whole(&mut lab, &first, "beside");
    lab.shell(&format!(
        "umount /mnt/beside; dmsetup remove volume; wipefs -qa {disk}; blockdev --rereadpt {disk}"
    ));
}
