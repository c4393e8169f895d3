//! Formats on the partitions of a table have to be named, whatever unit the table counts in and wherever it
//! ends. The oracle is `blkid -p -O` at each start.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use iolab_truth::Scene;
use iolab_truth::binary::binary;
use iolab_truth::device::loop_over;
use iolab_truth::files::{MIB, hole};
use iolab_truth::system::{Made, run, unless_missing};

use crate::stage::alone;

/// Size of a disk, bytes.
const DISK: u64 = 256 * MIB;
/// Consent to lose every table, but nothing inside.
const TABLES: &str = "mbr,gpt,sun,sgi,apm,bsd";

/// A table, and the formats on its partitions.
struct Disk {
    name: &'static str,
    write: fn(&File),
    /// Starts of partitions, each with the command that formats it.
    holds: &'static [(u64, &'static [&'static str])],
    /// Length to which the disk is truncated, bytes.
    cut: u64,
}

const EXT4: &[&str] = &["mkfs.ext4", "-qF"];
const SWAP: &[&str] = &["mkswap", "-f"];
const XFS: &[&str] = &["mkfs.xfs", "-qf"];

const DISKS: &[Disk] = &[
    Disk {
        name: "MBR, sectors of 512 bytes, logical partitions",
        write: |disk| {
            mbr(
                disk,
                0,
                &[(0x83, 2048, 16 << 11), (0x05, 64 << 11, 100 << 11)],
            );
            mbr(
                disk,
                64 * MIB,
                &[(0x83, 2048, 16 << 11), (0x05, 20 << 11, 40 << 11)],
            );
            mbr(disk, 84 * MIB, &[(0x82, 2048, 16 << 11)]);
        },
        holds: &[(1, EXT4), (65, EXT4), (85, SWAP)],
        cut: DISK,
    },
    Disk {
        name: "MBR, sectors of 4096 bytes",
        write: |disk| mbr(disk, 0, &[(0x83, 256, 16 << 8), (0x82, 40 << 8, 16 << 8)]),
        holds: &[(1, EXT4), (40, SWAP)],
        cut: DISK,
    },
    Disk {
        name: "a partition that ends beyond the disk",
        write: |disk| {
            mbr(
                disk,
                0,
                &[(0x83, 2048, 16 << 11), (0x83, 32 << 11, 200 << 11)],
            )
        },
        holds: &[(1, SWAP), (32, EXT4)],
        cut: 64 * MIB,
    },
    Disk {
        name: "GPT with a hybrid MBR",
        write: |disk| {
            gpt(disk, 512, &[(0, 4096, 32 << 11)]);
            mbr(disk, 0, &[(0xee, 1, 63), (0x83, 64 << 11, 16 << 11)]);
        },
        holds: &[(2, EXT4), (64, SWAP)],
        cut: DISK,
    },
    Disk {
        name: "GPT, sectors of 4096 bytes",
        write: |disk| gpt(disk, 4096, &[(3, 512, 32 << 8)]),
        holds: &[(2, EXT4)],
        cut: DISK,
    },
    Disk {
        name: "GPT with more than 256 entries",
        write: |disk| gpt(disk, 512, &[(0, 4096, 8 << 11), (700, 64 << 11, 32 << 11)]),
        holds: &[(64, EXT4)],
        cut: DISK,
    },
    Disk {
        name: "a table within a partition",
        write: |disk| {
            mbr(disk, 0, &[(0x83, 2048, 200 << 11)]);
            mbr(disk, MIB, &[(0x83, 63 << 11, 16 << 11)]);
        },
        holds: &[(64, EXT4)],
        cut: DISK,
    },
    Disk {
        name: "a label of Sun",
        write: |disk| {
            let mut label = [0u8; 512];
            // 64 heads of 32 sectors: a cylinder is 1 MiB.
            label[436..440].copy_from_slice(&[0, 64, 0, 32]);
            label[444..452].copy_from_slice(&[4u32, 32 << 11].map(u32::to_be_bytes).concat());
            label[508..510].copy_from_slice(&[0xda, 0xbe]);
            let sum = label
                .chunks(2)
                .fold([0, 0], |sum, word| [sum[0] ^ word[0], sum[1] ^ word[1]]);
            label[510..].copy_from_slice(&sum);
            put(disk, 0, &label);
        },
        holds: &[(4, EXT4)],
        cut: DISK,
    },
    Disk {
        name: "a label of SGI",
        write: |disk| {
            let mut label = [0u8; 512];
            label[..4].copy_from_slice(&0x0be5_a941u32.to_be_bytes());
            let entry = [32u32 << 11, 8 << 11, 10].map(u32::to_be_bytes).concat();
            label[312..324].copy_from_slice(&entry);
            let words = label.as_chunks::<4>().0.iter();
            let sum = words.fold(0u32, |sum, word| {
                sum.wrapping_add(u32::from_be_bytes(*word))
            });
            label[504..508].copy_from_slice(&sum.wrapping_neg().to_be_bytes());
            put(disk, 0, &label);
        },
        holds: &[(8, EXT4)],
        cut: DISK,
    },
    Disk {
        name: "a partition with a large file system",
        write: |disk| mbr(disk, 0, &[(0x83, 256, u32::MAX)]),
        holds: &[(1, XFS)],
        cut: 512 * MIB,
    },
];

fn put(disk: &File, at: u64, bytes: &[u8]) {
    disk.write_all_at(bytes, at).expect("written");
}

/// Writes a PC's table: type, first sector and count of each entry.
fn mbr(disk: &File, at: u64, entries: &[(u8, u32, u32)]) {
    let mut place = at + 446;
    for (kind, start, count) in entries {
        let mut entry = [0; 16];
        entry[4] = *kind;
        entry[8..12].copy_from_slice(&start.to_le_bytes());
        entry[12..].copy_from_slice(&count.to_le_bytes());
        put(disk, place, &entry);
        place += 16;
    }
    put(disk, at + 510, &[0x55, 0xaa]);
}

/// Writes a GPT: number, first sector and count of each entry.
fn gpt(disk: &File, sector: u64, entries: &[(u64, u64, u64)]) {
    let mut header = [0; 92];
    header[..8].copy_from_slice(b"EFI PART");
    header[72..80].copy_from_slice(&2u64.to_le_bytes());
    header[80..84].copy_from_slice(&1024u32.to_le_bytes());
    header[84..88].copy_from_slice(&128u32.to_le_bytes());
    put(disk, sector, &header);
    for (number, start, count) in entries {
        let mut entry = [0; 128];
        entry[..16].fill(7);
        entry[32..40].copy_from_slice(&start.to_le_bytes());
        entry[40..48].copy_from_slice(&(start + count - 1).to_le_bytes());
        put(disk, 2 * sector + 128 * number, &entry);
    }
    mbr(disk, 0, &[(0xee, 1, u32::MAX)]);
}

/// Makes the disk, and returns blkid's findings at each start too.
fn made(scene: &Scene, disk: &Disk) -> Made<(PathBuf, Vec<String>)> {
    let path = hole(scene.folder().join("disk"), DISK.max(disk.cut))?;
    let open = || {
        File::options()
            .read(true)
            .write(true)
            .open(&path)
            .expect("opened")
    };
    (disk.write)(&open());
    for (number, (start, make)) in disk.holds.iter().enumerate() {
        let bytes = if *make == XFS { 320 * MIB } else { 16 * MIB };
        let part = hole(scene.folder().join(format!("part{number}")), bytes)?;
        let name = part.display().to_string();
        run(make[0], &[&make[1..], &[name.as_str()]].concat())?;
        let [of, to] = [format!("if={name}"), format!("of={}", path.display())];
        let seek = format!("seek={start}");
        run(
            "dd",
            &[
                &of, &to, &seek, "bs=1M", "conv=notrunc,sparse", "status=none",
            ],
        )?;
    }
    open().set_len(disk.cut).expect("cut");
    let seen = disk.holds.iter().map(|(start, _)| {
        let offset = (start * MIB).to_string();
        let path = path.display().to_string();
        run(
            "blkid",
            &["-p", "-o", "value", "-s", "TYPE", "-O", &offset, &path],
        )
    });
    let seen = seen.collect::<Made<Vec<String>>>()?;
    Ok((path, seen))
}

fn iolab(scene: &Scene, target: &Path, consent: &str) -> (Option<i32>, String) {
    let file = scene.folder().join("run.iolab");
    let _ = std::fs::remove_file(&file);
    let mut command = scene.command(binary());
    command
        .args(["run", "write-random"])
        .arg(target)
        .args(["--set", "bs=64k", "--time", "0.05s", "--budget", "0.5s"])
        .args(["--size", "16MiB", "-o"])
        .arg(&file)
        .arg(format!("--destroy-data={consent}"));
    let output = scene.carry_out(&mut command, |_| {}).expect("iolab starts");
    (
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

/// Checks that names of tables are not enough: all of blkid's findings have to be named.
fn refuses(scene: &Scene, disk: &Disk, target: &Path, seen: &[String]) {
    let (code, text) = iolab(scene, target, TABLES);
    assert_eq!(code, Some(3), "{}: {text}", disk.name);
    let hint = text.split("--destroy-data=").last().unwrap_or_default();
    let named: Vec<&str> = hint.trim().split(',').collect();
    for name in seen {
        assert!(
            named.contains(&name.as_str()),
            "{}: {name}: {text}",
            disk.name
        );
    }
}

#[test]
fn what_lies_on_partitions_has_to_be_named() {
    let _alone = alone();
    for disk in DISKS {
        let tried = Scene::new().and_then(|scene| {
            let (path, seen) = made(&scene, disk)?;
            refuses(&scene, disk, &path, &seen);
            let device = loop_over(&scene, &path, false)?;
            refuses(&scene, disk, &device, &seen);
            let all = format!("{TABLES},{}", seen.join(","));
            let (code, text) = iolab(&scene, &device, &all);
            assert_eq!(code, Some(0), "{}: {text}", disk.name);
            Ok(())
        });
        unless_missing(tried.map_err(|why| why.during(disk.name)));
    }
}
