//! Doubts, and how far what an output shows can be trusted, in words and as data.

use schemars::JsonSchema;
use serde::Serialize;

use iolab_analysis::analysis::Looks;
use iolab_analysis::doubt::{ComparedSide, Doubt, DoubtClass, DoubtKind, Doubts, ExtentUnit};
use iolab_analysis::io_limit::ReachedLimit;
use iolab_analysis::trust::{Trust, TrustLevel};
use iolab_figure::labels::capital;
use iolab_workload::units::{between, counted, digits, format_ns, format_percent, significant};

use crate::ratio::in_cells;

/// The extent of a doubt, with its unit.
pub(crate) fn extent(what: DoubtKind, value: f64) -> String {
    range(what, (value, value))
}

/// The extents of doubts of one kind, with their unit: `36 to 40 % of its traffic`.
fn range(what: DoubtKind, (least, most): (f64, f64)) -> String {
    let text = |value| match what.unit() {
        ExtentUnit::Share => format_percent(value),
        ExtentUnit::OfTrial => format!("{} of a trial", format_percent(value)),
        ExtentUnit::Times => format!("{}×", significant(value)),
        ExtentUnit::Count => digits(value, 3),
        ExtentUnit::Ns => format_ns(value),
    };
    let (least, most) = (text(least), text(most));
    let text = between(&least, &most);
    match what.whole() {
        "" => text,
        whole => format!("{text} of {whole}"),
    }
}

/// The least and the greatest of some ranges.
pub(crate) fn hull(ranges: impl Iterator<Item = (f64, f64)>) -> Option<(f64, f64)> {
    ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)))
}

/// Doubts of one kind as a clause, with the range of their values. `base` and `new` are the sides in words.
fn clause(first: &Doubt, alike: &[&Doubt], [base, new]: [&str; 2]) -> String {
    let what = first.what;
    let extents = alike.iter().filter_map(|doubt| doubt.extent);
    let extents = hull(extents.map(|value| (value, value))).map(|extents| range(what, extents));
    let levels = |side: usize| hull(alike.iter().filter_map(|doubt| Some(doubt.levels?[side])));
    // An extent says how far the sides differ.
    let levels = levels(0).zip(levels(1)).filter(|_| extents.is_none());
    let levels = levels.map(|(of_base, of_new)| match what {
        DoubtKind::TwoGroups => format!(
            "ratios of {} to {}",
            significant(of_base.0),
            significant(of_new.1)
        ),
        _ => format!(
            "{} {base}, {} {new}",
            range(what, of_base),
            range(what, of_new)
        ),
    });
    let group = first.note.as_ref();
    let group = group.filter(|_| what.class() == DoubtClass::Durability);
    let group = group.map(|group| format!("group {group}"));
    let values: Vec<String> = [extents, levels, group].into_iter().flatten().collect();
    match values.is_empty() {
        true => what.words().to_owned(),
        false => format!("{} ({})", what.words(), values.join(" and ")),
    }
}

/// The doubts about some items as clauses, each kind once with the range of its values, and with the number of its items
/// if it does not concern all: `other programs used the disk (36 to 40 % of its traffic); the trials form two groups, in 3 of 16`.
pub(crate) fn between_items(items: &[&[Doubt]], sides: [&str; 2]) -> String {
    let mut kinds: Vec<(Vec<&Doubt>, usize)> = Vec::new();
    for doubts in items {
        for (place, doubt) in doubts.iter().enumerate() {
            let is_alike = |known: &Doubt| known.is_alike(doubt);
            let is_first = usize::from(!doubts[..place].iter().any(is_alike));
            match kinds.iter_mut().find(|(known, _)| is_alike(known[0])) {
                Some((known, concerned)) => {
                    known.push(doubt);
                    *concerned += is_first;
                }
                None => kinds.push((vec![doubt], is_first)),
            }
        }
    }
    let all = items.len();
    let clauses = kinds.iter().map(|(alike, concerned)| {
        let clause = clause(alike[0], alike, sides);
        match *concerned == all {
            true => clause,
            false => format!("{clause}, in {concerned} of {all}"),
        }
    });
    clauses.collect::<Vec<_>>().join("; ")
}

/// Sides of a comparison.
pub(crate) const SIDES: [&str; 2] = ["on the base's side", "on the new one"];

/// The doubts about a comparison as clauses.
pub fn clauses(all: &[Doubt]) -> String {
    between_items(&[all], SIDES)
}

