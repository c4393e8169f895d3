//! Differences whose cause can be asked for.

use iolab_analysis::analysis::analyse;
use iolab_analysis::claim::{Unexplainable, phenomena};
use iolab_record::RunRecord;
use iolab_synthetic::size_curve;
use iolab_workload::linkage::Linkage;

/// The sizes of base and other of each, in their order.
fn pairs(record: &RunRecord) -> Vec<(String, String)> {
    let found = phenomena(&analyse(record)).expect("plain trials");
    let size = |cell: i64| record.cells[cell as usize].levels.join(", ");
    let both = found
        .iter()
        .map(|one| (size(one.base.cell), size(one.other.cell)));
    both.collect()
}

fn pair(base: &str, other: &str) -> (String, String) {
    (base.to_owned(), other.to_owned())
}

#[test]
fn each_side_of_the_best_size_is_a_difference_of_its_own() {
    let record = size_curve(
        "read-size",
        &[
            ("4KiB", 100.0),
            ("64KiB", 1000.0),
            ("1MiB", 900.0),
            ("16MiB", 500.0),
        ],
    );
    assert_eq!(
        pairs(&record),
        [pair("64KiB", "4KiB"), pair("64KiB", "16MiB")]
    );
}

#[test]
fn a_dip_is_compared_with_the_lower_of_its_shoulders() {
    let record = size_curve(
        "read-size",
        &[
            ("4KiB", 100.0),
            ("64KiB", 800.0),
            ("1MiB", 400.0),
            ("4MiB", 600.0),
            ("16MiB", 1000.0),
        ],
    );
    assert_eq!(
        pairs(&record),
        [pair("16MiB", "4KiB"), pair("64KiB", "1MiB")]
    );
}

#[test]
fn a_flat_curve_has_none() {
    let record = size_curve(
        "read-size",
        &[("4KiB", 100.0), ("64KiB", 100.0), ("1MiB", 100.0)],
    );
    assert_eq!(pairs(&record), []);
}

#[test]
fn a_run_of_programs_cannot_be_explained() {
    let mut record = size_curve("read-size", &[("4KiB", 100.0), ("64KiB", 1000.0)]);
    for cell in &mut record.cells {
        cell.spec.linkage = Some(Linkage::Static);
    }
    assert_eq!(phenomena(&analyse(&record)), Err(Unexplainable::Programs));
}
