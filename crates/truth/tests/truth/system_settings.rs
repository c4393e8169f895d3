//! Kernel settings that trials change: in effect meanwhile, and as before afterwards, whatever ends the run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use iolab_truth::device::loop_over;
use iolab_truth::files::{MIB, noise};
use iolab_truth::iolab::{run, samples, told, told_with_code};
use iolab_truth::system::unless_missing;
use iolab_truth::{Made, Scene};
use rustix::process::{Pid, Signal, kill_process};

use crate::stage::alone;

/// Journal of the changes left by a killed run.
const JOURNAL: &str = "/run/iolab-system-settings";
/// Request limit that trials set, KiB.
const LIMIT: &str = "16";

/// A loop device past the page cache, which would keep requests from its file. No other program changes its
/// settings.
fn device() -> Made<(Scene, PathBuf)> {
    let scene = Scene::new()?;
    let file = noise(scene.folder().join("backing"), 16 * MIB)?;
    let device = loop_over(&scene, &file, true)?;
    Ok((scene, device))
}

fn queue(device: &Path) -> PathBuf {
    let name = device.file_name().expect("a device");
    Path::new("/sys/block").join(name).join("queue")
}

fn value(device: &Path, file: &str) -> String {
    let text = std::fs::read_to_string(queue(device).join(file));
    text.expect("it can be read").trim().to_owned()
}

