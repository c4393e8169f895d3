//! Removal of everything that a killed test has made.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use iolab_truth::device::{loop_over, small_memory};
use iolab_truth::files::{MIB, hole};
use iolab_truth::fuse::{Behaviour, Mounted};
use iolab_truth::neighbours::CgroupLimit;
use iolab_truth::system::{unless_missing, warn};
use iolab_truth::{Made, Scene};

use crate::stage::alone;

/// Prefix of the name of a made object.
const MADE: &str = "made: ";

/// A scene with one object of each kind, and the files that exist as long as it does.
fn everything() -> Made<(Scene, [String; 4])> {
    let mut scene = Scene::new()?;
    let fuse = scene.subfolder("fuse")?;
    scene.fuse = Some(Mounted::new(&scene.keeper, &fuse, Behaviour::default())?);
    let backing = hole(small_memory(&scene, "8m")?.join("backing"), 8 * MIB)?;
    let device = loop_over(&scene, &backing, false)?;
    let limit = CgroupLimit::new(&scene.keeper, &device, 1 << 20)?;
    let name = |path: &Path| path.display().to_string();
    let device = name(&device).replace("/dev/", "/sys/block/");
    let made = [
        name(scene.folder()),
        name(&scene.folder_in_memory()?),
        format!("{device}/loop"),
        name(&limit.entrance()),
    ];
    scene.limit = Some(limit);
    Ok((scene, made))
}

#[test]
#[ignore = "is killed by the other test"]
fn holds_a_scene() {
    if let Some((_scene, made)) = unless_missing(everything()) {
        made.iter().for_each(|made| warn(&format!("{MADE}{made}")));
        // Runs until its parent closes the pipe.
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
    }
}

#[test]
fn a_kill_leaves_nothing_behind() {
    let _alone = alone();
    let program = std::env::current_exe().expect("own path");
    let mut child = Command::new(program)
        .args(["--exact", "--ignored", "killed::holds_a_scene"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let words = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut made = Vec::new();
    for line in words.lines().map_while(Result::ok) {
        match line.strip_prefix(MADE) {
            Some(name) => made.push(name.to_owned()),
            None => warn(&line),
        }
        if made.len() == 4 {
            break;
        }
    }
    if made.is_empty() {
        // The child has printed what is missing.
        let status = child.wait().expect("it ends");
        return assert!(status.success(), "{status}");
    }
    assert_eq!(made.len(), 4, "{made:?}");
    let there = |name: &String| Path::new(name).exists();
    assert!(made.iter().all(there), "{made:?}");
    child.kill().expect("it is killed");
    child.wait().expect("it ends");
    let deadline = Instant::now() + Duration::from_secs(30);
    while made.iter().any(there) {
        assert!(Instant::now() < deadline, "left behind: {made:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