/// Doubts of one kind about comparisons as a clause, with the side if they concern one only: `the page cache served the
/// bytes on fio's side`. Empty without doubts.
pub(crate) fn on_side(alike: &[&Doubt], base: &str, new: &str) -> String {
    let Some((first, rest)) = alike.split_first() else {
        return String::new();
    };
    let [on_base, on_new] = [base, new].map(|side| format!("on {side}"));
    let clause = clause(first, alike, [&on_base, &on_new]);
    let is_of_side = |doubt: &&Doubt| doubt.side == first.side && doubt.levels.is_none();
    match first
        .side
        .filter(|_| is_of_side(first) && rest.iter().all(is_of_side))
    {
        None => clause,
        Some(ComparedSide::Base) => format!("{clause} {on_base}"),
        Some(ComparedSide::New) => format!("{clause} {on_new}"),
    }
}

/// The doubt as a clause: `other programs used the disk (44 %) in 8 of 8 trials`.
pub fn words(doubt: &Doubt, all: &Doubts) -> String {
    let clause = clauses(std::slice::from_ref(doubt));
    let trials = counted(all.trials as u64, "trial");
    let reason = match (doubt.what.class(), &doubt.note) {
        (DoubtClass::Source, Some(reason)) => format!(" (the first: {reason})"),
        _ => String::new(),
    };
    format!("{clause} in {} of {trials}{reason}", doubt.samples.len())
}

/// The doubt as sentences: what it is, its consequence, and a remedy.
pub fn sentences(doubt: &Doubt, all: &Doubts) -> String {
    let follows = match doubt.what.looks() {
        Looks::Better => "; the storage itself may be slower than measured",
        Looks::Worse => "; the storage itself may be faster than measured",
        Looks::Either => "",
    };
    let remedy = remedy(doubt.what).map_or_else(String::new, |remedy| format!(" {remedy}"));
    format!("{}{follows}.{remedy}", words(doubt, all))
}

/// The remedy as a sentence; `None` where nothing is known to help.
pub fn remedy(what: DoubtKind) -> Option<String> {
    what.remedy().map(|remedy| format!("{}.", capital(remedy)))
}

/// The remedy for a limit of control groups.
pub const RAISE_LIMIT: &str = "raise the limit: another disk does not help";

/// The limit as a clause with its consequence.
pub fn limit(limit: &ReachedLimit) -> String {
    format!(
        "this container is limited to {} (I/O limit of its control group), and the load reached that; {RAISE_LIMIT}",
        limit.what.format(limit.per_second)
    )
}

/// Intervals that are narrower are shown as this.
pub(crate) const LEAST_SHOWN: f64 = 0.001;

/// How far what is shown can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "TrustInWords")]
pub(crate) struct TrustData<'a> {
    #[serde(flatten)]
    pub(crate) trust: &'a Trust,
    /// Sentence that iolab prints.
    pub(crate) sentence: String,
}

/// The verdict, once for all that is shown.
pub(crate) fn sentence(trust: &Trust) -> String {
    let Some(doubt) = trust.doubt else {
        return precision(trust).unwrap_or_else(|| counted(trust.cells, "result"));
    };
    let what = match trust.finding {
        Some(_) => format!("not every finding can be decided: {}", doubt.words()),
        None => format!("{}{}", doubt.words(), place(trust)),
    };
    match trust.level {
        TrustLevel::Good | TrustLevel::Limited => format!("Limited: {what}."),
        TrustLevel::Poor => {
            let widest = match (trust.too_wide, trust.without_interval) {
                (Some(widest), _) => format!(" (intervals up to ±{})", format_percent(widest)),
                (None, 0) => String::new(),
                (None, _) => format!(" ({})", DoubtKind::FewTrials.words()),
            };
            let unusable = match doubt.class() {
                DoubtClass::Others => trust.disturbed,
                _ => trust.concerned,
            };
            let which = match unusable {
                n if n > 0 && n < trust.cells => {
                    format!("{n} of {} results not usable", trust.cells)
                }
                _ => "No usable result".to_owned(),
            };
            format!("{which}: {what}{widest}.")
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
    trust.level == TrustLevel::Poor && trust.doubt.map(DoubtKind::class) == Some(DoubtClass::Others)
}

/// Cells that a doubt concerns, after its words: ` in all 12 cells`, ` in 7 of 12 cells`; nothing for an only cell. If the
/// verdict is about some cells of the runs only, these are named so.
fn place(trust: &Trust) -> String {
    let whose = match trust.cells < trust.measured {
        true => " shown",
        false => "",
    };
    match (trust.concerned, trust.cells) {
        (0, _) => String::new(),
        (_, 1) if whose.is_empty() => String::new(),
        (_, 1) => format!(" in the cell{whose}"),
        (n, all) => in_cells(n, all) + whose,
    }
}
