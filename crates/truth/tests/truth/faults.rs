//! A file system in user space that does not do as requested.

use iolab_truth::scenarios::{FAILS_AT, FORGETS, FORGETS_SYNCED, FROZEN, FULL, SHORT};

use crate::stage::perform;

#[test]
fn short_reads_are_continued_and_counted() {
    let Some(done) = perform(&SHORT) else { return };
    let (answers, seen) = (done.ledger().last(done.seen.samples.len()), &done.seen);
    let (requests, short) = (
        seen.total("read_requests"),
        seen.total("read_short_transfers"),
    );
    assert!(short > 0);
    assert_eq!(
        seen.total("read_bytes"),
        requests * 65536,
        "requests are whole in the end"
    );
    assert_eq!(requests + short, answers.number, "each answer was counted");
    assert_eq!(
        seen.total("read_bytes"),
        answers.bytes,
        "each byte was counted"
    );
}

#[test]
fn a_size_that_is_ignored_is_noticed() {
    let Some(done) = perform(&FROZEN) else { return };
    let (answers, seen) = (done.ledger().last(done.seen.samples.len()), &done.seen);
    let (requests, short) = (
        seen.total("read_requests"),
        seen.total("read_short_transfers"),
    );
    assert_eq!(short, requests * 15, "64 KiB in pieces of 4 KiB");
    assert_eq!(
        seen.total("read_bytes"),
        answers.bytes,
        "each byte was counted"
    );
}

#[test]
fn a_failure_is_told_with_its_place() {
    let Some(done) = perform(&FAILS_AT) else {
        return;
    };
    let last = done.seen.samples.last().expect("a failed trial is kept");
    assert_eq!(
        (&last["ok"], &last["read_bytes"]),
        (&false.into(), &(1 << 20).into())
    );
}

#[test]
fn no_room_is_told_with_its_place() {
    let Some(done) = perform(&FULL) else { return };
    let last = done.seen.samples.last().expect("a failed trial is kept");
    assert_eq!(
        (&last["ok"], &last["write_bytes"]),
        (&false.into(), &(1 << 20).into())
    );
}

#[test]
fn writes_without_sync_are_never_the_devices() {
    let Some(done) = perform(&FORGETS) else {
        return;
    };
    assert_eq!(done.seen.total("syncs"), 0);
    // Each trial's data was written out before the next one.
    for sample in &done.seen.samples {
        assert!(sample["owed_sync_ns"].is_u64(), "{sample:#}");
    }
    assert!(
        !done.scene.fuse.as_ref().expect("FUSE").owes(),
        "the truth: nothing of a trial is left for the next one"
    );
}

#[test]
fn a_sync_at_the_end_makes_writes_durable() {
    let Some(done) = perform(&FORGETS_SYNCED) else {
        return;
    };
    assert!(
        !done.scene.fuse.as_ref().expect("FUSE").owes(),
        "the truth: nothing would be lost"
    );
    assert_eq!(done.seen.total("syncs"), done.seen.samples.len() as u64);
}
