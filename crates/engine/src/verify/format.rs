//! The format of a verifiable block: every 512 bytes say where and when they were written, and carry a checksum.
//!
//! A header lies over the start of each sector, little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 0 to 7 | magic |
//! | 8 to 15 | byte offset in the target |
//! | 16 to 23 | identity of the trial |
//! | 24 to 31 | generation: thread (upper 16 bits), number of its write (lower 48) |
//! | 32 to 35 | checksum |
//!
//! The checksum is CRC-32C (G. Castagnoli et al., IEEE Trans. Commun. 41 (1993) 883-892) of the payload after the header,
//! followed by the header up to the checksum. In this order the payload's part does not depend on the header and is
//! computed once, before the clock starts.

/// The smallest piece that storage writes as a whole, and that a checksum guards.
pub(crate) const SECTOR: usize = 512;
const MAGIC: [u8; 8] = *b"iolabVfy";
/// Bytes of the header before the checksum.
const SUMMED: usize = 32;
/// Bytes of the header.
const HEADER: usize = SUMMED + 4;
/// Bits of a generation that number the writes of a thread.
const NUMBER_BITS: u32 = 48;

/// A write of a trial: the thread, and the number of its earlier writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Generation(pub(crate) u64);

impl Generation {
    /// The write of this number, from 0, of a thread.
    #[inline]
    pub(crate) fn new(thread: u32, number: u64) -> Self {
        debug_assert!(thread < 1 << 10 && number < 1 << NUMBER_BITS);
        Self((u64::from(thread) << NUMBER_BITS) | number)
    }

    pub(crate) fn thread(self) -> u32 {
        (self.0 >> NUMBER_BITS) as u32
    }

    pub(crate) fn number(self) -> u64 {
        self.0 & ((1 << NUMBER_BITS) - 1)
    }
}

/// Content of a sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Data of this write of the trial, in its place.
    Written(Generation),
    /// Data that this trial wrote for another place, which begins at this byte.
    MadeFor(u64),
    /// Data of an earlier trial or run.
    Earlier,
    /// A header of iolab's with a wrong checksum.
    Damaged,
    /// Zeros.
    Zeros,
    /// Anything without a header of iolab's.
    Unknown,
}

/// Checksum of a sector's payload, to be continued over its header.
pub(crate) fn payload_checksum(sector: &[u8]) -> u32 {
    crc32c::crc32c(&sector[HEADER..])
}

/// Writes the header of a sector whose payload is in place.
#[inline]
pub(crate) fn seal(
    sector: &mut [u8],
    offset: u64,
    trial: u64,
    generation: Generation,
    payload_checksum: u32,
) {
    let mut header = [0; HEADER];
    header[..8].copy_from_slice(&MAGIC);
    header[8..16].copy_from_slice(&offset.to_le_bytes());
    header[16..24].copy_from_slice(&trial.to_le_bytes());
    header[24..32].copy_from_slice(&generation.0.to_le_bytes());
    let checksum = crc32c::crc32c_append(payload_checksum, &header[..SUMMED]);
    header[SUMMED..].copy_from_slice(&checksum.to_le_bytes());
    sector[..HEADER].copy_from_slice(&header);
}

/// The content of a sector that was read at `offset`, as seen by the trial that wrote there.
pub(crate) fn inspect(sector: &[u8], offset: u64, trial: u64) -> Seen {
    let field = |at: usize| {
        let bytes: [u8; 8] = std::array::from_fn(|byte| sector[at + byte]);
        u64::from_le_bytes(bytes)
    };
    let checksum = crc32c::crc32c_append(payload_checksum(sector), &sector[..SUMMED]);
    let is_ours = sector[..8] == MAGIC;
    if is_ours && sector[SUMMED..HEADER] == checksum.to_le_bytes() {
        return match (field(8), field(16)) {
            (_, other) if other != trial => Seen::Earlier,
            (place, _) if place != offset => Seen::MadeFor(place),
            _ => Seen::Written(Generation(field(24))),
        };
    }
    if sector.iter().all(|byte| *byte == 0) {
        Seen::Zeros
    } else if is_ours || field(8) == offset || field(16) == trial {
        // One of three fields that no other data has by chance is enough to know a damaged header.
        Seen::Damaged
    } else {
        Seen::Unknown
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sealed(payload: u8, offset: u64, trial: u64, generation: Generation) -> Vec<u8> {
        let mut sector = vec![payload; SECTOR];
        let checksum = payload_checksum(&sector);
        seal(&mut sector, offset, trial, generation, checksum);
        sector
    }

    proptest! {
        #[test]
        fn a_sealed_sector_is_recognised(
            payload: u8, offset: u64, trial: u64, thread in 0u32..1024, number in 0u64..1 << 48,
        ) {
            let generation = Generation::new(thread, number);
            prop_assert_eq!((generation.thread(), generation.number()), (thread, number));
            let sector = sealed(payload, offset, trial, generation);
            prop_assert_eq!(inspect(&sector, offset, trial), Seen::Written(generation));
            prop_assert_eq!(inspect(&sector, offset, !trial), Seen::Earlier);
            prop_assert_eq!(inspect(&sector, !offset, trial), Seen::MadeFor(offset));
        }

        #[test]
        fn any_flipped_bit_is_found(payload: u8, offset: u64, trial: u64, bit in 0..SECTOR * 8) {
            let mut sector = sealed(payload, offset, trial, Generation::new(3, 17));
            sector[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(inspect(&sector, offset, trial), Seen::Damaged);
        }
    }

    #[test]
    fn zeros_and_foreign_data_are_distinguished() {
        assert_eq!(inspect(&[0; SECTOR], 0, 1), Seen::Zeros);
        assert_eq!(inspect(&[0; SECTOR], 4096, 1), Seen::Zeros);
        assert_eq!(inspect(&[7; SECTOR], 4096, 1), Seen::Unknown);
    }
}
