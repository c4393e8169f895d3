//! Comparison of several runs, and of a new run with earlier ones: as text, as rows, as a JSON object.

pub(crate) mod data;

use std::io::{self, Write};

use iolab_analysis::compare::CellVerdict;
use iolab_analysis::gate::Gate;
use iolab_analysis::runs::{
    GATE_POWER, HISTORY_MIN, Judged, ReportedChanges, RunName, RunsCell, RunsComparison, ratio,
};
use iolab_figure::result_names;
use iolab_record::ServedBy;
use iolab_workload::quantity::{counted, digits, format_p, format_percent};
use iolab_workload::response::Response;
use iolab_workload::settings::cell_label;

use crate::cell_counts::cells;
use crate::compare::{
    SaidOfCell, answer, bounds, difference_lines, doubt_lines, factor, factor_shown, some_of,
    undefined, without_requests,
};
use crate::exclusion::excluded;
use crate::layout::{self, Column, none, wrapped};
use crate::markdown::sentence;
use crate::ratio::RatioShown;
use crate::rows::{Field, Format, RowWriter, columns_of};
use crate::runs::data::{GateDocument, RunsDocument, RunsRow};
use crate::table::bare;
use crate::values::fields_of;
use iolab_workload::escape_control::escape_control;

/// The comparison for a terminal of `width` columns, without its closing remarks.
pub fn text(compared: &RunsComparison, width: u16) -> String {
    wrapped(&format!("{}\n\n", conclusion(compared)), width) + &table_text(compared, width)
}

/// Heading and table for a terminal.
fn table_text(compared: &RunsComparison, width: u16) -> String {
    wrapped(&heading(compared), width) + "\n" + &layout::text(columns(compared), width)
}

/// The comparison in one line: `read-size on /mnt/disk, 4 runs against 5: 2 of 7 cells slower, the most 0.71 times (0.66 to 0.77)
/// at bs=4KiB; cannot tell in 5: wide intervals`.
pub fn conclusion(compared: &RunsComparison) -> String {
    let said = |judged: &Judged, at: String| SaidOfCell {
        verdict: judged.verdict,
        ratio: judged
            .contrast
            .as_ref()
            .map(|c| RatioShown::from((ratio(c), judged.interval)).bounded(judged.bound)),
        at,
        response: Some(compared.response),
    };
    let each = compared.cells.iter().map(|cell| {
        let at = cell_label(&compared.factors, &cell.levels);
        said(&cell.judged, at)
    });
    let each: Vec<SaidOfCell> = each.collect();
    let together = compared.overall.as_ref();
    let told = [CellVerdict::Slower, CellVerdict::Faster];
    let together = together.filter(|all| told.contains(&all.verdict));
    let together = together.map(|all| {
        let all = answer(&[said(all, String::new())], compared.terms.margin);
        format!("; all cells together {all}")
    });
    let text = format!(
        "{} on {}, {} against {}: {}{}",
        compared.experiment,
        compared.target,
        counted(compared.new.len() as u64, "run"),
        compared.base.len(),
        answer(&each, compared.terms.margin),
        together.unwrap_or_default()
    );
    escape_control(&text).into_owned()
}

/// The comparison in Markdown, with its closing remarks.
pub fn markdown(compared: &RunsComparison) -> String {
    format!("**{}**\n\n", sentence(&conclusion(compared)))
        + &table_markdown(compared)
        + &list_markdown(&remarks(compared))
}

/// Heading and table.
fn table_markdown(compared: &RunsComparison) -> String {
    let heading = heading(compared);
    let lines: String = heading.lines().map(|text| sentence(text) + "\n").collect();
    format!("{lines}\n{}\n", layout::markdown(columns(compared)))
}

fn list_markdown(remarks: &[String]) -> String {
    let item = |text: &String| format!("- {}\n", sentence(text));
    remarks.iter().map(item).collect()
}

