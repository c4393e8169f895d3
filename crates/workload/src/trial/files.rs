//! The files of a trial: how many a thread has, how large each is, and how workers share them.

use std::ops::Range;

use super::super::launchers;
use super::{Allocate, Backend, TrialSpec};
use crate::error::{Error, Result};
use crate::names::named;
use crate::units::{counted, exact_size};
use crate::usage_errors;

/// Most files of a thread: each takes three file descriptors.
pub const FILES_MAX: u32 = 1000;

/// The files of a worker one after the other in its offsets, each in a slot as large as the largest file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileSlots(u64);

impl FileSlots {
    /// Number of the file that holds an offset, and the offset there.
    #[inline(always)]
    pub fn place(self, offset: u64) -> (usize, u64) {
        ((offset / self.0) as usize, offset % self.0)
    }

    /// The offset of a file of this number.
    pub fn first(self, number: u64) -> u64 {
        number * self.0
    }
}

impl TrialSpec {
    /// Size of each file of worker `worker` of this process, if each worker has files of its own, bytes.
    pub fn private_files(&self, worker: u32) -> Vec<u64> {
        let bytes = self.private_bytes(worker);
        match self.files {
            None => vec![bytes],
            Some(files) => {
                let own = |file| share(bytes / self.bs, file, files).1 * self.bs;
                (0..files).map(own).collect()
            }
        }
    }

    /// How many files the workers of this process use.
    pub fn files_of_all(&self) -> u32 {
        match self.layout {
            FileLayout::Private => self.threads.saturating_mul(self.files.unwrap_or(1)),
            FileLayout::Shared | FileLayout::Interleaved | FileLayout::Overlapping => 1,
        }
    }

    /// Distance between the first bytes of two files of a worker in its offsets: the size of the largest file of any worker, bytes.
    pub fn file_slot(&self) -> u64 {
        // Shares differ by at most one block, and the last ones are the smaller.
        let workers = [0, self.threads.saturating_sub(1)].into_iter();
        let sizes = workers.flat_map(|worker| self.private_files(worker));
        sizes.max().unwrap_or(0).max(1)
    }

    /// The slots of the files of a worker; `None` for one file.
    pub fn file_slots(&self) -> Option<FileSlots> {
        self.files.map(|_| FileSlots(self.file_slot()))
    }

    /// The smallest region that has room for a request in each file of every worker, bytes.
    pub fn smallest_region(&self) -> u64 {
        let own = match self.files {
            None => self.largest_request(),
            Some(files) => {
                let blocks = self.largest_request().div_ceil(self.bs.max(1));
                blocks.saturating_mul(self.bs).saturating_mul(files.into())
            }
        };
        own.saturating_mul(self.workers().into())
    }

    /// Checks that several files can be carried out.
    pub(super) fn check_files(&self) -> Result<()> {
        let Some(files) = self.files else {
            return Ok(());
        };
        usage_errors! {
            files == 0 || files > FILES_MAX => format!("files is {files}"), "choose 1 to 1000 files of each thread";
            self.layout != FileLayout::Private => format!("files={files} with layout={}", self.layout),
                "each thread has files of its own: set layout=private";
            matches!(self.backend, Backend::Sync | Backend::Mmap) =>
                format!("files={files} with this backend: it works on one file position or one mapping"),
                "set backend=psync or backend=io_uring";
            self.sync_every > 1 => format!("files={files} with sync_every: a sync reaches the file of one write only"),
                "set sync_every=1, or sync=end";
            self.trace => format!("files={files} with trace=true: traced requests are looked for in one file"),
                "set trace=false, or use one file";
        }
        let request = self.largest_request();
        let (_, blocks) = share(
            self.region / self.bs.max(1),
            self.workers() - 1,
            self.workers(),
        );
        let smallest = blocks / u64::from(files) * self.bs;
        usage_errors! {
            smallest < request =>
                format!("the smallest file of files={files} has {}, less than a request of {}", exact_size(smallest), exact_size(request)),
                "enlarge the region with --size, or choose fewer files or a smaller bs";
        }
        Ok(())
    }

    /// Number of workers of all processes.
    pub fn workers(&self) -> u32 {
        let Others { before, after, .. } = self.others;
        before.saturating_add(self.threads).saturating_add(after)
    }

    /// Places the workers of the first of `processes` processes among the workers of all.
    pub fn span(&mut self, processes: u32) {
        self.others = Others {
            before: 0,
            after: self.threads.saturating_mul(processes.saturating_sub(1)),
            before_written: None,
        };
    }

    /// All workers in words: `4 threads`, `4 workers (4 ranks of 1 thread)`.
    pub(super) fn workers_in_words(&self) -> String {
        let threads = counted(self.threads, "thread");
        match self.workers() / self.threads.max(1) {
            ..=1 => threads,
            ranks => format!("{} workers ({ranks} ranks of {threads})", self.workers()),
        }
    }

