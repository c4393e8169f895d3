//! What `iolab why` prints: the difference that is explained, what is tried, and what that showed.

use std::time::Duration;

use iolab_analysis::analysis::Analysis;
use iolab_analysis::claim::{Claim, Phenomenon};
use iolab_plan::experiment::Inquiry;
use iolab_plan::suspect::Suspect;
use iolab_workload::quantity::{counted, exact_duration, significant};

use crate::findings::sentences;

/// A difference in words: `throughput at pattern=rand is 0.0123 times that at pattern=seq (bs=4KiB)`.
pub fn phenomenon(run: &Analysis, phenomenon: &Phenomenon) -> String {
    let base = run.levels_of(phenomenon.base.cell);
    let other = run.levels_of(phenomenon.other.cell);
    let (mut of_base, mut of_other, mut shared) = (Vec::new(), Vec::new(), Vec::new());
    for ((factor, base), other) in run.factors.iter().zip(base).zip(other) {
        match base == other {
            true => shared.push(format!("{factor}={base}")),
            false => {
                of_base.push(format!("{factor}={base}"));
                of_other.push(format!("{factor}={other}"));
            }
        }
    }
    let shared = match shared.is_empty() {
        true => String::new(),
        false => format!(" ({})", shared.join(", ")),
    };
    let expected = match phenomenon.expected {
        1.0 => String::new(),
        more => format!(", not {} times", significant(more)),
    };
    format!(
        "{} at {} is {} times that at {}{expected}{shared}",
        run.response,
        of_other.join(", "),
        significant(phenomenon.seen),
        of_base.join(", "),
    )
}

/// That the run itself names the cause: its two cells differ in a suspect and in nothing else.
pub fn by_construction(run: &Analysis, found: &Phenomenon, suspect: &Suspect) -> String {
    format!(
        "{}. The two cells differ in {} and in nothing else: the run itself shows the cause.",
        phenomenon(run, found),
        suspect.what
    )
}

/// The difference to explain, and the removed suspects.
pub fn plan(inquiry: &Inquiry) -> String {
    let names = inquiry.tried.iter().filter_map(|name| Suspect::find(name));
    let tried: Vec<String> = names
        .map(|suspect| format!("{} ({})", suspect.name, suspect.change))
        .collect();
    let tried = match tried.is_empty() {
        true => "no suspect can be removed".to_owned(),
        false => format!(
            "{}: {}",
            counted(tried.len() as u64, "suspect"),
            tried.join("; ")
        ),
    };
    let untried = inquiry
        .untried
        .iter()
        .map(|one| (one.suspect.clone(), sentences::obstacle(&one.why)));
    let untried = sentences::by_reason(untried)
        .into_iter()
        .map(|(why, names)| format!("; not tried: {} ({why})", names.join(", ")));
    let untried: String = untried.collect();
    let is_measured = |_: &u64| !inquiry.tried.is_empty();
    let idle = inquiry
        .idle_ns
        .filter(is_measured)
        .map_or_else(String::new, |ns| {
            let idle = exact_duration(Duration::from_nanos(ns));
            format!(
                "; each trial begins after {idle} of idle time, because a side changes its level"
            )
        });
    let shorter = inquiry
        .shorter_ns
        .filter(is_measured)
        .map_or_else(String::new, |ns| {
            let time = exact_duration(Duration::from_nanos(ns));
            format!("; trials are shortened to {time}, because the budget would allow too few longer ones")
        });
    format!("{}; {tried}{shorter}{idle}{untried}", inquiry.phenomenon)
}

/// What was found, a line each, the phenomenon first.
pub fn lines(claims: &[Claim], run: &Analysis) -> Vec<String> {
    let (shown, _) = sentences::written(claims, &[run]);
    shown.into_iter().map(|one| one.finding.text).collect()
}
