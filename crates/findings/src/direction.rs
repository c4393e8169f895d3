//! Random writes against random reads: which are faster, and in which settings.

use iolab_stats::{CONFIDENCE, Interval, Ratio, ratio_of_medians};

use super::format_ratio;
use super::rule::RATIOS;
use super::{Finding, Rule, Says, capitalised};
use crate::across::SENTENCES_MAX;
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::curve::held_levels;

pub(crate) const WRITES_AGAINST_READS: Rule = Rule::result("writes-against-reads", RATIOS);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[Says::OfCells(writes_against_reads)];

/// One setting in which both were measured.
#[derive(Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) read: &'a CellAnalysis,
    pub(crate) write: &'a CellAnalysis,
    held: Vec<String>,
    /// The response of the writes over that of the reads.
    pub(crate) ratio: Ratio,
}

/// The ratio of the response of random writes to that of random reads, where all other factors are the same.
pub fn writes_against_reads(analysis: &Analysis) -> Vec<Finding> {
    let pairs = pairs(analysis);
    if pairs.is_empty() {
        return Vec::new();
    }
    let is_time = analysis.response.is_time();
    // Whether the whole interval lies on one side.
    let beyond = |pair: &&Pair<'_>, above: bool| {
        let whole = |i: Interval| if above { i.low > 1.0 } else { i.high < 1.0 };
        pair.ratio.interval.is_some_and(whole)
    };
    let faster = pairs.iter().filter(|p| beyond(p, !is_time)).count();
    let slower = pairs.iter().filter(|p| beyond(p, is_time)).count();
    let text = format!(
        "{} of random writes over that of random reads: {}. The writes are faster in {faster} of the {} settings compared, slower in {slower}, and in {} no difference is shown.",
        capitalised(&analysis.response.to_string()),
        told(&pairs),
        pairs.len(),
        pairs.len() - faster - slower,
    );
    WRITES_AGAINST_READS.one(text)
}

/// The settings: all where they are few, else the ends.
fn told(pairs: &[Pair<'_>]) -> String {
    let words = |pair: &Pair<'_>| {
        let place = match pair.held.as_slice() {
            [] => String::new(),
            held => format!(" with {}", held.join(" ")),
        };
        format_ratio(&pair.ratio, " times") + &place
    };
    if pairs.len() <= SENTENCES_MAX {
        let all: Vec<String> = pairs.iter().map(words).collect();
        return all.join("; ");
    }
    let by_ratio = |a: &&Pair<'_>, b: &&Pair<'_>| a.ratio.ratio.total_cmp(&b.ratio.ratio);
    let ends = [
        pairs.iter().max_by(by_ratio).map(|p| ("at most ", p)),
        pairs.iter().min_by(by_ratio).map(|p| ("at least ", p)),
    ];
    let ends = ends.into_iter().flatten();
    let ends: Vec<String> = ends
        .map(|(which, p)| which.to_owned() + &words(p))
        .collect();
    ends.join("; ")
}

/// Whether all levels are the same but those of the workload and of the sync policy, which reads do not heed.
fn differ_in_direction_only(
    analysis: &Analysis,
    read: &CellAnalysis,
    write: &CellAnalysis,
    workload: usize,
) -> bool {
    let levels = read.cell.levels.iter().zip(&write.cell.levels);
    let mut factors = analysis.factors.iter().zip(levels).enumerate();
    factors.all(|(i, (name, (a, b)))| i == workload || name == "sync" || a == b)
}

/// All settings in which random writes and random reads were measured.
pub(crate) fn pairs(analysis: &Analysis) -> Vec<Pair<'_>> {
    let Some(factor) = analysis.factors.iter().position(|f| f == "workload") else {
        return Vec::new();
    };
    let of = |cell: &CellAnalysis| cell.cell.levels.get(factor).cloned().unwrap_or_default();
    let writes = analysis.cells.iter().filter(|cell| of(cell) == "WR");
    let pair = |write| {
        let held = held_levels(analysis, write, factor);
        let mut reads = analysis.cells.iter().filter(|cell| of(cell) == "RR");
        let read = reads.find(|read| differ_in_direction_only(analysis, read, write, factor))?;
        let ratio = ratio_of_medians(&read.values, &write.values, CONFIDENCE)?;
        Some(Pair {
            read,
            write,
            held,
            ratio,
        })
    };
    writes.filter_map(pair).collect()
}
