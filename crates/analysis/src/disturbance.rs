//! Conditions around the trials of a cell: others' traffic, read-ahead, requests in pieces, CPU pressure, suspension, and outstanding
//! write-back. Pure functions of counters; METHODS.md has the rules.

use std::collections::{BTreeMap, BTreeSet};

use crate::trial_values::median_of;
use iolab_record::environment::{Environment, KEYS};
use iolab_workload::counters::{Bottom, DeviceStat, Pressure, amplifies_writes};
use iolab_workload::trial::{CacheState, TrialSpec};

use iolab_record::{Cell, DriveLog, Residency, RunRecord, Sample, ServedBy};

/// Share of other traffic, or of bytes beyond those requested, that gets a flag.
pub(crate) const BEYOND_OURS: f64 = 0.05;
/// Most bytes that a file system's journal writes per durable write.
pub const JOURNAL_PER_SYNC: u64 = 64 << 10;
/// Bytes of a page.
pub const PAGE: u64 = 4096;
/// Most bytes that the disks below a device carry for each of its bytes, where layers mirror, copy or cache.
const CARRIED_BELOW: u64 = 8;
/// Above this number of device I/Os per request, requests are reported as split.
const PIECES_TOLD_FROM: f64 = 1.1;
/// Number of other I/Os per request above which nothing is concluded about iolab's own.
const STRAY_IOS_MAX: f64 = 0.1;
/// The smallest usual I/O of a file system itself, bytes.
const STRAY_IO: f64 = 4096.0;
/// Least sum of times in flight, ms, of which the step of the counter is at most 5 %.
const QUEUE_MS_MIN: u64 = 20;
/// Limit of the share of the CPU time used by other guests.
const STEAL_MAX: f64 = 0.05;
/// Limit of the share of the time in which tasks wait for a CPU.
const CPU_STALL_MAX: f64 = 0.25;
/// Limit of the share of worker time spent waiting for a CPU. Waking an idle CPU counts as such a wait, and
/// takes a share of the time of small requests on any machine.
const WORKER_WAIT_MAX: f64 = 0.25;
/// Limit of the share of worker time spent waiting for a CPU, while tasks of the machine waited for longer than
/// [`CPU_STALL_MAX`].
const CONTENDED_WAIT_MAX: f64 = 0.05;
/// Largest share of a trial's bytes that storage may have carried if memory served the trial.
const CARRIED_MAX: f64 = 0.05;
/// Limit of the share of the CPU time spent waiting for the next period of a quota.
pub(crate) const QUOTA_WAIT_MAX: f64 = 0.01;
/// Limit of preemptions per second and worker, where the kernel does not report pressure.
const PREEMPTIONS_MAX: f64 = 100.0;
/// A preempted worker waits for about one time slice of the others, s (`base_slice_ns` of the kernel's scheduler).
const SLICE_S: f64 = 3e-3;
/// Fewest preemptions for a rate.
const PREEMPTIONS_MIN: u64 = 100;
/// Limit of the time of outstanding write-back, over the timed span.
pub(crate) const OWED_MAX: f64 = 0.05;
/// Limit of owed time for direct writes, as a share: a sync takes a file system some time by itself.
const OWED_BY_STORAGE_MAX: f64 = 0.25;
/// Smaller differences between the two clocks are jitter, ns.
const SLEEP_MIN_NS: u64 = 1_000_000;

/// Properties of a machine and of a cell's target that decide which counters show the use by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Surroundings {
    /// CPUs that the process may use; `None` where unknown.
    pub cpus: Option<u32>,
    /// Whether the target's file system writes a multiple of the data, so that it is unknown how much of it
    /// others caused.
    pub amplifies_writes: bool,
}

impl Surroundings {
    /// Surroundings in the environment that applies to a cell.
    pub(crate) fn of(environment: &Environment) -> Self {
        let count = environment.get(&KEYS.cpu_usable_count);
        let options = environment.get(&KEYS.mount_options).unwrap_or_default();
        let kind = environment.get(&KEYS.file_system);
        Self {
            cpus: count.and_then(|count| count.try_into().ok()),
            amplifies_writes: kind.is_some_and(|kind| amplifies_writes(&kind, &options)),
        }
    }

