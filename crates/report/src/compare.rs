//! A comparison of two sides: as text, as rows, as one JSON object.

use std::io::{self, Write};

use crate::findings::{overall, tally};
use iolab_analysis::analysis::Response;
use iolab_analysis::compare::{
    CellComparison, Comparison, Difference, Further, POWER, ReplicationUnit, Side,
};
use iolab_analysis::imbalance::Imbalance;
use iolab_stats::{Interval, RankMethod, Ratio, Summary, TTest};
use iolab_workload::quantity::{digits, format_p, format_percent, significant};
use serde_json::{Map, Value, json};

use crate::layout::{self, Column, none, wrapped};
use crate::markdown::line;
use crate::rows::{Field, Format, RowWriter, columns_of, field, text as text_field};
use crate::table::bare;
use iolab_workload::escape_control::escape_control;

/// The comparison for a terminal of `width` columns, without its closing remarks.
pub fn text(comparison: &Comparison, width: u16) -> String {
    wrapped(&heading(comparison), width) + "\n" + &layout::text(columns(comparison), width)
}

/// The comparison in Markdown, with its closing remarks.
pub fn markdown(comparison: &Comparison) -> String {
    let heading = heading(comparison);
    let lines = heading.lines().map(|text| line(text) + "\n");
    let remarks = remarks(comparison);
    let remarks = remarks.iter().map(|text| format!("- {}\n", line(text)));
    let table = layout::markdown(columns(comparison));
    lines
        .chain(["\n".to_owned(), table, "\n".to_owned()])
        .chain(remarks)
        .collect()
}

/// What is compared, and what differs besides.
fn heading(comparison: &Comparison) -> String {
    let mut lines = vec![
        format!("base: {}", escape_control(&comparison.base)),
        format!("new:  {}", escape_control(&comparison.new)),
    ];
    if !comparison.differences.is_empty() {
        lines.push("\nThe two differ in:".to_owned());
        lines.extend(difference_lines(&comparison.differences));
    }
    for (side, cells) in [
        ("base", &comparison.only_base),
        ("new", &comparison.only_new),
    ] {
        if let [first, rest @ ..] = cells.as_slice() {
            let more = match rest.len() {
                0 => String::new(),
                n => format!(" and {n} more"),
            };
            lines.push(format!(
                "\nOnly {side} has: {}{more}",
                escape_control(first)
            ));
        }
    }
    lines.push(format!("\n{}\n", caption(comparison)));
    lines.join("\n")
}

/// A line for each difference between two sides.
pub(crate) fn difference_lines(differences: &[Difference]) -> impl Iterator<Item = String> {
    differences.iter().map(|d| {
        let [what, base, new] = [&d.what, &d.base, &d.new].map(|text| escape_control(text));
        format!("  {what}: {base} -> {new}")
    })
}

/// What the table shows.
pub(crate) fn caption(comparison: &Comparison) -> String {
    let within = if comparison.cells.iter().any(|cell| cell.shares_blocks) {
        " within blocks"
    } else {
        ""
    };
    format!(
        "{}: medians, ratio new/base{within} with its 95 % interval, margin {}",
        comparison.measured(),
        format_percent(comparison.terms.margin)
    )
}

