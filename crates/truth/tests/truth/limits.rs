//! Limits of the machine: anything that does not fit is refused before it is made, and no files remain.

use std::path::Path;
use std::process::{Child, Output};

use iolab_truth::binary::binary;
use iolab_truth::device::{loop_over, mounted};
use iolab_truth::files::{MIB, hole};
use iolab_truth::iolab::{samples, wait_for};
use iolab_truth::neighbours::CgroupLimit;
use iolab_truth::system::{run, tool, unless_missing};
use iolab_truth::{Made, Scene};
use needs::Need;

use crate::stage::alone;

/// Memory for the process with few buffers, and nothing more, bytes.
const MEMORY: u64 = 200 << 20;

/// Result of iolab, and the number of names left in its target.
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
    scene.limit = Some(CgroupLimit::memory(&scene.keeper, MEMORY)?);
    Ok(scene.on(data))
}

#[test]
fn memory_denied_by_a_control_group_is_refused() {
    let _alone = alone();
    let Some(mut scene) = unless_missing(little_memory()) else {
        return;
    };
    let measured = |scene: &Scene, file: &str, size: &str, more: &[&str]| {
        let fixed = [
            "run", "read-random", "data", "-o", file, "--size", size, "--time", "20ms", "--budget",
            "1s",
        ];
        iolab(scene, &[&fixed, more].concat())
    };
    let small = measured(&scene, "small.iolab", "64MiB", &["--set", "bs=4k,64k"]);
    assert_eq!((small.code, small.left), (Some(0), 0), "{}", small.stderr);
    let large = [
        (
            "64MiB",
            &[
                "--set", "bs=1MiB", "--threads", "8", "--depth", "32", "--set", "backend=io_uring",
            ][..],
        ),
        ("64MiB", &["--set", "bs=4k", "--threads", "120"]),
        ("256MiB", &["--set", "bs=64MiB", "--threads", "2"]),
    ];
    for (size, more) in large {
        let done = measured(&scene, "large.iolab", size, more);
        assert_eq!((done.code, done.left), (Some(2), 0), "{}", done.stderr);
        assert!(!scene.folder().join("large.iolab").exists());
    }
    scene.limit = None;
    for (number, (size, more)) in large.into_iter().enumerate() {
        let done = measured(&scene, &format!("{number}.iolab"), size, more);
        assert_eq!((done.code, done.left), (Some(0), 0), "{}", done.stderr);
    }
}

/// Shuts a file system down: `FS_IOC_SHUTDOWN` of ext4 and XFS, by the tool of XFS, which accepts others with
/// `-x`.
fn shut_down(at: &Path) {
    let place = at.display().to_string();
    run("xfs_io", &["-x", "-c", "shutdown", &place]).expect("it shuts down");
}

fn is_over(child: &mut Child) -> bool {
    child.try_wait().is_ok_and(|status| status.is_some())
}

/// Number of read calls of a process (`syscr`).
fn reads(child: &Child) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap_or_default();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("syscr: "));
    lines
        .next()
        .and_then(|count| count.parse().ok())
        .unwrap_or(0)
}

/// A separate file system on a loop device, with the target.
fn short_lived(make: &[&str]) -> Made<Scene> {
    tool(Need::XfsIo)?;
    let scene = Scene::new()?;
    let backing = hole(scene.folder().join("backing"), 400 * MIB)?;
    let device = loop_over(&scene, &backing, false)?;
    let at = mounted(&scene, &device, make, "noatime")?;
    Ok(scene.on(at))
}

#[test]
fn file_system_shutdown_fails_the_run() {
    let _alone = alone();
    for make in [&["mkfs.ext4", "-qF"][..], &["mkfs.xfs", "-qf"]] {
        for file in ["r.iolab", "mount/r.iolab"] {
            let Some(scene) = unless_missing(short_lived(make)) else {
                return;
            };
            let mut command = scene.command(binary());
            command.args([
                "run", "read-random", "mount", "-o", file, "--size", "64MiB", "--time", "3s",
                "--budget", "60s", "--set", "bs=4k", "--set", "backend=psync",
            ]);
            let path = scene.folder().join(file);
            let output = scene.carry_out(&mut command, |child| {
                wait_for(&path, 1, || is_over(child));
                // The next trial takes three seconds, and is in progress once it has read something.
                let before = reads(child);
                while reads(child) < before + 100 && !is_over(child) {
                    std::thread::yield_now();
                }
                shut_down(&scene.target);
            });
            let output = output.expect("iolab starts");
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{told}");
            assert!(told.contains(file), "{told}");
            // Files on the file system are now unreadable.
            if !path.starts_with(&scene.target) {
                let failed = samples(&path).pop().expect("a failed trial is kept");
                assert!(failed["errors"].as_u64() > Some(0), "{failed:#}\n{told}");
            }
        }
    }
}
