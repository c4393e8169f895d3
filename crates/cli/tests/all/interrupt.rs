//! Interrupted runs: they lose no measured trial, leave no scratch files, and their plans can be finished.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};

use crate::support::words::words;
use crate::support::{
    Done, entries, error_of, exported, folder, iolab, resumed_is_whole, run, sample_count, signal,
    started, status, wait_for_samples,
};

/// Two cells with a warm-up and six trials each: 14 samples, about a second and a half.
const SAMPLES: i64 = 14;
const SLOW: [&str; 18] = words!(
    "run read-size data -o r.iolab --set bs=4k,64k --set trials_min=6 --set trials_max=6 \
     --size 4MiB --time 100ms --budget 60s --buffered"
);

#[test]
fn interrupted_run_cleans_up_and_can_be_finished() {
    for which in [Signal::INT, Signal::TERM] {
        let folder = folder();
        let child = started(folder.path(), &SLOW, 3);
        signal(&child, which);
        // The second signal, of an impatient user, must not interrupt the cleaning.
        signal(&child, which);
        Done::from(child.wait_with_output().unwrap()).expect(130);
        assert!(
            entries(&folder.path().join("data")).is_empty(),
            "the scratch file is removed"
        );
        let measured = sample_count(&folder.path().join("r.iolab")).unwrap();
        assert!((3..SAMPLES).contains(&measured), "{measured}");
        run(folder.path(), &["table", "r.iolab"]).expect(0);
        assert_eq!(status(&folder.path().join("r.iolab")), "interrupted");
        let plan = run(folder.path(), &["resume", "r.iolab", "--dry-run"]).expect(0);
        let made = plan
            .stdout
            .lines()
            .find(|line| line.starts_with("r.iolab: "));
        let made = made.and_then(|line| line.split(", in ").next());
        let made = made.unwrap_or_default();
        let made = made.replacen(&measured.to_string(), "MEASURED", 1);
        insta::allow_duplicates! { insta::assert_snapshot!(made, @"r.iolab: MEASURED trials made earlier"); }
        assert_eq!(sample_count(&folder.path().join("r.iolab")), Some(measured));
        resumed_is_whole(folder.path(), SAMPLES);
    }
}

#[test]
fn every_signal_that_ends_processes_by_default_interrupts() {
    // Signals by number, since real-time signals have no names, and not every system knows SIGSTKFLT and SIGPWR.
    let numbers = [
        1, 3, 5, 6, 10, 12, 14, 16, 24, 26, 27, 29, 30, 31, 34, 50, 64,
    ];
    let ignored = ignored_here();
    let ended = |number: i32| {
        if ignored & (1 << (number - 1)) != 0 {
            return needs::skip(needs::Need::Signals, format!("{number} is ignored"));
        }
        let folder = folder();
        let child = started(folder.path(), &SLOW, 0);
        let sent = Command::new("kill")
            .args([format!("-{number}"), child.id().to_string()])
            .status();
        assert!(sent.unwrap().success(), "signal {number}");
        let done = Done::from(child.wait_with_output().unwrap());
        assert_eq!(done.code, Some(130), "signal {number}: {}", done.stderr);
        assert_eq!(entries(&folder.path().join("data")), [""; 0], "{number}");
    };
    for some in numbers.chunks(4) {
        std::thread::scope(|at_once| {
            for number in some {
                at_once.spawn(|| ended(*number));
            }
        });
    }
}

/// Time for which a user stops a run.
const STOPPED: Duration = Duration::from_millis(200);
/// One cell with a warm-up and six trials. Each trial is so long that one that has been seen to go on still runs
/// when a signal arrives. On storage, or with a bound in bytes, it would end earlier.
const STOPPABLE: [&str; 21] = words!(
    "run read-size data -o r.iolab --set bs=64k --set trials_min=6 --set trials_max=6 \
     --size 4MiB --time 400ms --budget 60s --set cache=hot --set bytes=none"
);

#[test]
fn a_trial_that_the_user_stopped_says_so() {
    if ignored_here() & (1 << (Signal::TSTP.as_raw() - 1)) != 0 {
        needs::skip(needs::Need::Signals, "SIGTSTP is ignored");
        return;
    }
    let folder = folder();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    // A group as a shell makes it, since the kernel ignores the signal in a group without a parent in the
    // session.
    let child = iolab(folder.path(), &STOPPABLE)
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = Pid::from_child(&child);
    for samples in [1, 2, 3] {
        wait_for_samples(&folder.path().join("r.iolab"), samples);
        wait_for_reads(child.id());
        signal(&child, Signal::TSTP);
        let stopped = waitpid(Some(pid), WaitOptions::UNTRACED).unwrap();
        assert!(stopped.is_some_and(|(_, status)| status.stopped()));
        // Longer than the time that counts as sleep, and than the difference of two clocks.
        std::thread::sleep(STOPPED);
        signal(&child, Signal::CONT);
    }
    Done::from(child.wait_with_output().unwrap()).expect(0);
    let rows = exported(folder.path(), "r.iolab");
    assert_eq!(rows.len(), 7);
    let suspended = rows.iter().map(|row| row["suspended_ns"].as_u64().unwrap());
    let stopped = suspended.filter(|ns| Duration::from_nanos(*ns) >= STOPPED);
    // On a busy machine one signal may arrive after the end of its trial.
    assert!((1..=3).contains(&stopped.count()));
}

