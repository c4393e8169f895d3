//! The tables of a run file.

#[macro_use]
mod column_macros;
mod cell;
mod sample;

use std::sync::LazyLock;

use serde_json::Value;

use super::column::{Access, Column, Null, Table};
use super::{ClockDomain, Event, EventKind, ExperimentRecord, Part, Run, RunStatus, TargetKind};
use crate::column::COUNT_MAX;
use crate::{Interval, LatencyOf, Observation, Operation, PartId, PerOperation, RequestTime};
use iolab_workload::response::Response;
use iolab_workload::{Error, launchers, table};

pub use cell::{
    ANSWERS, CELL, CELL_GROUP, CellRow, DRIVE_LOG, DriveLog, GroupRow, LATENCY_OVER_TIME, LevelRow,
    PREPARATION, PreparationStep, QUESTION, QUESTION_LEVEL, QuestionRow,
};
pub use sample::{CLIENT_SAMPLE, GROUP_SAMPLE, SAMPLE, STAGES};

/// Table `run`.
pub static RUN: LazyLock<Table<Run>> = LazyLock::new(|| Table {
    name: "run",
    doc: "one row",
    columns: Vec::from(table! {
        Column::of("id", Access::number(|_: &Run| Some(1), |_, _| ())).key().doc("1");
        word!("status", Run, status, RunStatus).doc("how it stands: `running` (or cut off by a crash), `done`, `interrupted`, `failed`");
        text!("tool_version", Run, tool_version).doc("version of iolab");
        text!("started_utc", Run, started_utc).doc("when the run began");
        text!("ended_utc", Run, ended_utc?).doc("when the status last changed; NULL while it is running");
        text!("target", Run, target)
            .doc("the target as the user named it, made absolute; of a path that is not UTF-8 the readable part, and `environment` has its bytes in hexadecimal as `target_path_hex`");
        word!("target_kind", Run, target_kind, TargetKind)
            .doc("`scratch` (a file of iolab's own), `file`, `block-device`, `char-device`, `imported` (another tool measured, before), `model` (a disk that is computed)");
        whole!("target_bytes", Run, target_bytes as u64).doc("usable size of the target; of all files together where programs are run");
        whole!("seed", Run, seed as u64).doc("seed of the plan; the orders of the blocks and the seeds of the trials follow from it");
        word!("clock_domain", Run, clock_domain, ClockDomain).doc("`real`, or `virtual`: the time of a disk that is computed");
        real!("clock_cost_ns", Run, clock_cost_ns?).doc("cost of one time stamp");
        real!("clock_resolution_ns", Run, clock_resolution_ns?).doc("step in which time stamps grow: no latency is known better");
        text!("clock_source", Run, clock_source).doc("the clock that was used, and why");
        real!("floor_ns", Run, floor_ns?)
            .doc("what one request of the `null` backend costs: iolab's own share; without recording its latency when no cell does");
    }),
    constraints: &["CHECK (id = 1)"],
});

/// A further target of a run, besides the target in table `run`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FurtherTarget {
    /// From 1; 0 is the target of table `run`.
    pub id: u32,
    /// The target that the user named, as an absolute path.
    pub target: String,
    /// The kind of the target.
    pub kind: TargetKind,
    /// Usable bytes.
    pub bytes: u64,
}

/// Table `target`.
pub static TARGET: LazyLock<Table<FurtherTarget>> = LazyLock::new(|| Table {
    name: "target",
    doc: "one row per further target, where a run has several",
    columns: Vec::from(table! {
        whole!("id", FurtherTarget, id as u32).key().doc("from 1; 0 is the target of table `run`");
        text!("target", FurtherTarget, target).doc("as in table `run`");
        word!("target_kind", FurtherTarget, kind, TargetKind).doc("as in table `run`");
        whole!("target_bytes", FurtherTarget, bytes as u64).doc("its usable size");
    }),
    constraints: &[],
});

/// A process of a run across hosts, and the host that it runs on.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rank {
    /// Index from 0.
    pub id: u32,
    /// Number of its host in table `environment`.
    pub host: u32,
    /// The host's name.
    pub name: String,
}

