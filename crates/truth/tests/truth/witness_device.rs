//! `iolab witness` on an exclusive device: the bytes equal the device's counters, however a program moves them
//! and however it ends.

use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use iolab_truth::Scene;
use iolab_truth::iolab::witness_with;
use iolab_truth::scenarios::{LOOP_DIRECT, THROTTLED};
use needs::Need;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::stage::{built, within};

pub(crate) const BYTES: f64 = (32u64 << 20) as f64;

pub(crate) fn number(evidence: &Value, pointer: &str) -> f64 {
    let value = evidence.pointer(pointer).and_then(Value::as_f64);
    value.unwrap_or(f64::NAN)
}

/// The two ends of an interval.
pub(crate) fn bounds(evidence: &Value, pointer: &str) -> [f64; 2] {
    ["least", "most"].map(|end| number(evidence, &format!("{pointer}/{end}")))
}

/// A script that another process runs over and over; it ends with the scene's folder at the latest.
pub(crate) struct Other {
    go: PathBuf,
    process: Child,
}

impl Other {
    pub(crate) fn begin(scene: &Scene, script: &str) -> Self {
        let go = scene.folder().join("go");
        std::fs::write(&go, "").expect("a file");
        let process = Command::new("sh")
            .args(["-c", &format!("while [ -e go ]; do {script}; done")])
            .current_dir(scene.folder())
            .spawn()
            .expect("sh is everywhere");
        Self { go, process }
    }

    pub(crate) fn end(mut self) {
        std::fs::remove_file(self.go).expect("it is there");
        self.process.wait().expect("it ends");
    }
}

/// Evidence of a program on the scene's target.
fn of(scene: &Scene, program: &str) -> Value {
    let target = scene.target.display().to_string();
    let line = program.replace("TARGET", &target);
    of_words(scene, &line.split(' ').collect::<Vec<&str>>())
}

fn of_words(scene: &Scene, program: &[&str]) -> Value {
    let target = scene.target.display().to_string();
    let arguments = [&["--on", &target, "--"], program].concat();
    let (output, evidence) = witness_with(scene, &arguments, |_| ());
    assert!(output.status.success(), "{program:?}: {output:?}");
    evidence
}

/// Evidence of a script on the scene's target.
pub(crate) fn of_script(scene: &Scene, script: &str) -> Value {
    let script = script.replace("TARGET", &scene.target.display().to_string());
    let target = scene.target.display().to_string();
    let arguments = ["--on", &target, "--", "sh", "-c", &script];
    witness_with(scene, &arguments, |_| ()).1
}

/// Compares the program's moved bytes in the evidence with its requests, and these with the device's counters.
#[track_caller]
pub(crate) fn assert_counted(evidence: &Value, direction: &str, bytes: f64, what: &str) {
    let counter = match direction {
        "reads" => "/devices/0/read_bytes",
        _ => "/devices/0/write_bytes",
    };
    let device = number(evidence, counter);
    // A program reads itself and its libraries too, from other disks.
    let moved = number(evidence, &format!("/{direction}/moved_bytes"));
    let [least, most] = bounds(evidence, &format!("/{direction}/carried_bytes"));
    assert!(
        within(device, bytes, 0.01),
        "{what}: device {device}\n{evidence:#}"
    );
    assert!(moved >= 0.99 * bytes, "{what}: moved {moved}\n{evidence:#}");
    assert!(
        least <= device * 1.01 && within(most, device, 0.01),
        "{what}: {least} to {most} of {device}\n{evidence:#}"
    );
}

/// Script that fio runs before it closes its file: it ends once iolab has looked at the processes. Each look
/// reads their open files; iolab sleeps after each complete look.
const UNTIL_SEEN: &str = "p=$$
while read -r name < /proc/$p/comm && [ $name != iolab ]; do p=$(cut -d ' ' -f 4 /proc/$p/stat); done
calls() { while read -r what number; do [ $what != syscr: ] || echo $number; done < /proc/$p/io; }
least=$(($(calls) + 400))
until [ $(calls) -ge $least ] && grep -q ') S ' /proc/$p/stat; do sleep 0.02; done; true";

/// Argument of fio to run this after its I/O.
pub(crate) fn until_seen() -> String {
    format!("--exec_postrun={UNTIL_SEEN}")
}

