//! Layers below a program: time of requests in each, and the counts of drives.

use super::effect::{CellId, confidence};
use super::series::id;
use super::{Claim, Point, Quantity, Standing, kind};
use crate::analysis::{
    Analysis, CellAnalysis, CellDrives, CellStages, StageNumbers, TAIL_REQUESTS_MIN, Timed,
};
use iolab_record::DriveLog;
use iolab_stats::{Interval, median_interval};
use iolab_workload::response::Response;
use iolab_workload::stages::{Journal, Stage};

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
    let timed = Timed::ALL.into_iter();
    timed.filter_map(move |timed| longest(&traced, timed, run, confidence))
}

/// Time by layer of the traced cell with the longest requests, or syncs.
fn longest(
    traced: &[(&CellAnalysis, &CellStages)],
    timed: Timed,
    run: usize,
    confidence: f64,
) -> Option<Claim> {
    let p99 = |cell: &CellAnalysis| cell.latency?[Response::P99];
    let length = |(cell, stages): (&CellAnalysis, &CellStages)| match timed {
        Timed::Requests => p99(cell).unwrap_or(0.0),
        Timed::Syncs => stages.mean_ns(timed).unwrap_or(0.0),
    };
    let all = traced.iter().filter_map(|(cell, stages)| {
        let mean = largest(stages, timed, confidence, |numbers| &numbers.shares)?;
        Some((*cell, *stages, mean))
    });
    let (cell, stages, mean) =
        all.max_by(|a, b| length((a.0, a.1)).total_cmp(&length((b.0, b.1))))?;
    let known = |stage: &Stage| {
        let share = stages.stages[*stage].as_ref()?.share()?;
        let quantity = Quantity::Stage(*stage, stages.carried_by);
        Some(Point::new(Standing::Part, quantity, share))
    };
    let mut shares: Vec<Point> = timed.parts().iter().filter_map(known).collect();
    shares.sort_by(|a, b| b.value.total_cmp(&a.value));
    let has_tail = stages.least(timed) >= TAIL_REQUESTS_MIN;
    let tail = largest(stages, timed, confidence, |numbers| &numbers.tail_shares);
    let tail = tail.filter(|_| has_tail).map(|tail| Point {
        standing: Standing::Slowest,
        ..tail
    });
    let (kind, counts) = match (timed, stages.journal) {
        (Timed::Requests, None) => (&kind::TIME_BY_LAYER[0], Vec::new()),
        (Timed::Requests, Some(_)) => (&kind::TIME_BY_LAYER[1], Vec::new()),
        (Timed::Syncs, Some(Journal::Commits)) => (&kind::SYNCS_BY_LAYER, counts(stages)),
        (Timed::Syncs, Some(Journal::Absent)) => (&kind::SYNCS_WITHOUT_JOURNAL, Vec::new()),
        (Timed::Syncs, Some(Journal::MetadataWrites) | None) => (&kind::SYNCS_BY_LAYER, Vec::new()),
    };
    let whole = Point::main(Quantity::Of(Response::Mean), stages.mean_ns(timed)?);
    let trials = Point::count(Standing::MedianOf, "trial", stages.known);
    let points = [whole, mean, trials].into_iter().chain(tail);
    let points = points.chain(counts).chain(shares);
    Some(Claim::new(kind, vec![id(run, cell)]).with_points(points))
}

/// The syncs of a cell, and the journal commits that they waited for.
fn counts(stages: &CellStages) -> Vec<Point> {
    let commits = stages.syncs.commits;
    let count = |standing, one, value: u64| Point::count(standing, one, value as usize);
    let shared = stages.syncs.shared_commits;
    vec![
        count(Standing::Journalled, "sync", stages.syncs.syncs),
        count(Standing::Journalled, "journal commit", commits),
        count(Standing::Shared, "journal commit", shared).of(commits as f64),
    ]
}

/// The stage with the largest mean share, with the median of its shares and the interval of that median. A stage
/// that takes most of the time only in some trials has a small median.
fn largest(
    stages: &CellStages,
    timed: Timed,
    confidence: f64,
    shares: fn(&StageNumbers) -> &Vec<f64>,
) -> Option<Point> {
    let of = |stage: &Stage| {
        let shares = shares(stages.stages[*stage].as_ref()?);
        let Interval { low, high, .. } = median_interval(shares, confidence)?;
        let quantity = Quantity::Stage(*stage, stages.carried_by);
        let largest = Point {
            interval: Some((low, high)),
            ..Point::main(quantity, iolab_stats::median(shares)?)
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
        0 => (&kind::THROTTLED[1], vec![times]),
        ns => (&kind::THROTTLED[0], vec![time(ns), time(most.elapsed_ns)]),
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
