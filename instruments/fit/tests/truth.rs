//! `iolab fit` on targets with known sync times: yes, no, cannot tell.

use std::path::PathBuf;
use std::time::Duration;

use iolab_truth::device::{loop_over, mounted};
use iolab_truth::files::{MIB, hole};
use iolab_truth::fuse::{Behaviour, Ledger, Mounted};
use iolab_truth::iolab::{Answered, fit};
use iolab_truth::neighbours::CgroupLimit;
use iolab_truth::system::unless_missing;
use iolab_truth::{Made, Scene};
use needs::Need;

use crate::stage::alone;

/// Exit codes.
const NO: Option<i32> = Some(4);
const CANNOT_TELL: Option<i32> = Some(5);

/// A user's own log, with levels for each part of the distribution.
const MINE: &str = r#"
name = "mine"
question = "Is it good enough for me?"
not = "anything else"
hold = "8s"
[[workload]]
name = "log"
settings = { read_percent = 0, bs = "64KiB", sync = "SYNC", cache = "direct", region = "32MiB", time = "200ms" }
"#;

const LEVEL: &str = r#"
[[workload.level]]
level = "LEVEL"
source = "not documented"
remedy = "another target"
"#;

fn mine(scene: &Scene, sync: &str, levels: &[&str]) {
    let mut text = MINE.replace("SYNC", sync);
    for level in levels {
        text.push_str(&LEVEL.replace("LEVEL", level));
    }
    std::fs::write(scene.folder().join("mine.toml"), text).expect("the scene's folder is ours");
}

/// Answer and the target's own observations; a skip if the target cannot be made.
#[track_caller]
fn asked(behaviour: Behaviour, ask: impl FnOnce(&Scene) -> Answered) -> Option<(Answered, Ledger)> {
    let _alone = alone();
    let scene = unless_missing(Scene::on_fuse(behaviour))?;
    let answered = ask(&scene);
    let ledger = scene.fuse.as_ref().map(Mounted::ledger);
    Some((answered, ledger.unwrap_or_default()))
}

fn held_for(delay: fn(u64, u64) -> Duration) -> Behaviour {
    Behaviour {
        sync_delay: delay,
        ..Behaviour::default()
    }
}

/// Correct answer to `syncs.p99<10ms`, by the target's own observations: on a busy machine it holds syncs too
/// long. `None` if that is too close to a change of the answer.
fn truth(ledger: &Ledger) -> Option<&'static str> {
    let (below, above) = (
        ledger.sync_quantile_ms(0.98),
        ledger.sync_quantile_ms(0.996),
    );
    if above < 9.2 {
        Some("yes")
    } else if below > 10.7 {
        Some("no")
    } else if below > 9.6 && above < 10.3 {
        Some("cannot tell")
    } else {
        None
    }
}

#[track_caller]
fn is_about_etcd(delay: fn(u64, u64) -> Duration) {
    let found = asked(held_for(delay), |scene| {
        fit(scene, "etcd", &["--for", "10s"])
    });
    let Some((found, ledger)) = found else { return };
    let level = &found.json["workloads"][0]["levels"][0];
    assert_eq!(level["level"], "syncs.p99<10ms", "{}", found.text);
    let Some(answer) = truth(&ledger) else {
        let [some, few] = [0.98, 0.996].map(|share| ledger.sync_quantile_ms(share));
        let held = "the target held 2 % of the syncs for";
        let held = format!("{held} {some:.1} ms, 0.4 % for {few:.1} ms");
        return needs::skip(Need::Quiet, held);
    };
    assert_eq!(level["as_measured"], answer, "{}", found.text);
    is_concluded(&found);
}

/// Checks the conclusions from levels and doubts: on a target without a visible device there is no yes, and a
/// no only on an undisturbed machine.
#[track_caller]
fn is_concluded(found: &Answered) {
    let levels = found.json["workloads"][0]["levels"].as_array();
    let mut all = Vec::new();
    for level in levels.expect("levels") {
        let turned = level["turned_by"].as_array().map_or(0, Vec::len);
        let expected = match level["as_measured"].as_str() {
            Some("no") if turned == 0 => "no",
            _ => "cannot tell",
        };
        assert_eq!(level["answer"], expected, "{}", found.text);
        all.push(expected);
    }
    let code = match all.contains(&"no") {
        true => NO,
        false => CANNOT_TELL,
    };
    assert_eq!(found.code, code, "{}", found.text);
}

#[test]
fn syncs_of_8_ms_suffice_for_etcd() {
    is_about_etcd(|_, _| Duration::from_millis(8));
}

#[test]
fn syncs_of_10_ms_leave_it_open() {
    is_about_etcd(|_, _| Duration::from_millis(10));
}

#[test]
fn syncs_of_12_ms_are_not() {
    is_about_etcd(|_, _| Duration::from_millis(12));
}

