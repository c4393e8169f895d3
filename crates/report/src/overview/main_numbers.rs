//! The main numbers as a table of pages: sequential and random access of each target.

use iolab_analysis::headline_numbers::{HeadlineCell, HeadlineRate};
use iolab_figure::result_names;
use iolab_workload::escape_control::escape_control;
use iolab_workload::quantity::{exact_size, format_ns, format_percent, significant};

use super::{Overview, description};
use crate::layout::{self, Column, columns_over, none};

/// Characters of what a target is in a row of the glance.
const DESCRIPTION_WIDTH: usize = 24;

impl Overview<'_> {
    /// A note about the main numbers; may be empty.
    pub(crate) fn glance_note(&self) -> &'static str {
        let glance = &self.digest.glance;
        match !glance.varies_in_target() && glance.rows.iter().any(has_no_tail) {
            true => "* fewer than 368 requests per trial: may be far from the true p99",
            false => "",
        }
    }

    /// The glance for pages and paper, which have more room downwards than across: of several targets a column per target where these are
    /// fewer than the kinds of access.
    pub(crate) fn glance_for_paper(&self) -> Vec<Column> {
        let columns = self.glance_columns();
        match self.has_columns_of_targets(&columns) {
            true => layout::turned(columns),
            false => columns,
        }
    }

    /// Whether the rows of the glance for pages are kinds of access, each in its own unit.
    pub(crate) fn glance_is_turned(&self) -> bool {
        self.has_columns_of_targets(&self.glance_columns())
    }

    fn has_columns_of_targets(&self, glance: &[Column]) -> bool {
        let targets = glance.first().map_or(0, Column::rows);
        self.digest.glance.varies_in_target() && glance.len() > targets + 1
    }

    /// The columns of the glance: a row per kind of access, of several targets a row per target.
    fn glance_columns(&self) -> Vec<Column> {
        match self.digest.glance.varies_in_target() {
            true => self.targets_side_by_side(),
            false => self.accesses_of_one_target(),
        }
    }

    /// A row per target, with the median of each kind of access.
    fn targets_side_by_side(&self) -> Vec<Column> {
        let glance = &self.digest.glance;
        let kind = |row: &HeadlineCell<'_>| {
            let size = row.cell.cell.trial().bs;
            (row.order, size, row.operation, row.in_flight())
        };
        let (mut targets, mut kinds) = (Vec::new(), Vec::new());
        for row in &glance.rows {
            if !targets.contains(&row.target) {
                targets.push(row.target);
            }
            if !kinds.contains(&kind(row)) {
                kinds.push(kind(row));
            }
        }
        kinds.sort_by_key(|(order, _, operation, flight)| {
            (*order, std::cmp::Reverse(*flight), *operation)
        });
        let names = targets.iter().map(|t| escape_control(t).into_owned());
        let is = targets.iter().map(|target| {
            let all = self
                .inputs
                .iter()
                .flat_map(|input| &input.run.analysis().targets);
            let found = all
                .filter(|one| one.name == *target)
                .map(|one| escape_control(&description(one)).into_owned())
                .next();
            found.unwrap_or_else(none)
        });
        let mut columns = vec![
            Column::new("at a glance", 0, names).left(),
            Column::new("disk", 2, is)
                .left()
                .breaking(DESCRIPTION_WIDTH),
        ];
        for one in kinds {
            let of = |target: &&str| {
                let mut own = glance.rows.iter();
                own.find(|row| row.target == *target && kind(row) == one)
            };
            let (order, size, operation, in_flight) = one;
            let rate = |row: Option<&HeadlineCell<'_>>| row.and_then(HeadlineCell::rate);
            let unit = targets
                .iter()
                .find_map(|target| Some(rate(of(target))?.unit));
            let flight = match glance.varies_in_flight() {
                true => format!(", {in_flight} in flight"),
                false => String::new(),
            };
            let heading = format!(
                "{} {} {}{flight}, {}",
                order.name().to_lowercase(),
                exact_size(size),
                operation.name(),
                unit.unwrap_or_default()
            );
            let text = |row: &HeadlineCell<'_>| {
                let rate = row.rate()?;
                let precision = rate.precision.map_or_else(String::new, |precision| {
                    format!(" +/- {}", format_percent(precision))
                });
                let origin = row.cell.served.as_ref().filter(|_| !row.cell.is_target());
                let origin = origin.map_or_else(String::new, |served| {
                    format!(" [{}]", result_names::served(served))
                });
                Some(format!("{}{precision}{origin}", number(&rate)))
            };
            let values = targets
                .iter()
                .map(|target| of(target).and_then(text).unwrap_or_else(none));
            columns.push(Column::new(heading, 0, values));
        }
        columns
    }

    fn accesses_of_one_target(&self) -> Vec<Column> {
        let glance = &self.digest.glance;
        let rows = &glance.rows;
        let column = columns_over(rows);
        let mut columns = vec![
            column("at a glance", 0, &access).left(),
            column("operation", 0, &|row| row.operation.name().to_owned()).left(),
        ];
        if glance.varies_in_flight() {
            columns.push(column("in flight", 0, &|row| row.in_flight().to_string()));
        }
        columns.extend([
            column("median", 0, &|row| row.rate().map_or_else(none, value)),
            column("+/-", 0, &|row| {
                let precision = row.rate().and_then(|rate| rate.precision);
                precision.map_or_else(none, format_percent)
            }),
            column("p50", 0, &|row| {
                row.latency().map_or_else(none, |l| format_ns(l.p50_ns))
            }),
            column("p99", 0, &|row| {
                let star = if has_no_tail(row) { "*" } else { "" };
                let p99 = row.latency().map(|l| format_ns(l.p99_ns));
                p99.map_or_else(none, |p99| p99 + star)
            }),
        ]);
        if !rows.iter().all(|row| row.cell.is_device()) {
            columns.push(
                column("served by", 1, &|row| {
                    row.cell
                        .served
                        .as_ref()
                        .map_or_else(none, result_names::served)
                })
                .left(),
            );
        }
        columns
    }
}

fn access(row: &HeadlineCell<'_>) -> String {
    let size = exact_size(row.cell.cell.trial().bs);
    format!("{} {size}", row.order.name())
}

fn value(rate: HeadlineRate) -> String {
    format!("{} {}", number(&rate), rate.unit)
}

/// A rate without its unit, with the rate at the end of an only trial that changes its level: `1800, then 100`.
pub(crate) fn number(rate: &HeadlineRate) -> String {
    let first = significant(rate.value);
    match rate.last {
        None => first,
        Some(last) => format!("{first}, then {}", significant(last)),
    }
}

fn has_no_tail(row: &HeadlineCell<'_>) -> bool {
    row.latency().is_some() && !row.has_tail()
}
