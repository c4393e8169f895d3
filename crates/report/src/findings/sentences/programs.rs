//! Two programs side by side, in words.

use iolab_analysis::claim::{Aspect, Difference, Programs};
use iolab_analysis::equivalence::{ALPHA, FIRST_TRIALS, MARGINS, ProgramPair, SizePoint};
use iolab_workload::units::format_ns;
use iolab_workload::units::format_size;

use super::doubts;
use super::sentence::{List, NAMED_MAX, sentence};
use crate::comparison_table::margin_name;
use crate::findings::doubts::beyond_precision;
use crate::ratio::{self, RatioShown};

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
        let shown = shown.map(|(ratio, medians)| RatioShown::beside(&ratio, medians));
        let ratio = match point.difference {
            Difference::Higher | Difference::Lower => shown.map(RatioShown::in_time),
            _ => shown.and_then(RatioShown::range_in_time),
        };
        let at = Some(at(pair, point).trim_start().to_owned()).filter(|at| !at.is_empty());
        let medians = point
            .medians_ns
            .map(|(base, new)| format!("({} against {})", format_ns(new), format_ns(base)));
        let parts: Vec<String> = [ratio, at, medians].into_iter().flatten().collect();
        parts.join(" ")
    };
    let mut lists = vec![List {
        label: both,
        items: Vec::new(),
    }];
    for point in told {
        let label = match (point.difference, point.doubts.as_slice()) {
            (Difference::Higher | Difference::Lower, _) => lists[0].label.clone(),
            (Difference::Equivalent | Difference::NotFound, _) => "No difference found".to_owned(),
            (Difference::CannotTell, []) => "Too few trials".to_owned(),
            (Difference::CannotTell, all) => format!("Cannot tell ({})", doubts(all)),
        };
        match lists.iter_mut().find(|list| list.label == label) {
            Some(list) => list.items.push(item(point)),
            None => lists.push(List {
                label,
                items: vec![item(point)],
            }),
        }
    }
    if lists[0].items.is_empty() {
        lists[0].items.push(String::new());
    }
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
            let place = match (tested.len(), found) {
                (0, _) => return None,
                (1, 0) => "none".to_owned(),
                (1, _) => "one".to_owned(),
                (all, found) => format!("one at {found} of {all} sizes"),
            };
            Some(format!("{place} with {trials} trials"))
        })
        .collect();
    format!(
        "differences by Welch's t test (p < {ALPHA}): {}. Two equal programs show one in 1 of 20 tests, and a significant difference may still be too small to matter.",
        parts.join(", ")
    )
}

/// Whether a test shows that the two are equivalent, and what the ratio alone says.
fn equivalence(pair: &ProgramPair, margin: usize) -> String {
    let within = margin_name(MARGINS[margin]);
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
    let measured = largest.and_then(|point| Some((point, ratio::of(&point.ratio?).in_time())));
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
