//! A comparison of two sides as text, as rows and as a JSON object.

pub(crate) mod conclusion;

use std::io::{self, Write};

use crate::data_column::{IOLAB_VERSION, SCHEMA};
use crate::fact::setting_value;
use crate::notation::clean;
use crate::rows::json_object;
use crate::{fact, ratio};
use iolab_analysis::analysis::Response;
use iolab_analysis::compare::{
    CellComparison, Comparison, Difference, DiffersIn, Further, HypothesisTest, ReplicationUnit,
    Side, SideName, SideValue,
};
use iolab_record::environment::KEYS;
use iolab_workload::counters::Traffic;
use iolab_workload::units::{counted, digits, format_p, format_percent};
use schemars::JsonSchema;
use serde::Serialize;

use crate::block::{self, Block, Item, Look, Table};
use crate::layout::{self, Column, SCREEN_LINES, SCREEN_ROWS, columns_over, none};
pub use crate::ratio::factor;
use crate::report::summary::moment;
use crate::table::bare;
use conclusion::repeated;
pub use conclusion::{DETECTABLE_MAX, change, remarks};
pub(crate) use conclusion::{answer, measured};
use iolab_workload::escape_control::escape_control;

/// The JSON object of a comparison or a gate.
#[derive(Serialize, JsonSchema)]
pub struct CompareDocument<T> {
    /// Version of this schema: it rises where a name vanishes or changes its meaning, not where one is added.
    schema: u32,
    /// Version of iolab that wrote this.
    iolab_version: &'static str,
    /// The answer in one line.
    summary: String,
    /// `settled` (exit code 0), `slower` (4), `cannot tell` (5).
    conclusion: &'static str,
    /// Conclusions, in sentences.
    remarks: Vec<String>,
    #[serde(flatten)]
    of: T,
}

