//! Calls of other tools, and cells that they could not carry out.

use super::{Finding, Rule, Says, levels_of};
use iolab_analysis::analysis::Analysis;
use iolab_analysis::gaps::Gap;
use iolab_workload::settings::{Tool, own_cells};

pub(crate) const PEERS: Rule = Rule::doubt("peers", "the command line of each trial");
pub(crate) const GAPS: Rule = Rule::limit("gaps", "the options of each tool");

/// Rules on a run, in the order of their findings.
pub(crate) const SAYS: &[Says] = &[gaps, peers];

/// The version of each peer and the command line of one of its trials.
pub fn peers(analysis: &Analysis) -> Vec<Finding> {
    let mut tools: Vec<Tool> = Vec::new();
    let mut findings = Vec::new();
    for cell in &analysis.cells {
        let tool = cell.cell.spec.tool;
        let Some(command) = &cell.peer_command else {
            continue;
        };
        if tools.contains(&tool) {
            continue;
        }
        tools.push(tool);
        let which = levels_of(analysis, cell);
        let which = which.map_or_else(String::new, |which| format!(" ({which})"));
        let text = format!(
            "A trial of {tool}{which} was {command} - every trial's own command is in the column 'effective' of iolab export."
        );
        findings.push(Finding { rule: PEERS, text });
    }
    findings
}

/// Cells that a tool left out, or gave up, with the reason.
pub fn gaps(analysis: &Analysis) -> Vec<Finding> {
    let all = iolab_analysis::gaps::gaps(analysis);
    let finding = |gap: &Gap<'_>| Finding {
        rule: GAPS,
        text: gap_in_words(gap, &analysis.factors),
    };
    all.iter().map(finding).collect()
}

/// `iozone did not measure 2 of its 6 cells (bs=16MiB): its largest record has 16 MiB.`
fn gap_in_words(gap: &Gap<'_>, factors: &[String]) -> String {
    let Gap {
        tool,
        why,
        cells,
        others,
        failed,
    } = gap;
    let [own, rest] = [cells, others].map(|cells| {
        let levels = cells.iter().map(|cell| cell.cell.levels.as_slice());
        levels.collect::<Vec<_>>()
    });
    let n = cells.len();
    match failed {
        true if n > 1 && others.is_empty() => {
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
