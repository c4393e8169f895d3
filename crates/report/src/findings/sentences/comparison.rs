//! The effect of a factor, and two programs side by side, in words.

use super::{
    List, NAMED_MAX, by_doubt, cell, doubts, grouped, has_several_targets, held_in_words, quantity,
    sentence,
};
use crate::findings::doubts::beyond_precision;
use crate::findings::origin;
use crate::ratio::{self, RatioShown};
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{Aspect, Comparison, Contrast, Difference, Effect, MARGIN, Programs};
use iolab_analysis::equivalence::{ALPHA, FIRST_TRIALS, MARGINS, ProgramPair, SizePoint};
use iolab_figure::labels::capital;
use iolab_figure::labels::share;
use iolab_workload::settings::CellSpec;
use iolab_workload::trial::{Pattern, TrialSpec};
use iolab_workload::trial_description::level_in_words;
use iolab_workload::units::{counted, format_ns, format_size};

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

/// The greatest difference in either direction as a sentence, then the others and the settings without one, by what was found.
pub(super) fn of_comparison(comparison: &Comparison, runs: &[&Analysis]) -> String {
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
    let within = not_found
        .iter()
        .filter_map(|one| Some((shown(one).width(), shown(one).range()?)));
    let widest = within.max_by(|a, b| a.0.total_cmp(&b.0));
    let widest = widest.map_or_else(String::new, |(_, range)| format!(" ({range})"));
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
        list(format!("{none_found}{widest}"), &not_found),
        list("Too few trials".to_owned(), &few),
    ];
    let doubted = doubted.iter();
    let doubted = doubted.map(|effect| (effect.doubts.as_slice(), item(effect)));
    lists.extend(by_doubt("Cannot tell", doubted));
    sentence(&head, lists, NAMED_MAX)
}

/// Longest name of a program that a sentence bears.
const NAME_MAX: usize = 40;

/// A statement about two programs.
pub(super) fn of_programs(programs: &Programs) -> String {
    let pair = &programs.pair;
    let held = match pair.held.join(" ") {
        none if none.is_empty() => none,
        held => format!(" with {held}"),
    };
    let both = format!("{} against {}{held}", name(&pair.new), name(&pair.base));
    match programs.aspect {
        Aspect::Ratio => difference(both, pair),
        Aspect::Significance => format!("{both}: {}", significance(pair)),
        Aspect::Equivalence(margin) => format!("{both}: {}", equivalence(pair, margin)),
    }
}

/// The ratio at the smallest and the largest size, and where it is greatest.
fn difference(both: String, pair: &ProgramPair) -> String {
    let size = |point: &SizePoint| point.ratio.map_or(0.0, |ratio| ratio.ratio.ln().abs());
    let differing = pair.points.iter().filter(|point| point.differs());
    let most = differing.max_by(|a, b| size(a).total_cmp(&size(b)));
    let ends = [pair.points.first(), most, pair.points.last()];
    let mut told: Vec<&SizePoint> = ends.into_iter().flatten().collect();
    told.dedup_by_key(|point| point.size);
    let item = |point: &SizePoint| {
        let shown = point.ratio.zip(point.medians_ns);
        let shown = shown.map(|(ratio, medians)| RatioShown::beside(&ratio, medians).of_times());
        let ratio = match point.difference {
            Difference::Higher | Difference::Lower => shown.map(RatioShown::in_words),
            _ => shown.and_then(RatioShown::range),
        };
        let at = Some(at(pair, point).trim_start().to_owned()).filter(|at| !at.is_empty());
        let medians = point
            .medians_ns
            .map(|(base, new)| format!("({} against {})", format_ns(new), format_ns(base)));
        let parts: Vec<String> = [ratio, at, medians].into_iter().flatten().collect();
        parts.join(" ")
    };
    let label = |point: &SizePoint| match (point.difference, point.doubts.as_slice()) {
        (Difference::Higher | Difference::Lower, _) => both.clone(),
        (Difference::Equivalent | Difference::NotFound, _) => "No difference found".to_owned(),
        (Difference::CannotTell, []) => "Too few trials".to_owned(),
        (Difference::CannotTell, all) => format!("Cannot tell ({})", doubts(all)),
    };
    // The programs come first, also without a difference.
    let first = std::iter::once((both.clone(), None));
    let items = told
        .into_iter()
        .map(|point| (label(point), Some(item(point))));
    let lists = grouped(first.chain(items)).into_iter();
    let lists = lists.map(|(label, items)| {
        let is_bare = items.len() == 1 && items[0].is_none();
        let bare = is_bare.then(String::new);
        (label, items.into_iter().flatten().chain(bare).collect())
    });
    sentence("", lists, NAMED_MAX)
}

