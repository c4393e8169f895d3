//! Other programs observed by `iolab witness`: the same verdict as on iolab's own engine, and the bytes that
//! devices count.

use std::path::Path;
use std::process::Command;

use iolab_truth::iolab::{measure, witness, witness_with};
use iolab_truth::scenarios::{
    BUFFERED_WRITES, COLD_READS, DIRECT_READS, DIRECT_WRITES, HOLE, HOT_READS, LOOP_DIRECT,
    LOOP_IN_MEMORY, LOWER_COLD, LOWER_HOT, THROTTLED, TMPFS, USER_SPACE,
};
use iolab_truth::served::ServedModel;
use iolab_truth::system::unless_missing;
use iolab_truth::workload::Workload;
use iolab_truth::{Scenario, Scene};
use needs::Need;
use rustix::process::Signal;
use serde_json::Value;

use crate::stage::{built, within};

/// Bytes that each program moves.
const BYTES: f64 = (32u64 << 20) as f64;

/// Script that fio runs before it closes its file: it ends once iolab has looked at the processes. Each look
/// reads their open files; iolab sleeps after each complete look.
const UNTIL_SEEN: &str = "--exec_postrun=p=$$
	while read -r name < /proc/$p/comm && [ $name != iolab ]; do p=$(cut -d ' ' -f 4 /proc/$p/stat); done
	calls() { while read -r what number; do [ $what != syscr: ] || echo $number; done < /proc/$p/io; }
	least=$(($(calls) + 400))
	until [ $(calls) -ge $least ] && grep -q ') S ' /proc/$p/stat; do sleep 0.02; done; true";

fn number(evidence: &Value, pointer: &str) -> f64 {
    let value = evidence.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or(f64::NAN)
}

/// The two ends of an interval.
fn bounds(evidence: &Value, pointer: &str) -> [f64; 2] {
    ["least", "most"].map(|end| number(evidence, &format!("{pointer}/{end}")))
}

/// Brings the page cache of the target into the state of a scenario.
fn prepare(scene: &Scene, scenario: &Scenario) {
    let from = format!("if={}", scene.target.display());
    let arguments: &[&str] = match scenario.workload.cache {
        "hot" => &["of=/dev/null", "bs=1M"],
        // Without a count, dd advises the kernel to drop the file.
        _ => &["iflag=nocache", "count=0"],
    };
    let done = Command::new("dd").arg(from).args(arguments).output();
    assert!(done.is_ok_and(|done| done.status.success()));
}

/// A program that does the I/O of a scenario.
struct Program {
    words: Vec<String>,
    /// Factor by which it may exceed the scenario's bytes, for records that it does not count.
    excess: f64,
    /// Origin of its bytes, if that differs from the scenario's expectation for iolab's engine.
    served_by: Option<&'static str>,
}

impl Program {
    fn of(line: &str) -> Self {
        Self {
            words: line.split(' ').map(str::to_owned).collect(),
            excess: 1.05,
            served_by: None,
        }
    }
}

/// Programs that do the scenario's I/O on a file or device; `is_seen` makes fio wait until iolab has looked at
/// its open files.
fn programs(target: &Path, workload: &Workload, is_seen: bool) -> Vec<Program> {
    let target = target.display();
    let is_direct = workload.cache == "direct";
    let flag = if is_direct { "direct" } else { "nonblock" };
    let dd = match workload.writes {
        true => format!("dd if=/dev/zero of={target} conv=notrunc oflag={flag}"),
        false => format!("dd if={target} of=/dev/null iflag={flag}"),
    };
    let mut all = vec![Program::of(&format!("{dd} bs=1M count=32 status=none"))];
    let mode = if workload.writes { "write" } else { "read" };
    if let Some(fio) = needs::tool(Need::Fio) {
        let mut fio = Program::of(&format!(
            "{fio} --name=t --filename={target} --rw={mode} --bs=1M --size=32M --ioengine=psync --direct={} --invalidate=0",
            u8::from(is_direct)
        ));
        fio.words.extend(is_seen.then(|| UNTIL_SEEN.to_owned()));
        all.push(fio);
    }
    if let Some(iozone) = needs::tool(Need::Iozone) {
        // Without repeated tests, on a file that stays.
        let test = if workload.writes { "-i 0" } else { "-+E -i 1" };
        let flag = if is_direct { " -I" } else { "" };
        let line = format!("{iozone} {test} -+n -w -s 32m -r 1m{flag} -f {target}");
        all.push(Program {
            // IOzone reads a few records before the test.
            excess: 1.25,
            // IOzone syncs its writes before it closes the file.
            served_by: workload.writes.then_some("device"),
            ..Program::of(&line)
        });
    }
    all
}

/// Loads a program with its libraries into the page cache. Bytes that page faults fetch of these cannot be
/// distinguished from its reads. With a read-ahead of 8 MiB, two faults can have fetched as much.
fn load(program: &str) {
    let done = Command::new(program).arg("--version").output();
    done.expect("it starts");
}

