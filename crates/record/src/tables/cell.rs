//! Tables of the plan (cells, their groups, and the question), and the tables `preparation`, `drive_log` and
//! `latency_over_time`.

use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::Duration;

use iolab_workload::service_level::ServiceLevel;
use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::table;
use iolab_workload::trial::Rate;

use crate::column::{Access, COUNT_MAX, Column, Null, Table};
use crate::{
    Cell, EndedBy, Fit, Operation, PreparationKind, QuestionKind, RequestTime,
    SampleLatencyOverTime,
};

/// A column with the rate of a cell in bytes per second, which the column of the setting lacks.
macro_rules! byte_rate {
    ($type:ty, $($spec:ident).+) => {
        Column::of(
            "rate_bytes_per_s",
            Access::number(
                |row: &$type| row.$($spec).+.trial.rate.and_then(Rate::bytes),
                |row, bytes| row.$($spec).+.trial.rate = Some(Rate::Bytes(bytes)),
            ),
        )
        .between(1, i64::MAX as u64)
        .null(Null::Free)
        .hidden()
        .doc("the rate in bytes per second where it is given so; `rate` is NULL then")
    };
}

/// A row of table `cell`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CellRow {
    /// The cell; its levels are in the row.
    pub cell: Cell,
    /// A JSON object, factor to level.
    pub levels: String,
}

/// Table `cell`.
pub static CELL: LazyLock<Table<CellRow>> = LazyLock::new(|| {
    let settings = SETTINGS.iter().map(|setting| {
        Column::setting(
            setting,
            |row: &CellRow| &row.cell.spec,
            |row| &mut row.cell.spec,
        )
    });
    let mut columns = Vec::from(table! {
        whole!("id", CellRow, cell.id as i64).key().hidden()
            .doc("from 0, in the order of the definition; the last factor varies fastest; cells of finer sizes follow the cells of the grid");
        text!("levels", CellRow, levels).hidden().doc("a JSON object, factor to level: `{\"bs\":\"4KiB\",\"pattern\":\"rand\"}`");
    });
    // Read before the settings, which are NULL if they are named here.
    columns.push(
        Column::of("unknown_settings", Access::Text(unknown_settings, put_unknown))
            .null(Null::Free)
            .doc("names of the settings that the report of another tool does not say, separated by blanks: their columns are NULL; NULL where all are known"),
    );
    columns.extend(settings);
    columns.push(byte_rate!(CellRow, cell.spec));
    columns.extend(table! {
        word!("ended_by", CellRow, cell.ended_by?, EndedBy).doc("what ended the repetition; NULL while it is open");
    });
    Table {
        name: "cell",
        doc: "one row per combination of levels",
        columns,
        constraints: &[],
    }
});

fn unknown_settings(row: &CellRow) -> Option<Cow<'_, str>> {
    let names: Vec<&str> = row.cell.spec.unknown.iter().copied().collect();
    (!names.is_empty()).then(|| names.join(" ").into())
}

fn put_unknown(row: &mut CellRow, names: &str) -> bool {
    let all = names.split(' ').map(|name| Some(Setting::find(name)?.name));
    let all: Option<_> = all.collect();
    all.map(|all| row.cell.spec.unknown = all).is_some()
}

/// A row of table `cell_group`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GroupRow {
    /// The cell.
    pub cell: i64,
    /// From 1, in the order of the definition.
    pub id: u32,
    /// Name of the group.
    pub name: String,
    /// Number of its target; 0 is the target in table `run`.
    pub target: u32,
    /// Settings of the group.
    pub spec: CellSpec,
}

/// Table `cell_group`.
pub static CELL_GROUP: LazyLock<Table<GroupRow>> = LazyLock::new(|| {
    let settings = SETTINGS
        .iter()
        .map(|setting| Column::setting(setting, |row: &GroupRow| &row.spec, |row| &mut row.spec));
    let mut columns = Vec::from(table! {
        whole!("cell_id", GroupRow, cell as i64).doc("the cell");
        whole!("group_id", GroupRow, id as u32).doc("from 1, in the order of the definition");
        text!("name", GroupRow, name).doc("its name");
        whole!("target_id", GroupRow, target as u32).doc("the target that it works on; 0 is the target in table `run`");
    });
    columns.extend(settings);
    columns.push(byte_rate!(GroupRow, spec));
    Table {
        name: "cell_group",
        doc: "one row per group of workers, where a trial has several",
        columns,
        constraints: &[
            "PRIMARY KEY (cell_id, group_id)",
            "FOREIGN KEY (cell_id) REFERENCES cell (id)",
        ],
    }
});

/// A row of table `question`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct QuestionRow {
    /// The kind of the question.
    pub kind: QuestionKind,
    /// The requirement; `None` for a question of the user.
    pub fit: Option<Fit>,
}

