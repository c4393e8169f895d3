//! Requests in flight compared with those requested, and rates reached compared with those requested. METHODS.md has the rules.

use std::collections::HashMap;

use super::{CellAnalysis, DoubtKind, LatencySummary, Response, over_trials};
use crate::disturbance::Accounting;
use crate::trial_values::median_of;
use iolab_record::environment::{Environment, KEYS, PeakSource, Peaks, above_zero};
use iolab_record::{Cell, Sample, ShownLatency};
use iolab_stats::median;
use iolab_workload::trial::{Arrivals, Backend, CacheState, TrialSpec};

/// Below this share of the requested concurrency, it is too low.
const SHARE_MIN: f64 = 0.5;

/// Lowest requested concurrency that is judged where no cell has one request at a time.
const ASKED_MIN: u64 = 4;

/// Most by which the time of a lone request outside the device may raise the estimate, as a factor.
const OUTSIDE_MAX: f64 = 4.0;

/// Concurrency in a cell of direct I/O without a rate.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Concurrency {
    /// Requested: threads times depth.
    pub asked: u64,
    /// Requests in flight as seen by the threads, while all of them are active (Little's law). Includes requests
    /// that wait for a lock.
    pub in_flight: Option<f64>,
    /// Requests in flight at the device, in requests of this cell's size; `None` where other processes used it.
    pub at_device: Option<f64>,
    /// Requests served in parallel by the utilisation law: the rate divided by that with one request at a time.
    pub served: Option<f64>,
    /// A setting with which the threads do not wait for each other; `None` where the run shows none.
    pub relief: Option<FasterCell>,
    /// Place at which less than half of the requested concurrency was reached; `None` if it was reached.
    pub shortfall: Option<Shortfall>,
}

/// Another cell of the run with the same requested concurrency that is much faster.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct FasterCell {
    /// The only factor in which it differs: the resource that the threads share.
    pub factor: &'static str,
    /// Requests per second of the faster cell.
    pub iops: f64,
}

/// Factors of shared resources, with the level at which nothing is shared.
const RELIEFS: [(&str, &str); 3] = [
    ("layout", "private"),
    ("descriptors", "private"),
    ("backend", "psync"),
];

/// A cell that is faster by this factor shows what the threads waited for.
const RELIEF_MIN: f64 = 1.5;

/// Place at which the requested concurrency was not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortfall {
    /// In the threads: the trials did not issue enough requests.
    Issued,
    /// Before the device: the threads issued the requests, which then waited.
    ReachedDevice,
}

impl Concurrency {
    /// The concurrency in the trials of one cell; `None` for programs, groups, rates, pauses, and I/O through the page cache.
    pub(super) fn of(cell: &Cell, trials: &[&Sample], accounting: &Accounting) -> Option<Self> {
        let only = cell.spec.only_trial().filter(|trial| {
            trial.rate.is_none()
                && trial.cache == CacheState::Direct
                && trial.backend != Backend::Null
        });
        let judged = !cell.spec.runs_program()
            && only.is_some()
            && trials.iter().all(|trial| trial.paused_ns == 0)
            && !trials.is_empty();
        judged.then(|| Self {
            asked: cell.trial().in_flight_of_all(),
            in_flight: median_of(trials, in_flight),
            at_device: median_of(trials, |s| at_device(s, accounting)),
            ..Self::default()
        })
    }
}

/// Mean number of requests in flight over one trial. Where times are known only in total, Little's law over the whole trial.
fn in_flight(sample: &Sample) -> Option<f64> {
    let over_all = || {
        let requests = sample.operations.iter();
        let requests = requests.filter(|(operation, _)| operation.is_request());
        let spent = requests.filter_map(|(_, one)| {
            Some(one.requests as f64 * one.latency.as_ref()?[Response::Mean]?)
        });
        let spent = spent.reduce(|sum, one| sum + one)?;
        Some(spent / sample.elapsed_ns.max(1) as f64)
    };
    sample.in_flight.or_else(over_all)
}

