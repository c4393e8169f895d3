//! Devices and file systems made for the purpose; all need root.

use iolab_truth::scenarios::{
    BREAKS, COMPRESSED_NOISE, COMPRESSED_ZEROS, IGNORES_DIRECT, LIMIT, LOOP_CACHED, LOOP_DIRECT,
    LOOP_IN_MEMORY, NEIGHBOUR, REFUSES_DIRECT, THROTTLED,
};

use iolab_truth::scene::TargetChange;

use crate::stage::{perform, within};

#[test]
fn a_loop_device_over_memory_is_memory() {
    perform(&LOOP_IN_MEMORY);
}

#[test]
fn loop_device_over_a_cached_file_is_memory() {
    perform(&LOOP_CACHED);
}

#[test]
fn direct_loop_device_is_the_disk_below() {
    perform(&LOOP_DIRECT);
}

#[test]
fn unsupported_direct_io_is_refused() {
    perform(&REFUSES_DIRECT);
}

#[test]
fn direct_io_that_is_ignored_is_noticed() {
    perform(&IGNORES_DIRECT);
}

#[test]
fn compressed_away_bytes_are_not_the_devices() {
    perform(&COMPRESSED_ZEROS);
}

#[test]
fn incompressible_data_passes_a_compressing_file_system() {
    perform(&COMPRESSED_NOISE);
}

#[test]
fn a_limit_is_what_is_measured() {
    let Some(done) = perform(&THROTTLED) else {
        return;
    };
    let measured = done.seen.number("throughput_mb_s_median");
    assert!(
        within(measured, LIMIT as f64 / 1e6, 0.02),
        "{measured} MB/s"
    );
}

#[test]
fn a_neighbour_is_noticed() {
    let Some(done) = perform(&NEIGHBOUR) else {
        return;
    };
    let Some(TargetChange::Noise(neighbour)) = &done.scene.turn else {
        panic!("there is a neighbour");
    };
    // At most the neighbour's reads so far, and none before its start: no other process knows this device.
    let count = |sample: &serde_json::Value, name: &str| sample[name].as_u64().expect("counted");
    let others: Vec<u64> = done
        .seen
        .measured()
        .map(|s| count(s, "device_read_bytes") - count(s, "process_read_bytes"))
        .collect();
    let truth = neighbour.read_bytes();
    let seen: u64 = others.iter().sum();
    assert_eq!(others[0], 0, "{others:?}");
    assert!(
        (truth / 5..=truth).contains(&seen),
        "{seen} bytes of others', and {truth} were read"
    );
    // Share of all bytes that the device carried.
    let carried: u64 = done
        .seen
        .measured()
        .map(|s| count(s, "device_read_bytes"))
        .sum();
    let share = seen as f64 / carried as f64;
    assert!(
        within(done.seen.number("other_traffic"), share, 0.01),
        "{share}"
    );
}

#[test]
fn results_before_a_device_failure_are_kept() {
    let Some(done) = perform(&BREAKS) else {
        return;
    };
    let (last, before) = done.seen.samples.split_last().expect("samples");
    assert!(before.len() >= BREAKS.workload.trials as usize / 2);
    assert!(before.iter().all(|sample| sample["ok"] == true));
    assert_eq!(
        (&last["ok"], &last["errors"]),
        (&false.into(), &1.into()),
        "one request fails, and ends the run"
    );
}
