//! The head over the medium: continuous reading, and writing.
//!
//! Reading is a stream of passes. A pass is the head over consecutive blocks of one track; its times follow from where the head
//! lands, so that nothing is computed sector by sector. Passes are computed only as far as needed.

use std::collections::VecDeque;

use super::layout::{Arm, Head, Layout, first_true};
use iolab_workload::virtual_disk::Ns;

/// The head over consecutive blocks of one track.
#[derive(Clone, Copy, Debug)]
struct Pass {
    first: u64,
    count: u64,
    /// When the head is on the track.
    landed: Ns,
    /// When block `first` is under the head.
    start: Ns,
    /// Time of all blocks.
    length: Ns,
    /// Number of blocks that come in order; the later ones passed before.
    lead: u64,
    head: Head,
}

impl Pass {
    /// When the blocks up to the `n`th (from 0, inclusive) have been read.
    fn read(&self, n: u64) -> Ns {
        self.start + self.length * (n + 1).min(self.lead) / self.count
    }

    fn done(&self) -> Ns {
        self.read(self.count - 1)
    }

    /// Number of blocks that have been read in order at `at`.
    fn read_at(&self, at: Ns) -> u64 {
        let Some(since) = at.checked_sub(self.start) else {
            return 0;
        };
        let count = (since * self.count)
            .checked_div(self.length)
            .unwrap_or(self.count);
        if count >= self.lead {
            self.count
        } else {
            count
        }
    }
}

/// Reading that continues to its limit, or until it is stopped.
#[derive(Clone, Debug)]
pub(super) struct Stream {
    /// The segment that receives the blocks.
    pub(super) segment: usize,
    passes: VecDeque<Pass>,
    /// The block up to which data was read before the first pass.
    read: u64,
    /// The next block that no pass includes.
    next: u64,
    /// The block at which it stops.
    pub(super) limit: u64,
    /// When the head finishes the last pass.
    clock: Ns,
    /// Position of the head after the passes computed so far.
    pub(super) head: Head,
    on_arrival: bool,
}

impl Stream {
    pub(super) fn new(
        segment: usize,
        first: u64,
        limit: u64,
        at: Ns,
        head: Head,
        on_arrival: bool,
    ) -> Self {
        Self {
            segment,
            passes: VecDeque::new(),
            read: first,
            next: first,
            limit,
            clock: at,
            head,
            on_arrival,
        }
    }

    /// Whether the stream still reads at `at`.
    pub(super) fn active(&self, at: Ns) -> bool {
        self.next < self.limit || self.clock > at
    }

    fn pass(&mut self, arm: &Arm, layout: &Layout) {
        let run = layout.run(self.next);
        let count = run.blocks.min(self.limit - self.next);
        let to = Head::from(run.place);
        let landed = self.clock + arm.reposition(self.head, to, false);
        let start = landed + arm.wait(landed, run.place.angle);
        let span = if count == run.blocks { run.span } else { count };
        let length = arm.pass(span, run.sectors);
        let inside = if self.on_arrival {
            arm.inside(landed, &run)
        } else {
            0
        };
        let lead = if inside > 0 && inside < count {
            inside
        } else {
            count
        };
        let pass = Pass {
            first: self.next,
            count,
            landed,
            start,
            length,
            lead,
            head: to,
        };
        self.next += count;
        self.clock = pass.done();
        self.head = to;
        self.passes.push_back(pass);
    }

    /// Computes passes until `block` is included; the limit must be at least there.
    fn cover(&mut self, block: u64, arm: &Arm, layout: &Layout) {
        while self.next < block.min(self.limit) {
            self.pass(arm, layout);
        }
    }

    /// Computes passes up to `at`.
    pub(super) fn follow(&mut self, at: Ns, arm: &Arm, layout: &Layout) {
        while self.clock <= at && self.next < self.limit {
            self.pass(arm, layout);
        }
        while let Some(pass) = self.passes.front().filter(|pass| pass.done() <= at) {
            self.read = pass.first + pass.count;
            if self.passes.len() == 1 {
                break;
            }
            self.passes.pop_front();
        }
    }

    /// One past the last block read in order at `at`; requires `follow` up to there.
    pub(super) fn end_at(&self, at: Ns) -> u64 {
        let mut end = self.read;
        for pass in &self.passes {
            let count = pass.read_at(at);
            end = end.max(pass.first + count);
            if count < pass.count {
                break;
            }
        }
        end
    }

    /// When all blocks below `end` have been read.
    pub(super) fn time_of(&mut self, end: u64, arm: &Arm, layout: &Layout) -> Ns {
        self.cover(end, arm, layout);
        self.passes
            .iter()
            .rev()
            .find(|pass| pass.first < end)
            .map_or(0, |pass| {
                pass.read((end - 1 - pass.first).min(pass.count - 1))
            })
    }