fn heading(compared: &RunsComparison) -> String {
    let mut lines = vec![
        format!("base: {}", side(&compared.base)),
        format!("new:  {}", side(&compared.new)),
    ];
    for (side, targets) in [
        ("base", &compared.base_targets),
        ("new side", &compared.new_targets),
    ] {
        if targets.len() > 1 {
            lines.push(format!(
                "\nThe {side} mixes runs on {} targets: {}. The spread from run to run is that between these.",
                targets.len(),
                escape_control(&targets.join(", "))
            ));
        }
    }
    if !compared.differences.is_empty() {
        lines.push("\nThe last run of the base and the first new one differ in:".to_owned());
        lines.extend(difference_lines(&compared.differences));
    }
    for (side, alone) in [("base", &compared.only_base), ("new", &compared.only_new)] {
        lines.extend(some_of(alone).map(|cells| format!("\nOnly {side} has: {cells}")));
    }
    lines.extend(without_requests(&compared.without_requests));
    let together = match compared.cells.len() {
        1 => String::new(),
        n => format!(" (simultaneous over {n} cells and all together)"),
    };
    let ratio = match compared.terms.looks_for {
        ReportedChanges::Changes => format!(
            "ratio new/base with its 95 % interval{together}, margin {}",
            format_percent(compared.terms.margin)
        ),
        _ => format!("and the 95 % interval that they predict for one new run{together}"),
    };
    lines.push(format!(
        "\n{}: geometric mean of the medians of the runs, {ratio}\n",
        compared.response
    ));
    lines.join("\n")
}

/// The day of a time as run files write it.
pub(crate) fn day(utc: &str) -> String {
    escape_control(utc.get(..10).unwrap_or(utc)).into_owned()
}

/// The runs of a side: number, time span, and files.
fn side(runs: &[RunName]) -> String {
    let day = |run: &RunName| day(&run.started_utc);
    match runs {
        [] => "no run".to_owned(),
        [only] => format!(
            "{} ({})",
            escape_control(&only.file),
            escape_control(&only.started_utc)
        ),
        [first, .., last] => format!(
            "{} runs from {} to {}, {} to {}",
            runs.len(),
            day(first),
            day(last),
            escape_control(&first.file),
            escape_control(&last.file)
        ),
    }
}

fn columns(compared: &RunsComparison) -> Vec<Column> {
    let column = |heading: &str, dispensable, value: &dyn Fn(&RunsCell) -> String| {
        Column::new(heading, dispensable, compared.cells.iter().map(value))
    };
    let level = |i: usize| {
        move |c: &RunsCell| escape_control(c.levels.get(i).map_or("", String::as_str)).into_owned()
    };
    let factors = compared.factors.iter().enumerate();
    let mut columns: Vec<Column> = factors
        .map(|(i, factor)| column(&escape_control(factor), 0, &level(i)))
        .collect();
    let response = compared.response;
    let typical = |side: &[Option<f64>]| {
        geometric_mean(side).map_or_else(none, |value| bare(response, value))
    };
    let of = |value: fn(&Judged) -> Option<String>| {
        move |c: &RunsCell| value(&c.judged).unwrap_or_else(none)
    };
    columns.extend([
        column("runs", 4, &|c| {
            format!("{}+{}", known(&c.base), known(&c.new))
        }),
        column("base", 1, &|c| typical(&c.base)),
        column("new", 0, &|c| typical(&c.new)),
    ]);
    if compared.terms.looks_for != ReportedChanges::Changes {
        let predicted = |c: &RunsCell| {
            let (low, high) = predicted(c)?;
            Some(format!(
                "{} to {}",
                bare(response, low),
                bare(response, high)
            ))
        };
        columns.push(column("predicted", 1, &|c| {
            predicted(c).unwrap_or_else(none)
        }));
    }
    columns.push(column(
        "ratio",
        0,
        &of(|j| Some(factor_shown(ratio(&j.contrast?), j.interval, j.bound))),
    ));
    if compared.terms.looks_for == ReportedChanges::Changes {
        let interval = |j: &Judged| {
            let (low, high) = j.interval.filter(|_| j.bound.is_none())?;
            Some(format!("{} to {}", factor(low), factor(high)))
        };
        columns.push(column("95 % interval", 0, &of(interval)));
    }
    columns.extend([
        column(
            "run SD",
            2,
            &of(|j| Some(format_percent(j.contrast?.sd.exp_m1()))),
        ),
        column("p", 5, &of(|j| j.p.map(format_p))),
        column("p (adjusted)", 3, &of(|j| j.p_adjusted.map(format_p))),
        column(
            "detectable",
            2,
            &of(|j| {
                let change = 1.0 + j.detectable?;
                Some(match change > DETECTABLE_MAX {
                    true => format!(">x{DETECTABLE_MAX}"),
                    false => format!("x{}", factor(change)),
                })
            }),
        ),
    ]);
    if compared.cells.iter().any(RunsCell::is_served_differently) {
        let served = |c: &RunsCell| match c.served {
            Some((base, new)) if base == new => base.to_string(),
            Some((base, new)) => format!("{base} -> {new}"),
            None => none(),
        };
        columns.push(column("served by", 0, &served).left());
    }
    columns.push(
        column("verdict", 0, &|c| {
            result_names::verdict(c.judged.verdict).into_owned()
        })
        .left(),
    );
    columns
}

