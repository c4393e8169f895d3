//! Groups: workers of one trial that do different things at the same time, and their combined work.

use std::ops::Range;
use std::time::Duration;

use crate::names::TargetName;
use crate::operation::Operation;
use crate::settings::CellSpec;
use crate::trial::{Backend, CacheState, FileLayout, Rate, THREADS_MAX, TrialLimit, TrialSpec};
use crate::{Error, Result, usage_errors};

pub use crate::names::{ALL, Active, check_group_name, split_group};
pub use crate::settings::GroupSpec;

/// Most groups of a trial.
pub const GROUPS_MAX: usize = 64;

/// Time limit of a group that has none and ends with the others: longer than any trial.
const ENDLESS: Duration = Duration::from_secs(366 * 86_400);

/// One group of a trial with its settings.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupTrial {
    /// Its number among the groups of the cell, from 1.
    pub group: u32,
    /// Its target; `None` for the target of the run.
    pub target: Option<TargetName>,
    /// The settings of its workers.
    pub trial: TrialSpec,
    /// Whether it has no limit of its own and ends with the groups that have one.
    pub follows: bool,
}

impl CellSpec {
    /// Whether a trial has several groups of workers.
    pub fn has_groups(&self) -> bool {
        !self.groups.is_empty()
    }

    /// The number of a group, from 1; `None` without a name or for an unknown group.
    pub fn number_of(&self, name: Option<&str>) -> Option<u32> {
        let name = name?;
        let place = self.groups.iter().position(|group| group.name == name);
        place.and_then(|place| u32::try_from(place + 1).ok())
    }

    /// The groups with requests.
    pub fn active(&self) -> impl Iterator<Item = &GroupSpec> {
        self.groups.iter().filter(|group| !group.is_idle())
    }

    /// Whether a group has requests; always true without a name, which stands for all groups together.
    pub fn runs_group(&self, name: Option<&str>) -> bool {
        name.is_none_or(|name| self.active().any(|group| group.name == name))
    }

    /// The trial of each group; the cell's own without groups. None if settings are unknown, which a reader of a whole trial could
    /// not see.
    pub fn trials(&self) -> Vec<&TrialSpec> {
        self.trials_on(|_| true)
    }

    /// The distinct targets of its workers; `None` stands for the target of the run.
    pub fn targets(&self) -> Vec<Option<&TargetName>> {
        let mut targets: Vec<Option<&TargetName>> = match self.has_groups() {
            true => {
                let groups = self.active();
                groups.map(|group| group.spec.target.as_ref()).collect()
            }
            false => vec![self.target.as_ref()],
        };
        targets.sort_unstable();
        targets.dedup();
        targets
    }

    /// The trials of the groups that use these targets.
    pub fn trials_on(&self, is_one: impl Fn(Option<&TargetName>) -> bool) -> Vec<&TrialSpec> {
        match self.has_groups() {
            true => self
                .active()
                .filter(|group| is_one(group.spec.target.as_ref()))
                .map(|group| &group.spec.trial)
                .collect(),
            false if is_one(self.target.as_ref()) => self.only_trial().into_iter().collect(),
            false => Vec::new(),
        }
    }

    /// The groups with their limits resolved: a group without a limit runs as long as the groups that have one. If no group
    /// has a limit, each ends after a pass over its region.
    pub fn group_trials(&self) -> Vec<GroupTrial> {
        let any_bounded = self.active().any(|group| group.spec.trial.has_bound());
        let end = self.last_end();
        (1..)
            .zip(&self.groups)
            .filter(|(_, group)| !group.is_idle())
            .map(|(number, group)| {
                let mut trial = group.spec.trial.clone();
                let follows = any_bounded && !trial.has_bound();
                if follows {
                    trial.limit.time = Some(end.unwrap_or(ENDLESS));
                }
                GroupTrial {
                    group: number,
                    target: group.spec.target.clone(),
                    trial,
                    follows,
                }
            })
            .collect()
    }

