//! Comparisons in words.

use std::collections::BTreeSet;

use iolab_analysis::analysis::{Analysis, CellAnalysis, Response};
use iolab_analysis::claim::{Comparison, Contrast, Difference, Effect, MARGIN};
use iolab_analysis::doubt::RatioBound;
use iolab_workload::quantity::{counted, significant};
use iolab_workload::trial::{Pattern, TrialSpec};

use super::{and_more, at, cell, has_several_targets, margin, quantity, times_of, untold};
use crate::findings::{capitalised, origin};

/// What requests with this share of reads are called, %.
pub(crate) fn accesses(read_percent: u8) -> String {
    match read_percent {
        100 => "reads".to_owned(),
        0 => "writes".to_owned(),
        reads => format!("accesses ({reads} % reads)"),
    }
}

pub(super) fn compares_targets(contrast: &Contrast) -> bool {
    matches!(contrast, Contrast::Levels { factor, .. } if factor == "target")
}

/// What is done in a cell, as a noun: `random reads`.
fn accesses_of(cell: &CellAnalysis) -> String {
    let words = |trial: &TrialSpec| {
        let order = match trial.pattern {
            Pattern::Seq => "sequential ",
            Pattern::Rand | Pattern::RandReplace => "random ",
            Pattern::Strided => "strided ",
            _ => "",
        };
        format!("{order}{}", accesses(trial.read_percent))
    };
    let all = cell.cell.spec.shared(words);
    all.unwrap_or_else(|| "accesses".to_owned())
}

/// The two sides of an effect, as nouns: the base first.
pub(super) fn sides(contrast: &Contrast, effect: &Effect, runs: &[&Analysis]) -> (String, String) {
    match contrast {
        Contrast::Levels { .. } if compares_targets(contrast) => {
            let noun = cell(runs, effect.other).map_or_else(|| "accesses".to_owned(), accesses_of);
            (
                effect.levels.0.clone(),
                format!("{noun} of {}", effect.levels.1),
            )
        }
        Contrast::Pattern { read_percent } => {
            let noun = accesses(*read_percent);
            (format!("sequential {noun}"), format!("random {noun}"))
        }
        Contrast::Direction { pattern } => {
            let order = match pattern {
                Pattern::Seq => "sequential",
                _ => "random",
            };
            (format!("{order} reads"), format!("{order} writes"))
        }
        Contrast::Ordered { factor } | Contrast::Levels { factor, .. } => (
            format!("{factor}={}", effect.levels.0),
            format!("{factor}={}", effect.levels.1),
        ),
    }
}

/// The two sides of a comparison without a place, as nouns: the base first.
pub(super) fn said_sides(
    comparison: &Comparison,
    first: &Effect,
    runs: &[&Analysis],
) -> (String, String) {
    let (base, other) = sides(&comparison.contrast, first, runs);
    match &comparison.contrast {
        Contrast::Ordered { factor } => (base, more(factor)),
        _ => (base, other),
    }
}

/// The other side of one effect, and where it was measured: a policy of syncs is one of the writes alone, whatever they are compared
/// with.
fn other_and_place(contrast: &Contrast, effect: &Effect, other: String) -> (String, String) {
    let of_writes = matches!(contrast, Contrast::Direction { .. });
    // The words for the accesses of a target have these levels in them.
    let is_said = |factor: &str, level: &str| match factor {
        "workload" | "read_percent" => true,
        "pattern" => matches!(level, "seq" | "rand" | "strided"),
        _ => false,
    };
    let held = effect.held.iter();
    let held =
        held.filter(|(factor, level)| !(compares_targets(contrast) && is_said(factor, level)));
    let (syncs, rest): (Vec<_>, Vec<_>) = held
        .cloned()
        .partition(|(factor, _)| of_writes && factor == "sync");
    let other = match syncs.first() {
        Some((_, policy)) => format!("{other} (sync={policy})"),
        None => other,
    };
    (other, at(&rest))
}

/// `Random writes give 4.29 times (4.29 to 4.30) the throughput of random reads at bs=4KiB (346 MB/s against 80.7 MB/s)`.
fn ratio(comparison: &Comparison, effect: &Effect, runs: &[&Analysis]) -> String {
    let (base, other) = sides(&comparison.contrast, effect, runs);
    let base = match compares_targets(&comparison.contrast) {
        true => format!("those of {base}"),
        false => base,
    };
    let response = comparison.response;
    let (verb, one_level) = match (&comparison.contrast, response.is_time()) {
        (contrast, _) if compares_targets(contrast) => ("have", false),
        (Contrast::Ordered { .. } | Contrast::Levels { .. }, false) => ("gives", true),
        (Contrast::Ordered { .. } | Contrast::Levels { .. }, true) => ("has", true),
        (_, false) => ("give", false),
        (_, true) => ("have", false),
    };
    let (of_base, of_other) = effect.medians;
    let (other, place) = other_and_place(&comparison.contrast, effect, other);
    let origins = origins(runs, effect);
    let unheld = match effect.estimate.bound {
        None => "",
        Some(RatioBound::AtLeast) => "; the first did not hold its rate",
        Some(RatioBound::AtMost) => "; the second did not hold its rate",
    };
    let target = on_target(&comparison.contrast, runs, effect);
    let other = match (one_level, target.is_empty()) {
        (true, _) | (_, false) => other,
        (false, true) => capitalised(&other),
    };
    format!(
        "{target}{other} {verb} {} the {} of {base}{} ({} against {}{origins}{unheld})",
        times_of(&effect.estimate),
        quantity(runs, effect.base),
        place,
        response.format(of_other),
        response.format(of_base),
    )
}

