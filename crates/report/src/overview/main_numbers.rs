//! The main numbers as a table, on a screen and in documents: the accesses that were measured, or the ends of each curve.

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::curve::axis_but_target;
use iolab_analysis::headline_numbers::{AccessOperation, AccessOrder, HeadlineCell, HeadlineRate};
use iolab_analysis::trial_values::distinct;
use iolab_figure::labels;
use iolab_stats::Summary;
use iolab_workload::escape_control::escape_control;
use iolab_workload::trial_description::level_in_words;
use iolab_workload::units::{exact_size, format_percent, significant};

use super::{Overview, names};
use crate::doubt::LEAST_SHOWN;
use crate::findings::sentences::grouped;
use crate::layout::{Column, SCREEN_ROWS, none, shared};
use crate::notation::{clean, on_screen};
use crate::table::cached;

/// Mark of a number whose trials were disturbed.
const DISTURBED: &str = " !";
/// Headings that a screen leaves out: the values say what they are.
pub(super) const LEFT_OUT: [&str; 6] = [
    "access", "at once", "operation", "unit", "experiment", "curve",
];

/// Kind of rows in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Table {
    /// Kinds of access.
    Accesses,
    /// Cells of iolab and of another tool.
    Peers,
    Cells,
    Curves,
}

impl Overview<'_> {
    /// The columns of a document, with a row for each kind of access, or for each curve.
    pub(crate) fn main_columns(&self) -> Vec<Column> {
        match self.digest.glance.rows.is_empty() {
            true => self.curves(),
            false => self.accesses(usize::MAX),
        }
    }

    /// Notes on the numbers: the precision of all, what marks disturbed ones, and their common source.
    pub(crate) fn notes_on_numbers(&self) -> Vec<String> {
        let rows = &self.digest.glance.rows;
        let disturbed = rows.iter().any(|row| row.cell.is_disturbed());
        let disturbed = disturbed.then(|| {
            let mark = DISTURBED.trim();
            format!("{mark}: disturbed; the flags of 'iolab table' say by what")
        });
        disturbed.into_iter().chain(self.source()).collect()
    }

    /// Note on the common source of all numbers.
    pub(super) fn source(&self) -> Option<String> {
        let origin = self.common_origin()?;
        Some(format!("Source of all numbers: {origin}"))
    }

    /// Origin of all numbers of the glance, unless it is the target.
    fn common_origin(&self) -> Option<String> {
        shared(self.digest.glance.rows.iter().map(origin))?
    }

    /// Whether all numbers reached their goal, so that one line states their precision.
    pub(super) fn is_precise(&self) -> bool {
        let runs = || self.inputs.iter().map(|input| input.run.analysis());
        let all = runs().all(|run| {
            let shown = run.cells.iter().filter(|cell| cell.response.is_some());
            let mut wide = shown.map(|cell| cell.precision.is_none_or(|p| p > run.precision_goal));
            !wide.any(|wide| wide)
        });
        all && runs().all(|run| run.seeks_precision)
    }

    /// Kind of table: accesses, if these are all that was measured; cells, if these are few.
    pub(super) fn shows(&self) -> Table {
        let rows = self.digest.glance.rows.len();
        match self.inputs.as_slice() {
            [only] if !only.interpretation.peers.is_empty() => Table::Peers,
            _ if rows > 1 && rows == self.digest.cells => Table::Accesses,
            [only] if only.run.analysis().cells.len() <= SCREEN_ROWS => Table::Cells,
            _ => Table::Curves,
        }
    }

    /// A row for each kind of access, with a column for each operation. For several targets, a row for each
    /// operation, and a column for each target.
    pub(super) fn accesses(&self, targets_max: usize) -> Vec<Column> {
        let all = &self.digest.glance.rows;
        let mut targets = distinct(all.iter().map(|row| row.target));
        let is_one = targets.len() == 1;
        targets.truncate(targets_max);
        let key = |row: &HeadlineCell<'_>| {
            let flight = std::cmp::Reverse(row.in_flight());
            let size = std::cmp::Reverse(row.cell.cell.trial().bs);
            (row.order, size, flight, (!is_one).then_some(row.operation))
        };
        let mut keys = distinct(all.iter().map(key));
        keys.sort();
        let labels = keys.iter().map(|(order, size, flight, operation)| {
            let order = match order {
                AccessOrder::Sequential => "seq",
                AccessOrder::Random => "random",
            };
            let (name, flight) = (
                format!("{} {order}", exact_size(size.0)),
                format!("QD{}", flight.0),
            );
            match operation {
                None => (name, flight),
                Some(operation) => (format!("{name} {flight}"), operation.name().to_owned()),
            }
        });
        let (names, rest): (Vec<String>, Vec<String>) = labels.unzip();
        let mut columns = vec![
            Column::new("access", 0, without_repeats(names)).left(),
            Column::new(if is_one { "at once" } else { "operation" }, 0, rest).left(),
        ];
        let (is_precise, common) = (self.is_precise(), self.common_origin());
        // The cell of each row that the column shows.
        let column = |heading: &str, is_shown: &dyn Fn(&HeadlineCell<'_>) -> bool| {
            let values = keys.iter().map(|wanted| {
                let row = all
                    .iter()
                    .find(|row| key(row) == *wanted && is_shown(row))?;
                value(row, is_precise, origin(row).filter(|_| common.is_none()))
            });
            let values = values.map(|value| value.unwrap_or_else(none));
            Column::new(escape_control(heading), 0, values)
        };
        match is_one {
            true => {
                let operations = AccessOperation::ALL.iter().copied();
                let measured = operations.filter(|one| all.iter().any(|row| row.operation == *one));
                columns.extend(measured.map(|one| column(one.name(), &|row| row.operation == one)));
            }
            false => columns.extend(targets.iter().map(|target| {
                let name = target.strip_prefix("model:").unwrap_or(target);
                column(name, &|row| row.target == *target)
            })),
        }
        let units = keys.iter().map(|wanted| {
            let rate = all.iter().find(|row| key(row) == *wanted);
            let rate = rate.and_then(HeadlineCell::rate);
            rate.map_or_else(none, |rate| rate.unit.to_owned())
        });
        columns.push(Column::new("unit", 0, units).left());
        columns
    }

    /// A row for each curve, with its least and its greatest value.
    pub(super) fn curves(&self) -> Vec<Column> {
        let is_precise = self.is_precise();
        let mut rows: Vec<[String; 6]> = Vec::new();
        for (input, experiment) in self.inputs.iter().zip(names(&self.inputs)) {
            let analysis = input.run.analysis();
            let Some(factor) = axis_but_target(analysis) else {
                continue;
            };
            let curves = curves_of(analysis, factor);
            let has_targets = shared(curves.iter().map(|((target, _), _)| target)).is_none();
            for ((target, name), points) in &curves {
                let end = |(cell, of): &(&CellAnalysis, Summary)| {
                    let within = of.precision().filter(|_| !is_precise);
                    let wide = within.map_or_else(String::new, |within| {
                        format!(" ±{}", format_percent(within.max(LEAST_SHOWN)))
                    });
                    let value = analysis.response.format(of.median);
                    let origin = cached(cell).map_or_else(String::new, |what| format!(" [{what}]"));
                    let level = level_of(analysis, cell, factor);
                    (on_screen(&format!("{value}{wide}{origin}")), level)
                };
                let by_value = |a: &&(&CellAnalysis, Summary), b: &&(&CellAnalysis, Summary)| {
                    a.1.median.total_cmp(&b.1.median)
                };
                let least = points.iter().min_by(by_value);
                // Of equal levels the first stands for all.
                let most = points.iter().rev().max_by(by_value);
                let Some((least, most)) = least.zip(most) else {
                    continue;
                };
                let name = match has_targets {
                    true => format!("{target} {name}"),
                    false => name.clone(),
                };
                let ((least, at_least), (most, at_most)) = (end(least), end(most));
                rows.push([experiment.clone(), name, least, at_least, most, at_most]);
            }
        }
        let column = |heading: &str, place: usize| {
            let values = rows.iter().map(|row| clean(&row[place]));
            Column::new(escape_control(heading), 0, values)
        };
        let mut columns = vec![
            column("experiment", 0).left(),
            column("curve", 1).left(),
            column("least", 2),
            column("at", 3).left(),
            column("most", 4),
            column("at", 5).left(),
        ];
        if rows.iter().all(|row| row[1].is_empty()) {
            columns.remove(1);
        }
        if self.inputs.len() == 1 {
            columns.remove(0);
        }
        columns
    }
}

