//! Gates on programs whose time is known: 10 ms in the runs before, and 10 or 13 ms in the new one.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use iolab_truth::Scene;
use iolab_truth::binary::binary;

use crate::stage::alone;

/// Runs of the history.
const EARLIER: usize = 5;

fn iolab(scene: &Scene, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = scene.command(binary());
    command.args(arguments);
    let Output {
        status,
        stdout,
        stderr,
    } = scene.carry_out(&mut command, |_| {}).expect("iolab starts");
    let text = [stdout, stderr].concat();
    (status.code(), String::from_utf8_lossy(&text).into_owned())
}

/// The program that is measured, under the same name whatever it takes.
fn write_program(path: &Path, milliseconds: u32) {
    let script = format!("#!/bin/sh\nexec sleep 0.0{milliseconds}\n");
    std::fs::write(path, script).expect("room");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path, executable).expect("it is ours");
}

#[test]
fn a_program_that_takes_three_milliseconds_more_is_an_alarm() {
    let _alone = alone();
    let scene = Scene::new().expect("a scene");
    let data = scene.subfolder("data").expect("room");
    let history = scene.subfolder("history").expect("room");
    let program = data.join("program");
    let command = format!("command={}", program.display());
    let measure = |file: &str| {
        let arguments = [
            "run",
            "linkage",
            "data",
            "--set",
            &command,
            "--set",
            "region=4k",
            "--set",
            "trials_min=20",
            "--set",
            "trials_max=20",
            "-o",
            file,
        ];
        let (code, text) = iolab(&scene, &arguments);
        assert_eq!(code, Some(0), "{text}");
    };
    write_program(&program, 10);
    for number in 0..EARLIER {
        let file = history.join(format!("{number}.iolab"));
        measure(&file.display().to_string());
    }
    for (milliseconds, expected, words) in [(10, 0, "no change shown"), (13, 4, "slower")] {
        write_program(&program, milliseconds);
        let file = format!("{milliseconds}.iolab");
        measure(&file);
        let (code, text) = iolab(&scene, &["gate", "--history", "history", &file]);
        assert_eq!(code, Some(expected), "{milliseconds} ms: {text}");
        assert!(text.contains(words), "{milliseconds} ms: {text}");
    }
}
