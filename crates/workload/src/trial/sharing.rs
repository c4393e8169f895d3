//! How the workers of a trial share what they read and write.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::named::named;

use super::{Backend, TrialSpec};

named! {
    /// Which bytes belong to which worker.
    pub enum FileLayout: "layout" {
        /// One file, a contiguous share per worker; patterns that draw from the whole region do so.
        Shared = "shared",
        /// One file, blocks dealt out in turn.
        Interleaved = "interleaved",
        /// One file, all of whose region every worker goes over, each in an order of its own where that is random.
        Overlapping = "overlapping",
        /// A file per worker; together they have the size of the region.
        Private = "private",
    }
}

named! {
    /// Whose the open file descriptions are, with their position.
    pub enum Descriptors: "descriptors" {
        /// Each worker opens the file for itself.
        Private = "private",
        /// The file is opened once, and all workers use that.
        Shared = "shared",
    }
}

named! {
    /// Whose part of the region a process (rank) reads, where several measure together.
    pub enum Shift: "shift" {
        /// Its own.
        None = "none",
        /// That of the next rank.
        Rank = "rank",
        /// That of a rank on another host.
        Host = "host",
    }
}

/// Workers of other processes that take part in the same trial. The region, the bounds and the rate are those of all workers
/// together; each process is only told which of them are its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Others {
    /// Workers that are numbered before those of this process.
    pub before: u32,
    /// Workers that are numbered after them.
    pub after: u32,
    /// Workers that are numbered before those whose part this process writes, where it reads another part.
    pub before_written: Option<u32>,
}

impl TrialSpec {
    /// Workers of all processes together.
    pub fn workers(&self) -> u32 {
        self.others.before + self.threads + self.others.after
    }

    /// The number, among all workers, of worker `worker` of this process.
    pub fn number_of(&self, worker: u32) -> u32 {
        self.others.before + worker
    }

    /// Checks what is asked of processes that measure together.
    pub(super) fn check_ranks(&self) -> Result<()> {
        let alone = self.others == Others::default();
        for (name, count) in [("ranks", self.ranks), ("hosts", self.hosts)] {
            if let Some(count) = count.filter(|count| *count > 1 && alone) {
                return Err(Error::usage(format!("{name}={count}, and this is one process")).hint(
                    format!("start as many with mpirun or srun (iolab built with the feature mpi), or leave {name} out"),
                ));
            }
        }
        if self.shift == Shift::None {
            return Ok(());
        }
        let shift = self.shift;
        if alone {
            return Err(
                Error::usage(format!("shift={shift}, and this is one process"))
                    .hint("start at least two with mpirun or srun, or leave shift out"),
            );
        }
        if self.layout != FileLayout::Shared {
            return Err(
                Error::usage(format!("shift={shift} with layout={}", self.layout)).hint(
                    "each rank reads the contiguous part that another one wrote: set layout=shared",
                ),
            );
        }
        if !self.pattern.is_ordered() {
            return Err(
                Error::usage(format!("shift={shift} with pattern={}", self.pattern)).hint(
                    "random requests go to the whole region, also to what the rank wrote itself: set pattern=seq, reverse or strided",
                ),
            );
        }
        if self.ranks.or(self.hosts).is_some() {
            return Err(Error::usage(format!("shift={shift} with ranks or hosts"))
                .hint("with fewer ranks the parts are others than those that were written: leave ranks and hosts out"));
        }
        Ok(())
    }

    /// Whether this process reads a part that another one wrote: trials that write use the own part.
    pub fn is_shifted(&self) -> bool {
        self.shift != Shift::None && !self.writes()
    }

    /// The bytes of the target that the workers of this process go over: their shares where these lie one behind the other,
    /// else the whole region.
    pub fn own_range(&self) -> Range<u64> {
        self.shares_from(self.others.before)
    }

    /// The bytes that this process writes, and that its caches hold after that; [`TrialSpec::own_range`] unless it reads what
    /// another one wrote.
    pub fn written_range(&self) -> Range<u64> {
        self.shares_from(self.others.before_written.unwrap_or(self.others.before))
    }

    /// Whether the ranges of any two processes are apart.
    pub fn has_own_range(&self) -> bool {
        self.layout == FileLayout::Private
            || (self.layout == FileLayout::Shared && self.pattern.is_ordered())
    }

    /// The shares of as many workers as this process has, from this number on.
    fn shares_from(&self, first: u32) -> Range<u64> {
        let (start, end) = (self.offset, self.offset + self.region);
        if self.layout != FileLayout::Shared || !self.pattern.is_ordered() {
            return start..end;
        }
        let of =
            |worker: u32| start + share(self.region / self.bs, worker, self.workers()).0 * self.bs;
        let next = first + self.threads;
        // What is left behind the last block counts with it.
        of(first)..if next < self.workers() { of(next) } else { end }
    }

    /// Whether a trial starts on a file that was created for it: one that only writes, and was asked to.
    pub fn starts_fresh(&self) -> bool {
        (self.fresh || self.fills_new_file()) && !self.reads() && self.backend != Backend::Null
    }

    /// Whether descriptors and layout go together: a file per worker has a descriptor per worker.
    pub fn sharing_applies(&self) -> bool {
        self.layout != FileLayout::Private || self.descriptors != Descriptors::Shared
    }

    /// Bytes of the file that worker `worker` of this process has for itself.
    pub fn private_bytes(&self, worker: u32) -> u64 {
        let number = self.number_of(worker);
        share(self.region / self.bs, number, self.workers()).1 * self.bs
    }
}

/// The part of `total` that falls to `worker` when `workers` share it as evenly as possible: (first, count).
pub fn share(total: u64, worker: u32, workers: u32) -> (u64, u64) {
    let (worker, workers) = (u64::from(worker), u64::from(workers));
    let (base, rest) = (total / workers, total % workers);
    (
        base * worker + worker.min(rest),
        base + u64::from(worker < rest),
    )
}
