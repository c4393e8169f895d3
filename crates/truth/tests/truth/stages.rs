//! Time by layer: a delay shows in its own stage, and in no other.

mod models;

use std::path::{Path, PathBuf};

use iolab_truth::device::loop_over;
use iolab_truth::files::{MIB, noise};
use iolab_truth::iolab::{Seen, claims, run};
use iolab_truth::neighbours::CgroupLimit;
use iolab_truth::system::unless_missing;
use iolab_truth::{Made, Scene, real_time};
use serde_json::Value;

use crate::stage::alone;

/// Requests per second within the limit, and their size, bytes.
const LIMIT: u64 = 200;
const BLOCK: u64 = 4096;

/// Small requests, in a few short trials.
const SMALL: [&str; 6] = ["--bs", "4k", "--time", "300ms", "--budget", "4s"];

/// Runs traced random reads on a path; `None`, and a skip, where that is impossible.
#[track_caller]
fn traced(scene: &Scene, target: &Path, more: &[&str]) -> Option<Seen> {
    traced_trials(scene, target, &[&SMALL, more].concat())
}

/// As [`traced`], with a given request size and trial length.
#[track_caller]
fn traced_trials(scene: &Scene, target: &Path, more: &[&str]) -> Option<Seen> {
    if !needs::root() {
        return None;
    }
    let target = target.display().to_string();
    let own = [
        "--size", "8M", "--set", "pattern=rand", "--set", "trace=true",
    ];
    Some(run(scene, "read-size", &target, &[&own[..], more].concat()))
}

/// A loop device over a file of noise, past the page cache.
fn device() -> Made<(Scene, PathBuf)> {
    let scene = Scene::new()?;
    let file = noise(scene.folder().join("backing"), 16 * MIB)?;
    let device = loop_over(&scene, &file, true)?;
    Ok((scene, device))
}

#[test]
fn a_limit_of_the_control_group_is_admission() {
    let _alone = alone();
    let limited = device().and_then(|(mut scene, device)| {
        let limit = CgroupLimit::new(&scene.keeper, &device, LIMIT * BLOCK)?;
        scene.limit = Some(limit);
        Ok((scene, device))
    });
    let Some((scene, device)) = unless_missing(limited) else {
        return;
    };
    let Some(seen) = traced(&scene, &device, &[]) else {
        return;
    };
    let admission = seen.number("stage_admission_mean_ns");
    // A limit allows bursts, so some trials are not throttled all the time.
    let whole = 1e9 / LIMIT as f64;
    assert!(admission > 0.2 * whole, "{admission} of {whole} ns");
    // On a busy machine the wait for a CPU may be long too; the device and its queue are not.
    for stage in ["queue", "device"] {
        let other = seen.number(&format!("stage_{stage}_mean_ns"));
        assert!(
            admission > 2.0 * other,
            "{admission} and {other} ns in {stage}"
        );
    }
    assert_eq!(seen.number("unjoined_share_max"), 0.0);
}

/// CPU shared by iolab and the spinning thread.
const CPU: usize = 0;
/// Script that takes the CPU about half of the time, in pieces of some milliseconds.
const SPIN: &str =
    "while :; do i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sleep 0.005; done";

#[test]
fn realtime_threads_cause_a_wait_for_the_cpu() {
    let _alone = alone();
    let Some((scene, device)) = unless_missing(device()) else {
        return;
    };
    let spinner = real_time::start(&scene.keeper, 50, CPU, SPIN);
    let Some(mut spinner) = unless_missing(spinner) else {
        return;
    };
    let cpus = format!("cpus={CPU}");
    // As many requests as a claim about the slowest needs, however busy the machine is.
    let more = [
        "--bs", "4k", "--set", "bytes=1600k", "--time", "20s", "--budget", "25s", "--set", &cpus,
    ];
    let seen = traced_trials(&scene, &device, &more);
    spinner.kill().expect("it runs");
    spinner.wait().expect("it ends");
    let Some(seen) = seen else {
        return;
    };
    let wait = seen.number("stage_cpu_wait_tail_share");
    assert!(wait > 0.5, "{wait}");
    // A claim says so as well.
    let claims = claims(&scene, "read-size.iolab");
    let of_time: Vec<&Value> = claims
        .iter()
        .filter(|claim| claim["kind"] == "time-by-layer")
        .collect();
    assert_eq!(of_time.len(), 1, "{claims:?}");
    let points = of_time[0]["points"].as_array().expect("points");
    let slowest = points.iter().find(|point| point["standing"] == "slowest");
    assert_eq!(
        slowest.expect("a tail")["quantity"],
        "cpu-wait",
        "{of_time:?}"
    );
    assert!(
        seen.says(" %) waiting for a CPU after the work of the device"),
        "{}",
        seen.text
    );
}
