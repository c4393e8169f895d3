//! The ends of trials, and trials written as settings.

use iolab_workload::settings::{CellSpec, Setting};

use super::*;

/// The default trial with these settings, separated by spaces.
pub(crate) fn settings(sets: &str) -> TrialSpec {
    let mut cell = CellSpec::default();
    for set in sets.split_whitespace() {
        let (name, value) = set.split_once('=').expect(set);
        let setting = Setting::find(name).expect(set);
        setting.set(&mut cell, value).expect(set);
    }
    cell.trial
}

/// The numbers of the other workers would pass for the whole trial.
#[test]
fn a_panicked_worker_leaves_no_result() {
    assert!(by_job(Vec::new(), [0, 0].into_iter()).is_ok());
    let error = by_job(vec![None], [1].into_iter()).expect_err("one is missing");
    assert_eq!(error.kind(), iolab_workload::Kind::Failed);
}
