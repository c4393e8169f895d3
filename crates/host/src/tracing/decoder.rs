//! Decoder from records, as the kernel writes them, to events.

use super::event::{Edge, Event, Step, TraceEventKind, Transfer};
use super::event_format::{FieldPlace, Format};
use super::recorded_events::{Source, SourceKind};
use super::ring_buffer_pages::Records;
use iolab_workload::Result;

/// `enum fuse_opcode` of linux/fuse.h.
const FUSE_READ: u64 = 15;
const FUSE_WRITE: u64 = 16;
const FUSE_FSYNC: u64 = 20;

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
    FuseSend { connection = "connection", number = "unique", operation = "opcode", message = "len", thread = "common_pid" }
    FuseEnd { connection = "connection", number = "unique", message = "len" }
    FileServer { mount = "dev", inode = "fileid", first = "offset" }
    Moved {
        file_system = "fsid", subvolume = "root_objectid", inode = "ino", offset = "file_offset", bytes = "len", place = "start",
        bytes_there = "disk_len"
    }
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
    FuseSend(FuseSend),
    FuseEnd(FuseEnd),
    /// A request to a file server, with the position of the byte count, which a flush lacks.
    FileServer(Edge, Transfer, FileServer, Option<FieldPlace>),
    Moved(Moved),
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
            SourceKind::Fuse(Edge::Begin) => Recorded::FuseSend(FuseSend::of(format)?),
            SourceKind::Fuse(Edge::End) => Recorded::FuseEnd(FuseEnd::of(format)?),
            SourceKind::FileServer(edge, transfer) => {
                let count = match (transfer, edge) {
                    (Transfer::Flush | Transfer::Other, _) => None,
                    (Transfer::Read | Transfer::Write, Edge::Begin) => Some("count"),
                    (Transfer::Read | Transfer::Write, Edge::End) => Some("res_count"),
                };
                let count = count.map(|name| format.place(name)).transpose()?;
                Recorded::FileServer(edge, transfer, FileServer::of(format)?, count)
            }
            SourceKind::Moved => Recorded::Moved(Moved::of(format)?),
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
            Recorded::FuseSend(at) => TraceEventKind::FuseSend {
                connection: short(at.connection)?,
                number: long(at.number)?,
                transfer: fuse_transfer(long(at.operation)?),
                message: short(at.message)?,
                thread: short(at.thread)?,
            },
            Recorded::FuseEnd(at) => TraceEventKind::FuseEnd {
                connection: short(at.connection)?,
                number: long(at.number)?,
                message: short(at.message)?,
            },
            Recorded::FileServer(edge, transfer, at, count) => TraceEventKind::FileServer {
                edge,
                mount: short(at.mount)?,
                inode: long(at.inode)?,
                first: long(at.first)?,
                count: match count {
                    Some(count) => short(count)?,
                    None => 0,
                },
                transfer,
            },
            Recorded::Moved(at) => {
                let bytes = long(at.bytes)?;
                let is_as_long = long(at.bytes_there)? == bytes;
                TraceEventKind::Moved {
                    file_system: btrfs_id(at.file_system.bytes(record)?, long(at.subvolume)?)?,
                    inode: long(at.inode)?,
                    offset: long(at.offset)?,
                    bytes,
                    place: is_as_long.then_some(long(at.place)?),
                }
            }
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

/// Transfer of an operation in linux/fuse.h.
fn fuse_transfer(operation: u64) -> Transfer {
    match operation {
        FUSE_READ => Transfer::Read,
        FUSE_WRITE => Transfer::Write,
        FUSE_FSYNC => Transfer::Flush,
        _ => Transfer::Other,
    }
}

/// Identity that `fstatfs` returns for a subvolume of a btrfs with this UUID (`btrfs_statfs`).
fn btrfs_id(uuid: &[u8], subvolume: u64) -> Option<u64> {
    let word = |number: usize| {
        let bytes = uuid.get(4 * number..4 * number + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    let first = word(0)? ^ word(2)? ^ (subvolume >> 32) as u32;
    let second = word(1)? ^ word(3)? ^ subvolume as u32;
    Some(u64::from(second) << 32 | u64::from(first))
}

/// Whether the letters of a request mark metadata.
fn is_metadata(flags: &[u8]) -> bool {
    let letters = flags.split(|letter| *letter == 0).next();
    letters.is_some_and(|letters| letters.contains(&b'M'))
}

#[cfg(test)]
mod tests;
