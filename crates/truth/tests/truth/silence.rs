//! Storage that stops answering: runs on it report that and end.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use iolab_truth::binary::binary;
use iolab_truth::device::{loop_over, mounted};
use iolab_truth::fuse::view::{Call, Store, View};
use iolab_truth::iolab::{error_among, samples, told, wait_for};
use iolab_truth::served::ServedModel;
use iolab_truth::system::unless_missing;
use iolab_truth::{Made, Scene};
use rustix::process::{Pid, Signal, kill_process};

use crate::serve::served;
use crate::stage::alone;

/// A model with 5 ms per request, and room for a file system.
const MODEL: &str = "title = \"5 ms each\"\nsource = []\n\
    [model.latency]\nread_us = 5000\nwrite_us = 5000\ninner.memory = 536_870_912\n";
/// Longest silence of storage before a run reports it, including the checks of its threads, on a busy machine.
const SAYS_SO: Duration = Duration::from_secs(60 + 15 + 45);
/// Longest time that a run lasts after its storage has answered, on a busy machine.
const ENDS: Duration = Duration::from_secs(30);

/// A stopped model, which resumes when this is dropped, so that everything waiting for it ends.
struct Stopped<'a>(&'a ServedModel);

impl<'a> Stopped<'a> {
    fn new(model: &'a ServedModel) -> Self {
        model.signal(Signal::STOP);
        Self(model)
    }
}

impl Drop for Stopped<'_> {
    fn drop(&mut self) {
        self.0.signal(Signal::CONT);
    }
}

/// A run of iolab in the background.
struct Run {
    child: Child,
    /// Path of the run file.
    file: PathBuf,
    /// File with its output on stderr.
    said: PathBuf,
}

impl Run {
    /// Starts a run with far more trials than are awaited, and these words of its own.
    fn begin(scene: &Scene, name: &str, experiment: &str, target: &Path, words: &str) -> Self {
        Self::of(scene, name, |command, file| {
            command
                .args(["run", experiment])
                .arg(target)
                .args(words.split(' '))
                .args(["--size", "4M", "--time", ".3", "--budget", "1h"])
                .args(["--set", "trials_max=10000"])
                .args(["--precision", ".0001", "--log", "json", "-o"])
                .arg(file);
        })
    }

    /// Starts a command; `words` completes it for a run file.
    fn of(scene: &Scene, name: &str, words: impl FnOnce(&mut Command, &Path)) -> Self {
        let file = scene.folder().join(format!("{name}.iolab"));
        let said = scene.folder().join(format!("{name}.said"));
        let mut command = scene.command(binary());
        words(&mut command, &file);
        command
            .stdout(Stdio::null())
            .stderr(File::create(&said).expect("a file"));
        let child = command.spawn().expect("iolab starts");
        scene.keeper.end(&child);
        Self { child, file, said }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.said).expect("text")
    }

    /// Error that it has printed, among events or alone.
    fn error(&self) -> Option<String> {
        let said = self.said();
        let alone = || said.strip_prefix("error: ").map(str::to_owned);
        error_among(&said).or_else(alone)
    }

    /// Exit code, once it has ended.
    fn code(&mut self) -> Option<i32> {
        let status = self.child.try_wait().expect("a child");
        status.map(|status| status.code().unwrap_or(-1))
    }
}

