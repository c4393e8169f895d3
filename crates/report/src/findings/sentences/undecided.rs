//! Comparisons that show nothing, and those that evidence leaves undecided for the same reasons, as one sentence each.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{Claim, Comparison, Contrast, Difference, Effect};
use iolab_workload::quantity::{counted, significant};

use super::comparison::{compares_targets, said_sides, sides, width};
use super::{WrittenClaims, at, doubts, finding, quantity, share_a_reason};
use crate::findings::Finding;

/// Claims that show nothing, one sentence for all levels of a factor.
pub(super) fn nothings<'c>(claims: &[&'c Claim], runs: &[&Analysis]) -> Vec<WrittenClaims<'c>> {
    let mut found = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    for claim in claims {
        let alone = || WrittenClaims {
            claims: vec![*claim],
            finding: finding(claim, runs),
        };
        let mut before = claims.iter().take_while(|other| *other != claim);
        if before.any(|other| is_alike(other, claim)) {
            continue;
        }
        if let Some(written) = merge_undecided(claim, claims, runs) {
            found.push(written);
            continue;
        }
        let Claim::Comparison(Comparison {
            contrast: Contrast::Levels { factor, base, .. },
            ..
        }) = claim
        else {
            found.push(alone());
            continue;
        };
        let of_factor = claims.iter().filter_map(|other| match other {
            Claim::Comparison(own) => Some((*other, own)),
            _ => None,
        });
        let of_factor = of_factor.filter(|(_, own)| matches!(&own.contrast, Contrast::Levels { factor: its, .. } if its == factor));
        // A level that cannot be judged for a reason of its own is told by itself.
        let is_doubted = |one: &Comparison| one.effects.iter().any(|one| !one.doubts.is_empty());
        let (doubted, alike): (Vec<_>, Vec<_>) = of_factor.partition(|(_, one)| is_doubted(one));
        if alike.len() < 2 || doubted.iter().any(|(own, _)| own == claim) {
            found.push(alone());
        } else if !told.contains(&factor.as_str()) {
            told.push(factor);
            let (claims, alike): (Vec<&Claim>, Vec<&Comparison>) = alike.into_iter().unzip();
            let text = levels_alike(factor, base, &alike, runs);
            found.push(WrittenClaims {
                claims,
                finding: Finding {
                    text,
                    ..finding(claim, runs)
                },
            });
        }
    }
    found
}

/// `No difference in throughput was found between buffer_init=untouched and 5 other levels ...`
fn levels_alike(factor: &str, base: &str, all: &[&Comparison], runs: &[&Analysis]) -> String {
    let first = all.iter().flat_map(|one| &one.effects).next();
    let response = first
        .map(|effect| quantity(runs, effect.base))
        .unwrap_or_default();
    let levels: Vec<&str> = all
        .iter()
        .filter_map(|one| match &one.contrast {
            Contrast::Levels { other, .. } => Some(other.as_str()),
            _ => None,
        })
        .collect();
    let effects = || all.iter().flat_map(|one| &one.effects);
    let can_tell = |one: &Effect| one.difference != Difference::CannotTell;
    if !effects().any(can_tell) {
        return format!(
            "Too few trials to compare the {response} of {factor}={base} with that of {}.",
            levels.join(", ")
        );
    }
    let widest = effects()
        .filter(|one| one.difference == Difference::NotFound)
        .max_by(|a, b| width(a).total_cmp(&width(b)));
    let detectable = widest.map_or_else(String::new, |effect| {
        let (low, high) = effect.estimate.interval.unwrap_or_default();
        format!(
            " The ratios lie within {} to {} (95 %).",
            significant(low),
            significant(high)
        )
    });
    let open = effects()
        .filter(|one| one.difference == Difference::CannotTell)
        .count();
    let open = match open {
        0 => String::new(),
        n => format!(" Too few trials in {}.", counted(n, "comparison")),
    };
    format!(
        "No difference in {response} was found between {factor}={base} and {} in {}.{detectable}{open}",
        levels.join(", "),
        counted(effects().count(), "comparison"),
    )
}

/// The sentence for all comparisons that are undecided like `claim`, which is the first of them; `None` where it is alone, or decided
/// somewhere.
fn merge_undecided<'c>(
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
    let response = quantity(runs, effect.base);
    let cannot = match levels_of_one(&all) {
        Some((factor, base, others)) => format!(
            "Cannot compare the {response} of {factor}={base} with that of {} ({}).",
            others.join(", "),
            counted(count, "comparison"),
        ),
        None => format!(
            "Cannot compare the {response} {} or {last}, in any of {count} comparisons.",
            before.join(", "),
        ),
    };
    let (base, other) = sides(&first.contrast, effect, runs);
    let text = format!(
        "{cannot} For example {other} and {base}{}: {}.",
        at(&effect.held),
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

/// The factor, the base and the other levels, where all compare levels of one factor with one base; `None` elsewhere.
fn levels_of_one<'c>(all: &[&'c Comparison]) -> Option<(&'c str, &'c str, Vec<&'c str>)> {
    let levels = all.iter().map(|one| match &one.contrast {
        Contrast::Levels {
            factor,
            base,
            other,
        } => Some((factor.as_str(), base.as_str(), other.as_str())),
        _ => None,
    });
    let levels: Vec<(&str, &str, &str)> = levels.collect::<Option<_>>()?;
    let (factor, base, _) = *levels.first()?;
    let is_of_both = |one: &(&str, &str, &str)| (one.0, one.1) == (factor, base);
    let others = levels.iter().map(|one| one.2).collect();
    levels
        .iter()
        .all(is_of_both)
        .then_some((factor, base, others))
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
