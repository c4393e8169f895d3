//! How the workers of a trial share files and descriptors.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::launchers;
use crate::named_enum::named;
use crate::quantity::counted;
use crate::usage_errors;

use super::{Allocate, Backend, TrialSpec};

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

impl TrialSpec {
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

/// The part of `total` of `worker`, if `workers` divide it as evenly as possible: first and count.
pub fn share(total: u64, worker: u32, workers: u32) -> (u64, u64) {
    let (worker, workers) = (u64::from(worker), u64::from(workers));
    let (base, rest) = (total / workers, total % workers);
    (
        base * worker + worker.min(rest),
        base + u64::from(worker < rest),
    )
}
