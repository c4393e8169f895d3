//! Claims other than comparisons and best sizes that answer the question of an experiment or explain its numbers.

use iolab_stats::{Interval, LatencyBandwidth};
use iolab_workload::response::Response;
use schemars::JsonSchema;
use serde::Serialize;

use super::effect::MARGIN_UP;
use crate::analysis::{Analysis, CellAnalysis, CellRate, CellVerified, DoubtKind};
use crate::bends;
use crate::buffer_preparation::{PreparationPoint, preparation};
use crate::doubt::{Direction, Doubt, SideDoubts};
use crate::equivalence::{MARGINS, ProgramPair, program_pairs};

/// Result of reading back data that was written.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Verified {
    /// Index of the run.
    #[serde(skip)]
    pub run: usize,
    /// Counts over all cells.
    pub all: CellVerified,
    /// Trials with writes of which only a part was read back.
    pub in_part: u64,
    /// Trials with writes of which no data was read back.
    pub unread: u64,
    /// Cells with wrong data.
    pub wrong: usize,
}

/// Dependence of the response time on the given load.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Load {
    /// Index of the run.
    #[serde(skip)]
    pub run: usize,
    /// Result for the requested rates.
    pub rates: Rates,
    /// Doubts about the trials of the named rates, for which their storage may differ from the result. With any
    /// doubt, nothing is claimed.
    pub doubts: Vec<Doubt>,
}

/// Rates that a run reached, of those that were requested.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rates {
    /// At least one rate was reached.
    Held {
        /// The lowest rate that was reached.
        least: RateTimes,
        /// The highest rate that was reached; `None` where only one was.
        most: Option<RateTimes>,
        /// Whether no rate was missed, so that the limit is not shown.
        all: bool,
        /// The share of requests beyond the capacity that trials at the highest of these rates may hide, and their length, ns.
        hidden: (f64, f64),
    },
    /// No rate was reached.
    NoneHeld {
        /// The lowest requested rate, requests per second.
        least: f64,
        /// The rate achieved there: median over the trials, requests per second.
        reached: f64,
    },
}

/// Response times at a rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct RateTimes {
    /// Requests per second.
    pub rate: f64,
    /// Median of the response time, ns: median over the trials.
    pub p50_ns: f64,
    /// 99th percentile of the response time, ns: median over the trials.
    pub p99_ns: f64,
    /// The 95 % interval of its median, ns; `None` with too few trials.
    pub p50: Option<Interval>,
    /// Time that the storage needed after a trial to store the contents of its cache, as a share of the timed
    /// span. `None` if it is short.
    pub cached: Option<f64>,
}

/// Two programs compared over the sizes of the file that they read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Programs {
    /// Index of the run.
    #[serde(skip)]
    pub run: usize,
    /// The results of both programs.
    pub pair: ProgramPair,
    /// Aspect that this claim covers.
    pub aspect: Aspect,
}

/// Aspect of two programs that a claim covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Aspect {
    /// The ratio of their times.
    Ratio,
    /// The number of sizes at which a test finds a difference.
    Significance,
    /// The size from which they are equivalent within the margin at this index of [`MARGINS`].
    Equivalence(usize),
}

/// The cost of page faults in buffers that were not touched before.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Preparation {
    /// Index of the run.
    #[serde(skip)]
    pub run: usize,
    /// The setting with the highest cost.
    pub most: PreparationPoint,
    /// Number of settings with a cost.
    pub slower: usize,
    /// Number of settings compared.
    pub settings: usize,
}

/// The time of a request, modelled as a fixed cost plus its bytes over a bandwidth.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FixedCosts {
    /// Index of the run.
    #[serde(skip)]
    pub run: usize,
    /// The curves that the model describes.
    pub curves: Vec<FixedCost>,
}

/// A curve that a fixed cost and a rate describe.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct FixedCost {
    /// The levels that it holds.
    pub held: Vec<String>,
    /// The model: times in ns, sizes in bytes, the rate in bytes per ns.
    pub model: LatencyBandwidth,
    /// The size at which half of the rate is reached, bytes. Present only if measured sizes lie on both sides of
    /// it. Throughput is then below half of the rate at all smaller sizes, and above it at all greater ones.
    pub half_rate: Option<f64>,
}

/// The result of reading back; `None` where nothing was read back.
pub(super) fn verified(analysis: &Analysis, run: usize) -> Option<Verified> {
    let cells = analysis.cells.iter().filter_map(|c| c.verified.as_ref());
    let all = cells.fold(CellVerified::default(), CellVerified::plus);
    let is_wrong = |cell: &&CellAnalysis| cell.flags.contains(&DoubtKind::VerifyFailed);
    let writing = analysis
        .cells
        .iter()
        .filter(|cell| cell.cell.trial().writes() && !cell.cell.spec.runs_program());
    let unread = writing.map(|cell| {
        let read = cell.verified.map_or(0, |verified| verified.trials);
        ((cell.n + cell.failed) as u64).saturating_sub(read)
    });
    (all.blocks > 0).then(|| Verified {
        run,
        all,
        in_part: all.trials.saturating_sub(all.whole),
        unread: unread.sum(),
        wrong: analysis.cells.iter().filter(is_wrong).count(),
    })
}

