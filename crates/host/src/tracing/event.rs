//! The events that are recorded, and their records.

use super::THREAD_NAMES;
use super::format::{FieldPlace, Format};
use super::pages::Records;
use iolab_workload::Result;

/// MAJOR and MINOR of a disk.
pub type DiskNumber = (u32, u32);

/// Bits of MINOR in a device number of the kernel.
const MINOR_BITS: u32 = 20;
/// What a filter is set to that lets all through.
const NO_FILTER: &str = "0";
/// `enum fuse_opcode` of linux/fuse.h.
const FUSE_READ: u64 = 15;
const FUSE_WRITE: u64 = 16;
const FUSE_FSYNC: u64 = 20;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, a stamp of the clock of the trial.
    pub at: u64,
    /// What happened.
    pub kind: Kind,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A request of a disk came to a step on its way.
    Block {
        /// To which one.
        step: Step,
        /// The disk, as the kernel numbers it.
        disk: u32,
        /// First sector.
        first: u64,
        /// Sectors; 0 of a flush.
        count: u32,
        /// What it transfers.
        transfer: Transfer,
        /// Whether that is metadata of a file system.
        metadata: bool,
        /// The thread that ran then: of its start the one that sent it.
        thread: u32,
    },
    /// A thread began.
    Began {
        /// It.
        thread: u32,
        /// The one that made it.
        by: u32,
    },
    /// A file system was asked for a sync of a file, or had carried it out.
    Sync {
        /// Which of both.
        edge: Edge,
        /// Its device, as the kernel numbers it.
        file_system: u32,
        /// The file.
        inode: u64,
        /// The thread that carries it out.
        thread: u32,
    },
    /// A thread began a call of fsync or fdatasync, or had its answer.
    SyncCall {
        /// Which of both.
        edge: Edge,
        /// It.
        thread: u32,
    },
    /// A journal began to commit a transaction, or had committed it.
    Commit {
        /// Which of both.
        edge: Edge,
        /// The device of its file system, as the kernel numbers it.
        file_system: u32,
    },
    /// A thread was made ready to run.
    Woken(u32),
    /// A thread got a CPU.
    Runs(u32),
    /// A file system in user space was sent a request.
    FuseSend {
        /// Its device, as the kernel numbers it.
        connection: u32,
        /// The number of the request.
        number: u64,
        /// What it transfers.
        transfer: Transfer,
        /// Bytes of the message.
        message: u32,
        /// The thread that sent it.
        thread: u32,
    },
    /// A file system in user space answered a request.
    FuseEnd {
        /// Its device, as the kernel numbers it.
        connection: u32,
        /// The number of the request.
        number: u64,
        /// Bytes of the message.
        message: u32,
    },
}

/// The steps of a request through the block layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It exists.
    Start,
    /// It was given to the device.
    Issue,
    /// The device has carried it out.
    Complete,
    /// A device without requests was given a bio.
    BioQueue,
    /// A device without requests has carried a bio out.
    BioComplete,
}

/// What a request transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// From the device.
    Read,
    /// To the device.
    Write,
    /// Nothing: a flush of its cache.
    Flush,
    /// Anything else.
    Other,
}

/// The beginning or the end of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// It begins.
    Begin,
    /// It is over.
    End,
}

/// The kernel's number of a device.
pub fn kernel_number((major, minor): DiskNumber) -> u32 {
    major << MINOR_BITS | minor
}

/// An event that is recorded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// Its folder below `events`.
    pub(super) path: &'static str,
    kind: SourceKind,
}

#[derive(Debug, Clone, Copy)]
enum SourceKind {
    Block(Step),
    Wakeup,
    Switch,
    Began,
    Fuse(Edge),
    Sync(Edge),
    SyncCall(Edge),
    Commit(Edge),
}

/// What is traced of threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TracedThreads {
    /// When those of trials are woken and run.
    #[default]
    OfTrials,
    /// That each of the machine begins, and which one made it.
    All,
}

/// What is traced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedPlaces {
    /// Disks, each with whether it has requests.
    pub disks: Vec<(DiskNumber, bool)>,
    /// Devices of file systems in user space.
    pub connections: Vec<DiskNumber>,
    /// Devices of file systems whose syncs are traced.
    pub file_systems: Vec<DiskNumber>,
    /// What is traced of threads.
    pub threads: TracedThreads,
    /// Whether calls of fsync and fdatasync are traced, of all threads: the kernel then takes a little longer for every call.
    pub sync_calls: bool,
}

