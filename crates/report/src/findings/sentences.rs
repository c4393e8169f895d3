//! Claims in words: a head, then labelled lists; a file each has the words of some kinds.

mod causes;
mod comparison;
mod layers;
mod rounds;

use std::collections::BTreeMap;

use super::doubts::{in_words, longer_trials, more_trials, remedy};
use super::{origin, within};
use crate::doubt::{SIDES, between_items, clauses as doubts};
use crate::findings::{Finding, with_levels};
use crate::ratio::RatioShown;
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{CellId, Claim, Point, Quantity, Standing, groups};
use iolab_analysis::doubt::{Doubt, DoubtKind};
use iolab_analysis::equivalence::FACTORS;
use iolab_analysis::timeline::Access;
use iolab_figure::labels;
use iolab_workload::escape_control::escape_control;
use iolab_workload::response::Response;
use iolab_workload::settings::{CellSpec, own_cells};
use iolab_workload::trial_description::{levels_in_words, requests_in_words};
use iolab_workload::units::{
    between, counted, digits, exact_size, format_bytes, format_ns, format_percent,
    format_percent_of_whole, possessive, significant,
};

pub(crate) use causes::cause_in_short;
pub use causes::{causes_in_lines, grouped, obstacle};
pub(crate) use rounds::{foreseen, in_words_of_standard, state_in_short};

/// A claim as a sentence, or two. `runs` are those that the claims were made of.
pub fn finding(claim: &Claim, runs: &[&Analysis]) -> Finding {
    Finding {
        kind: claim.kind,
        text: text(claim, runs, NAMED_MAX),
    }
}

/// Whether the sentences of a claim name the targets that it is about, where the runs have several: see `comparison.rs`.
pub(super) fn names_targets(claim: &Claim, runs: &[&Analysis]) -> bool {
    claim.compares_targets() || has_several_targets(runs) && claim.runs().len() > 1
}

/// Whether runs were made on different targets.
fn has_several_targets(runs: &[&Analysis]) -> bool {
    runs.windows(2).any(|two| two[0].target != two[1].target)
}

/// A claim as a sentence, with this many further effects of a factor by what was found.
pub(super) fn text(claim: &Claim, runs: &[&Analysis], named: usize) -> String {
    let first = claim.runs().first().and_then(|run| runs.get(*run)).copied();
    // A suspect that is not named would not be known to be cleared, and a host would not be looked at.
    let is_named = |one: &Point| !one.suspects.is_empty() || one.client.is_some();
    let named = match claim.comparison() {
        Some(_) => named,
        None if claim.points.iter().any(is_named) => usize::MAX,
        None => NAMED_MAX,
    };
    of_points(claim, first, runs, named)
}

fn cell<'a>(runs: &[&'a Analysis], id: CellId) -> Option<&'a CellAnalysis> {
    runs.get(id.run)?.cell(id.cell)
}

/// `throughput`, `reader's throughput`: the quantity of a run.
fn quantity(runs: &[&Analysis], id: CellId) -> String {
    let Some(run) = runs.get(id.run) else {
        return String::new();
    };
    of_group(run, run.quantity())
}

/// `throughput`, `reader's throughput`: what a run shows of its trials or of a group.
pub(super) fn of_group(run: &Analysis, what: String) -> String {
    match &run.response_group {
        Some(group) => format!("{} {what}", possessive(group)),
        None => what,
    }
}

/// ` with 4 KiB, 2 threads`: a cell by the factors of its run; empty without factors.
pub fn with_cell(run: &Analysis, id: CellId) -> String {
    let cell = run.cell(id.cell);
    cell.map_or_else(String::new, |cell| with_levels(run, cell))
}

/// `4 KiB, 2 threads`: levels of a cell that others share.
fn held_in_words(held: &[(String, String)], cell: Option<&CellAnalysis>) -> String {
    let every = CellSpec::default();
    let spec = cell.map_or(&every, |cell| &cell.cell.spec);
    levels_in_words(spec, held.iter().map(|(factor, level)| (factor, level)))
}