#[test]
fn every_backend_of_fio_is_counted() {
    if needs::tool(Need::Fio).is_none() {
        return;
    }
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let target = scene.target.display().to_string();
    let until_seen = until_seen();
    for engine in [
        "psync", "sync", "vsync", "posixaio", "libaio", "io_uring", "io_uring --sqthread_poll=1",
        "mmap",
    ] {
        for (mode, direction) in [("read", "reads"), ("write", "writes")] {
            let direct = u8::from(engine != "mmap");
            let line = format!(
                "fio --name=t --filename={target} --rw={mode} --bs=64k --size=32M --ioengine={engine} --direct={direct} --iodepth=4 --end_fsync=1"
            );
            let words: Vec<&str> = line.split(' ').chain([&*until_seen]).collect();
            let evidence = of_words(&scene, &words);
            let what = format!("{engine} {mode}");
            if engine == "mmap" {
                // Read-ahead fetches more than the reads, and pages are written that are dirtied again.
                let counter = format!("/devices/0/{mode}_bytes");
                let device = number(&evidence, &counter);
                let carried = number(&evidence, &format!("/{direction}/carried_bytes/most"));
                assert!(device >= 0.99 * BYTES, "{what}:\n{evidence:#}");
                assert!(
                    carried >= 0.99 * BYTES && carried <= device,
                    "{what}:\n{evidence:#}"
                );
            } else {
                assert_counted(&evidence, direction, BYTES, &what);
            }
            let served = evidence[direction]["served_by"].as_str();
            // The kernel does not count a program's use of its mappings.
            let expected: &[&str] = match (engine, mode) {
                ("mmap", "read") => &["device", "unknown"],
                _ => &["device"],
            };
            assert!(
                served.is_some_and(|served| expected.contains(&served)),
                "{what}:\n{evidence:#}"
            );
        }
    }
}

#[test]
fn processes_and_threads_are_counted() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    if needs::tool(Need::Fio).is_some() {
        for thread in [0, 1] {
            let evidence = of(
                &scene,
                &format!(
                    "fio --name=t --filename=TARGET --rw=read --bs=256k --size=8M --offset_increment=8M --numjobs=4 --thread={thread} --ioengine=psync --direct=1"
                ),
            );
            assert_counted(&evidence, "reads", BYTES, &format!("thread={thread}"));
        }
    }
    let twenty = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        dd if=TARGET of=/dev/null bs=1M count=16 iflag=direct status=none & done; wait";
    let evidence = of_script(&scene, twenty);
    assert_counted(&evidence, "reads", 10.0 * BYTES, "20 at once");
    assert_eq!(evidence["reads"]["served_by"], "device", "{evidence:#}");
}

/// 20 observations at once, each of a program with its own device: each result is separate, and the device is
/// named.
#[test]
fn observations_at_once_are_kept_apart() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let iolab = scene.binary().display().to_string();
    let target = scene.target.display().to_string();
    let all: Vec<(u64, Child)> = (1..=20)
        .map(|mib| {
            let file = scene.folder().join(format!("{mib}.json"));
            let read =
                format!("if={target} of=/dev/null bs=1M count={mib} iflag=direct status=none");
            let started = Command::new(&iolab)
                .args(["witness", "--on", &target, "-o"])
                .arg(file)
                .args(["--", "dd"])
                .args(read.split(' '))
                .stderr(Stdio::null())
                .spawn();
            (mib, started.expect("iolab starts"))
        })
        .collect();
    for (mib, mut child) in all {
        assert!(child.wait().expect("it ends").success());
        let file = scene.folder().join(format!("{mib}.json"));
        let text = std::fs::read(file).expect("evidence");
        let evidence: Value = serde_json::from_slice(&text).expect("it is JSON");
        let bytes = (mib << 20) as f64;
        let [least, most] = bounds(&evidence, "/reads/carried_bytes");
        assert!(
            least <= bytes && most >= bytes && least <= number(&evidence, "/reads/moved_bytes"),
            "{mib}: {least} to {most}\n{evidence:#}"
        );
        let read = number(&evidence, "/processes/rchar");
        assert!(within(read, bytes, 0.03), "{mib}: {read}\n{evidence:#}");
    }
}