    /// Surroundings of any cell of a run with `targets` targets.
    pub fn of_run(environment: &Environment, targets: usize) -> Self {
        let of_target = |number| Self::of(&environment.of_target(number)).amplifies_writes;
        let first = Self::of(environment);
        Self {
            amplifies_writes: first.amplifies_writes || (1..targets).any(of_target),
            ..first
        }
    }
}

/// Conditions around the measured trials of a cell; `None` where they were not counted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct CellDisturbance {
    /// Bytes that the device, or the disks below it, transferred for others, divided by all bytes transferred.
    /// If memory served some requests, so that these have more bytes, divided by the bytes of the requests.
    pub others: Option<f64>,
    /// Bytes read from storage over the bytes requested, of all trials that read through the page cache.
    pub read_ahead: Option<f64>,
    /// Median over the trials of device I/Os per request, for direct I/O without other traffic.
    pub ios_per_request: Option<f64>,
    /// Median over the trials of the mean time of a device I/O by the device's own counters, ns, for direct I/O without other traffic.
    pub device_mean_ns: Option<f64>,
    /// Median over the trials of the number of physically contiguous pieces in the buffer of a request, for direct I/O.
    pub buffer_pieces: Option<f64>,
    /// CPU time used by other guests, over the time of all CPUs.
    pub steal: Option<f64>,
    /// Share of the time in which at least one task of the machine waited for a CPU.
    pub cpu_stall: Option<f64>,
    /// Share of the time in which at least one task waited for I/O.
    pub io_stall: Option<f64>,
    /// Share of the time in which at least one task waited for memory.
    pub memory_stall: Option<f64>,
    /// Time in which the CPU quota of the control group was used up, over the time of all CPUs.
    pub quota_wait: Option<f64>,
    /// Time in which a drive throttled itself, over the time of the trials.
    pub throttled: Option<f64>,
    /// Time in which workers were ready to run and waited for a CPU, over the time of all workers.
    pub worker_wait: Option<f64>,
    /// The part of `worker_wait` in which others had a CPU that workers wanted. Excludes the time in which
    /// workers wait for each other because they outnumber the CPUs.
    pub wait_for_others: Option<f64>,
    /// Preemptions per second and worker; `None` for very few.
    pub preemptions: Option<f64>,
    /// Time that the machine was suspended, or iolab stopped, during trials, ns.
    pub suspended_ns: u64,
    /// Median time of the `fdatasync` that followed writes without a sync, ns.
    pub owed_sync_ns: Option<f64>,
    /// Median of `owed_sync_ns` as a share of the timed span, for buffered writes.
    pub owed: Option<f64>,
    /// Owed time of direct writes, which the kernel has passed on: what a cache of the storage still had to
    /// write, as a share of the timed span. `None` if the file system amplifies writes, since a sync stores
    /// these too.
    pub owed_by_storage: Option<f64>,
    /// Median share of the region in holes and unwritten extents.
    pub empty: Option<f64>,
}

/// Whether a trial of this run was disturbed from outside. A model computes its times, so nothing disturbs it.
pub(crate) fn of_trials(record: &RunRecord) -> impl Fn(&Sample) -> bool {
    let cells = record.cells.iter();
    let cells: BTreeMap<i64, Accounting> = cells
        .map(|cell| {
            let around = Surroundings::of(&record.environment_of(cell));
            (cell.id, Accounting::of(cell, around))
        })
        .collect();
    move |sample| {
        let cell = cells.get(&sample.cell);
        let cell = cell.filter(|_| sample.verdict.served_by != ServedBy::Model);
        cell.is_some_and(|cell| CellDisturbance::of(cell, &[sample]).is_from_outside())
    }
}

impl CellDisturbance {
    /// Time that the machine was suspended, or iolab stopped, ns; `None` for none.
    pub(crate) fn slept(&self) -> Option<f64> {
        (self.suspended_ns > 0).then_some(self.suspended_ns as f64)
    }

    /// The share of others in the device's traffic, if it gets a flag.
    pub fn traffic_of_others(&self) -> Option<f64> {
        self.others.filter(|share| *share > BEYOND_OURS)
    }

