//! Rows of answers: one per level that a run was asked about, or one for a search.

use iolab_analysis::analysed_run::{AnswerBasis, RunAnswer};
use iolab_analysis::fitness::{Answer, Judged, LevelAnswer, UnseenStalls};
use iolab_analysis::runs::RunName;
use iolab_analysis::slo::RateAnswer;
use iolab_record::RunRecord;
use iolab_record::question::{Asked, Fit, Question, QuestionKind};
use serde_json::Value;

use crate::data_column::{
    DataColumn, DataRows, Exported, IOLAB_VERSION, RunRows, SCHEMA, row_schema, run_columns,
};
use crate::fitness::{unit, why};

/// Data of one row: of a level, or of a search.
pub(super) struct AnswerRow<'a> {
    name: &'a RunName,
    record: &'a RunRecord,
    question: &'a Question,
    answer: &'a RunAnswer,
    /// The cell in words; empty if there is only one.
    cell: &'a str,
    /// The level, or all levels of a search.
    asked: String,
    unit: &'static str,
    measured: Option<f64>,
    fails: Option<f64>,
    unseen: Option<UnseenStalls>,
    /// The answer to a level; `None` for a search.
    level: Option<&'a LevelAnswer>,
}

impl<'a> AnswerRow<'a> {
    fn fit(&self) -> Option<&'a Fit> {
        match &self.question.of {
            Asked::Fit(fit) => Some(fit),
            Asked::Cells | Asked::Limit => None,
        }
    }

    fn judged(&self) -> Option<&'a Judged> {
        self.level.map(|level| &level.judged)
    }
}

/// All columns; the run's own come first.
fn columns<'a>() -> Vec<DataColumn<'a, AnswerRow<'a>>> {
    let mut columns = run_columns(|row: &AnswerRow<'_>| row.name);
    columns.extend(question_columns());
    columns.extend(measured_columns());
    columns.extend(level_columns());
    columns
}

/// Columns that the rows of one run share.
fn question_columns<'a>() -> [DataColumn<'a, AnswerRow<'a>>; 9] {
    type Row<'a> = AnswerRow<'a>;
    [
        DataColumn::whole(
            "schema",
            "version of this schema: it rises where a name vanishes or changes its meaning, not where one is added",
            |_: &Row<'a>| Some(SCHEMA),
        )
        .known(),
        DataColumn::text(
            "iolab_version",
            "version of iolab that wrote this",
            |_: &Row<'a>| Some(IOLAB_VERSION),
        )
        .known(),
        DataColumn::text("experiment", "name of the experiment", |row: &Row<'a>| {
            Some(&row.record.experiment.name)
        })
        .known(),
        DataColumn::text(
            "kind",
            "`fit`, `cells` (`--slo` with rates) or `limit` (`--slo`: up to which rate)",
            |row: &Row<'a>| Some(row.question.kind().name()),
        )
        .one_of(QuestionKind::NAMES)
        .known(),
        DataColumn::flag(
            "complete",
            "whether the run measured its whole plan; otherwise its answer is `cannot tell`",
            |row: &Row<'a>| Some(row.answer.is_complete()),
        )
        .known(),
        DataColumn::text(
            "answer",
            "answer of the run; of a search `yes` where it found the limit",
            |row: &Row<'a>| Some(row.answer.answer().name()),
        )
        .one_of(Answer::NAMES)
        .known(),
        DataColumn::text(
            "fit_id",
            "of `fit`: what the runs of one answer share",
            |row: &Row<'a>| row.fit().map(|fit| &fit.id),
        ),
        DataColumn::text(
            "requirement",
            "of `fit`: name of the requirement",
            |row: &Row<'a>| row.fit().map(|fit| &fit.requirement),
        ),
        DataColumn::text(
            "workload",
            "of `fit`: the workload that the run is of",
            |row: &Row<'a>| row.fit().map(|fit| &fit.workload),
        ),
    ]
}

