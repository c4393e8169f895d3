//! The status of a run: whether it was performed, on which target, and whether its trials failed.

use iolab_analysis::analysis::{Analysis, CellAnalysis, CellServed, Flag};
use iolab_record::{EndedBy, RunStatus, ServedBy, TargetKind};

use super::{Finding, Rule, Says, cells_of, has, within};

pub(crate) const UNFINISHED: Rule = Rule::limit(
    "unfinished",
    "the status of the run, and the cells without a measured trial",
);
pub(crate) const MODEL: Rule = Rule::limit("model", "the target of the run");
pub(crate) const NOT_THE_DEVICE: Rule = Rule::limit(
    "not-the-device",
    "the accounts of the process, the device and the page cache, for each trial",
);
pub(crate) const NETWORK: Rule = Rule::limit(
    "network",
    "the account of the NFS client (mountstats), for each trial",
);
pub(crate) const FAILED_TRIALS: Rule = Rule::doubt("failed-trials", "what each trial ended with");

pub(crate) const DEFINITION: Rule = Rule::doubt(
    "definition-not-read",
    "the definition of the experiment that the run file contains",
);

pub(crate) const READS_AFTER_WRITES: Rule = Rule::doubt(
    "reads-after-writes",
    "the sync policy of cells that write, the cells that only read, and the volatile cache of the device",
);

pub(crate) const ORDER_OF_CELLS: Rule =
    Rule::doubt("order-of-cells", "the warm-up, and the cells that write");

/// First findings: how far the run got.
pub(crate) const STATUS: &[Says] = &[
    unfinished, no_definition, order_of_cells, reads_after_writes,
];

/// Findings on the origin of the bytes.
pub(crate) const ORIGIN: &[Says] = &[a_model, not_the_device, over_the_network];

/// Last findings: trials that failed.
pub(crate) const FAILURES: &[Says] = &[failed_trials];

/// The plan was not carried out.
pub fn unfinished(analysis: &Analysis) -> Vec<Finding> {
    let without = analysis.cells.iter().filter(|c| c.n == 0).count();
    let text = match analysis.status {
        RunStatus::Done => return Vec::new(),
        RunStatus::Running => "The run was cut off or is still in progress",
        RunStatus::Interrupted if is_by_user(analysis) => "The user ended the run",
        RunStatus::Interrupted => "The run was interrupted",
        RunStatus::Failed => "The run failed",
    };
    if without == analysis.cells.len() {
        return UNFINISHED.one(format!("{text}: no cell has a measured trial."));
    }
    let has_interval = |cell: &CellAnalysis| {
        cell.response
            .is_some_and(|response| response.median_interval.is_some())
    };
    let doubt = match is_by_user(analysis) && analysis.cells.iter().any(has_interval) {
        true => {
            " If the values shown were the reason, the 95 % intervals contain the median less often than in 95 % of runs."
        }
        false => "",
    };
    let lacking = match without {
        0 => "each cell has at least one measured trial".to_owned(),
        _ => format!(
            "{} {} no measured trial",
            within(without, analysis),
            has(without)
        ),
    };
    let rest = "The results cover the trials completed so far.";
    let text = format!("{text}: {lacking}. {rest}{doubt}");
    UNFINISHED.one(text)
}

/// The purpose of the run is unknown.
pub(super) fn no_definition(analysis: &Analysis) -> Vec<Finding> {
    match analysis.has_definition {
        true => Vec::new(),
        false => {
            // With one trial per cell, no number is based on blocks.
            let assumed = match analysis.cells.iter().any(|cell| cell.n > 1) {
                true => " The numbers assume blocks of trials in random order.",
                false => "",
            };
            DEFINITION.one(format!(
                "The definition of the experiment in this run file cannot be read; another version of iolab may have written it. Not judged: causes, steady states, tests of a standard, the order of trials.{assumed} 'iolab show' prints it."
            ))
        }
    }
}

/// Cells depend on what earlier cells left.
pub(super) fn order_of_cells(analysis: &Analysis) -> Vec<Finding> {
    match analysis.depends_on_order {
        false => Vec::new(),
        true => ORDER_OF_CELLS.one(
            "Cells use the same storage one after the other, without a warm-up: what one leaves there (a full cache, heat, used-up burst credits) the next one finds. Differences between these cells may come from their order. Measure one cell per run."
                .to_owned(),
        ),
    }
}