    /// Whether requests reach the device in pieces.
    pub fn is_in_pieces(&self) -> bool {
        self.ios_per_request
            .is_some_and(|ios| ios > PIECES_TOLD_FROM)
    }

    /// Owed time of direct writes as a share of the timed span, if it gets a flag.
    pub(crate) fn left_in_storage_cache(&self) -> Option<f64> {
        // The sync may have waited for others that used the device.
        let owed = self.owed_by_storage;
        let owed = owed.filter(|share| *share > OWED_BY_STORAGE_MAX);
        owed.filter(|_| self.traffic_of_others().is_none())
    }

    /// The share of the time that other programs took from the workers on the CPUs, if it gets a flag: what workers
    /// waited for a CPU that others had; where that is not known, what tasks waited for a CPU; where the kernel
    /// reports neither, what preemptions take, since its own threads, which complete requests, also preempt.
    pub fn cpus_taken(&self) -> Option<f64> {
        let is_contended = self.cpu_stall.is_some_and(|share| share > CPU_STALL_MAX);
        let most = match is_contended {
            true => CONTENDED_WAIT_MAX,
            false => WORKER_WAIT_MAX,
        };
        match (self.worker_wait, self.cpu_stall) {
            (Some(waited), _) => {
                let waited = self.wait_for_others.unwrap_or(waited);
                (waited > most).then_some(waited)
            }
            (None, Some(stall)) => is_contended.then_some(stall),
            (None, None) => {
                let rate = self.preemptions.filter(|rate| *rate > PREEMPTIONS_MAX);
                rate.map(|rate| of_all_time(rate * SLICE_S))
            }
        }
    }

    /// The share of the CPU time used by other guests, if it gets a flag.
    pub fn stolen(&self) -> Option<f64> {
        self.steal.filter(|share| *share > STEAL_MAX)
    }

    /// The conditions around the measured trials of a cell.
    pub(crate) fn of(cell: &Accounting, trials: &[&Sample]) -> Self {
        let preempted = |s: &Sample| s.counters.usage.involuntary_switches;
        let of_time = |part: &dyn Fn(&Sample) -> Option<u64>| {
            pooled(trials, |s| Some((part(s)? as f64, s.elapsed_ns as f64)))
        };
        let of_pressure =
            |part: fn(&Pressure) -> Option<u64>| of_time(&|s| part(&s.counters.pressure));
        let worker_wait = |s: &Sample| {
            let whole = s.elapsed_ns as f64 * cell.threads;
            Some((s.run_delay_ns? as f64, whole))
        };
        let preemptions = |s: &Sample| {
            let whole = s.elapsed_ns as f64 * cell.workers;
            Some((preempted(s) as f64 * 1e9, whole))
        };
        let device_mean_ns = |s: &Sample| cell.ios_per_request(s).and_then(|_| device_mean_ns(s));
        let owed_ns = |s: &Sample| s.region.owed_sync_ns.map(|ns| ns as f64);
        let owed = median_of(trials, |s| {
            let owed = owed_ns(s).filter(|_| s.elapsed_ns > 0);
            owed.map(|ns| ns / s.elapsed_ns as f64)
        });
        let of_cpus = f64::from(cell.around.cpus.unwrap_or(1).max(1));
        // What the cache of a drive still holds is not write-back: the kernel has written it.
        let by_storage = !cell.writes_buffered && !cell.around.amplifies_writes;
        Self {
            others: pooled(trials, |s| cell.others(s)),
            read_ahead: pooled(trials, |s| cell.fetched(s)),
            ios_per_request: median_of(trials, |s| cell.ios_per_request(s)),
            device_mean_ns: median_of(trials, device_mean_ns),
            buffer_pieces: median_of(trials, |s| cell.buffer_pieces(s)),
            steal: of_pressure(|all| all.steal_ns).map(|share| of_all_time(share / of_cpus)),
            cpu_stall: of_pressure(|all| all.cpu_stall_ns).map(of_all_time),
            io_stall: of_pressure(|all| all.io_stall_ns).map(of_all_time),
            memory_stall: of_pressure(|all| all.memory_stall_ns).map(of_all_time),
            quota_wait: of_pressure(|all| all.throttled_ns).map(|share| share / of_cpus),
            throttled: of_time(&throttled_ns).map(of_all_time),
            worker_wait: pooled(trials, worker_wait).map(of_all_time),
            wait_for_others: pooled(trials, |s| cell.wait_for_others(s)).map(of_all_time),
            preemptions: pooled(trials, preemptions)
                .filter(|_| sum(trials, preempted) >= PREEMPTIONS_MIN),
            suspended_ns: sum(trials, slept_ns),
            owed_sync_ns: median_of(trials, owed_ns),
            owed: owed.filter(|_| cell.writes_buffered),
            owed_by_storage: owed.filter(|_| by_storage),
            empty: median_of(trials, |s| s.region.empty_share(cell.region)),
        }
    }
}

