//! Rounds until a steady state in short, and tests of a standard, in words.

use iolab_analysis::analysis::{Analysis, RoundsEnd, StandardFollowed, SteadyAnalysis};
use iolab_analysis::claim::against_steady_state;
use iolab_plan::standard::{Deviation, Medium};
use iolab_workload::units::{counted, digits, exact_duration};

/// `steady after 8 rounds`: what rounds came to, in a few words.
pub(crate) fn state_in_short(analysis: &Analysis, steady: &SteadyAnalysis) -> String {
    let rounds = counted(steady.rounds as u64, "round");
    match steady.end {
        RoundsEnd::Steady if against_steady_state(analysis, steady).is_empty() => {
            format!("steady after {rounds}")
        }
        RoundsEnd::Steady => format!(
            "not shown to be in a steady state after {rounds}, although the last ones are alike"
        ),
        RoundsEnd::NotSteady => format!("not steady after {rounds}"),
        RoundsEnd::TooFew | RoundsEnd::LacksValues | RoundsEnd::Unended => {
            format!("not judged after {rounds}")
        }
    }
}

/// Conformance of a planned run to the test of a standard, as far as known before it.
pub(crate) fn foreseen(followed: &StandardFollowed, medium: Option<Medium>) -> String {
    let unknown = match medium {
        Some(Medium::Model) => "how the run ends is not known yet",
        Some(Medium::Device | Medium::File) => {
            "its size, its write cache and how the run ends are not known yet"
        }
        None => "what the target is and how the run ends are not known yet",
    };
    match followed.deviations.is_empty() {
        true => format!(
            "So far iolab finds no deviation from {} in SNIA's PTS 2.0.2; {unknown}.",
            followed.test
        ),
        false => conformance(followed),
    }
}

/// Conformance of the run to the test of the standard.
fn conformance(followed: &StandardFollowed) -> String {
    let test = followed.test;
    let deviations: Vec<String> = followed.deviations.iter().map(deviation).collect();
    match in_words_of_standard(followed) {
        None => format!("iolab finds no deviation from {test} in SNIA's PTS 2.0.2."),
        Some(what) => format!("{test} is {what}: {}.", deviations.join("; ")),
    }
}

/// `scaled, not PTS`; `None` without a deviation.
pub(crate) fn in_words_of_standard(followed: &StandardFollowed) -> Option<String> {
    match (followed.is_scaled(), followed.deviations.is_empty()) {
        (_, true) => None,
        (true, false) => Some("scaled, not PTS".to_owned()),
        (false, false) => Some("not PTS".to_owned()),
    }
}

/// A deviation from a test of the standard, in words.
pub(crate) fn deviation(deviation: &Deviation) -> String {
    match deviation {
        Deviation::RoundTime { time, of } => format!(
            "trials of {} instead of {}",
            exact_duration(*time),
            exact_duration(*of)
        ),
        Deviation::Saturation { fills } => format!(
            "only {} times the size of the device was written (4 times, or 24 h, in the test)",
            digits(*fills, 2)
        ),
        Deviation::Bounded => "trials may end before their time".to_owned(),
        Deviation::File => "a file on a file system instead of a device".to_owned(),
        Deviation::ActiveRange(share) => {
            format!("{} % of the device is used", digits(share * 100.0, 2))
        }
        Deviation::NotPurged => "not purged".to_owned(),
        Deviation::TrimmedOnly => "trimmed instead of purged".to_owned(),
        Deviation::TrimRefused => {
            "neither purged nor trimmed, because the target refuses trims".to_owned()
        }
        Deviation::Passes => "other passes of writes before the rounds".to_owned(),
        Deviation::WrittenOut => {
            "what a trial left in a cache was written out before the next one, also where there is no wait"
                .to_owned()
        }
        Deviation::WriteCacheOn => {
            "the volatile write cache is on (off in the test)".to_owned()
        }
        Deviation::Cells { missing, of } => format!("{missing} of its {of} cells are missing"),
        Deviation::FurtherCells(count) => {
            format!("{} not in the test", counted(*count as u64, "cell"))
        }
        Deviation::Order => "its cells are in another order".to_owned(),
        Deviation::Setting(name) => format!("{name} differs"),
        Deviation::Requests => "other addresses or sizes of requests".to_owned(),
        Deviation::Tracked => "other cells are tracked".to_owned(),
        Deviation::Limits => "a shorter window, wider limits or more rounds".to_owned(),
        Deviation::PageCache => "through the page cache".to_owned(),
    }
}
