//! Doubts in words.

use iolab_analysis::analysis::Looks;
use iolab_analysis::doubt::{ComparedSide, Doubt, DoubtClass, DoubtKind, Doubts, ExtentUnit};
use iolab_analysis::io_limit::ReachedLimit;
use iolab_workload::quantity::{counted, digits, format_ns, format_percent, significant};

use crate::layout::capitalised;

/// The extent of a doubt, with its unit.
pub(crate) fn extent(what: DoubtKind, value: f64) -> String {
    match what.unit() {
        ExtentUnit::Share => format_percent(value),
        ExtentUnit::OfTrial => format!("{} of a trial", format_percent(value)),
        ExtentUnit::Times => format!("{}×", significant(value)),
        ExtentUnit::Count => digits(value, 3),
        ExtentUnit::Ns => format_ns(value),
    }
}

/// The values that a clause gives in brackets. `base` and `new` are the sides in words.
fn values(doubt: &Doubt, [base, new]: [&str; 2]) -> Vec<String> {
    let group = doubt.note.as_ref();
    let group = group.filter(|_| doubt.what.class() == DoubtClass::Durability);
    let range = |(least, most): (f64, f64)| {
        let (least, most) = (extent(doubt.what, least), extent(doubt.what, most));
        match least == most {
            true => least,
            false => format!("{least} to {most}"),
        }
    };
    let levels = doubt.levels.map(|[of_base, of_new]| match doubt.what {
        DoubtKind::TwoGroups => format!(
            "ratios of {} to {}",
            significant(of_base.0),
            significant(of_new.1)
        ),
        _ => format!("{} {base}, {} {new}", range(of_base), range(of_new)),
    });
    let extent = doubt.extent.map(|value| extent(doubt.what, value));
    let group = group.map(|group| format!("group {group}"));
    [extent, levels, group].into_iter().flatten().collect()
}

/// Doubts as clauses, each once with all its values: `other programs used the disk (36 % and 40 %); the trials form
/// two groups`.
pub(crate) fn between(all: &[Doubt], sides: [&str; 2]) -> String {
    let mut alike: Vec<(&Doubt, Vec<String>)> = Vec::new();
    for doubt in all {
        let own = values(doubt, sides);
        match alike.iter_mut().find(|(known, _)| known.is_alike(doubt)) {
            Some((_, known)) => {
                let further = own.into_iter().filter(|value| !known.contains(value));
                let further: Vec<String> = further.collect();
                known.extend(further);
            }
            None => alike.push((doubt, own)),
        }
    }
    let clauses = alike.into_iter().map(|(doubt, values)| {
        let words = doubt.what.words();
        match values.is_empty() {
            true => words.to_owned(),
            false => format!("{words} ({})", values.join(" and ")),
        }
    });
    clauses.collect::<Vec<_>>().join("; ")
}

/// The doubts about a comparison as clauses.
pub fn clauses(all: &[Doubt]) -> String {
    between(all, ["on the base's side", "on the new one"])
}

/// A doubt about a comparison as a clause, with the side that it concerns where it is one: `the page cache served the
/// bytes on fio's side`.
pub(crate) fn on_side(doubt: &Doubt, base: &str, new: &str) -> String {
    let [on_base, on_new] = [base, new].map(|side| format!("on {side}"));
    let clause = between(std::slice::from_ref(doubt), [&on_base, &on_new]);
    match doubt.side.filter(|_| doubt.levels.is_none()) {
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
    what.remedy()
        .map(|remedy| format!("{}.", capitalised(remedy)))
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