/// How the counters of a cell's trials are read, as its settings and its surroundings decide for all of them.
pub(crate) struct Accounting {
    around: Surroundings,
    runs_program: bool,
    /// Whether all requests bypass the page cache.
    is_direct: bool,
    reads_buffered: bool,
    writes_buffered: bool,
    /// Whether some writes carry their sync.
    syncs_in_write: bool,
    syncs_per_write: bool,
    /// Whether all requests are whole pages.
    is_aligned: bool,
    /// Size of a request, bytes; `None` for several sizes.
    bs: Option<u64>,
    region: u64,
    /// Workers of this process.
    threads: f64,
    /// Workers of all processes.
    workers: f64,
    /// CPUs on which the workers may run; `None` where unknown.
    cpus: Option<f64>,
}

impl Accounting {
    pub(crate) fn of(cell: &Cell, around: Surroundings) -> Self {
        let spec = &cell.spec;
        let is_buffered = |one: &&TrialSpec| one.cache != CacheState::Direct;
        let (reading, writing) = (spec.reading_trials(), spec.writing_trials());
        let cpus = named_cpus(cell).into_iter().chain(around.cpus).min();
        Self {
            around,
            runs_program: spec.runs_program(),
            is_direct: spec.shared(|trial| trial.cache) == Some(CacheState::Direct),
            reads_buffered: reading.iter().any(is_buffered),
            writes_buffered: writing.iter().any(is_buffered),
            syncs_in_write: writing.iter().any(|one| one.sync.is_in_write()),
            syncs_per_write: writing.iter().any(|one| one.sync.is_per_write()),
            is_aligned: spec.trials().iter().all(|one| one.bs % PAGE == 0),
            bs: spec.shared(|trial| trial.bs),
            region: cell.trial().region,
            threads: f64::from(cell.trial().threads),
            workers: f64::from(cell.trial().workers()),
            cpus: cpus.map(f64::from),
        }
    }

    /// Upper bound on the time in which workers waited for a CPU that other programs used, as a share of the time of
    /// all workers, as two parts. Bounded by the workers' waiting, and by CPU time that iolab did not use: workers that outnumber
    /// the CPUs also wait for each other.
    fn wait_for_others(&self, sample: &Sample) -> Option<(f64, f64)> {
        let (waited, elapsed) = (sample.run_delay_ns? as f64, sample.elapsed_ns as f64);
        let used = sample.counters.usage;
        let used = used.user_ns as f64 + used.system_ns as f64;
        let unused = (self.cpus? * elapsed - used).max(0.0);
        Some((waited.min(unused), elapsed * self.threads))
    }

    /// The share of others in the device's traffic during a trial.
    pub(crate) fn share_of_others(&self, sample: &Sample) -> Option<f64> {
        pooled(&[sample], |sample| self.others(sample))
    }

