//! Partitions of a disk by its tables. The kernel looks for partitions only on devices where it is asked to. It
//! also knows the sector size that a table was written for only if the disk has the same. Every plausible
//! reading counts: an empty place does no harm.
//!
//! GPT: UEFI specification 2.10, chapter 5. MBR: the IBM PC's, with extended partitions as a chain of tables.
//! Others: their readers in block/partitions of Linux.

use std::collections::BTreeSet;

use super::{Found, Probe};

/// Most tables in a chain of extended partitions.
const CHAIN_MAX: u64 = 1024;
/// Most bytes of GPT entries, the same limit as in Linux.
const GPT_MAX: u64 = 4 << 20;
/// Possible sector sizes of a table, bytes.
const SECTORS: [u64; 4] = [512, 1024, 2048, 4096];

/// A range of the target, `start` bytes from the target's start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Region {
    pub(super) start: u64,
    pub(super) length: u64,
}

/// A format that has partitions.
struct Table {
    name: &'static str,
    /// Regions of the table itself.
    places: fn(&Probe) -> Vec<Region>,
    partitions: fn(&Probe, &mut Vec<Region>) -> Found<()>,
}

const TABLES: &[Table] = &[
    Table {
        name: "gpt",
        places: gpt_tables,
        partitions: gpt,
    },
    Table {
        name: "mbr",
        places: |probe| first(probe, 512),
        partitions: |_, _| Ok(()),
    },
    Table {
        name: "apm",
        places: |probe| first(probe, 64 << 10),
        partitions: apm,
    },
    Table {
        name: "bsd",
        places: |probe| first(probe, 8 << 10),
        partitions: bsd,
    },
    Table {
        name: "sun",
        places: |probe| first(probe, 512),
        partitions: sun,
    },
    Table {
        name: "sgi",
        places: |probe| first(probe, 512),
        partitions: sgi,
    },
];

fn first(probe: &Probe, length: u64) -> Vec<Region> {
    vec![Region {
        start: 0,
        length: length.min(probe.length),
    }]
}

/// Regions of a GPT: a header and at least 16 KiB of entries at either end, in sectors of up to 4 KiB.
fn gpt_tables(probe: &Probe) -> Vec<Region> {
    const TABLE: u64 = 2 * 4096 + (16 << 10);
    let length = TABLE.min(probe.length);
    let places = [0, probe.length - length].map(|start| Region { start, length });
    places.to_vec()
}

/// Regions of the format's own table; `None` if the format is not a table.
pub(super) fn table(name: &str, probe: &Probe) -> Option<Vec<Region>> {
    let table = TABLES.iter().find(|table| table.name == name)?;
    Some((table.places)(probe))
}

/// Partitions in the tables of these names, each once. Partitions that end beyond the target are truncated.
pub(super) fn find(names: &[String], probe: &Probe) -> Found<Vec<Region>> {
    let mut regions = Vec::new();
    let mut is_table = false;
    for table in TABLES {
        if names.iter().any(|name| name == table.name) {
            is_table = true;
            (table.partitions)(probe, &mut regions)?;
        }
    }
    if is_table {
        // Any other table may be accompanied by one of a PC, for systems that know only that (hybrid MBR).
        mbr(probe, &mut regions)?;
    }
    let within: BTreeSet<Region> = regions
        .into_iter()
        .filter_map(|region| {
            let end = region.start.saturating_add(region.length).min(probe.length);
            let length = end.checked_sub(region.start)?;
            let is_whole = region.start == 0;
            (length > 0 && !is_whole).then_some(Region { length, ..region })
        })
        .collect();
    Ok(within.into_iter().collect())
}

/// Regions from each of these bytes to the end.
pub(super) fn at(starts: &[u64], probe: &Probe) -> Vec<Region> {
    let from = |start: &u64| {
        let length = probe.length.checked_sub(*start)?;
        Some(Region {
            start: *start,
            length,
        })
    };
    starts.iter().filter_map(from).collect()
}

/// Adds `count` units at unit `start`.
fn add(regions: &mut Vec<Region>, start: u64, count: u64, unit: u64) {
    regions.push(Region {
        start: start.saturating_mul(unit),
        length: count.saturating_mul(unit),
    });
}

fn gpt(probe: &Probe, regions: &mut Vec<Region>) -> Found<()> {
    for sector in SECTORS {
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
            for number in 0..count.min(GPT_MAX / size) {
                let at = entries.saturating_mul(sector).saturating_add(number * size);
                let mut entry = [0; 48];
                if !probe.read(at, &mut entry)? {
                    break;
                }
                let (first, last) = (u64_at(&entry, 32), u64_at(&entry, 40));
                if entry[..16] != [0; 16] && first <= last {
                    let count = (last - first).saturating_add(1);
                    add(regions, first, count, sector);
                }
            }
        }
    }
    Ok(())
}

