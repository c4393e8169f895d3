//! The cells and numbers of claims that are neither comparisons nor best sizes.

use std::collections::BTreeMap;

use iolab_analysis::analysis::{Latency, Shortfall};
use iolab_analysis::bends::Bend;
use iolab_analysis::claim::{
    Again, Aspect, Cause, CellId, Change, ChangePlace, Course, FixedCost, Largest, Load,
    Preparation, Programs, Queued, Rates, Reproduction, Shape, Share, SharedLimit, State, Steady,
    Suspected, Suspects, TimeByLayer, Together, TooFew, Verdict, Verified,
};
use iolab_analysis::equivalence::{MARGINS, SizePoint};
use iolab_stats::Interval;
use schemars::JsonSchema;
use serde::Serialize;

use super::{CellData, Runs, clean, ends, held};

/// Data that was read back after it was written.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct VerifiedData {
    /// Trials whose data was read back.
    trials: u64,
    /// Trials that did not find what they had written.
    failed_trials: u64,
    /// Blocks that were read back.
    blocks: u64,
    /// Bytes that were read back.
    bytes: u64,
    /// Bytes of these that the page cache may have given instead of storage.
    cached_bytes: u64,
    /// Faulty blocks by kind; empty where there are none.
    faulty_blocks: BTreeMap<String, u64>,
    /// Cells with wrong data.
    cells: usize,
}

impl VerifiedData {
    pub(super) fn of(verified: &Verified) -> Self {
        let all = &verified.all;
        let faulty = all.kinds().map(|(kind, n)| (kind.name().to_owned(), n));
        Self {
            trials: all.trials,
            failed_trials: all.failed,
            blocks: all.blocks,
            bytes: all.bytes,
            cached_bytes: all.cached_bytes,
            faulty_blocks: faulty.collect(),
            cells: verified.wrong,
        }
    }
}

/// Two programs over the sizes of what they read.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ProgramsData {
    /// The program that is compared with.
    base: String,
    /// The program that is compared with it.
    new: String,
    /// Levels that both share: `cache=hot`.
    held: Vec<String>,
    /// The margin of an equivalence, as a share; `null` for other kinds.
    margin: Option<f64>,
    /// The least size from which on they are equivalent at every size, bytes; `null` where they are not, and for other kinds.
    equivalent_from_bytes: Option<u64>,
    /// The sizes in ascending order.
    sizes: Vec<ProgramSizeData>,
}

/// Two programs at one size.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "ProgramSize")]
pub(crate) struct ProgramSizeData {
    /// Size of what they read, bytes.
    bytes: u64,
    /// Median time of the base, ns.
    base_median_ns: Option<f64>,
    /// Median time of the other, ns.
    new_median_ns: Option<f64>,
    /// Time of the new program over that of the base, within the blocks that both share.
    ratio: Option<f64>,
    /// Low end of the interval of the ratio, which holds in 95 % together with those of all sizes.
    ratio_low: Option<f64>,
    /// High end of that interval.
    ratio_high: Option<f64>,
}

impl ProgramsData {
    pub(super) fn of(programs: &Programs) -> Self {
        let pair = &programs.pair;
        let margin = match programs.aspect {
            Aspect::Equivalence(margin) => Some(margin),
            Aspect::Ratio | Aspect::Significance => None,
        };
        Self {
            base: clean(&pair.base),
            new: clean(&pair.new),
            held: pair.held.iter().map(|level| clean(level)).collect(),
            margin: margin.and_then(|place| MARGINS.get(place).copied()),
            equivalent_from_bytes: margin.and_then(|place| pair.equivalent_from(place)),
            sizes: pair.points.iter().map(ProgramSizeData::of).collect(),
        }
    }
}

impl ProgramSizeData {
    fn of(point: &SizePoint) -> Self {
        let (ratio_low, ratio_high) = point.ratio.as_ref().map_or((None, None), ends);
        let (base_median_ns, new_median_ns) = point.medians_ns.unzip();
        Self {
            bytes: point.size,
            base_median_ns,
            new_median_ns,
            ratio: point.ratio.map(|ratio| ratio.ratio),
            ratio_low,
            ratio_high,
        }
    }
}

/// Response times at given rates.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct LoadData {
    /// The least and the highest rate that was held; empty where none was.
    held: Vec<RateData>,
    /// The least rate that was asked for, requests per second, where none was held.
    least_rate: Option<f64>,
    /// What was reached there, requests per second: median over the trials.
    reached_rate: Option<f64>,
}