/// Cells that read while the storage may be writing what other cells left.
pub(super) fn reads_after_writes(analysis: &Analysis) -> Vec<Finding> {
    match analysis.reads_after_writes() {
        0 => Vec::new(),
        n => {
            // A standard prescribes which trials follow each other.
            let advice = match (analysis.standard.is_some(), analysis.target_kind) {
                (true, _) => "",
                (false, TargetKind::Imported) => " Jobs that end with a sync leave nothing there.",
                (false, _) => " Measure again: this version writes that out between trials.",
            };
            READS_AFTER_WRITES.one(format!(
                "Other cells write without a sync. During the reads of {}, the storage may still write what these left in its cache; then reads look slower than they are.{advice}",
                within(n, analysis)
            ))
        }
    }
}

/// Whether the user has ended the repetition of a cell.
pub(crate) fn is_by_user(analysis: &Analysis) -> bool {
    let mut cells = analysis.cells.iter();
    cells.any(|cell| cell.cell.ended_by == Some(EndedBy::User))
}

/// A modelled disk was measured, and no device.
pub fn a_model(analysis: &Analysis) -> Vec<Finding> {
    let Some(title) = &analysis.model else {
        return Vec::new();
    };
    let title = match title.as_str() {
        "" => String::new(),
        title => format!(" ({title})"),
    };
    MODEL.one(format!(
        "All numbers come from {}{title}, computed in virtual time. No device was measured.",
        analysis.target
    ))
}

/// Cells whose bytes the device did not carry completely, although they ask for it, so that their numbers are
/// not the device's.
pub fn not_the_device(analysis: &Analysis) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (verdict, what) in [
        (
            ServedBy::NotStorage,
            "used no storage: these numbers say nothing about a disk",
        ),
        (
            ServedBy::Hole,
            "came from data that was never written, at least in part: memory answers such reads",
        ),
        (
            ServedBy::PageCache,
            "came from the page cache, not the device",
        ),
        (
            ServedBy::Mixed,
            "came only partly from the device: these numbers mix it with other sources",
        ),
        (
            ServedBy::Unknown,
            "came from an unknown source, which may not be the device",
        ),
    ] {
        let has = |c: &&CellAnalysis| {
            !c.is_as_asked() && c.served.as_ref().and_then(told) == Some(verdict)
        };
        let cells: Vec<&CellAnalysis> = analysis.cells.iter().filter(has).collect();
        let Some(first) = cells.first().and_then(|c| c.served.as_ref()) else {
            continue;
        };
        let reason = if first.unanimous() == Some(verdict) && !first.reason.is_empty() {
            format!(" ({})", first.reason)
        } else {
            String::new()
        };
        let which = cells_of(cells.len(), analysis);
        findings.push(Finding {
            rule: NOT_THE_DEVICE,
            text: format!("{which} {what}{reason}."),
        });
    }
    findings
}

/// The source that a finding names for a cell whose trials may have several. Each cell is counted once, by its
/// worst source.
fn told(served: &CellServed) -> Option<ServedBy> {
    let ranked = [
        ServedBy::NotStorage,
        ServedBy::Hole,
        ServedBy::Mixed,
        ServedBy::PageCache,
        ServedBy::Unknown,
    ];
    let worst = ranked.into_iter().find(|verdict| served.any(*verdict))?;
    match worst {
        // Other trials of the cell had another source.
        ServedBy::PageCache if served.unanimous().is_none() => Some(ServedBy::Mixed),
        _ => Some(worst),
    }
}

/// Cells that a file server served. A client does not see how much of that came from the server's disks.
pub(super) fn over_the_network(analysis: &Analysis) -> Vec<Finding> {
    let served = analysis.cells.iter().filter(|cell| {
        let verdict = cell.served.as_ref().and_then(CellServed::unanimous);
        verdict == Some(ServedBy::Network)
    });
    match served.count() {
        0 => Vec::new(),
        n => NETWORK.one(format!(
            "A file server over the network served {}, perhaps from its memory: only regions larger than that show its disks.",
            within(n, analysis)
        )),
    }
}

/// Cells in which a trial failed.
pub fn failed_trials(analysis: &Analysis) -> Vec<Finding> {
    let cells = analysis
        .cells
        .iter()
        .filter(|c| c.flags.contains(&Flag::Errors));
    match cells.count() {
        0 => Vec::new(),
        n => FAILED_TRIALS.one(format!(
            "{} had a failed trial; failed trials are stored but excluded.",
            cells_of(n, analysis)
        )),
    }
}
