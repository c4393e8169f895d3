//! What interventions show, in a clause.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{
    Again, Claim, Reproduction, Suspected, Suspects, Verdict, claims as claims_of,
};
use iolab_workload::quantity::{counted, significant};

use super::causes::{self, REST, of_share};
use super::doubts;

/// The cause of a difference in a clause: `cause: a write cache, 84 % (80 to 88 %) of the difference; cleared: 2 suspects`; `None` of a run
/// that looks for none.
pub(crate) fn cause_in_short(analysis: &Analysis) -> Option<String> {
    let claims = claims_of(&[analysis]);
    let found = claims.iter().find_map(|claim| match claim {
        Claim::Reproduced(found) => Some(found),
        _ => None,
    })?;
    let suspects: Vec<&Suspects> = claims
        .iter()
        .filter_map(|claim| match claim {
            Claim::Suspects(suspects) => Some(suspects),
            _ => None,
        })
        .collect();
    Some(match found.again {
        Again::Reproduced => answer(found, &suspects),
        Again::NotReproduced => format!("not reproduced, {}", here(found)),
        Again::CannotTell => {
            let but = match found.doubts.as_slice() {
                [] => String::new(),
                all => format!("; {}", doubts(all)),
            };
            format!(
                "cannot tell whether the difference is there again, {}{but}",
                here(found)
            )
        }
    })
}

/// `1.02 times (0.981 to 1.06) in 12 blocks`: the difference in the run that was to explain it.
fn here(found: &Reproduction) -> String {
    let blocks = counted(found.blocks, "block");
    match (found.ratio, found.interval) {
        (Some(ratio), Some((low, high))) => format!(
            "{} times ({} to {}) in {blocks}",
            significant(ratio),
            significant(low),
            significant(high)
        ),
        (Some(ratio), None) => format!("{} times in {blocks}", significant(ratio)),
        (None, _) => "no block with both sides".to_owned(),
    }
}

/// What makes a difference that is there again, how much of it that leaves, and how many suspects it is not.
fn answer(found: &Reproduction, suspects: &[&Suspects]) -> String {
    let of = |verdict: Verdict| {
        let own = suspects.iter().filter(move |one| one.verdict == verdict);
        own.flat_map(|one| &one.suspects)
    };
    let list = |verdict: Verdict| of(verdict).map(part).collect::<Vec<_>>().join(" and ");
    let joint: Vec<String> = of(Verdict::Joint).map(|one| what(&one.suspect)).collect();
    let named = [
        ("cause: ", list(Verdict::Cause)),
        (
            "joint cause (each is enough): ",
            joint.join(" and ") + &of(Verdict::Joint).find_map(share).unwrap_or_default(),
        ),
        ("contributes: ", list(Verdict::Contributes)),
    ];
    let named = named.into_iter().filter(|(_, list)| !list.is_empty());
    let mut parts: Vec<String> = named.map(|(verb, list)| format!("{verb}{list}")).collect();
    let count = |verdict: Verdict| of(verdict).count();
    let (unsettled, cleared) = (count(Verdict::CannotTell), count(Verdict::Cleared));
    let untried = count(Verdict::NotTried);
    if parts.is_empty() {
        parts.push(match (unsettled, cleared) {
            (0, 0) => "cannot tell: no suspect was taken away".to_owned(),
            (0, _) => "none of the suspects is the cause".to_owned(),
            _ => "cannot tell".to_owned(),
        });
    }
    let left = found.unexplained.filter(|_| !found.is_explained);
    let left = left.filter(|left| left.share >= REST);
    parts.extend(left.map(|left| format!("not explained: {} of the difference", of_share(&left))));
    let tallies = [
        ("unsettled", unsettled),
        ("cleared", cleared),
        ("not tried", untried),
    ];
    let tallies = tallies.into_iter().filter(|(_, n)| *n > 0);
    parts.extend(tallies.map(|(what, n)| format!("{what}: {}", counted(n, "suspect"))));
    parts.join("; ")
}

/// A suspect in words, without what explains them.
fn what(name: &str) -> String {
    let words = causes::what(name);
    words.split(" (").next().unwrap_or_default().to_owned()
}

/// `a write cache, 84 % (80 to 88 %) of the difference`.
fn part(one: &Suspected) -> String {
    what(&one.suspect) + &share(one).unwrap_or_default()
}

fn share(one: &Suspected) -> Option<String> {
    match (&one.share, one.is_reversed) {
        (_, true) => Some(", without which the difference is reversed".to_owned()),
        (Some(share), false) => Some(format!(", {} of the difference", of_share(share))),
        (None, false) => None,
    }
}
