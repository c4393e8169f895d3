//! The cells and numbers of claims that are neither comparisons nor best sizes.

mod causes;
mod observation;
mod over_sizes;
mod over_time;
mod rounds;

pub(crate) use causes::{ReproductionData, SuspectsData};
pub(crate) use observation::{
    ClaimedData, DeviceLoadData, DirectionData, OtherCommandData, OtherProcessData, OtherUseData,
    OverstatedData, ServedData, SyncsData,
};
pub(crate) use over_sizes::{BentCurveData, FixedCostData, ProgramsData};
pub(crate) use over_time::{ChangeData, CourseData, GradualData, SteadyData};
pub(crate) use rounds::{RoundsData, StandardData};

use std::collections::BTreeMap;

use iolab_analysis::analysis::{Shortfall, Timed};
use iolab_analysis::claim::{
    Cause, CellId, Largest, Load, Preparation, QueueLimit, Queued, RateTimes, Rates, ReachedBy,
    SharedLimit, TimeByLayer, Together, TooFew, Verified,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::{CellData, Runs, clean, ends, held};
use crate::claims::Against;

/// Data that was read back after it was written.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct VerifiedData {
    /// Trials whose data was read back, or a part of it.
    trials: u64,
    /// Trials that were to write, and of which only a part of the data was read back.
    partly_checked_trials: u64,
    /// Trials that were to write, and of which no data was read back.
    unchecked_trials: u64,
    /// Trials that did not find what they had written.
    failed_trials: u64,
    /// Blocks that were read back.
    blocks: u64,
    /// Bytes that were read back.
    bytes: u64,
    /// Bytes of these that the page cache may have given instead of storage, of the trials of which that is known.
    cached_bytes: u64,
    /// Trials of which that is not known.
    cache_unknown_trials: u64,
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
            partly_checked_trials: verified.in_part,
            unchecked_trials: verified.unread,
            failed_trials: all.failed,
            blocks: all.blocks,
            bytes: all.bytes,
            cached_bytes: all.cached_bytes,
            cache_unknown_trials: all.cache_unknown,
            faulty_blocks: faulty.collect(),
            cells: verified.wrong,
        }
    }
}

/// Response times at given rates.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct LoadData {
    /// The least and the highest rate that was held; empty where none was.
    held: Vec<RateData>,
    /// Whether every rate that was asked for was held, so that none shows the limit; `null` where none was.
    all_held: Option<bool>,
    /// The share of requests beyond the capacity that trials at the highest of these rates may hide.
    hidden_overload: Option<f64>,
    /// The least rate that was asked for, requests per second, where none was held.
    least_rate: Option<f64>,
    /// What was reached there, requests per second: median over the trials.
    reached_rate: Option<f64>,
    /// What may have changed the response times of these rates; with any, nothing is claimed.
    doubts: Vec<Against>,
}

/// Response times at a rate.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Rate")]
pub(crate) struct RateData {
    /// Requests per second.
    rate: f64,
    /// Median response time, ns: median over the trials.
    p50_ns: f64,
    /// Low end of its 95 % interval; `null` below six trials.
    p50_low_ns: Option<f64>,
    /// High end of that interval.
    p50_high_ns: Option<f64>,
    /// 99th percentile of the response time, ns: median over the trials.
    p99_ns: f64,
    /// Time that the storage needed after a trial to store what a cache of it had taken in, over the timed span: median over the trials;
    /// `null` where that is at most a quarter.
    cached: Option<f64>,
}

