//! What a run file holds, as plain values: the common ground of the writer (runner), the
//! reader (analysis) and everything that prints.
//!
//! Files to begin with: `lib.rs` the values, `sample.rs` what a trial yielded, `column.rs` and `tables/` the column
//! table: schema, reader, writer, exports and docs/RUNFILE.md follow from it; `environment/keys.rs` the environment's
//! keys.

pub mod column;
pub mod diagnosis;
mod effective;
pub mod environment;
pub mod peak_source;
pub mod peaks;
pub mod question;
mod sample;
mod states;
pub mod tables;
mod targets;

pub use iolab_workload::counters::{
    Bottom, Counters, DeviceStat, Hardware, HardwareEvents, NfsIo, NoHardware, Pressure, ProcessIo,
    ResourceUse,
};
pub use iolab_workload::cpus::Cpus;
pub use iolab_workload::operation::{Moved, Operation, PerOperation};
pub use iolab_workload::operation_summary::{LatencySummary, OperationSummary};
pub use iolab_workload::outcome::{Effective, RateReport, RingFlag};
pub use iolab_workload::region_state::Region;
pub use iolab_workload::region_state::{Extents, Residency};
pub use iolab_workload::request_sizes::{RequestSizes, SizeCount};
pub use iolab_workload::series::{Interval, Series};
pub use iolab_workload::trial::Arrivals;
pub use iolab_workload::verify::{FaultKind, Faults, Verified};

use iolab_workload::trial::TrialSpec;

use std::collections::BTreeMap;

use crate::environment::{Environment, KEYS};
use iolab_workload::group::GroupSpec;
use iolab_workload::response::Response;
use iolab_workload::settings::{CellSpec, SETTINGS, Setting, Value};

pub use question::Question;
pub use sample::{
    ClientPart, LatencyOf, Part, PartId, RankActivity, RankReport, Sample, SampleLatency,
    SampleSeries,
};
pub use states::{
    ClockDomain, Ended, EndedBy, EventKind, RequestTime, RunStatus, ServedBy, TargetKind,
};
pub use tables::{FurtherTarget, GroupRow, Rank};

/// Schema version this build writes; a file with a greater one is refused.
pub const SCHEMA_VERSION: i64 = 6;
/// Oldest schema version this build reads.
pub const SCHEMA_OLDEST: i64 = 5;

/// The run: one row.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// How it stands.
    pub status: RunStatus,
    /// iolab's version.
    pub tool_version: String,
    /// RFC 3339, UTC.
    pub started_utc: String,
    /// RFC 3339, UTC; when the status last changed.
    pub ended_utc: Option<String>,
    /// The target as the user named it, made absolute.
    pub target: String,
    /// What it is.
    pub target_kind: TargetKind,
    /// Usable bytes of the target.
    pub target_bytes: u64,
    /// Seed of the plan; trial seeds derive from it.
    pub seed: u64,
    /// Which clock it was timed by.
    pub clock_domain: ClockDomain,
    /// Cost of one time stamp, ns; NaN where it is not known.
    pub clock_cost_ns: f64,
    /// Step in which time stamps grow, ns; `None` where it is not known.
    pub clock_resolution_ns: Option<f64>,
    /// `tsc` (x86-64), `cntvct` (ARM) or `clock_monotonic_raw`, and why.
    pub clock_source: String,
    /// CPU cost of one request of the null backend with latency recorded, ns: iolab's own floor; NaN where it is not known.
    pub floor_ns: f64,
}

impl Default for Run {
    /// What was measured with it is not known.
    fn default() -> Self {
        Self {
            status: RunStatus::default(),
            tool_version: String::new(),
            started_utc: String::new(),
            ended_utc: None,
            target: String::new(),
            target_kind: TargetKind::default(),
            target_bytes: 0,
            seed: 0,
            clock_domain: ClockDomain::default(),
            clock_cost_ns: f64::NAN,
            clock_resolution_ns: None,
            clock_source: String::new(),
            floor_ns: f64::NAN,
        }
    }
}

