//! Tests.

use proptest::prelude::*;

use super::*;

const LENGTH: u64 = 260 << 30;

fn image(length: u64) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(length).unwrap();
    file
}

fn found(file: &File, length: u64) -> Vec<&'static str> {
    detect(file, 0, length).unwrap()
}

/// Every magic number of the table, at every position, alone on a blank image.
#[test]
fn every_row_of_the_table_is_found() {
    for format in FORMATS {
        for place in format.places {
            for magic in format.magics {
                let file = image(LENGTH);
                let probe = Probe {
                    file: &file,
                    start: 0,
                    length: LENGTH,
                };
                let offset = probe.place(*place).unwrap();
                plausible(&file, format.name, offset);
                file.write_all_at(magic, offset).unwrap();
                assert_eq!(found(&file, LENGTH), [format.name], "at {offset}");
            }
        }
    }
}

/// Further bytes that the checks of some formats need besides the magic number.
fn plausible(file: &File, name: &str, at: u64) {
    let put = |bytes: &[u8], offset| file.write_all_at(bytes, offset).unwrap();
    if name.starts_with("ext") && at != 0x438 {
        let base = at - 0x38;
        let is_copy = |bits: &u32| {
            let group = base >> (2 * bits + 3);
            let first = u64::from(*bits == 10) << 10;
            base == (group << (2 * bits + 3)) + first
        };
        let bits = (10..=12).rev().find(is_copy).unwrap();
        put(&(bits - 10).to_le_bytes(), base + 0x18);
        put(&[(base >> (2 * bits + 3)) as u8], base + 0x5a);
    }
    match name {
        "ext3" => put(&[4], at + 0x24),
        "ext4" => put(&[4, 0, 0, 0, 0x40], at + 0x24),
        "nilfs2" => put(&[2], at - 6),
        "hfs" => put(&[1], 1044),
        "jbd" => put(&[8], 0x460),
        "xfs_external_log" => put(&[0xfe, 0xed, 0xba, 0xbe, 0, 0, 0, 1, 0, 0, 0, 2], 512),
        "mbr" => put(&[0x80, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 0], 446),
        // The words of both have to add up to zero.
        "sun" => put(&[0xda, 0xbe], 510),
        "sgi" => put(&0x0be5_a941_u32.wrapping_neg().to_be_bytes(), 504),
        "vfat" => put(
            &[
                0xeb, 0x3c, 0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 1, 0, 2, 0, 2, 0, 0, 0xf8,
            ],
            0,
        ),
        _ => {}
    }
}

#[test]
fn a_blank_target_of_any_length_carries_nothing() {
    for length in [1, 63, 511, 512, 1024, 4096, 65536, 1 << 20, LENGTH] {
        assert!(found(&image(length), length).is_empty(), "{length}");
    }
}

#[test]
fn file_system_is_found_after_a_lost_table() {
    for start in FIRST_PARTITIONS {
        let file = image(LENGTH);
        file.write_all_at(b"XFSB", start).unwrap();
        let found = sites(&file, 0, LENGTH).unwrap();
        let places: Vec<_> = found
            .iter()
            .map(|site| (&*site.name, site.partition))
            .collect();
        assert_eq!(places, [("xfs", Some(start))]);
    }
}

/// File systems by mkfs: name, size in MiB, and whether it is found without its first 16 KiB.
#[test]
fn what_mkfs_makes_is_known() {
    use needs::Need::{Btrfs, Ext4, Swap, Vfat, Xfs};
    let old_xfs = "-qf -m finobt=0,rmapbt=0,reflink=0 IMAGE";
    for (need, arguments, name, size, survives) in [
        (Ext4, "-qF -t ext2 IMAGE", "ext2", Some(400), false),
        (Ext4, "-qF -t ext3 IMAGE", "ext3", Some(400), false),
        (Ext4, "-qF IMAGE 330M", "ext4", Some(330), true),
        (Ext4, "-qF -b 1024 IMAGE", "ext4", Some(400), true),
        (Xfs, "-qf -d size=310m IMAGE", "xfs", Some(310), true),
        (Xfs, old_xfs, "xfs", Some(400), true),
        (Btrfs, "-qf -b 320M IMAGE", "btrfs", Some(320), false),
        (Swap, "-f IMAGE 102400", "swap", Some(100), false),
        (Swap, "-f -p 65536 IMAGE 102400", "swap", Some(100), false),
        (Vfat, "IMAGE", "vfat", None, false),
    ] {
        let Some(tool) = needs::tool(need) else {
            continue;
        };
        let image = tempfile::NamedTempFile::new().unwrap();
        let length = 400 << 20;
        image.as_file().set_len(length).unwrap();
        let path = image.path().to_str().unwrap();
        let words = arguments.split(' ');
        let words = words.map(|word| if word == "IMAGE" { path } else { word });
        let made = Command::new(tool).args(words).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{arguments}: {made:?}");
        let file = File::open(path).unwrap();
        assert_eq!(found(&file, length), [name], "{arguments}");
        let probe = Probe {
            file: &file,
            start: 0,
            length,
        };
        let bytes = size.map(|mib: u64| mib << 20);
        assert_eq!(of(name, &probe).unwrap(), bytes, "{arguments}");
        if survives {
            image.as_file().write_all_at(&[0; 16 << 10], 0).unwrap();
            assert_eq!(found(&file, length), [name], "{arguments}");
        }
    }
}

