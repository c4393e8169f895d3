//! Results of interventions, in a clause, and in one paragraph each.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{
    Again, CauseVerdict, Claim, Reproduction, Suspected, Suspects, claims as claims_of,
    is_answered, ordered,
};
use iolab_workload::quantity::counted;

use super::causes::{REST, here, of_share, of_suspects, short, shortened, without_joint};
use super::{doubts, finding};

/// Most characters of the name of a target.
const TARGET_MAX: usize = 100;

/// The cause of a difference in a clause: `cause: a write cache (without it 84 % (80 to 88 %) of the difference
/// is gone); cleared: 2 suspects`; `None` for a run without an inquiry.
pub(crate) fn cause_in_short(analysis: &Analysis) -> Option<String> {
    of_claims(&claims_of(&[analysis]), true)
}

/// The clause for these claims, with the names of causes only.
fn names_of_causes(claims: &[Claim]) -> Option<String> {
    of_claims(claims, false)
}

fn of_claims(claims: &[Claim], has_shares: bool) -> Option<String> {
    let found = claims.iter().find_map(Claim::reproduction)?;
    let suspects: Vec<&Suspects> = claims.iter().filter_map(Claim::suspects).collect();
    Some(match found.again {
        Again::Reproduced => answer(found, &suspects, (has_shares, is_answered(claims))),
        // The numbers are in the next sentence.
        Again::NotReproduced if !has_shares => "not reproduced".to_owned(),
        Again::CannotTell if !has_shares => "cannot tell".to_owned(),
        Again::NotReproduced => format!("not reproduced, {}", here(found)),
        Again::CannotTell => {
            let but = match found.doubts.as_slice() {
                [] if found.level_changed => "; the level changed".to_owned(),
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

/// Causes of a reproduced difference, the part that they leave, and the number of cleared suspects.
fn answer(
    found: &Reproduction,
    suspects: &[&Suspects],
    (has_shares, is_answered): (bool, bool),
) -> String {
    let of = |verdict: CauseVerdict| {
        let own = suspects.iter().filter(move |one| one.verdict == verdict);
        own.flat_map(|one| &one.suspects)
    };
    let count = |verdict: CauseVerdict| of(verdict).count();
    let mut is_spelt = false;
    let mut list = |verdict: CauseVerdict| -> Vec<String> {
        let part = |one: &Suspected| match has_shares {
            false => short(&one.suspect),
            true => part(one, &mut is_spelt),
        };
        of(verdict).map(part).collect()
    };
    let (causes, contributions) = (list(CauseVerdict::Cause), list(CauseVerdict::Contributes));
    let joint: Vec<String> = of(CauseVerdict::Joint)
        .map(|one| short(&one.suspect))
        .collect();
    let without_all = of(CauseVerdict::Joint)
        .find_map(without_joint)
        .filter(|_| has_shares)
        .map(|without| format!(" ({without})"));
    let named = [
        (
            match causes.len() {
                1 => "cause: ",
                _ => "causes: ",
            },
            causes.join("; "),
        ),
        (
            "joint cause (each is enough): ",
            joint.join(" and ") + &without_all.unwrap_or_default(),
        ),
        ("contributes: ", contributions.join("; ")),
    ];
    let named = named.into_iter().filter(|(_, list)| !list.is_empty());
    let mut parts: Vec<String> = named.map(|(verb, list)| format!("{verb}{list}")).collect();
    let (unsettled, cleared) = (
        count(CauseVerdict::CannotTell),
        count(CauseVerdict::Cleared),
    );
    let untried = count(CauseVerdict::NotTried);
    let mut is_tallied = false;
    if parts.is_empty() {
        parts.push(match (is_answered, unsettled, cleared) {
            (true, _, _) => "none of the suspects is the cause".to_owned(),
            (false, 0, 0) => "cannot tell: no suspect was removed".to_owned(),
            // What was not removed may be the cause.
            (false, 0, _) => {
                is_tallied = true;
                format!(
                    "cannot tell: {} cleared, {untried} not tried",
                    counted(cleared as u64, "suspect")
                )
            }
            (false, _, _) => "cannot tell".to_owned(),
        });
    }
    if !has_shares {
        return parts.join("; ");
    }
    let left = found.unexplained.filter(|_| !found.is_explained);
    let left = left.filter(|left| left.share >= REST);
    parts.extend(left.map(|left| format!("not explained: {} of the difference", of_share(&left))));
    let tallies = [
        ("unsettled", unsettled),
        ("cleared", cleared),
        ("not tried", untried),
    ];
    let tallies = tallies.into_iter().filter(|(_, n)| *n > 0 && !is_tallied);
    parts.extend(tallies.map(|(what, n)| format!("{what}: {}", counted(n, "suspect"))));
    parts.join("; ")
}

/// `a write cache (without it 84 % (80 to 88 %) of the difference is gone)`; once that `is_spelt`, `few requests in flight (36 %)`: parts that
/// go without one suspect each do not add up.
fn part(one: &Suspected, is_spelt: &mut bool) -> String {
    let what = short(&one.suspect);
    match &one.share {
        _ if one.is_reversed => format!("{what} (without it the difference is reversed)"),
        None => what,
        Some(share) if one.by_itself => {
            format!("{what} (by itself {} of the difference)", of_share(share))
        }
        Some(share) if std::mem::replace(is_spelt, true) => {
            format!("{what} ({})", of_share(share))
        }
        Some(share) => format!(
            "{what} (without it {} of the difference is gone)",
            of_share(share)
        ),
    }
}

/// The answer, then whether the difference is reproduced and the part without explanation, then the suspects of
/// each verdict, at most `named` by name. `run` is the run of the claims.
pub(crate) fn causes_in_lines(claims: &[Claim], run: &Analysis, named: usize) -> Vec<String> {
    let target = shortened(&run.target, TARGET_MAX);
    let answer = names_of_causes(claims);
    let answer = answer.map(|answer| format!("{} on {target}: {answer}", run.experiment));
    let (shown, _) = ordered(claims);
    let sentences = shown.into_iter().map(|claim| match claim.suspects() {
        Some(found) => of_suspects(found, named),
        None => finding(claim, &[run]).text,
    });
    answer.into_iter().chain(sentences).collect()
}
