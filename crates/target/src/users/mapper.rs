//! What mapped devices (LVM, LUKS) are made of, by their tables (Documentation/admin-guide/device-mapper of Linux).

use std::path::Path;

use super::super::device::Number;
use super::super::{sysfs, tool};
use super::graph::{Node, Piece};

/// Sysfs and the device mapper count sectors of 512 bytes, whatever the device's own are.
pub(super) const SECTOR: u64 = 512;

/// The pieces of other devices that a mapped device is made of, as `dmsetup` prints them; `None` when it is no such device,
/// or the mapping is unknown.
pub(super) fn pieces(dir: &Path, number: Number) -> Option<Vec<Piece>> {
    if !dir.join("dm").exists() {
        return None;
    }
    let (major, minor) = (number.0.to_string(), number.1.to_string());
    let table = tool::output("dmsetup", &["table", "-j", &major, "-m", &minor])?;
    (table.code == Some(0))
        .then(|| parse_table(&table.stdout))
        .flatten()
}

/// Reads a table of linear and crypt targets.
fn parse_table(table: &str) -> Option<Vec<Piece>> {
    table.lines().map(parse_line).collect()
}

fn parse_line(line: &str) -> Option<Piece> {
    let words: Vec<&str> = line.split_ascii_whitespace().collect();
    let sectors = |word: &str| word.parse::<u64>().ok()?.checked_mul(SECTOR);
    let (from, length) = (sectors(words.first()?)?, sectors(words.get(1)?)?);
    let (device, to) = match *words.get(2)? {
        "linear" => (words.get(3)?, words.get(4)?),
        "crypt" => (words.get(6)?, words.get(7)?),
        _ => return None,
    };
    Some(Piece {
        from,
        length,
        below: Node::Device(sysfs::parse_number(device)?),
        to: sectors(to)?,
    })
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
        // What else there is keeps its bytes anywhere.
        assert_eq!(parse_table("0 4096 striped 2 128 8:1 0 8:2 0"), None);
        assert_eq!(parse_table("0 4096 linear 8:2"), None);
    }
}
