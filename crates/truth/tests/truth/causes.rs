//! `iolab why` with known causes: each planted alone, and differences that no suspect causes.

#![allow(clippy::print_stdout, reason = "the verdicts are part of the result")]

mod computer;
mod credits;
mod falls;
mod filling;
mod kernel;
mod real_time;
mod stalls;

use std::time::Duration;

use iolab_truth::Scene;
use iolab_truth::device::{limit_requests, loop_over};
use iolab_truth::fuse::{Behaviour, ChunkCache};
use iolab_truth::iolab::{claims, told, told_with_code};
use iolab_truth::system::unless_missing;
use serde_json::Value;

use crate::stage::alone;

/// A difference with a known cause.
struct World<'a> {
    /// Experiment that shows it, with its settings.
    shown_by: &'a [&'a str],
    /// Suspects that cause it.
    planted: &'a [&'a str],
    /// Time for the explanation.
    budget: &'a str,
    /// Additional arguments of the explanation.
    more: &'a [&'a str],
}

/// Random reads by threads that share a descriptor; each trial takes `time`.
fn threads_on_one_descriptor<'a>(
    backend: &'a str,
    region: &'a str,
    time: &'a str,
) -> [&'a str; 15] {
    [
        "why-serialised", "--set", "workload=RR", "--set", backend, "--set", "descriptors=shared",
        "--set", "layout=shared", "--set", region, "--time", time, "--budget", "10s",
    ]
}

/// Random against sequential reads of 64 KiB; each trial takes `time`.
fn random_against_sequential(time: &str) -> [&str; 13] {
    [
        "read-size", "--set", "pattern=seq,rand", "--set", "bs=64k", "--set", "region=64M",
        "--set", "bytes=none", "--time", time, "--budget", "10s",
    ]
}

/// Kinds of claims that accuse a suspect.
const ACCUSED: [&str; 3] = ["cause", "joint-cause", "contributes"];

/// Suspects of each claim of a run, with its kind.
fn verdicts(all: &[Value]) -> Vec<(String, String)> {
    let of_claim = |claim: &Value| {
        let kind = claim["kind"].as_str().unwrap_or_default().to_owned();
        let points = claim["points"].as_array().cloned().unwrap_or_default();
        let suspects = points.into_iter().filter_map(|point| {
            let suspects = point["suspects"].as_array()?.clone();
            (kind != "phenomenon" && suspects.len() == 1).then_some(suspects)
        });
        let names = suspects.filter_map(|one| Some(one[0].as_str()?.to_owned()));
        names.map(|name| (name, kind.clone())).collect::<Vec<_>>()
    };
    all.iter().flat_map(of_claim).collect()
}

/// Measures a difference on a scene's target and explains it: exactly the planted suspects must be named.
fn explain(scene: &Scene, world: &World<'_>) -> Vec<Value> {
    explain_beside(scene, world, &[])
}

/// As [`explain`], with suspects that may contribute on some machines.
fn explain_beside(scene: &Scene, world: &World<'_>, possible: &[&str]) -> Vec<Value> {
    let target = scene.target.display().to_string();
    let (experiment, sets) = world.shown_by.split_first().expect("an experiment");
    let mut words = vec![
        "run", experiment, &target, "-o", "shown.iolab", "--seed", "5",
    ];
    words.extend(sets);
    let shown = told(scene, &words);
    let why = [
        "why", "shown.iolab", "--budget", world.budget, "--seed", "6", "-o", "why.iolab",
    ];
    let (code, said) = told_with_code(scene, &[&why[..], world.more].concat());
    let all = claims(scene, "why.iolab");
    if all.is_empty() {
        // If nothing is planted, a lack of time for a suspect names none either: nothing is measured, and the
        // output says why.
        let is_measured = scene.folder().join("why.iolab").exists();
        let plain: Vec<&str> = said.split_whitespace().collect();
        let is_told = plain
            .join(" ")
            .contains("no suspect can be removed; not tried: ");
        assert!(
            world.planted.is_empty() && code == Some(5) && !is_measured && is_told,
            "{code:?}\n{shown}\n{said}"
        );
    }
    let verdicts = verdicts(&all);
    println!("planted {:?}: {verdicts:?}", world.planted);
    let accused = |name: &str| {
        let mut found = verdicts.iter();
        found.any(|(suspect, verdict)| suspect == name && ACCUSED.contains(&verdict.as_str()))
    };
    for name in world.planted {
        assert!(accused(name), "{name}: {said}");
    }
    for (suspect, verdict) in &verdicts {
        let mut innocent = !world.planted.contains(&suspect.as_str());
        innocent &= !possible.contains(&suspect.as_str());
        assert!(
            !innocent || !accused(suspect),
            "{suspect} {verdict}: {said}"
        );
    }
    all
}

/// As [`explain`] on the file of a server; a skip where it cannot be served.
#[track_caller]
fn explain_served(behaviour: Behaviour, world: &World<'_>) -> Option<Vec<Value>> {
    explain_served_beside(behaviour, world, &[])
}

/// As [`explain_served`], with suspects that may contribute on some machines.
#[track_caller]
fn explain_served_beside(
    behaviour: Behaviour,
    world: &World<'_>,
    possible: &[&str],
) -> Option<Vec<Value>> {
    let _alone = alone();
    let scene = unless_missing(Scene::on_fuse(behaviour))?;
    Some(explain_beside(&scene, world, possible))
}

