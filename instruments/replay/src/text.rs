//! The answer of replays as text.

use std::time::Duration;

use iolab_report::layout::{Column, none, text as table, wrapped};
use iolab_workload::escape_control::escape_control;
use iolab_workload::quantity::{
    counted, exact_size, format_bytes, format_ns, format_percent, significant,
};
use iolab_workload::units::rough_duration;

use crate::answer::{Answer, Cell, Comparison, Quantity, Trial};
use crate::certificate::{Broken, Certificate};

/// Names that a line of text has room for.
const NAME_MAX: usize = 40;

/// The answer, for a terminal of `width` columns.
pub fn text(answer: &Answer, width: u16) -> String {
    let mut all = wrapped(&format!("{}\n\n", head(answer)), width);
    all += &table(certificates(answer), width);
    if answer.cells.iter().any(|cell| !cell.quantities.is_empty()) {
        all += &format!("\n{}", table(results(answer), width));
    }
    let sentences = sentences(answer);
    if !sentences.is_empty() {
        all += &format!("\n{}\n", wrapped(&sentences.join("\n"), width));
    }
    all
}

fn head(answer: &Answer) -> String {
    let span = Duration::from_nanos(answer.span_ns);
    let span = match span.as_secs() {
        0 => format_ns(answer.span_ns as f64),
        _ => rough_duration(span),
    };
    let writes = answer.writes as f64 / answer.requests as f64;
    let rate = answer.requests as f64 * 1e9 / answer.span_ns.max(1) as f64;
    format!(
        "{} ({}): {} in {span}, {} writes, {} requests/s, median gap {}.",
        escape_control(&answer.trace),
        answer.format,
        counted(answer.requests, "request"),
        format_percent(writes),
        significant(rate),
        format_ns(answer.median_gap_ns as f64),
    )
}

/// Target and speed of these cells.
fn places(cells: &[&Cell]) -> Vec<Column> {
    let of = |value: fn(&Cell) -> String| cells.iter().map(|cell| value(cell)).collect::<Vec<_>>();
    vec![
        Column::new("target", 0, of(|cell| shortened(&cell.target))).left(),
        Column::new("speed", 0, of(|cell| cell.speed.clone())),
    ]
}

fn certificates(answer: &Answer) -> Vec<Column> {
    let cells: Vec<&Cell> = answer.cells.iter().collect();
    let kept = cells.iter().map(|cell| match cell.latest {
        Some(_) => format!("{} of {}", cell.kept, cell.replays),
        None => none(),
    });
    let certified = |value: fn(&Certificate) -> String| {
        let each = cells.iter();
        let each = each.map(|cell| cell.latest.as_ref().map_or_else(none, value));
        each.collect::<Vec<_>>()
    };
    let mut columns = places(&cells);
    columns.extend([
        Column::new("certificates kept", 0, kept),
        Column::new(
            "late p99",
            1,
            certified(|own| format_ns(own.lateness.p99_ns as f64)),
        ),
        Column::new(
            "allowed",
            2,
            certified(|own| format_ns(own.limit_ns as f64)),
        ),
        Column::new(
            "latest",
            3,
            certified(|own| format_ns(own.lateness.max_ns as f64)),
        ),
        Column::new("in order", 4, certified(|own| format_percent(own.in_order))),
        Column::new(
            "gaps differ by",
            5,
            certified(|own| format!("{:.3}", own.gap_distance)),
        ),
    ]);
    columns
}

fn results(answer: &Answer) -> Vec<Column> {
    let cells = answer
        .cells
        .iter()
        .filter(|cell| !cell.quantities.is_empty());
    let cells: Vec<&Cell> = cells.collect();
    let mut columns = places(&cells);
    let mut seen: Vec<&str> = Vec::new();
    for quantity in cells.iter().flat_map(|cell| &cell.quantities) {
        if seen.contains(&quantity.name) {
            continue;
        }
        seen.push(quantity.name);
        let value = |cell: &&Cell| {
            let mut own = cell.quantities.iter();
            let found = own.find(|own| own.name == quantity.name);
            found.map_or_else(none, in_words)
        };
        let dispensable = if quantity.name.ends_with("p50") { 2 } else { 1 };
        columns.push(Column::new(
            quantity.name,
            dispensable,
            cells.iter().map(value),
        ));
    }
    let served = cells.iter().map(|cell| cell.served_by.join(", "));
    columns.push(Column::new("bytes from", 3, served).left());
    columns
}

/// The end of a long name, where names differ.
fn shortened(name: &str) -> String {
    let name = escape_control(name);
    let count = name.chars().count();
    match count > NAME_MAX {
        true => format!(
            "…{}",
            name.chars().skip(count - NAME_MAX).collect::<String>()
        ),
        false => name.into_owned(),
    }
}

