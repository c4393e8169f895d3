//! The built-in experiments and suites.

use std::time::Duration;

use iolab_plan::cells::{OneProcess, Plan, cells};
use iolab_plan::experiment::{BUILTIN, Change, DesignEntry, Experiment, writes_at_most};
use iolab_plan::forecast::Forecast;
use iolab_plan::suite::{BUILTIN_SUITES, Suite};
use iolab_workload::foreign_options::{Answer, FOREIGN};
use iolab_workload::response::Response;
use iolab_workload::settings::{SETTINGS, Setting};

use crate::lines::experiment;

/// The experiments of the study of micro-benchmarks.
const MICRO: [&str; 6] = [
    "read-size", "write-size", "read-stride", "write-stride", "read-random", "write-random",
];

/// Names of the definitions in a folder, in order.
fn in_folder(folder: &str) -> Vec<String> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let files = std::fs::read_dir(folder).expect("a folder of this package");
    let names = files.map(|file| file.expect("readable").file_name());
    let names = names.map(|name| name.to_string_lossy().trim_end_matches(".toml").to_owned());
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    names
}

#[test]
fn every_file_is_built_in_by_its_name() {
    for (name, _) in BUILTIN {
        assert_eq!(Experiment::find(name).expect(name).name, *name);
    }
    for (name, _) in BUILTIN_SUITES {
        assert_eq!(Suite::find(name).expect(name).name, *name);
    }
    let names = |all: &[(&str, &str)]| all.iter().map(|(name, _)| (*name).to_owned()).collect();
    let built_in: [Vec<String>; 2] = [names(BUILTIN), names(BUILTIN_SUITES)];
    assert_eq!(built_in, ["experiments", "suites"].map(in_folder));
}

#[test]
fn the_linkage_experiment_is_study_c() {
    let experiment = experiment("linkage");
    assert!(experiment.runs_programs() && experiment.response == Response::Elapsed);
    assert!(experiment.design.trials_min >= 20);
    let cells = cells(&experiment).expect("valid");
    let sizes: Vec<u64> = cells.iter().map(|cell| cell.spec.trial.region).collect();
    assert_eq!((sizes.len(), sizes[0], sizes[55]), (56, 1, 128 << 20));
    assert!(cells.iter().all(|cell| cell.spec.trial.bs == 2 << 20));
}

#[test]
fn quick_runs_them_all_within_its_budget() {
    let suite = Suite::find("quick").expect("built in");
    let names = suite.experiments.iter().map(|one| one.name.as_str());
    assert!(names.eq(["buffer-memory"].into_iter().chain(MICRO)));
    let given: Duration = suite.experiments.iter().map(|e| e.design.budget).sum();
    assert!(given <= suite.budget && suite.budget <= Duration::from_secs(115));
    for experiment in &suite.experiments {
        let spec = experiment.base().expect("a cell").trial;
        let rounds = experiment.design.trials_min + experiment.design.warm_ups();
        let least = spec.limit.time.expect("a time") * rounds * experiment.cell_count() as u32;
        assert!(least < experiment.design.budget.mul_f64(0.7), "{least:?}");
        assert!(spec.region < 1 << 30);
    }
}

/// On storage of any speed, with all trials that it may make.
#[test]
fn glance_writes_below_4_gib() {
    let plan = Plan::of_new_run(experiment("glance"), &OneProcess).expect("valid");
    let design = plan.experiment().design;
    let fewest = u64::from(design.trials_wanted(plan.cells().len()) + design.warm_ups());
    let caps = plan.cells().iter().map(|cell| writes_at_most(&cell.spec));
    let caps: Vec<u64> = caps.filter(|cap| *cap > 0).collect();
    let region = plan.cells()[0].spec.trial.region;
    let written = caps.iter().sum::<u64>() * fewest + region;
    assert!(caps.len() == 8 && written < 4 << 30, "{caps:?}");
    let forecast = Forecast::of(&plan, &|_| Duration::ZERO).beside_fill(region);
    let Some(bytes) = forecast.written else {
        panic!("{forecast:?}");
    };
    assert!(bytes + region < 4 << 30, "{bytes}");
}

#[test]
fn no_value_of_a_setting_breaks_a_plan() {
    let values = [
        "0", "1", "3", "100", "4096", "1G", "8191P", "1ns", "365d", "1B/s",
    ];
    let mut taken = 0;
    for (name, group) in [
        ("read-random", ""),
        ("interference", "reader."),
        ("interference", ""),
    ] {
        for (setting, value) in SETTINGS.iter().flat_map(|s| values.map(|value| (s, value))) {
            let mut experiment = experiment(name);
            let set = format!("{group}{}={value}", setting.name);
            let applied = experiment.apply_set(&set);
            let is_nothing =
                ["bs", "region", "threads", "depth", "sync_every"].contains(&setting.name);
            assert!(applied.is_err() || !is_nothing || value != "0", "{set}");
            if applied.is_err() {
                continue;
            }
            if let Ok(plan) = Plan::of_new_run(experiment, &OneProcess) {
                taken += 1;
                let _ = Forecast::of(&plan, &|_| Duration::ZERO);
                let _ = plan.shortfall(&|_| Duration::ZERO);
            }
        }
    }
    assert!(taken > 100, "{taken}");
}

/// The argument of each `--set` in a text.
fn sets(text: &str) -> impl Iterator<Item = &str> {
    let behind = text.split("--set ").skip(1);
    behind.map(|rest| rest.split([' ', ';', '(']).next().unwrap_or(rest))
}

#[test]
fn answers_about_other_tools_options_are_valid() {
    for foreign in FOREIGN {
        let mut names = foreign.names();
        assert!(!names.any(|name| DesignEntry::find(name).is_some()));
        let Some(Answer::Way(text) | Answer::None(text)) = foreign.answer else {
            continue;
        };
        for set in sets(text) {
            let set = set.trim_end_matches([',', ':', '.']);
            let (name, _) = set.split_once('=').unwrap_or((set, ""));
            let known = Setting::find(name).is_some() || DesignEntry::find(name).is_some();
            assert!(known, "{name} in: {text}");
            if set.contains('=') && !set.contains(['"', 'N']) {
                Change::parse(set).expect(text);
            }
        }
    }
}