/// ` with 4 KiB, 2 threads`; empty if nothing is held.
fn with_held(held: &[(String, String)], cell: Option<&CellAnalysis>) -> String {
    match held_in_words(held, cell) {
        none if none.is_empty() => none,
        levels => format!(" with {levels}"),
    }
}

/// Most digits that distinguish a share from its limit.
const DIGITS_MAX: usize = 6;

/// Most points of a list.
const NAMED_MAX: usize = 3;

/// A label, and the items that share it.
type List = (String, Vec<String>);

/// `Lower: 4 KiB; 64 KiB; and 2 more`, with at most `named` items.
fn labelled((label, mut items): List, named: usize) -> String {
    items.dedup();
    let more = items.len().saturating_sub(named);
    items.truncate(named);
    items.retain(|item| !item.is_empty());
    match (items.is_empty(), more) {
        (true, _) => label,
        (false, 0) => format!("{label}: {}", items.join("; ")),
        (false, more) => format!("{label}: {}; and {more} more", items.join("; ")),
    }
}

/// `Head. Lower: 4 KiB; 64 KiB; and 2 more. Cannot tell (other traffic): 1 MiB.` At most `named` items of
/// each list appear; empty lists are left out.
fn sentence(head: &str, lists: impl IntoIterator<Item = List>, named: usize) -> String {
    let lists = lists.into_iter().filter(|(_, items)| !items.is_empty());
    let lists = lists.map(|list| labelled(list, named));
    let parts = std::iter::once(head.to_owned()).chain(lists);
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(". ") + "."
}

/// Items with doubts: a list for each doubt that is the weightiest of some, whatever its values are.
fn by_doubt<'a>(
    label: &str,
    items: impl Iterator<Item = (&'a [Doubt], String)>,
    sides: [&str; 2],
) -> Vec<List> {
    type Doubted<'a> = (Vec<&'a [Doubt]>, Vec<String>);
    let mut lists: BTreeMap<Option<DoubtKind>, Doubted<'_>> = BTreeMap::new();
    for (doubts, item) in items {
        let weightiest = doubts.iter().map(|doubt| doubt.what).min();
        let (all, items) = lists.entry(weightiest).or_default();
        all.push(doubts);
        items.push(item);
    }
    let lists = lists.into_values();
    lists
        .map(|(doubts, items)| match between_items(&doubts, sides) {
            none if none.is_empty() => (label.to_owned(), items),
            doubts => (format!("{label} ({doubts})"), items),
        })
        .collect()
}

/// The sentence of a claim whose kind has a head: that, at most `named` points of each standing, and the advice.
fn of_points(claim: &Claim, run: Option<&Analysis>, runs: &[&Analysis], named: usize) -> String {
    let kind = claim.kind;
    let lists = kind.labels.iter().flat_map(|(standing, label)| {
        let own = claim.of(*standing);
        let own = own.map(|point| {
            let item = item(point, claim, runs);
            let of = point.client.as_ref();
            let item = of.map_or(item.clone(), |of| format!("{} {item}", labels::client(of)));
            (point.doubts.as_slice(), item)
        });
        let label = filled(label, claim, run, runs);
        match standing {
            Standing::Doubtful => by_doubt(&label, own, SIDES),
            Standing::Undecided => by_doubt(&label, own, ["with it", "without it"]),
            _ => vec![(label, own.map(|(_, item)| item).collect())],
        }
    });
    let said = sentence(&filled(kind.head, claim, run, runs), lists, named);
    let said = match claim.doubts.as_slice() {
        [] => said,
        all => format!(
            "Cannot tell whether these are the storage's own numbers: {}. {said}",
            doubts(all)
        ),
    };
    match kind.advice {
        "" => said,
        advice => format!("{said} {}", filled(advice, claim, run, runs)),
    }
    .trim_end()
    .to_owned()
}

/// A text of a kind with the values of a claim in the places of their names.
fn filled(text: &str, claim: &Claim, run: Option<&Analysis>, runs: &[&Analysis]) -> String {
    let mut parts = text.split(['{', '}']);
    let mut text = String::new();
    while let Some(words) = parts.next() {
        text.push_str(words);
        text.push_str(
            &parts
                .next()
                .map_or_else(String::new, |name| named(name, claim, run, runs)),
        );
    }
    text
}