/// Number of runs with a value.
fn known(side: &[Option<f64>]) -> usize {
    side.iter().flatten().count()
}

fn geometric_mean(side: &[Option<f64>]) -> Option<f64> {
    let logs: Vec<f64> = side.iter().flatten().map(|value| value.ln()).collect();
    Some(iolab_stats::mean(&logs)?.exp())
}

/// The 95 % prediction interval of the base for one new run.
fn predicted(cell: &RunsCell) -> Option<(f64, f64)> {
    let base = geometric_mean(&cell.base)?;
    let (low, high) = cell.judged.interval?;
    let reach = (high / low).sqrt();
    Some((base / reach, base * reach))
}

/// What the line of the comparison and the table do not say, in sentences.
pub fn remarks(compared: &RunsComparison) -> Vec<String> {
    let mut remarks = conclusions(compared);
    remarks.extend(power(compared));
    remarks
}

/// The same without the changes that would have been found.
fn conclusions(compared: &RunsComparison) -> Vec<String> {
    let mut remarks: Vec<String> = undefined(&compared.undefined).collect();
    remarks.extend(without_value(compared));
    remarks.extend(overall(compared));
    remarks.extend(rates(compared));
    let doubts = compared
        .cells
        .iter()
        .map(|cell| cell.judged.doubts.as_slice());
    remarks.extend(doubt_lines(doubts));
    remarks.extend(bounds(compared.cells.iter().map(|cell| cell.judged.bound)));
    remarks
}

/// Why cells with too few values are not judged.
fn without_value(compared: &RunsComparison) -> Option<String> {
    let least = compared.terms.base_min.max(1);
    let lacks = |cell: &&RunsCell| known(&cell.base) < least || known(&cell.new) == 0;
    let lacking: Vec<&RunsCell> = compared.cells.iter().filter(lacks).collect();
    let response = compared.response;
    let of_models = |cell: &&RunsCell| {
        let served = cell.served.map(|(base, new)| [base, new]);
        served.is_some_and(|sides| sides.contains(&ServedBy::Model))
    };
    let remedy = match response.requests_min() {
        _ if response == Response::Cpu && lacking.iter().any(of_models) => {
            " A model has none: choose another --metric.".to_owned()
        }
        0 | 1 => String::new(),
        n => format!(" A trial with fewer than {n} requests has none: use a longer --time."),
    };
    (!lacking.is_empty()).then(|| {
        format!(
            "{} cannot be judged: too few runs have a value of the {response}.{remedy}",
            cells(lacking.len())
        )
    })
}

