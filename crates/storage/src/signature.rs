//! Signatures of file systems, partition tables, volume managers and disk images: one table, one matcher, and
//! the results of blkid where it is installed.
//!
//! Partitions are looked for in the kernel's list and in the tables on the disk (GPT, MBR, Apple, BSD, Sun,
//! SGI), in every plausible reading: sectors of 512 to 4096 bytes, an MBR next to a GPT, a partition that ends
//! beyond the disk, tables within partitions. The user has to name every format that is found by any of these.
//!
//! Offsets and magic numbers are from the formats' own headers; libblkid probes them too.
//!
//! Signatures found by `blkid`, where it is installed: it knows more formats than iolab's table, and newer
//! ones.
//!
//! Size that a file system states; bytes beyond it are not its own. Offsets are from the superblocks in the
//! headers of Linux (fs/ext4/ext4.h, fs/xfs/libxfs/xfs_format.h, uapi/linux/btrfs_tree.h) and of mkswap.
//!
//! Programs of the system that know more than iolab, where they are installed. Only the system's own folders
//! are searched: the first one in `PATH` may belong to any user.

mod formats;
mod partitions;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::io::Errno;

use super::{errno, path_lookup};
use formats::FORMATS;
use iolab_workload::Result;
use iolab_workload::names::unknown_word;
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
                        length: of(name, &probe)?.unwrap_or(length).min(length),
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
        formats.any(|format| format.name == name) || knows(name)
    };
    let names: Vec<String> = names.split(',').map(|name| ours(name.trim())).collect();
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
        true => self::names(probe.file, probe.start, probe.length),
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

/// blkid's names that differ from iolab's; all others are lowercased.
const OURS: &[(&str, &str)] = &[
    ("crypto_LUKS", "luks"),
    ("LVM1_member", "lvm2"),
    ("LVM2_member", "lvm2"),
    ("linux_raid_member", "mdraid"),
    ("isw_raid_member", "isw-raid"),
    ("ddf_raid_member", "ddf-raid"),
    ("zfs_member", "zfs"),
    ("DM_integrity", "integrity"),
    ("DM_verity_hash", "verity"),
    ("VMFS_volume_member", "vmfs"),
    ("ceph_bluestore", "bluestore"),
    ("ext4dev", "ext4"),
    ("hfsplus", "hfs+"),
    ("squashfs3", "squashfs"),
    ("swsuspend", "swap"),
    ("DM_snapshot_cow", "snapshot"),
    ("dos", "mbr"),
    ("PMBR", "gpt"),
    ("mac", "apm"),
];

/// Formats that blkid finds in `length` bytes of an open file or device from byte `start`; empty if it is not
/// installed.
fn names(file: &File, start: u64, length: u64) -> Vec<String> {
    let Ok(place) = path_lookup::lent_descriptor(file) else {
        return Vec::new();
    };
    let (start, length) = (start.to_string(), length.to_string());
    let arguments = ["-p", "-o", "export", "-O", &start, "-S", &length, &place];
    match output("blkid", &arguments) {
        Some(output) if output.code == Some(0) => parse(&output.stdout),
        // blkid sees several formats and does not say which.
        Some(output) if output.code == Some(8) => vec!["ambivalent".to_owned()],
        _ => Vec::new(),
    }
}

/// Whether blkid knows a format by this name of iolab's.
fn knows(name: &str) -> bool {
    const TABLES: [&str; 7] = [
        "aix", "ambivalent", "atari", "minix", "solaris_x86", "ultrix", "unixware",
    ];
    let listed = || output("blkid", &["-k"]);
    TABLES.contains(&name)
        || listed().is_some_and(|output| {
            output
                .stdout
                .lines()
                .any(|known| ours(known.trim()) == name)
        })
}

/// iolab's name for a name of blkid's.
fn ours(name: &str) -> String {
    let ours = OURS
        .iter()
        .find(|(theirs, _)| theirs.eq_ignore_ascii_case(name));
    ours.map_or_else(|| name.to_ascii_lowercase(), |(_, ours)| (*ours).to_owned())
}

fn parse(output: &str) -> Vec<String> {
    output
        .lines()
        .filter_map(|line| line.split_once('='))
        .filter(|(key, _)| matches!(*key, "TYPE" | "PTTYPE"))
        .map(|(_, name)| ours(name))
        .collect()
}

/// Size of a format from its start, bytes; `None` if it states none, or an impossible one.
fn of(name: &str, probe: &Probe) -> Found<Option<u64>> {
    let bytes = match name {
        "ext2" | "ext3" | "ext4" => ext(probe)?,
        "xfs" => {
            let block = u64::from(u32::from_be_bytes(probe.bytes(4)?));
            u64::from_be_bytes(probe.bytes(8)?).checked_mul(block)
        }
        // Size on this device alone, where there are several.
        "btrfs" => Some(u64::from_le_bytes(probe.bytes(0x1_0000 + 0xc9 + 8)?)),
        "swap" => swap(probe)?,
        _ => None,
    };
    // At least the end of the superblock.
    Ok(bytes.filter(|bytes| *bytes >= 128 << 10))
}

fn ext(probe: &Probe) -> Found<Option<u64>> {
    const IS_64BIT: u32 = 0x80;
    let high = match probe.u32(0x460)? & IS_64BIT {
        0 => 0,
        _ => u64::from(probe.u32(0x550)?),
    };
    let blocks = u64::from(probe.u32(0x404)?) | high << 32;
    let block = 1024u64.checked_shl(probe.u32(0x418)?);
    Ok(block.and_then(|block| blocks.checked_mul(block)))
}

/// Size of a swap area, bytes. The header counts pages, and its magic number ends the first page, whatever the
/// page size where it was made.
fn swap(probe: &Probe) -> Found<Option<u64>> {
    for page in [4_096, 8_192, 16_384, 32_768, 65_536] {
        if probe.bytes(page - 10)? == *b"SWAPSPACE2" {
            let last_page = u64::from(probe.u32(1028)?);
            return Ok((last_page + 1).checked_mul(page));
        }
    }
    Ok(None)
}

/// Output of a program, and its exit code.
pub(crate) struct Output {
    /// Exit code; `None` after a signal.
    pub(crate) code: Option<i32>,
    /// Standard output, with replacement characters for invalid bytes.
    pub(crate) stdout: String,
}

/// Runs a program to its end; `None` when it is not installed or cannot be started. It has its own process
/// group: Ctrl-C reaches all of a terminal's group and would end it, and missing output would look like a
/// missing object.
pub(crate) fn output(name: &str, arguments: &[&str]) -> Option<Output> {
    let program = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"]
        .iter()
        .map(|folder| Path::new(folder).join(name))
        .find(|path| path.exists())?;
    let done = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("LC_ALL", "C")
        .process_group(0)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    Some(Output {
        code: done.status.code(),
        stdout: String::from_utf8_lossy(&done.stdout).into_owned(),
    })
}