/// Response times at a rate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Rate")]
pub(crate) struct RateData {
    /// Requests per second.
    rate: f64,
    /// Median response time, ns.
    p50_ns: f64,
    /// 99th percentile of the response time, ns.
    p99_ns: f64,
}

impl LoadData {
    pub(super) fn of(load: &Load) -> Self {
        let at = |(rate, latency): &(f64, Latency)| RateData {
            rate: *rate,
            p50_ns: latency.p50_ns,
            p99_ns: latency.p99_ns,
        };
        match &load.rates {
            Rates::Held { least, most } => Self {
                held: std::iter::once(least).chain(most).map(at).collect(),
                least_rate: None,
                reached_rate: None,
            },
            Rates::NoneHeld { least, reached } => Self {
                held: Vec::new(),
                least_rate: Some(*least),
                reached_rate: Some(*reached),
            },
        }
    }
}

/// Which layer takes the time of requests, and of the slowest ones.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct TimeByLayerData {
    /// The cell.
    cell: CellData,
    /// Trials that it rests on.
    trials: usize,
    /// Mean time of a request, ns: median over the trials.
    mean_ns: f64,
    /// Stage that takes most of it.
    mean: LargestData,
    /// Stage that takes most of the mean time of the slowest 1 % of the requests; `null` where trials have too few.
    tail: Option<LargestData>,
    /// Share of each stage of the mean, by the name of the stage.
    shares: BTreeMap<String, f64>,
}

/// The stage that takes most of the time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "LargestStage")]
pub(crate) struct LargestData {
    /// `admission`, `queue`, `device`, `completion`, `cpu-wait` or `reaping`; docs/METHODS.md says what they are.
    stage: String,
    /// Its share: median over the trials.
    share: f64,
    /// Low end of the interval of the share, which holds in 95 % together with those of all traced cells.
    share_low: f64,
    /// High end of that interval.
    share_high: f64,
}

impl TimeByLayerData {
    pub(super) fn of(time: &TimeByLayer, runs: &Runs<'_>) -> Self {
        let largest = |of: &Largest| LargestData {
            stage: of.stage.name().to_owned(),
            share: of.share,
            share_low: of.interval.0,
            share_high: of.interval.1,
        };
        let shares = time.shares.iter();
        Self {
            cell: runs.cell(time.cell),
            trials: time.trials,
            mean_ns: time.mean_ns,
            mean: largest(&time.mean),
            tail: time.tail.as_ref().map(largest),
            shares: shares
                .map(|(stage, share)| (stage.name().to_owned(), *share))
                .collect(),
        }
    }
}

/// Fewer requests at once than were asked for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct TooFewData {
    /// Cells of which it holds.
    cells: Vec<CellData>,
    /// The one with the least share.
    worst: CellData,
    /// Requests that it asked for.
    asked: u64,
    /// Requests that there were.
    seen: f64,
    /// `in_flight` (seen from the threads) or `at_device`.
    place: String,
    /// What the evidence says of the cause: `region`, `late`, `shared` (another cell without what the threads share is faster),
    /// `position` (of one descriptor), `cpus`, `queue` (of the device), `durable` (each write waits until it is), `unknown`.
    cause: String,
}

impl TooFewData {
    pub(super) fn of(few: &TooFew, runs: &Runs<'_>) -> Self {
        let place = match few.shortfall {
            Shortfall::Issued => "in_flight",
            Shortfall::ReachedDevice => "at_device",
        };
        let cause = match few.cause {
            Cause::Region { .. } => "region",
            Cause::Late => "late",
            Cause::Shared(_) => "shared",
            Cause::Position => "position",
            Cause::Cpus => "cpus",
            Cause::Queue { .. } => "queue",
            Cause::Durable => "durable",
            Cause::Unknown => "unknown",
        };
        Self {
            cells: cells(&few.cells, runs),
            worst: runs.cell(few.worst),
            asked: few.asked,
            seen: few.seen,
            place: place.to_owned(),
            cause: cause.to_owned(),
        }
    }
}

fn cells(ids: &[CellId], runs: &Runs<'_>) -> Vec<CellData> {
    ids.iter().map(|id| runs.cell(*id)).collect()
}

