//! Headlines that say in one sentence what the rules say of each run alone.

use iolab_stats::Ratio;

use super::weight::{self, DURABILITY, RANDOM, REQUEST_COSTS, SIZES, SKIPS, TAILS};
use super::{Headline, Told};
use crate::optimal::OPTIMAL_PATTERN;
use crate::random::RANDOM_AGAINST_SEQUENTIAL;
use crate::shape::FIXED_COSTS;
use crate::sizes::{BEST_SIZE, BEST_SIZES, PLATEAU};
use crate::skipping::COST_OF_SKIPPING;
use crate::sync::COST_OF_SYNC;
use crate::tail::LATENCY_TAIL;
use crate::{Finding, Pair, Rule, SyncPair, capitalised, pairs, sync_pairs};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_analysis::bends;
use iolab_analysis::curve::{Curve, Point, by_size};
use iolab_workload::access;
use iolab_workload::quantity::{format_ns, significant};
use iolab_workload::units::format_size;

/// How much of the best throughput a size must reach to be good enough.
const NEAR: f64 = 0.95;
/// Most costs of durability in one headline.
const COSTS_TOLD: usize = 3;
/// The 99th percentile over the median from which a tail is worth a headline.
const LONG_TAIL: f64 = 3.0;

/// A headline with its weight.
#[derive(Debug)]
pub(super) struct Ranked {
    pub(super) weight: usize,
    pub(super) headline: Headline,
    /// Rules whose findings it makes superfluous.
    pub(super) stands_for: &'static [Rule],
}

impl Ranked {
    /// The first sentences of a finding.
    pub(super) fn of(finding: Finding, runs: Vec<usize>) -> Self {
        Self {
            weight: weight::of(finding.rule),
            headline: Headline {
                rule: finding.rule,
                runs,
                text: first_sentences(&finding.text),
            },
            stands_for: &[],
        }
    }

    /// Whether it is of this rule and about these runs.
    pub(super) fn is_again(&self, rule: Rule, runs: &[usize]) -> bool {
        self.headline.rule == rule && self.headline.runs == runs
    }
}

/// Characters of a headline, about two lines of a terminal.
const LENGTH: usize = 170;

/// As many whole sentences as fit; at least the first.
fn first_sentences(text: &str) -> String {
    let ends = text.match_indices(". ").map(|(at, _)| at + 1);
    let ends: Vec<usize> = ends.chain([text.len()]).collect();
    let fits = ends.iter().copied().filter(|end| *end <= LENGTH).max();
    let end = fits.or(ends.first().copied()).unwrap_or(text.len());
    text[..end].to_owned()
}

