use std::fs;

use needs::Tree;

use super::*;
use crate::Need;

/// A fake `/sys`, with a disk of two partitions.
fn machine(files: &[(&str, &str)]) -> Tree {
    let sys = Tree::empty();
    for (number, start) in [("1", "2048"), ("2", "43008")] {
        let (folder, dev) = (format!("devices/vda/vda{number}"), format!("252:{number}"));
        sys.files(&folder, &[("partition", number), ("start", start)]);
        sys.files(&folder, &[("size", "40960"), ("dev", &dev)]);
        sys.link(&format!("dev/block/{dev}"), &folder);
    }
    add(&sys, "vda", (252, 0), &[], files);
    sys
}

/// Adds a device with these members and files to a fake `/sys`.
fn add(sys: &Tree, name: &str, number: Number, members: &[&str], files: &[(&str, &str)]) {
    let folder = format!("devices/{name}");
    let number = format!("{}:{}", number.0, number.1);
    sys.files(&folder, &[("dev", &number), ("size", "204800")]);
    sys.files(&folder, files);
    for member in members {
        let link = format!("{folder}/slaves/{member}");
        sys.link(&link, &format!("devices/{member}"));
    }
    sys.link(&format!("dev/block/{number}"), &folder);
    sys.link(&format!("block/{name}"), &folder);
}

fn told(sys: &Path, number: Number) -> Option<String> {
    mapped(sys, number, None)
}

fn mapped(sys: &Path, number: Number, table: Option<&str>) -> Option<String> {
    kernel(sys, &|_| table.map(str::to_owned)).layer(number, DEPTH_MAX)
}

fn kernel<'a>(sys: &'a Path, table: &'a dyn Fn(Number) -> Option<String>) -> Kernel<'a> {
    Kernel {
        sys,
        open: Some(&|_, _| None),
        table,
    }
}

fn of(files: &[(&str, &str)], number: Number) -> Option<String> {
    told(machine(files).path(), number)
}

#[test]
fn a_disk_without_an_id_has_no_identity() {
    let of = |files: &[(&str, &str)]| of(files, (252, 0));
    // Linux keeps the number over a reset of a zram device.
    assert_eq!(of(&[("diskseq", "9")]), None);
    // Zeros and blanks are not an id.
    assert_eq!(of(&[("serial", "0000 0000")]), None);
    let named = of(&[("serial", "S1")]);
    assert!(named.is_some());
    assert_eq!(named, of(&[("serial", "S1"), ("diskseq", "10")]));
    assert_ne!(named, of(&[("serial", "S2")]));
    assert_ne!(named, of(&[("serial", "S1"), ("size", "99")]));
}

/// Two NVMe disks of QEMU with a blank serial number, as Linux 6.12 shows them before and after their names
/// were swapped.
#[test]
fn two_disks_without_serial_numbers_are_distinct() {
    let blank = "nvme.1b36--51454d55204e564d65204374726c-00000001";
    for (file, id) in [
        ("wwid", blank),
        (
            "device/wwid",
            "t10.ATA     QEMU HARDDISK                           ",
        ),
        ("device/wwid", "t10.Generic Flash Disk      "),
        ("device/wwid", "naa.0000000000000000"),
        ("wwid", "eui.ffffffffffffffff"),
        ("serial", "ffffffff"),
        ("device/serial", "0x00000000"),
        ("device/serial", " "),
    ] {
        assert_eq!(of(&[(file, id)], (252, 0)), None, "{file} {id:?}");
        assert_eq!(of(&[(file, id)], (252, 1)), None, "{file} {id:?}");
    }
    for id in [
        "nvme.1b36-616263-51454d55204e564d65204374726c-00000001",
        "t10.ATA     QEMU HARDDISK                           QM00003",
        "naa.5000c500a1b2c3d4",
    ] {
        assert!(of(&[("wwid", id)], (252, 0)).is_some(), "{id}");
    }
    // Namespaces of one controller share its serial number.
    let namespace = |number| of(&[("device/serial", "abc"), ("nsid", number)], (252, 0));
    assert_ne!(namespace("1"), namespace("2"));
}

