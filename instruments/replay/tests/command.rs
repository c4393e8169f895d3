//! `replay`, `record` and `distil`: models answer alike, and disks as their requests say. The session `replay` has what is refused.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use needs::Need;
use rustix::process::Signal;

use crate::support::json_schema::assert_as_described;
use crate::support::{Done, folder, iolab, run, signal};

/// Requests of 4 KiB each 2 ms, every third a write.
fn trace(folder: &Path) {
    let kind = |i: u64| if i.is_multiple_of(3) { "W" } else { "R" };
    let line = |i: u64| {
        format!(
            "{},{},{},4096,100\n",
            i * 2000,
            kind(i),
            i * 7919 % 251 * 4096
        )
    };
    let lines: String = (0..120).map(line).collect();
    let text = format!("time_us,op,offset,bytes,latency_us\n{lines}");
    std::fs::write(folder.join("t.csv"), text).unwrap();
}

fn is_scratch_left(folder: &Path) -> bool {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.any(|name| name.contains("iolab"))
}

#[test]
#[cfg_attr(not(feature = "models"), ignore = "it measures a model")]
fn models_answer_alike_and_keep_the_certificate() {
    let folder = folder();
    let folder = folder.path();
    trace(folder);
    let words = [
        "replay", "t.csv", "model:sata-ssd", "model:sata-7200", "--speed", "1,max", "--format",
        "json",
    ];
    let first = run(folder, &words).expect(0).stdout;
    assert_eq!(first, run(folder, &words).expect(0).stdout);
    let said: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_as_described(folder, "replay", &said);
    let cell = &said["cells"][0];
    assert_eq!(cell["latest"]["lateness"]["max_ns"], 0);
    assert_eq!(
        (&cell["kept"], &cell["served_by"][0]),
        (&8.into(), &"model".into())
    );
}

#[test]
fn directory_gets_a_scratch_file_that_is_removed() {
    let folder = folder();
    let folder = folder.path();
    trace(folder);
    std::fs::create_dir(folder.join("disk")).unwrap();
    let words = [
        "replay", "t.csv", "disk", "--blocks", "1", "--format", "json",
    ];
    let done = run(folder, &words);
    assert!([0, 5].contains(&done.code.unwrap()));
    let said: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(said["trials"][0]["writes"]["requests"], 40);
    assert_eq!(said["trials"][0]["reads"]["requests"], 80);
    assert!(!is_scratch_left(&folder.join("disk")));
}

/// Bytes of a file that is read.
const FILE: u64 = 4 << 20;

/// Reads of this size each 2 ms, of which no two are adjacent.
fn reads(folder: &Path, count: u64, bytes: u64) {
    let line = |i: u64| format!("{},R,{},{bytes}\n", i * 2000, i * 37 % 32 * 131_072);
    let lines: String = (0..count).map(line).collect();
    let text = format!("time_us,op,offset,bytes\n{lines}");
    std::fs::write(folder.join("reads.csv"), text).unwrap();
    let mut file = std::fs::File::create(folder.join("data")).unwrap();
    file.write_all(&vec![7u8; FILE as usize]).unwrap();
    file.sync_all().unwrap();
}

