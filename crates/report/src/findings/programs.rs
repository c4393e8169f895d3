//! What two programs side by side tell.

use super::format_ratio;
use super::{Finding, Rule, Says};
use iolab_analysis::analysis::Analysis;
use iolab_analysis::equivalence::{
    ALPHA, FIRST_TRIALS, MARGINS, ProgramPair, SizePoint, margin_name, program_pairs,
};
use iolab_workload::quantity::format_ns;
use iolab_workload::units::format_size;

pub(crate) const PROGRAMS_DIFFER: Rule = Rule::result(
    "programs-differ",
    "the ratio of median times with its interval",
);
pub(crate) const PROGRAMS_SIGNIFICANCE: Rule =
    Rule::result("programs-significance", "Welch's t test at each size");
pub(crate) const PROGRAMS_EQUIVALENT: Rule = Rule::result(
    "programs-equivalent",
    "two one-sided t tests on the logarithms at each size",
);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[programs];

/// Longest name of a program that a sentence bears.
const NAME_MAX: usize = 40;

/// The difference where it is most, whether it is one, and from where on it does not matter.
pub fn programs(analysis: &Analysis) -> Vec<Finding> {
    let of_one = |pair: ProgramPair| {
        let mut sentences: Vec<(Rule, String)> = Vec::new();
        sentences.extend(difference(&pair).map(|text| (PROGRAMS_DIFFER, text)));
        sentences.extend(significance(&pair).map(|text| (PROGRAMS_SIGNIFICANCE, text)));
        let margins = 0..MARGINS.len();
        sentences.extend(margins.map(|margin| (PROGRAMS_EQUIVALENT, equivalence(&pair, margin))));
        let place = if pair.held.is_empty() {
            String::new()
        } else {
            format!("With {}: ", pair.held.join(" "))
        };
        sentences.into_iter().map(move |(rule, text)| Finding {
            rule,
            text: format!("{place}{text}"),
        })
    };
    program_pairs(analysis)
        .into_iter()
        .flat_map(of_one)
        .collect()
}

/// The ratio at the least size, where what is not reading weighs most, and at the largest.
fn difference(pair: &ProgramPair) -> Option<String> {
    let (first, last) = (pair.points.first()?, pair.points.last()?);
    let (base, new) = (name(&pair.base), name(&pair.new));
    let mut text = format!(
        "{new} takes {} as long as {base} {}",
        times(first)?,
        at(first)
    );
    let (a, b) = first.medians_ns?;
    text.push_str(&format!(" ({} against {})", format_ns(b), format_ns(a)));
    if first.size != last.size
        && let Some(ratio) = times(last)
    {
        text.push_str(&format!(", {ratio} {}", at(last)));
    }
    text.push('.');
    Some(text)
}

/// `1.31 times (95 % interval 1.27 to 1.35)`.
fn times(point: &SizePoint) -> Option<String> {
    Some(format_ratio(&point.ratio?, " times"))
}

/// At how many sizes Welch's test finds a difference, for each number of trials.
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
            "Differences by Welch's t test (p < {ALPHA}): {}. A significant difference may still be too small to matter.",
            parts.join(", ")
        )
    })
}

/// From where on the difference is shown to be below a margin, beside what the medians alone would say.
fn equivalence(pair: &ProgramPair, margin: usize) -> String {
    let within = margin_name(MARGINS[margin]);
    let many = pair.points.len() > 1;
    let from = |size: u64| match many {
        true => format!(" from {} on", format_size(size)),
        false => String::new(),
    };
    let naive = pair.naive_from(margin).map(|size| {
        let verb = if many { "stays" } else { "lies" };
        format!(
            "the ratio of the medians alone {verb} within it{}",
            from(size)
        )
    });
    let test = if many { " at each size" } else { "" };
    let to = if many { " up to the largest size" } else { "" };
    match (pair.equivalent_from(margin), naive) {
        (Some(size), naive) => format!(
            "The two are equivalent within {within}{} (equivalence test{test}, p <= {ALPHA}); {}.",
            from(size),
            naive.unwrap_or_else(|| "the ratio of the medians alone does not say so".to_owned()),
        ),
        (None, Some(naive)) => format!(
            "Equivalence within {within} is not shown{to}: {naive}, but there are too few trials, or their spread is too wide. Increase --budget."
        ),
        (None, None) => format!(
            "Equivalence within {within} is not shown{to}, and the ratio of the medians lies outside of it{}.",
            if many { " there" } else { "" },
        ),
    }
}

fn at(point: &SizePoint) -> String {
    match point.size {
        1 => "at 1 byte".to_owned(),
        bytes if bytes < 1024 => format!("at {bytes} bytes"),
        bytes => format!("at {}", format_size(bytes)),
    }
}

/// A level as a sentence names it: long commands are cut.
fn name(level: &str) -> String {
    if level.chars().count() <= NAME_MAX {
        return level.to_owned();
    }
    let start: String = level.chars().take(NAME_MAX).collect();
    format!("{}...", start.trim_end())
}
