//! How much is printed: each first screen has 24 lines at most.

use iolab_plan::experiment::{BUILTIN, Experiment};

use crate::support::{folder, run};

/// In turn, a line each.
const MODELS: [&str; 3] = ["sata-ssd", "sata-7200", "nvme-970pro"];

/// Built-in experiments that models carry out.
const RUNS: [&str; 15] = [
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
    "load-latency --size 16M --slo p99<1ms --budget 4s",
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

/// First screens of runs, of studies, and of what is asked of both.
#[test]
fn first_screens_of_models_have_24_lines() {
    let mut long = Vec::new();
    let folder = folder();
    let mut check = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let printed = run(folder.path(), &words);
        assert!(
            matches!(printed.code, Some(0 | 4 | 5)),
            "{line}: {}",
            printed.stderr
        );
        let lines = printed.stdout.lines().count();
        if lines > 24 {
            long.push(format!("{line}: {lines} lines\n{}", printed.stdout));
        }
    };
    for (line, model) in RUNS.iter().zip(MODELS.iter().cycle()) {
        let (name, changes) = line.split_once(' ').unwrap_or((line, ""));
        // Flash completes requests so fast that a simulated trial of the usual length takes long.
        let time = match *model {
            "sata-7200" => "100ms",
            _ => "25ms",
        };
        let line = format!("run {name} model:{model} --seed 1 --time {time} {changes}");
        check(line.trim_end());
    }
    check("study model:sata-7200 --seed 1 --budget 10s");
    check("study model:sata-ssd --suite quick --seed 1 --budget 30s");
    check("fit etcd model:sata-7200 --seed 1");
    for (seed, file) in [("1", "a.iolab"), ("2", "b.iolab")] {
        let sizes = "--bs 4k,64k,1M,4M --time 25ms";
        check(&format!(
            "run read-random model:sata-ssd {sizes} --seed {seed} -o {file}"
        ));
    }
    check("compare a.iolab b.iolab");
    check("why a.iolab --seed 1");
    assert!(long.is_empty(), "{}", long.join("\n"));
}
