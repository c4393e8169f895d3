//! Decoder from records, as the kernel writes them, to events.
//!
//! Pages of a kernel ring buffer, as `trace_pipe_raw` returns them (include/linux/ring_buffer.h, and
//! `header_page` and `header_event` of tracefs).

#[cfg(test)]
mod tests;

use super::event::{Event, Source, SourceKind, ThreadMoment, TraceEventKind, Transfer};
use iolab_workload::{Error, Result};

impl SourceKind {
    /// Names of the fields that are read from an event of this kind.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Block(_) => &["common_pid", "dev", "sector", "nr_sector", "rwbs"],
            Self::Began => &["pid", "common_pid"],
            Self::Sync(_) => &["common_pid", "dev", "ino"],
            Self::SyncCall(_) => &["common_pid"],
            Self::Commit(_) => &["dev"],
            Self::Wakeup => &["pid"],
            Self::Switch => &["next_pid"],
        }
    }
}

/// Reader of records: the number of each event, its kind, and the positions of its fields.
#[derive(Debug, Default)]
pub(super) struct Decoder(Vec<(u16, SourceKind, Vec<FieldPlace>)>);

impl Decoder {
    /// Adds the format of an event.
    ///
    /// # Errors
    /// A field is missing.
    pub(super) fn add(&mut self, source: Source, format: &str) -> Result<()> {
        let format = Format::parse(format)?;
        let (_, kind) = source;
        let places = kind.fields().iter().map(|name| format.place(name));
        self.0
            .push((format.id, kind, places.collect::<Result<_>>()?));
        Ok(())
    }

    /// Appends the events in pages of `page_bytes`; scheduler events only of `threads`.
    pub(super) fn decode(
        &self,
        pages: &[u8],
        page_bytes: usize,
        threads: &[u32],
        events: &mut Vec<Event>,
    ) {
        for page in pages.chunks(page_bytes.max(1)) {
            for record in Records::of(page) {
                let kind = self.event(record.bytes);
                let own = |kind: &TraceEventKind| match kind {
                    TraceEventKind::Scheduled(thread, _) => threads.contains(thread),
                    _ => true,
                };
                let at = record.at;
                events.extend(kind.filter(own).map(|kind| Event { at, kind }));
            }
        }
    }

    /// Event in a record; `None` for an unknown event or a truncated record.
    fn event(&self, record: &[u8]) -> Option<TraceEventKind> {
        let id = u16::from_le_bytes(record.get(..2)?.try_into().ok()?);
        let (_, kind, places) = self.0.iter().find(|(known, ..)| *known == id)?;
        let long = |field: usize| places[field].number(record);
        let short = |field: usize| Some(long(field)? as u32);
        Some(match *kind {
            SourceKind::Block(step) => {
                let flags = places[4].bytes(record)?;
                TraceEventKind::Block {
                    step,
                    thread: short(0)?,
                    disk: short(1)?,
                    first: long(2)?,
                    count: short(3)?,
                    transfer: transfer(flags),
                    metadata: is_metadata(flags),
                }
            }
            SourceKind::Began => TraceEventKind::Began {
                thread: short(0)?,
                by: short(1)?,
            },
            SourceKind::Sync(edge) => TraceEventKind::Sync {
                edge,
                thread: short(0)?,
                file_system: short(1)?,
                inode: long(2)?,
            },
            SourceKind::SyncCall(edge) => TraceEventKind::SyncCall {
                edge,
                thread: short(0)?,
            },
            SourceKind::Commit(edge) => TraceEventKind::Commit {
                edge,
                file_system: short(0)?,
            },
            SourceKind::Wakeup => TraceEventKind::Scheduled(short(0)?, ThreadMoment::Woken),
            SourceKind::Switch => TraceEventKind::Scheduled(short(0)?, ThreadMoment::Runs),
        })
    }
}

/// Transfer by the letters of a request (`blk_fill_rwbs`): an F before the operation asks for a flush first.
fn transfer(flags: &[u8]) -> Transfer {
    let operation = match flags {
        [
            b'F',
            operation @ (b'R' | b'W' | b'D' | b'F' | b'N' | b'Z'),
            ..,
        ] => *operation,
        [operation, ..] => *operation,
        [] => 0,
    };
    match operation {
        b'R' => Transfer::Read,
        b'W' => Transfer::Write,
        b'F' => Transfer::Flush,
        _ => Transfer::Other,
    }
}

/// Whether the letters of a request mark metadata.
fn is_metadata(flags: &[u8]) -> bool {
    let letters = flags.split(|letter| *letter == 0).next();
    letters.is_some_and(|letters| letters.contains(&b'M'))
}

/// Number of an event, and the positions of the fields in its records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    /// Number in the records of the event.
    pub(super) id: u16,
    /// Name and position of each field.
    fields: Vec<(String, FieldPlace)>,
}

/// Position of a field in a record, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FieldPlace {
    offset: usize,
    size: usize,
}

impl FieldPlace {
    /// Bytes of a field in a record; `None` where the record is too short.
    pub(super) fn bytes(self, record: &[u8]) -> Option<&[u8]> {
        record.get(self.offset..self.offset.checked_add(self.size)?)
    }

    /// Number in a field of at most 8 bytes, in the machine's byte order.
    pub(super) fn number(self, record: &[u8]) -> Option<u64> {
        let bytes = self.bytes(record)?;
        let mut number = [0; 8];
        number.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(number))
    }
}

impl Format {
    /// Parses the text of a format.
    ///
    /// # Errors
    /// The text is not a format.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:"));
        let id = id.and_then(|id| id.trim().parse().ok());
        let id = id.ok_or_else(|| Error::failed("the format of a trace event has no ID"))?;
        let fields = text.lines().filter_map(field).collect();
        Ok(Self { id, fields })
    }

    /// Position of a field.
    ///
    /// # Errors
    /// The event has no field of that name.
    pub(super) fn place(&self, name: &str) -> Result<FieldPlace> {
        let field = self.fields.iter().find(|(own, _)| own == name);
        field.map(|(_, place)| *place).ok_or_else(|| {
            Error::failed(format!(
                "trace event {} of this kernel has no field {name}",
                self.id
            ))
            .hint("measure without trace events")
        })
    }
}

/// Parses a line such as `field:char rwbs[10]; offset:34; size:10; signed:0;`.
fn field(line: &str) -> Option<(String, FieldPlace)> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let last = declaration.split_whitespace().last()?;
    let name = last.split('[').next()?.to_owned();
    let mut number =
        |what: &str| -> Option<usize> { parts.next()?.strip_prefix(what)?.parse().ok() };
    let place = FieldPlace {
        offset: number("offset:")?,
        size: number("size:")?,
    };
    Some((name, place))
}

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
mod ring_buffer_pages_tests {
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