/// What is needed to trace the requests of a disk.
pub(super) const BLOCK_SOURCES: [Source; 5] = [
    Source {
        path: "block/block_io_start",
        kind: SourceKind::Block(Step::Start),
    },
    Source {
        path: "block/block_rq_issue",
        kind: SourceKind::Block(Step::Issue),
    },
    Source {
        path: "block/block_rq_complete",
        kind: SourceKind::Block(Step::Complete),
    },
    Source {
        path: "block/block_bio_queue",
        kind: SourceKind::Block(Step::BioQueue),
    },
    Source {
        path: "block/block_bio_complete",
        kind: SourceKind::Block(Step::BioComplete),
    },
];

/// What is needed to trace the requests of a file system in user space.
pub(super) const FUSE_SOURCES: [Source; 2] = [
    Source {
        path: "fuse/fuse_request_send",
        kind: SourceKind::Fuse(Edge::Begin),
    },
    Source {
        path: "fuse/fuse_request_end",
        kind: SourceKind::Fuse(Edge::End),
    },
];

/// What is needed to know the threads of a program that is observed.
pub(super) const BEGAN_SOURCE: Source = Source {
    path: "task/task_newtask",
    kind: SourceKind::Began,
};

/// What every traced trial needs.
pub(super) const THREAD_SOURCES: [Source; 2] = [
    Source {
        path: "sched/sched_wakeup",
        kind: SourceKind::Wakeup,
    },
    Source {
        path: "sched/sched_switch",
        kind: SourceKind::Switch,
    },
];

/// What bounds syncs, where the kernel has it: file systems that are modules have their events once they are loaded.
pub(super) const SYNC_SOURCES: [Source; 5] = [
    Source {
        path: "ext4/ext4_sync_file_enter",
        kind: SourceKind::Sync(Edge::Begin),
    },
    Source {
        path: "ext4/ext4_sync_file_exit",
        kind: SourceKind::Sync(Edge::End),
    },
    Source {
        path: "xfs/xfs_file_fsync",
        kind: SourceKind::Sync(Edge::Begin),
    },
    Source {
        path: "jbd2/jbd2_start_commit",
        kind: SourceKind::Commit(Edge::Begin),
    },
    Source {
        path: "jbd2/jbd2_end_commit",
        kind: SourceKind::Commit(Edge::End),
    },
];

/// What bounds the calls that make syncs, where the kernel has it: not every file system says when it has carried one out.
pub(super) const SYNC_CALL_SOURCES: [Source; 4] = [
    Source {
        path: "syscalls/sys_enter_fsync",
        kind: SourceKind::SyncCall(Edge::Begin),
    },
    Source {
        path: "syscalls/sys_exit_fsync",
        kind: SourceKind::SyncCall(Edge::End),
    },
    Source {
        path: "syscalls/sys_enter_fdatasync",
        kind: SourceKind::SyncCall(Edge::Begin),
    },
    Source {
        path: "syscalls/sys_exit_fdatasync",
        kind: SourceKind::SyncCall(Edge::End),
    },
];

impl Source {
    /// Whether it says anything of a disk that has requests, or has none.
    fn is_of(self, has_requests: bool) -> bool {
        match self.kind {
            SourceKind::Block(Step::BioQueue | Step::BioComplete) => !has_requests,
            SourceKind::Block(Step::Start | Step::Issue | Step::Complete) => has_requests,
            SourceKind::Wakeup
            | SourceKind::Switch
            | SourceKind::Began
            | SourceKind::Fuse(_)
            | SourceKind::Sync(_)
            | SourceKind::SyncCall(_)
            | SourceKind::Commit(_) => true,
        }
    }

    /// What restricts it to some places and to the threads of trials; `None` where none of the places has such events.
    pub(super) fn filter(self, places: &TracedPlaces) -> Option<String> {
        let of_any = |field: &str, devices: &mut dyn Iterator<Item = DiskNumber>| {
            let terms: Vec<String> = devices
                .map(|device| format!("{field} == {}", kernel_number(device)))
                .collect();
            (!terms.is_empty()).then(|| terms.join(" || "))
        };
        let of_trials = match places.threads {
            TracedThreads::OfTrials => true,
            TracedThreads::All => false,
        };
        match self.kind {
            SourceKind::Block(_) => {
                let own = places
                    .disks
                    .iter()
                    .filter(|(_, has_requests)| self.is_of(*has_requests));
                of_any("dev", &mut own.map(|(disk, _)| *disk))
            }
            SourceKind::Fuse(_) => of_any("connection", &mut places.connections.iter().copied()),
            SourceKind::Sync(_) | SourceKind::Commit(_) => {
                of_any("dev", &mut places.file_systems.iter().copied())
            }
            SourceKind::SyncCall(_) => places.sync_calls.then(|| NO_FILTER.to_owned()),
            SourceKind::Wakeup => of_trials.then(|| format!("comm ~ \"{THREAD_NAMES}*\"")),
            // When a thread leaves its CPU is not needed: it runs again, or is woken first.
            SourceKind::Switch => of_trials.then(|| format!("next_comm ~ \"{THREAD_NAMES}*\"")),
            SourceKind::Began => (!of_trials).then(|| NO_FILTER.to_owned()),
        }
    }
}

