//! From records, as the kernel writes them, to events.

use super::event::{Edge, Event, Step, TraceEventKind, Transfer};
use super::event_format::{FieldPlace, Format};
use super::ring_buffer_pages::Records;
use super::recorded_events::{Source, SourceKind};
use iolab_workload::Result;

/// `enum fuse_opcode` of linux/fuse.h.
const FUSE_READ: u64 = 15;
const FUSE_WRITE: u64 = 16;
const FUSE_FSYNC: u64 = 20;

/// Where the fields of an event lie that are read.
#[derive(Debug, Clone, Copy)]
enum FieldPositions {
    Block {
        step: Step,
        disk: FieldPlace,
        first: FieldPlace,
        count: FieldPlace,
        flags: FieldPlace,
        thread: FieldPlace,
    },
    Began {
        thread: FieldPlace,
        by: FieldPlace,
    },
    Sync {
        edge: Edge,
        file_system: FieldPlace,
        inode: FieldPlace,
        thread: FieldPlace,
    },
    SyncCall {
        edge: Edge,
        thread: FieldPlace,
    },
    Commit {
        edge: Edge,
        file_system: FieldPlace,
    },
    Wakeup(FieldPlace),
    Switch(FieldPlace),
    FuseSend {
        connection: FieldPlace,
        number: FieldPlace,
        operation: FieldPlace,
        message: FieldPlace,
        thread: FieldPlace,
    },
    FuseEnd {
        connection: FieldPlace,
        number: FieldPlace,
        message: FieldPlace,
    },
    FileServer {
        edge: Edge,
        transfer: Transfer,
        mount: FieldPlace,
        inode: FieldPlace,
        first: FieldPlace,
        /// Not of a flush.
        count: Option<FieldPlace>,
    },
    Moved {
        file_system: FieldPlace,
        subvolume: FieldPlace,
        inode: FieldPlace,
        offset: FieldPlace,
        bytes: FieldPlace,
        place: FieldPlace,
        bytes_there: FieldPlace,
    },
}

/// Reads records by the formats of their events.
#[derive(Debug, Default)]
pub(super) struct Decoder(Vec<(u16, FieldPositions)>);

impl Decoder {
    /// Adds the format of an event.
    ///
    /// # Errors
    /// When a field is missing.
    pub(super) fn add(&mut self, source: Source, format: &str) -> Result<()> {
        let format = Format::parse(format)?;
        let places = match source.kind {
            SourceKind::Block(step) => FieldPositions::Block {
                step,
                disk: format.place("dev")?,
                first: format.place("sector")?,
                count: format.place("nr_sector")?,
                flags: format.place("rwbs")?,
                thread: format.place("common_pid")?,
            },
            SourceKind::Began => FieldPositions::Began {
                thread: format.place("pid")?,
                by: format.place("common_pid")?,
            },
            SourceKind::Wakeup => FieldPositions::Wakeup(format.place("pid")?),
            SourceKind::Switch => FieldPositions::Switch(format.place("next_pid")?),
            SourceKind::Fuse(Edge::Begin) => FieldPositions::FuseSend {
                connection: format.place("connection")?,
                number: format.place("unique")?,
                operation: format.place("opcode")?,
                message: format.place("len")?,
                thread: format.place("common_pid")?,
            },
            SourceKind::Fuse(Edge::End) => FieldPositions::FuseEnd {
                connection: format.place("connection")?,
                number: format.place("unique")?,
                message: format.place("len")?,
            },
            SourceKind::FileServer(edge, transfer) => FieldPositions::FileServer {
                edge,
                transfer,
                mount: format.place("dev")?,
                inode: format.place("fileid")?,
                first: format.place("offset")?,
                count: match (transfer, edge) {
                    (Transfer::Flush | Transfer::Other, _) => None,
                    (Transfer::Read | Transfer::Write, Edge::Begin) => Some(format.place("count")?),
                    (Transfer::Read | Transfer::Write, Edge::End) => {
                        Some(format.place("res_count")?)
                    }
                },
            },
            SourceKind::Moved => FieldPositions::Moved {
                file_system: format.place("fsid")?,
                subvolume: format.place("root_objectid")?,
                inode: format.place("ino")?,
                offset: format.place("file_offset")?,
                bytes: format.place("len")?,
                place: format.place("start")?,
                bytes_there: format.place("disk_len")?,
            },
            SourceKind::Sync(edge) => FieldPositions::Sync {
                edge,
                file_system: format.place("dev")?,
                inode: format.place("ino")?,
                thread: format.place("common_pid")?,
            },
            SourceKind::SyncCall(edge) => FieldPositions::SyncCall {
                edge,
                thread: format.place("common_pid")?,
            },
            SourceKind::Commit(edge) => FieldPositions::Commit {
                edge,
                file_system: format.place("dev")?,
            },
        };
        self.0.push((format.id, places));
        Ok(())
    }

