//! Results of interventions, in a clause, and in one paragraph each.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{
    Again, CauseVerdict, Claim, Suspects, claims as claims_of, is_answered, ordered,
};

use super::causes::{of_suspects, short, shortened};
use super::finding;

/// Most characters of a target.
const TARGET_MAX: usize = 100;

/// Verdicts that give a suspect a part in a difference, in the order of an answer.
const PARTS: [(CauseVerdict, &str); 3] = [
    (CauseVerdict::Cause, "cause"),
    (CauseVerdict::Joint, "joint cause (each is enough)"),
    (CauseVerdict::Contributes, "contributes"),
];

/// The result of an inquiry in a clause; `None` for other runs.
pub(crate) fn cause_in_short(analysis: &Analysis) -> Option<String> {
    of_claims(&claims_of(&[analysis]))
}

fn of_claims(claims: &[Claim]) -> Option<String> {
    let found = claims.iter().find_map(Claim::reproduction)?;
    let unknown = || "cannot tell".to_owned();
    Some(match found.again {
        Again::NotReproduced => "not reproduced".to_owned(),
        Again::CannotTell => unknown(),
        Again::Reproduced => {
            let suspects = || claims.iter().filter_map(Claim::suspects);
            let parts = PARTS.iter().filter_map(|(verdict, label)| {
                let own = suspects().filter(|one: &&Suspects| one.verdict == *verdict);
                let names = own.flat_map(|one| &one.suspects);
                let names: Vec<String> = names.map(|one| short(&one.suspect)).collect();
                (!names.is_empty()).then(|| format!("{label}: {}", names.join("; ")))
            });
            match parts.collect::<Vec<_>>().join("; ") {
                named if !named.is_empty() => named,
                _ if is_answered(claims) => "none of the suspects is the cause".to_owned(),
                _ => unknown(),
            }
        }
    })
}

/// The result of an inquiry as lines: the answer, then a sentence for each claim that names this many suspects.
pub(crate) fn causes_in_lines(claims: &[Claim], run: &Analysis, named: usize) -> Vec<String> {
    let target = shortened(&run.target, TARGET_MAX);
    let answer = of_claims(claims);
    let answer = answer.map(|answer| format!("{} on {target}: {answer}", run.experiment));
    let (shown, _) = ordered(claims);
    let sentences = shown.into_iter().map(|claim| match claim.suspects() {
        Some(found) => of_suspects(found, named),
        None => finding(claim, &[run]).text,
    });
    answer.into_iter().chain(sentences).collect()
}