impl Rank {
    /// The error for a request for ranks of runs without them.
    pub fn none() -> Error {
        Error::usage("no trial was carried out by several ranks").hint(concat!(
            "start iolab with ",
            launchers!(),
            " (docs/CLUSTER.md)"
        ))
    }
}

/// Table `rank`.
pub static RANK: LazyLock<Table<Rank>> = LazyLock::new(|| Table {
    name: "rank",
    doc: "one row per process of a run across hosts; none where there is one",
    columns: vec![
        whole!("id", Rank, id as u32).key().doc("from 0"),
        whole!("host_id", Rank, host as u32).doc("its host, from 0, as in table `environment`"),
        text!("host", Rank, name).doc("name of the host"),
    ],
    constraints: &[],
});

/// A row of table `environment`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fact {
    /// The host; 0 for the coordinating one.
    pub host: u32,
    /// Position of the fact among the facts of the host.
    pub position: u64,
    /// Key of the fact.
    pub key: String,
    /// Value of the fact.
    pub value: String,
}

/// Table `environment`.
pub static ENVIRONMENT: LazyLock<Table<Fact>> = LazyLock::new(|| Table {
    name: "environment",
    doc: "one row per fact",
    columns: Vec::from(table! {
        whole!("host_id", Fact, host as u32).doc("the host that it is of; 0 in a run on one host");
        whole!("position", Fact, position as u64).doc("order, from 0");
        text!("key", Fact, key).doc("what, with its unit: `memory_bytes`, `cpu_model`, `device_scheduler`");
        text!("value", Fact, value).doc("text as the system gave it; what it does not give has no row");
    }),
    constraints: &["PRIMARY KEY (host_id, position)", "UNIQUE (host_id, key)"],
});

/// Table `experiment`.
pub static EXPERIMENT: LazyLock<Table<ExperimentRecord>> = LazyLock::new(|| {
    const NAMED: &str = "as in the definition";
    const TRIALS: &str = "fewest and most measured trials per cell";
    Table {
        name: "experiment",
        doc: "one row",
        columns: Vec::from(table! {
            Column::of("id", Access::number(|_: &ExperimentRecord| Some(1), |_, _| ())).key().doc("1");
            text!("name", ExperimentRecord, name).doc(NAMED);
            text!("question", ExperimentRecord, question).doc(NAMED);
            word!("response", ExperimentRecord, response, Response)
                .doc(Response::MEANINGS);
            text!("response_group", ExperimentRecord, response_group?).doc("the group whose response it is; NULL for whole trials");
            text!("toml", ExperimentRecord, toml)
                .doc("the whole definition as it was run, overrides included; `iolab run` takes it. Finer sizes that the run has added stand in `[refined]`, with the first block that measures them");
            json_text!("factors", ExperimentRecord, factors)
                .doc("names of the factors, a JSON array in their order");
            real!("precision", ExperimentRecord, precision).doc("goal: distance of the median to the farther end of its 95 % interval, over the median")
                .within(f64::MIN_POSITIVE, 1.0 - f64::EPSILON);
            whole!("budget_ns", ExperimentRecord, budget_ns as u64).doc("time for the run");
            whole!("trials_min", ExperimentRecord, trials_min as u32).between(1, u32::MAX.into()).doc(TRIALS);
            whole!("trials_max", ExperimentRecord, trials_max as u32).between(1, u32::MAX.into()).doc(TRIALS);
        }),
        constraints: &["CHECK (id = 1)", "CHECK (trials_max >= trials_min)"],
    }
});

/// Does not compile while an operation has no column in tables `part` and `series`.
const _: fn(PerOperation<()>) = |PerOperation {
                                     read: (),
                                     write: (),
                                     sync: (),
                                     trim: (),
                                 }| ();

