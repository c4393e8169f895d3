//! Columns of the place of a row: its run, its targets, its cell with levels and settings, and its group.

use std::borrow::Cow;

use iolab_analysis::analysed_run::RunAnswer;
use iolab_analysis::fitness::Answer;
use iolab_analysis::runs::RunName;
use iolab_record::{Cell, RunRecord, exported_settings};
use iolab_workload::group::ALL;
use serde_json::Value;

use crate::data_column::{DataColumn, InSchema, LEVEL, level_fields, run_columns, schema_of};
use crate::rows::Field;

/// Source of the columns of a place.
pub(super) struct Place<'a> {
    pub(super) name: &'a RunName,
    pub(super) answer: Option<&'a RunAnswer>,
    pub(super) record: &'a RunRecord,
    /// The cell; in the row of a group with the settings of that group.
    cell: Option<Cow<'a, Cell>>,
    /// The group, or [`ALL`] for the whole cell; `None` if the cell has no groups.
    group: Option<&'a str>,
    /// Names of the targets, separated by commas.
    targets: String,
    /// Kinds of these targets, each once.
    kinds: String,
}

impl<'a> Place<'a> {
    /// The place of a group of a cell, by the number of the group from 1, or of the whole cell.
    pub(super) fn new(
        (name, record, answer): (&'a RunName, &'a RunRecord, Option<&'a RunAnswer>),
        cell: Option<&'a Cell>,
        group: u32,
    ) -> Self {
        let groups = cell.map_or(&[][..], |cell| &cell.spec.groups);
        let group = groups.get((group as usize).wrapping_sub(1));
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
            answer,
            record,
            cell: of_group.map(Cow::Owned).or(cell.map(Cow::Borrowed)),
            group: (!groups.is_empty()).then(|| group.map_or(ALL, |group| &group.name)),
            targets,
            kinds,
        }
    }

    /// Values of the place, with the levels of the factors between its other columns.
    pub(super) fn fields(&self) -> Vec<Field> {
        let (before, behind) = columns();
        let mut fields: Vec<Field> = before.iter().filter_map(|c| c.field(self)).collect();
        let factors = &self.record.experiment.factors;
        fields.extend(
            self.cell
                .iter()
                .flat_map(|cell| level_fields(factors, cell)),
        );
        fields.extend(behind.iter().filter_map(|c| c.field(self)));
        fields
    }
}

/// The schema of rows that consist of a place and columns of their own.
pub(super) fn schema<R>(own: &[DataColumn<'_, R>]) -> Value {
    let (before, behind) = columns();
    let of_place = before.iter().chain(&behind).map(DataColumn::in_schema);
    let columns: Vec<InSchema> = of_place
        .chain(own.iter().map(DataColumn::in_schema))
        .collect();
    schema_of(columns, &[("level_", LEVEL)])
}

type Columns<'a> = Vec<DataColumn<'a, Place<'a>>>;

/// The columns before the levels of the factors, and those after them.
fn columns<'a>() -> (Columns<'a>, Columns<'a>) {
    type P<'a> = Place<'a>;
    let mut before = run_columns(|place: &P<'_>| place.name);
    before.extend([
        DataColumn::text(
            "answer",
            "what the run answers to its question; of a search `yes` where it found the limit",
            |place: &P<'_>| place.answer.map(|answer| answer.answer().name()),
        )
        .one_of(Answer::NAMES)
        .only_of(|place| place.answer.is_some()),
        DataColumn::text("experiment", "name of the experiment", |place: &P<'_>| {
            Some(place.record.experiment.name.clone())
        })
        .known(),
        DataColumn::text(
            "target",
            "the targets that the trials read or wrote, with commas between",
            |place: &P<'_>| Some(place.targets.clone()),
        )
        .known(),
        DataColumn::text(
            "target_kind",
            "what kinds these are of, each once",
            |place: &P<'_>| Some(place.kinds.clone()),
        )
        .known(),
        DataColumn::whole(
            "cell",
            "id of the cell in its run file, the same in `table`, `export` and `claims`",
            |place: &P<'_>| place.cell.as_ref().map(|cell| cell.id),
        )
        .known(),
    ]);
    let group = DataColumn::text(
        "group",
        "group of workers that the row is of; `all` for the whole trial",
        |place: &P<'_>| place.group.map(str::to_owned),
    );
    let mut behind = vec![group.only_of(|place| place.group.is_some())];
    behind.extend(exported_settings().into_iter().map(|setting| {
        DataColumn::setting(setting, move |place: &P<'_>| {
            Some(place.cell.as_ref()?.value_in_force(setting).into())
        })
    }));
    (before, behind)
}

/// Names and kinds of the targets with these numbers, each kind once.
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
