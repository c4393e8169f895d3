//! Composition of mapped devices (LVM, LUKS), by their tables (Documentation/admin-guide/device-mapper of
//! Linux).

use std::path::Path;

use super::super::sysfs;
use super::storage_graph::{Below, Node, Piece};
use crate::signature;
use crate::sysfs::Number;

/// Sector size of sysfs and the device mapper, bytes, even if the device's own sectors are larger.
pub(super) const SECTOR: u64 = 512;

/// Composition of a mapped device, as `dmsetup` prints it; `None` for other devices, or if the mapping is
/// unknown.
pub(super) fn below(dir: &Path, number: Number) -> Option<Below> {
    let table = table(dir, number)?;
    let thin = || parse_thin(&table).map(Below::Thin);
    parse_table(&table).map(Below::Mapped).or_else(thin)
}

/// Space left in a pool of thin volumes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct PoolSpace {
    pub(in super::super) total: u64,
    pub(in super::super) free: u64,
    /// Size of a block, the unit of allocation, bytes.
    pub(in super::super) block: u64,
}

/// Space of a pool, from the device mapper; `None` where it does not report any.
pub(super) fn pool_space(number: Number) -> Option<PoolSpace> {
    let table = mapped_table(number)?;
    let (major, minor) = (number.0.to_string(), number.1.to_string());
    // Without a flush, which would make the kernel commit the pool's pending data: an unrequested write.
    let status = ["status", "--noflush", "-j", &major, "-m", &minor];
    let status = signature::output("dmsetup", &status)?;
    (status.code == Some(0)).then_some(())?;
    parse_pool(&table, &status.stdout)
}

/// Pool of a device that is one whole thin volume, with nothing else in its table and no external origin.
fn parse_thin(table: &str) -> Option<Number> {
    let mut lines = table.lines();
    let words: Vec<&str> = lines.next()?.split_ascii_whitespace().collect();
    match (&words[..], lines.next()) {
        (["0", _, "thin", pool, _], None) => sysfs::parse_number(pool),
        _ => None,
    }
}

/// Fewest data blocks that one free block of a pool's metadata maps. A leaf of the tree has room for 252 and is
/// at least a third full (drivers/md/persistent-data of Linux); the rest is for inner nodes and maps of free
/// space.
const MAPPED_PER_METADATA_BLOCK: u64 = 64;

/// Space of a pool by its table and status (Documentation/admin-guide/device-mapper/thin-provisioning.rst of
/// Linux). A pool that is out of space, read-only or failed has nothing left. A tenth of the metadata stays
/// free.
fn parse_pool(table: &str, status: &str) -> Option<PoolSpace> {
    let table: Vec<&str> = table.split_ascii_whitespace().collect();
    let block: u64 = match table[..] {
        [_, _, "thin-pool", _, _, sectors, ..] => sectors.parse().ok()?,
        _ => return None,
    };
    let block = block.checked_mul(SECTOR)?;
    let status: Vec<&str> = status.split_ascii_whitespace().collect();
    let [_, _, "thin-pool", _, metadata, data, _, mode, ..] = status[..] else {
        return None;
    };
    let used_of = |text: &str| -> Option<(u64, u64)> {
        let (used, total) = text.split_once('/')?;
        Some((used.parse().ok()?, total.parse().ok()?))
    };
    let ((used, total), (metadata_used, metadata)) = (used_of(data)?, used_of(metadata)?);
    let metadata_free = (metadata - metadata / 10).saturating_sub(metadata_used);
    let free = match mode {
        "rw" => total
            .saturating_sub(used)
            .min(metadata_free.saturating_mul(MAPPED_PER_METADATA_BLOCK)),
        _ => 0,
    };
    Some(PoolSpace {
        total: total.checked_mul(block)?,
        free: free.checked_mul(block)?,
        block,
    })
}

/// Table of a mapped device; `None` for other devices, or if `dmsetup` does not report it.
fn table(dir: &Path, number: Number) -> Option<String> {
    if !dir.join("dm").exists() {
        return None;
    }
    let (major, minor) = (number.0.to_string(), number.1.to_string());
    let table = signature::output("dmsetup", &["table", "-j", &major, "-m", &minor])?;
    (table.code == Some(0)).then_some(table.stdout)
}