#[test]
fn an_id_that_two_disks_have_tells_neither() {
    let is_told = |id: (&str, &str), other: &[(&str, &str)]| {
        let sys = machine(&[id]);
        add(&sys, "vdb", (252, 16), &[], other);
        told(sys.path(), (252, 0)).is_some()
    };
    let serial = ("serial", "123456789");
    assert!(!is_told(serial, &[serial]));
    assert!(is_told(serial, &[("serial", "987654321")]));
    assert!(is_told(serial, &[serial, ("size", "7")]));
    // Two paths to one disk.
    let worldwide = ("device/wwid", "naa.5000c500a1b2c3d4");
    assert!(is_told(worldwide, &[worldwide]));
}

/// An array and mapped devices on two disks with these numbers.
fn stack(minors: [u32; 2], serials: [&str; 2]) -> Tree {
    let sys = Tree::empty();
    let add = |name: &str, number, members: &[&str], files: &[(&str, &str)]| {
        add(&sys, name, number, members, files);
    };
    for ((minor, serial), name) in minors.iter().zip(serials).zip(["vda", "vdb"]) {
        add(name, (252, *minor), &[], &[("serial", serial)]);
    }
    let both = ["vda", "vdb"];
    let level = ("md/level", "raid0");
    add("md0", (9, 0), &both, &[("md/uuid", "1:2:3:4"), level]);
    add("dm-0", (253, 0), &both, &[("dm/uuid", "mpath-3600")]);
    sys
}

#[test]
fn mapped_device_is_identified_by_table_and_members() {
    let array = |sys: &Tree| told(sys.path(), (9, 0)).expect("told");
    let first = stack([0, 16], ["ser1", "ser2"]);
    let renumbered = stack([16, 0], ["ser1", "ser2"]);
    assert_eq!(array(&first), array(&renumbered));
    assert_ne!(array(&first), array(&stack([0, 16], ["ser1", "ser3"])));
    let mapped = |sys: &Tree, table: &str| mapped(sys.path(), (253, 0), Some(table));
    let crypt = |number: &str| format!("0 4096 crypt aes-xts-plain64 :64:logon:x 0 {number} 32768");
    let before = mapped(&first, &crypt("252:0"));
    assert!(before.is_some());
    let again = stack([0, 16], ["ser1", "ser2"]);
    assert_eq!(before, mapped(&again, &crypt("252:0")));
    let replaced = stack([0, 16], ["ser1", "ser3"]);
    for (sys, number) in [
        (&first, "252:16"),
        (&renumbered, "252:0"),
        (&replaced, "252:0"),
    ] {
        assert_ne!(before, mapped(sys, &crypt(number)), "on the other disk");
    }
}

#[test]
fn file_is_identified_by_device_ids_below() {
    let place = |files: &[(&str, &str)], number, system| {
        let sys = machine(files);
        let kernel = kernel(sys.path(), &|_| None);
        kernel
            .place_of_file(number, system, &[(252, 1)], DEPTH_MAX)
            .expect("told")
    };
    let named = [("serial", "S1")];
    let ext4 = place(&named, (252, 1), 12);
    assert_eq!(
        ext4,
        place(&named, (0, 40), 12),
        "another number, as btrfs has at each mount"
    );
    assert_ne!(ext4, place(&named, (252, 1), 13), "made anew");
    assert_ne!(ext4, place(&[("serial", "S2")], (252, 1), 12), "a copy");
    // Only the number identifies the place.
    for (files, system) in [(&[][..], 12), (&named[..], 0)] {
        let text = place(files, (252, 1), system);
        assert_ne!(text, place(files, (252, 17), system));
    }
}

