//! How a trial ends.

use super::*;

/// The others' numbers would pose as those of all.
#[test]
fn a_trial_with_a_worker_that_panicked_has_no_result() {
    assert!(by_job(Vec::new(), [0, 0].into_iter()).is_ok());
    let error = by_job(vec![None], [1].into_iter()).expect_err("one is missing");
    assert_eq!(error.kind(), iolab_workload::Kind::Failed);
}
