//! Consent is to the loss of certain bytes: a run ends when its target has others.

use std::path::{Path, PathBuf};
use std::process::Child;

use iolab_truth::Scene;
use iolab_truth::binary::binary;
use iolab_truth::device::{loop_over, zram};
use iolab_truth::files::{MIB, noise};
use iolab_truth::system::{Made, run, unless_missing};
use needs::Need;
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::alone;

#[track_caller]
fn perform(play: impl FnOnce(&Scene) -> Made<()>) {
    let _alone = alone();
    unless_missing(Scene::new().and_then(|scene| play(&scene)));
}

/// Runs random writes to a target, with an event once the first trials are in the log; exit code and output.
fn written(
    scene: &Scene,
    target: &Path,
    meanwhile: impl FnOnce(&mut Child),
) -> (Option<i32>, String) {
    let file = scene.folder().join("run.iolab");
    let log = PathBuf::from(format!("{}-wal", file.display()));
    let mut command = scene.command(binary());
    command
        .args(["run", "write-random", "--set", "bs=64k", "--destroy-data"])
        .args(["--time", "0.05", "--budget", "60s", "--precision", "0.01%"])
        .arg(target)
        .arg("-o")
        .arg(&file);
    let output = scene.carry_out(&mut command, |child| {
        while log.metadata().map_or(0, |log| log.len()) < MIB / 16 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        meanwhile(child);
    });
    let output = output.expect("iolab starts");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code(), told)
}

/// A reset gives the device other bytes under the same number.
#[test]
fn a_zram_device_is_not_resumed_in_place() {
    perform(|scene| {
        let device = zram(scene, 64 * MIB)?;
        let (code, told) = written(scene, &device, |child| {
            let _ = kill_process(Pid::from_child(child), Signal::INT);
        });
        assert_eq!(code, Some(130), "{told}");
        assert!(told.contains("start a new run: "), "{told}");
        let mut resume = scene.command(binary());
        let file = scene.folder().join("run.iolab");
        let resume = resume.arg("resume").arg(&file).arg("--destroy-data");
        let output = resume.output().expect("iolab starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{told}");
        Ok(())
    });
}

#[test]
fn loop_device_with_other_bytes_ends_the_run() {
    // LOOP_GET_STATUS64 and LOOP_SET_STATUS64, whose structure has the offset at byte 24.
    const MOVE: &str = "import fcntl,struct,sys\nf=open(sys.argv[1],'r+b')\nb=bytearray(232)\n\
        fcntl.ioctl(f,0x4c05,b)\nstruct.pack_into('<Q',b,24,16<<20)\nfcntl.ioctl(f,0x4c04,b)\n";
    perform(|scene| {
        let Some(python) = needs::tool(Need::Python) else {
            return Ok(());
        };
        let file = noise(scene.folder().join("image"), 64 * MIB)?;
        let device = loop_over(scene, &file, false)?;
        let (code, told) = written(scene, &device, |_| {
            run(python, &["-c", MOVE, &device.display().to_string()]).expect("moved");
        });
        assert_eq!(code, Some(3), "{told}");
        assert!(told.contains("another part of its file"), "{told}");
        Ok(())
    });
}
