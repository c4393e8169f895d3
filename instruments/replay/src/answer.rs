//! The answer of replays: cells with their intervals, and targets compared, as data.

use iolab_stats::{Interval, median, median_interval};
use schemars::JsonSchema;
use serde::Serialize;

use crate::certificate::{Broken, Certificate};
use crate::mapping::Changed;
use crate::trace::Trace;
use crate::trace::survey::Survey;

/// Confidence of the intervals.
pub(crate) const CONFIDENCE: f64 = 0.95;

/// Times of the requests of one kind in one trial, ns: from the time at which the trace has a request, or from its submission without times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Times {
    /// Number of requests.
    pub requests: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Longest.
    pub max_ns: u64,
}

/// A replay as the block layer saw it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct AtBlockLayer {
    /// Share of the requests that were found there.
    pub seen: f64,
    /// How far these kept to the times of the trace, from the first of them on.
    pub certificate: Certificate,
}

/// One replay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub struct Trial {
    /// Number of its target and speed.
    pub cell: usize,
    /// Number of its block.
    pub block: u32,
    /// Target of the replay.
    pub target: String,
    /// Speed: a factor, or max.
    pub speed: String,
    /// The program that replayed.
    pub tool: String,
    /// Bytes of the target that were used.
    pub region_bytes: u64,
    /// Block to which requests were rounded, bytes.
    pub block_bytes: u64,
    /// Requests that could be in flight.
    pub depth: u32,
    /// Requests that were completed.
    pub requests: u64,
    /// Time from the first request to the last completion, s.
    pub seconds: f64,
    /// Requests per second.
    pub requests_per_s: f64,
    /// Throughput, MB/s.
    pub mb_per_s: f64,
    /// Times of reads; `None` without any.
    pub reads: Option<Times>,
    /// Times of writes; `None` without any.
    pub writes: Option<Times>,
    /// Source of the bytes.
    pub served_by: String,
    /// Reason for this verdict.
    pub served_because: String,
    /// Requests that were changed for the target.
    pub changed: Changed,
    /// How far it kept to the times of the trace; `None` for another program, and at the speed max, which has none.
    pub certificate: Option<Certificate>,
    /// Certificate at the block layer; `None` without a peer.
    pub at_block_layer: Option<AtBlockLayer>,
}

/// A quantity of a replay.
struct Measure {
    name: &'static str,
    /// Whether it is a time, and the longer the worse.
    is_time: bool,
    of: fn(&Trial) -> Option<f64>,
}

impl Measure {
    const fn time(name: &'static str, of: fn(&Trial) -> Option<f64>) -> Self {
        let is_time = true;
        Self { name, is_time, of }
    }
}

const MEASURES: [Measure; 5] = [
    Measure {
        name: "requests/s",
        is_time: false,
        of: |trial| Some(trial.requests_per_s).filter(|_| trial.reads.or(trial.writes).is_some()),
    },
    Measure::time("read p50", |trial| Some(trial.reads?.p50_ns as f64)),
    Measure::time("read p99", |trial| Some(trial.reads?.p99_ns as f64)),
    Measure::time("write p50", |trial| Some(trial.writes?.p50_ns as f64)),
    Measure::time("write p99", |trial| Some(trial.writes?.p99_ns as f64)),
];

/// A quantity of all replays of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Quantity {
    /// Name of the quantity.
    pub name: &'static str,
    /// Whether it is a time, ns.
    pub is_time: bool,
    /// Median over replays.
    pub median: f64,
    /// Lower end of the 95 % interval; `None` with fewer than 6 replays.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// The replays on one target at one speed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Cell {
    /// Target of the replay.
    pub target: String,
    /// Speed: a factor, or max.
    pub speed: String,
    /// The program that replayed.
    pub tool: String,
    /// Number of replays.
    pub replays: usize,
    /// Replays whose certificate is kept, or that have none.
    pub kept: usize,
    /// Conditions of the certificate that replays did not keep.
    pub broken: Vec<Broken>,
    /// The certificate of the replay with the greatest p99 of lateness.
    pub latest: Option<Certificate>,
    /// Replays whose certificate is kept at the block layer.
    pub kept_at_block_layer: usize,
    /// The one with the greatest p99 of lateness there; `None` without a peer.
    pub latest_at_block_layer: Option<AtBlockLayer>,
    /// Sources of the bytes.
    pub served_by: Vec<String>,
    /// The quantities; empty if not every certificate is kept.
    pub quantities: Vec<Quantity>,
}

impl Cell {
    fn of(trials: &[&Trial]) -> Option<Self> {
        let first = trials.first()?;
        let certificates = trials.iter().filter_map(|trial| trial.certificate.as_ref());
        let broken = certificates
            .clone()
            .flat_map(|own| own.broken.iter().copied());
        let is_kept = |trial: &&&Trial| trial.certificate.as_ref().is_none_or(Certificate::is_kept);
        let kept = trials.iter().filter(is_kept).count();
        let at_block_layer = trials
            .iter()
            .filter_map(|trial| trial.at_block_layer.as_ref());
        let mut own = Self {
            target: first.target.clone(),
            speed: first.speed.clone(),
            tool: first.tool.clone(),
            replays: trials.len(),
            kept,
            broken: distinct(broken),
            latest: certificates.max_by_key(|own| own.lateness.p99_ns).cloned(),
            kept_at_block_layer: at_block_layer
                .clone()
                .filter(|own| own.certificate.is_kept())
                .count(),
            latest_at_block_layer: at_block_layer
                .max_by_key(|own| own.certificate.lateness.p99_ns)
                .cloned(),
            served_by: distinct(trials.iter().map(|trial| trial.served_by.clone())),
            quantities: Vec::new(),
        };
        if own.is_kept() {
            let quantities = MEASURES
                .iter()
                .filter_map(|measure| quantity(measure, trials));
            own.quantities = quantities.collect();
        }
        Some(own)
    }