    /// The change that makes fewer workers: `fewer threads`, or `fewer ranks`.
    pub fn fewer_workers(&self) -> &'static str {
        match (self.workers() > self.threads, self.threads) {
            (false, _) => "fewer threads",
            (true, ..=1) => "fewer ranks",
            (true, _) => "fewer ranks or threads",
        }
    }

    /// The trial with all its workers in one process.
    #[must_use]
    pub fn in_one_process(&self) -> Self {
        Self {
            threads: self.workers(),
            others: Others::default(),
            ..self.clone()
        }
    }

    /// Number, among all workers, of worker `worker` of this process.
    pub fn number_of(&self, worker: u32) -> u32 {
        self.others.before + worker
    }

    /// Checks settings of processes that measure together.
    pub(super) fn check_ranks(&self) -> Result<()> {
        let alone = self.others == Others::default();
        for (name, count) in [("ranks", self.ranks), ("hosts", self.hosts)] {
            if let Some(count) = count.filter(|count| *count > 1 && alone) {
                return Err(
                    Error::usage(format!("{name}={count}, and this is one process")).hint(format!(
                        concat!(
                            "start as many with ",
                            launchers!(),
                            " (iolab built with the feature mpi), or leave {} out"
                        ),
                        name
                    )),
                );
            }
        }
        if self.shift == Shift::None {
            return Ok(());
        }
        let shift = self.shift;
        usage_errors! {
            alone => format!("shift={shift}, and this is one process"), concat!("start at least two with ", launchers!(), ", or leave shift out");
            self.layout != FileLayout::Shared => format!("shift={shift} with layout={}", self.layout),
                "each rank reads the contiguous part that another one wrote: set layout=shared";
            !self.pattern.is_ordered() => format!("shift={shift} with pattern={}", self.pattern),
                "random requests go to the whole region, also to what the rank wrote itself: set pattern=seq, reverse or strided";
            self.ranks.or(self.hosts).is_some() => format!("shift={shift} with ranks or hosts"),
                "with fewer ranks the parts are others than those that were written: leave ranks and hosts out";
        }
        Ok(())
    }

    /// Whether this process reads a part that another process wrote; trials that write use its own part.
    pub fn is_shifted(&self) -> bool {
        self.shift != Shift::None && !self.writes()
    }

    /// The bytes of the target that the workers of this process access: their shares if these are contiguous, otherwise the
    /// whole region.
    pub fn own_range(&self) -> Range<u64> {
        self.shares_from(self.others.before)
    }

    /// The bytes that this process writes, and caches afterwards; differs from [`TrialSpec::own_range`] if it reads what
    /// another process wrote.
    pub fn written_range(&self) -> Range<u64> {
        self.shares_from(self.others.before_written.unwrap_or(self.others.before))
    }

    /// Whether the ranges of processes are disjoint.
    pub fn has_own_range(&self) -> bool {
        self.layout == FileLayout::Private || self.has_contiguous_shares()
    }

    /// Whether each worker has a part of the region that is one piece.
    fn has_contiguous_shares(&self) -> bool {
        self.layout == FileLayout::Shared && self.pattern.is_ordered()
    }

    /// The shares of the workers of this process, if the first had this number.
    fn shares_from(&self, first: u32) -> Range<u64> {
        let (start, end) = (self.offset, self.offset + self.region);
        if !self.has_contiguous_shares() {
            return start..end;
        }
        let of =
            |worker: u32| start + share(self.region / self.bs, worker, self.workers()).0 * self.bs;
        let next = first + self.threads;
        // The last worker's range includes the remainder after the last block.
        of(first)..if next < self.workers() { of(next) } else { end }
    }

    /// Whether a trial starts with a new file: it only writes, and requests that.
    pub fn starts_fresh(&self) -> bool {
        let is_new = self.allocate == Some(Allocate::Fresh) || self.fills_new_file();
        is_new && !self.reads() && self.backend != Backend::Null
    }

    /// Whether descriptors and layout are compatible: with a file per worker, descriptors cannot be shared.
    pub fn sharing_applies(&self) -> bool {
        self.layout != FileLayout::Private || self.descriptors != Descriptors::Shared
    }

    /// Size of the file of worker `worker` of this process, bytes.
    pub fn private_bytes(&self, worker: u32) -> u64 {
        let number = self.number_of(worker);
        share(self.region / self.bs, number, self.workers()).1 * self.bs
    }
}

named! {
    /// Division of the file or files among workers.
    pub enum FileLayout: "layout" {
        /// One file with a contiguous share per worker; patterns that draw from the whole region do so.
        Shared = "shared",
        /// One file whose blocks workers take in turn.
        Interleaved = "interleaved",
        /// One file whose whole region every worker visits; random orders differ between workers.
        Overlapping = "overlapping",
        /// A file per worker; together they have the size of the region.
        Private = "private",
    }
}

named! {
    /// Sharing of open file descriptions, and thus of file positions, among workers.
    pub enum Descriptors: "descriptors" {
        /// Each worker opens the file.
        Private = "private",
        /// All workers use one description.
        Shared = "shared",
    }
}

named! {
    /// Part of the region that a process (rank) reads if several measure together.
    pub enum Shift: "shift" {
        /// The process reads the part that it writes.
        None = "none",
        /// The part of the next rank.
        Rank = "rank",
        /// The part of a rank on another host.
        Host = "host",
    }
}

/// Workers of other processes in the same trial. The region, the limits and the rate apply to all workers of all processes; this
/// says which of them are in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Others {
    /// Number of workers before the workers of this process.
    pub before: u32,
    /// Number of workers after the workers of this process.
    pub after: u32,
    /// Number of workers before the part that this process writes, if it reads another part.
    pub before_written: Option<u32>,
}

/// The part of `total` of `worker`, if `workers` divide it as evenly as possible: first and count.
pub fn share(total: u64, worker: u32, workers: u32) -> (u64, u64) {
    let (worker, workers) = (u64::from(worker), u64::from(workers));
    let (base, rest) = (total / workers, total % workers);
    (
        base * worker + worker.min(rest),
        base + u64::from(worker < rest),
    )
}
