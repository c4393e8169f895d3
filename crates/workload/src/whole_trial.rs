//! The combined work of all workers of a trial, and access to settings in which its groups can differ.
//!
//! [`CellSpec::trial`] of a cell with groups has one value for each setting. If the groups differ, the value belongs to one
//! of them, so nothing that describes or judges a trial may read it. [`WholeTrial`] has only values that are true of all
//! groups together. Every other setting is read from the only trial, from each trial, or if all trials share it.

use crate::operation::Operation;
use crate::settings::CellSpec;
use crate::trial::{Rate, TrialLimit, TrialSpec};

/// All groups of a trial together; without groups, the trial itself. Has no setting that one group can have and another one
/// not. An unknown setting ([`CellSpec::unknown`]) has the value of a default trial.
#[derive(Debug, Clone, Copy)]
pub struct WholeTrial<'a> {
    /// Bytes of a request; of groups with several sizes, the largest.
    pub bs: u64,
    /// Bytes jumped over after each request; of groups, the most.
    pub skip: u64,
    /// Workers of all groups.
    pub threads: u32,
    /// Outstanding requests per worker; of groups, the most.
    pub depth: u32,
    /// Length of the range that the regions of all groups span, bytes.
    pub region: u64,
    /// The limits of all groups together.
    pub limit: TrialLimit,
    spec: &'a CellSpec,
}

impl WholeTrial<'_> {
    /// Number of workers of all groups and processes.
    pub fn workers(self) -> u32 {
        let trials = self.spec.trials().into_iter();
        trials.map(TrialSpec::workers).sum()
    }

    /// The change that makes fewer workers: `fewer threads`, or `fewer ranks`.
    pub fn fewer_workers(self) -> &'static str {
        self.spec.trial.fewer_workers()
    }

    /// Most requests in flight, over all workers of all groups and processes.
    pub fn in_flight_of_all(self) -> u64 {
        let trials = self.spec.trials().into_iter();
        trials.map(TrialSpec::in_flight_of_all).sum()
    }

    /// Whether any request reads, as far as is known.
    pub fn reads(self) -> bool {
        self.may("read_percent", TrialSpec::reads)
    }

    /// Whether any request writes, as far as is known.
    pub fn writes(self) -> bool {
        self.may("read_percent", TrialSpec::writes)
    }

    /// Whether any request is of this operation, as far as is known.
    pub fn requests(self, operation: Operation) -> bool {
        self.may("read_percent", |trial| trial.requests(operation))
    }

    /// Whether the workers of any group have a rate, as far as is known.
    pub fn has_rate(self) -> bool {
        self.may("rate", |trial| trial.rate.is_some())
    }

    /// Whether something is true of any group, or may be, since this setting is not known.
    fn may(self, setting: &str, of: impl Fn(&TrialSpec) -> bool) -> bool {
        match self.spec.unknown.is_empty() {
            true => self.spec.trials().into_iter().any(of),
            false => self.spec.unknown.contains(setting) || of(&self.spec.trial),
        }
    }

    /// Whether the workers of any group fill new files.
    pub fn has_own_bounds(self) -> bool {
        let mut trials = self.spec.trials().into_iter();
        trials.any(TrialSpec::starts_fresh)
    }

    /// The rate of all workers; `None` in the closed loop, and of several groups, which have a rate each.
    pub fn rate(self) -> Option<Rate> {
        match self.spec.trials().as_slice() {
            [only] => only.rate,
            _ => None,
        }
    }

    /// Bytes that requests other than reads can reach, at most.
    pub fn overwritten_bytes(self) -> u64 {
        reached(self.spec, self.spec.writing_trials())
    }
}

/// Bytes that the requests of some trials of a cell can reach: ranges that several share count once if all are shared.
fn reached(spec: &CellSpec, trials: Vec<&TrialSpec>) -> u64 {
    let bytes = trials.into_iter().map(|trial| trial.region);
    let bytes = bytes.fold(0, u64::saturating_add);
    match spec.has_groups() {
        true => bytes.min(spec.bytes_used()),
        false => bytes,
    }
}

impl CellSpec {
    /// The combined settings of all workers of a trial.
    pub fn whole_trial(&self) -> WholeTrial<'_> {
        let mut trials = self.trials();
        if trials.is_empty() && !self.has_groups() {
            trials.push(&self.trial);
        }
        let most = |of: fn(&TrialSpec) -> u64| trials.iter().map(|trial| of(trial)).max();
        let depth = trials.iter().map(|trial| trial.depth).max();
        WholeTrial {
            bs: most(|trial| trial.bs).unwrap_or(self.trial.bs),
            skip: most(|trial| trial.skip).unwrap_or(0),
            threads: trials.iter().map(|trial| trial.threads).sum(),
            depth: depth.unwrap_or(self.trial.depth),
            region: self.trial.region,
            limit: self.trial.limit,
            spec: self,
        }
    }

    /// The trial of a cell without groups; `None` with groups, also with a single one, and if settings are unknown.
    pub fn only_trial(&self) -> Option<&TrialSpec> {
        (!self.has_groups() && self.unknown.is_empty()).then_some(&self.trial)
    }

    /// Places the workers of the first of `processes` processes (ranks) among the workers of all; groups have one process.
    pub fn span(&mut self, processes: u32) {
        self.trial.span(processes);
    }

    /// The cell with all its workers in one process.
    #[must_use]
    pub fn in_one_process(&self) -> Self {
        Self {
            trial: self.trial.in_one_process(),
            ..self.clone()
        }
    }

    /// The value that all groups share; `None` if they differ.
    pub fn shared<T: PartialEq>(&self, of: impl Fn(&TrialSpec) -> T) -> Option<T> {
        let mut values = self.trials().into_iter().map(of);
        let first = values.next()?;
        values.all(|other| other == first).then_some(first)
    }

    /// The trials with requests that read.
    pub fn reading_trials(&self) -> Vec<&TrialSpec> {
        let mut trials = self.trials();
        trials.retain(|trial| trial.reads());
        trials
    }

    /// The trials with requests that write or trim.
    pub fn writing_trials(&self) -> Vec<&TrialSpec> {
        let mut trials = self.trials();
        trials.retain(|trial| trial.writes());
        trials
    }

    /// The trials with requests, each with the name of its group; without a name if there are no groups.
    pub fn named_trials(&self) -> Vec<(Option<&str>, &TrialSpec)> {
        match self.only_trial() {
            Some(trial) => vec![(None, trial)],
            None => {
                let groups = self.active();
                groups
                    .map(|group| (Some(group.name.as_str()), &group.spec.trial))
                    .collect()
            }
        }
    }
}