/// The experiment: one row.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ExperimentRecord {
    /// Its name.
    pub name: String,
    /// The question it asks.
    pub question: String,
    /// What it measures.
    pub response: Response,
    /// The group whose response it is; `None` for that of whole trials.
    pub response_group: Option<String>,
    /// What it is to answer besides; `None` where it only measures.
    pub asked: Option<Question>,
    /// The whole resolved definition; enough to repeat it.
    pub toml: String,
    /// Names of the factors in order; more than one level each.
    pub factors: Vec<String>,
    /// Precision goal: half-width of the median's 95 % interval over the median.
    pub precision: f64,
    /// Time budget, ns.
    pub budget_ns: u64,
    /// Fewest measured trials per cell.
    pub trials_min: u32,
    /// Most measured trials per cell.
    pub trials_max: u32,
}

/// One combination of levels, with every setting in force.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// 0-based, in the order of the definition.
    pub id: i64,
    /// The factor levels, in the order of [`ExperimentRecord::factors`], canonical text (`4KiB`, `rand`).
    pub levels: Vec<String>,
    /// What it asks for: every setting in force. Where a trial runs a program, only those of the file that it reads
    /// (`bs`, `region`, `cache`) have a meaning.
    pub spec: CellSpec,
    /// What ended the repetition; `None` while it is open.
    pub ended_by: Option<EndedBy>,
    /// What the pilot has chosen; `None` where there was none.
    pub pilot: Option<Pilot>,
}

/// What the pilot has chosen for a cell, for the blocks after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pilot {
    /// Visits per block.
    pub visits: u32,
    /// The time that ends a trial, ns, where it is shorter than that of the definition.
    pub time_ns: Option<u64>,
}

/// The verdict on one sample.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServedVerdict {
    /// Where from.
    pub served_by: ServedBy,
    /// Share of the bytes that the device carried, 0 to 1, where it is known.
    pub device_fraction: Option<f64>,
    /// Why this verdict, in a few words.
    pub reason: String,
}

impl ServedVerdict {
    /// The reason where a process or another machine answers for the bytes.
    pub const ELSEWHERE: &str = "a process or another machine answers for this file system, and what it does with the bytes is not known here";
}

/// Something that happened: a warning, an error, a choice made by measurement.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Event {
    /// RFC 3339, UTC.
    pub at_utc: String,
    /// What it is.
    pub kind: EventKind,
    /// The cell it concerns.
    pub cell: Option<i64>,
    /// What happened, in words.
    pub message: String,
}

/// A whole run file in memory, latency histograms left out.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunRecord {
    /// The run.
    pub run: Run,
    /// Environment of the host that plans.
    pub environment: Environment,
    /// Environments of further hosts.
    pub further_hosts: Vec<tables::Fact>,
    /// Further targets.
    pub further_targets: Vec<FurtherTarget>,
    /// The processes of a run across hosts; none where there is one.
    pub ranks: Vec<Rank>,
    /// The experiment.
    pub experiment: ExperimentRecord,
    /// All cells.
    pub cells: Vec<Cell>,
    /// All samples in the order of time.
    pub samples: Vec<Sample>,
    /// What each group did in those trials that have several, in the order of the samples and groups.
    pub group_samples: Vec<Sample>,
    /// What each client of a run across hosts did and saw, in the order of the samples and clients.
    pub client_samples: Vec<Sample>,
    /// Parts of those samples that have several.
    pub parts: Vec<Part>,
    /// Trials over time, in the order of the samples; none of programs. Where there are more than a million intervals,
    /// neighbouring ones are folded.
    pub series: Vec<SampleSeries>,
    /// All events in the order of time.
    pub events: Vec<Event>,
}

impl Cell {
    /// Each of its groups as a cell of its own, with the name of the group.
    pub fn groups(&self) -> impl Iterator<Item = (&str, Self)> {
        let own = |group: &GroupSpec| Self {
            spec: group.spec.clone(),
            ..self.clone()
        };
        let groups = self.spec.groups.iter();
        groups.map(move |group| (group.name.as_str(), own(group)))
    }

    /// What a trial of it is asked to do.
    pub fn trial(&self) -> &TrialSpec {
        &self.spec.trial
    }

    /// The program that a trial runs, with `{file}`, `{size}` and `{bs}` not filled in; `None` where requests are issued.
    pub fn program(&self) -> Option<String> {
        self.spec.program().map(|template| template.to_string())
    }