/// `model:sata-ssd: ` where a comparison of several runs is about one of several targets.
fn on_target(contrast: &Contrast, runs: &[&Analysis], effect: &Effect) -> String {
    let is_across = effect.base.run != effect.other.run && !compares_targets(contrast);
    match runs.get(effect.other.run) {
        Some(run) if is_across && has_several_targets(runs) => format!("{}: ", run.target),
        _ => String::new(),
    }
}

/// Where the bytes came from, unless it was the target for both.
fn origins(runs: &[&Analysis], effect: &Effect) -> String {
    let of = |id| cell(runs, id).map(origin).unwrap_or_default();
    match (of(effect.base), of(effect.other)) {
        (base, other) if base == other => other,
        (base, other) => {
            let named = |text: String| match text.is_empty() {
                true => " [device]".to_owned(),
                false => text,
            };
            format!(";{} against{}", named(other), named(base))
        }
    }
}

pub(super) fn of_comparison(comparison: &Comparison, runs: &[&Analysis]) -> String {
    let mut text = extremes(comparison, runs).join(" ");
    if text.is_empty() {
        return nothing(comparison, runs);
    }
    if comparison.effects.len() > 1 {
        text.push_str(&tally(comparison));
    }
    text.push_str(&doubted(comparison));
    text
}

/// The greatest effect of either direction, a sentence each, of sides that held their rates where there are any: that of others is a bound. Of ordered levels the greatest of all settings.
fn extremes(comparison: &Comparison, runs: &[&Analysis]) -> Vec<String> {
    let greatest = |difference| {
        let of = comparison.of(difference);
        // Of equals the first.
        of.rev().max_by(|a, b| {
            let exact = |one: &Effect| one.estimate.bound.is_none();
            let order = exact(a).cmp(&exact(b));
            order.then(a.size().total_cmp(&b.size()))
        })
    };
    let mut both: Vec<&Effect> = [Difference::Higher, Difference::Lower]
        .into_iter()
        .filter_map(greatest)
        .collect();
    both.sort_by(|a, b| b.size().total_cmp(&a.size()));
    // Beside a large effect a small one of the other sign is no news; the tally has it.
    let matters = |effect: &Effect| effect.estimate.ratio.ln().abs() > MARGIN.ln_1p();
    if both.len() > 1 && !matters(both[1]) {
        both.truncate(1);
    }
    both.iter()
        .map(|effect| ratio(comparison, effect, runs) + ".")
        .collect()
}

/// `6 higher, 1 lower, 1 equivalent within 5 %`: the number of comparisons by result, without those that the sentence names.
fn counts(comparison: &Comparison, told: Option<Difference>) -> String {
    let (higher, lower) = words(comparison.response);
    let parts = [
        (Difference::Higher, higher.to_owned()),
        (Difference::Lower, lower.to_owned()),
        (
            Difference::Equivalent,
            format!("equivalent within {}", margin()),
        ),
        (
            Difference::NotFound,
            "without a difference found".to_owned(),
        ),
        (Difference::CannotTell, "cannot tell".to_owned()),
    ]
    .into_iter()
    .filter(|(difference, _)| told != Some(*difference))
    .map(|(difference, words)| (comparison.of(difference).count(), words))
    .filter(|(n, _)| *n > 0)
    .map(|(n, words)| format!("{n} {words}"));
    parts.collect::<Vec<_>>().join(", ")
}

/// ` Of 8 comparisons: 6 higher, 1 lower, 1 equivalent within 5 %.`
fn tally(comparison: &Comparison) -> String {
    let n = comparison.effects.len();
    let of = match &comparison.contrast {
        Contrast::Ordered { factor } => {
            let base = comparison.effects.first().map(|one| one.levels.0.as_str());
            format!(" with {factor}={}", base.unwrap_or_default())
        }
        _ => String::new(),
    };
    format!(
        " Of {}{of}: {}.",
        counted(n, "comparison"),
        counts(comparison, None)
    )
}

fn words(response: Response) -> (&'static str, &'static str) {
    match response.is_time() {
        true => ("longer", "shorter"),
        false => ("higher", "lower"),
    }
}

/// What the evidence holds against comparisons that would have been shown, as a sentence.
fn doubted(comparison: &Comparison) -> String {
    reasons(comparison).map_or_else(String::new, |reasons| format!(" Cannot tell{reasons}"))
}

