//! What reading back has shown, in flags and findings.

use iolab_analysis::analysis::{Analysis, Flag, analyse};
use iolab_record::{FaultKind, Faults, RunRecord, RunStatus, Verified};
use iolab_report::findings::Finding;

use crate::named;
use iolab_synthetic::{add_cell, add_trial, around, record};

fn verified_run() -> RunRecord {
    let mut record = record("write-size", &["bs"]);
    add_cell(&mut record, &["bs=4KiB"], &around(100.0));
    for sample in &mut record.samples {
        sample.verified = Some(Verified {
            blocks: 256,
            bytes: 1 << 20,
            cached_bytes: Some(0),
            ..Verified::default()
        });
    }
    record
}

fn told(analysis: &Analysis) -> Vec<Finding> {
    let mut found = named("verified", analysis);
    found.extend(named("verify-failed", analysis));
    found
}

fn only(record: &RunRecord) -> (&'static str, String) {
    let mut findings = told(&analyse(record));
    assert_eq!(findings.len(), 1, "{findings:?}");
    let finding = findings.remove(0);
    assert!(!finding.rule.basis.is_empty());
    (finding.rule.name, finding.text)
}

#[test]
fn nothing_is_said_where_nothing_was_verified() {
    let mut record = verified_run();
    for sample in &mut record.samples {
        sample.verified = None;
    }
    let analysis = analyse(&record);
    assert!(told(&analysis).is_empty());
    assert_eq!(analysis.cells[0].verified, None);
}

#[test]
fn data_that_was_kept_is_told_with_its_amount() {
    let record = verified_run();
    let (rule, text) = only(&record);
    assert_eq!(rule, "verified");
    insta::assert_snapshot!(text);
    assert!(analyse(&record).cells[0].flags.is_empty());
}

#[test]
fn what_came_from_memory_is_no_proof() {
    let mut record = verified_run();
    let last = record.samples.last_mut().and_then(|s| s.verified.as_mut());
    last.expect("verified").cached_bytes = Some(1 << 30);
    let (_, text) = only(&record);
    insta::assert_snapshot!(text);
}

#[test]
fn data_that_was_not_kept_is_flagged_and_told_first() {
    let mut record = verified_run();
    record.run.status = RunStatus::Failed;
    let sample = add_trial(&mut record, 0, 100.0, false);
    sample.ok = false;
    let mut faulty = Verified {
        blocks: 256,
        bytes: 1 << 20,
        ..Verified::default()
    };
    let faults = |blocks| Faults {
        blocks,
        first_offset: 0,
    };
    faulty.faults[FaultKind::Stale as usize] = faults(3);
    faulty.faults[FaultKind::Torn as usize] = faults(1);
    sample.verified = Some(faulty);
    let (rule, text) = only(&record);
    assert_eq!(rule, "verify-failed");
    insta::assert_snapshot!(text, @"The only cell: this storage did NOT keep what was written to it. Of 2304 blocks read back in 9 trials these were wrong: 3 stale, 1 torn. The first places are in the run file. Do not use any result before the cause is found.");
    let flags = &analyse(&record).cells[0].flags;
    assert!(flags.contains(&Flag::VerifyFailed) && flags.contains(&Flag::Errors));
}
