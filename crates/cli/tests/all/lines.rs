//! How much is printed: each first screen has 24 lines at most.

use iolab_plan::experiment::{BUILTIN, Experiment};

use crate::support::{folder, run};

const MODELS: [&str; 3] = ["sata-ssd", "sata-7200", "nvme-970pro"];

/// Built-in experiments that models carry out.
const RUNS: [&str; 14] = [
    "glance",
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

/// Those of runs, of studies, and of what is asked of both.
#[test]
fn first_screens_of_models_have_24_lines() {
    let mut long = Vec::new();
    for model in MODELS {
        let folder = folder();
        let target = format!("model:{model}");
        let target = target.as_str();
        let mut check = |words: &[&str]| {
            let printed = run(folder.path(), words);
            assert!(
                matches!(printed.code, Some(0 | 4 | 5)),
                "{words:?}: {}",
                printed.stderr
            );
            let lines = printed.stdout.lines().count();
            if lines > 24 {
                long.push(format!("{words:?}: {lines} lines\n{}", printed.stdout));
            }
        };
        for line in RUNS {
            let (name, changes) = line.split_once(' ').unwrap_or((line, ""));
            let mut words = vec!["run", name, target, "--seed", "1"];
            words.extend(changes.split_whitespace());
            // Flash carries out so many requests that trials of the usual length take long to simulate.
            if model != "sata-7200" {
                words.extend(["--time", "25ms"]);
            }
            check(&words);
        }
        check(&["study", target, "--seed", "1", "--budget", "10s"]);
        check(&[
            "study", target, "--suite", "quick", "--seed", "1", "--budget", "30s",
        ]);
        check(&["fit", "etcd", target, "--seed", "1"]);
        check(&[
            "run", "read-random", target, "--bs", "4k,64k,1M,4M", "--seed", "2", "--time", "25ms",
            "-o", "again.iolab",
        ]);
        check(&["compare", "iolab-results/read-random.iolab", "again.iolab"]);
        check(&["why", "iolab-results/read-random.iolab", "--seed", "1"]);
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}
