//! The order of trials, rounds until a steady state, and tests of a standard, in words.

use super::super::within;
use super::beside_limit;
use super::with_cell;
use iolab_analysis::analysis::{
    Analysis, RoundsEnd, StandardFollowed, SteadyAnalysis, Tracked, TrackedOf,
};
use iolab_analysis::claim::{CellId, Rounds, RoundsDoubts, drifts, two_groups};
use iolab_plan::precondition::Round;
use iolab_plan::standard::{Deviation, Medium};
use iolab_record::EndedBy;
use iolab_stats::Steadiness;
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::{
    counted, digits, exact_duration, format_percent, format_percent_of_whole,
};

/// Whether rounds came to a steady state.
pub(super) fn of_rounds(found: &Rounds, run: &Analysis) -> String {
    let rounds = &found.steady;
    let made = counted(rounds.rounds as u64, "round");
    let what = match rounds.asked.round {
        Round::Cells => "",
        Round::Writes(_) => " of random writes before the first trial",
    };
    let asked = &rounds.asked;
    let window = rounds
        .worst()
        .and_then(|worst| Some(window(rounds, worst, worst.steadiness?, run)))
        .unwrap_or_default();
    let more = match (rounds.ended_by, asked.round) {
        (Some(EndedBy::Budget), Round::Cells) => "A larger --budget",
        (Some(EndedBy::Fills), Round::Cells) => "More fills=N in --precondition",
        _ => "More rounds=N in --precondition",
    };
    match rounds.end {
        RoundsEnd::Steady if found.doubts == RoundsDoubts::default() => {
            format!("{} after {made}{what}: {window}.", steady(found))
        }
        RoundsEnd::Steady => format!(
            "After {made}{what} the last {} are alike; not shown to be a steady state: {}. Here {window}.",
            asked.window,
            doubts_in_words(&found.doubts)
        ),
        RoundsEnd::NotSteady => {
            format!("NOT steady after {made}{what}: {window}. {more} may reach it.")
        }
        RoundsEnd::TooFew => format!(
            "Cannot tell whether it is steady: {} of {} of a window{what}. {more} helps.",
            rounds.judged,
            counted(u64::from(asked.window), "round")
        ),
        RoundsEnd::LacksValues => format!(
            "Cannot tell whether it is steady after {made}{what}: a tracked cell lacks values of {}.",
            run.quantity()
        ),
        RoundsEnd::Unended => format!(
            "The run did not end by its rounds: {made} complete, no window was chosen, and the numbers are from all trials."
        ),
    }
}

/// Name of steady rounds: only a standard's test, with its limits and cells, has a steady state.
fn steady(found: &Rounds) -> &'static str {
    match found.is_by_standard {
        true => "Steady state",
        false => "Steady by the limits asked",
    }
}

/// Doubts about rounds in words: `1.5 % of the region was written before them; 2 tracked cells were disturbed`.
fn doubts_in_words(doubts: &RoundsDoubts) -> String {
    let written = doubts.written.map(|share| {
        format!(
            "{} of the region was written before them",
            format_percent_of_whole(share)
        )
    });
    let cells = [
        (doubts.changing, "with changing throughput within trials"),
        (doubts.cached, "with writes left in a cache of the storage"),
        (doubts.disturbed, "disturbed"),
        (doubts.suspended, "suspended during a trial"),
    ];
    let cells = cells.into_iter().filter(|(n, _)| *n > 0);
    let cells = cells.map(|(n, what)| format!("{} {what}", counted(n as u64, "tracked cell")));
    let all: Vec<String> = written.into_iter().chain(cells).collect();
    all.join("; ")
}

/// `steady after 8 rounds`: what rounds came to, in a few words.
pub(crate) fn state_in_short(analysis: &Analysis, steady: &SteadyAnalysis) -> String {
    let rounds = counted(steady.rounds as u64, "round");
    match steady.end {
        RoundsEnd::Steady if RoundsDoubts::of(analysis, steady) == RoundsDoubts::default() => {
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

/// `over the last 5, IOPS with 4 KiB ranges over 3.1 % of its mean (20 % allowed) with a slope of 1.0 % (10 % allowed)`.
fn window(found: &SteadyAnalysis, worst: &Tracked, steady: Steadiness, run: &Analysis) -> String {
    let (subject, kind) = match &worst.of {
        TrackedOf::Cell(cell) => {
            let id = CellId {
                run: 0,
                cell: *cell,
            };
            let cell = format!("{}{}", run.quantity(), with_cell(run, id));
            (cell, "tracked cells")
        }
        TrackedOf::Target(Some(target)) => {
            (format!("IOPS on {}", escape_control(target)), "targets")
        }
        TrackedOf::Target(None) => ("IOPS".to_owned(), "targets"),
    };
    let of_several = match found.tracked.len() {
        0 | 1 => String::new(),
        n => format!(", the least steady of {n} {kind},"),
    };
    let (range, most) = beside_limit(steady.range, found.asked.range);
    let (slope, steepest) = beside_limit(steady.slope, found.asked.slope);
    format!(
        "over the last {}, {subject}{of_several} ranges over {range} of its mean ({most} allowed) with a slope of {slope} ({steepest} allowed)",
        found.asked.window,
    )
}

/// Cells whose trials form two groups.
pub(crate) fn in_two_groups(run: &Analysis) -> Vec<String> {
    let groups = two_groups(run, 0, |_| true).map(|found| {
        let levels = found.levels;
        format!(
            "The trials of {} form two groups{}: {} of them around {}, the others around {}. The median {}.",
            within(found.cells.len(), run),
            most(run, found.cells.len(), found.most),
            format_percent(levels.low_share),
            run.response.format(levels.low_median),
            run.response.format(levels.high_median),
            median_of_groups(levels.low_share),
        )
    });
    Vec::from_iter(groups)
}

/// Cells that drift by more than the goal of precision over the run.
pub(crate) fn drifting(run: &Analysis) -> Vec<String> {
    let drifts = drifts(run);
    let steepest = drifts.iter().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    let drift = steepest.map(|(cell, drift)| {
        let id = CellId {
            run: 0,
            cell: *cell,
        };
        format!(
            "The trials of {} drift over the run{} by {}.",
            within(drifts.len(), run),
            most(run, drifts.len(), id),
            format_percent(*drift),
        )
    });
    Vec::from_iter(drift)
}

/// The cell that shows it most, of several.
fn most(run: &Analysis, cells: usize, id: CellId) -> String {
    match cells {
        1 => with_cell(run, id),
        _ => format!(" (most clearly{})", with_cell(run, id)),
    }
}

/// Meaning of the median of two groups, of which the lower one has this share of the values.
fn median_of_groups(low_share: f64) -> &'static str {
    match (0.4..=0.6).contains(&low_share) {
        true => "describes neither group",
        false => "describes the larger group",
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
    match (followed.is_scaled(), deviations.is_empty()) {
        (_, true) => format!("iolab finds no deviation from {test} in SNIA's PTS 2.0.2."),
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
