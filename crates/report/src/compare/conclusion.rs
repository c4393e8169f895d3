//! The answer of a comparison in one line that can be copied, and its closing remarks.

use std::collections::{BTreeMap, BTreeSet};

use crate::doubt::{on_side, remedy};
use crate::ratio::{self, RatioShown, all_cells, cells};
use iolab_analysis::analysis::Response;
use iolab_analysis::compare::{
    ALPHA, CellComparison, CellVerdict, Comparison, Further, POWER, ReplicationUnit, Side,
};
use iolab_analysis::doubt::{Doubt, DoubtClass, DoubtKind, RatioBound};
use iolab_analysis::runs::GATE_POWER;
use iolab_analysis::trial_values::distinct;
use iolab_plan::precondition::SteadyRounds;
use iolab_workload::escape_control::escape_control;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial_description::level_in_words;
use iolab_workload::units::{counted, digits, format_percent, possessive};

/// The compared quantity.
pub(crate) fn measured(comparison: &Comparison) -> String {
    let response = comparison.response;
    response.map_or_else(|| "values".to_owned(), |response| response.to_string())
}

/// Reason why there is no conclusion about a cell: `other traffic`, `p99 needs 368 requests in a trial; ...`.
fn undecided(why: DoubtKind, response: Option<Response>) -> String {
    let needed = response.map_or(0, |response| response.requests_min());
    match (why, response) {
        (DoubtKind::NoValue, Some(response)) if needed > 1 => format!(
            "{} needs {} in each trial, and a side has trials with fewer (increase --time)",
            response.name(),
            counted(needed, "request")
        ),
        (DoubtKind::NoValue | DoubtKind::NoRatio, _) => why.words().to_owned(),
        _ => why.to_string(),
    }
}

/// The ratio of a cell in words: `1.41× lower (1.30 to 1.52×)`.
fn times(cell: &CellComparison) -> Option<String> {
    Some(ratio::of(cell.estimate.as_ref()?).in_words())
}

/// Distance of a cell's ratio from 1, on the logarithm.
pub(super) fn size(cell: &CellComparison) -> f64 {
    let ratio = cell.estimate.as_ref().map(ratio::of);
    ratio.map_or(0.0, RatioShown::size)
}

/// The bound that the ratio of a cell is, if one side is worse in longer trials.
fn bound(cell: &CellComparison) -> Option<RatioBound> {
    cell.estimate?.bound
}

/// The answer for all cells: how many differ, with the largest difference; how many do not; how many have no
/// conclusion, with the reason. For several runs also all cells together, if they differ.
pub(crate) fn answer(comparison: &Comparison) -> String {
    let cells = comparison.cells.as_slice();
    let margin = comparison.terms.margin;
    let all = cells.len();
    let mut parts: Vec<String> = Vec::new();
    for verdict in [
        CellVerdict::Slower,
        CellVerdict::Faster,
        CellVerdict::Lower,
        CellVerdict::Higher,
        CellVerdict::Equivalent,
        CellVerdict::NoChange,
        CellVerdict::Identical,
    ] {
        let own: Vec<&CellComparison> = cells.iter().filter(|c| c.verdict == verdict).collect();
        // A bound has no largest difference: sides that held their rates come first.
        let size = |cell: &CellComparison| (bound(cell).is_none(), size(cell));
        let greater = |a: &CellComparison, b: &CellComparison| {
            let ((exact, size), (of_other, other)) = (size(a), size(b));
            exact.cmp(&of_other).then(size.total_cmp(&other))
        };
        let Some(most) = own.iter().max_by(|a, b| greater(a, b)) else {
            continue;
        };
        let what = match verdict {
            CellVerdict::Equivalent => format!("equivalent within {}", format_percent(margin)),
            CellVerdict::Identical => "the same measurements".to_owned(),
            other => other.to_string(),
        };
        let times = match verdict {
            CellVerdict::NoChange | CellVerdict::Identical => None,
            _ => times(most),
        };
        let n = own.len();
        // Only the first part states the number of all cells.
        let count = match parts.is_empty() {
            _ if n == all => all_cells(all),
            true => format!("{n} of {all} cells"),
            false => n.to_string(),
        };
        let is_bound = bound(most).is_some();
        let most_of = if n == 1 || is_bound { "" } else { "the most " };
        parts.push(match (all, verdict, times) {
            (_, CellVerdict::Identical, _) => what,
            (2.., CellVerdict::NoChange, _) if n == all => format!("{what} in any of {all} cells"),
            (2.., CellVerdict::NoChange, _) => format!("{what} in {count}"),
            (1, _, Some(times)) => format!("{what}, {times}"),
            (1, ..) => what,
            (_, CellVerdict::Equivalent, _) | (.., None) => format!("{count} {what}"),
            (.., Some(times)) => {
                let levels = comparison.factors.iter().zip(&most.levels);
                let words = levels.map(|(factor, level)| match factor.as_str() {
                    // How many are in flight depends on settings that are not compared.
                    "depth" => format!("depth {level}"),
                    _ => level_in_words(&CellSpec::default(), factor, level),
                });
                let with = words.collect::<Vec<_>>().join(", ");
                format!("{count} {what}, {most_of}{times} with {with}")
            }
        });
    }
    let open: Vec<&CellComparison> = cells.iter().filter(|c| c.verdict.is_open()).collect();
    let reasons = open.iter().filter_map(|cell| cell.verdict.why_open());
    let reasons = distinct(reasons.map(|why| undecided(why, comparison.response))).join(", ");
    match (open.as_slice(), all) {
        ([], _) => {}
        ([only], 1) => {
            let times = times(only).map_or_else(String::new, |times| format!(", {times}"));
            parts.push(format!("cannot tell{times}; {reasons}"));
        }
        (open, _) if open.len() == all => {
            parts.push(format!("cannot tell in any of {all} cells: {reasons}"));
        }
        (open, _) => parts.push(format!("cannot tell in {}: {reasons}", open.len())),
    }
    let together = comparison.overall.as_ref();
    let told = [CellVerdict::Slower, CellVerdict::Faster];
    let is_told = |all: &&CellComparison| {
        comparison.unit == ReplicationUnit::Runs && told.contains(&all.verdict)
    };
    if let Some(all) = together.filter(is_told) {
        let times = times(all).unwrap_or_default();
        parts.push(format!("all cells together {}, {times}", all.verdict));
    }
    parts.join("; ")
}

