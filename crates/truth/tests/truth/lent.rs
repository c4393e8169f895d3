//! Access of peers and programs to a target: where that is impossible the run is refused, and devices are
//! protected without it.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use iolab_truth::Scene;
use iolab_truth::binary::binary;
use iolab_truth::device::{loop_over, mounted};
use iolab_truth::files::{MIB, hole};
use iolab_truth::iolab::run as measured;
use iolab_truth::system::{Made, failed, needs_root, tool, unless_missing};
use needs::Need;

use crate::stage::alone;

/// A short run with fio as peer.
const PEER: [&str; 10] = [
    "--peer", "fio", "--size", "4M", "--set", "bs=64k", "--budget", "1s", "--time", "50ms",
];
/// A short run of a program.
const PROGRAM: [&str; 6] = [
    "--set", "command=cat {file}", "--size", "4k", "--budget", "1s",
];

/// Runs a test; a skip if something for it cannot be made here.
#[track_caller]
fn perform(test: impl FnOnce() -> Made<()>) {
    let _alone = alone();
    let needed = needs_root().and_then(|()| tool(Need::Fio));
    unless_missing(needed.and_then(|_| test()));
}

/// Runs iolab on an empty directory of the scene, with a command in front; exit code and output.
fn told(
    scene: &Scene,
    before: &[&str],
    program: &Path,
    words: &[&str],
) -> Made<(Option<i32>, String)> {
    let place = scene.folder().join("place");
    let results = scene.folder().join("run.iolab");
    let (first, rest) = before.split_first().expect("a command");
    let mut command = scene.command(Path::new(first));
    command
        .args(rest)
        .arg(program)
        .args(["run", words[0]])
        .arg(&place)
        .arg("-o")
        .arg(&results)
        .args(&words[1..]);
    let output = scene
        .carry_out(&mut command, |_| ())
        .map_err(failed(first))?;
    let left = std::fs::read_dir(&place)
        .map_err(failed(place.display()))?
        .count();
    assert_eq!(left, 0, "left in {}", place.display());
    Ok((
        output.status.code(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    ))
}

#[test]
fn without_proc_nothing_is_lent_and_nothing_made() {
    perform(|| {
        let scene = Scene::new()?;
        scene.subfolder("place")?;
        let none = "umount -l /proc && exec \"$@\"";
        // A /proc of another PID namespace, whose processes end with the first one.
        let foreign = "mkfifo go; unshare --pid --fork sh -c 'mount -t proc proc /proc && echo >go && sleep 60' & read -r _ <go; \"$@\"; code=$?; rm go; exit $code";
        let alone = [
            "unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
        ];
        for script in [none, foreign] {
            let before = [&alone[..], &[script, "sh"]].concat();
            for words in [
                &[&["read-random"][..], &PEER].concat(),
                &[&["linkage"][..], &PROGRAM].concat(),
            ] {
                let (code, text) = told(&scene, &before, binary(), words)?;
                assert_eq!(code, Some(3), "{script}: {text}");
                for part in ["cannot be given iolab's target", "/proc", "mount"] {
                    assert!(text.contains(part), "{part}: {text}");
                }
                assert!(!text.contains("filling"), "{text}");
            }
        }
        Ok(())
    });
}

#[test]
fn peer_is_refused_when_iolabs_file_is_unreadable() {
    perform(|| {
        let scene = Scene::open_to_all()?;
        let place = scene.subfolder("place")?;
        let hidden = scene.folder().join("hidden");
        std::fs::copy(binary(), &hidden).map_err(failed(hidden.display()))?;
        for (path, mode) in [(&place, 0o777), (&hidden, 0o711)] {
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(path, permissions).map_err(failed(path.display()))?;
        }
        let scene = scene.as_nobody()?;
        let words = [&["read-random"][..], &PEER].concat();
        let (code, text) = told(&scene, &["env"], &hidden, &words)?;
        assert_eq!(code, Some(3), "{text}");
        // Only the rights of the program differ.
        let (code, text) = told(&scene, &["env"], scene.binary(), &words)?;
        assert_eq!(code, Some(0), "{text}");
        Ok(())
    });
}

#[test]
fn devices_are_guarded_without_the_peers_own_guard() {
    perform(|| {
        let scene = Scene::new()?;
        let below = hole(scene.folder().join("below"), 64 * MIB)?;
        let device = loop_over(&scene, &below, false)?;
        let name = device.display().to_string();
        let words = [&["--destroy-data=ext4"][..], &PEER].concat();
        let free = measured(&scene, "write-random", &name, &words);
        assert_eq!(free.code, Some(0), "{}", free.text);
        let of_fio = |sample: &&serde_json::Value| sample["tool"] == "fio" && sample["ok"] == true;
        assert!(free.measured().filter(of_fio).count() > 0, "{}", free.text);
        assert!(
            free.samples
                .iter()
                .all(|sample| !sample.to_string().contains("/fd/"))
        );
        let at = mounted(&scene, &device, &["mkfs.ext4", "-qF"], "defaults")?;
        let file = at.join("file");
        std::fs::write(&file, "of others").map_err(failed(file.display()))?;
        let results = scene.folder().join("write-random.iolab");
        std::fs::remove_file(&results).map_err(failed(results.display()))?;
        let used = measured(&scene, "write-random", &name, &words);
        assert_eq!(used.code, Some(3), "{}", used.text);
        assert!(used.says("mounted at"), "{}", used.text);
        assert_eq!(
            std::fs::read(&file).map_err(failed(file.display()))?,
            b"of others"
        );
        Ok(())
    });
}