/// Table `part`.
pub static PART: LazyLock<Table<Part>> = LazyLock::new(|| {
    const REQUESTS: &str = "requests completed, by what they do";
    const BYTES: &str = "bytes that they read, wrote or gave back";
    Table {
        name: "part",
        doc: "one row per part of a sample, where it has several: what a group did on a rank, to a target",
        columns: Vec::from(table! {
            whole!("sample_id", Part, sample as i64).doc("the sample");
            whole!("group_id", Part, id.group as u32).doc("the group; 0 where the cell has none");
            whole!("rank_id", Part, id.rank as u32).doc("the rank; 0 is the one that plans");
            whole!("target_id", Part, id.target as u32).doc("the target; 0 is the target in table `run`");
            whole!("start_ns", Part, start_ns as u64).doc("its first worker's start, from the start of the sample");
            whole!("elapsed_ns", Part, elapsed_ns as u64).doc("its first worker's start to its last worker's end");
            whole!("read_requests", Part, done.read.requests as u64).doc(REQUESTS);
            whole!("read_bytes", Part, done.read.bytes as u64).doc(BYTES);
            whole!("write_requests", Part, done.write.requests as u64).doc(REQUESTS);
            whole!("write_bytes", Part, done.write.bytes as u64).doc(BYTES);
            whole!("sync_requests", Part, done.sync.requests as u64).doc(REQUESTS);
            whole!("trim_requests", Part, done.trim.requests as u64).doc(REQUESTS);
            whole!("trim_bytes", Part, done.trim.bytes as u64).doc(BYTES);
            whole!("errors", Part, errors as u64).doc("requests that failed");
        }),
        constraints: &[
            "PRIMARY KEY (sample_id, group_id, rank_id, target_id)",
            "FOREIGN KEY (sample_id) REFERENCES sample (id)",
        ],
    }
});

/// A row of table `latency`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LatencyRow {
    /// The sample.
    pub sample: i64,
    /// The part of the sample.
    pub part: PartId,
    /// The operation, and which time.
    pub of: LatencyOf,
    /// HdrHistogram, V2 encoding.
    pub histogram: Vec<u8>,
}

/// Table `latency`.
pub static LATENCY: LazyLock<Table<LatencyRow>> = LazyLock::new(|| {
    const PART: &str =
        "the part of it, as in table `part`; all 0 for all of them together, or the only one";
    Table {
        name: "latency",
        doc: "one row per part of a sample, operation and quantity with requests",
        columns: Vec::from(table! {
            whole!("sample_id", LatencyRow, sample as i64).doc("the sample");
            whole!("group_id", LatencyRow, part.group as u32).doc(PART);
            whole!("rank_id", LatencyRow, part.rank as u32).doc(PART);
            whole!("target_id", LatencyRow, part.target as u32).doc(PART);
            word!("operation", LatencyRow, of.operation, Operation).doc("what the requests did: `read`, `write`, `sync`, `trim`, `metadata`");
            word!("quantity", LatencyRow, of.quantity, RequestTime)
                .doc("`service`: service times; with a rate also `response`: response times, and `lateness`: how late requests were submitted");
            Column::of("histogram", Access::Bytes(|row: &LatencyRow| (&row.histogram).into()))
                .doc("in ns: HdrHistogram, V2 encoding without compression, 3 significant digits, 1 ns to 1 h");
        }),
        constraints: &[
            "PRIMARY KEY (sample_id, group_id, rank_id, target_id, operation, quantity)",
            "FOREIGN KEY (sample_id) REFERENCES sample (id)",
        ],
    }
});

/// A row of table `series`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IntervalRow {
    /// The sample.
    pub sample: i64,
    /// The interval.
    pub interval: Interval,
}