/// `reads on /data (direct I/O)`: the accesses of a choice, and their target.
fn accesses_on(held: &[(String, String)], of: Option<&CellAnalysis>) -> String {
    let (mut accesses, mut target, mut others) = (String::new(), String::new(), Vec::new());
    for (name, level) in held {
        match (name.as_str(), level.as_str()) {
            ("read_percent", "100") => accesses = "reads".to_owned(),
            ("read_percent", "0") => accesses = "writes".to_owned(),
            ("read_percent", share) => accesses = format!("accesses with {share} % reads"),
            ("target", name) => target = format!(" on {name}"),
            _ => others.push((name.clone(), level.clone())),
        }
    }
    match others.is_empty() {
        true => format!("{accesses}{target}"),
        false => format!("{accesses}{target} ({})", held_in_words(&others, of)),
    }
}

/// The 64 MiB that a program asked for, the part of them that a device carried, or the name of a device or a tool.
fn of_observation(name: &str, claim: &Claim) -> String {
    let of = |standing| claim.of(standing).next();
    let item = |point: &Point| item(point, claim, &[]);
    match name {
        "asked" => of(Standing::Asked).map_or_else(
            || "the bytes".to_owned(),
            |point| format!("the {}", item(point)),
        ),
        "part" => of(Standing::Main).map_or_else(|| "an unknown share".to_owned(), item),
        _ => held(name, claim),
    }
}

/// The level, or the name, that a claim holds for this word.
fn held(name: &str, claim: &Claim) -> String {
    let held = claim.held.iter().find(|held| held.0 == name);
    held.map_or_else(String::new, |(_, is)| escape_control(is).into_owned())
}

/// `2 of its 6 cells (bs=16MiB)`: the cells of a claim, among all cells of its tool.
fn own_cells_of(claim: &Claim, run: &Analysis) -> String {
    let tool = held("tool", claim);
    let cells = run.cells.iter();
    let cells = cells.filter(|cell| cell.cell.spec.tool.name() == tool);
    let is_own = |cell: &&CellAnalysis| claim.cells.iter().any(|id| id.cell == cell.cell.id);
    let (own, rest): (Vec<_>, Vec<_>) = cells.partition(is_own);
    let [own, rest] = [own, rest].map(|cells| {
        let levels = cells.iter().map(|cell| cell.cell.levels.as_slice());
        levels.collect::<Vec<_>>()
    });
    own_cells(&run.factors, &own, &rest)
}

