//! What random access costs against sequential: a rule over two runs.

use iolab_stats::{CONFIDENCE, Ratio, ratio_of_medians};
use iolab_workload::trial::Pattern;

use super::format_ratio;
use super::rule::RATIOS;
use super::{Finding, Rule, origin};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_workload::units::format_size;

pub(crate) const RANDOM_AGAINST_SEQUENTIAL: Rule =
    Rule::result("random-against-sequential", RATIOS);

/// The ratio of random to sequential throughput at each size that both runs measured on one
/// target with the same settings; `None` when there is none.
pub fn random_against_sequential(sequential: &Analysis, random: &Analysis) -> Option<Finding> {
    let pairs = pairs(sequential, random);
    let (first, last) = (pairs.first()?, pairs.last()?);
    let what = match first.random.cell.trial().read_percent {
        100 => "read",
        0 => "write",
        _ => "mixed",
    };
    let mut text = format!(
        "Random against sequential {what} throughput: {}",
        first.at()
    );
    if pairs.len() > 1 {
        text.push_str(&format!(", {}.{}", last.at(), where_it_costs(&pairs)));
    } else {
        text.push('.');
    }
    Some(Finding {
        rule: RANDOM_AGAINST_SEQUENTIAL,
        text,
    })
}

/// Two cells that differ in the pattern only.
#[derive(Debug)]
pub(crate) struct Pair<'a> {
    pub(crate) sequential: &'a CellAnalysis,
    pub(crate) random: &'a CellAnalysis,
    pub(crate) ratio: Ratio,
}

/// The pairs of two runs on one target, in ascending order of I/O size.
pub(crate) fn pairs<'a>(sequential: &'a Analysis, random: &'a Analysis) -> Vec<Pair<'a>> {
    let throughput = |run: &Analysis| run.response == Response::Throughput;
    if sequential.target != random.target || !throughput(sequential) || !throughput(random) {
        return Vec::new();
    }
    let of = |run: &'a Analysis, pattern: Pattern| -> Vec<&'a CellAnalysis> {
        let cells = run.cells.iter();
        cells
            .filter(|cell| cell.cell.trial().pattern == pattern)
            .collect()
    };
    let in_order = of(sequential, Pattern::Seq);
    let pair = |random: &'a CellAnalysis| {
        let mut candidates = in_order.iter().copied();
        let sequential = candidates.find(|s| differ_in_pattern_only(s, random))?;
        Some(Pair {
            sequential,
            random,
            ratio: ratio_of_medians(&sequential.values, &random.values, CONFIDENCE)?,
        })
    };
    let mut pairs: Vec<Pair<'a>> = of(random, Pattern::Rand)
        .into_iter()
        .filter_map(pair)
        .collect();
    pairs.sort_by_key(|pair| pair.random.cell.trial().bs);
    pairs
}

/// Whether a cell in order and a random one differ in nothing else.
fn differ_in_pattern_only(sequential: &CellAnalysis, random: &CellAnalysis) -> bool {
    let (s, r) = (sequential.cell.trial(), random.cell.trial());
    (s.bs, s.threads, s.depth, s.read_percent) == (r.bs, r.threads, r.depth, r.read_percent)
        && (s.backend, s.sync, s.cache, s.region) == (r.backend, r.sync, r.cache, r.region)
        && sequential.cell.spec.target == random.cell.spec.target
}

/// The sizes at which the whole interval of the ratio lies below 1; what remains shows no cost, which does not
/// mean that there is none.
fn where_it_costs(pairs: &[Pair<'_>]) -> String {
    let slower: Vec<String> = pairs
        .iter()
        .filter(|pair| pair.ratio.interval.is_some_and(|i| i.high < 1.0))
        .map(|pair| format_size(pair.random.cell.trial().bs))
        .collect();
    match slower.len() {
        0 => " No cost of random access is shown at any size.".to_owned(),
        n if n == pairs.len() => " Random is slower at every size.".to_owned(),
        _ => format!(
            " Random is slower at {}; at the other sizes no cost is shown.",
            slower.join(", ")
        ),
    }
}

impl Pair<'_> {
    fn at(&self) -> String {
        let mb_s = |c: &CellAnalysis| {
            let median = c.throughput.map_or(0.0, |t| t.median);
            Response::Throughput.format(median)
        };
        format!(
            "{} at {} ({} against {}{})",
            format_ratio(&self.ratio, ""),
            format_size(self.random.cell.trial().bs),
            mb_s(self.random),
            mb_s(self.sequential),
            self.origins(),
        )
    }

    /// Where the bytes of both came from, unless it was the device for both.
    fn origins(&self) -> String {
        let (random, sequential) = (origin(self.random), origin(self.sequential));
        if random == sequential {
            return random;
        }
        let named = |text: String| {
            if text.is_empty() {
                " [device]".to_owned()
            } else {
                text
            }
        };
        format!("; random{}, sequential{}", named(random), named(sequential))
    }
}
