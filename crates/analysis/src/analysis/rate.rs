//! How well open-loop cells kept their rate, and the share of a device's ceiling that cells reach.

use std::collections::HashMap;

use super::{CellAnalysis, DoubtKind, Latency, Response, quantiles};
use iolab_record::environment::{Environment, KEYS, PeakSource};
use iolab_record::peaks::{Peaks, above_zero};
use iolab_record::{Sample, ServedBy, ShownLatency};
use iolab_stats::median;
use iolab_workload::trial::{Arrivals, TrialSpec};

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
    /// Requests per second submitted: median over the trials. Completed ones if the storage still worked on them
    /// long after the schedule had ended.
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
    pub service: Option<Latency>,
    /// Submission minus intended start, of the requests whose latency is shown.
    pub lateness: Option<Latency>,
}

impl CellRate {
    /// Rate over the trials of one cell; `None` in the closed loop.
    pub(super) fn of(trials: &[&Sample], spec: &TrialSpec, timed: ShownLatency) -> Option<Self> {
        let reports: Vec<_> = trials.iter().filter_map(|s| s.rate_report).collect();
        let achieved: Vec<f64> = reports.iter().map(|p| p.rate_achieved).collect();
        let schedules: Vec<Schedule> = trials
            .iter()
            .filter_map(|sample| Schedule::of(sample, spec))
            .collect();
        let medians = |value: fn(&Schedule) -> f64| {
            median(&schedules.iter().map(value).collect::<Vec<f64>>())
        };
        let greatest = |values: &mut dyn Iterator<Item = u64>| values.max().unwrap_or(0);
        Some(Self {
            rate_wanted: reports.first()?.rate_wanted,
            rate_achieved: median(&achieved)?,
            backlog_max: greatest(&mut reports.iter().map(|p| p.backlog_max)),
            backlog_end: greatest(&mut reports.iter().map(|p| p.backlog_end)),
            not_held: schedules.iter().filter(|one| !one.held).count(),
            hidden: medians(Schedule::hidden)?,
            span_ns: medians(|one| one.span_ns)?,
            schedules,
            service: quantiles(trials, |s| timed.requests(s).latency),
            lateness: quantiles(trials, |s| timed.requests(s).lateness.as_deref().copied()),
        })
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
        let in_time = if is_made {
            made.saturating_sub(left)
        } else {
            made
        };
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
pub(super) fn judge(cells: &mut [CellAnalysis], factors: &[String]) {
    let others = |cell: &CellAnalysis| -> Vec<String> {
        let levels = factors.iter().zip(&cell.cell.levels);
        let kept = levels.filter(|(factor, _)| *factor != "rate");
        kept.map(|(_, level)| level.clone()).collect()
    };
    let mut least: HashMap<Vec<String>, (f64, f64)> = HashMap::new();
    for cell in cells.iter() {
        let Some(report) = &cell.rate_report else {
            continue;
        };
        let Some(service) = report.service else {
            continue;
        };
        let own = (report.rate_wanted, service.p99_ns);
        let known = least.entry(others(cell)).or_insert(own);
        if own.0 < known.0 {
            *known = own;
        }
    }
    for cell in cells {
        let latency = least.get(&others(cell)).map(|(_, latency_ns)| *latency_ns);
        if let Some((report, latency_ns)) = cell.rate_report.as_mut().zip(latency) {
            report.judge(latency_ns);
        }
    }
}

impl CellRate {
    fn judge(&mut self, latency_ns: f64) {
        let outlasting = |one: &&Schedule| one.outlasts(latency_ns);
        if 2 * self.schedules.iter().filter(outlasting).count() <= self.schedules.len() {
            return;
        }
        let missed = |one: &&Schedule| !one.held || one.outlasts(latency_ns);
        self.not_held = self.schedules.iter().filter(missed).count();
        let completed: Vec<f64> = self.schedules.iter().map(|one| one.completed).collect();
        self.rate_achieved = median(&completed)
            .unwrap_or(self.rate_achieved)
            .min(self.rate_achieved);
    }
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

impl Efficiency {
    /// Whether the cell exceeds its ceiling without a known reason.
    pub fn exceeds(&self) -> bool {
        self.share > 1.0 && self.cause.is_none()
    }
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
        let (mb_s, iops) = (
            cell.median(Response::Throughput)?,
            cell.median(Response::Iops)?,
        );
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
            [of(mb_s, most_mb_s, false), of(iops, most_iops, true)]
                .into_iter()
                .flatten()
                .max_by(|a, b| a.share.total_cmp(&b.share))
        })
    }

    fn cause(&self, cell: &CellAnalysis, share: f64, source: PeakSource) -> Option<DoubtKind> {
        let served = cell.served.as_ref();
        let sources = served.into_iter().flat_map(|served| &served.trials);
        let is_elsewhere = |verdict: ServedBy| {
            let is_target = [ServedBy::Device, ServedBy::Network, ServedBy::Model];
            !is_target.contains(&verdict)
        };
        let sources = sources.filter(|(verdict, _)| is_elsewhere(*verdict));
        let of_source = sources.map(|(verdict, _)| DoubtKind::of_source(*verdict));
        let is_noise = source == PeakSource::Measured && share <= MEASURED_SLACK;
        let of_ceiling = [
            (is_noise, DoubtKind::ProbeNoise),
            (self.is_virtual, DoubtKind::HostCache),
        ];
        let of_ceiling = of_ceiling.into_iter().filter(|(holds, _)| *holds);
        let first = of_source
            .min()
            .or(of_ceiling.map(|(_, cause)| cause).next());
        first.filter(|_| share > 1.0)
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