    /// Appends the events of pages of this size each; of threads only those of `threads`.
    pub(super) fn decode(
        &self,
        pages: &[u8],
        page_bytes: usize,
        threads: &[u32],
        events: &mut Vec<Event>,
    ) {
        for page in pages.chunks(page_bytes.max(1)) {
            for record in Records::of(page) {
                self.event(record.bytes, &mut |kind| {
                    let own = match kind {
                        TraceEventKind::Woken(thread) | TraceEventKind::Runs(thread) => {
                            threads.contains(&thread)
                        }
                        TraceEventKind::Block { .. }
                        | TraceEventKind::Began { .. }
                        | TraceEventKind::FileServer { .. }
                        | TraceEventKind::Moved { .. }
                        | TraceEventKind::FuseSend { .. }
                        | TraceEventKind::FuseEnd { .. }
                        | TraceEventKind::Sync { .. }
                        | TraceEventKind::SyncCall { .. }
                        | TraceEventKind::Commit { .. } => true,
                    };
                    if own {
                        events.push(Event {
                            at: record.at,
                            kind,
                        });
                    }
                });
            }
        }
    }

    /// What a record says; nothing where it is of another event.
    fn event(&self, record: &[u8], see: &mut impl FnMut(TraceEventKind)) -> Option<()> {
        let id = u16::from_le_bytes(record.get(..2)?.try_into().ok()?);
        let (_, places) = self.0.iter().find(|(known, _)| *known == id)?;
        match *places {
            FieldPositions::Block {
                step,
                disk,
                first,
                count,
                flags,
                thread,
            } => see(TraceEventKind::Block {
                step,
                disk: disk.number(record)? as u32,
                first: first.number(record)?,
                count: count.number(record)? as u32,
                transfer: transfer(flags.bytes(record)?),
                metadata: is_metadata(flags.bytes(record)?),
                thread: thread.number(record)? as u32,
            }),
            FieldPositions::Began { thread, by } => see(TraceEventKind::Began {
                thread: thread.number(record)? as u32,
                by: by.number(record)? as u32,
            }),
            FieldPositions::Sync {
                edge,
                file_system,
                inode,
                thread,
            } => see(TraceEventKind::Sync {
                edge,
                file_system: file_system.number(record)? as u32,
                inode: inode.number(record)?,
                thread: thread.number(record)? as u32,
            }),
            FieldPositions::SyncCall { edge, thread } => see(TraceEventKind::SyncCall {
                edge,
                thread: thread.number(record)? as u32,
            }),
            FieldPositions::Commit { edge, file_system } => see(TraceEventKind::Commit {
                edge,
                file_system: file_system.number(record)? as u32,
            }),
            FieldPositions::Wakeup(thread) => {
                see(TraceEventKind::Woken(thread.number(record)? as u32))
            }
            FieldPositions::Switch(next) => see(TraceEventKind::Runs(next.number(record)? as u32)),
            FieldPositions::FuseSend {
                connection,
                number,
                operation,
                message,
                thread,
            } => see(TraceEventKind::FuseSend {
                connection: connection.number(record)? as u32,
                number: number.number(record)?,
                transfer: fuse_transfer(operation.number(record)?),
                message: message.number(record)? as u32,
                thread: thread.number(record)? as u32,
            }),
            FieldPositions::FuseEnd {
                connection,
                number,
                message,
            } => see(TraceEventKind::FuseEnd {
                connection: connection.number(record)? as u32,
                number: number.number(record)?,
                message: message.number(record)? as u32,
            }),
            FieldPositions::FileServer {
                edge,
                transfer,
                mount,
                inode,
                first,
                count,
            } => see(TraceEventKind::FileServer {
                edge,
                mount: mount.number(record)? as u32,
                inode: inode.number(record)?,
                first: first.number(record)?,
                count: match count {
                    Some(count) => count.number(record)? as u32,
                    None => 0,
                },
                transfer,
            }),
            FieldPositions::Moved {
                file_system,
                subvolume,
                inode,
                offset,
                bytes,
                place,
                bytes_there,
            } => {
                let bytes = bytes.number(record)?;
                let is_as_long = bytes_there.number(record)? == bytes;
                see(TraceEventKind::Moved {
                    file_system: btrfs_id(file_system.bytes(record)?, subvolume.number(record)?)?,
                    inode: inode.number(record)?,
                    offset: offset.number(record)?,
                    bytes,
                    place: is_as_long.then_some(place.number(record)?),
                });
            }
        }
        Some(())
    }
}

/// The letters of a request (`blk_fill_rwbs`): an F before the operation asks for a flush first.
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

/// What an operation of linux/fuse.h transfers.
fn fuse_transfer(operation: u64) -> Transfer {
    match operation {
        FUSE_READ => Transfer::Read,
        FUSE_WRITE => Transfer::Write,
        FUSE_FSYNC => Transfer::Flush,
        _ => Transfer::Other,
    }
}

/// What `fstatfs` calls a subvolume of a btrfs with this UUID (`btrfs_statfs`).
fn btrfs_id(uuid: &[u8], subvolume: u64) -> Option<u64> {
    let word = |number: usize| {
        let bytes = uuid.get(4 * number..4 * number + 4)?;
        Some(u32::from_be_bytes(bytes.try_into().ok()?))
    };
    let first = word(0)? ^ word(2)? ^ (subvolume >> 32) as u32;
    let second = word(1)? ^ word(3)? ^ subvolume as u32;
    Some(u64::from(second) << 32 | u64::from(first))
}

/// Whether the letters of a request name metadata.
fn is_metadata(flags: &[u8]) -> bool {
    let letters = flags.split(|letter| *letter == 0).next();
    letters.is_some_and(|letters| letters.contains(&b'M'))
}

#[cfg(test)]
mod tests;
