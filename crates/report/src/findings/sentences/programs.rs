//! Two programs side by side, in words.

use iolab_analysis::claim::{Aspect, Difference, Programs};
use iolab_analysis::equivalence::{ALPHA, FIRST_TRIALS, MARGINS, ProgramPair, SizePoint};
use iolab_workload::quantity::format_ns;
use iolab_workload::units::format_size;

use super::doubts;
use crate::equivalence::margin_name;
use crate::findings::precision::beyond_precision;
use crate::ratio::{self, RatioShown};

/// Longest name of a program that a sentence bears.
const NAME_MAX: usize = 40;

/// The difference at both ends, whether there is one, or from where on it does not matter. Where a run compares more than two programs,
/// each sentence names its own.
pub(super) fn of_programs(programs: &Programs) -> String {
    let pair = &programs.pair;
    let (base, new) = (name(&pair.base), name(&pair.new));
    let names_both = !pair.is_one_of_several || programs.aspect == Aspect::Ratio;
    let place = match (names_both, pair.held.join(" ")) {
        (true, held) if held.is_empty() => String::new(),
        (true, held) => format!("With {held}: "),
        (false, held) if held.is_empty() => format!("{new} against {base}: "),
        (false, held) => format!("{new} against {base} with {held}: "),
    };
    let text = match programs.aspect {
        Aspect::Ratio => difference(pair),
        Aspect::Significance => significance(pair),
        Aspect::Equivalence(margin) => Some(equivalence(pair, margin)),
    };
    place + &text.unwrap_or_default()
}

/// The interval of a ratio that is not shown to differ: `: 1.02× faster to 1.05× slower`.
fn within(ratio: RatioShown) -> String {
    let range = ratio.range_in_time();
    range.map_or_else(String::new, |range| format!(": {range}"))
}

/// The ratio at the least size, where what is not reading weighs most, and at the largest.
fn difference(pair: &ProgramPair) -> Option<String> {
    let (first, last) = (pair.points.first()?, pair.points.last()?);
    let (base, new) = (name(&pair.base), name(&pair.new));
    let (a, b) = first.medians_ns?;
    let ratio = RatioShown::beside(&first.ratio?, (a, b));
    let medians = format!("({} against {})", format_ns(b), format_ns(a));
    let mut text = match shown(first) {
        Some(true) => format!(
            "{new} is {} than {base}{} {medians}",
            ratio.in_time(),
            at(pair, first)
        ),
        Some(false) => format!(
            "No difference was found{} between {new} and {base} {medians}{}",
            at(pair, first),
            within(ratio)
        ),
        None => {
            return Some(match first.doubts.as_slice() {
                [] => format!(
                    "Too few trials to compare {new} with {base}{} {medians}.",
                    at(pair, first)
                ),
                all => format!(
                    "Cannot tell whether {new} takes as long as {base}{} {medians}: {}.",
                    at(pair, first),
                    doubts(all)
                ),
            });
        }
    };
    if first.size != last.size
        && let Some(ratio) = &last.ratio
    {
        let ratio = ratio::of(ratio);
        text.push_str(&match (shown(first), shown(last)) {
            (Some(true), Some(false)) => {
                format!(
                    "; no difference was found{}{}",
                    at(pair, last),
                    within(ratio)
                )
            }
            (_, None) if last.doubts.is_empty() => format!("; too few trials{}", at(pair, last)),
            (_, None) => format!("; cannot tell{}: {}", at(pair, last), doubts(&last.doubts)),
            _ => format!(";{} {}", at(pair, last), ratio.in_time()),
        });
    }
    // Between both ends there can be more.
    let between = pair.points.iter().skip(1).rev().skip(1);
    let size = |point: &SizePoint| point.ratio.map_or(0.0, |ratio| ratio.ratio.ln().abs());
    let differing = pair.points.iter().filter(|point| point.differs());
    let most = differing.map(size).fold(0.0, f64::max);
    let mut greatest = between.filter(|point| point.differs() && size(point) >= most);
    if let Some((point, ratio)) = greatest.find_map(|point| Some((point, point.ratio?))) {
        text.push_str(&format!(
            "; most{}: {}",
            at(pair, point),
            ratio::of(&ratio).in_time()
        ));
    }
    text.push('.');
    Some(text)
}

/// Whether one of the two is shown to take longer; `None` if the data do not show it.
fn shown(point: &SizePoint) -> Option<bool> {
    match point.difference {
        Difference::Higher | Difference::Lower => Some(true),
        Difference::Equivalent | Difference::NotFound => Some(false),
        Difference::CannotTell => None,
    }
}

/// Number of sizes at which Welch's test finds a difference, for each number of trials.
fn significance(pair: &ProgramPair) -> Option<String> {
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
            let place = match (tested.len(), found) {
                (0, _) => return None,
                (1, 0) => "none".to_owned(),
                (1, _) => "one".to_owned(),
                (all, found) => format!("one at {found} of {all} sizes"),
            };
            Some(format!("{place} with {trials} trials"))
        })
        .collect();
    (!parts.is_empty()).then(|| {
        format!(
            "Differences by Welch's t test (p < {ALPHA}): {}. Two equal programs show one in 1 of 20 tests, and a significant difference may still be too small to matter.",
            parts.join(", ")
        )
    })
}

/// Size from which the difference is shown to be below a margin, next to the size that the medians alone
/// suggest.
fn equivalence(pair: &ProgramPair, margin: usize) -> String {
    let within = margin_name(MARGINS[margin]);
    let many = pair.points.len() > 1;
    let from = |size: u64| match many {
        true => format!(" from {} on", format_size(size)),
        false => String::new(),
    };
    let naive = pair.naive_from(margin).map(|size| {
        let verb = if many { "stays" } else { "lies" };
        format!("the ratio alone {verb} within it{}", from(size))
    });
    let test = if many { " at each size" } else { "" };
    let to = if many { " up to the largest size" } else { "" };
    match (pair.equivalent_from(margin), naive) {
        (Some(size), naive) => format!(
            "The two are equivalent within {within}{} (equivalence test{test}, p <= {ALPHA}); {}.",
            from(size),
            naive.unwrap_or_else(|| "the ratio alone does not say so".to_owned()),
        ),
        (None, _) if pair.doubted(margin).is_some() => {
            let doubted = pair.doubted(margin);
            let place = doubted.map(|point| at(pair, point)).unwrap_or_default();
            let against = doubted.and_then(|point| point.against_equivalence.get(margin));
            let doubts = against.map_or_else(String::new, |all| doubts(all));
            format!("Cannot tell whether the two are equivalent within {within}{place}: {doubts}.")
        }
        (None, Some(naive)) => format!(
            "Equivalence within {within} is not shown{to}: {naive}, but there are too few trials, or their spread is too wide. {}",
            beyond_precision(pair.more_trials)
        ),
        (None, None) => {
            let largest = pair.points.last();
            let measured = largest
                .and_then(|point| Some((at(pair, point), ratio::of(&point.ratio?).in_time())));
            let why = measured.map_or_else(
                || "too few trials".to_owned(),
                |(place, ratio)| format!("the measured ratio{place} is {ratio}"),
            );
            format!("Equivalence within {within} is not shown{to}: {why}.")
        }
    }
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