    /// Checks each group and all together, except for what depends on the target.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](crate::Kind::Usage), with the group and the setting.
    pub fn check(&self) -> Result<()> {
        if !self.has_groups() {
            usage_errors! {
                self.active.is_some() => "active in a trial without groups",
                    "it has a meaning only with other groups: leave it out, or give groups";
            }
            return self.trial.check();
        }
        usage_errors! {
            self.active().next().is_none() => "every group has the rate 0, so that nothing is done", "give one of the groups another rate";
        }
        for group in self.active() {
            group
                .check_alone()
                .map_err(|error| error.within(format!("group {}", group.name)))?;
        }
        let threads: u64 = self
            .active()
            .map(|group| u64::from(group.spec.trial.threads))
            .sum();
        usage_errors! {
            threads > u64::from(THREADS_MAX) => format!("the groups have {threads} threads together"),
                "choose 1 to 1024 threads over all groups";
        }
        // No group has begun during the idle time.
        if let Some(group) = self.active().find(|group| group.spec.idle != self.idle) {
            let what = format!("group {} has an idle time of its own", group.name);
            return Err(Error::usage(what)
                .hint("idle is time before the whole trial: set it for all groups"));
        }
        self.check_whose_bytes()
    }

    /// The end of the last group with a time limit, if all limits are times.
    pub fn last_end(&self) -> Option<Duration> {
        let bounded = self
            .active()
            .map(|group| &group.spec.trial)
            .filter(|trial| trial.has_bound());
        let ends: Option<Vec<Duration>> = bounded.map(|trial| trial.limit.time).collect();
        ends?.into_iter().max()
    }

    /// Refuses to verify bytes that another group wrote.
    fn check_whose_bytes(&self) -> Result<()> {
        for group in self.active().filter(|group| group.spec.trial.verify) {
            let own = group.range();
            let writes_there = |other: &&GroupSpec| {
                let trial = &other.spec.trial;
                let theirs = other.range();
                other.name != group.name
                    && other.spec.target == group.spec.target
                    && trial.writes()
                    && trial.backend != Backend::Null
                    && !trial.starts_fresh()
                    && !group.spec.trial.starts_fresh()
                    && theirs.start < own.end
                    && own.start < theirs.end
            };
            if let Some(other) = self.active().find(writes_there) {
                return Err(Error::usage(format!(
                    "verify in group {}, and group {} writes the same bytes",
                    group.name, other.name
                ))
                .hint("give each a range of its own with offset and region, or leave verify out"));
            }
        }
        Ok(())
    }

    /// Bytes in the ranges of all groups, each byte of each target counted once.
    pub fn bytes_used(&self) -> u64 {
        if !self.has_groups() {
            return self.trial.region;
        }
        let real = self.active();
        let real = real.filter(|group| group.spec.trial.backend != Backend::Null);
        let mut ranges: Vec<(Option<&TargetName>, Range<u64>)> = real
            .map(|group| (group.spec.target.as_ref(), group.range()))
            .collect();
        ranges.sort_by_key(|(target, range)| (*target, range.start));
        let mut used = 0_u64;
        let mut before: Option<(Option<&TargetName>, u64)> = None;
        for (target, range) in ranges {
            let counted = before.filter(|(own, _)| *own == target);
            let counted = counted.map_or(0, |(_, end)| end);
            used = used.saturating_add(range.end.saturating_sub(range.start.max(counted)));
            before = Some((target, range.end.max(counted)));
        }
        used
    }