/// Columns on the question and its result, for a level or for a search.
fn measured_columns<'a>() -> [DataColumn<'a, AnswerRow<'a>>; 8] {
    type Row<'a> = AnswerRow<'a>;
    [
        DataColumn::text(
            "cell",
            "the cell in words; empty where there is one only",
            |row: &Row<'a>| Some(row.cell),
        )
        .known(),
        DataColumn::text(
            "level",
            "the level as it was asked; of a search all of them",
            |row: &Row<'a>| Some(row.asked.clone()),
        )
        .known(),
        DataColumn::text(
            "unit",
            "unit of `measured`, `low`, `high` and `limit`: `ns`, `1/s` or `MB/s`",
            |row: &Row<'a>| Some(row.unit),
        )
        .known(),
        DataColumn::number(
            "measured",
            "the measured quantity; of a search the highest rate at which the levels are shown to hold",
            |row: &Row<'a>| row.measured,
        ),
        DataColumn::number(
            "fails",
            "of a search the lowest higher rate at which a level is shown to fail; null otherwise",
            |row: &Row<'a>| row.fails,
        ),
        DataColumn::number(
            "low",
            "lower end of its 95 % interval; null for a search",
            |row: &Row<'a>| row.judged()?.low,
        ),
        DataColumn::number(
            "high",
            "upper end of its 95 % interval, as `low`; null where too few requests were measured for one",
            |row: &Row<'a>| row.judged()?.high,
        ),
        DataColumn::number(
            "unseen_stalls",
            "of a `yes` of a complete run, the greatest share of trials that can miss the level by what the measured ones show, with 95 % confidence; of a search of those at the highest rate that holds; null otherwise, and where so few stalls cannot make the level fail",
            |row: &Row<'a>| Some(row.unseen.filter(|_| row.answer.is_complete())?.share),
        ),
    ]
}

/// Columns of levels, which a search lacks.
fn level_columns<'a>() -> [DataColumn<'a, AnswerRow<'a>>; 6] {
    type Row<'a> = AnswerRow<'a>;
    let columns = [
        DataColumn::number("limit", "bound of the level", |row: &Row<'a>| {
            Some(row.judged()?.level.limit())
        }),
        DataColumn::whole("requests", "requests measured", |row: &Row<'a>| {
            Some(row.judged()?.requests)
        }),
        DataColumn::whole("trials", "trials measured", |row: &Row<'a>| {
            Some(row.judged()?.trials)
        }),
        DataColumn::text(
            "level_answer",
            "whether the level holds",
            |row: &Row<'a>| Some(row.level?.answer().name()),
        )
        .one_of(Answer::NAMES),
        DataColumn::text(
            "as_measured",
            "whether it holds before any doubt",
            |row: &Row<'a>| Some(row.judged()?.answer.name()),
        )
        .one_of(Answer::NAMES),
        DataColumn::text(
            "why",
            "why `as_measured` is `cannot tell`; empty otherwise",
            |row: &Row<'a>| row.judged().map(why),
        ),
    ];
    columns.map(|column| column.only_of(|row| row.level.is_some()))
}

/// The rows of some runs; a run without a question has none.
pub(super) fn rows<'a>(runs: &'a [Exported<'a>]) -> DataRows<'a, AnswerRow<'a>> {
    let of_run = |run: &'a Exported<'a>| RunRows {
        places: vec![Vec::new()],
        rows: rows_of_run(run).into_iter().map(|row| (0, row)).collect(),
    };
    DataRows::new(columns(), runs.iter().map(of_run).collect())
}

fn rows_of_run<'a>((name, record, answer): &'a Exported<'a>) -> Vec<AnswerRow<'a>> {
    let (Some(question), Some(answer)) = (&record.experiment.asked, answer) else {
        return Vec::new();
    };
    let of_level = |cell: &'a str, level: &'a LevelAnswer| AnswerRow {
        name,
        record,
        question,
        answer,
        cell,
        asked: level.judged.level.to_string(),
        unit: unit(&level.judged.level),
        measured: level.judged.estimate,
        fails: None,
        unseen: level.unseen_stalls(),
        level: Some(level),
    };
    match &answer.found {
        AnswerBasis::Cells(found) => {
            let levels = found.cells.iter().flat_map(|cell| {
                let levels = cell.levels.iter();
                levels.map(|level| of_level(&cell.cell, level))
            });
            levels.collect()
        }
        AnswerBasis::Workload(found) => {
            let levels = found.levels.iter();
            levels.map(|level| of_level("", level)).collect()
        }
        AnswerBasis::Limit(found) => {
            let rate = |end: &Option<RateAnswer>| end.as_ref().map(|end| end.rate as f64);
            vec![AnswerRow {
                name,
                record,
                question,
                answer,
                cell: "",
                asked: found.levels.to_string(),
                unit: "1/s",
                measured: rate(&found.holds),
                fails: rate(&found.fails),
                unseen: found.unseen_stalls(),
                level: None,
            }]
        }
    }
}

/// JSON schema of a row.
pub(crate) fn schema() -> Value {
    row_schema(&columns(), &[])
}
