//! Device time of a served model, which keeps its own ledger: below a loop device, and as a file.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use iolab_truth::device::loop_over;
use iolab_truth::iolab::{Seen, told};
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

/// Target of iolab on a served model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Above {
    Loop,
    File,
}

/// A served model and iolab's target on it.
fn served(above: Above) -> Made<(Scene, ServedModel, PathBuf)> {
    served_each(above, SLOW)
}

/// A served model with a given request time, and iolab's target on it.
fn served_each(above: Above, latency: Duration) -> Made<(Scene, ServedModel, PathBuf)> {
    let scene = Scene::new()?;
    let at = scene.subfolder("model")?;
    let latency = latency.as_micros();
    let model = format!(
        "title = \"each the same\"\nsource = []\n\
         [model.latency]\nread_us = {latency}\nwrite_us = {latency}\ninner.memory = 67_108_864\n"
    );
    std::fs::write(scene.folder().join("model.toml"), model).expect("a file");
    let model = ServedModel::begin(&scene, "model.toml", &at, &["--format", "json"])?;
    let target = match above {
        Above::Loop => loop_over(&scene, &model.file(), true)?,
        Above::File => model.file(),
    };
    Ok((scene, model, target))
}

/// Share of the time of all trials in which a thread of the machine waited for a CPU.
fn cpu_stall(seen: &Seen) -> f64 {
    seen.total("cpu_stall_ns") as f64 / seen.total("elapsed_ns") as f64
}

/// Compares the device's median with the model's ledger, which includes the model's own lateness.
#[track_caller]
fn agrees_with_the_ledger(above: Above) {
    let mut tried = Vec::new();
    for _ in 0..ATTEMPTS {
        let Some((scene, model, target)) = unless_missing(served(above)) else {
            return;
        };
        let Some(seen) = traced(&scene, &target, &["--depth", "1"]) else {
            return;
        };
        assert_eq!(seen.code, Some(0), "{}", seen.text);
        assert_eq!(seen.number("unjoined_share_max"), 0.0, "{}", seen.text);
        if above == Above::Loop {
            let detached = Command::new("losetup").arg("-d").arg(&target).status();
            assert!(detached.is_ok_and(|status| status.success()));
        }
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

#[test]
fn models_time_below_a_loop_is_the_devices() {
    let _alone = alone();
    agrees_with_the_ledger(Above::Loop);
}

#[test]
fn served_models_time_is_the_servers() {
    let _alone = alone();
    agrees_with_the_ledger(Above::File);
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
        let Some((scene, _model, device)) = unless_missing(served_each(Above::Loop, SLOWEST))
        else {
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

#[test]
fn what_a_server_carries_out_is_named_so() {
    let _alone = alone();
    let Some((scene, _model, file)) = unless_missing(served(Above::File)) else {
        return;
    };
    // Mixed requests of two threads, larger than one message of FUSE, with syncs.
    let more = [
        "--destroy-data", "--bs", "4M", "--time", "300ms", "--budget", "4s", "--set",
        "read_percent=50", "--set", "sync=each", "--threads", "2",
    ];
    let Some(seen) = traced_trials(&scene, &file, &more) else {
        return;
    };
    assert_eq!(seen.code, Some(0), "{}", seen.text);
    assert_eq!(seen.number("unjoined_share_max"), 0.0, "{}", seen.text);
    assert_eq!(seen.cell("trace_carrier"), "server");
    assert_eq!(seen.cell("trace_journal"), "hidden");
    assert!(seen.cell("stage_queue_mean_ns").is_null());
    assert!(seen.cell("stage_sync_journal_mean_ns").is_null());
    // Each takes 20 ms in the server, requests and syncs.
    for stage in ["device", "sync_flush"] {
        let mean = seen.number(&format!("stage_{stage}_mean_ns"));
        assert!(mean >= 20e6, "{mean} ns in {stage}");
    }
    let run = scene.folder().join("read-size.iolab").display().to_string();
    let rows = told(&scene, &["export", &run, "--stages", "--format", "json"]);
    let rows: Value = serde_json::from_str(&rows).expect("JSON");
    for row in rows.as_array().expect("rows") {
        assert_eq!(row["split_requests"], row["joined_requests"], "{row}");
        assert_eq!(row["device_flushes"], row["traced_syncs"], "{row}");
        assert_eq!(row["other_requests"], 0, "{row}");
    }
}

/// The messages of a thread are in the order of its requests, for any number of threads.
#[test]
fn concurrent_requests_are_distinguished_by_order() {
    let _alone = alone();
    let Some((scene, _model, file)) = unless_missing(served(Above::File)) else {
        return;
    };
    for (depth, more) in [
        // More than the kernel has in flight at a time.
        ("32", &["--bs", "4k"][..]),
        // Several messages per request.
        ("4", &["--bs", "2M"]),
        ("4", &["--bs", "4k", "--threads", "2"]),
    ] {
        let own = [
            "--depth", depth, "--set", "backend=libaio", "--time", "500ms",
        ];
        let Some(seen) = traced_trials(
            &scene,
            &file,
            &[&own[..], more, &["--budget", "6s"]].concat(),
        ) else {
            return;
        };
        assert_eq!(seen.code, Some(0), "{}", seen.text);
        assert_eq!(seen.number("unjoined_share_max"), 0.0, "{}", seen.text);
        let mean = seen.number("stage_device_mean_ns");
        assert!(mean >= 20e6, "{mean} ns");
        let run = scene.folder().join("read-size.iolab");
        std::fs::remove_file(run).expect("the next run has the same name");
    }
}

#[test]
fn requests_sent_by_other_threads_are_refused() {
    let _alone = alone();
    let Some((scene, _model, file)) = unless_missing(served(Above::File)) else {
        return;
    };
    for backend in ["backend=io_uring", "backend=pool"] {
        let Some(seen) = traced(&scene, &file, &["--depth", "8", "--set", backend]) else {
            return;
        };
        assert_eq!(seen.code, Some(2), "{}", seen.text);
        assert!(seen.says("name no offset"), "{}", seen.text);
        assert!(seen.samples.is_empty());
    }
}
