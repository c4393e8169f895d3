//! Results of interventions, in a clause, and in one paragraph each.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{
    Again, CauseVerdict, Claim, Reproduction, Suspected, Suspects, claims as claims_of,
    is_answered, ordered,
};
use iolab_workload::quantity::counted;

use super::causes::{REST, here, of_share, of_suspects, short, shortened, without_joint};
use super::{doubts, finding};

/// Most characters of a target.
const TARGET_MAX: usize = 100;

/// The verdicts in the order of an answer, and whether it names their suspects.
const VERDICTS: [(CauseVerdict, &str, bool); 6] = [
    (CauseVerdict::Cause, "cause", true),
    (CauseVerdict::Joint, "joint cause (each is enough)", true),
    (CauseVerdict::Contributes, "contributes", true),
    (CauseVerdict::CannotTell, "unsettled", false),
    (CauseVerdict::Cleared, "cleared", false),
    (CauseVerdict::NotTried, "not tried", false),
];

/// The result of an inquiry in a clause; `None` for other runs.
pub(crate) fn cause_in_short(analysis: &Analysis) -> Option<String> {
    of_claims(&claims_of(&[analysis]), true)
}

/// The result, with the shares of the suspects unless the next sentences have them.
fn of_claims(claims: &[Claim], has_shares: bool) -> Option<String> {
    let found = claims.iter().find_map(Claim::reproduction)?;
    Some(match found.again {
        Again::Reproduced => answer(found, claims, has_shares),
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
            let here = here(found);
            format!("cannot tell whether the difference is there again, {here}{but}")
        }
    })
}

fn answer(found: &Reproduction, claims: &[Claim], has_shares: bool) -> String {
    let suspects: Vec<&Suspects> = claims.iter().filter_map(Claim::suspects).collect();
    let of = |verdict: CauseVerdict| -> Vec<&Suspected> {
        let own = suspects.iter().filter(|one| one.verdict == verdict);
        own.flat_map(|one| &one.suspects).collect()
    };
    let is_named = VERDICTS
        .iter()
        .any(|(verdict, _, named)| *named && !of(*verdict).is_empty());
    let mut parts = Vec::new();
    if !is_named {
        parts.push(match is_answered(claims) {
            true => "none of the suspects is the cause".to_owned(),
            false => "cannot tell".to_owned(),
        });
    }
    for (verdict, label, named) in VERDICTS {
        let own = of(verdict);
        let which = match (own.len(), named) {
            (0, _) => continue,
            (_, false) if !has_shares => continue,
            (n, false) => counted(n as u64, "suspect"),
            _ => {
                let names: Vec<String> = own
                    .iter()
                    .map(|one| match has_shares && verdict != CauseVerdict::Joint {
                        true => part(one),
                        false => short(&one.suspect),
                    })
                    .collect();
                names.join("; ")
            }
        };
        let together = own.into_iter().find_map(without_joint);
        let together = together.filter(|_| has_shares && verdict == CauseVerdict::Joint);
        let together = together.map_or_else(String::new, |without| format!(" ({without})"));
        parts.push(format!("{label}: {which}{together}"));
    }
    let left = found.unexplained.filter(|_| !found.is_explained);
    let left = left.filter(|left| has_shares && left.share >= REST && is_named);
    parts.extend(left.map(|left| format!("not explained: {} of the difference", of_share(&left))));
    parts.join("; ")
}

/// A suspect with its share.
fn part(one: &Suspected) -> String {
    let what = short(&one.suspect);
    match &one.share {
        _ if one.is_reversed => format!("{what} (without it the difference is reversed)"),
        None => what,
        Some(share) if one.by_itself => {
            format!("{what} (by itself {} of the difference)", of_share(share))
        }
        Some(share) => format!("{what} ({} of the difference)", of_share(share)),
    }
}

/// The result of an inquiry as lines: the answer, then a sentence for each claim that names this many suspects.
pub(crate) fn causes_in_lines(claims: &[Claim], run: &Analysis, named: usize) -> Vec<String> {
    let target = shortened(&run.target, TARGET_MAX);
    let answer = of_claims(claims, false);
    let answer = answer.map(|answer| format!("{} on {target}: {answer}", run.experiment));
    let (shown, _) = ordered(claims);
    let sentences = shown.into_iter().map(|claim| match claim.suspects() {
        Some(found) => of_suspects(found, named),
        None => finding(claim, &[run]).text,
    });
    answer.into_iter().chain(sentences).collect()
}
