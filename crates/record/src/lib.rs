//! iolab-record: the content of a run file as plain values, shared by the writer (runner), the reader (analysis) and everything
//! that prints.
//!
//! Files to begin with: `lib.rs` the values, `sample.rs` the result of a trial, `column.rs` and `tables/` the table of columns
//! from which schema, reader, writer, exports and docs/RUNFILE.md are generated; `environment/keys.rs` the keys of the
//! environment.

pub mod column;
pub mod environment;
mod sample;
mod states;
pub mod tables;
pub mod targets;

use std::collections::BTreeMap;
use std::time::Duration;

pub use iolab_workload::counters::{
    Bottom, Counters, DeviceStat, Hardware, HardwareEvents, NfsIo, NoHardware, Pressure, ProcessIo,
    ResourceUse,
};
use iolab_workload::group::{GroupSpec, WholeTrial};
use iolab_workload::named;
pub use iolab_workload::operation::{Moved, Operation, PerOperation};
pub use iolab_workload::outcome::{
    Effective, LatencySummary, OperationSummary, RateReport, RequestSizes, RingFlag, SizeCount,
};
pub use iolab_workload::region_state::{Extents, FaultKind, Faults, Region, Residency, Verified};
use iolab_workload::response::Response;
pub use iolab_workload::series::{Interval, Series};
use iolab_workload::service_level::{Need, ServiceLevels};
use iolab_workload::settings::{CellSpec, SETTINGS, Setting, Value};
pub use iolab_workload::system_settings::Cpus;
pub use iolab_workload::trial::Arrivals;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use environment::{Environment, KEYS};
pub use sample::{
    LatencyOf, Part, PartId, RankActivity, Sample, SampleLatency, SampleLatencyOverTime,
    SampleSeries, ShownLatency,
};
pub use states::{
    ClockDomain, Ended, EndedBy, EventKind, PreparationKind, RequestTime, RunStatus, ServedBy,
    TargetKind,
};
pub use tables::{DriveLog, FurtherTarget, GroupRow, PreparationStep, Rank};
pub use targets::{UNKNOWN_TARGET, tell_targets_apart};

/// The schema version that this build writes, and the only one that it reads.
pub const SCHEMA_VERSION: i64 = 12;

/// Table `run`: one row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Run {
    /// State of the run.
    pub status: RunStatus,
    /// Version of iolab.
    pub tool_version: String,
    /// Start, RFC 3339, UTC.
    pub started_utc: String,
    /// Time of the last change of the status, RFC 3339, UTC.
    pub ended_utc: Option<String>,
    /// The target that the user named, as an absolute path.
    pub target: String,
    /// The kind of the target.
    pub target_kind: TargetKind,
    /// Usable bytes of the target.
    pub target_bytes: u64,
    /// Seed of the plan, from which the seeds of trials derive.
    pub seed: u64,
    /// The clock of its times.
    pub clock_domain: ClockDomain,
    /// Cost of one time stamp, ns; `None` if unknown.
    pub clock_cost_ns: Option<f64>,
    /// Step in which time stamps grow, ns; `None` if it is not known.
    pub clock_resolution_ns: Option<f64>,
    /// `tsc` (x86-64), `cntvct` (ARM) or `clock_monotonic_raw`, and why.
    pub clock_source: String,
    /// CPU time of a request of the null backend with latencies recorded, ns: the overhead of iolab; `None` if unknown.
    pub floor_ns: Option<f64>,
}

/// Table `experiment`: one row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExperimentRecord {
    /// Name of the experiment.
    pub name: String,
    /// Question that the experiment asks.
    pub question: String,
    /// The measured quantity.
    pub response: Response,
    /// The group whose response it is; `None` for whole trials.
    pub response_group: Option<String>,
    /// The question about service levels; `None` if there is none.
    pub asked: Option<Question>,
    /// The whole definition with all defaults resolved, sufficient to repeat the run.
    pub toml: String,
    /// Names of the factors, in order; each has several levels.
    pub factors: Vec<String>,
    /// Precision goal: distance of the median to the farther end of its 95 % interval, over the median.
    pub precision: f64,
    /// Time budget, ns.
    pub budget_ns: u64,
    /// Fewest measured trials per cell.
    pub trials_min: u32,
    /// Most measured trials per cell.
    pub trials_max: u32,
}