fn named(name: &str, claim: &Claim, run: Option<&Analysis>, runs: &[&Analysis]) -> String {
    if let Ok(place) = name.parse::<usize>() {
        let point = claim.points.get(place);
        return point.map_or_else(String::new, |point| item(point, claim, runs));
    }
    if claim.comparison().is_some() {
        return comparison::named(name, claim, runs).unwrap_or_default();
    }
    let Some(run) = run else {
        return of_observation(name, claim);
    };
    let first = claim.cells.first().copied();
    let of_first = first.and_then(|id| cell(runs, id));
    let cells = || Vec::from_iter(claim.cells.iter().filter_map(|id| cell(runs, *id)));
    let doubt = claim.points.first().and_then(|one| one.doubts.first());
    let ratio = claim.ratio.as_ref();
    match name {
        "at" => with_held(&claim.held, of_first),
        "accesses_on" => accesses_on(&claim.held, of_first),
        "response" => run.quantity(),
        "base" => first.map_or_else(String::new, |id| program(runs, id)),
        "other" => {
            let second = claim.cells.get(1);
            second.map_or_else(String::new, |id| program(runs, *id))
        }
        "cells" => within(claim.cells.len(), run),
        "Cells" => labels::capital(&within(claim.cells.len(), run)),
        "doubt" => doubt
            .zip(of_first)
            .map_or_else(String::new, |(doubt, cell)| in_words(doubt, run, cell)),
        "remedy" => doubt.map_or_else(String::new, |doubt| remedy(doubt.what, run, &cells())),
        "more_trials" => more_trials(run, &cells()).to_owned(),
        "longer" => longer_trials(run).to_owned(),
        "own" => own_cells_of(claim, run),
        "cell" => first.map_or_else(String::new, |id| with_cell(run, id)),
        "groups" if of_first.is_some_and(|cell| cell.cell.spec.has_groups()) => {
            " of all groups".to_owned()
        }
        "accesses" if run.cells.len() > 1 => {
            let since = claim.points.iter().find_map(|point| point.since);
            match since.map(|since| since.access) {
                Some(Access::Writes) => " of cells that write".to_owned(),
                Some(Access::Reads) => " of cells that only read".to_owned(),
                None => String::new(),
            }
        }
        "latency" => of_group(run, run.timed.subject("latency")),
        "quantity" => first.map_or_else(String::new, |id| quantity(runs, id)),
        "worse" if more_is_better(claim) => "lower".to_owned(),
        "worse" => "higher".to_owned(),
        "time" => run.timed.subject("Median response time"),
        "moved" => ratio.map_or_else(String::new, |ratio| moved(ratio.ratio)),
        "times" => ratio.map_or_else(String::new, |ratio| times(ratio.ratio)),
        "range" => ratio
            .and_then(|ratio| Some((times(ratio.ratio), ratio.interval?)))
            // Both ends of an interval that is narrower than the digits would repeat the value.
            .filter(|(text, (low, high))| [low, high].iter().any(|end| times(**end) != *text))
            .map_or_else(String::new, |(_, (low, high))| {
                let of_both = claim.points.get(1).zip(claim.points.first());
                let of_both = of_both.map(|(p99, p50)| times(p99.value / p50.value));
                let estimator = match of_both == ratio.map(|ratio| times(ratio.ratio)) {
                    true => "",
                    false => ", mean of the trials",
                };
                format!(" ({} to {}{estimator})", significant(low), times(high))
            }),
        "factor" => {
            let shown = ratio.zip(claim.points.first()).zip(claim.points.get(1));
            shown.map_or_else(String::new, |((ratio, base), other)| {
                RatioShown::beside(ratio, (base.value, other.value)).in_words()
            })
        }
        _ => causes::named(name, claim, runs),
    }
}

/// Whether more of what its first point measures is better.
fn more_is_better(claim: &Claim) -> bool {
    let first = claim.points.first().map(|point| point.quantity);
    matches!(first, Some(Quantity::Of(response)) if response.more_is_better())
}

/// `500 MB/s with 64 MiB`, `1.67× lower with 64 KiB`, `1 MiB`: a cell of a curve, of which `top` is the best one.
fn of_curve(point: &Point, top: &Point, claim: &Claim, runs: &[&Analysis]) -> Option<String> {
    let id = point.cell?;
    let (run, cell) = (runs.get(id.run)?, cell(runs, id)?);
    let levels = run.factors.iter().zip(&cell.cell.levels);
    let is_own = |(name, _): &(&String, &String)| !claim.held.iter().any(|held| held.0 == **name);
    let place = levels_in_words(&cell.cell.spec, levels.filter(is_own));
    let format = |value| run.response.format(value);
    Some(match (point.standing, &point.ratio) {
        (Standing::Best, _) => {
            // The median may lie between two groups, where no trial is.
            let value = groups(run, cell).map_or_else(
                || format(point.value),
                |found| {
                    let [low, high] = [found.low_median, found.high_median].map(format);
                    format!("{low} in some trials and {high} in the others")
                },
            );
            format!("{value} with {place}{}", origin(cell))
        }
        (Standing::Worse, Some(ratio)) => {
            let shown = RatioShown::beside(ratio, (top.value, point.value));
            format!("{} with {place}", shown.factor())
        }
        _ => place,
    })
}

/// `fell 2.93×`.
fn moved(factor: f64) -> String {
    if factor == 0.0 {
        "fell to nothing".to_owned()
    } else if factor < 1.0 {
        format!("fell {}", times(1.0 / factor))
    } else if factor.is_finite() {
        format!("rose {}", times(factor))
    } else {
        "rose from nothing".to_owned()
    }
}

