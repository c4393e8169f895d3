//! How much is printed: a run of few cells and a study stay within a screen, whatever is found.

use iolab_plan::experiment::{BUILTIN, Experiment};

use crate::support::{folder, run};

const MODELS: [&str; 3] = ["sata-ssd", "sata-7200", "nvme-970pro"];

/// Built-in experiments that models carry out, with changes that leave them 12 cells at most.
const RUNS: [&str; 13] = [
    "read-size --bs 4k,8k,16k,32k,64k,128k,256k,512k,1M,2M,4M,8M",
    "read-random --set read_percent=100,70,0 --bs 4k,64k,1M,4M",
    "write-size --set sync=none,end,each --bs 4k,64k,1M,4M",
    "write-random --bs 4k,64k,1M --set sync=none,odsync",
    "read-stride --bs 128k,1M --set skip=4k,64k,1M,4M",
    "write-stride --bs 128k --set skip=4k,64k,1M,4M",
    "disk-grid --bs 4k --threads 1,2,8",
    "why-serialised",
    "in-flight",
    "load-latency --size 1G",
    "interference",
    "write-vs-read",
    "buffer-memory",
];

#[test]
fn every_experiment_that_models_carry_out_is_run() {
    let folder = folder();
    let is_run = |name: &str| RUNS.iter().any(|line| line.split(' ').next() == Some(name));
    let is_carried_out = |name: &str| {
        let planned = run(
            folder.path(),
            &["run", name, "model:sata-7200", "--dry-run"],
        );
        planned.code == Some(0)
    };
    let own = BUILTIN
        .iter()
        .map(|(name, _)| *name)
        // Tests of a standard print more, and are looked at elsewhere.
        .filter(|name| {
            Experiment::find(name)
                .expect("a built-in one")
                .standard
                .is_none()
        });
    let missing = own.filter(|name| !is_run(name) && is_carried_out(name));
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn a_run_of_few_cells_on_a_solid_state_disk_stays_within_32_lines() {
    runs_stay_within_32_lines("sata-ssd");
}

#[test]
fn a_run_of_few_cells_on_a_hard_disk_stays_within_32_lines() {
    runs_stay_within_32_lines("sata-7200");
}

#[test]
fn a_run_of_few_cells_on_a_fast_disk_stays_within_32_lines() {
    runs_stay_within_32_lines("nvme-970pro");
}

fn runs_stay_within_32_lines(model: &str) {
    let mut long = Vec::new();
    for line in RUNS {
        let folder = folder();
        let target = format!("model:{model}");
        let (name, changes) = line.split_once(' ').unwrap_or((line, ""));
        let mut words = vec!["run", name, &target, "--seed", "1", "-o", "run.iolab"];
        words.extend(changes.split_whitespace());
        // Flash carries out so many requests that trials of the usual length take long to simulate.
        if model != "sata-7200" {
            words.extend(["--time", "25ms"]);
        }
        let printed = run(folder.path(), &words).expect(0).stdout;
        let record = iolab_runfile::read(&folder.path().join("run.iolab")).expect("a run file");
        assert!((3..=12).contains(&record.cells.len()), "{line}");
        let lines = printed.lines().count();
        if lines > 32 {
            long.push(format!("{line} on {model}: {lines} lines\n{printed}"));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn a_study_stays_within_40_lines() {
    for model in MODELS {
        let folder = folder();
        let target = format!("model:{model}");
        let study = [
            "study", &target, "--seed", "1", "--budget", "1min", "-o", "out",
        ];
        let printed = run(folder.path(), &study).expect(0).stdout;
        let lines = printed.lines().count();
        assert!(lines <= 40, "{model}: {lines} lines\n{printed}");
    }
}
