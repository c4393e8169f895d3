use iolab_analysis::analysis::analyse;
use iolab_synthetic::{add_cell, record};

use super::*;

/// Two cells of three have enough trials; the third one is far from both.
#[test]
fn cells_with_few_trials_leave_differences_open() {
    let even = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0];
    let mut record = record("read-size", &["bs"]);
    add_cell(&mut record, &["bs=4KiB"], &even);
    add_cell(&mut record, &["bs=64KiB"], &even);
    let compared = analyse(&record);
    assert!(!leaves_cells_open(&compared));
    add_cell(&mut record, &["bs=1MiB"], &[900.0, 901.0, 899.0]);
    let run = analyse(&record);
    assert!(leaves_cells_open(&run) && !lacks_trials(&run));
    let told = nothing(&run);
    let told = told.split_once(" trials: ").expect("what gives more").0;
    insta::assert_snapshot!(told, @"Cannot tell whether cells with fewer than 6 trials differ from others: the rest shows no difference between two cells that 'iolab why' can explain, and no lasting fall of throughput was found in the run. 1 of 3 cells has fewer than 6");
}
