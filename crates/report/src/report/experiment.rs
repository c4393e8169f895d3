//! The blocks of each experiment: its question, its figures, the tables of a standard and of cells, and its
//! findings.

use super::section::{self, RunSequence};
use super::study::Study;
use super::{Input, clean, id, stem};
use crate::block::{Block, Look, Picture, Table};
use crate::layout::{Column, none};
use iolab_analysis::analysis::{Analysis, CellAnalysis, SteadyAnalysis, Tracked, TrackedOf};
use iolab_figure::Figure;
use iolab_stats::mean;
use iolab_workload::settings::cell_label;
use iolab_workload::units::{counted, format_percent, significant};

/// The parts of all experiments. Notes that the tables of all of them share precede them.
pub(super) fn experiments(study: &Study<'_>) -> Vec<Block> {
    let parts = study.sequences.iter();
    let mut parts: Vec<Vec<Block>> = parts
        .filter_map(|sequence| one_experiment(study, sequence))
        .collect();
    let shared = shared_notes(&parts);
    for part in parts.iter_mut().flatten() {
        if let Block::Table(table) = part {
            table.notes.retain(|note| !shared.contains(note));
        }
    }
    let notes = format!("Tables below: {}", shared.join("; "));
    let notes = (!shared.is_empty()).then_some(Block::Paragraph(Look::Caption, notes));
    notes
        .into_iter()
        .chain(parts.into_iter().flatten())
        .collect()
}

/// Notes of the table of cells that all of several experiments have.
fn shared_notes(parts: &[Vec<Block>]) -> Vec<String> {
    let of_cells = |part: &Vec<Block>| -> Vec<String> {
        let tables = part.iter().filter_map(|block| match block {
            Block::Table(table) if !table.ids.is_empty() => Some(table),
            _ => None,
        });
        tables
            .take(1)
            .flat_map(|table| table.notes.clone())
            .collect()
    };
    let all: Vec<Vec<String>> = parts.iter().map(of_cells).collect();
    let Some((first, rest)) = all.split_first().filter(|(_, rest)| !rest.is_empty()) else {
        return Vec::new();
    };
    let is_shared = |note: &&String| rest.iter().all(|other| other.contains(note));
    first.iter().filter(is_shared).cloned().collect()
}

fn one_experiment(study: &Study<'_>, sequence: &RunSequence) -> Option<Vec<Block>> {
    let report = study.report;
    let latest = sequence.latest()?;
    let input = report.inputs.get(latest)?;
    let analysis = input.run.analysis();
    let (id_of, stem) = (id(latest), stem(latest, input));
    let mut all = vec![Block::heading(2, &id_of, study.names.get(latest)?)];
    let question = clean(&input.run.record().experiment.question);
    if !question.is_empty() {
        all.push(Block::Paragraph(Look::Question, question));
    }
    if study.latest.len() > 1 {
        let lines = input.interpretation.conclusions.iter();
        all.extend(lines.map(|line| Block::Paragraph(Look::Result, clean(&line.text))));
    }
    let figure = |(name, figure): (&'static str, Figure)| {
        Block::Figure(Picture {
            name: format!("{stem}-{name}"),
            class: name,
            figure: Box::new(figure),
        })
    };
    let options = |name: &str| study.medium.options(&format!("{id_of}-{name}"));
    let over_time = sequence.figures(report, options);
    if !over_time.is_empty() {
        all.push(Block::heading(3, "", "Over time"));
        all.extend(over_time.into_iter().map(figure));
        all.push(Block::heading(3, "", "Latest run"));
    }
    let drawn = sequence.on_all_targets(&study.sequences, report.inputs);
    let standard = of(analysis);
    // Its rounds precede the figure of its cells, as in a standard's report.
    let leads = |(name, _): &(&str, Figure)| *name == "rounds" && !standard.is_empty();
    let further = section::further(&drawn, input, options).into_iter();
    let (leading, further): (Vec<_>, Vec<_>) = further.partition(leads);
    all.extend(leading.into_iter().map(figure));
    all.extend(standard.into_iter().map(Block::Table));
    let own = section::of_runs(&id_of, &drawn, study.medium);
    all.extend(own.map(|figure| {
        Block::Figure(Picture {
            name: stem.clone(),
            class: "",
            figure: Box::new(figure),
        })
    }));
    all.extend(further.into_iter().map(figure));
    all.extend(section::tables(latest, input).into_iter().map(Block::Table));
    let findings = study.findings.each.get(latest)?;
    if !findings.is_empty() {
        let found = counted(findings.len(), "finding");
        let heading = format!("{found}, from {}", section::trials(analysis));
        all.push(Block::heading(3, &format!("findings-{id_of}"), heading));
        all.push(Block::list(findings.clone()));
    }
    for place in sequence.0.iter().rev().skip(1) {
        all.extend(earlier(study, *place, report.inputs.get(*place)?));
    }
    Some(all)
}