    /// Whether it stands for the trace.
    pub fn is_kept(&self) -> bool {
        self.kept == self.replays
    }
}

pub(crate) fn distinct<T: PartialEq>(all: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for one in all {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    found
}

fn quantity(measure: &Measure, trials: &[&Trial]) -> Option<Quantity> {
    let values: Vec<f64> = trials
        .iter()
        .filter_map(|trial| (measure.of)(trial))
        .collect();
    let interval = median_interval(&values, CONFIDENCE);
    Some(Quantity {
        name: measure.name,
        is_time: measure.is_time,
        median: median(&values)?,
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
    })
}

/// Two targets at one speed.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Comparison {
    /// The first target.
    pub base: String,
    /// The other target.
    pub other: String,
    /// Speed: a factor, or max.
    pub speed: String,
    /// The quantity.
    pub quantity: &'static str,
    /// Ratio of the other to the first: median over blocks.
    pub ratio: f64,
    /// Lower end of its interval, simultaneous with all others; `None` with too few blocks.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// The answer of a replay.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Answer {
    /// The command line.
    pub arguments: Vec<String>,
    /// The file of the trace.
    pub trace: String,
    /// Format of the trace.
    pub format: String,
    /// Unit of its time stamps.
    pub time_unit: &'static str,
    /// Requests of the trace.
    pub requests: u64,
    /// Writes among them.
    pub writes: u64,
    /// Time from its first request to its last, ns.
    pub span_ns: u64,
    /// Median time between two requests, ns.
    pub median_gap_ns: u64,
    /// Mean requests in flight at an arrival; `None` if the trace has no completions.
    pub mean_depth: Option<f64>,
    /// Seed of order, data and models.
    pub seed: u64,
    /// Every target at every speed.
    pub cells: Vec<Cell>,
    /// The other targets against the first.
    pub comparisons: Vec<Comparison>,
    /// Every replay.
    pub trials: Vec<Trial>,
}

impl Answer {
    /// The answer of these replays of a trace.
    pub fn of(file: String, trace: &Trace, survey: &Survey, seed: u64, trials: Vec<Trial>) -> Self {
        let count = trials.iter().map(|trial| trial.cell + 1).max().unwrap_or(0);
        // A cell that was not reached before the end has no trials.
        let by_cell: Vec<Vec<&Trial>> = (0..count)
            .map(|cell| trials.iter().filter(|trial| trial.cell == cell).collect())
            .filter(|own: &Vec<&Trial>| !own.is_empty())
            .collect();
        let cells: Vec<Cell> = by_cell.iter().filter_map(|own| Cell::of(own)).collect();
        let comparisons = comparisons(&cells, &by_cell);
        Self {
            arguments: Vec::new(),
            trace: file,
            format: trace.format().to_string(),
            time_unit: trace.unit().name(),
            requests: survey.requests(),
            writes: survey.writes,
            span_ns: survey.span_ns,
            median_gap_ns: survey.median_gap_ns,
            mean_depth: survey.mean_depth,
            seed,
            comparisons,
            cells,
            trials,
        }
    }

    /// Whether every certificate is kept.
    pub fn is_kept(&self) -> bool {
        self.cells.iter().all(Cell::is_kept)
    }
}

/// Compares the other targets with the first, within blocks.
fn comparisons(cells: &[Cell], trials: &[Vec<&Trial>]) -> Vec<Comparison> {
    let mut pairs = Vec::new();
    for (place, base) in cells.iter().enumerate().filter(|(_, cell)| cell.is_kept()) {
        let is_first = cells[..place].iter().all(|cell| cell.speed != base.speed);
        if !is_first {
            continue;
        }
        let others = cells.iter().enumerate().skip(place + 1);
        let alike = |other: &Cell| other.speed == base.speed && other.tool == base.tool;
        let others = others.filter(|(_, other)| alike(other) && other.is_kept());
        let is_there = |measure: &&Measure| {
            measure.is_time && trials[place].iter().any(|own| (measure.of)(own).is_some())
        };
        let times = MEASURES.iter().filter(is_there);
        for ((number, _), measure) in
            others.flat_map(|other| times.clone().map(move |m| (other, m)))
        {
            pairs.push((place, number, measure));
        }
    }
    let confidence = 1.0 - (1.0 - CONFIDENCE) / pairs.len().max(1) as f64;
    let compared = pairs.into_iter().filter_map(|(base, other, measure)| {
        let ratio = |(one, new): (&&Trial, &&Trial)| Some((measure.of)(new)? / (measure.of)(one)?);
        let shared = trials[base].iter().zip(&trials[other]);
        let ratios: Vec<f64> = shared.filter_map(ratio).collect();
        let interval: Option<Interval> = median_interval(&ratios, confidence);
        Some(Comparison {
            base: cells[base].target.clone(),
            other: cells[other].target.clone(),
            speed: cells[base].speed.clone(),
            quantity: measure.name,
            ratio: median(&ratios)?,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
        })
    });
    compared.collect()
}
