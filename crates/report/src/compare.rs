//! A comparison of two sides: as text, as rows, as a JSON object.

pub(crate) mod conclusion;
pub(crate) mod data;

use std::io::{self, Write};

use crate::cell_counts::{self, cells};
use crate::disturber;
use crate::doubt::{has_values, on_side, remedy};
use crate::fact;
use crate::findings::overall;
use crate::setting_value::setting_value;
use iolab_analysis::analysis::Response;
use iolab_analysis::compare::{
    CellComparison, Comparison, Difference, DiffersIn, Further, HypothesisTest, POWER,
    ReplicationUnit, Side, SideName, SideValue,
};
use iolab_analysis::doubt::{RatioBound, Reason, SideDoubt};
use iolab_figure::result_names;
use iolab_plan::precondition::SteadyRounds;
use iolab_record::environment::KEYS;
use iolab_workload::counters::Traffic;
use iolab_workload::quantity::{counted, digits, format_p, format_percent, significant};
use iolab_workload::settings::cell_label;

use crate::layout::{self, Column, SCREEN_LINES, SCREEN_ROWS, none, wrapped};
use crate::markdown::sentence;
use crate::ratio;
use crate::rows::{Field, Format, RowWriter, columns_of};
use crate::table::bare;
use crate::values::fields_of;
pub(crate) use conclusion::{SaidOfCell, answer, measured};
pub(crate) use data::Differing;
use iolab_workload::escape_control::escape_control;

/// The comparison for a terminal of `width` columns, without its closing remarks.
pub fn text(comparison: &Comparison, width: u16) -> String {
    let head = format!("{}\n\n{}", conclusion(comparison), heading(comparison));
    wrapped(&head, width) + "\n" + &layout::text(columns(comparison), width)
}

/// The first screen: the answer, what else the sides differ in, the cells that differ most, and as many remarks as there is room for.
pub fn screen(comparison: &Comparison, width: u16) -> String {
    let head = wrapped(&conclusion(comparison), width) + "\n";
    let caption = wrapped(&caption(comparison), width);
    let mut notes: Vec<String> = Vec::new();
    if !comparison.differences.is_empty() {
        let all: Vec<String> = difference_lines(&comparison.differences).collect();
        let all: Vec<&str> = all.iter().map(|line| line.trim()).collect();
        notes.push(format!("The sides differ in {}", all.join("; ")));
    }
    for (side, cells) in [
        ("base", &comparison.only_base),
        ("new", &comparison.only_new),
    ] {
        notes.extend(some_of(cells).map(|cells| format!("Only {side} has: {cells}")));
    }
    notes.extend(remarks(comparison));
    let notes = notes
        .iter()
        .map(|note| layout::paragraph(note, "- ", width));
    let mut most = comparison.clone();
    // Where there is no room for all.
    if most.cells.len() > SCREEN_ROWS {
        most.cells.sort_by(|a, b| size(b).total_cmp(&size(a)));
    }
    let lines = |text: &str| text.lines().count();
    let notes: Vec<String> = notes.collect();
    let wanted: usize = notes.iter().map(|note| lines(note)).sum();
    // An empty line above the remarks.
    let left = SCREEN_LINES.saturating_sub(lines(&head) + lines(&caption) + 1);
    let table = left.saturating_sub(wanted.min(REMARK_LINES));
    let table = layout::first_rows(columns(&most), table, width);
    let mut text = format!("{head}{caption}{table}\n");
    for note in notes {
        if lines(&text) + lines(&note) > SCREEN_LINES {
            break;
        }
        text += &note;
    }
    text
}

/// Lines that remarks have before rows of the table take them.
const REMARK_LINES: usize = 5;

/// How far the ratio of a cell lies from 1, on the logarithm; 0 without one.
fn size(cell: &CellComparison) -> f64 {
    cell.estimate
        .map_or(0.0, |estimate| estimate.ratio.ln().abs())
}

