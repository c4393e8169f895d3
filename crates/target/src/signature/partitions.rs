//! Where the partitions of a disk lie, by its table: the kernel looks for partitions only on devices where it is asked to.
//! GPT: UEFI specification 2.10, chapter 5. MBR: the IBM PC's, with extended partitions as a chain of tables.

use super::{Found, Probe};

/// Most partitions that are looked at.
const PARTITIONS_MAX: u64 = 256;

/// A range of the target, `start` bytes from its own start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Region {
    pub(super) start: u64,
    pub(super) length: u64,
}

/// The bytes of the partition tables themselves.
pub(super) fn gpt_tables(probe: &Probe) -> [Region; 2] {
    // A header and at least 16 KiB of entries at either end, in sectors of up to 4 KiB.
    const TABLE: u64 = 2 * 4096 + (16 << 10);
    let length = TABLE.min(probe.length);
    [0, probe.length - length].map(|start| Region { start, length })
}

/// The partitions in the tables of a target, each once.
pub(super) fn find(probe: &Probe) -> Found<Vec<Region>> {
    let mut regions = gpt(probe)?;
    if regions.is_empty() {
        regions = mbr(probe)?;
    }
    regions.retain(|region| {
        let end = region.start.checked_add(region.length);
        region.start > 0 && region.length > 0 && end.is_some_and(|end| end <= probe.length)
    });
    regions.sort_unstable();
    regions.dedup();
    Ok(regions)
}

fn gpt(probe: &Probe) -> Found<Vec<Region>> {
    let mut regions = Vec::new();
    for sector in [512, 4096] {
        let last = (probe.length / sector).saturating_sub(1) * sector;
        for header in [sector, last] {
            let mut bytes = [0; 92];
            if !probe.read(header, &mut bytes)? || !bytes.starts_with(b"EFI PART") {
                continue;
            }
            let (entries, count) = (u64_at(&bytes, 72), u64::from(u32_at(&bytes, 80)));
            let size = u64::from(u32_at(&bytes, 84));
            if !(128..=4096).contains(&size) {
                continue;
            }
            for number in 0..count.min(PARTITIONS_MAX) {
                let at = entries.saturating_mul(sector).saturating_add(number * size);
                let mut entry = [0; 48];
                if !probe.read(at, &mut entry)? {
                    break;
                }
                let (first, last) = (u64_at(&entry, 32), u64_at(&entry, 40));
                if entry[..16] != [0; 16] && first <= last {
                    regions.push(Region {
                        start: first.saturating_mul(sector),
                        length: (last - first).saturating_add(1).saturating_mul(sector),
                    });
                }
            }
        }
    }
    Ok(regions)
}

fn mbr(probe: &Probe) -> Found<Vec<Region>> {
    const SECTOR: u64 = 512;
    let mut regions = Vec::new();
    // Tables still to be read, and where the extended partition starts that they lie in.
    let mut tables = vec![(0, None)];
    let mut read = 0;
    while let Some((at, extended)) = tables.pop() {
        read += 1;
        let mut table = [0; 66];
        let place = u64::saturating_mul(at, SECTOR).saturating_add(446);
        if read > PARTITIONS_MAX || !probe.read(place, &mut table)? || table[64..] != [0x55, 0xaa] {
            continue;
        }
        for entry in table.as_chunks::<16>().0 {
            let (kind, start) = (entry[4], u64::from(u32_at(entry, 8)));
            let sectors = u64::from(u32_at(entry, 12));
            match kind {
                0 | 0xee => {}
                0x05 | 0x0f | 0x85 => {
                    // The chain counts from the start of the first extended partition.
                    let base: u64 = extended.unwrap_or(0);
                    let next = base + start;
                    tables.push((next, Some(extended.unwrap_or(next))));
                }
                _ => regions.push(Region {
                    start: (at + start) * SECTOR,
                    length: sectors * SECTOR,
                }),
            }
        }
    }
    Ok(regions)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[at..at + 4]);
    u32::from_le_bytes(number)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::*;

    const LENGTH: u64 = 64 << 20;

    fn regions(file: &File) -> Vec<(u64, u64)> {
        let probe = Probe {
            file,
            start: 0,
            length: LENGTH,
        };
        let regions = find(&probe).unwrap();
        regions
            .iter()
            .map(|r| (r.start >> 20, r.length >> 20))
            .collect()
    }

    fn image() -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LENGTH).unwrap();
        file
    }

    fn put_mbr(file: &File, at: u64, entries: &[(u8, u32, u32)]) {
        for (number, (kind, start, sectors)) in entries.iter().enumerate() {
            let mut entry = [0; 16];
            entry[4] = *kind;
            entry[8..12].copy_from_slice(&start.to_le_bytes());
            entry[12..].copy_from_slice(&sectors.to_le_bytes());
            let place = at + 446 + 16 * number as u64;
            file.write_all_at(&entry, place).unwrap();
        }
        file.write_all_at(&[0x55, 0xaa], at + 510).unwrap();
    }

    #[test]
    fn logical_partitions_are_found_along_their_chain() {
        let file = image();
        put_mbr(&file, 0, &[(0x83, 2048, 4096), (0x05, 8192, 65536)]);
        put_mbr(
            &file,
            8192 * 512,
            &[(0x83, 2048, 4096), (0x05, 16384, 8192)],
        );
        put_mbr(&file, (8192 + 16384) * 512, &[(0x83, 2048, 2048)]);
        assert_eq!(regions(&file), [(1, 2), (5, 2), (13, 1)]);
        // A chain that leads back to itself ends.
        put_mbr(&file, 8192 * 512, &[(0x83, 2048, 4096), (0x05, 0, 8192)]);
        assert_eq!(regions(&file), [(1, 2), (5, 2)]);
    }

    #[test]
    fn a_gpt_is_read_from_either_end() {
        let file = image();
        let put = |header: u64, entries: u64| {
            let mut bytes = [0; 92];
            bytes[..8].copy_from_slice(b"EFI PART");
            bytes[72..80].copy_from_slice(&(entries / 512).to_le_bytes());
            bytes[80..84].copy_from_slice(&128u32.to_le_bytes());
            bytes[84..88].copy_from_slice(&128u32.to_le_bytes());
            file.write_all_at(&bytes, header).unwrap();
            let mut entry = [0; 128];
            entry[0] = 1;
            entry[32..40].copy_from_slice(&2048u64.to_le_bytes());
            entry[40..48].copy_from_slice(&6143u64.to_le_bytes());
            file.write_all_at(&entry, entries).unwrap();
        };
        put(LENGTH - 512, LENGTH - 33 * 512);
        assert_eq!(regions(&file), [(1, 2)]);
        put(512, 1024);
        assert_eq!(regions(&file), [(1, 2)]);
    }

    proptest! {
        #[test]
        fn any_table_is_survived(bytes in prop::collection::vec(any::<u8>(), 512..2048), gpt: bool) {
            let file = image();
            let mut bytes = bytes;
            bytes[510..512].copy_from_slice(&[0x55, 0xaa]);
            if gpt && bytes.len() > 520 {
                bytes[512..520].copy_from_slice(b"EFI PART");
            }
            file.write_all_at(&bytes, 0).unwrap();
            for (start, length) in regions(&file) {
                prop_assert!(start + length <= LENGTH >> 20);
            }
        }
    }
}
