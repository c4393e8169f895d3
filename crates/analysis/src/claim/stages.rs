//! Layers below a program: time of requests in each, and the counts of drives.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::effect::{CellId, confidence};
use super::series::id;
use super::{Claim, Payload, kind};
use super::{Point, Quantity, Standing};
use crate::analysis::{Analysis, CellAnalysis, CellDrives, CellStages, StageNumbers, Timed};
use iolab_record::DriveLog;
use iolab_stats::{Interval, median_interval};
use iolab_workload::json;
use iolab_workload::response::Response;
use iolab_workload::stages::{CarriedBy, Journal, Stage};

/// Fewest requests of a trial whose slowest 1 % are examined.
const REQUESTS_MIN: u64 = crate::analysis::TAIL_REQUESTS_MIN;

/// The stage that takes most of the time of requests.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Largest {
    /// The stage.
    pub stage: Stage,
    /// Share of the layer in the time: the median over the trials.
    pub share: f64,
    /// Interval of the share, simultaneous over the cells, and over all requests and the slowest ones.
    pub interval: (f64, f64),
}

/// Time of a cell's requests, or of its syncs, by layer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct TimeByLayer {
    /// Requests or syncs.
    pub timed: Timed,
    /// The traced cell with the slowest requests, or syncs.
    pub cell: CellId,
    /// Number of traced trials.
    pub trials: usize,
    /// Layers or devices that carried the requests out.
    pub carried_by: CarriedBy,
    /// Mean time of a request or sync: the median over the trials of the sum of the stages, ns.
    pub mean_ns: f64,
    /// Stage with most of the mean time.
    pub mean: Largest,
    /// Stage with most of the time of the slowest 1 %; `None` if trials have too few.
    pub tail: Option<Largest>,
    /// Share of each stage in the mean time, largest first.
    #[serde(serialize_with = "json::object")]
    #[schemars(with = "BTreeMap<String, f64>")]
    pub shares: Vec<(Stage, f64)>,
    /// Counts of the syncs of the cell, over its trials, and how the journal shows; `None` for a cell without
    /// traced syncs.
    pub syncs: Option<JournalledSyncs>,
}

/// Counts of the syncs of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct JournalledSyncs {
    /// Syncs.
    pub syncs: u64,
    /// Journal commits that they waited for.
    pub commits: u64,
    /// Journal commits that several syncs waited for.
    pub shared_commits: u64,
    /// Visibility of the journal in the trace.
    pub journal: Journal,
}

/// Time by layer of the traced cell with the greatest 99th percentile, and of the syncs of the cell with the
/// longest ones. Each only if its trials suffice for an interval.
pub(super) fn time_by_layer(analysis: &Analysis, run: usize) -> impl Iterator<Item = Claim> {
    let cells = analysis.cells.iter();
    let traced: Vec<(&CellAnalysis, &CellStages)> = cells
        .filter_map(|cell| Some((cell, cell.stages.as_ref()?)))
        .collect();
    let with_syncs = traced.iter();
    let with_syncs = with_syncs.filter(|(_, stages)| stages.least(Timed::Syncs) > 0);
    // Each cell has two statements.
    let confidence = confidence(2 * (traced.len() + with_syncs.count()));
    let kinds = [&kind::TIME_BY_LAYER, &kind::SYNCS_BY_LAYER];
    let claim = move |(timed, kind)| {
        let time = longest(&traced, timed, run, confidence)?;
        Some(Claim::new(kind, vec![time.cell]).with_payload(Payload::TimeByLayer(time)))
    };
    Timed::ALL.into_iter().zip(kinds).filter_map(claim)
}

/// Time by layer of the traced cell with the longest requests, or syncs.
fn longest(
    traced: &[(&CellAnalysis, &CellStages)],
    timed: Timed,
    run: usize,
    confidence: f64,
) -> Option<TimeByLayer> {
    let length = |(cell, stages): (&CellAnalysis, &CellStages)| match timed {
        Timed::Requests => cell.latency.map_or(0.0, |latency| latency.p99_ns),
        Timed::Syncs => stages.mean_ns(timed).unwrap_or(0.0),
    };
    let all = traced.iter().filter_map(|(cell, stages)| {
        let mean = largest(stages, timed, confidence, |numbers| &numbers.shares)?;
        Some((*cell, *stages, mean))
    });
    let (cell, stages, mean) =
        all.max_by(|a, b| length((a.0, a.1)).total_cmp(&length((b.0, b.1))))?;
    let known = |stage: &Stage| Some((*stage, stages.stages[*stage].as_ref()?.share()?));
    let mut shares: Vec<(Stage, f64)> = timed.parts().iter().filter_map(known).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let has_tail = stages.least(timed) >= REQUESTS_MIN;
    let tail = largest(stages, timed, confidence, |numbers| &numbers.tail_shares);
    Some(TimeByLayer {
        timed,
        cell: id(run, cell),
        trials: stages.known,
        carried_by: stages.carried_by,
        mean_ns: stages.mean_ns(timed)?,
        mean,
        tail: tail.filter(|_| has_tail),
        shares,
        syncs: stages.journal.map(|journal| JournalledSyncs {
            syncs: stages.syncs.syncs,
            commits: stages.syncs.commits,
            shared_commits: stages.syncs.shared_commits,
            journal,
        }),
    })
}