/// ` at bs=4KiB (and in 2 more): other traffic on the device (80 %). In 1 more for another reason.`: what follows a sentence that says
/// what cannot be told; `None` where no doubt prevents a conclusion.
fn reasons(comparison: &Comparison) -> Option<String> {
    let with = comparison.of(Difference::CannotTell);
    let with: Vec<&Effect> = with.filter(|effect| !effect.doubts.is_empty()).collect();
    let place = |first: &Effect, alike: &[&Effect]| at_level(comparison, first) + &and_more(alike);
    untold(&with, |effect| &effect.doubts, place)
}

/// Where an effect was measured, with the level of the ordered factor.
pub(super) fn at_level(comparison: &Comparison, effect: &Effect) -> String {
    match &comparison.contrast {
        Contrast::Ordered { factor } => {
            let mut all = effect.held.clone();
            all.push((factor.clone(), effect.levels.1.clone()));
            at(&all)
        }
        _ => at(&effect.held),
    }
}

/// Levels above the least one.
fn more(factor: &str) -> String {
    match factor {
        "threads" | "ranks" | "hosts" => format!("more {factor}"),
        _ => format!("a larger {factor}"),
    }
}

/// A comparison in which neither side is higher anywhere.
fn nothing(comparison: &Comparison, runs: &[&Analysis]) -> String {
    match comparison.effects.first() {
        Some(first) => {
            on_target(&comparison.contrast, runs, first) + &nothing_of(comparison, first, runs)
        }
        None => String::new(),
    }
}

fn nothing_of(comparison: &Comparison, first: &Effect, runs: &[&Analysis]) -> String {
    let (base, other) = sides(&comparison.contrast, first, runs);
    let (base, other) = match &comparison.contrast {
        Contrast::Ordered { factor } => (base, more(factor)),
        contrast if compares_targets(contrast) => {
            let nouns = comparison
                .effects
                .iter()
                .filter_map(|effect| cell(runs, effect.other));
            let nouns: BTreeSet<String> = nouns.map(accesses_of).collect();
            match nouns.len() {
                1 => (base, other),
                _ => (base, format!("accesses of {}", first.levels.1)),
            }
        }
        _ => (base, other),
    };
    let response = quantity(runs, first.base);
    let n = comparison.effects.len();
    let equivalent = comparison.of(Difference::Equivalent).count();
    let (other, all) = match n {
        1 => other_and_place(&comparison.contrast, first, other),
        2 => (other, " in both comparisons".to_owned()),
        n => (other, format!(" in all {n} comparisons")),
    };
    if equivalent == n {
        let other = match &comparison.contrast {
            Contrast::Levels { .. } if !compares_targets(&comparison.contrast) => other,
            _ => capitalised(&other),
        };
        return format!(
            "{other} and {base} are equivalent in {response} within {}{all}.",
            margin()
        );
    }
    let found = comparison.of(Difference::NotFound).count();
    if found == 0 && equivalent > 0 {
        let others = match doubted(comparison) {
            none if none.is_empty() => " Too few trials in the others.".to_owned(),
            doubted => doubted,
        };
        return format!(
            "{} and {base} are equivalent in {response} within {} in {equivalent} of {}.{others}",
            capitalised(&other),
            margin(),
            counted(n, "comparison"),
        );
    }
    if found == 0 {
        let reasons = reasons(comparison);
        if compares_targets(&comparison.contrast) {
            let why = reasons.unwrap_or_else(|| format!("{all}: too few trials."));
            let (one, two) = &first.levels;
            return format!("Cannot tell {one} and {two} apart in {response}{why}");
        }
        return match reasons {
            None => format!(
                "Too few trials to compare the {response} of {other} with that of {base}{all}."
            ),
            Some(why) => {
                format!("Cannot compare the {response} of {other} with that of {base}{why}")
            }
        };
    }
    let widest = comparison
        .of(Difference::NotFound)
        .max_by(|a, b| width(a).total_cmp(&width(b)));
    let detectable = widest.map_or_else(String::new, |effect| {
        let (low, high) = effect.estimate.interval.unwrap_or_default();
        format!(
            " The ratio lies within {} to {} (95 %{}).",
            significant(low),
            significant(high),
            match n {
                1 => String::new(),
                _ => format!(", the widest{}", at_level(comparison, effect)),
            }
        )
    });
    let others = match found == n {
        true => String::new(),
        false => format!(
            " The others: {}.",
            counts(comparison, Some(Difference::NotFound))
        ),
    };
    let origin = origins(runs, first);
    let all = match found == n {
        true => all,
        false => format!(" in {found} of {}", counted(n, "comparison")),
    };
    format!(
        "No difference was found between the {response} of {other} and of {base}{all}{origin}.{detectable}{others}{}",
        doubted(comparison)
    )
}

pub(super) fn width(effect: &Effect) -> f64 {
    let (low, high) = effect.estimate.interval.unwrap_or((1.0, 1.0));
    high / low
}
