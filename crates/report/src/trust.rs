//! How far what an output shows can be trusted, in words and as data: one sentence for all formats.

use iolab_analysis::analysis::Flag;
use iolab_analysis::imbalance::Disturber;
use iolab_analysis::trust::{Trust, TrustReason};
use iolab_record::ServedBy;
use iolab_workload::quantity::{counted, format_percent};
use schemars::JsonSchema;
use serde::Serialize;

use crate::findings::{beside_limit, capitalised};
use crate::flag;

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
    /// What iolab prints.
    sentence: String,
    /// Claims that it rests on: those that an overview begins with.
    claims: usize,
    /// Claims of which a doubt turned a part to `cannot_tell`.
    undecided: usize,
    /// Measured cells that these claims and the main numbers rest on; all cells where there is neither.
    cells: usize,
    /// Measured cells of the runs.
    measured_cells: usize,
    /// Of the cells that it rests on, those that others disturbed.
    disturbed_cells: usize,
    /// Of the cells that it rests on, those with a trial that has no valid number.
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

/// The verdict about reliability with its basis.
pub(crate) fn sentence(trust: &Trust) -> String {
    let mut parts: Vec<String> = basis(trust).into_iter().collect();
    for (verdict, cells) in &trust.served {
        let all = *cells == trust.cells;
        let count = match all {
            true if trust.cells == 1 => "the cell was".to_owned(),
            true => format!("{} were", all_of(*cells)),
            false if *cells == 1 => format!("1 of {} cells was", trust.cells),
            false => format!("{cells} of {} cells were", trust.cells),
        };
        parts.push(format!("{count} {}", served(*verdict)));
    }
    if trust.sought > 0 {
        let widest = trust.widest.filter(|widest| *widest > trust.goal);
        let widest = widest.map_or_else(String::new, |widest| {
            format!(" (widest {})", beside_limit(widest, trust.goal).0)
        });
        parts.push(format!(
            "{} of {} precise to {}{widest}",
            trust.precise,
            trust.sought,
            format_percent(trust.goal)
        ));
    }
    if trust.unmeasured > 0 {
        parts.push(format!(
            "{} without a trial",
            counted(trust.unmeasured, "cell")
        ));
    }
    if trust.ruined > 0 {
        parts.push(format!(
            "{} with invalid trials",
            counted(trust.ruined, "cell")
        ));
    }
    // The reason says it where it is one.
    if trust.suspended > 0 && trust.reason != Some(TrustReason::Ruined(Flag::Suspended)) {
        parts.push(format!("{} suspended", counted(trust.suspended, "cell")));
    }
    parts.push(match (trust.disturbed, trust.suspended) {
        (0, 0) => "no disturbance".to_owned(),
        (0, _) => "no other disturbance".to_owned(),
        (n, _) => format!("{} disturbed", counted(n, "cell")),
    });
    parts.extend(trust.is_virtual.map(|is| match is {
        true => "virtual machine".to_owned(),
        false => "physical machine".to_owned(),
    }));
    let reason = in_words(trust).map_or_else(String::new, |words| format!(": {words}"));
    format!(
        "Trust: {}{reason}. {}.",
        trust.level.name(),
        capitalised(&parts.join("; "))
    )
}

/// Why numbers are not fully reliable.
pub(crate) fn in_words(trust: &Trust) -> Option<String> {
    let cells = part(trust, "cell");
    let is_one = trust.concerned == 1;
    // Other guests of the hypervisor are no programs of this machine, and a quota is nobody's use.
    let is_by = |by| trust.disturbers.contains(&by);
    let others = match (is_by(Disturber::Quota), is_by(Disturber::Steal)) {
        (true, _) => "others used the disk or the CPUs, or a quota held iolab back",
        (false, true) => "others used the disk or the CPUs",
        (false, false) => "other programs used the disk or the CPUs",
    };
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
        TrustReason::DisturbedAndImprecise => match trust.cells {
            1 => format!("do not trust this number, {others} during its trials"),
            _ => format!("do not trust these numbers, {others} during {cells}"),
        },
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
        TrustReason::Undecided => match trust.undecided {
            1 => "a finding is undecided, or a part of it".into(),
            _ => "some findings are undecided, or parts of them".into(),
        },
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

/// What the reason is about, of as many as there are cells: `the cell`, `one cell`, `both cells`, `all cells`, `most cells`, `some cells`.
fn part(trust: &Trust, noun: &str) -> String {
    match (trust.concerned, trust.cells) {
        (_, 1) => format!("the {noun}"),
        (1, _) => format!("one {noun}"),
        (2, 2) => format!("both {noun}s"),
        (n, all) if n == all => format!("all {noun}s"),
        (n, all) if 2 * n > all => format!("most {noun}s"),
        _ => format!("some {noun}s"),
    }
}

/// Which cells were judged, where that is not all of them for what is shown.
fn basis(trust: &Trust) -> Option<String> {
    let Trust {
        claims,
        cells,
        measured,
        ..
    } = *trust;
    match (claims, cells) {
        (_, 0) => None,
        (_, n) if n < measured => Some(format!(
            "judged by the {n} of {} behind what is shown first",
            counted(measured, "cell")
        )),
        (0, 1) => Some("judged by the only cell".to_owned()),
        (0, 2) => Some("judged by both cells".to_owned()),
        (0, _) => Some("judged by all cells".to_owned()),
        _ => None,
    }
}

/// `both cells`, `all 12 cells`.
fn all_of(cells: usize) -> String {
    match cells {
        2 => "both cells".to_owned(),
        n => format!("all {n} cells"),
    }
}

fn served(verdict: ServedBy) -> &'static str {
    match verdict {
        ServedBy::Device => "served by the device",
        ServedBy::PageCache => "served by the page cache",
        ServedBy::Mixed => "served only partly by the device",
        ServedBy::Hole => "read from holes",
        ServedBy::NotStorage => "not served by storage",
        ServedBy::Network => "served by a file server",
        ServedBy::Model => "served by a model",
        ServedBy::Unknown => "of unknown source",
    }
}
