//! Evidence against a claim, from the trials that it is based on.
//!
//! There is one list of [`Reason`]s with one rule. A claim says in which [`Direction`] each side is good, and
//! [`Reason::turns`] says for which directions a reason could reverse it.
//!
//! There are two kinds of claims. A claim on how good storage is ([`Doubts`]: `fit`, `--slo`) holds if it also
//! holds without the trials concerned. A claim on two sides ([`SideDoubts`] in `doubt/sides.rs`: findings,
//! `compare`, `gate`) holds if they differ by more than the reason explains. METHODS.md describes both.

mod kind;
mod sides;

use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeSet;

use iolab_record::environment::{Environment, KEYS};
use iolab_record::{Cell, RunRecord, Sample, ServedBy, ServedVerdict};
use iolab_workload::counters::{DeviceStat, FlushCounter};
use iolab_workload::trial::SyncPolicy;

use crate::disturbance::{CellDisturbance, Surroundings};
use crate::imbalance::{Disturber, Imbalance};
use crate::io_limit::{Measured, ReachedLimit, limit};
use crate::json;

pub use kind::ReasonKind;
pub use sides::{ComparedSide, RatioBound, SideDoubt, SideDoubts};

/// Largest share of writes without a later sync that is ignored, equal to the margin of levels.
const UNSYNCED_MAX: f64 = 0.05;

/// Bound on the measured storage that a claim implies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// At least as good as measured: a level holds, a new run is faster, or the base of a slower one.
    AtLeast,
    /// At most as good as measured: a level fails, a new run is slower, or the base of a faster one.
    AtMost,
    /// As good as measured: two sides are equivalent.
    Equal,
}

/// A reason against a claim.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "doubt", rename_all = "snake_case")]
pub enum Reason {
    /// Nothing makes writes durable, or only a sync at the end of a trial, which the times of requests do not include.
    NotSynced {
        /// The policy.
        #[serde(serialize_with = "json::name")]
        #[schemars(with = "String")]
        sync: SyncPolicy,
        /// The group of these writes; `None` without groups.
        group: Option<String>,
    },
    /// Trials ended before the sync that would make their last writes durable.
    Unsynced {
        /// The largest share of a trial's writes that no sync followed.
        share: f64,
    },
    /// The bytes may not have come from the storage, or not gone to it.
    ServedBy {
        /// The verdict of the first trial concerned.
        #[serde(serialize_with = "json::name")]
        #[schemars(with = "String")]
        served_by: ServedBy,
        /// Reason of the verdict.
        reason: String,
        /// Whether all trials concerned have this reason.
        is_one: bool,
    },
    /// Syncs did not flush the volatile cache of the device.
    NeverFlushed {
        /// Number of syncs.
        syncs: u64,
    },
    /// Other processes used the device or the CPUs.
    Disturbed {
        /// The disturber.
        #[serde(serialize_with = "json::name")]
        #[schemars(with = "String")]
        by: Disturber,
        /// Highest value of the disturbance over the trials, as in [`Disturber::value`].
        worst: f64,
    },
    /// The machine was suspended, or iolab stopped.
    Suspended,
    /// Two sides differ in a disturbance.
    Imbalance(Imbalance),
    /// A side only reads, and the storage may still have written what other cells had left in its volatile cache.
    ReadsAfterWrites,
    /// Both sides, or this one, missed their rates, so that times grow with the length of a trial.
    RateNotHeld,
    /// The time limit ended trials whose length is compared: without it they would have been longer.
    EndedByTime,
    /// The clock is too coarse for the difference.
    ClockResolution {
        /// Step in which time stamps grow, ns.
        step_ns: f64,
        /// The step as a share of the response of the side.
        share: f64,
    },
    /// Another run compares the same settings of the same target, and shows something that excludes this.
    Contradicted,
    /// Trials, or the ratios of blocks, form two groups, and the claim does not hold for all of them.
    TwoGroups {
        /// Least ratio of one group of one side with a group of the other.
        low: f64,
        /// Greatest ratio of one group of one side with a group of the other.
        high: f64,
    },
    /// Trials that depend on the ones before are worth fewer independent ones.
    Dependent {
        /// Effective number of independent trials over their number.
        independence: f64,
    },
}