/// The possible answers.
pub const ANSWERS: &[&str] = &["yes", "no", "cannot tell"];

/// Table `question`.
pub static QUESTION: LazyLock<Table<QuestionRow>> = LazyLock::new(|| Table {
    name: "question",
    doc: "one row where service levels are asked about (`fit`, `--slo`)",
    columns: Vec::from(table! {
        Column::of("id", Access::number(|_: &QuestionRow| Some(1), |_, _| ())).key().doc("1");
        word!("kind", QuestionRow, kind, QuestionKind)
            .doc("`cells`: whether the levels hold in every cell (`--slo` with rates); `limit`: up to which rate (`--slo`); `fit`: whether they hold in a workload (`iolab fit`)");
        Column::of("answer", Access::Text(|_: &QuestionRow| None, |_, _| true)).null(Null::Free).one_of(ANSWERS)
            .doc("`yes`, `no` or `cannot tell`: what the run answered when it was done; NULL before. Of `limit` it is `yes` where the limit was found; of `fit` it is about the run's own workload. For queries only: iolab never reads it, and judges the trials each time");
        text!("fit_id", QuestionRow, fit?.id).doc("the runs of all workloads of one `iolab fit` share it; NULL for other questions, like the next ones");
        text!("requirement", QuestionRow, fit?.requirement).doc("name of the requirement");
        text!("workload", QuestionRow, fit?.workload).doc("the workload that the run is of");
        json_text!("workloads", QuestionRow, fit?.workloads).doc("names of all workloads, a JSON array");
        Column::of(
            "hold_ns",
            Access::number(
                |row: &QuestionRow| {
                    let hold = row.fit.as_ref()?.hold;
                    Some(u64::try_from(hold.as_nanos()).unwrap_or(u64::MAX))
                },
                |row, ns| row.fit.get_or_insert_default().hold = Duration::from_nanos(ns),
            ),
        )
        .null(Null::Account)
        .doc("how long each workload loads the storage");
        text!("not_covered", QuestionRow, fit?.not).doc("what the answer does not cover");
        json_text!("limits", QuestionRow, fit?.limits).doc("what else it does not cover on this target, a JSON array");
    }),
    constraints: &["CHECK (id = 1)"],
});

/// A row of table `question_level`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LevelRow {
    /// Index from 0, in the order asked.
    pub id: u32,
    /// The text of the [`iolab_workload::service_level::ServiceLevel`].
    pub level: String,
    /// Source of the level.
    pub source: String,
    /// The wording of the source.
    pub wording: String,
    /// The change to make if the level does not hold.
    pub remedy: String,
}

/// Table `question_level`.
pub static QUESTION_LEVEL: LazyLock<Table<LevelRow>> = LazyLock::new(|| Table {
    name: "question_level",
    doc: "one row per level of the question",
    columns: Vec::from(table! {
        whole!("id", LevelRow, id as u32).key().doc("from 0, in the order in which they were asked");
        Column::of(
            "level",
            Access::Text(
                |row: &LevelRow| Some(row.level.as_str().into()),
                |row, text| {
                    text.clone_into(&mut row.level);
                    text.parse::<ServiceLevel>().is_ok()
                },
            ),
        )
        .doc("as `--slo` takes it: `p99<2ms`, `syncs.p99<10ms`, `iops>500`");
        text!("source", LevelRow, source).doc("where the level is documented, or that it is not; empty for a level of `--slo`, like the next two");
        text!("wording", LevelRow, wording).doc("the wording there; empty where it gives none");
        text!("remedy", LevelRow, remedy).doc("what would make a no a yes");
    }),
    constraints: &[],
});

/// Counts of a drive's own log, since it was made or over a trial (a row of table `drive_log`), for all programs, partitions and
/// namespaces. `None` for a count that the drive lacks, or that went back.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriveLog {
    /// The sample.
    pub sample: i64,
    /// Name of its controller.
    pub drive: String,
    /// Bytes that hosts read from it, rounded to [`DriveLog::UNIT`].
    pub host_read_bytes: Option<u64>,
    /// Bytes that hosts wrote to it, rounded likewise.
    pub host_write_bytes: Option<u64>,
    /// Bytes written to its flash memory.
    pub media_write_bytes: Option<u64>,
    /// Times that it throttled itself with little effect on performance.
    pub light_throttles: Option<u64>,
    /// Times that it throttled itself whatever the effect.
    pub heavy_throttles: Option<u64>,
    /// Time of the first kind of throttling, s.
    pub light_throttle_s: Option<u64>,
    /// Time of the second kind of throttling, s.
    pub heavy_throttle_s: Option<u64>,
    /// Times that it throttled itself, by the extended log.
    pub throttle_events: Option<u64>,
    /// Time above its warning temperature, min.
    pub warning_min: Option<u64>,
    /// Time above its critical temperature, min.
    pub critical_min: Option<u64>,
    /// Temperature before the trial, thousandths of a degree Celsius.
    pub before_millidegrees: Option<u64>,
    /// Temperature after the trial, thousandths of a degree Celsius.
    pub after_millidegrees: Option<u64>,
}

