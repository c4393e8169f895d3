//! Signatures of file systems, partition tables, volume managers and disk images: one table, one matcher, and
//! the results of blkid where it is installed.
//!
//! Partitions are looked for in the kernel's list and in the tables on the disk (GPT, MBR, Apple, BSD, Sun,
//! SGI), in every plausible reading: sectors of 512 to 4096 bytes, an MBR next to a GPT, a partition that ends
//! beyond the disk, tables within partitions. The user has to name every format that is found by any of these.
//!
//! Offsets and magic numbers are from the formats' own headers; libblkid probes them too.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;

use iolab_workload::Result;
use iolab_workload::names::unknown_word;
use rustix::io::Errno;

use super::errno;

mod blkid;
mod file_system_size;
mod formats;
mod partitions;

use formats::FORMATS;
use partitions::Region;

/// Position of a magic number.
#[derive(Debug, Clone, Copy)]
enum At {
    /// This many bytes from the start.
    Start(u64),
    /// `back` bytes from the end, then rounded down to a multiple of `align`; then `plus` bytes on.
    End { back: u64, align: u64, plus: u64 },
    /// The first block of 4 KiB after the first of `0` equal parts.
    Part(u64),
}

/// A format. It is present if any of its magic numbers is at any of its positions, and the check agrees.
struct Format {
    name: &'static str,
    places: &'static [At],
    magics: &'static [&'static [u8]],
    /// Additional check, given the position of the magic number.
    check: fn(&Probe, u64) -> Found<bool>,
    /// Formats that contain this one's magic number as a part.
    part_of: &'static [&'static str],
}

type Found<T> = std::result::Result<T, (u64, Errno)>;

/// A format that was found, and the bytes that it may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Site {
    pub(super) name: String,
    pub(super) start: u64,
    pub(super) end: u64,
    /// First byte of the partition that it was found on.
    pub(super) partition: Option<u64>,
}

/// Block size of most file systems, bytes.
const BLOCK: u64 = 4096;
/// Usual first bytes of first partitions, for a disk whose table was overwritten.
const FIRST_PARTITIONS: [u64; 5] = [63 * 512, 1 << 20, 64 * 512, 34 * 512, 63 * 4096];
/// Most partitions that blkid is asked about; it is started for each.
const ASKED_MAX: usize = 256;
/// Most levels of tables within partitions of tables.
const DEPTH_MAX: usize = 4;

/// All formats in `length` bytes of a file or device from byte `start`, and in the partitions of tables there,
/// by iolab's table and by blkid. Their positions count from `start`.
///
/// # Errors
/// The offset that could not be read, and why: unreadable data may be anything.
pub(super) fn sites(file: &File, start: u64, length: u64) -> Found<Vec<Site>> {
    let whole = Region { start: 0, length };
    let mut sites = Vec::new();
    // Examined regions: readings of tables repeat each other, and a table may lead back to itself.
    let mut seen = BTreeSet::from([whole]);
    let mut level = vec![(whole, None)];
    for _ in 0..DEPTH_MAX {
        for (region, partition) in std::mem::take(&mut level) {
            let probe = Probe {
                file,
                start: start + region.start,
                length: region.length,
            };
            let names = all_names(&probe, seen.len() <= ASKED_MAX)?;
            for name in &names {
                let places = match partitions::table(name, &probe) {
                    Some(places) => places,
                    // A format on a partition may use all of it.
                    None if partition.is_some() => vec![whole_of(&probe)],
                    None => vec![Region {
                        length: file_system_size::of(name, &probe)?
                            .unwrap_or(length)
                            .min(length),
                        ..whole_of(&probe)
                    }],
                };
                sites.extend(places.iter().map(|place| Site {
                    name: name.clone(),
                    start: region.start + place.start,
                    end: (region.start + place.start).saturating_add(place.length),
                    partition,
                }));
            }
            let mut further = partitions::find(&names, &probe)?;
            if names.is_empty() && partition.is_none() {
                further.extend(partitions::at(&FIRST_PARTITIONS, &probe));
            }
            for found in further {
                let found = Region {
                    start: region.start + found.start,
                    ..found
                };
                if seen.insert(found) {
                    level.push((found, Some(found.start)));
                }
            }
        }
    }
    sites.dedup_by(|a, b| a == b);
    Ok(sites)
}