/// Name of what further measurement adds: values, runs or trials.
pub(super) fn repeated(unit: ReplicationUnit) -> &'static str {
    match unit {
        ReplicationUnit::Numbers => "value",
        ReplicationUnit::Runs => "run",
        ReplicationUnit::Blocks
        | ReplicationUnit::SameSamples
        | ReplicationUnit::OneRunEach
        | ReplicationUnit::ComputedRuns
        | ReplicationUnit::TrialsWithinRuns => "trial",
    }
}

/// Remarks on a comparison, in sentences: the basis of the table, and what would settle open verdicts.
/// [`super::conclusion`] has the number of cells for each verdict.
pub fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut remarks: Vec<String> = undefined(&comparison.undefined).collect();
    remarks.extend(comparison.unsteady.iter().map(|name| {
        format!(
            "The rounds of {} did NOT become steady: its values are from the last ones.",
            escape_control(name)
        )
    }));
    remarks.extend(rests_on(comparison.unit));
    let doubts = comparison.cells.iter().map(|cell| cell.doubts.as_slice());
    remarks.extend(doubt_lines(doubts));
    let bounds = comparison.cells.iter().filter_map(bound).count();
    if bounds > 0 {
        remarks.push(format!(
            "In {} the ratio is a bound: one side is worse in longer trials, because it did not hold its rate, or left bytes in a cache.",
            cells(bounds)
        ));
    }
    remarks.extend(overall(comparison));
    remarks.extend(too_few(comparison));
    remarks.extend(advice(comparison));
    remarks.extend(power(comparison));
    let drifting = comparison.drifting();
    if drifting > 0 {
        remarks.push(format!(
            "In {} the values drift with time (Mann-Kendall, Holm). {}",
            cells(drifting),
            drift_advice(comparison)
        ));
    }
    remarks
}

/// Remarks on run files without a readable definition.
fn undefined(files: &[String]) -> impl Iterator<Item = String> {
    files.iter().map(|file| {
        format!(
            "The definition in {} cannot be read; rounds and order are not known.",
            escape_control(file)
        )
    })
}

/// The meaning of drifting trials for the verdicts.
fn drift_advice(comparison: &Comparison) -> &'static str {
    match comparison.unit {
        _ if comparison.shares_blocks() => {
            "Both sides went through the same blocks and drifted together: the verdicts rest on the ratios within blocks."
        }
        ReplicationUnit::SameSamples => "Both sides drift alike.",
        ReplicationUnit::ComputedRuns => {
            "The intervals there are too narrow: the state of the model changes during a run."
        }
        ReplicationUnit::Numbers | ReplicationUnit::Runs => "The intervals there are too narrow.",
        ReplicationUnit::Blocks
        | ReplicationUnit::OneRunEach
        | ReplicationUnit::TrialsWithinRuns => {
            "The intervals there are too narrow. What drifts within a run differs between runs too; measure both sides in one run, or repeat them in alternation."
        }
    }
}