/// Waits until a worker of a trial reads data. Reads of /proc before, and those that warm the cache, have far
/// fewer bytes.
fn wait_for_reads(process: u32) {
    const DATA: u64 = 32 << 20;
    let reads = |task: std::fs::DirEntry| {
        let text = |name: &str| std::fs::read_to_string(task.path().join(name)).ok();
        let is_worker = text("comm")?.starts_with("iolab-");
        let bytes = text("io")?
            .lines()
            .next()?
            .strip_prefix("rchar: ")?
            .parse()
            .ok();
        bytes.filter(|bytes: &u64| is_worker && *bytes > DATA)
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let tasks = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
        if tasks.flatten().find_map(reads).is_some() {
            return;
        }
        assert!(Instant::now() < deadline, "no worker reads within a minute");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A run as after `ssh -t host iolab run`, which no shell could continue.
#[test]
fn run_that_leads_its_session_is_not_stopped() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let plain = iolab(folder.path(), &SLOW);
    let mut child = Command::new("setsid")
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_samples(&folder.path().join("r.iolab"), 1);
    signal(&child, Signal::TSTP);
    let pid = Pid::from_child(&child);
    let either = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    let seen = waitid(WaitId::Pid(pid), either).unwrap().unwrap();
    if seen.stopped() {
        child.kill().unwrap();
    }
    let ended = child.wait().unwrap();
    assert_eq!(ended.code(), Some(0), "{seen:?}");
    let rows = exported(folder.path(), "r.iolab");
    assert_eq!(rows.len() as i64, SAMPLES);
    let suspended = rows.iter().map(|row| row["suspended_ns"].as_u64().unwrap());
    assert!(suspended.max().is_some_and(|ns| ns < 1_000_000));
}

/// The signals that this process ignores, as a mask of the kernel. Children inherit it.
fn ignored_here() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .expect("the kernel tells it");
    u64::from_str_radix(mask.trim(), 16).unwrap()
}

#[test]
fn nohup_is_heeded() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let plain = iolab(folder.path(), &SLOW);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", "trap '' HUP && exec \"$@\"", "sh"])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let child = shell.spawn().unwrap();
    wait_for_samples(&folder.path().join("r.iolab"), 1);
    signal(&child, Signal::HUP);
    Done::from(child.wait_with_output().unwrap()).expect(0);
    assert_eq!(exported(folder.path(), "r.iolab").len() as i64, SAMPLES);
}

#[test]
fn a_target_with_any_name_can_be_resumed() {
    let names = [&b"\xff\xfe"[..], b"a\xc3 \x01\n"];
    for name in names {
        let folder = folder();
        let target = folder.path().join(OsStr::from_bytes(name));
        std::fs::create_dir(&target).unwrap();
        let mut command = iolab(folder.path(), &["run", "read-size"]);
        let child = command
            .arg(&target)
            .args(&SLOW[3..])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        wait_for_samples(&folder.path().join("r.iolab"), 3);
        signal(&child, Signal::INT);
        Done::from(child.wait_with_output().unwrap()).expect(130);
        run(folder.path(), &["resume", "r.iolab"]).expect(0);
        assert_eq!(exported(folder.path(), "r.iolab").len() as i64, SAMPLES);
        assert_eq!(entries(&target), [""; 0]);
    }
}

