//! Several ranks as clients of one store, and one that is slower than the other.

use std::time::Duration;

use iolab_truth::fuse::view::{Store, View};
use iolab_truth::fuse::{Behaviour, Mounted};
use iolab_truth::ranks::on_two_ranks;
use iolab_truth::system::warn;
use iolab_truth::{Made, Scene};

use crate::stage::alone;

const REGION: u64 = 8 << 20;
/// What each of two ranks goes over.
const PART: u64 = REGION / 2;

/// What was made or seen; `None`, and a word why, where that cannot be done here.
fn unless_missing<T>(made: Made<T>) -> Option<T> {
    made.map_err(|why| warn(&format!("skipped: {why}"))).ok()
}

/// Two mounts of one store, `view0` and `view1`.
fn two_clients() -> Made<([View; 2], Scene)> {
    let scene = Scene::new()?;
    let store = Store::default();
    let view = |name: &str| View::new(&scene.keeper, &scene.subfolder(name)?, &store);
    let views = [view("view0")?, view("view1")?];
    Ok((views, scene))
}

/// What a client wrote or read before is served by its page cache; what another one did is not, whatever that one's holds.
#[test]
fn clients_of_one_store_have_caches_of_their_own() {
    let _alone = alone();
    // The scene goes first: its keeper unmounts what is still served.
    let Some((views, scene)) = unless_missing(two_clients()) else {
        return;
    };
    // Before each trial a client reads the part that it wrote; then that one, or the other's.
    let sets = [
        "bs=64k",
        "region=8m",
        "cache=hot",
        "shift=none,rank",
        "time=none",
        "bytes=none",
    ];
    let mut arguments = vec!["--budget", "1ms"];
    for set in sets {
        arguments.extend(["--set", set]);
    }
    let seen = on_two_ranks(&scene, "read-size", "view{rank}", &arguments);
    let Some(seen) = unless_missing(seen) else {
        return;
    };
    let all = &seen.text;
    assert_eq!(seen.code, Some(0), "{all}");
    let [own, others] = &seen.cells[..] else {
        panic!("{all}")
    };
    for (cell, shift, served_by) in [(own, "none", "page-cache"), (others, "rank", "unknown")] {
        assert_eq!(cell["level_shift"], shift);
        let clients = cell["clients"].as_array().expect("a list");
        assert_eq!(clients.len(), 2, "{all}");
        for (client, rank) in clients.iter().zip(0..) {
            assert_eq!(client["rank"], rank);
            assert_eq!(client["served_by"], served_by, "{client}");
            let held = client["cached_before_median"].as_f64().expect("a share");
            match shift {
                "none" => assert_eq!(held, 1.0, "{client}"),
                // What was read ahead of the own part is all that there may be.
                _ => assert!(held < 0.1, "{client}"),
            }
            let reason = client["served_by_reason"].as_str().unwrap_or_default();
            assert!(reason.starts_with("the page cache held "), "{client}");
        }
    }
    // The server saw every trial that read what the other client wrote, and of the others what warmed the cache once.
    let trials = seen
        .samples
        .iter()
        .filter(|sample| sample["level_shift"] == "rank");
    let shifted = trials.count() as f64;
    assert!(shifted >= 1.0, "{all}");
    for view in &views {
        let fetched = view.fetched() as f64 / PART as f64;
        let bounds = (0.9 * shifted, 1.1 * shifted + 1.5);
        assert!(
            bounds.0 <= fetched && fetched <= bounds.1,
            "{fetched} parts, {bounds:?}"
        );
    }
}

/// How long a request of each rank is held.
const HELD: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(3)];
/// Share by which the ratio may be off.
const OFF: f64 = 0.05;
/// Share by which requests may be held longer than they should be before nothing can be said.
const EXCESS: f64 = 0.1;

/// A rank whose requests take longer is named, with the ratio of the times that they were held.
#[test]
fn a_slow_rank_is_named_with_its_ratio() {
    let _alone = alone();
    let mount = |scene: &Scene, rank: usize, delay| {
        let at = scene.subfolder(&format!("disk{rank}"))?;
        let behaviour = Behaviour {
            bytes: REGION,
            delay,
            ..Behaviour::default()
        };
        Mounted::new(&scene.keeper, &at, behaviour)
    };
    let made = Scene::new().and_then(|scene| {
        let disks = [
            mount(&scene, 0, |_| HELD[0])?,
            mount(&scene, 1, |_| HELD[1])?,
        ];
        Ok((disks, scene))
    });
    let Some((disks, scene)) = unless_missing(made) else {
        return;
    };
    let sets = [
        "bs=64k",
        "region=4m",
        "time=none",
        "bytes=none",
        "trials_min=10",
        "trials_max=10",
    ];
    let mut arguments = vec!["--budget", "30s", "--direct"];
    for set in sets {
        arguments.extend(["--set", set]);
    }
    let seen = on_two_ranks(&scene, "read-size", "disk{rank}/data", &arguments);
    let Some(seen) = unless_missing(seen) else {
        return;
    };
    assert_eq!(seen.code, Some(0), "{}", seen.text);
    let ledgers = disks.each_ref().map(Mounted::ledger);
    if ledgers.iter().any(|ledger| ledger.excess() > EXCESS) {
        let excess = ledgers.each_ref().map(|ledger| ledger.excess());
        return warn(&format!(
            "skipped: requests were held too long, by {excess:.2?} of their time"
        ));
    }
    let truth = ledgers[0].mean_held_ns() / ledgers[1].mean_held_ns();
    let told = seen.told(
        "was slower than the others in all 10 trials: its throughput was ",
        " times theirs",
    );
    let told = told.unwrap_or_else(|| panic!("no straggler is named:\n{}", seen.text));
    assert!(seen.says("Rank 1 on "), "{}", seen.text);
    assert!(!seen.says("Rank 0 on "), "{}", seen.text);
    assert!((told / truth - 1.0).abs() <= OFF, "{told}, true is {truth}");
}