pub(crate) fn columns(comparison: &Comparison) -> Vec<Column> {
    let response = comparison.response;
    let column = |heading: &str, dispensable, value: &dyn Fn(&CellComparison) -> String| {
        Column::new(heading, dispensable, comparison.cells.iter().map(value))
    };
    let level = |i: usize| {
        move |c: &CellComparison| {
            escape_control(c.levels.get(i).map_or("", String::as_str)).into_owned()
        }
    };
    let factors = comparison.factors.iter().enumerate();
    let mut columns: Vec<Column> = factors
        .map(|(i, factor)| column(&escape_control(factor), 0, &level(i)))
        .collect();
    let median = |side: &Side| {
        side.summary
            .map_or_else(none, |s| value(response, s.median))
    };
    let n = |side: &Side| side.summary.map_or(0, |s| s.n);
    columns.extend([
        column("n", 4, &|c| format!("{}+{}", n(&c.base), n(&c.new))),
        column("base", 1, &|c| median(&c.base)),
        column("new", 1, &|c| median(&c.new)),
        column(estimator(comparison), 0, &|c| {
            c.ratio().map_or_else(none, |r| factor(r.ratio))
        }),
        column("95 % interval", 0, &|c| {
            let interval = c.ratio().and_then(|r| r.interval);
            interval.map_or_else(none, |i| format!("{} to {}", factor(i.low), factor(i.high)))
        }),
    ]);
    // Who asked for several tests wants to see them.
    let dear = if comparison.terms.tests.len() > 1 {
        2
    } else {
        4
    };
    for test in &comparison.terms.tests {
        let p = |c: &CellComparison| c.p(*test).map_or_else(none, format_p);
        columns.push(column(&format!("p ({test})"), dear, &p));
    }
    if comparison.cells.iter().any(|cell| cell.shares_blocks) {
        let p = |c: &CellComparison| c.dependent_p.map_or_else(none, format_p);
        columns.push(column("p (blocks)", 2, &p));
    }
    if comparison.cells.len() > 1 {
        let p = |c: &CellComparison| c.p_adjusted.map_or_else(none, format_p);
        columns.push(column("p (Holm)", 3, &p));
    }
    for (i, n) in comparison.terms.repeats.iter().enumerate() {
        let test = comparison.terms.deciding();
        let p = |c: &CellComparison| {
            let p = c.repeats.get(i).and_then(|repeats| repeats.p(test));
            p.map_or_else(none, format_p)
        };
        columns.push(column(&format!("p (first {n})"), 0, &p));
    }
    columns.push(column("A12", 5, &|c| {
        c.a12.map_or_else(none, |a| format!("{a:.2}"))
    }));
    if comparison
        .cells
        .iter()
        .any(CellComparison::is_served_differently)
    {
        let served = |c: &CellComparison| match &c.served {
            Some((base, new)) if base == new => escape_control(base).into_owned(),
            Some((base, new)) => format!("{} -> {}", escape_control(base), escape_control(new)),
            None => none(),
        };
        columns.push(column("served by", 0, &served).left());
    }
    columns.push(column("verdict", 0, &verdict).left());
    columns
}

/// The heading of the ratios: what they are ratios of.
fn estimator(comparison: &Comparison) -> &'static str {
    match comparison.cells.iter().any(|cell| cell.shares_blocks) {
        true => "ratio in blocks",
        false => "ratio of medians",
    }
}

fn verdict(cell: &CellComparison) -> String {
    match cell.further {
        Some(Further::Trials(n)) => format!("{} (+{n})", cell.verdict),
        _ => cell.verdict.to_string(),
    }
}

/// A ratio to three decimals: what matters is its distance from 1.
pub(crate) fn factor(ratio: f64) -> String {
    if (0.01..100.0).contains(&ratio) {
        format!("{ratio:.3}")
    } else {
        significant(ratio)
    }
}

/// A value as the table of one run writes it.
pub(crate) fn value(response: Option<Response>, value: f64) -> String {
    response.map_or_else(|| digits(value, 5), |r| bare(r, value))
}

/// What follows from the table, in sentences.
pub fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut remarks = vec![tally(comparison)];
    remarks.extend(rests_on(comparison.unit).map(str::to_owned));
    remarks.extend(disturbed(comparison));
    remarks.extend(overall(comparison));
    remarks.extend(advice(comparison));
    let served = comparison.cells.iter();
    let served = served.filter(|c| c.is_served_differently()).count();
    if served > 0 {
        remarks.push(format!(
            "In {} the bytes did not come from the same place on both sides: the ratio there says nothing about the storage.",
            cells(served)
        ));
    }
    let drifting = comparison.drifting();
    if drifting > 0 {
        let advice = if comparison.cells.iter().any(|cell| cell.shares_blocks) {
            "Both sides went through the same blocks and drifted together: the verdicts rest on the ratios within blocks."
        } else {
            "The intervals there are too narrow. What drifts within a run differs between runs too; measure both sides in one run, or repeat them in alternation."
        };
        remarks.push(format!(
            "In {} the trials drift with time (Mann-Kendall, Holm). {advice}",
            cells(drifting)
        ));
    }
    remarks
}

/// What the verdicts rest on, where a reader may take them for more.
fn rests_on(unit: ReplicationUnit) -> Option<&'static str> {
    match unit {
        ReplicationUnit::Numbers | ReplicationUnit::Blocks => None,
        ReplicationUnit::SameRun => Some("Both files hold the same run."),
        ReplicationUnit::ComputedRuns => Some(
            "Both runs were computed by models: nothing differs between two runs of a model but the seed, which differs between trials too. So the trials within the runs decide.",
        ),
        ReplicationUnit::Runs => Some(
            "One run on each side: the intervals show the spread of the trials within these two runs. Runs of an unchanged machine differ by more, and two runs cannot show by how much, so no cell is called slower or faster. Compare several runs of each side (iolab compare --base FILE... --new FILE...), compare the new run with earlier ones (iolab gate --history FOLDER NEW), or measure both in one run and compare them with --by.",
        ),
        ReplicationUnit::TrialsWithinRuns => Some(
            "Judged within the runs (--within-run): the verdicts allow for the spread of the trials within these two runs, not for what differs from run to run on an unchanged machine.",
        ),
    }
}

