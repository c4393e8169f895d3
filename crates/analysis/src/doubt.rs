//! Evidence against a claim, from the trials that it is based on.
//!
//! Each [`Doubt`] is a row of the table of doubts ([`DoubtKind`]), with its extent. A claim says in which [`Direction`] each
//! side is good, and [`DoubtKind::turns`] says for which directions a doubt could reverse it.
//!
//! There are two kinds of claims. A claim on how good storage is ([`Doubts`]: `fit`, `--slo`) holds if it also
//! holds without the trials concerned. A claim on two sides ([`SideDoubts`] in `doubt/sides.rs`: findings,
//! `compare`, `gate`) holds if they differ by more than the doubt explains. METHODS.md describes both.

mod sides;

use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

use iolab_record::environment::{Environment, KEYS};
use iolab_record::{Cell, Sample, ServedBy, ServedVerdict};
use iolab_workload::counters::{DeviceStat, FlushCounter};
use iolab_workload::trial::SyncPolicy;

use crate::analysis::Looks;
use crate::disturbance::{Accounting, CellDisturbance, Surroundings};
use crate::io_limit::{ReachedLimit, limit};

pub use crate::analysis::{DoubtClass, DoubtKind, ExtentUnit};
pub use sides::{ComparedSide, RatioBound, SideDoubts, imbalances, of_cell};

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

/// A doubt about a claim.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Doubt {
    /// Its row in the table of doubts.
    #[serde(rename = "doubt")]
    pub what: DoubtKind,
    /// The side of a comparison that it concerns; `None` for both together.
    pub side: Option<ComparedSide>,
    /// Its greatest extent, in the unit of its row; `None` where it has none.
    pub extent: Option<f64>,
    /// The lowest and highest value of the runs of the base, and of the new side, if these differ; the values of two
    /// groups of trials.
    pub levels: Option<[(f64, f64); 2]>,
    /// Reason of the first verdict on the source of bytes, or the group that writes.
    pub note: Option<String>,
    /// Ids of the samples concerned; empty in comparisons.
    #[serde(skip)]
    pub samples: BTreeSet<i64>,
}

/// Error of the time that a side owes, a share of it: the precision to which a run repeats its trials.
const OWED_ERROR: f64 = 0.05;

impl From<DoubtKind> for Doubt {
    fn from(what: DoubtKind) -> Self {
        Self {
            what,
            side: None,
            extent: None,
            levels: None,
            note: None,
            samples: BTreeSet::new(),
        }
    }
}

impl Doubt {
    /// A doubt of this extent.
    pub fn of(what: DoubtKind, extent: f64) -> Self {
        Self {
            extent: Some(extent),
            ..Self::from(what)
        }
    }

    /// A doubt about bytes with this verdict.
    pub fn of_source(served_by: ServedBy, reason: &str) -> Self {
        Self {
            note: (!reason.is_empty()).then(|| reason.to_owned()),
            ..Self::from(DoubtKind::of_source(served_by))
        }
    }

    /// The doubt about one side.
    pub(crate) fn on(self, side: ComparedSide) -> Self {
        Self {
            side: Some(side),
            ..self
        }
    }

    /// Whether both are the same doubt, whatever its extent.
    pub fn is_alike(&self, other: &Self) -> bool {
        let is_own = self.what.class() != DoubtClass::Durability || self.note == other.note;
        self.what == other.what && is_own
    }

    /// The largest factor by which it can have changed the response of a side.
    fn explains(&self) -> f64 {
        if let (true, Some([base, new])) = (self.what.is_owed(), self.levels) {
            let (less, more) = (base.1.min(new.1), base.1.max(new.1));
            return (1.0 + more * (1.0 + OWED_ERROR)) / (1.0 + less * (1.0 - OWED_ERROR));
        }
        match self.extent {
            Some(share) if self.what.unit() == ExtentUnit::Share && share < 1.0 => {
                1.0 / (1.0 - share.max(0.0))
            }
            _ => f64::INFINITY,
        }
    }
}

/// Doubts about the claims on some trials.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Doubts {
    /// The distinct doubts.
    pub all: Vec<Doubt>,
    /// Number of trials.
    pub trials: usize,
    /// A limit that explains why the storage is not better, however fast the disk is.
    pub limit: Option<ReachedLimit>,
}

impl DoubtKind {
    /// Whether it could reverse a claim.
    pub fn turns(self, direction: Direction) -> bool {
        match (self.looks(), direction) {
            (Looks::Better, Direction::AtMost) | (Looks::Worse, Direction::AtLeast) => false,
            (Looks::Better | Looks::Worse | Looks::Either, _) => true,
        }
    }
}