/// The comparison in one line: `new.iolab against base.iolab: 3 of 8 cells slower, the most 0.71 times (0.66 to 0.77) at bs=4KiB;
/// cannot tell in 2: disturbed`.
pub fn conclusion(comparison: &Comparison) -> String {
    let cells = comparison.cells.iter().map(|cell| SaidOfCell {
        verdict: cell.verdict,
        ratio: cell.estimate.as_ref().map(ratio::of),
        at: cell_label(&comparison.factors, &cell.levels),
        response: comparison.response,
    });
    let cells: Vec<SaidOfCell> = cells.collect();
    let text = format!(
        "{} against {}: {}",
        comparison.new,
        comparison.base,
        answer(&cells, comparison.terms.margin)
    );
    escape_control(&text).into_owned()
}

/// The comparison in Markdown, with its closing remarks.
pub fn markdown(comparison: &Comparison) -> String {
    let heading = heading(comparison);
    let first = [format!("**{}**\n\n", sentence(&conclusion(comparison)))];
    let lines = heading.lines().map(|text| sentence(text) + "\n");
    let remarks = remarks(comparison);
    let remarks = remarks.iter().map(|text| format!("- {}\n", sentence(text)));
    let table = layout::markdown(columns(comparison));
    first
        .into_iter()
        .chain(lines)
        .chain(["\n".to_owned(), table, "\n".to_owned()])
        .chain(remarks)
        .collect()
}

/// What is compared, and other differences.
fn heading(comparison: &Comparison) -> String {
    let mut lines = vec![
        format!("base: {}", escape_control(&whole(&comparison.base))),
        format!("new:  {}", escape_control(&whole(&comparison.new))),
    ];
    if !comparison.differences.is_empty() {
        lines.push("\nThe two differ in:".to_owned());
        lines.extend(difference_lines(&comparison.differences));
    }
    for (side, cells) in [
        ("base", &comparison.only_base),
        ("new", &comparison.only_new),
    ] {
        lines.extend(some_of(cells).map(|cells| format!("\nOnly {side} has: {cells}")));
    }
    lines.extend(without_requests(&comparison.without_requests));
    lines.push(format!("\n{}\n", caption(comparison)));
    lines.join("\n")
}

/// `bs=4KiB and 2 more`; `None` without a cell.
pub(crate) fn some_of(cells: &[String]) -> Option<String> {
    let (first, rest) = cells.split_first()?;
    let more = match rest.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    Some(format!("{}{more}", escape_control(first)))
}

/// The line about cells that are not compared, since the group or the operation that is asked about has no requests there.
pub(crate) fn without_requests(cells: &[String]) -> Option<String> {
    let cells = some_of(cells)?;
    Some(format!(
        "\nNot compared, because no such request is made there: {cells}"
    ))
}

/// A line for each difference between two sides.
pub(crate) fn difference_lines(differences: &[Difference]) -> impl Iterator<Item = String> {
    differences.iter().map(|d| {
        let what = differs_in(&d.what);
        match (&d.base, &d.new) {
            (SideValue::Various, SideValue::Various) => {
                format!("  {what}: different in each of several cells")
            }
            (base, new) => {
                let (base, new) = (side_value(d, base), side_value(d, new));
                format!("  {what}: {base} -> {new}")
            }
        }
    })
}

/// What two sides differ in.
fn differs_in(what: &DiffersIn) -> String {
    match what {
        DiffersIn::TargetKind => "kind of target".to_owned(),
        DiffersIn::ToolVersion => "version of iolab".to_owned(),
        DiffersIn::Fact(key) => fact::name(key),
        DiffersIn::Disturbance(by) => disturber::words(*by).to_owned(),
        DiffersIn::Experiment
        | DiffersIn::Target
        | DiffersIn::Groups
        | DiffersIn::Setting { .. } => escape_control(&what.name()).into_owned(),
    }
}

