//! A comparison in many settings, as a table.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{Comparison, Contrast, Difference, Effect, comparisons};
use iolab_workload::units::significant;

use crate::findings::sentences::margin;
use crate::ratio;

use crate::block::Table;
use crate::layout::{Column, columns_over, none};

/// Settings that a sentence can describe; more make a table.
const SENTENCE_MAX: usize = 3;

/// The comparisons of a run that show a difference, and have more settings than a sentence can describe.
pub fn tabled(analysis: &Analysis) -> Vec<Comparison> {
    let mut all = comparisons(analysis, 0);
    all.retain(|one| one.effects.len() > SENTENCE_MAX && one.shown().next().is_some());
    all
}

/// The table, with one row per setting.
pub fn table(comparison: &Comparison) -> Table {
    let response = comparison.response;
    let unit = match response.is_time() {
        true => String::new(),
        false => format!(" ({})", response.unit()),
    };
    let blocks = comparison
        .effects
        .iter()
        .all(|one| one.estimate.blocks.is_some());
    let how = match blocks {
        true => "ratio within the blocks that both share",
        false => "ratio of medians",
    };
    let title = format!("{response}{unit}, {}", subject(&comparison.contrast));
    let notes = [
        format!("medians of both, and {how}, new over base"),
        "simultaneous 95 % intervals".to_owned(),
    ];
    Table::new(title, notes, columns(comparison))
}

/// `random over sequential`, `depth over depth=1`.
fn subject(contrast: &Contrast) -> String {
    match contrast {
        Contrast::Pattern => "random over sequential".to_owned(),
        Contrast::Direction => "writes over reads".to_owned(),
        Contrast::Levels { factor, base } => format!("{factor} over {factor}={base}"),
        Contrast::Company { .. } => "all groups at once over one at a time".to_owned(),
    }
}

fn columns(comparison: &Comparison) -> Vec<Column> {
    let column = columns_over(&comparison.effects);
    let value = |median: f64| match comparison.response.is_time() {
        true => comparison.response.format(median),
        false => significant(median),
    };
    let held = comparison.held.iter().enumerate();
    let mut columns: Vec<Column> = held
        .map(|(i, name)| {
            column(name, 0, &|one| {
                let level = one.held.get(i);
                level.map_or_else(none, |(_, level)| level.clone())
            })
        })
        .collect();
    if let Contrast::Levels { factor, .. } = &comparison.contrast {
        columns.push(column(factor, 0, &|one| one.levels.1.clone()));
    }
    columns.extend([
        column("new", 1, &|one| value(one.medians.1)),
        column("base", 1, &|one| value(one.medians.0)),
    ]);
    let effects = comparison.effects.iter();
    let estimates: Vec<_> = effects.map(|one| Some(one.estimate)).collect();
    columns.extend(ratio::columns("ratio", &estimates));
    columns.push(column("shown", 0, &|one| shown(comparison, one)).left());
    columns
}

fn shown(comparison: &Comparison, effect: &Effect) -> String {
    let is_time = comparison.response.is_time();
    match effect.difference {
        Difference::Higher if is_time => "longer".to_owned(),
        Difference::Lower if is_time => "shorter".to_owned(),
        Difference::Higher => "higher".to_owned(),
        Difference::Lower => "lower".to_owned(),
        Difference::Equivalent => format!("equal within {}", margin()),
        Difference::NotFound => "no difference found".to_owned(),
        Difference::CannotTell if effect.doubts.is_empty() => "too few trials".to_owned(),
        Difference::CannotTell => "cannot tell".to_owned(),
    }
}
