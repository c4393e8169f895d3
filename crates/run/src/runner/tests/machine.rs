//! A machine that is made up: what a trial yields follows from its cell and its seed, so that a run of it is the same
//! whenever it is made. The numbers are such that every column of a run file is filled by some run.

use std::time::{Duration, Instant};

use iolab_engine::series::INTERVAL_NS;
use iolab_spec::counters::{
    Bottom, Counters, DeviceStat, Hardware, HardwareEvents, NoHardware, Pressure, ProcessIo,
    ResourceUse,
};
use iolab_spec::histogram::{LatencyHistogram, new_latency_histogram};
use iolab_spec::operation::{Moved, PerOperation};
use iolab_spec::outcome::{
    Effective, Ended, FailedProgram, Failure, Outcome, ProgramEnd, RateReport, Region, RingFlag,
    Tally, Waits,
};
use iolab_spec::region::{Extents, Residency};
use iolab_spec::series::{Interval, Series};
use iolab_spec::trial::{Backend, BufferInit, CacheState, Pattern, Rate, SyncPolicy, TrialSpec};
use iolab_spec::verify::Verified;

use super::super::*;
use crate::evidence::Origin;
use iolab_spec::medium::Medium;
use iolab_spec::settings::CellSpec;

/// Carries trials out by [`outcome`].
pub(super) struct Machine {
    trials: u64,
    /// After this many trials the user interrupts.
    pub(super) interrupted_at: Option<u64>,
    began: Instant,
}

impl Machine {
    pub(super) fn new() -> Self {
        Self {
            trials: 0,
            interrupted_at: None,
            began: Instant::now(),
        }
    }
}

impl Executor for Machine {
    fn run(&mut self, cell: &CellSpec, _stop: &AtomicBool) -> Result<Outcome> {
        self.trials += 1;
        let mut outcome = outcome(cell);
        if self.interrupted_at == Some(self.trials) {
            outcome.ended = Ended::Interrupted;
        }
        Ok(outcome)
    }

    fn gap(&self, cell: &CellSpec) -> Option<String> {
        (cell.tool.name() == "iozone")
            .then(|| "not possible with iozone: it has no such option".to_owned())
    }

    fn pause(&mut self, _time: Duration, _stop: &AtomicBool) {}

    fn fit(&self, cell: &mut PlannedCell) -> Result<()> {
        fit_cell(cell);
        Ok(())
    }

    fn alignment(&self) -> u64 {
        4096
    }

    fn origin(&self, _cell: &CellSpec) -> Origin {
        Origin::Medium(Medium::Storage)
    }

    fn now(&self) -> Duration {
        self.began.elapsed()
    }
}

/// As [`fit::fit`] on a target with room for everything.
pub(super) fn fit_cell(cell: &mut PlannedCell) {
    let trial = &cell.spec.trial;
    cell.spec.batch_auto &=
        trial.backend.is_asynchronous() && trial.depth > 1 && trial.rate.is_none();
    if cell.spec.runs_program() {
        cell.spec.batch_auto = false;
    }
}

/// Draws from the trial's seed.
struct Draws(u64);

impl Draws {
    /// Uniform in 0 to 1 (SplitMix64).
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Around 1, within `spread` of it.
    fn around_one(&mut self, spread: f64) -> f64 {
        let sum = self.uniform() + self.uniform() + self.uniform();
        1.0 + spread * (sum / 1.5 - 1.0)
    }
}

/// What one request takes when it is alone, ns.
fn request_ns(spec: &TrialSpec) -> f64 {
    let bs = spec.bs as f64;
    let (start, mb_s) = match spec.cache {
        CacheState::Direct => (60_000.0, 2400.0),
        CacheState::Cold => (9_000.0, 1500.0),
        CacheState::Hot => (700.0, 9000.0),
    };
    let start = match spec.pattern {
        Pattern::Seq | Pattern::Reverse => start,
        Pattern::Strided => start * (1.0 + (spec.skip as f64 / 65_536.0).min(2.0)),
        _ => start * 1.6,
    };
    let mb_s = if spec.buffer_init == BufferInit::Huge {
        mb_s * 1.5
    } else {
        mb_s
    };
    let sync = match spec.sync {
        SyncPolicy::Each | SyncPolicy::Osync | SyncPolicy::Odsync => 180_000.0,
        _ => 0.0,
    };
    // A bend at 2 MiB, as a cache's size makes it.
    let beyond = (bs - f64::from(2 << 20)).max(0.0) * 0.2;
    start + (bs + beyond) * 1e3 / mb_s + if spec.writes() { sync + 9_000.0 } else { 0.0 }
}

