//! Reasons for an open answer, in words.

use iolab_analysis::doubt::DoubtKind;
use iolab_analysis::fitness::{Judged, MARGIN, Open, ReasonedAnswer};
use iolab_workload::quantity::counted;

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
pub(crate) fn why(judged: &Judged) -> String {
    judged.open.map_or_else(String::new, words)
}

/// `5 trials are too few for an interval (6 are needed)`.
fn words(reason: Open) -> String {
    match reason {
        Open::NoRequest => "no such request was measured".to_owned(),
        Open::FewTrials { trials, needed } => format!(
            "{} too few for an interval ({needed} are needed)",
            are(trials as u64, "trial")
        ),
        Open::FewRequests {
            requests: 1,
            trials: _,
        } => "1 request is too few for an interval".to_owned(),
        Open::FewRequests { requests, trials } => format!(
            "{requests} requests in {} are too few for an interval",
            counted(trials as u64, "trial")
        ),
        Open::FewForMaximum { requests } => {
            format!("{} too few for a maximum", are(requests, "request"))
        }
        Open::FewForUpperEnd { requests } => format!(
            "{} too few for an upper end of the interval",
            are(requests, "request")
        ),
        Open::WithinMargin => format!(
            "the value is at the level (the whole interval lies within {} of it)",
            margin()
        ),
        Open::InInterval => format!(
            "the level is within the interval, or within {} of it",
            margin()
        ),
    }
}

/// `5 %`.
fn margin() -> String {
    format!("{} %", 100.0 * MARGIN)
}

/// `1 trial is`, `5 trials are`.
fn are(number: u64, of: &str) -> String {
    let verb = if number == 1 { "is" } else { "are" };
    format!("{} {verb}", counted(number, of))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_a_clause() {
        let all = [
            Open::NoRequest,
            Open::FewTrials {
                trials: 1,
                needed: 6,
            },
            Open::FewTrials {
                trials: 5,
                needed: 6,
            },
            Open::FewRequests {
                requests: 1,
                trials: 6,
            },
            Open::FewRequests {
                requests: 12,
                trials: 6,
            },
            Open::FewForMaximum { requests: 1 },
            Open::FewForMaximum { requests: 40 },
            Open::FewForUpperEnd { requests: 120 },
            Open::WithinMargin,
            Open::InInterval,
        ];
        insta::assert_snapshot!(all.map(words).join("\n"), @r"
        no such request was measured
        1 trial is too few for an interval (6 are needed)
        5 trials are too few for an interval (6 are needed)
        1 request is too few for an interval
        12 requests in 6 trials are too few for an interval
        1 request is too few for a maximum
        40 requests are too few for a maximum
        120 requests are too few for an upper end of the interval
        the value is at the level (the whole interval lies within 5 % of it)
        the level is within the interval, or within 5 % of it
        ");
    }
}