/// Waits until a worker of a trial is there.
fn wait_for_worker(process: u32) {
    let is_worker = |task: std::fs::DirEntry| {
        let name = std::fs::read_to_string(task.path().join("comm"));
        name.is_ok_and(|name| name.starts_with("iolab-"))
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
        if tasks.flatten().any(is_worker) {
            return;
        }
        assert!(Instant::now() < deadline, "no worker within a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn stopped_client_is_late_and_still_answers_interrupts() {
    let folder = folder();
    let folder = folder.path();
    reads(folder, 300, 4096);
    let words = ["replay", "reads.csv", "data", "--format", "json"];
    let mut command = iolab(folder, &words);
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    wait_for_worker(child.id());
    signal(&child, Signal::INT);
    // The planted lateness.
    while child.try_wait().unwrap().is_none() {
        for sent in [Signal::STOP, Signal::CONT] {
            signal(&child, sent);
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let done = Done::from(child.wait_with_output().unwrap()).expect(130);
    let said: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(said["trials"].as_array().unwrap().len(), 1, "{said}");
    assert_eq!(said["cells"][0]["broken"][0], "late-client", "{said}");
}

/// Whether requests to a file can be recorded.
fn can_record(folder: &Path) -> bool {
    let done = run(
        folder,
        &["record", "data", "--for", "1ms", "--format", "csv"],
    );
    match done.stderr {
        _ if done.code == Some(0) => return true,
        why if why.contains("block device") => needs::skip(Need::BlockDevice, why),
        why => needs::skip(Need::TraceEvents, why),
    }
    false
}

#[test]
fn recorded_reads_are_replayed_alike() {
    let folder = folder();
    let folder = folder.path();
    // No other test reads this size.
    reads(folder, 300, 61_440);
    if !needs::root() || !can_record(folder) {
        return;
    }
    // The recorded reads of this size on the device, in their order: time, first byte.
    let recorded = |name: &str, trace: &str| {
        let program = env!("CARGO_BIN_EXE_iolab");
        let words = [
            "record", "data", "-o", name, "--", program, "replay", trace, "data", "--blocks", "1",
        ];
        let done = run(folder, &words);
        // A busy machine may be late.
        assert!([0, 5].contains(&done.code.unwrap()), "{}", done.stderr);
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        let own = text
            .lines()
            .filter_map(|line| match line.split(',').collect::<Vec<_>>()[..] {
                [at, "read", first, "61440", _] => {
                    Some((at.to_owned(), first.parse::<u64>().unwrap()))
                }
                _ => None,
            });
        let all: Vec<(String, u64)> = own.collect();
        // Other programs do not read the same place again and again past the page cache.
        let times = |first: u64| all.iter().filter(|one| one.1 == first).count();
        let own = all.iter().filter(|one| times(one.1) > 4).cloned();
        own.collect::<Vec<_>>()
    };
    let asked = recorded("first.csv", "reads.csv");
    let begin = asked.iter().map(|one| one.1).min().unwrap_or_default();
    if asked.iter().any(|(_, first)| first - begin >= FILE) {
        return needs::skip(Need::BlockDevice, "the file lies in several places");
    }
    let line = |(at, first): &(String, u64)| format!("{at},read,{},61440\n", first - begin);
    let lines: String = asked.iter().map(line).collect();
    std::fs::write(
        folder.join("own.csv"),
        format!("time_ns,op,offset,bytes\n{lines}"),
    )
    .unwrap();
    let done = recorded("second.csv", "own.csv");
    let places = |all: &[(String, u64)]| all.iter().map(|one| one.1).collect::<Vec<_>>();
    assert_eq!((asked.len(), places(&asked)), (300, places(&done)));
}

#[test]
fn fio_replays_the_same_requests_side_by_side() {
    let folder = folder();
    let folder = folder.path();
    reads(folder, 300, 65_536);
    if !needs::root() || needs::tool(Need::Fio).is_none() || !can_record(folder) {
        return;
    }
    let words = [
        "replay", "reads.csv", "data", "--peer", "fio", "--blocks", "1", "--format", "json",
    ];
    let done = run(folder, &words);
    assert!([0, 5].contains(&done.code.unwrap()), "{}", done.stderr);
    let said: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let cells = said["cells"].as_array().unwrap();
    let [own, fio] = cells.as_slice() else {
        panic!("{said}");
    };
    assert_eq!(
        (&own["tool"], &fio["latest"]),
        (&"iolab".into(), &serde_json::Value::Null)
    );
    for cell in cells {
        let seen = &cell["latest_at_block_layer"];
        assert_eq!(seen["seen"], 1.0, "{said}");
        assert_eq!(seen["certificate"]["requests"], 300);
    }
}
