//! The place of cells that a run has added to its grid.

use iolab_workload::trial::Rate;

use super::CellAnalysis;

/// Sorts sizes and rates that a run has added, whose cells come last, into the grid. Other factors keep the order of their
/// levels.
pub(super) fn order_by_size(cells: &mut [CellAnalysis], factors: &[String]) {
    let ranks: Vec<Vec<String>> = (0..factors.len())
        .map(|factor| {
            let mut seen = Vec::new();
            for level in cells.iter().filter_map(|c| c.cell.levels.get(factor)) {
                if !seen.contains(level) {
                    seen.push(level.clone());
                }
            }
            seen
        })
        .collect();
    cells.sort_by_cached_key(|cell| {
        let levels = factors.iter().zip(&ranks).zip(&cell.cell.levels);
        let places = levels.map(|((factor, seen), level)| {
            if factor == "bs" {
                cell.cell.trial().bs
            } else if factor == "rate" {
                cell.cell
                    .trial()
                    .rate()
                    .and_then(Rate::requests)
                    .unwrap_or(0)
            } else {
                seen.iter().position(|other| other == level).unwrap_or(0) as u64
            }
        });
        places.collect::<Vec<u64>>()
    });
}
