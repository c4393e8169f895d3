//! What buffers in small pages cost against contiguous ones.

use std::collections::HashMap;

use iolab_stats::{CONFIDENCE, ratio_of_medians};

use super::rule::RATIOS;
use super::{Finding, Rule, Says, format_ratio};
use iolab_analysis::analysis::{Analysis, CellAnalysis};
use iolab_workload::settings::{CellSpec, SETTINGS};
use iolab_workload::trial::{BufferMemory, TrialSpec};
use iolab_workload::units::format_size;

pub(crate) const SMALL_PAGES: Rule = Rule::result("small-pages", RATIOS);

/// What is said of a run.
pub(crate) const SAYS: &[Says] = &[Says::OfCells(small_pages)];

/// The I/O size at which small pages cost most, and at how many settings they cost anything. Both were measured in the same
/// blocks.
pub fn small_pages(analysis: &Analysis) -> Vec<Finding> {
    if !analysis.response.more_is_better() {
        return Vec::new();
    }
    let of = |memory| {
        let cells = analysis.cells.iter();
        cells.filter(move |c| c.cell.trial().buffer_memory == memory)
    };
    let mut contiguous: HashMap<String, Vec<&CellAnalysis>> = HashMap::new();
    for whole in of(BufferMemory::Contiguous) {
        contiguous.entry(written(whole)).or_default().push(whole);
    }
    let pairs: Vec<_> = of(BufferMemory::Kernel)
        .filter_map(|small| {
            let mut others = contiguous.get(&written(small))?.iter().copied();
            let own = bare(small);
            let whole = others.find(|whole| bare(whole) == own)?;
            let ratio = ratio_of_medians(&whole.values, &small.values, CONFIDENCE)?;
            Some((small, whole, ratio))
        })
        .collect();
    let least = pairs.iter().min_by(|a, b| a.2.ratio.total_cmp(&b.2.ratio));
    let Some((small, whole, ratio)) = least else {
        return Vec::new();
    };
    let costs = pairs
        .iter()
        .filter(|(.., ratio)| ratio.interval.is_some_and(|i| i.high < 1.0))
        .count();
    if costs == 0 {
        return SMALL_PAGES.one(format!(
            "Buffers in pages of 4 KiB (buffer_memory=kernel) are not shown to be slower than contiguous ones: {} at worst, at {}.",
            format_ratio(ratio, " of the throughput"),
            format_size(small.cell.trial().bs),
        ));
    }
    let median = |cell: &CellAnalysis| {
        let median = cell.response.map_or(0.0, |summary| summary.median);
        analysis.response.format(median)
    };
    SMALL_PAGES.one(format!(
            "Buffers in pages of 4 KiB (buffer_memory=kernel) give {} at {}: {} against {}. They are slower in {} of {} settings.",
            format_ratio(ratio, " of the throughput of contiguous ones"),
            format_size(small.cell.trial().bs),
            median(small),
            median(whole),
            costs,
            pairs.len(),
    ))
}

/// What a cell asks for but the memory of its buffers.
/// The settings of a cell but for the memory of its buffers, as text: cells of which these differ are not alike.
fn written(cell: &CellAnalysis) -> String {
    let bare = bare(cell);
    let values = SETTINGS.iter().map(|setting| setting.get(&bare));
    values.collect::<Vec<String>>().join("\n")
}

fn bare(cell: &CellAnalysis) -> CellSpec {
    CellSpec {
        trial: TrialSpec {
            buffer_memory: BufferMemory::Contiguous,
            ..cell.cell.trial().clone()
        },
        ..cell.cell.spec.clone()
    }
}