fn times(ratio: f64) -> String {
    format!("{}×", significant(ratio))
}

/// `210 MB/s from 40.0 s (39.1 GiB written) on`, `6 of 12 trials`: a point of a list.
fn item(point: &Point, claim: &Claim, runs: &[&Analysis]) -> String {
    if let Some(text) = causes::of_suspect(point) {
        return text;
    }
    if let Some(text) = comparison::item(point, claim, runs) {
        return text;
    }
    let top = claim.ranked().next();
    if let Some(text) = top.and_then(|top| of_curve(point, top, claim, runs)) {
        return text;
    }
    let value = point.value;
    let count = |number: f64, one: &str| match number.fract() == 0.0 {
        true => counted(number as u64, one),
        false => format!("{} {one}s", significant(number)),
    };
    let text = match (point.quantity, point.of) {
        (Quantity::Of(Response::P99), _) if point.interval.is_none() => {
            format!("p99 {}", format_ns(value))
        }
        (Quantity::Of(response), Some(base)) => times_of_both(point, response, base),
        (Quantity::Of(response), _) => {
            let text = response.format(value);
            let ends = point
                .interval
                .map(|(low, high)| [low, high].map(|end| response.format(end)));
            // Of an interval that is narrower than the digits, both ends would repeat the value.
            match ends.filter(|ends| ends.iter().any(|end| *end != text)) {
                Some([low, high]) => format!("{text} ({})", between(&low, &high)),
                None => text,
            }
        }
        (Quantity::Rate, _) => format!("{}/s", significant(value)),
        (Quantity::Fault(kind), _) => format!("{value} {}", kind.name()),
        (Quantity::Bytes, _) => {
            let bytes = |bytes: f64| format_bytes(bytes.round());
            bounds(point.interval.unwrap_or((value, value)), bytes)
        }
        (Quantity::Size, _) => exact_size(value as u64),
        (Quantity::Times, _) => match point.interval {
            None => times(value),
            interval => RatioShown::from((value, interval)).in_words(),
        },
        (Quantity::Limit(what), _) => what.format(value as u64),
        (Quantity::Stage(stage, carried_by), _) => {
            let ends = point.interval.map(|(low, high)| {
                format!("({} to {}) ", format_percent(low), format_percent(high))
            });
            let (share, ends) = (format_percent(value), ends.unwrap_or_default());
            format!("{share} {ends}{}", layers::what(stage, carried_by))
        }
        (Quantity::Share, None) => bounds(
            point.interval.unwrap_or((value, value)),
            format_percent_of_whole,
        ),
        (Quantity::Share, Some(limit)) => {
            let (share, allowed) = beside_limit(value, limit);
            format!("{share} ({allowed} allowed)")
        }
        (Quantity::Count(one), None) => count(value, one),
        (Quantity::Count(one), Some(all)) => {
            let part = match value.fract() == 0.0 {
                true => value.to_string(),
                false => significant(value),
            };
            format!("{part} of {}", count(all, one))
        }
    };
    let trial = point
        .cell
        .and_then(|id| cell(runs, id)?.cell.spec.only_trial());
    let text = match trial {
        Some(trial) => format!("{text} with {}", requests_in_words(trial)),
        None => text,
    };
    let text = match point.rate {
        // A p99 follows the median at its rate.
        Some(rate) if point.quantity != Quantity::Of(Response::P99) => {
            format!("{text} at {}/s", significant(rate))
        }
        _ => text,
    };
    match point.since {
        None => text,
        Some(since) => format!(
            "{text} from {} ({} {}) on",
            format_ns(since.ns as f64),
            format_bytes(since.bytes),
            done(since.access)
        ),
    }
}

/// A number between two bounds: `4.00 GiB`, `up to 1.50 GiB`, `1 to 2 GiB`.
fn bounds((least, most): (f64, f64), text: fn(f64) -> String) -> String {
    match [least, most].map(text) {
        [least, most] if least == text(0.0) && least != most => format!("up to {most}"),
        [least, most] => between(&least, &most),
    }
}

