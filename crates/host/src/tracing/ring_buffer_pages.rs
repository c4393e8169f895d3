//! Pages of a kernel ring buffer, as `trace_pipe_raw` returns them (include/linux/ring_buffer.h, and
//! `header_page` and `header_event` of tracefs).

/// Bytes of a page before its records: a stamp, and the length of the records.
const HEADER: usize = 16;
/// Part of the second word that is the length; flags about lost events are above it.
const LENGTH: u64 = (1 << 20) - 1;
/// Kinds of records without an event (`enum ring_buffer_type`); smaller numbers are lengths in words.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the time difference in the first word of a record.
const DELTA_BITS: u32 = 27;
/// High bits that an absolute stamp lacks, and takes from the previous stamp.
const STAMP_TOP: u64 = 0xf800_0000_0000_0000;

/// A record of a page: its stamp and the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Record<'a> {
    pub(super) at: u64,
    pub(super) bytes: &'a [u8],
}

/// Records of one page in time order. Inconsistent data ends them.
pub(super) struct Records<'a> {
    rest: &'a [u8],
    at: u64,
}

impl<'a> Records<'a> {
    pub(super) fn of(page: &'a [u8]) -> Self {
        let header = word64(page, 0).zip(word64(page, 8));
        let (at, length) = header.unwrap_or((0, 0));
        let end = HEADER + (length & LENGTH) as usize;
        Self {
            rest: page.get(HEADER..end).unwrap_or_default(),
            at,
        }
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(bytes)?;
        self.rest = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        let bytes = self.take(4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        loop {
            let head = self.word()?;
            let (kind, delta) = (head & 31, u64::from(head >> 5));
            match kind {
                // The rest of the page is empty.
                PADDING if delta == 0 => return None,
                PADDING => {
                    self.at = self.at.wrapping_add(delta);
                    let length = self.word()?;
                    self.take((length as usize).checked_sub(4)?)?;
                }
                TIME_EXTEND => {
                    let high = u64::from(self.word()?);
                    self.at = self.at.wrapping_add((high << DELTA_BITS) + delta);
                }
                TIME_STAMP => {
                    let high = u64::from(self.word()?);
                    self.at = ((high << DELTA_BITS) + delta) | (self.at & STAMP_TOP);
                }
                words => {
                    self.at = self.at.wrapping_add(delta);
                    let bytes = match words {
                        // The length is in a separate word, which it includes.
                        0 => (self.word()? as usize).checked_sub(4)?,
                        words => words as usize * 4,
                    };
                    return Some(Record {
                        at: self.at,
                        bytes: self.take(bytes)?,
                    });
                }
            }
        }
    }
}

fn word64(page: &[u8], offset: usize) -> Option<u64> {
    let bytes = page.get(offset..offset + 8)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn page(at: u64, words: &[u32]) -> Vec<u8> {
        let mut page = at.to_le_bytes().to_vec();
        page.extend((words.len() as u64 * 4).to_le_bytes());
        page.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        page
    }

    fn read(page: &[u8]) -> Vec<(u64, Vec<u8>)> {
        Records::of(page)
            .map(|record| (record.at, record.bytes.to_vec()))
            .collect()
    }

    #[test]
    fn records_have_their_stamps_whatever_stands_between_them() {
        let head = |kind: u32, delta: u32| kind | delta << 5;
        let words = [
            // An event of two words, 10 ticks after the page's stamp.
            head(2, 10),
            1,
            2,
            // 2^27 + 5 later, an event with a separate length.
            head(TIME_EXTEND, 5),
            1,
            head(0, 1),
            8,
            3,
            // A discarded event of one word.
            head(PADDING, 4),
            8,
            99,
            head(1, 1),
            4,
            // An absolute stamp.
            head(TIME_STAMP, 7),
            2,
            head(1, 0),
            5,
            head(PADDING, 0),
            77,
        ];
        let bytes = |words: &[u32]| {
            words
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let top = 3 << 60;
        let start = top + 1000;
        let extended = start + 10 + (1 << 27) + 5;
        assert_eq!(
            read(&page(start, &words)),
            [
                (start + 10, bytes(&[1, 2])),
                (extended + 1, bytes(&[3])),
                (extended + 6, bytes(&[4])),
                ((top & STAMP_TOP) + (2 << 27) + 7, bytes(&[5])),
            ]
        );
    }

    proptest! {
        #[test]
        fn no_page_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(read(&bytes).len() <= bytes.len());
        }
    }
}
