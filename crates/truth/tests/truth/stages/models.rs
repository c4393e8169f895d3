//! The device's time of a served model, which keeps a ledger of its own: below a loop device, and as a file.

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

/// What every request takes, and every sync.
const SLOW: Duration = Duration::from_millis(20);
/// So long that what threads wait for a CPU is little beside it.
const SLOWEST: Duration = Duration::from_millis(100);
/// Share by which the device's median may be off the ledger of the model.
const OFF: f64 = 0.03;
/// Share of the time in which threads wait for a CPU that makes a machine busy: the way to the model and back takes long then.
const BUSY: f64 = 0.05;
/// How often a busy machine is tried.
const ATTEMPTS: usize = 5;

/// What iolab measures on a served model.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Above {
    Loop,
    File,
}

/// A served model and what of it iolab measures.
fn served(above: Above) -> Made<(Scene, ServedModel, PathBuf)> {
    served_each(above, SLOW)
}

/// The same with requests that take so long.
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

/// Holds the device's median to the ledger of the model, which includes how late it was itself.
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
fn the_time_of_a_model_below_a_loop_device_is_the_devices() {
    let _alone = alone();
    agrees_with_the_ledger(Above::Loop);
}

#[test]
fn the_time_of_a_served_model_is_the_servers() {
    let _alone = alone();
    agrees_with_the_ledger(Above::File);
}

/// Requests in flight of one thread, and how many of them the loop device takes.
const DEPTH: f64 = 200.0;
const TAGS: f64 = 128.0;

/// What a device has no room for waits in the queue of its scheduler, or without one for a tag.
#[test]
fn what_a_device_has_no_room_for_waits_in_the_queue_of_its_scheduler() {
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
        // As many as are in flight have room in the scheduler, more than the device takes.
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
        // Of the requests in flight, those beyond the tags wait (Little): 0.36 of the time before the device is done.
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

/// The messages of a thread are in the order of its requests, of as many threads as there are.
#[test]
fn several_requests_at_a_time_of_a_thread_are_told_apart_by_their_order() {
    let _alone = alone();
    let Some((scene, _model, file)) = unless_missing(served(Above::File)) else {
        return;
    };
    for (depth, more) in [
        // More than the kernel has on their way at a time.
        ("32", &["--bs", "4k"][..]),
        // Of several messages each.
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
fn requests_that_other_threads_send_are_refused_with_the_reason() {
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
