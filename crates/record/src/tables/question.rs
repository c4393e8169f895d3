//! Tables of the question of a run: `question` and `question_level`.

use std::sync::LazyLock;
use std::time::Duration;

use iolab_workload::service_level::ServiceLevel;

use crate::column::{Column, Null, Table};
use crate::question::{Fit, QuestionKind};
use iolab_workload::table;

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
pub static QUESTION: LazyLock<Table<QuestionRow>> = LazyLock::new(|| {
    Table {
    name: "question",
    doc: "one row where service levels are asked about (`fit`, `--slo`)",
    exported: false,
    columns: table! {
        Column::number("id", |_: &QuestionRow| Some(1), |_, _| ()).key().doc("1");
        word!("kind", QuestionRow, kind, QuestionKind)
            .doc("`cells`: whether the levels hold in every cell (`--slo` with rates); `limit`: up to which rate (`--slo`); `fit`: whether they hold in a workload (`iolab fit`)");
        Column::text("answer", |_: &QuestionRow| None, |_, _| true).null(Null::Free).one_of(ANSWERS)
            .doc("`yes`, `no` or `cannot tell`: what the run answered when it was done; NULL before. Of `limit` it is `yes` where the limit was found; of `fit` it is about the run's own workload. For queries only: iolab never reads it, and judges the trials each time");
        text!("fit_id", QuestionRow, fit?.id).doc("the runs of all workloads of one `iolab fit` share it; NULL for other questions, like the next ones");
        text!("requirement", QuestionRow, fit?.requirement).doc("name of the requirement");
        text!("workload", QuestionRow, fit?.workload).doc("the workload that the run is of");
        json_text!("workloads", QuestionRow, fit?.workloads).doc("names of all workloads, a JSON array");
        Column::number(
            "hold_ns",
            |row: &QuestionRow| {
                let hold = row.fit.as_ref()?.hold;
                Some(u64::try_from(hold.as_nanos()).unwrap_or(u64::MAX))
            },
            |row, ns| row.fit.get_or_insert_default().hold = Duration::from_nanos(ns),
        )
        .null(Null::Account)
        .doc("how long each workload loads the storage");
        text!("not_covered", QuestionRow, fit?.not).doc("what the answer does not cover");
        json_text!("limits", QuestionRow, fit?.limits).doc("what else it does not cover on this target, a JSON array");
    }
    .into_iter()
    .collect(),
    constraints: &["CHECK (id = 1)"],
}
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
pub static QUESTION_LEVEL: LazyLock<Table<LevelRow>> = LazyLock::new(|| {
    Table {
    name: "question_level",
    doc: "one row per level of the question",
    exported: false,
    columns: vec![
        whole!("id", LevelRow, id as u32).key().doc("from 0, in the order in which they were asked"),
        Column::text(
            "level",
            |row: &LevelRow| Some(row.level.as_str().into()),
            |row, text| {
                text.clone_into(&mut row.level);
                text.parse::<ServiceLevel>().is_ok()
            },
        )
        .doc("as `--slo` takes it: `p99<2ms`, `syncs.p99<10ms`, `iops>500`"),
        text!("source", LevelRow, source).doc("where the level is documented, or that it is not; empty for a level of `--slo`, like the next two"),
        text!("wording", LevelRow, wording).doc("the wording there; empty where it gives none"),
        text!("remedy", LevelRow, remedy).doc("what would make a no a yes"),
    ]
    .into_iter()
    .collect(),
    constraints: &[],
}
});