/// Waits until a condition holds, for a limited time.
fn until(most: Duration, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + most;
    while !holds() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A folder on a file system whose disk is the model's.
fn folder(scene: &Scene, model: &ServedModel) -> Made<PathBuf> {
    let device = loop_over(scene, &model.file(), false)?;
    mounted(scene, &device, &["mkfs.ext4", "-qF"], "noatime")
}

/// Covers all ways of issuing requests, and a trial ended by one of its groups, on a served file and on a file
/// system whose disk is that file. The message comes during the silence. The process ends with exit code 1 when
/// the server answers again, and earlier trials are kept.
#[test]
fn runs_report_a_stopped_server_and_end_afterwards() {
    let _alone = alone();
    let Some((scene, model)) = served(MODEL, &[]) else {
        return;
    };
    let file = model.file();
    let folder = unless_missing(folder(&scene, &model));
    let reads = |name, more: &str| {
        let words = format!("--bs 4k --direct {more}");
        Run::begin(&scene, name, "read-random", &file, &words)
    };
    let mut runs = vec![
        reads("psync", "--set backend=psync"),
        reads("libaio", "--set backend=libaio --depth 4"),
        reads("io_uring", "--set backend=io_uring --depth 4"),
    ];
    if let Some(folder) = &folder {
        let begin = |name, experiment, words| Run::begin(&scene, name, experiment, folder, words);
        runs.push(begin("reads", "read-random", "--bs 4k --direct"));
        runs.push(begin("writes", "write-random", "--bs 4k --set sync=each"));
    }
    for run in &mut runs {
        let file = run.file.clone();
        wait_for(&file, 1, || run.code().is_some());
        assert_eq!(run.code(), None, "{}", run.said());
    }
    let stopped = Stopped::new(&model);
    for run in &mut runs {
        until(SAYS_SO, || run.error().is_some() || run.code().is_some());
        assert!(run.error().is_some(), "{}", run.said());
    }
    drop(stopped);
    for run in &mut runs {
        until(ENDS, || run.code().is_some());
        assert_eq!(run.code(), Some(1), "{}", run.said());
        assert!(!samples(&run.file).is_empty(), "{}", run.said());
    }
    let Some(folder) = &folder else { return };
    // The next run removes any remaining left-overs.
    let next = next_run(&scene, folder);
    assert_eq!(names_in(folder), 0, "{next}");
}

/// Output of a short run in a folder with left-overs of earlier runs.
fn next_run(scene: &Scene, folder: &Path) -> String {
    let target = folder.display().to_string();
    let words = ["--size", "4M", "--budget", "1"];
    told(
        scene,
        &[&["run", "read-random", &*target], &words[..]].concat(),
    )
}

/// Number of files in a folder.
fn names_in(folder: &Path) -> usize {
    let entries = folder.read_dir().expect("a folder").flatten();
    let names = entries.map(|entry| entry.file_name());
    names.filter(|name| name != "lost+found").count()
}

/// Moment at which a server falls silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// Before anything is made, during the look-up of the target's kind and free space.
    Looking,
    /// Before the first trial, while the scratch file is made.
    Opening,
    /// Before the first trial, while the scratch file is filled.
    Filling,
    /// Between two trials.
    Measuring,
    /// After the last trial, while the scratch file is removed.
    Removing,
}

impl When {
    fn is_before_trials(self) -> bool {
        matches!(self, Self::Looking | Self::Opening | Self::Filling)
    }
}

/// Calls of the thread that prepares trials, while no trial thread waits, each with the run that makes it.
#[rustfmt::skip]
const OWN_CALLS: [(When, Call, &str, &str); 11] = [
    (When::Looking, Call::Look, "read-random", "--bs 4k"),
    (When::Looking, Call::Room, "read-random", "--bs 4k"),
    (When::Looking, Call::Look, DOCTOR, ""),
    (When::Measuring, Call::Sync, "write-random", "--bs 64k --set sync=none"),
    (When::Measuring, Call::Create, "write-size", FRESH),
    (When::Measuring, Call::Allocate, "write-size", FRESH),
    (When::Removing, Call::Unlink, "read-random", "--bs 4k"),
    (When::Filling, Call::Allocate, "read-random", "--bs 4k"),
    (When::Opening, Call::Create, "read-random", "--bs 4k"),
    (When::Opening, Call::Write, "read-random", "--bs 4k"),
    (When::Opening, Call::Sync, "read-random", "--bs 4k"),
];
/// Marks the command of that name, which runs no experiment.
const DOCTOR: &str = "doctor";
/// Trials on new files, whose blocks are allocated before they are written.
const FRESH: &str = "--bs 64k --set layout=private --set allocate=preallocated --set sync=none";

/// Additional waiting time for runs that begin now: one of their syncs may write other programs' data in the
/// page cache.
fn for_others() -> Duration {
    let text = std::fs::read_to_string("/proc/meminfo").expect("Linux");
    let kib = |name: &str| -> Option<u64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let kib = ["Dirty:", "Writeback:"].into_iter().filter_map(kib);
    Duration::from_secs(kib.sum::<u64>() >> 12)
}

