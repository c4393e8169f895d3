//! Writes to existing files never fill a file system: holes, shared extents and copy-on-write data take free
//! space, on the file system of a file and below loop devices.

use std::path::{Path, PathBuf};

use iolab_truth::Scene;
use iolab_truth::binary::binary;
use iolab_truth::device::{loop_over, mounted_as, small_memory};
use iolab_truth::files::{MIB, hole, noise, unwritten};
use iolab_truth::overlay::Overlay;
use iolab_truth::system::{Made, run, unless_missing};

use crate::stage::alone;

/// File systems, with the commands that make them.
const EXT4: &[&str] = &["mkfs.ext4", "-qF", "-m", "0"];
const XFS: &[&str] = &["mkfs.xfs", "-qf", "-m", "reflink=1"];
const BTRFS: &[&str] = &["mkfs.btrfs", "-qf"];
/// Size of the images, bytes.
const IMAGE: u64 = 640 * MIB;

/// A file system on a loop device over a sparse file.
fn image(scene: &Scene, within: &Path, name: &str, make: &[&str], bytes: u64) -> Made<PathBuf> {
    let file = hole(within.join(format!("{name}.img")), bytes)?;
    let device = loop_over(scene, &file, false)?;
    mounted_as(scene, name, &device, make, "noatime")
}

/// Exit code and output of iolab.
struct Done {
    code: Option<i32>,
    text: String,
}

fn iolab(scene: &Scene, target: &Path, arguments: &[&str]) -> Done {
    let file = scene.folder().join("run.iolab");
    let _ = std::fs::remove_file(&file);
    let mut command = scene.command(binary());
    command
        .args(["run", "write-random"])
        .arg(target)
        .args(["--set", "bs=64k", "--time", "0.1s", "--budget", "1s"])
        .args(["--destroy-data", "-o"])
        .arg(&file)
        .args(arguments);
    let output = scene.carry_out(&mut command, |_| {}).expect("iolab starts");
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let words: Vec<&str> = text.split_whitespace().collect();
    Done {
        code: output.status.code(),
        text: words.join(" "),
    }
}

fn free(place: &Path) -> u64 {
    let stat = rustix::fs::statvfs(place).expect("a file system");
    stat.f_bavail * stat.f_frsize
}

/// Checks that the target is refused with the reason, even in a dry run, and no space is taken.
#[track_caller]
fn refused(scene: &Scene, target: &Path, place: &Path) {
    let before = free(place);
    let done = iolab(scene, target, &[]);
    assert_eq!(done.code, Some(3), "{}", done.text);
    let done = iolab(scene, target, &["--dry-run"]);
    assert_eq!(done.code, Some(3), "{}", done.text);
    let says = "Refused: too little space is free";
    assert!(done.text.contains(says), "{}", done.text);
    assert!(free(place) + MIB >= before, "{before} to {}", free(place));
}

/// Checks that the target is written to.
#[track_caller]
fn accepted(scene: &Scene, target: &Path, arguments: &[&str]) {
    let done = iolab(scene, target, arguments);
    assert_eq!(done.code, Some(0), "{}", done.text);
}

#[track_caller]
fn perform(play: impl FnOnce(&Scene) -> Made<()>) {
    let _alone = alone();
    unless_missing(Scene::new().and_then(|scene| play(&scene)));
}

#[test]
fn holes_are_not_filled_without_room_for_them() {
    for make in [EXT4, XFS, BTRFS] {
        perform(|scene| {
            let place = image(scene, scene.folder(), "m", make, IMAGE)?;
            let file = hole(place.join("sparse"), 1 << 30)?;
            refused(scene, &file, &place);
            let done = iolab(scene, &file, &[]);
            assert!(done.text.contains("choose --size "), "{}", done.text);
            accepted(scene, &file, &["--size", "16MiB"]);
            Ok(())
        });
    }
    perform(|scene| {
        let place = small_memory(scene, "200m")?;
        let file = hole(place.join("sparse"), 1 << 30)?;
        refused(scene, &file, &place);
        accepted(scene, &file, &["--size", "16MiB", "--buffered"]);
        Ok(())
    });
}

#[test]
fn several_files_are_counted_together() {
    perform(|scene| {
        let place = image(scene, scene.folder(), "m", EXT4, IMAGE)?;
        let bytes = (free(&place) / MIB * 3 / 5) * MIB;
        let [one, other] = ["one", "other"].map(|name| hole(place.join(name), bytes));
        let (one, other) = (one?, other?);
        accepted(scene, &one, &["--dry-run"]);
        let other = other.display().to_string();
        let done = iolab(scene, &one, &[&other]);
        assert_eq!(done.code, Some(3), "{}", done.text);
        accepted(scene, &one, &[&other, "--size", "16MiB"]);
        Ok(())
    });
}

#[test]
fn unwritten_space_is_new_with_copy_on_write() {
    for (make, moves) in [(EXT4, false), (XFS, false), (BTRFS, true)] {
        perform(|scene| {
            let place = image(scene, scene.folder(), "m", make, IMAGE)?;
            let bytes = (free(&place) / MIB * 3 / 5) * MIB;
            let file = unwritten(place.join("unwritten"), bytes)?;
            match moves {
                true => refused(scene, &file, &place),
                false => accepted(scene, &file, &[]),
            }
            Ok(())
        });
    }
}