/// Kinds of targets in a mapped device's table (`linear`, `thin`, `delay`), each once; empty for other devices,
/// or if the table cannot be read.
pub fn mapped_kinds(number: Number) -> Vec<String> {
    let table = mapped_table(number).unwrap_or_default();
    let mut kinds: Vec<String> = table.lines().filter_map(kind).map(str::to_owned).collect();
    kinds.sort_unstable();
    kinds.dedup();
    kinds
}

/// Whether a device stores nothing: a mapped device whose table has only the target `zero`.
pub(in super::super) fn stores_nothing(number: Number) -> bool {
    stores_nothing_in(Path::new("/sys"), number, &mapped_table)
}

fn stores_nothing_in(sys: &Path, number: Number, table: &dyn Fn(Number) -> Option<String>) -> bool {
    let dir = sys.join(format!("dev/block/{}:{}", number.0, number.1));
    // A `zero` target stands on no device. Other devices are not asked, because that starts a program.
    let is_bottom = || sysfs::linked_devices(&dir.join("slaves")).is_ok_and(|all| all.is_empty());
    if !dir.join("dm").exists() || !is_bottom() {
        return false;
    }
    let table = table(number).unwrap_or_default();
    let mut kinds = table.lines().map(kind).peekable();
    kinds.peek().is_some() && kinds.all(|kind| kind == Some("zero"))
}

/// Table of a mapped device; `None` for other devices, or if the table cannot be read.
pub(in super::super) fn mapped_table(number: Number) -> Option<String> {
    let dir = format!("/sys/dev/block/{}:{}", number.0, number.1);
    table(Path::new(&dir), number)
}

fn kind(line: &str) -> Option<&str> {
    line.split_ascii_whitespace().nth(2)
}

/// Parses a table of linear, crypt and multipath targets.
fn parse_table(table: &str) -> Option<Vec<Piece>> {
    let lines = table.lines().map(parse_line).collect::<Option<Vec<_>>>()?;
    Some(lines.concat())
}

fn parse_line(line: &str) -> Option<Vec<Piece>> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let sectors = |word: &str| word.parse::<u64>().ok()?.checked_mul(SECTOR);
    let (from, length) = (sectors(words.first()?)?, sectors(words.get(1)?)?);
    let piece = |device: &str, to| {
        Some(Piece {
            from,
            length,
            below: Node::Device(sysfs::parse_number(device)?),
            to,
        })
    };
    match *words.get(2)? {
        "linear" => Some(vec![piece(words.get(3)?, sectors(words.get(4)?)?)?]),
        "crypt" => Some(vec![piece(words.get(6)?, sectors(words.get(7)?)?)?]),
        // Each path shows the whole disk.
        "multipath" => paths(&words[3..])?
            .into_iter()
            .map(|path| piece(path, 0))
            .collect(),
        _ => None,
    }
}

