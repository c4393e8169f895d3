//! The answer of replays as text.

use std::time::Duration;

use iolab_report::layout::{Column, none, text as table, wrapped};
use iolab_stats::mean;
use iolab_workload::escape_control::escape_control;
use iolab_workload::units::{
    counted, exact_size, format_bytes, format_ns, format_percent, rough_duration, significant,
};

use crate::answer::{Answer, CONFIDENCE, Cell, Comparison, Quantity, Trial, distinct};
use crate::certificate::{Broken, Certificate};

/// The program whose answer this is.
const OWN: &str = "iolab";
/// Names that a line of text has room for.
const NAME_MAX: usize = 40;

/// The answer, for a terminal of `width` columns.
pub fn text(answer: &Answer, width: u16) -> String {
    let mut all = wrapped(&format!("{}\n\n", head(answer)), width);
    let own: Vec<&Cell> = answer
        .cells
        .iter()
        .filter(|cell| cell.tool == OWN)
        .collect();
    let rows: Vec<_> = own
        .iter()
        .map(|cell| (*cell, cell.kept, cell.latest.as_ref()))
        .collect();
    let mut columns = places(&own);
    columns.extend(certificates(&rows));
    all += &table(columns, width);
    if answer.cells.iter().any(|cell| !cell.quantities.is_empty()) {
        all += &format!("\n{}", table(results(answer), width));
    }
    if let Some(columns) = side_by_side(answer) {
        let heading = "Both programs, by the times at which requests reached the block layer:";
        all += &format!("\n{}{}", wrapped(heading, width), table(columns, width));
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
        0..60 => format_ns(answer.span_ns as f64),
        _ => rough_duration(span),
    };
    let writes = answer.writes as f64 / answer.requests as f64;
    let rate = answer.requests as f64 * 1e9 / answer.span_ns as f64;
    let pace = match answer.span_ns {
        0 => "all at once".to_owned(),
        _ => format!(
            "{} requests/s, median gap {}",
            significant(rate),
            format_ns(answer.median_gap_ns as f64)
        ),
    };
    format!(
        "{} ({}): {} in {span}, {} writes, {pace}.",
        escape_control(&answer.trace),
        answer.format,
        counted(answer.requests, "request"),
        format_percent(writes),
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

fn time(ns: u64) -> String {
    format_ns(ns as f64)
}

/// Certificates of cells, each with the number of replays that kept it.
fn certificates(rows: &[(&Cell, usize, Option<&Certificate>)]) -> Vec<Column> {
    let kept = rows.iter().map(|(cell, kept, own)| match own {
        Some(_) => format!("kept {kept} of {}", cell.replays),
        None => none(),
    });
    let certified = |value: fn(&Certificate) -> String| {
        let each = rows.iter();
        let each = each.map(|(_, _, own)| own.map_or_else(none, value));
        each.collect::<Vec<_>>()
    };
    vec![
        Column::new("certificate", 0, kept),
        Column::new("late p50", 3, certified(|own| time(own.lateness.p50_ns))),
        Column::new("late p99", 1, certified(|own| time(own.lateness.p99_ns))),
        Column::new("allowed", 2, certified(|own| time(own.limit_ns))),
        Column::new("late max", 4, certified(|own| time(own.lateness.max_ns))),
        Column::new("in order", 5, certified(|own| format_percent(own.in_order))),
        Column::new(
            "gap distance",
            6,
            certified(|own| format!("{:.3}", own.gap_distance)),
        ),
        Column::new("in flight (asked)", 7, certified(in_flight)),
    ]
}

/// Mean requests in flight, and the trace's mean in parentheses.
fn in_flight(certificate: &Certificate) -> String {
    let mean = |values: Vec<f64>| mean(&values).map_or_else(none, significant);
    let rows = certificate.depth.iter();
    let done = mean(rows.clone().map(|row| row.done).collect());
    let asked = mean(rows.filter_map(|row| row.asked).collect());
    format!("{done} ({asked})")
}

/// The certificates of both programs, at the block layer.
fn side_by_side(answer: &Answer) -> Option<Vec<Column>> {
    let cells = answer.cells.iter();
    let seen: Vec<_> = cells
        .filter_map(|cell| Some((cell, cell.latest_at_block_layer.as_ref()?)))
        .collect();
    let cells: Vec<&Cell> = seen.iter().map(|(cell, _)| *cell).collect();
    let rows = seen
        .iter()
        .map(|(cell, own)| (*cell, cell.kept_at_block_layer, Some(&own.certificate)));
    let mut columns = places(&cells);
    columns.push(Column::new("program", 0, cells.iter().map(|cell| cell.tool.clone())).left());
    columns.extend(certificates(&rows.collect::<Vec<_>>()));
    columns.push(Column::new(
        "requests seen",
        4,
        seen.iter().map(|(_, own)| format_percent(own.seen)),
    ));
    (!seen.is_empty()).then_some(columns)
}

fn results(answer: &Answer) -> Vec<Column> {
    let cells = answer
        .cells
        .iter()
        .filter(|cell| !cell.quantities.is_empty());
    let cells: Vec<&Cell> = cells.collect();
    let mut columns = places(&cells);
    let quantities = cells.iter().flat_map(|cell| &cell.quantities);
    for name in distinct(quantities.map(|quantity| quantity.name)) {
        let value = |cell: &&Cell| {
            let found = cell.quantities.iter().find(|own| own.name == name);
            found.map_or_else(none, in_words)
        };
        let dispensable = if name.ends_with("p50") { 2 } else { 1 };
        columns.push(Column::new(name, dispensable, cells.iter().map(value)));
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
    for target in distinct(answer.trials.iter().map(|trial| &trial.target)) {
        let first = answer.trials.iter().find(|trial| trial.target == *target);
        all.extend(first.and_then(changed));
    }
    if answer
        .cells
        .iter()
        .any(|cell| cell.latest.is_none() && cell.tool == OWN)
    {
        all.push("A trace does not say which requests waited for others: at the speed max a faster device would have got other requests.".to_owned());
    }
    let compared = answer.comparisons.len() as f64;
    if answer.comparisons.iter().any(|own| own.low.is_none()) {
        // The widest interval of a median, which has all replays, has to hold with this confidence.
        let replays = (2.0 * compared / (1.0 - CONFIDENCE)).log2().ceil();
        all.push(format!(
            "Comparing targets takes {replays} replays of each: see --budget and --blocks."
        ));
    }
    let lacks_interval = |cell: &Cell| !cell.quantities.is_empty() && cell.replays < 6;
    if answer.cells.iter().any(lacks_interval) {
        all.push(
            "A 95 % interval takes 6 replays of a target and speed: see --budget and --blocks."
                .to_owned(),
        );
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
    // Others follow from the first.
    let remedy = cell.broken.first().map_or("", |broken| remedy(*broken));
    format!(
        "Cannot tell how {} answers the trace at {}: {}. {remedy}",
        escape_control(&cell.target),
        cell.speed,
        reasons.join("; ")
    )
}

fn remedy(broken: Broken) -> &'static str {
    match broken {
        Broken::LateClient | Broken::Gaps => {
            "Choose a slower --speed, or a faster client that does nothing else."
        }
        Broken::FullQueue => "Choose a slower --speed or a greater --depth.",
        Broken::Order => "Sort the trace by its time stamps.",
    }
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
            "only {} of its requests are in the order of their stamps",
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
