//! How far what an output shows can be trusted, in words and as data: one sentence for all formats.

use iolab_analysis::doubt::ReasonKind;
use iolab_analysis::imbalance::Disturber;
use iolab_analysis::trust::{Trust, TrustLevel, TrustReason};
use iolab_workload::quantity::{counted, format_percent};
use schemars::JsonSchema;
use serde::Serialize;

use crate::flag;

/// Intervals that are narrower are shown as this.
pub(crate) const LEAST_SHOWN: f64 = 0.001;

/// How far what is shown can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "Trust")]
pub(crate) struct TrustData {
    /// `good`, `limited` or `poor`.
    level: &'static str,
    /// Why it is not good: `no_trials`, `invalid_trials`, `most_not_as_asked`, `most_disturbed_and_imprecise`,
    /// `most_intervals_above_medians`, `some_not_as_asked`, `some_disturbed`, `reads_after_writes`, `undecided`,
    /// `level_changed`, `two_groups`, `dependent`, `not_settled`, `unfinished`, `no_definition`, `imprecise` or `no_intervals`; `null` where it is good.
    reason: Option<&'static str>,
    /// Sentence that iolab prints.
    sentence: String,
    /// Claims that it rests on: those that an overview begins with.
    claims: usize,
    /// Claims of which a doubt turned a part to `cannot_tell`.
    undecided: usize,
    /// Measured cells that these claims and the main numbers rest on; all cells where there is neither.
    cells: usize,
    /// Measured cells of the runs.
    measured_cells: usize,
    /// Number of these cells that others disturbed.
    disturbed_cells: usize,
    /// Number of these cells with a trial that has no valid number.
    invalid_cells: usize,
}

impl TrustData {
    pub(crate) fn of(trust: &Trust) -> Self {
        Self {
            level: trust.level.name(),
            reason: trust.reason.map(TrustReason::name),
            sentence: sentence(trust),
            claims: trust.claims,
            undecided: trust.undecided,
            cells: trust.cells,
            measured_cells: trust.measured,
            disturbed_cells: trust.disturbed,
            invalid_cells: trust.ruined,
        }
    }
}

/// The verdict, once for all that is shown.
pub(crate) fn sentence(trust: &Trust) -> String {
    let reason = in_words(trust).unwrap_or_default();
    match trust.level {
        TrustLevel::Good => precision(trust).unwrap_or_else(|| counted(trust.cells, "result")),
        TrustLevel::Limited => format!("Limited: {reason}."),
        TrustLevel::Poor => {
            let widest = trust.widest.filter(|widest| *widest > trust.goal);
            let widest = widest.map_or_else(String::new, |widest| {
                format!(" (up to ±{})", format_percent(widest))
            });
            let which = match trust.concerned {
                n if n > 0 && n < trust.cells => {
                    format!("{n} of {} results not usable", trust.cells)
                }
                _ => "No usable result".to_owned(),
            };
            format!("{which}: {reason}{widest}.")
        }
    }
}

/// `12 results, all within ±0.7 % (95 %)`; `None` where some have no interval.
pub(crate) fn precision(trust: &Trust) -> Option<String> {
    let widest = trust.widest.filter(|_| trust.without_interval == 0)?;
    let within = format!("within ±{} (95 %)", format_percent(widest.max(LEAST_SHOWN)));
    Some(match trust.sought {
        1 => format!("1 result, {within}"),
        2 => format!("2 results, both {within}"),
        n => format!("{n} results, all {within}"),
    })
}

/// Whether nothing but what others do makes the numbers useless.
pub(crate) fn is_by_others(trust: &Trust) -> bool {
    trust.reason == Some(TrustReason::DisturbedAndImprecise)
}