impl DriveLog {
    /// Unit of the bytes of hosts, bytes.
    pub const UNIT: u64 = 1000 * 512;

    /// Counts since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let counted = |of: fn(&Self) -> Option<u64>| {
            let since = of(self)?.checked_sub(of(earlier)?)?;
            (since <= COUNT_MAX).then_some(since)
        };
        Self {
            sample: self.sample,
            drive: self.drive.clone(),
            host_read_bytes: counted(|log| log.host_read_bytes),
            host_write_bytes: counted(|log| log.host_write_bytes),
            media_write_bytes: counted(|log| log.media_write_bytes),
            light_throttles: counted(|log| log.light_throttles),
            heavy_throttles: counted(|log| log.heavy_throttles),
            light_throttle_s: counted(|log| log.light_throttle_s),
            heavy_throttle_s: counted(|log| log.heavy_throttle_s),
            throttle_events: counted(|log| log.throttle_events),
            warning_min: counted(|log| log.warning_min),
            critical_min: counted(|log| log.critical_min),
            before_millidegrees: earlier.after_millidegrees,
            after_millidegrees: self.after_millidegrees,
        }
    }

    /// Time for which it throttled itself, ns; 0 if it counts none.
    pub fn throttled_ns(&self) -> u64 {
        let parts = [self.light_throttle_s, self.heavy_throttle_s];
        let seconds = parts.into_iter().flatten().fold(0, u64::saturating_add);
        seconds.saturating_mul(1_000_000_000)
    }

    /// Whether counts of throttling, which every drive has, are missing or went back.
    pub fn lacks_throttling(&self) -> bool {
        let seconds = [self.light_throttle_s, self.heavy_throttle_s];
        let times = [self.light_throttles, self.heavy_throttles];
        seconds
            .into_iter()
            .chain(times)
            .any(|count| count.is_none())
    }

    /// Whether a count of written bytes that the drive has is missing or went back.
    pub fn lacks_writes(&self) -> bool {
        let is_extended = self.throttle_events.is_some();
        self.host_write_bytes.is_none() || (is_extended && self.media_write_bytes.is_none())
    }

    /// Times that it throttled itself; 0 if it counts none.
    pub fn throttles(&self) -> u64 {
        let levels = [self.light_throttles, self.heavy_throttles];
        let levels = levels.into_iter().flatten().fold(0, u64::saturating_add);
        levels.max(self.throttle_events.unwrap_or(0))
    }
}

/// Table `drive_log`.
pub static DRIVE_LOG: LazyLock<Table<DriveLog>> = LazyLock::new(|| {
    const HOSTS: &str = "bytes that hosts read and wrote, of all programs, partitions and namespaces; the drive rounds them to 512,000";
    const TIMES: &str =
        "times that it throttled itself with little effect on performance, and whatever the effect";
    const SECONDS: &str = "seconds of both kinds of throttling";
    const MINUTES: &str = "minutes above its warning and its critical temperature";
    const HEAT: &str =
        "its temperature before and after the trial, in thousandths of a degree Celsius";
    Table {
        name: "drive_log",
        doc: "one row per sample and NVMe drive whose log could be read (root): what the drive counted from before the trial to after it; NULL where it does not count, or the count went back",
        columns: Vec::from(table! {
            whole!("sample_id", DriveLog, sample as i64).doc("the sample");
            text!("drive", DriveLog, drive).doc("name of its controller: `nvme0`");
            number!("host_read_bytes", DriveLog, host_read_bytes?).doc(HOSTS);
            number!("host_write_bytes", DriveLog, host_write_bytes?).doc(HOSTS);
            number!("media_write_bytes", DriveLog, media_write_bytes?).doc("bytes written to its flash memory (log page C0h of the Open Compute Project)");
            number!("light_throttles", DriveLog, light_throttles?).doc(TIMES);
            number!("heavy_throttles", DriveLog, heavy_throttles?).doc(TIMES);
            number!("light_throttle_s", DriveLog, light_throttle_s?).doc(SECONDS);
            number!("heavy_throttle_s", DriveLog, heavy_throttle_s?).doc(SECONDS);
            number!("throttle_events", DriveLog, throttle_events?).doc("times that it throttled itself, by page C0h, which counts to 255");
            number!("warning_min", DriveLog, warning_min?).doc(MINUTES);
            number!("critical_min", DriveLog, critical_min?).doc(MINUTES);
            number!("before_millidegrees", DriveLog, before_millidegrees?).doc(HEAT);
            number!("after_millidegrees", DriveLog, after_millidegrees?).doc(HEAT);
        }),
        constraints: &[
            "PRIMARY KEY (sample_id, drive)",
            "FOREIGN KEY (sample_id) REFERENCES sample (id)",
        ],
    }
});