#[test]
fn shared_extents_are_new_space() {
    for make in [XFS, BTRFS] {
        perform(|scene| {
            let place = image(scene, scene.folder(), "m", make, IMAGE)?;
            let bytes = (free(&place) / MIB * 3 / 5) * MIB;
            let folder = place.join("folder");
            std::fs::create_dir(&folder).expect("a folder");
            if make == BTRFS {
                // Without copy-on-write, unshared extents are written in place.
                run("chattr", &["+C", &folder.display().to_string()])?;
            }
            let [file, copy] = ["file", "copy"].map(|name| folder.join(name));
            noise(file.clone(), bytes)?;
            accepted(scene, &file, &[]);
            let [from, to] = [&file, &copy].map(|path| path.display().to_string());
            run("cp", &["--reflink=always", &from, &to])?;
            run("sync", &["-f", &to])?;
            refused(scene, &file, &place);
            refused(scene, &copy, &place);
            Ok(())
        });
    }
}

#[test]
fn holes_below_loop_devices_are_not_filled() {
    for make in [EXT4, XFS] {
        perform(|scene| {
            let bottom = image(scene, scene.folder(), "bottom", EXT4, IMAGE)?;
            // A device over a sparse file.
            let device = loop_over(scene, &hole(bottom.join("sparse"), 1 << 30)?, false)?;
            refused(scene, &device, &bottom);
            accepted(scene, &device, &["--size", "16MiB"]);
            // A directory and a file of a file system there, which itself has enough room.
            let top = image(scene, &bottom, "top", make, 4 << 30)?;
            let file = hole(top.join("sparse"), 1 << 30)?;
            refused(scene, &file, &bottom);
            // A loop device over a loop device.
            let upper = loop_over(scene, &file, false)?;
            refused(scene, &upper, &bottom);
            accepted(scene, &upper, &["--size", "16MiB"]);
            let done = iolab(scene, &top, &["--size", "1GiB"]);
            assert_eq!(done.code, Some(3), "{}", done.text);
            assert!(done.text.contains("top.img"), "{}", done.text);
            // The default is smaller, and the reserve stays.
            accepted(scene, &top, &[]);
            assert!(free(&bottom) >= 60 * MIB, "{}", free(&bottom));
            Ok(())
        });
    }
}

#[test]
fn what_an_overlay_copies_is_new_space() {
    perform(|scene| {
        let place = image(scene, scene.folder(), "m", EXT4, 256 * MIB)?;
        let lower = scene.subfolder("lower")?;
        let bytes = free(&place);
        let file = noise(lower.join("file"), bytes)?;
        let small = noise(lower.join("small"), 16 * MIB)?;
        let merged = Overlay::with_upper(scene, "merged", &lower, &place)?;
        let seen = |path: &Path| merged.root.join(path.file_name().expect("a name"));
        refused(scene, &seen(&file), &place);
        let size = ["--size", "1MiB"];
        assert_eq!(iolab(scene, &seen(&file), &size).code, Some(3));
        accepted(scene, &seen(&small), &size);
        Ok(())
    });
}

/// Waits until a run has put its first trials into the log of its file.
fn has_begun(file: &Path) {
    let log = PathBuf::from(format!("{}-wal", file.display()));
    while log.metadata().map_or(0, |log| log.len()) < MIB / 16 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Takes all of the remaining space, down to the last block.
fn fill_up(place: &Path) {
    for (name, block) in [("large", MIB), ("small", 4096), ("last", 512)] {
        // btrfs has no room for a name before its last block is used.
        let Ok(mut file) = std::fs::File::create(place.join(name)) else {
            continue;
        };
        let block = vec![7; block as usize];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
        let _ = file.sync_all();
    }
}

#[test]
fn run_files_disk_fills_in_mid_run() {
    for make in [
        &["mkfs.btrfs", "-qfM"][..],
        &["mkfs.ext4", "-qF", "-b", "1024"],
        XFS,
    ] {
        perform(|scene| {
            let bytes = if make == XFS { IMAGE } else { 128 * MIB };
            let place = image(scene, scene.folder(), "m", make, bytes)?;
            let target = scene.subfolder("target")?;
            let file = place.join("run.iolab");
            let mut command = scene.command(binary());
            command
                .args([
                    "run", "read-random", "--set", "bs=4k,8k,16k", "--size", "1M",
                ])
                .args(["--time", "0.02", "--budget", "60s", "--precision", "0.01%"])
                .arg(&target)
                .arg("-o")
                .arg(&file);
            let output = scene.carry_out(&mut command, |_| {
                has_begun(&file);
                fill_up(&place);
            });
            let output = output.expect("iolab starts");
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{make:?}: {told}");
            assert!(told.contains("no space left"), "{told}");
            assert!(told.contains(" kept in "), "{told}");
            assert_eq!(std::fs::read_dir(&target).expect("it is there").count(), 0);
            // The disk is still full.
            let mut table = scene.command(binary());
            let table = table
                .arg("table")
                .arg(&file)
                .output()
                .expect("iolab starts");
            let told = String::from_utf8_lossy(&table.stderr);
            assert_eq!(table.status.code(), Some(0), "{told}");
            Ok(())
        });
    }
}