/// Paths of a multipath target: features, handlers, then for each group a selector with its arguments, and the
/// paths with theirs (drivers/md/dm-mpath.c of Linux).
fn paths<'a>(words: &[&'a str]) -> Option<Vec<&'a str>> {
    let mut words = words.iter().copied();
    let number = |word: Option<&str>| word?.parse::<usize>().ok();
    for _ in ["features", "handlers"] {
        for _ in 0..number(words.next())? {
            words.next()?;
        }
    }
    let groups = number(words.next())?;
    let (_first, mut paths) = (words.next()?, Vec::new());
    for _ in 0..groups {
        let _selector = words.next()?;
        for _ in 0..number(words.next())? {
            words.next()?;
        }
        let (count, arguments) = (number(words.next())?, number(words.next())?);
        for _ in 0..count {
            paths.push(words.next()?);
            for _ in 0..arguments {
                words.next()?;
            }
        }
    }
    Some(paths)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables as `dmsetup table` prints them for a logical volume of two segments and for an opened LUKS device.
    #[test]
    fn mapped_devices_are_read_piece_by_piece() {
        let table = "0 2097152 linear 8:2 2048\n2097152 1024 linear 8:18 0\n";
        let pieces = parse_table(table).unwrap();
        let piece = |from, length, minor, to| Piece {
            from: from * SECTOR,
            length: length * SECTOR,
            below: Node::Device((8, minor)),
            to: to * SECTOR,
        };
        assert_eq!(
            pieces,
            [piece(0, 2_097_152, 2, 2048), piece(2_097_152, 1024, 18, 0)]
        );
        let table = "0 4096 crypt aes-xts-plain64 :64:logon:x 0 8:3 32768 1 allow_discards";
        assert_eq!(parse_table(table), Some(vec![piece(0, 4096, 3, 32768)]));
        let table = "0 4096 multipath 2 queue_if_no_path retain_attached_hw_handler 1 alua 2 1 service-time 0 2 2 8:0 1 1 8:16 1 1 round-robin 0 1 1 8:32 1000";
        let paths = [0, 16, 32].map(|minor| piece(0, 4096, minor, 0));
        assert_eq!(parse_table(table), Some(paths.to_vec()));
        for cut in 0..table.len() {
            let cut = parse_table(&table[..cut]);
            assert!(cut.is_none_or(|pieces| pieces.len() <= 3));
        }
        assert_eq!(kind("0 4096 delay 8:16 0 20"), Some("delay"));
        assert_eq!(kind("0 4096"), None);
        // Other targets keep their bytes anywhere.
        assert_eq!(parse_table("0 4096 striped 2 128 8:1 0 8:2 0"), None);
        assert_eq!(parse_table("0 4096 linear 8:2"), None);
    }

    #[test]
    fn device_that_reads_as_zeros_stores_nothing() {
        let sys = tempfile::tempdir().expect("a folder");
        let device = sys.path().join("dev/block/253:0");
        let stores_nothing =
            |table: &str| stores_nothing_in(sys.path(), (253, 0), &|_| Some(table.to_owned()));
        let zero = "0 262144 zero \n";
        std::fs::create_dir_all(device.join("slaves")).expect("made");
        assert!(!stores_nothing(zero), "no mapped device");
        std::fs::create_dir(device.join("dm")).expect("made");
        assert!(stores_nothing(zero));
        assert!(stores_nothing("0 8 zero \n8 8 zero \n"));
        for other in ["", "0 262144 error \n", "0 8 zero \n8 8 linear 8:0 0\n"] {
            assert!(!stores_nothing(other), "{other}");
        }
        let member = device.join("slaves/sda");
        std::fs::create_dir(&member).expect("made");
        std::fs::write(member.join("dev"), "8:0\n").expect("written");
        assert!(!stores_nothing(zero), "it stands on another one");
    }

    /// Recorded on Linux 6.1 for volumes made by LVM.
    #[test]
    fn thin_volumes_and_their_pool_are_read() {
        assert_eq!(parse_thin("0 81920 thin 253:2 1"), Some((253, 2)));
        for other in [
            "0 81920 thin-pool 253:0 253:1 128 0 0",
            // An external origin; another target after it, or before.
            "0 81920 thin 253:2 1 8:1",
            "0 81920 thin 253:2 1\n81920 8192 linear 8:1 0",
            "0 8192 linear 8:1 0\n8192 81920 thin 253:2 1",
            "8192 81920 thin 253:2 1",
        ] {
            assert_eq!(parse_thin(other), None, "{other}");
        }
        let table = "0 81920 thin-pool 253:0 253:1 128 0 0";
        let status_of = |metadata: &str, mode: &str| {
            format!(
                "0 81920 thin-pool 1 {metadata} 80/640 - {mode} discard_passdown queue_if_no_space - 1024"
            )
        };
        let status = |mode: &str| status_of("10/1024", mode);
        let space = |free| {
            Some(PoolSpace {
                total: 640 << 16,
                free,
                block: 1 << 16,
            })
        };
        assert_eq!(parse_pool(table, &status("rw")), space(560 << 16));
        for mode in ["ro", "out_of_data_space"] {
            assert_eq!(parse_pool(table, &status(mode)), space(0));
        }
        for (metadata, blocks) in [("915/1024", 7 * 64), ("922/1024", 0), ("1000/1024", 0)] {
            let left = parse_pool(table, &status_of(metadata, "rw"));
            assert_eq!(left, space(blocks << 16), "{metadata}");
        }
        assert_eq!(parse_pool(table, "0 81920 thin-pool Fail"), None);
        assert_eq!(parse_pool("0 81920 linear 8:0 0", &status("rw")), None);
    }
}
