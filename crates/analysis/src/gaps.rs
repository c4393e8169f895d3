//! Cells that their tool did not carry out, by tool and reason.

use iolab_workload::settings::Tool;

use crate::analysis::{Analysis, CellAnalysis};

/// Cells that a tool left out, or gave up, for one reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Gap<'a> {
    /// The tool.
    pub tool: Tool,
    /// The reason, as the run file has it.
    pub why: &'a str,
    /// The cells, in the order of the definition.
    pub cells: Vec<&'a CellAnalysis>,
    /// The other cells of the tool.
    pub others: Vec<&'a CellAnalysis>,
    /// Whether the tool failed, rather than being unable to do what is asked.
    pub failed: bool,
}

/// The gaps of a run, in the order of its cells.
pub fn gaps(analysis: &Analysis) -> Vec<Gap<'_>> {
    let mut all: Vec<Gap<'_>> = Vec::new();
    for cell in &analysis.cells {
        let (Some(why), tool) = (cell.gap.as_deref(), cell.cell.spec.tool) else {
            continue;
        };
        let failed = cell.failed > 0;
        let is_same =
            |known: &&mut Gap<'_>| (known.tool, known.why, known.failed) == (tool, why, failed);
        match all.iter_mut().find(is_same) {
            Some(known) => known.cells.push(cell),
            None => all.push(Gap {
                tool,
                why,
                cells: vec![cell],
                others: Vec::new(),
                failed,
            }),
        }
    }
    for gap in &mut all {
        let own = analysis.cells.iter();
        let own = own.filter(|cell| cell.cell.spec.tool == gap.tool);
        let is_other =
            |cell: &&CellAnalysis| !gap.cells.iter().any(|one| one.cell.id == cell.cell.id);
        gap.others = own.filter(is_other).collect();
    }
    all
}
