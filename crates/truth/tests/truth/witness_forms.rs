//! Results of `iolab witness` in all forms: the same numbers in each, next to a program's own claim.

use std::path::{Path, PathBuf};
use std::process::Command;

use iolab_truth::device::{loop_over, mounted};
use iolab_truth::files::{MIB, hole, warm};
use iolab_truth::iolab::{json, told_with_code, witness_with};
use iolab_truth::scenarios::{HOT_READS, LOOP_DIRECT};
use iolab_truth::system::unless_missing;
use iolab_truth::{Made, Scene};
use needs::Need;
use serde_json::Value;

use crate::stage::{alone, built, within};
use crate::witness_device::{BYTES, assert_counted, number};

/// Runs iolab in the scene's folder.
#[track_caller]
fn iolab(scene: &Scene, line: &str) {
    let words: Vec<&str> = line.split(' ').collect();
    let (code, said) = told_with_code(scene, &words);
    assert_eq!(code, Some(0), "{line}: {said}");
}

/// Claims of a kind.
fn claims<'a>(evidence: &'a Value, kind: &'a str) -> impl Iterator<Item = &'a Value> {
    let all = evidence["claims"].as_array().expect("a list").iter();
    all.filter(move |claim| claim["kind"] == kind)
}

/// A run file, its JSON, its course, its figure and its page.
#[test]
fn results_are_equal_in_every_form() {
    if needs::tool(Need::Fio).is_none() {
        return;
    }
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let target = scene.target.display().to_string();
    let fio = format!(
        "fio --name=t --filename={target} --rw=read --bs=256k --size=32M --rate=64M --direct=1 --ioengine=psync --output=claim.json --output-format=json"
    );
    iolab(
        &scene,
        &format!("witness -o seen.iolab --on {target} -- {fio}"),
    );
    let evidence = json(&scene.folder().join("seen.iolab"), "table");
    assert_counted(&evidence, "reads", BYTES, "fio");

    let served: Vec<&Value> = claims(&evidence, "served-by").collect();
    let [served] = served[..] else {
        panic!("of reads alone: {evidence:#}");
    };
    let name = target.trim_start_matches("/dev/");
    assert_eq!(served["evidence"]["devices"][0], name, "{evidence:#}");
    let most = number(served, "/evidence/direction/carried_bytes/most");
    assert!(within(most, BYTES, 0.01), "{evidence:#}");
    assert_eq!(number(&evidence, "/claim/reads/bytes"), BYTES);
    assert_eq!(evidence["claim"]["reads"]["exceeds_devices"], false);

    // fio reads for half a second: moments of a tenth have its device's bytes, and each has a part of them.
    let moments = evidence["course"]["moments"].as_array().expect("a list");
    let devices = evidence["course"]["devices"].as_array().expect("a list");
    let place = devices.iter().position(|device| *device == name);
    let pointer = format!("/devices/{}/read_bytes", place.expect("it is followed"));
    let carried = moments.iter().map(|moment| number(moment, &pointer));
    let carried: Vec<f64> = carried.collect();
    assert!(
        within(carried.iter().sum(), BYTES, 0.01),
        "{carried:?}: {evidence:#}"
    );
    assert!(
        carried.iter().all(|bytes| *bytes < 0.9 * BYTES),
        "{carried:?}"
    );

    for (line, file) in [
        ("plot seen.iolab -o course.svg", "course.svg"),
        ("report seen.iolab -o page.html", "page.html"),
    ] {
        iolab(&scene, line);
        let made = std::fs::metadata(scene.folder().join(file)).expect("a file");
        assert!(made.len() > 1000, "{file}");
    }
}

