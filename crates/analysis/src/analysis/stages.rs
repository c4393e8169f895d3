//! Time of a cell's requests by layer, from the trials that were traced.

use iolab_record::Sample;
use iolab_stats::{mean, median};
use iolab_workload::stages::{
    CarriedBy, Journal, PerStage, Stage, StageSummary, SyncCounts, TraceSummary,
};
use schemars::JsonSchema;
use serde::Serialize;

/// Time of a cell's requests by stage.
#[derive(Debug, Clone, PartialEq)]
pub struct CellStages {
    /// Trials that were traced.
    pub traced: usize,
    /// Traced trials whose stages are known.
    pub known: usize,
    /// Fewest joined requests of a trial with known stages.
    pub requests_min: u64,
    /// Fewest joined syncs after writes of a trial with known stages.
    pub syncs_min: u64,
    /// Counts of syncs, over all trials with known stages.
    pub syncs: SyncCounts,
    /// Layers or devices that carried the requests out.
    pub carried_by: CarriedBy,
    /// Visibility of the journal in the trace; `None` without traced syncs.
    pub journal: Option<Journal>,
    /// Greatest share of requests of a trial that miss events.
    pub unjoined_share: f64,
    /// The last note that explains missing stages.
    pub note: Option<String>,
    /// Median over the trials of the mean time of a request, all its stages together, ns.
    pub request_ns: Option<f64>,
    /// Median over the trials of the mean time of a sync, all its stages together, ns.
    pub sync_ns: Option<f64>,
    /// Each stage; `None` for one that no trial knows.
    pub stages: PerStage<Option<StageNumbers>>,
}

/// Requests or syncs, as the subject of a split by layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Timed {
    /// Requests, without the syncs that follow them.
    Requests,
    /// Syncs that follow writes.
    Syncs,
}

impl Timed {
    /// Both kinds of timed operations.
    pub const ALL: [Self; 2] = [Self::Requests, Self::Syncs];

    /// Stages of its time, in the order in which it passes them if there is one.
    pub fn parts(self) -> &'static [Stage] {
        match self {
            Self::Requests => &Stage::PASSED,
            Self::Syncs => &Stage::SYNC,
        }
    }
}

/// A stage over the trials of a cell.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct StageNumbers {
    /// Median over the trials of the mean, ns.
    pub mean_ns: f64,
    /// Median over the trials of the median, ns.
    pub p50_ns: f64,
    /// Median over the trials of the 99th percentile, ns.
    pub p99_ns: f64,
    /// Share of the mean time of a request, or of a sync, by trial.
    pub shares: Vec<f64>,
    /// Share of the mean time of the slowest 1 % of the requests or syncs, by trial.
    pub tail_shares: Vec<f64>,
}

impl StageNumbers {
    /// Median over the trials of the stage's share of the mean time.
    pub fn share(&self) -> Option<f64> {
        median(&self.shares)
    }

    /// Mean over the trials of the stage's share of the mean time. Unlike medians, these shares add up to 1 over
    /// all stages.
    pub fn mean_share(&self) -> Option<f64> {
        mean(&self.shares)
    }

    /// Mean over the trials of the stage's share of the slowest requests.
    pub fn mean_tail_share(&self) -> Option<f64> {
        mean(&self.tail_shares)
    }

    /// Median over the trials of the stage's share of the slowest requests.
    pub fn tail_share(&self) -> Option<f64> {
        median(&self.tail_shares)
    }
}

