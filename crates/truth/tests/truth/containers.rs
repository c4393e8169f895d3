//! Overlays and bind mounts, as in containers; all need root.

use iolab_truth::iolab::Seen;
use iolab_truth::scenarios::{
    BOUND_HOT, HIDDEN_BUFFERED_WRITES, HIDDEN_COLD, HIDDEN_HOT, LOWER_COLD, LOWER_DIRECT,
    LOWER_HOT, LOWER_MAPPED, NESTED_HOT, STRANGERS_COLD, STRANGERS_HOT, UPPER_BUFFERED_WRITES,
    UPPER_COLD, UPPER_HOT, UPPER_IN_MEMORY,
};
use iolab_truth::{Scenario, iolab};
use serde_json::Value;

use crate::stage::{Performance, built, perform};

/// Performs a scenario, and compares each trial's prior content of the page cache with the truth.
#[track_caller]
fn perform_with(
    scenario: &Scenario,
    cached_before: impl Fn(&Value) -> bool,
) -> Option<Performance> {
    let done = perform(scenario)?;
    for sample in done.seen.measured() {
        assert!(cached_before(&sample["cache_before_bytes"]), "{sample}");
    }
    Some(done)
}

fn all(bytes: &Value) -> bool {
    // The kernel may reclaim a page at any moment.
    bytes.as_u64().is_some_and(|bytes| bytes > 31 << 20)
}

fn nothing(bytes: &Value) -> bool {
    bytes == 0
}

/// Checks that each trial has its verdict for this reason, and not for another lack of evidence.
#[track_caller]
fn for_reason(done: &Performance, words: &str) {
    for sample in done.seen.measured() {
        let reason = sample["served_by_reason"].as_str().unwrap_or_default();
        assert!(reason.contains(words), "{reason}");
    }
}

/// Checks that the device below the layers was found, and counted the fetched bytes.
#[track_caller]
fn counted_by_the_device(seen: &Seen) {
    for sample in seen.measured() {
        let count = |name: &str| sample[name].as_u64();
        assert!(
            count("device_read_bytes") >= count("read_bytes"),
            "{sample}"
        );
    }
}

#[test]
fn hot_file_of_any_layer_is_page_cache() {
    for scenario in [
        &LOWER_HOT, &LOWER_MAPPED, &UPPER_HOT, &NESTED_HOT, &BOUND_HOT,
    ] {
        perform_with(scenario, all);
    }
}

#[test]
fn cold_file_of_any_layer_is_the_devices() {
    for scenario in [&LOWER_COLD, &LOWER_DIRECT, &UPPER_COLD] {
        if let Some(done) = perform_with(scenario, nothing) {
            counted_by_the_device(&done.seen);
        }
    }
}

#[test]
fn buffered_writes_to_a_container_are_page_cache() {
    perform(&UPPER_BUFFERED_WRITES);
}

#[test]
fn a_layer_in_memory_is_no_storage() {
    perform(&UPPER_IN_MEMORY);
}

#[test]
fn hidden_layers_leave_pages_and_process_account() {
    perform_with(&HIDDEN_HOT, all);
    perform_with(&HIDDEN_COLD, nothing);
    let Some(done) = perform(&HIDDEN_BUFFERED_WRITES) else {
        return;
    };
    for_reason(&done, "no device is known");
    let doctor = iolab::told(&done.scene, &["doctor", "root"]);
    for words in [
        "root-layers/upper (upper)", "lower (lower)", "is not visible from here",
    ] {
        assert!(
            doctor
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains(words),
            "'{words}' is missing:\n{doctor}"
        );
    }
}

#[test]
fn pages_reported_falsely_are_not_stored() {
    for scenario in [&STRANGERS_HOT, &STRANGERS_COLD] {
        if let Some(done) = perform_with(scenario, Value::is_null) {
            for_reason(&done, "not visible");
        }
    }
}

#[test]
fn programs_read_a_container_from_the_page_cache() {
    let Some((scene, _alone)) = built(&UPPER_HOT) else {
        return;
    };
    for experiment in ["buffer-size", "linkage"] {
        let words = ["--set", "bs=4k,64k", "--size", "8M", "--budget", "1"];
        let seen = iolab::run(&scene, experiment, "root", &words);
        assert_eq!(seen.code, Some(0), "{}", seen.text);
        assert!(seen.measured().count() > 0, "{}", seen.text);
        for sample in seen.measured() {
            assert_eq!(sample["served_by"], "page-cache", "{sample}");
        }
    }
}

/// A file made without a name keeps showing none on an overlay, by which its layer would be found.
#[test]
fn the_layer_of_a_scratch_file_is_found() {
    let Some((scene, _alone)) = built(&UPPER_HOT) else {
        return;
    };
    let words = ["--set", "bs=4k", "--size", "4M", "--budget", "1"];
    let seen = iolab::run(&scene, "read-random", "root", &words);
    assert_eq!(seen.code, Some(0), "{}", seen.text);
    assert!(seen.measured().count() > 0, "{}", seen.text);
    counted_by_the_device(&seen);
}