/// A sentence about the unit of replication, if readers may overestimate the verdicts.
fn rests_on(unit: ReplicationUnit) -> Option<String> {
    let text = match unit {
        ReplicationUnit::Numbers | ReplicationUnit::Blocks => return None,
        ReplicationUnit::SameSamples => "Both files hold the same measurements.".to_owned(),
        ReplicationUnit::ComputedRuns => {
            "Both runs were computed by models, and the trials within the runs decide. If a model has drift or rare stalls, runs differ by more: compare several runs of each side.".to_owned()
        }
        ReplicationUnit::OneRunEach => {
            "One run on each side: the intervals show the spread of the trials within these two runs. Runs of an unchanged machine differ by more, and two runs cannot show by how much, so no cell is called slower or faster. Compare several runs of each side (iolab compare --base FILE... --new FILE...), compare the new run with earlier ones (iolab gate --history FOLDER NEW), or measure both in one run and compare them with --by.".to_owned()
        }
        ReplicationUnit::Runs => format!(
            "Changes are judged by the spread from run to run. On an unchanged machine at most {} of such comparisons report a change in any cell.",
            format_percent(ALPHA)
        ),
        ReplicationUnit::TrialsWithinRuns => {
            "Judged within the runs (--within-run): the verdicts allow for the spread of the trials within these two runs, not for what differs from run to run on an unchanged machine.".to_owned()
        }
    };
    Some(text)
}

/// Reasons that could reverse verdicts, each kind once with the number of its cells, with remedies.
fn doubt_lines<'a>(cells: impl Iterator<Item = &'a [Doubt]>) -> Vec<String> {
    let mut found: BTreeMap<DoubtKind, (Vec<&Doubt>, BTreeSet<usize>)> = BTreeMap::new();
    for (cell, doubts) in cells.enumerate() {
        for doubt in doubts {
            let (alike, cells) = found.entry(doubt.what).or_default();
            alike.push(doubt);
            cells.insert(cell);
        }
    }
    let line = |(what, (alike, cells)): (DoubtKind, (Vec<&Doubt>, BTreeSet<usize>))| {
        let why = on_side(&alike, "the base's side", "the new side");
        let follows = match what.class() {
            DoubtClass::Source => "The ratio there says nothing about the storage.",
            DoubtClass::Trials => "The interval there does not allow for that.",
            _ => "A difference there may come from that.",
        };
        let remedy = remedy(what).map_or_else(String::new, |text| format!(" {text}"));
        let cells = ratio::cells(cells.len());
        format!("Cannot tell in {cells}: {why}. {follows}{remedy}")
    };
    found.into_iter().map(line).collect()
}

/// The ratio over all cells, with its verdict: `equivalent within 10 %`, `cannot tell: served by page-cache on fio's side`.
pub(crate) fn overall(comparison: &Comparison) -> Option<String> {
    let overall = comparison.overall.as_ref()?;
    let estimate = overall.estimate.as_ref()?;
    let of = match (comparison.unit, estimate.blocks) {
        (ReplicationUnit::Runs, _) => "All undisturbed cells together".to_owned(),
        (_, blocks) => format!(
            "All cells together, in {} blocks",
            blocks.unwrap_or_default()
        ),
    };
    let verdict = match (overall.verdict, overall.verdict.why_open()) {
        (CellVerdict::Equivalent, _) => {
            format!(
                "equivalent within {}",
                format_percent(comparison.terms.margin)
            )
        }
        (other, None) => other.to_string(),
        (_, Some(why)) => {
            let [base, new] = [&comparison.base, &comparison.new]
                .map(|side| format!("{} side", possessive(&side.to_string())));
            let doubts: Vec<&Doubt> = overall.doubts.iter().take(1).collect();
            let why = match doubts.is_empty() {
                true => undecided(why, comparison.response),
                false => on_side(&doubts, &base, &new),
            };
            format!("cannot tell: {why}")
        }
    };
    let ratio = ratio::of(estimate).in_words();
    Some(format!("{of}: {ratio}; {verdict}."))
}