fn overall(compared: &RunsComparison) -> Option<String> {
    let all = compared.overall.as_ref()?;
    let contrast = all.contrast?;
    let (low, high) = all.interval?;
    Some(format!(
        "All undisturbed cells together: ratio {} (95 % interval {} to {}), run-to-run SD {}, p {} (adjusted); {}.",
        factor(ratio(&contrast)),
        factor(low),
        factor(high),
        format_percent(contrast.sd.exp_m1()),
        all.p_adjusted.map_or_else(none, format_p),
        result_names::verdict(all.verdict)
    ))
}

/// The error rates.
fn rates(compared: &RunsComparison) -> Option<String> {
    let judged = compared
        .cells
        .iter()
        .any(|cell| cell.judged.contrast.is_some());
    judged.then(|| {
        let alpha = format_percent(compared.terms.alpha);
        format!(
            "Changes are judged by the spread from run to run. On an unchanged machine at most {alpha} of such comparisons report a change in any cell."
        )
    })
}

/// Largest factor reported as detectable. Beyond it, there are too few runs to estimate their scatter.
const DETECTABLE_MAX: f64 = 10.0;

/// The detectable changes.
fn power(compared: &RunsComparison) -> Option<String> {
    let found = compared.cells.iter().filter_map(|c| c.judged.detectable);
    let found: Vec<f64> = found.map(|share| 1.0 + share).collect();
    let least = found.iter().copied().min_by(f64::total_cmp)?;
    let most = found.iter().copied().max_by(f64::total_cmp)?;
    if most > DETECTABLE_MAX {
        let beyond = found.iter().filter(|change| **change > DETECTABLE_MAX);
        let few = beyond.count();
        return Some(format!(
            "In {} even a change by a factor of {DETECTABLE_MAX} would not have been found with a chance of {}: give more runs of each side.",
            cells(few),
            format_percent(GATE_POWER)
        ));
    }
    let single = match found.len() {
        1 => format!("A change by a factor of {}", factor(most)),
        _ if factor(least) == factor(most) => {
            format!("A change by a factor of {} in one cell alone", factor(most))
        }
        _ => format!(
            "A change by a factor of {} to {}, depending on the cell, in that cell alone",
            factor(least),
            factor(most)
        ),
    };
    let all = compared
        .overall
        .as_ref()
        .and_then(|all| all.detectable)
        .map_or_else(String::new, |share| {
            format!(", or by {} in all cells", factor(1.0 + share))
        });
    Some(format!(
        "{single}{all} would have been found with a chance of {}.",
        format_percent(GATE_POWER)
    ))
}

/// The result of a gate, for a terminal of `width` columns, without its closing remarks.
pub fn gate_text(gate: &Gate, width: u16) -> String {
    let head = wrapped(&format!("{}\n\n", gate_summary(gate)), width);
    head + &match &gate.compared {
        Some(compared) => table_text(compared, width),
        None => format!("new: {}\n", escape_control(&gate.file)),
    }
}

/// The result of a gate, in Markdown.
pub fn gate_markdown(gate: &Gate) -> String {
    let table = gate
        .compared
        .as_ref()
        .map_or_else(String::new, table_markdown);
    format!("**{}**\n\n", sentence(&gate_summary(gate)))
        + &table
        + &list_markdown(&gate_remarks(gate))
}

/// The answer in one line, with the change that would have been found: `read-random on /mnt/disk, 1 run against 5: no change shown; a
/// change of 5 % would have been found (chance 90 %).`
pub fn gate_summary(gate: &Gate) -> String {
    let Some(compared) = &gate.compared else {
        return format!(
            "{}: cannot tell: {}.",
            escape_control(&gate.file),
            history(gate)
        );
    };
    let missing = compared.only_base.len();
    let missing = (missing > 0).then(|| {
        format!(
            "cannot tell in {} of the earlier runs, which the new one did not measure",
            cells(missing)
        )
    });
    let blind = gate.must_find.filter(|_| gate.blind() > 0);
    let blind = blind.map(|change| {
        format!(
            "cannot tell{}: the earlier runs differ too much from each other to find a change of {}",
            in_cells(gate.blind(), compared),
            format_percent(change)
        )
    });
    let parts = [Some(conclusion(compared)), missing, blind, sight(gate)];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    format!("{}.", parts.join("; "))
}