    /// How the intended starts of a rate are spaced; `None` in the closed loop, where there are none.
    pub fn arrivals(&self) -> Option<Arrivals> {
        self.spec.trial.rate.map(|_| self.spec.trial.arrivals)
    }

    /// Every setting with its value as far as it has an effect: what a shorthand (`workload`, `linkage`) stands for instead
    /// of it, and nothing of arrivals in the closed loop.
    pub fn in_force(&self) -> impl Iterator<Item = (&'static Setting, Value)> {
        let own = SETTINGS.iter().filter(|setting| !is_shorthand(setting));
        own.map(|setting| (setting, self.value_in_force(setting)))
    }

    /// The value of a setting as far as it has an effect.
    pub fn value_in_force(&self, setting: &Setting) -> Value {
        match setting.name {
            "command" => Value::word(self.program()),
            "arrivals" => Value::word(self.arrivals()),
            _ => setting.value(&self.spec),
        }
    }

    /// The settings that exports show, named as they name them, in the order of [`exported_settings`].
    pub fn exported(&self) -> Vec<(&'static str, serde_json::Value)> {
        let named =
            |setting: &'static Setting| (setting.column, self.value_in_force(setting).into());
        exported_settings().into_iter().map(named).collect()
    }
}

/// Whether a setting stands for others.
fn is_shorthand(setting: &Setting) -> bool {
    matches!(setting.name, "workload" | "linkage")
}

/// The settings that exports show: what carries a cell out, then the others.
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
    /// Tells runs apart: 16 hexadecimal digits from when, where and with which seed the run began. Every copy of a run file
    /// has the same.
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
        // The byte 0 ends each part.
        digest(parts.iter().flat_map(|part| part.bytes().chain([0])))
    }

    /// Whether the other record is of the same run and holds as much of it.
    pub fn is_same_run(&self, other: &Self) -> bool {
        self.id() == other.id() && self.samples.len() == other.samples.len()
    }

    /// Name of the host that planned the run; `None` in files from before it was kept.
    pub fn host(&self) -> Option<String> {
        self.environment.get(&KEYS.host_name)
    }

    /// The name of the group that a part of a sample is of; `None` where the cell has none.
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

    /// What each group did in a trial; none where it had no groups.
    pub fn groups_of(&self, sample: i64) -> &[Sample] {
        let groups = &self.group_samples;
        let first = groups.partition_point(|own| own.id < sample);
        let end = groups.partition_point(|own| own.id <= sample);
        &groups[first..end]
    }

    /// The number of the group that the experiment asks about; `None` where it asks about whole trials.
    pub fn asked_group(&self) -> Option<u32> {
        let name = self.experiment.response_group.as_deref();
        self.cells.first()?.spec.number_of(name)
    }

    /// What was measured of what the experiment asks about: the samples of whole trials, or those of one group.
    pub fn asked_samples(&self) -> impl Iterator<Item = &Sample> {
        let group = self.asked_group();
        let samples = match group {
            None => &self.samples,
            Some(_) => &self.group_samples,
        };
        let own = move |sample: &&Sample| sample.group == group.unwrap_or(0);
        samples.iter().filter(own)
    }

    /// Each cell with the trials that summaries rest on: those that succeeded and are no warm-up, in the order of time.
    pub fn measured(&self) -> impl Iterator<Item = (&Cell, Vec<&Sample>)> {
        let mut trials: BTreeMap<i64, Vec<&Sample>> = BTreeMap::new();
        for sample in self.samples.iter().filter(|s| s.is_measured()) {
            trials.entry(sample.cell).or_default().push(sample);
        }
        let mut of = move |cell: &Cell| trials.remove(&cell.id).unwrap_or_default();
        self.cells.iter().map(move |cell| (cell, of(cell)))
    }
}

/// FNV-1a with 64 bits (<http://www.isthe.com/chongo/tech/comp/fnv/>), in hexadecimal: tells texts apart, and is no proof
/// against anybody who wants two to be alike.
pub fn digest(bytes: impl IntoIterator<Item = u8>) -> String {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, step);
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn digests_are_those_of_fnv_1a() {
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
