//! Comparisons that evidence leaves undecided for the same reasons, as one sentence.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{Claim, Comparison, Difference};

use super::comparison::{compares_targets, place_of, said_sides};
use super::{WrittenClaims, doubts, finding, quantity, share_a_reason};
use crate::findings::Finding;

/// The sentence for all comparisons that are undecided like `claim`, which is the first of them; `None` where it is alone, or decided
/// somewhere.
pub(super) fn together<'c>(
    claim: &'c Claim,
    claims: &[&'c Claim],
    runs: &[&Analysis],
) -> Option<WrittenClaims<'c>> {
    let alike: Vec<&Claim> = claims
        .iter()
        .copied()
        .filter(|other| is_alike(claim, other))
        .collect();
    let [_, _, ..] = alike.as_slice() else {
        return None;
    };
    let all: Vec<&Comparison> = alike.iter().filter_map(|one| comparison(one)).collect();
    let first = comparison(claim)?;
    let effect = first.effects.first()?;
    let pairs: Vec<String> = all
        .iter()
        .filter_map(|one| {
            let (base, other) = said_sides(one, one.effects.first()?, runs);
            Some(format!("of {other} and {base}"))
        })
        .collect();
    let (last, before) = pairs.split_last()?;
    let count: usize = all.iter().map(|one| one.effects.len()).sum();
    let text = format!(
        "Cannot compare the {} {} or {last}, in any of {count} comparisons. For example{}: {}.",
        quantity(runs, effect.base),
        before.join(", "),
        place_of(first, effect),
        doubts(&effect.doubts),
    );
    Some(WrittenClaims {
        claims: alike,
        finding: Finding {
            text,
            ..finding(claim, runs)
        },
    })
}

/// Whether both are about the same runs, and all of their effects are in doubt for a reason in common. Targets have sentences of their own.
pub(super) fn is_alike(claim: &Claim, other: &Claim) -> bool {
    let (Some(first), Some(own)) = (comparison(claim), comparison(other)) else {
        return false;
    };
    let Some(effect) = first.effects.first() else {
        return false;
    };
    let is_undecided = |one: &Comparison| {
        !compares_targets(&one.contrast)
            && one.effects.iter().all(|own| {
                own.difference == Difference::CannotTell
                    && share_a_reason(&own.doubts, &effect.doubts)
            })
    };
    claim.runs() == other.runs() && is_undecided(first) && is_undecided(own)
}

fn comparison(claim: &Claim) -> Option<&Comparison> {
    match claim {
        Claim::Comparison(own) => Some(own),
        _ => None,
    }
}