/// An earlier run of the experiment.
fn earlier(study: &Study<'_>, place: usize, input: &Input) -> Vec<Block> {
    let name = study.names.get(place).cloned().unwrap_or_default();
    let trials = section::trials(input.run.analysis());
    let file = clean(&input.path.to_string_lossy());
    let mut all = vec![
        Block::folded(3, &id(place), format!("Earlier run: {name}")),
        Block::text(format!("{trials}. Run file: {file}.")),
    ];
    let tables: Vec<Table> = section::tables(place, input);
    all.extend(tables.into_iter().map(Block::Table));
    all
}

/// The tables, in their order; empty for a run that follows no standard, or has no rounds of cells.
pub(super) fn of(analysis: &Analysis) -> Vec<Table> {
    let steady = analysis.steady.as_ref();
    let steady = steady.filter(|steady| analysis.standard.is_some() && steady.is_of_cells());
    let Some(steady) = steady else {
        return Vec::new();
    };
    window(analysis, steady)
        .into_iter()
        .chain(grid(analysis))
        .collect()
}

/// The rounds of the last window in the tracked cells; `None` if there are fewer rounds.
fn window(analysis: &Analysis, steady: &SteadyAnalysis) -> Option<Table> {
    let length = steady.asked.window as usize;
    let has_window = |one: &&Tracked| one.values.len() >= length;
    let tracked = steady.tracked.iter().filter(has_window);
    let of_cells = tracked.filter_map(|one| match one.of {
        TrackedOf::Cell(id) => Some((id, one)),
        TrackedOf::Target(_) => None,
    });
    let (ids, tracked): (Vec<i64>, Vec<&Tracked>) = of_cells.unzip();
    let rounds = tracked.first()?.values.len();
    let name = |id: &i64| clean(&cell_label(&analysis.factors, analysis.levels_of(*id)));
    let names = ids.iter().map(name);
    let mut columns = vec![Column::new("tracked", 0, names).left()];
    for place in 0..length {
        let heading = format!("round {}", rounds - length + place + 1);
        let values = tracked
            .iter()
            .map(|one| significant(one.last_window(&steady.asked)[place]));
        columns.push(Column::new(heading, 1, values));
    }
    let column = |heading: &str, value: &dyn Fn(&Tracked) -> Option<String>| {
        let values = tracked.iter().map(|one| value(one).unwrap_or_else(none));
        Column::new(heading, 0, values)
    };
    columns.extend([
        column("mean", &|one| {
            mean(one.last_window(&steady.asked)).map(significant)
        }),
        column("range", &|one| Some(format_percent(one.steadiness?.range))),
        column("slope", &|one| Some(format_percent(one.steadiness?.slope))),
    ]);
    Some(Table::new(
        format!(
            "measurement window: {} of the tracked cells in the last {length} of {rounds} rounds",
            named(analysis)
        ),
        [format!(
            "range and slope of the line of least squares over the mean: at most {} and {} are allowed",
            format_percent(steady.asked.range),
            format_percent(steady.asked.slope)
        )],
        columns,
    ))
}

/// `IOPS`, `throughput (MB/s)`.
fn named(analysis: &Analysis) -> String {
    let (quantity, unit) = (clean(&analysis.quantity()), analysis.response.unit());
    match quantity == unit {
        true => quantity,
        false => format!("{quantity} ({unit})"),
    }
}

/// The mean of each cell over the measured rounds: a row for each level of the second factor, a column for each
/// of the first. `None` with another number of factors, or with too many levels for a page.
fn grid(analysis: &Analysis) -> Option<Table> {
    const COLUMNS_MAX: usize = 12;
    let [across, down] = analysis.factors.as_slice() else {
        return None;
    };
    let (columns, rows) = (analysis.levels(0), analysis.levels(1));
    if !(2..=COLUMNS_MAX).contains(&columns.len()) || rows.len() < 2 {
        return None;
    }
    let (across, down) = (clean(across), clean(down));
    let heading = format!("{down} \\ {across}");
    let head = Column::new(heading, 0, rows.iter().map(|row| clean(row)));
    let values = columns.into_iter().map(|wanted| {
        let of_row = |row: &&str| {
            let mut cells = analysis.cells.iter();
            let cell = cells.find(|cell| level(cell, 0) == wanted && level(cell, 1) == *row);
            cell.and_then(|cell| mean(&cell.values))
                .map_or_else(none, significant)
        };
        Column::new(clean(wanted), 0, rows.iter().map(of_row))
    });
    let trials = analysis.cells.iter().map(|cell| cell.n).max()?;
    Some(Table::new(
        format!(
            "{} by {down} and {across}: means of the {trials} measured rounds",
            named(analysis)
        ),
        [],
        std::iter::once(head).chain(values).collect(),
    ))
}

fn level(cell: &CellAnalysis, factor: usize) -> &str {
    cell.cell.levels.get(factor).map_or("", String::as_str)
}
