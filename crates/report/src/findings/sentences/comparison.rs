//! The effect of a factor in words.

use super::{List, SIDES, by_doubt, cell, has_several_targets, held_in_words, quantity, sentence};
use crate::doubt::hull;
use crate::findings::origin;
use crate::ratio::RatioShown;
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{Comparison, Contrast, Difference, Effect, MARGIN};
use iolab_figure::labels::{capital, share};
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Pattern, TrialSpec};
use iolab_workload::trial_description::level_in_words;

/// Factors that [`accesses_of`] names.
const ACCESSES: [&str; 3] = ["read_percent", "pattern", "workload"];

/// Name of requests with this share of reads, %.
fn accesses(read_percent: u8) -> String {
    match read_percent {
        100 => "reads".to_owned(),
        0 => "writes".to_owned(),
        reads => format!("accesses ({reads} % reads)"),
    }
}

fn is_access((factor, _): &(String, String)) -> bool {
    ACCESSES.contains(&factor.as_str())
}

pub(super) fn compares_targets(contrast: &Contrast) -> bool {
    matches!(contrast, Contrast::Levels { factor, .. } if factor == "target")
}

/// Accesses of a cell, as a noun: `random reads`.
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
    let (base, other) = &effect.levels;
    match contrast {
        Contrast::Levels { factor, .. } if factor == "target" => (base.clone(), other.clone()),
        Contrast::Levels { factor, .. } => {
            let words = |id, level| {
                let spec = cell(runs, id).map(|cell| &cell.cell.spec);
                level_in_words(spec.unwrap_or(&CellSpec::default()), factor, level)
            };
            (words(effect.base, base), words(effect.other, other))
        }
        Contrast::Company { .. } => (
            "each group alone, added up".to_owned(),
            "all groups at once".to_owned(),
        ),
        Contrast::Pattern | Contrast::Direction => {
            let noun = |id| cell(runs, id).map_or_else(String::new, accesses_of);
            (noun(effect.base), noun(effect.other))
        }
    }
}

/// The settings in which an effect was measured, apart from its two sides.
fn place(contrast: &Contrast, effect: &Effect, runs: &[&Analysis]) -> String {
    let are_said = match contrast {
        Contrast::Pattern | Contrast::Direction => true,
        Contrast::Levels { .. } | Contrast::Company { .. } => compares_targets(contrast),
    };
    let held = effect.held.iter();
    let held = held.filter(|level| !(are_said && is_access(level)));
    held_in_words(&held.cloned().collect::<Vec<_>>(), cell(runs, effect.base))
}

/// The compared quantity; of which accesses, between targets that several experiments measured.
fn subject(contrast: &Contrast, effect: &Effect, runs: &[&Analysis]) -> String {
    let quantity = quantity(runs, effect.base);
    let cell = cell(runs, effect.base);
    match cell.filter(|_| compares_targets(contrast) && !effect.held.iter().any(is_access)) {
        Some(cell) => format!("{quantity} of {}", accesses_of(cell)),
        None => quantity,
    }
}

/// `model:sata-ssd: ` where a comparison of several runs is about one of several targets.
fn on_target(contrast: &Contrast, runs: &[&Analysis], effect: &Effect) -> String {
    let is_across = effect.base.run != effect.other.run && !compares_targets(contrast);
    match runs.get(effect.other.run) {
        Some(run) if is_across && has_several_targets(runs) => format!("{}: ", run.target),
        _ => String::new(),
    }
}

/// Origin of the bytes, unless the target served both sides.
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

