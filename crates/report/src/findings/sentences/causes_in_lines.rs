//! Results of interventions, one paragraph each.

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{Claim, ordered};

use super::cause_in_short::names_of_causes;
use super::causes::{of_suspects, shortened};
use super::finding;

/// Most characters of the name of a target.
const TARGET_MAX: usize = 100;

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
