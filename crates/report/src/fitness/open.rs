//! Reasons for an open answer, in words.

use iolab_analysis::doubt::DoubtKind;
use iolab_analysis::fitness::{Judged, ReasonedAnswer};

/// The answer in a line: `yes`, `cannot tell: suspended, disturbed`.
pub(crate) fn in_line(answer: &ReasonedAnswer) -> String {
    let word = answer.answer();
    match answer {
        ReasonedAnswer::Yes | ReasonedAnswer::No => word.to_string(),
        ReasonedAnswer::CannotTell(reasons) => format!("{word}: {}", in_words(reasons)),
    }
}

/// The reasons: `suspended, few trials`.
pub(crate) fn in_words(reasons: &[DoubtKind]) -> String {
    let texts = reasons.iter().map(DoubtKind::to_string);
    texts.collect::<Vec<_>>().join(", ")
}

/// Reason for an open answer to a level, as a clause; empty if it is not open.
pub(crate) fn why(judged: &Judged) -> &'static str {
    judged.open.map_or("", DoubtKind::words)
}
