//! The status of a run: whether it was performed, and whether its trials or other tools failed.

use super::{cells_of, has, levels_of, within};
use iolab_analysis::analysis::{Analysis, CellAnalysis, CellServed, CellStages};
use iolab_analysis::gaps::Gap;
use iolab_record::{EndedBy, RunStatus, ServedBy};
use iolab_workload::escape_control::escape_control;
use iolab_workload::settings::{Tool, own_cells};

/// The plan was not carried out.
pub(super) fn unfinished(analysis: &Analysis) -> Vec<String> {
    let without = analysis.cells.iter().filter(|c| c.n == 0).count();
    let text = match analysis.status {
        RunStatus::Done => return Vec::new(),
        RunStatus::Running => "The run was cut off or is still in progress",
        RunStatus::Interrupted if is_by_user(analysis) => "The user ended the run",
        RunStatus::Interrupted => "The run was interrupted",
        RunStatus::Failed => "The run failed",
    };
    if without == analysis.cells.len() {
        return vec![format!("{text}: no cell has a measured trial.")];
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
    vec![format!("{text}: {lacking}. {rest}{doubt}")]
}

/// The purpose of the run is unknown.
pub(super) fn no_definition(analysis: &Analysis) -> Vec<String> {
    match analysis.has_definition {
        true => Vec::new(),
        false => {
            // With one trial per cell, no number is based on blocks.
            let assumed = match analysis.cells.iter().any(|cell| cell.n > 1) {
                true => " The numbers assume blocks of trials in random order.",
                false => "",
            };
            vec![format!(
                "The definition of the experiment in this run file cannot be read; another version of iolab may have written it. Not judged: causes, steady states, tests of a standard, the order of trials.{assumed} 'iolab show' prints it."
            )]
        }
    }
}

/// Cells depend on what earlier cells left.
pub(super) fn order_of_cells(analysis: &Analysis) -> Vec<String> {
    match analysis.depends_on_order {
        false => Vec::new(),
        true => vec![
            "Cells use the same storage one after the other, without a warm-up: what one leaves there (a full cache, heat, used-up burst credits) the next one finds. Differences between these cells may come from their order. Measure one cell per run."
                .to_owned(),
        ],
    }
}

/// Whether the user has ended the repetition of a cell.
pub(crate) fn is_by_user(analysis: &Analysis) -> bool {
    let mut cells = analysis.cells.iter();
    cells.any(|cell| cell.cell.ended_by == Some(EndedBy::User))
}

/// A modelled disk was measured, and no device.
pub(super) fn a_model(analysis: &Analysis) -> Vec<String> {
    let Some(title) = &analysis.model else {
        return Vec::new();
    };
    let title = match title.as_str() {
        "" => String::new(),
        title => format!(" ({title})"),
    };
    vec![format!(
        "All numbers come from {}{title}, computed in virtual time. No device was measured.",
        analysis.target
    )]
}

/// Cells that a file server served. A client does not see how much of that came from the server's disks.
pub(super) fn over_the_network(analysis: &Analysis) -> Vec<String> {
    let served = analysis.cells.iter().filter(|cell| {
        let verdict = cell.served.as_ref().and_then(CellServed::unanimous);
        verdict == Some(ServedBy::Network)
    });
    match served.count() {
        0 => Vec::new(),
        n => vec![format!(
            "A file server over the network served {}, perhaps from its memory: only regions larger than that show its disks.",
            within(n, analysis)
        )],
    }
}

/// Cells with traced trials whose stages are not known.
pub(super) fn not_joined(analysis: &Analysis) -> Vec<String> {
    let stages = analysis
        .cells
        .iter()
        .filter_map(|cell| cell.stages.as_ref());
    let missing: Vec<&CellStages> = stages
        .filter(|stages| stages.known < stages.traced)
        .collect();
    let Some(reason) = missing.iter().find_map(|stages| stages.note.as_ref()) else {
        return Vec::new();
    };
    vec![format!(
        "{} had traced trials without stages: {}.",
        cells_of(missing.len(), analysis),
        escape_control(reason)
    )]
}

/// The version of each peer and the command line of one of its trials.
pub(super) fn peers(analysis: &Analysis) -> Vec<String> {
    let mut tools: Vec<Tool> = Vec::new();
    let mut texts = Vec::new();
    for cell in &analysis.cells {
        let tool = cell.cell.spec.tool;
        let Some(command) = cell
            .peer_command
            .as_ref()
            .filter(|_| !tools.contains(&tool))
        else {
            continue;
        };
        tools.push(tool);
        let which = levels_of(analysis, cell);
        let which = which.map_or_else(String::new, |which| format!(" ({which})"));
        texts.push(format!(
            "A trial of {tool}{which} was {command} - every trial's own command is in the column 'effective' of iolab export."
        ));
    }
    texts
}

/// Cells that a tool left out, or gave up, with the reason.
pub(super) fn gaps(analysis: &Analysis) -> Vec<String> {
    let all = iolab_analysis::gaps::gaps(analysis);
    let in_words = |gap| gap_in_words(gap, &analysis.factors);
    all.iter().map(in_words).collect()
}

/// `iozone did not measure 2 of its 6 cells (bs=16MiB): its largest record has 16 MiB.`
fn gap_in_words(gap: &Gap<'_>, factors: &[String]) -> String {
    let (tool, why) = (gap.tool, gap.why);
    let [own, rest] = [&gap.cells, &gap.others].map(|cells| {
        let levels = cells.iter().map(|cell| cell.cell.levels.as_slice());
        levels.collect::<Vec<_>>()
    });
    let n = own.len();
    match gap.failed {
        true if n > 1 && rest.is_empty() => {
            format!("{tool} failed in all of its {n} cells: {why}.")
        }
        true => format!(
            "{tool} failed in {}: {why}.",
            own_cells(factors, &own, &rest)
        ),
        false => format!(
            "{tool} did not measure {}: {why}.",
            own_cells(factors, &own, &rest)
        ),
    }
}
