//! What is looked at around the timed span of a trial, by the thread that coordinates it: kernel counters, and the
//! state that the page cache and the file are in. Nothing of it happens within the span but
//! readings of the [`Thermometer`], where a trial has its latency over time.

use std::path::Path;
use std::time::{Duration, Instant};

use iolab_workload::counters::Counters;
use iolab_workload::region_state::Region;

use crate::counters::{self, FileRange, extents, residency};
use crate::thermometer::Thermometer;
use iolab_storage::{Stack, Target, TargetKind};

/// Looks at what a trial uses, before and after it.
pub struct Observation<'a> {
    /// The stack of each device in use.
    stacks: Vec<Stack>,
    watched: Vec<FileRange<'a>>,
    region: Region,
    spent: Duration,
    /// When counters were read before the start.
    seen_at: Instant,
}

impl<'a> Observation<'a> {
    /// Prepares to look at ranges (target, offset, length) of files and devices, and looks at what can be looked at long
    /// before the start.
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

    /// The sensors of temperature of what is used.
    pub fn thermometer(&self) -> Thermometer {
        counters::thermometer(Path::new("/sys"), &self.stacks)
    }

    /// The last look before the start: everything is ready.
    pub fn before(&mut self) -> Counters {
        self.look();
        self.count()
    }

    /// The first part of [`Observation::before`]: what the page cache holds, which may take long.
    pub fn look(&mut self) {
        let began = Instant::now();
        self.region.before = residency(&self.watched);
        self.spent += began.elapsed();
    }

    /// The second part of it: the counters.
    pub fn count(&mut self) -> Counters {
        let began = Instant::now();
        self.seen_at = began;
        let seen = counters::snapshot(&self.stacks);
        self.spent += began.elapsed();
        seen
    }

    /// The first look after the end: what happened since, and the state that it left.
    pub fn after(self, before: &Counters) -> (Counters, Region) {
        self.after_all(before, Self::count_process())
    }

    /// What is counted of this process, at the end of its own part of a trial.
    pub fn count_process() -> Counters {
        counters::of_this_process()
    }

    /// As [`Observation::after`], where this was counted of the process itself before other processes had ended.
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
