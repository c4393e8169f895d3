//! Numbers of cells in words.

use iolab_workload::units::counted;

/// A number of cells: `1 cell`, `3 cells`.
pub fn cells(n: usize) -> String {
    counted(n, "cell")
}

/// `both cells`, `all 3 cells`: of several.
pub(crate) fn all_cells(n: usize) -> String {
    match n {
        2 => "both cells".to_owned(),
        n => format!("all {n} cells"),
    }
}