impl<T: Serialize> CompareDocument<T> {
    /// Writes a comparison or a gate as one JSON object, with the answer in one line, the name of the conclusion,
    /// and the remarks.
    ///
    /// # Errors
    ///
    /// When the output cannot be written.
    pub fn write(
        of: T,
        (summary, conclusion): (String, &'static str),
        remarks: Vec<String>,
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let document = Self {
            schema: SCHEMA,
            iolab_version: IOLAB_VERSION,
            summary,
            conclusion,
            remarks,
            of,
        };
        json_object(&document, to)
    }
}

/// The conclusion, the sides, their cells, and remarks.
pub fn blocks(comparison: &Comparison) -> Vec<Block> {
    blocks_of(comparison, conclusion(comparison), remarks(comparison))
}

/// The blocks of a comparison with this conclusion and these remarks.
pub fn blocks_of(comparison: &Comparison, conclusion: String, remarks: Vec<String>) -> Vec<Block> {
    let name = |side| clean(&whole(side));
    let notes = sides(comparison).into_iter().chain(remarks);
    vec![
        Block::Paragraph(Look::Result, conclusion),
        Block::Facts(vec![
            ("base".to_owned(), name(&comparison.base)),
            ("new".to_owned(), name(&comparison.new)),
        ]),
        Block::Table(table(comparison)),
        Block::list(notes.map(Item::of).collect()),
    ]
}

/// The first screen: if not all cells fit, those that differ most come first.
pub fn screen(comparison: &Comparison, width: u16) -> String {
    let mut most = comparison.clone();
    if most.cells.len() > SCREEN_ROWS {
        let size = conclusion::size;
        most.cells.sort_by(|a, b| size(b).total_cmp(&size(a)));
    }
    // The conclusion names the files.
    let mut all = blocks_of(&most, conclusion(comparison), remarks(comparison));
    all.retain(|part| !matches!(part, Block::Facts(_)));
    block::first_screen(&all, SCREEN_LINES, "-o FILE.txt", width)
}

/// The comparison in one line: `new.iolab against base.iolab: 3 of 8 cells slower, the most 1.41× lower (1.30 to 1.52×) at bs=4KiB;
/// cannot tell in 2: disturbed`.
pub fn conclusion(comparison: &Comparison) -> String {
    let text = format!(
        "{} against {}: {}",
        short(&comparison.new),
        short(&comparison.base),
        answer(comparison)
    );
    clean(&text)
}

/// The name of a side in a sentence.
fn short(side: &SideName) -> String {
    match side.runs.len() {
        0 | 1 => side.name.clone(),
        n => format!("{n} runs"),
    }
}

/// Differences of the sides apart from their numbers, in sentences.
fn sides(comparison: &Comparison) -> Vec<String> {
    let mut notes = Vec::new();
    for (side, name) in [(&comparison.base, "base"), (&comparison.new, "new side")] {
        if side.targets.len() > 1 {
            notes.push(format!(
                "The {name} mixes runs on {} targets: {}. The spread from run to run is that between these.",
                side.targets.len(),
                side.targets.join(", ")
            ));
        }
    }
    let differences: Vec<String> = difference_lines(&comparison.differences).collect();
    if !differences.is_empty() {
        notes.push(format!("The sides differ in {}.", differences.join("; ")));
    }
    for (side, cells) in [
        ("base", &comparison.only_base),
        ("new", &comparison.only_new),
    ] {
        notes.extend(some_of(cells).map(|cells| format!("Only {side} has: {cells}")));
    }
    let without = some_of(&comparison.without_requests);
    notes.extend(
        without
            .map(|cells| format!("Not compared, because no such request is made there: {cells}")),
    );
    notes
}

/// `bs=4KiB and 2 more`; `None` if there are no cells.
fn some_of(cells: &[String]) -> Option<String> {
    let (first, rest) = cells.split_first()?;
    let more = match rest.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    Some(format!("{}{more}", escape_control(first)))
}

/// A clause for each difference between two sides.
fn difference_lines(differences: &[Difference]) -> impl Iterator<Item = String> {
    differences.iter().map(|d| {
        let what = differs_in(&d.what);
        match (&d.base, &d.new) {
            (SideValue::Various, SideValue::Various) => {
                format!("{what}: different in each of several cells")
            }
            (base, new) => {
                let (base, new) = (side_value(d, base), side_value(d, new));
                format!("{what}: {base} -> {new}")
            }
        }
    })
}

/// A difference of two sides, in words.
fn differs_in(what: &DiffersIn) -> String {
    match what {
        DiffersIn::TargetKind => "kind of target".to_owned(),
        DiffersIn::ToolVersion => "version of iolab".to_owned(),
        DiffersIn::Fact(key) => fact::name(key),
        DiffersIn::Experiment
        | DiffersIn::Target
        | DiffersIn::Groups
        | DiffersIn::Setting { .. } => clean(&what.name()),
    }
}

/// The value of a side in a difference, in words.
fn side_value(difference: &Difference, value: &SideValue) -> String {
    match (value, &difference.what) {
        (SideValue::Known(text), DiffersIn::Fact(key)) => fact::value(key, text),
        (SideValue::Known(text), _) => clean(text),
        (SideValue::Set(setting, value), _) => setting_value(setting, value),
        // For limits of a device, a missing fact means that there is no limit.
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
    match (side.runs.as_slice(), side.of.as_str()) {
        ([], "") => side.name.clone(),
        ([], of) => format!("{} {of}", side.name),
        ([only], of) => format!("{} ({of}, {})", side.name, moment(&only.started_utc)),
        ([first, .., last], of) => {
            let days = match (day(&first.started_utc), day(&last.started_utc)) {
                (from, to) if from == to => format!("on {from}"),
                (from, to) => format!("from {from} to {to}"),
            };
            let count = side.runs.len();
            format!(
                "{count} runs of {of} {days}, {} to {}",
                first.file, last.file
            )
        }
    }
}

/// The day of a time in the format of run files.
pub fn day(utc: &str) -> &str {
    utc.get(..10).unwrap_or(utc)
}

/// The table, with one row per cell.
pub(crate) fn table(comparison: &Comparison) -> Table {
    let (of, within) = match comparison.unit {
        ReplicationUnit::Runs => ("geometric means of the medians of the runs", ""),
        _ if comparison.shares_blocks() => ("medians", " within blocks"),
        _ => ("medians", ""),
    };
    let intervals = match comparison.intervals {
        0 | 1 => String::new(),
        n => format!(" (simultaneous over {n} cells)"),
    };
    // Without a remark, readers would assume that p decides the verdict.
    let tests = comparison.terms.tests.iter();
    let tests: Vec<&str> = tests.map(|test| compares(*test)).collect();
    let decides = (!tests.is_empty())
        .then(|| format!("the interval decides, p does not: {}", tests.join(", ")));
    let margin = match comparison.terms.margin {
        0.0 => String::new(),
        margin => format!("; margin {}", format_percent(margin)),
    };
    let title = format!("{}: {of}{margin}", measured(comparison));
    let ratio = format!("ratio new/base{within} with its 95 % interval{intervals}");
    let notes = [Some(ratio), decides].into_iter().flatten();
    Table::new(title, notes, columns(comparison, ["base", "new"]))
}

/// The quantity that a test compares.
fn compares(test: HypothesisTest) -> &'static str {
    match test {
        HypothesisTest::Welch => "Welch's test compares means",
        HypothesisTest::Student => "Student's test compares means",
        HypothesisTest::MannWhitney => "the Mann-Whitney test compares ranks",
    }
}

/// The columns of the table.
fn columns(comparison: &Comparison, [base, new]: [&str; 2]) -> Vec<Column> {
    let response = comparison.response;
    let column = columns_over(&comparison.cells);
    let levels = comparison.cells.iter().map(|cell| cell.levels.as_slice());
    let mut columns = layout::level_columns(&comparison.factors, levels);
    let centre = |side: &Side| {
        side.centre
            .map_or_else(none, |centre| value(response, centre))
    };
    columns.extend([
        column("n", 4, &|c| {
            format!("{}+{}", c.base.values.len(), c.new.values.len())
        }),
        column(base, 1, &|c| centre(&c.base)),
        column(new, 1, &|c| centre(&c.new)),
    ]);
    let estimates: Vec<_> = comparison.cells.iter().map(|cell| cell.estimate).collect();
    columns.extend(ratio::columns(estimator(comparison), &estimates));
    // Columns of several tests are kept longer, since they were requested.
    let dear = if comparison.terms.tests.len() > 1 {
        2
    } else {
        4
    };
    for test in &comparison.terms.tests {
        let p = |c: &CellComparison| c.p(*test).map_or_else(none, format_p);
        columns.push(column(&format!("p ({test})"), dear, &p));
    }
    if comparison.cells.len() > 1 && !comparison.terms.tests.is_empty() {
        let p = |c: &CellComparison| c.p_adjusted.map_or_else(none, format_p);
        columns.push(column("p (Holm)", 3, &p));
    }
    if comparison.unit == ReplicationUnit::Runs {
        columns.extend([
            column("run SD", 3, &|c| {
                c.run_sd.map_or_else(none, |sd| format_percent(sd.exp_m1()))
            }),
            column("detectable", 2, &|c| {
                c.detectable.map_or_else(none, |share| match 1.0 + share {
                    change if change > DETECTABLE_MAX => format!(">{DETECTABLE_MAX}x"),
                    change => format!("{}x", factor(change)),
                })
            }),
        ]);
    }
    if comparison
        .cells
        .iter()
        .any(CellComparison::is_served_differently)
    {
        let name = |side: &Side| side.served_by.map_or_else(none, |one| one.to_string());
        let served = |c: &CellComparison| match c.is_served_differently() {
            true => format!("{} -> {}", name(&c.base), name(&c.new)),
            false => name(&c.base),
        };
        columns.push(column("served by", 0, &served).left());
    }
    let verdict = |cell: &CellComparison| verdict(cell, comparison.unit);
    columns.push(column("verdict", 0, &verdict).left());
    columns
}

/// Columns for the comparison of iolab with each of its peers, whose names are levels.
pub(crate) fn peer_columns(peers: &[Comparison]) -> Vec<Column> {
    let Some(mut all) = peers.first().cloned() else {
        return Vec::new();
    };
    all.factors.push("tool".to_owned());
    let named = peers.iter().flat_map(|peer| {
        peer.cells.iter().map(|cell| {
            let mut cell = cell.clone();
            cell.levels.push(peer.new.name.clone());
            cell
        })
    });
    all.cells = named.collect();
    let unit = all.response.map_or("", Response::unit);
    let base = format!("{} {unit}", all.base);
    columns(&all, [&base, &format!("tool {unit}")])
}

/// The heading of the ratios, with their estimator.
fn estimator(comparison: &Comparison) -> &'static str {
    match comparison.unit {
        ReplicationUnit::Runs => "ratio",
        _ if comparison.shares_blocks() => "ratio in blocks",
        _ => "ratio of medians",
    }
}

fn verdict(cell: &CellComparison, unit: ReplicationUnit) -> String {
    match cell.further {
        // If only trials are missing, the interval next to the verdict shows the rest.
        Some(Further::Trials(n)) => {
            format!("cannot tell (+{})", counted(n as u64, repeated(unit)))
        }
        _ => cell.verdict.to_string(),
    }
}

/// A value as in the table of one run.
pub(crate) fn value(response: Option<Response>, value: f64) -> String {
    response.map_or_else(|| digits(value, 5), |r| bare(r, value))
}

/// Writes a comparison as one JSON object; `iolab schema compare` describes it.
///
/// # Errors
/// When the output cannot be written.
pub fn json(comparison: &Comparison, to: &mut dyn Write) -> io::Result<()> {
    let name = comparison.conclusion().name();
    let summary = (conclusion(comparison), name);
    CompareDocument::write(comparison, summary, remarks(comparison), to)
}
