//! Runs that are comparable over time, according to their files: one experiment with one set of settings on one
//! machine and target.

use iolab_workload::Result;
use schemars::JsonSchema;
use serde::Serialize;

use super::{FiledRun, in_time};
use crate::analysed_run::AnalysedRun;
use crate::analysis::CellAnalysis;
use crate::compare::RunSide;
use crate::compare::matching::{Side, common_factors, setting_differences};
use iolab_record::environment::{Environment, KEYS};
use iolab_record::{RunRecord, RunStatus, TargetKind, UNKNOWN_TARGET};
use iolab_workload::group::split_group;

/// Reason why a run is not comparable with another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExclusionReason {
    /// The run itself.
    Itself,
    /// The run started later.
    Later,
    /// The run is not finished.
    Unfinished,
    /// The run has another experiment, or one whose definition differs.
    Experiment,
    /// No cell has the levels of a cell of the new run.
    NoCellInCommon,
    /// A setting or the measuring time differs.
    Settings(String),
    /// A fact of the machine differs.
    Machine(&'static str),
    /// A fact of the target differs.
    Target(&'static str),
    /// There are enough later runs.
    Older,
}

/// An excluded run file, with the reason.
pub type ExcludedRun = (String, ExclusionReason);

/// Properties in which comparable runs must agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Comparability {
    /// Whether runs of other hosts with the same hardware are comparable.
    pub any_host: bool,
}

impl Comparability {
    /// Reason why two runs are not comparable, whichever came first.
    ///
    /// # Errors
    ///
    /// Of kind [`Usage`](iolab_workload::Kind::Usage) if a definition is needed and cannot be read.
    pub fn incompatibility(
        self,
        a: &FiledRun<'_>,
        b: &FiledRun<'_>,
    ) -> Result<Option<ExclusionReason>> {
        match b.run.record().run.status {
            RunStatus::Done => self.difference(a.run, b.run),
            _ => Ok(Some(ExclusionReason::Unfinished)),
        }
    }

    /// Difference that makes two runs, finished or not, more than repetitions: other experiment, settings,
    /// machine or target.
    ///
    /// # Errors
    ///
    /// Errors of [`Comparability::incompatibility`].
    pub fn difference(self, a: &AnalysedRun, b: &AnalysedRun) -> Result<Option<ExclusionReason>> {
        let (x, y) = (a.record(), b.record());
        if !is_named_alike(x, y) {
            return Ok(Some(ExclusionReason::Experiment));
        }
        let machine = machine(x, y, self).map(ExclusionReason::Machine);
        let other = machine.or_else(|| target(x, y).map(ExclusionReason::Target));
        match (other, design(x, y)) {
            (Some(other), _) => Ok(Some(other)),
            (None, Some(what)) => Ok(Some(ExclusionReason::Settings(what.to_owned()))),
            (None, None) => setting(a, b, |_| false),
        }
    }

    /// The runs among `all` to compare `new` with: the last `most` comparable ones, in the order of time; and the reason for the
    /// exclusion of each other run.
    ///
    /// # Errors
    ///
    /// Errors of [`Comparability::incompatibility`].
    pub fn history<'a>(
        self,
        new: &FiledRun<'_>,
        all: &[FiledRun<'a>],
        most: usize,
    ) -> Result<(Vec<FiledRun<'a>>, Vec<ExcludedRun>)> {
        let (mut used, mut unused) = (Vec::new(), Vec::new());
        let own = new.run.record();
        for run in in_time(all) {
            let old = run.run.record();
            let why = match old.run.started_utc > own.run.started_utc {
                _ if old.id() == own.id() => Some(ExclusionReason::Itself),
                true => Some(ExclusionReason::Later),
                false => self.incompatibility(new, &run)?,
            };
            match why {
                None => used.push(run),
                Some(why) => unused.push((run.file.to_owned(), why)),
            }
        }
        let older = used.len().saturating_sub(most);
        let older = used.drain(..older);
        unused.extend(older.map(|run| (run.file.to_owned(), ExclusionReason::Older)));
        Ok((used, unused))
    }
}

/// Settings that depend on a target that lacks room, or does not allow direct I/O.
const GIVEN_BY_TARGET: [&str; 2] = ["region_bytes", "cache"];

/// Whether two runs measured the same experiment, on whatever machine and target: its settings agree in all
/// common cells, except those that a target decides. Budgets and numbers of trials may differ.
pub fn is_same_experiment(a: &AnalysedRun, b: &AnalysedRun) -> bool {
    let given = |name: &str| GIVEN_BY_TARGET.contains(&split_group(name).1);
    is_named_alike(a.record(), b.record()) && matches!(setting(a, b, given), Ok(None))
}

fn is_named_alike(a: &RunRecord, b: &RunRecord) -> bool {
    let (x, y) = (&a.experiment, &b.experiment);
    x.name == y.name
        && x.response == y.response
        && x.response_group == y.response_group
        && x.factors == y.factors
}

/// The first of these facts that is known on both sides and differs.
fn differing(
    a: &Environment,
    b: &Environment,
    facts: impl IntoIterator<Item = &'static str>,
) -> Option<&'static str> {
    let differs = |fact: &&str| a.text(fact).zip(b.text(fact)).is_some_and(|(x, y)| x != y);
    facts.into_iter().find(differs)
}

