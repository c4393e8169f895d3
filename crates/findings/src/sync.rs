//! What durability costs: each sync policy against the least strict one that was measured.

use iolab_stats::{CONFIDENCE, Interval, Ratio, ratio_of_medians};
use iolab_workload::trial::SyncPolicy;

use super::format_ratio;
use super::rule::RATIOS;
use super::{Finding, Rule, Says, capitalised, origin};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_analysis::curve::held_levels;

pub(crate) const COST_OF_SYNC: Rule = Rule::result("cost-of-sync", RATIOS);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[Says::OfCells(cost_of_sync)];

/// The policies, from the one that promises least.
const POLICIES: [SyncPolicy; 7] = [
    SyncPolicy::None,
    SyncPolicy::End,
    SyncPolicy::Fdatasync,
    SyncPolicy::Each,
    SyncPolicy::RwfDsync,
    SyncPolicy::Odsync,
    SyncPolicy::Osync,
];

/// The ratio of the response under each sync policy to that under the least strict one, where all other factors are
/// the same.
pub fn cost_of_sync(analysis: &Analysis) -> Vec<Finding> {
    let Some((factor, base, stricter)) = compared(analysis) else {
        return Vec::new();
    };
    stricter
        .iter()
        .filter_map(|policy| sentence(analysis, &pairs(analysis, factor, base, *policy)))
        .map(|text| Finding {
            rule: COST_OF_SYNC,
            text,
        })
        .collect()
}

/// Two cells that differ in the sync policy only.
#[derive(Debug)]
pub(crate) struct Pair<'a> {
    held: Vec<String>,
    pub(crate) base: &'a CellAnalysis,
    pub(crate) strict: &'a CellAnalysis,
    /// The response of the stricter one over that of the base.
    pub(crate) ratio: Ratio,
}

/// Each sync policy against the least strict one that was measured.
pub(crate) fn sync_pairs(analysis: &Analysis) -> Vec<Pair<'_>> {
    let Some((factor, base, stricter)) = compared(analysis) else {
        return Vec::new();
    };
    let of = |policy: &SyncPolicy| pairs(analysis, factor, base, *policy);
    stricter.iter().flat_map(of).collect()
}

/// The place of the factor, the least strict policy that was measured, and the others.
fn compared(analysis: &Analysis) -> Option<(usize, SyncPolicy, Vec<SyncPolicy>)> {
    let factor = analysis.factors.iter().position(|f| f == "sync")?;
    let measured = |policy: &SyncPolicy| {
        let of = |c: &CellAnalysis| c.n > 0 && c.cell.trial().sync == *policy;
        analysis.cells.iter().any(of)
    };
    let mut policies = POLICIES.into_iter().filter(measured);
    Some((factor, policies.next()?, policies.collect()))
}

fn pairs(
    analysis: &Analysis,
    factor: usize,
    base: SyncPolicy,
    policy: SyncPolicy,
) -> Vec<Pair<'_>> {
    let cells = |sync: SyncPolicy| {
        analysis
            .cells
            .iter()
            .filter(move |c| c.cell.trial().sync == sync)
    };
    let pair = |strict| {
        let held = held_levels(analysis, strict, factor);
        let same = |c: &&CellAnalysis| held_levels(analysis, c, factor) == held;
        let base = cells(base).find(same)?;
        let ratio = ratio_of_medians(&base.values, &strict.values, CONFIDENCE)?;
        Some(Pair {
            held,
            base,
            strict,
            ratio,
        })
    };
    cells(policy).filter_map(pair).collect()
}

fn sentence(analysis: &Analysis, pairs: &[Pair<'_>]) -> Option<String> {
    let (first, last) = (pairs.first()?, pairs.last()?);
    let response = analysis.response;
    let mut text = format!(
        "{} with sync={} over that with sync={}: {}",
        capitalised(&response.to_string()),
        first.strict.cell.trial().sync,
        first.base.cell.trial().sync,
        first.in_words(response)
    );
    if pairs.len() == 1 {
        text.push_str(match first.costs(response) {
            true => ". The stricter policy costs.",
            false => ". No cost is shown.",
        });
        return Some(text);
    }
    let costly = pairs.iter().filter(|pair| pair.costs(response)).count();
    let verdict = match costly {
        0 => "No cost is shown at any of the".to_owned(),
        all if all == pairs.len() => "The stricter policy costs at all of the".to_owned(),
        some => format!("The stricter policy costs at {some} of the"),
    };
    text.push_str(&format!(
        ", {}. {verdict} {} settings compared.",
        last.in_words(response),
        pairs.len()
    ));
    Some(text)
}

impl Pair<'_> {
    /// Whether the whole interval lies on the worse side.
    fn costs(&self, response: Response) -> bool {
        let worse = |i: Interval| match response.is_time() {
            true => i.low > 1.0,
            false => i.high < 1.0,
        };
        self.ratio.interval.is_some_and(worse)
    }

    fn in_words(&self, response: Response) -> String {
        let median = |cell: &CellAnalysis| {
            let median = cell.response.map_or(0.0, |r| r.median);
            format!("{}{}", response.format(median), origin(cell))
        };
        let place = match self.held.as_slice() {
            [] => String::new(),
            held => format!(" with {}", held.join(" ")),
        };
        format!(
            "{}{place} ({} against {})",
            format_ratio(&self.ratio, ""),
            median(self.strict),
            median(self.base)
        )
    }
}