impl LoadData {
    pub(super) fn of(load: &Load) -> Self {
        let at = |one: &RateTimes| {
            let RateTimes {
                rate,
                p50_ns,
                p99_ns,
                p50,
                cached,
            } = one;
            RateData {
                rate: *rate,
                p50_ns: *p50_ns,
                p50_low_ns: p50.map(|interval| interval.low),
                p50_high_ns: p50.map(|interval| interval.high),
                p99_ns: *p99_ns,
                cached: *cached,
            }
        };
        let doubts = load.doubts.iter().map(Against::of).collect();
        match &load.rates {
            Rates::Held {
                least,
                most,
                all,
                hidden: (share, _),
            } => Self {
                all_held: Some(*all),
                hidden_overload: Some(*share),
                held: std::iter::once(least).chain(most).map(at).collect(),
                least_rate: None,
                reached_rate: None,
                doubts,
            },
            Rates::NoneHeld { least, reached } => Self {
                all_held: None,
                hidden_overload: None,
                held: Vec::new(),
                least_rate: Some(*least),
                reached_rate: Some(*reached),
                doubts,
            },
        }
    }
}

/// Which layer takes the time of requests, or of syncs, and of the slowest ones.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct TimeByLayerData {
    /// The cell.
    cell: CellData,
    /// Trials that the means rest on.
    trials: usize,
    /// `requests` (without the syncs that follow them) or `syncs`.
    timed: String,
    /// Mean time of one, ns: median over the trials.
    mean_ns: f64,
    /// Stage that takes most of it.
    mean: LargestData,
    /// Stage that takes most of the mean time of the slowest 1 % of them; `null` where trials have too few.
    tail: Option<LargestData>,
    /// Share of each stage of the mean, by the name of the stage.
    shares: BTreeMap<String, f64>,
    /// Syncs over all trials; `null` for a cell without traced syncs.
    syncs: Option<u64>,
    /// Journal commits that these waited for.
    commits: Option<u64>,
    /// Journal commits that several syncs waited for.
    shared_commits: Option<u64>,
    /// How the journal shows: `none`, `commits`, `metadata-writes` or `hidden` (behind a server).
    journal: Option<String>,
    /// What has a request in the stage `device`: `disk`, `server` (of a file system in user space), `file-server` (NFS, with its network) or `both` (several of these).
    carrier: String,
}

/// The stage that takes most of the time.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "LargestStage")]
pub(crate) struct LargestData {
    /// `admission`, `queue`, `device`, `completion`, `cpu-wait` or `reaping`, of syncs one that begins with `sync-`; docs/METHODS.md
    /// says what they are.
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
            timed: match time.timed {
                Timed::Requests => "requests",
                Timed::Syncs => "syncs",
            }
            .to_owned(),
            mean_ns: time.mean_ns,
            mean: largest(&time.mean),
            tail: time.tail.as_ref().map(largest),
            shares: shares
                .map(|(stage, share)| (stage.name().to_owned(), *share))
                .collect(),
            syncs: time.syncs.map(|(counts, _)| counts.syncs),
            commits: time.syncs.map(|(counts, _)| counts.commits),
            shared_commits: time.syncs.map(|(counts, _)| counts.shared_commits),
            journal: time.syncs.map(|(_, journal)| journal.name().to_owned()),
            carrier: time.carried_by.name().to_owned(),
        }
    }
}

/// Fewer requests at once than were asked for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct TooFewData {
    /// Cells in which fewer requests were in flight than asked for.
    cells: Vec<CellData>,
    /// The cell with the smallest share of the requests asked for.
    worst: CellData,
    /// Requests in flight that this cell asked for.
    asked: u64,
    /// Requests in flight that this cell had.
    seen: f64,
    /// `in_flight` (seen from the threads) or `at_device`.
    place: String,
    /// What the evidence says of the cause: `region`, `few_requests` (a trial has fewer than should be in flight), `late`, `shared` (another cell without what the threads share is faster),
    /// `position` (of one descriptor), `cpus`, `others_on_cpus`, `io_limit` (of the control group), `queue` (of the device), `durable` (each write waits until it is), `unknown`.
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
            Cause::FewRequests { .. } => "few_requests",
            Cause::Late { .. } => "late",
            Cause::Shared(_) => "shared",
            Cause::Position => "position",
            Cause::Cpus => "cpus",
            Cause::OthersOnCpus => "others_on_cpus",
            Cause::Limit(_) => "io_limit",
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
    /// All settings that were compared.
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