/// `1.50× slower at 64 KiB (900 µs against 600 µs)`: times of two sides.
fn times_of_both(point: &Point, response: Response, base: f64) -> String {
    let shown = point.ratio.as_ref();
    let shown = shown.map(|ratio| RatioShown::beside(ratio, (base, point.value)).of_times());
    let ratio = match point.standing {
        Standing::Differs | Standing::AsMeasured => shown.map(RatioShown::in_words),
        _ => shown.and_then(RatioShown::range),
    };
    let place = point.size.map(|bytes| format!("at {}", exact_size(bytes)));
    let [value, base] = [point.value, base].map(|value| response.format(value));
    let parts = [ratio, place, Some(format!("({value} against {base})"))];
    Vec::from_iter(parts.into_iter().flatten()).join(" ")
}

/// Longest name of a program in a sentence.
const NAME_MAX: usize = 40;

/// The program of a cell. Long commands are cut in their middle: similar ones differ at either end.
fn program(runs: &[&Analysis], id: CellId) -> String {
    let level = runs.get(id.run).and_then(|run| {
        let mut factors = run.factors.iter();
        let place = factors.position(|name| FACTORS.contains(&name.as_str()))?;
        run.cell(id.cell)?.cell.levels.get(place)
    });
    let name: Vec<char> = level.into_iter().flat_map(|level| level.chars()).collect();
    if name.len() <= NAME_MAX {
        return name.into_iter().collect();
    }
    let end = NAME_MAX / 2;
    let [start, end] = [&name[..NAME_MAX - end], &name[name.len() - end..]].map(String::from_iter);
    format!("{}...{}", start.trim_end(), end.trim_start())
}

/// Verb for these bytes.
pub(super) fn done(of: Access) -> &'static str {
    match of {
        Access::Writes => "written",
        Access::Reads => "read",
    }
}

/// A share and its limit: `9.8 %` and `10 %`, `10.04 %` and `10 %`. The share has as many digits as show on
/// which side of its limit it lies.
fn beside_limit(share: f64, limit: f64) -> (String, String) {
    let allowed = in_percent(limit);
    let (percent, most) = (share * 100.0, limit * 100.0);
    // The limit too is known only as it is printed, so that these texts have to differ.
    let number = |text: &str| text.trim_end_matches(" %").parse::<f64>().ok();
    let hides = |text: &str| percent != most && number(text) == number(&allowed);
    let precise = (3..=DIGITS_MAX).map(|count| format!("{} %", digits(percent, count)));
    let mut texts = std::iter::once(format_percent(share)).chain(precise);
    let text = texts
        .find(|text| !hides(text))
        .unwrap_or_else(|| match percent > most {
            true => format!("just above {allowed}"),
            false => format!("just below {allowed}"),
        });
    (text, allowed)
}

/// `20 %`, `0.01 %`, also for shares below a tenth of a percent.
pub(crate) fn in_percent(share: f64) -> String {
    match share > 0.0 && share < 0.000_95 {
        true => format!("{} %", significant(share * 100.0)),
        false => format_percent(share),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_of_the_limit_is_seen() {
        let cases = [
            (0.098, 0.1, "9.8 % (10 % allowed)"),
            (0.31, 0.2, "31 % (20 % allowed)"),
            (0.1, 0.1, "10 % (10 % allowed)"),
            (0.104, 0.1, "10.4 % (10 % allowed)"),
            (0.100_4, 0.1, "10.04 % (10 % allowed)"),
            (0.099_96, 0.1, "9.996 % (10 % allowed)"),
            (0.199_6, 0.2, "19.96 % (20 % allowed)"),
            (0.1 + 1e-9, 0.1, "just above 10 % (10 % allowed)"),
            (0.1 - 1e-9, 0.1, "just below 10 % (10 % allowed)"),
            (0.0, 0.0001, "0.0 % (0.0100 % allowed)"),
        ];
        for (share, limit, expected) in cases {
            let (text, allowed) = beside_limit(share, limit);
            assert_eq!(format!("{text} ({allowed} allowed)"), expected);
        }
    }
}