    /// When the host has the blocks from `first` to `end`, if the first may use the bus at `at` and each takes `block`. No block
    /// is sent before it was read, nor before the previous one.
    pub(super) fn transfer(
        &mut self,
        first: u64,
        end: u64,
        at: Ns,
        block: Ns,
        arm: &Arm,
        layout: &Layout,
    ) -> Ns {
        self.cover(end, arm, layout);
        let mut finish = at + (end - first) * block;
        for pass in &self.passes {
            let (low, high) = (first.max(pass.first), end.min(pass.first + pass.count));
            if low >= high {
                continue;
            }
            // Within a pass the rate is constant, so that its first or its last block decides.
            let last = (pass.first + pass.lead - 1).clamp(low, high - 1);
            for n in [low, last] {
                finish = finish.max(pass.read(n - pass.first) + (end - n) * block);
            }
        }
        finish
    }

    /// Stops at `at`: in the middle of a sector or at its end; during a seek, at the end of the seek. Returns the position of the head, and
    /// the time when it has stopped.
    pub(super) fn stop(
        &mut self,
        at: Ns,
        within_sector: bool,
        arm: &Arm,
        layout: &Layout,
    ) -> (Head, Ns) {
        self.follow(at, arm, layout);
        self.limit = self.limit.min(self.next);
        let Some(pass) = self.passes.back().filter(|_| self.clock > at) else {
            return (self.head, at);
        };
        let free = if at < pass.landed {
            pass.landed
        } else if within_sector || pass.length == 0 {
            at
        } else {
            let sector = (pass.length / pass.count).max(1);
            at + (sector - at.abs_diff(pass.start) % sector) % sector
        };
        (pass.head, free)
    }

    /// Number of blocks that pass the head between landing and the first block, counted from `from`.
    pub(super) fn passing_before(&mut self, from: u64, arm: &Arm, layout: &Layout) -> u64 {
        self.cover(self.next + 1, arm, layout);
        let Some(pass) = self.passes.front() else {
            return 0;
        };
        let sector = (pass.length / pass.count).max(1);
        ((pass.start - pass.landed) / sector).min(pass.first - from)
    }
}

/// When a write's blocks reach the buffer: one after another, the first `block` after `start`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) start: Ns,
    pub(super) block: Ns,
}

impl Arrival {
    fn of(&self, n: u64) -> Ns {
        self.start + (n + 1) * self.block
    }
}

/// The parameters of a write to the medium.
pub(super) struct Writing<'a> {
    pub(super) arm: &'a Arm,
    pub(super) layout: &'a Layout,
    /// Start with whichever sector comes first, when all data is in the buffer.
    pub(super) on_arrival: bool,
    /// Number of blocks in the buffer before the first is written.
    pub(super) least: u64,
}

impl Writing<'_> {
    /// Writes the blocks from `first` to `end` from `at` on; the first seek takes at least `seek`. A block that is not in the
    /// buffer when its sector comes waits for the next revolution. Returns the end, and the position of the head.
    pub(super) fn write(
        &self,
        first: u64,
        end: u64,
        at: Ns,
        seek: Ns,
        mut head: Head,
        data: Arrival,
    ) -> (Ns, Head) {
        let mut clock = at;
        let mut next = first;
        while next < end {
            let run = self.layout.run(next);
            let count = run.blocks.min(end - next);
            let to = Head::from(run.place);
            let move_time = self.arm.reposition(head, to, true);
            clock += if next == first {
                move_time.max(seek)
            } else {
                move_time
            };
            head = to;
            let span = if count == run.blocks { run.span } else { count };
            let length = self.arm.pass(span, run.sectors);
            let mut start = clock + self.arm.wait(clock, run.place.angle);
            let before = next - first;
            if self.on_arrival && data.of(before + count - 1) <= clock {
                let inside = self.arm.inside(clock, &run);
                let last = if inside > 0 && inside < count {
                    inside
                } else {
                    count
                };
                clock = start + length * last / count;
                next += count;
                continue;
            }
            let there = data.of(if next == first {
                self.least.clamp(1, end - first) - 1
            } else {
                before
            });
            if there > start {
                start += (there - start).div_ceil(self.arm.period) * self.arm.period;
            }
            // Sector n passes at `start + n length / count`; its data also arrives at a constant rate.
            let late = |n: u64| data.of(before + n) > start + length * n / count;
            let written = if late(count - 1) {
                first_true(1, count - 1, late)
            } else {
                count
            };
            clock = start + length * written / count;
            next += written;
        }
        (clock, head)
    }
}