/// Explains the lack of speed-up of threads on one descriptor of a server, with no suspect as the cause; each
/// trial takes `time`.
#[track_caller]
fn explain_threads_without_suspect(behaviour: Behaviour, time: &str) -> Option<Vec<Value>> {
    let world = World {
        shown_by: &threads_on_one_descriptor("backend=psync", "region=32M", time),
        planted: &[],
        budget: "60s",
        more: &[],
    };
    explain_served(behaviour, &world)
}

/// Share of the difference that remains without all suspects; `None` if it is unknown.
fn unexplained(all: &[Value]) -> Option<f64> {
    let mut points = all.first()?["points"].as_array()?.iter();
    let rest = points.find(|point| point["standing"] == "unexplained")?;
    rest["value"].as_f64()
}

/// A server that holds each request for half a millisecond, several at once.
fn parallel() -> Behaviour {
    Behaviour {
        delay: |_| Duration::from_micros(500),
        ..Behaviour::default()
    }
}

/// A server with a cache of 8 MiB in front of a store that takes 2 ms per MiB.
fn cached() -> Behaviour {
    Behaviour {
        bytes: 64 << 20,
        delay: |_| Duration::from_micros(250),
        cache: Some(ChunkCache {
            chunk: 1 << 20,
            holds: 8,
            fetch: Duration::from_millis(2),
            serial: false,
        }),
        ..Behaviour::default()
    }
}

/// A server with a cache in front of a slower store that serves one request at a time.
fn cached_before_a_queue() -> Behaviour {
    let mut behaviour = cached();
    if let Some(cache) = &mut behaviour.cache {
        cache.serial = true;
        cache.fetch = Duration::from_millis(10);
    }
    behaviour
}

#[test]
fn page_faults_of_untouched_buffers_are_named() {
    let _alone = alone();
    let Some(scene) = unless_missing(Scene::in_memory()) else {
        return;
    };
    let world = World {
        shown_by: &[
            "buffer-size", "--set", "bs=64k,16M", "--set", "buffer_init=untouched", "--budget",
            "20s",
        ],
        planted: &["page-faults"],
        budget: "60s",
        more: &[],
    };
    // 16 MiB exceed the caches of some processors, and 64 KiB do not: 23 % (19 to 29 %) of the difference on
    // one machine.
    explain_beside(&scene, &world, &["buffer-footprint"]);
}

#[test]
fn a_shared_descriptor_is_named() {
    let world = World {
        shown_by: &threads_on_one_descriptor("backend=sync", "region=32M", "60ms"),
        planted: &["shared-descriptor"],
        budget: "60s",
        more: &[],
    };
    explain_served(parallel(), &world);
}

#[test]
fn cache_smaller_than_the_region_is_named() {
    let world = World {
        shown_by: &random_against_sequential("150ms"),
        planted: &["reach"],
        budget: "90s",
        more: &[],
    };
    // A request takes 375 us in order and 2 ms at random, which with 16 in flight makes 43 and 8 per
    // millisecond. The former exceeds a server on two CPUs, so the server and not the cache decides a part of
    // the rest. Two CPUs gave 24 % to 26 %.
    explain_served_beside(cached(), &world, &["waiting"]);
}

/// Threads wait for each other at their descriptor, and at the store after the cache. Either suffices, so
/// neither shows alone.
#[test]
fn two_that_hide_each_other_are_named_together() {
    let world = World {
        shown_by: &threads_on_one_descriptor("backend=sync", "region=64M", "200ms"),
        planted: &["shared-descriptor", "reach"],
        budget: "90s",
        more: &[],
    };
    let Some(all) = explain_served(cached_before_a_queue(), &world) else {
        return;
    };
    let joint = verdicts(&all);
    let joint = joint.iter().filter(|(_, verdict)| verdict == "joint");
    assert_eq!(joint.count(), 2, "{all:?}");
}

/// A server of one request at a time below a loop device that splits requests of 68 KiB in two.
#[test]
fn a_limit_of_requests_is_named() {
    let _alone = alone();
    let behaviour = Behaviour {
        delay: |_| Duration::from_millis(5),
        serial: true,
        ..Behaviour::default()
    };
    let split = Scene::on_fuse(behaviour).and_then(|scene| {
        let device = loop_over(&scene, &scene.target, true)?;
        limit_requests(&scene, &device, 64)?;
        Ok(scene.on(device))
    });
    let Some(scene) = unless_missing(split) else {
        return;
    };
    let world = World {
        shown_by: &[
            "read-size", "--direct", "--set", "bs=64k,68k", "--set",
            // Rules out read-ahead and few requests in flight as suspects.
            "pattern=reverse", "--set", "backend=libaio", "--depth", "5", "--time", "100ms",
            "--budget", "25s",
        ],
        planted: &["request-limit"],
        budget: "90s",
        more: &["--change-system"],
    };
    explain(&scene, &world);
    let queue = scene
        .target
        .display()
        .to_string()
        .replace("/dev/", "/sys/block/")
        + "/queue";
    let limit = std::fs::read_to_string(queue + "/max_sectors_kb");
    assert_eq!(limit.expect("readable").trim(), "64");
}
