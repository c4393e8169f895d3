//! Rounds until a steady state, and the tests of a standard, in words.

use iolab_analysis::analysis::{Analysis, RoundsOf, StandardFollowed};
use iolab_analysis::claim::{Rounds, TrackedState};
use iolab_plan::standard::Deviation;
use iolab_stats::Steadiness;
use iolab_workload::escape_control::escape_control;
use iolab_workload::quantity::{counted, digits, exact_duration, format_percent};

use super::at_cell;

/// What the sentence rests on.
pub(super) const BASIS: &str = "the last rounds of all cells, or of the writes before them: their range and the line of least squares through them, over their mean";

/// Whether rounds came to a steady state, and where the run deviates from the standard that it follows.
pub(super) fn of_rounds(found: &Rounds, run: &Analysis) -> String {
    let state = state(found, run);
    match found.standard.as_ref().map(conformance) {
        Some(conformance) => format!("{state} {conformance}"),
        None => state,
    }
}

fn state(found: &Rounds, run: &Analysis) -> String {
    let made = counted(found.rounds as u64, "round");
    let what = match found.of {
        RoundsOf::Cells => "",
        RoundsOf::Writes => " of random writes before the first trial",
    };
    let asked = &found.asked;
    let worst = found.worst.and_then(|place| found.tracked.get(place));
    let judged = worst.and_then(|worst| Some((worst, worst.steadiness?)));
    let Some((worst, steady)) = judged else {
        return match found.rounds < asked.window as usize {
            true => format!(
                "Not steady after {made}{what}: a window has {}.",
                asked.window
            ),
            false => format!(
                "Not judged after {made}{what}: a tracked cell lacks values of {}.",
                run.quantity()
            ),
        };
    };
    let window = window(found, worst, steady, run);
    match (found.is_reached, found.standard.is_some()) {
        (true, true) => format!("Steady state after {made}{what}: {window}."),
        (true, false) => format!("Steady after {made}{what}: {window}."),
        (false, _) => format!(
            "NOT steady after {made}{what}: {window}. {}",
            match found.of {
                RoundsOf::Cells => format!(
                    "The numbers are those of the last {} rounds; more of them (rounds=N in --precondition) may reach it.",
                    asked.window.min(found.rounds as u32)
                ),
                RoundsOf::Writes =>
                    "The level may have changed during the trials; more rounds (rounds=N in --precondition) may reach it."
                        .to_owned(),
            }
        ),
    }
}

/// `over the last 5, iops at bs=4KiB ranges over 3.1 % of its mean (20 % allowed) with a slope of 1.0 % (10 % allowed)`.
fn window(found: &Rounds, worst: &TrackedState, steady: Steadiness, run: &Analysis) -> String {
    let subject = match (worst.cell, &worst.target) {
        (Some(cell), _) => format!("{}{}", run.quantity(), at_cell(run, cell)),
        (None, Some(target)) => format!("IOPS on {}", escape_control(target)),
        (None, None) => "IOPS".to_owned(),
    };
    let of_several = match found.tracked.len() {
        0 | 1 => String::new(),
        n if worst.cell.is_some() => format!(", the least steady of {n} tracked cells,"),
        n => format!(", the least steady of {n} targets,"),
    };
    format!(
        "over the last {}, {subject}{of_several} ranges over {} of its mean ({} allowed) with a slope of {} ({} allowed)",
        found.asked.window,
        format_percent(steady.range),
        format_percent(found.asked.range),
        format_percent(steady.slope),
        format_percent(found.asked.slope)
    )
}

/// How far the run is the test of the standard.
pub(crate) fn conformance(followed: &StandardFollowed) -> String {
    let test = followed.test.name();
    let deviations: Vec<String> = followed.deviations.iter().map(deviation).collect();
    match (followed.is_scaled(), deviations.is_empty()) {
        (_, true) => format!("iolab finds no deviation from {test} of SNIA's PTS 2.0.2."),
        (true, false) => format!("{test} is scaled, not PTS: {}.", deviations.join("; ")),
        (false, false) => format!("{test} is not PTS: {}.", deviations.join("; ")),
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
        Deviation::RoundTime(time) => {
            format!("trials of {} instead of 1 min", exact_duration(*time))
        }
        Deviation::Bounded => "trials may end before 1 min".to_owned(),
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
        Deviation::WriteCacheOn => {
            "the volatile write cache is on (off in the enterprise edition)".to_owned()
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
        Deviation::NoPreWrites => "no writes between its cells".to_owned(),
    }
}
