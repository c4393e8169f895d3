//! How a trial ends.

use std::panic::resume_unwind;
use std::thread;

use super::*;

/// The others' numbers would pose as those of all.
#[test]
fn a_trial_with_a_worker_that_panicked_has_no_result() {
    thread::scope(|scope| {
        let whole = Vec::new();
        assert!(join(whole, 1).is_ok());
        let panics = scope.spawn(|| resume_unwind(Box::new("a fault")));
        let error = join(vec![(0, panics)], 1).expect_err("one is missing");
        assert_eq!(error.kind(), iolab_workload::Kind::Failed);
    });
}
