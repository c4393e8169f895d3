//! Page cache, holes, and targets that are not storage.

use iolab_truth::scenarios::{
    BUFFERED_WRITES, COLD_READS, DEV_ZERO, DIRECT_READS, DIRECT_WRITES, HOLE, HOT_READS, TMPFS,
    UNWRITTEN,
};

use crate::stage::perform;

#[test]
fn direct_reads_are_the_devices() {
    let Some(done) = perform(&DIRECT_READS) else {
        return;
    };
    for sample in done.seen.measured() {
        assert_eq!(
            sample["process_read_bytes"], sample["read_bytes"],
            "every byte was fetched"
        );
    }
}

#[test]
fn cold_reads_are_the_devices() {
    let Some(done) = perform(&COLD_READS) else {
        return;
    };
    assert!(
        done.seen
            .measured()
            .all(|sample| sample["cache_before_bytes"] == 0)
    );
}

#[test]
fn hot_reads_are_the_page_caches() {
    let Some(done) = perform(&HOT_READS) else {
        return;
    };
    assert_eq!(done.seen.number("device_fraction"), 0.0);
}

#[test]
fn direct_writes_are_the_devices() {
    perform(&DIRECT_WRITES);
}

#[test]
fn buffered_writes_are_the_page_caches() {
    perform(&BUFFERED_WRITES);
}

#[test]
fn reading_a_hole_is_no_reading() {
    let Some(done) = perform(&HOLE) else { return };
    assert!(
        done.seen
            .measured()
            .all(|sample| sample["process_read_bytes"] == 0)
    );
}

#[test]
fn reading_unwritten_space_is_no_reading() {
    perform(&UNWRITTEN);
}

#[test]
fn memory_is_no_storage() {
    perform(&TMPFS);
}

#[test]
fn zeros_are_no_storage() {
    perform(&DEV_ZERO);
}
