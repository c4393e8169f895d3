//! The random stacks of `stacks`, with more to draw from: device mapper, RAID, logical and thin volumes, paths, network block
//! devices and exports, up to five layers.

use iolab_truth::system::warn;

use super::lab::lab;
use crate::stacks::number;

/// Stacks in a run that asks for no other number.
const STACKS: u64 = 20;

#[test]
fn nothing_in_use_is_written_and_nothing_free_is_refused() {
    let Some(mut lab) = lab() else { return };
    // Their devices are made without udev, which would assemble what was just stopped.
    lab.shell(
        "udevadm control --exit; modprobe -a loop xfs btrfs overlay dm-crypt raid1 dm-multipath dm-round-robin dm-thin-pool nvmet
        modprobe nbd nbds_max=64; mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config",
    );
    let begin = number("IOLAB_TRUTH_SEED").unwrap_or(0);
    let stacks = number("IOLAB_TRUTH_STACKS").unwrap_or(STACKS);
    let (mut free, mut taken, mut failed) = (0, 0, Vec::new());
    for seed in begin..begin + stacks {
        let answer = lab.stack(seed);
        match answer["expected"].as_str() {
            Some("free") => free += 1,
            Some("taken") => taken += 1,
            _ => {}
        }
        let is_right = answer["faults"].as_array().is_some_and(Vec::is_empty);
        if !is_right {
            warn(&format!("seed {seed} fails: {answer:#}"));
            failed.push(seed);
        }
    }
    warn(&format!(
        "{stacks} stacks in a guest: {free} targets free, {taken} in use, the others open"
    ));
    lab.shell("/lib/systemd/systemd-udevd --daemon; udevadm trigger");
    assert!(failed.is_empty(), "these seeds fail: {failed:?}");
    assert!(
        stacks < STACKS || (free > 0 && taken > 0),
        "nothing was tried"
    );
}