/// A row of table `preparation`: a pass or a round over a target before the first trial of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PreparationStep {
    /// When it ended, RFC 3339, UTC.
    pub at_utc: String,
    /// The target as the plan names it; `None` for the only one.
    pub target: Option<String>,
    /// Kind of the step.
    pub kind: PreparationKind,
    /// Number of this step among the steps of its kind, target and session, from 1.
    pub number: u32,
    /// Whether it was completed; `false` if the target refuses trims or cannot be purged, it failed, or the user interrupted it.
    pub ok: bool,
    /// Size of its requests, of which the last one may be shorter, bytes; `None` for a purge and in files older than this
    /// column.
    pub bs: Option<u64>,
    /// Requests completed.
    pub requests: u64,
    /// Bytes written, trimmed or purged.
    pub bytes: u64,
    /// First worker's start to last worker's end, ns; the sum of both if a shorter last request follows.
    pub elapsed_ns: u64,
}

impl PreparationStep {
    /// Requests per second; 0 if it took no time.
    pub fn iops(&self) -> f64 {
        match self.elapsed_ns {
            0 => 0.0,
            ns => self.requests as f64 * 1e9 / ns as f64,
        }
    }
}

/// Table `preparation`.
pub static PREPARATION: LazyLock<Table<PreparationStep>> = LazyLock::new(|| Table {
    name: "preparation",
    doc: "one row per pass or round over a target before the first trial (`precondition`); a resumed run prepares its targets again",
    columns: Vec::from(table! {
        Column::of("id", Access::number(|_: &PreparationStep| None, |_, _| ())).null(Null::Free).key().doc("in the order of time");
        text!("at_utc", PreparationStep, at_utc).doc("when it ended");
        text!("target", PreparationStep, target?).doc("the target as the plan names it; NULL for the only one");
        word!("kind", PreparationStep, kind, PreparationKind)
            .doc("`purge`: all of the device is purged, by one command; `trim`, `seq`, `rand`: a pass that trims, or writes sequentially or randomly; `round`: random writes for a time, until rounds are steady");
        whole!("number", PreparationStep, number as u32).doc("from 1 among the steps of its kind, target and session");
        flag!("ok", PreparationStep, ok)
            .doc("1, or 0 where the target refuses trims or cannot be purged, the step failed, or the user interrupted it");
        number!("bs", PreparationStep, bs?).doc("size of its requests, NULL for a purge; a shorter one follows if the range is not a multiple")
            .between(1, i64::MAX as u64);
        whole!("requests", PreparationStep, requests as u64).doc("requests completed");
        whole!("bytes", PreparationStep, bytes as u64).doc("bytes written, trimmed or purged");
        whole!("elapsed_ns", PreparationStep, elapsed_ns as u64)
            .doc("its first worker's start to its last worker's end; a shorter last request counts its own");
    }),
    constraints: &[],
});

/// Table `latency_over_time`.
pub static LATENCY_OVER_TIME: LazyLock<Table<SampleLatencyOverTime>> = LazyLock::new(|| Table {
    name: "latency_over_time",
    doc: "one row per operation of a sample, or of each of its groups, with `latency_over_time=true`",
    columns: Vec::from(table! {
        whole!("sample_id", SampleLatencyOverTime, sample as i64).doc("the sample");
        whole!("group_id", SampleLatencyOverTime, group as u32).doc("the group; 0 where the cell has none");
        word!("operation", SampleLatencyOverTime, operation, Operation).doc("what the requests did: `read`, `write`, `sync`, `trim`");
        word!("quantity", SampleLatencyOverTime, quantity, RequestTime)
            .doc("`response`: response times, of requests at a rate; else `service`: service times");
        whole!("interval_ns", SampleLatencyOverTime, latency.interval_ns as u64).between(1, COUNT_MAX)
            .doc("length of every interval but the last");
        whole!("span_ns", SampleLatencyOverTime, latency.span_ns as u64).between(0, COUNT_MAX)
            .doc("end of the last interval, from the start of the timed span");
        Column::of("intervals", Access::Bytes(|row: &SampleLatencyOverTime| row.latency.encode().into()))
            .doc("a histogram per interval, encoded as below");
    }),
    constraints: &[
        "PRIMARY KEY (sample_id, group_id, operation)",
        "FOREIGN KEY (sample_id) REFERENCES sample (id)",
    ],
});