/// Untouched buffers against zeroed ones, in the setting in which they cost most.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct PreparationData {
    /// Size of the buffer, bytes.
    bs_bytes: u64,
    /// Untouched over zeroed, within the blocks that both share.
    ratio: f64,
    /// Low end of the interval of the ratio, which holds in 95 % together with those of all settings.
    ratio_low: Option<f64>,
    /// High end of that interval.
    ratio_high: Option<f64>,
    /// Page faults of a trial with untouched buffers.
    untouched_faults: f64,
    /// Page faults of a trial with zeroed buffers.
    zeroed_faults: f64,
    /// Time of a page fault, ns; `null` where untouched buffers have not more, or are not slower.
    ns_per_fault: Option<f64>,
    /// Settings in which untouched buffers are slower.
    slower: usize,
    /// Settings.
    settings: usize,
}

impl PreparationData {
    pub(super) fn of(preparation: &Preparation) -> Self {
        let most = &preparation.most;
        let (ratio_low, ratio_high) = ends(&most.ratio);
        Self {
            bs_bytes: most.bs,
            ratio: most.ratio.ratio,
            ratio_low,
            ratio_high,
            untouched_faults: most.faults.0,
            zeroed_faults: most.faults.1,
            ns_per_fault: most.ns_per_fault,
            slower: preparation.slower,
            settings: preparation.settings,
        }
    }
}

/// Throughput that changes its level for good.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ChangeData {
    /// The cell whose levels are given.
    cell: CellData,
    /// `over_run`, `within_trials` or `in_warm_up`.
    place: String,
    /// Throughput before it, MB/s.
    before_mb_s: f64,
    /// Throughput after it, MB/s.
    after_mb_s: f64,
    /// How many times as high throughput is after it; `null` where there was none before.
    factor: Option<f64>,
    /// Timed time until then, of the run or of a trial, ns.
    after_ns: u64,
    /// Bytes until then: written by the run, moved by a trial.
    after_bytes: f64,
}

impl ChangeData {
    pub(super) fn of(change: &Change, runs: &Runs<'_>) -> Self {
        let place = match change.place {
            ChangePlace::OverRun { .. } => "over_run",
            ChangePlace::WithinTrials { .. } => "within_trials",
            ChangePlace::InWarmUp => "in_warm_up",
        };
        Self {
            cell: runs.cell(change.cell),
            place: place.to_owned(),
            before_mb_s: change.before_mb_s,
            after_mb_s: change.after_mb_s,
            factor: Some(change.factor).filter(|factor| factor.is_finite()),
            after_ns: change.after_ns,
            after_bytes: change.after_bytes,
        }
    }
}

/// The last trials of cells that write.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct SteadyData {
    /// Cells of which it holds.
    cells: Vec<CellData>,
    /// Cells that were judged.
    judged: usize,
    /// `reached`, `not_written_over` or `not_reached`.
    state: String,
    /// Of `not_written_over`: least share of the region that had been written.
    written_share: Option<f64>,
    /// Of `not_reached`: range of the last five trials over their mean, in the cell in which it is greatest.
    range: Option<f64>,
    /// Of `not_reached`: change along their line over their mean, in that cell.
    slope: Option<f64>,
}

impl SteadyData {
    pub(super) fn of(steady: &Steady, runs: &Runs<'_>) -> Self {
        let (state, written_share, range, slope) = match steady.state {
            State::Reached => ("reached", None, None, None),
            State::NotWrittenOver { least } => ("not_written_over", Some(least), None, None),
            State::NotReached { range, slope, .. } => {
                ("not_reached", None, Some(range), Some(slope))
            }
        };
        Self {
            cells: cells(&steady.cells, runs),
            judged: steady.judged,
            state: state.to_owned(),
            written_share,
            range,
            slope,
        }
    }
}

/// What more requests in flight gained.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct QueuedData {
    /// The cell.
    cell: CellData,
    /// Requests in flight.
    asked: u64,
    /// Its IOPS over those of one request at a time.
    gain: f64,
}

impl QueuedData {
    pub(super) fn of(queued: &Queued, runs: &Runs<'_>) -> Self {
        Self {
            cell: runs.cell(queued.cell),
            asked: queued.asked,
            gain: queued.gain,
        }
    }
}

/// Time of a request as a fixed cost and a rate for its bytes.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "FixedCost")]
pub(crate) struct FixedCostData {
    /// Levels that the curve holds: `pattern=seq`.
    held: Vec<String>,
    /// Fixed time of a request, ns.
    fixed_ns: f64,
    /// Rate of its bytes, MB/s.
    rate_mb_s: f64,
    /// Size at which half of that rate is reached, bytes; `null` where the sizes measured do not lie on both sides of it, or contradict it.
    half_rate_bytes: Option<f64>,
    /// Greatest relative error of the model at any size.
    relative_error_max: f64,
}