/// `no earlier run with this definition, machine and target, and 5 are needed`: where there are too few.
fn history(gate: &Gate) -> String {
    let found = match gate.history {
        0 => "no earlier run".to_owned(),
        n => counted(n as u64, "earlier run"),
    };
    format!("{found} with this definition, machine and target, and {HISTORY_MIN} are needed")
}

/// ` in 2 of 3 cells`; nothing where there is one cell.
fn in_cells(n: usize, compared: &RunsComparison) -> String {
    match compared.cells.len() {
        1 => String::new(),
        all => format!(" in {n} of {}", cells(all)),
    }
}

/// The change that a gate can detect, as a clause.
fn sight(gate: &Gate) -> Option<String> {
    let compared = gate.compared.as_ref()?;
    let change = |factor: f64| match factor < 2.0 {
        true => format!("of {:.0} %", ((factor - 1.0) * 100.0).max(1.0).ceil()),
        false => format!("by a factor of {}", digits(factor, 2)),
    };
    let sight = gate.detectable_changes()?;
    let (best, worst) = (change(sight.best), change(sight.worst));
    let everywhere = match (compared.cells.len(), compared.only_base.is_empty()) {
        (1, true) => "",
        (1, false) => " in the compared cell",
        (_, true) => " in each cell",
        (_, false) => " in each compared cell",
    };
    let what = if sight.worst > DETECTABLE_MAX {
        let is_beyond = |cell: &&RunsCell| {
            let detectable = cell.judged.detectable;
            detectable.is_none_or(|share| 1.0 + share > DETECTABLE_MAX)
        };
        let beyond = compared.cells.iter().filter(is_beyond).count();
        format!(
            "not even a change by a factor of {DETECTABLE_MAX} would have been found{}",
            in_cells(beyond, compared)
        )
    } else if best == worst {
        format!("a change {worst} would have been found{everywhere}")
    } else {
        format!(
            "a change {worst} would have been found{everywhere}, one {best} in the most precise cell"
        )
    };
    Some(format!("{what} (chance {})", format_percent(GATE_POWER)))
}

/// Conclusions for a gate, in sentences.
pub fn gate_remarks(gate: &Gate) -> Vec<String> {
    // Its line says what would have been found.
    let mut all = gate.compared.as_ref().map_or_else(Vec::new, conclusions);
    let mut reasons: Vec<(String, usize)> = Vec::new();
    for (_, why) in &gate.unused {
        let why = excluded(why);
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, n)) => *n += 1,
            None => reasons.push((why, 1)),
        }
    }
    if !reasons.is_empty() {
        let reasons: Vec<String> = reasons
            .into_iter()
            .map(|(why, n)| format!("{why} ({n})"))
            .collect();
        all.push(format!("Run files left out: {}.", reasons.join("; ")));
    }
    all
}

/// Writes one row per cell as CSV.
///
/// # Errors
/// When the output cannot be written.
pub fn csv(compared: Option<&RunsComparison>, to: &mut dyn Write) -> io::Result<()> {
    let rows: Vec<Vec<Field>> = compared.map_or(Ok(Vec::new()), |compared| {
        let rows = compared.cells.iter();
        let rows = rows.map(|cell| fields_of(&RunsRow::of(compared, cell)));
        rows.collect::<Result<_, _>>()
    })?;
    let mut writer = RowWriter::new(to, Format::Csv, columns_of(rows.first()))?;
    for row in &rows {
        writer.row(row)?;
    }
    writer.finish()
}

/// Writes a comparison as one JSON object; `iolab schema compare-runs` describes it.
///
/// # Errors
/// When the output cannot be written.
pub fn json(compared: &RunsComparison, to: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *to, &RunsDocument::of(compared))?;
    writeln!(to)
}

/// Writes the result of a gate as one JSON object; `iolab schema gate` describes it.
///
/// # Errors
///
/// When the output cannot be written.
pub fn gate_json(gate: &Gate, to: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *to, &GateDocument::of(gate))?;
    writeln!(to)
}
