//! Several ranks: as clients of one store, with one slower than the other, and with separate disks.

use std::time::Duration;

use iolab_truth::device::{loop_over, mounted_as};
use iolab_truth::files::{MIB, noise};
use iolab_truth::fuse::view::{Call, Store, View};
use iolab_truth::fuse::{Behaviour, Mounted};
use iolab_truth::iolab::{claims, told};
use iolab_truth::ranks::on_two_ranks;
use iolab_truth::system::unless_missing;
use iolab_truth::{Made, Scene};
use serde_json::Value;

use crate::stage::alone;

const REGION: u64 = 8 << 20;
/// Bytes per rank.
const PART: u64 = REGION / 2;

/// Two mounts of one store, `view0` and `view1`.
fn two_clients() -> Made<([View; 2], Scene)> {
    let scene = Scene::new()?;
    let store = Store::default();
    let view = |name: &str| View::new(&scene.keeper, &scene.subfolder(name)?, &store);
    let views = [view("view0")?, view("view1")?];
    Ok((views, scene))
}

/// A client's earlier reads and writes are served by its own page cache; another client's are not, whatever
/// that one's cache holds.
#[test]
fn clients_of_one_store_have_separate_caches() {
    let _alone = alone();
    // Declared last, dropped first: the scene unmounts the views' file systems while they are still served.
    let Some((views, scene)) = unless_missing(two_clients()) else {
        return;
    };
    // Before each trial a client reads the part that it wrote; then that part, or the other's.
    let sets = [
        "bs=64k", "region=8m", "cache=hot", "shift=none,rank", "time=none", "bytes=none",
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
                // Only read-ahead beyond the client's own part may be cached.
                _ => assert!(held < 0.1, "{client}"),
            }
            let reason = client["served_by_reason"].as_str().unwrap_or_default();
            assert!(!reason.is_empty(), "{client}");
        }
    }
    // The server saw every trial that read the other client's writes; for the others it saw only the one
    // warming of the cache.
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

/// A silent target may block another rank's look-up and open as well: rank 0 names that rank with its target.
#[test]
fn rank_with_a_silent_target_is_named() {
    let _alone = alone();
    for call in [Call::Look, Call::Create] {
        let Some((views, scene)) = unless_missing(two_clients()) else {
            return;
        };
        views[1].falls_silent_at(call);
        let arguments = ["--bs", "64k", "--size", "1M", "--budget", "1ms"];
        let seen = on_two_ranks(&scene, "read-size", "view{rank}", &arguments);
        views[1].answers();
        let Some(seen) = unless_missing(seen) else {
            return;
        };
        assert_ne!(seen.code, Some(0), "{call:?}: {}", seen.text);
        assert!(seen.says("error: rank 1 on "), "{call:?}: {}", seen.text);
        assert!(seen.says("has not answered for 60.0 s"), "{}", seen.text);
        let own = views[1].at().display().to_string();
        assert!(seen.says(&format!("{own} there")), "{}", seen.text);
    }
}

/// Time for which a request of each rank is held.
const HELD: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(3)];
/// Tolerance of the ratio, as a share.
const OFF: f64 = 0.05;
/// Excess delay of requests, as a share, above which nothing can be concluded.
const EXCESS: f64 = 0.1;

/// A slower rank is named, with the ratio of the holding times.
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
        "bs=64k", "region=4m", "time=none", "bytes=none", "trials_min=10", "trials_max=10",
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
        let why = format!("requests were held too long, by {excess:.2?} of their time");
        return needs::skip(needs::Need::Quiet, why);
    }
    let truth = ledgers[0].mean_held_ns() / ledgers[1].mean_held_ns();
    let claims = claims(&scene, "read-size.iolab");
    let straggler = claims.iter().find(|claim| claim["kind"] == "straggler");
    let straggler = straggler.unwrap_or_else(|| panic!("no straggler is named:\n{}", seen.text));
    let points = straggler["points"].as_array().expect("points");
    let ranks = points
        .iter()
        .filter_map(|point| point["client"]["rank"].as_u64());
    assert_eq!(ranks.collect::<Vec<_>>(), [1], "{points:?}");
    assert!(seen.says("by throughput: rank 1 on "), "{}", seen.text);
    let told = points[0]["value"].as_f64().expect("a ratio");
    assert!((told / truth - 1.0).abs() <= OFF, "{told}, true is {truth}");
}

/// Bytes read by both ranks in a trial.
const READ: u64 = 32 * MIB;
/// Bytes that a device may carry beyond the processes' reads: metadata.
const BEYOND: u64 = MIB;

/// Scene with `count` disks, each with a file system: `disk0`, `disk1`.
fn disks(count: usize) -> Made<Scene> {
    let scene = Scene::new()?;
    for number in 0..count {
        let backing = noise(scene.folder().join(format!("backing{number}")), 192 * MIB)?;
        let device = loop_over(&scene, &backing, true)?;
        let name = format!("disk{number}");
        mounted_as(
            &scene,
            &name,
            &device,
            &["mkfs.ext4", "-q", "-F"],
            "noatime",
        )?;
    }
    Ok(scene)
}

