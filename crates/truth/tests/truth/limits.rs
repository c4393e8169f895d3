//! Limits of the machine: anything that does not fit is refused before it is made, and no files remain.

use std::process::Output;

use iolab_truth::binary::binary;
use iolab_truth::neighbours::CgroupLimit;
use iolab_truth::system::unless_missing;
use iolab_truth::{Made, Scene};

use crate::rows::rows;
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

const STEPS: &str = r#"
# MKFS...: the file system of the target, and in turn of the run file, is shut down within a trial of three seconds, once that has read
# something: FS_IOC_SHUTDOWN, which the tool of XFS sends to others with -x.
shut_down() {
  file backing 400M
  for results in r at/r; do
    over device $backing; "$@" $device; mounted at $device -o noatime
    "$iolab" run read-random $at -o $results.iolab --size 64MiB --time 3s --budget 60s --set bs=4k --set backend=psync >out 2>&1 & run=$!; later kill $run
    calls() { sed -n 's/^syscr: //p' /proc/$run/io; }
    until "$iolab" export $results.iolab --format json 2>/dev/null | grep -q read_bytes; do kill -0 $run; sleep .05; done
    least=$(($(calls) + 100)); until [ $(calls) -ge $least ]; do :; done
    xfs_io -x -c shutdown $at; code=0; wait $run || code=$?; ended 1; says $results.iolab
    # Files on the file system are now unreadable.
    [ $results != r ] || { "$iolab" export r.iolab --format json >json; holds '.[-1].errors > 0'; }
    umount $at; losetup --detach $device
  done
}
"#;

rows! {
    STEPS;

    shutdown_of_ext4_fails_the_run, Ext4, "shut_down mkfs.ext4 -qF";
    shutdown_of_xfs_fails_the_run, Xfs, "shut_down mkfs.xfs -qf";
}