/// What more requests in flight gained.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct QueuedData {
    /// The cell.
    cell: CellData,
    /// Requests in flight.
    asked: u64,
    /// Its IOPS over those of one request at a time: the median over the blocks that both cells share, or the ratio of the medians.
    gain: f64,
    /// Low end of the interval of the gain, which holds in 95 % together with those of all such cells of the run.
    gain_low: Option<f64>,
    /// High end of that interval.
    gain_high: Option<f64>,
    /// What keeps them from gaining more: `cpus` (these or iolab may), `one_by_one` (the storage serves them one after the other, or is at its limit with one of
    /// them), `storage` (it is at its limit), `unknown`.
    limit: String,
}

impl QueuedData {
    pub(super) fn of(queued: &Queued, runs: &Runs<'_>) -> Self {
        let Queued {
            cell,
            asked,
            gain,
            limit,
        } = queued;
        let limit = match limit {
            QueueLimit::Cpus => "cpus",
            QueueLimit::OneByOne => "one_by_one",
            QueueLimit::Storage => "storage",
            QueueLimit::Unknown => "unknown",
        };
        let (gain_low, gain_high) = ends(gain);
        Self {
            cell: runs.cell(*cell),
            asked: *asked,
            gain: gain.ratio,
            gain_low,
            gain_high,
            limit: limit.to_owned(),
        }
    }
}

/// What groups reach at once, against the sum of what each reaches alone.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(inline)]
pub(crate) struct TogetherData {
    /// The cell in which all are active.
    cell: CellData,
    /// The cell of each group alone.
    alone_cells: Vec<CellData>,
    /// Levels of the other factors.
    held: BTreeMap<String, String>,
    /// Median at once, in the unit of the response.
    at_once: f64,
    /// Sum of the medians of each alone, in that unit.
    alone: f64,
    /// What they reach at once over the sum of what each reaches alone: the median over the blocks that all these cells share; `null`
    /// where they share fewer than six.
    ratio: Option<f64>,
    /// Low end of the interval of the ratio, which holds in 95 % together with all comparisons of this kind in the run.
    ratio_low: Option<f64>,
    /// High end of that interval.
    ratio_high: Option<f64>,
    /// Blocks that all these cells share.
    blocks: Option<usize>,
    /// `shared` (at once they reach less), `not_shared` (at least as much, within the margin), `not_found`, `cannot_tell`.
    limit: String,
    /// The fewest groups that are shown to reach a shared limit; `null` where only all of them do, or none is shown.
    reached_by: Option<String>,
    /// Doubts that could reverse it; then `limit` is `cannot_tell`. The base is a group alone, the other side all at once.
    doubts: Vec<Against>,
}

impl TogetherData {
    pub(super) fn of(together: &Together, runs: &Runs<'_>) -> Self {
        let Together {
            cell,
            alone_cells,
            at,
            response: _,
            at_once,
            alone,
            estimate,
            limit,
            doubts,
        } = together;
        let (limit, reached_by) = match limit {
            SharedLimit::Shared(ReachedBy::Groups(groups)) => ("shared", Some(clean(groups))),
            SharedLimit::Shared(ReachedBy::AllOnly | ReachedBy::Unknown) => ("shared", None),
            SharedLimit::NotShared => ("not_shared", None),
            SharedLimit::NotFound => ("not_found", None),
            SharedLimit::CannotTell => ("cannot_tell", None),
        };
        let (ratio_low, ratio_high) = estimate.as_ref().map_or((None, None), ends);
        Self {
            cell: runs.cell(*cell),
            alone_cells: cells(alone_cells, runs),
            held: held(at),
            at_once: *at_once,
            alone: *alone,
            ratio: estimate.as_ref().map(|estimate| estimate.ratio),
            ratio_low,
            ratio_high,
            blocks: estimate.as_ref().and_then(|estimate| estimate.blocks),
            limit: limit.to_owned(),
            reached_by,
            doubts: doubts.iter().map(Against::of).collect(),
        }
    }
}