impl FixedCostData {
    pub(super) fn of(curve: &FixedCost) -> Self {
        let model = &curve.model;
        Self {
            held: curve.held.iter().map(|level| clean(level)).collect(),
            fixed_ns: model.t0,
            // Bytes per ns are GB/s.
            rate_mb_s: model.bandwidth * 1e3,
            half_rate_bytes: curve.half_rate,
            relative_error_max: model.relative_error_max,
        }
    }
}

/// The bends of one curve.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "BentCurve")]
pub(crate) struct BentCurveData {
    /// Levels that the curve holds: `pattern=seq`.
    held: Vec<String>,
    /// Its bends in ascending order.
    bends: Vec<BendData>,
}

/// A size at which a curve changes its slope.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Bend")]
pub(crate) struct BendData {
    /// Where, bytes.
    bytes: f64,
    /// Low end of its 95 % interval, bytes.
    bytes_low: Option<f64>,
    /// High end of that interval, bytes.
    bytes_high: Option<f64>,
    /// Exponent of the power law below it: 1 where the quantity doubles with the size, 0 where it stays.
    slope_before: f64,
    /// The same above it.
    slope_after: f64,
    /// Sizes at which the machine changes its behaviour that lie in the interval, in bytes by name: a coincidence, no cause.
    thresholds: BTreeMap<String, u64>,
}

impl BentCurveData {
    pub(super) fn of((held, bends): &(Vec<String>, Vec<Bend>)) -> Self {
        Self {
            held: held.iter().map(|level| clean(level)).collect(),
            bends: bends.iter().map(BendData::of).collect(),
        }
    }
}

impl BendData {
    fn of(bend: &Bend) -> Self {
        let (bytes_low, bytes_high) = bend.interval.map(|i| (i.low, i.high)).unzip();
        let thresholds = bend.thresholds.iter();
        Self {
            bytes: bend.size,
            bytes_low,
            bytes_high,
            slope_before: bend.slope_before,
            slope_after: bend.slope_after,
            thresholds: thresholds
                .map(|one| (one.name.to_owned(), one.bytes))
                .collect(),
        }
    }
}

/// What groups reach at once, against each alone. All in the unit of the response.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct TogetherData {
    /// The cell in which all are active.
    cell: CellData,
    /// Levels of the other factors.
    held: BTreeMap<String, String>,
    /// Groups.
    groups: usize,
    /// Median at once.
    at_once: f64,
    /// Low end of its exact 95 % interval.
    at_once_low: f64,
    /// High end of that interval.
    at_once_high: f64,
    /// Sum of the medians of each alone.
    alone: f64,
    /// Sum of the low ends of their intervals.
    alone_low: f64,
    /// Sum of the high ends of their intervals.
    alone_high: f64,
    /// `not_shown`, or `shared`.
    limit: String,
    /// The fewest groups that reach the limit by themselves; `null` where only all of them do, or none is shown.
    reached_by: Option<String>,
}

impl TogetherData {
    pub(super) fn of(together: &Together, runs: &Runs<'_>) -> Self {
        let (at_once, Interval { low, high, .. }) = together.at_once;
        let (limit, reached_by) = match &together.limit {
            SharedLimit::NotShown => ("not_shown", None),
            SharedLimit::ReachedBy(groups) => ("shared", Some(clean(groups))),
            SharedLimit::ReachedByAll => ("shared", None),
        };
        Self {
            cell: runs.cell(together.cell),
            held: held(&together.at),
            groups: together.groups,
            at_once,
            at_once_low: low,
            at_once_high: high,
            alone: together.alone.0,
            alone_low: together.alone.1,
            alone_high: together.alone.2,
            limit: limit.to_owned(),
            reached_by,
        }
    }
}

/// Trials that drift, depend on each other or form two groups.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct CourseData {
    /// Cells of which it holds.
    cells: Vec<CellData>,
    /// The one in which it shows most.
    most: CellData,
    /// Of a drift: slope per trial there, as a share of the median.
    slope: Option<f64>,
    /// Of two groups: share of the trials there in the lower group.
    low_share: Option<f64>,
    /// Of two groups: median of the lower group, in the unit of the response.
    low_median: Option<f64>,
    /// Of two groups: median of the upper group, in the unit of the response.
    high_median: Option<f64>,
    /// How many times as wide the interval there would be if trials counted by their effective number; `null` of two groups.
    widening: Option<f64>,
}

