//! Data that a file system in user space loses.

use iolab_truth::scenarios::{CORRUPTS, CORRUPTS_UNSEEN, DROPS, KEEPS, LOSES, MISPLACES, TEARS};

use crate::stage::{Performance, perform};

/// Blocks with a kind of fault in the last trial, and the first byte of them.
fn faults(done: &Performance, kind: &str) -> (u64, u64) {
    let last = done.seen.samples.last().expect("a failed trial is kept");
    assert_eq!(last["ok"], false);
    let number = |name: &str| last[name].as_u64().unwrap_or(u64::MAX);
    (
        number(&format!("{kind}_blocks")),
        number(&format!("{kind}_first_offset")),
    )
}

#[test]
fn what_is_kept_is_verified() {
    let Some(done) = perform(&KEEPS) else { return };
    for sample in &done.seen.samples {
        assert_eq!(sample["verified_bytes"], sample["write_bytes"]);
    }
}

#[test]
fn a_changed_byte_is_found() {
    let Some(done) = perform(&CORRUPTS) else {
        return;
    };
    assert_eq!(faults(&done, "corrupted"), (1, 1 << 20));
    assert_eq!(done.seen.samples.len(), 1, "the first trial tells");
}

#[test]
fn a_write_to_the_wrong_place_is_found() {
    let Some(done) = perform(&MISPLACES) else {
        return;
    };
    assert_eq!(faults(&done, "misplaced"), (1, (1 << 20) - (64 << 10)));
    // The block's own place has the earlier data.
    assert_eq!(faults(&done, "lost"), (1, 1 << 20));
}

#[test]
fn a_dropped_write_is_found() {
    let Some(done) = perform(&DROPS) else { return };
    assert_eq!(faults(&done, "stale"), (1, 1 << 20));
    assert_eq!(done.seen.samples.len(), 2, "the first trial was in order");
}

#[test]
fn a_block_that_was_never_stored_is_found() {
    let Some(done) = perform(&LOSES) else { return };
    assert_eq!(faults(&done, "lost"), (1, 1 << 20));
}

#[test]
fn half_a_write_is_found() {
    let Some(done) = perform(&TEARS) else { return };
    assert_eq!(faults(&done, "torn"), (1, (1 << 20) + (32 << 10)));
}

/// The reason for `--verify`: throughput and latency show nothing of the fault.
#[test]
fn nothing_is_found_where_nobody_looks() {
    perform(&CORRUPTS_UNSEEN);
}
