//! Kernel activity between a read and the device: read-ahead into the page cache, and the I/O scheduler.

use std::path::Path;
use std::time::Duration;

use iolab_truth::Scene;
use iolab_truth::device::loop_over;
use iolab_truth::fuse::Behaviour;
use iolab_truth::system::{Made, failed, unless_missing};

use super::falls::mounted_over;
use super::{World, explain, explain_served, parallel};
use crate::stage::alone;

/// Buffered reads of few parts of a large file, from a server of several requests at once. For sequential
/// reads, the kernel asks ahead of the program.
#[test]
fn read_ahead_of_the_kernel_is_named() {
    let behaviour = Behaviour {
        bytes: 512 << 20,
        cached: true,
        ..parallel()
    };
    let world = World {
        shown_by: &[
            "read-size", "--set", "pattern=seq,rand", "--set", "bs=4k", "--set", "region=512M",
            "--set", "cache=cold",
            // A 64th of the region is four times as much, so few reads find data of an earlier one in the page
            // cache.
            "--set", "bytes=2M", "--budget", "20s",
        ],
        planted: &["host-read-ahead"],
        budget: "90s",
        more: &[],
    };
    explain_served(behaviour, &world);
}

/// A loop device with these queue settings, over a server of several requests at once, 1 ms each.
fn device_with(settings: &[(&str, &str)]) -> Made<Scene> {
    let behaviour = Behaviour {
        bytes: 512 << 20,
        delay: |_| Duration::from_millis(1),
        ..Behaviour::default()
    };
    let scene = Scene::on_fuse(behaviour)?;
    let device = loop_over(&scene, &scene.target, true)?;
    let name = device.file_name().expect("a device").to_owned();
    let queue = Path::new("/sys/block").join(name).join("queue");
    for (setting, value) in settings {
        std::fs::write(queue.join(setting), value).map_err(failed(setting))?;
    }
    Ok(scene.on(device))
}

/// Explains a difference that such a queue makes.
fn explain_queue(settings: &[(&str, &str)], shown_by: &[&str], planted: &str) {
    let _alone = alone();
    let Some(scene) = unless_missing(device_with(settings)) else {
        return;
    };
    let world = World {
        shown_by,
        planted: &[planted],
        budget: "90s",
        more: &["--change-system"],
    };
    explain(&scene, &world);
}

/// Threads that read sequentially, each in its own region, from a device whose scheduler waits after each read
/// for the thread's next one.
#[test]
fn scheduler_waiting_for_the_next_read_is_named() {
    let settings = [
        ("rotational", "1"),
        ("scheduler", "bfq"),
        ("iosched/slice_idle_us", "8000"),
        ("iosched/low_latency", "0"),
    ];
    let threads = [
        "read-size", "--direct", "--set", "bs=4k", "--set", "pattern=seq", "--set",
        // BFQ treats threads within 4 MiB of each other as one that reads in turn, and does not wait between
        // them.
        "region=64M", "--set", "bytes=none", "--threads", "1,8", "--time", "150ms", "--budget",
        "20s",
    ];
    explain_queue(&settings, &threads, "scheduler");
}

/// Sequential reads through the page cache, of a size that the kernel requests in many parts against one that
/// it requests at once.
#[test]
fn a_limit_of_read_ahead_is_named() {
    let sizes = [
        "read-size", "--set", "bs=16k,2M", "--set", "cache=cold", "--set", "region=64M", "--set",
        "bytes=8M", "--budget", "20s",
    ];
    explain_queue(&[("read_ahead_kb", "32")], &sizes, "read-ahead-limit");
}

#[test]
fn read_ahead_for_a_mapping_is_named() {
    let patterns = [
        "read-size", "--set", "pattern=seq,rand", "--set", "bs=4k", "--set", "backend=mmap",
        "--set", "region=512M", "--set", "cache=cold", "--set", "bytes=512k", "--budget", "20s",
    ];
    explain_queue(&[("read_ahead_kb", "128")], &patterns, "mapped-read-ahead");
}

/// Reads that wait for storage against writes that only reach the page cache.
#[test]
fn writes_that_are_written_back_later_are_named() {
    let _alone = alone();
    let behaviour = Behaviour {
        bytes: 128 << 20,
        delay: |_| Duration::from_millis(1),
        ..Behaviour::default()
    };
    let Some(scene) = unless_missing(mounted_over(behaviour)) else {
        return;
    };
    let world = World {
        shown_by: &[
            "read-size", "--set", "workload=RR,WR", "--set", "bs=4k", "--set", "sync=none",
            "--set", "region=32M", "--set", "cache=cold", "--set", "bytes=256k", "--budget", "20s",
        ],
        planted: &["write-back"],
        budget: "90s",
        more: &[],
    };
    explain(&scene, &world);
}