/// Another process's traffic with the same device leaves an interval that contains the program's own bytes.
#[test]
fn what_others_read_leaves_an_interval() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let other = format!(
        "dd if={} of=/dev/null bs=1M count=4 iflag=direct status=none",
        scene.target.display()
    );
    let other = Other::begin(&scene, &other);
    let evidence = of(
        &scene,
        "dd if=TARGET of=/dev/null bs=256k count=128 iflag=direct status=none",
    );
    other.end();
    let device = number(&evidence, "/devices/0/read_bytes");
    let [least, most] = bounds(&evidence, "/reads/carried_bytes");
    assert!(device > 1.01 * BYTES, "{evidence:#}");
    assert!(least <= BYTES && BYTES <= most, "{evidence:#}");
    assert!(within(most, BYTES, 0.02), "{evidence:#}");
    assert_eq!(evidence["reads"]["served_by"], "device", "{evidence:#}");
    assert_eq!(evidence["others"]["used_devices"], true, "{evidence:#}");
}

/// A short program, a killed one, and one that never ends.
#[test]
fn however_it_ends_it_is_counted() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let read = "dd if=TARGET of=/dev/null bs=1M count=32 iflag=direct status=none";
    let small = "dd if=TARGET of=/dev/null bs=1M count=1 iflag=direct status=none";
    let evidence = of(&scene, small);
    assert_counted(&evidence, "reads", BYTES / 32.0, "a moment");
    // Its totals are known without --on too; whether a look has seen its open files depends on chance.
    let line = small.replace("TARGET", &scene.target.display().to_string());
    let words: Vec<&str> = ["--"].into_iter().chain(line.split(' ')).collect();
    let (output, evidence) = witness_with(&scene, &words, |_| ());
    assert!(output.status.success(), "{output:?}");
    for of_account in ["/processes/rchar", "/reads/moved_bytes"] {
        let bytes = number(&evidence, of_account);
        assert!(bytes >= BYTES / 32.0, "{of_account}: {evidence:#}");
    }
    let evidence = of_script(&scene, &format!("{read}; kill -KILL $$"));
    assert_eq!(evidence["signal"], 9, "{evidence:#}");
    assert_counted(&evidence, "reads", BYTES, "killed");

    let target = scene.target.display().to_string();
    let script = format!(
        "{}; touch done; while :; do sleep 60; done",
        read.replace("TARGET", &target)
    );
    let arguments = ["--on", &target, "--", "sh", "-c", &script];
    let (output, evidence) = witness_with(&scene, &arguments, |iolab| {
        until(|| scene.folder().join("done").exists());
        // As by a terminal: to the whole group, iolab and the program.
        interrupt(iolab);
        for child in children(iolab.id()) {
            send(child, Signal::INT);
            children(child)
                .into_iter()
                .for_each(|child| send(child, Signal::INT));
        }
    });
    assert_eq!(output.status.signal(), Some(2), "{output:?}");
    assert_counted(&evidence, "reads", BYTES, "interrupted");
}

fn until(mut is_so: impl FnMut() -> bool) {
    while !is_so() {
        std::thread::yield_now();
    }
}

fn send(process: u32, signal: Signal) {
    let number = i32::try_from(process).ok().and_then(Pid::from_raw);
    // The process may have ended meanwhile.
    let _ = kill_process(number.expect("a number"), signal);
}

fn interrupt(child: &Child) {
    send(child.id(), Signal::INT);
}

fn children(process: u32) -> Vec<u32> {
    let text = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children"));
    let text = text.unwrap_or_default();
    text.split_whitespace()
        .filter_map(|child| child.parse().ok())
        .collect()
}

/// Waits until iolab reports that activity counts from now on.
fn until_it_observes(iolab: &mut Child) {
    let stderr = iolab.stderr.as_mut().expect("it is piped");
    let mut byte = [0];
    // Byte by byte: the rest after the line is for a later reader.
    while byte != *b"\n" {
        stderr.read_exact(&mut byte).expect("it says something");
    }
}

/// Earlier and later I/O of the process does not count; its children's in between does, to their end.
#[test]
fn a_process_that_runs_is_joined() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let target = scene.target.display().to_string();
    let read = format!("dd if={target} of=/dev/null bs=1M count=16 iflag=direct status=none");
    let script =
        format!("{read}; mkfifo go; touch ready; read line < go; {read}; sh -c '{read}; true'");
    let mut program = Command::new("sh")
        .args(["-c", &script])
        .current_dir(scene.folder())
        .stdin(Stdio::null())
        .spawn()
        .expect("sh is everywhere");
    until(|| scene.folder().join("ready").exists());
    let pid = program.id().to_string();
    let (output, evidence) = witness_with(&scene, &["--on", &target, "-p", &pid], |iolab| {
        until_it_observes(iolab);
        std::fs::write(scene.folder().join("go"), "\n").expect("it waits");
        program.wait().expect("it ends");
    });
    assert!(output.status.success(), "{output:?}");
    assert_eq!(evidence["joined_pid"].to_string(), pid);
    assert_eq!(evidence["processes"]["cut_short"], 0, "{evidence:#}");
    assert_counted(&evidence, "reads", BYTES, "joined");
    assert_eq!(evidence["reads"]["served_by"], "device", "{evidence:#}");
}