/// Table `series`.
pub static SERIES: LazyLock<Table<IntervalRow>> = LazyLock::new(|| {
    const REQUESTS: &str = "requests completed in it";
    const BYTES: &str = "bytes transferred in it";
    const TRIMS: &str = "trims completed in it, and the bytes that they covered";
    Table {
        name: "series",
        doc: "one row per interval of a sample",
        columns: Vec::from(table! {
            whole!("sample_id", IntervalRow, sample as i64).hidden().doc("the sample");
            number!("start_ns", IntervalRow, interval.start_ns).doc("from the start of the timed span; with `sample_id` the key");
            number!("length_ns", IntervalRow, interval.length_ns).doc("of the interval").between(1, COUNT_MAX);
            number!("read_requests", IntervalRow, interval.done.read.requests).doc(REQUESTS);
            number!("read_bytes", IntervalRow, interval.done.read.bytes).doc(BYTES);
            number!("write_requests", IntervalRow, interval.done.write.requests).doc(REQUESTS);
            number!("write_bytes", IntervalRow, interval.done.write.bytes).doc(BYTES);
            number!("sync_requests", IntervalRow, interval.done.sync.requests).doc("`fsync` and `fdatasync` calls completed in it, without the final one")
                .null(Null::Free);
            number!("trim_requests", IntervalRow, interval.done.trim.requests).doc(TRIMS).null(Null::Free);
            number!("trim_bytes", IntervalRow, interval.done.trim.bytes).doc(TRIMS).null(Null::Free);
            Column::of("throughput_mb_s", Access::real(|row: &IntervalRow| Some(row.interval.throughput_mb_s()), |_, _| ())).derived();
            number!("drive_millidegrees", IntervalRow, interval.drive_millidegrees?)
                .doc("highest temperature of the drive that was read in it (hwmon, once a second with `latency_over_time=true`), in thousandths of a degree Celsius");
        }),
        constraints: &[
            "PRIMARY KEY (sample_id, start_ns)",
            "FOREIGN KEY (sample_id) REFERENCES sample (id)",
        ],
    }
});

/// Table `event`.
pub static EVENT: LazyLock<Table<Event>> = LazyLock::new(|| Table {
    name: "event",
    doc: "one row per thing that happened",
    columns: Vec::from(table! {
        Column::of("id", Access::number(|_: &Event| None, |_, _| ())).null(Null::Free).key().doc("in the order of time");
        text!("at_utc", Event, at_utc).doc("when");
        word!("kind", Event, kind, EventKind)
            .doc("`note`, `warning`, `error`, `choice` (made by measurement), `resume`, `gap` (why a cell has no trial)");
        Column::of(
            "cell_id",
            Access::number(
                |event: &Event| event.cell.map(|cell| cell as u64),
                |event, n| event.cell = Some(n as i64),
            ),
        )
        .any()
        .null(Null::Free)
        .doc("the cell it concerns, or NULL");
        text!("message", Event, message).doc("in words");
    }),
    constraints: &["FOREIGN KEY (cell_id) REFERENCES cell (id)"],
});

/// Table `observation`.
pub static OBSERVATION: LazyLock<Table<Observation>> = LazyLock::new(|| Table {
    name: "observation",
    doc: "one row in a file without an experiment: what a command saw",
    columns: Vec::from(table! {
        Column::of("id", Access::number(|_: &Observation| Some(1), |_, _| ())).key().doc("1");
        Column::of("command", Access::Text(|row: &Observation| Some(row.command.as_str().into()), put_command))
            .doc("the command that saw it");
        text!("tool_version", Observation, tool_version).doc("version of iolab");
        text!("started_utc", Observation, started_utc).doc("when the observation began");
        Column::of("content", Access::Text(|row: &Observation| Some(row.content.as_str().into()), put_content))
            .doc("what it saw: a JSON object, whose fields `iolab schema COMMAND` explains");
    }),
    constraints: &["CHECK (id = 1)"],
});

/// Most bytes in the name of a command.
const COMMAND_MAX: usize = 32;

fn put_command(row: &mut Observation, text: &str) -> bool {
    let is_name = text.bytes().all(|one| matches!(one, b'a'..=b'z' | b'-'));
    text.clone_into(&mut row.command);
    is_name && (1..=COMMAND_MAX).contains(&text.len())
}

/// Reads JSON whose numbers are within the bounds of columns.
fn put_content(row: &mut Observation, text: &str) -> bool {
    text.clone_into(&mut row.content);
    serde_json::from_str(text).is_ok_and(|value| is_within(&value))
}

fn is_within(value: &Value) -> bool {
    match value {
        Value::Array(all) => all.iter().all(is_within),
        Value::Object(all) => all.values().all(is_within),
        Value::Number(number) => number.as_u64().is_none_or(|number| number <= COUNT_MAX),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}