fn in_words(quantity: &Quantity) -> String {
    let value = |value: f64| match quantity.is_time {
        true => format_ns(value),
        false => significant(value),
    };
    let interval = quantity.low.zip(quantity.high);
    match interval.filter(|(low, high)| low < high) {
        Some((low, high)) => format!(
            "{} ({} to {})",
            value(quantity.median),
            value(low),
            value(high)
        ),
        None => value(quantity.median),
    }
}

fn sentences(answer: &Answer) -> Vec<String> {
    let broken = answer.cells.iter().filter(|cell| !cell.is_kept());
    let mut all: Vec<String> = broken.map(cannot_tell).collect();
    all.extend(answer.comparisons.iter().filter_map(compared));
    let mut seen: Vec<&str> = Vec::new();
    for trial in &answer.trials {
        if !seen.contains(&trial.target.as_str()) {
            seen.push(&trial.target);
            all.extend(changed(trial));
        }
    }
    let lacks_interval = |cell: &Cell| cell.is_kept() && cell.replays < 6;
    if answer.cells.iter().any(lacks_interval) {
        all.push("Intervals take 6 replays of a cell: give more time with --budget.".to_owned());
    }
    all
}

/// Why a cell has no result.
fn cannot_tell(cell: &Cell) -> String {
    let Some(certificate) = &cell.latest else {
        return String::new();
    };
    let reasons = cell
        .broken
        .iter()
        .map(|broken| reason(*broken, certificate));
    let reasons: Vec<String> = reasons.collect();
    let remedy = match cell.broken.first() {
        Some(Broken::FullQueue) => "Choose a slower --speed or a greater --depth.",
        _ => "Choose a slower --speed, or a faster client that does nothing else.",
    };
    format!(
        "Cannot tell how {} answers the trace at {}: {}. {remedy}",
        escape_control(&cell.target),
        cell.speed,
        reasons.join("; ")
    )
}

fn reason(broken: Broken, certificate: &Certificate) -> String {
    let late = || {
        let windows = match certificate.windows {
            1 => String::new(),
            all => format!(
                ", and {} of {all} windows were late",
                certificate.late_windows
            ),
        };
        format!(
            "(p99 of lateness {}, allowed {}{windows})",
            format_ns(certificate.lateness.p99_ns as f64),
            format_ns(certificate.limit_ns as f64)
        )
    };
    match broken {
        Broken::LateClient => format!("the client issued requests late {}", late()),
        Broken::FullQueue => format!("requests waited because all slots were taken {}", late()),
        Broken::Order => format!(
            "only {} of the requests were issued in order",
            format_percent(certificate.in_order)
        ),
        Broken::Gaps => format!(
            "the gaps between requests differ from the trace's (distance {:.3}, allowed 0.05)",
            certificate.gap_distance
        ),
    }
}

/// A difference of two targets; `None` where the interval says nothing.
fn compared(comparison: &Comparison) -> Option<String> {
    let (low, high) = comparison.low.zip(comparison.high)?;
    let (kind, quantile) = comparison.quantity.split_once(' ')?;
    let what = format!("{kind}s ({quantile}) at {}", comparison.speed);
    let names = [&comparison.base, &comparison.other].map(|name| escape_control(name));
    let [base, other] = names;
    let (word, ratio, ends) = match (low > 1.0, high < 1.0) {
        (true, _) => ("slower", comparison.ratio, (low, high)),
        (_, true) => ("faster", 1.0 / comparison.ratio, (1.0 / high, 1.0 / low)),
        _ => {
            return Some(format!(
                "{what}: no difference shown between {base} and {other} (ratio {} to {}).",
                significant(low),
                significant(high)
            ));
        }
    };
    Some(format!(
        "{what}: {other} is {}× {word} than {base} ({} to {}×).",
        significant(ratio),
        significant(ends.0),
        significant(ends.1)
    ))
}

/// How the requests were changed for a target.
fn changed(trial: &Trial) -> Option<String> {
    let changed = trial.changed;
    let share = |count: u64, what: &str| {
        let share = format_percent(count as f64 / changed.requests.max(1) as f64);
        (count > 0).then(|| format!("{share} {what}"))
    };
    let region = format_bytes(trial.region_bytes as f64);
    let parts = [
        share(changed.wrapped, &format!("were wrapped into its {region}")),
        share(changed.scaled, &format!("were scaled to its {region}")),
        share(changed.dropped, "were left out"),
        share(
            changed.rounded,
            &format!(
                "were rounded to blocks of {}",
                exact_size(trial.block_bytes)
            ),
        ),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let target = escape_control(&trial.target);
    (!parts.is_empty()).then(|| format!("Requests to {target}: {}.", parts.join(", ")))
}