/// What a side has of it.
fn side_value(difference: &Difference, value: &SideValue) -> String {
    match (value, &difference.what) {
        (SideValue::Known(text), DiffersIn::Fact(key)) => fact::value(key, text),
        (SideValue::Known(text), _) => escape_control(text).into_owned(),
        (SideValue::Set(setting, value), _) => setting_value(setting, value),
        (SideValue::Disturbed(by, value), _) => disturber::extent(*by, *value),
        // Where there is none, a run has no such fact.
        (SideValue::Unknown, DiffersIn::Fact(key))
            if Traffic::ALL
                .iter()
                .any(|what| KEYS.device_limit(*what).name() == key) =>
        {
            "none".to_owned()
        }
        (SideValue::Unknown, _) => "not known".to_owned(),
        (SideValue::Various, _) => "various, by cell".to_owned(),
    }
}

/// The name of a side with what was measured.
pub fn whole(side: &SideName) -> String {
    match side.of.as_str() {
        "" => side.name.clone(),
        of => format!("{} {of}", side.name),
    }
}

/// Explains the table.
pub(crate) fn caption(comparison: &Comparison) -> String {
    let within = if comparison.shares_blocks() {
        " within blocks"
    } else {
        ""
    };
    let intervals = match comparison.intervals {
        0 | 1 => String::new(),
        n => format!(" (simultaneous over {n} cells)"),
    };
    // Readers would think that p decides the verdict.
    let tests = comparison.terms.tests.iter();
    let tests: Vec<&str> = tests.map(|test| compares(*test)).collect();
    let p = match tests.is_empty() {
        true => String::new(),
        false => format!(
            ", which decides the verdict (p does not: {})",
            tests.join(", ")
        ),
    };
    format!(
        "{}: medians, ratio new/base{within} with its 95 % interval{intervals}{p}, margin {}",
        measured(comparison),
        format_percent(comparison.terms.margin)
    )
}

/// What a test compares.
fn compares(test: HypothesisTest) -> &'static str {
    match test {
        HypothesisTest::Welch => "Welch's test compares means",
        HypothesisTest::Student => "Student's test compares means",
        HypothesisTest::MannWhitney => "the Mann-Whitney test compares ranks",
    }
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
            c.estimate
                .map_or_else(none, |e| factor_shown(e.ratio, e.interval, e.bound))
        }),
        column("95 % interval", 0, &|c| {
            let estimate = c.estimate.filter(|e| e.bound.is_none());
            let interval = estimate.and_then(|e| e.interval);
            interval.map_or_else(none, |(low, high)| {
                format!("{} to {}", factor(low), factor(high))
            })
        }),
    ]);
    // Keeps the columns of several tests longer, since they were requested.
    let dear = if comparison.terms.tests.len() > 1 {
        2
    } else {
        4
    };
    for test in &comparison.terms.tests {
        let p = |c: &CellComparison| c.p(*test).map_or_else(none, format_p);
        columns.push(column(&format!("p ({test})"), dear, &p));
    }
    if comparison.cells.len() > 1 {
        let p = |c: &CellComparison| c.p_adjusted.map_or_else(none, format_p);
        columns.push(column("p (Holm)", 3, &p));
    }
    for (i, n) in comparison.terms.repeats.iter().enumerate() {
        let test = comparison.terms.first_test();
        let p = |c: &CellComparison| {
            let p = c.repeats.get(i).and_then(|repeats| repeats.p(test));
            p.map_or_else(none, format_p)
        };
        columns.push(column(&format!("p (first {n})"), 0, &p));
    }
    columns.push(column("A12", 5, &|c| {
        c.a12.map_or_else(none, |a| format!("{a:.2}"))
    }));
    if comparison.cells.iter().any(is_served_differently) {
        let served = |c: &CellComparison| match served_in_words(c) {
            Some((base, new)) if base == new => base,
            Some((base, new)) => format!("{base} -> {new}"),
            None => none(),
        };
        columns.push(column("served by", 0, &served).left());
    }
    let verdict = |cell: &CellComparison| verdict(cell, comparison.unit);
    columns.push(column("verdict", 0, &verdict).left());
    columns
}

