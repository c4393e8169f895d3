//! Requests that were asked to be served at once, and were not.

use super::{Finding, Rule, Says, cells_of, within};
use iolab_analysis::analysis::{
    Analysis, CellAnalysis, Concurrency, Flag, Relief, Response, Shortfall,
};
use iolab_workload::quantity::{format_percent, significant};
use iolab_workload::settings::cell_label;
use iolab_workload::trial::{Backend, Descriptors};

pub(crate) const SERIALISED: Rule = Rule::result(
    "serialised",
    "the requests in flight, by Little's law, and those at the device, by its counters",
);
pub(crate) const QUEUED: Rule = Rule::result(
    "queued",
    "the IOPS of each cell over those of the cell with one request at a time (the utilisation law)",
);
pub(crate) const EXCEEDS_CEILING: Rule = Rule::doubt(
    "exceeds-ceiling",
    "the median of each cell over the ceiling of its kind",
);

/// What is said of a run, in this order.
pub(crate) const SAYS: &[Says] = &[concurrency, queued, exceeds_ceiling];

/// Cells with fewer requests in flight than asked for, and cells whose requests waited for each other before the device.
pub fn concurrency(analysis: &Analysis) -> Vec<Finding> {
    let few = too_few(
        analysis,
        Shortfall::Issued,
        |c| c.in_flight,
        |cell, n| {
            let asked = cell.cell.trial().in_flight();
            format!(
                "{} of {asked} requests in flight. {}",
                significant(n),
                why_few(cell)
            )
        },
    );
    let serialised = too_few(analysis, Shortfall::ReachedDevice, reached, |cell, n| {
        let asked = cell.cell.trial().in_flight();
        format!(
            "{} of {asked} requests at the device. {}",
            significant(n),
            why_serialised(analysis, cell)
        )
    });
    [few, serialised].into_iter().flatten().collect()
}

/// Where an experiment asks for a time, which grows with the queue: what the requests in flight gained. Of throughput and IOPS the
/// finding about scaling tells.
pub fn queued(analysis: &Analysis) -> Vec<Finding> {
    if !analysis.response.is_time() {
        return Vec::new();
    }
    let gains = analysis.cells.iter().filter_map(|cell| {
        let concurrency = cell.concurrency?;
        let asked = concurrency.asked as f64;
        let served = concurrency.served?;
        let is_queued = concurrency.shortfall.is_none() && asked > 1.0 && served < 0.5 * asked;
        is_queued.then_some((cell, concurrency.asked, served))
    });
    let worst = gains.min_by(|a, b| (a.2 / a.1 as f64).total_cmp(&(b.2 / b.1 as f64)));
    let Some((cell, asked, served)) = worst else {
        return Vec::new();
    };
    QUEUED.one(format!(
        "{asked} requests in flight give {} times the IOPS of one ({}){}.",
        significant(served),
        cell_label(&analysis.factors, &cell.cell.levels),
        match served {
            below if below < 0.8 => "",
            one if one < 1.25 =>
                ": the storage serves them one after the other, or is at its limit",
            _ => ": the storage is at its limit",
        },
    ))
}

/// What shows how few requests reached the device at once.
fn reached(concurrency: Concurrency) -> Option<f64> {
    concurrency.at_device.or(concurrency.served)
}

/// The sentence about the cells with a shortfall; `of` is what there was too little of, and `words` says it of the worst cell.
fn too_few(
    analysis: &Analysis,
    shortfall: Shortfall,
    of: fn(Concurrency) -> Option<f64>,
    words: impl Fn(&CellAnalysis, f64) -> String,
) -> Option<Finding> {
    let short = analysis.cells.iter().filter_map(|cell| {
        let concurrency = cell.concurrency?;
        let n = of(concurrency)?;
        let share = n / concurrency.asked as f64;
        (concurrency.shortfall == Some(shortfall)).then_some((cell, n, share))
    });
    let short: Vec<(&CellAnalysis, f64, f64)> = short.collect();
    let (worst, n, _) = short.iter().min_by(|a, b| a.2.total_cmp(&b.2))?;
    let place = match analysis.factors.is_empty() {
        true => String::new(),
        false => format!(" at {}", cell_label(&analysis.factors, &worst.cell.levels)),
    };
    let text = format!(
        "Concurrency was lower than requested in {}; lowest{place}: {}",
        within(short.len(), analysis),
        words(worst, *n),
    );
    Some(Finding {
        rule: SERIALISED,
        text,
    })
}

/// Why the threads had fewer requests in flight than they were to have.
fn why_few(cell: &CellAnalysis) -> String {
    let trial = cell.cell.trial();
    let blocks = trial.region / trial.bs.max(1);
    match blocks < trial.in_flight() {
        true => format!(
            "The region holds {blocks} requests of this size: a larger region (--size) or fewer threads times depth."
        ),
        false => "The threads did not issue them in time, or the trials had too few requests: increase --time."
            .to_owned(),
    }
}

/// What the evidence says of the cause.
fn why_serialised(analysis: &Analysis, cell: &CellAnalysis) -> String {
    if let Some(Relief {
        factor,
        level,
        iops,
    }) = cell.concurrency.and_then(|c| c.relief)
    {
        let what = match factor {
            "layout" => "a lock of the file that they share",
            "descriptors" => "the descriptor that they share, with its one position",
            _ => "the seek before each transfer",
        };
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
    let at_device = cell.concurrency.and_then(|c| c.at_device);
    if let Some((at_device, most)) = at_device.zip(analysis.requests_max)
        && at_device > 0.8 * most
    {
        return format!(
            "The queue of the device holds {} requests at most (nr_requests), and was full.",
            significant(most)
        );
    }
    if trial.writes() && trial.sync.is_per_write() {
        return "Each write waits until it is durable; file systems and devices do that one write at a time.".to_owned();
    }
    "They waited before they reached the device; 'iolab run why-serialised' isolates the cause."
        .to_owned()
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
        cell_label(&analysis.factors, &worst.cell.levels),
    );
    EXCEEDS_CEILING.one(text)
}