/// fio reports its reads; the device has carried next to none of them.
#[test]
fn fio_is_held_against_its_claim() {
    if needs::tool(Need::Fio).is_none() {
        return;
    }
    let Some((scene, _alone)) = built(&HOT_READS) else {
        return;
    };
    warm(&scene.target).expect("it can be read");
    let target = scene.target.display().to_string();
    let fio = format!(
        "fio --name=t --filename={target} --rw=read --bs=256k --size=32M --loops=4 --invalidate=0 --ioengine=psync --output=claim.json --output-format=json"
    );
    let arguments: Vec<&str> = ["--on", &target, "--"]
        .into_iter()
        .chain(fio.split(' '))
        .collect();
    let (output, evidence) = witness_with(&scene, &arguments, |_| ());
    assert!(output.status.success(), "{output:?}");
    assert_eq!(evidence["reads"]["served_by"], "page-cache", "{evidence:#}");
    let claimed = &evidence["claim"]["reads"];
    assert_eq!(number(claimed, "/bytes"), 4.0 * BYTES, "{evidence:#}");
    assert_eq!(claimed["exceeds_devices"], true, "{evidence:#}");
    // Program files may have come from the disk.
    assert!(
        number(claimed, "/carried_bytes_most") < 0.5 * BYTES,
        "{evidence:#}"
    );
    assert_eq!(
        claims(&evidence, "more-than-devices").count(),
        1,
        "{evidence:#}"
    );
}

/// Messages go to a file on another disk, which is not the program's.
#[test]
fn message_file_does_not_implicate_a_device() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let target = scene.target.display().to_string();
    let line = format!(
        "'{}' witness -o seen.json -- sh -c 'dd if={target} of=/dev/null bs=1M count=32 iflag=direct; true' > messages 2>&1",
        scene.binary().display()
    );
    let mut command = scene.command(Path::new("sh"));
    let output = scene.carry_out(command.args(["-c", &line]), |_| ());
    assert!(output.expect("sh starts").status.success());
    let text = std::fs::read(scene.folder().join("seen.json")).expect("a file");
    let evidence: Value = serde_json::from_slice(&text).expect("it is JSON");
    let devices = evidence["devices"].as_array().expect("a list").iter();
    let names: Vec<&str> = devices.filter_map(|one| one["name"].as_str()).collect();
    // If dd was too fast to be seen, no device is implicated.
    let own = target.trim_start_matches("/dev/");
    assert!(names.iter().all(|name| *name == own), "{evidence:#}");
    let files = evidence["files"].as_array().expect("a list").iter();
    let mut paths = files.filter_map(|file| file["path"].as_str());
    assert!(
        !paths.any(|path| path.ends_with("/messages")),
        "{evidence:#}"
    );
}

/// btrfs shows the device that it was mounted by; its data is on both.
#[test]
fn file_system_on_two_devices_counts_both() {
    let _alone = alone();
    let made = || -> Made<(Scene, [PathBuf; 2], PathBuf)> {
        let scene = Scene::new()?;
        let device = |name: &str| {
            let file = hole(scene.folder().join(name), 256 * MIB)?;
            loop_over(&scene, &file, true)
        };
        let devices = [device("first")?, device("second")?];
        let second = devices[1].display().to_string();
        let make = [
            "mkfs.btrfs", "-q", "-f", "-d", "raid0", "-m", "raid1", &second,
        ];
        let at = mounted(&scene, &devices[0], &make, "noatime")?;
        Ok((scene, devices, at))
    };
    let Some((scene, devices, at)) = unless_missing(made()) else {
        return;
    };
    let written = at.join("file").display().to_string();
    let to = format!("of={written}");
    let dd = ["--", "dd", "if=/dev/urandom", &to, "bs=1M", "count=32"];
    let dd = [&dd[..], &["conv=fsync", "status=none"]].concat();
    let (output, evidence) = witness_with(&scene, &dd, |_| ());
    assert!(output.status.success(), "{output:?}");
    let paths = devices.map(|device| device.display().to_string());
    let names = paths.clone().map(|path| path.replace("/dev/", ""));
    let found = evidence["devices"].as_array().expect("a list");
    let found: Vec<_> = found.iter().map(|device| &device["name"]).collect();
    assert!(
        names
            .iter()
            .all(|name| found.contains(&&Value::from(name.as_str()))),
        "{found:?}"
    );
    assert_eq!(evidence["writes"]["served_by"], "device", "{evidence:#}");
    drop(scene);
    // The kernel would find them again under other loop devices.
    let forget = ["device", "scan", "--forget"];
    let _ = Command::new("btrfs").args(forget).args(paths).output();
}