#[test]
fn a_protective_mbr_is_a_part_of_gpt() {
    let file = image(LENGTH);
    file.write_all_at(
        &[0, 0, 2, 0, 0xee, 0, 0, 0, 1, 0, 0, 0, 0xff, 0xff, 1, 0],
        446,
    )
    .unwrap();
    file.write_all_at(&[0x55, 0xaa], 510).unwrap();
    assert_eq!(found(&file, LENGTH), ["mbr"]);
    file.write_all_at(b"EFI PART", 512).unwrap();
    assert_eq!(found(&file, LENGTH), ["gpt"]);
}

#[test]
fn a_boot_sector_without_partitions_is_no_table() {
    let file = image(LENGTH);
    file.write_all_at(&[0x55, 0xaa], 510).unwrap();
    assert!(found(&file, LENGTH).is_empty());
}

#[test]
fn tables_in_partitions_are_looked_into() {
    let file = image(LENGTH);
    // A partition at 1 MiB, and in it one at 2 MiB in sectors of 4 KiB, which ends beyond both.
    for (at, start) in [(0, 2048u32), (1 << 20, 512)] {
        let mut entry = [0; 16];
        entry[4] = 0x83;
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..].copy_from_slice(&u32::MAX.to_le_bytes());
        file.write_all_at(&entry, at + 446).unwrap();
        file.write_all_at(&[0x55, 0xaa], at + 510).unwrap();
    }
    file.write_all_at(b"XFSB", 3 << 20).unwrap();
    let found = sites(&file, 0, LENGTH).unwrap();
    let has = |name: &str, start: u64| {
        let is_it = |site: &&Site| site.name == name && site.start == start;
        found
            .iter()
            .find(is_it)
            .map(|site| (site.partition, site.end))
    };
    assert_eq!(has("mbr", 0), Some((None, 512)));
    assert_eq!(has("mbr", 1 << 20), Some((Some(1 << 20), (1 << 20) + 512)));
    assert_eq!(has("xfs", 3 << 20), Some((Some(3 << 20), LENGTH)));
}

#[test]
fn several_signatures_are_all_told() {
    let file = image(LENGTH);
    file.write_all_at(b"XFSB", 0).unwrap();
    file.write_all_at(b"EFI PART", LENGTH - 512).unwrap();
    file.write_all_at(b"_BHRfS_M", 0x1_0040).unwrap();
    assert_eq!(found(&file, LENGTH), ["xfs", "btrfs", "gpt"]);
}

#[test]
fn partition_is_examined_from_its_start() {
    let file = image(LENGTH);
    file.write_all_at(b"XFSB", 1 << 20).unwrap();
    assert!(found(&file, LENGTH).is_empty());
    assert_eq!(detect(&file, 1 << 20, 1 << 20).unwrap(), ["xfs"]);
}

#[test]
fn only_names_of_formats_are_accepted() {
    for (named, ours) in [
        ("ext4", "ext4"),
        ("GPT, swap", "gpt,swap"),
        ("dos,minix,crypto_luks", "mbr,minix,luks"),
    ] {
        assert_eq!(check_names(named).expect(named), ours);
    }
    for unknown in ["bogus", "ext4,", "ext5"] {
        let error = check_names(unknown).expect_err(unknown);
        assert!(
            error
                .remedy()
                .is_some_and(|formats| formats.contains(" btrfs, "))
        );
    }
}

proptest! {
    #[test]
    fn any_content_and_length_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..9000)) {
        let file = image(0);
        file.write_all_at(&bytes, 0).unwrap();
        found(&file, bytes.len() as u64);
        // A length beyond the end of the file must be harmless, too.
        found(&file, bytes.len() as u64 + 70_000);
    }
}

#[test]
fn names_are_ours_where_we_have_one() {
    let printed = "DEVNAME=/dev/sda\nPTUUID=1\nPTTYPE=dos\n";
    assert_eq!(parse(printed), ["mbr"]);
    let printed = "LOGUUID=1\nUSAGE=other\nTYPE=xfs_external_log\n";
    assert_eq!(parse(printed), ["xfs_external_log"]);
    assert_eq!(
        parse("TYPE=BitLocker\nTYPE=LVM2_member"),
        ["bitlocker", "lvm2"]
    );
    assert_eq!(parse(""), [] as [String; 0]);
}

#[test]
fn group_signals_do_not_reach_a_tool() {
    // The fifth word is the process group (proc_pid_stat(5)).
    let script = "read -r pid name state parent group rest </proc/self/stat; echo $group";
    let group = output("sh", &["-c", script]).expect("there is a shell");
    let own = rustix::process::getpgrp().as_raw_nonzero().to_string();
    assert_eq!(group.code, Some(0));
    assert_ne!(group.stdout.trim(), own);
    assert!(
        group.stdout.trim().parse::<u32>().is_ok(),
        "{}",
        group.stdout
    );
}
