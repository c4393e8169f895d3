//! Limits of the machine: what does not fit is refused before anything is made, and nothing is left behind.

use std::process::Output;

use iolab_truth::device::Limit;
use iolab_truth::iolab::binary;
use iolab_truth::system::warn;
use iolab_truth::{Made, Scene};

use crate::stage::alone;

/// Room for the process with few buffers, and for nothing more.
const MEMORY: u64 = 200 << 20;

/// What iolab did, and the names in its target then.
struct Done {
    code: Option<i32>,
    stderr: String,
    left: usize,
}

fn iolab(scene: &Scene, arguments: &[&str]) -> Done {
    let mut command = scene.command(binary());
    command.args(arguments);
    let Output { status, stderr, .. } =
        scene.carry_out(&mut command, |_| {}).expect("iolab starts");
    Done {
        code: status.code(),
        stderr: String::from_utf8_lossy(&stderr).into_owned(),
        left: std::fs::read_dir(&scene.target).map_or(0, Iterator::count),
    }
}

fn little_memory() -> Made<Scene> {
    let mut scene = Scene::new()?;
    let data = scene.subfolder("data")?;
    scene.limit = Some(Limit::memory(&scene.keeper, MEMORY)?);
    Ok(scene.on(data))
}

#[test]
fn memory_that_a_control_group_denies_is_not_asked_for() {
    let _alone = alone();
    let scene = match little_memory() {
        Ok(scene) => scene,
        Err(why) => return warn(&format!("skipped: memory of a control group: {why}")),
    };
    let run = |file: &str, more: &[&str]| {
        let fixed = [
            "run",
            "read-random",
            "data",
            "-o",
            file,
            "--size",
            "64MiB",
            "--time",
            "20ms",
            "--budget",
            "1s",
        ];
        iolab(&scene, &[&fixed, more].concat())
    };
    let small = run("small.iolab", &["--set", "bs=4k,64k"]);
    assert_eq!((small.code, small.left), (Some(0), 0), "{}", small.stderr);
    for more in [
        &[
            "--set",
            "bs=1MiB",
            "--threads",
            "8",
            "--depth",
            "32",
            "--set",
            "backend=io_uring",
        ][..],
        &["--set", "bs=4k", "--threads", "120"],
        &[
            "--set",
            "bs=64MiB",
            "--threads",
            "2",
            "--set",
            "region=256MiB",
        ],
    ] {
        let done = run("large.iolab", more);
        assert_eq!((done.code, done.left), (Some(2), 0), "{}", done.stderr);
        assert!(done.stderr.contains("control group"), "{}", done.stderr);
        assert!(!scene.folder().join("large.iolab").exists());
    }
}
