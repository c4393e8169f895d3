//! Random stacks of storage, each with a random node as the target: what is free is written to, what is in use is refused,
//! and nothing else changes.
//!
//! Every stack follows from a seed. By default 25 are tried, seeds 0 to 24;
//! `IOLAB_TRUTH_STACKS=500` tries 500, `IOLAB_TRUTH_SEED=17` begins with seed 17. A stack that fails is reported with its seed, and
//! then made smaller. One of them alone:
//!
//!     IOLAB_TRUTH_SEED=17 IOLAB_TRUTH_STACKS=1 cargo test -p iolab-truth --test truth stacks:: -- --nocapture

use iolab_truth::stacks::plan::Format;
use iolab_truth::stacks::{Expectation, draw, shrink, trial};
use iolab_truth::system::{Made, Missing, needs_root, warn};

use crate::stage::alone;

/// Stacks in a run that asks for no other number.
const STACKS: u64 = 25;

/// The kinds of file systems that can be made here; those that cannot are told.
fn kinds() -> Vec<Format> {
    let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let knows = |name: &str| known.split_whitespace().any(|word| word == name);
    let can = |kind: &Format| {
        let (tool, checker, fs) = match kind {
            Format::Ext4 | Format::Ext4Journal => ("mkfs.ext4", "e2fsck", Some("ext4")),
            Format::Xfs | Format::XfsLog => ("mkfs.xfs", "xfs_repair", Some("xfs")),
            Format::Btrfs | Format::BtrfsTwo => ("mkfs.btrfs", "btrfs", Some("btrfs")),
            Format::Swap => ("mkswap", "swapon", None),
        };
        let missing = [tool, checker]
            .into_iter()
            .find(|tool| !is_installed(tool))
            .or_else(|| fs.filter(|fs| !knows(fs)));
        if let Some(missing) = missing {
            warn(&format!("stacks without {kind:?}: no {missing} here"));
        }
        missing.is_none()
    };
    Format::ALL.iter().copied().filter(can).collect()
}

fn is_installed(tool: &str) -> bool {
    let found = std::process::Command::new(tool)
        .arg("--version")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .status();
    found.is_ok()
}

/// What no stack can do without.
pub(crate) fn needs_tools() -> Made<()> {
    needs_root()?;
    let tools = ["losetup", "sfdisk", "mkfs.ext4", "unshare", "xfs_io"];
    match tools.into_iter().find(|tool| !is_installed(tool)) {
        Some(tool) => Err(Missing(format!("{tool} is not installed"))),
        None => Ok(()),
    }
}

pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

#[test]
fn nothing_in_use_is_written_and_nothing_free_is_refused() {
    if let Err(why) = needs_tools() {
        warn(&format!("skipped: random stacks: {why}"));
        return;
    }
    let _alone = alone();
    let kinds = kinds();
    let begin = number("IOLAB_TRUTH_SEED").unwrap_or(0);
    let stacks = number("IOLAB_TRUTH_STACKS").unwrap_or(STACKS);
    let (mut free, mut taken, mut failed) = (0, 0, Vec::new());
    for seed in begin..begin + stacks {
        let plan = draw::plan(seed, &kinds);
        let outcome =
            trial::of(&plan).unwrap_or_else(|why| panic!("seed {seed}: {why}\n{plan:#?}"));
        match outcome.verdict {
            Expectation::Free => free += 1,
            Expectation::Taken(_) => taken += 1,
            Expectation::Open(_) => {}
        }
        if outcome.faults.is_empty() {
            continue;
        }
        // Told before it is made smaller, which takes longer than some wait.
        warn(&format!("seed {seed} fails: {}", outcome.faults.join("; ")));
        let (plan, outcome) = match failed.is_empty() {
            true => shrink::smallest(&plan, outcome),
            false => (plan, outcome),
        };
        outcome.warn(&plan);
        failed.push(seed);
    }
    warn(&format!(
        "{stacks} stacks: {free} targets free, {taken} in use, the others open"
    ));
    assert!(failed.is_empty(), "these seeds fail: {failed:?}");
    assert!(
        stacks < STACKS || (free > 0 && taken > 0),
        "nothing was tried"
    );
}