/// Mean number of this cell's requests in flight at the device over one trial (Documentation/block/stat.rst: time_in_queue).
fn at_device(sample: &Sample, accounting: &Accounting) -> Option<f64> {
    let pieces = accounting.ios_per_request(sample)?;
    let queue_ms = sample.counters.device?.queue_ms?;
    let elapsed_ms = sample.elapsed_ns as f64 / 1e6;
    (elapsed_ms > 0.0).then(|| queue_ms as f64 / elapsed_ms / pieces.max(1.0))
}

/// Compares each cell with the one that differs only in threads and depth, and has one of each.
pub(super) fn judge(cells: &mut [CellAnalysis], factors: &[String]) {
    let others = |cell: &CellAnalysis| levels_but(cell, factors, &["threads", "depth"]);
    let mut lone: HashMap<Vec<String>, &CellAnalysis> = HashMap::new();
    let mut by_levels: HashMap<&[String], &CellAnalysis> = HashMap::new();
    for cell in cells.iter() {
        by_levels.entry(&cell.cell.levels).or_insert(cell);
        if cell.concurrency.is_some_and(|own| own.asked == 1) {
            lone.entry(others(cell)).or_insert(cell);
        }
    }
    let judge = |cell: &CellAnalysis| {
        let alone = lone.get(&others(cell)).copied();
        let relief = relief(&by_levels, cell, factors);
        Some(compared(cell, cell.concurrency?, alone, relief))
    };
    let judged: Vec<Option<Concurrency>> = cells.iter().map(judge).collect();
    for (cell, concurrency) in cells.iter_mut().zip(judged) {
        cell.concurrency = concurrency;
    }
}

/// A much faster cell that differs only in a resource that the threads share. Its median is higher by
/// [`RELIEF_MIN`], and the intervals of both medians do not overlap.
fn relief(
    cells: &HashMap<&[String], &CellAnalysis>,
    of: &CellAnalysis,
    factors: &[String],
) -> Option<FasterCell> {
    let own = of.of[Response::Iops]?;
    let own_high = own.median_interval?.high;
    RELIEFS.into_iter().find_map(|(factor, level)| {
        let place = factors.iter().position(|name| name == factor)?;
        let mut levels = of.cell.levels.clone();
        if *levels.get(place)? == level {
            return None;
        }
        levels[place] = level.to_owned();
        let other = cells.get(levels.as_slice())?.of[Response::Iops]?;
        let is_shown = other.median_interval?.low > own_high;
        (is_shown && other.median > RELIEF_MIN * own.median).then_some(FasterCell {
            factor,
            iops: other.median,
        })
    })
}

fn compared(
    cell: &CellAnalysis,
    concurrency: Concurrency,
    lone: Option<&CellAnalysis>,
    relief: Option<FasterCell>,
) -> Concurrency {
    let asked = concurrency.asked as f64;
    let too_few = |n: f64| n < SHARE_MIN * asked;
    let alone = lone.and_then(|lone| lone.concurrency?.at_device);
    let outside = alone.map_or(1.0, |share| (1.0 / share).clamp(1.0, OUTSIDE_MAX));
    let rate = |cell: &CellAnalysis| cell.median(Response::Iops);
    let rates = rate(cell).zip(lone.and_then(rate));
    // A lone request is always in service, so that its rate is the inverse of its time.
    let served = rates.map(|(all, one)| all / one);
    let judged = concurrency.asked > 1 && (lone.is_some() || concurrency.asked >= ASKED_MIN);
    // Requests served in parallel were not waiting.
    let waited = served.is_none_or(too_few)
        && (relief.is_some() || concurrency.at_device.is_some_and(|n| too_few(n * outside)));
    let shortfall = match concurrency.in_flight.is_some_and(too_few) {
        true => Some(Shortfall::Issued),
        false => waited.then_some(Shortfall::ReachedDevice),
    };
    Concurrency {
        served: served.filter(|n| n.is_finite()),
        relief,
        shortfall: shortfall.filter(|_| judged),
        ..concurrency
    }
}

