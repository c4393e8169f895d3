//! Other programs' real-time threads that keep CPUs from the trials.

use std::process::Child;
use std::sync::RwLockWriteGuard;

use iolab_truth::iolab::run;
use iolab_truth::system::unless_missing;
use iolab_truth::{Scene, real_time};
use needs::Need;

use super::{World, explain};
use crate::stage::alone;

/// A folder in memory, so that trials wait only for CPUs, and busy real-time threads on all CPUs but the first.
struct Busy {
    scene: Scene,
    spinners: Vec<Child>,
    _alone: RwLockWriteGuard<'static, ()>,
}

impl Busy {
    /// A skip where that is impossible.
    #[track_caller]
    fn new() -> Option<Self> {
        /// Above ordinary threads, below the intervention's threads.
        const PRIORITY: u32 = 20;
        let alone = alone();
        if !needs::root() {
            return None;
        }
        let scene = unless_missing(Scene::in_memory())?;
        let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get());
        if cpus < 2 {
            needs::skip(Need::Cpus, "one CPU leaves none for others");
            return None;
        }
        let spin = |cpu| real_time::start(&scene.keeper, PRIORITY, cpu, "while :; do :; done");
        Some(Self {
            spinners: unless_missing((1..cpus).map(spin).collect())?,
            scene,
            _alone: alone,
        })
    }

    /// Number of CPUs, one of which stays free.
    fn cpus(&self) -> usize {
        self.spinners.len() + 1
    }

    /// Ends the threads.
    fn end(self) {
        for mut spinner in self.spinners {
            spinner.kill().expect("it runs");
            spinner.wait().expect("it ends");
        }
    }
}

/// Arguments of a run whose threads share only CPUs, with further settings.
fn with_settings<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let private = [
        "workload=RR", "backend=psync", "descriptors=private", "layout=private", "bs=64k",
        "cache=hot", "region=4M",
    ];
    let sets = private.iter().chain(more);
    let sets = sets.flat_map(|setting| ["--set", *setting]);
    std::iter::once("--change-system").chain(sets).collect()
}

/// Two threads per CPU, of which spinners leave one free. Without spinners all CPUs run threads, and half of
/// the threads still wait for the others. All are real-time threads, so that other programs on the last CPU
/// make no difference.
#[test]
fn real_time_threads_of_others_are_named() {
    let Some(busy) = Busy::new() else { return };
    let threads = format!("threads=1,{}", 2 * busy.cpus());
    let settings = with_settings(&["realtime=10", "trials_min=12", "trials_max=12", &threads]);
    let short = ["--time", "60ms", "--budget", "20s"];
    let world = World {
        shown_by: &[&["why-serialised"], &settings[..], &short].concat(),
        planted: &["cpu-waiting"],
        budget: "60s",
        more: &["--change-system"],
    };
    explain(&busy.scene, &world);
    busy.end();
}

/// Intervention against `cpu-waiting` on a modifiable system: threads above other programs' real-time threads,
/// which no nice value achieves.
#[test]
fn threads_come_before_real_time_threads_of_others() {
    let Some(busy) = Busy::new() else { return };
    let threads = busy.cpus().to_string();
    // Both above ordinary threads, so that these make no difference; one below the spinning threads, one above.
    let settings = with_settings(&["realtime=10,50"]);
    let short = ["--threads", &threads, "--time", "60ms", "--budget", "4s"];
    let target = busy.scene.target.display().to_string();
    let arguments = [&settings[..], &short].concat();
    let seen = run(&busy.scene, "why-serialised", &target, &arguments);
    busy.end();
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
