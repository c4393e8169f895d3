//! Requests that were asked to be served at once, and were not.

use super::{Finding, Rule, Says, cells_of, within};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Flag, Response};
use iolab_plan::cells::label;
use iolab_spec::quantity::{format_percent, significant};
use iolab_spec::trial::{Backend, Descriptors};

pub(crate) const SERIALISED: Rule = Rule::result(
    "serialised",
    "how many requests were in service at once, by Little's law from the sum of their times",
);
pub(crate) const EXCEEDS_CEILING: Rule = Rule::doubt(
    "exceeds-ceiling",
    "the median of each cell over the ceiling of its kind",
);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[Says::OfCells(serialised), Says::OfCells(exceeds_ceiling)];

/// What can make threads wait for each other, and the level that takes it away.
const REMEDIES: [(&str, &str, &str); 3] = [
    ("layout", "private", "a lock of the file that they share"),
    (
        "descriptors",
        "private",
        "the descriptor that they share, with its one position",
    ),
    ("backend", "psync", "the seek before each transfer"),
];
/// A sibling that is this many times as fast shows what the threads waited for.
const FASTER: f64 = 1.5;

/// Cells whose requests were served one after the other, and what the evidence names as the cause.
pub fn serialised(analysis: &Analysis) -> Vec<Finding> {
    let flagged = analysis
        .cells
        .iter()
        .filter(|c| c.flags.contains(&Flag::Serialised));
    let share = |cell: &CellAnalysis| {
        let concurrency = cell.concurrency?;
        Some(concurrency.achieved?.0 / concurrency.asked as f64)
    };
    let mut cells: Vec<&CellAnalysis> = flagged.collect();
    cells.sort_by(|a, b| share(a).unwrap_or(1.0).total_cmp(&share(b).unwrap_or(1.0)));
    let Some((worst, concurrency)) = cells.first().and_then(|c| Some((c, c.concurrency?))) else {
        return Vec::new();
    };
    let place = match analysis.factors.is_empty() {
        true => String::new(),
        false => format!(" at {}", label(&analysis.factors, &worst.cell.levels)),
    };
    let achieved = concurrency.achieved.map_or(0.0, |(n, _)| n);
    let text = format!(
        "Concurrency was lower than requested in {}; lowest{place}: {} of {} requests in flight. {}",
        within(cells.len(), analysis),
        significant(achieved),
        concurrency.asked,
        cause(analysis, worst),
    );
    SERIALISED.one(text)
}

/// What the evidence says of the cause.
fn cause(analysis: &Analysis, cell: &CellAnalysis) -> String {
    if let Some((factor, level, what, iops)) = sibling(analysis, cell) {
        return format!(
            "The threads wait for {what}: with {factor}={level} the same threads reach {} IOPS.",
            significant(iops)
        );
    }
    let trial = cell.cell.trial();
    if trial.backend == Backend::Sync && trial.descriptors == Descriptors::Shared {
        return "lseek and read on one descriptor need a lock around both, since all threads share its position: use pread (backend=psync), or a descriptor per thread.".to_owned();
    }
    if cell.flags.contains(&Flag::ToolBound) || cell.disturbance.is_cpu_contended() {
        return "The CPUs were the limit (see the flags): more threads cannot help there."
            .to_owned();
    }
    let concurrency = cell.concurrency;
    if let Some((in_flight, most)) = concurrency
        .and_then(|c| c.in_flight)
        .zip(analysis.requests_max)
        && in_flight > 0.8 * most
    {
        return format!(
            "The queue of the device holds {} requests at most (nr_requests), and was full.",
            significant(most)
        );
    }
    if trial.writes() && trial.sync.is_per_write() {
        return "Each write waits until it is durable; file systems and devices do that one write at a time.".to_owned();
    }
    if concurrency.is_some_and(|c| c.in_flight.is_some()) {
        return "They waited before they reached the device; 'iolab run why-serialised' isolates the cause.".to_owned();
    }
    "The evidence does not show whether they waited for something or the storage was at its limit; 'iolab run why-serialised' isolates the cause.".to_owned()
}

/// A cell that differs in one suspect alone and is much faster: the factor, its level, the suspect, and its IOPS.
fn sibling(
    analysis: &Analysis,
    cell: &CellAnalysis,
) -> Option<(&'static str, &'static str, &'static str, f64)> {
    let own = cell.iops?.median;
    REMEDIES.into_iter().find_map(|(factor, level, what)| {
        let place = analysis.factors.iter().position(|name| name == factor)?;
        let mut levels = cell.cell.levels.clone();
        if *levels.get(place)? == level {
            return None;
        }
        levels[place] = level.to_owned();
        let other = analysis.cells.iter().find(|c| c.cell.levels == levels)?;
        let iops = other.iops?.median;
        (iops > FASTER * own).then_some((factor, level, what, iops))
    })
}

/// Cells above a ceiling for which the evidence has no reason.
pub fn exceeds_ceiling(analysis: &Analysis) -> Vec<Finding> {
    let flagged = analysis
        .cells
        .iter()
        .filter(|c| c.flags.contains(&Flag::ExceedsCeiling));
    let with = |c: &'_ CellAnalysis| c.efficiency.map(|e| e.share).unwrap_or(0.0);
    let cells: Vec<&CellAnalysis> = flagged.collect();
    let worst = cells.iter().max_by(|a, b| with(a).total_cmp(&with(b)));
    let Some((worst, efficiency)) = worst.and_then(|c| Some((c, c.efficiency?))) else {
        return Vec::new();
    };
    let unit = if efficiency.is_iops {
        Response::Iops
    } else {
        Response::Throughput
    };
    let text = format!(
        "{} lie above their ceiling, by up to {} of the {} {} ceiling of {} ({}), and the evidence does not show why. Either the ceiling is wrong (a burst, another device, a cache behind the device), or the bytes did not come from the device.",
        cells_of(cells.len(), analysis),
        format_percent(efficiency.share),
        efficiency.source,
        if efficiency.is_iops {
            "IOPS"
        } else {
            "throughput"
        },
        unit.format(efficiency.ceiling),
        label(&analysis.factors, &worst.cell.levels),
    );
    EXCEEDS_CEILING.one(text)
}
