//! Recorded events, and the filter that restricts each to a trial.

use super::THREAD_NAMES;
use super::event::{DiskNumber, Edge, Step, Transfer, kernel_number};

/// Filter that lets every event through.
pub(super) const NO_FILTER: &str = "0";

/// Longest filter, bytes. The kernel takes less than a page in one write to `filter` (`event_filter_write`).
const FILTER_MAX: usize = 4000;

/// A recorded event.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    /// Folder below `events`.
    pub(super) path: &'static str,
    pub(super) kind: SourceKind,
}

/// Kind of recorded event.
#[derive(Debug, Clone, Copy)]
pub(super) enum SourceKind {
    Block(Step),
    Wakeup,
    Switch,
    Began,
    Fuse(Edge),
    FileServer(Edge, Transfer),
    Moved,
    Sync(Edge),
    SyncCall(Edge),
    Commit(Edge),
}

/// Choice of traced threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TracedThreads {
    /// Trial threads: when they are woken and run.
    #[default]
    OfTrials,
    /// All threads of the machine: when each begins, and which thread created it.
    All,
}

/// Places and threads to trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TracedPlaces {
    /// Disks, each with whether it has a request queue.
    pub disks: Vec<(DiskNumber, bool)>,
    /// Devices of file systems in user space.
    pub connections: Vec<DiskNumber>,
    /// Devices of file-server mounts.
    pub servers: Vec<DiskNumber>,
    /// Inodes of files whose written blocks get new places.
    pub moving: Vec<u64>,
    /// Devices of file systems with traced syncs.
    pub file_systems: Vec<DiskNumber>,
    /// Choice of traced threads.
    pub threads: TracedThreads,
    /// Whether fsync and fdatasync calls of all threads are traced, which makes every system call slightly
    /// slower.
    pub sync_calls: bool,
}

/// Events needed to trace the requests of a disk.
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

/// Events needed to trace the requests of a file system in user space.
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

/// Events needed to trace the requests to a file server (NFS).
pub(super) const FILE_SERVER_SOURCES: [Source; 6] = [
    of_nfs("nfs/nfs_initiate_read", Edge::Begin, Transfer::Read),
    of_nfs("nfs/nfs_readpage_done", Edge::End, Transfer::Read),
    of_nfs("nfs/nfs_initiate_write", Edge::Begin, Transfer::Write),
    of_nfs("nfs/nfs_writeback_done", Edge::End, Transfer::Write),
    of_nfs("nfs/nfs_initiate_commit", Edge::Begin, Transfer::Flush),
    of_nfs("nfs/nfs_commit_done", Edge::End, Transfer::Flush),
];

const fn of_nfs(path: &'static str, edge: Edge, transfer: Transfer) -> Source {
    Source {
        path,
        kind: SourceKind::FileServer(edge, transfer),
    }
}

/// Event needed to know the new places of written blocks (btrfs): the extents of writes.
pub(super) const MOVED_SOURCE: Source = Source {
    path: "btrfs/btrfs_ordered_extent_add",
    kind: SourceKind::Moved,
};

/// Event needed to know the threads of an observed program.
pub(super) const BEGAN_SOURCE: Source = Source {
    path: "task/task_newtask",
    kind: SourceKind::Began,
};

/// Events needed in every traced trial.
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

/// Events that delimit syncs, where the kernel has them: file systems built as modules have events once they
/// are loaded.
pub(super) const SYNC_SOURCES: [Source; 6] = [
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
        path: "xfs/xfs_dir_fsync",
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

/// Events that delimit sync calls, where the kernel has them: not every file system reports the end of a sync.
pub(super) const SYNC_CALL_SOURCES: [Source; 6] = [
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
    Source {
        path: "syscalls/sys_enter_msync",
        kind: SourceKind::SyncCall(Edge::Begin),
    },
    Source {
        path: "syscalls/sys_exit_msync",
        kind: SourceKind::SyncCall(Edge::End),
    },
];

impl Source {
    /// Whether the event applies to a disk with, or without, a request queue.
    fn is_of(self, has_requests: bool) -> bool {
        match self.kind {
            SourceKind::Block(Step::BioQueue | Step::BioComplete) => !has_requests,
            SourceKind::Block(Step::Start | Step::Issue | Step::Complete) => has_requests,
            SourceKind::Wakeup
            | SourceKind::Switch
            | SourceKind::Began
            | SourceKind::Fuse(_)
            | SourceKind::FileServer(..)
            | SourceKind::Moved
            | SourceKind::Sync(_)
            | SourceKind::SyncCall(_)
            | SourceKind::Commit(_) => true,
        }
    }

    /// Filter for some places and the threads of trials; `None` where none of the places has such events.
    pub(super) fn filter(self, places: &TracedPlaces) -> Option<String> {
        let of_any_number = |field: &str, numbers: &mut dyn Iterator<Item = u64>| {
            let terms: Vec<String> = numbers
                .map(|number| format!("{field} == {number}"))
                .collect();
            (!terms.is_empty()).then(|| terms.join(" || "))
        };
        let of_any = |field: &str, devices: &mut dyn Iterator<Item = DiskNumber>| {
            of_any_number(
                field,
                &mut devices.map(|device| kernel_number(device).into()),
            )
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
            SourceKind::FileServer(..) => of_any("dev", &mut places.servers.iter().copied()),
            SourceKind::Moved => {
                let filter = of_any_number("ino", &mut places.moving.iter().copied())?;
                // The reader of the events filters by inode too.
                Some(match filter.len() <= FILTER_MAX {
                    true => filter,
                    false => NO_FILTER.to_owned(),
                })
            }
            SourceKind::Sync(_) | SourceKind::Commit(_) => {
                of_any("dev", &mut places.file_systems.iter().copied())
            }
            SourceKind::SyncCall(_) => places.sync_calls.then(|| NO_FILTER.to_owned()),
            SourceKind::Wakeup => of_trials.then(|| format!("comm ~ \"{THREAD_NAMES}*\"")),
            // The moment at which a thread leaves its CPU is not needed: it runs again, or is woken first.
            SourceKind::Switch => of_trials.then(|| format!("next_comm ~ \"{THREAD_NAMES}*\"")),
            SourceKind::Began => (!of_trials).then(|| NO_FILTER.to_owned()),
        }
    }
}
