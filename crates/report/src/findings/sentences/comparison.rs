//! The effect of a factor in words.

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{Comparison, Contrast, Difference, Effect};
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Pattern, TrialSpec};
use iolab_workload::trial_description::level_in_words;

use super::sentence::{List, NAMED_MAX, by_doubt, sentence};
use super::{cell, has_several_targets, held_in_words, margin, quantity};
use crate::findings::{capitalised, origin};
use crate::ratio::RatioShown;

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
    let held = held.filter(|(factor, _)| !(are_said && ACCESSES.contains(&factor.as_str())));
    held_in_words(&held.cloned().collect::<Vec<_>>(), cell(runs, effect.base))
}

/// Preposition before the sides of an effect.
fn preposition(contrast: &Contrast) -> &'static str {
    match compares_targets(contrast) {
        true => "on",
        false => "with",
    }
}

/// `Throughput is 27.5× higher with 32 in flight than with 1 in flight (4 KiB): 486 MB/s against 17.7 MB/s (27.4 to 27.6×)`.
fn clause(comparison: &Comparison, effect: &Effect, runs: &[&Analysis]) -> String {
    let contrast = &comparison.contrast;
    let (base, other) = sides(contrast, effect, runs);
    let place = match place(contrast, effect, runs) {
        none if none.is_empty() => none,
        levels => format!(" ({levels})"),
    };
    let format = |value| comparison.response.format(value);
    let with = preposition(contrast);
    let shown = RatioShown::beside(&effect.estimate, effect.medians);
    let range = shown
        .range()
        .map_or_else(String::new, |range| format!(" ({range})"));
    format!(
        "{}{} is {} {with} {other} than {with} {base}{place}: {} against {}{range}{}",
        on_target(contrast, runs, effect),
        capitalised(&subject(contrast, effect, runs)),
        shown.factor(),
        format(effect.medians.1),
        format(effect.medians.0),
        origins(runs, effect),
    )
}

/// The compared quantity; of which accesses, between targets that several experiments measured.
fn subject(contrast: &Contrast, effect: &Effect, runs: &[&Analysis]) -> String {
    let quantity = quantity(runs, effect.base);
    match cell(runs, effect.base).filter(|_| compares_targets(contrast)) {
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

/// The greatest effect in each direction, then the other places by what they show.
pub(super) fn of_comparison(comparison: &Comparison, runs: &[&Analysis]) -> String {
    let Some(first) = comparison.effects.first() else {
        return String::new();
    };
    let greatest = greatest(comparison);
    let clauses: Vec<String> = greatest
        .iter()
        .map(|effect| clause(comparison, effect, runs))
        .collect();
    let (base, other) = sides(&comparison.contrast, first, runs);
    let others = comparison.others();
    let item = |effect: &Effect| {
        let level = match (&comparison.contrast, others.len()) {
            (Contrast::Levels { .. }, 0 | 1) if greatest.is_empty() => String::new(),
            (Contrast::Levels { .. }, 0 | 1)
                if !place(&comparison.contrast, effect, runs).is_empty() =>
            {
                String::new()
            }
            (Contrast::Company { .. }, _) => String::new(),
            _ => sides(&comparison.contrast, effect, runs).1,
        };
        let has_accesses = || {
            effect
                .held
                .iter()
                .any(|(factor, _)| ACCESSES.contains(&factor.as_str()))
        };
        let accesses = cell(runs, effect.other)
            .filter(|_| compares_targets(&comparison.contrast) && has_accesses())
            .map_or_else(String::new, accesses_of);
        let parts = [level, accesses, place(&comparison.contrast, effect, runs)];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    };
    let is_told = |effect: &&Effect| greatest.iter().any(|told| std::ptr::eq(*told, *effect));
    let of = |difference| {
        let mut own: Vec<&Effect> = comparison
            .of(difference)
            .filter(|one| !is_told(one))
            .collect();
        if matches!(difference, Difference::Higher | Difference::Lower) {
            own.sort_by(|a, b| b.size().total_cmp(&a.size()));
        }
        own
    };
    let list = |label: &str, own: &[&Effect]| List {
        label: label.to_owned(),
        items: own.iter().map(|effect| item(effect)).collect(),
    };
    let not_found = of(Difference::NotFound);
    let within = not_found.iter().filter_map(|one| {
        let shown = RatioShown::beside(&one.estimate, one.medians);
        Some((shown.width(), shown.range()?))
    });
    let widest = within.max_by(|a, b| a.0.total_cmp(&b.0));
    let widest = widest.map_or_else(String::new, |(_, range)| format!(" ({range})"));
    let (few, doubted): (Vec<&Effect>, Vec<&Effect>) = of(Difference::CannotTell)
        .into_iter()
        .partition(|effect| effect.doubts.is_empty());
    // The head may have said so.
    let none_found = match clauses.is_empty() {
        true => "Not excluded",
        false => "No difference found",
    };
    let mut lists = vec![
        list("Higher", &of(Difference::Higher)),
        list("Lower", &of(Difference::Lower)),
        list(
            &format!("Equivalent within {}", margin()),
            &of(Difference::Equivalent),
        ),
        list(&format!("{none_found}{widest}"), &not_found),
        list("Too few trials", &few),
    ];
    let doubted = doubted.iter();
    let doubted = doubted.map(|effect| (effect.doubts.as_slice(), item(effect)));
    lists.extend(by_doubt("Cannot tell", doubted));
    let head = match clauses.is_empty() {
        false => clauses.join(". "),
        true => format!(
            "{}No difference in {} is shown between {other}{} and {base}{}",
            on_target(&comparison.contrast, runs, first),
            quantity(runs, first.base),
            match others.len() {
                0 | 1 => String::new(),
                _ if matches!(comparison.contrast, Contrast::Pattern | Contrast::Direction) =>
                    String::new(),
                n => format!(" or {} more", n - 1),
            },
            origins(runs, first),
        ),
    };
    sentence(&head, lists, NAMED_MAX)
}

/// The greatest effect in either direction. Prefers sides that held their rates, since the effects of others are
/// bounds.
fn greatest(comparison: &Comparison) -> Vec<&Effect> {
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
    both
}
