//! Slow storage: filling and probing it are parts of the time budget of an explanation.

use std::time::{Duration, Instant};

use iolab_truth::Scene;
use iolab_truth::device::{limit_requests, loop_over, mounted};
use iolab_truth::fuse::Behaviour;
use iolab_truth::iolab::{told, told_with_code};
use iolab_truth::system::unless_missing;

use crate::stage::alone;

/// Bytes written before writes become slow: the file system, the scratch file of the run, and a part of the
/// next one.
const FAST: u64 = 40 << 20;

/// A server that takes 2 ms per request, and 200 ms per write after [`FAST`] bytes.
fn slow_to_fill() -> Behaviour {
    Behaviour {
        bytes: 128 << 20,
        delay: |context| match context.written < FAST {
            true => Duration::from_millis(2),
            false => Duration::from_millis(200),
        },
        serial: true,
        ..Behaviour::default()
    }
}

/// The run shows the speed of filling, which does not predict later slowness: filling is given up, and nothing
/// is measured or left.
#[test]
fn filling_that_takes_the_budget_is_given_up() {
    let _alone = alone();
    let folder = Scene::on_fuse(slow_to_fill()).and_then(|scene| {
        let device = loop_over(&scene, &scene.target, true)?;
        // Equally many requests on kernels that would take larger ones.
        limit_requests(&scene, &device, 128)?;
        let at = mounted(&scene, &device, &["mkfs.ext4", "-q", "-F"], "noatime")?;
        Ok(scene.on(at))
    });
    let Some(scene) = unless_missing(folder) else {
        return;
    };
    let target = scene.target.display().to_string();
    let shown = [
        "run", "read-size", &target, "--direct", "--set", "bs=4k,64k", "--set", "region=24M",
        "--time", "50ms", "--budget", "4s", "--seed", "5", "-o", "shown.iolab",
    ];
    let shown = told(&scene, &shown);
    let why = ["why", "shown.iolab", "--budget", "20s", "-o", "why.iolab"];
    let (code, said) = told_with_code(&scene, &why);
    assert_eq!(code, Some(5), "{shown}\n{said}");
    assert!(!scene.folder().join("why.iolab").exists(), "{said}");
    let left = std::fs::read_dir(&scene.target).expect("readable");
    let left = left.filter_map(|file| file.ok()?.file_name().into_string().ok());
    assert_eq!(left.collect::<Vec<_>>(), ["lost+found"], "{said}");
}

/// Before the first trial direct I/O is probed, with enough requests to take 11 s here. The explanation ends
/// within its budget and a fifth of it.
#[test]
fn trying_slow_storage_leaves_the_budget_to_trials() {
    let _alone = alone();
    let slow = Behaviour {
        bytes: 64 << 20,
        delay: |_| Duration::from_millis(350),
        ..Behaviour::default()
    };
    let Some(scene) = unless_missing(Scene::on_fuse(slow)) else {
        return;
    };
    let target = scene.target.display().to_string();
    let shown = [
        "run", "read-random", &target, "--direct", "--bs", "4k,64k", "--set", "bytes=8k", "--set",
        "trials_max=6", "--seed", "5", "-o", "shown.iolab",
    ];
    let shown = told(&scene, &shown);
    let began = Instant::now();
    let why = ["why", "shown.iolab", "--budget", "10s", "-o", "why.iolab"];
    let (_, said) = told_with_code(&scene, &why);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(12), "{took:?}: {shown}\n{said}");
    assert!(scene.folder().join("why.iolab").exists(), "{shown}\n{said}");
}