/// Reason why numbers are not fully reliable, in words.
pub(crate) fn in_words(trust: &Trust) -> Option<String> {
    let cells = part(trust, "cell");
    let is_one = trust.concerned == 1;
    let others = by_others(&trust.disturbers);
    Some(match trust.reason? {
        TrustReason::NoTrials => "nothing was measured".into(),
        TrustReason::Ruined(flag) => flag::in_words(flag).into(),
        TrustReason::NotAsAsked | TrustReason::SomeNotAsAsked => match trust.cells {
            2 if trust.concerned == 2 => {
                "neither cell was shown to be served by what it asks for".into()
            }
            all if all > 2 && trust.concerned == all => {
                "no cell was shown to be served by what it asks for".into()
            }
            _ if is_one => format!("{cells} was not shown to be served by what it asks for"),
            _ => format!("{cells} were not shown to be served by what they ask for"),
        },
        TrustReason::DisturbedAndImprecise if trust.cells == 1 => {
            format!("{others} during its trials")
        }
        TrustReason::DisturbedAndImprecise => format!("{others} during {cells}"),
        TrustReason::NothingPrecise => match is_one {
            true => "the interval is wider than twice its median".into(),
            false => format!(
                "{} are wider than twice their medians",
                part(trust, "interval")
            ),
        },
        TrustReason::SomeDisturbed => {
            let when = if trust.cells == 1 {
                "the trials"
            } else {
                &cells
            };
            format!("{others} during {when}")
        }
        TrustReason::ReadsAfterWrites => {
            format!("the drive may have written for other cells while {cells} read")
        }
        TrustReason::Undecided => {
            let why = trust.turned_by.map_or("", ReasonKind::words);
            match trust.undecided {
                1 => format!("one finding is undecided ({why})"),
                n => format!("{n} of {} findings are undecided ({why})", trust.claims),
            }
        }
        TrustReason::LevelChanged => format!("the level of {cells} changed during the run"),
        TrustReason::TwoGroups => match trust.cells {
            1 => "the trials form two groups".into(),
            _ => format!("in {cells} the trials form two groups"),
        },
        TrustReason::Dependent => format!("trials of {cells} depend on the ones before"),
        TrustReason::NotSettled => match trust.cells {
            1 => "the last trials differ too much to be called settled".into(),
            _ => format!("in {cells} the last trials differ too much to be called settled"),
        },
        TrustReason::Unfinished => "a run did not finish".into(),
        TrustReason::NoDefinition => "the definition in a run file cannot be read".into(),
        TrustReason::Imprecise => format!("{cells} missed the precision goal"),
        TrustReason::NoIntervals if trust.without_interval < trust.sought => {
            "too few trials for some intervals".into()
        }
        TrustReason::NoIntervals => "too few trials for an interval".into(),
    })
}

/// `other programs used the CPUs and the disk`.
fn by_others(disturbers: &[Disturber]) -> String {
    let is_by = |some: &[Disturber]| some.iter().any(|one| disturbers.contains(one));
    let cpus = is_by(&[
        Disturber::CpuPressure,
        Disturber::WorkerWait,
        Disturber::Preempted,
    ]);
    let what = match (cpus, is_by(&[Disturber::OtherTraffic])) {
        (true, true) => Some("other programs used the CPUs and the disk"),
        (true, false) => Some("other programs used the CPUs"),
        (false, true) => Some("other programs used the disk"),
        (false, false) => None,
    };
    let parts = [
        what,
        is_by(&[Disturber::Steal]).then_some("other guests of the hypervisor used the CPUs"),
        is_by(&[Disturber::Quota]).then_some("a CPU quota held iolab back"),
        is_by(&[Disturber::MemoryPressure]).then_some("memory was short"),
    ];
    let parts: Vec<&str> = parts.into_iter().flatten().collect();
    match parts.is_empty() {
        true => "other programs used the machine".to_owned(),
        false => parts.join(" and "),
    }
}

/// Cells that the reason applies to: `the cell`, `one cell`, `both cells`, `all 12 cells`, `7 of 12 cells`.
fn part(trust: &Trust, noun: &str) -> String {
    match (trust.concerned, trust.cells) {
        (_, 1) => format!("the {noun}"),
        (1, _) => format!("one {noun}"),
        (2, 2) => format!("both {noun}s"),
        (n, all) if n == all => format!("all {n} {noun}s"),
        (n, all) => format!("{n} of {all} {noun}s"),
    }
}