/// iolab's names of these formats, separated by commas; blkid's names are accepted too.
///
/// # Errors
/// Of kind [`Usage`](iolab_workload::Kind::Usage): the list of known names.
pub(super) fn check_names(names: &str) -> Result<String> {
    let is_known = |name: &String| {
        let mut formats = FORMATS.iter();
        formats.any(|format| format.name == name) || blkid::knows(name)
    };
    let names: Vec<String> = names
        .split(',')
        .map(|name| blkid::ours(name.trim()))
        .collect();
    let Some(name) = names.iter().find(|name| !is_known(name)) else {
        return Ok(names.join(","));
    };
    let mut known: Vec<&str> = FORMATS.iter().map(|format| format.name).collect();
    known.sort_unstable();
    known.dedup();
    Err(unknown_word("format", name, &known))
}

fn whole_of(probe: &Probe) -> Region {
    Region {
        start: 0,
        length: probe.length,
    }
}

fn all_names(probe: &Probe, asks: bool) -> Found<Vec<String>> {
    let ours = detect(probe.file, probe.start, probe.length)?;
    let mut names: Vec<String> = ours.into_iter().map(str::to_owned).collect();
    let theirs = match asks {
        true => blkid::names(probe.file, probe.start, probe.length),
        false => Vec::new(),
    };
    for name in theirs {
        // blkid's word for several signatures at once, which have been named by the findings here.
        let is_told = name == "ambivalent" && !names.is_empty();
        if !is_told && !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Names of all signatures in `length` bytes of a file or device from byte `start`, each once.
///
/// # Errors
/// The offset that could not be read, and why: unreadable data may be anything.
fn detect(file: &File, start: u64, length: u64) -> Found<Vec<&'static str>> {
    let probe = Probe {
        file,
        start,
        length,
    };
    let mut found: Vec<&Format> = Vec::new();
    for format in FORMATS {
        if !found.iter().any(|other| other.name == format.name) && probe.matches(format)? {
            found.push(format);
        }
    }
    let names: Vec<&str> = found.iter().map(|format| format.name).collect();
    found.retain(|format| !format.part_of.iter().any(|whole| names.contains(whole)));
    Ok(found.iter().map(|format| format.name).collect())
}

/// Examined bytes.
struct Probe<'a> {
    file: &'a File,
    start: u64,
    length: u64,
}

impl Probe<'_> {
    fn matches(&self, format: &Format) -> Found<bool> {
        for place in format.places {
            for magic in format.magics {
                let Some(offset) = self.place(*place) else {
                    continue;
                };
                let mut bytes = [0; 32];
                let bytes = &mut bytes[..magic.len()];
                if self.read(offset, bytes)? && bytes == *magic && (format.check)(self, offset)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Offset of a position, unless it is before the start.
    fn place(&self, place: At) -> Option<u64> {
        match place {
            At::Start(offset) => Some(offset),
            At::End { back, align, plus } => {
                Some(self.length.checked_sub(back)? / align * align + plus)
            }
            At::Part(of) => Some((self.length / BLOCK).div_ceil(of) * BLOCK).filter(|at| *at > 0),
        }
    }

    /// Fills `bytes` from `offset`. False if the end comes first.
    fn read(&self, offset: u64, bytes: &mut [u8]) -> Found<bool> {
        let fits = offset
            .checked_add(bytes.len() as u64)
            .is_some_and(|end| end <= self.length);
        if !fits {
            return Ok(false);
        }
        match self.file.read_exact_at(bytes, self.start + offset) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err((self.start + offset, errno::of_std(&error))),
        }
    }

    /// Bytes at an offset; zeros beyond the end.
    fn bytes<const N: usize>(&self, offset: u64) -> Found<[u8; N]> {
        let mut bytes = [0; N];
        self.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// Little-endian number at an offset; zero beyond the end.
    fn u32(&self, offset: u64) -> Found<u32> {
        self.bytes(offset).map(u32::from_le_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
            let made = std::process::Command::new(tool).args(words).output();
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
            assert_eq!(
                file_system_size::of(name, &probe).unwrap(),
                bytes,
                "{arguments}"
            );
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
}
