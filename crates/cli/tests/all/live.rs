//! Messages of a run while it measures, to a terminal, to a pipe and to a program, and after the user ends it.

use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::time::Instant;

use rustix::fs::{Mode, OFlags};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::Value;

use crate::support::words::words;
use crate::support::{entries, exported, folder, iolab, run_tiny, signal, status, wait_for_reads};

/// A terminal of the given columns and lines: the end that a user sees, and the end that a program writes to.
fn terminal(columns: u16, lines: u16) -> (File, OwnedFd) {
    let seen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&seen).expect("granted");
    unlockpt(&seen).expect("unlocked");
    let size = Winsize {
        ws_row: lines,
        ws_col: columns,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    tcsetwinsize(&seen, size).expect("a size");
    let name = ptsname(&seen, Vec::new()).expect("a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let written = rustix::fs::open(name, flags, Mode::empty()).expect("its other end");
    (File::from(seen), written)
}

/// Two cells with a warm-up and twenty trials each, two seconds together.
const RUN: [&str; 18] = words!(
    "run read-size data -o r.iolab --set bs=4k,64k --set trials_min=20 --set trials_max=20 --size 4MiB --time 50ms --precision 0.001% --buffered"
);

#[test]
fn a_terminal_shows_the_cells_as_they_narrow() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let (mut seen, written) = terminal(80, 24);
    let began = Instant::now();
    let mut child = iolab(folder.path(), &RUN)
        .stdout(Stdio::null())
        .stderr(written)
        .spawn()
        .unwrap();
    let mut shown = Vec::new();
    // Reading from a terminal that every process has closed fails with EIO.
    let _ = seen.read_to_end(&mut shown);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let shown = String::from_utf8(shown).unwrap();
    for name in ["iolab run read-size data ", "r.iolab"] {
        assert!(shown.contains(name), "{name}: {shown}");
    }
    // Each note that is shown above it draws it once more.
    let notes = shown.matches("note: ").count();
    let most = 4 * (began.elapsed().as_secs() as usize + 1) + notes;
    let frames = shown.matches("<- now").count();
    assert!((2..=most).contains(&frames), "{frames} frames of {most}");
}

#[test]
fn a_terminal_that_takes_nothing_blocks_no_trial() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    // The terminal is not read: its buffers of a few KiB are full with the first frames.
    let (_seen, written) = terminal(200, 200);
    let sizes = (1..=25).map(|n| format!("{}", 4096 * n));
    let sizes = sizes.collect::<Vec<_>>().join(",");
    let run = words!(
        "run read-size data -o r.iolab --size 4MiB --time 5ms --set trials_max=6 --buffered"
    );
    let mut command = iolab(folder.path(), &run);
    command
        .args(["--bs", &sizes])
        .stdout(Stdio::null())
        .stderr(written);
    // The test hangs if a trial does.
    assert_eq!(command.status().unwrap().code(), Some(0));
    assert_eq!(exported(folder.path(), "r.iolab").len(), 175);
    assert_eq!(status(&folder.path().join("r.iolab")), "done");
    assert_eq!(entries(&folder.path().join("data")), [""; 0]);
}

#[test]
fn events_are_objects_that_count_every_trial() {
    let folder = folder();
    let log = ["-o", "r.iolab", "--log", "json"];
    let stderr = run_tiny(folder.path(), "read-size", &log).expect(0).stderr;
    let events: Vec<Value> = stderr
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object in each line"))
        .collect();
    let of = |name: &str| -> Vec<&Value> {
        events
            .iter()
            .filter(|event| event["event"] == name)
            .collect()
    };
    let rows = exported(folder.path(), "r.iolab");
    let trials = of("trial");
    assert_eq!(trials.len(), rows.len());
    for (trial, row) in trials.iter().zip(&rows) {
        assert_eq!(trial["cell"]["bs"], row["level_bs"]);
        assert_eq!(
            (&trial["block"], &trial["warmup"]),
            (&row["block"], &row["warmup"])
        );
        assert!(
            trial["value"].is_f64() && trial["left_s"].is_number(),
            "{trial}"
        );
    }
    let (start, end) = (of("start"), of("end"));
    assert_eq!((start.len(), end.len()), (1, 1));
    assert_eq!(start[0]["file"], "r.iolab");
    assert_eq!(
        (&end[0]["status"], &end[0]["cells"]),
        (&"done".into(), &2.into())
    );
    assert_eq!(end[0]["trials"], rows.len());
    assert!(events.iter().all(|event| event["at"].is_string()));
    let refused = run_tiny(folder.path(), "read-size", &log).expect(3).stderr;
    let last = refused.lines().last().unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["event"], "error");
}

#[test]
fn the_second_interrupt_ends_at_once() {
    let folder = folder();
    std::fs::create_dir(folder.path().join("data")).unwrap();
    let long = words!(
        "run read-size data -o r.iolab --set bs=4k --size 4MiB --time 10min --set bytes=1PiB --buffered"
    );
    let mut child = iolab(folder.path(), &long)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for_reads(child.id());
    let mut told = [0; 4096];
    let mut stderr = child.stderr.take().unwrap();
    signal(&child, Signal::INT);
    // The message that answers the first signal.
    let mut heard = String::new();
    while !heard.contains("Ctrl-C") {
        let read = stderr.read(&mut told).unwrap();
        assert!(read > 0, "{heard}");
        heard.push_str(&String::from_utf8_lossy(&told[..read]));
    }
    assert!(child.try_wait().unwrap().is_none(), "the trial goes on");
    signal(&child, Signal::INT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let mut stdout = String::new();
    let printed = child.stdout.take().unwrap().read_to_string(&mut stdout);
    assert_eq!((printed.unwrap(), stdout.as_str()), (0, ""));
    assert_eq!(entries(&folder.path().join("data")), [""; 0]);
}
