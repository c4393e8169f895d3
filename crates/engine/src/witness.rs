//! What is looked at around the timed span of a trial, by the thread that coordinates it: kernel counters, and the
//! state that the page cache and the file are in. Nothing of it happens within the span.

use std::time::{Duration, Instant};

use crate::counters::{Counters, Extents, Part, Residency, extents, residency};
use crate::target::{Stack, Target, TargetKind};

/// What was seen of the region that a trial may touch, and what looking cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Region {
    /// Of the page cache, before the start.
    pub before: Option<Residency>,
    /// Of the page cache, after the end.
    pub after: Option<Residency>,
    /// Holes and unwritten extents before the start; devices have none.
    pub extents: Option<Extents>,
    /// Time of the `fdatasync` that followed buffered writes nobody had asked to make durable, ns: what writing
    /// through the page cache left to be done.
    pub owed_sync_ns: Option<u64>,
    /// Time that looking took, before and after the timed span, ns; the `fdatasync` is not part of it.
    pub evidence_ns: u64,
}

/// Looks at what a trial uses, before and after it.
pub(crate) struct Witness<'a> {
    stack: Stack,
    watched: Vec<Part<'a>>,
    region: Region,
    spent: Duration,
}

impl<'a> Witness<'a> {
    /// Prepares to look at ranges (target, offset, length) of files on the same device, or of one device; and looks at
    /// what can be looked at long before the start.
    pub(crate) fn new(ranges: impl Iterator<Item = (&'a Target, u64, u64)>) -> Self {
        let began = Instant::now();
        let ranges: Vec<_> = ranges.collect();
        let stored = ranges
            .iter()
            .filter(|(target, ..)| target.kind() != TargetKind::CharDevice);
        let watched: Vec<Part<'a>> = stored
            .map(|(target, offset, length)| Part {
                file: target.holder(),
                offset: *offset,
                length: *length,
            })
            .collect();
        let regular = ranges
            .first()
            .is_some_and(|(target, ..)| target.kind() != TargetKind::BlockDevice);
        let region = Region {
            extents: regular.then(|| extents(&watched)).flatten(),
            ..Region::default()
        };
        Self {
            stack: ranges
                .first()
                .map_or_else(Stack::default, |(target, ..)| target.stack()),
            watched,
            region,
            spent: began.elapsed(),
        }
    }

    /// The last look before the start: everything is ready.
    pub(crate) fn before(&mut self) -> Counters {
        let began = Instant::now();
        self.region.before = residency(&self.watched);
        let counters = Counters::snapshot(&self.stack);
        self.spent += began.elapsed();
        counters
    }

    /// The first look after the end: what happened since, and the state that it left.
    pub(crate) fn after(mut self, before: &Counters) -> (Counters, Region) {
        let began = Instant::now();
        let counters = before.until_now(&self.stack);
        self.region.after = residency(&self.watched);
        let spent = self.spent + began.elapsed();
        let region = Region {
            evidence_ns: spent.as_nanos() as u64,
            ..self.region
        };
        (counters, region)
    }
}