/// A reason with the trials that it concerns.
#[derive(Debug, Clone, PartialEq)]
pub struct Doubt {
    /// The reason.
    pub reason: Reason,
    /// Ids of the samples concerned.
    pub samples: BTreeSet<i64>,
}

/// Reasons for and against the claims about some trials.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Doubts {
    /// The distinct reasons.
    pub all: Vec<Doubt>,
    /// Number of trials.
    pub trials: usize,
    /// A limit that explains why the storage is not better, however fast the disk is.
    pub limit: Option<ReachedLimit>,
}

impl Reason {
    /// Whether it could reverse a claim.
    pub fn turns(&self, direction: Direction) -> bool {
        let looks_better = match self {
            // The times of a side that fell behind are lower bounds.
            Self::NotSynced { .. }
            | Self::Unsynced { .. }
            | Self::NeverFlushed { .. }
            | Self::EndedByTime
            | Self::RateNotHeld => true,
            Self::ServedBy { served_by, .. } if *served_by != ServedBy::NotStorage => true,
            Self::Disturbed { .. } | Self::Imbalance(_) | Self::ReadsAfterWrites => false,
            // Says nothing about the storage in either direction.
            Self::ServedBy { .. }
            | Self::Suspended
            | Self::ClockResolution { .. }
            | Self::Contradicted
            | Self::TwoGroups { .. }
            | Self::Dependent { .. } => return true,
        };
        match direction {
            Direction::AtLeast => looks_better,
            Direction::AtMost => !looks_better,
            Direction::Equal => true,
        }
    }

    /// Whether both are the same reason, whatever its extent.
    pub fn is_alike(&self, other: &Self) -> bool {
        match self {
            Self::NotSynced { .. } => self == other,
            Self::Unsynced { .. } => matches!(other, Self::Unsynced { .. }),
            Self::ServedBy {
                served_by: one,
                reason: _,
                is_one: _,
            } => matches!(other, Self::ServedBy { served_by: two, .. } if one == two),
            Self::Disturbed { by: one, worst: _ } => {
                matches!(other, Self::Disturbed { by: two, .. } if one == two)
            }
            Self::Imbalance(one) => {
                matches!(other, Self::Imbalance(two) if one.what == two.what)
            }
            Self::NeverFlushed { syncs: _ }
            | Self::Suspended
            | Self::ReadsAfterWrites
            | Self::RateNotHeld
            | Self::EndedByTime
            | Self::ClockResolution {
                step_ns: _,
                share: _,
            }
            | Self::Contradicted
            | Self::TwoGroups { low: _, high: _ }
            | Self::Dependent { independence: _ } => {
                std::mem::discriminant(self) == std::mem::discriminant(other)
            }
        }
    }

    /// Name of the reason in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::NotSynced { .. } => "not_synced",
            Self::Unsynced { .. } => "unsynced",
            Self::ServedBy { .. } => "served_by",
            Self::NeverFlushed { .. } => "never_flushed",
            Self::Disturbed { by, .. } => by.name(),
            Self::Suspended => "suspended",
            Self::ReadsAfterWrites => "reads_after_writes",
            Self::Imbalance(found) => found.what.name(),
            Self::RateNotHeld => "rate_not_held",
            Self::EndedByTime => "ended_by_time",
            Self::ClockResolution { .. } => "clock_resolution",
            Self::Contradicted => "contradicted",
            Self::TwoGroups { .. } => "two_groups",
            Self::Dependent { .. } => "dependent",
        }
    }
}

