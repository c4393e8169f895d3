//! Changes of the level of throughput, in words. Their possible origin is a suspect, not a cause.

use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::claim::{Change, ChangePlace, GradualChange, NoChange};
use iolab_analysis::timeline::{Access, Direction, DisturbedTrials, Levels};
use iolab_workload::quantity::{counted, format_bytes, format_ns, significant};

use super::at_cell;

const IN_TRIALS: &str =
    "changepoints (PELT) in the median over the trials of each interval, confirmed likewise";
const INSIDE_TRIAL: &str = "changepoints (PELT) in the intervals of consecutive trials, confirmed by Welch's test for dependent values";
const OVER_RUN: &str = "changepoints (PELT) in the logarithms of the trials, each confirmed by Welch's test for dependent values";

pub(super) const GRADUAL: &str = "medians of the tenths of the trial: test of Mann and Kendall, and their distance in standard deviations within the tenths";

pub(super) const KEPT: &str =
    "the same search in the intervals of each trial, and in the trial with a change added to it";

/// Most levels of a trial that are listed.
const LISTED_MAX: usize = 6;

pub(super) fn basis(change: &Change) -> &'static str {
    match change.place {
        ChangePlace::OverRun {
            levels: Levels::Trials { .. },
            ..
        } => OVER_RUN,
        ChangePlace::OverRun {
            levels: Levels::Time { .. },
            ..
        } => INSIDE_TRIAL,
        ChangePlace::WithinTrials { .. } | ChangePlace::InWarmUp => IN_TRIALS,
    }
}

/// A change in words: `Throughput of writes fell 5.00×, from 1049 MB/s to 210 MB/s at bs=1MiB, after 40.0 s
/// (39.1 GiB written).`
pub(super) fn of_change(change: &Change, run: &Analysis) -> String {
    let (bytes, time) = (
        format_bytes(change.after_bytes),
        format_ns(change.after_ns as f64),
    );
    let at = at_cell(run, change.cell);
    let others = |cells: usize| match cells {
        0 | 1 => String::new(),
        n => format!(", and in {} more", counted(n as u64 - 1, "cell")),
    };
    let between = moved(change.before_mb_s, change.after_mb_s);
    let suspect = suspect(change.disturbed);
    match change.place {
        ChangePlace::OverRun {
            of,
            cells,
            levels: seen,
        } => {
            let subject = match of {
                _ if run.cells.len() == 1 => "Throughput",
                Access::Writes => "Throughput of writes",
                Access::Reads => "Throughput of reads",
            };
            let seen = match seen {
                Levels::Trials { before, after } => {
                    format!("{before} trials before, {after} after")
                }
                Levels::Time {
                    before_ns,
                    after_ns,
                } => format!(
                    "{} before, {} after",
                    format_ns(before_ns as f64),
                    format_ns(after_ns as f64)
                ),
            };
            format!(
                "{subject} {between}{at}{}, after {time} of the run ({bytes} {}; {seen}).{suspect} Medians over the run mix both levels: --precondition or --settle may avoid it.",
                others(cells),
                done(of)
            )
        }
        ChangePlace::WithinTrials {
            cells,
            trials,
            of,
            asked: _,
        } => {
            let of_groups = match run.cell(change.cell.cell) {
                Some(cell) if cell.cell.spec.has_groups() => " of all groups",
                _ => "",
            };
            let median = match trials {
                1 => String::new(),
                n => format!("; median of {n} trials"),
            };
            format!(
                "Within a trial throughput{of_groups} {between}{at}{}, after {time} ({bytes} {}{median}){}.{suspect} Shorter or longer trials would give other results.",
                others(cells),
                done(of),
                further(change, of)
            )
        }
        ChangePlace::InWarmUp => format!(
            "During the warm-up, which the numbers exclude, throughput {between}{at} after {time} ({bytes} written): the measured trials show the later level."
        ),
    }
}