/// Results for root on a partition, and for an ordinary user, who cannot read the disk's table.
#[test]
fn a_file_has_one_identity_for_all_users() {
    let place = |open, entry: &[(&str, &str)]| {
        let sys = machine(&[&[("serial", "S1")], entry].concat());
        let kernel = Kernel {
            open,
            ..kernel(sys.path(), &|_| None)
        };
        kernel.place_of_file((252, 1), 12, &[(252, 1)], DEPTH_MAX)
    };
    let entry = [("vda1/uevent", "PARTUUID=a-b")];
    assert_eq!(place(None, &entry), place(None, &[]));
    assert_ne!(place(Some(&|_, _| None), &entry), place(None, &entry));
}

#[test]
fn partitions_are_told_by_their_places() {
    let named = [("serial", "S1")];
    let of = |files: &[(&str, &str)], minor| of(files, (252, minor)).expect("told");
    assert_ne!(of(&named, 1), of(&named, 2));
    // The second partition has become the first.
    let moved = [("serial", "S1"), ("vda1/start", "43008")];
    assert_ne!(of(&named, 1), of(&moved, 1));
    assert_eq!(of(&named, 2), of(&moved, 1));
    let anew = [("serial", "S1"), ("vda1/uevent", "PARTN=1\nPARTUUID=a-b\n")];
    assert_ne!(of(&named, 1), of(&anew, 1), "made anew at its place");
    let sys = machine(&named);
    let place = |part: &str| place(&sys.path().join("devices/vda").join(part));
    assert_eq!(place("vda2"), Some((43_008 * 512, 40_960 * 512)));
    assert_eq!(place(""), None);
}

#[test]
fn recreated_partition_is_recognised_by_the_table() {
    let disk = tempfile::tempfile().expect("a file");
    let put = |at: u64, bytes: &[u8]| disk.write_all_at(bytes, at).expect("written");
    put(0, &[0; 1 << 16]);
    assert_eq!(entry_at(&disk, 1 << 20), None, "no table");
    put(440, &[1, 2, 3, 4]);
    put(510, &[0x55, 0xaa]);
    assert_eq!(
        entry_at(&disk, 1 << 20).as_deref(),
        Some("[01, 02, 03, 04]")
    );
    for sector in [4096, 512] {
        put(sector, b"EFI PART");
        put(sector + 72, &2_u64.to_le_bytes());
        put(sector + 80, &4_u32.to_le_bytes());
        put(sector + 84, &128_u32.to_le_bytes());
        let second = 2 * sector + 128;
        put(second + 16, &[sector.to_le_bytes()[1]; 16]);
        put(second + 32, &((1 << 20) / sector).to_le_bytes());
        let expected = format!("{:02x?}", [sector.to_le_bytes()[1]; 16]);
        assert_eq!(entry_at(&disk, 1 << 20), Some(expected));
    }
    // Sizes that no table has.
    put(512 + 72, &[0xff; 16]);
    assert_eq!(entry_at(&disk, 1 << 20), None);
}

#[test]
fn a_circle_has_no_identity() {
    let sys = machine(&[("serial", "S1")]);
    sys.link("devices/vda/slaves/vda", "devices/vda");
    assert_eq!(told(sys.path(), (252, 0)), None);
}

#[test]
fn new_file_of_the_same_name_is_distinguished() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("data");
    let of = |path: &Path| {
        let target = Target::open(path, &Need::reading(1 << 12)).expect("opened");
        let identity = target.lasting_identity();
        assert_eq!(identity.file_bytes, Some(1 << 12));
        identity.file
    };
    let fill = || fs::write(&path, [0; 1 << 12]).expect("written");
    fill();
    let Some(first) = of(&path) else {
        return needs::skip(needs::Need::BirthTimes, folder.path().display());
    };
    assert_eq!(of(&path), Some(first.clone()));
    fs::remove_file(&path).expect("removed");
    fill();
    assert_ne!(of(&path), Some(first));
    // A scratch file made for a session needs no identity.
    let scratch = Target::open(folder.path(), &Need::writing(1 << 12)).expect("made");
    assert_eq!(scratch.lasting_identity(), LastingIdentity::default());
    assert!(scratch.is_writable());
}
