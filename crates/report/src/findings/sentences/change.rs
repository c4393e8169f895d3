//! Changes of the level of throughput, in words. What they may come from is a suspect, no cause.

use iolab_analysis::analysis::{Analysis, Response};
use iolab_analysis::claim::{Change, ChangePlace, GradualChange, NoChange};
use iolab_analysis::timeline::{Access, Direction, DisturbedTrials, Levels};
use iolab_workload::quantity::{counted, format_bytes, format_ns, format_percent, significant};

use super::{CellId, at_cell, in_cell};
use crate::findings::within;

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

pub(super) fn of_change(change: &Change, run: &Analysis) -> String {
    let falls = change.factor < 1.0;
    let (bytes, time) = (
        format_bytes(change.after_bytes),
        format_ns(change.after_ns as f64),
    );
    let levels = levels(change, run);
    match change.place {
        ChangePlace::OverRun {
            of,
            cells,
            levels: seen,
        } => {
            let done = done(of);
            let is_one = run.cells.len() == 1;
            let subject = match of {
                _ if is_one => "throughput",
                Access::Writes => "the throughput of trials that write",
                Access::Reads => "the throughput of trials that only read",
            };
            let of_cells = match cells {
                0 | 1 => String::new(),
                n => format!("median of {n} cells; "),
            };
            let suspect = suspect(
                change.disturbed,
                match (falls, of) {
                    (true, Access::Reads) => {
                        "Typical causes: an exhausted burst credit or throttling; --settle lets the device rest between blocks"
                    }
                    (true, Access::Writes) => {
                        "Typical causes: an exhausted write cache, garbage collection or throttling; --precondition moves the change before the first trial"
                    }
                    (false, _) => {
                        "Typical causes: a burst credit, a cache, or the end of background work in the device; --settle or --precondition may avoid it"
                    }
                },
            );
            let seen = match seen {
                Levels::Trials { before, after } => {
                    let such = if is_one { "" } else { "such " };
                    format!("for {after} {such}trials after {before}")
                }
                // The only cell's trials before it are those of the run, which stand at the beginning.
                Levels::Time { after_ns, .. } if is_one => {
                    format!("inside a trial, for {}", format_ns(after_ns as f64))
                }
                Levels::Time {
                    before_ns,
                    after_ns,
                } => format!(
                    "inside a trial, for {} after {} of this cell's trials",
                    format_ns(after_ns as f64),
                    format_ns(before_ns as f64)
                ),
            };
            format!(
                "After {bytes} {done} ({time} of trials), {subject} {} ({of_cells}{levels}), {seen}. {suspect}. Medians over the run mix both levels.",
                moved(change.factor)
            )
        }
        ChangePlace::WithinTrials {
            cells,
            trials,
            of,
            asked: _,
        } => {
            let subject = subject(cells, trials, change.cell, run);
            let how = match change.levels.len() {
                0..=2 => {
                    let median = match trials {
                        1 => String::new(),
                        n => format!("; median of {n} trials"),
                    };
                    let done = done(of);
                    format!(
                        "{} after {time} ({bytes} {done}{median})",
                        moved_between(change)
                    )
                }
                _ => several_levels(change, of),
            };
            let suspect = suspect(change.disturbed, typical_within(change));
            format!(
                "{subject} {how}. {suspect}. Shorter or longer trials would give other results."
            )
        }
        ChangePlace::InWarmUp => format!(
            "During the warm-up, which the numbers exclude, throughput changed ({levels}) after {bytes} written ({time}); the measured trials show the later level."
        ),
    }
}

/// What a sentence about trials with a change begins with.
fn subject(cells: usize, trials: usize, shown: CellId, run: &Analysis) -> String {
    let own = run.cell(shown.cell);
    let of_groups = match own.is_some_and(|cell| cell.cell.spec.has_groups()) {
        true => " of all groups together",
        false => "",
    };
    match (run.cells.len(), trials) {
        (1, 1) => format!("Within the only trial throughput{of_groups}"),
        (1, _) => format!("Within the trials throughput{of_groups}"),
        _ => format!(
            "Throughput{of_groups} changes its level within the trials of {}:{} it",
            within(cells, run),
            at_cell(run, shown)
        ),
    }
}

