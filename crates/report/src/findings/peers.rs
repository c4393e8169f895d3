//! What other tools were called with, and which cells they could not carry out.

use super::{Finding, Rule, Says, cells_of, levels_of};
use iolab_analysis::analysis::Analysis;
use iolab_workload::tool::Tool;

pub(crate) const PEERS: Rule = Rule::doubt("peers", "the command line of each trial");
pub(crate) const GAPS: Rule = Rule::limit("gaps", "the options of each tool");

/// What is said of a run, in this order.
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

/// Cells without trials, or that were given up, by their reason.
pub fn gaps(analysis: &Analysis) -> Vec<Finding> {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for why in analysis.cells.iter().filter_map(|cell| cell.gap.as_deref()) {
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, cells)) => *cells += 1,
            None => reasons.push((why, 1)),
        }
    }
    let finding = |(why, cells): (&str, usize)| Finding {
        rule: GAPS,
        text: format!(
            "{} could not be measured: {why}.",
            cells_of(cells, analysis)
        ),
    };
    reasons.into_iter().map(finding).collect()
}
