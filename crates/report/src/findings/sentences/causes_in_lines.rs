//! What interventions show, a paragraph each, with as much as there is room for.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{CauseVerdict, Claim, ordered};

use super::cause_in_short::{Said, of_claims};
use super::causes::{Detail, of_reproduction, of_suspects, shortened};
use super::finding;

/// Most characters of a target where names are all that is said of suspects.
const TARGET_MAX: usize = 100;

/// The verdicts that accuse a suspect.
const ACCUSED: [CauseVerdict; 3] = [
    CauseVerdict::Cause,
    CauseVerdict::Joint,
    CauseVerdict::Contributes,
];
/// The verdicts that accuse nothing.
const REST: [CauseVerdict; 3] = [
    CauseVerdict::Cleared,
    CauseVerdict::CannotTell,
    CauseVerdict::NotTried,
];

/// The answer, then whether the difference is there again with what is not explained, then each verdict. `run` is the one that the claims
/// were made of.
pub(crate) fn causes_in_lines(claims: &[Claim], run: &Analysis, detail: Detail) -> Vec<String> {
    // What the answer says, and the verdicts that are in it, or in the list at the end.
    let (said, left): (Said, &[[CauseVerdict; 3]]) = match detail {
        Detail::Full | Detail::Short => (Said::Names, &[]),
        Detail::Answered => (Said::Shares, &[ACCUSED]),
        Detail::Listed => (Said::Shares, &[ACCUSED, REST]),
        Detail::Names => (Said::ByName, &[ACCUSED, REST]),
    };
    let target = match detail {
        Detail::Full | Detail::Short | Detail::Answered | Detail::Listed => run.target.clone(),
        Detail::Names => shortened(&run.target, TARGET_MAX),
    };
    let answer = of_claims(claims, said);
    let answer = answer.map(|answer| format!("{} on {target}: {answer}", run.experiment));
    let (shown, _) = ordered(claims);
    let sentences = shown.into_iter().filter_map(|claim| match claim {
        Claim::Reproduced(found) => Some(of_reproduction(found, detail)),
        Claim::Suspects(found) if left.as_flattened().contains(&found.verdict) => None,
        Claim::Suspects(found) => Some(of_suspects(found, detail)),
        other => Some(finding(other, &[run]).text),
    });
    let names = match detail {
        Detail::Full | Detail::Short | Detail::Answered => None,
        Detail::Listed | Detail::Names => names(claims),
    };
    answer.into_iter().chain(sentences).chain(names).collect()
}

/// `Cleared: reach, tlb. Not tried: cpu-waiting. 'iolab table' of this run has the rest.`: the suspects that are not accused; `None` without any.
fn names(claims: &[Claim]) -> Option<String> {
    let of = |wanted: CauseVerdict| {
        let all = claims.iter().filter_map(move |claim| match claim {
            Claim::Suspects(found) if found.verdict == wanted => Some(found),
            _ => None,
        });
        let names = all.flat_map(|found| &found.suspects);
        names
            .map(|one| one.suspect.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let verbs = ["Cleared", "Cannot tell", "Not tried"];
    let parts: Vec<(&str, String)> = verbs.into_iter().zip(REST.map(of)).collect();
    let parts = parts.iter().filter(|(_, names)| !names.is_empty());
    let text: String = parts
        .map(|(verb, names)| format!("{verb}: {names}. "))
        .collect();
    (!text.is_empty()).then(|| text + "'iolab table' of this run has the rest.")
}
