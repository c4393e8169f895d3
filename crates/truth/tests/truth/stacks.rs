//! Random stacks of storage, each with a random node as the target: free nodes are written to, used ones
//! refused, and nothing else changes.
//!
//! Every stack follows from a seed. By default 25 are tried, seeds 0 to 24; `IOLAB_TRUTH_STACKS=500` tries 500,
//! `IOLAB_TRUTH_SEED=17` begins with seed 17. A stack that fails is reported with its seed, and then reduced.
//! One of them alone:
//!
//!     IOLAB_TRUTH_SEED=17 IOLAB_TRUTH_STACKS=1 cargo test -p iolab-truth --test truth stacks:: -- --nocapture

use std::sync::OnceLock;

use iolab_truth::Scene;
use iolab_truth::device::loop_over;
use iolab_truth::files::{MIB, hole};
use iolab_truth::stacks::plan::Format;
use iolab_truth::stacks::{Expectation, draw, shrink, trial};
use iolab_truth::system::{Made, needs_root, run, tool, unless_missing, warn};
use needs::Need;

use crate::stage::alone;

/// Number of stacks by default.
const STACKS: u64 = 25;

/// Kinds of file systems that can be made here; the others are skips.
#[track_caller]
fn kinds() -> Vec<Format> {
    let knows = |name: &str| {
        let known = std::fs::read_to_string("/proc/filesystems").unwrap_or_default();
        known.split_whitespace().any(|word| word == name)
    };
    let can = |kind: &Format| -> Made<Format> {
        let need = kind.need();
        tool(need)?;
        let name = match need {
            Need::Ext4 => "ext4",
            Need::Xfs => "xfs",
            Need::Btrfs => "btrfs",
            _ => return Ok(*kind),
        };
        if !knows(name) {
            // Mounting one would load it as well.
            run("modprobe", &[name]).map_err(|why| why.lacking(need))?;
        }
        Ok(*kind)
    };
    let kinds = Format::ALL.iter();
    kinds.filter_map(|kind| unless_missing(can(kind))).collect()
}

/// Requirements of every stack, looked for once.
pub(crate) fn needs_tools() -> Made<()> {
    static FOUND: OnceLock<Made<()>> = OnceLock::new();
    FOUND.get_or_init(look_for_tools).clone()
}

fn look_for_tools() -> Made<()> {
    needs_root()?;
    for need in [
        Need::Losetup,
        Need::Sfdisk,
        Need::Ext4,
        Need::Unshare,
        Need::XfsIo,
    ] {
        tool(need)?;
    }
    let scene = Scene::new()?;
    let folder = scene.folder().display().to_string();
    let mount = ["--mount", "mount", "-t", "tmpfs", "none", folder.as_str()];
    run("unshare", &mount).map_err(|why| why.lacking(Need::Mount))?;
    let backing = hole(scene.folder().join("backing"), MIB)?;
    loop_over(&scene, &backing, false).map(drop)
}

pub(crate) fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("a number"))
}

#[test]
fn only_used_nodes_are_refused_and_unchanged() {
    let _alone = alone();
    if unless_missing(needs_tools()).is_none() {
        return;
    }
    let kinds = kinds();
    let begin = number("IOLAB_TRUTH_SEED").unwrap_or(0);
    let stacks = number("IOLAB_TRUTH_STACKS").unwrap_or(STACKS);
    let (mut free, mut taken, mut failed) = (0, 0, Vec::new());
    for seed in begin..begin + stacks {
        let plan = draw::plan(seed, &kinds, &[]);
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
        // Printed before the failing stack is shrunk, which may take minutes.
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
