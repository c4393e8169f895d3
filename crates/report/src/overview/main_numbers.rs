//! The main numbers: sequential and random access of each target, as a sentence and as a table.

use iolab_analysis::analysis::MeasuredTarget;
use iolab_analysis::headline_numbers::{
    AccessOperation, AccessOrder, HeadlineCell, HeadlineRate, RateCourse,
};
use iolab_analysis::trust::{Shown, Trust};
use iolab_figure::result_names;
use iolab_record::TargetKind;
use iolab_workload::escape_control::escape_control;
use iolab_workload::quantity::{exact_size, format_bytes, format_ns, format_percent, significant};

use super::{Overview, kind};
use crate::layout::{self, Column, none};
use crate::trust::in_words;

/// Characters of what a target is in a row of the glance.
const DESCRIPTION_WIDTH: usize = 24;

impl Overview<'_> {
    /// One line per target: `/mnt/disk: sequential 1MiB read 2351, write 1990 MB/s; random 4KiB read 14820 IOPS (the most of 1 to
    /// 32 in flight; +/- 3.0 % at most)`, of several with `; these numbers: good`. Empty where no run measured any of the main numbers.
    pub(super) fn answers(&self) -> Vec<String> {
        let rows = &self.digest.glance.rows;
        let mut targets: Vec<&str> = rows.iter().map(|row| row.target).collect();
        targets.dedup();
        // Of one target the verdict on all that is shown stands beside it: a second one of its numbers alone would contradict that.
        let is_one = targets.len() == 1;
        let trust = |own: &[&HeadlineCell<'_>]| {
            let runs: Vec<_> = self.inputs.iter().map(|input| &input.run).collect();
            let numbers: Vec<_> = own.iter().map(|row| row.id()).collect();
            let trust = Trust::of(&Shown {
                runs: &runs,
                claims: &[],
                numbers: &numbers,
            });
            let reason = in_words(&trust).map_or_else(String::new, |words| format!(" ({words})"));
            format!("; these numbers: {}{reason}", trust.level.name())
        };
        let line = |target: &str| {
            let own = rows.iter().filter(|row| row.target == target);
            let own: Vec<&HeadlineCell<'_>> = own.collect();
            let trust = match is_one {
                true => String::new(),
                false => trust(&own),
            };
            let text = format!("{target}: {} ({}){trust}", fastest(&own), reach(&own));
            escape_control(&text).into_owned()
        };
        targets.iter().map(|target| line(target)).collect()
    }

    /// The main numbers as a table, or a line instead where no run measured any.
    pub(super) fn glance(&self, width: u16) -> String {
        let rows = &self.digest.glance.rows;
        if rows.is_empty() {
            return "No run measured sequential or random access by itself; see the curves.\n"
                .to_owned();
        }
        let note = match self.glance_note() {
            "" => String::new(),
            note => format!("{note}\n"),
        };
        let columns = self.glance_columns();
        // Of several disks there is a column for each kind of access: up to twelve.
        let is_wide =
            self.digest.glance.varies_in_target() && !layout::broken_fits(&columns, width);
        let columns = match is_wide {
            true => layout::turned(layout::indispensable(columns)),
            false => columns,
        };
        layout::text(columns, width) + &note
    }

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
                .map(description)
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
        let column = |heading: &str, dispensable, value: &dyn Fn(&HeadlineCell<'_>) -> String| {
            Column::new(heading, dispensable, rows.iter().map(value))
        };
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
                column("served by", 0, &|row| {
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

/// What a target is, in words: `Samsung SSD 990 (nvme0n1), 2.00 TB, ext4`.
fn description(target: &MeasuredTarget) -> String {
    let of_model = target.kind == TargetKind::Model;
    let device = target.device.as_deref().map(str::to_owned);
    let disk = match (target.model.as_deref().map(str::trim), device) {
        (Some(model), _) if of_model => Some(model.to_owned()),
        (Some(model), Some(device)) => Some(format!("{model} ({device})")),
        (None, Some(device)) => Some(device),
        (model, None) => model.map(str::to_owned),
    };
    let size = target.bytes.map(|bytes| format_bytes(bytes as f64));
    let parts = [disk, size, target.file_system.clone()];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => kind(target.kind).to_owned(),
        false => escape_control(&parts.join(", ")).into_owned(),
    }
}

/// `sequential 1MiB read 2351, write 1990 MB/s; random 4KiB read 14820 IOPS`: of each kind of access the fastest row, sizes that differ apart:
/// `sequential 1MiB read 543 MB/s, 64KiB write 8392 IOPS`.
fn fastest(rows: &[&HeadlineCell<'_>]) -> String {
    let of_order = |order: AccessOrder| {
        let best = AccessOperation::ALL.iter().filter_map(|operation| {
            let own = rows
                .iter()
                .filter(|row| row.order == order && row.operation == *operation);
            let rated = own.filter_map(|row| Some((*row, row.rate()?)));
            rated.max_by(|a, b| a.1.value.total_cmp(&b.1.value))
        });
        let best: Vec<(&HeadlineCell<'_>, HeadlineRate)> = best.collect();
        let value = |(row, rate): &(&HeadlineCell<'_>, HeadlineRate)| {
            let flight = match common_flight(rows) {
                Some(_) => String::new(),
                None => format!(" ({} in flight)", row.in_flight()),
            };
            format!("{} {}{flight}", row.operation.name(), number(rate))
        };
        // Runs together may have measured each operation with another size, which decides the unit.
        let size = |(row, _): &(&HeadlineCell<'_>, HeadlineRate)| row.cell.cell.trial().bs;
        let parts = best.chunk_by(|a, b| size(a) == size(b)).map(|alike| {
            let values: Vec<String> = alike.iter().map(value).collect();
            let (size, unit) = (size(&alike[0]), alike[0].1.unit);
            format!("{} {} {unit}", exact_size(size), values.join(", "))
        });
        let parts: Vec<String> = parts.collect();
        (!parts.is_empty()).then(|| format!("{} {}", order.name().to_lowercase(), parts.join(", ")))
    };
    let orders = AccessOrder::ALL.into_iter().filter_map(of_order);
    orders.collect::<Vec<String>>().join("; ")
}

/// The least and the most in flight of each access of a target; `None` where these differ between accesses.
fn common_flight(rows: &[&HeadlineCell<'_>]) -> Option<(u64, u64)> {
    let of_access = |access: (AccessOrder, AccessOperation)| {
        let own = rows
            .iter()
            .filter(|row| (row.order, row.operation) == access);
        let flights: Vec<u64> = own.map(|row| row.in_flight()).collect();
        Some((*flights.iter().min()?, *flights.iter().max()?))
    };
    let mut all = rows.iter().map(|row| of_access((row.order, row.operation)));
    let first = all.next()??;
    all.all(|other| other == Some(first)).then_some(first)
}

/// `the most of 1 to 32 in flight; +/- 3.0 % at most`.
fn reach(rows: &[&HeadlineCell<'_>]) -> String {
    let in_flight = match common_flight(rows) {
        Some((least, most)) if least != most => {
            format!("the most of {least} to {most} in flight; ")
        }
        Some((1, _)) => "one at a time; ".to_owned(),
        Some((all, _)) => format!("{all} in flight; "),
        // Each number has its own.
        None => String::new(),
    };
    let is_cached = |row: &&HeadlineCell<'_>| row.cell.disturbance.fills_storage_cache();
    let cached = match rows.iter().any(is_cached) {
        true => "writes into a cache of the storage; ",
        false => "",
    };
    let in_flight = in_flight + cached;
    let rates: Vec<HeadlineRate> = rows.iter().filter_map(|row| row.rate()).collect();
    let widest = rates
        .iter()
        .map(|rate| rate.precision)
        .collect::<Option<Vec<f64>>>();
    let widest = widest.and_then(|all| all.into_iter().max_by(f64::total_cmp));
    match widest {
        // A distance to both sides that ends below zero means nothing.
        Some(widest) if widest > 1.0 => match rates.len() {
            1 => format!("{in_flight}its interval is wider than the number"),
            _ => format!("{in_flight}some intervals are wider than the number"),
        },
        Some(widest) => format!("{in_flight}+/- {} at most", format_percent(widest)),
        None => format!("{in_flight}too few trials for some intervals"),
    }
}

fn access(row: &HeadlineCell<'_>) -> String {
    let size = exact_size(row.cell.cell.trial().bs);
    format!("{} {size}", row.order.name())
}

fn value(rate: HeadlineRate) -> String {
    format!("{} {}", number(&rate), rate.unit)
}

/// A rate without its unit, with its course where the only trial is not at one level: `1800, then 100`.
pub(crate) fn number(rate: &HeadlineRate) -> String {
    let first = significant(rate.value);
    match rate.course {
        RateCourse::Level => first,
        RateCourse::Then(last) => format!("{first}, then {}", significant(last)),
        RateCourse::Levels {
            count,
            ends: (least, most),
        } => format!(
            "{count} levels from {} to {}",
            significant(least),
            significant(most)
        ),
        RateCourse::Gradual(last) => {
            let goes = match last < rate.value {
                true => "falling",
                false => "rising",
            };
            format!("{first} {goes} to {}", significant(last))
        }
        RateCourse::Between(least, most) => {
            format!("{} to {}", significant(least), significant(most))
        }
    }
}

fn has_no_tail(row: &HeadlineCell<'_>) -> bool {
    row.latency().is_some() && !row.has_tail()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_an_only_trial_tells_its_course() {
        let courses = [
            RateCourse::Level,
            RateCourse::Then(210.0),
            RateCourse::Levels {
                count: 3,
                ends: (210.0, 1049.0),
            },
            RateCourse::Gradual(180.0),
            RateCourse::Between(180.0, 1100.0),
        ];
        let said = courses.map(|course| {
            number(&HeadlineRate {
                value: 1049.0,
                course,
                unit: "MB/s",
                precision: None,
                interval: None,
            })
        });
        insta::assert_snapshot!(said.join("\n"), @r"
        1049
        1049, then 210
        3 levels from 210 to 1049
        1049 falling to 180
        180 to 1100
        ");
    }
}
