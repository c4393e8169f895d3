//! Trials that cannot be carried out.

use iolab_workload::Kind;
use iolab_workload::trial::TrialSpec;

use crate::cells::{cell, trial};
use crate::line_files::check;

/// A possible trial, and after a `!` the change that makes it impossible.
#[test]
fn trials_without_a_meaning_are_refused() {
    check(&["refusals"], |line| {
        let Some((possible, change)) = line.split_once('!') else {
            cell(line).check().expect(line);
            return String::new();
        };
        cell(possible).check().expect(line);
        let error = cell(&format!("{possible} {change}")).check();
        let error = error.expect_err(line);
        assert_eq!(error.kind(), Kind::Usage, "{error}");
        assert!(error.remedy().is_some(), "{error}");
        error.message().to_owned()
    });
}

#[test]
fn values_that_no_setting_takes_are_refused() {
    let changes: [fn(&mut TrialSpec); 4] = [
        |trial| trial.bs = 0,
        |trial| trial.sync_every = 0,
        |trial| trial.compressible = 101,
        |trial| trial.trim_percent = 101,
    ];
    for change in changes {
        let mut wrong = trial("read_percent=0");
        change(&mut wrong);
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
}

/// If only the region is too small, that is what helps.
#[test]
fn the_smallest_region_holds_all_files() {
    for change in ["region=60k", "threads=2", "bs_mix=4k:50,8k:50"] {
        let mut wrong = trial(&format!("files=16 layout=private region=64k {change}"));
        wrong.region = wrong.smallest_region();
        wrong.check().expect(change);
    }
}