/// Share of the requested rate, or of the requests due, from which a rate counts as held. If requests are few,
/// those that happen to be due at the very end are a large share.
pub const HELD_FROM: f64 = 0.98;

/// Overload from which it is reported that trials are too short to show it.
pub const OVERLOAD_TOLD: f64 = 0.03;

/// A cell with a rate, over its measured trials.
#[derive(Debug, Clone, PartialEq)]
pub struct CellRate {
    /// Requested rate, requests per second.
    pub rate_wanted: f64,
    /// Requests per second submitted, or completed where most trials missed the rate: median over the trials.
    pub rate_achieved: f64,
    /// Most requests due but not submitted, over all trials.
    pub backlog_max: u64,
    /// Most requests due but not submitted at the end of a trial, over all trials.
    pub backlog_end: u64,
    /// Number of trials that missed the rate.
    pub not_held: usize,
    /// The share of requests beyond the capacity that trials of this length may hide. It is the time for which
    /// the storage still worked after the schedule's end, divided by the schedule's length; median over the
    /// trials.
    pub hidden: f64,
    /// Length of the schedule, ns: median over the trials.
    pub span_ns: f64,
    /// Schedule of each trial.
    schedules: Vec<Schedule>,
    /// Service time (completion minus submission) of the requests whose latency is shown.
    pub service: Option<LatencySummary>,
    /// Submission minus intended start, of the requests whose latency is shown.
    pub lateness: Option<LatencySummary>,
}

impl CellRate {
    /// Rate over the trials of one cell; `None` in the closed loop.
    pub(super) fn of(cell: &Cell, trials: &[&Sample], timed: ShownLatency) -> Option<Self> {
        let spec = cell.spec.only_trial()?;
        let reports: Vec<_> = trials.iter().filter_map(|s| s.rate_report).collect();
        let schedules = trials.iter();
        let schedules = schedules.filter_map(|sample| Schedule::of(sample, spec));
        let schedules: Vec<Schedule> = schedules.collect();
        let medians = |value: fn(&Schedule) -> f64| {
            median(&schedules.iter().map(value).collect::<Vec<f64>>())
        };
        Some(Self {
            rate_wanted: reports.first()?.rate_wanted,
            rate_achieved: median_of(trials, |s| Some(s.rate_report?.rate_achieved))?,
            backlog_max: reports.iter().map(|p| p.backlog_max).max()?,
            backlog_end: reports.iter().map(|p| p.backlog_end).max()?,
            not_held: schedules.iter().filter(|one| !one.held).count(),
            hidden: medians(Schedule::hidden)?,
            span_ns: medians(|one| one.span_ns)?,
            schedules,
            service: over_trials(trials, |s| timed.requests(s).latency.as_deref()),
            lateness: over_trials(trials, |s| timed.requests(s).lateness.as_deref()),
        })
    }

    fn judge(&mut self, latency_ns: f64) {
        let all = self.schedules.iter();
        let is_most = |number: usize| 2 * number > self.schedules.len();
        let outlasting = all.clone().filter(|one| one.outlasts(latency_ns));
        if is_most(outlasting.count()) {
            let missed = |one: &&Schedule| !one.held || one.outlasts(latency_ns);
            self.not_held = all.clone().filter(missed).count();
        }
        if !is_most(self.not_held) {
            return;
        }
        let completed: Vec<f64> = all.map(|one| one.completed).collect();
        let completed = median(&completed).unwrap_or(self.rate_achieved);
        self.rate_achieved = self.rate_achieved.min(completed);
    }
}

