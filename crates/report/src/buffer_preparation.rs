//! Untouched and zeroed buffers compared, as a table.

use iolab_analysis::equivalence::FIRST_TRIALS;
use iolab_analysis::equivalence::PreparationPoint;
use iolab_workload::units::format_size;
use iolab_workload::units::{format_ns, format_p, significant};

use crate::block::Table;
use crate::layout::{Column, columns_over, none};
use crate::ratio;

/// The table, with one row per setting.
pub fn table(points: &[PreparationPoint]) -> Table {
    let notes = [
        "MB/s",
        "ratio within blocks with its simultaneous 95 % interval",
        "p of Welch's test with the first trials",
        "page faults per trial",
        "time per fault",
    ];
    Table::new(
        "untouched against zeroed buffers",
        [notes.join(", ")],
        columns(points),
    )
}

fn columns(points: &[PreparationPoint]) -> Vec<Column> {
    let column = columns_over(points);
    let mut columns = vec![
        column("bs", 0, &|p| format_size(p.bs)),
        column("untouched", 1, &|p| significant(p.medians.0)),
        column("zeroed", 1, &|p| significant(p.medians.1)),
    ];
    let estimates: Vec<_> = points.iter().map(|point| Some(point.ratio)).collect();
    columns.extend(ratio::columns("ratio", &estimates));
    for (place, n) in FIRST_TRIALS.iter().enumerate() {
        let p = |point: &PreparationPoint| point.p.get(place).copied().flatten();
        columns.push(column(&format!("p ({n})"), 2, &|point| {
            p(point).map_or_else(none, format_p)
        }));
    }
    columns.extend([
        column("faults", 3, &|p| {
            format!("{}, {}", significant(p.faults.0), significant(p.faults.1))
        }),
        column("per fault", 1, &|p| {
            // Without a shown difference it would be noise.
            let cost = p.ns_per_fault.filter(|_| p.is_slower());
            cost.map_or_else(none, format_ns)
        }),
    ]);
    columns
}