/// The response times at the lowest and the highest rate that was reached.
pub(super) fn load(analysis: &Analysis, run: usize) -> Option<Load> {
    if analysis.factors != ["rate"] || analysis.response != Response::Latency {
        return None;
    }
    let reports = || {
        let all = analysis.cells.iter();
        all.filter_map(|cell| Some((cell, cell.rate_report.as_ref()?)))
    };
    let held = reports().filter(|(_, report)| report.not_held == 0);
    let held = held.filter_map(|(cell, report)| {
        let latency = cell.latency?;
        let times = RateTimes {
            rate: report.rate_wanted,
            p50_ns: latency.p50_ns,
            p99_ns: latency.p99_ns,
            p50: cell.response.and_then(|summary| summary.median_interval),
            cached: cell.disturbance.left_in_storage_cache(),
        };
        Some((times, cell, report))
    });
    let mut held: Vec<(RateTimes, &CellAnalysis, &CellRate)> = held.collect();
    held.sort_by(|(a, ..), (b, ..)| a.rate.total_cmp(&b.rate));
    let (rates, named) = match held.as_slice() {
        [] => {
            let (cell, report) =
                reports().min_by(|a, b| a.1.rate_wanted.total_cmp(&b.1.rate_wanted))?;
            let rates = Rates::NoneHeld {
                least: report.rate_wanted,
                reached: report.rate_achieved,
            };
            (rates, vec![cell])
        }
        [(least, cell, report), rest @ ..] => {
            let (most, last, report) = match rest.last() {
                Some((most, last, report)) => (Some(*most), Some(*last), report),
                None => (None, None, report),
            };
            let rates = Rates::Held {
                least: *least,
                most,
                all: reports().all(|(_, report)| report.not_held == 0),
                hidden: (report.hidden, report.span_ns),
            };
            (rates, std::iter::once(*cell).chain(last).collect())
        }
    };
    // The claim is a value: a disturbance that can have changed it by more than the margin is a doubt.
    let doubts = SideDoubts::of_values(named).turning([Direction::Equal; 2], MARGIN_UP);
    Some(Load { run, rates, doubts })
}

/// All claims about the programs of a run.
pub(super) fn programs(analysis: &Analysis, run: usize) -> Vec<Programs> {
    let aspects = [Aspect::Ratio, Aspect::Significance]
        .into_iter()
        .chain((0..MARGINS.len()).map(Aspect::Equivalence));
    let of_pair = |pair: ProgramPair| {
        let shows = |aspect: &Aspect| match aspect {
            Aspect::Ratio => pair.points.first().is_some_and(|p| p.ratio.is_some()),
            Aspect::Significance => {
                let mut tests = pair.points.iter().flat_map(|point| point.first_trials);
                tests.any(|test| test.is_some())
            }
            Aspect::Equivalence(_) => true,
        };
        let shown = aspects.clone().filter(shows);
        shown
            .map(|aspect| Programs {
                run,
                pair: pair.clone(),
                aspect,
            })
            .collect::<Vec<_>>()
    };
    let pairs = program_pairs(analysis).into_iter();
    pairs.flat_map(of_pair).collect()
}

/// The cost of untouched buffers; `None` if there is none. If they are slower without more page faults, the
/// comparison alone says so.
pub(super) fn untouched(analysis: &Analysis, run: usize) -> Option<Preparation> {
    let points = preparation(analysis);
    let settings = points.len();
    let slower: Vec<PreparationPoint> = points
        .into_iter()
        .filter(|point| point.is_slower() && point.has_more_faults())
        .collect();
    let count = slower.len();
    let most = slower
        .into_iter()
        .min_by(|a, b| a.ratio.ratio.total_cmp(&b.ratio.ratio))?;
    Some(Preparation {
        run,
        most,
        slower: count,
        settings,
    })
}

/// The curves that fit a fixed cost and a bandwidth.
pub(super) fn fixed_costs(analysis: &Analysis, run: usize) -> Option<FixedCosts> {
    let curves = bends::bendable(analysis).into_iter();
    let modelled = curves.filter_map(|curve| {
        let model = bends::fixed_cost(analysis, &curve)?;
        // Bytes per ns are GB/s.
        let half_mb_s = model.bandwidth * 1e3 / 2.0;
        let is_seen = |is_below: bool| {
            let mut beside = curve.points.iter();
            let mut own = beside
                .by_ref()
                .filter(|point| ((point.size as f64) < model.n_half) == is_below)
                .map(|point| (point.summary.median < half_mb_s) == is_below)
                .peekable();
            own.peek().is_some() && own.all(|agrees| agrees)
        };
        Some(FixedCost {
            half_rate: (is_seen(true) && is_seen(false)).then_some(model.n_half),
            held: curve.held.clone(),
            model,
        })
    });
    let curves: Vec<_> = modelled.collect();
    (!curves.is_empty()).then_some(FixedCosts { run, curves })
}