/// The schedule of a trial, and how long the storage worked on it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Schedule {
    /// Length of the schedule, ns.
    span_ns: f64,
    /// Time from its end to the last completion, ns.
    drain_ns: f64,
    /// Completed requests per second, until the last completion.
    completed: f64,
    /// Share by which chance may raise a trial's rate above the requested one: two standard deviations.
    chance: f64,
    /// Whether the requests due were made in time.
    held: bool,
}

impl Schedule {
    /// Schedule of a trial; `None` in the closed loop.
    fn of(sample: &Sample, spec: &TrialSpec) -> Option<Self> {
        let report = sample.rate_report?;
        let (made, left) = (sample.requests(), report.backlog_end);
        let is_made = is_held(made, left, spec.workers());
        // Requests due at the end were made up for, unless there were too many.
        let in_time = made.saturating_sub(if is_made { left } else { 0 });
        let reached = report.rate_achieved >= HELD_FROM * report.rate_wanted;
        let whole_ns = sample.elapsed_ns.saturating_sub(sample.end_sync_ns) as f64;
        let span_ns = match report.rate_achieved > 0.0 {
            true => in_time as f64 * 1e9 / report.rate_achieved,
            false => whole_ns,
        };
        Some(Self {
            span_ns,
            drain_ns: (whole_ns - span_ns).max(0.0),
            completed: made as f64 * 1e9 / whole_ns.max(1.0),
            chance: match spec.arrivals {
                Arrivals::Constant => 0.0,
                // A Poisson number of mean n has a standard deviation of the root of n.
                Arrivals::Poisson => 2.0 / (made.max(1) as f64).sqrt(),
            },
            held: reached || is_made,
        })
    }

    /// Upper bound on the share of requests beyond the capacity: the storage worked longer by this share.
    fn hidden(&self) -> f64 {
        match self.span_ns > 0.0 {
            true => self.drain_ns / self.span_ns,
            false => 0.0,
        }
    }

    /// Whether the storage worked longer than explained by its latency, a rate that counts as held, and chance.
    fn outlasts(&self, latency_ns: f64) -> bool {
        self.drain_ns > latency_ns + (1.0 - HELD_FROM).max(self.chance) * self.span_ns
    }
}

/// Finds rates that only seem to be held: free slots took all requests in time, and the storage completed them
/// long after the schedule's end. The unloaded latency is the service time at the lowest rate that differs in
/// nothing else. A single trial may end with a slow request, so most trials of a cell decide.
pub(super) fn judge_rate(cells: &mut [CellAnalysis], factors: &[String]) {
    let others = |cell: &CellAnalysis| levels_but(cell, factors, &["rate"]);
    let mut least: HashMap<Vec<String>, (f64, f64)> = HashMap::new();
    for cell in cells.iter() {
        let report = cell.rate_report.as_ref();
        let served =
            report.and_then(|report| Some((report.rate_wanted, report.service?[Response::P99]?)));
        let Some(own) = served else { continue };
        let known = least.entry(others(cell)).or_insert(own);
        if own.0 < known.0 {
            *known = own;
        }
    }
    for cell in cells {
        let latency = least.get(&others(cell));
        if let Some((report, (_, latency_ns))) = cell.rate_report.as_mut().zip(latency) {
            report.judge(*latency_ns);
        }
    }
}

/// The levels of a cell for all factors but some.
fn levels_but(cell: &CellAnalysis, factors: &[String], but: &[&str]) -> Vec<String> {
    let levels = factors.iter().zip(&cell.cell.levels);
    let kept = levels.filter(|(factor, _)| !but.contains(&factor.as_str()));
    kept.map(|(_, level)| level.clone()).collect()
}

/// Whether a trial kept its rate, with `made` requests issued and `left` due but not issued. One request of each
/// worker may be due at the very end.
fn is_held(made: u64, left: u64, workers: u32) -> bool {
    left <= u64::from(workers) || made as f64 >= HELD_FROM * (made + left) as f64
}