impl CellStages {
    /// Stages over these trials; `None` if none was traced.
    pub(super) fn of(trials: &[&Sample]) -> Option<Self> {
        let traced: Vec<&TraceSummary> = trials
            .iter()
            .filter_map(|sample| sample.traced.as_deref())
            .collect();
        let known: Vec<&TraceSummary> = traced
            .iter()
            .copied()
            .filter(|trial| trial.stages.device.is_some())
            .collect();
        let is_missing =
            |trial: &&&TraceSummary| trial.stages.device.is_none() && !trial.note.is_empty();
        let missing = traced.iter().rev().find(is_missing);
        let shares = traced.iter().map(|trial| trial.counts.unjoined_share());
        (!traced.is_empty()).then(|| Self {
            traced: traced.len(),
            known: known.len(),
            requests_min: known
                .iter()
                .map(|trial| trial.counts.joined)
                .min()
                .unwrap_or(0),
            syncs_min: known
                .iter()
                .map(|trial| trial.counts.syncs.syncs)
                .min()
                .unwrap_or(0),
            syncs: known.iter().fold(SyncCounts::default(), |sum, trial| {
                sum.plus(trial.counts.syncs)
            }),
            carried_by: traced[0].carried_by,
            journal: known.iter().filter_map(|trial| trial.journal).max(),
            unjoined_share: shares.fold(0.0, f64::max),
            note: missing.map(|trial| trial.note.clone()),
            request_ns: whole_ns(&known, &Stage::WHOLE),
            sync_ns: whole_ns(&known, &Stage::SYNC),
            stages: PerStage::from_fn(|stage| numbers(&known, stage)),
        })
    }

    /// Median over the trials of their mean time over all stages, ns. The medians of the stages do not add up to
    /// it.
    pub fn mean_ns(&self, timed: Timed) -> Option<f64> {
        match timed {
            Timed::Requests => self.request_ns,
            Timed::Syncs => self.sync_ns,
        }
    }

    /// Fewest requests, or syncs, of a trial whose stages are known.
    pub fn least(&self, timed: Timed) -> u64 {
        match timed {
            Timed::Requests => self.requests_min,
            Timed::Syncs => self.syncs_min,
        }
    }

    /// Median over the trials of the share of a request's mean time that the host takes: all stages but the
    /// device.
    pub fn host_share(&self) -> Option<f64> {
        // Layers belong to this machine, and their time is known only together with the disks' time.
        if self.carried_by == CarriedBy::Layers {
            return None;
        }
        let device = self.stages.device.as_ref()?;
        let host: Vec<f64> = device.shares.iter().map(|share| 1.0 - share).collect();
        median(&host)
    }
}

/// Median over the trials of the sum of these stages' means; `None` where no trial has any.
fn whole_ns(trials: &[&TraceSummary], stages: &[Stage]) -> Option<f64> {
    let sum = |trial: &&TraceSummary| {
        let own = stages.iter().filter_map(|stage| trial.stages[*stage]);
        own.map(|stage| stage.mean_ns).reduce(|sum, one| sum + one)
    };
    let sums: Vec<f64> = trials.iter().filter_map(sum).collect();
    median(&sums)
}

fn numbers(trials: &[&TraceSummary], stage: Stage) -> Option<StageNumbers> {
    let own: Vec<(&TraceSummary, StageSummary)> = trials
        .iter()
        .filter_map(|trial| Some((*trial, trial.stages[stage]?)))
        .collect();
    let of = |value: fn(&StageSummary) -> f64| {
        median(&own.iter().map(|(_, one)| value(one)).collect::<Vec<f64>>())
    };
    let shares = |value: fn(&StageSummary) -> f64| {
        own.iter()
            .filter_map(|(trial, one)| {
                let whole = stage.whole().iter();
                let whole = whole.filter_map(|stage| trial.stages[*stage]);
                let whole: f64 = whole.map(|stage| value(&stage)).sum();
                (whole > 0.0).then(|| value(one) / whole)
            })
            .collect()
    };
    Some(StageNumbers {
        mean_ns: of(|stage| stage.mean_ns)?,
        p50_ns: of(|stage| stage.p50_ns as f64)?,
        p99_ns: of(|stage| stage.p99_ns as f64)?,
        shares: shares(|stage| stage.mean_ns),
        tail_shares: shares(|stage| stage.tail_mean_ns),
    })
}
