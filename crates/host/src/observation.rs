//! Readings around the timed span of a trial, by the thread that coordinates it: kernel counters, and the state
//! of page cache and file. Within the span only the [`Thermometer`] is read, and only in a trial that records
//! latency over time.

use std::path::Path;
use std::time::{Duration, Instant};

use iolab_workload::counters::Counters;
use iolab_workload::region_state::Region;

use crate::counters::{self, FileRange, extents, residency};
use crate::thermometer::Thermometer;
use iolab_storage::{Stack, Target, TargetKind};

/// Readings of everything that a trial uses, before and after it.
pub struct Observation<'a> {
    /// Stack of each device in use.
    stacks: Vec<Stack>,
    watched: Vec<FileRange<'a>>,
    region: Region,
    spent: Duration,
    /// Moment at which the counters before the start were read.
    seen_at: Instant,
}

impl<'a> Observation<'a> {
    /// Prepares to observe ranges (target, offset, length) of files and devices, and reads in advance what can
    /// be read long before the start.
    pub fn new(ranges: impl Iterator<Item = (&'a Target, u64, u64)>) -> Self {
        let began = Instant::now();
        let ranges: Vec<_> = ranges.collect();
        let stored = ranges
            .iter()
            .filter(|(target, ..)| target.kind() != TargetKind::CharDevice);
        let watched: Vec<FileRange<'a>> = stored
            .map(|(target, offset, length)| FileRange {
                file: target.holder(),
                offset: *offset,
                length: *length,
            })
            .collect();
        let regular = !ranges.is_empty()
            && ranges
                .iter()
                .all(|(target, ..)| target.kind() != TargetKind::BlockDevice);
        let region = Region {
            extents: regular.then(|| extents(&watched)).flatten(),
            ..Region::default()
        };
        let mut stacks: Vec<Stack> = Vec::new();
        for (target, ..) in &ranges {
            for stack in target.stack().each() {
                if !stacks.contains(stack) {
                    stacks.push(stack.clone());
                }
            }
        }
        Self {
            stacks,
            watched,
            region,
            spent: began.elapsed(),
            seen_at: began,
        }
    }

    /// Temperature sensors of the disks in use.
    pub fn thermometer(&self) -> Thermometer {
        counters::thermometer(Path::new("/sys"), &self.stacks)
    }

    /// Last reading before the start, with everything else ready.
    pub fn before(&mut self) -> Counters {
        self.look();
        self.count()
    }

    /// First part of [`Observation::before`]: the content of the page cache, which may take long.
    pub fn look(&mut self) {
        let began = Instant::now();
        self.region.before = residency(&self.watched);
        self.spent += began.elapsed();
    }

    /// Second part of [`Observation::before`]: the counters.
    pub fn count(&mut self) -> Counters {
        let began = Instant::now();
        self.seen_at = began;
        let seen = counters::snapshot(&self.stacks);
        self.spent += began.elapsed();
        seen
    }

    /// First reading after the end: changes since `before`, and the state that the trial left.
    pub fn after(self, before: &Counters) -> (Counters, Region) {
        self.after_all(before, Self::count_process())
    }

    /// Counters of this process at the end of its own part of a trial.
    pub fn count_process() -> Counters {
        counters::of_this_process()
    }

    /// As [`Observation::after`], with the counters of this process taken before other processes ended.
    pub fn after_all(mut self, before: &Counters, process: Counters) -> (Counters, Region) {
        let began = Instant::now();
        let counted = counters::since_with(before, process, self.seen_at.elapsed(), &self.stacks);
        self.region.after = residency(&self.watched);
        let spent = self.spent + began.elapsed();
        let region = Region {
            evidence_ns: spent.as_nanos() as u64,
            ..self.region
        };
        (counted, region)
    }
}