fn machine(a: &RunRecord, b: &RunRecord, kinship: Comparability) -> Option<&'static str> {
    let (x, y) = (&a.environment, &b.environment);
    let host = (!kinship.any_host).then_some(KEYS.host_name.name());
    let facts = [
        KEYS.machine_vendor.name(),
        KEYS.machine_product.name(),
        KEYS.architecture.name(),
        KEYS.cpu_model.name(),
        KEYS.cpu_usable_count.name(),
    ];
    differing(x, y, host.into_iter().chain(facts)).or_else(|| memory(x, y))
}

/// Compares with a tolerance, since kernel versions reserve different amounts of the same memory.
fn memory(a: &Environment, b: &Environment) -> Option<&'static str> {
    const SHARE: f64 = 0.02;
    let (x, y) = (a.get(&KEYS.memory_bytes)?, b.get(&KEYS.memory_bytes)?);
    let apart = x.abs_diff(y) as f64;
    (apart > SHARE * x.max(y) as f64).then(|| KEYS.memory_bytes.name())
}

/// The distinct targets of some runs, as [`Comparability`] distinguishes them.
pub(super) fn targets(runs: &[FiledRun<'_>]) -> Vec<String> {
    let mut found: Vec<&RunRecord> = Vec::new();
    for run in runs.iter().map(|run| run.run.record()) {
        if found.iter().all(|known| target(known, run).is_some()) {
            found.push(run);
        }
    }
    found.iter().map(|run| run.target_text()).collect()
}

/// The first difference between targets in the same place.
fn target(a: &RunRecord, b: &RunRecord) -> Option<&'static str> {
    if a.further_targets.len() != b.further_targets.len() {
        return Some("number");
    }
    let mut pairs = a
        .targets()
        .zip(a.target_kinds())
        .zip(b.targets().zip(b.target_kinds()));
    let mut number = 0..;
    pairs.find_map(|((path, kind), (other_path, other_kind))| {
        let number = number.next()?;
        let [x, y] = [a, b].map(|run| match number {
            0 => run.environment.clone(),
            _ => run.environment.of_target(number),
        });
        one_target((path, kind, &x), (other_path, other_kind, &y))
    })
}

/// A scratch file may be in any folder of its file system; other targets are identified by their path.
fn one_target(
    (path, kind, x): (&str, TargetKind, &Environment),
    (other_path, other_kind, y): (&str, TargetKind, &Environment),
) -> Option<&'static str> {
    if kind != other_kind {
        return Some("kind");
    }
    let mounted = |list: &Environment| list.get(&KEYS.mount_point).is_some();
    let by_mount = kind == TargetKind::Scratch && mounted(x) && mounted(y);
    // Two unknown targets may be different ones.
    if !by_mount && path != other_path || path == UNKNOWN_TARGET {
        return Some("path");
    }
    let mount = by_mount.then_some(KEYS.mount_point.name());
    let facts = [
        KEYS.file_system.name(),
        KEYS.device_vendor.name(),
        KEYS.device_model.name(),
        KEYS.device_bytes.name(),
        KEYS.device_transport.name(),
        KEYS.model_digest.name(),
    ];
    differing(x, y, mount.into_iter().chain(facts))
}

/// The duration and number of trials affect how much runs differ.
fn design(a: &RunRecord, b: &RunRecord) -> Option<&'static str> {
    let (x, y) = (&a.experiment, &b.experiment);
    let parts = [
        ("budget", x.budget_ns == y.budget_ns),
        ("precision", x.precision == y.precision),
        ("trials_min", x.trials_min == y.trials_min),
        ("trials_max", x.trials_max == y.trials_max),
    ];
    Some(parts.into_iter().find(|(_, same)| !same)?.0)
}

/// The first setting in which cells with equal levels differ, except those `expected` to; or the reason that
/// there are no such cells.
fn setting(
    a: &AnalysedRun,
    b: &AnalysedRun,
    expected: impl Fn(&str) -> bool,
) -> Result<Option<ExclusionReason>> {
    let sources = [a, b].map(RunSide::whole);
    let factors = common_factors(&sources);
    let (x, y) = (
        Side::new(&sources[..1], &factors)?,
        Side::new(&sources[1..], &factors)?,
    );
    let levels = x.levels().into_iter();
    let pairs = levels.filter_map(|levels| Some((x.cell(levels)[0]?, y.cell(levels)[0]?)));
    let pairs = pairs.filter(|(x, y)| x.cell.spec.is_comparable(&y.cell.spec));
    let pairs: Vec<(&CellAnalysis, &CellAnalysis)> = pairs.collect();
    if pairs.is_empty() {
        return Ok(Some(ExclusionReason::NoCellInCommon));
    }
    // A run without this setting has all processes that it was started with.
    let ranks = |cell: &CellAnalysis| {
        let trial = cell.cell.trial();
        trial.workers() / trial.threads.max(1)
    };
    if pairs.iter().any(|(x, y)| ranks(x) != ranks(y)) {
        return Ok(Some(ExclusionReason::Settings("ranks".to_owned())));
    }
    let differing = setting_differences(&pairs, expected);
    let first = differing.into_iter().next();
    Ok(first.map(|found| ExclusionReason::Settings(found.what.name().into_owned())))
}