/// The greatest difference in either direction as a sentence, then the others and the settings without one, by what was found,
/// with at most `named` of each.
pub(super) fn of_comparison(comparison: &Comparison, runs: &[&Analysis], named: usize) -> String {
    let of = |difference| comparison.of(difference).collect::<Vec<&Effect>>();
    let mut different = [of(Difference::Higher), of(Difference::Lower)].concat();
    different.sort_by(|a, b| b.size().total_cmp(&a.size()));
    let Some(first) = different.first().copied().or(comparison.effects.first()) else {
        return String::new();
    };
    let contrast = &comparison.contrast;
    let (base, other) = sides(contrast, first, runs);
    let mut effects = comparison.effects.iter();
    let varies = effects.any(|effect| sides(contrast, effect, runs).1 != other);
    let of_first = origins(runs, first);
    let accesses = |effect: &Effect| {
        cell(runs, effect.other)
            .filter(|_| compares_targets(contrast) && effect.held.iter().any(is_access))
            .map_or_else(String::new, accesses_of)
    };
    let listed = |parts: Vec<String>| {
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ")
    };
    let item = |effect: &Effect| {
        let level = sides(contrast, effect, runs).1;
        let level = if varies { level } else { String::new() };
        listed(vec![level, accesses(effect), place(contrast, effect, runs)])
    };
    let shown = |effect: &Effect| RatioShown::beside(&effect.estimate, effect.medians);
    // The settings of an effect, both medians, and the interval of their ratio.
    let numbers = |effect: &Effect| {
        let settings = listed(vec![accesses(effect), place(contrast, effect, runs)]);
        let settings = match settings.is_empty() {
            true => settings,
            false => format!("{settings}; "),
        };
        let range = shown(effect).range();
        let range = range.map_or_else(String::new, |range| format!(", {range}"));
        let [base, other] =
            [effect.medians.0, effect.medians.1].map(|value| comparison.response.format(value));
        let origin = Some(origins(runs, effect)).filter(|origin| *origin != of_first);
        let origin = origin.unwrap_or_default();
        format!("({settings}{other} against {base}{range}){origin}")
    };
    let with = match compares_targets(contrast) {
        true => "on",
        false => "with",
    };
    let further = |effect: &Effect| {
        let (own_base, own) = sides(contrast, effect, runs);
        let level = match (own == other, own_base == base) {
            (true, true) => String::new(),
            (false, true) => format!(" {with} {own}"),
            (_, false) => format!(" {with} {own} than {with} {own_base}"),
        };
        format!("{}{level} {}", shown(effect).factor(), numbers(effect))
    };
    let target = on_target(contrast, runs, first);
    // The head of a comparison without a difference says so.
    let (head, none_found) = match different.is_empty() {
        false => {
            let is_opposite = |effect: &&Effect| effect.difference != first.difference;
            let opposite = different.iter().position(is_opposite);
            let opposite = opposite.map(|place| different.remove(place));
            let but = opposite.map_or_else(String::new, |one| format!(", but {}", further(one)));
            let subject = capital(&subject(contrast, first, runs));
            let than = shown(first).than();
            let numbers = numbers(first);
            let head = format!(
                "{target}{subject} {with} {other} is {than} {with} {base}{of_first} {numbers}{but}"
            );
            (head, "No difference found")
        }
        true => {
            let quantity = quantity(runs, first.base);
            let other = match (contrast, comparison.others().len()) {
                (Contrast::Levels { .. }, 2..) => {
                    format!("{other} or {} more", comparison.others().len() - 1)
                }
                _ => other.clone(),
            };
            let head = format!(
                "{target}No difference in {quantity} is shown between {other} and {base}{of_first}"
            );
            (head, "Not excluded")
        }
    };
    let list = |label: String, own: &[&Effect]| -> List {
        (label, own.iter().map(|effect| item(effect)).collect())
    };
    let not_found = of(Difference::NotFound);
    // All ratios that the interval of one of them holds.
    let within = hull(not_found.iter().filter_map(|one| shown(one).interval()));
    let within = within.and_then(|ends| RatioShown::from((1.0, Some(ends))).range());
    let within = within.map_or_else(String::new, |range| format!(" ({range})"));
    let (few, doubted): (Vec<&Effect>, Vec<&Effect>) = of(Difference::CannotTell)
        .into_iter()
        .partition(|effect| effect.doubts.is_empty());
    let also = different.iter().skip(1).map(|effect| further(effect));
    let mut lists = vec![
        ("Also".to_owned(), also.collect()),
        list(
            format!("Equivalent within {}", share(MARGIN)),
            &of(Difference::Equivalent),
        ),
        list(format!("{none_found}{within}"), &not_found),
        list("Too few trials".to_owned(), &few),
    ];
    let doubted = doubted.iter();
    let doubted = doubted.map(|effect| (effect.doubts.as_slice(), item(effect)));
    lists.extend(by_doubt("Cannot tell", doubted, SIDES));
    sentence(&head, lists, named)
}