/// The merged headlines of these runs, in no order.
pub(super) fn headlines(runs: &[Told<'_>]) -> Vec<Ranked> {
    let all = [
        sizes(runs),
        random(runs),
        durability(runs),
        skips(runs),
        costs(runs),
        tails(runs),
    ];
    all.into_iter().flatten().collect()
}

fn ranked(
    rule: Rule,
    runs: Vec<usize>,
    text: String,
    stands_for: &'static [Rule],
) -> Option<Ranked> {
    (!runs.is_empty()).then(|| Ranked {
        weight: weight::of(rule),
        headline: Headline { rule, runs, text },
        stands_for,
    })
}

/// What is said of each run that it can be said of, with the numbers of these runs.
fn of_each(
    runs: &[Told<'_>],
    say: impl Fn(&Analysis) -> Option<String>,
) -> (Vec<usize>, Vec<String>) {
    let all = runs.iter().enumerate();
    all.filter_map(|(number, told)| Some((number, say(told.analysis())?)))
        .unzip()
}

/// The only curve of throughput over I/O sizes of a run; `None` where other factors vary.
fn size_curve(analysis: &Analysis) -> Option<Curve<'_>> {
    let mut curves = by_size(analysis, "bs");
    let only = curves.pop().filter(|_| curves.is_empty())?;
    (analysis.response == Response::Throughput && only.points.len() > 2).then_some(only)
}

/// The words of a run's cells, where they are the same for all.
fn words(analysis: &Analysis) -> Option<String> {
    let mut words = analysis
        .cells
        .iter()
        .map(|cell| access::in_words(cell.cell.trial()));
    let first = words.next()?;
    words.all(|other| other == first).then_some(first)
}

/// The least size of each kind of access that comes near its best throughput.
fn sizes(runs: &[Told<'_>]) -> Option<Ranked> {
    let (numbers, parts) = of_each(runs, |analysis| {
        let curve = size_curve(analysis)?;
        let words = words(analysis)?;
        let best = curve.best(analysis.response)?;
        let near = |p: &&Point<'_>| p.summary.median >= NEAR * best.summary.median;
        let least = curve.points.iter().find(near)?;
        Some(format!(
            "{} for {words} ({})",
            format_size(least.size),
            analysis.response.format(best.summary.median)
        ))
    });
    let text = format!(
        "Smallest I/O size within 5 % of the best throughput: {}.",
        parts.join(", ")
    );
    ranked(
        SIZES,
        numbers,
        text,
        &[PLATEAU, BEST_SIZE, BEST_SIZES, OPTIMAL_PATTERN],
    )
}

/// What random access costs at the smallest size, and from which size on no cost is shown.
fn random(runs: &[Told<'_>]) -> Option<Ranked> {
    let mut numbers = Vec::new();
    let mut parts = Vec::new();
    for (s, sequential) in runs.iter().enumerate() {
        for (r, random) in runs.iter().enumerate() {
            let pairs = pairs(sequential.analysis(), random.analysis());
            if let Some(part) = cost_of_random(&pairs) {
                numbers.extend([s, r]);
                parts.push(part);
            }
        }
    }
    numbers.sort_unstable();
    numbers.dedup();
    ranked(
        RANDOM,
        numbers,
        parts.join(" "),
        &[RANDOM_AGAINST_SEQUENTIAL],
    )
}

fn cost_of_random(pairs: &[Pair<'_>]) -> Option<String> {
    let first = pairs.first()?;
    let words = access::in_words(first.random.cell.trial());
    let costs = |pair: &&Pair<'_>| pair.ratio.interval.is_some_and(|i| i.high < 1.0);
    let Some(last) = pairs.iter().rposition(|pair| costs(&pair)) else {
        return Some(match first.ratio.interval {
            Some(_) => format!(
                "{} are not shown to be slower than sequential ones at any size.",
                capitalised(&words)
            ),
            None => return None,
        });
    };
    let worst = pairs
        .iter()
        .filter(costs)
        .min_by(|a, b| a.ratio.ratio.total_cmp(&b.ratio.ratio))?;
    let size = |pair: &Pair<'_>| format_size(pair.random.cell.trial().bs);
    let beyond = match pairs.get(last + 1) {
        Some(next) => format!("; from {} up no cost is shown", size(next)),
        None => String::new(),
    };
    Some(format!(
        "{} of {} give {} of the sequential throughput{beyond}.",
        capitalised(&words),
        size(worst),
        ratio(&worst.ratio)
    ))
}

/// What durability costs in the cells where it costs most, of several runs.
fn durability(runs: &[Told<'_>]) -> Option<Ranked> {
    if runs.len() < 2 {
        return None;
    }
    let all = runs.iter().enumerate().flat_map(|(number, told)| {
        let pairs = sync_pairs(told.analysis());
        pairs.into_iter().map(move |pair| (number, pair))
    });
    let shown = |pair: &SyncPair<'_>| pair.ratio.interval.is_some_and(|i| i.high < 1.0);
    let rates = |analysis: &Analysis| !analysis.response.is_time();
    let mut costly: Vec<(usize, SyncPair<'_>)> = all
        .filter(|(number, pair)| shown(pair) && rates(runs[*number].analysis()))
        .collect();
    costly.sort_by(|a, b| a.1.ratio.ratio.total_cmp(&b.1.ratio.ratio));
    costly.truncate(COSTS_TOLD);
    let parts: Vec<String> = costly
        .iter()
        .map(|(_, pair)| {
            let trial = pair.strict.cell.trial();
            let flight = trial.in_flight();
            format!(
                "{} for {} of {} with {flight} in flight",
                ratio(&pair.ratio),
                access::in_words(trial),
                format_size(trial.bs)
            )
        })
        .collect();
    let text = format!(
        "Durable writes reach this share of the rate of plain writes: {}.",
        parts.join("; ")
    );
    let mut numbers: Vec<usize> = costly.iter().map(|(number, _)| *number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    ranked(DURABILITY, numbers, text, &[COST_OF_SYNC])
}

/// What the costliest skip does to the throughput of each run.
fn skips(runs: &[Told<'_>]) -> Option<Ranked> {
    let (numbers, parts) = of_each(runs, |analysis| {
        if analysis.response != Response::Throughput {
            return None;
        }
        let curves = by_size(analysis, "skip");
        let costs = curves.iter().filter_map(|curve| {
            let (least, rest) = curve.points.split_first()?;
            let of = |point| Some((least.ratio_of(point)?, curve, point));
            rest.iter()
                .filter_map(of)
                .min_by(|a, b| a.0.ratio.total_cmp(&b.0.ratio))
        });
        let worst = costs.min_by(|a, b| a.0.ratio.total_cmp(&b.0.ratio));
        let (cost, curve, point) = worst?;
        let words = words(analysis)?;
        Some(match cost.interval?.high < 1.0 {
            true => format!(
                "{} fall to {} of the throughput with the least skip at skip={}{}",
                words,
                ratio(&cost),
                format_size(point.size),
                curve.place()
            ),
            false => format!("{words} are not shown to lose throughput by larger skips"),
        })
    });
    let text = capitalised(&parts.join("; ")) + ".";
    ranked(SKIPS, numbers, text, &[COST_OF_SKIPPING])
}

/// What a request costs whatever its size, and what its bytes cost.
fn costs(runs: &[Told<'_>]) -> Option<Ranked> {
    let (numbers, parts) = of_each(runs, |analysis| {
        let model = bends::fixed_cost(analysis, &size_curve(analysis)?)?;
        // Bytes per ns are GB/s, a thousand MB/s.
        let rate = Response::Throughput.format(model.bandwidth * 1e3);
        let time = format_ns(model.t0.round());
        Some(format!("{} {time} and {rate}", words(analysis)?))
    });
    let text = format!(
        "Fixed time of a request, and rate of its bytes: {}.",
        parts.join("; ")
    );
    ranked(REQUEST_COSTS, numbers, text, &[FIXED_COSTS])
}

/// The longest tail of all runs.
fn tails(runs: &[Told<'_>]) -> Option<Ranked> {
    let cells = runs.iter().enumerate().flat_map(|(number, told)| {
        let cells = told.analysis().cells.iter();
        cells.map(move |cell| (number, told.analysis(), cell))
    });
    let with = cells.filter_map(|(number, analysis, cell)| {
        let tail = cell.tail.filter(|tail| tail.median_interval.is_some())?;
        Some((number, analysis, cell, tail.median))
    });
    let (number, analysis, cell, tail) = with.max_by(|a, b| a.3.total_cmp(&b.3))?;
    let latency = cell.latency.filter(|_| tail >= LONG_TAIL)?;
    let text = format!(
        "Longest tail: p99 is {} times the median for {}{} ({} against {}).",
        significant(tail),
        access::in_words(cell.cell.trial()),
        place(analysis, cell),
        format_ns(latency.p99_ns),
        format_ns(latency.p50_ns)
    );
    ranked(TAILS, vec![number], text, &[LATENCY_TAIL])
}

fn place(analysis: &Analysis, cell: &CellAnalysis) -> String {
    match analysis.factors.is_empty() {
        true => String::new(),
        false => format!(
            " at {}",
            iolab_workload::settings::cell_label(&analysis.factors, &cell.cell.levels)
        ),
    }
}

/// `0.31 (0.29 to 0.33)`.
fn ratio(ratio: &Ratio) -> String {
    let interval = ratio.interval.map_or_else(String::new, |i| {
        format!(" ({} to {})", significant(i.low), significant(i.high))
    });
    significant(ratio.ratio) + &interval
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_headline_ends_with_a_sentence() {
        let long = format!("First. {}. Third.", "x".repeat(LENGTH));
        assert_eq!(first_sentences(&long), "First.");
        assert_eq!(first_sentences("One. Two."), "One. Two.");
        let endless = "y".repeat(2 * LENGTH);
        assert_eq!(first_sentences(&endless), endless);
    }
}