/// A row per rank and measured trial, and a row per such trial; a skip where it cannot be measured here.
#[track_caller]
fn read_by_two(scene: &Scene, target: &str, cache: &str) -> Option<(Vec<[Value; 2]>, Vec<Value>)> {
    let region = format!("region={READ}");
    let cache = format!("cache={cache}");
    let mut arguments = vec!["--budget", "1ms"];
    for set in ["bs=64k", "time=none", "bytes=none", &region, &cache] {
        arguments.extend(["--set", set]);
    }
    let seen = unless_missing(on_two_ranks(scene, "read-size", target, &arguments))?;
    assert_eq!(seen.code, Some(0), "{}", seen.text);
    let export = ["export", "read-size.iolab", "--format", "json", "--ranks"];
    let ranks: Value = serde_json::from_str(&told(scene, &export)).expect("JSON");
    let ranks = ranks.as_array().expect("a list").iter();
    let ranks: Vec<&Value> = ranks.filter(|row| row["warmup"] == false).collect();
    let ranks = ranks
        .chunks_exact(2)
        .map(|two| [0, 1].map(|rank| two[rank].clone()));
    let whole: Vec<Value> = seen.measured().cloned().collect();
    let ranks: Vec<_> = ranks.collect();
    assert!(
        !whole.is_empty() && whole.len() == ranks.len(),
        "{}",
        seen.text
    );
    Some((ranks, whole))
}

/// Whether a device carried the bytes fetched for a number of reads, read-ahead included, and little else.
fn carried(device: &Value, fetched: &Value, read: u64) -> bool {
    let [Some(device), Some(fetched)] = [device, fetched].map(Value::as_u64) else {
        return false;
    };
    read <= fetched && (fetched..=fetched + BEYOND).contains(&device)
}

/// Each of two ranks on a host has a disk: each client has its own disk's account, and the trial has the sum of
/// both.
#[test]
fn disks_of_two_ranks_are_both_counted() {
    let _alone = alone();
    for cache in ["direct", "cold"] {
        let Some(scene) = unless_missing(disks(2)) else {
            return;
        };
        let Some((ranks, trials)) = read_by_two(&scene, "disk{rank}", cache) else {
            return;
        };
        for (ranks, whole) in ranks.iter().zip(&trials) {
            for own in ranks {
                let (device, fetched) = (
                    &own["client_device_read_bytes"],
                    &own["client_process_read_bytes"],
                );
                assert_eq!(own["read_bytes"], READ / 2, "{own}");
                assert_eq!(own["client_served_by"], "device", "{cache}: {own}");
                assert!(carried(device, fetched, READ / 2), "{cache}: {own}");
            }
            let [a, b] = ranks
                .each_ref()
                .map(|own| own["client_device_read_bytes"].as_u64());
            let sum = a.zip(b).map(|(a, b)| a + b);
            let (device, below) = (&whole["device_read_bytes"], &whole["bottom_read_bytes"]);
            assert_eq!(device.as_u64(), sum, "{cache}: {whole}");
            assert_eq!(whole["served_by"], "device", "{cache}: {whole}");
            // Both backing files are on one disk.
            assert!(below.as_u64() >= sum, "{cache}: {whole}");
            assert_eq!(&ranks[0]["client_bottom_read_bytes"], below, "{ranks:?}");
            assert_eq!(ranks[1]["client_bottom_read_bytes"], Value::Null);
        }
    }
}

/// Two ranks with folders on one disk: the disk's account covers both together, is stored once, and says so.
#[test]
fn a_disk_of_two_ranks_is_counted_once() {
    let _alone = alone();
    for cache in ["direct", "cold"] {
        let made = disks(1).and_then(|scene| {
            scene.subfolder("disk0/rank0")?;
            scene.subfolder("disk0/rank1")?;
            Ok(scene)
        });
        let Some(scene) = unless_missing(made) else {
            return;
        };
        let Some((ranks, trials)) = read_by_two(&scene, "disk0/rank{rank}", cache) else {
            return;
        };
        for ([first, second], whole) in ranks.iter().zip(&trials) {
            let (device, fetched) = (&whole["device_read_bytes"], &whole["process_read_bytes"]);
            assert!(carried(device, fetched, READ), "{cache}: {whole}");
            assert_eq!(&first["client_device_read_bytes"], device, "{first}");
            assert_eq!(second["client_device_read_bytes"], Value::Null);
            for own in [first, second, whole] {
                let name = |of: &str| match own == whole {
                    true => of.to_owned(),
                    false => format!("client_{of}"),
                };
                assert_eq!(own[name("served_by")], "device", "{cache}: {own}");
                let reason = own[name("served_by_reason")].as_str().unwrap_or_default();
                let told = "2 clients share the device, whose counters are stored with rank 0 only";
                assert_eq!(reason.ends_with(told), own != whole, "{own}");
            }
        }
    }
}
