//! Real-time threads of others that keep CPUs from the trials.

use std::process::Child;

use iolab_truth::Scene;
use iolab_truth::iolab::run;
use iolab_truth::real_time;
use iolab_truth::system::unless_missing;
use needs::Need;

use super::{World, explain};
use crate::stage::alone;

/// A folder in memory, so that trials wait for CPUs and nothing else.
fn in_memory() -> Option<Scene> {
    let scene = || {
        let scene = Scene::new()?;
        let folder = scene.folder_in_memory()?;
        Ok(scene.on(folder))
    };
    unless_missing(scene())
}

/// Ends threads that spin.
fn end(spinners: Vec<Child>) {
    for mut spinner in spinners {
        spinner.kill().expect("it runs");
        spinner.wait().expect("it ends");
    }
}

/// Two threads for each CPU, of which spinners leave one: without them all CPUs run threads, and half of the threads still wait for the others.
/// All are real-time threads, so that those of other programs, which may have the last CPU too, make no difference.
#[test]
fn real_time_threads_of_others_are_named() {
    let _alone = alone();
    if !needs::root() {
        return;
    }
    let Some(scene) = in_memory() else {
        return;
    };
    let Some(spinners) = busy_but_one(&scene) else {
        return;
    };
    let threads = format!("threads=1,{}", 2 * (spinners.len() + 1));
    let settings = [
        "workload=RR",
        "backend=psync",
        "descriptors=private",
        "layout=private",
        "bs=64k",
        "cache=hot",
        "region=4M",
        "realtime=10",
        "trials_min=12",
        "trials_max=12",
        &threads,
    ];
    let sets = settings.iter().flat_map(|setting| ["--set", *setting]);
    let shown_by: Vec<&str> = ["why-serialised", "--change-system"]
        .into_iter()
        .chain(sets)
        .chain(["--time", "60ms", "--budget", "20s"])
        .collect();
    let world = World {
        shown_by: &shown_by,
        planted: &["cpu-waiting"],
        budget: "60s",
        more: &["--change-system"],
    };
    explain(&scene, &world);
    end(spinners);
}

/// Busy real-time threads on all CPUs but the first; a skip where they cannot be had.
fn busy_but_one(scene: &Scene) -> Option<Vec<Child>> {
    /// Above ordinary threads, below those of the intervention.
    const PRIORITY: u32 = 20;
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
    if cpus < 2 {
        needs::skip(Need::Cpus, "one CPU leaves none for others");
        return None;
    }
    let spin = |cpu| real_time::start(&scene.keeper, PRIORITY, cpu, "while :; do :; done");
    unless_missing((1..cpus).map(spin).collect())
}

/// What takes away `cpu-waiting` on a system that may be changed: threads before the real-time threads of others, which no nice value is.
#[test]
fn threads_come_before_real_time_threads_of_others() {
    let _alone = alone();
    if !needs::root() {
        return;
    }
    let Some(scene) = in_memory() else {
        return;
    };
    let Some(spinners) = busy_but_one(&scene) else {
        return;
    };
    let threads = (spinners.len() + 1).to_string();
    let settings = [
        "workload=RR",
        "backend=psync",
        "descriptors=private",
        "layout=private",
        "bs=64k",
        "cache=hot",
        "region=4M",
        // Both before ordinary threads, so that these make no difference; after those that spin, and before them.
        "realtime=10,50",
    ];
    let sets = settings.iter().flat_map(|setting| ["--set", *setting]);
    let sets = std::iter::once("--change-system").chain(sets);
    let short = ["--threads", &threads, "--time", "60ms", "--budget", "4s"];
    let arguments: Vec<&str> = sets.chain(short).collect();
    let target = scene.target.display().to_string();
    let seen = run(&scene, "why-serialised", &target, &arguments);
    end(spinners);
    assert_eq!(seen.code, Some(0), "{}", seen.text);
    let [after, before] = ["10", "50"].map(|priority| {
        let mut cells = seen.cells.iter();
        let own = cells.find(|cell| cell["level_realtime"] == priority);
        own.and_then(|cell| cell["iops_median"].as_f64())
            .unwrap_or_else(|| panic!("no cell of {priority}: {}", seen.text))
    });
    // One CPU before, all of them now.
    assert!(before > 1.4 * after, "{before} {after}: {}", seen.text);
}
