//! `iolab serve`: tools measure the properties of the model.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use iolab_models::definition::{self, Definition};
use iolab_models::{build, serve};
use iolab_truth::iolab::measure;
use iolab_truth::served::{ServedModel, is_mounted, mounts};
use iolab_truth::system::unless_missing;
use iolab_truth::workload::Workload;
use iolab_truth::{Made, Scene};
use iolab_workload::virtual_disk::Request;
use needs::Need;
use rustix::process::Signal;
use serde_json::Value;

use crate::stage::alone;

/// Every request takes 5 ms, whatever the number waiting.
const FIXED: &str = "title = \"5 ms each\"\nsource = []\n\
    [model.latency]\nread_us = 5000\nwrite_us = 5000\ninner.memory = 67_108_864\n";
/// One request at a time, 2 ms each.
const SERIAL: &str = "title = \"2 ms each, one at a time\"\nsource = []\n[model.server]\nslots = 1\n\
    inner.latency = { read_us = 2000, write_us = 2000, inner.memory = 67_108_864 }\n";
/// Tolerance of a tool, as a share.
const OFF: f64 = 0.1;
/// Median lateness of the server, as a share of the service time, above which nothing can be concluded.
const LATE: f64 = 0.05;

/// Ends it and returns the report; a skip if it was too late for a conclusion.
#[track_caller]
fn report(model: ServedModel, scene: &Scene) -> Option<Value> {
    let at = model.place().to_owned();
    model.signal(Signal::INT);
    let (code, out, words) = model.ended(scene);
    let report: Value = serde_json::from_str(&out).expect("JSON");
    assert!(!is_mounted(&at));
    let kept = report["kept_time"].as_bool().expect("there were requests");
    assert_eq!(code, Some(i32::from(!kept)), "{words}");
    let of = |what: &str| report["all"][what]["p50"].as_f64().expect("a number");
    let share = of("lateness_ns") / of("service_ns");
    if share > LATE {
        let why = format!("answers came {share:.2} of their time late");
        needs::skip(Need::Quiet, why);
        return None;
    }
    Some(report)
}