    /// Bytes that the device and the disks below it transferred for others, and the largest of their totals and the
    /// bytes of the requests.
    ///
    /// Not for programs, which read few bytes for their time, so that other traffic is always a multiple of these.
    /// Not for trials that memory served, which did not wait for the device.
    fn others(&self, sample: &Sample) -> Option<(f64, f64)> {
        if self.runs_program {
            return None;
        }
        let device = sample.counters.device?;
        let ours = sample.counters.process_io?;
        if is_of_memory(sample, ours.read_bytes.saturating_add(ours.write_bytes)) {
            return None;
        }
        let written = if sample.operations.write.bytes == 0 || !self.writes_buffered {
            ours.write_bytes
        } else {
            // Bytes made dirty, minus those still to be written. The account counts whole folios; of these, no more
            // is written than was dirty before and the pages of the requests.
            let owed = |seen: Option<Residency>| seen.as_ref().and_then(Residency::owed_bytes);
            let (before, after) = (owed(sample.region.before)?, owed(sample.region.after)?);
            let dirtied = ours.write_bytes.saturating_add(before);
            let of_requests = self.pages_of_writes(sample).saturating_add(before);
            dirtied.saturating_sub(after).min(of_requests)
        };
        // If groups differ, counts the bytes that any of them may have made durable.
        let in_writes = match self.syncs_in_write {
            true => sample.operations.write.requests,
            false => 0,
        };
        let made_durable = in_writes.saturating_add(sample.operations.sync.requests);
        let journal = made_durable.saturating_mul(JOURNAL_PER_SYNC);
        let added = match self.around.amplifies_writes && sample.operations.write.bytes > 0 {
            true => u64::MAX,
            false => journal,
        };
        let beyond = device.write_bytes.saturating_sub(written);
        let beyond = beyond.saturating_sub(added);
        let beyond = beyond.saturating_add(device.read_bytes.saturating_sub(ours.read_bytes));
        let carried = device.read_bytes.saturating_add(device.write_bytes);
        let (below, carried_below) = sample.counters.bottom.map_or((0, 0), |disks| {
            let all = disks.stat.read_bytes.saturating_add(disks.stat.write_bytes);
            (beyond_device(disks, device).saturating_sub(journal), all)
        });
        let carried = carried.max(carried_below).max(sample.bytes());
        Some((beyond.saturating_add(below) as f64, carried as f64))
    }

    /// Upper bound on the bytes of pages that the writes of a trial touch: each write can begin and end within a
    /// page.
    fn pages_of_writes(&self, sample: &Sample) -> u64 {
        let writes = &sample.operations.write;
        let partial = match self.is_aligned && writes.bytes.is_multiple_of(PAGE) {
            true => 0,
            false => writes.requests.saturating_mul(2 * (PAGE - 1)),
        };
        writes.bytes.saturating_add(partial)
    }

    /// Bytes read from storage, and bytes requested, where the page cache may read ahead. `None` for a trial that found
    /// some of its bytes in memory.
    fn fetched(&self, sample: &Sample) -> Option<(f64, f64)> {
        let fetched = sample.counters.process_io?.read_bytes;
        let asked = sample.operations.read.bytes;
        let has_read_ahead = self.reads_buffered && asked > 0 && fetched > asked;
        has_read_ahead.then_some((fetched as f64, asked as f64))
    }

    /// Device I/Os per request; `None` where other traffic, the page cache or a journal may contribute much, or where
    /// the requests did not reach the device.
    pub(crate) fn ios_per_request(&self, sample: &Sample) -> Option<f64> {
        let device = sample.counters.device?;
        let may_journal = self.syncs_per_write || self.around.amplifies_writes;
        let journals = sample.operations.write.requests > 0 && may_journal;
        let reached = sample.verdict.served_by == ServedBy::Device;
        if !self.is_direct || !reached || journals {
            return None;
        }
        let (beyond, bytes) = self.others(sample)?;
        let ios = (device.read_ios + device.write_ios) as f64;
        let requests = sample.requests() as f64;
        let ours = stray_ios(sample)? <= STRAY_IOS_MAX * requests;
        let undisturbed = beyond <= BEYOND_OURS * bytes;
        (ios > 0.0 && undisturbed && ours && requests > 0.0).then(|| ios / requests)
    }

    /// Physically contiguous pieces in the buffer of a request; `None` where unknown, and where no device received it.
    fn buffer_pieces(&self, sample: &Sample) -> Option<f64> {
        let piece = sample.counters.buffer_piece_bytes;
        let piece = piece.filter(|bytes| *bytes > 0)?;
        // With several sizes of requests it is unknown whose buffers have such pieces.
        let bs = self.bs.filter(|_| self.is_direct)?;
        Some((bs as f64 / piece as f64).max(1.0))
    }
}