fn histogram(ns: f64, requests: u64, tail: f64) -> LatencyHistogram {
    let mut histogram = new_latency_histogram();
    let parts = 24;
    let mut left = requests;
    for part in 0..parts {
        let count = (requests / 12).min(left).max(left.min(1));
        let count = if part == parts - 1 { left } else { count };
        let share = f64::from(part) / f64::from(parts - 1);
        let value = ns * (0.9 + 0.2 * share + tail * share.powi(12));
        histogram.record_n(value as u64, count).expect("in bounds");
        left -= count;
    }
    histogram
}

fn tally(requests: u64, spec: &TrialSpec, ns: f64, tail: f64) -> Tally {
    let timed = if spec.latency { requests } else { 0 };
    let waits = spec.rate.map(|_| Waits {
        response: histogram(ns * 1.4, timed, tail * 2.0),
        lateness: histogram(ns * 0.4, timed, tail),
    });
    Tally {
        requests,
        bytes: requests * spec.bs,
        short_transfers: requests / 5000,
        latency: histogram(ns, timed, tail),
        waits,
    }
}

/// What a trial of this cell yields.
pub(super) fn outcome(cell: &CellSpec) -> Outcome {
    let spec = &cell.trial;
    let mut draws = Draws(spec.seed);
    let spread = if spec.bs >= 1 << 20 { 0.2 } else { 0.04 };
    let slow = draws.around_one(spread) * if cell.tool.name() == "fio" { 1.02 } else { 1.0 };
    let ns = request_ns(spec) * slow;
    let at_once = f64::from(spec.threads * spec.depth).min(match spec.backend {
        Backend::Sync => 1.0,
        _ => 12.0,
    });
    let per_second = (at_once * 1e9 / ns).min(spec.rate.map_or(f64::INFINITY, |rate| {
        rate.per_second(spec.mean_request()) * 0.98
    }));
    let within = spec
        .limit
        .time
        .map_or(f64::INFINITY, |time| time.as_secs_f64() * per_second);
    let requests = spec
        .requests_bound()
        .map_or(within, |bound| within.min(bound as f64))
        .max(1.0);
    let requests = if cell.runs_program() {
        (spec.region / spec.bs).max(1)
    } else {
        requests as u64
    };
    let elapsed_ns =
        (requests as f64 * 1e9 / per_second) as u64 + if cell.runs_program() { 900_000 } else { 0 };
    let reads = (requests * u64::from(spec.read_percent)).div_ceil(100);
    let tail = draws.uniform() * 8.0;
    let writes = requests - reads;
    let end_sync_ns = if spec.sync == SyncPolicy::End && spec.writes() {
        3_000_000
    } else {
        0
    };
    let operations = PerOperation {
        read: tally(reads, spec, ns, tail),
        write: tally(writes, spec, ns * 1.3, tail),
        // The files that are stored have no service times of syncs.
        sync: Tally {
            requests: match spec.sync {
                SyncPolicy::Each => writes,
                _ => u64::from(end_sync_ns > 0),
            },
            ..Tally::default()
        },
        trim: Tally::default(),
    };
    let counters = counters(cell, &operations, elapsed_ns, &mut draws);
    let fails = cell.tool.name() == "fio" && spec.bs == 1 << 20 && spec.seed.is_multiple_of(3);
    Outcome {
        errors: u64::from(fails),
        failure: fails.then(|| {
            Failure::Program(FailedProgram {
                command: "fio --name=cell".to_owned(),
                end: ProgramEnd::Code(1),
                last_words: "no space".to_owned(),
            })
        }),
        ended: match spec.limit.time {
            _ if fails => Ended::Failed,
            Some(time) if elapsed_ns >= time.as_nanos() as u64 * 99 / 100 => Ended::Time,
            _ => Ended::Done,
        },
        elapsed_ns: elapsed_ns + end_sync_ns,
        all_active_ns: elapsed_ns * 97 / 100,
        end_sync_ns,
        paused_ns: 0,
        request_sizes: Default::default(),
        cpus_used: Default::default(),
        waited: None,
        clock_drift_ppm: (draws.uniform() * 40.0).round() / 8.0,
        counters,
        region: region(spec, &mut draws),
        effective: Effective {
            fixed_file: spec.backend == Backend::IoUring && spec.registered,
            fixed_buffers: spec.backend == Backend::IoUring
                && spec.registered
                && spec.bs <= 1 << 20,
            ring: match spec.backend {
                Backend::IoUring => vec![RingFlag::SingleIssuer, RingFlag::DeferTaskrun],
                _ => Vec::new(),
            },
            polled: false,
            command: (cell.tool.name() == "fio").then(|| {
                format!(
                    "fio-3.39: fio --name=cell --bs={} --size={}",
                    spec.bs, spec.region
                )
            }),
            note: note(cell),
        },
        rate_report: spec.rate.and_then(Rate::requests).map(|rate| RateReport {
            rate_wanted: rate as f64,
            rate_achieved: per_second,
            backlog_max: if rate > 10_000 { rate / 40 } else { 2 },
            backlog_end: if rate > 10_000 { rate / 50 } else { 0 },
        }),
        series: if cell.runs_program() {
            Series::default()
        } else {
            series(&operations, elapsed_ns)
        },
        groups: Vec::new(),
        verified: spec.verify.then(|| Verified {
            blocks: operations.write.requests,
            bytes: operations.write.bytes,
            cached_bytes: Some(0),
            ..Verified::default()
        }),
        operations,
    }
}