/// All settings of a device's queue and its scheduler, and of huge pages.
fn settings(device: &Path) -> BTreeMap<PathBuf, String> {
    let folders = [queue(device), queue(device).join("iosched")];
    let files = folders
        .iter()
        .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
        .map(|file| file.path());
    let memory = PathBuf::from("/sys/kernel/mm/transparent_hugepage/enabled");
    let all = files.chain([memory]);
    all.filter_map(|path| Some((path.clone(), std::fs::read_to_string(path).ok()?)))
        .collect()
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

/// Advice of `doctor` when another iolab changes kernel settings, or has left them changed.
fn remedies_of_others(scene: &Scene) -> Option<String> {
    let told = told(scene, &["doctor", "--format", "json", "."]);
    let diagnosis: serde_json::Value = serde_json::from_str(&told).expect("JSON alone");
    let findings = diagnosis["findings"].as_array().expect("a list");
    let found = findings
        .iter()
        .find(|one| one["rule"] == "kernel-settings")?;
    found["remedy"].as_str().map(str::to_owned)
}

/// A running command of iolab, once `is_changed`.
fn under_way(scene: &Scene, arguments: &[&str], is_changed: impl Fn() -> bool) -> Child {
    let mut command = Command::new(scene.binary());
    command
        .current_dir(scene.folder())
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command.spawn().expect("iolab starts");
    scene.keeper.end(&child);
    let deadline = Instant::now() + Duration::from_secs(60);
    while !is_changed() {
        let ended = child.try_wait().expect("it can be waited for");
        assert!(ended.is_none(), "{ended:?} before a trial");
        assert!(Instant::now() < deadline, "no trial within a minute");
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

/// A long run whose trials set the request limit, once one of them has begun.
fn long_run(scene: &Scene, device: &Path) -> Child {
    let target = device.display().to_string();
    let set = format!("system=max_sectors_kb:{LIMIT}");
    let mut arguments = vec!["run", "read-size", &target, "--set", &set];
    arguments.extend(words(
        "--bs 64k --time 60s --change-system --quiet -o long.iolab",
    ));
    under_way(scene, &arguments, || {
        value(device, "max_sectors_kb") == LIMIT
    })
}

fn signal(child: &mut Child, signal: Signal) -> Option<i32> {
    let pid = Pid::from_child(child);
    kill_process(pid, signal).expect("it runs");
    child.wait().expect("it ends").code()
}

#[test]
fn request_limit_splits_requests_and_is_restored() {
    let _alone = alone();
    let Some((scene, device)) = unless_missing(device()) else {
        return;
    };
    // A change of scheduler resets the number of requests.
    std::fs::write(queue(&device).join("scheduler"), "mq-deadline").expect("it has this one");
    std::fs::write(queue(&device).join("nr_requests"), "77").expect("it can be set");
    std::fs::write(queue(&device).join("iosched/fifo_batch"), "7").expect("it can be set");
    let before = settings(&device);
    let sets = format!("system=none,max_sectors_kb:{LIMIT}+scheduler:none+read_ahead_kb:0");
    let target = device.display().to_string();
    let mut arguments = words("--direct --bs 64k --time 50ms --budget 3s --change-system --set");
    arguments.push(&sets);
    let seen = run(&scene, "read-size", &target, &arguments);
    assert_eq!(seen.code, Some(0), "{}", seen.text);
    let ios = |cell: usize| seen.cells[cell]["device_ios_per_request_median"].as_f64();
    assert_eq!((ios(0), ios(1)), (Some(1.0), Some(4.0)), "{}", seen.text);
    assert_eq!(settings(&device), before);
    assert!(!Path::new(JOURNAL).exists());
}

/// Read-ahead is kept in whole pages.
#[test]
fn a_value_that_the_kernel_adapts_is_recorded() {
    let _alone = alone();
    let Some((scene, device)) = unless_missing(device()) else {
        return;
    };
    let before = settings(&device);
    let target = device.display().to_string();
    let arguments =
        words("--bs 64k --time 20ms --budget 1s --change-system --set system=read_ahead_kb:6");
    let seen = run(&scene, "read-size", &target, &arguments);
    assert_eq!(seen.code, Some(0), "{}", seen.text);
    let name = device.file_name().expect("a device").to_string_lossy();
    let expected = format!("read_ahead_kb of {name} is 4 instead of 6");
    let effective: Vec<_> = seen.measured().map(|sample| &sample["effective"]).collect();
    assert!(!effective.is_empty());
    assert!(
        effective.iter().all(|one| **one == *expected),
        "{effective:?}"
    );
    assert_eq!(settings(&device), before);
}

#[test]
fn ended_run_restores_its_changes() {
    let _alone = alone();
    let Some((scene, device)) = unless_missing(device()) else {
        return;
    };
    let before = settings(&device);
    let mut child = long_run(&scene, &device);
    assert_eq!(signal(&mut child, Signal::TERM), Some(130));
    scene.keeper.forget();
    assert_eq!(settings(&device), before);
}

#[test]
fn killed_runs_changes_are_restored_by_the_next() {
    let _alone = alone();
    let Some((scene, device)) = unless_missing(device()) else {
        return;
    };
    let Some(nobody) = unless_missing(Scene::new().and_then(Scene::as_nobody)) else {
        return;
    };
    let before = settings(&device);
    let mut child = long_run(&scene, &device);
    let changing = child.id();
    assert!(remedies_of_others(&nobody).is_some_and(|told| told.contains(&changing.to_string())));
    // One at a time: a second run is refused, and changes nothing.
    let target = device.display().to_string();
    let short = words("--bs 4k --time 20ms --budget 1s");
    let changes = words("--change-system --set system=scheduler:none");
    let refused = run(
        &scene,
        "read-size",
        &target,
        &[&short[..], &changes].concat(),
    );
    assert_eq!(refused.code, Some(3), "{}", refused.text);
    assert_eq!(signal(&mut child, Signal::KILL), None);
    scene.keeper.forget();
    assert_eq!(value(&device, "max_sectors_kb"), LIMIT, "left by the kill");
    assert!(remedies_of_others(&nobody).is_some_and(|told| !told.contains(&changing.to_string())));
    let next = run(&scene, "read-size", &target, &short);
    assert_eq!(next.code, Some(0), "{}", next.text);
    assert_eq!(settings(&device), before);
    assert!(!Path::new(JOURNAL).exists());
}

/// Makes a run with requests below and above a limit of 64 KiB, for `iolab why` to explain by another limit.
fn explained(scene: &Scene, device: &Path) {
    std::fs::write(queue(device).join("scheduler"), "mq-deadline").expect("it has this one");
    std::fs::write(queue(device).join("max_sectors_kb"), "64").expect("it can be set");
    let target = device.display().to_string();
    let mut arguments = vec!["run", "read-size", &target];
    arguments.extend(words(
        "--direct --bs 4k,1M --time 100ms --budget 6s --seed 5 -o shown.iolab",
    ));
    let (code, said) = told_with_code(scene, &arguments);
    assert_eq!(code, Some(0), "{said}");
}

/// Whether a trial has changed the request limit of [`explained`].
fn is_changed(device: &Path) -> bool {
    value(device, "max_sectors_kb") != "64"
}

/// An explanation, once a trial has changed the request limit.
fn explanation(scene: &Scene, device: &Path) -> Child {
    let why = words("why shown.iolab --change-system --budget 60s --seed 6 --quiet -o why.iolab");
    under_way(scene, &why, || is_changed(device))
}

/// Stops an explanation within a trial that has changed the request limit.
fn stop_within_a_trial(child: &Child, device: &Path) {
    let pid = Pid::from_child(child);
    kill_process(pid, Signal::STOP).expect("it runs");
    // The trial may have ended before the stop.
    while !is_changed(device) {
        kill_process(pid, Signal::CONT).expect("it runs");
        kill_process(pid, Signal::STOP).expect("it runs");
    }
}

#[test]
fn an_explanation_leaves_nothing_changed() {
    let _alone = alone();
    let Some((scene, device)) = unless_missing(device()) else {
        return;
    };
    explained(&scene, &device);
    let before = settings(&device);
    let why = words("why shown.iolab --change-system --budget 60s --seed 6 -o whole.iolab");
    let (code, said) = told_with_code(&scene, &why);
    assert!(matches!(code, Some(0 | 5)), "{code:?}: {said}");
    let trials = samples(&scene.folder().join("whole.iolab"));
    let changed = trials
        .iter()
        .filter_map(|trial| trial["system"].as_str())
        .any(|system| system.contains("max_sectors_kb"));
    assert!(changed, "{said}");
    assert_eq!(settings(&device), before, "{said}");
    // Ctrl-C within a trial.
    let mut child = explanation(&scene, &device);
    stop_within_a_trial(&child, &device);
    let pid = Pid::from_child(&child);
    kill_process(pid, Signal::INT).expect("it runs");
    assert_eq!(signal(&mut child, Signal::CONT), Some(130));
    scene.keeper.forget();
    assert_eq!(settings(&device), before);
    assert!(!Path::new(JOURNAL).exists());
}

#[test]
fn killed_explanations_change_is_restored_later() {
    let _alone = alone();
    let Some((scene, device)) = unless_missing(device()) else {
        return;
    };
    explained(&scene, &device);
    let before = settings(&device);
    let mut child = explanation(&scene, &device);
    stop_within_a_trial(&child, &device);
    assert_eq!(signal(&mut child, Signal::KILL), None);
    scene.keeper.forget();
    assert_ne!(settings(&device), before, "left by the kill");
    let target = device.display().to_string();
    let next = run(
        &scene,
        "read-size",
        &target,
        &words("--bs 4k --time 20ms --budget 1s"),
    );
    assert_eq!(next.code, Some(0), "{}", next.text);
    assert_eq!(settings(&device), before);
    assert!(!Path::new(JOURNAL).exists());
}