fn mbr(probe: &Probe, regions: &mut Vec<Region>) -> Found<()> {
    for sector in SECTORS {
        // Tables still to be read, each with the start of its extended partition.
        let mut tables = vec![(0, None)];
        let mut read = 0;
        while let Some((at, extended)) = tables.pop() {
            read += 1;
            let mut table = [0; 66];
            let place = u64::saturating_mul(at, sector).saturating_add(446);
            if read > CHAIN_MAX || !probe.read(place, &mut table)? || table[64..] != [0x55, 0xaa] {
                continue;
            }
            for entry in table.as_chunks::<16>().0 {
                let (kind, start) = (entry[4], u64::from(u32_at(entry, 8)));
                let sectors = u64::from(u32_at(entry, 12));
                match kind {
                    // An empty entry, or the whole disk on a GPT.
                    0 | 0xee => {}
                    0x05 | 0x0f | 0x85 => {
                        // The chain counts from the start of the first extended partition.
                        let base: u64 = extended.unwrap_or(0);
                        let next = base + start;
                        tables.push((next, Some(extended.unwrap_or(next))));
                    }
                    _ => {
                        add(regions, at + start, sectors, sector);
                        // Within a partition, some tables count from the start of the disk (Minix).
                        let disk = probe.start / sector;
                        if let Some(start) = start.checked_sub(disk).filter(|_| disk > 0) {
                            add(regions, start, sectors, sector);
                        }
                    }
                }
            }
        }
    }
    Ok(())
}

fn apm(probe: &Probe, regions: &mut Vec<Region>) -> Found<()> {
    const ENTRIES_MAX: u64 = 1024;
    for block in SECTORS {
        let mut count = 1;
        let mut number = 1;
        while number <= count {
            let entry: [u8; 16] = probe.bytes(number * block)?;
            if !entry.starts_with(b"PM") {
                break;
            }
            count = u64::from(be32_at(&entry, 4)).min(ENTRIES_MAX);
            let (start, length) = (be32_at(&entry, 8), be32_at(&entry, 12));
            add(regions, start.into(), length.into(), block);
            number += 1;
        }
    }
    Ok(())
}

fn bsd(probe: &Probe, regions: &mut Vec<Region>) -> Found<()> {
    const PARTITIONS_MAX: u16 = 64;
    for label in [0, 64, 512] {
        let head: [u8; 140] = probe.bytes(label)?;
        if head[..4] != [0x57, 0x45, 0x56, 0x82] {
            continue;
        }
        let count = u16::from_le_bytes([head[138], head[139]]).min(PARTITIONS_MAX);
        let sector = match u64::from(u32_at(&head, 40)) {
            sector if SECTORS.contains(&sector) => sector,
            _ => SECTORS[0],
        };
        for number in 0..u64::from(count) {
            let entry: [u8; 8] = probe.bytes(label + 148 + 16 * number)?;
            let (length, start) = (u64::from(u32_at(&entry, 0)), u64::from(u32_at(&entry, 4)));
            add(regions, start, length, sector);
            // In a partition, most count from the start of the disk.
            let disk = probe.start / sector;
            if let Some(start) = start.checked_sub(disk).filter(|_| disk > 0) {
                add(regions, start, length, sector);
            }
        }
    }
    Ok(())
}

fn sun(probe: &Probe, regions: &mut Vec<Region>) -> Found<()> {
    let label: [u8; 512] = probe.bytes(0)?;
    let be16 = |at: usize| u64::from(u16::from_be_bytes([label[at], label[at + 1]]));
    let cylinder = be16(436) * be16(438);
    for entry in label[444..508].as_chunks::<8>().0 {
        let (start, count) = (be32_at(entry, 0), be32_at(entry, 4));
        add(regions, u64::from(start) * cylinder, count.into(), 512);
    }
    Ok(())
}

fn sgi(probe: &Probe, regions: &mut Vec<Region>) -> Found<()> {
    let label: [u8; 512] = probe.bytes(0)?;
    for entry in label[312..504].as_chunks::<12>().0 {
        let (count, start) = (be32_at(entry, 0), be32_at(entry, 4));
        add(regions, start.into(), count.into(), 512);
    }
    Ok(())
}