/// `had 3 levels: 1049 MB/s, from 40.0 s (39.1 GiB read) on 210 MB/s, from 194 s (70.0 GiB read) on 1049 MB/s`.
fn several_levels(change: &Change, of: Access) -> String {
    let format = |value| Response::Throughput.format(value);
    let begins = |ns: u64, bytes| {
        let (time, bytes) = (format_ns(ns as f64), format_bytes(bytes));
        format!("{time} ({bytes} {})", done(of))
    };
    let n = change.levels.len();
    let rates = change.levels.iter().map(|level| level.throughput_mb_s);
    let [first, .., last] = change.levels.as_slice() else {
        return String::new();
    };
    if n > LISTED_MAX {
        return format!(
            "had {n} levels between {} and {}: first {}, last {}; the largest change is that from {} to {} after {}",
            format(rates.clone().fold(f64::INFINITY, f64::min)),
            format(rates.fold(0.0, f64::max)),
            format(first.throughput_mb_s),
            format(last.throughput_mb_s),
            format(change.before_mb_s),
            format(change.after_mb_s),
            begins(change.after_ns, change.after_bytes)
        );
    }
    let later = change.levels.iter().skip(1).map(|level| {
        let from = begins(level.from_ns, level.from_bytes);
        format!(", from {from} on {}", format(level.throughput_mb_s))
    });
    let first = format(first.throughput_mb_s);
    format!("had {n} levels: {first}{}", later.collect::<String>())
}

/// What often makes such changes within a trial.
fn typical_within(change: &Change) -> &'static str {
    let rates = || change.levels.iter().map(|level| level.throughput_mb_s);
    let is_mixed =
        change.levels.len() > 2 && !rates().is_sorted() && !rates().is_sorted_by(|a, b| a >= b);
    match (is_mixed, change.factor < 1.0) {
        (true, _) => {
            "Typical causes: addresses that are slower than others, garbage collection, or throttling that ends again"
        }
        (false, true) => {
            "Typical causes: a cache that fills up, an exhausted burst credit or throttling"
        }
        (false, false) => "Typical cause: a cache that fills with data that is read again",
    }
}

/// A trial that is not constant, without a step.
pub(super) fn of_gradual(change: &GradualChange, run: &Analysis) -> String {
    let format = |value| Response::Throughput.format(value);
    let found = change.found;
    let (first, last) = (format(found.first_mb_s), format(found.last_mb_s));
    let subject = match run.cells.len() {
        1 => "Within the only trial throughput".to_owned(),
        _ => format!(
            "Throughput is not constant within the trials of {}:{} it",
            within(change.cells, run),
            at_cell(run, change.cell)
        ),
    };
    let writes = run
        .cell(change.cell.cell)
        .is_some_and(|cell| cell.cell.trial().writes());
    let rises = match found.direction {
        Direction::Falls => false,
        Direction::Rises => true,
        // Of what goes up and down the slower part is to be explained.
        Direction::Neither => found.first_mb_s == found.lowest_mb_s,
    };
    let typical = match (rises, writes) {
        (true, _) => {
            "Typical causes: a cache that fills, the end of background work in the device, or addresses that get faster"
        }
        (_, true) => "Typical causes: a cache that fills up, garbage collection or throttling",
        (_, false) => "Typical causes: addresses that are slower than others, or throttling",
    };
    let how = match found.direction {
        Direction::Falls => format!(
            "fell gradually to {}, from {first} to {last}",
            format_percent(found.factor())
        ),
        Direction::Rises => format!(
            "rose gradually to {} times, from {first} to {last}",
            significant(found.factor())
        ),
        Direction::Neither => format!(
            "was not constant: {first} at the start, {last} at the end, range {} to {}",
            format(found.lowest_mb_s),
            format(found.highest_mb_s)
        ),
    };
    let suspect = suspect(change.disturbed, typical);
    format!(
        "{subject} {how} (medians of tenths of the trial). {suspect}. Shorter or longer trials would give other results."
    )
}