/// Why something asked for is not in force.
fn note(cell: &CellSpec) -> String {
    let spec = &cell.trial;
    if spec.backend == Backend::IoUring && spec.bs > 1 << 20 {
        return "buffers are not registered: they are larger than the limit on locked memory"
            .to_owned();
    }
    String::new()
}

fn counters(
    cell: &CellSpec,
    operations: &PerOperation<Tally>,
    elapsed_ns: u64,
    draws: &mut Draws,
) -> Counters {
    let spec = &cell.trial;
    let (reads, writes) = (&operations.read, &operations.write);
    let requests = reads.requests + writes.requests;
    let share = match spec.cache {
        CacheState::Direct => 1.0,
        CacheState::Cold => 0.97,
        CacheState::Hot => 0.0,
    };
    let device = DeviceStat {
        read_ios: (reads.bytes as f64 * share / spec.bs.min(1 << 20) as f64) as u64,
        read_merges: requests / 100,
        read_bytes: (reads.bytes as f64 * share) as u64 + (draws.uniform() * 8.0) as u64 * 4096,
        write_ios: writes.requests,
        write_merges: 0,
        write_bytes: writes.bytes,
        flush_ios: writes.requests,
        busy_ms: elapsed_ns * 9 / 10_000_000,
        queue_ms: Some(elapsed_ns * 11 / 10_000_000),
    };
    Counters {
        process_io: Some(ProcessIo {
            rchar: reads.bytes,
            wchar: writes.bytes,
            syscr: reads.requests,
            syscw: writes.requests,
            read_bytes: (reads.bytes as f64 * share) as u64,
            write_bytes: writes.bytes,
        }),
        nfs: None,
        usage: ResourceUse {
            user_ns: requests * 300,
            system_ns: requests * (1500 + spec.bs / 40),
            minor_faults: 12,
            major_faults: u64::from(spec.cache == CacheState::Cold),
            voluntary_switches: requests,
            involuntary_switches: (draws.uniform() * 40.0) as u64,
        },
        device: Some(device),
        bottom: (spec.backend == Backend::Libaio || spec.threads > 4).then_some(Bottom {
            stat: device,
            in_file: spec.threads > 4,
        }),
        hardware: if spec.hardware_counters {
            Hardware::Counted(HardwareEvents {
                cycles: Some(requests * 5_000),
                instructions: Some(requests * 7_000),
                llc_misses: Some(requests * 3),
                dtlb_misses: None,
            })
        } else {
            Hardware::Missing(NoHardware::NotAsked)
        },
        pressure: Pressure {
            cpu_stall_ns: Some((draws.uniform() * 0.02 * elapsed_ns as f64) as u64),
            io_stall_ns: Some(elapsed_ns / 2),
            memory_stall_ns: Some(0),
            steal_ns: Some((draws.uniform() * 0.03 * elapsed_ns as f64) as u64),
            suspended_ns: Some(0),
            throttled_ns: None,
            cpu_khz: Some(2_600_000),
        },
        buffer_piece_bytes: None,
    }
}

fn region(spec: &TrialSpec, draws: &mut Draws) -> Region {
    let held = if spec.cache == CacheState::Hot {
        spec.region
    } else {
        0
    };
    let residency = Some(Residency {
        looked_bytes: spec.region,
        resident_bytes: held,
        dirty_bytes: Some(0),
        writeback_bytes: Some(0),
    });
    Region {
        before: residency,
        after: residency,
        extents: Some(Extents {
            looked_bytes: spec.region,
            hole_bytes: 0,
            unwritten_bytes: Some(0),
        }),
        owed_sync_ns: spec.writes().then_some(2_000_000),
        evidence_ns: 400_000 + (draws.uniform() * 90_000.0) as u64,
    }
}

/// The tallies spread evenly over intervals.
fn series(operations: &PerOperation<Tally>, elapsed_ns: u64) -> Series {
    let count = elapsed_ns.div_ceil(INTERVAL_NS).clamp(1, 40);
    let length_ns = (elapsed_ns / count).max(1);
    let done = PerOperation {
        // The intervals of the files that are stored hold no syncs.
        sync: Moved::default(),
        ..operations.moved()
    };
    let part = |total: u64, i: u64| total * (i + 1) / count - total * i / count;
    let intervals = (0..count).map(|i| Interval {
        start_ns: i * length_ns,
        length_ns,
        done: done.map(|all| Moved {
            requests: part(all.requests, i),
            bytes: part(all.bytes, i),
        }),
    });
    Series {
        intervals: intervals.collect(),
    }
}
