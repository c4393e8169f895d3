//! The random stacks of `stacks` with more kinds of steps: device mapper, RAID, logical and thin volumes,
//! paths, network block devices and exports, up to five layers. iolab is asked to write to every node of each.

use std::collections::BTreeMap;

use iolab_truth::system::warn;
use serde_json::Value;

use super::lab::lab_of_stacks;
use crate::stacks::number;

/// Number of stacks by default.
const STACKS: u64 = 20;

#[test]
fn only_used_nodes_are_refused_and_unchanged() {
    let Some(mut lab) = lab_of_stacks() else {
        return;
    };
    // Their devices are made without udev, which would reassemble stopped arrays.
    lab.shell(
        "udevadm control --exit; modprobe -a loop xfs btrfs overlay dm-crypt raid1 dm-multipath dm-round-robin dm-thin-pool nvmet
        modprobe nbd nbds_max=64; mountpoint -q /sys/kernel/config || mount -t configfs config /sys/kernel/config
        modprobe nfsd; mountpoint -q /proc/fs/nfsd || mount -t nfsd nfsd /proc/fs/nfsd; pgrep rpcbind >/dev/null || rpcbind
        exportfs -o rw,fsid=0,no_root_squash,no_subtree_check 127.0.0.1:/data; rpc.nfsd 2; rpc.mountd; echo Y >/proc/fs/nfsd/v4_end_grace",
    );
    let begin = number("IOLAB_TRUTH_SEED").unwrap_or(0);
    let stacks = number("IOLAB_TRUTH_STACKS").unwrap_or(STACKS);
    let (mut expected, mut failed) = (BTreeMap::<String, u32>::new(), Vec::new());
    for seed in begin..begin + stacks {
        let answer = lab.stack(seed);
        let nodes = answer["nodes"].as_array().cloned().unwrap_or_default();
        for node in &nodes {
            let what = node["expected"].as_str().unwrap_or_default();
            *expected.entry(what.to_owned()).or_default() += 1;
        }
        // The last entry has the faults of taking the stack down.
        let mut faults = nodes.iter().chain([&answer]).map(|node| &node["faults"]);
        let has_none = |faults: &Value| faults.as_array().is_some_and(Vec::is_empty);
        if nodes.is_empty() || !faults.all(has_none) {
            warn(&format!("seed {seed} fails: {answer:#}"));
            failed.push(seed);
        }
    }
    warn(&format!(
        "{stacks} stacks in a guest; nodes by what iolab has to do: {expected:?}"
    ));
    assert!(failed.is_empty(), "these seeds fail: {failed:?}");
    assert!(
        stacks < STACKS || ["free", "taken"].map(|what| expected.contains_key(what)) == [true; 2],
        "nothing was tried"
    );
}
