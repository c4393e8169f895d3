//! Decoder from records, as the kernel writes them, to events.

use super::event::{Edge, Event, Step, TraceEventKind, Transfer};
use super::event_format::{FieldPlace, Format};
use super::recorded_events::{Source, SourceKind};
use super::ring_buffer_pages::Records;
use iolab_workload::Result;

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

#[cfg(test)]
mod tests;