/// The measured cells of a curve.
type Points<'a> = Vec<(&'a CellAnalysis, Summary)>;

/// The curves of a run along a factor, in the order of their first cells: cells of a target that differ in that
/// factor, with the levels of the others in words (`4 in flight`; empty for none).
fn curves_of(analysis: &Analysis, factor: usize) -> Vec<((&str, String), Points<'_>)> {
    let measured = analysis.cells.iter();
    let measured = measured.filter_map(|cell| Some((cell, cell.response?)));
    let keyed = measured.map(|(cell, summary)| {
        let names = analysis.factors.iter().enumerate();
        let held = names.filter(|(i, name)| *i != factor && *name != "target");
        let held: Vec<String> = held.map(|(i, _)| level_of(analysis, cell, i)).collect();
        let target = analysis.target_of(cell.cell.spec.target.as_ref());
        ((target, held.join(", ")), (cell, summary))
    });
    grouped(keyed)
}

/// The level of a cell in words. Words that are true of several threads are true of one.
fn level_of(analysis: &Analysis, cell: &CellAnalysis, factor: usize) -> String {
    let Some((name, level)) = analysis
        .factors
        .get(factor)
        .zip(cell.cell.levels.get(factor))
    else {
        return String::new();
    };
    let same = analysis
        .cells
        .iter()
        .filter(|other| other.cell.levels.get(factor) == Some(level));
    let most = same.max_by_key(|cell| cell.cell.trial().workers());
    most.map_or_else(String::new, |cell| {
        level_in_words(&cell.cell.spec, name, level)
    })
}