    /// The groups as one trial, for descriptions: common values if they agree, with the sum of threads and the union of
    /// regions.
    pub fn merge_trials(&self) -> TrialSpec {
        let trials = self.trials();
        let Some(first) = trials.first() else {
            return self.trial.clone();
        };
        let mut all = (*first).clone();
        if !self.has_groups() {
            return all;
        }
        let any = |of: fn(&TrialSpec) -> bool| trials.iter().any(|trial| of(trial));
        let most = |of: fn(&TrialSpec) -> u64| trials.iter().map(|trial| of(trial)).max();
        if let Some(buffered) = trials
            .iter()
            .find(|trial| trial.cache != CacheState::Direct)
        {
            all.cache = buffered.cache;
        }
        if let Some(real) = trials.iter().find(|trial| trial.backend != Backend::Null) {
            all.backend = real.backend;
        }
        all.read_percent = match (any(TrialSpec::reads), any(TrialSpec::writes)) {
            (true, false) => 100,
            (false, _) => 0,
            (true, true) => match trials
                .iter()
                .all(|trial| trial.read_percent == first.read_percent)
            {
                true => first.read_percent,
                false => 50,
            },
        };
        let end = most(|trial| trial.offset.saturating_add(trial.region));
        all.offset = trials.iter().map(|trial| trial.offset).min().unwrap_or(0);
        all.region = end.unwrap_or(0).saturating_sub(all.offset);
        all.threads = trials.iter().map(|trial| trial.threads).sum();
        all.bs = most(|trial| trial.bs).unwrap_or(first.bs);
        all.depth = trials.iter().map(|trial| trial.depth).max().unwrap_or(1);
        all.layout = FileLayout::Overlapping;
        all.verify = any(|trial| trial.verify);
        all.hardware_counters = any(|trial| trial.hardware_counters);
        all.latency = any(|trial| trial.latency);
        all.latency_over_time = any(|trial| trial.latency_over_time);
        all.trace = any(|trial| trial.trace);
        all.limit = merge_limits(&trials);
        if trials.len() > 1 {
            all.rate = None;
        }
        all
    }

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

/// The limits of all groups together; if all are limited by requests, the sum of their bytes.
fn merge_limits(trials: &[&TrialSpec]) -> TrialLimit {
    let end = |trial: &&TrialSpec| trial.limit.time;
    let is_counted = trials.iter().any(|trial| trial.limit.bytes.is_some());
    let bytes = |trial: &&TrialSpec| {
        // Guards against a division by zero, since nothing is checked yet.
        (trial.bs > 0).then_some(())?;
        let requests = trial.requests_bound()? as f64;
        Some((requests * trial.mean_request()) as u64)
    };
    let all = trials.iter().map(bytes).sum::<Option<u64>>();
    TrialLimit {
        time: trials.iter().filter_map(end).max(),
        bytes: all.filter(|_| is_counted),
    }
}

impl GroupSpec {
    /// The bytes of its target that it may access.
    fn range(&self) -> Range<u64> {
        let trial = &self.spec.trial;
        trial.offset..trial.offset.saturating_add(trial.region)
    }

    /// Checks one group.
    fn check_alone(&self) -> Result<()> {
        // Every field of a cell is listed here, so that a new one is passed on or refused, and not forgotten.
        let CellSpec {
            trial,
            linkage,
            command,
            tool,
            system,
            unknown,
            // One word for settings of the trial, and how completions are taken.
            workload: _,
            batch_auto: _,
            // Where it goes.
            target: _,
            // A group has none of its own.
            groups: _,
            active: _,
            // The idle time of all groups; checked with them.
            idle: _,
        } = &self.spec;
        usage_errors! {
            !unknown.is_empty() => "an unknown setting in a group",
                "only imported results have settings that are unknown: give a value";
            !system.is_none() => "settings of the kernel (system) with groups",
                "they apply to all that runs: compare runs without groups, or leave system out";
            tool.is_peer() || linkage.is_some() || command.is_some() => "another tool or a program in a trial with groups",
                "iolab carries groups out by itself: leave tool, linkage and command out";
            trial.layout == FileLayout::Private => "layout=private in a group",
                "groups share one file: give each a range of its own with offset and region, and layout=shared";
        }
        trial.check()
    }
}

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

    /// Bytes that requests other than reads can reach, at most: ranges that several groups share count once if all are shared.
    pub fn overwritten_bytes(self) -> u64 {
        let regions = self
            .spec
            .writing_trials()
            .into_iter()
            .map(|trial| trial.region);
        let bytes = regions.fold(0, u64::saturating_add);
        match self.spec.has_groups() {
            true => bytes.min(self.spec.bytes_used()),
            false => bytes,
        }
    }
}
