//! Device time of a served model, which keeps its own ledger, below a loop device.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use iolab_truth::device::loop_over;
use iolab_truth::iolab::Seen;
use iolab_truth::served::ServedModel;
use iolab_truth::system::unless_missing;
use iolab_truth::{Made, Scene};
use needs::Need;
use rustix::process::Signal;
use serde_json::Value;

use super::{traced, traced_trials};
use crate::stage::alone;

/// Time of every request and sync.
const SLOW: Duration = Duration::from_millis(20);
/// Long time of a request, next to which waits for a CPU are short.
const SLOWEST: Duration = Duration::from_millis(100);
/// Tolerance of the device's median against the model's ledger, as a share.
const OFF: f64 = 0.03;
/// Share of the time with threads waiting for a CPU that makes a machine busy: the way to the model and back is
/// then long.
const BUSY: f64 = 0.05;
/// Attempts on a busy machine.
const ATTEMPTS: usize = 5;

/// A served model with a given request time, and a loop device over it.
fn served(latency: Duration) -> Made<(Scene, ServedModel, PathBuf)> {
    let scene = Scene::new()?;
    let at = scene.subfolder("model")?;
    let latency = latency.as_micros();
    let model = format!(
        "title = \"each the same\"\nsource = []\n\
         [model.latency]\nread_us = {latency}\nwrite_us = {latency}\ninner.memory = 67_108_864\n"
    );
    std::fs::write(scene.folder().join("model.toml"), model).expect("a file");
    let model = ServedModel::begin(&scene, "model.toml", &at, &["--format", "json"])?;
    let device = loop_over(&scene, &model.file(), true)?;
    Ok((scene, model, device))
}

/// Share of the time of all trials in which a thread of the machine waited for a CPU.
fn cpu_stall(seen: &Seen) -> f64 {
    seen.total("cpu_stall_ns") as f64 / seen.total("elapsed_ns") as f64
}

/// Compares the device's median with the model's ledger, which includes the model's own lateness.
#[test]
fn models_time_below_a_loop_is_the_devices() {
    let _alone = alone();
    let mut tried = Vec::new();
    for _ in 0..ATTEMPTS {
        let Some((scene, model, target)) = unless_missing(served(SLOW)) else {
            return;
        };
        let Some(seen) = traced(&scene, &target, &["--depth", "1"]) else {
            return;
        };
        assert_eq!(seen.code, Some(0), "{}", seen.text);
        assert_eq!(seen.number("unjoined_share_max"), 0.0, "{}", seen.text);
        let detached = Command::new("losetup").arg("-d").arg(&target).status();
        assert!(detached.is_ok_and(|status| status.success()));
        model.signal(Signal::INT);
        let (_, out, _) = model.ended(&scene);
        let report: Value = serde_json::from_str(&out).expect("JSON");
        let of = |what: &str| report["all"][what]["p50"].as_f64().expect("a number");
        let ledger = of("service_ns") + of("lateness_ns");
        let median = seen.number("stage_device_p50_ns");
        if (median / ledger - 1.0).abs() <= OFF {
            return;
        }
        let stall = cpu_stall(&seen);
        assert!(
            stall > BUSY,
            "{median} of {ledger} ns, and threads wait for a CPU in {stall} of the time"
        );
        tried.push(median / ledger);
    }
    needs::skip(
        Need::Quiet,
        format_args!("the device's median was {tried:?} times that of the ledger"),
    );
}

/// Requests in flight of one thread, and the loop device's capacity for them.
const DEPTH: f64 = 200.0;
const TAGS: f64 = 128.0;

/// Requests beyond the device's capacity wait in the queue of its scheduler, or without a scheduler for a tag.
#[test]
fn excess_requests_wait_in_the_schedulers_queue() {
    let _alone = alone();
    for (scheduler, waits, other) in [
        ("mq-deadline", "queue", "admission"),
        ("none", "admission", "queue"),
    ] {
        let Some((scene, _model, device)) = unless_missing(served(SLOWEST)) else {
            return;
        };
        let name = device.file_name().expect("a device").to_owned();
        let queue = Path::new("/sys/block").join(name).join("queue");
        // The scheduler has room for all requests in flight, more than the device takes.
        let set =
            std::fs::write(queue.join("scheduler"), scheduler).and_then(|()| match scheduler {
                "none" => Ok(()),
                _ => std::fs::write(queue.join("nr_requests"), "256"),
            });
        if let Err(why) = set {
            return needs::skip(Need::Loop, format_args!("no scheduler {scheduler}: {why}"));
        }
        let depth = DEPTH.to_string();
        let more = [
            "--bs", "4k", "--time", "5s", "--budget", "11s", "--depth", &depth, "--set",
            "backend=libaio",
        ];
        let Some(seen) = traced_trials(&scene, &device, &more) else {
            return;
        };
        assert_eq!(seen.code, Some(0), "{}", seen.text);
        assert_eq!(seen.number("unjoined_share_max"), 0.0, "{}", seen.text);
        let mean = |stage| seen.number(&format!("stage_{stage}_mean_ns"));
        // Requests in flight beyond the tags wait (Little): 0.36 of the time before the device is done.
        let before = mean("admission") + mean("queue") + mean("device");
        let share = mean(waits) / before;
        let expected = 1.0 - TAGS / DEPTH;
        assert!(
            (0.5 * expected..1.5 * expected).contains(&share),
            "{scheduler}: {share} of the time in {waits}, not {expected}: {}",
            seen.text
        );
        assert!(
            mean(waits) > 3.0 * mean(other),
            "{scheduler}: {}",
            seen.text
        );
    }
}