fn be32_at(bytes: &[u8], at: usize) -> u32 {
    u32_at(bytes, at).swap_bytes()
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

    fn found(name: &str, file: &File, start: u64) -> Vec<Region> {
        let probe = Probe {
            file,
            start,
            length: LENGTH - start,
        };
        find(&[name.to_owned()], &probe).unwrap()
    }

    /// Whether these partitions are found, in MiB; readings with other sector sizes find more.
    fn has(name: &str, file: &File, wanted: &[(u64, u64)]) -> bool {
        let found = found(name, file, 0);
        let region = |(start, length): (u64, u64)| Region {
            start: start << 20,
            length: length << 20,
        };
        wanted.iter().all(|wanted| found.contains(&region(*wanted)))
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
        assert!(has("mbr", &file, &[(1, 2), (5, 2), (13, 1)]));
        // A chain that leads back to itself ends.
        put_mbr(&file, 8192 * 512, &[(0x83, 2048, 4096), (0x05, 0, 8192)]);
        assert!(has("mbr", &file, &[(1, 2), (5, 2)]));
        assert!(!has("mbr", &file, &[(13, 1)]));
    }

    /// Writes a header of a GPT, and the entry of a partition as the last of `count`.
    fn put_gpt(file: &File, header: u64, entries: u64, count: u32) {
        let mut bytes = [0; 92];
        bytes[..8].copy_from_slice(b"EFI PART");
        bytes[72..80].copy_from_slice(&(entries / 512).to_le_bytes());
        bytes[80..84].copy_from_slice(&count.to_le_bytes());
        bytes[84..88].copy_from_slice(&128u32.to_le_bytes());
        file.write_all_at(&bytes, header).unwrap();
        let mut entry = [0; 48];
        entry[0] = 1;
        entry[32..40].copy_from_slice(&2048u64.to_le_bytes());
        entry[40..48].copy_from_slice(&6143u64.to_le_bytes());
        let last = entries + 128 * u64::from(count - 1);
        file.write_all_at(&entry, last).unwrap();
    }

    #[test]
    fn a_gpt_is_read_from_either_end() {
        for (header, entries, count) in [
            (LENGTH - 512, LENGTH - 33 * 512, 128),
            (512, 1024, 1),
            (512, 1024, 1024),
        ] {
            let file = image();
            put_gpt(&file, header, entries, count);
            assert!(has("gpt", &file, &[(1, 2)]), "{header} {count}");
            // With a PC's table next to it.
            put_mbr(&file, 0, &[(0xee, 1, 2047), (0x83, 8192, 4096)]);
            assert!(has("gpt", &file, &[(1, 2), (4, 2)]));
            assert!(!has("gpt", &file, &[(0, 1)]));
        }
    }

    #[test]
    fn nested_table_may_count_from_the_disk() {
        let file = image();
        put_mbr(&file, 8 << 20, &[(0x83, (10 << 20) / 512, 2048)]);
        let found = found("mbr", &file, 8 << 20);
        for start in [2 << 20, 10 << 20] {
            let length = 1 << 20;
            assert!(found.contains(&Region { start, length }), "{start}");
        }
    }

    #[test]
    fn labels_of_other_systems_are_read() {
        let file = image();
        let put = |bytes: &[u8], at: u64| file.write_all_at(bytes, at).unwrap();
        // 16 heads of 63 sectors; the second partition at cylinder 4.
        put(&16u16.to_be_bytes(), 436);
        put(&63u16.to_be_bytes(), 438);
        put(&[4u32.to_be_bytes(), 2048u32.to_be_bytes()].concat(), 452);
        let region = Region {
            start: 4 * 16 * 63 * 512,
            length: 1 << 20,
        };
        assert!(found("sun", &file, 0).contains(&region));

        let file = image();
        let put = |bytes: &[u8], at: u64| file.write_all_at(bytes, at).unwrap();
        put(
            &[2048u32.to_be_bytes(), 4096u32.to_be_bytes()].concat(),
            312 + 12,
        );
        assert!(has("sgi", &file, &[(2, 1)]));

        let file = image();
        let put = |bytes: &[u8], at: u64| file.write_all_at(bytes, at).unwrap();
        for number in 1u64..=2 {
            let words = [2, 2048 * number as u32, 2048]
                .map(u32::to_be_bytes)
                .concat();
            put(&[b"PM\0\0", &words[..]].concat(), 512 * number);
        }
        assert!(has("apm", &file, &[(1, 1), (2, 1)]));

        let file = image();
        let put = |bytes: &[u8], at: u64| file.write_all_at(bytes, at).unwrap();
        put(&[0x57, 0x45, 0x56, 0x82], 512);
        put(&512u32.to_le_bytes(), 512 + 40);
        put(&2u16.to_le_bytes(), 512 + 138);
        put(
            &[2048u32.to_le_bytes(), 8192u32.to_le_bytes()].concat(),
            512 + 148 + 16,
        );
        assert!(has("bsd", &file, &[(4, 1)]));
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
            for table in TABLES {
                for region in found(table.name, &file, 0) {
                    prop_assert!(region.length > 0 && region.start + region.length <= LENGTH);
                }
            }
        }
    }
}