/// Where the bytes of the base and of the new side came from.
pub(crate) fn served_in_words(cell: &CellComparison) -> Option<(String, String)> {
    let (base, new) = cell.served.as_ref()?;
    Some((result_names::served(base), result_names::served(new)))
}

fn is_served_differently(cell: &CellComparison) -> bool {
    served_in_words(cell).is_some_and(|(base, new)| base != new)
}

/// The heading of the ratios: their estimator.
fn estimator(comparison: &Comparison) -> &'static str {
    match comparison.shares_blocks() {
        true => "ratio in blocks",
        false => "ratio of medians",
    }
}

fn verdict(cell: &CellComparison, unit: ReplicationUnit) -> String {
    match cell.further {
        // Where trials are lacking, the interval beside it shows the rest.
        Some(Further::Trials(n)) => {
            format!("cannot tell (+{})", counted(n as u64, repeated(unit)))
        }
        _ => result_names::verdict(cell.verdict).into_owned(),
    }
}

/// What there is more of where more is measured.
fn repeated(unit: ReplicationUnit) -> &'static str {
    match unit {
        ReplicationUnit::Numbers => "value",
        ReplicationUnit::Blocks
        | ReplicationUnit::SameRun
        | ReplicationUnit::Runs
        | ReplicationUnit::ComputedRuns
        | ReplicationUnit::TrialsWithinRuns => "trial",
    }
}

/// A ratio with three decimals: its distance from 1 matters.
pub(crate) fn factor(ratio: f64) -> String {
    if (0.01..100.0).contains(&ratio) {
        format!("{ratio:.3}")
    } else {
        significant(ratio)
    }
}

/// The same, or the bound that the ratio is: `at most 0.00116`.
pub(crate) fn factor_shown(
    ratio: f64,
    interval: Option<(f64, f64)>,
    bound: Option<RatioBound>,
) -> String {
    match bound {
        None => factor(ratio),
        Some(bound) => {
            let end = bound.of(ratio, interval);
            format!("{} {}", result_names::bound(bound), factor(end))
        }
    }
}

/// Why ratios are only bounds, with the number of cells; `None` where none is.
pub(crate) fn bounds(all: impl Iterator<Item = Option<RatioBound>>) -> Option<String> {
    let n = all.flatten().count();
    (n > 0).then(|| {
        format!(
            "In {} one side did not hold its rate: its times grow with the length of a trial, so that the ratio is a bound.",
            cells(n)
        )
    })
}

/// A value as in the table of one run.
pub(crate) fn value(response: Option<Response>, value: f64) -> String {
    response.map_or_else(|| digits(value, 5), |r| bare(r, value))
}

/// What the table rests on and what would settle it, in sentences; how many cells have which verdict stands in [`conclusion`].
pub fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut remarks: Vec<String> = undefined(&comparison.undefined).collect();
    remarks.extend(comparison.unsteady.iter().map(|name| {
        format!(
            "The rounds of {} did NOT become steady: its values are those of the last ones.",
            escape_control(name)
        )
    }));
    remarks.extend(rests_on(comparison.unit).map(str::to_owned));
    let doubts = comparison.cells.iter().map(|cell| cell.doubts.as_slice());
    remarks.extend(doubt_lines(doubts));
    remarks.extend(bounds(
        comparison.cells.iter().map(|cell| cell.estimate?.bound),
    ));
    remarks.extend(overall(comparison));
    remarks.extend(too_few(comparison));
    remarks.extend(advice(comparison));
    let drifting = comparison.drifting();
    if drifting > 0 {
        remarks.push(format!(
            "In {} the trials drift with time (Mann-Kendall, Holm). {}",
            cells(drifting),
            drift_advice(comparison)
        ));
    }
    remarks
}

