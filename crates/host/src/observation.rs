//! Readings around the timed span of a trial, by the thread that coordinates it: kernel counters, and the state
//! of page cache and file. Within the span only the [`Thermometer`] is read, and only in a trial that records
//! latency over time.
//!
//! The page cache before and after a trial: filling it, writing it back, dropping its pages.

use std::fs::File;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{Advice, fadvise};

use crate::counters::{self, FileRange, extents, residency};
use crate::device::Thermometer;
use iolab_storage::{Stack, Target, TargetKind};
use iolab_workload::counters::Counters;
use iolab_workload::outcome::FailedRequest;
use iolab_workload::region_state::Region;
use iolab_workload::trial::{CacheState, TrialSpec};
use iolab_workload::{Error, Result};

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
        self.after_all(before, counters::of_this_process())
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

/// Request size for filling the page cache before a `hot` trial, bytes.
const WARM_REQUEST: usize = 1 << 20;

/// Writes a target's dirty pages back. `range` is the part known to have been written.
///
/// # Errors
/// A failed call of fdatasync(2).
pub fn make_durable(target: &Target, range: Range<u64>) -> std::result::Result<(), FailedRequest> {
    rustix::fs::fdatasync(target.file()).map_err(|errno| FailedRequest {
        syscall: "fdatasync",
        offset: range.start,
        length: range.end - range.start,
        errno: errno.raw_os_error(),
    })
}

/// Asks the page cache to drop a range. Devices without a page cache refuse the advice, and do not need it.
pub fn drop_pages(target: &Target, range: Range<u64>) {
    let length = std::num::NonZero::new(range.end - range.start);
    let _ = fadvise(target.file(), range.start, length, Advice::DontNeed);
}

/// Brings the page cache of a range into the requested state; `warm` is the part that this process fills.
/// Earlier writes are synced first, so that their write-back does not fall into this trial.
///
/// # Errors
/// A sync or read of the target that fails; of kind [`Interrupted`](iolab_workload::Kind::Interrupted) when
/// `stop` was raised.
pub fn prepare(
    spec: &TrialSpec,
    target: &Target,
    range: Range<u64>,
    warm: Range<u64>,
    stop: &AtomicBool,
) -> Result<()> {
    let file = target.file();
    if spec.writes() {
        rustix::fs::fdatasync(file).map_err(|errno| {
            Error::failed(format!("fdatasync before the trial failed: {errno}"))
        })?;
    }
    match spec.cache {
        // Direct I/O would have to invalidate pages of earlier buffered use within the timed span.
        CacheState::Direct | CacheState::Cold => {
            drop_pages(target, range);
            Ok(())
        }
        CacheState::Hot => read_once(file, warm, stop),
    }
}

fn read_once(file: &File, range: Range<u64>, stop: &AtomicBool) -> Result<()> {
    let mut buffer = vec![0u8; WARM_REQUEST];
    let Range { start: mut at, end } = range;
    while at < end {
        if stop.load(Ordering::Relaxed) {
            return Err(Error::interrupted());
        }
        let want = (end - at).min(WARM_REQUEST as u64) as usize;
        match rustix::io::pread(file, &mut buffer[..want], at) {
            Ok(0) => break,
            Ok(count) => at += count as u64,
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => {
                return Err(Error::failed(format!(
                    "pread at offset {at} failed while warming the cache: {errno}"
                ))
                .hint("look into the kernel's log (dmesg) for errors of the device"));
            }
        }
    }
    Ok(())
}
