//! The part of a report about one run: its tables, its settings and its events.

use iolab_analysis::analysis::Analysis;
use iolab_record::{Cell, Event, RunRecord, exported_settings};
use iolab_workload::settings::{DESCRIBING, Value, cell_label};
use iolab_workload::units::counted;

use super::id;
use super::summary::moment;
use super::{Input, clean};
use crate::block::Table;
use crate::fact::setting_value;
use crate::layout::Column;
use crate::{run_text, table};

/// Distinct names for all runs of a document.
pub(super) fn names(inputs: &[Input]) -> Vec<String> {
    let name = |input: &Input| {
        let name = &input.run.record().experiment.name;
        let stem = input.path.file_stem().unwrap_or_default();
        // The titles of runs of one experiment name the targets; on the same target they name the files.
        let target = input.run.record().target_text();
        let alike = inputs
            .iter()
            .filter(|other| other.run.record().experiment.name == *name);
        let on_target = alike
            .clone()
            .filter(|other| other.run.record().target_text() == target);
        let name = match (alike.count(), on_target.count()) {
            (1, _) => name.clone(),
            (_, 1) => format!("{name} on {target}"),
            _ => format!("{name} ({})", stem.to_string_lossy()),
        };
        clean(&name)
    };
    inputs.iter().map(name).collect()
}

/// Whether each cell has a row of its own in the first table.
pub(super) fn has_row_of_each_cell(analysis: &Analysis) -> bool {
    let rows = table::columns(analysis).first().map_or(0, Column::rows);
    rows == analysis.cells.len()
}

/// The id of a cell's row in the first table of the run at this place.
pub(super) fn row_id(place: usize, cell: i64) -> String {
    format!("{}-c{cell}", id(place))
}

/// Removes control characters from each line of a text.
pub(super) fn lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(clean).collect();
    lines.join("\n") + "\n"
}

/// The number of trials that findings are based on, and the source of their bytes.
pub(super) fn trials(analysis: &Analysis) -> String {
    let cells = analysis.cells.iter().filter(|c| c.n > 0);
    let (mut n, mut count, mut device, mut asked) = (0, 0, 0, 0);
    for cell in cells {
        n += cell.n;
        count += 1;
        device += usize::from(cell.is_device());
        asked += usize::from(cell.served.is_some());
    }
    let source = match device {
        _ if analysis.model.is_some() => format!(", all computed by {}", clean(&analysis.target)),
        _ if asked == 0 => String::new(),
        all if all == count => ", all served by the device".to_owned(),
        0 => ", none served by the device alone".to_owned(),
        some => format!(", {some} of them served by the device alone"),
    };
    format!(
        "{} in {}{source}",
        counted(n, "trial"),
        counted(count, "cell")
    )
}

/// The tables of the run at this place; each row of the first one has an id.
pub(super) fn tables(place: usize, input: &Input) -> Vec<Table> {
    let analysis = input.run.analysis();
    let mut tables = run_text::tables(analysis, &input.interpretation);
    if let Some(cells) = tables.first_mut()
        && has_row_of_each_cell(analysis)
    {
        let ids = analysis
            .cells
            .iter()
            .map(|cell| row_id(place, cell.cell.id));
        cells.ids = ids.collect();
    }
    tables
}

/// Name and value of the settings that are the same in every cell.
pub(super) fn settings(record: &RunRecord) -> Vec<(String, String)> {
    let Some((first, rest)) = record.cells.split_first() else {
        return Vec::new();
    };
    if !first.spec.has_groups() {
        return settings_of(first, &rest.iter().collect::<Vec<_>>());
    }
    let of_group = |(name, own): (&str, Cell)| {
        let others = rest.iter().flat_map(Cell::groups);
        let others: Vec<Cell> = others
            .filter_map(|(other, cell)| (other == name).then_some(cell))
            .collect();
        let settings = settings_of(&own, &others.iter().collect::<Vec<_>>());
        let named = settings.into_iter();
        named
            .map(|(setting, value)| (format!("{name}.{setting}"), value))
            .collect::<Vec<_>>()
    };
    first.groups().flat_map(of_group).collect()
}

/// The settings of a cell that all of `rest` share.
fn settings_of(first: &Cell, rest: &[&Cell]) -> Vec<(String, String)> {
    let own = exported_settings().into_iter();
    let own = own.map(|setting| (setting, first.value_in_force(setting)));
    let shared = own.filter(|(setting, value)| {
        let is_same = |cell: &&Cell| cell.value_in_force(setting) == *value;
        let is_told = *value != Value::Unknown || DESCRIBING.contains(&setting.name);
        *value != Value::None && is_told && rest.iter().all(is_same)
    });
    shared
        .map(|(setting, value)| (setting.name.to_owned(), setting_value(setting, &value)))
        .collect()
}

/// Warnings, errors and decisions of a run, a line each.
pub(super) fn events(record: &RunRecord) -> Vec<String> {
    let place = |cell: i64| {
        let cell = record.cells.iter().find(|c| c.id == cell)?;
        let label = cell_label(&record.experiment.factors, &cell.levels);
        (!label.is_empty()).then(|| format!("{}: ", clean(&label)))
    };
    let line = |event: &Event| {
        let of = event.cell.and_then(place).unwrap_or_default();
        let (at, kind) = (moment(&event.at_utc), event.kind);
        format!("{at} {kind}: {of}{}", clean(&event.message))
    };
    record.events.iter().map(line).collect()
}
