//! The sentence of a claim: a head, then labelled lists.

use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_analysis::claim::{Claim, Point, Quantity};
use iolab_analysis::timeline::Access;
use iolab_workload::quantity::{counted, format_bytes, format_ns, format_percent, significant};
use iolab_workload::response::Response;
use iolab_workload::trial_description::requests_in_words;

use super::limit::beside_limit;
use super::{cell, doubts, held_in_words, with_cell, with_held};
use crate::ratio::RatioShown;

/// Most points of a list.
const NAMED_MAX: usize = 6;

/// Items that share a label.
pub(super) struct List {
    pub(super) label: String,
    pub(super) items: Vec<String>,
}

/// `Head. Lower: 4 KiB; 64 KiB; and 2 more. Cannot tell (other traffic): 1 MiB.` At most `named` items of
/// each list appear; empty lists are left out.
pub(super) fn sentence(head: &str, lists: impl IntoIterator<Item = List>, named: usize) -> String {
    let lists = lists.into_iter().filter(|list| !list.items.is_empty());
    let lists = lists.map(|List { label, mut items }| {
        items.dedup();
        let more = items.len().saturating_sub(named);
        items.truncate(named);
        items.retain(|item| !item.is_empty());
        match (items.is_empty(), more) {
            (true, _) => label,
            (false, 0) => format!("{label}: {}", items.join("; ")),
            (false, more) => format!("{label}: {}; and {more} more", items.join("; ")),
        }
    });
    let parts = std::iter::once(head.to_owned()).chain(lists);
    let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
    parts.join(". ") + "."
}

/// The sentence of a claim whose kind has a head: that, its points by their standing, and the advice.
pub(super) fn of_points(claim: &Claim, run: &Analysis, runs: &[&Analysis]) -> String {
    let kind = claim.kind;
    let lists = kind.labels.iter().map(|(standing, label)| List {
        label: (*label).to_owned(),
        items: claim.of(*standing).map(|point| item(point, runs)).collect(),
    });
    let said = sentence(&head(claim, run, runs), lists, NAMED_MAX);
    let said = match claim.doubts.as_slice() {
        [] => said,
        all => format!(
            "Cannot tell whether these are the storage's own numbers: {}. {said}",
            doubts(all)
        ),
    };
    match kind.advice {
        "" => said,
        advice => format!("{said} {advice}"),
    }
}

/// The head of a kind with the values of a claim in the places of their names.
fn head(claim: &Claim, run: &Analysis, runs: &[&Analysis]) -> String {
    let mut parts = claim.kind.head.split(['{', '}']);
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

fn named(name: &str, claim: &Claim, run: &Analysis, runs: &[&Analysis]) -> String {
    let first = claim.cells.first().copied();
    let of_first = first.and_then(|id| cell(runs, id));
    let ratio = claim.ratio.as_ref();
    match name {
        "at" => with_held(&claim.held, of_first),
        "accesses_on" => accesses_on(&claim.held, of_first),
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
        "latency" => {
            let latency = run.timed.subject("latency");
            match &run.response_group {
                Some(group) => format!("{group}'s {latency}"),
                None => latency,
            }
        }
        "time" => run.timed.subject("Median response time"),
        "moved" => ratio.map_or_else(String::new, |ratio| moved(ratio.ratio)),
        "times" => ratio.map_or_else(String::new, |ratio| times(ratio.ratio)),
        "range" => ratio
            .and_then(|ratio| Some((times(ratio.ratio), ratio.interval?)))
            // Both ends of an interval that is narrower than the digits would repeat the value.
            .filter(|(text, (low, high))| [low, high].iter().any(|end| times(**end) != *text))
            .map_or_else(String::new, |(_, (low, high))| {
                format!(" ({} to {})", significant(low), times(high))
            }),
        "factor" => {
            let shown = ratio.zip(claim.points.first()).zip(claim.points.get(1));
            shown.map_or_else(String::new, |((ratio, base), other)| {
                RatioShown::beside(ratio, (base.value, other.value)).in_words()
            })
        }
        number => {
            let place: Option<usize> = number.parse().ok();
            let point = place.and_then(|place| claim.points.get(place));
            point.map_or_else(String::new, |point| item(point, runs))
        }
    }
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
fn item(point: &Point, runs: &[&Analysis]) -> String {
    let value = point.value;
    let count = |number: f64, one: &str| match number.fract() == 0.0 {
        true => counted(number as u64, one),
        false => format!("{} {one}s", significant(number)),
    };
    let text = match (point.quantity, point.of) {
        (Quantity::Of(Response::P99), _) => format!("p99 {}", format_ns(value)),
        (Quantity::Of(response), _) => {
            let text = response.format(value);
            let ends = point
                .interval
                .map(|(low, high)| [low, high].map(|end| response.format(end)));
            // Of an interval that is narrower than the digits, both ends would repeat the value.
            match ends.filter(|ends| ends.iter().any(|end| *end != text)) {
                Some([low, high]) => format!("{text} ({low} to {high})"),
                None => text,
            }
        }
        (Quantity::Rate, _) => format!("{}/s", significant(value)),
        (Quantity::Bytes, _) => format_bytes(value.round()),
        (Quantity::Times, _) => times(value),
        (Quantity::Share, None) => format_percent(value),
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

/// Verb for these bytes.
pub(in crate::findings) fn done(of: Access) -> &'static str {
    match of {
        Access::Writes => "written",
        Access::Reads => "read",
    }
}
