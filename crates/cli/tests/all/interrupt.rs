//! Interrupted runs: they lose no measured trial, leave no scratch files, and their plans can be finished.

use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};

use crate::support::words::words;
use crate::support::{
    Done, entries, error_of, exported, folder, interrupted, iolab, measuring, resumed_is_whole,
    run, sample_count, signal, started, status, wait_for_reads, wait_for_samples,
};

/// Two cells with a warm-up and six trials each: 14 samples, most of a second.
const SAMPLES: i64 = 14;
const SLOW: [&str; 18] = words!(
    "run read-size data -o r.iolab --set bs=4k,64k --set trials_min=6 --set trials_max=6 \
     --size 4MiB --time 50ms --budget 60s --buffered"
);

#[test]
fn interrupted_run_cleans_up_and_can_be_finished() {
    for targets in [
        &[&b"data"[..], b"other"][..],
        &[b"\xff\xfe"],
        &[b"a\xc3 \x01\n"],
    ] {
        let folder = folder();
        let (path, file) = (folder.path(), folder.path().join("r.iolab"));
        let targets = targets
            .iter()
            .map(|name| path.join(OsStr::from_bytes(name)));
        let targets: Vec<PathBuf> = targets.collect();
        targets
            .iter()
            .for_each(|target| std::fs::create_dir(target).unwrap());
        let mut command = iolab(path, &["run", "read-size"]);
        command.args(&targets).args(&SLOW[3..]);
        let child = measuring(command, &file, 3);
        signal(&child, Signal::TERM);
        // The second signal, of an impatient user, must not interrupt the cleaning.
        signal(&child, Signal::TERM);
        Done::from(child.wait_with_output().unwrap()).expect(130);
        for target in &targets {
            assert_eq!(entries(target), [""; 0], "the scratch file is removed");
        }
        let samples = SAMPLES * targets.len() as i64;
        let measured = sample_count(&file).unwrap();
        assert!((3..samples).contains(&measured), "{measured}");
        assert_eq!(status(&file), "interrupted");
        let plan = run(path, &["resume", "r.iolab", "--dry-run"])
            .expect(0)
            .stdout;
        let made = format!("r.iolab: {measured} trials made earlier");
        assert!(plan.contains(&made), "{plan}");
        resumed_is_whole(path, &[], samples, &targets);
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
/// One cell with a warm-up and four trials. Each trial is so long that one that has been seen to go on still runs
/// when a signal arrives. On storage, or with a bound in bytes, it would end earlier.
const STOPPABLE: [&str; 21] = words!(
    "run read-size data -o r.iolab --set bs=64k --set trials_min=4 --set trials_max=4 \
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
    let mut command = iolab(folder.path(), &STOPPABLE);
    command.process_group(0);
    let child = measuring(command, &folder.path().join("r.iolab"), 1);
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
    assert_eq!(rows.len(), 5);
    let suspended = rows.iter().map(|row| row["suspended_ns"].as_u64().unwrap());
    let stopped = suspended.filter(|ns| Duration::from_nanos(*ns) >= STOPPED);
    // On a busy machine one signal may arrive after the end of its trial.
    assert!((1..=3).contains(&stopped.count()));
}

/// The slow run, started by another command, after its first sample.
fn started_by(folder: &Path, words: &[&str]) -> Child {
    std::fs::create_dir(folder.join("data")).unwrap();
    let plain = iolab(folder, &SLOW);
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(plain.get_program());
    command.args(plain.get_args()).current_dir(folder);
    measuring(command, &folder.join("r.iolab"), 1)
}

/// A run as after `ssh -t host iolab run`, which no shell could continue.
#[test]
fn run_that_leads_its_session_is_not_stopped() {
    let folder = folder();
    let mut child = started_by(folder.path(), &["setsid"]);
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

#[test]
fn nohup_is_heeded() {
    let folder = folder();
    let child = started_by(
        folder.path(),
        &["sh", "-c", "trap '' HUP && exec \"$@\"", "sh"],
    );
    signal(&child, Signal::HUP);
    Done::from(child.wait_with_output().unwrap()).expect(0);
    assert_eq!(exported(folder.path(), "r.iolab").len() as i64, SAMPLES);
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
    interrupted(iolab(folder.path(), &options), &place("r.iolab"), 1);
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
}

#[test]
#[cfg_attr(not(feature = "models"), ignore = "it measures a model")]
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
#[cfg_attr(not(feature = "models"), ignore = "it measures a model")]
fn folder_with_an_interrupted_model_stays_open() {
    let folder = folder();
    let path = folder.path();
    let long = words!(
        "run read-size model:sata-ssd -o runs/r.iolab --bs 4k --time 10s --budget 300s --set bytes=none \
         --set trials_min=1000 --set trials_max=1000"
    );
    std::fs::create_dir(path.join("runs")).unwrap();
    let mut child = measuring(iolab(path, &long), &path.join("runs/r.iolab"), 1);
    child.kill().unwrap();
    child.wait().unwrap();
    let left = entries(&path.join("runs"));
    let dry = run(path, &["resume", "runs", "--dry-run"]).expect(2);
    let refused = run(path, &["resume", "runs"]).expect(2);
    assert_eq!(entries(&path.join("runs")), left);
    assert_eq!(error_of(&dry, path), error_of(&refused, path));
    insta::assert_snapshot!(error_of(&refused, path), @"
    runs/r.iolab: a run on a model cannot be resumed: the state of the model is not kept
      run it again; the same seed gives the same results
    ");
}

#[test]
fn interrupted_study_can_be_finished_as_a_whole() {
    let folder = folder();
    let (path, out) = (folder.path(), folder.path().join("out"));
    std::fs::create_dir(path.join("data")).unwrap();
    let two = "name = \"two\"\nabout = \"?\"\nbudget = \"2s\"\n\
        [[experiments]]\nuse = \"read-size\"\n[[experiments]]\nuse = \"write-size\"\n";
    std::fs::write(path.join("two.toml"), two).unwrap();
    let study = words!("study data --suite two.toml --bs 4k,64k --size 4MiB --time 20ms -o out");
    let done = interrupted(iolab(path, &study), &out.join("read-size.iolab"), 2);
    insta::assert_snapshot!(error_of(&done, path).lines().last().unwrap_or_default(), @"  finish the runs with: iolab resume out");
    std::fs::write(out.join("report.html"), "of the study").unwrap();
    run(path, &["resume", "out"]).expect(0);
    assert_eq!(
        std::fs::read_to_string(out.join("report.html")).unwrap(),
        "of the study"
    );
    for name in ["read-size.iolab", "write-size.iolab"] {
        assert_eq!(status(&out.join(name)), "done", "{name}");
    }
    run(path, &words!("report out -o out/resumed.html")).expect(0);
    assert_eq!(entries(&path.join("data")), [""; 0]);
}