/// One combination of levels, with all settings in effect.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Index from 0, in the order of the definition.
    pub id: i64,
    /// The factor levels, in the order of [`ExperimentRecord::factors`], canonical text (`4KiB`, `rand`).
    pub levels: Vec<String>,
    /// All settings in effect. If a trial runs a program, only the settings of the file that it reads (`bs`, `region`,
    /// `cache`) apply.
    pub spec: CellSpec,
    /// Reason for the end of the repetition; `None` before the end.
    pub ended_by: Option<EndedBy>,
}

/// The verdict about the origin of a sample's bytes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ServedVerdict {
    /// The origin.
    pub served_by: ServedBy,
    /// Share of the bytes that the device transferred, 0 to 1; `None` if unknown.
    pub device_fraction: Option<f64>,
    /// The reason for the verdict, in a few words.
    pub reason: String,
}

impl ServedVerdict {
    /// The reason if a process or another machine stores the bytes.
    pub const ELSEWHERE: &str = "a process or another machine answers for this file system, and what it does with the bytes is not known here";
}

/// An event of a run: a warning, an error, a decision from measurements.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// Time, RFC 3339, UTC.
    pub at_utc: String,
    /// Kind of the event.
    pub kind: EventKind,
    /// The cell that it is about; `None` for the whole run.
    pub cell: Option<i64>,
    /// The event in words.
    pub message: String,
}

/// The content of a run file, without latency histograms.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunRecord {
    /// The run.
    pub run: Run,
    /// Environment of the coordinating host.
    pub environment: Environment,
    /// Further targets.
    pub further_targets: Vec<FurtherTarget>,
    /// The processes of a run across hosts; empty for a single process.
    pub ranks: Vec<Rank>,
    /// The experiment.
    pub experiment: ExperimentRecord,
    /// All cells.
    pub cells: Vec<Cell>,
    /// All samples in the order of time.
    pub samples: Vec<Sample>,
    /// Samples of each group, for trials that have several; ordered by sample and group.
    pub group_samples: Vec<Sample>,
    /// Samples of each client of a run across hosts; ordered by sample and client.
    pub client_samples: Vec<Sample>,
    /// Parts of samples that have several.
    pub parts: Vec<Part>,
    /// Time series of trials, in the order of the samples; none for programs. Intervals are merged with their neighbours if
    /// there would be more than a million.
    pub series: Vec<SampleSeries>,
    /// Preparation steps of the targets before the first trial, in the order of time.
    pub preparation: Vec<PreparationStep>,
    /// All events in the order of time.
    pub events: Vec<Event>,
}

/// Settings of a cell that describe its groups together, whatever each of them has.
const OF_ALL_GROUPS: [&str; 7] = [
    "threads", "offset", "region", "time", "bytes", "active", "idle",
];

impl RunRecord {
    /// Places the workers of each cell among the workers of all processes (ranks) that carried out its trials.
    pub fn span_ranks(&mut self) {
        if self.ranks.is_empty() {
            return;
        }
        let mut of_sample: BTreeMap<i64, u32> = BTreeMap::new();
        for part in &self.parts {
            *of_sample.entry(part.sample).or_default() += 1;
        }
        for sample in &self.samples {
            let place = usize::try_from(sample.cell).ok();
            let cell = place.and_then(|place| self.cells.get_mut(place));
            let ranks = of_sample.get(&sample.id);
            if let Some((cell, ranks)) = cell.zip(ranks) {
                cell.spec.span(*ranks);
            }
        }
    }
}

impl Cell {
    /// Each group as a cell of its own, with its name.
    pub fn groups(&self) -> impl Iterator<Item = (&str, Self)> {
        let own = |group: &GroupSpec| Self {
            spec: group.spec.clone(),
            ..self.clone()
        };
        let groups = self.spec.groups.iter();
        groups.map(move |group| (group.name.as_str(), own(group)))
    }

