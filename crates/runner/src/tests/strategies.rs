//! Decisions of strategies from a record.

use super::*;
use iolab_record::Sample;

#[test]
fn a_cell_given_up_gets_no_finer_sizes() {
    let bench = bench(&[&REFINE[..], &["tool=iolab,fio"]].concat());
    let cells = planned(&bench.experiment).cells().len();
    // The first trial of fio in the second block, after one that worked.
    let order = block_order(42, 1, cells);
    let of_fio = order.iter().position(|cell| cell % 2 == 1);
    let place = of_fio.expect("a cell of fio");
    let mut mock = mock(&knee);
    mock.cut = Some(((cells + place) as u64, Cut::Fail(5)));
    bench.start(&mut mock).expect("the run goes on");
    let record = bench.record();
    assert!(record.cells.len() > cells, "finer sizes were added");
    let failed = record.samples.iter().find(|sample| !sample.ok);
    let failed = failed.expect("one failed");
    assert_eq!((failed.cell as usize, failed.block), (order[place], 1));
    let its = |sample: &&Sample| sample.cell == failed.cell;
    assert_eq!(record.samples.iter().filter(its).count(), 2);
}