impl Doubts {
    /// The doubts about the trials of one cell.
    pub fn of_cell<'a>(
        cell: &'a Cell,
        samples: impl IntoIterator<Item = &'a Sample>,
        environment: &'a Environment,
    ) -> Self {
        Self::of(&[(
            cell,
            samples.into_iter().collect(),
            Cow::Borrowed(environment),
        )])
    }

    /// The doubts about the measured trials of a run that `rests_on` selects.
    pub fn of_run(record: &RunRecord, rests_on: impl Fn(&Sample) -> bool) -> Self {
        let measured = record.measured().map(|(cell, samples)| {
            let samples = samples.into_iter().filter(|sample| rests_on(sample));
            (cell, samples.collect(), record.environment_of(cell))
        });
        Self::of(&measured.collect::<Vec<_>>())
    }

    fn of(cells: &[Measured<'_>]) -> Self {
        let mut found = Self {
            all: Vec::new(),
            trials: cells.iter().map(|(_, samples, _)| samples.len()).sum(),
            limit: limit(cells),
        };
        for (cell, samples, _) in cells {
            for reason in not_synced(cell) {
                found.add_all(samples, Some(reason));
            }
            for sample in samples {
                if let Some(reason) = unsynced(cell, sample) {
                    found.add(sample, reason);
                }
            }
            for sample in samples.iter().filter(|s| is_open(cell, &s.verdict)) {
                found.add(sample, served(&sample.verdict));
            }
        }
        let unflushed = never_flushed(cells);
        let all = unflushed.iter().flat_map(|samples| samples.iter());
        let syncs = all.fold(0_u64, |sum, sample| {
            sum.saturating_add(sample.operations.sync.requests)
        });
        for samples in unflushed.iter().filter(|_| syncs > 0) {
            found.add_all(samples, Some(Reason::NeverFlushed { syncs }));
        }
        for (cell, samples, environment) in cells {
            let around = Surroundings::of(environment);
            for sample in samples {
                for reason in disturbances(cell, sample, around) {
                    found.add(sample, reason);
                }
            }
        }
        found
    }

    /// Removes the doubt that writes become durable only at the end of a trial. For rates, whose time includes
    /// that sync.
    pub(crate) fn leave_out_syncs_at_end(&mut self) {
        let is_end = |reason: &Reason| {
            matches!(
                reason,
                Reason::NotSynced {
                    sync: SyncPolicy::End,
                    ..
                }
            )
        };
        self.all.retain(|doubt| !is_end(&doubt.reason));
    }

    fn add_all(&mut self, samples: &[&Sample], reason: Option<Reason>) {
        let Some(reason) = reason else { return };
        for sample in samples {
            self.add(sample, reason.clone());
        }
    }

    /// Adds a trial's reason to the known ones of its kind.
    fn add(&mut self, sample: &Sample, reason: Reason) {
        for known in &mut self.all {
            if known.reason.joins(&reason) {
                known.samples.insert(sample.id);
                return;
            }
        }
        self.all.push(Doubt {
            reason,
            samples: BTreeSet::from([sample.id]),
        });
    }

    /// The doubts that could reverse a claim. A limit that the trials reached already explains why storage is not better, so that
    /// other reasons are unnecessary.
    pub fn against(&self, direction: Direction) -> Vec<&Doubt> {
        let explained = self.limit.is_some();
        let turns = |doubt: &&Doubt| {
            let is_slowed = matches!(doubt.reason, Reason::Disturbed { .. });
            doubt.reason.turns(direction) && !(explained && is_slowed)
        };
        self.all.iter().filter(turns).collect()
    }

    /// The doubts that reverse a claim. Empty if the claim holds, because no doubt could reverse it, or because
    /// the other trials suffice: `without` says whether it holds without some trials.
    pub fn turning(
        &self,
        direction: Direction,
        without: impl FnOnce(&BTreeSet<i64>) -> bool,
    ) -> Vec<&Doubt> {
        let against = self.against(direction);
        let concerned: BTreeSet<i64> = against
            .iter()
            .flat_map(|doubt| doubt.samples.iter().copied())
            .collect();
        match !against.is_empty() && concerned.len() < self.trials && without(&concerned) {
            true => Vec::new(),
            false => against,
        }
    }
}

impl Reason {
    /// Merges another trial's reason of the same kind; returns whether it is of that kind.
    fn joins(&mut self, other: &Self) -> bool {
        match (self, other) {
            (
                Self::ServedBy {
                    served_by,
                    reason,
                    is_one,
                },
                Self::ServedBy {
                    served_by: by,
                    reason: its,
                    ..
                },
            ) => {
                let same = served_by == by;
                *is_one &= !same || reason == its;
                same
            }
            (
                Self::Disturbed { by, worst },
                Self::Disturbed {
                    by: other,
                    worst: w,
                },
            ) => {
                let same = by == other;
                *worst = if same { worst.max(*w) } else { *worst };
                same
            }
            (Self::Unsynced { share }, Self::Unsynced { share: other }) => {
                *share = share.max(*other);
                true
            }
            (own, other) => own == other,
        }
    }
}