impl CourseData {
    pub(super) fn of(course: &Course, runs: &Runs<'_>) -> Self {
        let slope = match course.shape {
            Shape::Drifting { slope } => Some(slope),
            Shape::Dependent | Shape::TwoGroups(_) => None,
        };
        let groups = match course.shape {
            Shape::TwoGroups(modes) => Some(modes),
            Shape::Drifting { .. } | Shape::Dependent => None,
        };
        Self {
            cells: cells(&course.cells, runs),
            most: runs.cell(course.most),
            slope,
            low_share: groups.map(|modes| modes.low_share),
            low_median: groups.map(|modes| modes.low_median),
            high_median: groups.map(|modes| modes.high_median),
            widening: course.widening,
        }
    }
}

/// A difference that another run showed, in the run that was made to explain it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ReproductionData {
    /// What the other run showed, in words.
    phenomenon: String,
    /// How many times as great the other side was there.
    seen: f64,
    /// How many times as great it would be without the phenomenon.
    expected: f64,
    /// How many times as great it is here; `null` without trials.
    ratio: Option<f64>,
    /// Low end of its 95 % interval.
    ratio_low: Option<f64>,
    /// High end of that interval.
    ratio_high: Option<f64>,
    /// Blocks in which both sides were measured.
    blocks: usize,
    /// `reproduced`, `not_reproduced` or `cannot_tell`.
    state: String,
    /// What is left of it without all suspects; `null` where it is not there, or none was tried.
    unexplained: Option<ShareData>,
}

/// A part of a difference, of the logarithm of its ratio.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct ShareData {
    /// Estimate.
    share: f64,
    /// Low end of its 95 % interval; `null` with too few blocks.
    share_low: Option<f64>,
    /// High end of that interval.
    share_high: Option<f64>,
}

impl ShareData {
    fn of(share: &Share) -> Self {
        let (share_low, share_high) = share.interval.unzip();
        Self {
            share: share.share,
            share_low,
            share_high,
        }
    }
}

impl ReproductionData {
    pub(super) fn of(found: &Reproduction) -> Self {
        let state = match found.again {
            Again::Reproduced => "reproduced",
            Again::NotReproduced => "not_reproduced",
            Again::CannotTell => "cannot_tell",
        };
        let (ratio_low, ratio_high) = found.interval.unzip();
        Self {
            phenomenon: clean(&found.phenomenon),
            seen: found.seen,
            expected: found.expected,
            ratio: found.ratio,
            ratio_low,
            ratio_high,
            blocks: found.blocks,
            state: state.to_owned(),
            unexplained: found.unexplained.as_ref().map(ShareData::of),
        }
    }
}

/// Suspects of one verdict.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct SuspectsData {
    /// `cause` (without it half of the difference or more is gone), `contributes` (a part of it), `joint` (each of several is enough),
    /// `cleared` (less than a quarter of it, or than the margin), `cannot_tell`, `not_tried`.
    verdict: String,
    /// In the order in which they were tried.
    suspects: Vec<SuspectData>,
    /// Blocks of the run.
    blocks: usize,
}

/// A mechanism that may cause a difference.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Suspect")]
pub(crate) struct SuspectData {
    /// Its name.
    name: String,
    /// What part of the difference goes with it, of `joint` with all of them; `null` where it was not tried.
    share: Option<ShareData>,
    /// Whether the share is what it makes by itself, with all other suspects taken away.
    by_itself: bool,
    /// How many times as great the other side is without it.
    ratio_without: Option<f64>,
    /// About how many blocks settle it, of `cannot_tell`; `null` where that is not known.
    blocks_needed: Option<usize>,
    /// Why it was not tried.
    why: Option<String>,
}

impl SuspectsData {
    pub(super) fn of(found: &Suspects) -> Self {
        let verdict = match found.verdict {
            Verdict::Cause => "cause",
            Verdict::Joint => "joint",
            Verdict::Contributes => "contributes",
            Verdict::Cleared => "cleared",
            Verdict::CannotTell => "cannot_tell",
            Verdict::NotTried => "not_tried",
        };
        let suspect = |one: &Suspected| SuspectData {
            name: clean(&one.suspect),
            share: one.share.as_ref().map(ShareData::of),
            by_itself: one.by_itself,
            ratio_without: one.ratio_without,
            blocks_needed: one.blocks_needed,
            why: one.why.as_deref().map(clean),
        };
        Self {
            verdict: verdict.to_owned(),
            suspects: found.suspects.iter().map(suspect).collect(),
            blocks: found.blocks,
        }
    }
}
