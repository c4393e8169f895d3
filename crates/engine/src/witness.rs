//! What is looked at around the timed span of a trial, by the thread that coordinates it: kernel counters, and the
//! state that the page cache and the file are in. Nothing of it happens within the span.

use std::fs::File;
use std::time::{Duration, Instant};

use crate::counters::{Counters, Extents, Residency, extents, residency};
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

/// Looks at a target before and after a trial.
pub(crate) struct Witness<'a> {
    stack: Stack,
    watched: Option<Watched<'a>>,
    region: Region,
    spent: Duration,
}

struct Watched<'a> {
    file: &'a File,
    offset: u64,
    length: u64,
}

impl<'a> Witness<'a> {
    /// Prepares to look at a range of a target, and looks at what can be looked at long before the start.
    pub(crate) fn new(target: Option<&'a Target>, offset: u64, length: u64) -> Self {
        let began = Instant::now();
        let watched = target
            .filter(|target| target.kind() != TargetKind::CharDevice)
            .map(|target| (target, target.file()));
        let regular = watched.filter(|(target, _)| target.kind() != TargetKind::BlockDevice);
        let region = Region {
            extents: regular.and_then(|(_, file)| extents(file, offset, length)),
            ..Region::default()
        };
        Self {
            stack: target.map(Target::stack).unwrap_or_default(),
            watched: watched.map(|(_, file)| Watched {
                file,
                offset,
                length,
            }),
            region,
            spent: began.elapsed(),
        }
    }

    /// The last look before the start: everything is ready.
    pub(crate) fn before(&mut self) -> Counters {
        let began = Instant::now();
        self.region.before = self.look();
        let counters = Counters::snapshot(&self.stack);
        self.spent += began.elapsed();
        counters
    }

    /// The first look after the end: what happened since, and the state that it left.
    pub(crate) fn after(mut self, before: &Counters) -> (Counters, Region) {
        let began = Instant::now();
        let counters = before.until_now(&self.stack);
        self.region.after = self.look();
        let spent = self.spent + began.elapsed();
        let region = Region {
            evidence_ns: spent.as_nanos() as u64,
            ..self.region
        };
        (counters, region)
    }

    fn look(&self) -> Option<Residency> {
        let watched = self.watched.as_ref()?;
        residency(watched.file, watched.offset, watched.length)
    }
}