/// Number of sizes at which Welch's test finds a difference, for each number of trials.
fn significance(pair: &ProgramPair) -> String {
    let parts: Vec<String> = FIRST_TRIALS
        .iter()
        .enumerate()
        .filter_map(|(i, trials)| {
            let tested: Vec<f64> = pair
                .points
                .iter()
                .filter_map(|p| p.first_trials[i].map(|t| t.welch))
                .collect();
            let found = tested.iter().filter(|p| **p < ALPHA).count();
            let sizes = counted(tested.len(), "size");
            (!tested.is_empty()).then(|| format!("{found} of {sizes} with {trials} trials"))
        })
        .collect();
    format!(
        "differences by Welch's t test (p < {ALPHA}): {}. Two equal programs show one in 1 of 20 tests, and a significant difference may still be too small to matter.",
        parts.join(", ")
    )
}

/// Whether a test shows that the two are equivalent, and what the ratio alone says.
fn equivalence(pair: &ProgramPair, margin: usize) -> String {
    let within = share(MARGINS[margin]);
    let from = |size: u64| match pair.points.len() > 1 {
        true => format!(" from {} on", format_size(size)),
        false => String::new(),
    };
    let (shown, doubted) = (pair.equivalent_from(margin), pair.doubted(margin));
    let found = match (shown, doubted) {
        (Some(size), _) => format!("equivalent within {within}{}", from(size)),
        (None, Some(point)) => format!(
            "cannot tell whether they are equivalent within {within}{} ({})",
            at(pair, point),
            point
                .against_equivalence
                .get(margin)
                .map_or_else(String::new, |all| doubts(all))
        ),
        (None, None) => format!("equivalence within {within} is not shown"),
    };
    let largest = pair.points.last();
    let measured =
        largest.and_then(|point| Some((point, ratio::of(&point.ratio?).of_times().in_words())));
    let naive = pair.naive_from(margin);
    let alone = match (naive, measured) {
        (Some(size), _) => format!("the ratio alone lies within it{}", from(size)),
        (None, Some((point, ratio))) => format!("the measured ratio{} is {ratio}", at(pair, point)),
        (None, None) => "too few trials".to_owned(),
    };
    let advice = match (shown, doubted, naive) {
        (None, None, Some(_)) => beyond_precision(pair.more_trials),
        _ => "",
    };
    let text = format!("{found} (equivalence test, p <= {ALPHA}); {alone}. {advice}");
    text.trim_end().to_owned()
}

/// ` at 4 KiB`; nothing for programs without a file.
fn at(pair: &ProgramPair, point: &SizePoint) -> String {
    match point.size {
        _ if !pair.has_files => String::new(),
        1 => " at 1 byte".to_owned(),
        bytes if bytes < 1024 => format!(" at {bytes} bytes"),
        bytes => format!(" at {}", format_size(bytes)),
    }
}

/// A level as a sentence names it. Long commands are cut in their middle: similar ones differ at either end.
fn name(level: &str) -> String {
    if level.chars().count() <= NAME_MAX {
        return level.to_owned();
    }
    let end = NAME_MAX / 2;
    let start: String = level.chars().take(NAME_MAX - end).collect();
    let skipped = level.chars().count() - end;
    let end: String = level.chars().skip(skipped).collect();
    format!("{}...{}", start.trim_end(), end.trim_start())
}