#[test]
fn tail_of_one_percent_shows_at_its_quantile() {
    let tail = |number: u64, _| match number % 100 {
        99 => Duration::from_millis(50),
        _ => Duration::from_millis(2),
    };
    let levels = ["syncs.p50<10ms", "syncs.p99<10ms", "syncs.p99.9<10ms"];
    let found = asked(held_for(tail), |scene| {
        mine(scene, "fdatasync", &levels);
        fit(scene, "mine.toml", &[])
    });
    let Some((found, ledger)) = found else { return };
    let answers: Vec<&str> = (0..3)
        .filter_map(|i| found.json["workloads"][0]["levels"][i]["as_measured"].as_str())
        .collect();
    assert_eq!((answers[0], answers[2]), ("yes", "no"), "{}", found.text);
    is_concluded(&found);
    // Unless the machine slowed more of them down.
    if ledger.sync_quantile_ms(0.985) < 9.0 {
        assert_eq!(answers[1], "cannot tell", "{}", found.text);
    }
}

#[test]
fn level_that_does_not_last_does_not_hold() {
    let step = |_, written: u64| match written < 48 * MIB {
        true => Duration::from_millis(2),
        false => Duration::from_millis(15),
    };
    let found = asked(held_for(step), |scene| {
        mine(scene, "fdatasync", &["syncs.p99<10ms"]);
        fit(scene, "mine.toml", &[])
    });
    let Some((found, _)) = found else { return };
    let level = &found.json["workloads"][0]["levels"][0];
    assert_eq!(level["as_measured"], "no", "{}", found.text);
    is_concluded(&found);
    let change = &found.json["workloads"][0]["levels"][0]["change"];
    // A busy machine can hide the position of the change, but not the missed level.
    let Some(bytes) = change["after_bytes"].as_u64() else {
        return needs::skip(Need::Quiet, "the change was not found");
    };
    // The warm-up trial is not counted: it writes for 200 ms, about 2.2 ms each.
    assert!((36 * MIB..=52 * MIB).contains(&bytes), "{}", found.text);
    let ms = |name: &str| change[name].as_f64().expect("a time") / 1e6;
    assert!((2.0..9.0).contains(&ms("from")) && (15.0..25.0).contains(&ms("to")));
}

#[test]
fn target_that_may_lie_never_suffices() {
    let lies = Behaviour {
        volatile: true,
        ..Behaviour::default()
    };
    // With fdatasync this server keeps acknowledged data.
    for sync in ["none", "odsync"] {
        let found = asked(lies.clone(), |scene| {
            mine(scene, sync, &["writes.p99<1s"]);
            fit(scene, "mine.toml", &[])
        });
        let Some((found, _)) = found else { return };
        assert_eq!(found.code, CANNOT_TELL, "{sync}: {}", found.text);
        let doubts = found.json["workloads"][0]["doubts"].as_array();
        assert!(
            doubts.is_some_and(|doubts| !doubts.is_empty()),
            "{sync}: {}",
            found.text
        );
    }
}

/// A small file system with direct I/O on a loop device over memory.
fn on_memory(scene: &Scene) -> Made<PathBuf> {
    let backing = hole(scene.folder_in_memory()?.join("backing"), 200 * MIB)?;
    let device = loop_over(scene, &backing, true)?;
    mounted(scene, &device, &["mkfs.ext4", "-qF"], "noatime")
}

#[test]
fn memory_below_a_loop_device_never_suffices() {
    let _alone = alone();
    let made = Scene::new().and_then(|scene| {
        let folder = on_memory(&scene)?;
        Ok(scene.on(folder))
    });
    let Some(scene) = unless_missing(made) else {
        return;
    };
    let found = fit(&scene, "etcd", &["--for", "8s"]);
    assert_eq!(found.code, CANNOT_TELL, "{}", found.text);
    let doubts = found.json["workloads"][0]["doubts"].to_string();
    assert!(doubts.contains("served_by"), "{doubts}");
    // The loop device counts the flushes that it passes on.
    assert!(!doubts.contains("never_flushed"), "{doubts}");
}

#[test]
fn control_group_limit_causes_a_no() {
    let _alone = alone();
    let made = Scene::new().and_then(|mut scene| {
        let backing = hole(scene.folder_in_memory()?.join("backing"), 200 * MIB)?;
        let device = loop_over(&scene, &backing, true)?;
        scene.limit = Some(CgroupLimit::writes(&scene.keeper, &device, 60)?);
        let folder = mounted(&scene, &device, &["mkfs.ext4", "-qF"], "noatime")?;
        Ok(scene.on(folder))
    });
    let Some(scene) = unless_missing(made) else {
        return;
    };
    let found = fit(&scene, "etcd", &["--for", "8s"]);
    assert_eq!(found.code, NO, "{}", found.text);
    let level = &found.json["workloads"][0]["levels"][0];
    assert_eq!(level["cause"]["what"], "wiops", "{}", found.text);
    assert_eq!(level["cause"]["per_second"], 60, "{}", found.text);
    // A faster disk, which is the remedy of most levels, would not help.
    assert_eq!(
        level["remedy"],
        "raise the limit: another disk does not help"
    );
}

#[test]
fn memory_is_never_good_enough() {
    let _alone = alone();
    let Some(scene) = unless_missing(Scene::in_memory()) else {
        return;
    };
    let found = fit(&scene, "etcd", &["--for", "8s"]);
    assert_eq!(found.code, CANNOT_TELL, "{}", found.text);
    assert!(found.text.contains("not-storage"), "{}", found.text);
}
