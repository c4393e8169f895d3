//! Rows of samples: one per trial, and behind it one per group where it had several.

use std::borrow::Cow;

use iolab_analysis::answer::RunAnswer;
use iolab_analysis::runs::RunName;
use iolab_record::tables::SAMPLE;
use iolab_record::{Cell, RunRecord, Sample};
use iolab_workload::group::ALL;
use serde_json::Value;

use super::{Exported, answer_column, level_fields, run_columns, setting_columns};
use crate::data_column::{DataColumn, row_schema};
use crate::document_header::LEVEL;
use crate::rows::Field;

/// What the columns of one row are computed from.
pub(crate) struct ExportedSample<'a> {
    name: &'a RunName,
    answer: Option<&'a RunAnswer>,
    record: &'a RunRecord,
    /// The cell; of a row of a group with the settings of the group.
    cell: Option<Cow<'a, Cell>>,
    /// The group, or all of them, where the cell has several.
    group: Option<&'a str>,
    sample: &'a Sample,
    /// The targets, with commas between.
    targets: String,
    /// What kinds these are of, each once.
    kinds: String,
}

/// What is known of all groups of a trial together only.
const OF_ALL_GROUPS: [&str; 3] = ["served_by", "device_fraction", "served_by_reason"];

impl<'a> ExportedSample<'a> {
    fn new(
        (name, record, answer): &'a Exported<'a>,
        cell: Option<&'a Cell>,
        sample: &'a Sample,
    ) -> Self {
        let groups = cell.map_or(&[][..], |cell| &cell.spec.groups);
        let group = groups.get((sample.group as usize).wrapping_sub(1));
        let numbers = match (group, cell) {
            (Some(group), _) => vec![record.target_number(group.spec.target.as_ref())],
            (None, Some(cell)) => record.targets_of(cell),
            (None, None) => vec![0],
        };
        let (targets, kinds) = named_targets(record, &numbers);
        let of_group = group.zip(cell).map(|(group, cell)| Cell {
            spec: group.spec.clone(),
            ..cell.clone()
        });
        Self {
            name,
            answer: *answer,
            record,
            cell: of_group.map(Cow::Owned).or(cell.map(Cow::Borrowed)),
            group: (!groups.is_empty()).then(|| group.map_or(ALL, |group| &group.name)),
            sample,
            targets,
            kinds,
        }
    }
}

impl ExportedSample<'_> {
    /// Whether the origin of its bytes is known only together with that of other groups.
    fn shares_origin(&self) -> bool {
        let is_one = self.group.is_some_and(|group| group != ALL);
        let running = self.record.groups_of(self.sample.id).len();
        is_one && running > 1 && !self.sample.verdict.served_by.holds_for_parts()
    }
}

/// The columns of the rows: those before the levels of the factors, and those behind them.
pub(crate) struct Columns<'a> {
    before: Vec<DataColumn<'a, ExportedSample<'a>>>,
    behind: Vec<DataColumn<'a, ExportedSample<'a>>>,
}

/// The columns of the rows of samples.
pub(crate) fn columns<'a>() -> Columns<'a> {
    let mut before = run_columns(|row: &ExportedSample<'_>| row.name);
    before.extend([
        answer_column(
            |row: &ExportedSample<'_>| row.answer,
            |row| row.answer.is_some(),
        ),
        DataColumn::text(
            "experiment",
            "name of the experiment",
            |row: &ExportedSample<'_>| Some(&row.record.experiment.name),
        )
        .known(),
        DataColumn::text(
            "target",
            "the targets that the trial read or wrote, with commas between",
            |row: &ExportedSample<'_>| Some(row.targets.clone()),
        )
        .known(),
        DataColumn::text(
            "target_kind",
            "what kinds these are of, each once",
            |row: &ExportedSample<'_>| Some(row.kinds.clone()),
        )
        .known(),
        DataColumn::whole(
            "sample",
            "id of the trial in its run file",
            |row: &ExportedSample<'_>| Some(row.sample.id),
        )
        .known(),
        DataColumn::whole(
            "cell",
            "id of the cell in its run file, as in `table`",
            |row: &ExportedSample<'_>| Some(row.sample.cell),
        )
        .known(),
    ]);
    let mut behind = vec![
        DataColumn::text(
            "group",
            "group of workers that the row is of; `all` for the whole trial",
            |row: &ExportedSample<'_>| row.group,
        )
        .only_of(|row| row.group.is_some()),
    ];
    behind.extend(setting_columns(|row: &ExportedSample<'_>| {
        row.cell.as_deref()
    }));
    let shown = SAMPLE.columns.iter().filter(|column| column.exported);
    behind.extend(shown.map(|column| {
        let own = DataColumn::stored(column, |row: &ExportedSample<'_>| row.sample);
        match OF_ALL_GROUPS.contains(&column.name) {
            true => own.null_where(ExportedSample::shares_origin),
            false => own,
        }
    }));
    Columns { before, behind }
}

/// The rows of a run: the sample of each trial, and behind it what each group did where it had several.
pub(crate) fn rows<'a>(
    columns: &Columns<'a>,
    run: &'a Exported<'a>,
) -> impl Iterator<Item = Vec<Field>> {
    let (_, record, _) = run;
    record.samples.iter().flat_map(move |sample| {
        let cell = record.cells.iter().find(|c| c.id == sample.cell);
        let all = std::iter::once(sample).chain(record.groups_of(sample.id));
        all.map(move |sample| fields(columns, &ExportedSample::new(run, cell, sample)))
    })
}

fn fields<'a>(columns: &Columns<'a>, row: &ExportedSample<'a>) -> Vec<Field> {
    let factors = &row.record.experiment.factors;
    let mut fields: Vec<Field> = columns.before.iter().filter_map(|c| c.field(row)).collect();
    fields.extend(row.cell.iter().flat_map(|cell| level_fields(factors, cell)));
    fields.extend(columns.behind.iter().filter_map(|c| c.field(row)));
    fields
}

/// What JSON Schema says of a row.
pub(crate) fn schema() -> Value {
    let Columns { mut before, behind } = columns();
    before.extend(behind);
    row_schema(&before, &[("level_", LEVEL)])
}

/// The targets of these numbers, and what kinds they are of, each once.
fn named_targets(record: &RunRecord, numbers: &[usize]) -> (String, String) {
    let (mut targets, mut kinds): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for number in numbers {
        let further = number.checked_sub(1);
        let further = further.and_then(|number| record.further_targets.get(number));
        let (target, kind) = match further {
            Some(further) => (&further.target, further.kind.name()),
            None => (&record.run.target, record.run.target_kind.name()),
        };
        targets.push(target);
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    (targets.join(", "), kinds.join(", "))
}