/// The texts; a text that repeats the one above it is empty.
fn without_repeats(texts: Vec<String>) -> Vec<String> {
    let repeats = |place: usize| place > 0 && texts[place - 1] == texts[place];
    let all = texts.iter().enumerate();
    all.map(|(place, text)| match repeats(place) {
        true => String::new(),
        false => text.clone(),
    })
    .collect()
}

/// Origin of a row, unless it is the target.
pub(crate) fn origin(row: &HeadlineCell<'_>) -> Option<String> {
    let served = row.cell.served.as_ref().filter(|_| !row.cell.is_target());
    served.map(labels::served)
}

/// A rate with its interval, unless one line gives the interval of all, and its origin.
fn value(row: &HeadlineCell<'_>, is_precise: bool, origin: Option<String>) -> Option<String> {
    let rate = row.rate()?;
    let within = match (is_precise, rate.precision) {
        (false, Some(within)) => format!(" ±{}", format_percent(within.max(LEAST_SHOWN))),
        (true, _) | (_, None) => String::new(),
    };
    let origin = origin.or_else(|| cached(row.cell).map(str::to_owned));
    let origin = origin.map_or_else(String::new, |served| format!(" [{served}]"));
    let mark = if row.cell.is_disturbed() {
        DISTURBED
    } else {
        ""
    };
    Some(on_screen(&format!(
        "{}{within}{origin}{mark}",
        number(&rate)
    )))
}

/// A rate without its unit, with the rate at the end of an only trial that changes its level: `1800, then 100`.
pub(crate) fn number(rate: &HeadlineRate) -> String {
    let first = significant(rate.value);
    match rate.last {
        None => first,
        Some(last) => format!("{first}, then {}", significant(last)),
    }
}
