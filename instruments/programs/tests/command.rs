//! Runs whose trials are programs. The sessions `programs-fail` and `programs-of-a-file` and the screens `programs` have what is
//! refused.

use rustix::process::Signal;

use crate::support::words::words;
use crate::support::{entries, folder, resumed_is_whole, run, signal, started};

/// Two cells with a warm-up and six trials each.
const SAMPLES: i64 = 14;
const PROGRAM: [&str; 12] = words!(
    "run linkage data -o r.iolab --set region=1,5000 --set trials_min=6 --set trials_max=6 --seed=3"
);
const COMMAND: [&str; 2] = ["--set", "command=sh -c 'sleep 0.05; cat \"$0\"' {file}"];

/// A run file starts no program without consent. What a killed run left is removed by the next one.
#[test]
fn ended_run_of_programs_is_finished_with_consent() {
    for (by, left) in [(Signal::INT, 0), (Signal::KILL, 1)] {
        let folder = folder();
        let (path, data) = (folder.path(), folder.path().join("data"));
        let child = started(path, &[&PROGRAM[..], &COMMAND].concat(), 3);
        signal(&child, by);
        child.wait_with_output().unwrap();
        assert_eq!(entries(&data).len(), left, "the scratch directory");
        run(path, &["resume", "r.iolab"]).expect(3);
        let dry = run(path, &["resume", "r.iolab", "--dry-run"])
            .expect(3)
            .stdout;
        let starts = "Starts: sh -c 'sleep 0.05; cat \"$0\"' {file}";
        assert!(dry.lines().any(|line| line == starts), "{dry}");
        resumed_is_whole(path, &["--run-programs"], SAMPLES, &[data]);
    }
}