/// In what the sides differ that disturbs, each once.
fn disturbed(comparison: &Comparison) -> Vec<String> {
    let mut found: Vec<(Imbalance, usize)> = Vec::new();
    for imbalance in comparison.pairs.iter().flat_map(|pair| &pair.disturbed) {
        match found.iter_mut().find(|(d, _)| d.what == imbalance.what) {
            Some((_, n)) => *n += 1,
            None => found.push((*imbalance, 1)),
        }
    }
    found
        .iter()
        .map(|(what, n)| imbalance_words(what, *n))
        .collect()
}

/// A disturbance of so many cells, and what to do.
pub(crate) fn imbalance_words(found: &Imbalance, n: usize) -> String {
    format!(
        "Disturbed in {}: {}, {} on the base's side, {} on the new one. A difference there may come from that: {}.",
        cells(n),
        found.what.words(),
        found.base_words(),
        found.new_words(),
        found.what.remedy()
    )
}

/// How many trials would settle what is unknown.
fn advice(comparison: &Comparison) -> Option<String> {
    let further = || comparison.cells.iter().filter_map(|c| c.further);
    let trials = || {
        further().filter_map(|f| match f {
            Further::Trials(n) => Some(n),
            Further::TooMany => None,
        })
    };
    let most = trials().max();
    let hopeless = further().filter(|f| *f == Further::TooMany).count();
    let power = format_percent(POWER);
    let mut parts = Vec::new();
    if let Some(most) = most {
        parts.push(format!(
            "With this spread, {most} more {} on each side would settle {} with a chance of {power} (--set trials_min=N).",
            if most == 1 { "trial" } else { "trials" },
            cells(trials().count())
        ));
    }
    if hopeless > 0 {
        parts.push(format!(
            "In {} the ratio is too close to the margin, or the spread too wide, for a reasonable number of trials to settle it.",
            cells(hopeless)
        ));
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

pub(crate) fn cells(n: usize) -> String {
    match n {
        1 => "1 cell".to_owned(),
        n => format!("{n} cells"),
    }
}

/// Writes one row per cell as CSV.
///
/// # Errors
/// When the output cannot be written.
pub fn csv(comparison: &Comparison, to: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<Vec<Field>> = (0..comparison.cells.len())
        .map(|index| row(comparison, index))
        .collect();
    let mut writer = RowWriter::new(to, Format::Csv, columns_of(rows.first()))?;
    for row in &rows {
        writer.row(row)?;
    }
    writer.finish()
}

/// Writes everything as one JSON object; docs/OUTPUT.md names its parts.
///
/// # Errors
/// When the output cannot be written.
pub fn json(comparison: &Comparison, to: &mut dyn Write) -> io::Result<()> {
    let differences: Vec<Value> = comparison
        .differences
        .iter()
        .map(|d| json!({"what": d.what, "base": d.base, "new": d.new}))
        .collect();
    let cells: Vec<Value> = (0..comparison.cells.len())
        .map(|index| {
            let mut cell: Map<String, Value> = row(comparison, index).into_iter().collect();
            let pair = &comparison.pairs[index];
            cell.insert("base_values".to_owned(), json!(pair.base));
            cell.insert("new_values".to_owned(), json!(pair.new));
            Value::Object(cell)
        })
        .collect();
    let tests: Vec<String> = comparison
        .terms
        .tests
        .iter()
        .map(ToString::to_string)
        .collect();
    let whole = json!({
        "base": comparison.base,
        "new": comparison.new,
        "response": comparison.response.map(|r| r.to_string()),
        "unit": comparison.response.map(Response::unit),
        "margin": comparison.terms.margin,
        "tests": tests,
        "differences": differences,
        "only_base": comparison.only_base,
        "only_new": comparison.only_new,
        "overall": overall_object(comparison),
        "remarks": remarks(comparison),
        "cells": cells,
    });
    serde_json::to_writer_pretty(&mut *to, &whole)?;
    writeln!(to)
}

fn overall_object(comparison: &Comparison) -> Option<Value> {
    let overall = comparison.overall?;
    let mut object: Map<String, Value> = ratio_fields("ratio", Some(overall.ratio))
        .into_iter()
        .collect();
    object.insert("blocks".to_owned(), json!(overall.blocks));
    object.insert("tost_p".to_owned(), json!(overall.tost_p));
    Some(Value::Object(object))
}

/// One cell with every figure.
fn row(comparison: &Comparison, index: usize) -> Vec<Field> {
    let cell = &comparison.cells[index];
    let mut row: Vec<Field> = comparison
        .factors
        .iter()
        .zip(&cell.levels)
        .map(|(factor, level)| text_field(&format!("level_{}", escape_control(factor)), level))
        .collect();
    row.extend(side_fields("base", &cell.base));
    row.extend(side_fields("new", &cell.new));
    row.extend(ratio_fields(
        "ratio_within_blocks",
        cell.ratio_within_blocks,
    ));
    row.extend(ratio_fields("ratio_of_medians", cell.ratio_of_medians));
    row.extend(ratio_fields("ratio_of_means", cell.ratio_of_means));
    row.extend(test_fields("welch", cell.welch));
    row.extend(test_fields("student", cell.student));
    let ranks = cell.mann_whitney;
    let method = ranks.map(|m| match m.method {
        RankMethod::Exact => "exact",
        RankMethod::Asymptotic => "asymptotic",
    });
    let further = cell.further.and_then(|f| match f {
        Further::Trials(n) => Some(n),
        Further::TooMany => None,
    });
    row.extend([
        field("mann_whitney_u", ranks.map(|m| m.u)),
        field("mann_whitney_p", ranks.map(|m| m.p)),
        field("mann_whitney_method", method),
        field("p_adjusted", cell.p_adjusted),
        field("dependent_p", cell.dependent_p),
        field("dependent_p_adjusted", cell.dependent_p_adjusted),
        field("a12", cell.a12),
        field("tost_p", cell.equivalence.map(|e| e.p)),
        field("tost_dependent_p", cell.tost_dependent_p),
        field(
            "ratio_of_geometric_means",
            cell.equivalence.map(|e| e.ratio),
        ),
    ]);
    let within = cell.equivalence.map(|e| e.interval);
    row.extend(interval_fields("ratio_of_geometric_means", within));
    for repeats in &cell.repeats {
        let n = repeats.n;
        row.extend([
            field(&format!("welch_p_first_{n}"), repeats.welch_p),
            field(&format!("student_p_first_{n}"), repeats.student_p),
            field(&format!("mann_whitney_p_first_{n}"), repeats.mann_whitney_p),
        ]);
    }
    let served = cell.served.as_ref();
    row.extend([
        field("base_served_by", served.map(|(base, _)| base.clone())),
        field("new_served_by", served.map(|(_, new)| new.clone())),
        field("verdict", cell.verdict.to_string()),
        field("further_trials", further),
    ]);
    row
}

fn side_fields(name: &str, side: &Side) -> Vec<Field> {
    let of = |get: fn(&Summary) -> Option<f64>| side.summary.as_ref().and_then(get);
    let mut fields = vec![field(&format!("{name}_n"), side.summary.map_or(0, |s| s.n))];
    let values = [
        ("median", of(|s| Some(s.median))),
        ("median_low", of(|s| s.median_interval.map(|i| i.low))),
        ("median_high", of(|s| s.median_interval.map(|i| i.high))),
        ("q1", of(|s| Some(s.q1))),
        ("q3", of(|s| Some(s.q3))),
        ("mean", of(|s| s.mean)),
        ("sd", of(|s| s.sd)),
        ("drift_p", side.drift_p),
    ];
    fields.extend(values.map(|(what, value)| field(&format!("{name}_{what}"), value)));
    fields
}

fn ratio_fields(name: &str, ratio: Option<Ratio>) -> Vec<Field> {
    let mut fields = vec![field(name, ratio.map(|r| r.ratio))];
    fields.extend(interval_fields(name, ratio.and_then(|r| r.interval)));
    fields
}

fn interval_fields(name: &str, interval: Option<Interval>) -> [Field; 2] {
    [
        field(&format!("{name}_low"), interval.map(|i| i.low)),
        field(&format!("{name}_high"), interval.map(|i| i.high)),
    ]
}

fn test_fields(name: &str, test: Option<TTest>) -> Vec<Field> {
    let interval = test.map(|t| t.interval);
    let mut fields = vec![
        field(&format!("{name}_t"), test.and_then(|t| t.t)),
        field(&format!("{name}_df"), test.map(|t| t.df)),
        field(&format!("{name}_p"), test.map(|t| t.p)),
    ];
    let difference = format!("{name}_difference");
    fields.push(field(&difference, test.map(|t| t.difference)));
    fields.extend(interval_fields(&difference, interval));
    fields
}