/// Where the fields of an event lie that are read.
#[derive(Debug, Clone, Copy)]
enum Places {
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
}

/// Reads records by the formats of their events.
#[derive(Debug, Default)]
pub(super) struct Decoder(Vec<(u16, Places)>);

impl Decoder {
    /// Adds the format of an event.
    ///
    /// # Errors
    /// When a field is missing.
    pub(super) fn add(&mut self, source: Source, format: &str) -> Result<()> {
        let format = Format::parse(format)?;
        let places = match source.kind {
            SourceKind::Block(step) => Places::Block {
                step,
                disk: format.place("dev")?,
                first: format.place("sector")?,
                count: format.place("nr_sector")?,
                flags: format.place("rwbs")?,
                thread: format.place("common_pid")?,
            },
            SourceKind::Began => Places::Began {
                thread: format.place("pid")?,
                by: format.place("common_pid")?,
            },
            SourceKind::Wakeup => Places::Wakeup(format.place("pid")?),
            SourceKind::Switch => Places::Switch(format.place("next_pid")?),
            SourceKind::Fuse(Edge::Begin) => Places::FuseSend {
                connection: format.place("connection")?,
                number: format.place("unique")?,
                operation: format.place("opcode")?,
                message: format.place("len")?,
                thread: format.place("common_pid")?,
            },
            SourceKind::Fuse(Edge::End) => Places::FuseEnd {
                connection: format.place("connection")?,
                number: format.place("unique")?,
                message: format.place("len")?,
            },
            SourceKind::Sync(edge) => Places::Sync {
                edge,
                file_system: format.place("dev")?,
                inode: format.place("ino")?,
                thread: format.place("common_pid")?,
            },
            SourceKind::SyncCall(edge) => Places::SyncCall {
                edge,
                thread: format.place("common_pid")?,
            },
            SourceKind::Commit(edge) => Places::Commit {
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
                        Kind::Woken(thread) | Kind::Runs(thread) => threads.contains(&thread),
                        Kind::Block { .. }
                        | Kind::Began { .. }
                        | Kind::FuseSend { .. }
                        | Kind::FuseEnd { .. }
                        | Kind::Sync { .. }
                        | Kind::SyncCall { .. }
                        | Kind::Commit { .. } => true,
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
    fn event(&self, record: &[u8], see: &mut impl FnMut(Kind)) -> Option<()> {
        let id = u16::from_le_bytes(record.get(..2)?.try_into().ok()?);
        let (_, places) = self.0.iter().find(|(known, _)| *known == id)?;
        match *places {
            Places::Block {
                step,
                disk,
                first,
                count,
                flags,
                thread,
            } => see(Kind::Block {
                step,
                disk: disk.number(record)? as u32,
                first: first.number(record)?,
                count: count.number(record)? as u32,
                transfer: transfer(flags.bytes(record)?),
                metadata: is_metadata(flags.bytes(record)?),
                thread: thread.number(record)? as u32,
            }),
            Places::Began { thread, by } => see(Kind::Began {
                thread: thread.number(record)? as u32,
                by: by.number(record)? as u32,
            }),
            Places::Sync {
                edge,
                file_system,
                inode,
                thread,
            } => see(Kind::Sync {
                edge,
                file_system: file_system.number(record)? as u32,
                inode: inode.number(record)?,
                thread: thread.number(record)? as u32,
            }),
            Places::SyncCall { edge, thread } => see(Kind::SyncCall {
                edge,
                thread: thread.number(record)? as u32,
            }),
            Places::Commit { edge, file_system } => see(Kind::Commit {
                edge,
                file_system: file_system.number(record)? as u32,
            }),
            Places::Wakeup(thread) => see(Kind::Woken(thread.number(record)? as u32)),
            Places::Switch(next) => see(Kind::Runs(next.number(record)? as u32)),
            Places::FuseSend {
                connection,
                number,
                operation,
                message,
                thread,
            } => see(Kind::FuseSend {
                connection: connection.number(record)? as u32,
                number: number.number(record)?,
                transfer: fuse_transfer(operation.number(record)?),
                message: message.number(record)? as u32,
                thread: thread.number(record)? as u32,
            }),
            Places::FuseEnd {
                connection,
                number,
                message,
            } => see(Kind::FuseEnd {
                connection: connection.number(record)? as u32,
                number: number.number(record)?,
                message: message.number(record)? as u32,
            }),
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

/// Whether the letters of a request name metadata.
fn is_metadata(flags: &[u8]) -> bool {
    let letters = flags.split(|letter| *letter == 0).next();
    letters.is_some_and(|letters| letters.contains(&b'M'))
}

#[cfg(test)]
mod tests;
