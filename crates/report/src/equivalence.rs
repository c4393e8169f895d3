//! Two programs compared, one row per size.

use iolab_analysis::equivalence::{FIRST_TRIALS, MARGINS, ProgramPair};
use iolab_workload::units::format_size;

use crate::block::Table;
use crate::layout::{Column, columns_over, none};
use crate::ratio;
use iolab_workload::escape_control::escape_control;

/// A margin for people: `5 %`.
pub fn margin_name(margin: f64) -> String {
    format!("{} %", (margin * 1e4).round() / 1e2)
}

/// The table: the ratio of the times, the p-values of the t tests on the first trials, and the p-values of the
/// tests of equivalence.
pub fn table(pair: &ProgramPair) -> Table {
    let held = match pair.held.as_slice() {
        [] => String::new(),
        held => format!(" with {}", escape_control(&held.join(" "))),
    };
    let programs = format!(
        "{} over {}",
        escape_control(&pair.new),
        escape_control(&pair.base)
    );
    let trials = FIRST_TRIALS.map(|trials| trials.to_string()).join(" and ");
    let title = format!(
        "{}: ratio of the times within blocks, {programs}{held}",
        escape_control(&pair.factor)
    );
    let notes = [
        "95 % intervals, simultaneous over all rows".to_owned(),
        format!("W, S: p of Welch's and Student's t test on the first {trials} measured trials"),
        "=: p of the test that shows equivalence within a margin".to_owned(),
    ];
    Table::new(title, notes, columns(pair))
}

fn columns(pair: &ProgramPair) -> Vec<Column> {
    let column = columns_over(&pair.points);
    let p = |p: Option<f64>| p.map_or_else(none, p_value);
    let region = column("region", 0, &|point| format_size(point.size));
    let mut columns: Vec<Column> = pair.has_files.then_some(region).into_iter().collect();
    let estimates: Vec<_> = pair.points.iter().map(|point| point.ratio).collect();
    columns.extend(ratio::columns("ratio", &estimates));
    for (i, trials) in FIRST_TRIALS.iter().enumerate() {
        columns.push(column(&format!("W {trials}"), 2, &|point| {
            p(point.first_trials[i].map(|t| t.welch))
        }));
        columns.push(column(&format!("S {trials}"), 3, &|point| {
            p(point.first_trials[i].map(|t| t.student))
        }));
    }
    for (i, margin) in MARGINS.iter().enumerate() {
        let heading = format!("= {}", margin_name(*margin));
        columns.push(column(&heading, 0, &|point| p(point.equivalence[i])));
    }
    columns
}

/// Three decimals suffice to compare with 0.05, and leave space for four tests in a row.
fn p_value(p: f64) -> String {
    if p < 0.001 {
        "<0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}