/// A process that used the device is named with its I/O, though it has ended.
#[test]
fn a_device_alone_names_who_used_it() {
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let target = scene.target.display().to_string();
    let (output, evidence) = witness_with(&scene, &["--device", &target], |iolab| {
        until_it_observes(iolab);
        let from = format!("if={target}");
        let read = [
            "of=/dev/null", "bs=1M", "count=32", "iflag=direct", "status=none",
        ];
        let done = Command::new("dd").arg(from).args(read).status();
        assert!(done.is_ok_and(|done| done.success()));
        interrupt(iolab);
    });
    assert!(output.status.success(), "{output:?}");
    assert!(
        within(number(&evidence, "/devices/0/read_bytes"), BYTES, 0.01),
        "{evidence:#}"
    );
    let all = evidence["others"]["processes"].as_array().expect("a list");
    let own = all.iter().find(|one| {
        one["name"] == "dd" && within(one["read_bytes"].as_f64().unwrap_or(0.0), BYTES, 0.01)
    });
    assert!(
        own.is_some_and(|own| own["has_ended"] == true),
        "{evidence:#}"
    );
}

#[test]
fn a_limit_is_told_and_changes_no_verdict() {
    let Some((scene, _alone)) = built(&THROTTLED) else {
        return;
    };
    let evidence = of(
        &scene,
        "dd if=TARGET of=/dev/null bs=1M count=16 iflag=direct status=none",
    );
    assert_counted(&evidence, "reads", BYTES / 2.0, "throttled");
    assert_eq!(evidence["reads"]["served_by"], "device", "{evidence:#}");
    let limits = evidence["limits"]["io"].as_array().expect("a list");
    let is_told = limits
        .iter()
        .any(|one| one["what"] == "rbps" && one["per_second"] == 20_000_000);
    assert!(is_told, "{evidence:#}");
}

/// IOzone reports its I/O; the device has carried all of it, past the page cache.
#[test]
fn iozone_is_held_against_its_claim() {
    let Some(iozone) = needs::tool(Need::Iozone) else {
        return;
    };
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let target = scene.target.display().to_string();
    let line = format!("{iozone} -i 0 -i 1 -s 16m -r 1m -I -w -f {target} > report");
    let arguments = [
        "--on", &target, "--claim", "report", "--", "sh", "-c", &line,
    ];
    let (output, evidence) = witness_with(&scene, &arguments, |_| ());
    assert!(output.status.success(), "{output:?}");
    for (direction, claimed) in [("reads", "/claim/reads"), ("writes", "/claim/writes")] {
        assert_eq!(evidence[direction]["served_by"], "device", "{evidence:#}");
        let of_claim = |name| number(&evidence, &format!("{claimed}/{name}"));
        assert_eq!(of_claim("bytes"), BYTES, "{evidence:#}");
        assert_eq!(of_claim("carried_bytes_most"), BYTES, "{evidence:#}");
        // Before some tests it reads a few records that it does not count.
        let counter = format!("/devices/0/{}_bytes", direction.trim_end_matches('s'));
        let device = number(&evidence, &counter);
        assert!(
            (BYTES..1.25 * BYTES).contains(&device),
            "{device}\n{evidence:#}"
        );
        let exceeds = evidence.pointer(&format!("{claimed}/exceeds_devices"));
        assert_eq!(exceeds, Some(&Value::Bool(false)), "{evidence:#}");
    }
}

/// Less than 1 % of a CPU over 20 s, with a program of five processes that make 400 requests a second.
#[test]
fn observing_takes_little() {
    if needs::tool(Need::Fio).is_none() {
        return;
    }
    let Some((scene, _alone)) = built(&LOOP_DIRECT) else {
        return;
    };
    let evidence = of(
        &scene,
        "fio --name=t --filename=TARGET --rw=randread --bs=4k --size=32M --direct=1 --ioengine=psync --numjobs=4 --rate_iops=100 --time_based --runtime=20",
    );
    let share = number(&evidence, "/observer_cpu_ns") / number(&evidence, "/observed_ns");
    println!("observing took {:.2} % of a CPU", share * 100.0);
    assert!(share < 0.01, "{share}");
}