/// Caps a share at 1: counters are read shortly before and after the timed span.
fn of_all_time(share: f64) -> f64 {
    share.min(1.0)
}

/// Ratio of two sums over the trials that have both parts of it.
fn pooled(trials: &[&Sample], of: impl Fn(&Sample) -> Option<(f64, f64)>) -> Option<f64> {
    let parts = trials.iter().filter_map(|s| of(s));
    let (part, whole) = parts.fold((0.0, 0.0), |sum, own| (sum.0 + own.0, sum.1 + own.1));
    (whole > 0.0).then(|| part / whole)
}

/// The sum over all trials, saturating, since a foreign file may have any numbers.
fn sum(trials: &[&Sample], of: impl Fn(&Sample) -> u64) -> u64 {
    trials.iter().map(|s| of(s)).fold(0, u64::saturating_add)
}

/// The number of CPUs that workers may run on; `None` if some group may run on all that iolab has.
fn named_cpus(cell: &Cell) -> Option<u32> {
    let mut named: BTreeSet<u32> = BTreeSet::new();
    for trial in cell.spec.trials() {
        named.extend(trial.cpus.as_ref()?.numbers());
    }
    Some(named.len() as u32)
}

/// Time for which the drive below a trial throttled itself, of several the longest; `None` if no log was read.
pub(crate) fn throttled_ns(sample: &Sample) -> Option<u64> {
    sample.drives.iter().map(DriveLog::throttled_ns).max()
}

/// Time that the machine was suspended, or iolab stopped, during a trial; 0 where it is too short to matter.
pub(crate) fn slept_ns(sample: &Sample) -> u64 {
    let slept = sample.counters.pressure.suspended_ns.unwrap_or(0);
    if slept >= SLEEP_MIN_NS { slept } else { 0 }
}

/// Whether memory served a trial, whose process read and wrote `carried` bytes of storage.
fn is_of_memory(sample: &Sample, carried: u64) -> bool {
    let memory = [ServedBy::PageCache, ServedBy::Hole, ServedBy::NotStorage];
    let is_memory = memory.contains(&sample.verdict.served_by);
    is_memory && carried as f64 <= CARRIED_MAX * sample.bytes() as f64
}

/// Lower bound on bytes that the disks below a device carried for anything else: other partitions and volumes,
/// and files other than the one of a loop device.
fn beyond_device(disks: Bottom, device: DeviceStat) -> u64 {
    let beyond = |disks: u64, device: u64| disks.saturating_sub(device);
    let carried = |stat: DeviceStat| stat.read_bytes.saturating_add(stat.write_bytes);
    match disks.passes_on {
        true => beyond(disks.stat.read_bytes, device.read_bytes)
            .saturating_add(beyond(disks.stat.write_bytes, device.write_bytes)),
        false => beyond(
            carried(disks.stat),
            carried(device).saturating_mul(CARRIED_BELOW),
        ),
    }
}

/// The mean time of a device I/O, ns: the sum of the times in flight divided by the number of I/Os
/// (Documentation/block/stat.rst of Linux: time_in_queue). `None` for times near the step of the counter.
fn device_mean_ns(sample: &Sample) -> Option<f64> {
    let device = sample.counters.device?;
    let queue_ms = device.queue_ms.filter(|ms| *ms >= QUEUE_MS_MIN)?;
    let ios = (device.read_ios + device.write_ios) as f64;
    Some(queue_ms as f64 * 1e6 / ios)
}

/// Upper bound on device I/Os of others: few bytes of a file system's own may be many I/Os relative to large requests.
fn stray_ios(sample: &Sample) -> Option<f64> {
    let (device, ours) = (sample.counters.device?, sample.counters.process_io?);
    let beyond = |device: u64, ours: u64| device.saturating_sub(ours) as f64;
    let bytes =
        beyond(device.read_bytes, ours.read_bytes) + beyond(device.write_bytes, ours.write_bytes);
    Some(bytes / STRAY_IO)
}