#[test]
fn new_file_named_as_target_is_not_overwritten() {
    let folder = folder();
    let place = |name: &str| folder.path().join(name);
    let (mine, data) = (place("mine"), vec![7u8; 4 << 20]);
    let resume = |file: &str| run(folder.path(), &["resume", file, "--destroy-data"]);
    let refused = |file: &str| error_of(&resume(file).expect(3), folder.path());
    let options = words!(
        "run write-size mine -o r.iolab --set bs=64k --set trials_min=6 --set trials_max=6 \
         --size 4MiB --time 100ms --budget 60s --buffered --destroy-data"
    );
    std::fs::write(&mine, &data).unwrap();
    let child = started(folder.path(), &options, 1);
    signal(&child, Signal::INT);
    Done::from(child.wait_with_output().unwrap()).expect(130);
    for copy in ["older.iolab", "same.iolab"] {
        std::fs::copy(place("r.iolab"), place(copy)).unwrap();
    }
    let connection = rusqlite::Connection::open(place("older.iolab")).unwrap();
    let sql = "DELETE FROM environment WHERE key = 'target_file_id'";
    assert_eq!(connection.execute(sql, []).unwrap(), 1);
    drop(connection);
    insta::assert_snapshot!(refused("older.iolab"), @r"
    refusing to write to DIR/mine: the run file has no target_file_id, which would tell it from another target of this name
      start a new run on it; the run file keeps the trials so far
    ");
    resume("same.iolab").expect(0);
    // Only the name is the same.
    let moved = place("moved");
    std::fs::rename(&mine, &moved).unwrap();
    std::fs::write(&mine, &data).unwrap();
    let told = refused("r.iolab");
    let other = "DIR/mine: it is not the target that the run began on (target_file_id was ";
    assert!(told.contains(other), "{told}");
    assert_eq!(std::fs::read(&mine).unwrap(), data);
    std::fs::rename(&moved, &mine).unwrap();
    resume("r.iolab").expect(0);
    // A target that was a directory, in which the run had a scratch file.
    let options = options.iter().filter(|word| **word != "--destroy-data");
    let options: Vec<&str> = options
        .map(|word| if *word == "mine" { "data" } else { *word })
        .collect();
    std::fs::remove_file(place("r.iolab")).unwrap();
    std::fs::remove_dir(place("data")).unwrap();
    let child = started(folder.path(), &options, 1);
    signal(&child, Signal::INT);
    Done::from(child.wait_with_output().unwrap()).expect(130);
    std::fs::remove_dir(place("data")).unwrap();
    std::fs::write(place("data"), &data).unwrap();
    insta::assert_snapshot!(refused("r.iolab"), @r"
    refusing to continue on DIR/data: its kind was scratch and is file
      start a new run on it; the run file keeps the trials so far
    ");
    assert_eq!(std::fs::read(place("data")).unwrap(), data);
}

#[test]
fn a_signal_after_the_last_trial_is_heard() {
    let folder = folder();
    let sizes: Vec<String> = (1..=100).map(|n| (4096 * n).to_string()).collect();
    let run = words!(
        "run disk-grid model:sata-ssd -o r.iolab --full --time 1ms --budget 10ms --set threads=1 --set bytes=none"
    );
    let mut child = iolab(folder.path(), &run)
        .args(["--bs", &sizes.join(",")])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // The program prints more than a pipe holds, and waits for a reader of the rest.
    let mut results = child.stdout.take().unwrap();
    results.read_exact(&mut [0]).unwrap();
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(status(&folder.path().join("r.iolab")), "done");
}

#[test]
fn interrupted_study_can_be_finished_as_a_whole() {
    let folder = folder();
    let study = words!(
        "study data --suite quick --size 4MiB --budget 2s --time 20ms --set batch=one -o out --log json"
    );
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let mut child = iolab(folder.path(), &study)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let event = |line: String| serde_json::from_str::<serde_json::Value>(&line).unwrap();
    let mut told = lines.by_ref().map_while(Result::ok).map(event);
    let first = told
        .find(|event| event["event"] == "start")
        .expect("a start");
    assert_eq!(first["experiment"], "buffer-memory");
    signal(&child, Signal::INT);
    let last = told.last().expect("an error");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let remedy = last["remedy"].as_str().unwrap_or_default();
    let hint = remedy.lines().last().unwrap_or_default();
    insta::assert_snapshot!(hint.trim(), @"finish the runs with: iolab resume out");
    let files = [
        "buffer-memory", "read-size", "write-size", "read-stride", "write-stride", "read-random",
        "write-random",
    ];
    let files = files.map(|name| format!("out/{name}.iolab"));
    let report = folder.path().join("out/report.html");
    std::fs::write(&report, "of the study").unwrap();
    let done = run(folder.path(), &["resume", "out"]).expect(0);
    let mut told = done
        .stderr
        .lines()
        .filter(|line| line.starts_with("note: out/"));
    insta::assert_snapshot!(told.next().unwrap_or_default(), @"note: out/report.html keeps its content; a new report: iolab report out -o out/resumed.html");
    assert_eq!(std::fs::read_to_string(report).unwrap(), "of the study");
    for file in &files {
        assert_eq!(status(&folder.path().join(file)), "done", "{file}");
    }
    run(folder.path(), &words!("report out -o out/resumed.html")).expect(0);
    assert_eq!(entries(&folder.path().join("data")), [""; 0]);
}