/// Writes that nothing makes durable at once, of the only trial or of each group.
fn not_synced(cell: &Cell) -> impl Iterator<Item = Reason> {
    let trials = cell.spec.named_trials().into_iter();
    let unsynced = trials.filter(|(_, trial)| trial.writes() && !trial.sync.is_per_write());
    unsynced.map(|(group, trial)| Reason::NotSynced {
        sync: trial.sync,
        group: group.map(str::to_owned),
    })
}

/// Writes of a trial that no sync followed, if `sync_every` allows many.
fn unsynced(cell: &Cell, sample: &Sample) -> Option<Reason> {
    let trial = cell.spec.only_trial()?;
    let writes = sample.operations.write.requests;
    let is_asked = trial.sync.is_per_write() && !trial.sync.is_in_write();
    if !is_asked || writes == 0 {
        return None;
    }
    let syncs = sample.operations.sync.requests;
    // Other tools may not count them.
    if syncs == 0 && cell.spec.tool.is_peer() {
        return None;
    }
    let share = 1.0 - syncs as f64 * f64::from(trial.sync_every) / writes as f64;
    (share > UNSYNCED_MAX).then_some(Reason::Unsynced { share })
}

/// Whether the storage may not have transferred a trial's bytes.
fn is_open(cell: &Cell, verdict: &ServedVerdict) -> bool {
    let writing = cell.spec.writing_trials();
    match verdict.served_by {
        // A file server answers like a disk array with its own cache. It has to keep all data that it has
        // acknowledged as synced.
        ServedBy::Device | ServedBy::Model | ServedBy::Network => false,
        // Writes of a log may be both in the page cache and on the device.
        ServedBy::Mixed => {
            cell.trial().reads() || writing.iter().any(|one| !one.sync.follows_writes())
        }
        ServedBy::NotStorage | ServedBy::PageCache | ServedBy::Hole | ServedBy::Unknown => true,
    }
}

fn served(verdict: &ServedVerdict) -> Reason {
    Reason::ServedBy {
        served_by: verdict.served_by,
        reason: verdict.reason.clone(),
        is_one: true,
    }
}

/// The trials of cells in which no sync flushed the device's volatile cache; empty if flushes are not counted.
fn never_flushed<'a, 'b>(cells: &'b [Measured<'a>]) -> Vec<&'b Vec<&'a Sample>> {
    let flushes = |sample: &Sample, environment: &Environment| {
        let counter = environment.get(&KEYS.device_flush_counter)?;
        let counters = &sample.counters;
        let stat: DeviceStat = match counter.parse().ok()? {
            FlushCounter::Device => counters.device?,
            FlushCounter::Disks => counters.bottom?.stat,
        };
        Some(stat.flush_ios)
    };
    let never = |(cell, samples, environment): &&Measured<'_>| {
        let cache = environment.get(&KEYS.device_write_cache);
        let writing = cell.spec.writing_trials();
        writing.iter().any(|one| one.sync.follows_writes())
            && cache.is_some_and(|cache| cache == "write back")
            && samples.iter().all(|s| flushes(s, environment) == Some(0))
    };
    let never = cells.iter().filter(never);
    never.map(|(_, samples, _)| samples).collect()
}

/// Disturbances of one trial; empty for a model, whose times are computed.
fn disturbances(cell: &Cell, sample: &Sample, around: Surroundings) -> Vec<Reason> {
    if sample.verdict.served_by == ServedBy::Model || cell.spec.runs_program() {
        return Vec::new();
    }
    let around = CellDisturbance::of(cell, &[sample], around, |_| None);
    let disturbed =
        Disturber::taken_by_others(&around).map(|(by, worst)| Reason::Disturbed { by, worst });
    let suspended = (around.suspended_ns > 0).then_some(Reason::Suspended);
    disturbed.chain(suspended).collect()
}

#[cfg(test)]
mod tests;
