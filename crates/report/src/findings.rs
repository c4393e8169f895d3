//! What was found, in plain sentences: claims in words, and what limits the numbers.
//!
//! Files to begin with: `words.rs` claims as sentences, `rule.rs` what else is said and on what it rests, one file a topic,
//! `digest.rs` what several runs mean for a decision (`trust.rs` how far to trust them, `digest/`
//! findings by weight, merged).

mod agreement;
mod ceiling;
mod conclusion;
pub mod digest;
mod disturbance;
pub mod interpretation;
mod limits;
mod peers;
mod precision;
mod ranks;
mod rate;
mod rule;
mod run;
mod tail;
pub mod trust;
pub mod words;

pub use agreement::{agreement, overall, tally};
pub use ceiling::exceeds_ceiling;
pub use conclusion::conclusion;
pub use disturbance::{
    cpu_contended, not_durable, other_traffic, read_ahead, requests_in_pieces, requests_split,
    suspended, write_back_owed,
};
use iolab_workload::quantity::significant;
pub use limits::{limits, no_given_load, one_cache_state, one_place, untouched};
pub use peers::{gaps, peers};
pub use precision::below_precision;
pub use ranks::{caches_kept, imbalance, stragglers};
pub use rate::rate_not_held;
pub(crate) use rule::Says;
pub use rule::{FindingKind, Rule};
pub use run::{a_model, failed_trials, not_the_device, unfinished};
pub use tail::tail_unknown;
use words::WrittenClaims;

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::bends::Bends;
use iolab_analysis::claim::{self, Estimate};
use iolab_record::ServedBy;

/// One sentence or two, and the rule that wrote them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule.
    pub rule: Rule,
    /// What was found.
    pub text: String,
}

/// What limits the numbers of one run, topic by topic: how far it got, where its bytes came from, what disturbed it.
const TOPICS: &[&[Says]] = &[
    run::STATUS,
    peers::SAYS,
    run::ORIGIN,
    disturbance::SAYS,
    rate::HELD,
    ceiling::SAYS,
    ranks::SAYS,
    precision::SAYS,
    tail::UNKNOWN,
    run::FAILURES,
];

/// A run, and where its curves bend.
pub type Bending<'a> = (&'a Analysis, &'a Bends);

/// All that can be said of one run: what it shows, in the order of [`claim::Role`]; what limits it; and last what it does not show.
pub fn findings(analysis: &Analysis, bends: &Bends) -> Vec<Finding> {
    let OfRuns { mut each, .. } = of_runs(&[(analysis, bends)]);
    each.pop().unwrap_or_default()
}

/// What can be said of runs that are shown together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfRuns {
    /// Of each by itself, in their order: what none of the others contradicts.
    pub each: Vec<Vec<Finding>>,
    /// What random costs against sequential, where each was measured by a run of its own.
    pub across: Vec<Finding>,
}

/// All that can be said of runs that are shown together.
pub fn of_runs(runs: &[Bending<'_>]) -> OfRuns {
    let analyses: Vec<&Analysis> = runs.iter().map(|(analysis, _)| *analysis).collect();
    let claims = claim::of_runs(&analyses);
    let own = claims.each.into_iter().zip(runs).enumerate();
    let each = own.map(|(place, (mut claims, (analysis, bends)))| {
        claims.extend(claim::bent(analysis, bends, place));
        let (shown, not) = words::written(&claims, &analyses);
        let said = |written: Vec<WrittenClaims<'_>>| {
            let findings = written.into_iter().map(|one| one.finding);
            findings.collect::<Vec<Finding>>()
        };
        [said(shown), of_rules(analysis), said(not)].concat()
    });
    let across = claims.across.iter();
    OfRuns {
        each: each.collect(),
        across: across.map(|one| words::finding(one, &analyses)).collect(),
    }
}

/// What limits the numbers of one run.
pub(crate) fn of_rules(analysis: &Analysis) -> Vec<Finding> {
    let rules = TOPICS.iter().copied().flatten();
    rules.flat_map(|says| says(analysis)).collect()
}

/// What several runs show together: comparisons across them, and which settings to choose.
pub fn cross_findings<'a>(analyses: impl IntoIterator<Item = &'a Analysis>) -> Vec<Finding> {
    let analyses: Vec<&Analysis> = analyses.into_iter().collect();
    let across = claim::of_runs(&analyses).across;
    let across = across.iter().map(|one| words::finding(one, &analyses));
    with_choices(across.collect(), &analyses)
}

/// What several runs show together, from what they show across each other.
pub(crate) fn with_choices(mut across: Vec<Finding>, analyses: &[&Analysis]) -> Vec<Finding> {
    if analyses.len() > 1 {
        across.extend(choices(analyses));
    }
    across
}

/// Which settings to choose.
pub fn choices(analyses: &[&Analysis]) -> Vec<Finding> {
    let all = claim::choices(analyses);
    all.iter()
        .filter_map(|one| words::choice(one, analyses))
        .collect()
}

/// Says in brackets where the bytes came from, unless it was the device.
fn origin(cell: &CellAnalysis) -> String {
    let Some(served) = cell.served.as_ref().filter(|s| !s.is_target()) else {
        return String::new();
    };
    let what = match served.unanimous() {
        Some(ServedBy::PageCache) => "page cache",
        Some(ServedBy::NotStorage) => "not storage",
        Some(ServedBy::Unknown) => "of unknown origin",
        Some(other) => return format!(" [{other}]"),
        None => return format!(" [{served}]"),
    };
    format!(" [{what}]")
}

/// `3 of 16 cells`.
fn cells_of(n: usize, analysis: &Analysis) -> String {
    match analysis.cells.len() {
        1 if n == 1 => "The only cell".to_owned(),
        all if n == all => "All cells".to_owned(),
        all => format!("{n} of {all} cells"),
    }
}

/// `3 of 16 cells`, in the middle of a sentence.
fn within(n: usize, analysis: &Analysis) -> String {
    let text = cells_of(n, analysis);
    match text.strip_prefix("The only") {
        Some(rest) => format!("the only{rest}"),
        None => text.replacen("All", "all", 1),
    }
}

fn has(n: usize) -> &'static str {
    if n == 1 { "has" } else { "have" }
}

/// The text with its first letter made a capital.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

/// Writes a ratio with its interval: `1.31 (95 % interval 1.27 to 1.35)`.
fn format_estimate(estimate: &Estimate) -> String {
    let interval = match estimate.interval {
        Some((low, high)) => format!(
            "95 % interval {} to {}",
            significant(low),
            significant(high)
        ),
        None => "too few trials for an interval".to_owned(),
    };
    format!("{} ({interval})", significant(estimate.ratio))
}
