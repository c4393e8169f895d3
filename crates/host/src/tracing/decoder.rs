//! Decoder from records, as the kernel writes them, to events.

use iolab_workload::{Error, Result};

use super::event::{Edge, Event, Step, TraceEventKind, Transfer};
use super::recorded_events::{Source, SourceKind};
use super::ring_buffer_pages::Records;

/// Positions of the fields that are read from events, each with its name in the event's format.
macro_rules! places {
    ($($event:ident { $($field:ident = $name:literal),+ })+) => {$(
        #[derive(Debug, Clone, Copy)]
        struct $event {
            $($field: FieldPlace,)+
        }

        impl $event {
            fn of(format: &Format) -> Result<Self> {
                Ok(Self { $($field: format.place($name)?,)+ })
            }
        }
    )+};
}

places! {
    Block { disk = "dev", first = "sector", count = "nr_sector", flags = "rwbs", thread = "common_pid" }
    Began { thread = "pid", by = "common_pid" }
    Sync { file_system = "dev", inode = "ino", thread = "common_pid" }
    SyncCall { thread = "common_pid" }
    Commit { file_system = "dev" }
    Wakeup { thread = "pid" }
    Switch { next = "next_pid" }
}

/// An event with the positions of its fields.
#[derive(Debug, Clone, Copy)]
enum Recorded {
    Block(Step, Block),
    Began(Began),
    Sync(Edge, Sync),
    SyncCall(Edge, SyncCall),
    Commit(Edge, Commit),
    Wakeup(Wakeup),
    Switch(Switch),
}

/// Reader of records by the formats of their events.
#[derive(Debug, Default)]
pub(super) struct Decoder(Vec<(u16, Recorded)>);

impl Decoder {
    /// Adds the format of an event.
    ///
    /// # Errors
    /// A field is missing.
    pub(super) fn add(&mut self, source: Source, format: &str) -> Result<()> {
        let format = &Format::parse(format)?;
        let recorded = match source.kind {
            SourceKind::Block(step) => Recorded::Block(step, Block::of(format)?),
            SourceKind::Began => Recorded::Began(Began::of(format)?),
            SourceKind::Wakeup => Recorded::Wakeup(Wakeup::of(format)?),
            SourceKind::Switch => Recorded::Switch(Switch::of(format)?),
            SourceKind::Sync(edge) => Recorded::Sync(edge, Sync::of(format)?),
            SourceKind::SyncCall(edge) => Recorded::SyncCall(edge, SyncCall::of(format)?),
            SourceKind::Commit(edge) => Recorded::Commit(edge, Commit::of(format)?),
        };
        self.0.push((format.id, recorded));
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
                let own = |kind: &TraceEventKind| {
                    let scheduled = kind.scheduled();
                    scheduled.is_none_or(|(thread, _)| threads.contains(&thread))
                };
                let at = record.at;
                events.extend(kind.filter(own).map(|kind| Event { at, kind }));
            }
        }
    }

    /// Event in a record; `None` for an unknown event or a truncated record.
    fn event(&self, record: &[u8]) -> Option<TraceEventKind> {
        let id = u16::from_le_bytes(record.get(..2)?.try_into().ok()?);
        let (_, recorded) = self.0.iter().find(|(known, _)| *known == id)?;
        let long = |place: FieldPlace| place.number(record);
        let short = |place: FieldPlace| Some(long(place)? as u32);
        Some(match *recorded {
            Recorded::Block(step, at) => TraceEventKind::Block {
                step,
                disk: short(at.disk)?,
                first: long(at.first)?,
                count: short(at.count)?,
                transfer: transfer(at.flags.bytes(record)?),
                metadata: is_metadata(at.flags.bytes(record)?),
                thread: short(at.thread)?,
            },
            Recorded::Began(at) => TraceEventKind::Began {
                thread: short(at.thread)?,
                by: short(at.by)?,
            },
            Recorded::Sync(edge, at) => TraceEventKind::Sync {
                edge,
                file_system: short(at.file_system)?,
                inode: long(at.inode)?,
                thread: short(at.thread)?,
            },
            Recorded::SyncCall(edge, at) => TraceEventKind::SyncCall {
                edge,
                thread: short(at.thread)?,
            },
            Recorded::Commit(edge, at) => TraceEventKind::Commit {
                edge,
                file_system: short(at.file_system)?,
            },
            Recorded::Wakeup(at) => TraceEventKind::Woken(short(at.thread)?),
            Recorded::Switch(at) => TraceEventKind::Runs(short(at.next)?),
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
    fields: Vec<Field>,
}

/// A field: its name and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Field {
    name: String,
    place: FieldPlace,
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
        let field = self.fields.iter().find(|field| field.name == name);
        field.map(|field| field.place).ok_or_else(|| {
            Error::failed(format!(
                "trace event {} of this kernel has no field {name}",
                self.id
            ))
            .hint("measure without trace events")
        })
    }
}

/// Parses a line such as `field:char rwbs[10]; offset:34; size:10; signed:0;`.
fn field(line: &str) -> Option<Field> {
    let mut parts = line.trim().split(';').map(str::trim);
    let declaration = parts.next()?.strip_prefix("field:")?;
    let last = declaration.split_whitespace().last()?;
    let name = last.split('[').next()?.to_owned();
    let mut number =
        |what: &str| -> Option<usize> { parts.next()?.strip_prefix(what)?.parse().ok() };
    Some(Field {
        name,
        place: FieldPlace {
            offset: number("offset:")?,
            size: number("size:")?,
        },
    })
}

#[cfg(test)]
mod tests;
