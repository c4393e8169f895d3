//! Results above what the storage can give.

use super::{Finding, Rule, Says, cells_of, levels_of};
use iolab_analysis::analysis::{Analysis, CellAnalysis, Flag, Response};
use iolab_workload::quantity::format_percent;

pub(crate) const EXCEEDS_CEILING: Rule = Rule::doubt(
    "exceeds-ceiling",
    "the median of each cell over the ceiling of its kind",
);

/// Rules on a run.
pub(crate) const SAYS: &[Says] = &[exceeds_ceiling];

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
        "{} exceeded the ceiling: up to {} of the {} {} ceiling of {}{}. The evidence does not show why: either the ceiling is wrong (a burst, another device, a cache behind the device), or the bytes did not come from the device.",
        cells_of(cells.len(), analysis),
        format_percent(efficiency.share),
        efficiency.source,
        if efficiency.is_iops {
            "IOPS"
        } else {
            "throughput"
        },
        unit.format(efficiency.ceiling),
        levels_of(analysis, worst).map_or_else(String::new, |worst| format!(" ({worst})")),
    );
    EXCEEDS_CEILING.one(text)
}