/// Runs fio with random reads of 4 KiB for two seconds, and returns the object of its job; a skip without fio.
#[track_caller]
fn fio(scene: &Scene, file: &Path, more: &[&str]) -> Option<Value> {
    let mut command = scene.command(Path::new(needs::tool(Need::Fio)?));
    command
        .args([
            "--name=t", "--direct=1", "--rw=randread", "--bs=4k", "--runtime=2", "--time_based",
        ])
        .args(["--size=64m", "--output-format=json"])
        .arg(format!("--filename={}", file.display()))
        .args(more);
    let output = scene.carry_out(&mut command, |_| ()).expect("fio starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let json = &text[text.find('{').expect("an object")..];
    let all: Value = serde_json::from_str(json).expect("JSON");
    assert_eq!(all["jobs"][0]["error"], 0, "{text}");
    Some(all["jobs"][0]["read"].clone())
}

#[track_caller]
fn near(what: &str, measured: f64, truth: f64) {
    let off = (measured / truth - 1.0).abs();
    assert!(off <= OFF, "{what}: {measured}, true is {truth}");
}

/// A scene with an empty folder and a definition.
fn scene(definition: &str) -> Made<(Scene, PathBuf)> {
    let scene = Scene::new()?;
    let at = scene.subfolder("model")?;
    std::fs::write(scene.folder().join("model.toml"), definition).expect("a file");
    Ok((scene, at))
}

/// Serves a definition; a skip where that is impossible.
#[track_caller]
pub(crate) fn served(definition: &str, more: &[&str]) -> Option<(Scene, ServedModel)> {
    let made = scene(definition).and_then(|(scene, at)| {
        let more = [&["--format", "json"], more].concat();
        let served = ServedModel::begin(&scene, "model.toml", &at, &more)?;
        Ok((scene, served))
    });
    unless_missing(made)
}

#[test]
fn fio_and_iolab_measure_the_fixed_latency() {
    let _alone = alone();
    let Some((mut scene, model)) = served(FIXED, &[]) else {
        return;
    };
    let by_fio = fio(&scene, &model.file(), &[]);
    scene.target = model.file();
    let seen = measure(
        &scene,
        &Workload {
            time_ms: 300,
            ..Workload::LATENCY
        },
    );
    let Some(report) = report(model, &scene) else {
        return;
    };
    assert_eq!(
        report["all"]["service_ns"]["p50"]
            .as_u64()
            .map(|ns| ns / 10_000),
        Some(500)
    );
    near("iolab", seen.number("latency_p50_ns_median"), 5e6);
    if let Some(read) = by_fio {
        let median = read["clat_ns"]["percentile"]["50.000000"].as_f64();
        near("fio", median.expect("a median"), 5e6);
    }
}

/// With 4 outstanding, 500 a second are served, and each waits for three others.
#[test]
fn one_request_at_a_time_is_served() {
    let _alone = alone();
    let Some((scene, model)) = served(SERIAL, &[]) else {
        return;
    };
    let read = fio(&scene, &model.file(), &["--ioengine=libaio", "--iodepth=4"]);
    let Some(read) = read else { return };
    let Some(report) = report(model, &scene) else {
        return;
    };
    assert_eq!(report["requests_at_most"], 4);
    near(
        "requests per second",
        read["iops"].as_f64().expect("a rate"),
        500.0,
    );
    let median = read["clat_ns"]["percentile"]["50.000000"].as_f64();
    near("latency", median.expect("a median"), 8e6);
}

/// Each time in the ledger equals the model's for the same arrivals, and fio measures their mean.
#[test]
fn a_disk_takes_the_time_of_its_model() {
    let _alone = alone();
    let text = definition::built_in("hp-97560").expect("in the catalogue");
    let Some((scene, model)) = served(text, &["--ledger", "ledger.csv"]) else {
        return;
    };
    let Some(read) = fio(&scene, &model.file(), &[]) else {
        return;
    };
    let Some(report) = report(model, &scene) else {
        return;
    };
    let ledger = std::fs::read_to_string(scene.folder().join("ledger.csv")).expect("a ledger");
    let mut disk = Definition::parse(text)
        .and_then(|definition| build(&definition, 0))
        .expect("a model");
    let mut sum = 0;
    let rows: Vec<Vec<&str>> = ledger
        .lines()
        .skip(1)
        .map(|l| l.split(',').collect())
        .collect();
    for row in &rows {
        let number = |at: usize| row[at].parse::<u64>().expect("a number");
        let (arrival, due, done) = (number(0), number(4), number(5));
        assert_eq!(row[1], "read");
        let completion = serve(&mut *disk, arrival, &Request::read(number(2), number(3)));
        assert_eq!(due, completion.finished);
        assert!(due <= done);
        sum += due - arrival;
    }
    assert_eq!(report["all"]["requests"].as_u64(), Some(rows.len() as u64));
    let mean = sum as f64 / rows.len() as f64;
    near(
        "fio",
        read["clat_ns"]["mean"].as_f64().expect("a mean"),
        mean,
    );
}

#[test]
fn a_dilated_model_takes_as_much_longer() {
    let _alone = alone();
    let Some((scene, model)) = served(FIXED, &["--speed", "0.2"]) else {
        return;
    };
    let Some(read) = fio(&scene, &model.file(), &[]) else {
        return;
    };
    if report(model, &scene).is_some() {
        let median = read["clat_ns"]["percentile"]["50.000000"].as_f64();
        near("fio", median.expect("a median"), 25e6);
    }
}

#[test]
fn no_mount_is_left_behind() {
    let _alone = alone();
    let Some((scene, at)) = unless_missing(scene(FIXED)) else {
        return;
    };
    let begin = || ServedModel::begin(&scene, "model.toml", &at, &[]);
    let Some(model) = unless_missing(begin()) else {
        return;
    };
    // A second server does not mount over it.
    assert!(begin().is_err());
    assert_eq!(mounts(&at), 1);
    // The disk keeps written data, and is unmounted while it is open.
    let open = std::fs::File::options()
        .write(true)
        .read(true)
        .open(model.file());
    let open = open.expect("the disk");
    let data = [7; 5000];
    open.write_all_at(&data, 1_000_000).expect("room");
    let mut back = [0; 5000];
    open.read_exact_at(&mut back, 1_000_000).expect("data");
    assert_eq!(back, data);
    model.signal(Signal::TERM);
    let (_, report, _) = model.ended(&scene);
    assert!(report.starts_with("Served 2 requests"), "{report}");
    assert!(!is_mounted(&at));
    drop(open);

    let killed = begin().expect("it could be served before");
    killed.signal(Signal::KILL);
    assert_eq!(killed.ended(&scene).0, None);
    assert!(
        is_mounted(&at),
        "the kernel keeps the mount of a process that was killed"
    );
    let again = begin().expect("what is left is removed");
    assert_eq!(mounts(&at), 1, "{}", again.words);
    assert!(again.file().exists());

    // Unmounting ends the server.
    rustix::mount::unmount(&at, rustix::mount::UnmountFlags::empty()).expect("not in use");
    let (code, report, _) = again.ended(&scene);
    assert_eq!(code, Some(0));
    assert!(report.starts_with("Served 0 requests"), "{report}");
    assert!(!is_mounted(&at));
}