/// Servers that answer again when this is dropped.
struct Answering<'a>(&'a [View]);

impl Drop for Answering<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(View::answers);
    }
}

/// On a file system with interruptible callers (FUSE), a thread that waits for an answer sleeps in another
/// state than on others.
#[test]
fn unanswered_call_outside_trials_is_named() {
    let _alone = alone();
    let made = Scene::new().and_then(|scene| {
        let view = |number: usize| {
            let at = scene.subfolder(&format!("view{number}"))?;
            View::new(&scene.keeper, &at, &Store::default())
        };
        let views = (0..OWN_CALLS.len()).map(view).collect::<Made<Vec<_>>>()?;
        Ok((views, scene))
    });
    // Declared last, dropped first: the scene unmounts the views' file systems while they are still served.
    let Some((views, scene)) = unless_missing(made) else {
        return;
    };
    // In all cases: otherwise the runs could not be ended.
    let _answering = Answering(&views);
    // A build right before has left hundreds of MB.
    rustix::fs::sync();
    let before = for_others();
    let mut runs: Vec<(When, Call, &View, PathBuf, Run)> = OWN_CALLS
        .into_iter()
        .zip(&views)
        .map(|((when, call, experiment, words), view)| {
            let name = format!("{when:?}-{call:?}-{experiment}");
            let mut target = view.at().to_owned();
            if when == When::Looking {
                // Users know the target by the name of the link.
                target = scene.folder().join(&name);
                symlink(view.at(), &target).expect("a link");
            }
            if when.is_before_trials() {
                view.falls_silent_at(call);
            }
            let run = match experiment {
                DOCTOR => Run::of(&scene, &name, |command, _| {
                    command.arg(DOCTOR).arg(&target);
                }),
                _ => Run::begin(&scene, &name, experiment, &target, words),
            };
            (when, call, view, target, run)
        })
        .collect();
    let says_so = SAYS_SO + before.max(for_others());
    for (when, call, view, _, run) in &mut runs {
        if when.is_before_trials() {
            continue;
        }
        let file = run.file.clone();
        wait_for(&file, 1, || run.code().is_some());
        assert_eq!(run.code(), None, "{call:?}: {}", run.said());
        view.falls_silent_at(*call);
        if *when == When::Removing {
            // The run ends, and removes its scratch file.
            kill_process(Pid::from_child(&run.child), Signal::INT).expect("it runs");
        }
    }
    for (when, call, _, target, run) in &mut runs {
        until(says_so, || run.error().is_some() || run.code().is_some());
        let said = run.said();
        let unanswered = format!("{} has not answered", target.display());
        let error = run.error();
        assert!(
            error.is_some_and(|error| error.starts_with(&unanswered)),
            "{when:?} {call:?}: {said}"
        );
        // No scratch file is being made while the kind of the target is unknown.
        let speaks_of_scratch = said.contains("scratch");
        assert!(!speaks_of_scratch || *call != Call::Look, "{said}");
        let are_stored = said.contains("The trials are stored");
        assert_eq!(are_stored, *when == When::Removing, "{call:?}: {said}");
    }
    for (when, call, view, _, run) in &mut runs {
        view.answers();
        until(ENDS, || run.code().is_some());
        let said = format!("{when:?} {call:?}: {}", run.said());
        assert_eq!(run.code(), Some(1), "{said}");
        match when {
            When::Looking | When::Opening | When::Filling => assert!(!run.file.exists(), "{said}"),
            When::Measuring | When::Removing => assert!(!samples(&run.file).is_empty(), "{said}"),
        }
        if matches!(when, When::Looking | When::Opening) {
            let next = next_run(&scene, view.at());
            let left = names_in(view.at());
            // To the next run, a file that was created but not marked belongs to others.
            let is_named = *call == Call::Create && next.contains("but not known to be iolab's");
            assert!(left == 0 || (left == 1 && is_named), "{said} {next}");
        }
    }
}
