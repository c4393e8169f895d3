//! The ends of trials.

use super::*;

/// The numbers of the other workers would pass for the whole trial.
#[test]
fn a_panicked_worker_leaves_no_result() {
    assert!(by_job(Vec::new(), [0, 0].into_iter()).is_ok());
    let error = by_job(vec![None], [1].into_iter()).expect_err("one is missing");
    assert_eq!(error.kind(), iolab_workload::Kind::Failed);
}