/// Compares the evidence of each program with the row of its target, and returns it with the program's allowed
/// excess.
#[track_caller]
fn witnessed(scenario: &Scenario) -> Vec<(Value, f64)> {
    let Some((scene, _alone)) = built(scenario) else {
        return Vec::new();
    };
    let direction = match scenario.workload.writes {
        true => "writes",
        false => "reads",
    };
    let mut all = Vec::new();
    // Its libraries are so large that its open files have to distinguish its reads from page faults.
    let is_seen = !scenario.workload.writes && scenario.expect.served_by == ["device"];
    for program in programs(&scene.target, &scenario.workload, is_seen) {
        load(&program.words[0]);
        prepare(&scene, scenario);
        let words: Vec<&str> = program.words.iter().map(String::as_str).collect();
        let (mut evidence, mut text) = witness(&scene, &words);
        // A page fault fetched a part of the program that had left the page cache: the next time it is there.
        let by_faults = |evidence: &Value| {
            let [least, most] = bounds(evidence, "/reads/by_calls_bytes");
            is_seen && least < most
        };
        for _ in 0..2 {
            if by_faults(&evidence) {
                prepare(&scene, scenario);
                (evidence, text) = witness(&scene, &words);
            }
        }
        let what = format!("{}, {}:\n{text}\n{evidence:#}", scenario.name, words[0]);
        assert_eq!(evidence["end"]["code"], 0, "{what}");
        let verdict = evidence[direction]["served_by"]
            .as_str()
            .unwrap_or_default();
        let expected = match &program.served_by {
            Some(own) => std::slice::from_ref(own),
            None => scenario.expect.served_by,
        };
        assert!(
            expected.contains(&verdict),
            "'{verdict}' and not {expected:?}: {what}"
        );
        all.push((evidence, program.excess));
    }
    all
}

#[test]
fn reads_have_the_verdict_of_the_engine() {
    for scenario in [
        &HOT_READS, &HOLE, &TMPFS, &LOWER_HOT, &LOOP_IN_MEMORY, &USER_SPACE,
    ] {
        witnessed(scenario);
    }
}

/// The bytes are within the stated bounds, whoever else uses the disk.
#[test]
fn what_a_device_served_is_counted() {
    for scenario in [&DIRECT_READS, &COLD_READS, &LOWER_COLD] {
        for (evidence, excess) in witnessed(scenario) {
            let moved = number(&evidence, "/reads/moved_bytes");
            assert!(
                (0.95 * BYTES..excess * BYTES).contains(&moved),
                "{evidence:#}"
            );
            let [least, most] = bounds(&evidence, "/reads/carried_bytes");
            assert!(least <= moved && most >= 0.99 * BYTES, "{evidence:#}");
        }
    }
}

/// No other program uses the devices of these scenarios.
#[test]
fn bytes_equal_an_exclusive_devices_counters() {
    for scenario in [&LOOP_DIRECT, &THROTTLED] {
        for (evidence, excess) in witnessed(scenario) {
            let [device, least, most] = [
                "/devices/0/read_bytes", "/reads/carried_bytes/least", "/reads/carried_bytes/most",
            ]
            .map(|pointer| number(&evidence, pointer));
            assert!(
                (BYTES..excess * BYTES).contains(&device),
                "{}: {evidence:#}",
                scenario.name
            );
            assert!(
                least <= device && within(most, device, 0.01),
                "{}: {evidence:#}",
                scenario.name
            );
        }
    }
}

#[test]
fn writes_have_the_verdict_of_the_engine() {
    for scenario in [&DIRECT_WRITES, &BUFFERED_WRITES] {
        witnessed(scenario);
    }
}

#[test]
fn a_limit_is_told_and_changes_no_verdict() {
    let Some((scene, _alone)) = built(&THROTTLED) else {
        return;
    };
    let from = format!("if={}", scene.target.display());
    let dd = [
        "dd", &from, "of=/dev/null", "bs=1M", "count=32", "iflag=direct", "status=none",
    ];
    let (evidence, text) = witness(&scene, &dd);
    assert_eq!(evidence["reads"]["served_by"], "device", "{text}");
    assert_eq!(evidence["limits"]["io"]["rbps"], 20_000_000, "{evidence:#}");
}

/// A process serves the bytes of a model: its handling is unknown, and no device is called their source.
#[test]
fn a_model_that_is_served_is_no_device() {
    let made = Scene::new().and_then(|scene| {
        let at = scene.subfolder("model")?;
        std::fs::write(scene.folder().join("model.toml"), SERVED).expect("a file");
        let model = ServedModel::begin(&scene, "model.toml", &at, &[])?;
        let disk = model.file();
        Ok((scene.on(disk), model))
    });
    let Some((scene, model)) = unless_missing(made) else {
        return;
    };
    let engine = measure(&scene, &Workload::READ);
    assert_eq!(engine.code, Some(0), "{}", engine.text);
    let verdicts = engine.measured().map(|sample| &sample["served_by"]);
    assert!(verdicts.eq(["unknown"; 6].iter()), "{}", engine.text);
    let file = model.file().display().to_string();
    for cache in ["direct", "cold"] {
        let workload = Workload {
            cache,
            ..Workload::READ
        };
        for program in programs(&model.file(), &workload, false) {
            let words = program.words.iter().map(String::as_str);
            let arguments: Vec<&str> = ["--on", &file, "--"].into_iter().chain(words).collect();
            let (output, evidence) = witness_with(&scene, &arguments, |_| ());
            assert!(output.status.success(), "{output:?}");
            assert_eq!(evidence["reads"]["served_by"], "unknown", "{evidence:#}");
            let read = number(&evidence, "/processes/rchar");
            assert!(
                (BYTES..program.excess * BYTES).contains(&read),
                "{evidence:#}"
            );
        }
    }
    model.signal(Signal::INT);
    model.ended(&scene);
}

/// Requests take 1 ms, on a disk of 64 MiB.
const SERVED: &str = "title = \"1 ms each\"\nsource = []\n\
    [model.latency]\nread_us = 1000\nwrite_us = 1000\ninner.memory = 67_108_864\n";
