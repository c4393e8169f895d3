//! Levels of a factor that are equivalent to the same one, as one sentence.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{Claim, Comparison, Contrast, Difference};
use iolab_workload::settings::level_label;

use super::{WrittenClaims, at, finding, margin, quantity};
use crate::findings::Finding;

/// A claim in words, with all claims that its sentence is about; `claims` are those that are shown with it.
pub(crate) fn written_out<'c>(
    claim: &'c Claim,
    claims: &[&'c Claim],
    runs: &[&Analysis],
) -> WrittenClaims<'c> {
    let alone = finding(claim, runs);
    let alike = alike(claim, claims);
    match alike.as_slice() {
        [] | [_] => WrittenClaims {
            claims: vec![claim],
            finding: alone,
        },
        _ => WrittenClaims {
            finding: Finding {
                text: sentence(&alike, runs),
                ..alone
            },
            claims: alike.into_iter().map(|one| one.claim).collect(),
        },
    }
}

/// A level that is equivalent to another one wherever both were compared.
struct EquivalentLevel<'c> {
    claim: &'c Claim,
    comparison: &'c Comparison,
    factor: &'c str,
    base: &'c str,
    level: &'c str,
}

impl<'c> EquivalentLevel<'c> {
    fn of(claim: &'c Claim) -> Option<Self> {
        let Claim::Comparison(comparison) = claim else {
            return None;
        };
        let Contrast::Levels {
            factor,
            base,
            other,
        } = &comparison.contrast
        else {
            return None;
        };
        let mut effects = comparison.effects.iter();
        let is_equivalent = effects.all(|one| one.difference == Difference::Equivalent);
        (is_equivalent && !claim.compares_targets()).then_some(Self {
            claim,
            comparison,
            factor,
            base,
            level: other,
        })
    }
}

/// All levels that are equivalent to the same one, in the order of the claims; none where this claim says no such thing.
fn alike<'c>(claim: &'c Claim, claims: &[&'c Claim]) -> Vec<EquivalentLevel<'c>> {
    let Some(first) = EquivalentLevel::of(claim) else {
        return Vec::new();
    };
    let is_alike = |other: &EquivalentLevel<'_>| {
        (other.factor, other.base) == (first.factor, first.base)
            && other.claim.runs() == claim.runs()
    };
    let all = claims.iter().filter_map(|other| EquivalentLevel::of(other));
    all.filter(is_alike).collect()
}

/// `idle=1s and idle=10s are both equivalent to idle=0s in IOPS within 5 %.`
fn sentence(all: &[EquivalentLevel<'_>], runs: &[&Analysis]) -> String {
    let levels: Vec<String> = all
        .iter()
        .map(|one| level_label(one.factor, one.level))
        .collect();
    let (last, before) = match levels.split_last() {
        Some((last, before)) => (last.as_str(), before.join(", ")),
        None => ("", String::new()),
    };
    let word = if all.len() == 2 { "both" } else { "each" };
    let effects: Vec<_> = all.iter().flat_map(|one| &one.comparison.effects).collect();
    let base = all
        .first()
        .map_or_else(String::new, |one| level_label(one.factor, one.base));
    let place = match effects.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| other.held == first.held) => at(&first.held),
        all => format!(" in all {} comparisons", all.len()),
    };
    let response = effects
        .first()
        .map_or_else(String::new, |first| quantity(runs, first.base));
    format!(
        "{before} and {last} are {word} equivalent to {base} in {response} within {}{place}.",
        margin()
    )
}