    /// The combined settings of all workers of a trial. A setting in which groups can differ is read from
    /// [`CellSpec::only_trial`], [`CellSpec::trials`] or [`CellSpec::shared`].
    pub fn trial(&self) -> WholeTrial<'_> {
        self.spec.whole_trial()
    }

    /// The command of a trial with its placeholders `{file}`, `{size}` and `{bs}`; `None` if requests are issued.
    pub fn program(&self) -> Option<String> {
        self.spec.program().map(|template| template.to_string())
    }

    /// The distribution of intended starts; `None` in the closed loop.
    pub fn arrivals(&self) -> Option<Arrivals> {
        self.spec
            .shared(|trial| trial.rate.map(|_| trial.arrivals))
            .flatten()
    }

    /// All settings that have an effect, with their values. Shorthands (`workload`, `linkage`) are replaced by their
    /// meaning.
    pub fn in_force(&self) -> impl Iterator<Item = (&'static Setting, Value)> {
        let own = SETTINGS.iter().filter(|setting| !is_shorthand(setting));
        own.map(|setting| (setting, self.value_in_force(setting)))
    }

    /// The value of a setting; [`Value::None`] if it has no effect, and if groups differ.
    pub fn value_in_force(&self, setting: &Setting) -> Value {
        let own = match setting.name {
            "command" => Value::word(self.program()),
            "arrivals" => Value::word(self.arrivals()),
            _ => setting.value(&self.spec),
        };
        let is_shared = || {
            let mut of_groups = self.spec.active().map(|group| setting.value(&group.spec));
            let first = of_groups.next();
            of_groups.all(|other| Some(&other) == first.as_ref())
        };
        match OF_ALL_GROUPS.contains(&setting.name) || is_shared() {
            true => own,
            false => Value::None,
        }
    }
}

/// Whether a setting is a shorthand for others.
fn is_shorthand(setting: &Setting) -> bool {
    matches!(setting.name, "workload" | "linkage")
}

/// The settings in exports: first the tool, then the others.
pub fn exported_settings() -> Vec<&'static Setting> {
    let first = |setting: &&Setting| match setting.name {
        "command" => 0,
        "tool" => 1,
        _ => 2,
    };
    let shown = SETTINGS
        .iter()
        .filter(|setting| setting.exported && !is_shorthand(setting));
    let mut shown: Vec<&'static Setting> = shown.collect();
    shown.sort_by_key(first);
    shown
}

impl RunRecord {
    /// Identifies the run: 16 hexadecimal digits from its start, target and seed. Copies of a run file have the same id.
    pub fn id(&self) -> String {
        let host = self.host().unwrap_or_default();
        let seed = self.run.seed.to_string();
        let parts = [
            self.run.started_utc.as_str(),
            &seed,
            &self.run.target,
            &self.experiment.name,
            &host,
        ];
        // A byte 0 ends each part, so that parts cannot run together.
        digest(parts.iter().flat_map(|part| part.bytes().chain([0])))
    }

    /// Whether the other record holds the same samples of the same run.
    pub fn is_same_run(&self, other: &Self) -> bool {
        self.id() == other.id() && self.samples == other.samples
    }

    /// Whether both have the same samples of one target, whenever they were made: two runs of a model with one seed have.
    pub fn has_same_samples(&self, other: &Self) -> bool {
        let undated = |sample: &Sample| Sample {
            started_utc: String::new(),
            ..sample.clone()
        };
        let own = self.samples.iter().map(undated);
        self.run.target == other.run.target
            && !self.samples.is_empty()
            && own.eq(other.samples.iter().map(undated))
    }

    /// Name of the host that coordinated the run; `None` in files from before it was stored.
    pub fn host(&self) -> Option<String> {
        self.environment.get(&KEYS.host_name)
    }

    /// The name of the group of a part of a sample; `None` if the cell has none.
    pub fn group_of(&self, sample: i64, part: PartId) -> Option<&str> {
        let place = self
            .samples
            .binary_search_by_key(&sample, |sample| sample.id);
        let sample = self.samples.get(place.ok()?)?;
        let cell = self.cells.get(usize::try_from(sample.cell).ok()?)?;
        let group = cell
            .spec
            .groups
            .get((part.group as usize).checked_sub(1)?)?;
        Some(&group.name)
    }

    /// The samples of the groups of a trial; empty without groups.
    pub fn groups_of(&self, sample: i64) -> &[Sample] {
        let groups = &self.group_samples;
        let first = groups.partition_point(|own| own.id < sample);
        let end = groups.partition_point(|own| own.id <= sample);
        &groups[first..end]
    }

    /// The number of the group whose response is measured; `None` for whole trials.
    pub fn asked_group(&self) -> Option<u32> {
        let name = self.experiment.response_group.as_deref();
        self.cells.first()?.spec.number_of(name)
    }