/// What is not known of run files without a definition that can be read.
pub(crate) fn undefined(files: &[String]) -> impl Iterator<Item = String> {
    files.iter().map(|file| {
        format!(
            "The definition in {} cannot be read; rounds and order are not known.",
            escape_control(file)
        )
    })
}

/// What follows for the verdicts where trials drift.
fn drift_advice(comparison: &Comparison) -> &'static str {
    match comparison.unit {
        _ if comparison.shares_blocks() => {
            "Both sides went through the same blocks and drifted together: the verdicts rest on the ratios within blocks."
        }
        ReplicationUnit::SameRun => "It is the same drift on both sides.",
        ReplicationUnit::ComputedRuns => {
            "The intervals there are too narrow: the state of the model changes during a run."
        }
        ReplicationUnit::Numbers
        | ReplicationUnit::Blocks
        | ReplicationUnit::Runs
        | ReplicationUnit::TrialsWithinRuns => {
            "The intervals there are too narrow. What drifts within a run differs between runs too; measure both sides in one run, or repeat them in alternation."
        }
    }
}

/// A sentence about the unit of replication, where readers may overestimate the verdicts.
fn rests_on(unit: ReplicationUnit) -> Option<&'static str> {
    match unit {
        ReplicationUnit::Numbers | ReplicationUnit::Blocks => None,
        ReplicationUnit::SameRun => Some("Both files hold the same run."),
        ReplicationUnit::ComputedRuns => Some(
            "Both runs were computed by models, and the trials within the runs decide. What a model draws for longer than a trial (drift_ms of noise, rare stalls) differs from run to run too: of such models compare several runs of each side.",
        ),
        ReplicationUnit::Runs => Some(
            "One run on each side: the intervals show the spread of the trials within these two runs. Runs of an unchanged machine differ by more, and two runs cannot show by how much, so no cell is called slower or faster. Compare several runs of each side (iolab compare --base FILE... --new FILE...), compare the new run with earlier ones (iolab gate --history FOLDER NEW), or measure both in one run and compare them with --by.",
        ),
        ReplicationUnit::TrialsWithinRuns => Some(
            "Judged within the runs (--within-run): the verdicts allow for the spread of the trials within these two runs, not for what differs from run to run on an unchanged machine.",
        ),
    }
}

/// Reasons that could reverse verdicts, each kind once, with remedies.
pub(crate) fn doubt_lines<'a>(cells: impl Iterator<Item = &'a [SideDoubt]>) -> Vec<String> {
    let mut found: Vec<(&SideDoubt, usize)> = Vec::new();
    for doubt in cells.flatten() {
        let alike = |known: &SideDoubt| {
            known.side == doubt.side && known.reason.name() == doubt.reason.name()
        };
        match found.iter_mut().find(|(known, _)| alike(known)) {
            Some((_, n)) => *n += 1,
            None => found.push((doubt, 1)),
        }
    }
    let line = |(doubt, n): (&SideDoubt, usize)| {
        let what = on_side(doubt, "the base's side", "the new side");
        let first = match n > 1 && has_values(&doubt.reason) {
            true => " (values of the first)",
            false => "",
        };
        let follows = match doubt.reason {
            Reason::ServedBy { .. } => "The ratio there says nothing about the storage.",
            Reason::Dependent { .. } => "The interval there is too narrow.",
            Reason::TwoGroups { .. } => "Which group comes next is not known.",
            _ => "A difference there may come from that.",
        };
        let remedy = remedy(&doubt.reason).map_or_else(String::new, |text| format!(" {text}."));
        let cells = cell_counts::cells(n);
        format!("Cannot tell in {cells}: {what}{first}. {follows}{remedy}")
    };
    found.into_iter().map(line).collect()
}