/// The stage with the largest mean share, with the median of its shares and the interval of that median. A stage
/// that takes most of the time only in some trials has a small median.
fn largest(
    stages: &CellStages,
    timed: Timed,
    confidence: f64,
    shares: fn(&StageNumbers) -> &Vec<f64>,
) -> Option<Largest> {
    let of = |stage: &Stage| {
        let shares = shares(stages.stages[*stage].as_ref()?);
        let Interval { low, high, .. } = median_interval(shares, confidence)?;
        let largest = Largest {
            stage: *stage,
            share: iolab_stats::median(shares)?,
            interval: (low, high),
        };
        Some((iolab_stats::mean(shares)?, largest))
    };
    let all = timed.parts().iter().filter_map(of);
    let most = all.max_by(|a, b| a.0.total_cmp(&b.0))?;
    Some(most.1)
}

/// Fewest bytes of hosts for a ratio: rounding changes it by at most 2 %.
const HOST_BYTES_MIN: u64 = 100 * DriveLog::UNIT;

/// Share of the bytes of hosts from which the trial is said to have written nearly all of them.
const OWN_FROM: f64 = 0.95;

fn drives(analysis: &Analysis) -> impl Iterator<Item = (&CellAnalysis, CellDrives)> {
    let cells = analysis.cells.iter();
    cells.filter_map(|cell| Some((cell, cell.drives?)))
}

/// The longest throttling of a cell, or a cell without counts of it; `None` if no drive throttled itself.
pub(super) fn throttled(analysis: &Analysis, run: usize) -> Option<Claim> {
    let has_throttled = |drives: &CellDrives| drives.throttled_ns > 0 || drives.throttles > 0;
    let all = || drives(analysis).filter(|(_, drives)| has_throttled(drives));
    let most = all().max_by_key(|(_, drives)| (drives.throttled_ns, drives.throttles));
    let Some((cell, most)) = most else {
        let (open, _) = drives(analysis).find(|(_, drives)| drives.lacks_throttling)?;
        return Some(Claim::new(&kind::UNKNOWN_THROTTLING, vec![id(run, open)]));
    };
    let time = |ns: u64| Point::main(Quantity::Of(Response::Elapsed), ns as f64);
    let times = Point::count(Standing::Main, "time", most.throttles as usize);
    let (kind, points) = match most.throttled_ns {
        0 => (&kind::THROTTLED_AT_TIMES, vec![times]),
        ns => (&kind::THROTTLED, vec![time(ns), time(most.elapsed_ns)]),
    };
    let others = all().count() - 1;
    let others = (others > 0).then(|| Point::count(Standing::Alike, "more cell", others));
    let claim = Claim::new(kind, vec![id(run, cell)]);
    Some(claim.with_points(points.into_iter().chain(others)))
}

/// The write amplification of each cell that writes in a run without warm-ups.
pub(super) fn amplifications(analysis: &Analysis, run: usize) -> impl Iterator<Item = Claim> {
    let is_soak = analysis.timeline.is_of_beginning;
    let cells = drives(analysis).filter(move |(cell, _)| is_soak && cell.cell.trial().writes());
    cells.filter_map(move |(cell, drives)| amplification(drives, id(run, cell)))
}

/// The claim with the bytes written to flash memory and by hosts, and their ratio; `None` if drives do not count both.
fn amplification(drives: CellDrives, cell: CellId) -> Option<Claim> {
    let bytes = |standing, bytes: u64| Point::new(standing, Quantity::Bytes, bytes as f64);
    let both = drives.host_write_bytes.zip(drives.media_write_bytes);
    let grown = both.filter(|(host, media)| *host >= HOST_BYTES_MIN && *media > 0);
    let Some((host, media)) = grown else {
        let open = Claim::new(&kind::UNKNOWN_AMPLIFICATION, vec![cell]);
        let is_open = both.is_some() || drives.lacks_writes;
        return is_open.then(|| open.with_points([bytes(Standing::Main, HOST_BYTES_MIN)]));
    };
    let both = [bytes(Standing::Main, media), bytes(Standing::Main, host)];
    let ratio = Point::main(Quantity::Times, media as f64 / host as f64);
    let own = bytes(Standing::Own, drives.written_bytes);
    let own = (own.value < OWN_FROM * host as f64).then_some(own);
    let claim = Claim::new(&kind::WRITE_AMPLIFICATION, vec![cell]);
    Some(claim.with_points([ratio].into_iter().chain(both).chain(own)))
}
