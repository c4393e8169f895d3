//! Tables of comparisons: in many settings, and of two programs.

use crate::block::Table;
use crate::layout::{Column, columns_over, none};
use crate::ratio;
use crate::table::bare;
use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{
    CellId, Claim, Comparison, Contrast, Difference, MARGIN, Point, comparisons,
};
use iolab_analysis::equivalence::{FIRST_TRIALS, MARGINS, ProgramPair};
pub use iolab_figure::labels::share;
use iolab_workload::escape_control::escape_control;
use iolab_workload::settings::level_label;
use iolab_workload::units::format_size;

/// Settings that a sentence can describe; more make a table.
const SENTENCE_MAX: usize = 3;

/// The comparisons of a run that show a difference, and have more settings than a sentence can describe.
pub fn tabled(analysis: &Analysis) -> Vec<Table> {
    let all = comparisons(analysis, 0);
    let shown = all
        .iter()
        .filter(|one| one.points.len() > SENTENCE_MAX && one.points.iter().any(Point::is_effect));
    let tables = shown.filter_map(|one| Some(table(analysis, one, one.comparison()?)));
    tables.collect()
}

/// The table, with one row per setting.
fn table(analysis: &Analysis, claim: &Claim, comparison: &Comparison) -> Table {
    let response = analysis.response;
    let unit = match response.is_time() {
        true => String::new(),
        false => format!(" ({})", response.unit()),
    };
    let mut estimates = claim.points.iter().filter_map(|one| one.ratio);
    let how = match estimates.all(|one| one.blocks.is_some()) {
        true => "ratio within the blocks that both share",
        false => "ratio of medians",
    };
    let level = |id: Option<CellId>, name: &str| {
        let cell = analysis.cell(id?.cell)?;
        Some(analysis.level(cell, name))
    };
    let over = match &comparison.contrast {
        Contrast::Pattern => "random over sequential".to_owned(),
        Contrast::Direction => "writes over reads".to_owned(),
        Contrast::Levels { factor } => {
            let base = level(claim.points[0].base, factor).unwrap_or_default();
            format!("{factor} over {factor}={base}")
        }
        Contrast::Company => "all groups at once over one at a time".to_owned(),
    };
    let title = format!("{response}{unit}, {over}");
    let notes = [
        format!("medians of both, and {how}, new over base"),
        "simultaneous 95 % intervals".to_owned(),
    ];
    let column = columns_over(&claim.points);
    let varied = match &comparison.contrast {
        Contrast::Levels { factor } => Some(factor),
        _ => None,
    };
    let factors = comparison.held.iter().chain(varied);
    let mut columns: Vec<Column> = factors
        .map(|name| column(name, 0, &|one| level(one.cell, name).unwrap_or_else(none)))
        .collect();
    columns.extend([
        column("new", 1, &|one| bare(response, one.value)),
        column("base", 1, &|one| {
            one.of.map_or_else(none, |base| bare(response, base))
        }),
    ]);
    let estimates: Vec<_> = claim.points.iter().map(|one| one.ratio).collect();
    columns.extend(ratio::columns("ratio", &estimates));
    columns.push(column("shown", 0, &|one| shown(one, response.is_time())).left());
    Table::new(title, notes, columns)
}

fn shown(effect: &Point, is_time: bool) -> String {
    match effect.difference() {
        Difference::Higher if is_time => "longer".to_owned(),
        Difference::Lower if is_time => "shorter".to_owned(),
        Difference::Higher => "higher".to_owned(),
        Difference::Lower => "lower".to_owned(),
        Difference::Equivalent => format!("equal within {}", share(MARGIN)),
        Difference::NotFound => "no difference found".to_owned(),
        Difference::CannotTell if effect.doubts.is_empty() => "too few trials".to_owned(),
        Difference::CannotTell => "cannot tell".to_owned(),
    }
}

/// The table: the ratio of the times, the p-values of the t tests on the first trials, and the p-values of the
/// tests of equivalence.
pub fn program_table(pair: &ProgramPair) -> Table {
    let held = pair.held.iter();
    let held: Vec<String> = held
        .map(|(factor, level)| level_label(factor, level))
        .collect();
    let held = match held.as_slice() {
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
    Table::new(title, notes, program_columns(pair))
}

fn program_columns(pair: &ProgramPair) -> Vec<Column> {
    let column = columns_over(&pair.points);
    let p = |p: Option<f64>| p.map_or_else(none, p_value);
    let region = column("region", 0, &|point| format_size(point.size));
    let mut columns: Vec<Column> = pair.has_files.then_some(region).into_iter().collect();
    let estimates: Vec<_> = pair.points.iter().map(|point| point.ratio).collect();
    columns.extend(ratio::columns("ratio", &estimates));
    for (i, trials) in FIRST_TRIALS.iter().enumerate() {
        columns.push(column(&format!("W {trials}"), 2, &|point| {
            p(point.first_trials[i].map(|(welch, _)| welch))
        }));
        columns.push(column(&format!("S {trials}"), 3, &|point| {
            p(point.first_trials[i].map(|(_, student)| student))
        }));
    }
    for (i, margin) in MARGINS.iter().enumerate() {
        let heading = format!("= {}", share(*margin));
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