/// A sentence about cells with too few trials for an interval.
fn too_few(comparison: &Comparison) -> Option<String> {
    let has_none = |cell: &&CellComparison| {
        cell.estimate.is_some_and(|one| one.interval.is_none()) && cell.verdict.is_open()
    };
    let without = comparison.cells.iter().filter(has_none).count();
    let together = match comparison.comparable() {
        0 | 1 => String::new(),
        n => format!(" that holds together with those of {n} cells"),
    };
    (without > 0).then(|| {
        let least = comparison.trials_min();
        let more = match comparison.is_of_rounds {
            true => window_advice(least),
            false => format!("a longer --budget, or --set trials_min={least}"),
        };
        format!(
            "{} too few trials for an interval{together}: {least} on each side are needed ({more}).",
            match without {
                1 => "1 cell has".to_owned(),
                n => format!("{} have", cells(n)),
            },
        )
    })
}

/// How rounds until they are steady give so many trials: a window that is longer than a run has rounds never is steady.
fn window_advice(trials: usize) -> String {
    match trials <= SteadyRounds::default().rounds as usize {
        true => format!("window={trials} in --precondition, with rounds={trials} or more"),
        false => "several runs on each side: --base FILE... --new FILE...; a window of so many rounds is rarely steady".to_owned(),
    }
}

/// A sentence about the number of trials for open verdicts.
fn advice(comparison: &Comparison) -> Option<String> {
    let mut trials: Vec<(usize, usize)> = Vec::new();
    let mut hopeless = 0;
    for cell in &comparison.cells {
        let there = |side: &Side| side.summary.as_ref().map_or(0, |summary| summary.n);
        match cell.further {
            Some(Further::Trials(more)) => {
                trials.push((more, there(&cell.base).min(there(&cell.new)) + more));
            }
            Some(Further::TooMany) => hopeless += 1,
            None => {}
        }
    }
    let power = format_percent(POWER);
    let mut parts = Vec::new();
    let most = trials.iter().map(|(more, _)| *more).max();
    let in_all = trials.iter().map(|(_, all)| *all).max();
    if let Some((most, all)) = most.zip(in_all) {
        let how = match (comparison.unit, comparison.is_of_rounds) {
            // No run of iolab made them.
            (ReplicationUnit::Numbers, _) => String::new(),
            (_, true) => format!(" ({})", window_advice(all)),
            (_, false) => format!(" (--set trials_min={all})"),
        };
        parts.push(format!(
            "With this spread, {} on each side would settle {} with a chance of {power}{how}.",
            counted(most, &format!("more {}", repeated(comparison.unit))),
            cells(trials.len())
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

/// Writes one row per cell as CSV.
///
/// # Errors
/// When the output cannot be written.
pub fn csv(comparison: &Comparison, to: &mut dyn Write) -> io::Result<()> {
    let rows = comparison.cells.iter();
    let rows = rows.map(|cell| fields_of(&data::ComparisonRow::of(comparison, cell)));
    let rows: Vec<Vec<Field>> = rows.collect::<Result<_, _>>()?;
    let mut writer = RowWriter::new(to, Format::Csv, columns_of(rows.first()))?;
    for row in &rows {
        writer.row(row)?;
    }
    writer.finish()
}

/// Writes everything as one JSON object; `iolab schema compare` describes it.
///
/// # Errors
/// When the output cannot be written.
pub fn json(comparison: &Comparison, to: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *to, &data::Compared::of(comparison))?;
    writeln!(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_window_is_advised_that_the_rounds_of_a_run_do_not_reach() {
        let said = [12, 860].map(window_advice);
        insta::assert_snapshot!(said.join("\n"), @r"
        window=12 in --precondition, with rounds=12 or more
        several runs on each side: --base FILE... --new FILE...; a window of so many rounds is rarely steady
        ");
    }
}
