//! Other programs as `iolab witness` observes them: the same verdict as on iolab's own engine, and the bytes that devices count.

use std::process::Command;

use iolab_truth::iolab::{witness, witness_with};
use iolab_truth::scenarios::{
    BUFFERED_WRITES, COLD_READS, DIRECT_READS, DIRECT_WRITES, HOLE, HOT_READS, LOOP_DIRECT,
    LOOP_IN_MEMORY, LOWER_COLD, LOWER_HOT, TMPFS, USER_SPACE,
};
use iolab_truth::served::ServedModel;
use iolab_truth::system::unless_missing;
use iolab_truth::{Scenario, Scene};
use needs::Need;
use rustix::process::Signal;
use serde_json::Value;

use crate::stage::{built, within};

const BYTES: f64 = (32u64 << 20) as f64;

/// Brings the page cache of the target into the state that a scenario asks for.
fn prepare(scene: &Scene, scenario: &Scenario) {
    let from = format!("if={}", scene.target.display());
    let arguments: &[&str] = match scenario.workload.cache {
        "hot" => &["of=/dev/null", "bs=1M"],
        // Without a count dd gives the kernel the advice to drop the file.
        _ => &["iflag=nocache", "count=0"],
    };
    let done = Command::new("dd").arg(from).args(arguments).output();
    assert!(done.is_ok_and(|done| done.status.success()));
}

/// Programs that do what the scenario asks for.
fn programs(scene: &Scene, scenario: &Scenario) -> Vec<Vec<String>> {
    let target = scene.target.display();
    let is_direct = scenario.workload.cache == "direct";
    let (writes, mode) = match scenario.workload.writes {
        true => (true, "write"),
        false => (false, "read"),
    };
    let flag = if is_direct { "direct" } else { "nonblock" };
    let dd = match writes {
        true => format!("dd if=/dev/zero of={target} conv=notrunc oflag={flag}"),
        false => format!("dd if={target} of=/dev/null iflag={flag}"),
    };
    let mut lines = vec![format!("{dd} bs=1M count=32 status=none")];
    let fio = Command::new("fio").arg("--version").output();
    match fio {
        Ok(_) => lines.push(format!(
            "fio --name=t --filename={target} --rw={mode} --bs=1M --size=32M --ioengine=psync --direct={} --invalidate=0",
            u8::from(is_direct)
        )),
        Err(_) => needs::skip(Need::Fio, "fio does not start"),
    }
    let words = |line: &String| line.split(' ').map(str::to_owned).collect();
    lines.iter().map(words).collect()
}

/// What is said of each program on the target of a scenario, once it was held against the row.
#[track_caller]
fn witnessed(scenario: &Scenario) -> Vec<Value> {
    let Some((scene, _alone)) = built(scenario) else {
        return Vec::new();
    };
    let direction = match scenario.workload.writes {
        true => "writes",
        false => "reads",
    };
    let mut all = Vec::new();
    for program in programs(&scene, scenario) {
        prepare(&scene, scenario);
        let program: Vec<&str> = program.iter().map(String::as_str).collect();
        let (evidence, text) = witness(&scene, &program);
        assert_eq!(evidence["exit_code"], 0, "{text}");
        let verdict = evidence[direction]["served_by"]
            .as_str()
            .unwrap_or_default();
        assert!(
            scenario.expect.served_by.contains(&verdict),
            "{}: '{verdict}' and not {:?}:\n{text}\n{evidence:#}",
            program[0],
            scenario.expect.served_by
        );
        all.push(evidence);
    }
    all
}

#[test]
fn reads_have_the_verdict_of_the_engine() {
    for scenario in [
        &HOT_READS,
        &HOLE,
        &TMPFS,
        &LOWER_HOT,
        &LOOP_IN_MEMORY,
        &USER_SPACE,
    ] {
        witnessed(scenario);
    }
}

#[test]
fn what_a_device_served_is_counted() {
    for scenario in [&DIRECT_READS, &COLD_READS, &LOWER_COLD] {
        for evidence in witnessed(scenario) {
            let moved = evidence["reads"]["moved_bytes"]
                .as_f64()
                .unwrap_or(f64::NAN);
            assert!(within(moved, BYTES, 0.05), "{evidence:#}");
        }
    }
}

#[test]
fn the_bytes_are_those_of_a_device_that_nothing_else_uses() {
    for evidence in witnessed(&LOOP_DIRECT) {
        let number = |pointer| evidence.pointer(pointer).and_then(Value::as_f64);
        let [device, least, most] = [
            "/devices/0/read_bytes",
            "/reads/carried_bytes/least",
            "/reads/carried_bytes/most",
        ]
        .map(|pointer| number(pointer).unwrap_or(f64::NAN));
        assert!(
            least <= device && within(most, device, 0.01),
            "{evidence:#}"
        );
    }
}

#[test]
fn writes_have_the_verdict_of_the_engine() {
    for scenario in [&DIRECT_WRITES, &BUFFERED_WRITES] {
        witnessed(scenario);
    }
}

/// A daemon, and a child whose end its parent ignores.
#[test]
fn what_leaves_the_tree_is_counted() {
    let Some((scene, _alone)) = built(&DIRECT_READS) else {
        return;
    };
    let read = format!(
        "dd if={} of=/dev/null bs=1M iflag=direct status=none",
        scene.target.display()
    );
    let daemon = format!("(setsid sh -c '{read}; true' &)");
    // The trap stays in force for the children of a shell that becomes another one.
    let ignored = format!("trap '' CHLD; exec sh -c '{read} & wait; true'");
    for script in [daemon, ignored] {
        let (evidence, text) = witness(&scene, &["sh", "-c", &script]);
        let moved = evidence["reads"]["moved_bytes"]
            .as_f64()
            .unwrap_or(f64::NAN);
        assert!(
            within(moved, BYTES, 0.05),
            "{script}:\n{text}\n{evidence:#}"
        );
        assert_eq!(evidence["processes"]["may_miss_children"], false);
    }
}

/// A process answers for the bytes of a served model: what it does with them is not known, and no device is called their source.
#[test]
fn a_model_that_is_served_is_no_device() {
    let made = Scene::new().and_then(|scene| {
        let at = scene.subfolder("model")?;
        std::fs::write(scene.folder().join("model.toml"), SERVED).expect("a file");
        let model = ServedModel::begin(&scene, "model.toml", &at, &[])?;
        Ok((scene, model))
    });
    let Some((scene, model)) = unless_missing(made) else {
        return;
    };
    let file = model.file().display().to_string();
    let from = format!("if={file}");
    let read = [
        "dd",
        &from,
        "of=/dev/null",
        "bs=1M",
        "count=32",
        "status=none",
    ];
    for flags in [&["iflag=direct"][..], &[]] {
        let arguments = [&["--on", &file, "--"], &read[..], flags].concat();
        let (output, evidence) = witness_with(&scene, &arguments, |_| ());
        assert!(output.status.success(), "{output:?}");
        assert_eq!(evidence["reads"]["served_by"], "unknown", "{evidence:#}");
        let read = evidence["processes"]["rchar"].as_f64().unwrap_or(f64::NAN);
        assert!(within(read, BYTES, 0.01), "{evidence:#}");
    }
    model.signal(Signal::INT);
    model.ended(&scene);
}

/// Requests take 1 ms, of a disk of 64 MiB.
const SERVED: &str = "title = \"1 ms each\"\nsource = []\n\
    [model.latency]\nread_us = 1000\nwrite_us = 1000\ninner.memory = 67_108_864\n";