/// What may have made a change: what others did, where they did it at the lower level, or what often makes such a change.
fn suspect(disturbed: Option<DisturbedTrials>, typical: &str) -> String {
    let Some(lower) = disturbed else {
        return typical.to_owned();
    };
    let seen = match (lower.all, lower.suspended, lower.disturbed) {
        (1, 0, _) => "The trial was disturbed from outside".to_owned(),
        (1, ..) => "The machine or iolab was suspended during the trial".to_owned(),
        (all, 0, disturbed) => {
            format!("{disturbed} of {all} trials at the lower level were disturbed from outside")
        }
        (all, suspended, disturbed) if suspended == disturbed => format!(
            "The machine or iolab was suspended during {suspended} of {all} trials at the lower level"
        ),
        (all, suspended, disturbed) => format!(
            "{disturbed} of {all} trials at the lower level were disturbed from outside; during {suspended} of these the machine or iolab was suspended"
        ),
    };
    format!("{seen}, which may have made the change")
}

/// What was not found, and what would have been.
pub(super) fn of_no_change(kept: &NoChange, run: &Analysis) -> String {
    let trials = match kept.cells.as_slice() {
        [only] if run.cells.len() > 1 => format!("the trial{}", at_cell(run, *only)),
        [_] => "the trial".to_owned(),
        cells => format!("the trials of {}", counted(cells.len() as u64, "cell")),
    };
    let began = kept.began.map_or_else(String::new, |(cell, first)| {
        let (time, ratio) = (format_ns(first.length_ns as f64), significant(first.ratio));
        match kept.cells.len() {
            1 => format!(
                " after its first {time}, which had {ratio} times the throughput of the rest"
            ),
            _ => format!(
                " (the first {time}{} had {ratio} times the throughput of the rest)",
                at_cell(run, cell)
            ),
        }
    });
    let begin = format!("No lasting change of throughput was found within {trials}{began}");
    let by = |factor: f64| {
        let (fall, rise) = (format_percent(1.0 / factor), significant(factor));
        format!("a fall to {fall}, or a rise to {rise} times,")
    };
    match (kept.factor, kept.drift) {
        (Some(factor), Some(drift)) => format!(
            "{begin}; {} that lasts for a quarter of a trial would have been, and so would {} at a constant pace over a whole trial.",
            by(factor),
            by(drift)
        ),
        (Some(factor), None) => format!(
            "{begin}; {} that lasts for a quarter of a trial would have been. A change at a constant pace, even one by a factor of 20 over a whole trial, would not.",
            by(factor)
        ),
        (None, Some(drift)) => format!(
            "{begin}; {} at a constant pace over a whole trial would have been. A step, even one by a factor of 20, would not.",
            by(drift)
        ),
        (None, None) => format!(
            "{begin}, nor would one by a factor of 20 have been: the trial is too short or too uneven. A longer one (--soak) may show it."
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

/// `fell to 34 % of what it was`.
fn moved(factor: f64) -> String {
    if factor < 1.0 {
        format!("fell to {} of what it was", format_percent(factor))
    } else if factor.is_finite() {
        format!("rose to {} of what it was", format_percent(factor))
    } else {
        "rose from nothing".to_owned()
    }
}

/// `fell to 34 %, from 1200 MB/s to 410 MB/s,`.
fn moved_between(change: &Change) -> String {
    let format = |value| Response::Throughput.format(value);
    let (before, after) = (format(change.before_mb_s), format(change.after_mb_s));
    let share = format_percent(change.factor);
    if change.factor < 1.0 {
        format!("fell to {share}, from {before} to {after},")
    } else if change.factor.is_finite() {
        format!("rose to {share}, from {before} to {after},")
    } else {
        format!("rose from nothing to {after}")
    }
}

/// `bs=1MiB: from 1200 MB/s to 410 MB/s`.
fn levels(change: &Change, run: &Analysis) -> String {
    let name = match run.factors.is_empty() {
        true => String::new(),
        false => format!("{}: ", in_cell(run, change.cell)),
    };
    let format = |value| Response::Throughput.format(value);
    format!(
        "{name}from {} to {}",
        format(change.before_mb_s),
        format(change.after_mb_s)
    )
}