/// A sentence about cells with too few trials for an interval.
fn too_few(comparison: &Comparison) -> Option<String> {
    let has_none = |cell: &&CellComparison| {
        cell.estimate.is_some_and(|one| one.interval.is_none()) && cell.verdict.is_open()
    };
    let without = comparison.cells.iter().filter(has_none).count();
    let together = match comparison.comparable() {
        0 | 1 => String::new(),
        n => format!(" simultaneous over {n} cells"),
    };
    (without > 0).then(|| {
        let least = comparison.trials_min();
        let more = match comparison.is_of_rounds {
            true => format!(" ({})", window_advice(least)),
            false => String::new(),
        };
        format!(
            "{} too few trials for an interval{together}: {least} on each side are needed{more}.",
            match without {
                1 => "1 cell has".to_owned(),
                n => format!("{} have", cells(n)),
            },
        )
    })
}

/// Advice on how rounds until a steady state give this number of trials. A window longer than the rounds of a run never
/// becomes steady.
fn window_advice(trials: usize) -> String {
    match trials <= SteadyRounds::default().rounds as usize {
        true => format!("window={trials} in --precondition, with rounds={trials} or more"),
        false => "several runs on each side: --base FILE... --new FILE...; a window of that length is rarely steady".to_owned(),
    }
}

/// A sentence about the number of trials for open verdicts.
fn advice(comparison: &Comparison) -> Option<String> {
    let mut trials: Vec<(usize, usize)> = Vec::new();
    let mut hopeless = 0;
    for cell in &comparison.cells {
        let there = |side: &Side| side.values.len();
        match cell.further {
            Some(Further::Trials(more)) => {
                trials.push((more, there(&cell.base).min(there(&cell.new)) + more));
            }
            Some(Further::TooMany) => hopeless += 1,
            None => {}
        }
    }
    let power = format_percent(POWER);
    let mut parts = Vec::new();
    let most = trials.iter().map(|(more, _)| *more).max();
    let in_all = trials.iter().map(|(_, all)| *all).max();
    if let Some((most, all)) = most.zip(in_all) {
        let how = match (comparison.unit, comparison.is_of_rounds) {
            // No run of iolab measured these values.
            (ReplicationUnit::Numbers, _) => String::new(),
            (_, true) => format!(" ({})", window_advice(all)),
            (_, false) => format!(" (--set trials_min={all})"),
        };
        parts.push(format!(
            "With this spread, {} on each side would settle {} with a chance of {power}{how}.",
            counted(most, &format!("more {}", repeated(comparison.unit))),
            cells(trials.len())
        ));
    }
    if hopeless > 0 {
        parts.push(format!(
            "In {} the ratio is too close to the margin, or the spread too wide, for a reasonable number of trials to settle it.",
            cells(hopeless)
        ));
    }
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Largest factor reported as detectable. Beyond it, there are too few runs to estimate their scatter.
pub const DETECTABLE_MAX: f64 = 10.0;

/// The changes between runs that would have been found.
fn power(comparison: &Comparison) -> Option<String> {
    let found = comparison.cells.iter().filter_map(|cell| cell.detectable);
    let found: Vec<f64> = found.map(|share| 1.0 + share).collect();
    let least = found.iter().copied().min_by(f64::total_cmp)?;
    let most = found.iter().copied().max_by(f64::total_cmp)?;
    let chance = format_percent(GATE_POWER);
    if most > DETECTABLE_MAX {
        let beyond = found.iter().filter(|change| **change > DETECTABLE_MAX);
        return Some(format!(
            "In {} even a change by a factor of {DETECTABLE_MAX} would not have been found with a chance of {chance}: give more runs of each side.",
            cells(beyond.count()),
        ));
    }
    let (least, most) = (change(least), change(most));
    let cells = match least == most {
        true => String::new(),
        false => format!(" in the most precise cell, {most} in the least precise one"),
    };
    let overall = comparison.overall.as_ref().and_then(|all| all.detectable);
    let all = overall.map_or_else(String::new, |share| {
        format!(", {} of all cells together,", change(1.0 + share))
    });
    Some(format!(
        "A change {least}{cells}{all} would have been found with a chance of {chance}."
    ))
}

/// A change by this factor: `of 5 %`, `by a factor of 2.2`.
pub fn change(factor: f64) -> String {
    match factor < 2.0 {
        true => format!("of {:.0} %", ((factor - 1.0) * 100.0).max(1.0).ceil()),
        false => format!("by a factor of {}", digits(factor, 2)),
    }
}
