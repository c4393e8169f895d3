//! Tables of the plan: cells, their groups, and the question.

use std::borrow::Cow;
use std::sync::LazyLock;
use std::time::Duration;

use crate::column::{Access, Column, Null, Table};
use crate::question::{Fit, QuestionKind};
use crate::{Cell, EndedBy};
use iolab_workload::response::ServiceLevel;
use iolab_workload::settings::{CellSpec, SETTINGS, Setting};
use iolab_workload::table;
use iolab_workload::trial::Rate;

/// A column with the rate of a cell in bytes per second, which the column of the setting lacks.
macro_rules! byte_rate {
    ($type:ty, $($spec:ident).+) => {
        Column::of(
            "rate_bytes_per_s",
            Access::Number(
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
        Column::of("id", Access::Number(|_: &QuestionRow| Some(1), |_, _| ())).key().doc("1");
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
            Access::Number(
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
    /// The text of the [`iolab_workload::response::ServiceLevel`].
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