/// A measured ceiling may be exceeded by this factor by chance.
const MEASURED_SLACK: f64 = 1.05;

/// A cell relative to the ceiling that limits it first.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Efficiency {
    /// The ceiling, in MB/s or requests per second.
    pub ceiling: f64,
    /// Whether the ceiling is in requests per second.
    pub is_iops: bool,
    /// The source of the ceiling.
    pub source: PeakSource,
    /// Median of the cell over the ceiling.
    pub share: f64,
    /// A known reason for a share above 1; `None` otherwise.
    pub cause: Option<DoubtKind>,
}

/// All ceilings of a target.
pub(super) struct Ceilings {
    by_source: [(PeakSource, Peaks); 3],
    is_virtual: bool,
}

impl Ceilings {
    /// The ceilings of the target with this number, from the environment of a run file.
    pub(super) fn of(environment: &Environment, number: usize) -> Self {
        let link = above_zero(environment.get_of(number, &KEYS.device_link_mb_s));
        let of_link = Peaks {
            read_mb_s: link,
            write_mb_s: link,
            ..Peaks::default()
        };
        let kept = |source| (source, Peaks::kept_of(environment, number, source));
        Self {
            by_source: [
                kept(PeakSource::Stated),
                kept(PeakSource::Measured),
                (PeakSource::Link, of_link),
            ],
            is_virtual: environment.get(&KEYS.machine_is_virtual) == Some(true),
        }
    }

    /// The efficiency of a cell that only reads or only writes: of the first source with a ceiling for it, the ceiling that
    /// limits it first.
    pub(super) fn efficiency(&self, cell: &CellAnalysis) -> Option<Efficiency> {
        let mb_s = cell.median(Response::Throughput)?;
        let iops = cell.median(Response::Iops)?;
        self.by_source.iter().find_map(|(source, peaks)| {
            let trial = cell.cell.trial();
            let (most_mb_s, most_iops) = match (trial.reads(), trial.writes()) {
                (true, false) => (peaks.read_mb_s, peaks.read_iops),
                (false, true) => (peaks.write_mb_s, peaks.write_iops),
                _ => return None,
            };
            let of = |value: f64, ceiling: Option<f64>, is_iops| {
                let ceiling = ceiling?;
                let share = value / ceiling;
                Some(Efficiency {
                    ceiling,
                    is_iops,
                    source: *source,
                    share,
                    cause: self.cause(cell, share, *source),
                })
            };
            let both = [of(mb_s, most_mb_s, false), of(iops, most_iops, true)];
            let known = both.into_iter().flatten();
            known.max_by(|a, b| a.share.total_cmp(&b.share))
        })
    }

    fn cause(&self, cell: &CellAnalysis, share: f64, source: PeakSource) -> Option<DoubtKind> {
        let served = cell.served.iter().flat_map(|served| &served.trials);
        let sources = served.map(|(verdict, _)| DoubtKind::of_source(*verdict));
        // The target itself is a source like another one.
        let of_source = sources.filter(|doubt| *doubt != DoubtKind::OtherSource);
        let of_source = of_source.min();
        let is_noise = source == PeakSource::Measured && share <= MEASURED_SLACK;
        let of_ceiling = match is_noise {
            true => Some(DoubtKind::ProbeNoise),
            false => self.is_virtual.then_some(DoubtKind::HostCache),
        };
        of_source.or(of_ceiling).filter(|_| share > 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_with_a_few_requests_left_is_held() {
        for (made, left, threads, held) in [
            (1000, 0, 1, true),
            (980, 20, 1, true),
            (979, 21, 1, false),
            // With few requests, one that is due at the very end is a large share and not significant.
            (9, 1, 1, true),
            (8, 2, 1, false),
            (16, 4, 4, true),
            (0, 0, 1, true),
            (0, 5, 1, false),
        ] {
            assert_eq!(
                is_held(made, left, threads),
                held,
                "{made} {left} {threads}"
            );
        }
    }
}