impl Doubts {
    /// The doubts about the trials of one cell.
    pub fn of_cell<'a>(
        cell: &Cell,
        samples: impl IntoIterator<Item = &'a Sample>,
        environment: &Environment,
    ) -> Self {
        let samples: Vec<&Sample> = samples.into_iter().collect();
        let mut found = Self {
            all: Vec::new(),
            trials: samples.len(),
            limit: limit(cell, &samples, environment),
        };
        let accounting = Accounting::of(cell, Surroundings::of(environment));
        for sample in &samples {
            let verdict = &sample.verdict;
            let source = || Doubt::of_source(verdict.served_by, &verdict.reason);
            let source = is_open(cell, verdict).then(source);
            let of_writes = not_synced(cell).chain(unsynced(cell, sample));
            let around = disturbances(cell, sample, &accounting);
            let all = of_writes.chain(source).chain(around);
            all.for_each(|doubt| found.add(sample.id, doubt));
        }
        let mut syncs = samples.iter().map(|sample| sample.operations.sync.requests);
        if is_never_flushed(cell, &samples, environment) && syncs.any(|syncs| syncs > 0) {
            let unflushed = samples.iter();
            unflushed.for_each(|sample| found.add(sample.id, DoubtKind::NeverFlushed.into()));
        }
        found
    }

    /// Adds a trial's doubt to the known ones of its kind.
    fn add(&mut self, sample: i64, doubt: Doubt) {
        match self.all.iter_mut().find(|known| known.is_alike(&doubt)) {
            Some(known) => {
                known.samples.insert(sample);
                let extents = [known.extent, doubt.extent].into_iter().flatten();
                known.extent = extents.max_by(f64::total_cmp);
            }
            None => self.all.push(Doubt {
                samples: BTreeSet::from([sample]),
                ..doubt
            }),
        }
    }

    /// The doubts that could reverse a claim. A limit that the trials reached already explains why storage is not better, so that
    /// other reasons are unnecessary.
    pub fn against(&self, direction: Direction) -> Vec<&Doubt> {
        let explained = self.limit.is_some();
        let turns = |doubt: &&Doubt| {
            let is_slowed = doubt.what.class() == DoubtClass::Others;
            doubt.what.turns(direction) && !(explained && is_slowed)
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
        let concerned = against.iter().flat_map(|doubt| &doubt.samples);
        let concerned: BTreeSet<i64> = concerned.copied().collect();
        match !against.is_empty() && concerned.len() < self.trials && without(&concerned) {
            true => Vec::new(),
            false => against,
        }
    }
}

/// Writes that nothing makes durable at once, of the only trial or of each group.
fn not_synced(cell: &Cell) -> impl Iterator<Item = Doubt> {
    let trials = cell.spec.named_trials().into_iter();
    let unsynced = trials.filter(|(_, trial)| trial.writes() && !trial.sync.is_per_write());
    unsynced.map(|(group, trial)| Doubt {
        note: group.map(str::to_owned),
        ..Doubt::from(match trial.sync {
            SyncPolicy::End => DoubtKind::SyncedAtEnd,
            _ => DoubtKind::NotSynced,
        })
    })
}

/// Writes of a trial that no sync followed, if `sync_every` allows many.
fn unsynced(cell: &Cell, sample: &Sample) -> Option<Doubt> {
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
    (share > UNSYNCED_MAX).then(|| Doubt::of(DoubtKind::Unsynced, share))
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

/// Whether no sync of the trials of a cell flushed the device's volatile cache; no if flushes are not counted.
fn is_never_flushed(cell: &Cell, samples: &[&Sample], environment: &Environment) -> bool {
    let counter = environment.get(&KEYS.device_flush_counter);
    let counter = counter.and_then(|counter| counter.parse().ok());
    let flushes = |sample: &Sample| {
        let stat: DeviceStat = match counter? {
            FlushCounter::Device => sample.counters.device?,
            FlushCounter::Disks => sample.counters.bottom?.stat,
        };
        Some(stat.flush_ios)
    };
    let cache = environment.get(&KEYS.device_write_cache);
    let writing = cell.spec.writing_trials();
    writing.iter().any(|one| one.sync.follows_writes())
        && cache.is_some_and(|cache| cache == "write back")
        && samples.iter().all(|sample| flushes(sample) == Some(0))
}

/// Disturbances of one trial; empty for a model, whose times are computed.
fn disturbances(cell: &Cell, sample: &Sample, accounting: &Accounting) -> Vec<Doubt> {
    if sample.verdict.served_by == ServedBy::Model || cell.spec.runs_program() {
        return Vec::new();
    }
    sides::disturbances(&CellDisturbance::of(accounting, &[sample])).collect()
}

#[cfg(test)]
mod tests;