/// All levels if there are more than two: `; in all 3 levels: 1049 MB/s, 210 MB/s from 40.0 s (39.1 GiB) on,
/// ...`.
fn further(change: &Change, of: Access) -> String {
    let [first, later @ ..] = change.levels.as_slice() else {
        return String::new();
    };
    if later.len() < 2 {
        return String::new();
    }
    let format = |value| Response::Throughput.format(value);
    let shown = later.iter().take(LISTED_MAX).map(|level| {
        let (time, bytes) = (
            format_ns(level.from_ns as f64),
            format_bytes(level.from_bytes),
        );
        let rate = format(level.throughput_mb_s);
        format!(", {rate} from {time} ({bytes} {}) on", done(of))
    });
    let more = match later.len().saturating_sub(LISTED_MAX) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!(
        "; {} levels: {}{}{more}",
        change.levels.len(),
        format(first.throughput_mb_s),
        shown.collect::<String>()
    )
}

/// A trial that is not constant, without a step.
pub(super) fn of_gradual(change: &GradualChange, run: &Analysis) -> String {
    let found = change.found;
    let format = |value| Response::Throughput.format(value);
    let how = match found.direction {
        Direction::Falls | Direction::Rises => {
            format!("gradually {}", moved(found.first_mb_s, found.last_mb_s))
        }
        Direction::Neither => format!(
            "varied between {} and {}",
            format(found.lowest_mb_s),
            format(found.highest_mb_s)
        ),
    };
    let others = match change.cells {
        0 | 1 => String::new(),
        n => format!(", and in {} more", counted(n as u64 - 1, "cell")),
    };
    format!(
        "Within a trial throughput {how}{}{others} (medians of tenths).{} Shorter or longer trials would give other results.",
        at_cell(run, change.cell),
        suspect(change.disturbed)
    )
}

/// Suspected cause of a change: disturbance, if it was at the lower level; otherwise empty.
fn suspect(disturbed: Option<DisturbedTrials>) -> String {
    let Some(lower) = disturbed else {
        return String::new();
    };
    let what = match lower.suspended {
        0 => "disturbed from outside",
        _ => "disturbed, or the machine or iolab was suspended",
    };
    format!(
        " {} of {} at the lower level were {what}, which may have made the change.",
        lower.disturbed,
        counted(lower.all as u64, "trial")
    )
}

/// The change that was not found, and the smallest one that would have been.
pub(super) fn of_no_change(kept: &NoChange, run: &Analysis) -> String {
    let trials = match kept.cells.as_slice() {
        [only] => format!("the trial{}", at_cell(run, *only)),
        cells => format!("the trials of {}", counted(cells.len() as u64, "cell")),
    };
    let step = kept
        .factor
        .map(|factor| format!("a step of {}× for a quarter of it", significant(factor)));
    let drift = kept
        .drift
        .map(|factor| format!("a steady drift of {}× over it", significant(factor)));
    let found: Vec<String> = step.into_iter().chain(drift).collect();
    match found.is_empty() {
        false => format!(
            "No lasting change of throughput was found within {trials}; {} would have been.",
            found.join(" or ")
        ),
        true => format!(
            "Cannot tell whether throughput changes within {trials}: too short or too uneven. A longer trial (--soak) may show it."
        ),
    }
}

/// Verb for these bytes.
pub(in crate::findings) fn done(of: Access) -> &'static str {
    match of {
        Access::Writes => "written",
        Access::Reads => "read",
    }
}

/// A change of throughput in words: `fell 2.93×, from 1200 MB/s to 410 MB/s`.
fn moved(before: f64, after: f64) -> String {
    let format = |value| Response::Throughput.format(value);
    let factor = after / before;
    let how = if factor < 1.0 {
        format!("fell {}×, from", significant(1.0 / factor))
    } else if factor.is_finite() {
        format!("rose {}×, from", significant(factor))
    } else {
        "rose from".to_owned()
    };
    format!("{how} {} to {}", format(before), format(after))
}
