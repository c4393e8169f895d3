//! The events that are recorded, and their records.

use super::THREAD_NAMES;
use super::format::{FieldPlace, Format};
use super::pages::Records;
use iolab_workload::Result;

/// MAJOR and MINOR of a disk.
pub type DiskNumber = (u32, u32);

/// Bits of MINOR in a device number of the kernel.
const MINOR_BITS: u32 = 20;

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
    /// A thread left its CPU.
    Leaves(u32),
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
    Sync(Edge),
    Commit(Edge),
}

/// What is traced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedPlaces {
    /// Disks, each with whether it has requests.
    pub disks: Vec<(DiskNumber, bool)>,
    /// Devices of file systems whose syncs are traced.
    pub file_systems: Vec<DiskNumber>,
}

/// What every traced trial needs.
pub(super) const SOURCES: [Source; 7] = [
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

impl Source {
    /// Whether it says anything of a disk that has requests, or has none.
    fn is_of(self, has_requests: bool) -> bool {
        match self.kind {
            SourceKind::Block(Step::BioQueue | Step::BioComplete) => !has_requests,
            SourceKind::Block(Step::Start | Step::Issue | Step::Complete) => has_requests,
            SourceKind::Wakeup
            | SourceKind::Switch
            | SourceKind::Sync(_)
            | SourceKind::Commit(_) => true,
        }
    }

    /// What restricts it to some places and to the threads of trials; `None` where none of the places has such events.
    pub(super) fn filter(self, places: &TracedPlaces) -> Option<String> {
        let of_any = |devices: &mut dyn Iterator<Item = DiskNumber>| {
            let terms: Vec<String> = devices
                .map(|device| format!("dev == {}", kernel_number(device)))
                .collect();
            (!terms.is_empty()).then(|| terms.join(" || "))
        };
        match self.kind {
            SourceKind::Block(_) => {
                let own = places
                    .disks
                    .iter()
                    .filter(|(_, has_requests)| self.is_of(*has_requests));
                of_any(&mut own.map(|(disk, _)| *disk))
            }
            SourceKind::Sync(_) | SourceKind::Commit(_) => {
                of_any(&mut places.file_systems.iter().copied())
            }
            SourceKind::Wakeup => Some(format!("comm ~ \"{THREAD_NAMES}*\"")),
            SourceKind::Switch => Some(format!(
                "prev_comm ~ \"{THREAD_NAMES}*\" || next_comm ~ \"{THREAD_NAMES}*\""
            )),
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
    },
    Sync {
        edge: Edge,
        file_system: FieldPlace,
        inode: FieldPlace,
        thread: FieldPlace,
    },
    Commit {
        edge: Edge,
        file_system: FieldPlace,
    },
    Wakeup(FieldPlace),
    Switch {
        previous: FieldPlace,
        next: FieldPlace,
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
            },
            SourceKind::Wakeup => Places::Wakeup(format.place("pid")?),
            SourceKind::Switch => Places::Switch {
                previous: format.place("prev_pid")?,
                next: format.place("next_pid")?,
            },
            SourceKind::Sync(edge) => Places::Sync {
                edge,
                file_system: format.place("dev")?,
                inode: format.place("ino")?,
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
                        Kind::Woken(thread) | Kind::Runs(thread) | Kind::Leaves(thread) => {
                            threads.contains(&thread)
                        }
                        Kind::Block { .. } | Kind::Sync { .. } | Kind::Commit { .. } => true,
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
            } => see(Kind::Block {
                step,
                disk: disk.number(record)? as u32,
                first: first.number(record)?,
                count: count.number(record)? as u32,
                transfer: transfer(flags.bytes(record)?),
                metadata: is_metadata(flags.bytes(record)?),
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
            Places::Commit { edge, file_system } => see(Kind::Commit {
                edge,
                file_system: file_system.number(record)? as u32,
            }),
            Places::Wakeup(thread) => see(Kind::Woken(thread.number(record)? as u32)),
            Places::Switch { previous, next } => {
                see(Kind::Leaves(previous.number(record)? as u32));
                see(Kind::Runs(next.number(record)? as u32));
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

/// Whether the letters of a request name metadata.
fn is_metadata(flags: &[u8]) -> bool {
    let letters = flags.split(|letter| *letter == 0).next();
    letters.is_some_and(|letters| letters.contains(&b'M'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 states them, without what is printed.
    const ISSUE: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\
        \tfield:__data_loc char[] cmd;\toffset:60;\tsize:4;\tsigned:0;\n";
    const SWITCH: &str = "name: sched_switch\nID: 372\nformat:\n\
        \tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n\
        \tfield:pid_t next_pid;\toffset:56;\tsize:4;\tsigned:1;\n";

    fn record(id: u16, fields: &[(usize, &[u8])]) -> Vec<u8> {
        let mut record = vec![0; 64];
        record[..2].copy_from_slice(&id.to_le_bytes());
        for (offset, bytes) in fields {
            record[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        record
    }

    #[test]
    fn records_are_read_by_the_formats_of_their_events() {
        let mut decoder = Decoder::default();
        decoder.add(SOURCES[1], ISSUE).expect("a format");
        decoder.add(SOURCES[6], SWITCH).expect("a format");
        let seen = |record: &[u8]| {
            let mut all = Vec::new();
            decoder.event(record, &mut |kind| all.push(kind));
            all
        };
        let disk = kernel_number((254, 0));
        let issue = record(
            2104,
            &[
                (8, &disk.to_le_bytes()),
                (16, &(1u64 << 40).to_le_bytes()),
                (24, &8u32.to_le_bytes()),
                (34, b"FWFSM"),
            ],
        );
        let block = Kind::Block {
            step: Step::Issue,
            disk,
            first: 1 << 40,
            count: 8,
            transfer: Transfer::Write,
            metadata: true,
        };
        assert_eq!(seen(&issue), [block]);
        let switch = record(372, &[(24, &7u32.to_le_bytes()), (56, &9u32.to_le_bytes())]);
        assert_eq!(seen(&switch), [Kind::Leaves(7), Kind::Runs(9)]);
        assert_eq!(seen(&record(1, &[])), []);
        assert_eq!(seen(&issue[..20]), []);
        // A kernel without a field that is needed is refused.
        let old = ISSUE.replace("nr_sector", "sectors");
        assert!(Decoder::default().add(SOURCES[1], &old).is_err());
    }

    #[test]
    fn a_sync_is_read_with_its_file_and_its_thread() {
        let format = "name: ext4_sync_file_exit\nID: 900\nformat:\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
            \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
            \tfield:ino_t ino;\toffset:16;\tsize:8;\tsigned:0;\n";
        let mut decoder = Decoder::default();
        decoder.add(SYNC_SOURCES[1], format).expect("a format");
        let (disk, inode) = (kernel_number((7, 3)), 1u64 << 33);
        let fields: [(usize, &[u8]); 3] = [
            (4, &7u32.to_le_bytes()),
            (8, &disk.to_le_bytes()),
            (16, &inode.to_le_bytes()),
        ];
        let mut all = Vec::new();
        decoder.event(&record(900, &fields), &mut |kind| all.push(kind));
        let exit = Kind::Sync {
            edge: Edge::End,
            file_system: disk,
            inode,
            thread: 7,
        };
        assert_eq!(all, [exit]);
    }

    #[test]
    fn the_first_letters_of_a_request_say_what_it_transfers() {
        for (flags, expected) in [
            (&b"R\0"[..], Transfer::Read),
            (b"RA", Transfer::Read),
            (b"WS", Transfer::Write),
            (b"FWS", Transfer::Write),
            (b"FF", Transfer::Flush),
            (b"F\0", Transfer::Flush),
            (b"D", Transfer::Other),
            (b"", Transfer::Other),
        ] {
            assert_eq!(transfer(flags), expected, "{flags:?}");
        }
        for (flags, expected) in [(&b"WSM\0"[..], true), (b"FWFSM", true), (b"WS\0M", false)] {
            assert_eq!(is_metadata(flags), expected, "{flags:?}");
        }
    }

    #[test]
    fn only_disks_with_such_events_are_traced() {
        let places = TracedPlaces {
            disks: vec![((8, 0), true), ((253, 1), false)],
            file_systems: Vec::new(),
        };
        let filters = SOURCES.map(|source| source.filter(&places).unwrap_or_default());
        assert_eq!(filters[0], "dev == 8388608");
        assert_eq!(filters[3], "dev == 265289729");
        for source in SYNC_SOURCES {
            assert_eq!(source.filter(&places), None);
        }
        let one = TracedPlaces {
            disks: vec![((8, 0), true)],
            file_systems: vec![(8, 1), (8, 2)],
        };
        assert_eq!(SOURCES[3].filter(&one), None);
        for source in SYNC_SOURCES {
            let filter = source.filter(&one);
            assert_eq!(filter.as_deref(), Some("dev == 8388609 || dev == 8388610"));
        }
    }
}