    /// The samples that the experiment asks about: whole trials, or one group.
    pub fn asked_samples(&self) -> impl Iterator<Item = &Sample> {
        let group = self.asked_group();
        let samples = match group {
            None => &self.samples,
            Some(_) => &self.group_samples,
        };
        let own = move |sample: &&Sample| sample.group == group.unwrap_or(0);
        samples.iter().filter(own)
    }

    /// Each cell with the trials in its summaries: successful ones other than warm-ups, in the order of time.
    pub fn measured(&self) -> impl Iterator<Item = (&Cell, Vec<&Sample>)> {
        let mut trials: BTreeMap<i64, Vec<&Sample>> = BTreeMap::new();
        for sample in self.samples.iter().filter(|s| s.is_measured()) {
            trials.entry(sample.cell).or_default().push(sample);
        }
        let mut of = move |cell: &Cell| trials.remove(&cell.id).unwrap_or_default();
        self.cells.iter().map(move |cell| (cell, of(cell)))
    }
}

/// FNV-1a with 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>), in hexadecimal. Distinguishes texts; not
/// collision-resistant against an attacker.
pub fn digest(bytes: impl IntoIterator<Item = u8>) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{hash:016x}")
}

named! {
    /// The kind of a question about service levels.
    #[derive(Default)]
    pub enum QuestionKind: "kind of question" {
        /// Whether they hold in each cell.
        #[default]
        Cells = "cells",
        /// The highest rate at which they hold.
        Limit = "limit",
        /// Whether they hold in a workload of a requirement.
        Fit = "fit",
    }
}

impl QuestionKind {
    /// The command of the instrument that asks and answers; `None` for questions of the user.
    pub fn command(self) -> Option<&'static str> {
        (self == Self::Fit).then_some("fit")
    }
}

/// The question of a run about service levels. It affects neither measurements nor writes.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The question.
    pub of: Asked,
    /// The levels, at least one.
    pub needs: Vec<Need>,
}

/// A question about service levels.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// Whether they hold in each cell.
    Cells,
    /// The highest rate at which they hold.
    Limit,
    /// Whether they hold in a workload of a requirement.
    Fit(Fit),
}

/// A requirement, with the workload of this run. Each of its workloads has its own run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fit {
    /// Identifies the runs of the workloads that belong together.
    pub id: String,
    /// Name of the requirement.
    pub requirement: String,
    /// The limits of the answer.
    pub not: String,
    /// How long each workload loads the storage.
    pub hold: Duration,
    /// Further limits of the answer on this target.
    pub limits: Vec<String>,
    /// Names of all workloads.
    pub workloads: Vec<String>,
    /// The workload of this run.
    pub workload: String,
}

impl Question {
    /// A question about the user's levels.
    pub fn of_levels(of: Asked, levels: &ServiceLevels) -> Self {
        let needs = levels.all().iter().map(|level| Need::of(*level));
        Self {
            of,
            needs: needs.collect(),
        }
    }

    /// The kind of the question.
    pub fn kind(&self) -> QuestionKind {
        match self.of {
            Asked::Cells => QuestionKind::Cells,
            Asked::Limit => QuestionKind::Limit,
            Asked::Fit(_) => QuestionKind::Fit,
        }
    }

    /// The requirement; `None` for a question of the user.
    pub fn into_fit(self) -> Option<Fit> {
        match self.of {
            Asked::Fit(fit) => Some(fit),
            Asked::Cells | Asked::Limit => None,
        }
    }

    /// The service levels of the requirement.
    pub fn levels(&self) -> ServiceLevels {
        self.needs.iter().map(|need| need.level).collect()
    }
}

/// Observation of a command, in a file of its own: without an experiment and without trials.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Observation {
    /// Name of the command.
    pub command: String,
    /// Version of iolab.
    pub tool_version: String,
    /// Start, RFC 3339, UTC.
    pub started_utc: String,
    /// A JSON object of the command's own: everything that it saw.
    pub content: String,
    /// The machine and the devices.
    pub environment: Environment,
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn digests_equal_fnv_1a() {
        // Published test vectors.
        for (text, wanted) in [
            ("", "cbf29ce484222325"),
            ("a", "af63dc4c8601ec8c"),
            ("foobar", "85944171f73967e8"),
        ] {
            assert_eq!(digest(text.bytes()), wanted);
        }
    }
}
